"""The output attack finds half of the noise in every mechanism and a gate that is off by one row, and nothing else."""

import dataclasses

import numpy as np
import pytest
from catalogue import TARGETS
from scipy.special import ndtri

from ppdp.audit import FunctionTarget, PlanTarget, SelectionTarget, attack_output
from ppdp.audit.output import judged
from ppdp.audit.trials import make_trials
from ppdp.mechanisms.query import additive_noise
from ppdp.privacy.gate import GATE_KINDS, Gate
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.noise.sampler import Noise
from ppdp.transformers.impute import column_imputers

RUNS = 2000
MECHANISMS = (
    "Gaussian covariance",
    "Laplace mean",
    "quantile",
    "choice of a candidate",
    "noisy gradient descent",
    "output perturbation",
    "released means",
    "released second moment",
)
MORE_RUNS = {
    "search by noisy scores": 4000,
    "search by chance": 4000,
    "Poisson samples": 3000,
    "fixed-size batches": 4000,
    "fixed-size batches of moved rows": 10_000,
    "hidden iterate": 4000,
    "epochs": 8000,
    "gradient descent with curvature": 4000,
}


def halved(target):
    """Half of the noise in the plan, and the old claim."""
    if isinstance(target, SelectionTarget):
        temperature, scale = (x and x / 2 for x in (target.selection.temperature, target.selection.noise_scale))
        selection = dataclasses.replace(target.selection, temperature=temperature, noise_scale=scale)
        return dataclasses.replace(target, selection=selection)
    plan = target.plan
    releases = tuple(dataclasses.replace(r, noise_scale=r.noise_scale / 2) for r in plan.releases)
    last = plan.mechanism and dataclasses.replace(plan.mechanism, noise_scale=plan.mechanism.noise_scale / 2)
    return dataclasses.replace(target, plan=dataclasses.replace(plan, mechanism=last, releases=releases))


@dataclasses.dataclass(frozen=True)
class Gaussian(FunctionTarget):
    """Many exact Gaussian releases at once, on a mean that moves along a direction."""

    width: int = 1
    mu: float = 1.0

    def outcomes(self, side, runs, noise):
        drawn = noise.standard_lattice((runs, self.width)) * 2.0**-37
        drawn[:, -1] += side * self.mu
        return np.column_stack([np.ones(runs), drawn])


