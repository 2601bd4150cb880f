"""A guard against common mistakes in a user's function: what it holds on to leaves with it.

Estimators and tables in a closure, a global variable, a default argument or an attribute are found and refused. Python
cannot say all that a function holds on to, so whatever is left is a declared fact of the certificate.
"""

from __future__ import annotations

import dis
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from ppdp.exceptions import InvalidParameter

MOST_OBJECTS = 1000
LIBRARIES = sys.stdlib_module_names | {"numpy", "scipy", "sklearn", "pandas", "polars", "pyarrow", "ppdp"}
"""Modules whose own functions keep nothing of a user's rows."""
FITTED = "fit", "predict", "transform", "inverse_transform"
TABLES = "__array__", "__dataframe__", "__arrow_c_stream__", "__arrow_c_array__", "nnz"
ARGUMENTS = {"func": "kw_args", "inverse_func": "inv_kw_args", "function": "keywords"}
"""Parameters that are functions, and those that hold the arguments with which they are called."""

Named = tuple[str, Any]


class Captured(NamedTuple):
    """What was found in a function."""

    estimator: Any | None
    table: str | None  # the name of an array or frame that is no argument of a ``partial``
    arguments: tuple[str, ...]  # of a ``partial``


def captured_by(function: Any) -> Captured:
    """The first estimator and the first table that a function holds on to, and its ``partial`` arguments."""
    waiting, seen, table = [("", function)], dict[int, Any](), None
    arguments = dict(_arguments(function))
    given = {id(value) for value in arguments.values()}
    while waiting and len(seen) < MOST_OBJECTS:
        name, value = waiting.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value  # and so no other object gets its id
        if _is_estimator(value):
            return Captured(value, table, tuple(arguments))
        if _is_table(value) and id(value) not in given:
            table = name
        try:
            waiting += _parts(name, value)
        except Exception:  # somebody else's class may raise anything
            continue
    return Captured(None, table, tuple(arguments))


def _arguments(function: Any) -> Iterator[Named]:
    """Of a ``partial``, by the names of the parameters; the function itself is none."""
    if isinstance(function, partial):
        yield from ((f"argument {i}", value) for i, value in enumerate(function.args, 1))
        yield from function.keywords.items()


def _is_estimator(value: Any) -> bool:
    """Whether it is one of whatever library; a table also has a ``transform``, and is none."""
    kind = type(value)
    if isinstance(value, type | ModuleType):
        return False
    methods = (getattr(kind, word, None) for word in FITTED)
    return hasattr(kind, "get_params") or (not _is_table(value) and any(map(callable, methods)))


def _is_table(value: Any) -> bool:
    return not isinstance(value, np.generic) and any(hasattr(type(value), word) for word in TABLES)


def _parts(name: str, value: Any) -> list[Named]:
    """What stands in an object, by the names that a user knows."""
    if isinstance(value, type | ModuleType | str | bytes) or library_name(value):
        return []
    if isinstance(value, np.ndarray):
        return [(name, item) for item in value.ravel()] if value.dtype == object else []
    if isinstance(value, Mapping):
        return [(name, item) for item in dict(value).values()]
    if isinstance(value, list | tuple | set | frozenset):
        return [(name, item) for item in value]
    if isinstance(value, partial):
        return [(name, value.func), *_arguments(value)]
    if isinstance(value, MethodType):
        return [(name, value.__self__), (name, value.__func__)]
    if isinstance(value, FunctionType):
        return _parts_of_function(value)
    return list(vars(value).items()) if callable(value) and hasattr(value, "__dict__") else []


def _parts_of_function(function: FunctionType) -> list[Named]:
    parameters = inspect.signature(function, follow_wrapped=False).parameters.values()
    defaults = [(one.name, one.default) for one in parameters if one.default is not one.empty]
    around, names = function.__globals__, _names_in(function.__code__)
    global_values = [(name, around[name]) for name in names if name in around]
    closure = zip(function.__code__.co_freevars, map(_content, function.__closure__ or ()))
    return [*defaults, *closure, *global_values, *vars(function).items()]


