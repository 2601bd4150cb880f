"""Noisy Newton steps on rows that released moments have whitened: ``docs/theory/newton.md``.

Rows are seen by sums of vectors of norm 1 at most; everything else is made from those sums with their noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression

from ppdp.bounds.newton import LENGTHS, NORMS, Factors, triangle
from ppdp.core.progress import progress
from ppdp.core.rounding import BLOCK
from ppdp.data.product import squares_of
from ppdp.data.rows import Array, Rows
from ppdp.data.stream import Stream
from ppdp.mechanisms.learn.descent import in_words, number_of, step_of
from ppdp.mechanisms.learn.whitened import Loss, Search, View, square, upper

REACH = 8.0  # norm of the longest row as it is seen, over that of a typical one, where noise is large ...
CERTAIN = 500.0  # ... up to this `n mu / width`, and growing from there on
CONSTANT = 3.0  # norm of a row over the constant beside it
LEAST_BENT = 1e-12  # clip of curvatures over the square of that of gradients, where no row is expected to have any
LEAST_SQUARE = 1e-290  # added to the square of a norm, so that what underflows in it makes no gradient longer
COUNTED = 2.5  # standard errors of a bin of a histogram, below which it is taken to be empty


def fitted_by_newton(
    rows: Rows | Stream,
    loss: Loss,
    answer: Callable[[Array], Array],
    noise_scale: float,
    size: int,
    parameters: Mapping[str, Any],
) -> list[Array]:
    """Coefficients (n_scores, width) behind every step, intercepts last.

    Parameters
    ----------
    rows : Rows or Stream
        With labels or targets.
    loss : Loss
        Of one row.
    answer : callable
        Adds the noise to ``size`` numbers.
    noise_scale : float
        Its standard deviation.
    parameters : mapping
        Those of the formula.
    """
    intercept = bool(parameters["fit_intercept"])
    factors = Factors.of(parameters["iterations"], parameters["shares"], parameters["curvature"], parameters["last"])
    width, n_targets = rows.d + intercept, loss.targets(np.zeros(1)).shape[1]

    def asked(contribution: Callable[[Rows], Array], weights: Array) -> Array:
        padded = np.zeros(size)
        padded[: len(weights)] = mean_of(rows, contribution, len(weights)) * weights
        return np.asarray(answer(padded)[: len(weights)] / weights)

    grid = parameters["norm"] * 2.0 ** (-np.arange(NORMS)[::-1] / 2)
    shares = asked(partial(_histogram, grid, _norms_of_rows), np.full(NORMS, factors.norms))
    noise = noise_scale / factors.moments
    usual = _cheapest(shares, grid, math.sqrt(2) * width * noise, noise_scale / factors.norms)
    certain = 2 * math.sqrt(3 + len(factors.steps)) / (noise_scale * width)  # about n mu / width
    reach = REACH * max(1.0, (certain / CERTAIN) ** 0.25)
    unit = usual / min(math.sqrt(rows.d), CONSTANT)
    norm = math.sqrt(usual**2 + (1 + intercept) * unit**2)
    extended = partial(_second_moments, loss, intercept, unit, norm)
    moments = norm**2 * asked(extended, np.full(triangle(width + n_targets), factors.moments))
    released, least = square(moments, width + n_targets), usual**2 / (reach**2 * width)
    view = View.of(released, n_targets, intercept, unit, norm**2 * noise, least)
    theta = view.first(loss)

    lengths = math.sqrt(width) * 2.0 ** (np.arange(LENGTHS) / 2 - 3)
    of_gradients = partial(_norms_of_gradients, loss, view, theta)
    shares = asked(partial(_histogram, lengths, of_gradients), np.full(LENGTHS, factors.lengths))
    together = math.hypot(*(own for own, _ in factors.steps))
    clip = _cheapest(shares, lengths, 2 * math.sqrt(width) * noise_scale / together, noise_scale / factors.lengths)

    penalty, models = parameters["alpha"] / rows.n, list[Array]()
    search = Search(loss, view, theta, penalty, (reach / REACH) ** 2, len(factors.steps))
    for of_gradient, of_curvature in progress(factors.steps, "noisy Newton steps"):
        bent = min(clip**2, max(search.usual_curvature(), LEAST_BENT * clip**2))
        weights = np.full(theta.size, of_gradient)
        if of_curvature:
            weights = np.concatenate([weights, np.full(len(theta) * triangle(width), of_curvature)])
        seen = asked(partial(_step_sums, loss, view, search.theta, clip, bent, of_curvature > 0), weights)
        curvatures, unsure = [view.moments] * len(theta), 0.0
        if of_curvature:
            triangles = bent * seen[theta.size :].reshape(len(theta), -1)
            curvatures, unsure = [square(own, width) for own in triangles], bent * noise_scale / of_curvature
        gradient = clip * seen[: theta.size].reshape(theta.shape)
        _step(search, gradient, clip * noise_scale / of_gradient, curvatures, unsure)
        models.append(view.coefficients(search.theta))
    return models


def _step(search: Search, *seen: Any) -> None:
    """Make a step, or none where what was released is so far from anything that it leads to no numbers."""
    before = search.theta
    with suppress(np.linalg.LinAlgError, ArithmeticError):
        search.see(*seen)
    if not np.isfinite(search.theta).all():
        search.theta = before


def mean_of(rows: Rows | Stream, contribution: Callable[[Rows], Array], numbers: int) -> Array:
    """Mean over the public n of vectors of norm 1 at most, to the same bits however the rows come."""
    step = step_of(1.0, rows.n)
    totals = rows.over(partial(_whole_steps, contribution, step, numbers), merge=add)
    return number_of(sum(totals, np.zeros((2, numbers), dtype=np.int64))) * step / rows.n


def _whole_steps(contribution: Callable[[Rows], Array], step: float, numbers: int, block: Rows) -> NDArray[np.int64]:
    """Sum over a block in whole numbers of steps, in two words."""
    total = np.zeros((2, numbers), dtype=np.int64)
    for start in range(0, block.n, BLOCK):
        part = block.part(slice(start, start + BLOCK))
        total += in_words(np.rint(contribution(part) / step).astype(np.int64))
    return total


def _norms_of_rows(part: Rows) -> Array:
    return np.sqrt(squares_of(np.ascontiguousarray(part.X.T)))


def _norms_of_gradients(loss: Loss, view: View, theta: Array, part: Rows) -> Array:
    return _of_rows(loss, view, theta, part)[-1]


def _of_rows(loss: Loss, view: View, theta: Array, part: Rows) -> tuple[Array, Array, Array, Array, Array]:
    """What is seen of rows, by columns, and its squared norms, scores, residuals, and the norms of gradients.

    All are 0 where one overflows. Each is of its row alone to the last bit: its place does not show.
    """
    assert part.y is not None
    Z, scores = view.of_rows(part.X, theta)
    residuals, squares = loss.residuals(scores, part.y), squares_of(Z)
    norms = np.sqrt(squares + LEAST_SQUARE) * _lengths(residuals)
    lost = ~np.isfinite(norms)
    if lost.any():
        Z[:, lost] = 0.0
        for own in (squares, scores, residuals, norms):
            own[lost] = 0.0
    return Z, squares, scores, residuals, norms


def _lengths(of_scores: Array) -> Array:
    """Norm of every row; a single number needs no square, which might be too large."""
    return np.asarray(np.abs(of_scores[:, 0]) if of_scores.shape[1] == 1 else np.sqrt(squares_of(of_scores.T)))


def _histogram(grid: Array, norms: Callable[[Rows], Array], part: Rows) -> Array:
    """Weight of the rows whose norms lie up to each number of the grid; the last bin has all beyond."""
    return np.asarray(
        np.bincount(np.searchsorted(grid[:-1], norms(part)), weights=part.weight, minlength=len(grid)), dtype=np.float64
    )


def _second_moments(loss: Loss, intercept: bool, unit: float, norm: float, part: Rows) -> Array:
    """Triangle of the sum of ``w v vᵀ``: v a row with a constant and its targets, clipped at a norm, over that norm."""
    assert part.y is not None
    constant = [np.full((1, part.n), unit)] * intercept
    V = np.vstack([part.X.T, *constant, unit * loss.targets(part.y).T])
    V *= np.sqrt(part.weight) / np.maximum(np.sqrt(squares_of(V)), norm)
    return upper(V @ V.T)


def _step_sums(loss: Loss, view: View, theta: Array, clip: float, bent: float, curved: bool, part: Rows) -> Array:
    """Sums of the rows' clipped gradients, over their clip, and of their clipped curvatures, over theirs."""
    assert part.y is not None
    Z, squares, scores, residuals, norms = _of_rows(loss, view, theta, part)
    residuals *= (part.weight / np.maximum(norms, clip))[:, None]
    gradients = (Z @ residuals).T.ravel()
    if not curved:
        return gradients
    bends = loss.curvatures(scores, part.y)
    norms = squares * _lengths(bends)
    bends[~np.isfinite(norms)] = 0.0
    bends = np.sqrt(np.maximum(bends, 0.0) * (part.weight / np.fmax(norms, bent))[:, None])
    return np.concatenate([gradients, *(upper(V @ V.T) for V in (Z * own for own in bends.T))])


def _cheapest(shares: Array, grid: Array, price: float, noise: float) -> float:
    """The clip, of a grid, at which what it cuts off and what noise it asks for are least together.

    Shares of norms in the bins are noisy; beyond the fullest they are taken to fall, and small ones to be 0.
    """
    shares, fullest = shares.copy(), int(np.argmax(shares))
    tail = shares[fullest:]
    shares[fullest:] = IsotonicRegression(increasing=False).fit_transform(np.arange(len(tail)), tail)
    shares = np.where(shares > COUNTED * noise, shares, 0.0)
    costs = [price * clip + float((shares * np.maximum(grid - clip, 0.0)).sum()) for clip in grid]
    return float(grid[int(np.argmin(costs))])
