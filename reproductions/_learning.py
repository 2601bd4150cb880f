"""Noisy gradient descent for many runs at once, on rows that are held in few coordinates of a large space.

All that happens to the rows here (second moments, projectors, gradients, isotropic noise, balls) commutes with
rotations of the space. So rows in a subspace of dimension r are held as r numbers each, and the other coordinates only
where there is noise. Nothing is approximated: runs have the same distribution as with all columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import qr
from scipy.sparse import block_array
from scipy.sparse.linalg import eigsh
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression

from ppdp.core.domain import Domain

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Data:
    """Rows in the unit ball of ``columns`` columns, of which ``X`` holds those that are not zero."""

    X: Array
    y: Array
    columns: int

    @property
    def domain(self) -> Domain:
        """Public facts."""
        return Domain(n_rows=len(self.X), n_features=self.columns, row_norm=1.0, max_missing=0, classes=(0, 1))

    @cached_property
    def moment(self) -> Array:
        """Second moment of the columns that are not zero."""
        X = self.X.astype(np.float64)
        return X.T @ X / len(X)

    @property
    def zero_risk(self) -> float:
        """How much more the model 0 has: what a refusal leaves."""
        return math.log(2) - self.least_risk

    def eigengap(self, k: int) -> float:
        """``λ_k - λ_{k+1}``."""
        values = np.linalg.eigvalsh(self.moment)[::-1]
        return float(values[k - 1] - values[k])

    @cached_property
    def least_risk(self) -> float:
        """Mean logistic loss of the best linear model without an intercept."""
        model = PlainLogisticRegression(C=1e9, fit_intercept=False, solver="newton-cholesky", tol=1e-10, max_iter=1000)
        X = self.X.astype(np.float64)
        return float(losses(X, self.y, model.fit(X, self.y).coef_)[0])


def classification(n: int, columns: int, rank: int, tail: int, seed: int, share: float = 0.05) -> Data:
    """Two classes, as the paper's generator makes them, in ``rank`` directions; ``tail`` more hold a small share.

    The spectrum is flattened and rows have norm 1: no data in the unit ball have a wider eigengap than this, but for
    the tail.
    """
    Z, y = make_classification(
        n, rank, n_informative=rank, n_redundant=0, n_clusters_per_class=1, flip_y=0.01, random_state=seed
    )
    rng = np.random.default_rng(seed)
    head = Z @ np.linalg.inv(np.linalg.cholesky(Z.T @ Z / n)).T
    parts = [(head, 1 - share), (rng.standard_normal((n, tail)), share)]
    X = np.hstack([math.sqrt(part) * rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows, part in parts])
    return Data((X * (1 - 1e-6)).astype(np.float32), y.astype(np.float32), columns)


def losses(X: Array, y: Array, theta: Array) -> Array:
    """Mean logistic loss of every model, (m, r)."""
    total = np.zeros(len(theta))
    for rows in _blocks(len(X)):
        signed = X[rows] @ theta.T.astype(X.dtype)
        signed *= (1 - 2 * y[rows].astype(X.dtype))[:, None]
        total += (np.maximum(signed, 0) + np.log1p(np.exp(-np.abs(signed)))).sum(axis=0, dtype=np.float64)
    return total / len(X)


def _blocks(n: int) -> list[slice]:
    """Rows that are worked on together: few enough to stay near the processor."""
    return [slice(start, start + 4096) for start in range(0, n, 4096)]


@dataclass(frozen=True)
class Runs:
    """Settings of runs: noise of the mean gradient per step, step sizes, radii of the ball, all of length m."""

    noise: Array
    step: Array
    radius: Array
    steps: int


def train(X: Array, y: Array, columns: int, runs: Runs, rng: np.random.Generator) -> Array:
    """Descent as in ppdp (momentum, projection, average of the last half; usual steps only), all runs together.

    Returns
    -------
    array of shape (m, r)
        The coordinates that rows of X have.
    """
    m, r = len(runs.noise), X.shape[1]
    noise = runs.noise[:, None] * np.concatenate(
        [rng.standard_normal((runs.steps, m, r)), _elsewhere(columns - r, runs.steps, m, rng)], axis=2
    )
    theta, ahead, total = np.zeros_like(noise[0]), np.zeros_like(noise[0]), np.zeros((m, r))
    for t, gradient in enumerate(noise, start=1):
        gradient[:, :r] += _mean_gradient(X, y, ahead[:, :r])
        last, theta = theta, _in_ball(ahead - runs.step[:, None] * gradient, runs.radius)
        ahead = _in_ball(theta + t / (t + 3) * (theta - last), runs.radius)
        if t > runs.steps // 2:
            total += theta[:, :r]
    return total / (runs.steps - runs.steps // 2)


def _mean_gradient(X: Array, y: Array, theta: Array) -> Array:
    """Of the logistic loss, for every model."""
    half, total = X.dtype.type(0.5), np.zeros_like(theta)
    for rows in _blocks(len(X)):
        scores = X[rows] @ theta.T.astype(X.dtype)
        scores *= half
        np.tanh(scores, out=scores)
        scores *= half
        scores -= (y[rows].astype(X.dtype) - half)[:, None]
        total += scores.T @ X[rows]
    return total / len(X)


def _elsewhere(columns: int, steps: int, m: int, rng: np.random.Generator) -> Array:
    """Standard noise of every step in columns where no row lies, (steps, m, at most ``steps``).

    It matters by lengths and angles only. So the noise of all steps is rotated into as many coordinates as steps.
    """
    if columns <= steps:
        return rng.standard_normal((steps, m, columns))
    return _triangles(m, columns, steps, rng).transpose(2, 0, 1)


def _in_ball(theta: Array, radius: Array) -> Array:
    norms = np.linalg.norm(theta, axis=1)
    return np.asarray(theta * np.minimum(1.0, radius / np.maximum(norms, 1e-300))[:, None])


def noisy_components(moment: Array, noise: float, columns: int, k: int, rng: np.random.Generator) -> Array:
    """Leading eigenvectors of a second moment with symmetric Gaussian noise in all columns, (k, r): what rows see.

    Entries off the diagonal have standard deviation ``noise``, on it √2 as much. Rotations of the columns in which no
    row lies bring the noise there into blocks beside the diagonal, whose law is known: the triangular factor of a
    Gaussian matrix.
    """
    r = len(moment)
    sizes = [r] * (columns // r) + ([columns % r] if columns % r else [])
    blocks: list[list[Any]] = [[None] * len(sizes) for _ in sizes]
    left = columns
    for i, size in enumerate(sizes):
        square = rng.standard_normal((size, size))
        blocks[i][i] = noise * (square + square.T) / math.sqrt(2) + (moment if i == 0 else 0.0)
        left -= size
        if left:
            block = _triangles(1, left, size, rng)[0] if left >= size else rng.standard_normal((left, size))
            blocks[i + 1][i], blocks[i][i + 1] = noise * block, noise * block.T
    if len(sizes) == 1:
        return np.asarray(np.linalg.eigh(blocks[0][0])[1][:, -k:].T)
    _, vectors = eigsh(block_array(blocks, format="csr"), k=k, which="LA", tol=1e-4, v0=rng.standard_normal(columns))
    return np.asarray(vectors[:r].T)


def _triangles(count: int, rows: int, width: int, rng: np.random.Generator) -> Array:
    """The triangular factors of Gaussian matrices of many rows (Bartlett), (count, width, width)."""
    factors = np.triu(rng.standard_normal((count, width, width)), 1)
    factors[:, range(width), range(width)] = np.sqrt(rng.chisquare(rows - np.arange(width), (count, width)))
    return factors


def projector(moment: Array, k: int) -> Array:
    """On the leading eigenvectors."""
    vectors = np.linalg.eigh(moment)[1][:, -k:]
    return np.asarray(vectors @ vectors.T)


def shrinkage(moment: Array, ridge: float) -> Array:
    """``C (C + λ)⁻¹``."""
    return np.asarray(moment @ np.linalg.inv(moment + ridge * np.eye(len(moment))))


def orthonormal(rows: Array) -> Array:
    """An orthonormal basis of what rows span, (k, r)."""
    return np.asarray(qr(rows.T, mode="economic")[0].T)
