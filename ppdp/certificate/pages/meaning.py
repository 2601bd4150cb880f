"""What a certificate promises and takes on trust, in plain words and as the power of an attacker's test."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from scipy.special import ndtr, ndtri

from ppdp.bounds import FORMULAS
from ppdp.certificate.numbers import draws_of, loss_of, privacy_profile
from ppdp.certificate.record import Condition, Fact, Gate, Mechanism, Record, Release, Step
from ppdp.core.figures import figure

FALSE_ALARMS = (0.01, 0.05)
MOST_FACTS = 50  # declared ranges and constants that are shown; the document has all of them
MOST_LETTERS = 800  # of one value
MOST_DIGITS = 6  # of a range's end that is shown as it is
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
_RANGE = re.compile(rf"({_NUMBER.pattern}) to ({_NUMBER.pattern})")
ON_TRUST = (
    "What is “declared” was taken from the user's word, and nothing has checked it. Ask of each, first of the ranges,"
    " where it comes from: the promise does not hold if it was read off these rows."
)
DIGEST = (
    "A digest that matches shows that nothing was damaged, not who wrote the document: whoever changes it can compute a"
    " new one. Compare it with the digest that the issuer told you, or check the issuer's signature, which nobody else"
    " can make."
)
PLAINLY = {
    "exceptions raised on invalid values": "In this run an entry that is missing where none was announced, that is"
    " infinite, or a label that was not announced would have stopped the run; whoever learns that it stopped learns"
    " something about the data. Under the other setting such entries are replaced by public values, and that is"
    " covered.",
}
FACTS = {
    "n_rows": "rows",
    "n_features": "columns",
    "feature_names": "column names",
    "rows_per_unit": "rows per person",
    "row_norm": "limit on the length of a row",
    "gaps": "missing values",
    "entry_bound": "largest entry",
    "min_present": "fewest rows that count",
}
RULES = {
    "max": "It stands in front of everything that rests on a condition, so the larger of its δ and that of the releases"
    " counts, not the sum.",
    "sum": "Its δ and that of the releases add.",
}
WAYS = {
    "public": "public parameters only",
    "noisy": "from released statistics",
    "exact": "fitted without noise",
}
TERMS = {
    "means": "of every column",
    "label-means": "how many rows of each category have which label; mean labels follow from it",
    "squares": "means of every column and of its squares, from which its spread follows",
    "matrix": "means of every column and of all products of two columns",
    "moment": "means of all products of two columns",
    "complete-matrix": "means of all products of two columns, over the rows without gaps",
    "trimmed-means": "of every column, without its smallest and largest entries",
    "medians": "of every column",
    "quantile-pairs": "a lower and an upper quantile of every column",
    "quantile-triples": "a lower quantile, the median and an upper quantile of every column",
    "categories": "those of a column that so many rows hold that their noisy weight exceeds a public threshold, with"
    " that weight; nothing leaves of any other",
    "replaced": "the row holds something else",
    "toggled": "the row counts in one of the two datasets only",
    "moved": "the row is there in both, with other numbers",
    "clip": "no row's part in one answer is longer than this",
    "coef_norm": "the coefficients together are no longer than this",
    "smoothing": "half the width in which the loss is rounded off",
}
MOST_NAMED = 4  # of one kind, on the first screen; the table of facts has all of them
TRAINING = {
    "learning.hidden": "Of the training nobody may have seen anything but the model that was released: no other"
    " iterate, loss or log, and not at which step it stopped. solver='hidden' is experimental."
}
READ_OFF = "If they were read off these rows, the promise fails."
ASSUMED_UNIT = "Each person is assumed to have one row: nobody declared it, and nothing has checked it."
ORDER = "The order of the rows: if it comes from what they hold (sorted by a column, say), the promise fails."
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
LIMITS = {
    "row_norm": "longest row",
    "entry_bound": "largest entry",
    "y_range": "range of the targets",
    "n_rows": "most rows",
    "largest norm of a row": "longest row",
    "largest norm of a row that comes out": "longest row that comes out",
}


def detection_power(content: Record, false_alarm: float) -> float:
    """Most often that an attacker's test can be right, at a given probability of an alarm on the other dataset.

    Notes
    -----
    With f = failure, t = the sampler's total variation, g = delta of a gate under the "max" rule (else 0),

    ``f + (1 - f) Φ(μ + Φ⁻¹((α + t)/(1 - f))) + t + g``;

    where not everything is Gaussian, the least that a pair (epsilon, delta) which the certificate promises allows.
    Source: ``docs/theory/accounting.md``, 7.
    """
    total, loss = content.total, loss_of(content)
    failure, passing = loss.failure, loss.gate
    if failure >= 1:
        return 1.0
    if total.parts:
        promised = [pair for pair in privacy_profile(content) if math.isfinite(pair[1])]
        return min(_power_of_pair(*pair, false_alarm) for pair in promised)
    sampler = draws_of(content)
    level = min(1.0, (false_alarm + sampler) / (1 - failure))
    ideal = failure + (1 - failure) * float(ndtr(total.mu + ndtri(level)))
    return min(1.0, ideal + sampler + passing)


def powers_in_words(content: Record, space: str = "\u00a0") -> str:
    """What is detected at most, at each rate of false alarms."""
    shares = ((rounded_up(detection_power(content, alarm)), figure(100 * alarm)) for alarm in FALSE_ALARMS)
    return " and ".join(f"{power} at {alarms}{space}% false alarms" for power, alarms in shares)


def _power_of_pair(delta: float, epsilon: float, false_alarm: float) -> float:
    """What one pair (epsilon, delta) allows, whichever of the two datasets is tested for."""
    factor = math.exp(min(epsilon, 700.0))
    return max(0.0, min(1.0, factor * false_alarm + delta, 1 - (1 - false_alarm - delta) / factor))


def rounded_up(share: float) -> str:
    """A share as a percentage with two decimals, never rounded down.

    Examples
    --------
    >>> rounded_up(0.018301).split(), rounded_up(1.0).split()
    (['1.84', '%'], ['100.00', '%'])
    """
    return f"{min(math.ceil(share * 10_000), 10_000) / 100:.2f}\u00a0%"


def rounded_down(share: float) -> str:
    """A share as a percentage with two decimals, never rounded up.

    Examples
    --------
    >>> rounded_down(0.98169).split()
    ['98.16', '%']
    """
    return f"{math.floor(share * 10_000) / 100:.2f}\u00a0%"


def status_in_words(content: Record) -> str:
    """One sentence for the status."""
    if content.status == "SEEDED":
        return "For tests only: do not rely on it."
    if content.status == "CONDITIONAL":
        return "Holds only if the following is true, which nothing has tested, and if what it rests on is true."
    tested = " What the stages need of the rows was checked first, by a noisy test whose price is included."
    gated = tested if content.gate is not None else ""
    return f"Holds whatever the private rows contain, if what it rests on is true.{gated}"


def covered_in_words(content: Record) -> tuple[str, ...]:
    """What the promise speaks of, one line each."""
    gate, search, left = content.gate, content.search, what_left(content)
    words, settled = [], "settled from the certificate's facts alone, before any row was seen"
    if search is not None:
        count = search.selection.candidates
        tried = f"the fits of {count} candidates, the choice among them, and the last fit on all rows"
        words.append(f"the whole search: {tried}")
    words += [
        f"everything that left this run, taken together: {', '.join(left)}{', ' if left else ''}and this document",
        "whatever is made of that without the private rows: a published model, and what it says of other rows",
    ]
    if any(step.way != "public" for step in content.steps):
        words.append("the cleaning: what the stages took from the private rows is part of the price")
    if gate is not None and gate.ladder:
        settled += ", but for the rung of the ladder, which the noisy test chose; its answer is paid for"
    words.append(f"how each step was computed: {settled}")
    if gate is not None:
        words.append(
            "a refusal: had the gate not passed, the run would have said only that, and it is paid for either way"
        )
    if content.invalid == "repair":
        words.append("invalid values: they are repaired row by row, so that no error tells of them")
    return tuple(words)


def what_left(content: Record) -> list[str]:
    """Everything that left the run but the document itself."""
    gate, mechanism = content.gate, content.mechanism
    left = [
        f"the noisy {release.statistic} for {_quoted(release.serves)}"
        + (", words out of private cells" if release.statistic == "categories" else "")
        for release in content.releases
    ]
    left += [f"the gate's answer ({told(gate)})"] if gate is not None else []
    left += [f"what {_quoted([mechanism.name])} answered"] if mechanism is not None else []
    return left


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def told(gate: Gate) -> str:
    """What a gate that passed tells."""
    return "which rung passed" if gate.ladder else "one bit: passed"


def reservation(content: Record) -> str:
    """What must precede every promise of this certificate; empty for an unconditional one."""
    if content.status == "UNCONDITIONAL":
        return ""
    assumed = "the assumptions hold"
    if content.status == "SEEDED":
        unpredictable = "nobody can predict the noise"
        assumed = f"{unpredictable} and {assumed}" if len(content.reasons) > 1 else unpredictable
    return f"Provided that {assumed}, "


def slack_in_words(content: Record) -> str:
    """What the power includes beyond ideal noise."""
    gate, total = content.gate, content.total
    listed = any(release.failure for release in content.releases)
    failure = max(gate.delta if gate else 0.0, total.failure)
    chance, error = (figure(p, upward=True) for p in (failure, total.allowance))
    what = "the gate passes although a condition fails" if gate else "" if listed else "nothing is promised"
    fresh = "a category is released that only one person's rows hold" if listed else ""
    what = " or ".join(filter(None, (what, fresh)))
    failing = f"the chance (at most {chance}) that {what} and " if gate or total.failure > 0 else ""
    return f"{failing}a tiny error of the sampler of the noise (δ of at most {error})"


def around_the_claim(c: Record) -> tuple[str, str]:
    """What stands before and after "(ε, δ) = (1, 10⁻⁶)" in the title: a promise never stands there without its if."""
    of_what = "" if c.neighbours.record_level else f" of {c.neighbours.unit}, not of anything else in it"
    if c.status == "UNCONDITIONAL":
        return "", f"-differential privacy{of_what}, end to end"
    if c.status == "CONDITIONAL":
        return "if what is assumed below holds, ", f"-differential privacy{of_what}, end to end"
    further = " and if what is assumed below holds" if len(c.reasons) > 1 else ""
    return f"nothing is protected; with secret noise{further} it would be ", f"-differentially private{of_what}"


def protected_in_words(c: Record) -> str:
    """The unit of privacy, and whether anybody said so."""
    assumed = any(fact.name == "rows_per_unit" and fact.origin == "default" for fact in c.facts)
    return c.neighbours.unit + ("; each person is assumed to have one row, nobody declared it" if assumed else "")


def shown_facts(c: Record) -> list[tuple[str, str, str]]:
    """Name, value and origin of the facts that people are shown; the document has all, in full."""
    on_trust = [i for i, fact in enumerate(c.facts) if fact.origin.startswith("declared, step")]
    left_out = {*on_trust[MOST_FACTS:]}
    shown = []
    for fact in (fact for i, fact in enumerate(c.facts) if i not in left_out):
        long = len(fact.value) > MOST_LETTERS
        value = f"{fact.value[:MOST_LETTERS]}... (in full in the JSON document)" if long else shortened(fact)
        shown.append((fact.name, value, fact.origin))
    more = ("further", f"{len(left_out)} more that are declared", "see the JSON document")
    return [*shown, more] if left_out else shown


def terms(words: Iterable[str]) -> Sequence[tuple[str, str]]:
    """Those of these words that need an explanation, with it."""
    return [(word, TERMS[word]) for word in dict.fromkeys(words) if word in TERMS]


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
    chosen = [*dict.fromkeys(fact.name for fact in by_kind["number"])]  # older certificates list none
    told = f"{_listed(chosen)}; and all other" if chosen else "all"
    return (
        *([TRAINING[last]] if last in TRAINING else []),
        *_bounds(c),
        unit_on_trust(c),
        *_limits(by_kind["limit"]),
        *(f"Declared labels: {fact.value}. {READ_OFF}" for fact in by_kind["labels"]),
        *([ORDER] if getattr(FORMULAS.get(last), "by_position", False) and not c.neighbours.hides_number else []),
        *_word(c, by_kind["word"]),
        f"Settings that nobody may have chosen by looking at these rows: {told} public parameters of the steps.",
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
        return f"Nothing else needs protection: {c.neighbours.words}."
    if c.neighbours.cuts:
        return "Rows of one id are one person's, and nobody has more than one id: declared, not checked."
    if not c.neighbours.single:
        return f"Nobody has more than {c.rows_per_unit} rows: declared, not checked."
    if c.neighbours.hides_number or any(fact.name == "rows_per_unit" and fact.origin == "declared" for fact in c.facts):
        return "Nobody has more than one row: declared, not checked."
    return ASSUMED_UNIT


def _limits(facts: Sequence[Fact]) -> Iterator[str]:
    """Ranges and norms: rows are clipped to them, but where they come from nobody can tell."""
    if facts:
        named = [f"{LIMITS.get(name, name)} ({shortened(fact)})" for fact in facts for name in [_column_of(fact)]]
        shown = _listed([*dict.fromkeys(named)])  # a range that one stage gives and the next one takes is one limit
        yield f"Declared limits: {shown}. If one was read off these rows, the promise fails; nothing can check that."


def _column_of(fact: Fact) -> str:
    return fact.name.replace("range of what comes out in ", "range of ")


def _word(c: Record, facts: Sequence[Fact]) -> Iterator[str]:
    """Functions, transformers, categories: whatever else somebody said."""
    last = c.mechanism.name if c.mechanism is not None else "mechanism"
    said = [(last if fact.name == "mechanism" else fact.name, fact) for fact in facts]
    twice = {f"declared, step {place!r}" for place, fact in said if fact.value.startswith("its Lipschitz constant")}
    for place, fact in said:
        if fact.origin not in twice:
            who = "" if fact.origin.startswith("declared") else f" ({fact.origin})"
            yield f"Declared of {place}, not checked on these rows: {fact.value}{who}."


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
