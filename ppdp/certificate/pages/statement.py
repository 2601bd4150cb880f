"""One thing that is said of a certificate, of whatever form, and the words that need an explanation.

Their source is ``words.json``: ``docs/reference/glossary.md`` has the same sentences, and a test says where it has not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from ppdp.certificate.canonical import shipped

WORDS = shipped("ppdp.certificate.pages", "words.json")
GLOSSARY: Mapping[str, str] = WORDS["glossary"]
WAYS: Mapping[str, str] = WORDS["ways"]
TERMS: Mapping[str, str] = WORDS["terms"]
"""Names of statistics, parameters and changes of rows, explained where a table has them."""


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
    """A sentence, or a part of one."""

    topic: Topic
    words: str  # as text
    short: str = ""  # where there is little room; empty if it is left out there
    plain: str = ""  # what the words of a document mean, if they name parameters
    consequence: str = ""  # a second sentence: what follows if the first is false
    name: str = ""  # of what the issuer states

    @property
    def text(self) -> str:
        """All of it but the short form."""
        return f"{self.words} {self.consequence}".rstrip()


def terms_in(words: str) -> Sequence[tuple[str, str]]:
    """The terms that stand in these words, and in the sentences that explain those, with their sentences.

    Examples
    --------
    >>> [term for term, _ in terms_in("The gate passed.")]
    ['gate', 'row']
    """
    found: dict[str, str] = {}
    while more := {term: said for term, said in GLOSSARY.items() if term not in found and _stands(term, words)}:
        found |= more
        words = " ".join(more.values())
    return [(term, said) for term, said in GLOSSARY.items() if term in found]


def _stands(term: str, words: str) -> bool:
    """Whether a term stands there, at the beginning of a sentence as well."""
    first = f"[{term[0]}{term[0].upper()}]"
    return re.search(rf"(?<!\w){first}{re.escape(term[1:])}", words) is not None
