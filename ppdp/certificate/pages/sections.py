"""What a certificate promises, to whom, and how to check it: sections of its page."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ppdp.certificate.pages.drawing import epsilon_curve, power_curve
from ppdp.certificate.pages.layout import items, pairs, table
from ppdp.certificate.pages.losses import law_of
from ppdp.certificate.pages.markup import Element, bound, element, number
from ppdp.certificate.pages.meaning import rounded_up, slack_in_words
from ppdp.certificate.pages.profile import privacy_profile
from ppdp.certificate.pages.view import View
from ppdp.certificate.pages.wording import DIGEST, ON_TRUST
from ppdp.certificate.record import Alternative, Record
from ppdp.core.formula import GAUSSIAN

__all__ = ["closing", "coverage", "curve", "facts", "meaning", "opening", "routes"]


OFFERED = ("chosen", "offered")
OTHER_DELTAS = (1e-4, 1e-5, 1e-6, 1e-8, 1e-10)
FACTS = {
    "n_rows": "rows",
    "n_features": "columns",
    "feature_names": "column names",
    "rows_per_unit": "rows per person",
    "row_norm": "limit on the length of a row",
    "gaps": "missing values",
    "entry_bound": "largest entry",
    "min_present": "fewest rows that count",
}


def opening(view: View) -> Element:
    """What the claim leaves out if anything, status, guarantee, and what everything else hangs on."""
    c = view.record
    claim = (view.before, "(ε, δ) = (", bound(c.epsilon), ", ", bound(c.delta), f"){view.after}")
    return element(
        "header",
        items(view.beside, class_="beside") if view.beside else None,
        element("h1", element("span", c.status, class_="status"), " ", *claim),
        element("p", view.meaning, class_="lede"),
        items(c.reasons, class_="reasons") if c.reasons else None,
        element("p", "It rests on:", class_="lede"),
        items(view.rests_on, class_="rests"),
        items([f"Warning: {warning}" for warning in c.warnings], class_="warnings") if c.warnings else None,
        pairs(
            ("Issued", view.issued) if view.issued else None,
            ("Data", c.dataset) if c.dataset else None,
            ("Neighbouring datasets", view.neighbours),
            ("Protected", view.protected),
        ),
    )


def meaning(view: View) -> Sequence[Element]:
    """The guarantee as the power of an attacker's test."""
    story = (
        "An attacker knows the public facts, the whole method and every row except one person's, and sees everything"
        " that was released. Given two possible records of that person, the attacker guesses which of them was used. "
    )
    promise = f"{view.proviso}the attacker detects at most this often:"
    lines = [
        (
            number(100 * alarm, unit="\u00a0%"),
            element("data", rounded_up(power), value=repr(power)),
        )
        for alarm, power in view.powers
    ]
    return (
        element("h2", "What it means"),
        element("p", story, promise[0].upper() + promise[1:]),
        element(
            "div",
            power_curve(view.record),
            table([("False alarms the attacker accepts", "n"), ("Detections, at most", "n")], lines),
            class_="side",
        ),
        element(
            "p",
            "Guessing blindly detects as often as it raises a false alarm (the dashed line). The figures are rounded"
            f" up, with {' and '.join(slack_in_words(view.record))} included.",
            class_="note",
        ),
    )


def coverage(view: View) -> Sequence[Element | None]:
    """What the guarantee speaks of, and what it says nothing about."""
    return (
        element("h2", "What is covered"),
        element("p", f"{view.proviso[:-2]}:") if view.proviso else None,
        items(view.covered),
        element("h2", "What is not covered"),
        element("ul", *(_with_plain_words(*both) for both in view.not_covered)),
    )


def _with_plain_words(sentence: str, plainly: str) -> Element:
    return element("li", sentence, element("small", plainly, class_="plainly") if plainly else None)


