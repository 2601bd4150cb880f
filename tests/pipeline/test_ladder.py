"""A ladder: several public thresholds of one noisy margin, and what it may claim."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from gates import hockey_stick
from ladders import GAPS, on_a_ladder, rows
from scipy.special import ndtr

from ppdp import Domain, Ladder, Ledger, PrivacyLoss, PrivacyRefusal, make_pipeline
from ppdp.exceptions import InvalidParameter, NoRoute, UnsupportedOrder
from ppdp.mechanisms import GaussianMechanism, LaplaceMechanism, LogisticRegression
from ppdp.pipeline.execute import execute
from ppdp.privacy.gate import Gate, certain_share
from ppdp.privacy.gaussian import gaussian_delta
from ppdp.privacy.noise.sampler import Noise
from ppdp.transformers import PCA, MeanImputer, MinMaxScaler, NormClipper, StandardScaler


def delta_of_a_ladder(gate: Gate, mu: float, here: float, there: float, epsilon: float) -> float:
    """Exact delta(epsilon) of "the rung, and behind it a mu-release, or everything where one of the two fails it"."""
    cuts = [gate.threshold + further for further in gate.rungs]
    total = 0.0
    above_here = above_there = 0.0
    for cut, further in zip(cuts, gate.rungs):
        p, q = (float(ndtr((margin - cut) / gate.noise_scale)) for margin in (here, there))
        p, q, above_here, above_there = p - above_here, q - above_there, p, q
        if min(here, there) <= further:
            total += max(p, 0.0)
        elif p > 0:
            total += p if q <= 0 else p * hockey_stick(mu, epsilon + math.log(q / p))
    return total + max(0.0, (1 - above_here) - math.exp(epsilon) * (1 - above_there))


class TestTheorem:
    GATE = Gate.of("gaussian", 20.0, 1e-6, adding=True, n_rows=10**6, rungs=(1000, *range(990, 800, -4), 0))

    def claimed(self, mu: float) -> PrivacyLoss:
        together = math.hypot(mu, self.GATE.mu)
        return PrivacyLoss(together, self.GATE.delta / certain_share(together))

    def test_the_larger_delta_is_false(self):
        """A pair that fails the first rung and keeps the others pays the delta of gate and that of the mechanism."""
        truth = delta_of_a_ladder(self.GATE, 0.24, 1001.0, 1000.0, 1.03)
        assert truth >= 2.16e-6 > 1.2e-6 > gaussian_delta(math.hypot(0.24, 0.05), 1.03)
        assert truth <= self.claimed(0.24).delta(1.03)
        assert self.claimed(0.24).delta(1.03) >= 2.17e-6

    @pytest.mark.parametrize("seed", range(6))
    @pytest.mark.repeated("seed", keep=3)
    def test_no_pair_exceeds_the_sum(self, seed):
        r, worst = random.Random(seed), 0.0
        for _ in range(400):
            further = sorted({r.randrange(1, 3000) for _ in range(r.randint(1, 4))}, reverse=True)
            dt, scale = 10 ** r.uniform(-7, -2), 10 ** r.uniform(0, 2)
            gate = Gate.of("gaussian", scale, dt, adding=True, n_rows=10**6, rungs=(*further, 0))
            mu, epsilon = 10 ** r.uniform(-1.5, 0.5), r.choice([0.0, 0.1, 1.0, 3.0])
            here = max(0.0, r.choice([*gate.rungs, gate.threshold]) + r.uniform(-1, 2) + r.choice([0, 0, 3 * scale]))
            there = max(0.0, here + r.choice([-1, 1, r.uniform(-1, 1)]))
            together = math.hypot(mu, gate.mu)
            truth = delta_of_a_ladder(gate, mu, here, there, epsilon)
            assert truth <= (dt + gaussian_delta(together, epsilon)) * (1 + 1e-6)
            bound = PrivacyLoss(together, min(1.0, dt / certain_share(together))).delta(epsilon)
            assert truth <= bound * (1 + 1e-6)
            worst = max(worst, truth / (dt + gaussian_delta(together, epsilon)))
        assert worst >= 0.9

    @pytest.mark.parametrize("mu", [0.01, 0.3, 1.0, 4.0])
    @pytest.mark.parametrize("dt", [1e-9, 1e-3])
    def test_the_recorded_failure_covers_the_sum_at_every_epsilon(self, mu, dt):
        loss = PrivacyLoss(mu, min(1.0, dt / certain_share(mu)))
        for epsilon in (0.0, 0.01, 0.5, 3.0, 20.0):
            assert loss.delta(epsilon) >= min(1.0, dt + gaussian_delta(mu, epsilon) * (1 - 1e-6))

    def test_one_noise_for_two_margins_is_not_private(self):
        """Margins (100, 102) and (101, 101), mu_t 0.05: a rung that is sometimes passed, and never."""
        second = ndtr((102 - 101) / 20) - ndtr((100 - 101) / 20)  # passes 102 > t and not 100 > t, t = 101
        assert second == pytest.approx(0.0399, abs=2e-3)
        assert ndtr(0.0) - ndtr(0.0) == 0.0


class TestPlan:
    def test_all_rungs_cost_the_same(self):
        p = on_a_ladder()
        assert p.gate.rungs == (6000, 3000, 0)
        assert p.gate.adding
        assert len({round(rung.mechanism.loss.mu, 9) for rung in p.rungs}) == 1
        assert [p.on(i).loss for i in range(3)] == [p.loss] * 3
        assert p.loss.epsilon(p.delta - p.allowance) == pytest.approx(1.0, rel=1e-5)
        assert p.loss.epsilon(p.delta - p.allowance) <= 1.0
        assert p.loss.failure == pytest.approx(p.gate.delta / certain_share(p.loss.mu))

    def test_a_tighter_rung_has_less_noise(self):
        p = on_a_ladder()
        scales = [rung.mechanism.noise_scale for rung in p.rungs]
        assert scales == sorted(scales)
        assert scales[0] < 0.3 * scales[-1]
        assert [a.noise_scale for a in p.alternatives] == scales

    def test_every_rung_has_the_noise_of_its_own_threshold(self):
        """The price: a tenth of delta instead of the whole beside the mechanism's, and nothing else."""
        for value, rung in zip(GAPS, on_a_ladder().rungs):
            alone = on_a_ladder("auto", NormClipper(), PCA(1, min_gap=value, center=False, statistics="exact"))
            assert 1.0 < rung.mechanism.noise_scale / alone.mechanism.noise_scale < 1.02

    def test_needed_margins_and_refusals(self):
        gate = on_a_ladder().gate
        needed = [gate.needed_margin(rung=i) for i in range(3)]
        assert needed[0] - needed[2] == pytest.approx(6000, rel=1e-5)
        assert gate.needed_margin() == needed[2]
        for i in range(3):
            assert gate.refusal_probability(needed[i], rung=i) == pytest.approx(0.01)
        assert "rung: 6000 rows further" in repr(on_a_ladder())

    def test_rows_with_gaps(self):
        ladder = Ladder("meanimputer__max_missing", (500, 1000, 5000))
        p = on_a_ladder(ladder, MinMaxScaler(ranges=(-1, 1)), MeanImputer(statistics="exact"))
        assert p.gate.rungs == (4500, 4000, 0)

    def test_a_ledger_is_charged_what_the_loss_says(self):
        ledger, gate = Ledger(), Ladder("pca__min_gap", GAPS)
        pipe = make_pipeline(NormClipper(), PCA(1, statistics="exact"), GaussianMechanism(), gate=gate, ledger=ledger)
        pipe.fit(rows(0.5).X)
        plan = pipe.plan(Domain(n_rows=20_000, n_features=3))
        (entry,) = ledger.entries()
        assert (entry.mu, entry.delta) == (plan.loss.mu, plan.loss.failure)
        assert plan.loss.failure > plan.gate.delta


