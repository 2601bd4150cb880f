"""Columns that a function chooses: by public names and types, once, and from there on they have names."""

import pickle
import re
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.compose import ColumnTransformer as SklearnColumns
from sklearn.compose import make_column_selector
from sklearn.pipeline import make_pipeline as sklearn_pipeline
from sklearn.preprocessing import MinMaxScaler as PlainScaler

import ppdp
from ppdp import ColumnTransformer, Domain, Ledger, Pipeline, PrivateSearchCV
from ppdp.exceptions import InvalidInput, InvalidParameter, NoiseWarning, PpdpError
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.transformers import CategoryEncoder, MeanImputer, MinMaxScaler, NormClipper, StandardScaler

N = 1500
RANGES = {"num_age": (0, 100), "num_dose": (0, 10)}
LABELS = {"sex": ["F", "M"], "ward": ["A", "B", "C"]}
NUMBERS, TEXT = make_column_selector(dtype_include="number"), make_column_selector(dtype_exclude="number")
BY_NAME = make_column_selector(pattern="^num")
PLAN = Domain(n_rows=N, n_features=4, feature_names=("num_age", "sex", "num_dose", "ward"))


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "num_age": rng.integers(20, 80, N),
            "sex": rng.choice(LABELS["sex"], N),
            "num_dose": rng.uniform(0, 10, N),
            "ward": rng.choice(LABELS["ward"], N),
        }
    )
    return X, (X["num_age"] / 80 + (X["sex"] == "F") > 1.2).astype(int).to_numpy()


def columns(numbers, text):
    scaled = [MinMaxScaler(ranges=RANGES), MeanImputer(), StandardScaler()]
    return ColumnTransformer([("numbers", scaled, numbers), ("text", CategoryEncoder(LABELS, other=None), text)])


def pipeline(numbers=NUMBERS, text=TEXT, **parameters):
    model = LogisticRegression(classes=(0, 1))
    return Pipeline([("prep", columns(numbers, text)), ("model", model)], epsilon=3.0, delta=1e-5, **parameters)


def own(X):
    return list(X.select_dtypes("number"))


CHOICES = [
    NUMBERS,
    TEXT,
    BY_NAME,
    make_column_selector(dtype_include=["int64", object]),
    make_column_selector(pattern="none of these"),
    own,
    lambda X: [name.startswith("num") for name in X],
    lambda X: slice(1, 3),
    lambda X: [0, -1],
]


@pytest.mark.parametrize("rest", ["drop", "passthrough"])
@pytest.mark.parametrize("chosen", CHOICES)
def test_they_are_those_that_scikit_learn_takes(table, chosen, rest):
    X = table[0].replace({"sex": {"F": 0, "M": 1}, "ward": {"A": 0, "B": 1, "C": 2}}).astype({"ward": object})
    plain = SklearnColumns([("a", "passthrough", chosen)], remainder=rest, verbose_feature_names_out=False).fit(X)
    names = plain.get_feature_names_out().tolist()
    ours = ColumnTransformer([("a", "passthrough", chosen)], remainder=rest)
    assert clone(ours).fit(X).get_feature_names_out().tolist() == names
    fitted = Pipeline([("prep", ours), ("clip", NormClipper(1.0)), ("mean", GaussianMechanism())], gate=None)
    if names:
        assert fitted.fit(X)["prep"].get_feature_names_out().tolist() == names
        assert fitted["prep"].transform(X.astype(float)).tolist() == plain.transform(X).tolist()
    else:
        with pytest.raises(InvalidParameter, match="no column"):
            fitted.fit(X)


@pytest.mark.parametrize("chosen", [NUMBERS, TEXT, BY_NAME, own, CHOICES[6], CHOICES[7]])
def test_they_are_those_of_a_converted_pipeline(table, chosen):
    X, _ = table
    plain = sklearn_pipeline(SklearnColumns([("a", PlainScaler(), chosen)]))
    converted = Pipeline.from_sklearn(plain, ranges=(0, 100), types=X.dtypes).steps[0][1]
    ours = ColumnTransformer([("a", MinMaxScaler(ranges=(0, 100)), chosen)]).with_names(X)
    assert ours.planned_steps("a", first=True)[0][1].blocks[0].columns == converted.blocks[0].columns


