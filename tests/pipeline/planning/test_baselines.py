"""``pipe.compare(domain)``: what the usual claims are worth beside the plan, in public numbers."""

import dataclasses
import inspect
import json
import math
import pickle
import sys
from functools import cache

import matplotlib
import numpy as np
import pytest

from ppdp import Adjacency, Distance, Domain, Ledger, Pipeline, make_pipeline
from ppdp.exceptions import InvalidParameter, NoRoute
from ppdp.mechanisms import ExponentialMechanism, GaussianMechanism, LaplaceMechanism, LogisticRegression
from ppdp.pipeline.planning.baselines import exact_route, naive_baseline
from ppdp.privacy.gaussian import gaussian_mu
from ppdp.transformers import PCA, Deduplicator, MeanImputer, MinMaxScaler, NormClipper, SelectKBest, StandardScaler

matplotlib.use("Agg")
from matplotlib import pyplot as plt

DOMAIN = Domain(n_rows=6000, n_features=4)
ONE = Adjacency.replace().distance
DESCENT = LogisticRegression((0, 1), solver="dpgd")  # rows that move or change places cost it little
NAMES = ["naive claim", "group privacy", "all-exact route", "all-noisy route", "ours"]


def cleaned(model=None, **parameters):
    steps = [
        ("range", MinMaxScaler(ranges=[(0, 1)] * 4)),
        ("dedup", Deduplicator()),
        ("impute", MeanImputer()),
        ("scale", StandardScaler()),
        ("model", model or LogisticRegression(classes=(0, 1))),
    ]
    return Pipeline(steps, **parameters)


def projected(**parameters):
    steps = [
        ("clip", NormClipper()),
        ("pca", PCA(n_components=1, min_gap=0.1, fit_mode="exact")),
        ("mean", GaussianMechanism()),
    ]
    return Pipeline(steps, **parameters)


class TestRows:
    def test_five_practices_in_order(self):
        found = cleaned().compare(DOMAIN)
        assert [practice.name for practice in found.practices] == NAMES
        assert [practice.name for practice in found.practices if practice.status == "chosen"] == ["ours"]
        assert {practice.claimed for practice in found.practices} == {1.0}

    def test_ours_is_the_plan(self):
        pipe = cleaned(epsilon=2.0, delta=1e-5)
        found, plan = pipe.compare(DOMAIN), pipe.plan(DOMAIN)
        assert (found.epsilon, found.delta, found.last_step) == (2.0, 1e-5, "model")
        assert found["ours"].noise_scale == plan.mechanism.noise_scale
        assert found["ours"].provable == 2.0

    @pytest.mark.parametrize(("name", "way"), [("all-exact route", "exact"), ("all-noisy route", "noisy")])
    def test_extreme_routes_are_those_a_user_would_get(self, name, way):
        alone = cleaned().set_params(impute__fit_mode=way, scale__fit_mode=way).plan(DOMAIN)
        assert cleaned().compare(DOMAIN)[name].noise_scale == pytest.approx(alone.mechanism.noise_scale, rel=1e-12)

    def test_the_naive_claim_is_evaluated_at_the_distance_of_exact_stages(self):
        pipe = cleaned(DESCENT)
        stages, model = pipe.steps[:-1], pipe["model"]
        route = exact_route(stages, pipe.plan(DOMAIN).domain)
        question = model.query_spec_at(route.domain, ONE, gaussian_mu(1.0, 1e-6))
        found = pipe.compare(DOMAIN)["naive claim"]
        alone = question.privacy_map(route.domain, ONE, found.noise_scale)
        behind = question.privacy_map(route.domain, route.distance, found.noise_scale)
        assert alone.epsilon(1e-6) == pytest.approx(1.0, rel=1e-4)
        assert found.provable == behind.epsilon(1e-6) > 1000
        assert found.status == "does not hold"
        assert found.noise_scale < pipe.compare(DOMAIN)["ours"].noise_scale

    def test_group_privacy_keeps_the_budget_whatever_row_changed(self):
        pipe = cleaned()
        route = exact_route(pipe.steps[:-1], pipe.plan(DOMAIN).domain)
        question = pipe["model"].query_spec_at(route.domain, ONE, gaussian_mu(1.0, 1e-6))
        found = pipe.compare(DOMAIN)["group privacy"]
        everyone = Distance(replaced=DOMAIN.n)
        assert question.privacy_map(route.domain, everyone, found.noise_scale).epsilon(1e-6) == pytest.approx(
            1.0, rel=1e-4
        )
        assert question.privacy_map(route.domain, everyone, 0.99 * found.noise_scale).epsilon(1e-6) > 1.0
        assert "more noise than anything that is released" in found.reason

    def test_the_naive_claim_holds_where_stages_are_free(self):
        free = Pipeline([s for s in cleaned(DESCENT).steps if s[0] not in ("impute", "scale")]).compare(DOMAIN)
        assert free["naive claim"].status == "holds"
        assert free["naive claim"].provable <= 1.0 + 1e-9
        assert free["all-noisy route"].status == "not offered"
        assert "no stage is fitted from released statistics" in free["all-noisy route"].reason
        only_public = make_pipeline(NormClipper(), GaussianMechanism()).compare(DOMAIN)
        assert "no stage is fitted without noise" in only_public["all-exact route"].reason

    def test_conditions_that_the_naive_claim_needs_are_told(self):
        found = projected().compare(DOMAIN)["naive claim"]
        assert 1 < found.provable < math.inf
        assert "provable only where 1 untested condition(s) hold" in found.reason
        assert "assumes 1 condition(s)" in projected(gate=None).compare(DOMAIN)["ours"].reason

    def test_a_route_that_is_not_offered_says_why(self):
        few = cleaned().compare(DOMAIN.but(n_rows=1500, rows_per_unit=3))["all-exact route"]
        plan = cleaned().plan(DOMAIN.but(n_rows=1500, rows_per_unit=3))
        exact = next(a for a in plan.alternatives if a.route == "dedup exact, impute exact, scale exact")
        assert (few.noise_scale, few.status, few.reason) == (None, "not offered", exact.reason)
        assert few.reason


