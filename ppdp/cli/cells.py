"""What of a data file goes into a pipeline: cells become numbers, each by itself and by public rules.

A gap is NaN. A cell that is none of the things that its column may hold is infinity: the pipeline then treats it as an
invalid value, after the ledger was charged, so that not even an error comes for free.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from ppdp.cli.column_parsing import (
    are_words,
    codes_of,
    date_type,
    fits,
    ids_of,
    is_boolean,
    is_number,
    is_text,
    is_whole,
    labels_of,
    may_be,
    numbers_of,
    parsed,
    short,
)
from ppdp.cli.documents import place_of
from ppdp.cli.output import refuse, words_of
from ppdp.cli.pipeline_file import COLUMNS, DataRules, PipelineFile
from ppdp.cli.tables import Source
from ppdp.core.names import slips
from ppdp.data.engine.source import Source as Blocks
from ppdp.data.rows import Array


@dataclass(frozen=True, slots=True)
class Layout:
    """What of a data file goes into a pipeline."""

    source: Any  # a Source; None where only cells are converted
    rules: DataRules
    columns: tuple[str, ...]  # those that hold features

    @classmethod
    def of(cls, source: Source, file: PipelineFile) -> Layout:
        """Match a pipeline file and a data file, by the public form of both."""
        rules = file.rules
        if source.n_rows == 0 and not file.hides_number:
            refuse("has no rows.", place=str(source.path), fix="a file with a header and rows.")

        def place(*keys: str | int) -> str:
            return place_of(file.path, ["data", *keys])

        if rules.label is not None:
            source.require(rules.label, place("label"))
        for i, name in enumerate(rules.drop):
            source.require(name, place("drop", i))
        for name in rules.categories:
            source.require(name, place("categories", name))
        if rules.label is not None:
            _check_classes(source, file, rules.label)
        if rules.groups is not None:
            source.require(rules.groups, place("groups"))
            kind = source.types[rules.groups]
            if kind is not None and not is_whole(kind) and not is_text(kind):
                fix = "a column of whole numbers or text."
                refuse(f"the column {rules.groups!r} holds {kind}, no ids.", place=str(source.path), fix=fix)
        if rules.sample_weight is not None:
            source.require(rules.sample_weight, place("sample_weight"))
        columns = tuple(name for name in source.types if name not in (*rules.no_features, *rules.drop))
        if rules.declared is not None:
            return cls(source, rules, _declared(source, file))
        if not columns:
            refuse("no column is left for the features.", place=place("drop"), fix="drop fewer columns.")
        for name in columns:
            kind = source.types[name]
            if kind is None:
                continue
            if name in rules.categories and not is_text(kind):
                refuse(
                    f"the column {name!r} holds {kind}, not text.",
                    place=place("categories", name),
                    fix="leave its categories out.",
                )
            if name not in rules.categories and not is_number(kind):
                fix = f'drop = ["{name}"] in [data]'
                refuse(
                    f"the column {name!r} holds {kind}, which is no number.",
                    place=str(source.path),
                    fix=f"{name} = [...] in [data.categories], or {fix}." if is_text(kind) else f"{fix}.",
                )
        return cls(source, rules, columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        if self.rules.declared is not None:
            return self.columns
        found: list[str] = []
        for name in self.columns:
            hot = name in self.rules.one_hot
            found += [f"{name}={label}" for label in self.rules.categories[name]] if hot else [name]
        return tuple(found)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features; public."""
        return self.source.n_rows, len(self.names)

    @property
    def wanted(self) -> tuple[str, ...]:
        """The columns that are read."""
        return self.columns if self.rules.label is None else (*self.columns, self.rules.label)

    def rows(self, classes: Sequence[Any] | None) -> tuple[Any, Any]:
        """The private rows as a fit takes them: in memory, or where an engine holds them with the name of the label."""
        return self.read(classes) if self.source.blocks is None else (Converted(self, classes), self.rules.label)

    def ids(self) -> Any:
        """Whose each row is: private ids, or where an engine holds the rows the name of their column."""
        name = self.rules.groups
        if name is None or self.source.blocks is not None:
            return name
        return ids_of(self.source.read([name])[name], self.rules.missing)

    def weights(self) -> Any:
        """The weight of each row, if rows have some, or where an engine holds the rows the name of their column."""
        name = self.rules.sample_weight
        if name is None or self.source.blocks is not None:
            return name
        return numbers_of(self.source.read([name])[name], self.rules.missing)

    def row_ids(self) -> list[Any]:
        """The ids of all rows, wherever these are."""
        name, source = self.rules.groups, self.source
        tables = [source.read([name])] if source.blocks is None else source.blocks.tables([name])
        return [one for table in tables for one in ids_of(table[name], self.rules.missing).to_pylist()]

    def read(self, classes: Sequence[Any] | None) -> tuple[Any, Any]:
        """Features as a frame and labels; the private rows. Labels are text if one of the public classes is."""
        return self.converted(self.source.read(self.wanted), classes)

    def converted(self, table: Any, classes: Sequence[Any] | None) -> tuple[Any, Any]:
        """The same of some of the rows."""
        import pandas as pd

        label = self.rules.label
        if self.rules.declared is not None:
            return self._as_declared(table), None if label is None else labels_of(table[label], classes)
        found: list[Array] = []
        for name in self.columns:
            if name not in self.rules.categories:
                found.append(numbers_of(table[name], self.rules.missing))
                continue
            labels = self.rules.categories[name]
            codes = codes_of(table[name], labels, self.rules.missing)
            hot = name in self.rules.one_hot
            found += [np.where(np.isfinite(codes), codes == k, codes) for k in range(len(labels))] if hot else [codes]
        X = pd.DataFrame(dict(zip(self.names, found)))
        return X, None if label is None else labels_of(table[label], classes)

    def _as_declared(self, table: Any) -> Any:
        """The features as the step reads them that is made of their declaration: numbers, text, dates."""
        import pandas as pd

        forms, missing = self.rules.declared.forms, self.rules.missing
        return pd.DataFrame({name: parsed(table[name], forms[name], missing) for name in self.columns})

    def arrow_types(self) -> list[Any]:
        """Types in which blocks of the features are handed on."""
        import pyarrow as pa

        forms = {} if self.rules.declared is None else self.rules.declared.forms
        kinds = {"number": pa.float64(), "text": pa.large_string()}
        return [kinds.get(forms.get(name, "number")) or date_type(self.source.types[name]) for name in self.names]


