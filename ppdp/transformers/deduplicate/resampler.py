"""What deduplicators share outside a pipeline: they shorten data, and remember nothing of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.frames import arrow_table
from ppdp.data.parallel import blocks
from ppdp.data.rows import Rows
from ppdp.exceptions import InvalidParameter
from ppdp.transformers.base import Statistics

__all__ = ["Resampler", "compacted", "label_codes", "rewritten", "taken"]

Array = NDArray[np.float64]


class Resampler:
    """Mixin for stages that delete or weight rows; it stands before :class:`Stage` among the bases.

    Outside a pipeline such a stage has ``fit_resample``, and no ``transform``: a new row is never a duplicate. Which
    rows were kept is private and no attribute tells it. Rows are compared, so all of them are needed in memory.
    """

    in_memory = True

    _rewrites = False
    """Whether kept rows have other values than they came with."""

    _weighs = False
    """Whether weights lie between 0 and 1, so that shortening is impossible."""

    def _weight(self, rows: Rows, statistics: Statistics) -> Array:
        """The new weight of every row."""
        raise NotImplementedError

    def apply(self, rows: Rows, statistics: Statistics) -> Rows:
        return replace(rows, weight=self._weight(rows, statistics)).settled()

    def fit(self: Any, X: Any, y: Any = None) -> Any:
        """Check parameters and data; nothing is learned.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : ignored
            Present by convention.
        """
        self.ways(*self._facts(self._values(X)))
        return self

    def fit_resample(self: Any, X: Any, y: Any = None) -> Any:
        """Return the rows without duplicates, outside any certificate: the number of rows is private.

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
            raise InvalidParameter(
                "rows are weighted, not deleted.",
                stage=type(self).__name__,
                fix="use weights(X, y) outside a pipeline.",
            )
        rows = self._resampled(X, y)
        where = np.flatnonzero(rows.weight)
        values = compacted(rows.X, where) if self._rewrites else None
        del rows
        short = taken(X, where) if values is None else rewritten(X, values, where)
        return short, None if y is None else taken(y, where)

    def weights(self: Any, X: Any, y: Any = None) -> Array:
        """Weight of every row, 0 for a deleted one, outside any certificate: weights are private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,), optional
            Labels.
        """
        weight: Array = self._resampled(X, y).weight
        return weight

    def _resampled(self: Any, X: Any, y: Any) -> Rows:
        values = self._values(X)
        domain, distance = self._facts(values)
        way = self.way_alone(domain, distance)
        if y is not None:
            check_consistent_length(values, y)
        rows = Rows.of(values, None if y is None else label_codes(y))
        statistics = self.prepare(rows, way, domain)
        if self._rewrites:
            result: Rows = self.apply(rows, statistics)
            return result
        return replace(rows, weight=self._weight(rows, statistics))  # deleted rows are not looked at any more

    def _values(self, X: Any) -> Array:
        values: Array = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan")
        return values

    def _facts(self, X: Array) -> tuple[Domain, Distance]:
        names = tuple(self.feature_names_in_) if hasattr(self, "feature_names_in_") else None
        n, d = X.shape
        domain = Domain(n_rows=n, n_features=d, feature_names=names, min_present=n)
        return domain, domain.adjacency.distance

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = True
        return tags


def label_codes(y: Any) -> Array:
    """Numbers for labels of any kind; equal labels have equal numbers, and numbers keep their order."""
    labels = column_or_1d(y)
    if labels.dtype != object:
        return np.unique(labels, return_inverse=True)[1].astype(np.float64)
    codes: dict[Any, int] = {}
    return np.array([codes.setdefault(label, len(codes)) for label in labels.tolist()], dtype=np.float64)


def taken(data: Any, where: NDArray[np.intp]) -> Any:
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
    return type(data)(values, schema=data.columns) if _from(data, "polars") else values


def _from(data: Any, library: str) -> bool:
    return type(data).__module__.startswith(library)
