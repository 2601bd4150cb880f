"""What is not plain Gaussian noise, in words: how it was drawn and what counts of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ppdp.bounds import FORMULAS
from ppdp.certificate.record import Gate, Mechanism, Noisy
from ppdp.core.formula import GAUSSIAN, Answer
from ppdp.privacy.losses import Part
from ppdp.privacy.noise.gate import GATE_KINDS

__all__ = ["law_of", "only_the_last", "part_in_words"]


def law_of(one: Noisy) -> str:
    """Law of a gate's or a mechanism's noise: "Gaussian" or another; one that is not known here gets no name.

    What costs a mu is Gaussian: `verify` computes it so. Of anything else only its formula knows.
    """
    if one.mu is not None:
        return GAUSSIAN
    known = GATE_KINDS.get(one.kind) if isinstance(one, Gate) else FORMULAS.get(one.formula)
    return getattr(known, "law", "") or "a law unknown to this ppdp"


def only_the_last(mechanism: Mechanism) -> bool:
    """Whether of many answers one iterate is released."""
    known = FORMULAS.get(mechanism.formula)
    return isinstance(known, Answer) and known.hides_iterates


def part_in_words(recorded: Mapping[str, Any]) -> str:
    """What counts of a part of the privacy loss, as the document records it.

    Raises
    ------
    InvalidParameter
        If no part has these numbers.
    """
    return Part.from_dict(recorded).words()
