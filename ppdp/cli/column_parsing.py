"""Columns of a data file as a pipeline takes them: numbers, text or dates, each cell by itself and by public rules.

A missing cell is null or NaN. A cell that is no number where numbers are declared is infinity: the pipeline then treats
it as an invalid value, after the ledger was charged, so that not even an error comes for free.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from ppdp.cli.data_files import Source
from ppdp.cli.documents import place_of
from ppdp.cli.output import placed, refuse, words_of
from ppdp.cli.pipeline_file import COLUMNS, DataRules, PipelineFile
from ppdp.core.names import slips
from ppdp.data.cells import numbers
from ppdp.data.column_types import described, kind_of, type_of_values
from ppdp.data.engine.source import BlockSource
from ppdp.data.rows import Array
from ppdp.exceptions import NonNumericData

_ACCEPTED = {"number": ("number", "boolean"), "text": ("text", "number", "boolean"), "date": ("text", "date")}
"""Kinds of columns that may hold what is declared."""
_DECLARED = {"number": "numbers are", "text": "categories are", "date": "dates are"}
_MEANT = {
    "number": "[low, high] or ",
    "text": '["a", "b"] with its categories, {private = 20}, for numbers pandas.to_numeric(column) in the file, or ',
    "date": '["1990-01-01", "2030-12-31"] or ',
}
"""What may be declared of a column of this kind, in front of that it is dropped."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What of a data file goes into a pipeline."""

    source: Any  # a Source; None where only cells are converted
    rules: DataRules
    forms: Mapping[str, str]  # every feature, and as what it is read: "number", "text" or "date"

    @classmethod
    def of(cls, source: Source, file: PipelineFile) -> Layout:
        """Match a pipeline file and a data file, by the public form of both."""
        rules = file.rules
        if source.n_rows == 0 and not file.unbounded:
            refuse("has no rows.", place=str(source.path), fix="a file with a header and rows.")
        for key, name in rules.beside.items():
            source.require(name, place_of(file.path, ["data", key]))
        if rules.label is not None:
            _check_labels(source, file, rules.label)
        forms = dict.fromkeys((name for name in source.types if name not in rules.beside.values()), "number")
        if rules.declared is not None:
            unknown = [name for name in forms if name not in rules.declared]
            if unknown:
                absent = [name for name in rules.declared if name not in source.types]
                shown = slips(absent, unknown) or f'add {unknown[0]} = "drop", or what it holds.'
                what = f"the columns {words_of(unknown)} are not declared."
                refuse(what, place=place_of(file.path, [COLUMNS]), fix=shown)
            forms = rules.declared.forms
        if not forms:
            refuse("no column is left for the features.", place=str(source.path), fix="a file with further columns.")
        return cls(source, rules, forms)._checked(file)

    @classmethod
    def for_model(cls, source: Source, file: PipelineFile, names: Sequence[str], row_id: str | None) -> Layout:
        """The features of a model that was fitted, and ids of rows: no other column need be there."""
        declared = {} if file.rules.declared is None else file.rules.declared.forms
        absent = [name for name in names if name not in source.types]
        if absent:
            fix = f"data like those of the fit: {source.path.name} has {words_of(source.types)}."
            refuse(f"lacks the columns {words_of(absent)}.", place=str(source.path), fix=fix)
        if declared and (undeclared := [name for name in names if name not in declared]):
            fix = "the pipeline file of the fit."
            refuse(f"the columns {words_of(undeclared)} of the model are not declared.", place=str(file.path), fix=fix)
        rules = replace(file.rules, label=None, groups=row_id, sample_weight=None)
        return cls(source, rules, {name: declared.get(name, "number") for name in names})._checked(file)

    def _checked(self, file: PipelineFile) -> Layout:
        """The same, once the types of the columns can hold what is declared."""
        import pandas as pd

        declared = self.rules.declared
        for name, form in self.forms.items():
            place = place_of(file.path, [COLUMNS, name]) if declared is not None else str(self.source.path)
            self.source.require(name, place)
            if (stored := self.source.types[name]) is None:  # text, of which each cell is read as declared
                values = [] if declared is None else declared[name]
                if isinstance(values, list) and any(isinstance(value, bool) for value in values):
                    what = f"{name!r} is declared as true and false, and the file has no types, only text."
                    refuse(what, place=place, fix=f'{name} = ["True", "False"] or [0, 1], as the file has them.')
                continue
            kind = type_of_values(pd.ArrowDtype(stored))
            if kind_of(kind) not in _ACCEPTED[form]:
                held = "text" if kind_of(kind) == "text" else described(kind)
                refuse(
                    f"the column {name!r} holds {held}, and {_DECLARED[form]} declared.",
                    place=place,
                    fix=f'{name} = {_MEANT.get(kind_of(kind), "")}"drop".'
                    if declared is not None
                    else f'[{COLUMNS}] with a line for every column: {name} = ["a", "b"], or {name} = "drop".',
                )
        if declared is not None:
            with placed(place_of(file.path, [COLUMNS]), NonNumericData, fix="other categories."):
                declared.column_map().coded(self.parse(self._without_rows(), None).select(list(self.forms)))
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(self.forms)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features; public."""
        return self.source.n_rows, len(self.forms)

    @property
    def wanted(self) -> tuple[str, ...]:
        """The columns that are read."""
        return (*self.forms, *self.rules.beside.values())

    def rows(self, classes: Sequence[Any] | None) -> Any:
        """The private rows: an Arrow table or, where an engine holds them, a source of such tables."""
        if self.source.blocks is not None:
            return ParsedBlocks(self, classes)
        return self.parse(self.source.read(self.wanted), classes)

    def row_ids(self) -> list[Any]:
        """The ids of all rows, wherever these are; of a date or time that Python does not have the number of units."""
        name, source = self.rules.groups, self.source
        tables = [source.read([name])] if source.blocks is None else source.blocks.tables([name])
        return [_in_python(cell) for table in tables for cell in without_markers(table[name], self.rules.missing)]

    def parse(self, table: Any, classes: Sequence[Any] | None) -> Any:
        """Features, labels, ids and weights of some rows. Labels are text if one of the public classes is."""
        import pyarrow as pa

        rules = self.rules
        columns = {name: parsed(table[name], form, rules.missing) for name, form in self.forms.items()}
        if rules.label is not None:
            columns[rules.label] = labels_of(table[rules.label], classes)
        if rules.groups is not None:
            columns[rules.groups] = without_markers(table[rules.groups], rules.missing)
        if rules.sample_weight is not None:
            columns[rules.sample_weight] = pa.array(numbers_of(table[rules.sample_weight], rules.missing))
        return pa.table(columns)

    def parsed_schema(self, classes: Sequence[Any] | None) -> Any:
        """Names and types of what :meth:`parse` returns."""
        return self.parse(self._without_rows(), classes).schema

    def _without_rows(self) -> Any:
        import pyarrow as pa

        return pa.schema([(name, self.source.types[name] or pa.string()) for name in self.wanted]).empty_table()


class ParsedBlocks(BlockSource):
    """Rows that an engine holds, every block of which is parsed where it is read."""

    def __init__(self, layout: Layout, classes: Sequence[Any] | None, blocks: Any = None) -> None:
        self.layout, self.classes, self.blocks = layout, classes, blocks or layout.source.blocks
        self.schema, self.n, self.local = layout.parsed_schema(classes), self.blocks.n, self.blocks.local

    def tables(self, names: Sequence[str]) -> Iterator[Any]:
        return map(self._task(_unchanged), count(), self.blocks.tables(self.layout.wanted))

    def over(self, task: Any, names: Sequence[str], width: int, merge: Any = None) -> Iterator[Any]:
        results: Iterator[Any] = self.blocks.over(self._task(task), self.layout.wanted, width, merge)
        return results

    def held(self, task: Any, names: Sequence[str], width: int) -> Any:
        """As workers hold them."""
        return self.blocks.held(self._task(task), self.layout.wanted, width)

    def pieces(self, size: int) -> Iterator[BlockSource]:
        return (ParsedBlocks(self.layout, self.classes, piece) for piece in self.blocks.pieces(size))

    @property
    def marks(self) -> Any:
        return self.blocks.marks

    def close(self) -> None:
        self.blocks.close()

    def _task(self, task: Any) -> Any:
        """A task for raw blocks, without what opened the files."""
        return partial(_parse_and_run, replace(self.layout, source=None), self.classes, task)


def _in_python(cell: Any) -> Any:
    try:
        return cell.as_py()
    except (OverflowError, ValueError):
        return getattr(cell, "value", None)


def _parse_and_run(layout: Layout, classes: Sequence[Any] | None, task: Any, first: int, table: Any) -> Any:
    return task(first, layout.parse(table, classes))


def _unchanged(_: int, table: Any) -> Any:
    return table


def _check_labels(source: Source, file: PipelineFile, label: str) -> None:
    """Refuse labels of a type that can hold none of the declared classes: repaired, all would be of the first."""
    import pandas as pd

    if source.types[label] is None:
        return
    stored = type_of_values(pd.ArrowDtype(source.types[label]))
    kind, (classes, place) = kind_of(stored), file.classes
    if kind not in _ACCEPTED["text"]:
        fix = "a column of numbers or text; of dates, (column - pandas.Timestamp('2020-01-01')).dt.days."
        refuse(f"the column {label!r} holds {described(stored)}, no labels.", place=str(source.path), fix=fix)
    if kind == "text" and classes is None:
        fix = 'a classifier, as use = "LogisticRegression"; for numbers as text pandas.to_numeric(column) in the file.'
        refuse(f"the column {label!r} holds text, and the last step is a regressor.", place=str(source.path), fix=fix)
    if kind != "text" and are_words(classes):
        what = f"the column {label!r} holds {described(stored)}, and the declared classes are text."
        refuse(what, place=place, fix="classes = [0, 1], or as the column has them.")


def is_text(kind: Any) -> bool:
    """Whether a type is one of text, or of categories that are."""
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def parsed(column: Any, form: str, missing: Sequence[Any]) -> Any:
    """A column as it is declared."""
    import pyarrow as pa

    return pa.array(numbers_of(column, missing)) if form == "number" else without_markers(column, missing)


def without_markers(column: Any, missing: Sequence[Any]) -> Any:
    """A column in which a cell that says that it is missing is null; text without blanks around it."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import types

    column = _in_one_piece(column)
    if is_text(column.type):
        column = text_of(column)
        words = ["", *(marker.strip() if isinstance(marker, str) else f"{marker:g}" for marker in missing)]
        hits = pc.is_in(column, value_set=pa.array(words, pa.large_string()))
        return pc.if_else(hits, None, column)
    if not any(check(column.type) for check in (types.is_integer, types.is_floating, types.is_decimal)):
        return column
    markers = pa.array([float(marker) for marker in missing if not isinstance(marker, str)], pa.float64())
    return pc.if_else(pc.is_in(column.cast(pa.float64(), safe=False), value_set=markers), None, column)


