"""Mutants of certificates: what an attacker, a bad disk or a bad editor makes of an issued document.

Each mutant follows from (seed, number), so a run can be resumed and a finding repeated. Its attacker

* ``text`` changes characters of the file and cannot compute digests,
* ``plain`` changes the document and cannot compute digests,
* ``sealed`` changes the document and computes the digest again, so that only the replay can find it,
* ``derived`` changes the document, computes everything again that follows, and the digest.
"""

from __future__ import annotations

import copy
import json
import math
import random
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache
from typing import Any

from forger import rederived
from issue_golden import FIGURES, FOLDER
from text_mutants import NEUTRAL, TEXT_CHANGES, key_twice

Document = dict[str, Any]
Path = tuple[Any, ...]

ATTACKERS = ("text", "plain", "sealed", "derived")
CONFUSABLE = {"a": "а", "e": "е", "o": "о", "c": "с", "p": "р", "-": "‐", "1": "１", " ": "\u00a0", "N": "Ν", "U": "⋃"}
STRANGE = [
    *(0, 1, -1, 0.0, -0.0, 1.0, 0.5, 2, 1e-300, 5e-324, 1e308, -1e308, 2**31, 2**53 + 1, 10**30, 10**400, -(10**400)),
    *(True, False, None, "", "0", "1", "NaN", "x" * 5000, "\ud800", "\u202e", "\x00", [], {}, [[]], [1], [None]),
    *({"a": 1}, math.inf, -math.inf, math.nan),
]


@dataclass(frozen=True)
class Mutant:
    """One changed certificate.

    ``content`` is a text, or a document that was never one. ``neutral``: its text says what the original says.
    ``ambiguous``: two readers may read it otherwise.
    """

    original: str
    attacker: str
    changes: tuple[str, ...]
    content: Document | str | bytes
    neutral: bool = False
    ambiguous: bool = False


NAMES = sorted(path.stem for path in (FOLDER / "0.1.0").glob("*.json") if path.name != FIGURES)


@cache
def _text(name: str) -> str:
    return (FOLDER / "0.1.0" / f"{name}.json").read_text("utf-8")


def issued(name: str) -> Document:
    """An issued certificate, by the name of its golden file."""
    return json.loads(_text(name))


def mutant(seed: int, number: int, without: Collection[str] = ()) -> Mutant:
    """The mutant of this number, of any certificate but those of these names."""
    rng = random.Random(f"{seed}/{number}")
    name = rng.choice([name for name in NAMES if name not in without])
    attacker = ATTACKERS[number % len(ATTACKERS)]
    if attacker == "text":
        change = rng.choice(TEXT_CHANGES)
        made = change(rng, _text(name))
        neutral, ambiguous = change in NEUTRAL, change is key_twice
        return Mutant(name, attacker, (change.__name__,), made, neutral, ambiguous)
    content, changes = issued(name), []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        change = rng.choice(CHANGES)
        changes.append(change.__name__)
        try:
            change(rng, content)
        except (AttributeError, IndexError, KeyError, OverflowError, RecursionError, TypeError, ValueError):
            break  # an earlier change left nothing to change
    if attacker == "derived":
        content = _or_as_it_is(rederived, content)
    elif attacker == "sealed":
        content = _or_as_it_is(_sealed, content)
    return Mutant(name, attacker, tuple(changes), content)


def _sealed(content: Document) -> Document:
    from ppdp import Certificate

    return Certificate.sealed(content).to_dict()


def _or_as_it_is(compute: Callable[[Document], Document], content: Document) -> Document:
    """Not every document lets itself be computed again; a forger hands it over all the same."""
    try:
        return compute(content)
    except Exception:
        return content


# ---------------------------------------------------------------------------------------------- changes of a document


def places(value: Any, path: Path = ()) -> list[Path]:
    """Every key and element but the digest."""
    found: list[Path] = []
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if (*path, key) != ("digest",):
            found.append((*path, key))
            if isinstance(inner, (dict, list)):
                found += places(inner, (*path, key))
    return found


def at(content: Any, path: Path) -> Any:
    for key in path:
        content = content[key]
    return content


def put(content: Document, path: Path, value: Any) -> None:
    at(content, path[:-1])[path[-1]] = value


def _pick(rng: random.Random, content: Document, *kinds: type) -> Path | None:
    """A place with a value of one of these kinds; each name of a field is as likely as any other."""
    found: dict[str, list[Path]] = {}
    for path in places(content):
        value = at(content, path)
        if isinstance(value, kinds) and not (isinstance(value, bool) and bool not in kinds):
            found.setdefault(".".join(str(key) for key in path if isinstance(key, str)), []).append(path)
    return rng.choice(found[rng.choice(list(found))]) if found else None


def strange_value(rng: random.Random, content: Document) -> None:
    put(content, rng.choice(places(content)), copy.deepcopy(rng.choice(STRANGE)))


def other_number(rng: random.Random, content: Document) -> None:
    path = _pick(rng, content, int, float)
    value = at(content, path)
    factor = rng.choice((0.0, 0.5, 0.9, 0.999999, 1.000001, 1.1, 2.0, 10.0, 1e6, -1.0))
    put(content, path, round(value * factor) if isinstance(value, int) else value * factor)


def one_more_or_less(rng: random.Random, content: Document) -> None:
    path = _pick(rng, content, int)
    put(content, path, at(content, path) + rng.choice((-1, 1)))


