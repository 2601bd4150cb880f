"""A pipeline behind its gate: what comes before it, what a refusal tells, and what it costs."""

import math

import clinic
import numpy as np
import pytest
from clinic import fitted_state

from ppdp import Domain, Pipeline, PrivacyRefusal
from ppdp.mechanisms import LogisticRegression
from ppdp.transformers import PCA, MeanImputer, MinMaxScaler, StandardScaler

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
