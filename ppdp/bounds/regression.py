"""Regression imputation: ``docs/theory/regression-imputation.md``.

Gaps are filled by least squares of the columns missing on the columns observed, fitted on the complete rows: with
``C = (1/n) Σ w x xᵀ`` over them, ``B = (C_rr + νR²)⁻¹ C_rJ`` (ridge form) or ``B = C_rr⁻¹ C_rJ`` under the condition
that the eigenvalues of C are at least ``νR²``; ν is ``share``. Then rows are clipped back to their entries and norm.
"""

from __future__ import annotations

import math
from functools import partial

from ppdp.bounds.imputation import few_gaps, filled
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import formula, sane
from ppdp.core.rounding import UNIT, apply_error, eigen_error, inflate, product_error


def coefficient_norm(domain: Domain, share: float, conditional: bool) -> float:
    """Bound b on the norm of the coefficients B of any pattern of gaps.

    Ridge: ``1 / (2 √(ν(1 + ν)))``. Condition: ``(1 - 2ν) / (2 √(ν(1 - ν)))`` with ν over what the d - 2
    other eigenvalues leave of the trace.
    """
    if domain.d == 1:
        return 0.0  # nothing is observed beside the gap
    solving = 1 + 16 * domain.d**2.5 * UNIT * (1 + 1 / share)
    if not conditional:
        return solving / (2 * math.sqrt(share * (1 + share)))
    share = min(0.5, share / (1 - (domain.d - 2) * share))
    return solving * (1 - 2 * share) / (2 * math.sqrt(share * (1 - share)))


def coefficient_shift(domain: Domain, distance: Distance, share: float, conditional: bool) -> float:
    """Most that the coefficients of any pattern of gaps can change (operator norm), never above 2b.

    With ``s = √(1 + b²)``: ``R² (s paired + (b + s)/2 single + (b + s) total/R) / (ν n R²)``.
    """
    n, d, norm = domain.n, domain.d, float(domain.require("row_norm"))
    b = coefficient_norm(domain, share, conditional)
    s = math.hypot(1.0, b)
    paired, single = distance.unmatched
    moves = min((b + s) * distance.total / norm, s * distance.moved)
    error = product_error(n, 1.0) / n + 3 * math.sqrt(d) * eigen_error(d, 1.0)  # of C, in units of R²
    solving = 16 * d**2.5 * UNIT * (1 + share) * b
    room = share - error
    change = (s * paired + (b + s) / 2 * single + moves) / n + 2 * (s * error + solving)
    return min(2 * b, inflate(change) / room) if room > 0 else 2 * b


def _filling_error(domain: Domain, b: float) -> float:
    """L2 error of one row that is filled, entry by entry, and clipped."""
    norm = float(domain.require("row_norm"))
    return apply_error(domain.d, norm) + (domain.d + 2) * math.sqrt(domain.d) * UNIT * b * norm


def _sane(domain: Domain, share: float, conditional: bool) -> None:
    sane(1e-9 <= share <= 1e9 and (not conditional or share * domain.d <= 1 + 1e-9))


_regression = partial(
    formula,
    kind="stability",
    page="regression-imputation",
    used_by=("RegressionImputer",),
    releases=("complete-matrix",),
    gaps=True,
)


@_regression(
    "regression.exact",
    way="exact",
    assumes=lambda domain, *, conditional, **own: (
        few_gaps(domain, **own) | ({"regression.eigenvalue"} if conditional else set())
    ),
)
def regression(
    domain: Domain, distance: Distance, *, share: float, max_missing: int, conditional: bool = False
) -> tuple[Domain, Distance]:
    """Exact coefficients: every row with gaps moves by at most R times their shift, and ``√(1 + b²)`` times its move.

    Filled entries lie in the box of entries if one is declared, so a row never moves further than the box is wide.
    """
    _sane(domain, share, conditional)
    out, count = filled(domain, distance, max_missing)
    if count == 0:
        return out, distance
    norm = float(domain.require("row_norm"))
    b = coefficient_norm(domain, share, conditional)
    box = 2 * (domain.entry_bound or math.inf) * math.sqrt(domain.d - 1) if domain.d > 1 else 0.0
    each = min(norm * coefficient_shift(domain, distance, share, conditional), box, 2 * norm)
    each = inflate(each) + 2 * _filling_error(domain, b)
    stretched = distance.stretched(inflate(math.hypot(1.0, b)), 2 * norm)
    return out, stretched.widened(domain.n, count, each, diameter=2 * norm)


@_regression("regression.public", way="noisy")
def public_regression(
    domain: Domain, distance: Distance, *, share: float, conditional: bool = False
) -> tuple[Domain, Distance]:
    """Coefficients from a released matrix, put where an exact one would lie: row-wise, ``√(1 + b²)``-Lipschitz."""
    _sane(domain, share, conditional)
    norm = float(domain.require("row_norm"))
    b = coefficient_norm(domain, share, conditional)
    stretched = distance.stretched(inflate(math.hypot(1.0, b)), 2 * norm)
    return domain.but(max_missing=0), stretched.jittered(_filling_error(domain, b))


@formula(
    "regression.eigenvalue",
    kind="margin",
    page="regression-imputation",
    name="eigenvalue",
    statement=lambda domain, *, share, **_: (
        "the second moment of the rows without gaps has no eigenvalue below"
        f" {share * float(domain.require('row_norm')) ** 2:.4g}"
    ),
    largest=lambda domain, unit, *, share, **_: (1 / domain.d - share) * float(domain.require("row_norm")) ** 2 / unit,
)
def eigenvalue_margin(domain: Domain, distance: Distance) -> float:
    """Change of the least eigenvalue of C along one neighbouring pair: ``(R² one_sided + 2R total) / n``."""
    norm = float(domain.require("row_norm"))
    return (norm**2 * distance.one_sided + min(2 * norm * distance.total, norm**2 * distance.moved)) / domain.n


@formula("release.complete-moment", kind="release", page="regression-imputation")
def complete_moment(domain: Domain, distance: Distance) -> float:
    """Second moment/(√2 R) of the rows without gaps: R/n for one replaced row, whatever its gaps.

    A toggled row costs ``R/√2``, a row that moved by w at most ``√2 |w|``.
    """
    n, norm = domain.n, float(domain.require("row_norm"))
    error = math.sqrt(2) * product_error(n, norm) / norm
    return inflate((distance.moment_shift(norm) + error) / n)
