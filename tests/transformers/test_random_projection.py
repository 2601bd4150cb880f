"""RandomProjection as people use it."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import issparse
from sklearn.base import clone

from ppdp import Adjacency, Domain, make_pipeline
from ppdp.bounds.projection import FAMILIES, draw
from ppdp.certificate import Certificate, verify
from ppdp.certificate.canonical import digest
from ppdp.exceptions import InvalidParameter, MissingBound, UnsupportedOrder
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.transformers import Deduplicator, MeanImputer, NormClipper, RandomProjection, StandardScaler

each_family = pytest.mark.parametrize("family", FAMILIES)
DOMAIN = Domain(n_rows=1000, n_features=20, row_norm=1.0, max_missing=0)


def people(n=1000, d=20):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, (X @ np.ones(d) > 0).astype(int)


@each_family
def test_rows_are_multiplied_by_the_matrix_of_the_seed(family):
    X, _ = people()
    stage = RandomProjection(5, family, seed=3).fit(X)
    assert (stage.components_ != draw(family, 5, 20, 3)).sum() == 0
    assert issparse(stage.components_) == (family in ("sparse", "oporp"))
    assert stage.transform(X) == pytest.approx((stage.components_ @ X.T).T, rel=1e-12, abs=1e-12)
    assert RandomProjection(5, family, seed=3).fit(X[:1]).transform(X).tobytes() == stage.transform(X).tobytes()
    assert not np.array_equal(RandomProjection(5, family, seed=4).fit_transform(X), stage.transform(X))


def test_it_may_add_columns():
    assert RandomProjection(50).fit_transform(people()[0]).shape == (1000, 50)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_containers_and_names(frame):
    X = pd.DataFrame(people()[0], columns=[f"c{i}" for i in range(20)])
    stage = RandomProjection(2).set_output(transform="pandas")
    out = stage.fit_transform(frame(X.to_dict("list")))
    assert list(out.columns) == list(stage.get_feature_names_out()) == ["randomprojection0", "randomprojection1"]
    assert np.array_equal(out, RandomProjection(2).fit_transform(X.to_numpy()))


@each_family
def test_in_a_pipeline_it_costs_nothing_and_the_certificate_holds(family):
    X, y = people()
    steps = NormClipper(3.0), RandomProjection(8, family), Deduplicator(), StandardScaler()
    pipe = make_pipeline(*steps, LogisticRegression(classes=(0, 1)), epsilon=5.0, delta=1e-5).fit(X, y)
    assert pipe.certificate_.verify()
    assert pipe.certificate_.status == "UNCONDITIONAL"
    assert pipe.certificate_["steps"][1]["distance"] == pipe.certificate_["entrance"]["distance"]
    assert pipe.score(X, y) > 0.6
    clipped = NormClipper(3.0).fit_transform(X)
    assert np.array_equal(
        pipe["randomprojection"].transform(clipped), RandomProjection(8, family).fit_transform(clipped)
    )


def test_rows_that_moved_go_on_through_a_bounded_map():
    X, _ = people()
    steps = NormClipper(3.0), StandardScaler(statistics="exact"), RandomProjection(8, "oporp")
    pipe = make_pipeline(*steps, GaussianMechanism(), epsilon=5.0, delta=1e-5).fit(X)
    before, after = (pipe.certificate_["steps"][i]["distance"] for i in (1, 2))
    assert after["radius"] / before["radius"] == pytest.approx(np.sqrt(3), rel=1e-6)  # 20 columns in 8: at most 3 each
    assert pipe.certificate_.verify()


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"family": "sparse"}, {"n_components": 4}, {"seed": -1}, {"n_components": 10**12}]
)
def test_a_certificate_names_the_matrix_that_was_used(change):
    X, _ = people()
    pipe = make_pipeline(NormClipper(3.0), RandomProjection(3), GaussianMechanism(), epsilon=5.0, delta=1e-5).fit(X)
    content = pipe.certificate_.to_dict()
    assert content["steps"][1]["parameters"] == {"family": "gaussian", "n_components": 3, "seed": 0}
    content["steps"][1]["parameters"] |= change
    body = {k: v for k, v in content.items() if k != "digest"}
    assert not verify({**body, "digest": digest(body)})
    assert Certificate.from_json(pipe.certificate_.to_json()).verify()


@pytest.mark.parametrize(
    "parameters",
    [{"n_components": v} for v in (0, -1, 1.5, True, "auto", None, 10**9)]
    + [{"family": v} for v in ("normal", None, 1)]
    + [{"seed": v} for v in (-1, 1.5, None, True, 2**63, np.random.default_rng(0))],
)
def test_impossible_parameters(parameters):
    with pytest.raises(InvalidParameter, match=next(iter(parameters))) as caught:
        RandomProjection(**parameters).ways(DOMAIN, None)
    assert caught.value.stage == "RandomProjection"


def test_many_columns_need_the_family_without_a_matrix():
    wide = DOMAIN.but(n_features=100_000)
    with pytest.raises(InvalidParameter, match="oporp"):
        RandomProjection(1000).ways(wide, None)
    out, _ = RandomProjection(1000, "oporp").stability_map(wide, Adjacency.replace().distance)
    assert out.n_features == 1000


def test_it_needs_bounded_rows_without_gaps():
    with pytest.raises(MissingBound, match="row_norm"):
        make_pipeline(RandomProjection(3), GaussianMechanism()).plan(Domain(n_rows=100, n_features=4))
    with pytest.raises(UnsupportedOrder, match="imputer") as caught:
        make_pipeline(NormClipper(), RandomProjection(3), MeanImputer(), GaussianMechanism()).plan(
            Domain(n_rows=100, n_features=4)
        )
    assert caught.value.stage == "RandomProjection"


def test_clone_keeps_the_parameters():
    assert clone(RandomProjection(4, "sparse", 9)).get_params() == {"n_components": 4, "family": "sparse", "seed": 9}