@cache
def on_batches():
    """A pipeline that ends in batches of fixed size, and how it compares."""
    pipe = cleaned(LogisticRegression(classes=(0, 1), solver="fixed-size", max_iter=1))
    return pipe, pipe.compare(DOMAIN)


class TestOtherMechanisms:
    @pytest.mark.parametrize("model", [LaplaceMechanism(), ExponentialMechanism()], ids=lambda m: type(m).__name__)
    def test_pure_ones(self, model):
        found = cleaned(model).compare(DOMAIN)
        assert found["naive claim"].provable > 1.0
        assert found["group privacy"].noise_scale > found["ours"].noise_scale > found["naive claim"].noise_scale

    def test_batches_of_fixed_size_are_proved_for_one_row_only(self):
        """Every other stage moves rows, so nothing is provable; that is shown and not raised."""
        pipe, found = on_batches()
        assert found["naive claim"].provable == math.inf
        assert found["naive claim"].status == "does not hold"
        assert "nothing is proved of this mechanism" in found["naive claim"].reason
        assert found["group privacy"].noise_scale is None
        assert "one replaced row" in found["group privacy"].reason
        claim = naive_baseline(pipe.plan(DOMAIN), pipe.steps[:-1], pipe["model"])
        assert claim.certified == claim.by_group_privacy == math.inf
        assert "nothing" in repr(found)

    def test_a_pipeline_without_one_is_refused(self):
        with pytest.raises(InvalidParameter, match="ends in a transformer"):
            make_pipeline(NormClipper(), StandardScaler()).compare(DOMAIN)


class TestUnit:
    """rows_per_unit goes from the domain to every word that people read."""

    WORDS = "any 3 rows of one person"

    def test_words(self):
        domain = DOMAIN.but(rows_per_unit=3)
        found, plan = cleaned().compare(domain), cleaned().plan(domain)
        for shown in (repr(plan), plan._repr_html_(), repr(found), found._repr_html_(), domain.describe()):
            assert self.WORDS in shown
        for shown in (repr(cleaned().plan(DOMAIN)), repr(cleaned().compare(DOMAIN))):
            assert "of one person" not in shown
        assert "any one row" in repr(cleaned().compare(DOMAIN))

    def test_words_of_the_certificate(self):
        pipe = make_pipeline(NormClipper(), GaussianMechanism(), domain=Domain(rows_per_unit=3))
        certificate = pipe.fit(np.linspace(-1, 1, 400)[:, None]).certificate_
        for shown in (certificate.to_text(full=True), certificate._repr_html_(), certificate.to_html()):
            assert self.WORDS in shown
        assert certificate.verify()

    def test_numbers(self):
        one, three = (cleaned().compare(DOMAIN.but(rows_per_unit=k)) for k in (1, 3))
        for name in ("naive claim", "ours"):
            assert three[name].noise_scale > 2.9 * one[name].noise_scale
        assert three["group privacy"].noise_scale == one["group privacy"].noise_scale


