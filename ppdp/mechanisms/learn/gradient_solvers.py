"""Solvers that release noisy gradients, of all rows or of secret batches, or the minimiser of a penalised loss.

Batches are drawn exactly as the accounting takes them to be: ``docs/theory/subsampling.md``. Gradients through few
dimensions: ``docs/theory/fresh-projections.md``.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache, partial
from itertools import repeat
from typing import Any

import numpy as np

from ppdp.bounds.learning import solver_rate
from ppdp.bounds.sampled_learning import batches_per_pass, smoothness, softmax_bound
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.rows import Array, Rows
from ppdp.data.statistics import multiplied
from ppdp.exceptions import InvalidParameter
from ppdp.mechanisms.base import QuerySpec
from ppdp.mechanisms.learn.descent import (
    CurvatureEstimate,
    descend,
    descend_faster,
    descend_on_few_first,
    minimise,
    noise_is_small,
    path,
    projected,
)
from ppdp.mechanisms.learn.errors import Errors
from ppdp.mechanisms.learn.sampling import Indices, fixed_size_sample, poisson_sample, secret_one, shuffled
from ppdp.mechanisms.learn.solvers import MOST_ITERATIONS, USUAL_MU, Solver, TrainingConfig, TrainingRun
from ppdp.privacy.losses import NoisyProjectionLoss
from ppdp.privacy.noise.sampler import Noise

SOLVED = 0.1  # error of the exact solver, as a share of what one replaced row does: far below the noise
# Steps that are enough, and from which signal on; fewer are made once nothing moves any more.
FEW = {"learning.logistic-gradient": (30, 130.0)}
FEW_OF_OTHERS = (40, 150.0)
EXPERIMENTAL = (
    "solver='hidden' is experimental: its promise rests on no other iterate, loss or log of the training being seen."
)


class _NoisyGradients(Solver):
    """Solvers that release a gradient with noise at every step."""

    def release(self, run: TrainingRun) -> dict[str, Array]:
        models = path(self._iterates(run), run.question.steps)
        models = models.reshape(len(models), -1)
        last = {"theta": models[-1].copy()}
        return {**last, "path": models} if run.keeps_path else last

    @abstractmethod
    def _iterates(self, run: TrainingRun) -> Iterator[Array]:
        """Coefficients behind every step."""

    def _options(self, run: TrainingRun, width: int) -> dict[str, Any]:
        """Those that all kinds of descent have."""
        penalty = np.zeros(width)  # the intercept is free
        penalty[: run.rows.d] = run.mean_penalty(run.usual_alpha)
        question = run.question
        radius = run.parameters["coef_norm"]
        return {"steps": question.steps, "learning_rate": question.learning_rate, "radius": radius, "penalty": penalty}


class GradientDescent(_NoisyGradients):
    """Projected gradient descent on all rows; with momentum few steps do."""

    name = "dpgd"

    def query_spec(self, domain: Domain, config: TrainingConfig, mu: float | None) -> QuerySpec:
        parameters = dict(config.gradient)
        return QuerySpec.asked(
            config.formulas["dpgd"], "mechanism", domain, parameters, self._steps(domain, config, mu)
        )

    def _steps(self, domain: Domain, config: TrainingConfig, mu: float | None) -> int:
        usual = 40.0 if mu is None else min(max(6 * config.signal(domain, mu) ** 0.55, 10), 80)
        return config.max_iter or int(usual)

    def _iterates(self, run: TrainingRun) -> Iterator[Array]:
        question, gradient = run.question, run.gradient()
        few = noise_is_small(run.noise_scale, run.parameters["clip"], question.size)
        options = self._options(run, gradient.width) | {
            "curvature": CurvatureEstimate(question.learning_rate, run.noise_scale) if few else None,
            "early_stopping": few and run.early_stopping and question.formula in FEW,
        }
        start = run.start(gradient.width)
        if question.share < 1 and few:
            sample = gradient.on(poisson_sample(run.noise, run.rows.n, question.share), run.rows.n)
            return descend_on_few_first(sample, gradient, run.add_noise, start, question.share, **options)
        return descend_faster(gradient, run.add_noise, start, **options)


def in_few_steps(question: QuerySpec, domain: Domain, distance: Distance, mu: float) -> QuerySpec:
    """Full batches in fewer steps where noise is negligible at this distance: curvature is then learnt on the way.

    The first half see as many rows as are needed for that.
    """
    sensitivity = question.sensitivity(domain, distance) if question.formula.endswith("-gradient") else 0.0
    if not sensitivity:
        return question
    enough, least = FEW.get(question.formula, FEW_OF_OTHERS)
    ratio = least / math.sqrt(2 * question.bound / sensitivity * mu / math.sqrt(question.size))
    steps = min(question.steps, round(enough * max(1.0, ratio)))
    return replace(question, steps=steps, share=min(1.0, ratio**2))


class PublicProjection(GradientDescent):
    """Descent on rows projected on a subspace that is the same for everybody."""

    name = "lora-fa"

    def query_spec(self, domain: Domain, config: TrainingConfig, mu: float | None) -> QuerySpec:
        parameters, steps = _projected_gradient(config, domain.d), self._steps(domain, config, mu)
        return QuerySpec.asked("learning.projected-gradient", "mechanism", domain, parameters, steps)

    def _iterates(self, run: TrainingRun) -> Iterator[Array]:
        rank = run.parameters["rank"]
        rows = run.rows.each(partial(_multiplied, public_basis(run.rows.d, rank)), rank)
        return super()._iterates(replace(run, rows=rows))

    def coefficients(self, coef: Array, dimension: int) -> Array:
        return np.asarray(coef @ public_basis(dimension, coef.shape[-1]).T)


class _Batches(_NoisyGradients):
    """Descent on batches of rows that nobody knows."""

    samples_rows = True

    def passes(self, question: QuerySpec, domain: Domain) -> int:
        """Batches hold as many rows together."""
        return math.ceil(question.steps * question.parameters["batch_size"] / domain.n)

    @abstractmethod
    def draw(self, noise: Noise, n_rows: int, batch_size: int, steps: int) -> Iterator[Indices]:
        """The rows of every step's batch, ascending."""

    def _iterates(self, run: TrainingRun) -> Iterator[Array]:
        size, gradient = run.parameters["batch_size"], run.gradient()
        gradients = (gradient.on(batch, size) for batch in self.draw(run.noise, run.rows.n, size, run.question.steps))
        return descend(gradients, run.add_noise, run.start(gradient.width), **self._options(run, gradient.width))


