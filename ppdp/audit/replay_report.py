"""What a replay on private rows showed; it stays where the rows are."""

from __future__ import annotations

import html
import math
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

from ppdp.certificate.pages.html import html_page
from ppdp.certificate.pages.layout import Cell, items, pairs, table
from ppdp.certificate.pages.markup import bound, element, number, printable
from ppdp.certificate.share.files import write_atomically
from ppdp.core.tables import html_table, visible

__all__ = ["ReplayFinding", "ReplayReport"]

PRIVATE = "PRIVATE: this was read off private rows, is covered by no certificate and must not leave with one."
NOTHING = "That nothing was found proves nothing: it is an attack, and only the branch was seen that these rows took."
FALSE = "Something depends on the rows more than is claimed: the claim is false, and no certificate of it may be used."
REFUSED = "The gate refused these rows; what stands behind it was looked at as if it had not."
UNSEEN = "The conditions held on no pair, so nothing is claimed, and nothing was shown, of what stands behind them."
HEAD = "what", "quantity", "share of the claim", ""


@dataclass(frozen=True, slots=True)
class ReplayFinding:
    """The most that was attained of one claim.

    Attributes
    ----------
    name : str
        A step, a release, the gate or the execution.
    quantity : str
        What was compared.
    ratio : float
        Attained over claimed; infinite where something differs that must be the same.
    violated : bool
        Whether the claim is false.
    """

    name: str
    quantity: str
    ratio: float
    violated: bool

    def __repr__(self) -> str:
        return f"{visible(self.name)}: {self.quantity} {self.share}{' VIOLATED' * self.violated}"

    @property
    def share(self) -> str:
        """The ratio in words."""
        return "differs" if self.ratio == math.inf else "same" if self.ratio == 0 else f"{self.ratio:.4g}"


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """What executions on private rows and on neighbours of them showed. It is private itself.

    Attributes
    ----------
    epsilon, delta : float
        What would be certified.
    steps : tuple of str
        Names of the steps.
    n_rows : int
        Public number of rows.
    findings : tuple of ReplayFinding
        One for everything that was compared.
    skipped : tuple of (name, reason)
        What could not be compared.
    pairs, counted : int
        Pairs of neighbouring datasets, and those on which all conditions held.
    refused : bool
        Whether the gate refused the rows.
    seed : int
        Of neighbours and noise.
    seconds : float
        How long it took.
    """

    epsilon: float
    delta: float
    steps: tuple[str, ...]
    n_rows: int
    findings: tuple[ReplayFinding, ...]
    skipped: tuple[tuple[str, str], ...]
    pairs: int
    counted: int
    refused: bool
    seed: int
    seconds: float

    @property
    def violations(self) -> tuple[ReplayFinding, ...]:
        """Claims that are false."""
        return tuple(finding for finding in self.findings if finding.violated)

    @property
    def violated(self) -> bool:
        """Whether any claim is false."""
        return bool(self.violations)

    @property
    def word(self) -> str:
        """REFUTED, NOT REFUTED, or VACUOUS where the conditions held on no pair."""
        return "REFUTED" if self.violated else "NOT REFUTED" if self.counted else "VACUOUS"

    @property
    def verdict(self) -> str:
        """What that means, in words."""
        parts = [FALSE if self.violated else NOTHING, REFUSED * self.refused, UNSEEN * (not self.counted)]
        return " ".join(part for part in parts if part)

    def _caption(self) -> str:
        claim = f"({self.epsilon:g}, {self.delta:g}) of {visible(' > '.join(self.steps))}, {self.n_rows} rows"
        return f"REPLAY AUDIT: {self.word} in {self.seconds:.0f} s: {claim}, {self.pairs} pairs of neighbours"

    def _lines(self) -> Iterator[tuple[str, ...]]:
        for f in sorted(self.findings, key=lambda finding: not finding.violated):
            if f.ratio:
                yield visible(f.name), f.quantity, f.share, "VIOLATED" * f.violated

    def _same(self) -> str:
        same = [finding for finding in self.findings if not finding.ratio]
        return f"the same on all neighbours, or not moved: {len(same)} more"

    def __repr__(self) -> str:
        lines = [HEAD, *self._lines()]
        widths = [max(map(len, column)) for column in zip(*lines)]
        shown = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)
        skipped = (f"not compared: {visible(name)}: {reason}" for name, reason in self.skipped)
        return "\n".join([PRIVATE, self._caption(), *shown, self._same(), *skipped, self.verdict])

    def _repr_html_(self) -> str:
        note = f"<p>{html.escape(self.verdict)}</p>"
        return f"<p><strong>{PRIVATE}</strong></p>" + html_table(self._caption(), HEAD, self._lines()) + note

    def to_dict(self) -> dict[str, Any]:
        """JSON form; the ratio is null where something differs that must be the same."""
        findings = [{**asdict(f), "ratio": f.ratio if math.isfinite(f.ratio) else None} for f in self.findings]
        own = {name: getattr(self, name) for name in ("violated", "epsilon", "delta", "n_rows", "pairs", "counted")}
        rest = {"steps": list(self.steps), "skipped": [list(one) for one in self.skipped], "refused": self.refused}
        end = {"seed": self.seed, "seconds": self.seconds, "ppdp": version("ppdp")}
        return {"private": PRIVATE, **own, **rest, "findings": findings, **end}

    def to_html(self) -> str:
        """One self-contained page, to be kept where the rows are."""
        claim = (" a replay of (ε, δ) = (", bound(self.epsilon), ", ", bound(self.delta), ")")
        lines: list[tuple[Cell, ...]] = [(printable(line[0]), *line[1:]) for line in self._lines()]
        header = element(
            "header",
            element("h1", element("span", self.word, class_="status"), *claim),
            element("p", element("strong", PRIVATE)),
            element("p", self.verdict, class_="lede"),
            pairs(
                ("Steps", printable(" > ".join(self.steps))),
                ("Rows", number(self.n_rows)),
                ("Pairs of neighbours", number(self.pairs)),
                ("Data", "private rows and neighbours of them; nothing was released or charged"),
            ),
        )
        body = table([(head, "") for head in HEAD], lines, class_="cards")
        skipped = [printable(f"Not compared: {name}: {reason}.") for name, reason in self.skipped]
        note = f"ppdp {version('ppdp')}, seed {self.seed}, {self.seconds:.0f} seconds; {self._same()}."
        parts = [header, body, *([items(skipped)] if skipped else []), element("p", note, class_="note")]
        kind = "unconditional" if self.word == "NOT REFUTED" else "conditional"
        return html_page(f"PRIVATE replay audit: {self.word}", element("main", *parts, class_=kind))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page, atomically; it is private."""
        write_atomically(path, self.to_html())
