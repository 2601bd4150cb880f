"""The stability attack finds what is false by search, half of every bound, and nothing where a bound holds."""

import math
from dataclasses import replace

import numpy as np
import printed_claims as printed
import pytest
from effort import rounds

from ppdp import Adjacency, Distance, Domain, make_pipeline
from ppdp import transformers as S
from ppdp.audit import Claim, StabilityFinding, StabilityReport, attack_stability, worst_pair
from ppdp.audit import search as climbing
from ppdp.data.rows import Rows
from ppdp.exceptions import InvalidParameter
from ppdp.mechanisms import GaussianMechanism, LaplaceMechanism, LogisticRegression
from ppdp.testing import REGISTRY
from ppdp.transformers import PCA, Deduplicator, MeanImputer, MinMaxScaler, NormClipper, StandardScaler
from ppdp.transformers.base import RowWiseTransformer, Stage

DOMAIN = Domain(n_rows=12, n_features=2)

QUANTIZATION = printed.quantization(30, 2)
FALSE = {
    "deduplication, 1 column": (printed.deduplication(12, 1), "linf"),
    "deduplication, 2 columns": (printed.deduplication(30, 2), "linf"),
    "quantization, 2 columns": (replace(QUANTIZATION, claimed={"linf": QUANTIZATION.claimed["linf"]}), "linf"),
    "quantization, how far": (replace(QUANTIZATION, claimed={"l2": QUANTIZATION.claimed["l2"]}), "l2"),
    "standard scaling, 50 rows": (printed.scaling(50, 0.35), "l2"),
    "mean imputation": (printed.imputation(40, 3, 3), "l2"),
    "PCA to 1 of 2 columns": (printed.projection(50, 2, 1), "l2"),
}


def slots_that_differ(pair):
    left, right = (np.nan_to_num(rows.X, nan=9.0) for rows in pair)
    return np.flatnonzero((left != right).any(axis=1))


class TestPrintedClaims:
    @pytest.mark.parametrize("name", FALSE)
    def test_what_is_false_is_found_by_search(self, name):
        claim, quantity = FALSE[name]
        report = attack_stability(claim, until_violated=True)
        (finding,) = report.violations
        assert finding.quantity == quantity
        assert finding.ratio > 1.001
        assert slots_that_differ(finding.pair).tolist() == [0]
        assert claim.uses(finding.pair)[quantity] == (finding.attained, finding.claimed)

    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.repeated("seed")
    def test_that_is_no_luck(self, seed):
        """Where gaps change their column, which random pairs hardly do."""
        claim, _ = FALSE["mean imputation"]
        assert attack_stability(claim, until_violated=True, seed=seed).violated

    def test_the_pair_of_a_deduplication_is_checked_by_hand(self):
        claim, _ = FALSE["deduplication, 1 column"]
        (finding,) = attack_stability(claim, until_violated=True).violations
        kept = [printed.deduplicated(rows.X, printed.ETA)[1][1:] for rows in finding.pair]
        assert (kept[0] != kept[1]).sum() == finding.attained
        assert printed.twice_the_largest_cluster(*(rows.X for rows in finding.pair)) == finding.claimed

    def test_what_holds_is_not_exceeded_and_nearly_reached(self):
        centring = Claim(lambda X: X - X.mean(axis=0), printed.ball(10, 2), {"l2": 2 / 10, "linf": 9})
        report = attack_stability(centring, evaluations=400)
        assert not report.violated
        assert {f.quantity: round(f.ratio, 6) for f in report.findings} == {"l2": 1.0, "linf": 1.0}


