"""Rows in Parquet and Arrow files, by pyarrow: read again on every pass, with bounded memory.

Messages of pyarrow may quote a cell, so none is passed on.
"""

from __future__ import annotations

import glob
import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.core.names import MOST_NAMES
from ppdp.core.private_files import check_temporary, is_of_a_full_disk, no_room, private_path
from ppdp.data.engine.files import check_fragments, files_at, typed_by_cells, without_values
from ppdp.data.engine.partitions import check_nested, is_empty, roomy, typed
from ppdp.data.engine.source import BlockSource, aligned
from ppdp.data.parallel import PIECE, ROOM, block_rows, workers
from ppdp.exceptions import DomainMismatch, InvalidInput, PpdpError, RowsChanged

FORMATS = {".parquet": "parquet", ".pq": "parquet", ".arrow": "ipc", ".feather": "ipc", ".ipc": "ipc"}
AHEAD = 2  # batches that are read before they are asked for
BUFFER, WRITTEN = 2**18, 2**20  # bytes that are read of a column, and written of several, at a time
WIDE, NARROW = 64, 8  # columns of which a reader holds pages, two megabytes of each: of all at once, else of so many
FILES = 128  # that are open at once, or nearly


def opened(data: Any) -> BlockSource | None:
    """A source for a path or several, a glob, a folder, a ``pyarrow.dataset.Dataset`` or a ``RecordBatchReader``."""
    if isinstance(data, (str, os.PathLike)):
        return _of_paths([os.fspath(data)])
    if isinstance(data, (list, tuple)) and data and all(issubclass(type(path), (str, os.PathLike)) for path in data):
        _check_named([path for path in data if issubclass(type(path), str)])
        return _of_paths([os.fspath(path) for path in data])
    if not type(data).__module__.startswith("pyarrow"):
        return None
    import pyarrow as pa
    import pyarrow.dataset as ds

    if type(data).__module__ in ("pyarrow._csv", "pyarrow._json"):
        raise typed_by_cells()
    if isinstance(data, pa.RecordBatchReader):
        return _Spooled(data)
    if isinstance(data, ds.InMemoryDataset):  # of which some can be read only once
        return _Spooled(data.scanner().to_reader())
    return ArrowSource(data) if isinstance(data, ds.Dataset) else None


def _check_named(paths: list[str]) -> None:
    """Refuse strings of which one names nothing, and quote none: texts of a table may have been passed."""
    for path in paths:
        known = os.path.splitext(path)[1].lower() in FORMATS or os.path.lexists(path) or glob.glob(path)
        if not known:
            what = "a list of strings is one of paths, and at one of them there is no file."
            fix = "paths of files; texts as a column of a table, pandas.DataFrame({'review': texts})."
            raise InvalidInput(what, fix=fix)


def _of_paths(paths: Sequence[str]) -> BlockSource:
    """Every file at some paths: one, those of a glob, or those in a folder, each path's in the order of their names."""
    import pyarrow.dataset as ds

    found = files_at(paths)
    names = ", ".join(map(repr, paths[:3])) + (", ..." if len(paths) > 3 else "")
    kinds = {FORMATS.get(os.path.splitext(file)[1].lower()): file for file in found}
    if len(kinds) > 1 or None in kinds:
        other = kinds.get(None) or list(kinds.values())[-1]
        raise InvalidInput(
            f"the files at {names} are not all of one kind that can be read in blocks, {without_values(other)} for "
            f"example: {', '.join(FORMATS)}.",
            fix="name the files that hold rows, as Parquet, whose columns have types; of CSV pd.read_csv(path).",
        )
    kind: Any = next(iter(kinds))
    if kind == "parquet":  # instants of 96 bits, as Spark writes them, would go round in nanoseconds
        kind = ds.ParquetFileFormat(coerce_int96_timestamp_unit="us")
    with _unquoted():
        dataset = ds.dataset(found, format=kind)
    return ArrowSource(dataset)


@contextmanager
def _unquoted(fragment: Any = None, what: str = "", fix: str = "write it again, whole.") -> Iterator[None]:
    """Errors of pyarrow and of the system about a fragment or any of them, without what they quote."""
    failed = full = False
    try:
        yield
    except PpdpError:
        raise
    except Exception as error:  # a reader's own may be anything
        failed, full = True, is_of_a_full_disk(error)
    if full:
        raise no_room("entrance")
    if failed:
        raise InvalidInput(what or f"{_named(fragment)} cannot be read as what its name says.", fix=fix)


