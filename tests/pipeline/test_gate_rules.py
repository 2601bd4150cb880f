"""The gate in a pipeline: what comes before it, which deltas add, and what a refusal says."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from gates import GATED, Witness, before_the_gate, gated, open_gate, plan, tight

from ppdp import Ledger, Pipeline, PrivacyLoss, PrivacyRefusal
from ppdp.data.rows import Rows
from ppdp.exceptions import NoRoute
from ppdp.mechanisms import GaussianMechanism
from ppdp.pipeline.execute import execute
from ppdp.pipeline.planning.plan import Plan
from ppdp.privacy.noise.sampler import Noise
from ppdp.transformers import PCA, NormClipper, StandardScaler


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
