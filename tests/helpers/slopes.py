"""How steep the clipped gradient of one row is, by an adversary who climbs."""

import numpy as np


class Slopes:
    """Difference quotients of one row's clipped gradient, for many rows, coefficients and directions at once.

    It begins at coefficients (a matrix for every row), rows, and the directions in which they move by a step.
    """

    def __init__(self, residuals, point, R, D, C, intercept, step):
        self.residuals, self.point, self.step = residuals, point, step
        self.R, self.D, self.C, self.intercept = R, D, C, intercept

    def legal(self, point):
        theta, X, move = point
        theta = theta * np.minimum(1, self.D / np.maximum(np.linalg.norm(theta, axis=(1, 2)), 1e-9))[:, None, None]
        X = X * np.minimum(1, (self.R - self.step) / np.maximum(np.linalg.norm(X, axis=1), 1e-9))[:, None]
        return [theta, X, move / np.maximum(np.linalg.norm(move, axis=1, keepdims=True), 1e-9)]

    def gradient(self, theta, X):
        rows = np.column_stack([X, np.ones(len(X))]) if self.intercept else X
        G = self.residuals(np.einsum("mkd,md->mk", theta, rows))[:, :, None] * rows[:, None, :]
        size = np.maximum(np.linalg.norm(G, axis=(1, 2)), 1e-300)
        return G * np.minimum(1, self.C / size)[:, None, None], size

    def quotients(self, point):
        theta, X, move = point
        (G, size), (H, _) = self.gradient(theta, X), self.gradient(theta, X + self.step * move)
        return np.linalg.norm(H - G, axis=(1, 2)) / self.step, size

    def climb(self, rng, rounds=80):
        """The largest quotient and the largest gradient before its clip; every row climbs by itself."""
        point = self.legal(self.point)
        best, size = self.quotients(point)
        largest, scale = size.max(), 0.5
        for _ in range(rounds):
            trial = self.legal([part + scale * rng.standard_normal(part.shape) for part in point])
            value, size = self.quotients(trial)
            better = value > best
            point = [np.where(better.reshape((-1,) + (1,) * (p.ndim - 1)), t, p) for p, t in zip(point, trial)]
            best, largest = np.maximum(best, value), max(largest, size.max())
            scale = max(0.005, scale * 0.96)
        return best.max(), largest
