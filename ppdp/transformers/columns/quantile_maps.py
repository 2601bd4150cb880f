"""Bins, ranks and splines of columns, between released quantiles: ``docs/theory/released-quantiles.md``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.preprocessing import SplineTransformer as PlainSplines

from ppdp.core.checks import choice, flag, integer
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain, largest_entry
from ppdp.core.rounding import inflate
from ppdp.data.noisy_statistics import of_columns
from ppdp.data.quantiles import column_quantiles
from ppdp.data.rows import Array, Rows
from ppdp.data.unit_conversion import Columns
from ppdp.transformers.base import Statistics
from ppdp.transformers.fit_mode import FitMode, StatisticRequest
from ppdp.transformers.rowwise.probe import clipped_to_ball
from ppdp.transformers.scale.base import ColumnScaler, asked_for, columns_of_way

MOST_QUANTILES = 1000
WIDEST_SCORE = 3.0  # of a normal score: the tails between the outer quantiles and the public bound are straight


class _QuantileMap(ColumnScaler):
    """Base of maps of columns by their released quantiles, each row by itself.

    Attributes
    ----------
    columns_ : list of int or None
        Positions of the columns that are mapped; None are all.
    norm_, reach_ : float
        Public bounds of rows that come out, and of entries that come in.
    """

    allows_gaps = True
    chooses = False  # there is one way
    elementwise = False
    indicates = False  # whether a column becomes several of 0 and 1
    leakage = "high", "quantiles of columns, which are values of single rows"
    statistic_names = ("edges", "columns", "norm", "reach")

    columns: Any

    @property
    def _levels(self) -> list[float]:
        """Which quantiles are released, in ascending order."""
        raise NotImplementedError

    @property
    def _width(self) -> int:
        """How many columns one column becomes."""
        return 1

    @property
    def _largest(self) -> float:
        """The largest entry of what becomes of a column."""
        return 1.0

    def _of_column(self, column: Array, edges: Array, reach: float) -> Array:
        """What becomes of the observed values of one column."""
        raise NotImplementedError

    def fit_modes(self, domain: Domain, distance: Distance) -> tuple[FitMode, ...]:
        """From released quantiles; nothing moves, and a row that had moved counts as replaced."""
        norm, columns = float(domain.require("row_norm", type(self).__name__)), self._scaled_columns(domain)
        if columns == []:
            return (FitMode.by("scaling.none", domain, distance),)
        levels, count = self._levels, domain.d if columns is None else len(columns)
        beside = min(domain.entry_bound or norm, norm) if count < domain.d else 0.0
        wide = self._width > 1
        width = domain.d + count * (self._width - 1)
        own = count if wide else count * self._largest**2
        entry = max(self._largest, beside)
        longest = inflate(min(math.sqrt(own + min(norm**2, (domain.d - count) * beside**2)), entry * math.sqrt(width)))
        asked: dict[str, Any] = {"quantiles": levels, **asked_for(columns)}
        way = FitMode.by(
            "row-wise.released-quantiles",
            domain,
            distance,
            request=StatisticRequest("quantile-choices", asked),
            **asked,
            n_features=width,
            row_norm=longest,
            entry_bound=min(entry, longest),
            feature_names=self._names_out(domain.feature_names, columns),
        )
        if not wide:
            return (way,)
        places = self._places(domain.d, columns)
        known = {i for i in domain.indicators if columns is not None and i not in columns}
        hot = [
            place
            for i, own_places in enumerate(places)
            for place in own_places
            if (self.indicates and len(own_places) > 1) or i in known
        ]
        return (replace(way, domain=way.domain.with_indicators(tuple(hot))),)

    def _places(self, d: int, columns: Sequence[int] | None) -> list[list[int]]:
        """Where what becomes of each column stands."""
        widths = [self._width if columns is None or i in columns else 1 for i in range(d)]
        ends = np.cumsum(widths)
        return [list(range(end - width, end)) for end, width in zip(ends.tolist(), widths)]

    def _names_out(self, names: Sequence[str] | None, columns: Sequence[int] | None) -> list[str] | None:
        """Names of the columns that come out."""
        if names is None or self._width == 1:
            return None if names is None else list(names)
        made = [
            [name] if columns is not None and i not in columns else [f"{name}_{k}" for k in range(self._width)]
            for i, name in enumerate(names)
        ]
        found = [name for own in made for name in own]
        return found if len(set(found)) == len(found) else None

    def read(self, values: Any, way: FitMode, domain: Domain) -> Statistics:
        reach = largest_entry(domain)
        edges = np.sort(np.clip(values, -reach, reach), axis=0)
        norm = way.parameters["row_norm"]
        return {"edges": edges, "columns": columns_of_way(way), "norm": norm, "reach": reach}

    def prepare(self, rows: Rows, way: FitMode, domain: Domain) -> Statistics:
        """Of a way that maps no column."""
        norm, reach = float(domain.require("row_norm", type(self).__name__)), largest_entry(domain)
        return {"edges": np.empty((len(self._levels), 0)), "columns": [], "norm": norm, "reach": reach}

    def map_rows(self, X: Array, statistics: Statistics) -> Array:
        columns = statistics["columns"]
        if columns == []:
            return X
        mapped = list(range(X.shape[1])) if columns is None else list(columns)
        places = self._places(X.shape[1], columns)
        out = np.empty((len(X), places[-1][-1] + 1))
        edges = dict(zip(mapped, statistics["edges"].T))
        for i, own in enumerate(places):
            if i not in edges:
                out[:, own[0]] = X[:, i]
                continue
            gaps = np.isnan(X[:, i])
            made = self._of_column(np.where(gaps, 0.0, X[:, i]), edges[i], statistics["reach"])
            made[gaps] = 0.0 if len(own) > 1 else np.nan
            out[:, own] = made.reshape(len(X), len(own))
        return clipped_to_ball(X, out, statistics["norm"], fills=False)

    def units(self, columns: Columns) -> Columns:
        own = self.columns_ if self.columns_ is not None else list(range(len(columns.names)))
        return self._units(columns, own)

    def public_units(self, columns: Columns, way: FitMode, domain: Domain) -> Columns:
        own = columns_of_way(way)
        return self._units(columns, list(range(domain.d)) if own is None else own)

    def _units(self, columns: Columns, own: Sequence[int]) -> Columns:
        """No map leads back from bins and ranks."""
        parts = []
        for i, name in enumerate(columns.names):
            names = [f"{name}_{k}" for k in range(self._width)] if self._width > 1 else [name]
            parts.append(Columns.lost(names, "between released quantiles") if i in own else columns.at([i]))
        return Columns.beside(parts)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the output columns."""
        given = super().get_feature_names_out(input_features)
        if self._width == 1 or self.columns_ == []:
            return given
        names = self._names_out([str(name) for name in given], self.columns_)
        count = self._places(len(given), self.columns_)[-1][-1] + 1
        return np.asarray(names or [f"{type(self).__name__.lower()}{i}" for i in range(count)], dtype=object)

    def exact(self, rows: Rows, way: FitMode, domain: Domain) -> Array:
        return column_quantiles(of_columns(rows, columns_of_way(way)), tuple(self._levels))


