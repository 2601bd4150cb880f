"""A fitted pipeline at work: twins, predictions, transformed rows, every container and odd data."""

import copy
import pickle

import clinic
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from clinic import COLUMNS, RANGES, N, classifier, scaling
from sklearn.base import clone
from sklearn.metrics import accuracy_score

from ppdp import Domain, make_column_map, make_pipeline
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.transformers import CategoryEncoder, Deduplicator, MinMaxScaler, NormClipper, RowMap, StandardScaler

# pytest finds a fixture by its name in the test's own module
patients = clinic.patients


class TestTwins:
    def test_predict_with_released_values(self, patients):
        pipe = classifier().fit(*patients)
        np.testing.assert_array_equal(pipe["impute"].mean_, np.clip(pipe.release_["impute.means"], -1, 1))
        np.testing.assert_array_equal(pipe["model"].coef_[0], pipe.release_["model.theta"][:3])
        np.testing.assert_array_equal(pipe["model"].intercept_, pipe.release_["model.theta"][3:])
        assert pipe["model"].n_iter_ == pipe["model"].max_iter < 20  # Newton steps, of which fewer do
        assert pipe["model"] is pipe.named_steps["model"] is pipe.named_steps.model is pipe[-1]

    def test_are_fitted_and_do_what_the_pipeline_does(self, patients):
        X, y = patients
        pipe = classifier().fit(X, y)
        rows = X.head(50)
        for name in ("range", "impute", "scale"):
            rows = pipe[name].transform(rows if name == "range" else pd.DataFrame(rows, columns=COLUMNS))
        np.testing.assert_allclose(pipe["model"].predict_proba(rows), pipe.predict_proba(X.head(50)))

    def test_steps_stay_as_configured(self, patients):
        pipe = classifier()
        before = {name: repr(value) for name, value in pipe.get_params().items()}
        steps = list(pipe.steps)
        assert pipe["model"] is steps[-1][1]
        pipe.fit(*patients)
        assert {name: repr(value) for name, value in pipe.get_params().items()} == before
        assert all(now is then for (_, now), (_, then) in zip(pipe.steps, steps, strict=True))
        assert not any(name.endswith("_") for _, step in steps for name in vars(step))
        assert pipe["model"] is not steps[-1][1]


class TestPrediction:
    def test_agree_with_each_other(self, patients):
        X, y = patients
        pipe = classifier(epsilon=20.0).fit(X, y)
        proba, side, labels = pipe.predict_proba(X), pipe.decision_function(X), pipe.predict(X)
        np.testing.assert_allclose(proba.sum(axis=1), 1)
        np.testing.assert_array_equal(labels, (side > 0).astype(int))
        np.testing.assert_allclose(proba[:, 1], 1 / (1 + np.exp(-side)))
        assert pipe.score(X, y) == accuracy_score(y, labels) > 0.75
        np.testing.assert_array_equal(pipe.classes_, [0, 1])

    def test_labels_come_back_as_they_were_declared(self, patients):
        X, y = patients
        words = np.where(y == 1, "dead", "alive")
        for classes in [("alive", "dead"), np.array(["alive", "dead"]), None]:
            pipe = classifier().set_params(model__classes=classes).fit(X, words)
            assert set(pipe.predict(X)) <= {"alive", "dead"}
            np.testing.assert_array_equal(pipe.predict(X) == "dead", classifier().fit(X, y).predict(X) == 1)
        numbers = classifier().set_params(model__classes=np.array([0, 1])).fit(X, y)
        np.testing.assert_array_equal(numbers.predict(X), classifier().fit(X, y).predict(X))

    def test_one_row_is_enough(self, patients):
        X, y = patients
        pipe = classifier().fit(X, y)
        together = pipe.predict_proba(X.head(5))
        alone = np.vstack([pipe.predict_proba(X.iloc[[i]]) for i in range(5)])
        np.testing.assert_allclose(alone, together)

    def test_copies_predict_the_same(self, patients):
        X, y = patients
        pipe = classifier(random_state=None).fit(X, y)
        for again in (pickle.loads(pickle.dumps(pipe)), copy.deepcopy(pipe)):
            np.testing.assert_array_equal(again.predict_proba(X), pipe.predict_proba(X))
            assert again.certificate_ == pipe.certificate_

    def test_what_the_last_step_cannot_do_is_not_there(self):
        mean = make_pipeline(NormClipper(), GaussianMechanism())
        assert not any(hasattr(mean, name) for name in ("predict", "predict_proba", "score", "transform"))
        assert hasattr(scaling(), "transform")
        assert not hasattr(scaling(), "predict")

    def test_private_rows_above_the_declared_norm_are_clipped_at_prediction_too(self, patients):
        pipe = make_pipeline(
            LogisticRegression(classes=(0, 1)), domain=Domain(row_norm=1.0), random_state=0, delta=1e-5
        )
        X = patients[0].fillna(0).to_numpy()
        pipe.fit(X, patients[1])
        clipped = X / np.maximum(1, np.linalg.norm(X, axis=1))[:, None]
        np.testing.assert_allclose(pipe.decision_function(X), pipe.decision_function(clipped))


