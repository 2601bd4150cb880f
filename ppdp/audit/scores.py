"""Statistics that tell two datasets apart: from an outcome to a number that is larger where it speaks for the left one.

Each is made from runs that are not counted afterwards, so whatever it is, what it finds is a proof.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Score", "scores"]

Array = NDArray[np.float64]

_QUANTILES = np.concatenate([[0.002, 0.01], np.linspace(0.03, 0.97, 29), [0.99, 0.998]])  # edges of a histogram
_MOST_TRAINING = 50_000  # outcomes of each side that a classifier is trained on


@dataclass(frozen=True, slots=True)
class Score:
    """A statistic of outcomes.

    Attributes
    ----------
    name : str
        "likelihood ratio", "histogram", "logistic regression" or "boosting".
    of : callable
        From outcomes of shape (runs, 1 + width) to numbers of shape (runs,).
    """

    name: str
    of: Callable[[Array], Array]


def scores(left: Array, right: Array, shift: Array | None) -> list[Score]:
    """All statistics that are tried, the simplest first.

    Parameters
    ----------
    left, right : ndarray of shape (runs, 1 + width)
        Outcomes on either dataset that serve to choose and are not counted.
    shift : ndarray of shape (width,), optional
        By how much the released numbers differ where noise is Gaussian, if it is known.
    """
    linear, boosting = _classifiers(left, right)
    found = [linear, _histogram(left, right), boosting]
    if shift is not None and shift.shape == (left.shape[1] - 1,) and shift.any():
        found.insert(0, _likelihood_ratio(left, right, shift))
    return found


def _likelihood_ratio(left: Array, right: Array, shift: Array) -> Score:
    """The most powerful test of two Gaussians: the known shift, each number in units of its variance."""
    spread = np.hypot(left[:, 1:].std(axis=0), right[:, 1:].std(axis=0))
    direction = np.divide(shift, spread**2, out=np.zeros_like(shift), where=spread > 0)
    return Score("likelihood ratio", lambda outcomes: outcomes[:, 1:] @ direction)


def _histogram(left: Array, right: Array) -> Score:
    """How much more often the cell of the most telling coordinate was hit on the left; a refusal has its own cell."""
    tables = [_cells(left, right, column) for column in range(left.shape[1])]
    distances = [np.abs(counts[0] - counts[1]).sum() for _, counts in tables]
    column = int(np.argmax(distances))
    edges, counts = tables[column]
    ratios = np.log((counts[0] + 0.5) / (counts[1] + 0.5))
    return Score("histogram", lambda outcomes: ratios[_cell(outcomes, column, edges)])


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
    models: dict[str, Any] = {
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        "boosting": boosting,
    }
    return [Score(name, model.fit(X, y).decision_function) for name, model in models.items()]
