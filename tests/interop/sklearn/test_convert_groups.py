"""Groups of a ``ColumnTransformer`` that share no statistics stay, and so do the parts of a ``FeatureUnion``."""

import numpy as np
import pandas as pd
import pytest
from conversions import ANSWER, MODEL, RANGES, columns
from sklearn import preprocessing as P
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import FeatureUnion, make_pipeline

import ppdp
from ppdp import Pipeline, load
from ppdp.exceptions import InvalidParameter
from ppdp.transformers.columns.column_map import ColumnMap

N = 4000
WARDS = P.OneHotEncoder(categories=[["north", "south", "west"]], handle_unknown="ignore")
WORDS = "labels", WARDS, ["ward"]


def patients(*, gaps=True):
    draws = np.random.default_rng(0)
    X = pd.DataFrame({name: draws.uniform(*pair, N) for name, pair in RANGES.items()})
    X["dose"] = np.clip(X["age"] / 10 - 5 + draws.normal(size=N), -5, 5)
    X["ward"] = draws.choice(["north", "south", "west"], N)
    y = (X["age"] / 100 + X["level"] + draws.normal(0, 0.3, N) > 1).astype(int).to_numpy()
    if gaps:
        X.loc[draws.random(N) < 0.1, "age"] = np.nan
    return X, y


SCALED = make_pipeline(SimpleImputer(), P.StandardScaler())
INNER = ColumnTransformer([("a", SimpleImputer(), ["age"]), ("d", SimpleImputer(strategy="median"), ["dose"])])
CASES = {
    "components behind": ([columns(), PCA(2)], lambda made, X: made[-1].inverse_transform(made.transform(X))),
    "singular vectors behind": (
        [columns(), TruncatedSVD(2, algorithm="arpack")],
        lambda made, X: made[-1].inverse_transform(made.transform(X)),
    ),
    "products behind": ([columns(), P.PolynomialFeatures(2)], lambda made, X: made.transform(X)),
    "other statistics": (
        [
            ColumnTransformer(
                [
                    ("one", make_pipeline(SimpleImputer(), P.StandardScaler()), ["age"]),
                    ("two", make_pipeline(SimpleImputer(strategy="median"), P.StandardScaler()), ["dose"]),
                    WORDS,
                ]
            )
        ],
        None,
    ),
    "components of some": (
        [ColumnTransformer([("num", make_pipeline(*SCALED, PCA(1)), ["age", "dose"]), WORDS])],
        lambda made, X: np.hstack(
            [
                made[0].named_transformers_["num"][-1].inverse_transform(made.transform(X)[:, :1]),
                made.transform(X)[:, 1:],
            ]
        ),
    ),
    "products of scaled columns": (
        [ColumnTransformer([("num", make_pipeline(*SCALED, P.PolynomialFeatures(2)), ["age", "dose"]), WORDS])],
        None,
    ),
    "columns inside columns, then scaled": (
        [ColumnTransformer([("all", make_pipeline(INNER, P.StandardScaler()), ["age", "dose"]), WORDS])],
        None,
    ),
    "a union of two scalers": ([FeatureUnion([("one", P.StandardScaler()), ("two", P.RobustScaler())])], None),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore")
def test_what_comes_out_is_what_scikit_learn_makes(name):
    steps, expected = CASES[name]
    X, y = patients(gaps="union" not in name)
    X = X.drop(columns="ward") if "union" in name else X
    pipe = Pipeline.from_sklearn(
        make_pipeline(*steps, MODEL), epsilon=500.0, delta=1e-5, ranges=RANGES, **ANSWER, random_state=0
    )
    assert any("@" in step.formula for step in pipe.fit(X, y).certificate_.record.steps)
    assert pipe.certificate_.verify()
    made = make_pipeline(*steps).fit(X)
    wanted = made.transform(X) if expected is None else expected(made, X)
    found = pipe[:-1].transform(X)
    assert found.shape == np.asarray(wanted).shape
    close = np.isclose(found, np.asarray(wanted), atol=0.1)
    assert close.mean() > 0.97, close.mean(axis=0)


@pytest.mark.parametrize(
    "scaler",
    [P.StandardScaler(), P.RobustScaler(), P.QuantileTransformer(n_quantiles=10, output_distribution="normal")],
)
@pytest.mark.filterwarnings("ignore")
def test_landmarks_lie_where_scaled_columns_beside_text_do(scaler):
    X, y = patients()
    numbers = "numbers", make_pipeline(SimpleImputer(), scaler), ["age", "dose", "level"]
    steps = [ColumnTransformer([numbers, WORDS]), Nystroem(n_components=30, random_state=0), MODEL]
    pipe = Pipeline.from_sklearn(
        make_pipeline(*steps), epsilon=20.0, delta=1e-5, ranges=RANGES, **ANSWER, random_state=0
    )
    assert "that of standard normal rows" in str(pipe.conversion)
    assert pipe.fit(X, y).score(X, y) > 0.75


def test_indicators_are_not_scaled_and_conversion_says_what_became_of_every_step(tmp_path):
    X, y = patients()
    pipe = Pipeline.from_sklearn(
        make_pipeline(columns(), PCA(2), MODEL), epsilon=20.0, delta=1e-5, ranges=RANGES, **ANSWER
    ).fit(X, y)
    steps = {step.name: step for step in pipe.certificate_.record.steps}
    assert list(steps) == [
        "columntransformer",
        "columntransformer-split",
        "numbers-simpleimputer",
        "numbers-standardscaler",
        "pca",
    ]
    assert steps["columntransformer-split"].parameters["groups"] == ("numbers", "labels")
    sizes = [release.size for release in pipe.certificate_.record.releases]
    assert sizes[0] == 3 * (51 + 128 + 2)  # shares and sums of each of three columns, for both of its stages
    told = str(pipe.conversion)
    assert "numbers-standardscaler (StandardScaler) -> numbers-standardscaler (StandardScaler)" in told
    assert "its columns stand in groups" in told
    pipe.export(tmp_path / "out.zip")
    np.testing.assert_array_equal(ppdp.load(tmp_path / "out.zip").predict(X), pipe.predict(X))


def test_a_column_without_an_imputer_beside_one_with_it():
    """A missing value that nothing fills is the middle of its range, as where all share one statistic."""
    numbers = ColumnTransformer(
        [("a", make_pipeline(SimpleImputer(), P.StandardScaler()), ["age"]), ("b", P.RobustScaler(), ["dose"]), WORDS]
    )
    pipe = Pipeline.from_sklearn(
        make_pipeline(numbers, MODEL), epsilon=20.0, delta=1e-5, ranges=RANGES, **ANSWER, on_invalid="repair"
    )
    assert "a missing value becomes the middle of the public range" in str(pipe.conversion)
    X, y = patients()
    assert pipe.fit(X, y).certificate_.verify()


def test_ranges_are_released_in_front_of_groups():
    numbers = ColumnTransformer([("a", P.StandardScaler(), ["age"]), ("b", P.RobustScaler(), ["dose"])])
    pipe = Pipeline.from_sklearn(
        make_pipeline(numbers, MODEL), epsilon=20.0, delta=1e-5, ranges={"age": (0, 100), "dose": "private"}, **ANSWER
    )
    X, y = patients(gaps=False)
    assert pipe.fit(X, y).certificate_.verify()
    assert pipe.certificate_.record.releases[0].statistic == "ranges"


# ---------------- unions


UNION_RANGES = {"a": (0, 2), "b": (-1, 1), "c": (0, 1)}
BINS = P.KBinsDiscretizer(3, strategy="uniform", encode="onehot-dense")


def rows(n=1500):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.uniform(*pair, n) for name, pair in UNION_RANGES.items()})
    return X, rng.integers(2, size=n)


