"""Clusters of near-duplicates: kept once, or moved onto one another; and how crowded rows are.

Whether two rows are near is decided by their difference alone, column after column, so that it does not depend on any
other row; a k-d tree only proposes pairs. Theory: ``docs/theory/clusters.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.spatial import cKDTree

from ppdp.bounds.deduplication import KISSING, reach
from ppdp.core.checks import flag, integer, length
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.rows import Array, Rows
from ppdp.data.summary import extremes
from ppdp.exceptions import InvalidParameter
from ppdp.transformers.base import Statistics
from ppdp.transformers.deduplicate.base import RowSelector
from ppdp.transformers.deduplicate.records import compared, grouped
from ppdp.transformers.fit_mode import FitMode

Indices = NDArray[np.intp]
Pairs = tuple[Indices, Indices, Array]

SLACK = 1 + 1e-9  # distances are computed less than this factor away from the truth
LOCATED = 1e140  # larger entries would overflow when they are squared
AT_ONCE = 2**23  # pairs that are held in memory together


@dataclass(frozen=True)
class Comparable:
    """The rows that take part: present and without missing values."""

    slots: Indices  # where they stand
    points: Array
    labels: Array | None  # rows of different labels are never near each other

    @classmethod
    def of(cls, X: Array, y: Array | None, weight: Array) -> Comparable:
        """Select them."""
        every = cls(np.arange(len(X)), X, y)
        slots = np.flatnonzero((weight > 0) & ~np.isnan(X).any(axis=1))
        return every if len(slots) == len(X) else every.some(slots)

    def some(self, which: Indices) -> Comparable:
        """Some of these rows."""
        return Comparable(self.slots[which], self.points[which], None if self.labels is None else self.labels[which])


class NearPairs:
    """Every pair of rows of one label within a radius, once, with its squared distance; in pieces that fit memory."""

    def __init__(self, rows: Comparable, radius: float) -> None:
        self._points, self._radius = rows.points, radius
        self._located = _apart_by_label(rows, radius)
        low, high = extremes(self._located) if len(self._located) else (0.0, 0.0)
        if max(-low, high) > LOCATED:
            # The tree's own squares must not overflow; it only proposes, and clipping brings no points further apart.
            self._located = np.clip(self._located, -LOCATED, LOCATED)
        self._tree = cKDTree(self._located)
        self._few: Pairs | None = None

    def __iter__(self) -> Iterator[Pairs]:
        if self._few is None:
            if self._many():
                yield from map(self._checked, self._pieces())
                return
            self._few = self._checked(self._tree.query_pairs(self._radius * SLACK, output_type="ndarray"))
            del self._tree, self._located
        yield self._few

    def _many(self) -> bool:
        """Whether there are too many to be held at once, from a sample of rows that no dense place escapes."""
        n = len(self._located)
        stride = 1 + int(np.sqrt(n) / 16)
        sample = self._located[self._tree.indices[::stride]]  # neighbours in the tree are neighbours in space
        counts = self._tree.query_ball_point(sample, self._radius * SLACK, return_length=True)
        return bool((counts.sum() - len(sample)) * stride / 2 > AT_ONCE)

    def _pieces(self) -> Iterator[NDArray[np.intp]]:
        """Pairs of a few rows with all others, so few that all of those could be near."""
        n = len(self._located)
        size = max(1, AT_ONCE // (8 * n))
        for start in range(0, n, size):
            some = self._tree.indices[start : start + size]
            neighbours = self._tree.query_ball_point(self._located[some], self._radius * SLACK, return_sorted=False)
            i = np.repeat(some, [len(near) for near in neighbours])
            j = np.fromiter(chain.from_iterable(neighbours), np.intp, len(i))
            yield np.column_stack([i, j])[i < j]

    def _checked(self, pairs: NDArray[np.intp]) -> Pairs:
        i, j = np.ascontiguousarray(pairs.T)
        squared = np.zeros(len(i))
        for column in self._points.T:
            step = column[i] - column[j]
            squared += step * step
        near = squared <= self._radius * self._radius
        return (i, j, squared) if near.all() else (i[near], j[near], squared[near])


def _apart_by_label(rows: Comparable, radius: float) -> Array:
    """Points with one more coordinate that keeps different labels further apart than the radius."""
    if rows.labels is None or not len(rows.points):
        return rows.points
    codes = np.unique(rows.labels, return_inverse=True)[1]
    return np.column_stack([rows.points, codes * (4 * radius)])


def centres(rows: Comparable, radius: float) -> Indices:
    """Position of the row that represents each row: the first good centre within ``radius`` of it, or itself.

    A good centre has no row further than ``radius`` and within ``3 radius``. First in lexicographic order; of equal
    rows that in the first slot.
    """
    lead, several = _copies(rows)
    leads = np.flatnonzero(lead == np.arange(len(lead))).astype(lead.dtype)
    n, shared = len(leads), several[leads]
    distinct = rows.some(leads) if n < len(lead) else rows
    pairs = NearPairs(distinct, 3 * radius)
    spoiled = np.zeros(n, bool)
    for i, j, squared in pairs:
        far = squared > radius * radius
        for end in (i, j):
            spoiled[end[far]] = True
            shared[end[~far]] = True
    good = np.flatnonzero(shared & ~spoiled)
    order = good[np.lexsort(distinct.points[good].T[::-1])]
    rank = np.full(n, n, lead.dtype)
    rank[order] = np.arange(len(order))
    best = rank.copy()
    for i, j, squared in pairs:
        near = squared <= radius * radius
        i, j = i[near], j[near]
        np.minimum.at(best, i, rank[j])
        np.minimum.at(best, j, rank[i])
    del pairs, rank
    member = best < n
    spread = np.full(len(lead), -1, lead.dtype)
    spread[leads[member]] = leads[order[best[member]]]
    del leads, order, best, member
    spread = spread[lead]
    return np.where(spread < 0, np.arange(len(spread), dtype=spread.dtype), spread)


def _copies(rows: Comparable) -> tuple[Indices, NDArray[np.bool_]]:
    """The first row that equals each row, and whether there is more than one."""
    alike = grouped(rows.points) if rows.labels is None else grouped(rows.points, rows.labels)
    narrow = np.int32 if len(rows.slots) < 2**31 else np.intp
    return alike.of_rows(alike.order[alike.starts].astype(narrow)), alike.of_rows(alike.sizes > 1)


def crowding(rows: Comparable, radius: float, most: int) -> int:
    """Largest t such that in some set of rows each has t of the set within the radius, itself included; at least 1.

    Counted up to ``most + 1``. One more than the degeneracy of the graph of near pairs.
    """
    n, edges, count = len(rows.points), [], 0
    for i, j, _ in NearPairs(rows, radius):
        edges.append((i, j))
        count += len(i)
        if count > (most - 1) * n:  # a graph of degeneracy most - 1 has no more edges
            return most + 1
    if count == 0:
        return 1
    i, j = (np.concatenate(ends) for ends in zip(*edges))
    return _core(i, j, n, most)


def _core(i: Indices, j: Indices, n: int, most: int) -> int:
    """Peel the graph: take away all vertices of least degree, over and over."""
    ends = np.concatenate([i, j]), np.concatenate([j, i])
    graph = coo_array((np.ones(len(ends[0]), np.int8), ends), shape=(n, n)).tocsr()
    degree = np.diff(graph.indptr).astype(np.int64)
    size, gone = degree.copy(), degree == 0
    level = 0
    while not gone.all():
        level = int(degree[~gone].min())
        if level >= most:
            return most + 1
        peeled = np.flatnonzero(~gone & (degree <= level))
        while peeled.size:
            gone[peeled] = True
            touched = graph.indices[_ranges(graph.indptr[peeled], size[peeled])]
            touched = touched[~gone[touched]]
            np.subtract.at(degree, touched, 1)
            peeled = np.unique(touched[degree[touched] <= level])
    return level + 1


def _ranges(starts: Indices, lengths: Indices) -> Indices:
    """The integers of several ranges, one after the other."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1]) + np.repeat(starts - ends + lengths, lengths)


