"""Projected gradient descent on private rows: many noisy steps, or the minimiser of a penalised loss.

Theory: ``docs/theory/noisy-gradient-descent.md``, ``docs/theory/output-perturbation.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ppdp.bounds.learning import kept_steps
from ppdp.progress import progress
from ppdp.rows import Rows
from ppdp.statistics import row_norms

__all__ = ["ClippedGradient", "descend", "minimise", "path", "projected"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class ClippedGradient:
    """Sum of the rows' clipped gradients over a public number, as a function of the coefficients.

    Attributes
    ----------
    X : ndarray of shape (n, width)
        Rows, with a one for the intercept.
    y, weight, norms : ndarray of shape (n,)
        Answers, weights, and norms of the rows.
    residuals : callable
        Derivative of every row's loss in its scores, ``residuals(scores, y)``, both of shape (n, n_scores).
    clip : float
        Largest norm of one row's gradient.
    divisor : int
        Public: the number of rows, or the (expected) size of a batch.
    """

    X: Array
    y: Array
    weight: Array
    norms: Array
    residuals: Callable[[Array, Array], Array]
    clip: float
    divisor: int

    @classmethod
    def of(
        cls, rows: Rows, residuals: Callable[[Array, Array], Array], clip: float, fit_intercept: bool
    ) -> ClippedGradient:
        """The gradient on all of these rows."""
        assert rows.y is not None
        X = np.column_stack([rows.X, np.ones(rows.n)]) if fit_intercept else rows.X
        return cls(X, rows.y, rows.weight, row_norms(X), residuals, clip, rows.n)

    def on(self, batch: NDArray[np.intp], size: int) -> ClippedGradient:
        """The gradient on some of the rows, perhaps none, divided by a public ``size`` whatever their number."""
        own = {name: getattr(self, name)[batch] for name in ("X", "y", "weight", "norms")}
        return replace(self, **own, divisor=size)

    def __call__(self, theta: Array) -> Array:
        """Mean gradient at coefficients of shape (n_scores, width)."""
        residuals = self.residuals(self.X @ theta.T, self.y)
        size = np.sqrt(np.einsum("ij,ij->i", residuals, residuals)) * self.norms
        scale = np.minimum(1.0, np.divide(self.clip, size, out=np.ones_like(size), where=size > 0))
        return np.asarray((residuals * (self.weight * scale)[:, None]).T @ self.X / self.divisor)


def projected(theta: Array, radius: float) -> Array:
    """The nearest point of the ball."""
    return np.asarray(theta * min(1.0, radius / max(float(np.linalg.norm(theta)), radius)))


def descend(
    gradients: Iterable[Callable[[Array], Array]],
    answer: Callable[[Array], Array],
    theta: Array,
    *,
    steps: int,
    step_size: float,
    radius: float,
    penalty: Array | float = 0.0,
    momentum: bool = False,
) -> Iterator[Array]:
    """Iterates of noisy projected gradient descent.

    Parameters
    ----------
    gradients : iterable of callable
        Private gradient of every step.
    answer : callable
        Releases it with noise.
    theta : ndarray
        Where to start, inside the ball: every gradient is evaluated there.
    steps, step_size, radius : int, float, float
        Public.
    penalty : ndarray or float, default=0.0
        Strength of the squared penalty on every coefficient. It is applied after clip and noise, as an implicit
        step: no function of the rows, and stable however strong it is.
    momentum : bool, default=False
        Whether gradients are taken ahead of the iterates (Nesterov, 1983), inside the ball all the same: far fewer
        steps are needed, each with less noise.
    """
    ahead = theta
    for t, gradient in zip(progress(range(1, steps + 1), "noisy gradient descent"), gradients):
        noisy = answer(gradient(ahead))
        last, theta = theta, projected((ahead - step_size * noisy) / (1 + step_size * penalty), radius)
        ahead = projected(theta + t / (t + 3) * (theta - last), radius) if momentum else theta
        yield theta


def path(iterates: Iterable[Array], steps: int) -> Array:
    """Models on the way to the last one: after so many steps, the average of the last half of the iterates so far.

    Parameters
    ----------
    iterates : iterable of ndarray
        Released.
    steps : int
        How many there are.
    """
    kept, total = kept_steps(steps), np.zeros(())
    needed = {*kept, *(step // 2 for step in kept)}
    sums: dict[int, Array] = {0: total}
    for step, theta in enumerate(iterates, start=1):
        total = total + theta
        if step in needed:
            sums[step] = total
    return np.stack([(sums[step] - sums[step // 2]) / (step - step // 2) for step in kept])


def minimise(
    gradient: Callable[[Array], Array],
    theta: Array,
    *,
    iterations: int,
    smoothness: float,
    strength: float,
    radius: float,
) -> Array:
    """Minimiser over the ball of a loss plus ``strength/2 |theta|²``, up to the error of a public number of steps.

    It never looks whether it has converged.
    """
    step = 2 / (smoothness + 2 * strength)
    for _ in progress(range(iterations), "gradient descent"):
        theta = projected(theta - step * (gradient(theta) + strength * theta), radius)
    return theta
