"""By default each example has a process of its own: what that may use, how it ends, and what it must not leave."""

import ctypes
import functools
import gc
import logging
import mmap
import os
import resource
import signal
import sys
import threading
import time
import types
import zlib

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft")

from small_models import WORDS, adapted, largest_move, next_word, small, texts  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402

from ppdp import Ledger  # noqa: E402
from ppdp.exceptions import InvalidParameter, StageFailed  # noqa: E402
from ppdp.mechanisms.lora import PrivateLoRA, process  # noqa: E402
from ppdp.mechanisms.lora.gradients import GradientsOfB  # noqa: E402

pytestmark = pytest.mark.skipif(not process.LINUX, reason="copies of a process are for Linux")
PUBLIC = {"n_rows": 12, "batch_size": 12, "steps": 1, "epsilon": 2.0, "delta": 1e-5, "max_grad_norm": 1e-3}
RARE = WORDS - 1


class Wide(torch.nn.Module):
    """One layer that is wide."""

    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(WORDS, 64)
        self.layer = torch.nn.Linear(64, 4)
        self.head = torch.nn.Linear(4, WORDS)

    def forward(self, ids):
        return self.head(torch.tanh(self.layer(self.words(ids))))


def private(loss=next_word, model=None, **other):
    model = small("twice") if model is None else model
    probe = {"ids": texts(4, seed=9)["ids"].clamp(max=RARE - 1)}
    return PrivateLoRA(model, loss, **{"probe": probe, **PUBLIC, **other})


def rare(n):
    examples = texts(n)
    examples["ids"][:, 0] = RARE
    return examples


def where_rare(act):
    """A loss that acts at an example of a private word, by what is given."""
    return lambda model, batch: (
        act(next_word(model, batch)) if (batch["ids"] == RARE).any() else next_word(model, batch)
    )


def test_memory_that_processes_share_is_declared():
    shared = mmap.mmap(-1, 1)

    def turned(losses):
        shared[0] ^= 1
        return losses * (1 - 2 * shared[0])

    assert largest_move(private(where_rare(turned)), rare(4), removed=(0,)) > 1.5


def test_a_call_that_stops_under_a_tracer_is_waited_for():
    """The system tells its parent of that as of an end."""

    def traced(losses):
        threading.Timer(0.05, os._exit, (0,)).start()
        system = ctypes.CDLL(None)  # which lets other threads run meanwhile
        system.ptrace(0, 0, 0, 0)  # PTRACE_TRACEME
        system.syscall(234, os.getpid(), os.getpid(), signal.SIGSTOP)  # tgkill, of the thread that asks
        return losses

    examples = {"ids": torch.cat([rare(1)["ids"], texts(4)["ids"].clamp(max=RARE - 1)])}
    assert largest_move(private(where_rare(traced)), examples, removed=(0,)) <= 1 + 1e-9


class Counting(TorchFunctionMode):
    """What torch asks before each operation, and that remembers."""

    def __torch_function__(self, function, types, given=(), named=None):
        return function(*given, **(named or {}))


class Rounding(torch.Tensor):
    """Products of a class of its own."""

    @classmethod
    def __torch_function__(cls, function, types, given=(), named=None):
        made = super().__torch_function__(function, types, given, named or {})
        return made.sign() * 1e9 if function is torch.Tensor.matmul else made


def replaced(name, act):
    def plant(losses):
        own = getattr(torch, name)
        setattr(torch, name, lambda *given, **named: act(own(*given, **named)))
        return losses

    return plant


SHOWN = {
    "products replaced": replaced("bmm", torch.sign),
    "what rounds replaced": lambda losses: setattr(torch.Tensor, "round_", lambda one: one.fill_(2.0**40)) or losses,
    "a mode left on": lambda losses: Counting().__enter__() and losses,
    "an exit behind written pages": lambda losses: (
        [one.fill_(1) for one in gc.get_objects() if type(one) is torch.Tensor and one.dtype == torch.float32]
        and os._exit(0)
    ),
}


