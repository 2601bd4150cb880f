"""Steps of scikit-learn inside ppdp's pipeline become those of ``from_sklearn``, or the error says what to write."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectFdr
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import Pipeline as Plain
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, StandardScaler
from sklearn.preprocessing import MinMaxScaler as PlainRange

import ppdp
from ppdp import Domain, Pipeline, PrivateSearchCV
from ppdp.exceptions import InvalidParameter, MissingBound, UnknownStage
from ppdp.transformers import MeanImputer, MinMaxScaler

RANGES = {"age": (18, 90), "dose": (0, 10)}
LABELS = Domain(classes=(0, 1))


def rows(n=1200):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.integers(18, 90, n).astype(float), "dose": rng.normal(5, 1, n)})
    y = (X["age"] > 50).astype(int)
    X.loc[::40, "dose"] = np.nan
    return X, y


def mixed(*behind, **given):
    steps = [("range", MinMaxScaler(ranges=RANGES)), ("gaps", SimpleImputer()), ("scale", StandardScaler()), *behind]
    return Pipeline(steps, **given)


def test_twins_are_run_and_steps_stay_as_they_are(tmp_path):
    X, y = rows()
    model = LogisticRegression()
    pipe = mixed(("model", model), domain=LABELS)
    assert hasattr(pipe, "predict_proba")
    assert pipe.fit(X, y).certificate_.status == "UNCONDITIONAL"
    assert pipe.certificate_.verify()
    assert dict(pipe.steps)["model"] is model
    assert not hasattr(model, "coef_")
    assert isinstance(pipe["gaps"], MeanImputer)
    assert pipe.score(X, y) > 0.9
    pipe.export(tmp_path / "model.zip")
    np.testing.assert_array_equal(ppdp.load(tmp_path / "model.zip").predict(X), pipe.predict(X))


def test_they_are_those_of_from_sklearn():
    domain = Domain(n_rows=1000, n_features=2, feature_names=("age", "dose"))
    plain = Plain([("gaps", SimpleImputer()), ("scale", StandardScaler()), ("model", LogisticRegression())])
    converted = Pipeline.from_sklearn(plain, ranges=RANGES, classes=(0, 1)).plan(domain)
    own = mixed(("model", LogisticRegression()), domain=LABELS).plan(domain)
    assert own.mechanism.noise_scale == converted.mechanism.noise_scale
    assert [type(step.stage) for step in own.steps] == [type(step.stage) for step in converted.steps]


def test_the_conversion_tells_what_changed():
    pipe = mixed(("model", LogisticRegression(C=2.0, n_jobs=2)), domain=LABELS)
    assert "C=2 became alpha=0.5" in repr(pipe.conversion)
    assert "ignored: n_jobs" in repr(pipe.conversion)
    assert Pipeline([("range", MinMaxScaler(ranges=RANGES))]).conversion is None
    assert "alpha=1" in repr(clone(pipe).set_params(model__C=1.0).conversion)


def test_a_table_of_text_in_one_of_scikit_learns_containers():
    X, y = rows()
    X["sex"] = np.where(X["age"] > 50, "F", "M")
    encoder = ColumnTransformer([("sex", OneHotEncoder(categories=[["F", "M"]]), ["sex"])])
    pipe = Pipeline([("columns", encoder), ("model", LogisticRegression())], domain=LABELS)
    assert pipe.fit(X, y).score(X, y) > 0.9
    assert pipe.compare(Domain(n_rows=1000, feature_names=tuple(X)))


def test_a_search_sets_their_parameters():
    X, y = rows()
    search = PrivateSearchCV(mixed(("model", LogisticRegression()), domain=LABELS), {"model__C": [0.1, 1.0]})
    assert search.fit(X, y).best_params_["model__C"] in (0.1, 1.0)


@pytest.mark.parametrize(
    ("steps", "kind", "words"),
    [
        ([("range", PlainRange())], MissingBound, "Pipeline.from_sklearn(sklearn.pipeline.Pipeline(steps), ranges="),
        ([("gaps", SimpleImputer()), ("model", LogisticRegression())], MissingBound, "Pipeline.from_sklearn("),
        ([("shape", SelectFdr())], UnknownStage, "public knowledge"),
        ([("bins", KBinsDiscretizer([2, 3]))], InvalidParameter, "one number of bins"),
        ([("range", MinMaxScaler(ranges=(0, 1))), ("k", PCA("mle"))], InvalidParameter, "n_components=5"),
        ([("range", MinMaxScaler(ranges=(0, 1))), ("model", Ridge())], MissingBound, "y_range=(low, high)"),
        (
            [("columns", ColumnTransformer([("sex", OneHotEncoder(), ["sex"])]))],
            MissingBound,
            "Pipeline.from_sklearn(sklearn.pipeline.Pipeline(steps), categories={'sex': [...]})",
        ),
        (
            [("columns", ColumnTransformer([("age", MeanImputer(), ["age"])]))],
            UnknownStage,
            "ppdp.ColumnTransformer",
        ),
        ([("model", LinearRegression()), ("range", MinMaxScaler((0, 1)))], InvalidParameter, "move it to the end"),
        ([("range", MinMaxScaler(ranges=(0, 1))), ("scale", StandardScaler)], UnknownStage, "instance"),
    ],
)
def test_what_has_no_twin_is_refused_with_the_line_to_write(steps, kind, words):
    pipe = Pipeline(steps)
    with pytest.raises(kind) as caught:
        pipe.plan(Domain(n_rows=1000, n_features=1))
    assert words in caught.value.fix
    assert repr(pipe)  # shown, and asked what it can do, all the same
    assert hasattr(pipe, "predict") == hasattr(steps[-1][1], "predict")


def test_a_declared_range_of_targets_is_that_of_the_domain():
    X, _ = rows()
    pipe = mixed(("model", Ridge()), domain=Domain(y_range=(0, 100)))
    assert pipe.fit(X, X["age"]).certificate_.verify()
