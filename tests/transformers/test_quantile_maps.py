"""Bins, ranks and splines between quantiles: scikit-learn's where these are exact, and close to them if released."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn import preprocessing

from ppdp import Adjacency, ColumnTransformer, Domain, Pipeline
from ppdp.exceptions import InvalidParameter, UnsupportedOrder
from ppdp.mechanisms import GradientBoostingClassifier, LogisticRegression
from ppdp.transformers import (
    CategoryEncoder,
    KBinsDiscretizer,
    MinMaxScaler,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
)

N = 4000
X = np.random.default_rng(0).lognormal(size=(N, 2))
X.flags.writeable = False
CLIPPED = np.clip(X, 0, 20)


def private(stage, table=X, **more):
    steps = [("range", MinMaxScaler(ranges=(0, 20))), ("quantiles", stage), ("model", LogisticRegression((0, 1)))]
    return Pipeline(steps, epsilon=5.0, delta=1e-6, random_state=0, **more).fit(table, (X[:, 0] > 1).astype(int))


@pytest.mark.parametrize("encode", ["onehot", "ordinal"])
def test_bins_are_those_of_scikit_learn_but_for_rows_next_to_edges(encode):
    theirs = preprocessing.KBinsDiscretizer(4, encode=encode.replace("onehot", "onehot-dense")).fit_transform(CLIPPED)
    alone = KBinsDiscretizer(4, encode).fit_transform(X)
    pipe = private(KBinsDiscretizer(4, encode))
    released = pipe[:-1].transform(X)
    assert alone.shape == released.shape == theirs.shape
    assert np.abs(alone - theirs).any(axis=1).mean() < 0.002
    assert np.abs(released - theirs).any(axis=1).mean() < 0.1
    assert pipe.certificate_.verify()


@pytest.mark.parametrize("output", ["uniform", "normal"])
def test_ranks_are_those_of_scikit_learn_but_for_straight_lines(output):
    theirs = preprocessing.QuantileTransformer(n_quantiles=1000, output_distribution=output).fit_transform(CLIPPED)
    pipe = private(QuantileTransformer(20, output))
    inner = (np.abs(preprocessing.QuantileTransformer(n_quantiles=1000).fit_transform(CLIPPED) - 0.5) < 0.45).all(
        axis=1
    )
    assert np.abs(pipe[:-1].transform(X) - theirs)[inner].max() < (0.05 if output == "uniform" else 0.25)
    assert pipe.certificate_.verify()


@pytest.mark.parametrize("bias", [True, False])
def test_splines_are_those_of_scikit_learn_with_these_knots(bias):
    pipe = private(SplineTransformer(6, include_bias=bias))
    knots = pipe[1].edges_ + 1e-6 * np.arange(6)[:, None]
    theirs = preprocessing.SplineTransformer(knots=knots, include_bias=bias).fit(knots).transform(pipe[:1].transform(X))
    np.testing.assert_allclose(pipe[:-1].transform(X), theirs, atol=1e-6)
    assert pipe.certificate_.verify()
    assert pipe[1].edges_[0, 0] < pipe[1].edges_[-1, 0] < 0  # where the rows are, not the range


def test_splines_beside_columns_of_categories():
    table = pd.DataFrame({"kind": np.where(X[:, 1] > 1, "a", "b"), "size": CLIPPED[:, 0]})
    encoder = CategoryEncoder({"kind": ["a", "b"]}, other=None)
    columns = ColumnTransformer([("kind", encoder, ["kind"]), ("size", MinMaxScaler(ranges=(0, 20)), ["size"])])
    steps = [("columns", columns), ("splines", SplineTransformer(4)), ("m", LogisticRegression((0, 1)))]
    pipe = Pipeline(steps, random_state=0).fit(table, (X[:, 0] > 1).astype(int))
    rows = pipe[:-1].transform(table)
    assert rows.shape == (N, 2 + 6)
    assert rows[:, 2:].min() >= 0
    assert np.allclose(rows[:, 2:].sum(axis=1), 1)
    assert pipe.score(table, (X[:, 0] > 1).astype(int)) > 0.9


def test_columns_of_categories_stay_and_names_tell_the_bins():
    table = pd.DataFrame({"kind": np.where(X[:, 1] > 1, "a", "b")})
    pipe = Pipeline(
        [
            ("kind", CategoryEncoder({"kind": ["a", "b"]}, other=None)),
            ("bins", KBinsDiscretizer(3)),
            ("m", LogisticRegression()),
        ],
        domain=Domain(classes=(0, 1)),
        random_state=0,
    ).fit(table, (X[:, 0] > 1).astype(int))
    assert pipe[:-1].transform(table).shape == (N, 2)
    some = KBinsDiscretizer(3, columns=[0]).fit(X)
    assert list(some.get_feature_names_out(["one", "two"])) == ["one_0", "one_1", "one_2", "two"]
    assert np.array_equal(some.transform(X)[:, 3], X[:, 1])


def test_missing_values_are_zeros_or_stay():
    rows = np.array([[1.0, np.nan], [2.0, 3.0], [5.0, 4.0]])
    assert KBinsDiscretizer(2).fit(rows).transform(rows)[0].tolist() == [1, 0, 0, 0]
    assert not SplineTransformer().fit(rows).transform(rows)[0, 7:].any()
    for stage in (KBinsDiscretizer(2, "ordinal"), QuantileTransformer(2)):
        assert np.isnan(stage.fit(rows).transform(rows)).tolist() == np.isnan(rows).tolist()


def test_a_column_of_one_value_has_bins():
    flat = np.column_stack([np.full(N, 3.0), X[:, 1]])
    for stage in (KBinsDiscretizer(3), SplineTransformer()):
        assert private(stage, flat).certificate_.verify()


@pytest.mark.parametrize("stage", [KBinsDiscretizer(2), QuantileTransformer(2), SplineTransformer(3, 1)])
def test_rows_reach_the_certified_norm_and_cross_an_edge_as_far_as_any(stage):
    """The norm sets the noise of what stands behind; that rows that moved count as replaced is no more than they do."""
    domain = Domain(n_rows=100, n_features=2, row_norm=math.sqrt(2), entry_bound=1.0)
    (way,) = stage.fit_modes(domain, Adjacency.replace().distance)
    edges = np.zeros((len(stage._levels), 2)) - isinstance(stage, KBinsDiscretizer)
    held = stage.read(edges, way, domain)
    rows = stage.map_rows(np.array([[-1.0, -1.0], [-1 + 1e-9, -1 + 1e-9], [1.0, 1.0]]), held)
    assert 1 - 1e-6 < np.linalg.norm(rows, axis=1).max() / way.domain.row_norm <= 1
    if isinstance(stage, KBinsDiscretizer):
        assert np.linalg.norm(rows[1] - rows[0]) == np.linalg.norm(rows[2] - rows[0]) == 2.0


def test_a_refusal_of_a_pipeline_with_them_can_be_read():
    steps = [("range", MinMaxScaler((0, 20))), ("scale", StandardScaler()), ("bins", KBinsDiscretizer(3))]
    with pytest.raises(UnsupportedOrder) as refused:
        Pipeline([*steps, ("m", GradientBoostingClassifier((0, 1)))]).fit(X, (X[:, 0] > 1).astype(int))
    assert "put an imputer before it" in str(refused.value)


@pytest.mark.parametrize(
    "stage",
    [
        KBinsDiscretizer(1),
        KBinsDiscretizer(10**6),
        KBinsDiscretizer(3, "dense"),
        QuantileTransformer(4, "beta"),
        SplineTransformer(2),
        SplineTransformer(degree=0),
        SplineTransformer(include_bias="no"),
    ],
)
def test_what_is_refused(stage):
    with pytest.raises(InvalidParameter):
        private(stage)
