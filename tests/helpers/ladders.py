"""Plans on a ladder of eigengaps, and rows for each rung."""

from __future__ import annotations

import math

import numpy as np

from ppdp import Domain, Ladder, make_pipeline
from ppdp.data.rows import Rows
from ppdp.mechanisms import GaussianMechanism
from ppdp.pipeline.planning.plan import Plan
from ppdp.transformers import PCA, NormClipper

GAPS = (0.7, 0.4, 0.1)


def on_a_ladder(gate=None, *stages, mechanism=None, n=20_000, **parameters) -> Plan:
    steps = stages or (NormClipper(), PCA(1, center=False, statistics="exact"))
    pipe = make_pipeline(
        *steps, mechanism or GaussianMechanism(), gate=gate or Ladder("pca__min_gap", GAPS), **parameters
    )
    return pipe.plan(Domain(n_rows=n, n_features=3))


def rows(gap: float, n: int = 20_000) -> Rows:
    """Rows whose eigengap is about this."""
    rng = np.random.default_rng(0)
    length = math.sqrt(gap + 0.02)
    X = rng.choice([-1.0, 1.0], (n, 1)) * np.array([length, 0, 0]) + rng.normal(scale=0.01, size=(n, 3))
    return Rows.of(X)
