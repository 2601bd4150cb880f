"""Discrete Laplace noise and exponential choices: exact laws, at every cut and in draws."""

import math

import mpmath
import numpy as np
import pytest
from effort import rounds
from false_alarms import FALSE_ALARM, Z_LIMIT
from scipy import stats

from ppdp.exceptions import ImpossibleBudget, InvalidParameter
from ppdp.privacy.noise import laplace as module
from ppdp.privacy.noise.laplace import (
    Lattice,
    choose,
    laplace_allowance,
    laplace_release,
    score_allowance,
    value_lattice,
    whole_lattice,
)
from ppdp.privacy.noise.sampler import Noise

LEAST_P = 1e-4  # seeds are fixed, so a test passes always or never


def law(lattice, draws):
    """How well the smallest numbers, and all others together, agree with the law, as a p-value."""
    ratio = math.exp(-(2**lattice.shift) / lattice.scale)
    width = max(1, int(4 * lattice.scale / 2**lattice.shift))
    k = np.arange(-width, width + 1)
    inside = (1 - ratio) / (1 + ratio) * ratio ** np.abs(k)
    tail = ratio ** (width + 1) / (1 + ratio)
    expected = np.concatenate([[tail], inside, [tail]]) * draws.size
    seen = np.bincount(np.clip(draws, -width - 1, width + 1).astype(int) + width + 1, minlength=len(expected))
    kept = expected >= 5
    rest = max(expected[~kept].sum(), 1e-9)
    statistic = ((seen - expected)[kept] ** 2 / expected[kept]).sum() + (seen[~kept].sum() - rest) ** 2 / rest
    return stats.chi2.sf(statistic, kept.sum())


def cut(numerator, denominator, bits):
    """Drawn bits that are shared by numbers on both sides of ``exp(-numerator / denominator)``."""
    with mpmath.workprec(bits + 200):
        return int(mpmath.floor(mpmath.exp(-mpmath.mpf(numerator) / denominator) * mpmath.mpf(2) ** bits))


class Asked:
    """What was left to integers; their answer is given."""

    def __init__(self, monkeypatch, answer):
        self.of = []
        monkeypatch.setattr(module, "_below_exponential", lambda noise, *of: self.of.append(of) or answer)


class TestIntegersDecide:
    @pytest.mark.parametrize("bits", [128, 191, 256, 1000])
    @pytest.mark.parametrize("over", [(0, 1), (1, 2**36), (1, 3), (1, 1), (2**50 - 1, 2**50), (1025, 128), (89, 1)])
    @pytest.mark.repeated("bits", keep=2)
    def test_bounds_of_the_exponential(self, over, bits):
        low, high = module._exponential(*over, bits)
        assert low <= cut(*over, bits) < high <= low + 3

    def test_of_what_is_next_to_nothing(self):
        assert module._exponential(2**51, 2**23, 128) == (0, 1)
        assert module._exponential(129, 1, 128) == (0, 1)

    @pytest.mark.parametrize("over", [(1, 3), (5, 7), (700, 100)])
    @pytest.mark.parametrize("bits", [0, 1, 20, 63])
    def test_appended_bits_decide_for_the_number_that_was_drawn(self, over, bits):
        """At its cut the next 128 bits do; a neighbour is decided whatever they are; too few of them ask for more."""

        class Given(Noise):
            def random_bytes(self, count):
                return given.pop(0).to_bytes(count, "little")

        level, further = divmod(cut(*over, bits + 128), 2**128)
        longer = cut(*over, bits + 256) % 2**128
        for more, heads in (
            ([further - 5], True),
            ([further + 5], False),
            ([further, longer - 5], True),
            ([further, longer + 5], False),
        ):
            given = more
            assert module._below_exponential(Given(), level, bits, *over) is heads
            assert not given
        for other, more in ((level - 1, 2**128 - 1), (level + 1, 0)):
            given = [more]
            assert not 0 <= other < 2**bits or module._below_exponential(Given(), other, bits, *over) is (other < level)


