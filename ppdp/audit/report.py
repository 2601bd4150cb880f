"""What an audit found: for a terminal, a notebook, and as JSON."""

from __future__ import annotations

import html
import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ppdp.audit.output import OutputFinding
from ppdp.audit.pairs import pair_to_dict
from ppdp.audit.search import SIZES
from ppdp.audit.stability import NOTHING_MOVED, StabilityReport
from ppdp.certificate.share.files import write_atomically
from ppdp.core.figures import aligned, html_table, visible
from ppdp.exceptions import InvalidParameter
from ppdp.testing.confidence import Certified
from ppdp.testing.neighbours import Pair

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NOTHING = "An audit can refute a guarantee but not prove it: the proof is the certificate's derivation."
PUSHED = "Datasets were found that are pushed further apart than is claimed, which proves the claim false."
LONGER = "A row was found that is longer, or an entry that is larger, than is claimed, which proves the claim false."
TOLD = "The two datasets were told apart better than is certified, at the confidence given."
REPORT = "The certificate must not be used. Please report it with the JSON form, which holds the seed and the datasets."
HEAD = "what", "lower bound", "upper bound", "reached"
PRIVATE = "PRIVATE: this was read off private rows, is covered by no certificate and must not leave with one."
UNSHOWN = "An audit can refute a guarantee but not prove it, and only the branch was seen that these rows took."
FALSE = "Something depends on the rows more than is claimed: the claim is false, and no certificate of it may be used."
REFUSED = "The gate refused these rows; what stands behind it was looked at as if it had not."
UNSEEN = "The conditions held on no pair, so nothing is claimed, and nothing was shown, of what stands behind them."
REPLAYED = "what", "quantity", "share of the claim", ""


def check_report_path(path: str | os.PathLike[str]) -> None:
    """Refuse the name of a page: reports are JSON."""
    if Path(path).suffix.lower() in (".html", ".htm"):
        what = "the report of an audit is saved as JSON, not as a page."
        raise InvalidParameter(what, fix="a name that ends in .json.")


@dataclass(frozen=True, slots=True)
class AttackReport(ABC):
    """What an attack on what is certified found: a word and what it means, for a terminal and as JSON."""

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

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """JSON form."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the JSON form, atomically."""
        check_report_path(path)
        write_atomically(path, json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


@dataclass(frozen=True, slots=True)
class AuditReport(AttackReport):
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
        return self.stability.violated or (self.output is not None and self.output.violated)

    @property
    def _vacuous(self) -> bool:
        """Whether nothing moved and nothing was told apart in any attack."""
        told = self.output is not None and self.output.told
        return not told and len(self.stability.vacuous) == len({finding.name for finding in self.stability.findings})

    @property
    def verdict(self) -> str:
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
class ReplayReport(AttackReport):
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
        return bool(self.violations)

    @property
    def _vacuous(self) -> bool:
        """Whether the conditions held on no pair."""
        return not self.counted

    @property
    def verdict(self) -> str:
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


@dataclass(frozen=True, slots=True)
class MembershipReport(AttackReport):
    """What a membership attack told of models, beside what is certified or claimed of them.

    Attributes
    ----------
    epsilon, delta, steps, n_rows, seed, seconds, neighbours
        As of an :class:`AuditReport`; ``epsilon`` is infinite where nothing is claimed.
    certified : Certified
        What is certified; :meth:`plot` draws what it allows.
    data : {"made-up", "public", "private"}
        Among which rows canaries were.
    models, canaries, refused : int
        How many trainings there were, of how many canaries, and how many of them were refused.
    curve : tuple of (float, float)
        False and true positive rates of all thresholds, as counted.
    auc, balanced : float
        Area below it, and best balanced accuracy ``(TPR + TNR) / 2``, with the error of the counts.
    epsilon_low : float
        The mechanism is not (epsilon, ``delta``)-private for a smaller epsilon.
    refuted : bool
        Whether what is certified is false.
    confidence : float
        That both of these are right.
    """

    certified: Certified
    data: str
    models: int
    canaries: int
    refused: int
    curve: tuple[tuple[float, float], ...]
    auc: float
    balanced: float
    epsilon_low: float
    refuted: bool
    confidence: float

    @property
    def violated(self) -> bool:
        return self.refuted

    @property
    def _vacuous(self) -> bool:
        return self.epsilon_low <= 0 and not self.violated

    @property
    def verdict(self) -> str:
        return f"{TOLD} {REPORT}" if self.violated else NOTHING

    def __repr__(self) -> str:
        how = f"{self.models} models" if self.canaries == 1 else f"one model with {self.canaries} canaries"
        refused = f", {self.refused} refused" if self.refused else ""
        told = f"AUC {self.auc:.3f}, balanced accuracy {self.balanced:.3f}, epsilon at least {self.epsilon_low:.3f}"
        line = f"{how}{refused}, {self.data} rows: {told} (confidence 1 - {1 - self.confidence:.1g})"
        private = [PRIVATE] if self.data == "private" else []
        return "\n".join([*private, f"MEMBERSHIP AUDIT: {self._caption()}", line, self.verdict])

    def to_dict(self) -> dict[str, Any]:
        """JSON form; the epsilon is null where nothing is claimed."""
        names = "violated", "data", "delta", "n_rows", "models", "canaries", "refused", "curve", "auc", "balanced"
        own = {name: getattr(self, name) for name in (*names, "epsilon_low", "confidence", "steps", "seed", "seconds")}
        own |= {"epsilon": self.epsilon if math.isfinite(self.epsilon) else None} | self._unusual
        return {"private": PRIVATE, **own} if self.data == "private" else own

    def plot(self, ax: Axes | None = None) -> Axes:
        """The curve below the one that the certificate allows: :func:`ppdp.plot.membership`."""
        from ppdp.plot import membership

        return membership(self, ax)
