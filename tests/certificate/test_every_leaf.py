"""Every leaf of a certificate: digest and seal find every change, the replay every change that matters."""

from __future__ import annotations

import copy
from typing import Any

import pytest
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


# Leaves that only the digest protects. Words: they bind nobody, and no number depends on them.
WORDS = {
    "dataset",
    "facts.*.name",
    "facts.*.origin",
    "facts.*.value",
    "reasons.*",
    "not_covered.*",
    "warnings.*",
    "steps.*.name",
    "steps.*.conditions.*.name",
    "steps.*.conditions.*.statement",
    "mechanism.name",
    "alternatives.*",
    "alternatives.*.route",
    "alternatives.*.noise_scale",
    "alternatives.*.reason",
    "facts.*",
    "versions.numpy",
    "versions.ppdp",
    "versions.python",
    "versions.scikit-learn",
    "versions.scipy",
    "released.sha256",
    "released.inference",
}

# Numbers that may change without making the guarantee false, where the derivation does not depend on them.
# if they grow, less is claimed
WEAKER = {"epsilon", "delta", "total.allowance", "releases.*.noise_scale", "gate.ladder.rungs.*.further"}
WITHOUT_EFFECT = {
    "issued.travels": "copies that only their process knows of",
    "entrance.distance.mass": "never taken above 2 replaced + toggled",
    "entrance.distance.one_sided": "never taken above replaced + toggled",
    "steps.*.parameters.max_missing": "never taken above the number of rows",
    "steps.*.parameters.widths.*": "slopes matter to rows that have moved before",
    "steps.*.parameters.low": "so do ends of the interval; its size decides the norm",
    "steps.*.parameters.high": "the same",
    "steps.*.parameters.lipschitz": "slopes matter to rows that have moved before",
    "steps.*.parameters.min_std": "a noisy scaler's slope; the norm is that of the clip",
    "steps.*.parameters.with_mean": "the norm is that of the clip",
    "steps.*.parameters.min_width": "a slope; the norm is that of the clip",
    "steps.*.parameters.seed": "any public seed will do, as long as it is this one that was used",
    "steps.*.parameters.cell": "any public grid: what stands in a cell is compared, or rows stay within their bounds",
    "steps.*.parameters.cell.*": "the same",
    "steps.*.parameters.ramp": "a slope",
    "steps.*.parameters.raw": "raw keys are those of the rows, where nothing has moved",
    "steps.*.parameters.share": "the slope of a noisy regression",
    "steps.*.parameters.conditional": "the same, where nothing is fitted without noise",
    "steps.*.parameters.fills_gaps": "where no row has gaps",
    "steps.*.parameters.rounding": "matters to rows that have moved before",
    "mechanism.parameters.coef_norm": "where the clip decides, and no row has moved",
    "mechanism.parameters.fit_intercept": "the same",
    "mechanism.parameters.smoothing": "the same",
    "mechanism.parameters.step_size": "a shorter step of a hidden pass is a step that is short enough",
    "mechanism.parameters.columns.*": "which columns a query asks of; any public choice costs the same",
    "mechanism.parameters.edges.*": "any public grid",
    "mechanism.parameters.candidates": "any public candidates",
    "mechanism.parameters.candidates.*": "the same",
    "mechanism.parameters.q": "any quantile, where rows are replaced and not toggled",
    "mechanism.parameters.lipschitz": "slopes matter to rows that have moved before",
    "mechanism.parameters.weighted": "a replaced row costs as much either way",
}


WITHOUT_MOVES = {
    "steps.*.parameters.lipschitz",
    "steps.*.parameters.ramp",
    "steps.*.parameters.raw",
    "steps.*.parameters.share",
    "steps.*.parameters.conditional",
    "steps.*.parameters.rounding",
    "mechanism.parameters.coef_norm",
    "mechanism.parameters.fit_intercept",
    "mechanism.parameters.smoothing",
    "mechanism.parameters.lipschitz",
}


each_kind = pytest.mark.parametrize(
    "name", sorted(ZOO.keys() - {"seeded", "keyed", "with a ledger", "classes read", "nothing to do"})
)
some_kinds = pytest.mark.parametrize("name", ["gated, sum", "conditional", "three rows each", "transformer-ended"])


class TestEveryLeaf:
    @some_kinds
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
        for path, value in leaves(content):
            for other in other_values(value):
                place = pattern(path)
                pure = place == "delta" and content["total"]["parts"]  # what is pure holds at every delta
                harmless = pure or place in WORDS or place in WITHOUT_EFFECT or (place in WEAKER and other > value)
                harmful = not harmless or (moved and place in WITHOUT_MOVES)
                if harmful and path != ("digest",) and verify(sealed(put(content, path, other))):
                    unfound.add(place)
        assert not unfound, sorted(unfound)

    @some_kinds
    def test_the_replay_finds_every_removal_that_matters(self, name):
        content = document(name)
        unfound = {
            pattern(path)
            for path in elements(content)
            if path != ("digest",) and verify(sealed(without(content, path)))
        }
        # what was left at its default may go unsaid; a stage that changes no number may go: that is another pipeline
        unfound -= WORDS | {f"steps.*.parameters.{name}" for name in ("with_mean", "per_column", "raw")} | {"steps.*"}
        assert not unfound, sorted(unfound)
