"""What every way to use PCA of rank 1 costs: errors that privacy adds to a model and to statistics.

Rows have norm 1, and their second moment (uncentred) has one eigenvalue above d - 1 equal ones; the eigengap then
fixes how long the signal is, s² = (1 + (d - 1) gap) / d. Ways are priced by ppdp's stability maps, plans and gates,
each at its best setting in hindsight: the share of the budget for a gate or a release is one of SHARES, the gap tested
is the widest that a gate passes 99 times in 100, the ridge is s² times one of RIDGES, rows are clipped to their root
mean square length.

* *A model that predicts new rows*, by noisy gradients, the same number of steps for every way: standard deviation of
  the error of a score, over that of the score that the signal deserves. No pre-processing: (2 / n mu) / s². Exact PCA:
  rows are clipped to s behind it, but new rows are not projected, as the projector is private. Soft PCA: the same.
  Noisy PCA projects new rows too. Its direction is that of a rank-one matrix in Gaussian noise (Benaych-Georges and
  Nadakuditi 2011): some of the signal is lost, and some of the other directions leaks into scores. Gradients are taken
  to be 1-Lipschitz in the row, in favour of the exact ways.
* *The worst statistic of projected rows*: a mean of 1-Lipschitz functions with a range of s. Its noise, and how far the
  noisy projector moves rows (root mean square), over s. No statistic of this kind is changed by more, many by less.
* *The mean length of projected rows*: the same noise, and how much the noisy projector changes the root mean square
  length, over s: there a turn counts squared.

Not projecting is no answer to the last two, and soft PCA is not asked.

**Left out**: that rows are a sample, what clipping takes away, rounding to a noise lattice, other spectra, ranks above
1 (k components have a gap of at most 1/k), centred PCA, a matrix released behind exact PCA to project new rows, which
would be paid for beside the moves, and soft PCA of a released matrix.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ppdp import Adjacency, Pipeline
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.exceptions import ImpossibleBudget
from ppdp.mechanisms import GaussianMechanism
from ppdp.privacy.gate import Gate
from ppdp.privacy.gaussian import gaussian_mu
from ppdp.transformers import PCA, NormClipper, SoftPCA

DELTA = 1e-9
"""Below 1/n for every n here, as plans demand."""
USUAL_SHARE = 0.05
SHARES = (0.01, 0.02, USUAL_SHARE, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)
RIDGES = tuple(np.geomspace(0.01, 100, 17))
NONE, EXACT, SOFT, NOISY = WAYS = ("no pre-processing", "exact PCA", "soft PCA", "noisy PCA")
MODEL, WORST, LENGTH = "model", "worst statistic", "mean length"
ASKED = {MODEL: WAYS, WORST: (EXACT, NOISY), LENGTH: (EXACT, NOISY)}


@dataclass(frozen=True)
class World:
    """What is the same for every eigengap.

    Attributes
    ----------
    n, d : int
        Rows and columns.
    epsilon : float
        End to end, at DELTA.
    """

    n: int
    d: int
    epsilon: float

    @cached_property
    def domain(self) -> Domain:
        """Rows in the unit ball."""
        return Domain(n_rows=self.n, n_features=self.d, row_norm=1.0, max_missing=0)

    @cached_property
    def mu(self) -> float:
        """The budget."""
        return gaussian_mu(self.epsilon, DELTA)

    def margin(self, share: float = USUAL_SHARE) -> float:
        """Rows of margin with which a gate for this share of the budget passes 99 times in 100."""
        gate = Gate.of_budget(self.mu * math.sqrt(share), DELTA, adding=False, n_rows=self.n)
        return gate.needed_margin()

    @cached_property
    def gates(self) -> list[tuple[float, float]]:
        """Their margins, and what they leave of the budget."""
        return list(_possible(lambda share: (self.margin(share), self.mu * math.sqrt(1 - share))))

    @cached_property
    def releases(self) -> list[tuple[float, float]]:
        """Noise of an entry of a released second moment, and what it leaves of the budget."""
        return list(_possible(self._release))

    def _release(self, share: float) -> tuple[float, float]:
        stages = [
            ("clip", NormClipper(1.0)),
            ("pca", PCA(1, with_mean=False, fit_mode="noisy")),
            ("mean", GaussianMechanism()),
        ]
        pipeline = Pipeline(stages, epsilon=self.epsilon, delta=DELTA, budget={"release": share})
        (release,) = pipeline.plan(Domain(n_rows=self.n, n_features=self.d)).releases
        return release.noise_scale, math.sqrt(self.mu**2 - release.mu**2)

    @cached_property
    def rounded(self) -> Distance:
        """Behind noisy PCA: rows move by rounding only."""
        return PCA(1, with_mean=False, fit_mode="noisy").stability_map(self.domain, Adjacency.replace().distance)[1]


def _possible(price: Callable[[float], tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """The price of every share that can be paid."""
    for share in SHARES:
        try:
            yield price(share)
        except ImpossibleBudget:
            continue


@dataclass(frozen=True)
class Case:
    """One leading eigenvalue and d - 1 equal ones, of rows of norm 1.

    Attributes
    ----------
    world : World
        All else.
    gap : float
        Between them.
    """

    world: World
    gap: float

    @property
    def high(self) -> float:
        """The leading eigenvalue: the squared length of the signal."""
        return (1 + (self.world.d - 1) * self.gap) / self.world.d

    @property
    def low(self) -> float:
        """All others."""
        return self.high - self.gap

    @cached_property
    def exact(self) -> list[tuple[Distance, float]]:
        """How far exact PCA moves rows and what its gate leaves of the budget, for every gate that would pass."""
        gates = [(self.gap - 2 * margin / self.world.n, left) for margin, left in self.world.gates]
        return [
            (self._moves(PCA(1, with_mean=False, min_gap=tested, fit_mode="exact")), left)
            for tested, left in gates
            if tested > 0
        ]

    @cached_property
    def noisy(self) -> list[tuple[float, float]]:
        """Squared cosine of the eigenvector and the released one, and what every release leaves of the budget."""
        lost = self.world.d / self.gap**2
        return [(max(0.0, 1 - noise**2 * lost), left) for noise, left in self.world.releases]

    def _moves(self, stage: PCA | SoftPCA) -> Distance:
        return stage.stability_map(self.world.domain, Adjacency.replace().distance)[1]

    def errors(self, use: str, ways: tuple[str, ...]) -> dict[str, float]:
        """The least error of every way that can be taken."""
        tried = {way: list(ERRORS[use, way](self)) for way in ways}
        return {way: min(errors) for way, errors in tried.items() if errors}

    def plain_model(self) -> Iterator[float]:
        """No pre-processing."""
        yield 2 / (self.world.n * self.world.mu * self.high)

    def exact_model(self) -> Iterator[float]:
        """Exact PCA, for every gate."""
        for moves, left in self.exact:
            yield moves.shift(math.sqrt(self.high), 1.0) / (self.world.n * left * self.high)

    def soft_model(self) -> Iterator[float]:
        """Soft PCA, for every ridge."""
        for ridge in self.high * np.array(RIDGES):
            moves = self._moves(SoftPCA(float(ridge), fit_mode="exact"))
            keep, leak = (value / (value + ridge) for value in (self.high, self.low))
            norm = math.sqrt(self.high * keep**2 + (self.world.d - 1) * self.low * leak**2)
            yield float(moves.shift(norm, 1.0) / (self.world.n * self.world.mu * self.high * keep))

    def noisy_model(self) -> Iterator[float]:
        """Noisy PCA, for every release: noise of the gradients, and what other directions leak into scores."""
        for kept, left in self.noisy:
            if kept:
                signal, leak = kept * self.high, (1 - kept) * self.low
                length = math.sqrt(signal + leak)
                noise = self.world.rounded.shift(length, 1.0) * length / (self.world.n * left * signal)
                yield math.hypot(noise, math.sqrt(leak / signal))

    def exact_statistic(self) -> Iterator[float]:
        """Exact PCA, for every gate; for a length no less noise is certified than for the worst statistic."""
        for moves, left in self.exact:
            yield self._noise(moves, left)

    def noisy_worst(self) -> Iterator[float]:
        """Noisy PCA, for every release: noise, and how far it moves rows."""
        for kept, left in self.noisy:
            moved = (1 - kept) * (self.high + self.low) / self.high
            yield math.hypot(self._noise(self.world.rounded, left), math.sqrt(moved))

    def noisy_length(self) -> Iterator[float]:
        """Noisy PCA, for every release: noise, and by how much rows become shorter."""
        for kept, left in self.noisy:
            shorter = 1 - math.sqrt(kept + (1 - kept) * self.low / self.high)
            yield math.hypot(self._noise(self.world.rounded, left), shorter)

    def _noise(self, moves: Distance, left: float) -> float:
        s = math.sqrt(self.high)
        return moves.shift(s / 2, 1.0) / (self.world.n * left * s)


ERRORS: dict[tuple[str, str], Callable[[Case], Iterator[float]]] = {
    (MODEL, NONE): Case.plain_model,
    (MODEL, EXACT): Case.exact_model,
    (MODEL, SOFT): Case.soft_model,
    (MODEL, NOISY): Case.noisy_model,
    (WORST, EXACT): Case.exact_statistic,
    (WORST, NOISY): Case.noisy_worst,
    (LENGTH, EXACT): Case.exact_statistic,
    (LENGTH, NOISY): Case.noisy_length,
}
