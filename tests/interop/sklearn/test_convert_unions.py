"""A FeatureUnion becomes the stage that a ColumnTransformer of the same parts, each for all columns, becomes."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)

from ppdp import Pipeline, load
from ppdp.exceptions import InvalidParameter
from ppdp.transformers.columns.column_map import ColumnMap

RANGES = {"a": (0, 2), "b": (-1, 1), "c": (0, 1)}
MODEL = LogisticRegression()
BINS = KBinsDiscretizer(3, strategy="uniform", encode="onehot-dense")


def rows(n=1500):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.uniform(*pair, n) for name, pair in RANGES.items()})
    return X, rng.integers(2, size=n)


def converted(first, *behind, **declared):
    given = {"ranges": RANGES, "classes": (0, 1), "random_state": 0, "epsilon": 5.0, "delta": 1e-5, **declared}
    return Pipeline.from_sklearn(make_pipeline(first, *behind, MODEL), **given)


PARTS = {
    "as they are, and squares": [("own", "passthrough"), ("squares", PolynomialFeatures(2, include_bias=False))],
    "bins and scales": [("bins", BINS), ("scaled", MinMaxScaler()), ("gone", "drop")],
    "chains": [("signs", make_pipeline(MinMaxScaler(), Binarizer(threshold=0.5))), ("rows", Normalizer())],
    "one statistic": [("mean", SimpleImputer()), ("both", make_pipeline(MinMaxScaler(), SimpleImputer()))],
    "scaled in part": [("own", "passthrough"), ("standard", StandardScaler())],
}


@pytest.mark.parametrize("case", PARTS)
def test_it_is_a_column_transformer_whose_parts_take_all_columns(case):
    parts = [part for part in PARTS[case] if part[1] != "drop"]
    union = converted(FeatureUnion(PARTS[case]))
    columns = converted(ColumnTransformer([(name, one, list(RANGES)) for name, one in parts]))
    X, y = rows()
    union.fit(X, y), columns.fit(X, y)
    mine, other = union.certificate_.to_dict(), columns.certificate_.to_dict()
    assert union.certificate_.verify()
    assert mine["epsilon"] == other["epsilon"]
    for one, two in zip(mine["steps"], other["steps"], strict=True):
        assert {k: one[k] for k in ("class", "parameters", "domain", "distance")} == {
            k: two[k] for k in ("class", "parameters", "domain", "distance")
        }
    assert np.array_equal(union.predict(X), columns.predict(X))
    assert len(union.conversion.steps) == len(columns.conversion.steps)


def test_what_comes_out_is_what_scikit_learn_makes():
    X = rows()[0]
    theirs = FeatureUnion([("rows", Normalizer()), ("signs", Binarizer(threshold=0.2)), ("bins", BINS)])
    entrance = converted(theirs).steps[0][1]
    assert isinstance(entrance, ColumnMap)
    bounds = np.array(list(RANGES.values()), dtype=float).T
    fitted = theirs.fit(pd.DataFrame(bounds, columns=list(RANGES)))  # the bins are those of the public ranges
    made = Pipeline([("map", entrance)], delta=1e-5).fit(X)
    names = fitted.get_feature_names_out()
    assert list(made.get_feature_names_out())[:6] == list(names)[:6]
    assert np.allclose(made.transform(X), fitted.transform(X), atol=1e-9)


def test_what_stands_in_front_stands_in_front_of_each_part():
    union = [("own", "passthrough"), ("squares", PolynomialFeatures(2, include_bias=False))]
    ahead = converted(MinMaxScaler(), FeatureUnion(union))
    inside = converted(FeatureUnion([(name, make_pipeline(MinMaxScaler(), one)) for name, one in union]))
    X = rows()[0]
    made = [Pipeline(one.steps[:1], delta=1e-5).fit(X).transform(X) for one in (ahead, inside)]
    assert np.array_equal(*made)
    assert [one.given for one in ahead.conversion.steps].count("MinMaxScaler") == 1


def test_gaps_are_filled_in_front_of_it():
    X, y = rows()
    X.iloc[:10, 0] = np.nan
    pipe = converted(SimpleImputer(), FeatureUnion([("own", "passthrough"), ("scaled", MinMaxScaler())]), domain=None)
    assert [type(one).__name__ for _, one in pipe.steps] == ["ColumnMap", "MeanImputer", "LogisticRegression"]
    assert pipe.fit(X, y).certificate_.verify()


def test_unions_and_column_transformers_nest(tmp_path):
    labels = OneHotEncoder(categories=[["u", "v"]], handle_unknown="ignore")
    inner = FeatureUnion([("own", "passthrough"), ("bins", FeatureUnion([("three", BINS)]))])
    pipe = converted(
        ColumnTransformer([("numbers", inner, ["a", "b"]), ("labels", labels, ["ward"])]),
        ranges={"a": (0, 2), "b": (-1, 1)},
    )
    X, y = rows()
    X["ward"] = np.where(y > 0, "u", "v")
    names = list(Pipeline(pipe.steps[:1], delta=1e-5).fit(X).get_feature_names_out())
    assert names[:3] == ["numbers__own__a", "numbers__own__b", "numbers__bins__three__a_0"]
    assert pipe.fit(X, y).certificate_.verify()
    pipe.set_params(random_state=None).fit(X, y).export(tmp_path / "model.zip")
    assert np.array_equal(load(tmp_path / "model.zip").predict(X), pipe.predict(X))


def test_one_that_contains_itself_is_refused():
    union = FeatureUnion([("a", "passthrough")])
    union.transformer_list.append(("self", union))
    with pytest.raises(InvalidParameter, match="contains itself"):
        converted(union)
