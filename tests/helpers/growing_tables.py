"""Generated tables of any number of rows: mild, skewed, with heavy tails, one-hot, collinear, of a rare class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.special import expit

from ppdp.data.rows import Array

NEW = 1000  # rows on which predictions are compared
COUNTS, AMOUNTS = (0, 12), (0.01, 6)


def _mild(n: int, rng: np.random.Generator) -> Array:
    return 0.3 * rng.standard_normal((n, 4))


def _skewed(n: int, rng: np.random.Generator) -> Array:
    return 0.15 * rng.exponential(size=(n, 4)) - 0.9


def _heavy(n: int, rng: np.random.Generator) -> Array:
    return 0.02 * rng.standard_t(2, (n, 4))


def _one_hot(n: int, rng: np.random.Generator) -> Array:
    kind = rng.choice(4, n, p=[0.55, 0.3, 0.1, 0.05])
    return np.column_stack([0.3 * rng.standard_normal(n), kind[:, None] == np.arange(1, 4)])


def _collinear(n: int, rng: np.random.Generator) -> Array:
    a, b, c = 0.3 * rng.standard_normal((3, n))
    return np.column_stack([a, a + 0.1 * c, b, 0.5 * (a + b) + 0.05 * c])


FAMILIES: dict[str, Callable[[int, np.random.Generator], Array]] = {
    "mild": _mild,
    "skewed": _skewed,
    "heavy tails": _heavy,
    "one-hot": _one_hot,
    "collinear": _collinear,
    "rare class": _mild,
}


@dataclass
class Table:
    """n rows within [-1, 1] and as many labels, targets, counts, gaps and categories; and new rows."""

    name: str
    n: int
    seed: int = 0
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng([self.seed, self.n, *self.name.encode()])
        rows = np.clip(FAMILIES[self.name](self.n + NEW, self.rng), -1, 1)
        self.X, self.new = rows[: self.n], rows[self.n :]
        centre, spread = self.X.mean(axis=0), self.X.std(axis=0)
        self.scores, self.new_scores = (
            np.clip((X - centre) / spread @ [0.8, -0.5, 0.3, 0.2], -4, 4) for X in (self.X, self.new)
        )
        self.shift = -5.0 if self.name == "rare class" else 0.3

    @cached_property
    def y(self) -> Array:
        return (self.rng.random(self.n) < expit(self.scores + self.shift)).astype(int)

    @property
    def expected_y(self) -> Array:
        """Probabilities of new rows."""
        return np.asarray(expit(self.new_scores + self.shift))

    @cached_property
    def target(self) -> Array:
        return np.clip(0.15 * self.scores + 0.1 * self.rng.standard_normal(self.n), -1, 1)

    @property
    def expected_target(self) -> Array:
        """Means of new rows."""
        return np.asarray(0.15 * self.new_scores)

    @property
    def expected_count(self) -> Array:
        """The same of counts."""
        return np.asarray(np.exp(0.3 * self.new_scores))

    @cached_property
    def counts(self) -> Array:
        return np.clip(self.rng.poisson(np.exp(0.3 * self.scores)), *COUNTS).astype(float)

    @cached_property
    def amounts(self) -> Array:
        return np.clip(self.rng.gamma(2.0, 0.5 * np.exp(0.3 * self.scores)), *AMOUNTS)

    @cached_property
    def gapped(self) -> Array:
        holes = self.rng.random(self.X.shape) < [0.3, 0.1, 0.0, 0.0]
        return np.where(holes, np.nan, self.X)

    @cached_property
    def all_gaps(self) -> Array:
        """New rows, each with one gap where there may be any."""
        return np.where(np.arange(NEW)[:, None] % 2 == np.arange(4), np.nan, self.new)

    @cached_property
    def kinds(self) -> Array:
        """A column of categories, and new rows of each."""
        return np.digitize(self.X[:, :1], np.quantile(self.new[:, 0], [0.4, 0.7, 0.9, 0.97])).astype(float)
