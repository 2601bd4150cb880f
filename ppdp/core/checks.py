"""Checks of public parameters: :class:`InvalidParameter` for every impossible value, before any data are seen."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import fields
from functools import lru_cache
from importlib import import_module
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from ppdp.core.names import nearest, slips
from ppdp.exceptions import DomainMismatch, ImpossibleBudget, InvalidParameter, PpdpError

_LONGEST = 200
_MOST = 2**63 - 1


def _refused(
    name: str,
    wanted: str,
    value: Any,
    stage: object,
    *,
    kind: type[InvalidParameter] = InvalidParameter,
    fix: str | None = None,
) -> InvalidParameter:
    """The error of a parameter that is not what it must be."""
    parameter = name.removeprefix("Domain.")
    return kind(
        f"{name} must {wanted}, got {shown(value)}.",
        stage=_named(stage),
        fix=fix,
        parameter=parameter if parameter.isidentifier() else None,
    )


def number(
    name: str,
    value: Any,
    stage: object = None,
    *,
    above: float = -math.inf,
    least: float = -math.inf,
    most: float = math.inf,
    kind: type[InvalidParameter] = InvalidParameter,
    fix: str | None = None,
) -> float:
    """A finite number > above, >= least and <= most; the stage, an estimator or its name, is for the error."""
    if not isinstance(value, bool) and isinstance(value, Real):
        plain = _float(value)
        if math.isfinite(plain) and plain > above and least <= plain <= most:
            return plain
    limits = [f"above {above:g}"] * (above > -math.inf) + [f"at least {least:g}"] * (least > -math.inf)
    limits += [f"at most {most:g}"] * (most < math.inf)
    fix = fix or ("a number without quotes." if isinstance(value, str) else "a number within these limits.")
    raise _refused(name, " and ".join(["be a finite number", *limits]), value, stage, kind=kind, fix=fix)


def positive(name: str, value: Any, stage: object = None, *, most: float = math.inf) -> float:
    """A positive finite number."""
    return number(name, value, stage, above=0, most=most)


def length(name: str, value: Any, stage: object = None) -> float:
    """A length whose square and inverse float64 can hold."""
    return number(name, value, stage, least=1e-100, most=1e100)


def _float(value: Any) -> float:
    """A real number as float64; NaN where float64 cannot hold it."""
    try:
        return float(value)
    except Exception:  # an integer beyond float64; a class of the user's own
        return math.nan


def integer(name: str, value: Any, stage: object = None, *, least: int = 1, most: float = math.inf) -> int:
    """An integer in a range, below 2^63 in any case."""
    if not isinstance(value, bool) and isinstance(value, Integral):
        plain = int(value)  # once, as a class of the user's may answer otherwise the next time
        if least <= plain <= min(most, _MOST):
            return plain
    limit = f" and at most {most:g}" if most < math.inf else ""
    fix = "a whole number within these limits, without quotes or a point."
    raise _refused(name, f"be an integer of at least {least}{limit}", value, stage, fix=fix)


def flag(name: str, value: Any, stage: object = None) -> bool:
    """True or False, and nothing that merely counts as one."""
    if type(value).__name__ not in ("bool", "bool_"):
        raise _refused(name, "be True or False", value, stage, fix="one of them, without quotes.")
    return bool(value)


def choice(name: str, value: Any, options: Collection[str | None], stage: object = None) -> Any:
    """One of a few words, as it stands among them: what was given may be a string of a class of the user's."""
    for one in options:
        if value is one or (isinstance(value, str) and value == one):
            return one
    word = getattr(value, "__name__", value)  # of a function, as NumPy's are
    meant = nearest(word, options, least=0.75) if isinstance(word, str) else None
    fix = "one of these words." if meant is None else f"{name}={meant!r}."
    if None in options and value in ("none", "None"):
        fix = f"{name}=None, without quotes."
    if isinstance(value, bool) and None in options:
        fix = f"{name}={next(one for one in options if (one is None) != value)!r}."
    raise _refused(name, f"be one of {', '.join(map(repr, options))}", value, stage, fix=fix)


def without_effect(stage: Any, names: Sequence[str], condition: str, fix: str) -> None:
    """Refuse parameters of an estimator that are not at their defaults, where they have no effect."""
    defaults = {field.name: field.default for field in fields(stage)}
    for name in names:
        value = getattr(stage, name)
        if value is not defaults[name] and not (isinstance(value, (Real, str)) and value == defaults[name]):
            what = f"{name} has no effect with {condition}."
            raise InvalidParameter(what, stage=_named(stage), fix=f"{fix}, or leave {name} out.", parameter=name)


def pair(name: str, value: Any, stage: object = None) -> tuple[float, float]:
    """Two finite numbers, low < high, whose difference is finite."""
    items = list(value) if _ordered(value) else []
    if len(items) == 2 and all(isinstance(v, Real) and not isinstance(v, bool) for v in items):
        low, high = _float(items[0]), _float(items[1])
        if low < high and math.isfinite(high - low):
            return low, high
    fix = "a tuple of two finite numbers, the lower one first."
    raise _refused(name, "be (low, high) with low < high", value, stage, fix=fix)


