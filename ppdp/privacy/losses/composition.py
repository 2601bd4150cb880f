"""Everything together: adaptive composition of losses, in every way that holds, of which the least is taken.

Exactly as privacy-loss distributions, as Rényi curves, or purely. Theory: ``docs/theory/accounting.md``.
"""

from __future__ import annotations

import math
from functools import lru_cache

from ppdp.privacy.gaussian import gaussian_delta, gaussian_epsilon
from ppdp.privacy.losses.base import Loss, Part
from ppdp.privacy.losses.noise import Gaussian
from ppdp.privacy.pld import INTERVAL, LEAST_DELTA, LossDistribution
from ppdp.privacy.renyi import Curve, composed, renyi_delta, renyi_epsilon

__all__ = ["parts_at_order", "parts_delta", "parts_epsilon", "parts_renyi"]

_RESOLUTION, _FINEST = 16, 2.0**-40
SPLITS = (0.02, 0.2, 0.5, 0.8, 0.98)  # of delta, between what has a distribution and what has only a curve


@lru_cache(maxsize=64)
def parts_epsilon(mu: float, parts: tuple[Part, ...], delta: float, interval: float | None = None) -> float:
    """Smallest epsilon at this delta of a Gaussian loss and parts, composed adaptively with fixed parameters.

    Parameters
    ----------
    mu : float
        Of everything Gaussian together.
    parts : tuple of Part
        Everything else.
    delta : float
        In [0, 1).
    interval : float, optional
        Grid of the distributions to begin with; coarser is faster and larger. It is refined where losses are small.
    """
    found = [sum(part.pure for part in parts) + (gaussian_epsilon(mu, delta) if mu else 0.0)]
    if delta > 0:
        losses = _losses(mu, parts)
        curve = _curve(losses)
        if curve is not None:
            found.append(renyi_epsilon(curve, delta))
        found += [_distributed(losses, delta, interval)]
        found += [_mixed(mu, parts, delta * share, delta * (1 - share), interval) for share in SPLITS]
    return min(found)


def parts_delta(mu: float, parts: tuple[Part, ...], epsilon: float) -> float:
    """Smallest delta at this epsilon of a Gaussian loss and parts."""
    pure = sum(part.pure for part in parts)
    found = [1.0]
    if pure <= epsilon:
        found.append(gaussian_delta(mu, epsilon - pure) if mu else 0.0)
    losses = _losses(mu, parts)
    curve = _curve(losses)
    if curve is not None and epsilon >= 0:
        found.append(renyi_delta(curve, epsilon))
    run = _distribution(losses, _fine(INTERVAL, epsilon, _runs(losses)))
    if run is not None and epsilon >= 0:
        found.append(run.delta(epsilon))
    return min(found)


def parts_renyi(mu: float, parts: tuple[Part, ...], alpha: float) -> float:
    """Rényi divergence of this order; infinite where no curve is known."""
    curve = _curve(_losses(mu, parts))
    return math.inf if curve is None else curve(alpha)


def parts_at_order(mu: float, parts: tuple[Part, ...], order: float) -> float:
    """Rényi divergence at an order that was fixed before anything was seen: sampled steps have one, though no curve."""
    return math.fsum([order * mu**2 / 2, *(_at_order(part, order) for part in parts)]) * (1 + 1e-12)


@lru_cache(maxsize=1024)
def _at_order(part: Part, order: float) -> float:
    return part.renyi(order)


def _losses(mu: float, parts: tuple[Part, ...]) -> tuple[Loss, ...]:
    return (*parts, Gaussian(mu=mu)) if mu else parts


@lru_cache(maxsize=8)
def _curve(losses: tuple[Loss, ...]) -> Curve | None:
    curves = [curve for loss in losses if (curve := loss.curve()) is not None]
    return composed(*curves) if len(curves) == len(losses) else None


@lru_cache(maxsize=2)  # large; one loss is asked at many deltas
def _distribution(losses: tuple[Loss, ...], interval: float) -> LossDistribution | None:
    total = None
    for loss in losses:
        run = loss.distribution(interval)
        if run is None:
            return None
        total = run if total is None else total + run
    return total


def _distributed(losses: tuple[Loss, ...], delta: float, interval: float | None) -> float:
    """Epsilon of the composed distributions: the least on grids that become finer until they are fine enough."""
    grid, needed, least = math.inf, interval or INTERVAL, math.inf
    while delta >= LEAST_DELTA and needed < grid:
        grid = needed
        run = _distribution(losses, grid)
        if run is None or delta <= 10 * run.slack:
            return math.inf
        least = min(least, run.epsilon(delta))
        needed = _fine(grid, least, _runs(losses))
    return least


def _runs(losses: tuple[Loss, ...]) -> int:
    return sum(loss.count for loss in losses)


def _fine(interval: float, epsilon: float, runs: int) -> float:
    """The interval, or a finer one on which ``runs`` losses that come to epsilon are resolved, a power of two.

    A grid adds up to a sixth of its square to the variance of each run, of which all have ``(epsilon / 5)²`` together.
    """
    if not 0 < epsilon < _RESOLUTION * math.sqrt(runs) * interval:
        return interval
    return max(_FINEST, 2.0 ** math.floor(math.log2(epsilon / (_RESOLUTION * math.sqrt(runs)))))


def _mixed(mu: float, parts: tuple[Part, ...], delta: float, rest: float, interval: float | None) -> float:
    """What has a distribution (and the Gaussian loss) at ``delta``, what has only a curve at ``rest``."""
    curved = tuple(part for part in parts if not part.distributed)
    sampled = tuple(part for part in parts if part.distributed)
    curve = _curve(curved)
    if not curved or not sampled or curve is None:
        return math.inf
    return _distributed(_losses(mu, sampled), delta, interval) + renyi_epsilon(curve, rest)
