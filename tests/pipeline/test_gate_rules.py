"""A pipeline behind its gate: what comes before it, which deltas add, what a refusal says, and what it costs."""

from __future__ import annotations

import dataclasses
import math

import clinic
import numpy as np
import pytest
from clinic import fitted_state
from gates import GATED, Witness, before_the_gate, gated, open_gate, plan, tight

from ppdp import Domain, Ledger, Pipeline, PrivacyLoss, PrivacyRefusal
from ppdp.data.rows import Rows
from ppdp.exceptions import NoRoute
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.pipeline.execute import execute
from ppdp.pipeline.planning.plan import Plan
from ppdp.privacy.noise.sampler import Noise
from ppdp.transformers import PCA, MeanImputer, MinMaxScaler, NormClipper, StandardScaler


class TestRule:
    @pytest.mark.parametrize("name", [name for name, case in GATED.items() if case[2]])
    def test_deltas_add_only_where_a_condition_looks_at_what_a_release_has_shaped(self, name):
        assert gated(name).gate.adding is (GATED[name][2] == "sum")

    @pytest.mark.parametrize("name", GATED)
    @pytest.mark.parametrize(
        ("epsilon", "delta", "budget"),
        [(1.0, 1e-6, None), (3.0, 1e-5, {"release": 0.4}), (0.02, 1e-4, {"release": 0.4})],
    )
    @pytest.mark.repeated("epsilon", "delta", "budget")
    def test_the_total_covers_pairs_on_which_a_condition_fails(self, name, epsilon, delta, budget):
        """There the gate lets through with delta_t, and what left before it costs its mu in addition."""
        planned = gated(name, epsilon=epsilon, delta=delta, budget=budget)
        gate, room = planned.gate, delta - planned.allowance
        before, _ = before_the_gate(dataclasses.replace(planned, gate=open_gate(gate)), tight())
        outside = PrivacyLoss(math.sqrt(sum(mu * mu for mu in before)), gate.delta)
        assert outside.delta(epsilon) <= room * (1 + 1e-9)
        assert planned.loss.delta(epsilon) <= room * (1 + 1e-9)
        if gate.adding:
            assert planned.loss.failure == gate.delta
        else:
            assert planned.loss.failure == 0
            assert gate.delta <= room

    @pytest.mark.parametrize("name", GATED)
    def test_nothing_that_rests_on_a_condition_leaves_before_the_gate(self, name):
        planned = gated(name)
        before, behind = before_the_gate(dataclasses.replace(planned, gate=open_gate(planned.gate)), tight())
        conditional = [i for i, step in enumerate(planned.steps) if step.way.conditions]
        resting = [r.mu for r in planned.releases if r.at > conditional[0]]
        assert set(resting) <= set(behind)
        assert len(before) + len(behind) == len(planned.releases)

    def test_a_refusal_releases_nothing_but_what_rests_on_no_condition(self):
        planned = gated("prediction release between conditions")
        witness = Witness()
        with pytest.raises(PrivacyRefusal):
            execute(planned, Rows.of(np.zeros((5000, 3)), np.zeros(5000)), witness)
        assert witness.sizes[-1] == 1
        assert len(witness.sizes) - 1 <= sum(r.at <= 1 for r in planned.releases)

    def test_a_ledger_makes_deltas_add(self):
        assert gated("PCA on clipped rows", ledger=Ledger()).gate.adding is True

    def test_no_gate_where_nothing_is_assumed(self):
        planned = plan(NormClipper(), StandardScaler())
        assert planned.gate is None
        assert planned.conditions_untested is False

    def test_without_a_gate_conditions_are_assumed(self):
        planned = gated("PCA on clipped rows", gate=None)
        assert planned.gate is None
        assert planned.conditions_untested is True


class TestOrder:
    def test_a_condition_on_a_release_that_rests_on_a_condition_is_not_offered(self):
        stages = PCA(2, fit_mode="exact"), StandardScaler(fit_mode="noisy"), PCA(1, fit_mode="exact")
        with pytest.raises(NoRoute, match="a condition would rest on a release that rests on a condition"):
            plan(NormClipper(), *stages)

    def test_the_other_routes_of_the_same_stages_are(self):
        planned = plan(NormClipper(), PCA(2), StandardScaler(), PCA(1))
        assert any("would rest on a release" in a.reason for a in planned.alternatives)
        for alternative in planned.alternatives:
            ways = dict(part.rsplit(" ", 1) for part in alternative.route.split(", "))
            forbidden = ways["s1"] == "exact" and ways["s2"] == "noisy" and ways["s3"] == "exact"
            assert ("would rest on a release" in alternative.reason) is forbidden

    def test_a_release_behind_the_last_condition_is_offered(self):
        planned = gated("noisy scaler behind PCA")
        before, behind = before_the_gate(dataclasses.replace(planned, gate=open_gate(planned.gate)), tight())
        assert (len(before), len(behind)) == (0, 1)


