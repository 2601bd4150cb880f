"""First shapes of columns, from noisy histograms of labels: ``docs/theory/boosting.md``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ppdp.data.rows import Array
from ppdp.mechanisms.boosting.bins import Bins
from ppdp.mechanisms.boosting.losses import ScoreLoss
from ppdp.mechanisms.boosting.shapes import WEIGHT, Posterior

FARTHEST, LEAST_LEFT = 0.1, 1e-3  # of the way from the mean label to 0 or 1, which a first shape leaves of few rows
TURNS, STRIDE = 4, 2.0  # steps to the likeliest shape of scores, and by how much a bin moves in one, at most
LEAST_SLOPE = 0.25  # of the slope at the mean label: where labels are hardly ever 1, noise would move a shape far
DOUBT = 3.0  # rate of the exponential distribution of variances, of few rows
LEVELS = 8  # steps to a baseline
LEAST_RISE = 0.02  # of the mean label, where a baseline grows by 1


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
    bins: Bins,
    sums: tuple[Array, Array],
    spread: Array,
    given: tuple[float, float, int],
    kernels: Sequence[Array],
    scarcity: float,
) -> tuple[Posterior, Array, Callable[[], tuple[Posterior, Array]]]:
    """What noisy labels in bins say of a shape of scores, and the shape; and what gives both for one that is a line.

    Parameters
    ----------
    loss : ScoreLoss
        The loss.
    bins : Bins
        Bins of the column.
    sums : tuple of two ndarray of shape (n_bins,)
        Labels, and weights of the rows.
    spread : ndarray of shape (n_bins, n_bins)
        Covariance of the noise on either.
    given : tuple of (float, float, int)
        Mean label, weight of all rows, and how many other labels there are.
    kernels : sequence of ndarray of shape (n_bins, n_bins)
        As of :meth:`~Posterior.of`.
    scarcity : float
        1 where rows are few beside noise, else less: first shapes are doubted less, and go further.
    """
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
