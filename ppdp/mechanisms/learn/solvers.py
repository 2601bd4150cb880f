"""What each solver of the linear models asks of the rows, and the public rules for what is left open.

Every rule is a function of public facts: the number of rows, of features and of classes, and the budget.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ppdp.bounds.learning import solver_rate
from ppdp.bounds.moments import moments_width
from ppdp.bounds.newton import answers
from ppdp.bounds.sampled_learning import batches_per_pass, smoothness, softmax_bound
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.exceptions import InvalidParameter
from ppdp.mechanisms.base import Question
from ppdp.mechanisms.learn.moments import usual_moments, usual_sketch
from ppdp.mechanisms.query.sketch import usual_noise

SOLVERS = ("newton", "dpgd", "poisson", "fixed-size", "epochs", "hidden", "output")
LOW_RANK = ("m2", "lora-fa")

SOLVED = 0.1  # error of the exact solver, as a share of what one replaced row does: far below the noise
MOST_ITERATIONS = 1000  # stopping earlier only regularises more, and costs less
USUAL_MU = 0.2
# Newton steps: shares of norms, moments and lengths; of a step's curvature; and how much more the last step has.
SHARES, CURVATURE, LAST = (0.01, 0.14, 0.02), 0.08, 2.0
SEEN = 15.0  # `n mu / numbers`, over the root of the width, below which noise would hide all but a curvature's diagonal
CERTAIN = 150.0  # `n mu / numbers` at which three steps are enough; one more for each doubling, up to so many
FEWEST, MOST_STEPS = 3, 7
CALIBRATION, KNOWN = (
    0.05,
    200.0,
)  # share of steps of slope and intercept of two classes, and `n mu / numbers` from which on
MOST_NUMBERS = 50_000  # in one answer: matrices of more take long
LEAST_WORTH = {"squared": 100.0, "glm": 200.0}  # `n mu / numbers`, below which descent is better; of others 25
# Steps that are enough, and from which worth of steps on; fewer are made once nothing moves any more.
FEW = {"learning.logistic-gradient": (30, 130.0)}
FEW_OF_OTHERS = (40, 150.0)
CLIPPED = (
    "{stage} is trained by gradient descent, which clips gradients: what it predicts keeps a bias, however many rows"
    " there are. Newton steps have none, but {why}."
)
EXPERIMENTAL = (
    "solver='hidden' is experimental: its promise rests on no other iterate, loss or log of the training being seen."
)


@dataclass(frozen=True, slots=True)
class Training:
    """How a linear model is to be trained: checked and public; None is left to the solver's rule."""

    stage: str  # the estimator, for errors
    formulas: Mapping[str, str]  # ids of the sensitivities of "dpgd" and "output"
    gradient: Mapping[str, Any]  # parameters of a row's gradient
    alpha: float | None
    max_iter: int | None  # steps or passes
    batch_size: int | None
    step_size: float
    usual_step: bool  # whether that is by a rule, and may be shorter
    rank: int | None = None  # dimensions that are seen
    penalty: float = 0.0  # the usual alpha of Newton steps
    factors: tuple[float, ...] = ()  # as what parts of the largest weight losses of each class count
    largest_weight: float = 1.0  # over which penalties are

    @property
    def loss(self) -> str:
        """Name of the loss where batches of it are asked for."""
        return self.formulas["dpgd"].removeprefix("learning.").removesuffix("-gradient")

    def batch(self, domain: Domain, usual: float) -> int:
        """Rows in a batch, if there are so many."""
        if self.batch_size is not None and self.batch_size > domain.n:
            raise InvalidParameter(
                f"batch_size = {self.batch_size} is more than n_samples = {domain.n}.",
                stage=self.stage,
                fix="a smaller batch_size, or solver='dpgd'.",
            )
        return self.batch_size or min(domain.n, max(1, math.ceil(usual)))