class TestEndsInATransformer:
    def test_releases_its_statistics(self, patients):
        pipe = scaling().fit(patients[0])
        assert list(pipe.release_) == ["impute.means", "scale.squares"]
        assert [step["way"] for step in pipe.certificate_["steps"]] == ["public", "noisy", "noisy"]
        assert pipe.certificate_["mechanism"] is None
        out = pipe.transform(patients[0])
        assert out.shape == patients[0].shape
        assert np.isfinite(out).all()
        np.testing.assert_array_equal(out, scaling().fit_transform(patients[0]))

    def test_an_exact_way_cannot_be_forced(self, patients):
        with pytest.raises(ValueError, match="statistics must be"):
            scaling().set_params(scale__fit_mode="exact").fit(patients[0])

    @pytest.mark.parametrize(("container", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
    def test_containers(self, patients, container, kind):
        X = patients[0].set_index(np.arange(N) + 10)
        before = scaling().set_output(transform=container).fit(X).transform(X)
        after = scaling().fit(X).set_output(transform=container).transform(X)
        for out in (before, after):
            assert isinstance(out, kind)
            assert list(out.columns) == COLUMNS
        if container == "pandas":
            assert (before.index == X.index).all()
        np.testing.assert_array_equal(np.asarray(before), scaling().fit_transform(X))

    def test_feature_names(self, patients):
        X = patients[0]
        assert list(scaling().fit(X).get_feature_names_out()) == COLUMNS
        assert list(scaling().set_params(range__ranges=(0, 1)).fit(X.to_numpy()).get_feature_names_out()) == [
            "x0",
            "x1",
            "x2",
        ]
        narrow = RowMap(lambda X: X[:, :2], out_ranges={"a": (0, 100), "b": (0, 1)})
        pipe = make_pipeline(narrow, StandardScaler(), delta=1e-5, epsilon=20.0).set_output(transform="pandas")
        assert list(pipe.fit_transform(X.fillna(0)).columns) == list(pipe.get_feature_names_out()) == ["a", "b"]
        rows = X.fillna(0).to_numpy().tolist()
        assert list(clone(pipe).fit_transform(rows).columns) == ["a", "b"]


@pytest.fixture(scope="module")
def expected(patients):
    return classifier().fit(*patients)


class TestContainers:
    @pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas, pa.RecordBatch.from_pandas])
    def test_frames_give_the_same_release(self, patients, make, expected):
        X, y = patients
        pipe = classifier().fit(make(X), y)
        assert pipe.release_.sha256 == expected.release_.sha256
        assert list(pipe.feature_names_in_) == COLUMNS
        np.testing.assert_array_equal(pipe.predict_proba(make(X)), expected.predict_proba(X))

    def test_arrays_and_lists_give_the_same_release(self, patients, expected):
        X, y = patients
        table = list(RANGES.values())
        for rows in (X.to_numpy(), np.asfortranarray(X), X.to_numpy().tolist(), X.to_numpy(dtype=object)):
            pipe = classifier().set_params(range__ranges=table).fit(rows, y.tolist())
            assert pipe.release_.sha256 == expected.release_.sha256
            assert not hasattr(pipe, "feature_names_in_")

    @pytest.mark.parametrize("make", [pd.Series, pd.Categorical, pl.Series, list, np.float64, pa.array, np.bool_])
    def test_labels(self, patients, make, expected):
        X, y = patients
        assert classifier().fit(X, make(y)).release_.sha256 == expected.release_.sha256

    def test_nullable_columns(self, patients, expected):
        X, y = patients
        assert classifier().fit(X.convert_dtypes(), y).release_.sha256 == expected.release_.sha256