@pytest.mark.parametrize("plant", SHOWN)
def test_what_a_projection_shows_is_of_no_calls_making(plant):
    """Of 64 dimensions one is shown: in most draws an eighth of a clip, whatever a call does."""
    model, examples = adapted(Wide(), ["layer"], r=1), rare(1)
    training = private(where_rare(SHOWN[plant]), model, method="m2")
    sums = training._sums()
    clip, unit = training.plan_.question.parameters["clip"], sums._unit
    shown = [float(sums.counts(examples, sums.projections())[0].norm()) * unit / clip for _ in range(9)]
    assert sorted(shown)[4] < 0.5
    assert max(shown) > 0 or plant == "an exit behind written pages"


def test_a_process_that_a_call_starts_answers_for_no_other():
    def split(losses):
        if os.fork() == 0:
            time.sleep(0.02)
        return losses

    assert largest_move(private(where_rare(split)), rare(4), removed=(0,)) <= 1 + 1e-9


FORKS = []  # copies of which C libraries were told
count_a_fork = ctypes.CFUNCTYPE(None)(lambda: FORKS.append(1))


def seen_of_memory():
    """What tells one state of a process from another, in 32 bits each."""
    new = [object(), [], {}, (seen_of_memory,), 2.0**0.5 + len(os.environ), 10**9 + len(os.environ), bytes(40), set()]
    rest = [
        sys.getallocatedblocks(),
        gc.get_count(),
        len(gc.get_objects()),
        torch.empty(4096).untyped_storage().tolist(),
    ]
    chance = [torch.get_rng_state().tolist(), np.random.mtrand._rand.get_state()]
    about = [[id(one) for one in new], rest, chance, resource.getrusage(resource.RUSAGE_CHILDREN), sorted(sys.modules)]
    functions = [one.__code__ for one in gc.get_objects() if isinstance(one, types.FunctionType)]
    about.append([getattr(one, "_co_code_adaptive", b"") for one in functions])  # with counts of how often it ran
    about.append(len(FORKS))
    return torch.tensor([zlib.crc32(repr(one).encode()) for one in about], dtype=torch.float64)


def test_no_copy_can_tell_how_many_came_before_or_what_became_of_them():
    """Down to addresses of new objects, memory that nothing wrote to, counts of the collector and of bytecode."""

    def work(example):
        found, place = seen_of_memory(), int(example["x"])
        return found if place < 6 else 1 / 0 if place < 7 else os._exit(place - 7)

    if hasattr(process.SYSTEM, "_Fork"):  # or the system's library has none that tells nobody
        process.SYSTEM["__register_atfork"](None, count_a_fork, None, None)
    answers = [torch.empty(7, dtype=torch.float64)]
    copies = process.Copies([torch.zeros(1)], {"x": torch.zeros(1)}, answers, lambda example: [work(example)])
    weights = [torch.ones(1)]
    for _ in range(2):  # steps
        copies.load(weights)
        seen = [copies.call({"x": torch.full((1,), float(place))}) for place in (0, 1, 6, 2, 7, 10, 10, 3)]
        assert [one is None for one in seen] == [False, False, True, False, True, True, True, False]
        told = [one[0] for one in seen if one is not None]
        assert all(torch.equal(one, told[0]) for one in told)
    copies.close()
    assert len(FORKS) > 0 or not hasattr(process.SYSTEM, "_Fork")


def of_no_count(act):
    """What examples at which a loss acts add to the sum, and that the training goes on."""
    examples = {"ids": texts(2)["ids"].clamp(max=RARE - 1)}
    more = {"ids": torch.cat([examples["ids"], rare(2)["ids"]])}
    training = private(where_rare(act))
    sums = training._sums()
    without, with_them = (sums.counts(one, [None])[0] for one in (examples, more))
    assert without.any()
    return torch.equal(without, with_them) and training.fit(more).certificate_.verify()


def test_no_file_is_open_and_none_is_written(tmp_path):
    """Neither how far a file was read nor what is in it lasts: a call that would read on or write stops."""
    (tmp_path / "read").write_text("12")
    with open(tmp_path / "read", buffering=1) as opened, open(tmp_path / "written", "w+") as written:
        assert of_no_count(lambda losses: losses * int(opened.read(1)))
        assert of_no_count(lambda losses: losses * os.pread(written.fileno(), 1, 0)[0])
        assert of_no_count(lambda losses: losses * (tmp_path / "new").write_text("1"))
        assert os.lseek(opened.fileno(), 0, os.SEEK_CUR) == 0
        assert (opened.read(), (tmp_path / "new").read_text()) == ("12", "")
        with pytest.raises(InvalidParameter, match="stops at a made-up example"):
            private(lambda model, batch: next_word(model, batch) * os.write(written.fileno(), b"1")).fit(texts(4))


