"""What is compared of model and loss after each call: the places in ``docs/theory/low-rank-training.md``.

A guard against common mistakes: that they keep nothing is declared. Where a gradient depends on an example's place in
its batch, on a batch before it or on chance that others know, one example less changes the gradients of all behind it
(Statement 5).
"""

from __future__ import annotations

import builtins
import functools
import gc
import hashlib
import io
import itertools
import logging
import mmap
import operator
import os
import random
import sys
import sysconfig
import types
import weakref
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from ppdp.mechanisms.lora.conditions import GLOBAL_HOOKS, LEGACY, arithmetic, generators, whole_state
from ppdp.mechanisms.lora.layers import Tensor

_PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device)
_DATA = (*_PLAIN, np.generic)
_FLOATS = (float, complex, np.inexact)  # of which some are no numbers, and have bits beside that word
_NOT_BEHIND = {*_PLAIN, types.CodeType}
_HELD = (list, tuple, dict, set, frozenset, deque, Mapping)
_NUMPY = (np.random.Generator, np.random.BitGenerator, np.random.SeedSequence, np.random.RandomState)
_GENERATORS = (torch.Generator, random.Random, *_NUMPY)
# Whose classes and functions keep nothing:
_STANDARD = sysconfig.get_path("stdlib")
_OURS = {"ppdp", "torch", "peft", "transformers", "numpy"} | sys.stdlib_module_names
_EXACT = 2**16  # entries of a tensor all of whose bits are compared
_NAMED = (type, types.FunctionType, types.BuiltinFunctionType)  # looked at where a function names them
_MOST = 10_000  # objects that are looked at behind a module
_CUDNN = ("enabled", "benchmark", "deterministic")
_DEEPEST = 20  # levels of new objects that are compared with old ones
_IN_MEMORY = (io.BytesIO, io.StringIO)
_RESUMED = (Iterator, AsyncIterator, Coroutine)  # go on from where they are
_BUILT_IN = vars(builtins)
_ABSENT = object()  # where nothing is, which is something else than None
_OF_LOGGERS = ("_cache", "manager", "handlers")  # which ppdp's own lines of the log change as well
HOOKS, CHANCE = "a hook of all modules", "a global random generator"
_STDIO = (sys.stdin, sys.stdout, sys.stderr, sys.__stdin__, sys.__stdout__, sys.__stderr__)


class State:
    """Things of a model, a loss and the process as they are at a look, and which of them are others later."""

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
        self._reach(HOOKS, [getattr(nn.modules.module, name, None) for name in GLOBAL_HOOKS])
        self._reach(CHANCE, [LEGACY])

    def places(self) -> list[str]:
        """What kinds of things are not as they were: no names, which may be words of an example."""
        public = {"the loss", HOOKS, *self._process}
        return sorted({name if name in public else "the model" for name in self.changed()})

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
            if type(one) not in _NOT_BEHIND and id(one) not in self._held:
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
        if isinstance(other, _DATA):
            return _own(one) == _own(other)
        if not gc.is_tracked(other) and not isinstance(other, (np.ndarray, *_HELD)):  # holds no others: dates, ranges
            return repr(one) == repr(other)
        if id(other) in self._held:
            return False
        _, _, before = self._held.get(id(one), ("", one, None))
        return self._same(_content(one) if before is None else before, _content(other), depth + 1)


def _process() -> dict[str, Any]:
    settings = [arithmetic(), torch.get_default_dtype(), torch.get_num_threads(), torch.is_anomaly_enabled()]
    settings += [torch.get_deterministic_debug_mode(), *(getattr(torch.backends.cudnn, name) for name in _CUDNN)]
    return {CHANCE: generators(), "a setting of torch": settings}


def _content(one: Any) -> list[Any]:
    """What a thing holds: its kind, its own bytes, and other things."""
    if type(one) in (dict, OrderedDict):  # hooks of modules, thousands of them
        return [type(one), *itertools.chain.from_iterable(one.items()), *getattr(one, "__dict__", {}).items()]
    return [type(one), _own(one), *_behind(one)]


