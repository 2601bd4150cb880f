"""What every form of a certificate says, made once: page, notebook, terminal, card and registry only lay it out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ppdp.certificate.issued import account_in_words, left_out
from ppdp.certificate.pages.losses import law_of, only_the_last, part_in_words
from ppdp.certificate.pages.meaning import (
    FALSE_ALARMS,
    covered_in_words,
    detection_power,
    powers_in_words,
    reservation,
    status_in_words,
    told,
)
from ppdp.certificate.pages.points import Point, points_of
from ppdp.certificate.pages.wording import (
    around_the_claim,
    besides,
    neighbours_in_words,
    protected_in_words,
    shown_facts,
)
from ppdp.certificate.record import Gate, Mechanism, Record, Release
from ppdp.certificate.replay.trust import rests_on

__all__ = ["Noise", "View", "view_of"]


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
    one: Release | Gate | Mechanism


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
    neighbours: str
    protected: str
    proviso: str  # before every promise; empty for an unconditional one
    powers: Sequence[tuple[float, float]]  # false alarms of a test with what it detects at most
    promise: str
    facts: Sequence[tuple[str, str, str]]  # name, value, origin
    points: Sequence[Point]
    noises: Sequence[Noise]
    parts: Sequence[str]  # what costs something else than a mu
    covered: Sequence[str]
    not_covered: Sequence[tuple[str, str]]  # and in plain words where it names parameters

    def title(self, claim: str) -> str:
        """The headline without the status."""
        return f"{self.before}{claim}{self.after}"

    @property
    def fact_lines(self) -> list[str]:
        """Facts, each in one line."""
        return [f"{name} = {value} ({origin})" for name, value, origin in self.facts]


def view_of(c: Record) -> View:
    """What is said of a certificate that holds."""
    before, after = around_the_claim(c)
    return View(
        record=c,
        beside=left_out(c),
        before=before,
        after=after,
        meaning=status_in_words(c),
        rests_on=rests_on(c),
        issued=account_in_words(c),
        neighbours=neighbours_in_words(c),
        protected=protected_in_words(c),
        proviso=reservation(c),
        powers=[(alarm, detection_power(c, alarm)) for alarm in FALSE_ALARMS],
        promise=f"{reservation(c)}a test for one person's rows detects at most {powers_in_words(c)}",
        facts=shown_facts(c),
        points=points_of(c),
        noises=tuple(_noises(c)),
        parts=[part_in_words(part) for part in c.total.parts],
        covered=covered_in_words(c),
        not_covered=[(words, besides(words)) for words in c.not_covered],
    )


def _noises(c: Record) -> Iterator[Noise]:
    for one in c.releases:
        served = ", ".join(one.serves)
        note, phrase = f"for {served}, {one.purpose}", f"{one.statistic} for {served}"
        yield Noise(one.statistic, note, phrase, 1, one.size, one.sensitivity, law_of(one), one)
    if c.gate is not None:
        yield Noise("gate", told(c.gate), "the gate's answer", 1, 1, 1.0, law_of(c.gate), c.gate)
    m = c.mechanism
    if m is not None:
        times = 1 if only_the_last(m) else m.steps
        yield Noise(m.name, m.class_, m.name, times, m.size, m.sensitivity, law_of(m), m)
