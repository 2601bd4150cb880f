"""A release as a fitted pipeline of scikit-learn: each step becomes plain objects that do the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from itertools import accumulate, pairwise
from typing import Any, NoReturn

import numpy as np
from scipy.sparse import issparse
from sklearn import cluster, linear_model, svm
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler
from sklearn.utils.multiclass import type_of_target

from ppdp import mechanisms, transformers
from ppdp.core.domain import Domain
from ppdp.data.rows import Array
from ppdp.exceptions import ExportError
from ppdp.interop.sklearn import plain_objects as plain
from ppdp.interop.sklearn import plain_trees
from ppdp.interop.sklearn.plain_columns import bins, naive_bayes, plain_columns, ranks, splines
from ppdp.mechanisms.base import Mechanism
from ppdp.mechanisms.target_functions import FUNCTIONS
from ppdp.transformers.columns.column_map import ColumnMap
from ppdp.transformers.columns.column_subset import ColumnSplit, ColumnSubset

_LEAST = math.exp(-700)  # prediction of a generalised linear model
_SLACK = 1 + 1e-13  # what rounding may add to the norm of rows that a clip would leave as they are

Objects = list[Any]


def to_sklearn(steps: Sequence[tuple[str, Any]], domains: Sequence[Domain], invalid: str) -> Pipeline:
    """Released steps as a plain pipeline, with the domain before each; refused at the first without a counterpart."""
    exported: list[tuple[str, Any]] = []
    entrance = _entrance(steps, domains[0], invalid)
    if entrance:
        if any(block.reads_cells for block, *_ in getattr(steps[0][1], "located", list)()):
            fix = "on_invalid='error'."
            _refuse("what is done with numbers at the entrance would be done with labels.", steps[0][0], fix)
        name = "entrance-0" if "entrance" in dict(steps) else "entrance"  # a user's step may be called so
        exported.append((name, plain.joined(entrance)))
    for i, ((name, step), domain) in enumerate(zip(steps, domains)):
        fills = any(getattr(later, "fills_gaps", False) for _, later in steps[i + 1 :])
        if isinstance(getattr(step, "stage", step), ColumnMap) and not fills:
            domain = domain.but(max_missing=0)  # no row with missing values gets through
        if isinstance(step, Mechanism):
            model, function = _model(name, step, domain), getattr(step, "target_func", None)
            if getattr(step, "threshold", None) is not None:
                model = plain.with_threshold(model, step.threshold_)
            exported.append((name, model if function is None else plain.of_targets(model, *FUNCTIONS[function])))
        elif hasattr(step, "map_rows"):
            objects = _objects(name, step, domain.but(feature_names=None) if exported else domain)
            exported += [(name, plain.joined(objects))] if objects else []
    if not exported:
        _refuse("none of the steps maps new rows.", steps[-1][0], "the original rows are what they map to.")
    return plain.named(Pipeline(exported), domains[0].feature_names)


def _refuse(message: str, stage: str, fix: str) -> NoReturn:
    raise ExportError(message, stage=stage, fix=fix)


def _entrance(steps: Sequence[tuple[str, Any]], domain: Domain, invalid: str) -> Objects:
    """What becomes of raw cells; labels that a ``ColumnMap`` reads have no bound."""
    objects: Objects = []
    if invalid == "repair" and not any(getattr(step, "fills_gaps", False) for _, step in steps):
        objects.append(plain.imputer(np.zeros(domain.d)))
    if domain.entry_bound is not None:
        high = np.full(domain.d, domain.entry_bound)
        objects.append(plain.box(-high, high))
    return objects + _norm(domain.row_norm, domain.d)


def _norm(max_norm: float | None, d: int, reach: Array | float = math.inf) -> Objects:
    """A clip of rows to a norm, which is left out where no row reaches it, given bounds of entries."""
    longest = float(np.linalg.norm(np.broadcast_to(reach, d)))
    return [] if max_norm is None or longest <= max_norm * _SLACK else [plain.norm_clip(max_norm, d)]


def _objects(name: str, step: Any, domain: Domain) -> Objects:
    """The plain objects that do what a stage does."""
    make = STAGES.get(type(step))
    if make is None:
        _refuse(
            f"{type(step).__name__} does what no fitted object of scikit-learn does.",
            name,
            f"leave it out, or use {', '.join(sorted(kind.__name__ for kind in STAGES))}; export() takes every step.",
        )
    if not step.__sklearn_is_fitted__():
        _refuse("nothing was released that would map new rows.", name, "fit_mode='noisy'.")
    return make(name, step, domain)


def _entries(domain: Domain) -> float:
    """The largest absolute value of an entry."""
    return min(domain.entry_bound or math.inf, domain.row_norm or math.inf)


def _of_columns(step: Any, make: Callable[[Any], Objects]) -> Objects:
    """A stage that maps some columns, or all, and leaves the others as they are."""
    if step.columns_ is None:
        return make(slice(None))
    return [plain.on_columns(make(step.columns_), step.columns_, step.n_features_in_)] if step.columns_ else []


def _standard(name: str, step: Any, domain: Domain) -> Objects:
    def scaled(at: Any) -> Objects:
        mean, scale = step.mean_[at], step.scale_[at]
        reach = (_entries(domain) + np.abs(mean)) / scale
        return [plain.scaler(mean, scale), *_norm(step.clip_, len(mean), reach)]

    return _of_columns(step, scaled)


def _robust(name: str, step: Any, domain: Domain) -> Objects:
    def scaled(at: Any) -> Objects:
        clip = np.full(len(step.center_[at]), step.clip_)
        return [plain.scaler(step.center_[at], step.scale_[at]), plain.box(-clip, clip)]

    return _of_columns(step, scaled)


def _imputed(name: str, step: Any, domain: Domain) -> Objects:
    values = getattr(step, f"{step.statistic_names[0]}_")
    strategy = "median" if isinstance(step, transformers.MedianImputer) else "mean"
    reach = np.maximum(_entries(domain), np.abs(values))
    return [plain.imputer(values, strategy), *_norm(step.norm_, len(values), reach)]


def _pca(name: str, step: Any, domain: Domain) -> Objects:
    components, mean, matrix = step.components_, step.mean_, step.projection_
    if components is None:
        return []
    matrix = components.T @ components if matrix is None else matrix
    one = np.ones(step.n_features_in_)
    centred = [] if mean is None else [plain.scaler(mean, one)]
    back = [plain.scaler(-mean, one)] if step.output == "rank" and mean is not None else []
    return [*centred, plain.linear(matrix), *back]


def _projected(name: str, step: Any, domain: Domain) -> Objects:
    matrix = step.components_.toarray() if issparse(step.components_) else step.components_
    return [plain.linear(matrix.T)]


def _row_map(name: str, step: Any, domain: Domain) -> Objects:
    d, objects = step.n_features_in_, []
    if step.function is not None:
        objects = [plain.scaler(np.zeros(d), np.ones(d)), FunctionTransformer(step.function).fit(np.zeros((1, d)))]
    width = len(step.low_)
    return objects + (_norm(step.out_norm, width) if step.out_norm is not None else [plain.box(step.low_, step.high_)])


def _public(name: str, step: Any, domain: Domain) -> Objects:
    inner = step.transformer.estimator if isinstance(step.transformer, FrozenEstimator) else step.transformer
    return [deepcopy(inner), *_norm(step.norm_, step.width_)]


def _columns(name: str, step: Any, domain: Domain) -> Objects:
    bounded = getattr(step, "max_norm", None) is None  # the norm that follows from ranges needs no clip
    width = len(step.get_feature_names_out())
    made = plain_columns(name, step, domain.feature_names, gaps=domain.max_missing != 0)
    return [made, *([] if bounded else _norm(step.norm_, width))]


def _split(name: str, step: Any, domain: Domain) -> Objects:
    identity = step.order_ == list(range(step.n_features_in_))
    objects: Objects = [] if identity else [plain.select(step.order_, step.n_features_in_, domain.feature_names)]
    ends = [0, *accumulate(step.widths_)]
    for (start, stop), norm, fill in zip(pairwise(ends), step.norms_, step.filled_):
        own = [plain.imputer(np.zeros(stop - start))] if fill else []
        own += _norm(norm, stop - start) if norm else []
        objects += [plain.beside(own, start, stop, ends[-1])] if own else []
    return objects


def _subset(name: str, step: Any, domain: Domain) -> Objects:
    if step.behind_ is None:
        return []
    d = step.n_features_in_
    norm, entry = step.bounds_
    width, gaps = d - step.behind_ - step.start_, domain.max_missing
    here = Domain(n_features=width, row_norm=norm, entry_bound=entry, max_missing=gaps)
    own = _objects(name, step.stage, here)
    return [plain.beside(own, step.start_, d - step.behind_, d)] if own else []


def _quantiles(name: str, step: Any, domain: Domain) -> Objects:
    if step.columns_ == []:
        return []
    if isinstance(step, transformers.QuantileTransformer):
        return [ranks(step)]
    if domain.max_missing != 0:
        _refuse("rows may have missing values here, which scikit-learn refuses.", name, "an imputer in front.")
    return [(splines if isinstance(step, transformers.SplineTransformer) else bins)(step)]


def _selected(name: str, step: Any, domain: Domain) -> Objects:
    chosen = step.get_support()
    best = SelectKBest(k=int(chosen.sum()))
    return [plain.with_attributes(best, scores_=chosen.astype(float), n_features_in_=len(chosen))]


def _zeroed(step: Any) -> Any:
    scale = step.get_support().astype(float)
    return plain.with_attributes(MinMaxScaler(), scale_=scale, min_=np.zeros(len(scale)), n_features_in_=len(scale))


def _clusters(step: Any) -> Any:
    centers = step.cluster_centers_
    made_up = np.arange(float(len(centers)))[:, None] * np.ones(centers.shape[1])
    plain_clusters = cluster.KMeans(len(centers), init=made_up, n_init=1).fit(made_up)
    del plain_clusters.labels_, plain_clusters.inertia_
    return plain.with_attributes(plain_clusters, cluster_centers_=centers)


STAGES: dict[type, Callable[[str, Any, Domain], Objects]] = {
    ColumnMap: _columns,
    ColumnSplit: _split,
    ColumnSubset: _subset,
    transformers.CategoryEncoder: _columns,
    transformers.ClusterDistances: lambda name, step, domain: [_clusters(step)],
    transformers.HashingVectorizer: _columns,
    transformers.KBinsDiscretizer: _quantiles,
    transformers.MeanImputer: _imputed,
    transformers.MedianImputer: _imputed,
    transformers.MinMaxScaler: lambda name, step, domain: _of_columns(
        step, lambda at: [plain.range_scaler(step.low_[at], step.high_[at], step.feature_range)]
    ),
    transformers.NormClipper: lambda name, step, domain: _norm(step.max_norm_, step.n_features_in_),
    transformers.PCA: _pca,
    transformers.Public: _public,
    transformers.QuantileTransformer: _quantiles,
    transformers.RandomProjection: _projected,
    transformers.RobustScaler: _robust,
    transformers.RowMap: _row_map,
    transformers.SelectKBest: _selected,
    transformers.SelectPercentile: _selected,
    transformers.SoftPCA: lambda name, step, domain: [plain.linear(step.shrinkage_)],
    transformers.SplineTransformer: _quantiles,
    transformers.StandardScaler: _standard,
    transformers.VarianceThreshold: lambda name, step, domain: [_zeroed(step)],
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
"""What each linear model becomes."""

TREES: dict[type, Callable[[Any], Any]] = {
    mechanisms.GradientBoostingClassifier: plain_trees.classifier,
    mechanisms.GradientBoostingRegressor: plain_trees.regressor,
}
"""What makes the trees of each model that is none."""

OTHERS: dict[type, Callable[[Any], Any]] = {**TREES, mechanisms.GaussianNB: naive_bayes, mechanisms.KMeans: _clusters}
"""What makes the object of each model that is not linear."""


def _model(name: str, step: Any, domain: Domain) -> Any:
    if type_of_target(getattr(step, "classes_", [0])) == "continuous":
        _refuse("scikit-learn takes labels with fractions for targets.", name, "classes of text or of whole numbers.")
    if type(step) in OTHERS:
        return OTHERS[type(step)](step)
    kind = MODELS.get(mechanisms.LogisticRegression if getattr(step, "calibration", None) else type(step))
    if kind is None:
        names = ", ".join(sorted(model.__name__ for model in (*MODELS, *OTHERS)))
        what = f"{type(step).__name__} predicts with no model of scikit-learn's."
        _refuse(what, name, f"{names} as the last step; export() takes every step.")
    given = {"power": step.power, "link": "log"} if kind is linear_model.TweedieRegressor else {}
    answers = getattr(step, "classes_", np.ones(2))
    known = {"classes_": answers} if hasattr(step, "classes_") else {}
    coef, intercept = step.coef_, np.asarray(step.intercept_)[()]  # a NumPy number of one score
    objects: Objects = []
    if hasattr(step, "y_range_"):  # predictions are clipped, and so scores
        low, high = (_score(kind, end) - intercept for end in step.learned_range_)
        if (domain.row_norm or math.inf) * float(np.linalg.norm(coef)) > min(-low, high):
            objects, coef = [plain.linear(coef[:, None]), plain.box(np.array([low]), np.array([high]))], np.ones(1)
    fitted = plain.model(kind(**given), answers, coef.shape[-1], coef_=coef, intercept_=intercept, **known)
    return plain.joined([*objects, fitted])


def _score(kind: type, target: float) -> float:
    """The score at which a regressor predicts this target, or nearly 0."""
    if kind in (linear_model.LinearRegression, linear_model.Ridge):
        return target
    return math.log(target) if target > _LEAST else math.log(_LEAST)
