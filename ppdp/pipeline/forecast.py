"""What noise costs in accuracy, before any data: a pipeline is rehearsed on simulated rows of their shape.

Rows are drawn from what is declared: within ranges, among categories, inside the norm; columns are independent, and the
target follows a weighted sum of them. Real rows may be easier or harder.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from ppdp.core.boundary import outside
from ppdp.core.checks import integer, number
from ppdp.core.domain import Domain
from ppdp.core.figures import aligned, figure, html_table
from ppdp.core.formula import FORMULAS
from ppdp.core.progress import progress
from ppdp.data.public_facts import merged
from ppdp.data.rows import Array
from ppdp.data.unit_conversion import Columns
from ppdp.exceptions import DiagnosticWarning, InvalidParameter, NoiseWarning, NoRoute, PpdpError, PrivacyRefusal
from ppdp.pipeline.planning.plan import Plan
from ppdp.privacy.noise.sampler import Noise, lowered

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Run = Callable[[Any, Any, Any, Noise], Any]
Rows = tuple[Any, Any]

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
SCORED = 5000  # further rows that a model is scored on
READ = "Compare with the score without noise: real rows may score otherwise."
_HEAD = ("ε", "mean", "least", "greatest", "refused")
_CORRELATION = 0.8  # of a target with the weighted sum of its columns
_GAPS = 0.05  # of the rows, where any may have one


@dataclass(frozen=True, slots=True, repr=False)
class Forecast:
    """Accuracy on simulated rows, for several epsilons; shows itself as a table and a picture.

    How high a score is depends on the simulated rows; real ones are easier or harder. What carries over is how far it
    lies below that of the same steps without noise.
    """

    measure: str  # what was measured: the score of a model, or the error of an answer
    domain: str  # the public facts, in words
    points: tuple[tuple[float, float], ...]  # epsilon and result of every run that released
    without_noise: float | None  # score of the same steps without any noise; None of errors
    # For every epsilon the runs that ended without a release: no route, or a gate that did not pass.
    refused: tuple[tuple[float, int], ...]

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw results against epsilon, with a dashed line for the same without noise: read the distance to it."""
        from ppdp import plot

        best = {} if self.without_noise is None else {"the same without noise": self.without_noise}
        ax = plot.privacy_utility(self.points, ax, baseline=best, score=f"{self.measure}, simulated rows")
        if best:
            ax.set_title(READ, loc="left", fontsize="small")
        return ax

    @property
    def title(self) -> str:
        """What it is, in one line."""
        advice = "" if self.without_noise is None else f". {READ}"
        return f"FORECAST on simulated rows: {self.measure}, {self.domain}{advice}"

    @property
    def _lines(self) -> list[tuple[str, ...]]:
        lines = []
        for epsilon, refused in self.refused:
            results = [result for at, result in self.points if at == epsilon]
            summary = map(figure, (fmean(results), min(results), max(results))) if results else ("", "", "")
            lines.append((figure(epsilon), *summary, str(refused)))
        return lines if self.without_noise is None else [*lines, ("no noise", figure(self.without_noise), "", "", "")]

    def __repr__(self) -> str:
        return "\n  ".join([self.title, *aligned([_HEAD, *self._lines])])

    def _repr_html_(self) -> str:
        from ppdp.plot.canvas import embedded

        picture = embedded(self.plot, self.title, (6, 3.4)) if self.points else ""
        return f"<div>{html_table(self.title, _HEAD, self._lines)}{picture}</div>"


def forecast(
    pipe: Any,
    run: Run,
    domain: Domain | None,
    epsilons: Sequence[float],
    repeats: int,
    random_state: int,
    simulate: Callable[[np.random.Generator, int], Rows] | None,
) -> Forecast:
    """Rehearse a pipeline by ``run``; see :meth:`ppdp.Pipeline.forecast`."""
    epsilons = sorted({number("epsilons", epsilon, above=0) for epsilon in np.atleast_1d(epsilons).tolist()})
    repeats, seed = integer("repeats", repeats), integer("random_state", random_state, least=0)
    pipe = copy(pipe).set_params(domain=merged(domain, pipe.domain))
    plans: dict[float, Plan | None] = {}
    for epsilon in epsilons:
        plan = _planned(pipe, epsilon)
        kept = epsilon if plan is None else plan.epsilon
        if kept < epsilon:
            warnings.warn(lowered(epsilon, pipe.delta, kept), NoiseWarning, stacklevel=outside())
        plans[kept] = plan
    if not plans:
        raise InvalidParameter("epsilons holds none.", fix="epsilons=(0.3, 1, 3).")
    planned = [plan for plan in plans.values() if plan is not None]
    if not planned:
        raise NoRoute("no epsilon of the forecast has a route.", fix="larger ones, or what pipe.plan(domain) advises.")
    predicts = _predicts(planned[-1])
    draw = partial(simulated, pipe, planned[-1]) if simulate is None else partial(_checked, simulate)
    points, refused, source = [], [], _source(planned[-1], seed)
    jobs = [(epsilon, repeat) for epsilon in plans for repeat in range(repeats)]
    exact = _result(pipe, [*plans][-1], planned[-1], run, draw, seed, _Silent(source(0)), predicts)
    if exact is None:
        raise NoRoute("simulated rows do not pass the gate.", fix="gate=None assumes the conditions, for a forecast.")
    reference, score = exact
    for epsilon, repeat in progress(jobs, "fits of simulated rows"):
        plan = plans[epsilon]
        noise = Noise(source(repeat))
        run_result = None if plan is None else _result(pipe, epsilon, plan, run, draw, seed, noise, predicts)
        if run_result is None:
            refused.append(epsilon)
        else:
            result = run_result[1] if predicts else _error(run_result[0], reference, planned[-1])
            points.append((epsilon, result))
    measure = "score of the model" if predicts else "error (share of the largest value)"
    counts = tuple((epsilon, refused.count(epsilon)) for epsilon in plans)
    return Forecast(measure, planned[-1].domain.describe(), tuple(points), score if predicts else None, counts)


