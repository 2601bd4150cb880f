"""From a plan that was executed to the certificate's content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logit

import ppdp.certificate.record as records
from ppdp.bounds import FORMULAS, lookup
from ppdp.bounds.release import share_parameters
from ppdp.bounds.statistics import CATEGORY_NUMBERS
from ppdp.certificate.altered import clearly_others, ranged
from ppdp.certificate.document import Certificate
from ppdp.certificate.facts import with_sources
from ppdp.certificate.issuance import claim, what_left
from ppdp.certificate.issue_record import Issued
from ppdp.certificate.issuer import issuer_words
from ppdp.certificate.replay.rules import PRIVATE_ORIGIN
from ppdp.certificate.share.files import hashed
from ppdp.core.domain import Domain
from ppdp.data.categories import released_weights
from ppdp.data.histograms import without_range
from ppdp.data.noisy_statistics import STATISTICS
from ppdp.data.rows import Array
from ppdp.exceptions import InvalidParameter, PpdpError
from ppdp.pipeline.planning.diagnostics import OFF, PlannedDiagnostics
from ppdp.pipeline.planning.plan import Plan, PlannedMechanism
from ppdp.pipeline.planning.route import PlannedRelease, PlannedStep
from ppdp.pipeline.release.answers import columns_at_the_end
from ppdp.pipeline.release.step_serialization import describe, question_of
from ppdp.privacy.gate import Gate
from ppdp.transformers.columns.column_subset import class_of

ONE_IN_TWENTY = 0.05
SEEN = 0.5  # width of an interval in which slopes of logarithms may hide, of a step of scaled columns


@dataclass(frozen=True, slots=True)
class Draft:
    """The certificate of a plan before its fit: all but what will be released, with public words of the issuer."""

    plan: Plan
    inference: str
    record: records.Record
    words: Mapping[str, Any]

    def completed(self, arrays: Mapping[str, Array], altered: Array | None, issued: Mapping[str, Any]) -> Certificate:
        """The certificate of these arrays and noisy numbers of altered rows; ``issued`` is the block of that name."""
        diagnostics = self.plan.diagnostics
        record = replace(
            self.record,
            diagnostics=None if diagnostics is None else _diagnostics(diagnostics, altered),
            released=what_left(arrays, self.record.released.inference),
            issued=records.read_as(Issued, {**issued, **self.words}) if issued else None,
        )
        return Certificate.sealed(records.written(record))


def draft_certificate(pipe: Any, plan: Plan, *, seeded: bool) -> Draft:
    """All that can be written before the spend, once written: no public word may fail after it."""
    try:
        inference = describe(steps_of(plan), getattr(pipe, "feature_names_in_", None))
        digest = hashed(inference.encode())
        record = draft_record(plan, inference=digest, invalid=pipe.on_invalid, seeded=seeded, dataset=pipe.dataset)
        record = replace(record, facts=facts_of(plan, pipe.sources))
        draft = Draft(plan, inference, record, issuer_words(pipe))
        draft.completed({}, None, {})
        return draft
    except PpdpError:
        raise
    except ValueError:  # a name with half a character, a number that is none
        pass
    what = "a public name, label or parameter cannot be written into a certificate."
    raise InvalidParameter(what, fix="names and labels in whole characters, finite numbers.")


def facts_of(plan: Plan, sources: Any = None) -> tuple[records.FactRecord, ...]:
    """The public facts of a plan, with their sources; refused if a source is of none of them."""
    return with_sources([records.FactRecord(name=f.name, value=f.value, origin=f.origin) for f in plan.facts], sources)


def steps_of(plan: Plan) -> list[tuple[str, Any]]:
    """Every step with its name, the mechanism last."""
    last = [(plan.mechanism.name, plan.mechanism.stage)] if plan.mechanism is not None else []
    return [*((step.name, step.stage) for step in plan.steps), *last]


def draft_record(
    plan: Plan, *, inference: str, invalid: str, seeded: bool, dataset: str | None = None
) -> records.Record:
    """The record of a plan of which nothing is released yet; ``inference`` is the SHA-256 of the steps' description."""
    if seeded and plan.mechanism is not None and getattr(FORMULAS[plan.mechanism.question.formula], "unseeded", False):
        what = "its random matrix must be secret, and random_state makes it known."
        raise InvalidParameter(what, stage=plan.mechanism.name, fix="leave random_state out.")
    return claim(
        plan,
        plan.domain,
        facts=facts_of(plan),
        reasons=plan.reasons,
        seeded=seeded,
        released={},
        inference=inference,
        invalid=invalid,
        dataset=dataset,
        steps=tuple(_step(step, gated=plan.gate is not None) for step in plan.steps),
        releases=tuple(release_record(release, plan) for release in plan.releases),
        diagnostics=None if plan.diagnostics is None else _diagnostics(plan.diagnostics, None),
        withheld=(OFF if plan.silent == OFF else "budget") if plan.silent else None,
        gate=None if plan.gate is None else _gate(plan, plan.gate),
        mechanism=None if plan.mechanism is None else _mechanism(plan.mechanism),
        alternatives=tuple(records.AlternativeRecord(**asdict(route)) for route in plan.alternatives),
        warnings=plan.warnings,
    )