class TestOurs:
    @pytest.mark.parametrize("distance", [None, Distance(replaced=1, moved=3, radius=0.05, total=0.1)])
    def test_no_stage_exceeds_what_it_certifies(self, distance):
        ball = Domain(n_rows=20, n_features=2, max_missing=0)
        reports = [
            attack_stability(stage, ball, distance=distance, evaluations=rounds(120))
            for stage in (StandardScaler(0.3, clip=2.0), PCA(1, min_gap=0.1))
        ]
        assert not any(report.violated for report in reports)
        assert all(report.worst.ratio > 0.3 for report in reports)

    def test_a_bound_that_is_reached(self):
        report = attack_stability(MeanImputer(fit_mode="exact"), Domain(n_rows=12, n_features=1), evaluations=400)
        radius = next(f for f in report.findings if (f.name, f.quantity) == ("MeanImputer, exact", "radius"))
        assert 0.99 < radius.ratio <= 1 + 1e-9

    def test_a_pipeline_part_by_part(self):
        pipe = make_pipeline(MinMaxScaler(ranges=(0, 50)), MeanImputer(fit_mode="noisy"), GaussianMechanism())
        report = attack_stability(pipe, DOMAIN.but(n_rows=40), evaluations=80)
        assert not report.violated
        assert {finding.name for finding in report.findings} == {
            "minmaxscaler, public",
            "meanimputer, noisy",
            "meanimputer, release of means",
            "all stages",
            "gaussianmechanism, end to end",
        }
        entries = next(finding for finding in report.findings if finding.quantity == "entry_bound")
        assert entries.ratio == pytest.approx(1.0)  # rows are as long as the ranges are wide

    def test_all_stages_together(self):
        steps = NormClipper(), MeanImputer(max_missing=3, fit_mode="exact"), PCA(1, 0.1, fit_mode="exact")
        plan = make_pipeline(*steps, GaussianMechanism(), epsilon=20, gate=None).plan(DOMAIN.but(n_rows=60))
        report = attack_stability(plan, evaluations=60)
        together = {finding.quantity: finding.ratio for finding in report.findings if finding.name == "all stages"}
        assert not report.violated
        assert 0 < together["radius"] <= 1

    def test_half_a_sensitivity_is_found(self):
        plan = make_pipeline(NormClipper(), Deduplicator(), GaussianMechanism(), epsilon=5.0).plan(DOMAIN)
        broken = replace(plan.mechanism, sensitivity=plan.mechanism.sensitivity / 2)
        report = attack_stability(replace(plan, mechanism=broken), evaluations=80)
        assert [(f.name, f.quantity) for f in report.violations] == [("gaussianmechanism, end to end", "answer")]

    def test_half_a_distance_behind_a_stage_is_found(self):
        pipe = make_pipeline(NormClipper(), MeanImputer(fit_mode="exact"), GaussianMechanism())
        plan = pipe.plan(DOMAIN.but(n_features=1))
        step = plan.steps[1]
        less = replace(step.way, distance=replace(step.way.distance, radius=step.way.distance.radius / 2))
        broken = replace(plan, steps=(plan.steps[0], replace(step, way=less)), end=(less.domain, less.distance))
        report = attack_stability(broken, evaluations=60)
        assert {(f.name, f.quantity) for f in report.violations} >= {("meanimputer, exact", "radius")}

    def test_noise_that_is_not_gaussian_hides_answers_too(self):
        report = attack_stability(make_pipeline(NormClipper(), LaplaceMechanism()), DOMAIN, evaluations=20)
        (answer,) = (finding for finding in report.findings if finding.quantity == "answer")
        assert answer.name == "laplacemechanism, end to end"
        assert 0 < answer.ratio <= 1

    def test_what_no_pair_meets_is_not_attacked(self):
        """No two columns of rows in a ball of radius 1 have standard deviations of 0.9."""
        wide = StandardScaler(0.9, use_floor=False, fit_mode="exact")
        pipe = make_pipeline(NormClipper(), wide, GaussianMechanism(), epsilon=20, gate=None, diagnostics=None)
        report = attack_stability(pipe, DOMAIN.but(n_rows=60), evaluations=20)
        assert {name for name, _ in report.skipped} == {
            "standardscaler, exact",
            "all stages",
            "gaussianmechanism, end to end",
        }
        assert "not attacked: standardscaler, exact: its conditions held" in repr(report)


class TestWorstPair:
    def test_of_a_model_that_answers_many_times(self):
        model = LogisticRegression(classes=(0, 1), max_iter=5)
        plan = make_pipeline(NormClipper(), model, epsilon=5.0).plan(DOMAIN)
        left, right, ratio = worst_pair(plan, evaluations=100)
        assert 0.9 < ratio <= 1 + 1e-9
        differ = slots_that_differ((left, right)).tolist() + np.flatnonzero(left.y != right.y).tolist()
        assert set(differ) == {0}

    @pytest.mark.parametrize("last", [LaplaceMechanism(), StandardScaler()], ids=["Laplace", "a transformer"])
    def test_of_whatever_is_released(self, last):
        plan = make_pipeline(NormClipper(), last, epsilon=5.0).plan(DOMAIN.but(n_rows=40))
        _, _, ratio = worst_pair(plan, evaluations=200)
        assert 0.9 < ratio <= 1 + 1e-9

    def test_every_condition_has_the_margin_that_is_asked(self):
        pipe = make_pipeline(
            NormClipper(), PCA(1, 0.2, with_mean=False, fit_mode="exact"), GaussianMechanism(), epsilon=20, gate=None
        )
        plan = pipe.plan(DOMAIN.but(n_rows=60))
        left, right, _ = worst_pair(plan, evaluations=150, margin=20)
        condition = plan.conditions[0][1]
        assert min(condition.margin(rows) for rows in (left, right)) > 20
        with pytest.raises(InvalidParameter, match="held on none of the pairs"):
            worst_pair(plan, evaluations=20, margin=1000)


