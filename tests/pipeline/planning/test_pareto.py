"""The plan of many stages: the choice of exhaustive search, without its price."""

from __future__ import annotations

import numpy as np
import pytest
from plans import classifier, plan

from ppdp import Domain, Ledger, Pipeline
from ppdp import transformers as S
from ppdp.exceptions import NoRoute, PpdpError
from ppdp.mechanisms import GaussianMechanism, LaplaceMechanism
from ppdp.pipeline.planning.pareto import LISTED
from ppdp.pipeline.planning.plan import Plan
from ppdp.pipeline.planning.solve import PlanSolver


def searched(monkeypatch, listed: float, make) -> tuple[Plan | PpdpError, int]:
    """The plan, or its refusal, and how many routes were solved in all, with up to ``listed`` routes left alone."""
    solved: list[object] = []
    with monkeypatch.context() as patch:
        made, solve = PlanSolver.frontier, PlanSolver.solve

        def keeping(self, **parameters):
            found = made(self, **parameters)
            found.listed = listed
            return found

        patch.setattr(PlanSolver, "frontier", keeping)
        patch.setattr(PlanSolver, "solve", lambda self, route: (solved.append(route), solve(self, route))[1])
        try:
            return make(), len(solved)
        except PpdpError as error:
            return error, len(solved)


def some_stages(rng: np.random.Generator) -> list[tuple[str, object]]:
    """Stages of all kinds that have a choice, in an order that may or may not be possible."""
    gaps = [
        lambda: S.MeanImputer(max_missing=[None, 0.5, 20][rng.integers(3)]),
        lambda: S.TrimmedMeanImputer(),
        lambda: S.RegressionImputer(),
        lambda: S.MedianImputer(),
    ]
    pool = [
        lambda: S.StandardScaler(clip=[None, 1.0, "auto"][rng.integers(3)], min_std=[None, 0.5, 1.0][rng.integers(3)]),
        lambda: S.StandardScaler(use_floor=False, per_column=bool(rng.integers(2))),
        lambda: S.StandardScaler(min_std=0.4, per_column=False),
        lambda: S.SoftPCA(alpha=float(rng.choice([0.1, 1.0, 10.0]))),
        lambda: S.PCA(1, min_gap=float(rng.choice([0.01, 0.2])), with_mean=bool(rng.integers(2))),
        lambda: S.PCA(1, output="projected"),
        lambda: S.NormClipper(float(rng.choice([0.5, 2.0]))),
        lambda: S.Deduplicator(),
    ]
    chosen = [gaps[rng.integers(4)]()] if rng.random() < 0.6 else []
    chosen += [pool[i]() for i in rng.choice(len(pool), size=rng.integers(3, 6))]
    for stage in chosen:
        if hasattr(stage, "fit_mode") and rng.random() < 0.15:
            stage.set_params(fit_mode=rng.choice(["exact", "noisy"]))
    return [("range", S.MinMaxScaler(ranges=(0, 1))), *((f"s{i}", stage) for i, stage in enumerate(chosen))]


def some_pipeline(rng: np.random.Generator):
    last = [GaussianMechanism(), classifier(), None][rng.choice(3, p=[0.5, 0.35, 0.15])]
    steps = [*some_stages(rng), *([("last", last)] if last is not None else [])]
    budget = [None, {"release": 0.3}, {"gate": 0.2, "release": 0.02}][rng.choice(3, p=[0.7, 0.15, 0.15])]
    pipe = Pipeline(
        steps,
        epsilon=float(rng.choice([0.3, 1.0, 8.0])),
        delta=1e-6,
        gate=["auto", "laplace", None][rng.choice(3, p=[0.7, 0.1, 0.2])],
        budget=budget,
        ledger=Ledger() if rng.random() < 0.2 else None,
    )
    n = int(rng.choice([500, 5000, 100_000]))
    return pipe, Domain(n_rows=n, n_features=int(rng.integers(2, 6)), rows_per_unit=int(rng.choice([1, 1, 3])))