CONTAINERS = {
    "pandas": lambda X: X,
    "nullable": lambda X: X.convert_dtypes(),
    "of Arrow in pandas": lambda X: X.convert_dtypes(dtype_backend="pyarrow"),
    "categories": lambda X: X.astype({"sex": "category"}),
    "Arrow": lambda X: pa.Table.from_pandas(X.astype({"sex": "category"})),
    "polars": lambda X: pl.from_pandas(X).with_columns(pl.col("ward").cast(pl.Categorical)),
    "reader": lambda X: pa.Table.from_pandas(X).to_reader(),
}


@pytest.mark.parametrize("kind", CONTAINERS)
def test_a_fit_is_that_with_names(table, kind):
    X, y = table
    chosen, named = pipeline(random_state=0), pipeline(list(RANGES), list(LABELS), random_state=0).fit(X, y)
    chosen.fit(CONTAINERS[kind](X.assign(label=y)), "label")
    ours, theirs = (fitted.certificate_.to_dict() for fitted in (chosen, named))
    assert {**ours, "issued": 0, "digest": 0} == {**theirs, "issued": 0, "digest": 0}
    np.testing.assert_array_equal(chosen.predict(X[X.columns[::-1]].astype({"num_age": float})), named.predict(X))


def test_gaps_move_no_column(table):
    X, y = table
    gaps = X.astype({"num_age": float})
    gaps.loc[0, "num_age"] = np.nan
    assert pipeline(random_state=0).fit(gaps, y)["prep"].get_feature_names_out()[:2].tolist() == list(RANGES)
    frame = pl.from_pandas(X).with_columns(pl.when(pl.arange(N) > 0).then(pl.col("num_age")).alias("num_age"))
    whole = make_column_selector(dtype_include="int64")
    made = ColumnTransformer([("a", "passthrough", whole)])
    assert [made.with_names(one).transformers[0][2] for one in (X, frame, gaps)] == [["num_age"], ["num_age"], []]


def test_what_the_user_wrote_stays(table, tmp_path):
    X, y = table
    pipe = pipeline(random_state=None)
    before = repr(pipe)
    again = clone(pipe).fit(X, y)
    pipe.fit(X, y)
    assert repr(pipe) == before
    assert pipe.get_params()["prep"].transformers[0][2] is NUMBERS
    assert "make_column_selector" in pipe.steps[0][1]._repr_html_()
    assert type(clone(pipe).steps[0][1].transformers[0][2]) is make_column_selector
    for fitted in (again, pickle.loads(pickle.dumps(pipe))):
        assert fitted[:-1].transform(X).shape == (N, 7)
    pipe.export(tmp_path / "model.zip")
    loaded = ppdp.load(tmp_path / "model.zip")
    np.testing.assert_array_equal(loaded.predict(X), pipe.predict(X))
    np.testing.assert_array_equal(pipe.release_.to_sklearn().predict(X), pipe.predict(X))
    pipe.set_params(prep__transformers=[("a", MinMaxScaler(ranges=RANGES), BY_NAME)]).fit(X, y)
    assert pipe["prep"].get_feature_names_out().tolist() == list(RANGES)
    alone = columns(NUMBERS, TEXT).fit(X)
    assert [one[2] for one in alone.transformers_] == [list(RANGES), list(LABELS)]


def test_a_function_is_shown_no_value(table):
    X, _ = table
    secret = X.assign(num_dose=7.125, ward="A").astype({"ward": "category"})
    shown = []

    def chosen(frame):
        shown.append((7.125 in frame.to_numpy(), len(frame["ward"].cat.categories)))
        return [name for name in frame if name in RANGES]

    assert columns(chosen, ["sex", "ward"]).with_names(secret).transformers[0][2] == list(RANGES)
    plain = sklearn_pipeline(SklearnColumns([("a", PlainScaler(), chosen)]))
    Pipeline.from_sklearn(plain, ranges=RANGES, types=secret.dtypes)
    assert shown == [(False, 0)] * 8
    other = secret.assign(num_dose=secret["num_dose"] - 3, sex="M", ward=pd.Categorical(["C"] * N))
    for function in (NUMBERS, own):
        ones = [columns(function, TEXT).with_names(one).transformers for one in (secret, other)]
        assert [one[2] for one in ones[0]] == [one[2] for one in ones[1]]


