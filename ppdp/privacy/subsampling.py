"""Steps of noisy gradient descent on Poisson samples: dominating pairs and exact profiles, moved rows included.

One step releases the sum of the rows' contributions in a random batch plus Gaussian noise; ``noise_scale`` is always
the standard deviation on that *sum*. Every contribution has norm at most ``bound`` and is ``lipschitz`` in its row.
Sampling hides *which* rows differ, so what counts is how many rows differ, never how much weight they carry; rows
that all moved are hidden by nothing. Batches are drawn in secret and independently of the data.
Theory: ``docs/theory/subsampling.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ppdp.core.checks import integer, number, positive
from ppdp.core.distance import Distance
from ppdp.exceptions import InvalidParameter, UnsupportedOrder
from ppdp.privacy.batch_distributions import LEVELS, binomial_law, log_sum

Floats = NDArray[np.float64]

_SPLITS = 256  # toggled times differing rows; where they are more, toggled rows are charged as replaced
_FAR = 40.0  # standard deviations beyond which a Gaussian has no mass in float64
_MOST_TERMS, _BLOCK = 2**25, 2**20  # of a quadrature, points times components; and at a time
_HALVINGS, _CUT_ERROR = 60, 1e-12  # an error e of the cut costs O(e²) of delta
_TABLE = 1024  # points of the table in which a cut is looked up first


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """delta(epsilon) for ``epsilon >= 0`` of a dominating pair (P, Q), both ways round: one function if symmetric.

    ``forward`` bounds ``sup_O P(O) - exp(epsilon) Q(O)`` and ``backward`` the same with P and Q exchanged. Negative
    epsilons need no third one: ``delta(-e) = 1 - exp(-e) + exp(-e) backward(e)``.
    """

    forward: Callable[[Floats], Floats]
    backward: Callable[[Floats], Floats]

    @classmethod
    def symmetric(cls, delta: Callable[[Floats], Floats]) -> Profile:
        """That of a pair that looks the same both ways round."""
        return cls(delta, delta)


@dataclass(frozen=True, slots=True, eq=False)
class GaussianMixturePair:
    """P = sum p_k N(a_k, 1) against Q = sum q_j N(-b_j, 1), all a_k, b_j >= 0; weights are given as logarithms.

    By Lemma V (``docs/theory/subsampling.md``) it dominates every pair of Gaussian mixtures in any dimension with
    the same weights, whose means have at most these norms. Its likelihood ratio increases, so the best event is
    ``x > cut``.
    """

    log_p: Floats
    a: Floats
    log_q: Floats
    b: Floats

    @property
    def gap(self) -> float:
        """How far the means that are furthest apart are from each other; no divergence exceeds theirs."""
        return float(self.a.max() + self.b.max())

    def reversed(self) -> GaussianMixturePair:
        """The pair (Q, P), mirrored so that it has the same form."""
        return GaussianMixturePair(self.log_q, self.b, self.log_p, self.a)

    def log_ratio(self, x: Floats) -> Floats:
        """``log P/Q`` at x."""
        return _log_sum(self.a, self.log_p, x)[0] - _log_sum(-self.b, self.log_q, x)[0]

    @np.errstate(under="ignore")  # a probability too small for a number is 0
    def delta(self, epsilon: ArrayLike) -> Floats:
        """``P(x > cut) - exp(epsilon) Q(x > cut)``; what the subtraction may lose is charged."""
        epsilon = np.atleast_1d(np.asarray(epsilon, float))
        if self.a.max() == self.b.max() == 0:
            return np.zeros_like(epsilon)
        cut = self._cut(epsilon)[:, None]
        log_p = log_sum(self.log_p + special.log_ndtr(self.a - cut), axis=-1)
        log_q = epsilon + log_sum(self.log_q + special.log_ndtr(-self.b - cut), axis=-1)
        lost = 4e-15 * (1 + epsilon + np.abs(log_p) + np.abs(log_q))
        return np.exp(log_p) * -np.expm1(np.minimum(log_q - log_p, 0.0) - lost)

    def renyi(self, alpha: float) -> float:
        """Rényi divergence of P from Q by the trapezoidal rule, or infinity where that would take too long.

        The rule errs by ``exp(-2 pi y / step)`` times the growth of the integrand in a strip of half-width y without
        a zero of Q; y = pi / (2 gap) for means at most ``gap`` apart, and the growth is below ``2^(alpha / 2)``.
        """
        if not alpha > 1:
            raise InvalidParameter(f"a Rényi order must be above 1, got {alpha!r}.")
        gap = self.gap
        if gap == 0:
            return 0.0
        low, high = -12 - gap, 12 + alpha * gap  # the integrand peaks before alpha times the gap
        points = (high - low) * max(80, gap * (35 + alpha) / 10)
        terms = points * (len(self.a) + len(self.b))
        if not terms <= _MOST_TERMS:
            return math.inf
        x, step = np.linspace(low, high, 1 + math.ceil(points), retstep=True)
        blocks = np.array_split(x, 1 + int(terms / _BLOCK))
        log_moment = float(log_sum([self._log_integral(alpha, block) for block in blocks])) + math.log(step)
        return (max(log_moment, 0.0) + 1e-13) / (alpha - 1) * (1 + 1e-9)

    def _log_integral(self, alpha: float, x: Floats) -> float:
        """Logarithm of the sum of ``P^alpha Q^(1 - alpha)`` over these points."""
        (log_p, _), (log_q, _) = _log_sum(self.a, self.log_p, x), _log_sum(-self.b, self.log_q, x)
        log_density = alpha * log_p - (alpha - 1) * log_q - x * x / 2 - math.log(2 * math.pi) / 2
        return float(log_sum(log_density))

    def _cut(self, epsilon: Floats) -> Floats:
        """Where the logarithm of the likelihood ratio is epsilon, or as far out as there is mass.

        Newton's method from a table, halving the bracket where it leads out of it; points that are done drop out. For
        two Gaussians the logarithm is a line.
        """
        if len(self.a) == len(self.b) == 1:
            (a,), (b,) = self.a, self.b
            with np.errstate(over="ignore"):
                x = (epsilon - self.log_p + self.log_q) / (a + b) + (a - b) / 2
            return np.asarray(np.clip(x, -_FAR - b, _FAR + a))
        table = np.linspace(-_FAR - self.b.max(), _FAR + self.a.max(), _TABLE)
        heights = np.maximum.accumulate(self.log_ratio(table))
        above = np.clip(np.searchsorted(heights, epsilon), 1, _TABLE - 1)
        low, high, x = table[above - 1], table[above], np.interp(epsilon, heights, table)
        open_ = (heights[0] < epsilon) & (epsilon < heights[-1])
        for _ in range(_HALVINGS):
            i = open_.nonzero()[0]
            if not i.size:
                break
            at = x[i]
            log_p, mean_p = _log_sum(self.a, self.log_p, at)
            log_q, mean_q = _log_sum(-self.b, self.log_q, at)
            excess = log_p - log_q - epsilon[i]
            low[i], high[i] = np.where(excess < 0, at, low[i]), np.where(excess < 0, high[i], at)
            with np.errstate(all="ignore"):
                step = excess / (mean_p - mean_q)
            inside = (low[i] < at - step) & (at - step < high[i])
            x[i] = np.where(inside, at - step, (low[i] + high[i]) / 2)
            open_[i] = (np.abs(x[i] - at) > _CUT_ERROR) & (high[i] - low[i] > _CUT_ERROR)
        return x


def gaussian_profile(mu: float) -> Profile:
    """Profile of a mu-GDP Gaussian release."""
    sure, mean = np.zeros(1), np.array([number("mu", mu, least=0)])
    return Profile.symmetric(GaussianMixturePair(sure, mean, sure, np.zeros(1)).delta)


def poisson_pair(
    rate: float,
    contribution: float,
    *,
    rows: int = 1,
    other_rows: int | None = None,
    shift: float = 0.0,
    levels: Floats = LEVELS,
) -> GaussianMixturePair:
    """Dominating pair of one step on a Poisson sample, in units of the noise; attained in one dimension.

    ``sum Bin(rows, rate)(k) N(k c, 1)`` against ``sum Bin(other_rows, rate)(k) N(-shift - k c, 1)``.

    The first dataset has ``rows`` that the second one lacks, which has ``other_rows`` (as many, if not given); replaced
    rows are both. ``contribution`` is the norm c of a row's, ``shift`` that by which the sum of all other sampled rows
    differs; at ``levels``, logarithms of tails, a law of many rows is cut.
    """
    number("rate", rate, above=0, most=1)
    k, log_p = law = binomial_law(integer("rows", rows, least=0), rate, levels=levels)
    if other_rows is not None:
        law = binomial_law(integer("other_rows", other_rows, least=0), rate, levels=levels)
    j, log_q = law
    return GaussianMixturePair(log_p, contribution * k, log_q, shift + contribution * j)


@dataclass(frozen=True, slots=True)
class PoissonStep:
    """One noisy sum over a Poisson sample at some distance, in units of the noise."""

    rate: float  # probability with which every row is in the batch
    contribution: float  # norm of a row's contribution
    moved: int  # rows that moved
    each: float  # most that one of them changes the sum
    most: float  # and all of them
    splits: tuple[tuple[int, int], ...]  # rows only in the one dataset, rows only in the other; in one order

    @classmethod
    def at(cls, distance: Distance, *, rate: float, bound: float, lipschitz: float, noise_scale: float) -> PoissonStep:
        """The step at this distance; the arguments are those of :func:`poisson_profiles`."""
        replaced, toggled = whole_rows(distance)
        number("rate", rate, above=0, most=1)
        contribution = positive("bound", bound) / positive("noise_scale", noise_scale)
        each, most = (moves(distance, bound, lipschitz, rows) / noise_scale for rows in (1, math.inf))
        if toggled * (replaced + toggled) > _SPLITS:
            replaced, toggled = replaced + toggled, 0
        splits = tuple((replaced + here, replaced + toggled - here) for here in range(toggled // 2 + 1))
        return cls(rate, contribution, math.ceil(distance.moved) if each else 0, each, most, splits)

    @property
    def enough(self) -> float:
        """Sampled moved rows beyond which no more of them change the sum further."""
        return math.ceil(self.most / self.each) if self.each else 0

    def pair(self, split: tuple[int, int], k: float, levels: Floats = LEVELS) -> GaussianMixturePair:
        """What dominates the step if k of the sampled rows moved."""
        rows, other_rows = split
        shift = float(min(self.each * k, self.most))
        return poisson_pair(self.rate, self.contribution, rows=rows, other_rows=other_rows, shift=shift, levels=levels)


def poisson_profiles(
    distance: Distance, *, rate: float, bound: float, lipschitz: float, noise_scale: float
) -> tuple[Profile, ...]:
    """Profiles of one step on a Poisson sample at this distance; a pair of datasets is dominated by one of them.

    One profile for every split of the toggled rows over the two sides, the same in every step of a run. Each is the
    mean over K ~ Bin(moved, rate), the number of sampled rows that moved, of Lemma V's pair with shift
    ``min(min(lipschitz radius, 2 bound) K, lipschitz total)``. Neither ``mass`` nor ``one_sided`` lowers the cost.

    Every row is in the batch with probability ``rate``, independently and in secret; ``lipschitz`` may be infinite.
    Reweighted rows are refused.
    """
    step = PoissonStep.at(distance, rate=rate, bound=bound, lipschitz=lipschitz, noise_scale=noise_scale)
    law = binomial_law(step.moved, rate, step.enough)
    weights = np.exp(law.log_weights)

    def profile(pairs: list[GaussianMixturePair]) -> Profile:
        forward = weighted(weights, [pair.delta for pair in pairs])
        if np.array_equal(pairs[0].log_p, pairs[0].log_q):  # the pair looks the same both ways round
            return Profile.symmetric(forward)
        return Profile(forward, weighted(weights, [pair.reversed().delta for pair in pairs]))

    return tuple(profile([step.pair(split, float(k)) for k in law.values]) for split in step.splits)


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
        what = "sampled steps are not proved for rows whose weight differs."
        raise UnsupportedOrder(what, fix="use full batches, or a stage that keeps or drops whole rows.")
    return math.ceil(distance.replaced), math.ceil(distance.toggled)


def moves(distance: Distance, bound: float, lipschitz: float, rows: float) -> float:
    """Most that at most ``rows`` of the moved rows change the sum of their contributions."""
    positive("bound", bound)
    if not lipschitz >= 0:
        raise InvalidParameter(f"lipschitz must not be negative, got {lipschitz!r}.", parameter="lipschitz")
    count = min(rows, distance.moved)
    if distance.total == 0 or count == 0 or lipschitz == 0:
        return 0.0
    return min(lipschitz * min(count * distance.radius, distance.total), 2 * bound * count)


def weighted(weights: Floats, profiles: Iterable[Callable[[Floats], Floats]]) -> Callable[[Floats], Floats]:
    """The mean of these profiles."""
    together = list(zip(weights, profiles))
    return lambda epsilon: np.asarray(sum(weight * profile(epsilon) for weight, profile in together))


def _log_sum(means: Floats, log_weights: Floats, x: Floats) -> tuple[Floats, Floats]:
    """Log density of a mixture of Gaussians and its derivative, but for the common factor ``exp(-x²/2) / sqrt(2 pi)``.

    The derivative is the mean of the component that x belongs to.
    """
    exponents = np.multiply.outer(means, x) + (log_weights - means**2 / 2)[:, None]
    top = exponents.max(axis=0)
    shares = np.exp(exponents - top)
    total = shares.sum(axis=0)
    return top + np.log(total), means @ shares / total
