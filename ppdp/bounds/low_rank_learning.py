"""Gradients that are seen through projections of few dimensions: ``docs/theory/fresh-projections.md``."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from ppdp.bounds.learning import Gradient, mean_gradient, released_models
from ppdp.bounds.sampled_learning import row_gradient
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import GAUSSIAN, formula, sane, whole
from ppdp.core.rounding import UNIT, inflate
from ppdp.exceptions import UnsupportedOrder
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.losses import NoisyProjectionLoss
from ppdp.privacy.noise.sampler import lattice_allowance

_SHARE = 2.0**-12  # by which the shift counts more, so that what rounding adds to it counts 4097 times by itself
_CLOSE = 1e-9  # how far a computed basis is from being orthonormal, at most


def _fresh(domain: Domain, *, loss: str, rank: int, batch_size: int, **own: Any) -> tuple[Gradient, int, float]:
    """A row's gradient, the length of a score's coefficients, and the rate at which rows are sampled."""
    sane(whole(rank, batch_size) and 1 <= batch_size <= domain.n)
    gradient = row_gradient(domain, loss, **own)
    width = gradient.size // own.get("n_classes", 1)
    sane(1 <= rank < width)
    return gradient, width, batch_size / domain.n


def _shape(domain: Domain, *, steps: int, rank: int, **own: Any) -> tuple[int, float]:
    """Numbers that are seen of a mean gradient, and the bound on each."""
    gradient, width, rate = _fresh(domain, rank=rank, **own)
    return gradient.size // width * rank, gradient.bound / rate


@formula(
    "learning.fresh-projections",
    kind="privacy",
    law=GAUSSIAN,
    page="fresh-projections",
    used_by=("LogisticRegression",),
    predicts=True,
    unseeded=True,
    relies=NoisyProjectionLoss.idealised,
    shape=_shape,
    steps=lambda domain, *, steps, **_: steps,
    # Models have all dimensions.
    arrays=lambda domain, count, size, *, steps, **own: released_models(domain, count, _fresh(domain, **own)[0].size),
)
def fresh_projections(
    domain: Domain, distance: Distance, *, noise_scale: float, steps: int, rank: int, batch_size: int, **own: Any
) -> PrivacyLoss:
    """Loss of ``steps`` mean gradients, each seen through a random subspace drawn for it alone, with noise on what is.

    The shift is that of ordinary noisy gradient descent, moved rows included. Of two classes a gradient is a vector, so
    rank one. On Poisson samples (``batch_size < n``) Rényi curves, for one row that comes or goes. What float64 and the
    lattice add is not projected, and counts as a Gaussian release. :class:`UnsupportedOrder` if gradients are sampled
    and neighbouring datasets differ otherwise.
    """
    gradient, width, rate = _fresh(domain, rank=rank, batch_size=batch_size, **own)
    sane(whole(steps) and steps >= 1)
    if rate < 1:
        if distance.replaced or distance.reweighted or distance.moved or distance.toggled > 1:
            raise UnsupportedOrder(
                "fresh projections of samples are proved for one row that is added or removed.",
                fix="Adjacency.add_remove() and public stages, or solver='m2' on all rows: no batch_size.",
            )
        shift = (gradient.bound * distance.toggled + 2 * gradient.sum_error(domain.n)) / batch_size
    else:
        shift = gradient.mean_shift(domain.n, distance)
    size, bound = _shape(domain, steps=steps, rank=rank, batch_size=batch_size, **own)
    off = lattice_allowance(bound, noise_scale, size) + 2 * (width + 3) * UNIT * bound * math.sqrt(rank) / noise_scale
    mu = inflate(shift * (1 + _CLOSE) / noise_scale * math.sqrt(1 + _SHARE))
    part = NoisyProjectionLoss(width, rank, mu, steps, rank_one=size == rank, sampling_rate=rate)
    return PrivacyLoss(inflate(math.sqrt(steps * (1 + 1 / _SHARE)) * off), parts=(part,))


@mean_gradient(
    "learning.projected-gradient",
    page="fresh-projections",
    used_by=("LogisticRegression",),
    arrays=released_models,
)
def projected_gradient(domain: Domain, *, loss: str, rank: int, **own: Any) -> Gradient:
    """Gradient of the loss on rows seen through a public orthonormal basis, clipped behind it."""
    sane(whole(rank) and 1 <= rank < domain.d)
    norm = float(domain.require("row_norm")) * (1 + _CLOSE)
    seen = row_gradient(Domain(n_rows=domain.n, n_features=rank, row_norm=norm, classes=domain.classes), loss, **own)
    off = (domain.d + 4) * UNIT * norm * math.sqrt(rank)  # of a row that was projected in float64
    lipschitz = seen.lipschitz * (1 + _CLOSE)
    return replace(seen, lipschitz=lipschitz, rounding=seen.rounding + lipschitz * off, sharper=math.inf)
