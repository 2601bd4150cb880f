"""What Newton steps make of released answers; no rows come here: ``docs/theory/newton.md``.

How rows are whitened, where the steps begin, and how far each of them goes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, qmc

from ppdp.bounds.learning import root_of
from ppdp.mechanisms.learn.prior import Prior

Array = NDArray[np.float64]

USUAL_WEIGHT = 0.3  # deviation of the mean weight of rows from 1, where nothing is known of it
NOISE_KEPT = 0.3  # of the norm of the noise in variances of directions, added where steps depend on them alone
LEAST_SHARE = 0.05  # of its variance that a direction keeps, at least
LARGEST_SLOPE, LARGEST_INTERCEPT = 4.0, 5.0  # where steps begin: largest norm of coefficients, largest intercept
LARGEST_SLOPE_OF_EXPONENTIALS = 0.5  # and where residuals grow with scores as exponentials do
CURVATURE_CLIP = 12.0  # norm at which a row's curvature is clipped, over that of a typical row
SIGNIFICANT = 4.0  # squared standard errors by which a curvature must differ to be another
TRUST = 2.0  # longest step, where coefficients are short
GROWTH = 1.3  # growth of the gradient at which a step is taken back
CONVERGED = 0.2  # of the noise, which the error that a last step leaves may be
RATE = 0.3  # at which errors are taken to fall as long as no two steps show it ...
CHANGE = 3.0  # ... or, where curvature was released, by which it changes for a step of length 1
KNOWN = 0.1  # of scores: a step behind which curvature is as it was
NODES = 1024  # of an integral over several scores
REACH, LEAST_ERROR = 6.0, 1e-12  # of numbers from where they were seen, in errors; and of those errors
FARTHEST, LARGEST_EXPONENT = 1e100, 1e6
MIDDLES = (np.arange(8) + 0.5) / 8  # of eighths of a distribution
LEAST_SEEN = 0.2  # of slopes that are expected
UNLIKE = 0.25  # of its size, by which a curvature may differ where rows are taken to be as a prior says


@dataclass(frozen=True, slots=True)
class TrainingLoss:
    """The loss of a row, as far as Newton steps go; scores are of shape (n, n_scores)."""

    residuals: Callable[[Array, Array], Array]  # of scores and y: derivatives in the scores
    curvatures: Callable[[Array, Array], Array]  # of scores and y: second derivatives
    usual_curvatures: Callable[[Array], Array]  # of scores, for the targets that are expected there
    targets: Callable[[Array], Array]  # of y: (n, n_targets), of norm 1 at most
    link: Callable[[Array], Array]  # of scores: the targets that are expected there
    dispersion: float | None = math.nan  # variance of residuals over curvature; None: that of targets about scores
    largest_slope: float = LARGEST_SLOPE  # largest norm of coefficients where steps begin
    lowest_target: float = -1.0
    chances: Callable[[Array], Array] | None = None  # of scores: the probability of each label 0, 1, ...


def of_two(link: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Probabilities of labels 0 and 1, where a target is -1 or 1."""
    return lambda scores: np.hstack([1 - link(scores), 1 + link(scores)]) / 2


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
class Whitening:
    """A map of rows, from released moments: centred and whitened, with a constant behind them."""

    centre: Array
    matrix: Array
    spread: Array  # largest standard deviation of whitened rows in each direction, up to 1
    intercept: bool
    target_means: Array
    target_covariances: Array  # with whitened rows, shape (n_targets, d)
    target_noise: float  # mean variance of the noise that is left in them
    variances: Array  # released, of whitened rows in each direction
    noise_norms: Array  # of the noise in them

    @classmethod
    def of(
        cls,
        moments: Array,
        n_targets: int,
        intercept: bool,
        unit: float,
        noise: float,
        least: float,
        lowest_target: float = -1.0,
    ) -> Whitening:
        """From the moments of rows, constant and targets; entries off the diagonal have noise ``noise/√2``.

        Directions of less variance than ``least`` are whitened as if they had that much.
        """
        d = len(moments) - n_targets - intercept
        rows, cross = moments[:d, :d], moments[:d, d + intercept :].T / unit
        centre, mean, noise_norm = np.zeros(d), np.zeros(n_targets), noise * math.sqrt(2 * d)
        if intercept:
            error = noise / unit**2
            off = error / USUAL_WEIGHT  # over the deviation that a weight usually has from 1
            weight = max((float(moments[d, d]) / unit**2 + off**2) / (1 + off**2), 1e-3)
            centre, mean = moments[:d, d] / (unit * weight), moments[d, d + 1 :] / (unit**2 * weight)
            mean = _within(lowest_target, 1.0, mean, error / (math.sqrt(2) * weight))
            noise_norm = math.hypot(noise_norm, float(np.linalg.norm(centre)) * noise * math.sqrt(d) / unit) / weight
            rows, cross = rows / weight - np.outer(centre, centre), cross / weight - np.outer(mean, centre)
        values, vectors = np.linalg.eigh(rows)
        floors = np.maximum(values, max(noise_norm, least))
        spread = np.sqrt(np.clip((values + noise_norm) / floors, LEAST_SHARE, 1.0))
        whitening = vectors / np.sqrt(floors)
        shrunk = cross @ whitening * np.clip(values / floors, 0.0, 1.0)
        errors = (noise / unit) ** 2 / 2 / floors
        squares = np.maximum((shrunk**2).sum(axis=1, keepdims=True), 1e-300)
        kept = np.maximum(0.0, 1 - errors.sum() / squares)
        of_rows = values / floors, noise_norm / floors
        left = float(errors.mean() * kept.mean())
        return cls(centre, whitening, spread, intercept, mean, shrunk * kept, left, *of_rows)

    @property
    def moments(self) -> Array:
        """Second moments of whitened rows, as far as noise lets them be known."""
        return np.diag([*self.spread**2, *[1.0] * self.intercept])

    def with_noise(self) -> Whitening:
        """With variances that noise has hardly made too small: they are all that tells curvatures of squares."""
        return replace(self, spread=np.sqrt(np.maximum(self.spread**2, self.variances + NOISE_KEPT * self.noise_norms)))

    def curvature(self) -> tuple[Array, Array]:
        """Released moments of whitened rows, and the norm of their noise in each direction."""
        constant = [1.0] * self.intercept
        return np.diag([*self.variances, *constant]), np.array([*self.noise_norms, *[0.0] * self.intercept])

    def norm_bound(self, bound: float) -> float:
        """Largest norm of a whitened row, for rows of a norm."""
        shift = float(np.linalg.norm(self.centre @ self.matrix))
        return (bound * float(np.linalg.norm(self.matrix)) + shift) * 1.001

    def coefficients(self, theta: Array) -> Array:
        """Coefficients of rows from those of whitened ones, intercepts last."""
        d = len(self.centre)
        coef = theta[:, :d] @ self.matrix.T
        return np.hstack([coef, theta[:, d:] - (coef @ self.centre)[:, None]]) if self.intercept else coef

    def inverse(self) -> Array:
        """What coefficients of rows are to be multiplied by, from the right, to be those of whitened ones."""
        return np.asarray(np.linalg.inv(self.coefficients(np.eye(len(self.centre) + self.intercept))))

    def initial(self, loss: TrainingLoss, begun: Array | None = None) -> Array:
        """Coefficients with which rows of a normal distribution have these moments with their targets.

        Where they have ``begun``, of one score, those with as much less of each slope as the moments say: columns of
        which slopes are known one by one may say the same.
        """
        if begun is not None:
            slopes, length = (
                begun[:, : len(self.centre)],
                max(float(np.linalg.norm(begun[0, : len(self.centre)])), 1e-300),
            )
            along = slopes[0] / length
            seen = replace(self, target_covariances=(self.target_covariances @ along)[:, None] * along).initial(loss)
            kept = np.clip(float(seen[0, : len(along)] @ along) / length, LEAST_SEEN, 1.0)
            return np.hstack([kept * slopes, begun[:, len(along) :]])
        if len(self.target_covariances) > 1:
            count = len(self.target_covariances)
            shares = np.clip(self.target_means, 1e-3, 1.0) if self.intercept else np.full(count, 1 / count)
            coef = self.target_covariances / shares[:, None]
            coef *= min(1.0, loss.largest_slope / max(float(np.linalg.norm(coef)), 1e-300))
            return np.hstack([coef, np.log(shares / shares.sum())[:, None]]) if self.intercept else coef
        points, weights = _nodes(1)
        length = float(np.linalg.norm(self.target_covariances))

        def expected(level: float, slope: float) -> Array:
            return np.asarray(weights * loss.link(level + slope * points)[:, 0])

        def level(slope: float) -> float:
            if not self.intercept:
                return 0.0
            mean, most = self.target_means[0], LARGEST_INTERCEPT
            return root_of(lambda at: float(expected(at, slope).sum() - mean), -most, most, xtol=1e-6)

        def slope_of(at: float) -> float:
            return float(expected(level(at), at) @ points[:, 0]) - length

        slope = root_of(slope_of, 0.0, loss.largest_slope, xtol=1e-6)
        coef = self.target_covariances * (slope / length if length else 0.0)
        return np.hstack([coef, [[level(slope)]]]) if self.intercept else coef


