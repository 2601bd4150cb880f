"""Plans: one budget solve before any data; every total within (epsilon, delta), whatever the pipeline."""

from __future__ import annotations

import dataclasses
import itertools
import math
import random

import numpy as np
import pandas as pd
import pytest

from ppdp import Distance, Domain, Ledger, Pipeline, make_pipeline
from ppdp.bounds.learning import logistic_gradient_norm
from ppdp.bounds.release import BOX_WEIGHT
from ppdp.exceptions import (
    DomainMismatch,
    ImpossibleBudget,
    InvalidParameter,
    MissingBound,
    NoRoute,
)
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.mechanisms import logistic_regression as descent
from ppdp.planning.plan import Plan
from ppdp.planning.ways import Way
from ppdp.privacy.gaussian import gaussian_delta, gaussian_mu
from ppdp.privacy.noise import Noise
from ppdp.transformers import PCA, Deduplicator, MeanImputer, MinMaxScaler, NormClipper, RowMap, StandardScaler
from ppdp.transformers.base import Stage

SHARES = (0.05, 0.10, 0.15, 0.20)


def plan(*steps, n=5000, d=3, domain=None, **parameters) -> Plan:
    return make_pipeline(*steps, **parameters).plan(domain or Domain(n_rows=n, n_features=d))


def classifier(**parameters) -> LogisticRegression:
    return LogisticRegression(classes=(0, 1), **parameters)


def total_mu(plan_: Plan) -> float:
    """mu of the whole budget, as the plan must solve it."""
    delta, failure = plan_.delta - plan_.allowance, plan_.loss.failure
    return gaussian_mu(plan_.epsilon, (delta - failure) / (1 - failure))


# ---------------------------------------------------------------- totals


def drawn(r: random.Random) -> tuple[list, Domain, dict]:
    """A pipeline, public facts and a budget, all random."""
    d = r.choice([1, 2, 3, 7, 20])
    way = lambda: r.choice(["auto", "auto", "exact", "noisy"])  # noqa: E731
    steps = [
        r.choice(
            [
                NormClipper(r.choice([0.5, 3.0])),
                MinMaxScaler(ranges=(0, 10)),
                RowMap(out_ranges=(-1, 1), lipschitz=r.choice([None, 2.0])),
            ]
        )
    ]
    if r.random() < 0.4:
        steps.append(Deduplicator(key=r.choice([None, [0]])))
    steps.append(
        MeanImputer(
            min_observed=r.choice([0.5, 0.9, 5]),
            max_missing=r.choice([None, 3, 0.2]),
            floor=r.random() < 0.7,
            statistics=way(),
        )
    )
    for _ in range(r.randrange(3)):
        steps.append(
            r.choice(
                [
                    StandardScaler(
                        floor=r.random() < 0.6, clip=r.choice(["auto", None, 1.0]), min_std=r.choice([None, 0.1])
                    ),
                    StandardScaler(with_mean=False, statistics=way()),
                    PCA(1, statistics=way(), min_gap=r.choice([None, 0.05])),
                    NormClipper(2.0),
                    RowMap(out_ranges=(-1, 1), lipschitz=r.choice([None, 1.0])),
                    Deduplicator(),
                ]
            )
        )
    mechanism = r.choice([GaussianMechanism(), classifier(), classifier(max_iter=7, fit_intercept=False), None])
    steps += [] if mechanism is None else [mechanism]
    n = int(10 ** r.uniform(1, 7))
    domain = Domain(n_rows=n, n_features=d, rows_per_unit=r.choice([1, 1, 3]))
    budget = {
        "epsilon": 10 ** r.uniform(-2, 1.3),
        "delta": min(10 ** r.uniform(-12, -3), 0.5 / n),
        "gate": r.choice(["auto", "auto", None]),
        "ledger": r.choice([None, None, Ledger()]),
    }
    return steps, domain, budget


