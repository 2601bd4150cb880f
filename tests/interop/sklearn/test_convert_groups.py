"""Groups of a ``ColumnTransformer`` that share no statistics stay: what comes out is what scikit-learn makes."""

import numpy as np
import pandas as pd
import pytest
from conversions import ANSWER, MODEL, RANGES, columns
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, RobustScaler, StandardScaler

import ppdp
from ppdp import Pipeline

N = 4000
WARDS = OneHotEncoder(categories=[["north", "south", "west"]], handle_unknown="ignore")
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


SCALED = make_pipeline(SimpleImputer(), StandardScaler())
INNER = ColumnTransformer([("a", SimpleImputer(), ["age"]), ("d", SimpleImputer(strategy="median"), ["dose"])])
CASES = {
    "components behind": ([columns(), PCA(2)], lambda made, X: made[-1].inverse_transform(made.transform(X))),
    "singular vectors behind": (
        [columns(), TruncatedSVD(2, algorithm="arpack")],
        lambda made, X: made[-1].inverse_transform(made.transform(X)),
    ),
    "products behind": ([columns(), PolynomialFeatures(2)], lambda made, X: made.transform(X)),
    "other statistics": (
        [
            ColumnTransformer(
                [
                    ("one", make_pipeline(SimpleImputer(), StandardScaler()), ["age"]),
                    ("two", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), ["dose"]),
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
        [ColumnTransformer([("num", make_pipeline(*SCALED, PolynomialFeatures(2)), ["age", "dose"]), WORDS])],
        None,
    ),
    "columns inside columns, then scaled": (
        [ColumnTransformer([("all", make_pipeline(INNER, StandardScaler()), ["age", "dose"]), WORDS])],
        None,
    ),
    "a union of two scalers": ([FeatureUnion([("one", StandardScaler()), ("two", RobustScaler())])], None),
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
        [("a", make_pipeline(SimpleImputer(), StandardScaler()), ["age"]), ("b", RobustScaler(), ["dose"]), WORDS]
    )
    pipe = Pipeline.from_sklearn(
        make_pipeline(numbers, MODEL), epsilon=20.0, delta=1e-5, ranges=RANGES, **ANSWER, on_invalid="repair"
    )
    assert "a missing value becomes the middle of the public range" in str(pipe.conversion)
    X, y = patients()
    assert pipe.fit(X, y).certificate_.verify()


def test_ranges_are_released_in_front_of_groups():
    numbers = ColumnTransformer([("a", StandardScaler(), ["age"]), ("b", RobustScaler(), ["dose"])])
    pipe = Pipeline.from_sklearn(
        make_pipeline(numbers, MODEL), epsilon=20.0, delta=1e-5, ranges={"age": (0, 100), "dose": "private"}, **ANSWER
    )
    X, y = patients(gaps=False)
    assert pipe.fit(X, y).certificate_.verify()
    assert pipe.certificate_.record.releases[0].statistic == "ranges"
