"""What can be attacked: a map of datasets, with what somebody claims of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ppdp.audit.external_transforms import (
    FITTED,
    RESOLUTION,
    Answer,
    answered,
    as_declared,
    label_values,
    no_output,
    placed,
    present,
)
from ppdp.core.checks import integer, number, positive
from ppdp.core.distance import Distance, Moves, Sensitivity
from ppdp.core.domain import Domain
from ppdp.core.figures import visible
from ppdp.data.rows import Array, Rows
from ppdp.data.statistics import row_norms
from ppdp.exceptions import InvalidParameter
from ppdp.testing.neighbours import Pair, World, allowances, inhabited, measured
from ppdp.transformers.fit_mode import FitMode

Uses = Mapping[str, tuple[float, float]]  # for each quantity what a pair of datasets attains, and what is claimed
Bound = float | Callable[[Array, Array], float]

SHARES = {"lower", "upper"}  # of the rows: no lengths
OF_ROWS = "radius", "total", "entry", "entries", "columns"  # that moved
QUANTITIES = "linf", "l2", "slots", "reweighted", "moved", *OF_ROWS, "mass", "one_sided"
REPLACED = {"slots", "mass", "one_sided"}  # where one of these is claimed, it counts a row whose gaps are others
SAID = 200  # characters of somebody else's error that are shown


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
        rows that are kept. What ``fit_resample`` keeps is read from ``sample_indices_``, in whatever order; a row that
        it repeats has the number of its copies as weight. It must map the same dataset to the same rows each time.
        Whatever the distance, it is handed the rows that are present, each once, and not their weights; so are
        ``holds`` and a bound that is a function. Only ``fit_resample`` is handed labels.
    domain : Domain
        Public facts of both datasets; ``n_rows`` and ``n_features`` are needed. No fewer than ``min_present`` rows are
        present; where none is toggled or reweighted before the map, all are. Labels are the ``classes``, else the ends
        of ``y_range``, else 0 and 1; classes that are words stand in a pair as their positions.
    claimed : Distance, Sensitivity, mapping or callable
        The bound. A mapping holds numbers for "linf" (how many of the rows that both datasets share change), "l2" (how
        far any of them moves, in units of the output), fields of a Distance, or of rows that move "entry" (by how much
        an entry differs), "entries" (all of a row together) and "columns" (in how many a row differs). Instead of a
        number, a function of both arrays is the bound for just these two datasets; where it answers NaN, nothing is
        claimed. The arrays are of different lengths where rows are present on one side only. A stability map ``(Domain,
        Distance) -> (Domain, Distance)`` is evaluated. A row with other gaps (NaN) or infinities than its counterpart
        has moved infinitely far; one with other gaps is a replaced one where "slots", "mass" or "one_sided" is claimed.
        Datasets of different widths are infinitely far apart in everything.
    distance : Distance, optional
        How far apart the two datasets are before it. Default: as neighbours of the domain.
    holds : callable, optional
        ``holds(X) -> bool``: what the claim assumes of each of the two datasets, read off the rows that are present,
        perhaps none.
    gaps : int, optional
        So many rows may have gaps. Default: ``max_missing`` of the domain, or none where it is not declared; give it
        in one of the two places.
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
    distance: Distance | None = None
    holds: Callable[[Array], Any] | None = None
    gaps: int | None = None
    scales: tuple[float, ...] | None = None
    resolution: float | None = None
    name: str = ""
    world: World = field(init=False, repr=False)
    bounds: Mapping[str, Bound] = field(init=False, repr=False)
    moves: Moves = field(init=False, repr=False, default=Moves(1.0, 1.0, 1))  # in whose units entries are measured

    def __post_init__(self) -> None:
        self._check()
        if not self.name:
            kind = self.transform if hasattr(self.transform, "__name__") else type(self.transform)
            object.__setattr__(self, "name", kind.__name__)
        distance = self.distance or self.domain.neighbours
        declared = 0 if self.domain.max_missing is None else self.domain.missing_rows
        gaps = declared if self.gaps is None else self.gaps
        facts = inhabited(self.domain.but(max_missing=gaps), distance)
        given = lengths(self.transform) if self.scales is None else self.scales
        scales = tuple(positive("every one of Claim.scales", scale) for scale in given)
        world = World(facts, distance, min(gaps, facts.n), scales, labels=label_values(self.domain))
        object.__setattr__(self, "distance", distance)
        object.__setattr__(self, "world", world)
        object.__setattr__(self, "bounds", self._bounds())

    def _check(self) -> None:
        """Of what kind the parameters are."""
        maps = callable(self.transform) or any(hasattr(self.transform, name) for name in FITTED)
        wanted = {
            "transform": (maps, "a function of rows, or something with fit_transform or fit_resample"),
            "domain": (isinstance(self.domain, Domain), "a Domain"),
            "distance": (isinstance(self.distance, Distance | None), "a Distance"),
            "scales": (self.scales is None or isinstance(self.scales, Iterable), "a tuple of lengths"),
            "holds": (self.holds is None or callable(self.holds), "a function of rows"),
            "name": (isinstance(self.name, str), "a string"),
        }
        for name, (right, words) in wanted.items():
            if not right:
                kind = type(getattr(self, name)).__name__
                raise InvalidParameter(f"{name} is of type {kind}.", stage="Claim", fix=f"pass {words}.")
        if self.gaps is not None:
            integer("Claim.gaps", self.gaps, least=0)
            if self.domain.max_missing is not None and self.gaps != self.domain.missing_rows:
                problem = f"gaps is {self.gaps}, and the domain declares max_missing = {self.domain.max_missing}."
                raise InvalidParameter(problem, stage="Claim", fix="leave gaps out.")
        integer("Domain.min_present", self.domain.min_present, least=0, most=self.domain.n)
        if self.resolution is not None:
            number("Claim.resolution", self.resolution, least=0)

    def _bounds(self) -> Mapping[str, Bound]:
        """What is claimed, by name: numbers, and functions of both arrays."""
        claimed: Any = self.claimed
        if callable(claimed):
            found = claimed(self.world.domain, self.world.distance)
            claimed = found[1] if isinstance(found, tuple) and len(found) == 2 else None
        if isinstance(claimed, Sensitivity):
            claimed = {"linf": claimed.linf, "l2": claimed.l2}
        if isinstance(claimed, Distance):
            far = claimed.by_position()
            object.__setattr__(self, "moves", far.moves or self.moves)
            claimed = {name: value for name, value in allowances(far).items() if name in QUANTITIES}
        if not isinstance(claimed, Mapping) or not claimed:
            fix = "claim a Distance, a Sensitivity, a map to (Domain, Distance), or numbers: {'l2': 0.2}."
            raise InvalidParameter("nothing is claimed.", stage=self.name, fix=fix)
        unknown = sorted(str(name) for name in claimed if name not in QUANTITIES)
        if unknown:
            raise InvalidParameter(f"unknown quantities: {unknown}.", stage=self.name, fix=f"use {QUANTITIES}.")
        return {name: bound if callable(bound) else self._number(name, bound) for name, bound in claimed.items()}

    def _number(self, name: str, bound: Any) -> float:
        """A bound that is a number; below zero by rounding at most."""
        plain = _scalar(bound)
        with suppress(OverflowError):
            if isinstance(plain, Real) and float(plain) >= -RESOLUTION:
                return float(plain)
        fix = "claim a number of at least 0, or a function of both arrays that returns one."
        raise InvalidParameter(f"the bound of {name} is {bound!r}.", stage=self.name, fix=fix)

    def _bound(self, name: str, pair: Pair) -> float | None:
        """What is claimed of a pair; None where a function answers NaN."""
        bound = self.bounds[name]
        if not callable(bound):
            return bound
        found = _scalar(bound(*map(present, pair)))
        return None if isinstance(found, Real) and found != found else self._number(name, found)

    def uses(self, pair: Pair) -> Uses | None:
        """What a pair attains, and what is claimed of it; None where nothing is, or where the transform refuses it.

        Parameters
        ----------
        pair : tuple of Rows
            Both datasets; slot i of the one belongs to slot i of the other.
        """
        if not self._about(pair):
            return None
        answers = self._answers(*pair)
        if isinstance(answers, Exception):
            return None
        with no_output():
            found, slack = self._found(pair, answers)
            bounds = {name: self._bound(name, pair) for name in self.bounds}
        uses = {name: (found[name], bound) for name, bound in bounds.items() if bound is not None}
        rounded = {name: bound < value <= bound + slack.get(name, 0.0) for name, (value, bound) in uses.items()}
        return {name: (bound if rounded[name] else value, bound) for name, (value, bound) in uses.items()}

    def failure(self, pair: Pair) -> str | None:
        """What the transform raises on a pair of which something is claimed, in one line; None if nothing."""
        answers = self._answers(*pair) if self._about(pair) else None
        return one_line(answers) if isinstance(answers, Exception) else None

    def refuse_random(self, *datasets: Rows) -> None:
        """Map each of some datasets twice; answers that differ by more than rounding would pass for what a row does."""
        for rows in datasets:
            answers = self._answers(rows, rows)
            if isinstance(answers, Exception):
                continue
            with np.errstate(all="ignore"):
                found, _ = self._found((rows, rows), answers)
            if any(found.values()):
                problem = "it maps the same dataset to different rows: it is random, or remembers what it mapped."
                fix = "fix its random_state, or claim each draw by itself."
                raise InvalidParameter(problem, stage=self.name, fix=fix)

    def _about(self, pair: Pair) -> bool:
        """Whether anything is claimed of a pair."""
        with no_output():
            return self.world.allows(pair) and (self.holds is None or all(self.holds(present(rows)) for rows in pair))

    def _answers(self, *datasets: Rows) -> list[Answer] | Exception:
        """What the transform makes of the rows that are present, or raises: rows that it refuses show nothing."""
        labels = (None if rows.y is None else as_declared(rows.y[rows.weight > 0], self.domain) for rows in datasets)
        try:
            with no_output():
                return [answered(self.transform, present(rows), y) for rows, y in zip(datasets, labels)]
        except Exception as error:
            return error

    def _found(self, pair: Pair, answers: Sequence[Answer]) -> tuple[dict[str, float], dict[str, float]]:
        """What two answers attain of every quantity, and how much of it may be rounding."""
        (left, coarse), (right, other) = (placed(*answer, rows, self.name) for answer, rows in zip(answers, pair))
        if left.X.shape != right.X.shape:
            return dict.fromkeys(QUANTITIES, math.inf), {}
        resolution = max(coarse, other) if self.resolution is None else self.resolution
        finite = np.where(np.isfinite(left.X), left.X, 0.0)
        least = resolution * max(self.world.length, float(row_norms(finite).max(initial=0.0)))
        right, shared = _settled(left, right, least), slice(len(self.world.free), None)
        width = left.X.shape[1]
        if isinstance(self.moves.linf, tuple) and len(self.moves.linf) != width:
            problem = f"limits of {len(self.moves.linf)} columns are claimed, and its output has {width}."
            raise InvalidParameter(problem, stage=self.name, fix="claim a limit for every column of the output.")
        found = measured((left, right), self.world.free, self.moves)
        apart = np.abs(np.nan_to_num(left.X) - np.nan_to_num(right.X))[shared] > least
        found["columns"] = min(found["columns"], float(apart.sum(axis=1).max(initial=0)))
        there = ((left.weight > 0) & (right.weight > 0))[shared]
        torn, radius = int((there & _other_gaps(left, right)[shared]).sum()), found["radius"]
        if torn and not REPLACED & set(self.bounds):
            found |= {"moved": found["moved"] + torn, **dict.fromkeys(OF_ROWS, math.inf)}
        same = ((left.X == right.X) | (np.isnan(left.X) & np.isnan(right.X))).all(axis=1)
        changed = (~same | (left.weight != right.weight))[shared].sum()
        found |= {"l2": math.inf if torn else radius, "linf": float(changed)}
        slack = {"total": least * left.n, "entries": least * width}
        return found, {**dict.fromkeys(("l2", "radius", "entry"), least), **slack}


def _other_gaps(left: Rows, right: Rows) -> NDArray[np.bool_]:
    return np.asarray((np.isnan(left.X) != np.isnan(right.X)).any(axis=1))


def _settled(left: Rows, right: Rows, least: float) -> Rows:
    """The right dataset without the moves that are only rounding."""
    move = row_norms(np.nan_to_num(left.X) - np.nan_to_num(right.X))
    still = ~_other_gaps(left, right) & (move <= least) & (left.weight == right.weight)
    return right.with_X(np.where(still[:, None], left.X, right.X))


def one_line(error: Exception) -> str:
    """Type and text of somebody else's error, harmless on a terminal; about made-up rows, so it may be shown."""
    return visible(" ".join(f"{type(error).__name__}: {error}".split()))[:SAID].removesuffix(": ")


def lengths(transform: Any, *ways: FitMode) -> Iterator[float]:
    """Numbers among the parameters of a transform and its ways: perhaps lengths at which it changes its mind."""
    found = transform.get_params() if hasattr(transform, "get_params") else getattr(transform, "keywords", {})
    resolved = [way.parameters[name] for way in ways for name in way.parameters if name not in SHARES]
    numbers = [*found.values(), *resolved]
    yield from dict.fromkeys(value for value in numbers if isinstance(value, float) and 0 < value < math.inf)


def _scalar(found: Any) -> Any:
    """The number in an array of one."""
    return found.item() if isinstance(found, np.ndarray) and found.size == 1 else found
