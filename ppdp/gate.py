"""Propose-test-release: one test for all conditions of a pipeline.

The smallest margin plus Gaussian noise is compared with one threshold. Data on which a condition fails pass with
probability at most ``delta``; on all other data the test is one more Gaussian release.
Theory: ``docs/theory/gate.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import ndtri

from ppdp.exceptions import ImpossibleBudget, PrivacyRefusal
from ppdp.privacy.noise import WORST_ALLOWANCE_PER_ENTRY, Noise, lattice_allowance

__all__ = ["Gate", "gate_loss", "gate_threshold"]


def gate_threshold(noise_scale: float, delta: float) -> float:
    """``1 + σ Φ⁻¹(1 - δ)``, one lattice step added: a margin of at most 1 passes with probability at most δ."""
    return (1.0 - noise_scale * float(ndtri(delta)) + noise_scale * WORST_ALLOWANCE_PER_ENTRY) * (1 + 1e-9)


def gate_loss(noise_scale: float, n_rows: int) -> float:
    """``mu`` of the noisy margin: the margin changes by at most 1 for one replaced row."""
    return 1 / noise_scale + lattice_allowance(float(n_rows), noise_scale, 1)


@dataclass(frozen=True, slots=True)
class Gate:
    """The test of a plan, all public.

    Attributes
    ----------
    noise_scale : float
        Standard deviation of the noise on the margin, in rows.
    delta : float
        Probability of passing where a condition fails.
    threshold : float
        The noisy margin must exceed this.
    adding : bool
        Whether the deltas of gate and releases add: some condition looks at rows that an earlier release has shaped, or
        a ledger holds further fits.
    n_rows : int
        Public bound on the margin.
    """

    noise_scale: float
    delta: float
    threshold: float
    adding: bool
    n_rows: int

    @classmethod
    def of_budget(cls, mu: float, delta: float, *, adding: bool, n_rows: int) -> Gate:
        """The gate that costs ``mu``.

        Raises
        ------
        ImpossibleBudget
            If ``mu`` is too small for the noise lattice.
        """
        room = mu - WORST_ALLOWANCE_PER_ENTRY
        if room <= 0:
            raise ImpossibleBudget(
                "the budget is too small for a gate.",
                fix="ask for a larger epsilon, or unconditional stages.",
            )
        scale = (1 + 1e-12) / room
        return cls(scale, delta, gate_threshold(scale, delta), adding, n_rows)

    @property
    def mu(self) -> float:
        """Cost of the test on data where every condition holds."""
        return gate_loss(self.noise_scale, self.n_rows)

    def needed_margin(self, passing: float = 0.99) -> float:
        """Margin, in rows, with which the gate passes with this probability."""
        return self.threshold + self.noise_scale * float(ndtri(passing))

    def test(self, margin: float, noise: Noise, fix: str) -> None:
        """Pass or refuse.

        Raises
        ------
        PrivacyRefusal
            The same error whatever condition failed and by how much.
        """
        # Rounding may let a margin change by a little more than 1.
        margin = min(max(margin, 0.0) / (1 + 1e-6), float(self.n_rows)) if math.isfinite(margin) else 0.0
        if not float(noise.release(margin, self.noise_scale, float(self.n_rows))) > self.threshold:
            raise PrivacyRefusal(
                f"the gate did not pass; its cost (mu = {self.mu:.3g}, delta = {self.delta:.3g}) was spent,"
                " and a ledger keeps the whole plan.",
                fix=fix,
            )
