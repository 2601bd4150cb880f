"""Small pipelines with the pairs of neighbours on which they lose most, one for everything of ours that adds noise.

An audit of them takes seconds, and comes close to what is certified: so that half of the noise is missing, or that a
gate is off by one row, is seen. ``TARGETS`` makes them by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.audit.target import GateTarget, PlanTarget, SelectionTarget, Target
from ppdp.core.adjacency import Adjacency
from ppdp.core.domain import Domain
from ppdp.data.rows import Rows
from ppdp.mechanisms import (
    ExponentialMechanism,
    GammaRegressor,
    GaussianMechanism,
    LaplaceMechanism,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    TweedieRegressor,
)
from ppdp.pipeline.pipeline import Pipeline
from ppdp.pipeline.planning.plan import Plan
from ppdp.pipeline.search.plan import Selection
from ppdp.privacy.gate import Gate
from ppdp.transformers import PCA, Deduplicator, MeanImputer, NormClipper, StandardScaler

__all__ = ["TARGETS"]

Array = NDArray[np.float64]

N = 12
CROWD = 300
GAP = np.nan
PLANE = Domain(n_rows=N, n_features=2, row_norm=1.0, max_missing=0, min_present=N)
BOX = Domain(n_rows=N, n_features=1, row_norm=1.0, entry_bound=1.0, min_present=N)
TRAINING: dict[str, Any] = {"fit_intercept": False, "max_grad_norm": 0.25, "max_coef_norm": 1e3}
EVERY: dict[str, Any] = {"max_iter": 1}
SAMPLED: dict[str, Any] = {"max_iter": 1, "batch_size": N // 2}

MODELS: dict[str, Any] = {
    "noisy gradient descent": LogisticRegression((0, 1), max_iter=5, **TRAINING),
    "support vectors": LinearSVC((0, 1), **EVERY, **TRAINING),
    "least squares": LinearRegression((-1, 1), **EVERY, **TRAINING),
    "ridge": Ridge((-1, 1), alpha=1.0, **EVERY, **TRAINING),
    "counts": PoissonRegressor((0, 8), **EVERY, **TRAINING),
    "amounts": GammaRegressor((1, 8), **EVERY, **TRAINING),
    "sums of amounts": TweedieRegressor((0, 8), **EVERY, **TRAINING),
    "Poisson samples": LogisticRegression((0, 1), solver="poisson", **SAMPLED, **TRAINING),
    "epochs": LogisticRegression((0, 1), solver="epochs", **SAMPLED, **TRAINING),
    "hidden iterate": LogisticRegression((0, 1), solver="hidden", batch_size=N, **TRAINING),
    "output perturbation": LogisticRegression((0, 1), solver="output", alpha=4.0, max_iter=5, **TRAINING),
}
QUERIES: dict[str, Any] = {
    "Gaussian mean": GaussianMechanism(),
    "Gaussian sum": GaussianMechanism("sum"),
    "Gaussian covariance": GaussianMechanism("covariance"),
    "Gaussian histogram": GaussianMechanism("histogram", bins=2),
}
NOT_GAUSSIAN: dict[str, Any] = {
    "Laplace mean": LaplaceMechanism(),
    "Laplace sum": LaplaceMechanism("sum"),
    "Laplace histogram": LaplaceMechanism("histogram", bins=2),
    "quantile": ExponentialMechanism(candidates=[-0.5, 0.5]),
}
STATISTICS: dict[str, Any] = {
    "released means": MeanImputer(fit_mode="noisy"),
    "released moments": StandardScaler(fit_mode="noisy"),
}


def _plan(*stages: Any, domain: Domain = BOX, **parameters: Any) -> Plan:
    parameters = {"epsilon": 5.0, "delta": 1e-6, "diagnostics": None, **parameters}
    return Pipeline(
        [(f"step {i}", stage) for i, stage in enumerate(stages)], **{"diagnostics": None, **parameters}
    ).plan(domain)


def _reversed(name: str, *stages: Any, rest: float = 0.0, **parameters: Any) -> Target:
    """The replaced row goes from 1 to -1; the others are all ``rest``, and answers are all the largest."""
    X = np.full((N, 1), rest)
    Z = X.copy()
    X[0], Z[0] = 1.0, -1.0
    y = np.ones(N)
    return PlanTarget(name, _plan(*stages, **parameters), Rows.of(X, y), Rows.of(Z, y))


def _few(name: str, *stages: Any) -> Target:
    """At an epsilon at which rare outcomes are seen."""
    return _reversed(name, *stages, epsilon=2.0)


def _opposed(name: str) -> Target:
    """The other rows' gradients are those of the row that replaces: the worst case of batches of fixed size."""
    model = LogisticRegression((0, 1), solver="fixed-size", **SAMPLED, **TRAINING)
    return _reversed(name, model, rest=-1.0)


def _counted(name: str, query: Any, epsilon: float) -> Target:
    """The replaced row is one record more, or one that is there already."""
    X = np.zeros((N, 1))
    Z = X.copy()
    X[0] = 1.0
    plan = _plan(Deduplicator(), query, epsilon=epsilon)
    return PlanTarget(name, plan, Rows.of(X), Rows.of(Z))


def _released(name: str, stage: Any) -> Target:
    gaps = stage.fills_gaps
    return _reversed(name, stage, rest=GAP if gaps else 0.0, domain=BOX.but(max_missing=N if gaps else 0))


