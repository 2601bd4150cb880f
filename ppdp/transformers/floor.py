"""Floors: what mechanisms assume of the rows that multiply them with secret random numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from ppdp.bounds.sketch import least_norm, norm_error
from ppdp.core.checks import number
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.rows import Rows
from ppdp.data.summary import column_sums
from ppdp.data.unit_conversion import Columns
from ppdp.transformers.base import Stage, Statistics
from ppdp.transformers.fit_mode import FitMode
from ppdp.transformers.impute.regression_imputer import eigenvalue_margin


class DataAssumption(Stage):
    """Leave the rows as they are, and assume something of them: a mechanism names it as its ``guard``."""

    keeps_units = True

    def apply(self, rows: Rows, statistics: Statistics) -> Rows:
        return rows

    def units(self, columns: Columns) -> Columns:
        return columns


@dataclass(eq=False, repr=False)
class MeanFloor(DataAssumption):
    """Leave the rows as they are, and assume that their mean is long.

    Directions of long means of neighbouring datasets are close. A :class:`~ppdp.mechanisms.WishartMechanism` brings its
    own, directly in front of it.
    """

    min_cosine: float  # least cosine of the directions of neighbouring means, in (0, 1); the norm follows from it

    relief = "GaussianMechanism('mean'), which needs no floor, in place of the mechanism behind it, or a smaller cosine"

    def fit_modes(self, domain: Domain, distance: Distance) -> tuple[FitMode, ...]:
        """One way, which assumes the norm."""
        self._norm_of_complete_rows(domain)
        cosine = number("min_cosine", self.min_cosine, self, above=0, most=1 - 2.0**-40)
        least = least_norm(domain, distance.moving(None), cosine)
        measure = {"wishart.norm": partial(_norm_margin, domain, least)}
        return (FitMode.by("wishart.floor", domain, distance, measures=measure, min_cosine=cosine, min_norm=least),)


def _norm_margin(domain: Domain, least: float, rows: Rows, unit: float) -> float:
    """Margin of "the mean of the rows has a norm of at least ``least``"."""
    mean = column_sums(rows, float(domain.require("row_norm"))) / rows.n
    error = norm_error(domain)
    room = float(np.linalg.norm(mean)) - error - least
    return room / (unit + 2 * error) if room > 0 else 0.0


@dataclass(eq=False, repr=False)
class EigenvalueFloor(DataAssumption):
    """Leave the rows as they are, and assume that their second moment has no small eigenvalue.

    A :class:`~ppdp.mechanisms.GaussianSketch` with ``min_eigenvalue`` brings its own, directly in front of it.
    """

    min_eigenvalue: float  # over the squared norm of rows; at most ``1 / n_features``

    relief = "GaussianSketch without min_eigenvalue"

    def fit_modes(self, domain: Domain, distance: Distance) -> tuple[FitMode, ...]:
        """One way, which assumes the eigenvalue."""
        self._norm_of_complete_rows(domain)
        norm = float(domain.require("row_norm"))
        share = number("min_eigenvalue", self.min_eigenvalue, self, least=1e-6, most=1 / domain.d)
        measure = {"regression.eigenvalue": partial(eigenvalue_margin, share * norm**2, norm)}
        return (FitMode.by("sketch.floor", domain, distance, measures=measure, share=share),)
