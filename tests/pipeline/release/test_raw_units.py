"""What users write and read is in the units of their table: edges, candidates, dates, categories, coefficients."""

import datetime

import numpy as np
import pandas as pd
import pytest

from ppdp import Domain, Pipeline, declare, load, make_column_map, make_pipeline
from ppdp import transformers as S
from ppdp.exceptions import InvalidParameter
from ppdp.mechanisms import ExponentialMechanism, GaussianMechanism, LaplaceMechanism, LogisticRegression, Ridge

N = 3000
FIRST, LAST = "1950-01-01", "2010-01-01"


def people():
    rng = np.random.default_rng(0)
    born = pd.Timestamp(FIRST) + pd.to_timedelta(rng.integers(0, 20_000, N), unit="D")
    town = rng.choice(["A", "B", "C"], N, p=[0.5, 0.3, 0.2])
    return pd.DataFrame({"age": rng.uniform(18, 80, N), "sex": rng.choice(["F", "M"], N), "born": born, "town": town})


PEOPLE = people()
AGES = PEOPLE[["age"]]
ONE = Domain(n_rows=N, n_features=1, feature_names=("age",))
SCALE = S.MinMaxScaler(ranges={"age": (18, 80)})


def declared(**facts):
    made = declare(PEOPLE)
    made.update({"age": (18, 80), "sex": ["F", "M"], "born": [FIRST, LAST], "town": "drop"} | facts)
    return made.steps()


def released(steps, last, X=PEOPLE, y=None, epsilon=2.0):
    return Pipeline([*steps, ("last", last)], epsilon=epsilon, random_state=0).fit(X, y)


def table(steps, last, X=PEOPLE, y=None, epsilon=2.0):
    frame = released(steps, last, X, y, epsilon).release_.to_pandas()
    return frame[frame.step == "last"].reset_index(drop=True)


def scaled(*more):
    return [("scale", SCALE), *((f"more{i}", stage) for i, stage in enumerate(more))]


def within(frame, exact, width=6):
    assert ((frame.raw_value - np.asarray(exact)).abs() < width * frame.raw_standard_error).all(), frame


