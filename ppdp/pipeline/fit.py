"""One fit of a pipeline, in a straight line: checked input, plan, charge, rows, outcome, certificate."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone

from ppdp.bounds.release import LABEL, TARGET
from ppdp.certificate.altered import alerts, few_left
from ppdp.certificate.document import Certificate
from ppdp.certificate.record import Record, read_as, written
from ppdp.certificate.replay.rules import released_rules
from ppdp.core.adjacency import Adjacency
from ppdp.core.boundary import at_step, before_rows, called_from, is_silenced, outside
from ppdp.core.checks import choice
from ppdp.core.domain import Domain
from ppdp.core.names import shipped
from ppdp.core.progress import unseen
from ppdp.data import validation
from ppdp.data.deferred_input import DeferredTable, resolve_inputs
from ppdp.data.public_facts import Fact, check_beside_names, check_matches_plan, complete, with_adjacency
from ppdp.data.rows import Rows
from ppdp.data.slot_assignment import assign_slots, check_groups, encode_ids, slots_assigned
from ppdp.data.weights import check_some_weight, check_weighing, check_weights, heaviest, warn_of_names, warn_of_order
from ppdp.exceptions import (
    DiagnosticWarning,
    ImpossibleBudget,
    InvalidInput,
    InvalidParameter,
    NoiseWarning,
    NoRoute,
    UnsupportedOrder,
)
from ppdp.pipeline.certify import Draft, draft_certificate, no_range, no_slope, others, single_class, steps_of
from ppdp.pipeline.estimator import check_account, check_kinds, form_of, remember, state_of
from ppdp.pipeline.execute import Outcome, execute
from ppdp.pipeline.input_checks import check_memory, check_sparse_plan, check_streams
from ppdp.pipeline.own_steps import TEST, check_own
from ppdp.pipeline.planning.advice import Advice
from ppdp.pipeline.planning.diagnostics import Entrance
from ppdp.pipeline.planning.plan import Plan
from ppdp.pipeline.planning.solve import PlanSolver, make_plan
from ppdp.pipeline.release.step_serialization import released_twins
from ppdp.pipeline.release.table import Released
from ppdp.pipeline.steps import Named, Steps, as_texts, check_steps, check_unbounded, takes_texts
from ppdp.privacy.gate import GATE_KINDS
from ppdp.privacy.ledger.fit_charging import FitCharge, FitCost, charge, is_a_part, open_ledger
from ppdp.privacy.noise.sampler import Noise
from ppdp.transformers.columns.spread_steps import by_function, with_names


def checked_steps(pipe: Any, table: Any = None) -> Steps:
    """The steps of a pipeline, once its own parameters are checked.

    Functions choose columns by names and types of ``table``, or by the names of a domain, by default the pipeline's.
    """
    choice("gate", pipe.gate, ["auto", *GATE_KINDS, None])
    choice("on_invalid", pipe.on_invalid, ["error", "repair"])
    choice("diagnostics", pipe.diagnostics, ["auto", None])
    check_kinds(pipe, domain=Domain, adjacency=Adjacency)
    given = with_names(pipe.steps, pipe.domain if table is None else table)
    return replace(check_steps(pipe.own_steps(given), type(pipe)), given=given)


def adjacency_of(pipe: Any) -> Adjacency:
    """Which datasets are neighbours, whoever said so."""
    check_kinds(pipe, domain=Domain, adjacency=Adjacency)
    return (with_adjacency(pipe.domain, pipe.adjacency) or Domain()).adjacency


def facts_of(pipe: Any, steps: Steps, declared: Domain | None, **seen: Any) -> tuple[Domain, tuple[Fact, ...]]:
    """The whole domain of a plan, and from where its facts are."""
    domain = with_adjacency(declared, pipe.adjacency)
    check_unbounded(domain, steps.stages)
    check_weighing(domain or Domain(), steps.stages, steps.mechanism)
    return complete(domain, steps.stages, steps.last, **seen)


def plan_of(pipe: Any, declared: Domain | None, steps: Steps | None = None, **seen: Any) -> Plan:
    """The plan with the declared facts and what may be ``seen`` of the data: shape, names, classes."""
    steps = checked_steps(pipe, declared) if steps is None else steps
    domain, facts = facts_of(pipe, steps, declared, **seen)
    begun, adding = time.monotonic(), _is_charged(pipe)
    altering = Entrance(
        pipe.on_invalid == "repair",
        None if not steps.supervised else TARGET if steps.regression else LABEL,
        told=pipe.diagnostics is not None,
        balances=steps.mechanism is not None and steps.last.balances,
        logarithms=str(getattr(steps.last, "target_func", None)).startswith("log"),
        classifies=_classifies(steps.last) and domain.classes is not None and seen.get("read_classes") is None,
    )
    solver = PlanSolver(
        steps.mechanism, domain, facts, pipe.epsilon, pipe.delta, pipe.gate, pipe.budget, adding, altering
    )

    def advice(*, route: bool, by_epsilon: bool = True) -> Advice | None:
        """What would help these steps as they are now; none where classes were read: its plans know private labels."""
        if seen.get("read_classes") is not None or is_a_part():
            return None
        table = {name: getattr(domain, name) for name in ("n_rows", "n_features", "feature_names")}
        unfitted = type(pipe)(
            **{**pipe.get_params(deep=False), "steps": [(name, clone(step)) for name, step in steps.given]}
        )
        pace = time.monotonic() - begun
        return Advice(
            unfitted,
            (declared or Domain()).but(**table),
            route,
            pace,
            plan=plan_of,
            by_epsilon=by_epsilon,
            run=fit_simulated,
        )

    try:
        plan = make_plan(solver, steps.stages)
    except (NoRoute, ImpossibleBudget, UnsupportedOrder) as error:
        error.advice = advice(route=False, by_epsilon=not isinstance(error, UnsupportedOrder))
        raise
    return replace(plan, advice=advice(route=True)) if plan.has_warnings else plan


def _classifies(last: Any) -> bool:
    """Whether a last step predicts classes, by code of ppdp's own: it will be run on private rows."""
    return shipped(type(last)) and hasattr(last, "steady_labels")


