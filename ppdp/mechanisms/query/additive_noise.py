"""Statistics of rows with Gaussian or Laplace noise: exact answers, and what is read from noisy ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ppdp.bounds.queries import MOMENT_COUNT_WEIGHT, by_column
from ppdp.core.checks import choice
from ppdp.core.domain import Domain
from ppdp.data.histograms import histograms, present
from ppdp.data.intake import validated
from ppdp.data.intervals import Law
from ppdp.data.rows import Array, Rows
from ppdp.data.summary import Extent, column_sums, second_moment
from ppdp.data.units import Answers, Columns
from ppdp.mechanisms.base import Mechanism, Question, SharedDocstring
from ppdp.mechanisms.query.raw_units import grid_in_units, public_grid, statistic_answers
from ppdp.privacy.noise.laplace import laplace_release
from ppdp.privacy.noise.sampler import Noise


class StandaloneQueryMixin:
    """``fit`` of a mechanism without labels, outside a pipeline."""

    def fit(self, X: Any, y: Any = None) -> Any:
        """Release the noisy answer; the domain is read off ``X``, so nothing is certified.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : ignored
            Present by convention.
        """
        mechanism: Any = self
        scale = mechanism.own_noise_scale()
        X = validated(mechanism, X, dtype=np.float64)
        domain = Extent.of(X).domain.but(min_present=X.shape[0])
        question = mechanism.question(domain)
        released = mechanism.release(Rows.of(X), question, Noise(mechanism.random_state), scale)
        mechanism.read(released, domain, question)
        return self


@dataclass(eq=False, repr=False)
class Query(SharedDocstring, StandaloneQueryMixin):
    """Mixin for mechanisms that release a statistic of the rows, every number of it with noise.

    Parameters
    ----------
    bins : int, sequence of float, or mapping of columns to either, default=10
        Public grid of a histogram: so many equal cells of the public range of a column, or ascending edges; of a column
        of codes of categories (``CategoryEncoder(..., encoding="ordinal")``) a number is a cell for every category. A
        mapping, by name or position, chooses columns; one that became columns of 0 and 1 stands for these. The outer
        cells take what lies beyond the grid. In a pipeline
        edges are raw, in the units of the table that comes in, dates as dates, wherever steps in front are public
        scales and shifts of each column; elsewhere in the units of the last step. Inner edges outside the public range
        are refused.
    random_state : int, RandomState instance or None, default=None
        For tests only: noise that can be predicted protects nobody.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Noisy mean of the rows that are present. Attributes are in the units of the rows at this step;
        ``release_.to_pandas()`` of a pipeline has raw units.
    present_ : float
        Noisy share of the rows that are present, with the mean; 1.0 where none can be deleted.
    sum_ : ndarray of shape (n_features,)
        Noisy sum of the rows.
    count_ : float
        Noisy weight of the rows that are present.
    histogram_, edges_ : list of ndarray
        Noisy rows in each cell, and the grid, for each column.
    rows_ : ndarray of shape (n_rows, n_features)
        Noisy rows in their places, a deleted one as noise alone; not clipped, so that averages have no bias.
    """

    query: str = "mean"
    noise_scale: float | None = None
    _: KW_ONLY
    bins: Any = 10
    random_state: Any = None

    _kind: ClassVar[Literal["mechanism", "privacy"]]
    _formulas: ClassVar[dict[str, str]]
    _share: ClassVar[float]  # how much larger a bound is than a mean, for the share of rows beside it

    def question(self, domain: Domain, mu: float | None = None) -> Question:
        formula = self._formulas[choice("query", self.query, list(self._formulas), self)]
        parameters: dict[str, Any] = {}
        if self.query == "histogram":
            parameters = public_grid("bins", self.bins, domain, self, edges=True)
        elif self.query != "count":
            domain.require("row_norm", type(self).__name__)
        if self.query in ("mean", "covariance"):
            parameters = {"weighted": domain.min_present < domain.n}
        return Question.asked(formula, self._kind, domain, parameters)

    @property
    def writes_units(self) -> bool:
        """Whether it has a grid."""
        return bool(self.query == "histogram")

    def in_units(self, columns: Columns) -> Any:
        made: Any = clone(self)
        return made.set_params(bins=grid_in_units("bins", self.bins, columns, self, edges=True))

    @property
    def in_memory(self) -> bool:
        """Whether every row is released by itself."""
        return bool(self.query == "rows")

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
            return column_sums(rows, bound / rows.n)
        return mean(rows, bound / self._share, bound) if parameters["weighted"] else mean(rows, bound)

    @property
    def noisy_answer(self) -> Array:
        """The sums that were released, of which the fitted attributes are made."""
        return self._noisy

    def read(self, released: Mapping[str, Array], domain: Domain, question: Question) -> None:
        answer, parameters = released["answer"], question.parameters
        self._noisy = answer
        if self.query == "count":
            self.count_ = float(np.clip(answer[0], 0.0, domain.n))
        elif self.query == "histogram":
            self.histogram_, self.edges_ = read_histograms(answer, domain, **parameters)
        elif self.query == "rows":
            self.rows_ = answer.reshape(domain.n, domain.d)
        elif self.query == "sum":
            self.sum_ = within_ball(answer, domain.n * float(domain.require("row_norm")))
        else:
            count_weight = question.bound if parameters["weighted"] else None
            self.mean_, self.present_ = read_mean(answer, domain, count_weight)

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise on every number."""
        raise NotImplementedError

    @property
    def tells_errors(self) -> bool:
        """Whether how far noise moves its numbers follows from public ones, but for those of single rows."""
        return bool(self.query != "rows")

    @property
    def law(self) -> Law:
        """Of the noise."""
        return "gaussian"

    def answers(self, columns: Columns, domain: Domain, question: Question) -> list[Answers]:
        return statistic_answers(self, columns, domain, question)


