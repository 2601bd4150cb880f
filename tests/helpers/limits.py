"""What every registered class and some pipelines of them go to as rows grow, at fixed epsilon.

An :class:`Entry` says how a pipeline is made, what of it is compared, and what scikit-learn computes on the same rows.
Where it goes to something else, ``instead`` says to what and why; the docstrings of the classes say it to users.
"""

from __future__ import annotations

import math
from functools import partial
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

from ppdp import Domain
from ppdp import mechanisms as M
from ppdp import transformers as S

SCALED = S.StandardScaler()
ALL_BUT_RARE = tuple(name for name in FAMILIES if name != "rare class")
LATE = {"late": ("heavy tails",)}
RARE = {"late": ("heavy tails", "rare class"), "most": 0.2}
COLLINEAR = {"late": ("heavy tails", "collinear"), "most": 0.2}
PUBLIC = {"fixed": True, "ranged": False}

CLASSES = Domain(classes=(0, 1))
GATED = {"domain": CLASSES, "epsilon": 8.0}  # a test needs its share
BOOSTED = {"late": ("rare class",), "instead": "what is to be expected, of shapes of columns and tables of pairs"}
UNFITTED = "nothing is fitted"
LOGISTIC, RIDGE = M.LogisticRegression((0, 1)), M.Ridge(y_range=(-1, 1))
CODED = S.CategoryEncoder(CATEGORIES, encoding="ordinal"), S.TargetMeanEncoder(), LOGISTIC


def entry(name: str, steps: Any, seen: Any, twin: Any, **more: Any) -> Entry:
    return Entry(name, lambda: [clone(step) for step in steps], seen, twin, **more)


def stage(step: Any, twin: Any, special: str = "", *, seen: Any = transformed, behind: Any = (), **more: Any) -> Entry:
    """A stage, alone or in front of others, by the name of its class, and what is special."""
    return entry(type(step).__name__ + special, [step, *behind], seen, twin, **more)


def query(last: Any, name: str, twin: Any, special: str = "", **more: Any) -> Entry:
    """A mechanism of which an attribute is compared."""
    return entry(type(last).__name__ + special, [last], answer(name), twin, **more)


def model(last: Any, twin: Any, labels: str, *, name: str = "", front: Any = (), rows: str = "X", **more: Any) -> Entry:
    """A model behind these stages, and one of scikit-learn on the same rows; or what a function makes of them."""
    seen = more.pop("seen", probabilities if hasattr(last, "predict_proba") else predicted)
    twin = sk(partial(clone, twin), rows, labels=labels) if hasattr(twin, "fit") else twin
    return entry(name or type(last).__name__, [*front, last], seen, twin, rows=rows, labels=labels, **more)


def on_scaled(model: Any) -> Any:
    return make_pipeline(preprocessing.StandardScaler(), model)


def hashed(**how: Any) -> Any:
    """What scikit-learn makes of the names of categories."""
    return lambda t: (
        text.HashingVectorizer(n_features=16, **how).transform(t.kinds[:NEW, 0].astype(int).astype(str)).toarray()
    )


def kinds(pipe: Any, table: Any) -> Any:
    return pipe.transform(table.kinds[:NEW])


def indicators(table: Any) -> Any:
    encoder = preprocessing.OneHotEncoder(categories=[CATEGORIES], sparse_output=False)
    return np.hstack([encoder.fit_transform(table.kinds[:NEW]), np.zeros((NEW, 1))])


def most_frequent(table: Any) -> Any:
    counts = np.bincount(table.kinds.ravel().astype(int), minlength=5)
    return counts == counts.max()


def duplicates(make: Any, **more: Any) -> Entry:
    """What is left goes to what the stage leaves without noise."""
    known = {"needs": {"domain": CLASSES}, "instead": "scikit-learn has none; the rows that are kept, without noise"}
    behind = [M.GaussianMechanism()]
    return stage(make(), alone(make), seen=answer("mean_"), behind=behind, labels="y", **{**known, **more})


TANH = sk(lambda: preprocessing.FunctionTransformer(np.tanh))

