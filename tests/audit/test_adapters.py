"""Other libraries as targets: what is claimed is taken from them, what they publish is seen, and nothing else.

Stand-ins of the same form take the place of the libraries; the real ones are audited by ``benchmarks/honesty.py``.
"""

import sys
import warnings
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from adapters import diffprivlib_target, opendp_pca_target, opendp_target, smartnoise_query_target, smartnoise_target
from sklearn.base import BaseEstimator

from ppdp.audit import ForeignTarget, attack_output
from ppdp.audit.scores import numbers_of
from ppdp.audit.target import seed_of
from ppdp.exceptions import InvalidParameter
from ppdp.privacy.noise.sampler import Noise

pytestmark = pytest.mark.usefixtures("short_slices")
RUNS = 1200


def laplace(scale):
    """A mean with Laplace noise from a seed."""

    def release(value, noise):
        return value + np.random.default_rng(seed_of(noise)).laplace(scale=scale)

    return release


HONEST = laplace(1.0)


def target(release=HONEST, left=0.0, right=1.0, epsilon=1.0, **settings):
    return ForeignTarget("stand-in", release, left, right, epsilon, **settings)


class TestForeignTargets:
    def test_an_honest_claim_is_not_exceeded(self):
        finding = attack_output(target(), runs=2000, random_state=0)
        assert not finding.violated
        assert 0.2 < finding.epsilon_low < 1

    def test_a_third_of_the_noise_is_found(self):
        finding = attack_output(target(laplace(1 / 3)), runs=RUNS, random_state=0)
        assert finding.violated
        assert finding.epsilon_low > 1

    def test_nothing_may_be_seen_where_nothing_is_claimed(self):
        assert attack_output(target(lambda data, noise: data, epsilon=0.0), runs=RUNS, random_state=0).violated

    def test_a_declared_delta_counts(self):
        def sometimes(data, noise):
            return data * (seed_of(noise) % 10 == 1)

        assert attack_output(target(sometimes, epsilon=0.1), runs=RUNS, random_state=0).violated
        assert not attack_output(target(sometimes, epsilon=0.1, delta=0.3), runs=RUNS, random_state=0).violated

    def test_an_error_that_is_declared_is_an_outcome(self):
        def fail(data, noise):
            if data:
                raise ValueError("no bounds found")
            return 1.0

        assert attack_output(target(fail, errors=(ValueError,)), runs=RUNS, random_state=0).violated
        with pytest.raises(ValueError, match="no bounds"):
            target(fail).outcome(1, Noise(0))

    def test_warnings_of_the_library_are_silent(self):
        def warn(data, noise):
            warnings.warn("bounds were read off the data", stacklevel=1)
            return data

        assert target(warn).outcome(0, Noise(0)).tolist() == [1.0, 0.0]

    def test_what_is_not_finite_can_still_be_told_apart(self):
        found = numbers_of([np.nan, np.inf, -np.inf, 1.0])
        assert np.isfinite(found**2).all()
        assert len(set(found)) == 4

    def test_arrays_lists_and_dictionaries_become_numbers_in_order(self):
        assert numbers_of({"b": [np.eye(2), (3,)], "a": True})[1:].tolist() == [1, 1, 0, 0, 1, 3]
        assert numbers_of([]).size == 0

    def test_keys_are_seen(self):
        """Those of a histogram tell who is in it."""
        first = [
            numbers_of(found)[0] for found in ({"a": 1, "b": 1}, {"b": 2, "a": 2}, {"a": 1, "c": 1}, {1: 1, "b": 1})
        ]
        assert first[0] == first[1]
        assert len(set(first)) == 3

    def test_an_unseeded_run_leaves_the_noise_to_the_library(self):
        assert seed_of(Noise()) is None
        assert seed_of(Noise(0)) == seed_of(Noise(0)) >= 0


def module(monkeypatch, name, **contents):
    found = ModuleType(name)
    vars(found).update(contents)
    monkeypatch.setitem(sys.modules, name, found)
    return found


