"""The certificate as the section "Privacy" of a model card, in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ppdp.certificate.issued import account_in_words, left_out
from ppdp.certificate.pages.markup import printable_record
from ppdp.certificate.pages.meaning import FALSE_ALARMS, detection_power, reservation, rounded_up, status_in_words
from ppdp.certificate.pages.wording import DIGEST, ON_TRUST, neighbours_in_words, protected_in_words, shown_facts, title
from ppdp.certificate.record import Record
from ppdp.certificate.replay.trust import rests_on
from ppdp.core.figures import figure
from ppdp.exceptions import InvalidParameter

__all__ = ["HEADING", "add_to_card", "render_card"]


HEADING = "Privacy"
_MARKS = re.compile(r"[\\`*_\[\]<>|&#~$]|^[-+=]")
_NUMBERED = re.compile(r"^(\d+)([.)])(?=\s|$)")
_LINKED = re.compile(r"@|/(?=/)|www(?=\.)|:(?=[\w+-]+:)", re.IGNORECASE)
_JOINER = "\u2060"


def add_to_card(card: Any, text: str) -> None:
    """Put the section into a model card, in the place of an earlier one.

    Parameters
    ----------
    card : skops.card.Card
        The card; it is changed.
    text : str
        What :func:`render_card` wrote.

    Raises
    ------
    InvalidParameter
        If it is no such card.
    """
    if isinstance(card, type) or not callable(getattr(card, "add", None)):
        raise InvalidParameter(
            f"card must be a skops.card.Card or None, got {type(card).__name__}.",
            fix="pip install ppdp[skops], and skops.card.Card(pipe).",
        )
    card.add(**{HEADING: text})


def render_card(c: Record) -> str:
    """The section without its heading: what the claim leaves out if anything, then its status and all else.

    Parameters
    ----------
    c : Record
        The certificate, which holds.
    """
    c = printable_record(c)
    claim = f"(ε, δ) = ({figure(c.epsilon, upward=True)}, {figure(c.delta, upward=True)})"
    reach = "" if c.status == "SEEDED" else ": of everything that was released, with all stages in front of it"
    issued = account_in_words(c)
    facts = [
        ("ε", figure(c.epsilon, upward=True)),
        ("δ", figure(c.delta, upward=True)),
        ("Neighbouring datasets", neighbours_in_words(c)),
        ("Unit of privacy", protected_in_words(c)),
        *([("Issued", issued)] if issued else []),
        *([("Data", c.dataset)] if c.dataset else []),
        ("Stages", " > ".join(f"{step.name} ({step.class_}, {step.way})" for step in c.steps)),
        ("Digest", c.digest),
    ]
    parts = [
        _items(left_out(c)),
        f"**{_plain(c.status)}**: {title(c, claim)}{reach}. {status_in_words(c)}",
        _items(c.reasons),
        _items(rests_on(c), "It rests on:"),
        "| | |\n|---|---|\n" + "\n".join(f"| {name} | {_plain(value)} |" for name, value in facts),
        _meaning(c),
        _items((f"{name} = {value} ({origin})" for name, value, origin in shown_facts(c)), "Public facts:"),
        ON_TRUST,
        _items(c.warnings, "Warnings:"),
        _items(c.not_covered, "Not covered:"),
        f"`ppdp verify certificate.json` computes every figure again, without the data. {DIGEST}",
    ]
    return "\n\n".join(part for part in parts if part)


def _meaning(c: Record) -> str:
    """The guarantee as the power of an attacker's test."""
    powers = " and ".join(f"{rounded_up(detection_power(c, a))} at {100 * a:g} % false alarms" for a in FALSE_ALARMS)
    words = (
        f"{reservation(c)}whoever knows every row but one person's, and sees all that was released, and is given two"
        f" possible records of that person, guesses which of them was used at most this often: {powers}."
    )
    return words[0].upper() + words[1:]


def _items(words: Iterable[str], title: str = "") -> str:
    lines = [f"* {_plain(one)}" for one in words]
    return "\n".join([*([title, ""] if title else []), *lines]) if lines else ""


def _plain(text: Any) -> str:
    """Text that no Markdown reader takes for markup, in one line.

    Readers look for addresses, names and emoji after escapes and entities are resolved, so only a character in between
    stops them: a word joiner, which has no width.
    """
    words = _LINKED.sub(rf"\g<0>{_JOINER}", " ".join(str(text).split()))
    words = _NUMBERED.sub(r"\1\\\2", _MARKS.sub(r"\\\g<0>", words))
    return words.replace(_JOINER, f"&#{ord(_JOINER)};")
