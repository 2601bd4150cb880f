"""Secret random matrices: Gaussian sketches of rows (``docs/theory/gaussian-sketch.md``), and a projection of the
direction of the mean (``docs/theory/wishart.md``), each behind a floor or not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from ppdp.bounds.moments import moments_width
from ppdp.bounds.queries import sum_sensitivity
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import GAUSSIAN, formula, sane, whole
from ppdp.core.rounding import UNIT, inflate
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.losses import SketchLoss, WishartLoss
from ppdp.privacy.noise.sampler import lattice_allowance

_SHARE = 2.0**-7  # of the noise's standard deviation hides rounding, and nothing else
_LONGEST = 13.0  # no drawn number is further out
_LEAST = 2.0**-26  # of the bound: less noise has no lattice
_REFUSED = PrivacyLoss(1e6)


def factored_rows(width: int) -> int:
    """Rows of one orthogonal factorisation."""
    return max(256, 4 * width)


def _factorisations(n: int, width: int) -> int:
    """Through how many of them every row passes."""
    rows, count, block = n, 1, factored_rows(width)
    while rows > block:
        rows, count = math.ceil(rows / block) * width, count + 1
    return count


def sketch_bound(n: int, width: int, norm: float) -> float:
    """On each entry of ``Z R``, ``RᵀR = XᵀX``: a column of R is no longer than ``√n norm``."""
    return 1.01 * _LONGEST * math.sqrt(width * n) * norm


def sketch_error(n: int, width: int, norm: float, rank: int) -> float:
    """Frobenius norm by which a computed ``Z R`` misses one of exactly the law of ``S X`` (Lemma 3)."""
    factor = 16 * UNIT * width * factored_rows(width) * _factorisations(n, width)
    return math.sqrt(rank * width * n) * norm * (_LONGEST * (factor + 2 * width * UNIT) + 2.0**-37)


def sketch_loss(
    n: int, width: int, norm: float, distance: Distance, *, noise_scale: float, rank: int, floor: float = 0.0
) -> PrivacyLoss:
    """Loss of ``S X + sigma N`` in floats, X of ``n`` rows of at most this norm, with ``rank`` rows (Theorem 3).

    Rows that come, go, are replaced or have other weights stand on one side (Theorem 2), rows that moved change by
    ``√(total radius)`` together (Theorem 1).
    """
    sane(whole(rank) and rank >= 1 and noise_scale > 0)
    apart = distance.replaced + distance.toggled + distance.reweighted
    change = inflate(norm**2 * min(distance.one_sided, n))
    shift = math.sqrt(min(distance.total, 2 * norm * n) * min(distance.radius, 2 * norm))
    if not change and not shift:
        return PrivacyLoss()
    bound = sketch_bound(n, width, norm)
    if noise_scale < _LEAST * bound:
        return _REFUSED
    part = SketchLoss(
        rank=rank,
        shift=inflate(shift),
        change=change,
        rows=min(math.ceil(apart), n, width) if change else 0,
        sides=1 if not distance.replaced and apart <= 1 else 2,
        floor=floor,
        noise_scale=noise_scale * math.sqrt(1 - _SHARE**2) * (1 - 1e-12),
    )
    off = 2 * sketch_error(n, width, norm, rank) / noise_scale + lattice_allowance(bound, noise_scale, rank * width)
    return PrivacyLoss(inflate(off / _SHARE), parts=(part,))


def _shape(domain: Domain, *, rank: int, **_: Any) -> tuple[int, float]:
    """All entries of the sketch."""
    return rank * domain.d, sketch_bound(domain.n, domain.d, float(domain.require("row_norm")))


_sketch = partial(
    formula,
    kind="privacy",
    page="gaussian-sketch",
    law=GAUSSIAN,
    used_by=("GaussianSketch",),
    draws=lambda domain, *, rank, **_: 2 * rank * domain.d,
    shape=_shape,
)


@_sketch("sketch.rows")
def sketched_rows(domain: Domain, distance: Distance, *, noise_scale: float, rank: int) -> PrivacyLoss:
    """A sketch with noise; nothing is assumed of the rows."""
    norm = float(domain.require("row_norm"))
    return sketch_loss(domain.n, domain.d, norm, distance, noise_scale=noise_scale, rank=rank)


@_sketch("sketch.floored-rows", behind="sketch.floor")
def floored_rows(domain: Domain, distance: Distance, *, noise_scale: float, rank: int, share: float) -> PrivacyLoss:
    """A sketch with noise, of rows whose second moment has no eigenvalue below ``share`` times their squared norm."""
    norm = float(domain.require("row_norm"))
    sane(0 < share <= 1)
    floor = domain.n * share * norm**2 * (1 - 1e-9)
    return sketch_loss(domain.n, domain.d, norm, distance, noise_scale=noise_scale, rank=rank, floor=floor)


_floor = partial(formula, kind="stability", way="exact", fitted=False)


@_floor(
    "sketch.floor",
    page="gaussian-sketch",
    used_by=("EigenvalueFloor",),
    assumes=lambda domain, **_: {"regression.eigenvalue"},
)
def floor(domain: Domain, distance: Distance, *, share: float) -> tuple[Domain, Distance]:
    """Rows as they are; their second moment has no eigenvalue below ``share`` times their squared norm."""
    sane(0 < share * domain.d <= 1 + 1e-9)
    return domain, distance


def _joint(domain: Domain, *, rank: int, norm: float, fit_intercept: bool, **_: Any) -> tuple[int, float]:
    """All entries of the sketch of rows with constant and target."""
    width = moments_width(domain, fit_intercept)
    return rank * width, sketch_bound(domain.n, width, norm)


@formula(
    "learning.squared-sketch",
    kind="privacy",
    page="gaussian-sketch",
    law=GAUSSIAN,
    predicts=True,
    used_by=("Ridge",),
    shape=_joint,
    draws=lambda domain, **kwargs: 2 * _joint(domain, **kwargs)[0],
    arrays=lambda domain, steps, size, **kwargs: {"theta": [moments_width(domain, kwargs["fit_intercept"]) - 1]},
)
def squared_sketch(
    domain: Domain,
    distance: Distance,
    *,
    noise_scale: float,
    rank: int,
    norm: float,
    constant: float,
    target_weight: float,
    coef_norm: float,
    fit_intercept: bool,
    y_range: Sequence[float],
) -> PrivacyLoss:
    """A sketch with noise of rows with ``constant`` and ``target_weight`` times the target, clipped at ``norm``."""
    width = moments_width(domain, fit_intercept)
    sane(min(norm, constant, target_weight, coef_norm) > 0 and rank >= width and y_range[0] < y_range[1])
    sane(domain.y_range is None or tuple(domain.y_range) == tuple(y_range))
    known = distance.jittered(16 * UNIT * domain.d * (norm + float(domain.require("row_norm"))))
    return sketch_loss(domain.n, width, inflate(norm), known, noise_scale=noise_scale, rank=rank)


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


@_floor("wishart.floor", page="wishart", used_by=("MeanFloor",), assumes=lambda domain, **_: {"wishart.norm"})
def mean_floor(domain: Domain, distance: Distance, *, min_cosine: float, min_norm: float) -> tuple[Domain, Distance]:
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
    shape=lambda domain, **_: (domain.d, float(domain.require("row_norm"))),  # of the mean
)("wishart.direction")
def direction(domain: Domain, distance: Distance, *, noise_scale: float, rank: int, min_cosine: float) -> PrivacyLoss:
    """A secret random projection of this rank of the direction of the mean; ``noise_scale`` is ``1 / √rank``."""
    sane(whole(rank) and rank >= 1 and math.isclose(noise_scale, noise_of(rank), rel_tol=1e-9))
    if not mean_change(domain, distance):
        return PrivacyLoss()
    return PrivacyLoss(parts=(WishartLoss(domain.d, rank, min_cosine),))
