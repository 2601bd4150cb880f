"""What people are shown of a document: what it says if it holds, else only that it does not and why.

Nothing is computed from, and no word is taken out of, a document that does not hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from textwrap import wrap
from typing import Any
from xml.etree.ElementTree import Element

from ppdp.certificate.issued import UNPROVED, account_in_words
from ppdp.certificate.pages import brief
from ppdp.certificate.pages.brief import at_a_glance
from ppdp.certificate.pages.drawing import distance_bars
from ppdp.certificate.pages.markup import begun, bound, element, html_page, items, number, p, printable, to_html
from ppdp.certificate.pages.meaning import DIGEST, ON_TRUST, powers_in_words
from ppdp.certificate.pages.sections import render_page
from ppdp.certificate.pages.view import Noise, View, printable_view, spreads
from ppdp.certificate.record import Diagnostics, Gate, Record, Release
from ppdp.certificate.replay.verify import Verification
from ppdp.core.figures import figure
from ppdp.core.formula import GAUSSIAN
from ppdp.exceptions import InvalidParameter

HEADING = "Privacy"  # of the section of a model card, in Markdown
_MARKS = re.compile(r"[\\`*_\[\]<>|&#~$]|^[-+=]")
_NUMBERED = re.compile(r"^(\d+)([.)])(?=\s|$)")
_LINKED = re.compile(r"@|/(?=/)|www(?=\.)|:(?=[\w+-]+:)", re.IGNORECASE)
_JOINER = "\u2060"
WIDTH, NAME = 110, 12  # of a line, and of the name before it

_LOWERED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_POWER = re.compile(r"(?:([\d.]+)\u00a0×\u00a0)?10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)")
REFUSED = "DOES NOT HOLD"
MEANING = "It does not verify, so it promises nothing, and nothing of what it says is shown."
MOST_PROBLEMS, MOST_LETTERS = 20, 300

# In a notebook every style stands in the element itself.
STATUS = {"UNCONDITIONAL": "#1d7048", "CONDITIONAL": "#8f5f00"}  # white on it is readable
BAD = "#b3261e"
BOX = (
    "box-sizing:border-box;max-width:46rem;margin:.25rem 0;padding:.9rem 1.1rem;border:1px solid rgba(128,128,128,.4);"
    "border-radius:6px;font:13px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;"
    "font-variant-numeric:tabular-nums;color:inherit;overflow-wrap:anywhere"
)
BADGE = "display:inline-block;padding:.05rem .5rem;border-radius:3px;color:#fff;font-size:11px;letter-spacing:.08em"
MARK = "margin:.35rem 0 0;padding-left:.7rem;border-left:3px solid #c9852b"
SOFT = "margin:.35rem 0 0;opacity:.72"
PLAIN = "border:0;background:none;text-align:left;vertical-align:top;white-space:normal;max-width:none"
PARTS = {
    "bar": "display:block;width:100%;height:8px;margin:6px 0 2px",
    "track": "fill:currentColor;opacity:.12",
    "unmatched": "fill:#5b8db8",
    "moved": "fill:#d08a4e",
    "before": "fill:currentColor",
}

div = partial(element, "div")


def text(found: Verification, *, full: bool = False) -> str:
    """For a terminal, at a glance or in full."""
    if found.record is not None:
        view = printable_view(found.record)
        return render_text(view) if full else render_brief(view)
    return "\n".join([f"{REFUSED} - {MEANING}", *(f"  - {problem}" for problem in _problems(found))])


def fragment(found: Verification) -> str:
    """For a notebook."""
    if found.record is not None:
        return render_fragment(printable_view(found.record))
    head = div(_badge(REFUSED))
    return to_html(div(head, div(MEANING, style=SOFT), *_marked(_problems(found)), style=BOX))


def page(found: Verification) -> str:
    """As one self-contained page, without scripts and without anything to load."""
    if found.record is not None:
        return render_page(printable_view(found.record), found.signer)
    title, lede = element("h1", element("span", REFUSED, class_="status")), p(MEANING, class_="lede")
    header = element("header", title, lede, items(_problems(found), class_="reasons"))
    return html_page("A certificate that DOES NOT HOLD", element("main", header, class_="refused"))


def _problems(found: Verification) -> Sequence[str]:
    """The first of what is wrong; whoever wrote the document chose some of these words."""
    shown = [printable(problem[:MOST_LETTERS]) for problem in found.problems[:MOST_PROBLEMS]]
    more = len(found.problems) - len(shown)
    return [*shown, f"and {more} more"] if more > 0 else shown


def render_fragment(view: View) -> str:
    """What a notebook shows: status, guarantee, stages, noise. No class, id, style sheet or script.

    Whatever text the certificate holds is shown as text.
    """
    c = view.record
    claim = (f" {view.before}(ε, δ) = (", bound(c.epsilon), ", ", bound(c.delta), f"){view.after}")
    glance = [(name, " ".join(lines)) for name, lines in at_a_glance(view)]
    box = div(
        *_marked(view.beside),
        div(_badge(c.status), *claim),
        *(
            div(element("strong", begun(name)), f": {words}", style=MARK if name in brief.MARKED else SOFT)
            for name, words in glance
        ),
        element("details", element("summary", "All of it", style="cursor:pointer"), *_in_full(view), style=SOFT),
        style=BOX,
    )
    return to_html(box)


def _in_full(view: View) -> list[Element]:
    """What stands folded behind the glance."""
    c = view.record
    logarithmic = spreads([point.rows for point in view.points])
    parts = (
        div(view.meaning),
        *_marked([*c.reasons, *(f"Warning: {warning}" for warning in view.warnings)]),
        div(f"Altered: {view.altered}.", style=SOFT) if view.altered else None,
        div("It rests on this, which nothing has checked on these rows:", style="margin:.35rem 0 0"),
        *_listed(view.rests_on),
        div(f"Protected: {view.protected}; {view.neighbours}.", style=SOFT),
        div(f"Issued {view.issued}", style=SOFT) if view.issued else None,
        *(div(f"{name.title()}: {words} ({UNPROVED})", style=SOFT) for name, words in view.said),
        div(f"{begun(view.promise)}.", style=SOFT),
        _stages(view),
        div("The bars are logarithmic.", style=f"{SOFT};font-size:11px") if logarithmic else None,
        div(*_noise(view), style="margin:.5rem 0 0"),
        *(
            part
            for title, sentences in (("Covered", view.covered), ("Not covered", c.not_covered))
            for part in (div(f"{title}:", style="margin:.5rem 0 0"), *_listed(sentences))
        ),
        div(DIGEST, style=f"{SOFT};font-size:11px"),
    )
    return [part for part in parts if part is not None]


def _badge(status: str) -> Element:
    return element("strong", status, style=f"{BADGE};background:{STATUS.get(status, BAD)}")


def _marked(sentences: Sequence[str]) -> list[Element]:
    """Sentences that are not to be missed."""
    return [div(sentence, style=MARK) for sentence in sentences]


def _listed(sentences: Sequence[str]) -> list[Element]:
    return [div(f"· {words}", style="margin:.2rem 0 0") for words in sentences]


def _stages(view: View) -> Element:
    bars = distance_bars(view.points, lambda part: {"style": PARTS[part]})
    tests = [{condition.tested for condition in step.conditions} for step in view.record.steps]
    tested = ["" if not found else ", tested" if all(found) else ", assumed" for found in tests]
    names = [("entrance", ""), *((step.name, step.way + how) for step, how in zip(view.record.steps, tested))]
    cell = f"{PLAIN};padding:.2rem 1rem .2rem 0"
    rows = [
        element(
            "tr",
            element("td", name, style=f"{cell};font-weight:600"),
            element("td", way, style=cell),
            element(
                "td",
                bar,
                div(", ".join(point.labels), style="opacity:.72;font-size:11px"),
                style=f"{PLAIN};padding:.2rem 0;width:55%",
            ),
            style="background:none;border:0",
        )
        for (name, way), bar, point in zip(names, bars, view.points)
    ]
    return element(
        "table",
        element("tbody", *rows),
        style="width:100%;margin:.6rem 0 0;border-collapse:collapse;border:0;font:inherit;color:inherit",
    )


def _noise(view: View) -> list[Element | str]:
    """Everything that left, with how much noise, and of which law if it is not Gaussian, in one sentence."""
    parts: list[Element | str] = ["Released with noise: "]
    for noise in view.noises:
        law = "σ = " if noise.law == GAUSSIAN else f"{noise.law}, scale "
        rows = " rows" if isinstance(noise.one, Gate) else ""
        parts += [f"{noise.phrase} ({law}", number(noise.one.noise_scale), f"{rows}), "]
    others = [f"; {words}" for words in view.parts]
    return [*parts, "in all μ = ", number(view.record.total.mu), *others, "."]


def render_brief(view: View) -> str:
    """Plain text of a certificate, at a glance."""
    lines = _headline(view)
    for name, (first, *more) in at_a_glance(view):
        lines += [f"  {name:<{brief.NAME}}{_typed(first)}", *(" " * (brief.NAME + 2) + _typed(line) for line in more)]
    return "\n".join(lines)


def _headline(view: View) -> list[str]:
    """What the claim leaves out if anything, then its status: the first word is the status and nothing else."""
    c = view.record
    dash = "" if c.status == "UNCONDITIONAL" else " -"
    return [*view.beside, f"{c.status}{dash} {view.title(f'({c.epsilon:g}, {c.delta:g})')}"]


def render_text(view: View) -> str:
    """Plain text of all of a certificate.

    No name in it can move a cursor or begin a line.
    """
    c, lines = view.record, _headline(view)
    for name, words in _lines(view, c):
        first, *more = wrap(words, WIDTH - NAME - 2, break_long_words=False, break_on_hyphens=False) or [""]
        lines += [f"  {name:<{NAME}}{first}".rstrip(), *(" " * (NAME + 2) + line for line in more)]
    return "\n".join(lines)


def _lines(view: View, c: Record) -> Iterator[tuple[str, str]]:
    """Name and words, in the order of the page."""
    yield "", view.meaning
    issued = account_in_words(c)
    yield from [("issued", issued)] if issued is not None else []
    yield from ((name, f"{words} ({UNPROVED})") for name, words in view.said)
    yield from (("because", reason) for reason in c.reasons)
    yield from (("rests on", _typed(words)) for words in view.rests_on)
    yield from (("warning", warning) for warning in view.warnings)
    yield from [("altered", view.altered)] if view.altered else []
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
        rung = f" at {one.ladder.place}" if one.ladder else ""
        paid = cost or f"{one.kind} noise {one.noise_scale:.4g}"
        return "gate", f"passed{rung}; {paid}, delta {one.delta:.3g} ({one.rule})"
    if isinstance(one, Diagnostics):
        law = "noise" if noise.law == GAUSSIAN else f"{noise.law}, scale"
        return "released", f"{noise.phrase}: {law} {one.noise_scale:.4g}{cost and f', {cost}'}"
    if isinstance(one, Release):
        above = "" if one.threshold is None else f", above {one.threshold:.4g}, delta {one.failure:.3g}"
        return "released", f"{noise.phrase}: noise {one.noise_scale:.4g}, {cost}{above}"
    law = "noise" if noise.law == GAUSSIAN else f"{noise.law}, scale"
    size = f"{'' if noise.times == 1 else f'{noise.times} x '}{noise.size} number{'' if noise.size == 1 else 's'}"
    return "mechanism", f"{noise.name} ({noise.note}): {size}, {law} {one.noise_scale:.4g}{cost and f', {cost}'}"


def add_to_card(card: Any, text: str) -> None:
    """Put the section into a skops.card.Card, in the place of an earlier one."""
    if isinstance(card, type) or not callable(getattr(card, "add", None)):
        raise InvalidParameter(
            f"card must be a skops.card.Card or None, got {type(card).__name__}.",
            fix="pip install ppdp[skops], and skops.card.Card(pipe).",
        )
    card.add(**{HEADING: text})


def render_card(view: View) -> str:
    """The section without its heading: what the claim leaves out if anything, then its status and all else."""
    c = view.record
    epsilon, delta = figure(c.epsilon, upward=True), figure(c.delta, upward=True)
    claim = f"(ε, δ) = ({epsilon}, {delta})"
    reach = "" if c.status == "SEEDED" else ": of everything that was released, with all stages in front of it"
    known = c.neighbours.phrases.known.replace("except", "but")
    attack = (
        f"{view.proviso}whoever knows {known}, and sees all that was released, and is given"
        f" {c.neighbours.phrases.alternatives}, guesses which of them was used at most this often:"
        f" {powers_in_words(c, ' ')}."
    )
    facts = [
        ("ε", epsilon),
        ("δ", delta),
        ("Neighbouring datasets", view.neighbours),
        ("Unit of privacy", view.protected),
        *([("Issued", view.issued)] if view.issued else []),
        *((name.title(), f"{words} ({UNPROVED})") for name, words in view.said),
        *([("Data", c.dataset)] if c.dataset else []),
        ("Stages", " > ".join(step.title for step in c.steps)),
        ("Digest", c.digest),
    ]
    parts = [
        _items(view.beside),
        f"**{_plain(c.status)}**: {view.title(claim)}{reach}. {view.meaning}",
        _items(c.reasons),
        _items(view.rests_on, "It rests on this, which nothing has checked on these rows:"),
        "| | |\n|---|---|\n" + "\n".join(f"| {name} | {_plain(value)} |" for name, value in facts),
        begun(attack),
        _items(view.fact_lines, "Public facts:"),
        ON_TRUST,
        _items(view.warnings, "Warnings:"),
        f"Altered before anything was learned: {_plain(view.altered)}." if view.altered else "",
        _items(c.not_covered, "Not covered:"),
        f"`ppdp verify certificate.json` computes every figure again, without the data. {DIGEST}",
    ]
    return "\n\n".join(part for part in parts if part)


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