def _turned(name: str) -> Target:
    """The replaced row turns by a right angle: its square moves furthest, which the row opposite would not."""
    X = np.zeros((N, 2))
    Z = X.copy()
    X[0], Z[0] = [1.0, 0.0], [0.0, 1.0]
    return PlanTarget(name, _plan(PCA(1, with_mean=False, fit_mode="noisy"), domain=PLANE), Rows.of(X), Rows.of(Z))


def _chosen(name: str) -> Target:
    """Two candidates, and every row gives all it can to one of them."""
    return _reversed(name, ExponentialMechanism("utility", candidates=["low", "high"], utility=_signs), epsilon=2.0)


def _signs(X: Array) -> Array:
    """What a row gives to the candidates "low" and "high"."""
    return np.column_stack([X[:, 0] < 0, X[:, 0] > 0]).astype(np.float64)


def _deduplicated(name: str) -> Target:
    """The record that is replaced has no duplicate; the others are one record, many times."""
    X = np.zeros((N, 2))
    X[1:] = [0.0, 1.0]
    Z = X.copy()
    X[0], Z[0] = [1.0, 0.0], [-1.0, 0.0]
    plan = _plan(NormClipper(), Deduplicator(), GaussianMechanism(), domain=Domain(n_rows=N, n_features=2))
    return PlanTarget(name, plan, Rows.of(X), Rows.of(Z))


def _imputed(name: str) -> Target:
    """Only the record that is replaced is observed: all other rows follow it."""
    stages = MeanImputer(fit_mode="exact"), GaussianMechanism()
    return _reversed(name, *stages, rest=GAP, domain=BOX.but(max_missing=N))


def _drifting(name: str) -> Target:
    """Batches of fixed size in which all other rows follow the one that is replaced."""
    model = LogisticRegression((0, 1), solver="fixed-size", **SAMPLED, **TRAINING | {"max_coef_norm": 1.0})
    return _reversed(name, MeanImputer(fit_mode="exact"), model, rest=GAP, domain=BOX.but(max_missing=N))


def _clear(name: str) -> Target:
    """So many rows that gradients are heard through the noise, and curvature is learnt from them."""
    model = LogisticRegression((0, 1), max_iter=5, **TRAINING)
    X = np.zeros((CROWD, 1))
    Z = X.copy()
    X[0], Z[0] = 1.0, -1.0
    plan = _plan(model, domain=BOX.but(n_rows=CROWD, min_present=CROWD))
    y = np.ones(CROWD)
    return PlanTarget(name, plan, Rows.of(X, y), Rows.of(Z, y))


def _selected(name: str, scores: str) -> Target:
    """The replaced row is right for one candidate or for the other; all others are right for none."""
    X = np.zeros((N, 2))
    Z = X.copy()
    X[0], Z[0] = [1.0, 0.0], [0.0, 1.0]
    selection = Selection.of_budget(N, Adjacency.replace(), 2, scores, 1.0)
    return SelectionTarget(name, selection, selection.loss, X, Z)


def _missing(few: int, many: int) -> tuple[Rows, Rows]:
    """Rows of which few or, one replaced, many have gaps."""
    X, Z = np.full((N, 1), 0.5), np.full((N, 1), 0.5)
    X[:few], Z[:many] = GAP, GAP
    return Rows.of(X), Rows.of(Z)


def _gate(name: str, kind: str, fails: bool) -> Target:
    """At most three rows may have gaps."""
    imputer = MeanImputer(max_missing=3, fit_mode="exact")
    plan = _plan(imputer, GaussianMechanism(), domain=BOX.but(max_missing=N), delta=0.05)
    plan = replace(plan, gate=Gate.of(kind, 1.0, 0.05, adding=False, n_rows=N))
    return GateTarget(name, plan, *(_missing(3, 4) if fails else _missing(1, 2)), fails=fails)


def _eigengap(name: str) -> Target:
    """Rows in two orthogonal directions, as many in one as in the other on the right: no gap at all."""
    X = np.repeat([[1.0, 0.0], [0.0, 1.0]], N // 2, axis=0)
    Z = X.copy()
    X[N // 2] = [1.0, 0.0]
    plan = _plan(PCA(1, with_mean=False, fit_mode="exact", min_gap=0.1), GaussianMechanism(), domain=PLANE, delta=0.05)
    return GateTarget(name, plan, Rows.of(X), Rows.of(Z), fails=True)


_KINDS = ("gaussian", "laplace", "discrete-laplace")
_ALL: list[tuple[Any, ...]] = [
    ("deduplication", _deduplicated),
    ("mean imputation", _imputed),
    *((name, _reversed, query) for name, query in QUERIES.items()),
    *((name, _few, query) for name, query in NOT_GAUSSIAN.items()),
    ("Gaussian count", _counted, GaussianMechanism("count"), 5.0),
    ("Laplace count", _counted, LaplaceMechanism("count"), 2.0),
    ("choice of a candidate", _chosen),
    *((name, _reversed, model) for name, model in MODELS.items()),
    ("fixed-size batches", _opposed),
    ("fixed-size batches of moved rows", _drifting),
    ("gradient descent with curvature", _clear),
    ("search by noisy scores", _selected, "all"),
    ("search by chance", _selected, "best"),
    *((name, _released, stage) for name, stage in STATISTICS.items()),
    ("released second moment", _turned),
    *((f"{kind} gate, closed", _gate, kind, True) for kind in _KINDS),
    *((f"{kind} gate, open", _gate, kind, False) for kind in _KINDS),
    ("eigengap gate, closed", _eigengap),
]

TARGETS: Mapping[str, Callable[[], Target]] = {name: partial(make, name, *rest) for name, make, *rest in _ALL}
"""What is audited, by name; made when it is called."""
