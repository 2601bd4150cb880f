"""Functions in a workflow are rated by what they do to made-up rows, and by what they hold."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn import preprocessing
from sklearn.compose import TransformedTargetRegressor
from sklearn.experimental import enable_halving_search_cv, enable_iterative_imputer  # noqa: F401
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import Ridge
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    StandardScaler,
)

from ppdp import lint, transformers

MEAN = np.array([1.0, 2.0])


def keeping(held):
    return lambda X: (X, held)[0]


class TestFunctions:
    @pytest.mark.parametrize(
        ("function", "severity", "words"),
        [
            (None, "none", "every row is mapped by itself"),
            (np.log1p, "none", "every row is mapped by itself"),
            (lambda X: X / 100, "none", "every row is mapped by itself"),
            (partial(preprocessing.scale, axis=1), "none", "every row"),
            (preprocessing.normalize, "none", "every row"),
            (partial(np.cumsum, axis=1), "none", "every row"),
            (preprocessing.scale, "low", "means and variances of columns, by scale"),
            (stats.zscore, "low", "means and variances of columns, by zscore"),
            (np.mean, "low", "averages of all rows, by mean"),
            (preprocessing.minmax_scale, "high", "smallest and largest values"),
            (preprocessing.maxabs_scale, "high", "by maxabs_scale"),
            (preprocessing.robust_scale, "high", "by robust_scale"),
            (preprocessing.quantile_transform, "high", "by quantile_transform"),
            (preprocessing.power_transform, "high", "by power_transform"),
            (partial(preprocessing.normalize, axis=0), "high", "mixed by normalize"),
            (stats.rankdata, "high", "mixed by rankdata"),
            (np.cumsum, "high", "mixed by cumsum"),
            (np.maximum.accumulate, "high", "mixed by accumulate"),
            (np.median, "high", "median"),
            (pd.get_dummies, "high", "by get_dummies"),
            (lambda df: pd.get_dummies(df), "high", "which labels occur by get_dummies"),
            (lambda X: X - X.mean(axis=0), "high", "mixed by mean"),
            (lambda X: X[::-1], "high", "rows are mixed"),
            (lambda df: df["day"].str[:4].map(df["day"].str[:4].value_counts()), "high", "value_counts"),
            (lambda X: X + np.random.normal(size=X.shape), "high", "from call to call"),  # noqa: NPY002
            (
                keeping(MEAN),
                "declared",
                "if what its function keeps (held) was not read off these rows: nobody checked",
            ),
            (lambda X: X - MEAN, "declared", "(MEAN)"),
            (np.frompyfunc(abs, 1, 1), "declared", "which is compiled"),
            (lambda df: df - pd.read_csv("means.csv"), "declared", "read_csv"),
            (lambda cells: [cell.strip() for cell in cells], "declared", "takes no made-up rows, so nobody checked"),
            ("log", "high", "unknown"),
        ],
    )
    def test_they_are_rated_by_what_they_do_and_hold(self, function, severity, words):
        (found,) = lint(FunctionTransformer(function))
        assert (found.severity, words in found.leaks) == (severity, True), found.leaks
        assert found.fix

    @pytest.mark.parametrize("stage", [FunctionTransformer, transformers.RowMap])
    def test_one_that_holds_on_to_an_estimator_carries_its_rows(self, stage):
        assert lint(stage(np.tanh)).severity == "none"
        for function in (partial(StandardScaler().transform), keeping([StandardScaler()])):
            (found,) = lint(stage(function))
            assert (found.severity, found.twin) == ("high", "Public")

    @pytest.mark.parametrize("place", ["kw_args", "inv_kw_args"])
    def test_arguments_are_carried_as_well(self, place):
        def stage(held):
            return FunctionTransformer(lambda X, by=None: X, lambda X, by=None: X, **{place: {"by": held}})

        assert lint(stage(None)).severity == "none"
        assert lint(stage(MEAN)).severity == "declared"
        assert lint(stage([MinMaxScaler()])).severity == "high"

    def test_the_inverse_is_one_of_them(self):
        assert lint(FunctionTransformer(np.tanh, inverse_func=StandardScaler().inverse_transform)).severity == "high"
        assert lint(FunctionTransformer(np.tanh, inverse_func=lambda X: X - X.mean())).severity == "high"

    def test_functions_of_other_estimators(self):
        around = partial(TransformedTargetRegressor, Ridge(), inverse_func=np.exp)
        assert lint(around(func=np.log)).findings[0].severity == "none"
        assert lint(around(func=lambda y: y - y.mean())).findings[0].severity == "high"
        assert lint(HashingVectorizer(preprocessor=str.lower)).severity == "none"
        assert lint(HashingVectorizer(analyzer=keeping(StandardScaler()))).severity == "high"
        assert lint(HashingVectorizer(analyzer=keeping({"a", "b"}))).severity == "declared"