def _within(low: float, high: float, seen: Array, error: float) -> Array:
    """Expectation of numbers that lie in a range, anywhere alike, and were seen with normal errors."""
    seen = np.clip(np.nan_to_num(seen), -FARTHEST, FARTHEST)
    nearest = np.clip(seen, low, high)
    reach = min(REACH * max(error, LEAST_ERROR), high - low)
    points = np.linspace(np.maximum(low, nearest - reach), np.minimum(high, nearest + reach), 101)
    apart, least = (np.abs(where - seen) / max(error, LEAST_ERROR) for where in (points, nearest))
    weights = np.exp((least - apart) * np.minimum(least + apart, LARGEST_EXPONENT) / 2)
    return np.asarray((weights * points).sum(axis=0) / weights.sum(axis=0))


class NewtonState:
    """Coefficients of whitened rows, how sure they are, and where the next step goes.

    Each step is that of an extended Kalman filter: it moves the coefficients by as much as the gradient is more certain
    than what is known of them.
    """

    def __init__(
        self, loss: TrainingLoss, whitening: Whitening, theta: Array, penalty: float, curvature_scale: float, steps: int
    ) -> None:
        self.loss, self.whitening, self.theta = loss, whitening, theta
        self.curvature_scale, self.steps, self.remaining = curvature_scale, steps, steps
        self.trust, self._step_lengths = TRUST, [1.0]
        ridge = penalty * whitening.matrix.T @ whitening.matrix
        self.ridge = np.pad(ridge, (0, int(whitening.intercept)))
        self._curvatures: list[tuple[Array, float]] = []  # those that were released last, with their noise
        self._normal_curvatures, self._rms = self._curvatures_of_normal_rows()
        width = theta.shape[1]
        of_slope = whitening.target_noise / (2 * self._mean_curvature()) ** 2
        variance = (1 + self.score_norm(theta[:, : len(whitening.centre)]) ** 2) / width + min(of_slope, TRUST**2)
        self._units = 1 / np.diag(whitening.moments)  # variances of coefficients that move scores by as much
        variances = variance * self._units
        variances[len(whitening.centre) :] += 1.0
        self._covariances = [np.diag(variances) for _ in theta]
        self._best: tuple[Array, float, Array, float, list[Array], list[Array]] | None = None
        self.released_curvatures: list[tuple[Array, float]] = []  # of the first score, with their noise, by step
        self.last_gradient = np.zeros_like(theta), math.inf  # that was followed, and its noise
        self._unlike = 0.0

    def know(self, prior: Prior) -> None:
        """Begin with the covariance of coefficients that a prior says."""
        inverse = self.whitening.inverse()
        self._covariances = [(inverse.T * prior.deviations**2) @ inverse]
        self._units, self._unlike = np.zeros(len(inverse)), UNLIKE

    def covariance(self) -> Array:
        """That of the coefficients of rows, of the first score."""
        back = self.whitening.coefficients(np.eye(self.theta.shape[1]))
        return np.asarray(back.T @ self._covariances[0] @ back)

    def calibration(self, steps: int) -> tuple[Array, NewtonState]:
        """Direction in which scores of rows have a standard deviation of 1, and the state of slope and intercept."""
        d, theta, intercept = len(self.whitening.centre), self.theta, self.whitening.intercept
        slope = self.score_norm(theta[:, :d])
        direction = theta[0, :d] / max(slope, 1e-300)
        of_both = np.zeros((1 + intercept, d + intercept))
        of_both[0, :d], of_both[1:, d:] = direction, 1.0
        means, ones = self.whitening.target_means, np.ones((2, 1))
        scores = Whitening(np.zeros(1), np.eye(1), np.ones(1), intercept, means, np.ones((1, 1)), 0.0, *ones)
        state = NewtonState(self.loss, scores, np.hstack([[[slope]], theta[:, d:]]), 0.0, self.curvature_scale, steps)
        state._covariances = [of_both @ self._covariances[0] @ of_both.T]
        state._step_lengths = [self._step_lengths[-1]]
        return direction, state

    def curvature(self) -> tuple[Array, Array]:
        """That of the first score, from all steps but the first together, and the norm of its noise by direction."""
        released = self.released_curvatures[1:] or self.released_curvatures
        weights = np.array([1 / noise**2 for _, noise in released])
        pooled = np.tensordot(weights / weights.sum(), [matrix for matrix, _ in released], 1)
        noise = float(weights.sum() ** -0.5)
        matrix, _ = _shrunk(self._normal_curvatures[0], pooled, noise)
        return matrix, np.full(len(matrix), noise * math.sqrt(2 * len(matrix)))

    def curvature_clip(self, diagonal: bool) -> float:
        """Norm at which curvatures of rows are clipped, or their diagonals."""
        width = self.theta.shape[1]
        return self.curvature_scale * CURVATURE_CLIP * (math.sqrt(3 * width) if diagonal else width) * self._rms

    def _mean_curvature(self) -> float:
        """Mean curvature in a direction."""
        matrices = [matrix for matrix, _ in self._curvatures] or self._normal_curvatures
        return float(np.mean([np.trace(matrix) for matrix in matrices])) / self.theta.shape[1]

    def converged(self, noise: float) -> bool:
        """Whether one step more, with so much noise on each entry of its gradient, leaves little beside that noise."""
        *_, before, last = [math.inf, *self._step_lengths]
        least = min(RATE, CHANGE * last) if self.released_curvatures else RATE
        least = least if len(self._step_lengths) < 3 else 0.0
        return last * min(1.0, max(last, last / before, least)) ** 2 < CONVERGED * self._noise_in_scores(noise)

    def knows_curvature(self) -> bool:
        """Whether it was released, and coefficients have hardly moved since."""
        return bool(self._curvatures) and self._step_lengths[-1] <= KNOWN

    def _noise_in_scores(self, noise: float) -> float:
        """How far the noise of a gradient moves the scores of rows."""
        return noise * math.sqrt(self.theta.size) / max(self._mean_curvature(), 1e-300)

    def _normal_rows(self) -> tuple[Array, Array, Array, Array]:
        """Rows that are normal, in the directions of the scores: these, points and their weights, and scores there."""
        d = len(self.whitening.centre)
        left, lengths, right = np.linalg.svd(self.theta[:, :d] * self.whitening.spread, full_matrices=False)
        rank = int((lengths > 1e-9).sum())
        points, weights = _nodes(rank)
        scores = self.theta[:, d:].sum(axis=1) + points @ (left[:, :rank] * lengths[:rank]).T
        return right[:rank], points, weights, scores

    def shares_of_gradients(self, grid: Array) -> Array:
        """Shares of rows with gradients as long as each number of a grid, or beyond: normal rows, labels by chance."""
        assert self.loss.chances is not None
        d, (_, points, weights, scores) = len(self.whitening.centre), self._normal_rows()
        chances = self.loss.chances(scores)
        labels = [np.full(len(scores), float(label)) for label in range(chances.shape[1])]
        residuals = np.array([np.linalg.norm(self.loss.residuals(scores.copy(), label), axis=1) for label in labels])
        others = chi2.ppf(MIDDLES, max(d - points.shape[1], 1)) * float(np.mean(self.whitening.spread**2))
        norms = np.sqrt((points**2).sum(axis=1)[:, None] + others + self.whitening.intercept)
        lengths = residuals[:, :, None] * norms
        shares = np.broadcast_to((chances.T * weights)[:, :, None] / len(MIDDLES), lengths.shape)
        counts = np.bincount(np.searchsorted(grid[:-1], lengths.ravel()), shares.ravel(), len(grid))
        return np.asarray(counts, dtype=np.float64)

    def _curvatures_of_normal_rows(self) -> tuple[list[Array], float]:
        """Curvature of the loss of rows that are normal, for each score, and root mean square of that of scores."""
        d, spread = len(self.whitening.centre), self.whitening.spread
        right, points, weights, scores = self._normal_rows()
        rank, curvatures = len(right), self.loss.usual_curvatures(scores)
        matrices = []
        for of_score in curvatures.T:
            shares = weights * of_score
            level, first = float(shares.sum()), shares @ points
            second = (points * shares[:, None]).T @ points - level * np.eye(rank)
            matrix = (level * np.eye(d) + right.T @ second @ right) * np.outer(spread, spread)
            if self.whitening.intercept:
                edge = (right.T @ first) * spread
                matrix = np.block([[matrix, edge[:, None]], [edge[None], np.array([[level]])]])
            matrices.append(matrix)
        return matrices, math.sqrt(float(weights @ (curvatures**2).sum(axis=1)))

    def update(self, gradient: Array, noise: float, curvatures: Sequence[Array] | None, curvature_noise: float) -> None:
        """Make a step: ``noise`` is on every entry of the gradient, ``curvature_noise`` on a triangle of curvatures.

        Where no curvatures are given, the last ones are used, or before any those of normal rows.
        """
        gradient = gradient + self.theta @ self.ridge
        known = self._curvatures or [(matrix, 0.0) for matrix in self._normal_curvatures]
        if curvatures is not None:
            pairs = zip(self._normal_curvatures, curvatures, strict=True)
            known = self._curvatures = [_shrunk(normal, released, curvature_noise) for normal, released in pairs]
        length, noise_length = float(np.linalg.norm(gradient)), noise * math.sqrt(gradient.size)
        if self._best is not None and length > GROWTH * self._best[1] + 3 * noise_length:
            self.theta, _, gradient, noise, self._covariances, matrices = self._best
            known = [(matrix, 0.0) for matrix in matrices]
            self.trust /= 3
        else:
            self.trust = min(1.5 * self.trust, TRUST)
            self._best = self.theta, length, gradient, noise, self._covariances, [matrix for matrix, _ in known]
            if curvatures is not None and np.any(curvatures[0] - np.diag(np.diag(curvatures[0]))):
                self.released_curvatures.append((curvatures[0], curvature_noise))
        self.last_gradient = gradient, noise
        of_scores = zip(gradient, known, self._covariances, strict=True)
        steps = (self._kalman(slope, *curvature, before, noise) for slope, curvature, before in of_scores)
        moves, covariances = zip(*steps)
        self._move(np.array(moves), covariances, noise)

    def _kalman(
        self, gradient: Array, curvature: Array, error: float, covariance: Array, noise: float
    ) -> tuple[Array, Array]:
        """Step of one score, and the covariance of its coefficients behind it."""
        matrix = curvature + self.ridge
        error = max(error, self._unlike * float(np.trace(curvature)) / len(curvature))
        cross = matrix @ covariance
        variance = noise**2 + error**2 / 2 * float(np.trace(covariance))
        expected = cross @ matrix + variance * np.eye(len(cross))
        surprise = float(gradient @ np.linalg.solve(expected, gradient)) / len(gradient)
        if surprise > 1:  # less is known than was thought
            covariance, cross = surprise * covariance, surprise * cross
            expected = cross @ matrix + variance * np.eye(len(cross))
        gain = np.linalg.solve(expected, cross).T
        return gain @ gradient, covariance - gain @ cross

    def _move(self, move: Array, covariances: Sequence[Array], noise: float) -> None:
        """Make a step as far as it is trusted; what is left of it is unknown."""
        trust = self.trust * self.remaining / self.steps  # the last steps have little to do
        self.remaining -= 1
        length, longest = self.score_norm(move), trust * max(1.0, self.score_norm(self.theta) / 3)
        made = min(length, longest)
        unknown = ((length - made) ** 2 + min(made**2, made) ** 2) / move.shape[1]
        self._covariances = [
            (covariance + covariance.T) / 2 + np.diag(unknown * self._units) for covariance in covariances
        ]
        self.theta = self.theta - move * (made / length if length else 1.0)
        self._step_lengths.append(math.sqrt(max(length**2 - self._noise_in_scores(noise) ** 2, (length / 4) ** 2)))
        self._normal_curvatures, self._rms = self._curvatures_of_normal_rows()

    def score_norm(self, theta: Array) -> float:
        """Root mean square of what coefficients add to the scores of rows."""
        return math.sqrt(float((theta**2 @ np.diag(self.whitening.moments)[: theta.shape[1]]).sum()))


