"""Certificates are written by anybody: parameters for which a bound is not proved have no bound."""

import math

import pytest

from ppdp import Distance, Domain
from ppdp.bounds import FORMULAS
from ppdp.exceptions import CertificateError
from ppdp.mechanisms import GradientBoostingClassifier, KMeans, LogisticRegression, Report

N = 8
ONE = Distance(replaced=1)
BALL = Domain(n_rows=N, n_features=2, row_norm=1.0, max_missing=0, min_present=N)
PROJECTION = {"family": "gaussian", "n_components": 2, "seed": 0}
FAMILY = [
    {"family": "other"},
    *({"n_components": number} for number in (0, 2.0, True, 2**40)),
    {"n_components": 2**40, "family": "oporp"},
    *({"seed": seed} for seed in (-1, 0.5, None)),
]
GRID = {"columns": [0], "sizes": [2]}
NO_GRIDS = [
    (GRID, [1.0, 0.0]),
    (GRID, [0.0, math.nan]),
    ({"columns": [0], "sizes": [1]}, [0.0]),
    ({"columns": [0, 0], "sizes": [2, 2]}, [0.0, 1.0, 0.0, 1.0]),
    ({"columns": [2], "sizes": [2]}, [0.0, 1.0]),
    ({"columns": [0], "sizes": [3]}, [0.0, 1.0]),
    ({"columns": [], "sizes": []}, []),
    ({"columns": [0.0], "sizes": [2]}, [0.0, 1.0]),
]
MINIMISER = {"clip": 0.5, "coef_norm": 1.0, "fit_intercept": False, "alpha": 1.0, "smoothness": 0.25, "iterations": 5}
MOMENTS = {
    "norm": 0.5,
    "constant": 0.7,
    "target_weight": 0.3,
    "gradient_clip": 0.1,
    "refinements": 4,
    "coef_norm": 2.8,
    "fit_intercept": True,
    "y_range": (-1.0, 1.0),
}
TWEEDIE = {"clip": 1.0, "coef_norm": 1.0, "fit_intercept": True, "y_range": (0.0, 4.0), "power": 1.0}
COUNTS = [{"counts": counts} for counts in (0, 1.5, 20_000, True)]
BOX = BALL.but(row_norm=math.sqrt(2), entry_bound=1.0)
OPEN = BOX.but(max_missing=None, min_present=0)
LABELLED = BALL.but(classes=(0, 1))


def asked(mechanism, domain=BALL):
    return mechanism.query_spec(domain, 1.0).parameters


BOOSTED = GradientBoostingClassifier((0, 1), max_bins=4, max_iter=2, interaction_cst="pairwise")
NEWTON = LogisticRegression((0, 1), solver="newton", max_iter=2)
REPORT = Report(["mean", "quantile", "histogram", "covariance"], bins=[-1.0, -0.2, 0.3, 1.0])
SPLIT = {"columns": [0, 1], "groups": ["a", "b"], "widths": [1, 1], "norms": [0, 0], "filled": []}


def each(**values):
    """Every one of these values by itself."""
    return [{name: value} for name, several in values.items() for value in several]


