"""Rows in the unit ball that adversaries of papers draw."""

import numpy as np


def ball(rng, n, d):
    """Rows of norm at most 1, some of them on the sphere."""
    X = rng.standard_normal((n, d))
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), rng.uniform(0.5, 2))


def neighbours(rng, n, d):
    X = ball(rng, n, d)
    Y = X.copy()
    Y[0] = ball(rng, 1, d)[0] if rng.random() < 0.5 else -X[0]
    return X, Y


def rows_around(rng, n, spread):
    """Rows at two places, and one that goes to the opposite of their mean: strained for scaling and components."""
    a, b = ball(rng, 2, len(spread)) * spread
    X = np.where(rng.random((n, 1)) < rng.uniform(0.05, 0.5), a, b)
    Y = X.copy()
    Y[0] = -X.mean(axis=0) / max(1e-9, np.linalg.norm(X.mean(axis=0)))
    return X, Y
