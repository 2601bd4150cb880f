"""The claims of "Differential privacy with random projections and sign random projections", subject by subject."""

from __future__ import annotations

from literature.claims import Claim
from literature.projections import estimates, individual, joint, noise, normals, signs
from literature.projections.paper import PAPER, SOURCE

__all__ = ["CLAIMS", "PAPER", "SOURCE"]

CLAIMS: tuple[Claim, ...] = (
    *noise.CLAIMS,
    *estimates.CLAIMS,
    *normals.CLAIMS,
    *joint.CLAIMS,
    *signs.CLAIMS,
    *individual.CLAIMS,
)
"""In the order of the paper's subjects: numbers with noise, their inner products, signs, individual privacy."""
