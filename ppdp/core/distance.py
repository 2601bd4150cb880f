"""How far apart two neighbouring datasets can be at one point of a pipeline."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from operator import attrgetter
from typing import Any

from ppdp.exceptions import InvalidParameter


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """A stage's effect on one replaced record, in the words of the literature.

    Attributes
    ----------
    linf : float
        Number of further rows that move (the papers' L∞ sensitivity, a count).
    l2 : float
        How far each of them moves (L2, in the units of the output rows).
    """

    linf: float
    l2: float


@dataclass(frozen=True, slots=True)
class Moves:
    """What is known of each row that moved, beside its L2 length."""

    linf: float | tuple[float, ...]  # most by which an entry differs: of any column, or of each
    l1: float  # most by which the entries differ together
    columns: float  # most columns in which they differ

    @property
    def most(self) -> float:
        """Of any column."""
        return max(self.linf) if isinstance(self.linf, tuple) else self.linf

    def largest(self, by_column: Sequence[float]) -> list[float]:
        """What can change together, the largest first: as many columns as can differ, each with its own weight."""
        each = self.linf if isinstance(self.linf, tuple) else [self.linf] * len(by_column)
        weighed = sorted((abs(weight) * entry for weight, entry in zip(by_column, each, strict=True)), reverse=True)
        return weighed[: int(min(self.columns, len(weighed)))]

    def scaled(self, factors: Sequence[float], most: float, error: float) -> Moves:
        """Behind a map of columns one by one with Lipschitz constants, at most ``most`` apart; ``error``: rounding."""
        slopes = [abs(factor) for factor in factors]
        slope, each = max(slopes), self.linf if isinstance(self.linf, tuple) else (self.linf,) * len(slopes)
        limits = [min(a * entry + 2 * error, most) if entry else 0.0 for a, entry in zip(slopes, each, strict=True)]
        one = not isinstance(self.linf, tuple) and min(slopes) == slope
        linf = limits[0] if one else tuple(limits)
        columns = min(self.columns, len(factors))
        found = Moves(linf, math.inf, columns)
        together = math.fsum(found.largest([1.0] * len(factors)))
        return Moves(linf, min(slope * self.l1 + 2 * error * columns, together), columns)

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        linf = list(self.linf) if isinstance(self.linf, tuple) else self.linf
        return {"linf": linf, "l1": self.l1, "columns": self.columns}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Moves:
        """Inverse of :meth:`to_dict`."""
        linf = data["linf"]
        return cls(tuple(linf) if isinstance(linf, (list, tuple)) else linf, data["l1"], data["columns"])


@dataclass(frozen=True, slots=True)
class GroupMoves:
    """What is known of the moved rows in one group of columns: their number, and L2 lengths there."""

    moved: float
    radius: float
    total: float


@dataclass(frozen=True, slots=True)
class Distance:
    """Row-by-row distance of two datasets with the same public number of rows.

    There is a matching of the slots of the two datasets in which

    * at most ``replaced`` matched rows differ arbitrarily (label and presence included);
    * at most ``toggled`` rows are present on one side only (weight 0 on the other);
    * at most ``moved`` further rows, with equal weight, label and mask of gaps, differ by at most
      ``radius`` each (L2) and by at most ``total`` together (each counted with its weight);
    * at most ``reweighted`` rows, present on both sides, have different weights;
    * all else is equal.

    Parameters
    ----------
    replaced, toggled, moved : float
        Counts.
    radius, total : float
        L2 lengths, in the units of the rows. ``total`` defaults to ``moved * radius`` and is never more.
    mass : float, optional
        Weight that is not matched, both sides together; ``2 * replaced + toggled`` unless a stage
        proves less.
    one_sided : float, optional
        The same on one side; ``replaced + toggled`` unless a stage proves less. Fitted stages use
        ``mass`` and ``one_sided``, never ``replaced``.
    reordered : float, default=0
        How many more rows count as toggled if rows are matched place by place (see :meth:`by_position`).
    reweighted : float, default=0
        Count; the weight by which they differ is part of ``mass`` and ``one_sided``.

    Attributes
    ----------
    sums, moments : float
        Most that ``Σ w x`` (L2) and ``Σ w x xᵀ`` (Frobenius norm) can change, where the last stage has proved more than
        follows from the rest. Whatever comes next forgets it.
    moves : Moves or None
        More about each row that moved, as far as it is known. Only maps of every column by itself, and projections,
        pass it on.
    groups : tuple of GroupMoves
        How rows moved in every group of columns of the domain; empty where nothing more is known. Only stages for one
        group pass it on.

    Notes
    -----
    Source: ``docs/theory/distance.md``; Lemma Z there is why fitted stages need ``one_sided``.

    Examples
    --------
    >>> Distance(replaced=1)
    Distance(replaced=1, toggled=0, moved=0, radius=0.0, total=0.0, mass=2.0, one_sided=1.0, reordered=0, reweighted=0)
    """

    replaced: float = 0
    toggled: float = 0
    moved: float = 0
    radius: float = 0.0
    total: float = math.nan
    mass: float = math.nan
    one_sided: float = math.nan
    reordered: float = 0
    reweighted: float = 0
    # Not for the constructor, so that dataclasses.replace() loses them, too.
    sums: float = field(default=math.inf, init=False, repr=False)
    moments: float = field(default=math.inf, init=False, repr=False)
    moves: Moves | None = field(default=None, init=False, repr=False)
    groups: tuple[GroupMoves, ...] = field(default=(), init=False, repr=False)

    def __post_init__(self) -> None:
        moves = self.moved * self.radius
        if self.total > 0 and not moves > 0:
            raise InvalidParameter("Distance.total is positive although no row moves.")
        mass = _settled(self.mass, 2.0 * self.replaced + self.toggled + self.reweighted)
        one_sided = _settled(self.one_sided, self.replaced + self.toggled + self.reweighted)
        object.__setattr__(self, "total", _settled(self.total, moves))
        object.__setattr__(self, "mass", mass)
        object.__setattr__(self, "one_sided", min(one_sided, mass))
        if not all(0 <= value < math.inf for value in _given(self)):
            raise InvalidParameter("every component of a Distance must be finite and not negative.")

    @property
    def components(self) -> tuple[float, ...]:
        """All numbers; where none of them is greater, neighbouring datasets are no further apart."""
        known = self.moves
        by_group = (number for group in self.groups for number in (group.moved, group.radius, group.total))
        entries = (math.inf,) * 3 if known is None else (known.most, known.l1, known.columns)
        return *_components(self), *entries, *by_group

    @property
    def aligned(self) -> bool:
        """Whether rows match by position (otherwise only up to a permutation)."""
        return self.reordered == 0

    @property
    def changed(self) -> float:
        """Number of slots in which the two datasets differ at all."""
        return self.replaced + self.toggled + self.moved + self.reweighted

    @property
    def unmatched(self) -> tuple[float, float]:
        """Unmatched weight as (paired, single).

        The worst split of the unmatched weight: ``paired`` of it stands on both sides (as if
        replaced), ``single`` on one side only (as if toggled); ``paired + single = one_sided``.
        """
        paired = max(0.0, min(self.one_sided, self.mass - self.one_sided))
        return paired, self.one_sided - paired

    def among(self, n_rows: int) -> Distance:
        """The distance of any ``n_rows`` rows that are chosen by public position."""
        near = self.by_position()
        return replace(
            near,
            replaced=min(near.replaced, n_rows),
            toggled=min(near.toggled, n_rows),
            moved=min(near.moved, n_rows),
            mass=min(near.mass, 2 * n_rows),
            one_sided=min(near.one_sided, n_rows),
            reweighted=min(near.reweighted, n_rows),
        )

    def knowing(self, *, sums: float, moments: float) -> Distance:
        """The same distance, with what is proved of the sums."""
        found = replace(self)
        object.__setattr__(found, "sums", sums)
        object.__setattr__(found, "moments", moments)
        return found

    def moving(self, moves: Moves | None) -> Distance:
        """The same distance, with what is known of each row that moved; nothing else that was known stays."""
        found = replace(self)
        object.__setattr__(found, "moves", moves)
        return found

    def in_groups(self, groups: Sequence[GroupMoves]) -> Distance:
        """The same distance, with how rows moved in every group of columns; nothing else that was known stays."""
        found = replace(self)
        object.__setattr__(found, "groups", tuple(groups))
        return found

    def moved_by_entries(self, n_features: int) -> float:
        """Most by which the entries of a row that moved differ together (L1)."""
        columns = n_features if self.moves is None else min(self.moves.columns, n_features)
        bound = math.sqrt(columns) * self.radius
        return bound if self.moves is None else min(bound, self.moves.l1)

    def by_position(self) -> Distance:
        """The distance when rows must be matched position by position."""
        if self.aligned:
            return self
        return replace(
            self,
            toggled=self.toggled + self.reordered,
            mass=self.mass + self.reordered,
            one_sided=self.one_sided + self.reordered / 2,
            reordered=0,
        )

    def moved_as_replaced(self) -> Distance:
        """The distance after a map that may tear apart rows that moved."""
        return Distance(
            replaced=self.replaced + self.moved,
            toggled=self.toggled,
            mass=self.mass + 2 * self.moved,
            one_sided=self.one_sided + self.moved,
            reordered=self.reordered,
            reweighted=self.reweighted,
        )

    def stretched(self, factor: float, diameter: float = math.inf) -> Distance:
        """The distance after a public row-wise map with this Lipschitz constant."""
        radius = min(self.radius * factor, diameter)
        return replace(self, radius=radius, total=min(self.total * factor, self.moved * radius))

    def jittered(self, error: float) -> Distance:
        """The distance after each side of every moved row was rounded by at most ``error``."""
        if self.moved == 0:
            return self
        return replace(self, radius=self.radius + 2 * error, total=self.total + 2 * error * self.moved)

    def widened(
        self, n_rows: int, rows: float, radius: float, total: float = math.inf, diameter: float = math.inf
    ) -> Distance:
        """The distance after up to ``rows`` rows moved by at most ``radius`` more, ``total`` in all."""
        moved = min(n_rows - min(self.replaced, n_rows), self.moved + rows)
        wide = min(self.radius + radius, diameter)
        return replace(self, moved=moved, radius=wide, total=min(self.total + min(rows * radius, total), moved * wide))

    def shift(self, bound: float, lipschitz: float = math.inf) -> float:
        """Most that a weighted sum of row contributions can change (Theorem E).

        Parameters
        ----------
        bound : float
            Norm of every contribution.
        lipschitz : float
            Lipschitz constant of the contribution in the row.
        """
        moves = 2 * bound * self.moved
        if self.total == 0:
            moves = 0.0
        elif math.isfinite(lipschitz):
            moves = min(lipschitz * self.total, moves)
        return bound * self.mass + moves

    def sum_shift(self, norm: float) -> float:
        """Most that ``Σ w x`` can change in L2, where ``norm`` is the most for a row."""
        return min(self.shift(norm, 1.0), self.sums)

    def moment_shift(self, norm: float) -> float:
        """Most that ``Σ w x xᵀ / (√2 R)`` can change (Frobenius norm), R the norm of rows: R for one replaced row.

        A toggled row costs ``R/√2``, a row that moved by w at most ``√2 |w|``; see
        ``docs/theory/regression-imputation.md``.
        """
        paired, single = self.unmatched
        moves = min(math.sqrt(2) * self.total, norm * self.moved)
        return min(norm * paired + norm * single / math.sqrt(2) + moves, self.moments / (math.sqrt(2) * norm))

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        known: dict[str, Any] = {} if self.moves is None else {"moves": self.moves.to_dict()}
        if self.groups:
            known["groups"] = [asdict(group) for group in self.groups]
        return {**dict(zip(_GIVEN, _given(self))), **known}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Distance:
        """Inverse of :meth:`to_dict`."""
        plain = {name: value for name, value in data.items() if name not in ("moves", "groups")}
        found = cls(**plain)
        if "groups" in data:
            return found.in_groups([GroupMoves(**group) for group in data["groups"]])
        return found.moving(Moves.from_dict(data["moves"])) if "moves" in data else found

    def describe(self) -> str:
        """One line for tables."""
        parts = [f"{self.replaced:g} replaced"]
        if self.toggled:
            parts.append(f"{self.toggled:g} toggled")
        if self.reweighted:
            parts.append(f"{self.reweighted:g} reweighted (weight {self.mass:.3g} in all)")
        if self.moved:
            parts.append(f"{self.moved:g} moved by <= {self.radius:.3g} (in all {self.total:.3g})")
        return ", ".join(parts)


def _settled(value: float, ceiling: float) -> float:
    """The value, or its ceiling where it is not given or more."""
    return float(ceiling) if math.isnan(value) else min(float(value), float(ceiling))


_GIVEN = tuple(f.name for f in fields(Distance) if f.init)
_given: Callable[[Distance], tuple[float, ...]] = attrgetter(*_GIVEN)
_components: Callable[[Distance], tuple[float, ...]] = attrgetter(*_GIVEN, "sums", "moments")
