"""The Gaussian mechanism on cleaned rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.bounds.queries import (
    MOMENT_COUNT_WEIGHT,
    covariance_shape,
    histogram_shape,
    present_shape,
    rows_shape,
    sum_shape,
)
from ppdp.bounds.release import answer_shape
from ppdp.core.checks import choice
from ppdp.core.domain import Domain
from ppdp.data.rows import Rows
from ppdp.data.summary import column_sums
from ppdp.mechanisms.base import Mechanism, Question
from ppdp.mechanisms.query.answers import (
    FitsAlone,
    histograms,
    mean,
    mean_and_moment,
    present,
    read_histograms,
    read_mean,
    read_moments,
    within_ball,
)
from ppdp.mechanisms.query.grids import public_grid
from ppdp.privacy.noise.sampler import Noise

__all__ = ["GaussianMechanism"]

Array = NDArray[np.float64]


class GaussianMechanism(FitsAlone, Mechanism):
    """Release a statistic of the rows with Gaussian noise.

    Where a stage may have deleted rows, mean and covariance come with the share of rows that are present, at the price
    of the mean alone, and are those of the rows that are present; all else is over the rows that have weight.

    Parameters
    ----------
    query : {"mean", "sum", "count", "covariance", "histogram", "rows"}, default="mean"
        What is released. "count": weight of the rows that are present. "covariance": mean and covariance, together at
        the price of the mean. "histogram": rows in the cells of a public grid, column by column. "rows": every row in
        its place; each carries the noise of a whole row, so only averages over many mean something.
    bins : int, sequence of float, or mapping of columns to either, default=10
        Public grid of a histogram: so many equal cells between the public bounds on entries, or ascending edges. A
        mapping, by name or position, chooses columns. The outer cells take what lies beyond the grid.
    noise_scale : float, optional
        Standard deviation on each released number; a pipeline sets it.
    random_state : int, RandomState instance or None, default=None
        For tests only: noise that can be predicted protects nobody.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Noisy mean of the rows ("mean", "covariance").
    present_ : float
        Noisy share of the rows that are present; 1.0 where none can be deleted ("mean", "covariance").
    sum_ : ndarray of shape (n_features,)
        Noisy sum of the rows.
    count_ : float
        Noisy weight of the rows.
    covariance_ : ndarray of shape (n_features, n_features)
        Noisy covariance, positive semi-definite.
    histogram_, edges_ : list of ndarray
        Noisy rows in each cell, and the grid, for each column.
    rows_ : ndarray of shape (n_rows, n_features)
        Noisy rows in their places, a deleted one as noise alone; not clipped, so that averages have no bias.

    Notes
    -----
    **Guarantee** (``docs/theory/releases.md``, ``docs/theory/queries.md``): ``mu = sensitivity / noise_scale`` exactly.
    For one replaced row the sensitivity is 2R/n (mean, covariance), 2R (sum, rows), 1 (count), √(2c) (histograms
    of c columns). What is read from an answer is moved to the nearest that rows could have,
    but for "rows".
    """

    def __init__(
        self, query: str = "mean", noise_scale: float | None = None, *, bins: Any = 10, random_state: Any = None
    ) -> None:
        self.query = query
        self.bins = bins
        self.noise_scale = noise_scale
        self.random_state = random_state

    def question(self, domain: Domain, mu: float | None = None) -> Question:
        query = choice("query", self.query, ["mean", "sum", "count", "covariance", "histogram", "rows"], self)
        weighted = domain.min_present < domain.n
        if query == "count":
            return Question("query.count", {}, 1, *present_shape(domain))
        if query == "histogram":
            grid = public_grid("bins", self.bins, domain, self, edges=True)
            return Question("query.histogram", grid, 1, *histogram_shape(domain, **grid))
        domain.require("row_norm", "GaussianMechanism")
        if query == "rows":
            return Question("query.rows", {}, 1, *rows_shape(domain))
        if query == "sum":
            return Question("query.sum", {}, 1, *sum_shape(domain))
        formula, shape = {
            "mean": ("release.mean-and-count", answer_shape),
            "covariance": ("query.covariance", covariance_shape),
        }[query]
        return Question(formula, {"weighted": weighted}, 1, *shape(domain, weighted=weighted))

    def release(self, rows: Rows, question: Question, noise: Noise, noise_scale: float) -> dict[str, Array]:
        return {"answer": noise.release(self.answer(rows, question), noise_scale, question.bound)}

    def answer(self, rows: Rows, question: Question) -> Array:
        """What is asked, exactly."""
        bound, parameters = question.bound, question.parameters
        if self.query == "count":
            return present(rows)
        if self.query == "histogram":
            return histograms(rows, **parameters)
        if self.query == "rows":
            return (rows.X * rows.weight[:, None]).ravel()
        if self.query == "sum":
            return column_sums(rows.X, rows.weight, bound / rows.n)
        weighted = parameters["weighted"]
        if self.query == "covariance":
            norm = bound / MOMENT_COUNT_WEIGHT if weighted else bound
            return mean_and_moment(rows, norm, weighted=weighted)
        return mean(rows, bound / math.sqrt(3), bound) if weighted else mean(rows, bound)

    def read(self, released: Mapping[str, Array], domain: Domain, question: Question) -> None:
        answer, parameters = released["answer"], question.parameters
        if self.query == "count":
            self.count_ = float(np.clip(answer[0], 0.0, domain.n))
        elif self.query == "histogram":
            self.histogram_, self.edges_ = read_histograms(answer, domain, **parameters)
        elif self.query == "rows":
            self.rows_ = answer.reshape(domain.n, domain.d)
        elif self.query == "sum":
            self.sum_ = within_ball(answer, question.bound)
        elif self.query == "covariance":
            self.mean_, self.covariance_, self.present_ = read_moments(answer, domain, **parameters)
        else:
            count_weight = question.bound if parameters["weighted"] else None
            self.mean_, self.present_ = read_mean(answer, domain, count_weight)