class Converted(Blocks):
    """Rows that an engine holds, every block of which becomes numbers where it is read."""

    def __init__(self, layout: Layout, classes: Sequence[Any] | None, blocks: Any = None) -> None:
        import pyarrow as pa

        self.layout, self.classes, self.blocks = layout, classes, blocks or layout.source.blocks
        fields = list(zip(layout.names, layout.arrow_types()))
        if layout.rules.label is not None:
            fields.append((layout.rules.label, pa.large_string() if are_words(classes) else pa.float64()))
        self.wanted = layout.wanted
        if (groups := layout.rules.groups) is not None:
            kind = layout.source.types[groups]
            fields.append((groups, pa.large_string() if is_text(kind) else kind))
            self.wanted = (*self.wanted, groups)
        if (weight := layout.rules.sample_weight) is not None:
            fields.append((weight, pa.float64()))
            self.wanted = (*self.wanted, weight)
        self.schema, self.n, self.local = pa.schema(fields), self.blocks.n, self.blocks.local

    def tables(self, names: Sequence[str]) -> Iterator[Any]:
        return map(self._task(_as_it_is), count(), self.blocks.tables(self.wanted))

    def over(self, task: Any, names: Sequence[str], width: int, merge: Any = None) -> Iterator[Any]:
        found: Iterator[Any] = self.blocks.over(self._task(task), self.wanted, width, merge)
        return found

    def held(self, task: Any, names: Sequence[str], width: int) -> Any:
        """As workers hold them."""
        return self.blocks.held(self._task(task), self.wanted, width)

    def pieces(self, size: int) -> Iterator[Blocks]:
        return (Converted(self.layout, self.classes, piece) for piece in self.blocks.pieces(size))

    @property
    def marks(self) -> Any:
        return self.blocks.marks

    def close(self) -> None:
        self.blocks.close()

    def _task(self, task: Any) -> Any:
        """A task for raw blocks, without what opened the files."""
        return partial(_converted, replace(self.layout, source=None), self.classes, self.schema, task)