class TestSearch:
    @pytest.mark.parametrize("installed", [True, False], ids=["CMA-ES", "Powell"])
    def test_is_a_function_of_the_seed(self, monkeypatch, installed):
        monkeypatch.setattr(climbing, "find_spec", lambda name: installed or None)
        claim = Claim(lambda X: X / (1 + X.std(axis=0)), printed.ball(5, 2), {"l2": 1.0})
        one, same, other = (attack_stability(claim, evaluations=150, seed=seed) for seed in (1, 1, 2))
        facts = [[(f.attained, f.pair[0].X.tobytes()) for f in report.findings] for report in (one, same, other)]
        assert facts[0] == facts[1] != facts[2]

    def test_ends_in_time(self):
        report = attack_stability(printed.scaling(10, 0.5), evaluations=10**6, seconds=0.05)
        assert 0 < report.worst.evaluations < 10_000

    def test_climbing_gains(self):
        """To the last digits: no drawn pair has all of its rows where they strain the bound most."""
        claim = Claim(lambda X: X - 1e3 * (X - 0.123).mean(axis=0) ** 2, printed.ball(5, 1), {"l2": 1.0})
        drawn, climbed = (attack_stability(claim, evaluations=count).worst.ratio for count in (40, 240))
        assert drawn < climbed


class TestReport:
    def test_of_a_claim_that_nothing_moves_a_line_says_so(self):
        public = Claim(lambda X: np.ones_like(X), Domain(n_rows=6, n_features=1, row_norm=1.0), {"l2": 0}, name="ones")
        report = attack_stability(public, evaluations=20)
        assert [finding.claimed for finding in report.telling] == [0]
        assert "ones  l2        0         0" in repr(report)

    def test_an_attack_in_which_nothing_moved_is_vacuous(self):
        """Whatever is claimed: no bound was put to the test."""
        domain = Domain(n_rows=6, n_features=1, row_norm=1.0)
        still = Claim(np.ones_like, domain, {"linf": 0, "l2": 0.1}, name="ones")
        report = attack_stability(still, evaluations=20)
        assert report.vacuous == ("ones",)
        assert "VACUOUS: ones: nothing moved on any pair, so this attack shows nothing" in repr(report)
        assert "VACUOUS" in report._repr_html_()
        assert "nothing moved" in repr(report.worst)
        assert report.to_dict()["vacuous"] == ["ones"]
        moving = attack_stability(Claim(lambda X: X - X.mean(), domain, {"linf": 6, "l2": 1}), evaluations=20)
        assert moving.vacuous == ()

    def finding(self, attained, claimed):
        return StabilityFinding("it", "l2", attained, claimed, (Rows.of([[0.0]]), Rows.of([[1.0]])), 7, 0.5)

    def test_rounding_is_no_violation(self):
        assert not self.finding(1 + 1e-10, 1).violated
        assert self.finding(1 + 1e-8, 1).violated

    def test_a_bound_of_nothing(self):
        assert self.finding(0, 0).ratio == 0
        assert self.finding(0.1, 0).ratio == math.inf
        assert self.finding(0.1, 0).to_dict()["ratio"] is None

    def test_shows_what_was_found(self):
        report = StabilityReport((self.finding(3, 2), self.finding(1, 2)), (("last", "it is random"),))
        assert repr(report).splitlines() == [
            "stability attack: 1 violations, 7 pairs of neighbouring datasets",
            "not attacked: last: it is random",
            "what  quantity  attained  claimed  ratio",
            "it    l2        3         2        1.5000  VIOLATED",
            "it    l2        1         2        0.5000",
        ]
        assert "VIOLATED" in report._repr_html_()
        assert report.worst.ratio == 1.5
        assert [line["violated"] for line in report.to_dict()["findings"]] == [True, False]


# ---------------- of every stage half of what it certifies is refuted


