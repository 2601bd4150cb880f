"""What a certificate's document promises, as numbers; whether it holds is not asked here."""

from __future__ import annotations

import math

from ppdp.certificate.record import Record
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.losses import Part

__all__ = ["draws_of", "epsilon_at", "loss_of"]


def loss_of(content: Record) -> PrivacyLoss:
    """Privacy loss of everything that was released."""
    gate, total = content.gate, content.total
    front = gate.delta if gate is not None and gate.rule == "max" else 0.0
    parts = tuple(Part.from_dict(part) for part in total.parts)
    return PrivacyLoss(float(total.mu), float(total.failure), front, parts)


def draws_of(content: Record) -> float:
    """Total variation of all draws of the noise sampler: ``docs/theory/accounting.md``, 6."""
    return float(content.total.allowance) / (1 + math.exp(min(float(content.epsilon), 700.0)))


def epsilon_at(loss: PrivacyLoss, draws: float, delta: float) -> float:
    """Smallest epsilon at this delta; the sampler's part of delta grows with the epsilon that is claimed."""
    epsilon, grown = 0.0, -1.0
    while grown < epsilon:
        grown = epsilon
        rest = delta - (1 + math.exp(epsilon)) * draws if epsilon < 700 else 0.0
        epsilon = max(epsilon, loss.epsilon(rest)) if rest > 0 else math.inf
    return epsilon