class TestRefusal:
    """Whatever failed, by however much: the same words."""

    PIPELINE = "prediction release between conditions"

    @staticmethod
    def refusal(planned: Plan, rows: Rows) -> tuple[type, str]:
        with pytest.raises(PrivacyRefusal) as caught:
            execute(planned, rows, Noise(3))
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
        return type(caught.value), str(caught.value)

    def test_the_words_are_the_same_whichever_condition_fails(self):
        planned = gated(self.PIPELINE)
        gaps, flat, ball = tight().X.copy(), tight().X.copy(), tight().X.copy()
        gaps[:, 0] = np.nan
        flat[:, 2] = 0.1
        ball[:] = np.random.default_rng(1).uniform(-1, 1, ball.shape)
        nothing = np.full_like(ball, np.nan)
        words = {self.refusal(planned, Rows.of(X, tight().y)) for X in (gaps, flat, ball, nothing, np.zeros((5000, 3)))}
        assert len(words) == 1

    @pytest.mark.parametrize("value", [math.nan, -math.inf, "raise", "complex"])
    @pytest.mark.parametrize("which", [0, 1, 2])
    @pytest.mark.repeated("which")
    def test_a_margin_that_cannot_be_measured_is_zero(self, value, which):
        planned = gated(self.PIPELINE)
        usual = self.refusal(planned, Rows.of(np.zeros((5000, 3)), np.zeros(5000)))

        def measure(rows, unit):
            if value == "raise":
                raise ValueError(f"the private number is {rows.X[0, 0]}")
            return 1j if value == "complex" else value

        steps = list(planned.steps)
        at = [i for i, step in enumerate(steps) if step.way.conditions][which]
        condition = dataclasses.replace(steps[at].way.conditions[0], measure=measure)
        assert condition.margin(tight()) == 0.0
        steps[at] = dataclasses.replace(
            steps[at], way=dataclasses.replace(steps[at].way, conditions=(condition, *steps[at].way.conditions[1:]))
        )
        assert self.refusal(dataclasses.replace(planned, steps=tuple(steps)), tight()) == usual

    def test_it_says_what_it_cost_and_what_to_change_but_not_the_margin(self):
        planned = gated("two conditions")
        _, words = self.refusal(planned, Rows.of(np.zeros((5000, 3))))
        assert f"{planned.gate.mu:.3g}" in words
        assert f"{planned.gate.delta:.3g}" in words
        assert "noisy" in words
        assert "s1" in words
        assert "s2" in words

    def test_wide_margins_pass(self):
        for name in GATED:
            outcome = execute(gated(name, n=200_000), tight(200_000), Noise(5))
            assert np.isfinite(outcome.released["m.answer" if GATED[name][1] is None else "m.theta"]).all()

    def test_nothing_is_issued_after_a_refusal(self):
        pipe = Pipeline([("clip", NormClipper()), ("pca", PCA(1, fit_mode="exact")), ("m", GaussianMechanism())])
        with pytest.raises(PrivacyRefusal):
            pipe.fit(np.zeros((5000, 3)))
        assert not hasattr(pipe, "certificate_")
        assert not hasattr(pipe, "release_")


# ---------------- what it costs


# pytest finds a fixture by its name in the test's own module
drawn = clinic.drawn


def conditional(**parameters):
    """Three conditions, and two releases that nothing before the gate needs."""
    steps = [
        ("range", MinMaxScaler(ranges=(-1, 1))),
        ("impute", MeanImputer(max_missing=1500, use_floor=False, fit_mode="exact")),
        ("scale", StandardScaler(fit_mode="exact")),
        ("pca", PCA(1, fit_mode="exact")),
        ("model", LogisticRegression(classes=(0, 1), max_iter=5)),
    ]
    return Pipeline(steps, **{"epsilon": 20.0, "delta": 1e-6, "random_state": 0, "diagnostics": None, **parameters})


@pytest.fixture(scope="module")
def correlated():
    rng = np.random.default_rng(1)
    n = 15000
    X = np.clip((rng.normal(size=(n, 1)) + 0.2 * rng.normal(size=(n, 3))) / 3, -1, 1)
    y = (X[:, 0] > 0).astype(int)
    X[rng.choice(n, 1000), rng.integers(0, 3, 1000)] = np.nan
    return X, y


