"""Training on batches of rows: ``docs/theory/subsampling.md`` and ``docs/theory/noisy-gradient-descent.md``.

One answer is the sum of the batch's clipped gradients over the public (expected) size of a batch; ``noise_scale`` is
the standard deviation of the noise on that quotient.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from ppdp.bounds.learning import (
    Gradient,
    augmented_norm,
    hinge_gradient,
    logistic_gradient,
    loss_smoothness,
    released_models,
    softmax_gradient,
    softmax_gradient_norm,
    squared_gradient,
)
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import GAUSSIAN, formula, sane, whole
from ppdp.core.rounding import UNIT, inflate
from ppdp.exceptions import UnsupportedOrder
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.losses import FixedSizeSamples, HiddenIterate, PoissonSamples
from ppdp.privacy.noise.sampler import lattice_allowance
from ppdp.privacy.subsampling import epoch_mu

LOSSES: dict[str, Callable[..., Gradient]] = {
    "hinge": hinge_gradient,
    "logistic": logistic_gradient,
    "softmax": softmax_gradient,
    "squared": squared_gradient,
}

_trained = partial(formula, used_by=("LinearRegression", "LinearSVC", "LogisticRegression", "Ridge"), predicts=True)
_sampled = partial(
    _trained,
    kind="privacy",
    law=GAUSSIAN,
    page="subsampling",
    steps=lambda domain, *, steps, **_: steps,
    arrays=released_models,
)


def row_gradient(domain: Domain, loss: str, **parameters: Any) -> Gradient:
    """What is known of one row's clipped gradient of this loss."""
    sane(loss in LOSSES)
    return LOSSES[loss](domain, **parameters)


def smoothness(
    domain: Domain, loss: str, *, fit_intercept: bool, n_classes: int = 2, smoothing: float = 0.5, **_: Any
) -> float:
    """Lipschitz constant in the coefficients of every row's gradient, clipped or not."""
    sane(n_classes >= 2 and 0 < smoothing <= 1)
    curvature = {"hinge": 1 / (2 * smoothing), "logistic": 0.25, "softmax": 0.5, "squared": 1.0}[loss]
    return loss_smoothness(domain, curvature, fit_intercept)


