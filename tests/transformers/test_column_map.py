"""Public maps of sets of columns keep the contract of every stage, and the bounds that they state."""

import re

import numpy as np
import pandas as pd
import pytest
from effort import rounds
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from ppdp import Adjacency, Domain, Pipeline
from ppdp.exceptions import DomainMismatch, InvalidParameter, MissingBound
from ppdp.interop.sklearn import ColumnGroup, ColumnMap
from ppdp.mechanisms import GaussianMechanism
from ppdp.testing import check_stage
from ppdp.testing.stages import DOMAINS
from ppdp.transformers import MeanImputer, MinMaxScaler
from ppdp.transformers.columns.categories import Encoded, OneHot
from ppdp.transformers.columns.features import PolynomialTerms
from ppdp.transformers.columns.maps import Binarized, Binned, FillConstant, FunctionMap, Normalised, RangeScale
from ppdp.transformers.rowwise import probe
from ppdp.transformers.rowwise.probe import ENTRIES, check_row_by_row

ONE = Adjacency.replace().distance

BOX = (-10.0, 10.0)
HOT = OneHot(((0, 1, 2),), step="hot")
FITTED = StandardScaler().fit([[0.0], [1.0]])

STAGES = {
    "scaled": ColumnMap((ColumnGroup(None, (RangeScale(),)),), BOX),
    "by the largest": ColumnMap((ColumnGroup(None, (RangeScale(None),)),), BOX),
    "filled": ColumnMap((ColumnGroup(None, (FillConstant(3.0), RangeScale())),), BOX),
    "centred": ColumnMap(
        (ColumnGroup([0], (FillConstant(1.0),)), ColumnGroup(None, (FillConstant(None),), rest=True)), BOX
    ),
    "function": ColumnMap((ColumnGroup(None, (FunctionMap(np.arctan),)),), BOX),
    "unit": ColumnMap((ColumnGroup(None, (Normalised("l2"),)),), BOX),
    "sums": ColumnMap((ColumnGroup(None, (Normalised("l1"),)),)),
    "maxima": ColumnMap((ColumnGroup(None, (Normalised("max"),)),)),
    "threshold": ColumnMap((ColumnGroup(None, (Binarized(0.5),)),)),
    "products": ColumnMap((ColumnGroup(None, (RangeScale(), PolynomialTerms(2))),), BOX),
    "bins": ColumnMap((ColumnGroup(None, (Binned(4, hot=False),)),), BOX),
    "hot bins": ColumnMap((ColumnGroup(None, (Binned(4, hot=True),)),), BOX),
    "labels": ColumnMap((ColumnGroup([0], (HOT,)), ColumnGroup(None, (RangeScale(),), rest=True)), BOX),
    "codes": ColumnMap((ColumnGroup([0], (Encoded(((0, 1, 2),), unknown=-1.0, missing=3.0),)),)),
    "norm": ColumnMap((ColumnGroup([0], (HOT,)), ColumnGroup(None, (), rest=True)), max_norm=3.0),
    "left out": ColumnMap((ColumnGroup([0], drop=True), ColumnGroup(None, (RangeScale(),), rest=True)), BOX),
}


@pytest.mark.parametrize("name", [n for n in STAGES if n != "left out"])
@pytest.mark.parametrize("domain", DOMAINS, ids=["column", "ball", "box"])
@pytest.mark.repeated("name", "domain", keep=2)
def test_the_contract_of_a_stage(name, domain):
    check_stage(STAGES[name], domain, pairs=rounds(3), climbs=rounds(5))


def test_scikit_learn_finds_nothing_wrong():
    check_estimator(ColumnMap.example(), on_skip=None)


