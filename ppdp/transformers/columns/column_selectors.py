"""The columns that labels explain most, and those that vary, by released moments."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ppdp.bounds.k_means import LIGHT, square_weight
from ppdp.bounds.queries import MOST_NUMBERS
from ppdp.bounds.release import label_parts
from ppdp.core.checks import integer, number
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain, largest_entry
from ppdp.data.label_moments import ROUNDED, LabelMoments, measured
from ppdp.data.rows import Array, Rows
from ppdp.data.statistics import Moments
from ppdp.data.summary import joint_sums
from ppdp.data.unit_conversion import Columns
from ppdp.exceptions import InvalidParameter, MissingBound
from ppdp.transformers.base import LabelledTransformer, Statistics, Transformer
from ppdp.transformers.fit_mode import FitMode, StatisticRequest


class _Supported:
    """What tells which columns stay."""

    support_: NDArray[np.bool_]

    def get_support(self, indices: bool = False) -> NDArray[Any]:
        """Which columns stay: a mask, or with ``indices`` their positions."""
        return np.flatnonzero(self.support_) if indices else self.support_.copy()


class Selector(_Supported, LabelledTransformer):
    """Base of stages that keep a public number of columns: a subclass says how many."""

    leakage = "high", "which columns were chosen: one row can tip the choice"
    statistic_names = ("support", "scores")

    def count(self, d: int) -> int:
        """How many of so many columns are kept."""
        raise NotImplementedError

    def fit_modes(self, domain: Domain, distance: Distance) -> tuple[FitMode, ...]:
        """From a release; rows keep some of their columns as they are."""
        name = type(self).__name__
        self._norm_of_complete_rows(domain)
        k = self.count(domain.d)
        if domain.classes is None and domain.y_range is None:
            fix = "classes=(...) or y_range=(low, high) as a parameter of the model."
            raise MissingBound("neither the classes nor the range of the labels is declared.", stage=name, fix=fix)
        if label_parts(domain) < 2 or label_parts(domain) * (1 + domain.d) + domain.d > MOST_NUMBERS:
            what = "labels of one class explain nothing, and of very many columns no sums can be released."
            fix = "declare all classes; of very many columns a few by public knowledge."
            raise InvalidParameter(what, stage=name, fix=fix)
        if k == domain.d:
            return (FitMode.by("row-wise.identity", domain, distance),)
        request = StatisticRequest("label-moments")
        if not distance.unmatched[0] and not distance.moved:  # squares are not free beside rows that come or go
            light = {"weight": min(LIGHT, square_weight(domain))}
            request = StatisticRequest("light-label-moments", light)
        return (FitMode.by("row-wise.chosen-columns", domain, distance, request=request, k=k),)

    def exact(self, rows: Rows, way: FitMode, domain: Domain) -> LabelMoments:
        return LabelMoments.of(measured(rows, domain), domain)

    def read(self, values: Any, way: FitMode, domain: Domain) -> Statistics:
        scores = values.explained_by_target() if domain.classes is None else values.explained_by_class()
        support = np.zeros(domain.d, dtype=bool)
        support[np.argsort(-scores, kind="stable")[: self.count(domain.d)]] = True
        return {"support": support, "scores": scores}

    def prepare(self, rows: Rows, way: FitMode, domain: Domain) -> Statistics:
        return {"support": np.ones(domain.d, dtype=bool), "scores": np.full(domain.d, np.nan)}

    def map_rows(self, X: Array, statistics: Statistics) -> Array:
        return X[:, statistics["support"]]

    def units(self, columns: Columns) -> Columns:
        return columns.at(np.flatnonzero(self.support_).tolist())

    def public_units(self, columns: Columns, way: FitMode, domain: Domain) -> Columns:
        """Nobody knows which columns they are before these are chosen."""
        if way.name == "public":
            return columns
        return Columns.lost([f"selected{i}" for i in range(self.count(domain.d))], "chosen by a release")

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns that are kept."""
        return np.asarray(super().get_feature_names_out(input_features)[self.support_])


@dataclass(eq=False, repr=False)
class SelectKBest(Selector):
    """Keep the columns that labels explain most, by released sums of every class.

    It stands in front of a model, whose labels it looks at: their classes or their range must be declared.

    Parameters
    ----------
    k : int, default=10
        How many columns are kept; all of them where there are no more.

    Attributes
    ----------
    support_ : ndarray of bool of shape (n_features,)
        Which columns are kept: private if fitted alone, released if taken from a fitted pipeline.
    scores_ : ndarray of shape (n_features,)
        By which they were compared: the share of a column's variance that lies between classes, or the squared
        covariance with the targets over the variance, which order columns as scikit-learn's F does.

    Notes
    -----
    **Guarantee** (``docs/theory/column-choice.md``): numbers of rows, sums and squares are one release of sensitivity
    2N/n for one replaced row of norm N at most, as sums alone would be. The choice is made of released numbers, so it
    costs nothing more and moves nothing. As rows grow in number it goes to scikit-learn's.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.9], [0.0, -1.0], [1.0, -0.8]]), [0, 0, 1, 1]
    >>> SelectKBest(1).fit_transform(X, y).ravel()
    array([ 1. ,  0.9, -1. , -0.8])
    """

    k: int = 10

    _example: ClassVar = {"k": 2}

    def count(self, d: int) -> int:
        return min(integer("k", self.k, self), d)


