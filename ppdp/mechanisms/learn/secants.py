"""Longer steps where released gradients show that the loss is flat.

A difference of two noisy gradients says how curved the loss is between them. All of this is made from what was
released, so it costs nothing: ``docs/theory/noisy-gradient-descent.md``.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import LbfgsInvHessProduct

from ppdp.data.rows import Array

MOST = 20  # secants that are remembered
STEADY = 100.0  # noise alone moves the coefficients in a step by at most one part in so many
CLEAR = 30.0  # how many times shorter than the longest gradient noise must be for its changes to say something


def clear(noise_scale: float, clip: float, size: int) -> bool:
    """Whether noise of this scale on every entry leaves enough of a gradient of norm `clip`: a rule of public facts."""
    return noise_scale * math.sqrt(size) * CLEAR <= clip


class Secants:
    """Estimate of a loss's curvature from noisy gradients (limited-memory BFGS), wary of the noise on every entry.

    Where nothing is known a step has the length `step_size`.
    """

    def __init__(self, step_size: float, noise_scale: float) -> None:
        self.step_size = step_size
        self.noise_scale = noise_scale
        self._longest = step_size
        self._last: tuple[Array, Array] | None = None
        self._moves: list[Array] = []
        self._changes: list[Array] = []

    def go_on(self, noise_scale: float) -> None:
        """Keep what was learnt; gradients to come have other noise, or are of other rows."""
        self.noise_scale, self._last = noise_scale, None

    def see(self, at: Array, gradient: Array) -> None:
        """Learn from how the gradient changed since the last point; what may be noise only asks for longer steps."""
        last, self._last = self._last, (at.ravel(), gradient.ravel())
        if last is None:
            return
        move, change = (new - old for new, old in zip(self._last, last))
        along = float(move @ change)
        if along <= math.sqrt(2) * self.noise_scale * float(np.linalg.norm(move)):
            self._longest *= 1.5
            return
        self._moves = [*self._moves, move][-MOST:]
        self._changes = [*self._changes, change][-MOST:]
        self._longest = max(self.step_size, min(along / float(change @ change), 3 * self._longest))

    def step(self, at: Array, gradient: Array, penalty: Array | float) -> Array:
        """Where to go from a point: a Newton step on the loss as far as it is known, plus a squared penalty.

        The loss is taken to be curved enough everywhere that noise does not carry the coefficients away, but no more
        than a step of the usual length takes for granted.
        """
        length = float(np.linalg.norm(at))
        noise = STEADY * self.noise_scale * math.sqrt(at.size)
        least = min(noise / length if length > 0 else math.inf, 1 / self.step_size)
        ridge = np.broadcast_to(np.asarray(penalty, dtype=np.float64), at.shape).ravel()
        unit = 1 / np.sqrt(max(1 / self._longest, least) + ridge)  # in these units the first guess is 1
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
        asked = float(np.linalg.norm(move)) if (np.abs(move) < 1e150).all() else math.inf
        if not asked <= longest:  # secants that are mostly noise may ask for more, or for what no number can say
            move = move * (longest / asked) if math.isfinite(asked) else unit**2 * slope
        return np.asarray(at - move.reshape(at.shape))
