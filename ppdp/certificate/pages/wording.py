"""Words that every form of a certificate shares: its headline, whom it protects, what it takes on trust, its terms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ppdp.certificate.record import Record

__all__ = [
    "DIGEST",
    "ON_TRUST",
    "around_the_claim",
    "besides",
    "neighbours_in_words",
    "protected_in_words",
    "shown_facts",
    "terms",
]


MOST_FACTS = 50  # declared ranges and constants that are shown; the document has all of them
MOST_LETTERS = 800  # of one value
ON_TRUST = (
    "What is “declared” was taken from the user's word, and nothing has checked it. Ask of each, first of the ranges,"
    " where it comes from: the promise does not hold if it was read off these rows."
)
DIGEST = (
    "A digest that matches shows that nothing was damaged, not who wrote the document: whoever changes it can compute a"
    " new one. Compare it with the digest that the issuer told you, or check the issuer's signature, which nobody else"
    " can make."
)
PLAINLY = {
    "exceptions raised on invalid values": "In this run an entry that is missing where none was announced, that is"
    " infinite, or a label that was not announced would have stopped the run; whoever learns that it stopped learns"
    " something about the data. Under the other setting such entries are replaced by public values, and that is"
    " covered.",
}
TERMS = {
    "means": "of every column",
    "squares": "means of every column and of its squares, from which its spread follows",
    "matrix": "means of every column and of all products of two columns",
    "moment": "means of all products of two columns",
    "complete-matrix": "means of all products of two columns, over the rows without gaps",
    "trimmed-means": "of every column, without its smallest and largest entries",
    "medians": "of every column",
    "quantile-pairs": "a lower and an upper quantile of every column",
    "quantile-triples": "a lower quantile, the median and an upper quantile of every column",
    "replaced": "the row holds something else",
    "toggled": "the row counts in one of the two datasets only",
    "moved": "the row is there in both, with other numbers",
    "clip": "no row's part in one answer is longer than this",
    "coef_norm": "the coefficients together are no longer than this",
    "smoothing": "half the width in which the loss is rounded off",
}


def around_the_claim(c: Record) -> tuple[str, str]:
    """What stands before and after "(ε, δ) = (1, 10⁻⁶)" in the title: a promise never stands there without its if."""
    if c.status == "UNCONDITIONAL":
        return "", "-differential privacy, end to end"
    if c.status == "CONDITIONAL":
        return "if what is assumed below holds, ", "-differential privacy, end to end"
    further = " and if what is assumed below holds" if len(c.reasons) > 1 else ""
    return f"nothing is protected; with secret noise{further} it would be ", "-differentially private"


def protected_in_words(c: Record) -> str:
    """The unit of privacy, and whether anybody said so."""
    assumed = any(fact.name == "rows_per_unit" and fact.origin == "default" for fact in c.facts)
    return c.neighbours.unit + ("; each person is assumed to have one row, nobody declared it" if assumed else "")


def neighbours_in_words(c: Record) -> str:
    """What neighbouring datasets are; the document names those of a person who has one row."""
    return c.adjacency if c.neighbours.single else c.neighbours.words


def shown_facts(c: Record) -> list[tuple[str, str, str]]:
    """Name, value and origin of the facts that people are shown; the document has all, in full."""
    shown: list[tuple[str, str, str]] = []
    left_out = 0
    for fact in c.facts:
        on_trust = fact.origin.startswith("declared, step")
        if on_trust and sum(origin.startswith("declared, step") for _, _, origin in shown) >= MOST_FACTS:
            left_out += 1
            continue
        value = fact.value
        short = value if len(value) <= MOST_LETTERS else f"{value[:MOST_LETTERS]}... (in full in the JSON document)"
        shown.append((fact.name, short, fact.origin))
    if left_out:
        shown.append(("further", f"{left_out} more that are declared", "see the JSON document"))
    return shown


def terms(words: Iterable[str]) -> Sequence[tuple[str, str]]:
    """Those of these words that need an explanation, with it."""
    return [(word, TERMS[word]) for word in dict.fromkeys(words) if word in TERMS]


def besides(sentence: str) -> str:
    """What a sentence that names parameters means in plain words; empty for one that names none."""
    return next((plainly for start, plainly in PLAINLY.items() if sentence.startswith(start)), "")