def _source(plan: Plan, seed: int) -> Callable[[int], Any]:
    """Random bits of every run: from the seed, but for a mechanism whose bits nobody may know beforehand."""
    question = plan.mechanism and plan.mechanism.question
    if getattr(FORMULAS.get(question.formula if question else ""), "unseeded", False):
        return lambda run: None
    return lambda run: np.random.default_rng([seed, run])


class _Silent(Noise):
    """No noise: for simulated rows."""

    def answer(self, law: str, value: ArrayLike, noise_scale: float, bound: float, draw: Any) -> Any:
        """The exact value, or the best candidate of a choice."""
        exact = np.array(value, dtype=np.float64)
        return int(exact.argmax()) if law == "choice" else exact


def _planned(pipe: Any, epsilon: float) -> Plan | None:
    """The plan at an epsilon; None if there is no route."""
    try:
        plan: Plan = copy(pipe).set_params(epsilon=epsilon).plan()
    except PpdpError as error:
        if getattr(error, "advice", None) is None:
            raise
        return None
    return plan if not plan.unpassable_gates else None


def _predicts(plan: Plan) -> bool:
    """Whether models are scored; else answers are compared with exact ones."""
    if plan.mechanism is None:
        raise InvalidParameter("a pipeline that ends in a transformer has no last answer.", fix="add a mechanism.")
    query = getattr(plan.mechanism.stage, "query", "rows")
    if not scorable(plan) and query in ("rows", "utility", "direction"):
        what = f"nothing is known by which {type(plan.mechanism.stage).__name__} could be scored."
        fix = "a model, or a query for means, counts, histograms or quantiles."
        raise InvalidParameter(what, stage=plan.mechanism.name, fix=fix)
    return scorable(plan)


def _result(
    pipe: Any,
    epsilon: float,
    plan: Plan,
    run: Run,
    draw: Callable[[np.random.Generator, int], Rows],
    seed: int,
    noise: Noise,
    predicts: bool,
) -> tuple[Array, float] | None:
    """Answers and score of one run; None if its gate does not pass."""
    n = plan.domain.n
    X, y = draw(np.random.default_rng(seed), n + (min(n, SCORED) if predicts else 0))
    candidate = copy(pipe).set_params(epsilon=epsilon)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiagnosticWarning)  # of rows that nobody has
        try:
            fitted = run(candidate, X[:n], None if y is None else y[:n], noise)
        except PrivacyRefusal:
            return None
        if predicts:
            return np.empty(0), float(fitted.score(X[n:], y[n:]))
    mechanism = plan.mechanism
    assert mechanism is not None
    here = Columns.raw([str(i) for i in range(plan.end[0].d)])
    answers = fitted.twins_[-1][1].answers(here, plan.end[0], mechanism.question)
    return np.concatenate([one.value for one in answers]), math.nan


def _error(found: Array, exact: Array, plan: Plan) -> float:
    """Root mean square error, as a share of the largest value that an answer may have."""
    assert plan.mechanism is not None
    question = plan.mechanism.question
    largest = np.max(np.abs(question.parameters.get("candidates", question.bound)))
    return float(np.sqrt(np.mean((found - exact) ** 2)) / largest)


