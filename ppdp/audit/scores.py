"""Statistics that tell two datasets apart: from an outcome to a number that is larger where it speaks for the left one.

Each is made from runs that are not counted afterwards, so whatever it is, what it finds is a proof. Before that,
outcomes of any form become rows of finite numbers: a function of one outcome, whatever it is, proves nothing false.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ppdp.data.rows import Array
from ppdp.exceptions import InvalidParameter

_LARGE = 1e100  # squares of what an attacker sees must not overflow
_NAN, _ABSENT = -2.75 * _LARGE, -3 * _LARGE

_QUANTILES = np.concatenate([[0.002, 0.01], np.linspace(0.03, 0.97, 29), [0.99, 0.998]])  # edges of a histogram
_MOST_TRAINING = 50_000  # outcomes of each side that a classifier is trained on

Score = Callable[[Array], Array]  # from outcomes of shape (runs, 1 + width) to numbers of shape (runs,)


def scores(left: Array, right: Array, exact: tuple[Array, Array, int] | None) -> dict[str, Score]:
    """Statistics to try, the simplest first, from outcomes that are not counted, and ``exact`` numbers if known."""
    known = exact is not None and exact[0].shape == (left.shape[1] - 1,) and (exact[0] != exact[1]).any()
    first = {"likelihood ratio": _likelihood_ratio(left, right, *exact)} if exact is not None and known else {}
    linear, boosting = _classifiers(left, right)
    return {**first, "logistic regression": linear, "histogram": _histogram(left, right), "boosting": boosting}


def _likelihood_ratio(left: Array, right: Array, one: Array, other: Array, power: int) -> Score:
    """The most powerful test of two known datasets, whose likelihood falls by this power of the distance."""
    spread = np.hypot(left[:, 1:].std(axis=0), right[:, 1:].std(axis=0)) ** power
    weight = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
    return lambda out: (np.abs(out[:, 1:] - other) ** power - np.abs(out[:, 1:] - one) ** power) @ weight


def _histogram(left: Array, right: Array) -> Score:
    """How much more often the cell of the most telling coordinate was hit on the left; a refusal has its own cell."""
    tables = [_cells(left, right, column) for column in range(left.shape[1])]
    distances = [np.abs(counts[0] - counts[1]).sum() for _, counts in tables]
    column = int(np.argmax(distances))
    edges, counts = tables[column]
    ratios = np.log((counts[0] + 0.5) / (counts[1] + 0.5))
    return lambda outcomes: ratios[_cell(outcomes, column, edges)]


def _cells(left: Array, right: Array, column: int) -> tuple[Array, Array]:
    """Edges of cells that hold about as many outcomes each, or one value each, and the counts of both sides."""
    values = np.unique(np.concatenate([left, right])[:, column])
    both = np.concatenate([side[side[:, 0] > 0, column] for side in (left, right)])
    if values.size <= 4 * _QUANTILES.size:
        edges = (values[1:] + values[:-1]) / 2
    else:
        edges = np.unique(np.quantile(both, _QUANTILES))
    counts = [np.bincount(_cell(side, column, edges), minlength=edges.size + 2) for side in (left, right)]
    return edges, np.array(counts, dtype=np.float64)


def _cell(outcomes: Array, column: int, edges: Array) -> NDArray[np.intp]:
    return np.where(outcomes[:, 0] > 0, 1 + np.searchsorted(edges, outcomes[:, column]), 0)


def _classifiers(left: Array, right: Array) -> list[Score]:
    """Two of scikit-learn's, on outcomes and whether they are refusals."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    sides = [left[:_MOST_TRAINING], right[:_MOST_TRAINING]]
    X, y = np.concatenate(sides), np.repeat([1, 0], [len(side) for side in sides])
    boosting = HistGradientBoostingClassifier(max_iter=30, max_leaf_nodes=8, early_stopping=False, random_state=0)
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return [model.fit(X, y).decision_function for model in (linear, boosting)]


def numbers_of(found: Any) -> Array:
    """All numbers in what was published, one behind the other, as :func:`finite` ones.

    Numbers, arrays, and lists or dictionaries of those. A dictionary begins with a number that stands for its keys,
    which are seen as well, and is read in their order.

    >>> numbers_of({"b": [1, 2], "a": 0.5})[1:]
    array([0.5, 1. , 2. ])
    """
    if isinstance(found, Mapping):
        keys = sorted(found, key=repr)
        found = [crc32(repr(keys).encode()), *(found[key] for key in keys)]
    try:
        plain = np.asarray(found)
        if plain.dtype.kind != "c":
            return finite(plain.astype(np.float64).ravel())
    except (TypeError, ValueError, OverflowError):
        if isinstance(found, (list, tuple)):
            return np.concatenate([np.zeros(0), *map(numbers_of, found)])
    fix = "release numbers, arrays, or lists or dictionaries of those."
    raise InvalidParameter(f"what is released holds a {type(found).__name__}, which is no real number.", fix=fix)


def finite(numbers: Array) -> Array:
    """The same numbers, but what is not finite, or above 3e100, becomes one about 2e100 of its own, and stays it."""
    size = np.abs(numbers)
    if (size <= 3 * _LARGE).all():
        return numbers
    with np.errstate(all="ignore"):
        squeezed = np.copysign(_LARGE * (2 + np.minimum(np.log(size / _LARGE), 1000) / 2000), numbers)
    return np.where(size <= 3 * _LARGE, numbers, np.where(np.isnan(numbers), _NAN, squeezed))


def joined(parts: Sequence[Array]) -> Array:
    """Outcomes one below the other; numbers that were not released are marked as such, behind a refusal they are 0."""
    width = max((part.shape[1] for part in parts), default=1)
    if all(part.shape[1] == width for part in parts):
        return np.concatenate(parts)
    fillers = [np.where(part[:, :1] > 0, _ABSENT, 0.0).repeat(width - part.shape[1], axis=1) for part in parts]
    return np.concatenate([np.hstack(both) for both in zip(parts, fillers)])


def form_of(parts: Sequence[Array]) -> tuple[int, bool]:
    """How wide outcomes are at most, and whether of some of them less was released."""
    width = max(part.shape[1] for part in parts)
    return width, any(bool((joined([part, np.zeros((0, width))]) == _ABSENT).any()) for part in parts)


def in_form(parts: Sequence[Array], width: int, counted: bool) -> Array:
    """Outcomes one below the other, so wide, 0 for what is lacking, cut, with how much there was in a last column."""
    rows = joined([*parts, np.zeros((0, width))])[:, :width]
    absent = rows == _ABSENT
    rows = np.where(absent, 0.0, rows)
    return np.column_stack([rows, (~absent).sum(axis=1)]) if counted else rows
