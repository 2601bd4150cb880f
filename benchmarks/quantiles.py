"""Rank errors of private quantiles at one budget: ours, choices among points, above-threshold, noisy ranks.

    python benchmarks/quantiles.py [draws]

One quantile of one column of 5,000 values, means over forty tables, one replaced row, epsilon = 0.1. The rivals are
written down here as their papers give them: the exponential mechanism on 4,000 points (Smith 2011), unbounded
estimation by above-threshold with exponential noise (Durfee 2023, arXiv 2305.01177, steps of 0.1 %), and binary search
by noisy ranks with 20 steps. All but the unbounded one know that values lie between -100 and 100. The mean of choices
is computed from their probabilities, that of the others is one of draws.
"""

from __future__ import annotations

import sys
from itertools import cycle, islice

import numpy as np
from scipy.special import softmax

from ppdp.data.histograms import cell_scores, quantile_edges
from ppdp.data.rows import Rows

N, TABLES, EPSILON, BOUND, STEPS = 5000, 40, 0.1, 100.0, 20
THRESHOLDS = 1.001 ** np.arange(20_000)  # beyond any value, and any noise that was ever drawn
COLUMNS = {
    "normal": lambda rng: rng.normal(0, 10, N),
    "heavy tails": lambda rng: np.clip(np.exp(rng.normal(0, 1.5, N)), None, BOUND),
    "0 to 10": lambda rng: rng.integers(0, 11, N).astype(float),
    "constant": lambda rng: np.full(N, 7.3),
}


def missed(values: np.ndarray, answers: np.ndarray, q: float) -> np.ndarray:
    """By how many ranks answers miss; what is within half a point's distance of a value counts as that value."""
    near, values = 1.001 * BOUND / 4000, np.sort(values)
    below, up_to = np.searchsorted(values, answers - near), np.searchsorted(values, answers + near, side="right")
    return np.maximum(np.maximum(below - q * N, q * N - up_to), 0.0)


def mean_of_choices(values: np.ndarray, q: float, answers: np.ndarray, scores: np.ndarray) -> float:
    """Of one of the answers, chosen with probability proportional to ``exp(epsilon * score / 2)``."""
    return float(missed(values, answers, q) @ softmax(EPSILON / 2 * scores))


def ours(values: np.ndarray, q: float) -> float:
    """A choice among cells, the middle of one."""
    edges = quantile_edges(BOUND, N)
    (scores,) = cell_scores(Rows.of(values[:, None]), [q], edges)
    return mean_of_choices(values, q, (edges[1:] + edges[:-1]) / 2, scores)


def on_points(values: np.ndarray, q: float) -> float:
    """A choice among points, each with the number of values below it."""
    points = np.linspace(-BOUND, BOUND, 4000)
    return mean_of_choices(values, q, points, -np.abs(np.searchsorted(np.sort(values), points) - q * N))


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


CHOICES, DRAWN = (
    {"ours": ours, "on points": on_points},
    {"above-threshold": above_threshold, "noisy ranks": noisy_ranks},
)


def main(draws: int) -> None:
    """Print mean rank errors, in ranks of 5,000."""
    rng = np.random.default_rng(0)
    print(f"{'column':<14}{'q':>5}" + "".join(f"{name:>17}" for name in (*CHOICES, *DRAWN)))
    for name, made in COLUMNS.items():
        tables = [made(np.random.default_rng(table)) for table in range(TABLES)]
        for q in (0.5, 0.95):
            errors = [np.mean([mean(values, q) for values in tables]) for mean in CHOICES.values()]
            for drawn in DRAWN.values():
                answers = [(values, drawn(values, q, rng)) for values in islice(cycle(tables), draws)]
                errors.append(np.mean([missed(values, np.array(answer), q) for values, answer in answers]))
            print(f"{name:<14}{q:>5}" + "".join(f"{error:>17.2f}" for error in errors), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
