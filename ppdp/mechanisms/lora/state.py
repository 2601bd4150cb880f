"""What a certified step may neither read nor change: modes, generators, attributes, buffers.

Where a gradient depends on an example's place in its batch, on a batch before it or on chance that others know, one
example less changes the gradients of all behind it: ``docs/theory/low-rank-training.md``, Statement 5.
"""

from __future__ import annotations

import gc
import hashlib
import io
import itertools
import operator
import os
import random
import sys
import types
import weakref
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.hooks import RemovableHandle

from ppdp.mechanisms.lora.layers import Layer, Tensor

Fingerprint = tuple[int, ...]

_LEGACY: Any = np.random.mtrand._rand  # NumPy's global generator
_PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device)
_DATA = (*_PLAIN, np.generic)
_HELD = (list, tuple, dict, set, frozenset, deque, Mapping)
_GENERATORS = (torch.Generator, np.random.Generator, np.random.RandomState, random.Random)
# Whose classes and functions keep nothing:
_OURS = {"ppdp", "torch", "peft", "transformers", "numpy"} | sys.stdlib_module_names
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_REGISTERED = ("_parameters", "_buffers", "_modules", "training")
_EXACT = 2**16  # entries of a tensor all of whose bits are compared
_NAMED = (type, types.FunctionType, types.BuiltinFunctionType)  # looked at where a function names them
_MOST = 10_000  # objects that are looked at behind a module
_CUDNN = ("enabled", "benchmark", "deterministic")
_DEEPEST = 20  # levels of new objects that are compared with old ones
_STDIO = (sys.stdin, sys.stdout, sys.stderr, sys.__stdin__, sys.__stdout__, sys.__stderr__)
_GLOBAL_HOOKS = ("_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks")


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """In this context every module is in evaluation mode, whatever its own ``train`` does; afterwards as it was.

    :class:`ValueError` if a module does not stay there.
    """
    training = [module for module in model.modules() if module.training]
    try:
        for module in training:
            module.training = False
        yield
        if any(module.training for module in model.modules()):
            raise ValueError("a module does not stay in evaluation mode")
    finally:
        for module in training:
            module.training = True


class Operations(TorchDispatchMode):
    """In this context, every operation of torch is looked at: whether it is random, and how precise."""

    def __init__(self) -> None:
        super().__init__()
        self.chance: set[str] = set()  # names of random operations
        self.coarse = False  # whether a number has less than 32 bits

    def __torch_dispatch__(self, operation: Any, _: Any, given: Any = (), named: Any = None) -> Any:
        answer = operation(*given, **(named or {}))
        if torch.Tag.nondeterministic_seeded in operation.tags and not _drops_nothing(operation, given, named or {}):
            self.chance.add(operation.name().removeprefix("aten::").split(".")[0])
        for one in answer if isinstance(answer, (tuple, list)) else (answer,):
            if isinstance(one, torch.Tensor) and one.is_floating_point() and one.element_size() < 4:
                self.coarse = True
        return answer


def _drops_nothing(operation: Any, given: Any, named: Any) -> bool:
    """Whether an operation that may drop entries drops them with probability 0, as attention does in evaluation."""
    arguments = operation._schema.arguments
    values = {one.name: one.default_value for one in arguments if one.has_default_value()}
    values |= dict(zip((one.name for one in arguments), given)) | named
    return bool(values.get("dropout_p") == 0)


def conditions(model: nn.Module) -> tuple[Any, ...]:
    """What a probe holds for: how precise the process is, the model's modules, and the hooks that stand around them."""
    hooks = [tuple(getattr(module, name) or ()) for module in model.modules() for name in _HOOKS]
    hooks += [tuple(getattr(nn.modules.module, name, ())) for name in _GLOBAL_HOOKS]
    return arithmetic(), *((id(module), type(module)) for module in model.modules()), *hooks


def arithmetic() -> tuple[Any, ...]:
    """Settings of the process that decide how precise a step is: those in force that make float32 less than float32."""
    coarse = [f"autocast on {kind}" for kind in ("cpu", "cuda") if torch.is_autocast_enabled(kind)]
    with suppress(RuntimeError):  # where settings of each backend were made, torch does not sum them up
        coarse += [] if torch.get_float32_matmul_precision() == "highest" else ["matmul"]
    backends = torch.backends
    matmul = getattr(backends.mkldnn, "matmul", None)
    places = {"all": backends, "cuda": backends.cuda.matmul, "mkldnn": backends.mkldnn, "mkldnn.matmul": matmul}
    for name, place in places.items():
        if getattr(place, "fp32_precision", "none") not in ("none", "ieee"):
            coarse.append(name)
    return (*coarse, *(["cuda"] if getattr(backends.cuda.matmul, "allow_tf32", False) else []))


