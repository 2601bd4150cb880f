"""What commands print: one guard for standard output and standard error.

Names in a certificate or a file are somebody else's words. None may move the cursor of a terminal, and none may be
lost because a terminal has no such letter: both become escapes of JSON, which leave a JSON document one.
"""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TextIO

from ppdp.exceptions import escaped

__all__ = ["Unprinted", "complain", "escaped", "prepare", "printing", "say", "silence", "table"]


class Unprinted(OSError):
    """Standard output takes nothing more; the command itself is done."""


def say(text: str) -> None:
    """Print a text of one or more lines; the last thing that a command does.

    Raises
    ------
    Unprinted
        If it cannot be written. A closed pipe is no error.
    """
    with printing(sys.stdout):
        print("\n".join(escaped(line) for line in text.split("\n")))


def complain(text: str) -> None:
    """Print one line on standard error."""
    with contextlib.suppress(Unprinted), printing(sys.stderr):
        print(f"ppdp: {escaped(text)}", file=sys.stderr)


def _as_json(text: str) -> str:
    return json.dumps(text)[1:-1]


def prepare() -> None:
    """Let both streams take what their encoding lacks."""
    codecs.register_error("ppdp", lambda e: (_as_json(e.object[e.start : e.end]), e.end))  # type: ignore[attr-defined]
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="ppdp")


@contextlib.contextmanager
def printing(stream: TextIO | None) -> Iterator[None]:
    """Print to the end: what a stream refuses is no error of the command.

    Raises
    ------
    Unprinted
        If the stream refuses for another reason than a closed pipe.
    """
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


def table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Columns of equal width; one that is empty throughout is left out."""
    kept = [i for i in range(len(heads)) if any(line[i] for line in lines)]
    rows = [[line[i] for i in kept] for line in (heads, *lines)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(kept))]
    return "\n".join("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)
