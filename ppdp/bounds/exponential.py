"""Privacy of choices with exponential weights: ``docs/theory/exponential.md``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ppdp.bounds.columns import release_of_columns
from ppdp.bounds.queries import check_grid, counting_step, moving
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import CHOICE, formula, sane
from ppdp.core.rounding import UNIT, column_sum_error, inflate
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.losses import BoundedRange
from ppdp.privacy.noise.laplace import score_allowance

_SHARED: dict[str, Any] = {
    "kind": "privacy",
    "page": "exponential",
    "law": CHOICE,
    "tells": "chooses at random among public candidates, those that suit the prepared rows with more probability.",
    "used_by": ("ExponentialMechanism",),
}


def choice_loss(width: float, noise_scale: float, bound: float, count: int) -> PrivacyLoss:
    """Loss of ``count`` choices between candidates whose utilities change by amounts that differ by up to ``width``.

    :class:`ImpossibleBudget` if the noise is too fine for utilities of this size.
    """
    loss_range = inflate(width / noise_scale + score_allowance(bound, noise_scale))
    return PrivacyLoss(parts=(BoundedRange(count=count, range=loss_range),))


@formula("exponential.utility", **_SHARED, shape=lambda domain, *, sensitivity, **_: (1, domain.n * sensitivity))
def exponential_utility(
    domain: Domain,
    distance: Distance,
    *,
    noise_scale: float,
    candidates: int,
    sensitivity: float,
    lipschitz: float | None,
) -> PrivacyLoss:
    """One of finitely many candidates, to each of which a row gives at most Δ: range ``shift(Δ, 2L)`` over the scale.

    Two of the Δ for a replaced row, one for a toggled row, because all that it gives vanishes together.
    """
    sane(candidates >= 2 and sensitivity > 0 and (lipschitz is None or lipschitz >= 0))
    width = distance.shift(sensitivity, math.inf if lipschitz is None else 2 * lipschitz)
    error = column_sum_error(domain.n, 1, sensitivity, distance)
    return choice_loss(width + 2 * error, noise_scale, domain.n * sensitivity, 1)


def rank_shift(distance: Distance, q: float) -> float:
    """Most that a rank can miss ``q`` times the number of rows by, more or less than before.

    A replaced or moved row changes it by at most 1, a toggled row by at most ``max(q, 1 - q)``.
    """
    paired, single = distance.unmatched
    return paired + max(q, 1 - q) * single + moving(distance)


GAUSSIAN_SHARE = math.sqrt(math.pi / 8) * (1 + 1e-12)
"""A choice with a loss of range η costs no more than Gaussian noise of μ = 2 Φ⁻¹(1/(1 + exp(−η/2))) <= √(π/8) η."""


@formula("release.quantile-choices", kind="release", page="released-quantiles", law=CHOICE, rounded=4)
@release_of_columns
def quantile_choices(domain: Domain, distance: Distance, *, quantiles: Sequence[float]) -> float:
    """Quantiles of every column, each a choice among public cells: ``√(π/8) √(d Σ_q (2 rank_shift(q))²)``.

    √(π d/2) for the median with one replaced row. Divided by the scale of the choices it is the μ of Gaussian noise
    that costs as much. A missed rank may count 1 + t above the quantile and 1 - t below it, |t| <= |2q - 1|: what a row
    changes has the same range.
    """
    sane(bool(quantiles) and all(0 < q < 1 for q in quantiles))
    error = 4 * UNIT * domain.n + distance.reweighted * counting_step(domain.n)
    widths = [2 * (rank_shift(distance, q) + error) for q in quantiles]
    return inflate(GAUSSIAN_SHARE * math.sqrt(domain.d) * math.hypot(*widths))


@formula("exponential.quantile", **_SHARED, shape=lambda domain, *, columns, **_: (len(columns), float(domain.n)))
def exponential_quantile(
    domain: Domain,
    distance: Distance,
    *,
    noise_scale: float,
    q: float,
    columns: Sequence[int],
    sizes: Sequence[int],
    candidates: Sequence[float],
) -> PrivacyLoss:
    """A quantile of every column by its rank: range ``2 rank_shift`` over the scale, for each choice."""
    sane(0 <= q <= 1)
    check_grid(domain, columns, sizes, candidates)
    error = 4 * UNIT * domain.n + distance.reweighted * counting_step(domain.n)
    return choice_loss(2 * (rank_shift(distance, q) + error), noise_scale, float(domain.n), len(columns))
