"""What an audit found: for a terminal, a notebook, a machine and a reviewer."""

from __future__ import annotations

import html
import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from ppdp.audit.datasets import pair_to_dict
from ppdp.audit.optimise import SIZES
from ppdp.audit.output import OutputFinding
from ppdp.audit.stability import NOTHING_MOVED, StabilityReport
from ppdp.certificate.pages.drawing import budget_bar
from ppdp.certificate.pages.html import html_page
from ppdp.certificate.pages.layout import Cell, items, pairs, table
from ppdp.certificate.pages.markup import Element, bound, element, number, printable
from ppdp.certificate.share.files import write_atomically
from ppdp.core.tables import html_table
from ppdp.testing.neighbours import Pair

__all__ = ["AuditReport"]

NOTHING = (
    "That nothing was found proves nothing: the certificate's derivation is the proof, and this is an attack on it."
)
PUSHED = "Datasets were found that are pushed further apart than is claimed, which proves the claim false."
LONGER = "A row was found that is longer, or an entry that is larger, than is claimed, which proves the claim false."
TOLD = "The two datasets were told apart better than is certified, at the confidence given."
REPORT = "The certificate must not be used. Please report it with the JSON form, which holds the seed and the datasets."
HEAD = "what", "lower bound", "upper bound", "reached"


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What attacks on a plan reached, beside what is certified.

    Attributes
    ----------
    epsilon, delta : float
        What is certified.
    steps : tuple of str
        Names of the steps.
    n_rows : int
        Public number of rows.
    stability : StabilityReport
        How far neighbouring datasets were pushed apart.
    output : OutputFinding or None
        How well they could be told apart by what was released.
    pair : tuple of Rows or None
        The datasets on which that was tried, made up.
    seed : int
        Of the search.
    not_run : str or None
        Why there is no output attack.
    seconds : float
        How long it took.
    """

    epsilon: float
    delta: float
    steps: tuple[str, ...]
    n_rows: int
    stability: StabilityReport
    output: OutputFinding | None
    pair: Pair | None
    seed: int
    not_run: str | None
    seconds: float

    @property
    def violated(self) -> bool:
        """Whether anything that is claimed was exceeded."""
        return self.stability.violated or (self.output is not None and self.output.violated)

    @property
    def word(self) -> str:
        """REFUTED, NOT REFUTED, or VACUOUS where nothing moved and nothing was told apart in any attack."""
        told = self.output is not None and self.output.told
        moved = len(self.stability.vacuous) < len({finding.name for finding in self.stability.findings})
        return "REFUTED" if self.violated else "NOT REFUTED" if told or moved else "VACUOUS"

    @property
    def verdict(self) -> str:
        """What that means, in words."""
        told = self.output is not None and self.output.violated
        false = {finding.quantity for finding in self.stability.violations}
        said = (PUSHED, bool(false - SIZES)), (LONGER, bool(false & SIZES)), (TOLD, told)
        found = [words for words, so in said if so]
        vacuous = f" Of {', '.join(self.stability.vacuous)}: {NOTHING_MOVED}." if self.stability.vacuous else ""
        return " ".join([*found, REPORT]) if found else NOTHING + vacuous

    def bounds(self) -> list[tuple[str, float, float]]:
        """What was attained and what is certified of μ and ε: (name, lower, upper)."""
        if self.output is None:
            return []
        found = self.output
        lines = [("ε at δ = " + f"{found.delta:.3g}", max(found.epsilon_low, 0.0), found.epsilon)]
        if found.mu is not None:
            lines.insert(0, ("μ", max(found.mu_low, 0.0), found.mu))
        return lines

    def _caption(self) -> str:
        claim = f"({self.epsilon:g}, {self.delta:g}) of {' > '.join(self.steps)}, {self.n_rows} rows"
        return f"AUDIT: {self.word} in {self.seconds:.0f} s: {claim}"

    def _lines(self) -> Iterator[tuple[str, ...]]:
        for name, low, high in self.bounds():
            yield name, f"{low:.4g}", f"{high:.4g}", f"{low / high:.3f}" if high else ""

    def __repr__(self) -> str:
        parts = [self._caption(), repr(self.stability)]
        parts.append(f"output attack: {self.output}" if self.output else f"output attack: not run: {self.not_run}")
        return "\n".join([*parts, self.verdict])

    def _repr_html_(self) -> str:
        note = f"<p>{html.escape(self.verdict)}</p>"
        return html_table(self._caption(), HEAD, self._lines()) + self.stability._repr_html_() + note

    def to_dict(self) -> dict[str, Any]:
        """JSON form; of what is refuted with the datasets."""
        found, violations = self.output, self.stability.violations
        pairs = [{"name": f.name, "quantity": f.quantity, **pair_to_dict(f.pair)} for f in violations]
        if found is not None and found.violated and self.pair is not None:
            pairs.append({"name": found.target, "quantity": "output", **pair_to_dict(self.pair)})
        return {
            "violated": self.violated,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "steps": list(self.steps),
            "n_rows": self.n_rows,
            "stability": self.stability.to_dict(),
            "output": found and found.to_dict(),
            "not_run": self.not_run,
            "pairs": pairs,
            "seed": self.seed,
            "seconds": self.seconds,
            "ppdp": version("ppdp"),
        }

    def to_html(self) -> str:
        """One self-contained page, to stand beside the certificate's."""
        parts = [self._opening(), *self._told_apart(), *self._pushed_apart(), self._closing()]
        kind = "unconditional" if self.word == "NOT REFUTED" else "conditional"
        return html_page(f"Audit: {self.word}", element("main", *parts, class_=kind))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page, atomically."""
        write_atomically(path, self.to_html())

    def _opening(self) -> Element:
        claim = (" an attack on (ε, δ) = (", bound(self.epsilon), ", ", bound(self.delta), ")")
        return element(
            "header",
            element("h1", element("span", self.word, class_="status"), *claim),
            element("p", self.verdict, class_="lede"),
            pairs(
                ("Steps", printable(" > ".join(self.steps))),
                ("Rows", number(self.n_rows)),
                ("Data", "made up: neighbouring datasets that were searched for; no private row was read"),
            ),
        )

    def _told_apart(self) -> Iterator[Element]:
        yield element("h2", "How well the two datasets can be told apart")
        found = self.output
        if found is None:
            yield element("p", f"Not tried: {self.not_run}.")
            return
        yield element(
            "p",
            f"The plan was executed {found.runs:,} times on the worst pair found, with its own noise. Bounds from"
            f" counts hold together at confidence 1 - {1 - found.confidence:.1g}: below the lower bound the claim would"
            " be false, and the upper bound is what is certified."
            + f" {found.refused:,} of them ended in a refusal."
            * bool(found.refused),
        )
        if found.violated:
            yield element(
                "p",
                f"An event is at least {found.excess:.3g} more likely on one dataset than what is certified allows for"
                " how likely it is on the other. The whole loss is compared, so epsilon at this one delta may be kept.",
            )
        lines: list[tuple[Cell, ...]] = [
            (name, number(low), number(high), (budget_bar(low / high if high else 0.0), f"{100 * low / high:.0f} %"))
            for name, low, high in self.bounds()
            if high
        ]
        yield table([("Loss", ""), ("Lower bound", "n"), ("Upper bound", "n"), ("Reached", "")], lines, class_="cards")
        events: list[tuple[Cell, ...]] = [
            (event.statistic, event.purpose, *map(number, event.bounds)) for event in found.events
        ]
        heads = [("Statistic", ""), ("Chosen for", ""), ("At least, on one", "n"), ("At most, on the other", "n")]
        yield table(heads, events, class_="cards")

    def _pushed_apart(self) -> Iterator[Element]:
        yield element("h2", "How far neighbouring datasets were pushed apart")
        yield element("p", "In every line on a pair of its own, the worst that was found for it.")
        lines: list[tuple[Cell, ...]] = [
            (
                printable(f.name),
                f.quantity,
                number(f.attained),
                number(f.claimed),
                (budget_bar(f.ratio), "VIOLATED" if f.violated else f"{100 * f.ratio:.0f} %"),
                number(f.evaluations),
                number(f.evaluations if f.counted is None else f.counted),
            )
            for f in self.stability.telling
        ]
        heads = [("What", ""), ("Quantity", ""), ("Attained", "n"), ("Claimed", "n"), ("Reached", "")]
        heads += [("Pairs tried", "n"), ("That count", "n")]
        yield table(heads, lines, class_="cards")
        if self.stability.skipped:
            yield items([printable(f"Not attacked: {name}: {reason}.") for name, reason in self.stability.skipped])

    def _closing(self) -> Element:
        return element(
            "footer",
            element("p", f"ppdp {version('ppdp')}, seed {self.seed}, {self.seconds:.0f} seconds.", class_="note"),
        )
