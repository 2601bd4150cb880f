"""What was released, in the units of the table: names, raw values, standard errors; never a wrong unit."""

import pickle

import numpy as np
import pandas as pd
import pytest

from ppdp import Domain, load, make_pipeline
from ppdp import mechanisms as M
from ppdp import transformers as S
from ppdp.data.rows import Rows
from ppdp.data.unit_conversion import Answers, Columns
from ppdp.privacy.noise.sampler import Noise
from ppdp.transformers.columns.column_map import ColumnMap

RANGES = {"age": (0, 100), "income": (-50_000, 150_000)}
NAMES = tuple(RANGES)


def people(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"age": rng.uniform(20, 80, n), "income": rng.uniform(0, 100_000, n)})


def released(*steps, X=None, y=None, epsilon=1.0, seed=0, **parameters):
    pipe = make_pipeline(S.MinMaxScaler(ranges=RANGES), *steps, epsilon=epsilon, random_state=seed, **parameters)
    return pipe.fit(people() if X is None else X, y)


def told(*steps, statistic, **parameters):
    frame = released(*steps, **parameters).release_.to_pandas()
    found = frame[frame.statistic == statistic]
    return found[found.step == found.step.iloc[-1]].set_index("column")


def near(found, exact, width=5):
    errors = (found.raw_value - exact) / found.raw_standard_error
    assert (errors.abs() < width).all(), errors


class TestRawValuesAgreeWithExactOnes:
    @pytest.mark.parametrize("middle", [[], [S.StandardScaler(fit_mode="noisy")], [S.Deduplicator()]])
    @pytest.mark.parametrize("kind", [M.GaussianMechanism, M.LaplaceMechanism])
    @pytest.mark.repeated("kind")
    def test_means(self, kind, middle):
        for seed in range(3):
            near(told(*middle, kind(), statistic="mean", seed=seed), people().mean())

    def test_sums_where_everybody_is_there(self):
        near(told(M.GaussianMechanism("sum"), statistic="sum"), people().sum())

    def test_a_sum_of_an_unknown_number_of_rows_has_no_raw_value(self):
        found = told(S.Deduplicator(), M.GaussianMechanism("sum"), statistic="sum").loc["age"]
        assert np.isnan(found.raw_value)
        assert np.isnan(found.raw_standard_error)
        assert "how many rows" in found.note

    def test_covariances(self):
        exact = people().cov(ddof=0)
        found = told(M.GaussianMechanism("covariance"), statistic="covariance")
        near(found, pd.Series([exact.age.age, exact.age.income, exact.income.income], found.index))

    def test_counts(self):
        found = released(S.Deduplicator(), M.GaussianMechanism("count")).release_.to_pandas().loc[0]
        assert abs(found.raw_value - 4000) < 5 * found.raw_standard_error

    @pytest.mark.parametrize("kind", [M.GaussianMechanism, M.LaplaceMechanism])
    def test_histograms_have_cells_in_raw_units(self, kind):
        frame = released(kind("histogram", bins={"income": 4})).release_.to_pandas()
        np.testing.assert_allclose(frame.raw_low, [-50_000, 0, 50_000, 100_000], rtol=1e-6)
        np.testing.assert_allclose(frame.raw_high, [0, 50_000, 100_000, 150_000], rtol=1e-6, atol=1e-3)
        exact = np.histogram(people().income, [-50_000, 0, 50_000, 100_000, 150_000])[0]
        assert (np.abs(frame.raw_value - exact) < 6 * frame.raw_standard_error).all()

    def test_a_histogram_of_a_column_that_runs_backwards(self):
        here = Columns.raw(("x",)).scaled([-2.0], [1.0])
        query = M.GaussianMechanism("histogram", noise_scale=1.0)
        query.histogram_, grid = [np.ones(2)], {"columns": [0], "sizes": [3], "edges": [-1.0, 0.0, 1.0]}
        (found,) = query.answers(here, Domain(n_rows=10, n_features=1), query_of(grid))
        np.testing.assert_allclose(found.cells[2:], [[1.0, -1.0], [3.0, 1.0]])

    def test_quantiles_say_by_how_many_rows_they_miss(self):
        found = told(M.ExponentialMechanism(), statistic="quantile 0.5")
        assert np.abs(found.raw_value / people().median() - 1).max() < 0.2
        assert found.raw_standard_error.isna().all()
        assert found.note.str.contains("rows more than the best candidate's in 95 % of runs").all()

    def test_statistics_that_stages_were_fitted_from(self):
        frame = released(S.StandardScaler(fit_mode="noisy"), M.GaussianMechanism()).release_.to_pandas()
        frame = frame[frame.step == "standardscaler"].set_index("column")
        near(frame[frame.statistic == "mean"], people().mean())
        near(frame[frame.statistic == "standard deviation"], people().std(ddof=0))

    def test_means_that_fill_gaps(self):
        X = people(20_000)
        X.loc[::10, "age"] = np.nan
        found = told(
            S.MeanImputer(fit_mode="noisy", max_missing=2000),
            M.GaussianMechanism(),
            X=X,
            statistic="mean of observed values",
        )
        near(found, X.mean())
        mean = told(S.MeanImputer(fit_mode="noisy", max_missing=2000), M.GaussianMechanism(), X=X, statistic="mean")
        assert mean.note.str.contains("missing values filled, error as if .* were missing").all()


