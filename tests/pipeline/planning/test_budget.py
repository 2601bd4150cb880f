"""The split of the budget: what a gate, a release and the mechanism get, what is no budget, and too coarse noise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from plans import classifier, plan, total_mu

from ppdp import Domain, PrivateSearchCV, make_pipeline
from ppdp import mechanisms as M
from ppdp.bounds.release import BOX_WEIGHT
from ppdp.exceptions import InvalidParameter, NoiseWarning, NoRoute
from ppdp.pipeline.planning.plan import Plan
from ppdp.privacy.noise.sampler import TOTAL_VARIATION_PER_DRAW, certifiable_epsilon
from ppdp.transformers import PCA, MeanImputer, MinMaxScaler, NormClipper, StandardScaler

SHARES = (0.05, 0.10, 0.15, 0.20)


def release_error(p: Plan, release, mu: float) -> float:
    """Largest standard error of a released statistic over its public range, if it costs ``mu``."""
    domain = p.steps[release.at].domain
    norm = domain.row_norm
    entry = min(domain.entry_bound or norm, norm)
    noise = release.sensitivity / mu
    if release.statistic == "means":
        return noise / (2 * entry)  # of [-b, b]
    if release.statistic == "squares":
        return max(noise / (2 * entry), noise * entry / BOX_WEIGHT / entry**2)  # squares: of [0, b²]
    if release.statistic == "squares-in-parts":
        return noise / BOX_WEIGHT  # of entries up to 1
    return max(noise / (2 * norm), math.sqrt(2) * norm * noise / norm**2)  # second moments: of a range R²


@pytest.mark.parametrize("n", [60, 400, 600, 800, 1000, 1300, 2000, 20_000])
@pytest.mark.parametrize("d", [1, 4])
def test_a_release_gets_five_to_twenty_percent_until_it_is_precise(n, d):
    stages = MinMaxScaler(ranges=(0, 1)), MeanImputer(fit_mode="noisy"), StandardScaler(fit_mode="noisy")
    p = plan(*stages, classifier(), n=n, d=d, epsilon=1.0, delta=1e-5)
    mu = total_mu(p)
    for release in p.releases:
        share = (release.mu / mu) ** 2
        at = min(range(4), key=lambda i: abs(SHARES[i] - share))
        assert share == pytest.approx(SHARES[at], rel=1e-6)
        if at < 3:
            assert release_error(p, release, release.mu) <= 0.05 * (1 + 1e-5)
        if at > 0:
            assert release_error(p, release, mu * math.sqrt(SHARES[at - 1])) > 0.05 * (1 - 1e-5)
    rest = 1 - sum((r.mu / mu) ** 2 for r in p.releases)
    assert (p.mechanism.loss.mu / mu) ** 2 == pytest.approx(rest, rel=1e-4)


def test_every_step_of_the_ladder_occurs():
    shares = set()
    for n in (500, 850, 1100, 20_000):
        p = plan(MinMaxScaler(ranges=(0, 1)), MeanImputer(fit_mode="noisy"), M.GaussianMechanism(), n=n)
        shares.add(round((p.releases[0].mu / total_mu(p)) ** 2, 3))
    assert shares == set(SHARES)


@pytest.mark.parametrize("n", [100, 200, 500, 1000, 5000])
def test_auto_takes_statistics_that_are_too_noisy_only_where_nothing_better_is_left_and_says_so(n):
    p = plan(NormClipper(), StandardScaler(), M.GaussianMechanism(), n=n)
    noisy = next(a for a in p.alternatives if "noisy" in a.route)
    explicit = plan(NormClipper(), StandardScaler(fit_mode="noisy"), M.GaussianMechanism(), n=n)
    imprecise = release_error(explicit, explicit.releases[0], total_mu(explicit) * math.sqrt(0.2)) > 0.05
    assert any("too noisy" in warning for warning in p.warnings) is imprecise
    assert imprecise is (n <= 200)
    assert noisy.status == "chosen"
    few_gaps = plan(NormClipper(), MeanImputer(max_missing=1), M.GaussianMechanism(), n=n, gate=None)
    noisy = next(a for a in few_gaps.alternatives if "noisy" in a.route)
    assert bool(noisy.reason) is (noisy.status == "not offered") is ("too noisy" in noisy.reason)
    assert n != 100 or noisy.reason  # the exact way moves one row, and nothing drowns


def test_a_gate_gets_five_percent():
    p = plan(NormClipper(), PCA(1, fit_mode="exact"), M.GaussianMechanism())
    assert (p.gate.mu / total_mu(p)) ** 2 == pytest.approx(0.05, rel=1e-4)


def test_where_deltas_add_a_gate_gets_a_tenth_of_delta():
    p = plan(NormClipper(), StandardScaler(fit_mode="noisy"), PCA(1, fit_mode="exact"), M.GaussianMechanism())
    assert p.gate.adding
    assert p.gate.delta == pytest.approx(0.1 * (p.delta - p.allowance))


def test_a_pipeline_that_ends_in_a_transformer_gives_everything_to_its_releases():
    p = plan(MinMaxScaler(ranges=(0, 1)), MeanImputer(), StandardScaler(min_std=0.1))
    assert p.mechanism is None
    assert [step.way.name for step in p.steps] == ["public", "noisy", "noisy"]
    assert [(r.mu / total_mu(p)) ** 2 for r in p.releases] == pytest.approx([0.5, 0.5], rel=1e-6)


def test_the_users_shares():
    stages = NormClipper(), StandardScaler(fit_mode="noisy"), PCA(1, fit_mode="exact"), M.GaussianMechanism()
    p = plan(*stages, budget={"gate": 0.3, "release": 0.4})
    mu = total_mu(p)
    assert (p.gate.mu / mu) ** 2 == pytest.approx(0.3, rel=1e-4)
    assert (p.releases[0].mu / mu) ** 2 == pytest.approx(0.4, rel=1e-6)
    assert (p.mechanism.loss.mu / mu) ** 2 == pytest.approx(0.3, rel=1e-4)


@pytest.mark.parametrize(
    "budget",
    [{"relase": 0.1}, *({"release": share} for share in (0.0, 1.5, True, "a")), {"gate": math.nan}, "half", 0.1],
    ids=str,
)
@pytest.mark.parametrize(
    "stages",
    [(), (StandardScaler(fit_mode="noisy"),), (PCA(1, fit_mode="exact"),)],
    ids=["no release, no gate", "release", "gate"],
)
def test_impossible_shares_are_refused_whatever_the_route(budget, stages):
    with pytest.raises(InvalidParameter, match="budget"):
        plan(NormClipper(), *stages, M.GaussianMechanism(), budget=budget)


def test_releases_that_leave_nothing_are_refused():
    with pytest.raises(NoRoute, match="use the whole budget"):
        plan(NormClipper(), StandardScaler(fit_mode="noisy"), M.GaussianMechanism(), budget={"release": 1.0})


class TestBudget:
    def test_numbers_of_any_kind(self):
        """A grid search passes numpy numbers."""
        for number in (1, 1.0, np.float64(1), np.float32(1), np.int64(1)):
            assert plan(NormClipper(), M.GaussianMechanism(), epsilon=number).mechanism is not None

    def test_more_budget_less_noise(self):
        scales = [plan(NormClipper(), M.GaussianMechanism(), epsilon=e).mechanism.noise_scale for e in (0.1, 1, 10)]
        assert scales == sorted(scales, reverse=True)


# ---------------- where noise is drawn too coarsely


X = np.random.default_rng(0).uniform(0, 1, (500, 3))
Y = (X.sum(axis=1) > 1.5).astype(int)
MECHANISMS = [
    M.GaussianMechanism(),
    M.GaussianMechanism("rows"),
    M.LaplaceMechanism(),
    M.ExponentialMechanism(candidates=range(3)),
    M.GaussianSketch(),
    M.SignMechanism(),
    M.LogisticRegression((0, 1)),
    M.LogisticRegression((0, 1), solver="output"),
    M.Ridge(y_range=(0, 1)),
    M.PoissonRegressor(y_range=(0, 1)),
]


def pipeline(mechanism, **parameters):
    return make_pipeline(MinMaxScaler((0, 1)), MeanImputer(), StandardScaler(), mechanism, **parameters)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_every_mechanism_fits_at_epsilon_50(mechanism):
    pipe = pipeline(mechanism, epsilon=50.0, dataset=repr(mechanism))
    with pytest.warns(NoiseWarning, match="epsilon = 50 at delta = 1e-06: the plan keeps epsilon = 2"):
        pipe.fit(X, Y)
    assert pipe.certificate_.verify()
    assert 20 < pipe.certificate_["epsilon"] < 28
    assert pipe.certificate_["delta"] == 1e-6


def test_what_draws_exactly_keeps_all_of_it():
    plan = make_pipeline(MinMaxScaler((0, 1)), M.LaplaceMechanism(), epsilon=50.0).plan(
        Domain(n_rows=500, n_features=3)
    )
    assert plan.epsilon == 50
    assert not plan.warnings


def test_more_epsilon_is_never_more_noise():
    domain = Domain(n_rows=500, n_features=3)
    noise = [
        make_pipeline(MinMaxScaler((0, 1)), M.GaussianMechanism(), epsilon=e).plan(domain).mechanism.noise_scale
        for e in (1.0, 10.0, 20.0, 25.0, 27.0, 28.0, 50.0, 500.0)
    ]
    assert noise == sorted(noise, reverse=True)


@pytest.mark.parametrize("draws", [1, 1000, 10**9])
@pytest.mark.parametrize("delta", [1e-12, 1e-9, 1e-6, 1e-3])
def test_the_largest_epsilon_leaves_half_of_delta(draws, delta):
    kept = certifiable_epsilon(500.0, delta, draws)
    used = (1 + math.exp(kept)) * draws * TOTAL_VARIATION_PER_DRAW
    assert kept == 0 or used <= delta / 2 < used * 1.03
    assert certifiable_epsilon(kept / 2, delta, draws) == kept / 2


def test_a_search_keeps_the_largest_epsilon_too():
    pipe = make_pipeline(MinMaxScaler((0, 1)), M.LogisticRegression((0, 1)))
    search = PrivateSearchCV(pipe, {"minmaxscaler__feature_range": [(-1, 1), (0, 1)]}, epsilon=50.0, dataset="search")
    with pytest.warns(NoiseWarning, match="the plan keeps epsilon = 2"):
        search.fit(X, Y)
    assert search.certificate_.verify()
    assert 15 < search.certificate_["epsilon"] < 28


def test_a_refusal_at_a_large_epsilon_speaks_of_no_smaller_one():
    pipe = make_pipeline(NormClipper(), M.GaussianMechanism(), epsilon=50.0, delta=1e-18)
    with pytest.raises(NoRoute, match=r"Fix: a larger delta\.") as caught:
        pipe.plan(Domain(n_rows=60, n_features=10))
    assert "No epsilon up to" not in str(caught.value)