class TestFloatsDecide:
    """What further bits cannot turn, and nothing else: so the law is the one of the integers."""

    @pytest.mark.parametrize("answer", [True, False])
    @pytest.mark.parametrize(
        ("denominator", "bits"), [(3, 64), (200, 63), (2**36 - 5, 34), (2**24 - 1, 46), (2**50, 20)]
    )
    def test_a_coin_at_both_sides_of_its_cut(self, monkeypatch, denominator, bits, answer):
        asked = Asked(monkeypatch, answer)
        far = 2 ** max(bits - 31, 0) + 2
        for u in {1, max(denominator >> 8, 1), denominator - 1, denominator, 3 * denominator, 20 * denominator}:
            at = cut(u, denominator, bits)
            levels = np.array([w for w in (at, at - far, at + far) if 0 <= w < 2**bits], dtype=np.uint64)
            asked.of.clear()
            heads = module._heads(None, levels, bits, np.full(levels.size, u), denominator)
            assert asked.of == [(at, bits, u, denominator)]
            assert heads.tolist() == [answer, *(levels[1:] < at)]

    @pytest.mark.parametrize("answer", [True, False])
    @pytest.mark.parametrize("scale", [1, 3, 64, 127, 128, 1000, 2**23, 2**36 - 5, 2**50])
    def test_a_number_of_cells_at_both_sides_of_all_cuts(self, monkeypatch, scale, answer):
        asked = Asked(monkeypatch, answer)
        bits = max(scale.bit_length() - 7, 0)
        most = 8 * scale >> bits
        k = np.arange(1, most + 1)
        cuts = [cut(int(i) << bits, scale, 63) for i in k]
        for beside in (-(2**33), 0, 2**33):
            words = np.array(cuts, dtype=np.int64) + beside
            asked.of.clear()
            runs = module._short_runs(None, words.astype(np.uint64), bits, scale, most)
            np.testing.assert_array_equal(runs, k - (not answer if beside == 0 else beside > 0))
            expected = [(w, 63, int(i) << bits, scale) for w, i in zip(cuts, k)] if beside == 0 else []
            assert asked.of == expected
        few = np.array([0, 1, cuts[-1] // 2, 2**63 - 1], dtype=np.uint64)
        asked.of.clear()
        runs = module._short_runs(None, few, bits, scale, most)
        assert runs[:3].tolist() == [most] * 3
        assert asked.of == [(2**63 - 1, 63, 0, scale)]

    def test_functions_of_numpy_are_as_good_as_is_assumed(self):
        rng = np.random.default_rng(0)
        with mpmath.workprec(200):
            for x in np.concatenate([-rng.uniform(0, 1 / 64, 1000), -(2 ** rng.uniform(-6, 28, 1000))]).tolist():
                assert abs(mpmath.exp(x) - float(np.exp(np.array([x]))[0])) < 2.0**-46
            for x in np.concatenate([rng.uniform(0, 1, 1000), 2.0 ** rng.uniform(-64, 0, 1000)]).tolist():
                assert abs(mpmath.log(x) - float(np.log(np.array([x]))[0])) < 2.0**-46

    def test_nothing_is_raised_when_numpy_raises_everything(self):
        with np.errstate(all="raise"):
            assert choose(Noise(0), [-1e4, 1e4], 0.001, 1e4) == 1
            laplace_release(Noise(0), np.zeros(10_000), 1.0, 1.0)

    def test_floats_and_integers_give_the_same_answers(self, monkeypatch):
        words, u = Noise(8).words(3000), np.random.default_rng(8).integers(0, 1000, 3000)
        answers = []
        for margin in (module._UNDECIDED, 0.5):
            monkeypatch.setattr(module, "_UNDECIDED", margin)
            answers.append(module._heads(Noise(9), words, 64, u, 300))
            answers.append(module._short_runs(Noise(9), words >> np.uint64(1), 3, 1000, 1000))
        np.testing.assert_array_equal(answers[0], answers[2])
        np.testing.assert_array_equal(answers[1], answers[3])


class TestAttempts:
    @pytest.mark.parametrize(
        ("scale", "shift"), [(3, 0), (200, 0), (200, 3), (2**36 - 5, 0), (2**24 - 1, 24), (2**50, 0)]
    )
    def test_numbers_are_put_together_of_disjoint_bits(self, monkeypatch, scale, shift):
        """Sign and number of cells of one word, part and coin of the other; and -0 does not count."""
        bits = max(scale.bit_length() - 7, 0)
        words = Noise(scale).words(2000)
        words[:200] &= np.uint64(2**61 - 1)  # no cells, and of half of them
        words[1000:1100] &= np.uint64(2**64 - 2**bits)  # no part
        monkeypatch.setattr(Noise, "words", lambda self, count: words[:count])
        seen = {}
        monkeypatch.setattr(
            module, "_runs", lambda n, w, b, t: seen.update(w=w, b=b) or (w >> np.uint64(60)).view(np.int64)
        )
        monkeypatch.setattr(
            module, "_heads", lambda n, w, b, u, t: seen.update(l=w, lb=b, u=u, t=t) or (u % 5 > 0) | (u < 5)
        )
        drawn, counts = module._attempt(Noise(0), 1000, Lattice(1.0, scale, shift))
        coarse, detail = ([int(w) for w in half] for half in (words[:1000], words[1000:]))
        assert seen["w"].tolist() == [w >> 1 for w in coarse]
        assert (seen["b"], seen["lb"], seen["t"]) == (bits, 64 - bits, scale)
        assert seen["l"].tolist() == [w >> bits for w in detail]
        assert seen["u"].tolist() == [w % 2**bits for w in detail]
        magnitude = [(d % 2**bits + ((c >> 61) << bits)) >> shift for c, d in zip(coarse, detail)]
        assert drawn.tolist() == [-m if c % 2 else m for m, c in zip(magnitude, coarse)]
        kept = [
            (d % 2**bits % 5 > 0 or d % 2**bits < 5) and not (c % 2 and m == 0)
            for m, c, d in zip(magnitude, coarse, detail)
        ]
        assert counts.tolist() == kept
        assert (counts[:100] == (words[:100] % 2 == 0)).all()

    def test_those_that_do_not_count_are_drawn_again(self, monkeypatch):
        sizes, batches = [], [[1, 2, 3, 4, 5], [6, 7, 8], [9]]

        def attempt(noise, size, lattice):
            sizes.append(size)
            drawn = np.array(batches[len(sizes) - 1])
            return drawn, ~np.isin(drawn, [2, 3, 5, 7])

        monkeypatch.setattr(module, "_attempt", attempt)
        assert module._discrete_laplace(None, 5, None).tolist() == [1, 6, 9, 4, 8]
        assert sizes == [5, 3, 1]

    def test_a_long_run_goes_on_like_a_new_one(self, monkeypatch):
        batches = [[7, 2, 7, 7], [7, 0, 3], [7], [5]]
        monkeypatch.setattr(module, "_short_runs", lambda *_: np.array(batches.pop(0)))
        assert module._runs(Noise(0), Noise(0).words(4), 3, 7).tolist() == [26, 2, 7, 10]
        assert not batches

    def test_counts_of_cells_stop(self, monkeypatch):
        monkeypatch.setattr(module, "_short_runs", lambda noise, words, bits, scale, most: np.full(words.size, most))
        monkeypatch.setattr(module, "_DRAWN", 2**20)
        runs = module._runs(Noise(0), Noise(0).words(2), 3, 1000)
        assert (runs << 3 >= 2**20).all()
        assert (runs << 3 < 2**20 + 8 * 1000).all()


def test_a_choice_asks_the_coin_of_its_distance_from_the_best(monkeypatch):
    asked = []

    def heads(noise, levels, bits, numerator, denominator):
        asked.append((levels, bits, numerator, denominator))
        return (numerator == 0) & (len(asked) == 2)

    monkeypatch.setattr(module, "_heads", heads)
    lattice, scores = value_lattice(4.0, 0.7), np.array([0.0, 4.0, -3.0, 1.0])
    assert choose(Noise(1), scores, 0.7, 4.0) == 1
    for levels, bits, numerator, denominator in asked:
        assert (levels.size, bits, denominator) == (64, 64, lattice.scale)
        assert set((numerator * lattice.step).tolist()) == {4.0, 0.0, 7.0, 3.0}


class TestDraws:
    @pytest.mark.parametrize("scale", [0.05, 0.4, 1.0, 3.7, 20.0])
    def test_whole_noise(self, scale):
        drawn = laplace_release(Noise(1), np.zeros(100_000), scale, 10.0, whole=True)
        assert (drawn == np.rint(drawn)).all()
        assert law(whole_lattice(10.0, scale), drawn) > LEAST_P

    @pytest.mark.parametrize(("undecided", "draws"), [(2.0**-32, 500_000), (0.25, 10_000)])
    @pytest.mark.parametrize(("scale", "shift"), [(3, 0), (200, 0), (130, 5)])
    @pytest.mark.repeated("scale", "shift", keep=2)
    def test_noise_has_its_law_whatever_is_left_to_integers(self, monkeypatch, scale, shift, undecided, draws):
        monkeypatch.setattr(module, "_UNDECIDED", undecided)
        lattice = Lattice(1.0, scale, shift)
        assert law(lattice, module._discrete_laplace(Noise(11), draws, lattice)) > LEAST_P

    @pytest.mark.parametrize("wrong", ["fresh", "heads", "tails", "other side"])
    def test_integers_that_answer_otherwise_are_noticed(self, monkeypatch, wrong):
        exact = module._below_exponential
        answers = {
            "fresh": lambda noise, level, bits, u, t: exact(noise, 0, 0, u, t),  # another number than the one drawn
            "heads": lambda *_: True,
            "tails": lambda *_: False,
            "other side": lambda *of: not exact(*of),
        }
        monkeypatch.setattr(module, "_UNDECIDED", 0.25)
        monkeypatch.setattr(module, "_below_exponential", answers[wrong])
        lattice = Lattice(1.0, 3, 0)
        drawn = np.maximum(module._discrete_laplace(Noise(11), 10_000, lattice), -20)
        assert law(lattice, drawn) < FALSE_ALARM

    def test_slope_inside_the_cells(self, monkeypatch):
        """What a coin that always shows heads gets wrong."""
        part = np.arange(2**10)
        density = np.exp(-part / 2**16)
        mean = (density @ part) / density.sum()
        deviation = math.sqrt((density @ (part - mean) ** 2) / density.sum())

        def score():
            drawn = module._discrete_laplace(Noise(12), 2_000_000, Lattice(1.0, 2**16, 0))
            return ((np.abs(drawn) % 2**10).mean() - mean) / deviation * math.sqrt(2_000_000)

        assert abs(score()) < Z_LIMIT
        monkeypatch.setattr(module, "_heads", lambda noise, levels, *_: np.ones(levels.size, dtype=np.bool_))
        assert score() > Z_LIMIT

    @pytest.mark.parametrize("scale", [1e-3, 0.7, 1.0, 123.4])
    def test_real_noise(self, scale):
        drawn = laplace_release(Noise(2), np.full(60_000, 0.25), scale, 1.0)
        assert stats.kstest((drawn - 0.25) / scale, "laplace").pvalue > LEAST_P
        assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 0.02

    def test_choices(self):
        scores, scale = np.array([0.0, 1.0, 2.5, 2.5, -3.0]), 0.8
        noise, draws = Noise(3), rounds(2000)
        seen = np.bincount([choose(noise, scores, scale, 5.0) for _ in range(draws)], minlength=5)
        weights = np.exp(scores / scale)
        assert stats.chisquare(seen, weights / weights.sum() * draws).pvalue > LEAST_P

    def test_uniform_numbers_of_any_limit(self):
        for limit in (1, 2, 3, 5, 7):
            seen = np.bincount(module._below(Noise(4), limit, 20_000), minlength=limit)
            assert len(seen) == limit
            assert limit == 1 or stats.chisquare(seen).pvalue > LEAST_P
        large = module._below(Noise(5), 3 * 2**60, 20_000)
        assert 0 <= large.min() < 2**52
        assert 3 * 2**60 - 2**52 < large.max() < 3 * 2**60

    def test_bits_come_from_the_operating_system_unless_for_tests(self, monkeypatch):
        asked = []
        monkeypatch.setattr("os.urandom", lambda size: asked.append(size) or bytes(size))
        assert module._below(Noise(), 2, 3).tolist() == [0, 0, 0]
        assert asked == [24]
        value = np.zeros(5)
        one, other = (laplace_release(Noise(7), value, 1.0, 1.0) for _ in range(2))
        np.testing.assert_array_equal(one, other)


class TestLattice:
    def test_scale_is_rounded_up_and_the_step_is_a_power_of_two(self):
        for scale in (0.3, 1.0, 1 / 3, 7.7, 1e-9, 1e12):
            for lattice in (value_lattice(scale, scale), value_lattice(2.0**20 * scale, scale)):
                assert math.frexp(lattice.step)[0] == 0.5
                assert scale <= lattice.scale * lattice.step <= scale * (1 + 2.0**-23)
        for scale in (0.3, 1.0, 7.7, 1e9):
            lattice = whole_lattice(100.0, scale)
            assert lattice.step == 1
            assert scale <= lattice.scale / 2**lattice.shift <= scale * (1 + 2.0**-22)

    def test_allowance_covers_what_is_proved(self):
        """Two values are rounded by half a step each; the law of integers costs a quarter of a step in all."""
        for bound, scale in ((1.0, 1.0), (1000.0, 0.37), (1.0, 1e-7)):
            step = 1 / value_lattice(bound, scale).scale
            assert 1.25 * 3 * step <= laplace_allowance(bound, scale, 3) <= 3 * 3 * step
            assert 2 * step <= score_allowance(bound, scale) <= 4 * step

    def test_allowances_fall_with_the_scale(self):
        scales = np.geomspace(1e-7, 1e3, 200)
        for allowance in (lambda b: laplace_allowance(1.0, b, 2), lambda b: score_allowance(1.0, b)):
            assert (np.diff([allowance(float(b)) for b in scales]) <= 0).all()

    @pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, "a"])
    def test_impossible_scales(self, scale):
        for whole in (False, True):
            with pytest.raises(InvalidParameter):
                laplace_release(Noise(0), [0.0], scale, 1.0, whole=whole)

    @pytest.mark.parametrize(("bound", "scale"), [(1e9, 1e-5), (2.0**51, 1.0), (1.0, 2.0**51), (1.0, 1e-30)])
    def test_counts_that_do_not_suit_the_noise(self, bound, scale):
        with pytest.raises(ImpossibleBudget):
            whole_lattice(bound, scale)

    def test_large_counts_have_noise_of_fewer_bits(self):
        assert whole_lattice(2.0**35, 1.0) == (1.0, 2**23, 23)
        assert whole_lattice(2.0**40, 1.0) == (1.0, 2**19, 19)
        assert whole_lattice(2.0**40, 1 / 3).scale == math.ceil(2**19 / 3)
        drawn = laplace_release(Noise(1), np.full(20_000, 2.0**40 - 50), 0.7, 2.0**40, whole=True) - (2.0**40 - 50)
        assert law(whole_lattice(2.0**40, 0.7), drawn) > LEAST_P

    def test_real_values_that_do_not_suit_the_noise(self):
        with pytest.raises(ImpossibleBudget):
            value_lattice(2.0**40, 1.0)
        with pytest.raises(ImpossibleBudget):
            choose(Noise(0), [0.0, 1.0], 1.0, 2.0**27)
        assert [value_lattice(2.0**size, 1.0).scale for size in (26, 27, 30, 39)] == [2**23, 2**23, 2**20, 2**11]
        far = laplace_release(Noise(1), np.full(5000, -(2.0**38)), 1.0, 2.0**38) + 2.0**38
        assert stats.kstest(far, "laplace").pvalue > LEAST_P


