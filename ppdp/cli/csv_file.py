"""The form of a CSV file: its header, and the reason why a file cannot be read; no cell is quoted."""

from __future__ import annotations

import contextlib
import csv
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ppdp.cli.output import refuse
from ppdp.core.names import LONGEST_NAME

BLOCK = 1 << 24  # bytes that are parsed at once; a row is within one
_OTHER_DELIMITERS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}
_UTF8 = 'pandas.read_csv(path, encoding="latin-1").to_csv(path, index=False), with the encoding that it has.'


def header(path: Path, delimiter: str) -> list[str]:
    """The names of the columns, in the first line.

    Raises
    ------
    Misuse
        Saying which form the file has, if it is not one with a name for every column.
    """
    with readable(path), _opened(path, "rt", encoding="utf-8-sig", newline="") as text:
        names = next(csv.reader(text, delimiter=delimiter, strict=True), [])
    if not names:
        refuse("has no header.", place=str(path), fix="the names of the columns in the first line.")
    if max(map(len, names)) > LONGEST_NAME:
        _refuse_long(path)
    written = "".join(names)
    if any(character < " " and character != "\t" for character in written):
        reason, fix = _what(path, _UTF16)  # without its mark
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
    "Expected": ("a row has another number of cells than the header.", "rows as long as the header, quotes closed."),
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
