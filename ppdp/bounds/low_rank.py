"""Training through projections of few dimensions: of networks (``docs/theory/low-rank-training.md``), of linear models
(``docs/theory/fresh-projections.md``).

Of a network one answer is the sum of the clipped gradients of a Poisson sample; ``noise_scale`` is the standard
deviation on that *sum*. Every example's part is rounded to the lattice of the noise by itself, so that sums are exact
in any order and nothing but the part of the one example tells neighbouring datasets apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ppdp.bounds.learning import Gradient, mean_gradient, released_models
from ppdp.bounds.sampled_learning import row_gradient
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import GAUSSIAN, formula, sane, whole
from ppdp.core.rounding import UNIT, inflate
from ppdp.exceptions import UnsupportedOrder
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.losses import NoisyProjectionLoss, PoissonSamples
from ppdp.privacy.noise.sampler import lattice_allowance, lattice_exponent

CANCELLED = 2.0**8
"""The terms of an example's gradient sum to no less than this share of their lengths, or it is clipped further."""

_SHARE = 2.0**-12  # by which the shift counts more, so that what rounding adds to it counts 4097 times by itself
_DECLARED = {
    None: "declared: Python, NumPy and torch are as made, and model and loss leave them so, keep and use nothing of"
    " other examples or projections, and end at each without an error",
    "process": "declared: Python, NumPy and torch are as made; every call ends, uses no other example, reads, stops or"
    " ends no other process, and keeps nothing of its own outside its process, as in a file",
}
_TOGETHER = {
    "examples": "declared: the model treats the examples of a batch independently, each a row of every layer"
    " (microbatch > 1)",
    None: "declared: the model treats the examples of a batch independently (microbatch > 1)",  # earlier certificates
}
# Of earlier certificates:
_KEPT = "model, loss, dataset and training loop keep nothing of one example for another, and fail on none"
_OLDER = "the float32 gradient of an example does not depend on the other examples of its batch"
_DRAWN = "every projection was drawn after its batch, from the operating system's entropy, and used once"


def _relies_fa(**parameters: Any) -> str:
    idealised = "" if "microbatch" in parameters else " (a real-arithmetic idealisation)"
    return f"{_of_gradients(**parameters)}{idealised}; {_at_the_start('weights and adapter', **parameters)}"


def _relies_m2(**parameters: Any) -> str:
    uniform = "; every projection is uniformly distributed (a real-arithmetic idealisation)"
    if "microbatch" not in parameters:
        uniform = " and every projection is uniformly distributed (real-arithmetic idealisations)"
    return f"{_of_gradients(**parameters)}{uniform}; {_at_the_start('weights', **parameters)}; {_DRAWN}"


def _of_gradients(microbatch: int | None = None, isolation: str | None = "", rows: str | None = None, **_: Any) -> str:
    """What is assumed; older certificates say neither how many examples stood in one call, nor in which process."""
    if microbatch is None:
        return _OLDER
    sane(isolation in ("", *_DECLARED) and rows in (None, "examples"))
    kept = _KEPT if isolation == "" else _DECLARED[isolation]
    return kept if microbatch == 1 else f"{_TOGETHER[rows]}; {kept}"


def _at_the_start(what: str, isolation: str | None = "", **_: Any) -> str:
    return (
        f"{what} at the start are public" if isolation == "" else f"model, loss, {what} do not come from these examples"
    )


def sum_bound(domain: Domain, clip: float) -> float:
    """A public bound on the entries of a sum over at most ``n`` examples, rounding included."""
    return 2 * domain.n * clip


def _shape(
    domain: Domain,
    *,
    layers: Sequence[str],
    outputs: Sequence[int],
    inputs: Sequence[int],
    rank: int,
    clip: float,
    microbatch: int = 1,
    isolation: str | None = None,
    rows: str | None = None,
    **_: Any,
) -> tuple[int, float]:
    """One matrix of ``outputs x rank`` for every layer, and a bound on the entries of sums."""
    sane(whole(microbatch) and microbatch >= 1 and (isolation is None or (isolation, microbatch) == ("process", 1)))
    sane(rows is None or (rows == "examples" and microbatch > 1))
    sane(len(layers) == len(outputs) == len(inputs) > 0 and whole(rank, *outputs, *inputs))
    sane(min(rank, *outputs, *inputs) >= 1)
    return sum(outputs) * rank, sum_bound(domain, clip)


