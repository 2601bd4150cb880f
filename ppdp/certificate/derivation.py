"""Why a certificate's promise holds: the sections of its page on stages, releases, gate and mechanism."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ppdp.certificate.drawing import budget_bar, distance_bars
from ppdp.certificate.layout import Cell, pairs, table
from ppdp.certificate.markup import Element, bound, element, figure, number
from ppdp.certificate.points import points_of, spreads
from ppdp.privacy.parts import Part

__all__ = ["gate", "mechanism", "releases", "stages"]

Document = Mapping[str, Any]

GATE_NOISES = {
    "gaussian": "Noise σ",
    "laplace": "Scale of Laplace noise",
    "discrete-laplace": "Scale of Laplace noise in whole rows",
}
WAYS = {
    "public": "public parameters only",
    "noisy": "from released statistics",
    "exact": "fitted without noise",
}


def stages(c: Document) -> Sequence[Element]:
    """How far apart neighbouring datasets can be, stage by stage."""
    points = points_of(c)
    bars = distance_bars(points)
    lines: list[tuple[Cell, ...]] = []
    for point, bar, step in zip(points, bars, [None, *c["steps"]]):
        apart = (bar, element("small", ", ".join(point.labels)))
        if step is None:
            lines.append(("At the entrance", None, apart, number(point.rows), None))
        else:
            lines.append((_stage(step), step["way"], apart, number(point.rows), element("code", step["page"])))
    scale = " The bars are logarithmic." if spreads([p.rows for p in points]) else ""
    return (
        element("h2", "How far apart two neighbouring datasets can be"),
        element(
            "p",
            "One person's rows are replaced at the entrance; a stage fitted to the data passes the change on to other"
            " rows. “In replaced rows” weighs all of it: a sum over the rows changes at most as if that many had been"
            f" replaced.{scale}",
        ),
        table(
            [("Stage", ""), ("Way", ""), ("Rows that can differ", "wide"), ("In replaced rows", "n"), ("Proof", "")],
            lines,
            class_="stages cards",
        ),
        element(
            "p",
            element("span", element("i", class_="key u"), "replaced or toggled"),
            " ",
            element("span", element("i", class_="key m"), "moved") if any(p.distance.moved for p in points) else None,
            class_="note legend",
        ),
        element("p", *_glossary(c), class_="note"),
    )


def _glossary(c: Document) -> tuple[Element | str, ...]:
    """The ways that occur, explained."""
    parts: list[Element | str] = []
    for way in sorted({step["way"] for step in c["steps"]}, key=list(WAYS).index):
        parts += ["; " if parts else "", element("b", way), f": {WAYS[way]}"]
    return (*parts, ".") if parts else ()


def _stage(step: Document) -> tuple[Element | str | None, ...]:
    conditions = [
        element(
            "span",
            element("b", "tested" if k["tested"] else "assumed"),
            f": {k['statement']}",
            class_=f"condition {'tested' if k['tested'] else 'assumed'}",
        )
        for k in step["conditions"]
    ]
    return step["name"], element("small", step["class"], *_parameters(step)), *conditions


def _parameters(step: Document) -> tuple[str, ...]:
    """Public parameters in one line."""
    shown = [f"{name} = {_plain(value)}" for name, value in step["parameters"].items() if value is not None]
    return (": " + ", ".join(shown),) if shown else ()


def _plain(value: Any) -> str:
    if isinstance(value, (bool, str)):
        return str(value)
    if isinstance(value, list):
        return f"[{', '.join(_plain(v) for v in value)}]"
    return figure(value) if isinstance(value, (int, float)) else "none"


def releases(c: Document) -> Sequence[Element]:
    """Everything that left, with its noise and its share of the budget."""
    whole = c["total"]["mu"] ** 2 or 1.0
    lines: list[tuple[Cell, ...]] = []

    def line(name: Cell, count: Cell, one: Document, sensitivity: float | None) -> None:
        share = (one["mu"] or 0.0) ** 2 / whole
        shown: Cell = (budget_bar(share), element("small", f"{100 * share:.1f}\u00a0%"))
        lines.append(
            (
                name,
                count,
                number(sensitivity) if sensitivity is not None else "-",
                number(one["noise_scale"]),
                number(one["mu"]) if one["mu"] is not None else "below",
                shown if one["mu"] is not None else "-",
                element("code", one["page"]),
            )
        )

    for release in c["releases"]:
        served = f"for {', '.join(release['serves'])}, {release['purpose']}"
        line((release["statistic"], element("small", served)), number(release["size"]), release, release["sensitivity"])
    if c["gate"] is not None:
        told = "which rung passed" if c["gate"]["ladder"] else "one bit: passed"
        line(("gate", element("small", told)), number(1), c["gate"], 1.0)
    m = c["mechanism"]
    if m is not None:
        size: Cell = number(m["size"]) if m["steps"] == 1 else (number(m["steps"]), " × ", number(m["size"]))
        line((m["name"], element("small", m["class"])), size, m, m["sensitivity"])
    names = ", ".join(
        f"{name} ({' × '.join(map(str, shape)) or '1'})" for name, shape in c["released"]["names"].items()
    )
    return (
        element("h2", "What was released"),
        element(
            "p",
            "Gaussian noise was added to each number"
            + (" but those whose cost stands below" if c["total"]["parts"] else "")
            + ". The costs add as squares; μ of everything together is ",
            number(c["total"]["mu"], 6),
            ".",
            *(f" Besides: {Part.from_dict(part).describe()}." for part in c["total"]["parts"]),
        ),
        table(
            [
                ("Released", ""),
                ("Numbers", "n"),
                ("Sensitivity (L2)", "n"),
                ("Noise σ", "n"),
                ("Cost μ", "n"),
                ("Share of μ²", ""),
                ("Proof", ""),
            ],
            lines,
            class_="released cards",
        ),
        element("p", "Arrays that left: ", element("code", names), ".", class_="note") if names else element("p"),
    )


def gate(c: Document) -> Sequence[Element]:
    """The test of the conditions, or that there was none."""
    conditions = [k for step in c["steps"] for k in step["conditions"]]
    if not conditions:
        return ()
    g = c["gate"]
    if g is None:
        return (
            element("h2", "The gate"),
            element("p", f"There was none: {_count(len(conditions), 'condition')} assumed and not tested."),
        )
    rule = {
        "max": "It stands in front of everything that rests on a condition, so the larger of its δ and that of the"
        " releases counts, not the sum.",
        "sum": "Its δ and that of the releases add.",
    }[g["rule"]]
    return (
        element("h2", "The gate"),
        element(
            "p",
            f"Before anything that rests on {_count(len(conditions), 'condition')} ran, the smallest margin (that many"
            " rows at least must be replaced before a condition fails) was compared, with noise, with a threshold."
            f" It passed. {rule}{_rung(g)}",
        ),
        pairs(
            ("Threshold", number(_threshold(g), 5, " rows")),
            (GATE_NOISES[g["kind"]], number(g["noise_scale"], 4, " rows")),
            ("Passes wrongly, at most", bound(g["delta"])),
        ),
    )


def _threshold(g: Document) -> float:
    """What the noisy margin exceeded."""
    ladder = g["ladder"]
    return float(g["threshold"] + (ladder["rungs"][ladder["rung"]]["further"] if ladder else 0))


def _rung(g: Document) -> str:
    """Which rung of a ladder was passed."""
    if not g["ladder"]:
        return ""
    rung, count = g["ladder"]["rung"] + 1, len(g["ladder"]["rungs"])
    return (
        f" The same noisy margin was compared with {count} public thresholds; the bounds on this page are those of"
        f" rung {rung} of {count}, the tightest that it passed, and the promise is the same on every rung."
    )


def mechanism(c: Document) -> Sequence[Element]:
    """The last step."""
    m = c["mechanism"]
    if m is None:
        return (
            element("h2", "The mechanism"),
            element("p", "There is none: the fitted map itself was released, through the statistics above."),
        )
    answers = "one answer" if m["steps"] == 1 else f"{m['steps']} answers, each on what the ones before it gave"
    return (
        element("h2", "The mechanism"),
        element(
            "p", f"{m['name']} ({m['class']}) asks the prepared rows for {answers}; only the noisy answers were used."
        ),
        pairs(
            ("Values without noise", ("at most ", number(m["bound"]), " each")),
            ("Noise σ on each", number(m["noise_scale"])),
            *((name, _plain(value)) for name, value in m["parameters"].items()),
        ),
    )


def _count(count: int, noun: str) -> str:
    return f"{'one' if count == 1 else count} {noun}{'' if count == 1 else 's'}"
