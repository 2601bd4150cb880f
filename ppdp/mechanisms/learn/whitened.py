"""What is made of the answers that Newton steps see, and nothing else: no rows come here.

How rows are whitened, where the steps begin, and how far each of them goes: ``docs/theory/newton.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import qmc

Array = NDArray[np.float64]

HIDDEN = 0.05  # least share of its variance that is taken to be seen of a direction
STEEP, HIGH = 4.0, 5.0  # where steps begin: largest norm of coefficients, largest intercept
STEEP_EXPONENTS = 0.5  # and where residuals grow with scores as exponentials do
CURVED = 12.0  # norm at which a row's curvature is clipped, over that of a typical row
BELIEVED = 4.0  # squared standard errors by which a curvature must differ to be another
TRUSTED = 2.0  # longest step, where coefficients are short
WORSE = 1.3  # growth of the gradient at which a step is taken back
SETTLED = 0.2  # of the noise, which the error that a last step leaves may be
RATE = 0.3  # at which errors are taken to fall as long as no two steps show it
NODES = 1024  # of an integral over several scores


@dataclass(frozen=True, slots=True)
class Loss:
    """The loss of a row, as far as Newton steps go; scores are of shape (n, n_scores)."""

    residuals: Callable[[Array, Array], Array]  # of scores and y: derivatives in the scores
    curvatures: Callable[[Array, Array], Array]  # of scores and y: second derivatives
    usual_curvatures: Callable[[Array], Array]  # of scores, for the targets that are expected there
    targets: Callable[[Array], Array]  # of y: (n, n_targets), of norm 1 at most
    link: Callable[[Array], Array]  # of scores: the targets that are expected there
    dispersion: float | None = math.nan  # variance of residuals over curvature; None: that of targets about scores
    steepest: float = STEEP  # largest norm of coefficients where steps begin


@cache
def _triangle(width: int) -> tuple[tuple[NDArray[np.intp], ...], Array]:
    """Places in an upper triangle, and their factors."""
    which = np.triu_indices(width)
    return which, np.where(which[0] == which[1], 1.0, math.sqrt(2))


def upper(matrix: Array) -> Array:
    """The upper triangle of a symmetric matrix, isometric to it."""
    which, factors = _triangle(len(matrix))
    return np.asarray(matrix[which] * factors)


def square(numbers: Array, width: int) -> Array:
    """The symmetric matrix of an upper triangle."""
    (which, factors), matrix = _triangle(width), np.zeros((width, width))
    matrix[which] = numbers / factors
    return np.asarray(matrix + np.triu(matrix, 1).T)


@cache
def _nodes(dimension: int) -> tuple[Array, Array]:
    """Points and weights of an integral over a standard normal distribution."""
    if dimension == 0:
        return np.zeros((1, 0)), np.ones(1)
    if dimension == 1:
        points, weights = np.polynomial.hermite_e.hermegauss(31)
        return points[:, None], weights / weights.sum()
    points = qmc.MultivariateNormalQMC(np.zeros(dimension), seed=np.random.default_rng(0)).random(NODES)
    return points, np.full(NODES, 1 / NODES)


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """How rows are seen: centred and whitened by released moments, with a constant behind them."""

    centre: Array
    whitening: Array
    spread: Array  # largest standard deviation of what is seen in each direction, up to 1
    intercept: bool
    mean: Array  # of the targets
    cross: Array  # covariances of the targets with what is seen, shape (n_targets, d)
    unsure: float  # mean variance of the noise in them
    variances: Array  # released, of what is seen in each direction, and the norm of their noise
    radii: Array

    @classmethod
    def of(cls, moments: Array, n_targets: int, intercept: bool, unit: float, noise: float, least: float) -> View:
        """From the moments of rows, constant and targets; entries off the diagonal have noise ``noise/√2``.

        Directions of less variance than ``least`` are seen as if they had that much.
        """
        d = len(moments) - n_targets - intercept
        own, cross = moments[:d, :d], moments[:d, d + intercept :].T / unit
        centre, mean, radius = np.zeros(d), np.zeros(n_targets), noise * math.sqrt(2 * d)
        if intercept:
            weight = max(float(moments[d, d]) / unit**2, 1e-3)
            centre, mean = moments[:d, d] / (unit * weight), moments[d, d + 1 :] / (unit**2 * weight)
            error = noise / (math.sqrt(2) * unit**2 * weight)
            mean = mean * np.maximum(0.0, 1 - error**2 / np.maximum(mean**2, 1e-300))
            radius = math.hypot(radius, float(np.linalg.norm(centre)) * noise * math.sqrt(d) / unit) / weight
            own, cross = own / weight - np.outer(centre, centre), cross / weight - np.outer(mean, centre)
        values, vectors = np.linalg.eigh(own)
        floors = np.maximum(values, max(radius, least))
        spread = np.sqrt(np.clip((values + radius) / floors, HIDDEN, 1.0))
        whitening = vectors / np.sqrt(floors)
        seen = cross @ whitening * np.clip(values / floors, 0.0, 1.0)
        errors = (noise / unit) ** 2 / 2 / floors
        squares = np.maximum((seen**2).sum(axis=1, keepdims=True), 1e-300)
        seen = seen * np.maximum(0.0, 1 - errors.sum() / squares)
        unsure = float(errors.mean())
        return cls(centre, whitening, spread, intercept, mean, seen, unsure, values / floors, radius / floors)

    @property
    def moments(self) -> Array:
        """Second moments of what is seen, as far as noise lets them be known."""
        return np.diag([*self.spread**2, *[1.0] * self.intercept])

    def curvature(self) -> tuple[Array, Array]:
        """Released moments of what is seen, and the norm of their noise in each direction."""
        constant = [1.0] * self.intercept
        return np.diag([*self.variances, *constant]), np.array([*self.radii, *[0.0] * self.intercept])

    def steepest(self) -> float:
        """Largest norm with which an entry of what is seen is taken of a row."""
        return float(np.linalg.norm(self.whitening, axis=0).max())

    def longest(self, bound: float) -> float:
        """How long rows of a norm may be seen."""
        shift = float(np.linalg.norm(self.centre @ self.whitening))
        return (bound * float(np.linalg.norm(self.whitening)) + shift) * 1.001

    def coefficients(self, theta: Array) -> Array:
        """Coefficients of what is seen as those of rows, intercepts last."""
        d = len(self.centre)
        coef = theta[:, :d] @ self.whitening.T
        return np.hstack([coef, theta[:, d:] - (coef @ self.centre)[:, None]]) if self.intercept else coef

    def first(self, loss: Loss) -> Array:
        """Coefficients with which rows of a normal distribution have these moments with their targets."""
        if len(self.cross) > 1:
            shares = np.clip(self.mean, 1e-3, 1.0) if self.intercept else np.full(len(self.cross), 1 / len(self.cross))
            coef = self.cross / shares[:, None]
            coef *= min(1.0, loss.steepest / max(float(np.linalg.norm(coef)), 1e-300))
            return np.hstack([coef, np.log(shares / shares.sum())[:, None]]) if self.intercept else coef
        points, weights = _nodes(1)
        length = float(np.linalg.norm(self.cross))

        def expected(level: float, steepness: float) -> Array:
            return np.asarray(weights * loss.link(level + steepness * points)[:, 0])

        def level(steepness: float) -> float:
            if not self.intercept:
                return 0.0
            return _root(lambda at: float(expected(at, steepness).sum() - self.mean[0]), -HIGH, HIGH)

        steepness = _root(lambda at: float(expected(level(at), at) @ points[:, 0]) - length, 0.0, loss.steepest)
        coef = self.cross * (steepness / length if length else 0.0)
        return np.hstack([coef, [[level(steepness)]]]) if self.intercept else coef


def _root(increasing: Callable[[float], float], low: float, high: float) -> float:
    """Where a function is 0, or the end at which it is nearer to that."""
    if increasing(low) >= 0:
        return low
    if increasing(high) <= 0:
        return high
    return float(brentq(increasing, low, high, xtol=1e-6))


class Search:
    """Coefficients of what is seen, how sure they are, and where the next step goes.

    Each step is that of an extended Kalman filter: it moves the coefficients by as much as the gradient is more certain
    than what is known of them.
    """

    def __init__(self, loss: Loss, view: View, theta: Array, penalty: float, curved: float, steps: int) -> None:
        self.curved, self.steps, self.left = curved, steps, steps
        self.loss, self.view, self.theta = loss, view, theta
        self.trusted, self._moves = TRUSTED, [1.0]
        ridge = penalty * view.whitening.T @ view.whitening
        self.ridge = np.pad(ridge, (0, int(view.intercept)))
        self._known: list[tuple[Array, float]] = []  # curvatures that were released, with their noise
        self._curvatures, self._rms = self._expected()
        width = theta.shape[1]
        unsure = (1 + self.length(theta) ** 2) / width + min(view.unsure / (2 * self._typical()) ** 2, TRUSTED**2)
        self._units = 1 / np.diag(view.moments)  # variances of coefficients that move scores by as much
        known = unsure * self._units
        known[len(view.centre) :] += 1.0
        self._covariances = [np.diag(known) for _ in theta]
        self._best: tuple[Array, float, Array, float, list[Array], list[Array]] | None = None
        self.seen: list[tuple[Array, float]] = []  # curvatures of the first score with their noise, step by step
        self.last = np.zeros_like(theta), math.inf  # the gradient that was followed last, and its noise

    def calibration(self, steps: int) -> tuple[Array, Search]:
        """Direction in which scores of rows have a standard deviation of 1, and the search of slope and intercept."""
        d, theta, certain = len(self.view.centre), self.theta, self.view.intercept
        slope = self.length(theta[:, :d])
        direction = theta[0, :d] / max(slope, 1e-300)
        of_both = np.zeros((1 + certain, d + certain))
        of_both[0, :d], of_both[1:, d:] = direction, 1.0
        one = View(np.zeros(1), np.eye(1), np.ones(1), certain, self.view.mean, np.ones((1, 1)), 0.0, *np.ones((2, 1)))
        search = Search(self.loss, one, np.hstack([[[slope]], theta[:, d:]]), 0.0, self.curved, steps)
        search._covariances = [of_both @ self._covariances[0] @ of_both.T]
        search._moves = [self._moves[-1]]
        return direction, search

    def curvature(self) -> tuple[Array, Array]:
        """That of the first score, from all steps but the first together, and the norm of its noise by direction."""
        seen = self.seen[1:] or self.seen
        weights = np.array([1 / unsure**2 for _, unsure in seen])
        pooled = np.tensordot(weights / weights.sum(), [matrix for matrix, _ in seen], 1)
        unsure = float(weights.sum() ** -0.5)
        matrix, _ = self._blend(self._curvatures[0], pooled, unsure)
        return matrix, np.full(len(matrix), unsure * math.sqrt(2 * len(matrix)))

    def usual_curvature(self, diagonal: bool) -> float:
        """Norm at which curvatures of rows are clipped, or their diagonals."""
        width = self.theta.shape[1]
        return self.curved * CURVED * (math.sqrt(3 * width) if diagonal else width) * self._rms

    def _typical(self) -> float:
        """Mean curvature in a direction."""
        matrices = [own for own, _ in self._known] or self._curvatures
        return float(np.mean([np.trace(own) for own in matrices])) / self.theta.shape[1]

    def settled(self, noise: float) -> bool:
        """Whether one step more, with so much noise on each entry of its gradient, leaves little beside that noise."""
        *_, before, last = [math.inf, *self._moves]
        least = RATE if len(self._moves) < 3 else 0.0
        return last * min(1.0, max(last, last / before, least)) ** 2 < SETTLED * self._moved_by(noise)

    def _moved_by(self, noise: float) -> float:
        """How far the noise of a gradient moves the scores of rows."""
        return noise * math.sqrt(self.theta.size) / max(self._typical(), 1e-300)

    def _expected(self) -> tuple[list[Array], float]:
        """Curvature of the loss of rows that are normal, for each score, and root mean square of that of scores."""
        d, spread = len(self.view.centre), self.view.spread
        left, lengths, right = np.linalg.svd(self.theta[:, :d] * spread, full_matrices=False)
        rank = int((lengths > 1e-9).sum())
        right = right[:rank]
        points, weights = _nodes(rank)
        levels = self.theta[:, d:].sum(axis=1)
        bends = self.loss.usual_curvatures(levels + points @ (left[:, :rank] * lengths[:rank]).T)
        found = []
        for own in bends.T:
            shares = weights * own
            level, first = float(shares.sum()), shares @ points
            second = (points * shares[:, None]).T @ points - level * np.eye(rank)
            matrix = (level * np.eye(d) + right.T @ second @ right) * np.outer(spread, spread)
            if self.view.intercept:
                edge = (right.T @ first) * spread
                matrix = np.block([[matrix, edge[:, None]], [edge[None], np.array([[level]])]])
            found.append(matrix)
        return found, math.sqrt(float(weights @ (bends**2).sum(axis=1)))

    def see(self, gradient: Array, noise: float, curvatures: Sequence[Array] | None, unsure: float) -> None:
        """Make a step: ``noise`` is on every entry of the gradient, ``unsure`` that of a triangle of curvatures.

        Where no curvatures are seen, those seen last are used, or before any those of normal rows.
        """
        gradient = gradient + self.theta @ self.ridge
        known = self._known or [(own, 0.0) for own in self._curvatures]
        if curvatures is not None:
            known = self._known = [self._blend(*own, unsure) for own in zip(self._curvatures, curvatures, strict=True)]
        length, drowned = float(np.linalg.norm(gradient)), noise * math.sqrt(gradient.size)
        if self._best is not None and length > WORSE * self._best[1] + 3 * drowned:
            self.theta, _, gradient, noise, self._covariances, matrices = self._best
            known = [(matrix, 0.0) for matrix in matrices]
            self.trusted /= 3
        else:
            self.trusted = min(1.5 * self.trusted, TRUSTED)
            self._best = self.theta, length, gradient, noise, self._covariances, [matrix for matrix, _ in known]
            if curvatures is not None and np.any(curvatures[0] - np.diag(np.diag(curvatures[0]))):
                self.seen.append((curvatures[0], unsure))
        self.last = gradient, noise
        moves, left = [], []
        for own, (matrix, error), covariance in zip(gradient, known, self._covariances, strict=True):
            matrix = matrix + self.ridge
            seen = matrix @ covariance
            variance = noise**2 + error**2 / 2 * float(np.trace(covariance))
            expected = seen @ matrix + variance * np.eye(len(seen))
            surprise = float(own @ np.linalg.solve(expected, own)) / len(own)
            if surprise > 1:  # less is known than was thought
                covariance, seen = surprise * covariance, surprise * seen
                expected = seen @ matrix + variance * np.eye(len(seen))
            gain = np.linalg.solve(expected, seen).T
            moves.append(gain @ own)
            left.append(covariance - gain @ seen)
        move = np.array(moves)
        trusted = self.trusted * self.left / self.steps  # the last steps have little to do
        self.left -= 1
        asked, longest = self.length(move), trusted * max(1.0, self.length(self.theta) / 3)
        made = min(asked, longest)
        unknown = ((asked - made) ** 2 + min(made**2, made) ** 2) / gradient.shape[1]
        self._covariances = [(own + own.T) / 2 + np.diag(unknown * self._units) for own in left]
        self.theta = self.theta - move * (made / asked if asked else 1.0)
        self._moves.append(math.sqrt(max(asked**2 - self._moved_by(noise) ** 2, (asked / 4) ** 2)))
        self._curvatures, self._rms = self._expected()

    def length(self, theta: Array) -> float:
        """Root mean square of what coefficients add to the scores of rows."""
        return math.sqrt(float((theta**2 @ np.diag(self.view.moments)[: theta.shape[1]]).sum()))

    def _blend(self, usual: Array, seen: Array, unsure: float) -> tuple[Array, float]:
        """The released curvature as far as it is no noise, else that of normal rows; and the noise in it."""
        own = np.diag(usual)
        apart = np.diag(seen) - own
        believed = own + np.maximum(0.0, 1 - BELIEVED * unsure**2 / np.maximum(apart**2, 1e-300)) * apart
        believed = np.maximum(believed, np.minimum(own, unsure))
        units = np.sqrt(believed / np.maximum(own, 1e-300))
        usual = usual * np.outer(units, units)
        if not np.any(seen - np.diag(np.diag(seen))):  # a diagonal alone was seen
            return usual, 0.0
        beside = seen - usual
        numbers = len(usual) * (len(usual) + 1) / 2
        noise = unsure**2 * (numbers + 3 * math.sqrt(2 * numbers))
        share = max(0.0, 1 - noise / max(float((beside**2).sum()), 1e-300))
        values, vectors = np.linalg.eigh(usual + share * beside)
        least = max(0.05 * float(np.linalg.eigvalsh(usual)[0]), share * unsure * math.sqrt(len(usual) / 8))
        values = np.maximum(values, max(least, 1e-12))
        return (vectors * values) @ vectors.T, share * unsure
