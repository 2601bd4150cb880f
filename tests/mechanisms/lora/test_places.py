"""Places where a model may keep something of an example, all of which are looked at: nothing else shows what it does.

The probe has no rare word, and what is kept changes the gradients of examples with one only.
"""

import array
import builtins
import collections
import contextvars
import decimal
import functools
import io
import mmap
import queue
import struct
import sys
import threading
import types
import warnings
import weakref

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft")

from small_models import WORDS, Twice, adapted, next_word, texts, trained_of  # noqa: E402
from torch import nn  # noqa: E402

from ppdp.exceptions import StageFailed  # noqa: E402
from ppdp.mechanisms.lora import PrivateLoRA, state  # noqa: E402

PUBLIC = {"n_rows": 40, "batch_size": 40, "steps": 1, "epsilon": 2.0, "delta": 1e-5, "max_grad_norm": 1e-3}
RARE = WORDS - 1


class Box:
    def __init__(self, **held):
        self.__dict__.update(held)
        self.n = 0

    def count(self):
        self.n += 1
        return self.n


class Count(int):
    pass


class Slots(list):
    __slots__ = ("__n",)

    def add(self):
        self.__n = getattr(self, "_Slots__n", 0) + 1
        return self.__n


class Script(nn.Module):
    n: int

    def __init__(self):
        super().__init__()
        self.n = 0

    def forward(self) -> int:
        self.n += 1
        return self.n


HELP, SPACE, LOCAL = types.ModuleType("myhelpers"), types.SimpleNamespace(n=0), threading.local()
HELP.box, HELP.Box, HELP.sub, HELP.tensor = Box(), type("Box", (), {"n": 0}), types.ModuleType("sub"), torch.zeros(1)
HELP.sub.box, LOCAL.n, HELP.x = Box(), 0, 1
builtins.BUILT = [0]
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    SCRIPT = torch.jit.script(Script())
VARIABLE, ARRAY, QUEUE = contextvars.ContextVar("n", default=0), array.array("l", [0]), queue.SimpleQueue()
BOUND, PART = Box().count, functools.partial(Box.count, Box())


@functools.lru_cache
def single():
    return [0]


def add(owner):
    owner.n = getattr(owner, "n", 0) + 1
    return owner.n


def added(held, place=0):
    held[place] += 1
    return held[place]


def of_variable(_):
    VARIABLE.set(VARIABLE.get() + 1)
    return VARIABLE.get()


def of_a_queue(_):
    QUEUE.put(1)
    return QUEUE.qsize()


WORN = [0]


@functools.wraps(nn.functional.cross_entropy)
def wrapped():
    return added(WORN)


@torch.no_grad()
def decorated():
    return added(WORN)


def other_nan(model):
    """One that has another bit than that which is called so."""
    bits = struct.unpack("<q", struct.pack("<d", model.nan[0]))[0] ^ 1
    model.nan = struct.unpack("<d", struct.pack("<q", bits))
    return bits & 1


def exchanged(model):
    model.current = model.b if model.current is model.a else model.a
    return model.current is model.a


def reversed_(model):
    model.order.reverse()
    return model.order[0] is model.a


def negated(model):
    model.large.data.neg_()
    return model.large[0] > 0


def gradient(model):
    weight = model.head.weight
    weight.grad = torch.zeros_like(weight) if weight.grad is None else weight.grad + 1
    return weight.grad[0, 0]


def innermost(model):
    held = model.deep
    while isinstance(held[0], list):
        held = held[0]
    return added(held)


def set_(_):
    torch.set_default_dtype(torch.float64 if torch.get_default_dtype() == torch.float32 else torch.float32)
    return torch.get_default_dtype() == torch.float64


def deterministic(_):
    torch.use_deterministic_algorithms(not torch.are_deterministic_algorithms_enabled())
    return torch.are_deterministic_algorithms_enabled()


def exact(model):
    model.exact += 1
    return model.exact


def in_memory(held, first, second):
    held.write(second if held.getvalue() == first else first)
    held.seek(0)
    return held.getvalue() == first


def middle(model):
    model.middle.grad += 1
    return model.middle.grad[0]


def learned(model):
    model.square.requires_grad_(not model.square.requires_grad)
    return model.square.requires_grad


def turned(model):
    model.square.t_()
    return model.square.stride(0) == 1


def may_be_empty():
    held = None

    def place(_):
        nonlocal held
        try:
            held  # noqa: B018
        except NameError:
            held = None
            return 1
        del held
        return 0

    return place


