"""Rows mixed by secret Gaussian matrices: sketches, and directions of means."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ppdp.bounds.sketch import factored_rows, noise_of
from ppdp.core.checks import integer, number
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.rows import Array, Rows
from ppdp.data.summary import column_sums
from ppdp.exceptions import InvalidParameter, MissingBudget, UnsupportedOrder
from ppdp.mechanisms.base import Mechanism, QuerySpec
from ppdp.mechanisms.standalone import StandaloneQueryMixin
from ppdp.privacy.losses import WishartLoss
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

    _example: ClassVar = {"rank": 20, "noise_scale": 1.0}

    def query_spec(self, domain: Domain, mu: float | None = None) -> QuerySpec:
        norm = float(domain.require("row_norm", "GaussianSketch"))
        parameters: dict[str, Any] = {"rank": integer("rank", self.rank, self)}
        if self.min_eigenvalue is not None:
            most = 1 / domain.d
            parameters["share"] = number("min_eigenvalue", self.min_eigenvalue, self, least=1e-6, most=most)
        name = "sketch.rows" if self.min_eigenvalue is None else "sketch.floored-rows"
        start, warnings = usual_noise(norm, self.rank, mu), (ADVICE,) if mu else ()
        return QuerySpec.asked(name, "privacy", domain, parameters, start=start, warnings=warnings)

    def release(self, rows: Rows, question: QuerySpec, noise: Noise, noise_scale: float) -> dict[str, Array]:
        value = sketched(rows.X, rows.weight, question.parameters["rank"], noise)
        return {"answer": noise.release(value.ravel(), noise_scale, question.bound)}

    def read(self, released: Mapping[str, Array], domain: Domain, question: QuerySpec) -> None:
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


_BLOCK = 2**20  # entries of the matrix at a time
_REFUSED = {
    "mean": "without its norm taken away the mean is told apart by its length.",
    "rows": "of several vectors under one matrix the products are symmetric for the one dataset and not for the other:"
    " whoever sees them knows which it was.",
}


@dataclass(eq=False, repr=False)
class WishartMechanism(StandaloneQueryMixin, Mechanism):
    """Release the direction of the mean of the rows, multiplied by ``Z Zᵀ`` with a secret random matrix Z.

    Z has ``rank`` columns of independent N(0, 1) entries, is drawn for this release and kept by nobody. In a pipeline a
    test stands in front: the mean must be long enough that neighbouring directions are close. Usually
    ``GaussianMechanism("mean")`` is better, needs no test, and its plan says so.

    Parameters
    ----------
    rank : int, optional
        Columns of Z: more of them are closer to the direction, and from some rank on less private. A pipeline needs it.
    min_cosine : float, optional
        Least cosine of the directions of neighbouring means, between 0 and 1; a pipeline needs it. The closer to 1, the
        more private, and the longer the mean must be: ``D / √(2 (1 - min_cosine))`` where it can change by D.
    query : {"direction"}, default="direction"
        "mean" and "rows" are refused with the reason.
    noise_scale : float, optional
        ``1 / √rank``: it follows; without a rank it says it.
    random_state : int, RandomState instance or None, default=None
        For tests only: whoever can predict Z is told the direction.

    Attributes
    ----------
    projected_ : ndarray of shape (n_features,)
        ``Z Zᵀ v / rank``; its mean is v.
    direction_ : ndarray of shape (n_features,)
        The same with length 1. The square of its cosine with v is ``rank / (rank + n_features - 1)`` on average.

    Notes
    -----
    **Guarantee** (``docs/theory/wishart.md``): the exact privacy profile for all cosines from ``min_cosine`` to 1,
    rounded up. It is proved for real numbers, so a certificate is CONDITIONAL on that, and says so.
    """

    rank: int | None = None
    min_cosine: float | None = None
    query: str = "direction"
    noise_scale: float | None = None
    _: KW_ONLY
    random_state: Any = None

    guard = ("MeanFloor", "min_cosine")
    in_memory = False
    _example: ClassVar = {"rank": 20, "min_cosine": 0.97}

    def assumptions(self) -> tuple[tuple[str, str], ...]:
        return (("its random matrix and all products are exact", WishartLoss.idealised),)

    def own_noise_scale(self) -> float:
        return noise_of(self._rank())

    def _rank(self) -> int:
        """As given, or as a noise scale says it."""
        if self.rank is not None:
            return integer("rank", self.rank, self)
        if self.noise_scale is None:
            what = "rank is not set."
            raise MissingBudget(what, stage="WishartMechanism", fix="rank=20, or what your budget allows.")
        return max(1, round(super().own_noise_scale() ** -2))

    def query_spec_at(self, domain: Domain, distance: Distance, mu: float | None = None) -> QuerySpec:
        question = self.query_spec(domain)
        return replace(question, warnings=(self._advice(domain.d, mu),)) if mu else question

    def query_spec(self, domain: Domain, mu: float | None = None) -> QuerySpec:
        if self.query in _REFUSED:
            what = f"query={self.query!r} is not offered: {_REFUSED[self.query]}"
            fix = "query='direction', or GaussianMechanism."
            raise UnsupportedOrder(what, stage="WishartMechanism", fix=fix, parameter="query")
        if self.query != "direction":
            what = f"query must be 'direction', got {self.query!r}."
            raise InvalidParameter(what, stage="WishartMechanism", parameter="query")
        domain.require("row_norm", "WishartMechanism")
        if domain.d < 2:
            what = "a direction needs two columns at least, and n_features = 1."
            raise InvalidParameter(what, stage="WishartMechanism", fix="GaussianMechanism('mean').")
        rank, cosine = self._rank(), self.min_cosine
        if cosine is not None:
            cosine = number("min_cosine", cosine, self, above=0, most=1 - 2.0**-40)
        scale = noise_of(rank)
        if self.noise_scale is not None and self.rank is not None and not math.isclose(self.noise_scale, scale):
            what = "noise_scale follows from rank."
            raise InvalidParameter(what, stage="WishartMechanism", fix="leave it out.", parameter="noise_scale")
        parameters = {"rank": rank, "min_cosine": cosine}
        return QuerySpec.asked("wishart.direction", "privacy", domain, parameters, given=scale)

    def _advice(self, d: int, mu: float) -> str:
        """Which is closer to the direction, this or Gaussian noise on the mean, where that is as short as it may be."""
        projected = self._rank() / (self._rank() + d - 1)
        rank = mu**2 / (2 * (1 - number("min_cosine", self.min_cosine, self, most=1 - 2.0**-40)))  # of Gaussian noise
        gaussian = (rank + 1) / (rank + d)
        better = "is the better choice" if gaussian >= projected else "is further off"
        return (
            f"the squared cosine with the direction is {projected:.3g} on average; GaussianMechanism('mean') at this"
            f" budget has about {gaussian:.3g} at the least norm, more above it, needs no such norm, and {better}."
        )

    def release(self, rows: Rows, question: QuerySpec, noise: Noise, noise_scale: float) -> dict[str, Array]:
        mean = column_sums(rows, question.bound) / rows.n
        draw = partial(_projected, mean, question.parameters["rank"])
        return {"answer": noise.answer("projection", mean, noise_scale, question.bound, draw)}

    def read(self, released: Mapping[str, Array], domain: Domain, question: QuerySpec) -> None:
        self.projected_ = released["answer"]
        self.direction_ = self.projected_ / max(float(np.linalg.norm(self.projected_)), 1e-300)


def _projected(mean: Array, rank: int, noise: Noise) -> Array:
    """``Z Zᵀ v / rank`` with a fresh Z, some columns at a time; v is the direction of the mean."""
    length = float(np.linalg.norm(mean))
    unit = mean / length if length > 0 else mean  # a mean of 0 does not pass the test
    product, step = np.zeros(unit.size), max(1, _BLOCK // unit.size)
    for start in range(0, rank, step):
        Z = noise.standard_lattice((unit.size, min(step, rank - start))) * 2.0**-37
        product += Z @ (Z.T @ unit)
    return product / rank
