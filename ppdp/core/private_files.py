"""Private rows on disk: in the folder for temporary files and in no other, for this process alone, gone when it ends.

A file has no name where the system allows that, so that it ends with the process however the process ends. What needs
a name stands in a folder that this process holds a lock on: a watching process removes it if this one is killed, and
whoever makes such a folder next removes those whose process is gone.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from ppdp.exceptions import DiskFull, InvalidInput, PpdpError

try:
    import fcntl
except ImportError:  # this system has no such locks, and nothing is swept
    fcntl = None  # type: ignore[assignment]

_FILE, _FOLDER = "ppdp-", "ppdp-folder-"
_DESCRIPTORS = "/proc/self/fd"
# Of a process that waits until the other end of its input is closed, whatever closes it.
_WATCH = """
import shutil, signal, sys, time
for number in sys.argv[2:]:
    signal.signal(int(number), signal.SIG_IGN)
sys.stdin.buffer.read()
for _ in range(100):
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    try:
        open(sys.argv[1]).close()
    except FileNotFoundError:
        break
    except OSError:
        time.sleep(0.1)
"""


def temporary_folder() -> str:
    """Where private rows may be written: what ``TMPDIR`` names, else the system's folder; never a third place."""
    named = (os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    by_system = "/tmp" if os.name == "posix" else tempfile.gettempdir()
    return os.path.abspath(next(filter(None, named), None) or tempfile.tempdir or by_system)


def check_temporary(needed: int = 0) -> None:
    """Refuse a place for private rows that takes none or lacks room; what processes left that are gone goes first."""
    with private_file() as file, _typed():
        file.write(bytes(1))
        file.flush()
    _sweep(temporary_folder())
    if shutil.disk_usage(temporary_folder()).free < needed:
        raise no_room("entrance")


@contextmanager
def private_file() -> Iterator[Any]:
    """An open file without a name, to read and write."""
    with ExitStack() as stack:
        with _typed():
            file = stack.enter_context(tempfile.TemporaryFile(prefix=_FILE, dir=temporary_folder()))
        yield file


@contextmanager
def private_path() -> Iterator[str]:
    """The path of an empty file which only this process can open, or where there is no such path, only its owner."""
    with private_file() as file:
        path = f"{_DESCRIPTORS}/{file.fileno()}"
        if os.access(path, os.R_OK | os.W_OK):
            yield path
            return
    with private_folder() as folder:
        path = os.path.join(folder, "rows")
        with _typed():
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        yield path


@contextmanager
def private_folder() -> Iterator[str]:
    """A folder which only the owner of this process can read."""
    check_temporary()
    folder, lock = _locked_folder()
    watching = _watch(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if watching is not None:
            watching.stdin.close()
            watching.wait()
        if lock is not None:
            os.close(lock)


def locked(folder: str | os.PathLike[str]) -> int | None:
    """A lock on a folder, a descriptor that ends with this process; None if another holds it, `OSError` if unknown."""
    if fcntl is None:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    except BaseException:
        os.close(handle)
        raise
    return handle


def is_ours(place: os.stat_result) -> bool:
    """Whether what stands somewhere belongs to the owner of this process, and nobody else can read or change it."""
    owner = getattr(os, "geteuid", None)
    return owner is None or (place.st_uid == owner() and not stat.S_IMODE(place.st_mode) & 0o077)


def is_of_a_full_disk(error: BaseException) -> bool:
    """Whether the system says so."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def no_room(stage: str) -> DiskFull:
    """The error of rows that find no room in a private file."""
    return DiskFull(
        "the disk of temporary files has no room for the rows.",
        stage=stage,
        fix="TMPDIR=... on a disk with 8 bytes for every number and 24 for every row.",
    )


@contextmanager
def _typed() -> Iterator[None]:
    """Errors of the place for private rows."""
    try:
        yield
        return
    except OSError as error:
        problem: PpdpError = no_room("entrance") if is_of_a_full_disk(error) else _no_place()
    raise problem


def _no_place() -> InvalidInput:
    return InvalidInput(
        "TMPDIR names no folder that can be written to, and private rows go to no other.",
        stage="entrance",
        fix="TMPDIR=... with the path of a folder on a disk of your own.",
    )


def _locked_folder() -> tuple[str, int | None]:
    """A new folder, with a lock if the system has locks; whoever sweeps may be faster than the lock."""
    for _ in range(100):
        with _typed():
            folder = tempfile.mkdtemp(prefix=_FOLDER, dir=temporary_folder())
        try:
            lock = locked(folder)
        except FileNotFoundError:
            continue
        except OSError:
            return folder, None
        if lock is not None and os.path.isdir(folder):
            return folder, lock
        if lock is not None:
            os.close(lock)
    raise _no_place()


def _sweep(place: str) -> None:
    """Remove folders of this user whose process is gone."""
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if not entry.name.startswith(_FOLDER) or not entry.is_dir(follow_symlinks=False):
                continue
            with suppress(OSError):
                if not is_ours(entry.stat(follow_symlinks=False)) or (lock := locked(entry.path)) is None:
                    continue
                shutil.rmtree(entry.path, ignore_errors=True)
                os.close(lock)


def _watch(folder: str) -> Any:
    """A process that removes a folder when this one has ended, however it ends; None where none can be started."""
    if not sys.executable or os.name != "posix":
        return None
    ignored = [str(int(number)) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)]
    line = [sys.executable, "-I", "-S", "-c", _WATCH, str(Path(folder)), *ignored]
    with suppress(OSError):
        nowhere = subprocess.DEVNULL
        return subprocess.Popen(
            line, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere, start_new_session=True, close_fds=True
        )
    return None
