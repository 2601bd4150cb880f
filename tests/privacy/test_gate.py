"""The gate: what passes it, what it costs, and what it may claim together with everything that is released."""

from __future__ import annotations

import dataclasses
import math
import sys

import mpmath as mp
import numpy as np
import pytest
from effort import rounds
from gates import BUDGETS, KINDS, gate_of, gated_delta, gates, passing, plan
from scipy.special import ndtri
from scipy.stats import binomtest, chisquare

from ppdp import PrivacyLoss, PrivacyRefusal
from ppdp.exceptions import ImpossibleBudget, InvalidParameter
from ppdp.pipeline.planning.budget import gate_kinds_to_compare
from ppdp.privacy.gate import Gate, gate_noise
from ppdp.privacy.gaussian import gaussian_delta, gaussian_epsilon, gaussian_mu
from ppdp.privacy.losses import DiscreteLaplace, FixedSizeSamples, HiddenIterate, PoissonSamples
from ppdp.privacy.noise.sampler import Noise
from ppdp.transformers import PCA, MeanImputer, MinMaxScaler, NormClipper

every_gate = pytest.mark.parametrize("gate", gates(), ids=lambda gate: f"{gate.kind} {gate.delta:g}")
every_kind = pytest.mark.parametrize("kind", KINDS)


class TestThreshold:
    @every_gate
    def test_a_margin_of_at_most_one_passes_with_probability_at_most_delta(self, gate):
        for margin in (0.0, 0.25, 0.999, 1.0):
            assert passing(gate, margin) <= gate.delta

    @every_gate
    def test_no_threshold_could_be_much_lower(self, gate):
        """Whole noise: not one row lower."""
        if gate.kind == "discrete-laplace":
            assert passing(dataclasses.replace(gate, threshold=gate.threshold - 1), 1.0) > gate.delta
        else:
            assert passing(gate, 1.0) >= 0.9999 * gate.delta

    @every_kind
    def test_tiny_noise_and_extreme_deltas(self, kind):
        for scale in (1e-3, 1.0, 1e6):
            for delta in (1e-15, 1e-6, 0.4):
                gate = Gate.of(kind, scale, delta, adding=False, n_rows=1000)
                assert passing(gate, 1.0) <= delta

    @every_kind
    @pytest.mark.parametrize("margin", [0.0, 1.0, 5.0, 12.0])
    @pytest.mark.repeated("kind")
    def test_the_gate_does_what_the_formula_says(self, kind, margin):
        """Seeded runs at a delta that can be counted."""
        gate = dataclasses.replace(Gate.of(kind, 2.0, 0.05, adding=False, n_rows=100))
        noise, passed, runs = Noise(17), 0, rounds(1500)
        for _ in range(runs):
            try:
                gate.test(margin, noise, "")
                passed += 1
            except PrivacyRefusal:
                pass
        assert binomtest(passed, runs, float(passing(gate, margin))).pvalue > 1e-6
        assert binomtest(passed, runs, 1 - gate.refusal_probability(margin)).pvalue > 1e-6

    @every_kind
    def test_the_noise_that_is_drawn_is_the_noise_that_is_declared(self, kind):
        law, noise = gate_noise(kind, 3.0, 100), Noise(5)
        drawn = np.array([law.add_noise(noise, 40.0) for _ in range(rounds(1500))]) - 40.0
        cuts = np.array([-9.5, -5.5, -3.5, -1.5, -0.5, 0.5, 1.5, 3.5, 5.5, 9.5])
        shares = np.diff([0.0, *(law.cdf(float(cut)) for cut in cuts), 1.0])
        counted = np.histogram(drawn, [-np.inf, *cuts, np.inf])[0]
        assert chisquare(counted, shares * len(drawn)).pvalue > 1e-6
        assert (kind == "discrete-laplace") is bool((drawn == np.round(drawn)).all())

    @every_kind
    @pytest.mark.parametrize("margin", [math.nan, -math.inf, -1.0])
    def test_what_is_no_margin_is_a_margin_of_zero(self, kind, margin):
        gate = Gate.of(kind, 0.01, 1e-9, adding=False, n_rows=100)
        assert gate.refusal_probability(margin) == gate.refusal_probability(0.0)
        for seed in range(10):
            with pytest.raises(PrivacyRefusal):
                gate.test(margin, Noise(seed), "")

    @every_kind
    def test_a_margin_beyond_the_number_of_rows_is_that_number(self, kind):
        gate = Gate.of(kind, 1.0, 1e-6, adding=False, n_rows=100)
        for margin in (1e300, math.inf):
            gate.test(margin, Noise(0), "")
            assert gate.refusal_probability(margin) == gate.refusal_probability(101.0) < 1e-9

    @every_kind
    def test_a_margin_that_overflows_is_as_near_to_its_neighbour_as_it_was(self, kind):
        """Two margins that differ by 1, one of which no float holds: taken for 0 it would be n away from the other."""
        gate = Gate.of(kind, 10.0, 1e-6, adding=False, n_rows=100)
        assert gate._tested(math.inf) == gate._tested(sys.float_info.max) == 100

    def test_there_is_no_other_noise(self):
        with pytest.raises(InvalidParameter, match="no 'uniform' noise"):
            gate_noise("uniform", 1.0, 100)

    def test_whole_margins_change_by_at_most_one_however_they_are_rounded(self):
        """Margins that differ by the most that a computed one may: the next whole number, not the one after it."""
        for n in (100, 10**6, 10**9):
            gate = Gate.of("discrete-laplace", 10.0, 1e-6, adding=False, n_rows=n)
            for whole in (0, 1, 2, 50, n - 2):
                for low in (whole, math.nextafter(whole, n), whole + 1e-9, whole * (1 + 1e-6), whole + 0.5):
                    assert gate._tested(low + 1 + 1e-6) - gate._tested(low) in (0.0, 1.0)
            assert gate._tested(0.0) == 0.0
            assert gate._tested(1 + 1e-6) == 1.0


