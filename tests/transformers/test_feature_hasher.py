"""Columns of names with numbers become hashed features, as scikit-learn has them, whatever holds them."""

import itertools
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn import feature_extraction
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize

from ppdp import Adjacency, Domain, Pipeline, declare
from ppdp.exceptions import ExportError, InvalidParameter, InvalidValue, MissingBound, NonNumericData
from ppdp.transformers import FeatureHasher, HashingVectorizer

RNG = np.random.default_rng(0)
Y = RNG.integers(2, size=400)
BASKETS = [
    {"beer" if y else "tea": int(RNG.integers(1, 9)), "bread": 0.5, "city": str(RNG.choice(list("abc")))} for y in Y
]


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_features_are_those_of_scikit_learn_and_no_longer_than_declared(norm):
    plain = normalize(feature_extraction.FeatureHasher(16).transform(BASKETS), norm).toarray()
    ours = FeatureHasher(16, norm=norm).fit_transform(pd.DataFrame({"basket": BASKETS}))
    np.testing.assert_array_equal(ours, plain)
    facts, _ = FeatureHasher(16, norm=norm).stability_map(Domain(n_rows=9, n_features=1), Adjacency.replace().distance)
    assert np.linalg.norm(ours, axis=1).max() <= facts.row_norm < 1.01


@pytest.mark.parametrize(
    ("cells", "same"),
    [
        ([["tea", "tea", "milk"], ["milk"]], [{"tea": 2, "milk": 1}, {"milk": 1}]),
        (["[tea", "[1, 2]"], [{"[tea": 1}, {"[1, 2]": 1}]),
        ([[("tea", 2.0)], []], [{"tea": 2}, {}]),
        ([{"tea": 2.0, "milk": None}, {"tea": None, "milk": 1.0}], [{"tea": 2}, {"milk": 1}]),
        ([{"tea": 1e300, "milk": -1e300}, {"tea": 1e-300}], [{"tea": 1, "milk": -1}, {}]),
    ],
)
def test_containers_and_forms_of_a_cell_are_the_same(cells, same):
    plain = FeatureHasher(8).fit_transform(pd.DataFrame({"basket": same}))
    pairs = cells[0] and isinstance(cells[0], list) and isinstance(cells[0][0], tuple)
    stored = pa.array(cells, pa.map_(pa.string(), pa.float64())) if pairs else pa.array(cells)
    forms = [pd.DataFrame({"basket": cells}), pa.table({"basket": stored})]
    for form in forms if pairs else [*forms, pl.DataFrame({"basket": cells})]:
        np.testing.assert_allclose(FeatureHasher(8).fit_transform(form), plain, rtol=1e-15)


@pytest.mark.parametrize("twin", [feature_extraction.FeatureHasher(32), feature_extraction.DictVectorizer()])
def test_dicts_are_converted_and_fitted_as_they_are(twin):
    pipe = Pipeline.from_sklearn(make_pipeline(twin, LogisticRegression()), classes=(0, 1), epsilon=8.0)
    pipe.fit(BASKETS, Y)
    assert pipe.score(BASKETS, Y) > 0.95
    with pytest.raises(ExportError, match="no object of scikit-learn"):
        pipe.release_.to_sklearn()


class Endless(dict):
    def items(self):
        return itertools.repeat(("tea", 1.0))


def test_a_class_of_the_users_does_not_say_what_a_cell_holds():
    cells = [Endless(tea=1.0), Counter(["tea", "tea", "milk"])]
    plain = FeatureHasher(8).fit_transform(pd.DataFrame({"basket": [{"tea": 1.0}, {"tea": 2, "milk": 1}]}))
    np.testing.assert_array_equal(FeatureHasher(8).fit_transform(pd.DataFrame({"basket": cells})), plain)


@pytest.mark.parametrize("cell", [{"a": object()}, {"a": np.inf}, [{"a": 1}], [["a", "b", "c"]], pd.Timestamp("2020")])
def test_what_is_no_name_with_a_number_is_an_error_or_a_row_of_zeros(cell):
    table = pd.DataFrame({"basket": pd.Series([*BASKETS[:99], cell], dtype=object)})
    pipe = Pipeline.from_sklearn(
        make_pipeline(feature_extraction.FeatureHasher(8), LogisticRegression()), classes=(0, 1)
    )
    with pytest.raises(InvalidValue):
        pipe.fit(table, Y[:100])
    repaired = pipe.set_params(on_invalid="repair").fit(table, Y[:100])
    assert not repaired[:1].transform(table)[-1].any()


def test_declared_lists_of_a_typed_table():
    table = pl.DataFrame({"basket": [list(basket) for basket in BASKETS]})
    facts = declare(table)
    assert "hashed names" in str(facts)
    facts["basket"] = {"words": 8}
    plain = FeatureHasher(8).fit_transform(table)
    np.testing.assert_array_equal(facts.column_map().fit_transform(table), plain)
    with pytest.raises(NonNumericData, match="FeatureHasher for lists"):
        HashingVectorizer(8).fit(table).transform(table)


def test_what_has_no_bound_is_refused():
    table = pd.DataFrame({"basket": BASKETS})
    with pytest.raises(MissingBound, match="any number of names"):
        FeatureHasher(norm=None).fit(table)
    with pytest.raises(InvalidParameter, match="8388608000 bytes"):
        Pipeline.from_sklearn(make_pipeline(feature_extraction.FeatureHasher(), LogisticRegression()), classes=(0, 1))
    assert np.linalg.norm(FeatureHasher(8, norm=None, max_norm=2.0).fit_transform(table), axis=1).max() <= 2.0
