"""The Laplace mechanism on cleaned rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.bounds.laplace import mean_shape, sum_shape
from ppdp.bounds.queries import histogram_shape, present_shape
from ppdp.core.checks import choice
from ppdp.core.domain import Domain
from ppdp.data.rows import Rows
from ppdp.data.summary import column_sums
from ppdp.mechanisms.base import Mechanism, Question
from ppdp.mechanisms.query.answers import FitsAlone, histograms, mean, present, read_histograms, read_mean, within_ball
from ppdp.mechanisms.query.grids import public_grid
from ppdp.privacy.noise.laplace import laplace_release
from ppdp.privacy.noise.sampler import Noise

__all__ = ["LaplaceMechanism"]

Array = NDArray[np.float64]


class LaplaceMechanism(FitsAlone, Mechanism):
    """Release a statistic of the rows with Laplace noise: private without any delta.

    Counts get noise of whole numbers and nothing is rounded. Alone it suits few numbers and small epsilon; many numbers
    at some delta are better released by :class:`GaussianMechanism`.

    Parameters
    ----------
    query : {"mean", "sum", "count", "histogram"}, default="mean"
        What is released, as by :class:`GaussianMechanism`. Counts are whole numbers.
    bins : int, sequence of float, or mapping of columns to either, default=10
        Public grid of a histogram: so many equal cells between the public bounds on entries, or ascending edges. A
        mapping, by name or position, chooses columns. The outer cells take what lies beyond the grid.
    noise_scale : float, optional
        Scale b of the noise on each released number, whose density is ``~ exp(-|z| / b)``; a pipeline sets it.
    random_state : int, RandomState instance or None, default=None
        For tests only: noise that can be predicted protects nobody.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Noisy mean of the rows that are present.
    present_ : float
        Noisy share of them, with the mean; 1.0 where none can be deleted.
    sum_ : ndarray of shape (n_features,)
        Noisy sum of the rows.
    count_ : float
        Noisy weight of the rows, whole.
    histogram_, edges_ : list of ndarray
        Noisy rows in each cell, whole, and the grid, for each column.

    Notes
    -----
    **Guarantee** (``docs/theory/laplace.md``): ``epsilon = shift / noise_scale``, delta 0. For one replaced row the L1
    shift is 2B/n (mean), 2B (sum; B = √d R, or d b for entries up to b if that is less), 1 (count), 2c (histograms of
    c columns).
    """

    def __init__(
        self, query: str = "mean", noise_scale: float | None = None, *, bins: Any = 10, random_state: Any = None
    ) -> None:
        self.query = query
        self.bins = bins
        self.noise_scale = noise_scale
        self.random_state = random_state

    def question(self, domain: Domain, mu: float | None = None) -> Question:
        query = choice("query", self.query, ["mean", "sum", "count", "histogram"], self)
        if query == "count":
            return Question("laplace.count", {}, 1, *present_shape(domain), kind="privacy")
        if query == "histogram":
            grid = public_grid("bins", self.bins, domain, self, edges=True)
            return Question("laplace.histogram", grid, 1, *histogram_shape(domain, **grid), kind="privacy")
        domain.require("row_norm", "LaplaceMechanism")
        if query == "sum":
            return Question("laplace.sum", {}, 1, *sum_shape(domain), kind="privacy")
        weighted = domain.min_present < domain.n
        shape = mean_shape(domain, weighted=weighted)
        return Question("laplace.mean", {"weighted": weighted}, 1, *shape, kind="privacy")

    @property
    def _whole(self) -> bool:
        return self.query in ("count", "histogram")

    def release(self, rows: Rows, question: Question, noise: Noise, noise_scale: float) -> dict[str, Array]:
        answer = self.answer(rows, question)
        return {"answer": laplace_release(noise, answer, noise_scale, question.bound, whole=self._whole)}

    def answer(self, rows: Rows, question: Question) -> Array:
        """What is asked, exactly; counts of weight are rounded to whole numbers."""
        bound, parameters = question.bound, question.parameters
        if self._whole:
            weight = present(rows) if self.query == "count" else histograms(rows, **parameters)
            return np.floor(weight + 0.5)
        if self.query == "sum":
            return column_sums(rows.X, rows.weight, bound / rows.n)
        return mean(rows, bound, bound if parameters["weighted"] else None)

    def read(self, released: Mapping[str, Array], domain: Domain, question: Question) -> None:
        answer, parameters = released["answer"], question.parameters
        if self.query == "count":
            self.count_ = float(np.clip(answer[0], 0.0, domain.n))
        elif self.query == "histogram":
            self.histogram_, self.edges_ = read_histograms(answer, domain, **parameters)
        elif self.query == "sum":
            self.sum_ = within_ball(answer, domain.n * float(domain.require("row_norm")))
        else:
            count_weight = question.bound if parameters["weighted"] else None
            self.mean_, self.present_ = read_mean(answer, domain, count_weight)