def test_labels_and_fill_values_of_a_type_are_not_shown(table):
    sex = [pa.DictionaryArray.from_arrays([0, 1], labels) for labels in (["F", "M"], ["F", "F"], ["F", None])]
    tables = [pa.table({"age": [1, 2], "sex": one}) for one in sex]
    tables += [pl.from_arrow(tables[0]), tables[0].to_pandas()]
    for one in tables:
        made = ColumnTransformer([("a", "passthrough", TEXT), ("b", "passthrough", NUMBERS)]).with_names(one)
        assert [part[2] for part in made.transformers] == [["sex"], ["age"]]
    shown = []
    frame = pd.DataFrame({"dose": pd.arrays.SparseArray([7.125, 1.0], fill_value=7.125)})
    chosen = ColumnTransformer([("a", "passthrough", lambda X: shown.append(str(X["dose"].dtype)) or ["dose"])])
    assert chosen.with_names(frame).transformers[0][2] == ["dose"]
    assert set(shown) == {"Sparse[float64, nan]"}
    plain = sklearn_pipeline(SklearnColumns([("a", PlainScaler(), NUMBERS)]))
    with pytest.raises(InvalidParameter, match="types must be those of columns, got a value of type dict") as refused:
        Pipeline.from_sklearn(plain, types={"sex": pd.CategoricalDtype(["Anna"]), "age": "number"})
    assert "Anna" not in str(refused.value)


def test_types_that_pandas_lacks_are_objects():
    both = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])])
    for wide in (
        pa.table({"age": [1, 2], "wide": both}),
        pl.DataFrame({"age": [1], "wide": pl.Series([1], dtype=pl.Int128)}),
    ):
        made = ColumnTransformer([("a", "passthrough", NUMBERS), ("b", "passthrough", TEXT)]).with_names(wide)
        assert [part[2] for part in made.transformers] == [["age"], ["wide"]]


def test_a_selector_that_takes_nothing_leaves_the_others(table):
    X, y = table
    flags = ("flags", MinMaxScaler(ranges={"flag": (0, 1)}), make_column_selector(dtype_include="bool"))
    parts = [flags, ("numbers", MinMaxScaler(ranges=RANGES), NUMBERS)]
    pipe = Pipeline([("prep", ColumnTransformer(parts)), ("model", LogisticRegression(classes=(0, 1)))])
    assert pipe.fit(X, y)["prep"].get_feature_names_out().tolist() == list(RANGES)
    assert pipe.fit(X.assign(flag=True), y)["prep"].get_feature_names_out().tolist() == ["flag", *RANGES]


def test_names_alone_are_enough_for_a_plan(table):
    X, y = table
    pipe = pipeline(BY_NAME, lambda X: [name for name in X if name in LABELS])
    named = pipeline(list(RANGES), list(LABELS))
    for ask in ("plan", "compare", "expected_errors"):
        assert repr(getattr(pipe, ask)(PLAN)) == repr(getattr(named, ask)(PLAN))
    given = {"epsilons": (3.0,), "repeats": 1}
    assert repr(pipe.forecast(PLAN, **given)) == repr(named.forecast(PLAN, **given))
    assert pipe.fit_time(PLAN).n_features == 4
    assert repr(pipe.set_params(domain=PLAN).plan()) == repr(named.plan(PLAN))
    assert pipe.fit(X, y).certificate_.verify()


def test_a_plan_that_warns_tries_what_helps_with_these_names(table):
    X, y = table
    said = []
    for chosen in (NUMBERS, TEXT), (list(RANGES), list(LABELS)):
        with pytest.warns(NoiseWarning, match="From epsilon") as warned:
            pipeline(*chosen).set_params(epsilon=0.03).fit(X, y)
        said.append(str(warned[0].message))
    assert said[0] == said[1]


HELD = np.arange(4)


@pytest.mark.parametrize(
    ("chosen", "told"),
    [
        (lambda X: X.columns[X.nunique() < 5], "more than names and types"),
        (lambda X: [name for name in X if (X[name] == "F").any()], "takes none"),
        (lambda X: X.iloc[0] > 0, "more than names and types"),
        (make_column_selector(pattern="("), "make_column_selector fails"),
        (make_column_selector(dtype_include="numbers"), "make_column_selector fails"),
        (lambda X: X.columns[HELD > 1], "holds on to the table"),
        (partial(lambda X, kept: X.columns[kept > 1], kept=HELD), r"holds on to the table 'kept'.*Fix: a list of"),
        (lambda X: ["num_age", "height"], "height"),
        (lambda X: [0.5], "more than names and types"),
    ],
)
def test_functions_that_are_refused_before_anything_is_spent(table, chosen, told):
    ledger = Ledger(epsilon=10.0, delta=1e-3)
    with pytest.raises(PpdpError, match=told) as refused:
        pipeline(chosen, ["sex", "ward"], ledger=ledger).fit(*table)
    assert "Fix:" in str(refused.value)
    assert not ledger.entries()


