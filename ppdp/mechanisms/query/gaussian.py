"""The Gaussian mechanism on cleaned rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ppdp.bounds.queries import MOMENT_COUNT_WEIGHT
from ppdp.core.domain import Domain
from ppdp.data.rows import Array, Rows
from ppdp.mechanisms.base import Mechanism, Question
from ppdp.mechanisms.query.answers import Query, mean_and_moment, read_moments
from ppdp.privacy.noise.sampler import Noise


@dataclass(eq=False, repr=False)
class GaussianMechanism(Query, Mechanism):
    """Release a statistic of the rows with Gaussian noise.

    Parameters
    ----------
    query : {"mean", "sum", "count", "covariance", "histogram", "rows"}, default="mean"
        What is released. "count": weight of the rows that are present. "covariance": mean and covariance, together at
        the cost of the mean. "histogram": rows in the cells of a public grid, column by column. "rows": every row in
        its place; each carries the noise of a whole row, so only averages over many mean something.
    noise_scale : float, optional
        Standard deviation on each released number; a pipeline sets it.

    Attributes
    ----------
    covariance_ : ndarray of shape (n_features, n_features)
        Noisy covariance, positive semi-definite.

    Notes
    -----
    **Guarantee** (``docs/theory/releases.md``, ``docs/theory/queries.md``): ``mu = sensitivity / noise_scale`` exactly.
    For one replaced row the sensitivity is 2R/n (mean, covariance), 2R (sum, rows), 1 (count), √(2c) (histograms
    of c columns), with n the public number of rows and R the public bound on the norm of a row. What is read from an
    answer is moved to the nearest that rows could have, but for "rows".
    """

    _kind = "mechanism"
    _formulas: ClassVar = {
        "mean": "release.mean-and-count",
        "sum": "query.sum",
        "count": "query.count",
        "covariance": "query.covariance",
        "histogram": "query.histogram",
        "rows": "query.rows",
    }
    _share = math.sqrt(3)

    @property
    def deviation(self) -> float:
        return self.own_noise_scale()

    def release(self, rows: Rows, question: Question, noise: Noise, noise_scale: float) -> dict[str, Array]:
        return {"answer": noise.release(self.answer(rows, question), noise_scale, question.bound)}

    def answer(self, rows: Rows, question: Question) -> Array:
        if self.query == "covariance":
            weighted = question.parameters["weighted"]
            norm = question.bound / MOMENT_COUNT_WEIGHT if weighted else question.bound
            return mean_and_moment(rows, norm, weighted=weighted)
        return super().answer(rows, question)

    def read(self, released: Mapping[str, Array], domain: Domain, question: Question) -> None:
        answer = released["answer"]
        if self.query == "covariance":
            self._noisy = answer
            self.mean_, self.covariance_, self.present_ = read_moments(answer, domain, **question.parameters)
        else:
            super().read(released, domain, question)