@pytest.mark.parametrize("seed", range(20))
def test_every_total_is_within_its_budget(seed):
    """Gate, releases, mechanism and sampler together, for random pipelines; and hardly anything is left over."""
    r, planned = random.Random(seed), 0
    for _ in range(30):
        steps, domain, budget = drawn(r)
        try:
            p = plan(*steps, domain=domain, **budget)
        except NoRoute:
            continue
        planned += 1
        squares = [release.mu**2 for release in p.releases]
        squares += [] if p.gate is None else [p.gate.mu**2]
        squares += [] if p.mechanism is None else [p.mechanism.loss.mu**2]
        mu, failure, floor = math.sqrt(sum(squares)), 0.0, 0.0
        if p.gate is not None:
            failure, floor = (p.gate.delta, 0.0) if p.gate.adding else (0.0, p.gate.delta)
        spent = failure + (1 - failure) * gaussian_delta(mu, p.epsilon)
        assert max(spent, floor) + p.allowance <= p.delta
        assert p.loss.mu == pytest.approx(mu, rel=1e-12)
        assert p.loss.epsilon(p.delta - p.allowance) <= p.epsilon * (1 + 1e-9)
        if p.mechanism is not None:
            assert mu >= 0.995 * total_mu(p)
        numbers = 1 + sum(len(noise) for noise in numbers_drawn(p))
        assert p.allowance >= (1 + math.exp(p.epsilon)) * numbers * 2.0**-60
        for release in p.releases:
            assert release.sensitivity / release.noise_scale <= release.mu
    assert planned >= 8