# Of each formula parameters that are proved, changes to them that are not, and the domain, if it has to be another.
FORGED = {
    "learning.newton": (
        asked(NEWTON),
        [
            *each(
                iterations=(0, 2.0, 10**9, True),
                shares=([0.5, 0.3, 0.2], [0.5, -0.1, 0.2], [0.1, 0.1], [math.nan, 0.1, 0.1]),
                curvature=(1.0, math.nan),
                calibration=(-0.1, 0.9, math.nan),
                loss=("absolute", "softmax", "glm"),
            ),
            *each(last=(0.5,), norm=(0.5,), alpha=(-1.0,), n_classes=(3,), noise=(0.0,), diagonal=(1,)),
            {"fit_intercept": "no"},
            {"loss": "softmax", "n_classes": 3, "calibration": 0.1},
            {"loss": "glm", "y_range": [-1.0, 1.0]},
            {"loss": "glm", "y_range": [0.0, 1.0], "power": 3.0},
        ],
    ),
    "learning.newton-threshold": (
        asked(LogisticRegression((0, 1), solver="newton", max_iter=2, threshold="f1"), LABELLED),
        each(answers=(3, 2.0), count_factor=(0.0, math.inf)),
        LABELLED,
    ),
    "learning.boosting": (
        asked(BOOSTED),
        [
            *each(cells=(3,), categories=([0],), shares=([0.5, 0.5],), share_of_edges=(0.0,), rounds=(0,)),
            *each(terms=([1],), replaces=(1,)),
        ],
    ),
    "learning.k-means": (
        asked(KMeans(2, max_depth=2, max_iter=2), BOX),
        each(depth=(0, 9), entry_bound=(0.5,), n_clusters=(0,), max_iter=(1.5,)),
        BOX,
    ),
    "learning.class-moments": (
        {"n_classes": 2, "entry_bound": 1.0},
        each(n_classes=(1,), entry_bound=(0.5,)),
        BOX.but(classes=(0, 1)),
    ),
    "query.report": (
        asked(REPORT, OPEN),
        [
            *each(shares=([0.5] * 4,), cells=(1000,), mean=([0, 0],), high=([-2.0, 1.0],), scaled=([0],)),
            *each(counted=(False,), gaps=(False,), sizes=([4],)),
        ],
        OPEN,
    ),
    "pca.row-wise": ({"center": True, "columns": None}, each(center=(1,), columns=(0, 6, 2.0))),
    "release.light-label-moments": ({"weight": 0.4}, each(weight=(0.0, -1.0, 1.7, math.nan)), LABELLED),
    "release.modes": (
        {"columns": [0, 1], "sizes": [3, 2], "values": [-1.0, 0.0, 1.0, 0.0, 1.0]},
        each(columns=([], [0, 0]), sizes=([4, 1],), values=([2.0] * 5,)),
    ),
    "release.label-means": ({"columns": [0], "cells": 50}, each(columns=([], [0, 0], [3])), LABELLED),
    "row-wise.chosen-columns": ({"k": 1}, each(k=(0, 3, 1.5))),
    "column-groups.split": (
        SPLIT,
        each(columns=([0, 0],), widths=([2, 0],), groups=(["a", "a"],), filled=(["c"],), norms=([-1, 0],)),
    ),
    "release.altered-shares": ({"counts": 3}, COUNTS),
    "release.altered-shares-laplace": ({"counts": 3}, COUNTS),
    "release.trimmed-means": (
        {"min_observed": 4, "trimmed": 1},
        [{"trimmed": 2}, {"min_observed": N + 1, "trimmed": 0}],
    ),
    "clusters.deduplicate": (
        {"eta": 1.0, "max_cluster": 5},
        [{"max_cluster": 0}, {"max_cluster": 1.5}, {"eta": 0.0}, {"raw": True, "low_dimension": True}],
    ),
    "clusters.quantize": ({"eta": 0.1, "max_cluster": 5}, [{"max_cluster": 1.5}]),
    "deduplication.bands-first": ({"bands": 2, "seed": 0}, [{"bands": 1.5}]),
    "deduplication.bands-weights": ({"bands": 2, "seed": 0}, [{"bands": 1.5}]),
    "deduplication.bands-window": ({"bands": 1, "window": 2, "seed": 0}, [{"window": 1.5}]),
    "quantization.hard": ({"cell": 0.5}, [{"cell": 0.0}, {"cell": 3.0}]),
    "quantization.staircase": ({"cell": 0.5, "ramp": 0.5}, [{"ramp": 0.0}]),
    "quantization.dither": ({"cell": 0.5, "seed": 0}, [{"seed": -1}]),
    "projection.random": (PROJECTION, [*FAMILY, {"family": "uniform"}]),
    "projection.drawn": (
        PROJECTION,
        [
            *FAMILY,
            {"s": 3.0},
            {"bins": "fixed"},
            *({"family": "sparse", "s": s} for s in (0.5, 3, math.nan, 1e30, "3")),
            *({"family": "oporp", "bins": bins} for bins in ("other", 1)),
        ],
    ),
    "query.histogram": ({**GRID, "edges": [0.0, 1.0]}, [{**given, "edges": marks} for given, marks in NO_GRIDS]),
    "laplace.histogram": (
        {"noise_scale": 1.0, **GRID, "edges": [0.0, 1.0]},
        [{**given, "edges": marks} for given, marks in NO_GRIDS],
    ),
    "exponential.quantile": (
        {"noise_scale": 1.0, "q": 0.5, **GRID, "candidates": [0.0, 1.0]},
        [{**given, "candidates": marks} for given, marks in NO_GRIDS],
    ),
    "signs.angle": (
        {"noise_scale": 1.0, "n_signs": 3, "norm_floor": 1.0},
        [{"n_signs": 0}, {"n_signs": 2.0}, {"norm_floor": 0.0}, {"norm_floor": math.inf}],
    ),
    "sketch.rows": ({"rank": 3, "noise_scale": 1.0}, [{"rank": 0}, {"rank": 2.5}, {"noise_scale": 0.0}]),
    "sketch.floored-rows": ({"rank": 3, "noise_scale": 1.0, "share": 0.1}, [{"share": 0.0}]),
    "learning.logistic-minimiser": (MINIMISER, [{"alpha": 0.0}, {"iterations": 0}, {"smoothness": 0.2}]),
    "learning.squared-minimiser": (
        {**MINIMISER, "y_range": (0, 1), "smoothness": 1.0},
        [{"alpha": 0.0}, {"iterations": 0}, {"smoothness": 0.2}],
    ),
    "learning.squared-moments": (MOMENTS, [{"refinements": -1}, {"norm": 0.0}, {"target_weight": -1.0}]),
    "learning.glm-gradient": (
        TWEEDIE,
        [{"power": 0.9}, {"power": 2.1}, {"y_range": (-1.0, 2.0)}, {"y_range": (2.0, 2.0)}],
    ),
}
WEIGHTED = {
    "release.trimmed-means": {"min_observed": 4, "trimmed": 1},
    "imputation.median": {"gap": 0.1, "max_missing": N},
    "scaling.standard": {"min_std": 0.1, "conditional": True, "clip": None},
    "deduplication.whole-record": {},
}


