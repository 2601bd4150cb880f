"""Noisy Newton steps on rows that released moments have whitened: ``docs/theory/newton.md``.

All that is asked of rows are sums of vectors of norm 1 at most; everything else is made from those sums with noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from itertools import repeat
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.bounds.newton import LENGTHS, NORMS, Factors, both, triangle
from ppdp.core.progress import progress
from ppdp.core.rounding import BLOCK
from ppdp.data.engine.disk_cache import cached_on_disk
from ppdp.data.exact_matmul import HALF, on_grid, squares_of
from ppdp.data.parallel import blocks, in_parallel, pieces
from ppdp.data.rows import Array, Rows
from ppdp.data.statistics import by_column
from ppdp.data.stream import Stream
from ppdp.data.summary import symmetric, upper_triangle
from ppdp.mechanisms.learn.descent import in_words, number_of, step_of
from ppdp.mechanisms.learn.errors import errors_of_coefficients
from ppdp.mechanisms.learn.prior import Prior, choose_clip, usual_shares
from ppdp.mechanisms.learn.whitened import NewtonState, TrainingLoss, Whitening

NORM_RATIO = 8.0  # norm of the longest whitened row, over that of a typical one, where noise is large ...
CERTAIN = 500.0  # ... up to this `n mu / width`, and growing from there on
CONSTANT = 3.0  # norm of a row over the constant beside it
LEAST_CURVATURE = 1e-12  # clip of curvatures over the square of that of gradients, where no row is expected to have any
LEAST_SQUARE = 1e-290  # added to the square of a norm, so that what underflows in it makes no gradient longer
LARGEST_NORM = 1e150  # of a whitened row, or its squares overflow
USUAL_LENGTH = 3  # bin where gradients are, if typical residuals are a quarter of the largest
CALIBRATION_CLIP = 3.0  # of gradients of slope and intercept, of rows whose scores have a standard deviation of 1
TOGETHER, ENTRIES = 8 * BLOCK, 2**20  # rows, and of wide ones entries, of which weights are computed at once
PRODUCT = 1024  # rows of a product of few columns
NARROW = 36  # columns up to which a product takes twice the multiplications in less time
SMALL, FEW = 2**19, 400  # multiplications of a product of few rows that is fast, and rows that it has at least


def fitted_by_newton(
    rows: Rows | Stream,
    loss: TrainingLoss,
    answer: Callable[[Array], Array],
    noise_scale: float,
    size: int,
    parameters: Mapping[str, Any],
    *,
    prior: Prior | None = None,
    last: bool = False,
    over: bool = True,
) -> tuple[list[Array], Array, Array, Array]:
    """Coefficients (n_scores, width) behind every step, intercepts last, what is known of the errors of the last, the
    weight of the rows as a noisy share of their number, with its standard error, and second moments of the rows.

    ``answer`` adds noise of ``noise_scale`` to ``size`` numbers; ``parameters`` are those of the formula. ``last`` says
    that no other rows are trained on, ``over`` that nobody reads these again: whitened ones may be written over them.
    With a ``prior`` steps begin at its means, and in place of errors the covariance of coefficients is returned.
    """
    with ExitStack() as files:

        def held(rows: Rows | Stream, passes: int) -> Any:
            return files.enter_context(cached_on_disk(rows, passes, last=True, over=over)) if last else rows

        return _fitted(rows, held, loss, answer, noise_scale, size, parameters, prior)


def _fitted(
    rows: Rows | Stream,
    held: Callable[[Rows | Stream, int], Any],
    loss: TrainingLoss,
    answer: Callable[[Array], Array],
    noise_scale: float,
    size: int,
    parameters: Mapping[str, Any],
    prior: Prior | None,
) -> tuple[list[Array], Array, Array, Array]:
    """The same, of rows that are ``held`` for so many passes."""
    intercept = bool(parameters["fit_intercept"])
    factors = Factors.of(**parameters)
    width, n_targets = rows.d + intercept, loss.targets(np.zeros(1)).shape[1]

    def noisy_mean(mean: Array, weights: Array) -> Array:
        padded = np.zeros(size)
        padded[: len(weights)] = mean * weights
        return np.asarray(answer(padded)[: len(weights)] / weights)

    bound = float(parameters["norm"])
    grid = bound * 2.0 ** (-np.arange(NORMS)[::-1] / 2)
    rows = rows.each(partial(_on_grid, bound), rows.d)
    if isinstance(rows, Stream) and rows.source.local:  # else three passes would take the maps of all steps
        rows = held(rows, 3)
    shares = noisy_mean(mean_of(rows, partial(_histogram, grid, _norms), NORMS), np.full(NORMS, factors.norms))
    noise = noise_scale / factors.moments
    error = noise_scale / factors.norms
    present = np.array([shares.sum(), math.sqrt(NORMS) * error])
    usual = choose_clip(shares, usual_shares(shares, NORMS - 2, error), grid, math.sqrt(2) * width * noise, error)
    certain = 2 * math.sqrt(3 + len(factors.steps)) / (noise_scale * width)  # about n mu / width
    norm_ratio = NORM_RATIO * max(1.0, (certain / CERTAIN) ** 0.25)
    unit = usual / min(math.sqrt(rows.d), CONSTANT)
    norm = math.sqrt(usual**2 + (1 + intercept) * unit**2)
    numbers = triangle(width + n_targets)
    exact = mean_of(rows, partial(_second_moments, loss, intercept, unit, norm), numbers)
    moments = symmetric(norm**2 * noisy_mean(exact, np.full(numbers, factors.moments)), width + n_targets)
    least = usual**2 / (norm_ratio**2 * width)
    moments, left = (moments, norm**2 * noise) if prior is None else prior.believed(moments, norm**2 * noise, unit)
    of_rows = moments[: rows.d, : rows.d]
    whitening = Whitening.of(moments, n_targets, intercept, unit, left, least, loss.lowest_target)
    whitening = whitening if loss.dispersion is not None else whitening.with_noise()
    main = factors.steps[: parameters["iterations"]]
    rows = held(rows.each(partial(_whitened, whitening, bound), rows.d), 1 + len(main))

    theta = whitening.initial(loss, None if prior is None else prior.means[None] @ whitening.inverse())
    lengths = math.sqrt(width) * 2.0 ** (np.arange(LENGTHS) / 2 - 3)
    of_gradients = partial(_histogram, lengths, partial(_norms_of_gradients, loss, theta))
    shares = noisy_mean(mean_of(rows, of_gradients, LENGTHS), np.full(LENGTHS, factors.lengths))
    error = noise_scale / factors.lengths
    pooled = math.hypot(*(of_gradient for of_gradient, _ in factors.steps))
    state = NewtonState(loss, whitening, theta, parameters["alpha"] / rows.n, (norm_ratio / NORM_RATIO) ** 2, len(main))
    if prior is not None:
        state.know(prior)
    expected = usual_shares(shares, USUAL_LENGTH, error) if loss.chances is None else state.shares_of_gradients(lengths)
    clip = choose_clip(shares, expected, lengths, 2 * math.sqrt(width) * noise_scale / pooled, error)

    steps = partial(_steps, noisy_mean=noisy_mean, noise_scale=noise_scale)
    thetas = list(steps(rows, state, main, clip, diagonal=parameters["diagonal"]))
    if calibrating := factors.steps[len(main) :]:
        direction, of_scores = state.calibration(len(calibrating))
        scores = held(rows.each(partial(_scored, direction, whitening.norm_bound(bound), intercept), 1), 2)
        *_, last = steps(scores, of_scores, calibrating, CALIBRATION_CLIP * norm_ratio / NORM_RATIO)
        thetas[-1] = np.hstack([last[:, :1] * direction, last[:, 1:]])
    if prior is not None:
        return [whitening.coefficients(theta) for theta in thetas], state.covariance(), present, of_rows
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
    return models, errors_of_coefficients(state, curvature, dispersion / rows.n, unresolved), present, of_rows


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
        of_curvature = 0.0 if state.knows_curvature() else float(rest[0, 1])
        first = rest[0, 0] if of_curvature else both(*rest[0])
        of_gradients = [first, *(both(*factor) for factor in rest[1:])]  # a curvature is released once
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
    """Mean of vectors of norm 1 at most over the public n, to the same bits; ``contribution`` sums a block of rows."""
    step = step_of(1.0, rows.n)
    totals = rows.over(partial(_whole_steps, contribution, step, numbers), 0, merge=add)
    return number_of(sum(totals, np.zeros((2, numbers), dtype=np.int64))) * step / rows.n


def _whole_steps(contribution: Callable[[Rows], Array], step: float, numbers: int, block: Rows) -> NDArray[np.int64]:
    """Sum over a block in whole numbers of steps, in two words."""
    total = np.zeros((2, numbers), dtype=np.int64)
    rows = min(TOGETHER, max(1, ENTRIES // max(block.d, 1) // BLOCK) * BLOCK)  # with fewer, threads wait more than work
    for part in _parts(slice(0, block.n), rows):
        sums = contribution(block.part(part))
        total += in_words(np.rint(sums / step).astype(np.int64)).sum(axis=1)
    return total


def _on_grid(bound: float, rows: Rows) -> Rows:
    """Rows, of norm at most ``bound``, on a public grid on which sums of products are exact, and their norms."""
    X, norms = rows.X if rows.ours else np.empty(rows.X.shape), np.empty(rows.n)
    _, unit = on_grid(np.zeros((1, 1)), bound)
    anchor = _anchor(unit)

    def task(piece: slice) -> None:
        for part in _parts(piece, BLOCK):
            np.add(rows.X[part], anchor, out=X[part])
            X[part] -= anchor
            norms[part] = np.sqrt(np.einsum("ij,ij->i", X[part], X[part]))

    for _ in in_parallel(task, pieces(rows.n), 0):
        pass
    return replace(rows, X=X, norms=norms, raw=None, texts=None, marks=None, ours=True)


def _anchor(unit: float) -> float:
    """What rounds to a grid when it is added: its last place is ``unit``."""
    return 1.5 * 2.0**52 * unit


def _parts(piece: slice, rows: int) -> Iterator[slice]:
    return (slice(start, min(start + rows, piece.stop)) for start in range(piece.start, piece.stop, rows))


def _norms(part: Rows) -> Array:
    assert part.norms is not None
    return part.norms


def _whitened(whitening: Whitening, bound: float, rows: Rows) -> Rows:
    """Rows, whitened."""
    matrix, unit = on_grid(whitening.matrix.T, float(np.linalg.norm(whitening.matrix, axis=0).max()))
    shift = whitening.centre @ whitening.matrix
    return _transformed(matrix * unit, shift, whitening.norm_bound(bound), whitening.intercept, rows)


def _scored(direction: Array, longest: float, intercept: bool, rows: Rows) -> Rows:
    """Their scores alone, but for slope and intercept."""
    length = float(np.linalg.norm(direction))
    direction, unit = on_grid(direction[None], length)
    return _transformed(direction * unit, np.zeros(1), longest * length, intercept, rows)


def _transformed(A: Array, shift: Array, bound: float, intercept: bool, rows: Rows) -> Rows:
    """Rows times ``Aᵀ`` less a shift, with the norms that they have with a constant; one that overflows is absent.

    ``bound`` is on norms of rows behind that. Each row has bits of itself alone: rows and A are on grids, and so few
    bits are left to them that sums of products are exact.
    """
    Z, squares = rows.X if rows.ours and len(A) == rows.d else np.empty((rows.n, len(A))), np.empty(rows.n)
    _, unit = on_grid(np.zeros((1, 1)), bound)
    anchor, A_t = _anchor(unit), np.ascontiguousarray(A.T)
    anchored = anchor - shift

    def task(piece: slice) -> None:
        for part in _parts(piece, BLOCK):
            X, mapped = rows.X[part], Z[part]
            products = np.empty(mapped.shape)
            for few in _parts(slice(0, len(X)), min(BLOCK, max(SMALL // rows.d**2, FEW))):
                np.matmul(X[few], A_t, out=products[few])
            by_column(np.add, products, anchored, products)
            np.subtract(products, anchor, out=mapped)
            squares[part] = mapped[:, 0] ** 2 if len(A) == 1 else np.einsum("ij,ij->i", mapped, mapped)

    for _ in in_parallel(task, pieces(rows.n), 0):
        pass
    most = (HALF * unit) ** 2 if bound < LARGEST_NORM else math.nan  # which nothing is below
    dropped, weight = ~(squares <= most), rows.weight
    if dropped.any():
        Z[dropped], squares[dropped], weight = 0.0, 0.0, np.where(dropped, 0.0, weight)
    norms = np.sqrt(squares + (intercept + LEAST_SQUARE))
    return replace(rows, X=Z, weight=weight, norms=norms, raw=None, ours=True)


def _gradients_of(loss: TrainingLoss, theta: Array, part: Rows) -> tuple[Array, Array, Array, Array]:
    """Norms of whitened rows, their scores and residuals, and the norms of their gradients: 0 where one overflows."""
    assert part.y is not None
    assert part.norms is not None
    d, norms = part.d, part.norms
    coef, unit = on_grid(theta[:, :d], float(np.linalg.norm(theta[:, :d], axis=1).max()))
    scores = _times(part.X, coef[0])[:, None] if len(coef) == 1 else part.X @ coef.T
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


def _squared(X: Array) -> tuple[Array, Array]:
    """Squares of entries, and sums of their squares along each row, so that no row's place shows in its bits."""
    squares, sums = np.empty(X.shape), np.empty(len(X))
    for part in blocks(*X.shape):
        own = np.square(X[part], out=squares[part])
        np.square(own).sum(axis=1, out=sums[part])
    return squares, sums