class TestCost:
    @every_gate
    def test_costs_what_its_noise_costs(self, gate):
        if gate.kind == "gaussian":
            assert 1 / gate.noise_scale < gate.mu < (1 + 1e-5) / gate.noise_scale
        else:
            assert gate.loss.epsilon(0.0) == pytest.approx(1 / gate.noise_scale, rel=1e-6)
            assert gate.loss.epsilon(0.0) >= 1 / gate.noise_scale

    @pytest.mark.parametrize(("epsilon", "delta", "n"), BUDGETS)
    def test_of_budget_never_exceeds_it(self, epsilon, delta, n):
        for share in (0.01, 0.05, 0.5):
            mu = math.sqrt(share) * gaussian_mu(epsilon, delta)
            assert mu - 2e-7 < Gate.of_budget(mu, delta, adding=False, n_rows=n).mu <= mu

    def test_a_budget_below_the_lattice_is_refused(self):
        with pytest.raises(ImpossibleBudget):
            Gate.of_budget(1e-9, 1e-6, adding=False, n_rows=100)

    @every_kind
    def test_a_margin_that_no_gate_can_do_with_is_refused(self, kind):
        with pytest.raises(ImpossibleBudget):
            Gate.of_margin(kind, 1.0, 1e-6, adding=False, n_rows=100)

    @every_kind
    @pytest.mark.parametrize(("epsilon", "delta", "n"), [b for b in BUDGETS if b[1] >= 1e-6])
    @pytest.mark.repeated("kind")
    def test_gate_and_mechanism_together_by_enumeration(self, kind, epsilon, delta, n):
        """Margins that differ by at most 1: at most the larger of delta_t and the composed losses."""
        total = gaussian_mu(epsilon, delta)
        gate, mechanism = gate_of(kind, epsilon, delta, n), math.sqrt(0.95) * total
        claimed = max(gate.delta, (gate.loss + PrivacyLoss(mechanism)).delta(epsilon))
        worst = 0.0
        for middle in np.linspace(0, gate.needed_margin(0.999999), 60):
            for here, there in ((middle, middle + 1), (middle + 1, middle), (middle, middle), (middle, middle + 0.5)):
                worst = max(worst, gated_delta(gate, mechanism, here, there, epsilon))
        assert worst <= claimed * (1 + 1e-9)
        assert worst >= 0.5 * delta  # the enumeration reaches what it looks for

    @every_kind
    def test_the_bit_alone_by_enumeration(self, kind):
        gate = dataclasses.replace(gate_of(kind, 1.0, 1e-6, 10_000), threshold=102.0)
        for epsilon in (0.0, 0.05, 0.12):
            worst = 0.0
            for margin in np.arange(95, 110, 0.25):
                for here, there in ((margin, margin + 1), (margin + 1, margin)):
                    p, q = float(passing(gate, here)), float(passing(gate, there))
                    worst = max(worst, p - math.exp(epsilon) * q, (1 - p) - math.exp(epsilon) * (1 - q))
            assert worst <= gate.loss.delta(epsilon) * (1 + 1e-6)
            assert epsilon or worst >= 0.95 * gate.loss.delta(0.0)  # at the threshold the bit tells all

    @every_gate
    def test_a_pair_outside_the_class_by_enumeration(self, gate):
        """Where a condition fails on one side, both margins are at most 1, and behind the gate nothing is promised."""
        for here, there in ((0.0, 1.0), (1.0, 0.0), (0.0, 0.0), (0.3, 0.9)):
            p, q = passing(gate, here), passing(gate, there)
            revealed = p + max(mp.mpf(0), (1 - p) - mp.exp(gate.loss.epsilon(gate.delta)) * (1 - q))
            assert revealed <= gate.delta