def _in_one_piece(column: Any) -> Any:
    """An array of a column, also of one of categories."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def text_of(column: Any) -> Any:
    """Cells without spaces around them, as one array of strings; what is not UTF-8 becomes U+FFFD, cell by cell."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = _in_one_piece(column).cast(pa.large_string())
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        cells = text.cast(pa.large_binary()).to_pylist()
        text = pa.array([cell and cell.decode(errors="replace") for cell in cells], pa.large_string())
    return pc.utf8_trim_whitespace(text)


def numbers_of(column: Any, missing: Sequence[Any]) -> Array:
    """Numbers, NaN for missing ones; the words true and false are 1 and 0, as in a column of truth values."""
    import pandas as pd
    import pyarrow.compute as pc

    column = without_markers(column, missing)
    if is_text(column.type):
        for word, digit in (("true", "1"), ("false", "0")):
            column = pc.if_else(pc.equal(pc.utf8_lower(column), word), digit, column)
    values = np.array(numbers(pd.arrays.ArrowExtensionArray(column)).values, dtype=np.float64)
    values[np.isin(values, [float(marker) for marker in missing if not isinstance(marker, str)])] = np.nan
    return values


def are_words(classes: Sequence[Any] | None) -> bool:
    """Whether some of the classes are text."""
    return any(isinstance(label, str) for label in classes or ())


def labels_of(column: Any, classes: Sequence[Any] | None) -> Any:
    """Labels as numbers, or as text if one of the public classes is."""
    import pyarrow as pa

    if is_text(column.type):
        column = _as_classes(text_of(column), classes or ())
    return _in_one_piece(column) if are_words(classes) else pa.array(numbers_of(column, ()))


_TRUTH = {"0": ("false", "no", "n", "f", "0", "0.0"), "1": ("true", "yes", "y", "t", "1", "1.0")}


def _as_classes(text: Any, classes: Sequence[Any]) -> Any:
    """Labels as the classes are written, where both are words for true and false, in whatever form."""
    import pyarrow as pa
    import pyarrow.compute as pc

    truth = {word: digit for digit, words in _TRUTH.items() for word in words}
    forms = {truth.get(str(label).strip().lower()): str(label) for label in classes}
    if forms.keys() != {"0", "1"} or len(classes) != 2:
        return text
    words = pa.array([*truth], pa.large_string())
    written = pa.array([forms[digit] for digit in truth.values()], pa.large_string())
    read = pc.take(written, pc.index_in(pc.utf8_lower(text), value_set=words))
    return pc.coalesce(read, text)