def _lengths(of_scores: Array) -> Array:
    """Norm of every row; a single number needs no square, which might be too large."""
    return np.asarray(np.abs(of_scores[:, 0]) if of_scores.shape[1] == 1 else np.sqrt(squares_of(of_scores.T)))


def _histogram(grid: Array, norms: Callable[[Rows], Array], part: Rows) -> Array:
    """Weight of the rows whose norms lie up to each number of the grid; the last bin has all beyond."""
    below = norms(part) <= grid[:-1, None]  # to look a number up takes longer than a few comparisons
    bins = len(below) - below.view(np.int8).sum(axis=0, dtype=np.int8).astype(np.intp)
    bins += np.arange(part.n) // BLOCK * len(grid)
    blocks = -(-part.n // BLOCK)
    counts = np.bincount(bins, weights=part.weight, minlength=blocks * len(grid))
    return np.asarray(counts, dtype=np.float64).reshape(blocks, len(grid))


def _second_moments(loss: TrainingLoss, intercept: bool, unit: float, norm: float, part: Rows) -> Array:
    """Triangle of the sum of ``w v vᵀ``: v a row with a constant and its targets, clipped at a norm, over that norm."""
    assert part.y is not None
    assert part.norms is not None
    targets = loss.targets(part.y)
    squares = part.norms**2 + unit**2 * (intercept + squares_of(targets.T))
    beside = unit * np.hstack([np.ones((part.n, int(intercept))), targets])
    return _triangles(part.X.T, beside, part.weight / np.maximum(squares, norm**2))


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
        squares, sizes = _squared(part.X)
        sizes, Z = np.sqrt(sizes + intercept + LEAST_SQUARE), squares.T
    sizes = sizes * _lengths(curvatures)
    curvatures[~np.isfinite(sizes) | (norms == 0)] = 0.0
    curvatures = np.maximum(curvatures, 0.0) * (part.weight / np.fmax(sizes, curvature_clip))[:, None]
    if diagonal:
        return np.hstack([gradients, _with_constant(curvatures, Z, intercept)])
    constant = np.ones((part.n, int(intercept)))
    return np.hstack([gradients, *(_triangles(Z, constant, weights) for weights in curvatures.T)])


def _with_constant(of_scores: Array, Z: Array, intercept: bool) -> Array:
    """Sums over each block of what each score has times the row, which ends in a constant, if there is an intercept."""
    sums = np.empty((-(-len(of_scores) // BLOCK), of_scores.shape[1], len(Z) + intercept))
    sums[:, :, : len(Z)] = _sums_by_block(Z.T, of_scores).transpose(0, 2, 1)
    sums[:, :, len(Z) :] = np.add.reduceat(of_scores, range(0, len(of_scores), BLOCK))[:, :, None]
    return sums.reshape(len(sums), -1)


def _times(X: Array, vector: Array) -> Array:
    """``X @ vector``; of rows that are long, or of their columns, in half of the time that a library takes."""
    return X @ vector if min(X.shape) <= NARROW else np.einsum("ij,j->i", X, vector)


def _triangles(Z: Array, beside: Array, weights: Array) -> Array:
    """Triangles of the sums over each block of ``w v vᵀ``: v a column of Z, and behind it what stands beside it."""
    d, weighted = len(Z), beside * weights[:, None]
    total = np.zeros((-(-len(weights) // BLOCK), *(d + beside.shape[1],) * 2))
    total[:, :d, :d] = _grams(Z.T, weights)
    total[:, :d, d:], total[:, d:, d:] = _sums_by_block(Z.T, weighted), _sums_by_block(beside, weighted)
    return np.array([upper_triangle(matrix) for matrix in total])


def _grams(X: Array, weights: Array) -> Array:
    """Sums over each block of a row's products with itself, times its weight."""
    if X.shape[1] <= NARROW:
        return _sums_by_block(X, X * weights[:, None])
    parts = _parts(slice(0, len(X)), BLOCK)
    scaled = (X[part] * np.sqrt(weights[part])[:, None] for part in parts)
    return np.array([V.T @ V for V in scaled])  # half as many multiplications


def _sums_by_block(A: Array, B: Array) -> Array:
    """``AᵀB`` of each block: many products in one call, in which other threads have the interpreter."""
    (n, p), q = A.shape, B.shape[1]
    whole = n // PRODUCT
    products = np.empty((-(-n // PRODUCT), p, q))
    first, second = (M[: whole * PRODUCT].reshape(whole, PRODUCT, M.shape[1]) for M in (A, B))
    np.matmul(first.transpose(0, 2, 1), second, out=products[:whole])
    for rest in products[whole:]:
        np.matmul(A[whole * PRODUCT :].T, B[whole * PRODUCT :], out=rest)
    return np.add.reduceat(products, range(0, len(products), BLOCK // PRODUCT))