@pytest.mark.parametrize("name", FORGED)
def test_parameters_that_are_not_proved_have_no_bound(name):
    proved, changes, *domain = FORGED[name]
    (domain,) = domain or [BALL]
    FORMULAS[name](domain, ONE, **proved)
    for change in changes:
        with pytest.raises(CertificateError):
            FORMULAS[name](domain, ONE, **{**proved, **change})


@pytest.mark.parametrize(
    ("name", "classes"),
    [("learning.newton-threshold", (0, 1, 2)), ("release.light-label-moments", None), ("release.label-means", None)],
)
def test_nor_has_a_question_about_other_classes(name, classes):
    proved, _, domain = FORGED[name]
    with pytest.raises(CertificateError):
        FORMULAS[name](domain.but(classes=classes), ONE, **proved)


@pytest.mark.parametrize("name", WEIGHTED)
def test_nor_have_rows_of_fractional_weight_where_whole_rows_count(name):
    FORMULAS[name](BALL, Distance(replaced=1), **WEIGHTED[name])
    with pytest.raises(CertificateError):
        FORMULAS[name](BALL, Distance(replaced=1, reweighted=1, mass=2.5, one_sided=1.5), **WEIGHTED[name])


@pytest.mark.parametrize(
    ("domain", "distance"), [(BALL.but(min_present=1), Distance(replaced=1)), (BALL, Distance(toggled=1))], ids=str
)
def test_raw_keys_may_not_bring_rows_back(domain, distance):
    with pytest.raises(CertificateError):
        FORMULAS["deduplication.whole-record"](domain, distance, raw=True)
