"""What a parameter cannot be is refused by its name, before any data."""

import pickle

import numpy as np
import pytest

from ppdp import Adjacency, Distance, Domain, make_pipeline
from ppdp import transformers as S
from ppdp.exceptions import DomainMismatch, InvalidParameter, MissingBound, UnsupportedOrder
from ppdp.mechanisms import GaussianMechanism

ONE = Adjacency.replace().distance
NAN, INF = np.nan, np.inf
DOMAIN = Domain(n_rows=1000, n_features=6, row_norm=1.0, min_present=1000)
COMPLETE = DOMAIN.but(max_missing=0)

IMPUTERS = {"max_missing": (-1, "1", "few", True, NAN, [1]), "fit_mode": ("other", None, [])}
QUANTILES = {"max_quantile_gap": (0, -1, 3, "1", NAN, True), "min_width": (0, -1, 3, "1"), "fit_mode": ("rough",)}
OBSERVED = {"min_observed": (0, -1, "1", None, 1001, 1.5, True)}
CLUSTERS = {"radius": (0, "1"), "max_cluster": (0, 2.5), "low_dimension": (1,)}

WRONG = {
    S.MeanImputer: {**IMPUTERS, **OBSERVED},
    S.MedianImputer: {**IMPUTERS, "max_quantile_gap": QUANTILES["max_quantile_gap"]},
    S.TrimmedMeanImputer: {**IMPUTERS, **OBSERVED, "trim": (-0.1, 0.6, "1", None, NAN, True)},
    S.RegressionImputer: {**IMPUTERS, "alpha": (0, -1, "1", NAN), "min_eigenvalue": (0, 0.34, True)},
    S.StandardScaler: {
        "min_std": (0, -1, 2, "1", NAN, 1e-300),
        "clip": (0, -1, "no", NAN, INF, True),
        "fit_mode": ("rough", None),
    },
    S.RobustScaler: {**QUANTILES, "quantile_range": ((75, 25), (0, 50), 5, (-1, 50)), "clip": (0, -1, None, INF)},
    S.PCA: {"n_components": (0, -1, 7, 1.5, "mle", True), "output": ("signed", None)},
    S.SoftPCA: {"alpha": (0, -1, "1", NAN, INF, True, 1e-9), "fit_mode": ("other",)},
    S.RandomProjection: {
        "n_components": (0, -1, 1.5, True, "auto", None, 10**9),
        "family": ("normal", None, 1),
        "seed": (-1, 1.5, None, True, 2**63, np.random.default_rng(0)),
    },
    S.GridQuantizer: {"cell_width": (0, 2.5, "1"), "mode": ("soft",), "soft_edge": (0, 1.5), "seed": (-1, 0.5)},
    S.Deduplicator: {"label_rule": ("majority", None), "compare": ("old",)},
    S.GridDeduplicator: {
        "cell_width": (0, "a", NAN, [0.1, -1]),
        "keep": ("mean",),
        "label_rule": ("majority",),
        "seed": (-1,),
        "compare": ("old",),
    },
    S.LSHDeduplicator: {
        "bands": (0, 1.5),
        "rows_per_band": (0, 1025),
        "mode": ("edit",),
        "rule": ("components",),
        "seed": (-1,),
        "compare": ("old",),
    },
    S.ClusterDeduplicator: CLUSTERS,
    S.ClusterQuantizer: CLUSTERS,
}
CASES = [(kind, name, value) for kind, wrong in WRONG.items() for name, values in wrong.items() for value in values]
TOGETHER = [
    (S.RegressionImputer(0.1, min_eigenvalue=0.1), "exclude each other"),
    (S.TrimmedMeanImputer(trim=0.5, min_observed=4), "leaves nothing"),
    (S.MinMaxScaler(ranges=(0, 1), quantiles=(0.1, 0.9)), "exclude"),
    *((S.MinMaxScaler(quantiles=value), "quantiles") for value in ((0.9, 0.1), (0, 1), 5, (0.0, 0.5))),
    *((S.MinMaxScaler(quantiles=(0.1, 0.9), min_width=value), "min_width") for value in QUANTILES["min_width"]),
    *(
        (S.MinMaxScaler(quantiles=(0.1, 0.9), max_quantile_gap=value), "max_quantile_gap")
        for value in QUANTILES["max_quantile_gap"]
    ),
    *((S.PCA(1, fit_mode=value), "fit_mode") for value in ("other", None, [])),
    *((S.PCA(2, min_gap=value), "min_gap") for value in (0, -1, 2, 5, "1", NAN)),
    (S.PCA(2, output="aligned", min_alignment=0.0), "min_alignment"),
    (S.PCA(2, output="aligned", min_alignment=1.1), "min_alignment"),
    (S.PCA(2, output="projected", n_columns=7), "n_columns"),
    (S.PCA(2, output="aligned", n_columns=1), "n_columns"),
    (S.PCA(2, output="projected", public_basis=np.eye(6)[:, :3], n_columns=2), "n_columns"),
    (S.RandomProjection(3, s=3.0), "s"),
    (S.RandomProjection(3, "oporp", s=3.0), "s"),
    (S.RandomProjection(3, bins="fixed"), "bins"),
    (S.RandomProjection(3, "sparse", bins="fixed"), "bins"),
    *((S.RandomProjection(3, "sparse", s=value), "s") for value in (0.5, 0, INF, NAN, "3", True, 2**40)),
    *((S.RandomProjection(3, "oporp", bins=value), "bins") for value in ("padded", 1, True)),
    (S.RandomProjection(2**27, "oporp"), "n_components"),
    (S.Deduplicator([0], compare="raw"), "whole rows"),
    (S.GridDeduplicator(keep="soft", label_rule="unanimous"), "soft"),
    (S.GridDeduplicator(compare="raw"), "centre"),
    (S.LSHDeduplicator(rows_per_band=65, mode="simhash"), "rows"),
    (S.LSHDeduplicator(rule="window", window=0), "window"),
    (S.LSHDeduplicator(rule="window", similarity=0), "similarity"),
    (S.LSHDeduplicator(rule="window", similarity=1.1), "similarity"),
    (S.ClusterDeduplicator(low_dimension=True), "at most 3 columns"),
    (S.ClusterDeduplicator(radius=2.0), "radius"),
]