def attacked(target, runs=1200):
    """Half of the runs on each dataset, of which a fifth chooses."""
    return judged(target, make_trials(target, 10, slice_runs=runs // 20, random_state=0))


def gaussian(claimed=1.0, **settings):
    return Gaussian("Gaussian", lambda side, noise: None, PrivacyLoss(claimed), **settings)


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.repeated("name", keep=3)
def test_half_of_the_noise_is_found(name):
    finding = attacked(halved(TARGETS[name]()))
    assert finding.violated
    assert "REFUTED" in str(finding)
    assert f"by {finding.excess:.3g} more likely than certified" in str(finding)


@pytest.mark.parametrize("name", MORE_RUNS)
@pytest.mark.repeated("name")
def test_half_of_the_noise_is_found_with_more_runs(name):
    assert attacked(halved(TARGETS[name]()), MORE_RUNS[name]).violated


@pytest.mark.parametrize(
    ("name", "least"), [("Gaussian mean", 0.5), ("choice of a candidate", 0.2), ("released second moment", 0.5)]
)
@pytest.mark.repeated("name", "least")
def test_all_of_the_noise_is_not_refuted(name, least):
    finding = attack_output(TARGETS[name](), runs=3000, random_state=1)
    assert not finding.violated
    assert finding.excess <= 0
    assert least < finding.ratio < 1  # informative
    assert "nothing found" in str(finding)


class TestBugsInCode:
    """Not in the plan but where noise is made."""

    def test_in_the_source_of_noise(self, monkeypatch):
        honest = Noise.release
        monkeypatch.setattr(Noise, "release", lambda self, value, scale, bound: honest(self, value, scale / 2, bound))
        assert attacked(TARGETS["deduplication"]()).violated

    def test_in_one_mechanism(self, monkeypatch):
        honest = additive_noise.laplace_release
        monkeypatch.setattr(
            additive_noise, "laplace_release", lambda n, v, scale, b, **k: honest(n, v, scale / 2, b, **k)
        )
        assert attacked(TARGETS["Laplace count"](), 600).violated

    def test_noise_that_comes_twice_is_found(self, monkeypatch):
        """Two numbers with one and the same noise: each has the right scale, their difference has none."""
        target = TARGETS["Gaussian histogram"]()
        honest = Noise._standard_cells
        monkeypatch.setattr(Noise, "_standard_cells", lambda self, size: np.repeat(honest(self, 1), size))
        assert attacked(target, 600).violated


@pytest.fixture(scope="module")
def guessed():
    """A plan that runs on the same dataset twice, and what is found."""
    target = TARGETS["deduplication"]()
    target = dataclasses.replace(target, right=target.left)
    return target, attacked(target, 600)


class TestPower:
    @pytest.mark.parametrize("width", [1, 8])
    def test_the_bound_comes_close_with_many_runs(self, width):
        finding = attack_output(gaussian(width=width), runs=100_000, random_state=0)
        assert 0.9 < finding.ratio < 1
        assert not finding.violated

    def test_five_percent_too_little_noise_need_more_confidence_than_there_is(self):
        assert not attack_output(gaussian(mu=1.05), runs=20_000, random_state=0).violated

    def test_a_quarter_too_little_is_found(self):
        assert attack_output(gaussian(mu=1.25), runs=50_000, random_state=0).violated

    def test_what_only_a_classifier_sees(self):
        """The sign of a product: means, and every single coordinate, are the same on both sides."""

        def release(side, noise):
            a, b = noise.standard_lattice(2) * 2.0**-37
            return a, abs(b) * np.sign(a) * (1 - 2 * side)

        finding = attack_output(FunctionTarget("xor", release, PrivacyLoss(1.0)), runs=RUNS, random_state=0)
        assert finding.violated
        assert finding.best.statistic == "boosting"

    def test_what_happens_once_in_a_thousand_runs(self):
        @dataclasses.dataclass(frozen=True)
        class Rarely(Gaussian):
            """A number of noise; one time in a thousand a huge one that tells the side."""

            def outcomes(self, side, runs, noise):
                found = super().outcomes(0, runs, noise)
                rare = noise.standard_lattice(runs) * 2.0**-37 > ndtri(0.999)
                found[rare, 1] = 1e9 * (1 - 2 * side)
                return found

        claimed = Rarely("rarely", lambda side, noise: None, PrivacyLoss(0.1))
        assert attack_output(claimed, runs=400_000, random_state=0).violated

    def test_a_refusal_is_an_outcome(self):
        """Nothing is released but whether something is."""

        def release(side, noise):
            return [0.0] if noise.standard_lattice(1)[0] > 0 or side else None

        finding = attack_output(FunctionTarget("refuser", release, PrivacyLoss(0.5)), runs=RUNS, random_state=0)
        assert finding.violated
        assert finding.epsilon_low > 1

    def test_who_guesses_learns_nothing(self, guessed):
        _, finding = guessed
        assert finding.mu_low < 0
        assert finding.epsilon_low == 0
        assert not finding.violated


class TestTargets:
    def test_released_numbers_stand_behind_what_happened(self):
        target = TARGETS["released means"]()
        found = target.outcomes(0, 3, Noise(0))
        assert found.shape == (3, 2)
        assert (found[:, 0] > 0).all()

    def test_the_known_shift_is_what_differs_without_noise(self):
        target = TARGETS["Gaussian sum"]()
        left, right, power = target.exact()
        assert (left - right, power) == (pytest.approx([2.0], rel=1e-6), 2)
        assert TARGETS["Laplace sum"]().exact()[2] == 1

    def test_narrow_and_wide_outcomes_stand_together(self):
        class Sometimes(FunctionTarget):
            def outcome(self, side, noise):
                return np.array([0.0]) if noise.standard_lattice(1)[0] > 0 else np.array([1.0, 2.0, 3.0])

        found = Sometimes("sometimes", print, PrivacyLoss(1.0)).outcomes(0, 50, Noise(0))
        assert {tuple(row) for row in found} == {(0.0, 0.0, 0.0), (1.0, 2.0, 3.0)}


def test_the_claim_is_that_of_the_plan(guessed):
    target, finding = guessed
    assert isinstance(target, PlanTarget)
    assert (finding.mu, finding.epsilon, finding.delta) == (target.plan.loss.mu, 5.0, 1e-6)
    assert finding.runs == 600


@pytest.mark.usefixtures("short_slices")
class TestStoppingEarly:
    def test_a_false_claim_takes_few_runs(self):
        finding = attack_output(gaussian(mu=3.0), runs=20_000, random_state=0, sequential=True)
        assert finding.violated
        assert finding.runs < 2000
        assert finding.confidence == 1 - 1e-6

    def test_a_true_claim_takes_all_of_them_and_shows_hardly_less(self):
        target = TARGETS["Laplace mean"]()
        looked, once = (attack_output(target, runs=2400, random_state=0, sequential=stop) for stop in (True, False))
        assert not looked.violated
        assert looked.runs == once.runs == 2400
        assert 0.9 * once.ratio < looked.ratio < 1
        assert looked.excess < 0
        assert len(looked.events) == 3


# ---------------- gates


KINDS = tuple(GATE_KINDS)
GATES = ("gaussian gate, open", "laplace gate, closed", "eigengap gate, closed")


def attacked_gate(name, runs=60):
    """With so many runs on each dataset in each of ten slices, of which two choose: more where noise has long tails."""
    target = TARGETS[name]()
    return judged(target, make_trials(target, 10, slice_runs=100 if "laplace" in name else runs, random_state=0))


@pytest.mark.parametrize("name", GATES)
@pytest.mark.repeated("name", keep=2)
def test_gates_are_not_refuted(name):
    finding = attacked_gate(name)
    assert not finding.violated
    assert finding.excess <= 0


class TestOffByOne:
    def test_in_the_margin_of_a_stage(self, monkeypatch):
        honest = column_imputers.missing_margin
        monkeypatch.setattr(column_imputers, "missing_margin", lambda *given: honest(*given) + 1)
        assert attacked_gate("gaussian gate, closed").violated

    def test_in_the_gate(self, monkeypatch):
        honest = Gate._tested
        monkeypatch.setattr(Gate, "_tested", lambda self, margin: honest(self, margin + 1))
        assert attacked_gate("discrete-laplace gate, closed").violated

    @pytest.mark.parametrize("kind", KINDS)
    def test_in_the_threshold(self, kind, monkeypatch):
        """The printed one, which forgets that a dataset next to a bad one has margin 1."""
        family = GATE_KINDS[kind]
        honest = family.threshold
        monkeypatch.setattr(family, "threshold", lambda self, delta: honest(self, delta) - 1)
        assert attacked_gate(f"{kind} gate, closed").violated


def test_passing_at_the_threshold_is_found(monkeypatch):
    """At least instead of more than: one row, where noise is whole."""

    def lenient(self, margin, noise, fix):
        return honest(dataclasses.replace(self, threshold=self.threshold - 1e-9), margin, noise, fix)

    honest = Gate.test
    monkeypatch.setattr(Gate, "test", lenient)
    assert attacked_gate("discrete-laplace gate, closed").violated


def test_half_of_the_noise_on_a_margin_is_found(monkeypatch):
    family = GATE_KINDS["gaussian"]
    honest = family.add_noise
    monkeypatch.setattr(
        family, "add_noise", lambda self, noise, margin: honest(family(self.scale / 2, self.n_rows), noise, margin)
    )
    assert attacked_gate("gaussian gate, open").violated


# ---------------- slices of an audit: each with noise of its own, wherever it is made


def release(side, noise):
    return noise.release(float(side), 1.0, 1.0)


TARGET = FunctionTarget("a number", release, PrivacyLoss(1.0))
SMALL = {"slice_runs": 20, "random_state": 0}


def same(one, other):
    return all(
        np.array_equal(a.left, b.left) and np.array_equal(a.right, b.right)
        for a, b in zip(one.slices, other.slices, strict=True)
    )


def test_processes_make_the_same_runs():
    from joblib import parallel_config

    with parallel_config(backend="threading"):  # a slice has a seed of its own, wherever it is made
        made = make_trials(TARGET, 4, n_jobs=2, **SMALL)
    assert same(made, make_trials(TARGET, 4, **SMALL))


def test_noise_is_the_systems_unless_it_is_seeded():
    one, other = (make_trials(TARGET, 1, slice_runs=5) for _ in range(2))
    assert not np.isin(one.slices[0].left[:, 1], other.slices[0].left[:, 1]).any()


def test_slices_have_noise_of_their_own():
    made = make_trials(TARGET, 3, **SMALL)
    drawn = np.concatenate([np.concatenate([one.left, one.right])[:, 1] for one in made.slices])
    assert len(np.unique(drawn)) == drawn.size == 120


def test_the_first_slices_choose_and_the_others_count():
    made = make_trials(TARGET, 5, **SMALL)
    (left, right), (more_left, more_right) = made.parts(0.2)
    assert [len(part) for part in (left, right, more_left, more_right)] == [20, 20, 80, 80]
    assert np.array_equal(left, made.slices[0].left)
    assert np.array_equal(more_right[-20:], made.slices[-1].right)
