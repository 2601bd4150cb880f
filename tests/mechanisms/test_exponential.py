"""The exponential mechanism: quantiles and choices of one's own."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax

from ppdp import Adjacency, Distance, Domain, make_pipeline
from ppdp.data.rows import Rows
from ppdp.exceptions import ImpossibleBudget, InvalidParameter
from ppdp.mechanisms import ExponentialMechanism
from ppdp.transformers import MinMaxScaler

LINE = Domain(n_rows=9, n_features=1, row_norm=1.0)
ONE = Adjacency.replace().distance


def votes(X):
    """What each row gives to three candidates: all to the nearest."""
    points = np.array([-0.5, 0.0, 0.5])
    return (np.abs(X[:, :1] - points).argmin(axis=1)[:, None] == np.arange(3)).astype(float)


def election(**parameters):
    return ExponentialMechanism("utility", **{"candidates": ["low", "middle", "high"], "utility": votes, **parameters})


class TestQuantiles:
    @pytest.mark.parametrize("q", [0.0, 0.1, 0.5, 0.9, 1.0])
    def test_with_little_noise_they_are_the_nearest_candidates(self, q):
        X = np.random.default_rng(0).uniform(-1, 1, (5000, 2))
        found = ExponentialMechanism(q=q, candidates=401, noise_scale=1e-3, random_state=0).fit(X)
        np.testing.assert_allclose(found.quantile_, np.quantile(X, q, axis=0), atol=0.01)

    def test_a_value_that_all_rows_have_is_every_quantile(self):
        """Ranks of repeated values are intervals: with one-sided ranks no candidate would be better than another."""
        for q in (0.2, 0.5, 0.8):
            mechanism = ExponentialMechanism(q=q, candidates=[-0.5, 0.0, 0.25, 0.5], noise_scale=0.01)
            assert mechanism.fit(np.full((50, 1), 0.25)).quantile_ == [0.25]

    def test_absent_rows_have_no_rank(self):
        X = np.array([[-1.0]] * 6 + [[1.0]] * 3)
        rows = Rows(X, None, np.repeat([0.0, 1.0], [5, 4])).settled()
        mechanism = ExponentialMechanism(candidates=[-1.0, 0.0, 1.0])
        (utilities,) = mechanism.utilities(rows, mechanism.query_spec(LINE))
        np.testing.assert_allclose(utilities, [-1.0, -1.0, 0.0])

    def test_columns_are_chosen_by_name(self):
        frame = pd.DataFrame(np.random.default_rng(0).uniform(0, 1, (3000, 3)), columns=["a", "b", "c"])
        pipe = make_pipeline(
            MinMaxScaler(ranges=(0, 1)), ExponentialMechanism(candidates={"c": 11, "a": [0.2, 0.4, 0.6]}), epsilon=5.0
        )
        found = pipe.fit(frame)
        assert found.named_steps["exponentialmechanism"].quantile_.shape == (2,)
        assert found.certificate_["total"]["parts"][-1]["count"] == 2

    @pytest.mark.parametrize(("q", "toggled"), [(0.5, 1.0), (0.9, 1.8), (0.0, 2.0)])
    def test_cost(self, q, toggled):
        """2 for a replaced or a moved row, less for one that is only present on one side."""
        for distance, width in ((ONE, 2.0), (Distance(toggled=1), toggled), (Distance(moved=2, radius=0.1), 4.0)):
            loss = ExponentialMechanism(q=q, noise_scale=4.0).privacy_map(LINE, distance)
            assert loss.epsilon(0.0) == pytest.approx(width / 4.0, rel=1e-6)


class TestLaw:
    def pairs(self):
        rng = np.random.default_rng(0)
        for _ in range(200):
            X = rng.choice([-1.0, -0.4, 0.1, 0.6, 1.0], (9, 1))
            Z = X.copy()
            Z[0] = rng.choice([-1.0, -0.4, 0.1, 0.6, 1.0])
            yield Rows.of(X), Rows.of(Z)

    @pytest.mark.parametrize(
        "mechanism",
        [ExponentialMechanism(candidates=[-0.5, 0.0, 0.5]), ExponentialMechanism(q=0.7, candidates=7), election()],
    )
    def test_losses_lie_in_an_interval_of_the_certified_length(self, mechanism):
        scale, most = 1.5, 0.0
        question = mechanism.query_spec(LINE)
        (part,) = question.privacy_map(LINE, ONE, scale).parts
        for pair in self.pairs():
            logs = [log_softmax(mechanism.utilities(rows, question)[0] / scale) for rows in pair]
            losses = logs[0] - logs[1]
            most = max(most, float(np.ptp(losses)))
            assert np.abs(losses).max() <= most * (1 + 1e-9) + 1e-12
        assert 0.999 * part.range <= most <= part.range


class TestUtility:
    def test_cost_is_a_vote_lost_and_a_vote_won(self):
        for distance, width in ((ONE, 2.0), (Distance(toggled=1), 1.0), (Distance(moved=1, radius=0.01), 2.0)):
            loss = election(noise_scale=4.0).privacy_map(LINE, distance)
            assert loss.epsilon(0.0) == pytest.approx(width / 4.0, rel=1e-6)
        loss = election(noise_scale=4.0, lipschitz=3.0).privacy_map(LINE, Distance(moved=1, radius=0.01))
        assert loss.epsilon(0.0) == pytest.approx(2 * 3 * 0.01 / 4, rel=1e-6)

    @pytest.mark.parametrize("value", [5.0, math.inf, -1.0, -math.inf, math.nan])
    def test_what_a_row_gives_is_clipped(self, value):
        def wild(X):
            return np.where(X > 0.9, value, 0.5) * np.ones((1, 3))

        mechanism = election(utility=wild)
        rows = Rows.of(np.array([[1.0]] + [[0.0]] * 8))
        (found,) = mechanism.utilities(rows, mechanism.query_spec(LINE))
        np.testing.assert_allclose(found, 4.0 + (1.0 if value > 1 else 0.0))

    def test_a_row_on_which_it_fails_gives_nothing_and_nobody_learns_of_it(self):
        def fragile(X):
            if (X > 0.99).any():
                raise RuntimeError("a private value")
            return votes(X)

        mechanism = election(utility=fragile, noise_scale=0.01)
        X = np.array([[1.0]] + [[0.0]] * 8)
        (found,) = mechanism.utilities(Rows.of(X), mechanism.query_spec(LINE))
        np.testing.assert_allclose(found, [0, 8, 0])
        assert mechanism.fit(X).selected_ == "middle"

    def test_declarations(self):
        assert ExponentialMechanism().declarations() == ()
        assert len(election().declarations()) == 1
        assert "3.0" in election(lipschitz=3.0).declarations()[1]

    @pytest.mark.parametrize(
        "parameters",
        [
            {"utility": None},
            {"utility": 5},
            {"utility": lambda X: X - X.mean() + np.zeros((1, 3))},
            {"utility": lambda X: np.zeros((len(X), 2))},
            {"utility": lambda X: np.zeros(3)},
            {"utility": lambda X: 1 / 0},
            {"candidates": 3},
            {"candidates": "abc"},
            {"candidates": ["only"]},
            {"candidates": {0: 1, 1: 2, 2: 3}},
            *({"sensitivity": value} for value in (0, -1, math.inf, math.nan, "1", None)),
            *({"lipschitz": value} for value in (-1, math.inf, math.nan, "1")),
        ],
    )
    def test_impossible_ones_are_refused_before_any_row(self, parameters):
        with pytest.raises(InvalidParameter) as caught:
            election(**parameters).query_spec(LINE)
        assert caught.value.stage == "ExponentialMechanism"


def test_many_choices_cost_less_than_their_sum_at_some_delta():
    domain = Domain(n_rows=1000, n_features=30, row_norm=1.0)
    loss = ExponentialMechanism(noise_scale=20.0).privacy_map(domain, ONE)
    assert loss.epsilon(0.0) == pytest.approx(30 * 2 / 20, rel=1e-6)
    assert loss.epsilon(1e-6) < 0.55 * loss.epsilon(0.0)


def test_noise_that_is_too_fine_for_floats_is_refused_before_any_row():
    with pytest.raises(ImpossibleBudget):
        ExponentialMechanism(noise_scale=1e-9).privacy_map(LINE, ONE)


def test_a_utility_that_carries_what_was_fitted_is_refused():
    from sklearn.preprocessing import StandardScaler

    secret = StandardScaler().fit(np.arange(6.0).reshape(-1, 1))
    with pytest.raises(InvalidParameter, match="holds on to a StandardScaler"):
        ExponentialMechanism("utility", candidates=[0, 1], utility=secret.transform).privacy_map(LINE, ONE)


def test_how_far_its_ranks_miss_is_told_before_it_is_fitted():
    pipe = make_pipeline(MinMaxScaler(ranges=(0, 1)), ExponentialMechanism(), epsilon=1.0, delta=1e-6)
    told = pipe.expected_errors(Domain(n_rows=1000, n_features=1))
    assert told["note"].str.contains("its rank misses by at most").all()
