"""A zoo of certificates, one of every kind, and the seal of whoever changes one."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import foreign_models
import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler as PublicScaler

from ppdp import Adjacency, Certificate, ColumnTransformer, Domain, Ledger, Pipeline, PrivateSearchCV
from ppdp import mechanisms as M
from ppdp import transformers as S
from ppdp.certificate.canonical import digest
from ppdp.certificate.issue_record import OF_THE_ISSUER
from ppdp.exceptions import PrivacyRefusal
from ppdp.interop import Diffprivlib

Document = dict[str, Any]


def people() -> tuple[pd.DataFrame, np.ndarray]:
    """Rows on which every condition holds with room to spare."""
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], (3000, 1)) * np.array([0.9, 0.25, 0.25]) + rng.normal(scale=0.01, size=(3000, 3))
    X[:20, 1] = np.nan
    return pd.DataFrame(X, columns=["a", "b", "c"]), rng.integers(2, size=3000)


def classifier(**parameters: Any) -> M.LogisticRegression:
    return M.LogisticRegression(classes=(0, 1), max_iter=10, **parameters)


def imputer(**parameters: Any) -> tuple[str, S.MeanImputer]:
    return "impute", S.MeanImputer(**parameters)


def scaler(**parameters: Any) -> tuple[str, S.StandardScaler]:
    return "scale", S.StandardScaler(**parameters)


CLIP, BOX, MEAN = ("clip", S.NormClipper()), ("box", S.MinMaxScaler(ranges=(-1, 1))), ("mean", M.GaussianMechanism())
EXACT_PCA = "pca", S.PCA(1, with_mean=False, fit_mode="exact")
VOTE = {"candidates": ["a", "b", "c"], "utility": np.abs, "lipschitz": 1.0}
FEW_GAPS = {"max_missing": 500, "fit_mode": "exact"}

Made = tuple[list[tuple[str, Any]], dict[str, Any]]


def of(*steps: tuple[str, Any], **parameters: Any) -> Made:
    """Steps of a pipeline, and what else it is made with."""
    return list(steps), parameters


ZOO: dict[str, Made] = {
    "unconditional": of(BOX, ("dedup", S.Deduplicator()), imputer(), scaler(), ("model", classifier(solver="dpgd"))),
    "gated, max": of(CLIP, EXACT_PCA, MEAN),
    "gated, sum": of(CLIP, scaler(fit_mode="noisy"), EXACT_PCA, MEAN),
    "gated, Laplace": of(CLIP, EXACT_PCA, ("count", M.LaplaceMechanism("count")), gate="laplace"),
    "gated, whole": of(CLIP, EXACT_PCA, ("count", M.LaplaceMechanism("count")), gate="discrete-laplace"),
    "gated, predicting": of(BOX, imputer(use_floor=False, **FEW_GAPS), ("model", classifier())),
    "conditional": of(
        BOX,
        imputer(**FEW_GAPS),
        scaler(use_floor=False, fit_mode="exact", min_std=0.1),
        ("model", classifier()),
        gate=None,
    ),
    "scaled, many columns": of(
        CLIP, ("project", S.RandomProjection(8)), ("again", S.NormClipper(0.5)), scaler(fit_mode="noisy"), MEAN
    ),
    "hashed names": of(("names", S.FeatureHasher(n_features=3)), MEAN),
    "hashed words": of(("words", S.HashingVectorizer(n_features=3, analyzer="char")), MEAN),
    "nothing to scale": of(("cats", S.CategoryEncoder([0, 1])), scaler(), MEAN),
    "seeded": of(CLIP, MEAN, random_state=0),
    "classes read": of(CLIP, ("model", M.LogisticRegression(max_iter=5)), on_invalid="repair"),
    "transformer-ended": of(BOX, imputer(), scaler(clip=None), ("pca", S.PCA(2))),
    "keyed": of(BOX, ("dedup", S.Deduplicator(subset=["a"])), imputer(fit_mode="noisy"), MEAN),
    "groups of columns": of(
        (
            "groups",
            ColumnTransformer(
                [("ab", [BOX[1], S.MeanImputer(), S.StandardScaler()], ["a", "b"]), ("none", S.NormClipper(), [])]
            ),
        ),
        ("model", classifier()),
    ),
    "groups that differ": of(
        (
            "groups",
            ColumnTransformer(
                [("ab", [imputer(fit_mode="noisy")[1], EXACT_PCA[1]], ["a", "b"])],
                remainder=[S.MeanImputer(), S.StandardScaler(fit_mode="exact")],
            ),
        ),
        MEAN,
        domain=Domain(row_norm=1.0, entry_bound=1.0),
    ),
    "private categories": of(
        ("cats", S.CategoryEncoder("private", max_categories=3)), EXACT_PCA, ("model", classifier())
    ),
    "most frequent categories": of(
        ("cats", S.CategoryEncoder([0, 1, 2], strategy="most_frequent")), scaler(), ("model", classifier())
    ),
    "mean labels": of(BOX, imputer(fit_mode="noisy"), ("means", S.TargetMeanEncoder(["a"])), ("model", classifier())),
    "columns that vary": of(
        BOX, imputer(fit_mode="noisy"), ("vary", S.VarianceThreshold(0.05)), scaler(), ("model", classifier())
    ),
    "best share of columns": of(BOX, ("best", S.SelectPercentile(40)), ("model", classifier())),
    "best columns of added rows": of(
        BOX,
        imputer(fit_mode="noisy"),
        ("best", S.SelectKBest(2)),
        ("model", classifier()),
        adjacency=Adjacency.add_remove(),
        domain=Domain(n_rows=4000),
    ),
    "best columns": of(BOX, imputer(fit_mode="noisy"), ("best", S.SelectKBest(2)), ("model", classifier())),
    "row map": of(
        BOX,
        imputer(fit_mode="exact"),
        ("map", S.RowMap(np.tanh, out_ranges=(-1, 1), lipschitz=1.0)),
        ("again", S.MinMaxScaler(ranges=(-2, 2))),
        ("model", classifier(fit_intercept=False)),
    ),
    "three rows each": of(CLIP, ("dedup", S.Deduplicator()), MEAN, domain=Domain(rows_per_unit=3), dataset="people"),
    "with a ledger": of(CLIP, EXACT_PCA, MEAN, ledger=Ledger()),
    "grids": of(
        BOX,
        imputer(fit_mode="noisy"),
        ("hard", S.GridQuantizer(cell_width=0.1)),
        ("soft", S.GridDeduplicator(keep="soft")),
        ("stairs", S.GridQuantizer(cell_width=0.1, mode="staircase")),
        ("model", classifier()),
    ),
    "cells": of(
        CLIP,
        ("cells", S.GridDeduplicator()),
        ("first", S.GridDeduplicator(keep="first")),
        ("agreed", S.Deduplicator(label_rule="unanimous")),
        ("dither", S.GridQuantizer(cell_width=0.1, mode="dither")),
        MEAN,
    ),
    "bands": of(
        CLIP,
        ("all", S.LSHDeduplicator(bands=2, mode="simhash")),
        ("window", S.LSHDeduplicator(bands=2, mode="simhash", rule="window")),
        ("soft", S.LSHDeduplicator(bands=2, mode="simhash", rule="soft")),
        MEAN,
    ),
    "clusters": of(CLIP, ("groups", S.ClusterQuantizer(1e-7, 400)), MEAN),
    "cluster copies": of(CLIP, ("dedup", S.ClusterDeduplicator(1e-7, 400)), MEAN),
    "late clusters": of(
        CLIP, ("soft", S.SoftPCA(fit_mode="exact")), ("dedup", S.ClusterDeduplicator(1e-7, 400, compare="raw")), MEAN
    ),
    "nothing known": of(
        ("range", S.MinMaxScaler(ranges="private", fit_mode="noisy")),
        ("fill", S.MedianImputer(fit_mode="noisy")),
        ("ends", S.MinMaxScaler(quantiles=(0.1, 0.9), fit_mode="noisy")),
        ("robust", S.RobustScaler(fit_mode="noisy")),
        ("model", classifier()),
    ),
    "medians": of(
        BOX, ("impute", S.MedianImputer(max_quantile_gap=0.01, fit_mode="exact")), ("model", classifier()), gate=None
    ),
    "quantiles": of(
        CLIP,
        ("ends", S.MinMaxScaler(quantiles=(0.05, 0.95), max_quantile_gap=1e-5, fit_mode="exact")),
        ("robust", S.RobustScaler(max_quantile_gap=1e-4, fit_mode="exact")),
        ("model", classifier()),
        gate=None,
    ),
    "quantiles without duplicates": of(
        CLIP,
        ("dedup", S.Deduplicator()),
        ("robust", S.RobustScaler(max_quantile_gap=1e-4, fit_mode="exact")),
        MEAN,
        gate=None,
    ),
    "trimmed": of(BOX, ("impute", S.TrimmedMeanImputer(fit_mode="noisy")), ("soft", S.SoftPCA(fit_mode="noisy")), MEAN),
    "trimmed exactly": of(BOX, ("impute", S.TrimmedMeanImputer(fit_mode="exact")), ("model", classifier())),
    "regression": of(BOX, ("impute", S.RegressionImputer(fit_mode="noisy")), ("model", classifier())),
    "regression, eigenvalue": of(
        BOX,
        ("impute", S.RegressionImputer(min_eigenvalue=1e-6, **FEW_GAPS)),
        ("project", S.RandomProjection(2)),
        MEAN,
        gate=None,
    ),
    "public": of(
        CLIP, ("public", S.Public(PublicScaler().fit([[0.0, 0.0, 0.0], [2.0, 2.0, 2.0]]), row_norm=3.0)), MEAN
    ),
    "scaled to sums of zero": of(CLIP, scaler(fit_mode="exact", clip=None), MEAN),
    "centred": of(CLIP, ("pca", S.PCA(1, with_mean=True, fit_mode="exact")), MEAN),
    "projected": of(
        CLIP, ("pca", S.PCA(1, with_mean=False, output="projected", fit_mode="exact")), ("model", classifier())
    ),
    "aligned": of(
        CLIP, ("pca", S.PCA(1, 0.4, with_mean=False, output="aligned", min_alignment=0.1, fit_mode="exact")), MEAN
    ),
    "aligned, centred": of(
        CLIP, ("pca", S.PCA(1, 0.4, with_mean=True, output="aligned", min_alignment=0.1, fit_mode="exact")), MEAN
    ),
    "projected noisily": of(CLIP, ("pca", S.PCA(1, with_mean=False, output="projected", fit_mode="noisy"))),
    "least squares": of(CLIP, ("model", M.Ridge(y_range=(0, 2), solver="dpgd", max_iter=10))),
    "second moments": of(CLIP, ("dedup", S.Deduplicator()), ("model", M.Ridge(y_range=(0, 2), solver="moments"))),
    "support vectors": of(CLIP, ("model", M.LinearSVC((0, 1), solver="dpgd", max_iter=10))),
    "support vectors and counts": of(CLIP, ("model", M.LinearSVC((0, 1), solver="dpgd", calibration="sigmoid"))),
    "counts": of(BOX, imputer(**FEW_GAPS), ("model", M.PoissonRegressor((0, 2), max_iter=10))),
    "amounts": of(BOX, imputer(**FEW_GAPS), ("model", M.TweedieRegressor((0, 2), power=1.9))),
    "three classes": of(CLIP, ("model", M.LogisticRegression((0, 1, 2), solver="dpgd", max_iter=10))),
    "Newton steps": of(CLIP, ("model", M.LogisticRegression((0, 1, 2)))),
    "Newton steps and counts": of(CLIP, ("model", M.LogisticRegression((0, 1), solver="newton", threshold="f1"))),
    "gradients and counts": of(CLIP, ("model", classifier(solver="dpgd", threshold="accuracy", calibration="sigmoid"))),
    "boosting and counts": of(
        BOX, ("model", M.GradientBoostingClassifier((0, 1), max_iter=1, max_bins=16, calibration="sigmoid"))
    ),
    "boosted shapes": of(BOX, ("model", M.GradientBoostingClassifier((0, 1, 2), max_iter=1, max_bins=16))),
    "boosted targets": of(BOX, ("model", M.GradientBoostingRegressor((0, 2), max_bins=16))),
    "Poisson samples": of(
        CLIP, ("dedup", S.Deduplicator()), ("model", M.LogisticRegression((0, 1, 2), solver="poisson", max_iter=5))
    ),
    "fresh projections": of(
        CLIP, ("dedup", S.Deduplicator()), ("model", M.LogisticRegression((0, 1, 2), solver="m2", rank=2, max_iter=5))
    ),
    "behind a projection": of(CLIP, ("model", classifier(solver="lora-fa", rank=2))),
    "fixed batches": of(CLIP, ("model", M.LinearSVC((0, 1), solver="fixed-size", max_iter=5))),
    "epochs": of(CLIP, ("dedup", S.Deduplicator()), ("model", M.Ridge(y_range=(0, 2), solver="epochs", max_iter=2))),
    "a hidden pass": of(CLIP, ("model", M.LogisticRegression((0, 1), solver="hidden"))),
    "minimiser": of(CLIP, ("model", classifier(solver="output"))),
    "least squares minimiser": of(
        CLIP, ("model", M.Ridge(solver="output", max_iter=10)), domain=Domain(y_range=(0, 2))
    ),
    "nothing to do": of(BOX, imputer(max_missing=0), ("pca", S.PCA()), MEAN),
    "a sum": of(CLIP, ("dedup", S.Deduplicator()), ("sum", M.GaussianMechanism("sum"))),
    "a count": of(CLIP, ("dedup", S.Deduplicator()), ("count", M.GaussianMechanism("count"))),
    "a covariance": of(CLIP, ("dedup", S.Deduplicator()), ("covariance", M.GaussianMechanism("covariance"))),
    "moments of classes": of(CLIP, ("model", M.GaussianNB((0, 1)))),
    "distances from clusters": of(CLIP, ("clusters", S.ClusterDistances(2)), ("model", classifier())),
    "centres of clusters": of(CLIP, ("model", M.KMeans(2))),
    "a report": of(CLIP, ("report", M.Report(["mean", "quantile", "histogram", "covariance"], bins=5))),
    "a histogram": of(CLIP, ("counts", M.GaussianMechanism("histogram", bins={"a": 5, "c": [-1.0, 0.0, 1.0]}))),
    "rows": of(CLIP, scaler(fit_mode="noisy"), ("rows", M.GaussianMechanism("rows"))),
    "projected rows": of(
        CLIP, ("dedup", S.Deduplicator()), ("project", S.RandomProjection(2)), ("rows", M.GaussianMechanism("rows"))
    ),
    "a Laplace mean": of(CLIP, ("dedup", S.Deduplicator()), ("mean", M.LaplaceMechanism()), diagnostics=None),
    "Laplace rows": of(BOX, imputer(fit_mode="exact"), ("rows", M.LaplaceMechanism("rows"))),
    "pure rows of a change": of(
        BOX,
        imputer(fit_mode="exact"),
        ("rows", M.LaplaceMechanism("rows")),
        adjacency=Adjacency.change(coordinate=0.1),
        delta=0.0,
    ),
    **{
        name: of(
            BOX,
            ("dedup", S.Deduplicator()),
            imputer(fit_mode="noisy"),
            ("rows", M.GaussianMechanism("rows")),
            adjacency=adjacency,
            domain=Domain(n_rows=4000),
        )
        for name, adjacency in (("added rows", Adjacency.add_remove(2)), ("persons", Adjacency.user_level(3)))
    },
    "a Laplace sum": of(BOX, imputer(fit_mode="exact"), ("sum", M.LaplaceMechanism("sum"))),
    "a whole count": of(CLIP, ("soft", S.GridDeduplicator(keep="soft")), ("count", M.LaplaceMechanism("count"))),
    "whole histograms": of(CLIP, ("counts", M.LaplaceMechanism("histogram", bins=4))),
    "signs and a matrix": of(CLIP, ("signs", M.SignMechanism("angle", n_signs=3, norm_floor=0.5))),
    "signs": of(CLIP, ("project", S.RandomProjection(2)), ("signs", M.SignMechanism())),
    "smooth signs": of(CLIP, ("dedup", S.Deduplicator()), ("signs", M.SignMechanism("smooth", unit=0.6))),
    "responses": of(CLIP, scaler(fit_mode="noisy"), ("signs", M.SignMechanism("randomized-response"))),
    "Laplace signs": of(CLIP, scaler(fit_mode="exact"), ("signs", M.SignMechanism("laplace"))),
    "changed signs": of(
        BOX,
        imputer(max_missing=0),
        ("project", S.RandomProjection(3)),
        ("signs", M.SignMechanism("gaussian")),
        adjacency=Adjacency.change(coordinate=0.5),
    ),
    "a direction": of(
        ("box", S.MinMaxScaler(ranges=(-1, 1), feature_range=(0, 1))),
        ("dedup", S.Deduplicator()),
        ("direction", M.WishartMechanism(20, 0.99615)),
    ),
    "a sketch": of(CLIP, ("dedup", S.Deduplicator()), ("sketch", M.GaussianSketch(20))),
    "a sketch behind a floor": of(
        CLIP, ("project", S.RandomProjection(1)), ("sketch", M.GaussianSketch(400, min_eigenvalue=0.005))
    ),
    "least squares of a sketch": of(CLIP, ("model", M.Ridge(y_range=(0, 2), solver="sketch", rank=60))),
    "medians chosen": of(
        CLIP, ("dedup", S.Deduplicator()), ("median", M.ExponentialMechanism(candidates=21)), diagnostics=None
    ),
    "a vote": of(BOX, imputer(fit_mode="noisy"), ("vote", M.ExponentialMechanism("utility", **VOTE))),
    "diffprivlib's logistic regression": of(
        CLIP, ("dedup", S.Deduplicator()), ("model", Diffprivlib(foreign_models.LogisticRegression(), (0, 1)))
    ),
    "diffprivlib's linear regression": of(
        CLIP, ("dedup", S.Deduplicator()), ("model", Diffprivlib(foreign_models.LinearRegression(), y_range=(0, 2)))
    ),
    "diffprivlib's naive Bayes": of(
        CLIP, ("dedup", S.Deduplicator()), ("model", Diffprivlib(foreign_models.GaussianNB(), (0, 1))), diagnostics=None
    ),
}


GOLDEN = Path(__file__).parents[1] / "certificate" / "golden" / "0.2.0"
ISSUED_BEFORE = {
    "on a ladder": GOLDEN / "on-a-ladder.json",
    "scaled on a ladder": GOLDEN / "scaled-on-a-ladder.json",
}
"""Kinds that no plan makes any more."""

_NAMED = {type(step).__name__ for steps, _ in ZOO.values() for _, step in steps} | {"DateEncoder"}  # which is first
ZOO |= {name: ([BOX, ("step", getattr(S, name).example()), MEAN], {}) for name in S.__all__ if name not in _NAMED}
NAMES = (*ZOO, *ISSUED_BEFORE)


def fitted(pipe: Pipeline, X: pd.DataFrame, y: np.ndarray) -> Pipeline:
    """The pipeline on these rows, of which four are one person's where persons are protected."""
    return pipe.fit(X, y, groups=np.arange(len(X)) // 4 if pipe.neighbours.bounds_contributions else None)


def passed(steps: list[Any], parameters: dict[str, Any]) -> tuple[Pipeline, pd.DataFrame]:
    """A pipeline that a gate let pass, and the rows that it was fitted on."""
    X, y = people()
    if not any(getattr(step, "fills_gaps", False) for _, step in steps):
        X = X.fillna(0.0)
    for _ in range(20):  # a gate may refuse
        try:
            return fitted(Pipeline(steps, epsilon=3.0, **parameters), X, y), X
        except PrivacyRefusal:
            continue
    raise AssertionError("these data should pass")


@cache
def released(name: str) -> tuple[Pipeline, pd.DataFrame]:
    """One fit of every kind for all tests: nobody changes it."""
    return passed(*ZOO[name])


@cache
def certificate(name: str) -> Certificate:
    return Certificate.load(ISSUED_BEFORE[name]) if name in ISSUED_BEFORE else released(name)[0].certificate_


@cache
def of_a_search() -> dict[str, Certificate]:
    """The certificate of a search, and that of its last fit."""
    X, y = people()
    steps, _ = ZOO["unconditional"]
    search = PrivateSearchCV(Pipeline(steps), {"model__max_grad_norm": [0.5, 1.0]}, epsilon=3.0, dataset="people").fit(
        X, y
    )
    return {"a search": search.certificate_, "part of a search": search.best_estimator_.certificate_}


@cache
def stated() -> Certificate:
    """A certificate with everything that an issuer may state."""
    X, y = people()
    steps, _ = ZOO["unconditional"]
    words = {"purpose": "Planning of shifts", "responsible": "Ann Author, Our clinic"}
    earlier = certificate("unconditional").digest
    further = {name: f"what is said of {name}" for name in OF_THE_ISSUER if name not in words}
    further |= {"review_by": "2087-06-30", "supersedes": earlier, "attachments": {"audit.json": earlier}}
    with Ledger(epsilon=3.0, delta=1e-5):
        pipe = Pipeline(steps, dataset="people", sources="Codebook 3.1", statements=further, **words).fit(X, y)
    return pipe.certificate_


def document(name: str) -> Document:
    return certificate(name).to_dict()


zoo = pytest.mark.parametrize("name", NAMES)


def sealed(content: Document) -> Document:
    """What a forger hands over: a digest that matches."""
    return {**content, "digest": digest(content)}
