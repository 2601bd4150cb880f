"""Certificates of every release verify for ever, and say what they said: ``docs/reference/certificate.md``."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from issue_golden import FIGURES, FOLDER, PUBLIC_KEY, SIGNED, issue_all

import ppdp
from ppdp import Certificate, Distance, PrivacyLoss
from ppdp.bounds import FORMULAS
from ppdp.core.formula import Formula

RELEASES = sorted(path.name for path in FOLDER.iterdir())
GOLDEN = {
    f"{release}/{file}": figures
    for release in RELEASES
    for file, figures in json.loads((FOLDER / release / FIGURES).read_text("utf-8")).items()
}


@cache
def certificate(path: str) -> Certificate:
    return Certificate.load(FOLDER / path)


def formulas(path: str) -> set[str]:
    """Every formula that a certificate rests on."""
    waiting, found = [json.loads((FOLDER / path).read_text("utf-8"))], set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict) and isinstance(node.get("formula"), str):
            found.add(node["formula"])
        if isinstance(node, (dict, list)):
            waiting += node.values() if isinstance(node, dict) else node
    return found


FORMULAS_AS_THEY_ARE = dict(FORMULAS)
USED = {name: path for path in GOLDEN for name in sorted(formulas(path))}


def test_the_first_release_is_kept_whole():
    assert "0.1.0" in RELEASES
    for release in RELEASES:
        files = {path.name for path in (FOLDER / release).glob("*.json")} - {FIGURES}
        assert files == {path.partition("/")[2] for path in GOLDEN if path.startswith(f"{release}/")}


def test_they_verify():
    for path in GOLDEN:
        result = certificate(path).verify()
        assert result, (path, result)


def test_they_say_what_they_said():
    for path, figures in GOLDEN.items():
        one, said = certificate(path), (figures["status"], figures["epsilon"], figures["delta"], figures["digest"])
        assert (one.status, one.epsilon, one.delta, one.digest) == said, path
        again = one.epsilon_at(1e-5)
        assert again == figures["epsilon_at_1e-5"] or again < figures["epsilon_at_1e-5"] * (1 + 1e-9), path


@pytest.mark.parametrize("release", RELEASES)
def test_its_signature_holds(release):
    one, folder = certificate(f"{release}/{SIGNED}.json"), FOLDER / release
    assert one.verify(signature=folder / f"{SIGNED}.json.sig", public_key=folder / PUBLIC_KEY)


def test_they_are_read_and_written_as_they_were():
    for path in GOLDEN:
        assert certificate(path).to_json() + "\n" == (FOLDER / path).read_text("utf-8"), path


def slightly_other(value: Any) -> Any:
    """Another value of a bound, by a millionth."""
    if isinstance(value, tuple):
        domain, distance = value
        return domain, Distance(**{**distance.to_dict(), "replaced": distance.replaced * (1 + 1e-6) + 1e-6})
    if isinstance(value, PrivacyLoss):
        return replace(value, parts=tuple(replace(part, count=part.count + 1) for part in value.parts))
    return value * (1 + 1e-6)


def otherwise(formula: Formula) -> Callable[..., Any]:
    return lambda *facts, **parameters: slightly_other(formula(*facts, **parameters))


def test_a_formula_that_gives_another_value_under_its_id_is_noticed(monkeypatch):
    """So a formula changes only by a new id, and the old one stays for the certificates that name it."""
    for name, path in USED.items():
        one, formula = certificate(path), FORMULAS_AS_THEY_ARE[name]
        with monkeypatch.context() as patched:
            patched.setitem(FORMULAS, name, replace(formula, function=otherwise(formula)))
            assert not one.verify(), name


def test_a_formula_that_is_gone_is_noticed(monkeypatch):
    for name, path in USED.items():
        one = certificate(path)
        with monkeypatch.context() as patched:
            patched.delitem(FORMULAS, name)
            assert not one.verify(), name


def test_a_release_is_issued_once(monkeypatch):
    monkeypatch.setattr(ppdp, "__version__", "0.1.0")
    with pytest.raises(SystemExit, match="issued once"):
        issue_all()