def _is_charged(pipe: Any) -> bool:
    return pipe.ledger is not None or open_ledger() is not None


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Inputs:
    """What a fit was given; no cell was looked at."""

    table: Any
    labels: Any
    groups: Any
    weights: Any
    names: tuple[str, ...] | None  # of columns

    @classmethod
    def of(cls, pipe: Any, steps: Steps, X: Any, y: Any, groups: Any, weights: Any) -> Inputs:
        """The inputs, whose form is one that the steps take; the pipeline remembers the columns."""
        neighbours = adjacency_of(pipe)
        hidden = neighbours.unbounded
        table, names = form_of(pipe, X, steps.coded, unbounded=hidden, texts=takes_texts(steps.all[0][1]))
        check_groups(table, groups, neighbours)
        weights = check_weights(table, weights, pipe.domain or Domain())
        labels = validation.check_labels(table, y, pipe, unbounded=hidden) if steps.supervised else None
        if isinstance(table, DeferredTable) and not steps.supervised:
            table = replace(table, label=None)
        return cls(table, labels, groups, weights, names)

    def check_against(self, plan: Plan, steps: Steps, invalid: str) -> None:
        """Refuse a plan that cannot be run on such rows, or on any."""
        if issparse(self.table):
            check_sparse_plan(plan)
        else:  # a repair takes text as missing, but no range is found in it
            numeric = None if invalid == "error" else plan.private_range_columns
            validation.check_numeric(self.table, numeric, steps.coded)
        if self.labels is not None and not steps.regression:
            classes = plan.domain.classes or ()
            validation.check_classes(self.labels, classes)
            if len(classes) > 2 and called_from("sklearn.multiclass"):
                what = f"OneVsRestClassifier and its like hand on two classes as codes; {len(classes)} are declared."
                fix = "classes=(0, 1) here; or this pipeline alone: one fit learns all classes together."
                raise InvalidInput(what, fix=fix)
        if isinstance(self.table, DeferredTable):
            check_streams(plan, self.table.source)
        else:
            check_memory(plan)
        if plan.unpassable_gates:
            error = NoRoute(
                f"no data could pass the gate of {', '.join(plan.unpassable_gates)}, so a fit would only spend.",
                fix="fit_mode='auto', looser thresholds, more rows or a larger epsilon.",
            )
            error.advice = plan.advice
            raise error


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Fit:
    """A fit that is planned: what it was given, and the plan for that."""

    pipe: Any
    steps: Steps
    inputs: Inputs
    plan: Plan

    @classmethod
    def of(cls, pipe: Any, X: Any, y: Any, groups: Any, weights: Any, steps: Steps | None = None) -> Fit:
        """The plan for these data, of which only the form is looked at."""
        steps = checked_steps(pipe, X) if steps is None else steps
        check_account(pipe)
        inputs = Inputs.of(pipe, steps, X, y, groups, weights)
        with before_rows():
            plan = plan_of(pipe, pipe.domain, steps, shape=inputs.table.shape, names=inputs.names)
        check_matches_plan(state_of(pipe).promised, plan.domain)
        inputs.check_against(plan, steps, pipe.on_invalid)
        return cls(pipe, steps, inputs, plan)

    def warn_of_noise(self) -> None:
        """Say what the plan warns of, unless nobody hears it: what would help is looked for in many other plans."""
        plan = self.plan
        if is_silenced(NoiseWarning):
            return
        if plan.has_warnings or plan.epsilon < self.pipe.epsilon or plan.cautioned:
            warnings.warn(" ".join(plan.warned()), NoiseWarning, stacklevel=outside())

    def charge(self) -> FitCharge:
        """Charge a ledger, or count, before any value is looked at."""
        plan, loss = self.plan, self.plan.loss
        failure = max(loss.failure, loss.gate)
        cost = FitCost(plan.epsilon, plan.delta, loss, failure, plan.allowance, plan.domain.adjacency)
        label = " > ".join(name for name, _ in self.pipe.steps)
        return charge(self.pipe.ledger, cost, dataset=self.pipe.dataset, label=label)

    def execute(self, noise: Noise) -> tuple[Plan, Outcome]:
        """Run the plan, with classes if they have to be read from y."""
        with ExitStack() as files:
            with at_step("entrance"), unseen(self.plan.domain.adjacency.unbounded):
                plan, rows = self.rows()
                rows = files.enter_context(slots_assigned(rows, plan.domain, noise, self.persons()))
            return plan, execute(plan, rows, noise)

    def rows(self) -> tuple[Plan, Any]:
        """Values within the declared domain, and the plan, with classes if they had to be read from y."""
        table, labels, plan, steps = self.inputs.table, self.inputs.labels, self.plan, self.steps
        if labels is not None and plan.domain.classes is None and not steps.regression:
            plan = self._plan_for(
                validation.read_classes(table.classes() if isinstance(table, DeferredTable) else labels)
            )
        read = validation.Reader(
            plan.domain,
            steps.learned,
            plan.domain.missing_rows > 0,
            self.pipe.on_invalid,
            steps.regression,
            None if plan.diagnostics is None or not plan.diagnostics.marker.counted else plan.diagnostics.marker,
        )
        if isinstance(table, DeferredTable):
            return plan, table.stream(read, as_numbers=steps.learned is None)
        return plan, check_some_weight(read(table, labels, self.inputs.weights), self.pipe.on_invalid)

    def _plan_for(self, classes: Sequence[Any]) -> Plan:
        """The plan for classes that were read from y."""
        if _is_charged(self.pipe) and len(classes) > 2:
            what = "more than two classes must be declared where a ledger is charged."
            raise InvalidParameter(what, fix="pass classes=(...) to the model.")
        shape, names = self.inputs.table.shape, self.plan.domain.feature_names
        return plan_of(self.pipe, self.pipe.domain, self.steps, shape=shape, names=names, read_classes=classes)

    def persons(self) -> Any:
        """Whose each row is, where persons are protected."""
        return encode_ids(self.inputs.table, self.inputs.groups, self.pipe.on_invalid)