class TestShown:
    def test_text(self):
        lines = repr(cleaned().compare(DOMAIN)).splitlines()
        assert lines[0] == "COMPARISON: nothing has been certified"
        assert [next(name for name in NAMES if line.strip().startswith(name)) for line in lines[3:8]] == NAMES
        assert "hold only while all fitted statistics stay secret" in lines[8]

    def test_notebook_gets_table_and_picture(self):
        shown = cleaned().compare(DOMAIN)._repr_html_()
        assert all(f">{name}</td>" in shown for name in NAMES)
        assert shown.count('src="data:image/png;base64,') == 1
        assert "\ufffd" not in shown
        assert "<script" not in shown
        assert not plt.get_fignums(), "the picture is in the page, and no figure stays open"

    def test_notebook_without_matplotlib_gets_the_table(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        shown = cleaned().compare(DOMAIN)._repr_html_()
        assert "<table>" in shown
        assert "<img" not in shown

    def test_names_are_text(self):
        pipe = Pipeline([("clip", NormClipper()), ("<b>", GaussianMechanism())])
        for shown in (pipe.compare(DOMAIN)._repr_html_(), pipe.plan(DOMAIN)._repr_html_()):
            assert "<b>" not in shown
            assert "&lt;b&gt;" in shown

    def test_dictionary_is_json(self):
        found = on_batches()[1]
        data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
        assert data["practices"][0]["provable"] is None
        assert [p["noise_scale"] for p in data["practices"]] == [p.noise_scale for p in found.practices]

    def test_frozen_and_plain(self):
        found = cleaned().compare(DOMAIN)
        with pytest.raises(dataclasses.FrozenInstanceError):
            found.epsilon = 0.1
        assert pickle.loads(pickle.dumps(found)) == found


class TestDataFree:
    def test_takes_a_domain_and_nothing_else(self):
        assert list(inspect.signature(Pipeline.compare).parameters) == ["self", "domain"]

    def test_spends_nothing_and_changes_nothing(self):
        ledger = Ledger(epsilon=1.0, delta=1e-5)
        pipe = cleaned(ledger=ledger)
        before = pipe.get_params()
        pipe.compare(DOMAIN)
        assert not ledger.entries()
        assert pipe.get_params() == before
        assert not hasattr(pipe, "certificate_")

    def test_uses_the_domain_of_the_pipeline(self):
        assert cleaned(domain=DOMAIN).compare() == cleaned().compare(DOMAIN)

    @pytest.mark.parametrize("wrong", [np.zeros((5, 4)), "domain", 3])
    def test_refuses_data(self, wrong):
        with pytest.raises(InvalidParameter, match="domain must be a Domain"):
            cleaned().compare(wrong)

    def test_no_route_is_no_comparison(self):
        with pytest.raises(NoRoute):
            cleaned(epsilon=1e-6).compare(DOMAIN.but(n_rows=20))


class TestPlanInANotebook:
    def test_stages_noise_and_routes(self):
        plan = cleaned().plan(DOMAIN)
        shown = plan._repr_html_()
        for step in plan.steps:
            assert f">{step.name}</td>" in shown
        for route in plan.alternatives:
            assert f">{route.route}</td>" in shown
        assert "PLAN: nothing has been certified" in shown
        assert shown.count("<tr") == 2 + len(plan.steps) + len(plan.alternatives)

    def test_conditions_and_warnings(self):
        plan = projected().plan(DOMAIN.but(n_rows=200))
        assert plan.warnings
        shown = plan._repr_html_()
        assert all(condition.statement[:12] in shown for _, condition in plan.conditions)
        assert all(warning[:20] in shown for warning in plan.warnings)


def test_a_choice_that_is_not_counted_proves_no_more_than_rows_that_may_all_have_changed():
    pipe = make_pipeline(MinMaxScaler(ranges=(0, 1)), SelectKBest(2), LogisticRegression((0, 1)), epsilon=1.0)
    claim = pipe.compare(Domain(n_rows=2000, n_features=5))["naive claim"]
    assert claim.status == "does not hold"
    assert claim.provable > 100 * claim.claimed
