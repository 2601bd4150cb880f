"""A case of every stage and mechanism for datasets of few rows on a grid."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from exhaustive import GAP, Case

from ppdp import mechanisms as M
from ppdp import transformers as S
from ppdp.testing import REGISTRY

LINE = ((-1.0,), (-0.5,), (0.0,), (0.5,), (1.0,))
ENDS = LINE[::2]
POLES = LINE[::4]
HALF = math.sqrt(0.5)
PLANE = ((1.0, 0.0), (0.0, 1.0), (HALF, HALF), (HALF, -HALF), (0.0, 0.0))
STAR = tuple((math.cos(turn), math.sin(turn)) for turn in math.pi / 8 * np.arange(1, 16, 2))
BOX = ((1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0), (0.5, 1.0), (0.0, 0.0))
HOLES = (*ENDS, (GAP,))
TORN = ((1.0, 0.0), (HALF, -HALF), (HALF, HALF), (GAP, 1.0), (1.0, GAP))
CLASSES = {"labels": (0.0, 1.0), "facts": (("classes", (0, 1)),)}
TARGETS = {"labels": (-1.0, 1.0), "facts": (("y_range", (0.0, 1.0)),)}
POSITIVE = {"labels": (-1.0, 1.0), "facts": (("y_range", (1.0, 2.0)),)}
LEAST = 1 - 1e-9
"""Of a threshold that some dataset of the grid just meets."""
TRAINED: dict[str, Any] = {"solver": "dpgd", "max_iter": 3}
SIMHASH: dict[str, Any] = {"bands": 2, "rows_per_band": 2, "mode": "simhash"}
ONE_BAND: dict[str, Any] = {"bands": 1, "rows_per_band": 2, "mode": "simhash"}
VOTE: dict[str, Any] = {"candidates": ["a"] * 2, "utility": lambda X: np.column_stack([X, -X]), "lipschitz": 1.0}

ROW_BY_ROW = {
    "norm clip": Case(S.NormClipper(0.5), LINE),
    "public ranges": Case(S.MinMaxScaler(ranges=(-0.5, 0.8)), LINE),
    "row map": Case(S.RowMap(np.tanh, out_ranges=(-1, 1), lipschitz=1.0), LINE),
    "public transformer": Case(S.Public.example(), LINE),
    "random projection": Case(S.RandomProjection(2), PLANE),
    "rounding": Case(S.GridQuantizer(cell_width=0.499), ((-1.0,), (0.249,), (0.749,), (1.0,))),
    "staircase": Case(S.GridQuantizer(cell_width=1.0, mode="staircase"), ((-1.0,), (0.25,), (0.75,), (1.0,))),
    "dithered rounding": Case(S.GridQuantizer(cell_width=1.0, mode="dither"), LINE),
    "categories": Case(S.CategoryEncoder([-1, 0, 1]), LINE),
    "most frequent category": Case(S.CategoryEncoder([-1, 0, 1], strategy="most_frequent"), HOLES),
    "released categories": Case(S.CategoryEncoder("private", max_categories=2), ENDS),
    "released ranges": Case(S.MinMaxScaler(ranges="private"), ENDS),
    "names": Case(S.FeatureHasher(2), LINE),
    "words": Case(S.HashingVectorizer(2, analyzer="char"), LINE),
    "dates": Case(S.DateEncoder(ranges=(-1, 1)), LINE),
    "bins": Case(S.KBinsDiscretizer(2), ENDS),
    "splines": Case(S.SplineTransformer(3, 1), ENDS),
    "quantile transform": Case(S.QuantileTransformer(3), ENDS),
    "target means": Case(S.TargetMeanEncoder(), ENDS, **CLASSES),
    "columns that vary": Case(S.VarianceThreshold(0.1), PLANE[:3]),
    "best columns": Case(S.SelectKBest(1), PLANE[:3], **CLASSES),
    "best share of columns": Case(S.SelectPercentile(50), PLANE[:3], **CLASSES),
}
FITTED = {
    "means": Case(S.MeanImputer(min_observed=2), HOLES, box=True),
    "means, two columns": Case(S.MeanImputer(min_observed=2), TORN),
    "means, condition": Case(S.MeanImputer(1, use_floor=False), HOLES, box=True),
    "trimmed means": Case(S.TrimmedMeanImputer(trim=0.25, min_observed=2), HOLES, box=True),
    "medians": Case(S.MedianImputer(max_quantile_gap=1.0), (*LINE, (GAP,)), box=True),
    "ridge imputation": Case(S.RegressionImputer(0.3), TORN),
    "regression imputation": Case(S.RegressionImputer(min_eigenvalue=0.1), TORN),
    "scaling, floor": Case(S.StandardScaler(0.85, clip=None), LINE),
    "scaling, condition": Case(S.StandardScaler(math.sqrt(0.75) * LEAST, clip=None, use_floor=False), LINE),
    "scaling, floor, clip": Case(S.StandardScaler(0.5, clip=1.0), LINE),
    "scaling, condition, clip": Case(S.StandardScaler(math.sqrt(0.75) * LEAST, clip=1.0, use_floor=False), LINE),
    "scaling, two columns": Case(S.StandardScaler(0.5, clip=None, use_floor=False), BOX, box=True),
    "scaling, one scale": Case(S.StandardScaler(0.8, clip=None, per_column=False), PLANE),
    "scaling, no mean": Case(S.StandardScaler(0.5, clip=None, with_mean=False), LINE),
    "robust scaling": Case(S.RobustScaler(min_width=0.5, max_quantile_gap=0.7), LINE),
    "quantile scaling": Case(S.MinMaxScaler(quantiles=(0.25, 0.75), min_width=0.5, max_quantile_gap=0.7), LINE),
    "PCA": Case(S.PCA(1, 0.2, with_mean=False), PLANE),
    "PCA, centred": Case(S.PCA(1, 0.2, with_mean=True), PLANE),
    "PCA, projected": Case(S.PCA(1, 0.2, with_mean=False, output="projected"), PLANE),
    "PCA, aligned": Case(S.PCA(1, 0.2, with_mean=False, output="aligned", min_alignment=0.1), PLANE),
    "soft PCA": Case(S.SoftPCA(0.3), PLANE),
}
KEYED = (0.0, 0.0), (0.0, HALF), (HALF, 0.0), (HALF, HALF)
SELECTING = {
    "copies": Case(S.Deduplicator(), POLES, (0.0, 1.0), ordered=True),
    "copies of a key": Case(S.Deduplicator([0]), KEYED, ordered=True),
    "unanimous copies": Case(S.Deduplicator(label_rule="unanimous"), POLES, (0.0, 1.0), ordered=True),
    "first label of copies": Case(S.Deduplicator(label_rule="first"), POLES, (0.0, 1.0), ordered=True),
    "cells": Case(S.GridDeduplicator(cell_width=0.7), LINE, ordered=True),
    "first of a cell": Case(S.GridDeduplicator(cell_width=0.7, keep="first"), LINE, ordered=True),
    "cells, weights": Case(S.GridDeduplicator(cell_width=0.7, keep="soft"), LINE, ordered=True),
    "bands": Case(S.LSHDeduplicator(**SIMHASH), STAR),
    "one band": Case(S.LSHDeduplicator(**ONE_BAND), STAR[::2], ordered=True),
    "one band, window": Case(S.LSHDeduplicator(**ONE_BAND, rule="window", window=1), STAR[::2], ordered=True),
    "one band, weights": Case(S.LSHDeduplicator(**ONE_BAND, rule="soft"), STAR[::2], ordered=True),
    "clusters": Case(S.ClusterDeduplicator(0.5, 3), LINE, ordered=True),
    "cluster centres": Case(S.ClusterQuantizer(0.5, 3), LINE, ordered=True),
}
ANSWERED = {
    "mean": Case(M.GaussianMechanism(), LINE),
    "sum": Case(M.GaussianMechanism("sum"), PLANE),
    "count": Case(M.GaussianMechanism("count"), LINE, absent=True),
    "covariance": Case(M.GaussianMechanism("covariance"), PLANE),
    "histogram": Case(M.GaussianMechanism("histogram", bins=3), LINE),
    "rows": Case(M.GaussianMechanism("rows"), LINE),
    "Laplace mean": Case(M.LaplaceMechanism(), LINE),
    "Laplace sum": Case(M.LaplaceMechanism("sum"), BOX),
    "Laplace count": Case(M.LaplaceMechanism("count"), LINE, absent=True),
    "Laplace histogram": Case(M.LaplaceMechanism("histogram", bins=3), LINE),
    "Laplace rows": Case(M.LaplaceMechanism("rows"), LINE),
    "chosen median": Case(M.ExponentialMechanism(candidates=5), LINE),
    "report": Case(M.Report(["mean", "quantile", "histogram", "covariance"], bins=3), ENDS),
    "signs": Case(M.SignMechanism(), LINE),
    "signs by responses": Case(M.SignMechanism("randomized-response"), LINE),
    "signs of Laplace noise": Case(M.SignMechanism("laplace"), ENDS),
    "signs of Gaussian noise": Case(M.SignMechanism("gaussian"), LINE),
    "smooth signs": Case(M.SignMechanism("smooth", unit=0.5), LINE),
    "sketch": Case(M.GaussianSketch(20), PLANE),
    "Wishart direction": Case(M.WishartMechanism(20, 0.97), ((1.0, 0.0), (HALF, HALF), (0.0, 1.0))),
}
LEARNED = {
    "naive Bayes": Case(M.GaussianNB((0, 1)), ENDS, **CLASSES),
    "Newton steps": Case(M.LogisticRegression((0, 1)), ENDS, **CLASSES),
    "logistic regression": Case(M.LogisticRegression((0, 1), **TRAINED), ENDS, **CLASSES),
    "logistic minimiser": Case(M.LogisticRegression((0, 1), solver="output"), ENDS, **CLASSES),
    "support vectors": Case(M.LinearSVC((0, 1), **TRAINED), ENDS, **CLASSES),
    "linear regression": Case(M.LinearRegression(**TRAINED), ENDS, **TARGETS),
    "least squares by moments": Case(M.Ridge(solver="moments"), ENDS, **TARGETS),
    "counts": Case(M.PoissonRegressor(max_iter=3), ENDS, **TARGETS),
    "positive amounts": Case(M.GammaRegressor(max_iter=3), ENDS, **POSITIVE),
    "amounts": Case(M.TweedieRegressor(max_iter=3), ENDS, **TARGETS),
    "boosted classes": Case(M.GradientBoostingClassifier((0, 1), max_iter=1, max_bins=4), POLES, **CLASSES, slow=True),
    "boosted targets": Case(M.GradientBoostingRegressor(max_iter=1, max_bins=4), POLES, **TARGETS, slow=True),
}
CASES: dict[str, Case] = ROW_BY_ROW | FITTED | SELECTING | ANSWERED | LEARNED
NAMED = {type(case.step).__name__ for case in CASES.values()}
CASES |= {name: Case(kind.example(), PLANE[:3], **CLASSES) for name, kind in REGISTRY.items() if name not in NAMED}
