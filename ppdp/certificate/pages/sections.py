"""The sections of a certificate's page: what it promises, why that holds, and how to check it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element

from ppdp.bounds import FORMULAS
from ppdp.certificate.pages.checklist import checklist
from ppdp.certificate.pages.curves import curve, tradeoff
from ppdp.certificate.pages.drawing import budget_bar, distance_bars, power_curve
from ppdp.certificate.pages.facts import facts
from ppdp.certificate.pages.glossary import glossary
from ppdp.certificate.pages.markup import (
    Cell,
    begun,
    bound,
    code,
    element,
    explained,
    folded,
    h2,
    html_page,
    items,
    number,
    p,
    pairs,
    printed,
    small,
    table,
)
from ppdp.certificate.pages.meaning import DIGEST, RULES, WAYS, rounded_up, slack_in_words, terms
from ppdp.certificate.pages.settings import settings
from ppdp.certificate.pages.summary import OPTIONS, TITLE, TRUST, VERIFY, beyond, first_page
from ppdp.certificate.pages.tradeoff import right_alarms
from ppdp.certificate.pages.view import Noise, View, law_of, only_the_last, spreads
from ppdp.certificate.record import Mechanism, Record, Step
from ppdp.core.formula import CHOICE, GAUSSIAN
from ppdp.privacy.gate import GATE_KINDS

MEANT = {
    "chosen": "used",
    "offered": "possible, and not used",
    "not offered": "not possible here",
}
STATUSES = tuple(MEANT)
MOST_LETTERS = 90  # of the name of the data, at the foot of a sheet
RUNGS = ("did not pass", "passed, used", "not needed")


def render_page(view: View, signer: str | None = None) -> str:
    """The page of a certificate that holds; whatever text it has is shown as text."""
    c = view.record
    pair = f"({c.epsilon:g}, {c.delta:g})" + ("" if c.neighbours.record_level else " (for bounded changes only)")
    title = {
        "UNCONDITIONAL": f"UNCONDITIONAL {pair} certificate",
        "CONDITIONAL": f"CONDITIONAL certificate: {pair} if what it assumes holds",
        "SEEDED": "SEEDED certificate: nothing is protected",
    }[c.status]
    parts = (
        first_page(view, signer),
        *folded(),
        *meaning(view),
        *coverage(view),
        *stages(view),
        *releases(view),
        *gate(c),
        *mechanism(c),
        *curve(c),
        *tradeoff(view),
        *facts(view),
        *settings(c),
        *routes(c),
        *checklist(view),
        closing(view, signer),
    )
    words = " ".join(text for part in parts if part is not None for text in part.itertext())
    main = printed(element("main", *parts, *glossary(words), class_=c.status.lower()))
    return html_page(f"{title}: {c.dataset}" if c.dataset else title, main, _foot(c))


def _foot(c: Record) -> str:
    """What a single sheet must say: what it is a part of, and that there is an if."""
    data, day = c.dataset or "", "" if c.issued is None else c.issued.date[:10]
    short = data if len(data) <= MOST_LETTERS else f"{data[:MOST_LETTERS]}…"
    status = {
        "UNCONDITIONAL": f"UNCONDITIONAL, if all under {TRUST} is true",
        "CONDITIONAL": f"CONDITIONAL on what is assumed, and on {TRUST}",
        "SEEDED": "SEEDED: nothing is protected",
    }[c.status]
    first = " · ".join(filter(None, (status, f"digest {c.digest[:19]}…", day)))
    return f"{first}\n{TITLE}{f': {short}' if short else ''}"


def meaning(view: View) -> Sequence[Element]:
    """The guarantee as the power of an attacker's test."""
    neighbours = view.record.neighbours
    story = (
        f"An attacker knows the public facts, the whole method and {neighbours.phrases.known}, and sees everything"
        f" that was released. Shown {neighbours.phrases.alternatives}, the attacker guesses which of them was used. "
    )
    lines = [
        (
            number(100 * alarm, unit="\u00a0%"),
            *(element("data", rounded_up(one), value=repr(one)) for one in (power, right_alarms(alarm, power))),
        )
        for alarm, power in view.powers
    ]
    heads = "False alarms the attacker accepts", "Detections, at most", "Right alarms, at most"
    powers = table([(head, "n") for head in heads], lines)
    return (
        h2("What it means"),
        p(story, begun(f"{view.proviso}the attacker detects at most this often:")),
        element("div", power_curve(view.record), powers, class_="side"),
        p(
            "Guessing blindly detects as often as it raises a false alarm (the dashed line). An alarm is what page one"
            " calls a claim. Right alarms are a share of all alarms, if chances were even; of all guesses, fewer are"
            " right, of rarer alarms perhaps more. The figures are rounded up, with"
            f" {slack_in_words(view.record)} included.",
            class_="note",
        ),
    )


