"""What is often written converts, and the report says how it differs."""

import numpy as np
import pandas as pd
import pytest
from conversions import convert
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import AdaBoostClassifier, BaggingRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.linear_model import (
    BayesianRidge,
    LogisticRegression,
    LogisticRegressionCV,
    Perceptron,
    PoissonRegressor,
    RidgeClassifier,
    RidgeCV,
    SGDClassifier,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC

AMOUNT = {"y_range": (0, 1)}
THREE = {"classes": ("a", "b", "c")}
LOG = LogisticRegression()
CASES = {
    "linear kernel": (SVC(kernel="linear"), {}, "LinearSVC", "a smooth hinge loss instead of hinge loss"),
    "probabilities": (SVC(kernel="linear", probability=True), {}, "LogisticRegression", "which gives probabilities"),
    "several margins": (LinearSVC(), THREE, "LogisticRegression", "which learns all classes together"),
    "weak penalty": (LinearSVC(C=10.0), {}, "LinearSVC", "C=10 has no effect: there is no penalty"),
    "little penalty": (PoissonRegressor(alpha=0.0), AMOUNT, "PoissonRegressor", "alpha=0 has no effect"),
    "Huber's margins": (SGDClassifier(loss="modified_huber"), {}, "LogisticRegression", "the modified_huber loss"),
    "perceptron": (Perceptron(), {}, "LinearSVC", "instead of the perceptron's"),
    "squares": (RidgeClassifier(alpha=3.0), {}, "LogisticRegression", "log loss instead of squares, with a penalty"),
    "discriminant": (LinearDiscriminantAnalysis(), {}, "LogisticRegression", "log-odds are linear"),
    "C by search": (LogisticRegressionCV(cv=3), {}, "LogisticRegression", "'logisticregressioncv__alpha'"),
    "alpha by search": (RidgeCV(alphas=(1.0, 2.0)), AMOUNT, "Ridge", "alpha is not searched for"),
    "alpha by a prior": (BayesianRidge(), AMOUNT, "Ridge", "instead of one that is learned from the rows"),
    "stumps": (AdaBoostClassifier(), {}, "GradientBoostingClassifier", "interaction_cst='no_interactions'"),
    "bags": (BaggingRegressor(), AMOUNT, "GradientBoostingRegressor", "not from n_estimators=10"),
    "one against the rest": (OneVsRestClassifier(LOG), THREE, "LogisticRegression", "OneVsRestClassifier is left out"),
    "one against one": (OneVsOneClassifier(LinearSVC()), THREE, "LogisticRegression", "learns all classes together"),
    "calibrated": (CalibratedClassifierCV(), {}, "LogisticRegression", "CalibratedClassifierCV is left out"),
    "rounds of regressions": ([IterativeImputer(), LOG], {}, "RegressionImputer", "instead of rounds of them"),
    "nearest rows": ([KNNImputer(), LOG], {}, "RegressionImputer", "instead of the nearest rows"),
    "columns that vary": ([VarianceThreshold(), LOG], {}, "MinMaxScaler", "'variancethreshold' is left out"),
    "bins of filled columns": (
        [SimpleImputer(), KBinsDiscretizer(3, strategy="uniform"), LOG],
        {},
        "ColumnMap",
        "it stands in front of 'simpleimputer', which fills what it leaves missing",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_converts_and_says_how_it_differs(name):
    steps, answer, kind, told = CASES[name]
    pipe = convert(steps, ranges=(0, 1), **(answer or {"classes": (0, 1)}))
    assert kind in [type(step).__name__ for _, step in pipe.steps]
    assert told in str(pipe.conversion)


X = pd.DataFrame({"age": [1.0, 2.0, np.nan, 4.0], "ward": ["north", None, "south", "west"]})
LABELS = {"ward": ["north", "south"]}


def mapped(encoder, *fill, categories=LABELS):
    columns = make_column_transformer((make_pipeline(*fill, encoder), ["ward"]))
    return convert([columns, LOG], classes=(0, 1), categories=categories)


def filled(strategy, value=None):
    return SimpleImputer(strategy=strategy, fill_value=value)


OWN = [[1, 0, 0], [0, 0, 1], [0, 1, 0], [0, 0, 0]]
ZEROS = OneHotEncoder(handle_unknown="ignore")


@pytest.mark.parametrize(
    ("pipe", "rows", "told"),
    [
        (mapped(ZEROS, filled("most_frequent")), [[1, 0, 0], [0, 0, 1], [0, 1, 0], [0, 0, 0]], "category of their own"),
        (
            mapped(ZEROS, filled("constant", "none")),
            [[1, 0, 0], [0, 0, 1], [0, 1, 0], [0, 0, 0]],
            "it was not declared",
        ),
        (mapped(OrdinalEncoder(), filled("most_frequent")), [[-1], [1], [0], [-1]], "category of their own"),
        (mapped(OneHotEncoder(min_frequency=5)), [[1, 0], [0, 0], [0, 1], [0, 0]], "min_frequency=5 has no effect"),
    ],
)
def test_missing_and_rare_labels(pipe, rows, told):
    assert pipe.steps[0][1].fit_transform(X).tolist() == rows
    assert told in str(pipe.conversion)


@pytest.mark.parametrize(
    ("numbers", "labels", "taken"),
    [
        ({"dtype_include": np.number}, {"dtype_include": object}, [["age"], ["ward"]]),
        ({"dtype_include": "int64"}, {"dtype_include": ["category", "bool"]}, [["age"], ["ward"]]),
        ({"dtype_exclude": object}, {"dtype_exclude": "number"}, [["age"], ["ward"]]),
        ({"pattern": "^a"}, {"pattern": "^w"}, [["age"], ["ward"]]),
    ],
)
def test_selectors_choose_among_what_is_declared(numbers, labels, taken):
    parts = (StandardScaler(), make_column_selector(**numbers)), (OneHotEncoder(), make_column_selector(**labels))
    declared = {"ranges": {"age": (0, 9)}, "categories": LABELS, "classes": (0, 1)}
    pipe = convert([make_column_transformer(*parts), LOG], **declared)
    assert [block.columns for block in pipe.steps[0][1].blocks] == taken
    assert "chose among the columns that are declared" in str(pipe.conversion)
