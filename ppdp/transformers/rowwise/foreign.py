"""What is known of scikit-learn's fitted transformers: ``docs/theory/row-wise.md``, Lemma K."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ppdp.bounds.projection import operator_norm
from ppdp.core.rounding import apply_error, inflate
from ppdp.transformers.project.product import product

__all__ = ["function_of", "known_map", "names_out"]

Array = NDArray[np.float64]

SUBTRACTS = {"StandardScaler": "mean_", "RobustScaler": "center_", "MaxAbsScaler": None}
PROJECTS = {"PCA", "IncrementalPCA", "TruncatedSVD", "GaussianRandomProjection", "SparseRandomProjection"}


@dataclass(frozen=True, slots=True)
class Known:
    """A Lipschitz constant that follows from fitted attributes, and the norm of what is subtracted from a row first."""

    lipschitz: float
    centre: float = 0.0

    def rounding(self, norm: float, d: int, width: int) -> float:
        """L2 error of one row of norm at most ``norm``."""
        return apply_error(d, math.sqrt(min(d, width)) * self.lipschitz * (norm + self.centre))


def known_map(transformer: Any) -> Known | None:
    """What is known of a transformer of exactly one of scikit-learn's classes named here; None of any other."""
    name = _own_name(transformer)
    if name in SUBTRACTS:
        scale = getattr(transformer, "scale_", None)
        slope = 1.0 if scale is None else float((1 / np.abs(_precise(scale))).max())
        return Known(inflate(slope), _norm(getattr(transformer, SUBTRACTS[name] or "", None)))
    if name == "MinMaxScaler":
        scale = np.abs(_precise(transformer.scale_))
        return Known(inflate(float(scale.max())), _norm(_precise(transformer.min_) / scale))
    if name == "SimpleImputer" and isinstance(transformer.missing_values, float):
        return Known(1.0) if math.isnan(transformer.missing_values) else None
    if name in PROJECTS:
        matrix, centre = _projection(transformer)
        return Known(operator_norm(matrix), _norm(centre))
    return None


def _own_name(transformer: Any) -> str:
    """Name of the class if it is scikit-learn's own."""
    kind = type(transformer)
    return kind.__name__ if kind.__module__.partition(".")[0] == "sklearn" else ""


def _norm(row: Any) -> float:
    return 0.0 if row is None else inflate(float(np.linalg.norm(_precise(row))))


def _precise(values: Any) -> Array:
    """A transformer that was fitted on float32 has float32 attributes."""
    return np.asarray(values, dtype=np.float64)


def _projection(transformer: Any) -> tuple[Any, Array | None]:
    """A and c of ``x -> A (x - c)``."""
    matrix, centre = transformer.components_.astype(np.float64), getattr(transformer, "mean_", None)
    if getattr(transformer, "whiten", False):
        variance = transformer.explained_variance_
        matrix /= np.maximum(np.sqrt(_precise(variance)), np.finfo(variance.dtype).eps)[:, None]
    return matrix, None if centre is None else _precise(centre)


def function_of(transformer: Any) -> Callable[[Array], Array]:
    """``transform`` of arrays, quiet and dense; where it is a known projection, with equal bits for equal rows."""
    if _own_name(transformer) in PROJECTS:
        matrix, centre = _projection(transformer)
        shift = 0.0 if centre is None else product(centre[None, :], matrix)
        return lambda X: np.where(np.isnan(X).any(axis=1, keepdims=True), np.nan, product(X, matrix) - shift)

    def function(X: Array) -> Array:
        with warnings.catch_warnings():  # a warning would be an answer about the rows
            warnings.simplefilter("ignore")
            out = transformer.transform(_framed(X, transformer))
        return np.asarray(out.toarray() if issparse(out) else out, dtype=np.float64)

    return function


def _framed(X: Array, transformer: Any) -> Any:
    """The rows in the form in which the transformer saw those that it was fitted on."""
    if not hasattr(transformer, "feature_names_in_"):
        return X
    import pandas as pd

    return pd.DataFrame(X, columns=transformer.feature_names_in_)


def names_out(transformer: Any, names: Sequence[str] | None) -> list[str] | None:
    """Names of the columns that come out, if the transformer knows."""
    if names is None:
        return None
    try:
        return [str(name) for name in transformer.get_feature_names_out(np.asarray(names, dtype=object))]
    except Exception:
        return None
