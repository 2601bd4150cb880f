"""What is known before Newton steps are made, and where they clip; no rows come here: ``docs/theory/newton.md``."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from sklearn.isotonic import isotonic_regression

Array = NDArray[np.float64]

LEAST_LEFT = 0.2  # of the squares of rows, behind a clip
LEAST_NOISE = 1e-3  # of that of moments, where nothing in them is believed
COUNTED = 4.5  # standard errors by which the share of a bin must differ to be another than is expected
MOST_CLIPPED = 0.5  # of the rows: were it all of them, noise would fall no faster than what is learned
NEAR = 4.0  # standard deviation, in bins, of a typical norm
SPREADS = (0.5, 1.0, 2.0)  # standard deviations of norms that are usual, in bins


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """What is known before steps are made of rows that are centred and end in a constant."""

    means: Array  # of the coefficients, the intercept last
    deviations: Array
    moments: Array  # second moments of rows, of shape (d, d); 0 where they are not known

    def believed(self, released: Array, noise: float, unit: float) -> tuple[Array, float]:
        """Released moments with those that are known in their place, others as far as they are no noise; and noise."""
        d, moments = len(self.moments), released.copy()
        rows, usual = moments[:d, :d], np.maximum(np.diag(self.moments), 1e-6)
        left = float(np.clip(np.mean(np.diag(rows) / usual), LEAST_LEFT, 1.0))  # of squares, of rows that were clipped
        seen = np.where(self.moments == 0, rows / left, 0.0)
        numbers = max(np.count_nonzero(seen) / 2, 1.0)
        of_noise = (noise / left) ** 2 * (numbers + 2 * math.sqrt(2 * numbers)) / 2
        share = max(0.0, 1 - of_noise / max(float((seen**2).sum()) / 2, 1e-300))
        moments[:d, :d] = self.moments + share * seen
        moments[:d, d] *= share
        moments[d, :d] *= share
        moments[d, d] = unit**2
        return moments, max(share, LEAST_NOISE) * noise / left


def choose_clip(shares: Array, expected: Array, grid: Array, price: float, noise: float) -> float:
    """The clip, of a grid, at which what it cuts off and what noise it asks for are least together.

    Shares of norms in the bins have noise: those that it hides are as ``expected``, others are taken to fall beyond the
    fullest.
    """
    hidden = np.abs(shares - expected) <= COUNTED * noise
    shares, fullest = shares.copy(), int(np.argmax(shares))
    shares[fullest:] = isotonic_regression(shares[fullest:], increasing=False)
    shares = np.where(hidden, expected, np.maximum(shares, 0.0))
    price = min(price, MOST_CLIPPED)
    costs = [price * clip + float((shares * np.maximum(grid - clip, 0.0)).sum()) for clip in grid]
    return float(grid[int(np.argmin(costs))])


def usual_shares(shares: Array, usual: int, noise: float) -> Array:
    """Shares that are expected of bins of norms, √2 apart: of normal logarithms, as likely as released shares say.

    ``usual`` is the bin where a typical norm is, as far as is known before anything is released.
    """
    ends = np.arange(len(shares) + 1.0)
    middles, spreads = (one.ravel()[:, None] for one in np.meshgrid(ends[:-1] + 0.5, SPREADS))
    below = ndtr((ends - middles) / spreads)
    below[:, 0], below[:, -1] = 0.0, 1.0
    laws = np.diff(below, axis=1)
    unlikely = ((laws - shares) ** 2).sum(axis=1) / (2 * noise**2) + ((middles[:, 0] - usual) / NEAR) ** 2 / 2
    weights = np.exp(unlikely.min() - unlikely)
    return np.asarray(weights @ laws / weights.sum())