def batches_per_pass(n_rows: int, batch_size: int) -> int:
    """How many batches hold all rows, the last one perhaps fewer than the others."""
    return -(-n_rows // batch_size)


def _batches(domain: Domain, batch_size: int, *counts: int) -> None:
    sane(whole(batch_size, *counts) and 1 <= batch_size <= domain.n and min((1, *counts)) >= 1)


def _shape(most_rows: Callable[[Domain, int], int]) -> Callable[..., tuple[int, float]]:
    """Numbers in an answer and a bound on each, for batches of at most so many rows."""

    def shape(
        domain: Domain,
        *,
        loss: str,
        batch_size: int,
        steps: int = 1,
        epochs: int = 1,
        step_size: float = 1.0,
        **kwargs: Any,
    ) -> tuple[int, float]:
        """Size and bound of an answer."""
        gradient = row_gradient(domain, loss, **kwargs)
        return gradient.size, gradient.bound * most_rows(domain, batch_size) / batch_size

    return shape


_any_rows = _shape(lambda domain, _: domain.n)
_one_batch = _shape(lambda _, batch_size: batch_size)


def _split(
    domain: Domain, distance: Distance, gradient: Gradient, noise_scale: float, batch_size: int, most: int, steps: int
) -> tuple[float, float]:
    """Cost of all rounding as a Gaussian release with a small share of the noise, and what is left of it on the sum.

    Rounding of the batch's sum and of the lattice depends on the batch, so it is not amplified. Every share of the
    variance is a bound; this one is where a little more would cost the sampled part as much as it spares the other.
    """
    bound = gradient.bound * most / batch_size
    off = inflate(2 * gradient.sum_error(most) / batch_size / noise_scale)
    off += lattice_allowance(bound, noise_scale, gradient.size)
    amplified = 2 * gradient.bound / domain.n / noise_scale
    share = min(0.5, off / amplified)
    return math.sqrt(steps / share) * off, noise_scale * batch_size * math.sqrt(1 - share)


def _whole_rows(distance: Distance) -> dict[str, Any]:
    """How many rows differ, whatever their weight: what sampling looks at. Reweighted rows are refused."""
    if distance.reweighted:
        what = "sampled batches are not proved for rows whose weight differs."
        raise UnsupportedOrder(what, fix="use solver='dpgd' or 'epochs', or a stage that keeps or drops whole rows.")
    return {name: getattr(distance, name) for name in ("replaced", "toggled", "moved", "radius", "total")}


@_sampled("learning.poisson", shape=_any_rows)
def poisson_steps(
    domain: Domain, distance: Distance, *, noise_scale: float, loss: str, batch_size: int, steps: int, **kwargs: Any
) -> PrivacyLoss:
    """Loss of ``steps`` answers on Poisson samples of rate ``batch_size / n``, divided by ``batch_size``.

    Statements 2 and 8: the sampled part from the numbers of replaced, toggled and moved rows, never from their weight;
    rounding as a Gaussian release with its own share of the noise.
    """
    _batches(domain, batch_size, steps)
    rows, gradient = _whole_rows(distance), row_gradient(domain, loss, **kwargs)
    mu, noise = _split(domain, distance, gradient, noise_scale, batch_size, domain.n, steps)
    sampled = {"bound": gradient.bound, "lipschitz": gradient.lipschitz, "noise_scale": noise}
    return PrivacyLoss(mu, parts=(PoissonSamples(count=steps, rate=batch_size / domain.n, **rows, **sampled),))


@_sampled("learning.fixed-size", shape=_one_batch)
def fixed_size_steps(
    domain: Domain, distance: Distance, *, noise_scale: float, loss: str, batch_size: int, steps: int, **kwargs: Any
) -> PrivacyLoss:
    """Loss of ``steps`` answers on batches of exactly ``batch_size`` rows, drawn without replacement.

    Statements 3, 4 and 8, for one replaced or toggled row. :class:`UnsupportedOrder` if more than one row is replaced
    or toggled, or rows are reweighted.
    """
    _batches(domain, batch_size, steps)
    rows, gradient = _whole_rows(distance), row_gradient(domain, loss, **kwargs)
    if math.ceil(rows["replaced"]) + math.ceil(rows["toggled"]) > 1:
        what = "batches of fixed size are proved for one replaced row."
        raise UnsupportedOrder(what, fix="use solver='poisson', 'epochs' or 'dpgd'.")
    mu, noise = _split(domain, distance, gradient, noise_scale, batch_size, batch_size, steps)
    sampled = {**rows, "bound": gradient.bound, "lipschitz": gradient.lipschitz, "noise_scale": noise}
    part = FixedSizeSamples(count=steps, n_rows=domain.n, batch_size=batch_size, **sampled)
    return PrivacyLoss(mu, parts=(part,))


@_trained(
    "learning.epochs",
    kind="mechanism",
    by_position=True,
    page="subsampling",
    shape=_one_batch,
    steps=lambda domain, *, batch_size, epochs, **_: epochs * batches_per_pass(domain.n, batch_size),
    arrays=released_models,
)
def epochs_step(domain: Domain, distance: Distance, *, loss: str, batch_size: int, epochs: int, **kwargs: Any) -> float:
    """L2 sensitivity of one answer on disjoint batches: the root of the mean square over the m answers of a pass.

    ``(C mass + √(M S)) / (B √m)`` (Statement 6), in any order that does not depend on the data. All that matters is the
    sum of the squares, and whole passes only are run. Rounding is charged.
    """
    _batches(domain, batch_size, epochs)
    gradient, count = row_gradient(domain, loss, **kwargs), batches_per_pass(domain.n, batch_size)
    shift = epoch_mu(
        distance, batch_size=batch_size, epochs=1, bound=gradient.bound, lipschitz=gradient.lipschitz, noise_scale=1.0
    )
    return inflate((shift / math.sqrt(count) + 2 * gradient.sum_error(batch_size)) / batch_size)


@_trained(
    "learning.hidden",
    kind="privacy",
    law=GAUSSIAN,
    by_position=True,
    hides_iterates=True,
    page="noisy-gradient-descent",
    shape=_one_batch,
    steps=lambda domain, *, batch_size, **_: batches_per_pass(domain.n, batch_size),
)
def hidden_pass(
    domain: Domain,
    distance: Distance,
    *,
    noise_scale: float,
    loss: str,
    batch_size: int,
    step_size: float,
    **kwargs: Any,
) -> PrivacyLoss:
    """Loss of one pass over disjoint batches of which only the iterate at a secret uniform time is released.

    Needs convex losses and ``step_size <= 2 / smoothness``: the softmax must not be clipped. What float64 and the
    lattice add to a step counts as if rows had moved, in every step.
    """
    _batches(domain, batch_size)
    gradient, count = row_gradient(domain, loss, **kwargs), batches_per_pass(domain.n, batch_size)
    sane(0 < step_size * smoothness(domain, loss, **kwargs) <= 2 * (1 + 1e-12))
    sane(loss != "softmax" or kwargs["clip"] >= softmax_bound(domain, **kwargs))
    far = distance.by_position()
    size, norm = gradient.size, float(kwargs["coef_norm"])
    longest = norm + step_size * math.sqrt(size) * (gradient.bound + 14 * noise_scale)  # before the projection
    updating = (size + 16) * UNIT * 2 * longest / step_size
    off = gradient.sum_error(batch_size) / batch_size + updating
    off += noise_scale * lattice_allowance(gradient.bound, noise_scale, size)
    extra = inflate(2 * count * off * batch_size / gradient.bound)
    part = HiddenIterate(
        mass=far.mass + extra,
        total=far.total,
        moved=far.moved,
        n_rows=count,
        bound=gradient.bound / batch_size,
        lipschitz=gradient.lipschitz / batch_size,
        noise_scale=noise_scale,
    )
    return PrivacyLoss(parts=(part,))


def softmax_bound(domain: Domain, *, coef_norm: float, fit_intercept: bool, n_classes: int, **_: Any) -> float:
    """Largest norm of a row's softmax gradient: a clip as large as this never binds."""
    norm = augmented_norm(float(domain.require("row_norm")), fit_intercept)
    return softmax_gradient_norm(norm, coef_norm, n_classes)
