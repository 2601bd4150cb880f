"""What is compared of model and loss behind each call that has no process: a guard, for Python can promise nothing."""

from __future__ import annotations

import functools
import gc
import io
import itertools
import logging
import os
import random
import sys
import types
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from ppdp.mechanisms.lora.conditions import GLOBAL_HOOKS, LEGACY, fingerprint, generators, whole_state
from ppdp.mechanisms.lora.layers import Tensor

_PLAIN = (bool, int, float, complex, str, bytes, bytearray, type(None), np.generic, torch.dtype, torch.device)
_LIBRARIES = {"ppdp", "torch", "peft", "transformers", "numpy"} | sys.stdlib_module_names
# Entries of a tensor all of whose bits are compared; objects behind a module; levels of new objects:
_EXACT, _MOST, _DEEPEST = 2**16, 10_000, 20
HOOKS, CHANCE = "a hook of all modules", "a global random generator"


class State:
    """Things of a model and a loss as they are at a look, and which of them are others later."""

    def __init__(self, model: nn.Module, loss: Any) -> None:
        self._model, self._loss = model, loss
        self._chance: list[bytes] = []
        self._held: dict[int, tuple[str, Any, list[Any]]] = {}  # a name, the thing itself, and what it held

    def look(self) -> None:
        """Remember how all of it is now."""
        self._chance, self._held = generators(), {}
        for name, one in self._model.named_modules():
            self._reach(name or "the model", [one])
        self._reach("the loss", [self._loss])
        self._reach(HOOKS, [getattr(nn.modules.module, name, None) for name in GLOBAL_HOOKS])
        self._reach(CHANCE, [LEGACY])

    def places(self) -> list[str]:
        """What kinds of things are not as they were: no names, which may be words of an example."""
        return sorted({name if name in ("the loss", HOOKS, CHANCE) else "the model" for name in self.changed()})

    def changed(self) -> list[str]:
        """Names of what is not as it was at the last look."""
        found = {CHANCE} if self._chance and self._chance != generators() else set()
        return sorted(found | {name for name, one, before in self._held.values() if not self._same(before, one)})

    def _reach(self, name: str, pending: list[Any]) -> None:
        """Remember what can be reached from there, and was not before."""
        count = 0
        while pending and count < _MOST:
            one = pending.pop()
            if not isinstance(one, _PLAIN) and id(one) not in self._held:
                count += 1
                self._held[id(one)] = (name, one, held := _content(one))
                pending.extend(held[2:])

    def _same(self, before: list[Any], one: Any, depth: int = 0) -> bool:
        now = _content(one)
        same = [len(before), *before[:2]] == [len(now), *now[:2]]
        return same and all(old is new or self._equal(old, new, depth) for old, new in zip(before[2:], now[2:]))

    def _equal(self, old: Any, new: Any, depth: int) -> bool:
        """Whether a plain thing stands for its like, or a new one for another that held the same."""
        if depth > _DEEPEST or (id(new) in self._held and not isinstance(new, _PLAIN)):
            return False
        _, _, before = self._held.get(id(old), ("", old, None))
        return self._same(_content(old) if before is None else before, new, depth + 1)


def _content(one: Any) -> list[Any]:
    return [type(one), _own(one), *_behind(one)]


def _own(one: Any) -> bytes:
    if isinstance(one, torch.Tensor):
        return _bits(one)
    if isinstance(one, np.ndarray):
        return repr((one.shape, one.dtype)).encode() + one.tobytes()
    if isinstance(one, _PLAIN):
        return repr(one).encode()
    if isinstance(one, torch.Generator):
        return bytes(one.get_state().numpy().tobytes())
    if isinstance(one, random.Random) and not isinstance(one, random.SystemRandom):
        return repr(one.getstate()).encode()
    if isinstance(one, (np.random.RandomState, np.random.BitGenerator, np.random.SeedSequence)):
        state = one.get_state(legacy=False) if isinstance(one, np.random.RandomState) else one.state
        return repr(whole_state(state)).encode()
    hidden = isinstance(one, Iterator) and not isinstance(one, io.IOBase)  # how far it is: as good as changed
    return os.urandom(16) if hidden else b""


def _behind(one: Any) -> Iterator[Any]:
    """Other things that an object holds."""
    if isinstance(one, Mapping):
        yield from itertools.chain.from_iterable(list(one.items()))
    elif isinstance(one, (list, tuple, set, frozenset, deque)):
        yield from list(one)
    elif isinstance(one, torch.Tensor):
        yield from (one._backward_hooks, one.grad if one.is_leaf or one.retains_grad else None)
    elif isinstance(one, np.random.Generator):
        yield one.bit_generator
    elif isinstance(one, types.MethodType):
        yield from (one.__self__, one.__func__)
    elif isinstance(one, functools.partial):
        yield from (one.func, one.args, one.keywords)
    if isinstance(one, types.FunctionType):
        yield from (one.__defaults__, one.__kwdefaults__, vars(one), *gc.get_referents(*one.__closure__ or ()))
        names = sorted(_names(one.__code__)) if _is_users(one) else ()
        yield from (one.__globals__[name] for name in names if name in one.__globals__)
    elif isinstance(one, (type, types.ModuleType)):
        kept = vars(one).items() if _is_users(one) else ()
        yield from (value for name, value in list(kept) if not name.startswith("__") or name == "__call__")
    elif not isinstance(one, (logging.Logger, types.BuiltinFunctionType)):  # ppdp writes into logs as well
        yield from itertools.chain.from_iterable(list(getattr(one, "__dict__", {}).items()))
        yield type(one)


def _names(code: types.CodeType) -> set[str]:
    """Names that a function or what is written inside it takes from elsewhere."""
    inner = (_names(one) for one in code.co_consts if isinstance(one, types.CodeType))
    return set(code.co_names).union(*inner)


def _is_users(one: Any) -> bool:
    """Whether a function, class or module is of neither Python nor a library, whose own state is not looked at."""
    module = one if isinstance(one, types.ModuleType) else sys.modules.get(one.__module__)
    package = str(getattr(module, "__name__", "")).split(".")[0]
    return package not in _LIBRARIES and "site-packages" not in str(getattr(module, "__file__", ""))


def _bits(one: Tensor) -> bytes:
    """Of a tensor every bit, if it is of ordinary size, else a sum of them; and whether it is learned."""
    about = repr((tuple(one.shape), one.dtype, one.requires_grad)).encode()
    if one.is_meta or one.layout != torch.strided or one.is_quantized:
        return about + str(id(one)).encode()
    flat = one.detach().contiguous().reshape(-1)
    if flat.numel() > _EXACT:
        return about + repr((fingerprint([flat]), 0 if one.is_inference() else one._version)).encode()
    return about + flat.view(torch.uint8).cpu().numpy().tobytes()
