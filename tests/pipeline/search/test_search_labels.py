"""A search over pipelines whose columns hold public labels."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

from ppdp import Pipeline, PrivateSearchCV
from ppdp.exceptions import NonNumericData

N = 1200
WARDS = ["north", "south", "west"]


@pytest.fixture(scope="module")
def data():
    """The label decides: whoever loses it guesses."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"ward": rng.choice(WARDS, N), "age": rng.uniform(0, 100, N), "name": [f"p{i}" for i in range(N)]})
    return X, (X["ward"] == "south").to_numpy().astype(int)


def search(columns, ranges, **parameters):
    mine = make_pipeline(ColumnTransformer(columns), LogisticRegression())
    pipe = Pipeline.from_sklearn(mine, ranges=ranges, classes=(0, 1))
    return PrivateSearchCV(pipe, {"logisticregression__max_iter": [1, 40]}, epsilon=8.0, delta=1e-5, **parameters)


def by_name(**parameters):
    columns = [("ward", OneHotEncoder(categories=[WARDS]), ["ward"]), ("age", MinMaxScaler(), ["age"])]
    return search(columns, {"age": (0, 100)}, **parameters)


@pytest.mark.parametrize(
    "container", [lambda X: X, pl.from_pandas, pa.Table.from_pandas], ids=["pandas", "polars", "arrow"]
)
def test_labels_are_read_in_every_container(data, container):
    X, y = data
    found = by_name().fit(container(X), y)
    assert found.n_features_in_ == 3
    assert found.feature_names_in_.tolist() == ["ward", "age", "name"]
    assert found.best_estimator_.certificate_.verify()
    assert found.score(container(X), y) > 0.95
    assert found.best_score_ > 0.9


@pytest.mark.parametrize("container", [np.array, list], ids=["array", "list"])
def test_by_position(data, container):
    X, y = data
    rows = X[["ward", "age"]].to_numpy(dtype=object)
    rows = rows if container is np.array else rows.tolist()
    columns = [("ward", OneHotEncoder(categories=[WARDS]), [0]), ("age", MinMaxScaler(), [1])]
    assert search(columns, {1: (0, 100)}).fit(rows, y).score(rows, y) > 0.95


def test_a_seeded_search_finds_the_same_with_codes_for_labels(data):
    """As if the labels had been numbers from the start."""
    X, y = data
    coded = X.assign(ward=X["ward"].map({label: i for i, label in enumerate(WARDS)}), name=0)
    columns = [("ward", OneHotEncoder(categories=[[0, 1, 2]]), ["ward"]), ("age", MinMaxScaler(), ["age"])]
    numbers = search(columns, {"age": (0, 100)}, random_state=0).fit(coded, y)
    words = by_name(random_state=0).fit(X, y)
    assert words.best_params_ == numbers.best_params_
    assert words.best_score_ == numbers.best_score_
    np.testing.assert_array_equal(words.best_estimator_[-1].coef_, numbers.best_estimator_[-1].coef_)


def test_other_columns_with_words_are_refused_by_name(data):
    X, y = data
    columns = [("ward", OneHotEncoder(categories=[WARDS]), ["ward"]), ("rest", MinMaxScaler(), ["age", "name"])]
    with pytest.raises(NonNumericData, match="name"):
        search(columns, {"age": (0, 100), "name": (0, 1)}).fit(X, y)
