"""What a certificate's document promises, as numbers; whether it holds is not asked here."""

from __future__ import annotations

import math
from functools import lru_cache

from ppdp.certificate.record import Record
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.losses import Part

Profile = tuple[tuple[float, float], ...]

_LOWEST, _HIGHEST = -12, -3  # powers of ten that are always there
_DENSITY = 8  # points per power of ten where a point costs next to nothing
_TESTS = tuple(10.0 ** (-i / 4) for i in range(1, 12))  # the deltas that decide what a test can detect


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
        epsilon = max(epsilon, loss.epsilon(rest)) if rest > 0 or rest == draws == 0 else math.inf
    return epsilon


def privacy_profile(content: Record) -> Profile:
    """Pairs (delta, epsilon) that all hold, delta rising; epsilon is infinite where nothing is promised.

    The certificate's own pair is there, and every power of ten from 1e-12 (or from two below its delta) to 1e-3.

    What holds at a smaller delta holds at a larger one. If e holds at a smaller delta, the sampler needs at most
    ``(1 + exp(e)) t`` of this one (t: its total variation), and what the loss allows for the rest holds here.
    Source: ``docs/theory/accounting.md``, 6.
    """
    return _profile(loss_of(content), draws_of(content), float(content.delta), float(content.epsilon))


@lru_cache(maxsize=256)
def _profile(loss: PrivacyLoss, draws: float, own: float, epsilon: float) -> Profile:
    held, found = math.inf, []
    for delta in _deltas(own, 1 if loss.parts else _DENSITY):
        rest = delta - (1 + math.exp(min(held, 700.0))) * draws
        if delta == own:
            held = min(held, epsilon)
        elif held == 0:
            pass  # nothing is smaller
        elif math.isinf(held) or rest <= 0:
            held = min(held, epsilon_at(loss, draws, delta))
        else:
            held = min(held, loss.epsilon(rest))
        found.append((delta, held))
    return tuple(found)


def _deltas(own: float, density: int) -> list[float]:
    lowest = min(_LOWEST, math.floor(math.log10(own)) - 2) if own else _LOWEST
    powers = (float(f"1e{power}") for power in range(lowest, _HIGHEST + 1))  # 10.0 ** -5 need not be 1e-5
    between = (10.0 ** (i / density) for i in range(lowest * density, _HIGHEST * density) if i % density)
    return sorted({own, *powers, *between, *_TESTS})