class StandardScaler(BaseEstimator):
    """In the form of diffprivlib's."""

    __module__ = "diffprivlib.models.standard_scaler"

    def __init__(self, epsilon=1.0, random_state=None, accountant=None):
        self.epsilon, self.random_state, self.accountant = epsilon, random_state, accountant

    def fit(self, X, y=None):
        self.accountant.append(self.epsilon)
        self.mean_ = X.mean(axis=0) + np.random.RandomState(self.random_state).laplace(scale=1 / self.epsilon)
        self.var_, self.n_samples_seen_ = np.ones(1), len(X)
        return self


class Unknown(StandardScaler):
    __module__ = "diffprivlib.models.unknown"


@pytest.fixture
def diffprivlib(monkeypatch):
    return module(monkeypatch, "diffprivlib", BudgetAccountant=list)


X, Z = np.zeros((2, 1)), np.ones((2, 1))


@pytest.mark.usefixtures("diffprivlib")
class TestDiffprivlib:
    def test_the_claim_is_the_models_epsilon_and_copies_are_fitted(self):
        model = StandardScaler(epsilon=0.5, accountant=[])
        found = diffprivlib_target("scaler", model, (X,), (Z,))
        assert (found.certified.epsilon, found.certified.delta) == (0.5, 0.0)
        assert found.outcome(0, Noise(0)).tolist() == found.outcome(0, Noise(0)).tolist()
        assert found.outcome(0, Noise(0))[1] == pytest.approx(found.outcome(1, Noise(0))[1] - 1)
        assert found.outcome(0, Noise(0)).shape == (3,)  # mean_ and var_
        assert model.accountant == []
        assert not hasattr(model, "mean_")

    def test_other_attributes_and_what_an_attacker_makes_of_them(self):
        named = diffprivlib_target("scaler", StandardScaler(), (X,), (Z,), learned=["n_samples_seen_"])
        assert named.outcome(0, Noise()).tolist() == [1, 2]
        seen = diffprivlib_target("scaler", Unknown(), (X,), (Z,), seen=lambda model: model.n_samples_seen_ + 1)
        assert seen.outcome(0, Noise()).tolist() == [1, 3]

    def test_a_model_of_somebody_else_is_refused(self):
        with pytest.raises(InvalidParameter, match="no model of diffprivlib"):
            diffprivlib_target("other", BaseEstimator(), (X,), (Z,))

    def test_a_model_of_which_nothing_is_known_is_refused(self):
        with pytest.raises(InvalidParameter, match="what a Unknown publishes"):
            diffprivlib_target("other", Unknown(), (X,), (Z,))


class Measurement:
    """In the form of OpenDP's."""

    output_measure = "MaxDivergence"

    def map(self, d_in):
        return d_in / 2

    def __call__(self, data):
        return SimpleNamespace(mean_=[data], explained_variance_=[2.0], components_=[[3.0]])


