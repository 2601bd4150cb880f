"""Functions in a workflow are rated by what they do to made-up rows; what these cannot show is declared."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from sklearn import preprocessing
from sklearn.compose import TransformedTargetRegressor
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import Ridge
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

from ppdp import lint, transformers

MEAN = np.array([1.0, 2.0])
WEIGHTS = np.linspace(-1, 1, 6).reshape(3, 2)


def keeping(held):
    return lambda X: (X, held)[0]


def fails(X):
    raise RuntimeError


@pytest.mark.parametrize(
    ("function", "severity", "words"),
    [
        (None, "none", "every row is mapped by itself"),
        (np.log1p, "none", "every row is mapped by itself"),
        (preprocessing.normalize, "none", "every row"),
        (preprocessing.scale, "low", "means and variances of columns, by scale"),
        (stats.zscore, "low", "means and variances of columns, by zscore"),
        (preprocessing.minmax_scale, "high", "smallest and largest values"),
        (preprocessing.maxabs_scale, "high", "by maxabs_scale"),
        (preprocessing.robust_scale, "high", "by robust_scale"),
        (preprocessing.quantile_transform, "high", "by quantile_transform"),
        (preprocessing.power_transform, "high", "by power_transform"),
        (pd.get_dummies, "high", "by get_dummies"),
        ("log", "high", "unknown"),
        *(
            (function, "high", "a made-up row came out differently")
            for function in (
                np.mean,
                np.median,
                np.cumsum,
                np.maximum.accumulate,
                stats.rankdata,
                partial(preprocessing.normalize, axis=0),
                lambda X: X - X.mean(axis=0),
                lambda X: X - X[0],
                lambda X: X[::-1],
                lambda X: X * len(X),
                lambda X: X[:3],
                lambda X: X + np.random.normal(size=X.shape),  # noqa: NPY002
            )
        ),
        *(
            (function, "declared", "was not read off these rows and its function treats rows one by one")
            for function in (
                lambda X: X / 100,
                lambda X: X @ WEIGHTS,  # rounding is no mixing
                lambda X: X / np.linalg.norm(X, axis=1, keepdims=True),
                lambda X: sparse.csr_array(X),
                lambda X: np.where(X > 0, "tall", "small"),
                lambda cells: [cell.strip() for cell in cells],
                keeping(MEAN),
                np.frompyfunc(abs, 1, 1),
                fails,
            )
        ),
        (partial(preprocessing.scale, axis=1), "declared", "(its arguments axis)"),
    ],
)
def test_they_are_rated_by_what_they_do_to_made_up_rows(function, severity, words):
    (found,) = lint(FunctionTransformer(function))
    assert (found.severity, words in found.leaks) == (severity, True), found.leaks
    assert found.fix


@pytest.mark.parametrize("stage", [FunctionTransformer, transformers.RowMap])
def test_one_that_holds_on_to_an_estimator_carries_its_rows(stage):
    assert lint(stage(np.tanh)).severity == "none"
    for function in (partial(StandardScaler().transform), keeping([StandardScaler()])):
        (found,) = lint(stage(function))
        assert (found.severity, found.counterpart) == ("high", "Public")


@pytest.mark.parametrize("place", ["kw_args", "inv_kw_args"])
def test_arguments_are_carried_as_well(place):
    def stage(held):
        return FunctionTransformer(np.add, np.subtract, **{place: {"by": held}})

    assert lint(stage(MEAN)).severity == "declared"
    assert lint(stage([MinMaxScaler()])).severity == "high"


def test_the_inverse_is_one_of_them():
    assert lint(FunctionTransformer(np.tanh, inverse_func=StandardScaler().inverse_transform)).severity == "high"
    assert lint(FunctionTransformer(np.tanh, inverse_func=lambda X: X - X.mean())).severity == "high"


def test_functions_of_other_estimators():
    around = partial(TransformedTargetRegressor, Ridge(), inverse_func=np.exp)
    assert lint(around(func=np.log)).findings[0].severity == "none"
    assert lint(around(func=lambda y: y - y.mean())).findings[0].severity == "high"
    assert lint(HashingVectorizer(preprocessor=str.lower)).severity == "none"
    assert lint(HashingVectorizer(analyzer=keeping(StandardScaler()))).severity == "high"
    assert lint(HashingVectorizer(analyzer=keeping({"a", "b"}))).severity == "declared"


class Counter:
    calls = 0

    def __call__(self, X):
        self.calls += 1
        return X * 2


def test_what_a_user_holds_stays_as_it_was(capsys):
    counter, before = Counter(), np.random.get_state()[1].copy()  # noqa: NPY002
    lint(FunctionTransformer(counter))
    lint(FunctionTransformer(lambda X: print(X) or np.random.normal(size=X.shape)))  # noqa: NPY002, T201
    assert lint(FunctionTransformer(lambda X: exit())).severity == "declared"
    assert counter.calls == 0
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002
    assert capsys.readouterr().out == ""
