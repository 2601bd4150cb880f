"""A release as a fitted pipeline of scikit-learn alone: each twin becomes the plain objects that do the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from scipy.sparse import issparse
from sklearn import linear_model, svm
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from ppdp import mechanisms, transformers
from ppdp.core.domain import Domain
from ppdp.data.rows import Array
from ppdp.exceptions import ExportError
from ppdp.interop.sklearn import fitted
from ppdp.interop.sklearn.plain_columns import plain_columns
from ppdp.mechanisms.base import Mechanism
from ppdp.transformers.columns.block import Block
from ppdp.transformers.columns.column_map import ColumnMap

MOST_COLUMNS = 1024  # of rows that are clipped to a norm
_LEAST = math.exp(-700)  # prediction of a generalised linear model
_SLACK = 1 + 1e-13  # what rounding may add to the norm of rows that a clip would leave as they are


@dataclass(frozen=True)
class Flow:
    """What is known of rows on their way, and what has been made of the stages so far."""

    low: Array
    high: Array
    norm: float = math.inf
    gaps: bool = False
    parts: tuple[Any, ...] = ()
    names: tuple[str, ...] | None = None  # of the columns of a frame, until a plain object makes an array of it

    @classmethod
    def of(cls, d: int, *, gaps: bool) -> Flow:
        """Rows of which nothing is known but whether they may have gaps."""
        return cls(np.full(d, -np.inf), np.full(d, np.inf), gaps=gaps)

    @property
    def d(self) -> int:
        """Number of columns."""
        return len(self.low)

    @property
    def reach(self) -> float:
        """The longest that a row can be."""
        return min(self.norm, float(np.linalg.norm(np.maximum(-self.low, self.high))))

    def then(self, *parts: Any, **known: Any) -> Flow:
        """Behind some more plain objects, with what is known of rows there."""
        return replace(self, parts=(*self.parts, *parts), **known)

    def spread(self, matrix: Array, offset: Array, *parts: Any) -> Flow:
        """Behind an affine map."""
        reach = self.reach * float(np.linalg.norm(matrix, 2)) + float(np.linalg.norm(offset))
        return Flow.of(matrix.shape[1], gaps=False).then(*self.parts, *parts, norm=reach)

    def within(self, low: Array, high: Array, *parts: Any) -> Flow:
        """Behind a clip of entries."""
        return self.then(*parts, low=low, high=high, norm=math.inf)

    def in_ball(self, radius: float | None, stage: str) -> Flow:
        """Behind a clip of rows to a norm, which is left out where it changes nothing."""
        if radius is None or self.reach <= radius * _SLACK:
            return self
        if self.gaps or self.d > MOST_COLUMNS:
            why = "rows may have missing values here" if self.gaps else f"there are more than {MOST_COLUMNS} columns"
            refuse(
                f"it clips rows to a norm, and {why}: scikit-learn's objects cannot clip them so.",
                stage,
                "MinMaxScaler(ranges=...) as the first step, and no row_norm in the domain.",
            )
        clipped = fitted.ball(self.d, radius * (1 - (self.d + 4) * 2.0**-53))
        low, high = np.maximum(self.low, -radius), np.minimum(self.high, radius)
        return self.then(clipped, low=low, high=high, norm=radius)


def refuse(message: str, stage: str, fix: str) -> NoReturn:
    """Say which step has no plain twin."""
    raise ExportError(message, stage=stage, fix=fix)


def to_sklearn(twins: Sequence[tuple[str, Any]], domain: Domain, invalid: str) -> Pipeline:
    """Released twins, with the domain at the entrance and what becomes of improper cells, as a plain pipeline.

    :class:`ExportError` names the first step that has no plain twin.
    """
    flow, steps = _entrance(twins, domain, invalid), []
    if flow.parts:
        if any(block.reads_cells for block in _blocks(twins[0][1])):
            refuse(
                "what is done with numbers at the entrance would be done with labels.",
                twins[0][0],
                "invalid='error'.",
            )
        steps.append(("entrance", _joined(flow.parts)))
    for name, twin in twins:
        if isinstance(twin, Mechanism):
            steps.append((name, _model(name, twin, flow)))
        elif hasattr(twin, "map_rows"):
            flow = _behind(name, twin, replace(flow, parts=(), names=None if steps else domain.feature_names))
            if flow.parts:
                steps.append((name, _joined(flow.parts)))
    if not steps:
        refuse("none of the steps maps new rows.", twins[-1][0], "the original rows are what they map to.")
    return fitted.named(Pipeline(_unique(steps)), domain.feature_names)


def _entrance(twins: Sequence[tuple[str, Any]], domain: Domain, invalid: str) -> Flow:
    """What becomes of raw cells; labels that a ``ColumnMap`` reads have no bound."""
    flow = Flow.of(domain.d, gaps=any(getattr(twin, "fills_gaps", False) for _, twin in twins))
    if invalid == "repair" and not flow.gaps:
        flow = flow.then(fitted.imputer(np.zeros(domain.d)))
    if domain.entry_bound is not None:
        high = np.full(domain.d, domain.entry_bound)
        flow = flow.within(-high, high, fitted.box(-high, high))
    return flow.in_ball(domain.row_norm, "entrance")


def _joined(parts: Sequence[Any]) -> Any:
    return parts[0] if len(parts) == 1 else make_pipeline(*parts)


def _unique(steps: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """The steps; a user's step may be called entrance as well."""
    names = [name for name, _ in steps]
    return [("entrance-0", steps[0][1]), *steps[1:]] if names.count("entrance") > 1 else steps


