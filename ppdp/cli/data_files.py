"""Data files by pyarrow: first their public form, then the columns that are asked for.

Messages of pyarrow may quote a cell, so none is passed on.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ppdp.cli.output import did_you_mean, refuse
from ppdp.core.names import LONGEST_NAME, MOST_NAMES, read_as_cells, repeated

BLOCK = 1 << 24  # bytes that are parsed at once; a row is within one
_OTHER_DELIMITERS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}
_UTF8 = 'pandas.read_csv(path, encoding="latin-1").to_csv(path, index=False), with the encoding that it has.'


def header(path: Path, delimiter: str) -> list[str]:
    """The names of the columns, in the first line; :class:`Misuse` says which form the file has, if it has none."""
    with readable(path), _opened(path, "rt", encoding="utf-8-sig", newline="") as text:
        names = next(csv.reader(text, delimiter=delimiter, strict=True), [])
    if not names:
        refuse("has no header.", place=str(path), fix="the names of the columns in the first line.")
    if max(map(len, names)) > LONGEST_NAME:
        _refuse_long(path)
    written = "".join(names)
    if any(character < " " and character != "\t" for character in written):
        lines = "a name of a column goes over lines.", "names of columns in one line, without control characters."
        reason, fix = _what(path, _UTF16 if "\0" in written else lines)  # UTF-16 without its mark
        refuse(reason, place=str(path), fix=fix)
    other = max(_OTHER_DELIMITERS, key=lambda character: written.count(character))
    if written.count(other) >= len(names):
        word = _OTHER_DELIMITERS[other]
        if other == delimiter:
            refuse("whole lines stand in quotes.", place=str(path), fix="no quotes around a line, but around cells.")
        fix = f"pandas.read_csv(path, sep={other!r}).to_csv(path, index=False); and numbers with a decimal point."
        refuse(f"cells are parted by {word} ({other!r}), not by {delimiter!r}.", place=str(path), fix=fix)
    if not names[0] and all(names[1:]):
        what = "the first column has no name, as the index has none that pandas writes."
        refuse(what, place=str(path), fix="to_csv(path, index=False), or a name for that column.")
    if not all(names):
        refuse("a column has no name.", place=str(path), fix="name every column in the header.")
    return names


def check_quotes(path: Path) -> None:
    """Refuse a file with a quote that is not closed: all rows behind it would be read as a part of one cell."""
    quotes = 0
    with readable(path), _opened(path, "rb") as file:
        while block := file.read(BLOCK):
            quotes += block.count(b'"')
    if quotes % 2:
        fix = "close every quote, and double those within a cell, as to_csv does."
        refuse("a quote is not closed.", place=str(path), fix=fix)


@contextlib.contextmanager
def readable(path: Path) -> Iterator[None]:
    """Errors of readers, as the form that a file lacks; their own words may quote a cell."""
    import pyarrow as pa

    try:
        yield
        return
    except UnicodeDecodeError:
        reason = _what(path)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        reason = _COMPRESSED
    except csv.Error as error:
        if "field limit" in str(error):
            _refuse_long(path)
        reason = _REASONS["quote"]
    except pa.ArrowException as error:
        reason = next((reason for word, reason in _REASONS.items() if word in str(error)), _OTHER)
        reason = _what(path) if "UTF8" in str(error) else reason
    except OSError as error:
        if error.errno is not None:  # the system's, about the path
            raise
        reason = _COMPRESSED
    refuse(reason[0], place=str(path), fix=reason[1])


_COMPRESSED = ("is no whole gzip file.", "compress it again; a file that is not compressed ends in .csv.")
_OTHER = ("cannot be read as what its name says.", "rows as long as the header, UTF-8, quotes closed.")
_REASONS = {
    "Expected": (
        "a row has another number of cells than the header.",
        "names of columns in the first line, rows as long as they are, quotes closed.",
    ),
    "straddl": (f"a row has more than {BLOCK >> 20} MiB.", "close every quote; drop columns of such cells."),
    "quote": ("a quote in the header is not closed.", "close every quote, and double those within a name."),
}
"""What is wrong, and what to do, by a word of a reader's message."""