def _step(step: PlannedStep, *, gated: bool) -> records.StepRecord:
    way = step.way
    return records.StepRecord(
        name=step.name,
        class_=class_of(step.stage, way.formula),
        way=way.name,
        formula=way.formula,
        parameters=way.parameters,
        page=FORMULAS[way.formula].page,
        conditions=tuple(
            records.ConditionRecord(name=c.name, statement=c.statement, formula=c.formula, unit=c.unit, tested=gated)
            for c in way.conditions
        ),
        domain=way.domain.to_dict(),
        distance=way.distance.to_dict(),
    )


def release_record(release: PlannedRelease, plan: Plan) -> records.ReleaseRecord:
    """What a certificate says of a release."""
    domain = plan.steps[release.at].domain
    statistic = STATISTICS[release.statistic]
    return records.ReleaseRecord(
        at=release.at,
        statistic=release.statistic,
        purpose=release.purpose,
        serves=tuple(plan.steps[i].name for i in release.serves),
        formula=statistic.formula,
        parameters=release.parameters,
        page=FORMULAS[statistic.formula].page,
        sensitivity=release.sensitivity,
        size=statistic.size(domain, release.parameters),
        bound=float(statistic.bound(domain)),
        noise_scale=release.noise_scale,
        mu=release.mu,
        failure=release.failure,
        threshold=release.threshold,
    )


def _diagnostics(own: PlannedDiagnostics, altered: Array | None) -> records.Diagnostics:
    counts = np.zeros(len(own.properties)) if altered is None else altered
    return records.Diagnostics(
        formula=own.formula,
        parameters=share_parameters([one.kind for one in own.properties]),
        page=FORMULAS[own.formula].page,
        sensitivity=own.sensitivity,
        size=len(own.properties),
        bound=float(own.n),
        noise_scale=own.noise_scale,
        mu=own.loss.mu or None,
        shares=tuple(
            records.Share(kind=one.kind, column=one.column, share=float(count) / own.n)
            for one, count in zip(own.properties, counts, strict=True)
        ),
    )


def _gate(plan: Plan, gate: Gate) -> records.GateRecord:
    return records.GateRecord(
        kind=gate.kind,
        noise_scale=gate.noise_scale,
        delta=gate.delta,
        threshold=gate.threshold,
        rule="sum" if gate.adding else "max",
        mu=gate.mu or None,
        ladder=None,
        page="gate",
    )


def _mechanism(m: PlannedMechanism) -> records.MechanismRecord:
    return records.MechanismRecord(
        name=m.name,
        class_=type(m.stage).__name__,
        formula=m.question.formula,
        parameters=m.question.parameters,
        page=lookup(m.question.formula, m.question.kind).page,
        sensitivity=m.sensitivity,
        steps=m.question.steps,
        size=m.question.size,
        bound=m.question.bound,
        noise_scale=m.noise_scale,
        mu=m.loss.mu if m.question.gaussian else None,
    )


def single_class(record: records.Record, twins: Sequence[tuple[str, Any]]) -> str | None:
    """The class that the last step predicts of every row within public ranges and norm, if it is known for one.

    It follows from released and public numbers alone: the score of this class exceeds those of all others, of two
    classes by its threshold, by more than any row can change their difference.
    """
    model = twins[-1][1]
    read = any(fact.name == "classes" and fact.origin == PRIVATE_ORIGIN for fact in record.facts)
    boosted, known = hasattr(model, "models_"), any(hasattr(model, name) for name in ("coef_", "models_", "var_"))
    if record.mechanism is None or read or not hasattr(model, "classes_") or not known:
        return None
    threshold = logit(getattr(model, "threshold_", 0.5))
    leads = _leads_of_shapes(model.models_, threshold) if boosted else _leads(record, twins, threshold)
    np.fill_diagonal(leads, np.inf)
    first = np.flatnonzero((leads > 0).all(axis=1))
    return str(model.classes_[first[0]]) if first.size else None


