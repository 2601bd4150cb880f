"""Parquet files that carry their certificate: written whole, and read without trusting anything."""

from __future__ import annotations

import base64
import binascii
import glob
import io
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ppdp.certificate import Certificate
from ppdp.certificate.record import Record
from ppdp.certificate.replay.rules import refuse_unsafe
from ppdp.certificate.share.files import hashed, pack_arrays, read_file, replacing, unpack_arrays, write_bytes, written
from ppdp.core.checks import choice, path_of
from ppdp.core.private_files import is_ours, locked
from ppdp.core.progress import progress
from ppdp.data.engine.arrow import storable
from ppdp.data.engine.source import BlockSource
from ppdp.data.frames import opened
from ppdp.data.parallel import PIECE
from ppdp.data.rows import Array
from ppdp.exceptions import CertificateError, ExportError, InvalidParameter
from ppdp.pipeline.prediction import Predictor, ReleasedMap

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
            fix = f"{fix.removesuffix('.')}; rows of your own, pd.read_parquet(path) or the path itself in fit."
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


FORM, MANIFEST, ROWS_KEY = "ppdp-rows/1", "_ppdp.json", b"ppdp.rows"
PART = 32 * PIECE  # rows of a file
WORDS = {"transform": "", "predict": "prediction", "predict_proba": "probability", "decision_function": "decision"}
_SHOWN, _END = 40, ".unfinished"  # letters of the target's name in that of the hidden folder, and how that ends
NOTE = "of every row, by what a release holds; no certificate covers it"


def write_parts(
    pipeline: Any, predictor: Predictor, source: BlockSource, target: Path, method: str | None, keep: tuple[str, ...]
) -> None:
    """Write a folder; see :meth:`ppdp.Pipeline.write_parquet`."""
    offered = [name for name in WORDS if hasattr(pipeline, name)]
    if not offered:
        raise InvalidParameter("this release maps no rows.", fix="a last step that transforms or predicts.")
    method = offered[0] if method is None else choice("method", method, offered)
    names = predictor.columns_of(source, keep)
    columns = _columns(pipeline, method)
    if len({*keep, *columns}) < len(keep) + len(columns):
        raise InvalidParameter("a column to keep has the name of a new one, or is named twice.", fix="rename it.")
    about = _about(pipeline, source, method, [*keep, *columns])
    if os.path.lexists(target):
        if _is_folder_of_ours(target) and _manifest(target) == about:
            return
        raise ExportError(f"{str(target)!r} is already there, of other rows or another release.", fix="another name.")
    note = {ROWS_KEY: f"{method} {NOTE}".encode()}
    task = partial(_block, *predictor.map_of(method, local=source.local), names, keep, columns, note)
    pieces = source.pieces(PART)
    with written(target), _unfinished(target, about) as hidden:
        files = [hidden / f"part-{number:06}.parquet" for number in range(-(-source.n // PART))]
        for file, rows in zip(progress(files, "files"), pieces):
            if not _is_part_of_ours(file):
                _write(file, rows.over(task, list(dict.fromkeys([*names, *keep])), len(names)))
        for file in set(hidden.iterdir()) - {*files, hidden / MANIFEST}:  # of a run that was killed
            file.unlink()
    predictor.new_rows.warn()


def _columns(pipeline: Any, method: str) -> list[str]:
    """Names of what a method gives."""
    if method == "transform":
        return [str(name) for name in pipeline.get_feature_names_out()]
    classes, word = getattr(pipeline, "classes_", ()), WORDS[method]
    several = method == "predict_proba" or (method == "decision_function" and len(classes) > 2)
    return [f"{word} of {label}" for label in classes] if several else [word]


def _about(pipeline: Any, source: BlockSource, method: str, columns: Sequence[str]) -> dict[str, Any]:
    """The manifest: of which release and which rows this is."""
    released = pipeline.certificate_.record.released
    rows = hashed(json.dumps([source.n, source.marks]).encode())
    return {
        "form": FORM,
        "released": released.sha256,
        "inference": released.inference,
        "method": method,
        "columns": list(columns),
        "rows": rows,
        "part": PART,
    }


def _manifest(folder: Path) -> Any:
    with suppress(OSError, ValueError, RecursionError, ExportError):
        return json.loads(read_file(folder / MANIFEST, 2**24))
    return None


@contextmanager
def _unfinished(target: Path, about: dict[str, Any]) -> Iterator[Path]:
    """A hidden folder, which becomes the target if all goes well: that of a run that was killed, or a new one.

    None that others made is taken: its name cannot be foreseen, and owner and mode are looked at once it is open.
    """
    begin = f".{target.name[:_SHOWN]}.{hashed(target.name.encode(errors='surrogateescape'))[:8]}."
    hidden, lock = None, None
    for place in sorted(target.parent.glob(f"{glob.escape(begin)}*{_END}")):
        with suppress(OSError):
            if not _is_folder_of_ours(place) or (held := locked(place)) is None:
                continue  # somebody else's, or of a process that writes it
            if hidden is None and _manifest(place) == about and os.path.samestat(os.fstat(held), os.lstat(place)):
                hidden, lock = place, held
                continue
            shutil.rmtree(place)  # parts with another manifest are of no use
            os.close(held)
    if hidden is None:
        hidden = Path(tempfile.mkdtemp(dir=target.parent, prefix=begin, suffix=_END))
        with suppress(OSError):
            lock = locked(hidden)
        write_bytes(hidden / MANIFEST, json.dumps(about, indent=2).encode())
    made = os.lstat(hidden)
    try:
        yield hidden
        if not os.path.samestat(made, os.lstat(hidden)):
            raise ExportError(f"somebody has moved {str(hidden)!r}.", fix="a folder where no one else may write.")
        os.rename(hidden, target)
    finally:
        if lock is not None:
            os.close(lock)


def _is_folder_of_ours(place: Path) -> bool:
    about = os.lstat(place)
    return stat.S_ISDIR(about.st_mode) and is_ours(about)


def _is_part_of_ours(file: Path) -> bool:
    """Whether a part is there that this process's owner has written, for nobody else."""
    if not os.path.lexists(file):
        return False
    about = os.lstat(file)
    return stat.S_ISREG(about.st_mode) and is_ours(about)


def _block(
    released: ReleasedMap,
    then: Callable[[Array], Any] | None,
    names: Sequence[str],
    keep: Sequence[str],
    columns: Sequence[str],
    note: dict[bytes, bytes],
    first: int,
    table: Any,
) -> Any:
    """A table of what is kept of a block, and of what becomes of it."""
    import pyarrow as pa

    values = released(opened(table.select(list(names))))
    result = np.asarray(values if then is None else then(values))
    new = [pa.array(column) for column in result.reshape(len(result), -1).T]
    return pa.table([*(storable(table[name]) for name in keep), *new], [*keep, *columns]).replace_schema_metadata(note)


def _write(path: Path, blocks: Any) -> None:
    import pyarrow.parquet as pq

    first = next(blocks)
    with replacing(path) as file, pq.ParquetWriter(file, first.schema) as writer:
        writer.write_table(first)
        for block in blocks:
            writer.write_table(block)
