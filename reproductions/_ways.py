"""Seven ways to a private classifier with or without PCA, and the best setting of each in hindsight."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from _learning import Array, Data, Runs, losses, noisy_components, orthonormal, projector, shrinkage, train
from printed import DELTA

from ppdp import Adjacency, Pipeline
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.mechanisms import LogisticRegression
from ppdp.pipeline.planning.plan import Plan
from ppdp.privacy.gate import Gate
from ppdp.privacy.gaussian import gaussian_mu
from ppdp.privacy.loss import PrivacyLoss
from ppdp.transformers import PCA, NormClipper, SoftPCA

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

RANK, STEPS = 50, 20
RELEASE_SHARE = 0.5
"""Of the budget, for a released second moment: half, as the paper gives to DP-PCA."""
RIDGES = (0.02, 0.16, 1.28, 10.24)
ENDLESS = 1e9
"""A ball that never binds, or a step so long that only the ball limits it: no setting lies beyond."""


@dataclass(frozen=True)
class Grid:
    """Step sizes and radii of the ball to try, for rows of norm 1."""

    steps: tuple[float, ...]
    radii: tuple[float, ...]

    @property
    def size(self) -> int:
        """How many settings."""
        return len(self.steps) * len(self.radii)

    def inside(self, step: int, radius: int) -> bool:
        """Whether no better setting can lie beyond the edge."""
        return all(
            i > 0 and (i < len(values) - 1 or values[-1] == ENDLESS)
            for i, values in ((step, self.steps), (radius, self.radii))
        )


FREE = Grid((*(4.0**i for i in range(-2, 6)), ENDLESS), (2.5, *(10.0 * 2**i for i in range(6)), ENDLESS))
"""Where the noise does not depend on the ball."""
SMOOTH = Grid((*(4.0**i for i in range(-4, 3)), ENDLESS), tuple(2.0**i for i in range(-1, 7)))
"""Where all rows move: the smoother the gradient, and so the smaller the ball, the less noise."""


@dataclass(frozen=True)
class Learner:
    """Descent on some rows, and the rows on which its models are judged.

    Attributes
    ----------
    X, judged, y : array
        Rows that are learned from, rows that scores are computed of, labels.
    columns : int
        Of the space with the noise.
    noise : callable
        Noise of a mean gradient, from the radius of the ball.
    grid : Grid
        Settings to try.
    norm : float
        Of the rows that are learned from: with it balls and steps grow.
    """

    X: Array
    judged: Array
    y: Array
    columns: int
    noise: Callable[[float], float]
    grid: Grid
    norm: float = 1.0

    def risks(self, rng: np.random.Generator, draws: int = 1) -> Array:
        """Mean loss with every setting, (steps, radii)."""
        found = self._losses(list(product(self.grid.steps, self.grid.radii)) * draws, rng)
        return np.asarray(found.reshape(draws, len(self.grid.steps), -1).mean(axis=0))

    def again(self, step: int, radius: int, rng: np.random.Generator, draws: int) -> float:
        """Mean loss of fresh runs with one setting."""
        return float(self._losses([(self.grid.steps[step], self.grid.radii[radius])] * draws, rng).mean())

    def _losses(self, settings: Sequence[tuple[float, float]], rng: np.random.Generator) -> Array:
        steps, radii = (np.array(column) for column in zip(*settings))
        known = {radius: self.noise(radius / self.norm) for radius in set(radii)}
        noise = np.array([known[radius] for radius in radii])
        runs = Runs(noise, steps / self.norm**2, radii / self.norm, STEPS)
        return losses(self.judged, self.y, train(self.X, self.y, self.columns, runs, rng))


Variants = list[Learner]
"""Of one way on one data set; none where a gate refuses."""


def best(sets: Sequence[Data], variants: Sequence[Variants], draws: int, fresh: int, where: str = "") -> Array:
    """Excess risk of every data set by fresh runs of the setting that is best for their mean; NaN for a refusal.

    The model 0 counts as a setting: it costs nothing.

    Parameters
    ----------
    sets : sequence of Data
        The data sets.
    variants : sequence of list of Learner
        Of every data set.
    draws, fresh : int
        Runs of every setting to choose by, and of the chosen one.
    where : str, default=""
        If given, the best setting must not lie on an edge of what was tried, unless it leaves the model 0. For errors.

    Raises
    ------
    AssertionError
        If it does.
    """
    if not all(variants):
        return np.full(len(sets), math.nan)
    tried = np.mean(
        [
            [learner.risks(np.random.default_rng(seed), draws) for learner in of_set]
            for seed, of_set in enumerate(variants)
        ],
        axis=0,
    )
    variant, step, radius = (int(i) for i in np.unravel_index(np.argmin(tried), tried.shape))
    if where and math.log(2) - tried.min() > 0.02:
        norms = [learner.norm for learner in variants[0]]
        at_edge = norms[variant] != 1 and norms[variant] in (max(norms), min(norms))
        assert not at_edge, (where, variant)
        assert variants[0][variant].grid.inside(step, radius), (where, step, radius)
    found = np.array(
        [
            of_set[variant].again(step, radius, np.random.default_rng((1, seed)), fresh) - data.least_risk
            for seed, (data, of_set) in enumerate(zip(sets, variants))
        ]
    )
    zero = np.array([data.zero_risk for data in sets])
    return found if found.mean() < zero.mean() else zero


def model(radius: float) -> LogisticRegression:
    """The classifier that is planned with: norms of gradients are below its clip as they are."""
    return LogisticRegression((0, 1), fit_intercept=False, max_coef_norm=radius, max_iter=STEPS)


def plan(domain: Domain, epsilon: float, radius: float, *stages: tuple[str, Any]) -> Plan:
    """The certified pipeline."""
    steps = [("clip", NormClipper(1.0)), *stages, ("model", model(radius))]
    budget = {"release": RELEASE_SHARE}
    return Pipeline(steps, epsilon=epsilon, delta=DELTA, budget=budget).plan(domain.but(row_norm=None))


def planned(domain: Domain, epsilon: float, *stages: tuple[str, Any]) -> Callable[[float], float]:
    """Noise by a plan, for every ball."""

    def noise(radius: float) -> float:
        mechanism = plan(domain, epsilon, radius, *stages).mechanism
        assert mechanism is not None
        return float(mechanism.noise_scale)

    return noise


def calibrated(domain: Domain, distance: Distance, mu: float, radius: float) -> float:
    """Noise by a stability map, where no plan is made."""
    noise_scale = model(radius).calibrate(domain, distance, PrivacyLoss(mu)).noise_scale
    assert noise_scale is not None
    return noise_scale


def tested(gate: Gate | None, gap: float, n: int) -> float:
    """The largest bound on an eigengap that a gate lets pass 99 times in 100, at most 0 if there is none.

    Read off the data, in favour of what is gated. One row of norm 1 moves the gap by 2/n.
    """
    assert gate is not None
    return gap - 2 * gate.needed_margin() / n


def none(data: Data, epsilon: float, _: np.random.Generator) -> Variants:
    """Rows as they are."""
    return [Learner(data.X, data.X, data.y, data.columns, planned(data.domain, epsilon), FREE)]


def free(data: Data, epsilon: float, _: np.random.Generator) -> Variants:
    """Projected, at the price of nothing."""
    components = np.linalg.eigh(data.moment)[1][:, -RANK:].T
    return _released(data, components, planned(data.domain, epsilon))


def exact(data: Data, epsilon: float, _: np.random.Generator) -> Variants:
    """Projected, gated; nothing where the gate refuses. New rows are not projected: the projector is private."""
    gate = plan(data.domain, epsilon, 1.0, ("pca", PCA(RANK, with_mean=False, fit_mode="exact"))).gate
    min_gap = tested(gate, data.eigengap(RANK), len(data.X))
    if min_gap <= 0:
        return []
    X = data.X @ projector(data.moment, RANK).astype(np.float32)
    noise = planned(data.domain, epsilon, ("pca", PCA(RANK, with_mean=False, min_gap=min_gap, fit_mode="exact")))
    return [Learner(X, data.X, data.y, data.columns, noise, SMOOTH)]


def soft(data: Data, epsilon: float, _: np.random.Generator) -> Variants:
    """Shrunk; nothing is assumed, so all of the budget is for the model. Clipped to what equal directions leave."""
    mu = gaussian_mu(epsilon, DELTA)

    def noise(stage: SoftPCA, norm: float, radius: float) -> float:
        domain, distance = stage.stability_map(data.domain, Adjacency.replace().distance)
        domain, distance = NormClipper(norm).stability_map(domain, distance)
        return calibrated(domain, distance, mu, radius)

    found = []
    for ridge in RIDGES:
        norm = 1 / (1 + RANK * ridge)
        X = data.X @ shrinkage(data.moment, ridge).astype(np.float32)
        X *= np.minimum(1, norm / np.linalg.norm(X, axis=1, keepdims=True))
        stage = SoftPCA(ridge, fit_mode="exact")
        found.append(Learner(X, data.X, data.y, data.columns, partial(noise, stage, norm), SMOOTH, norm))
    return found


def noisy(data: Data, epsilon: float, rng: np.random.Generator, columns: int | None = None) -> Variants:
    """Projected by a released second moment, of so many columns (all of them)."""
    stage = ("pca", PCA(RANK, with_mean=False, fit_mode="noisy"))
    (release,) = plan(data.domain, epsilon, 1.0, stage).releases
    components = noisy_components(data.moment, release.noise_scale, columns or data.columns, RANK, rng)
    return _released(data, components, planned(data.domain, epsilon, stage))


def told(data: Data, epsilon: float, rng: np.random.Generator) -> Variants:
    """The same, told in which columns rows are not zero."""
    return noisy(data, epsilon, rng, columns=data.X.shape[1])


def diffprivlib(data: Data, epsilon: float, rng: np.random.Generator) -> Variants:
    """Projected by diffprivlib, told the same, half of epsilon each."""
    from _competitors import repaired_bingham
    from diffprivlib.models import PCA as Foreign

    seed = int(rng.integers(2**31))
    with repaired_bingham():
        fitted = Foreign(RANK, epsilon=epsilon / 2, centered=True, data_norm=1.0, random_state=seed).fit(
            data.X.astype(np.float64)
        )
    return _released(data, orthonormal(fitted.components_), planned(data.domain, epsilon / 2))


def _released(data: Data, components: Array, noise: Callable[[float], float]) -> Variants:
    """Trained in the coordinates of components that everybody knows, or with noise in all columns."""
    X = data.X @ components.T.astype(np.float32)
    return [Learner(X, X, data.y, columns, noise, FREE) for columns in (len(components), data.columns)]


WAYS: dict[str, Callable[[Data, float, np.random.Generator], Variants]] = {
    "none": none,
    "free": free,
    "exact": exact,
    "soft": soft,
    "noisy": noisy,
    "told": told,
    "diffprivlib": diffprivlib,
}
SETTINGS = dict.fromkeys(WAYS, 2 * FREE.size) | {
    "none": FREE.size,
    "exact": SMOOTH.size,
    "soft": SMOOTH.size * len(RIDGES),
}


def available() -> list[str]:
    """What can run here."""
    try:
        import diffprivlib.models  # noqa: F401
    except ImportError:
        return [name for name in WAYS if name != "diffprivlib"]
    return list(WAYS)
