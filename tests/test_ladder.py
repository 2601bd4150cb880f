"""A ladder: several public thresholds of one noisy margin, and what it may claim."""

from __future__ import annotations

import copy
import math
import random
from functools import cache

import numpy as np
import pytest
from gates import hockey_stick
from scipy.special import ndtr

from ppdp import Certificate, Domain, Ladder, Ledger, Pipeline, PrivacyLoss, PrivacyRefusal, make_pipeline
from ppdp.certificate.schema import schema
from ppdp.exceptions import InvalidParameter, NoRoute, UnsupportedOrder
from ppdp.execute import execute
from ppdp.gate import Gate, certain_share
from ppdp.ladder import MOST_RUNGS
from ppdp.mechanisms import GaussianMechanism, LaplaceMechanism, LogisticRegression
from ppdp.planning.plan import Plan
from ppdp.privacy.gaussian import gaussian_delta
from ppdp.privacy.noise import Noise
from ppdp.registry import REGISTRY
from ppdp.rows import Rows
from ppdp.transformers import PCA, GridQuantizer, MeanImputer, MinMaxScaler, NormClipper, StandardScaler
from ppdp.transformers.base import Stage

GAPS = (0.7, 0.4, 0.1)


def on_a_ladder(gate=None, *stages, mechanism=None, n=20_000, **parameters) -> Plan:
    steps = stages or (NormClipper(), PCA(1, statistics="exact"))
    pipe = make_pipeline(
        *steps, mechanism or GaussianMechanism(), gate=gate or Ladder("pca__min_gap", GAPS), **parameters
    )
    return pipe.plan(Domain(n_rows=n, n_features=3))


def rows(gap: float, n: int = 20_000) -> Rows:
    """Rows whose eigengap is about this."""
    rng = np.random.default_rng(0)
    length = math.sqrt(gap + 0.02)
    X = rng.choice([-1.0, 1.0], (n, 1)) * np.array([length, 0, 0]) + rng.normal(scale=0.01, size=(n, 3))
    return Rows.of(X)


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
            alone = on_a_ladder("auto", NormClipper(), PCA(1, min_gap=value, statistics="exact"))
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
            NormClipper(), PCA(1, statistics="exact"), GaussianMechanism(), gate=Ladder("pca__min_gap", GAPS)
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
        assert "at rung" in one.to_text()


CENTRED = ("clip", NormClipper()), ("pca", PCA(1, center=True, statistics="exact"))
FILLED = ("box", MinMaxScaler(ranges=(-1, 1))), ("impute", MeanImputer(statistics="exact"))
BEHIND = {
    "eigengap": (CENTRED, Ladder("pca__min_gap", GAPS)),
    "gaps": (FILLED, Ladder("impute__max_missing", (500, 1000, 5000))),
}
SCALED = ("grid", GridQuantizer()), ("scale", StandardScaler(statistics="exact"))
ACCEPTED = {
    "eigengap": {
        "GridQuantizer",
        "MinMaxScaler",
        "SoftPCA",
        "StandardScaler",
        "GaussianMechanism",
        "LinearSVC",
        "Ridge",
    },
    "gaps": {"GridQuantizer", "MeanImputer", "SoftPCA", "StandardScaler", "GaussianMechanism"},
}


