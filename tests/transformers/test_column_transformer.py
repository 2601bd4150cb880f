"""Stages for some of the columns, side by side: planned, fitted, certified, exported and used for new rows."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer as SklearnColumns
from sklearn.pipeline import make_pipeline as sklearn_pipeline

import ppdp
from ppdp import Adjacency, ColumnTransformer, Domain, Pipeline
from ppdp.exceptions import DomainMismatch, InvalidParameter, MissingBound, UnknownStage, UnsupportedOrder
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.pipeline.fit import prepare_rows
from ppdp.transformers import (
    PCA,
    CategoryEncoder,
    Deduplicator,
    MeanImputer,
    MinMaxScaler,
    NormClipper,
    RandomProjection,
    RobustScaler,
    StandardScaler,
)

RANGES = {"age": (0, 100), "bmi": (10, 60), "dose": (0, 10)}
WORDS = CategoryEncoder({"sex": ["F", "M"], "ward": ["A", "B", "C"]}, other=None)
TEXT = ("text", WORDS, ["sex", "ward"])


def patients(n=2000):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "age": rng.uniform(20, 80, n),
            "sex": rng.choice(["F", "M"], n),
            "bmi": np.clip(rng.normal(27, 4, n), 10, 60),
            "ward": rng.choice(["A", "B", "C"], n),
            "dose": rng.uniform(0, 10, n),
            "note": rng.choice(["x", "y"], n),
        }
    )
    y = (X["age"] / 80 + (X["sex"] == "F") + rng.normal(0, 0.3, n) > 1.2).astype(int).to_numpy()
    X.loc[rng.random(n) < 0.1, "bmi"] = np.nan
    return X, y


def numbers(*stages):
    return ("numbers", [MinMaxScaler(ranges=RANGES), *stages], list(RANGES))


def pipeline(*stages, last=None, **parameters):
    columns = ColumnTransformer([numbers(*stages), TEXT])
    model = LogisticRegression(classes=(0, 1)) if last is None else last
    return Pipeline([("prep", columns), ("model", model)], epsilon=3.0, delta=1e-5, **parameters)


def test_stages_side_by_side_from_the_table_to_the_model(tmp_path):
    X, y = patients()
    pipe = pipeline(MeanImputer(), StandardScaler()).fit(X, y)
    assert pipe.certificate_.verify()
    assert pipe.certificate_.status == "UNCONDITIONAL"
    steps = pipe.certificate_.record.steps
    assert [step.class_ for step in steps] == ["ColumnMap", "ColumnSplit", "MeanImputer", "StandardScaler"]
    assert [step.formula.partition("@")[2] for step in steps] == ["", "", "numbers", "numbers"]
    assert [release.size for release in pipe.certificate_.record.releases] == [3, 6]
    assert pipe.score(X, y) > 0.85
    out = pipe[:-1].transform(X)
    assert list(pipe[:-1].get_feature_names_out()) == [*RANGES, "sex_F", "sex_M", "ward_A", "ward_B", "ward_C"]
    np.testing.assert_allclose(out[:, :3].mean(axis=0), 0, atol=0.1)
    np.testing.assert_allclose(out[:, [0, 2]].std(axis=0), 1, atol=0.1)  # the floor is above the deviation of the other
    assert set(np.unique(out[:, 3:])) == {0.0, 1.0}
    np.testing.assert_array_equal(pipe["prep"].transform(X), out)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(pipe)).predict(X), pipe.predict(X))
    np.testing.assert_array_equal(pipe.predict(X[X.columns[::-1]]), pipe.predict(X))
    pipe.export(tmp_path / "model.zip")
    loaded = ppdp.load(tmp_path / "model.zip")
    np.testing.assert_array_equal(loaded.predict(X), pipe.predict(X))
    again = Pipeline(loaded.steps, epsilon=3.0, delta=1e-5).fit(X, y)
    assert [step.formula for step in again.certificate_.record.steps] == [step.formula for step in steps]
    table = pipe.release_.to_pandas()
    assert set(table[table["step"] == "prep-numbers-standardscaler"]["column"]) == set(RANGES)
    assert list(pipe.set_output(transform="pandas")[:-1].transform(X).columns)[:3] == list(RANGES)
    assert "ColumnTransformer" in pipe._repr_html_()


def test_statistics_pay_for_the_columns_of_their_group():
    """The same scaler behind the same table, of all columns and of one beside a hundred of 0 and 1."""
    hot = {f"c{i}": [0, 1] for i in range(50)}
    domain = Domain(n_rows=5000, feature_names=("x", *hot), n_features=51, classes=(0, 1))
    ct = ColumnTransformer(
        [
            ("x", [MinMaxScaler((0, 1)), StandardScaler(fit_mode="noisy")], ["x"]),
            ("hot", CategoryEncoder(hot), list(hot)),
        ]
    )
    plan = Pipeline([("prep", ct), ("model", GaussianMechanism())], epsilon=1.0).plan(domain)
    alone = [("range", MinMaxScaler((0, 1))), ("scale", StandardScaler(fit_mode="noisy"))]
    one = Pipeline([*alone, ("model", GaussianMechanism())], epsilon=1.0).plan(
        domain.but(feature_names=("x",), n_features=1)
    )
    assert plan.releases[0].sensitivity == pytest.approx(one.releases[0].sensitivity, rel=1e-6)
    assert plan.end[0].row_norm == pytest.approx(np.hypot(one.end[0].row_norm, np.sqrt(50)), rel=1e-6)


@pytest.mark.parametrize(
    ("adjacency", "table"),
    [(Adjacency.add_remove(), {"n_rows": 2500}), (Adjacency.user_level(2), {"n_rows": 2500}), (None, {})],
    ids=["added rows", "persons", "replaced rows"],
)
def test_exact_noisy_and_public_stages_in_one_pipeline(adjacency, table):
    X, y = patients()
    columns = ColumnTransformer(
        [
            ("age", [MinMaxScaler((0, 100)), MeanImputer(max_missing=0), StandardScaler(fit_mode="exact")], ["age"]),
            ("bmi", [MinMaxScaler((10, 60)), MeanImputer(fit_mode="noisy"), StandardScaler(fit_mode="noisy")], ["bmi"]),
            ("dose", [MinMaxScaler((0, 10)), MeanImputer(max_missing=0), RandomProjection(2)], ["dose"]),
            TEXT,
        ]
    )
    pipe = Pipeline(
        [("prep", columns), ("model", LogisticRegression(classes=(0, 1), solver="dpgd", max_iter=5))],
        epsilon=5.0,
        delta=1e-5,
        domain=Domain(**table),
        adjacency=adjacency,
        on_invalid="repair",
    )
    ids = np.arange(len(X)) // 2 if adjacency is not None and adjacency.bounds_contributions else None
    pipe.fit(X, y, groups=ids)
    assert pipe.certificate_.verify()
    ways = {step.name: step.way for step in pipe.certificate_.record.steps}
    assert ways["prep-age-standardscaler"] == "exact"
    assert ways["prep-bmi-standardscaler"] == "noisy"
    assert pipe[:-1].transform(X).shape == (len(X), 1 + 1 + 2 + 5)
    assert list(pipe[:-1].get_feature_names_out())[:4] == ["age", "bmi", "dose0", "dose1"]


def test_a_stage_behind_takes_all_columns():
    X, y = patients()
    columns = ColumnTransformer([numbers(MeanImputer(), StandardScaler()), TEXT])
    steps = [("prep", columns), ("pca", PCA(2)), ("model", LogisticRegression(classes=(0, 1)))]
    pipe = Pipeline(steps, epsilon=5.0, delta=1e-5).fit(X, y)
    assert pipe.certificate_.verify()
    assert "groups" not in pipe.certificate_.record.steps[-1].domain


def test_numbers_alone_by_position_behind_another_step():
    X = np.random.default_rng(0).uniform(-1, 1, (500, 4))
    columns = ColumnTransformer([("a", StandardScaler(), [2]), ("b", "drop", [0])], remainder="passthrough")
    pipe = Pipeline([("clip", NormClipper(1.5)), ("prep", columns)], epsilon=3.0).fit(X)
    assert pipe.certificate_.verify()
    out = pipe.transform(X)
    assert out.shape == (500, 3)
    np.testing.assert_allclose(out[:, 1:], NormClipper(1.5).fit_transform(X)[:, [1, 3]])
    assert pipe["prep"].get_feature_names_out().tolist() == ["x2", "x1", "x3"]


def test_alone_it_is_an_ordinary_transformer():
    X, _ = patients(50)
    columns = ColumnTransformer([numbers(MeanImputer(), StandardScaler()), TEXT], remainder="drop")
    out = columns.fit_transform(X)
    same = SklearnColumns(
        [(name, sklearn_pipeline(*np.ravel(stages)), own) for name, stages, own in columns.transformers]
    )
    np.testing.assert_array_equal(out, same.fit_transform(X))
    np.testing.assert_array_equal(columns.transform(X), out)
    assert columns.get_feature_names_out()[0] == "age"
    named = clone(columns).set_params(verbose_feature_names_out=True).set_output(transform="pandas").fit_transform(X)
    assert list(named.columns)[:2] == ["numbers__age", "numbers__bmi"]


def test_parameters_of_stages_have_names():
    columns = ColumnTransformer([numbers(MeanImputer(), StandardScaler()), TEXT], remainder=StandardScaler())
    params = columns.get_params()
    assert params["numbers__standardscaler__clip"] == "auto"
    assert params["text__other"] is None
    assert params["remainder__with_mean"] is True
    columns.set_params(numbers__standardscaler__clip=None, remainder__with_mean=False)
    assert columns.remainder.with_mean is False
    columns.set_params(remainder="drop")
    assert columns.transformers[0][1][2].clip is None
    assert columns.remainder == "drop"
    assert repr(clone(columns)) == repr(columns)
    assert repr(clone(columns).set_params(**columns.get_params())) == repr(columns)
    columns.set_params(text=NormClipper(), numbers__meanimputer=NormClipper(), numbers__minmaxscaler__ranges=(0, 1))
    assert [type(stage).__name__ for stage in columns.transformers[0][1]][1] == "NormClipper"
    assert columns.transformers[0][1][0].ranges == (0, 1)
    assert columns.transformers[1][1].max_norm == 1.0
    with pytest.raises(InvalidParameter, match="numbers__scaler"):
        columns.set_params(numbers__scaler__clip=1)
    columns.set_params(remainder=[MeanImputer()]).set_params(remainder__meanimputer=NormClipper())
    assert [type(stage) for stage in columns.remainder] == [NormClipper]


RANGE = MinMaxScaler((0, 1))


@pytest.mark.parametrize(
    ("transformers", "error", "told"),
    [
        ([], InvalidParameter, "list of"),
        ([("a", RANGE)], InvalidParameter, "list of"),
        ([("a__b", RANGE, ["x"])], InvalidParameter, "names of transformers"),
        ([("a@b", RANGE, ["x"])], InvalidParameter, "names of transformers"),
        ([("a", RANGE, ["x"]), ("a", RANGE, ["y"])], InvalidParameter, "names of transformers"),
        ([("remainder", RANGE, ["x"])], InvalidParameter, "names of transformers"),
        ([("a", RANGE, lambda X: X.columns[X.max() > 1])], InvalidParameter, r"by their types.*selector\(X\)"),
        ([("a", RANGE, [0.5])], InvalidParameter, "no names or positions"),
        ([("a", StandardScaler, ["x"])], UnknownStage, "not a ppdp stage"),
        ([("a", "scale", ["x"])], UnknownStage, "not a ppdp stage"),
        ([("a", GaussianMechanism(), ["x"])], UnknownStage, "not a ppdp stage"),
        ([("a", ColumnTransformer([("b", RANGE, ["x"])]), ["x"])], UnknownStage, "ColumnTransformer"),
        ([("a", [RANGE, Deduplicator()], ["x"])], UnknownStage, "whole rows"),
        (
            [("a", [RANGE, CategoryEncoder([["A"]])], ["x"]), ("b", [NormClipper(), WORDS], ["y"])],
            UnsupportedOrder,
            "first",
        ),
        ([("a", StandardScaler(), ["x", "x"])], InvalidParameter, "named twice"),
        ([("a", StandardScaler(), ["x"]), ("b", NormClipper(), ["x"])], InvalidParameter, "named twice"),
        ([("a", StandardScaler(), ["z"])], DomainMismatch, "z"),
        ([("a", StandardScaler(), [])], InvalidParameter, "no column"),
        ([("a", StandardScaler(), ["x"])], MissingBound, "row_norm"),
    ],
)
def test_slips_are_refused_before_any_row(transformers, error, told):
    pipe = Pipeline([("prep", ColumnTransformer(transformers)), ("mean", GaussianMechanism())])
    with pytest.raises(error, match=told) as caught:
        pipe.plan(domain=Domain(n_rows=100, feature_names=("x", "y")))
    assert "Fix:" in str(caught.value)


def test_gaps_of_a_group_are_its_own():
    """An imputer in one group leaves those of the others, and a stage there says so."""
    X, y = patients()
    columns = ColumnTransformer(
        [
            ("bmi", [MinMaxScaler((10, 60)), MeanImputer()], ["bmi"]),
            ("age", [MinMaxScaler((0, 100)), StandardScaler()], ["age"]),
        ]
    )
    pipe = Pipeline([("prep", columns), ("model", LogisticRegression(classes=(0, 1)))])
    with pytest.raises(
        UnsupportedOrder, match=r"'prep-age': rows may have missing values in its columns.*max_missing=0"
    ):
        pipe.fit(X, y)


def test_a_model_says_which_group_may_have_gaps_and_what_to_write():
    groups = [("age", [MinMaxScaler((0, 100)), MeanImputer()], ["age"]), ("dose", MinMaxScaler((0, 10)), ["dose"])]
    facts = Domain(n_rows=9000, feature_names=("age", "dose"), classes=(0, 1))
    with pytest.raises(UnsupportedOrder, match=r"in the columns of 'dose'.*at the end of 'dose': .*max_missing=0"):
        Pipeline([("prep", ColumnTransformer(groups)), ("model", LogisticRegression())], epsilon=1.0).plan(facts)
    groups[1] = ("dose", [MinMaxScaler((0, 10)), MeanImputer(max_missing=0)], ["dose"])
    assert Pipeline([("prep", ColumnTransformer(groups)), ("model", LogisticRegression())], epsilon=1.0).plan(facts)


def test_what_a_scaler_of_a_group_says_of_it_stays_known():
    """Centred columns are not centred again, and columns of 0 and 1 of another group are not scaled behind it."""
    facts = Domain(n_rows=9000, feature_names=("a", "b", "c", "sex"), classes=(0, 1), max_missing=0)
    numbers = [MinMaxScaler((0, 1)), StandardScaler()]
    text = ("text", CategoryEncoder([["F", "M"]], other=None), ["sex"])

    def planned(stages, *behind):
        groups = ColumnTransformer([("numbers", stages, ["a", "b", "c"]), text])
        return Pipeline([("prep", groups), *behind, ("model", LogisticRegression())], epsilon=1.0).plan(facts)

    released = planned([*numbers, PCA(2)]).releases
    assert [one.statistic for one in released] == ["squares-in-parts@numbers", "moment@numbers"]
    assert planned(numbers, ("scale", StandardScaler())).steps[-1].way.parameters["columns"] == [0, 1, 2]


def test_a_stage_that_helps_takes_the_place_of_one_in_a_group():
    robust = RobustScaler(fit_mode="exact")
    made = ColumnTransformer([("a", [("scale", robust)], [0]), ("b", robust, [1])], remainder=robust)
    kinds = {(words.rsplit(" for ", 1)[1], type(one._stages_by_key()).__name__) for words, one in made.instead()}
    assert {key for key, _ in kinds} == {"'a__scale'", "'b'", "'remainder'"}
    for words, one in made.instead():
        key = words.rsplit(" for ", 1)[1].strip("'")
        changed = dict(one._stages_by_key())
        assert repr(changed[key]) != repr(robust)
        assert all(repr(stage) == repr(robust) for other, stage in changed.items() if other != key)


def test_what_was_released_as_plain_objects_and_by_lint():
    X, y = patients()
    steps = [numbers(MeanImputer(), StandardScaler(fit_mode="noisy")), ("some", RandomProjection(2), []), TEXT]
    pipe = Pipeline(
        [("prep", ColumnTransformer(steps)), ("model", LogisticRegression(classes=(0, 1)))], epsilon=3.0, delta=1e-5
    ).fit(X, y)
    plain = pipe.release_.to_sklearn()
    np.testing.assert_array_equal(plain.predict(X), pipe.predict(X))
    found = {one.step: one.severity for one in ppdp.lint(pipe)}
    assert found["prep__numbers__standardscaler"] == "none"
    assert {one.step: one.severity for one in ppdp.lint(ColumnTransformer(steps))}["numbers__standardscaler"] == "low"


def test_blocks_of_a_file_give_the_same_bits(tmp_path):
    X, y = patients()
    X.assign(y=y).to_parquet(tmp_path / "rows.parquet")
    pipe = pipeline(MeanImputer(), StandardScaler(), random_state=0)
    there = clone(pipe).fit(tmp_path / "rows.parquet", "y")
    here = pipe.fit(X, y)
    assert there.certificate_.record.released.sha256 == here.certificate_.record.released.sha256
    np.testing.assert_array_equal(there.predict(tmp_path / "rows.parquet"), here.predict(X))


@pytest.mark.parametrize("columns", [[0, 1], [1]])
def test_rows_that_are_compared_as_they_came_in_stay_so(columns):
    """A stage for all columns may write over its own rows only."""
    X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    scaled = ColumnTransformer([("a", StandardScaler(fit_mode="exact"), columns)], remainder="passthrough")
    steps = [("range", MinMaxScaler(ranges=(-1, 1))), ("columns", scaled), ("mean", GaussianMechanism())]
    plan, rows = prepare_rows(Pipeline(steps, epsilon=50.0, diagnostics=None, gate=None), X)
    for step in plan.steps[:-1]:
        rows = step.stage.apply(rows, step.stage.prepare(rows, step.way, step.domain))
    last, before = plan.steps[-1], rows.X.copy()
    last.stage.apply(rows, last.stage.prepare(rows, last.way, last.domain))
    assert last.way.name == "exact"
    np.testing.assert_array_equal(rows.X, before)
