"""Gaussian noise whose privacy survives floating point: exact noise on a public lattice.

The Gaussian mechanism releases ``q + sigma Z``. In float64, ``value + sigma * normal()`` reaches different
numbers for different values, and one such number can identify the dataset. Here the lattice step
``g = sigma 2^-M`` is fixed by public numbers and, with Z an exact N(0, 1) draw,

    release = midpoint of the lattice cell that contains  g rint(value / g) + sigma Z,
    whose number is  rint(value / g) + floor(2^M Z).

That is a function of (rounded value + exact Gaussian): whatever holds for the Gaussian mechanism, composed,
subsampled or gated, holds for the release. What is left is charged: the rounding of the value
(`lattice_allowance`) and the sampler (`TOTAL_VARIATION_PER_DRAW`); ``os.urandom`` is assumed uniform.

How ``floor(2^36 |Z|)`` is drawn: the cell of width 1/64 by inverting the distribution function, known to 192
bits; the position in that cell by rejection from the uniform law. Floats decide only the comparisons that
their proven error cannot turn; the others, one in 2^31, are decided by integers and 128 more random bits.

Statement, proof and counterexamples: ``docs/theory/noise.md``.
"""

from __future__ import annotations

import math
import os
from bisect import bisect_right
from collections.abc import Callable
from functools import lru_cache, partial
from itertools import accumulate
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ppdp.exceptions import ImpossibleBudget, InvalidParameter

Words = NDArray[np.uint64]
Integers = NDArray[np.int64]
_Answer = TypeVar("_Answer")

TOTAL_VARIATION_PER_DRAW = 2.0**-60
"""Distance of one drawn number from its exact law: N of them add (1 + e^epsilon) N times this to delta."""

_FINEST, _COARSEST = 36, 24  # the lattice step is noise_scale 2^-M with _COARSEST <= M <= _FINEST
_STEP_BITS = 50  # a value is at most 2^50 steps
_FAR, FAR_BITS = 12, 53  # of values that are further out than that allows
_ROUNDING = 1.5  # steps charged for rounding two values; 1.125 is proved of values of at most 2^50 steps

WORST_ALLOWANCE_PER_ENTRY = _ROUNDING * 2.0**-_COARSEST
"""`lattice_allowance` of one number on the coarsest lattice: bounds it before the noise scale is known."""

_POSITION_BITS, _LEVEL_BITS = 30, 33  # one word: a sign bit, the position in its cell, the level to accept it
_COARSE_BITS = _FINEST - _POSITION_BITS
_CELLS = 13 << _COARSE_BITS  # |Z| < 13, all but 2^-125 of the mass
_UNDECIDED = 2.0**-32  # floats err by less: 2^-33.2 in the position, 2^-34 in the level, 2^-50 in arithmetic
_MORE_BITS, _FIXED_BITS = 128, 256  # random bits that settle a comparison; precision of the integers
_ONE = 1 << _FIXED_BITS
_BLOCK = 1 << 14  # draws at a time: the temporaries stay in the processor's cache
_SMALLEST_SCALE, _LARGEST_SCALE = 2.0**-900, 2.0**900  # nothing below underflows or overflows


def lattice_exponent(bound: float, noise_scale: float, *, far: int = 0) -> int:
    """Exponent M of the lattice step ``noise_scale * 2**-M``, from public numbers alone.

    ``M = min(36, 50 - ceil(log2(bound / noise_scale)))``: a value within the bound is at most 2^50 steps, so
    that value plus noise is an exact integer in float64.

    Between 24 and 36, and where it would be less but steps may have ``far`` bits ``min(24, far - ceil(log2(bound /
    noise_scale)))``, at least 12. :class:`InvalidParameter` if one of the two is impossible, :class:`ImpossibleBudget`
    if ``bound`` exceeds ``2**26 * noise_scale``, or ``2**(far - 12) * noise_scale``.

    >>> lattice_exponent(1.0, 0.1), lattice_exponent(1.0, 1e-6)
    (36, 30)
    """
    bound, noise_scale = _number(bound, "bound"), _number(noise_scale, "noise_scale")
    if not _SMALLEST_SCALE <= noise_scale <= _LARGEST_SCALE:
        what = f"noise_scale must be positive and finite (2^-900 to 2^900), got {noise_scale!r}."
        raise InvalidParameter(what, fix="give the standard deviation of the noise", parameter="noise_scale")
    if not 0 <= bound < math.inf:
        what = f"bound must be non-negative and finite, got {bound!r}."
        raise InvalidParameter(what, fix="declare a public bound on the absolute value of the released numbers")
    size = _ceil_log2(bound, noise_scale) if bound else 0
    exponent, most = min(_FINEST, _STEP_BITS - size), _STEP_BITS - _COARSEST
    if far and size > most:
        exponent, most = min(_COARSEST, far - size), far - _FAR
    if size > most:
        raise ImpossibleBudget(
            f"noise_scale {noise_scale:g} is too small for values up to {bound:g}: "
            f"bound / noise_scale may not exceed 2^{most}.",
            fix="raise noise_scale or declare a smaller bound",
            parameter="noise_scale",
        )
    return exponent


