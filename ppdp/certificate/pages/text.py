"""The certificate for a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import wrap

from ppdp.certificate.issued import account_in_words, left_out
from ppdp.certificate.pages.losses import law_of, only_the_last, part_in_words
from ppdp.certificate.pages.markup import printable_record
from ppdp.certificate.pages.meaning import (
    FALSE_ALARMS,
    covered_in_words,
    detection_power,
    reservation,
    rounded_up,
    status_in_words,
)
from ppdp.certificate.pages.wording import (
    DIGEST,
    ON_TRUST,
    besides,
    neighbours_in_words,
    protected_in_words,
    shown_facts,
    title,
)
from ppdp.certificate.record import Mechanism, Record
from ppdp.certificate.replay.trust import rests_on
from ppdp.core.distance import Distance
from ppdp.core.figures import figure
from ppdp.core.formula import GAUSSIAN

__all__ = ["render_text"]

WIDTH, NAME = 110, 12  # of a line, and of the name before it

_LOWERED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_POWER = re.compile(r"(?:([\d.]+)\u00a0×\u00a0)?10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)")


def render_text(c: Record) -> str:
    """Plain text of a certificate: what it leaves out if anything, then its status and all else.

    No name in it can move a cursor or begin a line.
    """
    c = printable_record(c)
    dash = "" if c.status == "UNCONDITIONAL" else " -"  # the first word is the status and nothing else
    claim = f"({c.epsilon:g}, {c.delta:g})"
    lines = [*left_out(c), f"{c.status}{dash} {title(c, claim)}"]
    for name, words in _lines(c):
        first, *more = wrap(words, WIDTH - NAME - 2, break_long_words=False, break_on_hyphens=False) or [""]
        lines += [f"  {name:<{NAME}}{first}".rstrip(), *(" " * (NAME + 2) + line for line in more)]
    return "\n".join(lines)


def _lines(c: Record) -> Iterator[tuple[str, str]]:
    """Name and words, in the order of the page."""
    yield "", status_in_words(c)
    issued = account_in_words(c)
    yield from [("issued", issued)] if issued is not None else []
    yield from (("because", reason) for reason in c.reasons)
    yield from (("rests on", words) for words in rests_on(c))
    yield from (("warning", warning) for warning in c.warnings)
    yield from [("data", c.dataset)] if c.dataset else []
    yield "adjacency", neighbours_in_words(c)
    yield "protects", protected_in_words(c)
    yield "means", _power(c)
    yield from (("fact", f"{name} = {value} ({origin})") for name, value, origin in shown_facts(c))
    yield "trusted", ON_TRUST.replace("“", '"').replace("”", '"')
    for step in c.steps:
        distance = Distance.from_dict(step.distance).describe()
        yield "stage", f"{step.name} ({step.class_}, {step.way}): {distance}  [{step.page}]"
        for condition in step.conditions:
            yield "  tested" if condition.tested else "  ASSUMED", condition.statement
    yield from _released(c)
    yield "total", f"mu {c.total.mu:.6g}"
    yield from (("and", _typed(part_in_words(part))) for part in c.total.parts)
    yield from (("covered", words) for words in covered_in_words(c))
    for words in c.not_covered:
        yield "not covered", words
        yield from [("", besides(words))] if besides(words) else []
    yield "check", DIGEST
    yield "digest", c.digest


def _power(c: Record) -> str:
    """The guarantee as the power of an attacker's test."""
    told = " and ".join(
        f"{rounded_up(detection_power(c, a))} at {figure(100 * a)} % false alarms" for a in FALSE_ALARMS
    )
    promise = _typed(f"{reservation(c)}a test for one person's rows detects at most {told}")
    return promise[0].lower() + promise[1:]


def _typed(words: str) -> str:
    """Figures as every terminal can show them: ``3.85e-4``."""
    powers = _POWER.sub(lambda found: f"{found[1] or 1}e{found[2].translate(_LOWERED)}", words)
    return powers.replace("\u00a0", " ").replace("\u202f", "")


def _released(c: Record) -> Iterator[tuple[str, str]]:
    """Everything that left, with its noise."""
    for release in c.releases:
        served = ", ".join(release.serves)
        yield "released", f"{release.statistic} for {served}: noise {release.noise_scale:.4g}, mu {release.mu:.4g}"
    if c.gate:
        g = c.gate
        noise = f"mu {g.mu:.4g}" if g.mu is not None else f"{g.kind} noise {g.noise_scale:.4g}"
        rung = f" at rung {g.ladder.rung + 1} of {len(g.ladder.rungs)}" if g.ladder else ""
        yield "gate", f"passed{rung}; {noise}, delta {g.delta:.3g} ({g.rule})"
    if c.mechanism:
        m = c.mechanism
        law = "noise" if law_of(m) == GAUSSIAN else f"{law_of(m)}, scale"
        cost = f", mu {m.mu:.4g}" if m.mu is not None else ""
        yield "mechanism", f"{m.name} ({m.class_}): {_size(m)}, {law} {m.noise_scale:.4g}{cost}"


def _size(m: Mechanism) -> str:
    times = "" if m.steps == 1 or only_the_last(m) else f"{m.steps} x "
    return f"{times}{m.size} number{'' if m.size == 1 else 's'}"
