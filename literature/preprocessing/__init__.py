"""The claims of "Provable privacy with non-private pre-processing", subject by subject."""

from __future__ import annotations

from literature.claims import Claim
from literature.preprocessing import (
    clusters,
    components,
    composition,
    descent,
    gate,
    imputation,
    iteration,
    noise,
    pipelines,
    sampled_pipelines,
    scaling,
)
from literature.preprocessing.paper import PAPER, SOURCE

__all__ = ["CLAIMS", "PAPER", "SOURCE"]

CLAIMS: tuple[Claim, ...] = (
    *composition.CLAIMS,
    *clusters.CLAIMS,
    *imputation.CLAIMS,
    *components.CLAIMS,
    *scaling.CLAIMS,
    *noise.CLAIMS,
    *descent.CLAIMS,
    *iteration.CLAIMS,
    *pipelines.CLAIMS,
    *sampled_pipelines.CLAIMS,
    *gate.CLAIMS,
)
"""In the order of the paper's subjects: composition, stages, mechanisms, pipelines, Algorithm 1."""
