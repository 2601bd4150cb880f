"""The law of the noise is the Gaussian's, to the last bit.

Statistical tests run on seeded draws and pass or fail for good; their thresholds make a false alarm, had the
seed been drawn at random, rarer than one in a million.
"""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from false_alarms import FALSE_ALARM, Z_LIMIT
from scipy import stats
from scipy.special import log_ndtr, ndtr

from ppdp.privacy.noise import sampler as module
from ppdp.privacy.noise.sampler import TOTAL_VARIATION_PER_DRAW, Noise

CELLS = np.arange(-(6 << 6), (6 << 6) + 1) / 64.0  # edges of the coarse cells, |Z| <= 6


def chi_square_p(counts: np.ndarray, expected: np.ndarray) -> float:
    enough = expected >= 20
    return float(stats.chi2.sf(((counts - expected)[enough] ** 2 / expected[enough]).sum(), enough.sum()))


def tilt(draws: np.ndarray) -> float:
    """Standardised score of the slope inside the coarse cells: what wrong rejection gets wrong.

    Given its coarse cell, u = 64 |Z| mod 1 has density proportional to exp(-w^2 u (c + u / 2)), w = 1/64.
    """
    cell, u = np.divmod(np.abs(draws) * 64, 1.0)
    c = np.arange(13 << 6)
    nodes, weights = np.polynomial.legendre.leggauss(12)
    nodes, weights = (nodes + 1) / 2, weights / 2
    density = np.exp(-np.outer(c, nodes) / 4096 - nodes**2 / 8192) * weights
    mean = density @ nodes / density.sum(1)
    variance = density @ nodes**2 / density.sum(1) - mean**2
    at = cell.astype(int)
    return float(((u - mean[at]) * cell).sum() / math.sqrt((variance[at] * cell**2).sum()))


@pytest.fixture(scope="module")
def lattice() -> np.ndarray:
    return Noise(20260101).standard_lattice(4_000_000)


@pytest.fixture(scope="module")
def draws(lattice: np.ndarray) -> np.ndarray:
    return lattice * 2.0**-37