_SPREADSHEET = (
    "is an archive or a spreadsheet, not in UTF-8.",
    "unpack it, or pandas.read_excel(path).to_csv(..., index=False).",
)
_PACKED = ("is compressed, not in UTF-8.", "unpack it; or compress it by gzip, with a name that ends in .csv.gz.")
_UTF16 = ("is in UTF-16, not in UTF-8.", 'pandas.read_csv(path, encoding="utf-16").to_csv(path, index=False).')
_STARTS = {
    b"\x1f\x8b": ("is compressed by gzip, not in UTF-8.", "a name that ends in .csv.gz."),
    b"PA": ("is a Parquet file, not in UTF-8.", "a name that ends in .parquet."),
    b"BZ": _PACKED,
    b"\xfd7": _PACKED,
    b"\x28\xb5": _PACKED,
    b"PK": _SPREADSHEET,
    b"\xd0\xcf": _SPREADSHEET,
    b"\xff\xfe": _UTF16,
    b"\xfe\xff": _UTF16,
}
"""What a file is that is not in UTF-8, and what to do, by its first two bytes."""


def _what(path: Path, other: tuple[str, str] = ("is not in UTF-8.", _UTF8)) -> tuple[str, str]:
    with path.open("rb") as file:
        return _STARTS.get(file.read(2), other)


def _refuse_long(path: Path) -> None:
    fix = "the names of the columns in the first line."
    refuse(f"a name of a column has more than {LONGEST_NAME} characters.", place=str(path), fix=fix)


def _opened(path: Path, mode: str, **form: Any) -> Any:
    compressed = path.name.lower().endswith(".gz")
    return gzip.open(path, mode, **form) if compressed else path.open(mode, **form)


CSV, PARQUET, ARROW = (".csv", ".csv.gz", ".tsv"), (".parquet", ".pq"), (".arrow", ".feather", ".ipc")
LARGE = 2**28  # bytes of a file that a fit reads in blocks if nothing else is asked for


@dataclass(frozen=True, slots=True)
class Source:
    """A data file, of which the public form is known."""

    path: Path
    n_rows: int
    types: dict[str, Any]  # columns in their order, with the type of Arrow; None in a CSV file, which has no types
    n_pieces: int  # in how many it is read
    pieces: Callable[[Sequence[str]], Iterator[Any]]  # the rows of some columns, as tables one after the other
    blocks: Any = None  # the source of an engine, if rows are read in blocks and never all at once

    def read(self, columns: Sequence[str]) -> Any:
        """A pyarrow table of these columns, with a progress bar if it takes long."""
        import pyarrow as pa

        from ppdp.core.progress import progress

        with _unquoted(self.path):
            numbered = zip(progress(range(self.n_pieces), "reading"), self.pieces(columns))
            none = pa.schema([(name, self.types[name] or pa.string()) for name in columns]).empty_table()
            return pa.concat_tables([piece for _, piece in numbered] or [none])

    def require(self, name: str, place: str, *, features: Sequence[str] = ()) -> None:
        """Refuse the name of a column that is not there; none of these features is what was meant."""
        if name not in self.types:
            meant = [column for column in self.types if column not in features]
            fix = did_you_mean(name, meant) or "a name in the header of the file."
            refuse(f"{str(self.path)!r} has no column {name!r}.", place=place, fix=fix)


def open_rows(paths: Sequence[Path], engine: str | None = None, *, header_is_names: bool = False) -> Source:
    """One file, of which all rows are read; or in blocks several, a folder, a glob, or where an engine is named.

    Names of columns that read as the cells of a row are refused, unless somebody says that they are names.
    """
    one = len(paths) == 1 and not (paths[0].is_dir() or "*" in str(paths[0]))
    if engine == "memory" and not one:
        refuse("only one file is read into memory.", place="--engine", fix="leave it out.")
    if engine == "memory" or (engine is None and one):
        return open_source(paths[0], header_is_names=header_is_names)
    from ppdp.data.engine.registry import opened_source

    blocks: Any = opened_source(list(paths))
    names = _checked(blocks.schema.names, paths[0], header_is_names=header_is_names)
    return Source(paths[0], blocks.n, dict(zip(names, blocks.schema.types)), 0, blocks.tables, blocks)


def is_large(paths: Sequence[Path]) -> bool:
    """Whether this is one file whose rows are better read in blocks."""
    if len(paths) > 1 or not paths[0].name.lower().endswith((*PARQUET, *ARROW)):
        return False
    return paths[0].is_file() and paths[0].stat().st_size >= LARGE


def open_source(path: Path, *, header_is_names: bool = False) -> Source:
    """Names and types of columns and the number of rows; no value is kept."""
    name = path.name.lower()
    opened = next((open_ for ends, open_ in _FORMS if name.endswith(ends)), None)
    if opened is None:
        shown = ", ".join((*CSV, *PARQUET, *ARROW))
        fix = f"a file that ends in one of {shown}; of another kind, pandas.read_excel(path).to_csv(name, index=False)."
        refuse("is of an unknown kind.", place=str(path), fix=fix)
    if not path.is_file():
        refuse("is not there, or is no file.", place=str(path), fix="the path of a data file.")
    with _unquoted(path):
        return opened(path, header_is_names)


