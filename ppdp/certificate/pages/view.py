"""What all templates are given: the record of a certificate that holds, what is said of it, and its figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ppdp.certificate.issue_record import OF_THE_ISSUER
from ppdp.certificate.issue_statement import account_in_words
from ppdp.certificate.pages.derivation import NoisyRelease, Point, noises_of, points_of, spreads
from ppdp.certificate.pages.statement import Statement, Topic
from ppdp.certificate.pages.statements import around_the_claim, reservation, statements_of
from ppdp.certificate.pages.typography import printable, up
from ppdp.certificate.record import Record, read_as, written


@dataclass(frozen=True, slots=True)
class View:
    """What is said of a certificate that holds."""

    record: Record
    statements: tuple[Statement, ...]
    points: tuple[Point, ...]
    noises: tuple[NoisyRelease, ...]

    def texts(self, *topics: Topic) -> list[str]:
        """What is said on these topics."""
        return [statement.text for statement in self.statements if statement.topic in topics]

    def claim(self, pair: str) -> str:
        """The headline without the status."""
        before, after = around_the_claim(self.record)
        return f"{before}{pair}{after}"

    @property
    def issued(self) -> str | None:
        """Date and account, with symbols."""
        return account_in_words(self.record, symbols=True)

    @property
    def stated(self) -> dict[str, str]:
        """What the issuer states, by name, in short; empty where nothing is stated."""
        said = {s.name: s.short for s in self.statements if s.topic is Topic.STATED}
        return {name: said.get(name, "") for name in OF_THE_ISSUER}

    @property
    def context(self) -> dict[str, Any]:
        """What every template may use."""
        c = self.record
        return {
            "c": c,
            "Topic": Topic,
            "statements": self.statements,
            "texts": self.texts,
            "neighbours": c.neighbours,
            "phrases": c.neighbours.phrases,
            "claim_around": around_the_claim(c),
            "claim_in_text": self.claim(f"(ε, δ) = ({up(c.epsilon)}, {up(c.delta)})"),
            "reservation": reservation(c),
            "warnings": [f"Warning: {words}" for words in self.texts(Topic.WARNING)],
            "stated": self.stated,
            "responsible": self.stated["responsible"],
            "issued": self.issued,
            "noises": self.noises,
            "stages": list(zip(self.points, [None, *c.steps])),
            "logarithmic": spreads([point.rows for point in self.points]),
        }


def view_of(c: Record) -> View:
    """What is said of a certificate that holds."""
    return View(c, tuple(statements_of(c)), points_of(c), tuple(noises_of(c)))


def printable_view(c: Record) -> View:
    """The same of a certificate without invisible characters: for whatever people read."""
    return view_of(read_as(Record, printable(written(c))))
