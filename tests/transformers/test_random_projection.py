"""RandomProjection as people use it."""

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_array, csr_array, csr_matrix, issparse, random_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from ppdp import Adjacency, Distance, Domain, make_pipeline
from ppdp.bounds.random_matrix import BINS, FAMILIES, draw
from ppdp.certificate import Certificate, verify
from ppdp.certificate.canonical import digest
from ppdp.exceptions import DomainMismatch, InvalidParameter
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.transformers import Deduplicator, NormClipper, RandomProjection, StandardScaler

VARIANTS = [
    *({"family": family} for family in FAMILIES),
    {"family": "sparse", "s": 2},
    *({"family": "oporp", "bins": bins} for bins in BINS),
]
each_variant = pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: "-".join(map(str, variant.values())))
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
    assert stage.transform(X) == pytest.approx((stage.components_ @ X.T).T, rel=1e-9, abs=1e-9)
    assert RandomProjection(5, family, seed=3).fit(X[:1]).transform(X).tobytes() == stage.transform(X).tobytes()
    assert not np.array_equal(RandomProjection(5, family, seed=4).fit_transform(X), stage.transform(X))


def test_it_may_add_columns():
    assert RandomProjection(50).fit_transform(people()[0]).shape == (1000, 50)


@each_variant
def test_in_a_pipeline_it_costs_nothing_and_the_certificate_holds(variant):
    X, y = people()
    steps = NormClipper(3.0), RandomProjection(8, **variant), Deduplicator(), StandardScaler()
    pipe = make_pipeline(*steps, LogisticRegression(classes=(0, 1)), epsilon=5.0, delta=1e-5).fit(X, y)
    assert pipe.certificate_.verify()
    assert pipe.certificate_.status == "UNCONDITIONAL"
    assert pipe.certificate_["steps"][1]["distance"] == pipe.certificate_["entrance"]["distance"]
    assert pipe.score(X, y) > 0.6
    clipped = NormClipper(3.0).fit_transform(X)
    alone = RandomProjection(8, **variant).fit_transform(clipped)
    assert np.array_equal(pipe["randomprojection"].transform(clipped), alone)
    step = pipe.certificate_["steps"][1]
    assert (step["formula"], step["parameters"]) == ("projection.drawn", {"n_components": 8, "seed": 0, **variant})


def test_rows_that_moved_go_on_through_a_bounded_map():
    X, _ = people()
    steps = NormClipper(3.0), StandardScaler(fit_mode="exact"), RandomProjection(8, "oporp")
    pipe = make_pipeline(*steps, GaussianMechanism(), epsilon=5.0, delta=1e-5).fit(X)
    before, after = (pipe.certificate_["steps"][i]["distance"] for i in (1, 2))
    assert after["radius"] / before["radius"] == pytest.approx(np.sqrt(3), rel=1e-6)  # 20 columns in 8: at most 3 each
    assert pipe.certificate_.verify()


