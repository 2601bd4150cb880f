"""The page "Errata of the literature": every figure is computed while it is written."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable

from ppdp.literature.claims import Claim, Comparison

__all__ = ["page"]

_HEAD = """# Errata of the literature

What is printed, exactly, and what is true: every claim has a status, and datasets that decide it. This page is written
by `python -m ppdp.literature docs/errata.md`; every figure on it is computed then, and a test compares the two.

* **false**: concrete neighbouring datasets, or a concrete mechanism, exceed what is printed, in the cases that the
  erratum names;
* **loose**: true, but the closest data known stay well below;
* **holds**: true, and attained, at least in a limit.

*Attained* is computed from the datasets, through the stage or mechanism itself. *Ours* is what ppdp certifies in the
same setting; a dash where it certifies nothing of the kind. No certificate uses anything printed here.

```python
from ppdp.literature import claim

found = claim("prop-6").counterexample()
assert found.attained > found.printed
left, right = found.data["left"], found.data["right"]  # the two datasets
```
"""


def page(claims: Iterable[Claim]) -> str:
    """The whole page in Markdown: a table, then a section for every claim."""
    found = [(claim, claim.evidence()) for claim in claims]
    parts = [_HEAD]
    for paper in dict.fromkeys(claim.paper for claim, _ in found):
        own = [(claim, evidence) for claim, evidence in found if claim.paper == paper]
        parts += [f"## {paper}\n", _summary(own), _table(own), *(_section(*pair) for pair in own)]
    return "\n".join(parts)


def _summary(found: list[tuple[Claim, Comparison]]) -> str:
    count = {status: sum(claim.status == status for claim, _ in found) for status in ("false", "loose", "holds")}
    return f"Of {len(found)} claims {count['false']} are false, {count['loose']} loose, and {count['holds']} hold.\n"


def _table(found: list[tuple[Claim, Comparison]]) -> str:
    lines = ["| place | claim | status | printed | attained | ours |", "|---|---|---|---|---|---|"]
    for claim, evidence in found:
        figures = (_figure(evidence.printed), _figure(evidence.attained), _figure(evidence.ours))
        cells = (f"[{claim.place}](#{claim.id})", f"{claim.subject}: {evidence.quantity}", claim.status, *figures)
        lines.append(f"| {' | '.join(cell.replace('|', '∣') for cell in cells)} |")
    return "\n".join(lines) + "\n"


def _section(claim: Claim, evidence: Comparison) -> str:
    ours = "" if evidence.ours is None else f", ours {_figure(evidence.ours)}"
    formulas = ", ".join(f"`{name}`" for name in claim.corrected)
    remark = "Erratum" if claim.status == "false" else "Remark"
    quantity = evidence.quantity[:1].upper() if evidence.quantity[0].isascii() else evidence.quantity[0]
    quantity += evidence.quantity[1:]
    figures = f"printed {_figure(evidence.printed)}, attained {_figure(evidence.attained)}{_ratio(evidence)}{ours}"
    paragraphs = [
        f'### <a id="{claim.id}"></a>{claim.place}: {claim.subject}',
        f"`{claim.id}`, **{claim.status}**. {claim.statement}",
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
    """Four digits."""
    if value is None:
        return "–"
    if value == 0 or math.isinf(value):
        return f"{value:g}"
    if 1e-3 <= abs(value) < 1e7:
        return f"{float(f'{value:.4g}'):,.10g}"
    mantissa, exponent = f"{value:.3e}".split("e")
    return f"{float(mantissa):g}·10^{int(exponent)}"
