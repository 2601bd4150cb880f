"""The page "Errata of the literature": every figure is computed while it is written."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from literature import preprocessing, projections, wishart
from literature.claims import SHOWN, Claim, Comparison, Error, Status
from literature.items import FATES, ITEMS

__all__ = ["page"]

_WORDS: dict[Status, str] = {"false": "are false", "misprint": "misprints", "ambiguous": "ambiguous", "loose": "loose"}
SOURCES = {
    preprocessing.PAPER: preprocessing.SOURCE,
    projections.PAPER: projections.SOURCE,
    **wishart.SOURCES,
}
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

_HEAD = """# Errata of the literature

What is printed, exactly, and what is true: every claim has a status, and datasets that decide it. This page is written
by `python -m literature docs/errata.md`; every figure of the table and under Data is computed then, and a test
compares the two.

* **false**: concrete neighbouring datasets, or a concrete mechanism, exceed what is printed, in the cases that the
  erratum names;
* **misprint**: data exceed the formula as printed, but the paper's own proof or table has the right one;
* **ambiguous**: data exceed it in one of the readings that the paper leaves open, such as a constant that Ω hides;
* **loose**: true, and no data are known to attain it; the closest known stay at least 3 % below;
* **holds**: true, and attained, at least in a limit;
* **(reconstructed)**, behind any of these: the text that was checked prints no formula here. It was read off the prose,
  the proof or another version of the paper, so no such claim is called false: what data exceed may be the
  reconstruction.

*Attained* is computed from the datasets, through the stage or mechanism itself. *Ours* is what ppdp certifies in the
same setting; a dash where it certifies nothing of the kind. No certificate uses anything printed here.

