"""Stages fitted outside a pipeline, at once or batch by batch: they claim only what is true of the map they became."""

from __future__ import annotations

import copy
import pickle
import traceback

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from ppdp import Adjacency, Distance, Domain, make_pipeline
from ppdp import transformers as S
from ppdp.exceptions import InvalidInput, MissingBound, MissingBudget
from ppdp.testing import REGISTRY

ONE = Adjacency.replace().distance
N = 4000
DOMAIN = Domain(n_rows=N, n_features=2, row_norm=1.0, entry_bound=1.0, max_missing=0)
READ = [S.StandardScaler(), S.SoftPCA(), S.GridQuantizer()]
FITTED = [*READ, S.MeanImputer(), S.MeanImputer(max_missing=0), S.StandardScaler(columns=[0])]
PUBLIC = [
    S.NormClipper(1.0),
    S.MinMaxScaler(ranges=(0, 1)),
    S.RowMap(np.tanh, out_ranges=(-1, 1), lipschitz=1.0),
    S.RandomProjection(2),
]


def neighbours() -> tuple[np.ndarray, np.ndarray]:
    """Small rows; in the second dataset the first of them is as long as the domain allows."""
    X = np.random.default_rng(0).uniform(-0.05, 0.05, (N, 2))
    other = X.copy()
    other[0] = 1.0, 0.0
    return X, other


@pytest.mark.parametrize("stage", READ, ids=repr)
def test_what_a_pipeline_proves_is_false_of_a_stage_that_reads_its_norm_off_the_rows(stage):
    """Many times the radius for the scaler and soft PCA, and thousands of rows that the quantizer moves by itself."""
    claimed = clone(stage).stability_map(DOMAIN, ONE)[1]
    left, right = (clone(stage).fit_transform(X) for X in neighbours())
    moved = np.linalg.norm(left - right, axis=1)[1:]
    assert moved.max() > 5 * claimed.radius
    assert (moved > 1e-9).sum() > max(claimed.moved / 2, 1000)


@pytest.mark.parametrize("claim", ["stability_map", "conditions", "sensitivity"])
@pytest.mark.parametrize("stage", FITTED, ids=repr)
def test_it_does_not_claim_it(stage, claim):
    fitted = clone(stage).fit(neighbours()[0])
    arguments = (DOMAIN,) if claim == "sensitivity" else (DOMAIN, ONE)
    for stage in (fitted, pickle.loads(pickle.dumps(fitted))):
        with pytest.raises(MissingBound):
            getattr(stage, claim)(*arguments)
    getattr(clone(fitted), claim)(*arguments)  # an unfitted one speaks of a pipeline


def test_nor_do_mean_labels_without_noise():
    domain = Domain(n_rows=40, n_features=1, row_norm=1.0, entry_bound=1.0, max_missing=0, classes=(0, 1))
    stage = S.TargetMeanEncoder([0]).fit(np.zeros((40, 1)), np.arange(40) % 2)
    with pytest.raises(MissingBound):
        stage.stability_map(domain, ONE)


@pytest.mark.parametrize("stage", PUBLIC, ids=repr)
def test_a_public_map_reads_nothing_so_its_claims_are_true(stage):
    moved = Distance(moved=3, radius=0.1)
    fitted = clone(stage).fit(neighbours()[0])
    assert fitted.stability_map(DOMAIN, moved) == stage.stability_map(DOMAIN, moved)


def test_claims_of_other_parameters_than_it_was_fitted_with_are_refused():
    with pytest.raises(MissingBound):
        S.NormClipper(1.0).fit(neighbours()[0]).set_params(max_norm=2.0).stability_map(DOMAIN, ONE)


def test_a_fitted_public_map_keeps_nothing_of_the_rows():
    """Not the extremes either, which were looked at to find infinities."""
    kept = pickle.dumps(S.NormClipper(5.0).fit(np.full((3, 2), 0.123456789)), protocol=0)
    assert b"0.1234567" not in kept
    assert b"0.1745927" not in kept  # the norm


