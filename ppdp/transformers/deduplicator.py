"""Exact deduplication."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from ppdp.checks import integer
from ppdp.distance import Distance
from ppdp.domain import Domain
from ppdp.exceptions import DomainMismatch, InvalidParameter
from ppdp.planning.ways import Way
from ppdp.rows import Rows
from ppdp.transformers.base import Stage, Statistics

__all__ = ["Deduplicator"]

Array = NDArray[np.float64]


class Deduplicator(Stage):
    """Keep one copy of every record.

    In a pipeline, deleted rows keep their slot with weight 0: how many there were stays private. Gaps
    equal gaps, and -0 equals 0.

    Parameters
    ----------
    key : sequence of column names or positions, optional
        Records that agree in these columns are duplicates; the lexicographically smallest record of each group is kept.
        Default: the whole record, its label included.

    Notes
    -----
    **Guarantee** (``docs/theory/deduplication.md``): unconditional. Whole records: nothing moves, a
    replaced record stays one replaced record, so it costs nothing. With a key: at most two further rows
    are switched on or off. A stage before it that moved rows makes them count as replaced.

    There is no ``transform``: a new row is never a duplicate. Use :meth:`fit_resample` outside a pipeline.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 2.0], [1.0, 2.0], [3.0, 4.0]])
    >>> Deduplicator().fit_resample(X, np.array([0, 0, 1]))
    (array([[1., 2.], [3., 4.]]), array([0, 1]))
    """

    def __init__(self, key: Sequence[str | int] | None = None) -> None:
        self.key = key

    def ways(self, domain: Domain, distance: Distance) -> tuple[Way, ...]:
        """One exact, unconditional way."""
        self._columns(domain)
        formula = "deduplication.whole-record" if self.key is None else "deduplication.keep-first"
        return (Way.by("exact", formula, domain, distance),)

    def _columns(self, domain: Domain) -> list[int] | None:
        if self.key is None:
            return None
        if isinstance(self.key, (str, bytes)) or not isinstance(self.key, Sequence) or len(self.key) == 0:
            raise InvalidParameter(
                "key must be a non-empty list of columns.", stage="Deduplicator", fix="key=['column', ...]."
            )
        names = list(domain.feature_names or ())
        columns = []
        for column in self.key:
            if isinstance(column, str):
                position = names.index(column) if column in names else -1
            else:
                position = integer("key", column, self, least=0)
            if not 0 <= position < domain.d:
                raise DomainMismatch(
                    f"the key column {column!r} does not exist.",
                    stage="Deduplicator",
                    fix="use columns of X at this point.",
                )
            columns.append(position)
        return columns

    def _statistics(self, rows: Rows, way: Way, domain: Domain) -> Statistics:
        return {"columns": self._columns(domain)}

    def _run(self, rows: Rows, statistics: Statistics) -> Rows:
        return replace(rows, weight=kept(rows, statistics["columns"]).astype(np.float64)).settled()

    def fit(self, X: Any, y: Any = None) -> Deduplicator:
        """Check the data; nothing is learned.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : ignored
            Present by convention.
        """
        X = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan")
        self._columns(self._facts(X))
        return self

    def fit_resample(self, X: Any, y: Any = None) -> Any:
        """Return the rows without duplicates, outside any certificate: the number of rows is private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,), optional
            Labels; part of the record.

        Returns
        -------
        X, y
            Shortened, in the original order.
        """
        values = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan")
        codes = None if y is None else np.unique(np.asarray(y), return_inverse=True)[1]
        where = np.flatnonzero(kept(Rows.of(values, codes), self._columns(self._facts(values))))
        return _take(X, where), None if y is None else _take(y, where)

    def _facts(self, X: Array) -> Domain:
        names = tuple(self.feature_names_in_) if hasattr(self, "feature_names_in_") else None
        return Domain(n_rows=X.shape[0], n_features=X.shape[1], feature_names=names)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def kept(rows: Rows, columns: list[int] | None) -> NDArray[np.bool_]:
    """Which rows stay: of each group of present rows with equal key the smallest whole record."""
    record = rows.X if rows.y is None else np.column_stack([rows.X, rows.y])
    record = record + 0.0  # -0 becomes 0
    record[np.isnan(record)] = np.inf  # one gap equals another; no entry of a checked row is infinite
    key = record if columns is None else record[:, columns]
    present = np.flatnonzero(rows.weight > 0)
    by = record if columns is None else np.column_stack([record, key])  # the last sort key counts most
    order = present[np.lexsort(by[present].T)]
    ranked = key[order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = (ranked[1:] != ranked[:-1]).any(axis=1)
    keep = np.zeros(rows.n, dtype=bool)
    keep[order[first]] = True
    return keep


def _take(data: Any, where: NDArray[np.intp]) -> Any:
    """Rows of a frame or an array."""
    if hasattr(data, "iloc"):
        return data.iloc[where]
    return data[where] if hasattr(data, "__dataframe__") else np.asarray(data)[where]
