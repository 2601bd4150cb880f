"""Solvers of linear models: each asks its question of the rows, and trains on them.

Every rule for what is left open is a function of public facts: the number of rows, of features and of classes, and the
budget.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ppdp.bounds.learning import kept_steps
from ppdp.bounds.newton import DIRECTED, answers, newton_width
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.rows import Array, Rows
from ppdp.data.stream import Stream
from ppdp.exceptions import InvalidParameter
from ppdp.mechanisms.base import PRESENT, QuerySpec
from ppdp.mechanisms.learn.descent import ClippedGradient, StreamedGradient
from ppdp.mechanisms.learn.errors import Errors
from ppdp.mechanisms.learn.newton import fitted_by_newton
from ppdp.mechanisms.learn.whitened import TrainingLoss
from ppdp.privacy.noise.sampler import Noise

USUAL_MU = 0.2
# Newton steps: shares of norms, moments and lengths; of a step's curvature; and how much more the last step has.
SHARES, CURVATURE, LAST = (0.01, 0.14, 0.02), 0.08, 2.0
FULL_CURVATURE = 100.0  # `n mu / numbers` over the root of the width, below which noise hides all but the diagonal
CERTAIN = 150.0  # `n mu / numbers` at which three steps are enough; one more for each doubling, up to so many
FEWEST, MOST_STEPS = 3, 7
MOST_ITERATIONS = 1000
# Share of the steps of slope and intercept of two classes, and `n mu / numbers` from which on they are made.
CALIBRATION, CALIBRATED = 0.05, 200.0
MOST_NUMBERS = 50_000  # in one answer: matrices of more take long
LEAST_WORTH = {"squared": 100.0, "glm": 200.0}  # `n mu / numbers`, below which descent is better; of others 25 ...
WIDE, ENOUGH = 10.0, 300.0  # ... or this, where `n mu` is enough to see how long rows are
CLIPPED = (
    "{stage} is trained by gradient descent, which clips gradients: what it predicts keeps a bias, however many rows"
    " there are. Newton steps have none, but {why}."
)


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """How a linear model is to be trained: checked and public; None is left to the solver's rule."""

    stage: str  # the estimator, for errors
    formulas: Mapping[str, str]  # ids of the sensitivities, by solver
    gradient: Mapping[str, Any]  # parameters of a row's gradient
    alpha: float | None
    max_iter: int | None  # steps or passes
    batch_size: int | None
    learning_rate: float
    usual_step: bool  # whether that is by a rule, and may be shorter
    rank: int | None = None  # dimensions of a projection, or rows of a sketch
    newton_alpha: float = 0.0  # the usual alpha of Newton steps
    factors: tuple[float, ...] = ()  # as what parts of the largest weight losses of each class count
    largest_weight: float = 1.0  # over which penalties are

    @property
    def loss(self) -> str:
        """Name of the loss where batches of it are asked for."""
        return self.formulas["dpgd"].removeprefix("learning.").removesuffix("-gradient")

    @property
    def n_scores(self) -> int:
        """Scores of a row: one for each class, if there are more than two."""
        return int(self.gradient.get("n_classes", 1))

    def batch(self, domain: Domain, usual: float) -> int:
        """Rows in a batch, if there are so many."""
        if self.batch_size is not None and self.batch_size > domain.n:
            what = f"batch_size = {self.batch_size} is more than n_samples = {domain.n}."
            fix = "a smaller batch_size, or solver='dpgd'."
            raise InvalidParameter(what, stage=self.stage, fix=fix, parameter="batch_size")
        return self.batch_size or min(domain.n, max(1, math.ceil(usual)))

    def signal(self, domain: Domain, mu: float | None) -> float:
        """``√(n μ / √numbers)``: about how many times less than a row the noise is, so how many steps pay."""
        return math.sqrt(domain.n * (mu or USUAL_MU) / math.sqrt(self.n_scores * (domain.d + 1)))


