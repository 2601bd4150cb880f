"""The certificate as the section "Privacy" of a model card, in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ppdp.certificate.pages.markup import printable_record
from ppdp.certificate.pages.meaning import powers_in_words
from ppdp.certificate.pages.view import view_of
from ppdp.certificate.pages.wording import DIGEST, ON_TRUST
from ppdp.certificate.record import Record
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
    view = view_of(printable_record(c))
    c = view.record
    claim = f"(ε, δ) = ({figure(c.epsilon, upward=True)}, {figure(c.delta, upward=True)})"
    reach = "" if c.status == "SEEDED" else ": of everything that was released, with all stages in front of it"
    facts = [
        ("ε", figure(c.epsilon, upward=True)),
        ("δ", figure(c.delta, upward=True)),
        ("Neighbouring datasets", view.neighbours),
        ("Unit of privacy", view.protected),
        *([("Issued", view.issued)] if view.issued else []),
        *([("Data", c.dataset)] if c.dataset else []),
        ("Stages", " > ".join(step.title for step in c.steps)),
        ("Digest", c.digest),
    ]
    parts = [
        _items(view.beside),
        f"**{_plain(c.status)}**: {view.title(claim)}{reach}. {view.meaning}",
        _items(c.reasons),
        _items(view.rests_on, "It rests on:"),
        "| | |\n|---|---|\n" + "\n".join(f"| {name} | {_plain(value)} |" for name, value in facts),
        _meaning(c, view.proviso),
        _items(view.fact_lines, "Public facts:"),
        ON_TRUST,
        _items(c.warnings, "Warnings:"),
        _items(c.not_covered, "Not covered:"),
        f"`ppdp verify certificate.json` computes every figure again, without the data. {DIGEST}",
    ]
    return "\n\n".join(part for part in parts if part)


def _meaning(c: Record, proviso: str) -> str:
    """The guarantee as the power of an attacker's test."""
    words = (
        f"{proviso}whoever knows every row but one person's, and sees all that was released, and is given two possible"
        f" records of that person, guesses which of them was used at most this often: {powers_in_words(c, ' ')}."
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
