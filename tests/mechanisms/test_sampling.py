"""Batches are drawn exactly as the accounting takes them to be, from the operating system's entropy."""

import itertools
import math
import os

import numpy as np
import pytest
from effort import rounds
from scipy.stats import chisquare

from ppdp.mechanisms.learn import sampling
from ppdp.mechanisms.learn.linear import SOLVERS
from ppdp.mechanisms.learn.sampling import fixed_size_sample, poisson_sample, secret_one, shuffled, uniform
from ppdp.privacy.noise.sampler import Noise

LEAST_P = 1e-4  # seeds are fixed: a right sampler stays above for good


class Scripted:
    """Noise whose random words and bytes are given."""

    def __init__(self, words=(), leading=()):
        self.given, self.leading = list(words), bytes(leading)

    def words(self, count):
        taken, self.given = self.given[:count], self.given[count:]
        return np.array(taken, dtype=np.uint64)

    def random_bytes(self, count):
        return self.leading[:count]


class TestUniform:
    @pytest.mark.parametrize("below", [2, 7, 1000])
    def test_all_numbers_are_as_likely(self, below):
        seen = np.bincount(uniform(Noise(0), below, 200 * below))
        assert len(seen) == below
        assert chisquare(seen).pvalue > LEAST_P

    def test_of_one_number_there_is_one(self):
        assert list(uniform(Noise(), 1, 3)) == [0, 0, 0]

    def test_words_that_would_make_some_likelier_are_drawn_again(self):
        last = 2**64 - 2**64 % 10 - 1
        drawn = uniform(Scripted([2**64 - 1, last + 1, last, 13, 2**64 - 2, 21]), 10, 3)
        assert list(drawn) == [3, 1, last % 10]

    def test_a_power_of_two_rejects_nothing(self):
        assert list(uniform(Scripted([2**64 - 1, 0]), 4, 2)) == [3, 0]