@dataclass(frozen=True, slots=True, eq=False)
class TrainingRun:
    """Private rows, what is asked of them, and the noise: all that a solver trains with."""

    rows: Rows | Stream
    question: QuerySpec
    loss: TrainingLoss
    noise: Noise
    noise_scale: float
    alpha: float | None  # over the largest weight; None: the solver's rule
    usual_alpha: float
    early_stopping: bool  # whether steps that are paid for may be left out once nothing moves
    keeps_path: bool  # whether models on the way are released
    over: bool = True  # whether it may write over the rows, as nobody reads them again

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Those of the formula."""
        return self.question.parameters

    def add_noise(self, value: Array) -> Array:
        """The only way by which numbers made of rows come out."""
        padded = np.zeros(max(value.size, self.question.size))
        padded[: value.size] = value.ravel()
        noisy = self.noise.release(padded, self.noise_scale, self.question.bound)
        return noisy[: value.size].reshape(value.shape)

    def gradient(self) -> ClippedGradient | StreamedGradient:
        """Mean clipped gradient of all rows."""
        clip = self.parameters.get("gradient_clip", self.parameters.get("clip"))
        kind: Any = StreamedGradient if isinstance(self.rows, Stream) else ClippedGradient.of
        return kind(self.rows, self.loss.residuals, clip, self.parameters["fit_intercept"])

    def start(self, width: int) -> Array:
        """Coefficients of 0."""
        return np.zeros((self.parameters.get("n_classes", 1), width))

    def mean_penalty(self, usual: float) -> float:
        """Penalty beside the mean loss."""
        return (usual if self.alpha is None else self.alpha) / self.rows.n


class Solver(ABC):
    """One way to train a linear model: what it asks of the rows, and what it releases."""

    name: ClassVar[str]  # the value of the parameter ``solver``
    in_memory = False  # whether it needs all rows in memory; else it sums over a stream
    samples_rows = False  # whether it reads some of the rows at a time
    releases_path = True  # whether iterates are released, so that there are learning curves
    multiclass = True  # whether it trains models of more than two classes
    balances = True  # whether its bound holds where weights of classes follow from released numbers
    perturbs_model = False  # whether it adds noise to the exact model, and none before
    seedable = True  # whether a seed leaves its guarantee to a model whose noise is known

    @abstractmethod
    def query_spec(self, domain: Domain, config: TrainingConfig, mu: float | None) -> QuerySpec:
        """What it asks, with the budget ``mu`` if it is known; an error if it cannot do as chosen."""

    @abstractmethod
    def release(self, run: TrainingRun) -> dict[str, Array]:
        """Train on private rows: coefficients "theta", and what else leaves with noise."""

    def passes(self, question: QuerySpec, domain: Domain) -> int:
        """As :meth:`Mechanism.passes`."""
        return question.steps

    def assumptions(self) -> tuple[tuple[str, str], ...]:
        """As :meth:`Mechanism.assumptions`."""
        return ()

    def max_iter(self, question: QuerySpec) -> int:
        """The parameter of this name that asks the same question."""
        return int(question.parameters.get("iterations", question.steps))

    def coefficients(self, coef: Array, dimension: int) -> Array:
        """Coefficients of rows from those that were learned."""
        return coef.copy()

    def errors(self, released: Array | None, width: int, unit: float, noise_scale: float, sampled: bool) -> Any:
        """Standard errors of coefficients that are ``unit`` times those that were learned, or None."""
        return Errors.of(released, unit, sampled=sampled)


class Newton(Solver):
    """Noisy Newton steps on whitened rows: few where noise is large, else more, and better known curvatures."""

    name = "newton"

    def query_spec(self, domain: Domain, config: TrainingConfig, mu: float | None) -> QuerySpec:
        gradient, intercept = config.gradient, config.gradient["fit_intercept"]
        if config.max_iter is not None and config.max_iter > MOST_ITERATIONS:
            what = f"solver='newton' makes at most {MOST_ITERATIONS} steps, got max_iter = {config.max_iter}."
            fix = "max_iter='auto', a few steps, or solver='dpgd'."
            raise InvalidParameter(what, stage=config.stage, fix=fix, parameter="solver")
        certain = domain.n * (mu or USUAL_MU) / (config.n_scores * (domain.d + intercept))
        usual = round(FEWEST + math.log2(certain / CERTAIN))
        curvature = min(max(CURVATURE * math.sqrt(certain / 200), CURVATURE), 0.4)
        of_loss = ("n_classes", "y_range", "power", "smoothing")
        parameters = {
            "loss": config.loss,
            "fit_intercept": intercept,
            **{name: gradient[name] for name in of_loss if name in gradient},
            "iterations": config.max_iter or min(max(usual, FEWEST), MOST_STEPS),
            "shares": list(SHARES),
            "last": LAST,
            "norm": float(domain.require("row_norm")),
            "curvature": 0.0 if config.loss == "squared" else float(f"{curvature:.3g}"),
            "diagonal": certain < FULL_CURVATURE * math.sqrt(domain.d + 1),
            "alpha": config.newton_alpha if config.alpha is None else config.alpha,
        }
        if config.loss == "logistic" and certain >= CALIBRATED:
            parameters["calibration"] = CALIBRATION
        steps, learned = answers(**parameters), config.n_scores * newton_width(domain, intercept)  # numbers of length 1
        drowning = math.sqrt(learned / steps)
        return QuerySpec.asked("learning.newton", "mechanism", domain, parameters, steps, drowning=drowning)

    def release(self, run: TrainingRun) -> dict[str, Array]:
        given = run.rows, run.loss, run.add_noise, run.noise_scale, run.question.size, run.parameters
        models, errors, present, _ = fitted_by_newton(*given, last=True, over=run.over)
        released = {"theta": models[-1].ravel(), PRESENT: present}
        if run.parameters["loss"] in DIRECTED:
            released["errors"] = errors
        if run.keeps_path:
            released["path"] = np.array([models[step - 1].ravel() for step in kept_steps(len(models))])
        return released

    def passes(self, question: QuerySpec, domain: Domain) -> int:
        """One for every answer; rows on a grid are written down, whitened ones, and their scores."""
        return question.steps + 2 + ("calibration" in question.parameters)

    @staticmethod
    def pays(domain: Domain, distance: Distance, config: TrainingConfig, mu: float | None) -> bool:
        """Whether it would be better than descent: what it asks is not all noise.

        Several rows of a person ask for more of it, as rows that moved do: each counts as replaced, where descent might
        ask for less.
        """
        numbers, worth = _numbers(domain, config), LEAST_WORTH.get(config.loss)
        least = max(WIDE * numbers, min(25.0 * numbers, ENOUGH)) if worth is None else worth * numbers
        mass = distance.moved_as_replaced().mass
        return mass > 0 and domain.n * (mu or USUAL_MU) * min(1.0, 2 / mass) >= least * (1 + bool(distance.moved))

    @staticmethod
    def takes_long(domain: Domain, config: TrainingConfig) -> bool:
        """Whether its answers would be large matrices."""
        return _numbers(domain, config) * (domain.d + 2) / 2 > MOST_NUMBERS

    @classmethod
    def why_not(cls, domain: Domain, distance: Distance, config: TrainingConfig, mu: float | None) -> tuple[str, ...]:
        """A warning where rows are enough for it, and something else stands against it."""
        long = cls.takes_long(domain, config)
        if not ((long or distance.moved) and cls.pays(domain, Distance(moved=1, radius=1.0), config, mu)):
            return ()
        why = f"they would count {distance.moved:,.0f} rows that move as replaced; fit_mode='noisy' in front moves none"
        if long:
            why = f"{domain.d:,} columns are too many for them: RandomProjection in front makes them fewer"
        return (CLIPPED.format(stage=config.stage, why=why),)


def _numbers(domain: Domain, config: TrainingConfig) -> int:
    return config.n_scores * int(domain.d + config.gradient["fit_intercept"])
