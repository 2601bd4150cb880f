"""Errors of the command line: one line that names the place and the fix."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import NoReturn

from ppdp.exceptions import InvalidParameter, PpdpError

__all__ = ["Misuse", "one_line", "refuse", "suggestion", "words_of"]


class Misuse(InvalidParameter):
    """Something in a file or on the command line is wrong; ``place`` says where."""

    def __init__(
        self, message: str, *, stage: str | None = None, fix: str | None = None, place: str = "command line"
    ) -> None:
        super().__init__(message, stage=stage, fix=fix)
        self.place = place


def one_line(error: BaseException) -> str:
    """``PLACE: WHAT. Fix: HOW`` of any error that is shown to a user."""
    if isinstance(error, PpdpError):
        place = error.place if isinstance(error, Misuse) else ""
        if not place and error.stage:
            place = f"step {error.stage!r}"
        what, fix = error.message, error.fix
    else:
        filename = getattr(error, "filename", None)
        place, what = str(filename or ""), getattr(error, "strerror", None) or str(error)
        fix = "check the path and its permissions." if isinstance(error, OSError) else None
    what = what.rstrip()
    what = what if what.endswith((".", "?", "!")) else f"{what}."
    parts = [f"{place}: " if place else "", what, f" Fix: {fix}" if fix else ""]
    return " ".join("".join(parts).split())


def suggestion(word: str, known: Iterable[str]) -> str:
    """What to write instead of an unknown word."""
    options = sorted(known)
    near = difflib.get_close_matches(word, options, n=1, cutoff=0.6)
    if not near:
        folded = {option.casefold(): option for option in options}
        near = [folded[n] for n in difflib.get_close_matches(word.casefold(), list(folded), n=1, cutoff=0.6)]
    if near:
        return f"did you mean {near[0]!r}?"
    return f"one of {', '.join(options)}." if options else "leave it out."


def words_of(names: Iterable[str]) -> str:
    """Names in quotes, for messages."""
    return ", ".join(repr(name) for name in names)


def refuse(message: str, *, place: str, fix: str) -> NoReturn:
    """Raise :class:`Misuse`."""
    raise Misuse(message, place=place, fix=fix)
