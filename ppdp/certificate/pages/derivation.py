"""What left with noise, and how far apart neighbouring datasets are at every point, as people are shown it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ppdp.bounds import FORMULAS
from ppdp.certificate.record import (
    Diagnostics,
    EntranceRecord,
    GateRecord,
    MechanismRecord,
    Record,
    ReleaseRecord,
    StepRecord,
)
from ppdp.core.distance import Distance
from ppdp.core.figures import figure
from ppdp.core.formula import GAUSSIAN, Answer, of_group
from ppdp.privacy.gate import GATE_KINDS

MODELS = ("learning", "lora", "diffprivlib")  # families of formulas of last steps that predict
ALTERED = "diagnostics"
FEW = 20  # above this range a logarithmic scale is easier to read


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
    def changes(self) -> tuple[str, ...]:
        """The ways in which rows differ, of those that have a name."""
        d = self.distance
        return tuple(name for name, rows in (("replaced", True), ("toggled", d.toggled), ("moved", d.moved)) if rows)

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

    @property
    def family(self) -> str:
        """The first word of its law: what is said in brackets or behind it is left out."""
        return self.law.split(" ")[0].rstrip(",")


def noises_of(c: Record) -> Iterator[NoisyRelease]:
    """Everything that left with noise."""
    for one in c.releases:
        served = ", ".join(one.serves)
        note, phrase = f"for {served}, {one.purpose}", f"{of_group(one.statistic)} for {served}"
        if one.threshold is not None and one.failure is not None:
            note += (
                f"; above {figure(one.threshold)}, exceeded unduly with probability {figure(one.failure, upward=True)}"
            )
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


def only_the_last(mechanism: MechanismRecord) -> bool:
    """Whether of many answers one iterate is released."""
    known = FORMULAS.get(mechanism.formula)
    return isinstance(known, Answer) and known.hides_iterates


def points_of(content: Record) -> tuple[Point, ...]:
    """Every point of a certificate's document, the entrance first."""
    places: list[EntranceRecord | StepRecord] = [content.entrance, *content.steps]
    names = ["", *(step.name for step in content.steps)]
    return tuple(
        Point(name, Distance.from_dict(at.distance), at.domain.get("row_norm")) for name, at in zip(names, places)
    )


def spreads(levels: list[float]) -> bool:
    """Whether these levels need a logarithmic scale."""
    positive = [level for level in levels if level > 0]
    return bool(positive) and max(positive) > FEW * min(positive)


def is_model(mechanism: MechanismRecord) -> bool:
    """Whether the last step predicts."""
    return mechanism.formula.partition(".")[0] in MODELS


def gate_in_words(gate: GateRecord) -> str:
    """What a gate that passed tells."""
    return "which rung passed" if gate.ladder else "one bit: passed"