def coverage(view: View) -> Sequence[Element | None]:
    """What the guarantee speaks of, and what it says nothing about."""
    excluded = (
        element("li", plainly, small(f"In the certificate's words: {sentence}", class_="plainly"))
        if plainly
        else element("li", sentence)
        for sentence, plainly in view.not_covered
    )
    return (
        h2("What is covered"),
        p(f"{view.proviso[:-2]}:") if view.proviso else None,
        items(view.covered),
        h2("What is not covered"),
        element("ul", *excluded, *(element("li", words) for words in beyond(view.record, at_length=True))),
    )


def stages(view: View) -> Sequence[Element]:
    """How far apart neighbouring datasets can be, stage by stage."""
    c, points = view.record, view.points
    lines: list[tuple[Cell, ...]] = []
    same = len({point.labels for point in points}) == 1  # then bars would only repeat each other
    for point, bar, step in zip(points, distance_bars(points), [None, *c.steps]):
        entrance = "At the entrance", "-", "by definition"
        name, way, page = entrance if step is None else (_stage(step), step.way, code(step.page))
        labels = ", ".join(point.labels)
        lines.append((name, way, labels if same else (bar, small(labels)), bound(point.rows), page))
    scale = " The bars are logarithmic." if spreads([point.rows for point in points]) else ""
    moved = any(point.distance.moved for point in points)
    with_and_without = (
        " (with and without one person's rows, as under “For one person”, is one such case)" * c.neighbours.cuts
    )
    change = c.neighbours.phrases.change_made
    toggled = " or toggled" if any(point.distance.toggled for point in points) else ""
    section = (
        h2("How far apart two neighbouring datasets can be"),
        p(
            f"At the entrance, {change[0].lower()}{change[1:]}{with_and_without}; a stage that is fitted to the rows"
            " without noise can pass the change on to others. “In replaced rows” weighs all of it: a sum over the rows"
            f" changes at most as if that many had been replaced.{scale} “Proof” names the page of ppdp's documentation"
            " (docs/theory) that proves the bound."
        ),
        None
        if same
        else p(
            element("span", element("i", class_="key u"), f"replaced{toggled}"),
            " ",
            element("span", element("i", class_="key m"), "moved") if moved else None,
            " ",
            element("span", element("i", class_="key t"), "where the stage before ended"),
            class_="note legend",
        ),
        explained(
            [
                *((way, words) for way, words in WAYS.items() if any(step.way == way for step in c.steps)),
                *terms(label.split()[1] for point in points for label in point.labels),
            ]
        ),
        table(
            [("Stage", ""), ("Way", ""), ("Rows that can differ", "wide"), ("In replaced rows", "n"), ("Proof", "")],
            lines,
            class_="stages cards",
        ),
    )
    return (element("section", *section, class_="whole"),)


def _stage(step: Step) -> tuple[Element | str, ...]:
    """A stage with its conditions."""
    how = ["tested" if condition.tested else "assumed" for condition in step.conditions]
    conditions = [
        element("span", element("b", word), f": {condition.statement}", class_=f"condition {word}")
        for word, condition in zip(how, step.conditions)
    ]
    return step.name, small(step.class_), *conditions


