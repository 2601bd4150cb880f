"""One thing that is said of a certificate, of whatever form, and its words as print has them and explains them.

Their source is ``words.json``: ``docs/reference/glossary.md`` has the same sentences, and a test says where it has not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ppdp.certificate.canonical import shipped
from ppdp.core.figures import figure

WORDS = shipped("ppdp.certificate.pages", "words.json")
GLOSSARY: Mapping[str, str] = WORDS["glossary"]
WAYS: Mapping[str, str] = WORDS["ways"]
TERMS: Mapping[str, str] = WORDS["terms"]  # of statistics, parameters and changes of rows, where a table has them

_QUOTED = re.compile(r"(?<![\w=])'([^']+)'(?!\w)")
_APOSTROPHE = re.compile(r"(?<=\w)'(?=\w)")
_MINUS = re.compile(r"(?<![\w-])-(?=\d)")
_TOGETHER = re.compile(
    r" (?==[ \u00a0])|(?<=\d) (?=%)|(?<=[εδμσ] =) |(?<=[εδμσ]\u00a0=) |(?<=\d) (?=to [-−]?\d)|(?<=\d to) (?=[-−]?\d)"
)
_TEXT = re.compile(r"<(style|title|desc|code)\b.*?</\1>|>[^<]+", re.DOTALL)
_MARKS = re.compile(r"[\\`*_\[\]<>|&#~$]|^[-+=]")
_NUMBERED = re.compile(r"^(\d+)([.)])(?=\s|$)")
_LINKED = re.compile(r"@|/(?=/)|www(?=\.)|:(?=[\w+-]+:)", re.IGNORECASE)
_SPACES = re.compile(r"[^\S\u00a0\u202f]+")  # but for those within a number
_JOINER = "\u2060"


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
    """The terms that stand in these words, and in the sentences that explain those, with their sentences."""
    starts = {term: rf"(?<!\w)[{term[0]}{term[0].upper()}]{re.escape(term[1:])}" for term in GLOSSARY}
    found: set[str] = set()
    while more := {term for term, start in starts.items() if term not in found and re.search(start, words)}:
        found |= more
        words = " ".join(GLOSSARY[term] for term in more)
    return [(term, said) for term, said in GLOSSARY.items() if term in found]


def up(value: float) -> str:
    """A figure that is never smaller than its value."""
    return figure(value, upward=True)


def sentences(parts: Iterable[str]) -> str:
    """Each of these, but for empty ones, as a sentence."""
    return " ".join(part.rstrip(". ") + "." for part in parts if part)


def typeset(words: str) -> str:
    """Quotation marks and apostrophes as print has them."""
    return _APOSTROPHE.sub("’", _QUOTED.sub(r"“\1”", words))


def minus(words: str) -> str:
    """Minus signs as print has them."""
    return _MINUS.sub("−", words)


def together(html: str) -> str:
    """The text between tags so that no line ends within ``ε = 1`` or ``-1 to 1``."""
    return _TEXT.sub(lambda found: found[0] if found[1] else _TOGETHER.sub("\u00a0", found[0]), html)


def markdown_text(value: str) -> str:
    """Text that no Markdown reader takes for markup, in one line.

    Readers look for addresses, names and emoji after escapes and entities are resolved, so only a character in between
    stops them: a word joiner, which has no width.
    """
    words = _LINKED.sub(rf"\g<0>{_JOINER}", " ".join(filter(None, _SPACES.split(value))))
    words = _NUMBERED.sub(r"\1\\\2", _MARKS.sub(r"\\\g<0>", words))
    return words.replace(_JOINER, f"&#{ord(_JOINER)};")


def printable(value: Any) -> Any:
    """The document with every invisible character shown as U+FFFD: none may reorder or hide what is read."""
    if isinstance(value, str):
        return "".join(c if c.isprintable() else "\ufffd" for c in value)
    if isinstance(value, dict):
        return {printable(k): printable(v) for k, v in value.items()}
    return [printable(v) for v in value] if isinstance(value, (list, tuple)) else value