class TestWhatIsWritten:
    @pytest.mark.parametrize("kind", [GaussianMechanism, LaplaceMechanism])
    @pytest.mark.parametrize(
        "more",
        [
            [],
            [S.Deduplicator()],
            [S.GridQuantizer(cell_width=1e-6)],
            [S.MinMaxScaler(ranges=(-1, 1), feature_range=(0, 1))],
        ],
        ids=lambda more: "-".join(type(stage).__name__ for stage in more),
    )
    @pytest.mark.repeated("kind")
    def test_edges_are_raw(self, kind, more):
        frame = table(scaled(*more), kind("histogram", bins=[20, 30, 40]), AGES)
        assert list(frame.raw_low) == [20.0, 30.0]
        assert list(frame.raw_high) == [30.0, 40.0]
        within(frame, [(PEOPLE.age < 30).sum(), (PEOPLE.age >= 30).sum()])

    def test_they_are_raw_behind_an_imputer_and_a_scaler_that_runs_backwards(self):
        steps = [("scale", S.MinMaxScaler({"age": (18, 80)}, feature_range=(-1, 1))), ("fill", S.MeanImputer())]
        assert list(table(steps, GaussianMechanism("histogram", bins=[20, 30, 40]), AGES).raw_low) == [20.0, 30.0]

    @pytest.mark.parametrize(
        "candidates", [range(18, 81), list(range(18, 81)), {"age": np.arange(18.0, 81.0)}, {0: 63}]
    )
    def test_candidates_are_raw(self, candidates):
        median = table(scaled(), ExponentialMechanism(candidates=candidates), AGES).raw_value.item()
        assert median == pytest.approx(PEOPLE.age.median(), abs=2)
        assert median == round(median)

    def test_behind_a_declaration_each_column_has_its_units(self):
        bins = {"age": [18, 30, 50, 80], "born": [FIRST, datetime.date(1980, 1, 1), pd.Timestamp(LAST)]}
        frame = table(declared(), GaussianMechanism("histogram", bins=bins))
        assert list(frame.raw_low[:3]) == [18.0, 30.0, 50.0]
        assert list(frame.date_low[3:]) == [FIRST, "1980-01-01"]
        born = (PEOPLE.born < "1980-01-01").sum()
        within(frame, [*np.histogram(PEOPLE.age, [18, 30, 50, 80])[0], born, N - born])

    def test_behind_a_public_range_beside_one_that_is_released(self):
        steps = declared(age="private")
        frame = table(steps, GaussianMechanism("histogram", bins={"born": [FIRST, "1980-01-01", LAST]}))
        assert list(frame.date_low) == [FIRST, "1980-01-01"]
        with pytest.raises(InvalidParameter, match="outside the public range of 'age', -1 to 1, in the units of this"):
            table(steps, GaussianMechanism("histogram", bins={"age": [20, 30, 40]}))

    def test_a_number_of_cells_divides_the_public_range_of_each_column(self):
        steps = [("scale", make_column_map((S.MinMaxScaler((0, 100), feature_range=(0, 1)), ["age"])))]
        frame = table(steps, GaussianMechanism("histogram", bins=4))
        np.testing.assert_allclose(frame.raw_low, [0, 25, 50, 75])
        assert table(steps, ExponentialMechanism(candidates=101)).raw_value.item() in range(101)

    @pytest.mark.parametrize(
        ("last", "low", "high"),
        [
            (GaussianMechanism("histogram", bins=[-1, 0, 1]), 18, 80),
            (LaplaceMechanism("histogram", bins=[0, 50_000, 100_000]), 18, 80),
            (GaussianMechanism("histogram", bins=[0, 10]), 18, 80),
            (ExponentialMechanism(candidates=[200, 300]), 18, 80),
            (ExponentialMechanism(candidates={"age": [20, 30, 400]}), 18, 80),
        ],
    )
    def test_what_no_row_can_reach_is_refused_before_any_row_is_seen(self, last, low, high):
        pipe = Pipeline([("scale", SCALE), ("last", last)], epsilon=1.0)
        with pytest.raises(InvalidParameter, match=f"outside the public range of 'age', {low} to {high}"):
            pipe.plan(ONE)

    @pytest.mark.parametrize(
        "last", [ExponentialMechanism(candidates=range(18, 81)), GaussianMechanism("histogram", bins=[18, 40, 80])]
    )
    def test_numbers_for_one_column_are_none_for_another(self, last):
        steps = [("scale", S.MinMaxScaler(ranges={"age": (18, 80), "income": (0, 100_000)}))]
        X = AGES.assign(income=1000.0 * AGES["age"])
        with pytest.raises(InvalidParameter, match="next to nothing of the public range of 'income'"):
            table(steps, last, X)
        table([("scale", S.MinMaxScaler(ranges=(0, 100)))], last, X)
        table([("scale", S.MinMaxScaler(ranges=(18, 500)))], last, X)

    def test_outer_edges_may_lie_beyond(self):
        frame = table(scaled(), GaussianMechanism("histogram", bins=[0, 30, 50, 120]), AGES)
        within(frame, np.histogram(PEOPLE.age, [0, 30, 50, 120])[0])

    @pytest.mark.parametrize(
        "stage",
        [S.StandardScaler(), S.PCA(1), S.RowMap(np.tanh, out_ranges=(-1, 1)), S.MinMaxScaler(quantiles=(0.1, 0.9))],
    )
    def test_behind_no_public_scale_they_are_those_of_the_step(self, stage):
        slip = Pipeline([*scaled(stage), ("last", GaussianMechanism("histogram", bins=[20, 30, 40]))], epsilon=5.0)
        with pytest.raises(InvalidParameter, match="in the units of this step"):
            slip.plan(ONE)
        table(scaled(stage), GaussianMechanism("histogram", bins=[-0.5, 0.0, 0.5]), AGES, epsilon=5.0)

    def test_a_clip_narrows_the_public_range(self):
        with pytest.raises(InvalidParameter, match=r"33\.5 to 64\.5"):
            table(scaled(S.NormClipper(0.5)), GaussianMechanism("histogram", bins=[20, 30, 40]), AGES)

    @pytest.mark.parametrize(
        "stage",
        [
            S.MinMaxScaler({"age": (18, 80)}),
            S.MinMaxScaler({"age": (0, 120)}),
            S.RowMap(out_ranges={"age": (18, 80)}),
            S.GridQuantizer(cell_width=5.0),
            S.GridDeduplicator(cell_width=5.0),
        ],
        ids=lambda stage: type(stage).__name__,
    )
    def test_stages_behind_a_scale_refuse_units_of_the_table(self, stage):
        with pytest.raises(InvalidParameter, match="units of the rows"):
            make_pipeline(SCALE, stage, GaussianMechanism()).plan(
                Domain(n_rows=N, n_features=1, feature_names=("age",))
            )

    def test_the_certificate_has_both_and_an_export_brings_them_back(self, tmp_path):
        bins = {"age": [20, 30, 40], "born": [pd.Timestamp(FIRST), np.datetime64("1980-01-01"), LAST]}
        pipe = Pipeline([*declared(), ("last", GaussianMechanism("histogram", bins=bins))], epsilon=1.0).fit(PEOPLE)
        assert pipe.certificate_.verify()
        assert "bins of age = 20, 30, 40 (declared" in pipe.certificate_.to_text(full=True)
        edges = pipe.certificate_.record.mechanism.parameters["edges"]
        np.testing.assert_allclose(edges[:3], (np.array([20, 30, 40]) - 49) / 31)
        pipe.export(tmp_path / "out.zip")
        pd.testing.assert_frame_equal(load(tmp_path / "out.zip").release_.to_pandas(), pipe.release_.to_pandas())


