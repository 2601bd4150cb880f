"""Claims of three papers on projections that are meant to be private: with ZZᵀ, with LoRA, and with sketches."""

from __future__ import annotations

from literature.claims import Claim
from literature.wishart import background, comparisons, matrices, noisy, sketches, vectors
from literature.wishart.paper import BEYOND, DESIGN, HELPS, SOURCES

__all__ = ["BEYOND", "CLAIMS", "DESIGN", "HELPS", "SOURCES"]

_FOUND = (*background.CLAIMS, *vectors.CLAIMS, *matrices.CLAIMS, *noisy.CLAIMS, *comparisons.CLAIMS, *sketches.CLAIMS)

CLAIMS: tuple[Claim, ...] = tuple(
    found for paper in (BEYOND, HELPS, DESIGN) for found in _FOUND if found.paper == paper
)
"""Paper by paper: what is cited, vectors, matrices, noise, comparisons, sketches."""