BAD = {
    "objects": np.array([["Anna777", 1.0], [2.0, 3.0], [1.0, 2.0]], dtype=object),
    "text": np.array([["Anna777", "1"], ["2", "3"], ["1", "2"]]),
    "frame": pd.DataFrame({"a": ["Anna777", "x", "y"], "b": [1.0, 2.0, 3.0]}),
    "categories": pd.DataFrame({"a": pd.Categorical(["Anna777", "x", "y"]), "b": [1.0, 2.0, 3.0]}),
    "a list": [["Anna777", 1], [1, 2], [2, 3]],
    "a column": np.array([777.25, 1.0, 2.0]),
    "complex": np.array([[777.25j, 1], [1, 2], [2, 3]]),
    "far": np.array([[777e200, 1], [1, 2], [2, 3]]),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("name", REGISTRY)
@pytest.mark.repeated("bad", keep=4)
def test_errors_of_a_step_that_is_used_alone_quote_no_cell(name, bad):
    step, X = REGISTRY[name].example(), BAD[bad]
    calls = [lambda: step.fit(X, [0, 1, 0]), lambda: step.fit(X, ["Anna777", "b", "Anna777"])]
    if not hasattr(step, "noise_scale"):
        fitted = REGISTRY[name].example().fit(np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]), [0, 1, 0])
        calls += [lambda: getattr(fitted, "transform", fitted.fit)(X)]
    for call in calls:
        error = raised_by(call)
        if error is not None:
            assert "777" not in "".join(traceback.format_exception_only(error))
            assert "777" not in f"{error.__cause__} {error.__context__}"


def raised_by(call):
    """What a call raises, if it does."""
    try:
        call()
    except Exception as error:
        return error


STAGES = [
    S.StandardScaler(),
    S.StandardScaler(use_floor=False, clip=None, with_mean=False),
    S.StandardScaler(per_column=False),
    S.MinMaxScaler(ranges=(-1, 2)),
    S.MeanImputer(),
    S.MeanImputer(use_floor=False, columns=[0, 2]),
    S.MeanImputer(max_missing=0),
    S.PCA(),
    S.PCA(2),
    S.PCA(2, with_mean=True),
    S.PCA(2, with_mean=True, output="projected"),
    S.PCA(1, output="aligned", public_basis=np.eye(3)[:, :2]),
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
    stage = S.StandardScaler().partial_fit(np.full((4, 2), 0.123456))
    assert repr(stage) == repr(S.StandardScaler())
    assert "0.123" not in stage._repr_html_()
    assert "_batches" not in stage._repr_html_()


def test_the_first_batch_fixes_the_columns():
    frame = pd.DataFrame(rows(S.PCA()), columns=["a", "b", "c"])
    stage = S.StandardScaler().partial_fit(frame[:10])
    assert list(stage.feature_names_in_) == ["a", "b", "c"]
    assert stage.n_features_in_ == 3
    before = stage.transform(frame)
    for wrong in (frame[["b", "a", "c"]], frame[["a", "b"]], frame.assign(a=np.nan)):
        with pytest.raises(ValueError):
            stage.partial_fit(wrong)
    np.testing.assert_array_equal(stage.transform(frame), before)
    expected = S.StandardScaler().fit(frame).transform(frame)
    np.testing.assert_allclose(stage.partial_fit(frame[10:]).transform(frame), expected, rtol=0, atol=1e-12)


def test_nothing_is_claimed_and_nothing_noisy_is_fitted():
    facts = Domain(n_rows=300, n_features=3, row_norm=1.0)
    stage = S.StandardScaler().partial_fit(rows(S.PCA()))
    with pytest.raises(MissingBound):
        stage.stability_map(facts, facts.neighbours)
    with pytest.raises(MissingBudget):
        S.StandardScaler(fit_mode="noisy").partial_fit(rows(S.PCA()))


def test_what_needs_all_rows_or_spends_has_none():
    sorting = S.MedianImputer(), S.RobustScaler(), S.TrimmedMeanImputer(), S.MinMaxScaler(quantiles=(0.1, 0.9))
    for stage in (*sorting, S.RegressionImputer(), make_pipeline(S.StandardScaler(), S.PCA(1), epsilon=1.0)):
        assert not hasattr(stage, "partial_fit")


def test_ranges_far_wider_than_the_rows_are_taken_and_no_message_tells_of_the_rows():
    X = np.array([[3.25], [7.75], [5.0]])
    assert S.MinMaxScaler(ranges=(-1000, 1000)).fit_transform(X)[1, 0] == pytest.approx(0.00775)
    assert (S.MinMaxScaler(ranges=(100, 200)).fit_transform(X) == -1).all()
