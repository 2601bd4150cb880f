"""What is seen of a fitted pipeline, and what scikit-learn or a few lines of NumPy compute on the same rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sklearn.decomposition as decomposition
import sklearn.preprocessing as preprocessing
from growing_tables import FAMILIES, NEW, Table
from scipy.optimize import minimize
from sklearn.metrics import pairwise_distances

import ppdp.transformers as transformers
from ppdp import Pipeline
from ppdp.data.rows import Array

CATEGORIES = list(range(5))
EPSILON, DELTA = 1.0, 1e-7


@dataclass(frozen=True)
class Entry:
    """A pipeline, what is compared of it and of its twin, and the relative error that few rows may leave."""

    name: str  # of the class, and what is special; or of several classes
    steps: Callable[[], list[Any]]
    seen: Callable[[Any, Table], Any]
    twin: Callable[[Table], Any]
    rows: str = "X"
    labels: str | None = None
    tables: tuple[str, ...] = tuple(FAMILIES)
    most: float = 0.1  # relative error at 64,000 rows
    fixed: bool = False  # nothing is fitted, or what remains does not fall with the rows
    late: tuple[str, ...] = ()  # tables on which errors fall from 64,000 rows on
    unit: Callable[[Table], float] = lambda table: float(table.X.std())  # of what is not rows
    ranged: bool = True  # whether public ranges stand in front
    instead: str = ""
    needs: dict[str, Any] = field(default_factory=dict)

    def error(self, table: Table) -> float:
        """Root mean square of the difference, of rows over the spread of what they go to."""
        front = [transformers.MinMaxScaler(ranges=(-1, 1))] if self.ranged else []
        steps = [(f"s{i}", step) for i, step in enumerate([*front, *self.steps()])]
        pipe = Pipeline(steps, **{"epsilon": EPSILON, "delta": DELTA, "diagnostics": None, **self.needs})
        pipe.fit(getattr(table, self.rows), None if self.labels is None else getattr(table, self.labels))
        seen, twin = (np.asarray(found, dtype=float) for found in (self.seen(pipe, table), self.twin(table)))
        spread = np.mean((twin - twin.mean(axis=0)) ** 2) if len(np.atleast_1d(twin)) == NEW else self.unit(table) ** 2
        return float(np.sqrt(np.mean((seen - twin) ** 2) / spread))


def transformed(pipe: Any, table: Table) -> Any:
    return pipe.transform(table.new)


def filled(pipe: Any, table: Table) -> Any:
    return pipe.transform(table.all_gaps)


def predicted(pipe: Any, table: Table) -> Any:
    return pipe.predict(table.new)


def probabilities(pipe: Any, table: Table) -> Any:
    return pipe.predict_proba(table.new)[:, 1]


def answer(name: str) -> Callable[[Any, Table], Any]:
    return lambda pipe, table: getattr(pipe[-1], name)


def sk(make: Callable[[], Any], rows: str = "X", new: str = "new", labels: str | None = None) -> Any:
    """What scikit-learn's transformer or model says of new rows."""

    def of(table: Table) -> Any:
        model = make().fit(getattr(table, rows), None if labels is None else getattr(table, labels))
        known = getattr(table, new)
        if hasattr(model, "predict_proba"):
            return model.predict_proba(known)[:, 1]
        return model.predict(known) if hasattr(model, "predict") else model.transform(known)

    return of


def unexplained(pipe: Any, table: Table) -> Any:
    """What a projection of standardised rows loses of their variance, by what is not lost."""
    scaled = preprocessing.StandardScaler().fit_transform(table.X)
    axes = np.linalg.qr(pipe[-1].components_.T)[0]
    return 1 - np.square(scaled @ axes).sum() / np.square(scaled).sum()


def cluster_spread(table: Table, centers: Array) -> float:
    """Root mean square distance of rows from the nearest centre."""
    return float(np.sqrt(np.square(pairwise_distances(table.X, centers).min(axis=1)).mean()))


def least_unexplained(table: Table) -> Any:
    scaled = preprocessing.StandardScaler().fit_transform(table.X)
    return 1 - decomposition.PCA(2).fit(scaled).explained_variance_ratio_.sum()


def shrunk(table: Table) -> Any:
    C = table.X.T @ table.X / table.n
    norm = math.sqrt(table.X.shape[1])
    return table.new @ np.linalg.inv(C + 0.25 / table.X.shape[1] * norm**2 * np.eye(len(C))) @ C


def ridge_filled(table: Table) -> Any:
    """By least squares with a penalty of a tenth of the norm, on complete rows over n, without an intercept."""
    whole = table.gapped[~np.isnan(table.gapped).any(axis=1)]
    C, filled = whole.T @ whole / table.n, table.all_gaps.copy()
    gaps = np.isnan(filled)
    for pattern in np.unique(gaps, axis=0):
        rows, J, r = (gaps == pattern).all(axis=1), pattern, ~pattern
        slope = np.linalg.solve(C[np.ix_(r, r)] + 0.1 * filled.shape[1] * np.eye(r.sum()), C[np.ix_(r, J)])
        filled[np.ix_(rows, J)] = np.clip(filled[np.ix_(rows, r)] @ slope, -1, 1)
    return filled


def trimmed(table: Table) -> Any:
    m, means = math.floor(0.1 * 0.5 * table.n), []
    for column in table.gapped.T:
        means.append(np.sort(column[~np.isnan(column)])[m:-m].mean())
    return np.where(np.isnan(table.all_gaps), means, table.all_gaps)


def robust(table: Table) -> Any:
    return np.clip(preprocessing.RobustScaler().fit(table.X).transform(table.new), -3, 3)


def target_means(table: Table) -> Any:
    found = preprocessing.TargetEncoder(smooth=10.0, target_type="binary").fit(table.kinds, table.y)
    return 2 * found.transform(np.array(CATEGORIES, dtype=float)[:, None]) - 1


def smooth_hinge(table: Table) -> Any:
    """Decision values of the minimiser of the hinge loss that is quadratic within 1/2 of a margin of 1."""
    Z = np.column_stack([preprocessing.StandardScaler().fit_transform(table.X), np.ones(table.n)])
    Z *= (2 * table.y - 1)[:, None]

    def loss(theta: Array) -> tuple[float, Array]:
        short = np.clip(1.5 - Z @ theta, 0, 1)  # over the width of the quadratic part
        rest = np.maximum(0.5 - Z @ theta, 0)
        return float(np.mean(short**2 / 2 + rest)), -(Z.T @ short) / table.n

    theta = minimize(loss, np.zeros(Z.shape[1]), jac=True, method="L-BFGS-B", options={"ftol": 1e-14}).x
    scaler = preprocessing.StandardScaler().fit(table.X)
    return scaler.transform(table.new) @ theta[:-1] + theta[-1]


def alone(make: Callable[[], Any]) -> Callable[[Table], Any]:
    """The mean of what a stage leaves, without noise."""

    def of(table: Table) -> Any:
        left = make().fit_resample(table.X, table.y)[0]
        return np.asarray(left).mean(axis=0)

    return of