class PoissonBatches(_Batches):
    """Every step takes each row by a coin, in batches so large that noise on their sum is a row's gradient or more."""

    name = "poisson"

    def query_spec(self, domain: Domain, config: TrainingConfig, mu: float | None) -> QuerySpec:
        batch_size = config.batch(domain, max(256, domain.n / 50))
        rate = batch_size / domain.n
        usual = 80.0 if mu is None else min(max(4 * config.signal(domain, mu), 10), 400)
        steps = config.max_iter or max(int(usual), min(1000, round((0.4 / rate) ** 2)))
        parameters = {"loss": config.loss, **config.gradient, "batch_size": batch_size, "steps": steps}
        # Without moved rows the mean loss adds up to mu where steps rate² (exp(kappa²) - 1) = mu², kappa = 2C/noise.
        kappa = math.sqrt(math.log1p((mu or USUAL_MU) ** 2 / (steps * rate**2)))
        start = 2 * config.gradient["clip"] / (kappa * batch_size)
        return QuerySpec.asked(f"learning.{self.name}", "privacy", domain, parameters, steps, start=start)

    def draw(self, noise: Noise, n_rows: int, batch_size: int, steps: int) -> Iterator[Indices]:
        return (poisson_sample(noise, n_rows, batch_size / n_rows) for _ in range(steps))


class FixedSizeBatches(PoissonBatches):
    """Every step takes as many rows, without replacement."""

    name = "fixed-size"

    def draw(self, noise: Noise, n_rows: int, batch_size: int, steps: int) -> Iterator[Indices]:
        return (fixed_size_sample(noise, n_rows, batch_size) for _ in range(steps))


