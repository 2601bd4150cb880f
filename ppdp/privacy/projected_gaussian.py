"""Gaussian releases that are seen only through a projection drawn afresh for each: their profiles.

A vector whose change has length mu (in standard deviations of its noise) is seen on a uniformly random subspace of
``rank`` of its ``dimension`` dimensions. The square of what is seen of the change is ``mu² B`` with B ~ Beta(rank / 2,
(dimension - rank) / 2): the *share*. Of a matrix of any rank it is a mean of such shares.
Theory: ``docs/theory/fresh-projections.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ppdp.core.checks import number
from ppdp.privacy.batch_distributions import log_sum

Floats = NDArray[np.float64]

MOST_SAMPLED = 512  # orders up to which sampling is accounted for

_CELLS = 2**13  # of a law
_LOST = 1e-18  # probability beyond its cells, at each end and each time two of them are added
_UP = 1 + 1e-11  # more than a mass, or a convolution, can be too small by
_SLACK = 1e-7  # of a profile, as for one Gaussian release
_SPARE = (0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 1.0, 2.0)  # shares, over their mean
_ORDERS = 1 + np.geomspace(0.02, 3000, 128)
_MOST, _COARSER = 1.5, 16  # power of a share in the curvature; cells that are taken together there
_LARGEST_EXPONENT = 700.0
_CHORDS = 48  # that are tried
_EXACT_TERMS, _BLOCKS = 64, 128
_FEW = 64  # terms
_REST, _FALL = 1e-16, 50.0  # of a series, as a share; of an integrand, as a logarithm
_LARGE = 2.0**100  # z over b: what is missing to z is nothing beside it


def log_share_moment(dimension: int, rank: int, exponent: float) -> float:
    """``log E exp(exponent B)`` of one share; all of it where nothing is projected away."""
    if rank >= dimension or math.isinf(exponent):
        return exponent
    return log1F1(rank / 2, dimension / 2, exponent)


@lru_cache(maxsize=4096)
def sampled_log_moment(dimension: int, rank: int, mu: float, rate: float, order: int) -> float:
    """``log E (P/Q)^order`` of one release of a sum that has one more row with probability ``rate``; both ways round.

    ``log of the sum over k of C(order, k) (1 - rate)^(order - k) rate^k E exp(k (k - 1) mu² B / 2)``.
    """
    k = np.arange(order + 1)
    ways = special.gammaln(order + 1) - special.gammaln(k + 1) - special.gammaln(order - k + 1)
    moments = _log_moments(dimension, rank, mu)[: order + 1]
    logs = ways + k * math.log(rate) + (order - k) * math.log1p(-rate) + moments
    top = float(logs.max())
    if math.isinf(top):
        return top
    return top + math.log(float(np.exp(logs - top).sum())) + 1e-11


@lru_cache(maxsize=16)
def _log_moments(dimension: int, rank: int, mu: float) -> Floats:
    exponents = (k * (k - 1) * mu * mu / 2 if k > 1 else 0.0 for k in range(MOST_SAMPLED + 1))
    return np.array([log_share_moment(dimension, rank, exponent) for exponent in exponents])


@dataclass(frozen=True, slots=True, eq=False)
class _Law:
    """A sum of shares on a grid, every one of them rounded up."""

    first: int  # the masses stand at (first + i) step
    step: float
    masses: Floats
    lost: float  # probability beyond the last of them

    @property
    def places(self) -> Floats:
        return np.asarray((self.first + np.arange(len(self.masses))) * self.step, dtype=np.float64)

    def coarser(self, times: int) -> _Law:
        """The same on every ``times``-th place, upward."""
        if times == 1:
            return self
        ahead = (self.first - 1) % times
        last = -(self.first + len(self.masses) - 1) % times
        masses = np.concatenate([np.zeros(ahead), self.masses, np.zeros(last)]).reshape(-1, times).sum(axis=1)
        return _Law(-(-self.first // times), self.step * times, masses, self.lost)

    def __add__(self, other: _Law) -> _Law:
        """The sum of two independent ones."""
        step = max(self.step, other.step)
        one, two = (law.coarser(round(step / law.step)) for law in (self, other))
        masses = np.convolve(one.masses, two.masses) * _UP
        below, above = np.cumsum(masses), np.cumsum(masses[::-1])[::-1]
        start, end = int(np.searchsorted(below, _LOST)), int(np.searchsorted(-above, -_LOST))
        kept = masses[start:end].copy()
        kept[0] += below[start - 1] if start else 0.0  # moved up
        lost = one.lost + two.lost + (float(above[end]) if end < len(above) else 0.0)
        law = _Law(one.first + two.first + start, step, kept, lost)
        return law.coarser(-(-len(kept) // _CELLS))


def _one_share(dimension: int, rank: int) -> _Law:
    a, b = rank / 2, (dimension - rank) / 2
    top = float(special.betainccinv(a, b, _LOST)) * (1 + 1e-9)
    step = min(top, 1.0) / _CELLS
    edges = np.minimum(step * np.arange(_CELLS + 1), 1.0)
    below, above = special.betainc(a, b, edges), special.betaincc(a, b, edges)
    masses = np.where(below[1:] < 0.5, np.diff(below), -np.diff(above))
    return _Law(1, step, np.maximum(masses, 0.0) * _UP, float(above[-1]) * 2)


@lru_cache(maxsize=32)
def _shares(dimension: int, rank: int, steps: int) -> _Law:
    """The law of the sum of so many independent shares, by doubling."""
    if steps == 1:
        return _one_share(dimension, rank)
    half = _shares(dimension, rank, steps // 2)
    double = half + half
    return double + _one_share(dimension, rank) if steps % 2 else double


@lru_cache(maxsize=32)
def _coarse_shares(dimension: int, rank: int, steps: int, grain: int) -> _Law:
    return _shares(dimension, rank, steps).coarser(grain)


@dataclass(frozen=True)
class ProjectedReleases:
    """``steps`` releases, each free to depend on the ones before, and a Gaussian release beside them."""

    dimension: int  # of the space
    rank: int  # of what is seen of it, less than that
    mu: float  # most by which what is projected changes, over the standard deviation of its noise
    steps: int  # releases
    gaussian: float  # parameter mu of everything Gaussian that is released beside them
    grain: int = 1  # cells of the law of a sum that are taken together: faster, and a little larger

    @property
    def mean(self) -> float:
        """Of a share."""
        return self.rank / self.dimension

    def rank_one(self, epsilon: float, spare: float = 0.0) -> float:
        """Delta at this epsilon of changes of rank one: ``E delta_G(epsilon; mu √(B_1 + ... + B_T + spare))``."""
        law = _coarse_shares(self.dimension, self.rank, self.steps, self.grain)
        return min(1.0, law.lost + float(law.masses @ self._profile(epsilon, law.places + spare)))

    def any_rank(self, epsilon: float) -> float:
        """Delta at this epsilon of changes of any rank, that may depend on all that was released before.

        What rank one costs with a little more of the change to be seen, and for that the correction of Theorem 3. Of
        one release the mean of a convex majorant of the profile as well (Theorem 2).
        """
        best = self._majorant(epsilon) if self.steps == 1 else 1.0
        logs, slopes = self._corrections
        corrections = np.exp(np.minimum((logs - slopes * epsilon).min(axis=1, initial=0.0), 0.0))
        for spare, correction in zip(_SPARE, corrections):
            if correction < best:
                own = self.rank_one(epsilon, spare * self.mean)
                if own >= best:
                    break
                best = min(best, own + float(correction))
        return best

    def _profile(self, epsilon: float, shares: Floats) -> Floats:
        """``delta_G(epsilon; .)`` where so much of the change is seen, rounded up."""
        mu = np.sqrt(self.mu**2 * shares + self.gaussian**2)
        log_p = special.log_ndtr(mu / 2 - epsilon / mu)
        log_q = epsilon + special.log_ndtr(-mu / 2 - epsilon / mu)
        lost = 4e-15 * (1 + 2 * epsilon - log_p - log_q)
        return np.asarray(np.exp(log_p) * -np.expm1(np.minimum(log_q - log_p, 0.0) - lost) * (1 + _SLACK))

    def _majorant(self, epsilon: float) -> float:
        """The least mean of the profile up to a place, and of its steepest chord from there on; the places are tried.

        The profile is convex up to ``mu² c = 2 (√(1 + epsilon²) - 1)``, and concave beyond.
        """
        law = _shares(self.dimension, self.rank, 1)
        inflection = (2 * (math.sqrt(1 + epsilon**2) - 1) - self.gaussian**2) / self.mu**2
        convex = np.searchsorted(law.places, inflection) - 1  # the last place with a convex cell behind it
        if convex < 1:
            return 1.0
        places = np.concatenate([law.places, np.geomspace(law.places[-1], 1 + law.step, 256)[1:]])
        heights = self._profile(epsilon, places)
        here = heights[: len(law.masses)]
        below = np.cumsum(law.masses * here)
        beyond = np.cumsum(law.masses[::-1])[::-1]
        first_moment = np.cumsum((law.masses * law.places)[::-1])[::-1]
        best = 1.0
        for j in np.unique(np.linspace(0, min(int(convex), len(here) - 2), _CHORDS, dtype=int)):
            at = places[j]
            steepest = float(((heights[j + 2 :] - heights[j]) / (places[j + 1 : -1] - at)).max(initial=0.0))
            steepest = max(steepest, self._slope(epsilon, float(places[j + 1])))
            rest = beyond[j + 1] * heights[j] + steepest * (first_moment[j + 1] - at * beyond[j + 1])
            best = min(best, float(below[j] + rest))
        return best + law.lost

    def _slope(self, epsilon: float, share: float) -> float:
        """Derivative of the profile in the share."""
        s = self.mu**2 * share + self.gaussian**2
        return self.mu**2 * math.exp(-((epsilon - s / 2) ** 2) / (2 * s)) / (2 * math.sqrt(2 * math.pi * s)) * _UP

    @property
    def _corrections(self) -> tuple[Floats, Floats]:
        """Of Theorem 3, as logarithms at epsilon 0 by spare share and order, and how fast they fall in epsilon."""
        return _corrections(self)


@lru_cache(maxsize=8)
def _corrections(run: ProjectedReleases) -> tuple[Floats, Floats]:
    products = _ORDERS * (_ORDERS - 1) / 2
    kept = products * run.mu**2 <= _LARGEST_EXPONENT
    orders, products = _ORDERS[kept], products[kept]
    exponents = products * run.mu**2
    moments = np.array([log_share_moment(run.dimension, run.rank, float(exponent)) for exponent in exponents])
    along = (run.steps - 1) * moments + products * run.gaussian**2 + 4 * math.log(run.mu)
    return np.stack(
        [along + exponents * spare * run.mean + _bends(run, spare, exponents) for spare in _SPARE]
    ), orders - 1


def _bends(run: ProjectedReleases, spare: float, exponents: Floats) -> Floats:
    """Logarithm of what all releases together may gain from the curvature of the profile (Lemma 4), by exponent.

    The sum over p and k of ``c_p C_k (v (s + m)^-q exp(t m) / 3 + E (B - m)² (s + B)^-q exp(t B) / 6)`` with ``q = p /
    (k + 1)``, k releases being left; s the spare share, m and v mean and variance of B, t the exponent.
    """
    a, b, mean = run.rank / 2, run.dimension / 2, run.mean
    variance, at = mean * (1 - mean) / (b + 1), spare * mean
    log_first, log_last = (_log_weighted(run, at, exponents, q) for q in (0.0, _MOST))
    k, count = _releases_left(run.steps)
    total = []
    for p, factor in ((0.5, 1 / (16 * run.mu)), (_MOST, 1 / (4 * run.mu**3))):
        q = p / (k + 1)
        known = (k == 0) | (q < a)
        inside = np.where(known & (k > 0), q, 0.0)
        one = special.gammaln(a - inside) - special.gammaln(a) + special.gammaln(b) - special.gammaln(b - inside)
        logs = np.where(known, k * one - p * np.log(k + 1), 0.0) + np.log(count * factor / math.sqrt(2 * math.pi))
        q = np.where(known, q, p)[:, None]
        middle = math.log(variance / 3) - q * math.log(at + mean) + exponents * mean
        away = (1 - q / _MOST) * log_first + q / _MOST * log_last - math.log(6)
        total.append(log_sum(logs[:, None] + np.logaddexp(middle, away), axis=0))
    return np.asarray(np.logaddexp(*total)) + 1e-3


def _log_weighted(run: ProjectedReleases, at: float, exponents: Floats, q: float) -> Floats:
    """``log E (B - m)² (s + B)^-q exp(t B)`` by exponent t, each cell of the law at the worst of its places."""
    law = _coarse_shares(run.dimension, run.rank, 1, _COARSER)
    above = law.places
    below = np.maximum(above - law.step, 0.0)
    far = np.maximum((above - run.mean) ** 2, (below - run.mean) ** 2)
    weights = np.append(law.masses * far * (at + below) ** -q, law.lost * (at + above[-1]) ** -q)
    with np.errstate(divide="ignore"):
        logs = np.log(weights)
    return log_sum(logs + exponents[:, None] * np.append(above, 1.0), axis=1)


def _releases_left(steps: int) -> tuple[Floats, Floats]:
    """Numbers of releases that are left, and for how many others each of them stands, all of them larger."""
    k = np.arange(min(steps, _EXACT_TERMS), dtype=float)
    if steps > _EXACT_TERMS:
        k = np.unique(np.concatenate([k, np.floor(np.geomspace(_EXACT_TERMS, steps - 1, _BLOCKS))]))
    return k, np.diff(k, append=steps)


@lru_cache(maxsize=2**14)
def log1F1(a: float, b: float, z: float) -> float:
    """``log 1F1(a; b; z) = log E exp(z B)`` for B ~ Beta(a, b - a), ``0 < a < b`` and ``z >= 0``; rounded up.

    The series, all of whose terms are positive, until its tail is at most that of a geometric series; where its largest
    term comes late, Euler's integral by the trapezoidal rule. Never above z; relative error below 1e-10.
    :class:`InvalidParameter` if a number is outside this range.
    """
    number("a", a, above=0)
    number("b", b, above=a)
    number("z", z, least=0)
    if z == 0 or z > _LARGE * b:
        return z
    half = (z - b - 1) / 2
    largest = half + math.sqrt(max(half * half + a * z - b, 0.0))  # where two terms that follow each other are equal
    found = (
        _integral(a, b, z)
        if largest > max(1000, b / 25)
        else _series(a, b, z, _FEW + int(1.5 * max(largest, 0.0)))  # below 0 where terms fall from the first
    )
    return min(found * _UP, z)


def _series(a: float, b: float, z: float, size: int) -> float:
    """``log(1 + sum of (a)_n z^n / ((b)_n n!))``, in blocks of terms, the first of this size."""
    top, total, log_term, start = 0.0, 0.0, 0.0, 0  # the sum but its first term is total exp(top)
    while True:
        n = np.arange(start, start + size, dtype=float)
        ratios = z / (n + 1) * ((a + n) / (b + n))
        logs = log_term + np.cumsum(np.log(ratios))
        higher = max(top, float(logs.max()))
        total = total * math.exp(top - higher) + float(np.exp(logs - higher).sum())
        top, log_term, start = higher, float(logs[-1]), start + size
        ratio = z / (start + 1) * max(1.0, (a + start) / (start + 1)) * (start + 1) / (b + start)  # of all that follow
        rest = math.exp(log_term - top) * ratio / (1 - ratio) if ratio < 1 else math.inf
        size *= 2
        if rest <= _REST * total:
            total += rest
            return math.log1p(total) if top == 0 else top + math.log(math.exp(-top) + total)


def _integral(a: float, b: float, z: float) -> float:
    """``z + log E exp(-z (1 - B))``, over ``t = log(B / (1 - B))``: analytic, with one peak, that decays at both ends.

    The trapezoidal rule then errs by ``exp(-2 pi² / (step² curvature))``, as a share, or less.
    """
    root = math.sqrt((z - b) ** 2 + 4 * a * z)
    x = ((z - b) + root) / (2 * z) if z > b else 2 * a / ((b - z) + root)
    y = 2 * (b - a) / ((z + b) + math.sqrt((z - b) ** 2 + 4 * a * z))
    peak = math.log(x / y)
    step = min(0.2, 0.6 / math.sqrt(x * y * (b + z * (x - y))))

    def height(t: np.ndarray) -> np.ndarray:
        away = np.logaddexp(0.0, t)  # -log(1 - B)
        return np.asarray(-z * special.expit(-t) + a * (t - away) - (b - a) * away)

    highest = float(height(np.asarray(peak)))
    low = high = 8
    while float(height(np.asarray(peak - low * step))) > highest - _FALL:
        low += low // 2
    while float(height(np.asarray(peak + high * step))) > highest - _FALL:
        high += high // 2
    values = height(peak + step * np.arange(-low, high + 1)) - highest
    return z + highest + math.log(step * float(np.exp(values).sum())) - float(special.betaln(a, b - a))
