"""What an audit found: for a terminal, a notebook, a machine and a reviewer."""

from __future__ import annotations

import html
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from typing import Any
from xml.etree.ElementTree import Element

from ppdp.audit.optimise import SIZES
from ppdp.audit.output import OutputFinding
from ppdp.audit.pairs import pair_to_dict
from ppdp.audit.stability import NOTHING_MOVED, StabilityReport
from ppdp.certificate.pages.drawing import budget_bar
from ppdp.certificate.pages.markup import (
    Cell,
    bound,
    element,
    html_page,
    items,
    number,
    pairs,
    printable,
    table,
)
from ppdp.certificate.share.files import write_atomically
from ppdp.core.tables import aligned, html_table, visible
from ppdp.testing.neighbours import Pair

NOTHING = (
    "That nothing was found proves nothing: the certificate's derivation is the proof, and this is an attack on it."
)
PUSHED = "Datasets were found that are pushed further apart than is claimed, which proves the claim false."
LONGER = "A row was found that is longer, or an entry that is larger, than is claimed, which proves the claim false."
TOLD = "The two datasets were told apart better than is certified, at the confidence given."
REPORT = "The certificate must not be used. Please report it with the JSON form, which holds the seed and the datasets."
HEAD = "what", "lower bound", "upper bound", "reached"
PRIVATE = "PRIVATE: this was read off private rows, is covered by no certificate and must not leave with one."
UNSHOWN = "That nothing was found proves nothing: it is an attack, and only the branch was seen that these rows took."
FALSE = "Something depends on the rows more than is claimed: the claim is false, and no certificate of it may be used."
REFUSED = "The gate refused these rows; what stands behind it was looked at as if it had not."
UNSEEN = "The conditions held on no pair, so nothing is claimed, and nothing was shown, of what stands behind them."
REPLAYED = "what", "quantity", "share of the claim", ""


@dataclass(frozen=True, slots=True)
class Report(ABC):
    """What an attack on what is certified found: a word and what it means, for a terminal and on a page."""

    epsilon: float
    delta: float
    steps: tuple[str, ...]
    n_rows: int
    seed: int
    seconds: float
    neighbours: str = field(default="", kw_only=True)

    @property
    @abstractmethod
    def violated(self) -> bool:
        """Whether any claim is false."""

    @property
    @abstractmethod
    def _vacuous(self) -> bool:
        """Whether nothing could have been shown."""

    @property
    def word(self) -> str:
        """REFUTED, NOT REFUTED, or VACUOUS."""
        return "REFUTED" if self.violated else "VACUOUS" if self._vacuous else "NOT REFUTED"

    @property
    @abstractmethod
    def verdict(self) -> str:
        """What that means, in words."""

    def _caption(self) -> str:
        claim = f"({self.epsilon:g}, {self.delta:g}) of {visible(' > '.join(self.steps))}, {self.n_rows} rows"
        claim += f"; neighbours: {visible(self.neighbours)}" if self.neighbours else ""
        return f"{self.word} in {self.seconds:.0f} s: {claim}"

    @property
    def _unusual(self) -> dict[str, str]:
        """What neighbours are, where it must be said."""
        return {"neighbours": self.neighbours} if self.neighbours else {}

    def _note(self) -> str:
        return f"ppdp {version('ppdp')}, seed {self.seed}, {self.seconds:.0f} seconds"

    def _page(
        self, title: str, attack: str, data: tuple[tuple[str, Cell], ...], *body: Element, private: str = ""
    ) -> str:
        claim = (f" {attack} (ε, δ) = (", bound(self.epsilon), ", ", bound(self.delta), ")")
        neighbours = [("Neighbours", printable(self.neighbours))] if self.neighbours else []
        header = element(
            "header",
            element("h1", element("span", self.word, class_="status"), *claim),
            *([element("p", element("strong", private))] if private else []),
            element("p", self.verdict, class_="lede"),
            pairs(("Steps", printable(" > ".join(self.steps))), ("Rows", number(self.n_rows)), *neighbours, *data),
        )
        kind = "unconditional" if self.word == "NOT REFUTED" else "conditional"
        return html_page(f"{title}: {self.word}", element("main", header, *body, class_=kind))

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """JSON form."""

    @abstractmethod
    def to_html(self) -> str:
        """One self-contained page, to stand beside the certificate's; if it is private, where the rows are."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page, atomically."""
        write_atomically(path, self.to_html())