def _behind(name: str, twin: Any, flow: Flow) -> Flow:
    """Behind the plain twin of a stage."""
    make = STAGES.get(type(twin))
    if make is None:
        refuse(
            f"{type(twin).__name__} does what no fitted object of scikit-learn does.",
            name,
            f"leave it out, or use {', '.join(sorted(kind.__name__ for kind in STAGES))}; export() takes every step.",
        )
    if not twin.__sklearn_is_fitted__():
        refuse("nothing was released that would map new rows.", name, "statistics='noisy'.")
    return make(name, twin, flow)


def _min_max(name: str, twin: Any, flow: Flow) -> Flow:
    start, end = twin.feature_range

    def scaled(flow: Flow, at: Any) -> Flow:
        low, high = np.full(flow.d, float(start)), np.full(flow.d, float(end))
        return flow.within(low, high, fitted.range_scaler(twin.low_[at], twin.high_[at], (start, end)))

    return _of_columns(twin.columns_, flow, scaled)


def _of_columns(columns: list[int] | None, flow: Flow, behind: Callable[[Flow, Any], Flow]) -> Flow:
    """Behind a stage that maps some columns, or all, and leaves the others as they are."""
    if columns is None:
        return behind(flow, slice(None))
    if not columns:
        return flow
    part = behind(Flow(flow.low[columns], flow.high[columns], flow.norm, flow.gaps), columns)
    low, high = flow.low.copy(), flow.high.copy()
    low[columns], high[columns] = part.low, part.high
    made = fitted.on_columns(make_pipeline(*part.parts), columns, flow.d)
    return flow.then(made, low=low, high=high, norm=math.inf)


def _scaled(flow: Flow, centre: Array, scale: Array) -> Flow:
    known = {"low": (flow.low - centre) / scale, "high": (flow.high - centre) / scale, "norm": math.inf}
    return flow.then(fitted.scaler(centre, scale), **known)


def _standard(name: str, twin: Any, flow: Flow) -> Flow:
    def scaled(flow: Flow, at: Any) -> Flow:
        return _scaled(flow, twin.mean_[at], twin.scale_[at]).in_ball(twin.clip_, name)

    return _of_columns(twin.columns_, flow, scaled)


def _robust(name: str, twin: Any, flow: Flow) -> Flow:
    def scaled(flow: Flow, at: Any) -> Flow:
        flow, clip = _scaled(flow, twin.center_[at], twin.scale_[at]), np.full(flow.d, twin.clip_)
        return flow.within(-clip, clip, fitted.box(-clip, clip))

    return _of_columns(twin.columns_, flow, scaled)


def _imputed(name: str, twin: Any, flow: Flow) -> Flow:
    values = getattr(twin, f"{twin.statistic_names[0]}_")
    known = {"low": np.minimum(flow.low, values), "high": np.maximum(flow.high, values), "norm": math.inf}
    strategy = "median" if isinstance(twin, transformers.MedianImputer) else "mean"
    return flow.then(fitted.imputer(values, strategy), gaps=False, **known).in_ball(twin.norm_, name)


def _clipped(name: str, twin: Any, flow: Flow) -> Flow:
    return flow.in_ball(twin.max_norm_, name)


def _pca(name: str, twin: Any, flow: Flow) -> Flow:
    components, mean, matrix = twin.components_, twin.mean_, twin.projection_
    if components is None:
        return flow
    keeps = twin.output == "rank"
    matrix = components.T @ components if matrix is None else matrix
    parts = [fitted.rotation(matrix, mean)]
    offset = np.zeros(matrix.shape[1]) if mean is None else -mean @ matrix
    if keeps and mean is not None:
        parts.append(fitted.scaler(-mean, np.ones(flow.d)))
        offset = offset + mean
    return flow.spread(matrix, offset, *parts)


def _soft_pca(name: str, twin: Any, flow: Flow) -> Flow:
    return flow.spread(twin.shrinkage_, np.zeros(flow.d), fitted.linear(twin.shrinkage_))


