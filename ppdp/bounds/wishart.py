"""A secret random projection of the direction of the mean, behind a floor of its norm: ``docs/theory/wishart.md``."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from ppdp.bounds.queries import sum_sensitivity
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import formula, sane, whole
from ppdp.core.rounding import UNIT, inflate
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.losses import WishartLoss


def mean_change(domain: Domain, distance: Distance) -> float:
    """By how much the mean of the rows over their public number can change (L2)."""
    return float(sum_sensitivity(domain, distance)) / domain.n


def least_norm(domain: Domain, distance: Distance, min_cosine: float) -> float:
    """Norm of two means from which on their directions have this cosine: ``D / √(2 (1 - min_cosine))`` (Lemma 1)."""
    return inflate(mean_change(domain, distance) / math.sqrt(2 * (1 - min_cosine)))


def norm_error(domain: Domain) -> float:
    """Rounding of the computed norm of a mean, on each side."""
    return (domain.d + 8) * UNIT * float(domain.require("row_norm"))


def noise_of(rank: int) -> float:
    """Standard deviation on every entry across the direction, whose own length is 1."""
    return 1 / math.sqrt(rank)


@formula(
    "wishart.floor",
    kind="stability",
    page="wishart",
    way="exact",
    used_by=("MeanFloor",),
    assumes=lambda domain, **_: {"wishart.norm"},
    fitted=False,
)
def floor(domain: Domain, distance: Distance, *, min_cosine: float, min_norm: float) -> tuple[Domain, Distance]:
    """Rows as they are; neighbouring means have a cosine of at least ``min_cosine``, both norms being ``min_norm``."""
    sane(0 < min_cosine < 1)
    sane(min_norm >= least_norm(domain, distance, min_cosine) * (1 - 1e-9))
    return domain, distance


@formula(
    "wishart.norm",
    kind="margin",
    page="wishart",
    name="norm of the mean",
    statement=lambda domain, *, min_norm, **_: f"the mean of the rows has a norm of at least {min_norm:.4g}",
    largest=lambda domain, unit, *, min_norm, **_: (float(domain.require("row_norm")) - min_norm) / unit,
    level=lambda domain, unit, *, min_norm, **_: min_norm / unit,
    threshold=("min_norm", "min_cosine"),
)
def norm_unit(domain: Domain, distance: Distance) -> float:
    """A unit of margin is what one neighbouring pair changes of the mean, and so of its norm."""
    return mean_change(domain, distance)


def _shape(domain: Domain, **_: Any) -> tuple[int, float]:
    """The mean, of which only the direction is used."""
    return domain.d, float(domain.require("row_norm"))


@partial(
    formula,
    kind="privacy",
    page="wishart",
    law="random projection",
    tells="tells the direction of the mean of the prepared rows times a secret random matrix, and no more.",
    used_by=("WishartMechanism",),
    behind="wishart.floor",
    relies=WishartLoss.idealised,
    draws=lambda domain, *, rank, **_: domain.d * rank,
    shape=_shape,
)("wishart.direction")
def direction(domain: Domain, distance: Distance, *, noise_scale: float, rank: int, min_cosine: float) -> PrivacyLoss:
    """A secret random projection of this rank of the direction of the mean; ``noise_scale`` is ``1 / √rank``."""
    sane(whole(rank) and rank >= 1 and math.isclose(noise_scale, noise_of(rank), rel_tol=1e-9))
    if not mean_change(domain, distance):
        return PrivacyLoss()
    return PrivacyLoss(parts=(WishartLoss(domain.d, rank, min_cosine),))