class TestOddData:
    @pytest.mark.parametrize("column", [np.full(N, np.nan), np.full(N, 3.0), np.zeros(N), np.full(N, 1e9)])
    @pytest.mark.parametrize("statistics", ["exact", "noisy"])
    @pytest.mark.repeated("statistics")
    def test_constant_and_all_missing_columns(self, patients, column, statistics):
        X, y = patients
        pipe = classifier(epsilon=20.0).set_params(impute__fit_mode=statistics, scale__fit_mode=statistics)
        pipe.fit(X.assign(dose=column), y)
        assert pipe.certificate_.verify()
        assert np.isfinite(pipe.predict_proba(X.assign(dose=column))).all()

    def test_all_rows_equal_and_all_labels_equal(self):
        X = np.full((N, 3), 0.5)
        pipe = classifier().set_params(range__ranges=(0, 1)).fit(X, np.zeros(N, dtype=int))
        assert pipe.certificate_.verify()
        assert set(pipe.predict(X)) <= {0, 1}

    @pytest.mark.parametrize("value", [1.7e308, -1.7e308, 1e200, 5e-324, -0.0])
    @pytest.mark.parametrize("first", [NormClipper(), MinMaxScaler(ranges=(-1, 1))])
    def test_extreme_values(self, value, first):
        X = np.zeros((N, 2))
        X[0] = value
        pipe = make_pipeline(first, Deduplicator(), StandardScaler(), GaussianMechanism(), epsilon=20.0, delta=1e-5)
        assert np.isfinite(pipe.fit(X)[-1].mean_).all()


READERS = {
    "columns": lambda: make_column_map(
        (CategoryEncoder(["a", "b"]), ["word"]), (MinMaxScaler(ranges=(0, 100)), ["age"])
    ),
    "released": lambda: make_column_map((CategoryEncoder("private", max_categories=3), ["word"])),
}


class TestOneStepThatReadsText:
    """As scikit-learn's: a pipeline, or a slice of one, whose only step reads text maps rows as the step does."""

    @pytest.fixture
    def table(self):
        return pd.DataFrame({"word": ["a", "b"] * 200, "age": np.linspace(0, 100, 400), "id": "x"}, index=range(7, 407))

    @pytest.mark.parametrize("first", READERS)
    def test_it_maps_rows(self, first, table, tmp_path):
        table.to_parquet(tmp_path / "rows.parquet")
        alone = make_pipeline(READERS[first](), epsilon=9.0, delta=1e-4).fit(table)
        part = make_pipeline(READERS[first](), GaussianMechanism(), epsilon=9.0, delta=1e-4).fit(table)[:-1]
        for pipe in (alone, part):
            rows = pipe.transform(table)
            assert np.array_equal(rows, pipe[0].transform(table))
            assert np.array_equal(rows, pipe.transform(tmp_path / "rows.parquet"))
        framed = alone.set_output(transform="pandas").transform(table)
        assert list(framed.columns) == list(alone.get_feature_names_out())
        assert framed.index.equals(table.index)
