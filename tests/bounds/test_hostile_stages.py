"""Pairs of neighbouring datasets that once exceeded what was certified, each kept with the step that was wrong.

A plan is executed without noise on both, the second time with the answers of the first; every answer may change by its
sensitivity and no more. A plan that is refused in public words promises nothing, which is as good.
"""

import numpy as np
import pytest
from neighbours import ROUNDING, Pair
from sklearn.base import BaseEstimator, TransformerMixin

from ppdp import Adjacency, Domain, make_pipeline
from ppdp import transformers as S
from ppdp.exceptions import PpdpError
from ppdp.mechanisms import GaussianMechanism
from ppdp.pipeline.execute import execute

NEIGHBOURS = Adjacency.replace().distance


class Answers:
    """Noise that adds nothing: it notes exact answers, and gives those of an earlier run if there was one."""

    def __init__(self, given=()):
        self.exact, self.given = [], list(given)

    def release(self, value, noise_scale, bound):
        value = np.clip(np.nan_to_num(np.asarray(value, dtype=np.float64)), -bound, bound)
        self.exact.append(value)
        return self.given[len(self.exact) - 1] if self.given else value


def largest_share(steps, domain, pair):
    """The largest change of an answer as a share of its sensitivity; 0 if the plan is refused."""
    try:
        plan = make_pipeline(*steps, GaussianMechanism(), epsilon=1.0, delta=1e-6, gate=None, diagnostics=None).plan(
            domain
        )
    except PpdpError:
        return 0.0
    with np.errstate(all="ignore"):
        left = Answers()
        execute(plan, pair.left, left)
        right = Answers(left.exact)
        execute(plan, pair.right, right)
    sensitivities = [*(release.sensitivity for release in plan.releases), plan.mechanism.sensitivity]
    changes = [float(np.linalg.norm(a - b)) for a, b in zip(left.exact, right.exact, strict=True)]
    return max(change / most for change, most in zip(changes, sensitivities, strict=True))


class Crooked(TransformerMixin, BaseEstimator):
    """The identity, up to 1e-6 that depends on where a row stands and on the sum of all rows."""

    def __init__(self):
        self.n_features_in_ = 1

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X + 1e-6 * (X.sum() > 0) * np.arange(len(X))[:, None] / len(X)


def from_centre_to_centre():
    """Every row of a cluster moves by 2 eta, and there are more than n times eta in all: n may not cap the total."""
    ends = np.array([[-1e-6, 1 - 1e-9]]), np.array([[-1e-6, -1 + 1e-9]])
    pair = Pair.of(*(np.vstack([end, np.zeros((9, 2))]) for end in ends))
    return [S.ClusterQuantizer(radius=1.0, max_cluster=10)], Domain(n_rows=10, n_features=2, row_norm=1.0), pair


def raw_rows_that_rounding_moved(*stages):
    """A public map whose rounding depends on the other rows leaves no raw rows behind it."""
    left = np.repeat([[-1.0], [-0.5], [0.5]], [1, 49, 50], axis=0)
    right = left.copy()
    right[0] = 1.0
    public = S.Public(Crooked(), lipschitz=1.0, row_norm=1.0, rounding=1e-5)
    return [public, *stages], Domain(n_rows=100, n_features=1, row_norm=1.0), Pair.of(left, right)


def one_zero_for_another(*stages, ends=(-0.0, 0.0)):
    """Two records that count as equal must look equal to a user's function, which can tell -0 from 0."""
    right = np.full((100, 1), ends[1])
    left = right.copy()
    left[0], right[0] = ends[0], 0.9
    reciprocal = S.RowMap(lambda X: 1 / X, out_ranges=(-1, 1))
    return [*stages, reciprocal], Domain(n_rows=100, n_features=1, row_norm=1.0), Pair.of(left, right)


def a_cell_beyond_float64():
    """The number of a cell may overflow where rows have no bound yet; infinity becomes NaN, and NaN spoils sums."""
    left = np.random.default_rng(0).uniform(0.5, 1, (100, 2))
    right = left.copy()
    right[0] = 1e300
    steps = [S.GridDeduplicator(cell_width=1e-20), S.NormClipper(), S.PCA(1, fit_mode="noisy")]
    return steps, Domain(n_rows=100, n_features=2), Pair.of(left, right)


@pytest.mark.parametrize(
    "case",
    [
        from_centre_to_centre(),
        raw_rows_that_rounding_moved(S.Deduplicator(compare="raw")),
        raw_rows_that_rounding_moved(S.GridDeduplicator(1e-8, keep="soft", compare="raw")),
        raw_rows_that_rounding_moved(S.LSHDeduplicator(1, rows_per_band=1, compare="raw")),
        one_zero_for_another(S.Deduplicator()),
        one_zero_for_another(S.GridQuantizer(0.5), S.Deduplicator(), ends=(-0.2, 0.2)),
        a_cell_beyond_float64(),
    ],
    ids=lambda case: ", ".join(type(step).__name__ for step in case[0]),
)
def test_no_answer_changes_by_more_than_its_sensitivity(case):
    assert largest_share(*case) <= ROUNDING


@pytest.mark.parametrize("stage", [S.ClusterDeduplicator, S.ClusterQuantizer])
@pytest.mark.parametrize("length", [1e160, 1e308])
def test_one_huge_row_changes_the_crowding_by_at_most_1(stage, length):
    rows = np.random.default_rng(0).uniform(-1, 1, (50, 2))
    huge = rows.copy()
    huge[0] = length, -length
    stage = stage(radius=1e-3, max_cluster=30)
    (way,) = stage.fit_modes(Domain(n_rows=50, n_features=2, min_present=50), NEIGHBOURS)
    pair = Pair.of(rows, huge)
    margins = [way.conditions[0].margin(side) for side in (pair.left, pair.right)]
    assert abs(margins[0] - margins[1]) <= 1
    assert stage.apply(pair.right, {}).n == 50  # and it does not fail, which would be an answer
