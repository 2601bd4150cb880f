"""Candidates of a search, how their rows are scored, and how one is chosen: ``docs/theory/search.md``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_regressor

from ppdp.certificate.issuer import with_digests
from ppdp.core.adjacency import Adjacency
from ppdp.core.checks import pair
from ppdp.core.domain import Domain
from ppdp.data import validation
from ppdp.data.cells import numbers, plain_labels
from ppdp.data.rows import Array, encode_labels, encode_targets
from ppdp.exceptions import DomainMismatch, InvalidParameter, MissingBound, PpdpError, UnknownParameter, said_by
from ppdp.pipeline.certify import draft_certificate
from ppdp.pipeline.estimator import remember
from ppdp.pipeline.fit import checked_steps, plan_of
from ppdp.pipeline.own_steps import check_own
from ppdp.pipeline.pipeline import Pipeline
from ppdp.pipeline.planning.plan import Plan
from ppdp.pipeline.search.plan import PlannedFit, Selection
from ppdp.privacy.ledger.fit_charging import already_charged
from ppdp.privacy.ledger.ledger import Ledger
from ppdp.privacy.noise.laplace import choose
from ppdp.privacy.noise.sampler import Noise
from ppdp.transformers.columns.spread_steps import with_names

Scoring = Callable[[Any, Any], float]
_MADE_UP = 100  # answers, at most, on which a score of one's own is tried

_OF_THE_SEARCH = (
    "epsilon",
    "delta",
    "ledger",
    "dataset",
    "random_state",
    "domain",
    "purpose",
    "responsible",
    "statements",
    "sources",
)


def searched(declared: Domain | None) -> Adjacency:
    """Which tables are neighbours; refused where a search has no bounds."""
    adjacency = (declared or Domain()).adjacency
    if not adjacency.bounded:
        what = f"a search splits rows, and its scores are bounded for replaced rows only, not for {adjacency.unit}."
        raise InvalidParameter(what, fix="search with Adjacency.replace().")
    return adjacency


@dataclass(frozen=True, slots=True)
class Setting:
    """Public facts of all rows of a search: what the user declared of them, shape and columns of X."""

    declared: Domain | None
    n_rows: int
    n_features: int
    names: tuple[str, ...] | None

    def __post_init__(self) -> None:
        n_rows = None if self.declared is None else self.declared.n_rows
        if n_rows not in (None, self.n_rows):
            what = f"the domain declares n_rows = {n_rows}, X has {self.n_rows}."
            raise DomainMismatch(what, fix="declare what the data have.")

    @property
    def adjacency(self) -> Adjacency:
        """Which tables are neighbours."""
        return searched(self.declared)

    def domain(self, n: int) -> Domain | None:
        """What is declared of all rows, as far as it holds of any ``n`` of them."""
        if self.declared is None or n == self.n_rows:
            return self.declared
        gaps = self.declared.max_missing
        if gaps is not None:
            gaps = min(n, self.declared.but(n_rows=self.n_rows).missing_rows)
        return self.declared.but(n_rows=n, min_present=0, max_missing=gaps)


@dataclass(frozen=True, slots=True)
class Candidate:
    """Parameters with their pipeline, in an account to which nobody looks: there deltas of gates add, as they must."""

    params: Mapping[str, Any]
    pipeline: Pipeline

    def plan(self, n: int, epsilon: float, delta: float, setting: Setting) -> Plan:
        """Its plan on ``n`` of the rows, with declared labels: to read them is an answer about the rows."""
        pipeline = clone(self.pipeline).set_params(epsilon=epsilon, delta=delta, diagnostics=self._told(n, setting))
        with already_charged():
            plan = plan_of(pipeline, setting.domain(n), shape=(n, setting.n_features), names=setting.names)
        if plan.domain.adjacency != setting.adjacency:
            raise InvalidParameter("a search protects one thing.", fix="the same adjacency for all candidates.")
        if not is_regressor(pipeline) and plan.domain.classes is None:
            what = "the classes are not declared."
            raise MissingBound(what, fix="pass classes=(...) to the model or Domain(classes=...).")
        check_own(plan, draft_certificate(pipeline, plan, seeded=False))
        return plan

    def fit(
        self,
        spend: PlannedFit,
        setting: Setting,
        X: Any,
        beside: tuple[NDArray[Any], NDArray[Any] | None],
        seed: int | None,
    ) -> Pipeline:
        """A fit as planned, on rows with their labels, and their weights if they have some."""
        y, weights = beside
        pipeline: Pipeline = clone(self.pipeline).set_params(
            epsilon=spend.epsilon,
            delta=spend.delta,
            domain=setting.domain(len(y)),
            random_state=seed,
            diagnostics=self._told(len(y), setting),
        )
        with already_charged():
            return pipeline.fit(X, y, sample_weight=weights)

    def _told(self, n: int, setting: Setting) -> str | None:
        """Shares of altered rows are released once, by the fit on all rows."""
        return self.pipeline.diagnostics if n == setting.n_rows else None


def candidates_of(pipeline: Pipeline, param_grid: Any, scoring: Any = None, table: Any = None) -> list[Candidate]:
    """All combinations of parameters, each with its pipeline; refused where they cannot be scored alike.

    ``table``, or a domain, tells the names of columns that a function chooses.
    """
    from sklearn.model_selection import ParameterGrid

    kind = _kind(_with_names(clone(pipeline), table))
    template = clone(pipeline).set_params(ledger=Ledger(), statements=with_digests(pipeline))
    remember(template, promised=None, owed=None)  # what is promised and owed is the search's
    try:
        grid = list(ParameterGrid(param_grid))
        taken = sorted({name for params in grid for name in params} & set(_OF_THE_SEARCH))
        if taken:
            what = f"{taken} cannot be searched for: a choice must cost what was planned."
            raise InvalidParameter(what, fix="leave it out of param_grid; a search has one epsilon and delta.")
        candidates = [Candidate(params, _with_names(clone(template).set_params(**params), table)) for params in grid]
    except UnknownParameter as error:
        raise UnknownParameter(f"param_grid does not fit this pipeline: {error.message}", fix=error.fix) from None
    except PpdpError:
        raise
    except (TypeError, ValueError, AttributeError) as error:
        what = f"param_grid does not fit this pipeline: {said_by(error)}"
        raise InvalidParameter(what, fix="{'step__parameter': [value, value]}, a list of values for each.") from error
    if len(candidates) < 2:
        raise InvalidParameter("a search needs at least two candidates.", fix="more values in param_grid.")
    if any(_kind(candidate.pipeline) != kind for candidate in candidates):
        what = "classifiers and regressors have no scores in common."
        raise InvalidParameter(what, fix="a search for each, with a pipeline of its kind.")
    if kind and not callable(scoring) and len({_target_range(candidate.pipeline) for candidate in candidates}) > 1:
        what = "scores are errors as shares of y_range, and the candidates have several."
        fix = (
            "one y_range from public knowledge; or scoring=lambda y, predicted: ..., from 0 to 1, in the targets' unit."
        )
        raise InvalidParameter(what, fix=fix, parameter="param_grid")
    if callable(scoring):
        _check_scoring(scoring, candidates[0].pipeline, regression=kind)
    return candidates


def _with_names(pipeline: Pipeline, table: Any) -> Pipeline:
    """The pipeline, with names in place of functions that choose columns."""
    return pipeline.set_params(steps=with_names(pipeline.steps, pipeline.domain if table is None else table))


def own_score(*, regression: bool) -> str:
    """How a score of one's own is written."""
    if regression:
        return "lambda y, predicted: 1 - abs(y - predicted) / 100, say, from 0 to 1; R2 is of rows together."
    return "lambda y, predicted: y == predicted, from 0 to 1; AUC and F1 are of rows together."


