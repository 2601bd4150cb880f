"""What a whole pipeline really costs on the worst pair of neighbours found, against what its plan certifies.

With Gaussian noise the loss of a pair is exact: the distance of the two noiseless answers over the noise.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from adversary import World, attack
from effort import rounds
from neighbours import Pair

from ppdp import Domain, Pipeline
from ppdp.data.rows import Rows
from ppdp.mechanisms import GaussianMechanism
from ppdp.pipeline.execute import execute
from ppdp.pipeline.planning.plan import Plan
from ppdp.privacy.noise.sampler import Noise
from ppdp.transformers import MeanImputer, MinMaxScaler, NormClipper

CASES = [  # rows, columns, floor on the observed, most rows with gaps
    (120, 1, 60, None),
    (60, 1, 30, 30),
    (150, 2, 100, 50),
    (200, 2, 180, 20),
    (120, 3, 60, 60),
    (200, 3, 150, 50),
    (80, 5, 64, 16),
    (120, 3, 60, 90),
    (120, 3, 60, 36),
    (100, 2, 20, 70),
    (100, 2, 50, None),
    (100, 5, 50, None),
    (100, 2, 35, None),
    (200, 3, 60, None),
]


class NoNoise(Noise):
    """Answers as they are: the gate passes wherever a condition holds with room to spare."""

    def release(self, value, noise_scale, bound):
        return np.asarray(value, dtype=float)


def planned(n: int, d: int, floor: int, missing: int | None) -> Plan:
    imputer = MeanImputer(min_observed=floor, max_missing=missing, fit_mode="exact")
    pipe = Pipeline(
        [("clip", NormClipper()), ("impute", imputer), ("mean", GaussianMechanism())], gate=None, diagnostics=None
    )
    return pipe.plan(Domain(n_rows=n, n_features=d))


def exact_loss(plan: Plan, pair: Pair) -> float:
    """mu of everything that leaves: every noiseless answer's shift over its noise, added in squares."""
    left, right = (execute(plan, rows, NoNoise()).released for rows in (pair.left, pair.right))
    noise = {f"{plan.steps[r.at].name}.{r.statistic}": r.noise_scale for r in plan.releases}
    noise[f"{plan.mechanism.name}.answer"] = plan.mechanism.noise_scale
    assert left.keys() == noise.keys()
    return math.sqrt(sum((np.linalg.norm(left[k] - right[k]) / noise[k]) ** 2 for k in noise))


def constructed(n: int, d: int, floor: int, missing: int | None) -> Pair:
    """The pair of the proof: the replaced row loses its last entry, which lay on the other side of the mean.

    Slot 0 is replaced. ``floor`` rows give the mean of the last column, of them as few as possible with a gap in the
    first one; the rest has no entry at all and moves with the means.
    """
    gaps = n if missing is None else missing
    floor = max(floor, n - gaps)  # of the complete rows none can be spared
    X = np.zeros((n, d))
    left, right = np.zeros(d), np.zeros(d)
    if d == 1:  # the means follow the replaced row alone
        left[0], right[0] = 1.0, -1.0
        X[:gaps] = np.nan
    else:
        follow = min(1.0, (n - floor) / gaps)  # share of the rows with gaps that also follow the last column
        turned = min(follow**2 / (2 - follow**2), math.sqrt(0.5))
        X[:, -1] = -1.0
        X[:gaps, 0] = np.nan
        X[: min(gaps, n - floor)] = np.nan
        left[0], left[-1] = math.sqrt(1 - turned**2), turned
        right[0], right[-1] = -1.0, np.nan
    Z = X.copy()
    X[0], Z[0] = left, right
    return Pair(Rows.of(X), Rows.of(Z))


def worst_share(n: int, d: int, floor: int, missing: int | None) -> float:
    """The largest share of the certified mu that a pair of neighbours uses up."""
    plan = planned(n, d, floor, missing)
    assert [step.way.name for step in plan.steps] == ["public", "exact"]
    domain = Domain(n_rows=n, n_features=d, row_norm=1.0, entry_bound=1.0)
    world = World(domain, gaps=n if missing is None else missing)
    start = constructed(n, d, floor, missing)
    best, pair = attack(world, lambda p: exact_loss(plan, p) / plan.loss.mu, draws=20, steps=rounds(75), first=[start])
    differing = (np.nan_to_num(pair.left.X, nan=9) != np.nan_to_num(pair.right.X, nan=9)).any(axis=1)
    assert differing.sum() == 1
    assert max(rows.incomplete.sum() for rows in (pair.left, pair.right)) <= world.gaps
    return best


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.repeated("case", keep=3)
def test_mean_imputation_and_gaussian_mean(case):
    """Between 0.9 and 1.0 of the certified mu."""
    assert 0.9 <= worst_share(*case) <= 1.0


@pytest.mark.parametrize("d", [1, 2, 5])
def test_with_public_ranges_any_row_may_have_gaps(d):
    """As in the main job: entries are bounded, so means that follow one row cost what is certified."""
    n = 100
    stages = [("range", MinMaxScaler(ranges=(-1, 1))), ("impute", MeanImputer(fit_mode="exact"))]
    plan = Pipeline([*stages, ("mean", GaussianMechanism())], diagnostics=None).plan(Domain(n_rows=n, n_features=d))
    X = np.full((n, d), np.nan)
    Z = X.copy()
    X[0], Z[0] = 1.0, -1.0
    assert 0.97 <= exact_loss(plan, Pair(Rows.of(X), Rows.of(Z))) / plan.loss.mu <= 1.0


def test_rows_alone():
    """Without a fitted stage one replaced row reaches the certificate, up to rounding."""
    pipe = Pipeline([("clip", NormClipper()), ("mean", GaussianMechanism())], diagnostics=None)
    plan = pipe.plan(Domain(n_rows=100, n_features=2))
    X = np.zeros((100, 2))
    Z = X.copy()
    X[0], Z[0] = (1, 0), (-1, 0)
    assert 1 - 1e-5 <= exact_loss(plan, Pair.of(X, Z)) / plan.loss.mu <= 1
