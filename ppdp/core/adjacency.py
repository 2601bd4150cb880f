"""Which datasets are neighbours: a class for each adjacency, with all that depends on it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, NamedTuple

from ppdp.core.checks import columns_of, integer, length
from ppdp.core.distance import Distance, Moves
from ppdp.core.keywords import warn_of_name
from ppdp.core.names import is_again
from ppdp.exceptions import InvalidParameter

Limit = float | tuple[tuple[str | int, float], ...]

NAMED = 5
MOST_COLUMNS = 2**22  # so that a certificate that anybody may have written fills no memory
KINDS: dict[tuple[str, ...], type[Adjacency]] = {}
"""Classes by the keys of their JSON form; each enters itself."""

UNPROTECTED = "which rows there are, their labels, gaps and categories are public and not protected"


class Phrases(NamedTuple):
    """What is said of an adjacency."""

    unit: str  # what is protected
    neighbours: str  # what neighbouring datasets are
    change_made: str  # what happened to one of them, as a sentence
    alternatives: str  # between what an attacker chooses
    asked: str  # that as a question
    secret: str = "one person's rows"  # what an attacker does not know who knows all else
    known: str = "every row except one person's"  # and what they know of the rows
    capped: str = "rows that any such table may have"  # of what n_rows is the most, where the number is private


class Adjacency(ABC):
    """Which datasets are neighbours, that is, what a certificate protects.

    Made by :meth:`replace`, :meth:`add_remove`, :meth:`person` or :meth:`change`. Another one is a subclass with
    ``keys``.

    Attributes
    ----------
    rows : int
        Most rows in which two neighbouring datasets differ, all of one person; behind the cut to so many, for persons.
    row_level : bool
        Whether it protects everything about a row, and that it is there.
    bounded : bool
        Whether rows that came in differ only where one was replaced: none was changed a little, none is missing.
    unbounded : bool
        Whether the number of rows is private, and what is declared a cap on it.
    bounds_contributions : bool
        Whether a fit is told whose each row is, and keeps at most ``rows`` of everybody's.
    unit, words : str
        What is protected, and what neighbouring datasets are.

    Examples
    --------
    >>> Adjacency.replace().unit, Adjacency.replace(rows=3).unit
    ('any one row', 'any 3 rows of one person')
    >>> Adjacency.replace(rows=3).distance.describe()
    '3 replaced'
    >>> Adjacency.add_remove().distance.describe()
    '0 replaced, 1 toggled'
    >>> Adjacency.user_level(max_rows=3).distance.describe()
    '3 replaced'
    >>> Adjacency.change(coordinate=1.0).distance.describe()
    '0 replaced, 1 moved by <= 1 (in all 1)'
    """

    __slots__ = ()
    keys: ClassVar[tuple[str, ...]]  # of the JSON form
    row_level: ClassVar[bool] = True
    bounded: ClassVar[bool] = False
    unbounded: ClassVar[bool] = False
    bounds_contributions: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        if "keys" not in cls.__dict__:
            return
        for keys, known in KINDS.items():
            if {*keys} & {*cls.keys} and not is_again(cls, known):  # a dataclass with slots is made twice
                taken = ", ".join(sorted({*keys} & {*cls.keys}))
                raise InvalidParameter(f"{taken!r} is a key of {known.__qualname__}.", fix="another key.")
        KINDS[cls.keys] = cls

    @property
    @abstractmethod
    def rows(self) -> int:
        """Most rows in which two neighbouring datasets differ."""

    @property
    @abstractmethod
    def phrases(self) -> Phrases:
        """All that is said of it."""

    @property
    def unit(self) -> str:
        """What is protected, in words."""
        return self.phrases.unit

    @property
    def words(self) -> str:
        """What neighbouring datasets are, in words."""
        return self.phrases.neighbours

    @property
    def by_position(self) -> bool:
        """Whether it tells columns by their position."""
        return False

    @staticmethod
    def replace(rows: int = 1) -> Adjacency:
        """Up to ``rows`` rows of one person are replaced: label, gaps and presence included."""
        return Replace(integer("rows", rows))

    @staticmethod
    def add_remove(rows: int = 1) -> Adjacency:
        """One dataset is the other with up to ``rows`` rows of one person more: how many rows there are is private.

        ``Domain.n_rows`` is then a public cap, which must be declared and never read off the rows.
        """
        return AddRemove(integer("rows", rows))

    @staticmethod
    def user_level(max_rows: int) -> Adjacency:
        """All rows of one person, however many, become any number of rows of another, or none.

        A fit is told whose each row is, ``fit(X, y, groups=ids)``, and keeps at most ``max_rows`` of everybody's, drawn
        in secret. How many rows there are, and how many a person has, is private; ``Domain.n_rows`` is a public cap on
        the rows that are kept of all persons together, however many the table has. It must be declared and never read
        off.
        """
        return UserLevel(integer("max_rows", max_rows))

    @staticmethod
    def person(rows: int) -> Adjacency:
        """The earlier name of :meth:`user_level`."""
        warn_of_name("Adjacency.person(rows)", "Adjacency.user_level(max_rows)")
        return Adjacency.user_level(rows)

    @staticmethod
    def change(
        *,
        coordinate: float | Mapping[str | int, float] | None = None,
        count: int = 1,
        l1: float | None = None,
        l2: float | None = None,
    ) -> Adjacency:
        """One row is changed, but not by much: this protects how far values are off, not whether a row is there.

        Labels, gaps, categories, dates and which rows exist are the same in both datasets, so they are not protected.
        Exactly one of ``coordinate``, ``l1`` and ``l2`` is given.
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
        """
        bounds = {"coordinate": coordinate, "l1": l1, "l2": l2}
        given = {name: value for name, value in bounds.items() if value is not None}
        if len(given) != 1 or (coordinate is None and count != 1):
            what = "Adjacency.change needs one bound on the change."
            raise InvalidParameter(what, fix="coordinate= with count=, or l1=, or l2=.")
        ((kind, value),) = given.items()
        return Change(
            kind, _limits(value) if isinstance(value, Mapping) else length(kind, value), integer("count", count)
        )

    @property
    def distance(self) -> Distance:
        """How far apart neighbouring datasets are before any stage, whatever columns they have."""
        return self.entrance_distance(None)

    @abstractmethod
    def entrance_distance(self, n_features: int | None, names: Sequence[Any] | None = None) -> Distance:
        """How far apart neighbouring datasets of these columns are before any stage; refused if a named one is none."""

    def named(self, names: Sequence[Any] | None) -> Adjacency:
        """The same with names for positions, where columns have names.

        Examples
        --------
        >>> Adjacency.change(coordinate={1: 0.5}).named(["age", "income"]).limit
        (('income', 0.5),)
        """
        return self

    @property
    def one_row(self) -> bool:
        """Whether neighbours differ in one row only, which stands in one of several disjoint parts of the rows."""
        return self.rows == 1 and not self.bounds_contributions

    def group_factor(self, other: Adjacency) -> float:
        """How many steps between neighbours of the other kind make one of this kind; infinite where no number does."""
        if (self != other and not other.row_level) or (self.unbounded and other.bounded):
            return math.inf  # where rows are replaced their number is public
        if other.bounds_contributions:  # each of several new rows may be of a person who has others
            return self.rows + 1 if self.bounded else 1
        if self.bounds_contributions:
            return math.inf  # for any number of rows
        once = -(-self.rows // other.rows)
        return once if self.unbounded == other.unbounded else 2 * once  # rows are removed, then others added

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """JSON form: the rows, or the parameters of :meth:`change`, a mapping as pairs."""

    @classmethod
    @abstractmethod
    def of_dict(cls, data: Mapping[str, Any]) -> Adjacency:
        """Inverse of :meth:`to_dict` for one class."""

    @staticmethod
    def kind_of(data: Mapping[str, Any]) -> type[Adjacency]:
        """The class whose JSON form has these keys; that of :meth:`change` if there is none."""
        return next((kind for keys, kind in KINDS.items() if data and data.keys() <= {*keys}), Change)

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Adjacency:
        """Inverse of :meth:`to_dict`."""
        return Adjacency.kind_of(data).of_dict(data)


@dataclass(frozen=True, slots=True)
class _OfRows(Adjacency):
    """All rows of one person, a fixed number at most."""

    rows: int = 1
    toggles: ClassVar[bool] = False  # whether rows are toggled at the entrance, or replaced

    def entrance_distance(self, n_features: int | None, names: Sequence[Any] | None = None) -> Distance:
        return Distance(toggled=self.rows) if self.toggles else Distance(replaced=self.rows)

    @classmethod
    def of_dict(cls, data: Mapping[str, Any]) -> Adjacency:
        return cls(integer("rows", data[cls.keys[0]]))

    def to_dict(self) -> dict[str, Any]:
        return {self.keys[0]: self.rows}

    def _which(self) -> tuple[str, str, str]:
        if self.rows == 1:
            return "any one row", "one row", "One row is"
        rows = f"{self.rows} rows of one person"
        return f"any {rows}", f"up to {self.rows} rows, all of one person", f"Up to {rows} are"


class Replace(_OfRows):
    """Bounded differential privacy: rows of one person are replaced."""

    __slots__ = ()
    keys = ("replace",)
    bounded = True

    @property
    def phrases(self) -> Phrases:
        unit, which, change = self._which()
        records = "records" if self.rows == 1 else "sets of rows"
        return Phrases(
            unit,
            f"replace {which}; the number of rows is public and fixed",
            f"{change} replaced",
            "two possible records of that person",
            f"which of two possible {records} of that person was used",
        )


class AddRemove(_OfRows):
    """Unbounded differential privacy: rows of one person are added or removed."""

    __slots__ = ()
    keys = ("add_remove",)
    unbounded = toggles = True

    @property
    def phrases(self) -> Phrases:
        unit, which, change = self._which()
        record = "record" if self.rows == 1 else "set of rows"
        return Phrases(
            f"{unit} and the number of rows",
            f"add or remove {which}; the number of rows is private, at most the declared n_rows",
            f"{change} added or removed",
            f"the data with and without a possible {record} of that person",
            "whether that person's rows were used",
        )


class UserLevel(_OfRows):
    """User-level differential privacy: all rows of a person, of which at most ``rows`` are kept."""

    __slots__ = ()
    keys = ("person",)
    unbounded = bounds_contributions = True

    @property
    def phrases(self) -> Phrases:
        kept = "1 row of each person is" if self.rows == 1 else f"{self.rows} rows of each person are"
        change = "ll rows of one person, however many, become any number of rows of another, or none"
        return Phrases(
            "any one person with all of their rows, and the number of rows",
            f"a{change}; at most {kept} kept, drawn in secret; the number of rows is private, and no more than n_rows"
            " are kept",
            "All rows of one person become any number of rows of another, or none",
            "the data with and without a possible set of rows of that person",
            "whether that person's rows were used, or which of two row sets is theirs,",
            capped=f"rows that are kept of all persons together, {self.rows} of each at most",
        )


@dataclass(frozen=True, slots=True)
class Change(Adjacency):
    """Metric privacy: the values of one row are changed by at most a limit, in raw units."""

    keys = ("coordinate", "l1", "l2", "count")
    row_level = False
    kind: str
    limit: Limit
    count: int = 1

    @property
    def rows(self) -> int:
        return 1

    def entrance_distance(self, n_features: int | None, names: Sequence[Any] | None = None) -> Distance:
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
        return isinstance(self.limit, tuple) and not all(isinstance(column, str) for column, _ in self.limit)

    def named(self, names: Sequence[Any] | None) -> Adjacency:
        if names is None or not isinstance(self.limit, tuple):
            return self
        words: dict[Any, Any] = {position: name for position, name in enumerate(names) if isinstance(name, str)}
        return Change(self.kind, tuple((words.get(column, column), entry) for column, entry in self.limit), self.count)

    @property
    def phrases(self) -> Phrases:
        limit = self._limit()
        return Phrases(
            f"how far the values of any one row are off, {limit}",
            f"change one row {limit}; {UNPROTECTED}",
            f"The values of one row are changed, {limit}",
            "that row with and without the change",
            f"whether the values of one row were changed {limit}",
            "such a change",
            "every row, but for a change of this size in one of them",
        )

    def _limit(self) -> str:
        limit = self.limit
        if isinstance(limit, tuple):
            names = (f"{name if isinstance(name, str) else f'column {name}'}: {entry:g}" for name, entry in limit)
            more = f" and {len(limit) - NAMED} more" if len(limit) > NAMED else ""
            most = f"its limit ({', '.join(islice(names, NAMED))}{more})"
        else:
            most = f"{limit:g}"
        if self.kind != "coordinate":
            return f"by at most {most} in " + ("Euclidean length" if self.kind == "l2" else "the sum over all columns")
        where = "one column" if self.count == 1 else f"up to {self.count} columns"
        return f"in {where} by at most {most}" if isinstance(limit, tuple) else f"by at most {most} in {where}"

    def to_dict(self) -> dict[str, Any]:
        limit = [list(one) for one in self.limit] if isinstance(self.limit, tuple) else self.limit
        return {self.kind: limit, **({"count": self.count} if self.kind == "coordinate" else {})}

    @classmethod
    def of_dict(cls, data: Mapping[str, Any]) -> Adjacency:
        if unknown := sorted(map(str, {*data} - {*cls.keys})):
            what = f"no change of values is bounded by {', '.join(unknown)}."
            fix = f"coordinate, l1 or l2; or {' or '.join(keys[0] for keys in KINDS if len(keys) == 1)} alone."
            raise InvalidParameter(what, fix=fix, parameter="adjacency")
        bounds: dict[str, Any] = {
            name: dict(value) if isinstance(value, list | tuple) else value for name, value in data.items()
        }
        return Adjacency.change(**bounds)


def _limits(by_column: Mapping[str | int, float]) -> Limit:
    if not by_column:
        raise InvalidParameter("coordinate names no column.", fix="coordinate={'age': 5.0, ...}.")
    return tuple(
        (
            str(column) if isinstance(column, str) else integer("a column of coordinate", column, least=0),
            length("coordinate", entry),
        )
        for column, entry in by_column.items()
    )


def _by_column(
    limit: tuple[tuple[str | int, float], ...], count: int, n_features: int | None, names: Sequence[Any] | None
) -> Distance:
    if n_features is None:
        what = "the adjacency names columns, and their number is not known."
        raise InvalidParameter(what, fix="pass Domain(n_features=...).")
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