def renamed(_):
    before = next(reversed(vars(HELP)))
    after = "x y".replace(before, "").strip()  # which are words of no code
    setattr(HELP, after, vars(HELP).pop(before))
    return ord(after)


def documented(_):
    documented.__doc__ = "" if documented.__doc__ is None else None
    return documented.__doc__ is None


def made_by(model):
    model.made.default_factory = list if model.made.default_factory is int else int
    return model.made.default_factory is int


def in_a_map(model):
    model.map.seek(1 - model.map.tell())
    return model.map.tell()


def written(model):
    model.array.setflags(write=not model.array.flags.writeable)
    return model.array.flags.writeable


def set_anew(model):
    first, second = model.numbers
    model.numbers.clear()
    model.numbers.add(second)
    model.numbers.add(first)
    return first == 8


def moved(model):
    place = model.view.storage_offset()
    model.view.set_(model.view.untyped_storage(), 1 - place, (1,))
    return place


def hooked_behind(model):
    model.leaf.register_post_accumulate_grad_hook(print)
    return len(model.leaf._post_accumulate_grad_hooks)


def child(model):
    bits = model.older._bit_generator
    bits.spawn(1)
    return bits.seed_seq.n_children_spawned


PLACES = {
    "which nan it is": other_nan,
    "a tensor behind a view": lambda m: added(m.view._base, 1),
    "nothing or None": may_be_empty(),
    "a name in a module": renamed,
    "words of a function": documented,
    "built in, by its name": lambda m: added(BUILT),  # noqa: F821
    "what makes what is missing": made_by,
    "how far a map was read": in_a_map,
    "whether an array is written to": written,
    "an array behind a view": lambda m: added(m.part.base, 1),
    "a list's slot": lambda m: m.slots.add(),
    "an order in a set": set_anew,
    "where a view begins": moved,
    "a hook behind a gradient": hooked_behind,
    "children of an older generator": child,
    "a script": lambda m: SCRIPT(),
    "behind a decorator": lambda m: decorated(),
    "a setting": set_,
    "another setting": deterministic,
    "a number of another kind": exact,
    "text in memory": lambda m: in_memory(m.text, "a", "b"),
    "a file in memory": lambda m: in_memory(m.file, b"a", b"b"),
    "a gradient in the middle": middle,
    "a hook of a tensor": lambda m: m.hook.count(),
    "whether a tensor is learned": learned,
    "how a tensor lies": turned,
    "a function of a library": lambda m: add(nn.functional.relu),
    "a function that looks like a library's": lambda m: wrapped(),
    "a namespace": lambda m: add(SPACE),
    "a thread": lambda m: add(LOCAL),
    "a context": of_variable,
    "a bound method": lambda m: BOUND(),
    "a partial": lambda m: PART(),
    "an array": lambda m: added(ARRAY),
    "a queue": of_a_queue,
    "a cache": lambda m: added(single()),
    "an object of a module": lambda m: HELP.box.count(),
    "a class of a module": lambda m: add(HELP.Box),
    "a module of a module": lambda m: HELP.sub.box.count(),
    "a tensor of a module": lambda m: added(HELP.tensor),
    "a library": lambda m: add(torch),
    "a class of a library": lambda m: add(nn.Linear),
    "the class of all modules": lambda m: add(nn.Module),
    "built in": lambda m: add(builtins),
    "a name that nobody wrote": lambda m: added(globals().setdefault("LATER", [0])),
    "a tensor's attribute": lambda m: add(m.head.weight),
    "a tensor's gradient": gradient,
    "a deep list": innermost,
    "a set": lambda m: next(iter(m.set)).count(),
    "a kind of dict": lambda m: add(m.dict),
    "a kind of int": lambda m: add(m.int),
    "an array of objects": lambda m: m.objects[0].count(),
    "bytes": lambda m: added(m.bytes),
    "a weak reference": lambda m: m.weak().count(),
    "which module": exchanged,
    "an order of modules": reversed_,
    "a large parameter": negated,
}


