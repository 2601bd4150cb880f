"""The certificate for a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import wrap

from ppdp.certificate.pages.markup import printable_record
from ppdp.certificate.pages.view import Noise, View, view_of
from ppdp.certificate.pages.wording import DIGEST, ON_TRUST
from ppdp.certificate.record import Gate, Record, Release
from ppdp.core.formula import GAUSSIAN

__all__ = ["render_text"]

WIDTH, NAME = 110, 12  # of a line, and of the name before it

_LOWERED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_POWER = re.compile(r"(?:([\d.]+)\u00a0×\u00a0)?10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)")


def render_text(c: Record) -> str:
    """Plain text of a certificate: what it leaves out if anything, then its status and all else.

    No name in it can move a cursor or begin a line.
    """
    view = view_of(printable_record(c))
    dash = "" if c.status == "UNCONDITIONAL" else " -"  # the first word is the status and nothing else
    lines = [*view.beside, f"{c.status}{dash} {view.title(f'({c.epsilon:g}, {c.delta:g})')}"]
    for name, words in _lines(view, view.record):
        first, *more = wrap(words, WIDTH - NAME - 2, break_long_words=False, break_on_hyphens=False) or [""]
        lines += [f"  {name:<{NAME}}{first}".rstrip(), *(" " * (NAME + 2) + line for line in more)]
    return "\n".join(lines)


def _lines(view: View, c: Record) -> Iterator[tuple[str, str]]:
    """Name and words, in the order of the page."""
    yield "", view.meaning
    yield from [("issued", view.issued)] if view.issued is not None else []
    yield from (("because", reason) for reason in c.reasons)
    yield from (("rests on", words) for words in view.rests_on)
    yield from (("warning", warning) for warning in c.warnings)
    yield from [("data", c.dataset)] if c.dataset else []
    yield "adjacency", view.neighbours
    yield "protects", view.protected
    yield "means", _typed(view.promise[0].lower() + view.promise[1:])
    yield from (("fact", words) for words in view.fact_lines)
    yield "trusted", ON_TRUST.replace("“", '"').replace("”", '"')
    for step, point in zip(c.steps, view.points[1:]):
        yield "stage", f"{step.title}: {point.distance.describe()}  [{step.page}]"
        for condition in step.conditions:
            yield "  tested" if condition.tested else "  ASSUMED", condition.statement
    yield from map(_released, view.noises)
    yield "total", f"mu {c.total.mu:.6g}"
    yield from (("and", _typed(words)) for words in view.parts)
    yield from (("covered", words) for words in view.covered)
    for words, plainly in view.not_covered:
        yield "not covered", words
        yield from [("", plainly)] if plainly else []
    yield "check", DIGEST
    yield "digest", c.digest


def _typed(words: str) -> str:
    """Figures as every terminal can show them: ``3.85e-4``."""
    powers = _POWER.sub(lambda found: f"{found[1] or 1}e{found[2].translate(_LOWERED)}", words)
    return powers.replace("\u00a0", " ").replace("\u202f", "")


def _released(noise: Noise) -> tuple[str, str]:
    """What left, with its noise."""
    one = noise.one
    cost = "" if one.mu is None else f"mu {one.mu:.4g}"
    if isinstance(one, Gate):
        rung = f" at rung {one.ladder.rung + 1} of {len(one.ladder.rungs)}" if one.ladder else ""
        paid = cost or f"{one.kind} noise {one.noise_scale:.4g}"
        return "gate", f"passed{rung}; {paid}, delta {one.delta:.3g} ({one.rule})"
    if isinstance(one, Release):
        return "released", f"{noise.phrase}: noise {one.noise_scale:.4g}, {cost}"
    law = "noise" if noise.law == GAUSSIAN else f"{noise.law}, scale"
    size = f"{'' if noise.times == 1 else f'{noise.times} x '}{noise.size} number{'' if noise.size == 1 else 's'}"
    return "mechanism", f"{noise.name} ({noise.note}): {size}, {law} {one.noise_scale:.4g}{cost and f', {cost}'}"
