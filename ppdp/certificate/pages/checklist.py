"""What NIST SP 800-226 asks of a differential privacy guarantee, in our words, answered from the certificate.

The guidelines build a pyramid: the parameters on top, below them what can break a guarantee, and at the bottom what
happens to data before and around it. What a certificate cannot know, the organisation has to answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from ppdp.certificate.pages.markup import h2, p, table
from ppdp.certificate.pages.meaning import neighbours_in_words
from ppdp.certificate.pages.trust import ASSUMED_UNIT, unit_on_trust
from ppdp.certificate.pages.view import View
from ppdp.core.figures import figure
from ppdp.core.formula import EXACT_LAWS, GAUSSIAN
from ppdp.privacy.losses import Part

CHECKLIST = "Checklist after NIST SP 800-226"


@dataclass(frozen=True, slots=True)
class Answer:
    """One point: what the certificate says, and what it leaves to the organisation; empty if nothing."""

    topic: str
    certificate: str = ""
    organisation: str = ""


def checklist(view: View) -> Sequence[Element]:
    """The points as a section of the page."""
    lines = [
        (one.topic, one.certificate or "Not covered.", one.organisation or "Nothing further.") for one in answers(view)
    ]
    return (
        h2(CHECKLIST),
        p(
            "What the guidelines for evaluating differential privacy guarantees (March 2025) ask, in our words: what"
            " the certificate answers, and what only the organisation can answer."
        ),
        table(
            [("Point", ""), ("Answered by the certificate", "wide"), ("The organisation answers", "wide")],
            lines,
            class_="checklist cards",
        ),
    )


def answers(view: View) -> Iterator[Answer]:
    """All points, from the top of the pyramid to its bottom."""
    yield from _parameters(view)
    yield from _algorithms(view)
    yield from _deployment(view)


def _parameters(view: View) -> Iterator[Answer]:
    c = view.record
    claim = f"(ε, δ) = ({figure(c.epsilon, upward=True)}, {figure(c.delta, upward=True)})"
    yield Answer(
        "Strength: ε and δ",
        f"{c.status}: {view.title(claim)}. The page also says what that means as an attacker's success.",
        "Whether that is strong enough for these data and this use.",
    )
    yield Answer("Unit of privacy", f"Protected: {view.protected}.", "Whether that unit is a person here.")
    yield Answer(
        "Which datasets are neighbours",
        f"Two tables that differ so: {neighbours_in_words(view.neighbours)}.",
    )
    if c.neighbours.cuts:
        limit = f"Enforced: rows kept of each person: at most {c.rows_per_unit}. Who owns a row is declared."
    else:
        limit = "One row: assumed, nobody declared it." if unit_on_trust(c) == ASSUMED_UNIT else unit_on_trust(c)
    left = "Whether one id is one person, and nobody has two." if c.neighbours.cuts else "Whether that is true."
    yield Answer("How much one person can contribute", limit, left)
    kind = "approximate" if c.delta > 0 else "pure"
    yield Answer(
        "Variant", f"{kind.title()} differential privacy; also μ of Gaussian differential privacy, with its error."
    )
    yield Answer(
        "Several releases",
        "Everything that this run released is one total, the ε and δ of the headline. "
        + (f"Issued {view.issued}" if view.issued else "The certificate has an earlier form and knows no others."),
        "Releases about the same people that were charged to no ledger, to another one, or under another name.",
    )


def _algorithms(view: View) -> Iterator[Answer]:
    c = view.record
    pages = sorted({step.page for step in c.steps} | {noise.one.page for noise in view.noises})
    yield Answer(
        "Correct algorithms",
        f"Each bound names its formula and its proof ({', '.join(pages)}), and ppdp verify computes all of them again.",
        "Whether to believe that this run took place as recorded, which nobody can check; a signature says which key"
        " vouches for it.",
    )
    yield Answer(
        "Preparing the rows, limits and clipping",
        "The stages are inside the guarantee. Ranges and limits are public facts, listed with who says so.",
        "Whether anything declared was taken from these rows, and anything in a row was made from other people’s.",
    )
    tuned = "Covered as far as counted under “Spent on these people so far”." if c.ledger is not None else ""
    tuned = "The search and its choice are inside the guarantee." if c.search is not None else tuned
    yield Answer("Tuning and repeated attempts", tuned, "Other attempts and choices made from scores on these rows.")
    yield Answer(
        "Utility",
        "The noise on every number that left is listed.",
        "Whether the result is accurate enough for its purpose.",
    )
    yield Answer(
        "Bias",
        "",
        "Whom clipping, filled values and noise hit hardest: small groups as a rule; and what the data were biased by.",
    )


def _deployment(view: View) -> Iterator[Answer]:
    c = view.record
    yield Answer(
        "How it is asked",
        "One run, whose results do not change; nobody asks the rows further questions through it.",
    )
    yield Answer(
        "Whom people must trust",
        "The central model: whoever ran the fit held the rows; noise was added before anything left.",
        "Who that was, and whether people may trust them.",
    )
    yield Answer("Randomness", _randomness(view))
    laws = sorted({noise.law for noise in view.noises})
    exact = all(law in (GAUSSIAN, *EXACT_LAWS) for law in laws) and not any(
        Part.from_dict(part).idealised for part in c.total.parts
    )
    yield Answer(
        "Floating point",
        f"Bounds include rounding, and all noise ({', '.join(laws)}) is drawn so that floats are covered."
        if exact
        else "Bounds include rounding; some chance is drawn by another library, or its law is proved for real numbers"
        " only, as the page says.",
    )
    stops = "a run that breaks off on a faulty entry, from " if c.invalid == "error" else ""
    yield Answer(
        "Side channels",
        "" if c.invalid == "error" else "Invalid values are repaired, so no error tells of them.",
        f"What may be learned from {stops}its running time and the memory that it uses.",
    )
    yield Answer(
        "Security and access to the rows", "", "Where the rows lie, who can read them and the machine's memory."
    )
    yield Answer(
        "Collection of the data",
        "",
        "Consent, how much is collected and kept, and what leaked before: the guarantee begins with the table.",
    )
    others = "The other releases that the top of this page names are not included." if view.beside else ""
    yield Answer(
        "Other statistics of the same data",
        others,
        "Whatever was published without noise or from runs that are not counted.",
    )


def _randomness(view: View) -> str:
    if view.record.status == "SEEDED":
        return "The noise came from a seed: nothing is protected."
    return (
        "No seed was given, so nobody can compute the noise again: that is as it should be. The distance of the sampled"
        f" noise from the exact one is part of δ: at most {figure(view.record.total.allowance, upward=True)}."
    )