def converted(first, *behind, **declared):
    given = {"ranges": UNION_RANGES, "classes": (0, 1), "random_state": 0, "epsilon": 5.0, "delta": 1e-5, **declared}
    return Pipeline.from_sklearn(make_pipeline(first, *behind, MODEL), **given)


PARTS = {
    "as they are, and squares": [("own", "passthrough"), ("squares", P.PolynomialFeatures(2, include_bias=False))],
    "bins and scales": [("bins", BINS), ("scaled", P.MinMaxScaler()), ("gone", "drop")],
    "chains": [("signs", make_pipeline(P.MinMaxScaler(), P.Binarizer(threshold=0.5))), ("rows", P.Normalizer())],
    "one statistic": [("mean", SimpleImputer()), ("both", make_pipeline(P.MinMaxScaler(), SimpleImputer()))],
    "scaled in part": [("own", "passthrough"), ("standard", P.StandardScaler())],
}


@pytest.mark.parametrize("case", PARTS)
def test_it_is_a_column_transformer_whose_parts_take_all_columns(case):
    parts = [part for part in PARTS[case] if part[1] != "drop"]
    union = converted(FeatureUnion(PARTS[case]))
    columns = converted(ColumnTransformer([(name, one, list(UNION_RANGES)) for name, one in parts]))
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


def test_what_comes_out_of_a_union_is_what_scikit_learn_makes():
    X = rows()[0]
    theirs = FeatureUnion([("rows", P.Normalizer()), ("signs", P.Binarizer(threshold=0.2)), ("bins", BINS)])
    entrance = converted(theirs).steps[0][1]
    assert isinstance(entrance, ColumnMap)
    bounds = np.array(list(UNION_RANGES.values()), dtype=float).T
    fitted = theirs.fit(pd.DataFrame(bounds, columns=list(UNION_RANGES)))  # the bins are those of the public ranges
    made = Pipeline([("map", entrance)], delta=1e-5).fit(X)
    names = fitted.get_feature_names_out()
    assert list(made.get_feature_names_out())[:6] == list(names)[:6]
    assert np.allclose(made.transform(X), fitted.transform(X), atol=1e-9)


def test_what_stands_in_front_stands_in_front_of_each_part():
    union = [("own", "passthrough"), ("squares", P.PolynomialFeatures(2, include_bias=False))]
    ahead = converted(P.MinMaxScaler(), FeatureUnion(union))
    inside = converted(FeatureUnion([(name, make_pipeline(P.MinMaxScaler(), one)) for name, one in union]))
    X = rows()[0]
    made = [Pipeline(one.steps[:1], delta=1e-5).fit(X).transform(X) for one in (ahead, inside)]
    assert np.array_equal(*made)
    assert [one.given for one in ahead.conversion.steps].count("MinMaxScaler") == 1


def test_gaps_are_filled_in_front_of_it():
    X, y = rows()
    X.iloc[:10, 0] = np.nan
    pipe = converted(SimpleImputer(), FeatureUnion([("own", "passthrough"), ("scaled", P.MinMaxScaler())]), domain=None)
    assert [type(one).__name__ for _, one in pipe.steps] == ["ColumnMap", "MeanImputer", "LogisticRegression"]
    assert pipe.fit(X, y).certificate_.verify()


def test_unions_and_column_transformers_nest(tmp_path):
    labels = P.OneHotEncoder(categories=[["u", "v"]], handle_unknown="ignore")
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