def mean(rows: Rows, bound: float, count_weight: float | None = None) -> Array:
    """Sum of the rows over their public number, and perhaps ``count_weight`` times the share of rows present."""
    answer = column_sums(rows, bound) / rows.n
    return answer if count_weight is None else np.append(answer, count_weight * present(rows) / rows.n)


def mean_and_moment(rows: Rows, norm: float, *, weighted: bool) -> Array:
    """Mean, upper triangle of the second moment over √2 R, isometric to the matrix, and perhaps the share present."""
    upper, stretch = _triangle(rows.d)
    moment = second_moment(rows, norm)[upper] / rows.n
    parts = [mean(rows, norm), moment * stretch / (math.sqrt(2) * norm)]
    return np.concatenate([*parts, *([MOMENT_COUNT_WEIGHT * norm * present(rows) / rows.n] if weighted else [])])


def read_mean(answer: Array, domain: Domain, count_weight: float | None) -> tuple[Array, float]:
    """Mean of the rows that are present, in the ball that holds all rows, and the share of them."""
    share, total = 1.0, answer
    if count_weight is not None:
        share, total = _share(answer[-1] / count_weight, domain), answer[:-1]
    return within_ball(total / share, float(domain.require("row_norm"))), share


def read_moments(answer: Array, domain: Domain, *, weighted: bool) -> tuple[Array, Array, float]:
    """Mean, covariance and share of the rows that are present; the nearest that rows could have."""
    d, norm, share = domain.d, float(domain.require("row_norm")), 1.0
    if weighted:
        share, answer = _share(answer[-1] / (MOMENT_COUNT_WEIGHT * norm), domain), answer[:-1]
    centre = within_ball(answer[:d] / share, norm)
    upper, stretch = _triangle(d)
    moment = np.zeros((d, d))
    moment[upper] = answer[d:] / stretch * math.sqrt(2) * norm / share
    covariance = moment + np.triu(moment, 1).T - np.outer(centre, centre)
    values, vectors = np.linalg.eigh(covariance)
    return centre, (vectors * np.clip(values, 0.0, norm**2)) @ vectors.T, share


def read_histograms(
    answer: Array, domain: Domain, columns: Sequence[int], sizes: Sequence[int], edges: Sequence[float]
) -> tuple[list[Array], list[Array]]:
    """Counts, none negative and none above the number of rows, and edges; one array of each for every column."""
    cells = np.split(np.clip(answer, 0.0, domain.n), np.cumsum(np.array(sizes) - 1)[:-1])
    return cells, [np.array(marks) for marks in by_column(sizes, edges)]


def within_ball(vector: Array, radius: float) -> Array:
    """The nearest vector of norm at most ``radius``."""
    return np.asarray(vector * min(1.0, radius / max(float(np.linalg.norm(vector)), radius)))


def _share(noisy: float, domain: Domain) -> float:
    """At least one row's worth, so that nothing is divided by zero."""
    return float(np.clip(noisy, 1 / domain.n, 1.0))


def _triangle(d: int) -> tuple[tuple[NDArray[np.intp], ...], Array]:
    """Positions of the upper triangle, and the factors that give it the Frobenius norm of the matrix."""
    upper = np.triu_indices(d)
    return upper, np.where(upper[0] == upper[1], 1.0, math.sqrt(2))


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


@dataclass(eq=False, repr=False)
class LaplaceMechanism(Query, Mechanism):
    """Release a statistic of the rows with Laplace noise: private without any delta.

    Counts get noise of whole numbers and nothing is rounded. Alone it suits few numbers and small epsilon; many numbers
    at some delta are better released by :class:`GaussianMechanism`.

    Parameters
    ----------
    query : {"mean", "sum", "count", "histogram", "rows"}, default="mean"
        What is released, as by :class:`GaussianMechanism`. Counts are whole numbers.
    noise_scale : float, optional
        Scale b of the noise on each released number, whose density is ``~ exp(-|z| / b)``; a pipeline sets it.

    Notes
    -----
    **Guarantee** (``docs/theory/laplace.md``): ``epsilon = shift / noise_scale``, delta 0. For one replaced row the L1
    shift is 2B/n (mean), 2B (sum; B = √d R, or d b for entries up to b if that is less), 1 (count), 2c (histograms of
    c columns), 2B (rows); for one changed row what its entries change together. n is the public number of rows, d that
    of columns, R the public bound on the norm of a row.
    """

    _kind = "privacy"
    _formulas: ClassVar = {name: f"laplace.{name}" for name in ("mean", "sum", "count", "histogram", "rows")}
    _share = 1.0

    @property
    def _whole(self) -> bool:
        return self.query in ("count", "histogram")

    @property
    def deviation(self) -> float:
        scale = self.own_noise_scale()
        if not self._whole:
            return math.sqrt(2) * scale
        return math.sqrt(2 * math.exp(-1 / scale)) / -math.expm1(-1 / scale)

    @property
    def law(self) -> Law:
        return "whole" if self._whole else "laplace"

    def release(self, rows: Rows, question: Question, noise: Noise, noise_scale: float) -> dict[str, Array]:
        answer = self.answer(rows, question)
        return {"answer": laplace_release(noise, answer, noise_scale, question.bound, whole=self._whole)}

    def answer(self, rows: Rows, question: Question) -> Array:
        """What is asked, exactly; counts of weight are rounded to whole numbers."""
        exact = super().answer(rows, question)
        return np.floor(exact + 0.5) if self._whole else exact
