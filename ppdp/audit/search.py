"""Climbing: pairs of datasets that come ever closer to a bound, or exceed it.

First pairs are drawn. Then, for one quantity after the other, the best, or the best of some fresh ones, is climbed
from: by steps that a :class:`~ppdp.testing.neighbours.World` knows (rows become other rows, gaps and weights
change), and by an optimiser on the coordinates of the pair's distinct rows, so that rows that are equal stay equal.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from operator import itemgetter
from typing import cast

import numpy as np

from ppdp.audit.claims import StabilityTarget, Uses, one_line
from ppdp.core.figures import visible
from ppdp.core.progress import progress
from ppdp.data.rows import Array
from ppdp.exceptions import InvalidParameter, PpdpError
from ppdp.testing.neighbours import Pair, hill_climb

DRAWN = 0.1  # share of the evaluations
CLIMB = 120  # evaluations of one climb
FRESH = 0, 5, 25, 2  # climbs begin in turn at the best so far and at the best of so many fresh pairs
FEW = 80  # coordinates for which a full covariance is worth learning
SIZES = {"row_norm", "entry_bound"}  # facts about single rows: not climbed for
WORST = 1e3  # stands for what nothing is claimed of
TICKS = 200  # of a progress bar


@dataclass(frozen=True, slots=True)
class Found:
    """The pair that attains most of a bound."""

    ratio: float
    attained: float
    claimed: float
    pair: Pair


class _Spent(Exception):
    """The budget is spent, or what was looked for is found."""


@dataclass
class Search:
    """State of one search."""

    target: StabilityTarget
    evaluations: int
    seconds: float = math.inf
    enough: float = math.inf
    best: dict[str, Found] = field(default_factory=dict)
    tried: int = 0
    counted: int = 0
    ticks: Iterator[int] = field(default_factory=lambda: iter(range(TICKS)), repr=False)
    ticked: int = 0
    started: float = field(default_factory=time.monotonic)

    @property
    def elapsed(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self.started

    def ratios(self, pair: Pair) -> dict[str, float]:
        """Share of each bound that a pair attains; more than 1 is a violation. Empty if nothing is claimed of it."""
        if self.tried >= self.evaluations or self.elapsed > self.seconds:
            raise _Spent
        spent = max(self.tried / self.evaluations, self.elapsed / self.seconds)  # pairs or time, what is over sooner
        while self.ticked <= TICKS * spent:
            next(self.ticks, None)
            self.ticked += 1
        self.tried += 1
        uses = self._uses(pair)
        if not uses:
            return {}
        self.counted += 1
        ratios = {name: share(*use) for name, use in uses.items() if not math.isnan(use[0])}
        for name, ratio in ratios.items():
            if name not in self.best or ratio > self.best[name].ratio:
                self.best[name] = Found(ratio, *uses[name], pair)
        if max(ratios.values(), default=0.0) > self.enough:
            raise _Spent
        return ratios

    def _uses(self, pair: Pair) -> Uses | None:
        """What the pair attains; what the code of others raises says whose it is."""
        try:
            return self.target.uses(pair)
        except PpdpError:
            raise
        except Exception as error:
            problem = f"it raised {one_line(error)} on made-up rows."
            fix = "mend it: it must take whatever rows its domain allows."
            raise InvalidParameter(problem, stage=self.target.name, fix=fix) from error

    def climb(self, name: str, fresh: int, rng: np.random.Generator) -> None:
        """Climb for one quantity, from the best pair so far or from the best of some fresh ones."""
        pair, most = self.best[name].pair, self.best[name].ratio
        if fresh:
            drawn = [self.target.world.drawn(rng) for _ in range(fresh)]
            most, pair = max(((self._ratio(name, one), one) for one in drawn), key=itemgetter(0))
        most, pair = hill_climb(self.target.world.varied, pair, most, lambda one: self._ratio(name, one), rng, CLIMB)
        if 0 < most < math.inf:
            self._moved(name, pair, rng)

    def _ratio(self, name: str, pair: Pair) -> float:
        return self.ratios(pair).get(name, -math.inf)

    def _moved(self, name: str, pair: Pair, rng: np.random.Generator) -> None:
        """Hand the coordinates of the distinct rows to an optimiser."""
        values, rebuilt = _coordinates(pair)
        weights, labels = (np.stack([getattr(rows, part) for rows in pair]) for part in ("weight", "y"))

        def loss(vector: Array) -> float:
            trial = self.target.world.legal(rebuilt(np.asarray(vector)), weights, labels)
            return float(np.clip(-self._ratio(name, trial), -WORST, WORST))

        _minimise(loss, values, 0.1 * self.target.world.length, rng)


def share(attained: float, claimed: float) -> float:
    """Attained over claimed; of a claim of nothing infinite, of an infinite one nothing."""
    if claimed == math.inf or attained == 0:
        return 0.0
    return attained / claimed if claimed > 0 else math.inf


def _coordinates(pair: Pair) -> tuple[Array, Callable[[Array], Array]]:
    """Coordinates of the distinct rows of both tables, and the way back to the tables."""
    tables = np.stack([rows.X for rows in pair])
    flat = tables.reshape(-1, tables.shape[2])
    gaps = np.isnan(flat)
    _, first, own = np.unique(np.hstack([np.nan_to_num(flat), gaps]), axis=0, return_index=True, return_inverse=True)
    distinct = flat[first]
    known = ~np.isnan(distinct)

    def rebuilt(vector: Array) -> Array:
        rows = distinct.copy()
        rows[known] = vector
        return np.asarray(rows[own.ravel()].reshape(tables.shape))

    return distinct[known], rebuilt


def _minimise(loss: Callable[[Array], float], start: Array, size: float, rng: np.random.Generator) -> None:
    """CMA-ES where it is installed, else Powell's method; whatever is tried is remembered by the loss."""
    if len(start) > 1 and find_spec("cma"):
        import cma

        options = {
            "seed": math.nan,
            "randn": lambda *shape: rng.standard_normal(shape),
            "verbose": -9,
            "maxfevals": CLIMB,
            "CMA_diagonal": len(start) > FEW,
            "maxstd": 10 * size,  # nothing is gained far away, and a flat loss would lead there
        }
        strategy = cma.CMAEvolutionStrategy(start, size, options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it speaks of its own state, which may be degenerate
            while not strategy.stop() and np.isfinite(strategy.sigma):
                trials = strategy.ask()
                strategy.tell(trials, [loss(trial) for trial in trials])
    elif len(start):
        from scipy.optimize import minimize

        minimize(loss, start, method="Powell", options={"maxfev": CLIMB, "xtol": 1e-3 * size})


def search(
    target: StabilityTarget, *, evaluations: int, seconds: float = math.inf, enough: float = math.inf, seed: int = 0
) -> Search:
    """The pairs that attain most of what is claimed, among so many and in so many seconds, until one has ``enough``."""
    rng = np.random.default_rng(seed)
    drawn = max(1, int(DRAWN * evaluations))
    rounds = 1 + (evaluations - drawn) // CLIMB  # each takes at least one climb
    bar = cast("Generator[int]", progress(range(TICKS), f"attacking {visible(target.name)}"))
    with closing(bar) as ticks, suppress(_Spent):
        found = Search(target, evaluations, seconds, enough, ticks=ticks)
        for _ in range(drawn):
            found.ratios(target.world.drawn(rng))
        for turn in range(rounds):
            climbable = {name for name, best in found.best.items() if best.claimed > 0 and best.ratio < math.inf}
            names = sorted(climbable - SIZES)
            if names:
                found.climb(names[turn % len(names)], FRESH[turn // len(names) % len(FRESH)], rng)
                continue
            if not found.best or any(best.ratio for best in found.best.values()):
                break
            for _ in range(CLIMB):  # of claims of nothing every pair attains the same, so none is worth climbing from
                found.ratios(target.world.drawn(rng))
    return found
