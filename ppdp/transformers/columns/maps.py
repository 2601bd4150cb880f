"""Public maps of a set of columns, each row by itself, with the bounds of what comes out.

They are what scikit-learn's transformers do once nothing is read off the data: ``docs/theory/row-wise.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from ppdp.core.checks import number
from ppdp.core.closure_inspection import refuse_captured
from ppdp.core.declared import ranges_by_column
from ppdp.data.histograms import LARGEST
from ppdp.data.rows import Array
from ppdp.data.unit_conversion import FILLED, Codes, Columns
from ppdp.exceptions import InvalidParameter, MissingBound
from ppdp.transformers.columns.cell_parsers import CellParser
from ppdp.transformers.rowwise.probe import call_surely, output_width
from ppdp.transformers.rowwise.ranges import RISING, resolve_ranges

MOST_COLUMNS = 100_000  # that may come out of a map: parameters that anybody may have written fill no memory


@dataclass(frozen=True)
class ColumnFacts:
    """What is publicly known of columns at one point."""

    names: tuple[str, ...]
    ranges: Array  # of shape (n_columns, 2): low and high, NaN where there are no bounds yet
    square: float  # largest squared norm of a row of them; NaN if there is none yet
    indicators: bool = False  # whether they stand for categories or words, so that nothing scales them

    @classmethod
    def within(cls, names: Sequence[str], ranges: Array) -> ColumnFacts:
        """In a box."""
        with np.errstate(over="ignore"):  # then the box alone bounds the rows
            return cls(tuple(names), ranges, float((np.abs(ranges).max(axis=1) ** 2).sum()))

    @property
    def middle(self) -> Array:
        """The middle of every range."""
        return np.asarray(self.ranges[:, 0] / 2 + self.ranges[:, 1] / 2)

    def after(self, step: PublicMap) -> ColumnFacts:
        """What is known once a map has run; refuses ranges that run backwards, or that no float holds."""
        made = step.facts(self)
        with np.errstate(all="ignore"):
            widths = made.ranges[:, 1] - made.ranges[:, 0]
        unknown = np.isnan(made.ranges).any(axis=1) & bool(np.isnan(self.ranges).any())
        if not (unknown | (np.isfinite(widths) & (widths >= 0))).all():
            what = "what comes out of it has no range that a float can hold."
            fix = "narrower public ranges, or parameters that are finite."
            raise InvalidParameter(what, stage=step.step or type(step).__name__, fix=fix)
        return made

    def bounded(self, where: str) -> ColumnFacts:
        """These facts, where every column has bounds."""
        bare = [name for name, known in zip(self.names, np.isfinite(self.ranges)) if not known.all()]
        if bare:
            shown = ", ".join(f"{name!r}: (low, high)" for name in bare)
            what = f"no public range of {', '.join(map(repr, bare))} is declared."
            fix = f"ranges={{..., {shown}}} from public knowledge, not from the data; truth values are (0, 1)."
            raise MissingBound(what, stage=where, fix=fix)
        return self


class PublicMap:
    """A map of columns; each row by itself."""

    bounds = False  # whether what comes out is bounded, whatever comes in
    fills = False  # whether no gap is left
    expects = False  # whether gaps are declared to come in
    reads = False  # whether it takes cells that are no numbers, if it comes first
    listed = False  # whether its columns hold public categories, and anything else counts as another
    takes_texts = False  # whether it maps whole texts, which stand for the codes of its columns
    sized = False  # whether what comes out needs no scaling, whatever comes in
    narrows = False  # whether it clips its columns to public ranges of their own
    step = ""  # name of the step that it stands for

    @property
    def reads_cells(self) -> bool:
        """Whether some of its columns then hold no numbers."""
        return False

    def reading(self, position: int) -> CellParser | None:
        """How it reads the cells of one of its columns, if they are no numbers."""
        return None

    @property
    def declares(self) -> str | None:
        """What it takes from the user's word, in public words."""
        return None

    def told(self, names: Sequence[str]) -> Iterable[tuple[str, str]]:
        """What is declared of each of its columns: name and value, in public words."""
        return ()

    def unlisted(self, X: Array) -> Any:
        """Which entries are none of the categories, where they are listed."""
        raise NotImplementedError

    def facts(self, given: ColumnFacts) -> ColumnFacts:
        """What is known of the columns that come out."""
        raise NotImplementedError

    def apply(self, X: Array, given: ColumnFacts) -> Array:
        """Map rows."""
        raise NotImplementedError

    def units(self, columns: Columns, given: ColumnFacts, out: ColumnFacts) -> Columns:
        """Columns behind the map."""
        return Columns.lost(out.names, f"{self.step or type(self).__name__!r} is no scale and shift of each column")


