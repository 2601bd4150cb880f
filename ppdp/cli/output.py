"""What commands print, and their errors: one guard for standard output and standard error.

Names in a certificate or a file are somebody else's words. None may move the cursor of a terminal, and none may be
lost because a terminal has no such letter: both become escapes of JSON, which leave a JSON document one.
"""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn, TextIO

from ppdp.core.figures import aligned
from ppdp.core.names import nearest
from ppdp.exceptions import DiagnosticWarning, HeaderWarning, InvalidParameter, NoiseWarning, PpdpError, escaped


class Unprinted(OSError):
    """Standard output takes nothing more; the command itself is done."""


def say(text: str) -> None:
    """Print a text of one or more lines; the last thing that a command does."""
    with printing(sys.stdout):
        print("\n".join(escaped(line) for line in text.split("\n")))


def complain(text: str) -> None:
    """Print one line on standard error."""
    with contextlib.suppress(Unprinted), printing(sys.stderr):
        print(f"ppdp: {escaped(text)}", file=sys.stderr)


@contextlib.contextmanager
def warning_lines(*, printed: bool) -> Iterator[None]:
    """Warnings in one line each, but for those of a certificate that is ``printed``, and of what the user has said."""

    def complained(message: Warning | str, *_: Any, **__: Any) -> None:
        complain(f"warning: {message}")

    with warnings.catch_warnings():
        for said in (HeaderWarning, *((NoiseWarning, DiagnosticWarning) if printed else ())):
            warnings.simplefilter("ignore", said)
        if not printed:
            warnings.showwarning = complained
        yield


def prepare() -> None:
    """Let both streams take what their encoding lacks."""

    def as_json(error: Any) -> tuple[str, int]:
        return json.dumps(error.object[error.start : error.end])[1:-1], error.end

    codecs.register_error("ppdp", as_json)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="ppdp")


@contextlib.contextmanager
def printing(stream: TextIO | None) -> Iterator[None]:
    """Print to the end: what a stream refuses, for another reason than a closed pipe, is Unprinted."""
    try:
        yield
        if stream is not None:  # a process may be started without
            stream.flush()
    except BrokenPipeError:
        silence(stream)
    except OSError as error:
        silence(stream)
        raise Unprinted(error.errno, error.strerror) from None


def silence(stream: TextIO | None) -> None:
    """Let nothing of what the stream still holds fail when the process ends."""
    if stream is not None:
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def busy(*, quiet: bool) -> contextlib.AbstractContextManager[Any]:
    """Something that moves on a terminal while nothing else does."""
    if quiet or not sys.stderr.isatty():
        return contextlib.nullcontext()
    from rich.console import Console

    return Console(stderr=True).status("reading and fitting")


def table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Columns of equal width; one that is empty throughout is left out."""
    kept = [i for i in range(len(heads)) if any(line[i] for line in lines)]
    rows = [[line[i] for i in kept] for line in (heads, *lines)]
    return "\n".join(f"  {line}" for line in aligned(rows))


class Misuse(InvalidParameter):
    """Something in a file or on the command line is wrong; ``place`` says where."""

    def __init__(self, message: str, *, fix: str | None = None, place: str = "command line") -> None:
        super().__init__(message, fix=fix)
        self.place = place


def one_line(error: BaseException) -> str:
    """``PLACE: WHAT. Fix: HOW`` of any error that is shown to a user."""
    if isinstance(error, PpdpError):
        place = error.place if isinstance(error, Misuse) else ""
        if not place and error.stage:
            place = f"step {error.stage!r}"
        what, fix, rest = error.message, error.fix, [error.advice, error.details]
    else:
        filename = getattr(error, "filename", None)
        place, what = str(filename or ""), getattr(error, "strerror", None) or str(error)
        fix, rest = "check the path and its permissions." if isinstance(error, OSError) else None, []
    what = what.rstrip()
    what = what if what.endswith((".", "?", "!")) else f"{what}."
    parts = [f"{place}: " if place else "", what, f" Fix: {fix}" if fix else "", *(f" {one}" for one in rest if one)]
    return " ".join("".join(parts).split())


def suggestion(word: str, known: Iterable[str]) -> str:
    """What to write instead of an unknown word."""
    options = sorted(known)
    return did_you_mean(word, options) or (f"one of {', '.join(options)}." if options else "leave it out.")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The one word that was probably meant, as a question; empty if none is near."""
    meant = nearest(word, known)
    return "" if meant is None else f"did you mean {meant!r}?"


def words_of(names: Iterable[str]) -> str:
    """Names in quotes, for messages."""
    return ", ".join(repr(name) for name in names)


def refuse_taken(path: Path, place: str = "--out") -> None:
    """Refuse a place for what will be written where something is, or that has no folder."""
    parent = path.absolute().parent
    if os.path.lexists(path):
        refuse(f"{str(path)!r} is already there.", place=place, fix="another name; nothing is replaced.")
    if not parent.is_dir():
        refuse(f"there is no folder {str(parent)!r}.", place=place, fix="make it first.")


@contextlib.contextmanager
def placed(place: str, kind: type[PpdpError] = PpdpError, *, fix: str = "") -> Iterator[None]:
    """What the library refuses is refused for this place, with its own fix or else this one."""
    try:
        yield
    except kind as error:
        raise Misuse(error.message, place=place, fix=error.fix or fix) from None


def refuse(message: str, *, place: str, fix: str) -> NoReturn:
    """Raise :class:`Misuse`."""
    raise Misuse(message, place=place, fix=fix)