def generators() -> list[bytes]:
    """The states of all global generators: Python's, NumPy's, torch's on every device."""
    states = [repr(random.getstate()).encode(), repr(_whole(_LEGACY.get_state(legacy=False))).encode()]
    devices = list(torch.cuda.default_generators) if torch.cuda.is_initialized() else []
    return [*states, *(one.get_state().numpy().tobytes() for one in (torch.default_generator, *devices))]


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """In this context the global generators of the processor begin with this seed; afterwards they are as they were."""
    before = random.getstate(), _LEGACY.get_state(legacy=False), torch.get_rng_state()
    try:
        random.seed(seed)
        _LEGACY.seed([seed >> 32, seed & 0xFFFFFFFF])
        torch.default_generator.manual_seed(seed)
        yield
    finally:
        random.setstate(before[0])
        _LEGACY.set_state(before[1])
        torch.set_rng_state(before[2])


def has_generator(thing: Any) -> bool:
    """Whether a dataset has a generator of its own: in what it holds, or in what its methods name."""
    known = {id(random._inst), id(_LEGACY), id(torch.default_generator)}
    pending, seen = deque([thing]), dict[int, Any]()
    while pending and len(seen) < _MOST:
        one = pending.popleft()
        if isinstance(one, _GENERATORS) and id(one) not in known:
            return True
        if type(one) not in _PLAIN and id(one) not in seen:
            seen[id(one)] = one
            pending.extend(_behind(one))
    return False


class State:
    """Everything that a model and a loss could remember between calls.

    Parameters and buffers, which modules and tensors have which names, attributes of modules, tensors and classes,
    closures, defaults, globals that are named in a forward pass or loss, what all of them hold, and the global
    generators.
    """

    def __init__(self, model: nn.Module, loss: Any) -> None:
        self._model, self._loss = model, loss
        self._process: dict[str, Any] = {}
        self._held: dict[int, tuple[str, Any, list[Any]]] = {}  # a name, the thing itself, and what it held

    def look(self) -> None:
        """Remember how all of it is now."""
        self._process, self._held, model = _process(), {}, self._model
        for name, one in [*model.named_modules(), *model.named_parameters(), *model.named_buffers()]:
            self._held[id(one)] = (name or "the model", one, _content(one))
        for name, _, content in list(self._held.values()):
            self._reach(name, content)
        self._reach("the loss", [self._loss])

    def changed(self) -> list[str]:
        """Names of what is not as it was at the last look."""
        now = _process() if self._process else {}
        found = {name for name, before in self._process.items() if now[name] != before}
        for name, one, before in self._held.values():
            if not self._same(before, after := _content(one)):
                pairs = zip(before[1:], after[1:], before)
                keys = (
                    key
                    for old, new, key in pairs
                    if not self._same([old], [new]) and isinstance(key, str) and key.isidentifier()
                )
                found.add(f"{name}.{key}" if (key := next(keys, "")) else name)
        return sorted(found)

    def _reach(self, name: str, content: list[Any]) -> None:
        """Remember what can be reached from there, and was not before."""
        pending, count = deque(content), 0
        while pending and count < _MOST:
            one = pending.popleft()
            if type(one) not in _PLAIN and id(one) not in self._held:
                count += 1
                self._held[id(one)] = (name, one, held := _content(one))
                pending.extend(held)

    def _same(self, before: list[Any], now: list[Any], depth: int = 0) -> bool:
        if len(before) != len(now):
            return False
        if all(map(operator.is_, before, now)):  # mostly
            return True
        return all(one is other or self._equal(one, other, depth) for one, other in zip(before, now))

    def _equal(self, one: Any, other: Any, depth: int) -> bool:
        """Whether a plain thing stands for its like, or a new one for another that held the same."""
        if type(one) is not type(other) or depth > _DEEPEST:
            return False
        if not gc.is_tracked(other) and not isinstance(other, np.ndarray):  # holds no others: numbers, words, dates
            return repr(one) == repr(other)
        if id(other) in self._held:
            return False
        _, _, before = self._held.get(id(one), ("", one, None))
        return self._same(_content(one) if before is None else before, _content(other), depth + 1)


