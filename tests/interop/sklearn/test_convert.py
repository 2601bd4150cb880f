"""Existing scikit-learn pipelines become twins that end in a certificate."""

import pickle

import numpy as np
import pandas as pd
import pytest
from conversions import ANSWER, MODEL, NUMBERS, RANGES, columns, convert
from imblearn.pipeline import Pipeline as ImbalancedPipeline
from sklearn import preprocessing as P
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    SGDClassifier,
    SGDRegressor,
    TweedieRegressor,
)
from sklearn.pipeline import Pipeline as SklearnPipeline
from sklearn.pipeline import make_pipeline
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.svm import LinearSVC

from ppdp import Domain
from ppdp.exceptions import DomainMismatch, InvalidParameter
from ppdp.transformers import Deduplicator, NormClipper, RandomProjection

# What scikit-learn 1.6 says of itself with a newer SciPy, when its own model is fitted beside ours.
pytestmark = pytest.mark.filterwarnings("ignore:scipy.optimize:DeprecationWarning")

N = 3000


@pytest.fixture(scope="module")
def table():
    """Numbers, a label, a name that nobody needs; an outcome, and an amount."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"age": rng.uniform(20, 90, N), "dose": rng.normal(size=N)})
    X["level"] = 1 / (1 + np.exp(-X["dose"] + 0.3 * rng.normal(size=N)))
    X["ward"] = rng.choice(["north", "south", "west"], N)
    score = X["age"] / 20 + 2 * X["dose"] + 2 * (X["ward"] == "south")
    X["patient"] = [f"p{i}" for i in range(N)]
    return X, (score > score.median()).astype(int), score.clip(-10, 15)


def counterparts(pipe):
    return [type(step).__name__ for _, step in pipe.steps]


WORKFLOWS = {
    "scaled": ([P.StandardScaler(), MODEL], ["MinMaxScaler", "StandardScaler", "LogisticRegression"]),
    "imputed": ([SimpleImputer(), MODEL], ["MinMaxScaler", "MeanImputer", "LogisticRegression"]),
    "median": ([SimpleImputer(strategy="median"), MODEL], ["MinMaxScaler", "TrimmedMeanImputer", "LogisticRegression"]),
    "constant": ([SimpleImputer(strategy="constant", fill_value=1), MODEL], ["ColumnMap", "LogisticRegression"]),
    "ranges": ([P.MinMaxScaler(), MODEL], ["MinMaxScaler", "LogisticRegression"]),
    "ranges behind means": ([SimpleImputer(), P.MinMaxScaler(), MODEL],
                            ["MinMaxScaler", "MeanImputer", "LogisticRegression"]),
    "largest": ([P.MaxAbsScaler(), MODEL], ["ColumnMap", "LogisticRegression"]),
    "unit rows": ([P.StandardScaler(), P.Normalizer(), MODEL],
                  ["MinMaxScaler", "StandardScaler", "ColumnMap", "LogisticRegression"]),
    "components": ([P.StandardScaler(), PCA(2, svd_solver="full"), MODEL],
                   ["MinMaxScaler", "StandardScaler", "PCA", "LogisticRegression"]),
    "singular": ([P.StandardScaler(), TruncatedSVD(2), MODEL],
                 ["MinMaxScaler", "StandardScaler", "PCA", "LogisticRegression"]),
    "projected": ([P.StandardScaler(), GaussianRandomProjection(3, random_state=1), MODEL],
                  ["MinMaxScaler", "StandardScaler", "RandomProjection", "LogisticRegression"]),
    "function": ([P.FunctionTransformer(np.arcsinh), P.StandardScaler(), MODEL],
                 ["ColumnMap", "StandardScaler", "LogisticRegression"]),
    "bins": ([P.KBinsDiscretizer(5, strategy="uniform"), MODEL], ["ColumnMap", "LogisticRegression"]),
    "products": ([P.MinMaxScaler((-1, 1)), P.PolynomialFeatures(2), MODEL], ["ColumnMap", "LogisticRegression"]),
    "support": ([P.StandardScaler(), LinearSVC()], ["MinMaxScaler", "StandardScaler", "LinearSVC"]),
    "descent": ([P.StandardScaler(), SGDClassifier(loss="log_loss")],
                ["MinMaxScaler", "StandardScaler", "LogisticRegression"]),
    "hinge": ([P.StandardScaler(), SGDClassifier()], ["MinMaxScaler", "StandardScaler", "LinearSVC"]),
    "nested": ([make_pipeline(None, P.StandardScaler(), "passthrough"), MODEL],
               ["MinMaxScaler", "StandardScaler", "LogisticRegression"]),
    "imbalanced": (ImbalancedPipeline([("scale", P.StandardScaler()), ("model", MODEL)]),
                   ["MinMaxScaler", "StandardScaler", "LogisticRegression"]),
    "already a twin": ([NormClipper(1.5), P.StandardScaler(), MODEL],
                       ["MinMaxScaler", "NormClipper", "StandardScaler", "LogisticRegression"]),
    "a model alone": (MODEL, ["MinMaxScaler", "LogisticRegression"]),
}  # fmt: skip


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_becomes_twins_with_a_certificate_that_verifies(name, table):
    steps, expected = WORKFLOWS[name]
    X, y, _ = table
    X = X[NUMBERS]
    pipe = convert(steps, ranges=RANGES, **ANSWER).fit(X, y)
    assert counterparts(pipe) == expected
    assert pipe.certificate_.verify()
    original = clone(steps if not isinstance(steps, list) else make_pipeline(*steps)).fit(X, y)
    assert np.mean(pipe.predict(X) == original.predict(X)) > 0.8


@pytest.mark.parametrize(("density", "s"), [("auto", None), (0.25, 4.0)])
def test_a_sparse_projection_keeps_its_density(density, s):
    pipe = convert([SparseRandomProjection(3, density=density), MODEL], ranges=RANGES, **ANSWER)
    (stage,) = [stage for _, stage in pipe.steps if isinstance(stage, RandomProjection)]
    assert (stage.family, stage.s) == ("sparse", s)


REGRESSIONS = {
    "least squares": (LinearRegression(), "LinearRegression"),
    "ridge": (Ridge(alpha=2.0), "Ridge"),
    "descent": (SGDRegressor(), "LinearRegression"),
}


@pytest.mark.parametrize("name", REGRESSIONS)
def test_a_regression_predicts_alike(name, table):
    model, counterpart = REGRESSIONS[name]
    X, _, amount = table
    pipe = convert([P.StandardScaler(), model], ranges=RANGES, y_range=(-10, 15)).fit(X[NUMBERS], amount)
    original = make_pipeline(P.StandardScaler(), model).fit(X[NUMBERS], amount)
    assert counterparts(pipe)[-1] == counterpart
    assert pipe.certificate_.verify()
    assert np.corrcoef(pipe.predict(X[NUMBERS]), original.predict(X[NUMBERS]))[0, 1] > 0.95


@pytest.mark.parametrize("model", [PoissonRegressor(), TweedieRegressor(power=1.5)], ids=lambda m: type(m).__name__)
def test_a_log_linear_model_of_counts(model, table):
    X, _, amount = table
    pipe = convert([model], ranges=RANGES, y_range=(0, 15)).fit(X[NUMBERS], amount.clip(0.1))
    assert counterparts(pipe)[-1] == type(model).__name__
    assert pipe.certificate_.verify()


class TestColumns:
    """A ``ColumnTransformer`` with public sets of columns."""

    def test_numbers_and_labels_together(self, table):
        X, y, _ = table
        X = X.copy()
        X.loc[::9, "dose"] = np.nan
        X.loc[::50, "ward"] = None
        steps = SklearnPipeline([("prepare", columns()), ("model", MODEL)])
        pipe = convert(steps, ranges=RANGES, **ANSWER).fit(X, y)
        assert counterparts(pipe) == ["ColumnMap", "MeanImputer", "StandardScaler", "LogisticRegression"]
        assert pipe.certificate_.verify()
        assert pipe.certificate_.status == "SEEDED"
        assert np.mean(pipe.predict(X) == steps.fit(X, y).predict(X)) > 0.9
        again = pickle.loads(pickle.dumps(pipe))
        assert (again.predict(X) == pipe.predict(X)).all()
        facts = {fact["value"] for fact in pipe.certificate_["facts"]}
        assert "the categories of 'labels' are public: north, south, west" in facts

    def test_one_hot_rows_have_the_norm_of_the_number_of_columns(self, table):
        X, y, _ = table
        pipe = convert([columns(numbers="drop"), MODEL], **ANSWER).fit(X, y)
        step = pipe.certificate_["steps"][0]
        assert step["parameters"]["row_norm"] == pytest.approx(1.0)
        assert step["parameters"]["feature_names"] == ["labels__ward_north", "labels__ward_south", "labels__ward_west"]
        assert pipe[0].transform(X.iloc[:3]).sum(axis=1).tolist() == [1.0, 1.0, 1.0]

    def test_what_comes_out_is_what_scikit_learn_makes_of_public_parameters(self, table):
        X = table[0][table[0]["ward"] != "north"]
        bins = P.KBinsDiscretizer(4, encode="ordinal", strategy="uniform")
        parts = [
            ("log", P.FunctionTransformer(np.cbrt, feature_names_out="one-to-one"), ["age"]),
            ("bins", bins, slice("dose", "dose")),
            ("unit", P.Normalizer(), [0, 2]),
            ("ward", P.OneHotEncoder(categories=[["south", "west"]], handle_unknown="ignore", drop="first"), ["ward"]),
        ]
        ends = pd.DataFrame({"age": [0, 100], "dose": [-5, 5], "level": [0, 1], "ward": "west", "patient": ""})
        theirs = ColumnTransformer(parts).fit(ends)
        ours = convert([ColumnTransformer(parts), MODEL], ranges=RANGES, **ANSWER)[0]
        found = ours.set_output(transform="pandas").fit_transform(X)
        wanted = np.asarray(theirs.transform(X), dtype=float)
        wanted[:, 0] = wanted[:, 0] / 100 ** (1 / 3) * 2 - 1  # columns of numbers end in [-1, 1]
        wanted[:, 1] = wanted[:, 1] / 3 * 2 - 1
        assert np.allclose(found, wanted)
        assert list(found) == list(theirs.get_feature_names_out())

    def test_a_gap_can_be_a_label(self, table):
        X, y, _ = table
        X = X.assign(ward=X["ward"].where(X["ward"] != "west"))
        encoder = P.OneHotEncoder(categories=[["north", "south", "none"]])
        labels = make_pipeline(SimpleImputer(strategy="constant", fill_value="none"), encoder)
        pipe = convert([columns(numbers="drop", labels=labels), MODEL], **ANSWER).fit(X, y)
        assert pipe.certificate_.verify()
        assert (pipe[0].transform(X)[:, 2] == X["ward"].isna()).all()

    def test_an_unknown_label_is_a_row_of_zeros_and_no_error(self, table):
        X, y, _ = table
        pipe = convert([columns(numbers="drop"), MODEL], **ANSWER).fit(X.assign(ward="elsewhere"), y)
        assert pipe.predict(X.assign(ward="elsewhere")).shape == (N,)

    def test_ordinal_codes_and_the_remainder(self, table):
        X, y, _ = table
        parts = [
            ("ward", P.OrdinalEncoder(categories=[["west", "north", "south"]]), ["ward"]),
            ("no", "drop", ["patient"]),
        ]
        pipe = convert([ColumnTransformer(parts, remainder="passthrough"), MODEL], ranges=RANGES, **ANSWER).fit(X, y)
        assert list(pipe.named_steps["columntransformer"].get_feature_names_out()) == [
            "ward__ward", "remainder__age", "remainder__dose", "remainder__level",
        ]  # fmt: skip
        assert pipe.certificate_.verify()

    def test_arrays_of_labels_by_position(self, table):
        X, y, _ = table
        parts = [
            ("ward", P.OneHotEncoder(categories=[["north", "south", "west"]]), [3]),
            ("age", P.StandardScaler(), [0, 1]),
        ]
        pipe = convert([ColumnTransformer(parts), MODEL], ranges={0: (0, 100), 1: (-5, 5)}, **ANSWER)
        values = X.to_numpy(dtype=object)
        pipe.fit(values, y)
        assert pipe.certificate_.verify()
        assert pipe.score(values, y) > 0.9

    def test_a_frame_with_other_columns_is_refused(self, table):
        X, y, _ = table
        pipe = convert([columns(), MODEL], ranges=RANGES, **ANSWER)
        with pytest.raises(DomainMismatch, match=r"X lacks the column\(s\) 'ward'"):
            pipe.fit(X.drop(columns="ward"), y)


def test_a_function_with_a_declared_range(table):
    X, y, _ = table
    functions = {"waves": (-1, 1)}
    steps = SklearnPipeline([("waves", P.FunctionTransformer(np.sin)), ("model", MODEL)])
    pipe = convert(steps, ranges=RANGES, functions=functions, **ANSWER).fit(X[NUMBERS], y)
    assert pipe.certificate_.verify()
    assert "the function of 'waves' treats rows one by one (tested on made-up rows)" in str(pipe.certificate_.to_json())


def test_a_function_that_mixes_rows_is_found(table):
    steps = SklearnPipeline([("mix", P.FunctionTransformer(lambda X: X - X.mean(axis=0))), ("model", MODEL)])
    pipe = convert(steps, ranges=RANGES, functions={"mix": (-1, 1)}, **ANSWER)
    with pytest.raises(InvalidParameter, match="among other rows"):
        pipe.fit(table[0][NUMBERS], table[1])


def test_rows_can_be_bounded_by_their_norm_or_by_a_domain_or_by_a_stage(table):
    X, y, _ = table
    for steps, declared, first in [
        ([P.StandardScaler(), MODEL], {"max_norm": 100.0}, "NormClipper"),
        ([P.StandardScaler(), MODEL], {"domain": Domain(row_norm=100.0)}, "StandardScaler"),
        ([NormClipper(100.0), P.StandardScaler(), MODEL], {}, "NormClipper"),
    ]:
        pipe = convert(steps, **declared, **ANSWER)
        assert counterparts(pipe)[0] == first
        assert pipe.fit(X[NUMBERS], y).certificate_.verify()


def test_what_was_fitted_is_never_read(table, monkeypatch):
    X, y, _ = table
    read = []
    steps = make_pipeline(columns(), Deduplicator(), MODEL)
    steps.steps.pop(1)
    steps.fit(X, y)
    plain = object.__getattribute__

    def spy(self, name):
        if type(self).__module__.startswith("sklearn") and name.endswith("_") and not name.startswith("_"):
            read.append(name)
        return plain(self, name)

    monkeypatch.setattr(BaseEstimator, "__getattribute__", spy, raising=False)
    pipe = convert(steps, ranges=RANGES, **ANSWER)
    monkeypatch.undo()
    assert read == []
    fitted = steps[-1].coef_.tobytes(), steps[0].named_transformers_["numbers"][1].mean_.tobytes()
    assert not any(values in pickle.dumps(pipe) for values in fitted)


def test_a_twin_that_was_fitted_alone_leaves_its_statistics_behind(table):
    from ppdp.transformers import StandardScaler as Twin

    counterpart = Twin().fit(table[0][NUMBERS])
    pipe = convert([counterpart, MODEL], ranges=RANGES, **ANSWER)
    assert not hasattr(pipe[1], "mean_")


def test_the_conversion_says_what_changed_and_what_was_ignored():
    steps = [SimpleImputer(strategy="median", copy=False), LogisticRegression(n_jobs=2, C=0.5)]
    pipe = convert(steps, ranges=RANGES)
    text = repr(pipe.conversion)
    assert "added: range (MinMaxScaler)" in text
    assert "simpleimputer (SimpleImputer) -> simpleimputer (TrimmedMeanImputer)" in text
    assert "a trimmed mean instead of the median" in text
    assert "ignored: copy" in text
    assert "labels will be read from y: CONDITIONAL" in text
    assert pipe["logisticregression"].alpha == 2.0
    assert repr(clone(pipe).conversion) == text


def test_names_that_a_step_must_not_have_are_made_free():
    steps = SklearnPipeline([("gate", P.StandardScaler()), ("a.b", MODEL)])
    pipe = convert(steps, ranges=RANGES, **ANSWER)
    assert [name for name, _ in pipe.steps] == ["range", "gate-2", "a-b"]
    assert pipe.plan(Domain(n_rows=1000, n_features=3)).epsilon == 20.0
