"""Regression imputation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.core.checks import number
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain, largest_entry
from ppdp.core.rounding import eigen_error, product_error
from ppdp.data.rows import Array, Rows
from ppdp.data.statistics import clip_norms
from ppdp.data.summary import second_moment
from ppdp.exceptions import InvalidParameter
from ppdp.transformers.base import Statistics
from ppdp.transformers.fit_mode import FitMode, Measure, StatisticRequest
from ppdp.transformers.impute.column_imputers import Imputer, missing_margin

# Numbers held at once by the systems of equations of a block of rows.
BLOCK_SIZE = 2**22


@dataclass(eq=False, repr=False)
class RegressionImputer(Imputer):
    """Fill missing values by least squares on the observed columns, fitted on the complete rows.

    For every pattern of missing values, with ``C = (1/n) Σ x xᵀ`` over the complete rows, r the columns observed and J
    those missing: ``x_J = C_Jr (C_rr + νR²)⁻¹ x_r``, without an intercept. Columns that do not lie around 0 are filled
    far too close to it, unless a constant column stands beside them, ``RowMap(lambda X: np.c_[X, np.ones(len(X))],
    out_ranges=...)`` in front, and ν is small; of few rows :class:`MeanImputer` is better. A row without any observed
    entry is filled with 0. Filled entries are clipped to their bound, filled rows to the norm R.

    Parameters
    ----------
    alpha : float, optional
        The ridge ν, in units of ``row_norm²``; unconditional. Default: 0.1, unless ``min_eigenvalue`` is given. It does
        not fall with the rows: fills stay those of a ridge regression, where scikit-learn's ``IterativeImputer`` has
        next to none.
    min_eigenvalue : float, optional
        Instead of a ridge: the exact mode assumes that no eigenvalue of C is below this, in units of ``row_norm²``.
        At most 1 over the number of columns, because the eigenvalues add up to at most ``row_norm²``.
    max_missing : int or float, optional
        At most this many rows have missing values (a count, or a fraction if a float of at most 1); the smaller of this
        and the domain's is used. If it is below the number of rows, the exact mode assumes it as a condition.
    fit_mode : {"auto", "exact", "noisy"}, default="auto"
        Fit without noise, or from a released second moment. Outside a pipeline, "auto" is exact.

    Attributes
    ----------
    moment_ : ndarray of shape (n_features, n_features)
        C: private if fitted alone, released if taken from a fitted pipeline.
    ridge_ : float
        What is added to its diagonal.
    norm_, entry_bound_ : float or None
        Filled rows and entries are clipped to these public numbers.

    Notes
    -----
    **Guarantee** (``docs/theory/regression-imputation.md``). One replaced row moves every row with missing values by at
    most ``R √(1 + b²) / (ν n)``, b a public bound on the coefficients.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 1.0], [-1.0, -1.0], [0.5, 0.5], [0.4, np.nan]])
    >>> RegressionImputer(alpha=1e-3).fit_transform(X).round(2)
    array([[ 1. ,  1. ],
           [-1. , -1. ],
           [ 0.5,  0.5],
           [ 0.4,  0.4]])
    """

    alpha: float | None = None
    min_eigenvalue: float | None = None
    max_missing: int | float | None = None
    fit_mode: str = "auto"

    leakage = "low", "a regression of every column"
    multiplies_columns = True
    statistic_names = ("moment", "ridge", "norm", "entry_bound")

    def _parameters(self, domain: Domain) -> dict[str, Any]:
        """The public ν, which is the ridge or the least eigenvalue that is assumed, and which of them it is."""
        if self.min_eigenvalue is None:
            ridge = 0.1 if self.alpha is None else self.alpha
            return {"share": number("alpha", ridge, self, least=1e-6, most=1e3), "conditional": False}
        if self.alpha is not None:
            what = "alpha and min_eigenvalue exclude each other."
            fix = "give alpha for the unconditional form, or min_eigenvalue for the one with a condition."
            raise InvalidParameter(what, stage="RegressionImputer", fix=fix, parameter="alpha")
        share = number("min_eigenvalue", self.min_eigenvalue, self, least=1e-6, most=1 / domain.d)
        return {"share": share, "conditional": True}

    def _ways(self, domain: Domain, distance: Distance, limit: int, parameters: dict[str, Any]) -> dict[str, FitMode]:
        norm, request = float(domain.require("row_norm")), StatisticRequest("complete-matrix")
        measures: dict[str, Measure] = {
            "imputation.missing": partial(missing_margin, limit),
            "regression.eigenvalue": partial(eigenvalue_margin, parameters["share"] * norm**2, norm),
        }
        exact_parameters = {**parameters, "max_missing": limit}
        exact = FitMode.by("regression.exact", domain, distance, measures=measures, request=request, **exact_parameters)
        return {
            "noisy": FitMode.by("regression.public", domain, distance, request=request, **parameters),
            "exact": exact,
        }

    def prepare(self, rows: Rows, way: FitMode, domain: Domain) -> Statistics:
        if way.name == "public":  # nothing is observed to follow from
            zero = np.zeros((domain.d, domain.d))
            return {"moment": zero, "ridge": 1.0, "norm": domain.row_norm, "entry_bound": domain.entry_bound}
        return self.read(second_moment(rows, largest_entry(domain)) / rows.n, way, domain)

    def read(self, values: Any, way: FitMode, domain: Domain) -> Statistics:
        largest = float(domain.require("row_norm")) ** 2
        floor = float(way.parameters["share"]) * largest
        conditional = bool(way.parameters["conditional"])
        return {
            "moment": possible_moment(values, floor if conditional else 0.0, largest),
            "ridge": 0.0 if conditional else floor,
            "norm": domain.row_norm,
            "entry_bound": domain.entry_bound,
        }

    def map_rows(self, X: Array, statistics: Statistics) -> Array:
        rows = np.flatnonzero(np.isnan(X).any(axis=1))
        if rows.size == 0:
            return X
        filled = regressed(X[rows], statistics["moment"], statistics["ridge"])
        bound = statistics["entry_bound"]
        if bound is not None:
            filled = np.clip(filled, -bound, bound)
        result = X.copy()
        result[rows] = clip_norms(filled, statistics["norm"])
        return result


def possible_moment(matrix: Array, least: float, trace: float) -> Array:
    """The nearest matrix with eigenvalues of at least ``least`` and a trace of at most ``trace``, perhaps itself."""
    values, vectors = np.linalg.eigh(matrix)
    values = values - least
    sums = np.cumsum(values[::-1]) - (trace - least * values.size)
    values = np.maximum(values - max(0.0, (sums / np.arange(1, values.size + 1)).max()), 0.0) + least
    nearest = (vectors * values) @ vectors.T
    return np.asarray((nearest + nearest.T) / 2)


def regressed(X: Array, moment: Array, ridge: float) -> Array:
    """The rows with every missing value filled by the regression that fits its pattern of missing values.

    One system of equations per pattern, in blocks of rows that have similar patterns. Products are added entry by
    entry, so that equal rows are filled equally to the last bit wherever they stand.
    """
    gaps = np.isnan(X)
    patterns, of_row = np.unique(np.packbits(gaps, axis=1), axis=0, return_inverse=True)
    missing = np.unpackbits(patterns, axis=1, count=X.shape[1]).astype(bool)
    of_row = of_row.reshape(-1)
    order = np.argsort(of_row, kind="stable")
    result = np.nan_to_num(X, nan=0.0)
    step = max(1, BLOCK_SIZE // X.shape[1] ** 2)
    for start in range(0, len(X), step):
        rows = order[start : start + step]
        here, local = np.unique(of_row[rows], return_inverse=True)
        slopes = coefficients(moment, ridge, missing[here])
        observed, filled = result[rows], result[rows].copy()
        for column in range(X.shape[1]):
            filled += observed[:, column, None] * slopes[local, column]
        result[rows] = filled
    return result


def coefficients(moment: Array, ridge: float, missing: NDArray[np.bool_]) -> Array:
    """For each pattern, what entry k adds to entry j; zero unless k is observed and j is missing."""
    observed = ~missing
    identity = np.eye(moment.shape[0])
    both = observed[:, :, None] & observed[:, None, :]
    across = observed[:, :, None] & missing[:, None, :]
    return np.linalg.solve(np.where(both, moment + ridge * identity, identity), np.where(across, moment, 0.0))


def eigenvalue_margin(least: float, norm: float, rows: Rows, unit: float) -> float:
    """Margin of "the second moment of the complete rows has no eigenvalue below ``least``"."""
    smallest = float(np.linalg.eigvalsh(second_moment(rows, norm) / rows.n)[0])
    error = product_error(rows.n, norm) / rows.n + eigen_error(rows.d, norm)
    room = smallest - least - error
    if unit == 0:
        return math.inf if room > 0 else 0.0
    return room / (unit + 2 * error)
