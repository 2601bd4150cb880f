"""Writes the errata page: ``python -m literature [FILE]``, to the terminal without a file."""

from __future__ import annotations

import sys
from pathlib import Path

from literature import claims
from literature.page import page

__all__ = ["main"]


def main(arguments: list[str]) -> int:
    """Write the page."""
    if len(arguments) > 1 or any(argument.startswith("-") for argument in arguments):
        sys.stderr.write(f"{__doc__}\n")
        return 2
    text = page(claims())
    if arguments:
        Path(arguments[0]).write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