def _converted(layout: Layout, classes: Sequence[Any] | None, schema: Any, task: Any, first: int, table: Any) -> Any:
    import pyarrow as pa

    X, y = layout.converted(table, classes)
    columns = [*(X[name].array for name in X), *([] if y is None else [y])]
    if layout.rules.groups is not None:
        columns.append(ids_of(table[layout.rules.groups], layout.rules.missing))
    if layout.rules.sample_weight is not None:
        columns.append(numbers_of(table[layout.rules.sample_weight], layout.rules.missing))
    gaps = [not pa.types.is_floating(field.type) for field in schema]  # among text and dates; those of numbers are NaN
    arrays = [pa.array(one, field.type, from_pandas=gap) for one, field, gap in zip(columns, schema, gaps)]
    return task(first, pa.Table.from_arrays(arrays, schema=schema))


def _as_it_is(_: int, table: Any) -> Any:
    return table


def _declared(source: Source, file: PipelineFile) -> tuple[str, ...]:
    """The columns that are read, in the order of the declaration; all columns are declared, and their types fit."""
    rules: DataRules = file.rules
    unknown = [name for name in source.types if name not in (*rules.declared, *rules.drop, *rules.no_features)]
    if unknown:
        absent = [name for name in rules.declared if name not in source.types]
        shown = slips(absent, unknown) or f'add {unknown[0]} = "drop", or what it holds.'
        refuse(f"the columns {words_of(unknown)} are not declared.", place=place_of(file.path, [COLUMNS]), fix=shown)
    private = frozenset(rules.declared.private)
    for name, form in rules.declared.forms.items():
        place = place_of(file.path, [COLUMNS, name])
        source.require(name, place)
        kind = source.types[name]
        if form == "number" and name in private and kind is not None and is_text(kind):
            what = f'the column {name!r} holds text, and "private" is a range of numbers.'
            refuse(what, place=place, fix=f'{name} = {{private = 20}}, or its categories, or "drop".')
        labels = rules.declared[name]
        if kind is None and isinstance(labels, list) and any(isinstance(label, bool) for label in labels):
            what = f"{name!r} is declared as true and false, and the file has no types, only text."
            refuse(what, place=place, fix=f'{name} = ["True", "False"] or [0, 1], as the file has them.')
        if form == "text" and isinstance(labels, list) and kind is not None and not may_be(kind, labels):
            what = f"the column {name!r} holds {short(kind)}, and none of its declared categories is one."
            refuse(what, place=place, fix="the categories as the column has them.")
        if kind is not None and not fits(kind, form):
            what = {"number": "numbers are", "text": "text is", "date": "dates are"}[form]
            fix = f'{name} = ["a", "b"] with its categories, or "drop".' if is_text(kind) else '"drop".'
            held = "text" if is_text(kind) else short(kind)
            refuse(f"the column {name!r} holds {held}, and {what} declared.", place=place, fix=fix)
    return tuple(rules.declared.forms)


def _check_classes(source: Source, file: PipelineFile, label: str) -> None:
    """Refuse labels of a type that can hold none of the declared classes: repaired, all would be of the first."""
    kind = source.types[label]
    if kind is not None and not is_number(kind) and not is_text(kind):
        fix = "a column of numbers or text."
        refuse(f"the column {label!r} holds {kind}, no labels.", place=str(source.path), fix=fix)
    classes, place = file.classes
    if not isinstance(classes, list):
        return
    if (kind is None or is_text(kind)) and any(isinstance(one, bool) for one in classes):
        what = f"the classes are true and false, and the column {label!r} holds text."
        refuse(what, place=place, fix='classes = ["False", "True"] or [0, 1], as the file has them.')
    if kind is not None and not is_text(kind) and are_words(classes) and not may_be(kind, classes):
        what = f"the column {label!r} holds {short(kind)}, and none of the declared classes is one."
        fix = "classes = [0, 1]." if is_boolean(kind) else "the classes as the column has them."
        refuse(what, place=place, fix=fix)
