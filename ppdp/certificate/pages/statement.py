"""One thing that is said of a certificate, of whatever form."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Topic(Enum):
    """What a statement is about, with the word that stands before it in text."""

    BESIDE = "beside"  # what the claim leaves out
    MEANING = ""
    ISSUED = "issued"
    STATED = "stated"  # by the issuer
    REASON = "because"
    RESTS_ON = "rests on"
    READ_OFF = "rests on "
    WARNING = "warning"
    USEFULNESS = "noise"
    LOSERS = "loses most"
    ALTERED = "diagnostics"
    DATA = "data"
    NEIGHBOURS = "adjacency"
    PROTECTED = "protects"
    PROMISE = "means"
    FACT = "fact"
    TRUST = "trusted"
    STAGE = "stage"
    TESTED = "  tested"
    ASSUMED = "  ASSUMED"
    GATE = "gate"
    RELEASED = "released"
    MECHANISM = "mechanism"
    TOTAL = "total"
    COST = "and"
    COVERED = "covered"
    NOT_COVERED = "not covered"
    CHECK = "check"
    DIGEST = "digest"


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence, or a part of one.

    Attributes
    ----------
    topic : Topic
        What it is about.
    words : str
        What is said, as text.
    short : str
        The same where there is little room; empty if it is left out there.
    plain : str
        What the words of a document mean, if they name parameters.
    consequence : str
        A second sentence: what follows if the first is false.
    name : str
        Of what the issuer states.
    """

    topic: Topic
    words: str
    short: str = ""
    plain: str = ""
    consequence: str = ""
    name: str = ""

    @property
    def text(self) -> str:
        """All of it but the short form."""
        return f"{self.words} {self.consequence}".rstrip()
