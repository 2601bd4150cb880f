"""The noise is the Gaussian mechanism's, and what it is charged for is all that it costs.

Statistical tests run on seeded draws and pass or fail for good; their thresholds make a false alarm, had the
seed been drawn at random, rarer than one in a million.
"""

from __future__ import annotations

import copy
import math
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from false_alarms import FALSE_ALARM, Z_LIMIT
from forked import ended, fork, forks
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ppdp.exceptions import ImpossibleBudget, InvalidParameter
from ppdp.privacy.noise import sampler as module
from ppdp.privacy.noise.sampler import (
    WORST_ALLOWANCE_PER_ENTRY,
    Noise,
    gaussian_scale,
    lattice_allowance,
    lattice_exponent,
)


class TestTheRelease:
    @pytest.mark.parametrize(
        ("noise_scale", "bound"), [(1.0, 1.0), (0.1, 1.0), (2.0**-20, 1.0), (1.5 * 2.0**-26, 1.0), (3e7, 5.0)]
    )
    def test_mean_and_variance_are_the_declared_ones(self, noise_scale, bound):
        value = 0.7 * bound
        errors = (Noise(11).release(np.full(400_000, value), noise_scale, bound) - value) / noise_scale
        assert abs(errors.mean()) * math.sqrt(errors.size) < Z_LIMIT
        assert abs((errors**2).mean() - 1) * math.sqrt(errors.size / 2) < Z_LIMIT
        assert stats.kstest(errors, "norm", method="asymp").pvalue > FALSE_ALARM

    @pytest.mark.parametrize("noise_scale", [1.0, 0.1, 1 / 3, 1e-6, 2.0**-26])
    @pytest.mark.parametrize("value", [0.0, 1.0, -0.3])
    def test_outputs_lie_on_the_same_lattice_whatever_the_value(self, noise_scale, value):
        half_step = math.ldexp(noise_scale, -lattice_exponent(1.0, noise_scale) - 1)
        released = Noise(2).release(np.full(5000, value), noise_scale, 1.0)
        cells = np.rint(released / half_step)
        assert (cells % 2 == 1).all()
        np.testing.assert_array_equal(cells * half_step, released)

    @pytest.mark.parametrize(("noise_scale", "bound"), [(0.125, 1.0), (2.0**-26, 1.0), (2.0**-17, 0.7)])
    def test_the_value_only_shifts_the_noise_by_whole_steps(self, noise_scale, bound):
        rng = np.random.default_rng(3)
        here, there = rng.uniform(-bound, bound, (2, 4000))
        step = math.ldexp(noise_scale, -lattice_exponent(bound, noise_scale))
        difference = Noise(9).release(here, noise_scale, bound) - Noise(9).release(there, noise_scale, bound)
        np.testing.assert_array_equal(difference / step, np.rint(here / step) - np.rint(there / step))

    def test_the_cell_is_the_floor_of_rounded_value_plus_gaussian(self):
        """On a coarser lattice, for negative sums too: floor(k + 2^M Z), from the finest cells of that Z."""
        noise_scale, bound = 2.0**-26, 1.0  # M = 24
        value = np.random.default_rng(4).uniform(-bound, bound, 4000)
        fine = Noise(6).standard_lattice(4000)
        step = noise_scale * 2.0**-24
        released = Noise(6).release(value, noise_scale, bound)
        for y, x, v in zip(released.tolist(), value.tolist(), fine.tolist()):
            total = round(Fraction(x) / Fraction(step)) + Fraction(v, 2**37) * 2**24
            assert Fraction(y) == (math.floor(total) + Fraction(1, 2)) * Fraction(step)

    @given(
        st.lists(st.floats(width=64), max_size=6),
        st.sampled_from([1e-270, 1e-3, 0.1, 1.0, 1e9]),
        st.sampled_from([0.0, 1e-3, 1.0, 2.0**26]),
    )
    @settings(max_examples=150, deadline=None)
    def test_nothing_is_raised_on_data_and_nothing_leaves_the_bounds(self, value, noise_scale, ratio):
        bound = ratio * noise_scale
        released = Noise().release(np.array(value), noise_scale, bound)
        assert released.shape == (len(value),)
        assert (np.abs(released) <= bound + 13.001 * noise_scale).all()

    def test_clamping_and_nan(self):
        value = np.array([np.inf, 1e300, -np.inf, -7.0, np.nan, 0.5])
        clamped = np.array([2.0, 2.0, -2.0, -2.0, 0.0, 0.5])
        np.testing.assert_array_equal(Noise(1).release(value, 0.3, 2.0), Noise(1).release(clamped, 0.3, 2.0))
        assert np.isinf(value[0])  # the caller's array is left alone

    def test_a_bound_of_zero_releases_noise_alone(self):
        released = Noise(1).release([5.0, -5.0], 1.0, 0.0)
        np.testing.assert_array_equal(released, Noise(1).standard_lattice(2) * 2.0**-37)

    @pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 2), (2, 0, 4)])
    def test_shapes(self, shape):
        released = Noise().release(np.zeros(shape), 1.0, 1.0)
        assert isinstance(released, np.ndarray)
        assert (released.shape, released.dtype) == (shape, np.float64)
        assert Noise().standard_lattice(shape).shape == shape

    def test_more_than_one_block(self):
        size = 2 * module._BLOCK + 17
        assert len(np.unique(Noise(1).standard_lattice(size))) > 0.999 * size

    def test_lists_and_float32_are_cast_before_rounding(self):
        for value in ([0.1, 0.2], np.array([0.1, 0.2], dtype=np.float32), np.array([[0.1], [0.2]]).T[0]):
            expected = Noise(4).release(np.asarray(value, dtype=np.float64), 0.1, 1.0)
            np.testing.assert_array_equal(Noise(4).release(value, 0.1, 1.0), expected)


