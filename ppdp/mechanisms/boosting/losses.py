"""Losses of a score: what a row answers, and how far answers of near scores can be apart."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from ppdp.bounds.boosting import WINDOWS
from ppdp.bounds.learning import target_shares, target_unit
from ppdp.data.rows import Array
from ppdp.mechanisms.boosting.targets import TargetDistribution, amount
from ppdp.mechanisms.learn.regression import tweedie_loss
from ppdp.mechanisms.learn.whitened import TrainingLoss, of_two

LARGEST = 30.0  # score beyond which an exponential is that of this one
LEAST_MEAN = 1e-6  # of labels, whose largest is 1
LEAST_REST, LEAST_CLIP = 0.01, 1e-4  # of the variance of labels, that scores leave; and of residuals of these
ROBUST = 0.05  # share of the targets beyond either end of the range in which quantiles begin as means


class ScoreLoss(ABC):
    """A loss of labels between 0 and 1 whose gradients lie between -1 and 1.

    All that depends on released numbers is in its fields; methods say what follows for a row from its target ``y`` (the
    code of its class) and score.
    """

    windows: ClassVar[bool] = False  # whether rounds ask how many targets are near what is predicted
    curved: ClassVar[bool] = True  # whether the label that is expected is no straight line in the score
    within: ClassVar[float] = 1.0  # by what scores change within a bin of values, at most, to either side of its mean

    @abstractmethod
    def labels(self, y: Array, label: int) -> Array:
        """Labels, for the score of this class; those of targets are for label 1."""

    def gradients(self, y: Array, scores: Array, label: int) -> Array:
        """What scores should grow by, about."""
        return np.asarray(self.labels(y, label) - self.mean(scores))

    @abstractmethod
    def slope(self, scores: Array) -> Array:
        """By how much gradients are expected to fall where scores grow."""

    @property
    def steepest(self) -> float:
        """The largest of them, where they differ."""
        return float(self.slope(np.zeros(1))[0])

    @abstractmethod
    def mean(self, scores: Array) -> Array:
        """Label that is expected at each score; it grows with scores."""

    def rise(self, scores: Array) -> Array:
        """By how much that label grows where scores grow."""
        return self.slope(scores)

    def label_variance(self, scores: Array) -> Array:
        """That of labels where scores are right; no bound rests on it."""
        return self.variance(scores)

    @abstractmethod
    def variance(self, scores: Array) -> Array:
        """That of gradients where scores are right; no bound rests on it."""

    @abstractmethod
    def score(self, mean: Any) -> Any:
        """The score of mean labels."""

    def explained(self, variance: float, deviations: float) -> ScoreLoss:
        """The same loss where scores have a variance, and gradients may be so many standard deviations of the rest."""
        return self

    def largest(self, low: float, high: float) -> float:
        """Bound on the size of gradients where scores are in a range."""
        least, most = self.mean(np.array([low, high]))
        return float(max(most, 1 - least))

    @abstractmethod
    def closeness(self, apart: Array, high: float) -> Array:
        """By how much more than 1 gradients may differ where scores are so far apart and at most ``high``."""

    @abstractmethod
    def linear_targets(self, y: Array, label: int) -> Array:
        """Targets of the linear model of the shapes."""

    @property
    @abstractmethod
    def linear(self) -> TrainingLoss:
        """Loss of that model."""

    @property
    def typical_score(self) -> float:
        """By how much scores of rows differ, about."""
        return 1.0

    @property
    def shift(self) -> float:
        """What is added to the intercept of that model."""
        return 0.0

    @property
    def units(self) -> tuple[float, float]:
        """Factor and shift that make scores those that are released."""
        return 1.0, 0.0

    def distances(self, y: Array, scores: Array) -> Array:
        """Of targets from what is predicted, in units of scores, for rounds that ask for them."""
        raise NotImplementedError

    def seen(self, counts: Array) -> tuple[ScoreLoss, float | None]:
        """The same loss and what is to be added to the baseline, once such distances are released."""
        return self, None


@dataclass(frozen=True, slots=True)
class LogisticLoss(ScoreLoss):
    """Of two classes, or of one against all others."""

    def labels(self, y: Array, label: int) -> Array:
        return (y == label).astype(np.float64)

    def mean(self, scores: Array) -> Array:
        return np.asarray(expit(scores))

    def slope(self, scores: Array) -> Array:
        mean = self.mean(scores)
        return np.asarray(mean * (1 - mean))

    def variance(self, scores: Array) -> Array:
        return self.slope(scores)

    def score(self, mean: Any) -> Any:
        return np.log(mean / (1 - mean))

    def closeness(self, apart: Array, high: float) -> Array:
        return np.tanh(apart / 4)

    def linear_targets(self, y: Array, label: int) -> Array:
        return self.labels(y, label)

    @property
    def linear(self) -> TrainingLoss:
        def curvatures(scores: Array, y: Array | None = None) -> Array:
            return self.slope(scores)

        def link(scores: Array) -> Array:
            return 2 * self.mean(scores) - 1

        return TrainingLoss(
            lambda scores, y: self.mean(scores) - y[:, None],
            curvatures,
            curvatures,
            lambda y: 2 * y[:, None] - 1,
            link,
            1.0,
            chances=of_two(link),
        )


def _squares() -> TrainingLoss:
    def curvatures(scores: Array, y: Array | None = None) -> Array:
        return np.ones_like(scores)

    return TrainingLoss(
        lambda scores, y: scores - y[:, None], curvatures, curvatures, lambda y: y[:, None], np.asarray, None
    )


@dataclass(frozen=True, slots=True)
class SquaredLoss(ScoreLoss):
    """Of targets that are clipped to a released range, of which labels are shares and scores -1 to 1.

    Gradients are residuals of labels, clipped, in units of the clip.
    """

    low: float
    high: float
    spread: float  # variance of labels
    of_scores: tuple[float, float]  # factor and shift that make them targets
    rest: float = field(default=0.0, kw_only=True)  # what scores leave of that, for rounds
    clip: float = field(default=1.0, kw_only=True)

    curved: ClassVar[bool] = False

    @property
    def typical_score(self) -> float:
        return 2 * math.sqrt(max(self.spread, 1e-6))

    @classmethod
    def of(
        cls, targets: TargetDistribution, price: float, y_range: tuple[float, float], quantile: float | None
    ) -> SquaredLoss:
        """From the released distribution of the targets."""
        low, high = targets.clip(price)
        factor, shift = targets.unclipped(low, high)
        of_scores = factor * (high - low) / 2, factor * (high + low) / 2 + shift
        return cls(low, high, targets.moments(low, high)[1] / (high - low) ** 2, of_scores)

    def labels(self, y: Array, label: int) -> Array:
        shares = np.clip((y - self.low) / (self.high - self.low), 0.0, 1.0)
        return shares if label == 1 else 1 - shares

    def gradients(self, y: Array, scores: Array, label: int) -> Array:
        return np.clip((self.labels(y, label) - self.mean(scores)) / self.clip, -1.0, 1.0)

    def mean(self, scores: Array) -> Array:
        return np.clip((1 + scores) / 2, 0.0, 1.0)

    def slope(self, scores: Array) -> Array:
        return np.full_like(scores, 0.5 / self.clip)

    def rise(self, scores: Array) -> Array:
        return np.full_like(scores, 0.5)

    def variance(self, scores: Array) -> Array:
        return np.full_like(scores, self.rest / self.clip**2)

    def label_variance(self, scores: Array) -> Array:
        return np.full_like(scores, self.spread)

    def explained(self, variance: float, deviations: float) -> ScoreLoss:
        rest = max(self.spread - variance / 4, LEAST_REST * self.spread, LEAST_CLIP**2)
        return replace(self, rest=rest, clip=min(deviations * math.sqrt(rest), 1.0))

    def score(self, mean: Any) -> Any:
        return 2 * mean - 1

    def largest(self, low: float, high: float) -> float:
        return min(ScoreLoss.largest(self, low, high) / self.clip, 1.0)

    def closeness(self, apart: Array, high: float) -> Array:
        return np.minimum((1 + apart / 2) / self.clip - 1, 1.0)

    def linear_targets(self, y: Array, label: int) -> Array:
        return 2 * self.labels(y, 1) - 1

    @property
    def linear(self) -> TrainingLoss:
        return _squares()

    @property
    def units(self) -> tuple[float, float]:
        return self.of_scores


@dataclass(frozen=True, slots=True)
class PoissonLoss(ScoreLoss):
    """Of counts, clipped to a released number of which labels are shares; scores are logarithms."""

    shares: tuple[float, float]  # the range of the counts in a unit that the score 0 predicts
    y_range: tuple[float, float]
    unit: float
    typical: float  # mean label
    spread: float  # variance of labels

    within: ClassVar[float] = 0.25  # a quarter of what is predicted: tails go far
    power: ClassVar[float] = 1.0

    @classmethod
    def of(
        cls, targets: TargetDistribution, price: float, y_range: tuple[float, float], quantile: float | None
    ) -> PoissonLoss:
        """From the released distribution of the targets."""
        _, high = targets.clip(price)
        known = y_range[0], amount(high, y_range)
        mean, variance = targets.moments(-1.0, high)
        factor = (y_range[1] - y_range[0]) / 2 / known[1]
        typical = min(max(amount(mean, y_range) / known[1], 1e-3), 1.0)
        return cls(target_shares(known), y_range, target_unit(known), typical, variance * factor**2)

    def labels(self, y: Array, label: int) -> Array:
        low, high = self.y_range
        shares = np.clip((low / 2 + high / 2 + (high / 2 - low / 2) * y) / (self.unit * self.shares[1]), 0.0, 1.0)
        return shares if label == 1 else 1 - shares

    def mean(self, scores: Array) -> Array:
        low, high = self.shares
        return np.clip(np.exp(np.clip(scores, -LARGEST, LARGEST)) / high, max(low / high, LEAST_MEAN), 1.0)

    def slope(self, scores: Array) -> Array:
        return self.mean(scores)

    @property
    def steepest(self) -> float:
        return float(self.slope(np.array([LARGEST]))[0])

    def variance(self, scores: Array) -> Array:
        return np.asarray(self.mean(scores) * self.spread / self.typical)

    def score(self, mean: Any) -> Any:
        return np.log(mean * self.shares[1])

    def closeness(self, apart: Array, high: float) -> Array:
        return np.asarray(self.mean(np.array([high])) * -np.expm1(-apart))

    def linear_targets(self, y: Array, label: int) -> Array:
        return self.labels(y, 1) * self.shares[1]

    @property
    def linear(self) -> TrainingLoss:
        return tweedie_loss(self.power, math.nan)

    @property
    def units(self) -> tuple[float, float]:
        return 1.0, math.log(self.unit)


@dataclass(frozen=True, slots=True)
class GammaLoss(PoissonLoss):
    """Of amounts: gradients are the amount over what is predicted, clipped, less 1, in units of the largest of them."""

    power: ClassVar[float] = 2.0

    def gradients(self, y: Array, scores: Array, label: int) -> Array:
        ratios = self.labels(y, label) / self.mean(scores)
        return np.asarray(np.minimum(ratios * self.typical, 1.0) - self.typical)

    def slope(self, scores: Array) -> Array:
        return np.full_like(scores, self.typical)

    def variance(self, scores: Array) -> Array:
        return np.full_like(scores, self.spread)

    def rise(self, scores: Array) -> Array:
        return self.mean(scores)

    def label_variance(self, scores: Array) -> Array:
        return np.asarray(self.spread * (self.mean(scores) / self.typical) ** 2)

    def largest(self, low: float, high: float) -> float:
        return max(self.typical, 1 - self.typical)

    def closeness(self, apart: Array, high: float) -> Array:
        return np.zeros_like(apart)


@dataclass(frozen=True, slots=True)
class QuantileLoss(SquaredLoss):
    """Gradients say whether a target lies above what is predicted; rounds begin with a model of means."""

    quantile: float
    density: float = 0.5  # of targets around what is predicted, per unit of the score

    windows: ClassVar[bool] = True

    @classmethod
    def of(
        cls, targets: TargetDistribution, price: float, y_range: tuple[float, float], quantile: float | None
    ) -> QuantileLoss:
        """From the released distribution of the targets."""
        assert quantile is not None
        low, high = targets.clip(max(price, ROBUST), (quantile / 2, (1 - quantile) / 2))  # half of those beyond it
        of_scores = (high - low) / 2, (high + low) / 2
        return cls(low, high, targets.moments(low, high)[1] / (high - low) ** 2, of_scores, quantile)

    def distances(self, y: Array, scores: Array) -> Array:
        scale, middle = self.units
        return (y - np.clip(middle + scale * scores, -1.0, 1.0)) / scale  # predictions lie in the range of the targets

    def gradients(self, y: Array, scores: Array, label: int) -> Array:
        return np.asarray((self.distances(y, scores) > 0) - (1 - self.quantile), dtype=np.float64)

    def slope(self, scores: Array) -> Array:
        return np.full_like(scores, self.density)

    def explained(self, variance: float, deviations: float) -> ScoreLoss:
        return self

    def variance(self, scores: Array) -> Array:
        return np.full_like(scores, self.quantile * (1 - self.quantile))

    def largest(self, low: float, high: float) -> float:
        return max(self.quantile, 1 - self.quantile)

    def closeness(self, apart: Array, high: float) -> Array:
        return np.zeros_like(apart)

    def seen(self, counts: Array) -> tuple[QuantileLoss, float]:
        distances = TargetDistribution.of(counts, np.array([-2.0, *WINDOWS, 2.0]))
        return replace(self, density=1 / (2 * distances.spread(0.0))), distances.quantile(self.quantile)


OF_TARGETS: dict[str, Callable[..., ScoreLoss]] = {
    "squared": SquaredLoss.of,
    "poisson": PoissonLoss.of,
    "gamma": GammaLoss.of,
    "quantile": QuantileLoss.of,
}
"""Losses of targets by their names in the formula: from the released distribution of the targets, the share of them
that may be clipped, their public range, and the quantile."""