@dataclass(frozen=True)
class FillConstant(PublicMap):
    """Gaps become a constant; None is the middle of the range."""

    value: float | None
    step: str = ""
    fills = True

    @property
    def expects(self) -> bool:  # type: ignore[override]
        """Whether somebody asked for it."""
        return self.value is not None

    def facts(self, given: ColumnFacts) -> ColumnFacts:
        if self.value is None:
            return given.bounded(self.step)
        value = number("the constant for missing values", self.value, self.step)
        ranges = np.column_stack([np.minimum(given.ranges[:, 0], value), np.maximum(given.ranges[:, 1], value)])
        return ColumnFacts.within(given.names, ranges)

    def apply(self, X: Array, given: ColumnFacts) -> Array:
        return np.where(np.isnan(X), given.middle if self.value is None else self.value, X)

    def units(self, columns: Columns, given: ColumnFacts, out: ColumnFacts) -> Columns:
        return columns.noted(FILLED)


@dataclass(frozen=True)
class ClipToRange(PublicMap):
    """Columns are clipped to public ranges of their own."""

    ranges: tuple[tuple[float, float], ...]
    step: str = ""
    bounds = True
    narrows = True

    def told(self, names: Sequence[str]) -> Iterable[tuple[str, str]]:
        return [(words, value) for words, value, _ in ranges_by_column(self.ranges, names)]

    def facts(self, given: ColumnFacts) -> ColumnFacts:
        return ColumnFacts.within(given.names, resolve_ranges(self.ranges, len(given.names), given.names, self.step))

    def apply(self, X: Array, given: ColumnFacts) -> Array:
        return X

    def units(self, columns: Columns, given: ColumnFacts, out: ColumnFacts) -> Columns:
        return columns.clipped(*out.ranges.T)


@dataclass(frozen=True)
class Unclipped(PublicMap):
    """Numbers of which nothing is known: only what no released range can hold is clipped."""

    bounds = True

    def facts(self, given: ColumnFacts) -> ColumnFacts:
        return ColumnFacts.within(given.names, np.tile([-LARGEST, LARGEST], (len(given.names), 1)))

    def apply(self, X: Array, given: ColumnFacts) -> Array:
        return X

    def units(self, columns: Columns, given: ColumnFacts, out: ColumnFacts) -> Columns:
        return columns


@dataclass(frozen=True)
class RangeScale(PublicMap):
    """Ranges are mapped onto an interval; without one, columns are divided by their largest absolute value."""

    target: tuple[float, float] | None = (-1.0, 1.0)
    step: str = ""

    def facts(self, given: ColumnFacts) -> ColumnFacts:
        low, high = given.bounded(self.step).ranges.T
        if self.target is None:
            largest = self._largest(given)
            return ColumnFacts.within(given.names, np.column_stack([low / largest, high / largest]))
        return ColumnFacts.within(given.names, np.tile(np.array(self.target, dtype=np.float64), (len(low), 1)))

    def apply(self, X: Array, given: ColumnFacts) -> Array:
        if self.target is None:
            return X / self._largest(given)
        (start, end), (low, high) = self.target, given.ranges.T
        width = np.where(high > low, high - low, 1.0)
        return start + np.where(high > low, (X - low) / width, np.where(np.isnan(X), np.nan, 0.5)) * (end - start)

    def units(self, columns: Columns, given: ColumnFacts, out: ColumnFacts) -> Columns:
        zero, one = (self.apply(np.full((1, len(columns.names)), end), given)[0] for end in (0.0, 1.0))
        slope = np.where(one > zero, one - zero, np.nan)  # a range without width is one number
        return columns.scaled(1 / slope, -zero / slope)

    @staticmethod
    def _largest(given: ColumnFacts) -> Array:
        largest = np.abs(given.ranges).max(axis=1)
        return np.where(largest > 0, largest, 1.0)


