"""Rows that are added or removed cost no more than replaced ones, and no less than an adversary over slots finds."""

from dataclasses import replace

import pytest
from effort import rounds

from ppdp import Adjacency, Domain, make_pipeline
from ppdp import mechanisms as M
from ppdp.audit import attack_stability
from ppdp.bounds import lookup
from ppdp.bounds.sketch import noise_of
from ppdp.data.noisy_statistics import STATISTICS
from ppdp.mechanisms.base import Mechanism
from ppdp.testing import REGISTRY
from ppdp.transformers import Deduplicator, GridDeduplicator, MeanImputer, MinMaxScaler, NormClipper, StandardScaler

N = 1000
EXAMPLES = [kind.example() for name, kind in REGISTRY.items() if not name.startswith("Diffprivlib")]
LAST = [one for one in EXAMPLES if isinstance(one, Mechanism)]
STAGES = [one for one in EXAMPLES if not isinstance(one, Mechanism)]
ROUNDING = 1 + 1e-12


def domain(stage=None, **facts):
    targets = (1.0, 2.0) if getattr(stage, "y_range", 0) is None else (-1.0, 1.0)
    gaps = {"max_missing": None if getattr(stage, "fills_gaps", False) else 0}
    known = {"n_rows": N, "n_features": 3, "row_norm": 1.0, "entry_bound": 0.9, "classes": (0, 1), "y_range": targets}
    return Domain(**known, **gaps, **facts)


def cost(mechanism, facts, distance):
    """Sensitivity, or what noise of a usual scale costs: an epsilon, of which 100 and more are alike."""
    question = mechanism.query_spec(facts, 0.3)
    if question.gaussian:
        return question.sensitivity(facts, distance)
    scale = noise_of(mechanism.rank) if isinstance(mechanism, M.WishartMechanism) else question.bound
    return min(question.privacy_map(facts, distance, scale).epsilon(1e-6), 100.0)


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.repeated("rows")
@pytest.mark.parametrize("mechanism", LAST, ids=repr)
def test_no_mechanism_pays_more_for_added_rows_than_for_replaced_ones(mechanism, rows):
    facts = domain(mechanism)
    added, replaced = Adjacency.add_remove(rows).distance, Adjacency.replace(rows).distance
    assert 0 < cost(mechanism, facts, added) <= cost(mechanism, facts, replaced) * ROUNDING


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.repeated("rows")
@pytest.mark.parametrize("stage", STAGES, ids=repr)
def test_no_stage_makes_more_of_added_rows_than_of_replaced_ones(stage, rows):
    """But where a fitted map moves all rows: rows present on one side only are then among those that may."""
    facts = domain(stage)
    added, replaced = Adjacency.add_remove(rows).distance, Adjacency.replace(rows).distance
    ways = {way.name: way for way in stage.fit_modes(facts, replaced)}
    for way in stage.fit_modes(facts, added):
        other = ways[way.name]
        for one, another in zip(way.conditions, other.conditions, strict=True):
            assert one.unit <= another.unit
        far, moved = other.distance, way.distance.moved
        if moved > far.moved:
            all_moved = replace(far, moved=moved, total=far.total + rows * far.radius)
            far = all_moved.knowing(sums=far.sums, moments=far.moments)
        assert moved <= other.distance.moved + rows
        for last in LAST:
            if last.__class__.__name__.endswith("Regressor") or way.domain.missing_rows:
                continue
            one = cost(last, way.domain, way.distance)
            assert one <= cost(last, other.domain, far) * ROUNDING, (way.name, last)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_no_release_pays_more_for_added_rows_than_for_replaced_ones(statistic):
    formula = lookup(STATISTICS[statistic].formula, "release")
    own = {"means": {"min_observed": 500}, "trimmed-means": {"min_observed": 500, "trimmed": 10}}.get(statistic, {})
    own |= {
        "quantile-choices": {"quantiles": [0.5, 0.9]},
        "ranges": {"columns": [1]},
        "clusters": {"n_clusters": 2},
    }.get(statistic, {})
    own |= {"label-means": {"columns": [1], "cells": 5}}.get(statistic, {})
    own |= {"light-label-moments": {"weight": 0.5}}.get(statistic, {})
    own |= {"modes": {"columns": [1], "sizes": [2], "values": [0.0, 1.0]}}.get(statistic, {})
    own |= {"categories": {"columns": [1], "max_categories": [5]}}.get(statistic, {})
    if statistic in ("medians", "quantile-pairs", "quantile-triples"):
        own = {"gap": 0.01} | ({} if statistic == "medians" else {"lower": 0.25, "upper": 0.75})
    facts = domain().but(row_norm=None, entry_bound=None) if statistic == "categories" else domain()
    far = [formula(facts, kind(2).distance, **own) for kind in (Adjacency.add_remove, Adjacency.replace)]
    assert 0 < far[0] <= far[1] * ROUNDING