def test_a_table_is_no_argument_of_a_function_that_scikit_learn_calls(table):
    chosen = partial(lambda X, kept: X.columns[kept > 1], kept=HELD)
    plain = sklearn_pipeline(SklearnColumns([("a", PlainScaler(), chosen)]))
    with pytest.raises(InvalidParameter, match=r"holds on to the table 'kept'.*Fix: a list of"):
        Pipeline.from_sklearn(plain, ranges=(0, 1), types=table[0].dtypes)


def test_where_nothing_tells_names_or_types(table):
    X, y = table
    with pytest.raises(InvalidParameter, match=r"'numbers'.*by their types.*selector\(X\)"):
        pipeline().plan(PLAN)
    for word in "bool", "datetime":
        for asked in make_column_selector(dtype_exclude=word), lambda X: list(X.select_dtypes(exclude=word)):  # noqa: B023
            with pytest.raises(InvalidParameter, match="by their types, which a plan does not know"):
                pipeline(asked, list(LABELS)).plan(PLAN)
    with pytest.raises(InvalidParameter, match=r"names are not known.*\['age', 'dose'\].*Domain\(feature_names"):
        pipeline(BY_NAME).plan(Domain(n_rows=N, n_features=4))
    numbers = X[list(RANGES)].to_numpy()
    for given in (numbers, numbers.tolist(), csr_array(numbers), X.set_axis(range(4), axis=1)):
        with pytest.raises(InvalidParameter, match="names are not known"):
            pipeline().fit(given, y)
    with pytest.raises(InvalidInput, match=re.escape("X.collect()")):
        pipeline().fit(pl.from_pandas(X).lazy(), y)
    late = [("clip", NormClipper(1.0)), ("prep", ColumnTransformer([("a", StandardScaler(), BY_NAME)]))]
    with pytest.raises(InvalidParameter, match=r"'prep'.*behind another step"):
        Pipeline(late).fit(X[list(RANGES)])


def test_a_column_that_two_functions_take(table):
    """As scikit-learn has it where a public stage begins both, and refused where they would share one copy."""
    X, _ = table
    twice = [("a", MinMaxScaler(ranges=RANGES), BY_NAME), ("b", MinMaxScaler(ranges=RANGES), NUMBERS)]
    model = [("clip", NormClipper(2.0)), ("mean", GaussianMechanism())]
    fitted = Pipeline([("prep", ColumnTransformer(twice)), *model]).fit(X)
    assert fitted["prep"].transform(X).shape == (N, 4)
    twice = [(name, NormClipper(1.0), chosen) for name, _, chosen in twice]
    with pytest.raises(InvalidParameter, match="'num_age' is named twice"):
        Pipeline([("prep", ColumnTransformer(twice)), *model]).fit(X)


def test_labels_and_ids_are_no_features(table):
    X, y = table
    whose = ppdp.Adjacency.user_level(1)
    made = pipeline(adjacency=whose, domain=Domain(n_rows=N))
    made.fit(X.assign(label=y, person=np.arange(N)), "label", groups="person")
    assert made.feature_names_in_.tolist() == list(X)


def test_a_search_tries_functions_and_names_its_columns(table):
    X, y = table
    some = [("a", MinMaxScaler(ranges=RANGES), BY_NAME)]
    grid = {"prep__transformers": [some, pipeline().steps[0][1].transformers]}
    search = PrivateSearchCV(pipeline(), grid, epsilon=6.0, delta=1e-5).fit(X, y)
    assert search.best_params_["prep__transformers"] is grid["prep__transformers"][search.best_index_]
    assert search.best_estimator_["prep"].get_feature_names_out()[0] == "num_age"
    assert search.certificate_.verify()
    with pytest.raises(InvalidParameter, match="by their types"):
        search.plan(PLAN)
    named = PrivateSearchCV(pipeline(BY_NAME, list(LABELS)), {"model__alpha": [0.1, 1.0]}, epsilon=6.0, delta=1e-5)
    assert len(named.plan(PLAN).fits) == 2


def test_lint_knows_that_no_cell_is_shown():
    assert "which columns" not in str(ppdp.lint(pipeline()))
    assert "which columns" in str(ppdp.lint(SklearnColumns([("a", PlainScaler(), NUMBERS)])).findings)
