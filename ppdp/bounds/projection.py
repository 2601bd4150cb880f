"""Random projections with a public seed: ``docs/theory/random-projection.md``.

The matrix is a pure function of public parameters, so whoever verifies a certificate draws it again and measures it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ppdp.bounds.random_matrix import BINS, FAMILIES, MOST_COLUMNS, MOST_ENTRIES, at_once, draw, row_bits, whole
from ppdp.core.distance import Distance, Moves
from ppdp.core.domain import Domain, largest_entry
from ppdp.core.formula import formula, sane
from ppdp.core.formula import whole as integers
from ppdp.core.rounding import UNIT, apply_error, inflate

Array = NDArray[np.float64]

FIRST_FAMILIES = ("gaussian", "rademacher", "sparse", "oporp")
COMPARED = 4096  # most columns, or components, of which all pairs are compared
CLIMBERS, CLIMBS = 16, 20  # how many, and how many steps each, to where an image is longest


def operator_norm(matrix: Any) -> float:
    """Upper bound on ``max ‖Ax‖ / ‖x‖``: the computed one, with what a backward stable SVD may be off."""
    dense = matrix.toarray() if hasattr(matrix, "toarray") else matrix
    return inflate(float(np.linalg.norm(dense, 2)) * (1 + 10 * max(dense.shape) * UNIT))


@dataclass(frozen=True, slots=True)
class Norms:
    """What the bounds need of a drawn matrix A; all are upper ends."""

    operator: float  # norm of A
    frobenius: float  # norm of A
    spread: float  # at least ``‖Ax‖₁`` of any row of norm 1
    rows: Array  # L2 norm of every row of A, shape (k,)
    absolute_rows: Array  # its L1 norm
    largest: Array  # its L∞ norm
    columns: Array  # L2 norm of every column of A, shape (d,)
    absolute_columns: Array  # its L1 norm
    touched: Array  # how many components a column can change: its entries that are not 0; all, if A is not sparse
    terms: int  # how many entries of one row are not 0, at most
    bits: int | None  # to how many bits rows are rounded before a product; None if sums are taken in order

    def error(self, norm: float, entry: float) -> float:
        """L2 error of the image of a row of norm at most ``norm`` and entries of at most ``entry`` (Lemmas G, O)."""
        if self.bits is None:
            return apply_error(self.terms, self.frobenius * norm)
        rounded = math.sqrt(len(self.columns)) * entry * 2.0**-self.bits
        return inflate(self.operator * (rounded + 2 * UNIT * norm))


@dataclass(frozen=True, slots=True)
class ImageChange:
    """What a change of one row does to its image, at most; upper ends."""

    l1: float  # norm of the change of the image
    l2: float  # norm of the change of the image
    components: Array  # by how much each component changes, shape (k,)
    touched: int  # how many components change


@dataclass(frozen=True, slots=True)
class Matrix:
    """A public random matrix by its parameters, those of :func:`~ppdp.bounds.random_matrix.draw`.

    >>> matrix = Matrix("oporp", 4, 12, seed=0)
    >>> found = matrix.change(coordinate=0.5, count=2)
    >>> round(found.l1, 6), round(found.l2, 6), found.components.round(6), found.touched
    (1.0, 1.0, array([1., 1., 1., 1.]), 2)
    """

    family: str
    n_components: int
    n_features: int
    seed: int
    s: float | None = None
    bins: str | None = None

    @property
    def entries(self) -> Any:
        """The matrix."""
        return draw(self.family, self.n_components, self.n_features, self.seed, self.s, self.bins)

    @property
    def norms(self) -> Norms:
        """Its norms."""
        return _norms(self)

    def change(
        self,
        *,
        coordinate: float | tuple[float, ...] = math.inf,
        count: float = math.inf,
        l1: float = math.inf,
        l2: float = math.inf,
    ) -> ImageChange:
        """What a change of a row within all of these bounds can do to its image (Theorem C).

        An entry changes by at most ``coordinate`` (any, or each), ``count`` of them do, with these norms together.
        """
        return _change(self, coordinate, count, l1, l2)


@lru_cache(maxsize=32)
def _norms(matrix: Matrix) -> Norms:
    """Sums of whole numbers below 2^53, so exact but for the spectrum and what ``inflate`` covers."""
    A = matrix.entries
    S, unit = whole(A)
    safe = inflate(unit)
    rows, absolute_rows = _sums(S * S, 1), _sums(abs(S), 1)
    columns, absolute_columns = _sums(S * S, 0), _sums(abs(S), 0)
    terms, total = _sums(S != 0, 1), float(rows.sum())
    if matrix.family == "oporp":  # rows look at different columns, so they are orthogonal
        operator, spread = float(rows.max()), total
    else:
        operator, spread = _spectrum(S)
    spread = min(spread, operator * np.count_nonzero(terms), float(np.sqrt(rows).sum()) ** 2)
    largest = abs(S).max(axis=1)
    return Norms(
        operator=safe * math.sqrt(operator),
        frobenius=safe * math.sqrt(total),
        spread=safe * math.sqrt(spread),
        rows=safe * np.sqrt(rows),
        absolute_rows=safe * absolute_rows,
        largest=safe * np.asarray(largest.toarray() if issparse(largest) else largest).ravel(),
        columns=safe * np.sqrt(columns),
        absolute_columns=safe * absolute_columns,
        touched=_sums(S != 0, 0) if issparse(A) else np.full(matrix.n_features, float(np.count_nonzero(terms))),
        terms=int(terms.max()),
        bits=row_bits(S) if at_once(A) else None,
    )


def _sums(S: Any, axis: int) -> Array:
    return np.asarray(S.sum(axis=axis), dtype=np.float64).ravel()


def _spectrum(S: Any) -> tuple[float, float]:
    """Upper ends of the largest eigenvalue of SSᵀ and of ``max ‖Sᵀσ‖²`` over signs σ; S holds whole numbers."""
    S = S.toarray() if issparse(S) else S
    k, d = S.shape
    square = S @ S.T if k <= d else S.T @ S
    eigenvalue = float(np.linalg.eigvalsh(square)[-1]) * (1 + 10 * len(square) * UNIT)
    return eigenvalue, float(np.abs(square).sum()) if k <= min(d, COMPARED) else math.inf


@lru_cache(maxsize=32)
def _change(matrix: Matrix, coordinate: float | tuple[float, ...], count: float, l1: float, l2: float) -> ImageChange:
    norms, d, safe = matrix.norms, matrix.n_features, inflate(1.0)
    count = int(min(count, d))
    each = np.broadcast_to(np.asarray(coordinate, dtype=np.float64), d)
    limits: Array = np.minimum(each, min(l1, l2))
    sane(count >= 0 and float(limits.min()) >= 0 and float(limits.max()) < 1e150)
    l1 = min(l1, safe * _top(limits, count))
    l2 = min(l2, l1, safe * math.sqrt(_top(limits**2, count)))
    A = matrix.entries
    components = np.minimum(norms.rows * l2, norms.largest * l1)
    components = safe * np.minimum(components, _by_component(A, limits, count))
    boxed = [math.inf, math.inf]
    if not issparse(A):
        components = np.minimum(components, safe * _filled(np.abs(A), limits, l1))
        if limits.min() < l2 < np.linalg.norm(limits):
            within, *boxed = _in_box_and_ball(A, limits, l2)
            components = np.minimum(components, within)
    touched = min(int(np.count_nonzero(norms.largest)), int(_top(norms.touched * (limits > 0), count)))
    absolute = min(
        float(components.sum()),
        _filled(norms.absolute_columns, limits, l1),
        _top(norms.absolute_columns * limits, count),
        norms.spread * l2,
        boxed[0],
    )
    length = safe * min(
        norms.operator * l2,
        _filled(norms.columns, limits, l1),
        _top(norms.columns * limits, count),
        math.sqrt(absolute) * math.sqrt(components.max()),
        float(np.linalg.norm(components)),
        _by_pairs(A, limits, count, l1),
        boxed[1],
    )
    return ImageChange(
        l1=safe * float(min(absolute, math.sqrt(touched) * length)),
        l2=float(length),
        components=np.minimum(components, length),
        touched=touched,
    )


def _top(values: Array, count: int) -> Any:
    """Sum of the ``count`` largest of non-negative numbers."""
    if count < values.shape[-1]:
        values = -np.partition(-values, count - 1, axis=-1).take(range(count), axis=-1)
    return values.sum(axis=-1)


def _filled(values: Array, limits: Array, l1: float) -> Any:
    """The largest ``Σ v_i t_i`` with ``0 <= t_i <= b_i`` and ``Σ t_i <= l1``: the largest values are used up first."""
    if limits.min() >= l1:
        return values.max(axis=-1) * l1
    order = np.argsort(-values, axis=-1, kind="stable")
    filled = np.cumsum(limits[order], axis=-1)
    used = np.diff(np.minimum(filled, l1), axis=-1, prepend=0.0)
    return (np.take_along_axis(values, order, axis=-1) * used).sum(axis=-1)


def _in_box_and_ball(A: Array, limits: Array, l2: float) -> tuple[Array, float, float]:
    """Upper ends of every ``|a_j·v|``, of ``‖Av‖₁`` and of ``‖Av‖``, where ``|v_i| <= b_i`` and ``‖v‖ <= l2``.

    They are in the ellipsoid of :func:`_ellipsoids` for any direction; it is climbed to.
    """
    A, limits = A[:, limits > 0], limits[limits > 0] / l2
    k, d = A.shape
    D, r, _ = _ellipsoids(A, limits)
    components = inflate(l2) * r * np.linalg.norm(A / np.sqrt(D), axis=1)
    norms = []
    for dual in (np.sign, lambda image: image):
        G = A[:CLIMBERS]
        for _ in range(CLIMBS):
            image = _ellipsoids(G, limits)[2] @ A.T
            G = dual(image) @ A
        best = int(np.argmax((dual(image) * image).sum(axis=1)))
        D, r, _ = _ellipsoids(G[[best]], limits)
        M = A / np.sqrt(D)
        square, rounding = M @ M.T, 10 * (k + d) * UNIT * float((M * M).sum())
        top = float(np.linalg.eigvalsh(square)[-1]) + rounding
        if dual is np.sign:
            top = min(float(np.abs(square).sum()) + k * rounding, k * top)
        norms.append(inflate(l2) * math.sqrt(top) * float(r[0]))
    return components, norms[0], norms[1]


def _ellipsoids(G: Array, limits: Array) -> tuple[Array, Array, Array]:
    """For every row g of G an ellipsoid ``Σ D_i v_i² <= r²`` around ``|v_i| <= b_i`` and ``‖v‖ <= 1`` that touches them
    at their v with the largest g·v, ``sign(g_i) min(b_i, |g_i| / m)``: ``D_i = max(m, |g_i| / b_i)``, r and that v.
    """
    size = np.maximum(np.abs(G), 1e-300)
    order = np.argsort(-size / limits, axis=1, kind="stable")
    sorted_size, box = np.take_along_axis(size, order, axis=1), limits[order]
    room = 1.0 - (np.cumsum(box**2, axis=1) - box**2)  # for what is not at its limit, if the first so many are
    rest = np.cumsum((sorted_size**2)[:, ::-1], axis=1)[:, ::-1]
    m = np.sqrt(rest / np.maximum(room, 1e-300))
    fits = (room > 0) & (sorted_size <= m * box)
    m = np.take_along_axis(m, np.argmax(fits, axis=1)[:, None], axis=1)
    D = np.maximum(m, size / limits)
    r = np.sqrt(((D - m) * limits**2).sum(axis=1) + m[:, 0])
    return D, r, G / D


def _by_component(A: Any, limits: Array, count: int) -> Array:
    """The largest ``Σ |a_ji| b_i`` over ``count`` columns i, of every row of A; the right signs attain it."""
    if not issparse(A):
        return np.asarray(_top(np.abs(A) * limits, count))
    weighed, starts = np.abs(A.data) * limits[A.indices], A.indptr[:-1]
    row = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    order = np.lexsort((-weighed, row))  # within every row the largest first
    kept = np.arange(len(order)) - starts[row] < count
    return np.asarray(np.bincount(row[kept], weighed[order][kept], minlength=A.shape[0]), dtype=np.float64)


def _by_pairs(A: Any, limits: Array, count: int, l1: float) -> float:
    """``‖Σ ±b_i A_i‖² ≤ Σ_i b_i (b_i ‖A_i‖² + Σ_l b_l |A_i·A_l|)`` over ``count`` columns, the largest of each sum;
    and ``Σ t_i Σ t_l |A_i·A_l|`` over what :func:`_filled` allows, where ``Σ |b_i| <= l1`` is all there is.
    """
    if A.shape[1] > COMPARED:
        return math.inf
    S, unit = whole(A)
    S = S.toarray() if issparse(S) else S
    gram = np.abs(S.T @ S)
    filled = _filled(_filled(gram, limits, l1), limits, l1)
    pairs = gram * limits * limits[:, None]
    squares = pairs.diagonal().copy()
    np.fill_diagonal(pairs, 0.0)
    return inflate(unit * math.sqrt(min(filled, _top(squares + _top(pairs, count - 1), count))))


@lru_cache(maxsize=64)
def _first_norms(family: str, n_components: int, n_features: int, seed: int) -> tuple[float, float, Array, Array]:
    """Operator and Frobenius norm, L2 and L1 norms of rows, of a matrix whose entries are not rounded."""
    matrix = draw(family, n_components, n_features, seed, rounded=False)
    absolute = np.asarray(abs(matrix).sum(axis=1)).ravel()
    squares = np.asarray((matrix * matrix).sum(axis=1)).ravel()
    rows = np.sqrt(squares)
    # Under "oporp" the components look at different columns, so their images are orthogonal.
    operator = inflate(float(rows.max())) if family == "oporp" else operator_norm(matrix)
    return operator, inflate(math.sqrt(squares.sum())), rows, absolute


_projection = partial(formula, kind="stability", page="random-projection", way="public", used_by=("RandomProjection",))


@_projection("projection.random")
def random_projection(
    domain: Domain, distance: Distance, *, family: str, n_components: int, seed: int
) -> tuple[Domain, Distance]:
    """Row-wise and linear, Lipschitz with the operator norm of the matrix that the seed gives, not rounded."""
    sane(family in FIRST_FAMILIES and integers(n_components, seed) and n_components >= 1 and seed >= 0)
    sane(n_components * (1 if family == "oporp" else domain.d) <= MOST_ENTRIES and domain.d <= MOST_ENTRIES)
    operator, frobenius, rows, absolute_rows = _first_norms(family, n_components, domain.d, seed)
    error = apply_error(domain.d, frobenius * domain.require("row_norm"))
    return _projected(domain, distance, operator, rows, absolute_rows, error)


@_projection("projection.drawn", entrywise=True, row_by_row=True)
def drawn_projection(
    domain: Domain,
    distance: Distance,
    *,
    family: str,
    n_components: int,
    seed: int,
    s: float | None = None,
    bins: str | None = None,
) -> tuple[Domain, Distance]:
    """Row-wise and linear, with the norms of the matrix that the parameters give (Theorem C, Lemma G, Lemma O).

    What is known of each row that moved becomes what Theorem C says of its image. Components that a change does not
    touch stay equal to the last bit.
    """
    sane(family in FAMILIES and integers(n_components, seed) and n_components >= 1 and seed >= 0)
    sane(n_components * (1 if family == "oporp" else domain.d) <= MOST_ENTRIES and domain.d <= MOST_COLUMNS)
    sane(s is None or (family == "sparse" and type(s) is float and 1 <= s <= MOST_ENTRIES))
    sane(bins is None or (family == "oporp" and bins in BINS))
    matrix = Matrix(family, n_components, domain.d, seed, s, bins)
    norms = matrix.norms
    error = norms.error(domain.require("row_norm"), largest_entry(domain))
    out, far = _projected(domain, distance, norms.operator, norms.rows, norms.absolute_rows, error)
    known = distance.moves
    if known is None:
        return out, far
    change = matrix.change(coordinate=known.linf, count=known.columns, l1=known.l1, l2=distance.radius)
    radius = min(far.radius, change.l2 + 2 * error)
    l1 = change.l1 + 2 * error * math.sqrt(change.touched)
    moves = Moves(min(float(change.components.max()) + 2 * error, radius), l1, change.touched)
    return out, replace(far, radius=radius, total=min(far.total, far.moved * radius)).moving(moves)


def _projected(
    domain: Domain, distance: Distance, operator: float, rows: Array, absolute_rows: Array, error: float
) -> tuple[Domain, Distance]:
    norm = float(domain.require("row_norm"))
    entries = np.minimum(rows * norm, absolute_rows * largest_entry(domain))
    out_norm = inflate(min(operator * norm, float(np.linalg.norm(entries))) + error)
    out = domain.but(
        n_features=len(rows),
        feature_names=None,
        row_norm=out_norm or norm,  # the matrix may be 0, and any bound holds then
        entry_bound=min(inflate(float(entries.max()) + error), out_norm) or norm,
    )
    return out, distance.stretched(operator, 2 * out_norm).jittered(error)
