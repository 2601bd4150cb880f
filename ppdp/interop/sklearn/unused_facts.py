"""Declared facts that no step asks for: most are a name with a slip in it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from ppdp.core.names import nearest
from ppdp.exceptions import InvalidParameter
from ppdp.transformers.columns.block import Block

__all__ = ["check_asked", "check_ranges"]


def check_asked(parameter: str, given: Iterable[Any], asked: Collection[Any], why: str) -> None:
    """Every fact is one that a step asks for.

    Parameters
    ----------
    parameter : str
        Its name.
    given, asked : iterable
        What is declared, and what steps ask for.
    why : str
        What is wrong with others.

    Raises
    ------
    InvalidParameter
        Naming the first that is not, and what was probably meant.
    """
    for name in given:
        if name in asked:
            continue
        meant = nearest(name, asked)
        shown = ", ".join(map(repr, sorted(asked, key=str)))
        rest = f"leave it out; asked for: {shown}." if shown else "leave it out."
        raise InvalidParameter(
            f"{parameter} declares {name!r}, {why}.",
            fix=f"did you mean {meant!r}? Or {rest}" if meant is not None else rest,
        )


def check_ranges(ranges: Any, blocks: Sequence[Block], names: Sequence[str] | None) -> None:
    """Every range by name is that of a column whose numbers are used, as far as the columns are known.

    Parameters
    ----------
    ranges : object
        As declared.
    blocks : sequence of Block
        What takes columns; empty if all are taken.
    names : sequence of str or None
        The declared names of all columns.

    Raises
    ------
    InvalidParameter
        Naming the first that is not, and what was probably meant.
    """
    given = [name for name in ranges if isinstance(name, str)] if isinstance(ranges, Mapping) else []
    if names is not None:
        check_asked("ranges", given, names, "which is no column of the domain")
    encoded = {name for block in blocks if block.encoder is not None for name in block.named}
    numeric = {name for block in blocks if block.encoder is None for name in block.named}
    for name in given:
        if name in encoded - numeric:
            raise InvalidParameter(
                f"ranges declares {name!r}, and only an encoder takes this column: its numbers are not used.",
                fix="leave it out of ranges.",
            )
    if blocks and not any(block.ordered or block.columns is None for block in blocks):
        check_asked("ranges", given, numeric, "which no step takes as numbers")