def question(solver: str, domain: Domain, training: Training, mu: float | None) -> Question:
    """What a solver asks of the rows, with the budget ``mu`` if it is known; an error if it cannot do as chosen."""
    rules = {"dpgd": _full_batches, "epochs": _epochs, "hidden": _hidden, "output": _minimiser, "moments": _moments}
    rules |= {"newton": _newton, "sketch": _sketch, "m2": _fresh_projections, "lora-fa": _public_projection}
    if solver == "auto":
        solver = "dpgd"
    asked = rules[solver](domain, training, mu) if solver in rules else _samples(solver, domain, training, mu)
    step_size = asked.parameters.get("step_size", training.step_size)
    return replace(asked, step_size=step_size, factors=training.factors, largest_weight=training.largest_weight)


def why_clipped(domain: Domain, distance: Distance, training: Training, mu: float | None) -> tuple[str, ...]:
    """A warning where rows are enough for Newton steps, and something else stands against them."""
    long = too_long(domain, training)
    if not ((long or distance.moved) and newton_pays(domain, Distance(moved=1, radius=1.0), training, mu)):
        return ()
    why = f"they would count {distance.moved:,.0f} rows that move as replaced; statistics='noisy' in front moves none"
    if long:
        why = f"{domain.d:,} columns are too many for them: RandomProjection in front makes them fewer"
    return (CLIPPED.format(stage=training.stage, why=why),)


def too_long(domain: Domain, training: Training) -> bool:
    """Whether the answers that Newton steps ask for would take long."""
    return _numbers(domain, training) * (domain.d + 2) / 2 > MOST_NUMBERS


def newton_pays(domain: Domain, distance: Distance, training: Training, mu: float | None) -> bool:
    """Whether Newton steps would be better: what they ask is not all noise.

    Several rows of a person ask for more of it, as rows that moved do: each counts as replaced, where descent might
    ask for less.
    """
    least = LEAST_WORTH.get(training.loss, 25.0) * _numbers(domain, training) * (1 + bool(distance.moved))
    mass = distance.moved_as_replaced().mass
    return mass > 0 and domain.n * (mu or USUAL_MU) * min(1.0, 2 / mass) >= least


def _numbers(domain: Domain, training: Training) -> int:
    return int(training.gradient.get("n_classes", 1) * (domain.d + training.gradient["fit_intercept"]))


def _newton(domain: Domain, training: Training, mu: float | None) -> Question:
    """Few steps where noise is large; where it is small more, and better known curvatures."""
    gradient, own = training.gradient, {"loss": training.loss, "fit_intercept": training.gradient["fit_intercept"]}
    own |= {name: gradient[name] for name in ("n_classes", "y_range", "power", "smoothing") if name in gradient}
    certain = domain.n * (mu or USUAL_MU) / (gradient.get("n_classes", 1) * (domain.d + gradient["fit_intercept"]))
    usual = round(FEWEST + math.log2(certain / CERTAIN))
    if training.max_iter is not None and training.max_iter > MOST_ITERATIONS:
        raise InvalidParameter(
            f"solver='newton' makes at most {MOST_ITERATIONS} steps, got max_iter = {training.max_iter}.",
            stage=training.stage,
            fix="max_iter='auto', a few steps, or solver='dpgd'.",
        )
    steps = training.max_iter or min(max(usual, FEWEST), MOST_STEPS)
    curvature = min(max(CURVATURE * math.sqrt(certain / 200), CURVATURE), 0.4)
    own |= {"iterations": steps, "shares": list(SHARES), "last": LAST, "norm": float(domain.require("row_norm"))}
    own["curvature"] = 0.0 if training.loss == "squared" else float(f"{curvature:.3g}")
    own["diagonal"] = certain < SEEN * math.sqrt(domain.d + 1)
    own["alpha"] = training.penalty if training.alpha is None else training.alpha
    if training.loss == "logistic" and certain >= KNOWN:
        own["calibration"] = CALIBRATION
    return Question.asked("learning.newton", "mechanism", domain, own, answers(**own))


def _worth(domain: Domain, training: Training, mu: float | None) -> float:
    """``√(n μ / √numbers)``: about how many times less than a row the noise is, so how many steps pay."""
    classes = training.gradient.get("n_classes", 1)
    return math.sqrt(domain.n * (mu or USUAL_MU) / math.sqrt(classes * (domain.d + 1)))


