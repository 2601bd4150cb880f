"""Special functions at the ends of the ranges that bounds reach, against 60 digits.

First what SciPy gives, with the relative error that whoever calls it allows for; then what ppdp makes of it, with the
direction in which alone it may err. (Binomial tails: ``test_laws.py``.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import mpmath as mp
import pytest
from sampled_steps import true_log_tail
from scipy import special
from scipy.stats import beta, hypergeom

from ppdp.bounds.selection import range_mu, range_of
from ppdp.privacy.gate import gate_noise, overlap
from ppdp.privacy.gaussian import gaussian_delta, gaussian_epsilon
from ppdp.privacy.ledger.privacy_filter import pure_mu
from ppdp.testing.confidence import at_least


def normal(x: float) -> mp.mpf:
    return mp.erfc(-mp.mpf(x) / mp.sqrt(2)) / 2


def log_normal(x: float) -> mp.mpf:
    return mp.log(normal(x)) if x < 0 else mp.log1p(-normal(-x))


def quantile(p: mp.mpf) -> mp.mpf:
    """Φ⁻¹, by bisection, for p up to one half and beyond."""
    low, high = mp.mpf(-60), mp.mpf(60)
    for _ in range(190):
        middle = (low + high) / 2
        low, high = (middle, high) if normal(middle) < p else (low, middle)
    return high


def log_choose(n: int, k: int) -> mp.mpf:
    return mp.loggamma(n + 1) - mp.loggamma(k + 1) - mp.loggamma(n - k + 1)


def gaussian_profile(mu: float, epsilon: float) -> mp.mpf:
    mu, epsilon = mp.mpf(mu), mp.mpf(epsilon)
    return normal(mu / 2 - epsilon / mu) - mp.exp(epsilon) * normal(-mu / 2 - epsilon / mu)


class Known(NamedTuple):
    """A function, what it should be, where it is asked, and how far it may be off, down and up, relatively."""

    name: str
    function: Callable[..., float]
    truth: Callable[..., mp.mpf]
    points: list[tuple[float, ...]]
    below: float
    above: float


PROBABILITIES = [(1e-300,), (1e-100,), (1e-30,), (1e-12,), (1e-6,), (0.02,), (0.1353,), (0.3,), (0.499999,)]
NEAR_ZERO = [(-math.log(2) * (1 + 1e-9),), (-0.6932,), (-0.75,), (-2.0,), (-2.1,), (-40.0,), (-700.0,), (-1000.0,)]
EVERYWHERE = [(x,) for x in (-1e8, -1e4, -200.0, -38.0, -20.0, -5.0, -1.0, -0.7, 0.0, 1e-9, 0.3, 1.0, 5.0, 8.3, 20.0)]
SMALL = [(1e-12,), (1e-9,), (1e-6,), (1e-3,), (0.1,), (1.0,), (10.0,), (100.0,), (700.0,)]
MUS = [(1e-6,), (1e-3,), (0.2,), (1.0,), (10.0,), (50.0,)]
DRAWS = [
    (101, 1000, 300, 400),
    (1000, 10**6, 10**5, 10**4),
    (10**5, 10**8, 10**7, 10**6),
    (503536, 10**8, 10**6, 5 * 10**7),
]
BATCHES = [(1, 25_001, 1e-6), (25_000, 1, 1e-6), (3, 49_998, 1e-9), (25_000, 25_001, 1e-7)]

SCIPY = [
    Known(
        "log_ndtr",
        special.log_ndtr,
        lambda x: mp.log(normal(x)) if x < 0 else mp.log1p(-normal(-x)),
        EVERYWHERE,
        4e-14,
        4e-14,
    ),
    Known("ndtr", special.ndtr, normal, EVERYWHERE[4:], 1e-13, 1e-13),
    Known("ndtri", special.ndtri, lambda p: quantile(mp.mpf(p)), PROBABILITIES, 1e-12, 1e-12),
    Known("ndtri_exp", special.ndtri_exp, lambda y: quantile(mp.exp(mp.mpf(y))), NEAR_ZERO[1:-1], 1e-9, 1e-12),
    Known(
        "hypergeom.pmf",
        lambda *at: math.exp(hypergeom.logpmf(*at)),
        lambda k, n, m, d: mp.exp(log_choose(m, k) + log_choose(n - m, d - k) - log_choose(n, d)),
        DRAWS,
        5e-6,
        5e-6,
    ),
    Known(
        "beta.ppf, as a probability",
        lambda a, b, p: mp.exp(true_log_tail(a - 1, a + b - 1, float(beta.ppf(p, a, b)))),
        lambda a, b, p: mp.mpf(p),
        BATCHES,
        1e-6,
        1e-6,
    ),
]

OURS = [
    Known("pure_mu", pure_mu, lambda e: -2 * quantile(1 / (1 + mp.exp(mp.mpf(e)))), SMALL, 0, 2e-3),
    Known("range_mu", range_mu, lambda r: -2 * quantile(1 / (1 + mp.exp(mp.mpf(r) / 2))), SMALL, 0, 4e-3),
    Known("range_of", range_of, lambda m: 2 * mp.log(normal(m / 2) / normal(-m / 2)), MUS, 2e-8, 0),
    Known("overlap", overlap, lambda m: 2 * normal(-mp.mpf(m) / 2), MUS, 1e-11, 0),
    Known(
        "threshold of a gate",
        lambda delta: gate_noise("gaussian", 5.0, 1000).threshold(delta),
        lambda delta: 1 - 5 * quantile(mp.mpf(delta)),
        PROBABILITIES[1:6],
        0,
        1e-7,
    ),
    Known(
        "gaussian_delta",
        gaussian_delta,
        gaussian_profile,
        [(1e-6, 0.0), (1e-6, 4e-6), (0.01, 0.05), (1.0, 0.0), (1.0, 8.0), (1.0, 30.0), (30.0, 500.0), (30.0, 900.0)],
        0,
        1e-6,
    ),
    Known(
        "delta at gaussian_epsilon",
        lambda mu, delta: float(gaussian_profile(mu, gaussian_epsilon(mu, delta))),
        lambda mu, delta: mp.mpf(delta),
        [(1e-4, 1e-8), (0.2, 1e-6), (1.0, 1e-300), (30.0, 1e-12)],
        1e-6,
        0,
    ),
    Known(
        "probability below a Clopper-Pearson bound",
        lambda k, n, doubt: mp.exp(true_log_tail(k - 1, n, float(at_least(k, n, doubt)))),
        lambda k, n, doubt: mp.mpf(doubt),
        [(1, 25_000, 1e-6), (25_000, 25_000, 1e-6), (12_000, 25_000, 1e-9)],
        1e-6,
        1e-6,
    ),
]


@pytest.mark.parametrize("known", [*SCIPY, *OURS], ids=lambda known: known.name)
def test_it_errs_by_what_is_allowed_and_in_no_other_direction(known):
    for point in known.points:
        with mp.workdps(60):
            truth, found = known.truth(*point), mp.mpf(float(known.function(*point)))
            off = (found - truth) / abs(truth)
            assert -known.below <= off <= known.above, f"{known.name}{point}: off by {mp.nstr(off, 3)}"
