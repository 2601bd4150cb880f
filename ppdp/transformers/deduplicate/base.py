"""Stages that compare rows: where they may stand, and how they shorten data outside a pipeline."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin, clone
from sklearn.utils.validation import check_consistent_length, column_or_1d

from ppdp.bounds.deduplication import nobody_absent
from ppdp.core.checks import choice
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.engine.external_join import keep_mask
from ppdp.data.frames import arrow_table
from ppdp.data.parallel import blocks
from ppdp.data.rows import Array, Rows
from ppdp.data.stream import Stream
from ppdp.data.unit_conversion import Columns
from ppdp.data.validation import validated
from ppdp.exceptions import InvalidParameter, UnsupportedOrder
from ppdp.transformers.base import Stage, Statistics
from ppdp.transformers.deduplicate.records import Bits, compared

MOST_MOVED = 0.1  # share of the rows


class RowSelector(OneToOneFeatureMixin, Stage):
    """A stage that compares rows, and deletes, weights or moves them.

    Which rows were kept is private and no attribute tells it. One that deletes rows by their keys alone has
    :meth:`_words`, so that those which may have equal keys can be compared apart from all others; other stages need all
    rows in memory.
    """

    allows_gaps = True
    in_memory = True
    compares = True
    passes = 2
    compare = "current"
    keeps_units = True
    leakage = "high", "which rows repeat each other, or lie close to each other"

    _rewrites = False  # whether kept rows have other values than they came with
    _weighs = False  # whether weights lie between 0 and 1, so that shortening is impossible

    def takes_raw_keys(self, domain: Domain, distance: Distance) -> bool:
        """Whether raw rows are compared; refused where it may not stand: a row that moved costs as a replaced one."""
        name = type(self).__name__
        raw = bool(choice("compare", self.compare, ["current", "raw"], self) == "raw")
        if distance.reweighted:
            what = "rows have weights between 0 and 1 here."
            raise UnsupportedOrder(what, stage=name, fix="put it before the stage that weights rows.")
        if raw and not domain.adjacency.bounded:
            what = "raw keys would show a change that stages in front of it have bounded."
            raise UnsupportedOrder(what, stage=name, fix="compare='current', or Adjacency.replace().")
        if raw and not nobody_absent(domain, distance):
            what = "rows may have been deleted before it, and raw keys would bring them back."
            raise UnsupportedOrder(what, stage=name, fix="use one stage with compare='raw', or put this one first.")
        if not raw and distance.moved > MOST_MOVED * domain.n:
            raise UnsupportedOrder(
                f"an earlier stage may move {distance.moved:g} of {domain.n} rows, and each would count as replaced.",
                stage=name,
                fix="put it before that stage"
                + (", or compare the rows as they came with compare='raw'." if domain.adjacency.bounded else "."),
            )
        return raw

    def _weight(self, rows: Rows, statistics: Statistics) -> Array:
        """The new weight of every row."""
        raise NotImplementedError

    def _words(self, rows: Rows, statistics: Statistics) -> Bits:
        """Words of each of these rows as they are compared, a column for each band: those with equal keys share it."""
        raise NotImplementedError

    def _stay(self, rows: Rows, statistics: Statistics, words: Bits, *, whole: bool) -> Array:
        """The weight of every row by its words in one band; see :func:`~ppdp.data.engine.external_join.staying`."""
        disagreeing = not whole and getattr(self, "label_rule", "") == "unanimous"
        rule = clone(self).set_params(label_rule="record") if disagreeing else self
        return rule._weight(rows, statistics)

    def _decided(self, rows: Rows | Stream, statistics: Statistics, bands: int = 1) -> Statistics:
        """The statistics, with which rows stay if they are read in blocks."""
        if not isinstance(rows, Stream):
            return statistics

        def stay(some: Rows, words: Bits, whole: bool) -> Array:
            return self._stay(some, statistics, words, whole=whole)

        seen = rows.each(lambda block: replace(block, X=compared(block, self.compare), raw=None), rows.d)
        return {**statistics, "staying": keep_mask(seen, lambda some: self._words(some, statistics), stay, bands)}

    def apply(self, rows: Rows, statistics: Statistics) -> Rows:
        weight = statistics["staying"].of(rows) if "staying" in statistics else self._weight(rows, statistics)
        return replace(rows, weight=weight).settled()

    def units(self, columns: Columns) -> Columns:
        return columns.noted("rows moved onto near ones" if self._rewrites else "duplicates count less")

    def fit(self, X: Any, y: Any = None) -> Any:
        """Check parameters and data; nothing is learned.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : ignored
            Present by convention.
        """
        self.fit_modes(*self._facts(self._values(X)))
        return self

    def fit_resample(self, X: Any, y: Any = None) -> Any:
        """Return the rows without duplicates, outside any certificate: the number of rows is private.

        There is no ``transform``: a new row is never a duplicate. Stages that weight rows have :meth:`weights` instead.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,), optional
            Labels.

        Returns
        -------
        X, y
            Shortened, in the original order and kind.
        """
        if self._weighs:
            what = "rows are weighted, not deleted."
            raise InvalidParameter(what, stage=type(self).__name__, fix="use weights(X, y) outside a pipeline.")
        rows = self._resampled(X, y)
        where = np.flatnonzero(rows.weight)
        values = compacted(rows.X, where) if self._rewrites else None
        del rows
        short = selected(X, where) if values is None else rewritten(X, values, where)
        return short, None if y is None else selected(y, where)

    def weights(self, X: Any, y: Any = None) -> Array:
        """Weight of every row, 0 for a deleted one, outside any certificate: weights are private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,), optional
            Labels.
        """
        return self._resampled(X, y).weight

    def _resampled(self, X: Any, y: Any) -> Rows:
        values = self._values(X)
        domain, distance = self._facts(values)
        way = self.standalone_mode(domain, distance)
        if y is not None:
            check_consistent_length(values, y)
        rows = Rows.of(values, None if y is None else label_codes(y))
        statistics = self.prepare(rows, way, domain)
        if self._rewrites:
            return self.apply(rows, statistics)
        return replace(rows, weight=self._weight(rows, statistics))  # deleted rows are not looked at any more

    def _values(self, X: Any) -> Array:
        return np.asarray(validated(self, X, dtype=np.float64, ensure_all_finite="allow-nan"))

    def _facts(self, X: Array) -> tuple[Domain, Distance]:
        n, d = X.shape
        domain = Domain(n_rows=n, n_features=d, feature_names=self._names_in, min_present=n)
        return domain, domain.neighbours


def label_codes(y: Any) -> Array:
    """Numbers for labels of any kind; equal labels have equal numbers, and numbers keep their order."""
    labels = column_or_1d(y)
    if labels.dtype != object:
        return np.unique(labels, return_inverse=True)[1].astype(np.float64)
    codes: dict[Any, int] = {}
    return np.array([codes.setdefault(label, len(codes)) for label in labels.tolist()], dtype=np.float64)


def selected(data: Any, where: NDArray[np.intp]) -> Any:
    """Some rows of a frame, a table, a series, a list or an array, as the same kind."""
    if hasattr(data, "iloc"):
        return data.iloc[where]
    if isinstance(data, (list, tuple)):
        return type(data)(data[position] for position in where)
    if _from(data, "pyarrow"):
        return data.take(where)
    return data[where] if _from(data, "polars") else np.asarray(data)[where]


def compacted(X: Array, where: NDArray[np.intp]) -> Array:
    """Some rows, in ascending order, moved to the front of an array that is not needed any more."""
    for part in blocks(len(where), X.shape[1]):
        X[part.start : min(part.stop, len(where))] = X[where[part]]
    return X[: len(where)]


def rewritten(data: Any, values: Array, where: NDArray[np.intp]) -> Any:
    """New values for some rows of a frame or an array, as the same kind."""
    if hasattr(data, "iloc"):
        return type(data)(values, columns=data.columns, index=data.index[where])
    if _from(data, "pyarrow"):
        return arrow_table(values, data.column_names)
    if _from(data, "polars"):
        return type(data)(values, schema=data.columns)
    if isinstance(data, (list, tuple)):
        return type(data)(values.tolist())
    kind = np.asarray(data).dtype
    return values.astype(kind) if kind.kind == "f" else values


def _from(data: Any, library: str) -> bool:
    return type(data).__module__.startswith(library)
