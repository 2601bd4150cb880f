"""Norms of rows are right wherever float64 can say them; equal rows are clipped equally wherever they stand."""

import numpy as np
import pytest

from ppdp.data.statistics import clip_norms, row_norms


@pytest.mark.parametrize("factor", [1e-200, 1.0, 1e200])
def test_a_norm_does_not_overflow_or_vanish(factor):
    X = np.array([[3.0, 4.0], [0.0, 0.0], [np.nan, 2.0], [np.nan, np.nan]])
    np.testing.assert_allclose(row_norms(X * factor), np.array([5.0, 0.0, 2.0, 0.0]) * factor, rtol=1e-15)


@pytest.mark.parametrize("d", [1, 2, 7, 100, 300])
def test_equal_rows_are_clipped_equally(d):
    """Whatever stands before them, and in whatever layout."""
    rng = np.random.default_rng(d)
    row = rng.standard_normal(d)
    bound = float(row_norms(row[None])[0]) * 0.7
    clipped = clip_norms(row[None], bound)[0]
    for before in (1, 5, 1000, 3001):
        X = np.vstack([rng.standard_normal((before, d)), row, rng.standard_normal((2, d))])
        for layout in (X, np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2]):
            assert (clip_norms(layout, bound)[before] == clipped).all()


def test_no_clipped_row_is_longer_than_the_bound():
    X = np.random.default_rng(0).standard_normal((2000, 20)) * np.logspace(-3, 3, 2000)[:, None]
    X[::5] /= np.linalg.norm(X[::5], axis=1, keepdims=True)
    assert max(np.linalg.norm(clip_norms(X, 1.0), axis=1)) <= 1.0 + 1e-15