def query_of(parameters):
    return type("Asked", (), {"parameters": parameters})()


class TestCoefficients:
    def test_raw_ones_predict_from_the_raw_table(self):
        X, mild = people(), np.random.default_rng(1).normal(0, 5, 4000)
        y = X.age / 2 + X.income / 5000 + mild
        for model in (M.LinearRegression(y_range=(0, 80)), M.Ridge(y_range=(0, 80), solver="output", alpha=4.0)):
            pipe = released(S.StandardScaler(fit_mode="noisy", clip=None), model, X=X, y=y, epsilon=10.0)
            frame = pipe.release_.to_pandas()
            raw = frame[frame.statistic == "coefficient"].set_index("column").raw_value
            intercept = frame[frame.statistic == "intercept"].raw_value.item()
            np.testing.assert_allclose(X @ raw + intercept, pipe.predict(X), rtol=1e-9)

    def test_noise_on_the_model_itself_has_a_standard_error(self):
        X = people()
        y = (X.age > 50).astype(int)
        frame = released(M.LogisticRegression((0, 1), solver="output"), X=X, y=y).release_.to_pandas()
        assert (frame.standard_error == frame.standard_error[0]).all()
        np.testing.assert_allclose(frame.raw_standard_error[:2], frame.standard_error[0] / np.array([50, 100_000]))
        shift = np.array([50 / 50, 50_000 / 100_000])
        np.testing.assert_allclose(
            frame.raw_standard_error[2], frame.standard_error[0] * np.sqrt(1 + (shift**2).sum()), rtol=1e-6
        )

    def test_noise_of_training_has_none_and_says_so(self):
        X = people()
        y = np.where(X.age < 40, "a", np.where(X.age < 60, "b", "c"))
        frame = released(M.LogisticRegression(("a", "b", "c")), X=X, y=y).release_.to_pandas()
        assert list(frame.statistic[:3]) == ["coefficient of a", "coefficient of a", "intercept of a"]
        assert frame.standard_error.isna().all()
        assert frame.note.str.contains("noise of training").all()