def one_ulp(rng: random.Random, content: Document) -> None:
    path = _pick(rng, content, float)
    put(content, path, math.nextafter(at(content, path), rng.choice((-math.inf, math.inf))))


def strange_number(rng: random.Random, content: Document) -> None:
    values = [value for value in STRANGE if isinstance(value, (int, float)) and not isinstance(value, bool)]
    put(content, _pick(rng, content, int, float), rng.choice(values))


def equal_number(rng: random.Random, content: Document) -> None:
    path = _pick(rng, content, int, float)
    value = at(content, path)
    put(content, path, float(value) if isinstance(value, int) else int(value) if value == int(value) else str(value))


def other_flag(rng: random.Random, content: Document) -> None:
    path = _pick(rng, content, bool)
    if path is not None:
        put(content, path, not at(content, path))


def other_word(rng: random.Random, content: Document) -> None:
    """A word that stands elsewhere in a certificate: another formula, class, status, name."""
    other = issued(rng.choice(NAMES))
    path = _pick(rng, content, str)
    same = [at(other, p) for p in places(other) if p[-1] == path[-1] and isinstance(at(other, p), str)]
    put(content, path, rng.choice(same or [at(other, _pick(rng, other, str))]))


def confusable(rng: random.Random, content: Document) -> None:
    path = _pick(rng, content, str)
    text = at(content, path)
    here = [i for i, letter in enumerate(text) if letter in CONFUSABLE]
    if here:
        i = rng.choice(here)
        put(content, path, text[:i] + CONFUSABLE[text[i]] + text[i + 1 :])


def confusable_key(rng: random.Random, content: Document) -> None:
    path = rng.choice([p for p in places(content) if isinstance(p[-1], str)])
    parent = at(content, path[:-1])
    parent["".join(CONFUSABLE.get(letter, letter) for letter in path[-1])] = parent.pop(path[-1])


def edited_word(rng: random.Random, content: Document) -> None:
    path = _pick(rng, content, str)
    text = at(content, path)
    put(content, path, rng.choice((text + "x", text[:-1], text.upper(), text[::-1], " " + text, text + "\n", "")))


def deleted(rng: random.Random, content: Document) -> None:
    path = rng.choice(places(content))
    del at(content, path[:-1])[path[-1]]


def duplicated(rng: random.Random, content: Document) -> None:
    path = rng.choice([p for p in places(content) if isinstance(p[-1], int)])
    at(content, path[:-1]).insert(path[-1], copy.deepcopy(at(content, path)))


def inserted(rng: random.Random, content: Document) -> None:
    path = rng.choice([(), *(p for p in places(content) if isinstance(at(content, p), dict))])
    at(content, path)[rng.choice(("comment", "mu", "clip", "conditional", "epsilon", ""))] = rng.choice(STRANGE)


def swapped(rng: random.Random, content: Document) -> None:
    """Two elements of a list: two stages, two releases, two rungs."""
    lists = [p for p in places(content) if isinstance(at(content, p), list) and len(at(content, p)) > 1]
    if lists:
        chosen = at(content, rng.choice(lists))
        i, j = rng.sample(range(len(chosen)), 2)
        chosen[i], chosen[j] = chosen[j], chosen[i]


def swapped_stages(rng: random.Random, content: Document) -> None:
    steps = content.get("steps")
    if isinstance(steps, list) and len(steps) > 1:
        i, j = rng.sample(range(len(steps)), 2)
        steps[i], steps[j] = steps[j], steps[i]


def dropped_stage(rng: random.Random, content: Document) -> None:
    """With the releases that serve it and no other; those behind move up."""
    steps = content.get("steps")
    if isinstance(steps, list) and steps:
        i = rng.randrange(len(steps))
        name = steps.pop(i)["name"]
        content["releases"] = [r for r in content["releases"] if r["serves"] != [name]]
        for release in content["releases"]:
            release["at"] -= release["at"] > i


def swapped_values(rng: random.Random, content: Document) -> None:
    one, other = (_pick(rng, content, int, float) for _ in range(2))
    first, second = at(content, one), at(content, other)
    put(content, one, second)
    put(content, other, first)


def transplanted(rng: random.Random, content: Document) -> None:
    """A part of another certificate."""
    other = issued(rng.choice(NAMES))
    here = set(places(content))
    common = [p for p in places(other) if p in here]
    path = rng.choice([p for p in common if isinstance(at(other, p), (dict, list))] or common)
    put(content, path, copy.deepcopy(at(other, path)))


def nested(rng: random.Random, content: Document) -> None:
    path = rng.choice(places(content))
    value = at(content, path)
    for _ in range(rng.choice((1, 30, 300))):
        value = [value] if rng.random() < 0.5 else {"a": value}
    put(content, path, value)


def assumptions_dropped(rng: random.Random, content: Document) -> None:
    for step in content["steps"]:
        step["conditions"] = []
    content["gate"] = rng.choice((None, content["gate"]))
    content.update(rng.choice(({}, {"status": "UNCONDITIONAL", "reasons": []})))


CHANGES = (
    strange_value, other_number, other_number, one_more_or_less, one_ulp, strange_number, equal_number, other_flag,
    other_word, confusable, confusable_key, edited_word, deleted, duplicated, inserted, swapped, swapped_stages,
    dropped_stage, swapped_values, transplanted, transplanted, nested, assumptions_dropped,
)  # fmt: skip
