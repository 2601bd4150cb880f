"""What a released histogram says of targets, all of them in the range from -1 to 1 as rows have them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.isotonic import isotonic_regression

from ppdp.data.rows import Array

SURE = 2.0  # standard errors of a number of rows, from which on it is seen
MOST_CLIPPED = 0.15  # share of the rows beyond an end of what is left of the range
NEAR = 0.25  # share of the rows by whose distance from a quantile the density there is told
LEAST_SPREAD = 1e-6  # of what is left of the range


@dataclass(frozen=True, slots=True)
class TargetDistribution:
    """Distribution function of the targets."""

    edges: Array  # ends of the cells, -1 to 1
    below: Array  # share of the rows below each, 0 to 1
    error: float  # standard error of such a share, about

    @classmethod
    def of(cls, counts: Array, edges: Array, error: float = 0.0) -> TargetDistribution:
        """From noisy counts of cells, and the standard error of sums of them."""
        total = max(float(counts.sum()), 1.0)
        up_to = isotonic_regression(np.clip(np.cumsum(counts) / total, 0.0, 1.0))
        below = np.concatenate([[0.0], up_to[:-1], [1.0]])
        return cls(edges, below, error / total)

    def quantile(self, q: float) -> float:
        """Target below which a share of the rows lies."""
        return float(np.interp(q, self.below, self.edges))

    def clip(self, price: float, most: tuple[float, float] = (1.0, 1.0)) -> tuple[float, float]:
        """Targets beyond which so small a share of the rows lies, or one not seen; these at most of either end."""
        shares = np.minimum(min(max(price, SURE * self.error), MOST_CLIPPED), most)
        low = self.edges[max(int(np.searchsorted(self.below, shares[0], side="right")) - 1, 0)]
        high = self.edges[min(int(np.searchsorted(self.below, 1 - shares[1])), len(self.edges) - 1)]
        return float(low), float(max(high, low + self.edges[1] - self.edges[0]))

    def moments(self, low: float, high: float) -> tuple[float, float]:
        """Mean and variance of the targets, clipped to a range."""
        middle, shares = np.clip((self.edges[1:] + self.edges[:-1]) / 2, low, high), np.diff(self.below)
        mean = float(shares @ middle)
        return mean, float(shares @ (middle - mean) ** 2)

    def unclipped(self, low: float, high: float) -> tuple[float, float]:
        """Factor and shift that make means of targets, of those of clipped ones.

        Where targets move together, clipped ones move by the share of the rows that are not clipped. How far both means
        are apart counts as far as it is more than noise.
        """
        mean = self.moments(low, high)[0]
        apart = self.moments(-1.0, 1.0)[0] - mean
        noise = self.error * (2 - (high - low))
        kept = max(0.0, 1 - (noise / apart) ** 2) if apart else 0.0
        inside = float(np.diff(np.interp([low, high], self.edges, self.below))[0])
        factor = 1 / max(inside, 1 - 2 * MOST_CLIPPED)
        return factor, kept * apart + (1 - factor) * mean

    def spread(self, middle: float) -> float:
        """One over twice the density around a target."""
        near = np.sort(np.abs(self.edges - middle))
        mass = np.interp(middle + near, self.edges, self.below) - np.interp(middle - near, self.edges, self.below)
        place = int(np.argmax(mass >= NEAR))
        return max(float(near[place] / mass[place]), LEAST_SPREAD)


def amount(y: float, y_range: tuple[float, float]) -> float:
    """A target in its own unit."""
    low, high = y_range
    return low / 2 + high / 2 + (high / 2 - low / 2) * y