def spoiled(correlated, how):
    """Data on which one of the conditions fails, or nearly does."""
    X, y = correlated[0].copy(), correlated[1]
    if how == "missing":
        X[: len(X) // 3, 0] = np.nan
    elif how == "just not missing":
        complete = np.flatnonzero(~np.isnan(X).any(axis=1))
        X[complete[: 1498 - (len(X) - len(complete))], 0] = np.nan
    elif how == "observed":
        X[: 2 * len(X) // 3, 1] = np.nan
    elif how == "eigengap":
        X = np.random.default_rng(0).uniform(-1, 1, X.shape)
    return X, y


SPOILED = ["missing", "just not missing", "observed", "eigengap"]
UNCONDITIONAL = {"impute__max_missing": None, "impute__use_floor": True, "impute__fit_mode": "noisy"}


class TestGate:
    def test_plan(self):
        plan = conditional().plan(Domain(n_rows=15000, n_features=3))
        assert [c.name for _, c in plan.conditions] == ["missing", "observed", "eigengap"]
        assert plan.gate.needed_margin() > plan.gate.threshold > 1
        assert "gate: 3 condition(s)" in repr(plan)

    def test_passes_where_all_conditions_hold_by_far(self, correlated, drawn):
        pipe = conditional(random_state=None).fit(*correlated)
        certificate = pipe.certificate_
        assert certificate.status == "UNCONDITIONAL"
        assert certificate["gate"]["noise_scale"] in [draw.noise_scale for draw in drawn]
        assert all(c["tested"] for step in certificate["steps"] for c in step["conditions"])
        assert certificate.verify()
        assert pipe.score(*correlated) > 0.7

    def test_stands_in_front_of_everything(self, correlated, drawn):
        certificate = conditional().fit(*correlated).certificate_
        releases = [release["noise_scale"] for release in certificate["releases"]]
        assert [draw.noise_scale for draw in drawn[:3]] == [certificate["gate"]["noise_scale"], *releases]
        assert {draw.noise_scale for draw in drawn[3:]} == {certificate["mechanism"]["noise_scale"]}
        assert len(drawn) == 3 + 5
        assert drawn[0].value.size == 1
        assert certificate["gate"]["rule"] == "max"

    def test_only_what_shapes_the_tested_rows_comes_before_it_and_then_deltas_add(self, correlated, drawn):
        certificate = conditional().set_params(scale__fit_mode="noisy", **UNCONDITIONAL).fit(*correlated).certificate_
        (both,) = certificate["releases"]  # for imputer and scaler, in two parts
        order = [both["noise_scale"], both["noise_scale"], certificate["gate"]["noise_scale"]]
        assert [draw.noise_scale for draw in drawn[:3]] == order
        assert certificate["gate"]["rule"] == "sum"
        assert certificate["total"]["failure"] == certificate["gate"]["delta"] < 1e-6
        assert certificate.loss.epsilon(1e-6 - certificate["total"]["allowance"]) <= 20.0
        assert certificate.verify()

    @pytest.mark.parametrize("how", SPOILED)
    def test_on_refusal_nothing_else_is_released(self, correlated, drawn, how):
        gate = conditional().plan(Domain(n_rows=15000, n_features=3)).gate
        pipe = conditional()
        with pytest.raises(PrivacyRefusal):
            pipe.fit(*spoiled(correlated, how))
        (draw,) = drawn
        assert draw.noise_scale == gate.noise_scale
        assert draw.value < gate.threshold
        assert fitted_state(pipe) <= {"n_features_in_"}

    def test_the_refusal_does_not_tell_which_condition_failed(self, correlated):
        messages = set()
        for how in SPOILED:
            with pytest.raises(PrivacyRefusal) as refusal:
                conditional().fit(*spoiled(correlated, how))
            messages.add((str(refusal.value), refusal.value.stage, refusal.value.fix))
        assert len(messages) == 1

    @pytest.mark.parametrize("how", SPOILED)
    def test_without_a_gate_the_certificate_is_conditional(self, correlated, drawn, how):
        certificate = conditional(gate=None, random_state=None).fit(*spoiled(correlated, how)).certificate_
        assert certificate.status == "CONDITIONAL"
        assert certificate["gate"] is None
        assert len(certificate["reasons"]) == 3
        assert len(drawn) == 2 + 5
        assert certificate.verify()

    def test_pays_for_itself(self, correlated):
        certificate = conditional().fit(*correlated).certificate_
        parts = [certificate["gate"]["mu"], certificate["mechanism"]["mu"]]
        parts += [release["mu"] for release in certificate["releases"]]
        assert certificate.mu == pytest.approx(math.hypot(*parts), rel=1e-9)
