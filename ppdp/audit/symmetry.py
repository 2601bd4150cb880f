"""The attack on what is released as a product with a random projection, without noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ppdp.exceptions import InvalidParameter


def symmetry_attack(candidate: ArrayLike, released: ArrayLike) -> float:
    """How far a released ``Y = Z Z' V`` is from being made of a candidate V, whatever Z was.

    ``V' Y = (Z' V)' (Z' V)`` is symmetric. For another V of which neither is a multiple of the other, and that are not
    ``v a'`` and ``w a'`` with the same a, it is symmetric with probability 0. So no (epsilon, delta) with delta < 1 is
    private, for any number of columns of Z: noise-free low-rank adaptation is not. Neither Z nor its law is needed.

    Parameters
    ----------
    candidate : array-like of shape (d, m)
        What may have been projected, such as the gradient of a batch with one record more.
    released : array-like of shape (d, m)
        What was released of it.

    Returns
    -------
    float
        ``|V'Y - Y'V| / |V'Y|`` in the Frobenius norm: 0 but for rounding if it was this candidate.

    Raises
    ------
    InvalidParameter
        If the two are no matrices of the same shape.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> V, Z = rng.standard_normal((20, 2)), rng.standard_normal((20, 5))
    >>> symmetry_attack(V, Z @ Z.T @ V) < 1e-12, symmetry_attack(V + 0.01 * V[::-1], Z @ Z.T @ V) > 1e-5
    (True, True)
    """
    one, other = np.asarray(candidate, dtype=np.float64), np.asarray(released, dtype=np.float64)
    if one.ndim != 2 or one.shape != other.shape:
        raise InvalidParameter(f"matrices of one shape are compared, not {one.shape} and {other.shape}.")
    product = one.T @ other
    return float(np.linalg.norm(product - product.T) / max(np.linalg.norm(product), np.finfo(np.float64).tiny))
