"""How a score depends on the bin of a value, learned from noisy sums of gradients; no rows come here.

A shape has a normal distribution before anything is released: a sum of smooth, linear and independent parts, whose
variances are those under which the released sums are most likely. So noise makes shapes flat, and a part that is not
there costs nothing: ``docs/theory/boosting.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.linalg.lapack import dpotrf, dpotri, dtrtrs
from scipy.optimize import nnls
from scipy.special import ndtri
from scipy.stats import multivariate_normal

from ppdp.data.rows import Array
from ppdp.mechanisms.boosting.bins import Bins
from ppdp.mechanisms.boosting.losses import ScoreLoss

LENGTHS = (0.5, 0.15, 0.05)  # over which smooth parts change, in ranks from -1 to 1
TABLE_LENGTH = 0.6  # the same of tables of two columns
START = 0.1  # of all variances in the search for the most likely ones
LEAST = 1e-8  # of a variance
STEPS = 40
MOST_SEEN = 64  # numbers in whose neighbours' sums the most likely variances are looked for
SHORTER = tuple(2.0**-i for i in range(6))  # parts of a step that are tried
CLOSE = 1e-11  # what a step may gain to be the last, whose error is of the order of its square
RIDGE = 1e-9
GROWTH, SMALL = 8.0, 1e-3  # of a variance in one step, and of none: parabolas far away say little
WEIGHT = 0.02  # rate of the exponential distribution that variances have before anything is released
# Of first shapes, from noisy histograms of labels.
FARTHEST, LEAST_LEFT = 0.1, 1e-3  # of the way from the mean label to 0 or 1, which a first shape leaves of few rows
TURNS, STRIDE = 4, 2.0  # steps to the likeliest shape of scores, and by how much a bin moves in one, at most
LEAST_SLOPE = 0.25  # of the slope at the mean label: where labels are hardly ever 1, noise would move a shape far
DOUBT = 3.0  # rate of the exponential distribution of variances, of few rows
CORRELATED = 0.95  # largest correlation of what two columns add
LEVELS = 8  # steps to a baseline
LEAST_RISE = 0.02  # of the mean label, where a baseline grows by 1


def centred(kernel: Array, shares: Array) -> Array:
    """Covariance of a shape less its mean over the rows."""
    rows = kernel - shares @ kernel
    return np.asarray(rows - (rows @ shares)[:, None])


def parts(bins: Bins) -> list[Array]:
    """Covariances of the parts of a shape, for variances of 1."""
    count = bins.count
    if not bins.ordered:
        return [centred(np.eye(count), bins.shares)]
    known = bins.shares.copy()
    known[-1] = 0.0
    known /= known.sum()
    missing = np.zeros((count, count))
    missing[-1, -1] = 1.0
    lines = [np.asarray(line - known @ line, dtype=np.float64) for line in (bins.places, bins.ranks())]
    straight = [np.outer(line, line) / max(float(known @ line**2), 1e-9) for line in lines]
    apart = np.subtract.outer(bins.ranks(), bins.ranks())
    smooth = [np.asarray(np.exp(-((apart / length) ** 2) / 2)) for length in LENGTHS]
    of_values = [centred(kernel, known) for kernel in (*straight, *smooth, np.eye(count))]
    for kernel in of_values:
        kernel[-1], kernel[:, -1] = 0.0, 0.0
    return [*of_values, missing]


def table_parts(shares: Array, *, ordered: bool) -> list[Array]:
    """Covariances of what the groups of one column add, for tables: straight, smooth and independent.

    The last group, of missing values, has only an independent part.
    """
    shares = shares / shares.sum()
    apart = centred(np.eye(len(shares)), shares)
    if not ordered:
        return [apart] * 3
    known = np.append(shares[:-1], 0.0) / shares[:-1].sum()
    ranks = 2 * (np.cumsum(known) - known / 2) - 1
    smooth = np.exp(-((np.subtract.outer(ranks, ranks) / TABLE_LENGTH) ** 2) / 2)
    of_ranks = [centred(kernel, known) for kernel in (3 * np.outer(ranks, ranks), smooth)]
    for kernel in of_ranks:
        kernel[-1], kernel[:, -1] = 0.0, 0.0
    return [*of_ranks, apart]


def products(first: Sequence[Array], second: Sequence[Array]) -> list[Array]:
    """Covariances of the parts of a table of two columns that neither of them has alone."""
    return [np.asarray(np.kron(one, other), dtype=np.float64) for one, other in zip(first, second)]


def correlations(moments: Array) -> Array:
    """From second moments; of what is 0, 0."""
    deviations = np.sqrt(np.maximum(np.diag(moments), 1e-300))
    return np.asarray(np.clip(moments / np.outer(deviations, deviations), -CORRELATED, CORRELATED))


def joint_shares(shares: tuple[Array, Array], effects: tuple[Array, Array], correlation: float) -> Array:
    """Shares of the rows in the cells of two columns of groups, as many at least as if these were independent.

    With this correlation of effects they are taken to be ranks of normal ones.
    """
    independent = np.outer(*shares)
    if correlation == 0:
        return independent
    order = [np.argsort(of_groups, kind="stable") for of_groups in effects]
    ends = [ndtri(np.append(0.0, np.minimum(np.cumsum(own[by]), 1.0))).clip(-9, 9) for own, by in zip(shares, order)]
    grid = np.stack(np.meshgrid(*ends, indexing="ij"), axis=-1)
    below = multivariate_normal(cov=[[1.0, correlation], [correlation, 1.0]]).cdf(grid)
    together = np.zeros_like(independent)
    together[np.ix_(*order)] = np.diff(np.diff(below, axis=0), axis=1)
    return np.maximum(independent, together)


@dataclass(frozen=True, slots=True)
class Posterior:
    """What released sums say of a shape."""

    mean: Array
    covariance: Array
    evidence: float  # by how much the logarithm of their likelihood is larger than that of noise alone

    def errors(self) -> Array:
        """Standard deviations."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    @classmethod
    def none(cls, count: int) -> Posterior:
        """Nothing is said: of what was released no numbers come."""
        return cls(np.zeros(count), np.zeros((count, count)), 0.0)

    @classmethod
    def of(
        cls,
        sums: Array,
        curvature: Array,
        noise: Array,
        kernels: Sequence[Array],
        doubt: float = WEIGHT,
        *,
        alone: bool = False,
    ) -> Posterior:
        """From sums of gradients in bins, ``curvature * shape`` with noise of this covariance.

        Parameters
        ----------
        sums : ndarray of shape (n_bins,)
            Sums of gradients.
        curvature : ndarray of shape (n_bins,)
            By how much a sum falls where the shape of its bin rises by 1.
        noise : ndarray of shape (n_bins, n_bins)
            Covariance of noise and of the labels of the rows.
        kernels : sequence of ndarray of shape (n_bins, n_bins)
            Covariances of the parts of a shape, each for a variance of 1.
        doubt : float, default=0.02
            Rate of the exponential distribution that variances have before anything is released.
        alone : bool, default=False
            Whether nothing but the mean is wanted, which takes half of the time: all else is 0.
        """
        try:
            found = cls._likeliest(sums, curvature, noise, kernels, doubt, alone=alone)
        except (np.linalg.LinAlgError, ArithmeticError, ValueError):
            return cls.none(len(sums))
        return found if np.isfinite(found.mean).all() and np.isfinite(found.covariance).all() else cls.none(len(sums))

    @classmethod
    def _likeliest(
        cls, sums: Array, curvature: Array, noise: Array, kernels: Sequence[Array], doubt: float, *, alone: bool
    ) -> Posterior:
        seen = _Likelihood.of(sums, noise, [curvature[:, None] * kernel * curvature for kernel in kernels], doubt)
        variances = seen.maximum()
        kernel = np.tensordot(variances, np.array(kernels), 1)
        gain = kernel * curvature
        factor = cho_factor(noise + curvature[:, None] * gain, lower=True)
        weights = cho_solve(factor, sums)
        if alone:
            return cls(gain @ weights, np.zeros_like(kernel), 0.0)
        of_noise = cho_factor(noise, lower=True)
        larger = float(np.log(factor[0].diagonal() / of_noise[0].diagonal()).sum() + doubt * variances.sum())
        evidence = float(sums @ (cho_solve(of_noise, sums) - weights)) / 2 - larger
        return cls(gain @ weights, kernel - gain @ cho_solve(factor, gain.T), evidence)


