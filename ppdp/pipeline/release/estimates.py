"""What sketches tell of the rows they were made of: ``docs/theory/sketches.md``.

Sketches of queries are clean, those of rows carry noise. All arrays of results have shape (n_queries, n_rows).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from ppdp.bounds.projection import Matrix
from ppdp.certificate.record import Record
from ppdp.core.domain import Domain, largest_entry
from ppdp.core.formula import AT
from ppdp.data.rows import Array
from ppdp.exceptions import ExportError
from ppdp.mechanisms import SignMechanism

_ANGLES, _POINTS, _FAR = 2001, 4000, 8.0


class Estimate(NamedTuple):
    """Estimates and their standard errors, both of shape (n_queries, n_rows)."""

    value: Array
    standard_error: Array


@dataclass(frozen=True, slots=True)
class NoiseMoments:
    """Symmetric noise on every number: its variance, and the variance of its square."""

    variance: float
    of_squares: float


@dataclass(frozen=True, slots=True)
class Spread:
    """What a random projection adds to the variance of an inner product (Lemma S)."""

    # 1/k for independent components, for "oporp" the chance that two columns meet in one; 0 if nothing was projected.
    share: float = 0.0
    excess: float = 0.0  # by how much the kurtosis of the entries is above 3; 0 if it is not
    peak: float = math.inf  # public bound on the square of an entry of a row

    @classmethod
    def of(cls, matrix: Matrix, entry: float) -> Spread:
        """That of a matrix that was drawn, for rows with entries of at most ``entry``."""
        d, k, share = matrix.n_features, matrix.n_components, 1 / matrix.n_components
        if matrix.family == "oporp" and matrix.bins != "variable":
            size, more = divmod(d, k)
            share = size * (2 * more + k * (size - 1)) / max(d * (d - 1), 1)
            if matrix.bins == "fixed":
                places = -(-d // k)
                share = (places - 1) / max(places * k - 1, 1)
        kurtosis = (matrix.s or math.sqrt(d)) if matrix.family == "sparse" else 3.0
        return cls(share, max(kurtosis - 3, 0.0), entry * entry)


@dataclass(frozen=True, slots=True)
class Lengths:
    """Inner products of sketches and what is needed to estimate those of the rows (Theorem E1)."""

    products: Array  # of the sketches, shape (n_queries, n_rows)
    rows: Array  # estimated squared norms of rows, which may be negative
    queries: Array  # those of queries
    size: int  # numbers in a sketch
    noise: NoiseMoments
    spread: Spread

    @classmethod
    def of(cls, rows: Array, queries: Array, noise: NoiseMoments, spread: Spread) -> Lengths:
        """Of sketches."""
        size = rows.shape[1]
        squares = np.einsum("ij,ij->i", rows, rows) - size * noise.variance
        return cls(queries @ rows.T, squares, np.einsum("ij,ij->i", queries, queries)[:, None], size, noise, spread)

    def inner_product(self) -> Estimate:
        """Unbiased."""
        norms = np.maximum(self.rows, 0.0)
        spread = norms * self.queries + self.products**2
        spread += self.spread.excess * self.queries * np.minimum(norms, self.spread.peak)
        return Estimate(self.products, np.sqrt(self.noise.variance * self.queries + self.spread.share * spread))

    def squared_distance(self) -> Estimate:
        """Unbiased, so it may be negative."""
        value = self.rows + self.queries - 2 * self.products
        norms = np.maximum(value, math.sqrt(self.size * self.noise.of_squares))  # less would be told from noise alone
        spread = 2 * norms**2 + self.spread.excess * norms * np.minimum(norms, 4 * self.spread.peak)
        noise = 4 * self.noise.variance * norms + self.size * self.noise.of_squares
        return Estimate(value, np.sqrt(noise + self.spread.share * spread))

    def cosine(self) -> Estimate:
        """Within [-1, 1]; 0 with an infinite error where noise leaves nothing of a length."""
        norms = np.maximum(self.rows, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.clip(np.nan_to_num(self.products / np.sqrt(norms * self.queries), nan=0.0), -1.0, 1.0)
            noise = value**2 * self.size * self.noise.of_squares / (4 * norms**2)
            # Near ±1 an estimate may be further in than the cosine is: by the error that noise of lengths leaves there.
            apart = np.minimum(np.maximum(1 - np.abs(value), np.sqrt(noise)), 1.0)
            square = np.minimum(np.maximum(1 - value**2, 2 * np.sqrt(noise)), 1.0)
            tails = 2 * apart * np.minimum(apart, self.spread.peak * (1 / norms + 1 / self.queries))
            spread = square**2 + self.spread.excess * tails
            noise += square * self.noise.variance / norms
        known = (norms > 0) & (self.queries > 0)
        error = np.sqrt(np.where(known, noise + self.spread.share * spread, math.inf))
        return Estimate(np.where(known, value, 0.0), error)


def root(squares: Estimate) -> Estimate:
    """Of estimates of squares: 1.96 errors are how far two errors of the square lead, at 0 as elsewhere."""
    value, reach = np.maximum(squares.value, 0.0), 2 * squares.standard_error
    middle, low, high = (np.sqrt(np.maximum(end, 0.0)) for end in (value, value - reach, value + reach))
    return Estimate(middle, np.maximum(middle - low, high - middle) / 1.96)


def arc(cosine: Estimate) -> Estimate:
    """Angles of estimated cosines; an error of a cosine of more than 2 is none."""
    value, error = np.arccos(cosine.value), np.minimum(cosine.standard_error, 2.0)
    return Estimate(value, error / np.maximum(np.maximum(np.sin(value), np.sqrt(error / 2)), 1e-150))


def cosine_of(angle: Estimate) -> Estimate:
    """Cosines of estimated angles, which may lie beyond [0, π]: |cos a - cos b| is at most sin b |a - b| + |a - b|²/2.

    1.96 errors reach as far as 1.96 errors of the angle do where the sine is 0, and where it is large.
    """
    value, error = np.clip(angle.value, 0.0, math.pi), angle.standard_error
    return Estimate(np.cos(value), np.minimum(np.hypot(np.sin(value) * error, error**2), 2.0))


def _share_error(distances: NDArray[Any], size: int, least: float, most: float) -> Array:
    """Standard error of the share of signs that differ, whose expectation is from ``least`` to ``most``.

    Of a share of which two more differ and two more agree (Agresti and Coull 1998): that of 0 of k is not 0.
    """
    share = np.clip((np.asarray(distances, dtype=np.float64) + 2) / (size + 4), least, most)
    return np.asarray(np.sqrt(share * (1 - share) / size))


def agreement_angle(distances: NDArray[Any], size: int, flip: float) -> Estimate:
    """Angles from Hamming distances of ``size`` signs, those of rows flipped with probability ``flip`` (Theorem E2).

    Unbiased for a Gaussian matrix, so it may leave [0, π].
    """
    kept = 1 - 2 * flip
    agreement = 1 - 2 * np.asarray(distances, dtype=np.float64) / size
    value = math.pi / 2 * (1 - agreement / kept)
    return Estimate(value, math.pi * _share_error(distances, size, flip, 1 - flip) / kept)


def flipped_angle(distances: NDArray[Any], size: int, flips: Callable[[Array], Array], scale: float) -> Estimate:
    """The same where flips depend on values, which have standard deviation ``scale`` (Theorem E3).

    ``flips`` gives the probability of a flip for any value. Agreement falls with the angle, so angles are looked up;
    their errors are as far as a standard error of the agreement leads.
    """
    angles: Array = np.linspace(0.0, math.pi, _ANGLES)
    z = ((np.arange(_POINTS) + 0.5) * (_FAR / _POINTS)).astype(np.float64)
    weight = np.exp(-(z**2) / 2)
    kept = (1 - 2 * flips(scale * z)) * weight / weight.sum()
    expected = (2 * ndtr(np.tan(math.pi / 2 - angles)[:, None] * z) - 1) @ kept

    def angle(agreement: Array) -> Array:
        return np.interp(agreement, expected[::-1], angles[::-1])

    agreement = np.clip(1 - 2 * np.asarray(distances, dtype=np.float64) / size, expected[-1], expected[0])
    value = angle(agreement)
    off = 2 * _share_error(distances, size, (1 - expected[0]) / 2, (1 - expected[-1]) / 2)
    return Estimate(value, np.maximum(angle(agreement - off) - value, value - angle(agreement + off)))


_NOISES = {"query.rows": (1.0, 2.0), "laplace.rows": (2.0, 5.0)}
"""Variance of noise of scale 1, and the variance of its square for noise of variance 1."""
_SIGNS = "signs."


@dataclass(frozen=True, slots=True)
class SketchForm:
    """What a certificate says of released rows."""

    name: str  # of their array
    rows: int  # how many
    size: int  # of how many numbers or signs
    noise: NoiseMoments | None  # on every number; None for signs
    flips: SignMechanism | None  # what flipped signs
    matrix: Matrix | None  # that by which rows were projected last
    entry: float  # bound on the entries of rows in front of it

    @classmethod
    def of(cls, record: Record) -> SketchForm:
        """That of released rows; :class:`ExportError` if none were released."""
        last = record.mechanism
        formula = "" if last is None else last.formula
        if last is None or not (formula in _NOISES or formula.startswith(_SIGNS)):
            fix = "GaussianMechanism('rows'), LaplaceMechanism('rows') or SignMechanism() as the last step."
            raise ExportError("no rows were released, so there is no table of sketches.", fix=fix)
        domains = list(map(Domain.from_dict, record.domains))
        noise = flips = matrix = None
        front = domains[-1]
        if formula in _NOISES:
            variance, of_squares = _NOISES[formula]
            variance *= last.noise_scale**2
            noise = NoiseMoments(variance, of_squares * variance**2)
        else:
            flips = SignMechanism(formula.removeprefix(_SIGNS), last.noise_scale, **last.parameters)
        behind = record.steps[-1].formula if record.steps else ""
        if behind.startswith("projection.") and AT not in behind:
            matrix, front = Matrix(n_features=domains[-2].d, **record.steps[-1].parameters), domains[-2]
        here, own = domains[-1], last.parameters.get("n_signs")
        size = here.d if own is None else own
        return cls(f"{last.name}.answer", here.n, size, noise, flips, None if own else matrix, largest_entry(front))

    @property
    def words(self) -> str:
        """What a table of them is."""
        return f"{self.rows} sketches of {self.size} {'signs' if self.noise is None else 'numbers'}"

    @property
    def schema(self) -> Any:
        """Name and type of the one column of a table."""
        import pyarrow as pa

        if self.noise is None:
            return pa.schema([("signs", pa.binary(-(-self.size // 8)))])
        return pa.schema([("values", pa.list_(pa.field("element", pa.float64()), self.size))])

    def numbers(self, column: Any) -> Array:
        """Such a column as the numbers that were released; :class:`ValueError` if it is none."""
        parts = [np.empty((0, self.size))]
        for chunk in column.chunks:
            chunk.validate(full=True)
            if chunk.null_count:
                raise ValueError("null")
            parts.append(
                self._signs(chunk) if self.noise is None else chunk.flatten().to_numpy().reshape(-1, self.size)
            )
        return np.concatenate(parts)

    def _signs(self, chunk: Any) -> Array:
        packed = np.frombuffer(chunk.buffers()[1], dtype=np.uint8).reshape(-1, -(-self.size // 8))
        packed = packed[chunk.offset : chunk.offset + len(chunk)]
        bits = np.unpackbits(packed, axis=1, count=self.size, bitorder="little")
        if not np.array_equal(np.packbits(bits, axis=1, bitorder="little"), packed):
            raise ValueError("bits behind the last sign")
        return 2 * bits.astype(np.float64) - 1
