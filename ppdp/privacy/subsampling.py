"""Steps of noisy gradient descent on Poisson samples: dominating pairs and exact profiles, moved rows included.

One step releases the sum of the rows' contributions in a random batch plus Gaussian noise; ``noise_scale`` is always
the standard deviation on that *sum*. Every contribution has norm at most ``bound`` and is ``lipschitz`` in its row.
Sampling hides *which* rows differ, so what counts is how many rows differ, never how much weight they carry; rows
that all moved are hidden by nothing. Batches are drawn in secret and independently of the data.
Theory: ``docs/theory/subsampling.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ppdp.checks import integer, number, positive
from ppdp.distance import Distance
from ppdp.exceptions import InvalidParameter, UnsupportedOrder

__all__ = [
    "EXACT",
    "TAILS",
    "GaussianMixturePair",
    "Profile",
    "epoch_mu",
    "gathered",
    "gaussian_profile",
    "moves",
    "poisson_mixtures",
    "poisson_pair",
    "poisson_profiles",
    "rounded_up",
    "whole_rows",
]

Floats = NDArray[np.float64]

EXACT = 64  # a law with at most this many values is used as it is, a larger one is rounded up to where its tails are
TAILS = np.concatenate([np.linspace(0.98, 0.02, 65), 10.0 ** -np.arange(2, 21)])
_SPLITS = 256  # toggled times differing rows; where they are more, toggled rows are charged as replaced
_TAIL_ERROR = 1 + 1e-5  # more than the relative error of tails of binomial and hypergeometric laws
_COUNTABLE = 2**31 - 1  # of more rows than this, all are charged
_FAR = 40.0  # standard deviations beyond which a Gaussian has no mass in float64
_REACH = 5000.0  # longest range of a quadrature, in standard deviations
_HALVINGS = 48  # an error e of the cut costs O(e²) of delta


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """delta(epsilon) for ``epsilon >= 0`` of a dominating pair (P, Q), both ways round.

    ``forward`` bounds ``sup_O P(O) - exp(epsilon) Q(O)`` and ``backward`` the same with P and Q exchanged; they are
    one function if the pair is symmetric. Negative epsilons need no third one:
    ``delta(-e) = 1 - exp(-e) + exp(-e) backward(e)``.
    """

    forward: Callable[[Floats], Floats]
    backward: Callable[[Floats], Floats]

    @classmethod
    def symmetric(cls, delta: Callable[[Floats], Floats]) -> Profile:
        """Profile of a pair that looks the same both ways round."""
        return cls(delta, delta)


@dataclass(frozen=True, slots=True, eq=False)
class GaussianMixturePair:
    """P = sum p_k N(a_k, 1) against Q = sum q_j N(-b_j, 1), all a_k, b_j >= 0.

    By Lemma V (``docs/theory/subsampling.md``) it dominates every pair of Gaussian mixtures in any dimension with
    the same weights, whose means have at most these norms. Its likelihood ratio increases, so the best event is
    ``x > cut``.
    """

    p: Floats
    a: Floats
    q: Floats
    b: Floats

    def reversed(self) -> GaussianMixturePair:
        """The pair (Q, P), mirrored so that it has the same form."""
        return GaussianMixturePair(self.q, self.b, self.p, self.a)

    def log_ratio(self, x: Floats) -> Floats:
        """``log P/Q`` at x."""
        return _log_sum(self.a, self.p, x) - _log_sum(-self.b, self.q, x)

    def delta(self, epsilon: ArrayLike) -> Floats:
        """``P(x > cut) - exp(epsilon) Q(x > cut)``; what the subtraction may lose is charged."""
        epsilon = np.atleast_1d(np.asarray(epsilon, float))
        if self.a.max() == self.b.max() == 0:
            return np.zeros_like(epsilon)
        cut = self._cut(epsilon)[:, None]
        log_p = special.logsumexp(special.log_ndtr(self.a - cut), b=self.p, axis=-1)
        log_q = epsilon + special.logsumexp(special.log_ndtr(-self.b - cut), b=self.q, axis=-1)
        lost = 4e-15 * (1 + epsilon + np.abs(log_p) + np.abs(log_q))
        return np.exp(log_p) * -np.expm1(np.minimum(log_q - log_p, 0.0) - lost)

    def renyi(self, alpha: float) -> float:
        """Rényi divergence of P from Q by the trapezoidal rule, or infinity where that would take too long.

        The rule errs by ``exp(-2 pi y / step)`` times the growth of the integrand in a strip of half-width y without
        a zero of Q; y = pi / (2 gap) for means at most ``gap`` apart, and the growth is below ``2^(alpha / 2)``.
        """
        if not alpha > 1:
            raise InvalidParameter(f"a Rényi order must be above 1, got {alpha!r}.")
        gap = float(self.a.max() + self.b.max())
        if gap == 0 or alpha * gap > _REACH:
            return math.inf if gap else 0.0
        low, high = -12 - gap, 12 + alpha * gap  # the integrand peaks before alpha times the gap
        x, step = np.linspace(low, high, 1 + math.ceil((high - low) * max(80, gap * (35 + alpha) / 10)), retstep=True)
        log_p, log_q = _log_sum(self.a, self.p, x), _log_sum(-self.b, self.q, x)
        log_density = alpha * log_p - (alpha - 1) * log_q - x * x / 2 - math.log(2 * math.pi) / 2
        log_moment = float(special.logsumexp(log_density)) + math.log(step)
        return (max(log_moment, 0.0) + 1e-13) / (alpha - 1) * (1 + 1e-9)

    def _cut(self, epsilon: Floats) -> Floats:
        """Where the logarithm of the likelihood ratio is epsilon, by bisection."""
        low = np.full_like(epsilon, -_FAR - self.b.max())
        high = np.full_like(epsilon, _FAR + self.a.max())
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            left = self.log_ratio(middle) < epsilon
            low, high = np.where(left, middle, low), np.where(left, high, middle)
        return high


def gaussian_profile(mu: float) -> Profile:
    """Profile of a mu-GDP Gaussian release."""
    one, mean = np.ones(1), np.array([number("mu", mu, least=0)])
    return Profile.symmetric(GaussianMixturePair(one, mean, one, np.zeros(1)).delta)


def poisson_pair(
    rate: float, contribution: float, *, rows: int = 1, other_rows: int | None = None, shift: float = 0.0
) -> GaussianMixturePair:
    """Dominating pair of one step on a Poisson sample, in units of the noise; attained in one dimension.

    ``sum Bin(rows, rate)(k) N(k c, 1)`` against ``sum Bin(other_rows, rate)(k) N(-shift - k c, 1)``.

    Parameters
    ----------
    rate : float
        Probability with which every row is in the batch, independently.
    contribution : float
        Norm c of a row's contribution.
    rows, other_rows : int
        Rows of the first dataset that the second one does not have, and the other way round; replaced rows are both.
    shift : float
        Norm by which the sum of all other sampled rows differs.
    """
    number("rate", rate, above=0, most=1)
    k, p = _binomial(integer("rows", rows, least=0), rate)
    j, q = (k, p) if other_rows is None else _binomial(integer("other_rows", other_rows, least=0), rate)
    return GaussianMixturePair(p, contribution * k, q, shift + contribution * j)


def poisson_profiles(
    distance: Distance, *, rate: float, bound: float, lipschitz: float, noise_scale: float
) -> tuple[Profile, ...]:
    """Profiles of one step on a Poisson sample at this distance; a pair of datasets is dominated by one of them.

    One profile for every split of the toggled rows over the two sides, the same in every step of a run. Each is the
    mean over K ~ Bin(moved, rate), the number of sampled rows that moved, of Lemma V's pair with shift
    ``min(min(lipschitz radius, 2 bound) K, lipschitz total)``. Neither ``mass`` nor ``one_sided`` lowers the cost.

    Parameters
    ----------
    distance : Distance
        How far the neighbouring datasets are apart.
    rate : float
        Probability with which every row is in the batch, independently and in secret.
    bound : float
        Norm of every row's contribution.
    lipschitz : float
        Lipschitz constant of the contribution in the row; may be infinite.
    noise_scale : float
        Standard deviation of the noise on the sum.

    Raises
    ------
    UnsupportedOrder
        If rows are reweighted.
    """

    def profile(weights: Floats, pairs: list[GaussianMixturePair]) -> Profile:
        forward = _mean(weights, pairs)
        if np.array_equal(pairs[0].p, pairs[0].q):
            return Profile.symmetric(forward)
        return Profile(forward, _mean(weights, [pair.reversed() for pair in pairs]))

    mixtures = poisson_mixtures(distance, rate=rate, bound=bound, lipschitz=lipschitz, noise_scale=noise_scale)
    return tuple(profile(weights, pairs) for weights, pairs in mixtures)


def poisson_mixtures(
    distance: Distance, *, rate: float, bound: float, lipschitz: float, noise_scale: float
) -> list[tuple[Floats, list[GaussianMixturePair]]]:
    """What :func:`poisson_profiles` takes the mean of: for every split the law of K and a pair for each value."""
    replaced, toggled = whole_rows(distance)
    number("rate", rate, above=0, most=1)
    contribution = positive("bound", bound) / positive("noise_scale", noise_scale)
    each, all_moves = moves(distance, bound, lipschitz, 1), moves(distance, bound, lipschitz, math.inf)
    if each > 0:
        k, weights = _binomial(math.ceil(distance.moved), rate, most=math.ceil(all_moves / each))
        shifts = np.minimum(each * k, all_moves) / noise_scale
    else:
        shifts, weights = np.zeros(1), np.ones(1)
    if toggled * (replaced + toggled) > _SPLITS:
        replaced, toggled = replaced + toggled, 0

    def pairs(here: int) -> list[GaussianMixturePair]:
        rows, other_rows = replaced + here, replaced + toggled - here
        return [poisson_pair(rate, contribution, rows=rows, other_rows=other_rows, shift=float(s)) for s in shifts]

    return [(weights, pairs(here)) for here in range(toggled // 2 + 1)]


def epoch_mu(
    distance: Distance, *, batch_size: int, epochs: int, bound: float, lipschitz: float, noise_scale: float
) -> float:
    """Gaussian parameter of whole epochs over disjoint batches in any order that is chosen without the data.

    ``sqrt(epochs) (bound mass + sqrt(M S)) / noise_scale``, where ``S = min(lipschitz total, 2 bound moved)`` bounds
    what the moved rows change in all batches together and M the same in one batch. All iterates may be published;
    nothing is claimed for shuffling, but rows that match only up to a permutation are charged.
    """
    distance = distance.by_position()
    integer("batch_size", batch_size)
    one, all_batches = (moves(distance, bound, lipschitz, rows) for rows in (batch_size, math.inf))
    shift = bound * distance.mass + math.sqrt(one) * math.sqrt(all_batches)
    return math.sqrt(integer("epochs", epochs)) * shift / positive("noise_scale", noise_scale) * (1 + 1e-12)


def whole_rows(distance: Distance) -> tuple[int, int]:
    """How many rows are replaced and toggled; sampling looks at slots, so their weight does not matter."""
    if distance.reweighted:
        raise UnsupportedOrder(
            "sampled steps are not proved for rows whose weight differs.",
            fix="use full batches, or a stage that keeps or drops whole rows.",
        )
    return math.ceil(distance.replaced), math.ceil(distance.toggled)


def moves(distance: Distance, bound: float, lipschitz: float, rows: float) -> float:
    """Most that at most ``rows`` of the moved rows change the sum of their contributions."""
    positive("bound", bound)
    if not lipschitz >= 0:
        raise InvalidParameter(f"lipschitz must not be negative, got {lipschitz!r}.")
    count = min(rows, distance.moved)
    if distance.total == 0 or count == 0 or lipschitz == 0:
        return 0.0
    return min(lipschitz * min(count * distance.radius, distance.total), 2 * bound * count)


def _binomial(count: int, rate: float, most: int | None = None) -> tuple[Floats, Floats]:
    """Values and weights of a law above that of min(K, most), K ~ Bin(count, rate): the same, or rounded up."""
    if rate == 1 or count > _COUNTABLE:
        k, weights = np.array([count]), np.ones(1)
    elif count <= EXACT:
        k = np.arange(count + 1)
        weights = np.array([math.comb(count, int(i)) * rate**i * (1 - rate) ** (count - i) for i in k])
    else:
        k = np.array(sorted({0, count, *(_quantile(count, rate, float(tail)) for tail in TAILS)}))
        weights = rounded_up(special.bdtrc(k[:-1], count, rate))
    return gathered(k, weights, most)


def rounded_up(tails: Floats) -> Floats:
    """Weights of ascending values, of a law above the one that exceeds each value but the last with these tails."""
    above = np.append(np.minimum(tails * _TAIL_ERROR, 1.0), 0.0)
    return -np.diff(above, prepend=1.0)


def gathered(k: NDArray[Any], weights: Floats, most: int | None) -> tuple[Floats, Floats]:
    """Values of positive weight, no larger than ``most``, each once."""
    likely = weights > 0  # the others underflow
    values, which = np.unique(k[likely] if most is None else np.minimum(k[likely], most), return_inverse=True)
    return values.astype(float), np.asarray(np.bincount(which, weights[likely]), float)


def _quantile(count: int, rate: float, tail: float) -> int:
    """Least k with P(Bin(count, rate) > k) <= tail."""
    low, high = -1, count
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if special.bdtrc(middle, count, rate) <= tail else (middle, high)
    return high


def _mean(weights: Floats, pairs: list[GaussianMixturePair]) -> Callable[[Floats], Floats]:
    def delta(epsilon: Floats) -> Floats:
        return np.asarray(sum(weight * pair.delta(epsilon) for weight, pair in zip(weights, pairs)))

    return delta


def _log_sum(means: Floats, weights: Floats, x: Floats) -> Floats:
    """Log density of a mixture of Gaussians, without the common factor ``exp(-x²/2) / sqrt(2 pi)``."""
    exponents = np.multiply.outer(means, x) + (np.log(weights) - means**2 / 2)[:, None]
    top = exponents.max(axis=0)
    return np.asarray(top + np.log(np.exp(exponents - top).sum(axis=0)))
