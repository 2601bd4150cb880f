"""Why a certificate's promise holds: the sections of its page on stages, releases, gate and mechanism."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ppdp.certificate.pages.drawing import budget_bar, distance_bars
from ppdp.certificate.pages.layout import Cell, items, pairs, table
from ppdp.certificate.pages.losses import law_of, only_the_last
from ppdp.certificate.pages.markup import Element, bound, element, number
from ppdp.certificate.pages.points import spreads
from ppdp.certificate.pages.view import Noise, View
from ppdp.certificate.pages.wording import terms
from ppdp.certificate.record import Gate, Mechanism, Record, Step
from ppdp.core.figures import figure
from ppdp.core.formula import CHOICE, GAUSSIAN
from ppdp.privacy.noise.gate import GATE_KINDS

__all__ = ["gate", "mechanism", "releases", "stages"]


MOST = 10  # values of a list that are shown one by one
WAYS = {
    "public": "public parameters only",
    "noisy": "from released statistics",
    "exact": "fitted without noise",
}


def stages(view: View) -> Sequence[Element | None]:
    """How far apart neighbouring datasets can be, stage by stage."""
    c, points = view.record, view.points
    bars = distance_bars(points)
    lines: list[tuple[Cell, ...]] = []
    for point, bar, step in zip(points, bars, [None, *c.steps]):
        apart = (bar, element("small", ", ".join(point.labels)))
        if step is None:
            lines.append(("At the entrance", None, apart, number(point.rows), None))
        else:
            lines.append((_stage(step), step.way, apart, number(point.rows), element("code", step.page)))
    scale = " The bars are logarithmic." if spreads([p.rows for p in points]) else ""
    return (
        element("h2", "How far apart two neighbouring datasets can be"),
        element(
            "p",
            f"{c.neighbours.change} at the entrance; a stage that is fitted to the rows without noise can pass the"
            " change on to others. “In replaced rows” weighs all of it: a sum over the rows changes at most as if that"
            f" many had been replaced.{scale}",
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
            " ",
            element("span", element("i", class_="key t"), "where the stage before ended"),
            class_="note legend",
        ),
        element("p", *_glossary(c), class_="note"),
        _explained(label.split()[1] for point in points for label in point.labels),
    )


def _explained(words: Iterable[str]) -> Element | None:
    """A line that says what these words mean, where they need it."""
    parts: list[Element | str] = []
    for word, meaning in terms(words):
        parts += ["; " if parts else "", element("b", word), f": {meaning}"]
    return element("p", *parts, ".", class_="note") if parts else None


def _glossary(c: Record) -> tuple[Element | str, ...]:
    """The ways that occur, explained."""
    parts: list[Element | str] = []
    for way in sorted({step.way for step in c.steps}, key=list(WAYS).index):
        parts += ["; " if parts else "", element("b", way), f": {WAYS[way]}"]
    return (*parts, ".") if parts else ()


def _stage(step: Step) -> tuple[Element | str | None, ...]:
    conditions = [
        element(
            "span",
            element("b", "tested" if k.tested else "assumed"),
            f": {k.statement}",
            class_=f"condition {'tested' if k.tested else 'assumed'}",
        )
        for k in step.conditions
    ]
    return step.name, element("small", step.class_, *_parameters(step)), *conditions


def _parameters(step: Step) -> tuple[str, ...]:
    """Public parameters in one line."""
    shown = [f"{name} = {_plain(value)}" for name, value in step.parameters.items() if value is not None]
    return (": " + ", ".join(shown),) if shown else ()


def _plain(value: Any) -> str:
    if isinstance(value, (bool, str)):
        return str(value)
    if isinstance(value, (list, tuple)):
        shown = [_plain(v) for v in value]
        if len(shown) > MOST:
            return f"[{', '.join(shown[:3])}, …, {shown[-1]}] ({len(shown)} values)"
        return f"[{', '.join(shown)}]"
    return figure(value) if isinstance(value, (int, float)) else "none"


def releases(view: View) -> Sequence[Element | None]:
    """Everything that left, with its noise and its share of the budget."""
    c, parts, names = view.record, view.parts, view.record.released.names
    laws = {noise.law for noise in view.noises} | {GAUSSIAN}
    heads = [("Released", ""), ("Numbers", "n"), ("Sensitivity (L2)", "n")]
    heads += [("Noise σ" if laws == {GAUSSIAN} else "Noise scale", "n"), ("Cost μ", "n")]
    heads += [] if parts else [("Share of μ²", "")]
    arrays = ", ".join(f"{name} ({' × '.join(map(str, shape)) or '1'})" for name, shape in names.items())
    return (
        element("h2", "What was released"),
        element("p", *_noise(view, laws)),
        table([*heads, ("Proof", "")], [_line(c, noise, laws) for noise in view.noises], class_="released cards"),
        items(parts) if parts else None,
        _explained(release.statistic for release in c.releases),
        element("p", "Arrays that left: ", element("code", arrays), f".{_sizes(c)}", class_="note") if arrays else None,
    )


def _sizes(c: Record) -> str:
    """What the first "27 × 11" means."""
    shapes = (shape for shape in c.released.names.values() if len(shape) == 2)
    return next((f" {rows} × {columns}: {rows} rows of {columns} numbers." for rows, columns in shapes), "")


def _noise(view: View, laws: set[str]) -> Iterator[Element | str]:
    """How everything was made noisy, and what it costs together."""
    c = view.record
    if laws == {GAUSSIAN}:
        yield "Gaussian noise was added to each number before it left"
        yield ", and to the gate's margin before it was compared. " if c.gate is not None else ". "
    else:
        yield "Nothing left without noise"
        yield ", and the gate's margin was not compared without it. " if c.gate is not None else ". "
    if not c.total.parts:
        yield "The costs add as squares; μ of everything together is "
    elif any(noise.one.mu is not None for noise in view.noises):
        yield "The costs μ add as squares, the rounding of noise included, to "
    elif c.total.mu:
        yield "The rounding of noise costs μ = "
    if c.total.mu or not c.total.parts:
        yield number(c.total.mu, 6)
        yield ". "
    if c.total.parts:
        yield "What costs something else than a μ is listed below the table; ε and δ are those of everything together."


def _line(c: Record, noise: Noise, laws: set[str]) -> tuple[Cell, ...]:
    """One line of the table for something that left."""
    one, size = noise.one, number(noise.size)
    cells: list[Cell] = [
        (noise.name, element("small", noise.note)),
        size if noise.times == 1 else (number(noise.times), " × ", size),
        number(noise.sensitivity) if noise.sensitivity is not None else "-",
        (number(one.noise_scale), element("small", noise.law) if len(laws) > 1 else None),
        number(one.mu) if one.mu is not None else "below",
    ]
    if not c.total.parts:
        share = (one.mu or 0.0) ** 2 / (c.total.mu**2 or 1.0)
        cells.append((budget_bar(share), element("small", f"{100 * share:.1f}\u00a0%")))
    return (*cells, element("code", one.page))


def gate(c: Record) -> Sequence[Element]:
    """The test of the conditions, or that there was none."""
    conditions = c.conditions
    if not conditions:
        return ()
    g = c.gate
    if g is None:
        return (
            element("h2", "The gate"),
            element("p", f"There was none: {_count(len(conditions), 'condition')} assumed and not tested."),
        )
    rule = {
        "max": "It stands in front of everything that rests on a condition, so the larger of its δ and that of the"
        " releases counts, not the sum.",
        "sum": "Its δ and that of the releases add.",
    }[g.rule]
    return (
        element("h2", "The gate"),
        element(
            "p",
            f"Before anything that rests on {_count(len(conditions), 'condition')} ran, the smallest margin (that many"
            " rows at least must be replaced before a condition fails) was compared, with noise, with a threshold."
            f" It passed. {rule}{_rung(g)}",
        ),
        pairs(
            ("Threshold", number(float(g.threshold + (g.ladder.passed.further if g.ladder else 0)), 5, " rows")),
            (GATE_KINDS[g.kind].scale_words, number(g.noise_scale, 4, " rows")),
            ("Passes wrongly, at most", bound(g.delta)),
        ),
    )


def _rung(g: Gate) -> str:
    """Which rung of a ladder was passed."""
    if not g.ladder:
        return ""
    rung, count = g.ladder.rung + 1, len(g.ladder.rungs)
    return (
        f" The same noisy margin was compared with {count} public thresholds; the bounds on this page are those of"
        f" rung {rung} of {count}, the tightest that it passed, and the promise is the same on every rung."
    )


def mechanism(c: Record) -> Sequence[Element]:
    """The last step."""
    m = c.mechanism
    if m is None:
        return (
            element("h2", "The mechanism"),
            element("p", "There is none: the fitted map itself was released, through the statistics above."),
        )
    chooses = law_of(m) == CHOICE
    return (
        element("h2", "The mechanism"),
        element("p", f"{m.name} ({m.class_}) {_asks(m)}"),
        pairs(
            ("Utilities" if chooses else "Values without noise", ("at most ", number(m.bound), " each")),
            ("Noise σ on each" if law_of(m) == GAUSSIAN else "Noise scale", number(m.noise_scale)),
            *((name, _plain(value)) for name, value in m.parameters.items()),
        ),
        *filter(None, [_explained(m.parameters)]),
    )


def _asks(m: Mechanism) -> str:
    """What a mechanism did with the prepared rows."""
    if law_of(m) == CHOICE:
        return "chooses at random among public candidates, those that suit the prepared rows with more probability."
    if m.steps == 1:
        return "asks the prepared rows for one answer; only the noisy answer was used."
    used = "one of the points they lead to was released" if only_the_last(m) else "all of them were paid for"
    return (
        f"asks the prepared rows for {m.steps} answers, each on what the ones before it gave; only the noisy answers"
        f" were used, and {used}."
    )


def _count(count: int, noun: str) -> str:
    return f"{'one' if count == 1 else count} {noun}{'' if count == 1 else 's'}"
