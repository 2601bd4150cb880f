"""Linear models of targets in a public range, and generalised linear models of counts and amounts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_tweedie_score

from ppdp.bounds.learning import LARGEST_SCORE, LARGEST_SHARE, target_shares, target_unit
from ppdp.core.checks import number
from ppdp.core.domain import Domain
from ppdp.data.rows import Array, Rows, encode_targets, targets_alone
from ppdp.exceptions import InvalidParameter, InvalidValue
from ppdp.mechanisms.base import Mechanism, QuerySpec
from ppdp.mechanisms.learn.linear import DESCENT, BatchModel, LinearModel, is_auto
from ppdp.mechanisms.learn.whitened import LARGEST_SLOPE_OF_EXPONENTIALS, TrainingLoss
from ppdp.mechanisms.outcomes import TargetModel
from ppdp.mechanisms.target_functions import FunctionOfTargets
from ppdp.privacy.noise.sampler import Noise


@dataclass(eq=False, repr=False)
class LinearRegressor(TargetModel, LinearModel, RegressorMixin):
    """Mixin for linear models of targets in a public range.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients, in units of the targets.
    intercept_ : float
        Intercept; the centre of the range if none is learned.
    """

    noise_borne = 0.06  # at 0.08 a third of fits had R² below 0, at 0.06 one in a dozen

    def _in_units(self, coef: Array, intercept: Array, question: QuerySpec) -> tuple[Array, Array]:
        low, high = self._learned(question.parameters["y_range"])
        half, centre = high / 2 - low / 2, low / 2 + high / 2
        return half * coef[..., 0, :], centre + half * intercept[..., 0]

    def read(self, released: Mapping[str, Array], domain: Domain, question: QuerySpec) -> None:
        super().read(released, domain, question)
        self.intercept_ = float(self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags


@dataclass(eq=False, repr=False)
class LinearRegression(BatchModel, FunctionOfTargets, LinearRegressor, Mechanism):
    """Least squares by noisy Newton steps, second moments or noisy gradient descent.

    Targets are clipped to a public range and rescaled to [-1, 1]; ``max_grad_norm``, ``max_coef_norm`` and
    ``noise_scale`` speak of rescaled ones.
    """

    _usual_norm = 2.0
    _solvers: ClassVar[tuple[str, ...]] = (*DESCENT, "moments", "auto")

    @property
    def clips_rows(self) -> bool:
        return self.solver not in ("hidden", "moments", "output", "sketch")

    def _formulas(self, domain: Domain) -> tuple[dict[str, str], dict[str, Any]]:
        names = {"dpgd": "squared-gradient", "output": "squared-minimiser", "moments": "squared-moments"}
        names["sketch"] = "squared-sketch"
        formulas = {solver: f"learning.{name}" for solver, name in names.items()}
        return formulas, {"y_range": self._range(domain)}

    def _residuals(self, scores: Array, y: Array) -> Array:
        return scores - y[:, None]

    def _loss(self, question: QuerySpec) -> TrainingLoss:
        def curvatures(scores: Array, y: Array | None = None) -> Array:
            return np.ones_like(scores)

        return TrainingLoss(self._residuals, curvatures, curvatures, lambda y: y[:, None], np.asarray, None)


@dataclass(eq=False, repr=False)
class Ridge(LinearRegression):
    """Least squares with a squared penalty: by Newton steps, gradients or second moments, or noise on the exact model.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Weight of the penalty ``alpha/2 |coef|²`` beside half the sum of squares, as scikit-learn's. "auto": 1; under
        "output", where it penalises the intercept too and must be positive, what balances its bias with
        the noise; under "moments" no more than what damps noise. Under "newton" and "dpgd" it acts on released numbers.
    solver : str, default="auto"
        As for :class:`LinearRegression`; also "output" perturbation, second "moments", and those of a "sketch", for
        which ``max_grad_norm`` and ``learning_rate`` have no effect. Under "moments" ``max_iter`` counts the moments as
        one answer (5 in all, 1 where ``n μ < d``), for a "sketch" it has no effect, either.
    rank : int or "auto", default="auto"
        Rows of the sketch under "sketch", more than there are features. "auto": ``(2 n μ / d)²``, at
        least ``64 d``, up to 2^20 numbers in all.

    Notes
    -----
    Under "output" (``docs/theory/output-perturbation.md``) Gaussian noise is added, once, to the minimiser of the
    penalised loss over the ball, every row's gradient clipped (which makes it Huber's loss), after ``max_iter``
    iterations, or as many as leave an error far below the noise. Under "moments" (``docs/theory/second-moments.md``)
    noisy second moments of rows and targets are solved, every direction damped by what is noise in it, and a few noisy
    gradients refine that; under "sketch" (``docs/theory/gaussian-sketch.md``) those of a noisy Gaussian sketch are, and
    nothing is refined.
    """

    _: KW_ONLY
    alpha: float | str = "auto"
    rank: int | str = "auto"

    _solvers = (*DESCENT, "output", "moments", "sketch", "auto")
    _usual_alpha = _newton_alpha = 1.0


def _tweedie_residuals(power: float, scores: Array, y: Array) -> Array:
    v = np.clip(scores, -LARGEST_SCORE, LARGEST_SCORE)
    return np.asarray(np.exp((2 - power) * v) - y[:, None] * np.exp((1 - power) * v))


def tweedie_loss(power: float, dispersion: float) -> TrainingLoss:
    """Loss of targets, as shares of a unit that a score of 0 predicts, whose variance is a power of their mean."""

    def usual_curvatures(scores: Array) -> Array:
        return np.asarray(np.exp((2 - power) * np.clip(scores, -LARGEST_SCORE, LARGEST_SCORE)))

    def curvatures(scores: Array, y: Array) -> Array:
        falling = np.exp((1 - power) * np.clip(scores, -LARGEST_SCORE, LARGEST_SCORE))
        return np.asarray((2 - power) * usual_curvatures(scores) + (power - 1) * y[:, None] * falling)

    def link(scores: Array) -> Array:
        return np.asarray(np.exp(scores) / LARGEST_SHARE)

    def targets(y: Array) -> Array:
        return y[:, None] / LARGEST_SHARE

    residuals = partial(_tweedie_residuals, power)
    return TrainingLoss(
        residuals, curvatures, usual_curvatures, targets, link, dispersion, LARGEST_SLOPE_OF_EXPONENTIALS, 0.0
    )


LONGEST_STEP = 0.45  # less than 2 over the curvature that targets of 4 units have; longer ones go to and fro
LARGEST_EXPONENT = 700.0  # of a prediction; its exponential is still a number


@dataclass(eq=False, repr=False)
class _LogLink(LinearRegressor):
    """Mixin for models that predict ``exp(score)`` of targets that are not negative.

    Targets are taken as shares of a public unit, which a score of 0 predicts.

    Parameters
    ----------
    y_range : tuple of two floats, optional
        Public range of the targets, not negative, here or in the pipeline's domain; targets outside are clipped.
        The score 0 predicts the larger of its lower end and an eighth of its upper end.
    max_coef_norm : float or "auto", default="auto"
        4 by default: radius D of the ball of coefficients, intercept included.
    learning_rate : float or "auto", default="auto"
        Of the first step under "dpgd". "auto": ``1.8 / max(1, min(R², d) / √d)``, R the norm of the rows, but at most
        0.45.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients of the logarithm of the mean.
    intercept_ : float
        Intercept, in units of the targets.

    Notes
    -----
    Lipschitz constants are on ``docs/theory/generalized-linear-models.md``. As rows grow in number, the model of
    "newton" goes to that of scikit-learn with ``alpha=0``.
    """

    _: KW_ONLY
    max_coef_norm: float | str = "auto"

    power = 1.0
    _solvers = ("newton", "dpgd", "auto")
    _curvature = 2 / 3

    def _power(self) -> float:
        """Power of the mean that the variance is proportional to."""
        return number("power", self.power, self, least=1, most=2)

    def _range(self, domain: Domain) -> tuple[float, float]:
        low, high = super()._range(domain)
        if not 1e-100 <= high <= 1e100:
            what = "the upper end of the range of the targets must lie between 1e-100 and 1e100."
            raise InvalidParameter(what, stage=type(self).__name__, fix="give the targets in another unit.")
        if low < 0:
            what = "the range of the targets must not begin below 0."
            raise InvalidParameter(what, stage=type(self).__name__, fix="pass y_range=(low, high) with low >= 0.")
        return low, high

    def _formulas(self, domain: Domain) -> tuple[dict[str, str], dict[str, Any]]:
        parameters = {"y_range": self._range(domain), "power": self._power()}
        return {"dpgd": "learning.glm-gradient"}, parameters

    def _residuals(self, scores: Array, y: Array) -> Array:
        return _tweedie_residuals(self._power(), scores, y)

    def _loss(self, question: QuerySpec) -> TrainingLoss:
        power = self._power()
        return tweedie_loss(power, 1 / target_unit(question.parameters["y_range"]) if power == 1 else math.nan)

    def _step(self, domain: Domain, scores: int) -> float:
        longest = LONGEST_STEP if is_auto(self.learning_rate) else math.inf
        return min(super()._step(domain, scores), longest)

    def _radius(self, domain: Domain) -> float:
        return 4.0 if is_auto(self.max_coef_norm) else super()._radius(domain)

    def _encode(self, domain: Domain, y: Any) -> tuple[Domain, Array]:
        y = targets_alone(y, type(self).__name__)
        if self.y_range is None:
            low, high = float(y.min()), float(y.max())
            if low < 0:
                what = "some target is negative."
                raise InvalidValue(what, stage=type(self).__name__, fix="Ridge, which takes any target.")
            domain = domain.but(y_range=(low, high) if low < high else (low, low + 1.0))
        return domain, encode_targets(y, self._range(domain))

    def release(self, rows: Rows, question: QuerySpec, noise: Noise, noise_scale: float) -> dict[str, Array]:
        shares = partial(_as_shares, *target_shares(question.parameters["y_range"]))
        return super().release(rows.each(shares, rows.d), question, noise, noise_scale)

    def _in_units(self, coef: Array, intercept: Array, question: QuerySpec) -> tuple[Array, Array]:
        return coef[..., 0, :], math.log(target_unit(question.parameters["y_range"])) + intercept[..., 0]

    def _predicted(self, scores: Array) -> Array:
        return super()._predicted(np.exp(np.clip(scores, -LARGEST_EXPONENT, LARGEST_EXPONENT)))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """D², the share of the deviance that is explained, as scikit-learn's.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights.
        """
        return float(d2_tweedie_score(y, self.predict(X), sample_weight=sample_weight, power=self._power()))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


def _as_shares(low: float, high: float, rows: Rows) -> Rows:
    assert rows.y is not None
    return replace(rows, y=np.clip(low / 2 + high / 2 + (high / 2 - low / 2) * rows.y, low, high))


@dataclass(eq=False, repr=False)
class TweedieRegressor(_LogLink, Mechanism):
    """Generalised linear model of a compound distribution, by noisy Newton steps or noisy gradient descent.

    The mean is ``exp(score)`` and the variance proportional to its ``power``: 1 for counts, 2 for amounts, between
    them for sums of amounts that are often 0. Targets are clipped to a public range.

    Parameters
    ----------
    power : float, default=1.5
        Power of the mean that the variance is proportional to, 1 to 2.
    """

    _: KW_ONLY
    power: float = 1.5


class PoissonRegressor(_LogLink, Mechanism):
    """Poisson regression of counts, by noisy Newton steps or noisy gradient descent.

    :class:`TweedieRegressor` of power 1: every row's gradient is ``(exp(score) - y) x``, the count as a share of the
    public unit.
    """


class GammaRegressor(_LogLink, Mechanism):
    """Gamma regression of positive amounts, by noisy Newton steps or noisy gradient descent.

    :class:`TweedieRegressor` of power 2: every row's gradient is ``(1 - y exp(-score)) x``, the amount as a share of
    the public unit.
    """

    power = 2.0