def _crowding_margin(radius: float, most: int, compare: str, rows: Rows, unit: float) -> float:
    """How many rows must be replaced before more than ``most`` rows crowd within ``radius``."""
    comparable = Comparable.of(compared(rows, compare), rows.y, rows.weight)
    return (most + 1 - crowding(comparable, radius * SLACK, most)) / unit


class _ClusterStage(RowSelector):
    """A stage that finds clusters, under the condition that rows are not crowded."""

    radius: float
    max_cluster: int
    low_dimension: bool
    _formula: ClassVar[str]

    def fit_modes(self, domain: Domain, distance: Distance) -> tuple[FitMode, ...]:
        raw, stage = self.takes_raw_keys(domain, distance), type(self).__name__
        radius = length("radius", self.radius, self)
        if domain.row_norm is not None and radius >= 2 * domain.row_norm:
            what = f"all rows are within radius = {radius:g} of each other."
            raise InvalidParameter(what, stage=stage, fix="radius far below twice the norm of a row.")
        if flag("low_dimension", self.low_dimension, self) and (raw or domain.d not in KISSING):
            what = "low_dimension is for rows of at most 3 columns, compared as they are."
            raise InvalidParameter(what, stage=stage, fix="low_dimension=False.", parameter="low_dimension")
        most = integer("max_cluster", self.max_cluster, self)
        parameters: dict[str, Any] = {"eta": radius, "max_cluster": most, "low_dimension": self.low_dimension}
        measure = partial(_crowding_margin, reach(self.low_dimension) * radius, most, self.compare)
        measures = {"clusters.raw-crowding": measure, "clusters.crowding": measure}
        if raw:
            parameters["raw"] = True
        return (FitMode.by(self._formula, domain, distance, measures=measures, **parameters),)