def lattice_allowance(bound: float, noise_scale: float, size: int) -> float:
    """What to add to ``mu = sensitivity / noise_scale`` when `size` numbers are released: values are rounded.

    Statement (``docs/theory/noise.md``, Lemma 1): rounding moves a value by at most 0.5625 lattice steps (0.75 if
    ``bound > 2**26 * noise_scale``), so two values of L2 distance s are at most ``s + 1.5 * sqrt(size)`` steps apart
    once rounded, that is ``1.5 * 2**-M * sqrt(size)`` in units of ``noise_scale``.

    >>> lattice_allowance(bound=1.0, noise_scale=1.0, size=4) == 3 * 2.0**-36
    True
    """
    return _ROUNDING * 2.0 ** -lattice_exponent(bound, noise_scale, far=FAR_BITS) * math.sqrt(size)


def certifiable_epsilon(epsilon: float, delta: float, draws: float) -> float:
    """Give this epsilon, or the largest at which ``draws`` numbers take at most half of delta: of two decimals, or 0.

    A mechanism that keeps a smaller epsilon keeps every larger one.

    >>> certifiable_epsilon(1.0, 1e-6, 1000), certifiable_epsilon(50.0, 1e-6, 1000)
    (1.0, 20.17)
    """
    if not draws or not delta:
        return epsilon
    odds = delta / 2 / (draws * TOTAL_VARIATION_PER_DRAW) - 1
    most = math.floor(100 * math.log(odds)) / 100 if odds > 1 else 0.0
    return min(epsilon, most)


def lowered(epsilon: float, delta: float, kept: float) -> str:
    """What is said of a plan that keeps less than it was asked for."""
    return (
        f"noise cannot be drawn finely enough to certify epsilon = {epsilon:g} at delta = {delta:g}: the plan keeps"
        f" epsilon = {kept:g}, the largest that can be certified."
    )


def gaussian_scale(sensitivity: float, mu: float, bound: float, size: int) -> float:
    """Least noise scale with which ``size`` numbers cost at most ``mu``, lattice included.

    :class:`ImpossibleBudget` if there is none.

    >>> round(gaussian_scale(2.0, 0.5, bound=1.0, size=4), 5)
    4.0
    """
    for exponent in range(_COARSEST, _FAR - 1, -1):
        room = mu - _ROUNDING * 2.0**-exponent * math.sqrt(size)
        if room <= 0:
            break
        scale = sensitivity / room * (1 + 1e-12)
        if lattice_exponent(bound, scale, far=FAR_BITS) >= exponent:
            return scale
    raise ImpossibleBudget("the budget is too small for the noise lattice.", fix="ask for a larger epsilon.")