def fit_pipeline(pipe: Any, X: Any, y: Any, groups: Any, weights: Any) -> None:
    """Fit a pipeline to private rows: what it releases and its certificate are set on it, and nothing else."""
    steps = None if by_function(pipe.steps) else checked_steps(pipe)
    X = X if steps is None else as_texts(steps.all[0][1], X, y)  # a list names no columns
    with resolve_inputs(X, y, groups, weights) as given:
        steps = checked_steps(pipe, given[0]) if steps is None else steps
        _check_positions(pipe, steps, given[0], X, y, groups, weights)
        beside = dict(zip(("y", "groups", "sample_weight"), given[1:]))
        warn_of_names(given[0], steps.given, beside)
        fit = Fit.of(pipe, *given, steps=steps)
        noise = Noise(pipe.random_state)
        fit.warn_of_noise()
        with before_rows():
            draft = draft_certificate(pipe, fit.plan, seeded=noise.seeded)
            check_own(fit.plan, draft)
        charged = fit.charge()
        with charged.settling():
            plan, outcome = fit.execute(noise)
        if plan is not fit.plan:  # for classes that were read from y
            draft = draft_certificate(pipe, plan, seeded=noise.seeded)
        record = store_release(pipe, draft, outcome, charged.issued(plan.delta))
        remember(pipe, charged=charged)
        for alert in alerts(record):
            warnings.warn(alert, DiagnosticWarning, stacklevel=outside())
        warn_of_order(given[0], pipe.on_invalid, beside)


