"""Propose-test-release: one test for all conditions of a pipeline.

The smallest margin plus noise is compared with one threshold. Data on which a condition fails pass with probability at
most ``delta``; on all other data the test is one more noisy release. On a ladder the same noisy margin is compared with
several public thresholds, and the tightest one that it passes decides which bound is used.
Theory: ``docs/theory/gate.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import ndtr

from ppdp.exceptions import ImpossibleBudget, PrivacyRefusal
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.noise.gate import GateNoise, gate_noise
from ppdp.privacy.noise.sampler import WORST_ALLOWANCE_PER_ENTRY, Noise

__all__ = ["Gate", "certain_share"]

USUAL = 0.99  # of data with the needed margin pass
_TOO_SMALL = "the budget is too small for a gate."
_FIX_SMALL = "ask for a larger epsilon, or unconditional stages."


def certain_share(mu: float) -> float:
    """``2 Φ(-mu / 2)``: what two datasets have in common after everything that costs ``mu``.

    On a ladder a failure of ``delta / certain_share(mu)`` covers that the delta *adds* to that of everything else.
    """
    return 2 * float(ndtr(-mu / 2)) * (1 - 1e-12)


@dataclass(frozen=True, slots=True)
class Gate:
    """The test of a plan, all public.

    Attributes
    ----------
    noise_scale : float
        Of the noise on the margin, in rows: standard deviation, or b of ``exp(-|z| / b)``.
    delta : float
        Probability of passing where a condition fails.
    threshold : float
        The noisy margin must exceed this.
    adding : bool
        Whether the deltas of gate and releases add: some condition looks at rows that an earlier release has shaped, or
        a ledger holds further fits, or there is a ladder.
    n_rows : int
        Public bound on the margin.
    kind : {"gaussian", "laplace", "discrete-laplace"}
        The noise.
    rungs : tuple of int
        What each rung of a ladder adds to the threshold, in rows: the tightest first, 0 for the last. Without a ladder
        there is one rung.
    """

    noise_scale: float
    delta: float
    threshold: float
    adding: bool
    n_rows: int
    kind: str = "gaussian"
    rungs: tuple[int, ...] = (0,)

    @classmethod
    def of(
        cls, kind: str, noise_scale: float, delta: float, *, adding: bool, n_rows: int, rungs: tuple[int, ...] = (0,)
    ) -> Gate:
        """The gate with this noise, and the threshold that follows."""
        threshold = gate_noise(kind, noise_scale, n_rows).threshold(delta)
        return cls(noise_scale, delta, threshold, adding, n_rows, kind, rungs)

    @classmethod
    def of_budget(cls, mu: float, delta: float, *, adding: bool, n_rows: int, rungs: tuple[int, ...] = (0,)) -> Gate:
        """The Gaussian gate that costs ``mu``.

        Raises
        ------
        ImpossibleBudget
            If ``mu`` is too small for the noise lattice.
        """
        room = mu - WORST_ALLOWANCE_PER_ENTRY
        if room <= 0:
            raise ImpossibleBudget(_TOO_SMALL, fix=_FIX_SMALL)
        return cls.of("gaussian", (1 + 1e-12) / room, delta, adding=adding, n_rows=n_rows, rungs=rungs)

    @classmethod
    def of_margin(cls, kind: str, margin: float, delta: float, *, adding: bool, n_rows: int) -> Gate:
        """The gate of this kind that costs least and passes in 99 % of cases from this margin.

        Raises
        ------
        ImpossibleBudget
            If the margin is too small for any such gate.
        """

        def gate(noise_scale: float) -> Gate:
            return cls.of(kind, noise_scale, delta, adding=adding, n_rows=n_rows)

        low, high = max(1e-3, n_rows * 2.0**-25), max(1.0, margin)  # a lattice holds n rows and noise of this scale
        if gate(low).needed_margin() > margin:
            raise ImpossibleBudget(_TOO_SMALL, fix=_FIX_SMALL)
        while high > low * (1 + 1e-9):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if gate(middle).needed_margin() <= margin else (low, middle)
        return gate(low)

    @property
    def noise(self) -> GateNoise:
        """The noise on the margin."""
        return gate_noise(self.kind, self.noise_scale, self.n_rows)

    @property
    def loss(self) -> PrivacyLoss:
        """Cost of the test on data where every condition holds; its delta is not in it."""
        return self.noise.loss

    @property
    def mu(self) -> float:
        """The Gaussian part of that cost; 0 where the noise is not Gaussian."""
        return self.loss.mu

    def needed_margin(self, passing: float = USUAL, rung: int = -1) -> float:
        """Margin, in rows, with which the gate passes with this probability.

        Parameters
        ----------
        passing : float, default=0.99
            In (0, 1).
        rung : int, default=-1
            Of a ladder: to pass this rung or a tighter one. The last is the least that is asked.
        """
        return (self.threshold + self.rungs[rung] + self.noise.reach(passing)) * self._excess

    def refusal_probability(self, margin: float, rung: int = -1) -> float:
        """Probability that data with this margin, in rows, do not pass.

        Parameters
        ----------
        margin : float
            Rows that must be replaced before a condition fails: a thought, not a measurement.
        rung : int, default=-1
            Of a ladder: not to pass this rung or a tighter one.
        """
        return self.noise.at_most(self.threshold + self.rungs[rung] - self._tested(margin))

    @property
    def _excess(self) -> float:
        """What a computed margin may change by; dividing by it rounds once more."""
        return 1 + 1e-6 + self.n_rows * 2.0**-51

    def _tested(self, margin: float) -> float:
        """The margin to which noise is added: within [0, n], and changing by at most 1; 0 for what is no number."""
        held = 0.0 if math.isnan(margin) else min(max(margin, 0.0) / self._excess, float(self.n_rows))
        return self.noise.counted(held)

    def test(self, margin: float, noise: Noise, fix: str) -> int:
        """Pass, and return the tightest rung that is passed, or refuse.

        Raises
        ------
        PrivacyRefusal
            The same error whatever condition failed and by how much.
        """
        released = self.noise.released(noise, self._tested(margin))
        for rung, further in enumerate(self.rungs):
            if released > self.threshold + further:
                return rung
        cost = f"mu = {self.mu:.3g}" if self.mu else f"epsilon = {self.loss.epsilon(0.0):.3g}"
        raise PrivacyRefusal(
            f"the gate did not pass; its cost ({cost}, delta = {self.delta:.3g}) was spent,"
            " and a ledger charges the full epsilon of the plan.",
            fix=fix,
        )
