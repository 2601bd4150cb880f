"""Plans: one budget solve before any data; every total within (epsilon, delta), whatever the pipeline."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from plans import classifier, data, plan, total_mu

from ppdp import Distance, Domain, Ledger, Pipeline, make_pipeline
from ppdp import transformers as S
from ppdp.bounds.learning import logistic_gradient_norm
from ppdp.certificate.record import OF_A_MODEL
from ppdp.exceptions import InvalidParameter, NoRoute
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.pipeline.estimator import state_of
from ppdp.pipeline.planning.plan import Plan
from ppdp.privacy.gaussian import gaussian_delta
from ppdp.privacy.noise.sampler import Noise

# ---------------------------------------------------------------- totals


def drawn(r: random.Random) -> tuple[list, Domain, dict]:
    """A pipeline, public facts and a budget, all random."""
    d = r.choice([1, 2, 3, 7, 20])
    way = lambda: r.choice(["auto", "auto", "exact", "noisy"])  # noqa: E731
    steps = [
        r.choice(
            [
                S.NormClipper(r.choice([0.5, 3.0])),
                S.MinMaxScaler(ranges=(0, 10)),
                S.RowMap(out_ranges=(-1, 1), lipschitz=r.choice([None, 2.0])),
            ]
        )
    ]
    if r.random() < 0.4:
        steps.append(S.Deduplicator(subset=r.choice([None, [0]])))
    steps.append(
        S.MeanImputer(
            min_observed=r.choice([0.5, 0.9, 5]),
            max_missing=r.choice([None, 3, 0.2]),
            use_floor=r.random() < 0.7,
            fit_mode=way(),
        )
    )
    for _ in range(r.randrange(3)):
        steps.append(
            r.choice(
                [
                    S.StandardScaler(
                        use_floor=r.random() < 0.6, clip=r.choice(["auto", None, 1.0]), min_std=r.choice([None, 0.1])
                    ),
                    S.StandardScaler(with_mean=False, fit_mode=way()),
                    S.PCA(1, fit_mode=way(), min_gap=r.choice([None, 0.05])),
                    S.NormClipper(2.0),
                    S.RowMap(out_ranges=(-1, 1), lipschitz=r.choice([None, 1.0])),
                    S.SoftPCA(fit_mode=way()),
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
@pytest.mark.repeated("seed", keep=4)
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
        numbers = (p.gate is not None) + sum(len(noise) for noise in numbers_drawn(p))
        assert p.allowance >= (1 + math.exp(p.epsilon)) * numbers * 2.0**-60
        for release in p.releases:
            assert release.sensitivity / release.noise_scale <= release.mu
    assert planned >= 8


def numbers_drawn(p: Plan) -> list[range]:
    """One range per noisy answer, as long as the answer."""
    d = [step.domain.d for step in p.steps]
    sizes = {
        "means": lambda k: k,
        "squares": lambda k: 2 * k,
        "diagonal": lambda k: 2 * k,
        "squares-in-parts": lambda k: 2 * k,
        "moment": lambda k: k * (k + 1) // 2,
    }
    sizes["matrix"] = lambda k: k + sizes["moment"](k)
    answers = [range(sizes[r.statistic](d[r.at])) for r in p.releases]
    answers += [
        range((51 + 128) * d[r.at]) for r in p.releases if r.statistic == "squares-in-parts"
    ]  # in front of squares
    if p.mechanism is not None:
        answers += [range(p.mechanism.question.size)] * p.mechanism.question.steps
    return answers


@pytest.mark.parametrize("n", [10, 100, 1000, 10**4, 10**5, 10**6, 10**7])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.repeated("epsilon")
def test_from_ten_rows_to_ten_million(n, epsilon):
    """With few rows the plan says that the noise drowns the signal, or that released statistics would be too noisy."""
    budget = {"n": n, "epsilon": epsilon, "delta": 1e-8}
    stages = S.MinMaxScaler(ranges=(0, 1)), S.Deduplicator()
    p = plan(*stages, S.MeanImputer(fit_mode="noisy"), S.StandardScaler(fit_mode="noisy"), classifier(), **budget)
    question = p.mechanism.question
    noise = p.mechanism.noise_scale * (question.drowning or math.sqrt(question.size / question.steps) / question.bound)
    drowned = any("drowns" in warning for warning in p.warnings)
    assert drowned is (noise > 0.11)
    if n == 10:
        assert drowned
    if n * epsilon <= 50:
        with pytest.raises(NoRoute, match="too noisy"):
            plan(*stages, S.MeanImputer(), S.StandardScaler(), classifier(), **budget)
    elif n * epsilon < 500:
        assert plan(*stages, S.MeanImputer(), S.StandardScaler(), classifier(), **budget).warnings
    if n * epsilon >= 10**4:
        assert plan(*stages, S.MeanImputer(), S.StandardScaler(), classifier(), **budget).warnings == ()


def test_one_row():
    assert plan(S.NormClipper(), GaussianMechanism(), n=1).mechanism.noise_scale > 1


def test_nothing_is_certified_by_a_plan():
    assert repr(plan(S.NormClipper(), GaussianMechanism())).startswith("PLAN: nothing has been certified")


# ---------------------------------------------------------------- what depends on what


ROUTES = [
    (S.NormClipper(), S.StandardScaler(fit_mode="noisy"), S.PCA(1, fit_mode="exact"), classifier(max_iter=9)),
    (S.NormClipper(), S.PCA(1, fit_mode="exact"), S.StandardScaler(fit_mode="noisy"), GaussianMechanism()),
    (
        S.MinMaxScaler(ranges=(0, 1)),
        S.Deduplicator(subset=[0]),
        S.MeanImputer(fit_mode="noisy"),
        S.StandardScaler(use_floor=False, fit_mode="exact"),
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
            replace(p.mechanism.question, warnings=()),
        )

    assert bounds(0.1, 1e-9) == bounds(1.0, 1e-6) == bounds(10.0, 1e-5)


def test_nothing_public_depends_on_anything_private():
    """Kept counts, gaps and classes differ; plan, noise, steps, shapes and attributes do not."""
    seen = []
    for kind in ("different", "same", "gaps", "one class", "zeros and ones"):
        pipe = make_pipeline(
            S.MinMaxScaler(ranges=(0, 1)),
            S.Deduplicator(),
            S.MeanImputer(),
            S.StandardScaler(),
            classifier(),
            epsilon=3.0,
            delta=1e-5,
        ).fit(*data(kind))
        document = pipe.certificate_.to_dict()
        del document["released"]["sha256"], document["digest"], document["issued"]["date"]
        for name in OF_A_MODEL:  # as they follow from the released numbers
            document["released"].pop(name, None)
        for share in document["diagnostics"]["shares"]:
            del share["share"]
        attributes = {name: {k: np.shape(v) for k, v in vars(twin).items()} for name, twin in pipe.named_steps.items()}
        scales = dict(pipe.release_.noise_scale)
        seen.append((document, attributes, scales, {k: v.shape for k, v in pipe.release_.items()}))
    assert all(one == seen[0] for one in seen[1:])


def test_fit_runs_the_plan_that_is_shown_before():
    pipe = make_pipeline(
        S.MinMaxScaler(ranges=(0, 1)), S.Deduplicator(), S.MeanImputer(), classifier(), epsilon=5.0, delta=1e-5
    )
    before = pipe.plan(Domain(n_rows=400, n_features=3, feature_names=("a", "b", "c")))
    document = pipe.fit(*data("gaps")).certificate_
    assert document["mechanism"]["noise_scale"] == before.mechanism.noise_scale
    assert [r["noise_scale"] for r in document["releases"]] == [r.noise_scale for r in before.releases]
    assert [s["distance"] for s in document["steps"]] == [s.way.distance.to_dict() for s in before.steps]


def test_the_model_is_charged_for_the_norm_that_arrives_and_for_its_intercept():
    """R is that of the rows behind the stages, and an intercept makes it √(R² + 1)."""
    for intercept in (False, True):
        p = plan(S.NormClipper(), S.StandardScaler(clip=None), classifier(fit_intercept=intercept, max_grad_norm=1e6))
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
    original = LogisticRegression._residuals

    def residuals(model, margins, y):
        seen.append(np.array(margins[:3]))
        return original(model, margins, y)

    monkeypatch.setattr(LogisticRegression, "_residuals", residuals)
    X, y = np.vstack([np.eye(3)] * 4), np.arange(12) % 2
    make_pipeline(
        S.NormClipper(), classifier(fit_intercept=False, max_coef_norm=0.7, max_iter=20), epsilon=0.1, random_state=0
    ).fit(X, y)
    assert len(seen) == 20
    norms = [float(np.linalg.norm(theta)) for theta in seen]
    assert max(norms) == pytest.approx(0.7)
    assert all(norm <= 0.7 * (1 + 1e-12) for norm in norms)


def test_a_million_rows_at_either_end_of_the_ball():
    """The lattice is fixed by public numbers: the same code for a mean of R and one of R/5, and no exception."""
    pipe = make_pipeline(
        S.NormClipper(), GaussianMechanism(), epsilon=4.887, delta=1e-7, on_invalid="repair", random_state=0
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
    pipe = make_pipeline(S.NormClipper(), GaussianMechanism(), delta=1e-7).fit(pd.DataFrame({"a": column}))
    assert abs(pipe.release_["gaussianmechanism.answer"][0] - math.fsum(column.tolist()) / 10**6) < 1e-15


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


def test_a_pipeline_object_plans_as_often_as_asked_and_remembers_only_the_facts_it_was_given():
    pipe = Pipeline([("clip", S.NormClipper()), ("mean", GaussianMechanism())])
    before = dict(vars(pipe))
    assert repr(pipe.plan(Domain(n_rows=10, n_features=1))) == repr(pipe.plan(Domain(n_rows=10, n_features=1)))
    assert vars(pipe).keys() - before.keys() == {"_state"}
    pipe.plan(Domain(n_rows=10, n_features=1, row_norm=0.5))
    assert state_of(pipe).promised.row_norm == 0.5