def _checked(simulate: Callable[..., Any], rng: np.random.Generator, n: int) -> Rows:
    """What a user's function gives, if that is so many rows."""
    drawn = simulate(rng, n) if callable(simulate) else None
    fix = "simulate(rng, n) -> (X, y), of n public rows; y is None without labels."
    if not isinstance(drawn, tuple) or len(drawn) != 2 or not hasattr(drawn[0], "__len__"):
        raise InvalidParameter("simulate must be a function that gives a pair.", fix=fix)
    if any(one is not None and len(one) != n for one in drawn):
        raise InvalidParameter("simulate must give n rows, and as many labels.", fix=fix)
    return drawn


def simulated(pipe: Any, plan: Plan, rng: np.random.Generator, n: int) -> Rows:
    """A table as the first step expects it, and a target that follows its columns."""
    import pandas as pd

    domain = plan.domain
    X = pipe.own_steps()[0][1].simulated(n, domain, rng)
    X = rng.standard_normal((n, domain.d)) * _spread(domain) if X is None else X
    table = pd.DataFrame(X, columns=domain.feature_names).infer_objects()
    y = _target(table, plan, rng) if plan.mechanism is not None and plan.mechanism.stage.needs_y else None
    if domain.missing_rows:
        few = rng.permutation(n)[: int(n * min(_GAPS, domain.missing_rows / domain.n))]
        numeric = np.flatnonzero([kind.kind == "f" for kind in table.dtypes])
        for row_block, column in zip(np.array_split(few, max(len(numeric), 1)), numeric):
            table.iloc[row_block, column] = np.nan
    return (table if domain.feature_names is not None else table.to_numpy()), y


NARROW = 0.2
"""Of the width of a range, where columns are narrow."""


def scorable(plan: Plan) -> bool:
    """Whether it ends in a model of labels."""
    return plan.mechanism is not None and bool(plan.mechanism.stage.predicts and plan.mechanism.stage.needs_y)


def guessing(plan: Plan) -> float:
    """What a model scores that has learned nothing."""
    return 0.0 if plan.domain.classes is None else 1 / len(plan.domain.classes)


def trial_scores(pipe: Any, run: Run, entrance: Any, end: float) -> Array | None:
    """Scores of a model on simulated rows of wide columns, and of narrow ones; None without a plan or time.

    They are drawn as ``entrance``, a first step, declares them, so that pipelines are compared on the same rows.
    """
    try:
        plan = pipe.plan()
        draws = [
            partial(_shrunk, share, copy(pipe).set_params(steps=[("entrance", entrance)]), plan)
            for share in (1.0, NARROW)
        ]
        scores = []
        for draw, seed in product(draws, range(5)):
            noise = Noise(np.random.default_rng(seed))
            ran = _result(pipe, pipe.epsilon, plan, run, draw, 0, noise, True)
            if ran is None or time.monotonic() > end:
                return None
            scores.append(ran[1])
    except PpdpError:
        return None
    return np.array(scores).reshape(len(draws), -1)


def _shrunk(share: float, pipe: Any, plan: Plan, rng: np.random.Generator, n: int) -> Rows:
    """Simulated rows whose numbers fill this share of their range, left of its middle."""
    X, y = simulated(pipe, plan, rng, n)
    if share < 1:
        columns = X.columns[[kind.kind == "f" for kind in X.dtypes]] if hasattr(X, "columns") else slice(None)
        numbers = X[columns] if hasattr(X, "columns") else X
        low, high = np.nanmin(numbers, axis=0), np.nanmax(numbers, axis=0)
        shrunk = low + (high - low) * (0.5 - share) + share * (numbers - low)
        if hasattr(X, "columns"):
            X[columns] = shrunk
        else:
            X = shrunk
    return X, y


def _spread(domain: Domain) -> float:
    """Of entries, so that rows are mostly inside their norm."""
    return 1.0 if domain.row_norm is None else 0.7 * domain.row_norm / math.sqrt(domain.d)


def _target(table: Any, plan: Plan, rng: np.random.Generator) -> Any:
    """Labels or targets whose normal scores have this correlation with a weighted sum of standardised columns."""
    columns = [column.to_numpy() for _, column in table.items()]
    codes = (one if one.dtype.kind == "f" else np.unique(one.astype(str), return_inverse=True)[1] for one in columns)
    Z = np.nan_to_num(np.column_stack(list(codes)).astype(np.float64))
    Z = (Z - Z.mean(axis=0)) / np.maximum(Z.std(axis=0), 1e-12)
    weight = np.random.default_rng(0).standard_normal(Z.shape[1])
    signal = Z @ (weight / np.linalg.norm(weight))
    quantiles = ndtr(_CORRELATION * signal + math.sqrt(1 - _CORRELATION**2) * rng.standard_normal(len(Z)))
    if plan.domain.y_range is not None:
        low, high = plan.domain.y_range
        return low + (high - low) * quantiles
    classes = np.asarray(plan.domain.classes or (0, 1))
    return classes[np.minimum((quantiles * len(classes)).astype(np.intp), len(classes) - 1)]