class TestNeededMargin:
    def test_the_known_figure(self):
        """5 % of mu² at (1, 1e-6): about 135 rows."""
        assert gate_of("gaussian", 1.0, 1e-6, 100_000).needed_margin() == pytest.approx(135, abs=0.5)

    @every_gate
    def test_passes_as_often_as_it_says(self, gate):
        for share in (0.01, 0.5, 0.99, 0.9999):
            needed = gate.needed_margin(share)
            assert 1 - gate.refusal_probability(needed) == pytest.approx(share, rel=1e-4) or kept(gate, share, needed)
            tested = gate._tested(needed)
            if tested < gate.n_rows:
                assert float(passing(gate, tested)) == pytest.approx(1 - gate.refusal_probability(needed), rel=1e-4)

    @every_gate
    def test_a_smaller_margin_is_refused_more_often(self, gate):
        refused = [gate.refusal_probability(margin) for margin in np.linspace(0, 2 * gate.threshold, 50)]
        assert refused == sorted(refused, reverse=True)
        assert refused[0] >= 1 - gate.delta

    def test_kinds_of_the_same_margin(self):
        gaussian = gate_of("gaussian", 1.0, 1e-6, 10_000)
        for kind in ("laplace", "discrete-laplace"):
            other = gate_of(kind, 1.0, 1e-6, 10_000)
            assert gaussian.needed_margin() - 1 < other.needed_margin() <= gaussian.needed_margin()

    def test_a_plan_prints_it_and_warns_when_it_is_hopeless(self):
        few, many = (plan(NormClipper(), PCA(1, fit_mode="exact"), n=n) for n in (150, 5000))
        assert "gaussian noise, passes in 99 % of cases from a margin of 135 rows" in repr(many)
        assert not any("refusal" in warning for warning in many.warnings)
        assert any("refusal" in warning or "no data could pass" in warning for warning in few.warnings)

    def test_no_plan_chooses_a_gate_that_no_data_could_pass_without_saying_so(self):
        """At most 3 rows with gaps: even without any the margin is 4 rows, and the gate needs 135."""
        planned = plan(MinMaxScaler((-1, 1)), MeanImputer(max_missing=3), n=1000)
        assert planned.gate is None or any("refusal" in warning for warning in planned.warnings)


def kept(gate: Gate, share: float, needed: float) -> bool:
    """Whole noise passes at least as often as asked, and one row less does not."""
    lower = 1 - gate.refusal_probability(needed - 1.001)
    return gate.kind == "discrete-laplace" and lower < share <= 1 - gate.refusal_probability(needed) + 1e-12


ONE_ROW = {"replaced": 1, "toggled": 0, "moved": 0, "radius": 0.0, "total": 0.0, "bound": 1.0, "lipschitz": 1.0}
SAMPLED = (
    PoissonSamples(**ONE_ROW, rate=0.01, noise_scale=1.2, count=200),
    FixedSizeSamples(**ONE_ROW, n_rows=10_000, batch_size=100, noise_scale=4.0, count=100),
    HiddenIterate(mass=2.0, total=0.0, moved=0, n_rows=10_000, bound=1.0, lipschitz=1.0, noise_scale=2.0),
)