def no_slope(record: records.Record, twins: Sequence[tuple[str, Any]]) -> bool | None:
    """Whether 0 lies in the released intervals of all coefficients of a regression; None if it does not in one."""
    model = twins[-1][1]
    if record.mechanism is None or not hasattr(model, "coef_") or hasattr(model, "classes_"):
        return None
    domain, columns = Domain.from_dict(record.domains[-1]), columns_at_the_end(record, twins)
    for found in model.answers(columns, domain, question_of(record.mechanism)):
        if found.statistic == "coefficient":
            ends = found.interval(ONE_IN_TWENTY / len(found.value), raw=False)
            if hasattr(model, "power") and max(ends["upper"] - ends["lower"]) > SEEN:
                return None
            within = [(ends[f"{of}lower"] < 0) & (ends[f"{of}upper"] > 0) for of in ("", "population_")]
            return bool((within[0] | within[1]).all()) or None
    return None


def no_range(record: records.Record, arrays: Mapping[str, Array], names: Sequence[str]) -> tuple[str, ...] | None:
    """Columns whose range or categories were to be seen in released counts, and do not show there."""
    missing = []
    for release in record.releases:
        if columns := ranged(record, release):
            answer = arrays[f"{names[release.at]}.{release.statistic}"]
            if most := release.parameters.get("max_categories"):
                empty: Any = [not one.any() for one in np.split(answer, CATEGORY_NUMBERS * np.cumsum(most)[:-1])]
            else:
                empty = without_range(answer, len(columns), release.noise_scale)
            missing += [column for column, none in zip(columns, empty) if none]
    return tuple(missing) or None


def others(record: records.Record, arrays: Mapping[str, Array], names: Sequence[str]) -> dict[str, float] | None:
    """Shares of the rows of none of the released categories, by column, where clearly above a tenth."""
    found = {}
    for release in record.releases:
        most, domain = release.parameters.get("max_categories"), Domain.from_dict(record.domains[release.at])
        if most and domain.max_weight is None and domain.min_present == domain.n:
            weights = released_weights(arrays[f"{names[release.at]}.{release.statistic}"], most)
            for column, own in zip(ranged(record, release), weights):
                if len(own) and (share := clearly_others(own.tolist(), release.noise_scale, domain.n)) is not None:
                    found[column] = share
    return found or None


def _leads(record: records.Record, twins: Sequence[tuple[str, Any]], threshold: float) -> Array:
    """By how much scores of other models exceed one another, at least, of every class those of every other."""
    domain = Domain.from_dict(record.domains[-1])
    ranges = columns_at_the_end(record, twins).ranges
    bound = np.inf if domain.entry_bound is None else domain.entry_bound
    ends = np.where(np.isfinite(ranges), ranges, [-bound, bound])
    curves, slopes, starts = _scores(twins[-1][1], threshold)
    classes = zip(curves, slopes, starts)
    return np.array([_least(c - curves, s - slopes, ends, domain) + start - starts for c, s, start in classes])


def _scores(model: Any, threshold: float) -> tuple[Array, Array, Array]:
    """Of the score of every class what is multiplied by squares of columns and by columns, and what is left."""
    if hasattr(model, "var_"):  # logarithms of normal densities
        constant = model.theta_**2 / model.var_ + np.log(model.var_)
        return -0.5 / model.var_, model.theta_ / model.var_, np.log(model.class_prior_) - constant.sum(axis=1) / 2
    weights, starts = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_) - threshold
    if len(weights) == 1:  # one score, for the second of two classes
        weights, starts = np.vstack([-weights, weights]) / 2, np.append(-starts, starts) / 2
    return np.zeros_like(weights), weights, starts


def _least(curves: Array, slopes: Array, ends: Array, domain: Domain) -> Array:
    """The least that rows within ranges and norm have by each line of coefficients."""
    low, high = ends.T
    with np.errstate(all="ignore"):
        turns = np.where(curves > 0, np.clip(-slopes / (2 * curves), low, high), low)
        reached = [np.where(curves, curves * x**2, 0) + np.where(slopes, slopes * x, 0) for x in (low, high, turns)]
        least = np.nan_to_num(np.min(reached, axis=0), nan=-np.inf, posinf=np.inf, neginf=-np.inf).sum(axis=1)
    if domain.row_norm is None or curves.any():
        return least
    return np.maximum(least, -np.linalg.norm(slopes, axis=1) * domain.row_norm)


def _leads_of_shapes(models: Sequence[Any], threshold: float) -> Array:
    """The same of boosted ones, wherever a row has its cells."""
    low, high = np.array([model.extremes for model in models]).T
    if len(models) == 1:
        low, high = np.append(threshold - high, low - threshold) / 2, np.append(threshold - low, high - threshold) / 2
    return np.asarray(low[:, None] - high)
