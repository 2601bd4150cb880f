"""What a certificate promises, to whom, and how to check it: sections of its page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ppdp.certificate.drawing import epsilon_curve, power_curve
from ppdp.certificate.layout import items, pairs, table
from ppdp.certificate.losses import law_of
from ppdp.certificate.markup import Element, bound, element, number
from ppdp.certificate.meaning import (
    FALSE_ALARMS,
    covered_in_words,
    detection_power,
    reservation,
    rounded_up,
    slack_in_words,
    status_in_words,
)
from ppdp.certificate.profile import privacy_profile
from ppdp.certificate.wording import ON_TRUST, around_the_claim, besides, owner_in_words, shown_facts

__all__ = ["closing", "coverage", "curve", "facts", "meaning", "opening", "routes"]

Document = Mapping[str, Any]

OTHER_DELTAS = (1e-4, 1e-5, 1e-6, 1e-8, 1e-10)
FACTS = {
    "n_rows": "rows",
    "n_features": "columns",
    "feature_names": "column names",
    "rows_per_unit": "rows per person",
    "row_norm": "norm of a row",
    "gaps": "missing values",
    "entry_bound": "largest entry",
    "min_present": "fewest rows that count",
}


def opening(c: Document) -> Element:
    """Status, guarantee, and what everything else hangs on."""
    before, after = around_the_claim(c)
    claim = (before, "(ε, δ) = (", bound(c["epsilon"]), ", ", bound(c["delta"]), f"){after}")
    return element(
        "header",
        element("h1", element("span", c["status"], class_="status"), " ", *claim),
        element("p", status_in_words(c), class_="lede"),
        items(c["reasons"], class_="reasons") if c["reasons"] else None,
        items([f"Warning: {warning}" for warning in c["warnings"]], class_="warnings") if c["warnings"] else None,
        pairs(
            ("Data", c["dataset"]) if c["dataset"] else None,
            ("Neighbouring datasets", c["adjacency"]),
            ("Unit of privacy", owner_in_words(c)),
        ),
    )


def meaning(c: Document) -> Sequence[Element]:
    """The guarantee as the power of an attacker's test."""
    story = (
        "An attacker knows the public facts, the whole method and every row except one person's, and sees everything"
        " that was released. Of any two versions of what that person contributed, the attacker tests which one was in"
        " the data. "
    )
    promise = f"{reservation(c)}the attacker detects at most this often:"
    lines = [
        (
            number(100 * alarm, unit="\u00a0%"),
            element("data", rounded_up(power := detection_power(c, alarm)), value=repr(power)),
        )
        for alarm in FALSE_ALARMS
    ]
    return (
        element("h2", "What it means"),
        element("p", story, promise[0].upper() + promise[1:]),
        element(
            "div",
            power_curve(c),
            table([("False alarms the attacker accepts", "n"), ("Detections, at most", "n")], lines),
            class_="side",
        ),
        element(
            "p",
            "Guessing blindly detects as often as it raises a false alarm (the dashed line). The figures are rounded"
            f" up, with {' and '.join(slack_in_words(c))} included.",
            class_="note",
        ),
    )


def coverage(c: Document) -> Sequence[Element | None]:
    """What the guarantee speaks of, and what it says nothing about."""
    provided = reservation(c)
    return (
        element("h2", "What is covered"),
        element("p", f"{provided[:-2]}:") if provided else None,
        items(covered_in_words(c)),
        element("h2", "What is not covered"),
        element("ul", *(_with_plain_words(words) for words in c["not_covered"])),
    )


def _with_plain_words(sentence: str) -> Element:
    plainly = besides(sentence)
    return element("li", sentence, element("small", plainly, class_="plainly") if plainly else None)


def curve(c: Document) -> Sequence[Element]:
    """The guarantee at every delta."""
    promised = dict(privacy_profile(c)) | {c["delta"]: c["epsilon"]}
    lines = [
        (number(delta), bound(promised[delta]) if math.isfinite(promised[delta]) else "nothing promised")
        for delta in sorted({*OTHER_DELTAS, c["delta"]}, reverse=True)
    ]
    return (
        element("h2", "The same guarantee at another δ"),
        element("div", epsilon_curve(c), table([("δ", "n"), ("ε, at most", "n")], lines), class_="side"),
    )


def facts(c: Document) -> Sequence[Element]:
    """Public facts with their origins."""
    return (
        element("h2", "Public facts"),
        element("p", "The derivation rests on these, and they are published with it.", f" {ON_TRUST}"),
        table(
            [("Fact", ""), ("Value", "wide"), ("Origin", "")],
            [(FACTS.get(name, name), value, origin) for name, value, origin in shown_facts(c)],
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
    last = c["mechanism"] or (c["releases"][-1] if c["releases"] else None)
    settled = "; the least final noise was chosen" if c["mechanism"] is not None and len(lines) > 1 else ""
    noise = "Noise σ" if last is None or law_of(last) == "Gaussian" else "Noise scale"
    return (
        element("h2", "Routes considered"),
        element("p", f"Settled from the facts above, before any row was seen{settled}."),
        table([("Route", ""), ("", ""), (noise, "n")], lines, class_="routes cards"),
    )


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
        pairs(
            ("Digest of the document", element("span", c["digest"], class_="hash")),
            ("SHA-256 of what was released", element("span", c["released"]["sha256"], class_="hash")),
            ("SHA-256 of the steps and their parameters", element("span", c["released"]["inference"], class_="hash")),
            ("Invalid values", {"error": "stop the run", "repair": "are repaired row by row"}[c["invalid"]]),
            ("Form", c["schema"]),
            ("Versions", versions),
        ),
    )
