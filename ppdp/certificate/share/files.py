"""The members of an export: written whole or not at all, read without trusting anything.

A zip is read in memory and never extracted; its members must be stored, not compressed, and together no longer than
the file. Arrays are read as float64 by a header of fixed form; nothing is evaluated, no object is made.
"""

from __future__ import annotations

import hashlib
import io
import math
import os
import re
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ppdp.core.checks import path_of
from ppdp.exceptions import ExportError, PpdpError

Array = NDArray[np.float64]

WHOLE = (
    "the export as it was written: a .zip, or a folder with all of its files. A certificate alone is read by"
    " Certificate.load or `ppdp verify`."
)
_WORDS_OF_OTHERS = (
    "csv doc docx gz h5 htm html joblib json md npz odt onnx parquet pdf pickle pkl png pt tar tex toml tsv txt xlsx"
    " xml yaml zip"
)
OF_OTHERS = frozenset(f".{word}" for word in _WORDS_OF_OTHERS.split())
MOST_BYTES = 2**32
MOST_MEMBERS = 10_000
_DRAFT = ".ppdp-"  # short, so that whatever name is possible can be written
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '<f8', 'fortran_order': False, 'shape': \(([\d, ]{0,80})\), \} *\n", re.S
)


def hashed(data: bytes) -> str:
    """Hexadecimal SHA-256."""
    return hashlib.sha256(data).hexdigest()


def zipped(members: Mapping[str, bytes]) -> bytes:
    """A zip of stored members, the same bytes for the same members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return buffer.getvalue()


def unzipped(data: bytes) -> dict[str, bytes]:
    """The members of a zip of stored members, and of nothing else."""
    broken = (zipfile.BadZipFile, OSError, ValueError, EOFError, NotImplementedError, RuntimeError, OverflowError)
    with suppress(*broken), zipfile.ZipFile(io.BytesIO(data)) as archive:
        infos = archive.infolist()
        names = {info.filename for info in infos}
        stored = all(info.compress_type == zipfile.ZIP_STORED and not info.flag_bits & 1 for info in infos)
        small = len(infos) <= MOST_MEMBERS and sum(info.file_size for info in infos) <= len(data)
        if stored and small and len(names) == len(infos):
            members = {info.filename: archive.read(info) for info in infos}
            if len(zipped(members)) == len(data):  # no byte stands before, between or behind them
                return members
    raise ExportError("this is not an archive as ppdp writes them.", fix=WHOLE)


def pack_arrays(arrays: Mapping[str, Array]) -> bytes:
    """Arrays as an .npz, which ``numpy.load`` reads as well."""
    members = {}
    for name in sorted(arrays):
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, np.ascontiguousarray(arrays[name], "<f8"), (1, 0), allow_pickle=False)
        members[f"{name}.npy"] = buffer.getvalue()
    return zipped(members)


def unpack_arrays(data: bytes, shapes: Mapping[str, Sequence[int] | None]) -> dict[str, Array]:
    """Finite, read-only arrays of exactly these names and shapes, and of nothing else; None is any shape."""
    members = unzipped(data)
    if members.keys() != {f"{name}.npy" for name in shapes}:
        raise ExportError("other arrays are expected.")
    return {name: _array(members[f"{name}.npy"], shape) for name, shape in shapes.items()}


def _array(data: bytes, expected: Sequence[int] | None) -> Array:
    header = _HEADER.match(data)
    written = "" if header is None else header[1].decode()
    shape = tuple(int(size) for size in written.split(",") if size.strip())
    known = header is not None and written == repr(shape)[1:-1] and expected in (None, list(shape))
    if header is None or not known or len(data) - header.end() != 8 * math.prod(shape):
        raise ExportError("an array has another form than the certificate says.")
    array = np.frombuffer(data, "<f8", offset=header.end()).reshape(shape).astype(np.float64)
    if not np.isfinite(array).all():
        raise ExportError("an array holds NaN or infinity, which nothing releases.")
    array.setflags(write=False)
    return array


def read_members(path: Path, names: Collection[str]) -> dict[str, bytes]:
    """All members of an export, a zip or a folder; a folder holds these and nothing else."""
    try:
        if path.is_dir():
            if {entry.name for entry in os.scandir(path)} - set(names):
                raise ExportError("the folder holds something that is not of the export.", fix="take it out.")
            return {name: read_file(path / name) for name in names if os.path.lexists(path / name)}
        return unzipped(read_file(path))
    except OSError as error:
        fix, other = "the path of an export, as pipe.export(path) writes it.", path.with_suffix(".zip")
        other = path.with_suffix("") if path.suffix else other
        fix = f"{str(other)!r}, which is there." if other.exists() else fix
        raise ExportError(f"cannot read {str(path)!r}: {error.strerror}.", fix=fix) from None


def read_file(path: Path, most: int = MOST_BYTES) -> bytes:
    """The bytes of a regular file that is no link: a pipe would let whoever reads wait for ever.

    Anything else, and what has more bytes, is an ExportError; what cannot be opened is an OSError.
    """
    safely = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, os.O_RDONLY | safely), "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode) or about.st_size > most:
            raise ExportError(f"{path.name!r} is no ordinary file of at most {most} bytes.")
        return file.read()


def write_bytes(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write a file so that it is there whole or not at all, whenever the process or the machine dies."""
    with written(path), replacing(path, mode) as file:
        file.write(data)


