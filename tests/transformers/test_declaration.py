"""A declaration is written from names and types alone, and names every blank that is left."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

import ppdp
from ppdp import Domain, Pipeline
from ppdp.exceptions import DomainMismatch, InvalidInput, InvalidParameter, MissingBound
from ppdp.mechanisms import LogisticRegression

SECRET = "ward-of-one-person"
X = pd.DataFrame(
    {
        "age": pd.array([50, None], "Int64"),
        "sex": pd.array(["F", SECRET], "string"),
        "ward": pd.Categorical(["A", SECRET]),
        "born": pd.to_datetime(["1970-01-01", None]),
        "smoker": [True, False],
        "notes": pd.Series([["a"], ["b"]], dtype=pd.ArrowDtype(pa.list_(pa.string()))),
        "mixed": pd.Series([1, SECRET], dtype=object),
    }
)


TYPED = X.drop(columns="mixed")


@pytest.mark.parametrize("table", [X, pa.Table.from_pandas(TYPED), pl.from_pandas(TYPED)])
def test_no_value_shows_not_even_one_of_a_type(table):
    facts = ppdp.declare(table)
    assert facts.blanks[:4] == ("age", "sex", "ward", "born")
    assert facts["smoker"] == [0, 1]
    assert facts["notes"] == "drop" or type(table).__module__.startswith("polars")  # whose lists become objects
    assert SECRET not in f"{facts}{facts!r}{facts.types}"
    assert "[low, high]" in str(facts).splitlines()[0]


def test_the_form_of_files_is_enough(tmp_path):
    TYPED.to_parquet(tmp_path / "rows.parquet")
    dask = pytest.importorskip("dask.dataframe").from_pandas(TYPED, npartitions=1)
    for rows in (pyarrow.dataset.dataset(tmp_path / "rows.parquet"), tmp_path, [tmp_path / "rows.parquet"], dask):
        facts = ppdp.declare(rows)
        assert list(facts) == list(TYPED)
        assert SECRET not in str(facts)


def test_what_a_table_holds_changes_nothing():
    assert str(ppdp.declare(X)) == str(ppdp.declare(X[:0])) == str(ppdp.declare(X.iloc[[1, 0]]))


def test_every_blank_is_named():
    facts = ppdp.declare(X)
    with pytest.raises(MissingBound, match="'age', 'sex', 'ward', 'born', 'mixed'"):
        facts.column_map()


def test_a_filled_one_is_the_first_step_of_a_pipeline():
    facts = ppdp.declare(X)
    facts.update(age=(18, 90), sex=["F", "M"], ward=["A", "B"], born=(dt.date(1920, 1, 1), pd.Timestamp("2010-01-01")))
    facts["mixed"] = "drop"
    pipe = Pipeline([("columns", facts.column_map()), ("gaps", ppdp.transformers.MeanImputer())])
    assert pipe.plan(Domain(n_rows=1000, feature_names=tuple(X.columns))).end[0].d == 9
    first, second = facts.column_map().fit_transform(X).round(2)
    np.testing.assert_array_equal(first, [-0.11, 1, 0, 0, 1, 0, 0, 0.11, 1])
    np.testing.assert_array_equal(second, [np.nan, 0, 0, 1, 0, 0, 1, np.nan, -1])


def test_a_private_range_of_numbers_is_released_behind_the_map():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.integers(18, 90, 4000), "sex": rng.choice(["F", "M"], 4000)})
    facts = ppdp.declare(table)
    facts.update(age="private", sex=["F", "M"])
    last = ("model", LogisticRegression(classes=(0, 1), max_iter=5))
    pipe = Pipeline([*facts.steps(), last], epsilon=1.0, delta=1e-6, random_state=0)
    pipe.fit(table, (table["age"] > 50).astype(int))
    assert pipe["ranges"].low_.tolist()[1:] == [-1.0] * 3
    assert 10 <= pipe["ranges"].low_[0] < 30 < 80 < pipe["ranges"].high_[0] < 140
    told = [(f.name, f.origin.split(",")[0]) for f in pipe.certificate_.record.facts if f.name.startswith("range of")]
    assert told == [("range of age", "released")]
    assert "range of age = found in the rows, with noise (released, step 'ranges')" in pipe.certificate_.to_text(
        full=True
    )
    assert pipe.certificate_.verify()
    assert pipe.score(table, (table["age"] > 50).astype(int)) > 0.8


def test_private_categories_of_text_are_released_beside_private_ranges():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.integers(18, 90, 4000), "sex": rng.choice(["F", "M"], 4000)})
    facts, y = ppdp.declare(table.astype({"sex": "string"})), (table["sex"] == "F").astype(int)
    facts.update(age="private", sex="private")
    assert facts.forms == {"age": "number", "sex": "text"}
    last = ("model", LogisticRegression(classes=(0, 1), max_iter=5))
    pipe = Pipeline([*facts.steps(), last], epsilon=2.0, random_state=0).fit(table, y)
    assert pipe["columns"].found_ == {1: ("F", "M")}
    assert 10 <= pipe["ranges"].low_[0] < 30
    assert len(pipe.certificate_.record.releases) == 2
    assert pipe.certificate_.verify()
    assert pipe.score(table, y) > 0.9
    facts["sex"] = {"private": 3}
    assert "sex = {private = 3}" in str(facts)
    assert len(facts.column_map().names_out(("age", "sex"), 1.0)) == 5
    facts["sex"] = {"words": 8}
    assert "sex = {words = 8}" in str(facts)
    assert len(facts.column_map().names_out(("age", "sex"), 1.0)) == 9


def test_only_ranges_of_numbers_and_categories_of_text_are_released():
    facts = ppdp.declare(X[["age", "born"]])
    facts.update(age="private", born="private")
    with pytest.raises(MissingBound, match="only ranges of numbers and categories of text can be released: 'born'"):
        facts.steps()


def test_what_a_line_hints_at_is_also_python():
    facts = ppdp.declare(X[["born"]])
    assert str(facts) == 'born = "?"  # datetime64: ["1990-01-01", "2030-12-31"], or "drop"'
    facts["born"] = ["1990-01-01", "2030-12-31"]
    assert facts.forms == {"born": "date"}


NOTHING = 5, None, [], "everything", [3], [9, 1], [1, float("nan")], ["20200101", "20210101"]
PAIRS = (0, 5, 10), (0,), (), (0, None), ("a", "b"), (False, True), {0, 5}, frozenset(["a"]), range(2), range(18, 81)
TEXTS = ["0", "5"], ["a", "b"], ["1990-01-01", "2030-12-31"]
REFUSED = [
    *(("age", value, "'age'") for value in (*NOTHING, {"a": 1}, {"private": 0}, {"words": 0})),
    *(
        (column, value, rf"{column} = \(low, high\) for a range, {column} = \[...\] for cat")  # whatever it holds
        for column in ("age", "sex", "born")
        for value in PAIRS
    ),
    *(("age", value, r"'age', which holds numbers. Fix: age = \(low, high\)") for value in TEXTS),
    *(("born", value, "'born', which holds dates") for value in ((0, 5), [0, 5], [0, 5, 10])),
]


@pytest.mark.parametrize(("column", "value", "words"), REFUSED)
def test_what_declares_nothing_of_a_column(column, value, words):
    facts = ppdp.declare(X[[column]])
    with pytest.raises(InvalidParameter, match=words):
        facts.update({column: value})
    assert str(facts).startswith(f'{column} = "?"')


def test_a_declaration_that_drops_every_column():
    facts = ppdp.declare(X[["age"]])
    facts["age"] = "drop"
    with pytest.raises(InvalidParameter, match="no column is left"):
        facts.column_map()


@pytest.mark.parametrize("value", [(0, 5), [0, 5], np.array([0, 5]), pd.Series([0, 5]), (0.0, np.float64(5))], ids=repr)
def test_two_numbers_are_a_range_however_they_are_listed(value):
    facts = ppdp.declare(X[["age"]])
    facts["age"] = value
    np.testing.assert_array_equal(
        facts.column_map().fit_transform(pd.DataFrame({"age": [-1, 0, 5, 9]})).ravel(), [-1, -1, 1, 1]
    )


@pytest.mark.parametrize(
    "ranges", [("0", "5"), ["0", "5"], (False, True), (0, 5, 10), {"age": ("0", "5")}, {"age": (0, 5, 10)}]
)
def test_ranges_of_a_scaler_are_pairs_of_numbers(ranges):
    with pytest.raises(InvalidParameter, match=r"ranges=\(0, 10\) for all columns, or ranges=\{column: \(0, 10\)\}"):
        Pipeline([("scale", ppdp.transformers.MinMaxScaler(ranges))]).plan(Domain(n_rows=9, feature_names=("age",)))


def test_a_slip_in_a_name():
    with pytest.raises(DomainMismatch, match="did you mean 'age'"):
        ppdp.declare(X)["agee"] = (0, 1)


def test_truth_values_with_gaps_are_categories_of_what_they_are():
    table = pd.DataFrame({"t": [True, False, None, True]}, dtype=object)
    facts = ppdp.declare(table)
    facts["t"] = [True, False]
    assert facts.column_map().fit_transform(table)[:, :2].tolist() == [[1, 0], [0, 1], [0, 0], [1, 0]]


@pytest.mark.parametrize("table", [np.ones((2, 2)), [[1, 2]], pd.DataFrame([[1, 2]]), None, "rows.parquet"])
def test_columns_without_names(table):
    with pytest.raises(InvalidInput, match="there is no file" if isinstance(table, str) else "names of columns"):
        ppdp.declare(table)


class TestCodesWithMissingValues:
    TABLE = pd.DataFrame({"code": [0.0, 1.0, 2.0, np.nan], "x": [1.0, 2.0, 3.0, 4.0]})

    @pytest.mark.parametrize("gap", [np.nan, None], ids=repr)
    def test_a_category_for_missing_values_can_be_declared(self, gap):
        facts = ppdp.declare(self.TABLE[["code"]])
        facts["code"] = [0, 1, 2, gap]
        assert str(facts).startswith("code = [0, 1, 2, nan]")
        step = facts.column_map().set_output(transform="pandas")
        made = step.fit_transform(self.TABLE[["code"]])
        assert list(made) == ["code_0", "code_1", "code_2", "code_other", "code_missing"]
        np.testing.assert_array_equal(made["code_missing"], [0, 0, 0, 1])
        np.testing.assert_array_equal(made.sum(axis=1), [1, 1, 1, 1])

    def test_the_error_of_a_missing_code_says_so_and_what_it_says_works(self):
        table = pd.concat([self.TABLE] * 100, ignore_index=True)
        y = np.arange(400) % 2
        facts = ppdp.declare(table)
        facts.update(code=[0, 1, 2], x=(0, 10))
        model = ("model", LogisticRegression(classes=(0, 1)))
        with pytest.raises(ppdp.exceptions.InvalidValue, match=r"declared as code = \[0, 1, 2, nan\]"):
            Pipeline([*facts.steps(), model], dataset="codes").fit(table, y)
        facts["code"] = [0, 1, 2, np.nan]
        steps = [*facts.steps(), ("impute", ppdp.transformers.MeanImputer()), model]
        pipe = Pipeline(steps, epsilon=20.0, random_state=0).fit(table, (table["code"].isna()).astype(int))
        assert pipe.score(table, table["code"].isna().astype(int)) > 0.95


def test_groups_of_columns_as_declared():
    draws = np.random.default_rng(0)
    table = pd.DataFrame(
        {"age": draws.uniform(0, 90, 400), "ward": draws.choice(["a", "b"], 400), "seen": "2001-05-06"}
    )
    table["dose"], y = draws.uniform(0, 9, 400), draws.integers(2, size=400)
    facts = ppdp.declare(table)
    facts.update(age=(0, 90), ward=["a", "b"], seen=("2000-01-01", "2010-01-01"), dose=(0, 9))
    stages = [ppdp.transformers.MeanImputer(), ppdp.transformers.StandardScaler(fit_mode="noisy")]
    groups = facts.column_transformer(stages)
    pipe = Pipeline([("columns", groups), ("m", LogisticRegression((0, 1)))], epsilon=9.0).fit(table, y)
    used = [step.formula.partition("@")[2] for step in pipe.certificate_.record.steps]
    assert used[2:6] == ["numbers", "numbers", "dates", "dates"]
    assert groups.transformers[0][2] == ["age", "dose"]
    facts["age"] = "private"
    with pytest.raises(MissingBound, match="'age'"):
        facts.column_transformer()
