"""How far counts of altered rows can be apart: ``docs/theory/altered-shares.md``."""

from __future__ import annotations

import math

from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import LAPLACE, formula, sane, whole
from ppdp.core.rounding import inflate

SHARES, PURE_SHARES = "release.altered-shares", "release.altered-shares-laplace"
MOST_COUNTS = 10_000  # that are released together


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