def _own(one: Any) -> bytes:
    """What a thing holds itself, as bytes."""
    if isinstance(one, torch.Tensor):
        return _bits(one)
    if isinstance(one, np.ndarray):
        about = repr((one.shape, one.strides, one.dtype, one.flags.num)).encode()
        return about if one.dtype.hasobject else about + one.tobytes()
    if isinstance(one, _DATA):
        plain = next((kind for kind in _PLAIN if isinstance(one, kind)), type(one))
        words = bytes(plain.__repr__(one).encode())  # type: ignore[call-arg]  # of a plain one
        return words + (np.asarray(one).tobytes() if isinstance(one, _FLOATS) and np.isnan(one) else b"")
    if isinstance(one, _GENERATORS):
        return _generator(one)
    if isinstance(one, (type, types.ModuleType)):
        return repr((one.__name__, one.__qualname__ if isinstance(one, type) else "")).encode()
    if isinstance(one, mmap.mmap) and not one.closed:
        return str(one.tell()).encode() + one[:]
    if isinstance(one, _IN_MEMORY) and not one.closed:
        return repr((one.tell(), one.getvalue())).encode(errors="surrogatepass")
    if isinstance(one, io.IOBase):
        with suppress(Exception):  # a pipe, or closed
            return b"" if one in _STDIO else str(one.tell()).encode()
    elif isinstance(one, _RESUMED):
        return os.urandom(16)  # nobody can see how far it is: as good as changed
    with suppress(TypeError, BufferError, ValueError):
        return memoryview(one).tobytes()  # bytearrays and arrays of other libraries
    return b""


def _behind(one: Any) -> Iterator[Any]:
    """What an object holds."""
    if one is RemovableHandle:  # counts hooks, ours too
        return
    if isinstance(one, types.ModuleType):
        held = list(vars(one).items())
        if _may_keep(one):
            held = [pair for pair in held if not isinstance(pair[1], (*_NAMED, types.ModuleType, Iterator))]
            yield from itertools.chain.from_iterable(held)
        else:
            yield from (value for name, value in held if type(value) in _PLAIN and not name.startswith("_"))
        return
    if isinstance(one, type):
        whole = _may_keep(one)
        held = [
            pair for pair in list(vars(one).items()) if whole or isinstance(pair[1], _DATA) or _is_put_there(pair[1])
        ]
        yield from itertools.chain.from_iterable(held)
        yield from (*one.__bases__, type(one)) if whole else one.__bases__
        return
    if isinstance(one, types.FunctionType):
        yield from _function(one)
        return
    if isinstance(one, logging.Logger):
        yield from itertools.chain.from_iterable(pair for pair in vars(one).items() if pair[0] not in _OF_LOGGERS)
        return
    if isinstance(one, Mapping):
        yield from itertools.chain.from_iterable(list(one.items()))
    elif isinstance(one, (set, frozenset)):
        yield from list(one)
    elif isinstance(one, (list, tuple, deque)):
        yield len(one)
        yield from itertools.islice(list(one), _MOST)
    elif isinstance(one, np.ndarray):
        yield from (one.base, *(one.ravel().tolist() if one.dtype.hasobject else ()))
    elif isinstance(one, _NUMPY):
        yield from (getattr(one, name, None) for name in ("bit_generator", "_bit_generator", "seed_seq"))
    elif isinstance(one, torch.jit.ScriptModule):
        yield from (getattr(one, name) for name in one._concrete_type.get_attributes())
    elif isinstance(one, ContextVar):
        yield one.get(_ABSENT)
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
    """Of an object that is no class: what stands in its slots and attributes, a tensor's gradient and hooks."""
    yield from (_in_slot(one, slot) for slot in _slots(type(one)))  # type: ignore[arg-type]  # which is hashable
    yield from itertools.chain.from_iterable(list(getattr(one, "__dict__", {}).items()))
    if isinstance(one, torch.Tensor):
        yield from (one._backward_hooks, getattr(one, "_post_accumulate_grad_hooks", None))
        if one._is_view() and not one.is_inference():
            yield one._base
        if (one.is_leaf or one.retains_grad) and one.grad is not None:
            yield one.grad


