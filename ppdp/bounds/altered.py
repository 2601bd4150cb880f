"""How far counts of altered rows can be apart: ``docs/theory/altered-shares.md``."""

from __future__ import annotations

import math

from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import LAPLACE, formula, sane, whole
from ppdp.core.rounding import inflate

SHARES, PURE_SHARES = "release.altered-shares", "release.altered-shares-laplace"
MOST_COUNTS = 10_000  # that are released together

LABEL, TARGET, WEIGHT, CLASS, CELL, CLIPPED, SHORTENED, UNLISTED, KEPT, TINY, TINY_TARGET, TINY_WEIGHT = (
    "labels repaired",
    "targets clipped or repaired",
    "weights clipped or repaired",
    "labels of the class",
    "cells repaired",
    "values clipped",
    "rows clipped to a norm",
    "values of no declared category",
    "rows kept",
    "values tiny beside their range",
    "targets tiny beside their range",
    "weights tiny beside the largest",
)
"""What may have been altered in a row."""
KINDS = (LABEL, TARGET, WEIGHT, CLASS, KEPT, CELL, CLIPPED, SHORTENED, UNLISTED, TINY, TINY_TARGET, TINY_WEIGHT)

_PLAIN = {
    CLIPPED: "values clipped to their range",
    TINY: "values not 0 but closer to 0 than 2 % of their range",
    TINY_TARGET: "targets not 0 but closer to 0 than 2 % of their range",
    TINY_WEIGHT: "weights below 2 % of the largest allowed",
}


def kind_in_words(kind: str) -> str:
    """What is counted, for readers; documents have the name of its kind."""
    return _PLAIN.get(kind, kind)


@formula(SHARES, kind="release", page="altered-shares")
def altered_counts(domain: Domain, distance: Distance, *, counts: int) -> float:
    """Numbers of rows with each of k properties: ``√k`` times the rows in which neighbouring datasets differ.

    Whether a row has a property follows from the row as it came in and from public facts, so each row adds a vector of
    k zeros and ones, and what differs in a row changes it by at most √k. Sums of whole numbers are exact.
    """
    sane(whole(counts) and 1 <= counts <= MOST_COUNTS)
    return inflate(math.sqrt(counts) * distance.changed)


@formula(PURE_SHARES, kind="release", page="altered-shares", law=LAPLACE, differing=lambda distance, **_: 0)
def purely_altered_counts(domain: Domain, distance: Distance, *, counts: int) -> float:
    """The same in L1, for Laplace noise in whole numbers: k times the rows in which neighbouring datasets differ.

    Nothing is rounded, and the noise has exactly its law.
    """
    sane(whole(counts) and 1 <= counts <= MOST_COUNTS)
    return float(math.ceil(counts * distance.changed))
