"""Columns that steps take by name are found again in new rows, wherever they stand and whatever stands beside them."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression as Plain
from sklearn.pipeline import make_pipeline as plain_pipeline
from sklearn.preprocessing import OneHotEncoder

from ppdp import Pipeline, load, make_column_map, make_pipeline
from ppdp.exceptions import DomainMismatch, InvalidInput
from ppdp.mechanisms import LogisticRegression
from ppdp.transformers import CategoryEncoder, MinMaxScaler

N = 400
RNG = np.random.default_rng(0)
X = pd.DataFrame({"age": RNG.uniform(0, 100, N), "dose": RNG.uniform(0, 1, N), "note": "text"})
X["sex"] = RNG.choice(["F", "M"], N)
Y = (X["age"] > 50).astype(int)
RANGES = {"age": (0, 100), "dose": (0, 1)}
MODEL = LogisticRegression(classes=(0, 1))
PLAIN = plain_pipeline(
    ColumnTransformer(
        [("numbers", SimpleImputer(), ["age", "dose"]), ("hot", OneHotEncoder(categories=[["F", "M"]]), ["sex"])]
    ),
    Plain(solver="newton-cholesky"),
)
OWN = make_column_map((MinMaxScaler(RANGES), ["age", "dose"]), (CategoryEncoder({"sex": ["F", "M"]}), ["sex"]))
PIPELINES = {
    "converted": Pipeline.from_sklearn(PLAIN, ranges=RANGES, classes=(0, 1), delta=1e-5),
    "of its own": make_pipeline(OWN, MODEL, delta=1e-5),
    "ranges by name": make_pipeline(MinMaxScaler(RANGES), MODEL, delta=1e-5),
    "categories by name": make_pipeline(CategoryEncoder({"sex": ["F", "M"]}), MODEL, delta=1e-5),
}
COLUMNS = {"ranges by name": ["age", "dose"], "categories by name": ["sex"]}
CONTAINERS = {"pandas": lambda X: X, "polars": pl.from_pandas, "arrow": pa.Table.from_pandas}


@pytest.fixture(scope="module")
def fitted():
    return {name: pipe.fit(X[COLUMNS.get(name, list(X))], Y) for name, pipe in PIPELINES.items()}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("name", PIPELINES)
def test_reordered_and_further_columns_change_nothing(fitted, name, container):
    pipe, make = fitted[name], CONTAINERS[container]
    rows = X[COLUMNS.get(name, list(X))]
    other = rows[list(rows)[::-1]]
    other.insert(1, "more", "text")
    for method in ("predict", "predict_proba", "decision_function", "project"):
        np.testing.assert_array_equal(getattr(pipe, method)(make(other)), getattr(pipe, method)(rows))
    if name in ("converted", "ranges by name"):
        np.testing.assert_array_equal(pipe[:-1].transform(make(other)), pipe[:-1].transform(rows))
    assert pipe.score(make(other), Y) == pipe.score(rows, Y)


@pytest.mark.parametrize("name", ["converted", "of its own"])
def test_columns_that_no_step_takes_may_lack_as_in_scikit_learn(fitted, name):
    without = X.drop(columns="note")
    np.testing.assert_array_equal(fitted[name].predict(without), fitted[name].predict(X))
    assert len(PLAIN.fit(X, Y).predict(without)) == N


@pytest.mark.parametrize("name", PIPELINES)
def test_what_lacks_is_named(fitted, name):
    rows = X[COLUMNS.get(name, list(X))]
    first = rows.columns[0]
    with pytest.raises(DomainMismatch, match=rf"lacks the column\(s\) '{first}'"):
        fitted[name].predict(rows.drop(columns=first).assign(more=1))
    with pytest.raises(DomainMismatch) as refused:
        fitted[name].predict(rows.rename(columns={first: f"{first}s"}))
    assert refused.value.fix == f"did you mean '{first}s' by '{first}'?"


def test_the_same_of_what_was_loaded(fitted, tmp_path):
    fitted["converted"].export(tmp_path / "model.zip")
    again = load(tmp_path / "model.zip")
    np.testing.assert_array_equal(again.predict(X[list(X)[::-1]].assign(more=1)), fitted["converted"].predict(X))


def test_where_the_order_tells_which_is_which_another_order_is_refused():
    numbers = X[["age", "dose"]]
    pipe = make_pipeline(MinMaxScaler((0, 100)), MODEL, delta=1e-5).fit(numbers, Y)
    for other in (numbers[["dose", "age"]], numbers.assign(more=1.0)):
        with pytest.raises(InvalidInput, match="feature names should match"):
            pipe.predict(other)
