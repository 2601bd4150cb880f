"""RowMap with a public norm instead of public ranges, and what it makes of failing rows."""

from functools import partial, wraps

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler as OwnScaler

from ppdp import Distance, Domain, make_pipeline
from ppdp.core.closure_inspection import captured_by
from ppdp.exceptions import InvalidParameter, MissingBound
from ppdp.mechanisms import GaussianMechanism
from ppdp.testing import check_stage
from ppdp.transformers import MeanImputer, NormClipper, RowMap, StandardScaler

DOMAIN = Domain(n_rows=10, n_features=2, row_norm=1.0, max_missing=0)
MOVED = Distance(moved=3, radius=0.1)


def doubled(X):
    return 2 * X


def polar(X):
    return np.column_stack([np.hypot(X[:, 0], X[:, 1]), np.arctan2(X[:, 1], X[:, 0]), X[:, 0]])


def test_rows_are_clipped_to_the_norm():
    X = np.array([[0.1, 0.2], [3.0, 4.0], [0.0, 0.0]])
    out = RowMap(doubled, out_norm=1.0).fit_transform(X)
    assert out == pytest.approx(np.array([[0.2, 0.4], [0.6, 0.8], [0.0, 0.0]]))


def test_the_domain_has_the_norm_and_clipping_keeps_the_lipschitz_constant():
    domain, distance = RowMap(doubled, out_norm=1.5, lipschitz=2.0).stability_map(DOMAIN, MOVED)
    assert (domain.row_norm, domain.entry_bound, domain.n_features) == (1.5, 1.5, 2)
    assert distance.radius == pytest.approx(0.2)
    assert RowMap(doubled, out_norm=0.05, lipschitz=2.0).stability_map(DOMAIN, MOVED)[1].radius <= 0.1 + 1e-12
    assert RowMap(doubled, out_norm=1.5).stability_map(DOMAIN, MOVED)[1] == Distance(replaced=3)


@pytest.mark.parametrize("declared", [1, 0.1, 2])
def test_how_many_rows_have_gaps_is_a_word_that_nobody_tests(declared):
    """So every row that moved may have got other gaps; that there are none is enforced at the entrance."""
    stage = RowMap(doubled, out_norm=1.5, lipschitz=2.0)
    assert stage.stability_map(DOMAIN.but(max_missing=declared), MOVED)[1] == Distance(replaced=3)
    assert stage.stability_map(DOMAIN.but(max_missing=0), MOVED)[1].replaced == 0


def test_the_number_of_columns_is_that_of_the_function():
    domain, _ = RowMap(polar, out_norm=9.0).stability_map(DOMAIN.but(feature_names=("a", "b")), MOVED)
    assert (domain.n_features, domain.feature_names) == (3, None)
    stage = RowMap(polar, out_norm=9.0).fit(pd.DataFrame({"a": [1.0], "b": [2.0]}))
    assert list(stage.get_feature_names_out()) == ["rowmap0", "rowmap1", "rowmap2"]
    assert list(RowMap(doubled, out_norm=9.0).fit(pd.DataFrame({"a": [1.0], "b": [2.0]})).get_feature_names_out()) == [
        "a",
        "b",
    ]


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_what_is_not_a_number_becomes_the_centre_and_infinity_the_rim():
    def wild(X):
        return np.where(X > 2, np.nan, np.where(X == 0, -np.inf, X))

    X = np.array([[3.0, 0.5], [0.0, 0.0], [0.5, np.nan]])
    out = RowMap(wild, out_norm=1.0).fit_transform(X)
    assert out == pytest.approx(np.array([[0.0, 0.5], [-np.sqrt(0.5), -np.sqrt(0.5)], [0.5, np.nan]]), nan_ok=True)


def test_rows_on_which_it_fails_become_the_centre():
    def fails(X):
        if (X[:, 0] == 7).any():
            raise RuntimeError("seven")
        return X

    X = np.array([[1.0, 0.0], [7.0, 0.0], [0.0, 1.0]])
    assert RowMap(fails, out_norm=2.0).fit_transform(X) == pytest.approx(np.array([[1, 0], [0, 0], [0, 1]]))


@pytest.mark.parametrize("function", [None, np.tanh, doubled])
@pytest.mark.repeated("function")
def test_it_keeps_the_contract(function):
    stage = RowMap(function, out_norm=0.7, lipschitz=2.0 if function is doubled else 1.0)
    assert 0.9 < check_stage(stage, DOMAIN, pairs=8, climbs=10) <= 1


def test_in_a_pipeline():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 2))
    X[rng.random((500, 2)) < 0.05] = np.nan
    steps = (
        RowMap(doubled, out_norm=3.0),
        MeanImputer(),
        StandardScaler(fit_mode="exact"),
        RowMap(np.tanh, None, 1, 1),
    )
    pipe = make_pipeline(*steps, GaussianMechanism(), epsilon=5.0, delta=1e-5).fit(X)
    assert pipe.certificate_.verify()
    assert "out_norm" not in pipe.certificate_["steps"][0]["parameters"]  # it is the row_norm
    assert pipe.certificate_["steps"][0]["parameters"]["row_norm"] == 3.0