class TestTheLaw:
    def test_kolmogorov_smirnov(self, draws):
        assert stats.kstest(draws, ndtr, method="asymp").pvalue > FALSE_ALARM

    def test_moments(self, draws):
        variances = {1: 1, 2: 2, 3: 15, 4: 96, 6: 10170}  # of Z^k: E Z^2k - (E Z^k)^2
        means = {1: 0, 2: 1, 3: 0, 4: 3, 6: 15}
        squares = draws * draws
        powers = {1: draws, 2: squares, 3: squares * draws, 4: squares * squares, 6: squares**3}
        for k, variance in variances.items():
            score = (powers[k].mean() - means[k]) / math.sqrt(variance / draws.size)
            assert abs(score) < Z_LIMIT, k

    def test_every_coarse_cell_has_its_mass(self, draws):
        counts = np.histogram(draws, CELLS)[0]
        assert chi_square_p(counts, np.diff(ndtr(CELLS)) * draws.size) > FALSE_ALARM

    def test_eight_parts_of_every_coarse_cell(self, draws):
        edges = np.arange(-(3 << 9), (3 << 9) + 1) / 512.0
        counts = np.histogram(draws, edges)[0]
        assert chi_square_p(counts, np.diff(ndtr(edges)) * draws.size) > FALSE_ALARM

    def test_slope_inside_the_cells(self, draws):
        assert abs(tilt(draws)) < Z_LIMIT

    def test_the_slope_test_notices_a_sampler_that_never_rejects(self, monkeypatch):
        monkeypatch.setattr(Noise, "_accepted", lambda self, coarse, detail: np.ones(coarse.size, dtype=bool))
        assert tilt(Noise(1).standard_lattice(4_000_000) * 2.0**-37) > Z_LIMIT + 1

    def test_tails(self, draws):
        for edge in (3.0, 4.0, 4.5):
            expected = 2 * ndtr(-edge) * draws.size
            count = (np.abs(draws) > edge).sum()
            assert stats.poisson.sf(count - 1, expected) > FALSE_ALARM
            assert stats.poisson.cdf(count, expected) > FALSE_ALARM

    def test_the_sign_is_fair_and_says_nothing_of_the_magnitude(self, draws):
        sign = np.sign(draws)
        scale = math.sqrt(draws.size)
        assert abs(sign.sum()) / scale < Z_LIMIT
        magnitude = np.abs(draws) - math.sqrt(2 / math.pi)
        assert abs((sign * magnitude).sum()) / scale / math.sqrt(1 - 2 / math.pi) < Z_LIMIT

    @pytest.mark.parametrize("lag", [1, 2, 64, module._BLOCK])
    def test_draws_do_not_correlate(self, draws, lag):
        a, b = draws[:-lag], draws[lag:]
        assert abs((a * b).sum()) / math.sqrt(a.size) < Z_LIMIT
        assert abs(((a * a - 1) * (b * b - 1)).sum()) / math.sqrt(4 * a.size) < Z_LIMIT

    def test_flipping_the_sign_bits_negates_the_draws(self, monkeypatch):
        """Cell a of |Z| is cell -a - 1 of -|Z|: v turns into -v, no odd integer is missed."""
        plain = Noise(1).standard_lattice(500)
        words = Noise.words

        def flipped(self, count):
            drawn = words(self, count)
            drawn[0 if count < 1000 else 500 :] ^= np.uint64(1 << 63)
            return drawn

        monkeypatch.setattr(Noise, "words", flipped)
        np.testing.assert_array_equal(Noise(1).standard_lattice(500), -plain)

    def test_a_position_is_redrawn_until_it_is_accepted(self, monkeypatch):
        monkeypatch.setattr(
            Noise, "_accepted", lambda self, coarse, detail: detail >> np.uint64(60) & np.uint64(7) == 5
        )
        magnitude = np.abs(Noise(1).standard_lattice(2000)) >> 1
        assert (magnitude >> 27 & 7 == 5).all()

    def test_low_bits_are_uniform_and_v_is_odd(self, lattice):
        assert (lattice & 1 == 1).all()
        counts = np.bincount(lattice >> 1 & 1023, minlength=1024)
        assert chi_square_p(counts, np.full(1024, lattice.size / 1024)) > FALSE_ALARM

    def test_the_operating_system_feeds_the_same_sampler(self):
        draws = Noise().standard_lattice((1000, 400)).ravel() * 2.0**-37
        assert stats.kstest(draws, ndtr, method="asymp").pvalue > FALSE_ALARM
        assert abs(tilt(draws)) < Z_LIMIT
        assert abs(draws.mean()) * math.sqrt(draws.size) < Z_LIMIT
        assert abs((draws**2).mean() - 1) * math.sqrt(draws.size / 2) < Z_LIMIT


class TestTheTable:
    """The distribution function of |Z|, against two computations that share nothing with it."""

    def test_against_floats(self):
        cuts = np.array([float(Fraction(cut, 1 << 192)) for cut in module._table().cuts])
        edges = np.arange(1, 13 << 6) / 64.0
        np.testing.assert_allclose(cuts, ndtr(edges) - ndtr(-edges), rtol=1e-14)

    def test_tail_against_floats(self):
        survival = [Fraction((1 << 192) - cut, 1 << 192) for cut in module._table().cuts]
        edges = np.arange(1, 13 << 6) / 64.0
        exact = np.exp(log_ndtr(-edges)) * 2 - np.exp(log_ndtr(-13.0)) * 2
        np.testing.assert_allclose([float(s) for s in survival], exact, rtol=1e-12)

    @pytest.mark.parametrize("cell", [1, 2, 63, 64, 100, 320, 575, 700, 830, 831])
    def test_to_the_last_bit(self, cell):
        with mpmath.workprec(400):
            edge = mpmath.mpf(cell) / 64 / mpmath.sqrt(2)
            truth = mpmath.erf(edge) / mpmath.erf(13 / mpmath.sqrt(2)) * mpmath.mpf(2) ** 192
            assert module._table().cuts[cell - 1] == int(mpmath.floor(truth))

    def test_leading_words(self):
        table = module._table()
        assert len(table.cuts) == table.leading.size == (13 << 6) - 1
        assert [int(word) for word in table.leading] == [cut >> 128 for cut in table.cuts]
        assert table.leading[-1] == 2**64 - 1  # so that no 64-bit word lies behind the last cut
        assert not table.leading.flags.writeable

    def test_what_the_table_leaves_out_is_far_below_the_charge(self):
        beyond = 2 * mpmath.ncdf(-13)
        assert beyond + len(module._table().cuts) * 2.0**-192 + 2.0**-150 < 2.0**-125 < TOTAL_VARIATION_PER_DRAW


