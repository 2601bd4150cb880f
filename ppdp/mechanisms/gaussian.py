"""The Gaussian mechanism on cleaned rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from ppdp.bounds.release import answer_shape
from ppdp.checks import choice
from ppdp.domain import Domain
from ppdp.mechanisms.base import Mechanism, Question
from ppdp.privacy.noise import Noise
from ppdp.rows import Rows, observed_domain
from ppdp.statistics import column_sums

__all__ = ["GaussianMechanism"]

Array = NDArray[np.float64]


class GaussianMechanism(Mechanism):
    """Release the mean of the rows with Gaussian noise.

    Where a stage may have deleted rows, the sum over the public number of rows and the share of rows that are present
    are released together, at the price of the sum alone; the mean is their quotient.

    Parameters
    ----------
    query : {"mean"}, default="mean"
        What is released.
    noise_scale : float, optional
        Standard deviation on each released number; a pipeline sets it.
    random_state : int, RandomState instance or None, default=None
        For tests only: noise that can be predicted protects nobody.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Noisy mean of the rows.
    present_ : float
        Noisy share of the rows that are present; 1.0 where none can be deleted.

    Notes
    -----
    **Guarantee** (``docs/theory/releases.md``): ``mu = sensitivity / noise_scale`` exactly; sensitivity 2R/n for one
    replaced row, plus ``min(total, 2R moved)/n``.
    """

    def __init__(self, query: str = "mean", noise_scale: float | None = None, random_state: Any = None) -> None:
        self.query = query
        self.noise_scale = noise_scale
        self.random_state = random_state

    def _question(self, domain: Domain, mu: float | None = None) -> Question:
        choice("query", self.query, ["mean"], self)
        weighted = domain.min_present < domain.n
        domain.require("row_norm", "GaussianMechanism")
        return Question("release.mean-and-count", {"weighted": weighted}, 1, *answer_shape(domain, weighted=weighted))

    def _release(self, rows: Rows, question: Question, noise: Noise, noise_scale: float) -> dict[str, Array]:
        weighted = question.parameters["weighted"]
        norm = question.bound / math.sqrt(3) if weighted else question.bound
        answer = column_sums(rows.X, rows.weight, norm) / rows.n
        if weighted:
            share = column_sums(np.full((rows.n, 1), norm), rows.weight, norm) / rows.n
            answer = np.append(answer, math.sqrt(3) * share)
        return {"answer": noise.release(answer, noise_scale, question.bound)}

    def _wear(self, released: Mapping[str, Array], domain: Domain, question: Question) -> None:
        answer, norm = released["answer"], float(domain.require("row_norm"))
        mean, self.present_ = answer[: domain.d], 1.0
        if len(answer) > domain.d:
            self.present_ = float(np.clip(answer[-1] / (math.sqrt(3) * norm), 1 / domain.n, 1.0))
            mean = mean / self.present_
        self.mean_ = mean * min(1.0, norm / max(float(np.linalg.norm(mean)), norm))

    def fit(self, X: Any, y: Any = None) -> GaussianMechanism:
        """Release the noisy mean; the domain is read off ``X``, so nothing is certified.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : ignored
            Present by convention.
        """
        scale = self._scale()
        X = validate_data(self, X, dtype=np.float64)
        domain = observed_domain(X).but(min_present=X.shape[0])
        question = self._question(domain)
        self._wear(self._release(Rows.of(X), question, Noise(self.random_state), scale), domain, question)
        return self
