"""A budget without delta: everything that leaves is pure, or the plan is refused."""

import numpy as np
import pytest

from ppdp import Adjacency, Domain, Ledger, Pipeline
from ppdp.exceptions import ImpossibleBudget
from ppdp.mechanisms import ExponentialMechanism, GaussianMechanism, LaplaceMechanism
from ppdp.transformers import PCA, Deduplicator, MinMaxScaler, NormClipper, StandardScaler

X = np.random.default_rng(0).uniform(0, 1, (300, 3))
RANGE = ("range", MinMaxScaler(ranges=(0.0, 1.0), feature_range=(0, 1)))


@pytest.mark.parametrize(
    ("mechanism", "adjacency", "scale"),
    [
        (LaplaceMechanism("rows"), Adjacency.change(coordinate=0.5), 0.25),
        (LaplaceMechanism("rows"), Adjacency.change(l2=0.5), 0.25 * 3**0.5),
        (LaplaceMechanism("rows"), Adjacency.replace(), 3.0),
        (LaplaceMechanism("count"), Adjacency.replace(2), 1.0),
        (LaplaceMechanism("mean"), None, 1 / 100),
    ],
    ids=str,
)
def test_noise_of_a_pure_mechanism_is_the_shift_over_epsilon(mechanism, adjacency, scale):
    facts = Domain(min_present=1) if mechanism.query == "count" else None
    given = {"epsilon": 2.0, "delta": 0, "diagnostics": None}
    pipe = Pipeline([RANGE, ("release", mechanism)], adjacency=adjacency, domain=facts, **given)
    certificate = pipe.fit(X).certificate_
    assert certificate.verify()
    assert (certificate.epsilon, certificate.delta, certificate.status) == (2.0, 0.0, "UNCONDITIONAL")
    document = certificate.to_dict()
    assert document["total"]["allowance"] == 0
    assert document["mechanism"]["noise_scale"] == pytest.approx(scale, rel=1e-6)


def test_choices_are_pure_as_well():
    mechanism = ExponentialMechanism("quantile", candidates=[0.1, 0.5, 0.9])
    pipe = Pipeline([RANGE, ("release", mechanism)], epsilon=2.0, delta=0)
    assert pipe.fit(X).certificate_.verify()


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ([RANGE, ("release", GaussianMechanism())], "Gaussian noise needs a delta"),
        ([RANGE, ("scale", StandardScaler(fit_mode="noisy")), ("release", LaplaceMechanism())], "a delta above 0"),
        ([RANGE, ("pca", PCA(1, fit_mode="exact", min_gap=0.05)), ("release", LaplaceMechanism())], "a delta"),
    ],
    ids=["mechanism", "statistics", "gate"],
)
def test_what_needs_delta_is_refused_with_what_would_do(steps, why):
    with pytest.raises(ImpossibleBudget, match=why):
        Pipeline(steps, epsilon=2.0, delta=0).fit(X)


def test_stages_that_assume_nothing_may_stand_in_front():
    steps = [("clip", NormClipper(1.0)), ("once", Deduplicator()), ("release", LaplaceMechanism())]
    assert Pipeline(steps, epsilon=2.0, delta=0).fit(X).certificate_.verify()


def test_a_ledger_adds_pure_fits_up():
    ledger = Ledger(epsilon=5.0, delta=1e-6)
    for _ in range(2):
        Pipeline([RANGE, ("release", LaplaceMechanism())], epsilon=2.0, delta=0, ledger=ledger).fit(X)
    assert ledger.epsilon(1e-6) <= 4.0 * (1 + 1e-6)


def test_rows_that_are_equal_need_no_part_of_delta():
    """Their noise has one law on both sides: at epsilon 20 the sampler's part would be more than delta for all rows."""
    facts = Domain(n_rows=20_000, n_features=64)
    steps = [RANGE, ("release", GaussianMechanism("rows"))]
    given = {"adjacency": Adjacency.change(coordinate=0.5), "epsilon": 20.0, "diagnostics": None}
    plan = Pipeline(steps, **given).plan(facts)
    assert plan.allowance == pytest.approx((1 + np.exp(20.0)) * 64 * 2.0**-60)
    certificate = Pipeline(steps, **given).fit(X).certificate_
    assert certificate.verify()
