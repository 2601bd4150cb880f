"""K-means: hardly worse than scikit-learn's, and refusals before the charge."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.spatial.distance import cdist
from sklearn import cluster
from sklearn.datasets import make_blobs

from ppdp import Adjacency, Domain, Pipeline, PrivateSearchCV
from ppdp.data.clusters import nearest
from ppdp.exceptions import InvalidParameter, UnknownParameter, UnsupportedOrder
from ppdp.mechanisms import KMeans, LogisticRegression
from ppdp.transformers import ClusterDistances, MinMaxScaler, StandardScaler

X, _ = make_blobs(5000, 2, centers=4, cluster_std=0.08, center_box=(-0.7, 0.7), random_state=3)
X = np.clip(X, -1, 1)


def fitted(rows=X, *, model=None, ranges=(-1, 1), weights=None, **more):
    steps = [("range", MinMaxScaler(ranges=ranges)), ("model", model or KMeans(4))]
    return Pipeline(steps, **{"epsilon": 1.0, "delta": 1e-6, "random_state": 0, **more}).fit(
        rows, sample_weight=weights
    )


def inertia(centers, rows=X):
    return nearest(rows, centers)[1].sum()


def test_it_is_scikit_learns_but_for_noise():
    pipe = fitted()
    assert inertia(pipe[-1].cluster_centers_) < 1.05 * cluster.KMeans(4, n_init=10, random_state=0).fit(X).inertia_
    assert pipe[-1].counts_.sum() == pytest.approx(len(X), rel=0.05)
    assert np.array_equal(pipe.predict(X), nearest(X, pipe[-1].cluster_centers_)[0])
    assert np.array_equal(pipe.predict(X)[:20], np.ravel([pipe.predict(row[None]) for row in X[:20]]))
    assert pipe.certificate_.verify()
    pipe.set_params(random_state=None).fit(X)
    assert np.array_equal(pipe.release_.to_sklearn().predict(X), pipe.predict(X))


def test_no_centre_stays_where_noise_alone_seemed_to_be_rows():
    line, _ = make_blobs(10_000, 1, centers=8, cluster_std=0.02, center_box=(-0.8, 0.8), random_state=1)
    far = [np.abs(line - fitted(line, model=KMeans(10), random_state=draw)[-1].cluster_centers_.T) for draw in (1, 4)]
    assert max(away.min(axis=0).max() for away in far) < 0.01


def test_the_number_of_rows_may_be_private():
    pipe = fitted(domain=Domain(n_rows=8000, adjacency=Adjacency.add_remove()))
    assert inertia(pipe[-1].cluster_centers_) < 1.2 * inertia(fitted()[-1].cluster_centers_)


def test_weights_of_rows_count():
    half = np.where(X[:, 0] > 0, 2.0, 0.5)
    pipe = fitted(weights=half, epsilon=3.0, domain=Domain(max_weight=2.0))
    best = cluster.KMeans(4, n_init=10, random_state=0).fit(X, sample_weight=half).inertia_
    assert half @ nearest(X, pipe[-1].cluster_centers_)[1] < 1.05 * best
    assert pipe[-1].counts_.sum() == pytest.approx(half.sum(), rel=0.05)


def test_centres_are_told_in_raw_units():
    pipe = fitted(10 * X + 50, ranges=(40, 60))
    told = pipe.release_.to_pandas().query("statistic.str.startswith('center')")
    raw = told["raw_value"].to_numpy().reshape(4, 2)
    assert np.allclose(raw, 10 * pipe[-1].cluster_centers_ + 50)
    assert 0 < told["raw_standard_error"].max() < 1


@pytest.mark.parametrize(
    ("rows", "model"),
    [
        (np.zeros((500, 2)), KMeans(4)),  # constant
        (np.ones((500, 20)), KMeans(3)),  # in a corner, of more columns than are halved
        (X[:300], KMeans(200)),  # more clusters than cells that are seen
        (X[:8], KMeans(1)),
    ],
)
def test_centres_stay_in_the_public_range(rows, model):
    centers = fitted(rows, model=model)[-1].cluster_centers_
    assert centers.shape == (model.n_clusters, rows.shape[1])
    assert np.abs(centers).max() < 1 + 1e-8
    if model.n_clusters < 10 and len(rows) == 500:  # a column that does not vary
        assert np.abs(centers - rows[0]).max(axis=1).min() < 0.6


def test_constant_columns_leave_the_others_to_be_clustered():
    rows = np.column_stack([X, np.full(len(X), 0.3)])
    best = cluster.KMeans(4, n_init=10, random_state=0).fit(rows).inertia_
    assert inertia(fitted(rows)[-1].cluster_centers_, rows) < 1.05 * best


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (KMeans(5001), "rows, 5000"),
        (KMeans(0), "n_clusters"),
        (KMeans(2, max_depth=9), "max_depth"),
        (KMeans(2, max_iter=0), "max_iter"),
    ],
)
def test_what_is_refused(model, says):
    with pytest.raises(InvalidParameter, match=says):
        fitted(model=model)


def test_distances_from_released_centres_stand_in_front_of_a_model(tmp_path):
    labels = cluster.KMeans(4, n_init=10, random_state=0).fit_predict(X) % 2
    steps = [("range", MinMaxScaler(ranges=(-1, 1))), ("clusters", ClusterDistances(4)), ("scale", StandardScaler())]
    pipe = Pipeline([*steps, ("model", LogisticRegression((0, 1)))], epsilon=1.0, delta=1e-6).fit(X, labels)
    assert (pipe.predict(X) == labels).mean() > 0.97
    assert pipe.certificate_.verify()
    centers = pipe["clusters"].cluster_centers_
    assert np.allclose(ClusterDistances(4).fit_transform(X).min(axis=1).mean(), 0.09, atol=0.02)
    assert np.abs(pipe[:2].transform(X) - cdist(X, centers)).max() < 1e-9
    assert np.allclose(pipe.release_.to_sklearn().predict_proba(X), pipe.predict_proba(X), atol=1e-6)
    pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], "y": labels}), tmp_path / "rows.parquet", row_group_size=700)
    pipe.set_params(random_state=0)
    found = [pipe.fit(*rows)["clusters"].cluster_centers_ for rows in ((X, labels), (tmp_path / "rows.parquet", "y"))]
    assert np.array_equal(*found)


def test_more_than_memory_and_missing_values_are_refused():
    facts = Domain(n_rows=10**9, n_features=999, row_norm=1.0)
    with pytest.raises(InvalidParameter, match="2000"):
        KMeans(3000).query_spec(facts.but(max_missing=0))
    with pytest.raises(UnsupportedOrder, match="missing"):
        KMeans(3).query_spec(facts)
    with pytest.raises(UnknownParameter, match="init"):
        KMeans(3, init="random")


@pytest.mark.parametrize("name", ["labels_", "inertia_", "fit_predict"])
def test_what_is_the_rows_own_is_named_where_somebody_asks_for_it(name):
    for asked in (KMeans(3), Pipeline([("range", MinMaxScaler((0, 1))), ("clusters", KMeans(3))])):
        with pytest.raises(AttributeError, match=f"'{name}': .* Fix: "):
            getattr(asked, name)
        assert not hasattr(asked, name)


def test_numbers_of_clusters_are_not_searched_for():
    pipe = Pipeline([("range", MinMaxScaler((0, 1))), ("clusters", KMeans(3))])
    with pytest.raises(InvalidParameter, match=r"learns from no labels.*from public knowledge"):
        PrivateSearchCV(pipe, {"clusters__n_clusters": [2, 3]}).fit(np.zeros((100, 2)))
