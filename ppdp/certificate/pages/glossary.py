"""Words of certificates and their pages, with their meanings in one plain sentence each.

Their source is ``words.json``: ``docs/reference/glossary.md`` has the same sentences, and a test says where it has not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ppdp.certificate.canonical import shipped

WORDS = shipped("ppdp.certificate.pages", "words.json")
GLOSSARY: Mapping[str, str] = WORDS["glossary"]
WAYS: Mapping[str, str] = WORDS["ways"]
TERMS: Mapping[str, str] = WORDS["terms"]
"""Names of statistics, parameters and changes of rows, explained where a table has them."""


def terms_in(words: str) -> Sequence[tuple[str, str]]:
    """The terms that stand in these words, and in the sentences that explain those, with their sentences.

    Examples
    --------
    >>> [term for term, _ in terms_in("The gate passed.")]
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