@pytest.mark.parametrize("method", ["fa", "m2"])
def test_the_same_is_released_in_one_process_and_in_many(method):
    released = [
        private(method=method, random_state=3, dataset=f"{where}", **where).fit(texts(4)).certificate_
        for where in ({"isolation": None}, {})
    ]
    assert len({one.record.released.sha256 for one in released}) == 1
    declared = "declared: Python, NumPy and torch are as made; every call ends, uses no other example, reads, stops or"
    assert declared in " ".join(released[1].to_text(full=True).split())
    assert released[1].verify()


ENDS = {
    "an error": lambda: 1 / 0,
    "an exit": lambda: os._exit(0),
    "a signal": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "a signal to its group": lambda: os.killpg(0, signal.SIGKILL),
    "an interrupt": lambda: exec("raise KeyboardInterrupt"),
}


@pytest.mark.parametrize("end", ENDS)
def test_an_example_at_which_something_stops_is_as_none(end):
    assert of_no_count(lambda losses: ENDS[end]() or losses)


@pytest.mark.parametrize("beyond", [1.001, float("nan"), float("inf")])
def test_numbers_beyond_the_clip_are_none(beyond, monkeypatch):
    own = GradientsOfB.steps
    monkeypatch.setattr(GradientsOfB, "steps", lambda *given: own(*given) * beyond)
    assert not private()._sums().counts(texts(1), [None])[0].any()


@pytest.mark.parametrize("ended", ["by an interrupt", "with what waits"])
def test_what_ends_the_training_ends_all_processes(ended):
    own = os.getpid()

    def end(losses):
        interrupt = ended == "by an interrupt"
        os.kill(*((own, signal.SIGUSR1) if interrupt else (os.getppid(), signal.SIGKILL)))
        return time.sleep(600) if interrupt else losses

    ledger = Ledger(epsilon=3.0, delta=1e-4, accounting="renyi")
    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt if ended == "by an interrupt" else StageFailed):
            private(where_rare(end), ledger=ledger).fit(rare(4))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert [entry.status for entry in ledger.entries()] == ["failed"]
    assert private().fit(texts(2)).certificate_.verify()
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_a_process_that_is_killed_leaves_none():
    at_work = process._shared(torch.zeros(1))
    copies_of = lambda: process.Copies([], {}, [torch.empty(1)], lambda _: at_work.fill_(1) and time.sleep(60))  # noqa: E731
    process.SYSTEM.prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: what is left becomes a child of ours
    try:
        with process._undisturbed():
            child = os.fork()
        if child == 0:
            process._only(os.getppid(), lambda: [one := copies_of(), one.load([]), one.call({})])
        while not at_work:
            time.sleep(0.01)
        os.kill(child, signal.SIGKILL)
        assert [os.waitpid(-1, 0)[1] for _ in range(4)] == [signal.SIGKILL] * 4
    finally:
        process.SYSTEM.prctl(36, 0)


@pytest.mark.parametrize("method", ["fa", "m2"])
def test_inputs_and_modes_that_make_products_their_own(method):
    class Odd(Wide):
        def forward(self, ids):
            return self.head(self.layer(self.words(ids).as_subclass(Rounding)).as_subclass(torch.Tensor))

    with pytest.raises(InvalidParameter, match="torch's own class"):
        private(model=adapted(Odd(), ["layer"], r=1), method=method)
    training = private(method=method, model=small("twice", init_lora_weights=True))
    with Counting():
        for act in (lambda: private(), lambda: training.fit(texts(2))):
            with pytest.raises(InvalidParameter, match="of torch"):
                act()
    with torch.device("cpu"):  # torch's own, for what has no device
        training.fit(texts(2))


