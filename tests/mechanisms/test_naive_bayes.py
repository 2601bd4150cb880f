"""Naive Bayes: scikit-learn's as rows grow in number, and refusals before the charge."""

import numpy as np
import pandas as pd
import pytest
from sklearn import naive_bayes

from ppdp import Domain, Pipeline
from ppdp.exceptions import InvalidParameter, PpdpError, UnknownParameter, UnsupportedOrder
from ppdp.mechanisms import GaussianNB
from ppdp.transformers import MinMaxScaler

N = 3000
DRAWS = np.random.default_rng(0)
Y = DRAWS.integers(3, size=N)
X = np.clip(0.5 + (Y[:, None] - 1) * [0.2, -0.1] + 0.1 * DRAWS.standard_normal((N, 2)), 0, 1)


def fitted(rows=X, y=Y, *, epsilon=5.0, model=None, **more):
    steps = [("range", MinMaxScaler(ranges=(0, 1))), ("model", model or GaussianNB((0, 1, 2)))]
    return Pipeline(steps, epsilon=epsilon, delta=1e-6, random_state=0, **more).fit(rows, y)


def test_it_is_scikit_learns_but_for_noise():
    pipe = fitted()
    theirs = naive_bayes.GaussianNB().fit(2 * X - 1, Y)
    assert np.abs(pipe[-1].theta_ - theirs.theta_).max() < 0.02
    assert np.abs(pipe[-1].class_prior_ - theirs.class_prior_).max() < 0.01
    assert np.abs(pipe.predict_proba(X) - theirs.predict_proba(2 * X - 1)).mean() < 0.02
    assert pipe.certificate_.verify()


def test_released_means_and_deviations_are_told_by_column_and_in_raw_units():
    ranges = {"dose": (0, 1), "age": (20, 70)}
    rows = pd.DataFrame(X * [1, 50] + [0, 20], columns=[*ranges])
    steps = [("range", MinMaxScaler(ranges=ranges)), ("model", GaussianNB((0, 1, 2)))]
    pipe = Pipeline(steps, epsilon=5.0, delta=1e-6, random_state=0).fit(rows, Y)
    told = pipe.release_.to_pandas().query("step == 'model'").set_index(["statistic", "column"])["raw_value"]
    assert len(told) == 3 + 2 * 3 * 2
    for label, own in rows.groupby(Y):
        assert told[f"rows of {label}", ""] == pytest.approx(len(own), rel=0.05)
        for column in ranges:
            assert told[f"mean among {label}", column] == pytest.approx(own[column].mean(), rel=0.05)
            assert told[f"standard deviation among {label}", column] == pytest.approx(own[column].std(), rel=0.1)


def test_more_noise_than_rows_leaves_a_model_of_all_rows():
    model = fitted(X[:60], Y[:60], epsilon=0.1)[-1]
    assert np.isfinite(model.predict_log_proba(X)).all()
    assert model.class_prior_.min() > 0.15
    assert (model.var_ > 0).all()


@pytest.mark.parametrize(
    ("model", "error"), [(GaussianNB((0,)), InvalidParameter), (GaussianNB((0, 1, 2), var_smoothing=-1.0), PpdpError)]
)
def test_what_is_refused(model, error):
    with pytest.raises(error):
        fitted(model=model)


def test_missing_values_and_priors_are_refused_with_what_to_write():
    with pytest.raises(UnsupportedOrder, match="missing") as refused:
        GaussianNB((0, 1)).query_spec(Domain(n_rows=9, n_features=2, row_norm=1.0))
    assert "imputer" in refused.value.fix
    with pytest.raises(UnknownParameter, match="priors"):
        GaussianNB((0, 1), priors=[0.5, 0.5])