@dataclass(frozen=True, slots=True)
class _Likelihood:
    """How likely sums are whose noise has variance 1, by the variances of parts with these covariances."""

    sums: Array
    parts: Array
    doubt: float

    @classmethod
    def of(cls, sums: Array, noise: Array, parts: Sequence[Array], doubt: float) -> _Likelihood:
        """From sums with noise: of many numbers those of neighbours are added, which say of variances about as much."""
        starts = np.append(np.arange(0, len(sums) - 1, max(1, len(sums) // MOST_SEEN)), len(sums) - 1)

        def whitened(numbers: Array) -> Array:
            return np.asarray(solve_triangular(root, numbers, lower=True))

        together, *parts = (np.add.reduceat(np.add.reduceat(each, starts), starts, axis=1) for each in (noise, *parts))
        root = np.linalg.cholesky(together)
        return cls(
            whitened(np.add.reduceat(sums, starts)), np.array([whitened(whitened(part).T) for part in parts]), doubt
        )

    def covariance(self, variances: Array) -> Array:
        """That of the sums."""
        return np.asarray(np.eye(len(self.sums)) + np.tensordot(variances, self.parts, 1))

    def unlikely(self, variances: Array) -> float:
        """What is least where sums are likeliest."""
        factor, failed = dpotrf(self.covariance(variances), lower=1)
        if failed:
            return math.inf
        weights, _ = dtrtrs(factor, self.sums, lower=1)
        return float(weights @ weights / 2 + np.log(factor.diagonal()).sum() + self.doubt * variances.sum())

    def derivatives(self, variances: Array) -> tuple[Array, Array, Array]:
        """Of :meth:`unlikely` the first, the second, and the second that are expected: Fisher's information."""
        inverse, count = _inverted(self.covariance(variances)), len(variances)
        weights = inverse @ self.sums
        scaled, pulls = inverse @ self.parts, self.parts @ weights
        first = (np.trace(scaled, axis1=1, axis2=2) - pulls @ weights) / 2 + self.doubt
        expected = scaled.reshape(count, -1) @ scaled.transpose(0, 2, 1).reshape(count, -1).T / 2
        return first, pulls @ inverse @ pulls.T - expected, expected

    def maximum(self) -> Array:
        """Likeliest variances."""
        variances = np.full(len(self.parts), START)
        value = self.unlikely(variances)
        for _ in range(STEPS):
            first, second, expected = self.derivatives(variances)
            step = _step(variances, first, second, expected)
            last = -float(first @ step) < CLOSE * (1 + abs(value))
            tried = ((nearer, self.unlikely(nearer)) for nearer in (variances + part * step for part in SHORTER))
            better = next((one for one in tried if one[1] < value or last), None)
            if better is None:
                break
            variances, value = better
            if last:
                break
        return variances


def _step(variances: Array, first: Array, second: Array, expected: Array) -> Array:
    """To the minimum of a parabola within bounds: Newton's where there is one, else that of Fisher's scoring."""
    factor, failed = dpotrf(second, lower=1)
    if failed:
        factor, failed = dpotrf(expected + np.diag(RIDGE * expected.diagonal()), lower=1)
    above = variances - LEAST
    goal, _ = nnls(factor.T, factor.T @ above - dtrtrs(factor, first, lower=1)[0])
    step = goal - above
    most = GROWTH * np.maximum(variances, SMALL) - variances
    return np.asarray(step * np.min(np.divide(most, step, out=np.ones(len(step)), where=step > most), initial=1.0))


def _inverted(matrix: Array) -> Array:
    """The inverse of a positive definite matrix, by the routines of LAPACK alone.

    :class:`ArithmeticError` if it is not positive definite.
    """
    factor, failed = dpotrf(matrix, lower=1)
    inverse, singular = dpotri(factor, lower=1)
    if failed or singular:
        raise ArithmeticError("not positive definite")
    whole = inverse + inverse.T  # above the diagonal are zeros
    whole.flat[:: len(whole) + 1] /= 2
    return np.asarray(whole)


def level(loss: ScoreLoss, rate: float, shape: Array, shares: Array) -> float:
    """The baseline under which a shape predicts this mean label."""
    baseline = float(loss.score(rate))
    for _ in range(LEVELS):
        lacking = rate - float(shares @ loss.mean(baseline + shape))
        rise = max(float(shares @ loss.rise(baseline + shape)), LEAST_RISE * rate)
        baseline += float(np.clip(lacking / rise, -1.0, 1.0))
    return baseline


def first_shape(
    loss: ScoreLoss,
    bins: Bins,  # of the column
    sums: tuple[Array, Array],  # labels in each bin, and weights of the rows
    spread: Array,  # covariance of the noise on either
    given: tuple[float, float, int],  # mean label, weight of all rows, and how many other labels there are
    kernels: Sequence[Array],  # as of :meth:`~Posterior.of`
    scarcity: float,  # 1 where rows are few beside noise, else less: first shapes are doubted less, and go further
) -> tuple[Posterior, Array, Callable[[], tuple[Posterior, Array]]]:
    """What noisy labels in bins say of a shape of scores, and the shape; and what gives both for one that is a line."""
    (rate, n_rows, others), doubt = given, max(DOUBT * scarcity, WEIGHT)
    rows, shape, (labels, weights) = n_rows * bins.shares, np.zeros(bins.count), sums
    least = LEAST_SLOPE * float(loss.rise(np.array([loss.score(rate)]))[0])
    for turn in range(TURNS if loss.curved else 1)[::-1]:
        baseline = level(loss, rate, shape, bins.shares)
        means = loss.mean(baseline + shape)
        curvature = rows * np.maximum(loss.rise(baseline + shape), least)
        noise = spread * (np.outer(1 - means, 1 - means) + others * np.outer(means, means))
        noise += np.diag(rows * loss.label_variance(baseline + shape) + 1e-6)
        rest = labels - means * weights + curvature * shape
        posterior = Posterior.of(rest, curvature, noise, kernels, doubt, alone=turn > 0)
        before, shape = shape, np.clip(posterior.mean, shape - STRIDE, shape + STRIDE)
    left = max(FARTHEST * scarcity, LEAST_LEFT)
    low, high = (float(loss.score(mean)) - baseline for mean in (rate * left, 1 - (1 - rate) * left))

    def shown(found: Posterior) -> tuple[Posterior, Array]:
        shape = np.clip(np.clip(found.mean, before - STRIDE, before + STRIDE), low, high)
        return found, np.asarray(shape - bins.shares @ shape)

    def straight() -> tuple[Posterior, Array]:
        return shown(Posterior.of(rest, curvature, noise, [kernels[0], kernels[-1]], doubt))

    return *shown(posterior), straight
