"""A user's own public map of each row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.checks import positive
from ppdp.distance import Distance
from ppdp.domain import Domain
from ppdp.exceptions import InvalidParameter
from ppdp.planning.ways import Way
from ppdp.rows import Rows
from ppdp.transformers.base import RowWiseTransformer, Statistics
from ppdp.transformers.ranges import resolve_ranges

__all__ = ["RowMap"]

Array = NDArray[np.float64]


class RowMap(RowWiseTransformer):
    """Apply a public function to every row by itself, then clip its output to public ranges.

    Parameters
    ----------
    function : callable, optional
        ``function(X) -> array`` for a float64 array X of shape (n, d) with NaN for gaps. It must treat rows one by one:
        before any data is seen it is run on made-up rows, together and one at a time, and refused if the results
        differ. What made-up rows cannot show remains the user's declaration. Default: the identity.
    out_ranges : mapping, pair, or sequence of pairs
        Public (low, high) of every output column.
    lipschitz : float, optional
        Lipschitz constant (L2) of the function. Without it, a row that an earlier stage moved counts
        as replaced.

    Notes
    -----
    **Guarantee** (``docs/theory/row-wise.md``): row-wise, moves nothing. A row without gaps never gains one: where the
    function gives NaN or fails, the middle of the range stands.

    Examples
    --------
    >>> import numpy as np
    >>> RowMap(np.log10, out_ranges=(-2, 2)).fit_transform(np.array([[10.0], [1e9]]))
    array([[1.],
           [2.]])
    """

    bounds_rows = True
    _statistic_names = ("low", "high")

    def __init__(
        self,
        function: Callable[[Array], Any] | None = None,
        out_ranges: Any = None,
        lipschitz: float | None = None,
    ) -> None:
        self.function = function
        self.out_ranges = out_ranges
        self.lipschitz = lipschitz

    @classmethod
    def example(cls) -> Any:
        """An instance that works on any numeric data, for contract tests."""
        return cls(np.tanh, out_ranges=(-1, 1), lipschitz=1.0)

    def ways(self, domain: Domain, distance: Distance) -> tuple[Way, ...]:
        """One public way."""
        if self.function is not None and not callable(self.function):
            raise InvalidParameter(f"function must be callable, got {self.function!r}.", stage="RowMap")
        table = self._table(domain)
        self._probe(domain.d, table.shape[0], gaps=domain.missing_rows > 0)
        lipschitz = None if self.lipschitz is None else positive("lipschitz", self.lipschitz, self)
        largest = np.abs(table).max(axis=1)
        names = list(self.out_ranges) if isinstance(self.out_ranges, Mapping) else domain.feature_names
        names = names if names is not None and len(names) == len(table) else None
        way = Way.by(
            "public",
            "row-wise.row-map",
            domain,
            distance,
            n_features=int(table.shape[0]),
            row_norm=float(np.linalg.norm(largest)) * (1 + 1e-9) or 1.0,
            entry_bound=float(largest.max()) or 1.0,
            lipschitz=lipschitz,
            feature_names=list(names) if names else None,
        )
        return (way,)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the output columns: the keys of ``out_ranges``, else those of the input."""
        if isinstance(self.out_ranges, Mapping):
            return np.asarray(list(self.out_ranges), dtype=object)
        names = super().get_feature_names_out(input_features)
        if len(self.low_) == len(names):
            return names
        return np.asarray([f"rowmap{i}" for i in range(len(self.low_))], dtype=object)

    def _table(self, domain: Domain) -> Array:
        width, names = domain.d, domain.feature_names
        if isinstance(self.out_ranges, Mapping):
            names = tuple(str(name) for name in self.out_ranges)
            width = len(names)
        elif isinstance(self.out_ranges, (list, tuple, np.ndarray)) and np.ndim(self.out_ranges) == 2:
            width = len(self.out_ranges)
        return resolve_ranges(self.out_ranges, width, names, "RowMap", "out_ranges")

    def _call(self, X: Array, width: int) -> Array:
        if self.function is None:
            return X
        with np.errstate(all="ignore"):
            out = np.asarray(self.function(X.copy()), dtype=np.float64)
        if out.shape != (X.shape[0], width):
            raise InvalidParameter(
                f"the function of RowMap gave shape {('n', *out.shape[1:])}, out_ranges has {width} columns.",
                stage="RowMap",
            )
        return out

    def _call_surely(self, X: Array, width: int) -> Array:
        """Each row's result, NaN for a row on which the function fails: that it fails is nobody's business."""
        try:
            return self._call(X, width)
        except Exception:
            if len(X) <= 1:
                return np.full((len(X), width), np.nan)
        half = len(X) // 2
        return np.concatenate([self._call_surely(X[:half], width), self._call_surely(X[half:], width)])

    def _probe(self, d: int, width: int, *, gaps: bool) -> None:
        """Refuse a function that mixes rows, on made-up rows."""
        made_up = _made_up_rows(d, gaps)
        failure = None
        try:
            self._call(made_up[:1], width)
        except InvalidParameter:
            raise
        except Exception as error:
            failure = f"{type(error).__name__}: {error}"
        together = self._call_surely(made_up, width)
        if failure is not None and np.isnan(together).all():
            raise InvalidParameter(
                f"the function of RowMap fails on every made-up row: {failure}.",
                stage="RowMap",
                fix="it must take a float64 array of shape (n, d), NaN for gaps.",
            )
        backwards = self._call_surely(np.ascontiguousarray(made_up[::-1]), width)[::-1]
        alone = np.concatenate([self._call_surely(made_up[i : i + 1], width) for i in range(len(made_up))])
        if not all(np.array_equal(together, other, equal_nan=True) for other in (alone, backwards)):
            raise InvalidParameter(
                "the function of RowMap gives a row another result among other rows.",
                stage="RowMap",
                fix="use a function of one row at a time, made of elementwise operations, or a fitted ppdp stage.",
            )

    def declarations(self) -> tuple[str, ...]:
        """What the certificate takes from the user's word."""
        if self.function is None:
            return ()
        words = ["the function treats rows one by one (tested on made-up rows)"]
        return (*words, *([f"its Lipschitz constant is {self.lipschitz}"] if self.lipschitz is not None else []))

    def _statistics(self, rows: Rows, way: Way, domain: Domain) -> Statistics:
        table = self._table(domain)
        return {"low": table[:, 0], "high": table[:, 1]}

    def _apply(self, X: Array, statistics: Statistics) -> Array:
        low, high = statistics["low"], statistics["high"]
        out = np.clip(self._call_surely(X, len(low)), low, high)
        complete = ~np.isnan(X).any(axis=1, keepdims=True)
        return np.where(np.isnan(out) & complete, (low + high) / 2, out)


def _made_up_rows(d: int, gaps: bool) -> Array:
    """Rows on which functions that mix rows betray themselves: repeated, huge, tiny, zero, negative, with gaps."""
    draws = np.random.Generator(np.random.PCG64(0))
    rows = draws.lognormal(sigma=2.0, size=(12, d)) * draws.choice([-1.0, 1.0], size=(12, d))
    rows[:4] = np.abs(rows[:4])
    rows[4] *= 1e9
    rows[5] *= 1e-9
    rows[6] = 0.0
    rows[7] = rows[0]
    if gaps:
        rows[8:11][draws.random((3, d)) < 0.5] = np.nan
        rows[11] = np.nan
    return np.concatenate([rows, rows[[0, 3, 9, 11]]])
