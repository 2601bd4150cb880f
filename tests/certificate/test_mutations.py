"""A few hundred mutants of certificates; ``python benchmarks/mutations.py`` judges ten thousand."""

from __future__ import annotations

import copy
import json
import random
import sys
from collections import Counter

import pytest
from mutants import ATTACKERS, NAMES, Mutant, issued, mutant
from text_mutants import NEUTRAL, TEXT_CHANGES
from truth import VERDICTS, judge, lies
from zoo import sealed

from ppdp import Certificate
from ppdp.certificate import verify
from ppdp.certificate.canonical import strict_json
from ppdp.exceptions import CertificateError

SLOW = {name for name in NAMES if issued(name)["total"]["parts"]}  # their accounting takes a while
COUNT = 300


def test_none_is_accepted_that_means_something_else_and_none_crashes():
    found = Counter()
    for number in range(COUNT):
        one = mutant(1, number, SLOW)
        verdict, why = judge(one)
        assert verdict != "WRONG", (number, one.original, one.attacker, one.changes, why)
        found[one.attacker, verdict] += 1
    assert {attacker for attacker, _ in found} == set(ATTACKERS)
    assert {verdict for _, verdict in found} >= {"no certificate", "refused", "the same", "true of another run"}
    assert found["plain", "refused"] > COUNT / 5  # most mutants are no neutral ones
    assert found["sealed", "refused"] > COUNT / 8


def test_a_mutant_can_be_made_again():
    one, again = mutant(0, 1234), mutant(0, 1234)
    assert (one.original, one.changes) == (again.original, again.changes)
    assert repr(one.content) == repr(again.content)


LIES = {
    "a smaller epsilon": lambda c: c.update(epsilon=2.9),
    "another distance": lambda c: c["steps"][1]["distance"].update(replaced=0.5),
    "less noise": lambda c: c["mechanism"].update(noise_scale=c["mechanism"]["noise_scale"] * 0.99),
    "a smaller cost": lambda c: c["total"].update(mu=c["total"]["mu"] * 0.99),
    "another way": lambda c: c["steps"][2].update(way="public"),
    "a release that was never made": lambda c: c["releases"][0].update(serves=["dedup"]),
    "a delta that means nothing": lambda c: c.update(delta=0.5),
}


@pytest.mark.parametrize("lie", LIES)
def test_the_oracle_is_no_yes_man(lie):
    content = issued("unconditional")
    assert lies(content) == []
    LIES[lie](content)
    assert lies(content)


@pytest.mark.parametrize("name", ["gated-max", "conditional"])
def test_the_oracle_asks_for_what_is_assumed(name):
    content = issued(name)
    content.update(status="UNCONDITIONAL", reasons=[], gate=None)
    assert any("nothing tests" in lie for lie in lies(content))
    for step in content["steps"]:
        step["conditions"] = []
    assert any("it assumes" in lie for lie in lies(content))


def test_a_wrong_yes_is_seen(monkeypatch):
    """The judge would notice a verification that believes everything."""
    monkeypatch.setattr("truth.verify", lambda content: True)
    changed = issued("seeded") | {"dataset": "other"}
    assert judge(Mutant("seeded", "plain", (), changed))[0] == "WRONG"
    forged = sealed(issued("seeded") | {"epsilon": 0.1})
    assert judge(Mutant("seeded", "sealed", (), forged))[0] == "WRONG"
    assert VERDICTS[-1] == "WRONG"


@pytest.mark.parametrize("change", NEUTRAL, ids=lambda change: change.__name__)
def test_other_characters_for_the_same(change):
    assert change in TEXT_CHANGES
    text = json.dumps(issued("gated-sum"), indent=2)
    for seed in range(5):
        assert Certificate.from_json(change(random.Random(seed), text)).verify()


# What the mutants have found, kept as it was found.


@pytest.mark.parametrize("number", ["1e400", "-1e400", "9" * 400 + ".0"])
def test_a_number_that_is_read_as_infinity_is_none(number):
    text = json.dumps(issued("seeded"))
    with pytest.raises(CertificateError, match="not a JSON document"):
        Certificate.from_json(text.replace('"delta": 1e-06', f'"delta": {number}'))
    with pytest.raises(ValueError, match="infinity"):
        strict_json(number)


@pytest.mark.parametrize("place", ["radius", "total"])
def test_rows_that_do_not_move_have_no_distance_at_all(place):
    """It once verified, and could not be shown."""
    content = issued("seeded")
    content["steps"][0]["distance"][place] = 5e-324
    assert not verify(sealed(content))


@pytest.mark.parametrize("place", ["mass", "one_sided"])
def test_neighbours_are_as_far_apart_as_they_are(place):
    """What is never taken above its ceiling was once recorded above it."""
    content = issued("seeded")
    content["entrance"]["distance"][place] *= 2
    assert not verify(sealed(content))


def test_a_domain_is_written_as_it_is_read():
    content = issued("row-map")
    content["entrance"]["domain"]["max_missing"] = 10**9
    assert not verify(sealed(content))


@pytest.mark.parametrize("value", [1.0, True])
def test_a_count_is_an_integer(value):
    content = issued("seeded")
    content["steps"][0]["domain"]["rows_per_unit"] = value
    assert not verify(sealed(content))


def test_whatever_breaks_a_formula_is_a_no(monkeypatch):
    """Memory that is exhausted, a solver that does not converge, a warning that is an error."""
    for error in (MemoryError, RuntimeError, RuntimeWarning, AssertionError):

        def broken(*_, error=error):
            raise error("31337")

        monkeypatch.setattr(sys.modules["ppdp.certificate.replay.verify"], "_derive", broken)
        assert verify(issued("seeded")).problems == (f"the derivation cannot be replayed ({error.__name__}).",)


def test_what_is_not_a_number_is_never_small_enough(monkeypatch):
    monkeypatch.setattr("ppdp.privacy.loss.PrivacyLoss.epsilon", lambda *_: float("nan"))
    assert not verify(issued("seeded"))


def test_what_nobody_issued_is_not_accounted_for(monkeypatch):
    """It could take any time and memory."""
    content = copy.deepcopy(issued("poisson-samples"))
    content["mechanism"]["parameters"]["steps"] *= 10**6
    monkeypatch.setattr("ppdp.privacy.loss.PrivacyLoss.epsilon", None)
    problems = verify(sealed(content)).problems
    assert any("total.parts" in problem for problem in problems)
    assert not any("replayed" in problem for problem in problems)