def _named(fragment: Any) -> str:
    """What users call it, unless its path may hold values of its rows."""
    from pyarrow.dataset import get_partition_keys

    path = getattr(fragment, "path", None)
    return (
        "a file or fragment"
        if not path or get_partition_keys(fragment.partition_expression)
        else f"the file {without_values(path)}"
    )


class ArrowSource(BlockSource):
    """Rows of a ``pyarrow.dataset.Dataset``; how many every fragment has is known from the first look at it."""

    def __init__(self, dataset: Any) -> None:
        with _unquoted():
            self.schema = self._stored = _roomy(dataset.schema)
        if len(self.schema.names) > MOST_NAMES:
            raise InvalidInput(f"rows have more than {MOST_NAMES} columns.", fix="files of fewer columns.")
        try:
            self._fragments = list(dataset.get_fragments())
        except (ValueError, NotImplementedError):
            fix = "dataset.to_table(filter=...), if the rule is public, or the dataset without the filter."
            raise InvalidInput("which files a dataset has is not known, as behind a filter.", fix=fix) from None
        with _unquoted():
            self.schema = self._stored = _roomy(typed(self.schema, self._fragments))
            check_nested(self.schema)
            self._marks = [self._mark(fragment) for fragment in self._fragments]
            check_fragments(self._fragments, self.schema)
            keys = getattr(getattr(dataset, "partitioning", None), "schema", None)
        self._counts = []
        for fragment in self._fragments:
            with _unquoted(fragment):
                self._counts.append(_count(fragment))
                self._check(fragment, set(keys.names if keys is not None else ()))
        self.n = sum(self._counts)
        if not self._fragments:
            raise InvalidInput("the dataset has no fragment.", fix="pass one that has rows.")

    def _mark(self, fragment: Any) -> Any:
        """What the file system says of a file: whoever writes to it changes that."""
        path, files = getattr(fragment, "path", None), getattr(fragment, "filesystem", None)  # None of rows in memory
        if not path or files is None:
            return None
        info = files.get_file_info(path)
        return info.type, info.size, info.mtime_ns

    def _check(self, fragment: Any, given: set[str]) -> None:
        """Refuse a fragment with other columns: Arrow would fill them with gaps, or convert them by their values."""
        own = _roomy(fragment.physical_schema)
        wrong = []
        for field in self.schema:
            there = own.field(field.name).type if own.get_field_index(field.name) >= 0 else None
            if field.name not in given and there != field.type and not is_empty(there, field.type):
                wrong.append(f"no {field.name!r}" if there is None else f"{field.name!r} as {there}, not {field.type}")
        if wrong:
            what = f"{_named(fragment)} has other columns than the first one: {', '.join(wrong)}."
            raise DomainMismatch(what, fix="write all files with one schema.")

    @property
    def marks(self) -> Any:
        """Path, kind, size, time and number of rows of every file."""
        paths = [getattr(fragment, "path", None) for fragment in self._fragments]
        return [[path, *map(str, mark or ()), count] for path, mark, count in zip(paths, self._marks, self._counts)]

    def pieces(self, size: int) -> Iterator[BlockSource]:
        groups = list(self.groups())
        starts = np.cumsum([0, *(group.n for group in groups)])
        for first in range(0, self.n, size):
            yield rows_between(groups, starts, first, min(self.n, first + size))

    def groups(self) -> Iterator[ArrowSource]:
        """The rows of every row group, or of a fragment that has none, to be read elsewhere."""
        for fragment, mark, count in zip(self._fragments, self._marks, self._counts):
            with _unquoted():
                parts = [(fragment, count)]
                if hasattr(fragment, "row_groups"):
                    parts = [(fragment.subset(row_group_ids=[one.id]), one.num_rows) for one in fragment.row_groups]
            for part, rows in parts:
                group = copy(self)
                group._fragments, group._marks, group._counts, group.n = [part], [mark], [rows], rows
                yield group

    def check(self) -> None:
        """Refuse files that somebody has written to."""
        for fragment, mark in zip(self._fragments, self._marks):
            if self._mark(fragment) != mark:
                raise _changed(fragment)

    def tables(self, names: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa

        given = pa.schema([self.schema.field(name) for name in names])
        for fragment, mark, count in zip(self._fragments, self._marks, self._counts):
            seen = 0
            if self._mark(fragment) == mark:
                with _unquoted(fragment):
                    for batch in _batches(fragment, self._stored, list(names)):
                        seen += batch.num_rows
                        if seen <= count and batch.num_rows:
                            table = pa.Table.from_batches([batch])
                            yield table if self._stored is self.schema else table.cast(given)
            if seen != count or self._mark(fragment) != mark:
                raise _changed(fragment)
        pa.default_memory_pool().release_unused()  # not before: what one row group leaves, the next one finds


def _roomy(schema: Any) -> Any:
    """The same columns, of categories in any order and number: so Parquet hands them out."""
    import pyarrow as pa

    return pa.schema([field.with_type(roomy(field.type, ordered=False)) for field in schema])


def coded(schema: Any) -> list[str]:
    """Columns of categories, of which files in Parquet may have more than the type of their codes has room for."""
    import pyarrow as pa

    return [field.name for field in schema if pa.types.is_dictionary(field.type)]


def _count(fragment: Any) -> int:
    """Rows of a fragment; pyarrow's own count of some row groups is that of the whole file."""
    groups = getattr(fragment, "row_groups", None)
    return int(fragment.count_rows()) if groups is None else sum(group.num_rows for group in groups)


def _changed(fragment: Any) -> RowsChanged:
    return RowsChanged(
        f"the rows of {_named(fragment)} changed between two passes.", fix="fit a copy that no process writes to."
    )


class Between(BlockSource):
    """Some of the rows of row groups that follow each other: so many, behind others."""

    def __init__(self, parts: Sequence[ArrowSource], skip: int, n: int) -> None:
        self.parts, self.skip, self.n, self.schema = parts, skip, n, parts[0].schema

    def tables(self, names: Sequence[str]) -> Iterator[Any]:
        seen = -self.skip
        for table in (table for part in self.parts for table in part.tables(names)):
            first, seen = seen, seen + table.num_rows
            if seen > 0:
                yield table.slice(max(0, -first), min(self.n, seen) - max(0, first))
            if seen >= self.n:
                break
        self.parts[-1].check()


def rows_between(groups: Sequence[ArrowSource], starts: NDArray[np.intp], first: int, last: int) -> Between:
    """The rows from one number to another, of row groups of which each begins at such a number."""
    a, b = int(np.searchsorted(starts, first, "right")) - 1, int(np.searchsorted(starts, last))
    return Between(groups[a:b], first - int(starts[a]), last - first)


def _batches(fragment: Any, schema: Any, names: list[str]) -> Iterator[Any]:
    """Rows of a fragment. Of Parquet a few pages at once: a scan of a dataset would hold a whole row group.

    Nor does a scan know more categories than the codes of a file have room for.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = block_rows(len(names))
    if getattr(getattr(fragment, "format", None), "default_extname", "") == "parquet":
        form = {"buffer_size": BUFFER, "pre_buffer": False, "read_dictionary": coded(fragment.physical_schema)}
        form["coerce_int96_timestamp_unit"] = fragment.format.read_options.coerce_int96_timestamp_unit
        with fragment.open() as file, pq.ParquetFile(file, **form) as own:
            held = {field.name: field.type for field in own.schema_arrow}
            stored = [name for name in names if held.get(name, pa.null()) != pa.null()]
            if stored and all(held[name] == schema.field(name).type for name in stored):
                groups = [group.id for group in fragment.row_groups]
                several = workers() > 2  # else the other one is at work on what was read
                read = partial(own.iter_batches, batch_size=rows, use_threads=several)
                keys = fragment.scanner(schema=schema, columns=[name for name in names if name not in held]).head(1)
                beside = partial(_beside, keys, pa.schema([schema.field(name) for name in names]))
                if len(stored) <= WIDE:
                    yield from map(beside, read(row_groups=groups, columns=stored))
                else:
                    for group in fragment.row_groups:
                        few = _decoded_bytes(schema, stored, group.num_rows) <= ROOM
                        one = partial(read, row_groups=[group.id])
                        yield from map(beside, _side_by_side(one, stored, rows, few))
                return
    yield from fragment.to_batches(
        schema=schema, columns=names, batch_size=rows, batch_readahead=AHEAD, fragment_readahead=1
    )


def _beside(keys: Any, wanted: Any, batch: Any) -> Any:
    """Rows of a file, with the keys of its folder, which its first row has, and columns of which it has no value."""
    import pyarrow as pa

    first = pa.array(np.zeros(batch.num_rows, np.int64))
    found = {name: key.combine_chunks().take(first) for name, key in zip(keys.column_names, keys.columns)}
    found |= dict(zip(batch.schema.names, batch.columns))
    columns = [found[one.name] if one.name in found else pa.nulls(batch.num_rows, one.type) for one in wanted]
    return pa.RecordBatch.from_arrays(columns, schema=wanted)


def _decoded_bytes(schema: Any, names: list[str], rows: int) -> float:
    """What so many rows take, by their types; as much as can be, of types whose values differ in length."""
    try:
        return rows * sum(schema.field(name).type.bit_width for name in names) / 8
    except ValueError:
        return math.inf


def _side_by_side(read: Callable[..., Iterable[Any]], names: list[str], rows: int, few: bool) -> Iterator[Any]:
    """Rows of one row group, of which some columns are read at a time: into memory, or into private files."""
    import pyarrow as pa

    with ExitStack() as stack:
        parts: list[Iterator[Any]] = []
        at_once = max(NARROW, len(names) // FILES)
        for start in range(0, len(names), at_once):
            some = names[start : start + at_once]
            batches = (batch.select(some) for batch in read(columns=some, batch_size=rows if few else PIECE))
            parts.append(_emptied(deque(batches)) if few else _written(batches, rows, stack))
        for beside in zip(*parts):
            yield pa.RecordBatch.from_arrays([column for batch in beside for column in batch.columns], names)


def _emptied(batches: deque[Any]) -> Iterator[Any]:
    """Each of some batches, which nobody holds any more."""
    while batches:
        yield batches.popleft()


def _written(batches: Iterable[Any], rows: int, stack: ExitStack) -> Iterator[Any]:
    """Batches of so many rows, from a private file."""
    import pyarrow as pa

    path, writer = stack.enter_context(private_path()), None
    with open(path, "wb", WRITTEN) as file, ExitStack() as written:
        for table in aligned((pa.Table.from_batches([batch]) for batch in batches), rows):
            writer = writer or written.enter_context(pa.ipc.new_file(file, table.schema))
            writer.write_batch(*table.combine_chunks().to_batches())
    if writer is None:  # of a row group without rows
        return iter(())
    reader = pa.ipc.open_file(stack.enter_context(pa.OSFile(path, "rb")))
    return map(reader.get_batch, range(reader.num_record_batches))


def _stored_as(kind: Any) -> Any:
    """Whole numbers for dates and times in units that Parquet has not: it would refuse to convert the farthest."""
    import pyarrow as pa

    if kind in (pa.date64(), pa.timestamp("s", getattr(kind, "tz", None))):
        return pa.int64()
    return pa.int32() if kind == pa.time32("s") else kind


_VIEWS = {"string_view": "large_string", "binary_view": "large_binary"}  # as polars' categories are


def _kept(kind: Any) -> Any:
    """The type itself; of categories for which Parquet has no dictionary that of their values, or of whole texts."""
    import pyarrow as pa
    import pyarrow.types as of

    if not of.is_dictionary(kind):
        return kind
    own = kind.value_type
    if str(own) in _VIEWS:
        return pa.dictionary(kind.index_type, pa.type_for_alias(_VIEWS[str(own)]), kind.ordered)
    texts = of.is_string(own) or of.is_large_string(own) or of.is_binary(own) or of.is_large_binary(own)
    return kind if texts else own


def _as_kept(cells: Any, kind: Any) -> Any:
    """The same cells, without a missing value among the values of their dictionary: Parquet has none there."""
    if hasattr(cells, "dictionary"):
        if str(cells.dictionary.type) in _VIEWS:
            cells = cells.cast(kind)
        if cells.type != kind or cells.dictionary.null_count:
            plain = cells.dictionary_decode()
            return plain if cells.type != kind else plain.dictionary_encode()
    return cells


def storable(column: Any) -> Any:
    """A column as Parquet takes it, whatever dictionary it has."""
    import pyarrow as pa

    kind = _kept(column.type)
    return pa.chunked_array([_as_kept(chunk, kind).cast(kind) for chunk in column.chunks], kind)


class _Spooled(ArrowSource):
    """Rows that can be read only once, in a private file, until they are closed."""

    def __init__(self, reader: Any) -> None:
        import pyarrow as pa
        import pyarrow.dataset as ds
        import pyarrow.parquet as pq

        check_temporary()
        kept = pa.schema([pa.field(field.name, _kept(field.type)) for field in reader.schema])
        check_nested(kept, written=True)
        stored = pa.schema([pa.field(field.name, _stored_as(field.type)) for field in kept])
        self._place = ExitStack()
        try:
            file = self._place.enter_context(private_path())
            what = "rows of a reader cannot be written down: it fails, or some column has a type that Parquet lacks."
            fix = "columns of numbers, text, categories or dates; or a file in Parquet."
            with _unquoted(None, what, fix), pq.ParquetWriter(file, stored, compression="lz4") as writer:
                for batch in reader:
                    columns = list(map(_as_kept, batch.columns, kept.types))
                    writer.write_table(pa.table(columns, kept.names).cast(stored))
            super().__init__(ds.dataset(file, format="parquet"))
            self.schema = _roomy(kept)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._place.close()