class TestOpendp:
    @pytest.fixture(autouse=True)
    def opendp(self, monkeypatch):
        module(monkeypatch, "opendp")
        module(monkeypatch, "opendp.prelude")

    def test_the_claim_is_its_privacy_map(self):
        found = opendp_target("mean", Measurement(), 0.0, 1.0, d_in=3, seen=lambda out: out.mean_)
        assert found.epsilon == 1.5
        assert [found.outcome(side, Noise()).tolist() for side in (0, 1)] == [[1, 0], [1, 1]]
        assert opendp_target("mean", Measurement(), 0.0, 1.0).epsilon == 1.0
        assert opendp_target("mean", Measurement(), 0.0, 1.0, epsilon=0.2).epsilon == 0.2

    @pytest.mark.parametrize(
        ("measure", "says", "delta", "claimed"),
        [
            ("MaxDivergence", 0.5, None, (0.5, 0.0)),
            ("Approximate(MaxDivergence)", (0.5, 1e-3), None, (0.5, 1e-3)),
            ("SmoothedMaxDivergence", SimpleNamespace(epsilon=lambda delta: 100 * delta), 0.02, (2.0, 0.02)),
            ("ZeroConcentratedDivergence", 0.5, 0.01, (2.7530, 0.01)),
        ],
    )
    def test_what_the_map_says_is_read_by_its_measure(self, measure, says, delta, claimed):
        measurement = SimpleNamespace(output_measure=measure, map=lambda d_in: says)
        found = opendp_target("release", measurement, 0.0, 1.0, delta=delta)
        assert (found.epsilon, found.delta) == pytest.approx(claimed, abs=2e-3)

    def test_a_concentrated_claim_holds_and_can_be_refuted(self):
        """Standard normal noise on a number that moves by 1: rho is 1/2; taken as epsilon it would be a false alarm."""

        class Gaussian(SimpleNamespace):
            noise = np.random.default_rng(0)

            def __call__(self, data):
                return data + self.noise.normal(scale=self.scale)

        for scale, violated in ((1.0, False), (0.1, True)):
            measurement = Gaussian(
                output_measure="ZeroConcentratedDivergence", map=lambda d_in: d_in**2 / 2, scale=scale
            )
            found = attack_output(opendp_target("Gaussian", measurement, 0.0, 1.0, d_in=1, delta=0.01), runs=RUNS)
            assert found.violated == violated

    @pytest.mark.parametrize("measure", ["ZeroConcentratedDivergence", "SmoothedMaxDivergence", "RenyiDivergence"])
    def test_a_measure_without_an_epsilon_is_named(self, measure):
        measurement = SimpleNamespace(output_measure=measure, map=lambda d_in: 0.5)
        with pytest.raises(InvalidParameter, match=measure):
            opendp_target("release", measurement, 0.0, 1.0)

    @pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, "x"])
    def test_impossible_deltas_are_refused(self, delta):
        with pytest.raises(InvalidParameter, match="delta must be"):
            opendp_target("release", Measurement(), 0.0, 1.0, delta=delta)

    def test_the_claim_of_its_pca_is_the_models_epsilon(self):
        model = SimpleNamespace(epsilon=3.0, measurement=Measurement)
        found = opendp_pca_target("PCA", model, 0.0, 1.0)
        assert found.epsilon == 3.0
        assert found.outcome(1, Noise()).tolist() == [1, 1, 2, 3]
        assert opendp_pca_target("PCA", model, 0.0, 1.0, epsilon=6.0).epsilon == 6.0


class Transformer:
    """In the form of smartnoise-synth's: a fit halves what is left."""

    def __init__(self):
        self.epsilon = 1.0

    def fit(self, column):
        self.epsilon /= 2
        self.mean, self.var = sum(column), self.epsilon


class TestSmartnoise:
    def test_every_run_has_its_own_transformer(self, monkeypatch):
        module(monkeypatch, "snsynth")
        module(monkeypatch, "snsynth.transform")
        with pytest.raises(InvalidParameter, match="what a Transformer publishes"):
            smartnoise_target("scaler", Transformer, [1.0], [2.0])
        found = smartnoise_target("scaler", Transformer, [1.0], [2.0], fitted=["mean", "var"])
        assert found.epsilon == 1.0
        assert [found.outcome(side, Noise()).tolist() for side in (0, 1)] == [[1, 1, 0.5], [1, 2, 0.5]]

    def test_the_claim_of_a_query_is_what_the_reader_says_that_it_costs(self, monkeypatch):
        def from_df(table, privacy, metadata):
            assert metadata == {"t": {}}
            return SimpleNamespace(
                get_privacy_cost=lambda sql: (2 * privacy.epsilon, privacy.delta), execute=lambda sql: [["n"], [table]]
            )

        module(monkeypatch, "snsql", Privacy=SimpleNamespace, from_df=from_df)
        query = {"metadata": {"t": {}}, "epsilon": 0.5, "delta": 1e-6}
        found = smartnoise_query_target("count", "SELECT", 3, 4, **query)
        assert (found.epsilon, found.delta) == (1.0, 1e-6)
        assert [found.outcome(side, Noise()).tolist() for side in (0, 1)] == [[1, 3], [1, 4]]


MISSING = {
    "diffprivlib": lambda: diffprivlib_target("x", StandardScaler(), (X,), (Z,)),
    "opendp.prelude": lambda: opendp_target("x", Measurement(), 0, 1),
    "snsynth.transform": lambda: smartnoise_target("x", Transformer, [], []),
    "snsql": lambda: smartnoise_query_target("x", "SELECT", 0, 1, metadata={}, epsilon=1.0, delta=0.0),
}


@pytest.mark.parametrize("name", MISSING)
def test_a_missing_library_says_how_to_get_it(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InvalidParameter, match=r"not installed\. Fix: pip install"):
        MISSING[name]()
