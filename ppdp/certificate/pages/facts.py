"""The public facts of a certificate with their origins, as a section of its page."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from ppdp.certificate.pages.markup import h2, minus, p, table
from ppdp.certificate.pages.meaning import FACTS, ON_TRUST, neighbours_in_words
from ppdp.certificate.pages.summary import BEFORE, NOT_SAID, PUBLIC_FACTS
from ppdp.certificate.pages.trust import CHOSEN_BLINDLY, GIVEN, LIMITS, ONE_ID, READ_FROM_TABLE
from ppdp.certificate.pages.view import View
from ppdp.certificate.record import Record
from ppdp.core.figures import figure

RANGE = "range of "
IMPUTER = "imputer "
RANGES = "ranges of the columns, as they stand at these steps"


def facts(view: View) -> Sequence[Element]:
    """Public facts with their origins."""
    neighbours, names = view.record.neighbours, dict(FACTS)
    if neighbours.hides_number:
        names["n_rows"] = "rows kept of all people, at most" if neighbours.cuts else "number of rows, at most"
    chosen = {origin for name, _, origin in view.facts if name == "columns"}
    on_trust = [("whose a row is", ONE_ID, "declared")] if neighbours.cuts else []
    on_trust += [("settings", CHOSEN_BLINDLY, "declared"), ("what is in a row", BEFORE, NOT_SAID)]
    return (
        h2(PUBLIC_FACTS),
        p(f"The derivation rests on these, and they are published with it. {ON_TRUST}"),
        table(
            [("Fact", ""), ("Value", "wide"), ("Origin", "")],
            [
                (names.get(name, name), _value(name, value, origin, chosen), _origin(name, origin, view.record))
                for name, value, origin in (*_grouped(_once(view.facts)), *on_trust)
            ],
            class_="facts cards",
        ),
    )


def _value(name: str, value: str, origin: str, chosen: set[str]) -> str:
    """A fact's value: what is a number with its minus, and missing values with where they may stand."""
    if (name, value) == ("gaps", "any row may have gaps"):
        step = origin.removeprefix(IMPUTER)
        filled = f"; step {step} fills them" if step != origin else ""
        elsewhere = ", outside its columns with 0" if f"declared, step {step}" in chosen else ""
        return f"any row may have some, in any column{filled}{elsewhere}"
    if name == "adjacency":
        return neighbours_in_words(value)
    if name == "n_rows" and value.isdecimal():
        return figure(int(value))
    return minus(value) if name.startswith((RANGE, RANGES)) or name in LIMITS else value


def _origin(name: str, origin: str, c: Record) -> str:
    """A fact's origin in the words of page one."""
    if name == "adjacency" and c.neighbours.cuts:
        return "chosen by whoever ran the fit; the run itself keeps no more rows of a person"
    if name == "adjacency":
        return "chosen by whoever ran the fit"
    if origin in READ_FROM_TABLE:
        return "read off the table"
    start = "parameter of the model"
    if not origin.startswith(start) or c.mechanism is None:
        return origin
    return f"declared, step {c.mechanism.name!r}{origin.removeprefix(start)}"


def _once(given: Sequence[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Facts, where the range that a stage gives and that of the same column in the next one stand in one line."""
    origins: dict[tuple[str, str], str] = {}
    for name, value, origin in given:
        short = name.replace(GIVEN, "range of ")
        told = f"{origin} (what comes out)" if name.startswith(GIVEN) else origin
        before = origins.get((short, value))
        origins[short, value] = told if before is None else f"{before}; {told}"
    return [(name, value, origin) for (name, value), origin in origins.items()]


def _grouped(given: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Facts, where ranges that have one origin stand in one line."""
    columns: dict[str, list[str]] = {}
    for name, value, origin in given:
        if name.startswith(RANGE):
            columns.setdefault(origin, []).append(f"{name.removeprefix(RANGE)} {value}")
    lines = {origin: (RANGES, "; ".join(listed), origin) for origin, listed in columns.items() if len(listed) > 1}
    return [*dict.fromkeys(lines.get(one[2], one) if one[0].startswith(RANGE) else one for one in given)]
