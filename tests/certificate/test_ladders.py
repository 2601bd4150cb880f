"""Ladders, which certificates of earlier releases have: what they may claim, and that no other ladder verifies."""

from __future__ import annotations

import copy
import math
import random

import pytest
from gates import hockey_stick
from scipy.special import ndtr
from zoo import certificate

from ppdp import Certificate, PrivacyLoss
from ppdp.certificate.canonical import schema
from ppdp.privacy.gate import Gate, overlap
from ppdp.privacy.gaussian import gaussian_delta


def delta_of_a_ladder(
    gate: Gate, rungs: tuple[int, ...], mu: float, here: float, there: float, epsilon: float
) -> float:
    """Exact delta(epsilon) of "the rung, and behind it a mu-release, or everything where one of the two fails it"."""
    cuts = [gate.threshold + further for further in rungs]
    total = 0.0
    above_here = above_there = 0.0
    for cut, further in zip(cuts, rungs):
        p, q = (float(ndtr((margin - cut) / gate.noise_scale)) for margin in (here, there))
        p, q, above_here, above_there = p - above_here, q - above_there, p, q
        if min(here, there) <= further:
            total += max(p, 0.0)
        elif p > 0:
            total += p if q <= 0 else p * hockey_stick(mu, epsilon + math.log(q / p))
    return total + max(0.0, (1 - above_here) - math.exp(epsilon) * (1 - above_there))


class TestTheorem:
    GATE = Gate.of("gaussian", 20.0, 1e-6, adding=True, n_rows=10**6)
    RUNGS = (1000, *range(990, 800, -4), 0)

    def claimed(self, mu: float) -> PrivacyLoss:
        together = math.hypot(mu, self.GATE.mu)
        return PrivacyLoss(together, self.GATE.delta / overlap(together))

    def test_the_larger_delta_is_false(self):
        """A pair that fails the first rung and keeps the others pays the delta of gate and that of the mechanism."""
        truth = delta_of_a_ladder(self.GATE, self.RUNGS, 0.24, 1001.0, 1000.0, 1.03)
        assert truth >= 2.16e-6 > 1.2e-6 > gaussian_delta(math.hypot(0.24, 0.05), 1.03)
        assert truth <= self.claimed(0.24).delta(1.03)
        assert self.claimed(0.24).delta(1.03) >= 2.17e-6

    @pytest.mark.parametrize("seed", range(6))
    @pytest.mark.repeated("seed", keep=3)
    def test_no_pair_exceeds_the_sum(self, seed):
        r, worst = random.Random(seed), 0.0
        for _ in range(400):
            further = *sorted({r.randrange(1, 3000) for _ in range(r.randint(1, 4))}, reverse=True), 0
            dt, scale = 10 ** r.uniform(-7, -2), 10 ** r.uniform(0, 2)
            gate = Gate.of("gaussian", scale, dt, adding=True, n_rows=10**6)
            mu, epsilon = 10 ** r.uniform(-1.5, 0.5), r.choice([0.0, 0.1, 1.0, 3.0])
            here = max(0.0, r.choice([*further, gate.threshold]) + r.uniform(-1, 2) + r.choice([0, 0, 3 * scale]))
            there = max(0.0, here + r.choice([-1, 1, r.uniform(-1, 1)]))
            together = math.hypot(mu, gate.mu)
            truth = delta_of_a_ladder(gate, further, mu, here, there, epsilon)
            assert truth <= (dt + gaussian_delta(together, epsilon)) * (1 + 1e-6)
            bound = PrivacyLoss(together, min(1.0, dt / overlap(together))).delta(epsilon)
            assert truth <= bound * (1 + 1e-6)
            worst = max(worst, truth / (dt + gaussian_delta(together, epsilon)))
        assert worst >= 0.9

    @pytest.mark.parametrize("mu", [0.01, 0.3, 1.0, 4.0])
    @pytest.mark.parametrize("dt", [1e-9, 1e-3])
    def test_the_recorded_failure_covers_the_sum_at_every_epsilon(self, mu, dt):
        loss = PrivacyLoss(mu, min(1.0, dt / overlap(mu)))
        for epsilon in (0.0, 0.01, 0.5, 3.0, 20.0):
            assert loss.delta(epsilon) >= min(1.0, dt + gaussian_delta(mu, epsilon) * (1 - 1e-6))

    def test_one_noise_for_two_margins_is_not_private(self):
        """Margins (100, 102) and (101, 101), mu_t 0.05: a rung that is sometimes passed, and never."""
        second = ndtr((102 - 101) / 20) - ndtr((100 - 101) / 20)  # passes 102 > t and not 100 > t, t = 101
        assert second == pytest.approx(0.0399, abs=2e-3)
        assert ndtr(0.0) - ndtr(0.0) == 0.0


def every_rung(change):
    def forge(c):
        for rung in c["gate"]["ladder"]["rungs"]:
            change(rung)

    return forge


def rung(i, change):
    return lambda c: change(c["gate"]["ladder"]["rungs"][i])


def turned(c):
    ladder = c["gate"]["ladder"]
    ladder["rungs"].reverse()
    ladder["rung"] = len(ladder["rungs"]) - 1 - ladder["rung"]


FORGERIES = {
    "the loosest first": (turned, "must become looser"),
    "the loosest dropped": (lambda c: c["gate"]["ladder"]["rungs"].pop(), "must become looser"),
    "the tightest asks for less than the next": (rung(0, lambda r: r.update(further=0)), "further away"),
    "a floor that is not tested on a rung": (
        rung(2, lambda r: r["parameters"]["scale"].update(conditional=True)),
        "assumes",
    ),
    "another floor": (rung(2, lambda r: r["parameters"]["scale"].update(min_std=10.0)), "mechanism"),
    "a floor that goes unsaid": (rung(2, lambda r: r["parameters"].pop("scale")), "mechanism"),
    "parameters of a step before it": (
        every_rung(lambda r: r["parameters"].update(clip={"max_norm": 1e-3})),
        "no step",
    ),
    "parameters of nobody": (rung(0, lambda r: r["parameters"].update(nobody={})), "no step"),
    "a threshold that goes unsaid": (rung(0, lambda r: r["parameters"].pop("pca")), "must become looser"),
    "another query on another rung": (
        rung(0, lambda r: r["mechanism"].update(formula="query.count", parameters={})),
        "another mechanism",
    ),
    "a mechanism that is not Gaussian": (
        rung(0, lambda r: r["mechanism"].update(mu=None, formula="laplace.count", parameters={})),
        "another mechanism",
    ),
    "a passed rung with parameters of its own": (
        rung(1, lambda r: r["parameters"]["scale"].update(min_std=10.0)),
        "not that of its rung",
    ),
}


class TestForged:
    @pytest.mark.parametrize("forgery", FORGERIES)
    def test_ladders_that_no_plan_makes(self, forgery):
        forge, words = FORGERIES[forgery]
        content = copy.deepcopy(certificate("scaled on a ladder").to_dict())
        forge(content)
        problems = Certificate.sealed(content).verify().problems
        assert any(words in problem for problem in problems), problems

    def test_too_many_rungs(self):
        content = certificate("scaled on a ladder").to_dict()
        ladder = content["gate"]["ladder"]
        ladder["rungs"] = ladder["rungs"][:1] * 20 + ladder["rungs"]
        assert "does not have the form" in str(Certificate.sealed(content).verify())
        assert schema()["$defs"]["ladder"]["properties"]["rungs"]["maxItems"] == 20

    def test_an_ordinary_one_is_no_forgery(self):
        assert Certificate.sealed(certificate("scaled on a ladder").to_dict()).verify()
