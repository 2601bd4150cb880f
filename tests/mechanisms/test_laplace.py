"""The Laplace mechanism: pure privacy, of vectors too, and whole counts."""

import math
from functools import reduce

import numpy as np
import pytest

from ppdp import Adjacency, Distance, Domain, make_pipeline
from ppdp.data.rows import Rows
from ppdp.exceptions import ImpossibleBudget
from ppdp.mechanisms import GaussianMechanism, LaplaceMechanism
from ppdp.privacy.noise.laplace import laplace_release
from ppdp.privacy.noise.sampler import Noise
from ppdp.transformers import NormClipper

ONE = Adjacency.replace().distance

QUERIES = ["mean", "sum", "count", "histogram"]
BALL = Domain(n_rows=400, n_features=2, row_norm=1.0)
BOX = Domain(n_rows=400, n_features=2, row_norm=10.0, entry_bound=0.5)


def table(n=400):
    return np.random.default_rng(0).uniform(-0.5, 0.5, (n, 2))


class TestCost:
    @pytest.mark.parametrize(
        ("query", "domain", "shift"),
        [
            ("sum", BALL, 2 * math.sqrt(2)),
            ("sum", BOX, 2 * 1.0),
            ("mean", BALL, 2 * math.sqrt(2) / 400),
            ("mean", BOX.but(min_present=400), 2 * 1.0 / 400),
            ("count", BALL, 1),
            ("histogram", BALL, 4),
        ],
    )
    def test_of_one_replaced_row_is_pure(self, query, domain, shift):
        loss = LaplaceMechanism(query, 0.05).privacy_map(domain, ONE)
        assert loss.epsilon(0.0) == pytest.approx(shift / 0.05, rel=1e-6)
        assert loss.mu == loss.failure == 0

    @pytest.mark.parametrize("query", QUERIES)
    def test_it_falls_with_the_noise(self, query):
        distance = Distance(replaced=1, toggled=2, moved=3, radius=0.1)
        costs = [
            LaplaceMechanism(query, float(b)).privacy_map(BALL, distance).epsilon(0.0)
            for b in np.geomspace(0.1, 1e3, 60)
        ]
        assert (np.diff(costs) < 0).all()

    def test_noise_that_is_too_fine_for_floats_is_refused_before_any_row(self):
        for query in ("mean", "sum", "histogram"):
            with pytest.raises(ImpossibleBudget):
                LaplaceMechanism(query, 1e-14).privacy_map(BALL, ONE)


def integers(shift, decay, width=40):
    """Probabilities of an integer with noise ``~ exp(-decay |k|)``, from 0 and from ``shift``."""
    ratio = math.exp(-decay)
    k = np.arange(-width, width + shift + 1)
    law = (1 - ratio) / (1 + ratio)
    return law * ratio ** np.abs(k), law * ratio ** np.abs(k - shift)


def delta_of(left, right, epsilon):
    return float(np.maximum(left - math.exp(epsilon) * right, 0.0).sum())


