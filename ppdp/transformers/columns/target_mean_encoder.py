"""Categories as mean labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.bounds.queries import MOST_NUMBERS
from ppdp.bounds.release import MOST_CELLS, columns_per_category, label_parts
from ppdp.core.checks import columns_of, number
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain, largest_entry
from ppdp.data.histograms import cells_of, smoothed_shares, weights_by_label
from ppdp.data.rows import Array, Rows
from ppdp.data.unit_conversion import Columns
from ppdp.exceptions import InvalidParameter, MissingBound
from ppdp.transformers.base import LabelledTransformer, Statistics
from ppdp.transformers.fit_mode import FitMode, StatisticRequest


@dataclass(eq=False, repr=False)
class TargetMeanEncoder(LabelledTransformer):
    """Replace each category by the mean label of the rows that have it, released with noise.

    It stands behind ``CategoryEncoder(..., encoding="ordinal")``, whose codes it takes, and in front of a model, whose
    labels it looks at: their classes or their range must be declared. A column of categories stays one column, however
    many there are, and becomes one for each class where there are more than two.

    Parameters
    ----------
    columns : sequence of str or int, optional
        Columns that hold codes of categories, whole numbers from 0. Default: all.
    smooth : float, default=10.0
        Means are pulled towards that of all rows as if so many rows more had it, and by more where there are few rows
        beside the noise: ``(sum + m mean) / (rows + m)``, ``m = smooth (1 + 5 noise² / rows)``.

    Attributes
    ----------
    means_ : ndarray of shape (n_encoded, n_cells, n_outputs)
        By column and code; the last cell is that of anything else: other values, gaps, codes below 0. Between -1 and 1:
        the share of the second class, or of each, from 0 to 1, or where in its range the target lies. Private if fitted
        alone, released if taken from a fitted pipeline.
    positions_ : ndarray of int
        Which columns are encoded.
    unit_ : ndarray of shape (2,)
        A mean m stands for the share or target ``unit_[0] + unit_[1] m``.
    names_out_ : list of str or None
        Names of the columns that come out.

    Notes
    -----
    **Guarantee** (``docs/theory/label-means.md``): rows are counted by category and label, for all columns one release
    of sensitivity √(2 n_encoded) for one replaced row. With these numbers it is a map of each row by itself, so nothing
    moves. A row that had moved counts as replaced.

    Codes behind a bound of at most 10,000 are taken, so rows must come from an encoder and not from a scaler. All other
    columns are clipped to [-1, 1]; ``MinMaxScaler(ranges=...)`` puts them there.

    The label of a row is a part of its own feature, which costs no privacy beyond what is paid, but a model may fit to
    it. scikit-learn's ``TargetEncoder`` takes means of other folds when it fits; here the noise and ``smooth``
    limit how much one row can say, and as many releases as folds would cost more.

    Examples
    --------
    >>> import numpy as np
    >>> ward, died = np.array([[0.0], [0.0], [0.0], [1.0], [1.0], [1.0]]), [0, 0, 1, 1, 1, 1]
    >>> TargetMeanEncoder(smooth=0).fit_transform(ward, died).ravel().round(2)
    array([-0.33, -0.33, -0.33,  1.  ,  1.  ,  1.  ])
    """

    columns: Any = None
    smooth: float = 10.0

    allows_gaps = True
    bounds_rows = True
    leakage = "high", "mean labels of categories, also of one with a single row"
    statistic_names = ("means", "positions", "unit")

    def fit_modes(self, domain: Domain, distance: Distance) -> tuple[FitMode, ...]:
        """From a release; it moves nothing, and a row that had moved counts as replaced."""
        columns, name = self._positions(domain), type(self).__name__
        number("smooth", self.smooth, self, least=0.0, most=1e9, fix="smooth=10.0.")
        if domain.classes is None and domain.y_range is None:
            fix = "classes=(...) or y_range=(low, high) as a parameter of the model."
            raise MissingBound("neither the classes nor the range of the labels is declared.", stage=name, fix=fix)
        if label_parts(domain) < 2:
            raise InvalidParameter("labels of one class have one mean.", stage=name, fix="declare all classes.")
        domain.require("row_norm", name)
        cells = math.floor(min(largest_entry(domain), MOST_CELLS)) + 2
        if cells > MOST_CELLS or len(columns) * cells * label_parts(domain) > MOST_NUMBERS:
            fix = "CategoryEncoder(..., encoding='ordinal') in front, which counts them from 0, or fewer of them."
            raise InvalidParameter("there are more categories than can be released.", stage=name, fix=fix)
        asked: dict[str, Any] = {"columns": columns, "cells": cells}
        names = self._names_out(domain.feature_names, columns, domain)
        request = StatisticRequest("label-means", asked)
        return (FitMode.by("row-wise.label-means", domain, distance, request=request, **asked, feature_names=names),)

    def _positions(self, domain: Domain) -> list[int]:
        """The columns that hold categories."""
        if self.columns is None:
            return list(range(domain.d))
        found = columns_of("columns", self.columns, domain.feature_names, domain.d, self)
        if len(set(found)) < len(found):
            raise InvalidParameter("columns names a column twice.", stage=type(self).__name__, fix="name it once.")
        return found

    def _names_out(self, names: Sequence[str] | None, columns: Sequence[int], domain: Domain) -> list[str] | None:
        """Names of the columns that come out, if there are any and they differ."""
        if names is None:
            return None
        several = columns_per_category(domain) > 1
        classes = [str(one) for one in domain.classes or ()]
        parts = (
            [f"{name}_{one}" for one in classes] if several and i in columns else [name] for i, name in enumerate(names)
        )
        found = [name for part in parts for name in part]
        return found if len(set(found)) == len(found) else None

    def read(self, values: Any, way: FitMode, domain: Domain) -> Statistics:
        table, noise = values
        shares = smoothed_shares(table, noise, float(self.smooth))
        low, high = (0.0, 1.0) if domain.classes is not None else domain.require("y_range")
        return {
            "means": 2 * (shares if columns_per_category(domain) > 1 else shares[:, :, 1:]) - 1,
            "positions": np.array(way.parameters["columns"], dtype=np.intp),
            "unit": np.array([low / 2 + high / 2, high / 2 - low / 2]),
            "names_out": way.parameters["feature_names"],
        }

    def map_rows(self, X: Array, statistics: Statistics) -> Array:
        means, positions = statistics["means"], statistics["positions"]
        width = np.ones(X.shape[1], dtype=np.intp)
        width[positions] = means.shape[2]
        start = np.cumsum(width) - width
        out = np.empty((len(X), width.sum()))
        others = np.setdiff1d(np.arange(X.shape[1]), positions)
        out[:, start[others]] = np.clip(X[:, others], -1.0, 1.0)
        cells = cells_of(X, positions, means.shape[1])
        for own, position, cell in zip(means, positions, cells.T):
            out[:, start[position] : start[position] + means.shape[2]] = own[cell]
        return out

    def units(self, columns: Columns) -> Columns:
        outputs, parts = self.means_.shape[2], []
        for i, name in enumerate(columns.names):
            if i in self.positions_:
                note = f"mean label of the category of {name}"
                one = Columns.raw([name] * outputs, note).scaled(self.unit_[1], self.unit_[0])
            else:
                one = columns.at([i]).clipped(-1.0, 1.0)
            parts.append(one)
        return Columns.beside(parts)

    def public_units(self, columns: Columns, way: FitMode, domain: Domain) -> Columns:
        """Of encoded columns nothing is known before their mean labels are released."""
        encoded, outputs = way.parameters["columns"], columns_per_category(domain)
        parts = [
            Columns.lost([name] * outputs, "mean labels") if i in encoded else columns.at([i]).clipped(-1.0, 1.0)
            for i, name in enumerate(columns.names)
        ]
        return Columns.beside(parts)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the output columns."""
        given = super().get_feature_names_out(input_features)
        outputs = self.means_.shape[2]
        if outputs == 1:
            return given
        if self.names_out_ is not None:
            return np.asarray(self.names_out_, dtype=object)
        parts = [
            [f"{name}_{k}" for k in range(outputs)] if i in self.positions_ else [name] for i, name in enumerate(given)
        ]
        return np.asarray([name for part in parts for name in part], dtype=object)

    def exact(self, rows: Rows, way: FitMode, domain: Domain) -> Any:
        asked = way.request.parameters if way.request else {}
        shape = len(way.parameters["columns"]), way.parameters["cells"], label_parts(domain)
        return weights_by_label(rows, domain, **asked).reshape(shape), 0.0
