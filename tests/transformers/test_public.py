"""Transformers of scikit-learn, fitted on public data."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from effort import rounds
from sklearn import preprocessing as P
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.frozen import FrozenEstimator
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from ppdp import Adjacency, Distance, Domain, make_pipeline
from ppdp.exceptions import DomainMismatch, InvalidParameter, MissingBound
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.testing import check_stage
from ppdp.transformers import Deduplicator, NormClipper, Public
from ppdp.transformers import StandardScaler as PrivateScaler

ONE = Adjacency.replace().distance

D = 5
PUBLISHED = np.random.default_rng(1).standard_normal((200, D)) * [0.5, 1, 2, 5, 0.1] + [0, 1, 0, -3, 0.2]
GAPPY = np.where(np.random.default_rng(2).random(PUBLISHED.shape) < 0.2, np.nan, PUBLISHED)
DOMAIN = Domain(n_rows=8, n_features=D, row_norm=2.0, max_missing=0)
MOVED = Distance(moved=3, radius=0.1)

KNOWN = [
    P.StandardScaler(),
    P.StandardScaler(with_mean=False),
    P.StandardScaler(with_std=False),
    P.MinMaxScaler(),
    P.MinMaxScaler((-3, 1), clip=True),
    P.MaxAbsScaler(),
    P.RobustScaler(),
    P.RobustScaler(with_centering=False, with_scaling=False),
    PCA(3),
    PCA(2, whiten=True),
    IncrementalPCA(2),
    TruncatedSVD(2, random_state=0),
    GaussianRandomProjection(3, random_state=0),
    SparseRandomProjection(3, random_state=0),
]
known = pytest.mark.parametrize("transformer", [t.fit(PUBLISHED) for t in KNOWN], ids=str)


def rows(n=300):
    return np.random.default_rng(0).standard_normal((n, D))


def steepest(function, tries=3000):
    """The steepest slope of a function between rows that are near each other."""
    rng = np.random.default_rng(5)
    X = rng.uniform(-0.8, 0.8, (tries, D))
    steps = 1e-4 * np.concatenate([rng.standard_normal((tries - D, D)), np.eye(D)])
    return (np.linalg.norm(function(X + steps) - function(X), axis=1) / np.linalg.norm(steps, axis=1)).max()


# ---------------------------------------------------------------- what is known


@known
def test_it_transforms_as_scikit_learn_does(transformer):
    out = Public(transformer, row_norm=1e6).fit_transform(rows())
    assert out == pytest.approx(transformer.transform(rows()), rel=1e-12, abs=1e-12)


@known
def test_the_lipschitz_constant_is_computed(transformer):
    way = Public(transformer).fit_modes(DOMAIN, MOVED)[0]
    slope = way.parameters["lipschitz"]
    assert way.distance.radius == pytest.approx(slope * MOVED.radius)
    assert 0.85 * slope < steepest(transformer.transform) <= slope * (1 + 1e-6)


@known
def test_the_norm_is_computed(transformer):
    """The largest that can occur, so that nothing is clipped."""
    X = rows() * 2.0 / np.linalg.norm(rows(), axis=1, keepdims=True)
    stage = Public(transformer)
    norm = stage.fit_modes(DOMAIN, MOVED)[0].domain.row_norm
    assert np.linalg.norm(transformer.transform(X), axis=1).max() <= norm
    assert stage.map_rows(X, stage.prepare(None, stage.fit_modes(DOMAIN, MOVED)[0], DOMAIN)) == pytest.approx(
        transformer.transform(X), rel=1e-12, abs=1e-12
    )


@known
@pytest.mark.repeated("transformer")  # what is computed of each stands above
def test_it_keeps_the_contract(transformer):
    assert 0.5 < check_stage(Public(transformer), Domain(n_features=D), pairs=rounds(4), climbs=rounds(4)) <= 1 + 1e-9


@known
def test_equal_rows_have_equal_bits_wherever_they_stand(transformer):
    stage = Public(transformer, row_norm=3.0).fit(rows())
    whole = stage.transform(rows())
    for size in (1, 2, 5, 100, 299):
        some = np.random.default_rng(size).permutation(300)[:size]
        assert stage.transform(rows()[some]).tobytes() == whole[some].tobytes()


@pytest.mark.parametrize("transformer", [P.StandardScaler(), P.MinMaxScaler(), PCA(2, whiten=True)])
def test_single_precision_makes_no_difference(transformer):
    """Attributes are float32 then, and a constant computed in float32 would be too small by more than is forgiven."""
    for seed in range(10):
        data = np.random.default_rng(seed).standard_normal((50, D)).astype(np.float32)
        fitted = clone(transformer).fit(data)
        slope = Public(fitted).fit_modes(DOMAIN, MOVED)[0].parameters["lipschitz"]
        exact = (
            fitted.components_ if hasattr(fitted, "components_") else np.diag(1 / fitted.scale_.astype(np.longdouble))
        )
        if isinstance(fitted, P.MinMaxScaler):
            exact = np.diag(fitted.scale_.astype(np.longdouble))
        if isinstance(fitted, PCA):
            exact = exact.astype(float) / np.sqrt(fitted.explained_variance_.astype(float))[:, None]
        assert np.linalg.norm(exact.astype(float), 2) <= slope


def test_rounding_is_charged_to_moved_rows():
    """Far from the centre float64 is coarse: what a moved row may be off by grows with the centre."""
    far = P.StandardScaler().fit(PUBLISHED + 1e9)
    tiny = Distance(moved=1, radius=1e-12)
    way = Public(far, row_norm=1e12).fit_modes(DOMAIN, tiny)[0]
    assert way.distance.radius > 1e-8
    X = np.random.default_rng(0).uniform(-0.8, 0.8, (500, D))
    Z = X + 1e-12 / math.sqrt(D)
    move = np.linalg.norm(far.transform(X) - far.transform(Z), axis=1).max()
    assert move <= way.distance.radius


def test_imputers_fill_gaps():
    stage = Public(SimpleImputer().fit(GAPPY))
    assert stage.fills_gaps
    domain, distance = stage.stability_map(DOMAIN.but(max_missing=4), MOVED)
    assert (domain.max_missing, distance.moved) == (0, 3)
    X = np.where(np.random.default_rng(3).random((300, D)) < 0.2, np.nan, rows())
    assert stage.fit_transform(X) == pytest.approx(stage.transformer.transform(X))
    assert check_stage(stage, Domain(n_features=D), pairs=rounds(2), climbs=rounds(2)) <= 1
    y = (X[:, 0] > 0).astype(int)
    steps = NormClipper(3.0), stage, PrivateScaler(), LogisticRegression(classes=(0, 1))
    pipe = make_pipeline(*steps, epsilon=8.0, delta=1e-4).fit(X, y)
    assert pipe.certificate_.verify()
    assert pipe.predict(X).shape == (300,)


@pytest.mark.parametrize("transformer", [P.StandardScaler(), P.MinMaxScaler(), PCA(2)])
def test_others_leave_them(transformer):
    assert not Public(transformer.fit(PUBLISHED)).fills_gaps


@pytest.mark.parametrize(
    "transformer",
    [
        SimpleImputer(missing_values=-1).fit(PUBLISHED),
        P.Normalizer().fit(PUBLISHED),
        P.QuantileTransformer(n_quantiles=20).fit(PUBLISHED),
        P.FunctionTransformer(np.tanh).fit(PUBLISHED),
        type("Mine", (P.StandardScaler,), {})().fit(PUBLISHED),
        type("StandardScaler", (P.StandardScaler,), {"__module__": "mine"})().fit(PUBLISHED),
    ],
    ids=lambda t: type(t).__name__,
)
def test_of_others_it_must_be_declared(transformer):
    with pytest.raises(MissingBound, match="Lipschitz constant") as caught:
        Public(transformer, row_norm=1.0).fit_modes(DOMAIN, MOVED)
    assert "math.inf" in caught.value.fix
    with pytest.raises(MissingBound, match="norm"):
        Public(transformer, lipschitz=1.0).fit_modes(DOMAIN, MOVED)
    assert Public(transformer, 7.0, 1.0).stability_map(DOMAIN, MOVED)[1].radius == pytest.approx(0.7)
    assert Public(transformer, math.inf, 1.0).stability_map(DOMAIN, MOVED)[1] == Distance(replaced=3)


# ---------------------------------------------------------------- what is declared


def test_the_certificate_lists_what_the_user_declares():
    sampler = RBFSampler(n_components=10, random_state=0).fit(PUBLISHED)
    stage = Public(sampler, lipschitz=2.0, row_norm=2.0, rounding=1e-12)
    pipe = make_pipeline(NormClipper(2.0), stage, GaussianMechanism(), epsilon=5.0, delta=1e-4).fit(rows())
    words = [fact["value"] for fact in pipe.certificate_["facts"] if fact["name"] == "public"]
    assert "RBFSampler was fitted on public data" in words[0]
    assert words[1:] == [
        "its Lipschitz constant is 2.0",
        "rows around a row change its result by at most 1e-12 of row_norm",
    ]
    assert pipe.certificate_.verify()


def test_matrix_products_of_others_need_a_declared_rounding():
    sampler = RBFSampler(n_components=40, random_state=0).fit(PUBLISHED)
    with pytest.raises(InvalidParameter, match="among other rows"):
        Public(sampler, lipschitz=2.0, row_norm=2.0).fit_modes(DOMAIN, ONE)
    domain, distance = Public(sampler, 2.0, 2.0, rounding=1e-12).stability_map(DOMAIN, ONE)
    assert (distance.replaced, distance.moved) == (1, 7)  # every other row
    assert 2 * 2e-12 <= distance.radius < 2.1 * 2e-12
    assert domain.row_norm == 2.0
    assert (
        check_stage(Public(sampler, 6.0, 2.0, rounding=1e-12), Domain(n_features=D), pairs=rounds(2), climbs=rounds(2))
        <= 1
    )


def test_mixing_rows_is_no_rounding():
    class Centring(TransformerMixin, BaseEstimator):
        def fit(self, X, y=None):
            self.fitted_ = True
            return self

        def transform(self, X):
            return X - X.mean(axis=0)

    for rounding in (None, 1e-3):
        with pytest.raises(InvalidParameter, match="among other rows"):
            Public(Centring().fit(PUBLISHED), 1.0, 1.0, rounding).fit_modes(DOMAIN, MOVED)


@pytest.mark.parametrize("transformer", [P.OneHotEncoder(handle_unknown="ignore"), KNNImputer(), P.Normalizer()])
def test_anything_that_is_row_wise_will_do(transformer):
    stage = Public(transformer.fit(np.round(PUBLISHED)), lipschitz=math.inf, row_norm=3.0)
    pipe = make_pipeline(NormClipper(3.0), stage, Deduplicator(), GaussianMechanism(), epsilon=5.0, delta=1e-4)
    assert pipe.fit(rows()).certificate_.verify()
    assert pipe.certificate_["steps"][1]["distance"]["moved"] == 0


@pytest.mark.filterwarnings("error")
def test_failures_and_warnings_show_in_nothing_but_the_row():
    class Picky(TransformerMixin, BaseEstimator):
        def fit(self, X, y=None):
            self.fitted_ = True
            return self

        def transform(self, X):
            import warnings

            warnings.warn("a private row", stacklevel=2)
            if (X[:, 0] > 2).any():
                raise ValueError(f"bad row {X[0]}")
            return X

    X = rows()
    X[:3, 0] = 3
    out = Public(Picky().fit(PUBLISHED), 1.0, 9.0).fit_transform(X)
    assert (out[:3] == 0).all()
    assert np.array_equal(out[3:], np.where(X[3:, :1] > 2, 0.0, X[3:]))


# ---------------------------------------------------------------- as an estimator


@pytest.mark.parametrize("wrap", [lambda t: t, FrozenEstimator])
def test_clone_and_pickle_keep_the_fitted_transformer(wrap):
    fitted = PCA(2).fit(PUBLISHED)
    stage = Public(wrap(fitted))
    again = clone(stage)
    assert again is not stage
    assert again.transformer is stage.transformer
    assert set(stage.get_params(deep=True)) == {"transformer", "lipschitz", "row_norm", "rounding"}
    expected = stage.fit_transform(rows())
    assert np.array_equal(again.fit_transform(rows()), expected)
    assert np.array_equal(pickle.loads(pickle.dumps(stage)).transform(rows()), expected)
    pipe = make_pipeline(NormClipper(2.0), stage, GaussianMechanism(), epsilon=5.0, delta=1e-4)
    assert clone(pipe).fit(rows()).certificate_.verify()


def test_frames_and_names():
    frame = pd.DataFrame(rows(), columns=list("abcde"))
    fitted = PCA(2).fit(pd.DataFrame(PUBLISHED, columns=list("abcde")))
    assert list(Public(fitted).fit(frame).get_feature_names_out()) == ["pca0", "pca1"]
    sampler = P.FunctionTransformer(lambda X: np.asarray(X)[:, :2]).fit(PUBLISHED)
    assert list(Public(sampler, 1.0, 1.0).fit(frame).get_feature_names_out()) == ["public0", "public1"]
    pipe = make_pipeline(NormClipper(2.0), Public(fitted), PrivateScaler(), epsilon=9.0, delta=1e-4).fit(frame)
    assert list(pipe.get_feature_names_out()) == ["pca0", "pca1"]
    with pytest.raises(DomainMismatch, match="other columns"):
        Public(fitted).fit(frame.rename(columns={"a": "z"}))
    with pytest.raises(DomainMismatch, match="5 of them, 4 come in"):
        Public(fitted).fit(frame[list("abcd")])


@pytest.mark.parametrize(
    ("transformer", "words"),
    [
        (None, "no transformer"),
        (5, "no transformer"),
        (P.StandardScaler, "no transformer"),
        (type("Map", (), {"transform": lambda self, X: X})(), "no transformer"),
        (P.StandardScaler(), "not fitted"),
        (FrozenEstimator(PCA()), "not fitted"),
    ],
    ids=["none", "number", "class", "no parameters", "not fitted", "frozen, not fitted"],
)
def test_it_must_be_fitted_before_any_data(transformer, words):
    pipe = make_pipeline(NormClipper(), Public(transformer, 1.0, 1.0), GaussianMechanism())
    with pytest.raises(InvalidParameter, match=words) as caught:
        pipe.plan(DOMAIN)
    assert caught.value.stage == "Public"
    assert "public data" in caught.value.fix


@pytest.mark.parametrize(
    "parameters",
    [{"lipschitz": v} for v in (0, -1, "1", math.nan, True)]
    + [{"row_norm": v} for v in (0, -1, "1", math.nan, math.inf)]
    + [{"rounding": v} for v in (-1, 2, "1", math.nan)],
)
def test_impossible_parameters(parameters):
    with pytest.raises(InvalidParameter, match=next(iter(parameters))):
        Public(P.StandardScaler().fit(PUBLISHED), **parameters).fit_modes(DOMAIN, MOVED)


def test_without_a_bound_before_it():
    scaler = P.StandardScaler().fit(PUBLISHED)
    unbounded = DOMAIN.but(row_norm=None)
    with pytest.raises(MissingBound, match="norm"):
        Public(scaler).fit_modes(unbounded, ONE)
    assert Public(scaler, row_norm=2.0).stability_map(unbounded, ONE)[0].row_norm == 2.0
    pipe = make_pipeline(Public(scaler, row_norm=2.0), GaussianMechanism(), epsilon=5.0, delta=1e-4).fit(rows())
    assert pipe.certificate_.verify()
