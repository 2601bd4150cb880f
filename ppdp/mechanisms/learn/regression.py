"""Linear models of targets in a public range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from ppdp.core.domain import Domain
from ppdp.data.rows import Array
from ppdp.mechanisms.base import Mechanism, Question
from ppdp.mechanisms.learn.linear import DESCENT, BatchModel, LinearModel
from ppdp.mechanisms.learn.whitened import Loss


@dataclass(eq=False, repr=False)
class LinearRegressor(LinearModel, RegressorMixin):
    """Mixin for linear models of targets in a public range.

    Parameters
    ----------
    y_range : tuple of two floats, optional
        Public range of the targets, here or in the pipeline's domain; targets outside are clipped.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients, in units of the targets.
    intercept_ : float
        Intercept; the centre of the range if none is learned.
    y_range_ : tuple of two floats
        Range of the targets, in which all predictions lie.
    """

    y_range: Sequence[float] | None = None

    def _in_units(self, coef: Array, intercept: Array, question: Question) -> tuple[Array, Array]:
        low, high = question.parameters["y_range"]
        half, centre = high / 2 - low / 2, low / 2 + high / 2
        return half * coef[..., 0, :], centre + half * intercept[..., 0]

    def read(self, released: Mapping[str, Array], domain: Domain, question: Question) -> None:
        super().read(released, domain, question)
        self.intercept_ = float(self.intercept_)
        low, high = question.parameters["y_range"]
        self.y_range_ = float(low), float(high)

    def _predicted(self, scores: Array) -> Array:
        return np.clip(scores, *self.y_range_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags


def _same(scores: Array) -> Array:
    return scores


@dataclass(eq=False, repr=False)
class LinearRegression(BatchModel, LinearRegressor, Mechanism):
    """Least squares by noisy Newton steps or noisy gradient descent.

    Targets are clipped to a public range and rescaled to [-1, 1]. ``solver="newton"``: rows are centred and whitened
    by released second moments, and every step releases the mean of the rows' clipped gradients with Gaussian noise. As
    rows grow in number, the last model goes to scikit-learn's.

    ``solver="dpgd"``: every row's gradient is clipped, their sum is divided by the public number of rows, Gaussian
    noise is added, and the coefficients are projected on a ball. The released model is the average of the last half of
    the iterates. The parameters ``clip``, ``coef_norm`` and ``noise_scale`` speak of targets that are rescaled.
    """

    _usual_norm = 2.0

    def _formulas(self, domain: Domain) -> tuple[dict[str, str], dict[str, Any]]:
        names = {"dpgd": "squared-gradient", "output": "squared-minimiser", "moments": "squared-moments"}
        names["sketch"] = "squared-sketch"
        formulas = {solver: f"learning.{name}" for solver, name in names.items()}
        return formulas, {"y_range": self._range(domain)}

    def _residuals(self, scores: Array, y: Array) -> Array:
        return scores - y[:, None]

    def _loss(self, question: Question) -> Loss:
        def curvatures(scores: Array, y: Array | None = None) -> Array:
            return np.ones_like(scores)

        return Loss(self._residuals, curvatures, curvatures, lambda y: y[:, None], _same, None)


@dataclass(eq=False, repr=False)
class Ridge(LinearRegression):
    """Least squares with a squared penalty: by Newton steps, gradients or second moments, or noise on the exact model.

    ``solver="newton"`` and ``"dpgd"`` are those of :class:`LinearRegression`; the penalty acts on released numbers.
    ``solver="output"``: the penalised loss is minimised over the ball without noise, every row's gradient clipped
    (which makes it Huber's loss), and Gaussian noise is added to the minimiser, once. ``solver="moments"``: noisy
    second moments of rows and targets are solved, every direction damped by what is noise in it, and a few noisy
    gradients refine that. ``solver="sketch"``: the
    second moments of a noisy Gaussian sketch are solved like that, and nothing is refined.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Weight of the penalty ``alpha/2 |coef|²`` beside half the sum of squares, as scikit-learn's. "auto": 1; under
        "output", where it penalises the intercept too and must be positive, what balances its bias with
        the noise; under "moments" no more than what damps noise.
    solver : str, default="auto"
        Noisy Newton steps ("newton"); projected gradient descent on all rows ("dpgd") or on batches ("poisson",
        "fixed-size", "epochs", "hidden"), as the notes have it; "output" perturbation; "moments", for which ``clip``
        and ``step_size`` have no effect and ``max_iter`` counts the moments as one answer (5 in all, 1 where
        ``n μ < d``); or a "sketch", for which it has none, either. "auto" is "newton" or "dpgd", as for
        :class:`LinearRegression`.
    rank : int or "auto", default="auto"
        Rows of the sketch under "sketch", more than there are features. "auto": ``(2 n μ / d)²``, at
        least ``64 d``, up to 2^20 numbers in all.

    Notes
    -----
    Under "sketch" (``docs/theory/gaussian-sketch.md``): a pair of chi-squared variables of which the law is exact.

    Under "moments" (``docs/theory/second-moments.md``): ``μ = √10 N²/(n σ)`` for one replaced row, N the norm at which
    rows are clipped.

    Under "output" (``docs/theory/output-perturbation.md``): ``μ = (C mass + min(L total, 2C moved)) / (alpha σ)``.
    """

    _: KW_ONLY
    alpha: float | str = "auto"
    rank: int | str = "auto"

    _solvers = (*DESCENT, "output", "moments", "sketch", "auto")
    _usual_alpha = _newton_alpha = 1.0
