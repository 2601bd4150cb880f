"""Positions of columns become names where columns have names, and these are found again wherever they stand."""

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

from ppdp import Adjacency, Domain, Pipeline, declare, load, make_column_map, make_pipeline
from ppdp.exceptions import DomainMismatch, InvalidInput, InvalidParameter
from ppdp.mechanisms import ExponentialMechanism, GaussianMechanism, LogisticRegression
from ppdp.transformers import CategoryEncoder, Deduplicator, MeanImputer, MinMaxScaler, StandardScaler

N = 400
CHANGE = Adjacency.change(coordinate={1: 0.5})
PUBLIC = MinMaxScaler(ranges={"a": (0, 1), "b": (0, 1000)})


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame({"label": rng.integers(0, 2, N), "a": rng.uniform(0, 1, N), "b": rng.uniform(0, 1000, N)})


def pipeline(*stages, adjacency=None, facts=None):
    steps = [*((type(stage).__name__, stage) for stage in stages), ("sum", GaussianMechanism("sum"))]
    return Pipeline(steps, delta=1e-4, adjacency=adjacency, domain=facts)


class TestChanges:
    def test_positions_become_names_on_certificate_and_pages(self, table):
        by_position = pipeline(PUBLIC, adjacency=CHANGE).fit(table[["a", "b"]]).certificate_
        by_name = pipeline(PUBLIC, adjacency=Adjacency.change(coordinate={"b": 0.5})).fit(table[["a", "b"]])
        assert by_position.to_dict()["entrance"] == by_name.certificate_.to_dict()["entrance"]
        assert by_position.to_dict()["entrance"]["domain"]["adjacency"]["coordinate"] == [["b", 0.5]]
        for shown in (by_position.to_text(full=True), by_position.to_html()):
            assert "b: 0.5" in shown
            assert "column 1" not in shown
        assert by_position.verify()

    def test_positions_stay_where_columns_have_no_names(self, table):
        fitted = pipeline(MinMaxScaler(ranges=[(0, 1), (0, 1000)]), adjacency=CHANGE).fit(table[["a", "b"]].to_numpy())
        assert fitted.certificate_.to_dict()["entrance"]["domain"]["adjacency"]["coordinate"] == [[1, 0.5]]

    @pytest.mark.parametrize("which", ["y", "groups"])
    @pytest.mark.parametrize("where", ["pipeline", "domain"])
    def test_positions_beside_a_named_column_are_refused(self, table, which, where):
        given = {"adjacency": CHANGE} if where == "pipeline" else {"facts": Domain(adjacency=CHANGE)}
        for X in (table, table.convert_dtypes(dtype_backend="pyarrow")):
            with pytest.raises(InvalidParameter, match="position"):
                pipeline(PUBLIC, **given).fit(X, **{which: "label"})

    def test_a_column_beyond_those_that_are_named_does_not_exist(self, table):
        with pytest.raises(DomainMismatch, match="does not exist"):
            pipeline(PUBLIC, adjacency=Adjacency.change(coordinate={2: 0.5})).fit(table[["a", "b"]])

    def test_a_plan_is_kept_by_name(self, table):
        names = Domain(n_rows=N, feature_names=("a", "b"))
        pipe = pipeline(PUBLIC, adjacency=CHANGE)
        pipe.plan(names)
        pipe.fit(table[["a", "b"]])
        pipe.plan(names)
        with pytest.raises(DomainMismatch, match="adjacency"):
            pipe.fit(table[["b", "a"]])
        pipe.plan(Domain(n_rows=N, n_features=2, feature_names=("a", "b")))
        assert pipe.fit(table[["a", "b"]]).certificate_.verify()


POSITIONS = {
    "ranges": [MinMaxScaler(ranges={0: (0, 1), 1: (0, 1000)})],
    "a part": [make_column_map((MinMaxScaler(ranges=(0, 1)), [0]))],
    "a slice": [make_column_map((MinMaxScaler(ranges=(0, 1)), ["a"]), (CategoryEncoder([0.0, 1.0]), [1]))],
    "a key": [PUBLIC, Deduplicator(subset=[1])],
    "columns": [PUBLIC, MeanImputer(columns=[1])],
}


@pytest.mark.parametrize("stages", POSITIONS.values(), ids=POSITIONS)
def test_positions_in_steps_are_refused_beside_a_named_column(table, stages):
    with pytest.raises(InvalidParameter, match="position"):
        pipeline(*stages).fit(table, "label")


@pytest.mark.parametrize(
    "last", [GaussianMechanism("histogram", bins={0: [0, 0.5, 1]}), ExponentialMechanism(candidates={0: [0, 0.5, 1]})]
)
def test_so_are_positions_in_the_last_one(table, last):
    with pytest.raises(InvalidParameter, match="position"):
        Pipeline([("range", PUBLIC), ("last", last)], epsilon=5.0).fit(table, "label")


def test_positions_in_steps_stand_where_the_named_column_is_the_last(table):
    last = table[["a", "b", "label"]]
    assert pipeline(PUBLIC, Deduplicator(subset=[1])).fit(last, "label").certificate_.verify()


def test_names_in_steps_stand_beside_a_named_column(table):
    assert pipeline(PUBLIC, Deduplicator(subset=["b"])).fit(table, "label").certificate_.verify()


def test_released_categories_name_the_columns_of_all_stages_behind():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": rng.uniform(0, 1, 3000), "c": rng.choice(["x", "y"], 3000)})
    facts = declare(rows)
    facts.update(a=(0, 1), c={"private": 3})
    steps = [*facts.steps(), ("scale", StandardScaler())]
    names = ["a", "c_x", "c_y", "c_unused_3", "c_other"]
    fitted = Pipeline([*steps, ("mean", GaussianMechanism())], epsilon=3.0, dataset="names").fit(rows)
    for part in (fitted[:1], fitted[:-1], fitted[1:2], Pipeline(steps, epsilon=3.0, dataset="names").fit(rows)):
        assert list(part.get_feature_names_out()) == names
    assert list(fitted[1].feature_names_in_) == names
    assert fitted[:-1].set_output(transform="pandas").transform(rows).columns.tolist() == names


# ---------------- columns that stand elsewhere in new rows


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
