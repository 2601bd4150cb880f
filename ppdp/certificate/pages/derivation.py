"""What left with noise and what that does to results; how far apart neighbouring datasets are at every point."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ppdp.bounds import FORMULAS
from ppdp.certificate.altered import predicted_in_short
from ppdp.certificate.record import Diagnostics, GateRecord, MechanismRecord, Record, ReleaseRecord
from ppdp.core.distance import Distance
from ppdp.core.figures import figure
from ppdp.core.formula import AT, GAUSSIAN, LAPLACE, Answer, of_group
from ppdp.privacy.gate import GATE_KINDS

MODELS = ("learning", "lora", "diffprivlib")  # families of formulas of last steps that predict
ALTERED = "diagnostics"
FEW = 20  # above this range a logarithmic scale is easier to read
TENTH = 0.1
TICK = 0.6  # of a bar of length 100
PLAIN = ("query", "laplace", "release")  # families of formulas whose numbers leave as they are
REPORT = "query.report"  # whose parts have scales of their own
_STANDARD_ERROR = {GAUSSIAN: 1.0, LAPLACE: math.sqrt(2)}  # of noise of scale 1


# statistics that are more than their names
MEASURED = {
    **dict.fromkeys(("squares", "diagonal"), "means of values and of squares"),
    "squares-in-parts": "histograms, means of values and of squares",
    "matrix": "means and mean products",
    **dict.fromkeys(("moment", "complete-matrix"), "mean products"),
    "trimmed-means": "trimmed means",
    "modes": "counts of categories",
    "clusters": "weights of cells and sums around centres",
    "label-means": "counts of labels by category",
    **dict.fromkeys(("label-moments", "light-label-moments"), "counts of labels and sums by label"),
    **dict.fromkeys(("quantile-choices", "quantile-pairs", "quantile-triples"), "quantiles"),
}


@dataclass(frozen=True, slots=True)
class Point:
    """Two neighbouring datasets after one stage."""

    name: str  # of the stage just passed; empty at the entrance
    distance: Distance  # how far apart they can be
    row_norm: float | None  # public bound on the norm of a row here

    @property
    def unmatched(self) -> float:
        """What replaced and toggled rows make up, in replaced rows."""
        return self.distance.mass / 2

    @property
    def rows(self) -> float:
        """Most that a sum of the rows can change, in units of what one replaced row can change it.

        ``(R mass + min(total, 2 R moved)) / 2R`` for rows of norm R: Theorem E of ``docs/theory/distance.md``.
        """
        if self.distance.total == 0:
            return self.unmatched
        if self.row_norm is None:  # a length without a unit: each row counts as replaced, which is always true
            return self.unmatched + self.distance.moved
        return self.distance.shift(self.row_norm, 1.0) / (2 * self.row_norm)

    @property
    def labels(self) -> tuple[str, ...]:
        r"""What differs, in words: ``("1 replaced", "99 moved by ≤\u00a00.02")``."""
        d = self.distance
        toggled = (f"{d.toggled:g} toggled",) if d.toggled else ()
        moved = (f"{d.moved:g} moved by ≤\u00a0{figure(d.radius, 3, upward=True)}",) if d.moved else ()
        return f"{d.replaced:g} replaced", *toggled, *moved


@dataclass(frozen=True, slots=True)
class NoisyRelease:
    """One of the things that left with noise."""

    name: str
    note: str  # what else there is to say of it
    phrase: str  # its name in a sentence
    times: int  # answers that count, each of as many numbers
    size: int
    sensitivity: float | None
    law: str
    part: ReleaseRecord | Diagnostics | GateRecord | MechanismRecord


def measured(statistic: str) -> str:
    """What was measured, in words, and of which columns."""
    inner, at, group = statistic.partition(AT)
    return of_group(f"{MEASURED.get(inner, inner)}{at}{group}")


def noises_of(c: Record) -> Iterator[NoisyRelease]:
    """Everything that left with noise."""
    for one in c.releases:
        served = ", ".join(one.serves)
        note, phrase = f"for {served}, {one.purpose}", f"{measured(one.statistic)} for {served}"
        if one.threshold is not None and one.failure is not None:
            unduly = f"exceeded unduly with probability {figure(one.failure, upward=True)}"
            note += f"; above {figure(one.threshold)}, {unduly}"
        yield NoisyRelease(of_group(one.statistic), note, phrase, 1, one.size, one.sensitivity, law_of(one), one)
    if c.diagnostics is not None:
        d = c.diagnostics
        yield NoisyRelease(ALTERED, "of all rows, as they came in", ALTERED, 1, d.size, d.sensitivity, law_of(d), d)
    if c.gate is not None:
        yield NoisyRelease("gate", gate_in_words(c.gate), "the gate's answer", 1, 1, 1.0, law_of(c.gate), c.gate)
    m = c.mechanism
    if m is not None:
        times = 1 if only_the_last(m) else m.steps
        yield NoisyRelease(m.name, m.class_, m.name, times, m.size, m.sensitivity, law_of(m), m)


def law_of(one: ReleaseRecord | Diagnostics | GateRecord | MechanismRecord) -> str:
    """Law of its noise: "Gaussian" or another; one that is not known here gets no name.

    What costs a mu is Gaussian, but for choices that are released: `verify` computes it so. Of anything else only its
    formula knows.
    """
    if one.mu is not None and not isinstance(one, ReleaseRecord):
        return GAUSSIAN
    known = GATE_KINDS.get(one.kind) if isinstance(one, GateRecord) else FORMULAS.get(one.formula)
    return getattr(known, "law", "") or "a law unknown to this ppdp"


def answer_of(m: MechanismRecord | None) -> Answer | None:
    """What the formula of a last step knows of its answer; None if it is of another kind, or unknown."""
    known = None if m is None else FORMULAS.get(m.formula)
    return known if isinstance(known, Answer) else None


def only_the_last(m: MechanismRecord | None) -> bool:
    """Whether of many answers one iterate is released."""
    answer = answer_of(m)
    return answer is not None and answer.hides_iterates


def points_of(content: Record) -> tuple[Point, ...]:
    """Every point of a certificate's document, the entrance first."""
    entrance = ("", content.entrance.distance, content.entrance.domain)
    places = [entrance, *((step.name, step.distance, step.domain) for step in content.steps)]
    return tuple(Point(name, Distance.from_dict(apart), domain.get("row_norm")) for name, apart, domain in places)