def _check_scoring(scoring: Scoring, pipeline: Pipeline, *, regression: bool) -> None:
    """Refuse scores that are the same, or fail, whatever is predicted of made-up answers: any candidate would do."""
    declared = pipeline.domain or Domain()
    ends = _target_range(pipeline) or declared.y_range
    own = getattr(checked_steps(pipeline).last, "classes", None)
    made_up = declared.classes if own is None else own
    if regression:
        made_up = None if ends is None else np.linspace(ends[0], ends[1], _MADE_UP)
    if made_up is None:
        return  # said by the plan
    answers, predicted = np.meshgrid(*2 * [np.asarray(made_up)[:_MADE_UP]])
    scores = row_scores(Domain(), answers.ravel(), predicted.ravel(), scoring, regression=regression)
    if np.ptp(scores) == 0:
        what = "scoring fails for one answer and one prediction, or is the same whatever is predicted."
        raise InvalidParameter(what, fix=own_score(regression=regression), parameter="scoring")


def _target_range(pipeline: Pipeline) -> tuple[float, float] | None:
    """The range that its model declares of the targets."""
    model = checked_steps(pipeline).last
    own = getattr(model, "y_range", None)
    return None if own is None else pair("y_range", own, model)


def _kind(pipeline: Pipeline) -> bool:
    """Whether it is a regression; refuses what has no score."""
    steps = checked_steps(pipeline)
    if not hasattr(steps.last, "predict"):
        raise InvalidParameter("the pipeline does not predict, so it has no score.", fix="end it in a model.")
    if not steps.supervised:
        raise InvalidParameter(
            f"{type(steps.last).__name__} learns from no labels, so that no row has a score: how near rows are to "
            "centres always improves with more of them.",
            fix="n_clusters from public knowledge; or a fit for each, all of which are charged, and their released "
            "centres and counts side by side.",
        )
    return steps.regression


def row_scores(
    domain: Domain, y: NDArray[Any], predicted: NDArray[Any], scoring: Scoring | None, *, regression: bool
) -> Array:
    """Score of every row in [0, 1], from its answer and prediction alone; ``domain`` has classes or range of y."""
    if scoring is not None:
        answers = plain_labels(y)  # a label's own class would speak in the function
        scores = np.frompyfunc(partial(_scored, scoring), 2, 1)(answers, predicted).astype(np.float64)
        return np.clip(np.nan_to_num(scores, nan=0.0), 0.0, 1.0)
    if not regression:
        classes = domain.require("classes")
        return (encode_labels(y, classes) == encode_labels(predicted, classes)).astype(np.float64)
    y_range = domain.require("y_range")
    right = validation.settled_targets(numbers(y), y_range, "repair")
    return np.clip(1 - np.abs(right - encode_targets(predicted, y_range)) / 2, 0.0, 1.0)


def _scored(scoring: Scoring, answer: Any, predicted: Any) -> float:
    """A user's score of one row; that it fails is nobody's business."""
    try:
        return float(scoring(answer, predicted))
    except Exception:
        return 0.0


def select(sums: Array, selection: Selection, noise: Noise) -> tuple[int, Array]:
    """Position of the candidate chosen by private sums of scores, and noisy means: of all, of that one, or none."""
    means, scale = sums / selection.rows, selection.noise_scale
    if selection.temperature is None:
        assert scale is not None
        noisy = noise.release(means, scale, 1.0)
        return int(noisy.argmax()), noisy
    chosen = choose(noise, sums, selection.temperature, float(selection.rows))
    return chosen, np.empty(0) if scale is None else noise.release(means[chosen : chosen + 1], scale, 1.0)