class ShuffledBatches(_Batches):
    """Whole passes over the rows, shuffled once, in disjoint batches.

    Few batches, since noise on the model grows with the root of their number, and few passes where rows are many. The
    number of steps must not fall as the budget grows (a plan sets delta aside for all that may be drawn), so passes
    are counted at a usual budget.
    """

    name = "epochs"

    def query_spec(self, domain: Domain, config: TrainingConfig, mu: float | None) -> QuerySpec:
        batch_size = config.batch(domain, domain.n / min(max(config.signal(domain, mu) / 2, 4), 100))
        usual = round(80 / config.signal(domain, USUAL_MU))
        passes = config.max_iter or min(max(usual, 1), 10)
        parameters = {"loss": config.loss, **config.gradient, "batch_size": batch_size, "epochs": passes}
        steps = passes * batches_per_pass(domain.n, batch_size)
        return QuerySpec.asked("learning.epochs", "mechanism", domain, parameters, steps)

    def draw(self, noise: Noise, n_rows: int, batch_size: int, steps: int) -> Iterator[Indices]:
        order, count = shuffled(noise, n_rows), batches_per_pass(n_rows, batch_size)
        return (np.sort(order[(t % count) * batch_size : (t % count + 1) * batch_size]) for t in range(steps))

    def max_iter(self, question: QuerySpec) -> int:
        return int(question.parameters["epochs"])


class HiddenState(ShuffledBatches):
    """One pass, of which one iterate is released, at a secret time."""

    name = "hidden"
    releases_path = False

    def query_spec(self, domain: Domain, config: TrainingConfig, mu: float | None) -> QuerySpec:
        longest = 2 / smoothness(domain, config.loss, **config.gradient)
        self._check(domain, config, longest)
        batch_size = config.batch(domain, domain.n / 100)
        learning_rate = min(config.learning_rate, longest / 2 if config.usual_step else longest)
        parameters = {"loss": config.loss, **config.gradient, "batch_size": batch_size, "step_size": learning_rate}
        steps = batches_per_pass(domain.n, batch_size)
        start = 2 * config.gradient["clip"] / (batch_size * (mu or USUAL_MU))
        return QuerySpec.asked(
            "learning.hidden", "privacy", domain, parameters, steps, start=start, warnings=(EXPERIMENTAL,)
        )

    @staticmethod
    def _check(domain: Domain, config: TrainingConfig, longest: float) -> None:
        if config.max_iter not in (None, 1):
            what = f"solver='hidden' runs a single pass, got max_iter = {config.max_iter}."
            fix = "max_iter='auto', or solver='epochs'."
            raise InvalidParameter(what, stage=config.stage, fix=fix, parameter="solver")
        if not config.usual_step and config.learning_rate > longest * (1 + 1e-12):
            what = f"solver='hidden' has steps of at most 2 / smoothness = {longest:.6g}, not {config.learning_rate:g}."
            raise InvalidParameter(what, stage=config.stage, fix="learning_rate='auto'.", parameter="solver")
        if config.loss == "softmax" and config.gradient["clip"] < softmax_bound(domain, **config.gradient):
            least = math.ceil(1000 * softmax_bound(domain, **config.gradient)) / 1000
            what = "solver='hidden' needs convex losses, and the clipped gradient of several classes is that of none."
            fix = f"max_grad_norm={least:g}, which never binds, or another solver."
            raise InvalidParameter(what, stage=config.stage, fix=fix, parameter="solver")

    def release(self, run: TrainingRun) -> dict[str, Array]:
        return {"theta": secret_one(run.noise, self._iterates(run), run.question.steps).ravel()}

    def max_iter(self, question: QuerySpec) -> int:
        return 1


class FreshProjections(PoissonBatches):
    """Every step shows one of many random subspaces of the gradient, so it takes as many times the usual steps."""

    name = "m2"
    seedable = False

    def query_spec(self, domain: Domain, config: TrainingConfig, mu: float | None) -> QuerySpec:
        width = domain.d + config.gradient["fit_intercept"]
        parameters = {**_projected_gradient(config, width), "batch_size": config.batch(domain, domain.n)}
        steps = config.max_iter or min(round(40 * width / parameters["rank"]), 1000)
        start = 2 * config.gradient["clip"] / domain.n * math.sqrt(40) / (mu or USUAL_MU)
        parameters["steps"] = steps
        return QuerySpec.asked("learning.fresh-projections", "privacy", domain, parameters, steps, start=start)

    def assumptions(self) -> tuple[tuple[str, str], ...]:
        return (("fresh projections", NoisyProjectionLoss.idealised),)

    def _iterates(self, run: TrainingRun) -> Iterator[Array]:
        n, size, gradient = run.rows.n, run.parameters["batch_size"], run.gradient()
        drawn = self.draw(run.noise, n, size, run.question.steps)
        gradients = repeat(gradient) if size == n else (gradient.on(batch, size) for batch in drawn)
        answer = fresh_answer(run.noise, run.noise_scale, run.question.bound, run.parameters["rank"])
        return descend(gradients, answer, run.start(gradient.width), **self._options(run, gradient.width))


