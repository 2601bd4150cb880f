"""A report of ten statistics beside the best split of its budget, and beside ten fits as a ledger adds them up.

    python benchmarks/report.py

In the best split every statistic is released by a mechanism of its own with its share of mu², missing values are not
allowed and no diagnostics paid for. Compared are standard errors of the same numbers, in the units of the table.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ppdp import Certificate, Ledger, PrivacyLoss, make_pipeline
from ppdp.mechanisms import GaussianMechanism, Report
from ppdp.transformers import MinMaxScaler

N, EPSILON, DELTA = 10_000, 1.0, 1e-6
NAMES = ["age", "height", "weight", "income", "score", "visits", "days", "dose"]
QUERIES = {"mean": NAMES[:4], "histogram": NAMES[4:], "covariance": NAMES[:2]}  # ten columns of statistics
COMPARED = {"mean": "mean", "histogram": "rows", "covariance": "covariance"}
TABLE = pd.DataFrame(np.random.default_rng(0).beta(2, 5, (N, 8)) * 100, columns=NAMES)


def released(mechanism: Any, columns: Sequence[str], **parameters: Any) -> tuple[pd.DataFrame, Certificate]:
    """What is told of every number, and the certificate."""
    pipe = make_pipeline(MinMaxScaler((0, 100)), mechanism, **{"epsilon": EPSILON, "delta": DELTA, **parameters})
    pipe.fit(TABLE[list(columns)])
    return pipe.release_.to_pandas(), pipe.certificate_


def worst(told: pd.DataFrame, statistic: str) -> float:
    """The largest standard error of a statistic."""
    return float(told.loc[told["statistic"] == COMPARED[statistic], "raw_standard_error"].max())


def main() -> None:
    """Print each statistic's standard error in the report and in the best split."""
    warnings.simplefilter("ignore")
    told, certificate = released(Report(QUERIES), NAMES)
    _, whole = released(GaussianMechanism(), NAMES, diagnostics=None)
    print(f"one certificate: {certificate.status} ({certificate.epsilon:g}, {certificate.delta:g})")
    with Ledger() as account:
        for statistic, columns in QUERIES.items():
            asked = [columns] if statistic == "covariance" else [[column] for column in columns]
            for names in asked:
                epsilon = PrivacyLoss(whole.mu * np.sqrt(len(names) / 10)).epsilon(DELTA)
                bins = {"bins": 10} if statistic == "histogram" else {}
                alone, _ = released(GaussianMechanism(statistic, **bins), names, epsilon=epsilon, diagnostics=None)
            ours, best = worst(told, statistic), worst(alone, statistic)
            print(f"{statistic:<12} report {ours:8.4g}   best split {best:8.4g}   ratio {ours / best:.3f}")
    print(account)


if __name__ == "__main__":
    main()
