"""Fitted objects of scikit-learn with given numbers, all of kinds that converters to other formats know.

Each is fitted to a made-up row, which leaves whatever else scikit-learn expects, and then gets its numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, KernelPCA, TruncatedSVD
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, StandardScaler
from sklearn.random_projection import GaussianRandomProjection

from ppdp.data.rows import Array

FAR = 1e4  # in radii: a row with such an entry is outside of the ball, whatever its other entries are
SPECK = 1e-14  # in radii, stands beside every row: scikit-learn does not normalise shorter ones, others divide by zero


def imputer(values: Array, strategy: str = "mean") -> Any:
    """Gaps become a value for each column."""
    return SimpleImputer(strategy=strategy).fit(values[None, :])


def scaler(mean: Array, scale: Array) -> Any:
    """``x -> (x - mean) / scale``."""
    return _with(StandardScaler().fit(np.zeros((1, len(mean)))), mean_=mean, scale_=scale, var_=scale**2)


def clipper(low: Array, high: Array, interval: tuple[float, float]) -> Any:
    """Columns are clipped to ranges, which are mapped onto an interval."""
    start, end = interval
    scale = (end - start) / (high - low)
    made = MinMaxScaler((start, end), clip=True).fit(np.vstack([low, high]))
    return _with(made, scale_=scale, min_=start - low * scale)  # however narrow


def range_scaler(low: Array, high: Array, interval: tuple[float, float]) -> Any:
    """The same, subtracted before it is multiplied: ranges may be far from zero."""
    zero, one = np.zeros(len(low)), np.ones(len(low))
    return make_pipeline(scaler(low, high - low), clipper(zero, one, interval))


def box(low: Array, high: Array) -> Any:
    """Columns are clipped to ranges, and keep their units."""
    if np.ptp(low) == 0 == np.ptp(high):
        return clipper(low, high, (low[0], high[0]))
    width = high - low
    return make_pipeline(range_scaler(low, high, (0.0, 1.0)), scaler(-low / width, 1 / width))


def on_columns(made: Any, columns: Sequence[int], d: int) -> Any:
    """The object for some of the columns, which stay in their places; the others are as they were."""
    rest = [column for column in range(d) if column not in set(columns)]
    back = np.argsort([*columns, *rest]).tolist()
    row, parts = np.zeros((1, d)), [("some", made, list(columns)), ("rest", "passthrough", rest)]
    apart = ColumnTransformer([("some", FrozenEstimator(made), list(columns)), parts[1]]).fit(row)
    apart.transformers, apart.transformers_ = parts, [parts[0], *apart.transformers_[1:]]
    return make_pipeline(apart, ColumnTransformer([("columns", "passthrough", back)]).fit(row))


def rotation(matrix: Array, centre: Array | None) -> Any:
    """``x -> (x - centre) @ matrix``, as PCA does it."""
    d, width = matrix.shape
    one = np.ones(width)
    mean = np.zeros(d) if centre is None else centre
    return _with(
        PCA(1).fit(np.vstack([np.ones(d), -np.ones(d)])),
        components_=matrix.T,
        mean_=mean,
        n_components=width,
        n_components_=width,
        explained_variance_=one,
        explained_variance_ratio_=one / width,
        singular_values_=one,
    )


def linear(matrix: Array) -> Any:
    """``x -> x @ matrix``."""
    return _with(
        TruncatedSVD(1).fit(np.eye(2)),
        components_=matrix.T,
        n_components=matrix.shape[1],
        n_features_in_=len(matrix),
    )


def projection(components: Array) -> Any:
    """``x -> x @ components.T``, as random projections do it."""
    made = GaussianRandomProjection(1).fit(np.zeros((1, components.shape[1])))
    return _with(made, components_=components, n_components_=len(components))


def model(kind: Any, answers: Any, d: int, **attributes: Any) -> Any:
    """A linear model, fitted to rows of zeros with these answers before it gets its attributes."""
    with warnings.catch_warnings():  # what their solvers say of each other's options
        warnings.simplefilter("ignore")
        return _with(kind.fit(np.zeros((len(answers), d)), answers), **attributes)


def ball(d: int, radius: float) -> Any:
    """Rows are projected on a ball: ``x -> u min(|x|, R)``, u the direction of x.

    Lengths and products are differences of squares, ``4 a b = (a + b)² - (a - b)²``, which a polynomial kernel gives;
    their weights add up to 0, so that its centring changes nothing. Good to some 1e-14 R.
    """
    unit, one, zero = np.eye(d + 1), np.ones((d + 1, 1)), np.zeros(d + 1)
    shift, scale = np.append(zero[:d], -SPECK), np.append(np.full(d, radius), 1.0)
    direction = make_pipeline(Normalizer("l1"), Normalizer("l2")).fit(zero[None, :])  # the first against overflows
    near = FeatureUnion([("near", box(zero - FAR, zero + FAR)), ("direction", direction)])
    length = make_pipeline(
        near,
        _products(np.block([[unit, unit], [unit, -unit]]), np.vstack([one, -one]) / 4),  # the inner product of both
        clipper(np.zeros(1), np.ones(1), (0.0, 1.0)),
    )
    polar = FeatureUnion([("direction", direction), ("length", length)])
    some = unit[:, :d] * (radius / 4)
    rows = _products(np.block([[unit, one], [unit, -one]]), np.vstack([some, -some]))
    return Pipeline(
        [("beside", make_pipeline(linear(unit[:d]), scaler(shift, scale))), ("polar", polar), ("rows", rows)]
    )


def named(made: Any, names: Any) -> Any:
    """The object, which sees columns of these names first."""
    if names is None:
        return made
    first = made
    while isinstance(first, Pipeline):
        first = first.steps[0][1]
    first.feature_names_in_ = np.asarray(names, dtype=object)
    return made


def _products(sums: Array, weights: Array) -> Any:
    """``x -> (x @ sums.T)² @ weights``."""
    kernel = KernelPCA(1, kernel="poly", degree=2, gamma=1.0, coef0=0.0, eigen_solver="dense").fit(np.zeros_like(sums))
    return _with(kernel, X_fit_=sums, eigenvectors_=weights, eigenvalues_=np.ones(weights.shape[1]))


def _with(made: Any, **attributes: Any) -> Any:
    for name, value in attributes.items():
        setattr(made, name, value)
    return made
