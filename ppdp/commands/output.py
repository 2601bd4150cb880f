"""What commands print on standard output."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["say", "table"]


def say(text: str) -> None:
    """Print a text."""
    print(text)


def table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Columns of equal width; one that is empty throughout is left out."""
    kept = [i for i in range(len(heads)) if any(line[i] for line in lines)]
    rows = [[line[i] for i in kept] for line in (heads, *lines)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(kept))]
    return "\n".join("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)