def _shrunk(normal: Array, released: Array, noise: float) -> tuple[Array, float]:
    """The released curvature as far as it is no noise, else that of normal rows; and the noise in it."""
    diagonal = np.diag(normal)
    difference = np.diag(released) - diagonal
    kept = np.maximum(0.0, 1 - SIGNIFICANT * noise**2 / np.maximum(difference**2, 1e-300))
    believed = np.maximum(diagonal + kept * difference, np.minimum(diagonal, noise))
    units = np.sqrt(believed / np.maximum(diagonal, 1e-300))
    normal = normal * np.outer(units, units)
    if not np.any(released - np.diag(np.diag(released))):  # a diagonal alone was released
        return normal, 0.0
    difference = released - normal
    numbers = len(normal) * (len(normal) + 1) / 2
    square_of_noise = noise**2 * (numbers + 3 * math.sqrt(2 * numbers))
    share = max(0.0, 1 - square_of_noise / max(float((difference**2).sum()), 1e-300))
    values, vectors = np.linalg.eigh(normal + share * difference)
    least = max(0.05 * float(np.linalg.eigvalsh(normal)[0]), share * noise * math.sqrt(len(normal) / 8))
    values = np.maximum(values, max(least, 1e-12))
    return (vectors * values) @ vectors.T, share * noise
