"""The certificate as the section "Privacy" of a model card, in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ppdp.certificate.markup import figure, printable
from ppdp.certificate.meaning import FALSE_ALARMS, detection_power, reservation, rounded_up, status_in_words
from ppdp.certificate.verify import verify
from ppdp.certificate.wording import ON_TRUST, protected_in_words, shown_facts, title
from ppdp.exceptions import CertificateError, InvalidParameter

__all__ = ["HEADING", "add_to_card", "render_card"]

Document = Mapping[str, Any]

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


def render_card(c: Document) -> str:
    """The section without its heading; first word the status.

    Parameters
    ----------
    c : mapping
        The document.

    Raises
    ------
    CertificateError
        If the certificate does not hold: nothing is said in its name.
    """
    if not verify(dict(c)):
        raise CertificateError("the certificate does not hold, so it gets no model card.", fix="ask `ppdp verify` why.")
    c = printable(c)
    claim = f"(ε, δ) = ({figure(c['epsilon'], upward=True)}, {figure(c['delta'], upward=True)})"
    reach = "" if c["status"] == "SEEDED" else ": of everything that was released, with all stages in front of it"
    facts = [
        ("ε", figure(c["epsilon"], upward=True)),
        ("δ", figure(c["delta"], upward=True)),
        ("Neighbouring datasets", c["adjacency"]),
        ("Unit of privacy", protected_in_words(c)),
        *([("Data", c["dataset"])] if c["dataset"] else []),
        ("Stages", " > ".join(f"{step['name']} ({step['class']}, {step['way']})" for step in c["steps"])),
        ("Digest", c["digest"]),
    ]
    parts = [
        f"**{_plain(c['status'])}**: {title(c, claim)}{reach}. {status_in_words(c)}",
        _items(c["reasons"]),
        "| | |\n|---|---|\n" + "\n".join(f"| {name} | {_plain(value)} |" for name, value in facts),
        _meaning(c),
        _items((f"{name} = {value} ({origin})" for name, value, origin in shown_facts(c)), "Public facts:"),
        ON_TRUST,
        _items(c["warnings"], "Warnings:"),
        _items(c["not_covered"], "Not covered:"),
        "`ppdp verify certificate.json` computes every figure again, without the data. The digest is that of the"
        " certificate: it finds any change to it, but does not say who issued it.",
    ]
    return "\n\n".join(part for part in parts if part)


def _meaning(c: Document) -> str:
    """The guarantee as the power of an attacker's test."""
    powers = " and ".join(f"{rounded_up(detection_power(c, a))} at {100 * a:g} % false alarms" for a in FALSE_ALARMS)
    words = (
        f"{reservation(c)}whoever knows every row but one person's, and sees all that was released, detects which of"
        f" two versions of that person's data was used at most this often: {powers}."
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