def _full_batches(domain: Domain, training: Training, mu: float | None) -> Question:
    """With momentum few steps do."""
    usual = 40.0 if mu is None else min(max(6 * _worth(domain, training, mu) ** 0.55, 10), 80)
    steps = training.max_iter or int(usual)
    return Question.asked(training.formulas["dpgd"], "mechanism", domain, dict(training.gradient), steps)


def in_few_steps(asked: Question, domain: Domain, distance: Distance, mu: float) -> Question:
    """Full batches in fewer steps where noise is negligible at this distance: curvature is then learnt on the way.

    The first half see as many rows as are needed for that.
    """
    sensitivity = asked.sensitivity(domain, distance) if asked.formula.endswith("-gradient") else 0.0
    if not sensitivity:
        return asked
    enough, least = FEW.get(asked.formula, FEW_OF_OTHERS)
    ratio = least / math.sqrt(2 * asked.bound / sensitivity * mu / math.sqrt(asked.size))
    steps = min(asked.steps, round(enough * max(1.0, ratio)))
    return replace(asked, steps=steps, share=min(1.0, ratio**2))


def _samples(solver: str, domain: Domain, training: Training, mu: float | None) -> Question:
    """Batches large enough that the noise on their sum is about one row's gradient, or more, when all is spent."""
    batch_size = training.batch(domain, max(256, domain.n / 50))
    rate = batch_size / domain.n
    usual = 80.0 if mu is None else min(max(4 * _worth(domain, training, mu), 10), 400)
    steps = training.max_iter or max(int(usual), min(1000, round((0.4 / rate) ** 2)))
    parameters = {"loss": training.loss, **training.gradient, "batch_size": batch_size, "steps": steps}
    # Without moved rows the mean loss adds up to mu where steps rate² (exp(kappa²) - 1) = mu², kappa = 2C/noise.
    kappa = math.sqrt(math.log1p((mu or USUAL_MU) ** 2 / (steps * rate**2)))
    start = 2 * training.gradient["clip"] / (kappa * batch_size)
    return Question.asked(f"learning.{solver}", "privacy", domain, parameters, steps, start=start)


def _epochs(domain: Domain, training: Training, mu: float | None) -> Question:
    """Few batches, since noise on the model grows with the root of their number, and few passes where rows are many.

    The number of steps must not fall as the budget grows (a plan sets delta aside for all that may be drawn), so passes
    are counted at a usual budget.
    """
    batch_size = training.batch(domain, domain.n / min(max(_worth(domain, training, mu) / 2, 4), 100))
    usual = round(80 / _worth(domain, training, USUAL_MU))
    passes = training.max_iter or min(max(usual, 1), 10)
    parameters = {"loss": training.loss, **training.gradient, "batch_size": batch_size, "epochs": passes}
    steps = passes * batches_per_pass(domain.n, batch_size)
    return Question.asked("learning.epochs", "mechanism", domain, parameters, steps)


def _hidden(domain: Domain, training: Training, mu: float | None) -> Question:
    longest = 2 / smoothness(domain, training.loss, **training.gradient)
    if training.max_iter not in (None, 1):
        raise InvalidParameter(
            f"solver='hidden' runs a single pass, got max_iter = {training.max_iter}.",
            stage=training.stage,
            fix="max_iter='auto', or solver='epochs'.",
        )
    if not training.usual_step and training.step_size > longest * (1 + 1e-12):
        raise InvalidParameter(
            f"solver='hidden' needs a step of at most 2 / smoothness = {longest:.6g}, got {training.step_size:g}.",
            stage=training.stage,
            fix="step_size='auto'.",
        )
    if training.loss == "softmax" and training.gradient["clip"] < softmax_bound(domain, **training.gradient):
        least = math.ceil(1000 * softmax_bound(domain, **training.gradient)) / 1000
        raise InvalidParameter(
            "solver='hidden' needs convex losses, and the clipped gradient of several classes is that of none.",
            stage=training.stage,
            fix=f"clip={least:g}, which never binds, or another solver.",
        )
    batch_size = training.batch(domain, domain.n / 100)
    step_size = min(training.step_size, longest / 2 if training.usual_step else longest)
    parameters = {"loss": training.loss, **training.gradient, "batch_size": batch_size, "step_size": step_size}
    count = batches_per_pass(domain.n, batch_size)
    start = 2 * training.gradient["clip"] / (batch_size * (mu or USUAL_MU))
    return Question.asked(
        "learning.hidden", "privacy", domain, parameters, count, start=start, warnings=(EXPERIMENTAL,)
    )


