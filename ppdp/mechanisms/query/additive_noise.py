"""Statistics of rows with Gaussian or Laplace noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import clone

from ppdp.core.checks import choice
from ppdp.core.domain import Domain
from ppdp.data.rows import Array, Rows
from ppdp.data.unit_conversion import Answers, Columns, Law
from ppdp.exceptions import InvalidParameter
from ppdp.mechanisms.base import Mechanism, QuerySpec, SharedDocstring
from ppdp.mechanisms.query.public_grids import grid_in_units
from ppdp.mechanisms.query.statistics import QUERIES
from ppdp.mechanisms.standalone import StandaloneQueryMixin
from ppdp.privacy.noise.laplace import laplace_release
from ppdp.privacy.noise.sampler import Noise

_QUANTILES = 'ExponentialMechanism(), or Report(["quantile"]).'
_DEVIATIONS = 'Report(["mean"]), which releases standard deviations as well.'
_SEVERAL = 'one of them, or Report(["mean", "quantile", "histogram", "covariance"]), which releases several.'
_ELSEWHERE = {
    **dict.fromkeys(("median", "quantile", "quantiles"), _QUANTILES),
    **dict.fromkeys(("std", "var", "variance"), _DEVIATIONS),
    **dict.fromkeys(("list", "tuple"), _SEVERAL),
}
"""What answers another question, by its usual name, or several, by the type that holds them."""


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

    def query_spec(self, domain: Domain, mu: float | None = None) -> QuerySpec:
        asked = self.query if isinstance(self.query, str) else type(self.query).__name__
        if (meant := _ELSEWHERE.get(asked)) is not None:
            what = f"{asked!r} is no query with noise on every number."
            raise InvalidParameter(what, stage=type(self).__name__, fix=meant, parameter="query")
        formula = self._formulas[choice("query", self.query, list(self._formulas), self)]
        question = QuerySpec.asked(formula, self._kind, domain, QUERIES[self.query].parameters(self, domain))
        if question.gaussian or self.query == "rows":
            return question
        return replace(question, drowning=math.sqrt(2 * question.size) / question.bound)

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

    def answer(self, rows: Rows, question: QuerySpec) -> Array:
        """What is asked, exactly."""
        return QUERIES[self.query].exact(rows, question, self._share)

    @property
    def noisy_answer(self) -> Array:
        """The sums that were released, of which the fitted attributes are made."""
        return self._noisy

    def read(self, released: Mapping[str, Array], domain: Domain, question: QuerySpec) -> None:
        self._noisy = released["answer"]
        QUERIES[self.query].read(self, self._noisy, domain, question)

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

    def answers(self, columns: Columns, domain: Domain, question: QuerySpec) -> list[Answers]:
        return QUERIES[self.query].answers(self, columns, domain, question)

    def share_left(self, domain: Domain, question: QuerySpec) -> tuple[float, float] | None:
        return QUERIES[self.query].share_left(self, domain, question)


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

    def release(self, rows: Rows, question: QuerySpec, noise: Noise, noise_scale: float) -> dict[str, Array]:
        return {"answer": noise.release(self.answer(rows, question), noise_scale, question.bound)}


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

    def release(self, rows: Rows, question: QuerySpec, noise: Noise, noise_scale: float) -> dict[str, Array]:
        answer = self.answer(rows, question)
        return {"answer": laplace_release(noise, answer, noise_scale, question.bound, whole=self._whole)}

    def answer(self, rows: Rows, question: QuerySpec) -> Array:
        """What is asked, exactly; counts of weight are rounded to whole numbers."""
        exact = super().answer(rows, question)
        return np.floor(exact + 0.5) if self._whole else exact
