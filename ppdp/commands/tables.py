"""Data files by pyarrow: first their public form, then the columns that are asked for.

Messages of pyarrow may quote a cell, so none is passed on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ppdp.commands.errors import refuse, suggestion, words_of

__all__ = ["Source", "open_source"]

CSV, PARQUET, ARROW = (".csv", ".csv.gz", ".tsv"), (".parquet", ".pq"), (".arrow", ".feather", ".ipc")


@dataclass(frozen=True, slots=True)
class Source:
    """A data file, of which the public form is known.

    Attributes
    ----------
    path : Path
        Where it is.
    n_rows : int
        Number of rows.
    types : mapping of str to pyarrow.DataType
        Columns in their order; cells of a CSV file are strings.
    batches : callable
        Gives the rows, in pieces, for names of columns.
    """

    path: Path
    n_rows: int
    types: dict[str, Any]
    batches: Callable[[Sequence[str]], Iterator[Any]]

    def read(self, columns: Sequence[str]) -> Any:
        """A pyarrow table of these columns, with a progress bar if it takes long.

        Raises
        ------
        Misuse
            If the file cannot be read to its end.
        """
        import pyarrow as pa

        with _unquoted(self.path):
            table = pa.Table.from_batches(_shown(self.batches(columns), self.n_rows), schema=None)
            return table.select(list(columns))

    def require(self, name: str, place: str) -> None:
        """Refuse the name of a column that is not there."""
        if name not in self.types:
            fix = suggestion(name, self.types)
            refuse(f"{str(self.path)!r} has no column {name!r}.", place=place, fix=fix)


def open_source(path: Path) -> Source:
    """Names and types of columns and the number of rows; no value is kept.

    Raises
    ------
    Misuse
        If it is no CSV, Parquet or Arrow file, or has no rows or no proper header.
    """
    name = path.name.lower()
    opened = next((open_ for ends, open_ in _FORMS if name.endswith(ends)), None)
    if opened is None:
        shown = ", ".join((*CSV, *PARQUET, *ARROW))
        refuse("is of an unknown kind.", place=str(path), fix=f"a file that ends in one of {shown}.")
    if not path.is_file():
        refuse("is not there, or is no file.", place=str(path), fix="the path of a data file.")
    with _unquoted(path):
        source: Source = opened(path)
    names = list(source.types)
    if "" in names:
        refuse("a column has no name.", place=str(path), fix="name every column in the header.")
    if source.n_rows == 0:
        refuse("has no rows.", place=str(path), fix="a file with a header and rows.")
    return source


class _unquoted:
    """Errors of pyarrow and of the system, without what they quote."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        import pyarrow as pa

        if isinstance(error, (pa.ArrowException, UnicodeDecodeError, EOFError, KeyError)):
            fix = "rows as long as the header, UTF-8, quotes closed." if _is_csv(self.path) else "write the file again."
            refuse("cannot be read as what its name says.", place=str(self.path), fix=fix)


def _is_csv(path: Path) -> bool:
    return path.name.lower().endswith(CSV)


def _shown(batches: Iterator[Any], n_rows: int) -> Iterator[Any]:
    """The pieces, with a bar after two seconds."""
    from ppdp.progress import progress

    taken, pieces = 0, iter(batches)
    first = next(pieces)
    taken = max(1, first.num_rows)
    yield first
    for _ in progress(range(-(-n_rows // taken)), "reading"):
        for piece in pieces:
            yield piece
            break
    yield from pieces


def _unique(names: Sequence[str], path: Path) -> list[str]:
    again = sorted({name for name in names if list(names).count(name) > 1})
    if again:
        refuse(f"has several columns of the name {words_of(again)}.", place=str(path), fix="rename them.")
    return list(names)


def _open_csv(path: Path) -> Source:
    import pyarrow as pa
    from pyarrow import csv

    parse = csv.ParseOptions(delimiter="\t" if path.name.lower().endswith(".tsv") else ",", newlines_in_values=True)

    def stream(columns: Sequence[str] | None) -> Any:
        """Cells as text: what they are is decided by public rules, not by what stands in other rows."""
        convert = csv.ConvertOptions(
            include_columns=columns, column_types=dict.fromkeys(columns or (), pa.string()), strings_can_be_null=False
        )
        read = csv.ReadOptions(block_size=1 << 24)
        return csv.open_csv(path, read_options=read, parse_options=parse, convert_options=convert)

    names = _unique(_header(path, parse.delimiter), path)
    n_rows = sum(batch.num_rows for batch in stream(names))
    return Source(path, n_rows, dict.fromkeys(names, pa.string()), lambda columns: iter(stream(list(columns))))


def _header(path: Path, delimiter: str) -> list[str]:
    """The first line of a CSV file."""
    import csv
    import gzip
    import io

    opened: Any = gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb")
    try:
        with io.TextIOWrapper(opened, encoding="utf-8-sig", newline="") as text:
            first = next(csv.reader(text, delimiter=delimiter, strict=True), [])
    except (csv.Error, OSError):
        first = []
    if not first:
        refuse("has no header.", place=str(path), fix="the names of the columns in the first line.")
    return first


def _open_parquet(path: Path) -> Source:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    schema = file.schema_arrow
    _unique(schema.names, path)
    types = dict(zip(schema.names, schema.types))
    return Source(path, file.metadata.num_rows, types, lambda columns: file.iter_batches(columns=list(columns)))


def _open_arrow(path: Path) -> Source:
    import pyarrow as pa

    with path.open("rb") as file:
        magic = file.read(6)
    if magic == b"ARROW1":
        file_reader = pa.ipc.open_file(path)
        pieces = [file_reader.get_batch(i) for i in range(file_reader.num_record_batches)]
        schema = file_reader.schema
    else:
        with pa.ipc.open_stream(path) as stream_reader:
            schema, pieces = stream_reader.schema, list(stream_reader)
    _unique(schema.names, path)
    types = dict(zip(schema.names, schema.types))
    return Source(path, sum(piece.num_rows for piece in pieces), types, lambda columns: _selected(pieces, columns))


def _selected(pieces: Sequence[Any], columns: Sequence[str]) -> Iterator[Any]:
    for piece in pieces:
        yield piece.select(list(columns))


_FORMS: tuple[tuple[tuple[str, ...], Callable[[Path], Source]], ...] = (
    (CSV, _open_csv),
    (PARQUET, _open_parquet),
    (ARROW, _open_arrow),
)