ONE = Adjacency.replace().distance
MOVES = Distance(replaced=1, moved=3, radius=0.1, total=0.2)
WINDOW = S.LSHDeduplicator(bands=1, rows_per_band=2, mode="simhash", rule="window", window=2)
HALVED = {
    "whole records": (S.Deduplicator(), 12, 2, ONE, "reordered"),
    "labels that agree": (S.Deduplicator(label_rule="unanimous"), 12, 2, ONE, "reordered"),
    "first in a cell": (S.GridDeduplicator(keep="first"), 12, 2, ONE, "reordered"),
    "weights in cells": (S.GridDeduplicator(keep="soft"), 12, 2, ONE, "one_sided"),
    "bands": (S.LSHDeduplicator(bands=2, rows_per_band=4, mode="simhash"), 6, 2, ONE, "toggled"),
    "weights in bands": (S.LSHDeduplicator(bands=2, mode="simhash", rule="soft"), 12, 2, ONE, "one_sided"),
    "window of a band": (WINDOW, 12, 2, ONE, "toggled"),
    "clusters, one of each": (S.ClusterDeduplicator(), 12, 2, ONE, "toggled"),
    "clusters, how far": (S.ClusterQuantizer(), 12, 2, ONE, "radius"),
    "clusters, in all": (S.ClusterQuantizer(), 12, 2, ONE, "total"),
    "means": (S.MeanImputer(), 12, 2, ONE, "radius"),
    "means, in all": (S.MeanImputer(), 12, 2, ONE, "total"),
    "medians": (S.MedianImputer(max_quantile_gap=0.1), 12, 1, ONE, "radius"),
    "trimmed means": (S.TrimmedMeanImputer(), 12, 2, ONE, "radius"),
    "regression": (S.RegressionImputer(0.5), 12, 2, ONE, "radius"),
    "regression of three columns": (S.RegressionImputer(0.5), 6, 3, ONE, "radius"),
    "deviations": (S.StandardScaler(0.5), 12, 1, ONE, "radius"),
    "deviations under a condition": (S.StandardScaler(0.5, use_floor=False), 12, 1, ONE, "radius"),
    "deviations and a clip": (S.StandardScaler(0.5, clip=1.0), 12, 1, ONE, "radius"),
    "quantiles": (S.MinMaxScaler(quantiles=(0.25, 0.75), min_width=0.3, max_quantile_gap=0.01), 20, 1, ONE, "radius"),
    "quartiles": (S.RobustScaler(min_width=0.3, max_quantile_gap=0.01, clip=0.5), 20, 1, ONE, "radius"),
    "directions": (S.PCA(1, min_gap=0.1, with_mean=False), 12, 2, ONE, "radius"),
    "directions, in all": (S.PCA(1, min_gap=0.2, with_mean=False), 12, 2, ONE, "total"),
    "directions from a mean": (S.PCA(1, min_gap=0.1, with_mean=True), 12, 2, ONE, "radius"),
    "soft directions": (S.SoftPCA(0.5), 12, 2, ONE, "radius"),
    "soft directions, in all": (S.SoftPCA(0.5), 12, 2, ONE, "total"),
    "cells": (S.GridQuantizer(), 12, 2, MOVES, "replaced"),
    "categories": (S.CategoryEncoder([0, 1, -1]), 12, 2, MOVES, "replaced"),
    "dates": (S.DateEncoder((-1, 1)), 12, 2, MOVES, "replaced"),
    "names": (S.FeatureHasher(4), 12, 2, MOVES, "replaced"),
    "words": (S.HashingVectorizer(4, analyzer="char"), 12, 2, MOVES, "replaced"),
}
NAMED = {type(stage).__name__ for stage, *_ in HALVED.values()} | {
    *(
        "TargetMeanEncoder",
        "ClusterDistances",
        "SelectKBest",
        "SelectPercentile",
        "VarianceThreshold",
        "KBinsDiscretizer",
        "QuantileTransformer",
        "SplineTransformer",
    )  # which have no exact way
}
HALVED |= {
    name: (kind.example(), 12, 2, MOVES if issubclass(kind, RowWiseTransformer) else ONE, "radius")
    for name, kind in REGISTRY.items()
    if issubclass(kind, Stage) and (name not in NAMED or name == "MinMaxScaler")
}


def halved(stage, quantity):
    """The stage as it would be if of one number behind its exact, or public, way only half were certified.

    Of weight the half of what the stage adds: what was unmatched before it is so behind it.
    """
    whole = stage.fit_modes

    def fit_modes(domain, distance):
        way = next(way for way in whole(domain, distance) if way.name != "noisy")
        before = getattr(distance, quantity) if quantity in {"mass", "one_sided"} else 0
        assert getattr(way.distance, quantity) > before, "state a radius: replaced rows cannot be halved"
        half = (before + getattr(way.distance, quantity)) / 2
        return (replace(way, distance=replace(way.distance, **{quantity: half})),)

    stage.fit_modes = fit_modes
    return stage


@pytest.mark.parametrize("name", HALVED)
def test_half_of_what_a_stage_certifies_is_refuted(name):
    stage, n, d, distance, quantity = HALVED[name]
    domain = Domain(n_rows=n, n_features=d, row_norm=1.0, min_present=n)
    broken = halved(stage.__sklearn_clone__(), quantity)
    report = attack_stability(broken, domain, distance=distance, evaluations=2000, until_violated=True)
    assert report.violated