def _projected(name: str, twin: Any, flow: Flow) -> Flow:
    matrix = twin.components_.toarray() if issparse(twin.components_) else twin.components_
    return flow.spread(matrix.T, np.zeros(len(matrix)), fitted.projection(matrix))


def _row_map(name: str, twin: Any, flow: Flow) -> Flow:
    if twin.function is not None:
        plain = FunctionTransformer(twin.function, validate=not flow.gaps).fit(np.zeros((1, flow.d)))
        flow = Flow.of(len(twin.low_), gaps=flow.gaps).then(*flow.parts, plain)
    if twin.out_norm is not None:
        return flow.in_ball(twin.out_norm, name)
    return flow.within(twin.low_, twin.high_, fitted.box(twin.low_, twin.high_))


def _public(name: str, twin: Any, flow: Flow) -> Flow:
    inner = twin.transformer.estimator if isinstance(twin.transformer, FrozenEstimator) else twin.transformer
    behind = Flow.of(twin.width_, gaps=flow.gaps and not twin.fills_)
    return behind.then(*flow.parts, deepcopy(inner)).in_ball(twin.norm_, name)


def _blocks(twin: Any) -> list[Block]:
    """Sets of columns that a stage treats by themselves."""
    return [block for block, *_ in twin.located()] if hasattr(twin, "located") else []


def _columns(name: str, twin: Any, flow: Flow) -> Flow:
    made, ends = plain_columns(name, twin, flow.names)
    ranges = np.concatenate([end.ranges for end in ends])
    norm = math.sqrt(sum(end.square for end in ends))
    gaps = flow.gaps and not all(block.fills for block in _blocks(twin))
    behind = Flow.of(len(ranges), gaps=gaps).within(*ranges.T, *flow.parts, made)
    return replace(behind, norm=math.inf if math.isnan(norm) else norm).in_ball(twin.norm_, name)


STAGES: dict[type, Callable[[str, Any, Flow], Flow]] = {
    ColumnMap: _columns,
    transformers.CategoryEncoder: _columns,
    transformers.MeanImputer: _imputed,
    transformers.MedianImputer: _imputed,
    transformers.MinMaxScaler: _min_max,
    transformers.NormClipper: _clipped,
    transformers.PCA: _pca,
    transformers.Public: _public,
    transformers.RandomProjection: _projected,
    transformers.RobustScaler: _robust,
    transformers.RowMap: _row_map,
    transformers.SoftPCA: _soft_pca,
    transformers.StandardScaler: _standard,
    transformers.TrimmedMeanImputer: _imputed,
}
"""What each stage becomes."""

MODELS: dict[type, type] = {
    mechanisms.GammaRegressor: linear_model.GammaRegressor,
    mechanisms.LinearRegression: linear_model.LinearRegression,
    mechanisms.LinearSVC: svm.LinearSVC,
    mechanisms.LogisticRegression: linear_model.LogisticRegression,
    mechanisms.PoissonRegressor: linear_model.PoissonRegressor,
    mechanisms.Ridge: linear_model.Ridge,
    mechanisms.TweedieRegressor: linear_model.TweedieRegressor,
}
"""What each model becomes."""


def _model(name: str, twin: Any, flow: Flow) -> Any:
    kind = MODELS.get(type(twin))
    if kind is None:
        refuse(
            f"{type(twin).__name__} predicts with no model of scikit-learn's.",
            name,
            f"{', '.join(sorted(model.__name__ for model in MODELS))} as the last step; export() takes every step.",
        )
    given = {"power": twin.power, "link": "log"} if kind is linear_model.TweedieRegressor else {}
    answers = getattr(twin, "classes_", np.ones(2))
    known = {"classes_": answers} if hasattr(twin, "classes_") else {}
    coef, intercept = twin.coef_, np.asarray(twin.intercept_)[()]  # a NumPy number of one score
    parts = []
    if hasattr(twin, "y_range_"):  # predictions are clipped, and so scores
        low, high = (_score(kind, end) - intercept for end in twin.y_range_)
        if flow.reach * float(np.linalg.norm(coef)) > min(-low, high):
            score, within = fitted.linear(coef[:, None]), fitted.box(np.array([low]), np.array([high]))
            parts, coef = [score, within], np.ones(1)
    made = fitted.model(kind(**given), answers, coef.shape[-1], coef_=coef, intercept_=intercept, **known)
    return _joined([*parts, made])


def _score(kind: type, target: float) -> float:
    """The score at which a regressor predicts this target, or nearly 0."""
    if kind in (linear_model.LinearRegression, linear_model.Ridge):
        return target
    return math.log(target) if target > _LEAST else math.log(_LEAST)