def spreads(levels: list[float]) -> bool:
    """Whether these levels need a logarithmic scale."""
    positive = [level for level in levels if level > 0]
    return bool(positive) and max(positive) > FEW * min(positive)


def distance_bars(points: Sequence[Point]) -> list[list[tuple[str, float, float]]]:
    """One bar for each point: unmatched rows, then rows that moved, by name and ends; a tick where the last ended."""
    at = _scale([level for point in points for level in (point.unmatched, point.rows)])
    ends = [at(point.rows) for point in points]
    return [
        [
            ("unmatched", 0.0, at(point.unmatched)),
            ("moved", at(point.unmatched), end),
            ("before", before - TICK / 2, before + TICK / 2 if before else 0.0),
        ]
        for point, end, before in zip(points, ends, [0.0, *ends])
    ]


def _scale(levels: list[float]) -> Callable[[float], float]:
    """Position on a bar of length 100; logarithmic where the levels spread far."""
    positive = [level for level in levels if level > 0] or [1.0]
    low, top = min(positive), max(positive)
    if spreads(levels):
        return lambda level: 96 * math.log(2 * level / low) / math.log(2 * top / low) if 2 * level > low else 0.0
    full = max(top, 4 * low)  # a distance that never grows is to look short
    return lambda level: 96 * level / full


def is_model(mechanism: MechanismRecord) -> bool:
    """Whether the last step predicts."""
    return mechanism.formula.partition(".")[0] in MODELS


def gate_in_words(gate: GateRecord) -> str:
    """What a gate that passed tells."""
    return "which rung passed" if gate.ladder else "one bit: passed"


def expected_error(c: Record, *, short: bool = False) -> str:
    """How far the noise moves each number (of a model only its accuracy if ``short``), and how many were released."""
    noises = list(noises_of(c))
    shares: dict[str, list[str]] = {}
    for noise in noises:
        if share := _relative_error(noise):
            what, _, of = noise.phrase.partition(" for ") if noise.part in c.releases else (noise.phrase, "", "")
            shares.setdefault(what, []).append(f"for {of} {share}" if of else share)
    named = ", ".join(f"{what} {', '.join(of_it)}" for what, of_it in shares.items())
    m, left = c.mechanism, sum(noise.times * noise.size for noise in noises)
    beside = short and m is not None and is_model(m)
    told = [f"noise (standard error), as a share of the largest possible value: {named}"] * bool(shares and not beside)
    if m is not None and (error := _of_a_count(m)) is not None:
        told.append(f"each count of '{m.name}' errs by {figure(error, 2)} rows")
    if m is not None and is_model(m):
        accuracy, right = None if c.issued is None else c.issued.accuracy, predicted_in_short(c) if short else None
        ask = "of other people: ask" if right else "ask how accurate the model is"
        told += [right] if right else []
        told.append(f"accuracy on other people, as stated: {accuracy}" if accuracy else ask)
    n = f"{'at most ' if c.neighbours.unbounded else ''}{figure(c.entrance.domain['n_rows'])} rows"
    return "; ".join([*told, f"results made of {figure(left)} noisy number{'s' * (left != 1)} from {n}"])


def loses_most(c: Record) -> str:
    """For whom the result is worst."""
    m, few = c.mechanism, ""
    if m is not None and (error := _of_a_count(m)) is not None:
        few = f" (a count of fewer than {figure(math.ceil(error / TENTH))} people errs by more than a tenth)"
    clipped = "people with values that are clipped or of no listed category"
    return f"small groups, rare classes and categories{few}; {clipped}"


def _relative_error(noise: NoisyRelease) -> str:
    """Standard error of each number beside the largest that it can be; empty where these are no results as they are."""
    part, spread = noise.part, _STANDARD_ERROR.get(noise.law)
    if spread is None or not isinstance(part, (ReleaseRecord, MechanismRecord)):
        return ""
    plain = isinstance(part, ReleaseRecord) or (part.formula.partition(".")[0] in PLAIN and _of_a_count(part) is None)
    if not plain or part.formula == REPORT:
        return ""
    share = 100 * spread * part.noise_scale / part.bound
    return f"{figure(share, 2 if share < 100 else 4)}\u00a0%"


def _of_a_count(m: MechanismRecord) -> float | None:
    """Standard error of a count of rows, if it answers with counts."""
    answer = answer_of(m)
    rows = None if answer is None or answer.counts is None else answer.counts(**m.parameters)
    return None if rows is None else rows * m.noise_scale * _STANDARD_ERROR[getattr(answer, "law", "") or GAUSSIAN]