@dataclass(eq=False, repr=False)
class KBinsDiscretizer(_QuantileMap):
    """Bins of columns between released quantiles, so that each holds about as many rows.

    Parameters
    ----------
    n_bins : int, default=5
        Bins of every column.
    encode : {"onehot", "ordinal"}, default="onehot"
        A column of 0 and 1 for each bin, or the number of the bin.
    columns : "all" or list of names or positions, optional
        Columns to bin; the others stay as they are. Default: all but the columns of 0 and 1 that a step in front of it
        made of categories. Outside a pipeline, that is all.

    Attributes
    ----------
    edges_ : ndarray of shape (n_bins - 1, n_binned)
        Inner edges. Private if fitted alone, released if taken from a fitted pipeline.

    Notes
    -----
    **Guarantee** (``docs/theory/released-quantiles.md``): the quantiles of all columns are chosen with noise, and with
    them it is a map of each row by itself, so nothing moves. A row that had moved counts as replaced. Missing values
    are zeros, and stay missing where bins are numbers. Quantiles are told most finely next to 0, so of skewed columns
    ``MinMaxScaler(ranges, feature_range=(0, 1))`` in front is better. Bins of public ranges, which cost nothing, are
    those of scikit-learn's ``KBinsDiscretizer(strategy="uniform")`` in :meth:`ppdp.Pipeline.from_sklearn`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0], [30.0]])
    >>> KBinsDiscretizer(n_bins=2, encode="ordinal").fit_transform(X).ravel()
    array([0., 0., 1., 1.])
    """

    n_bins: int = 5
    encode: str = "onehot"
    columns: Any = None

    indicates = True

    @property
    def _hot(self) -> bool:
        return choice("encode", self.encode, ("onehot", "ordinal"), self) == "onehot"

    @property
    def _levels(self) -> list[float]:
        bins = integer("n_bins", self.n_bins, self, least=2, most=MOST_QUANTILES)
        return [i / bins for i in range(1, bins)]

    @property
    def _width(self) -> int:
        return len(self._levels) + 1 if self._hot else 1

    @property
    def _largest(self) -> float:
        return 1.0 if self._hot else float(len(self._levels))

    def _of_column(self, column: Array, edges: Array, reach: float) -> Array:
        bins = np.searchsorted(edges, column, side="left")
        return np.asarray((bins[:, None] == np.arange(len(edges) + 1)) if self._hot else bins, dtype=np.float64)