REFUSED = {
    "margins that are different functions of the rows": (
        Ladder("standardscaler__min_std", (0.2, 0.1)),
        (NormClipper(), StandardScaler(floor=False, statistics="exact")),
        GaussianMechanism(),
        "another function of the rows",
    ),
    "another eigengap": (
        Ladder("pca__n_components", (1, 2)),
        (NormClipper(), PCA(statistics="exact")),
        GaussianMechanism(),
        "another function of the rows",
    ),
    "another condition beside it": (
        Ladder("pca__min_gap", (0.3, 0.2)),
        (NormClipper(), PCA(1, statistics="exact", output="aligned")),
        GaussianMechanism(),
        "must be the only one",
    ),
    "a condition that looks at its rows": (
        Ladder("pca__min_gap", (0.3, 0.2)),
        (NormClipper(), PCA(1, statistics="exact"), StandardScaler(floor=False, statistics="exact", min_std=0.01)),
        GaussianMechanism(),
        "must be the only one",
    ),
    "a release behind it": (
        Ladder("pca__min_gap", (0.3, 0.2)),
        (NormClipper(), PCA(1, statistics="exact"), StandardScaler(statistics="noisy")),
        GaussianMechanism(),
        "a released statistic depends on the rung",
    ),
    "a release of the same cost behind it": (
        Ladder("pca__min_gap", (0.001, 0.0005)),
        (NormClipper(), PCA(1, statistics="exact"), NormClipper(1e-3), StandardScaler(statistics="noisy")),
        GaussianMechanism(),
        "a statistic is released behind it",
    ),
    "a release that has the threshold": (
        Ladder("meanimputer__max_missing", (500, 1000)),
        (MinMaxScaler(ranges=(-1, 1)), MeanImputer(statistics="exact")),
        LogisticRegression((0, 1)),
        "a released statistic depends on the rung",
    ),
    "the loosest first": (
        Ladder("pca__min_gap", (0.2, 0.3)),
        (NormClipper(), PCA(1, statistics="exact")),
        GaussianMechanism(),
        "the tightest first",
    ),
    "a rung without a condition": (
        Ladder("meanimputer__max_missing", (500, None)),
        (MinMaxScaler(ranges=(-1, 1)), MeanImputer(statistics="exact")),
        GaussianMechanism(),
        "must be the only one",
    ),
    "noise that is not Gaussian": (
        Ladder("pca__min_gap", (0.3, 0.2)),
        (NormClipper(), PCA(1, statistics="exact")),
        LaplaceMechanism(),
        "a last step with Gaussian noise",
    ),
}


