"""A user's own public map of each row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ppdp.core.checks import length, positive, shown
from ppdp.core.closure_inspection import refuse_captured
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.rows import Array, Rows
from ppdp.data.unit_conversion import Columns
from ppdp.exceptions import InvalidParameter, MissingBound
from ppdp.transformers.base import RowWiseTransformer, Statistics
from ppdp.transformers.columns.maps import FunctionMap, PublicMap
from ppdp.transformers.fit_mode import FitMode
from ppdp.transformers.rowwise.probe import call_surely, check_row_by_row, clipped_to_ball, output_width
from ppdp.transformers.rowwise.ranges import check_reached, resolve_ranges


@dataclass(eq=False, repr=False)
class RowMap(RowWiseTransformer):
    """Apply a public function to every row by itself, then clip its output to public ranges or a public norm.

    Parameters
    ----------
    function : callable, optional
        ``function(X) -> array`` for a float64 array X of shape (n, d) with NaN for gaps. It must treat rows one by one:
        before any data is seen it is run on made-up rows, together and one at a time, and refused if the results
        differ. What made-up rows cannot show remains the user's declaration. A function that holds on to an estimator
        or a table is refused: it may carry private statistics. A public table is an argument,
        ``functools.partial(function, weights=W)``. That nothing it holds on to was read off the rows is in the
        certificate as declared. Default: the identity.
    out_ranges : mapping, pair, or sequence of pairs, optional
        Public (low, high) of every output column, to which it is clipped. Either this or ``out_norm`` is needed.
    lipschitz : float, optional
        Lipschitz constant (L2) of the function; clipping keeps it. Without it, a row that an earlier stage moved
        counts as replaced.
    out_norm : float, optional
        Public norm to which every output row is clipped, instead of ``out_ranges``.

    Attributes
    ----------
    low_, high_ : ndarray of shape (n_columns_out,)
        Public ranges of the columns that come out.

    Notes
    -----
    **Guarantee** (``docs/theory/row-wise.md``): row-wise, moves nothing. A row without gaps never gains one: where the
    function gives NaN or fails, the middle of the range or the centre of the ball stands.

    Examples
    --------
    >>> import numpy as np
    >>> RowMap(np.log10, out_ranges=(-2, 2)).fit_transform(np.array([[10.0], [1e9]]))
    array([[1.],
           [2.]])
    >>> RowMap(lambda X: 2 * X, out_norm=5.0).fit_transform(np.array([[1.0, 2.0], [3.0, 4.0]])).round(6)
    array([[2., 4.],
           [3., 4.]])
    """

    function: Callable[[Array], Any] | None = None
    out_ranges: Any = None
    lipschitz: float | None = None
    out_norm: float | None = None

    bounds_rows = alone_without_bounds = True
    statistic_names = ("low", "high")
    _example: ClassVar = {"function": np.tanh, "out_ranges": (-1, 1), "lipschitz": 1.0}

    def fit_modes(self, domain: Domain, distance: Distance) -> tuple[FitMode, ...]:
        if self.function is not None and not callable(self.function):
            what = f"function must be callable, got {shown(self.function)}."
            raise InvalidParameter(what, stage="RowMap", parameter="function")
        refuse_captured(self.function, "RowMap")
        table = self._table(domain)
        if self.function is None and len(table) == domain.d:
            check_reached(table, domain, "RowMap", "out_ranges")
        check_row_by_row(self._called, domain.d, len(table), "RowMap", gaps=domain.missing_rows > 0)
        largest = np.abs(table).max(axis=1)
        norm = float(np.linalg.norm(largest)) * (1 + 1e-9) or 1.0
        names = list(self.out_ranges) if isinstance(self.out_ranges, Mapping) else domain.feature_names
        names = names if names is not None and len(names) == len(table) else None
        way = FitMode.by(
            "row-wise.row-map",
            domain,
            distance,
            n_features=len(table),
            row_norm=norm if self.out_norm is None else float(self.out_norm),
            entry_bound=float(largest.max()) or 1.0,
            lipschitz=None if self.lipschitz is None else positive("lipschitz", self.lipschitz, self),
            feature_names=list(names) if names else None,
        )
        return (way,)

    def column_maps(self, columns: Sequence[Any]) -> tuple[PublicMap, ...]:
        """The public map that it is for some columns of a table, by public ranges of what comes out."""
        if self.out_ranges is None or self.out_norm is not None or not callable(self.function):
            what = "a function of some of the columns needs out_ranges."
            raise MissingBound(what, stage="RowMap", fix="RowMap(function, out_ranges=(low, high)).")
        return (FunctionMap(self.function, out_ranges=self.out_ranges, step="RowMap"),)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the output columns: the keys of ``out_ranges``, else those of the input."""
        if isinstance(self.out_ranges, Mapping):
            return np.asarray(list(self.out_ranges), dtype=object)
        names = super().get_feature_names_out(input_features)
        if len(self.low_) == len(names):
            return names
        return np.asarray([f"rowmap{i}" for i in range(len(self.low_))], dtype=object)

    def _called(self, X: Array) -> Any:
        return X if self.function is None else self.function(X)

    def _table(self, domain: Domain) -> Array:
        """Public ranges of the output columns; for a ball those of the box around it."""
        width, names = domain.d, domain.feature_names
        if self.out_norm is not None:
            if self.out_ranges is not None:
                what = "out_ranges and out_norm are both given."
                raise InvalidParameter(what, stage="RowMap", fix="give one.", parameter="out_ranges")
            norm = length("out_norm", self.out_norm, self)
            return np.tile([-norm, norm], (output_width(self._called, domain.d, "RowMap"), 1))
        if isinstance(self.out_ranges, Mapping):
            names = tuple(str(name) for name in self.out_ranges)
            width = len(names)
        elif isinstance(self.out_ranges, (list, tuple, np.ndarray)) and any(map(np.iterable, self.out_ranges)):
            width = len(self.out_ranges)
        return resolve_ranges(self.out_ranges, width, names, "RowMap", "out_ranges")

    def declarations(self) -> tuple[str, ...]:
        if self.function is None:
            return ()
        words = ["the function treats rows one by one (tested on made-up rows)"]
        return (*words, *([f"its Lipschitz constant is {shown(self.lipschitz)}"] if self.lipschitz is not None else []))

    def prepare(self, rows: Rows, way: FitMode, domain: Domain) -> Statistics:
        table = self._table(domain)
        return {"low": table[:, 0], "high": table[:, 1]}

    def units(self, columns: Columns) -> Columns | None:
        if self.function is not None:
            return None
        if self.out_norm is not None:
            return columns.noted(f"rows clipped to norm {self.out_norm:.6g}")
        return columns.clipped(self.low_, self.high_)

    def map_rows(self, X: Array, statistics: Statistics) -> Array:
        low, high = statistics["low"], statistics["high"]
        out = call_surely(self._called, X, len(low))
        if self.out_norm is not None:
            return clipped_to_ball(X, out, float(self.out_norm))
        complete = ~np.isnan(X).any(axis=1, keepdims=True)
        out = np.clip(out, low, high)
        return np.where(np.isnan(out) & complete, low / 2 + high / 2, out)
