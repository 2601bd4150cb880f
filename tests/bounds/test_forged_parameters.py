"""Certificates are written by anybody: parameters for which a bound is not proved have no bound."""

import math

import pytest

from ppdp import Distance, Domain
from ppdp.bounds import FORMULAS
from ppdp.exceptions import CertificateError

N = 8
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

# Of each formula parameters that are proved, and changes to them that are not.
FORGED = {
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
    proved, changes = FORGED[name]
    one = Distance(replaced=1)
    FORMULAS[name](BALL, one, **proved)
    for change in changes:
        with pytest.raises(CertificateError):
            FORMULAS[name](BALL, one, **{**proved, **change})


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