class TestTheLattice:
    @given(st.floats(1e-270, 1e260), st.floats(2.0**-60, 2.0**26))
    @settings(max_examples=300, deadline=None)
    def test_exponent_is_the_largest_that_fits(self, noise_scale, ratio):
        bound = ratio * noise_scale
        if Fraction(bound) > 2**26 * Fraction(noise_scale):
            return
        exponent = lattice_exponent(bound, noise_scale)
        steps = Fraction(bound) / Fraction(noise_scale) * 2**exponent
        assert 24 <= exponent <= 36
        assert steps <= 2**50
        assert exponent == 36 or 2 * steps > 2**50

    @pytest.mark.parametrize(
        ("bound", "noise_scale", "exponent"),
        [
            (0.0, 1.0, 36),
            (2.0**14, 1.0, 36),
            (np.nextafter(2.0**14, 9e9), 1.0, 35),
            (2.0**26, 1.0, 24),
            (1.0, 2e-6, 31),
        ],
    )
    def test_exponents(self, bound, noise_scale, exponent):
        assert lattice_exponent(bound, noise_scale) == exponent

    @pytest.mark.parametrize(
        ("bound", "noise_scale"),
        [
            (1.0, 0.0),
            (1.0, -1.0),
            (1.0, math.inf),
            (1.0, math.nan),
            (1.0, 5e-324),
            (1.0, 1e300),
            (1.0, "much"),
            (1.0, None),
            (-1.0, 1.0),
            (math.inf, 1.0),
            (math.nan, 1.0),
            (None, 1.0),
            (np.nextafter(2.0**41, 9e99), 1.0),
        ],
    )
    def test_impossible_public_numbers_are_refused_before_the_value_is_read(self, bound, noise_scale):
        with pytest.raises(InvalidParameter):
            lattice_exponent(bound, noise_scale)
        with pytest.raises(InvalidParameter):
            lattice_allowance(bound, noise_scale, 3)
        with pytest.raises(InvalidParameter):
            Noise().release(object(), noise_scale, bound)

    def test_far_values_have_steps_up_to_what_a_float_can_count(self):
        beyond = np.nextafter(2.0**26, 9e9)
        with pytest.raises(ImpossibleBudget):
            lattice_exponent(beyond, 1.0)
        found = [lattice_exponent(bound, 1.0, far=53) for bound in (2.0**26, beyond, 2.0**29, 2.0**40, 2.0**41)]
        assert found == [24, 24, 24, 13, 12]

    @pytest.mark.parametrize("bound", [1.0, 2.0**26, 2.0**33, 2.0**40])
    def test_the_least_noise_costs_what_it_may_and_hardly_less(self, bound):
        for mu, size in ((0.15, 1), (0.3, 230)):
            scale = gaussian_scale(2.0, mu, bound, size)
            cost = 2.0 / scale + lattice_allowance(bound, scale, size)
            assert cost <= mu < cost + 1.5 * 2.0**-10 * math.sqrt(size)
        with pytest.raises(ImpossibleBudget):
            gaussian_scale(2.0, 1e-9, bound, 1)

    def test_allowance(self):
        for bound, noise_scale in ((1.0, 1.0), (1.0, 1e-6), (5.0, 2.0**-22)):
            exponent = lattice_exponent(bound, noise_scale)
            for size in (0, 1, 7, 6000):
                expected = 1.5 * 2.0**-exponent * math.sqrt(size)
                assert lattice_allowance(bound, noise_scale, size) == expected
                assert expected <= WORST_ALLOWANCE_PER_ENTRY * math.sqrt(size)

    @pytest.mark.parametrize("noise_scale", [1.0, 1 / 3, 0.7, 1e-9])
    @pytest.mark.parametrize("ratio", [1.0, 2.0**14, 2.0**20, 2.0**26, 2.0**31, 2.0**41])
    @pytest.mark.repeated("noise_scale")
    def test_rounding_is_off_by_at_most_the_proved_number_of_steps(self, noise_scale, ratio):
        bound = noise_scale * ratio
        step = math.ldexp(noise_scale, -lattice_exponent(bound, noise_scale, far=53))
        value = bound * (1 - np.random.default_rng(0).random(3000) * 0.6)
        cells = np.rint(value / step).tolist()  # as in release: see the test of whole steps
        worst = max(abs(Fraction(x) / Fraction(step) - int(k)) for x, k in zip(value.tolist(), cells))
        assert worst <= (Fraction(9, 16) if ratio <= 2**26 else Fraction(3, 4))

    def test_half_a_step_each_would_be_too_little(self):
        """The naive charge is one step for two roundings: here they add 1.12496 steps, of 1.125 proved."""
        noise_scale = 1 / 3
        bound, step = noise_scale * 2.0**14, Fraction(noise_scale) / 2**36
        value = float.fromhex("0x1.553e61b59ab18p+12")
        noise_alone = Noise(0).release([0.0, 0.0], noise_scale, bound)
        released = Noise(0).release([value, -value], noise_scale, bound)
        cells = np.rint((released - noise_alone) / float(step))
        added = int(cells[0] - cells[1]) - 2 * Fraction(value) / step
        assert 1.1249 < abs(added) <= Fraction(9, 8)


