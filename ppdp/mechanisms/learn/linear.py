"""What linear models share: their parameters, their question, their solvers, and scikit-learn's manners."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ppdp.bounds.learning import kept_steps
from ppdp.core.checks import choice, flag, integer, number, positive
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.rounding import BLOCK
from ppdp.data.rows import Array, Rows
from ppdp.data.unit_conversion import Answers, Columns, no_ends, rows_are_a_sample
from ppdp.mechanisms.base import QuerySpec, SharedDocstring
from ppdp.mechanisms.learn.errors import coefficient_answers
from ppdp.mechanisms.learn.gradient_solvers import (
    FixedSizeBatches,
    FreshProjections,
    GradientDescent,
    HiddenState,
    OutputPerturbation,
    PoissonBatches,
    PublicProjection,
    ShuffledBatches,
    in_few_steps,
    refuse_seed,
)
from ppdp.mechanisms.learn.moments import SecondMoments, SketchedMoments
from ppdp.mechanisms.learn.solvers import Newton, Solver, TrainingConfig, TrainingRun
from ppdp.mechanisms.learn.whitened import TrainingLoss
from ppdp.mechanisms.standalone import Supervised
from ppdp.privacy.noise.sampler import Noise

DESCENT = ("newton", "dpgd", "poisson", "fixed-size", "epochs", "hidden")
SOLVERS: dict[str, Solver] = {  # by the value of `solver`; "auto" is one of those in `USUAL`, or "dpgd"
    kind.name: kind()
    for kind in (
        Newton,
        GradientDescent,
        PoissonBatches,
        FixedSizeBatches,
        ShuffledBatches,
        HiddenState,
        OutputPerturbation,
        SecondMoments,
        SketchedMoments,
        FreshProjections,
        PublicProjection,
    )
}
USUAL = {"learning.newton": "newton", "learning.squared-moments": "moments"}  # what "auto" has become, by formula


def solver_of(model: Any, question: QuerySpec | None = None) -> Solver:
    """The solver of a model; where it is left to the public rule, as the question has it."""
    usual = SOLVERS["dpgd" if question is None else USUAL.get(question.formula, "dpgd")]
    return SOLVERS.get(model.solver, usual) if isinstance(model.solver, str) else usual


def has_path(model: Any) -> bool:
    """Whether the iterates are released, so that there are learning curves; for ``available_if``."""
    return solver_of(model).releases_path


def is_auto(value: Any) -> bool:
    """Whether a parameter is left to its public rule."""
    return isinstance(value, str) and value == "auto"


@dataclass(eq=False, repr=False)
class LinearModel(SharedDocstring, Supervised):
    """Mixin for models with linear scores; it stands before :class:`Mechanism` among the bases.

    A model says what its loss is by `_formulas` and `_loss`, and in which units it is shown by `_in_units`.

    Parameters
    ----------
    solver : str, default="auto"
        Noisy Newton steps ("newton"), or noisy projected gradient descent on all rows ("dpgd"); of models with a
        ``batch_size`` also on batches ("poisson", "fixed-size", "epochs", "hidden"). Where no stage in front moves all
        rows, "auto" is "newton" if they are many for the columns (``docs/theory/newton.md``, *The default*), but second
        "moments" of least squares if most columns are categories (``docs/theory/second-moments.md``) and rows few. It
        is "dpgd" elsewhere, and where one of ``max_grad_norm``, ``max_coef_norm``, ``learning_rate`` and
        ``batch_size`` is given or searched over: they have no effect under "newton".
    fit_intercept : bool, default=True
        Whether to learn an intercept (it is clipped, projected and accounted like a coefficient).
    max_iter : int or "auto", default="auto"
        Number of steps T. "auto": under "newton" 3 to 7, which where the solver is "auto" a number can only make fewer;
        under "dpgd" ``6 (n μ / √(d + 1))^0.275``, between 10 and 80, but 30 or 40 of many rows, for n rows, d columns
        and the share μ of the budget, k (d + 1) in place of d + 1 for k > 2 classes
        (``docs/theory/noisy-gradient-descent.md``, *How many steps*).
    max_grad_norm : float or "auto", default="auto"
        Norm C at which the gradient of each row is clipped, 1 by default; "newton" reads its own off a released
        histogram.
    max_coef_norm : float or "auto", default="auto"
        Radius D of the ball of coefficients, intercept included; of k > 2 classes all together, ``D √k``.
        "auto": ``5 max(1, √d / R)`` for classes and ``2 max(1, √d / R)`` for targets, R the norm of the rows.
    learning_rate : float or "auto", default="auto"
        Of the first step under "dpgd": where noise is small, later ones are longer if released gradients show that the
        loss is flat. "auto": ``s / max(1, min(R², d) / √d)`` with s = 1.2 for least squares, 2.4 for the hinge loss and
        4.8 for the logistic one, there k / 3 times that for k > 3 classes.
    noise_scale : float, optional
        Standard deviation of the noise on the mean gradient, per step; a pipeline sets it.
    random_state : int, RandomState instance or None, default=None
        For tests only: noise that can be predicted protects nobody.

    Attributes
    ----------
    n_iter_ : int
        Number of steps that are paid for; fewer are made where "dpgd" settles before. Under "newton" three more
        answers are.

    Notes
    -----
    Under "newton" (``docs/theory/newton.md``) rows are centred and whitened by released second moments. Every step then
    releases the mean of the rows' clipped gradients, and of their clipped curvatures, with Gaussian noise. As rows grow
    in number, the last model goes to scikit-learn's. **Guarantee**: ``μ = 2 √A / (n σ)`` for one row that is replaced
    or moved, with A = T + 3 answers, or T + 5 where slope and intercept are calibrated.

    Under "dpgd" (``docs/theory/noisy-gradient-descent.md``) every row's gradient is clipped, their sum is divided by
    the public number of rows, Gaussian noise is added, and the coefficients are projected on a ball. The released model
    is the average of the last half of the iterates. **Guarantee**:
    ``μ = √T (C mass + min(L total, 2C moved)) / (n σ)``, L the Lipschitz constant of the row's gradient in the row.
    """

    _: KW_ONLY
    solver: str = "auto"
    fit_intercept: bool = True
    max_iter: int | str = "auto"
    max_grad_norm: float | str = "auto"
    max_coef_norm: float | str = "auto"
    learning_rate: float | str = "auto"
    noise_scale: float | None = None
    random_state: Any = None
    # Of models that have no such parameter.
    alpha: Any = field(default=0.0, init=False)
    batch_size: Any = field(default="auto", init=False)
    rank: Any = field(default="auto", init=False)

    needs_y = True
    predicts = True
    weighs = True

    @property
    def in_memory(self) -> bool:
        return solver_of(self).in_memory

    @property
    def samples_rows(self) -> bool:
        return solver_of(self).samples_rows

    def passes(self, question: QuerySpec, domain: Domain) -> int:
        return solver_of(self, question).passes(question, domain)

    _staged = False
    _solvers: ClassVar[tuple[str, ...]] = (*DESCENT, "auto")
    _curvature = 1.0
    _usual_alpha = 0.0
    _usual_norm = 5.0
    _newton_alpha = 0.0

    def _formulas(self, domain: Domain) -> tuple[dict[str, str], dict[str, Any]]:
        """Ids of the sensitivities of "dpgd" and "output", and the parameters of the loss."""
        raise NotImplementedError

    def _factors(self, domain: Domain) -> tuple[tuple[float, ...], float]:
        """As what parts of the largest weight losses of each class count, empty if all weigh the same; and that."""
        return (), 1.0

    def _residuals(self, scores: Array, y: Array) -> Array:
        """Derivative of every row's loss in its scores, both of shape (n_rows, n_scores)."""
        raise NotImplementedError

    def _in_units(self, coef: Array, intercept: Array, question: QuerySpec) -> tuple[Array, Array]:
        """Coefficients (..., n_scores, n_features) and intercepts (..., n_scores) as users get them."""
        return coef, intercept

    def _predicted(self, scores: Array) -> NDArray[Any]:
        """What rows of these scores are said to be."""
        raise NotImplementedError

    def query_spec(self: Any, domain: Domain, mu: float | None = None) -> QuerySpec:
        choice("solver", self.solver, list(self._solvers), self)
        solver = solver_of(self)
        refuse_seed(not solver.seedable and self.random_state is not None)
        return self._question_of(solver, domain, self._config(domain), mu)

    @staticmethod
    def _question_of(solver: Solver, domain: Domain, config: TrainingConfig, mu: float | None) -> QuerySpec:
        question = solver.query_spec(domain, config, mu)
        factors, largest = config.factors, config.largest_weight
        learning_rate = question.parameters.get("step_size", config.learning_rate)
        return replace(question, learning_rate=learning_rate, factors=factors, largest_weight=largest)

    def _config(self: Any, domain: Domain) -> TrainingConfig:
        domain.require("row_norm", type(self).__name__)
        formulas, of_loss = self._formulas(domain)
        scores = of_loss.get("n_classes", 1)
        factors, largest = self._factors(domain)
        largest *= domain.max_weight or 1.0
        gradient = {
            "clip": 1.0 if is_auto(self.max_grad_norm) else positive("max_grad_norm", self.max_grad_norm, self),
            "coef_norm": self._radius(domain) * math.sqrt(scores),
            "fit_intercept": flag("fit_intercept", self.fit_intercept, self),
            **of_loss,
            **({"block": BLOCK} if domain.n > BLOCK else {}),
        }
        return TrainingConfig(
            type(self).__name__,
            formulas,
            gradient,
            alpha=None if is_auto(self.alpha) else number("alpha", self.alpha, self, least=0) / largest,
            max_iter=None if is_auto(self.max_iter) else integer("max_iter", self.max_iter, self),
            batch_size=None if is_auto(self.batch_size) else integer("batch_size", self.batch_size, self),
            learning_rate=self._step(domain, scores),
            usual_step=is_auto(self.learning_rate),
            rank=None if is_auto(self.rank) else integer("rank", self.rank, self),
            newton_alpha=self._newton_alpha / largest,
            factors=factors,
            largest_weight=largest,
        )

    def query_spec_at(self: Any, domain: Domain, distance: Distance, mu: float | None = None) -> QuerySpec:
        question: QuerySpec = self.query_spec(domain, mu)
        config = self._config(domain)
        of_descent = self.max_grad_norm, self.max_coef_norm, self.learning_rate, self.batch_size
        if self.solver == "auto" and all(map(is_auto, of_descent)):
            if SecondMoments.pays(domain, distance, config, mu):
                return self._question_of(SOLVERS["moments"], domain, config, mu)
            if Newton.pays(domain, distance, config, mu) and not Newton.takes_long(domain, config):
                newton = SOLVERS["newton"]
                usual = self._question_of(newton, domain, replace(config, max_iter=None), mu)
                more = is_auto(self.max_iter) or self.max_iter >= usual.parameters["iterations"]
                return usual if more else self._question_of(newton, domain, config, mu)
            warnings = (*question.warnings, *Newton.why_not(domain, distance, config, mu))
            question = replace(question, warnings=warnings)
        return in_few_steps(question, domain, distance, mu) if mu and is_auto(self.max_iter) else question

    def _loss(self, question: QuerySpec) -> TrainingLoss:
        """The loss of a row."""
        raise NotImplementedError

    def _radius(self: Any, domain: Domain) -> float:
        """Longest coefficients of one score; shorter rows need longer ones."""
        if is_auto(self.max_coef_norm):
            return self._usual_norm * max(1.0, math.sqrt(domain.d) / float(domain.require("row_norm")))
        return positive("max_coef_norm", self.max_coef_norm, self)

    def _step(self: Any, domain: Domain, scores: int) -> float:
        """Length of a step: by default for entries of about 1 (less if rows are shorter) and an intercept."""
        if is_auto(self.learning_rate):
            spread = min(float(domain.require("row_norm")) ** 2, domain.d) / math.sqrt(domain.d)
            return 1.2 / (self._curvature * max(1.0, spread)) * max(1.0, scores / 3)
        return positive("learning_rate", self.learning_rate, self, most=1e6)

    def settle(self: Any, question: QuerySpec) -> None:
        solver, parameters = solver_of(self, question), question.parameters
        self.solver, self.max_iter = solver.name, solver.max_iter(question)
        for name in ("batch_size", "rank"):
            if name in parameters:
                setattr(self, name, parameters[name])
        if "alpha" in parameters and is_auto(self.alpha):
            self.alpha = parameters["alpha"] * question.largest_weight
        self.learning_rate = question.learning_rate or self.learning_rate
        if "coef_norm" in parameters:
            self.max_coef_norm = parameters["coef_norm"] / math.sqrt(parameters.get("n_classes", 1))

    def release(self: Any, rows: Rows, question: QuerySpec, noise: Noise, noise_scale: float) -> dict[str, Array]:
        run = TrainingRun(
            rows,
            question,
            self._loss(question),
            noise,
            noise_scale,
            alpha=None if is_auto(self.alpha) else self.alpha / question.largest_weight,
            usual_alpha=self._usual_alpha / question.largest_weight,
            early_stopping=is_auto(self.max_iter),
            keeps_path=self._staged,
            over=not self.counts_rows,
        )
        return solver_of(self, question).release(run)

    def read(self: Any, released: Mapping[str, Array], domain: Domain, question: QuerySpec) -> None:
        self.n_iter_ = question.parameters.get("iterations", question.steps)
        for name in ("coef_path_", "intercept_path_", "path_steps_"):  # of an earlier fit by another solver
            vars(self).pop(name, None)
        self.coef_, self.intercept_ = self._in_units(*self._split(released["theta"], domain.d, question), question)
        self._errors = released.get("errors")
        radius = question.parameters.get("coef_norm", math.inf)
        self._inside = bool(np.linalg.norm(released["theta"]) < (1 - 1e-9) * radius)
        if "path" in released:
            self.path_steps_ = np.array(kept_steps(self.n_iter_))
            models = self._split(released["path"], domain.d, question)
            self.coef_path_, self.intercept_path_ = self._in_units(*models, question)

    def _split(self: Any, thetas: Array, d: int, question: QuerySpec) -> tuple[Array, Array]:
        """Coefficients and intercepts of released models."""
        models = thetas.reshape(*thetas.shape[:-1], question.parameters.get("n_classes", 1), -1)
        coef, intercept = models, np.zeros(models.shape[:-1])
        if self.fit_intercept:
            coef, intercept = models[..., :-1], models[..., -1].copy()
        return solver_of(self, question).coefficients(coef, d), intercept

    def answers(self: Any, columns: Columns, domain: Domain, question: QuerySpec) -> list[Answers]:
        unit, _ = self._in_units(np.ones((1, 1)), np.zeros(1), question)
        solver, width = solver_of(self, question), domain.d + bool(self.fit_intercept)
        sampled = rows_are_a_sample(domain) and getattr(self, "class_weight", None) is None
        known = None if getattr(self, "calibration", None) else self._errors  # that of a slope is in none of them
        errors = solver.errors(known, width, unit.item(), self.noise_scale, sampled)
        coefficients = coefficient_answers(self, columns, errors)
        if solver.perturbs_model and not self._inside:
            return [replace(one, ends=partial(no_ends, one.value)) for one in coefficients]
        return coefficients

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")

    def predict(self, X: Any) -> NDArray[Any]:
        """Most likely label, or predicted target, of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        """
        return self._predicted(self._scores(X))

    def _scores(self: Any, X: Any) -> Array:
        """Score of each row, or of each row and class if there are several."""
        return scores_of(self._new_rows(X), self.coef_, self.intercept_)