class TestPrivateValues:
    @pytest.mark.parametrize("whole", [False, True])
    def test_nothing_is_raised_on_them(self, whole):
        wild = [math.nan, math.inf, -math.inf, 1e300, -1e300, 0.3]
        tame = [0.0, 10.0, -10.0, 10.0, -10.0, 0.3]
        for one, other in zip(wild, tame):
            got, expected = (laplace_release(Noise(3), [v], 1.0, 10.0, whole=whole) for v in (one, other))
            np.testing.assert_array_equal(got, expected)

    def test_scores_too(self):
        seen = {choose(Noise(seed), [math.nan, math.inf, -math.inf], 0.01, 5.0) for seed in range(20)}
        assert seen == {1}

    @pytest.mark.parametrize(("whole", "scale"), [(False, 1.0), (True, 1.0), (True, 0.01), (True, 1e6)])
    def test_what_is_never_drawn_is_clamped_for_every_value(self, monkeypatch, whole, scale):
        """The largest magnitudes would overflow; they are all released as the same number."""
        monkeypatch.setattr(
            module, "_runs", lambda noise, words, bits, scale: np.full(words.size, module._DRAWN >> bits)
        )
        released = {
            abs(float(laplace_release(Noise(seed), [value], scale, 1000.0, whole=whole)[0]))
            for value in (-1000.0, 0.0, 1000.0)
            for seed in range(5)
        }
        lattice = (whole_lattice if whole else value_lattice)(1000.0, scale)
        assert released == {min(2**52, lattice.most) * lattice.step}

    def test_shapes(self):
        assert laplace_release(Noise(0), np.zeros((2, 3)), 1.0, 1.0).shape == (2, 3)
        assert laplace_release(Noise(0), [], 1.0, 1.0).shape == (0,)
        assert laplace_release(Noise(0), np.zeros(module._BLOCK + 5), 1.0, 1.0).shape == (module._BLOCK + 5,)
