"""The one step of a plain pipeline that scikit-learn has no transformer for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import validate_data

from ppdp.data.rows import Array
from ppdp.data.statistics import clip_norms


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
