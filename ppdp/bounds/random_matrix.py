"""Public random matrices, drawn from the raw bits of PCG64, which NumPy never changes.

Theory: ``docs/theory/random-projection.md``. What its distributions make of these bits NumPy may change; none is used.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

Array = NDArray[np.float64]
Bits = NDArray[np.uint64]

FAMILIES = ("gaussian", "uniform", "rademacher", "sparse", "oporp")
BINS = ("balanced", "fixed", "variable")
MOST_ENTRIES, MOST_COLUMNS = 2**26, 2**22  # of the largest matrix whose norms are computed
EXACT = 53  # integers up to 2^53 are float64 numbers
CROWDED, FEW = 4, 32
FINE = 10  # entries of standard deviation 1 are multiples of 2^-10 or less


def draw(
    family: str,
    n_components: int,
    n_features: int,
    seed: int,
    s: float | None = None,
    bins: str | None = None,
    *,
    rounded: bool = True,
) -> Any:
    """The matrix of shape (n_components, n_features), scaled such that E‖Px‖² = ‖x‖².

    The families "gaussian", "uniform" and "rademacher" have independent entries, ``rounded`` to multiples of a power of
    2 for :func:`whole`. Arrays are sparse of "sparse", random signs at a share 1/s of the places (1/√d), and "oporp",
    one random sign in every column, which goes to one component. Columns find it by ``bins``: "balanced": permuted,
    then dealt out in turn. "fixed": permuted with enough empty columns that all components get equally many, each a run
    of them. "variable": each by itself.
    """
    stream = np.random.PCG64(seed)
    shape = n_components, n_features
    if family == "oporp":
        component = _components(stream, n_components, n_features, bins or "balanced")
        return csr_array((_signs(stream.random_raw(n_features)), (component, np.arange(n_features))), shape=shape)
    if family == "sparse":
        density = 1 / (math.sqrt(n_features) if s is None else s)
        return _sparse(stream, density, shape) / math.sqrt(n_components * density)
    if family == "rademacher":
        return _signs(stream.random_raw(shape)) / math.sqrt(n_components)
    if family == "gaussian":
        entries = _normals(stream, shape)
    else:  # uniform numbers of variance 1
        bits = stream.random_raw(shape)
        entries = math.sqrt(3) * _signs(bits) * _uniform(bits)
    entries /= math.sqrt(n_components)
    grid = 2.0 ** -_fineness(n_components)
    return np.rint(entries / grid) * grid if rounded else entries


def whole(A: Any) -> tuple[Any, float]:
    """Whole numbers S and a number u such that a drawn matrix is A = u S."""
    if issparse(A):
        unit = float(abs(A.data).max(initial=0.0)) or 1.0
        return csr_array((np.sign(A.data), A.indices, A.indptr), A.shape), unit
    unit = abs(float(A[0, 0]))
    if unit > 0 and (np.abs(A[0]) == unit).all() and (np.abs(A) == unit).all():
        return np.sign(A), unit
    unit = 2.0 ** -_fineness(A.shape[0])
    return A / unit, unit


def at_once(A: Any) -> bool:
    """Whether rows meet this matrix in one exact product: it is no sparse one, or large and a quarter of it not 0."""
    return not issparse(A) or (A.shape[0] >= FEW and CROWDED * A.nnz >= A.shape[0] * A.shape[1])


def row_bits(S: Any) -> int:
    """The most bits b such that whole numbers z up to 2^b have ``Σ |S_ij z_j|`` of at most 2^53 for every i."""
    return EXACT - (max(int(abs(S).sum(axis=1).max()), 1) - 1).bit_length()


def _fineness(n_components: int) -> int:
    """Entries of standard deviation 1/√k are multiples of 2 to minus this."""
    return FINE + (n_components - 1).bit_length() // 2


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


def _components(stream: np.random.PCG64, n_components: int, n_features: int, bins: str) -> NDArray[np.int64]:
    """To which component every column goes."""
    if bins == "variable":
        return (stream.random_raw(n_features) % np.uint64(n_components)).astype(np.int64)
    size = -(-n_features // n_components)
    places = n_features if bins == "balanced" else size * n_components
    position = np.empty(places, dtype=np.int64)
    position[np.argsort(stream.random_raw(places), kind="stable")] = np.arange(places)
    return position[:n_features] % n_components if bins == "balanced" else position[:n_features] // size


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