@pytest.mark.parametrize(
    "change",
    [{"seed": 1}, {"family": "sparse"}, {"n_components": 4}, {"seed": -1}, {"n_components": 10**12}, {"s": 2.0}],
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


def test_a_secret_projection_is_not_taken_for_privacy():
    with pytest.raises(InvalidParameter, match="secret does not make it private"):
        RandomProjection(3, seed=None).fit_modes(DOMAIN, None)


def test_many_columns_need_the_family_without_a_matrix():
    wide = DOMAIN.but(n_features=100_000)
    with pytest.raises(InvalidParameter, match="oporp"):
        RandomProjection(1000).fit_modes(wide, None)
    out, _ = RandomProjection(1000, "oporp").stability_map(wide, Adjacency.replace().distance)
    assert out.n_features == 1000
    with pytest.raises(InvalidParameter, match="columns") as caught:
        RandomProjection(2, "oporp").fit_modes(DOMAIN.but(n_features=2**22 + 1), None)
    assert caught.value.stage == "RandomProjection"


# ---------------------------------------------------------------- sparse rows


def counts(n=60, d=500):
    return random_array((n, d), density=0.02, rng=np.random.default_rng(0), format="csr")


@each_family
@pytest.mark.parametrize("kind", [csr_array, csc_array, coo_array, csr_matrix])
@pytest.mark.repeated("kind")
def test_sparse_rows_have_the_images_of_the_same_rows_made_dense(family, kind):
    X = counts()
    stage = RandomProjection(7, family).fit(kind(X))
    whole = RandomProjection(7, family).fit_transform(X.toarray())
    assert stage.transform(kind(X)).tobytes() == whole.tobytes()
    assert RandomProjection(7, family).fit_transform(kind(X)).tobytes() == whole.tobytes()
    doubled = csr_array((np.repeat(X.data, 2) / 2, np.repeat(X.indices, 2), 2 * X.indptr), X.shape)
    held = doubled.nnz
    assert stage.transform(doubled).tobytes() == whole.tobytes()
    assert doubled.nnz == held  # what was given is left as it was
    domain = Domain(n_rows=60, n_features=500, row_norm=1.0, max_missing=0)
    assert stage.stability_map(domain, Distance(replaced=1)) == clone(stage).stability_map(domain, Distance(replaced=1))


@pytest.mark.parametrize("family", ["gaussian", "sparse", "oporp"])
def test_sparse_rows_are_never_made_dense(family):
    """A million columns and twenty thousand rows would be 160 GB."""
    X = random_array((20_000, 1_000_000), density=1e-6, rng=np.random.default_rng(0), format="csr")
    assert RandomProjection(3, family).fit_transform(X).shape == (20_000, 3)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("kind", [csr_array, csc_array])
def test_sparse_rows_that_are_not_finite_are_refused(kind, bad):
    X = counts()
    stage = RandomProjection(3, "oporp").fit(X)
    X.data[5] = bad
    for use in (stage.transform, stage.fit, stage.fit_transform):
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            use(kind(X))
    twice = csr_array((np.array([1.5e308, 1.5e308]), np.array([0, 0]), np.array([0, 2])), shape=(1, 500))
    with pytest.raises(ValueError, match="infinity"):
        stage.transform(twice)


# ---------------------------------------------------------------- the way back


@each_variant
def test_the_way_back_is_least_squares(variant):
    X, _ = people(50)
    stage = RandomProjection(8, **variant).fit(X)
    A = stage.components_.toarray() if issparse(stage.components_) else stage.components_
    images = stage.transform(X)
    back = stage.inverse_transform(images)
    assert back == pytest.approx(np.linalg.lstsq(A, images.T)[0].T, abs=1e-8)
    assert stage.transform(back) == pytest.approx(images, abs=1e-7)
    assert stage.inverse_transform(images[3:4]).tobytes() == back[3:4].tobytes()
    with pytest.raises(DomainMismatch, match="images"):
        stage.inverse_transform(images[:, 1:])
    with pytest.raises(NotFittedError):
        clone(stage).inverse_transform(images)


def test_a_sparse_matrix_with_as_many_entries_as_columns_is_inverted_as_it_is():
    """It may have two entries in one column and none in another, or one in each, which are not 1."""
    images = np.random.default_rng(0).standard_normal((5, 2))
    for seed in range(40):
        stage = RandomProjection(2, "sparse", seed).fit(np.eye(4))
        expected = np.linalg.lstsq(stage.components_.toarray(), images.T)[0].T
        assert stage.inverse_transform(images) == pytest.approx(expected, abs=1e-12)
        three = RandomProjection(2, "sparse", seed, s=1.5).fit(np.eye(2))
        expected = np.linalg.lstsq(three.components_.toarray(), images.T)[0].T
        assert three.inverse_transform(images) == pytest.approx(expected, abs=1e-12)


def test_components_without_columns_give_nothing_back():
    stage = RandomProjection(9, "oporp", bins="variable").fit(np.eye(4))
    assert stage.inverse_transform(stage.transform(np.eye(4))).shape == (4, 4)
    assert np.isfinite(stage.inverse_transform(np.ones((1, 9)))).all()