def releases(view: View) -> Sequence[Element | None]:
    """Everything that left, with its noise and its share of the budget."""
    c, names = view.record, view.record.released.names
    laws = {noise.law for noise in view.noises} | {GAUSSIAN}
    heads = [("Released", ""), ("Numbers", "n"), ("Sensitivity (L2)", "n")]
    heads += [("Noise σ" if laws == {GAUSSIAN} else "Noise scale", "n"), ("Cost μ", "n")]
    heads += [] if view.parts else [("Share of cost", "")]
    arrays = ", ".join(f"{name} ({' × '.join(map(str, shape)) or '1'})" for name, shape in names.items())
    tables = [shape for shape in names.values() if len(shape) == 2]
    sizes = " {0} × {1}: {0} rows of {1} numbers.".format(*tables[0]) if tables else ""
    model = " The model (theta) is the last row of its path." if any(name.endswith(".path") for name in names) else ""
    return (
        h2("What was released"),
        p(*_noise(view, laws)),
        table([*heads, ("Proof", "")], [_line(c, noise, laws) for noise in view.noises], class_="released cards"),
        items(view.parts) if view.parts else None,
        explained(terms(release.statistic for release in c.releases)),
        p("Arrays that left: ", code(arrays), f".{sizes}{model}", class_="note") if arrays else None,
    )


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
        yield bound(c.total.mu)
        yield ". "
    if c.total.parts:
        yield "What costs something else than a μ is listed below the table; ε and δ are those of everything together."


def _line(c: Record, noise: Noise, laws: set[str]) -> tuple[Cell, ...]:
    """One line of the table for something that left."""
    one, size = noise.one, number(noise.size)
    cells: list[Cell] = [
        (noise.name, small(noise.note, "; sensitivity of one answer, cost of all" if noise.times > 1 else "")),
        size if noise.times == 1 else (number(noise.times), " × ", size),
        bound(noise.sensitivity) if noise.sensitivity is not None else "-",
        (number(one.noise_scale), small(noise.law) if len(laws) > 1 else None),
        bound(one.mu) if one.mu is not None else "below",
    ]
    if not c.total.parts:
        share = (one.mu or 0.0) ** 2 / (c.total.mu**2 or 1.0)
        cells.append((budget_bar(share), small(f"{100 * share:.1f}\u00a0%")))
    return (*cells, code(one.page))


def gate(c: Record) -> Sequence[Element]:
    """The test of the conditions, or that there was none."""
    if not c.conditions:
        return ()
    conditions = "one condition" if len(c.conditions) == 1 else f"{len(c.conditions)} conditions"
    g = c.gate
    if g is None:
        return h2("The gate"), p(f"There was none: {conditions} assumed and not tested.")
    further = g.ladder.rungs[g.ladder.rung].further if g.ladder else 0
    done = "replaced" if c.neighbours.replaces or c.neighbours.cuts else "added or removed"
    steps = f"that many rows at least must be {done}" if c.neighbours.record_level else "that many changes it takes"
    rung = g.ladder and (
        f" The same noisy margin was compared with {len(g.ladder.rungs)} public thresholds; the bounds on this page are"
        f" those of {g.ladder.place}, the tightest that it passed, and the promise is the same on every rung."
    )
    return (
        h2("The gate"),
        p(
            f"A noisy test came first, and everything that needs {conditions} only after it. The smallest margin"
            f" ({steps} before a condition fails) was compared, with noise, with a threshold. It passed."
            f" {RULES[g.rule]}{rung or ''}"
        ),
        pairs(
            ("Threshold", number(float(g.threshold + further), 5, " rows")),
            (GATE_KINDS[g.kind].scale_words, number(g.noise_scale, 4, " rows")),
            ("Passes wrongly, at most", bound(g.delta)),
        ),
    )


def mechanism(c: Record) -> Sequence[Element | None]:
    """The last step."""
    m, title = c.mechanism, h2("The mechanism")
    if m is None:
        return title, p("There is none: the fitted map itself was released, through the statistics above.")
    law = law_of(m)
    return (
        title,
        p(f"{m.name} ({m.class_}) {_asks(m)}"),
        pairs(
            ("Utilities" if law == CHOICE else "Each answer’s numbers, before noise", ("at most ", bound(m.bound))),
            ("Noise σ on each number" if law == GAUSSIAN else "Noise scale", number(m.noise_scale)),
        ),
    )