def _seen(training: Training, dimension: int) -> dict[str, Any]:
    """Parameters of a gradient of which ``rank`` dimensions are seen: an eighth of them, where none is given."""
    rank = training.rank or max(1, dimension // 8)
    if rank >= dimension:
        raise InvalidParameter(
            f"rank = {rank} must be below the number of dimensions, {dimension}: nothing would be projected away.",
            stage=training.stage,
            fix="a smaller rank, or solver='dpgd'.",
        )
    return {"loss": training.loss, **training.gradient, "rank": rank}


def _fresh_projections(domain: Domain, training: Training, mu: float | None) -> Question:
    """Each step shows one of so many subspaces, so it takes as many times the usual steps."""
    width = domain.d + training.gradient["fit_intercept"]
    parameters = {**_seen(training, width), "batch_size": training.batch(domain, domain.n)}
    steps = training.max_iter or min(round(40 * width / parameters["rank"]), 1000)
    start = 2 * training.gradient["clip"] / domain.n * math.sqrt(40) / (mu or USUAL_MU)
    parameters["steps"] = steps
    return Question.asked("learning.fresh-projections", "privacy", domain, parameters, steps, start=start)


def _public_projection(domain: Domain, training: Training, mu: float | None) -> Question:
    """As with all dimensions, but for there being fewer."""
    steps = _full_batches(domain, training, mu).steps
    return Question.asked("learning.projected-gradient", "mechanism", domain, _seen(training, domain.d), steps)


def _minimiser(domain: Domain, training: Training, mu: float | None) -> Question:
    """Penalty and number of iterations: by default a penalty whose own bias is about that of the noise."""
    gradient, alpha, iterations = training.gradient, training.alpha, training.max_iter
    clip, coef_norm = gradient["clip"], gradient["coef_norm"]
    smooth = smoothness(domain, training.loss, **gradient)
    if alpha is None:
        curvature = {"logistic": 0.25, "squared": 1.0}[training.loss]
        signal = domain.n * (mu or USUAL_MU) * coef_norm / (8 * curvature * clip)
        alpha = domain.n * (8 * curvature * domain.d / signal**2) ** (1 / 3)
    if alpha == 0:
        raise InvalidParameter("alpha must be positive for solver='output'.", stage=training.stage)
    if iterations is None:
        wanted = SOLVED * min(1.0, 2 * clip / (alpha * coef_norm))
        iterations = math.ceil(min(math.log(wanted) / solver_rate(smooth, alpha / domain.n), MOST_ITERATIONS))
    parameters = {**gradient, "alpha": alpha, "smoothness": smooth, "iterations": iterations}
    return Question.asked(training.formulas["output"], "mechanism", domain, parameters, 1)


def _moments(domain: Domain, training: Training, mu: float | None) -> Question:
    """Second moments once, then a few gradients."""
    parameters = usual_moments(domain, training.gradient, mu or USUAL_MU)
    if training.max_iter is not None:
        parameters["refinements"] = training.max_iter - 1
    return Question.asked(training.formulas["moments"], "mechanism", domain, parameters, 1 + parameters["refinements"])


def _sketch(domain: Domain, training: Training, mu: float | None) -> Question:
    """One sketch of rows and targets, with at least as many rows as numbers are sought."""
    width = moments_width(domain, training.gradient["fit_intercept"])
    if training.rank is not None and training.rank < width:
        raise InvalidParameter(
            f"rank = {training.rank} rows of a sketch do not determine {width - 1} coefficients.",
            stage=training.stage,
            fix=f"rank={10 * width}, or rank='auto'.",
        )
    parameters = usual_sketch(domain, training.gradient, mu or USUAL_MU, training.rank)
    start = usual_noise(parameters["norm"], parameters["rank"], mu)
    return Question.asked(training.formulas["sketch"], "privacy", domain, parameters, start=start)
