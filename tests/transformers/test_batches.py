"""Stages that are fitted alone, batch by batch."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from ppdp import Domain, make_pipeline
from ppdp.exceptions import InvalidInput, MissingBound, MissingBudget
from ppdp.transformers import (
    PCA,
    MeanImputer,
    MedianImputer,
    MinMaxScaler,
    RegressionImputer,
    RobustScaler,
    StandardScaler,
    TrimmedMeanImputer,
)

STAGES = [
    StandardScaler(),
    StandardScaler(floor=False, clip=None, with_mean=False),
    StandardScaler(per_column=False),
    MinMaxScaler(ranges=(-1, 2)),
    MeanImputer(),
    MeanImputer(floor=False, columns=[0, 2]),
    MeanImputer(max_missing=0),
    PCA(),
    PCA(2),
    PCA(2, center=True),
    PCA(2, center=True, output="projected"),
    PCA(1, output="aligned", basis=np.eye(3)[:, :2]),
]
every = pytest.mark.parametrize("stage", STAGES, ids=repr)


def rows(stage, n=300):
    """The first batch is of zeros, the largest entries come late, and so do gaps."""
    X = np.random.default_rng(3).standard_normal((n, 3)) * [1.0, 0.8, 0.6] + [0.3, 0.0, 0.2]
    X[:7] = 0.0
    X[-1] *= 3
    if stage.allows_gaps:
        X[100:130, 0] = X[-5:, 1] = np.nan
        X[7:9] = np.nan
    return X


def batches(X):
    return np.split(X, [7, 9, 10, 110])


def fitted(stage, X):
    stage = clone(stage)
    for batch in batches(X):
        assert stage.partial_fit(batch) is stage
    return stage


@every
def test_batches_give_what_all_rows_give(stage):
    X = rows(stage)
    one, all_at_once = fitted(stage, X), clone(stage).fit(X)
    np.testing.assert_allclose(one.transform(X), all_at_once.transform(X), rtol=0, atol=1e-12)
    for name, value in all_at_once.held().items():
        if name != "components" and value is not None:  # of which the signs are free
            np.testing.assert_allclose(one.held()[name], value, rtol=0, atol=1e-12)
        assert (one.held()[name] is None) == (value is None)


@every
def test_clone_and_fit_forget_the_batches(stage):
    X = rows(stage)
    used = fitted(stage, X * 5)
    np.testing.assert_array_equal(fitted(used, X).transform(X), fitted(stage, X).transform(X))
    np.testing.assert_array_equal(used.fit(X).transform(X), clone(stage).fit(X).transform(X))
    assert used._batches is None


@every
def test_no_pickle_and_no_copy_holds_sums_nor_does_a_fit(stage):
    X = rows(stage)
    used = fitted(stage, X)
    assert used._batches is not None
    assert clone(stage).fit(X)._batches is None
    for without in (pickle.loads(pickle.dumps(used)), copy.deepcopy(used)):
        assert without._batches == ()
        np.testing.assert_allclose(without.transform(X), used.transform(X), rtol=0, atol=1e-12)
        with pytest.raises(InvalidInput, match=r"holds no sums.*begin with the first batch"):
            without.partial_fit(X)
    used.partial_fit(X)  # what was pickled goes on


def test_a_description_holds_nothing_of_the_rows():
    stage = StandardScaler().partial_fit(np.full((4, 2), 0.123456))
    assert repr(stage) == repr(StandardScaler())
    assert "0.123" not in stage._repr_html_()
    assert "_batches" not in stage._repr_html_()


def test_the_first_batch_fixes_the_columns():
    frame = pd.DataFrame(rows(PCA()), columns=["a", "b", "c"])
    stage = StandardScaler().partial_fit(frame[:10])
    assert list(stage.feature_names_in_) == ["a", "b", "c"]
    assert stage.n_features_in_ == 3
    before = stage.transform(frame)
    for wrong in (frame[["b", "a", "c"]], frame[["a", "b"]], frame.assign(a=np.nan)):
        with pytest.raises(ValueError):
            stage.partial_fit(wrong)
    np.testing.assert_array_equal(stage.transform(frame), before)
    expected = StandardScaler().fit(frame).transform(frame)
    np.testing.assert_allclose(stage.partial_fit(frame[10:]).transform(frame), expected, rtol=0, atol=1e-12)


def test_nothing_is_claimed_and_nothing_noisy_is_fitted():
    facts = Domain(n_rows=300, n_features=3, row_norm=1.0)
    stage = StandardScaler().partial_fit(rows(PCA()))
    with pytest.raises(MissingBound):
        stage.stability_map(facts, facts.neighbours)
    with pytest.raises(MissingBudget):
        StandardScaler(statistics="noisy").partial_fit(rows(PCA()))


def test_what_needs_all_rows_or_spends_has_none():
    sorting = MedianImputer(), RobustScaler(), TrimmedMeanImputer(), MinMaxScaler(quantiles=(0.1, 0.9))
    for stage in (*sorting, RegressionImputer(), make_pipeline(StandardScaler(), PCA(1), epsilon=1.0)):
        assert not hasattr(stage, "partial_fit")
