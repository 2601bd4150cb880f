"""Test error of private least squares: ours against AdaSSP, Gaussian mixing, iterative Hessian mixing and diffprivlib.

    python benchmarks/regression.py [--seeds 20] [--tasks NAME ...]

Needs diffprivlib (``pip install "ppdp[diffprivlib,demo]"``). All see the same rows: columns scaled by public ranges to
[-1, 1], a constant appended, all over √(d + 1), so in the unit ball; targets in [-1, 1]. All protect one replaced row
at (ε, 1/n²), n rows of training, and are accounted exactly: Gaussian releases as GDP, sketches by ``SketchLoss``. What
is unclear is settled in favour of the others: the tests of eigenvalues of the mixing methods cost nothing, and their
parts compose as if sketches were Gaussian. diffprivlib gets ε at δ = 0, as it wants it, and the same ranges. An error
is a share: mean square over the variance of the test targets, so that 1 is a constant.
"""

from __future__ import annotations

import argparse
import math
import tarfile
import warnings
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes

from ppdp import Domain, Pipeline
from ppdp.mechanisms import Ridge
from ppdp.privacy import SketchLoss
from ppdp.privacy.gaussian import gaussian_epsilon, gaussian_mu

EPSILONS = (0.3, 1.0, 3.0)
FAILURE = 0.05  # of the others' bounds on noise, and of what their sketches promise of accuracy


def table(package: str, member: str) -> pd.DataFrame:
    """A table that ships in a package, which is not imported."""
    folder = Path(find_spec(package).origin).parent
    if package == "statsmodels":
        return pd.read_csv(folder / "datasets" / member)
    with tarfile.open(folder / "resources.tar.gz", "r|gz") as archive:
        return pd.read_csv(archive.extractfile(next(item for item in archive if item.name.endswith(member))))


def scaled(columns, ranges):
    low, high = np.array(ranges, float).T
    return np.clip((np.asarray(columns, float) - (low + high) / 2) / ((high - low) / 2), -1, 1)


def diabetes():
    data = load_diabetes(scaled=False)
    ranges = [(18, 80), (1, 2), (15, 45), (60, 140), (90, 310), (40, 250), (20, 100), (2, 10), (3, 6.2), (50, 130)]
    return scaled(data.data, ranges), scaled(data.target[:, None], [(0, 350)])


def computers():
    t = table("pydataset", "Ecdat/Computers.csv")
    flags = [(t[name] == "yes") for name in ("cd", "multi", "premium")]
    X = np.column_stack([t.speed, t.hd, t.ram, t.screen, *flags, t.ads, t.trend])
    ranges = [(25, 100), (0, 2200), (0, 32), (14, 17), (0, 1), (0, 1), (0, 1), (0, 400), (1, 36)]
    return scaled(X, ranges), scaled(t[["price"]], [(500, 5500)])


def wages():
    t = table("pydataset", "plm/Males.csv")
    flags = [t.union == "yes", t.ethn == "black", t.ethn == "hisp", t.married == "yes", t.health == "yes"]
    X = np.column_stack([t.school, t.exper, t.year, *flags])
    return scaled(X, [(0, 20), (0, 20), (1980, 1987)] + [(0, 1)] * 5), scaled(t[["wage"]], [(-1, 4)])


def hours():
    t = table("pydataset", "Ecdat/HI.csv")
    flags = [t.hhi == "yes", t.whi == "yes", t.race == "black", t.hispanic == "yes"]
    X = np.column_stack([t.experience, t.kidslt6, t.kids618, t.husby, *flags])
    return scaled(X, [(0, 50), (0, 4), (0, 5), (0, 100)] + [(0, 1)] * 4), scaled(t[["whrswk"]], [(0, 80)])


def randhie():
    t = table("statsmodels", "randhie/randhie.csv")
    names = ["lncoins", "idp", "lpi", "fmde", "physlm", "disea", "hlthg", "hlthf", "hlthp"]
    ranges = [(0, 4.615), (0, 1), (0, 7.6), (0, 8.29), (0, 1), (0, 50), (0, 1), (0, 1), (0, 1)]
    return scaled(t[names], ranges), scaled(np.log1p(t[["mdvis"]]), [(0, math.log(80))])