class TestRefused:
    @pytest.mark.parametrize("why", REFUSED)
    def test_what_is_not_one_margin_less_public_thresholds(self, why):
        ladder, stages, mechanism, words = REFUSED[why]
        with pytest.raises(UnsupportedOrder, match=words) as caught:
            on_a_ladder(ladder, *stages, mechanism=mechanism)
        assert caught.value.stage == ladder.step
        assert caught.value.fix

    @pytest.mark.parametrize(
        ("parameter", "values"),
        [
            ("pca", (1, 2)),
            ("pca__a__b", (1, 2)),
            (3, (1, 2)),
            ("pca__min_gap", 0.1),
            ("pca__min_gap", (0.1,)),
            ("a__b", "ab"),
        ],
        ids=str,
    )
    def test_what_is_no_ladder(self, parameter, values):
        with pytest.raises(InvalidParameter):
            Ladder(parameter, values)

    @pytest.mark.parametrize("parameter", ["pca__gap", "pcb__min_gap", "gaussianmechanism__query"])
    def test_a_parameter_that_no_stage_has(self, parameter):
        with pytest.raises(InvalidParameter, match="not one of a stage"):
            on_a_ladder(Ladder(parameter, (0.2, 0.1)))

    def test_too_small_a_budget(self):
        with pytest.raises(NoRoute):
            on_a_ladder(epsilon=1e-7, delta=1e-15)


class TestExecution:
    @pytest.mark.parametrize(("gap", "rung"), [(0.9, 0), (0.5, 1), (0.25, 2)])
    def test_the_tightest_threshold_that_the_data_keep(self, gap, rung):
        p = on_a_ladder()
        assert execute(p, rows(gap), Noise(3)).rung == rung

    def test_near_a_threshold_the_noise_decides_as_often_as_it_says(self):
        gate = on_a_ladder().gate
        margin = gate.threshold + 3000 + 10.0
        passed = [gate.test(margin, Noise(seed), "") for seed in range(300)]
        expected = 1 - gate.refusal_probability(margin, rung=1)
        assert 0 not in passed
        assert passed.count(1) == pytest.approx(300 * expected, abs=4.5 * math.sqrt(300 * expected * (1 - expected)))

    def test_what_is_released_has_the_noise_of_its_rung(self):
        p, data = on_a_ladder(), rows(0.9)
        exact = data.X.mean(axis=0)[0]
        errors = []
        for seed in range(60):
            outcome = execute(p, data, Noise(seed))
            assert outcome.rung == 0
            errors.append(outcome.released["gaussianmechanism.answer"][1:])
        assert abs(exact) < 0.02
        scale = p.rungs[0].mechanism.noise_scale
        assert 0.8 * scale < np.std(errors) < 1.25 * scale < 0.5 * p.mechanism.noise_scale

    def test_a_refusal_says_the_same_as_without_a_ladder(self):
        said = []
        for gate in (Ladder("pca__min_gap", GAPS), "gaussian"):
            with pytest.raises(PrivacyRefusal) as caught:
                execute(on_a_ladder(gate, NormClipper(), PCA(1, 0.1, statistics="exact")), rows(0.05), Noise(3))
            said.append((caught.value.message.split("(")[0], caught.value.fix))
        assert said[0] == said[1]

    @pytest.mark.parametrize("gap", [0.9, 0.5, 0.25])
    def test_the_certificate_promises_the_same_on_every_rung(self, gap):
        pipe = make_pipeline(
            NormClipper(),
            PCA(1, center=False, statistics="exact"),
            GaussianMechanism(),
            gate=Ladder("pca__min_gap", GAPS),
        )
        one = pipe.fit(rows(gap).X).certificate_
        assert one.verify(), one.verify()
        assert (one.epsilon, one.delta) == (1.0, 1e-6)
        p = on_a_ladder()
        assert one.loss == p.loss
        assert one["gate"]["rule"] == "sum"
        rung = one["gate"]["ladder"]["rung"]
        assert one["steps"][1]["parameters"]["min_gap"] == GAPS[rung]
        assert one["mechanism"]["noise_scale"] == p.rungs[rung].mechanism.noise_scale
        assert "at rung" in one.to_text(full=True)