class TestKinds:
    """What each kind costs for the same refusals."""

    M = gaussian_mu(1.0, 1e-6)

    @staticmethod
    def laplace(total: float) -> tuple[float, float]:
        """Total epsilon, and needed margin, of a Laplace gate of this epsilon beside M."""
        gate = Gate.of("laplace", 1 / total, 1e-6, adding=False, n_rows=10**6)
        return (gate.loss + PrivacyLoss(TestKinds.M)).epsilon(1e-6), gate.needed_margin()

    @pytest.mark.parametrize(
        ("epsilon", "total", "needed", "gaussian"),
        [
            (0.02, 1.0037, 853, 1.0007),
            (0.05, 1.0210, 342, 1.0041),
            (0.1, 1.0653, 171, 1.0165),
            (0.2, 1.1645, 86.2, 1.0647),
            (0.5, 1.4645, 35.1, 1.362),
            (1.0, 1.9645, 18.0, 2.147),
        ],
    )
    def test_the_same_margin_beside_a_mechanism_of_epsilon_one(self, epsilon, total, needed, gaussian):
        """Gaussian noise is cheaper, but for gates that cost as much as the mechanism."""
        found, margin = self.laplace(epsilon)
        assert found == pytest.approx(total, abs=2e-4)
        assert margin == pytest.approx(needed, abs=0.5)
        mu = (ndtri(0.99) - ndtri(1e-6)) / (margin - 1)
        assert gaussian_epsilon(math.hypot(self.M, mu), 1e-6) == pytest.approx(gaussian, abs=6e-4)

    def test_at_the_same_total_a_gaussian_gate_needs_half_the_rows(self):
        total, needed = self.laplace(0.1)
        mu = math.sqrt(gaussian_mu(total, 1e-6) ** 2 - self.M**2)
        gate = Gate.of_budget(mu, 1e-6, adding=False, n_rows=10**6)
        assert (math.floor(needed), math.ceil(gate.needed_margin())) == (171, 86)

    @pytest.mark.parametrize("delta", [1e-8, 1e-6, 1e-4])
    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 20.0])
    @pytest.mark.parametrize("share", [0.01, 0.05, 0.2])
    @pytest.mark.repeated("delta")
    def test_in_front_of_gaussian_mechanisms_gaussian_noise_costs_least(self, epsilon, delta, share):
        """At every budget and usual share: so a plan for Gaussian mechanisms need not compare."""
        mu = gaussian_mu(epsilon, delta)
        for kind in ("laplace", "discrete-laplace"):
            other = gate_of(kind, epsilon, delta, 10_000, share)
            together = other.loss + PrivacyLoss(mu * math.sqrt(1 - share))
            assert together.epsilon(delta, interval=2.0**-11) > epsilon

    @pytest.mark.parametrize("part", SAMPLED, ids=lambda part: part.kind)
    def test_so_it_does_in_front_of_sampled_and_hidden_training(self, part):
        alone = PrivacyLoss(parts=(part,))
        epsilon = alone.epsilon(1e-6)
        totals = {kind: (gate_of(kind, epsilon, 1e-6, 10_000).loss + alone).epsilon(1e-6) for kind in KINDS}
        assert epsilon < totals["gaussian"] < min(totals["laplace"], totals["discrete-laplace"])
        assert gate_kinds_to_compare(alone) == ()

    def test_in_front_of_pure_mechanisms_laplace_noise_does(self):
        pure = PrivacyLoss(parts=(DiscreteLaplace(shift=1, scale=1.0),))
        totals = {kind: (gate_of(kind, 1.0, 1e-6, 10_000).loss + pure).epsilon(1e-6) for kind in KINDS}
        assert totals["laplace"] < totals["discrete-laplace"] < 0.95 * totals["gaussian"]
        assert gate_kinds_to_compare(pure) == ("discrete-laplace",)


def test_the_larger_delta_is_false_where_a_condition_looks_at_a_release():
    """Release N(m0), then stand on an excluded pair or go on, whichever tells more: 1.778e-6 for a claim of 1e-6."""
    m0 = m1 = 0.3
    dt, epsilon = 1e-6, 1.9
    v = np.linspace(-10, 12, 200_001)
    left = epsilon - (m0 * v - m0**2 / 2)
    good = np.array([PrivacyLoss(m1).delta(e) if e > -3 else 1 - math.exp(e) for e in left[::50]])
    bad = dt + np.maximum(0, 1 - dt - np.exp(left[::50]))
    density = np.exp(-((v[::50] - m0) ** 2) / 2) / math.sqrt(2 * math.pi)
    truth = float((density * np.maximum(good, bad)).sum() * (v[50] - v[0]))
    assert truth >= 1.777e-6 > max(dt, gaussian_delta(math.hypot(m0, m1), epsilon))
    assert 1.778e-6 <= PrivacyLoss(math.hypot(m0, m1), dt).delta(epsilon) <= 1.83e-6


@pytest.mark.parametrize("kind", KINDS)
def test_gates_stand_in_front_of_as_many_rows_as_there_may_be(kind):
    n, delta = 2**40, 1e-14
    usual = Gate.of_budget(0.05, delta, adding=False, n_rows=n)
    assert 0.05 * (1 - 1e-6) < usual.mu <= 0.05
    gate = Gate.of_margin(kind, usual.needed_margin(), delta, adding=False, n_rows=n)
    assert gate.needed_margin() < 1.001 * usual.needed_margin() < 300
    assert 1 - gate.refusal_probability(1.0) <= 1.01 * delta
    gate.test(float(n), Noise(0), "")
    with pytest.raises(PrivacyRefusal):
        gate.test(1.0, Noise(0), "")