@dataclass(eq=False, repr=False)
class SelectPercentile(Selector):
    """Keep a share of the columns: those that labels explain most, by released sums of every class.

    Parameters
    ----------
    percentile : float, default=10
        How many of a hundred columns are kept, rounded down, at least one.

    Attributes
    ----------
    support_, scores_ : ndarray of shape (n_features,)
        As for :class:`SelectKBest`.

    Notes
    -----
    **Guarantee**: that of :class:`SelectKBest` (``docs/theory/column-choice.md``).

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.9], [0.0, -1.0], [1.0, -0.8]]), [0, 0, 1, 1]
    >>> SelectPercentile(50).fit(X, y).get_support()
    array([False,  True])
    """

    percentile: float = 10

    _example: ClassVar = {"percentile": 70}

    def count(self, d: int) -> int:
        return max(1, int(d * number("percentile", self.percentile, self, above=0, most=100) / 100))


@dataclass(eq=False, repr=False)
class VarianceThreshold(_Supported, Transformer):
    """Set columns that hardly vary to 0, by released means and mean squares.

    scikit-learn's class leaves such columns out. How many there are follows from the rows, and the width of a table is
    public before any row is read, so here they stay in their places, as zeros: a model learns nothing from them.

    Parameters
    ----------
    threshold : float, default=0.0
        Columns stay whose variance is above it, in units of the rows that come in: behind ``MinMaxScaler`` of the
        scaled ones, where evenly spread values have a third of the square of half the range. Noise may hide a variance
        that is smaller than its error, which a plan's forecast tells.

    Attributes
    ----------
    support_ : ndarray of bool of shape (n_features,)
        Which columns stay: private if fitted alone, released if taken from a fitted pipeline.
    variances_ : ndarray of shape (n_features,)
        By which this was chosen, likewise.

    Notes
    -----
    **Guarantee** (``docs/theory/column-choice.md``): the choice is made of released numbers, so it costs nothing more
    than these and moves nothing. A ``StandardScaler`` behind it is fitted from the same release.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 2.0], [0.1, -2.0], [0.0, 2.0], [0.1, -2.0]])
    >>> VarianceThreshold(0.5).fit_transform(X)[0], VarianceThreshold(0.5).fit(X).get_support()
    (array([0., 2.]), array([False,  True]))
    """

    threshold: float = 0.0

    chooses = False  # there is one way
    elementwise = True
    leakage = Selector.leakage
    statistic_names = ("support", "variances")
    _example: ClassVar = {"threshold": 0.05}

    def fit_modes(self, domain: Domain, distance: Distance) -> tuple[FitMode, ...]:
        """From a release of means and mean squares, which stages behind it may share."""
        self._norm_of_complete_rows(domain)
        most = largest_entry(domain) ** 2
        if number("threshold", self.threshold, self, least=0) >= most:
            what = (
                f"threshold={self.threshold:g}: no column varies so much, as entries are within ±{math.sqrt(most):g}."
            )
            fix = "a threshold in the units of the rows that come in here, which ranges have scaled."
            raise InvalidParameter(what, stage=type(self).__name__, fix=fix, parameter="threshold")
        return (FitMode.by("row-wise.zeroed-columns", domain, distance, request=StatisticRequest("squares")),)

    def exact(self, rows: Rows, way: FitMode, domain: Domain) -> Moments:
        entry = largest_entry(domain)
        return Moments(*joint_sums(rows, [(None, entry), (np.square, entry**2)]) / domain.n)

    def read(self, values: Moments, way: FitMode, domain: Domain) -> Statistics:
        variances = values.squares - values.mean**2 if values.spread is None else values.spread**2
        variances = np.where(variances > ROUNDED * values.squares, variances, 0.0)
        return {"support": variances > self.threshold, "variances": variances}

    def carry(self, values: Moments, statistics: Statistics) -> Moments:
        return values.affine(statistics["support"].astype(float), np.zeros(len(values.mean)))

    def map_rows(self, X: Array, statistics: Statistics) -> Array:
        return np.where(statistics["support"], X, 0.0)

    def units(self, columns: Columns) -> Columns:
        return columns.lost_at(np.flatnonzero(~self.support_).tolist(), "0, since it hardly varies")
