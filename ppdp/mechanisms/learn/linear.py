"""What linear models share: their parameters, their question, their solvers, and scikit-learn's manners."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ppdp.bounds.learning import kept_steps
from ppdp.bounds.newton import DIRECTED, newton_width
from ppdp.core.checks import choice, flag, integer, number, positive
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.rounding import BLOCK
from ppdp.data.intake import validated
from ppdp.data.intervals import no_ends, rows_are_a_sample
from ppdp.data.rows import Array, Rows
from ppdp.data.statistics import multiplied
from ppdp.data.stream import Stream
from ppdp.data.units import Answers, Columns
from ppdp.mechanisms.base import Question, SharedDocstring
from ppdp.mechanisms.learn.batches import batches, poisson_sample, secret_one
from ppdp.mechanisms.learn.descent import (
    ClippedGradient,
    StreamedGradient,
    descend,
    descend_faster,
    descend_on_few_first,
    minimise,
    path,
    projected,
)
from ppdp.mechanisms.learn.errors import Errors
from ppdp.mechanisms.learn.low_rank import fresh_answer, public_basis, refuse_seed
from ppdp.mechanisms.learn.moments import fitted_by_moments, fitted_by_sketch
from ppdp.mechanisms.learn.newton import fitted_by_newton
from ppdp.mechanisms.learn.secants import Secants, clear
from ppdp.mechanisms.learn.solvers import (
    FEW,
    SOLVERS,
    Training,
    in_few_steps,
    newton_pays,
    question,
    too_long,
    why_clipped,
)
from ppdp.mechanisms.learn.supervised import Supervised
from ppdp.mechanisms.learn.told import told
from ppdp.mechanisms.learn.whitened import Loss
from ppdp.privacy.noise.sampler import Noise


def is_auto(value: Any) -> bool:
    """Whether a parameter is left to its public rule."""
    return isinstance(value, str) and value == "auto"


@dataclass(eq=False, repr=False)
class LinearModel(SharedDocstring, Supervised):
    """Mixin for models with linear scores; it stands before :class:`Mechanism` among the bases.

    A model says what its loss is by `_formulas` and `_residuals`, and in which units it is shown by `_in_units`.

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether to learn an intercept (it is clipped, projected and accounted like a coefficient).
    clip : float or "auto", default="auto"
        Norm C at which the gradient of each row is clipped, 1 by default; of no effect under "newton", which reads its
        own off a released histogram.
    random_state : int, RandomState instance or None, default=None
        For tests only: noise that can be predicted protects nobody.

    Attributes
    ----------
    n_iter_ : int
        Number of steps that are paid for; fewer are made where "dpgd" settles before. Under "newton" three more
        answers are.
    """

    _: KW_ONLY
    solver: str = "auto"
    fit_intercept: bool = True
    max_iter: int | str = "auto"
    clip: float | str = "auto"
    coef_norm: float | str = "auto"
    step_size: float | str = "auto"
    noise_scale: float | None = None
    random_state: Any = None
    # Of models that have no such parameter.
    alpha: Any = field(default=0.0, init=False)
    batch_size: Any = field(default="auto", init=False)
    rank: Any = field(default="auto", init=False)

    needs_y = True
    predicts = True

    @property
    def in_memory(self) -> bool:
        return bool(self.solver == "sketch")

    @property
    def weighs(self) -> bool:
        return True

    @property
    def picks(self) -> bool:
        """Whether gradients are taken of some of the rows."""
        return self.solver in ("poisson", "fixed-size", "epochs", "hidden", "m2")

    _staged = False
    _solvers = (*(name for name in SOLVERS if name != "output"), "auto")
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

    def _in_units(self, coef: Array, intercept: Array, question: Question) -> tuple[Array, Array]:
        """Coefficients (..., n_scores, n_features) and intercepts (..., n_scores) as users get them."""
        return coef, intercept

    def _predicted(self, scores: Array) -> NDArray[Any]:
        """What rows of these scores are said to be."""
        raise NotImplementedError

    def question(self: Any, domain: Domain, mu: float | None = None) -> Question:
        solver = choice("solver", self.solver, list(self._solvers), self)
        refuse_seed(solver == "m2" and self.random_state is not None)
        return self._asked(solver, domain, mu)

    def _asked(self: Any, solver: str, domain: Domain, mu: float | None, **changes: Any) -> Question:
        asked = question(solver, domain, replace(self._training(domain), **changes), mu)
        if asked.formula != "learning.newton":
            return asked
        return replace(asked, learned=asked.parameters.get("n_classes", 1) * newton_width(domain, self.fit_intercept))

    def _training(self: Any, domain: Domain) -> Training:
        domain.require("row_norm", type(self).__name__)
        formulas, own = self._formulas(domain)
        scores = own.get("n_classes", 1)
        factors, largest = self._factors(domain)
        largest *= domain.max_weight or 1.0
        gradient = {
            "clip": 1.0 if is_auto(self.clip) else positive("clip", self.clip, self),
            "coef_norm": self._radius(domain) * math.sqrt(scores),
            "fit_intercept": flag("fit_intercept", self.fit_intercept, self),
            **own,
            **({"block": BLOCK} if domain.n > BLOCK else {}),
        }
        return Training(
            type(self).__name__,
            formulas,
            gradient,
            alpha=None if is_auto(self.alpha) else number("alpha", self.alpha, self, least=0) / largest,
            max_iter=None if is_auto(self.max_iter) else integer("max_iter", self.max_iter, self),
            batch_size=None if is_auto(self.batch_size) else integer("batch_size", self.batch_size, self),
            step_size=self._step(domain, scores),
            usual_step=is_auto(self.step_size),
            rank=None if is_auto(self.rank) else integer("rank", self.rank, self),
            penalty=self._newton_alpha / largest,
            factors=factors,
            largest_weight=largest,
        )

    def question_at(self: Any, domain: Domain, distance: Distance, mu: float | None = None) -> Question:
        asked: Question = self.question(domain, mu)
        free, training = self.solver == "auto" and all(map(is_auto, self._of_descent)), self._training(domain)
        if free and newton_pays(domain, distance, training, mu) and not too_long(domain, training):
            usual = self._asked("newton", domain, mu, max_iter=None)
            more = is_auto(self.max_iter) or self.max_iter >= usual.parameters["iterations"]
            return usual if more else self._asked("newton", domain, mu)
        if free:
            asked = replace(asked, warnings=(*asked.warnings, *why_clipped(domain, distance, training, mu)))
        return in_few_steps(asked, domain, distance, mu) if mu and is_auto(self.max_iter) else asked

    @property
    def _of_descent(self: Any) -> tuple[Any, ...]:
        """Parameters that Newton steps have no use for."""
        return self.clip, self.coef_norm, self.step_size, self.batch_size

    def _loss(self, question: Question) -> Loss:
        """The loss as Newton steps see it."""
        raise NotImplementedError

    def _radius(self: Any, domain: Domain) -> float:
        """Longest coefficients of one score; shorter rows need longer ones."""
        if is_auto(self.coef_norm):
            return self._usual_norm * max(1.0, math.sqrt(domain.d) / float(domain.require("row_norm")))
        return positive("coef_norm", self.coef_norm, self)

    def _step(self: Any, domain: Domain, scores: int) -> float:
        """Length of a step: by default for entries of about 1 (less if rows are shorter) and an intercept."""
        if is_auto(self.step_size):
            spread = min(float(domain.require("row_norm")) ** 2, domain.d) / math.sqrt(domain.d)
            return 1.2 / (self._curvature * max(1.0, spread)) * max(1.0, scores / 3)
        return positive("step_size", self.step_size, self, most=1e6)

    def _solver_of(self: Any, question: Question) -> str:
        """The solver, also where it was left to the public rule."""
        rule = "newton" if question.formula == "learning.newton" else "dpgd"
        return rule if self.solver == "auto" else str(self.solver)

    def settle(self: Any, question: Question) -> None:
        self.solver = self._solver_of(question)
        parameters = question.parameters
        usual = parameters.get("iterations", parameters.get("epochs", question.steps))
        self.max_iter = 1 if self.solver == "hidden" else usual
        for name in ("batch_size", "rank"):
            if name in parameters:
                setattr(self, name, parameters[name])
        if "alpha" in parameters and is_auto(self.alpha):
            self.alpha = parameters["alpha"] * question.largest_weight
        self.step_size = question.step_size or self.step_size
        if "coef_norm" in parameters:
            self.coef_norm = parameters["coef_norm"] / math.sqrt(parameters.get("n_classes", 1))

    def release(self: Any, rows: Rows, question: Question, noise: Noise, noise_scale: float) -> dict[str, Array]:
        parameters, steps, solver = question.parameters, question.steps, self._solver_of(question)

        def plain(value: Array) -> Array:
            return noise.release(value.ravel(), noise_scale, question.bound).reshape(value.shape)

        if solver == "newton":
            models, errors = fitted_by_newton(rows, self._loss(question), plain, noise_scale, question.size, parameters)
            last = {"theta": models[-1].ravel()} | ({"errors": errors} if parameters["loss"] in DIRECTED else {})
            on_the_way = np.array([models[step - 1].ravel() for step in kept_steps(len(models))])
            return {**last, "path": on_the_way} if self._staged else last
        radius = parameters["coef_norm"]
        if solver == "sketch":
            penalty = self._penalty(rows.n, question)
            return {"theta": fitted_by_sketch(rows, noise, noise_scale, question.bound, penalty, parameters)}
        if solver == "lora-fa":
            rows = rows.each(partial(_seen, public_basis(rows.d, parameters["rank"])), parameters["rank"])
        clip = parameters.get("gradient_clip", parameters.get("clip"))
        held: Any = StreamedGradient if isinstance(rows, Stream) else ClippedGradient.of
        gradient = held(rows, self._residuals, clip, parameters["fit_intercept"])
        width = gradient.width
        start = np.zeros((parameters.get("n_classes", 1), width))

        fresh = solver == "m2"
        answer = fresh_answer(noise, noise_scale, question.bound, parameters["rank"]) if fresh else plain
        if solver == "output":
            theta = minimise(
                gradient,
                start,
                iterations=parameters["iterations"],
                smoothness=parameters["smoothness"],
                strength=parameters["alpha"] / rows.n,
                radius=radius,
            )
            return {"theta": projected(answer(theta), radius).ravel()}
        if solver == "moments":
            penalty = self._penalty(rows.n, question)
            return {"theta": fitted_by_moments(rows, gradient, answer, noise_scale, penalty, parameters)}
        d = rows.d
        penalty = np.zeros(width)  # the intercept is free
        penalty[:d] = (self._usual_alpha if is_auto(self.alpha) else self.alpha) / question.largest_weight / rows.n
        how = {"steps": steps, "step_size": question.step_size, "radius": radius, "penalty": penalty}
        if solver in ("dpgd", "lora-fa"):
            faster = clear(noise_scale, parameters["clip"], question.size)
            secants = Secants(question.step_size, noise_scale) if faster else None
            how |= {"secants": secants, "ends": faster and is_auto(self.max_iter) and question.formula in FEW}
            if question.share < 1 and faster:
                few = gradient.on(poisson_sample(noise, rows.n, question.share), rows.n)
                iterates = descend_on_few_first(few, gradient, answer, start, question.share, **how)
            else:
                iterates = descend_faster(gradient, answer, start, **how)
        else:
            size = parameters["batch_size"]
            drawn = batches("poisson" if fresh else solver, noise, rows.n, size, steps)
            every = repeat(gradient) if fresh and size == rows.n else None
            gradients = every or (gradient.on(batch, size) for batch in drawn)
            iterates = descend(gradients, answer, start, **how)
        if solver == "hidden":
            return {"theta": secret_one(noise, iterates, steps).ravel()}
        kept = path(iterates, steps).reshape(-1, start.size)
        last = {"theta": kept[-1].copy()}
        return {**last, "path": kept} if self._staged else last

    def _penalty(self: Any, n: int, question: Question) -> float:
        """What "moments" and "sketch" add to eigenvalues."""
        return 0.0 if is_auto(self.alpha) else self.alpha / question.largest_weight / n

    def read(self: Any, released: Mapping[str, Array], domain: Domain, question: Question) -> None:
        self.n_iter_ = question.parameters.get("iterations", question.steps)
        for name in ("coef_path_", "intercept_path_", "path_steps_"):  # of an earlier fit by another solver
            vars(self).pop(name, None)
        self.coef_, self.intercept_ = self._in_units(*self._parts(released["theta"], domain.d, question), question)
        self._errors = released.get("errors")
        radius = question.parameters.get("coef_norm", math.inf)
        self._inside = bool(np.linalg.norm(released["theta"]) < (1 - 1e-9) * radius)
        if "path" in released:
            self.path_steps_ = np.array(kept_steps(self.n_iter_))
            models = self._parts(released["path"], domain.d, question)
            self.coef_path_, self.intercept_path_ = self._in_units(*models, question)

    def _parts(self: Any, thetas: Array, d: int, question: Question) -> tuple[Array, Array]:
        models = thetas.reshape(*thetas.shape[:-1], question.parameters.get("n_classes", 1), -1)
        coef, intercept = models, np.zeros(models.shape[:-1])
        if self.fit_intercept:
            coef, intercept = models[..., :-1], models[..., -1].copy()
        if self.solver == "lora-fa":
            return coef @ public_basis(d, coef.shape[-1]).T, intercept
        return coef.copy(), intercept

    def answers(self: Any, columns: Columns, domain: Domain, question: Question) -> list[Answers]:
        own, _ = self._in_units(np.ones((1, 1)), np.zeros(1), question)
        if self.solver == "output":  # noise on the model itself, and none before
            width = domain.d + bool(self.fit_intercept)
            found = told(self, columns, Errors.alike(width, self.own_noise_scale() * own.item()))
            return found if self._inside else [replace(one, ends=partial(no_ends, one.value)) for one in found]
        sampled = rows_are_a_sample(domain) and getattr(self, "class_weight", None) is None
        return told(self, columns, Errors.of(self._errors, own.item(), sampled=sampled))

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
        check_is_fitted(self)
        return scores_of(validated(self, X, dtype=np.float64, reset=False), self.coef_, self.intercept_)


def _seen(basis: Array, rows: Rows) -> Rows:
    return replace(rows, X=multiplied(rows.X, basis))


def scores_of(X: Array, coef: Array, intercept: Array) -> Array:
    """Scores that one model, or each of several, gives every row; without an axis for a single score."""
    scores = X @ coef.T + intercept
    return np.asarray(scores[:, 0] if coef.ndim == 2 and len(coef) == 1 else scores)
