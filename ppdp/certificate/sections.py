"""The sections of a certificate's page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ppdp.certificate.drawing import budget_bar, distance_bars, epsilon_curve
from ppdp.certificate.markup import Element, element, figure, number
from ppdp.certificate.meaning import detection_power, rounded_up, slack_in_words, status_in_words
from ppdp.certificate.points import points_of, spreads

__all__ = [
    "closing",
    "curve",
    "facts",
    "gate",
    "meaning",
    "mechanism",
    "not_covered",
    "opening",
    "releases",
    "routes",
    "stages",
]

Document = Mapping[str, Any]
Cell = Element | str | None | tuple[Element | str | None, ...]

FALSE_ALARMS = (0.01, 0.05)
OTHER_DELTAS = (1e-3, 1e-5, 1e-6, 1e-8, 1e-10)
WAYS = {
    "public": "public parameters only",
    "noisy": "from released statistics",
    "exact": "fitted without noise",
}
FACTS = {
    "n_rows": "rows",
    "n_features": "columns",
    "feature_names": "column names",
    "rows_per_unit": "rows per person",
    "row_norm": "norm of a row",
    "gaps": "missing values",
}


def opening(c: Document) -> Element:
    """Status, guarantee, and what everything else hangs on."""
    claim = ("(ε, δ) = (", number(c["epsilon"]), ", ", number(c["delta"]), ")-differential privacy, end to end")
    unit = "one row" if c["rows_per_unit"] == 1 else f"up to {c['rows_per_unit']} rows"
    return element(
        "header",
        element("h1", element("span", c["status"], class_="status"), " ", *claim),
        element("p", status_in_words(c), class_="lede"),
        _items(c["reasons"], class_="reasons") if c["reasons"] else None,
        _pairs(
            ("Data", c["dataset"]) if c["dataset"] else None,
            ("Neighbouring datasets", c["adjacency"]),
            ("Unit of privacy", f"one person, who owns {unit}"),
        ),
    )


def meaning(c: Document) -> Sequence[Element]:
    """The guarantee as the power of an attacker's test."""
    rows_ = "row" if c["rows_per_unit"] == 1 else "rows"
    story = (
        f"An attacker knows every row except the {rows_} of one person, the public facts and the whole method, and sees"
        f" everything that was released. For any two versions of that person's {rows_}, the attacker tests which one"
        " was in the data."
    )
    lines = [
        (rounded_up(alarm), element("data", rounded_up(power := detection_power(c, alarm)), value=repr(power)))
        for alarm in FALSE_ALARMS
    ]
    if c["status"] != "UNCONDITIONAL":
        story += {
            "CONDITIONAL": " If the assumptions above hold:",
            "SEEDED": " If the seed is unknown and the noise unpredictable:",
        }[c["status"]]
    return (
        element("h2", "What it means"),
        element("p", story),
        _table([("False alarms the attacker accepts", "n"), ("Detections, at most", "n")], lines, class_="narrow"),
        element(
            "p",
            "Guessing blindly detects as often as it raises a false alarm. The figures are rounded up, with"
            f" {' and '.join(slack_in_words(c))} included.",
            class_="note",
        ),
    )


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
        _table(
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
    if isinstance(value, bool) or isinstance(value, str):
        return str(value)
    if isinstance(value, list):
        return f"[{', '.join(_plain(v) for v in value)}]"
    return figure(value) if isinstance(value, (int, float)) else "none"


def releases(c: Document) -> Sequence[Element]:
    """Everything that left, with its noise and its share of the budget."""
    whole = c["total"]["mu"] ** 2 or 1.0
    lines: list[tuple[Cell, ...]] = []

    def line(name: Cell, count: Cell, one: Document, sensitivity: float) -> None:
        share = one["mu"] ** 2 / whole
        lines.append(
            (
                name,
                count,
                number(sensitivity),
                number(one["noise_scale"]),
                number(one["mu"]),
                (budget_bar(share), element("small", f"{100 * share:.1f}\u00a0%")),
                element("code", one["page"]),
            )
        )

    for release in c["releases"]:
        served = f"for {', '.join(release['serves'])}, {release['purpose']}"
        line((release["statistic"], element("small", served)), number(release["size"]), release, release["sensitivity"])
    if c["gate"] is not None:
        line(("gate", element("small", "one bit: passed")), number(1), c["gate"], 1.0)
    m = c["mechanism"]
    if m is not None:
        size: Cell = number(m["size"]) if m["steps"] == 1 else (number(m["steps"]), " × ", number(m["size"]))
        line((m["name"], element("small", m["class"])), size, m, m["sensitivity"])
    names = ", ".join(f"{name} ({' × '.join(map(str, shape)) or '1'})" for name, shape in c["released"]["names"].items())
    return (
        element("h2", "What was released"),
        element(
            "p",
            "Gaussian noise was added to each number. The costs add as squares; μ of everything together is ",
            number(c["total"]["mu"], 6),
            ".",
        ),
        _table(
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
            f" It passed. {rule}",
        ),
        _pairs(
            ("Threshold", number(g["threshold"], 5, " rows")),
            ("Noise σ", number(g["noise_scale"], 4, " rows")),
            ("Passes wrongly, at most", number(g["delta"])),
        ),
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
        _pairs(
            ("Values without noise", ("at most ", number(m["bound"]), " each")),
            ("Noise σ on each", number(m["noise_scale"])),
            *((name, _plain(value)) for name, value in m["parameters"].items()),
        ),
    )


def curve(c: Document) -> Sequence[Element]:
    """The guarantee at every delta."""
    from ppdp.certificate.document import Certificate

    certificate = Certificate(dict(c))
    lines = []
    for delta in sorted({*OTHER_DELTAS, c["delta"]}, reverse=True):
        epsilon = certificate.epsilon_at(delta)
        shown: Cell = number(epsilon) if epsilon < float("inf") else "nothing promised"
        lines.append((number(delta), shown))
    return (
        element("h2", "The same guarantee at another δ"),
        element(
            "div",
            epsilon_curve(c),
            _table([("δ", "n"), ("ε, at most", "n")], lines),
            class_="side",
        ),
    )


def facts(c: Document) -> Sequence[Element]:
    """Public facts with their origins."""
    return (
        element("h2", "Public facts"),
        element("p", "The derivation rests on these, and they are published with it."),
        _table(
            [("Fact", ""), ("Value", "wide"), ("Origin", "")],
            [(FACTS.get(f["name"], f["name"]), f["value"], f["origin"]) for f in c["facts"]],
            class_="facts cards",
        ),
    )


def routes(c: Document) -> Sequence[Element]:
    """Every way through the stages that was weighed, before any data."""
    order = {"chosen": 0, "offered": 1, "not offered": 2}
    ranked = sorted(c["alternatives"], key=lambda a: (order[a["status"]], a["noise_scale"] or 0.0))
    lines = [
        (
            (a["route"], element("small", a["reason"]) if a["reason"] else None),
            a["status"],
            number(a["noise_scale"]) if a["noise_scale"] is not None else None,
        )
        for a in ranked
    ]
    return (
        element("h2", "Routes considered"),
        element("p", "Compared before any data were seen; the least final noise was chosen."),
        _table([("Route", ""), ("", ""), ("Noise σ", "n")], lines, class_="routes cards"),
    )


def not_covered(c: Document) -> Sequence[Element]:
    """What the guarantee says nothing about."""
    return element("h2", "What is not covered"), _items(c["not_covered"])


def closing(c: Document) -> Element:
    """How to check all this."""
    versions = ", ".join(f"{name} {version}" for name, version in c["versions"].items())
    return element(
        "footer",
        element("h2", "How to verify"),
        element(
            "p",
            element("code", "ppdp verify certificate.json"),
            " computes every figure again from the public parameters in the JSON document, without the data. This page"
            " only shows that document; the digest finds any change to it, but does not say who issued it.",
        ),
        _pairs(
            ("Digest of the document", element("span", c["digest"], class_="hash")),
            ("SHA-256 of what was released", element("span", c["released"]["sha256"], class_="hash")),
            ("Invalid values", {"error": "stop the run", "repair": "are repaired row by row"}[c["invalid"]]),
            ("Form", c["schema"]),
            ("Versions", versions),
        ),
    )


def _table(heads: Sequence[tuple[str, str]], lines: Sequence[Sequence[Cell]], class_: str | None = None) -> Element:
    """A table; the head of each column is (words, class)."""
    rows = []
    for line in lines:
        cells = []
        for i, ((words, kind), content) in enumerate(zip(heads, line)):
            children = content if isinstance(content, tuple) else (content,)
            body = element("div", *children) if any(child is not None for child in children) else None
            cells.append(element("td", body, class_=kind or None, data_label=words if i and words else None))
        rows.append(element("tr", *cells))
    head = element("tr", *(element("th", words, class_=kind or None, scope="col") for words, kind in heads))
    return element("table", element("thead", head), element("tbody", *rows), class_=class_)


def _items(texts: Sequence[str], class_: str | None = None) -> Element:
    return element("ul", *(element("li", text) for text in texts), class_=class_)


def _pairs(*pairs: tuple[str, Cell] | None) -> Element:
    children = []
    for pair in pairs:
        if pair is not None:
            name, content = pair
            children.append(element("dt", name))
            children.append(element("dd", *(content if isinstance(content, tuple) else (content,))))
    return element("dl", *children)


def _count(count: int, noun: str) -> str:
    return f"{'one' if count == 1 else count} {noun}{'' if count == 1 else 's'}"