class TestStandardErrors:
    """Of the noise: two of them cover about 95 % of draws, straight at the mechanism."""

    @pytest.mark.parametrize(
        ("kind", "query", "absent"),
        [
            *((kind, "mean", absent) for kind in (M.GaussianMechanism, M.LaplaceMechanism) for absent in (0, 300)),
            *(
                (kind, query, 300)
                for kind in (M.GaussianMechanism, M.LaplaceMechanism)
                for query in ("count", "histogram")
            ),
            *((M.GaussianMechanism, "covariance", absent) for absent in (0, 300)),
        ],
    )
    @pytest.mark.repeated("absent")
    def test_coverage(self, kind, query, absent):
        rng, n = np.random.default_rng(3), 1000
        weight = (np.arange(n) >= absent).astype(float)
        X = rng.uniform(-0.8, 0.8, (n, 3)) + np.array([0.1, 0.0, -0.1])
        rows = Rows(X * weight[:, None], None, weight)
        domain = Domain(n_rows=n, n_features=3, row_norm=1.7, entry_bound=1.0, min_present=n - absent)
        mechanism = kind(query, noise_scale=2.0 if query in ("count", "histogram") else 0.002, bins=3)
        columns = Columns.raw(("a", "b", "c")).scaled([2.0, -3.0, 10.0], [7.0, 0.0, -1.0])
        question = mechanism.query_spec(domain)

        def read(answer):
            mechanism.read({"answer": answer}, domain, question)
            found = mechanism.answers(columns, domain, question)
            return (np.concatenate([getattr(one, name) for one in found]) for name in ("raw", "raw_error"))

        exact, _ = read(mechanism.answer(rows, question))
        noise, scale = Noise(0), mechanism.noise_scale
        draws = [read(mechanism.release(rows, question, noise, scale)["answer"]) for _ in range(300)]
        apart = np.array([(raw - exact) / error for raw, error in draws])
        share = 1 - np.exp(-2 * np.sqrt(2)) if kind is M.LaplaceMechanism else 0.9545
        assert abs((np.abs(apart) <= 2).mean() - share) <= 4 * np.sqrt(0.05 / apart.size)
        assert abs(apart.std() - 1) <= 6 / np.sqrt(apart.size)


class TestNeverAWrongUnit:
    @pytest.mark.parametrize(
        ("stage", "why"),
        [
            (S.StandardScaler(fit_mode="exact"), "fitted without noise"),
            (S.PCA(1, fit_mode="noisy"), "no scale and shift"),
            (S.RowMap(np.tanh, out_ranges=(-1, 1)), "no scale and shift"),
        ],
    )
    def test_no_way_back_leaves_raw_units_blank(self, stage, why):
        for behind in ([], [S.NormClipper(1.0)]):
            found = told(stage, *behind, M.GaussianMechanism(), statistic="mean")
            assert found.value.notna().all()
            assert found.raw_value.isna().all()
            assert found.note.str.contains(why).all()

    @pytest.mark.parametrize(
        ("stage", "of"),
        [
            (S.NormClipper(1.0), "rows clipped to norm 1"),
            (S.GridQuantizer(cell_width=0.1), "rounded to cells"),
            (S.RowMap(out_ranges=(-0.5, 0.5)), "clipped to [25, 75]"),
            (S.Deduplicator(), "duplicates count less"),
        ],
    )
    def test_of_which_values_it_is_stands_beside_it(self, stage, of):
        note = told(stage, M.GaussianMechanism(), statistic="mean").note["age"]
        assert note.startswith("clipped to [0, 100]; ")
        assert of in note

    def test_the_same_range_twice_is_told_once(self):
        assert (
            told(S.RowMap(out_ranges=(-1, 1)), M.GaussianMechanism(), statistic="mean").note["age"]
            == "clipped to [0, 100]"
        )

    def test_a_declared_norm_is_told(self):
        pipe = make_pipeline(M.GaussianMechanism(), domain=Domain(row_norm=2.0, entry_bound=1.5)).fit(
            np.zeros((100, 2))
        )
        assert pipe.release_.to_pandas().note[0] == "clipped to ±1.5; rows clipped to norm 2"

    def test_columns_of_categories_are_shares(self):
        from sklearn.compose import ColumnTransformer
        from sklearn.preprocessing import MinMaxScaler as Theirs
        from sklearn.preprocessing import OneHotEncoder

        import ppdp

        X = pd.DataFrame({"age": np.linspace(0, 100, 500), "sex": ["f", "m", "m", "m", "m"] * 100})
        table = ColumnTransformer([("n", Theirs(), ["age"]), ("c", OneHotEncoder(categories=[["f", "m"]]), ["sex"])])
        made = ppdp.Pipeline.from_sklearn(table, ranges={"age": (0, 100)})
        steps = [*made.steps, ("mean", M.GaussianMechanism())]
        frame = ppdp.Pipeline(steps, epsilon=20.0, random_state=0).fit(X).release_.to_pandas().set_index("column")
        near(frame, pd.Series({"n__age": 50.0, "c__sex_f": 0.2, "c__sex_m": 0.8}))
        assert frame.note["c__sex_f"].startswith("1 for this category")

    def test_what_has_no_column_is_shown_as_it_is(self):
        frame = released(S.PCA(1, with_mean=False, fit_mode="noisy")).release_.to_pandas()
        assert frame.raw_value.isna().all()
        assert frame.value.notna().all()

    def test_released_rows_are_a_table_like_the_one_that_came_in(self):
        assert list(released(M.SignMechanism()).release_.to_pandas().columns) == list(NAMES)


