"""Discrete Laplace noise and choices with exponential weights: their laws are exact, whatever floating point does.

A value is rounded to a public lattice and an integer Z with ``P(Z = k) ~ exp(-|k| / t)`` is added, t a public
rational number. Z has exactly that law, so a release is purely private: nothing is added to delta. The same coins
choose among finitely many candidates with probabilities ``~ exp(score / scale)``.

Everything asks whether a uniform number, of which some bits are drawn, is below ``exp(-u / t)`` for integers u and t.
Floats answer if they are that far from equal that neither their error nor any further bits could turn the answer. If
not, about once in 2^30 draws, bits are appended to the same number until integers decide. Numbers that no draw will
ever reach are clamped, in the release and for every value alike.

Statement and proof: ``docs/theory/laplace.md`` (after Canonne, Kamath and Steinke 2020); ``os.urandom`` is assumed
uniform, numpy's exp and log to be within 2^-42. Timing is not covered.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ppdp.exceptions import ImpossibleBudget
from ppdp.privacy.noise.sampler import Noise, lattice_exponent

Words = NDArray[np.uint64]
Integers = NDArray[np.int64]

_VALUE_STEPS = 1.5  # per number, for rounding two values and for the law of integers; 1.25 is proved
_SCORE_STEPS = 2.0  # per choice: two scores of two datasets are rounded by half a step each
_WHOLE_BITS, _FEWEST_BITS = 24, 16  # precision of the scale of noise on whole numbers; where counts may be large
_LARGEST, _FAR_BITS = 2**52, 51  # a release is at most so many steps; bits of those of far values
_DRAWN = 2**61  # a magnitude is drawn up to here; what lies beyond is clamped in the release anyway
_BLOCK = 1 << 14  # draws at a time: the temporaries stay in the processor's cache
_CELL_BITS = 7  # the scale has 2^6 to 2^7 cells
_LONGEST = 8  # scales: uniform numbers below exp(-8) are not read, but drawn anew
_UNDECIDED = 2.0**-32  # floats err by less than 2^-34, in a probability and in a number of cells
_MORE_BITS, _GUARD_BITS = 128, 64  # random bits that are appended at a time; those that rounding integers may lose


class Lattice(NamedTuple):
    """Public numbers of a release."""

    step: float  # distance of neighbouring lattice points, a power of two
    scale: int  # of the noise, in units of step / 2**shift
    shift: int  # as an exponent of two

    @property
    def most(self) -> int:
        """Steps that a value may have so that what was never drawn is clamped."""
        return _DRAWN >> (2 + self.shift)


def value_lattice(bound: float, noise_scale: float, *, far: int = _FAR_BITS) -> Lattice:
    """Lattice for real values: the noise has between ``2^(M-1)`` and ``2^M`` steps, M the ``lattice_exponent``.

    >>> value_lattice(1.0, 0.5)
    Lattice(step=1.4551915228366852e-11, scale=34359738368, shift=0)
    """
    bits = lattice_exponent(bound, noise_scale, far=far)
    fraction, exponent = math.frexp(noise_scale)
    return Lattice(math.ldexp(1.0, exponent - bits), math.ceil(math.ldexp(fraction, bits)), 0)


def whole_lattice(bound: float, noise_scale: float) -> Lattice:
    """Lattice of whole numbers: the scale is rounded up to 24 bits, to 16 or more for large counts, else refused."""
    lattice_exponent(0.0, noise_scale)
    size = math.frexp(noise_scale)[1]
    shift = max(0, _WHOLE_BITS - size)
    if bound > _DRAWN >> 2 + shift:
        shift = max(shift - _WHOLE_BITS + _FEWEST_BITS, 0, _DRAWN.bit_length() - 3 - math.ceil(math.log2(bound)))
    if shift < _DRAWN.bit_length() and noise_scale <= 2.0**50:
        found = Lattice(1.0, math.ceil(math.ldexp(noise_scale, shift)), shift)
        if bound <= min(found.most, 2.0**50):
            return found
    what = f"noise of scale {noise_scale:g} is too small or too large for counts up to {bound:g}."
    raise ImpossibleBudget(what, fix="change epsilon.")


def laplace_allowance(bound: float, noise_scale: float, size: int) -> float:
    """What rounding to the lattice adds to ``shift / noise_scale`` when ``size`` real values are released.

    At most 1.25 steps each; 1.5 are charged, and a step is at most ``2^(1-M)`` of the scale
    (``docs/theory/laplace.md``, Lemma 2). Decreasing in ``noise_scale``. Whole numbers need none.

    >>> laplace_allowance(bound=1.0, noise_scale=1.0, size=4) == 6 * 2.0**-35
    True
    """
    return _VALUE_STEPS * size * 2.0 ** (1 - lattice_exponent(bound, noise_scale, far=_FAR_BITS))


def score_allowance(bound: float, noise_scale: float) -> float:
    """What rounding scores to the lattice adds to the range of the privacy loss of one choice."""
    return _SCORE_STEPS * 2.0 ** (1 - lattice_exponent(bound, noise_scale))


def laplace_release(
    noise: Noise, value: ArrayLike, noise_scale: float, bound: float, *, whole: bool = False
) -> NDArray[np.float64]:
    """Return ``value``, rounded to a public lattice, plus discrete Laplace noise: ``P(Z) ~ exp(-|Z| / noise_scale)``.

    Private numbers are clamped to ``[-bound, bound]``, which is **public**, and NaN becomes 0: nothing is ever raised
    on them, only :class:`InvalidParameter` if the two public numbers do not suit each other. ``whole`` numbers get
    whole noise, and nothing is rounded.

    >>> laplace_release(Noise(), [3.0, 5.0], noise_scale=2.0, bound=10.0, whole=True).shape
    (2,)
    """
    law = "whole-laplace" if whole else "laplace"
    return noise.answer(law, value, noise_scale, bound, partial(_released, value, noise_scale, bound, whole))


def _released(value: ArrayLike, noise_scale: float, bound: float, whole: bool, noise: Noise) -> NDArray[np.float64]:
    lattice = (whole_lattice if whole else value_lattice)(bound, noise_scale)
    value = np.asarray(value, dtype=np.float64)
    flat, largest = value.reshape(-1), min(_LARGEST, lattice.most)
    released = np.empty(flat.size)
    for start in range(0, flat.size, _BLOCK):
        cells = _cells(flat[start : start + _BLOCK], bound, lattice, missing=0.0)
        cells += _discrete_laplace(noise, cells.size, lattice)
        released[start : start + _BLOCK] = np.clip(cells, -largest, largest)
    return (released * lattice.step).reshape(value.shape)


def choose(noise: Noise, scores: ArrayLike, noise_scale: float, bound: float) -> int:
    """Position i with probability proportional to ``exp(scores[i] / noise_scale)``, scores rounded to a lattice.

    Candidates are proposed uniformly and accepted with the probability of their distance from the best score: exactly
    the exponential mechanism, without normalising anything.

    Private scores are clamped to ``[-bound, bound]``, which is **public**; NaN counts as ``-bound``. The temperature
    ``noise_scale`` is rounded up.

    >>> choose(Noise(), [0.0, 9.0, 0.0], noise_scale=0.01, bound=10.0)
    1
    """
    return noise.answer("choice", scores, noise_scale, bound, partial(_chosen, scores, noise_scale, bound))


def _chosen(scores: ArrayLike, noise_scale: float, bound: float, noise: Noise) -> int:
    lattice = value_lattice(bound, noise_scale, far=0)
    cells = _cells(np.asarray(scores, dtype=np.float64).reshape(-1), bound, lattice, missing=-bound)
    behind = cells.max() - cells
    tries = min(_BLOCK, max(64, cells.size))
    while True:
        proposed = _below(noise, cells.size, tries)
        kept = _heads(noise, noise.words(tries), 64, behind[proposed], lattice.scale)
        if kept.any():
            return int(proposed[kept.argmax()])


def _cells(value: NDArray[np.float64], bound: float, lattice: Lattice, missing: float) -> Integers:
    """The nearest lattice points; the step is a power of two, so dividing by it rounds nothing."""
    finite = np.where(np.isnan(value), missing, value)
    clamped = np.minimum(np.maximum(finite, -bound), bound)
    return np.rint(np.ldexp(clamped, 1 - math.frexp(lattice.step)[1])).astype(np.int64)


def _discrete_laplace(noise: Noise, size: int, lattice: Lattice) -> Integers:
    """Integers Z with ``P(Z = k) ~ exp(-|k| 2^shift / scale)``, exact up to the largest that is drawn."""
    drawn, counts = _attempt(noise, size, lattice)
    pending = (~counts).nonzero()[0]
    while pending.size:
        drawn[pending], counts = _attempt(noise, pending.size, lattice)
        pending = pending[~counts]
    return drawn


def _attempt(noise: Noise, size: int, lattice: Lattice) -> tuple[Integers, NDArray[np.bool_]]:
    """Integers, and which of them count: those have the law.

    ``U + c V`` with U uniform below c, counted with probability ``exp(-U / scale)``, and V with ``P(V >= k) =
    exp(-k c / scale)`` has the law ``~ exp(-x / scale)`` on x >= 0; its quotient by ``2^shift`` is geometric again. It
    gets a sign, and -0 does not count, because 0 may come but once.

    c is a power of two near a hundredth of the scale, so that U is cut from a word and nearly all of them count.
    """
    bits = max(lattice.scale.bit_length() - _CELL_BITS, 0)
    words = noise.words(2 * size)
    coarse, detail = words[:size], words[size:]
    part = (detail & np.uint64((1 << bits) - 1)).view(np.int64)
    counts = _heads(noise, detail >> np.uint64(bits), 64 - bits, part, lattice.scale)
    magnitude = (part + (_runs(noise, coarse >> np.uint64(1), bits, lattice.scale) << bits)) >> lattice.shift
    negative = (coarse & np.uint64(1)).view(np.int64)
    counts &= (magnitude > 0) | (negative == 0)
    return (magnitude ^ -negative) + negative, counts


def _runs(noise: Noise, words: Words, bits: int, scale: int) -> Integers:
    """Integers V with ``P(V >= k) = exp(-k 2^bits / scale)``, exact up to the largest that is drawn."""
    most, limit = (_LONGEST * scale) >> bits, _DRAWN >> bits
    runs = _short_runs(noise, words, bits, scale, most)
    pending = (runs == most).nonzero()[0]
    while pending.size:  # a run that is so long goes on like a new one
        more = _short_runs(noise, noise.words(pending.size) >> np.uint64(1), bits, scale, most)
        runs[pending] += more
        pending = pending[(more == most) & (runs[pending] < limit)]
    return runs


def _short_runs(noise: Noise, words: Words, bits: int, scale: int, most: int) -> Integers:
    """The largest k up to `most` for which uniform numbers are below ``exp(-k 2^bits / scale)``; 63 bits are drawn."""
    passed = np.log((words + 0.5) * 2.0**-63) * -math.ldexp(scale, -bits)
    nearest = np.rint(passed)
    runs = np.minimum(passed, most).astype(np.int64)
    for i in ((np.abs(passed - nearest) < _UNDECIDED) & (nearest <= most)).nonzero()[0]:
        k = int(nearest[i])
        runs[i] = k if _below_exponential(noise, int(words[i]), 63, k << bits, scale) else k - 1
    return runs


def _heads(noise: Noise, levels: Words, bits: int, numerator: Integers, denominator: int) -> NDArray[np.bool_]:
    """Whether uniform numbers, of which `bits` bits are drawn, are below ``exp(-numerator / denominator)``."""
    with np.errstate(under="ignore"):
        excess = np.exp(numerator * (-1.0 / denominator)) - (levels + 0.5) * 2.0**-bits
    heads = excess > 0
    for i in (np.abs(excess) < _UNDECIDED + 2.0**-bits).nonzero()[0]:
        heads[i] = _below_exponential(noise, int(levels[i]), bits, int(numerator[i]), denominator)
    return heads


def _below_exponential(noise: Noise, level: int, bits: int, numerator: int, denominator: int) -> bool:
    """Whether a uniform number that begins with these bits is below; as many are appended as it takes to know."""
    while True:
        level = (level << _MORE_BITS) | int.from_bytes(noise.random_bytes(_MORE_BITS // 8), "little")
        bits += _MORE_BITS
        low, high = _exponential(numerator, denominator, bits)
        if level < low or level >= high:
            return level < low


def _exponential(numerator: int, denominator: int, bits: int) -> tuple[int, int]:
    """Integers around ``2^bits exp(-numerator / denominator)``, at most 3 apart.

    The series at ``x = numerator / denominator / 2^halvings < 1``, squared as often. Its terms are off by less than 2
    units of ``2^-(bits + 64)`` each, and squaring doubles the error; all stays below 2^64 units.
    """
    if numerator > bits * denominator:
        return 0, 1
    halvings, fixed = bits.bit_length(), bits + _GUARD_BITS
    total = term = 1 << fixed
    k = 0
    while term:
        k += 1
        term = -term * numerator // ((denominator * k) << halvings)
        total += term
    for _ in range(halvings):
        total = total * total >> fixed
    return (total >> _GUARD_BITS) - 1, (total >> _GUARD_BITS) + 2


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
