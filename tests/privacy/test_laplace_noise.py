"""Discrete Laplace noise and exponential choices: exact laws, by enumeration and in draws."""

import math
from collections import defaultdict

import numpy as np
import pytest
from effort import rounds
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


class Undecided(Exception):
    """A draw whose outcomes, with their probabilities, must be tried one after the other."""

    def __init__(self, outcomes):
        super().__init__()
        self.outcomes = outcomes


class Tree:
    """Runs a sampler of one number on every sequence of its draws whose probability is not negligible."""

    def __init__(self, monkeypatch, *, coins_are_exact):
        self.script, self.place = [], 0
        monkeypatch.setattr(module, "_below", lambda noise, limit, size: self.drawn(size, self.uniform(limit)))
        if coins_are_exact:  # proved by the first test
            monkeypatch.setattr(
                module, "_heads", lambda noise, u, t: self.drawn(u.size, self.coin(u, t)).astype(np.bool_)
            )

    @staticmethod
    def uniform(limit):
        return [(i, 1 / limit) for i in range(limit)]

    @staticmethod
    def coin(numerator, denominator):
        heads = math.exp(-numerator[0] / denominator) if numerator.size else 1.0
        return [(1, heads), (0, 1 - heads)]

    def drawn(self, size, outcomes):
        assert size <= 1
        if not size:
            return np.zeros(0, dtype=np.int64)
        if self.place == len(self.script):
            raise Undecided(outcomes)
        self.place += 1
        return np.array([self.script[self.place - 1]])

    def law(self, sampler, least):
        """Probability of each result, and what was left out."""
        found, left_out, waiting = defaultdict(float), 0.0, [([], 1.0)]
        while waiting:
            script, probability = waiting.pop()
            if probability < least:
                left_out += probability
                continue
            self.script, self.place = script, 0
            try:
                found[sampler()] += probability
            except Undecided as undecided:
                waiting += [([*script, outcome], probability * p) for outcome, p in undecided.outcomes if p]
        return found, left_out


@pytest.mark.parametrize(("numerator", "denominator"), [(0, 3), (1, 3), (2, 3), (3, 3), (1, 1), (5, 7)])
def test_a_coin_shows_heads_with_its_exponential_probability(monkeypatch, numerator, denominator):
    tree = Tree(monkeypatch, coins_are_exact=False)
    found, left_out = tree.law(lambda: bool(module._heads(None, np.array([numerator]), denominator)[0]), 1e-7)
    assert found[True] - 1e-12 <= math.exp(-numerator / denominator) <= found[True] + left_out + 1e-12
    assert left_out < 0.01


@pytest.mark.parametrize(("scale", "shift"), [(3, 0), (4, 0), (3, 1), (5, 2)])
def test_noise_has_exactly_its_law(monkeypatch, scale, shift):
    """What the first attempt gives, if it is not thrown away, and so what any attempt gives."""
    tree = Tree(monkeypatch, coins_are_exact=True)

    def attempt():
        attempts = []

        def below(noise, limit, size):
            attempts.extend([limit] * (limit == scale))
            if len(attempts) > 1:
                raise StopIteration
            return tree.drawn(size, tree.uniform(limit))

        monkeypatch.setattr(module, "_below", below)
        try:
            return int(module._discrete_laplace(None, 1, Lattice(1.0, scale, shift))[0])
        except StopIteration:
            return None

    found, left_out = tree.law(attempt, 1e-9)
    ratio, kept = math.exp(-(2**shift) / scale), 1 - found[None]
    assert left_out < 1e-7
    for k in range(-5, 6):
        assert found[k] / kept == pytest.approx((1 - ratio) / (1 + ratio) * ratio ** abs(k), abs=1e-6)


@pytest.mark.parametrize("scores", [(0, 0), (0, 1), (0, 3), (2, 0, 1)])
def test_a_choice_has_exactly_its_law(monkeypatch, scores):
    """Of one proposal: what is accepted is proportional to the exponential weights."""
    tree = Tree(monkeypatch, coins_are_exact=True)
    cells, scale = np.array(scores), 2

    def proposal():
        whole, part = np.divmod(cells.max() - cells, scale)
        proposed = module._below(None, cells.size, 1)
        kept = module._runs(None, 1, int(whole.max())) >= whole[proposed]
        kept[kept] = module._heads(None, part[proposed[kept]], scale)
        return int(proposed[0]) if kept[0] else None

    found, left_out = tree.law(proposal, 1e-9)
    assert left_out < 1e-6
    for i, score in enumerate(scores):
        assert found[i] == pytest.approx(math.exp((score - max(scores)) / scale) / len(scores), abs=1e-6)


class TestDraws:
    @pytest.mark.parametrize("scale", [0.05, 0.4, 1.0, 3.7, 20.0])
    def test_whole_noise(self, scale):
        drawn = laplace_release(Noise(1), np.zeros(100_000), scale, 10.0, whole=True)
        assert (drawn == np.rint(drawn)).all()
        ratio = math.exp(-1 / scale)
        width = max(1, int(4 * scale))
        k = np.arange(-width, width + 1)
        inside = (1 - ratio) / (1 + ratio) * ratio ** np.abs(k)
        tail = ratio ** (width + 1) / (1 + ratio)
        expected = np.concatenate([[tail], inside, [tail]]) * drawn.size
        seen = np.bincount(np.clip(drawn, -width - 1, width + 1).astype(int) + width + 1, minlength=len(expected))
        kept = expected >= 5
        rest = max(expected[~kept].sum(), 1e-9)
        statistic = ((seen - expected)[kept] ** 2 / expected[kept]).sum() + (seen[~kept].sum() - rest) ** 2 / rest
        assert stats.chi2.sf(statistic, kept.sum()) > LEAST_P

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

    @pytest.mark.parametrize(("bound", "scale"), [(1e9, 1e-3), (2.0**51, 1.0), (1.0, 2.0**51), (1.0, 1e-30)])
    def test_counts_that_do_not_suit_the_noise(self, bound, scale):
        with pytest.raises(ImpossibleBudget):
            whole_lattice(bound, scale)

    def test_real_values_that_do_not_suit_the_noise(self):
        with pytest.raises(ImpossibleBudget):
            value_lattice(2.0**27, 1.0)


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
        monkeypatch.setattr(module, "_heads", lambda noise, u, t: np.ones(u.size, dtype=np.bool_))
        monkeypatch.setattr(module, "_runs", lambda noise, size, most: np.full(size, most))
        released = {
            abs(float(laplace_release(Noise(seed), [value], scale, 1000.0, whole=whole)[0]))
            for value in (-1000.0, 0.0, 1000.0)
            for seed in range(5)
        }
        lattice = (whole_lattice if whole else value_lattice)(1000.0, scale)
        assert released == {min(2**52, lattice.most) * lattice.step}

    def test_counts_of_heads_stop(self, monkeypatch):
        monkeypatch.setattr(module, "_heads", lambda noise, u, t: np.ones(u.size, dtype=np.bool_))
        assert module._runs(None, 3, 5).tolist() == [5, 5, 5]
        assert module._runs(None, 2, 0).tolist() == [0, 0]

    def test_shapes(self):
        assert laplace_release(Noise(0), np.zeros((2, 3)), 1.0, 1.0).shape == (2, 3)
        assert laplace_release(Noise(0), [], 1.0, 1.0).shape == (0,)
        assert laplace_release(Noise(0), np.zeros(module._BLOCK + 5), 1.0, 1.0).shape == (module._BLOCK + 5,)