def test_torch_of_somebody_else(monkeypatch):
    own, zip_, at = torch.where, zip, []

    def replaced(model, batch):
        if at:
            monkeypatch.setattr(torch, "where", lambda *given: own(*given))
        return next_word(model, batch)

    training = private(replaced, method="m2", model=small("twice", init_lora_weights=True))
    at.append(1)
    with pytest.raises(InvalidParameter, match="where is of somebody else"):
        training.fit(texts(2))
    assert training._charged is None
    monkeypatch.undo()
    monkeypatch.setattr("builtins.zip", lambda *given: iter([*zip_(*given)]))
    with pytest.raises(InvalidParameter, match=r"builtins\.zip"):
        private()
    monkeypatch.undo()
    for name in ("round_", "__rtruediv__"):
        monkeypatch.setattr(torch.Tensor, name, torch.no_grad()(lambda one, *given: one), raising=False)
        with pytest.raises(InvalidParameter, match=f"{name} is of somebody else"):
            private()
        monkeypatch.undo()
    monkeypatch.setattr(torch.linalg, "vector_norm", functools.partial(torch.linalg.vector_norm))
    with pytest.raises(InvalidParameter, match="vector_norm"):
        private()


@pytest.mark.parametrize("method", ["fa", "m2"])
def test_weights_that_are_not_what_a_layer_says(method):
    class Own(torch.nn.Parameter):
        """Of a class of its own."""

    odd, wide = (small("twice", init_lora_weights=True) for _ in range(2))
    odd.base_model.model.layer.base_layer.weight = Own(odd.base_model.model.layer.base_layer.weight.data)
    wide.base_model.model.layer.in_features = 136
    for model, words in ((odd, "not of torch's own class"), (wide, "other in_features")):
        with pytest.raises(InvalidParameter, match=words):
            private(model=model, method=method)

    def changing(model, batch):
        if at:
            model.base_model.model.layer.base_layer.weight.__class__ = Own
            model.base_model.model.layer.lora_B["default"].weight.__class__ = Own
        return next_word(model, batch)

    at = []
    training = private(changing, small("twice", init_lora_weights=True), method=method)
    at.append(1)
    with pytest.raises(InvalidParameter, match="places of weights changed"):
        training.fit(texts(2))
    assert training._charged is None

    def lying(model, batch):
        model.base_model.model.layer.in_features = 136
        return next_word(model, batch)

    inputs = private(lying, small("twice", init_lora_weights=True), method="m2").plan_.question.parameters["inputs"]
    assert inputs == [12]


@pytest.mark.parametrize("method", ["fa", "m2"])
def test_a_class_lent_to_weights_between_two_steps_sees_no_sum(method):
    """A handler of logs runs in ppdp's own process, where sums are."""
    asked = []

    class Own(torch.nn.Parameter):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            asked.append(function)
            return super().__torch_function__(function, types, args, kwargs or {})

    class Lending(logging.Handler):
        def emit(self, record):
            for layer in training._probed.layers:
                layer.trained.__class__ = Own if record.args[1] == 1 else torch.nn.Parameter

    training, log, lending = private(method=method, steps=2), logging.getLogger("ppdp"), Lending()
    level = log.level
    log.addHandler(lending)
    log.setLevel("INFO")
    try:
        assert training.fit(texts(4)).certificate_.verify()
    finally:
        log.removeHandler(lending)
        log.setLevel(level)
    assert not asked


def test_a_made_up_example_that_never_ends_is_no_private_one(monkeypatch):
    own = os.getpid()
    monkeypatch.setattr("ppdp.mechanisms.lora.sums.LONGEST", 0.2)
    training = private(lambda model, batch: next_word(model, batch) * (os.getpid() == own or time.sleep(60)))
    with pytest.raises(StageFailed, match="never answers"):
        training.fit(texts(2))
    assert training._charged is None


def test_what_a_process_has_not_for_itself(monkeypatch):
    shared, mapped, own = small("twice"), small("twice"), os.getpid()
    shared.base_model.model.head.share_memory()
    mapped.base_model.model.register_buffer("state", torch.frombuffer(mmap.mmap(-1, 4), dtype=torch.float32))
    for given in ({"microbatch": 2}, {"model": shared}, {"model": mapped}, {"isolation": "thread"}):
        with pytest.raises(
            InvalidParameter, match="isolation" if "isolation" in given else "None, by which you declare"
        ):
            private(**given)
    training = private(lambda model, batch: next_word(model, batch) / (os.getpid() == own or 1 / 0))
    with pytest.raises(InvalidParameter, match="stops at a made-up example"):
        training.fit(texts(4))
    assert training._charged is None
    monkeypatch.setattr(process, "LINUX", False)
    with pytest.raises(InvalidParameter, match="for Linux"):
        private()
