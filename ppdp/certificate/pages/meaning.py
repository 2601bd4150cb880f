"""What a certificate promises, in plain words and as the power of an attacker's test."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.special import ndtr, ndtri

from ppdp.certificate.pages.profile import privacy_profile
from ppdp.certificate.record import Gate, Record
from ppdp.core.figures import figure

__all__ = [
    "FALSE_ALARMS",
    "covered_in_words",
    "detection_power",
    "powers_in_words",
    "reservation",
    "rounded_up",
    "slack_in_words",
    "status_in_words",
    "told",
]

FALSE_ALARMS = (0.01, 0.05)


def detection_power(content: Record, false_alarm: float) -> float:
    """Most often that an attacker's test can be right, at a given rate of false alarms.

    Parameters
    ----------
    content : Record
        The certificate.
    false_alarm : float
        Probability of raising the alarm on the other dataset.

    Notes
    -----
    With f = failure, t = the sampler's total variation, g = delta of a gate under the "max" rule (else 0),

    ``f + (1 - f) Φ(μ + Φ⁻¹((α + t)/(1 - f))) + t + g``.

    The first two terms are the most powerful test between the dominating pair "revealed with probability f, else
    N(0, 1) against N(μ, 1)" (Neyman and Pearson; Dong, Roth and Su 2022, definition 2.3). Noise as it is drawn is
    within t of ideal noise on either dataset, hence α + t and + t. Where a condition fails the gate lets through with
    probability at most g; without what it lets through the test is one on a μ-GDP output, hence + g.
    Where not everything is Gaussian: the least of ``min(exp(ε) α + δ, 1 - exp(-ε)(1 - α - δ))`` over the pairs (ε, δ)
    that the certificate promises (Kairouz, Oh and Viswanath 2015). Source: ``docs/theory/accounting.md``, 7.
    """
    total, gate = content.total, content.gate
    passing = gate.delta if gate is not None and gate.rule == "max" else 0.0
    failure = 0.0 if passing else total.failure
    if failure >= 1:
        return 1.0
    if total.parts:
        promised = [pair for pair in privacy_profile(content) if math.isfinite(pair[1])]
        return min(_power_of_pair(*pair, false_alarm) for pair in promised)
    sampler = total.allowance / (1 + math.exp(min(content.epsilon, 700.0)))
    level = min(1.0, (false_alarm + sampler) / (1 - failure))
    ideal = failure + (1 - failure) * float(ndtr(total.mu + ndtri(level)))
    return min(1.0, ideal + sampler + passing)


def powers_in_words(content: Record, space: str = "\u00a0") -> str:
    """What is detected at most, at each rate of false alarms."""
    shares = ((rounded_up(detection_power(content, alarm)), figure(100 * alarm)) for alarm in FALSE_ALARMS)
    return " and ".join(f"{power} at {alarms}{space}% false alarms" for power, alarms in shares)


def _power_of_pair(delta: float, epsilon: float, false_alarm: float) -> float:
    """What one pair (epsilon, delta) allows, whichever of the two datasets is tested for."""
    factor = math.exp(min(epsilon, 700.0))
    return max(0.0, min(1.0, factor * false_alarm + delta, 1 - (1 - false_alarm - delta) / factor))


def rounded_up(share: float) -> str:
    """A share as a percentage with two decimals, never rounded down.

    Examples
    --------
    >>> rounded_up(0.018301).split(), rounded_up(1.0).split()
    (['1.84', '%'], ['100.00', '%'])
    """
    return f"{min(math.ceil(share * 10_000), 10_000) / 100:.2f}\u00a0%"


def status_in_words(content: Record) -> str:
    """One sentence for the status."""
    if content.status == "SEEDED":
        return "For tests only: do not rely on it."
    if content.status == "CONDITIONAL":
        return "Holds only if the following is true, which nothing has tested, and if what it rests on is true."
    if content.gate is not None:
        return (
            "Holds whatever the private rows contain, if what it rests on is true. What the stages need of the rows was"
            " checked first, by a noisy test whose price is included."
        )
    return "Holds whatever the private rows contain, if what it rests on is true."


def covered_in_words(content: Record) -> tuple[str, ...]:
    """What the promise speaks of, one line each."""
    gate, mechanism = content.gate, content.mechanism
    left = [f"the noisy {release.statistic} for {_quoted(release.serves)}" for release in content.releases]
    left += [f"the gate's answer ({told(gate)})"] if gate is not None else []
    left += [f"what {_quoted([mechanism.name])} answered"] if mechanism is not None else []
    words = [
        f"everything that left this run, taken together: {', '.join(left)}{', ' if left else ''}and this document",
        "whatever is made of that without the private rows: a published model, and what it says of other rows",
    ]
    if content.search is not None:
        count = content.search.selection.candidates
        words.insert(
            0, f"the whole search: the fits of {count} candidates, the choice among them, and the last fit on all rows"
        )
    if any(step.way != "public" for step in content.steps):
        words.append("the cleaning: what the stages took from the private rows is part of the price")
    words.append(f"how each step was computed: {_settled(content)}")
    if gate is not None:
        words.append(
            "a refusal: had the gate not passed, the run would have said only that, and it is paid for either way"
        )
    if content.invalid == "repair":
        words.append("invalid values: they are repaired row by row, so that no error tells of them")
    return tuple(words)


def _settled(content: Record) -> str:
    """What decided how the steps were computed."""
    before = "settled from the certificate's facts alone, before any row was seen"
    if content.gate is None or not content.gate.ladder:
        return before
    return f"{before}, but for the rung of the ladder, which the noisy test chose; its answer is paid for"


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def told(gate: Gate) -> str:
    """What a gate that passed tells."""
    return "which rung passed" if gate.ladder else "one bit: passed"


def reservation(content: Record) -> str:
    """What must precede every promise of this certificate; empty for an unconditional one."""
    if content.status == "UNCONDITIONAL":
        return ""
    assumed = "the assumptions hold"
    if content.status == "SEEDED":
        unpredictable = "nobody can predict the noise"
        assumed = f"{unpredictable} and {assumed}" if len(content.reasons) > 1 else unpredictable
    return f"Provided that {assumed}, "


def slack_in_words(content: Record) -> tuple[str, ...]:
    """What the power includes beyond ideal noise."""
    total, gate = content.total, content.gate
    words = []
    if gate is not None:
        words.append(
            f"the chance (at most {figure(gate.delta, upward=True)}) that the gate passes although a condition fails"
        )
    elif total.failure > 0:
        words.append(f"the chance (at most {figure(total.failure, upward=True)}) that nothing is promised")
    words.append(f"a tiny error of the sampler of the noise (δ of at most {figure(total.allowance, upward=True)})")
    return tuple(words)