class OutputPerturbation(Solver):
    """Noise on the minimiser of a penalised loss, once; by default the penalty has a bias of about the noise."""

    name = "output"
    releases_path = False
    multiclass = False
    balances = False
    perturbs_model = True

    def query_spec(self, domain: Domain, config: TrainingConfig, mu: float | None) -> QuerySpec:
        gradient, alpha, iterations = config.gradient, config.alpha, config.max_iter
        clip, coef_norm = gradient["clip"], gradient["coef_norm"]
        smooth = smoothness(domain, config.loss, **gradient)
        if alpha is None:
            curvature = {"logistic": 0.25, "squared": 1.0}[config.loss]
            signal = domain.n * (mu or USUAL_MU) * coef_norm / (8 * curvature * clip)
            alpha = domain.n * (8 * curvature * domain.d / signal**2) ** (1 / 3)
        if alpha == 0:
            raise InvalidParameter("alpha must be positive for solver='output'.", stage=config.stage, parameter="alpha")
        if iterations is None:  # stopping earlier only regularises more, and costs less
            wanted = SOLVED * min(1.0, 2 * clip / (alpha * coef_norm))
            iterations = math.ceil(min(math.log(wanted) / solver_rate(smooth, alpha / domain.n), MOST_ITERATIONS))
        parameters = {**gradient, "alpha": alpha, "smoothness": smooth, "iterations": iterations}
        return QuerySpec.asked(config.formulas["output"], "mechanism", domain, parameters, 1)

    def passes(self, question: QuerySpec, domain: Domain) -> int:
        return int(question.parameters["iterations"])

    def release(self, run: TrainingRun) -> dict[str, Array]:
        gradient, p = run.gradient(), run.parameters
        theta = minimise(
            gradient,
            run.start(gradient.width),
            iterations=p["iterations"],
            smoothness=p["smoothness"],
            strength=p["alpha"] / run.rows.n,
            radius=p["coef_norm"],
        )
        return {"theta": projected(run.add_noise(theta), p["coef_norm"]).ravel()}

    def errors(self, released: Array | None, width: int, unit: float, noise_scale: float, sampled: bool) -> Errors:
        return Errors.alike(width, noise_scale * unit)


def _projected_gradient(config: TrainingConfig, dimension: int) -> dict[str, Any]:
    """Parameters of a gradient of which ``rank`` dimensions are seen: an eighth of them, where none is given."""
    rank = config.rank or max(1, dimension // 8)
    if rank >= dimension:
        what = f"rank = {rank} must be below the number of dimensions, {dimension}: nothing would be projected away."
        raise InvalidParameter(what, stage=config.stage, fix="a smaller rank, or solver='dpgd'.", parameter="rank")
    return {"loss": config.loss, **config.gradient, "rank": rank}


def refuse_seed(seeded: bool) -> None:
    """Raise :class:`InvalidParameter` for projections that somebody can predict: they hide nothing."""
    if seeded:
        what = "fresh projections must not come from a seed: anyone who knows it knows what they show."
        raise InvalidParameter(what, stage="LogisticRegression", fix="leave random_state out, or use another solver.")


def fresh_answer(noise: Noise, noise_scale: float, bound: float, rank: int) -> Callable[[Array], Array]:
    """What is released of a gradient, as a gradient: what a subspace drawn now shows of it, with noise on that.

    The basis is computed after the gradient, of numbers from the operating system, and nothing keeps it.
    """
    refuse_seed(noise.seeded)

    def answer(value: Array) -> Array:
        basis = np.linalg.qr(noise.standard_lattice((value.shape[1], rank)).astype(np.float64))[0]
        shown = value @ basis
        return np.asarray(noise.release(shown.ravel(), noise_scale, bound).reshape(shown.shape) @ basis.T)

    return answer


@lru_cache(maxsize=8)
def public_basis(dimension: int, rank: int) -> Array:
    """An orthonormal basis of a random subspace, the same for everybody, shape (dimension, rank)."""
    basis: Array = np.linalg.qr(np.random.RandomState(0).standard_normal((dimension, rank)))[0]
    basis.setflags(write=False)
    return basis


def _multiplied(basis: Array, rows: Rows) -> Rows:
    return replace(rows, X=multiplied(rows.X, basis))