class TestVectors:
    @pytest.mark.parametrize("decay", [0.3, 1.0, 2.5])
    @pytest.mark.parametrize("shifts", [(1, 1), (1, 2), (2, 3), (1, 1, 1)])
    def test_a_vector_of_integers_costs_no_more_than_one_that_takes_all_of_the_shift(self, decay, shifts):
        """Theorem 1, by enumeration."""
        width = 40 if len(shifts) == 2 else 16
        sides = zip(*(integers(shift, decay, width) for shift in shifts))
        left, right = (reduce(np.multiply.outer, side) for side in sides)
        one = integers(sum(shifts), decay)
        for epsilon in np.linspace(0, sum(shifts) * decay, 25):
            assert delta_of(left, right, epsilon) <= delta_of(*one, epsilon) + 1e-12

    @pytest.mark.parametrize("shifts", [(0.5, 0.5), (0.1, 2.0), (1.5, 1.5)])
    def test_a_vector_of_reals_costs_no_more_either(self, shifts):
        """Theorem 1, by integration over the loss of the first coordinate."""

        def delta(gamma, shift):
            inside = 1 - np.sqrt(gamma * math.exp(-shift))
            return np.where(gamma < math.exp(-shift), 1 - gamma, np.where(gamma > math.exp(shift), 0.0, inside))

        first, second = shifts
        z = (np.arange(200_000) + 0.5) / 200_000 * first  # where the noise falls between the two values
        density = np.exp(-z) / 2 * first / len(z)
        losses = np.exp(2 * z - first)
        for gamma in np.exp(np.linspace(-sum(shifts), sum(shifts), 41)):
            ends = 0.5 * delta(gamma * math.exp(-first), second)
            ends += 0.5 * math.exp(-first) * delta(gamma * math.exp(first), second)
            both = ends + (density * delta(gamma * losses, second)).sum()
            assert both <= delta(gamma, sum(shifts)) + 1e-8

    @pytest.mark.parametrize("shift", [1, 2, 7])
    @pytest.mark.parametrize("decay", [0.05, 0.5, 2.0])
    def test_integers_cost_what_reals_do_and_a_little_more(self, shift, decay):
        """Lemma 2: they cost more at the same shift, and no more with 2 log cosh(decay / 2) added to it."""
        sides = integers(shift, decay, 2000)
        more = shift * decay + 2 * math.log(math.cosh(decay / 2))
        epsilons = np.linspace(0, shift * decay, 60, endpoint=False)
        found = np.array([delta_of(*sides, epsilon) for epsilon in epsilons])
        assert (found <= -np.expm1((epsilons - more) / 2) + 1e-12).all()
        assert (found >= -np.expm1((epsilons - shift * decay) / 2) - 1e-12).all()
        assert (found > -np.expm1((epsilons - shift * decay) / 2) + 1e-9).any()

    @pytest.mark.parametrize("query", ["sum", "histogram"])
    def test_so_delta_buys_what_it_buys_for_one_number(self, query):
        """At (1, 0.1) less noise is enough than at (1, 0)."""
        loss = LaplaceMechanism(query, 3.0).privacy_map(BALL, ONE)
        assert loss.epsilon(0.1) < 0.9 * loss.epsilon(0.0)


class TestAnswers:
    @pytest.mark.parametrize("query", QUERIES)
    def test_they_are_near_the_truth(self, query):
        X = table()
        found = LaplaceMechanism(query, 1e-3, random_state=0).fit(X)
        truth = {
            "mean": lambda: np.allclose(found.mean_, X.mean(axis=0), atol=0.02),
            "sum": lambda: np.allclose(found.sum_, X.sum(axis=0), atol=0.02),
            "count": lambda: found.count_ == 400,
            "histogram": lambda: all(cells.sum() == 400 for cells in found.histogram_),
        }
        assert truth[query]()

    @pytest.mark.parametrize("query", ["count", "histogram"])
    def test_counts_are_whole(self, query):
        for seed in range(10):
            found = LaplaceMechanism(query, 2.3, random_state=seed).fit(table())
            released = [found.count_] if query == "count" else np.concatenate(found.histogram_)
            assert np.array_equal(released, np.rint(released))

    def test_of_part_weight_are_rounded_half_upwards(self):
        """As whatever rounding does not depend on the number that is rounded."""
        domain = BALL.but(n_rows=5)
        for weight, count in ((0.25, 1.0), (0.5, 3.0), (0.75, 4.0), (1.0, 5.0)):
            rows = Rows(np.zeros((5, 2)), None, np.full(5, weight))
            mechanism = LaplaceMechanism("count")
            assert mechanism.answer(rows, mechanism.query_spec(domain))[0] == count

    def test_the_noise_is_the_exact_sampler_s(self):
        X, mechanism = table(), LaplaceMechanism("sum")
        question = mechanism.query_spec(BALL)
        released = mechanism.release(Rows.of(X), question, Noise(3), 0.7)["answer"]
        answer = mechanism.answer(Rows.of(X), question)
        np.testing.assert_array_equal(released, laplace_release(Noise(3), answer, 0.7, question.bound))


class TestInPipelines:
    def test_one_number_needs_less_noise_than_from_a_gaussian(self):
        def variance(mechanism, factor):
            plan = make_pipeline(NormClipper(), mechanism, epsilon=1.0).plan(Domain(n_rows=5000, n_features=1))
            return factor * plan.mechanism.noise_scale**2

        assert 4 * variance(LaplaceMechanism(), 2.0) < variance(GaussianMechanism(), 1.0)
