"""Every pair of neighbouring datasets of few rows on a small grid: values, gaps, labels, weights, absent rows.

Rows of the grid are in slots. Those that differ stand first, or in any places if a stage looks at the order of rows;
all others are every multiset of the grid, or every sequence.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, combinations_with_replacement, product
from typing import Any

import numpy as np

from ppdp.core.adjacency import Adjacency
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.rows import Rows
from ppdp.mechanisms.base import Mechanism
from ppdp.testing.mechanisms import Trial
from ppdp.testing.neighbours import Pair, World
from ppdp.testing.stages import attained

GAP = math.nan
ADJACENCIES: dict[str, Adjacency | Distance] = {
    "replace": Adjacency.replace(),
    "add_remove": Adjacency.add_remove(),
    "person": Adjacency.user_level(2),
    "change": Adjacency.change(coordinate=0.5),
    "weight": Distance(reweighted=1, mass=0.5, one_sided=0.5),  # behind a stage that gives rows weights
}
MOST_ROWS = 5
NUMBERS = ("radius", "total", "mass", "moments")
"""What of a stage's claim is compared beside counts; of a mechanism's it is its sensitivity, or its loss."""
Option = tuple[tuple[float, ...], float, float]
"""Values, label and weight of a row."""
Shares = dict[tuple[str, str], float]
"""The largest share of what is certified: by mode, and by number of the claim."""


@dataclass(frozen=True)
class Case:
    """A step at settings whose conditions few rows can meet, and the grid of its rows."""

    step: Any
    values: Sequence[tuple[float, ...]]
    labels: Sequence[float] = (0.0,)
    ordered: bool = False  # whether the order of rows matters
    box: bool = False  # whether entries are bounded as well as rows
    absent: bool = False  # whether rows may be absent under any adjacency
    slow: bool = False  # many trees for every pair
    facts: tuple[tuple[str, Any], ...] = ()  # of labels

    def world(self, adjacency: str, n: int) -> Placed:
        """What neighbouring datasets of so many rows may look like."""
        X, kind = np.array(self.values), ADJACENCIES[adjacency]
        gaps = n if np.isnan(X).any() else 0
        X = np.nan_to_num(X)
        known = {"max_missing": gaps, "row_norm": float(np.linalg.norm(X, axis=1).max()), **dict(self.facts)}
        domain = Domain(n_rows=n, n_features=X.shape[1], **known)
        if self.box:
            domain = domain.but(entry_bound=float(np.abs(X).max()))
        if isinstance(kind, Distance):
            return Placed(domain.but(min_present=n), kind, gaps, labels=tuple(self.labels))
        domain = domain.but(adjacency=kind, min_present=0 if kind.unbounded or self.absent else n)
        return Placed(domain, kind.entrance_distance(domain.d), gaps, labels=tuple(self.labels))

    def most(self, adjacency: str) -> int:
        """Pairs of one number of rows that are compared at length: five rows, but of two rows of a person."""
        if self.slow:
            return 1000
        if self.ordered:
            return 16_000
        return 5000 if adjacency == "person" else 2000

    def pairs(self, adjacency: str, n: int, most: int) -> Iterator[tuple[Placed, Pair]]:
        """All pairs of so many rows; none if they are more than so many."""
        world, rows = self.world(adjacency, n), list(product(self.values, self.labels, (1.0,)))
        rows += _absent(rows) * (self.absent and adjacency == "replace")
        changed, others = _changed(rows, adjacency), rows + _absent(rows) * (adjacency in ("add_remove", "person"))
        count = len(changed[0][0]) if changed else 0
        size, left = len(others), n - count
        places = list(combinations(range(n), count)) if self.ordered else [tuple(range(count))]
        tails = size**left if self.ordered else math.comb(size + left - 1, left)
        if len(changed) * len(places) * tails > most:
            return
        rest = list(product(others, repeat=left) if self.ordered else combinations_with_replacement(others, left))
        for here, (one, other), tail in product(places, changed, rest):
            placed = replace(world, places=here)
            yield placed, (placed.dataset(one + tail), placed.dataset(other + tail))


@dataclass(frozen=True)
class Placed(World):
    """Neighbouring datasets that differ in these slots."""

    places: tuple[int, ...] = (0,)

    @property
    def free(self) -> Any:
        return () if self.distance.moved or self.distance.reweighted else self.places

    @property
    def roles(self) -> Any:
        return (), (), (), [*self.places] if self.distance.moved else [], ()

    def dataset(self, slots: Sequence[Option]) -> Rows:
        """Those that differ come first, and are put into their places."""
        X, y, weight = (np.array(column, dtype=np.float64) for column in zip(*slots))
        order = np.argsort([*self.places, *(slot for slot in range(len(slots)) if slot not in self.places)])
        return Rows(X[order], y[order], weight[order], X[order])


def _absent(rows: Sequence[Option]) -> list[Option]:
    return [((0.0,) * len(rows[0][0]), 0.0, 0.0)]


def _changed(rows: list[Option], adjacency: str) -> list[tuple[tuple[Option, ...], tuple[Option, ...]]]:
    """What the slots that differ hold on both sides."""
    if adjacency == "replace":
        return [((one,), (other,)) for one, other in combinations(rows, 2)]
    if adjacency == "add_remove":
        return [((row,), (gone,)) for row, gone in product(rows, _absent(rows))]
    if adjacency == "person":
        return list(combinations(combinations_with_replacement(rows + _absent(rows), 2), 2))
    if adjacency == "weight":
        return [((row,), ((*row[:2], 0.5),)) for row in rows]
    return [((one,), (other,)) for one, other in combinations(rows, 2) if _is_near(one, other)]


def _is_near(one: Option, other: Option) -> bool:
    """Whether one value differs, by half a unit at most, and nothing else."""
    apart = np.abs(np.subtract(np.nan_to_num(one[0]), np.nan_to_num(other[0])))
    same = one[1:] == other[1:] and np.array_equal(np.isnan(one[0]), np.isnan(other[0]))
    return bool(same and np.count_nonzero(apart) == 1 and apart.max() <= 0.5 + 1e-12)


def closest(case: Case, adjacency: str, most: int) -> tuple[int, int, Shares]:
    """How many pairs were compared, of how many rows at most, and the largest shares of what is certified.

    Raises
    ------
    AssertionError
        If a pair exceeds something.
    PpdpError
        If the step is refused behind such neighbours.
    """
    compared, largest, shares = 0, 0, Shares()
    for n in range(2, MOST_ROWS + 1):
        pairs = list(case.pairs(adjacency, n, most))
        if not pairs:
            continue
        compared, largest = compared + len(pairs), n
        for found in _shares(case, adjacency, n, pairs):
            for key, share in found.items():
                shares[key] = max(share, shares.get(key, 0.0))
    return compared, largest, shares


def _shares(case: Case, adjacency: str, n: int, pairs: list[tuple[Placed, Pair]]) -> Iterator[Shares]:
    world, step = case.world(adjacency, n), case.step
    if isinstance(step, Mechanism):
        trial = Trial.of(step, world)
        yield from ({("answers", "claimed"): trial.use(pair)} for _, pair in pairs)
        return
    for mode in step.fit_modes(world.domain, world.distance):
        for here, pair in pairs:
            uses = attained(step, mode, here, pair)
            yield {(mode.name, name): uses[name][0] / uses[name][1] for name in NUMBERS if uses.get(name, (0, 0))[1]}