class TestPoissonSample:
    def test_coins_of_more_rows_than_are_held_at_once_are_as_good(self, monkeypatch):
        monkeypatch.setattr(sampling, "_ROWS", 1000)
        found = poisson_sample(Noise(0), 40_500, 0.3)
        assert (np.diff(found) > 0).all()
        assert found[-1] < 40_500
        tossed = np.bincount(found // 1000, minlength=41)[:40]
        assert chisquare([tossed.sum(), 40_000 - tossed.sum()], [12_000, 28_000]).pvalue > LEAST_P
        assert chisquare(tossed).pvalue > LEAST_P

    @pytest.mark.parametrize("rate", [0.003, 0.3, 0.5, 0.9])
    def test_every_set_of_rows_has_its_probability(self, rate):
        rows, draws, noise = 4, rounds(2000), Noise(1)
        found = {}
        for _ in range(draws):
            key = tuple(poisson_sample(noise, rows, rate))
            found[key] = found.get(key, 0) + 1
        sets = [s for size in range(rows + 1) for s in itertools.combinations(range(rows), size)]
        expected = [draws * rate ** len(s) * (1 - rate) ** (rows - len(s)) for s in sets]
        seen = [found.get(s, 0) for s in sets]
        likely = [i for i, e in enumerate(expected) if e > 5]
        rest = [sum(v) - sum(v[i] for i in likely) for v in (seen, expected)]
        cells = [[v[i] for i in likely] + ([r] if rest[1] > 1 else []) for v, r in zip((seen, expected), rest)]
        scale = sum(cells[0]) / sum(cells[1])
        assert chisquare(cells[0], [e * scale for e in cells[1]]).pvalue > LEAST_P

    def test_a_byte_decides_and_what_it_leaves_open_56_more_bits_decide(self):
        rate = (3 * 2**56 + 2**40) / 2**64
        words = [(2**40 - 1) << 8, 2**40 << 8]
        assert list(poisson_sample(Scripted(words, [2, 3, 3, 4, 0]), 5, rate)) == [0, 1, 4]

    def test_the_rate_is_never_more_than_certified(self):
        """What lies between two multiples of 2^-64 is rounded down."""
        rate = 2.0**-64 * 5.75
        assert list(poisson_sample(Scripted([4 << 8, 5 << 8, 6 << 8], [0, 0, 0]), 3, rate)) == [0]

    def test_all_rows_and_none(self):
        assert list(poisson_sample(Noise(), 5, 1.0)) == [0, 1, 2, 3, 4]
        assert poisson_sample(Noise(), 5, 2.0**-200).size == 0


class TestFixedSizeSample:
    @pytest.mark.parametrize(("rows", "size"), [(5, 1), (5, 2), (5, 3), (5, 4), (6, 3)])
    def test_every_set_is_as_likely(self, rows, size):
        noise, found = Noise(2), {}
        for _ in range(rounds(200) * math.comb(rows, size)):
            key = tuple(fixed_size_sample(noise, rows, size))
            found[key] = found.get(key, 0) + 1
        assert set(found) == set(itertools.combinations(range(rows), size))
        assert chisquare(list(found.values())).pvalue > LEAST_P

    @pytest.mark.parametrize("size", [1, 499, 500, 501, 999, 1000])
    def test_the_size_is_exact(self, size):
        assert len(set(fixed_size_sample(Noise(), 1000, size).tolist())) == size


class TestOrder:
    def test_a_shuffle_holds_every_row_once(self):
        first, second = shuffled(Noise(), 1000), shuffled(Noise(), 1000)
        assert sorted(first) == sorted(second) == list(range(1000))
        assert not np.array_equal(first, second)

    @pytest.mark.parametrize("solver", ["epochs", "hidden"])
    def test_a_pass_takes_every_row_once_and_the_next_one_the_same_batches(self, solver):
        drawn = list(SOLVERS[solver].draw(Noise(), 23, 5, 10))
        assert [len(batch) for batch in drawn] == [5, 5, 5, 5, 3] * 2
        assert sorted(np.concatenate(drawn[:5])) == list(range(23))
        for early, late in zip(drawn[:5], drawn[5:]):
            np.testing.assert_array_equal(early, late)

    def test_the_secret_time_is_uniform_and_all_is_run_whichever_it_is(self):
        noise, found, made = Noise(3), [], []
        for _ in range(2000):
            found.append(secret_one(noise, (made.append(i) or i for i in range(5)), 5))
        assert len(made) == 5 * 2000
        assert chisquare(np.bincount(found, minlength=5)).pvalue > LEAST_P


DRAWS = {
    "poisson": lambda noise: poisson_sample(noise, 4000, 0.5),
    "fixed-size": lambda noise: fixed_size_sample(noise, 4000, 2000),
    "shuffle": lambda noise: shuffled(noise, 4000),
    "time": lambda noise: uniform(noise, 2**60, 8),
}


class TestEntropy:
    """Coins from a generator that can be predicted would void every amplification."""

    @pytest.mark.parametrize("what", DRAWS)
    def test_all_coins_are_the_operating_systems(self, monkeypatch, what):
        asked, urandom = [], os.urandom
        monkeypatch.setattr(os, "urandom", lambda count: asked.append(count) or urandom(count))
        for name in ("default_rng", "Generator", "RandomState", "rand", "random"):
            monkeypatch.setattr(np.random, name, None)
        DRAWS[what](Noise())
        assert sum(asked) >= 64

    @pytest.mark.parametrize("what", DRAWS)
    def test_no_seed_of_numpy_repeats_them(self, what):
        found = []
        for _ in range(2):
            np.random.seed(0)  # noqa: NPY002
            found.append(DRAWS[what](Noise()))
        assert not np.array_equal(*found)

    @pytest.mark.parametrize("what", DRAWS)
    def test_a_seed_for_tests_repeats_them(self, what):
        np.testing.assert_array_equal(*(DRAWS[what](Noise(7)) for _ in range(2)))

    def test_no_other_source_is_imported(self):
        assert not {"random", "secrets"} & set(vars(sampling))
        assert "default_rng" not in vars(sampling)
