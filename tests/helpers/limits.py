"""What every registered class and some pipelines of them go to as rows grow, at fixed epsilon.

An :class:`Entry` says how a pipeline is made, what of it is compared, and what scikit-learn computes on the same rows.
Where it goes to something else, ``instead`` says to what and why; the docstrings of the classes say it to users.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import sklearn.cluster as cluster
import sklearn.decomposition as decomposition
import sklearn.feature_extraction.text as text
import sklearn.feature_selection as feature_selection
import sklearn.impute as impute
import sklearn.linear_model as linear
import sklearn.naive_bayes as naive_bayes
import sklearn.preprocessing as preprocessing
from growing_tables import AMOUNTS, COUNTS, FAMILIES, NEW
from limit_twins import (
    CATEGORIES,
    Entry,
    alone,
    answer,
    cluster_spread,
    filled,
    least_unexplained,
    predicted,
    probabilities,
    ridge_filled,
    robust,
    scaled,
    shrunk,
    sk,
    smooth_hinge,
    target_means,
    transformed,
    trimmed,
    unexplained,
)
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import ppdp.mechanisms as mechanisms
import ppdp.transformers as transformers
from ppdp import Domain

S = transformers
SCALED = S.StandardScaler
COMMON = tuple(name for name in FAMILIES if name != "rare class")

GATED = {"domain": Domain(classes=(0, 1)), "epsilon": 8.0}  # a test needs its share
NO_TWIN = "scikit-learn has none; the rows that are kept, without noise"
SHAPES = "shapes of columns and tables of pairs, constant in bins: trees of depth 2, not deeper ones"
UNFITTED = "nothing is fitted"


def _by_target_means() -> list[Any]:
    coded = S.CategoryEncoder(CATEGORIES, encoding="ordinal")
    return [coded, S.TargetMeanEncoder(), mechanisms.LogisticRegression((0, 1))]


ENTRIES: tuple[Entry, ...] = (
    # -------- scalers
    Entry("StandardScaler", lambda: [SCALED()], transformed, sk(preprocessing.StandardScaler), late=("heavy tails",)),
    Entry(
        "StandardScaler, one scale",
        lambda: [SCALED(per_column=False)],
        transformed,
        lambda t: (t.new - t.X.mean(axis=0)) / math.sqrt(t.X.var(axis=0).sum()),
        late=("heavy tails",),
    ),
    Entry(
        "RobustScaler",
        lambda: [S.RobustScaler(fit_mode="noisy")],
        transformed,
        robust,
        tables=tuple(name for name in FAMILIES if name != "one-hot"),
        instead="scikit-learn's values clipped to [-3, 3], which bounds the rows",
    ),
    Entry(
        "MinMaxScaler",
        lambda: [S.MinMaxScaler(ranges=(-1, 1), feature_range=(0, 1))],
        transformed,
        sk(lambda: preprocessing.FunctionTransformer(lambda X: (X + 1) / 2)),
        fixed=True,
        ranged=False,
    ),
    # -------- imputers
    Entry("MeanImputer", lambda: [S.MeanImputer()], filled, sk(impute.SimpleImputer, "gapped", "all_gaps"), "gapped"),
    Entry(
        "MedianImputer",
        lambda: [S.MedianImputer(fit_mode="noisy")],
        filled,
        sk(lambda: impute.SimpleImputer(strategy="median"), "gapped", "all_gaps"),
        "gapped",
    ),
    Entry(
        "TrimmedMeanImputer",
        lambda: [S.TrimmedMeanImputer()],
        filled,
        trimmed,
        "gapped",
        instead="trimmed means, for which scikit-learn has no imputer",
    ),
    Entry(
        "RegressionImputer",
        lambda: [S.RegressionImputer()],
        filled,
        ridge_filled,
        "gapped",
        instead="a regression with a ridge that is public and does not fall with n, as its bound has 1/ridge",
    ),
    # -------- projections
    Entry("PCA", lambda: [SCALED(), S.PCA(2, fit_mode="noisy")], unexplained, least_unexplained, unit=lambda _: 1.0),
    Entry(
        "SoftPCA",
        lambda: [S.SoftPCA()],
        transformed,
        shrunk,
        instead="rows shrunk by a public ridge; scikit-learn has no such projection",
        late=("heavy tails",),
    ),
    Entry(
        "RandomProjection",
        lambda: [S.RandomProjection(2)],
        transformed,
        lambda t: t.new @ S.RandomProjection(2).fit(t.X).components_.T,
        fixed=True,
        instead="a public map of each row, " + UNFITTED,
    ),
    # -------- row by row
    Entry(
        "NormClipper",
        lambda: [S.NormClipper(0.5)],
        transformed,
        lambda t: t.new / np.maximum(1, np.linalg.norm(t.new, axis=1, keepdims=True) / 0.5),
        fixed=True,
    ),
    Entry(
        "Public",
        lambda: [S.Public(preprocessing.FunctionTransformer(np.tanh), lipschitz=1.0, row_norm=2.0)],
        transformed,
        sk(lambda: preprocessing.FunctionTransformer(np.tanh)),
        fixed=True,
    ),
    Entry(
        "RowMap",
        lambda: [S.RowMap(np.tanh, out_ranges=(-1, 1), lipschitz=1.0)],
        transformed,
        sk(lambda: preprocessing.FunctionTransformer(np.tanh)),
        fixed=True,
    ),
    Entry(
        "GridQuantizer",
        lambda: [S.GridQuantizer(0.01)],
        transformed,
        lambda table: table.new,
        instead="rows rounded to a public grid, " + UNFITTED,
        fixed=True,
        most=0.3,
    ),
    # -------- columns
    Entry(
        "CategoryEncoder",
        lambda: [S.CategoryEncoder(CATEGORIES)],
        lambda pipe, table: pipe.transform(table.kinds[:NEW]),
        lambda t: np.hstack(
            [
                preprocessing.OneHotEncoder(categories=[CATEGORIES], sparse_output=False).fit_transform(t.kinds[:NEW]),
                np.zeros((NEW, 1)),
            ]
        ),
        "kinds",
        fixed=True,
        ranged=False,
    ),
    Entry(
        "CategoryEncoder, most frequent",
        lambda: [S.CategoryEncoder(CATEGORIES, strategy="most_frequent")],
        lambda pipe, _: pipe.transform(np.full((1, 1), np.nan))[0, :-1],
        lambda t: (
            np.bincount(t.kinds.ravel().astype(int), minlength=5) == np.bincount(t.kinds.ravel().astype(int)).max()
        ),
        "kinds",
        ranged=False,
    ),
    Entry(
        "DateEncoder", lambda: [S.DateEncoder((-1, 1))], transformed, lambda table: table.new, fixed=True, ranged=False
    ),
    Entry(
        "FeatureHasher",
        lambda: [S.FeatureHasher(16)],
        lambda pipe, table: pipe.transform(table.kinds[:NEW]),
        lambda t: (
            text.HashingVectorizer(n_features=16, analyzer=lambda name: [name])
            .transform(t.kinds[:NEW, 0].astype(int).astype(str))
            .toarray()
        ),
        "kinds",
        fixed=True,
        ranged=False,
    ),
    Entry(
        "HashingVectorizer",
        lambda: [S.HashingVectorizer(16, analyzer="char")],
        lambda pipe, table: pipe.transform(table.kinds[:NEW]),
        lambda t: (
            text.HashingVectorizer(n_features=16, analyzer="char")
            .transform(t.kinds[:NEW, 0].astype(int).astype(str))
            .toarray()
        ),
        "kinds",
        fixed=True,
        ranged=False,
    ),
    Entry(
        "TargetMeanEncoder",
        _by_target_means,
        lambda pipe, table: pipe[-2].means_[0, :5],
        target_means,
        "kinds",
        "y",
        ranged=False,
        unit=lambda _: 1.0,
    ),
    *(
        Entry(
            type(stage).__name__,
            lambda stage=stage: [clone(stage), mechanisms.LogisticRegression((0, 1))],
            probabilities,
            sk(lambda twin=twin: make_pipeline(twin, linear.LogisticRegression()), labels="y"),
            labels="y",
            tables=COMMON,
        )
        for stage, twin in (
            (S.SelectKBest(2), feature_selection.SelectKBest(k=2)),
            (S.SelectPercentile(50), feature_selection.SelectPercentile(percentile=50)),
        )
    ),
    Entry(
        "ClusterDistances",
        lambda: [S.ClusterDistances(2), SCALED(), mechanisms.LogisticRegression((0, 1))],
        probabilities,
        sk(
            lambda: make_pipeline(cluster.KMeans(2, n_init=10, random_state=0), scaled(linear.LogisticRegression())()),
            labels="y",
        ),
        labels="y",
        tables=("one-hot",),
        most=0.2,
    ),
    # -------- duplicates: what is left goes to what the stage leaves without noise
    *(
        Entry(
            type(make()).__name__,
            lambda make=make: [make(), mechanisms.GaussianMechanism()],
            answer("mean_"),
            alone(make),
            labels="y",
            instead=NO_TWIN,
            **{"needs": {"domain": Domain(classes=(0, 1))}, **more},
        )
        for make, more in (
            (S.Deduplicator, {}),
            (lambda: S.GridDeduplicator(0.01), {"tables": ("mild", "rare class")}),
            (lambda: S.ClusterDeduplicator(1e-7, 400), {"tables": ("mild",), "needs": GATED, "most": 0.3}),
            (lambda: S.ClusterQuantizer(1e-7, 400), {"tables": ("mild",), "needs": GATED}),
        )
    ),
    Entry(
        "LSHDeduplicator",
        lambda: [S.LSHDeduplicator(bands=2, rows_per_band=8, mode="simhash"), mechanisms.GaussianMechanism()],
        answer("mean_"),
        alone(lambda: S.LSHDeduplicator(bands=2, rows_per_band=8, mode="simhash")),
        labels="y",
        tables=("mild",),
        most=9.0,
        fixed=True,
        instead="as many rows as there are buckets, whose noise stays as it is",
        needs={"domain": Domain(classes=(0, 1))},
    ),
    # -------- queries
    Entry("GaussianMechanism", lambda: [mechanisms.GaussianMechanism()], answer("mean_"), lambda t: t.X.mean(axis=0)),
    Entry(
        "GaussianMechanism, covariance",
        lambda: [mechanisms.GaussianMechanism("covariance")],
        answer("covariance_"),
        lambda t: np.cov(t.X.T, bias=True),
        unit=lambda t: float(t.X.var()),
        late=("heavy tails",),
    ),
    Entry(
        "Report",
        lambda: [mechanisms.Report({"mean": None})],
        lambda pipe, t: pipe.release_.to_pandas().query("statistic == 'mean'")["raw_value"],
        lambda t: t.X.mean(axis=0),
    ),
    Entry("LaplaceMechanism", lambda: [mechanisms.LaplaceMechanism()], answer("mean_"), lambda t: t.X.mean(axis=0)),
    Entry(
        "ExponentialMechanism",
        lambda: [mechanisms.ExponentialMechanism(candidates=2001)],
        answer("quantile_"),
        lambda t: np.median(t.X, axis=0),
    ),
    Entry(
        "SignMechanism",
        lambda: [mechanisms.SignMechanism()],
        lambda pipe, table: pipe[-1].signs_[:NEW],
        lambda table: np.sign(table.X[:NEW]),
        most=20.0,  # where nearly all signs are the same, the spread of which is small
        fixed=True,
        instead="signs that flip whatever the number of rows, as each row is told in its place",
    ),
    Entry(
        "GaussianSketch",
        lambda: [mechanisms.GaussianSketch(100)],
        lambda pipe, table: pipe[-1].sketch_.T @ pipe[-1].sketch_ / table.n,
        lambda table: table.X.T @ table.X / table.n,
        unit=lambda t: float(np.square(t.X).mean()),
        most=9.0,
        fixed=True,
        instead="random mixtures of the rows, whose second moments are theirs but for 1/√rank",
    ),
    Entry(
        "WishartMechanism",
        lambda: [mechanisms.WishartMechanism(20, min_cosine=0.9995)],
        answer("direction_"),
        lambda t: t.X.mean(axis=0) / np.linalg.norm(t.X.mean(axis=0)),
        unit=lambda _: 1.0,
        tables=("skewed",),
        most=9.0,
        fixed=True,
        instead="a direction that is random whatever the number of rows, by its rank",
        needs={"epsilon": 2.0},
    ),
    # -------- models
    Entry(
        "KMeans",
        lambda: [mechanisms.KMeans(2)],
        lambda pipe, t: cluster_spread(t, pipe[-1].cluster_centers_),
        lambda t: cluster_spread(t, cluster.KMeans(2, n_init=10, random_state=0).fit(t.X).cluster_centers_),
        late=("heavy tails",),
    ),
    Entry(
        "GaussianNB",
        lambda: [mechanisms.GaussianNB((0, 1))],
        probabilities,
        sk(naive_bayes.GaussianNB, labels="y"),
        labels="y",
        late=("heavy tails", "rare class"),
        most=0.2,
    ),
    Entry(
        "GradientBoostingClassifier",
        lambda: [mechanisms.GradientBoostingClassifier((0, 1))],
        probabilities,
        sk(scaled(linear.LogisticRegression()), labels="y"),  # the scores of these rows are linear
        labels="y",
        late=("heavy tails", "rare class"),
        most=0.2,
        instead=SHAPES,
    ),
    Entry(
        "GradientBoostingRegressor",
        lambda: [mechanisms.GradientBoostingRegressor(y_range=(-1, 1))],
        predicted,
        sk(scaled(linear.LinearRegression()), labels="target"),
        labels="target",
        late=("heavy tails", "skewed"),
        most=0.2,
        instead=SHAPES,
    ),
    Entry(
        "LogisticRegression",
        lambda: [SCALED(), mechanisms.LogisticRegression((0, 1))],
        probabilities,
        sk(scaled(linear.LogisticRegression()), labels="y"),
        labels="y",
        late=("heavy tails", "rare class"),
        most=0.2,
    ),
    Entry(
        "LinearSVC",
        lambda: [SCALED(), mechanisms.LinearSVC((0, 1))],
        lambda pipe, table: pipe.decision_function(table.new),
        smooth_hinge,
        labels="y",
        tables=tuple(
            name for name in FAMILIES if name != "rare class"
        ),  # all of one class, whose scores have no spread
        instead="the minimiser of a hinge that is smooth, where scikit-learn's is squared",
        late=("heavy tails",),
        most=0.2,
    ),
    *(
        Entry(
            type(model).__name__,
            lambda model=model: [SCALED(), clone(model)],
            predicted,
            sk(scaled(twin), labels=labels),
            labels=labels,
            late=("heavy tails", "collinear"),
            most=0.2,
        )
        for model, twin, labels in (
            (mechanisms.LinearRegression(y_range=(-1, 1)), linear.LinearRegression(), "target"),
            (mechanisms.Ridge(y_range=(-1, 1)), linear.Ridge(), "target"),
            (mechanisms.PoissonRegressor(y_range=COUNTS), linear.PoissonRegressor(alpha=0), "counts"),
            (mechanisms.GammaRegressor(y_range=AMOUNTS), linear.GammaRegressor(alpha=0), "amounts"),
            (mechanisms.TweedieRegressor(y_range=AMOUNTS), linear.TweedieRegressor(power=1.5, alpha=0), "amounts"),
        )
    ),
    # -------- pipelines
    Entry(
        "PCA, LogisticRegression",
        lambda: [SCALED(), S.PCA(2, fit_mode="noisy"), mechanisms.LogisticRegression((0, 1))],
        probabilities,
        sk(
            lambda: make_pipeline(preprocessing.StandardScaler(), decomposition.PCA(2), linear.LogisticRegression()),
            labels="y",
        ),
        tables=("collinear",),  # in others no two directions stand out
        labels="y",
    ),
    Entry(
        "MeanImputer, LogisticRegression",
        lambda: [S.MeanImputer(fit_mode="noisy"), SCALED(), mechanisms.LogisticRegression((0, 1))],
        probabilities,
        sk(
            lambda: make_pipeline(impute.SimpleImputer(), preprocessing.StandardScaler(), linear.LogisticRegression()),
            "gapped",
            labels="y",
        ),
        "gapped",
        "y",
        late=("heavy tails", "rare class"),
        most=0.2,
    ),
    Entry(
        "MedianImputer, Ridge",
        lambda: [S.MedianImputer(fit_mode="noisy"), SCALED(), mechanisms.Ridge(y_range=(-1, 1))],
        predicted,
        sk(
            lambda: make_pipeline(
                impute.SimpleImputer(strategy="median"), preprocessing.StandardScaler(), linear.Ridge()
            ),
            "gapped",
            labels="target",
        ),
        "gapped",
        "target",
        late=("heavy tails", "collinear"),
        most=0.2,
    ),
    Entry(
        "RobustScaler, LinearRegression",
        lambda: [S.RobustScaler(fit_mode="noisy", clip=1e3), mechanisms.LinearRegression(y_range=(-1, 1))],
        predicted,
        sk(linear.LinearRegression, labels="target"),
        labels="target",
        late=("heavy tails", "collinear"),
        most=0.2,
    ),
    Entry(
        "TargetMeanEncoder, LogisticRegression",
        _by_target_means,
        lambda pipe, table: pipe.predict_proba(table.kinds[:NEW])[:, 1],
        lambda t: (
            make_pipeline(preprocessing.TargetEncoder(smooth=10.0, target_type="binary"), linear.LogisticRegression())
            .fit(t.kinds, t.y)
            .predict_proba(t.kinds[:NEW])[:, 1]
        ),
        "kinds",
        "y",
        ranged=False,
        tables=COMMON,
    ),
    Entry(
        "VarianceThreshold",
        lambda: [S.VarianceThreshold(0.02)],
        transformed,
        lambda t: np.where(t.X.var(axis=0) > 0.02, t.new, 0.0),
    ),
)


def _standalone(kind: type[Any]) -> Entry:
    """A stage that nobody has written down: it goes to what it is without noise."""
    return Entry(
        kind.__name__,
        lambda: [kind.example()],
        transformed,
        lambda table: kind.example().fit(table.X, table.y).transform(table.new),
    )


_WRITTEN = {entry.name.partition(",")[0] for entry in ENTRIES}
_OTHERS = [getattr(S, name) for name in S.__all__ if name not in _WRITTEN]
ENTRIES += tuple(_standalone(kind) for kind in _OTHERS if hasattr(kind, "fit_mode"))  # which can be released
