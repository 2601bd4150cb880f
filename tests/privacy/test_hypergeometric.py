"""log 1F1 against thirty digits."""

import itertools

import mpmath as mp
import numpy as np
import pytest
from effort import rounds

from ppdp.exceptions import InvalidParameter
from ppdp.privacy.projected_gaussian import log1F1


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
