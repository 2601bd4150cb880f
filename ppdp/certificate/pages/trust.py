"""What a promise rests on besides its proof, and on whose word: facts as people are shown them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from ppdp.bounds import FORMULAS
from ppdp.certificate.record import Condition, Fact, Mechanism, Record, Release, Step
from ppdp.core.figures import figure

MOST_FACTS = 50  # declared ranges and constants that are shown; the document has all of them
MOST_LETTERS = 800  # of one value
MOST_DIGITS = 6  # of a range's end that is shown as it is
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
_STEP = re.compile(r"^declared, step (.+)$")
GIVEN = "range of what comes out in "
READ = "Read off the table, not protected: "
_RANGE = re.compile(rf"({_NUMBER.pattern}) to ({_NUMBER.pattern})")
MOST_NAMED = 12  # of one kind, on the first screen; the table of facts has all of them
HAS = "has "
SHORT = 30  # letters of a setting that is named with its value
TRAINING = {
    "learning.hidden": "Of the training nobody may have seen anything but the model that was released: no other"
    " iterate, loss or log, and not at which step it stopped. solver='hidden' is experimental."
}
READ_OFF = "If they were taken from these rows, the promise fails."
ASSUMED_UNIT = "Nobody has stated that each person has one row: the program assumed it."
ORDER = "The order of the rows: if it comes from what they hold (sorted by a column, say), the promise fails."
READ_FROM_TABLE = ("shape of X", "schema of X")
READABLE = {
    "n_rows": "number of rows ({})",
    "n_features": "number of columns",
    "feature_names": "column names",
}
OF_THE_TABLE = ("n_rows", "n_features", "feature_names", "rows_per_unit", "adjacency")
NOBODYS_WORD = (
    "released",
    "default",
    "not declared",
    "read from y",
    "stage ",
    "imputer ",
    "no imputer",
    "the columns that",
)
CHOSEN = ("declared, step", "declared, loosest", "declared, the last")
CHOSEN_BLINDLY = "all settings of the steps were chosen without looking at these rows"
ONE_ID = "one id is always one person, and nobody has two ids"
FILLED = "fewest observed entries of a column"
LIMITS = {
    "row_norm": "longest row",
    "entry_bound": "largest entry",
    "y_range": "range of the targets",
    "max_weight": "largest weight",
    "largest norm of a row": "longest row",
    "largest norm of a row that comes out": "longest row that comes out",
}


def shown_facts(c: Record) -> list[tuple[str, str, str]]:
    """Name, value and origin of the facts that people are shown; the document has all, in full."""
    left_out = {*not_shown(c)}
    shown = []
    for fact in (fact for i, fact in enumerate(c.facts) if i not in left_out):
        long = len(fact.value) > MOST_LETTERS
        value = f"{fact.value[:MOST_LETTERS]}... (in full in the JSON document)" if long else shortened(fact)
        shown.append((fact.name, value, fact.origin))
    more = ("further", f"{len(left_out)} more that are declared", "see the JSON document")
    return [*shown, more] if left_out else shown


def not_shown(c: Record) -> Sequence[int]:
    """Places of the declared facts beyond those that are shown."""
    return [i for i, fact in enumerate(c.facts) if fact.origin.startswith("declared, step")][MOST_FACTS:]


def rests_on(c: Record) -> Sequence[str]:
    """What must be true for the promise to hold besides its proof, and who says so, the gravest first; never empty.

    What a CONDITIONAL document assumes is in its ``reasons``, and is not repeated. A fact of an origin that is not
    known here counts as somebody's word: nothing is left out because it is new.
    """
    by_kind: dict[str, list[Fact]] = {"": [], "limit": [], "labels": [], "number": [], "word": []}
    for fact in c.facts:
        capped = fact.name == "n_rows" and c.neighbours.hides_number
        by_kind["limit" if capped else _kind(fact)].append(fact)
    last = "" if c.mechanism is None else c.mechanism.formula
    chosen = _chosen(by_kind["number"], c.entrance.domain["n_rows"])  # older certificates list none
    told = f"; among them: {chosen}" if chosen else ""
    if c.status == "UNCONDITIONAL" and any(fact.name == FILLED for fact in by_kind["number"]):
        told += " (fewer harm only accuracy)"
    return (
        *([TRAINING[last]] if last in TRAINING else []),
        *_bounds(c),
        unit_on_trust(c),
        *_limits(by_kind["limit"], "most rows kept" if c.neighbours.cuts else "most rows"),
        *(f"Declared labels: {fact.value}. {READ_OFF}" for fact in by_kind["labels"]),
        *([ORDER] if getattr(FORMULAS.get(last), "by_position", False) and not c.neighbours.hides_number else []),
        *_word(c, by_kind["word"]),
        f"Declared: {CHOSEN_BLINDLY}, or the promise fails{told}.",
        *_read_off(c.facts),
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
    if name.startswith("range of ") or name in (*LIMITS, "n_rows"):
        return "limit"
    if origin.startswith(CHOSEN) and not name.startswith("Lipschitz constant"):
        return "number"
    return "word"


def _bounds(c: Record) -> Iterator[str]:
    """Formulas that a module of somebody else has registered."""
    last = (c.mechanism,) if c.mechanism is not None else ()
    parts: tuple[Step | Release | Mechanism | Condition, ...] = (*c.steps, *c.releases, *last, *c.conditions)
    for name in dict.fromkeys(part.formula for part in parts):
        if name not in FORMULAS or not FORMULAS[name].function.__module__.startswith("ppdp."):
            yield f"The bound '{name}' is right: it is none of ppdp's, and only who wrote its module vouches for it."


def unit_on_trust(c: Record) -> str:
    """Rows of one person, and whether anybody said so."""
    if not c.neighbours.record_level:
        return f"Declared: nothing needs protection but this: {c.neighbours.words}."
    if c.neighbours.cuts:
        return f"Declared: {ONE_ID}."
    if not c.neighbours.single:
        return f"Declared: nobody has more than {c.rows_per_unit} rows."
    if c.neighbours.hides_number or any(fact.name == "rows_per_unit" and fact.origin == "declared" for fact in c.facts):
        return "Declared: nobody has more than one row."
    return ASSUMED_UNIT


def _limits(facts: Sequence[Fact], most_rows: str) -> Iterator[str]:
    """Ranges and norms: rows are clipped to them, but where they come from nobody can tell."""
    ranges: dict[str, list[str]] = {}
    others: list[str] = []
    given = {(fact.name.removeprefix(GIVEN), fact.value): fact.origin for fact in facts if fact.name.startswith(GIVEN)}
    rows: list[str] = []
    outwards = ""
    for fact in facts:
        value, rounded, _ = shortened(fact).partition(", rounded ")
        outwards = ", rounded outwards" if rounded else outwards
        column = fact.name.removeprefix(GIVEN).removeprefix("range of ")
        if fact.name == "n_rows":
            rows = [f"{most_rows} ({figure(int(value)) if value.isdecimal() else value})"]
        elif column == fact.name:
            others.append(f"{LIMITS.get(column, column)} ({value})")
        else:  # what one stage gives and the next one takes is one limit
            step = _STEP.fullmatch(given.get((column, fact.value), ""))
            where = f"s after step {step[1]}: " if step else " of "
            ranges.setdefault(where, []).append(f"{column} ({value})")
    named = [f"range{where}{_listed([*dict.fromkeys(one)])}" for where, one in ranges.items()]
    named += [_listed([*dict.fromkeys(others)])] if others else []
    if named:
        cut = "values are cut to these" if rows else "to which values are cut"
        named = [f"{cut}{outwards}: {'; '.join(named)}"]
    if rows or named:
        yield (
            f"Declared limits{':' if rows else ','} {'; '.join(rows + named)}. If any was taken from these rows, the"
            " promise fails."
        )


def _chosen(facts: Iterable[Fact], n_rows: int) -> str:
    """Settings with the step that each belongs to, the first of them."""
    settings = [*dict.fromkeys((_STEP.sub(r"step \1 ", fact.origin), _setting(fact, n_rows)) for fact in facts)]
    by_step: dict[str, list[str]] = {}
    for step, setting in settings[:MOST_NAMED]:
        by_step.setdefault(step if step.startswith("step ") else "the pipeline ", []).append(setting)
    more = f"; and {len(settings) - MOST_NAMED} more" if len(settings) > MOST_NAMED else ""
    return "; ".join(f"{step}{_told(named)}" for step, named in by_step.items()) + more


def _told(settings: Sequence[str]) -> str:
    """What a step has, then what it does."""
    has = [one.removeprefix(HAS) for one in settings if one.startswith(HAS)]
    does = [one for one in settings if not one.startswith(HAS)]
    return " and ".join([*([f"{HAS}{', '.join(has)}"] if has else []), *does])


def _setting(fact: Fact, n_rows: int) -> str:
    if fact.name == FILLED and (rows := _least_rows(fact.value, n_rows)):
        return f"counts on {figure(rows)} filled rows of a column"
    if len(fact.value) > SHORT:
        return f"{HAS}{fact.name}"
    return f"is for {fact.value}" if fact.name == "columns" else f"{HAS}{fact.name} = {fact.value}"


def _least_rows(value: str, n_rows: int) -> int:
    """A number of rows, or a share of the declared number, as a number; 0 for 1, which may be either."""
    least = float(value) if _NUMBER.fullmatch(value) else 0.0
    if least <= 0 or least == 1:
        return 0
    return math.ceil(least * n_rows if least < 1 else min(least, n_rows))


def _read_off(facts: Iterable[Fact]) -> Iterator[str]:
    """What was read off the table and is public all the same."""
    read = [
        READABLE[one.name].format(one.value) for one in facts if one.origin in READ_FROM_TABLE and one.name in READABLE
    ]
    if read:
        yield f"{READ}{', '.join(read)}."


def _word(c: Record, facts: Sequence[Fact]) -> Iterator[str]:
    """Functions, transformers, categories: whatever else somebody said."""
    last = c.mechanism.name if c.mechanism is not None else "mechanism"
    said = [(last if fact.name == "mechanism" else fact.name, fact) for fact in facts]
    steps = {last, *(step.name for step in c.steps)}
    twice = {f"declared, step {place!r}" for place, fact in said if fact.value.startswith("its Lipschitz constant")}
    for place, fact in said:
        if fact.origin not in twice:
            who = "" if fact.origin.startswith("declared") else f" ({fact.origin})"
            step = "step " if place in steps else ""
            yield f"Declared of {step}'{place}': {fact.value}{who}."


def shortened(fact: Fact) -> str:
    """The value of a range or a limit with few digits, rounded so that what it says is still true; any other as it is.

    Examples
    --------
    >>> shortened(Fact(name="range of age", value="-0.5228787452803376 to 1.1760912590556813", origin="declared"))
    '-0.5229 to 1.177, rounded outwards'
    >>> shortened(Fact(name="row_norm", value="1.7320508075688772", origin="declared"))
    '1.733, rounded up'
    """
    limits = _RANGE.fullmatch(fact.value)
    if limits and any(_digits(end) > MOST_DIGITS for end in limits.groups()):
        low, high = limits.groups()
        return f"{_rounded(low, ROUND_FLOOR)} to {_rounded(high, ROUND_CEILING)}, rounded outwards"
    if fact.name in LIMITS and _NUMBER.fullmatch(fact.value) and _digits(fact.value) > MOST_DIGITS:
        return f"{_rounded(fact.value, ROUND_CEILING)}, rounded up"
    return fact.value


def _digits(number: str) -> int:
    return len(Decimal(number).normalize().as_tuple().digits)


def _rounded(number: str, rounding: str) -> str:
    exact = Decimal(number)
    whole = exact == exact.to_integral_value() or _digits(number) <= MOST_DIGITS
    return number if whole else str(Context(prec=4, rounding=rounding).create_decimal(exact))


def _listed(words: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    more = f" and {len(words) - MOST_NAMED} more" if len(words) > MOST_NAMED else ""
    return f"{', '.join(words[:MOST_NAMED])}{more}"
