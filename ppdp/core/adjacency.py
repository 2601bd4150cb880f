"""Which datasets are neighbours; nothing else in the library knows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ppdp.core.checks import columns_of, integer, length
from ppdp.core.distance import Distance, Moves
from ppdp.exceptions import InvalidParameter

Limit = float | tuple[tuple[str | int, float], ...]


@dataclass(frozen=True, slots=True)
class Adjacency:
    """Which datasets are neighbours, that is, what a certificate protects.

    Made by :meth:`replace`, :meth:`add_remove`, :meth:`person` or :meth:`change`.

    Attributes
    ----------
    kind : str
        ``"replace"``, ``"add_remove"``, ``"person"``, or what is bounded of a change: ``"coordinate"``, ``"l1"`` or
        ``"l2"``.
    rows : int
        Most rows in which two neighbouring datasets differ, all of one person; behind the cut to so many, for persons.
    limit : float or tuple of (column, float)
        How far a row may be changed, in raw units.
    count : int
        In how many columns.

    Examples
    --------
    >>> Adjacency.replace().unit, Adjacency.replace(rows=3).unit
    ('any one row', 'any 3 rows of one person')
    >>> Adjacency.replace(rows=3).distance.describe()
    '3 replaced'
    >>> Adjacency.add_remove().distance.describe()
    '0 replaced, 1 toggled'
    >>> Adjacency.person(rows=3).distance.describe()
    '3 replaced'
    >>> Adjacency.change(coordinate=1.0).distance.describe()
    '0 replaced, 1 moved by <= 1 (in all 1)'
    """

    kind: str = "replace"
    rows: int = 1
    limit: Limit = 0.0
    count: int = 1

    @classmethod
    def replace(cls, rows: int = 1) -> Adjacency:
        """Up to ``rows`` rows of one person are replaced: label, gaps and presence included."""
        return cls(rows=integer("rows", rows))

    @classmethod
    def add_remove(cls, rows: int = 1) -> Adjacency:
        """One dataset is the other with up to ``rows`` rows of one person more: how many rows there are is private.

        ``Domain.n_rows`` is then a public cap, which must be declared and never read off the rows.
        """
        return cls("add_remove", integer("rows", rows))

    @classmethod
    def person(cls, rows: int) -> Adjacency:
        """All rows of one person, however many, become any number of rows of another, or none.

        A fit is told whose each row is, ``fit(X, y, groups=ids)``, and keeps at most ``rows`` of everybody's, drawn in
        secret. How many rows there are, and how many a person has, is private; ``Domain.n_rows`` is a public cap on the
        rows that are kept of all persons together, however many the table has. It must be declared and never read off.
        """
        return cls("person", integer("rows", rows))

    @classmethod
    def change(
        cls,
        *,
        coordinate: float | Mapping[str | int, float] | None = None,
        count: int = 1,
        l1: float | None = None,
        l2: float | None = None,
    ) -> Adjacency:
        """One row is changed, but not by much: this protects how far values are off, not whether a row is there.

        Labels, gaps, categories, dates and which rows exist are the same in both datasets, so they are not protected.
        A value is the float64 number that its cell is read as: whole numbers above 2**53 are rounded first, and so are
        decimals.

        Parameters
        ----------
        coordinate : float or mapping of columns to float, optional
            In up to ``count`` columns, by at most so much each, in raw units; columns that a mapping does not name do
            not change. Positions count the features, and become names where these have some; beside ``y`` or ``groups``
            given by name they are refused. Names mean the same in every table.
        count : int, default=1
            In how many columns.
        l1, l2 : float, optional
            By at most so much in all columns together, as a sum or as a Euclidean length.

        Raises
        ------
        InvalidParameter
            If not exactly one of ``coordinate``, ``l1`` and ``l2`` is a positive number.
        """
        given = {
            name: value for name, value in (("coordinate", coordinate), ("l1", l1), ("l2", l2)) if value is not None
        }
        if len(given) != 1 or (coordinate is None and count != 1):
            raise InvalidParameter(
                "Adjacency.change needs one bound on the change.", fix="coordinate= with count=, or l1=, or l2=."
            )
        ((kind, value),) = given.items()
        if isinstance(value, Mapping):
            if not value:
                raise InvalidParameter("coordinate names no column.", fix="coordinate={'age': 5.0, ...}.")
            limit: Limit = tuple(
                (
                    str(column) if isinstance(column, str) else integer("a column of coordinate", column, least=0),
                    length("coordinate", entry),
                )
                for column, entry in value.items()
            )
        else:
            limit = length(kind, value)
        return cls(kind, 1, limit, integer("count", count))

    @property
    def distance(self) -> Distance:
        """How far apart neighbouring datasets are before any stage, whatever columns they have."""
        return self.between(None)

    def between(self, n_features: int | None, names: Sequence[Any] | None = None) -> Distance:
        """How far apart neighbouring datasets of these columns are before any stage.

        Raises
        ------
        InvalidParameter, DomainMismatch
            If a column is named that does not exist.
        """
        if self.record_level:
            return Distance(toggled=self.rows) if self.kind == "add_remove" else Distance(replaced=self.rows)
        columns = math.inf if n_features is None else n_features
        if isinstance(self.limit, tuple):
            return _by_column(self.limit, self.count, n_features, names)
        if self.kind == "coordinate":
            count = min(self.count, columns)
            moves = Moves(self.limit, self.limit * count, count)
            return Distance(moved=1, radius=self.limit * math.sqrt(count)).moving(moves)
        together = self.limit * (math.sqrt(columns) if self.kind == "l2" else 1.0)
        return Distance(moved=1, radius=self.limit).moving(Moves(self.limit, together, columns))

    @property
    def by_position(self) -> bool:
        """Whether it tells columns by their position."""
        return isinstance(self.limit, tuple) and not all(isinstance(column, str) for column, _ in self.limit)

    def named(self, names: Sequence[Any] | None) -> Adjacency:
        """The same with names for positions, where columns have names.

        Examples
        --------
        >>> Adjacency.change(coordinate={1: 0.5}).named(["age", "income"]).limit
        (('income', 0.5),)
        """
        if names is None or not self.by_position:
            return self
        known = {position: name for position, name in enumerate(names) if isinstance(name, str)}
        pairs: Any = self.limit
        return replace(self, limit=tuple((known.get(column, column), entry) for column, entry in pairs))

    @property
    def record_level(self) -> bool:
        """Whether it protects everything about a row, and that it is there."""
        return self.replaces or self.hides_number

    @property
    def replaces(self) -> bool:
        """Whether rows that came in differ only where one was replaced: none was changed a little, none is missing."""
        return self.kind == "replace"

    @property
    def hides_number(self) -> bool:
        """Whether the number of rows is private, and what is declared a cap on it."""
        return self.kind == "add_remove" or self.cuts

    @property
    def capped(self) -> str:
        """Of what a declared number of rows is the most that there may be, where their number is private."""
        if self.cuts:
            return f"rows that are kept of all persons together, {self.rows} of each at most"
        return "rows that any such table may have"

    @property
    def cuts(self) -> bool:
        """Whether a fit is told whose each row is, and keeps at most ``rows`` of everybody's."""
        return self.kind == "person"

    @property
    def single(self) -> bool:
        """Whether neighbours differ in one row only, which stands in one of several disjoint parts of the rows."""
        return self.rows == 1 and not self.cuts

    @property
    def unit(self) -> str:
        """What is protected, in words."""
        if self.cuts:
            return "any one person with all of their rows, and the number of rows"
        if self.record_level:
            number = " and the number of rows" if self.hides_number else ""
            return ("any one row" if self.single else f"any {self.rows} rows of one person") + number
        return f"how far the values of any one row are off, {self._by}"

    @property
    def words(self) -> str:
        """What neighbouring datasets are, in words."""
        if not self.record_level:
            return f"change one row {self._by}; {UNPROTECTED}"
        if self.cuts:
            kept = "1 row of each person is" if self.rows == 1 else f"{self.rows} rows of each person are"
            return (
                "all rows of one person, however many, become any number of rows of another, or none; at most"
                f" {kept} kept, drawn in secret; the number of rows is private, and no more than n_rows are kept"
            )
        which = "one row" if self.single else f"up to {self.rows} rows, all of one person"
        if self.hides_number:
            return f"add or remove {which}; the number of rows is private, at most the declared n_rows"
        return f"replace {which}; the number of rows is public and fixed"

    @property
    def secret(self) -> str:
        """What an attacker does not know who knows all else."""
        if not self.record_level:
            return "such a change"
        return "one person's rows"

    @property
    def change_made(self) -> str:
        """The same as a sentence: what happened to one of them."""
        if not self.record_level:
            return f"The values of one row are changed, {self._by}"
        if self.cuts:
            return "All rows of one person become any number of rows of another, or none"
        done = "added or removed" if self.hides_number else "replaced"
        return f"One row is {done}" if self.single else f"Up to {self.rows} rows of one person are {done}"

    @property
    def known(self) -> str:
        """Of the rows, what such an attacker knows."""
        if not self.record_level:
            return "every row, but for a change of this size in one of them"
        return "every row except one person's"

    @property
    def alternatives(self) -> str:
        """Between what such an attacker chooses."""
        if not self.record_level:
            return "that row with and without the change"
        one = "possible record" if self.single else "possible set of rows"
        return f"the data with and without a {one} of that person" if self.hides_number else TWO

    @property
    def asked(self) -> str:
        """The same as a question in plain words."""
        if not self.record_level:
            return f"whether the values of one row were changed {self._by}, with even chances,"
        if self.hides_number:
            said = ", or which of two things they say" if self.cuts else ""
            return f"whether one person's rows were used{said}, with even chances,"
        which = "records" if self.single else "sets of rows"
        return f"which of two possible {which} of one person was used, with even chances,"

    @property
    def _by(self) -> str:
        limit = self.limit
        if self.kind != "coordinate":
            length = "in Euclidean length" if self.kind == "l2" else "in the sum over all columns"
            return f"by at most {limit:g} {length}"
        where = "one column" if self.count == 1 else f"up to {self.count} columns"
        if not isinstance(limit, tuple):
            return f"by at most {limit:g} in {where}"
        each = ", ".join(
            f"{column if isinstance(column, str) else f'column {column}'}: {entry:g}" for column, entry in limit[:NAMED]
        )
        more = f" and {len(limit) - NAMED} more" if len(limit) > NAMED else ""
        return f"in {where} by at most its limit ({each}{more})"

    def steps_of(self, other: Adjacency) -> float:
        """How many steps between neighbours of the other kind make one of this kind; infinite where no number does."""
        if (self != other and not other.record_level) or (self.hides_number and other.replaces):
            return math.inf  # where rows are replaced their number is public
        if other.cuts:  # each of several new rows may be of a person who has others
            return self.rows + 1 if self.replaces else 1
        if self.cuts:
            return math.inf  # for any number of rows
        once = -(-self.rows // other.rows)
        return once if self.hides_number == other.hides_number else 2 * once  # rows are removed, then others added

    def to_dict(self) -> dict[str, Any]:
        """JSON form: the rows that are added or removed, or the parameters of :meth:`change`, a mapping as pairs."""
        if self.record_level:
            return {self.kind: self.rows}
        limit = [list(one) for one in self.limit] if isinstance(self.limit, tuple) else self.limit
        return {self.kind: limit, **({"count": self.count} if self.kind == "coordinate" else {})}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Adjacency:
        """Inverse of :meth:`to_dict`.

        Raises
        ------
        InvalidParameter
            If there is no such adjacency.
        """
        for kind, made in (("add_remove", cls.add_remove), ("person", cls.person)):
            if data.keys() == {kind}:
                return made(data[kind])
        if unknown := sorted(map(str, set(data) - {*CHANGES, "count"})):
            raise InvalidParameter(
                f"no change of values is bounded by {', '.join(unknown)}.",
                fix="coordinate, l1 or l2; or add_remove or person alone.",
            )
        bounds: dict[str, Any] = {
            name: dict(value) if isinstance(value, list | tuple) else value for name, value in data.items()
        }
        return cls.change(**bounds)


CHANGES = ("coordinate", "l1", "l2")
NAMED = 5
MOST_COLUMNS = 2**22  # so that a certificate that anybody may have written fills no memory
TWO = "two possible records of that person"
UNPROTECTED = "which rows there are, their labels, gaps and categories are public and not protected"


def _by_column(
    limit: tuple[tuple[str | int, float], ...], count: int, n_features: int | None, names: Sequence[Any] | None
) -> Distance:
    if n_features is None:
        raise InvalidParameter(
            "the adjacency names columns, and their number is not known.", fix="pass Domain(n_features=...)."
        )
    if n_features > MOST_COLUMNS:
        raise InvalidParameter(f"columns have limits of their own in up to {MOST_COLUMNS} columns.", fix="one for all.")
    entries = [0.0] * n_features
    columns = columns_of("Adjacency.change(coordinate=)", [column for column, _ in limit], names, n_features)
    if len(set(columns)) < len(columns):
        raise InvalidParameter("the adjacency names one column twice, by name and by position.", fix="name it once.")
    for position, (_, entry) in zip(columns, limit):
        entries[position] = entry
    largest = sorted(entries, reverse=True)[:count]
    moves = Moves(tuple(entries), math.fsum(largest), min(count, len(limit)))
    return Distance(moved=1, radius=math.hypot(*largest)).moving(moves)
