"""Discrete Laplace noise and choices with exponential weights, exact: integers and uniform bits only.

A value is rounded to a public lattice and an integer Z with ``P(Z = k) ~ exp(-|k| / t)`` is added, t a public
rational number. Z has exactly that law, whatever floating point does, so a release is purely private: nothing is
added to delta. The same coins choose among finitely many candidates with probabilities ``~ exp(score / scale)``.

All is made of one coin that shows heads with probability ``exp(-u / t)`` for integers ``0 <= u <= t``: toss coins of
bias ``u / t / k``, k = 1, 2, ..., until one fails; it is an odd one with this probability (Forsythe 1972; Canonne,
Kamath and Steinke 2020). Numbers that no draw will ever reach are clamped, in the release and for every value alike.

Statement and proof: ``docs/theory/laplace.md``; ``os.urandom`` is assumed uniform. Timing is not covered.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ppdp.exceptions import ImpossibleBudget
from ppdp.privacy.noise.sampler import Noise, lattice_exponent

__all__ = [
    "Lattice",
    "choose",
    "laplace_allowance",
    "laplace_release",
    "score_allowance",
    "value_lattice",
    "whole_lattice",
]

Integers = NDArray[np.int64]

_VALUE_STEPS = 1.5  # per number, for rounding two values and for the law of integers; 1.25 is proved
_SCORE_STEPS = 2.0  # per choice: two scores of two datasets are rounded by half a step each
_WHOLE_BITS = 24  # precision of the scale of noise on whole numbers
_LARGEST = 2**52  # a release is at most so many steps
_DRAWN = 2**61  # a magnitude is drawn up to here; what lies beyond is clamped in the release anyway
_BLOCK = 1 << 14


class Lattice(NamedTuple):
    """Public numbers of a release.

    Attributes
    ----------
    step : float
        Distance of neighbouring lattice points, a power of two.
    scale : int
        Scale of the noise, in units of ``step / 2**shift``.
    shift : int
        As an exponent of two.
    """

    step: float
    scale: int
    shift: int

    @property
    def most(self) -> int:
        """Steps that a value may have so that what was never drawn is clamped."""
        return _DRAWN >> (2 + self.shift)


def value_lattice(bound: float, noise_scale: float) -> Lattice:
    """Lattice for real values: the noise has between ``2^(M-1)`` and ``2^M`` steps, M the ``lattice_exponent``.

    Examples
    --------
    >>> value_lattice(1.0, 0.5)
    Lattice(step=1.4551915228366852e-11, scale=34359738368, shift=0)
    """
    bits = lattice_exponent(bound, noise_scale)
    fraction, exponent = math.frexp(noise_scale)
    return Lattice(math.ldexp(1.0, exponent - bits), math.ceil(math.ldexp(fraction, bits)), 0)


def whole_lattice(bound: float, noise_scale: float) -> Lattice:
    """Lattice of the whole numbers: the scale is rounded up to 24 bits.

    Raises
    ------
    ImpossibleBudget
        If the noise is too small or too large for counts up to ``bound``.
    """
    lattice_exponent(0.0, noise_scale)
    shift = max(0, _WHOLE_BITS - math.frexp(noise_scale)[1])
    if shift < _DRAWN.bit_length() and noise_scale <= 2.0**50:
        found = Lattice(1.0, math.ceil(math.ldexp(noise_scale, shift)), shift)
        if bound <= min(found.most, 2.0**50):
            return found
    raise ImpossibleBudget(
        f"noise of scale {noise_scale:g} is too small or too large for counts up to {bound:g}.",
        fix="change epsilon.",
    )


def laplace_allowance(bound: float, noise_scale: float, size: int) -> float:
    """What rounding to the lattice adds to ``shift / noise_scale`` when ``size`` real values are released.

    At most 1.25 steps each; 1.5 are charged, and a step is at most ``2^(1-M)`` of the scale
    (``docs/theory/laplace.md``, Lemma 2). Decreasing in ``noise_scale``. Whole numbers need none.

    Examples
    --------
    >>> laplace_allowance(bound=1.0, noise_scale=1.0, size=4) == 6 * 2.0**-35
    True
    """
    return _VALUE_STEPS * size * 2.0 ** (1 - lattice_exponent(bound, noise_scale))


def score_allowance(bound: float, noise_scale: float) -> float:
    """What rounding scores to the lattice adds to the range of the privacy loss of one choice."""
    return _SCORE_STEPS * 2.0 ** (1 - lattice_exponent(bound, noise_scale))


def laplace_release(
    noise: Noise, value: ArrayLike, noise_scale: float, bound: float, *, whole: bool = False
) -> NDArray[np.float64]:
    """Return ``value``, rounded to a public lattice, plus discrete Laplace noise.

    Parameters
    ----------
    noise : Noise
        Where bits come from.
    value : array-like of any shape
        The private numbers. They are clamped to ``[-bound, bound]`` and NaN becomes 0: nothing is ever raised on them.
    noise_scale : float
        Scale b of the noise, ``P(Z) ~ exp(-|Z| / b)``; rounded up.
    bound : float
        **Public** bound on the absolute value of every entry.
    whole : bool, default=False
        Whether values are whole numbers: the noise is then whole as well, and nothing is rounded.

    Raises
    ------
    InvalidParameter
        If the two public numbers do not suit each other.

    Examples
    --------
    >>> laplace_release(Noise(), [3.0, 5.0], noise_scale=2.0, bound=10.0, whole=True).shape
    (2,)
    """
    law = "whole-laplace" if whole else "laplace"
    return noise.answer(law, value, noise_scale, bound, partial(_released, value, noise_scale, bound, whole))


def _released(value: ArrayLike, noise_scale: float, bound: float, whole: bool, noise: Noise) -> NDArray[np.float64]:
    lattice = (whole_lattice if whole else value_lattice)(bound, noise_scale)
    value = np.asarray(value, dtype=np.float64)
    cells = _cells(value, bound, lattice, missing=0.0)
    sizes = [min(_BLOCK, cells.size - start) for start in range(0, cells.size, _BLOCK)]
    drawn = np.concatenate([_discrete_laplace(noise, size, lattice) for size in sizes] or [cells])
    largest = min(_LARGEST, lattice.most)
    return (np.clip(cells + drawn, -largest, largest).astype(np.float64) * lattice.step).reshape(value.shape)


def choose(noise: Noise, scores: ArrayLike, noise_scale: float, bound: float) -> int:
    """Position i with probability proportional to ``exp(scores[i] / noise_scale)``, scores rounded to a lattice.

    Candidates are proposed uniformly and accepted with the probability of their distance from the best score: exactly
    the exponential mechanism, without normalising anything.

    Parameters
    ----------
    noise : Noise
        Where bits come from.
    scores : array-like of shape (m,)
        Private scores, clamped to ``[-bound, bound]``; NaN counts as ``-bound``.
    noise_scale : float
        The temperature, rounded up.
    bound : float
        **Public** bound on the absolute value of every score.

    Examples
    --------
    >>> choose(Noise(), [0.0, 9.0, 0.0], noise_scale=0.01, bound=10.0)
    1
    """
    return noise.answer("choice", scores, noise_scale, bound, partial(_chosen, scores, noise_scale, bound))


def _chosen(scores: ArrayLike, noise_scale: float, bound: float, noise: Noise) -> int:
    lattice = value_lattice(bound, noise_scale)
    cells = _cells(np.asarray(scores, dtype=np.float64), bound, lattice, missing=-bound)
    whole, part = np.divmod(cells.max() - cells, lattice.scale)
    tries = min(_BLOCK, max(64, cells.size))
    while True:
        proposed = _below(noise, cells.size, tries)
        kept = _runs(noise, tries, int(whole.max())) >= whole[proposed]
        kept[kept] = _heads(noise, part[proposed[kept]], lattice.scale)
        if kept.any():
            return int(proposed[kept.argmax()])


def _cells(value: NDArray[np.float64], bound: float, lattice: Lattice, missing: float) -> Integers:
    """The nearest lattice points; the step is a power of two, so dividing by it rounds nothing."""
    finite = np.where(np.isnan(value), missing, value).reshape(-1)
    clamped = np.minimum(np.maximum(finite, -bound), bound)
    return np.rint(np.ldexp(clamped, 1 - math.frexp(lattice.step)[1])).astype(np.int64)


def _discrete_laplace(noise: Noise, size: int, lattice: Lattice) -> Integers:
    """Integers Z with ``P(Z = k) ~ exp(-|k| 2^shift / scale)``, exact up to the largest that is drawn.

    ``U + scale V`` with U below the scale has the law ``~ exp(-x / scale)`` on x >= 0; its quotient by ``2^shift`` is
    geometric again; a sign is drawn for it, and -0 is drawn again, because 0 may come but once.
    """
    drawn = np.empty(size, dtype=np.int64)
    pending = np.arange(size)
    while pending.size:
        below = _below(noise, lattice.scale, pending.size)
        good = _heads(noise, below, lattice.scale)
        where, below = pending[good], below[good]
        magnitude = (below + lattice.scale * _runs(noise, where.size, _DRAWN // lattice.scale)) >> lattice.shift
        negative = _below(noise, 2, where.size) == 1
        drawn[where] = np.where(negative, -magnitude, magnitude)
        pending = np.concatenate([pending[~good], where[negative & (magnitude == 0)]])
    return drawn


def _heads(noise: Noise, numerator: Integers, denominator: int) -> NDArray[np.bool_]:
    """Coins that show heads with probability ``exp(-numerator / denominator)``, ``0 <= numerator <= denominator``."""
    heads = np.empty(numerator.size, dtype=np.bool_)
    pending, k = np.arange(numerator.size), 1
    while pending.size:
        lucky = _below(noise, denominator, pending.size) < numerator[pending]
        if k > 1:
            lucky &= _below(noise, k, pending.size) == 0
        heads[pending[~lucky]] = k % 2 == 1
        pending, k = pending[lucky], k + 1
    return heads


def _runs(noise: Noise, size: int, most: int) -> Integers:
    """How many coins of bias ``exp(-1)`` show heads before the first tails, counted up to ``most``."""
    runs = np.zeros(size, dtype=np.int64)
    pending = np.arange(size if most else 0)
    while pending.size:
        pending = pending[_heads(noise, np.ones(pending.size, dtype=np.int64), 1)]
        runs[pending] += 1
        pending = pending[runs[pending] < most]
    return runs


def _below(noise: Noise, limit: int, size: int) -> Integers:
    """Uniform integers below ``limit``, which is at most 2^62; those that do not fit are drawn again."""
    if limit == 1:
        return np.zeros(size, dtype=np.int64)
    mask = np.uint64((1 << (limit - 1).bit_length()) - 1)
    drawn = (noise.words(size) & mask).view(np.int64)
    pending = (drawn >= limit).nonzero()[0]
    while pending.size:
        drawn[pending] = fresh = (noise.words(pending.size) & mask).view(np.int64)
        pending = pending[fresh >= limit]
    return drawn
