"""How many guesses of members may be right: the theorem is proved, attained, and what is computed is close to it."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import coo_array
from scipy.special import expit
from scipy.stats import binom

from ppdp.testing.confidence import guessed_at_most


class TestGuesses:
    """``docs/theory/membership.md``: a linear program over all mechanisms attains Theorem 1, and nothing exceeds it."""

    @staticmethod
    def most(coins, guesses, right, epsilon, delta):
        """The largest probability that a mechanism, which answers with guesses and 0 for none, is right so often."""
        inputs = list(itertools.product((-1, 1), repeat=coins))
        outputs = [y for y in itertools.product((-1, 0, 1), repeat=coins) if np.count_nonzero(y) == guesses]
        near = [
            pair for pair in itertools.permutations(range(len(inputs)), 2) if _apart(*(inputs[i] for i in pair)) == 1
        ]
        wide, entries, bounds = len(inputs) * len(outputs), [], []
        for k, (a, b) in enumerate(near):
            excess = wide + k * len(outputs)
            for y in range(len(outputs)):
                line = len(bounds)
                entries += [(line, a * len(outputs) + y, 1.0), (line, b * len(outputs) + y, -math.exp(epsilon))]
                entries.append((line, excess + y, -1.0))
                bounds.append(0.0)
            entries += [(len(bounds), excess + y, 1.0) for y in range(len(outputs))]
            bounds.append(delta)
        line, column, value = zip(*entries)
        sums = coo_array((np.ones(wide), (np.repeat(range(len(inputs)), len(outputs)), range(wide))))
        size = wide + len(near) * len(outputs)
        sums = coo_array((sums.data, sums.coords), shape=(len(inputs), size))
        hits = [sum(s == g for s, g in zip(coins, y)) >= right for coins in inputs for y in outputs]
        goal = -np.append(np.array(hits, dtype=float) / len(inputs), np.zeros(size - wide))
        limits = coo_array((value, (line, column)), shape=(len(bounds), size))
        return -linprog(goal, limits, bounds, sums, np.ones(len(inputs)), method="highs").fun

    @pytest.mark.parametrize(("coins", "guesses"), [(1, 1), (2, 1), (3, 3), (3, 2)])
    @pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.01), (1.0, 0.001)])
    def test_the_theorem_is_attained(self, coins, guesses, epsilon, delta):
        q = expit(epsilon)
        for right in range(1, guesses + 1):
            tail, here = binom.sf(right - 1, guesses, q), binom.pmf(right, guesses, q)
            exact = tail + coins * delta * tail * (1 - tail) / (right * here)
            most = self.most(coins, guesses, right, epsilon, delta)
            assert most <= min(1.0, exact) * (1 + 1e-9)
            assert most == pytest.approx(exact, rel=1e-6) or guesses < coins
            assert exact <= guessed_at_most(right, guesses, coins, epsilon, delta) * (1 + 1e-9)

    def test_it_is_close_to_the_theorem_where_it_is_used(self):
        for right, guesses, delta in ((90, 100, 1e-6), (700, 1000, 1e-8)):
            tail, here = binom.sf(right - 1, guesses, expit(0.5)), binom.pmf(right, guesses, expit(0.5))
            exact = tail + 1000 * delta * tail * (1 - tail) / (right * here)
            assert 1 <= guessed_at_most(right, guesses, 1000, 0.5, delta) / exact < 1.1

    def test_it_grows_with_what_is_claimed_and_falls_with_what_is_seen(self):
        found = [guessed_at_most(70, 100, 200, epsilon, 1e-6) for epsilon in np.linspace(0, 3, 31)]
        assert found == sorted(found)
        found = [guessed_at_most(right, 100, 200, 0.5, 1e-6) for right in range(101)]
        assert found == sorted(found, reverse=True)
        assert guessed_at_most(0, 100, 200, 0.0, 0.0) == 1 == guessed_at_most(100, 100, 200, 800.0, 0.0)

    def test_it_is_smaller_than_that_of_the_paper(self):
        """Theorem 5.2 of Steinke, Nasr and Jagielski, as its appendix computes it."""
        for right, guesses, epsilon, delta in ((85, 100, 1.0, 1e-5), (300, 400, 0.5, 1e-6), (98, 100, 2.0, 1e-4)):
            q = expit(epsilon)
            missed = np.cumsum(binom.pmf(right - np.arange(1, right + 1), guesses, q)) / np.arange(1, right + 1)
            paper = binom.sf(right - 1, guesses, q) + 2 * 1000 * delta * missed.max()
            assert guessed_at_most(right, guesses, 1000, epsilon, delta) < paper


def _apart(one, other):
    return sum(a != b for a, b in zip(one, other))
