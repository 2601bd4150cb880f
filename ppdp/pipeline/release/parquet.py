"""Parquet files that carry their certificate: written whole, and read without trusting anything."""

from __future__ import annotations

import base64
import binascii
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ppdp.certificate import Certificate
from ppdp.certificate.record import Record
from ppdp.certificate.replay.rules import refuse_unsafe
from ppdp.certificate.share.files import pack_arrays, read_file, unpack_arrays, write_bytes
from ppdp.core.checks import path_of
from ppdp.data.rows import Array
from ppdp.exceptions import CertificateError, ExportError

Shapes = Mapping[str, Sequence[int]]
KEY, OTHERS = b"ppdp.certificate", b"ppdp.arrays"

CODECS = ("SNAPPY", "UNCOMPRESSED")  # ours; they expand at most some twenty times, others without limit
ENCODINGS = frozenset({"PLAIN", "RLE", "RLE_DICTIONARY", "PLAIN_DICTIONARY"})
EXPANSION, SMALL = 1000, 2**24  # no table that was released is that much larger in memory than its file
_PHYSICAL = {"string": "BYTE_ARRAY", "int64": "INT64", "double": "DOUBLE"}


@dataclass(frozen=True, slots=True)
class CertifiedFile:
    """A Parquet file whose certificate verifies; whether it is that of its numbers is still to be seen."""

    data: bytes
    certificate: Certificate
    others: bytes | None
    """Other arrays, packed."""
    sketches: bool
    """Whether its one column is of a fixed size, as those of sketches are."""

    @classmethod
    def opened(cls, path: str | os.PathLike[str], fix: str) -> CertifiedFile:
        """The file at a path, with a certificate that verifies; ``fix`` says how one is written."""
        import pyarrow as pa

        try:
            data = read_file(path_of("path", path))
        except OSError as error:
            raise ExportError(f"cannot read {os.fspath(path)!r}: {error.strerror}.") from None
        with malformed("this is not a Parquet file."):
            schema = _parquet(data).schema_arrow
        about, kinds = schema.metadata or {}, [pa.types.is_fixed_size_list, pa.types.is_fixed_size_binary]
        if KEY not in about:
            raise ExportError("the file carries no certificate.", fix=fix)
        certificate = verified(about[KEY])
        refuse_unsafe(certificate.record, conditional=True)
        sketches = len(schema) == 1 and any(fixed(schema.types[0]) for fixed in kinds)
        return cls(data, certificate, about.get(OTHERS), sketches)

    @property
    def record(self) -> Record:
        """Its certificate as records."""
        return self.certificate.record

    def read(self, schema: Any, lines: int, size: int, writer: str) -> Any:
        """The table, if it has this form; words are read as codes, so that one long word counts once.

        What a footer says of sizes anybody can forge, so none is believed: nothing is read whose size in memory does
        not follow from the certificate and the size of the file. Columns, physical types and numbers of values must be
        those of the certificate, and neither a codec nor an encoding may expand without limit. There are so many
        ``lines`` of at most ``size`` bytes; ``writer`` is what writes such a table.
        """
        import pyarrow as pa

        with malformed("this is not a Parquet file."):
            file = _parquet(self.data)
            about = file.metadata
            leaves = [file.schema.column(i) for i in range(about.num_columns)]
            groups = [about.row_group(i) for i in range(about.num_row_groups)]
        if about.num_rows != lines:
            raise ExportError("the file holds another number of values than its certificate says.")
        chunks = [(group.num_rows, i, group.column(i)) for group in groups for i in range(group.num_columns)]
        forms = [_form(field.type) for field in schema]
        if not (
            file.schema_arrow.equals(schema)
            and [(leaf.physical_type, leaf.max_repetition_level) for leaf in leaves] == [form[:2] for form in forms]
            and sum(group.num_rows for group in groups) == about.num_rows
            and all(chunk.num_values == rows * forms[i][2] and _plain(chunk) for rows, i, chunk in chunks)
        ):
            raise ExportError(f"the table has another form than {writer} gives it.")
        if lines * size > EXPANSION * len(self.data) + SMALL:
            raise ExportError("the table would be far larger than its file.")
        with malformed("the table is malformed."):
            words = [field.name for field in schema if field.type == pa.string()]
            # One column after the other: where one is broken, no other is still being decoded when its error is told.
            return _parquet(self.data, words).read(use_threads=False)