def _asks(m: Mechanism) -> str:
    """What a mechanism did with the prepared rows."""
    if tells := getattr(FORMULAS.get(m.formula), "tells", ""):
        return str(tells)
    if m.steps == 1:
        return "asks the prepared rows for one answer; only the noisy answer was used."
    used = "one of the points they lead to was released" if only_the_last(m) else "all of them are counted in the cost"
    return (
        f"asks the prepared rows {m.steps} questions, each using the answers so far; only the noisy answers were used,"
        f" and {used}."
    )


def routes(c: Record) -> Sequence[Element | None]:
    """Every way through the stages that was weighed, before any data; of a ladder, its rungs, the tightest first."""
    ladder = c.gate.ladder if c.gate is not None else None
    last = c.mechanism or (c.releases[-1] if c.releases else None)
    noise = "Noise σ" if last is None or law_of(last) == GAUSSIAN else "Noise scale"
    shown = sorted(c.alternatives, key=lambda a: (STATUSES.index(a.status), a.noise_scale or 0.0))
    told = [a.status for a in shown]
    if ladder:
        shown, passed = list(c.alternatives), ladder.rung
        told = [RUNGS[(i >= passed) + (i > passed)] for i in range(len(shown))]
    lines = [
        (
            (a.route, small(a.reason) if a.reason else None),
            status,
            number(a.noise_scale) if a.noise_scale is not None else None,
        )
        for a, status in zip(shown, told)
    ]
    return (
        h2("Rungs of the ladder" if ladder else "Routes considered"),
        p(_decided(c)),
        None if ladder else explained((status, MEANT[status]) for status in STATUSES if status in told),
        table([("Rung" if ladder else "Route", ""), ("Status", ""), (noise, "n")], lines, class_="routes cards"),
    )


def _decided(c: Record) -> str:
    """What decided which of them was used: public facts, and on a ladder the noisy test."""
    before = "Settled from the facts above, before the program looked at any row"
    ladder = c.gate.ladder if c.gate is not None else None
    if ladder:
        return (
            f"{before}: the rungs and their noise. Which rung was used the private rows decided, through the noisy"
            f" test: {ladder.place}. Its answer is paid for."
        )
    chosen = [a.noise_scale for a in c.alternatives if a.status == "chosen"]
    priced = [a.noise_scale for a in c.alternatives if a.status != "not offered" and a.noise_scale is not None]
    least = c.mechanism is not None and len(priced) > 1 and chosen == [min(priced)]
    return f"{before}{'; the least final noise was chosen' if least else ''}."


def closing(view: View, signer: str | None) -> Element:
    """How to check all this."""
    c, options, signing = view.record, OPTIONS if signer else "", "pip install '.[sign]'"
    unsigned = (
        " With the files certificate.json.sig and public.pem, from whoever handed over the certificate (and ",
        code(signing),
        "): ",
        code(f"ppdp verify certificate.json{OPTIONS}"),
    )
    return element(
        "footer",
        h2(VERIFY),
        p(
            "Take ppdp from wherever your organisation keeps it, not from the author of this page, who could change"
            " both; this page can name no place for it that you may trust. In its source folder, ",
            code(signing if signer else "pip install ."),
            " installs it. Then, where certificate.json lies, ",
            code(f"ppdp verify certificate.json{options}"),
            " computes every figure again from the public parameters in that document, without the data; of the file"
            " that is to be published, ",
            code("ppdp verify FILE"),
            " also compares the released numbers with the certificate in it, and refuses an export with any other file"
            " in it. Whether names, origins of facts and versions are true, neither can tell.",
        ),
        p(DIGEST, *(() if signer else unsigned)),
        p(
            "What is checked are those files, not this page. To check the page, print it again with ppdp"
            f" {c.versions['ppdp']} and compare: ",
            code(f"ppdp show certificate.json{options} --pdf again.pdf"),
        ),
        pairs(
            ("Issued", view.issued) if view.issued else None,
            ("Digest of the document", element("span", c.digest, class_="hash")),
            ("SHA-256 of the numbers", element("span", c.released.sha256, class_="hash")),
            ("SHA-256 of the steps", element("span", c.released.inference, class_="hash")),
            ("Invalid values", {"error": "stop the run", "repair": "are repaired row by row"}[c.invalid]),
            ("Form", c.schema),
            ("Versions", ", ".join(f"{name} {version}" for name, version in c.versions.items())),
        ),
    )
