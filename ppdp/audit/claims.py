"""What can be attacked: a map of datasets, with what somebody claims of it."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ppdp.checks import integer
from ppdp.distance import Distance, Sensitivity
from ppdp.domain import Domain
from ppdp.exceptions import InvalidParameter
from ppdp.neighbours import Pair, World, compared, measured, through
from ppdp.planning.ways import Way
from ppdp.rows import Rows
from ppdp.statistics import row_norms

__all__ = ["Claim", "StabilityTarget", "StageTarget", "lengths"]

Array = NDArray[np.float64]
Uses = Mapping[str, tuple[float, float]]
"""For each quantity what a pair of datasets attains, and what is claimed."""
Bound = float | Callable[[Array, Array], float]

NEIGHBOURS = Distance.neighbours()
SHARES = {"lower", "upper"}  # of the rows: no lengths
RESOLUTION = 1e-9  # of code that computes in float64
QUANTITIES = "linf", "l2", "slots", "reweighted", "moved", "radius", "total", "mass", "one_sided"


class StabilityTarget(Protocol):
    """One claim that an attack tries to refute."""

    @property
    def name(self) -> str:
        """What is attacked, in public words."""

    @property
    def world(self) -> World:
        """Which pairs of datasets the claim is about."""

    def uses(self, pair: Pair) -> Uses | None:
        """What a pair attains; None where nothing is claimed of it."""


@dataclass(frozen=True)
class Claim:
    """A map of datasets, of any library, with a bound that is claimed of it.

    Parameters
    ----------
    transform : callable or transformer
        Fitted on each of two neighbouring datasets and compared row by row: ``transform(X)`` of an array of shape
        (n, d), NaN for gaps; or ``fit_transform`` or ``fit_resample`` of a transformer, which is copied first. A
        callable may return the output rows, as many as came in; or (rows, kept), with a mask of shape (n,) of the
        rows that are kept. What ``fit_resample`` keeps is read from ``sample_indices_``.
    domain : Domain
        Public facts of both datasets; ``n_rows`` and ``n_features`` are needed.
    claimed : Distance, Sensitivity, mapping or callable
        The bound. A mapping holds numbers for "linf" (how many of the rows that both datasets share change), "l2" (how
        far any of them moves, in units of the output) or fields of a Distance. Instead of a number, a function of
        both arrays is the bound for just these two datasets. A stability map ``(Domain, Distance) -> (Domain,
        Distance)`` is evaluated.
    distance : Distance, default=one replaced row
        How far apart the two datasets are before it.
    holds : callable, optional
        ``holds(X) -> bool``: what the claim assumes of each of the two datasets.
    gaps : int, default=0
        So many rows may have gaps.
    scales : tuple of float, optional
        Lengths at which the map changes its mind. Default: the numbers among the transformer's parameters.
    resolution : float, optional
        Rows that move by less did not move, and a bound that is exceeded by less is kept, as a share of the longest
        row: foreign code rounds. Default: 1e-9, or 100 units in the last place of the output's own numbers if they
        are coarser (1.2e-5 of float32). Give it for code that computes in float32 and answers in float64.
    name : str, optional
        Default: the name of the transform.

    Examples
    --------
    >>> import numpy as np
    >>> domain = Domain(n_rows=5, n_features=1, row_norm=1.0)
    >>> centring = Claim(lambda X: X - X.mean(axis=0), domain, {"l2": 2 / 5})
    >>> pair = Rows.of([[1.0], [0], [0], [0], [0]]), Rows.of([[-1.0], [0], [0], [0], [0]])
    >>> attained, claimed = centring.uses(pair)["l2"]
    >>> round(attained, 6), claimed
    (0.4, 0.4)
    """

    transform: Any
    domain: Domain
    claimed: Distance | Sensitivity | Mapping[str, Bound] | Callable[[Domain, Distance], tuple[Domain, Distance]]
    distance: Distance = NEIGHBOURS
    holds: Callable[[Array], Any] | None = None
    gaps: int = 0
    scales: tuple[float, ...] | None = None
    resolution: float | None = None
    name: str = ""
    world: World = field(init=False, repr=False)

    def __post_init__(self) -> None:
        n = self.domain.n
        integer("Claim.gaps", self.gaps, least=0)
        if not self.name:
            kind = self.transform if hasattr(self.transform, "__name__") else type(self.transform)
            object.__setattr__(self, "name", kind.__name__)
        whole = self.distance.toggled == self.distance.reweighted == 0
        facts = self.domain.but(max_missing=self.gaps, min_present=n if whole else 0)
        scales = tuple(lengths(self.transform)) if self.scales is None else self.scales
        object.__setattr__(self, "world", World(facts, self.distance, min(self.gaps, n), scales))
        unknown = sorted(set(self._bounds) - set(QUANTITIES))
        if unknown:
            raise InvalidParameter(f"unknown quantities: {unknown}.", stage=self.name, fix=f"use {QUANTITIES}.")

    @property
    def _bounds(self) -> Mapping[str, Bound]:
        claimed = self.claimed
        if callable(claimed):
            _, claimed = claimed(self.world.domain, self.distance)
        if isinstance(claimed, Sensitivity):
            return {"linf": claimed.linf, "l2": claimed.l2}
        if isinstance(claimed, Distance):
            found = claimed.by_position()
            return {"slots": found.replaced + found.toggled} | {
                name: value for name, value in found.to_dict().items() if name in QUANTITIES
            }
        return claimed

    def uses(self, pair: Pair) -> Uses | None:
        """What a pair attains, and what is claimed of it.

        Parameters
        ----------
        pair : tuple of Rows
            Both datasets; slot i of the one belongs to slot i of the other.
        """
        arrays = [rows.X for rows in pair]
        if not self.world.allows(pair) or (self.holds is not None and not all(self.holds(X) for X in arrays)):
            return None
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                (left, coarse), (right, _) = (_mapped(self.transform, rows) for rows in pair)
            except Exception:  # made-up rows that it refuses show nothing
                return None
        if left.X.shape != right.X.shape:
            return None
        resolution = coarse if self.resolution is None else self.resolution
        least = resolution * max(self.world.length, float(row_norms(np.nan_to_num(left.X)).max(initial=0.0)))
        left, right = self._settled(left, right, least)
        found = measured((left, right), self.world.free)
        found |= {"l2": found["radius"], "linf": self._changed(left, right)}
        bounds = {name: bound(*arrays) if callable(bound) else bound for name, bound in self._bounds.items()}
        slack = {"l2": least, "radius": least, "total": least * left.n}
        return {
            name: (_rounded(found[name], float(bound), slack.get(name, 0.0)), float(bound))
            for name, bound in bounds.items()
            if not math.isnan(bound)
        }

    def _settled(self, left: Rows, right: Rows, least: float) -> Pair:
        """Without the moves that are only rounding."""
        move = row_norms(np.nan_to_num(left.X) - np.nan_to_num(right.X))
        same = (np.isnan(left.X) == np.isnan(right.X)).all(axis=1)
        still = same & (move <= least) & (left.weight == right.weight)
        return left, right.with_X(np.where(still[:, None], left.X, right.X))

    def _changed(self, left: Rows, right: Rows) -> float:
        """How many of the rows that both datasets share are not the same behind it."""
        same = ((left.X == right.X) | (np.isnan(left.X) & np.isnan(right.X))).all(axis=1)
        shared = np.arange(left.n) >= len(self.world.free)
        return float((shared & ~(same & (left.weight == right.weight))).sum())


def lengths(transform: Any, *ways: Way) -> Iterator[float]:
    """Numbers among the parameters of a transform and its ways: perhaps lengths at which it changes its mind."""
    found = transform.get_params() if hasattr(transform, "get_params") else getattr(transform, "keywords", {})
    resolved = [way.parameters[name] for way in ways for name in way.parameters if name not in SHARES]
    numbers = [*found.values(), *resolved]
    yield from dict.fromkeys(value for value in numbers if isinstance(value, float) and 0 < value < math.inf)


def _rounded(attained: float, bound: float, slack: float) -> float:
    """What is attained of a bound, without an excess that is only rounding."""
    return bound if bound < attained <= bound + slack else attained


def _mapped(transform: Any, rows: Rows) -> tuple[Rows, float]:
    """What a transform makes of the rows that are present, slot by slot, and how coarse its numbers are."""
    present = np.flatnonzero(rows.weight > 0)
    out, kept = _called(transform, rows.X[present], None if rows.y is None else rows.y[present])
    weight = np.zeros(rows.n)
    slots = present[kept]
    weight[slots] = rows.weight[slots]
    X = np.zeros((rows.n, out.shape[1]))
    X[slots] = out[kept] if len(out) == len(present) else out
    coarse = 100 * float(np.finfo(out.dtype).eps) if np.issubdtype(out.dtype, np.floating) else 0.0
    return Rows(X, None, weight), max(RESOLUTION, coarse)


def _called(transform: Any, X: Array, y: Array | None) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Output rows as they are, and positions of the rows that are kept."""
    kept: Any = np.arange(len(X))
    if hasattr(transform, "fit_resample"):
        own = _copied(transform)
        out = own.fit_resample(X, y)[0]
        kept = own.sample_indices_
    elif hasattr(transform, "fit_transform"):
        out = _copied(transform).fit_transform(X)
    else:
        out = transform(X)
        if isinstance(out, tuple):
            out, mask = out
            kept = np.flatnonzero(mask)
    out = np.asarray(out.toarray() if hasattr(out, "toarray") else out)
    if out.dtype == object:  # a table of mixed columns
        out = out.astype(np.float64)
    if len(out) not in (len(X), len(kept)):
        raise ValueError("rows are lost, and nobody says which.")
    return out.reshape(len(out), -1), np.asarray(kept)


def _copied(transform: Any) -> Any:
    from sklearn.base import clone

    return clone(transform) if hasattr(transform, "get_params") else copy.deepcopy(transform)


@dataclass(frozen=True)
class StageTarget:
    """What a stage of ppdp certifies of one of its ways."""

    name: str
    stage: Any
    way: Way
    world: World

    def uses(self, pair: Pair) -> Uses | None:
        """What a pair attains; None where a condition fails on one of the two datasets."""
        if not self.world.allows(pair):
            return None
        if any(condition.margin(rows) <= 0 for condition in self.way.conditions for rows in pair):
            return None
        out = through(self.stage, self.way, self.world.domain, pair)
        return {**compared(out, pair, self.world, self.way.distance), **_outgrown(out, self.way.domain)}


def _outgrown(out: Pair, domain: Domain) -> dict[str, tuple[float, float]]:
    """The longest row and the largest entry, where the domain bounds them."""
    X = np.vstack([rows.X for rows in out])
    largest = {
        "row_norm": (float(row_norms(X).max(initial=0.0)), domain.row_norm),
        "entry_bound": (float(np.nanmax(np.abs(X), initial=0.0)), domain.entry_bound),
    }
    return {name: (value, bound) for name, (value, bound) in largest.items() if bound is not None}
