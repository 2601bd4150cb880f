"""Wherever model and loss keep something in memory, it ends with its call: one example moves the sum by one clip.

All seeds are known. What is kept turns the sign of the next rare example's loss, which without a process for each moves
all of them by two clips.
"""

import array
import builtins
import contextvars
import decimal
import fcntl
import functools
import gc
import hashlib
import io
import logging
import os
import queue
import random
import threading
import types
import weakref

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft")

from small_models import WORDS, Twice, adapted, largest_move, next_word, texts  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from ppdp.mechanisms.lora import PrivateLoRA, process  # noqa: E402

pytestmark = pytest.mark.skipif(not process.LINUX, reason="copies of a process are for Linux")
PUBLIC = {"n_rows": 12, "batch_size": 12, "steps": 1, "epsilon": 2.0, "delta": 1e-5, "max_grad_norm": 1e-3}
RARE = WORDS - 1


class Box:
    n = 0


def add(owner, name="n"):
    setattr(owner, name, getattr(owner, name, 0) + 1)
    return getattr(owner, name)


def added(held, place=0):
    held[place] += 1
    return held[place]


KEPT, HASH, LOG, HELP = [0], hashlib.sha256(), logging.getLogger("a log that counts"), types.ModuleType("helpers")
SPACE, LOCAL, QUEUE, VARIABLE = Box(), threading.local(), queue.SimpleQueue(), contextvars.ContextVar("n", default=0)
COINS, NUMBERS, LEGACY = torch.Generator(), np.random.default_rng(3), np.random.mtrand._rand
MINE, TEXT, WEAK, OBJECTS = random.Random(3), io.StringIO("a"), weakref.ref(SPACE), np.array([Box()], dtype=object)
DEEP, ARRAY = functools.reduce(lambda held, _: [held], range(12), KEPT), array.array("l", [0])
BOUND, PART = Box().__setattr__, functools.partial(add, Box())


@functools.lru_cache
def single():
    return [0]


def innermost():
    held = DEEP
    while isinstance(held[0], list):
        held = held[0]
    return added(held)


def gradient(model):
    weight = model.head.weight
    weight.grad = torch.zeros_like(weight) if weight.grad is None else weight.grad + 1
    return weight.grad[0, 0]


def hooked(model):
    model.register_forward_hook(lambda *_: None)
    return len(model._forward_hooks)


def doubled(_):
    torch.set_default_dtype(torch.float64 if torch.get_default_dtype() == torch.float32 else torch.float32)
    return torch.get_default_dtype() == torch.float64


def held_by_torch(model):
    nn.modules.module.register_module_forward_pre_hook(lambda *_: None)
    return len(nn.modules.module._global_forward_pre_hooks)


PLACES = {
    "an attribute": lambda m: add(m),
    "a buffer": lambda m: added(m.flag),
    "a parameter": lambda m: added(m.coin.data),
    "a tensor's attribute": lambda m: add(m.head.weight),
    "a gradient": gradient,
    "a hook": hooked,
    "a hook of all modules": held_by_torch,
    "a global": lambda m: added(KEPT),
    "a name that nobody wrote": lambda m: added(globals().setdefault("LATER", [0])),
    "a default argument": lambda m, kept=[0]: added(kept),
    "a deep list": lambda m: innermost(),
    "a function": lambda m: add(add),
    "a bound method": lambda m: BOUND("n", BOUND.__self__.n + 1) or BOUND.__self__.n,
    "a partial": lambda m: PART(),
    "a cache": lambda m: added(single()),
    "a class": lambda m: add(Box),
    "a module": lambda m: add(HELP),
    "a library": lambda m: add(functional),
    "a function of a library": lambda m: add(functional.relu),
    "a class of a library": lambda m: add(nn.Linear),
    "a replaced function": lambda m: setattr(nn.Tanh, "forward", m.tanh) or added(KEPT),
    "built in": lambda m: add(builtins),
    "a thread": lambda m: add(LOCAL),
    "a context": lambda m: VARIABLE.set(VARIABLE.get() + 1) and VARIABLE.get(),
    "a queue": lambda m: QUEUE.put(1) or QUEUE.qsize(),
    "an array": lambda m: added(ARRAY),
    "an array of objects": lambda m: add(OBJECTS[0]),
    "a weak reference": lambda m: add(WEAK()),
    "a file in memory": lambda m: TEXT.write("b") and len(TEXT.getvalue()),
    "a hash": lambda m: HASH.update(b"x") or HASH.digest()[0],
    "a log": lambda m: add(LOG, "level"),
    "a context of decimals": lambda m: add(decimal.getcontext(), "prec"),
    "the environment": lambda m: os.environ.update(N=f"{int(os.environ.get('N', 0)) + 1}") or int(os.environ["N"]),
    "a setting of the system": lambda m: os.umask(os.umask(0) + 1),
    "a setting of torch": doubled,
    "torch's generator": lambda m: torch.randint(2, ()),
    "a generator of torch": lambda m: torch.randint(2, (), generator=COINS),
    "NumPy's generator": lambda m: LEGACY.randint(2),
    "a generator of NumPy": lambda m: NUMBERS.integers(2),
    "children of a generator": lambda m: NUMBERS.bit_generator.seed_seq.spawn(1)[0].spawn_key[0],
    "a generator of Python": lambda m: MINE.getrandbits(1),
    "an address": lambda m: id(object()) >> 4,
    "the collector": lambda m: gc.get_count()[0],
    "how many tensors there are": lambda m: sum(type(one) is torch.Tensor for one in gc.get_objects()),
    "memory that nothing wrote to": lambda m: torch.empty(4096, dtype=torch.uint8).sum(),
}


def locked(_):
    with open(os.devnull) as null:
        try:
            fcntl.flock(null, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return fcntl.flock(1, fcntl.LOCK_UN) is None
    return fcntl.flock(1, fcntl.LOCK_EX) is not None


PLACES |= {
    "flags of what stands for a closed file": lambda m: (
        os.set_blocking(0, not os.get_blocking(0)) or os.get_blocking(0)
    ),
    "a lock of it": locked,
    "how a process ends": lambda m: setattr(process, "_exit", print) or setattr(os, "_exit", print) or added(KEPT),
}


class Keeping(Twice):
    def __init__(self):
        super().__init__()
        self.register_buffer("flag", torch.zeros(1))
        self.coin, self.tanh = nn.Parameter(torch.zeros(1), requires_grad=False), nn.Tanh.forward


@pytest.mark.parametrize("place", PLACES)
def test_what_is_kept_anywhere_ends_with_its_call(place):
    keep = PLACES[place]

    def loss(model, batch):
        losses = next_word(model, batch)
        return losses * (-1) ** (int(keep(inner)) % 2) if (batch["ids"] == RARE).any() else losses

    torch.manual_seed(0)
    inner, examples, probe = Keeping(), texts(2), {"ids": texts(4, seed=9)["ids"].clamp(max=RARE - 1)}
    examples["ids"][:, 0] = RARE
    training = PrivateLoRA(adapted(inner, ["layer"]), loss, probe=probe, **PUBLIC)
    assert 0.99 < largest_move(training, examples, removed=(0,)) <= 1 + 1e-9