class Noise:
    """Source of Gaussian noise.

    Parameters
    ----------
    random_state : None, int, numpy RandomState or Generator, optional
        None draws every bit from the operating system (``os.urandom``). Anything else feeds **the same
        sampler** from numpy's generator, for tests only: whoever knows the seed can subtract the noise.

    Notes
    -----
    **Guarantee.** If neighbouring values differ by at most s in L2 norm, ``release`` of d numbers is within
    total variation ``d * TOTAL_VARIATION_PER_DRAW`` of a post-processing of a Gaussian mechanism of
    ``mu = s / noise_scale + lattice_allowance(bound, noise_scale, d)``. Proof: ``docs/theory/noise.md``.

    Nothing is kept between two draws from the operating system: forks, threads and pickles share no noise.

    Examples
    --------
    >>> Noise().release([0.2, 0.7], noise_scale=0.1, bound=1.0).shape
    (2,)
    """

    _bits: np.random.PCG64 | None = None  # of a seed
    _half = 0  # whether half of a word of 64 bits waits there

    def __init__(self, random_state: int | np.random.RandomState | np.random.Generator | None = None) -> None:
        self._generator = None if random_state is None else _generator(random_state)
        bits = getattr(self._generator, "bit_generator", None)
        if isinstance(bits, np.random.PCG64):
            self._bits = bits

    @property
    def seeded(self) -> bool:
        """Whether the bits come from numpy's generator: for tests only."""
        return self._generator is not None

    def __repr__(self) -> str:
        return "Noise(seeded)" if self.seeded else "Noise()"

    def release(self, value: ArrayLike, noise_scale: float, bound: float) -> NDArray[np.float64]:
        """Return `value`, rounded to the lattice, plus Gaussian noise, rounded to its lattice cell.

        Parameters
        ----------
        value : array-like of any shape
            The private numbers. They are clamped to ``[-bound, bound]`` and NaN becomes 0: nothing is ever
            raised on them.
        noise_scale : float
            Standard deviation of the noise.
        bound : float
            **Public** bound on the absolute value of every entry.

        Returns
        -------
        ndarray of float64
            Same shape as `value`; odd multiples of half a lattice step, as float64 rounds them.
        """
        draw = partial(Noise._drawn, value=value, noise_scale=noise_scale, bound=bound)
        return self.answer("gaussian", value, noise_scale, bound, draw)

    def answer(
        self, law: str, value: ArrayLike, noise_scale: float, bound: float, draw: Callable[[Noise], _Answer]
    ) -> _Answer:
        """Draw an answer; everything to which noise is added passes here, so that an audit can look on.

        ``law`` is "gaussian", "laplace", "whole-laplace", "choice" or "flips", ``value`` the private numbers or the
        scores of a choice; ``noise_scale`` and ``bound`` are public, and ``draw`` makes the answer with the noise that
        it is given.
        """
        return draw(self)

    def _drawn(self, value: ArrayLike, noise_scale: float, bound: float) -> NDArray[np.float64]:
        exponent, limit = lattice_exponent(bound, noise_scale, far=FAR_BITS), float(bound)
        step = math.ldexp(noise_scale, -exponent)
        value = np.asarray(value, dtype=np.float64)
        finite = np.where(np.isnan(value), 0.0, value).reshape(-1)
        clamped = np.minimum(np.maximum(finite, -limit), limit)
        cell = np.rint(clamped / step).astype(np.int64)
        cell += self._standard_cells(cell.size) >> (_FINEST - exponent)
        return ((2 * cell + 1).astype(np.float64) * (0.5 * step)).reshape(value.shape)

    def standard_lattice(self, size: int | tuple[int, ...]) -> Integers:
        """Draw odd integers v: ``v 2^-37`` is the midpoint of the 2^-36 wide cell of an N(0, 1) draw."""
        shape = size if isinstance(size, tuple) else (size,)
        return (2 * self._standard_cells(math.prod(shape)) + 1).reshape(shape)

    def _standard_cells(self, size: int) -> Integers:
        """``floor(2^36 Z)`` for `size` independent standard normal Z."""
        if size <= _BLOCK:
            return self._block(size)
        return np.concatenate([self._block(min(_BLOCK, size - start)) for start in range(0, size, _BLOCK)])

    def _block(self, size: int) -> Integers:
        words = self.words(2 * size)
        coarse, detail = self._coarse_cells(words[:size]), words[size:]
        pending = (~self._accepted(coarse, detail)).nonzero()[0]
        while pending.size:  # redrawn in the same coarse cell: its conditional law
            detail[pending] = fresh = self.words(pending.size)
            pending = pending[~self._accepted(coarse[pending], fresh)]
        magnitude = (coarse << _POSITION_BITS) | _position(detail)
        return magnitude ^ (detail.view(np.int64) >> 63)  # cell a of |Z| is cell -a - 1 of Z = -|Z|

    def _coarse_cells(self, uniform: Words) -> Integers:
        """Cell of 64 |Z|: how many cuts of the distribution function do not exceed a uniform number."""
        cuts, leading = _table()
        cells = leading.searchsorted(uniform).astype(np.int64, copy=False)
        for i in (leading[cells] == uniform).nonzero()[0]:  # 64 bits do not decide
            cells[i] = bisect_right(cuts, self._extended(int(uniform[i])))
        return cells

    def _accepted(self, coarse: Integers, detail: Words) -> NDArray[np.bool_]:
        """Whether level < density at the position / density at the start of the coarse cell."""
        position, level = _position(detail), detail.view(np.int64) & ((1 << _LEVEL_BITS) - 1)
        place = (position + 0.5) * 2.0**-_POSITION_BITS
        ratio = np.exp(-(4.0**-_COARSE_BITS) * place * (coarse + 0.5 * place))
        excess = ratio - (level + 0.5) * 2.0**-_LEVEL_BITS
        accepted = excess > 0
        for i in (np.abs(excess) < _UNDECIDED).nonzero()[0]:
            accepted[i] = self._accepted_exactly(int(coarse[i]), int(position[i]), int(level[i]))
        return accepted

    def _accepted_exactly(self, coarse: int, position: int, level: int) -> bool:
        place = self._extended(position) << (_FIXED_BITS - _POSITION_BITS - _MORE_BITS)
        height = self._extended(level) << (_FIXED_BITS - _LEVEL_BITS - _MORE_BITS)
        return height < _density_ratio(coarse, place)

    def _extended(self, number: int) -> int:
        """Append random bits to a uniform number that is known to too few of them."""
        return (number << _MORE_BITS) | int.from_bytes(self.random_bytes(_MORE_BITS // 8), "little")

    def words(self, count: int) -> Words:
        """Random words of 64 bits."""
        return np.frombuffer(bytearray(self.random_bytes(8 * count)), dtype=np.uint64)

    def random_bytes(self, count: int) -> bytes:
        """The only source of randomness: the operating system's entropy, or a seed for tests."""
        if self._generator is None:
            return os.urandom(count)
        if self._bits is None or count % 8 or self._half:
            self._half ^= -(-count // 4) % 2
            return self._generator.bytes(count)
        return self._bits.random_raw(count // 8).tobytes()  # the same bytes in a tenth of the time


def _position(detail: Words) -> Integers:
    return (detail.view(np.int64) >> _LEVEL_BITS) & ((1 << _POSITION_BITS) - 1)


class _Table(NamedTuple):
    """Distribution function of |Z| between the coarse cells: 192 bits, and the leading 64 of them."""

    cuts: list[int]
    leading: Words


@lru_cache(maxsize=1)
def _table() -> _Table:
    density, masses = _ONE, []  # density: exp(-z^2 / 2) at the start of the cell
    for coarse in range(_CELLS):
        terms = _ratio_series(coarse)
        masses.append(density * sum(term // n for n, term in enumerate(terms, start=1)) >> _FIXED_BITS)
        density = density * sum(terms) >> _FIXED_BITS
    total = sum(masses)
    cuts = [(below << (64 + _MORE_BITS)) // total for below in accumulate(masses[:-1])]
    leading = np.array([cut >> _MORE_BITS for cut in cuts], dtype=np.uint64)  # the last is 2^64 - 1
    leading.setflags(write=False)
    return _Table(cuts, leading)


def _density_ratio(coarse: int, place: int) -> int:
    """exp(-z^2 / 2) at place / 2^256 of a coarse cell, over its value at the start, times 2^256."""
    value = 0
    for term in reversed(_ratio_series(coarse)):
        value = (value * place >> _FIXED_BITS) + term
    return value


def _ratio_series(coarse: int) -> list[int]:
    """Taylor coefficients, times 2^256, of r(u) = exp(-w^2 u (coarse + u / 2)), w = 1/64, 0 <= u <= 1.

    r' = -w^2 (coarse + u) r gives (n + 1) c[n+1] = -w^2 (coarse c[n] + c[n-1]). Each is off by less than 2
    units, and what follows two of at most one unit is less than one (``docs/theory/noise.md``, Lemma 3).
    """
    terms, before, term = [_ONE], 0, _ONE
    while abs(before) > 1 or abs(term) > 1:
        before, term = term, -(coarse * term + before) // (len(terms) << (2 * _COARSE_BITS))
        terms.append(term)
    return terms


def _ceil_log2(numerator: float, denominator: float) -> int:
    """Smallest integer e with numerator <= denominator 2^e, exactly."""
    (a, m), (b, n) = math.frexp(numerator), math.frexp(denominator)
    return m - n + (a > b)


def _number(value: float, name: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidParameter(f"{name} must be a number.", fix="give one real number") from None


def _generator(random_state: object) -> np.random.RandomState | np.random.Generator:
    if isinstance(random_state, np.random.RandomState | np.random.Generator):
        return random_state
    if isinstance(random_state, int | np.integer) and random_state >= 0:
        return np.random.default_rng(int(random_state))
    what = "random_state must be None, a non-negative integer, a numpy RandomState or a numpy Generator."
    fix = "leave it out: a release that protects anyone is not seeded"
    raise InvalidParameter(what, fix=fix, parameter="random_state")
