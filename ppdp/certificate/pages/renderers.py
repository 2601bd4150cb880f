"""What people are shown of a document: what it says if it holds, else only that it does not and why.

Nothing is computed from, and no word is taken out of, a document that does not hold.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from textwrap import wrap
from typing import Any

from ppdp.certificate.pages.derivation import distance_bars
from ppdp.certificate.pages.interpretation import powers_in_words
from ppdp.certificate.pages.statement import WORDS, Topic, printable
from ppdp.certificate.pages.statements import View, excluded_in_short, view_of, what_left
from ppdp.certificate.replay.verify import Verification
from ppdp.exceptions import InvalidParameter

HEADING = "Privacy"  # of the section of a model card, in Markdown
REFUSED = "DOES NOT HOLD"
MEANING = "It does not verify, so it promises nothing, and nothing of what it says is shown."
MOST_PROBLEMS, MOST_LETTERS = 20, 300

LINES, WIDTH = 12, 110  # of a certificate at a glance, and of a line of text
NAME, NAME_AT_A_GLANCE = 12, 13  # letters of the name before a line
MAY_BE_CUT = "not covered", "released", "rests on", "warning", "because", "protects"  # of equally long ones the first
IMPORTANT = "because", "warning"
CUT = " ..."
REST = 'to_text(full=True) or `ppdp show --full`; page: save("page.html"); to check: `ppdp verify FILE`'

_LOWERED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_POWER = re.compile(r"(?:([\d.]+)\u00a0×\u00a0)?10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)")


def text(result: Verification, *, full: bool = False) -> str:
    """For a terminal, at a glance or in full."""
    if result.record is not None:
        view = view_of(result.record)
        return render_text(view) if full else render_brief(view)
    return "\n".join([f"{REFUSED} - {MEANING}", *(f"  - {problem}" for problem in _problems(result))])


def fragment(result: Verification) -> str:
    """For a notebook."""
    if result.record is not None:
        return render_fragment(view_of(result.record))
    refused = {"c": None, "status": REFUSED, "meaning": MEANING, "problems": _problems(result)}
    return rendered("notebook.html", {"Topic": Topic, "texts": lambda *_: [], **refused})


def page(result: Verification) -> str:
    """As one self-contained page, without scripts and without anything to load."""
    from ppdp.certificate.pages.page import render_page
    from ppdp.certificate.pages.templating import html_page, render  # not above: Jinja is for what is shown

    if result.record is not None:
        return render_page(view_of(result.record), result.signer)
    context = {"refused": REFUSED, "meaning": MEANING, "problems": _problems(result)}
    return html_page("A certificate that DOES NOT HOLD", render("refused.html", context))


def rendered(template: str, context: dict[str, Any]) -> str:
    """A template with its values."""
    from ppdp.certificate.pages.templating import render

    return str(render(template, context))


def _problems(result: Verification) -> Sequence[str]:
    """The first of what is wrong; its author chose some of these words."""
    shown = [printable(problem[:MOST_LETTERS]) for problem in result.problems[:MOST_PROBLEMS]]
    more = len(result.problems) - len(shown)
    return [*shown, f"and {more} more"] if more > 0 else shown


def render_fragment(view: View) -> str:
    """What a notebook shows: status, guarantee, stages, noise. No class, id, style sheet or script."""
    glance = [(name, " ".join(lines), name in IMPORTANT) for name, lines in at_a_glance(view)]
    shown = {"glance": glance, "bars": distance_bars(view.points), "status": view.record.status}
    return rendered("notebook.html", {**view.context, **shown})


def at_a_glance(view: View) -> list[tuple[str, list[str]]]:
    """Names and their lines behind the headline; of the longest the first parts, and how many more there are."""
    c = view.record
    protects = f"{WORDS['provided'][c.status]}{c.neighbours.unit} ({' '.join(view.texts(Topic.NEIGHBOURS))})"
    said: dict[str, tuple[str, Sequence[str]]] = {
        "because": ("; ", c.reasons),
        "warning": ("; ", view.texts(Topic.WARNING)),
        "protects": ("", [protects]),
        "released": (", ", what_left(c, article="")[::-1] or ["this certificate"]),  # the model first
        "rests on": (" ", [s.words for s in view.statements if s.topic in (Topic.RESTS_ON, Topic.READ_OFF)]),
        "not covered": ("; ", excluded_in_short(c)),
        "digest": ("", [c.digest]),
        "the rest": ("", [REST]),
    }
    lines = {name: _fitted(*parts) for name, parts in said.items() if parts[1]}
    room = LINES - 1 - len(view.texts(Topic.BESIDE))
    able = [name for name in MAY_BE_CUT if name in lines]
    while sum(map(len, lines.values())) > room and max((len(lines[name]) for name in able), default=0) > 1:
        longest = max(able, key=lambda name: len(lines[name]))
        lines[longest] = _fitted(*said[longest], len(lines[longest]) - 1)
    return list(lines.items())


def _fitted(joint: str, parts: Sequence[str], most: int | None = None) -> list[str]:
    """The first of these parts in at most so many lines, and how many more there are; the first alone may be cut."""
    width = WIDTH - NAME_AT_A_GLANCE - 2
    for shown in range(len(parts), 0, -1):
        more = f" (and {len(parts) - shown} more)" if shown < len(parts) else ""
        lines = _wrapped(joint.join(parts[:shown]) + more, width)
        if most is None or len(lines) <= most:
            return lines
    return _wrapped(joint.join(parts), width, most, CUT + (f" ({len(parts)} in all)" if len(parts) > 1 else ""))


def _wrapped(words: str, width: int, most: int | None = None, cut: str = "") -> list[str]:
    return wrap(words, width, break_long_words=False, break_on_hyphens=False, max_lines=most, placeholder=cut)


def render_brief(view: View) -> str:
    """Plain text of a certificate, at a glance."""
    lines = _headline(view)
    for name, of_name in at_a_glance(view):
        lines += _columns(name, map(_typed, of_name), NAME_AT_A_GLANCE)
    return "\n".join(lines)


def render_text(view: View) -> str:
    """Plain text of all of a certificate, in which no name can move a cursor or begin a line."""
    lines = _headline(view)
    for statement in view.statements:
        if statement.topic is not Topic.BESIDE:
            words = _wrapped(_typed(statement.text), WIDTH - NAME - 2) or [""]
            lines += _columns(statement.topic.value.rstrip(), words, NAME)
            lines += _columns("", _wrapped(statement.plain, WIDTH - NAME - 2), NAME)
    return "\n".join(lines)


def _headline(view: View) -> list[str]:
    """What the claim leaves out if anything, then its status: the first word is the status and nothing else."""
    c = view.record
    dash = "" if c.status == "UNCONDITIONAL" else " -"
    return [*view.texts(Topic.BESIDE), f"{c.status}{dash} {view.claim(f'({c.epsilon:g}, {c.delta:g})')}"]


def _columns(name: str, lines: Any, width: int) -> list[str]:
    """A name before the first of these lines."""
    return [f"  {'' if i else name:<{width}}{line}".rstrip() for i, line in enumerate(lines)]


def _typed(words: str) -> str:
    """Figures and quotation marks as every terminal can show them: ``3.85e-4``."""
    powers = _POWER.sub(lambda found: f"{found[1] or 1}e{found[2].translate(_LOWERED)}", words)
    return powers.replace("\u00a0", " ").replace("\u202f", "").replace("“", '"').replace("”", '"')


def add_to_card(card: Any, text: str) -> None:
    """Put the section into a skops.card.Card, in the place of an earlier one."""
    if isinstance(card, type) or not callable(getattr(card, "add", None)):
        what = f"card must be a skops.card.Card or None, got {type(card).__name__}."
        raise InvalidParameter(what, fix="pip install ppdp[skops], and skops.card.Card(pipe).")
    card.add(**{HEADING: text})


def render_card(view: View) -> str:
    """The section without its heading: what the claim leaves out if anything, then its status and all else."""
    context = {**view.context, "detected": powers_in_words(view.record)}
    return re.sub(r"\n{3,}", "\n\n", rendered("card.md", context)).strip()