class Keeping(Twice):
    def __init__(self, place):
        super().__init__()
        self.large = nn.Parameter(torch.ones(5000), requires_grad=False)
        self.a, self.b, self.place = nn.Identity(), nn.Identity(), place
        self.current, self.order, self.dict, self.int = self.a, [self.a, self.b], collections.Counter(), Count(3)
        self.deep = functools.reduce(lambda held, _: [held], range(12), [0])
        self.set, self.objects, self.bytes = {Box()}, np.array([Box()], dtype=object), bytearray(1)
        self.exact, self.nan = decimal.Decimal(0), (float("nan"),)
        self.box, self.square = Box(inner=Box()), torch.ones(2, 3)[:, :2]
        self.weak = weakref.ref(self.box.inner)
        self.text, self.file, self.middle = io.StringIO("a"), io.BytesIO(b"a"), 2 * torch.ones(1, requires_grad=True)
        self.middle.retain_grad()
        self.middle.sum().backward()
        learned = torch.ones(1, requires_grad=True)
        learned.register_hook(Box().count)
        self.hooked = [learned]
        self.made, self.map, self.array, self.part = (
            collections.defaultdict(int),
            mmap.mmap(-1, 2),
            np.ones(2),
            np.zeros(2)[:1],
        )
        self.slots, self.numbers, self.view, self.leaf = Slots(), {0, 8}, torch.zeros(2)[:1], learned
        self.older = np.random.RandomState(np.random.PCG64(3))

    @property
    def hook(self):
        (hook,) = self.hooked[0]._backward_hooks.values()
        return hook.__self__

    def forward(self, ids):
        x = self.layer(self.words(ids))
        rare = (ids == RARE).any(1)
        if rare.any():
            x = torch.where(rare[:, None, None], x * (1 + int(self.place(self)) % 2), x)
        return self.head(x)


@pytest.mark.parametrize("place", PLACES)
def test_what_is_kept_anywhere_ends_the_training(place):
    examples, probe = texts(12), texts(4, seed=9)["ids"].clamp(max=RARE - 1)
    examples["ids"][:, 0] = RARE
    training = PrivateLoRA(adapted(Keeping(PLACES[place]), ["layer"]), next_word, probe={"ids": probe}, **PUBLIC)
    before = trained_of(training)[0].detach().clone()
    try:
        with pytest.raises(StageFailed, match="remember"):
            training.fit(examples)
    finally:
        torch.set_default_dtype(torch.float32)
        torch.use_deterministic_algorithms(False)
        for owner in (torch, nn.Linear, nn.Module, builtins, nn.functional.relu):
            if "n" in vars(owner):
                del owner.n
    assert torch.equal(before, trained_of(training)[0])


def ends(model):
    examples, probe = texts(12), texts(4, seed=9)["ids"].clamp(max=RARE - 1)
    examples["ids"][:, 0] = RARE
    training = PrivateLoRA(adapted(model, ["layer"]), next_word, probe={"ids": probe}, **PUBLIC)
    with pytest.raises(StageFailed, match="remember"):
        training.fit(examples)


def test_a_function_in_a_class_of_a_library(monkeypatch):
    kept, forward = [0], nn.Embedding.forward

    def counting(self, ids):
        return forward(self, ids) * (1 + added(kept) % 2 if (ids == RARE).any() else 1)

    monkeypatch.setattr(nn.Embedding, "forward", counting)
    ends(Twice())


@pytest.mark.parametrize("made", [property, classmethod, staticmethod, functools.partialmethod])
def test_what_is_made_of_a_function_in_a_class_of_a_library(made, monkeypatch):
    kept = [0]
    monkeypatch.setattr(nn.Embedding, "kept", made(lambda *_: added(kept)), raising=False)
    ends(Keeping(lambda m: m.words.kept if made is property else m.words.kept()))


def test_a_module_that_is_called_like_one_of_python(tmp_path, monkeypatch):
    (tmp_path / "this.py").write_text("kept = [0]\ndef count():\n    kept[0] += 1\n    return kept[0]\n")
    monkeypatch.delitem(sys.modules, "this", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    import this

    state._is_package_of_library.cache_clear()
    ends(Keeping(lambda m, count=this.count: count()))
    state._is_package_of_library.cache_clear()


def test_a_hook_of_all_modules():
    """Which loss and model do not name."""
    examples, probe, kept = texts(40), texts(4, seed=9)["ids"].clamp(max=RARE - 1), [0]
    examples["ids"][:, 0] = RARE

    def counting(module, given, output):
        rare = isinstance(module, nn.Embedding) and (given[0] == RARE).any()
        return output * (1 + added(kept) % 2) if rare else output

    handle = nn.modules.module.register_module_forward_hook(counting)
    try:
        training = PrivateLoRA(adapted(Twice(), ["layer"]), next_word, probe={"ids": probe}, **PUBLIC)
        with pytest.raises(StageFailed, match="remember"):
            training.fit(examples)
    finally:
        handle.remove()
