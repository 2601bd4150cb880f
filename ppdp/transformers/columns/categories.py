"""Public maps of columns that hold one of a few categories, which are declared or released."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.data.categories import MISSING as MISSING_CODE
from ppdp.data.rows import Array
from ppdp.data.unit_conversion import Codes, Columns
from ppdp.exceptions import InvalidParameter
from ppdp.transformers.columns.cell_parsers import CellParser, HashParser, LabelParser, TextParser
from ppdp.transformers.columns.maps import ColumnFacts, PublicMap

FOUND = "found in the rows, with noise"
_ANOTHER = -2.0  # code of a cell that is no label, which the name of others may be as well

MISSING = "missing"  # name of the category of gaps


def labels_only(categories: Sequence[Any]) -> tuple[Any, ...]:
    """Categories without the one that stands for a gap."""
    return tuple(c for c in categories if not is_gap(c))


def is_gap(category: Any) -> bool:
    """Whether a category stands for a gap."""
    return category is None or (isinstance(category, float) and math.isnan(category))


def targets_of(categories: Sequence[Any]) -> list[float]:
    """The number by which each category is known: itself, or its position among labels that are no numbers."""
    labels = labels_only(categories)
    numeric = all(isinstance(c, (bool, int, float, np.number)) for c in labels)
    known = {c: float(c) if numeric else float(i) for i, c in enumerate(labels)}
    return [math.nan if is_gap(c) else known[c] for c in categories]


@dataclass(frozen=True)
class Categorical(PublicMap):
    """Public categories, a tuple for every column; gaps count as ``gap`` if that is one of them."""

    categories: tuple[tuple[Any, ...], ...]
    gap: Any = None
    expects: bool = False
    step: str = ""
    bounds = True
    reads = True
    listed = True

    @property
    def reads_cells(self) -> bool:
        return any(map(_is_text, self.categories))

    def reading(self, position: int) -> CellParser | None:
        labels = labels_only(self.categories[position]) if position < len(self.categories) else ()
        return LabelParser(labels) if _is_text(labels) else None

    @property
    def declares(self) -> str | None:
        shown = "; ".join(", ".join(map(str, labels)) for labels in self.categories)
        return f"the categories of {self.step!r} are public: {shown}" if self.step else None

    def unlisted(self, X: Array) -> NDArray[np.bool_]:
        same = [self._same(column, known).any(axis=1) for column, known in zip(X.T, self.categories)]
        return ~np.column_stack(same) & ~np.isnan(X)

    def _of(self, given: ColumnFacts) -> tuple[tuple[Any, ...], ...]:
        if len(self.categories) != len(given.names):
            what = f"categories of {len(self.categories)} columns are declared for {len(given.names)} columns."
            fix = "categories={column: [...]}, or one list for all columns."
            raise InvalidParameter(what, stage=self.step, fix=fix, parameter="categories")
        for categories in self.categories:
            self._check_distinct(categories)
        return self.categories

    def _check_distinct(self, categories: Sequence[Any]) -> None:
        """Refuse categories that repeat or are the same float: an entry is one of them at most."""
        try:
            known = [target for target in targets_of(categories) if not math.isnan(target)]
            distinct = len(set(known)) == len(known)
        except (TypeError, OverflowError):  # what is no plain label, or larger than any float
            distinct = False
        if not distinct or sum(self._is_fallback(c) for c in categories) > 1:
            raise InvalidParameter(
                "categories must be distinct, whole numbers also as floats, and at most one stands for missing values.",
                stage=self.step,
                fix="name every category once, larger numbers than 2**53 as text.",
                parameter="categories",
            )

    def _is_fallback(self, category: Any) -> bool:
        """Whether gaps count as it."""
        return is_gap(category) or (self.gap is not None and bool(category == self.gap))

    def _same(self, column: Array, categories: Sequence[Any]) -> NDArray[np.bool_]:
        """Which category every entry is, as an array of shape (n, n_categories)."""
        targets = np.array(targets_of(categories))
        where = column[:, None] == targets
        fallback = [self._is_fallback(c) for c in categories]
        return np.where(np.isnan(column)[:, None], fallback, where)


@dataclass(frozen=True)
class OneHot(Categorical):
    """A column for every category but the dropped ones; anything else is a row of zeros."""

    dropped: tuple[Any, ...] = ()
    fills = True

    def _kept(self, position: int) -> list[int]:
        categories = self.categories[position]
        gone = self.dropped[position] if self.dropped else None
        return [i for i in range(len(categories)) if i != gone]

    def facts(self, given: ColumnFacts) -> ColumnFacts:
        self._of(given)
        names = [f"{name}_{self.categories[j][i]}" for j, name in enumerate(given.names) for i in self._kept(j)]
        return ColumnFacts(tuple(names), np.tile([0.0, 1.0], (len(names), 1)), float(len(given.names)), indicators=True)

    def units(self, columns: Columns, given: ColumnFacts, out: ColumnFacts) -> Columns:
        labels = [(_word(self.categories[j][i]), name) for j, name in enumerate(given.names) for i in self._kept(j)]
        kinds = [Codes.indicator(*label) for label in labels]
        return Columns.raw(out.names, "1 for this category", out.ranges, kinds)

    def apply(self, X: Array, given: ColumnFacts) -> Array:
        parts = [self._same(column, c)[:, self._kept(j)] for j, (column, c) in enumerate(zip(X.T, self._of(given)))]
        return np.concatenate(parts, axis=1).astype(np.float64)


@dataclass(frozen=True)
class Encoded(Categorical):
    """The position of the category; ``unknown`` for anything else, and ``missing`` for gaps if it is no NaN."""

    unknown: float = 0.0
    missing: float = math.nan

    @property
    def fills(self) -> bool:  # type: ignore[override]
        """Whether gaps become something."""
        named = all(any(map(is_gap, categories)) for categories in self.categories)
        return named or self.gap is not None or not math.isnan(self.missing)

    def facts(self, given: ColumnFacts) -> ColumnFacts:
        extra = [self.unknown, *([] if math.isnan(self.missing) else [self.missing])]
        ends = [(min(0.0, *extra), max(len(c) - 1.0, *extra)) for c in self._of(given)]
        return ColumnFacts.within(given.names, np.array(ends))

    def units(self, columns: Columns, given: ColumnFacts, out: ColumnFacts) -> Columns:
        others = {"unknown": self.unknown, **({} if math.isnan(self.missing) else {MISSING: self.missing})}
        kinds = [Codes.of([_word(one) for one in categories], **others) for categories in self._of(given)]
        return Columns.raw(out.names, "codes of categories", out.ranges, kinds)

    def apply(self, X: Array, given: ColumnFacts) -> Array:
        out = []
        for column, categories in zip(X.T, self._of(given)):
            same = self._same(column, categories)
            code = np.where(same.any(axis=1), same.argmax(axis=1), self.unknown)
            out.append(np.where(np.isnan(column) & ~same.any(axis=1), self.missing, code))
        return np.column_stack(out)


@dataclass(frozen=True)
class OrdinalCodes(PublicMap):
    """The position of every label; anything else is one further category or -1, and so are gaps.

    Labels of a column are text, of which it gets codes, or numbers.
    """

    labels: tuple[tuple[Any, ...], ...]
    other: str | None = None  # name of the category that anything else is
    missing: str | None = None  # name of the category that gaps are
    filled: bool = False  # whether what stands in front of it fills them
    bounds = True
    fills = True
    reads = True
    listed = True

    @property
    def expects(self) -> bool:  # type: ignore[override]
        """Whether gaps among numbers are declared to come in; those of text are codes like any other."""
        return self.missing is not None and not all(map(_is_text, self.labels))

    @property
    def categories(self) -> tuple[tuple[str, ...], ...]:
        """What the positions stand for, by column."""
        further = [name for name in (self.other, self.missing) if name is not None]
        return tuple(tuple(dict.fromkeys((*map(str, labels), *further))) for labels in self.labels)

    @property
    def reads_cells(self) -> bool:
        return any(map(_is_text, self.labels))

    def _position(self, name: str | None, categories: tuple[str, ...]) -> float:
        return -1.0 if name is None else float(categories.index(name))

    def reading(self, position: int) -> CellParser | None:
        if position >= len(self.labels) or not _is_text(self.labels[position]):
            return None
        made = self.categories[position]
        gap = self._position(self.missing, made)
        return LabelParser(self.labels[position], None if self.filled else gap, _ANOTHER, typed=True)

    def unlisted(self, X: Array) -> NDArray[np.bool_]:
        out = []
        for column, labels in zip(X.T, self.labels):
            if _is_text(labels):
                out.append(column == _ANOTHER)
            else:
                out.append(~np.isin(column, np.array(labels, dtype=np.float64)) & ~np.isnan(column))
        return np.column_stack(out)

    def told(self, names: Sequence[str]) -> Iterable[tuple[str, str]]:
        return [(f"categories of {name}", ", ".join(map(str, labels))) for name, labels in zip(names, self.labels)]

    def facts(self, given: ColumnFacts) -> ColumnFacts:
        if len(self.labels) != len(given.names):
            what = f"categories of {len(self.labels)} columns are declared for {len(given.names)} columns."
            fix = "a list of categories for every column, or by name."
            raise InvalidParameter(what, stage="CategoryEncoder", fix=fix, parameter="categories")
        return ColumnFacts.within(given.names, np.array([(-1.0, max(1.0, len(c) - 1.0)) for c in self.categories]))

    def units(self, columns: Columns, given: ColumnFacts, out: ColumnFacts) -> Columns:
        kinds = [Codes.of(made, **beside(self.other, self.missing)) for made in self.categories]
        return Columns.raw(out.names, "codes of categories", out.ranges, kinds)

    def apply(self, X: Array, given: ColumnFacts) -> Array:
        out = []
        for column, labels, made in zip(X.T, self.labels, self.categories):
            other, gap = self._position(self.other, made), self._position(self.missing, made)
            if _is_text(labels):
                code = np.where(column == _ANOTHER, other, column)
            else:
                code = _found(column, np.array(labels, dtype=np.float64), other)
            out.append(np.where(np.isnan(column), gap, code))
        return np.column_stack(out)


@dataclass(frozen=True)
class ReleasedCategories(PublicMap):
    """A column of 0 and 1 for each of up to ``most`` categories, or their positions; anything else is a further one.

    Until categories are released they are called by numbers, and columns that no category needs are 0.
    """

    most: int
    hot: bool = True
    other: str | None = None  # name of the category that anything else is
    missing: str | None = None  # name of the category of missing values
    found: tuple[tuple[str, ...], ...] | None = None  # the categories of every column
    bounds = True
    fills = True
    reads = True
    reads_cells = True

    def reading(self, position: int) -> TextParser:
        return TextParser(self.most, self.other, self.missing, () if self.found is None else self.found[position])

    @property
    def _further(self) -> list[str]:
        return [name for name in (self.other, self.missing) if name is not None]

    def told(self, names: Sequence[str]) -> Iterable[tuple[str, str]]:
        return [(f"most categories of {name}", str(self.most)) for name in names]

    def _labels(self, position: int) -> Iterator[str]:
        """Names of the categories of one column, and of places that none has."""
        if self.found is None:
            own = [f"{i}" for i in range(1, self.most + 1)]
        else:
            own = [*self.found[position], *(f"unused_{i}" for i in range(len(self.found[position]) + 1, self.most + 1))]
        used: set[str] = set()
        for label in [*own, *self._further]:
            while label in used or (label in self._further and len(used) < self.most):
                label += "_"
            used.add(label)
            yield label

    def facts(self, given: ColumnFacts) -> ColumnFacts:
        if not self.hot:
            most = self.most + len(self._further) - 1.0
            return ColumnFacts.within(given.names, np.array([(-1.0, max(1.0, most))] * len(given.names)))
        names = [f"{name}_{label}" for i, name in enumerate(given.names) for label in self._labels(i)]
        return ColumnFacts(tuple(names), np.tile([0.0, 1.0], (len(names), 1)), float(len(given.names)), indicators=True)

    def units(self, columns: Columns, given: ColumnFacts, out: ColumnFacts) -> Columns:
        labels = [list(self._labels(i)) for i in range(len(given.names))]
        if self.hot:
            kinds = [Codes.indicator(label, name) for own, name in zip(labels, given.names) for label in own]
            return Columns.raw(out.names, "1 for this category", out.ranges, kinds)
        used = [self.most if self.found is None else len(found) for found in self.found or [()] * len(labels)]
        kinds = [Codes.of(own, **beside(self.other, self.missing)) for own in labels]
        kinds = [kind.without(range(count, self.most)) for kind, count in zip(kinds, used)]
        return Columns.raw(out.names, "codes of categories", out.ranges, kinds)

    def apply(self, X: Array, given: ColumnFacts) -> Array:
        other = -1.0 if self.other is None else float(self.most)
        gap = -1.0 if self.missing is None else float(self.most + (self.other is not None))
        codes = np.where(np.isnan(X) | (MISSING_CODE == X), gap, np.where((X < 0) | (self.most <= X), other, X))
        if not self.hot:
            return codes
        hot = codes[:, :, None] == np.arange(self.most + len(self._further))
        return hot.reshape(len(X), -1).astype(np.float64)


@dataclass(frozen=True)
class HashedCategories(PublicMap):
    """A column of 0 and 1 for each bucket of a public hash, and one for missing values if these have a name."""

    buckets: int
    missing: str | None = None
    hot = True
    bounds = True
    sized = True
    fills = True
    reads = True
    reads_cells = True

    def reading(self, position: int) -> HashParser:
        return HashParser(self.buckets)

    def told(self, names: Sequence[str]) -> Iterable[tuple[str, str]]:
        return [(f"categories of {name}", f"{self.buckets} buckets of a public hash") for name in names]

    def _made(self, names: Sequence[str]) -> tuple[str, ...]:
        further = [] if self.missing is None else [self.missing]
        return tuple(f"{name}_{label}" for name in names for label in (*range(self.buckets), *further))

    def facts(self, given: ColumnFacts) -> ColumnFacts:
        names = self._made(given.names)
        return ColumnFacts(names, np.tile([0.0, 1.0], (len(names), 1)), float(len(given.names)), indicators=True)

    def units(self, columns: Columns, given: ColumnFacts, out: ColumnFacts) -> Columns:
        kinds = [Codes.indicator(label) for label in out.names]
        return Columns.raw(out.names, "1 for this bucket", out.ranges, kinds)

    def apply(self, X: Array, given: ColumnFacts) -> Array:
        codes = np.where(np.isnan(X) | (MISSING_CODE == X), self.buckets, X)
        hot = codes[:, :, None] == np.arange(self.buckets + (self.missing is not None))
        return hot.reshape(len(X), -1).astype(np.float64)


def beside(other: str | None, missing: str | None) -> dict[str, float]:
    """The code -1 by what then has it: what has no category of its own; () if everything has."""
    words = ("missing" if other is not None else "another") if (other is None) != (missing is None) else "none of these"
    return {} if other is not None and missing is not None else {words: -1.0}


def _word(category: Any) -> str:
    return MISSING if is_gap(category) else str(category)


def _is_text(labels: Sequence[Any]) -> bool:
    """Whether labels are read as codes: numbers are known by themselves."""
    return any(isinstance(label, str) for label in labels)


def _found(column: Array, values: Array, other: float) -> Array:
    """The position of every entry among distinct values; ``other`` for any other entry."""
    order = np.argsort(values)
    at = np.minimum(np.searchsorted(values[order], column), len(values) - 1)
    return np.where(values[order][at] == column, order[at], other)


@dataclass(frozen=True)
class FillMode(PublicMap):
    """A gap becomes the category that most rows of its column hold; an encoder of the categories stands behind it."""

    values: tuple[tuple[float, ...], ...]  # the categories of every column as the numbers that its cells become
    modes: tuple[float, ...] | None = None  # those that were released; the first category until then
    fills = True
    expects = True

    @classmethod
    def before(cls, encoder: Categorical | OrdinalCodes) -> FillMode:
        """What stands in front of an encoder of public categories."""
        lists = encoder.categories if isinstance(encoder, Categorical) else encoder.labels
        found = ([value for value in targets_of(categories) if not math.isnan(value)] for categories in lists)
        return cls(tuple(tuple(sorted(values)) for values in found))

    def knowing(self, modes: Sequence[float | None]) -> FillMode:
        """The same with the modes of its columns; None where none was released."""
        found = (own[0] if mode is None else mode for own, mode in zip(self.values, modes))
        return FillMode(self.values, tuple(found))

    def facts(self, given: ColumnFacts) -> ColumnFacts:
        return given

    def units(self, columns: Columns, given: ColumnFacts, out: ColumnFacts) -> Columns:
        return columns

    def apply(self, X: Array, given: ColumnFacts) -> Array:
        modes = [own[0] for own in self.values] if self.modes is None else self.modes
        return np.where(np.isnan(X), modes, X)
