"""Sampled steps by brute force over all samples, and datasets that are at a given distance."""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np

from ppdp.privacy.pld import LossDistribution, loss_distribution
from ppdp.privacy.subsampling import GaussianMixturePair, Profile, poisson_pair

COARSE = 2.0**-10
EPSILONS = np.array([0.0, 0.05, 0.3, 1.0, 2.5])
QUADRATURE = 1 + 2e-6  # what the quadratures below may err by, where delta is not negligible
NEGLIGIBLE = 1e-9


def true_delta(pair: GaussianMixturePair, epsilon: float) -> mp.mpf:
    """Profile of a mixture pair to 40 digits."""
    with mp.workdps(40):
        p, q = ([mp.exp(float(v)) for v in part] for part in (pair.log_p, pair.log_q))
        a, b = ([mp.mpf(float(v)) for v in part] for part in (pair.a, pair.b))
        density = lambda x, w, m: mp.fsum(u * mp.exp(-((x - v) ** 2) / 2) for u, v in zip(w, m))  # noqa: E731
        upper = lambda x, w, m: mp.fsum(u * mp.erfc((x - v) / mp.sqrt(2)) / 2 for u, v in zip(w, m))  # noqa: E731
        minus = [-v for v in b]
        low, high = -60 - max(b), 60 + max(a)
        for _ in range(70):  # where it stands to 1e-19 errs by the square of that
            middle = (low + high) / 2
            if density(middle, p, a) < mp.exp(epsilon) * density(middle, q, minus):
                low = middle
            else:
                high = middle
        return upper(high, p, a) - mp.exp(epsilon) * upper(high, q, minus)


def true_log_tail(k: int, count: int, rate: float) -> mp.mpf:
    """``log P(K > k)`` from 60 digits of the first term and the ratios of the others, which are all positive."""
    with mp.workdps(60):
        q = mp.mpf(rate)
        above = k + 1 > count * q
        at, end, odds = (k + 1, count, rate / (1 - rate)) if above else (k, 0, (1 - rate) / rate)
        first = mp.loggamma(count + 1) - mp.loggamma(at + 1) - mp.loggamma(count - at + 1)
        first += at * mp.log(q) + (count - at) * mp.log1p(-q)
        j = np.arange(min(abs(end - at), 100 + int(20 * math.sqrt(count * rate * (1 - rate)))), dtype=float)
        ratios = (abs(end - at) - j) / (abs(at - (count - end)) + 1 + j) * odds
        log_tail = first + mp.log(1 + float(np.cumprod(ratios).sum()))
        return log_tail if above else mp.log1p(-mp.exp(log_tail))


def hockey_stick(p, q, epsilons, cell):
    """sup_O P(O) - exp(epsilon) Q(O) from two densities on a grid."""
    return np.array([np.maximum(p - math.exp(e) * q, 0).sum() * cell for e in epsilons])


def mixture_1d(x, means, weights, sigma):
    means, same = np.unique(means, return_inverse=True)
    z = np.subtract.outer(x / sigma, means / sigma)
    z *= z
    z /= -2
    return np.exp(z, out=z) @ np.bincount(same, weights) / (sigma * math.sqrt(2 * math.pi))


def poisson_samples(n, rate):
    """All 2^n samples and their probabilities."""
    samples = np.array(list(itertools.product((0, 1), repeat=n)))
    return samples, np.prod(np.where(samples, rate, 1 - rate), axis=1)


def fixed_samples(n, size):
    samples = np.array([[i in chosen for i in range(n)] for chosen in itertools.combinations(range(n), size)], float)
    return samples, np.full(len(samples), 1 / len(samples))


def true_profile_1d(left, right, samples, weights, sigma):
    """Exact profile, both ways round, of the noisy sum over a random sample of numbers."""
    means, cell = [samples @ rows for rows in (left, right)], (sigma + len(left) / 10) / 1000
    x = np.arange(np.min(means) - 8 * sigma, np.max(means) + 8 * sigma, cell)
    p, q = (mixture_1d(x, centres, weights, sigma) for centres in means)
    return np.maximum(hockey_stick(p, q, EPSILONS, cell), hockey_stick(q, p, EPSILONS, cell))


def within(distance, bound, lipschitz, rng, directions=((1.0,), (-1.0,))):
    """Two arrays of contributions of n rows at this distance: replaced, toggled, moved, equal."""
    d = len(directions[0])

    def some(norm):
        v = rng.normal(size=d)
        return v * (norm * (1 if rng.random() < 0.6 else rng.random()) / np.linalg.norm(v))

    left, right = [], []
    axis = np.array(directions[rng.integers(len(directions))])
    for _ in range(int(distance.replaced)):
        if rng.random() < 0.6:
            left.append(bound * axis), right.append(-bound * axis)
        else:
            left.append(some(bound)), right.append(some(bound))
    for _ in range(int(distance.toggled)):
        present = [bound * axis if rng.random() < 0.6 else some(bound), np.zeros(d)]
        for side, row in zip((left, right), present if rng.random() < 0.5 else present[::-1]):
            side.append(row)
    moves = rng.dirichlet(np.full(max(int(distance.moved), 1), 3.0)) * distance.total
    for move in moves[: int(distance.moved)]:
        length = min(lipschitz * min(move, distance.radius), 2 * bound)
        half = length / 2 * axis
        left.append(half), right.append(-half)
    for _ in range(2):  # equal rows
        row = some(bound)
        left.append(row), right.append(row)
    return np.array(left), np.array(right)


def sampled(rate, sigma, steps, shift=0.0, interval=COARSE) -> LossDistribution:
    """Poisson steps, one replaced row, everything else shifted by exactly ``shift``."""
    profile = Profile.symmetric(poisson_pair(rate, 1 / sigma, shift=shift / sigma).delta)
    return loss_distribution(profile, interval) * steps
