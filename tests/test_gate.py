"""The gate: one test for all conditions, and what it may claim together with everything that is released."""

from __future__ import annotations

import dataclasses
import math

import mpmath as mp
import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import binomtest, norm

from ppdp import Domain, Ledger, Pipeline, PrivacyLoss, PrivacyRefusal
from ppdp.exceptions import ImpossibleBudget, NoRoute
from ppdp.execute import execute
from ppdp.gate import Gate, gate_loss, gate_threshold
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.planning.plan import Plan
from ppdp.privacy.gaussian import gaussian_delta, gaussian_mu
from ppdp.privacy.noise import Noise, lattice_exponent
from ppdp.rows import Rows
from ppdp.transformers import PCA, MeanImputer, MinMaxScaler, NormClipper, StandardScaler

BUDGETS = [(1.0, 1e-6, 10_000), (0.1, 1e-9, 500_000), (5.0, 1e-4, 1000), (20.0, 1e-3, 300)]


def passing(gate: Gate, margin: float) -> mp.mpf:
    """Exact probability with which a margin passes, the lattice included.

    The release is ``(2 (r + floor(2^M Z)) + 1) step / 2`` with r the rounded margin.
    """
    exponent = lattice_exponent(float(gate.n_rows), gate.noise_scale)
    step = math.ldexp(gate.noise_scale, -exponent)
    first = math.floor(gate.threshold / step - 0.5)
    while not (2 * first + 1) * (0.5 * step) > gate.threshold:
        first += 1
    with mp.workdps(40):
        return +(mp.erfc(mp.ldexp(first - round(margin / step), -exponent) / mp.sqrt(2)) / 2)


def gates() -> list[Gate]:
    return [
        Gate.of_budget(math.sqrt(0.05) * gaussian_mu(epsilon, delta), delta, adding=False, n_rows=n)
        for epsilon, delta, n in BUDGETS
    ]


def hockey_stick(mu: float, log_ratio: float) -> float:
    if mu == 0:
        return max(0.0, 1 - math.exp(log_ratio))
    return float(norm.cdf(mu / 2 - log_ratio / mu) - math.exp(log_ratio) * norm.cdf(-mu / 2 - log_ratio / mu))


def gated_delta(gate: Gate, mu: float, here: float, there: float, epsilon: float) -> float:
    """delta(epsilon) of "gate, and behind it a mu-release" on two datasets with these margins, by enumeration."""
    p, q = float(passing(gate, here)), float(passing(gate, there))
    refused = max(0.0, (1 - p) - math.exp(epsilon) * (1 - q))
    if p == 0:
        return refused
    return refused + (p if q == 0 else p * hockey_stick(mu, epsilon + math.log(q / p)))


class TestThreshold:
    @pytest.mark.parametrize("gate", gates())
    def test_a_margin_of_at_most_one_passes_with_probability_at_most_delta(self, gate):
        for margin in (0.0, 0.25, 0.999, 1.0):
            assert passing(gate, margin) <= gate.delta

    @pytest.mark.parametrize("gate", gates())
    def test_no_threshold_could_be_much_lower(self, gate):
        assert passing(gate, 1.0) >= 0.9999 * gate.delta
        assert gate.threshold == pytest.approx(1 - gate.noise_scale * ndtri(gate.delta), rel=1e-6)

    def test_tiny_noise_and_extreme_deltas(self):
        for scale in (1e-3, 1.0, 1e6):
            for delta in (1e-15, 1e-6, 0.4):
                gate = Gate(scale, delta, gate_threshold(scale, delta), False, 1000)
                assert passing(gate, 1.0) <= delta

    def test_the_gate_does_what_the_formula_says(self):
        """Seeded runs at a delta that can be counted."""
        gate = Gate.of_budget(0.5, 0.05, adding=False, n_rows=100)
        for margin in (0.0, 1.0, 5.0):
            noise, passed, runs = Noise(17), 0, 6000
            for _ in range(runs):
                try:
                    gate.test(margin, noise, "")
                    passed += 1
                except PrivacyRefusal:
                    pass
            assert binomtest(passed, runs, float(passing(gate, margin))).pvalue > 1e-6

    @pytest.mark.parametrize("margin", [math.nan, -math.inf, -1.0, math.inf])
    def test_what_is_no_margin_is_a_margin_of_zero(self, margin):
        gate = Gate.of_budget(100.0, 1e-9, adding=False, n_rows=100)
        for seed in range(20):
            with pytest.raises(PrivacyRefusal):
                gate.test(margin, Noise(seed), "")

    def test_a_margin_beyond_the_number_of_rows_is_that_number(self):
        gate = Gate.of_budget(1.0, 1e-6, adding=False, n_rows=100)
        gate.test(1e300, Noise(0), "")