class TestWhatIsRead:
    def test_means_behind_a_declaration(self):
        frame = table(declared(), GaussianMechanism()).set_index("column")
        within(frame.loc[["age"]], PEOPLE.age.mean())
        within(frame.loc[["sex_F"]], (PEOPLE.sex == "F").mean())
        assert frame.category["sex_F"] == "F"
        days = (PEOPLE.born - pd.Timestamp("1970-01-01")).dt.days.mean()
        within(frame.loc[["born"]], days)
        assert abs(pd.Timestamp(frame.date["born"]) - PEOPLE.born.mean()) < pd.Timedelta(days=6 * 60)
        assert "days since 1970-01-01" in frame.note["born"]

    def test_sums_of_columns_of_categories_are_counts_by_name(self):
        for first in (S.CategoryEncoder({"town": ["A", "B"]}), S.CategoryEncoder("private", max_categories=4)):
            steps = [("code", make_column_map((first, ["town"])))]
            counts = table(steps, GaussianMechanism("sum")).set_index("category")
            within(counts.loc[["A", "B"]], PEOPLE.town.value_counts()[["A", "B"]])

    @pytest.mark.parametrize(
        ("encoder", "names"),
        [
            (S.CategoryEncoder({"town": ["A", "B", "C"]}, encoding="ordinal"), ["missing", "A", "B", "C", "other"]),
            (S.CategoryEncoder({"town": ["A", "B"]}, encoding="ordinal", other=None), ["none of these", "A", "B"]),
            (
                S.CategoryEncoder({"town": ["A", "B"]}, encoding="ordinal", add_indicator=True),
                ["A", "B", "other", "missing"],
            ),
            (
                S.CategoryEncoder("private", encoding="ordinal", max_categories=4),
                ["missing", "A", "B", "C", "", "other"],
            ),
        ],
    )
    def test_a_histogram_of_codes_has_a_cell_for_every_category(self, encoder, names):
        frame = table([("code", encoder)], GaussianMechanism("histogram"), PEOPLE[["town"]])
        assert list(frame.category) == names
        known = frame[frame.category.isin(["A", "B"])]
        within(known, [(PEOPLE.town == name).sum() for name in known.category])

    def test_explicit_edges_name_all_categories_of_a_cell(self):
        coded = S.CategoryEncoder({"town": ["A", "B", "C"]}, encoding="ordinal", add_indicator=True, other=None)
        frame = table([("code", coded)], GaussianMechanism("histogram", bins=[-0.5, 1.5, 3.5]), PEOPLE[["town"]])
        assert list(frame.category) == ["another, A, B", "C, missing"]

    def test_a_category_that_became_columns_is_counted_by_its_name(self):
        frame = table(declared(), GaussianMechanism("histogram", bins={"sex": 3, "age": [20, 40, 60]}))
        assert list(frame.category) == ["", "", "not F", "F", "not M", "M", "not other", "other"]
        counts = frame.set_index("category").loc[["F", "M", "other"]]
        within(counts, [(PEOPLE.sex == "F").sum(), (PEOPLE.sex == "M").sum(), 0])
        with pytest.raises(InvalidParameter, match="twice"):
            table(declared(), GaussianMechanism("histogram", bins={"sex": 3, "sex_F": 3}))
        with pytest.raises(InvalidParameter, match="'town', which is not there"):
            table(declared(), GaussianMechanism("histogram", bins={"town": 3}))

    def test_a_histogram_of_a_column_of_zeros_and_ones_has_two_cells(self):
        frame = table(declared(), GaussianMechanism("histogram", bins={"sex_F": 10}))
        assert list(frame.category) == ["not F", "F"]
        within(frame, [(PEOPLE.sex != "F").sum(), (PEOPLE.sex == "F").sum()])

    def test_coefficients_and_intercept_predict_from_the_raw_table(self):
        y = (PEOPLE.age + 5 * (PEOPLE.sex == "F")).to_numpy()
        pipe = released(declared(), Ridge(y_range=(0, 100)), y=y, epsilon=20.0)
        frame = pipe.release_.to_pandas()
        raw = frame[frame.statistic == "coefficient"].set_index("column").raw_value
        days = (PEOPLE.born - pd.Timestamp("1970-01-01")).dt.days
        score = PEOPLE.age * raw["age"] + days * raw["born"] + (PEOPLE.sex == "F") * raw["sex_F"]
        score += (PEOPLE.sex == "M") * raw["sex_M"] + frame[frame.statistic == "intercept"].raw_value.item()
        np.testing.assert_allclose(score, pipe.predict(PEOPLE), rtol=1e-9)
        assert frame.category.tolist() == ["", "F", "M", "other", "", ""]

    def test_nothing_of_a_declaration_is_without_units(self):
        y = np.where(PEOPLE.age > 50, "old", "young")
        for last in (GaussianMechanism("covariance"), ExponentialMechanism(), LogisticRegression(("old", "young"))):
            assert table(declared(), last, y=y).raw_value.notna().all()

    @pytest.mark.parametrize(
        ("stage", "statistic"),
        [
            (S.StandardScaler(fit_mode="noisy"), "standard deviation"),
            (S.RobustScaler(fit_mode="noisy"), "quantile 0.5"),
            (S.RobustScaler(fit_mode="exact"), "median"),
            (S.MinMaxScaler(quantiles=(0.05, 0.95), fit_mode="noisy"), "quantile 0.05"),
        ],
    )
    def test_scalers_that_leave_categories_as_they_are(self, stage, statistic):
        steps, y = [*declared(), ("more", stage)], (PEOPLE.age > 50).astype(int)
        frame = released(steps, LogisticRegression((0, 1)), y=y, epsilon=20.0).release_.to_pandas()
        assert list(frame.column[frame.statistic == statistic]) == ["age", "born"]
        coefficients = frame[frame.statistic == "coefficient"].set_index("column").raw_value
        assert coefficients[["sex_F", "sex_M", "sex_other"]].notna().all()
        assert coefficients[["age", "born"]].isna().all() == (stage.fit_mode == "exact")
        frame = table(steps, GaussianMechanism("histogram", bins={"sex_F": 2}), epsilon=20.0)
        assert list(frame.category) == ["not F", "F"]

    def test_a_notebook_has_categories_and_dates(self):
        codes = S.CategoryEncoder({"town": ["A", "B"]}, encoding="ordinal")
        page = released([("code", codes)], GaussianMechanism("histogram"), PEOPLE[["town"]]).release_._repr_html_()
        assert "town = A" in page
        page = released(declared(), GaussianMechanism("histogram", bins={"born": [FIRST, "1980-01-01", LAST]}))
        assert "1980-01-01" in page.release_._repr_html_()

    def test_encoders_alone_have_units(self):
        frame = table([("date", S.DateEncoder({"born": (FIRST, LAST)}))], GaussianMechanism(), PEOPLE[["born"]])
        assert abs(pd.Timestamp(frame.date.item()) - PEOPLE.born.mean()) < pd.Timedelta(days=300)

    def test_codes_keep_their_names_in_front_of_mean_labels(self):
        steps = [("code", S.CategoryEncoder({"town": ["A", "B"]}, encoding="ordinal")), ("mean", S.TargetMeanEncoder())]
        y = (PEOPLE.age > 50).astype(int)
        frame = released(steps, LogisticRegression((0, 1)), PEOPLE[["town"]], y).release_.to_pandas()
        assert {"town = A", "town = B", "town = other"} <= set(frame.column)
