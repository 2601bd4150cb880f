"""Noisy Newton steps on rows that released moments have whitened: ``docs/theory/newton.md``.

All that is asked of rows are sums of vectors of norm 1 at most; everything else is made from those sums with noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import repeat
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression

from ppdp.bounds.newton import LENGTHS, NORMS, Factors, both, triangle
from ppdp.core.progress import progress
from ppdp.core.rounding import BLOCK
from ppdp.data.exact_matmul import HALF, on_grid, squares_of
from ppdp.data.parallel import in_parallel, pieces
from ppdp.data.rows import Array, Rows
from ppdp.data.stream import Stream
from ppdp.data.summary import symmetric, upper_triangle
from ppdp.mechanisms.learn.descent import in_words, number_of, step_of
from ppdp.mechanisms.learn.errors import errors_of_coefficients
from ppdp.mechanisms.learn.whitened import NewtonState, TrainingLoss, Whitening

NORM_RATIO = 8.0  # norm of the longest whitened row, over that of a typical one, where noise is large ...
CERTAIN = 500.0  # ... up to this `n mu / width`, and growing from there on
CONSTANT = 3.0  # norm of a row over the constant beside it
LEAST_CURVATURE = 1e-12  # clip of curvatures over the square of that of gradients, where no row is expected to have any
LEAST_SQUARE = 1e-290  # added to the square of a norm, so that what underflows in it makes no gradient longer
LARGEST_NORM = 1e150  # of a whitened row, or its squares overflow
CALIBRATION_CLIP = 3.0  # of gradients of slope and intercept, of rows whose scores have a standard deviation of 1
COUNTED = 2.5  # standard errors of a bin of a histogram, below which it is taken to be empty


def fitted_by_newton(
    rows: Rows | Stream,
    loss: TrainingLoss,
    answer: Callable[[Array], Array],
    noise_scale: float,
    size: int,
    parameters: Mapping[str, Any],
) -> tuple[list[Array], Array]:
    """Coefficients (n_scores, width) behind every step, intercepts last, and what is known of the errors of the last.

    ``answer`` adds noise of ``noise_scale`` to ``size`` numbers; ``parameters`` are those of the formula.
    """
    intercept = bool(parameters["fit_intercept"])
    factors = Factors.of(**parameters)
    width, n_targets = rows.d + intercept, loss.targets(np.zeros(1)).shape[1]

    def noisy_mean(mean: Array, weights: Array) -> Array:
        padded = np.zeros(size)
        padded[: len(weights)] = mean * weights
        return np.asarray(answer(padded)[: len(weights)] / weights)

    bound = float(parameters["norm"])
    grid = bound * 2.0 ** (-np.arange(NORMS)[::-1] / 2)
    of_norms = partial(_histogram, grid, partial(_norms_of_rows, bound))
    shares = noisy_mean(mean_of(rows, of_norms, NORMS), np.full(NORMS, factors.norms))
    noise = noise_scale / factors.moments
    usual = _choose_clip(shares, grid, math.sqrt(2) * width * noise, noise_scale / factors.norms)
    certain = 2 * math.sqrt(3 + len(factors.steps)) / (noise_scale * width)  # about n mu / width
    norm_ratio = NORM_RATIO * max(1.0, (certain / CERTAIN) ** 0.25)
    unit = usual / min(math.sqrt(rows.d), CONSTANT)
    norm = math.sqrt(usual**2 + (1 + intercept) * unit**2)
    numbers = triangle(width + n_targets)
    exact = mean_of(rows, partial(_second_moments, loss, intercept, unit, (bound, norm)), numbers)
    moments = symmetric(norm**2 * noisy_mean(exact, np.full(numbers, factors.moments)), width + n_targets)
    least = usual**2 / (norm_ratio**2 * width)
    whitening = Whitening.of(moments, n_targets, intercept, unit, norm**2 * noise, least)
    theta, rows = whitening.initial(loss), rows.each(partial(_whitened, whitening, bound), rows.d)

    lengths = math.sqrt(width) * 2.0 ** (np.arange(LENGTHS) / 2 - 3)
    of_gradients = partial(_histogram, lengths, partial(_norms_of_gradients, loss, theta))
    shares = noisy_mean(mean_of(rows, of_gradients, LENGTHS), np.full(LENGTHS, factors.lengths))
    pooled = math.hypot(*(of_gradient for of_gradient, _ in factors.steps))
    clip = _choose_clip(shares, lengths, 2 * math.sqrt(width) * noise_scale / pooled, noise_scale / factors.lengths)

    main = factors.steps[: parameters["iterations"]]
    state = NewtonState(loss, whitening, theta, parameters["alpha"] / rows.n, (norm_ratio / NORM_RATIO) ** 2, len(main))
    steps = partial(_steps, noisy_mean=noisy_mean, noise_scale=noise_scale)
    thetas = list(steps(rows, state, main, clip, diagonal=parameters["diagonal"]))
    if calibrating := factors.steps[len(main) :]:
        direction, of_scores = state.calibration(len(calibrating))
        scores = rows.each(partial(_scored, direction, whitening.norm_bound(bound), intercept), 1)
        *_, last = steps(scores, of_scores, calibrating, CALIBRATION_CLIP * norm_ratio / NORM_RATIO)
        thetas[-1] = np.hstack([last[:, :1] * direction, last[:, 1:]])
    models, dispersion, unresolved = [whitening.coefficients(theta) for theta in thetas], loss.dispersion, 1.0
    if dispersion is None:
        last = models[-1][0]
        residual = np.concatenate([-last[: rows.d], -last[rows.d :] / unit, [1 / unit]])
        dispersion = max(float(residual @ moments @ residual), 0.0) + norm**2 * noise * float(residual @ residual)
        unresolved = dispersion
    curvature = None
    if not parameters["curvature"]:
        curvature = whitening.curvature()
    elif state.released_curvatures:
        curvature = state.curvature()
    return models, errors_of_coefficients(state, curvature, dispersion / rows.n, unresolved)


def _steps(
    rows: Rows | Stream,
    state: NewtonState,
    factors: Sequence[tuple[float, float]],
    clip: float,
    *,
    noisy_mean: Callable[[Array, Array], Array],
    noise_scale: float,
    diagonal: bool = False,
) -> Iterator[Array]:
    """Coefficients of whitened rows behind every step.

    Once another step would leave little beside its noise, the rows are read for the last time: what they answer there
    is released with the factors of all steps that are left, and the step is that of the mean.
    """
    loss, intercept, made, (scores, width) = state.loss, state.whitening.intercept, 0, state.theta.shape
    for step in progress(range(len(factors)), "noisy Newton steps"):
        if step < made:
            continue
        curvature_clip = min(clip**2, max(state.curvature_clip(diagonal), LEAST_CURVATURE * clip**2))
        rest, size, numbers = np.array(factors[step:]), scores * width, width if diagonal else triangle(width)
        if not state.converged(clip * noise_scale / float(np.linalg.norm(rest[:, 0]))):
            rest = rest[:1]
        of_curvature = float(rest[0, 1])
        of_gradients = [rest[0, 0], *(both(*factor) for factor in rest[1:])]  # a curvature is released once
        sums = partial(_step_sums, loss, intercept, state.theta, clip, curvature_clip, of_curvature > 0, diagonal)
        weights = np.repeat([of_gradients[0], of_curvature], [size, scores * numbers * (of_curvature > 0)])
        mean = mean_of(rows, sums, len(weights))
        gradient, curvature = np.split(noisy_mean(mean, weights), [size])
        answers = [gradient, *(noisy_mean(mean[:size], np.full(size, factor)) for factor in of_gradients[1:])]
        gradient = clip * np.average(answers, axis=0, weights=np.square(of_gradients)).reshape(scores, width)
        curvatures, curvature_noise = None, 0.0
        if of_curvature:
            of_scores = curvature_clip * curvature.reshape(scores, -1)
            curvatures = [np.diag(numbers) if diagonal else symmetric(numbers, width) for numbers in of_scores]
            curvature_noise = curvature_clip * noise_scale / of_curvature
        _step(state, gradient, clip * noise_scale / math.hypot(*of_gradients), curvatures, curvature_noise)
        made = step + len(rest)
        yield from repeat(state.theta, len(rest))


def _step(state: NewtonState, *released: Any) -> None:
    """Make a step, or none where what was released is so far from anything that it leads to no numbers."""
    before = state.theta
    with suppress(np.linalg.LinAlgError, ArithmeticError):
        state.update(*released)
    if not np.isfinite(state.theta).all():
        state.theta = before


def mean_of(rows: Rows | Stream, contribution: Callable[[Rows], Array], numbers: int) -> Array:
    """Mean over the public n of vectors of norm 1 at most, to the same bits however the rows come."""
    step = step_of(1.0, rows.n)
    totals = rows.over(partial(_whole_steps, contribution, step, numbers), 0, merge=add)
    return number_of(sum(totals, np.zeros((2, numbers), dtype=np.int64))) * step / rows.n


def _whole_steps(contribution: Callable[[Rows], Array], step: float, numbers: int, block: Rows) -> NDArray[np.int64]:
    """Sum over a block in whole numbers of steps, in two words."""
    total = np.zeros((2, numbers), dtype=np.int64)
    for start in range(0, block.n, BLOCK):
        part = block.part(slice(start, start + BLOCK))
        total += in_words(np.rint(contribution(part) / step).astype(np.int64))
    return total


def _norms_of_rows(bound: float, part: Rows) -> Array:
    X, unit = on_grid(part.X, bound)
    return np.sqrt(np.einsum("ij,ij->i", X, X)) * unit


def _whitened(whitening: Whitening, bound: float, rows: Rows) -> Rows:
    """Rows, whitened."""
    matrix, unit = on_grid(whitening.matrix.T, whitening.largest_column())
    shift = whitening.centre @ whitening.matrix
    return _transformed(matrix, unit, shift, (bound, whitening.norm_bound(bound)), whitening.intercept, rows)


def _scored(direction: Array, longest: float, intercept: bool, rows: Rows) -> Rows:
    """Their scores alone, but for slope and intercept."""
    length = float(np.linalg.norm(direction))
    direction, unit = on_grid(direction[None], length)
    return _transformed(direction, unit, np.zeros(1), (longest, longest * length), intercept, rows)


def _transformed(A: Array, unit: float, shift: Array, bounds: tuple[float, float], intercept: bool, rows: Rows) -> Rows:
    """Rows times ``unit Aᵀ`` less a shift, with the norms that they have with a constant; one that overflows is absent.

    ``bounds`` are on norms of rows before and behind that. Each row has bits of itself alone, so few that sums of
    products are exact: its place does not show.
    """
    before, behind = bounds
    Z, squares = np.empty((len(A), rows.n)), np.empty(rows.n)
    _, grid = on_grid(np.zeros((1, 1)), behind)

    def task(piece: slice) -> None:
        for start in range(piece.start, piece.stop, BLOCK):
            part = slice(start, min(start + BLOCK, piece.stop))
            X, step = on_grid(rows.X[part], before)
            mapped = A @ X.T
            mapped *= unit * step / grid
            mapped -= shift[:, None] / grid
            np.rint(mapped, out=mapped)
            squares[part] = np.einsum("ij,ij->j", mapped, mapped)
            np.multiply(mapped, grid, out=Z[:, part])

    for _ in in_parallel(task, pieces(rows.n), 0):
        pass
    dropped, weight = ~((squares <= HALF**2) & (behind < LARGEST_NORM)), rows.weight
    if dropped.any():
        Z[:, dropped], squares[dropped], weight = 0.0, 0.0, np.where(dropped, 0.0, weight)
    norms = np.sqrt(squares * np.square(grid) + intercept + LEAST_SQUARE)
    return replace(rows, X=Z.T, weight=weight, norms=norms, raw=None, ours=True)


def _gradients_of(loss: TrainingLoss, theta: Array, part: Rows) -> tuple[Array, Array, Array, Array]:
    """Norms of whitened rows, their scores and residuals, and the norms of their gradients: 0 where one overflows."""
    assert part.y is not None
    assert part.norms is not None
    d, norms = part.d, part.norms
    coef, unit = on_grid(theta[:, :d], float(np.linalg.norm(theta[:, :d], axis=1).max()))
    scores = part.X @ coef.T
    scores *= unit
    scores += theta[:, d:].sum(axis=1)
    residuals = loss.residuals(scores, part.y)
    lengths = norms * _lengths(residuals)
    dropped = ~np.isfinite(lengths)
    if dropped.any():
        residuals[dropped], lengths[dropped], norms = 0.0, 0.0, np.where(dropped, 0.0, norms)
    return norms, scores, residuals, lengths


def _norms_of_gradients(loss: TrainingLoss, theta: Array, part: Rows) -> Array:
    return _gradients_of(loss, theta, part)[-1]


def _lengths(of_scores: Array) -> Array:
    """Norm of every row; a single number needs no square, which might be too large."""
    return np.asarray(np.abs(of_scores[:, 0]) if of_scores.shape[1] == 1 else np.sqrt(squares_of(of_scores.T)))


def _histogram(grid: Array, norms: Callable[[Rows], Array], part: Rows) -> Array:
    """Weight of the rows whose norms lie up to each number of the grid; the last bin has all beyond."""
    return np.asarray(
        np.bincount(np.searchsorted(grid[:-1], norms(part)), weights=part.weight, minlength=len(grid)), dtype=np.float64
    )


def _second_moments(loss: TrainingLoss, intercept: bool, unit: float, bounds: tuple[float, float], part: Rows) -> Array:
    """Triangle of the sum of ``w v vᵀ``: v a row with a constant and its targets, clipped at a norm, over that norm.

    ``bounds`` are on the norms of rows and of v.
    """
    assert part.y is not None
    (X, grid), targets, d = on_grid(part.X, bounds[0]), loss.targets(part.y), part.d
    squares = np.einsum("ij,ij->i", X, X) * grid**2 + unit**2 * (intercept + squares_of(targets.T))
    factors = np.sqrt(part.weight) / np.maximum(np.sqrt(squares), bounds[1])
    V = np.empty((part.n, d + intercept + targets.shape[1]))
    np.multiply(X, (grid * factors)[:, None], out=V[:, :d])
    V[:, d : d + intercept] = unit * factors[:, None]
    V[:, d + intercept :] = unit * targets * factors[:, None]
    return upper_triangle(V.T @ V)


def _step_sums(
    loss: TrainingLoss,
    intercept: bool,
    theta: Array,
    clip: float,
    curvature_clip: float,
    curved: bool,
    diagonal: bool,
    part: Rows,
) -> Array:
    """Sums of the rows' clipped gradients, over their clip, and of their clipped curvatures, over theirs."""
    assert part.y is not None
    norms, scores, residuals, lengths = _gradients_of(loss, theta, part)
    residuals *= (part.weight / np.maximum(lengths, clip))[:, None]
    gradients = _with_constant(residuals, part.X.T, intercept)
    if not curved:
        return gradients
    curvatures, Z, sizes = loss.curvatures(scores, part.y), part.X.T, norms**2
    if diagonal:
        Z = Z * Z
        sizes = np.sqrt(squares_of(Z) + intercept + LEAST_SQUARE)
    sizes = sizes * _lengths(curvatures)
    curvatures[~np.isfinite(sizes) | (norms == 0)] = 0.0
    curvatures = np.maximum(curvatures, 0.0) * (part.weight / np.fmax(sizes, curvature_clip))[:, None]
    if diagonal:
        return np.concatenate([gradients, _with_constant(curvatures, Z, intercept)])
    return np.concatenate(
        [gradients, *(upper_triangle(_weighted_gram(Z, roots, intercept)) for roots in np.sqrt(curvatures).T)]
    )


def _with_constant(of_scores: Array, Z: Array, intercept: bool) -> Array:
    """Sums over rows of what each score has times the row, which ends in a constant, if there is an intercept."""
    return np.vstack([Z @ of_scores, *[of_scores.sum(axis=0)] * intercept]).T.ravel()


def _weighted_gram(Z: Array, roots: Array, intercept: bool) -> Array:
    """Sum of ``b z zᵀ`` of rows, from the roots of their b; z ends in a constant, if there is an intercept."""
    V = np.vstack([Z * roots, *[roots] * intercept])
    return np.asarray(V @ V.T)


def _choose_clip(shares: Array, grid: Array, price: float, noise: float) -> float:
    """The clip, of a grid, at which what it cuts off and what noise it asks for are least together.

    Shares of norms in the bins are noisy; beyond the fullest they are taken to fall, and small ones to be 0.
    """
    shares, fullest = shares.copy(), int(np.argmax(shares))
    shares[fullest:] = isotonic_regression(shares[fullest:], increasing=False)
    shares = np.where(shares > COUNTED * noise, shares, 0.0)
    costs = [price * clip + float((shares * np.maximum(grid - clip, 0.0)).sum()) for clip in grid]
    return float(grid[int(np.argmin(costs))])
