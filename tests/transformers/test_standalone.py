"""A stage fitted outside a pipeline claims only what is true of the map that it became."""

from __future__ import annotations

import pickle
import traceback

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from ppdp import Adjacency, Distance, Domain
from ppdp.exceptions import MissingBound
from ppdp.testing import REGISTRY
from ppdp.transformers import (
    GridQuantizer,
    MeanImputer,
    MinMaxScaler,
    NormClipper,
    RandomProjection,
    RowMap,
    SoftPCA,
    StandardScaler,
    TargetMeanEncoder,
)

ONE = Adjacency.replace().distance
N = 4000
DOMAIN = Domain(n_rows=N, n_features=2, row_norm=1.0, entry_bound=1.0, max_missing=0)
READ = [StandardScaler(), SoftPCA(), GridQuantizer()]
FITTED = [*READ, MeanImputer(), MeanImputer(max_missing=0), StandardScaler(columns=[0])]
PUBLIC = [
    NormClipper(1.0),
    MinMaxScaler(ranges=(0, 1)),
    RowMap(np.tanh, out_ranges=(-1, 1), lipschitz=1.0),
    RandomProjection(2),
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
@pytest.mark.parametrize(
    "stage", [*READ, MeanImputer(), MeanImputer(max_missing=0), StandardScaler(columns=[0])], ids=repr
)
def test_it_does_not_claim_it(stage, claim):
    fitted = clone(stage).fit(neighbours()[0])
    arguments = (DOMAIN,) if claim == "sensitivity" else (DOMAIN, ONE)
    for copy in (fitted, pickle.loads(pickle.dumps(fitted))):
        with pytest.raises(MissingBound):
            getattr(copy, claim)(*arguments)
    getattr(clone(fitted), claim)(*arguments)  # an unfitted one speaks of a pipeline


def test_nor_do_mean_labels_without_noise():
    domain = Domain(n_rows=40, n_features=1, row_norm=1.0, entry_bound=1.0, max_missing=0, classes=(0, 1))
    stage = TargetMeanEncoder([0]).fit(np.zeros((40, 1)), np.arange(40) % 2)
    with pytest.raises(MissingBound):
        stage.stability_map(domain, ONE)


@pytest.mark.parametrize("stage", PUBLIC, ids=repr)
def test_a_public_map_reads_nothing_so_its_claims_are_true(stage):
    moved = Distance(moved=3, radius=0.1)
    fitted = clone(stage).fit(neighbours()[0])
    assert fitted.stability_map(DOMAIN, moved) == stage.stability_map(DOMAIN, moved)


def test_claims_of_other_parameters_than_it_was_fitted_with_are_refused():
    with pytest.raises(MissingBound):
        NormClipper(1.0).fit(neighbours()[0]).set_params(max_norm=2.0).stability_map(DOMAIN, ONE)


def test_a_fitted_public_map_keeps_nothing_of_the_rows():
    """Not the extremes either, which were looked at to find infinities."""
    kept = pickle.dumps(NormClipper(5.0).fit(np.full((3, 2), 0.123456789)), protocol=0)
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