@dataclass(frozen=True)
class FunctionMap(PublicMap):
    """A function of rows, whose ranges are declared, or follow from those of the columns if it is one that rises."""

    function: Callable[..., Any]
    keywords: Mapping[str, Any] = field(default_factory=dict)
    out_ranges: Any = None
    step: str = ""

    @property
    def bounds(self) -> bool:  # type: ignore[override]
        """Whether its ranges are declared."""
        return self.out_ranges is not None

    def facts(self, given: ColumnFacts) -> ColumnFacts:
        refuse_captured(partial(self.function, **self.keywords), self.step)
        if self.out_ranges is None:
            return ColumnFacts.within(given.names, self._ends(given))
        width = output_width(self._called, len(given.names), self.step)
        names = given.names if width == len(given.names) else [f"{self.step}{i}" for i in range(width)]
        return ColumnFacts.within(names, resolve_ranges(self.out_ranges, width, tuple(names), self.step, "out_ranges"))

    @property
    def rises(self) -> bool:
        """Whether ranges of the columns tell what comes out."""
        return any(self.function is known for known in RISING) and not self.keywords

    def _ends(self, given: ColumnFacts) -> Array:
        if self.rises:
            with np.errstate(all="ignore"):
                ends = np.asarray(self.function(given.bounded(self.step).ranges), dtype=np.float64)
            if np.isfinite(ends).all():
                return ends
        what = f"what comes out of {getattr(self.function, '__name__', 'its function')} has no public range."
        fix = f"functions={{{self.step!r}: (low, high)}}: the public range of what it returns, or a pair per column."
        raise MissingBound(what, stage=self.step, fix=fix)

    def _called(self, X: Array) -> Any:
        return self.function(X, **self.keywords)

    def apply(self, X: Array, given: ColumnFacts) -> Array:
        out = self.facts(given)
        # NaN or a failure in a row without gaps is the middle of the range: a row never gains a gap.
        mapped = call_surely(self._called, X, len(out.names))
        complete = ~np.isnan(X).any(axis=1, keepdims=True)
        return np.where(np.isnan(mapped) & complete, out.middle, mapped)


@dataclass(frozen=True)
class Normalised(PublicMap):
    """Rows are divided by their norm."""

    norm: str = "l2"
    step: str = ""
    bounds = True

    def facts(self, given: ColumnFacts) -> ColumnFacts:
        box = ColumnFacts.within(given.names, np.tile([-1.0, 1.0], (len(given.names), 1)))
        return box if self.norm == "max" else replace(box, square=1.0)

    def apply(self, X: Array, given: ColumnFacts) -> Array:
        largest = np.abs(np.nan_to_num(X)).max(axis=1, keepdims=True)
        X = X / np.where(largest > 0, largest, 1.0)  # sums of huge entries would overflow
        if self.norm == "max":
            return X
        length = np.zeros(len(X))
        for column in np.abs(np.nan_to_num(X)).T:  # column after column: a row's sum is the same wherever it stands
            length += column**2 if self.norm == "l2" else column
        length = np.sqrt(length) if self.norm == "l2" else length
        return X / np.maximum(length, 1.0)[:, None]


