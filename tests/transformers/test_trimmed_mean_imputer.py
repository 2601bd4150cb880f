"""TrimmedMeanImputer: behaviour, errors that teach, and pipelines."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

from ppdp import Adjacency, Distance, Domain, make_pipeline
from ppdp.data.rows import Rows
from ppdp.exceptions import InvalidParameter, MissingBound, UnsupportedOrder
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.transformers import Deduplicator, MeanImputer, MedianImputer, MinMaxScaler, TrimmedMeanImputer

ONE = Adjacency.replace().distance

GAP = np.nan
N = 4000


def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (N, 2))
    y = (X[:, 0] > 0).astype(int)
    X[: N // 10, 1] = GAP
    return pd.DataFrame(X, columns=["a", "b"]), y


def pipeline(mechanism, *before, **parameters):
    stages = MinMaxScaler(ranges=(-1, 1)), *before, TrimmedMeanImputer(**parameters)
    return make_pipeline(*stages, mechanism, epsilon=2.0, delta=1e-5, random_state=0)


class TestValues:
    def test_full_columns_are_trimmed_by_a_count_that_min_observed_decides(self):
        X = np.random.default_rng(0).normal(size=(41, 3))
        X[-1] = GAP
        fitted = TrimmedMeanImputer(trim=0.2, min_observed=40).fit(X)
        np.testing.assert_allclose(fitted.mean_, stats.trim_mean(X[:-1], 0.2))
        half = TrimmedMeanImputer(trim=0.2, min_observed=20).fit(X)
        np.testing.assert_allclose(half.mean_, stats.trim_mean(X[:-1], 0.1))

    def test_without_trimming_it_is_the_mean_imputer(self):
        X, _ = data()
        np.testing.assert_allclose(TrimmedMeanImputer(trim=0.0).fit_transform(X), MeanImputer().fit_transform(X))

    def test_a_column_with_few_values_is_filled_up_with_zeros(self):
        X = np.array([[6.0], [5.0], [1.0], [GAP], [GAP], [GAP]])
        assert TrimmedMeanImputer(trim=0.2, min_observed=5).fit(X).mean_[0] == 2.0  # of 0, 0, 1, 5, 6

    def test_outliers_do_not_move_it(self):
        X = np.append(np.linspace(0, 1, 101), [1000.0, GAP])[:, None]
        assert abs(TrimmedMeanImputer(trim=0.1, min_observed=100).fit(X).mean_[0] - 0.5) < 0.01

    def test_deleted_rows_do_not_count(self):
        rows = Rows(np.array([[0.5], [0.6], [1.0], [0.0], [0.0]]), None, np.array([1.0, 1, 1, 0, 0]))
        domain = Domain(n_rows=5, n_features=1, row_norm=1.0)
        stage = TrimmedMeanImputer(trim=0.34, min_observed=3)
        ways = {way.name: way for way in stage.ways(domain, ONE)}
        assert stage.prepare(rows, ways["exact"], domain)["mean"] == pytest.approx(0.6)

    def test_filled_rows_keep_their_norm(self):
        rows = Rows.of(np.array([[1.0, 0.0], [1.0, 0.0], [GAP, 1.0]]))
        domain, stage = Domain(n_rows=3, n_features=2, row_norm=1.0), TrimmedMeanImputer(trim=0, min_observed=2)
        ways = {way.name: way for way in stage.ways(domain, ONE)}
        filled = stage.apply(rows, stage.prepare(rows, ways["exact"], domain))
        np.testing.assert_allclose(filled.X[2], np.sqrt([0.5, 0.5]))

    def test_frames_keep_their_names(self):
        X, _ = data()
        expected = TrimmedMeanImputer().fit_transform(X.to_numpy())
        for frame, library in ((X, "pandas"), (pl.DataFrame(X.to_dict("list")).fill_nan(None), "polars")):
            fitted = TrimmedMeanImputer().set_output(transform=library)
            out = fitted.fit_transform(frame)
            assert list(out.columns) == ["a", "b"] == list(fitted.get_feature_names_out())
            np.testing.assert_array_equal(np.asarray(out, float), expected)


class TestErrors:
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            *(("trim", v) for v in (-0.1, 0.6, "1", None, np.nan, True)),
            *(("min_observed", v) for v in (0, -1, "1", None, N + 1, 1.5, True)),
            *(("max_missing", v) for v in (-1, "1", np.nan, [1])),
            *(("statistics", v) for v in ("other", None, [])),
        ],
    )
    def test_impossible_parameters(self, name, value):
        with pytest.raises(InvalidParameter, match=name):
            TrimmedMeanImputer(**{name: value}).fit(data()[0])

    def test_something_must_be_left(self):
        with pytest.raises(InvalidParameter, match="leaves nothing") as caught:
            TrimmedMeanImputer(trim=0.5, min_observed=4).fit(data()[0])
        assert caught.value.fix

    def test_fractional_weights_are_refused(self):
        domain = Domain(n_rows=9, n_features=1, row_norm=1.0)
        with pytest.raises(UnsupportedOrder, match="rank"):
            TrimmedMeanImputer().ways(domain, Distance(replaced=1, reweighted=2))

    def test_a_bound_on_the_rows_must_be_known(self):
        with pytest.raises(MissingBound, match="row_norm"):
            make_pipeline(TrimmedMeanImputer(), GaussianMechanism(), delta=1e-6).plan(Domain(n_rows=9, n_features=2))


class TestPipelines:
    @pytest.mark.parametrize("statistics", ["exact", "noisy"])
    @pytest.mark.parametrize("before", [(), (Deduplicator(),)], ids=["alone", "behind a deduplicator"])
    def test_a_model_is_certified_without_a_condition(self, statistics, before):
        X, y = data()
        pipe = pipeline(LogisticRegression(classes=(0, 1), max_iter=5), *before, statistics=statistics).fit(X, y)
        certificate = pipe.certificate_
        assert certificate.verify()
        assert certificate["gate"] is None
        assert [release["statistic"] for release in certificate["releases"]] == ["trimmed-means"]
        twin, alone = pipe["trimmedmeanimputer"], TrimmedMeanImputer().fit(X)
        assert not np.array_equal(twin.mean_, alone.mean_)
        assert np.abs(twin.mean_ - alone.mean_).max() < 0.1
        assert pipe.predict(X).shape == y.shape

    def test_few_rows_with_gaps_are_a_condition_of_the_exact_way(self):
        X, _ = data()
        pipe = pipeline(GaussianMechanism(), statistics="exact", max_missing=0.2).fit(X)
        assert pipe.certificate_.verify()
        step = pipe.certificate_["steps"][1]
        assert [k["formula"] for k in step["conditions"]] == ["imputation.missing"]
        assert step["distance"]["moved"] == 0.2 * N

    def test_rows_move_some_fifty_times_less_than_by_medians(self):
        """What the documentation says, for whatever number of rows."""
        for n in (2000, 200_000):
            domain = Domain(n_rows=n, n_features=5, row_norm=1.0)
            moves = [stage.stability_map(domain, ONE)[1].radius for stage in (MedianImputer(), TrimmedMeanImputer())]
            assert 40 < moves[0] / moves[1] < 60
