"""What every form of a certificate says, made once: page, notebook, terminal, card and registry only lay it out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ppdp.bounds import FORMULAS
from ppdp.certificate.altered import alerts, altered_in_words
from ppdp.certificate.issued import account_in_words, left_out, said
from ppdp.certificate.pages import meaning, trust
from ppdp.certificate.pages.markup import printable
from ppdp.certificate.pages.tradeoff import guess_in_words
from ppdp.certificate.record import Diagnostics, Entrance, Gate, Mechanism, Record, Release, Step, read_as, written
from ppdp.core.adjacency import Adjacency
from ppdp.core.distance import Distance
from ppdp.core.figures import figure
from ppdp.core.formula import GAUSSIAN, Answer
from ppdp.privacy.gate import GATE_KINDS
from ppdp.privacy.losses import Part

ALTERED = "numbers of altered rows"
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
    def labels(self) -> tuple[str, ...]:
        r"""What differs, in words: ``("1 replaced", "99 moved by ≤\u00a00.02")``."""
        d = self.distance
        toggled = (f"{d.toggled:g} toggled",) if d.toggled else ()
        moved = (f"{d.moved:g} moved by ≤\u00a0{figure(d.radius, 3, upward=True)}",) if d.moved else ()
        return f"{d.replaced:g} replaced", *toggled, *moved


@dataclass(frozen=True, slots=True)
class Noise:
    """One of the things that left with noise."""

    name: str
    note: str  # what else there is to say of it
    phrase: str  # its name in a sentence
    times: int  # answers that count, each of as many numbers
    size: int
    sensitivity: float | None
    law: str
    one: Release | Diagnostics | Gate | Mechanism


@dataclass(frozen=True, slots=True)
class View:
    """What is said of a certificate that holds."""

    record: Record
    beside: Sequence[str]  # what the claim leaves out: it stands before all else
    before: str  # and after the claim (epsilon, delta) in the headline
    after: str
    meaning: str
    rests_on: Sequence[str]
    issued: str | None
    said: Sequence[tuple[str, str]]  # purpose and who is responsible, if the issuer says so
    neighbours: str
    protected: str
    proviso: str  # before every promise; empty for an unconditional one
    powers: Sequence[tuple[float, float]]  # false alarms of a test with what it detects at most
    guess: str  # the promise as how often an attacker chooses rightly
    promise: str
    facts: Sequence[tuple[str, str, str]]  # name, value, origin
    points: Sequence[Point]
    noises: Sequence[Noise]
    parts: Sequence[str]  # what costs something else than a mu
    warnings: Sequence[str]
    altered: str | None  # shares of altered rows
    covered: Sequence[str]
    not_covered: Sequence[tuple[str, str]]  # and in plain words where it names parameters

    def title(self, claim: str) -> str:
        """The headline without the status."""
        return f"{self.before}{claim}{self.after}"

    @property
    def fact_lines(self) -> list[str]:
        """Facts, each in one line."""
        return [f"{name} = {value} ({origin})" for name, value, origin in self.facts]


def printable_view(c: Record) -> View:
    """The same of a certificate without invisible characters: for whatever people read."""
    return view_of(read_as(Record, printable(written(c))))


def view_of(c: Record) -> View:
    """What is said of a certificate that holds."""
    (before, after), proviso = meaning.around_the_claim(c), meaning.reservation(c)
    return View(
        record=c,
        beside=left_out(c),
        before=before,
        after=after,
        meaning=meaning.status_in_words(c),
        rests_on=trust.rests_on(c),
        issued=account_in_words(c, symbols=True),
        said=said(c),
        neighbours=c.adjacency if c.neighbours == Adjacency.replace() else c.neighbours.words,  # of one row
        protected=meaning.protected_in_words(c),
        proviso=proviso,
        powers=[(alarm, meaning.detection_power(c, alarm)) for alarm in meaning.FALSE_ALARMS],
        guess=guess_in_words(c),
        promise=f"{proviso}a test for {c.neighbours.phrases.secret} detects at most {meaning.powers_in_words(c)}",
        facts=trust.shown_facts(c),
        points=points_of(c),
        noises=tuple(_noises(c)),
        warnings=[*c.warnings, *alerts(c)],
        altered=altered_in_words(c),
        parts=[Part.from_dict(part).words() for part in c.total.parts],
        covered=meaning.covered_in_words(c),
        not_covered=[
            (words, next((plainly for start, plainly in meaning.PLAINLY.items() if words.startswith(start)), ""))
            for words in c.not_covered
        ],
    )


def _noises(c: Record) -> Iterator[Noise]:
    for one in c.releases:
        served = ", ".join(one.serves)
        note, phrase = f"for {served}, {one.purpose}", f"{one.statistic} for {served}"
        if one.threshold is not None and one.failure is not None:
            note += (
                f"; above {figure(one.threshold)}, exceeded unduly with probability {figure(one.failure, upward=True)}"
            )
        yield Noise(one.statistic, note, phrase, 1, one.size, one.sensitivity, law_of(one), one)
    if c.diagnostics is not None:
        d = c.diagnostics
        yield Noise(ALTERED, "of all rows, as they came in", ALTERED, 1, d.size, d.sensitivity, law_of(d), d)
    if c.gate is not None:
        yield Noise("gate", meaning.told(c.gate), "the gate's answer", 1, 1, 1.0, law_of(c.gate), c.gate)
    m = c.mechanism
    if m is not None:
        times = 1 if only_the_last(m) else m.steps
        yield Noise(m.name, m.class_, m.name, times, m.size, m.sensitivity, law_of(m), m)


def law_of(one: Release | Diagnostics | Gate | Mechanism) -> str:
    """Law of its noise: "Gaussian" or another; one that is not known here gets no name.

    What costs a mu is Gaussian, but for choices that are released: `verify` computes it so. Of anything else only its
    formula knows.
    """
    if one.mu is not None and not isinstance(one, Release):
        return GAUSSIAN
    known = GATE_KINDS.get(one.kind) if isinstance(one, Gate) else FORMULAS.get(one.formula)
    return getattr(known, "law", "") or "a law unknown to this ppdp"


def only_the_last(mechanism: Mechanism) -> bool:
    """Whether of many answers one iterate is released."""
    known = FORMULAS.get(mechanism.formula)
    return isinstance(known, Answer) and known.hides_iterates


def points_of(content: Record) -> tuple[Point, ...]:
    """Every point of a certificate's document, the entrance first."""
    places: list[Entrance | Step] = [content.entrance, *content.steps]
    names = ["", *(step.name for step in content.steps)]
    return tuple(
        Point(name, Distance.from_dict(at.distance), at.domain.get("row_norm")) for name, at in zip(names, places)
    )


def spreads(levels: list[float]) -> bool:
    """Whether these levels need a logarithmic scale."""
    positive = [level for level in levels if level > 0]
    return bool(positive) and max(positive) > FEW * min(positive)