@dataclass(frozen=True, slots=True)
class AuditReport(Report):
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
    neighbours : str
        What they are, where they do not differ by replaced rows.
    """

    stability: StabilityReport
    output: OutputFinding | None
    pair: Pair | None
    not_run: str | None

    @property
    def violated(self) -> bool:
        """Whether anything that is claimed was exceeded."""
        return self.stability.violated or (self.output is not None and self.output.violated)

    @property
    def _vacuous(self) -> bool:
        """Whether nothing moved and nothing was told apart in any attack."""
        told = self.output is not None and self.output.told
        return not told and len(self.stability.vacuous) == len({finding.name for finding in self.stability.findings})

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

    def _lines(self) -> Iterator[tuple[str, ...]]:
        for name, low, high in self.bounds():
            yield name, f"{low:.4g}", f"{high:.4g}", f"{low / high:.3f}" if high else ""

    def __repr__(self) -> str:
        parts = [f"AUDIT: {self._caption()}", repr(self.stability)]
        parts.append(f"output attack: {self.output}" if self.output else f"output attack: not run: {self.not_run}")
        return "\n".join([*parts, self.verdict])

    def _repr_html_(self) -> str:
        note = f"<p>{html.escape(self.verdict)}</p>"
        return html_table(f"AUDIT: {self._caption()}", HEAD, self._lines()) + self.stability._repr_html_() + note

    def to_dict(self) -> dict[str, Any]:
        """JSON form; of what is refuted with the datasets."""
        found, violations = self.output, self.stability.violations
        pairs = [{"name": f.name, "quantity": f.quantity, **pair_to_dict(f.pair)} for f in violations]
        if found is not None and found.violated and self.pair is not None:
            pairs.append({"name": found.target, "quantity": "output", **pair_to_dict(self.pair)})
        own = {name: getattr(self, name) for name in ("violated", "epsilon", "delta")} | self._unusual
        attacks = {"stability": self.stability.to_dict(), "output": found and found.to_dict(), "not_run": self.not_run}
        end = {"pairs": pairs, "seed": self.seed, "seconds": self.seconds, "ppdp": version("ppdp")}
        return {**own, "steps": list(self.steps), "n_rows": self.n_rows, **attacks, **end}

    def to_html(self) -> str:
        """One self-contained page, to stand beside the certificate's."""
        data = "Data", "made up: neighbouring datasets that were searched for; no private row was read"
        closing = element("footer", element("p", f"{self._note()}.", class_="note"))
        return self._page("Audit", "an attack on", (data,), *self._told_apart(), *self._pushed_apart(), closing)

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
class ReplayReport(Report):
    """What executions on private rows and on neighbours of them showed. It is private itself.

    Attributes
    ----------
    epsilon, delta, steps, n_rows, seed, seconds, neighbours
        As of an :class:`AuditReport`; the seed is that of neighbours and noise.
    findings : tuple of ReplayFinding
        One for everything that was compared.
    skipped : tuple of (name, reason)
        What could not be compared.
    pairs, counted : int
        Pairs of neighbouring datasets, and those on which all conditions held.
    refused : bool
        Whether the gate refused the rows.
    """

    findings: tuple[ReplayFinding, ...]
    skipped: tuple[tuple[str, str], ...]
    pairs: int
    counted: int
    refused: bool

    @property
    def violations(self) -> tuple[ReplayFinding, ...]:
        """Claims that are false."""
        return tuple(finding for finding in self.findings if finding.violated)

    @property
    def violated(self) -> bool:
        """Whether any claim is false."""
        return bool(self.violations)

    @property
    def _vacuous(self) -> bool:
        """Whether the conditions held on no pair."""
        return not self.counted

    @property
    def verdict(self) -> str:
        """What that means, in words."""
        parts = [FALSE if self.violated else UNSHOWN, REFUSED * self.refused, UNSEEN * (not self.counted)]
        return " ".join(part for part in parts if part)

    def _title(self) -> str:
        return f"REPLAY AUDIT: {self._caption()}, {self.pairs} pairs of neighbours"

    def _lines(self) -> Iterator[tuple[str, ...]]:
        for f in sorted(self.findings, key=lambda finding: not finding.violated):
            if f.ratio:
                yield visible(f.name), f.quantity, f.share, "VIOLATED" * f.violated

    def _same(self) -> str:
        same = [finding for finding in self.findings if not finding.ratio]
        return f"the same on all neighbours, or not moved: {len(same)} more"

    def __repr__(self) -> str:
        skipped = (f"not compared: {visible(name)}: {reason}" for name, reason in self.skipped)
        return "\n".join(
            [PRIVATE, self._title(), *aligned([REPLAYED, *self._lines()]), self._same(), *skipped, self.verdict]
        )

    def _repr_html_(self) -> str:
        note = f"<p>{html.escape(self.verdict)}</p>"
        return f"<p><strong>{PRIVATE}</strong></p>" + html_table(self._title(), REPLAYED, self._lines()) + note

    def to_dict(self) -> dict[str, Any]:
        """JSON form; the ratio is null where something differs that must be the same."""
        findings = [{**asdict(f), "ratio": f.ratio if math.isfinite(f.ratio) else None} for f in self.findings]
        own = {name: getattr(self, name) for name in ("violated", "epsilon", "delta", "n_rows", "pairs", "counted")}
        own |= self._unusual
        rest = {"steps": list(self.steps), "skipped": [list(one) for one in self.skipped], "refused": self.refused}
        end = {"seed": self.seed, "seconds": self.seconds, "ppdp": version("ppdp")}
        return {"private": PRIVATE, **own, **rest, "findings": findings, **end}

    def to_html(self) -> str:
        """One self-contained page, to be kept where the rows are."""
        lines: list[tuple[Cell, ...]] = [(printable(line[0]), *line[1:]) for line in self._lines()]
        tried = "Pairs of neighbours", number(self.pairs)
        data = "Data", "private rows and neighbours of them; nothing was released or charged"
        body = table([(head, "") for head in REPLAYED], lines, class_="cards")
        skipped = [printable(f"Not compared: {name}: {reason}.") for name, reason in self.skipped]
        note = element("p", f"{self._note()}; {self._same()}.", class_="note")
        parts = [body, *([items(skipped)] if skipped else []), note]
        return self._page("PRIVATE replay audit", "a replay of", (tried, data), *parts, private=PRIVATE)