@pytest.mark.parametrize("norm", [0, -1, "1", np.nan, np.inf, True, [1]])
def test_impossible_norms(norm):
    with pytest.raises(InvalidParameter, match="out_norm"):
        RowMap(np.tanh, out_norm=norm).fit_modes(DOMAIN, MOVED)


def test_one_of_ranges_and_norm_is_needed():
    with pytest.raises(MissingBound, match="out_ranges"):
        RowMap(np.tanh).fit_modes(DOMAIN, MOVED)
    with pytest.raises(InvalidParameter, match="both"):
        RowMap(np.tanh, out_ranges=(0, 1), out_norm=1.0).fit_modes(DOMAIN, MOVED)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda X: X - X.mean(axis=0), "among other rows"),
        (lambda X: X.sum(), "shape"),
        (lambda X: X[0], "shape"),
        (lambda X: 1 / 0, "fails on every made-up row: ZeroDivisionError"),
        (5, "callable"),
    ],
)
def test_functions_that_cannot_be_row_wise(function, words):
    with pytest.raises(InvalidParameter, match=words) as caught:
        make_pipeline(NormClipper(), RowMap(function, out_norm=1.0), GaussianMechanism()).plan(DOMAIN)
    assert caught.value.stage == "RowMap"


class Applies:
    """A user's own function, which keeps what it applies."""

    def __init__(self, inner):
        self.inner = inner

    def __call__(self, X):
        return self.inner.transform(X)

    def mapped(self, X):
        return self(X)


class Called(OwnScaler):
    """An estimator that is a function as well."""

    def __call__(self, X):
        return self.transform(X)


SECRET = OwnScaler().fit([[0.0, 0.0], [1.0, 3.0]])


def enclosing(held):
    return lambda X: (X, held)[0]


def by_default(X, scaler=SECRET):
    return scaler.transform(X)


def by_keyword(X, *, scaler=SECRET):
    return scaler.transform(X)


def by_its_global_name(X):
    return SECRET.transform(X)


def inside(X):
    def inner(Z):
        return by_its_global_name(Z)

    return inner(X)


@pytest.mark.parametrize(
    "function",
    [
        SECRET.transform,
        partial(SECRET.transform, copy=True),
        partial(partial(SECRET.transform)),
        partial(np.clip, a_min=SECRET, a_max=1),
        np.vectorize(SECRET.transform),
        wraps(SECRET.transform)(lambda X: X),
        Applies(SECRET),
        Applies(SECRET).mapped,
        Applies(SECRET.transform),
        Called(),
        make_pipeline(NormClipper()).transform,
        enclosing(SECRET),
        enclosing([SECRET]),
        enclosing(("scaler", {"inner": SECRET})),
        enclosing(np.array([SECRET], dtype=object)),
        enclosing(Applies(SECRET)),
        by_default,
        by_keyword,
        by_its_global_name,
        inside,
        partial(enclosing(None), SECRET),
    ],
)
def test_a_function_that_holds_on_to_an_estimator_may_carry_private_statistics(function):
    with pytest.raises(InvalidParameter, match="may be fitted to private rows") as refused:
        RowMap(function, out_norm=1.0).fit_modes(DOMAIN, MOVED)
    assert refused.value.fix == "Public(transformer) if it was fitted on public data."


@pytest.mark.parametrize("function", [np.tanh, partial(np.clip, a_min=0, a_max=1), Applies(None).mapped, [].append])
def test_other_functions_carry_none(function):
    assert captured_by(function).estimator is None


def kept(function):
    pipe = make_pipeline(RowMap(function, out_norm=1.0), GaussianMechanism())
    return [fact.value for fact in pipe.plan(DOMAIN.but(n_rows=1000)).facts if "its function" in fact.value]


def test_what_a_function_keeps_is_declared_in_the_certificate():
    assert kept(doubled) == ["what its function holds on to was not read off these rows"]
    (fact,) = kept(partial(np.clip, a_min=-1, a_max=1))
    assert "a_min, a_max" in fact
    assert kept(np.tanh) == kept(None) == []


def test_a_table_must_be_an_argument():
    centre = np.array([0.1, 0.2])
    with pytest.raises(InvalidParameter, match=r"'centre'.*functools\.partial"):
        kept(lambda X: X - centre)
    (fact,) = kept(partial(np.subtract, centre))
    assert "argument 1" in fact


@pytest.mark.parametrize("ranges", [[[0, 1], [2]], [(0, 1), 2], [(0, 1, 2)], ["ab"], []], ids=repr)
def test_ranges_that_are_no_pairs(ranges):
    with pytest.raises(InvalidParameter, match="out_ranges"):
        RowMap(doubled, out_ranges=ranges).stability_map(DOMAIN, MOVED)