ENTRIES: tuple[Entry, ...] = (
    # -------- scalers
    stage(SCALED, sk(preprocessing.StandardScaler), **LATE),
    stage(
        S.StandardScaler(per_column=False),
        lambda t: (t.new - t.X.mean(axis=0)) / math.sqrt(t.X.var(axis=0).sum()),
        ", one scale",
        **LATE,
    ),
    stage(
        S.RobustScaler(fit_mode="noisy"),
        robust,
        tables=tuple(name for name in FAMILIES if name != "one-hot"),
        instead="scikit-learn's values clipped to [-3, 3], which bounds the rows",
    ),
    stage(S.MinMaxScaler(ranges=(-1, 1), feature_range=(0, 1)), lambda t: (t.new + 1) / 2, **PUBLIC),
    # -------- imputers
    stage(S.MeanImputer(), sk(impute.SimpleImputer, "gapped", "all_gaps"), seen=filled, rows="gapped"),
    stage(
        S.MedianImputer(fit_mode="noisy"),
        sk(lambda: impute.SimpleImputer(strategy="median"), "gapped", "all_gaps"),
        seen=filled,
        rows="gapped",
    ),
    stage(
        S.TrimmedMeanImputer(),
        trimmed,
        seen=filled,
        rows="gapped",
        instead="trimmed means, for which scikit-learn has no imputer",
    ),
    stage(
        S.RegressionImputer(),
        ridge_filled,
        seen=filled,
        rows="gapped",
        instead="a regression with a ridge that is public and does not fall with n, as its bound has 1/ridge",
    ),
    # -------- projections
    entry("PCA", [SCALED, S.PCA(2, fit_mode="noisy")], unexplained, least_unexplained, unit=lambda _: 1.0),
    stage(S.SoftPCA(), shrunk, instead="rows shrunk by a public ridge; scikit-learn has no such projection", **LATE),
    stage(
        S.RandomProjection(2),
        lambda t: t.new @ S.RandomProjection(2).fit(t.X).components_.T,
        fixed=True,
        instead="a public map of each row, " + UNFITTED,
    ),
    # -------- row by row
    stage(S.NormClipper(0.5), lambda t: t.new / np.maximum(1, 2 * np.linalg.norm(t.new, axis=1)[:, None]), fixed=True),
    stage(S.Public(preprocessing.FunctionTransformer(np.tanh), lipschitz=1.0, row_norm=2.0), TANH, fixed=True),
    stage(S.RowMap(np.tanh, out_ranges=(-1, 1), lipschitz=1.0), TANH, fixed=True),
    stage(
        S.GridQuantizer(0.01),
        lambda table: table.new,
        instead="rows rounded to a public grid, " + UNFITTED,
        fixed=True,
        most=0.3,
    ),
    # -------- columns
    stage(S.CategoryEncoder(CATEGORIES), indicators, seen=kinds, rows="kinds", **PUBLIC),
    stage(
        S.CategoryEncoder(CATEGORIES, strategy="most_frequent"),
        most_frequent,
        ", most frequent",
        seen=lambda pipe, _: pipe.transform(np.full((1, 1), np.nan))[0, :-1],
        rows="kinds",
        ranged=False,
    ),
    stage(S.DateEncoder((-1, 1)), lambda table: table.new, **PUBLIC),
    stage(S.FeatureHasher(16), hashed(analyzer=lambda name: [name]), seen=kinds, rows="kinds", **PUBLIC),
    stage(S.HashingVectorizer(16, analyzer="char"), hashed(analyzer="char"), seen=kinds, rows="kinds", **PUBLIC),
    entry(
        "TargetMeanEncoder",
        CODED,
        lambda pipe, table: pipe[-2].means_[0, :5],
        target_means,
        rows="kinds",
        labels="y",
        ranged=False,
        unit=lambda _: 1.0,
    ),
    *(
        model(
            LOGISTIC,
            make_pipeline(twin, linear.LogisticRegression()),
            "y",
            name=name,
            front=[own],
            tables=ALL_BUT_RARE,
            **LATE,
        )
        for name, own, twin in (
            ("SelectKBest", S.SelectKBest(2), feature_selection.SelectKBest(k=2)),
            ("SelectPercentile", S.SelectPercentile(50), feature_selection.SelectPercentile(percentile=50)),
        )
    ),
    model(
        LOGISTIC,
        make_pipeline(cluster.KMeans(2, n_init=10, random_state=0), on_scaled(linear.LogisticRegression())),
        "y",
        name="ClusterDistances",
        front=[S.ClusterDistances(2), SCALED],
        tables=("one-hot",),
        most=0.2,
    ),
    # -------- duplicates
    duplicates(S.Deduplicator),
    duplicates(lambda: S.GridDeduplicator(0.01), tables=("mild", "rare class")),
    duplicates(lambda: S.ClusterDeduplicator(1e-7, 400), tables=("mild",), needs=GATED, most=0.3),
    duplicates(lambda: S.ClusterQuantizer(1e-7, 400), tables=("mild",), needs=GATED),
    duplicates(
        lambda: S.LSHDeduplicator(bands=2, rows_per_band=8, mode="simhash"),
        tables=("mild",),
        most=9.0,
        fixed=True,
        instead="as many rows as there are buckets, whose noise stays as it is",
    ),
    # -------- queries
    query(M.GaussianMechanism(), "mean_", lambda t: t.X.mean(axis=0)),
    query(
        M.GaussianMechanism("covariance"),
        "covariance_",
        lambda t: np.cov(t.X.T, bias=True),
        ", covariance",
        unit=lambda t: float(t.X.var()),
        **LATE,
    ),
    entry(
        "Report",
        [M.Report({"mean": None})],
        lambda pipe, t: pipe.release_.to_pandas().query("statistic == 'mean'")["raw_value"],
        lambda t: t.X.mean(axis=0),
    ),
    query(M.LaplaceMechanism(), "mean_", lambda t: t.X.mean(axis=0)),
    query(M.ExponentialMechanism(candidates=2001), "quantile_", lambda t: np.median(t.X, axis=0)),
    entry(
        "SignMechanism",
        [M.SignMechanism()],
        lambda pipe, table: pipe[-1].signs_[:NEW],
        lambda table: np.sign(table.X[:NEW]),
        most=20.0,  # where nearly all signs are the same, the spread of which is small
        fixed=True,
        instead="signs that flip whatever the number of rows, as each row is told in its place",
    ),
    entry(
        "GaussianSketch",
        [M.GaussianSketch(100)],
        lambda pipe, table: pipe[-1].sketch_.T @ pipe[-1].sketch_ / table.n,
        lambda table: table.X.T @ table.X / table.n,
        unit=lambda t: float(np.square(t.X).mean()),
        most=9.0,
        fixed=True,
        instead="random mixtures of the rows, whose second moments are theirs but for 1/√rank",
    ),
    query(
        M.WishartMechanism(20, min_cosine=0.9995),
        "direction_",
        lambda t: t.X.mean(axis=0) / np.linalg.norm(t.X.mean(axis=0)),
        unit=lambda _: 1.0,
        tables=("skewed",),
        most=9.0,
        fixed=True,
        instead="a direction that is random whatever the number of rows, by its rank",
        needs={"epsilon": 2.0},
    ),
    # -------- models
    entry(
        "KMeans",
        [M.KMeans(2)],
        lambda pipe, t: cluster_spread(t, pipe[-1].cluster_centers_),
        lambda t: cluster_spread(t, cluster.KMeans(2, n_init=10, random_state=0).fit(t.X).cluster_centers_),
        **LATE,
    ),
    model(M.GaussianNB((0, 1)), naive_bayes.GaussianNB(), "y", **RARE),
    model(M.GradientBoostingClassifier((0, 1)), lambda t: t.expected_y, "y", most=0.25, **BOOSTED),
    model(M.GradientBoostingRegressor(y_range=(-1, 1)), lambda t: t.expected_target, "target", most=0.2, **BOOSTED),
    model(
        M.GradientBoostingRegressor(y_range=COUNTS, loss="poisson"),
        lambda t: t.expected_count,
        "counts",
        name="GradientBoostingRegressor, Poisson",
        most=0.3,
        tables=tuple(name for name in FAMILIES if name != "skewed"),  # of which one new row is farther out than any
        **(BOOSTED | LATE),
    ),
    model(LOGISTIC, on_scaled(linear.LogisticRegression()), "y", front=[SCALED], **RARE),
    model(
        M.LinearSVC((0, 1)),
        smooth_hinge,
        "y",
        front=[SCALED],
        seen=lambda pipe, table: pipe.decision_function(table.new),
        tables=ALL_BUT_RARE,  # all of one class, whose scores have no spread
        instead="the minimiser of a hinge that is smooth, where scikit-learn's is squared",
        most=0.2,
        **LATE,
    ),
    *(
        model(last, on_scaled(twin), labels, front=[SCALED], **COLLINEAR)
        for last, twin, labels in (
            (M.LinearRegression(y_range=(-1, 1)), linear.LinearRegression(), "target"),
            (RIDGE, linear.Ridge(), "target"),
            (M.PoissonRegressor(y_range=COUNTS), linear.PoissonRegressor(alpha=0), "counts"),
            (M.GammaRegressor(y_range=AMOUNTS), linear.GammaRegressor(alpha=0), "amounts"),
            (M.TweedieRegressor(y_range=AMOUNTS), linear.TweedieRegressor(power=1.5, alpha=0), "amounts"),
        )
    ),
    # -------- pipelines
    model(
        LOGISTIC,
        on_scaled(make_pipeline(decomposition.PCA(2), linear.LogisticRegression())),
        "y",
        name="PCA, LogisticRegression",
        front=[SCALED, S.PCA(2, fit_mode="noisy")],
        tables=("collinear",),  # in others no two directions stand out
    ),
    model(
        LOGISTIC,
        make_pipeline(impute.SimpleImputer(), on_scaled(linear.LogisticRegression())),
        "y",
        name="MeanImputer, LogisticRegression",
        front=[S.MeanImputer(fit_mode="noisy"), SCALED],
        rows="gapped",
        **RARE,
    ),
    model(
        RIDGE,
        make_pipeline(impute.SimpleImputer(strategy="median"), on_scaled(linear.Ridge())),
        "target",
        name="MedianImputer, Ridge",
        front=[S.MedianImputer(fit_mode="noisy"), SCALED],
        rows="gapped",
        **COLLINEAR,
    ),
    model(
        M.LinearRegression(y_range=(-1, 1)),
        linear.LinearRegression(),
        "target",
        name="RobustScaler, LinearRegression",
        front=[S.RobustScaler(fit_mode="noisy", clip=1e3)],
        **COLLINEAR,
    ),
    entry(
        "TargetMeanEncoder, LogisticRegression",
        CODED,
        lambda pipe, table: pipe.predict_proba(table.kinds[:NEW])[:, 1],
        lambda t: (
            make_pipeline(preprocessing.TargetEncoder(smooth=10.0, target_type="binary"), linear.LogisticRegression())
            .fit(t.kinds, t.y)
            .predict_proba(t.kinds[:NEW])[:, 1]
        ),
        rows="kinds",
        labels="y",
        ranged=False,
        tables=ALL_BUT_RARE,
    ),
    stage(
        S.VarianceThreshold(0.02),
        lambda t: np.where(t.X.var(axis=0) > 0.02, t.new, 0.0),
        tables=tuple(name for name in FAMILIES if name != "heavy tails"),  # where no column is left
    ),
)


_WRITTEN = {entry.name.partition(",")[0] for entry in ENTRIES}
_OTHERS = [getattr(S, name) for name in S.__all__ if name not in _WRITTEN]
ENTRIES += tuple(  # what can be released and nobody has written down goes to what it is without noise
    stage(kind.example(), lambda table, kind=kind: kind.example().fit(table.X, table.y).transform(table.new))
    for kind in _OTHERS
    if hasattr(kind, "fit_mode")
)
