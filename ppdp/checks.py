"""Checks of public parameters: one typed error for every impossible value, before any data are seen."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from numbers import Integral, Real
from typing import Any

from ppdp.exceptions import DomainMismatch, InvalidParameter

__all__ = ["choice", "classes_of", "columns_of", "flag", "integer", "labels", "length", "number", "pair", "positive"]


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
    """A finite number in a range.

    Parameters
    ----------
    name : str
        Name of the parameter.
    value : object
        What the user gave.
    stage : object, optional
        The estimator, or its name, for the error.
    above, least, most : float, optional
        The value must be > above, >= least and <= most.
    kind : type, optional
        Error to raise.
    fix : str, optional
        What to do.

    Raises
    ------
    InvalidParameter
        If it is not such a number.
    """
    if not isinstance(value, bool) and isinstance(value, Real):
        try:
            plain = float(value)
        except OverflowError:
            plain = math.nan
        if math.isfinite(plain) and plain > above and least <= plain <= most:
            return plain
    limits = [f"above {above:g}"] * (above > -math.inf) + [f"at least {least:g}"] * (least > -math.inf)
    limits += [f"at most {most:g}"] * (most < math.inf)
    wanted = " and ".join(["a finite number", *limits]) if limits else "a finite number"
    raise kind(f"{name} must be {wanted}, got {value!r}.", stage=_named(stage), fix=fix)


def positive(name: str, value: Any, stage: object = None, *, most: float = math.inf) -> float:
    """A positive finite number."""
    return number(name, value, stage, above=0, most=most)


def length(name: str, value: Any, stage: object = None) -> float:
    """A length whose square and inverse float64 can hold."""
    return number(name, value, stage, least=1e-100, most=1e100)


def integer(name: str, value: Any, stage: object = None, *, least: int = 1, most: float = math.inf) -> int:
    """An integer in a range.

    Raises
    ------
    InvalidParameter
        If it is not such an integer.
    """
    if not isinstance(value, bool) and isinstance(value, Integral) and least <= int(value) <= most:
        return int(value)
    limit = f" and at most {most:g}" if most < math.inf else ""
    raise InvalidParameter(f"{name} must be an integer of at least {least}{limit}, got {value!r}.", stage=_named(stage))


def flag(name: str, value: Any, stage: object = None) -> bool:
    """True or False, and nothing that merely counts as one.

    Raises
    ------
    InvalidParameter
        If it is neither.
    """
    if type(value).__name__ not in ("bool", "bool_"):
        raise InvalidParameter(f"{name} must be True or False, got {value!r}.", stage=_named(stage))
    return bool(value)


def choice(name: str, value: Any, options: Collection[str | None], stage: object = None) -> Any:
    """One of a few words.

    Raises
    ------
    InvalidParameter
        If it is another one.
    """
    if (value is None or isinstance(value, str)) and value in options:
        return value
    shown = ", ".join(repr(option) for option in options)
    raise InvalidParameter(f"{name} must be one of {shown}, got {value!r}.", stage=_named(stage))


def pair(name: str, value: Any, stage: object = None) -> tuple[float, float]:
    """Two finite numbers, low < high, whose difference is finite.

    Raises
    ------
    InvalidParameter
        If it is anything else.
    """
    items = list(value) if isinstance(value, Iterable) and not isinstance(value, (str, bytes)) else []
    if len(items) == 2 and all(isinstance(v, Real) and not isinstance(v, bool) for v in items):
        low, high = float(items[0]), float(items[1])
        if low < high and math.isfinite(high - low):
            return low, high
    raise InvalidParameter(f"{name} must be (low, high) with low < high, got {value!r}.", stage=_named(stage))


def labels(name: str, value: Any, stage: object = None) -> tuple[Any, ...]:
    """Distinct plain labels: strings, numbers or booleans, NumPy's turned into Python's.

    Raises
    ------
    InvalidParameter
        If they are something else, or repeat.
    """
    if not isinstance(value, Iterable) or isinstance(value, (str, bytes)):
        raise InvalidParameter(f"{name} must be a sequence of labels, got {value!r}.", stage=_named(stage))
    items = tuple(v.item() if hasattr(v, "item") and getattr(v, "ndim", 1) == 0 else v for v in value)
    plain = all(isinstance(v, (str, bool, int)) or (isinstance(v, float) and math.isfinite(v)) for v in items)
    if not plain or len(set(items)) != len(items):
        raise InvalidParameter(f"{name} must hold distinct strings or numbers, got {value!r}.", stage=_named(stage))
    return items


def columns_of(name: str, value: Any, names: Sequence[Any] | None, count: int, stage: object = None) -> list[int]:
    """Positions of columns that are given by name or position.

    Raises
    ------
    InvalidParameter
        If they are no list of columns.
    DomainMismatch
        If a column does not exist.
    """
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence) or len(value) == 0:
        raise InvalidParameter(
            f"{name} must be a non-empty list of columns.", stage=_named(stage), fix=f"{name}=['column', ...]."
        )
    known = list(names or ())
    found = []
    for column in value:
        if isinstance(column, str):
            position = known.index(column) if column in known else -1
        else:
            position = integer(name, column, stage, least=0)
        if not 0 <= position < count:
            raise DomainMismatch(
                f"the column {column!r} of {name} does not exist.",
                stage=_named(stage),
                fix="use columns of X at this point.",
            )
        found.append(position)
    return found


def classes_of(name: str, value: Any, stage: object = None) -> tuple[Any, ...]:
    """Distinct labels in ascending order, as scikit-learn has them.

    Raises
    ------
    InvalidParameter
        If they are something else, or cannot be ordered.
    """
    items = labels(name, value, stage)
    try:
        return tuple(sorted(items))
    except TypeError:
        pass
    raise InvalidParameter(
        f"{name} must be of one kind, all strings or all numbers, got {value!r}.", stage=_named(stage)
    )


def _named(stage: object) -> str | None:
    return stage if stage is None or isinstance(stage, str) else type(stage).__name__