def _arrays(
    domain: Domain,
    count: int,
    size: int,
    /,
    *,
    outputs: Sequence[int],
    inputs: Sequence[int],
    adapter_rank: int = 0,
    **_: Any,
) -> dict[str, list[int]]:
    """Shapes of the adapter that is released: B alone where A was public from the start, else both."""
    if not adapter_rank:
        return {"B": [size]}
    return {"A": [adapter_rank * sum(inputs)], "B": [adapter_rank * sum(outputs)]}


def _sampled(domain: Domain, *, clip: float, batch_size: int, steps: int, noise_scale: float) -> float:
    """The rate of sampling, once the parameters were found sane."""
    sane(whole(batch_size, steps) and 1 <= batch_size <= domain.n and steps >= 1 and clip > 0 and noise_scale > 0)
    return batch_size / domain.n


def _rounding(domain: Domain, noise_scale: float, clip: float, size: int) -> float:
    """How far an example's part is moved by rounding it to the lattice, in units of the noise."""
    return 2.0 ** -(lattice_exponent(sum_bound(domain, clip), noise_scale) + 1) * math.sqrt(size)


_trained = partial(
    formula,
    kind="privacy",
    law=GAUSSIAN,
    page="low-rank-training",
    used_by=("PrivateLoRA",),
    shape=_shape,
    steps=lambda domain, *, steps, **_: steps,
    arrays=_arrays,
)


@_trained("lora.frozen-a", relies=_relies_fa)
def frozen_projection(
    domain: Domain, distance: Distance, *, noise_scale: float, clip: float, batch_size: int, steps: int, **adapter: Any
) -> PrivacyLoss:
    """Loss of ``steps`` sums of gradients of B, clipped jointly over all layers, on Poisson samples (Statement 1).

    Plain subsampled Gaussian accounting: a row adds at most the clip and what rounding it adds.
    :class:`UnsupportedOrder` if rows move or are reweighted.
    """
    rate = _sampled(domain, clip=clip, batch_size=batch_size, steps=steps, noise_scale=noise_scale)
    _whole_examples(distance)
    size, _ = _shape(domain, clip=clip, **adapter)
    bound = inflate(clip + noise_scale * _rounding(domain, noise_scale, clip, size))
    far = {"replaced": distance.replaced, "toggled": distance.toggled, "moved": 0.0, "radius": 0.0, "total": 0.0}
    part = PoissonSamples(count=steps, rate=rate, bound=bound, lipschitz=0.0, noise_scale=noise_scale, **far)
    return PrivacyLoss(parts=(part,))


@_trained("lora.fresh-projection", relies=_relies_m2)
def fresh_projections(
    domain: Domain,
    distance: Distance,
    *,
    noise_scale: float,
    clip: float,
    batch_size: int,
    steps: int,
    rank: int,
    inputs: Sequence[int],
    terms: int,
    adapter_rank: int,
    **adapter: Any,
) -> PrivacyLoss:
    """Loss of ``steps`` sums of *full* gradients, clipped jointly, noised and projected afresh (Statement 2).

    Every layer has its own projection; all are charged as the narrowest of them. ``terms`` bounds inputs plus tokens of
    an example: what float64 makes of a product is off by so many roundings of terms at most ``2^8`` clips long.
    :class:`UnsupportedOrder` if neighbouring datasets differ otherwise than by one example that only one of them has.
    """
    rate = _sampled(domain, clip=clip, batch_size=batch_size, steps=steps, noise_scale=noise_scale)
    _whole_examples(distance)
    if distance.replaced or distance.toggled > 1:
        what = "fresh projections of samples are proved for one added or removed example."
        raise UnsupportedOrder(what, fix="method='fa'.")
    size, _ = _shape(domain, rank=rank, inputs=inputs, clip=clip, **adapter)
    dimension = min(inputs)
    sane(whole(terms, adapter_rank) and 1 <= terms < 2**30 and adapter_rank >= 1 and rank < dimension)
    off = 2 * (terms + 8) * UNIT * CANCELLED * clip * math.sqrt(rank) / noise_scale
    off += _rounding(domain, noise_scale, clip, size)
    mu = inflate(clip / noise_scale * math.sqrt(1 + _SHARE))
    part = NoisyProjectionLoss(dimension, rank, mu, steps, sampling_rate=rate)
    return PrivacyLoss(inflate(math.sqrt(steps * (1 + 1 / _SHARE)) * off), parts=(part,))