def diamonds():
    t = table("pydataset", "ggplot2/diamonds.csv")
    grades = {
        "cut": ["Fair", "Good", "Very Good", "Premium", "Ideal"],
        "color": list("JIHGFED"),
        "clarity": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"],
    }
    ordered = [t[name].map({grade: i for i, grade in enumerate(known)}) for name, known in grades.items()]
    X = np.column_stack([np.log(t.carat), *ordered, t.depth, t.table, t.x, t.y, t.z])
    ranges = [(-1.61, 1.61), (0, 4), (0, 6), (0, 7), (50, 75), (50, 75), (3, 11), (3, 11), (2, 7)]
    return scaled(X, ranges), scaled(np.log(t[["price"]]), [(math.log(300), math.log(20_000))])


def generated(n, d, *, kind="even", seed=7):
    """Columns within three standard deviations, of which the targets know two thirds of their spread."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    if kind == "decaying":  # standard deviations 1, 1/2, 1/3, ... in a random basis
        scales = 1 / np.arange(1, d + 1)
        X = (X * scales) @ np.linalg.qr(rng.normal(size=(d, d)))[0] * math.sqrt(d / (scales**2).sum())
    if kind == "heavy":
        X = rng.standard_t(4, size=(n, d)) / math.sqrt(2)
    X = np.clip(X / 3, -1, 1)
    signal = X @ rng.normal(size=d)
    return X, np.clip(0.3 * signal / signal.std() + 0.1 * rng.normal(size=n), -1, 1)[:, None]


TASKS = {
    "diabetes": diabetes,
    "computers": computers,
    "wages": wages,
    "hours": hours,
    "randhie": randhie,
    "diamonds": diamonds,
    "even, 500 x 50": lambda: generated(500, 50),
    "decaying, 2,000 x 20": lambda: generated(2_000, 20, kind="decaying"),
    "heavy tails, 20,000 x 20": lambda: generated(20_000, 20, kind="heavy"),
    "even, 100,000 x 10": lambda: generated(100_000, 10),
}


@cache
def sketch_ratio(epsilon: float, delta: float, size: int) -> float:
    """Largest R²/A of so many rows of sketches, by the exact loss of a replaced row."""
    low, high = 1e-7, 10.0
    while high > low * (1 + 1e-4):
        middle = math.sqrt(low * high)
        held = SketchLoss(rank=size, change=middle, rows=1, sides=2, noise_scale=1.0).delta_alone(epsilon) <= delta
        low, high = (middle, high) if held else (low, middle)
    return low


def symmetric(rng, d, scale):
    """Noise whose upper triangle, entries off the diagonal times √2, is N(0, scale²)."""
    noise = np.triu(rng.normal(size=(d, d)), 1) / math.sqrt(2)
    return scale * (noise + noise.T + np.diag(rng.normal(size=d)))


def adassp(X, y, epsilon, delta, rng):
    """Algorithm 2 of Wang (2018), a third of μ² each; sensitivities √2, 2 and 1."""
    d, part = X.shape[1], gaussian_mu(epsilon, delta) / math.sqrt(3)
    least = np.linalg.eigvalsh(X.T @ X)[0] + rng.normal() / part - math.sqrt(math.log(6 / delta)) / part
    penalty = math.sqrt(2) / part * math.sqrt(d * math.log(2 * d**2 / FAILURE)) - max(least, 0.0)
    moments = X.T @ X + symmetric(rng, d, math.sqrt(2) / part) + max(penalty, 0.0) * np.eye(d)
    return np.linalg.solve(moments, X.T @ y + 2 / part * rng.normal(size=d))


def sketched(rng, moments, noise, rows):
    """Second moments of a sketch of so many rows: its rows are N(0, moments + noise²)."""
    root = np.linalg.cholesky(moments + (noise**2 + 1e-9) * np.eye(len(moments)))
    Y = rng.normal(size=(rows, len(moments))) @ root.T
    return Y.T @ Y / rows


def lifted(rng, moments, needed, norm, rows, tail):
    """Standard deviation of the noise that lifts the least eigenvalue to ``needed``, by a noisy test of it."""
    spread = norm**2 * needed / math.sqrt(rows)
    least = max(0.0, np.linalg.eigvalsh(moments)[0] - spread * (tail - rng.normal()))
    return math.sqrt(max(0.0, needed - least))


def gaussian_mixing(X, y, epsilon, delta, rng):
    """Lev et al. (2025): least squares on one sketch of rows and targets; 2.5 max(d, log(4/ϱ)) rows, ϱ = δ/10."""
    d = X.shape[1]
    rows = int(2.5 * max(d, math.log(40 / delta)))
    Z = np.column_stack([X, y])
    needed = 2 / sketch_ratio(epsilon, delta, rows)
    noise = lifted(rng, Z.T @ Z, needed, 2**0.25, rows, math.sqrt(2 * math.log(40 / delta)))
    H = sketched(rng, Z.T @ Z, noise, rows)
    return np.linalg.solve(H[:d, :d], H[:d, d])


def hessian_mixing(X, y, epsilon, delta, rng, steps=3):
    """Lev et al. (2026): three steps, each with a fresh sketch as Hessian and a noisy gradient of clipped residuals."""
    d, mu = X.shape[1], gaussian_mu(epsilon, delta) / math.sqrt(2)
    rows = int(6 * max(d, math.log(40 * steps / delta)))
    needed = 1 / sketch_ratio(gaussian_epsilon(mu, delta), delta, steps * rows)
    noise = lifted(rng, X.T @ X, needed, 1.0, rows, math.sqrt(2 * math.log(40 / delta)))
    theta = np.zeros(d)
    for _ in range(steps):
        gradient = X.T @ np.clip(y - X @ theta, -1, 1) + 2 * math.sqrt(steps) / mu * rng.normal(size=d)
        theta = theta + np.linalg.solve(sketched(rng, X.T @ X, noise, rows), gradient)
    return theta


def ours(X, y, epsilon, delta, seed, solver="moments"):
    n, d = X.shape
    domain = Domain(n_rows=n, n_features=d, row_norm=math.sqrt(d), entry_bound=1.0, max_missing=0)
    steps = [("model", Ridge((-1.0, 1.0), solver=solver))]
    return Pipeline(steps, domain=domain, epsilon=epsilon, delta=delta, random_state=seed).fit(X, y)


def theirs(X, y, epsilon, seed):
    from diffprivlib.models import LinearRegression

    return LinearRegression(epsilon=epsilon, bounds_X=(-1, 1), bounds_y=(-1, 1), random_state=seed).fit(X, y)


OTHERS: dict[str, Callable] = {
    "AdaSSP": adassp,
    "Gaussian mixing": gaussian_mixing,
    "Hessian mixing": hessian_mixing,
}


def errors(name: str, epsilon: float, seed: int) -> dict[str, float]:
    """Share of the variance that each of them misses, on one split."""
    X, y = _task(name)
    rng = np.random.default_rng([seed, 2026])
    order = rng.permutation(len(X))
    test, train = np.split(order, [len(X) // 5])
    delta = 1 / len(train) ** 2
    unit = np.column_stack([X, np.ones(len(X))]) / math.sqrt(X.shape[1] + 1)
    guesses = {
        "ours": ours(X[train], y[train], epsilon, delta, seed).predict(X[test]),
        "ours, dpgd": ours(X[train], y[train], epsilon, delta, seed, "dpgd").predict(X[test]),
        "ours, sketch": ours(X[train], y[train], epsilon, delta, seed, "sketch").predict(X[test]),
        **{label: unit[test] @ fit(unit[train], y[train], epsilon, delta, rng) for label, fit in OTHERS.items()},
        "diffprivlib": theirs(X[train], y[train], epsilon, seed).predict(X[test]),
        "not private": unit[test] @ np.linalg.lstsq(unit[train], y[train], rcond=None)[0],
    }
    return {label: float(np.mean((y[test] - guess) ** 2) / y[test].var()) for label, guess in guesses.items()}


@cache
def _task(name):
    X, y = TASKS[name]()
    return X, np.asarray(y)[:, 0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--tasks", nargs="*", default=list(TASKS))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    first = True
    for name in given.tasks:
        for epsilon in EPSILONS:
            found = pd.DataFrame([errors(name, epsilon, seed) for seed in range(given.seeds)])
            if first:
                print("| task (rows x columns) | ε | " + " | ".join(found.columns) + " |")
                print("|---|---|" + "---|" * len(found.columns))
                first = False
            n, d = _task(name)[0].shape
            cells = [f"{mean:.3g} ± {se:.2g}" for mean, se in zip(found.mean(), found.sem())]
            print(f"| {name} ({n:,} x {d}) | {epsilon:g} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
