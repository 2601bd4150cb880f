"""Losses of a score: what it predicts, and how far predictions of near scores can be apart."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from scipy.special import expit

from ppdp.data.rows import Array, Rows
from ppdp.mechanisms.learn.whitened import TrainingLoss


class ScoreLoss(ABC):
    """A loss whose gradient in the score is a mean less the label, both between 0 and 1.

    Attributes
    ----------
    name : str
        Its name in the formula.
    dispersion : float
        Variance of labels over ``mean (1 - mean)``, about; no bound rests on it.
    """

    name: ClassVar[str]
    dispersion: ClassVar[float]

    @abstractmethod
    def mean(self, scores: Array) -> Array:
        """Label that is expected at each score."""

    @abstractmethod
    def slope(self, scores: Array) -> Array:
        """Derivative of the mean."""

    @abstractmethod
    def score(self, mean: float) -> float:
        """The score of a mean."""

    @abstractmethod
    def closeness(self, apart: Array) -> Array:
        """Most by which the means of scores are apart that are so far apart."""

    @abstractmethod
    def labels(self, rows: Rows, label: int) -> Array:
        """Labels of rows, for the score of this class."""

    @property
    @abstractmethod
    def linear(self) -> TrainingLoss:
        """The same loss, of a linear model."""


class LogisticLoss(ScoreLoss):
    """Of two classes, or of one against all others."""

    name, dispersion = "logistic", 1.0

    def mean(self, scores: Array) -> Array:
        return np.asarray(expit(scores))

    def slope(self, scores: Array) -> Array:
        mean = self.mean(scores)
        return np.asarray(mean * (1 - mean))

    def score(self, mean: float) -> float:
        return float(np.log(mean / (1 - mean)))

    def closeness(self, apart: Array) -> Array:
        return np.tanh(apart / 4)

    def labels(self, rows: Rows, label: int) -> Array:
        assert rows.y is not None
        return (rows.y == label).astype(np.float64)

    @property
    def linear(self) -> TrainingLoss:
        def curvatures(scores: Array, y: Array | None = None) -> Array:
            return self.slope(scores)

        return TrainingLoss(
            lambda scores, y: self.mean(scores) - y[:, None],
            curvatures,
            curvatures,
            lambda y: 2 * y[:, None] - 1,
            lambda scores: 2 * self.mean(scores) - 1,
            1.0,
        )


class SquaredLoss(ScoreLoss):
    """Of targets between -1 and 1, as rows have them; their labels are the shares of that range below."""

    name, dispersion = "squared", 0.25

    def mean(self, scores: Array) -> Array:
        return np.clip((1 + scores) / 2, 0.0, 1.0)

    def slope(self, scores: Array) -> Array:
        return np.full_like(scores, 0.5)

    def score(self, mean: float) -> float:
        return 2 * mean - 1

    def closeness(self, apart: Array) -> Array:
        return np.minimum(apart / 2, 1.0)

    def labels(self, rows: Rows, label: int) -> Array:
        assert rows.y is not None
        shares = np.clip((1 + rows.y) / 2, 0.0, 1.0)
        return shares if label == 1 else 1 - shares

    @property
    def linear(self) -> TrainingLoss:
        def curvatures(scores: Array, y: Array | None = None) -> Array:
            return np.ones_like(scores)

        return TrainingLoss(
            lambda scores, y: scores - y[:, None], curvatures, curvatures, lambda y: y[:, None], np.asarray, None
        )


LOSSES: dict[str, ScoreLoss] = {loss.name: loss for loss in (LogisticLoss(), SquaredLoss())}
"""By their names in the formula."""
