"""The whole audit of a pipeline, its report, and what it says before it begins."""

import json
from dataclasses import replace

import numpy as np
import pytest

from ppdp import Domain, Pipeline
from ppdp.audit import AuditReport, audit
from ppdp.audit.lab import ROWS, AuditForecast, fewest_rows, forecast
from ppdp.audit.pairs import pair_to_dict
from ppdp.data.rows import Rows
from ppdp.exceptions import InvalidParameter, NoRoute
from ppdp.mechanisms import GaussianMechanism, LaplaceMechanism, LogisticRegression
from ppdp.transformers import Deduplicator, MeanImputer, MedianImputer, NormClipper, StandardScaler

pytestmark = pytest.mark.usefixtures("short_slices")


DOMAIN = Domain(n_rows=8, n_features=1)
QUICK = {"evaluations": 60, "runs": 2000}
BRIEF = {"evaluations": 20, "runs": 200}  # where it does not matter what is found
SOME = {"evaluations": 20, "runs": 1200}


def mean(mechanism=None, **parameters) -> Pipeline:
    parameters = {"epsilon": 5.0, "delta": 1e-6, **parameters}
    return Pipeline([("clip", NormClipper(1.0)), ("mean", mechanism or GaussianMechanism())], **parameters)


@pytest.fixture(scope="module")
def sound(short_slices) -> AuditReport:
    return audit(mean(), DOMAIN, **QUICK)


@pytest.fixture(scope="module")
def broken(short_slices) -> AuditReport:
    plan = mean().plan(DOMAIN)
    halved = replace(plan.mechanism, noise_scale=plan.mechanism.noise_scale / 2)
    return audit(replace(plan, mechanism=halved), **{**QUICK, "runs": 1200})


class TestVerdict:
    def test_a_true_claim_is_not_refuted_and_nearly_reached(self, sound):
        assert not sound.violated
        (name, low, high), (_, epsilon, certified) = sound.bounds()
        assert name == "μ"
        assert 0.5 * high < low <= high
        assert 0 < epsilon <= certified == 5.0

    def test_half_of_the_noise_is_found(self, broken):
        assert broken.violated
        assert broken.output.violated
        assert not broken.stability.violated


@pytest.fixture
def no_trials(monkeypatch):
    """Which pair of several is told apart best does not matter either: the one that was found is taken."""
    monkeypatch.setattr("ppdp.audit.pairs._best", lambda plan, pair, *_: pair)


class TestKinds:
    def test_noise_that_is_not_gaussian(self, no_trials):
        found = audit(mean(LaplaceMechanism()), DOMAIN, **BRIEF)
        assert not found.violated
        assert [name for name, _, _ in found.bounds()] == ["ε at δ = 1e-06"]

    def test_statistics_of_a_map_that_is_released_are_told_apart(self):
        steps = [("clip", NormClipper(1.0)), ("scale", StandardScaler(fit_mode="noisy"))]
        plan = Pipeline(steps, epsilon=5.0, delta=1e-6).plan(DOMAIN.but(n_rows=40))
        assert not audit(plan, **SOME).violated
        halved = tuple(replace(release, noise_scale=release.noise_scale / 2) for release in plan.releases)
        found = audit(replace(plan, releases=halved), **SOME)
        assert found.output.violated
        assert not found.stability.violated

    def test_a_map_without_statistics_releases_nothing(self):
        steps = [("clip", NormClipper(1.0)), ("dedup", Deduplicator())]
        found = audit(Pipeline(steps, epsilon=5.0, delta=1e-6), DOMAIN, evaluations=20)
        assert found.output is None
        assert "no statistic is released" in repr(found)

    def test_a_gate_is_passed_with_the_margin_it_needs(self, no_trials):
        imputer = MeanImputer(max_missing=60, fit_mode="exact")
        steps = [("clip", NormClipper(1.0)), ("impute", imputer), ("mean", GaussianMechanism())]
        found = audit(Pipeline(steps, epsilon=5.0, delta=1e-2), DOMAIN.but(n_rows=80), **BRIEF)
        assert not found.violated
        assert found.output is not None

    def test_noise_from_a_seed_is_named(self):
        found = audit(mean(random_state=0), DOMAIN, **BRIEF)
        assert "not attacked: random_state: anyone who knows the seed" in repr(found)


class TestVacuous:
    """A public number of rows is counted: no row can change it."""

    def test_parts_in_which_nothing_moved_are_named(self, no_trials):
        found = audit(mean(LaplaceMechanism("count")), DOMAIN, **BRIEF)
        assert found.stability.vacuous == ("mean, end to end",)
        assert found.word == "NOT REFUTED"
        assert "Of mean, end to end: nothing moved on any pair" in found.verdict

    def test_an_attack_in_which_nothing_moved_at_all_has_another_first_word(self, sound):
        still = [replace(finding, attained=0.0) for finding in sound.stability.findings]
        output = replace(sound.output, mu_low=-1.0, epsilon_low=0.0)
        found = replace(sound, stability=replace(sound.stability, findings=tuple(still)), output=output)
        assert repr(found).startswith("AUDIT: VACUOUS")


class TestReport:
    @pytest.mark.parametrize("name", ["audit.html", "audit.HTM"])
    def test_there_are_no_pages(self, sound, name, tmp_path):
        with pytest.raises(InvalidParameter, match="as JSON"):
            sound.save(tmp_path / name)
        assert not list(tmp_path.iterdir())

    def test_gaps_and_labels_of_a_pair_are_written(self):
        X = np.array([[np.nan, -0.0], [0.1, 1 / 3]])
        left, right = (Rows(X, np.array([0.0, 1.0]), np.array([side, 0.0]), X) for side in (1.0, 0.0))
        document = json.loads(json.dumps(pair_to_dict((left, right)), allow_nan=False))
        assert document["left"] == {"X": [[None, -0.0], [0.1, 1 / 3]], "y": [0.0, 1.0], "weight": [1.0, 0.0]}
        assert document["right"]["weight"] == [0.0, 0.0]

    def test_first_word_is_the_verdict(self, sound, broken):
        assert repr(sound).startswith("AUDIT: NOT REFUTED")
        assert repr(broken).startswith("AUDIT: REFUTED")
        assert "can refute a guarantee but not prove it" in repr(sound)
        assert "must not be used" in repr(broken)

    def test_notebook_and_json(self, sound, broken, tmp_path):
        assert "<table" in sound._repr_html_()
        broken.save(tmp_path / "audit.json")
        document = json.loads((tmp_path / "audit.json").read_text("utf-8"))
        assert document == json.loads(json.dumps(broken.to_dict(), allow_nan=False))
        assert document["violated"] is True
        assert document["output"]["mu_low"] > document["output"]["mu"]
        assert document["seed"] == 0
        (pair,) = document["pairs"]  # refuted by what was released, on these datasets
        assert pair["quantity"] == "output"
        assert pair["left"]["X"] == broken.pair[0].X.tolist() != pair["right"]["X"]
        assert sound.to_dict()["pairs"] == []
        assert "told apart" in broken.verdict
        assert "pushed" not in broken.verdict


# ---------------- how long it will take, and which rows have a route


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
