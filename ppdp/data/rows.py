"""The private data as they travel through a pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ppdp.core.domain import Domain
from ppdp.data.cells import codes, numbers
from ppdp.data.parallel import PIECE, in_parallel, pieces
from ppdp.data.statistics import row_norms
from ppdp.exceptions import InvalidInput, InvalidValue

Array = NDArray[np.float64]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Rows:
    """Rows, labels and weights of a public number of slots.

    A deleted row keeps its slot: weight 0, a row of zeros and the first public label. So the number
    of rows never changes and never tells how many were deleted.
    """

    X: Array  # float64; NaN marks a gap. A sparse array of SciPy as far as the first stages of a plan take one.
    y: Array | None  # codes of public classes, or targets as :func:`encode_targets` gives them
    weight: Array  # in [0, 1]
    # The rows as they came into the first stage that is fitted or moves rows, for stages that take their keys there.
    raw: Array | None = None
    # Whether nobody else holds ``X``, so that the next stage may write over it: of rows that were read or mapped.
    ours: bool = False
    first: int = 0  # number of the first row, where these are a block of many that are read
    norms: Array | None = None  # Euclidean norms, of rows that are read many times as they are
    # What the codes of some columns stand for, in front of the stage that releases categories or maps whole texts.
    texts: Mapping[int, Any] | None = None
    marks: NDArray[np.bool_] | None = None  # which properties of :mod:`ppdp.data.altered` every row has
    factor: Array | None = None  # in [0, 1]: as what part of a row its loss counts; stages do not look at it

    @classmethod
    def of(cls, data: Rows | Any, y: Any = None) -> Rows:
        """Rows of full weight from an array, or the rows themselves."""
        if isinstance(data, Rows):
            return data
        X = data if issparse(data) else np.ascontiguousarray(data, dtype=np.float64)
        return cls(X, None if y is None else np.asarray(y, dtype=np.float64), np.ones(X.shape[0]))

    @property
    def n(self) -> int:
        """Public number of slots."""
        return int(self.X.shape[0])

    @property
    def d(self) -> int:
        """Number of columns."""
        return int(self.X.shape[1])

    def blocks(self) -> Iterator[Rows]:
        """The rows in blocks of one size; keys stay behind."""
        return (self.part(slice(first, first + PIECE), first) for first in range(0, self.n, PIECE))

    def part(self, which: Any, first: int = 0) -> Rows:
        """Some of the rows; keys stay behind."""
        y, norms, factor = (None if own is None else own[which] for own in (self.y, self.norms, self.factor))
        return Rows(self.X[which], y, self.weight[which], first=first, norms=norms, factor=factor)

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """Rows one after the other, at least one part; keys stay behind."""

        def column(name: str) -> Any:
            own = [getattr(part, name) for part in parts]
            return None if own[0] is None else np.concatenate(own)

        kept = {name: column(name) for name in ("norms", "marks", "factor")}
        return cls(column("X"), column("y"), column("weight"), **kept)

    def bare(self) -> Rows:
        """All rows; keys stay behind."""
        return Rows(self.X, self.y, self.weight, first=self.first, factor=self.factor)

    def last(self) -> Rows:
        """All rows, of which nothing but gradients is taken any more, with the norms that a map gave them or theirs."""
        return replace(self.bare(), norms=row_norms(self.X) if self.norms is None else self.norms)

    def over(self, task: Callable[[Rows], T], d: int | None = None, merge: Any = None) -> Iterator[T]:
        """Results of a task for some of the rows at a time; keys stay behind."""
        parts = (self.part(piece, piece.start) for piece in pieces(self.n))
        return in_parallel(task, parts, self.d if d is None else d)

    def each(self, function: Callable[[Rows], Rows], d: int) -> Rows:
        """The rows behind a map of each by itself, to d columns."""
        return function(self)

    @property
    def incomplete(self) -> NDArray[np.bool_]:
        """Which rows with weight have a gap."""
        return np.isnan(self.X).any(axis=1) & (self.weight > 0)

    def with_X(self, X: Any) -> Rows:
        """The same rows with other features; deleted rows return to the filler."""
        if issparse(X):
            return replace(self, X=X)
        # In another layout last bits might tell whether a stage copied, because of some other row.
        X = np.ascontiguousarray(X, dtype=np.float64)
        if X is self.X:
            return self.settled()
        return replace(self, X=X, ours=False, texts=None).settled()

    def settled(self) -> Rows:
        """Put deleted rows back to the filler, whatever a stage made of them."""
        gone = (self.weight == 0).nonzero()[0]
        if not gone.size:
            return self
        X, y = self.X, self.y
        if X[gone].any():  # a gap is something as well
            X = X if self.ours else X.copy()
            X[gone] = 0.0
        if y is not None:
            y = y.copy()
            y[gone] = 0.0
        return replace(self, X=X, y=y, texts=None)

    def weighted(self, by_class: Array) -> Rows:
        """The same rows, of which each loss counts by its factor, and by that of its class if there are any."""
        weight = self.weight if self.factor is None else self.weight * self.factor
        if len(by_class) and self.y is not None:
            weight = weight * by_class[self.y.astype(np.intp)]
        return replace(self, weight=weight, factor=None)

    def __sizeof__(self) -> int:
        """Bytes of the arrays: a cluster that takes rows for small sends them from worker to worker."""
        return sum(getattr(own, "nbytes", 0) for own in (self.X, self.y, self.weight, self.raw, self.norms, self.marks))

    def __repr__(self) -> str:
        return f"Rows({self.n} x {self.X.shape[1]})"


def encode_labels(y: Any, classes: Sequence[Any]) -> Array:
    """Position of every label among the public classes; NaN for any other label."""
    read = codes(y if hasattr(y, "dtype") else np.asarray(y), classes)
    return np.where(read.improper, np.nan, read.values)


def encode_targets(y: Array, y_range: tuple[float, float]) -> Array:
    """Targets clipped to their public range, as a share of half of it about its centre: -1 to 1, NaN becomes 0."""
    low, high = y_range
    half = high / 2 - low / 2
    shares = (np.clip(y, low, high) - (low / 2 + high / 2)) / half
    return np.clip(np.where(np.isnan(shares), 0.0, shares), -1.0, 1.0)


def targets_alone(y: Any, stage: str) -> Array:
    """Targets of a fit alone as numbers."""
    values, improper = numbers(np.asarray(y))
    if improper.any():
        raise InvalidInput("y must hold numbers, to learn a regression.", stage=stage, fix="y=table['its column'].")
    return np.asarray(values)


def encode_alone(domain: Domain, y: Any, stage: str, *, targets: bool) -> tuple[Domain, Array]:
    """For a fit alone: codes, and the domain with the classes or range that it has or that are read off."""
    if targets:
        y = targets_alone(y, stage)
        low, high = domain.y_range or (float(y.min()), float(y.max()))
        y_range = (low, high) if low < high else (low - 1.0, high + 1.0)
        return domain.but(y_range=y_range), encode_targets(y, y_range)
    if domain.classes is None:
        domain = domain.but(classes=tuple(np.unique(y).tolist()))
    codes = encode_labels(y, domain.classes or ())
    if np.isnan(codes).any():
        raise InvalidValue("a label is not one of the declared classes.", stage=stage)
    return domain, codes
