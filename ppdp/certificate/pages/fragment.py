"""The certificate in a notebook: compact, and nothing in it can restyle the notebook."""

from __future__ import annotations

from collections.abc import Sequence

from ppdp.certificate.pages.drawing import distance_bars
from ppdp.certificate.pages.markup import Element, bound, element, number, printable_record, to_html
from ppdp.certificate.pages.points import spreads
from ppdp.certificate.pages.view import View, view_of
from ppdp.certificate.pages.wording import DIGEST
from ppdp.certificate.record import Gate, Record, Step
from ppdp.core.formula import GAUSSIAN

__all__ = ["render_fragment", "render_refusal"]

STATUS = {"UNCONDITIONAL": "#1d7048", "CONDITIONAL": "#8f5f00"}  # white on it is readable
BAD = "#b3261e"
BOX = (
    "box-sizing:border-box;max-width:46rem;margin:.25rem 0;padding:.9rem 1.1rem;border:1px solid rgba(128,128,128,.4);"
    "border-radius:6px;font:13px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;"
    "font-variant-numeric:tabular-nums;color:inherit;overflow-wrap:anywhere"
)
BADGE = "display:inline-block;padding:.05rem .5rem;border-radius:3px;color:#fff;font-size:11px;letter-spacing:.08em"
SOFT = "margin:.35rem 0 0;opacity:.72"
PLAIN = "border:0;background:none;text-align:left;vertical-align:top;white-space:normal;max-width:none"
PARTS = {
    "bar": "display:block;width:100%;height:8px;margin:6px 0 2px",
    "track": "fill:currentColor;opacity:.12",
    "unmatched": "fill:#5b8db8",
    "moved": "fill:#d08a4e",
    "before": "fill:currentColor",
}


def render_fragment(content: Record) -> str:
    """What a notebook shows: status, guarantee, stages, noise. No class, id, style sheet or script.

    Parameters
    ----------
    content : Record
        The certificate. Whatever text it holds is shown as text.
    """
    view = view_of(printable_record(content))
    c = view.record
    box = element(
        "div",
        *_marked(view.beside),
        element(
            "div",
            _badge(c.status),
            f" {view.before}(ε, δ) = (",
            bound(c.epsilon),
            ", ",
            bound(c.delta),
            f"){view.after}",
        ),
        element("div", view.meaning, style=SOFT),
        *_marked([*c.reasons, *(f"Warning: {warning}" for warning in c.warnings)]),
        element("div", "It rests on:", style="margin:.35rem 0 0"),
        *(element("div", f"· {words}", style="margin:.2rem 0 0") for words in view.rests_on),
        element("div", f"Protected: {view.protected}; {view.neighbours}.", style=SOFT),
        element("div", f"Issued {view.issued}", style=SOFT) if view.issued else None,
        element("div", f"{view.promise[0].upper()}{view.promise[1:]}.", style=SOFT),
        _stages(view),
        element("div", "The bars are logarithmic.", style=f"{SOFT};font-size:11px")
        if spreads([point.rows for point in view.points])
        else None,
        element("div", *_noise(view), style="margin:.5rem 0 0"),
        _lines("Covered", view.covered),
        _lines("Not covered", c.not_covered),
        element(
            "div",
            f"ppdp verify certificate.json computes every figure again. {DIGEST} ",
            c.digest,
            style=f"{SOFT};font-size:11px",
        ),
        style=BOX,
    )
    return to_html(box)


def render_refusal(status: str, meaning: str, problems: Sequence[str]) -> str:
    """What a notebook shows of a document that does not hold: only that, and why."""
    head = element("div", _badge(status))
    return to_html(element("div", head, element("div", meaning, style=SOFT), *_marked(problems), style=BOX))


def _badge(status: str) -> Element:
    return element("strong", status, style=f"{BADGE};background:{STATUS.get(status, BAD)}")


def _marked(sentences: Sequence[str]) -> list[Element]:
    """Sentences that are not to be missed."""
    mark = "margin:.35rem 0 0;padding-left:.7rem;border-left:3px solid #c9852b"
    return [element("div", sentence, style=mark) for sentence in sentences]


def _stages(view: View) -> Element:
    bars = distance_bars(view.points, lambda part: {"style": PARTS[part]})
    names = ["entrance", *(step.name for step in view.record.steps)]
    ways = ["", *(_way(step) for step in view.record.steps)]
    rows = [
        element(
            "tr",
            element("td", name, style=f"{PLAIN};padding:.2rem 1rem .2rem 0;font-weight:600"),
            element("td", way, style=f"{PLAIN};padding:.2rem 1rem .2rem 0"),
            element(
                "td",
                bar,
                element("div", ", ".join(point.labels), style="opacity:.72;font-size:11px"),
                style=f"{PLAIN};padding:.2rem 0;width:55%",
            ),
            style="background:none;border:0",
        )
        for name, way, bar, point in zip(names, ways, bars, view.points)
    ]
    return element(
        "table",
        element("tbody", *rows),
        style="width:100%;margin:.6rem 0 0;border-collapse:collapse;border:0;font:inherit;color:inherit",
    )


def _way(step: Step) -> str:
    if not step.conditions:
        return str(step.way)
    tested = all(condition.tested for condition in step.conditions)
    return f"{step.way}, {'tested' if tested else 'assumed'}"


def _noise(view: View) -> list[Element | str]:
    """Everything that left, with how much noise, and of which law if it is not Gaussian, in one sentence."""
    parts: list[Element | str] = ["Released with noise: "]
    for noise in view.noises:
        law = "σ = " if noise.law == GAUSSIAN else f"{noise.law}, scale "
        rows = " rows" if isinstance(noise.one, Gate) else ""
        parts += [f"{noise.phrase} ({law}", number(noise.one.noise_scale), f"{rows}), "]
    others = [f"; {words}" for words in view.parts]
    return [*parts, "in all μ = ", number(view.record.total.mu), *others, "."]


def _lines(summary: str, sentences: Sequence[str]) -> Element:
    """Sentences that unfold."""
    lines = (element("div", f"· {words}", style="margin:.2rem 0 0") for words in sentences)
    return element("details", element("summary", summary, style="cursor:pointer"), *lines, style=SOFT)
