"""Public columns to which PCA maps: a matrix with orthonormal columns that no private row has shaped."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.core.checks import integer
from ppdp.data.parallel import threads_for
from ppdp.exceptions import InvalidParameter

__all__ = ["PublicColumns"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PublicColumns:
    """G, for a block of k of d directions.

    Attributes
    ----------
    matrix : ndarray of shape (d, number)
        Orthonormal columns.
    drawn : bool
        Whether they were drawn at random rather than given.
    """

    matrix: Array
    drawn: bool

    @property
    def number(self) -> int:
        """How many they are."""
        return int(self.matrix.shape[1])

    @classmethod
    def of(cls, basis: Any, n_columns: Any, d: int, *, usual: int, least: int, stage: object) -> PublicColumns:
        """From the seed of a random matrix, or from given columns.

        Parameters
        ----------
        basis : int or array of shape (d, number)
            Seed or columns.
        n_columns : int or None
            How many; None is ``usual``, or as many as are given.
        d : int
            Number of columns of the input.
        usual, least : int
            How many are drawn unless asked otherwise, and how many there must be.
        stage : object
            The estimator, for errors.

        Raises
        ------
        InvalidParameter
            If they are impossible.
        """
        asked = None if n_columns is None else integer("n_columns", n_columns, stage, least=least, most=d)
        if basis is None or isinstance(basis, (str, bytes)) or np.isscalar(basis):
            seed = integer("basis", basis, stage, least=0)
            wild = np.random.default_rng(seed).standard_normal((d, min(usual, d) if asked is None else asked))
            return cls(_orthonormal(wild), drawn=True)
        given = _columns(basis, d)
        if given is None or given.shape[1] < least or asked not in (None, given.shape[1]):
            raise InvalidParameter(
                f"basis must be a seed, or an array of {d} rows with n_columns >= {least} independent finite columns.",
                stage=type(stage).__name__,
                fix="basis=0 draws one.",
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
