"""Noisy Newton steps on rows that released moments have whitened: ``docs/theory/newton.md``.

Rows are seen by sums of vectors of norm 1 at most; everything else is made from those sums with their noise.
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
from sklearn.isotonic import IsotonicRegression

from ppdp.bounds.newton import LENGTHS, NORMS, Factors, both, triangle
from ppdp.core.progress import progress
from ppdp.core.rounding import BLOCK
from ppdp.data.parallel import in_parallel, pieces
from ppdp.data.product import HALF, on_grid, squares_of
from ppdp.data.rows import Array, Rows
from ppdp.data.stream import Stream
from ppdp.mechanisms.learn.descent import in_words, number_of, step_of
from ppdp.mechanisms.learn.errors import errors_of_coefficients
from ppdp.mechanisms.learn.whitened import Loss, Search, View, square, upper

REACH = 8.0  # norm of the longest row as it is seen, over that of a typical one, where noise is large ...
CERTAIN = 500.0  # ... up to this `n mu / width`, and growing from there on
CONSTANT = 3.0  # norm of a row over the constant beside it
LEAST_BENT = 1e-12  # clip of curvatures over the square of that of gradients, where no row is expected to have any
LEAST_SQUARE = 1e-290  # added to the square of a norm, so that what underflows in it makes no gradient longer
FARTHEST = 1e150  # norm that a row may have as it is seen, or its squares overflow
CALIBRATION_CLIP = 3.0  # of gradients of slope and intercept, of rows whose scores have a standard deviation of 1
COUNTED = 2.5  # standard errors of a bin of a histogram, below which it is taken to be empty


def fitted_by_newton(
    rows: Rows | Stream,
    loss: Loss,
    answer: Callable[[Array], Array],
    noise_scale: float,
    size: int,
    parameters: Mapping[str, Any],
) -> tuple[list[Array], Array]:
    """Coefficients (n_scores, width) behind every step, intercepts last; the last of them are calibrated.

    With them comes what is known of the errors of the last.

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
    factors = Factors.of(**parameters)
    width, n_targets = rows.d + intercept, loss.targets(np.zeros(1)).shape[1]

    def asked(mean: Array, weights: Array) -> Array:
        padded = np.zeros(size)
        padded[: len(weights)] = mean * weights
        return np.asarray(answer(padded)[: len(weights)] / weights)

    grid = parameters["norm"] * 2.0 ** (-np.arange(NORMS)[::-1] / 2)
    bound, of_norms = float(parameters["norm"]), partial(_histogram, grid, partial(_norms_of_rows, parameters["norm"]))
    shares = asked(mean_of(rows, of_norms, NORMS), np.full(NORMS, factors.norms))
    noise = noise_scale / factors.moments
    usual = _cheapest(shares, grid, math.sqrt(2) * width * noise, noise_scale / factors.norms)
    certain = 2 * math.sqrt(3 + len(factors.steps)) / (noise_scale * width)  # about n mu / width
    reach = REACH * max(1.0, (certain / CERTAIN) ** 0.25)
    unit = usual / min(math.sqrt(rows.d), CONSTANT)
    norm = math.sqrt(usual**2 + (1 + intercept) * unit**2)
    numbers = triangle(width + n_targets)
    second = mean_of(rows, partial(_second_moments, loss, intercept, unit, (bound, norm)), numbers)
    moments = norm**2 * asked(second, np.full(numbers, factors.moments))
    released, least = square(moments, width + n_targets), usual**2 / (reach**2 * width)
    view = View.of(released, n_targets, intercept, unit, norm**2 * noise, least)
    theta, rows = view.first(loss), rows.each(partial(_as_seen, view, bound), rows.d)

    lengths = math.sqrt(width) * 2.0 ** (np.arange(LENGTHS) / 2 - 3)
    of_gradients = partial(_histogram, lengths, partial(_norms_of_gradients, loss, theta))
    shares = asked(mean_of(rows, of_gradients, LENGTHS), np.full(LENGTHS, factors.lengths))
    together = math.hypot(*(own for own, _ in factors.steps))
    clip = _cheapest(shares, lengths, 2 * math.sqrt(width) * noise_scale / together, noise_scale / factors.lengths)

    main = factors.steps[: parameters["iterations"]]
    search = Search(loss, view, theta, parameters["alpha"] / rows.n, (reach / REACH) ** 2, len(main))
    steps = partial(_steps, asked=asked, noise_scale=noise_scale)
    thetas = list(steps(rows, search, main, clip, diagonal=parameters["diagonal"]))
    if calibrating := factors.steps[len(main) :]:
        direction, line = search.calibration(len(calibrating))
        scores = rows.each(partial(_as_scores, direction, view.longest(bound), intercept), 1)
        *_, last = steps(scores, line, calibrating, CALIBRATION_CLIP * reach / REACH)
        thetas[-1] = np.hstack([last[:, :1] * direction, last[:, 1:]])
    models, dispersion, missed = [view.coefficients(theta) for theta in thetas], loss.dispersion, 1.0
    if dispersion is None:
        last = models[-1][0]
        residual = np.concatenate([-last[: rows.d], -last[rows.d :] / unit, [1 / unit]])
        missed = max(float(residual @ released @ residual), 0.0) + norm**2 * noise * float(residual @ residual)
        dispersion = missed
    curved = bool(parameters["curvature"])
    seen = (search if curved else view).curvature() if search.seen or not curved else None
    return models, errors_of_coefficients(search, seen, dispersion / rows.n, missed)