def curve(c: Record) -> Sequence[Element]:
    """The guarantee at every delta."""
    promised = dict(privacy_profile(c)) | {c.delta: c.epsilon}
    lines = [
        (number(delta), bound(promised[delta]) if math.isfinite(promised[delta]) else "nothing promised")
        for delta in sorted({*OTHER_DELTAS, c.delta}, reverse=True)
    ]
    return (
        element("h2", "The same guarantee at another δ"),
        element("div", epsilon_curve(c), table([("δ", "n"), ("ε, at most", "n")], lines), class_="side"),
    )


def facts(view: View) -> Sequence[Element]:
    """Public facts with their origins."""
    return (
        element("h2", "Public facts"),
        element("p", "The derivation rests on these, and they are published with it.", f" {ON_TRUST}"),
        table(
            [("Fact", ""), ("Value", "wide"), ("Origin", "")],
            [(FACTS.get(name, name), value, origin) for name, value, origin in view.facts],
            class_="facts cards",
        ),
    )


def routes(c: Record) -> Sequence[Element]:
    """Every way through the stages that was weighed, before any data; of a ladder, its rungs."""
    ladder = c.gate.ladder if c.gate is not None else None
    last = c.mechanism or (c.releases[-1] if c.releases else None)
    noise = "Noise σ" if last is None or law_of(last) == GAUSSIAN else "Noise scale"
    lines = [
        (
            (a.route, element("small", a.reason) if a.reason else None),
            status,
            number(a.noise_scale) if a.noise_scale is not None else None,
        )
        for a, status in (_climbed(c.alternatives, ladder.rung) if ladder else _ranked(c.alternatives))
    ]
    return (
        element("h2", "Rungs of the ladder" if ladder else "Routes considered"),
        element("p", _decided(c)),
        table([("Rung" if ladder else "Route", ""), ("", ""), (noise, "n")], lines, class_="routes cards"),
    )


def _ranked(alternatives: Sequence[Alternative]) -> list[tuple[Alternative, str]]:
    """Routes with their status, the chosen one first."""
    order = {"chosen": 0, "offered": 1, "not offered": 2}
    ranked = sorted(alternatives, key=lambda a: (order[a.status], a.noise_scale or 0.0))
    return [(a, a.status) for a in ranked]


def _climbed(rungs: Sequence[Alternative], passed: int) -> list[tuple[Alternative, str]]:
    """Rungs, the tightest first, with what the noisy test made of them."""
    told = ("did not pass", "passed, used", "not needed")
    return [(rung, told[(i >= passed) + (i > passed)]) for i, rung in enumerate(rungs)]


def _decided(c: Record) -> str:
    """What decided which of them was used: public facts, and on a ladder the noisy test."""
    before = "Settled from the facts above, before any row was seen"
    gate = c.gate
    if gate is not None and gate.ladder:
        rung, count = gate.ladder.rung + 1, len(gate.ladder.rungs)
        return (
            f"{before}: the rungs and their noise. Which rung was used the private rows decided, through the noisy"
            f" test: rung {rung} of {count}. Its answer is paid for."
        )
    noises = {status: [a.noise_scale for a in c.alternatives if a.status == status] for status in OFFERED}
    chosen, priced = noises["chosen"], [noise for some in noises.values() for noise in some if noise is not None]
    least = c.mechanism is not None and len(priced) > 1 and chosen == [min(priced)]
    return f"{before}{'; the least final noise was chosen' if least else ''}."


def closing(c: Record) -> Element:
    """How to check all this."""
    versions = ", ".join(f"{name} {version}" for name, version in c.versions.items())
    return element(
        "footer",
        element("h2", "How to verify"),
        element(
            "p",
            element("code", "ppdp verify certificate.json"),
            " computes every figure again from the public parameters in the JSON document, without the data. It does"
            f" not check free text: names, origins of facts, versions. This page only shows that document. {DIGEST}",
        ),
        pairs(
            ("Digest of the document", element("span", c.digest, class_="hash")),
            ("SHA-256 of what was released", element("span", c.released.sha256, class_="hash")),
            ("SHA-256 of the steps and their parameters", element("span", c.released.inference, class_="hash")),
            ("Invalid values", {"error": "stop the run", "repair": "are repaired row by row"}[c.invalid]),
            ("Form", c.schema),
            ("Versions", versions),
        ),
    )