PLANS = {
    "sum": (NormClipper(1.0), M.GaussianMechanism("sum")),
    "rows": (NormClipper(1.0), M.GaussianMechanism("rows")),
    "scaled": (MinMaxScaler(ranges=(-1.0, 1.0)), StandardScaler(fit_mode="exact"), M.GaussianMechanism("mean")),
    "distinct": (NormClipper(1.0), Deduplicator(), M.GaussianMechanism("count")),
    "first of its cell": (NormClipper(1.0), GridDeduplicator(cell_width=0.5, keep="first"), M.LaplaceMechanism("sum")),
    "imputed": (MeanImputer(fit_mode="exact"), NormClipper(1.0), M.GaussianMechanism("mean")),
}


MORE = {
    "mean": (NormClipper(1.0), M.LaplaceMechanism()),
    "covariance": (NormClipper(1.0), M.GaussianMechanism("covariance")),
    "Laplace rows": (NormClipper(1.0), M.LaplaceMechanism("rows")),
    "signs": (NormClipper(1.0), M.SignMechanism()),
    "signs and a matrix": (NormClipper(1.0), M.SignMechanism("angle", n_signs=8)),
    "a median": (NormClipper(1.0), M.ExponentialMechanism(candidates=21)),
    "scaled with noise": (NormClipper(1.0), StandardScaler(fit_mode="noisy"), M.GaussianMechanism()),
    "weights": (NormClipper(1.0), GridDeduplicator(cell_width=0.5, keep="soft"), M.GaussianMechanism()),
    "a model": (NormClipper(1.0), M.LogisticRegression((0, 1))),
}


@pytest.mark.parametrize("name", [name for name in PLANS | MORE if name != "imputed"])
@pytest.mark.repeated("name", keep=6)
def test_no_plan_pays_more_for_added_rows_than_for_replaced_ones(name):
    """At the same cap and floor; every number of noise, the releases of stages included."""
    steps, facts = (PLANS | MORE)[name], Domain(n_rows=1000, n_features=2, max_missing=0, min_present=0)
    budget = {"epsilon": 8.0, "delta": 1e-4, "gate": None}
    plans = [
        make_pipeline(*steps, **budget, domain=facts.but(adjacency=adjacency)).plan()
        for adjacency in (Adjacency.add_remove(), Adjacency.replace())
    ]
    noise = [[plan.mechanism.noise_scale, *(release.noise_scale for release in plan.releases)] for plan in plans]
    assert all(one <= other * (1 + 1e-7) for one, other in zip(*noise, strict=True))


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.repeated("name", keep=3)
def test_no_rows_in_slots_come_further_apart_than_a_plan_says(name):
    facts = Domain(n_rows=10, n_features=2, row_norm=1.0, adjacency=Adjacency.add_remove())
    pipe = make_pipeline(*PLANS[name], epsilon=8.0, delta=1e-2, domain=facts, gate=None)
    report = attack_stability(pipe.plan(), evaluations=rounds(100))
    assert not report.violated
    assert {finding.ratio for finding in report.findings if finding.quantity == "slots"} == {1.0}
    if name in ("sum", "rows", "distinct"):
        assert max(finding.ratio for finding in report.findings if finding.name.endswith("end to end")) > 0.99
