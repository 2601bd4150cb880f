"""A certificate at a glance: what a terminal prints and a notebook shows, in at most twelve lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from textwrap import wrap

from ppdp.certificate.pages.meaning import what_left
from ppdp.certificate.pages.summary import left_out_in_short
from ppdp.certificate.pages.view import View

LINES, WIDTH, NAME = 12, 110, 13  # at most so many, of so many letters, of which the first are the name's
MAY_BE_CUT = "not covered", "released", "rests on", "warning", "because", "protects"  # of equally long ones the first
MARKED = "because", "warning"  # not to be missed
CUT = " ..."
PROVIDED = {
    "CONDITIONAL": "only if what is assumed holds: ",
    "SEEDED": "nobody, since the noise came from a seed; with secret noise it would be ",
}
REST = 'to_text(full=True); save("page.html") for people; `ppdp verify` computes all of it again'
TAKEN = re.compile(r" If (any was|they were) taken from these rows, the promise fails\.")


def at_a_glance(view: View) -> list[tuple[str, list[str]]]:
    """Names and their lines behind the headline; the longest are cut until all fit, and say so."""
    c = view.record
    left = [words.replace("the noisy", "noisy").replace(" for the stage", " for") for words in what_left(c)]
    said = {
        "because": " ".join(c.reasons),
        "warning": " ".join(view.warnings),
        "protects": f"{PROVIDED.get(c.status, '')}{c.neighbours.unit} ({view.neighbours})",
        "released": ", ".join(left or ["this certificate"]),
        "rests on": TAKEN.sub("", " ".join(view.rests_on)),
        "not covered": "; ".join(left_out_in_short(view, "if not charged to its ledger")),
        "digest": c.digest,
        "the rest": REST,
    }
    lines = {name: _wrapped(words) for name, words in said.items() if words}
    room = LINES - 1 - len(view.beside)
    while sum(map(len, lines.values())) > room and (longest := _longest(lines)):
        lines[longest] = _cut(lines[longest])
    return list(lines.items())


def _wrapped(words: str) -> list[str]:
    return wrap(words, WIDTH - NAME - 2, break_long_words=False, break_on_hyphens=False)


def _longest(lines: dict[str, list[str]]) -> str | None:
    able = [name for name in MAY_BE_CUT if len(lines.get(name, ())) > 1]
    return max(able, key=lambda name: len(lines[name]), default=None)


def _cut(lines: Sequence[str]) -> list[str]:
    """Without the last line, which the one before it tells."""
    *first, last = lines[:-1]
    last = last.removesuffix(CUT)
    while len(last) + len(CUT) > WIDTH - NAME - 2 and " " in last:
        last = last.rpartition(" ")[0]
    return [*first, last + CUT]