def scores_of(X: Array, coef: Array, intercept: Array) -> Array:
    """Scores that one model, or each of several, gives every row; without an axis for a single score."""
    scores = X @ coef.T + intercept
    return np.asarray(scores[:, 0] if coef.ndim == 2 and len(coef) == 1 else scores)


@dataclass(eq=False, repr=False)
class BatchModel(LinearModel):
    """Mixin for models whose gradients are taken of all rows or of batches, and whose iterates are released.

    Parameters
    ----------
    batch_size : int or "auto", default="auto"
        Rows in a batch B, their expected number under "poisson"; of no effect under "dpgd" and "output". "auto": the
        larger of 256 and ``n / 50`` where batches are sampled; under "epochs" ``√(n μ / √(d + 1)) / 2`` batches hold
        all rows, 4 to 100; under "hidden" 100 do.

    Attributes
    ----------
    coef_path_, intercept_path_ : ndarray
        Those of up to 100 models on the way, along a first axis, where the solver releases its iterates.
    path_steps_ : ndarray of shape (n_models,)
        After how many steps these models stood.

    Notes
    -----
    Under "poisson" every step takes each row by a secret coin of probability B/n, under "fixed-size" B secret rows
    without replacement; ``max_iter="auto"`` is ``4 √(n μ / √(d + 1))``, between 10 and 400, and at least
    ``(0.4 n / B)²``, up to 1000. Under "epochs" disjoint batches are taken, in whole passes over the rows, shuffled
    once; ``max_iter`` counts passes, 1 to 10. **Guarantee** (``docs/theory/subsampling.md``): exact distributions of
    the privacy loss, and ``μ = √E (C mass + √(M S)) / (B σ)`` for E passes. "hidden", experimental, is one such pass of
    which only one iterate, at a secret time, is released: the Rényi curve of ``docs/theory/renyi.md``; convex losses
    and steps of at most 2 / smoothness are demanded when planning. Noise is on the mean gradient of a batch, over B.
    """

    _: KW_ONLY
    batch_size: int | str = "auto"

    _staged = True

    @available_if(has_path)
    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Labels or targets that the model would predict after the steps of ``path_steps_``; the last are its own.

        Made from released iterates only, so a learning curve on other rows costs nothing.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        """
        return map(self._predicted, self._staged_scores(X))

    def _staged_scores(self: Any, X: Any) -> Iterator[Array]:
        """Scores that the models on the way give each row."""
        check_is_fitted(self, "coef_path_")
        X = self._new_rows(X)
        for coef, intercept in zip(self.coef_path_, self.intercept_path_):
            yield scores_of(X, coef, intercept)
