"""MeanImputer with columns that may have gaps: behaviour, errors that teach, and what it saves."""

import math

import numpy as np
import pandas as pd
import pytest

from ppdp import Distance, Domain
from ppdp.exceptions import DomainMismatch, InvalidParameter
from ppdp.mechanisms import GaussianMechanism
from ppdp.pipeline.pipeline import Pipeline
from ppdp.transformers import MeanImputer, MinMaxScaler


def frame(n: int = 60) -> pd.DataFrame:
    X = pd.DataFrame(np.random.default_rng(0).uniform(-1, 1, size=(n, 3)), columns=["a", "b", "c"])
    X.iloc[::3, 0] = np.nan
    X.iloc[1, 1] = np.nan
    return X


def pipeline(**parameters: object) -> Pipeline:
    steps = [
        ("range", MinMaxScaler(ranges=(-1, 1))),
        ("impute", MeanImputer(**parameters)),
        ("mean", GaussianMechanism()),
    ]
    return Pipeline(steps, epsilon=1.0, delta=1e-3)


@pytest.mark.parametrize("columns", [["a"], [0], ["a", 0]])
def test_gaps_elsewhere_are_filled_with_zero(columns):
    X = frame()
    filled = MeanImputer(columns=columns).set_output(transform="pandas").fit_transform(X)
    assert filled.iloc[0, 0] == pytest.approx(X["a"].mean(), rel=1e-6)
    assert filled.iloc[1, 1] == 0.0
    assert not filled.isna().any(axis=None)


def test_all_columns_named_are_all_columns():
    X = frame()
    expected = MeanImputer().fit_transform(X)
    np.testing.assert_array_equal(MeanImputer(columns=["c", "a", "b"]).fit_transform(X), expected)


@pytest.mark.parametrize("statistics", ["exact", "noisy"])
def test_a_pipeline_is_certified_and_pays_less(statistics):
    facts = Domain(max_missing=0.5)
    some = pipeline(columns=["a"], statistics=statistics)
    some.set_params(domain=facts, gate=None).fit(frame())
    every = pipeline(statistics=statistics).set_params(domain=facts, gate=None)
    assert some.certificate_.verify()
    noise = [
        pipe.plan(Domain(n_rows=60, n_features=3, feature_names=("a", "b", "c"), max_missing=0.5))
        for pipe in (some, every)
    ]
    if statistics == "exact":
        assert noise[0].mechanism.noise_scale < 0.8 * noise[1].mechanism.noise_scale
    else:
        assert noise[0].releases[0].noise_scale < 0.8 * noise[1].releases[0].noise_scale
        twin = some["impute"]
        assert twin.mean_[0] != 0
        assert twin.mean_[1] == twin.mean_[2] == 0


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        (["z"], DomainMismatch),
        ([3], DomainMismatch),
        ("a", InvalidParameter),
        ([], InvalidParameter),
        ([0.5], InvalidParameter),
    ],
)
def test_columns_that_do_not_exist(columns, error):
    with pytest.raises(error, match="columns"):
        MeanImputer(columns=columns).fit(frame())


@pytest.mark.parametrize("stage", [MeanImputer(max_missing=2), MeanImputer(min_observed=8, floor=False)], ids=repr)
def test_what_no_neighbour_changes_holds_for_ever_or_not_at_all(stage):
    """Rows that move keep their gaps: the margin is infinite where the condition holds, and 0 where it fails."""
    X = np.full((10, 1), 0.5)
    (*_, condition) = stage.set_params(statistics="exact").conditions(
        Domain(n_rows=10, n_features=1, row_norm=1.0, min_present=10), Distance(moved=3, radius=0.1)
    )
    assert condition.unit == 0
    X[:2] = np.nan
    assert condition.margin(X) == math.inf
    X[:3] = np.nan
    assert condition.margin(X) == 0.0
