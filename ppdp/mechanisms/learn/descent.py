"""Projected gradient descent on private rows: many noisy steps, or the minimiser of a penalised loss.

Theory: ``docs/theory/noisy-gradient-descent.md``, ``docs/theory/output-perturbation.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import LbfgsInvHessProduct

from ppdp.bounds.learning import kept_steps
from ppdp.core.progress import progress
from ppdp.core.rounding import BLOCK
from ppdp.data.parallel import PIECE, in_parallel, pieces
from ppdp.data.rows import Array, Rows
from ppdp.data.statistics import row_norms
from ppdp.data.stream import Stream

ROOM = 2**20  # entries that are read again before they have left a processor's cache
WINDOW, SETTLED = 7, 0.03  # iterates that are averaged, and of their length the part that is no move any more
THREADS = 2  # that go through rows at once: a gradient is many short steps, in which more would wait for each other
MOST = 20  # secants that are remembered
STEADY = 100.0  # noise alone moves the coefficients in a step by at most one part in so many
SMALL = 30.0  # how many times shorter than the longest gradient noise must be for its changes to say something
_WORD = 32  # bits of the lower of two words


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class ClippedGradient:
    """Sum of the rows' clipped gradients over a public number, as a function of the coefficients."""

    X: Array
    y: Array
    weight: Array
    limits: Array  # of the length of every row's residuals, at which its gradient has norm `clip`
    residuals: Callable[[Array, Array], Array]  # of scores and y: derivative of every row's loss in its scores
    clip: float  # largest norm of one row's gradient
    divisor: int  # public: the number of rows, or the (expected) size of a batch
    width: int  # of the coefficients of a score: columns, and one more for the intercept

    @classmethod
    def of(
        cls, rows: Rows, residuals: Callable[[Array, Array], Array], clip: float, fit_intercept: bool
    ) -> ClippedGradient:
        """The gradient on all of these rows."""
        assert rows.y is not None
        norms = row_norms(rows.X) if rows.norms is None else rows.norms
        with np.errstate(divide="ignore", over="ignore"):  # nothing limits what a row of zeros gives
            norms = np.sqrt(norms * norms + 1.0) if fit_intercept else norms  # faster than np.hypot
            limits = clip / norms
        return cls(rows.X, rows.y, rows.weight, limits, residuals, clip, rows.n, rows.X.shape[1] + fit_intercept)

    def on(self, batch: NDArray[np.intp], size: int) -> ClippedGradient:
        """The gradient on some of the rows, perhaps none, divided by a public ``size`` whatever their number."""
        batched = {name: getattr(self, name)[batch] for name in ("X", "y", "weight", "limits")}
        return replace(self, **batched, divisor=size)

    def __call__(self, theta: Array) -> Array:
        """Mean gradient at coefficients of shape (n_scores, width): one pass over the rows.

        Sums of blocks are whole numbers of steps of a public grid, so their order does not show in a bit.
        """
        step = step_of(self.clip, len(self.X))
        return number_of(self.total(theta, step)) * step / self.divisor

    def total(self, theta: Array, step: float) -> NDArray[np.int64]:
        """Sum of the gradients in whole numbers of steps, in two words: neither overflows for 2^40 rows."""
        d = self.X.shape[1]
        coef, intercept = np.ascontiguousarray(theta[:, :d].T), theta[:, d:].sum(axis=1)
        rows = max(1, ROOM // (d * BLOCK)) * BLOCK

        def summed(X: Array, residuals: Array) -> NDArray[np.int64]:
            """Sum over blocks, each in whole numbers of steps."""
            ones = [residuals.sum(axis=1)[:, :, None]] * (self.width - d)
            sums = np.concatenate([residuals.transpose(0, 2, 1) @ X, *ones], axis=2)
            return np.asarray(np.rint(sums / step).astype(np.int64).sum(axis=0))

        def some(part: slice) -> NDArray[np.int64]:
            X = self.X[part]
            scores = X @ coef
            scores += intercept
            residuals, limits = self.residuals(scores, self.y[part]), self.limits[part]
            if len(theta) == 1:
                np.minimum(residuals, limits[:, None], out=residuals)  # both in half the time of np.clip
                np.maximum(residuals, -limits[:, None], out=residuals)
            else:
                length = np.sqrt(np.einsum("ij,ij->i", residuals, residuals))
                with np.errstate(divide="ignore"):  # of a row that has no residuals
                    residuals *= np.minimum(limits / length, 1.0)[:, None]
            residuals *= self.weight[part, None]
            whole = len(X) // BLOCK * BLOCK
            if whole == len(X):
                return summed(X.reshape(-1, BLOCK, d), residuals.reshape(-1, BLOCK, len(theta)))
            rest = summed(X[None, whole:], residuals[None, whole:])
            if not whole:
                return rest
            return rest + summed(X[:whole].reshape(-1, BLOCK, d), residuals[:whole].reshape(-1, BLOCK, len(theta)))

        def piece(part: slice) -> NDArray[np.int64]:
            starts = range(part.start, part.stop, rows)
            totals = (some(slice(start, min(start + rows, part.stop))) for start in starts)
            return sum((in_words(total) for total in totals), zero)

        zero = np.zeros((2, *theta.shape), dtype=np.int64)
        return sum(in_parallel(piece, pieces(len(self.X)), d, THREADS), zero)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class StreamedGradient:
    """The same of rows that are read in blocks, to the same bits: a call reads all of them."""

    rows: Stream
    residuals: Callable[[Array, Array], Array]
    clip: float
    fit_intercept: bool
    size: int | None = None  # public divisor, if it is not the number of rows

    @property
    def width(self) -> int:
        """Of the coefficients of a score."""
        return self.rows.d + self.fit_intercept

    def on(self, batch: NDArray[np.intp], size: int) -> ClippedGradient | StreamedGradient:
        """The gradient on some of the rows, ascending, which are held in memory from here on, where the rows are."""
        rows = self.rows.taken(batch)
        if isinstance(rows, Stream):
            return replace(self, rows=rows, size=size)
        return replace(ClippedGradient.of(rows, self.residuals, self.clip, self.fit_intercept), divisor=size)

    def __call__(self, theta: Array) -> Array:
        """Mean gradient at these coefficients."""
        step = step_of(self.clip, self.rows.n)
        given = self.residuals, self.clip, self.fit_intercept

        def total(block: Rows) -> NDArray[np.int64]:
            return ClippedGradient.of(block, *given).total(theta, step)

        totals = sum(self.rows.over(total, merge=add), np.zeros((2, *theta.shape), dtype=np.int64))
        return number_of(totals) * step / (self.rows.n if self.size is None else self.size)


def step_of(clip: float, n_rows: int) -> float:
    """A grid on which sums over so many rows, or over a piece of them, fit 64 bits."""
    return float(np.ldexp(clip, math.ceil(math.log2(min(max(n_rows, 2), PIECE))) - 61))


def in_words(total: NDArray[np.int64]) -> NDArray[np.int64]:
    """Whole numbers in two words: so many can be added that neither overflows for 2^40 rows."""
    return np.array([total >> _WORD, total & (2**_WORD - 1)])


def number_of(words: NDArray[np.int64]) -> Array:
    """Both words together, to the same bits for equal sums."""
    upper, lower = words[0] + (words[1] >> _WORD), words[1] & (2**_WORD - 1)
    return np.asarray(np.ldexp(upper.astype(np.float64), _WORD) + lower)


def projected(theta: Array, radius: float) -> Array:
    """The nearest point of the ball."""
    return np.asarray(theta * min(1.0, radius / max(float(np.linalg.norm(theta)), radius)))


def descend(
    gradients: Iterable[Callable[[Array], Array]],
    answer: Callable[[Array], Array],
    theta: Array,
    *,
    steps: int,
    learning_rate: float,
    radius: float,
    penalty: Array | float = 0.0,
) -> Iterator[Array]:
    """Iterates of noisy projected gradient descent: every gradient is taken inside the ball, and released by `answer`.

    The squared penalty on every coefficient is applied after clip and noise, as an implicit step: no function of the
    rows, and stable however strong it is.
    """
    for _, gradient in zip(progress(range(steps), "noisy gradient descent"), gradients):
        theta = projected((theta - learning_rate * answer(gradient(theta))) / (1 + learning_rate * penalty), radius)
        yield theta


def descend_faster(
    gradient: Callable[[Array], Array],
    answer: Callable[[Array], Array],
    theta: Array,
    *,
    steps: int,
    learning_rate: float,
    radius: float,
    penalty: Array | float = 0.0,
    curvature: CurvatureEstimate | None = None,
    early_stopping: bool = False,
) -> Iterator[Array]:
    """Iterates that need far fewer steps, each with less noise: gradients are taken ahead of them (Nesterov, 1983).

    They, too, are taken inside the ball. With a ``curvature`` steps are longer where the loss is flat, learnt on the
    way. With ``early_stopping`` no gradient is asked for any more once the iterates have settled, and the average of
    their last half stands for the rest of the steps.
    """
    ahead, made = theta, list[Array]()
    for t in progress(range(1, steps + 1), "noisy gradient descent"):
        noisy = answer(gradient(ahead))
        if curvature is None:
            there = (ahead - learning_rate * noisy) / (1 + learning_rate * penalty)
        else:
            curvature.update(ahead, noisy)
            there = curvature.step(ahead, noisy, penalty)
        last, theta = theta, projected(there, radius)
        ahead = projected(theta + t / (t + 3) * (theta - last), radius)
        yield theta
        if early_stopping:
            made.append(theta)
            if settled(made):
                break
    else:
        return
    yield from repeat(np.mean(made[len(made) // 2 :], axis=0), steps - len(made))


def settled(iterates: Sequence[Array]) -> bool:
    """Whether the last iterates are on average where as many before them were: a rule of what was released."""
    if len(iterates) < 2 * WINDOW:
        return False
    now = np.mean(iterates[-WINDOW:], axis=0)
    moved = now - np.mean(iterates[-2 * WINDOW : -WINDOW], axis=0)
    return bool(np.linalg.norm(moved) <= SETTLED * np.linalg.norm(now))


def descend_on_few_first(
    few: Callable[[Array], Array],
    gradient: Callable[[Array], Array],
    answer: Callable[[Array], Array],
    theta: Array,
    share: float,
    *,
    steps: int,
    curvature: CurvatureEstimate,
    **how: Any,
) -> Iterator[Array]:
    """The same, half of the steps on a sample of this share of the rows, whose sum ``few`` divides by all of them."""
    scale, last = curvature.noise_scale, theta
    curvature.change_noise(scale / share)
    half = {**how, "steps": steps // 2, "curvature": curvature}
    for last in descend_faster(few, lambda total: answer(total) / share, theta, **half):
        yield last
    curvature.change_noise(scale)
    yield from descend_faster(gradient, answer, last, **{**half, "steps": steps - steps // 2})


def path(iterates: Iterable[Array], steps: int) -> Array:
    """Models on the way to the last one: after so many steps, the average of the last half of the iterates so far."""
    kept, total = kept_steps(steps), np.zeros(())
    needed = {*kept, *(step // 2 for step in kept)}
    sums: dict[int, Array] = {0: total}
    for step, theta in enumerate(iterates, start=1):
        total = total + theta
        if step in needed:
            sums[step] = total
    return np.array([(sums[step] - sums[step // 2]) / (step - step // 2) for step in kept])


def minimise(
    gradient: Callable[[Array], Array],
    theta: Array,
    *,
    iterations: int,
    smoothness: float,
    strength: float,
    radius: float,
) -> Array:
    """Minimiser over the ball of a loss plus ``strength/2 |theta|²``, up to the error of a public number of steps."""
    step = 2 / (smoothness + 2 * strength)
    for _ in progress(range(iterations), "gradient descent"):
        theta = projected(theta - step * (gradient(theta) + strength * theta), radius)
    return theta


def noise_is_small(noise_scale: float, clip: float, size: int) -> bool:
    """Whether noise of this scale on every entry leaves enough of a gradient of norm `clip`: a rule of public facts."""
    return noise_scale * math.sqrt(size) * SMALL <= clip


class CurvatureEstimate:
    """Estimate of a loss's curvature from noisy gradients (limited-memory BFGS), wary of the noise on every entry.

    Where nothing is known a step has the length `learning_rate`.
    """

    def __init__(self, learning_rate: float, noise_scale: float) -> None:
        self.learning_rate = learning_rate
        self.noise_scale = noise_scale
        self._length = learning_rate
        self._last: tuple[Array, Array] | None = None
        self._moves: list[Array] = []
        self._changes: list[Array] = []

    def change_noise(self, noise_scale: float) -> None:
        """Keep what was learnt; gradients to come have other noise, or are of other rows."""
        self.noise_scale, self._last = noise_scale, None

    def update(self, at: Array, gradient: Array) -> None:
        """Learn from how the gradient changed since the last point; what may be noise only asks for longer steps."""
        last, self._last = self._last, (at.ravel(), gradient.ravel())
        if last is None:
            return
        move, change = (new - old for new, old in zip(self._last, last))
        along = float(move @ change)
        if along <= math.sqrt(2) * self.noise_scale * float(np.linalg.norm(move)):
            self._length *= 1.5
            return
        self._moves = [*self._moves, move][-MOST:]
        self._changes = [*self._changes, change][-MOST:]
        self._length = max(self.learning_rate, min(along / float(change @ change), 3 * self._length))

    def step(self, at: Array, gradient: Array, penalty: Array | float) -> Array:
        """Where to go from a point: a Newton step on the loss as far as it is known, plus a squared penalty.

        The loss is taken to be curved enough everywhere that noise does not carry the coefficients away, but no more
        than a step of the usual length takes for granted.
        """
        length = float(np.linalg.norm(at))
        noise = STEADY * self.noise_scale * math.sqrt(at.size)
        least = min(noise / length if length > 0 else math.inf, 1 / self.learning_rate)
        ridge = np.broadcast_to(np.asarray(penalty, dtype=np.float64), at.shape).ravel()
        unit = 1 / np.sqrt(max(1 / self._length, least) + ridge)  # in these units the first guess is 1
        slope = (gradient + penalty * at).ravel()
        downhill = unit * slope
        if self._moves:
            moves, changes = np.array(self._moves), np.array(self._changes)
            curvature = np.einsum("ij,ij->i", moves, changes) / np.einsum("ij,ij->i", moves, moves)
            changes = changes + (np.maximum(0.0, least - curvature)[:, None] + ridge) * moves
            with np.errstate(all="ignore"):
                downhill = LbfgsInvHessProduct(moves / unit, changes * unit).matvec(downhill)
        move = unit * downhill
        longest = float(np.linalg.norm(slope)) / least
        norm = float(np.linalg.norm(move)) if (np.abs(move) < 1e150).all() else math.inf
        if not norm <= longest:  # secants that are mostly noise may ask for more, or for what no number can say
            move = move * (longest / norm) if math.isfinite(norm) else unit**2 * slope
        return np.asarray(at - move.reshape(at.shape))
