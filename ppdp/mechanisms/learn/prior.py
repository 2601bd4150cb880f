"""What is known of coefficients before Newton steps are made; no rows come here: ``docs/theory/newton.md``."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LEAST_LEFT = 0.2  # of the squares of rows, behind a clip
LEAST_NOISE = 1e-3  # of that of moments, where nothing in them is believed


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """What is known before steps are made of rows that are centred and end in a constant.

    Attributes
    ----------
    means, deviations : ndarray of shape (d + 1,)
        Of the coefficients, the intercept last.
    moments : ndarray of shape (d, d)
        Second moments of rows, 0 where they are not known.
    """

    means: Array
    deviations: Array
    moments: Array

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