def _parquet(data: bytes, words: Sequence[str] = ()) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    return pq.ParquetFile(pa.BufferReader(data), read_dictionary=words or None)


def _plain(chunk: Any) -> bool:
    """Whether a part of a column says that it is written as ours are."""
    return chunk.compression in CODECS and ENCODINGS.issuperset(chunk.encodings)


def _form(kind: Any) -> tuple[str, int, int]:
    """Physical type of a column, whether it repeats, and how many values are in a line."""
    import pyarrow as pa

    if pa.types.is_fixed_size_list(kind):
        return _PHYSICAL[str(kind.value_type)], 1, kind.list_size
    return _PHYSICAL.get(str(kind), "FIXED_LEN_BYTE_ARRAY"), 0, 1


@contextmanager
def malformed(words: str) -> Iterator[None]:
    """One error for whatever Arrow finds wrong."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError, TypeError, OverflowError, MemoryError, KeyError) as error:
        if isinstance(error, ExportError):
            raise
        raise ExportError(words) from None


def described(certificate: Certificate, others: Mapping[str, Array]) -> dict[bytes, bytes]:
    """Metadata of a schema: the certificate, and arrays that are not in the columns."""
    about = {KEY: certificate.to_json().encode()}
    if others:
        about[OTHERS] = base64.b64encode(pack_arrays(others))
    return about


def unpacked(packed: bytes | None, shapes: Shapes) -> dict[str, Array]:
    """Arrays of these shapes from the metadata."""
    try:
        data = base64.b64decode(packed or b"", validate=True)
    except binascii.Error:
        raise ValueError("base64") from None
    return unpack_arrays(data, shapes) if shapes else {}


class WithParquet:
    """Mixin for what has a certificate, and ``_columns`` as an Arrow table with it in the metadata of its schema."""

    __slots__ = ()
    certificate: Any
    _columns: Any

    def to_arrow(self, *, conditional: bool = False) -> Any:
        """As an Arrow table, with the certificate in the metadata of its schema.

        Released rows are one line each: a column for every feature, or of sketches one column, ``values`` (lists of
        fixed size) or ``signs`` (binary of fixed size, as ``packed``). Else there is one line per number, in order:
        ``array``, ``position`` in it, ``value``; a histogram has further columns, ``column`` and the ends ``low`` and
        ``high`` of each cell.

        Parameters
        ----------
        conditional : bool, default=False
            Whether you know that the certificate is CONDITIONAL.

        Raises
        ------
        ExportError
            If it may not leave as what it is.
        """
        refuse_unsafe(self.certificate.record, conditional=conditional)
        return self._columns()

    def to_parquet(self, path: str | os.PathLike[str], *, conditional: bool = False) -> None:
        """Write :meth:`to_arrow` as a Parquet file, whole or not at all; :func:`ppdp.read_parquet` reads it.

        Parameters
        ----------
        path : path-like
            Where to.
        conditional : bool, default=False
            Whether you know that the certificate is CONDITIONAL.

        Raises
        ------
        ExportError
            If it may not leave as what it is, or cannot be written.
        """
        import pyarrow.parquet as pq

        buffer = io.BytesIO()
        pq.write_table(self.to_arrow(conditional=conditional), buffer)
        write_bytes(path_of("path", path), buffer.getvalue())


def verified(text: str | bytes) -> Certificate:
    """A certificate whose derivation holds; anything else is refused."""
    certificate = Certificate.from_json(text)
    verification = certificate.verify()
    if not verification:
        raise CertificateError(f"the certificate does not verify: {' '.join(verification.problems)}")
    return certificate
