"""What somebody else's map makes of a dataset: what it is handed, and whatever it answers, put back slot by slot."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ppdp.core.domain import Domain
from ppdp.data.rows import Array, Rows
from ppdp.exceptions import InvalidParameter

Answer = tuple[Any, NDArray[Any] | None]  # rows, and which ones they are: positions or a mask; None for all

RESOLUTION = 1e-9  # of code that computes in float64
FITTED = "fit_transform", "fit_resample"
EXACT = 2**53  # float64 holds all integers below it


@contextmanager
def no_output() -> Iterator[None]:
    """Without the warnings of somebody else's code about made-up rows."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def present(rows: Rows) -> Array:
    """The rows with a weight above 0, each once: what somebody else's code is handed of a dataset."""
    return rows.X[rows.weight > 0]


def label_values(domain: Domain) -> tuple[float, ...]:
    """Labels of made-up rows: classes, or their positions if they are no plain numbers; else the ends of ``y_range``.

    >>> label_values(Domain(classes=(1, 2))), label_values(Domain(classes=("no", "yes"))), label_values(Domain())
    ((1.0, 2.0), (0.0, 1.0), (0.0, 1.0))
    """
    if domain.classes:
        return tuple(map(float, domain.classes if _plain(domain.classes) else range(len(domain.classes))))
    return domain.y_range or (0.0, 1.0)


def as_declared(labels: Array, domain: Domain) -> NDArray[Any]:
    """Labels of made-up rows as the domain declares them: words if its classes are words, integers if they are."""
    if not domain.classes:
        return labels
    classes = np.asarray(domain.classes)
    if _plain(domain.classes):
        return labels.astype(classes.dtype)
    return np.asarray(classes[labels.astype(np.intp)])


def _plain(classes: tuple[Any, ...]) -> bool:
    """Whether float64 holds all classes."""
    return all(not isinstance(label, str) and abs(label) < EXACT for label in classes)


def answered(transform: Any, X: Array, y: Array | None) -> Answer:
    """What a transform answers; whatever it raises is its own."""
    if any(hasattr(transform, name) for name in FITTED):
        own = clone(transform) if hasattr(transform, "get_params") else copy.deepcopy(transform)
        if hasattr(own, "fit_resample"):
            return own.fit_resample(X, y)[0], np.asarray(own.sample_indices_)
        return own.fit_transform(X), None
    out = transform(X)
    if not isinstance(out, tuple):
        return out, None
    table, kept = out[0], np.asarray(out[1])
    return table, kept.astype(bool) if np.isin(kept, (0, 1)).all() else kept


def placed(answer: Any, kept: NDArray[Any] | None, rows: Rows, name: str) -> tuple[Rows, float]:
    """An answer slot by slot, and how coarse its numbers are; a row that is repeated has its copies as weight."""
    there = np.flatnonzero(rows.weight > 0)
    table, coarse = _numbers(answer, name)
    kept = np.ones(len(there), dtype=bool) if kept is None else kept
    if kept.dtype == bool and kept.shape == there.shape:
        table = table[kept] if len(table) == len(there) else table
        kept = np.flatnonzero(kept)
    named = kept.dtype.kind in "iu" or not kept.size
    if not named or kept.shape != table.shape[:1] or not np.isin(kept, np.arange(len(there))).all():
        fix = "return all rows, or (rows, mask of the rows that are kept); a sampler has sample_indices_."
        raise InvalidParameter("it is unclear which output row comes from which row.", stage=name, fix=fix)
    slots = there[kept.astype(np.intp)]
    X = np.zeros((rows.n, table.shape[1]))
    X[slots] = table
    if not np.array_equal(X[slots], table, equal_nan=True):
        fix = "claim what becomes of one copy of each row."
        raise InvalidParameter("copies of one row differ, so they cannot be counted.", stage=name, fix=fix)
    return Rows(X, None, rows.weight * np.bincount(slots, minlength=rows.n)), coarse


def _numbers(answer: Any, name: str) -> tuple[Array, float]:
    """A table of float64, and how coarse its numbers were."""
    fix = "return rows of numbers; of complex ones the real and the imaginary parts as columns."
    try:
        table = np.asarray(answer.toarray() if hasattr(answer, "toarray") else answer)
        if np.iscomplexobj(table) or not table.ndim:
            raise TypeError(f"{table.ndim}-dimensional output of type {table.dtype}")
        numbers = np.asarray(table, dtype=np.float64).reshape(len(table), math.prod(table.shape[1:]))
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidParameter("its output is no table of real numbers.", stage=name, fix=fix) from error
    coarse = 100 * float(np.finfo(table.dtype).eps) if np.issubdtype(table.dtype, np.floating) else 0.0
    return numbers, max(RESOLUTION, coarse)
