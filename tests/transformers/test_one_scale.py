"""StandardScaler(per_column=False): one scale for all columns."""

import math

import numpy as np
import pytest

from ppdp import Adjacency, Domain, Pipeline, make_pipeline
from ppdp.bounds import lookup
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.transformers import NormClipper, StandardScaler

ONE = Adjacency.replace().distance


def table(n=3000):
    rng = np.random.default_rng(0)
    return np.column_stack([rng.uniform(-0.9, 0.9, n), rng.uniform(-0.2, 0.4, n)])


def test_columns_keep_their_proportions():
    X = table()
    stage = StandardScaler(per_column=False, clip=None).fit(X)
    scaled = stage.transform(X)
    assert np.ptp(stage.scale_) == 0
    assert stage.scale_[0] == pytest.approx(math.sqrt(X.var(axis=0).sum()))
    np.testing.assert_allclose(scaled, (X - X.mean(axis=0)) / stage.scale_[0], atol=1e-12)
    assert np.mean(np.sum(scaled**2, axis=1)) == pytest.approx(1.0)


def test_the_floor_and_the_clip_are_those_of_whole_rows():
    X = np.full((20, 3), 0.5)
    X[0] = -0.5
    stage = StandardScaler(per_column=False).fit(X)
    norm = 0.5 * math.sqrt(3)  # what is read off the rows outside a pipeline
    assert stage.scale_ == pytest.approx(np.full(3, max(0.25 * norm, norm * 2 * math.sqrt(0.05 * 0.95))))
    assert stage.clip_ == 2.0
    assert np.linalg.norm(stage.transform(X), axis=1).max() == pytest.approx(2.0)
    flat = StandardScaler(per_column=False).fit(np.full((20, 3), 0.5))
    assert flat.scale_ == pytest.approx(np.full(3, 0.25 * norm))


@pytest.mark.parametrize("floor", [True, False])
@pytest.mark.parametrize("statistics", ["noisy", "exact"])
def test_in_a_pipeline(floor, statistics):
    X = table()
    y = (X[:, 0] > 0).astype(int)
    pipe = Pipeline(
        [
            ("clip", NormClipper()),
            ("scale", StandardScaler(0.1, floor=floor, per_column=False, statistics=statistics)),
            ("model", LogisticRegression(classes=(0, 1), max_iter=10)),
        ],
        epsilon=5.0,
        delta=1e-5,
    ).fit(X, y)
    assert pipe.certificate_.verify()
    assert statistics == "exact" or pipe.score(X, y) > 0.9  # the exact way adds too much noise for so few rows
    assert np.ptp(pipe["scale"].scale_) == 0
    assert pipe["scale"].scale_[0] == pytest.approx(math.sqrt(X.var(axis=0).sum()), rel=0.1)
    assert pipe["scale"].scale_[0] != StandardScaler(0.1, per_column=False).fit(X).scale_[0]  # released with noise


def test_the_condition_is_one_about_the_sum_of_variances():
    """One column may be constant."""
    X = table()
    X[:, 1] = 0.1
    stage = StandardScaler(0.3, floor=False, per_column=False, statistics="exact")
    pipe = make_pipeline(NormClipper(), stage, GaussianMechanism(), epsilon=3.0, delta=1e-5).fit(X)
    assert pipe.certificate_.verify()
    (condition,) = pipe.certificate_.to_dict()["steps"][1]["conditions"]
    assert "add up" in condition["statement"]
    each = StandardScaler(0.3, floor=False, statistics="exact")
    domain = Domain(n_rows=len(X), n_features=2, row_norm=1.0, max_missing=0)
    assert [found.margin(X) for found in each.conditions(domain, ONE)] == [0.0]


def test_a_formula_that_says_nothing_means_one_scale_per_column():
    domain = Domain(n_rows=100, n_features=3, row_norm=1.0, max_missing=0)
    scaling = lookup("scaling.standard", "stability")
    parameters = {"min_std": 0.2, "conditional": False, "clip": 3.0}
    silent = scaling(domain, ONE, **parameters)
    assert silent == scaling(domain, ONE, **parameters, per_column=True)
    assert silent != scaling(domain, ONE, **parameters, per_column=False)