def _steps(
    rows: Rows | Stream,
    search: Search,
    factors: Sequence[tuple[float, float]],
    clip: float,
    *,
    asked: Callable[[Array, Array], Array],
    noise_scale: float,
    diagonal: bool = False,
) -> Iterator[Array]:
    """Coefficients of what is seen behind every step.

    Once another step would leave little beside its noise, the rows are read for the last time: what they answer there
    is released with the factors of all steps that are left, and the step is that of the mean.
    """
    loss, intercept, made, (scores, width) = search.loss, search.view.intercept, 0, search.theta.shape
    for step in progress(range(len(factors)), "noisy Newton steps"):
        if step < made:
            continue
        bent = min(clip**2, max(search.usual_curvature(diagonal), LEAST_BENT * clip**2))
        rest, size, numbers = np.array(factors[step:]), scores * width, width if diagonal else triangle(width)
        if not search.settled(clip * noise_scale / float(np.linalg.norm(rest[:, 0]))):
            rest = rest[:1]
        of_curvature = float(rest[0, 1])
        of_gradients = [rest[0, 0], *(both(*own) for own in rest[1:])]  # a curvature is released once
        sums = partial(_step_sums, loss, intercept, search.theta, clip, bent, of_curvature > 0, diagonal)
        weights = np.repeat([of_gradients[0], of_curvature], [size, scores * numbers * (of_curvature > 0)])
        mean = mean_of(rows, sums, len(weights))
        gradient, curvature = np.split(asked(mean, weights), [size])
        answers = [gradient, *(asked(mean[:size], np.full(size, own)) for own in of_gradients[1:])]
        gradient = clip * np.average(answers, axis=0, weights=np.square(of_gradients)).reshape(scores, width)
        curvatures, unsure = None, 0.0
        if of_curvature:
            each = bent * curvature.reshape(scores, -1)
            curvatures = [np.diag(own) if diagonal else square(own, width) for own in each]
            unsure = bent * noise_scale / of_curvature
        _step(search, gradient, clip * noise_scale / math.hypot(*of_gradients), curvatures, unsure)
        made = step + len(rest)
        yield from repeat(search.theta, len(rest))


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


def _as_seen(view: View, bound: float, rows: Rows) -> Rows:
    """Rows as they are seen."""
    (whitening, unit), shift = on_grid(view.whitening.T, view.steepest()), view.centre @ view.whitening
    return _mapped(whitening, unit, shift, (bound, view.longest(bound)), view.intercept, rows)


def _as_scores(direction: Array, longest: float, intercept: bool, rows: Rows) -> Rows:
    """Their scores alone, but for slope and intercept."""
    length = float(np.linalg.norm(direction))
    direction, unit = on_grid(direction[None], length)
    return _mapped(direction, unit, np.zeros(1), (longest, longest * length), intercept, rows)