@functools.lru_cache
def _slots(kind: type) -> list[types.MemberDescriptorType]:
    """Also those of other names, and what classes in C show like that."""
    held = (held for owner in kind.__mro__ for held in vars(owner).values())
    return [slot for slot in held if isinstance(slot, types.MemberDescriptorType)]


def _in_slot(one: Any, slot: types.MemberDescriptorType) -> Any:
    try:
        return slot.__get__(one)
    except AttributeError:
        return _ABSENT


def _function(one: types.FunctionType) -> Iterator[Any]:
    """What a function remembers: closure, defaults, names, words, attributes, and the globals that it names."""
    yield from (one.__code__, vars(one))  # which makes its attributes, if there are none
    held = (held for held in gc.get_referents(one) if not isinstance(held, types.CodeType))
    yield from (held for held in held if held is not one.__globals__ and held is not _BUILT_IN)
    if not _is_library(one.__globals__.get("__name__")):
        yield from _named(one)


def _named(one: types.FunctionType) -> Iterator[Any]:
    """Globals that a function names, and what has such a name in a module among them; of a library, what is data."""
    names = sorted(set(_names(one.__code__)))
    yield from (_BUILT_IN[name] for name in names if name in _BUILT_IN and _may_keep(_BUILT_IN[name]))
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
        return not _is_library(value.__name__) and "site-packages" not in str(getattr(value, "__file__", ""))
    if isinstance(value, types.FunctionType):  # where it was written, and whose it says to be: a wrap may be of either
        return not (_is_library(value.__globals__.get("__name__")) and _is_library(value.__module__))
    return not isinstance(value, _NAMED) or not _is_library(value.__module__)


def _is_put_there(value: Any) -> bool:
    """Whether something in a library's class is a function of somebody else, or a method or property made of one."""
    if isinstance(value, (staticmethod, classmethod, property, functools.partialmethod)):
        inner = (getattr(value, name, None) for name in ("__func__", "func", "fget", "fset", "fdel"))
        return any(map(_is_put_there, inner))
    return isinstance(value, types.FunctionType) and _may_keep(value)


def _is_library(module: Any) -> bool:
    """Whether a module of this name is of Python or a library, and no file of a user's that is called so."""
    return _is_package_of_library(str(module).split(".")[0])


@functools.lru_cache
def _is_package_of_library(package: str) -> bool:
    file = getattr(sys.modules.get(package), "__file__", None) if package in sys.stdlib_module_names else None
    return package in _OURS and (not file or file.startswith(_STANDARD))


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
    if isinstance(one, np.random.Generator):  # holds bits, which hold a seed
        return b""
    state = one.get_state(legacy=False) if isinstance(one, np.random.RandomState) else one.state
    return repr(whole_state(state)).encode()


def _bits(one: Tensor) -> bytes:
    """Of a tensor, every bit if it is of ordinary size, else a sum of them; how they lie, and whether it is learned."""
    strides = (one.stride(), one.storage_offset()) if one.layout == torch.strided else None
    about = repr((tuple(one.shape), strides, one.dtype, one.requires_grad, one.is_inference(), one._is_view())).encode()
    flat = one.detach()
    if flat.is_meta or flat.layout != torch.strided or flat.is_quantized:
        return about + str(id(one)).encode()
    if flat.numel() > _EXACT:
        return about + repr((_sum(flat), flat.data_ptr(), 0 if one.is_inference() else one._version)).encode()
    whole = flat.clone(memory_format=torch.contiguous_format).reshape(-1).view(torch.uint8)
    return about + hashlib.blake2b(whole.cpu().numpy(), digest_size=16).digest()


def _sum(flat: Tensor) -> int:
    """The sum of all bits, in the largest words into which they can be cut."""
    words = flat.contiguous().reshape(-1).view(torch.uint8)
    kind = {0: torch.int64, 4: torch.int32}.get(words.numel() % 8, torch.uint8)
    return int(words.view(kind).sum(dtype=torch.int64))