@dataclass(eq=False, repr=False)
class ClusterDeduplicator(_ClusterStage):
    """Keep one row of every cluster of near-duplicates that stands apart from all other rows.

    A row is a good centre if no row lies between ``radius`` and ``3 radius`` from it; the rows within ``radius`` of a
    good centre are its cluster. Of each cluster the good centre that comes first in lexicographic order is kept. Rows
    of different labels are never near each other, and a row with missing values is near no other.

    Parameters
    ----------
    radius : float, default=0.01
        Rows this near are duplicates; in the units of the rows that are compared.
    max_cluster : int, default=50
        Assumed: no more rows than this crowd within ``8 radius`` (in every set of rows, some row has fewer than
        ``max_cluster`` others of the set within ``8 radius``). The gate tests it; it needs a few dozen rows of room.
    low_dimension : bool, default=False
        Assume the same within ``2 radius`` only. At equal ``max_cluster`` it costs 2, 6 or 12 times as much in 1, 2 or
        3 columns, but it can be true where rows are dense.
    compare : {"current", "raw"}, default="current"
        Which rows are compared: as they are, or as they came into the first stage that is fitted.

    Notes
    -----
    **Guarantee** (``docs/theory/clusters.md``): one replaced row switches at most ``2 (max_cluster - 1)`` others on or
    off. Conditional: :class:`Deduplicator` and :class:`GridDeduplicator` cost less and assume nothing. Rows are
    compared in memory.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.50, 0.52], [0.50, 0.51], [3.0, 4.0]])
    >>> ClusterDeduplicator(radius=0.1).fit_resample(X)[0]
    array([[0.5 , 0.51],
           [3.  , 4.  ]])
    """

    radius: float = 0.01
    max_cluster: int = 50
    low_dimension: bool = False
    compare: str = "current"

    _formula = "clusters.deduplicate"
    relief = "a larger max_cluster or GridDeduplicator"

    def _weight(self, rows: Rows, statistics: Statistics) -> Array:
        comparable = Comparable.of(compared(rows, self.compare), rows.y, rows.weight)
        centre = centres(comparable, self.radius)
        weight = rows.weight.copy()
        weight[comparable.slots[centre != np.arange(len(centre), dtype=centre.dtype)]] = 0.0
        return weight


@dataclass(eq=False, repr=False)
class ClusterQuantizer(_ClusterStage):
    """Move the rows of every cluster of near-duplicates onto its centre.

    The same clusters as those of :class:`ClusterDeduplicator`; every row of a cluster becomes a copy of the one that
    the deduplicator keeps. Labels stay, and no row is deleted.

    Parameters
    ----------
    radius : float, default=0.01
        Rows this near are duplicates; in the units of the rows.
    max_cluster : int, default=50
        Assumed: no more rows than this crowd within ``8 radius``, see :class:`ClusterDeduplicator`.
    low_dimension : bool, default=False
        Assume the same within ``2 radius`` only, for at most 3 columns.

    Notes
    -----
    **Guarantee** (``docs/theory/clusters.md``): one replaced row moves at most ``2 (max_cluster - 1)`` others, each by
    at most ``2 radius`` and ``radius`` on average. Conditional: :class:`GridQuantizer` costs nothing and assumes
    nothing. Rows are compared in memory.

    There is no ``transform``: copies of private rows are private, so a new row stays as it is. Outside a pipeline,
    :meth:`fit_resample` returns the moved rows.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.50, 0.52], [0.50, 0.51], [3.0, 4.0]])
    >>> ClusterQuantizer(radius=0.1).fit_resample(X)[0]
    array([[0.5 , 0.51],
           [0.5 , 0.51],
           [3.  , 4.  ]])
    """

    radius: float = 0.01
    max_cluster: int = 50
    low_dimension: bool = False

    _formula = "clusters.quantize"
    leakage = "high", "where rows lie: a cluster may be one row"
    _rewrites = True
    relief = "a larger max_cluster or GridQuantizer"

    def apply(self, rows: Rows, statistics: Statistics) -> Rows:
        comparable = Comparable.of(rows.X, rows.y, rows.weight)
        X = rows.X.copy()
        X[comparable.slots] = rows.X[comparable.slots[centres(comparable, self.radius)]]
        return rows.with_X(X)