class TestAdversaries:
    """Attacks that break other ways to add noise."""

    @staticmethod
    def fine_grained(y: np.ndarray) -> np.ndarray:
        """1/16 < |y| < 1/4 and y is no multiple of 2^-53."""
        return (np.abs(y) > 1 / 16) & (np.abs(y) < 1 / 4) & (y * 2.0**53 != np.rint(y * 2.0**53))

    def test_a_float_sum_tells_zero_from_one_and_the_lattice_does_not(self):
        """1 + z with |1 + z| < 1/4 is a multiple of 2^-53 for every double z; 0 + z rarely is."""
        z = np.random.default_rng(0).standard_normal(500_000)
        assert self.fine_grained(0.0 + z).mean() > 0.1
        assert not self.fine_grained(1.0 + z).any()
        for value in (0.0, 1.0):
            assert not self.fine_grained(Noise(0).release(np.full(500_000, value), 1.0, 1.0)).any()

    @pytest.mark.parametrize(("rows", "mu"), [(70_000, 1.0), (300_000, 0.25), (1_000_000, 1.0)])
    def test_the_mean_of_many_rows_is_released_whatever_it_is(self, rows, mu):
        """A lattice of fixed width overflows for a mean of 1, not for 0.2: an error that tells them apart."""
        noise_scale = 2 / (rows * mu)
        assert 1 / noise_scale > 2**15  # where a step of noise_scale 2^-36 leaves no room for the value
        large, small = (Noise(8).release(np.full(1000, mean), noise_scale, 1.0) for mean in (1.0, 0.2))
        half_step = math.ldexp(noise_scale, -lattice_exponent(1.0, noise_scale) - 1)
        for released, mean in ((large, 1.0), (small, 0.2)):
            assert (np.rint(released / half_step) % 2 == 1).all()
            assert abs(released.mean() - mean) < Z_LIMIT * noise_scale / math.sqrt(1000)
        np.testing.assert_allclose(large - small, 0.8, atol=2 * half_step, rtol=2.0**-50)


