"""What a user's function holds on to: it leaves with the function, and may have been read off private rows.

Looked at are closures, default arguments, arguments of partials, owners of methods, attributes of objects that are
called, wrapped functions, containers, and the global names that the code mentions, all of them again for every function
that is found on the way. Nothing is called, and no value is read: only what kind of thing stands there.
"""

from __future__ import annotations

import dis
import numbers
import re
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, time, timedelta
from functools import partial
from logging import Logger
from types import (
    CellType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, NamedTuple

import numpy as np

from ppdp.exceptions import InvalidParameter

MOST = 1000  # objects that are looked at
LIBRARIES = sys.stdlib_module_names | {"numpy", "scipy", "sklearn", "pandas", "polars", "pyarrow", "ppdp"}
"""Modules whose own functions keep nothing of a user's rows."""
OUTSIDE = {
    "__import__",
    "eval",
    "exec",
    "getattr",
    "globals",
    "import_module",
    "load",
    "loads",
    "locals",
    "open",
    "vars",
}
"""Names by which code reaches what is written nowhere in it."""
READS = "read_", "fetch_", "load_"
FITTED = "fit", "predict", "transform", "inverse_transform"
TABLES = "__array__", "__array_interface__", "__dataframe__", "__arrow_c_stream__", "__arrow_c_array__", "nnz"
PLAIN = bool, str, slice, np.dtype, re.Pattern, Logger
VALUES = numbers.Number, bytes, bytearray, memoryview, date, time, timedelta
SHAPES = {"axis", "ddof", "decimals"}
"""Arguments that say how something is computed, and are whole numbers that nobody reads off rows."""
PAIRS = ("func", "kw_args"), ("inverse_func", "inv_kw_args"), ("function", "keywords")
"""Under which names an object has a function, and the arguments with which it is called."""


class Held(NamedTuple):
    """What was found."""

    estimator: Any | None  # the first estimator, or anything else that is fitted
    values: tuple[str, ...]  # names of numbers, labels or tables that do not stand in the code itself
    unseen: tuple[str, ...]  # what cannot be looked into, or changes from call to call, in words
    names: frozenset[str]  # that its code mentions


class _Unseen(NamedTuple):
    """Something that nobody can look into."""

    why: str


_VALUES = object()  # stands for numbers, labels or a table
Found = Iterator[tuple[str, Any]]


def held_by(function: Any) -> Held:
    """Everything that a user's function holds on to; give ``partial(function, **keywords)`` to look at these, too."""
    waiting: deque[tuple[str, Any]] = deque([("", function)])
    seen: dict[int, Any] = {}
    values: dict[str, None] = {}
    unseen: dict[str, None] = {}
    names: set[str] = set()
    while waiting:
        name, one = waiting.popleft()
        if len(seen) >= MOST:
            unseen["more than can be looked through"] = None
            break
        if id(one) in seen:
            continue
        seen[id(one)] = one  # and so no other object gets its id
        if _is_fitted(one):
            return Held(one, tuple(values), tuple(unseen), frozenset(names))
        if isinstance(one, FunctionType) and not of_library(one):
            names.update(*(code.co_names for code in _codes(one.__code__)))
        for inner, found in _readable_parts(name, one):
            if found is _VALUES:
                values[inner or "numbers"] = None
            elif isinstance(found, _Unseen):
                unseen[found.why] = None
            else:
                waiting.append((inner, found))
    return Held(None, tuple(values), tuple(unseen), frozenset(names))


def _is_fitted(one: Any) -> bool:
    """Whether it is an estimator, of whatever library; a table also has a ``transform``, and is none."""
    kind = type(one)
    if isinstance(one, type | ModuleType):
        return False
    methods = (getattr(kind, word, None) for word in FITTED)
    return hasattr(kind, "get_params") or (not _is_table(one) and any(map(callable, methods)))


def _is_table(one: Any) -> bool:
    return any(hasattr(type(one), word) for word in TABLES)


def _readable_parts(name: str, one: Any) -> Sequence[tuple[str, Any]]:
    try:
        return list(_parts(name, one))
    except Exception:  # somebody else's class may raise anything
        return [(name, _Unseen(f"a {type(one).__name__}, which cannot be read"))]


def _parts(name: str, one: Any) -> Found:
    """What stands in one object, each under the name by which a user knows it."""
    if one is None or one is Ellipsis or isinstance(one, PLAIN):
        return
    if isinstance(one, type | ModuleType) or of_library(one):
        yield from _of_class(name, one)
    elif isinstance(one, np.ndarray) and one.dtype == object:
        yield from _of_container(name, one.ravel().tolist())
    elif isinstance(one, VALUES) or _is_table(one):
        if not (name in SHAPES and type(one) is int):
            yield name, _VALUES
    elif isinstance(one, Mapping):
        yield from _of_container(name, [*one.keys(), *one.values()], mutable=True)
    elif isinstance(one, list | tuple | set | frozenset | deque | range):
        yield from _of_container(name, list(one), mutable=isinstance(one, list | set | deque))
    elif isinstance(one, FunctionType):
        yield from _of_function(one)
    elif isinstance(one, partial):
        yield name, one.func
        yield from ((name, argument) for argument in one.args)
        yield from one.keywords.items()
        yield from vars(one).items()
    elif isinstance(one, MethodType):
        yield name, one.__self__
        yield name, one.__func__
    else:
        yield from _of_object(name, one)


def of_library(one: Any) -> str:
    """The name by which a library that is known has this function; empty if none has.

    Examples
    --------
    >>> of_library(np.log1p), of_library(lambda X: X), of_library(np.frompyfunc(abs, 1, 1))
    ('numpy.log1p', '', '')
    """
    if isinstance(one, type) or not callable(one):
        return ""
    name = _attribute(one, "__qualname__") or _attribute(one, "__name__")
    home = _attribute(one, "__module__") or _attribute(_attribute(one, "__objclass__"), "__module__")
    for place in ("numpy", "scipy.special") if isinstance(one, np.ufunc) else (home,):
        if not isinstance(name, str) or not isinstance(place, str) or place.partition(".")[0] not in LIBRARIES:
            continue
        found: Any = sys.modules.get(place)
        for word in name.split("."):
            found = _attribute(found, word)
        if found is one:
            return f"{place.partition('.')[0]}.{name}"
    return ""


def _of_class(name: str, one: Any) -> Found:
    """Methods and attributes of a user's class; those of modules are looked at where code names them."""
    if isinstance(one, type) and one.__module__.partition(".")[0] not in LIBRARIES:
        for word, value in list(vars(one).items()):
            if (not word.startswith("__") or word == "__call__") and not isinstance(value, _DESCRIBES):
                yield word, value
        yield from ((name, base) for base in one.__bases__)


_DESCRIBES = MemberDescriptorType, GetSetDescriptorType


def _of_container(name: str, items: Sequence[Any], *, mutable: bool = False) -> Found:
    """A lone word is a name; words in a container are labels."""
    if mutable and not items:
        yield name, _Unseen(f"{name or 'a list'}, which is empty now and can be filled by a call")
    plain = [isinstance(item, str | numbers.Number) and not isinstance(item, bool) for item in items]
    if any(plain):
        yield name, _VALUES
    yield from ((name, item) for item, known in zip(items, plain) if not known)


def _of_function(function: FunctionType) -> Found:
    """Closure, defaults, attributes, and what its code names."""
    code = function.__code__
    arguments = code.co_varnames[: code.co_argcount]
    defaults = function.__defaults__ or ()
    yield from zip(arguments[len(arguments) - len(defaults) :], defaults)
    yield from (function.__kwdefaults__ or {}).items()
    yield from zip(code.co_freevars, map(_content, function.__closure__ or ()))
    yield from vars(function).items()
    if str(function.__globals__.get("__name__", "")).partition(".")[0] not in LIBRARIES:
        yield from _of_code(function)


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing was put into it yet
        return None


def _of_code(function: FunctionType) -> Found:
    """Global names and imports of the code and of all code inside it, and whether it keeps something."""
    around, own = function.__globals__, function.__code__
    mentioned = {name for code in _codes(own) for name in code.co_names}
    for code in _codes(own):
        before: Any = None
        for step in dis.get_instructions(code):
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                name = str(step.argval)
                if name in around:
                    yield from _named(name, around[name], mentioned)
            elif step.opname == "IMPORT_NAME":
                yield from _imported(str(step.argval), mentioned)
            elif _keeps(step, before, own):
                yield "", _Unseen(f"{function.__name__}, which keeps something from call to call")
            before = step
    outside = sorted(name for name in mentioned if name in OUTSIDE or name.startswith(READS))
    if outside:
        yield "", _Unseen(f"what {', '.join(outside)} brings in from outside")


def _keeps(step: dis.Instruction, before: dis.Instruction | None, own: CodeType) -> bool:
    """Whether an instruction writes to what outlives the call: a global, the function around it, or its owner."""
    if step.opname == "STORE_GLOBAL":
        return True
    if step.opname == "STORE_DEREF":
        return step.argval in own.co_freevars
    if step.opname != "STORE_ATTR" or before is None:
        return False
    if before.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
        return True
    loaded = before.argval if isinstance(before.argval, tuple) else (before.argval,)
    method = "." in own.co_qualname and own.co_varnames[:1] == ("self",) and own.co_name not in _MAKES
    return method and before.opname.startswith("LOAD_FAST") and "self" in loaded


_MAKES = {"__init__", "__new__", "__post_init__", "__setstate__"}


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _named(name: str, value: Any, mentioned: set[str]) -> Found:
    """A global; of a user's module the attributes that the code names."""
    if not isinstance(value, ModuleType):
        yield name, value
    elif value.__name__.partition(".")[0] not in LIBRARIES:
        for word in sorted(mentioned & vars(value).keys()):
            yield from _named(word, vars(value)[word], mentioned - {word})


def _imported(module: str, mentioned: set[str]) -> Found:
    root = module.partition(".")[0]
    if root in LIBRARIES:
        return
    if root in sys.modules and (not module or module in sys.modules):
        yield from _named(root, sys.modules[module], mentioned)
    else:
        yield "", _Unseen(f"{module or 'a module'}, which it imports when it is called")


def _of_object(name: str, one: Any) -> Found:
    """Owner, attributes and class of any other object; what is compiled shows none."""
    parts = [(name, _attribute(one, word)) for word in ("__self__", "__func__", "fget")]
    parts = [(word, part) for word, part in parts if part is not None]
    kept = _attribute(one, "__dict__")
    parts += [(word, _attribute(one, word)) for kind in type(one).__mro__ for word in _slots(kind)]
    known = type(one).__module__.partition(".")[0] in LIBRARIES
    for word, part in kept.items() if isinstance(kept, dict) else ():
        if not (known and isinstance(part, list | dict | set) and not part):
            parts.append((word, part))
    yield from parts
    yield name, type(one)
    if isinstance(one, np.ufunc) or not (parts or (isinstance(kept, dict) and not known)):
        shown = _attribute(one, "__name__")
        yield name, _Unseen(f"{shown if isinstance(shown, str) else f'a {type(one).__name__}'}, which is compiled")


def _slots(kind: type) -> Sequence[str]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _attribute(one: Any, name: str) -> Any:
    try:
        return getattr(one, name, None)
    except Exception:  # somebody else's class may raise anything
        return None


def calls_in(value: Any, *, deep: bool, name: str = "", above: frozenset[int] = frozenset()) -> Found:
    """Every function among parameters, by name, with its arguments if they stand beside it.

    Functions in containers, and in what has fields of its own, are found as well; in estimators if ``deep``. What is
    looked through already stands ``above``.
    """
    if id(value) in above or isinstance(value, type | str | bytes):
        return
    within = partial(calls_in, deep=deep, above=above | {id(value)})
    if isinstance(value, Mapping):
        arguments = dict(PAIRS)
        taken = {arguments[word] for word in value if word in arguments and callable(value[word])}
        for word, one in value.items():
            if word in arguments and callable(one) and not _is_fitted(one):
                given = value.get(arguments[word])
                given = {str(key): part for key, part in given.items()} if isinstance(given, Mapping) else {}
                yield str(word), partial(one, **given) if given else one
            elif word not in taken:
                yield from within(one, name=str(word))
    elif hasattr(type(value), "get_params"):
        if deep:
            yield from within(_parameters(value), name=name)
    elif callable(value):
        yield name, value
    elif isinstance(value, list | tuple | set | frozenset):
        for one in value:
            yield from within(one, name=name)
    elif hasattr(type(value), "__dataclass_fields__"):
        fields = {word: _attribute(value, word) for word in type(value).__dataclass_fields__}
        yield from within(fields, name=name)


def _parameters(estimator: Any) -> dict[str, Any]:
    try:
        return dict(estimator.get_params(deep=False))
    except Exception:  # whoever uses it will say so
        return {}


def what_nobody_checked(function: Callable[..., Any]) -> tuple[str, ...]:
    """What is taken from the user's word about what a function holds on to; empty if all of it stands in its code."""
    held = held_by(function)
    kept = f"what its function keeps ({listed(held.values)}) was not read off these rows"
    hidden = f"its function keeps nothing of these rows; nobody can see that of {listed(held.unseen)}"
    return (*([kept] if held.values else []), *([hidden] if held.unseen else []))


def listed(words: Sequence[str]) -> str:
    """At most five names, in one phrase."""
    rest = len(words) - 5
    return ", ".join(words[:5]) + (f" and {rest} more" if rest > 0 else "")


def refuse_fitted(function: Any, stage: str) -> None:
    """Refuse a stage's function if it holds on to an estimator."""
    owner = held_by(function).estimator
    if owner is not None:
        raise InvalidParameter(
            f"the function of {stage} holds on to a {type(owner).__name__}, which may be fitted to private rows.",
            stage=stage,
            fix="Public(transformer) if it was fitted on public data.",
        )