class TestCost:
    @pytest.mark.parametrize("gate", gates())
    def test_costs_at_most_its_budget(self, gate):
        budget = 1 / gate.noise_scale
        assert 1 / gate.noise_scale < gate.mu < budget * (1 + 1e-5)
        assert gate.mu == gate_loss(gate.noise_scale, gate.n_rows)

    @pytest.mark.parametrize(("epsilon", "delta", "n"), BUDGETS)
    def test_of_budget_never_exceeds_it(self, epsilon, delta, n):
        for share in (0.01, 0.05, 0.5):
            mu = math.sqrt(share) * gaussian_mu(epsilon, delta)
            assert mu - 2e-7 < Gate.of_budget(mu, delta, adding=False, n_rows=n).mu <= mu

    def test_a_budget_below_the_lattice_is_refused(self):
        with pytest.raises(ImpossibleBudget):
            Gate.of_budget(1e-9, 1e-6, adding=False, n_rows=100)

    @pytest.mark.parametrize(("epsilon", "delta", "n"), BUDGETS)
    def test_gate_and_mechanism_together_by_enumeration(self, epsilon, delta, n):
        """Margins that differ by at most 1: at most the larger of delta_t and the composed Gaussian."""
        total = gaussian_mu(epsilon, delta)
        gate = Gate.of_budget(math.sqrt(0.05) * total, delta, adding=False, n_rows=n)
        mechanism = math.sqrt(0.95) * total
        composed = gaussian_delta(math.hypot(gate.mu, mechanism), epsilon)
        worst = 0.0
        for middle in np.linspace(0, gate.needed_margin(0.999999), 60):
            for here, there in ((middle, middle + 1), (middle + 1, middle), (middle, middle), (middle, middle + 0.5)):
                worst = max(worst, gated_delta(gate, mechanism, here, there, epsilon))
        assert worst <= max(delta, composed) * (1 + 1e-9)
        assert worst <= delta * (1 + 1e-9)
        assert worst >= 0.5 * delta  # the enumeration reaches what it looks for

    @pytest.mark.parametrize(("epsilon", "delta", "n"), BUDGETS)
    def test_a_pair_outside_the_class_by_enumeration(self, epsilon, delta, n):
        """Where a condition fails on one side, both margins are at most 1, and behind the gate nothing is promised."""
        gate = Gate.of_budget(math.sqrt(0.05) * gaussian_mu(epsilon, delta), delta, adding=False, n_rows=n)
        for here, there in ((0.0, 1.0), (1.0, 0.0), (0.0, 0.0), (0.3, 0.9)):
            p, q = passing(gate, here), passing(gate, there)
            revealed = p + max(mp.mpf(0), (1 - p) - mp.exp(epsilon) * (1 - q))
            assert revealed <= delta


class TestNeededMargin:
    def test_the_known_figure(self):
        """5 % of mu² at (1, 1e-6): about 135 rows."""
        gate = Gate.of_budget(math.sqrt(0.05) * gaussian_mu(1.0, 1e-6), 1e-6, adding=False, n_rows=100_000)
        assert gate.needed_margin() == pytest.approx(135, abs=0.5)

    @pytest.mark.parametrize("gate", gates())
    def test_passes_as_often_as_it_says(self, gate):
        for share in (0.01, 0.5, 0.99, 0.9999):
            assert float(passing(gate, gate.needed_margin(share))) == pytest.approx(share, rel=1e-4)

    def test_a_plan_prints_it_and_warns_when_it_is_hopeless(self):
        few, many = (plan(NormClipper(), PCA(1, statistics="exact"), n=n) for n in (150, 5000))
        assert "135 rows" in repr(many)
        assert not any("refusal" in warning for warning in many.warnings)
        assert any("refusal" in warning or "no data could pass" in warning for warning in few.warnings)

    def test_no_plan_chooses_a_gate_that_no_data_could_pass_without_saying_so(self):
        """At most 3 rows with gaps: even without any the margin is 4 rows, and the gate needs 135."""
        planned = plan(MinMaxScaler((-1, 1)), MeanImputer(max_missing=3), n=1000)
        assert planned.gate is None or any("refusal" in warning for warning in planned.warnings)


def plan(*stages, mechanism=None, n=5000, d=3, domain=None, **parameters) -> Plan:
    steps = [(f"s{i}", stage) for i, stage in enumerate(stages)] + [("m", mechanism or GaussianMechanism())]
    return Pipeline(steps, **parameters).plan(domain or Domain(n_rows=n, n_features=d))