def _whole_examples(distance: Distance) -> None:
    """Refuse everything but whole rows that one of the datasets lacks or has otherwise."""
    if distance.reweighted or distance.moved:
        raise UnsupportedOrder("examples of a network are added, removed or replaced as a whole.")


_CLOSE = 1e-9  # how far a computed basis is from being orthonormal, at most


def _fresh(domain: Domain, *, loss: str, rank: int, batch_size: int, **kwargs: Any) -> tuple[Gradient, int, float]:
    """A row's gradient, the length of a score's coefficients, and the rate at which rows are sampled."""
    sane(whole(rank, batch_size) and 1 <= batch_size <= domain.n)
    gradient = row_gradient(domain, loss, **kwargs)
    width = gradient.size // kwargs.get("n_classes", 1)
    sane(1 <= rank < width)
    return gradient, width, batch_size / domain.n


def _gradient_shape(domain: Domain, *, steps: int, rank: int, **kwargs: Any) -> tuple[int, float]:
    """Numbers that are seen of a mean gradient, and the bound on each."""
    gradient, width, rate = _fresh(domain, rank=rank, **kwargs)
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
    shape=_gradient_shape,
    steps=lambda domain, *, steps, **_: steps,
    # Models have all dimensions.
    arrays=lambda domain, count, size, *, steps, **kwargs: released_models(
        domain, count, _fresh(domain, **kwargs)[0].size
    ),
)
def projected_gradients(
    domain: Domain, distance: Distance, *, noise_scale: float, steps: int, rank: int, batch_size: int, **kwargs: Any
) -> PrivacyLoss:
    """Loss of ``steps`` mean gradients, each seen through a random subspace drawn for it alone, with noise on what is.

    The shift is that of ordinary noisy gradient descent, moved rows included. Of two classes a gradient is a vector, so
    rank one. On Poisson samples (``batch_size < n``) Rényi curves, for one row that comes or goes. What float64 and the
    lattice add is not projected, and counts as a Gaussian release. :class:`UnsupportedOrder` if gradients are sampled
    and neighbouring datasets differ otherwise.
    """
    gradient, width, rate = _fresh(domain, rank=rank, batch_size=batch_size, **kwargs)
    sane(whole(steps) and steps >= 1)
    if rate < 1:
        if distance.replaced or distance.reweighted or distance.moved or distance.toggled > 1:
            what = "fresh projections of samples are proved for one row that is added or removed."
            fix = "Adjacency.add_remove() and public stages, or solver='m2' on all rows: no batch_size."
            raise UnsupportedOrder(what, fix=fix)
        shift = (gradient.bound * distance.toggled + 2 * gradient.sum_error(domain.n)) / batch_size
    else:
        shift = gradient.mean_shift(domain.n, distance)
    size, bound = _gradient_shape(domain, steps=steps, rank=rank, batch_size=batch_size, **kwargs)
    off = lattice_allowance(bound, noise_scale, size) + 2 * (width + 3) * UNIT * bound * math.sqrt(rank) / noise_scale
    mu = inflate(shift * (1 + _CLOSE) / noise_scale * math.sqrt(1 + _SHARE))
    part = NoisyProjectionLoss(width, rank, mu, steps, rank_one=size == rank, sampling_rate=rate)
    return PrivacyLoss(inflate(math.sqrt(steps * (1 + 1 / _SHARE)) * off), parts=(part,))


@mean_gradient(
    "learning.projected-gradient", page="fresh-projections", used_by=("LogisticRegression",), arrays=released_models
)
def projected_gradient(domain: Domain, *, loss: str, rank: int, **kwargs: Any) -> Gradient:
    """Gradient of the loss on rows seen through a public orthonormal basis, clipped behind it."""
    sane(whole(rank) and 1 <= rank < domain.d)
    norm = float(domain.require("row_norm")) * (1 + _CLOSE)
    seen = row_gradient(Domain(n_rows=domain.n, n_features=rank, row_norm=norm, classes=domain.classes), loss, **kwargs)
    off = (domain.d + 4) * UNIT * norm * math.sqrt(rank)  # of a row that was projected in float64
    lipschitz = seen.lipschitz * (1 + _CLOSE)
    return replace(seen, lipschitz=lipschitz, rounding=seen.rounding + lipschitz * off, sharper=math.inf)
