"""What a promise rests on besides its proof, and on whose word."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from ppdp.bounds import FORMULAS
from ppdp.certificate.facts import COLUMNS, LIMITS, MECHANISM, MIN_FILLED, Origin, PublicFact, Trust, public_facts
from ppdp.certificate.pages.derivation import answer_of
from ppdp.certificate.pages.statement import WORDS, Statement, Topic
from ppdp.certificate.record import Record
from ppdp.core.figures import figure
from ppdp.core.formula import AT

MOST_NAMED = 12  # of one kind, on the first screen; the table of facts has all of them
MOST_SOURCES, MOST_OF_A_SOURCE = 4, 3  # that are named there
MOST_LETTERS = 30  # of a setting that is named with its value
SAID = WORDS["rests_on"]


def assumptions(c: Record) -> Iterator[Statement]:
    """What must be true for the promise to hold besides its proof, and who says so, the gravest first.

    What a CONDITIONAL document assumes is in its ``reasons``, and is not repeated. A fact of an origin that is not
    known counts as somebody's word: nothing is left out because it is new.
    """
    facts = public_facts(c)
    asked: dict[Trust, list[PublicFact]] = {trust: [] for trust in Trust}
    for fact in facts:
        cap = fact.name == "n_rows" and c.neighbours.unbounded
        asked[Trust.LIMIT if cap else fact.trust].append(fact)
    answer = answer_of(c.mechanism)
    if c.mechanism is not None and c.mechanism.formula == "learning.hidden":
        yield _assumed(SAID["hidden"])
    yield from map(_assumed, _foreign_bounds(c))
    named = "Declared: the table is the one named; " if c.dataset else "Declared: "
    yield _assumed(unit_on_trust(c).replace("Declared: ", named, 1))
    yield from _limits(asked[Trust.LIMIT], f"maximum of rows{' used' if c.neighbours.bounds_contributions else ''}")
    for fact in asked[Trust.LABELS]:
        labels = f"Declared labels (what is predicted): {fact.value}."
        yield _assumed(labels, "If they were taken from these rows, the promise fails.")
    if answer is not None and answer.by_position and not c.neighbours.unbounded:
        yield _assumed(SAID["order"])
    yield from map(_assumed, _on_a_word(c, asked[Trust.WORD]))
    yield _assumed(f"Declared: {SAID['blindly']}{_settings(c, asked[Trust.SETTING])}.")
    yield from map(_assumed, _sources(facts))
    own = None if c.issued is None else c.issued.own_values
    stated = f"Declared: {SAID['own']}: {own}." if own else f"Nobody has stated (by own_values) that {SAID['own']}."
    yield _assumed(stated)
    kept = "" if c.status == "SEEDED" else ", the noise stayed secret"
    yield _assumed(SAID["unverified"].format(recorded="run and ledger are" if c.ledger else "the run is", secret=kept))
    read = [fact for fact in facts if fact.source.origin is Origin.TABLE and fact.name in SAID["read_off"]]
    if words := ", ".join(SAID["read_off"][fact.name].format(fact.value) for fact in read):
        yield Statement(Topic.READ_OFF, f"Read off the table, not protected: {words}, column types.")


def _assumed(words: str, consequence: str = "") -> Statement:
    return Statement(Topic.RESTS_ON, words, consequence=consequence)


def unit_is_declared(c: Record) -> bool:
    """Whether anybody said how many rows a person has."""
    if not c.neighbours.bounded or not c.neighbours.one_row:
        return True
    return any(fact.name == "rows_per_unit" and fact.source.declared for fact in public_facts(c))


def unit_on_trust(c: Record) -> str:
    """Rows of one person, and whether anybody said so."""
    if not c.neighbours.row_level:
        return f"Declared: nothing needs protection but this: {c.neighbours.words}."
    if c.neighbours.bounds_contributions:
        return f"Declared: {SAID['person']}."
    if not c.neighbours.one_row:
        return f"Declared: no person has more than {c.rows_per_unit} rows."
    return "Declared: no person has more than one row." if unit_is_declared(c) else str(SAID["unit"])


def _foreign_bounds(c: Record) -> Iterator[str]:
    """Formulas that a module of somebody else has registered."""
    names = [part.formula for parts in (c.steps, c.releases, c.conditions) for part in parts]
    names += [c.mechanism.formula] if c.mechanism is not None else []
    for name in dict.fromkeys(names):
        known = FORMULAS.get(name.partition(AT)[0])  # that of a group of columns is made of it by ppdp
        if known is None or not known.shipped:
            yield f"The bound '{name}' is right: it is none of ppdp's, and only who wrote its module vouches for it."


def _limits(facts: Sequence[PublicFact], most_rows: str) -> Iterator[Statement]:
    """Ranges and norms: rows are clipped to them, but where they come from cannot be told."""
    steps = {(fact.column, fact.value): fact.source.step for fact in facts if fact.comes_out}
    ranges: dict[str, list[str]] = {}
    others, rows, outwards = [], [], ""
    for fact in facts:
        value, how = fact.rounded
        outwards = ", rounded outwards" if how else outwards
        if fact.name == "n_rows":
            rows = [f"{most_rows} ({figure(int(value)) if value.isdecimal() else value})"]
        elif fact.column:  # what one stage gives and the next one takes is one limit
            step = steps.get((fact.column, fact.value))
            where = f"s after step {step}: " if step else " of "
            ranges.setdefault(where, []).append(f"{fact.column} ({value})")
        else:
            others.append(f"{LIMITS.get(fact.name, fact.name)} ({value})")
    named = [f"range{where}{_first(of_step)}" for where, of_step in ranges.items()]
    named += [_first(others)] if others else []
    clipped = [f"values are clipped to these{outwards}: {'; '.join(named)}"] if named else []
    if rows or named:
        yield _assumed(f"Declared limits: {'; '.join(rows + clipped)}.", SAID["limits"])


def _sources(facts: Sequence[PublicFact]) -> Iterator[str]:
    """Where declared facts come from, as far as anybody said so; the table of facts has all of it."""
    asked = [fact for fact in facts if fact.source.origin in (Origin.DECLARED, Origin.SETTING, Origin.MODEL)]
    pairs = {(fact.source.step, fact.stated) for fact in asked}
    whole = [step for step, _ in pairs if step and sum(step == other for other, _ in pairs) == 1]
    stated: dict[str, list[str]] = {}
    for fact in asked:
        if fact.stated:
            name = fact.column or WORDS["facts"].get(fact.name, fact.name)
            stated.setdefault(fact.stated, []).append(f"step {step}" if (step := fact.source.step) in whole else name)
    without = sum(not fact.stated for fact in asked)
    if len(stated) == 1 and not without:
        yield f"Stated source of all that is declared: {next(iter(stated))}."
    elif stated:
        told = [f"of {_first(names, MOST_OF_A_SOURCE)}: “{source}”" for source, names in stated.items()]
        rest = f" None is stated for {without} of {len(asked)} declared facts." if without else ""
        yield f"Stated sources {_first(told, MOST_SOURCES)}.{rest}"


def _first(words: Sequence[str], most: int = MOST_NAMED) -> str:
    """The first of them, and how many more there are."""
    once = list(dict.fromkeys(words))
    more = f" and {len(once) - most} more among the public facts" if len(once) > most else ""
    return f"{', '.join(once[:most])}{more}"


def _settings(c: Record, facts: Sequence[PublicFact]) -> str:
    """Settings with the step that each belongs to, the first of them; older certificates list none."""
    n_rows = c.entrance.domain["n_rows"]
    optional = "" if c.status == "CONDITIONAL" else " (if fewer, less accurate, not less private)"
    settings = [*dict.fromkeys((fact.source.step, *_setting(fact, n_rows, optional)) for fact in facts)]
    if not settings:
        return ""
    listed = []
    for step in dict.fromkeys(step for step, *_ in settings[:MOST_NAMED]):
        own = [(has, does) for of, has, does in settings[:MOST_NAMED] if of == step]
        named = ", ".join(has for has, _ in own if has)
        phrases = [f"has {named}"] * bool(named) + [does for _, does in own if does]
        listed.append(f"{f'step {step}' if step else 'the pipeline'} {' and '.join(phrases)}")
    more = f"; and {len(settings) - MOST_NAMED} more among the public facts" if len(settings) > MOST_NAMED else ""
    return f". Settings: {'; '.join(listed)}{more}"


def _setting(fact: PublicFact, n_rows: int, optional: str) -> tuple[str, str]:
    """What a step has, or what it does."""
    least = fact.number or 0.0
    if fact.name == MIN_FILLED and least == 1:  # which may be all rows, or one
        return f"{fact.name} = {fact.value}{optional}", ""
    if fact.name == MIN_FILLED and least > 0:  # a share of the declared number, or a number
        rows = math.ceil(least * n_rows if least < 1 else min(least, n_rows))
        return "", f"expects {figure(rows)}+ filled cells in a column{optional}"
    if len(fact.value) > MOST_LETTERS:
        return fact.name, ""
    return ("", f"acts on {fact.value}") if fact.name == COLUMNS else (f"{fact.name} = {fact.value}", "")


def _on_a_word(c: Record, facts: Iterable[PublicFact]) -> Iterator[str]:
    """Functions, transformers, categories: whatever else somebody said."""
    last = c.mechanism.name if c.mechanism is not None else MECHANISM
    said = [(last if fact.name == MECHANISM else fact.name, fact) for fact in facts]
    steps = {last, *(step.name for step in c.steps)}
    twice = {repr(place) for place, fact in said if fact.is_lipschitz}
    for place, fact in said:
        if not (fact.source.origin is Origin.SETTING and fact.source.step in twice):
            who = "" if fact.source.declared else f" ({fact.source.text})"
            yield f"Declared of {'step ' if place in steps else ''}'{place}': {fact.value}{who}."
