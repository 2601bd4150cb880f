"""Public orthonormal columns that rows are mapped to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ppdp.core.checks import integer
from ppdp.data.parallel import threads_for
from ppdp.data.rows import Array
from ppdp.exceptions import InvalidParameter


@dataclass(frozen=True, slots=True)
class PublicColumns:
    """G, for a block of k of d directions."""

    matrix: Array  # of shape (d, number), with orthonormal columns
    drawn: bool  # at random rather than given

    @property
    def number(self) -> int:
        """How many they are."""
        return int(self.matrix.shape[1])

    @classmethod
    def of(cls, basis: Any, n_columns: Any, d: int, *, usual: int, least: int, stage: object) -> PublicColumns:
        """At least ``least`` columns: drawn from a seed (``usual`` ones unless asked otherwise), or as given."""
        asked = None if n_columns is None else integer("n_columns", n_columns, stage, least=least, most=d)
        if basis is None or isinstance(basis, (str, bytes)) or np.isscalar(basis):
            seed = integer("public_basis", basis, stage, least=0)
            wild = np.random.default_rng(seed).standard_normal((d, min(usual, d) if asked is None else asked))
            return cls(_orthonormal(wild), drawn=True)
        given = _columns(basis, d)
        if given is None or given.shape[1] < least or asked not in (None, given.shape[1]):
            raise InvalidParameter(
                f"public_basis must be a seed, or an array of {d} rows with n_columns >= {least} independent columns.",
                stage=type(stage).__name__,
                fix="public_basis=0 draws one.",
                parameter="public_basis",
            )
        return cls(_orthonormal(given), drawn=False)

    def usual_alignment(self, k: int) -> float:
        """Half of the smallest singular value of P G that is typical: the edge of the Jacobi ensemble."""
        if not self.drawn:
            return 0.5
        d = self.matrix.shape[0]
        a, b = self.number / d, k / d
        edge = math.sqrt(a * (1 - b)) - math.sqrt(b * (1 - a))
        return max(edge, 0.5 / math.sqrt(k * d)) / 2


def _columns(basis: Any, d: int) -> Array | None:
    """Independent finite columns, or None."""
    try:
        given = np.asarray(basis, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    if given.ndim != 2 or given.shape[0] != d or not 1 <= given.shape[1] <= d or not np.isfinite(given).all():
        return None
    return given if np.linalg.matrix_rank(given) == given.shape[1] else None


def _orthonormal(columns: Array) -> Array:
    """Gram and Schmidt; columns that are orthonormal already stay."""
    with threads_for(len(columns)):
        unit, triangle = np.linalg.qr(columns)
    return np.asarray(unit * np.where(np.diag(triangle) < 0, -1.0, 1.0))
