"""Rank errors of private quantiles at one budget: ours, choices among points, above-threshold, noisy ranks.

    python benchmarks/quantiles.py [draws]

One quantile of one column of 5,000 values, one replaced row, epsilon = 0.1. The rivals are written down here as their
papers give them: the exponential mechanism on 4,000 points (Smith 2011), unbounded estimation by above-threshold with
exponential noise (Durfee 2023, arXiv 2305.01177, steps of 0.1 %), and binary search by noisy ranks with 20 steps. All
but the unbounded one know that values lie between -100 and 100.
"""

from __future__ import annotations

import sys

import numpy as np

from ppdp.data.counting import cell_scores, quantile_edges
from ppdp.data.rows import Rows
from ppdp.privacy.noise.laplace import choose
from ppdp.privacy.noise.sampler import Noise

N, EPSILON, BOUND, STEPS = 5000, 0.1, 100.0, 20
THRESHOLDS = 1.001 ** np.arange(20_000)  # beyond any value, and any noise that was ever drawn
COLUMNS = {
    "normal": lambda rng: rng.normal(0, 10, N),
    "heavy tails": lambda rng: np.clip(np.exp(rng.normal(0, 1.5, N)), None, BOUND),
    "0 to 10": lambda rng: rng.integers(0, 11, N).astype(float),
    "constant": lambda rng: np.full(N, 7.3),
}


def missed(values: np.ndarray, answer: float, q: float) -> float:
    """By how many ranks an answer misses; what is within half a cell of a value counts as that value."""
    near = 1.001 * BOUND / 4000
    below, up_to = (values < answer - near).sum(), (values <= answer + near).sum()
    return float(max(below - q * N, q * N - up_to, 0.0))


def ours(values: np.ndarray, q: float, rng: np.random.Generator) -> float:
    """A choice among cells, the middle of one."""
    edges = quantile_edges(BOUND, N)
    cell = choose(Noise(rng), cell_scores(Rows.of(values[:, None]), [q], edges), 2 / EPSILON, N)
    return float(edges[cell] + edges[cell + 1]) / 2


def on_points(values: np.ndarray, q: float, rng: np.random.Generator) -> float:
    """A choice among points, each with the number of values below it."""
    points = np.linspace(-BOUND, BOUND, 4000)
    scores = -np.abs(np.searchsorted(np.sort(values), points) - q * N)
    return float(points[choose(Noise(rng), scores, 2 / EPSILON, N)])


def above_threshold(values: np.ndarray, q: float, rng: np.random.Generator) -> float:
    """The first of growing thresholds below which enough values are; negative values from the other side."""
    q, sign = (q, 1) if q >= 0.5 else (1 - q, -1)
    shifted = sign * values + BOUND + 1  # of one sign; it needs no upper end
    aim, first, each = q * N, EPSILON / 3, EPSILON / 3  # a replaced row makes queries cost twice
    aim += rng.exponential(1 / first)
    below = np.searchsorted(np.sort(shifted), THRESHOLDS) + rng.exponential(1 / each, len(THRESHOLDS))
    return float(sign * (THRESHOLDS[np.argmax(below >= aim)] - BOUND - 1))


def noisy_ranks(values: np.ndarray, q: float, rng: np.random.Generator) -> float:
    """Binary search."""
    low, high = -BOUND, BOUND
    for _ in range(STEPS):
        middle = (low + high) / 2
        under = (values < middle).sum() + rng.laplace(scale=STEPS / EPSILON) < q * N
        low, high = (middle, high) if under else (low, middle)
    return (low + high) / 2


WAYS = {"ours": ours, "on points": on_points, "above-threshold": above_threshold, "noisy ranks": noisy_ranks}


def main(draws: int) -> None:
    """Print mean rank errors, in ranks of 5,000."""
    rng = np.random.default_rng(0)
    print(f"{'column':<14}{'q':>5}" + "".join(f"{name:>17}" for name in WAYS))
    for name, made in COLUMNS.items():
        values = made(np.random.default_rng(1))
        for q in (0.5, 0.95):
            errors = [np.mean([missed(values, way(values, q, rng), q) for _ in range(draws)]) for way in WAYS.values()]
            print(f"{name:<14}{q:>5}" + "".join(f"{error:>17.1f}" for error in errors), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
