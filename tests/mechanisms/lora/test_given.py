"""Objects of the user's classes that answer otherwise later, or run where ppdp adds up; tracers in a copy."""

import numbers
import os
import signal
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft")

from small_models import WORDS, largest_move, next_word, small, texts  # noqa: E402

from ppdp.exceptions import InvalidParameter, StageFailed  # noqa: E402
from ppdp.mechanisms.lora import PrivateLoRA, process  # noqa: E402

pytestmark = pytest.mark.skipif(not process.LINUX, reason="copies of a process are for Linux")
PUBLIC = {"n_rows": 12, "batch_size": 12, "steps": 1, "epsilon": 2.0, "delta": 1e-5, "max_grad_norm": 1e-3}
PROBE = texts(4, seed=9)["ids"].clamp(max=WORDS - 2)


def private(model=None, **given):
    model = small("twice", init_lora_weights=True) if model is None else model
    return PrivateLoRA(model, next_word, **{"probe": {"ids": PROBE}, **PUBLIC, **given})


class Once(float):
    """Another number with each look."""

    def __new__(cls, *values):
        made = float.__new__(cls, values[0])
        made.left = list(values)
        return made

    def __float__(self):
        return float(self.__int__())

    def __int__(self):
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]


numbers.Integral.register(Once)


class Word(str):
    """Equal to another word behind the first looks."""

    looks = 0

    def __eq__(self, other):
        self.looks += 1
        return str(self) == other if self.looks < 4 else other == "fa"

    __hash__ = str.__hash__


@pytest.mark.parametrize(
    ("name", "given", "taken"),
    [
        ("epsilon", Once(2, 1), 2.0),
        ("steps", Once(5, -3), 5),
        ("batch_size", Once(5, 500), 5),
        ("method", Word("m2"), "m2"),
    ],
)
def test_a_parameter_is_what_it_was_at_the_first_look(name, given, taken):
    training, usual = private(**{name: given}), private(**{name: taken})
    assert training.plan_ == usual.plan_
    assert training.method == usual.method


class Mixed(str):
    """A name whose hash writes into the batch of a step, where there is a private word."""

    def __hash__(self):
        frame = sys._getframe(1)
        while frame is not None and not {"batch", "projections"} <= frame.f_locals.keys():
            frame = frame.f_back
        for one in {} if frame is None else frame.f_locals["batch"].values():
            if (one == WORDS - 1).any():
                one[one < WORDS - 1] = 3
        return str.__hash__(self)

    def __eq__(self, other):
        return str.__eq__(self, other)

    def __radd__(self, other):
        return Mixed(str(other) + str(self))

    def removeprefix(self, prefix):
        return str(self).removeprefix(prefix)

    def split(self, *given):
        return str(self).split(*given)


class Weight(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        hash(Mixed())
        return super().__torch_function__(function, types, args, kwargs or {})


def of_a_layer():
    model = small("twice", init_lora_weights=True)
    modules = model.base_model.model._modules
    modules[Mixed("layer")] = modules.pop("layer")
    return private(model, method="m2")


def of_a_weight():
    model = small("twice")
    weight = model.base_model.model.layer.lora_B["default"].weight
    own = weight.detach
    weight.detach = lambda: own().as_subclass(Weight)
    return private(model)


@pytest.mark.parametrize("made", [of_a_layer, of_a_weight])
def test_what_a_model_holds_runs_nothing_where_ppdp_adds_up(made):
    examples = {"ids": texts(8)["ids"].clamp(max=WORDS - 2)}
    examples["ids"][0] = WORDS - 1
    training, before = made(), examples["ids"].clone()
    assert largest_move(training, examples, removed=(0,)) <= 1 + 1e-9
    assert torch.equal(examples["ids"], before)


def test_names_of_a_class_of_its_own():
    with pytest.raises(InvalidParameter, match="probe must be a mapping"):
        private(probe={Mixed("ids"): PROBE})


def test_a_process_that_hangs_or_is_traced_before_it_waits(monkeypatch):
    """A tracer that raises in a copy of the process lets no second one of the user's go on; no wait is without end."""
    went_on, own, training = process._shared(torch.zeros(1)), os.getpid(), private()

    def trace(frame, *_):
        if frame.f_code is process.Copies.__init__.__code__ and os.getpid() != own:
            raise ArithmeticError
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        sums = training._sums()
    except ArithmeticError:
        went_on.fill_(1)
        os._exit(0)
    finally:
        sys.settrace(before)
    monkeypatch.setattr(process, "LONGEST", 0.2)
    stopped = training._sums()
    os.kill(stopped._copies.close.peek()[2][0], signal.SIGSTOP)
    for one in (sums, stopped):
        with pytest.raises(StageFailed, match="never answers"):
            one.try_apart()
    assert not went_on
