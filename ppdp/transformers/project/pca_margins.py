"""Margins of the two conditions of PCA: ``docs/theory/pca.md``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ppdp.bounds.pca import map_error, moment_error
from ppdp.core.domain import Domain, largest_entry
from ppdp.core.rounding import inflate
from ppdp.data.rows import Array, Rows
from ppdp.data.statistics import top_eigenvectors
from ppdp.data.summary import column_sums, second_moment


@dataclass(frozen=True, slots=True)
class Spectrum:
    """Eigenvalues in descending order, the leading eigenvectors as rows, and the mean if it was subtracted."""

    values: Array
    components: Array
    mean: Array | None

    @property
    def gap(self) -> float:
        """Between the eigenvalue of the last of these eigenvectors and the next one; 0 if there is none."""
        values = self.values[len(self.components) - 1 : len(self.components) + 1]
        return float(values[0] - values[-1])

    @classmethod
    def of(cls, mean: Array, matrix: Array, k: int, *, center: bool) -> Spectrum:
        """From the mean and second moment of the rows."""
        values, components = top_eigenvectors(matrix - np.outer(mean, mean) if center else matrix, k)
        return cls(values, components, mean if center else None)

    @classmethod
    def of_rows(cls, rows: Rows, domain: Domain, k: int, *, center: bool, coarse: bool = False) -> Spectrum:
        """From the rows, over their public number; ``coarse`` where the formula allows for it."""
        norm = float(domain.require("row_norm"))
        mean = column_sums(rows, norm) / rows.n if center else np.zeros(rows.d)
        matrix = second_moment(rows, largest_entry(domain), coarse=coarse) / rows.n
        return cls.of(mean, matrix, k, center=center)


@dataclass(frozen=True, slots=True)
class GapMargin:
    """Margin of "the eigengap after the k-th eigenvalue is at least ``gap``"."""

    domain: Domain
    k: int
    gap: float
    center: bool
    coarse: bool = False

    def __call__(self, rows: Rows, unit: float) -> float:
        """Measure."""
        found = Spectrum.of_rows(rows, self.domain, self.k, center=self.center, coarse=self.coarse)
        error = moment_error(self.domain, center=self.center)
        room = found.gap - self.gap - 2 * error
        return room / (unit + 4 * error) if room > 0 else 0.0


@dataclass(frozen=True, slots=True)
class AlignmentMargin:
    """Margin of "the singular values of ``P G`` are at least ``least``", where the condition on the gap holds."""

    eigengap: GapMargin
    least: float
    basis: Array

    def __call__(self, rows: Rows, unit: float) -> float:
        """Measure."""
        domain, k, gap, center = self.eigengap.domain, self.eigengap.k, self.eigengap.gap, self.eigengap.center
        components = Spectrum.of_rows(rows, domain, k, center=center).components
        cosine = float(np.linalg.svd(components @ self.basis, compute_uv=False)[k - 1])
        error = moment_error(domain, center=center)
        slack = gap * map_error(domain.d, 1.0)  # of the computed cosine
        room = (gap - 2 * error) * (cosine - self.least) - slack
        return room / (inflate(unit + 2 * error) + 2 * slack) if room > 0 else 0.0
