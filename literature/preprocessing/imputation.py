"""Corollary 4, Proposition 16 and Table 3: imputation."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from literature.claims import Claim, Comparison
from literature.preprocessing.paper import PAPER
from ppdp.bounds import lookup
from ppdp.bounds.imputation import coefficient_shift
from ppdp.core.adjacency import Adjacency
from ppdp.core.domain import Domain

__all__ = ["CLAIMS", "mean_imputation", "regression_imputation"]

Rows = NDArray[np.float64]
ONE = Adjacency.replace().distance
GAP = math.nan


def mean_imputation(*, rows: int, missing: int) -> float:
    """Corollary 4 and Table 3, L2 sensitivity of mean imputation: ``2/(n - p)``."""
    return 2 / (rows - missing)


def imputed_rows(*, missing: int) -> float:
    """Corollary 4 and Proposition 16, L∞ sensitivity: the number p of missing values."""
    return float(missing)


def median_imputation(*, highest: float, lowest: float) -> float:
    """Table 3, median: ``x_((n+1)/2)^max - x_(n/2)^min``."""
    return highest - lowest


def trimmed_imputation(*, highest: float, lowest: float, rows: int, trimmed: int, missing: int) -> float:
    """Table 3, m-trimmed mean: ``(x_(m)^max - x_(n-m)^min) / (n - 2m - p)``; the parentheses are not printed."""
    return (highest - lowest) / (rows - 2 * trimmed - missing)


def regression_imputation(*, largest: float, smallest: float) -> float:
    """Table 3, linear regression: ``λ_max² / ((λ_max + 1) λ_min²) + 1/λ_min``."""
    return largest**2 / ((largest + 1) * smallest**2) + 1 / smallest


def _filled(X: Rows) -> Rows:
    """Mean imputation."""
    return np.where(np.isnan(X), np.nanmean(X, axis=0), X)


def _masks_change() -> Comparison:
    n, a = 40, math.sqrt(0.5)
    rest = np.vstack([np.tile([0, -a, -a], (n - 2, 1)), [[GAP] * 3]])
    left, right = (np.vstack([row, rest]) for row in ([a, a, GAP], [-a, GAP, a]))
    rows, entries = int(np.isnan(left).any(axis=1).sum()), int(np.isnan(left).sum())
    moved = np.linalg.norm(_filled(left) - _filled(right), axis=1)[1:].max()
    domain = Domain(n_rows=n, n_features=3, row_norm=1.0)
    return Comparison(
        "move of a filled row",
        mean_imputation(rows=n, missing=entries),
        float(moved),
        f"{n} rows of norm at most 1 in three columns, most of them (0, -a, -a) with a = 1/√2; one has only gaps; the "
        f"replaced row is (a, a, gap) or (-a, gap, a). p = {entries} counts gaps; with p = {rows} rows with gaps "
        f"{mean_imputation(rows=n, missing=rows):.4g} is printed.",
        lookup("release.column-means", "release")(domain, ONE, min_observed=n - 2),
        {"left": left, "right": right},
    )


def _gaps_move() -> Comparison:
    n, p = 60, 20
    rest = np.repeat([GAP, -1.0], [p, n - 1 - p])[:, None]
    left, right = (np.vstack([[end], rest]) for end in (-1.0, 1.0))
    moved = int((_filled(left) != _filled(right)).any(axis=1)[1:].sum())
    domain = Domain(n_rows=n, n_features=1, row_norm=1.0, max_missing=p)
    formula = lookup("imputation.mean", "stability")
    certified = formula(domain, ONE, min_observed=n - p, max_missing=p)[1]
    return Comparison(
        "rows that move",
        imputed_rows(missing=p),
        float(moved),
        f"{n} rows in one column, {p} of them gaps; one row goes from -1 to 1.",
        float(certified.moved),
        {"left": left, "right": right},
    )


def _order_statistics() -> tuple[Rows, Rows, float, int]:
    """Eleven rows (0, ..., 0) or (0.3, ..., 0.3), one of which goes from 0 to 0.3, and one row of gaps."""
    d, gap = 9, 0.3
    rest = np.repeat([0.0, gap, GAP], [5, 5, 1])[:, None].repeat(d, axis=1)
    left, right = (np.vstack([np.full(d, end), rest]) for end in (0.0, gap))
    return left, right, gap, d


def _columns(d: int) -> str:
    return (
        f"Eleven rows (0, ..., 0) or (0.3, ..., 0.3) of {d} columns, one of which goes from 0 to 0.3, and a twelfth "
        "row with gaps only"
    )


def _median() -> Comparison:
    left, right, gap, d = _order_statistics()
    columns = [np.sort(X[:-1, 0]) for X in (left, right)]
    highest, lowest = max(c[6] for c in columns), min(c[5] for c in columns)  # ranks 6.5 (rounded up) and 6 of n = 12
    moved = np.linalg.norm(np.nanmedian(left, axis=0) - np.nanmedian(right, axis=0))
    domain = Domain(n_rows=12, n_features=d, row_norm=1.0)
    return Comparison(
        "move of a filled row",
        median_imputation(highest=highest, lowest=lowest),
        float(moved),
        f"{_columns(d)}: it is filled with the medians.",
        lookup("release.medians", "release")(domain, ONE, gap=gap * math.sqrt(d)),
        {"left": left, "right": right},
    )


def _trimmed() -> Comparison:
    left, right, _, d = _order_statistics()
    m, n, p = 3, len(left), 1
    columns = [np.sort(X[:-1, 0]) for X in (left, right)]
    public = {"rows": n, "trimmed": m, "missing": p}
    as_printed = trimmed_imputation(
        highest=max(c[m - 1] for c in columns), lowest=min(c[n - m - 1] for c in columns), **public
    )
    turned = trimmed_imputation(
        highest=max(c[n - m - 1] for c in columns), lowest=min(c[m - 1] for c in columns), **public
    )
    means = [np.sort(X[:-1], axis=0)[m:-m].mean(axis=0) for X in (left, right)]
    domain = Domain(n_rows=n, n_features=d, row_norm=1.0)
    return Comparison(
        "move of a filled row",
        turned,
        float(np.linalg.norm(means[0] - means[1])),
        f"{_columns(d)}: it is filled with the means without the {m} smallest and largest. Printed is the reading "
        f"with the ranks exchanged, p = {p} the row with gaps; as printed the bound is {as_printed:.4g}.",
        lookup("release.trimmed-means", "release")(domain, ONE, min_observed=n - 1, trimmed=m),
        {"left": left, "right": right, "m": m},
    )


def _slopes(X: Rows) -> Rows:
    """Least-squares coefficients of the last column on the others."""
    return np.asarray(np.linalg.solve(X[:, :-1].T @ X[:, :-1], X[:, :-1].T @ X[:, -1]))


def _steep() -> Comparison:
    n, share, tilt, lean = 50, 0.2, 0.69, 0.51
    others, least = n - 1, share * n
    turn = 2 * np.pi * np.arange(others) / others
    frame = np.column_stack([np.ones(others), math.sqrt(2) * np.cos(turn), math.sqrt(2) * np.sin(turn)])
    along = math.sqrt(1 - lean**2)
    axes = np.array([[0.0, lean, along], [1.0, 0.0, 0.0], [0.0, along, -lean]])
    rest = frame * np.sqrt(np.array([others - 2 * least, least, least]) / others) @ axes
    slope = _slopes(rest)[1]
    base = np.array([0.0, -slope, 1.0]) * math.sqrt((1 - tilt**2) / (1 + slope**2))
    left, right = (np.vstack([base + end * axes[1], rest]) for end in (tilt, -tilt))
    values = np.concatenate([np.linalg.eigvalsh(X.T @ X) for X in (left, right)])
    domain = Domain(n_rows=n, n_features=3, row_norm=1.0)
    return Comparison(
        "move of a filled row",
        regression_imputation(largest=values.max(), smallest=values.min()),
        float(np.linalg.norm(_slopes(left) - _slopes(right))),
        f"{n} rows of norm at most 1 in three columns; the third is filled from the other two; the replaced row "
        f"turns the slope along the first. λ are eigenvalues of XᵀX of all three columns, {values.min():.3g} to "
        f"{values.max():.3g}.",
        coefficient_shift(domain, ONE, values.min() / n, True),
        {"left": left, "right": right},
    )


def _short_regressor() -> Comparison:
    n = 1000
    left = np.column_stack([np.full(n, 0.1), np.full(n, 0.99)])
    right = left.copy()
    right[0] = 0.92, -0.39
    values = [float(X[:, 0] @ X[:, 0]) for X in (left, right)]
    return Comparison(
        "move of a filled row",
        regression_imputation(largest=max(values), smallest=min(values)),
        abs(float(_slopes(left)[0] - _slopes(right)[0])),
        f"{n} rows (0.1, 0.99), one of which becomes (0.92, -0.39); the second column is filled from the first; λ is "
        "XᵀX of the first column alone.",
        data={"left": left, "right": right},
    )


_ROWS = "Rows have norm at most 1."

CLAIMS = (
    Claim(
        "cor-4",
        PAPER,
        "Corollary 4, Table 3 (mean)",
        "mean imputation",
        f"{_ROWS} With at most p missing values in any dataset, the L2 sensitivity of mean imputation is at most "
        "2/(n − p).",
        "Δ₂ ≤ 2 / (n − p)",
        mean_imputation,
        "false",
        "The proof takes every column to be observed equally often in both datasets; the replaced row may change its "
        "gaps. True if it cannot, and then attained. p counts gaps (Proposition 16); false also if it counts rows. "
        "With gaps in most rows the truth is up to (1 + √d)/2 times 2/n₀, n₀ the fewest values in a column.",
        _masks_change,
        "mean-imputation",
        ("imputation.mean", "release.column-means"),
    ),
    Claim(
        "prop-16-count",
        PAPER,
        "Corollary 4 and Proposition 16, Δ_∞",
        "imputation",
        "At most p rows move, p the largest number of missing values in any dataset.",
        "Δ_∞ = p",
        imputed_rows,
        "holds",
        "True and attained if p counts gaps, as the proof says, or rows with gaps. Not if p is the number of gaps in "
        "one column.",
        _gaps_move,
        "mean-imputation",
        ("imputation.mean",),
    ),
    Claim(
        "table-3-median",
        PAPER,
        "Table 3 (median)",
        "median imputation",
        f"{_ROWS} x^max and x^min are the largest and smallest order statistics of any column of any dataset of L.",
        "Δ₂ = x^max_((n+1)/2) − x^min_(n/2)",
        median_imputation,
        "false",
        "One row changes the medians of all d columns, so √d is missing; also, with gaps the ranks are those of the "
        "values that are there. True for one column, with those ranks.",
        _median,
        "order-statistics",
        ("imputation.median", "release.medians"),
    ),
    Claim(
        "table-3-trimmed",
        PAPER,
        "Table 3 (m-trimmed mean)",
        "trimmed-mean imputation",
        f"{_ROWS} The mean without the m smallest and m largest values.",
        "Δ₂ = x^max_(m) − x^min_(n−m) / n − 2m − p",
        trimmed_imputation,
        "false",
        "Negative as printed, if ranks ascend. With the two ranks exchanged √d is missing, as for the median. A "
        "condition on the data is not needed: with n₀ values in every column K/(n₀ − 2m) is true for all data, with "
        "K = √(4 + 2A²) for A = min(√d, √(n/(n₀ − 2m))) up to √2, and √2 + A beyond.",
        _trimmed,
        "trimmed-mean",
        ("imputation.trimmed-mean", "release.trimmed-means"),
    ),
    Claim(
        "table-3-regression",
        PAPER,
        "Table 3 (linear regression)",
        "regression imputation",
        f"{_ROWS} λ_max and λ_min are the largest and smallest eigenvalues of XᵀX of any dataset of L; a column is "
        "filled by least squares from the others.",
        "Δ₂ = λ_max² / ((λ_max + 1) λ_min²) + 1/λ_min",
        regression_imputation,
        "loose",
        "True for a replaced row, though proved for an added one only, if X has all columns (the filled one "
        "included) of the complete rows, and one column is missing. If rows that fit different columns differ, √q is "
        "missing for q columns.",
        _steep,
        "regression-imputation",
        ("regression.exact",),
    ),
    Claim(
        "table-3-regressors",
        PAPER,
        "Table 3 (linear regression), S = (X, Y)",
        "regression imputation",
        f"{_ROWS} The same, with X read as the regressors and Y as the column that is filled: the table says "
        "“eigenvalue of XᵀX, for any S = (X, Y)”.",
        "Δ₂ = λ_max² / ((λ_max + 1) λ_min²) + 1/λ_min",
        regression_imputation,
        "ambiguous",
        "The size of the filled column is then in no eigenvalue. The proof takes the other reading, X with all "
        "columns, under which the bound covers these data too. Under this one there is no bound at all, unless the "
        "matrix is regularised.",
        _short_regressor,
        "regression-imputation",
        ("regression.exact",),
    ),
)
