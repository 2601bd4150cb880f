"""Random projections with a public seed: ``docs/theory/random-projection.md``.

The matrix is a pure function of public parameters, made from the raw bits of PCG64, which NumPy never changes (it may
change what its distributions make of them). So whoever verifies a certificate draws the matrix again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import formula, sane
from ppdp.core.rounding import UNIT, apply_error, inflate

__all__ = ["FAMILIES", "MOST_ENTRIES", "draw", "measured", "operator_norm", "random_projection"]

Array = NDArray[np.float64]
Bits = NDArray[np.uint64]

FAMILIES = ("gaussian", "rademacher", "sparse", "oporp")
MOST_ENTRIES = 2**26
"""Largest matrix whose norm is computed."""


@dataclass(frozen=True, slots=True)
class Norms:
    """What the bounds need of a matrix: its operator and Frobenius norm, and L2 and L1 norms of its rows."""

    operator: float
    frobenius: float
    rows: Array
    absolute_rows: Array


def draw(family: str, n_components: int, n_features: int, seed: int) -> Any:
    """The matrix of shape (n_components, n_features), scaled such that E‖Px‖² = ‖x‖².

    An array, and a sparse array for the families "sparse" (a share 1/√d of the entries is not 0) and "oporp" (one entry
    in every column: the columns are permuted and dealt out to the components in turn, with random signs).
    """
    stream = np.random.PCG64(seed)
    shape = n_components, n_features
    if family == "oporp":
        order = np.argsort(stream.random_raw(n_features), kind="stable")
        component = np.empty(n_features, dtype=np.int64)
        component[order] = np.arange(n_features) % n_components
        return csr_array((_signs(stream.random_raw(n_features)), (component, np.arange(n_features))), shape=shape)
    if family == "sparse":
        density = 1 / math.sqrt(n_features)
        return _sparse(stream, density, shape) / math.sqrt(n_components * density)
    entries = _signs(stream.random_raw(shape)) if family == "rademacher" else _normals(stream, shape)
    return entries / math.sqrt(n_components)


def _signs(bits: Bits) -> Array:
    """+1 and -1 from the first bit."""
    return 1.0 - 2.0 * (bits >> np.uint64(63)).astype(np.float64)


def _uniform(bits: Bits) -> Array:
    """Numbers inside (0, 1), from all but the first bit."""
    return ((bits & np.uint64(2**63 - 1)) >> np.uint64(11)).astype(np.float64) * 2.0**-52 + 2.0**-53


def _normals(stream: np.random.PCG64, shape: tuple[int, int]) -> Array:
    """Standard normal numbers by the method of Box and Muller."""
    length = np.sqrt(-2 * np.log(_uniform(stream.random_raw(shape))))
    return np.asarray(length * np.cos(2 * np.pi * _uniform(stream.random_raw(shape))))


def _sparse(stream: np.random.PCG64, density: float, shape: tuple[int, int]) -> Any:
    """Random signs at a random share of the places."""
    data, columns, starts = [], [], [0]
    for _ in range(shape[0]):
        bits = stream.random_raw(shape[1])
        (places,) = np.nonzero(_uniform(bits) < density)
        data.append(_signs(bits[places]))
        columns.append(places)
        starts.append(starts[-1] + len(places))
    return csr_array((np.concatenate(data), np.concatenate(columns), starts), shape=shape)


def operator_norm(matrix: Any) -> float:
    """Upper bound on ``max ‖Ax‖ / ‖x‖``: the computed one, with what a backward stable SVD may be off."""
    dense = matrix.toarray() if hasattr(matrix, "toarray") else matrix
    return inflate(float(np.linalg.norm(dense, 2)) * (1 + 10 * max(dense.shape) * UNIT))


@lru_cache(maxsize=64)
def measured(family: str, n_components: int, n_features: int, seed: int) -> Norms:
    """The norms of the matrix that is drawn."""
    matrix = draw(family, n_components, n_features, seed)
    absolute = np.asarray(abs(matrix).sum(axis=1)).ravel()
    squares = np.asarray((matrix * matrix).sum(axis=1)).ravel()
    rows = np.sqrt(squares)
    # Under "oporp" the components look at different columns, so their images are orthogonal.
    operator = inflate(float(rows.max())) if family == "oporp" else operator_norm(matrix)
    return Norms(operator, inflate(math.sqrt(squares.sum())), rows, absolute)


@formula("projection.random", kind="stability", page="random-projection", way="public", used_by=("RandomProjection",))
def random_projection(
    domain: Domain, distance: Distance, *, family: str, n_components: int, seed: int
) -> tuple[Domain, Distance]:
    """Row-wise and linear, Lipschitz with the operator norm of the matrix that the seed gives."""
    sane(family in FAMILIES and type(n_components) is int and type(seed) is int and n_components >= 1 and seed >= 0)
    sane(n_components * (1 if family == "oporp" else domain.d) <= MOST_ENTRIES)
    norms = measured(family, n_components, domain.d, seed)
    norm = float(domain.require("row_norm"))
    entries = np.minimum(norms.rows * norm, norms.absolute_rows * min(domain.entry_bound or norm, norm))
    error = apply_error(domain.d, norms.frobenius * norm)
    out_norm = inflate(min(norms.operator * norm, float(np.linalg.norm(entries))) + error)
    out = domain.but(
        n_features=n_components,
        feature_names=None,
        row_norm=out_norm or norm,  # the matrix may be 0, and any bound holds then
        entry_bound=min(inflate(float(entries.max()) + error), out_norm) or norm,
    )
    return out, distance.stretched(norms.operator, 2 * out_norm).jittered(error)
