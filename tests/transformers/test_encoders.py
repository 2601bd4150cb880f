"""Categories and dates become numbers by public rules, each cell by itself, whatever the container."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.utils import murmurhash3_32

import ppdp
from ppdp import Domain, Pipeline, load, make_column_map
from ppdp.exceptions import (
    DomainMismatch,
    ExportError,
    InvalidInput,
    InvalidParameter,
    MissingBound,
    NonNumericData,
    UnknownStage,
    UnsupportedOrder,
)
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.transformers import (
    CategoryEncoder,
    DateEncoder,
    FeatureHasher,
    HashingVectorizer,
    MeanImputer,
    MinMaxScaler,
    RowMap,
    StandardScaler,
)

WARDS = pd.DataFrame({"ward": ["A", "B", None, "Z"]})
DAY = 86_400.0


def mapped(stage, X):
    return stage.set_output(transform="pandas").fit_transform(X)


class TestCategories:
    @pytest.mark.parametrize(
        ("given", "names", "rows"),
        [
            ({}, ["ward_A", "ward_B", "ward_other"], [[1, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 1]]),
            ({"other": None}, ["ward_A", "ward_B"], [[1, 0], [0, 1], [0, 0], [0, 0]]),
            ({"other": "B"}, ["ward_A", "ward_B"], [[1, 0], [0, 1], [0, 0], [0, 1]]),
            (
                {"other": None, "add_indicator": True},
                ["ward_A", "ward_B", "ward_missing"],
                [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]],
            ),
            ({"encoding": "ordinal"}, ["ward"], [[0], [1], [-1], [2]]),
            ({"encoding": "ordinal", "add_indicator": True}, ["ward"], [[0], [1], [3], [2]]),
            ({"encoding": "ordinal", "other": None}, ["ward"], [[0], [1], [-1], [-1]]),
        ],
    )
    def test_unknown_values_and_gaps_have_their_place(self, given, names, rows):
        out = mapped(CategoryEncoder({"ward": ["A", "B"]}, **given), WARDS)
        assert list(out) == names
        np.testing.assert_array_equal(out, rows)

    @pytest.mark.parametrize("categories", [{"ward": ["A", "B"]}, [["A", "B"]], ["A", "B"], np.array(["A", "B"])])
    def test_forms_of_the_same_declaration(self, categories):
        np.testing.assert_array_equal(CategoryEncoder(categories).fit_transform(WARDS)[:, 0], [1, 0, 0, 0])

    @pytest.mark.parametrize(("labels", "cells"), [([10, 20], [20, 30, np.nan]), ([False, True], [1, 5, np.nan])])
    def test_numbers_and_truth_values_are_labels_as_well(self, labels, cells):
        out = CategoryEncoder(labels, encoding="ordinal", add_indicator=True).fit_transform(np.array(cells)[:, None])
        assert out.ravel().tolist() == [1, 2, 3]

    def test_rows_stay_as_short_as_there_are_columns(self):
        stage = CategoryEncoder({"a": list("xyz"), "b": list("uv")}, add_indicator=True)
        domain = Domain(n_rows=10, n_features=2, feature_names=("a", "b"))
        facts, _ = stage.stability_map(domain, ppdp.Adjacency.replace().distance)
        assert facts.n_features == 9
        assert facts.row_norm == pytest.approx(np.sqrt(2))

    @pytest.mark.parametrize(
        ("categories", "kind"),
        [
            (None, MissingBound),
            ("private", MissingBound),
            ("AB", InvalidParameter),
            (5, InvalidParameter),
            ([], InvalidParameter),
            ([[]], InvalidParameter),
            (["A", "A"], InvalidParameter),
            (["A", None], InvalidParameter),
            ([1, "1"], InvalidParameter),
            ({"war": ["A"]}, DomainMismatch),
            ({"ward": ["A"], "bed": ["B"]}, DomainMismatch),
            ([["A"], ["B"]], InvalidParameter),
            ([f"c{i}" for i in range(1_000_000)], InvalidParameter),
        ],
    )
    def test_a_declaration_that_is_none(self, categories, kind):
        with pytest.raises(kind, match="CategoryEncoder"):
            CategoryEncoder(categories).fit(WARDS)

    @pytest.mark.parametrize(
        "given",
        [{"encoding": "target"}, {"other": 5}, {"other": "missing", "add_indicator": True}, {"add_indicator": 1}],
    )
    def test_other_parameters(self, given):
        with pytest.raises(InvalidParameter):
            CategoryEncoder(["A"], **given).fit(WARDS)

    @pytest.mark.parametrize(
        "column", [[1, 2], [True, False], pd.to_datetime(["2020-01-01"] * 2), pd.Categorical([1, 2])]
    )
    def test_a_type_that_holds_none_of_the_categories_is_refused_before_anything_is_spent(self, column):
        pipe = Pipeline([("wards", CategoryEncoder(["A", "B"])), ("mean", GaussianMechanism())])
        with ppdp.Ledger() as account, pytest.raises(NonNumericData, match="its declared categories are text"):
            pipe.fit(pd.DataFrame({"ward": column}))
        assert not account.entries()

    @pytest.mark.parametrize("step", [CategoryEncoder("private", max_categories=2), FeatureHasher(2)])
    def test_categories_that_are_dates_are_refused_as_dates_are(self, step):
        days = pa.array([dt.date(2020, 1, 1)] * 2).dictionary_encode()
        pipe = Pipeline([("days", make_column_map((step, ["day"]))), ("mean", GaussianMechanism())])
        with pytest.raises(NonNumericData, match="'day' holds date32"):
            pipe.fit(pa.table({"day": days}))

    @pytest.mark.parametrize("column", [pd.cut(range(9), 3), pd.Categorical(pd.period_range("2020", periods=9))])
    @pytest.mark.parametrize(
        "step",
        [
            CategoryEncoder("private", max_categories=2),
            DateEncoder(("1990-01-01", "2030-12-31")),
            FeatureHasher(2),
            HashingVectorizer(2),
        ],
    )
    def test_intervals_and_periods_are_refused_before_anything_is_spent(self, column, step):
        pipe = Pipeline([("bins", make_column_map((step, ["age"]))), ("mean", GaussianMechanism())])
        with ppdp.Ledger() as account, pytest.raises(NonNumericData, match=r"'age' holds (interval|period)"):
            pipe.set_params(on_invalid="repair").fit(pd.DataFrame({"age": column}))
        assert not account.entries()


class TestDates:
    @pytest.mark.parametrize(
        "cells",
        [
            pd.to_datetime(["1970-01-02", None]),
            pd.to_datetime(["1970-01-02T00:00Z", None]),
            pd.Series(pd.to_datetime(["1970-01-02T01:00+01:00", None])).dt.tz_convert("Europe/Berlin"),
            ["1970-01-02", None],
            ["1970-01-02T02:00+02:00", None],
            [dt.date(1970, 1, 2), None],
            [dt.datetime(1970, 1, 2, tzinfo=dt.UTC), pd.NaT],
            [1.0, np.nan],
            pd.arrays.ArrowExtensionArray(pa.array([dt.date(1970, 1, 2), None])),
            pd.arrays.ArrowExtensionArray(pa.array([dt.datetime(1970, 1, 2), None], pa.timestamp("ns", "Asia/Tokyo"))),
        ],
    )
    def test_every_form_of_a_date_is_units_since_the_epoch(self, cells):
        stage = DateEncoder(("1970-01-01", "1971-01-01"), feature_range=None)
        np.testing.assert_array_equal(stage.fit_transform(pd.DataFrame({"seen": cells})), [[1.0], [np.nan]])

    @pytest.mark.parametrize(("unit", "seconds"), [("hours", 3600), ("days", DAY), ("weeks", 7 * DAY)])
    def test_unit_epoch_and_format_are_public(self, unit, seconds):
        X = pd.DataFrame({"seen": ["31.12.2020"]})
        stage = DateEncoder(("2000-01-01", "2030-01-01"), unit, "2020-01-01", None, "%d.%m.%Y")
        assert stage.fit_transform(X).item() == pytest.approx(365 * DAY / seconds)

    def test_what_lies_outside_is_clipped(self):
        X = pd.DataFrame({"seen": pd.to_datetime(["1800-01-01", "2200-01-01"])})
        assert DateEncoder(("1900-01-01", "2000-01-01")).fit_transform(X).ravel().tolist() == [-1, 1]

    @pytest.mark.parametrize(
        "given",
        [
            {"ranges": None},
            {"ranges": "private"},
            {"ranges": ("1900", "2000-01-01")},
            {"ranges": ("2000-01-01", "1900-01-01")},
            {"ranges": (0, 1e300)},
            {"ranges": {"other": ("1900-01-01", "2000-01-01")}},
            {"ranges": (0, 1), "epoch": "long ago"},
            {"ranges": (0, 1), "unit": "months"},
            {"ranges": (0, 1), "format": 5},
        ],
    )
    def test_a_declaration_that_is_none(self, given):
        with pytest.raises((InvalidParameter, MissingBound, DomainMismatch)):
            DateEncoder(**given).fit(pd.DataFrame({"seen": ["1990-01-01"]}))

    @pytest.mark.parametrize("invalid", ["error", "repair"])
    def test_what_is_no_date_is_an_invalid_value(self, invalid):
        pipe = Pipeline([("seen", DateEncoder((0, 1))), ("mean", GaussianMechanism())], on_invalid=invalid, epsilon=1.0)
        X = pd.DataFrame({"seen": ["1970-01-01", "soon"] * 500})
        if invalid == "repair":
            assert pipe.fit(X).certificate_.verify()
            return
        with pytest.raises(InvalidInput) as caught:
            pipe.fit(X)
        assert "soon" not in str(caught.value)

    @pytest.mark.parametrize("column", [[True, False], pd.to_timedelta([1, 2]), [1j, 2j]])
    def test_a_type_that_holds_no_dates_is_refused_by_its_type(self, column):
        with pytest.raises(InvalidInput):
            Pipeline([("seen", DateEncoder((0, 1))), ("mean", GaussianMechanism())]).fit(pd.DataFrame({"seen": column}))


def patients(n=1500):
    """One column of every kind."""
    rng = np.random.default_rng(0)
    age = rng.integers(18, 90, n)
    X = pd.DataFrame(
        {
            "id": [f"p{i}" for i in range(n)],
            "age": pd.array(np.where(np.arange(n) % 9 == 0, None, age), dtype="Int64"),
            "smoker": pd.array(rng.choice([True, False], n), dtype="boolean"),
            "sex": rng.choice(["F", "M", None], n),
            "ward": pd.Categorical(rng.choice(["A", "B", "Z"], n)),
            "born": pd.to_datetime("2020-01-01") - pd.to_timedelta(age * 365, unit="D"),
            "seen": pd.Series(pd.date_range("2020-01-01", periods=n, freq="h", tz="Europe/Berlin")),
            "dose": rng.normal(5, 1, n),
        }
    )
    return X, (age > 50).astype(int)


def columns():
    return make_column_map(
        (MinMaxScaler(ranges={"age": (18, 90), "smoker": (0, 1)}), ["age", "smoker"]),
        (CategoryEncoder({"sex": ["F", "M"], "ward": ["A", "B"]}, add_indicator=True), ["sex", "ward"]),
        (DateEncoder({"born": ("1920-01-01", "2010-01-01"), "seen": ("2020-01-01", "2021-01-01")}), ["born", "seen"]),
        (RowMap(np.log1p, out_ranges=(0, 3)), "dose"),
    )


class TestColumnMap:
    def test_every_container_gives_the_same_rows(self):
        X, _ = patients()
        stage = columns()
        wanted = stage.fit_transform(X)
        assert list(stage.get_feature_names_out())[2:6] == ["sex_F", "sex_M", "sex_other", "sex_missing"]
        for table in (pa.Table.from_pandas(X), pl.from_pandas(X), X.convert_dtypes(dtype_backend="pyarrow")):
            np.testing.assert_array_equal(columns().fit_transform(table), wanted)

    def test_from_a_table_as_it_is_to_a_release_that_predicts(self):
        X, y = patients()
        model = LogisticRegression(classes=(0, 1))
        behind = [("gaps", MeanImputer()), ("scale", StandardScaler()), ("model", model)]
        pipe = Pipeline([("columns", columns()), *behind])
        assert pipe.plan(Domain(n_rows=len(X), feature_names=tuple(X.columns)))
        assert pipe.fit(X, y).certificate_.verify()
        assert pipe.certificate_.status == "UNCONDITIONAL"
        facts = {fact.name: fact.value for fact in pipe.certificate_.record.facts}
        assert facts["categories of sex"] == "F, M"
        assert facts["range of born"] == "1920-01-01 to 2010-01-01"
        assert pipe.score(X, y) > 0.9

    @pytest.mark.parametrize("column", [[5.0] * 400, [None] * 400, ["5", None, "x", 3] * 100])
    def test_one_value_all_missing_and_mixed_types_tell_nothing(self, column):
        X = pd.DataFrame({"x": pd.Series(column, dtype=object), "sex": pd.Series(column, dtype=object)})
        made = make_column_map((MinMaxScaler(ranges=(0, 9)), ["x"]), (CategoryEncoder(["F"]), ["sex"]))
        pipe = Pipeline(
            [("columns", made), ("gaps", MeanImputer()), ("mean", GaussianMechanism())], on_invalid="repair"
        )
        assert pipe.fit(X).certificate_.verify()

    def test_text_is_read_by_the_first_step_only(self):
        pipe = Pipeline([("range", MinMaxScaler(ranges=(0, 1))), ("sex", CategoryEncoder(["F", "M"]))])
        with pytest.raises(UnsupportedOrder, match="'sex'"):
            pipe.plan(Domain(n_rows=100, n_features=1))

    @pytest.mark.parametrize("bound", [{"row_norm": 1.0}, {"entry_bound": 1.0}])
    def test_bounds_of_numbers_do_not_cut_codes(self, bound):
        pipe = Pipeline([("sex", CategoryEncoder(["F", "M"])), ("mean", GaussianMechanism())], domain=Domain(**bound))
        with pytest.raises(InvalidParameter, match="bounds of numbers"):
            pipe.plan(Domain(n_rows=100, n_features=1))

    @pytest.mark.parametrize(
        ("parts", "kind"),
        [
            ([], InvalidParameter),
            ([MinMaxScaler(ranges=(0, 1))], InvalidParameter),
            ([(MinMaxScaler(ranges=(0, 1)), [])], InvalidParameter),
            ([(MinMaxScaler(ranges=(0, 1)), [True])], InvalidParameter),
            ([(MinMaxScaler(ranges=(0, 1)), lambda X: X)], InvalidParameter),
            ([(MinMaxScaler(), ["a"])], MissingBound),
            ([(MinMaxScaler(quantiles=(0.1, 0.9)), ["a"])], InvalidParameter),
            ([(MinMaxScaler(ranges={"b": (0, 1)}), ["a"])], DomainMismatch),
            ([(RowMap(np.log1p), ["a"])], MissingBound),
            ([(StandardScaler(), ["a"])], UnknownStage),
            ([(CategoryEncoder, ["a"])], UnknownStage),
            ([("passthrough", ["a"])], UnknownStage),
        ],
    )
    def test_parts_that_are_none(self, parts, kind):
        with pytest.raises(kind):
            make_column_map(*parts)


def test_categories_are_declared_once_for_each_column():
    values = CategoryEncoder({"a": [0, 1], "b": ["x"]}).declared(Domain(n_features=2, feature_names=("a", "b")))
    assert [name for name, *_ in values] == ["categories of a", "categories of b"]


class TestHashed:
    TABLE = pd.DataFrame({"zip": ["8001", 8001.0, "3011", None, "", "x" * 100], "sex": ["F", "M", "F", None, "M", "F"]})

    def test_a_cell_is_in_the_bucket_of_its_text_alone(self):
        stage = CategoryEncoder("hashed", max_categories=16, add_indicator=True)
        rows = stage.fit_transform(self.TABLE)
        assert rows.shape == (6, 34)
        assert (rows.sum(axis=1) == [2, 2, 2, 2, 2, 1]).all()  # a text that is too long is in no bucket
        for text, row in (("8001", rows[0]), ("3011", rows[2])):
            assert row[:16].argmax() == murmurhash3_32(text, positive=True) % 16
        assert np.array_equal(rows[0, :16], rows[1, :16])
        assert rows[3, [16, 33]].tolist() == [1, 1]
        assert np.array_equal(stage.transform(self.TABLE[::-1])[::-1], rows)
        assert stage.get_feature_names_out()[[0, 16]].tolist() == ["zip_0", "zip_missing"]

    def test_nothing_is_paid_for_it_and_it_leaves_with_the_model(self, tmp_path):
        draws = np.random.default_rng(0)
        table = pd.DataFrame({"zip": draws.choice([f"{i:04}" for i in range(300)], 3000)})
        y = (table["zip"] < "0030").astype(int)
        steps = [("zip", CategoryEncoder("hashed", max_categories=64)), ("model", LogisticRegression((0, 1)))]
        pipe = Pipeline(steps, epsilon=5.0, delta=1e-6, diagnostics=None).fit(table, y)
        assert not pipe.certificate_.record.releases
        assert pipe.certificate_.record.steps[0].domain["row_norm"] == pytest.approx(1.0)
        pipe.export(tmp_path / "model.zip")
        assert np.array_equal(load(tmp_path / "model.zip").predict(table), pipe.predict(table))
        with pytest.raises(ExportError):
            pipe.release_.to_sklearn()

    @pytest.mark.parametrize(
        ("given", "kind"),
        [
            ({}, MissingBound),
            ({"max_categories": 0}, InvalidParameter),
            ({"encoding": "ordinal", "max_categories": 8}, InvalidParameter),
        ],
    )
    def test_what_it_cannot_do(self, given, kind):
        with pytest.raises(kind):
            CategoryEncoder("hashed", **given).fit(self.TABLE)

    def test_dates_are_no_categories(self):
        with pytest.raises(NonNumericData, match="DateEncoder"):
            CategoryEncoder("hashed", max_categories=8).fit(pd.DataFrame({"seen": pd.to_datetime(["2001-01-01"])}))