def write_folder(path: Path, members: Mapping[str, bytes]) -> None:
    """Write a new folder in the same manner."""
    with written(path):
        temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=_DRAFT))
        try:
            for name, data in members.items():
                with open(temporary / name, "wb") as file:
                    _to_disk(file, data)
            os.chmod(temporary, 0o755)
            _settle(temporary)
            os.rename(temporary, path)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


@contextmanager
def written(path: Path) -> Iterator[None]:
    """Typed errors while writing, and the new name brought to the disk."""
    try:
        yield
        _settle(path.parent)
    except OSError as error:
        what = f"cannot write {str(path)!r}: {error.strerror or 'the system refuses'}."
        raise ExportError(what, fix="a name in a folder that is there, and in which you may write.") from None


def _to_disk(file: Any, data: bytes = b"") -> None:
    file.write(data)
    file.flush()
    os.fsync(file.fileno())


def _settle(folder: Path) -> None:
    """Bring the names in a folder to the disk, where the system can."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def refuse_ending(path: Path, fix: str, *own: str) -> None:
    """Refuse a name that says that the file is of another kind; ``own`` are the endings of its kind."""
    if path.suffix.lower() in OF_OTHERS and path.suffix not in own:
        raise ExportError(f"{path.name!r} has the ending of another kind of file.", fix=fix)


class Saved:
    """What is kept in a file of its own, as JSON."""

    __slots__ = ()
    # What a subclass gives: how it is written and read, and the error if it cannot be, with its fix and the most bytes.
    to_json: Callable[[], str]
    from_json: Callable[[str | bytes], Self]
    _unread: tuple[type[PpdpError], str | None, int]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the JSON document, atomically; :class:`ExportError` if it cannot be written there."""
        write_atomically(path_of("path", path), self.to_json() + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a JSON document; :class:`CertificateError` if there is none, of a signature :class:`SignatureError`."""
        place, (kind, fix, most) = path_of("path", path), cls._unread
        try:
            return cls.from_json(read_file(Path(os.path.realpath(place)), most))
        except OSError as error:
            raise kind(f"cannot read {str(place)!r}: {error.strerror}.", fix=fix) from None
        except ExportError as error:
            raise kind(f"cannot read it: {error.message}", fix=fix) from None


def write_atomically(path: str | os.PathLike[str], content: str | bytes, mode: int = 0o644) -> None:
    """Write a file so that it is there whole or not at all."""
    write_bytes(Path(path), content.encode() if isinstance(content, str) else content, mode)


@contextmanager
def replacing(path: Path, mode: int = 0o600) -> Iterator[Any]:
    """A file to be written, at the path once all of it is on the disk, else nowhere; it replaces no device."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise ExportError(f"{str(path)!r} is there, and is no file that could be replaced.", fix="another name.")
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=_DRAFT)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            _to_disk(file)
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
