"""The terms of certificates and their pages, one plain sentence each.

This is their source: ``docs/reference/glossary.md`` has the same sentences, and a test says where it has not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from xml.etree.ElementTree import Element

from ppdp.certificate.pages.markup import element, h2

WORDS = "Words on this page"
GLOSSARY: Mapping[str, str] = {
    "attacker": "Anyone who tries to learn something about one person from what was released, with any method and any"
    " other knowledge.",
    "certificate": "The document (certificate.json) that says what is guaranteed and how it follows from public"
    " numbers, so that anybody can compute it again without the data; its page, of several sheets, says it in words.",
    "clip": "To replace a value outside a public range by the end of the range, or to shorten a row to a public"
    " length.",
    "CONDITIONAL": "The guarantee holds only if something is true of the rows that nothing has tested.",
    "declared": "Stated by the person who ran the fit, and not proved by anything.",
    "δ": "Delta: a small probability that the bound ε does not cover.",
    "detection": "An alarm of the attacker's test that is right.",
    "differential privacy": "Whatever one person's rows hold, what is released comes out with nearly the same"
    " probability.",
    "digest": "A fingerprint (SHA-256) of what the certificate claims: another claim has another one. It does not"
    " tell who wrote it.",
    "ε": "Epsilon: how much more likely any outcome can be with one person's rows than with others in their place, as a"
    " factor exp(ε), apart from the small probability δ; smaller protects more.",
    "false alarm": "An alarm of the attacker's test that is wrong.",
    "fit": "One run of the program on the private rows; what it gives out costs privacy.",
    "gate": "One noisy test of what bounds need of the rows; if it does not pass, that refusal is all that leaves.",
    "issuer": "The person who ran the fit and hands out the certificate; the page knows only what the issuer said.",
    "key": "A pair of long numbers: with the secret one its owner signs, with the public one, which a page shows as a"
    " digest, anybody checks that.",
    "label": "What is to be predicted of a row, such as alive or dead.",
    "ledger": "A record of what was released about the same people, as far as it was charged to it; it refuses what"
    " exceeds its limit.",
    "limit": "The most that may be: for values, to which they are clipped; for the number of rows, beyond which a run"
    " stops; for a ledger, the cost up to which it lets releases happen.",
    "mechanism": "The last step of a pipeline: it releases an answer or a model with noise.",
    "miss": "No alarm of the attacker's test, though it should raise one.",
    "μ": "Mu: the strength of the whole guarantee in one number; telling two neighbouring datasets apart is as hard as"
    " telling a normal distribution from the same one shifted by μ standard deviations.",
    "neighbouring datasets": "Two possible tables that differ in what is protected, such as one person's rows.",
    "noise": "Chance that is put in before anything leaves, so that one person's rows change little of what can be"
    " learned from it.",
    "person": "Whom the guarantee protects; a person owns one or more rows.",
    "pipeline": "Stages in a fixed order, with a last step that releases something; fitted as one.",
    "ppdp": "The program that made the certificate, and that checks it; it adds noise to what it computes from tables.",
    "public": "What everybody may know: fixed without looking at the private rows, or not protected, such as"
    " the names of columns.",
    "release": "What leaves a run: noisy statistics, a noisy answer or model, and the certificate.",
    "row": "One record of the table.",
    "SEEDED": "The noise can be computed again from a seed, so nothing is protected; for tests.",
    "sensitivity": "The most by which an answer can change if one table is exchanged for a neighbouring one.",
    "signature": "A mark that only the owner of a secret key can make, and that anybody can check; whose key it"
    " is has to be asked.",
    "stage": "A part of the run that prepares the rows, for instance fills missing values or scales.",
    "step": "A named part of the run: a stage, or the last one, the mechanism; also one iteration of training.",
    "trade-off": "How rare misses can be at each rate of false alarms; the guarantee keeps both from being rare.",
    "training": "How a model is fitted to the rows.",
    "UNCONDITIONAL": "The guarantee holds whatever the private rows contain, if what its page lists as taken on trust"
    " is true.",
}


def used(words: str) -> Sequence[tuple[str, str]]:
    """The terms that stand in these words, and in the sentences that explain those, with their sentences.

    Examples
    --------
    >>> [term for term, _ in used("The gate passed.")]
    ['gate', 'row']
    """
    found: dict[str, str] = {}
    while more := {term: said for term, said in GLOSSARY.items() if term not in found and _stands(term, words)}:
        found |= more
        words = " ".join(more.values())
    return [(term, said) for term, said in GLOSSARY.items() if term in found]


def _stands(term: str, words: str) -> bool:
    """Whether a term stands there, at the beginning of a sentence as well."""
    first = f"[{term[0]}{term[0].upper()}]"
    return re.search(rf"(?<!\w){first}{re.escape(term[1:])}", words) is not None


def glossary(words: str) -> Sequence[Element]:
    """The terms of a page as a section of it."""
    listed = (element("div", element("dt", term), element("dd", said)) for term, said in used(words))
    return h2(WORDS), element("dl", *listed, class_="words")
