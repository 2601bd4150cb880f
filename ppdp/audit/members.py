"""What a membership attack found: for a terminal, a page, a machine, and as a picture."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ppdp.audit.report import NOTHING, PRIVATE, REPORT, TOLD, Report
from ppdp.certificate.pages.markup import element, number, pairs
from ppdp.testing.confidence import Certified

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class MembershipReport(Report):
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
        """Whether the claim is false."""
        return self.refuted

    @property
    def _vacuous(self) -> bool:
        return self.epsilon_low <= 0 and not self.violated

    @property
    def verdict(self) -> str:
        """What that means, in words."""
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
        return own | {"epsilon": self.epsilon if math.isfinite(self.epsilon) else None} | self._unusual

    def to_html(self) -> str:
        """One self-contained page, to stand beside the certificate's; if it is private, where the rows are."""
        names = "AUC", "Balanced accuracy", "ε at least", "Models", "Canaries"
        values = map(number, (self.auc, self.balanced, self.epsilon_low, self.models, self.canaries))
        body = pairs(*zip(names, values)), element("p", f"{self._note()}.", class_="note")
        data = ("Data", f"{self.data} rows; nothing was charged"), ("Confidence", f"1 - {1 - self.confidence:.1g}")
        return self._page("Membership audit", "an attack on", data, *body, private=PRIVATE * (self.data == "private"))

    def plot(self, ax: Axes | None = None) -> Axes:
        """The curve below the one that the certificate allows: :func:`ppdp.plot.membership`."""
        from ppdp.plot import membership

        return membership(self, ax)
