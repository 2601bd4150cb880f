"""Which datasets are neighbours; nothing else in the library knows."""

from __future__ import annotations

from dataclasses import dataclass

from ppdp.core.checks import integer
from ppdp.core.distance import Distance

__all__ = ["Adjacency"]


@dataclass(frozen=True, slots=True)
class Adjacency:
    """Which datasets are neighbours, that is, what a certificate protects; made by :meth:`replace`.

    Attributes
    ----------
    rows : int
        Most rows in which two neighbouring datasets differ, all of one person.
    distance : Distance
        How far apart they are before any stage.
    unit : str
        What is protected, in words.
    words : str
        What neighbouring datasets are, in words.
    change : str
        The same as a sentence: what happened to one of them.

    Examples
    --------
    >>> Adjacency.replace().unit, Adjacency.replace(rows=3).unit
    ('any one row', 'any 3 rows of one person')
    >>> Adjacency.replace(rows=3).distance.describe()
    '3 replaced'
    """

    rows: int
    distance: Distance
    unit: str
    words: str
    change: str

    @classmethod
    def replace(cls, rows: int = 1) -> Adjacency:
        """Up to ``rows`` rows of one person are replaced: label, gaps and presence included."""
        distance, fixed = Distance(replaced=integer("rows", rows)), "; the number of rows is public and fixed"
        if rows == 1:
            return cls(rows, distance, "any one row", f"replace one row{fixed}", "One row is replaced")
        several = f"{rows} rows of one person"
        words = f"replace up to {rows} rows, all of one person{fixed}"
        return cls(rows, distance, f"any {several}", words, f"Up to {several} are replaced")

    @property
    def single(self) -> bool:
        """Whether neighbours differ in one row only, which stands in one of several disjoint parts of the rows."""
        return self.rows == 1

    def steps_of(self, other: Adjacency) -> int:
        """How many steps between neighbours of the other kind make one of this kind, for group privacy."""
        return -(-self.rows // other.rows)