@dataclass(eq=False, repr=False)
class QuantileTransformer(_QuantileMap):
    """Ranks of values among all, from 0 to 1, or their normal scores, by released quantiles.

    Parameters
    ----------
    n_quantiles : int, default=10
        Equal parts into which quantiles cut the rows; between two of them, and between the outer ones and the public
        bound of entries, ranks rise in a straight line.
    output_distribution : {"uniform", "normal"}, default="uniform"
        Ranks, or normal scores, which are clipped to [-3, 3].
    columns : "all" or list of names or positions, optional
        As for :class:`KBinsDiscretizer`.

    Attributes
    ----------
    edges_ : ndarray of shape (n_quantiles - 1, n_mapped)
        The quantiles. Private if fitted alone, released if taken from a fitted pipeline.

    Notes
    -----
    **Guarantee** (``docs/theory/released-quantiles.md``): that of :class:`KBinsDiscretizer`. Missing values stay
    missing.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0], [30.0]])
    >>> QuantileTransformer(n_quantiles=2).fit_transform(X).ravel().round(2)
    array([0.48, 0.5 , 0.52, 1.  ])
    """

    n_quantiles: int = 10
    output_distribution: str = "uniform"
    columns: Any = None

    @property
    def _levels(self) -> list[float]:
        parts = integer("n_quantiles", self.n_quantiles, self, least=2, most=MOST_QUANTILES)
        return [i / parts for i in range(1, parts)]

    @property
    def _normal(self) -> bool:
        return choice("output_distribution", self.output_distribution, ("uniform", "normal"), self) == "normal"

    @property
    def _largest(self) -> float:
        return WIDEST_SCORE if self._normal else 1.0

    def _of_column(self, column: Array, edges: Array, reach: float) -> Array:
        knots, levels = np.array([-reach, *edges, reach]), np.array([0.0, *self._levels, 1.0])
        # The mean of both is the middle of the levels of equal quantiles, as in scikit-learn.
        up, down = np.interp(column, knots, levels), np.interp(-column, -knots[::-1], -levels[::-1])
        ranks = np.clip((up - down) / 2, 0.0, 1.0)
        return np.clip(ndtri(ranks), -WIDEST_SCORE, WIDEST_SCORE) if self._normal else ranks


_OUTER = 0.05  # the level of the first knot: few rows of a long tail bend no curve
_APART = 1e-6  # of the bound of entries: so no two knots are the same, however close quantiles are


@dataclass(eq=False, repr=False)
class SplineTransformer(_QuantileMap):
    """Splines of columns with knots at released quantiles: smooth curves for a linear model, finer where rows are many.

    Parameters
    ----------
    n_knots : int, default=5
        Knots of every column, at quantiles of equal steps from 5 to 95 per cent, as for restricted splines (Harrell,
        "Regression Modeling Strategies"); beyond the outer ones curves are flat.
    degree : int, default=3
        Degree of the polynomials between knots.
    include_bias : bool, default=True
        Whether the last spline of a column is kept; without it those of a column do not add up to 1.
    columns : "all" or list of names or positions, optional
        As for :class:`KBinsDiscretizer`.

    Attributes
    ----------
    edges_ : ndarray of shape (n_knots, n_mapped)
        The quantiles. Private if fitted alone, released if taken from a fitted pipeline.

    Notes
    -----
    **Guarantee** (``docs/theory/released-quantiles.md``): that of :class:`KBinsDiscretizer`. Splines are never negative
    and add up to 1 at most, so those of one column have length 1 at most. A missing value is a row of zeros. Knots at
    equal steps of public ranges, which cost nothing, are those of scikit-learn's ``SplineTransformer(knots="uniform")``
    in :meth:`ppdp.Pipeline.from_sklearn`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0], [30.0]])
    >>> SplineTransformer(n_knots=3, degree=1).fit_transform(X).round(2)
    array([[1.  , 0.  , 0.  ],
           [0.  , 1.  , 0.  ],
           [0.  , 0.97, 0.03],
           [0.  , 0.  , 1.  ]])
    """

    n_knots: int = 5
    degree: int = 3
    include_bias: bool = True
    columns: Any = None

    @property
    def _levels(self) -> list[float]:
        last = integer("n_knots", self.n_knots, self, least=3, most=MOST_QUANTILES) - 1
        return [_OUTER + (1 - 2 * _OUTER) * i / last for i in range(last + 1)]

    @property
    def _width(self) -> int:
        degree = integer("degree", self.degree, self, least=1, most=10)
        return len(self._levels) + degree - 2 + bool(flag("include_bias", self.include_bias, self))

    def fitted(self, edges: Array, reach: float) -> PlainSplines:
        """Scikit-learn's, of columns with these quantiles."""
        knots = edges + _APART * reach * np.arange(len(edges))[:, None]
        made = PlainSplines(knots=knots, degree=self.degree, extrapolation="constant", include_bias=self.include_bias)
        return made.fit(knots)

    def _of_column(self, column: Array, edges: Array, reach: float) -> Array:
        return np.clip(self.fitted(edges[:, None], reach).transform(column[:, None]), 0.0, 1.0)
