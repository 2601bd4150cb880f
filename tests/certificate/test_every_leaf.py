"""Every leaf of a certificate: digest and seal find every change, the replay every change that matters."""

from __future__ import annotations

import copy
import zlib
from functools import cache
from typing import Any

import pytest
from effort import rounds
from unprotected import WEAKER, WITHOUT_EFFECT, WITHOUT_MOVES, WORDS
from zoo import ZOO, document, sealed

from ppdp.certificate import verify
from ppdp.certificate.canonical import seal


def leaves(value: Any, path: tuple = ()):
    if isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*path, key))
    else:
        yield path, value


def elements(value: Any, path: tuple = ()):
    if isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*path, key)
            yield from elements(inner, (*path, key))


def other_values(value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, str):
        return [value + "x"]
    if value is None:
        return [1.0]
    scaled = [round(value * 2) + 1, value // 2] if isinstance(value, int) else [value * 1.01, value * 0.5]
    return [v if v != value else value + 1 for v in scaled]


def put(content: Any, path: tuple, value: Any) -> Any:
    """A copy that shares whatever is not on the way to the changed place."""
    if not path:
        return value
    changed = copy.copy(content)
    changed[path[0]] = put(changed[path[0]], path[1:], value)
    return changed


def without(content: Any, path: tuple) -> Any:
    changed = copy.copy(content)
    if path[1:]:
        changed[path[0]] = without(changed[path[0]], path[1:])
    else:
        del changed[path[0]]
    return changed


def pattern(path: tuple) -> str:
    return ".".join("*" if isinstance(key, int) else str(key) for key in path)


KINDS = sorted(ZOO.keys() - {"seeded", "keyed", "with a ledger", "classes read", "nothing to do"})
each_kind = pytest.mark.parametrize("name", KINDS)
some_kinds = pytest.mark.parametrize("name", ["gated, sum", "conditional", "three rows each", "transformer-ended"])


@cache
def first_kinds() -> dict[str, list[str]]:
    """Of every pattern the first certificates that have it."""
    found: dict[str, list[str]] = {}
    for name in ("unconditional", "gated, sum", *KINDS):
        for place in {pattern(path) for path, _ in leaves(document(name))}:
            found.setdefault(place, []).append(name)
    return {place: names[:2] for place, names in found.items()}


def looked_at(content: Any, name: str):
    """All leaves in an attack; every day those that few certificates before have, and one in forty of the others."""
    for path, value in leaves(content):
        seldom = name in first_kinds()[pattern(path)]
        if rounds(1) > 1 or seldom or zlib.crc32(f"{name} {path}".encode()) % 40 == 0:
            yield path, value


class TestEveryLeaf:
    @some_kinds
    @pytest.mark.repeated("name")
    def test_digest_and_seal_find_every_change(self, name):
        content = document(name)
        for path, value in leaves(content):
            changed = put(content, path, other_values(value)[0])
            beside = path[0] == "issued"  # no part of the claim, but of what is signed
            assert seal(changed) != seal(content) if beside else not verify(changed), path
        for path in elements(content):
            assert not verify(without(content, path)), path

    @each_kind
    def test_the_replay_finds_every_change_that_matters(self, name):
        content = document(name)
        moved = any(step["distance"]["moved"] for step in content["steps"])
        unfound = set()
        for path, value in looked_at(content, name):
            for other in other_values(value):
                place = pattern(path)
                pure = place == "delta" and content["total"]["parts"]  # what is pure holds at every delta
                spare = (name, place) == ("Newton steps", "total.allowance")  # of more draws than its steps make
                harmless = (
                    pure or spare or place in WORDS or place in WITHOUT_EFFECT or (place in WEAKER and other > value)
                )
                harmful = not harmless or (moved and place in WITHOUT_MOVES)
                if harmful and path != ("digest",) and verify(sealed(put(content, path, other))):
                    unfound.add(place)
        assert not unfound, f"no bound depends on these (do not pass them to FitMode.by): {sorted(unfound)}"

    @some_kinds
    @pytest.mark.repeated("name", keep=2)
    def test_the_replay_finds_every_removal_that_matters(self, name):
        content = document(name)
        unfound = {
            pattern(path)
            for path in elements(content)
            if path != ("digest",) and verify(sealed(without(content, path)))
        }
        # what was left at its default may go unsaid; a stage that changes no number may go: that is another pipeline
        unfound -= WORDS | {f"steps.*.parameters.{name}" for name in ("with_mean", "per_column", "raw")} | {"steps.*"}
        assert not unfound, f"no bound depends on these (do not pass them to FitMode.by): {sorted(unfound)}"
