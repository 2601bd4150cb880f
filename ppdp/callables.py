"""Which estimator a user's function holds on to: what that was fitted to leaves with the function.

Methods, partials, wrappers and the attributes of callable objects are looked at. Closures, default arguments and global
names are not: they remain the user's word.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import ModuleType
from typing import Any

from ppdp.exceptions import InvalidParameter

__all__ = ["estimator_in", "refuse_fitted"]

MOST = 1000  # objects that are looked at


def estimator_in(function: Any) -> Any | None:
    """The first estimator that a function is, is a method of, or keeps; None if none is found.

    Parameters
    ----------
    function : callable
        A user's function.
    """
    waiting, seen = [function], set[int]()
    while waiting and len(seen) < MOST:
        one = waiting.pop()
        if isinstance(one, type | ModuleType) or id(one) in seen:
            continue
        if hasattr(type(one), "get_params"):
            return one
        seen.add(id(one))
        waiting += _held(one)
    return None


def _held(one: Any) -> Iterator[Any]:
    """What a function or its owner keeps: the owner of a method, arguments of a partial, attributes that are called."""
    yield _attribute(one, "__self__")
    if isinstance(one, partial):
        yield one.func
        yield from (*one.args, *one.keywords.values())
    kept = _attribute(one, "__dict__")
    for value in list(kept.values()) if isinstance(kept, dict) else ():
        if callable(value) or hasattr(type(value), "get_params"):
            yield value


def _attribute(one: Any, name: str) -> Any:
    try:
        return getattr(one, name, None)
    except Exception:  # somebody else's class may raise anything
        return None


def refuse_fitted(function: Any, stage: str) -> None:
    """Refuse a function that holds on to an estimator.

    Parameters
    ----------
    function : callable
        A user's function.
    stage : str
        Whose function it is.

    Raises
    ------
    InvalidParameter
        If it does.
    """
    owner = estimator_in(function)
    if owner is not None:
        raise InvalidParameter(
            f"the function of {stage} belongs to a {type(owner).__name__}, which may be fitted to private rows.",
            stage=stage,
            fix="Public(transformer) if it was fitted on public data.",
        )