class TestTheSource:
    def test_seeded_noise_is_reproducible_and_says_so(self):
        value = np.linspace(-1, 1, 50)
        assert Noise(7).seeded
        assert not Noise().seeded
        np.testing.assert_array_equal(Noise(7).release(value, 0.1, 1.0), Noise(7).release(value, 0.1, 1.0))
        for make in (np.random.default_rng, np.random.RandomState, np.int64):
            first, second = Noise(make(7)), Noise(make(7))
            assert first.seeded
            np.testing.assert_array_equal(first.standard_lattice(9), second.standard_lattice(9))

    def test_a_generator_that_is_passed_in_advances(self):
        noise = Noise(np.random.default_rng(0))
        assert (noise.standard_lattice(5) != noise.standard_lattice(5)).any()

    def test_unseeded_noise_never_repeats(self):
        assert len(np.unique([Noise().standard_lattice(4) for _ in range(50)])) == 200

    @pytest.mark.parametrize("random_state", ["7", 1.5, -1, [1, 2], np.random.SeedSequence(1)])
    def test_other_seeds_are_refused(self, random_state):
        with pytest.raises(InvalidParameter):
            Noise(random_state)

    def test_numpy_seeds_do_not_reach_unseeded_noise(self):
        state = np.random.get_state()  # noqa: NPY002
        try:
            np.random.seed(0)  # noqa: NPY002
            first = Noise().standard_lattice(4)
            np.random.seed(0)  # noqa: NPY002
            assert (first != Noise().standard_lattice(4)).all()
        finally:
            np.random.set_state(state)  # noqa: NPY002

    def test_pickles_and_copies(self):
        assert pickle.loads(pickle.dumps(Noise())).standard_lattice(3).shape == (3,)
        assert vars(Noise()) == {"_generator": None}  # nothing to steal, nothing to share
        seeded = Noise(3)
        seeded.standard_lattice(5)
        twins = pickle.loads(pickle.dumps(seeded)), copy.deepcopy(seeded)
        following = seeded.standard_lattice(5)
        for twin in twins:
            assert twin.seeded
            np.testing.assert_array_equal(twin.standard_lattice(5), following)

    def test_repr_shows_no_seed(self):
        assert (repr(Noise()), repr(Noise(12345))) == ("Noise()", "Noise(seeded)")

    @forks
    def test_forks_do_not_share_noise(self):
        noise, (reading, writing) = Noise(), os.pipe()
        noise.standard_lattice(1000)

        def work():
            os.write(writing, "".join(f"{number} " for number in noise.standard_lattice(50)).encode())

        children = [fork(work) for _ in range(3)]
        work()
        assert [ended(child) for child in children] == [0] * 3
        drawn = os.read(reading, 10_000).split()
        os.close(reading), os.close(writing)
        assert len(drawn) == len(set(drawn)) == 4 * 50

    def test_threads_do_not_share_noise_and_may_build_the_table_together(self):
        module._table.cache_clear()
        noise = Noise()
        with ThreadPoolExecutor(8) as pool:
            drawn = np.concatenate(list(pool.map(noise.standard_lattice, [20_000] * 16)))
        assert len(np.unique(drawn)) > 0.999 * drawn.size
        assert stats.kstest(drawn * 2.0**-37, "norm", method="asymp").pvalue > FALSE_ALARM

    def test_the_precision_of_mpmath_is_the_users(self):
        with mpmath.workprec(61):
            module._table.cache_clear()
            Noise(0)._accepted_exactly(64, 5, 7)
            Noise(0).release([0.5], 1.0, 1.0)
            assert mpmath.mp.prec == 61
