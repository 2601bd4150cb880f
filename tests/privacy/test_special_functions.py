"""Special functions at the ends of the ranges that bounds reach, against 60 digits; log 1F1 against thirty."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import mpmath as mp
import numpy as np
import pytest
from effort import rounds
from sampled_steps import true_log_tail
from scipy import special
from scipy.stats import beta, hypergeom

from ppdp.bounds.selection import range_mu, range_of
from ppdp.exceptions import InvalidParameter
from ppdp.privacy.gate import gate_noise, overlap
from ppdp.privacy.gaussian import gaussian_delta, gaussian_epsilon
from ppdp.privacy.ledger.privacy_filter import pure_mu
from ppdp.privacy.projected_gaussian import log1F1
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


# ---------------- log 1F1


def exactly(a, b, z):
    """By mpmath's series, or for large arguments by its quadrature of Euler's integral about the peak."""
    a, b, z = mp.mpf(a), mp.mpf(b), mp.mpf(z)
    if z <= 3000:
        return mp.log(mp.hyp1f1(a, b, z, maxterms=10**7))
    root = mp.sqrt((z - b) ** 2 + 4 * a * z)
    x, y = ((z - b) + root) / (2 * z), 2 * (b - a) / ((z + b) + root)
    peak, width = mp.log(x / y), 1 / mp.sqrt(x * y * (b + z * (x - y)))

    def height(t):
        odds = mp.exp(t)
        return -z / (1 + odds) + a * t - b * mp.log1p(odds)

    ends = [4, 12, 40, 200]
    points = [*(peak - width * end for end in ends[::-1]), peak, *(peak + width * end for end in ends)]
    top = height(peak)
    area = mp.quad(lambda t: mp.exp(height(t) - top), points)
    return z + top + mp.log(area) - mp.loggamma(a) - mp.loggamma(b - a) + mp.loggamma(b)


CORNERS = [
    (1, 2, 1e-8),
    (1, 2, 5e13),
    (1, 10**6, 5e13),
    (10**6 - 1, 10**6, 5e13),
    (16, 512, 0.06),
    (16, 512, 3e4),
    (16, 10**6, 5e5),
    (1, 10**6, 5.5e5),
    (400_000, 10**6, 1e4),
    (1, 11_008, 5400.0),  # terms that fall from the first
    (1, 14_336, 7060.0),
    (1, 10**6, 5e5 - 600),
]


@pytest.mark.parametrize(("rank", "dimension", "z"), CORNERS)
def test_corners_of_all_that_is_asked_of_it(rank, dimension, z):
    with mp.workdps(30):
        true = exactly(rank / 2, dimension / 2, z)
        assert 0 <= (log1F1(rank / 2, dimension / 2, z) - true) / true < 1e-10


def test_anywhere_between_them():
    rng = np.random.default_rng(0)
    with mp.workdps(30):
        for _ in range(rounds(3)):
            dimension = int(10 ** rng.uniform(0.5, 6))
            rank = min(dimension - 1, int(10 ** rng.uniform(0, np.log10(dimension))))
            z = 10 ** rng.uniform(-8, 13.7) if rng.random() < 0.4 else dimension / 2 * 10 ** rng.uniform(-2, 2)
            true = exactly(rank / 2, dimension / 2, z)
            assert 0 <= (log1F1(rank / 2, dimension / 2, z) - true) / true < 1e-10


@pytest.mark.parametrize("dimension", [4096, 11_008, 28_672])
def test_one_direction_of_a_wide_layer(dimension):
    half = dimension / 2
    near = half - np.linspace(0, 6 * half**0.5, 40)
    found = [log1F1(0.5, half, float(z)) for z in near]
    assert all(0 < after < before for before, after in itertools.pairwise(found))


@pytest.mark.parametrize("z", [1e40, 1e160, 1e300])
def test_never_above_the_exponent_itself(z):
    assert log1F1(0.5, 5504.0, z) == z


def test_nothing_to_project_and_nothing_at_all():
    assert log1F1(3.0, 5.0, 0.0) == 0.0
    assert log1F1(1e5, 1e5 * (1 + 1e-12), 7.0) <= 7.0


@pytest.mark.parametrize("wrong", [(0.0, 1.0, 1.0), (1.0, 1.0, 1.0), (1.0, 2.0, -1.0), (1.0, 2.0, float("nan"))])
def test_what_has_no_value_is_refused(wrong):
    with pytest.raises(InvalidParameter):
        log1F1(*wrong)