class TestRareComparisons:
    """What floats leave open is settled by integers; these tests force the rare cases."""

    @pytest.mark.parametrize("coarse", [0, 1, 64, 500, 831])
    @pytest.mark.parametrize("place", [0, 1 << 200, 3 << 253, (1 << 256) - 1])
    def test_density_ratio(self, coarse, place):
        with mpmath.workprec(600):
            u = mpmath.mpf(place) / (1 << 256)
            truth = mpmath.exp(-u * (coarse + u / 2) / 4096) * (1 << 256)
            assert abs(module._density_ratio(coarse, place) - truth) < 200

    @pytest.mark.parametrize("coarse", [0, 3, 64, 400, 831])
    def test_floats_decide_what_further_bits_cannot_turn_and_nothing_else(self, coarse, monkeypatch):
        asked = []
        exactly = Noise._accepted_exactly
        monkeypatch.setattr(Noise, "_accepted_exactly", lambda *a: asked.append(a) or exactly(*a))
        cases = {"accepted": 0, "rejected": 0, "open": 0}
        for position in np.random.default_rng(coarse).integers(0, 1 << 30, 40).tolist():
            starts, ends = (module._density_ratio(coarse, (position << 226) + rest) for rest in (0, (1 << 226) - 1))
            for level in range(max((ends >> 223) - 3, 0), min((starts >> 223) + 4, 1 << 33)):
                detail = np.array([position << 33 | level], dtype=np.uint64)
                asked.clear()
                accepted = Noise(level)._accepted(np.array([coarse]), detail)[0]
                if (level + 1) << 223 <= ends:
                    cases["accepted"] += 1
                    assert accepted
                elif level << 223 >= starts:
                    cases["rejected"] += 1
                    assert not accepted
                else:
                    cases["open"] += 1
                    assert asked
        assert min(cases.values()) >= 20

    def test_the_law_when_every_comparison_is_made_by_integers(self, monkeypatch):
        monkeypatch.setattr(module, "_UNDECIDED", 2.0)
        draws = Noise(5).standard_lattice(8000) * 2.0**-37
        assert stats.kstest(draws, ndtr, method="asymp").pvalue > FALSE_ALARM
        assert abs(tilt(draws)) < Z_LIMIT

    def test_floats_and_integers_draw_the_same_numbers(self, monkeypatch):
        coarse = np.random.default_rng(0).integers(0, 13 << 6, 3000)
        detail = np.random.default_rng(1).integers(0, 1 << 64, 3000, dtype=np.uint64)
        by_floats = Noise(0)._accepted(coarse, detail)
        monkeypatch.setattr(module, "_UNDECIDED", 2.0)
        np.testing.assert_array_equal(by_floats, Noise(1)._accepted(coarse, detail))

    def test_further_bits_are_random_and_follow_the_known_ones(self):
        extended = [Noise()._extended(5) for _ in range(200)]
        assert {number >> 128 for number in extended} == {5}
        assert len({number >> 64 for number in extended}) == len({number % 2**64 for number in extended}) == 200

    @pytest.mark.parametrize("cut", [0, 64, 500])
    def test_a_leading_word_equal_to_a_cut_asks_for_more_bits(self, cut, monkeypatch):
        table = module._table()
        word = table.leading[cut : cut + 1]
        rest = table.cuts[cut] & ((1 << 128) - 1)
        for more, cell in ((rest, cut + 1), (rest - 1, cut), (0, cut), ((1 << 128) - 1, cut + 1)):
            monkeypatch.setattr(Noise, "_extended", lambda self, number, more=more: number << 128 | more)
            assert Noise(0)._coarse_cells(word)[0] == cell

    def test_the_last_word_reaches_every_cell_of_the_far_tail(self, monkeypatch):
        table = module._table()
        for cell in (700, 830):
            more = table.cuts[cell - 1] & ((1 << 128) - 1)
            monkeypatch.setattr(Noise, "_extended", lambda self, number, more=more: number << 128 | more)
            assert Noise(0)._coarse_cells(np.array([2**64 - 1], dtype=np.uint64))[0] == cell