def labels(name: str, value: Any, stage: object = None) -> tuple[Any, ...]:
    """Distinct plain labels: strings, numbers or booleans, NumPy's turned into Python's."""
    if not _ordered(value):
        raise _refused(name, "be a sequence of labels", value, stage, fix="a list of them, such as [0, 1].")
    items = tuple(v.item() if hasattr(v, "item") and getattr(v, "ndim", 1) == 0 else v for v in value)
    if not all(map(_is_label, items)) or len(set(items)) != len(items):
        raise _refused(name, "hold distinct strings or numbers", value, stage, fix="each of them once, in one list.")
    return items


def _ordered(value: Any) -> bool:
    """Whether it holds several in an order that is the same in every run; sets have none."""
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, Set, Mapping, Iterator))


def _is_label(value: Any) -> bool:
    """Whether it is text in whole characters, a truth value, or a number that arrays can hold."""
    if isinstance(value, str):
        return value.isascii() or not any(0xD800 <= ord(character) < 0xE000 for character in value)
    if isinstance(value, int):
        return -(2**63) <= value < 2**64
    return isinstance(value, float) and math.isfinite(value)


def library(module: str, name: str, install: str, kind: type[PpdpError] = InvalidParameter) -> Any:
    """A module of a library that need not be there; an error of this kind if it is not installed."""
    with suppress(ImportError):
        return import_module(module)
    raise kind(f"{name} is not installed.", fix=f"pip install {install}.")


_OF_TABLES = {"columns", "column_names", "__dataframe__", "__arrow_c_stream__"}


def shown(value: Any) -> str:
    """What the user gave, on one short line that anything can print; of a table or a column its type alone.

    >>> shown([1, "a"]), shown(10**5000)
    ("[1, 'a']", 'a value of type int')
    """
    try:
        words = "" if hasattr(type(value), "__array__") or _OF_TABLES & set(dir(type(value))) else repr(value)
    except Exception:  # an integer of thousands of digits; a class of the user's own
        words = ""
    words = " ".join(words.split())
    return words if 0 < len(words) <= _LONGEST and words.isprintable() else f"a value of type {type(value).__name__}"


def path_of(name: str, value: Any) -> Path:
    """A path that a file could have."""
    try:
        text = os.fspath(value)
        os.fsencode(text)
    except Exception:
        text = None
    if not isinstance(text, str) or "\0" in text:
        raise _refused(name, "be the path of a file", value, None, fix="a name in quotes, or a pathlib.Path.")
    return Path(text)


def columns_of(name: str, value: Any, names: Sequence[Any] | None, count: int, stage: object = None) -> list[int]:
    """Positions of columns that are given by name or position; :class:`DomainMismatch` if one does not exist."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence) or len(value) == 0:
        what = f"{name} must be a non-empty list of columns."
        raise InvalidParameter(what, stage=_named(stage), fix=f"{name}=['column', ...].", parameter=name)
    positions = _positions(tuple(names or ()))
    found = []
    for column in value:
        position = positions.get(column, -1) if isinstance(column, str) else integer(name, column, stage, least=0)
        if not 0 <= position < count:
            what = f"the column {shown(column)} of {name} does not exist."
            raise DomainMismatch(what, stage=_named(stage), fix=_instead_of(column, names or ()), parameter=name)
        found.append(position)
    return found


def _instead_of(column: Any, names: Sequence[Any]) -> str:
    """What to write in place of a column that does not exist."""
    made = [name for name in names if isinstance(name, str) and name.startswith(f"{column}_")]
    told = ", ".join(map(shown, [*(made or names)][:10]))
    if made:
        return f"an encoder in front has made columns of it: {told}."
    return slips([column], names) or f"use columns of X at this point{told and f', such as {told}'}."


@lru_cache(maxsize=4)  # every block of a wide table asks for some of the same columns
def _positions(names: tuple[Any, ...]) -> dict[Any, int]:
    return {column: position for position, column in enumerate(names)}


def classes_of(name: str, value: Any, stage: object = None) -> tuple[Any, ...]:
    """Distinct labels in ascending order, as scikit-learn has them."""
    items = labels(name, value, stage)
    try:
        return tuple(sorted(items))
    except TypeError:
        pass
    raise _refused(name, "be of one kind, all strings or all numbers", value, stage)


def _named(stage: object) -> str | None:
    return stage if stage is None or isinstance(stage, str) else type(stage).__name__


def check_budget(epsilon: Any, delta: Any, n: int) -> tuple[float, float]:
    """The end-to-end budget for n rows, as numbers; :class:`ImpossibleBudget` if it means nothing."""
    usual = "usual values are epsilon=1.0, delta=1e-6."
    epsilon = number("epsilon", epsilon, above=0, kind=ImpossibleBudget, fix=usual)
    delta = number("delta", delta, least=0, kind=ImpossibleBudget, fix=usual)
    if delta * n >= 1:
        what = f"delta = {delta:g} is not below 1/n = {1 / n:.2g}: publishing one whole row would satisfy it."
        raise ImpossibleBudget(what, fix=f"ask for delta far below 1/n, such as {0.1 / n:.0e}.", parameter="delta")
    if epsilon > 500:
        what = f"epsilon = {epsilon:g} promises nothing."
        raise ImpossibleBudget(what, fix="ask for epsilon of a few units at most.", parameter="epsilon")
    return epsilon, delta
