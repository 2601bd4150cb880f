"""What share of 95 % intervals of coefficients cover: ``docs/theory/intervals.md``.

    python benchmarks/intervals.py [--draws 40] [--epsilon 0.3 1 3] [--rows 3000 30000 300000] [--models NAME ...]

Generated tables of six kinds, a new one for every fit, and two real ones. ``noise`` covers the coefficients of
scikit-learn on the same rows, ``population`` those that the rows were drawn with, ``told`` is the share of coefficients
that have an interval, ``error`` the root mean square of errors over standard errors, which is 1 where these are exact.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn import linear_model
from threadpoolctl import threadpool_limits

from ppdp import Ledger, make_pipeline
from ppdp.datasets import load_flchain, load_randhie
from ppdp.exceptions import NoRoute
from ppdp.mechanisms import LinearRegression, LogisticRegression, PoissonRegressor
from ppdp.transformers import MeanImputer, MinMaxScaler, StandardScaler

Table = Callable[[np.random.Generator, int], Any]


def skewed(rng: np.random.Generator, n: int) -> Any:
    return np.hstack([np.clip(rng.exponential(1 / 8, (n, 4)), 0, 1) * 2 - 1, rng.uniform(-1, 1, (n, 2))])


def collinear(rng: np.random.Generator, n: int) -> Any:
    own = rng.standard_normal((n, 3))
    mixed = own @ np.random.default_rng(0).uniform(0.2, 0.8, (3, 3)) + 0.1 * rng.standard_normal((n, 3))
    return np.clip(np.hstack([own, mixed]) / 4, -1, 1)


def one_hot(drop: bool, rng: np.random.Generator, n: int) -> Any:
    """Three numbers, and indicators of two columns of categories, some of them rare, perhaps without the first."""
    first = np.eye(5)[rng.choice(5, n, p=[0.5, 0.3, 0.15, 0.04, 0.01])]
    second = np.eye(4)[rng.choice(4, n, p=[0.4, 0.4, 0.195, 0.005])]
    return np.hstack([rng.uniform(-1, 1, (n, 3)), first[:, drop:], second[:, drop:]])


def wide(rng: np.random.Generator, n: int) -> Any:
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((20, 20)))[0]
    return np.clip(rng.standard_normal((n, 20)) * np.linspace(0.1, 0.5, 20) @ turn, -1, 1)


TABLES: dict[str, Table] = {
    "mild": lambda rng, n: rng.uniform(-1, 1, (n, 6)),
    "skewed": skewed,
    "collinear": collinear,
    "one-hot": lambda rng, n: one_hot(True, rng, n),
    "one-hot, all": lambda rng, n: one_hot(False, rng, n),
    "wide": wide,
}


def lopsided(rng: np.random.Generator, scores: Any) -> Any:
    """Residuals that are skewed, and larger where scores are."""
    return 0.15 * scores + 0.1 * (rng.exponential(1, len(scores)) - 1) * np.exp(0.3 * scores)


# Of each model: itself, its twin, what multiplies a score of unit variance, and targets at such scores.
MODELS: dict[str, tuple[Any, Any, float, Callable[[np.random.Generator, Any], Any]]] = {
    "logistic": (
        LogisticRegression((0, 1)),
        linear_model.LogisticRegression(tol=1e-10, max_iter=5000),
        1.2,
        lambda rng, s: (rng.random(len(s)) < expit(1.2 * s - 0.8)).astype(int),
    ),
    "linear": (
        LinearRegression(y_range=(-1, 1)),
        linear_model.LinearRegression(),
        0.15,
        lambda rng, s: 0.15 * s + 0.2 * rng.standard_normal(len(s)),
    ),
    "lopsided": (LinearRegression(y_range=(-1, 1)), linear_model.LinearRegression(), 0.15, lopsided),
    "Poisson": (
        PoissonRegressor(y_range=(0, 12)),
        linear_model.PoissonRegressor(alpha=0, tol=1e-9, max_iter=5000),
        0.3,
        lambda rng, s: rng.poisson(np.exp(0.3 * s)),
    ),
}


def drawn(table: Table, model: str, n: int, seed: int) -> tuple[Any, Any, Any]:
    """Rows, targets, and the coefficients that they were drawn with."""
    rng = np.random.default_rng([seed, 1])
    X = table(rng, n)
    coef = np.random.default_rng(seed).standard_normal(X.shape[1])
    usual = table(np.random.default_rng(0), 20_000) @ coef
    *_, factor, targets = MODELS[model]
    y = targets(rng, (X @ coef - usual.mean()) / usual.std())
    low, high = getattr(MODELS[model][0], "y_range", None) or (0, 1)
    return X, np.clip(y, low, high), factor * coef / usual.std()


def compared(steps: list[Any], twin: Any, X: Any, y: Any, coef: Any, epsilon: float, seed: int) -> pd.DataFrame:
    """One line for every coefficient: whether it is told and covered, and its error over the standard error."""
    with Ledger():
        pipe = make_pipeline(*steps, epsilon=epsilon, delta=1e-6, dataset="rows", random_state=seed).fit(X, y)
    told = pipe.release_.conf_int(raw=False).query("statistic == 'coefficient'")
    exact = np.ravel(twin.fit(pipe[:-1].transform(X), y).coef_)
    found = pd.DataFrame({"told": told["lower"].notna().to_numpy()})
    found["noise"] = ((told["lower"] <= exact) & (exact <= told["upper"])).to_numpy()
    found["error"] = ((told["value"] - exact) / told["standard_error"]).to_numpy()
    if coef is not None:
        inside = ((told["population_lower"] <= coef) & (coef <= told["population_upper"])).to_numpy(float)
        found["population"] = np.where(told["population_lower"].notna(), inside, np.nan)
    return found


def of_generated(args: argparse.Namespace) -> Iterator[tuple[str, int, float, list[pd.DataFrame]]]:
    for model in args.models:
        private, twin, *_ = MODELS[model]
        for n in args.rows:
            for name, table in TABLES.items():
                for epsilon in args.epsilon:
                    found = []
                    for seed in range(max(5, min(args.draws, args.draws * 30_000 // n))):
                        X, y, coef = drawn(table, model, n, seed)
                        steps = [MinMaxScaler(ranges=(-1, 1)), private]
                        try:
                            found.append(compared(steps, twin, X, y, coef, epsilon, seed))
                        except NoRoute:
                            break
                    yield f"{model}, {name}", n, epsilon, found


def of_real(args: argparse.Namespace) -> Iterator[tuple[str, int, float, list[pd.DataFrame]]]:
    for name, (X, y, known) in {"flchain": load_flchain(), "randhie": load_randhie()}.items():
        for epsilon in args.epsilon:
            steps = [MinMaxScaler(ranges=known), MeanImputer(), StandardScaler(), LogisticRegression((0, 1))]
            twin = MODELS["logistic"][1]
            found = [compared(steps, twin, X, y, None, epsilon, seed) for seed in range(args.draws)]
            yield name, len(X), epsilon, found


def covered(told: pd.DataFrame, what: str) -> str:
    """Share of the intervals that cover; with how many of those for noise there are, where they are fewer."""
    some = told[what].dropna().astype(float) if what in told else pd.Series(dtype=float)
    if not len(some):
        return ""
    return f"{some.mean():.3f}" + (f" of {len(some) / len(told):.2f}" if len(some) < len(told) else "")


def main() -> None:
    """Print a line of the table for each kind of rows, number of rows and epsilon."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.3, 1.0, 3.0])
    parser.add_argument("--rows", type=int, nargs="+", default=[3000, 30_000, 300_000])
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    args = parser.parse_args()
    print("| coefficients | rows | ε | told | noise | population | error |\n|---|---|---|---|---|---|---|")
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for source in (of_real, of_generated):
            for name, n, epsilon, found in source(args):
                every = pd.concat(found) if found else pd.DataFrame({"told": [False], "noise": [False], "error": [0.0]})
                told = every[every["told"]]
                shares = [covered(told, one) for one in ("noise", "population")]
                error = f"{np.sqrt((told['error'] ** 2).mean()):.2f}" if len(told) else ""
                line = (name, f"{n:,}", f"{epsilon:g}", f"{every['told'].mean():.2f}", *shares, error)
                print(f"| {' | '.join(line)} |", flush=True)


if __name__ == "__main__":
    main()
