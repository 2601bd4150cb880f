"""What an audit says before it begins: how long it will take, and which rows have a route."""

import pytest

from ppdp import Domain, Pipeline
from ppdp.audit import audit
from ppdp.audit.lab import ROWS, AuditForecast, fewest_rows, forecast
from ppdp.exceptions import InvalidParameter, NoRoute
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.transformers import Deduplicator, MedianImputer, NormClipper, StandardScaler

EFFORT = {"evaluations": 20_000, "seconds": 20.0, "runs": 50_000}


def scaled(epsilon, **stage):
    steps = [("clip", NormClipper(1.0)), ("scale", StandardScaler(**stage)), ("mean", GaussianMechanism())]
    return Pipeline(steps, epsilon=epsilon, delta=1e-6)


def test_it_is_said_before_anything_is_attacked(monkeypatch):
    said = []

    def begun(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("ppdp.audit.lab.attack_stability", begun)
    with pytest.raises(KeyboardInterrupt):
        audit(scaled(5.0), Domain(n_rows=100, n_features=1), announce=said.append)
    (line,) = said
    assert line.startswith("an audit with 100 rows takes about ")
    assert "50,000 runs of the plan" in line


def test_every_search_and_all_runs_count():
    plan = scaled(5.0, fit_mode="noisy").plan(Domain(n_rows=100, n_features=1))
    found = forecast(plan, **EFFORT)
    assert found.searches == 6  # both stages, one release, all stages, the answers, and these once more for the runs
    assert 0 < found.search_seconds <= 6 * 20
    assert found.run_seconds > 0
    bare = Pipeline([("clip", NormClipper(1.0)), ("dedup", Deduplicator())], epsilon=1.0, delta=1e-6)
    assert forecast(bare.plan(plan.domain), **EFFORT).runs == 0


def test_in_words():
    assert str(AuditForecast(50, 8, 60.4, 4000, 0.2)) == (
        "an audit with 50 rows takes about 61 s: 8 searches for datasets (60 s) and 4,000 runs of the plan (1 s)"
    )
    assert str(AuditForecast(5000, 3, 300.0, 0, 0.0)) == (
        "an audit with 5,000 rows takes about 5 min: 3 searches for datasets (5 min)"
    )


class TestRows:
    DOMAIN = Domain(n_features=2)

    def plan(self, epsilon=1.0, **stage):
        scale, model = StandardScaler(**stage), LogisticRegression((0, 1), max_iter=2)
        steps = [("clip", NormClipper(1.0)), ("scale", scale), ("model", model)]
        return Pipeline(steps, epsilon=epsilon, delta=1e-6).plan

    def test_the_fewest_that_have_a_route(self):
        found = fewest_rows(self.plan(), self.DOMAIN).domain.n
        assert ROWS[0] < found
        with pytest.raises(NoRoute):
            self.plan()(self.DOMAIN.but(n_rows=ROWS[ROWS.index(found) - 1]))

    def test_the_gate_can_be_passed(self):
        """With 12 rows there is a route, but no data have so large a margin."""
        imputer = MedianImputer(fit_mode="exact")
        steps = [("clip", NormClipper(1.0)), ("impute", imputer), ("mean", GaussianMechanism())]
        plan = Pipeline(steps, epsilon=5.0, delta=1e-6).plan
        assert plan(self.DOMAIN.but(n_rows=ROWS[0])).unpassable_gates
        assert not fewest_rows(plan, self.DOMAIN).unpassable_gates

    def test_facts_that_few_rows_cannot_have(self):
        assert fewest_rows(self.plan(), self.DOMAIN.but(min_present=150)).domain.n == 200

    def test_none(self):
        with pytest.raises(NoRoute, match="budget"):
            fewest_rows(self.plan(1e-3), self.DOMAIN)
        with pytest.raises(InvalidParameter, match="min_std"):
            fewest_rows(self.plan(min_std=-1), self.DOMAIN)
