"""Privacy losses that are not Gaussian, as public recipes: ``docs/theory/accounting.md``.

A :class:`Part` names a mechanism by its public numbers, so a certificate can record it and anybody can compose it
again. What it costs is computed in every way that holds (exactly as a privacy-loss distribution, as a Rényi curve, or
purely), and the least is taken.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ppdp.exceptions import InvalidParameter

if TYPE_CHECKING:
    from ppdp.privacy.pld import LossDistribution
    from ppdp.privacy.renyi import Curve

__all__ = ["Part", "parts_delta", "parts_epsilon", "parts_renyi"]

KINDS = {
    "laplace": {"shift", "scale"},
    "scalar-laplace": {"shift", "scale"},
    "discrete-laplace": {"shift", "scale"},
    "bounded-range": {"range"},
    "pure": {"epsilon"},
    "poisson": {"replaced", "toggled", "moved", "radius", "total", "rate", "bound", "lipschitz", "noise_scale"},
    "fixed-size": {
        *("replaced", "toggled", "moved", "radius", "total"),
        *("n_rows", "batch_size", "bound", "lipschitz", "noise_scale"),
    },
    "hidden": {"mass", "total", "moved", "n_rows", "bound", "lipschitz", "noise_scale"},
}
CURVED = ("hidden",)  # known by a curve only
_RESOLUTION, _FINEST = 16, 2.0**-40
SPLITS = (0.02, 0.2, 0.5, 0.8, 0.98)  # of delta, between what has a distribution and what has only a curve


@dataclass(frozen=True, slots=True)
class Part:
    """One mechanism, run ``count`` times, each run free to depend on the ones before.

    Attributes
    ----------
    kind : str
        One of "laplace" (a vector; L1 shift and scale), "scalar-laplace" (a number), "discrete-laplace" (an integer),
        "bounded-range" (exponential mechanism), "pure", "poisson" and "fixed-size" (sampled noisy sums), "hidden" (one
        pass, one iterate).
    count : int
        Runs.
    facts : tuple of (str, number)
        Its public numbers, sorted by name.
    """

    kind: str
    count: int
    facts: tuple[tuple[str, float], ...]

    def __post_init__(self) -> None:
        if self.kind not in KINDS or {name for name, _ in self.facts} != KINDS[self.kind]:
            raise InvalidParameter(f"no part of a privacy loss is {self.kind!r} with these numbers.")
        numbers = [self.count, *(value for _, value in self.facts)]
        if self.count < 1 or not all(isinstance(v, (int, float)) and 0 <= v < math.inf for v in numbers):
            raise InvalidParameter(f"the numbers of a {self.kind!r} part must be finite and not negative.")

    @classmethod
    def of(cls, kind: str, *, count: int = 1, **facts: float) -> Part:
        """A part from its numbers."""
        return cls(kind, count, tuple(sorted((name, _plain(value)) for name, value in facts.items())))

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return {"kind": self.kind, "count": self.count, **dict(self.facts)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Part:
        """Inverse of :meth:`to_dict`."""
        facts = {name: value for name, value in data.items() if name not in ("kind", "count")}
        return cls.of(str(data["kind"]), count=int(data["count"]), **facts)

    def describe(self) -> str:
        """One line for people."""
        numbers = ", ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in self.facts)
        return f"{self.count} x {self.kind} ({numbers})"

    @property
    def pure(self) -> float:
        """Epsilon of all runs at delta 0; infinite if there is none."""
        f = dict(self.facts)
        if "scale" in f:
            return self.count * f["shift"] / f["scale"]
        each = {"bounded-range": "range", "pure": "epsilon"}.get(self.kind)
        return self.count * f[each] if each else math.inf

    def curve(self) -> Curve | None:
        """Rényi curve of all runs, if there is a good one."""
        from ppdp.privacy import renyi

        f = dict(self.facts)
        if self.kind in ("laplace", "scalar-laplace"):
            return renyi.repeated(renyi.laplace_curve(f["shift"] / f["scale"]), self.count)
        if self.kind == "bounded-range":
            return renyi.repeated(renyi.bounded_range_curve(f["range"]), self.count)
        if self.kind in ("discrete-laplace", "pure"):
            # Losses within [-ε, ε] have a range of 2ε.
            return renyi.repeated(renyi.bounded_range_curve(2 * self.pure / self.count), self.count)
        if self.kind == "hidden":
            one = renyi.hidden_iterate_curve(
                _distance(f),
                n_rows=int(f["n_rows"]),
                bound=f["bound"],
                lipschitz=f["lipschitz"],
                noise_scale=f["noise_scale"],
            )
            return renyi.repeated(one, self.count)
        return None

    def distribution(self, interval: float) -> LossDistribution | None:
        """Distribution of the privacy loss of all runs, if there is one."""
        from ppdp.privacy import choices, pld

        f = dict(self.facts)
        if self.kind == "bounded-range":
            return choices.bounded_range_distribution(f["range"], self.count, interval)
        if self.kind == "scalar-laplace":
            return pld.laplace_distribution(f["shift"] / f["scale"], interval) * self.count
        if self.kind == "discrete-laplace" and float(f["shift"]).is_integer():
            return pld.discrete_laplace_distribution(int(f["shift"]), 1 / f["scale"], interval) * self.count
        if math.isfinite(self.pure):
            # Vectors: that one coordinate is the worst is not proved for profiles, so only purity is used.
            return _pure_distribution(self.pure / self.count, interval) * self.count
        if self.kind == "hidden":
            return None
        sampled = {"bound": f["bound"], "lipschitz": f["lipschitz"], "noise_scale": f["noise_scale"]}
        if self.kind == "poisson":
            return pld.poisson_distribution(
                _distance(f), rate=f["rate"], steps=self.count, interval=interval, **sampled
            )
        sizes = {"n_rows": int(f["n_rows"]), "batch_size": int(f["batch_size"])}
        return pld.fixed_size_distribution(_distance(f), steps=self.count, interval=interval, **sizes, **sampled)


@lru_cache(maxsize=64)
def parts_epsilon(mu: float, parts: tuple[Part, ...], delta: float, interval: float | None = None) -> float:
    """Smallest epsilon at this delta of a Gaussian loss and parts, composed adaptively with fixed parameters.

    Parameters
    ----------
    mu : float
        Of everything Gaussian together.
    parts : tuple of Part
        Everything else.
    delta : float
        In [0, 1).
    interval : float, optional
        Grid of the distributions to begin with; coarser is faster and larger. It is refined where losses are small.
    """
    from ppdp.privacy.gaussian import gaussian_epsilon
    from ppdp.privacy.renyi import renyi_epsilon

    found = [sum(part.pure for part in parts) + (gaussian_epsilon(mu, delta) if mu else 0.0)]
    if delta > 0:
        curve = _curve(mu, parts)
        if curve is not None:
            found.append(renyi_epsilon(curve, delta))
        found += [_distributed(mu, parts, delta, interval)] + [
            _mixed(mu, parts, delta * share, delta * (1 - share), interval) for share in SPLITS
        ]
    return min(found)


def parts_delta(mu: float, parts: tuple[Part, ...], epsilon: float) -> float:
    """Smallest delta at this epsilon of a Gaussian loss and parts."""
    from ppdp.privacy import pld
    from ppdp.privacy.gaussian import gaussian_delta
    from ppdp.privacy.renyi import renyi_delta

    pure = sum(part.pure for part in parts)
    found = [1.0]
    if pure <= epsilon:
        found.append(gaussian_delta(mu, epsilon - pure) if mu else 0.0)
    curve = _curve(mu, parts)
    if curve is not None and epsilon >= 0:
        found.append(renyi_delta(curve, epsilon))
    run = _distribution(mu, parts, _fine(pld.INTERVAL, epsilon, _runs(mu, parts)))
    if run is not None and epsilon >= 0:
        found.append(run.delta(epsilon))
    return min(found)


def parts_renyi(mu: float, parts: tuple[Part, ...], alpha: float) -> float:
    """Rényi divergence of this order; infinite where no curve is known."""
    curve = _curve(mu, parts)
    return math.inf if curve is None else curve(alpha)


@lru_cache(maxsize=8)
def _curve(mu: float, parts: tuple[Part, ...]) -> Curve | None:
    from ppdp.privacy.renyi import composed, gaussian_curve

    curves = [curve for part in parts if (curve := part.curve()) is not None]
    return composed(*curves, gaussian_curve(mu)) if len(curves) == len(parts) else None


@lru_cache(maxsize=2)  # large; one loss is asked at many deltas
def _distribution(mu: float, parts: tuple[Part, ...], interval: float) -> LossDistribution | None:
    from ppdp.privacy import pld

    runs = [part.distribution(interval) for part in parts]
    if mu:
        runs.append(pld.gaussian_distribution(mu, interval))
    total = None
    for run in runs:
        if run is None:
            return None
        total = run if total is None else total + run
    return total


def _distributed(mu: float, parts: tuple[Part, ...], delta: float, interval: float | None) -> float:
    """Epsilon of the composed distributions: the least on grids that become finer until they are fine enough."""
    from ppdp.privacy.pld import INTERVAL, LEAST_DELTA

    grid, needed, least = math.inf, interval or INTERVAL, math.inf
    while delta >= LEAST_DELTA and needed < grid:
        grid = needed
        run = _distribution(mu, parts, grid)
        if run is None or delta <= 10 * run.slack:
            return math.inf
        least = min(least, run.epsilon(delta))
        needed = _fine(grid, least, _runs(mu, parts))
    return least


def _runs(mu: float, parts: tuple[Part, ...]) -> int:
    return sum(part.count for part in parts) + bool(mu)


def _fine(interval: float, epsilon: float, runs: int) -> float:
    """The interval, or a finer one on which ``runs`` losses that come to epsilon are resolved, a power of two.

    A grid adds up to a sixth of its square to the variance of each run, of which all have ``(epsilon / 5)²`` together.
    """
    if not 0 < epsilon < _RESOLUTION * math.sqrt(runs) * interval:
        return interval
    return max(_FINEST, 2.0 ** math.floor(math.log2(epsilon / (_RESOLUTION * math.sqrt(runs)))))


def _mixed(mu: float, parts: tuple[Part, ...], delta: float, rest: float, interval: float | None) -> float:
    """What has a distribution (and the Gaussian part) at ``delta``, what has only a curve at ``rest``."""
    from ppdp.privacy.renyi import renyi_epsilon

    curved = tuple(part for part in parts if part.kind in CURVED)
    sampled = tuple(part for part in parts if part.kind not in CURVED)
    curve = _curve(0.0, curved)
    if not curved or not sampled or curve is None:
        return math.inf
    return _distributed(mu, sampled, delta, interval) + renyi_epsilon(curve, rest)


def _pure_distribution(epsilon: float, interval: float) -> LossDistribution:
    """Randomised response, which dominates every mechanism of this epsilon."""
    from ppdp.privacy.pld import loss_distribution
    from ppdp.privacy.subsampling import Profile

    def delta(at: Any) -> Any:
        return -np.expm1(np.minimum(np.asarray(at, dtype=float) - epsilon, 0.0)) / (1 + math.exp(-epsilon))

    return loss_distribution(Profile.symmetric(delta), interval)


def _distance(facts: Mapping[str, float]) -> Any:
    from ppdp.core.distance import Distance

    names = ("replaced", "toggled", "moved", "radius", "total", "mass")
    given = {name: facts[name] for name in names if name in facts}
    if "mass" in given:
        given["toggled"] = given["mass"]
    if given.get("moved") and "radius" not in given:
        given["radius"] = given["total"]
    return Distance(**given)


def _plain(value: Any) -> float:
    """A Python number; NumPy's would not be written to JSON."""
    return value if type(value) in (int, float) else value.item() if hasattr(value, "item") else value
