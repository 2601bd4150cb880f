"""The whole guarantee as curves: epsilon at every delta, and misses at every rate of false alarms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.etree.ElementTree import Element

from ppdp.certificate.numbers import privacy_profile
from ppdp.certificate.pages.drawing import epsilon_curve, tradeoff_curve
from ppdp.certificate.pages.markup import begun, bound, element, h2, number, p, pairs, table
from ppdp.certificate.pages.meaning import rounded_up
from ppdp.certificate.pages.tradeoff import gaussian_summary, right_guesses
from ppdp.certificate.pages.view import View
from ppdp.certificate.record import Record

OTHER_DELTAS = (1e-4, 1e-5, 1e-6, 1e-8, 1e-10)


def curve(c: Record) -> Sequence[Element]:
    """The guarantee at every delta."""
    promised = dict(privacy_profile(c)) | {c.delta: c.epsilon}
    lines = [
        (number(delta), bound(promised[delta]) if math.isfinite(promised[delta]) else "nothing promised")
        for delta in sorted({*OTHER_DELTAS, c.delta}, reverse=True)
    ]
    epsilons = table([("δ", "n"), ("ε, at most", "n")], lines)
    return h2("The same guarantee at another δ"), element("div", epsilon_curve(c), epsilons, class_="side")


def tradeoff(view: View) -> Sequence[Element]:
    """The whole trade-off between false alarms and misses, and one number for it with its errors."""
    c, promise = view.record, f"{view.proviso}no test misses less than the line says"
    summary, right = gaussian_summary(c), right_guesses(c)
    lines = pairs(
        ("μ", bound(summary.mu)),
        ("Error of μ", bound(summary.error)),
        ("Left out by μ, s", bound(summary.slack)),
        ("Right guesses, at most", element("data", rounded_up(right), value=repr(right))),
    )
    left = ["the sampler's tiny error (as a distance; as a part of δ it is 1 + exp ε times that)"]
    left += ["the chance that a gate passes wrongly"] if c.gate is not None else []
    left += ["the chance that a rare category is released"] if any(release.failure for release in c.releases) else []
    exact = f"The error is 0: all noise is Gaussian. Left out is only {' and '.join(left)}."
    near = (
        "The curve has not quite the shape that μ gives it, so μ has an error: what the certificate promises (line)"
        " is better than what μ says (dotted), but by no more than the error in false alarms and misses. What is left"
        " out is the δ of the certificate."
    )
    return (
        h2("The whole trade-off, and μ"),
        p(
            "A test that decides between two neighbouring datasets raises false alarms and misses."
            f" {begun(promise)}, at any rate of false alarms. One number tells all of it: with Φ for"
            " the normal distribution, a test with false alarms a misses at least Φ(Φ⁻¹(1 − a − s) − μ) − s (Gaussian"
            " differential privacy)."
        ),
        element("div", tradeoff_curve(c), lines, class_="side"),
        p(near if summary.error else exact, " The figures are rounded up.", class_="note"),
    )