def _mapped(A: Array, unit: float, shift: Array, bounds: tuple[float, float], intercept: bool, rows: Rows) -> Rows:
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
            X, own = on_grid(rows.X[part], before)
            found = A @ X.T
            found *= unit * own / grid
            found -= shift[:, None] / grid
            np.rint(found, out=found)
            squares[part] = np.einsum("ij,ij->j", found, found)
            np.multiply(found, grid, out=Z[:, part])

    for _ in in_parallel(task, pieces(rows.n), 0):
        pass
    lost, weight = ~((squares <= HALF**2) & (behind < FARTHEST)), rows.weight
    if lost.any():
        Z[:, lost], squares[lost], weight = 0.0, 0.0, np.where(lost, 0.0, weight)
    norms = np.sqrt(squares * np.square(grid) + intercept + LEAST_SQUARE)
    return replace(rows, X=Z.T, weight=weight, norms=norms, raw=None, ours=True)


def _of_rows(loss: Loss, theta: Array, part: Rows) -> tuple[Array, Array, Array, Array]:
    """Norms of rows as they are seen, their scores and residuals, and the norms of their gradients: 0 where one
    overflows.
    """
    assert part.y is not None
    assert part.norms is not None
    d, norms = part.d, part.norms
    coef, unit = on_grid(theta[:, :d], float(np.linalg.norm(theta[:, :d], axis=1).max()))
    scores = part.X @ coef.T
    scores *= unit
    scores += theta[:, d:].sum(axis=1)
    residuals = loss.residuals(scores, part.y)
    lengths = norms * _lengths(residuals)
    lost = ~np.isfinite(lengths)
    if lost.any():
        residuals[lost], lengths[lost], norms = 0.0, 0.0, np.where(lost, 0.0, norms)
    return norms, scores, residuals, lengths


def _norms_of_gradients(loss: Loss, theta: Array, part: Rows) -> Array:
    return _of_rows(loss, theta, part)[-1]


def _lengths(of_scores: Array) -> Array:
    """Norm of every row; a single number needs no square, which might be too large."""
    return np.asarray(np.abs(of_scores[:, 0]) if of_scores.shape[1] == 1 else np.sqrt(squares_of(of_scores.T)))


def _histogram(grid: Array, norms: Callable[[Rows], Array], part: Rows) -> Array:
    """Weight of the rows whose norms lie up to each number of the grid; the last bin has all beyond."""
    return np.asarray(
        np.bincount(np.searchsorted(grid[:-1], norms(part)), weights=part.weight, minlength=len(grid)), dtype=np.float64
    )


def _second_moments(loss: Loss, intercept: bool, unit: float, bounds: tuple[float, float], part: Rows) -> Array:
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
    return upper(V.T @ V)


def _step_sums(
    loss: Loss, intercept: bool, theta: Array, clip: float, bent: float, curved: bool, diagonal: bool, part: Rows
) -> Array:
    """Sums of the rows' clipped gradients, over their clip, and of their clipped curvatures, over theirs."""
    assert part.y is not None
    norms, scores, residuals, lengths = _of_rows(loss, theta, part)
    residuals *= (part.weight / np.maximum(lengths, clip))[:, None]
    gradients = _with_constant(residuals, part.X.T, intercept)
    if not curved:
        return gradients
    bends, Z, sizes = loss.curvatures(scores, part.y), part.X.T, norms**2
    if diagonal:
        Z = Z * Z
        sizes = np.sqrt(squares_of(Z) + intercept + LEAST_SQUARE)
    sizes = sizes * _lengths(bends)
    bends[~np.isfinite(sizes) | (norms == 0)] = 0.0
    bends = np.maximum(bends, 0.0) * (part.weight / np.fmax(sizes, bent))[:, None]
    if diagonal:
        return np.concatenate([gradients, _with_constant(bends, Z, intercept)])
    return np.concatenate([gradients, *(upper(_bent(Z, own, intercept)) for own in np.sqrt(bends).T)])


def _with_constant(of_scores: Array, Z: Array, intercept: bool) -> Array:
    """Sums over rows of what each score has times the row, which ends in a constant, if there is an intercept."""
    return np.vstack([Z @ of_scores, *[of_scores.sum(axis=0)] * intercept]).T.ravel()


def _bent(Z: Array, roots: Array, intercept: bool) -> Array:
    """Sum of ``b z zᵀ`` of rows, from the roots of their b; z ends in a constant, if there is an intercept."""
    V = np.vstack([Z * roots, *[roots] * intercept])
    return np.asarray(V @ V.T)


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