def numbers_drawn(p: Plan) -> list[range]:
    """One range per noisy answer, as long as the answer."""
    d = [step.domain.d for step in p.steps]
    sizes = {"means": lambda k: k, "squares": lambda k: 2 * k, "matrix": lambda k: k + k * (k + 1) // 2}
    answers = [range(sizes[r.statistic](d[r.at])) for r in p.releases]
    if p.mechanism is not None:
        answers += [range(p.mechanism.question.size)] * p.mechanism.question.steps
    return answers


@pytest.mark.parametrize("n", [10, 100, 1000, 10**4, 10**5, 10**6, 10**7])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_from_ten_rows_to_ten_million(n, epsilon):
    """With few rows the plan says that the noise drowns the signal, or that released statistics would be too noisy."""
    budget = {"n": n, "epsilon": epsilon, "delta": 1e-8}
    stages = MinMaxScaler(ranges=(0, 1)), Deduplicator()
    p = plan(*stages, MeanImputer(statistics="noisy"), StandardScaler(statistics="noisy"), classifier(), **budget)
    question = p.mechanism.question
    noise = p.mechanism.noise_scale * math.sqrt(question.size / question.steps)
    drowned = any("drowns" in warning for warning in p.warnings)
    assert drowned is (noise > question.bound / 2)
    if n == 10:
        assert drowned
    if n * epsilon < 500:
        with pytest.raises(NoRoute, match="too noisy"):
            plan(*stages, MeanImputer(), StandardScaler(), classifier(), **budget)
    if n * epsilon >= 10**4:
        assert plan(*stages, MeanImputer(), StandardScaler(), classifier(), **budget).warnings == ()


def test_one_row():
    assert plan(NormClipper(), GaussianMechanism(), n=1).mechanism.noise_scale > 1


def test_nothing_is_certified_by_a_plan():
    assert repr(plan(NormClipper(), GaussianMechanism())).startswith("PLAN: nothing has been certified")


# ---------------------------------------------------------------- the split of the budget


def release_error(p: Plan, release, mu: float) -> float:
    """Largest standard error of a released statistic over its public range, if it costs ``mu``."""
    domain = p.steps[release.at].domain
    norm = domain.row_norm
    entry = min(domain.entry_bound or norm, norm)
    noise = release.sensitivity / mu
    if release.statistic == "means":
        return noise / (2 * entry)  # of [-b, b]
    if release.statistic == "squares":
        return max(noise / (2 * entry), noise * entry / BOX_WEIGHT / entry**2)  # squares: of [0, b²]
    return max(noise / (2 * norm), math.sqrt(2) * norm * noise / norm**2)  # second moments: of a range R²


@pytest.mark.parametrize("n", [60, 400, 600, 800, 1000, 1300, 2000, 20_000])
@pytest.mark.parametrize("d", [1, 4])
def test_a_release_gets_five_to_twenty_percent_until_it_is_precise(n, d):
    stages = MinMaxScaler(ranges=(0, 1)), MeanImputer(statistics="noisy"), StandardScaler(statistics="noisy")
    p = plan(*stages, classifier(), n=n, d=d, epsilon=1.0, delta=1e-5)
    mu = total_mu(p)
    for release in p.releases:
        share = (release.mu / mu) ** 2
        at = min(range(4), key=lambda i: abs(SHARES[i] - share))
        assert share == pytest.approx(SHARES[at], rel=1e-6)
        if at < 3:
            assert release_error(p, release, release.mu) <= 0.05 * (1 + 1e-5)
        if at > 0:
            assert release_error(p, release, mu * math.sqrt(SHARES[at - 1])) > 0.05 * (1 - 1e-5)
    rest = 1 - sum((r.mu / mu) ** 2 for r in p.releases)
    assert (p.mechanism.loss.mu / mu) ** 2 == pytest.approx(rest, rel=1e-4)


def test_every_step_of_the_ladder_occurs():
    shares = set()
    for n in (500, 850, 1100, 20_000):
        p = plan(MinMaxScaler(ranges=(0, 1)), MeanImputer(statistics="noisy"), GaussianMechanism(), n=n)
        shares.add(round((p.releases[0].mu / total_mu(p)) ** 2, 3))
    assert shares == set(SHARES)


@pytest.mark.parametrize("n", [100, 200, 500, 1000, 5000])
def test_auto_does_not_offer_statistics_that_are_too_noisy(n):
    p = plan(NormClipper(), StandardScaler(), GaussianMechanism(), n=n)
    noisy = next(a for a in p.alternatives if "noisy" in a.route)
    explicit = plan(NormClipper(), StandardScaler(statistics="noisy"), GaussianMechanism(), n=n)
    imprecise = release_error(explicit, explicit.releases[0], total_mu(explicit) * math.sqrt(0.2)) > 0.05
    assert ("too noisy" in noisy.reason) is imprecise
    assert imprecise is (n <= 200)
    assert (noisy.status == "not offered") is imprecise


def test_a_gate_gets_five_percent():
    p = plan(NormClipper(), PCA(1, statistics="exact"), GaussianMechanism())
    assert (p.gate.mu / total_mu(p)) ** 2 == pytest.approx(0.05, rel=1e-4)


def test_where_deltas_add_a_gate_gets_a_tenth_of_delta():
    p = plan(NormClipper(), StandardScaler(statistics="noisy"), PCA(1, statistics="exact"), GaussianMechanism())
    assert p.gate.adding
    assert p.gate.delta == pytest.approx(0.1 * (p.delta - p.allowance))


def test_a_pipeline_that_ends_in_a_transformer_gives_everything_to_its_releases():
    p = plan(MinMaxScaler(ranges=(0, 1)), MeanImputer(), StandardScaler())
    assert p.mechanism is None
    assert [step.way.name for step in p.steps] == ["public", "noisy", "noisy"]
    assert [(r.mu / total_mu(p)) ** 2 for r in p.releases] == pytest.approx([0.5, 0.5], rel=1e-6)


def test_the_users_shares():
    stages = NormClipper(), StandardScaler(statistics="noisy"), PCA(1, statistics="exact"), GaussianMechanism()
    p = plan(*stages, budget={"gate": 0.3, "release": 0.4})
    mu = total_mu(p)
    assert (p.gate.mu / mu) ** 2 == pytest.approx(0.3, rel=1e-4)
    assert (p.releases[0].mu / mu) ** 2 == pytest.approx(0.4, rel=1e-6)
    assert (p.mechanism.loss.mu / mu) ** 2 == pytest.approx(0.3, rel=1e-4)


@pytest.mark.parametrize(
    "budget",
    [{"relase": 0.1}, {"release": 0.0}, {"release": 1.5}, {"release": True}, {"release": "a"}, {"gate": math.nan}, 0.1],
    ids=str,
)
@pytest.mark.parametrize(
    "stages",
    [(), (StandardScaler(statistics="noisy"),), (PCA(1, statistics="exact"),)],
    ids=["no release, no gate", "release", "gate"],
)
def test_impossible_shares_are_refused_whatever_the_route(budget, stages):
    with pytest.raises(InvalidParameter, match="budget"):
        plan(NormClipper(), *stages, GaussianMechanism(), budget=budget)


def test_releases_that_leave_nothing_are_refused():
    with pytest.raises(NoRoute, match="use the whole budget"):
        plan(NormClipper(), StandardScaler(statistics="noisy"), GaussianMechanism(), budget={"release": 1.0})


# ---------------------------------------------------------------- release points


def test_affine_stages_share_one_release():
    p = plan(
        NormClipper(), StandardScaler(clip=None, statistics="noisy"), PCA(1, statistics="noisy"), GaussianMechanism()
    )
    (release,) = p.releases
    assert (release.at, release.statistic, release.serves, release.purpose) == (1, "matrix", (1, 2), "fit")


def test_a_clip_between_ends_a_release_point():
    p = plan(NormClipper(), StandardScaler(statistics="noisy"), PCA(1, statistics="noisy"), GaussianMechanism())
    assert [(r.at, r.serves) for r in p.releases] == [(1, (1,)), (2, (2,))]
    p = plan(
        NormClipper(),
        StandardScaler(clip=None, statistics="noisy"),
        NormClipper(2.0),
        PCA(1, statistics="noisy"),
        GaussianMechanism(),
    )
    assert [(r.at, r.serves) for r in p.releases] == [(1, (1,)), (3, (3,))]


def test_deduplication_between_ends_a_release_point():
    stages = StandardScaler(clip=None, statistics="noisy"), Deduplicator(), PCA(1, statistics="noisy")
    assert [r.at for r in plan(NormClipper(), *stages, GaussianMechanism()).releases] == [1, 3]


def test_an_imputer_releases_its_own_statistics():
    stages = MeanImputer(statistics="noisy"), StandardScaler(clip=None, statistics="noisy")
    p = plan(MinMaxScaler(ranges=(0, 1)), *stages, GaussianMechanism())
    assert [(r.at, r.statistic) for r in p.releases] == [(1, "means"), (2, "squares")]


def test_only_a_mechanism_that_predicts_pays_for_prediction():
    stages = NormClipper(), StandardScaler(statistics="exact")
    assert plan(*stages, GaussianMechanism()).releases == ()
    (release,) = plan(*stages, classifier()).releases
    assert release.purpose == "predict"
    assert plan(*stages, PCA(1, statistics="exact"), classifier()).releases[0].serves == (1,)


def test_a_release_costs_the_sensitivity_of_the_rows_as_they_are_there():
    """2R/n for one replaced row; twice that where a key may switch two further rows on and off."""
    raw = plan(NormClipper(), PCA(1, statistics="noisy"), GaussianMechanism())
    keyed = plan(NormClipper(), Deduplicator(key=[0]), PCA(1, statistics="noisy"), GaussianMechanism())
    assert raw.releases[0].sensitivity == pytest.approx(2 / 5000, rel=1e-6)
    assert keyed.releases[0].sensitivity == pytest.approx(4 / 5000, rel=1e-6)


# ---------------------------------------------------------------- the choice of "auto"


@pytest.mark.parametrize("n", [1500, 5000, 100_000])
@pytest.mark.parametrize("mechanism", [GaussianMechanism, classifier])
@pytest.mark.parametrize(
    "stages",
    [
        lambda a, b: (MeanImputer(max_missing=50, statistics=a), StandardScaler(statistics=b)),
        lambda a, b: (StandardScaler(statistics=a, min_std=0.4), PCA(1, statistics=b)),
    ],
)
def test_auto_takes_the_least_noise(n, mechanism, stages):
    """Against every combination, planned by itself; too noisy statistics are only taken when asked for."""

    def made(a: str, b: str) -> Plan | None:
        try:
            return plan(MinMaxScaler(ranges=(0, 1)), *stages(a, b), mechanism(), n=n)
        except NoRoute:
            return None

    def noise(p: Plan) -> float:
        return p.mechanism.sensitivity / p.mechanism.loss.mu

    chosen = made("auto", "auto")
    assert chosen is not None
    offered = {a.route for a in chosen.alternatives if a.status != "not offered"}
    compared = 0
    for a, b in itertools.product(["exact", "noisy"], repeat=2):
        other = made(a, b)
        route = next((o for o in offered if f" {a}, " in o and o.endswith(f" {b}")), None)
        if other is not None and route is not None:
            compared += 1
            assert noise(chosen) <= noise(other) * (1 + 1e-8)
    assert compared == len(offered) >= 1


class Choice(Stage):
    """A stage whose ways are all the same, so nothing but their names can decide."""

    def __init__(self, names=("exact", "noisy", "public"), stretch=1.0):
        self.names = names
        self.stretch = stretch

    def ways(self, domain: Domain, distance: Distance) -> tuple[Way, ...]:
        return tuple(Way.by(name, "row-wise.identity", domain, distance) for name in self.names)


@pytest.mark.parametrize("names", list(itertools.permutations(["public", "noisy", "exact"])))
def test_ties_go_to_public_then_noisy_then_exact(names):
    for count in (1, 2, 3):
        p = plan(NormClipper(), Choice(names[:count]), GaussianMechanism())
        assert p.steps[1].way.name == min(names[:count], key=["public", "noisy", "exact"].index)


@pytest.mark.parametrize("following", [StandardScaler, lambda: PCA(1)])
def test_an_imputer_with_nothing_to_fill_lets_the_others_work(following):
    p = plan(NormClipper(), MeanImputer(max_missing=0), following(), GaussianMechanism())
    assert p.steps[1].way.name == "public"


def test_explicit_statistics_are_obeyed():
    for statistics in ("exact", "noisy"):
        for n in (100, 5000):
            p = plan(NormClipper(), StandardScaler(statistics=statistics), GaussianMechanism(), n=n)
            assert p.steps[1].way.name == statistics
            assert len(p.alternatives) == 1


def test_unknown_statistics_are_refused():
    with pytest.raises(InvalidParameter, match="statistics"):
        plan(NormClipper(), StandardScaler(statistics="median"), GaussianMechanism())


def test_the_alternatives_list_every_route_with_its_figure_or_its_reason():
    p = plan(NormClipper(), StandardScaler(), PCA(1), GaussianMechanism())
    assert len(p.alternatives) == 4
    assert [a.status for a in p.alternatives].count("chosen") == 1
    for a in p.alternatives:
        assert (a.noise_scale is None) is (a.status == "not offered")
        assert bool(a.reason) is (a.status == "not offered")
    chosen = next(a for a in p.alternatives if a.status == "chosen")
    assert chosen.noise_scale == p.mechanism.noise_scale


class TestNoRoute:
    def test_a_map_cannot_be_released_without_its_statistics(self):
        with pytest.raises(NoRoute, match="the map itself is released"):
            plan(NormClipper(), StandardScaler(statistics="exact"))

    def test_every_reason_is_given(self):
        with pytest.raises(NoRoute) as caught:
            plan(NormClipper(), StandardScaler(), n=20)
        assert "exact: the map itself is released" in str(caught.value)
        assert "noisy: released statistics of standardscaler would be too noisy" in str(caught.value)
        assert caught.value.fix

    def test_a_delta_below_the_sampler(self):
        with pytest.raises(NoRoute, match="sampler"):
            plan(NormClipper(), classifier(), delta=1e-17)


class TestBudget:
    @pytest.mark.parametrize("epsilon", [0, -1.0, math.inf, math.nan, True, "1", None, 501.0])
    def test_impossible_epsilons(self, epsilon):
        with pytest.raises(ImpossibleBudget, match="epsilon"):
            plan(NormClipper(), GaussianMechanism(), epsilon=epsilon)

    @pytest.mark.parametrize("delta", [0, -1e-6, 1.0, 2.0, math.nan, True, None, 1 / 5000, 1e-3])
    def test_impossible_deltas(self, delta):
        with pytest.raises(ImpossibleBudget, match="delta"):
            plan(NormClipper(), GaussianMechanism(), delta=delta)

    def test_numbers_of_any_kind(self):
        """A grid search passes numpy numbers."""
        for number in (1, 1.0, np.float64(1), np.float32(1), np.int64(1)):
            assert plan(NormClipper(), GaussianMechanism(), epsilon=number).mechanism is not None

    def test_more_budget_less_noise(self):
        scales = [plan(NormClipper(), GaussianMechanism(), epsilon=e).mechanism.noise_scale for e in (0.1, 1, 10)]
        assert scales == sorted(scales, reverse=True)


# ---------------------------------------------------------------- what depends on what


ROUTES = [
    (NormClipper(), StandardScaler(statistics="noisy"), PCA(1, statistics="exact"), classifier(max_iter=9)),
    (NormClipper(), PCA(1, statistics="exact"), StandardScaler(statistics="noisy"), GaussianMechanism()),
    (
        MinMaxScaler(ranges=(0, 1)),
        Deduplicator(key=[0]),
        MeanImputer(statistics="noisy"),
        StandardScaler(floor=False, statistics="exact"),
        classifier(max_iter=9),
    ),
]


@pytest.mark.parametrize("steps", ROUTES)
def test_no_sensitivity_depends_on_a_noise_scale(steps):
    def bounds(epsilon: float, delta: float):
        p = plan(*steps, epsilon=epsilon, delta=delta)
        conditions = [(name, c.name, c.statement, c.unit) for name, c in p.conditions]
        return (
            [(s.way.name, s.way.parameters, s.way.domain, s.way.distance) for s in p.steps],
            [(r.at, r.statistic, r.sensitivity) for r in p.releases],
            conditions,
            p.end,
            p.mechanism.sensitivity,
            p.mechanism.question,
        )

    assert bounds(0.1, 1e-9) == bounds(1.0, 1e-6) == bounds(10.0, 1e-5)


def data(kind: str, n: int = 400) -> tuple[pd.DataFrame, np.ndarray]:
    """Private data of one shape: all different, all the same, mostly gaps, one class only."""
    rng = np.random.default_rng(1)
    X, y = rng.uniform(0, 1, (n, 3)), rng.integers(2, size=n)
    if kind == "same":
        X[:], y[:] = 0.3, 0
    if kind == "gaps":
        X[10:] = np.nan
    if kind == "one class":
        y[:] = 1
    if kind == "zeros and ones":
        X = np.round(X)
    return pd.DataFrame(X, columns=["a", "b", "c"]), y


def test_nothing_public_depends_on_anything_private():
    """Kept counts, gaps and classes differ; plan, noise, steps, shapes and attributes do not."""
    seen = []
    for kind in ("different", "same", "gaps", "one class", "zeros and ones"):
        pipe = make_pipeline(
            MinMaxScaler(ranges=(0, 1)),
            Deduplicator(),
            MeanImputer(),
            StandardScaler(),
            classifier(),
            epsilon=3.0,
            delta=1e-5,
        ).fit(*data(kind))
        document = pipe.certificate_.to_dict()
        del document["released"]["sha256"], document["digest"]
        attributes = {name: {k: np.shape(v) for k, v in vars(twin).items()} for name, twin in pipe.named_steps.items()}
        scales = dict(pipe.release_.noise_scale)
        seen.append((document, attributes, scales, {k: v.shape for k, v in pipe.release_.items()}))
    assert all(one == seen[0] for one in seen[1:])


def test_fit_runs_the_plan_that_is_shown_before():
    pipe = make_pipeline(
        MinMaxScaler(ranges=(0, 1)), Deduplicator(), MeanImputer(), classifier(), epsilon=5.0, delta=1e-5
    )
    before = pipe.plan(Domain(n_rows=400, n_features=3, feature_names=("a", "b", "c")))
    document = pipe.fit(*data("gaps")).certificate_
    assert document["mechanism"]["noise_scale"] == before.mechanism.noise_scale
    assert [r["noise_scale"] for r in document["releases"]] == [r.noise_scale for r in before.releases]
    assert [s["distance"] for s in document["steps"]] == [s.way.distance.to_dict() for s in before.steps]


def test_the_model_is_charged_for_the_norm_that_arrives_and_for_its_intercept():
    """R is that of the rows behind the stages, and an intercept makes it √(R² + 1)."""
    for intercept in (False, True):
        p = plan(NormClipper(), StandardScaler(clip=None), classifier(fit_intercept=intercept, clip=1e6))
        arrived = p.end[0].row_norm
        assert arrived > 1.5
        norm = math.hypot(arrived, 1.0) if intercept else arrived
        assert p.mechanism.question.bound == pytest.approx(logistic_gradient_norm(norm, 5.0), rel=1e-9)
        assert p.mechanism.question.size == 3 + intercept
        least = 2 * norm / (1 + math.exp(-5 * norm)) / 5000
        assert p.mechanism.sensitivity >= least


def test_gradients_are_taken_inside_the_ball(monkeypatch):
    """Rows that are unit vectors show the coefficients to whoever sees the margins."""
    seen = []
    original = descent.expit

    def expit(margins):
        seen.append(np.array(margins[:3]))
        return original(margins)

    monkeypatch.setattr(descent, "expit", expit)
    X, y = np.vstack([np.eye(3)] * 4), np.arange(12) % 2
    make_pipeline(
        NormClipper(), classifier(fit_intercept=False, coef_norm=0.7, max_iter=20), epsilon=0.1, random_state=0
    ).fit(X, y)
    assert len(seen) == 20
    norms = [float(np.linalg.norm(theta)) for theta in seen]
    assert max(norms) == pytest.approx(0.7)
    assert all(norm <= 0.7 * (1 + 1e-12) for norm in norms)


def test_a_million_rows_at_either_end_of_the_ball():
    """The lattice is fixed by public numbers: the same code for a mean of R and one of R/5, and no exception."""
    pipe = make_pipeline(
        NormClipper(), GaussianMechanism(), epsilon=4.887, delta=1e-7, invalid="repair", random_state=0
    )
    for value in (1.0, 0.2, -1e300, math.nan, math.inf):
        released = pipe.fit(np.full((10**6, 1), value)).release_
        centre = max(-1.0, value) if math.isfinite(value) else 0.0
        ((name, scale),) = released.noise_scale.items()
        assert abs(released[name][0] - centre) < 8 * scale


def test_single_precision_is_summed_as_exactly_as_double(monkeypatch):
    """Without noise, the mean of a million rows of float32 is that of their exact sum."""
    monkeypatch.setattr(Noise, "release", lambda self, value, noise_scale, bound: np.asarray(value))
    column = np.random.default_rng(0).uniform(0.05, 0.15, 10**6).astype(np.float32)
    pipe = make_pipeline(NormClipper(), GaussianMechanism(), delta=1e-7).fit(pd.DataFrame({"a": column}))
    assert abs(pipe.release_["gaussianmechanism.answer"][0] - math.fsum(column.tolist()) / 10**6) < 1e-15


# ---------------------------------------------------------------- public facts


class TestFacts:
    @staticmethod
    def facts(p: Plan) -> dict[str, tuple[str, str]]:
        return {fact.name: (fact.value, fact.origin) for fact in p.facts}

    def test_declared(self):
        domain = Domain(
            n_rows=5000,
            n_features=2,
            feature_names=("a", "b"),
            row_norm=2.0,
            max_missing=7,
            rows_per_unit=3,
            classes=(0, 1),
        )
        p = plan(MeanImputer(), LogisticRegression(), domain=domain)
        facts = self.facts(p)
        assert facts["n_rows"] == ("5000", "declared")
        assert facts["n_features"] == ("2", "declared")
        assert facts["feature_names"] == ("a, b", "declared")
        assert facts["row_norm"] == ("2", "declared; rows above it are clipped")
        assert facts["gaps"] == ("at most 7 rows", "declared")
        assert facts["rows_per_unit"] == ("3", "declared")
        assert facts["classes"] == ("0, 1", "declared")
        assert p.domain == dataclasses.replace(domain, min_present=5000)
        assert p.distance == Distance.neighbours(3)

    def test_completed_at_fit(self):
        X, y = data("different")
        pipe = make_pipeline(MinMaxScaler(ranges=(0, 1)), MeanImputer(), classifier(), epsilon=5.0, delta=1e-5).fit(
            X, y
        )
        facts = {f["name"]: (f["value"], f["origin"]) for f in pipe.certificate_["facts"]}
        assert facts["n_rows"] == ("400", "shape of X")
        assert facts["n_features"] == ("3", "shape of X")
        assert facts["feature_names"] == ("a, b, c", "schema of X")
        assert facts["row_norm"] == ("see the steps", "stage 'minmaxscaler'")
        assert facts["gaps"] == ("any row may have gaps", "imputer 'meanimputer'")
        assert facts["rows_per_unit"] == ("1", "default")
        assert facts["classes"] == ("0, 1", "parameter of the model")

    def test_without_an_imputer_there_are_no_gaps(self):
        p = plan(NormClipper(), GaussianMechanism())
        assert self.facts(p)["gaps"] == ("none", "no imputer in the steps; a gap is an invalid value")
        assert p.domain.max_missing == 0

    def test_classes_read_from_y_are_not_public(self):
        X, y = data("different")
        pipe = make_pipeline(MinMaxScaler(ranges=(0, 1)), LogisticRegression(), delta=1e-5)
        (fact,) = [f for f in pipe.plan(Domain(n_rows=400, n_features=3)).facts if not f.public]
        assert fact.name == "classes"
        assert pipe.fit(X, y).certificate_.status == "CONDITIONAL"

    def test_the_smaller_of_two_bounds_on_gaps_counts(self):
        for declared, own in ((7, 12), (12, 7), (None, 7), (7, None), (7, 0.5)):
            domain = Domain(n_rows=500, n_features=2, row_norm=1.0, max_missing=declared)
            p = plan(MeanImputer(max_missing=own, statistics="exact"), GaussianMechanism(), domain=domain)
            assert p.end[1].moved == 7

    def test_a_declared_fact_that_differs_is_an_error(self):
        X, y = data("different")
        for domain in (Domain(n_rows=399), Domain(n_features=4), Domain(feature_names=("a", "b", "x"))):
            with pytest.raises(DomainMismatch):
                make_pipeline(MinMaxScaler(ranges=(0, 1)), classifier(), domain=domain, delta=1e-5).fit(X, y)
        with pytest.raises(DomainMismatch):
            make_pipeline(MinMaxScaler(ranges=(0, 1)), classifier(), domain=Domain(classes=(0, 2)), delta=1e-5).fit(
                X, y
            )

    def test_a_bound_that_is_missing_is_named_with_its_fix(self):
        with pytest.raises(MissingBound, match="row_norm") as caught:
            plan(StandardScaler(), GaussianMechanism())
        assert "NormClipper" in caught.value.fix
        with pytest.raises(MissingBound, match="n_rows"):
            make_pipeline(NormClipper(), GaussianMechanism()).plan()


class TestDistance:
    """What is impossible is refused when the plan is made, by a typed error."""

    def test_a_total_without_a_moved_row(self):
        with pytest.raises(InvalidParameter, match="total"):
            Distance(replaced=1, moved=0, total=3.0)

    @pytest.mark.parametrize("field", ["replaced", "toggled", "moved", "radius"])
    @pytest.mark.parametrize("value", [math.inf, -1.0])
    def test_infinite_and_negative_parts(self, field, value):
        with pytest.raises(InvalidParameter):
            Distance(**{"moved": 1.0, "radius": 1.0, "replaced": 1.0, field: value})

    def test_toggled_rows_cost(self):
        domain = Domain(n_rows=100, n_features=2, row_norm=1.0, min_present=1)
        for mechanism in (GaussianMechanism(noise_scale=1.0), classifier(noise_scale=1.0, max_iter=5)):
            assert mechanism.privacy_map(domain, Distance(toggled=1)).mu > 0


def test_bad_parameters_of_an_imputer_are_typed_errors():
    for bad in ({"max_missing": "few"}, {"max_missing": -1}, {"max_missing": True}, {"min_observed": 0}):
        with pytest.raises(InvalidParameter):
            plan(NormClipper(), MeanImputer(**bad), GaussianMechanism())


def test_a_pipeline_object_plans_as_often_as_asked_and_remembers_nothing():
    pipe = Pipeline([("clip", NormClipper()), ("mean", GaussianMechanism())])
    before = dict(vars(pipe))
    assert repr(pipe.plan(Domain(n_rows=10, n_features=1))) == repr(pipe.plan(Domain(n_rows=10, n_features=1)))
    assert vars(pipe) == before