def people(what: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows that pass the middle rung, and targets."""
    rng = np.random.default_rng(1)
    X = rows(0.5).X
    if what == "gaps":
        X = rng.uniform(-1, 1, X.shape)
        X[:600, 0] = np.nan
    return X, rng.integers(1, 3, size=len(X))


@cache
def climbed(what: str, *behind) -> Certificate:
    stages, ladder = BEHIND[what]
    steps = [*stages, *behind] if behind and not isinstance(behind[-1][1], Stage) else [*stages, *behind, MEAN]
    return Pipeline(steps, gate=ladder, domain=Domain(y_range=(1, 2))).fit(*people(what)).certificate_


MEAN = ("last", GaussianMechanism())


def offered(what: str, kind) -> bool:
    """Whether a plan puts this class behind a ladder; if it does, its certificate must verify."""
    one = kind.example()
    name = "statistics" if issubclass(kind, Stage) else "noise_scale"
    if name in one.get_params():
        one.set_params(**{name: "exact" if name == "statistics" else None})
    try:
        certificate = climbed(what, ("last" if name == "noise_scale" else "later", one))
    except UnsupportedOrder as error:
        assert error.fix
        return False
    assert certificate["gate"]["ladder"]["rung"] == 1
    assert certificate.verify(), certificate.verify()
    return True


class TestBehind:
    @pytest.mark.parametrize("what", BEHIND)
    def test_whatever_a_plan_puts_behind_a_ladder_verifies(self, what):
        """Every registered stage and mechanism: either a typed refusal, or a certificate that holds on every rung."""
        found = {name for name, kind in REGISTRY.items() if offered(what, kind)}
        assert found >= ACCEPTED[what]

    @pytest.mark.parametrize(("gap", "rung"), [(0.9, 0), (0.5, 1), (0.25, 2)])
    def test_from_every_rung_the_others_follow(self, gap, rung):
        """A floor and a cell that are shares of the norm of a row, which the eigengap bounds."""
        steps = [*CENTRED, *SCALED, MEAN]
        one = Pipeline(steps, gate=Ladder("pca__min_gap", GAPS)).fit(rows(gap).X).certificate_
        ladder = one["gate"]["ladder"]
        assert ladder["rung"] == rung
        assert one.verify(), one.verify()
        assert len({own["parameters"]["scale"]["min_std"] for own in ladder["rungs"]}) == len(GAPS)
        assert len({own["parameters"]["grid"]["cell"] for own in ladder["rungs"]}) == len(GAPS)

    def test_only_what_depends_on_the_rung_is_written_for_each(self):
        behind = ("box", MinMaxScaler(ranges=(-1, 1))), SCALED[1]
        for own in climbed("eigengap", *behind)["gate"]["ladder"]["rungs"]:
            assert own["parameters"].keys() == {"pca", "scale"}

    def test_a_bound_that_is_another_one_on_some_rung(self, monkeypatch):
        """A class whose formula depends on the norm of a row: on each rung it is accounted as another stage."""
        ways = NormClipper.ways

        def changing(stage, domain, distance):
            (way,) = ways(stage, domain, distance)
            other = type(way).by("public", "row-wise.identity", domain, distance)
            return (other if 1 < domain.row_norm < 1.3 else way,)

        monkeypatch.setattr(NormClipper, "ways", changing)
        with pytest.raises(UnsupportedOrder, match="another formula on another rung"):
            on_a_ladder(None, NormClipper(), PCA(1, center=True, statistics="exact"), NormClipper(1.2))


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


def of_others(c):
    """A model on whose word others rely, and the words for the rung that was passed alone."""
    found = c["gate"]["ladder"]["rungs"][0]["mechanism"]
    found.update(formula="release.sum", parameters={"weighted": False})


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
    "a threshold that goes unsaid": (rung(0, lambda r: r["parameters"].pop("pca")), "no threshold"),
    "another query on another rung": (of_others, "another mechanism"),
    "a mechanism that is not Gaussian": (rung(0, lambda r: r["mechanism"].update(mu=None)), "another mechanism"),
}


class TestForged:
    @pytest.mark.parametrize("forgery", FORGERIES)
    def test_ladders_that_no_plan_makes(self, forgery):
        forge, words = FORGERIES[forgery]
        content = copy.deepcopy(climbed("eigengap", *SCALED).to_dict())
        forge(content)
        problems = Certificate.sealed(content).verify().problems
        assert any(words in problem for problem in problems), problems

    def test_too_many_rungs(self):
        content = climbed("eigengap", *SCALED).to_dict()
        ladder = content["gate"]["ladder"]
        ladder["rungs"] = ladder["rungs"][:1] * MOST_RUNGS + ladder["rungs"]
        assert "does not have the form" in str(Certificate.sealed(content).verify())
        assert schema()["$defs"]["ladder"]["properties"]["rungs"]["maxItems"] == MOST_RUNGS

    def test_an_ordinary_one_is_no_forgery(self):
        assert Certificate.sealed(climbed("eigengap", *SCALED).to_dict()).verify()
