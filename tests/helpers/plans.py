"""Plans made in one line, and private data of several shapes to carry them out on."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ppdp import Domain, make_pipeline
from ppdp.mechanisms import LogisticRegression
from ppdp.pipeline.planning.plan import Plan
from ppdp.privacy.gaussian import gaussian_mu


def plan(*steps, n=5000, d=3, domain=None, **parameters) -> Plan:
    return make_pipeline(*steps, **{"diagnostics": None, **parameters}).plan(domain or Domain(n_rows=n, n_features=d))


def classifier(**parameters) -> LogisticRegression:
    return LogisticRegression(classes=(0, 1), **parameters)


def total_mu(plan_: Plan) -> float:
    """mu of the whole budget, as the plan must solve it."""
    delta, failure = plan_.delta - plan_.allowance, plan_.loss.failure
    return gaussian_mu(plan_.epsilon, (delta - failure) / (1 - failure))


def data(kind: str, n: int = 400) -> tuple[pd.DataFrame, np.ndarray]:
    """Private data of one shape: all different, all the same, mostly gaps, one class only."""
    rng = np.random.default_rng(1)
    X, y = rng.uniform(0, 1, (n, 3)), rng.integers(2, size=n)
    if kind == "same":
        X[:], y[:] = 0.3, 0
    if kind == "gaps":
        X[10:] = np.nan
    if kind == "one class":
        y[:] = 1
    if kind == "zeros and ones":
        X = np.round(X)
    return pd.DataFrame(X, columns=["a", "b", "c"]), y
