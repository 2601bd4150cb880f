"""The generator that diffprivlib is handed: all its noise is made of bits that were read for this one fit."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ppdp.data.rows import Array
from ppdp.exceptions import InvalidParameter
from ppdp.privacy.noise.sampler import Noise

Shape = int | tuple[int, ...]


class Draws(np.random.RandomState):
    """Uniform, normal and gamma numbers made of the bits of a :class:`~ppdp.privacy.noise.sampler.Noise`.

    diffprivlib's models take a ``RandomState`` or None. Given None they hand on NumPy's global generator, and each
    mechanism then draws from the operating system instead, if the generator is still that very object. In a worker
    process it is a copy: all workers draw the same noise from it, and ``numpy.random.seed`` repeats it. Here there is
    no state: every number is made of bits that nothing else was made of, the operating system's unless the fit is
    seeded. A generator cannot be copied, and draws nothing but what the models with a proof ask for.

    Parameters
    ----------
    noise : Noise
        Where the bits come from.
    """

    def __init__(self, noise: Noise) -> None:
        super().__init__()
        self._numbers = _Numbers(noise)

    def random(self, size: Shape | None = None) -> Any:  # type: ignore[override]
        """Uniform numbers, multiples of 2^-53 from 0 to below 1, of this shape; one float if it is absent."""
        return self._numbers.random() if size is None else _many(self._numbers.random, size)

    def standard_normal(self, size: Shape) -> Array:  # type: ignore[override]
        """Standard normal numbers of this shape."""
        return _many(lambda: self._numbers.normalvariate(0.0, 1.0), size)

    def gamma(self, shape: float, scale: float, size: Shape) -> Array:  # type: ignore[override]
        """Numbers of a gamma distribution's ``shape`` and ``scale``, as many as ``size`` says.

        Each is a sum of exponential variables and of one whose shape is below 1: of larger shapes Python's sampler
        leaves out the ends of the distribution, 2 in 10^7.
        """
        pieces = [1.0] * int(shape) + [shape % 1] * (shape % 1 > 0)
        return _many(lambda: sum(self._numbers.gammavariate(piece, scale) for piece in pieces), size)

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__") or name in _OWN:
            return super().__getattribute__(name)
        raise AttributeError(f"no model with a proof draws by {name}.")

    def __reduce__(self) -> NoReturn:
        raise InvalidParameter("noise is drawn in one process and for one fit, so its generator is never copied.")


_OWN = frozenset({"_numbers", "random", "standard_normal", "gamma"})


class _Numbers(random.SystemRandom):
    """Python's own ways to make numbers of uniform ones, as diffprivlib uses them; the bits may be seeded."""

    def __init__(self, noise: Noise) -> None:
        self._noise = noise

    def random(self) -> float:
        """A multiple of 2^-53 from 0 to below 1, of 53 fresh bits."""
        return float((int.from_bytes(self._noise.random_bytes(7), "big") >> 3) * 2.0**-53)


def _many(draw: Callable[[], float], size: Shape) -> Array:
    return np.reshape([draw() for _ in range(int(np.prod(size)))], size)
