"""Rows mixed by a secret Gaussian matrix."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from ppdp.bounds.sketch import factored_rows
from ppdp.core.checks import integer, number
from ppdp.core.domain import Domain
from ppdp.data.rows import Array, Rows
from ppdp.mechanisms.base import Mechanism, Question
from ppdp.mechanisms.standalone import StandaloneQueryMixin
from ppdp.privacy.noise.sampler import Noise

ADVICE = (
    "a second moment read from a sketch is off by about 1/√rank of itself more than with Gaussian noise of the same"
    " budget: take a sketch for its rows, and GaussianMechanism('covariance') for moments."
)


@dataclass(eq=False, repr=False)
class GaussianSketch(StandaloneQueryMixin, Mechanism):
    """Release ``rank`` random mixtures of the rows, with noise: an array that any solver takes.

    ``(S X + noise_scale N) / √rank``, S and N secret matrices of independent N(0, 1) entries, drawn for this release
    and kept by nobody. What is computed from second moments is better computed from noisy ones, and the plan says so.

    Parameters
    ----------
    rank : int, default=100
        Rows of the sketch: more of them are closer to the second moments of the rows, and need more noise.
    min_eigenvalue : float, optional
        What the least eigenvalue of the rows' second moment is at least, over the squared norm of rows: at most
        ``1 / n_features``. Needs less noise; a pipeline tests it.
    noise_scale : float, optional
        Standard deviation of the noise on ``S X``. A pipeline sets it.
    random_state : int, RandomState instance or None, default=None
        For tests only: whoever can predict S and N is told the rows.

    Attributes
    ----------
    sketch_ : ndarray of shape (rank, n_features)
        ``sketch_.T @ sketch_`` is ``X.T @ X + noise_scale² I`` on average, so a solver is given a penalty for nothing.

    Notes
    -----
    **Guarantee** (``docs/theory/gaussian-sketch.md``): a pair of chi-squared variables of which the law is exact,
    attained by one row that is replaced, or that comes or goes, where nothing is assumed; Rényi curves for rows that
    moved. Floats are covered.
    """

    rank: int = 100
    min_eigenvalue: float | None = None
    noise_scale: float | None = None
    _: KW_ONLY
    random_state: Any = None

    @property
    def guard(self) -> tuple[str, ...]:
        return () if self.min_eigenvalue is None else ("EigenvalueFloor", "min_eigenvalue")

    @classmethod
    def example(cls) -> Any:
        return cls(rank=20, noise_scale=1.0)

    def question(self, domain: Domain, mu: float | None = None) -> Question:
        norm = float(domain.require("row_norm", "GaussianSketch"))
        parameters: dict[str, Any] = {"rank": integer("rank", self.rank, self)}
        if self.min_eigenvalue is not None:
            most = 1 / domain.d
            parameters["share"] = number("min_eigenvalue", self.min_eigenvalue, self, least=1e-6, most=most)
        name = "sketch.rows" if self.min_eigenvalue is None else "sketch.floored-rows"
        start, told = usual_noise(norm, self.rank, mu), (ADVICE,) if mu else ()
        return Question.asked(name, "privacy", domain, parameters, start=start, warnings=told)

    def release(self, rows: Rows, question: Question, noise: Noise, noise_scale: float) -> dict[str, Array]:
        value = sketched(rows.X, rows.weight, question.parameters["rank"], noise)
        return {"answer": noise.release(value.ravel(), noise_scale, question.bound)}

    def read(self, released: Mapping[str, Array], domain: Domain, question: Question) -> None:
        rank = question.parameters["rank"]
        self.sketch_ = released["answer"].reshape(rank, domain.d) / math.sqrt(rank)


def usual_noise(norm: float, rank: int, mu: float | None) -> float:
    """About the noise of a sketch that costs ``mu``, if nothing is assumed: exact for a large rank."""
    return norm * math.sqrt(math.sqrt(rank) / (mu or 0.2))


def sketched(X: Array, weight: Array, rank: int, noise: Noise) -> Array:
    """``S √w X`` with a fresh S, as ``Z R``: a triangular R with the same products of columns has the same law."""
    R, width = X * np.sqrt(weight)[:, None], X.shape[1]
    block, apart = factored_rows(width), True
    while apart:
        apart = len(R) > block
        size = block if apart else max(len(R), width)
        R = np.pad(R, ((0, -len(R) % size if len(R) else size), (0, 0)))
        R = np.asarray(np.linalg.qr(R.reshape(-1, size, width), mode="r")).reshape(-1, width)
    Z = noise.standard_lattice((rank, width)) * 2.0**-37
    return np.asarray(Z @ R)
