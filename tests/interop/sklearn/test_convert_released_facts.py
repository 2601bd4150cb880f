"""What nobody knows is released with noise also in a conversion, and columns are chosen by their public types."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)

from ppdp import Domain, Pipeline, load
from ppdp.exceptions import InvalidParameter, PpdpError, UnsupportedOrder

N = 2000
RANGES = {"age": (0, 100), "dose": (-5, 5)}
LABELS = {"city": ["a", "b", "c"], "sex": ["F", "M"]}
NUMBERS = make_pipeline(SimpleImputer(), StandardScaler())


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.uniform(0, 100, N), "dose": rng.normal(size=N)})
    X["city"], X["sex"] = rng.choice(LABELS["city"], N), rng.choice(LABELS["sex"], N)
    return X, (X["age"] > 50).astype(int)


def convert(*parts, **declared):
    columns = ColumnTransformer(list(parts), verbose_feature_names_out=False)
    steps = make_pipeline(columns, LogisticRegression())
    return Pipeline.from_sklearn(steps, epsilon=8.0, classes=(0, 1), random_state=0, **{"ranges": RANGES, **declared})


def labels(encoder=None):
    return "labels", encoder or OneHotEncoder(handle_unknown="ignore"), ["city", "sex"]


class TestCategories:
    @pytest.mark.parametrize(
        ("declared", "most"),
        [
            ("private", [20, 20]),
            ({"city": "private", "sex": "private"}, [20, 20]),
            ({"city": {"private": 4}, "sex": ["F", "M"]}, [4, None]),
            ({"city": ["a", "b", "c"], "sex": {"private": 2}}, [None, 2]),
        ],
    )
    def test_they_are_released_and_the_others_stay_public(self, table, declared, most):
        pipe = convert(("numbers", NUMBERS, ["age", "dose"]), labels(), categories=declared).fit(*table)
        maps = [m for block in pipe.steps[0][1].blocks for m in block.maps if m.reads]
        counts = [getattr(m, "most", None) for m in maps]
        assert counts in (most, most[:1])
        assert pipe.certificate_.verify()
        assert pipe.certificate_.status == "SEEDED"
        assert pipe.score(*table) > 0.8
        names = pipe.twins_[0][1].get_feature_names_out()
        assert {"city_a", "city_b", "city_c", "sex_F", "sex_M"} <= set(names)

    def test_missing_text_is_a_category_where_a_constant_stands_for_it(self, table):
        encoder = make_pipeline(SimpleImputer(strategy="constant", fill_value="none"), OneHotEncoder())
        X = table[0].assign(city=table[0]["city"].where(table[0]["city"] != "c", None))
        pipe = convert(labels(encoder), ("n", NUMBERS, ["age", "dose"]), categories="private").fit(X, table[1])
        first = pipe.twins_[0][1]
        out = pd.DataFrame(first.transform(X), columns=first.get_feature_names_out())
        assert (out["city_none"] == X["city"].isna()).all()

    def test_codes(self, table):
        pipe = convert(labels(OrdinalEncoder()), ("n", NUMBERS, ["age", "dose"]), categories="private").fit(*table)
        assert pipe.certificate_.verify()

    def test_all_columns_without_names(self, table):
        pipe = Pipeline.from_sklearn(OneHotEncoder(), categories="private", random_state=0, epsilon=8.0)
        assert pipe.fit(table[0][["city", "sex"]]).certificate_.verify()

    def test_what_names_a_category_is_refused(self):
        with pytest.raises(InvalidParameter, match="drop") as refused:
            convert(labels(OneHotEncoder(drop="first")), categories="private")
        assert refused.value.stage == "labels"

    @pytest.mark.parametrize("odd", ["privat", 5, [["a"]], {"city": {"private": 0}}, {"city": {"private": "x"}}])
    def test_what_is_neither_is_refused(self, odd):
        with pytest.raises(PpdpError):
            convert(labels(), categories=odd)

    def test_an_encoder_with_lists_of_its_own_is_not_overruled(self):
        own = OneHotEncoder(categories=list(LABELS.values()))
        with pytest.raises(InvalidParameter, match="no encoder without categories of its own"):
            convert(labels(own), categories={"city": "private", "sex": ["F", "M"]})


class TestRanges:
    @pytest.mark.parametrize("ranges", ["private", {"age": (0, 100), "dose": "private"}])
    def test_they_are_released_behind_the_columns(self, table, ranges):
        pipe = convert(("numbers", NUMBERS, ["age", "dose"]), labels(), ranges=ranges, categories=LABELS).fit(*table)
        assert list(dict(pipe.steps)) == ["columntransformer", "ranges", *list(dict(pipe.steps))[2:]]
        low, high = pipe["ranges"].low_, pipe["ranges"].high_
        assert -10 < low[1] < -1 < 1 < high[1] < 10
        assert pipe.certificate_.verify()
        assert pipe.score(*table) > 0.8
        assert "released with noise" in str(pipe.conversion)

    def test_what_goes_by_them_is_refused_by_name(self):
        for inner in (KBinsDiscretizer(3, strategy="uniform"), MinMaxScaler(), PolynomialFeatures()):
            with pytest.raises(UnsupportedOrder, match="to be released") as refused:
                convert(("numbers", inner, ["age", "dose"]), ranges="private")
            assert refused.value.stage == "numbers"
        with pytest.raises(InvalidParameter, match="takes columns together"):
            convert(("n", PolynomialFeatures(), ["age", "dose"]), ranges={"age": (0, 1), "dose": "private"})

    def test_columns_without_names_are_refused(self):
        rest = ColumnTransformer([("numbers", "passthrough", ["age"])], remainder="passthrough")
        for whole in (rest, FeatureUnion([("a", "passthrough")])):
            with pytest.raises(InvalidParameter, match="names are not known"):
                Pipeline.from_sklearn(whole, ranges="private")

    def test_it_leaves_and_comes_back(self, table, tmp_path):
        pipe = convert(("numbers", NUMBERS, ["age", "dose"]), labels(), ranges="private", categories="private")
        pipe.set_params(random_state=None).fit(*table).export(tmp_path / "model.zip")
        assert np.array_equal(load(tmp_path / "model.zip").predict(table[0]), pipe.predict(table[0]))


class TestColumnsByType:
    SELECTED = ("numbers", NUMBERS, make_column_selector(dtype_include="number"))

    def test_public_types_choose(self, table):
        schema = pa.Schema.from_pandas(table[0], preserve_index=False)
        for types in (table[0].dtypes, dict(table[0].dtypes), schema):
            pipe = convert(self.SELECTED, labels(), categories=LABELS, types=types)
            assert pipe.steps[0][1].blocks[0].columns == ["age", "dose"]
        assert pipe.fit(*table).certificate_.verify()

    def test_names_are_enough_for_a_pattern(self):
        part = "numbers", NUMBERS, make_column_selector(pattern="age|dose")
        pipe = convert(part, labels(), categories=LABELS, domain=Domain(feature_names=(*RANGES, *LABELS)))
        assert pipe.steps[0][1].blocks[0].columns == ["age", "dose"]

    @pytest.mark.parametrize("columns", [make_column_selector(dtype_include="number"), lambda X: ["age"]])
    def test_without_them_the_refusal_says_what_to_pass(self, columns):
        with pytest.raises(InvalidParameter, match="chosen by a function") as refused:
            convert(("numbers", NUMBERS, columns), ranges=(0, 1))
        assert "types=X.dtypes" in refused.value.fix

    @pytest.mark.parametrize(
        "function",
        [
            lambda X: [name for name in X if name in RANGES],
            lambda X: X.select_dtypes("number").columns,
            lambda X: [X[name].dtype.kind in "if" for name in X],
        ],
    )
    def test_a_function_of_names_and_types_chooses_among_what_is_declared(self, table, function):
        for types in (None, table[0].astype(dict.fromkeys(LABELS, object)).dtypes):
            pipe = convert(("numbers", NUMBERS, function), labels(), categories=LABELS, types=types)
            assert pipe.steps[0][1].blocks[0].columns == ["age", "dose"]
        assert "chose among the columns that are declared" in str(
            convert(("numbers", NUMBERS, function), labels(), categories=LABELS).conversion
        )

    @pytest.mark.parametrize(
        "function",
        [
            lambda X: list(X.columns[X.nunique() > 5]),
            lambda X: X.columns[X.isna().any()],
            lambda X: list(X.columns[X.min() > 10]),
            lambda X: X.columns[[X[name].max() == 0 for name in X]],
            lambda X: X.iloc[0],
        ],
    )
    def test_a_function_that_looks_at_cells_is_refused_in_any_case(self, table, function):
        for types in (None, table[0].dtypes):
            with pytest.raises(InvalidParameter, match="chosen by a function"):
                convert(("numbers", NUMBERS, function), types=types)

    def test_a_function_that_goes_by_an_order_or_a_type_that_nobody_knows_is_refused(self, table):
        for function in (lambda X: slice(0, 1), lambda X: X.dtypes == "int64"):
            with pytest.raises(InvalidParameter, match="chosen by a function"):
                convert(("numbers", NUMBERS, function), labels(), categories=LABELS)
            types = {"age": "int64", "dose": float, **dict.fromkeys(LABELS, object)}
            pipe = convert(("numbers", NUMBERS, function), labels(), categories=LABELS, types=types)
            assert pipe.steps[0][1].blocks[0].columns == ["age"]

    @pytest.mark.parametrize("numbers", [[0, 1], slice(0, 2), [True, True, False]])
    def test_types_tell_who_stands_at_a_position(self, table, numbers):
        X = table[0][["age", "dose", "sex"]]
        sex = ("labels", OneHotEncoder(), [False, False, True])
        pipe = convert(("numbers", NUMBERS, numbers), sex, categories={"sex": LABELS["sex"]}, types=X.dtypes)
        assert [block.columns for block in pipe.steps[0][1].blocks] == [["age", "dose"], ["sex"]]

    @pytest.mark.parametrize("odd", [5, "x", {"age": "no type"}, ["age"]])
    def test_what_are_no_types(self, odd):
        with pytest.raises(InvalidParameter, match="types must be"):
            convert(self.SELECTED, types=odd)