@dataclass(frozen=True)
class Binarized(PublicMap):
    """1 above a threshold, 0 elsewhere."""

    threshold: float
    step: str = ""
    bounds = True

    def facts(self, given: ColumnFacts) -> ColumnFacts:
        box = ColumnFacts.within(given.names, np.tile([0.0, 1.0], (len(given.names), 1)))
        return replace(box, indicators=True)

    def apply(self, X: Array, given: ColumnFacts) -> Array:
        return np.where(np.isnan(X), np.nan, self.threshold < X)

    def units(self, columns: Columns, given: ColumnFacts, out: ColumnFacts) -> Columns:
        above = Codes.indicator(f"above {self.threshold:.6g}")
        note = f"1 above {self.threshold:.6g} in front of {self.step!r}"
        return Columns.raw(out.names, note, out.ranges, [above] * len(out.names))


@dataclass(frozen=True)
class GapIndicators(PublicMap):
    """1 where a value is missing, 0 elsewhere."""

    step: str = ""
    bounds = True
    sized = True
    fills = True
    expects = True

    def facts(self, given: ColumnFacts) -> ColumnFacts:
        names = [f"missingindicator_{name}" for name in given.names]
        return replace(ColumnFacts.within(names, np.tile([0.0, 1.0], (len(names), 1))), indicators=True)

    def apply(self, X: Array, given: ColumnFacts) -> Array:
        return np.isnan(X).astype(np.float64)

    def units(self, columns: Columns, given: ColumnFacts, out: ColumnFacts) -> Columns:
        kinds = [Codes.indicator("missing", name) for name in given.names]
        return Columns.raw(out.names, "1 where it is missing", out.ranges, kinds)


def few(width: int, step: str) -> None:
    """Refuse a table that is too wide."""
    if not 0 < width <= MOST_COLUMNS:
        raise InvalidParameter(f"between 1 and {MOST_COLUMNS} columns may come out.", stage=step, fix="fewer of them.")


@dataclass(frozen=True)
class Binned(PublicMap):
    """Equal bins of a public range: the number of the bin, or a column for every bin."""

    n_bins: int
    hot: bool
    step: str = ""

    @property
    def fills(self) -> bool:  # type: ignore[override]
        """Whether gaps become zeros."""
        return self.hot

    def facts(self, given: ColumnFacts) -> ColumnFacts:
        width = len(given.bounded(self.step).names)
        few(width * self.n_bins, self.step)
        if not self.hot:
            return ColumnFacts.within(given.names, np.tile([0.0, self.n_bins - 1.0], (width, 1)))
        names = [f"{name}_{i}" for name in given.names for i in range(self.n_bins)]
        return ColumnFacts(tuple(names), np.tile([0.0, 1.0], (len(names), 1)), float(width), indicators=True)

    def units(self, columns: Columns, given: ColumnFacts, out: ColumnFacts) -> Columns:
        ends = np.linspace(given.ranges[:, 0], given.ranges[:, 1], self.n_bins + 1, axis=1)
        bins = [self._words(columns.raw_value(i, own)) for i, own in enumerate(ends)]
        if not self.hot:
            return Columns.raw(out.names, "numbers of bins", out.ranges, [Codes.of(words) for words in bins])
        return Columns.raw(
            out.names,
            "1 in this bin",
            out.ranges,
            [Codes.indicator(word, name) for own, name in zip(bins, given.names) for word in own],
        )

    def _words(self, ends: Array) -> list[str]:
        """Names of the bins between ascending or descending ends."""
        if not np.isfinite(ends).all():
            return [f"bin {i}" for i in range(self.n_bins)]
        return [f"{low:.6g} to {high:.6g}" for low, high in map(sorted, pairwise(ends.tolist()))]

    def apply(self, X: Array, given: ColumnFacts) -> Array:
        low, high = given.ranges.T
        edges = np.linspace(low, high, self.n_bins + 1, axis=1)[:, 1:-1]
        bins = np.column_stack([np.searchsorted(e, column, side="right") for e, column in zip(edges, X.T)])
        if not self.hot:
            return np.where(np.isnan(X), np.nan, bins)
        hot = bins[:, :, None] == np.arange(self.n_bins)
        return np.where(np.isnan(X)[:, :, None], 0.0, hot).reshape(len(X), -1)
