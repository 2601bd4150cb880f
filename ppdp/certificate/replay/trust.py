"""What a promise rests on besides its proof: what somebody said, in plain sentences, the gravest first.

Every form of a certificate shows these beside the status. They are made from the origins of the document's facts, and
a fact of an origin that is not known here counts as somebody's word: nothing is left out because it is new.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ppdp.bounds import FORMULAS
from ppdp.certificate.record import Condition, Fact, Mechanism, Record, Release, Step

__all__ = ["rests_on"]


MOST_NAMED = 4  # of one kind, on the first screen; the table of facts has all of them
TRAINING = {
    "learning.hidden": "Of the training nobody may have seen anything but the model that was released: no other"
    " iterate, loss or log, and not at which step it stopped. solver='hidden' is experimental."
}
BY_POSITION = ("query.rows", "learning.epochs", "learning.hidden")
OF_THE_TABLE = ("n_rows", "n_features", "feature_names", "rows_per_unit")
NOBODYS_WORD = ("default", "not declared", "read from y", "stage ", "imputer ", "no imputer", "the columns that")
CHOSEN = ("declared, step", "declared, loosest", "declared, the last")
LIMITS = {
    "row_norm": "longest row",
    "entry_bound": "largest entry",
    "y_range": "range of the targets",
    "largest norm of a row": "longest row",
    "largest norm of a row that comes out": "longest row that comes out",
}


def rests_on(c: Record) -> Sequence[str]:
    """What must be true for the promise to hold, and who says so; never empty.

    Parameters
    ----------
    c : Record
        The document. What a CONDITIONAL one assumes is in its ``reasons``, and is not repeated.
    """
    by_kind: dict[str, list[Fact]] = {"": [], "limit": [], "labels": [], "number": [], "word": []}
    for fact in c.facts:
        by_kind[_kind(fact)].append(fact)
    return (
        *_training(c),
        *_bounds(c),
        *_unit(c),
        *_limits(by_kind["limit"]),
        *_labels(by_kind["labels"]),
        *_order(c),
        *_word(c, by_kind["word"]),
        *_numbers(by_kind["number"]),
    )


def _kind(fact: Fact) -> str:
    """Which sentence a fact belongs to; none if it needs nobody's word, or the status gives it as a reason."""
    name, value, origin = fact.name, fact.value, fact.origin
    if name in OF_THE_TABLE or origin.startswith(NOBODYS_WORD) or (name, value) == ("gaps", "none"):
        return ""
    if name == "mechanism" and origin != "declared":  # taken on the word of another library
        return ""
    if name == "classes":
        return "labels"
    if name.startswith("range of ") or name in LIMITS:
        return "limit"
    if origin.startswith(CHOSEN) and not name.startswith("Lipschitz constant"):
        return "number"
    return "word"


def _training(c: Record) -> Iterator[str]:
    """What a way of training needs that nobody can check."""
    if c.mechanism is not None and c.mechanism.formula in TRAINING:
        yield TRAINING[c.mechanism.formula]


def _bounds(c: Record) -> Iterator[str]:
    """Formulas that a module of somebody else has registered."""
    last = (c.mechanism,) if c.mechanism is not None else ()
    parts: tuple[Step | Release | Mechanism | Condition, ...] = (*c.steps, *c.releases, *last, *c.conditions)
    for name in dict.fromkeys(part.formula for part in parts):
        if name not in FORMULAS or not FORMULAS[name].function.__module__.startswith("ppdp."):
            yield f"The bound '{name}' is right: it is none of ppdp's, and only who wrote its module vouches for it."


def _unit(c: Record) -> Iterator[str]:
    """Rows of one person, and whether anybody said so."""
    if not c.neighbours.single:
        yield f"Nobody has more than {c.rows_per_unit} rows: declared, not checked."
    elif any(fact.name == "rows_per_unit" and fact.origin == "declared" for fact in c.facts):
        yield "Nobody has more than one row: declared, not checked."
    else:
        yield "Each person is assumed to have one row: nobody declared it, and nothing has checked it."


def _limits(facts: Sequence[Fact]) -> Iterator[str]:
    """Ranges and norms: rows are clipped to them, but where they come from nobody can tell."""
    if facts:
        shown = _listed([f"{LIMITS.get(fact.name, fact.name)} ({fact.value})" for fact in facts])
        yield f"Declared limits: {shown}. If one was read off these rows, the promise fails; nothing can check that."


def _labels(facts: Sequence[Fact]) -> Iterator[str]:
    for fact in facts:
        yield f"Declared labels: {fact.value}. If they were read off these rows, the promise fails."


def _order(c: Record) -> Iterator[str]:
    """The order of rows, where it matters."""
    if c.mechanism is not None and c.mechanism.formula in BY_POSITION:
        yield "The order of the rows: if it comes from what they hold (sorted by a column, say), the promise fails."


def _word(c: Record, facts: Sequence[Fact]) -> Iterator[str]:
    """Functions, transformers, categories: whatever else somebody said."""
    last = c.mechanism.name if c.mechanism is not None else "mechanism"
    said = [(last if fact.name == "mechanism" else fact.name, fact) for fact in facts]
    twice = {f"declared, step {place!r}" for place, fact in said if fact.value.startswith("its Lipschitz constant")}
    for place, fact in said:
        if fact.origin not in twice:
            who = "" if fact.origin.startswith("declared") else f" ({fact.origin})"
            yield f"Declared of {place}, not checked on these rows: {fact.value}{who}."


def _numbers(facts: Sequence[Fact]) -> Iterator[str]:
    """Constants that somebody chose; older certificates do not list them among their facts."""
    shown = [*dict.fromkeys(fact.name for fact in facts)]
    told = f"{_listed(shown)}; and all other" if shown else "all"
    yield f"Settings that nobody may have chosen by looking at these rows: {told} public parameters of the steps."


def _listed(words: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    more = f" and {len(words) - MOST_NAMED} more" if len(words) > MOST_NAMED else ""
    return f"{', '.join(words[:MOST_NAMED])}{more}"
