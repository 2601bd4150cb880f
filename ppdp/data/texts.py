"""Columns of text of which every cell is mapped as a whole: rows hold codes, and know the texts while they are mapped.

A code is a place among the texts of the same block of rows, so it tells of other rows: nothing but :func:`texts_at` may
look at it, and without its texts there it is an error.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.data.cells import texts
from ppdp.data.rows import Array

Words = NDArray[np.object_]
FIRST = 2.0**51  # code of the first text: no number of a table is near it


def coded_texts(column: Any, *, terms: bool = False) -> tuple[Array, Words]:
    """The code of every cell, infinite where it is no text and 0 where it is missing, and the texts."""
    places, read = texts(column, terms=terms)
    bare = np.asarray(read.values == np.array(None), dtype=bool)
    own = np.where(read.improper, np.inf, np.where(bare, 0.0, FIRST + np.arange(len(bare))))
    return own[places], np.where(bare, "", read.values)


def texts_at(codes: Array, held: Words | None) -> Words:
    """The text of every code; of numbers that nobody has coded themselves as text. What is no code is empty."""
    if held is None:
        if _are_codes(codes).any():
            raise RuntimeError("the texts of rows were lost on the way")
        codes, held = coded_texts(codes)
    found = np.full(len(codes), "", dtype=object)
    known = _are_codes(codes)
    found[known] = held[(codes[known] - FIRST).astype(np.intp)]
    return found


def numbered(X: Array) -> Array:
    """Rows with numbers in place of codes, which stand for texts of which only that they differ counts."""
    return np.where(_are_codes(X), X - FIRST, X)


def _are_codes(values: Array) -> NDArray[np.bool_]:
    return np.asarray((values >= FIRST) & (values < 2 * FIRST))
