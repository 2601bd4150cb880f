"""Parts of their ranges in which columns lie, as noisy shares show them."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from ppdp.bounds.release import TAIL_CELLS, TURN_CELLS
from ppdp.core.domain import Domain
from ppdp.data.rows import Rows
from ppdp.data.tails import EDGES, TURN, WEIGHT, Parts, tail_shares

N, NOISE = 20_000, 0.005
COLUMNS = {
    "the whole range": lambda rng: rng.uniform(-1, 1, N),
    "around the middle": lambda rng: 1e-3 * rng.standard_normal(N),
    "at the low end": lambda rng: 2e-4 * rng.exponential(size=N) - 1,
    "a long tail at the high end": lambda rng: 1 - np.minimum(1e-3 * rng.lognormal(size=N), 1.0),
    "close together": lambda rng: 3e-3 * rng.standard_normal(N) - 0.33,
    "close together, around an edge of cells": lambda rng: 3e-3 * rng.standard_normal(N) + 0.25,
    "zeros and ones": lambda rng: rng.integers(0, 2, N) * 2.0 - 1,
}


def parts_of(X, bound=1.0, gaps=0.0):
    """As they follow from a release, with the means and squares that are measured there; a share is missing."""
    rng, domain = np.random.default_rng(1), Domain(n_rows=N, n_features=1, row_norm=bound, entry_bound=bound)
    domain, X = domain.but(max_missing=gaps), np.where(np.random.default_rng(2).random(N) < gaps, np.nan, X)
    release = SimpleNamespace(parameters={}, noise_scale=NOISE)
    rows = Rows.of(X[:, None])
    answer = tail_shares(rows, None, bound) + NOISE * rng.standard_normal(TAIL_CELLS + TURN_CELLS)
    parts = Parts.of(answer, domain, release)
    return parts, parts.moments(np.append(answer, parts.measured(rows, None) + NOISE * rng.standard_normal(2)), NOISE)


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize(("bound", "gaps"), [(1.0, 0.0), (3.0, 0.0), (3.0, 0.3)])
def test_means_and_deviations_are_told_in_the_units_of_the_rows(column, bound, gaps):
    X = bound * COLUMNS[column](np.random.default_rng(0))
    parts, (mean, squares, spread) = parts_of(X, bound, gaps)
    filled = X.std() * math.sqrt(1 - gaps)  # what is missing is the mean behind it
    assert np.mean(np.abs(X - parts.middle) <= parts.half) > 0.97
    assert abs(parts.observed + gaps - 1) <= 4 * parts.unsure
    assert mean == pytest.approx(X.mean(), abs=0.2 * X.std())
    assert squares == pytest.approx(X.mean() ** 2 + filled**2, abs=bound * X.std())
    assert 0.5 < spread / filled < 1.7


def test_where_one_cell_alone_is_seen_rows_may_be_anywhere():
    X = np.where(np.arange(N) % 200 == 0, 0.9, -1.0)
    parts, (_, _, spread) = parts_of(X)
    assert (parts.middle, parts.half) == (0.0, 1.0)
    assert 0.5 < spread / X.std() < 1.7


def test_every_row_is_in_one_cell_with_its_weight_in_any_order():
    rng = np.random.default_rng(0)
    X, weight = np.append(rng.uniform(-1, 1, (9000, 2)), [[-1, 1], [0, -0.5]], axis=0), rng.integers(0, 3, 9002) / 2
    X[::7, 0] = np.nan
    shares = tail_shares(Rows(X, None, weight), [1, 0], 1.0)
    observed = weight * ~np.isnan(X[:, 0])
    turns = np.minimum(X, 1 - 1e-9) % TURN
    counts = [
        np.histogram(np.nan_to_num(values[:, j], nan=0.1), edges, weights=own)[0]
        for values, edges in ((X, EDGES), (turns, np.linspace(0, TURN, TURN_CELLS + 1)))
        for j, own in ((1, weight), (0, observed))
    ]
    assert shares == pytest.approx(WEIGHT * np.concatenate(counts) / 9002)
    assert tail_shares(Rows(X[::-1].copy(), None, weight[::-1].copy()), [1, 0], 1.0).tolist() == shares.tolist()