def _process() -> dict[str, Any]:
    settings = [arithmetic(), torch.get_default_dtype(), torch.get_num_threads(), torch.is_anomaly_enabled()]
    settings += [torch.get_deterministic_debug_mode(), *(getattr(torch.backends.cudnn, name) for name in _CUDNN)]
    return {"a global random generator": generators(), "a setting of torch": settings}


def _content(one: Any) -> list[Any]:
    """What a thing holds: its kind, its own bytes, and other things."""
    if type(one) in (dict, OrderedDict):  # hooks of modules, thousands of them
        return [type(one), *itertools.chain.from_iterable(one.items()), *getattr(one, "__dict__", {}).items()]
    return [type(one), _own(one), *_behind(one)]


def _own(one: Any) -> bytes:
    """What a thing holds itself, as bytes."""
    if isinstance(one, torch.Tensor):
        return _bits(one)
    if isinstance(one, np.ndarray) and not one.dtype.hasobject:
        return repr((one.shape, one.dtype)).encode() + one.tobytes()
    if isinstance(one, _DATA):
        plain = next((kind for kind in _PLAIN if isinstance(one, kind)), type(one))
        return bytes(plain.__repr__(one).encode())  # type: ignore[call-arg]  # the words of a plain one
    if isinstance(one, _GENERATORS):
        return _generator(one)
    if isinstance(one, (type, types.ModuleType)):
        return one.__name__.encode()
    if isinstance(one, io.IOBase):
        with suppress(Exception):  # a pipe, or closed
            return b"" if one in _STDIO else str(one.tell()).encode()
    elif isinstance(one, Iterator):
        return os.urandom(16)  # nobody can see how far it is: as good as changed
    with suppress(TypeError, BufferError, ValueError):
        return memoryview(one).tobytes()  # bytearrays and arrays of other libraries
    return b""


def _behind(one: Any) -> Iterator[Any]:
    """What an object holds."""
    if isinstance(one, State) or one is RemovableHandle:  # of a training that a loss may know; counts hooks, ours too
        return
    if isinstance(one, types.ModuleType):
        held = list(vars(one).items())
        if _may_keep(one):
            yield from (value for _, value in held if not isinstance(value, (*_NAMED, types.ModuleType, Iterator)))
        else:
            yield from (value for name, value in held if type(value) in _PLAIN and not name.startswith("_"))
        return
    if isinstance(one, type):
        whole = _may_keep(one)
        yield from (held for held in list(vars(one).values()) if whole or type(held) in _PLAIN)
        yield from (*one.__bases__, type(one)) if whole else one.__bases__
        return
    if isinstance(one, types.FunctionType):
        yield from _function(one)
        return
    if isinstance(one, Mapping):
        yield from itertools.chain.from_iterable(list(one.items()))
    elif isinstance(one, (set, frozenset)):
        yield from sorted(repr(other) for other in one if isinstance(other, _DATA))
        yield from sorted((other for other in one if not isinstance(other, _DATA)), key=id)
    elif isinstance(one, (list, tuple, deque)):
        yield len(one)
        yield from itertools.islice(list(one), _MOST)
    elif isinstance(one, np.ndarray):
        yield from one.ravel().tolist() if one.dtype.hasobject else ()
    elif isinstance(one, ContextVar):
        yield one.get(None)
    elif isinstance(one, weakref.ref):
        yield one()
    elif isinstance(one, (types.BuiltinMethodType, types.MethodWrapperType)):
        yield from (one.__self__, one.__name__)
    yield from _attributes(one)
    if not isinstance(one, (*_HELD, *_DATA, torch.Tensor, np.ndarray, *_GENERATORS, Iterator)):
        yield from gc.get_referents(one)  # what is written in C: methods, partials, caches, queues
    yield type(one)
    if callable(one) and not isinstance(one, (types.MethodType, nn.Module)):
        yield type(one).__call__


def _attributes(one: Any) -> Iterator[Any]:
    """Of an object that is no class: what stands in its slots, among its attributes, and a tensor's gradient."""
    slots = (name for owner in type(one).__mro__ for name in getattr(owner, "__slots__", ()) if name != "__dict__")
    yield from (getattr(one, name, None) for name in slots if name != "__weakref__")
    yield from itertools.chain.from_iterable(list(getattr(one, "__dict__", {}).items()))
    if isinstance(one, torch.Tensor) and one.is_leaf and one.grad is not None:
        yield one.grad


def _function(one: types.FunctionType) -> Iterator[Any]:
    """What a function remembers: closure, defaults, attributes, and the globals that it names."""
    yield id(one.__code__)
    yield from (one.__defaults__, one.__kwdefaults__, vars(one))
    for cell in one.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # still empty
            yield None
    if _package(one.__module__) not in _OURS:
        yield from _named(one)