def refused(stage, words, error=InvalidParameter):
    gaps = "Imputer" in type(stage).__name__
    with pytest.raises(error, match=words) as caught:
        stage.fit_modes(DOMAIN if gaps else COMPLETE, ONE)
    assert caught.value.stage == type(stage).__name__
    assert caught.value.fix
    return caught.value


@pytest.mark.parametrize(("kind", "name", "value"), CASES)
def test_a_wrong_value(kind, name, value):
    error = refused(kind(**{name: value}), name)
    copied = pickle.loads(pickle.dumps(error)).at("step")
    assert (error.parameter, copied.parameter, copied.charged().parameter) == (name, name, name)


@pytest.mark.parametrize(("stage", "words"), TOGETHER)
def test_parameters_that_do_not_go_together(stage, words):
    refused(stage, words)


@pytest.mark.parametrize(
    "cell", [{"cell_width": [0.1]}, {"cell_width": [0.1] * 6, "keep": "first", "compare": "raw"}], ids=str
)
def test_as_many_sides_as_columns(cell):
    refused(S.GridDeduplicator(**cell), "cell", DomainMismatch)


@pytest.mark.parametrize(
    "basis",
    [
        *(-1, 1.5, "a", None, True, [1.0, 2.0], [[1.0], [2.0, 3.0]]),
        *(np.eye(5), np.zeros((6, 2)), np.full((6, 1), np.nan), np.ones((6, 2)), np.ones((6, 7))),
    ],
)
def test_columns_that_are_no_basis(basis):
    refused(S.PCA(2, output="projected", public_basis=basis), "basis")


BOUNDED = [
    S.MedianImputer(),
    S.TrimmedMeanImputer(),
    S.RegressionImputer(),
    S.RobustScaler(),
    S.SoftPCA(),
    S.PCA(1),
    S.GridQuantizer(),
]
COUNTING = [S.MedianImputer(), S.TrimmedMeanImputer(), S.RobustScaler(), S.MinMaxScaler(quantiles=(0.1, 0.9))]


@pytest.mark.parametrize("stage", [*BOUNDED, S.RandomProjection(2), S.MinMaxScaler(quantiles=(0.1, 0.9))], ids=repr)
def test_a_bound_on_rows_must_be_known(stage):
    with pytest.raises(MissingBound, match="row_norm"):
        make_pipeline(stage, GaussianMechanism(), delta=1e-6).plan(Domain(n_rows=100, n_features=2, max_missing=0))


@pytest.mark.parametrize("stage", [S.PCA(1), S.SoftPCA(), S.StandardScaler(), S.RandomProjection(2)], ids=repr)
def test_rows_with_gaps_need_an_imputer_first(stage):
    with pytest.raises(UnsupportedOrder, match="imputer"):
        stage.fit_modes(DOMAIN.but(max_missing=3), ONE)


@pytest.mark.parametrize("stage", COUNTING, ids=repr)
def test_rows_of_fractional_weight_have_no_rank(stage):
    with pytest.raises(UnsupportedOrder, match="rank") as caught:
        stage.fit_modes(DOMAIN, Distance(replaced=1, reweighted=2))
    assert caught.value.fix
