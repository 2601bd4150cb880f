"""Gradients and rows seen through few dimensions: ``docs/theory/fresh-projections.md``."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from ppdp.data.rows import Array
from ppdp.exceptions import InvalidParameter
from ppdp.privacy.noise.sampler import Noise


def fresh_answer(noise: Noise, noise_scale: float, bound: float, rank: int) -> Callable[[Array], Array]:
    """What is released of a gradient, as a gradient: what a subspace drawn now shows of it, with noise on that.

    The basis is computed after the gradient, of numbers from the operating system, and nothing keeps it.
    """
    refuse_seed(noise.seeded)

    def answer(value: Array) -> Array:
        basis = np.linalg.qr(noise.standard_lattice((value.shape[1], rank)).astype(np.float64))[0]
        seen = value @ basis
        return np.asarray(noise.release(seen.ravel(), noise_scale, bound).reshape(seen.shape) @ basis.T)

    return answer


def refuse_seed(seeded: bool) -> None:
    """Raise :class:`InvalidParameter` for projections that somebody can predict: they hide nothing."""
    if seeded:
        raise InvalidParameter(
            "fresh projections must not come from a seed: whoever knows it knows what they show.",
            stage="LogisticRegression",
            fix="leave random_state out, or use another solver.",
        )


@lru_cache(maxsize=8)
def public_basis(dimension: int, rank: int) -> Array:
    """An orthonormal basis of a random subspace, the same for everybody, shape (dimension, rank)."""
    basis: Array = np.linalg.qr(np.random.RandomState(0).standard_normal((dimension, rank)))[0]
    basis.setflags(write=False)
    return basis