def _named(one: types.FunctionType) -> Iterator[Any]:
    """Globals that a function names, and what has such a name in a module among them; of a library, what is data."""
    names = sorted(set(_names(one.__code__)))
    pending, seen = [(one.__globals__, True)], set[int]()
    while pending:
        owner, own = pending.pop()
        seen.add(id(owner))
        for value in [owner[name] for name in names if name in owner]:
            if (own and _may_keep(value)) or isinstance(value, (type, types.ModuleType, *_PLAIN, *_HELD)):
                yield value
            elif isinstance(value, types.FunctionType):
                yield from (held for held in vars(value).values() if type(held) in _PLAIN)
            if isinstance(value, types.ModuleType) and id(vars(value)) not in seen:
                pending.append((vars(value), _may_keep(value)))


def _may_keep(value: Any) -> bool:
    """Whether something that a function names may hold what it writes: no library's modules, classes and functions."""
    if isinstance(value, types.ModuleType):
        return _package(value.__name__) not in _OURS and "site-packages" not in str(getattr(value, "__file__", ""))
    return not isinstance(value, _NAMED) or _package(value.__module__) not in _OURS


def _package(module: Any) -> str:
    return str(module).split(".")[0]


def _names(code: types.CodeType) -> Iterator[str]:
    """Names that a function or what is written inside it takes from elsewhere."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _names(inner)
        elif isinstance(inner, str) and inner.isidentifier():
            yield inner


def _generator(one: Any) -> bytes:
    if isinstance(one, torch.Generator):
        return bytes(one.get_state().numpy().tobytes())
    if isinstance(one, random.Random):
        return b"" if isinstance(one, random.SystemRandom) else repr(one.getstate()).encode()
    state = one.bit_generator.state if isinstance(one, np.random.Generator) else one.get_state(legacy=False)
    return repr(_whole(state)).encode()


def _whole(state: Any) -> Any:
    """A generator's state with all of its numbers, which NumPy's own words leave out."""
    if isinstance(state, dict):
        return {name: _whole(value) for name, value in state.items()}
    return state.tobytes() if isinstance(state, np.ndarray) else state


def _bits(one: Tensor) -> bytes:
    """Of a tensor, every bit if it is of ordinary size, else a sum of them; how they lie, and whether it is learned."""
    strides = one.stride() if one.layout == torch.strided else None
    about = repr((tuple(one.shape), strides, one.dtype, one.requires_grad)).encode()
    flat = one.detach()
    if flat.is_meta or flat.layout != torch.strided or flat.is_quantized:
        return about + str(id(one)).encode()
    if flat.numel() > _EXACT:
        return about + repr((_sum(flat), flat.data_ptr(), one._version)).encode()
    whole = flat.contiguous().reshape(-1).view(torch.uint8)
    return about + hashlib.blake2b(whole.cpu().numpy(), digest_size=16).digest()


def _sum(flat: Tensor) -> int:
    """The sum of all bits, in the largest words into which they can be cut."""
    words = flat.contiguous().reshape(-1).view(torch.uint8)
    kind = {0: torch.int64, 4: torch.int32}.get(words.numel() % 8, torch.uint8)
    return int(words.view(kind).sum(dtype=torch.int64))


def fingerprint(tensors: Iterable[Tensor]) -> Fingerprint:
    """Two numbers for every tensor, which change with any of its bits that changes alone, and with the order."""
    whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    flat = (one.detach().reshape(-1) for one in tensors)
    return tuple(sum_ for one in flat for sum_ in _sums(one.view(whole.get(one.element_size(), torch.uint8))))


def _sums(whole: Tensor) -> tuple[int, int]:
    """Of whole numbers in rows: sums over columns and over rows, each column and each row with a weight of its own."""
    width = min(4096, max(len(whole), 1))
    rows = functional.pad(whole, (0, -len(whole) % width)).view(-1, width)
    sums = (rows.sum(axis, dtype=torch.int64) for axis in (0, 1))
    first, second = (int((one * (2 * torch.arange(len(one), device=one.device) + 1)).sum()) for one in sums)
    return first, second


def others(model: nn.Module, layers: tuple[Layer, ...]) -> list[Tensor]:
    """Parameters and buffers that training leaves as they are."""
    trained = {id(layer.trained) for layer in layers}
    return [one for one in itertools.chain(model.parameters(), model.buffers()) if id(one) not in trained]