def classifier() -> LogisticRegression:
    return LogisticRegression(classes=(0, 1), max_iter=5)


class Witness(Noise):
    """Noise that remembers how many numbers left, in which order."""

    def __init__(self) -> None:
        super().__init__(0)
        self.sizes: list[int] = []

    def release(self, value, noise_scale, bound):
        self.sizes.append(np.size(value))
        return super().release(value, noise_scale, bound)


def tight(n: int = 5000, d: int = 3) -> Rows:
    """Rows with every condition fulfilled by a wide margin."""
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], (n, 1)) * np.array([0.9] + [0.25] * (d - 1)) + rng.normal(scale=0.01, size=(n, d))
    return Rows.of(X, rng.integers(2, size=n))


def before_the_gate(plan_: Plan, rows: Rows) -> tuple[list[float], list[float]]:
    """The mu of what left before and behind the gate, from an execution."""
    witness = Witness()
    execute(plan_, rows, witness)
    from ppdp.release_points import STATISTICS

    sizes = {STATISTICS[r.statistic].size(plan_.steps[r.at].domain): r.mu for r in plan_.releases}
    assert len(sizes) == len(plan_.releases)  # told apart by their size
    assert 1 not in sizes
    at = witness.sizes.index(1)
    return [sizes[s] for s in witness.sizes[:at]], [sizes[s] for s in witness.sizes[at + 1 :] if s in sizes]


GATED = {
    "PCA on clipped rows": (lambda: (NormClipper(), PCA(1, statistics="exact")), None, "max"),
    "PCA behind a noisy scaler": (
        lambda: (NormClipper(), StandardScaler(statistics="noisy"), PCA(1, statistics="exact")),
        None,
        "sum",
    ),
    "noisy scaler behind PCA": (
        lambda: (NormClipper(), PCA(1, statistics="exact"), StandardScaler(statistics="noisy")),
        None,
        "max",
    ),
    "two conditions": (
        lambda: (
            NormClipper(),
            PCA(1, statistics="exact"),
            StandardScaler(floor=False, statistics="exact", min_std=0.01),
        ),
        None,
        "max",
    ),
    "prediction release at the condition": (
        lambda: (MinMaxScaler((-1, 1)), MeanImputer(max_missing=0.2, statistics="exact")),
        classifier,
        None,
    ),
    "prediction release before the condition": (
        lambda: (NormClipper(), StandardScaler(statistics="exact", min_std=0.5), PCA(1, statistics="exact")),
        classifier,
        None,
    ),
    "prediction release between conditions": (
        lambda: (
            MinMaxScaler((-1, 1)),
            MeanImputer(max_missing=500, statistics="exact"),
            StandardScaler(floor=False, statistics="exact", min_std=0.1),
            PCA(1, statistics="exact"),
        ),
        classifier,
        None,
    ),
}


def gated(name: str, **parameters) -> Plan:
    stages, mechanism, _ = GATED[name]
    return plan(*stages(), mechanism=mechanism and mechanism(), **parameters)


class TestRule:
    @pytest.mark.parametrize("name", [name for name, case in GATED.items() if case[2]])
    def test_deltas_add_only_where_a_condition_looks_at_what_a_release_has_shaped(self, name):
        assert gated(name).gate.adding is (GATED[name][2] == "sum")

    @pytest.mark.parametrize("name", GATED)
    @pytest.mark.parametrize(
        ("epsilon", "delta", "budget"),
        [(1.0, 1e-6, None), (3.0, 1e-5, {"release": 0.4}), (0.02, 1e-4, {"release": 0.4})],
    )
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
        assert planned.ungated is False

    def test_without_a_gate_conditions_are_assumed(self):
        planned = gated("PCA on clipped rows", gate=None)
        assert planned.gate is None
        assert planned.ungated is True


def open_gate(gate: Gate) -> Gate:
    """A gate that always passes, to see what happens behind it."""
    return dataclasses.replace(gate, threshold=-math.inf)


class TestOrder:
    def test_a_condition_on_a_release_that_rests_on_a_condition_is_not_offered(self):
        stages = PCA(2, statistics="exact"), StandardScaler(statistics="noisy"), PCA(1, statistics="exact")
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

    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "raise", "complex"])
    @pytest.mark.parametrize("which", [0, 1, 2])
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
        pipe = Pipeline([("clip", NormClipper()), ("pca", PCA(1, statistics="exact")), ("m", GaussianMechanism())])
        with pytest.raises(PrivacyRefusal):
            pipe.fit(np.zeros((5000, 3)))
        assert not hasattr(pipe, "certificate_")
        assert not hasattr(pipe, "release_")