def wild(n, d, gaps):
    """Rows with huge, tiny, whole and zero entries, some of them missing."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-12, 12, (n, d))
    X[::3] = rng.integers(-1, 4, X[::3].shape)
    X[5] = 0.0
    return np.where(rng.random(X.shape) < 0.2, np.nan, X) if gaps else X


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("name", STAGES)
@pytest.mark.repeated("gaps")
def test_rows_are_within_the_stated_bounds_and_each_is_mapped_by_itself(name, gaps):
    stage, X = STAGES[name], wild(60, 9, gaps)
    domain = Domain(n_rows=60, n_features=9, row_norm=1e13, max_missing=None if gaps else 0)
    (way,) = stage.fit_modes(domain, ONE)
    statistics = {"names": None, "reach": 1e13, "norm": way.parameters["row_norm"]}
    out = stage.map_rows(X, statistics)
    assert out.shape == (60, way.domain.d)
    assert np.linalg.norm(np.nan_to_num(out), axis=1).max() <= way.domain.row_norm * (1 + 1e-12)
    assert np.nanmax(np.abs(out)) <= way.domain.entry_bound * (1 + 1e-12)
    assert way.domain.row_norm <= way.domain.entry_bound * np.sqrt(way.domain.d) * (1 + 1e-9)
    incomplete = np.isnan(out).any(axis=1)
    assert not (incomplete & ~np.isnan(X).any(axis=1)).any()
    if way.domain.max_missing == 0:
        assert not incomplete.any()
    alone = np.concatenate([stage.map_rows(X[i : i + 1], statistics) for i in range(60)])
    assert np.array_equal(out, alone, equal_nan=True)
    assert np.array_equal(out[::-1], stage.map_rows(np.asfortranarray(X[::-1]), statistics), equal_nan=True)


def test_rows_that_moved_count_as_replaced():
    moved = ONE.widened(100, 100, 1e-3, diameter=2.0)
    domain = Domain(n_rows=100, n_features=2, row_norm=1.0)
    _, after = STAGES["threshold"].stability_map(domain, moved)
    assert after.moved == 0
    assert after.replaced == 100


def test_columns_are_found_by_name_position_mask_and_slice():
    X = pd.DataFrame(np.arange(8.0).reshape(2, 4), columns=list("abcd"))
    for columns in (["b", "c"], [1, 2], [-3, -2], slice("b", "c"), slice(1, 3), np.array([False, True, True, False])):
        stage = ColumnMap((ColumnGroup(columns),), BOX).fit(X)
        assert stage.transform(X).tolist() == [[1.0, 2.0], [5.0, 6.0]]
        assert list(stage.get_feature_names_out()) == ["b", "c"]
    assert ColumnMap((ColumnGroup("b"),), BOX).fit_transform(X).tolist() == [[1.0], [5.0]]


def test_labels_are_read_by_public_categories_and_what_is_left_out_may_hold_anything():
    labels = OneHot((("red", "blue"),), step="colour", gap="blue", expects=True)
    X = pd.DataFrame({"colour": ["blue", "red", None, "green", pd.NA], "name": [[], {}, "x", None, 3]})
    stage = ColumnMap((ColumnGroup(["colour"], (labels,)),))
    wanted = [[0, 1], [1, 0], [0, 1], [0, 0], [0, 1]]
    assert stage.fit_transform(X).tolist() == wanted
    assert stage.transform(X.iloc[:1]).tolist() == [[0, 1]]
    by_position = ColumnMap((ColumnGroup([0], (labels,)),))
    assert by_position.fit_transform(X.to_numpy(dtype=object)).tolist() == wanted


@pytest.mark.parametrize(
    ("stage", "kind", "words"),
    [
        (ColumnMap(), MissingBound, "no public range of 'x0', 'x1' is declared"),
        (ColumnMap(ranges={0: (0, 1)}), MissingBound, "ranges={..., 'x1': (low, high)}"),
        (ColumnMap((ColumnGroup(["a"]),), BOX), DomainMismatch, "columns are taken by name ('a')"),
        (ColumnMap((ColumnGroup([]),), BOX), InvalidParameter, "no column is left"),
        (ColumnMap((ColumnGroup(np.array([True])),), BOX), DomainMismatch, "another length"),
        (
            ColumnMap((ColumnGroup(None, (HOT,)),)),
            InvalidParameter,
            "categories of 1 columns are declared for 2 columns",
        ),
        (ColumnMap((ColumnGroup(None, (FunctionMap(np.log),)),), BOX), MissingBound, "has no public range"),
        (
            ColumnMap((ColumnGroup(None, (FillConstant(np.nan),)),), max_norm=1.0),
            InvalidParameter,
            "a finite number, got nan",
        ),
        (ColumnMap((ColumnGroup(None, (RangeScale((1.0, 0.0)),)),), BOX), InvalidParameter, "no range that a float"),
        (ColumnMap((ColumnGroup(None, (RangeScale((np.nan, 1.0)),)),), BOX), InvalidParameter, "no range that a float"),
        (
            ColumnMap((ColumnGroup(None, (FillConstant(1e308),)),), (-1e308, 5e307)),
            InvalidParameter,
            "no range that a float",
        ),
        (
            ColumnMap((ColumnGroup(None, (PolynomialTerms(4),)),), (0, 1e90), 1.0),
            InvalidParameter,
            "no range that a float",
        ),
        (
            ColumnMap((ColumnGroup(None, (FunctionMap(FITTED.transform),)),), BOX),
            InvalidParameter,
            "a StandardScaler, which",
        ),
    ],
)
def test_impossible_parameters_are_found_before_any_data(stage, kind, words):
    with pytest.raises(kind, match=re.escape(words)):
        stage.fit_modes(Domain(n_rows=10, n_features=2), ONE)


@pytest.mark.parametrize(
    "labels",
    [("a", "a"), (1, 1.0), (True, 1), (2**53, 2**53 + 1), (1, 10**400), (None, np.nan), ("none", None), (["a"], "b")],
    ids=repr,
)
@pytest.mark.parametrize("kind", [OneHot, Encoded])
def test_an_entry_is_one_category_at_most(kind, labels):
    stage = ColumnMap((ColumnGroup(None, (kind((labels,), gap="none", step="ward"),)),))
    with pytest.raises(InvalidParameter, match="categories must be distinct"):
        stage.fit_modes(Domain(n_rows=10, n_features=1), ONE)


def test_distinct_categories_are_one_each():
    for labels in (("1", "2"), (2**53, 2**53 + 2), (0.0, np.nan), ("a", 1), (True, False), ()):
        ColumnMap((ColumnGroup([0], (OneHot((labels,)),)), ColumnGroup([1])), BOX).fit_modes(
            Domain(n_rows=10, n_features=2), ONE
        )


class TestGapsOfSomeColumns:
    half = ColumnMap((ColumnGroup(["a"], (FillConstant(0.5),)), ColumnGroup(["b"])), BOX)
    X = pd.DataFrame(np.random.default_rng(0).uniform(-1, 1, (400, 2)), columns=["a", "b"])

    @pytest.mark.parametrize("invalid", ["error", "repair"])
    @pytest.mark.parametrize("domain", [None, Domain(max_missing=0.1)])
    def test_the_columns_that_are_not_filled_are_named(self, invalid, domain):
        X = self.X.mask(self.X < -0.99)
        pipe = Pipeline([("half", self.half), ("mean", GaussianMechanism())], domain=domain, on_invalid=invalid)
        with pytest.raises(InvalidParameter, match="those of 'b' are not filled") as refused:
            pipe.fit(X)
        assert refused.value.stage == "half"
        assert "put an imputer behind it" in refused.value.fix

    def test_an_imputer_behind_fills_the_others(self):
        X = self.X.mask(self.X < -0.9)
        steps = [("half", self.half), ("rest", MeanImputer()), ("mean", GaussianMechanism())]
        pipe = Pipeline(steps, epsilon=5.0, delta=1e-5).fit(X)
        assert pipe.certificate_.verify()
        assert np.isfinite(pipe.release_.arrays["mean.answer"]).all()

    def test_what_it_says_and_what_its_way_says_is_the_same(self):
        domain = Domain(n_rows=10, n_features=2, feature_names=("a", "b"))
        codes = Encoded(((0, 1, None),), expects=True)
        for blocks in (
            (ColumnGroup(["a"], (FillConstant(0.5),)), ColumnGroup(["b"])),
            (ColumnGroup(["a"], (FillConstant(0.5),)), ColumnGroup(["b"], (FillConstant(None),))),
            (ColumnGroup(["a"], (FillConstant(0.5),)), ColumnGroup(["b"], drop=True)),
            (ColumnGroup(["a"], (codes,)), ColumnGroup(["b"], (FillConstant(None),))),
        ):
            stage = ColumnMap(blocks, BOX)
            (way,) = stage.fit_modes(domain, ONE)
            assert stage.fills_gaps == (way.domain.max_missing == 0)

    def test_a_conversion_knows_that_no_gap_comes_in(self):
        parts = [("a", SimpleImputer(strategy="constant"), ["a"]), ("b", SimpleImputer(), ["b"])]
        for domain in (None, Domain(max_missing=0)):
            pipe = Pipeline.from_sklearn(ColumnTransformer(parts), ranges=(-1, 1), domain=domain, epsilon=5.0)
            pipe.plan(Domain(n_rows=1000, n_features=2, feature_names=("a", "b"), **given(domain)))


def given(domain):
    return {} if domain is None else {"max_missing": domain.max_missing}


def test_ranges_are_for_numbers_and_do_not_clip_labels():
    X = pd.DataFrame({"colour": ["red", "blue", "green"], "size": [0.0, 1.0, 5.0]})
    colours = OneHot((("red", "blue", "green"),))
    stage = ColumnMap((ColumnGroup(["colour"], (colours,)), ColumnGroup(["size"])), ranges=(0, 1))
    assert stage.fit_transform(X).tolist() == [[1, 0, 0, 0], [0, 1, 0, 1], [0, 0, 1, 1]]


def test_a_column_has_one_set_of_labels():
    twice = [ColumnGroup([0], (OneHot((labels,)),)) for labels in (("a", "b"), ("b", "a"))]
    with pytest.raises(InvalidParameter, match="encoded twice"):
        ColumnMap(twice).fit(np.array([["a"], ["b"]], dtype=object))


def test_a_failure_on_one_row_is_nobodys_business():
    def picky(X):
        if (X > 9).any():
            raise ValueError("9")
        return X

    stage = ColumnMap((ColumnGroup(None, (FunctionMap(picky, out_ranges=(-2, 4), step="picky"),)),), BOX)
    assert stage.fit_transform(np.array([[1.0], [9.5], [7.0]])).tolist() == [[1.0], [1.0], [4.0]]


@pytest.mark.parametrize("degree", [1, 2, 3, (2, 3), (0, 2)], ids=str)
@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("include_bias", [False, True])
@pytest.mark.repeated("include_bias")
def test_products_are_those_of_scikit_learn(degree, interaction_only, include_bias):
    theirs = PolynomialFeatures(degree, interaction_only=interaction_only, include_bias=include_bias)
    ours = ColumnMap((ColumnGroup(None, (PolynomialTerms(degree, interaction_only, include_bias),)),), (-1, 1))
    X = pd.DataFrame(np.random.default_rng(0).uniform(-1, 1, (20, 3)), columns=["a", "b", "c"])
    expected = theirs.fit_transform(X)
    assert np.allclose(ours.fit_transform(X), expected, rtol=1e-12)
    assert list(ours.get_feature_names_out()) == list(theirs.get_feature_names_out())


def test_a_wide_map_is_tested_in_a_crowd_that_fits_memory(monkeypatch):
    """16 made-up rows, 64 times over, would be 660 MB of products of 400 columns; 20 times that with all copies."""
    largest = []
    monkeypatch.setattr(probe, "CROWD", 64)

    def products(X):
        largest.append(len(X))
        return np.zeros((len(X), 80_000))

    check_row_by_row(products, 400, 80_000, "products", gaps=False)
    assert max(largest) * 80_000 <= ENTRIES
    largest.clear()
    check_row_by_row(lambda X: (largest.append(len(X)), X)[1], 3, 3, "identity", gaps=False)
    assert max(largest) == 16 * 64


@pytest.mark.parametrize("stage", [ColumnMap(ranges={0: 0.0, 1: 1.0}), MinMaxScaler(ranges={0: 0.0, 1: 1.0})], ids=repr)
def test_two_columns_with_a_number_each_are_not_a_pair_for_both(stage):
    with pytest.raises(InvalidParameter, match="must hold \\(low, high\\) pairs"):
        stage.fit(np.zeros((5, 2)))
