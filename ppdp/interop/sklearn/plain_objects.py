"""Fitted objects of scikit-learn with given numbers, all of kinds that converters to other formats know.

For the one step that scikit-learn has no transformer for there is :class:`NormClip`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import TruncatedSVD
from sklearn.impute import SimpleImputer
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.utils.validation import validate_data

from ppdp.data.rows import Array
from ppdp.data.statistics import clip_norms


def joined(objects: Sequence[Any]) -> Any:
    """One after the other."""
    return objects[0] if len(objects) == 1 else make_pipeline(*objects)


def imputer(values: Array, strategy: str = "mean") -> Any:
    """Missing values become a value for each column."""
    return SimpleImputer(strategy=strategy).fit(values[None, :])


def scaler(mean: Array, scale: Array) -> Any:
    """``x -> (x - mean) / scale``."""
    fitted = StandardScaler().fit(np.zeros((1, len(mean))))
    return with_attributes(fitted, mean_=mean, scale_=scale, var_=scale**2)


def range_scaler(low: Array, high: Array, interval: Sequence[float]) -> Any:
    """Columns are clipped to ranges, which are mapped onto an interval; ranges may be far from zero."""
    zero, one = np.zeros((1, len(low))), np.ones((1, len(low)))
    clipper = MinMaxScaler(tuple(interval), clip=True).fit(np.vstack([zero, one]))
    return make_pipeline(scaler(low, high - low), clipper)


def box(low: Array, high: Array) -> Any:
    """Columns are clipped to ranges, and keep their units."""
    if np.ptp(low) == 0 == np.ptp(high):
        return MinMaxScaler((low[0], high[0]), clip=True).fit(np.vstack([low, high]))
    width = high - low
    return make_pipeline(range_scaler(low, high, (0.0, 1.0)), scaler(-low / width, 1 / width))


def norm_clip(max_norm: float, d: int) -> Any:
    """Rows are shortened to a norm."""
    return NormClip(max_norm).fit(np.zeros((1, d)))


def linear(matrix: Array) -> Any:
    """``x -> x @ matrix``."""
    return with_attributes(TruncatedSVD(matrix.shape[1]), components_=matrix.T, n_features_in_=len(matrix))


def select(columns: Sequence[int], d: int, names: Sequence[str] | None = None) -> Any:
    """Some of d columns, which may have names, in this order."""
    row: Any = np.zeros((1, d))
    taken: Any = list(columns)
    if names is not None:
        import pandas as pd

        row, taken = pd.DataFrame(row, columns=list(names)), [names[column] for column in columns]
    return ColumnTransformer([("columns", "passthrough", taken)]).fit(row)


def texts(vectorizer: Any, column: int, d: int, names: Sequence[str] | None = None) -> Any:
    """What a vectorizer makes of one of d columns, which may have names."""
    row: Any = np.full((1, d), "", dtype=object)
    taken: Any = column
    if names is not None:
        import pandas as pd

        row, taken = pd.DataFrame(row, columns=list(names)), names[column]
    return ColumnTransformer([("texts", vectorizer, taken)], sparse_threshold=0).fit(row)


def on_columns(objects: Sequence[Any], columns: Sequence[int], d: int) -> Any:
    """The objects for some of the columns, which stay in their places; the others are as they were."""
    rest = [column for column in range(d) if column not in set(columns)]
    some = make_pipeline(select(columns, d), *objects)
    union = FeatureUnion([("some", some), *([("rest", select(rest, d))] if rest else [])])
    return make_pipeline(union, select(np.argsort([*columns, *rest]).tolist(), d))


def beside(objects: Sequence[Any], start: int, stop: int, d: int) -> Any:
    """The objects for some neighbouring columns, which may become others; those beside them are as they were."""
    parts = [("before", range(start), ()), ("own", range(start, stop), objects), ("behind", range(stop, d), ())]
    chains = [(name, make_pipeline(select(list(own), d), *made)) for name, own, made in parts if len(own)]
    return FeatureUnion(chains) if len(chains) > 1 else chains[0][1]


def model(kind: Any, answers: Any, d: int, **attributes: Any) -> Any:
    """A linear model, fitted to rows of zeros with these answers before it gets its attributes."""
    with warnings.catch_warnings():  # what their solvers say of each other's options
        warnings.simplefilter("ignore")
        return with_attributes(kind.fit(np.zeros((len(answers), d)), answers), **attributes)


def of_targets(regressor: Any, function: Any, inverse: Any) -> Any:
    """A regressor that has learned a function of the targets, and predicts targets."""
    around = TransformedTargetRegressor(regressor, func=function, inverse_func=inverse, check_inverse=False)
    way = FunctionTransformer(function, inverse, validate=True).fit(np.ones((1, 1)))
    return with_attributes(around, regressor_=regressor, transformer_=way, _training_dim=1)


def with_threshold(classifier: Any, threshold: float) -> Any:
    """A classifier that predicts the second class from this probability on."""
    around = FixedThresholdClassifier(classifier, threshold=threshold, response_method="predict_proba")
    return with_attributes(around, estimator_=classifier)


def named(pipeline: Any, names: Any) -> Any:
    """The pipeline, which sees columns of these names first."""
    first = pipeline
    while isinstance(first, Pipeline):
        first = first.steps[0][1]
    if names is not None and not hasattr(first, "feature_names_in_"):
        with_attributes(first, feature_names_in_=np.asarray(names, dtype=object))
    return pipeline


def with_attributes(estimator: Any, **attributes: Any) -> Any:
    """The estimator, once it has these fitted attributes."""
    for name, value in attributes.items():
        setattr(estimator, name, value)
    return estimator


class NormClip(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Rows that are longer than a norm are shortened to it; missing values stay.

    skl2onnx converts it by its own methods.

    Parameters
    ----------
    max_norm : float
        The largest norm of a row.
    """

    def __init__(self, max_norm: float = 1.0) -> None:
        self.max_norm = max_norm

    def fit(self, X: Any, y: Any = None) -> NormClip:
        """Only the number and names of columns are looked at."""
        validate_data(self, X, ensure_all_finite=False)
        return self

    def transform(self, X: Any) -> Array:
        """Shortened rows."""
        X = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite=False)
        return np.asarray(clip_norms(X, self.max_norm))

    def onnx_shape_calculator(self) -> Callable[..., None]:
        """For skl2onnx: what comes out has the type of what comes in."""

        def set_type(operator: Any) -> None:
            operator.outputs[0].type = type(operator.inputs[0].type)([None, self.n_features_in_])

        return set_type

    def onnx_converter(self) -> Callable[..., None]:
        """For skl2onnx: ``x -> u min(|x|, R)``, u the direction of x, which no square of a large number enters."""

        def convert(scope: Any, operator: Any, container: Any) -> None:
            from skl2onnx.algebra import onnx_ops as ops

            version, rows = {"op_version": container.target_opset}, operator.inputs[0]
            kind = np.float64 if "Double" in type(rows.type).__name__ else np.float32
            zero, radius = np.zeros(1, kind), np.array([self.max_norm], kind)
            gaps = ops.OnnxIsNaN(rows, **version)
            known = ops.OnnxWhere(gaps, zero, rows, **version)
            even = ops.OnnxLpNormalization(known, axis=1, p=1, **version)
            direction = ops.OnnxLpNormalization(even, axis=1, p=2, **version)
            ones = np.ones((self.n_features_in_, 1), kind)
            length = ops.OnnxMatMul(ops.OnnxMul(known, direction, **version), ones, **version)
            short = ops.OnnxMul(direction, ops.OnnxMin(length, radius, **version), **version)
            out = ops.OnnxWhere(gaps, rows, short, output_names=operator.outputs[:1], **version)
            out.add_to(scope, container)

        return convert
