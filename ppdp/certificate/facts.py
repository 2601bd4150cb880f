"""The public facts of a certificate, typed: what each speaks of, who said it, and of which step.

A document keeps a fact as three texts (name, value, origin). They are read here, and nowhere else.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from enum import Enum, auto
from functools import lru_cache
from typing import Any

from ppdp.bounds.selection import BY_COUNTS
from ppdp.certificate.issuer import words
from ppdp.certificate.record import FactRecord, Record
from ppdp.core.checks import shown
from ppdp.core.declared import WORDS
from ppdp.exceptions import InvalidParameter

MOST_DIGITS = 6  # of the end of a range that is shown as it is
COLUMNS = "columns"
MIN_FILLED = "fewest observed entries of a column"
LIPSCHITZ = "Lipschitz constant"
MECHANISM = "mechanism"
OF_THE_TABLE = ("n_rows", "n_features", "feature_names", "rows_per_unit", "adjacency")
LIMITS: Mapping[str, str] = {
    "row_norm": "longest row",
    "entry_bound": "largest entry",
    "y_range": "range of the targets",
    "max_weight": "largest weight",
    "largest norm of a row": "longest row",
    "largest norm of a row that comes out": "longest row that comes out",
}
"""Names of limits to which values are clipped, but for ranges of columns, with what a page calls them."""

_NUMBER = r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
_RANGE = re.compile(r"range of (?P<out>what comes out in )?(?P<column>.+)", re.DOTALL)
_OF_A_COLUMN = re.compile(r"(?:range of what comes out in|[\w ]+? of) (?P<column>.+)", re.DOTALL)
_INTERVAL = re.compile(rf"({_NUMBER}) to ({_NUMBER})")
_TO_HOLD = re.compile(rf"\w+ of at least ({_NUMBER}){BY_COUNTS}")
_ITS_LIPSCHITZ_CONSTANT = re.compile("its Lipschitz constant is .+", re.DOTALL)


class Origin(Enum):
    """Who said a fact, or where it was found."""

    DECLARED = auto()  # whoever ran the fit
    SETTING = auto()  # the same, as a parameter of a step or as rungs of a ladder
    MODEL = auto()  # the same, as a parameter of the last step
    DEFAULT = auto()
    TABLE = auto()  # shape and names of the columns
    LABELS = auto()  # read off the private labels
    IMPUTER = auto()
    DERIVED = auto()  # follows from the steps
    RELEASED = auto()  # found by a noisy statistic
    OTHER = auto()  # somebody else; whatever is not known here


_ORIGINS = {
    re.compile(pattern, re.DOTALL): origin
    for pattern, origin in {
        r"declared, step (?P<step>.+)": Origin.SETTING,
        r"declared, (?:loosest|the last).*": Origin.SETTING,
        r"declared.*": Origin.DECLARED,
        r"parameter of the model(?P<note>.*)": Origin.MODEL,
        r"default(?:, step (?P<step>.+))?": Origin.DEFAULT,
        r"(?:shape|schema) of X": Origin.TABLE,
        r"read from y.*": Origin.LABELS,
        r"imputer (?P<step>.+)": Origin.IMPUTER,
        r"stage .+|not declared|no imputer in the steps.*|the columns that the first step names": Origin.DERIVED,
        r"released(?:, step (?P<step>.+))?": Origin.RELEASED,
    }.items()
}


class Trust(Enum):
    """What a fact asks a reader to take on trust."""

    NOTHING = auto()
    LIMIT = auto()  # to which values are clipped
    LABELS = auto()
    SETTING = auto()
    WORD = auto()  # of whoever said it


@dataclass(frozen=True, slots=True)
class FactSource:
    """Who said a fact."""

    origin: Origin
    step: str  # of which it is a parameter, in quotation marks; empty if of none
    note: str  # what is said of it besides, with its punctuation
    text: str  # as it stands in the document

    @property
    def declared(self) -> bool:
        """Whether whoever ran the fit said so."""
        return self.origin in (Origin.DECLARED, Origin.SETTING)


@dataclass(frozen=True, slots=True)
class PublicFact:
    """A public fact of a certificate."""

    name: str
    value: str
    source: FactSource
    trust: Trust  # what that asks of a reader
    column: str = ""  # of which it is the range, if it is one
    comes_out: bool = False  # whether that is the range of what comes out of a stage
    stated: str = ""  # where the user has it from; empty if nobody said so

    @property
    def is_lipschitz(self) -> bool:
        """Whether it says how far apart a function may put two rows."""
        return _ITS_LIPSCHITZ_CONSTANT.fullmatch(self.value) is not None

    @property
    def is_limit(self) -> bool:
        """Whether values are clipped to it."""
        return bool(self.column) or self.name in LIMITS

    @property
    def rounded(self) -> tuple[str, str]:
        """The value with few digits, rounded so that what it says is still true, and how; any other as it is.

        >>> read_fact(FactRecord(name="range of age", value="-0.5228787452803376 to 1.17", origin="declared")).rounded
        ('-0.5229 to 1.17', 'rounded outwards')
        >>> read_fact(FactRecord(name="row_norm", value="1.7320508075688772", origin="declared")).rounded
        ('1.733', 'rounded up')
        """
        ends = _INTERVAL.fullmatch(self.value)
        if ends and any(_digits(end) > MOST_DIGITS for end in ends.groups()):
            low, high = ends.groups()
            return f"{_rounded(low, ROUND_FLOOR)} to {_rounded(high, ROUND_CEILING)}", "rounded outwards"
        if self.name in LIMITS and re.fullmatch(_NUMBER, self.value) and _digits(self.value) > MOST_DIGITS:
            return _rounded(self.value, ROUND_CEILING), "rounded up"
        return self.value, ""

    @property
    def number(self) -> float | None:
        """The value, if it is a number."""
        return float(self.value) if re.fullmatch(_NUMBER, self.value) else None

    @property
    def range_of_values(self) -> tuple[float, float] | None:
        """Of values of a column as they come in, if it is their range."""
        ends = _INTERVAL.fullmatch(self.value) if self.column and not self.comes_out else None
        return None if ends is None else (float(ends[1]), float(ends[2]))

    @property
    def by_counts(self) -> bool:
        """Whether it is sought by released counts of rows."""
        return self.value.endswith(BY_COUNTS)

    @property
    def share_to_hold(self) -> float:
        """What a threshold is to hold by such counts; 0 where it is to hold nothing."""
        found = _TO_HOLD.fullmatch(self.value)
        return 0.0 if found is None else float(found[1])


def public_facts(record: Record) -> list[PublicFact]:
    """All facts of a certificate."""
    return [read_fact(fact) for fact in record.facts]


@lru_cache(maxsize=1024)
def read_fact(fact: FactRecord) -> PublicFact:
    """One fact, typed."""
    source, found = read_source(fact.origin), _RANGE.fullmatch(fact.name)
    column, comes_out = (found["column"], found["out"] is not None) if found else ("", False)
    trust = _trust(fact, source, bool(column))
    return PublicFact(fact.name, fact.value, source, trust, column, comes_out, fact.source or "")


def with_sources(facts: Sequence[FactRecord], sources: Any) -> tuple[FactRecord, ...]:
    """The facts, and beside those that a user declared where the user has them from.

    ``sources`` are words for all of them, or a mapping of names: of a fact, of a column or of a step. The first of
    these that is given counts.
    """
    if sources is None:
        return tuple(facts)
    if not isinstance(sources, Mapping):
        said = words("sources", sources)
        return tuple(replace(fact, source=said) if _is_sourced(fact) else fact for fact in facts)
    given = {name: words("sources", said) for name, said in sources.items()}
    names = {fact: list(_names_of(fact)) for fact in facts if _is_sourced(fact)}
    known = dict.fromkeys(name for of_fact in names.values() for name in of_fact)
    if unknown := [name for name in given if name not in known]:
        what = f"sources names {shown(unknown[0])}, and nothing of that name is declared."
        fix = f"one of {', '.join(map(repr, known))}." if known else "leave it out: nothing is declared."
        raise InvalidParameter(what, fix=fix, parameter="sources")
    found = {fact: next((given[name] for name in of_fact if name in given), None) for fact, of_fact in names.items()}
    return tuple(replace(fact, source=found.get(fact)) for fact in facts)


def _is_sourced(fact: FactRecord) -> bool:
    """Whether a user said it, so that one may ask where the user has it from."""
    return read_source(fact.origin).origin in (Origin.DECLARED, Origin.SETTING, Origin.MODEL)


def _names_of(fact: FactRecord) -> Iterator[str]:
    """What a source may be given for: the fact itself, the column that it is of, the step that it is a setting of."""
    yield fact.name
    of_column = _OF_A_COLUMN.fullmatch(fact.name)
    if of_column and fact.name not in WORDS.values():  # "largest norm of a row" is of no column
        yield of_column["column"]
    if step := read_source(fact.origin).step:
        yield ast.literal_eval(step)


def read_source(text: str) -> FactSource:
    """Who said a fact, from the words of its document; words that are not known here are somebody else's."""
    for pattern, origin in _ORIGINS.items():
        if found := pattern.fullmatch(text):
            parts = found.groupdict()
            return FactSource(origin, parts.get("step") or "", parts.get("note") or "", text)
    return FactSource(Origin.OTHER, "", "", text)


def _trust(fact: FactRecord, source: FactSource, is_range: bool) -> Trust:
    """What a fact asks of a reader: of an origin that is not known here, to believe whoever said so."""
    settled = (Origin.RELEASED, Origin.DEFAULT, Origin.LABELS, Origin.IMPUTER, Origin.DERIVED)
    if fact.name in OF_THE_TABLE or source.origin in settled or (fact.name, fact.value) == ("gaps", "none"):
        return Trust.NOTHING
    if fact.name == MECHANISM and source.origin is not Origin.DECLARED:  # the status gives it as a reason
        return Trust.NOTHING
    if fact.name == "classes":
        return Trust.LABELS
    if is_range or fact.name in LIMITS:
        return Trust.LIMIT
    return Trust.SETTING if source.origin is Origin.SETTING and fact.name != LIPSCHITZ else Trust.WORD


def _digits(number: str) -> int:
    return len(Decimal(number).normalize().as_tuple().digits)


def _rounded(number: str, rounding: str) -> str:
    exact = Decimal(number)
    whole = exact == exact.to_integral_value() or _digits(number) <= MOST_DIGITS
    return number if whole else str(Context(prec=4, rounding=rounding).create_decimal(exact))