@pytest.mark.repeated("seed", keep=20)
@pytest.mark.parametrize("seed", range(40))
def test_the_choice_is_that_of_exhaustive_search(seed, monkeypatch):
    """Ways, releases, gate, distance and warnings, or a refusal of both."""
    pipe, domain = some_pipeline(np.random.default_rng(seed))
    every, routes = searched(monkeypatch, np.inf, lambda: pipe.plan(domain))
    chosen, _ = searched(monkeypatch, 0, lambda: pipe.plan(domain))
    assert isinstance(chosen, PpdpError) is isinstance(every, PpdpError)
    if isinstance(every, PpdpError):
        return
    assert routes == len(every.alternatives)
    assert [step.way.name for step in chosen.steps] == [step.way.name for step in every.steps]
    assert (chosen.releases, chosen.gate, chosen.end, chosen.warnings) == (
        every.releases,
        every.gate,
        every.end,
        every.warnings,
    )
    listed = {a.route: a for a in every.alternatives}
    for alternative in chosen.alternatives:  # the short list tells the truth, and a change that is impossible says why
        same = listed.get(alternative.route)
        assert alternative == same or (same is None and alternative.status == "not offered" and alternative.reason)


def test_a_mechanism_whose_noise_is_found_by_a_search_gets_no_more_than_its_tolerance(monkeypatch):
    def make():
        return plan(S.NormClipper(), S.SoftPCA(), S.StandardScaler(clip=1.0), LaplaceMechanism(), epsilon=8.0)

    every, _ = searched(monkeypatch, np.inf, make)
    chosen, _ = searched(monkeypatch, 0, make)
    assert len(every.alternatives) == 4
    assert chosen.mechanism.noise_scale <= every.mechanism.noise_scale * (1 + 2e-3)


def many(stages: int, *last, **parameters):
    """Scalers that can all go two ways, each with a clip, so that none shares its release."""
    steps = [S.StandardScaler(clip=1.0, min_std=0.5 if i % 2 else None) for i in range(stages)]
    return plan(S.NormClipper(), *steps, *last, n=100_000, **parameters)


@pytest.mark.parametrize("stages", [5, 8, 16, 32])
def test_as_many_routes_are_solved_as_there_are_stages_and_not_as_there_are_combinations(stages, monkeypatch):
    """At most one for every number of releases, and one for every change: exhaustive search solves 2 ** stages."""
    planned, solved = searched(monkeypatch, LISTED, lambda: many(stages, GaussianMechanism()))
    assert solved <= 4 * stages
    assert len(planned.alternatives) <= stages + 3


def test_the_list_of_a_long_pipeline_holds_the_choice_its_changes_and_the_two_extremes():
    planned = many(6, classifier())
    names = [step.name for step in planned.steps[1:]]
    chosen = {name: step.way.name for name, step in zip(names, planned.steps[1:])}
    flipped = {"exact": "noisy", "noisy": "exact"}
    expected = [chosen, *({**chosen, name: flipped[way]} for name, way in chosen.items())]
    expected += [dict.fromkeys(names, "exact"), dict.fromkeys(names, "noisy")]
    labels = {", ".join(f"{name} {way}" for name, way in route.items()) for route in expected}
    assert {a.route for a in planned.alternatives} == labels
    assert [a.status for a in planned.alternatives].count("chosen") == 1
    for a in planned.alternatives:
        assert (a.noise_scale is None) is (a.status == "not offered") is bool(a.reason)


def test_each_line_of_the_list_is_what_a_user_would_get():
    planned = many(5, GaussianMechanism())
    for a in planned.alternatives:
        if a.status == "not offered":
            continue
        ways = [part.rsplit(" ", 1)[1] for part in a.route.split(", ")]
        steps = [S.StandardScaler(clip=1.0, min_std=0.5 if i % 2 else None, fit_mode=w) for i, w in enumerate(ways)]
        alone = plan(S.NormClipper(), *steps, GaussianMechanism(), n=100_000)
        assert alone.mechanism.noise_scale == a.noise_scale


def test_a_refusal_of_many_routes_gives_its_reasons_in_a_few_lines():
    with pytest.raises(NoRoute, match="use the whole budget") as caught:
        many(32, classifier())
    assert len(str(caught.value)) < 2000
