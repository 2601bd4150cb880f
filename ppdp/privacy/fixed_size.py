"""Steps of noisy gradient descent on batches of fixed size, drawn without replacement; moved rows included.

Conventions are those of :mod:`ppdp.privacy.subsampling`. Theory: ``docs/theory/subsampling.md``, 3 and 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ppdp.core.checks import integer, number, positive
from ppdp.core.distance import Distance
from ppdp.exceptions import UnsupportedOrder
from ppdp.privacy.laws import hypergeometric_law
from ppdp.privacy.subsampling import GaussianMixturePair, Profile, gaussian_profile, moves, whole_rows

__all__ = ["fixed_size_profile", "fixed_size_split", "fixed_size_step"]

Floats = NDArray[np.float64]


def fixed_size_profile(fraction: float, mu: float, shift: float = 0.0) -> Profile:
    """Profile of one step on a batch of fixed size, one row replaced; attained.

    Parameters
    ----------
    fraction : float
        Size of the batch over the number of rows.
    mu : float
        Gaussian parameter of the step if the batch were public, ``2 bound / noise_scale``.
    shift : float, default=0.0
        Norm by which the sum of the other rows of the batch differs, over the noise scale.

        Without it ``fraction * delta_mu(log(1 + (exp(epsilon) - 1) / fraction))`` (Balle, Barthe and Gaboardi, 2018).
    """
    number("fraction", fraction, above=0, most=1)
    if shift == 0:
        return Profile.symmetric(_still(fraction, mu))
    if fraction == 1:
        return gaussian_profile(mu + shift)
    some, certain = np.log([1 - fraction, fraction]), np.zeros(1)
    one_sided = GaussianMixturePair(some, np.array([0.0, mu]), certain, np.array([shift])).delta
    hidden, shown = gaussian_profile(shift).forward, gaussian_profile(mu + shift).forward

    def delta(epsilon: Floats) -> Floats:
        epsilon = np.atleast_1d(np.asarray(epsilon, float))
        small = epsilon * (1 - 1e-9) <= shift * (mu + shift) / 2
        found = np.empty_like(epsilon)
        found[small] = (1 - fraction) * hidden(epsilon[small]) + fraction * shown(epsilon[small])
        found[~small] = one_sided(epsilon[~small])
        return found

    return Profile.symmetric(delta)


def fixed_size_step(
    distance: Distance, *, n_rows: int, batch_size: int, bound: float, lipschitz: float, noise_scale: float
) -> tuple[float, Profile | None]:
    """One step on a batch of fixed size: a Gaussian release (its mu) if no row is replaced, else a profile.

    The profile is the mean over the number of moved rows in the batch (``docs/theory/subsampling.md``, 4).

    Raises
    ------
    UnsupportedOrder
        If more than one row is replaced or toggled, or rows are reweighted.
    """
    positive("noise_scale", noise_scale)
    fraction = integer("batch_size", batch_size, most=integer("n_rows", n_rows)) / n_rows
    if not _one_row(distance):
        return moves(distance, bound, lipschitz, batch_size) / noise_scale, None
    each, all_moves = moves(distance, bound, lipschitz, 1), moves(distance, bound, lipschitz, batch_size)
    mu = 2 * bound / noise_scale
    if each == 0:
        return 0.0, fixed_size_profile(fraction, mu)
    law = hypergeometric_law(math.ceil(distance.moved), n_rows - 1, batch_size, math.ceil(all_moves / each))
    weights = np.exp(law.log_weights)
    profiles = [fixed_size_profile(fraction, mu, s) for s in np.minimum(each * law.values, all_moves) / noise_scale]

    def delta(epsilon: Floats) -> Floats:
        return np.asarray(sum(weight * profile.forward(epsilon) for weight, profile in zip(weights, profiles)))

    return 0.0, Profile.symmetric(delta)


def fixed_size_split(
    distance: Distance, *, n_rows: int, batch_size: int, bound: float, lipschitz: float, noise_scale: float
) -> tuple[float, float | None]:
    """The step as a Gaussian release and a sampled step, for Rényi divergences: their Gaussian parameters.

    The noise is split: a share of its variance hides the moved rows, without amplification, and the rest the one
    replaced or toggled row, with it (``docs/theory/subsampling.md``, 4). Every share is a bound; the one with the least
    second moment of the loss is taken.

    Raises
    ------
    UnsupportedOrder
        If more than one row is replaced or toggled, or rows are reweighted.
    """
    positive("noise_scale", noise_scale)
    fraction = integer("batch_size", batch_size, most=integer("n_rows", n_rows)) / n_rows
    shift = moves(distance, bound, lipschitz, batch_size) / noise_scale
    if not _one_row(distance):
        return shift, None
    if shift == 0:
        return 0.0, 2 * bound / noise_scale
    # The replaced row takes the place of another row of the batch, which may have moved.
    change = (2 * bound + moves(distance, bound, lipschitz, 1)) / noise_scale
    shares = np.linspace(0.001, 0.999, 999)
    sampled = fraction**2 * np.expm1(np.minimum(change**2 / (1 - shares), 700.0))
    share = float(shares[np.argmin(shift**2 / shares + sampled)])
    return shift / math.sqrt(share), change / math.sqrt(1 - share)


def _one_row(distance: Distance) -> bool:
    """Whether a row is replaced or toggled."""
    count = sum(whole_rows(distance))
    if count > 1:
        raise UnsupportedOrder(
            "batches of fixed size are proved for one replaced row.", fix="use Poisson sampling or full batches."
        )
    return count == 1


def _still(fraction: float, mu: float) -> Callable[[Floats], Floats]:
    """Profile where no row has moved."""
    inner = gaussian_profile(mu).forward

    def delta(epsilon: Floats) -> Floats:
        epsilon = np.atleast_1d(np.asarray(epsilon, float))
        near = np.log1p(np.expm1(np.minimum(epsilon, 30.0)) / fraction)
        far = epsilon - math.log(fraction) + np.log1p(-(1 - fraction) * np.exp(-epsilon)) if fraction < 1 else epsilon
        return fraction * inner(np.where(epsilon < 30, near, far))

    return delta