class TestColumns:
    def test_maps_one_behind_the_other(self):
        raw = Columns.raw(("x",))
        behind = raw.scaled([2.0], [10.0]).scaled([3.0], [1.0])  # value -> 1 + 3 value -> 10 + 2 (1 + 3 value)
        np.testing.assert_allclose(behind.value(np.array([1.0])), [18.0])

    def test_what_is_lost_stays_lost(self):
        lost = Columns.lost(("x",), "why").scaled([2.0], [0.0]).noted("more").clipped(0, 1)
        assert np.isnan(lost.slope).all()
        assert lost.notes == ("why",)

    def test_a_robust_scaler_is_undone(self):
        X = people(500).to_numpy()
        stage = S.RobustScaler(min_width=0.001, clip=50.0).fit(X)
        here = stage.units(Columns.raw(NAMES))
        scaled = stage.transform(X)
        np.testing.assert_allclose(np.array([here.value(row) for row in scaled[:9]]), X[:9])

    def test_numbers_of_their_own(self):
        one = Answers.plain("count", 3.0, 1.0)
        assert (one.raw, one.raw_error) == ([3.0], [1.0])


class TestShown:
    def test_a_notebook_has_the_table_of_the_release_and_of_the_pipeline(self):
        pipe = released(M.GaussianMechanism())
        page = pipe.release_._repr_html_()
        assert "age" in page
        assert "clipped to [0, 100]" in page
        assert page in pipe._repr_html_()

    def test_long_tables_are_cut(self):
        page = released(M.GaussianMechanism("histogram", bins=200)).release_._repr_html_()
        assert "the first 24 of 400 numbers" in page

    def test_names_are_shown_as_text(self):
        X = pd.DataFrame({"<b>": np.zeros(100)})
        pipe = make_pipeline(S.MinMaxScaler(ranges={"<b>": (0, 1)}), M.GaussianMechanism()).fit(X)
        assert "<b>" not in pipe.release_._repr_html_()

    def test_copies_and_exports_tell_the_same(self, tmp_path):
        X = people()
        pipe = make_pipeline(S.MinMaxScaler(ranges=RANGES), S.StandardScaler(), M.GaussianMechanism(), epsilon=1.0).fit(
            X
        )
        pipe.export(tmp_path / "out.zip")
        for other in (pickle.loads(pickle.dumps(pipe)), load(tmp_path / "out.zip")):
            pd.testing.assert_frame_equal(other.release_.to_pandas(), pipe.release_.to_pandas())

    def test_column_map_alone(self):
        pipe = make_pipeline(ColumnMap(ranges=(0, 10)), M.GaussianMechanism(), random_state=0)
        near(pipe.fit(np.full((2000, 2), 5.0)).release_.to_pandas(), 5.0)
