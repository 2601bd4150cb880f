"""Columns of text of which every cell is mapped as a whole: rows hold codes, and know the texts while they are mapped.

A code is a place among the texts of the same block of rows, so nothing but :func:`texts_at` may look at it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.data.cells import texts
from ppdp.data.rows import Array

Words = NDArray[np.object_]


def coded_texts(column: Any) -> tuple[Array, Words]:
    """The code of every cell, infinite where it is no text, and the texts; 0 is the empty one of a missing value."""
    places, read = texts(column)
    bare = np.asarray(read.values == np.array(None), dtype=bool)
    own = np.where(read.improper, np.inf, np.where(bare, 0.0, np.arange(1.0, len(bare) + 1)))
    return own[places], np.append(np.array([""], dtype=object), np.where(bare, "", read.values))


def texts_at(codes: Array, held: Words | None) -> Words:
    """The text of every code; of numbers that nobody has coded themselves as text. What is no code is empty."""
    if held is None:
        codes, held = coded_texts(codes)
    return held[np.where(np.isfinite(codes), codes, 0.0).astype(np.intp)]
