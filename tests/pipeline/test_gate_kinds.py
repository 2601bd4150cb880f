"""Gates of every kind in a pipeline: which one is taken, what it leaves, and what its certificate says."""

from __future__ import annotations

import numpy as np
import pytest
from gates import KINDS, tight

from ppdp import Domain, Pipeline, PrivacyRefusal
from ppdp.data.rows import Rows
from ppdp.exceptions import InvalidParameter
from ppdp.mechanisms import ExponentialMechanism, GaussianMechanism, LaplaceMechanism, LogisticRegression
from ppdp.pipeline.execute import execute
from ppdp.pipeline.planning.plan import Plan
from ppdp.privacy.noise.sampler import Noise
from ppdp.transformers import PCA, NormClipper, StandardScaler

EXACT = ("pca", PCA(1, fit_mode="exact"))
NOISY = ("scale", StandardScaler(fit_mode="noisy"))
COUNT = LaplaceMechanism("count")
every_kind = pytest.mark.parametrize("kind", KINDS)


def pipeline(mechanism, *stages, **parameters) -> Pipeline:
    return Pipeline([("clip", NormClipper()), *(stages or (EXACT,)), ("m", mechanism)], **parameters)


def planned(mechanism, *stages, n=5000, **parameters) -> Plan:
    return pipeline(mechanism, *stages, **parameters).plan(Domain(n_rows=n, n_features=3))


CASES = {
    "Gaussian": (GaussianMechanism(), (EXACT,)),
    "Gaussian, sum": (GaussianMechanism(), (NOISY, EXACT)),
    "pure": (COUNT, (EXACT,)),
    "pure, sum": (COUNT, (NOISY, EXACT)),
}
every_case = pytest.mark.parametrize("case", CASES)


class TestAuto:
    """The public rule: what leaves the mechanism the least noise, among gates that refuse equally often."""

    @pytest.mark.parametrize("mechanism", [GaussianMechanism(), LogisticRegression((0, 1), max_iter=5)])
    @pytest.mark.parametrize("epsilon", [0.1, 3.0])
    @pytest.mark.repeated("epsilon")
    def test_gaussian_mechanisms(self, mechanism, epsilon):
        auto = planned(mechanism, epsilon=epsilon)
        assert auto.gate.kind == "gaussian"
        for kind in KINDS:
            other = planned(mechanism, epsilon=epsilon, gate=kind)
            assert auto.mechanism.noise_scale <= other.mechanism.noise_scale

    @pytest.mark.parametrize(
        "mechanism", [COUNT, LaplaceMechanism(), ExponentialMechanism(candidates=5)], ids=["count", "mean", "median"]
    )
    @pytest.mark.parametrize("stages", [(EXACT,), (NOISY, EXACT)], ids=["max", "sum"])
    @pytest.mark.repeated("stages")
    def test_pure_mechanisms(self, mechanism, stages):
        auto = planned(mechanism, *stages)
        scales = {
            k: planned(mechanism, *stages, gate=k).mechanism.noise_scale for k in ("gaussian", "discrete-laplace")
        }
        assert auto.gate.kind == min(scales, key=scales.get)
        assert auto.mechanism.noise_scale == min(scales.values())

    def test_a_count_has_a_pure_gate(self):
        """Nothing is drawn on delta but the gate's own: epsilons of gate and count add up to epsilon."""
        auto = planned(COUNT)
        assert auto.gate.kind == "discrete-laplace"
        assert auto.loss.epsilon(auto.delta - auto.allowance) <= 1.0
        assert sum(part.pure for part in auto.loss.parts) == pytest.approx(1.0, rel=2e-3)
        assert auto.mechanism.noise_scale < 0.93 * planned(COUNT, gate="gaussian").mechanism.noise_scale

    def test_gaussian_pipelines_compose_no_distributions(self, monkeypatch):
        """They would take 30 ms each, and there may be many routes."""
        monkeypatch.setattr("ppdp.privacy.loss.parts_epsilon", None)
        assert planned(GaussianMechanism(), ("scale", StandardScaler()), EXACT).gate.kind == "gaussian"
        with pytest.raises(TypeError):
            planned(GaussianMechanism(), gate="laplace")

    @pytest.mark.parametrize("gate", ["uniform", "Laplace", 1.0, True, ("gaussian",)])
    def test_no_other_kind(self, gate):
        with pytest.raises(InvalidParameter, match="gate must be one of"):
            planned(COUNT, gate=gate)


@every_kind
@every_case
class TestEveryKind:
    @pytest.mark.repeated("kind")
    def test_the_total_is_within_the_budget_and_uses_it(self, kind, case):
        mechanism, stages = CASES[case]
        for epsilon, delta in ((1.0, 1e-6), (3.0, 1e-5)):
            p = planned(mechanism, *stages, epsilon=epsilon, delta=delta, gate=kind)
            spent = p.loss.epsilon(p.delta - p.allowance)
            assert 0.99 * epsilon <= spent <= epsilon * (1 + 1e-9)
            assert p.gate.adding is ("sum" in case)
            assert (p.loss.failure, p.loss.gate) == ((p.gate.delta, 0.0) if p.gate.adding else (0.0, p.gate.delta))

    @pytest.mark.repeated("kind")
    def test_kinds_need_the_same_margin(self, kind, case):
        mechanism, stages = CASES[case]
        needed = planned(mechanism, *stages, gate="gaussian").gate.needed_margin()
        own = planned(mechanism, *stages, gate=kind).gate
        assert needed - 1 < own.needed_margin() <= needed
        assert own.refusal_probability(own.needed_margin()) == pytest.approx(0.01, rel=0.15)
        assert own.refusal_probability(own.needed_margin() / 2) > 0.85

    @pytest.mark.repeated("kind")
    def test_the_certificate_verifies_and_names_the_kind(self, kind, case):
        mechanism, stages = CASES[case]
        one = pipeline(mechanism, *stages, epsilon=3.0, gate=kind).fit(tight().X).certificate_
        assert one.verify(), one.verify()
        gate = one["gate"]
        assert gate["kind"] == kind
        assert (gate["mu"] is None) is (kind != "gaussian")
        words = {"gaussian": "mu", "laplace": "laplace noise", "discrete-laplace": "discrete-laplace noise"}[kind]
        assert f"passed; {words}" in one.to_text(full=True)
        assert one._repr_html_()


@every_kind
def test_a_refusal_says_the_same_whatever_failed(kind):
    """Flat data, or no direction that leads: one message, and it has no margin in it."""
    p = planned(COUNT, gate=kind)
    ball = np.random.default_rng(1).uniform(-0.5, 0.5, (5000, 3))
    said = set()
    for X in (np.zeros((5000, 3)), ball):
        with pytest.raises(PrivacyRefusal) as caught:
            execute(p, Rows.of(X), Noise(3))
        assert caught.value.__cause__ is None
        said.add(str(caught.value))
    assert len(said) == 1
    assert ("mu = " if kind == "gaussian" else "epsilon = ") in said.pop()
