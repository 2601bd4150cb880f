"""A ruler for neighbouring datasets: how far apart two results are, and how much of a certified distance that is.

:func:`by_position` and :func:`as_multisets` measure;
:class:`Chain` runs stages one after the other.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.rows import Rows
from ppdp.data.statistics import row_norms
from ppdp.transformers.fit_mode import FitMode

ROUNDING = 1 + 1e-9
"""The only excess of a ratio over 1 that a test forgives."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two neighbouring datasets; slot i of the one belongs to slot i of the other."""

    left: Rows
    right: Rows

    @classmethod
    def of(cls, left: object, right: object, labels: tuple[object, object] = (None, None)) -> Pair:
        """A pair of two arrays, all rows present."""
        return cls(Rows.of(np.array(left, float), labels[0]), Rows.of(np.array(right, float), labels[1]))

    @classmethod
    def in_front(cls, n: int, left: Sequence[Any], right: Sequence[Any]) -> Pair:
        """A pair of two columns; the first rows are these, of which None is absent, and all others zeros."""
        sides = []
        for changed in (left, right):
            X, weight = np.zeros((n, 2)), np.ones(n)
            X[: len(changed)] = [row or (0.0, 0.0) for row in changed]
            weight[: len(changed)] = [row is not None for row in changed]
            sides.append(Rows(X, None, weight))
        return cls(*sides)

    def mapped(self, function: Callable[[Rows], Rows]) -> Pair:
        """The pair after a map of datasets."""
        return Pair(function(self.left), function(self.right))


def by_position(pair: Pair, free: Collection[int] = ()) -> Distance:
    """The distance of two datasets slot by slot; the slots in ``free`` are those of replaced rows.

    A present row whose label or mask differs counts as replaced wherever it stands.
    """
    left, right = pair.left, pair.right
    here, there = left.weight > 0, right.weight > 0
    both = here & there
    other = (np.isnan(left.X) != np.isnan(right.X)).any(axis=1)
    if left.y is not None and right.y is not None:
        other |= left.y != right.y
    one, two = (np.where(np.isnan(rows.X), 0.0, rows.X) for rows in (left, right))
    move = np.linalg.norm(one - two, axis=1)
    is_free = np.zeros(left.n, dtype=bool)
    is_free[list(free)] = True
    replaced = both & (other | (is_free & (move > 0)))
    moves = move[both & ~other & ~is_free & (move > 0)]
    only_left, only_right = int((here & ~there).sum()), int((there & ~here).sum())
    count = int(replaced.sum())
    return Distance(
        replaced=count,
        toggled=only_left + only_right,
        moved=len(moves),
        radius=float(moves.max(initial=0.0)),
        total=float(moves.sum()),
        mass=2.0 * count + only_left + only_right,
        one_sided=float(count + max(only_left, only_right)),
    )


def as_multisets(pair: Pair) -> Distance:
    """The distance of two datasets whose equal records are matched, wherever they stand."""

    def records(rows: Rows) -> Counter[bytes]:
        whole = rows.X if rows.y is None else np.column_stack([rows.X, rows.y])
        return Counter(record.tobytes() for record in (whole + 0.0)[rows.weight > 0])

    left, right = records(pair.left), records(pair.right)
    only_left, only_right = (left - right).total(), (right - left).total()
    paired = min(only_left, only_right)
    return Distance(replaced=paired, toggled=only_left + only_right - 2 * paired)


def shares(actual: Distance, certified: Distance) -> dict[str, float]:
    """How much of each certified number is used; more than 1 is a violation."""

    def share(used: float, granted: float) -> float:
        return used / granted if granted else math.inf if used else 0.0

    found = {name: share(getattr(actual, name), getattr(certified, name)) for name in _MEASURES}
    slots = actual.replaced + actual.toggled, certified.replaced + certified.toggled
    return found | {"slots": share(*slots)}


_MEASURES = ("moved", "radius", "total", "mass", "one_sided")


def outgrown(pair: Pair, domain: Domain) -> float:
    """The largest norm or entry of a row as a share of what a domain promises."""
    rows = np.vstack([pair.left.X, pair.right.X])
    norm = row_norms(rows).max() / (domain.row_norm or math.inf)
    return float(max(norm, np.nanmax(np.abs(rows), initial=0.0) / (domain.entry_bound or math.inf)))


@dataclass(frozen=True, slots=True)
class Chain:
    """Stages that go their exact way where they have one, one after the other."""

    steps: tuple[tuple[Any, FitMode, Domain], ...]
    domain: Domain
    distance: Distance

    @classmethod
    def of(cls, stages: Sequence[Any], domain: Domain, distance: Distance) -> Chain:
        """Plan the stages."""
        steps = []
        for stage in stages:
            way = min(stage.fit_modes(domain, distance), key=lambda way: way.name != "exact")
            steps.append((stage, way, domain))
            domain, distance = way.domain, way.distance
        return cls(tuple(steps), domain, distance)

    def run(self, rows: Rows) -> Rows:
        """The rows at the end."""
        for stage, way, domain in self.steps:
            rows = self._with_raw(rows, way)
            rows = stage.apply(rows, stage.prepare(rows, way, domain))
        return rows

    @staticmethod
    def _with_raw(rows: Rows, way: FitMode) -> Rows:
        """Rows that remember themselves as they came into the first stage that is fitted or moves rows."""
        first = rows.raw is None and (way.name != "public" or way.distance.moved)
        return replace(rows, raw=rows.X) if first else rows

    def margin(self, rows: Rows) -> float:
        """The joint margin: the smallest of all conditions, each at the input of its stage."""
        smallest = math.inf
        for stage, way, domain in self.steps:
            rows = self._with_raw(rows, way)
            smallest = min([smallest, *(condition.margin(rows) for condition in way.conditions)])
            rows = stage.apply(rows, stage.prepare(rows, way, domain))
        return smallest

    def use(self, pair: Pair, free: Collection[int]) -> float:
        """The larger share of the certified radius and total that a pair uses, or any number that is exceeded."""
        out = pair.mapped(self.run)
        used = shares(by_position(out, free), self.distance.by_position())
        used["rows"] = outgrown(out, self.domain)
        return max(used["radius"], used["total"], *(share for share in used.values() if share > ROUNDING))