@contextlib.contextmanager
def _unquoted(path: Path) -> Iterator[None]:
    """Errors of readers and of the system, without what they quote."""
    import pyarrow as pa

    if path.name.lower().endswith(CSV):
        with readable(path):
            yield
        return
    try:
        yield
    except (pa.ArrowException, UnicodeDecodeError, EOFError, KeyError):
        what = "cannot be read as what its name says."
        refuse(what, place=str(path), fix="write it again; of CSV a name that ends in .csv.")


def _checked(names: Sequence[str], path: Path, *, header_is_names: bool) -> list[str]:
    """Names of columns that are names, each once; no message holds any, for they may be the values of a row."""
    if len(names) > MOST_NAMES:
        refuse(f"has more than {MOST_NAMES} columns.", place=str(path), fix="fewer columns.")
    if not header_is_names and read_as_cells(names, positions=not path.name.lower().endswith(CSV)):
        what = "names of columns read as the cells of a row: is there no header?"
        refuse(what, place=str(path), fix="names of columns in the first line; --header-is-names if these are names.")
    if several := repeated(names):
        first, second = [place + 1 for place, name in enumerate(names) if name == several[0]][:2]
        refuse(f"the columns {first} and {second} have the same name.", place=str(path), fix="rename one of them.")
    if "" in names:
        refuse("a column has no name.", place=str(path), fix="name every column.")
    if max(map(len, names), default=0) > LONGEST_NAME:
        refuse(f"a name of a column has more than {LONGEST_NAME} characters.", place=str(path), fix="shorter names.")
    return list(names)


def _open_csv(path: Path, header_is_names: bool) -> Source:
    import pyarrow as pa
    from pyarrow import csv

    delimiter = "\t" if path.name.lower().endswith(".tsv") else ","
    names = _checked(header(path, delimiter), path, header_is_names=header_is_names)
    check_quotes(path)
    # in a file of one column an empty line is a row, whose cell is a gap
    parse = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=len(names) > 1)

    def stream(columns: Sequence[str] | None) -> Any:
        """Cells as text: what they are is decided by public rules, not by what stands in other rows."""
        convert = csv.ConvertOptions(
            include_columns=columns, column_types=dict.fromkeys(columns or (), pa.string()), strings_can_be_null=False
        )
        read = csv.ReadOptions(block_size=BLOCK)
        return csv.open_csv(path, read_options=read, parse_options=parse, convert_options=convert)

    sizes = [batch.num_rows for batch in stream(names)]

    def pieces(columns: Sequence[str]) -> Iterator[Any]:
        return (pa.Table.from_batches([batch]) for batch in stream(list(columns)))

    return Source(path, sum(sizes), dict.fromkeys(names), len(sizes), pieces)


def _open_parquet(path: Path, header_is_names: bool) -> Source:
    import pyarrow.parquet as pq

    from ppdp.data.engine.arrow import coded

    words = coded(pq.read_schema(path))
    file = pq.ParquetFile(path, read_dictionary=words, coerce_int96_timestamp_unit="us")
    schema = file.schema_arrow
    _checked(schema.names, path, header_is_names=header_is_names)
    types = dict(zip(schema.names, schema.types))

    def pieces(columns: Sequence[str]) -> Iterator[Any]:
        groups = range(file.num_row_groups)
        return (file.read_row_group(group, columns=list(columns)).select(list(columns)) for group in groups)

    return Source(path, file.metadata.num_rows, types, file.num_row_groups, pieces)


def _open_arrow(path: Path, header_is_names: bool) -> Source:
    import pyarrow as pa

    with path.open("rb") as file:
        whole = file.read(6) == b"ARROW1"
    if whole:
        with pa.ipc.open_file(path) as reader:
            schema, batches = reader.schema, [reader.get_batch(i) for i in range(reader.num_record_batches)]
    else:
        with pa.ipc.open_stream(path) as reader:
            schema, batches = reader.schema, list(reader)
    _checked(schema.names, path, header_is_names=header_is_names)

    def pieces(columns: Sequence[str]) -> Iterator[Any]:
        return (pa.Table.from_batches([batch]).select(list(columns)) for batch in batches)

    rows = sum(batch.num_rows for batch in batches)
    return Source(path, rows, dict(zip(schema.names, schema.types)), len(batches), pieces)


_FORMS: tuple[tuple[tuple[str, ...], Callable[[Path, bool], Source]], ...] = (
    (CSV, _open_csv),
    (PARQUET, _open_parquet),
    (ARROW, _open_arrow),
)