def _check_positions(pipe: Any, steps: Steps, table: Any, X: Any, *beside: Any) -> None:
    """Refuse positions of columns where labels or ids are taken out of the table by name."""
    taken = [name for name in beside if isinstance(name, str)]
    if taken and type(X).__name__ != "LazyFrame":
        names = getattr(X, "column_names", getattr(X, "columns", ()))
        if isinstance(table, DeferredTable):
            names = table.source.schema.names
        last = set(list(names)[-len(taken) :]) == set(taken)  # then the others stay in their places
        check_beside_names(adjacency_of(pipe), [] if last else steps.all, repr(taken[0]))


def fit_simulated(pipe: Any, X: Any, y: Any, noise: Noise) -> Any:
    """A copy of a pipeline that is fitted to simulated rows: nothing is charged, and no certificate of it leaves."""
    fitted = copy(pipe)
    everybody = np.arange(len(X)) if adjacency_of(pipe).bounds_contributions else None  # one row each
    plan, outcome = Fit.of(fitted, X, y, everybody, heaviest(pipe.domain, X)).execute(noise)
    store_release(fitted, draft_certificate(fitted, plan, seeded=noise.seeded), outcome, {})
    return fitted


def prepare_rows(pipe: Any, X: Any, y: Any = None, groups: Any = None, noise: Noise | None = None) -> tuple[Plan, Rows]:
    """What a fit would execute, and on which rows, which are private; nothing is charged, released or changed.

    No execution writes over these rows. Where their number is private they stand in slots that ``noise`` draws, if it
    is given. Where rows have weights, all have the largest.
    """
    fit = Fit.of(copy(pipe), X, y, groups, heaviest(pipe.domain, X))
    with at_step("entrance"):
        plan, rows = fit.rows()
        if noise is not None:
            rows = assign_slots(rows, plan.domain, noise, fit.persons())
    return plan, replace(rows, ours=False)


def store_release(pipe: Any, draft: Draft, outcome: Outcome, issued: Mapping[str, Any]) -> Record:
    """Keep what was released, the twins and the certificate, whose record it gives; nothing else."""
    arrays = {name: np.array(array, dtype=np.float64) for name, array in outcome.released.items()}
    for array in arrays.values():
        array.setflags(write=False)
    certificate = draft.completed(arrays, outcome.altered, issued)
    record = read_as(Record, certificate.to_dict())  # which was just written, so its form needs no check
    for problem in released_rules(record):
        what = f"what it released is not what its formula says, and is kept nowhere: {problem}"
        raise InvalidParameter(what, stage=steps_of(draft.plan)[-1][0], fix=TEST)
    release = Released.of(record, arrays, draft.inference, certificate)
    set_release(pipe, release, record, steps_of(draft.plan))
    said = replace(
        record.released,
        single_class=single_class(record, pipe.twins_),
        share_left=few_left(record, _present(draft.plan, pipe.twins_[-1][1], outcome)),
        no_range=no_range(record, arrays, [name for name, _ in pipe.twins_]),
        others=others(record, arrays, [name for name, _ in pipe.twins_]),
        no_slope=no_slope(record, pipe.twins_),
        unheld=getattr(pipe.twins_[-1][1], "unheld", None),
    )
    if said != record.released:
        record = replace(record, released=said, digest="")
        pipe.certificate_ = Certificate.sealed(written(record))
        pipe.release_ = replace(pipe.release_, certificate=pipe.certificate_)
    return record


def _present(plan: Plan, last: Any, outcome: Outcome) -> Any:
    """Noisy share of the rows that stages have left, and its standard error; None where nothing tells it."""
    m = plan.mechanism
    return outcome.present if outcome.present is not None or m is None else last.share_left(plan.end[0], m.question)


def set_release(pipe: Any, release: Released, record: Record, steps: Sequence[Named]) -> None:
    """Predict with a release, the one of this fit or one that was loaded; ``record`` is that of its certificate."""
    domain = record.entrance.domain
    pipe.twins_ = released_twins(record, steps, release.arrays)
    if hasattr(pipe.twins_[-1][1], "classes_"):
        pipe.classes_ = pipe.twins_[-1][1].classes_
    pipe.row_norm_, pipe.entry_bound_ = domain.get("row_norm"), domain.get("entry_bound")
    pipe.release_, pipe.certificate_ = replace(release, twins=tuple(pipe.twins_)), release.certificate