def _names_in(code: CodeType) -> list[str]:
    """Variables of the module that it reads, and that functions inside of it read; attributes are none."""
    inner = [name for constant in code.co_consts if isinstance(constant, CodeType) for name in _names_in(constant)]
    return [*(str(step.argval) for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL"), *inner]


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it has no value yet
        return None


def library_name(function: Any) -> str:
    """The name by which a library that is known has this function; empty if none has.

    >>> library_name(np.log1p), library_name(lambda X: X)
    ('numpy.log1p', '')
    """
    if isinstance(function, type) or not callable(function):
        return ""
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None)
    home = getattr(function, "__module__", None) or getattr(getattr(function, "__objclass__", None), "__module__", "")
    for module in ("numpy", "scipy.special") if isinstance(function, np.ufunc) else (str(home),):
        if module.partition(".")[0] in LIBRARIES:
            found: Any = sys.modules.get(module)
            for word in str(name).split("."):
                found = getattr(found, word, None)
            if found is function:
                return f"{module.partition('.')[0]}.{name}"
    return ""


def functions_in(value: Any, *, deep: bool, name: str = "", above: frozenset[int] = frozenset()) -> Iterator[Named]:
    """Every function among parameters, in containers and dataclasses, in estimators if ``deep``; as a ``partial``."""
    if id(value) in above or isinstance(value, type | str | bytes):
        return
    within = partial(functions_in, deep=deep, above=above | {id(value)})
    if isinstance(value, Mapping):
        called = [word for word in ARGUMENTS if callable(value.get(word)) and not _is_estimator(value[word])]
        for word in called:
            keywords = value.get(ARGUMENTS[word])
            keywords = {str(key): part for key, part in keywords.items()} if isinstance(keywords, Mapping) else {}
            yield word, partial(value[word], **keywords) if keywords else value[word]
        taken = {*called, *(ARGUMENTS[word] for word in called)}
        for word, inner in value.items():
            if word not in taken:
                yield from within(inner, name=str(word))
    elif hasattr(type(value), "get_params"):
        try:
            yield from within(value.get_params(deep=False) if deep else (), name=name)
        except Exception:  # whoever uses it will say so
            return
    elif callable(value):
        yield name, value
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from within(item, name=name)
    elif hasattr(type(value), "__dataclass_fields__"):
        yield from within({word: getattr(value, word, None) for word in type(value).__dataclass_fields__}, name=name)


def declared_of(function: Callable[..., Any]) -> str | None:
    """What is taken at the user's word of what a function holds on to; None for a library's function."""
    if library_name(function):
        return None
    arguments = captured_by(function).arguments
    named = f" (its arguments {', '.join(arguments[:5])}{', ...' * (len(arguments) > 5)})" if arguments else ""
    return f"what its function holds on to{named} was not read off these rows"


def refuse_captured(function: Any, stage: str, *, argued: bool = True) -> None:
    """Refuse a stage's function that holds on to an estimator, or to a table that is not handed to it by name.

    If not ``argued``, neither may a table be its argument, for no certificate would name it.
    """
    captured = captured_by(function if argued else [function])
    if captured.estimator is not None:
        raise InvalidParameter(
            f"the function of {stage} holds on to a {type(captured.estimator).__name__}, "
            "which may be fitted to private rows.",
            stage=stage,
            fix="Public(transformer) if it was fitted on public data.",
        )
    if captured.table is not None:
        name = captured.table or "table"
        raise InvalidParameter(
            f"the function of {stage} holds on to the table {name!r}, which may be computed from private rows.",
            stage=stage,
            fix=f"if it is public, make it an argument: functools.partial(function, {name}={name}), or kw_args of a "
            "FunctionTransformer; the certificate then names it as declared."
            if argued
            else "a list of names, such as ['age', 'dose'].",
        )