```python
from literature import claim

found = claim("prop-6").counterexample()
assert found.attained > found.printed
left, right = found.data["left"], found.data["right"]  # the two datasets
```
"""


_FATES = """
Under *Every item* stands what became of each algorithm, theorem, lemma, corollary, definition, table and figure that a
paper numbers, and of sections that claim something:
"""


def page(claims: Iterable[Claim]) -> str:
    """The whole page in Markdown: counts, errors, notation and a table, then a section for every claim."""
    found = [(claim, claim.evidence()) for claim in claims]
    fates = "\n".join(f"* **{fate}**: {words};" for fate, words in FATES.items())
    parts = [_HEAD, f"{_FATES.strip()}\n\n{fates.removesuffix(';')}.\n"]
    for paper in dict.fromkeys(claim.paper for claim, _ in found):
        source = SOURCES[paper]
        own = [(claim, evidence) for claim, evidence in found if claim.paper == paper]
        head = (
            f"## {paper}\n",
            f"{_wrapped(source.reference)}\n",
            _summary(own, len(source.errors)),
            _errors(source.errors),
            f"### Notation\n\n{source.notation}",
            "### Claims\n",
        )
        items = ("### Every item\n", _items(paper, {claim.id: claim for claim, _ in own}))
        parts += [*head, _table(own), *items, *(_section(*pair) for pair in own)]
    return "\n".join(parts)


def _summary(found: list[tuple[Claim, Comparison]], errors: int) -> str:
    """How many claims have each status, and to how many errors the false ones go back."""
    count = Counter(claim.status for claim, _ in found)
    several = ", ".join(f"{count[status]} {words}" for status, words in _WORDS.items())
    several = several.replace("1 are false", "1 is false") if count["false"] == 1 else several
    false = count["false"]
    rest = (
        f"the {false} false ones go back to {errors} independent errors"
        if false > 1
        else "one error makes one false claim"
    )
    text = f"Of {len(found)} claims {several}, and {count['holds']} hold. A claim that is repeated is counted each "
    text += f"time: {rest}."
    return f"{_wrapped(text)}\n"


def _errors(errors: tuple[Error, ...]) -> str:
    """The independent errors, and the false claims that rest on each."""
    lines = ["| independent error | false claims |", "|---|---|"]
    for error in errors:
        links = ", ".join(f"[{name}](#{name})" for name in error.claims)
        lines.append(f"| {error.words} | {links} |")
    return "\n".join(lines) + "\n"


def _table(found: list[tuple[Claim, Comparison]]) -> str:
    lines = ["| place | claim | status | printed | attained | ours |", "|---|---|---|---|---|---|"]
    for claim, evidence in found:
        figures = (_figure(evidence.printed), _figure(evidence.attained), _figure(evidence.ours))
        cells = (f"[{claim.place}](#{claim.id})", f"{claim.subject}: {evidence.quantity}", claim.verdict, *figures)
        lines.append(f"| {' | '.join(cell.replace('|', '∣') for cell in cells)} |")
    return "\n".join(lines) + "\n"


def _items(paper: str, claims: dict[str, Claim]) -> str:
    """What became of every numbered item of a paper, and of sections that claim something."""
    lines = ["| item | | what became of it |", "|---|---|---|"]
    for item in ITEMS[paper]:
        verdicts = [f"[{name}](#{name}): {claims[name].verdict}" for name in item.claims if name in claims]
        files = [f"[{Path(path).name}]({_from_docs(path)})" for path in item.where]
        told = "; ".join(part for part in (item.words, ", ".join(verdicts), ", ".join(files)) if part)
        lines.append(f"| {item.place} | {item.fate} | {told} |")
    return "\n".join(lines) + "\n"


def _from_docs(path: str) -> str:
    return path.removeprefix("docs/") if path.startswith("docs/") else f"../{path}"


def _section(claim: Claim, evidence: Comparison) -> str:
    ours = "" if evidence.ours is None else f", ours {_figure(evidence.ours)}"
    formulas = ", ".join(f"`{name}`" for name in claim.corrected)
    remark = "Erratum" if claim.status in SHOWN else "Remark"
    quantity = evidence.quantity[:1].upper() if evidence.quantity[0].isascii() else evidence.quantity[0]
    quantity += evidence.quantity[1:]
    figures = f"printed {_figure(evidence.printed)}, attained {_figure(evidence.attained)}{_ratio(evidence)}{ours}"
    paragraphs = [
        f'### <a id="{claim.id}"></a>{claim.place}: {claim.subject}',
        f"`{claim.id}`, **{claim.verdict}**. {claim.statement}",
        f"    {claim.formula}",
        f"**{remark}.** {claim.erratum}",
        f"**Data.** {evidence.setting} **{quantity}: {figures}.**",
        f"See [{claim.page.replace('-', ' ')}](theory/{claim.page}.md){f' ({formulas})' if formulas else ''}.",
    ]
    return "\n\n".join(map(_wrapped, paragraphs)) + "\n"


def _wrapped(paragraph: str) -> str:
    """At most 120 characters in a line; headings and formulas as they are."""
    if paragraph.startswith(("#", " ")):
        return paragraph
    return textwrap.fill(paragraph, 120, break_long_words=False, break_on_hyphens=False)


def _ratio(evidence: Comparison) -> str:
    """How much is exceeded, or lost, where that is more than rounding."""
    printed, attained = evidence.printed, evidence.attained
    if printed == 0 or max(printed, attained) < 1.005 * min(printed, attained):
        return ""
    return (
        f" ({_figure(attained / printed)} times that)"
        if evidence.exceeded
        else f" ({_figure(attained / printed)} of that)"
    )


def _figure(value: float | None) -> str:
    """Four digits; what lies in the middle goes up, on every machine."""
    if value is None:
        return "–"
    if value == 0 or math.isinf(value):
        return f"{value:g}"
    value *= 1 + 1e-12
    if 1e-3 <= abs(value) < 1e7:
        return f"{float(f'{value:.4g}'):,.10g}"
    mantissa, exponent = f"{value:.3e}".split("e")
    return f"{float(mantissa):g}·10{str(int(exponent)).translate(_RAISED)}"
