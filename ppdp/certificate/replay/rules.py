"""What must hold between the parts of a certificate, besides its numbers.

A derivation may be right and yet not be that of the pipeline it names: a stage fitted from a release that was
never made, a condition that nobody states, a model accounted as something else.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import Enum
from typing import Any

from ppdp.bounds import lookup
from ppdp.bounds.release import KINDS, PURE_SHARES, SHARES, class_names, predicted_apart, share_parameters
from ppdp.bounds.selection import COUNTED, THRESHOLD, search_allowance, search_loss, selection_loss
from ppdp.bounds.statistics import STATISTIC_FORMS
from ppdp.certificate.altered import (
    HALF,
    TENTH,
    by_counts,
    deleting,
    labels_of,
    labels_predicted,
    of_a_column,
    ranged,
)
from ppdp.certificate.record import ConditionRecord, MechanismRecord, Record, ReleaseRecord, SearchRecord, StepRecord
from ppdp.core.adjacency import Adjacency
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import AT, Answer, Formula
from ppdp.exceptions import ExportError
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.noise.sampler import TOTAL_VARIATION_PER_DRAW

_CLOSE = 1e-9
ADJACENCY = Adjacency.replace().words
PRIVATE_ORIGIN = "read from y: not public"


class Exclusion(Enum):
    """What a certificate does not promise, in the words of its document."""

    INVALID_VALUES = (
        "exceptions raised on invalid values: invalid='error' stops at an undeclared NaN, infinity or label, and that a"
        " run stops is itself an answer about the data; invalid='repair' covers it"
    )
    NO_ID = "that a run stops because a row has no id: invalid='error' stops there, invalid='repair' leaves the row out"
    TOO_MANY_ROWS = (
        "that a run stops because there are more rows than n_rows declares: how many rows there are is private, and"
        " this tells of it"
    )
    EVALUATION = (
        "evaluation on private rows, and choices made from it (scores, plots, tuning) unless they are charged to a"
        " ledger"
    )
    RESOURCES = "running time and memory"
    KINDS_OF_COLUMNS = "that a column holds text that is no number: the kind of a column is taken to be public"
    OTHER_STATISTICS = "statistics of the private data that were computed outside this run"
    MEMORY = "whoever can read the machine's memory during fit"
    OTHER_FITS = (
        "the sensitivities of the other fits of the search: what each costs is recorded here and added up again, but"
        " only the last fit is derived step by step"
    )


STOPS = Exclusion.INVALID_VALUES, Exclusion.NO_ID, Exclusion.TOO_MANY_ROWS  # those of a run that stops
_ALWAYS = (
    Exclusion.EVALUATION,
    Exclusion.RESOURCES,
    Exclusion.KINDS_OF_COLUMNS,
    Exclusion.OTHER_STATISTICS,
    Exclusion.MEMORY,
)


def stated(adjacency: Adjacency) -> str:
    """Which datasets are neighbours, in the words of a certificate; where rows are replaced, those for one row."""
    return ADJACENCY if adjacency.bounded else adjacency.words


def not_covered(invalid: str, adjacency: Adjacency, *, search: bool = False) -> list[str]:
    """What a certificate does not promise, in words."""
    excluded = {
        Exclusion.INVALID_VALUES: invalid == "error",
        Exclusion.NO_ID: invalid == "error" and adjacency.bounds_contributions,
        Exclusion.TOO_MANY_ROWS: adjacency.unbounded,
        **dict.fromkeys(_ALWAYS, True),
        Exclusion.OTHER_FITS: search,
    }
    return [exclusion.value for exclusion, applies in excluded.items() if applies]


def step_rules(step: StepRecord, domain: Domain, distance: Distance, where: str) -> Iterator[str]:
    """Rules for one stage, given domain and distance at its input."""
    found = lookup(step.formula, "stability")
    yield from _same_identity(step, found, where)
    if found.way != step.way:
        yield f"{where}: this formula is not that of this way."
    if not found.takes_gaps(domain):
        yield f"{where}: rows may have gaps here."
    for condition in step.conditions:
        unit = lookup(condition.formula, "margin")(domain, distance)
        if not math.isclose(unit, condition.unit, rel_tol=1e-9):
            yield f"{where}.conditions: a unit of margin is {unit!r} here."
        if condition != restated(condition, domain, step.parameters):
            yield f"{where}.conditions: another statement follows from the parameters."
    needed = found.assumes(domain, **step.parameters)
    if sorted(condition.formula for condition in step.conditions) != sorted(needed):
        yield f"{where}.conditions: the formula assumes {sorted(needed) or 'nothing'}."


def restated(condition: ConditionRecord, domain: Domain, parameters: Mapping[str, Any]) -> ConditionRecord:
    """A condition as it follows from the parameters of its step."""
    statement = lookup(condition.formula, "margin").statement
    return condition if statement is None else replace(condition, statement=statement(domain, **parameters))


def broken_rules(c: Record, points: list[tuple[Domain, Distance]], end: Domain) -> Iterator[str]:
    """Rules for the document, given domain and distance at the input of every step, and the last domain."""
    names = [step.name for step in c.steps]
    mechanism = c.mechanism
    if len({*names, *([mechanism.name] if mechanism else [])}) != len(names) + bool(mechanism):
        yield "steps: names are not unique."
        return
    if c.adjacency != stated(c.neighbours):
        yield "adjacency: the bounds hold for another one."
    if list(c.not_covered) != not_covered(c.invalid, c.neighbours, search=c.search is not None):
        yield "not_covered: something is not said."
    if c.delta * Domain.from_dict(c.entrance.domain).n >= 1:
        yield "delta: it is not below 1/n, so publishing one whole row would satisfy it."
    yield from _facts(c)
    yield from part_rules(c, points, end)
    yield from _gate(c, names)
    if mechanism is None and any(step.way == "exact" and lookup(step.formula, "stability").fitted for step in c.steps):
        yield "steps: a released map needs released statistics."
    yield from released_rules(c)
    yield from _status(c)


def part_rules(c: Record, points: list[tuple[Domain, Distance]], end: Domain) -> Iterator[str]:
    """Rules for the releases and the last step, given what holds at the input of every step, and the last domain."""
    names = [step.name for step in c.steps]
    for i, release in enumerate(c.releases):
        yield from _release(c, release, points[release.at][0], names, f"releases[{i}]")
    yield from _shares(c)
    yield from _served(c)
    if c.mechanism is not None:
        yield from _answers(c.mechanism, end)
        yield from _behind(c.mechanism, c.steps[-1] if c.steps else None)


def _answers(mechanism: MechanismRecord, end: Domain) -> Iterator[str]:
    found = _of_mechanism(mechanism)
    yield from _same_identity(mechanism, found, "mechanism")
    if found.shape is not None:
        size, bound = found.shape(end, **mechanism.parameters)
        if size != mechanism.size or not math.isclose(bound, mechanism.bound, rel_tol=1e-9):
            yield "mechanism: another size or bound follows."
    once = 1 if mechanism.mu is None else mechanism.steps  # Gaussian noise is charged for every answer
    if (once if found.steps is None else found.steps(end, **mechanism.parameters)) != mechanism.steps:
        yield "mechanism.steps: another number of answers follows."
    if end.missing_rows and not found.gaps:
        yield "mechanism: rows may have gaps here."


def _behind(mechanism: MechanismRecord, last: StepRecord | None) -> Iterator[str]:
    """What a mechanism assumes of the rows, the stage in front of it says, with the same parameters."""
    needed = _of_mechanism(mechanism).behind
    if not needed:
        return
    said = last.parameters if last is not None and last.formula == needed else {}
    shared = said.keys() & mechanism.parameters.keys()
    if not shared or any(said[name] != mechanism.parameters[name] for name in shared):
        yield "mechanism: nothing in front of it says what it assumes of the rows."


def _of_mechanism(mechanism: MechanismRecord) -> Answer:
    """Its sensitivity if it is Gaussian, else its privacy map."""
    return lookup(mechanism.formula, "privacy" if mechanism.mu is None else "mechanism")


def _same_identity(part: StepRecord | MechanismRecord, found: Formula, where: str) -> Iterator[str]:
    if found.page != part.page:
        yield f"{where}.page: the formula is proved on another page."
    if not found.is_of(part.class_):
        yield f"{where}.class: this formula is not that of {part.class_}."


def _facts(c: Record) -> Iterator[str]:
    domain = Domain.from_dict(c.entrance.domain)
    for fact in c.facts:
        shown = fact.value
        if fact.name in ("n_rows", "n_features", "rows_per_unit") and shown != str(getattr(domain, fact.name)):
            yield f"facts: {fact.name} is another one in the derivation."
        if fact.name == "adjacency" and (shown != domain.adjacency.words or domain.adjacency.bounded):
            yield "facts: adjacency is another one in the derivation."
        if fact.name == "gaps" and (shown == "none") != (domain.max_missing == 0):
            yield "facts: gaps are declared otherwise in the derivation."


def _release(c: Record, release: ReleaseRecord, domain: Domain, names: list[str], where: str) -> Iterator[str]:
    """A release is taken where its first stage stands, and can be carried to the others."""
    steps, statistic = c.steps, STATISTIC_FORMS.get(release.statistic)
    if statistic is None or statistic.formula != release.formula:
        yield f"{where}: no such statistic."
        return
    if release.page != lookup(statistic.formula, "release").page:
        yield f"{where}.page: the formula is proved on another page."
    size, bound = statistic.size(domain, release.parameters), statistic.bound(domain)
    if size != release.size or not math.isclose(bound, release.bound):
        yield f"{where}: another size or bound follows."
    positions = [names.index(name) for name in release.serves]
    if positions != sorted(set(positions)) or positions[0] != release.at:
        yield f"{where}: it is not taken where its first stage stands."
    between = ((lookup(step.formula, "stability"), step) for step in steps[release.at : positions[-1]])
    if not all(formula.affine(**step.parameters) for formula, step in between):
        yield f"{where}: it cannot be carried to all stages that it serves."
    fits = any(steps[position].way == "noisy" for position in positions)
    if fits != (release.purpose == "fit"):
        yield f"{where}: its purpose is another."


def _shares(c: Record) -> Iterator[str]:
    """Shares of altered rows are of properties that are known here, each once."""
    own = c.diagnostics
    if own is None:
        return
    if c.withheld is not None:
        yield "withheld: there are shares of altered rows."
    if own.page != lookup(own.formula, "release").page or own.formula != (PURE_SHARES if own.mu is None else SHARES):
        yield "diagnostics: the formula is another, or proved on another page."
    if own.parameters != share_parameters([one.kind for one in own.shares]) or own.size != len(own.shares):
        yield "diagnostics: another number of shares follows."
    if own.bound != Domain.from_dict(c.entrance.domain).n:
        yield "diagnostics: another bound follows."
    if len({(share.kind, share.column) for share in own.shares}) != own.size:
        yield "diagnostics: a share is there twice."
    if not {share.kind for share in own.shares} <= set(KINDS) or not all(of_a_column(c, one) for one in own.shares):
        yield "diagnostics: no such share."
    if predicted := labels_predicted(own):
        start = Distance.from_dict(c.entrance.distance)
        end = Distance.from_dict(c.steps[-1].distance) if c.steps else start
        apart = predicted_apart(start, Domain.from_dict(c.domains[-1]), end)
        if c.conditions or c.mechanism is None or not apart:
            yield "diagnostics: more rows than those that differ may be predicted otherwise."
        if not predicted <= {*class_names(Domain.from_dict(c.entrance.domain))}:
            yield "diagnostics: predictions of a class that is not declared, or is under another name."


def _served(c: Record) -> Iterator[str]:
    """Every stage that is fitted from a release, or predicts once it is released, has exactly one."""
    predicts = c.mechanism is not None and _of_mechanism(c.mechanism).predicts
    for i, step in enumerate(c.steps):
        fitting = lookup(step.formula, "stability").releases
        serving = [release.statistic for release in c.releases if step.name in release.serves]
        needed = step.way == "noisy" or (predicts and step.way == "exact" and bool(fitting))
        if len(serving) != int(needed) or not set(serving) <= set(fitting):
            yield f"steps[{i}]: what is released is not what it is fitted from or predicts with."
        for release in c.releases:
            shared = release.parameters.keys() & step.parameters.keys()
            if step.name in release.serves and any(release.parameters[k] != step.parameters[k] for k in shared):
                yield f"steps[{i}]: its release has other parameters."


def _gate(c: Record, names: list[str]) -> Iterator[str]:
    gate, conditional = c.gate, c.conditional
    if any(k.tested != (gate is not None) for k in c.conditions):
        yield "steps: a condition is tested where there is a gate, and nowhere else."
    if gate is None:
        return
    if gate.page != "gate":
        yield "gate.page: it is proved on another page."
    if not conditional:
        yield "gate: there is nothing to test."
        return
    for i, release in enumerate(c.releases):
        first = min(names.index(name) for name in release.serves)
        if release.purpose == "fit" and first < conditional[-1]:
            if gate.rule != "sum":
                yield "gate.rule: a condition looks at rows that a release has shaped, so deltas add."
            if release.at > conditional[0]:
                yield f"releases[{i}]: a condition rests on a release that rests on a condition."


def released_rules(c: Record) -> Iterator[str]:
    """The arrays that left are those of the releases and the mechanism."""
    expected: dict[str, tuple[int, ...]] = {f"{c.steps[r.at].name}.{r.statistic}": (r.size,) for r in c.releases}
    listed = dict(c.released.names)
    m = c.mechanism
    if m is not None:
        own = [name for name in listed if name.startswith(f"{m.name}.")]
        arrays = _of_mechanism(m).arrays
        if arrays is None:
            expected |= dict.fromkeys(own[:1], (m.size,))
        else:
            end = Domain.from_dict(c.domains[-1])
            made = arrays(end, m.steps, m.size, **m.parameters)
            expected |= {f"{m.name}.{name}": tuple(shape) for name, shape in made.items()}
        if not own:
            yield "released.names: the mechanism's release is not listed."
    if listed != expected:
        yield "released.names: other arrays follow."
    left, single = c.released.share_left, c.released.single_class
    if left is not None and not (0 <= left < HALF and deleting(c)):
        yield "released.share_left: it is a share below a half, where a step deletes rows."
    private = any(fact.origin == PRIVATE_ORIGIN for fact in c.facts)
    if single is not None and (m is None or private or single not in labels_of(c)):
        yield "released.single_class: no model predicts a public class."
    if c.released.no_slope is not None and (m is None or labels_of(c) or not c.released.no_slope):
        yield "released.no_slope: no regression has coefficients."
    counted = by_counts(c)
    if bool(counted) != (m is not None and m.formula.endswith(COUNTED)):
        yield "facts: what rows are counted by score for is said otherwise."
    wanted = counted[THRESHOLD].share_to_hold if THRESHOLD in counted else 0.0
    if (most := c.released.unheld) is not None and not (0 <= most < wanted or (THRESHOLD in counted and most == 0)):
        yield "released.unheld: no threshold is to hold a share."
    empty, columns = c.released.no_range, {name for release in c.releases for name in ranged(c, release)}
    if empty is not None and not (empty and set(empty) <= columns):
        yield "released.no_range: neither ranges nor categories of these columns were released."
    coded = {name for r in c.releases if r.statistic.partition(AT)[0] == "categories" for name in ranged(c, r)}
    others, named = c.released.others, coded - {*(empty or ())}
    if others is not None and not (others and others.keys() <= named and all(TENTH < s <= 1 for s in others.values())):
        yield "released.others: no categories of these columns were released, or they hold nearly all rows."


def _status(c: Record) -> Iterator[str]:
    assumed = any(not k.tested for k in c.conditions)
    private = any(fact.origin == PRIVATE_ORIGIN for fact in c.facts)
    relies = _of_mechanism(c.mechanism).assumed(c.mechanism.parameters) if c.mechanism is not None else ""
    if relies and not any(relies in reason for reason in c.reasons):
        yield "reasons: what is taken on somebody else's word is not said."
    if (assumed or private or relies) and c.status == "UNCONDITIONAL":
        yield "status: something is assumed, so it is not unconditional."
    if (c.status == "UNCONDITIONAL") != (not c.reasons):
        yield "status: UNCONDITIONAL has no reasons, and any other has."


def search_rules(c: Record, search: SearchRecord, last: PrivacyLoss, draws: int) -> Iterator[str]:
    """Compose a search again: ``docs/theory/search.md``.

    Its certificate keeps the derivation of its last fit, which costs ``last`` and draws ``draws`` numbers, with the
    total of everything. What the other fits cost is recorded and composed; their own derivations are not in it.
    """
    total, fits, refits, selection = c.total, search.fits, search.refits, search.selection
    lists = (fits, refits, search.parameters, search.outcomes)
    best = search.best_index
    if {len(one) for one in lists} != {selection.candidates} or best >= len(fits):
        yield "search: there are not as many fits as candidates."
        return
    if c.part_of is not None or last.parts or search.outcomes[best] != "released":
        yield "search: its last fit is none that a search makes."
        return
    if selection.rows_per_unit != c.rows_per_unit or selection.rows >= Domain.from_dict(c.entrance.domain).n:
        yield "search.selection: it looked at other rows."
    counts = (selection.candidates,) if selection.temperature is None else (0, 1)  # chosen by scores, or not
    if selection.scored not in counts or (selection.noise_scale is not None) != (selection.scored > 0):
        yield "search.selection: other scores follow."
    chosen, lost = refits[best], last.failure + (1 - last.failure) * last.gate
    if not (_close(chosen.mu, last.mu) and _close(chosen.failure, lost)):
        yield f"search.refits[{best}]: the last fit costs something else."
    if chosen.variation < draws * TOTAL_VARIATION_PER_DRAW * (1 - _CLOSE):
        yield f"search.refits[{best}]: the noise sampler needs another part of delta."
    sides = [[PrivacyLoss(fit.mu, fit.failure) for fit in side] for side in (fits, refits)]
    chose = selection_loss(
        selection.rows, selection.rows_per_unit, selection.temperature, selection.scored, selection.noise_scale
    )
    spent = search_loss(sides[0], chose, sides[1], apart=c.neighbours.one_row)
    variations = [[fit.variation for fit in side] for side in (fits, refits)]
    allowance = search_allowance(c.epsilon, selection.scored, *variations)
    for name, recorded, follows in (
        ("mu", total.mu, spent.mu),
        ("failure", total.failure, spent.failure),
        ("allowance", total.allowance, allowance),
    ):
        if not _close(recorded, follows):
            yield f"total.{name}: {recorded!r} is recorded, {follows!r} follows."
    if total.parts:
        yield "total.parts: a search composes Gaussian losses only."
    room = c.delta - total.allowance
    if not (room > 0 and spent.epsilon(room) <= c.epsilon * (1 + _CLOSE)):
        yield "epsilon: the search costs more than (epsilon, delta)."


def _close(recorded: float, follows: float) -> bool:
    return math.isclose(recorded, follows, rel_tol=_CLOSE, abs_tol=1e-300)


def refuse_unsafe(certificate: Record, *, conditional: bool) -> None:
    """Refuse what was seeded, names labels read from private data, or rests on what nobody said to know."""
    if certificate.status == "SEEDED":
        raise ExportError("the noise came from a seed, so it protects no one.", fix="fit with random_state=None.")
    if any(fact.origin == PRIVATE_ORIGIN for fact in certificate.facts):
        what = "the classes were read from y, so what leaves would name private labels."
        raise ExportError(what, fix="declare classes=(...).")
    if certificate.status == "CONDITIONAL" and not conditional:
        what = f"the certificate is CONDITIONAL: {'; '.join(certificate.reasons)}."
        raise ExportError(what, fix="gate='auto', or conditional=True if the recipient shall rely on that.")
