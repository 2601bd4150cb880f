"""Privacy of Laplace noise, and of choices: ``docs/theory/laplace.md`` and ``docs/theory/exponential.md``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ppdp.bounds.column_groups import release_of_columns
from ppdp.bounds.queries import as_they_are, check_grid, counting_step, histogram_shape, moving, present_shape
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain, largest_entry
from ppdp.core.formula import CHOICE, LAPLACE, formula, sane
from ppdp.core.rounding import UNIT, column_sum_error, inflate
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.losses import BoundedRange, DiscreteLaplace, ScalarLaplace
from ppdp.privacy.noise.laplace import laplace_allowance, score_allowance, whole_lattice

_SHARED: dict[str, Any] = {"kind": "privacy", "page": "laplace", "law": LAPLACE, "used_by": ("LaplaceMechanism",)}


def absolute_norm(domain: Domain) -> float:
    """Largest L1 norm of a row: ``√d min(R, b √d)``, attained on the diagonal."""
    root = math.sqrt(domain.d)
    return root * min(float(domain.require("row_norm")), (domain.entry_bound or math.inf) * root)


def real_loss(shift: float, noise_scale: float, shape: tuple[int, float]) -> PrivacyLoss:
    """Loss of an answer in real numbers whose L1 shift is at most ``shift``; refused if the noise is too fine."""
    size, bound = shape
    shift += noise_scale * laplace_allowance(bound, noise_scale, size)
    return PrivacyLoss(parts=(ScalarLaplace(shift=inflate(shift), scale=noise_scale),))


def whole_loss(shift: int, noise_scale: float, bound: float) -> PrivacyLoss:
    """Loss of counts whose L1 shift is at most ``shift``; refused if the noise is too fine or too wide for them."""
    whole_lattice(bound, noise_scale)
    return PrivacyLoss(parts=(DiscreteLaplace(shift=shift, scale=noise_scale),) if shift else ())


def sum_shape(domain: Domain) -> tuple[int, float]:
    """Numbers in a sum of rows, and the bound on each."""
    return domain.d, domain.n * largest_entry(domain)


@formula("laplace.sum", **_SHARED, shape=sum_shape)
def laplace_sum(domain: Domain, distance: Distance, *, noise_scale: float) -> PrivacyLoss:
    """Sum of the rows, L1 shift ``B mass + min(√d total, m moved, 2B moved)``, B the largest L1 norm of a row.

    m is by how much the entries of a row that moved differ together, where that is known.
    """
    root = math.sqrt(domain.d)
    shift = _sum_change(domain, distance, absolute_norm(domain))
    shift += root * column_sum_error(domain.n, domain.d, largest_entry(domain), distance)
    return real_loss(shift, noise_scale, sum_shape(domain))


def _sum_change(domain: Domain, distance: Distance, norm: float) -> float:
    """Most that the sum of the rows can change (L1), rounding apart."""
    return min(norm * distance.mass + _moved_change(domain, distance, norm), math.sqrt(domain.d) * distance.sums)


def _moved_change(domain: Domain, distance: Distance, norm: float) -> float:
    """The same of rows that moved alone."""
    each = min(distance.moved_by_entries(domain.d), 2 * norm)
    return min(math.sqrt(domain.d) * distance.total, each * distance.moved)


def mean_shape(domain: Domain, *, weighted: bool) -> tuple[int, float]:
    """Numbers in a mean, with B times the share of rows present if ``weighted``, and the bound on each."""
    return (domain.d + 1, absolute_norm(domain)) if weighted else (domain.d, largest_entry(domain))


@formula("laplace.mean", **_SHARED, shape=mean_shape)
def laplace_mean(domain: Domain, distance: Distance, *, noise_scale: float, weighted: bool) -> PrivacyLoss:
    """Mean over the public n and, if rows may be absent, B times the share present: 2B/n for one replaced row.

    The share is free: a toggled row then costs ``B + B``, as much as a replaced one, and no more.
    """
    n, d, norm, root = domain.n, domain.d, absolute_norm(domain), math.sqrt(domain.d)
    shape = mean_shape(domain, weighted=weighted)
    error = root * column_sum_error(n, d, shape[1], distance)
    if weighted:
        error += column_sum_error(n, 1, norm, distance)
        shift = 2 * norm * distance.one_sided + _moved_change(domain, distance, norm)
    else:
        shift = _sum_change(domain, distance, norm)
    return real_loss((shift + error) / n, noise_scale, shape)


def rows_shape(domain: Domain) -> tuple[int, float]:
    """All entries of all rows."""
    return domain.n * domain.d, largest_entry(domain)


@formula("laplace.rows", **_SHARED, shape=rows_shape, by_position=True, rows=True)
def laplace_rows(domain: Domain, distance: Distance, *, noise_scale: float) -> PrivacyLoss:
    """The rows in their places, L1 shift ``B mass + min(moved · min(m, 2B), √d total)``, m that of a row that moved.

    2B for one replaced row, B for a toggled one. Only rows that differ are rounded differently.
    """
    slots = math.ceil(min(distance.by_position().changed, float(domain.n)))
    return real_loss(rows_change(domain, distance), noise_scale, (slots * domain.d, largest_entry(domain)))


def rows_change(domain: Domain, distance: Distance) -> float:
    """By how much the rows in their places change together (L1)."""
    far, norm = distance.by_position(), absolute_norm(domain)
    slots = min(far.changed, float(domain.n))
    shift = min(norm * far.mass + _moved_change(domain, far, norm), 2 * norm * slots)
    return shift + 2 * UNIT * norm * slots


@formula("laplace.count", **_SHARED, shape=present_shape, counts=as_they_are)
def laplace_count(domain: Domain, distance: Distance, *, noise_scale: float) -> PrivacyLoss:
    """Weight of the rows that are present, as a whole number: ``⌈one_sided⌉``, never more rows than may differ."""
    slots = distance.replaced + distance.toggled + distance.reweighted
    weight = distance.one_sided + distance.reweighted * counting_step(domain.n)
    return whole_loss(min(math.ceil(slots), math.ceil(weight)), noise_scale, float(domain.n))


@formula("laplace.histogram", **_SHARED, shape=histogram_shape, counts=as_they_are)
def laplace_histogram(
    domain: Domain,
    distance: Distance,
    *,
    noise_scale: float,
    columns: Sequence[int],
    sizes: Sequence[int],
    edges: Sequence[float],
) -> PrivacyLoss:
    """Histograms of c columns, whole numbers: ``c (2 replaced + toggled + reweighted + 2 moved)`` rows change cells.

    Rows are counted, not their weight: a cell whose weight changes a little may be rounded to another whole number.
    """
    check_grid(domain, columns, sizes, edges)
    rows = 2 * distance.replaced + distance.toggled + distance.reweighted + 2 * moving(distance)
    return whole_loss(len(columns) * math.ceil(rows), noise_scale, float(domain.n))


_CHOICE: dict[str, Any] = {
    "kind": "privacy",
    "page": "exponential",
    "law": CHOICE,
    "tells": "chooses at random among public candidates, those that suit the prepared rows with more probability.",
    "used_by": ("ExponentialMechanism",),
}


def choice_loss(width: float, noise_scale: float, bound: float, count: int) -> PrivacyLoss:
    """Loss of ``count`` choices between candidates whose utilities change by amounts that differ by up to ``width``."""
    loss_range = inflate(width / noise_scale + score_allowance(bound, noise_scale))
    return PrivacyLoss(parts=(BoundedRange(count=count, range=loss_range),))


@formula("exponential.utility", **_CHOICE, shape=lambda domain, *, sensitivity, **_: (1, domain.n * sensitivity))
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


@formula("exponential.quantile", **_CHOICE, shape=lambda domain, *, columns, **_: (len(columns), float(domain.n)))
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
