"""Released rows as sketches: what they tell, which are nearest, and files that carry their certificate."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ppdp.certificate import Certificate
from ppdp.certificate.issuance import content_hash
from ppdp.core.checks import integer, positive
from ppdp.core.figures import html_table
from ppdp.data.rows import Array
from ppdp.exceptions import DomainMismatch, ExportError, InvalidParameter, InvalidValue, MissingBound
from ppdp.mechanisms.query.signs import ANGLE
from ppdp.pipeline.release import neighbours
from ppdp.pipeline.release.estimates import (
    Estimate,
    Lengths,
    SketchForm,
    Spread,
    agreement_angle,
    arc,
    cosine_of,
    flipped_angle,
    root,
)
from ppdp.pipeline.release.parquet import CertifiedFile, WithParquet, described, malformed, unpacked

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False, repr=False)
class SketchTable(WithParquet):
    """Released rows, one sketch for each, with their certificate.

    ``pipe.release_.table`` gives it where the last step releases rows: numbers with noise, or signs that were flipped
    at random. Queries are sketches without noise, as ``pipe.project`` makes them of new rows.

    Attributes
    ----------
    certificate : Certificate
        What is guaranteed.

    Notes
    -----
    Estimates (``docs/theory/sketches.md``) are of the rows in front of the :class:`~ppdp.transformers.RandomProjection`
    if that is the last stage, else of the rows as they were released; under ``flips="angle"`` of the rows with
    ``norm_floor`` appended. Their standard errors cover noise, flips and the draw of the matrix. Everything is computed
    from what was released, so nothing here costs any privacy.
    """

    certificate: Certificate
    _form: SketchForm
    _held: NDArray[Any]
    _others: Mapping[str, Array]

    @classmethod
    def of(cls, certificate: Certificate, arrays: Mapping[str, Array]) -> SketchTable:
        """The table of released arrays, of which one holds rows.

        :class:`ExportError` if none does.
        """
        form = SketchForm.of(certificate.record)
        held: NDArray[Any] = arrays[form.name].reshape(form.rows, form.size)
        if form.noise is None:
            held = neighbours.pack(held > 0)
            held.setflags(write=False)
        return cls(certificate, form, held, {name: array for name, array in arrays.items() if name != form.name})

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows, and of numbers or signs of each."""
        return self._form.rows, self._form.size

    @property
    def values(self) -> Array:
        """Noisy numbers, shape (n_rows, size)."""
        if self._form.noise is None:
            raise AttributeError("these sketches are signs and have no values.")
        return self._held

    @property
    def packed(self) -> Bytes:
        """Signs as bits, shape (n_rows, ceil(size / 8)): 1 for +1, the first sign in the lowest bit of a byte."""
        if self._form.noise is not None:
            raise AttributeError("these sketches are numbers and have no signs.")
        return self._held

    @property
    def signs(self) -> NDArray[np.int8]:
        """Signs as 1 and -1, shape (n_rows, size)."""
        return 2 * np.unpackbits(self.packed, axis=1, count=self._form.size, bitorder="little").astype(np.int8) - 1

    @property
    def noise_variance(self) -> float | None:
        """Variance of the noise on every number; None for signs."""
        noise = self._form.noise
        return None if noise is None else noise.variance

    def inner_product(self, queries: ArrayLike, *, rows: ArrayLike | None = None) -> Estimate:
        """Inner products of queries and rows, without bias, with their errors; signs hold no lengths and are refused.

        Parameters
        ----------
        queries : array-like of shape (n_queries, size)
            Sketches without noise.
        rows : array-like of int, optional
            Positions of the rows to compare with; all of them by default.
        """
        return self._lengths(queries, rows).inner_product()

    def distance(self, queries: ArrayLike, *, rows: ArrayLike | None = None, squared: bool = False) -> Estimate:
        """Euclidean distances of queries and rows; takes, gives and raises what :meth:`inner_product` does.

        With ``squared`` their squares, which are without bias and may be negative.
        """
        estimate = self._lengths(queries, rows).squared_distance()
        return estimate if squared else root(estimate)

    def cosine(self, queries: ArrayLike, *, rows: ArrayLike | None = None, norm: float | None = None) -> Estimate:
        """Cosines of the angles between queries and rows; takes, gives and raises what :meth:`angle` does."""
        if self._form.noise is not None:
            return self._lengths(queries, rows).cosine()
        return cosine_of(self.angle(queries, rows=rows, norm=norm))

    def angle(self, queries: ArrayLike, *, rows: ArrayLike | None = None, norm: float | None = None) -> Estimate:
        """Angles between queries and rows, with their errors; signs tell them only of rows that were projected.

        Of signs that flip with one probability they are without bias, so they may leave [0, π]. A handful of signs
        tells nearly nothing: of one sign the error is at least 1.5.

        Parameters
        ----------
        queries : array-like of shape (n_queries, size)
            Sketches without noise.
        rows : array-like of int, optional
            Positions of the rows to compare with.
        norm : float, optional
            The norm of the rows in front of the projection, which must be public; needed where the flips of signs
            depend on values.
        """
        form = self._form
        if form.flips is None:
            return arc(self._lengths(queries, rows).cosine())
        if form.flips.flips == ANGLE:
            differing = neighbours.distances(self._bits(queries), self._chosen(rows))
            return agreement_angle(differing, form.size, float(form.flips.flip_probability(1.0)))
        if form.matrix is None:
            what = "signs tell angles only of rows that were projected at random."
            raise InvalidParameter(what, fix="RandomProjection(...) in front of SignMechanism.")
        used = form.matrix.norms.largest > 0  # a component of no column is a fair coin
        size, mask = int(used.sum()), neighbours.pack(used[None])
        differing = neighbours.distances(self._bits(queries) & mask, self._chosen(rows) & mask)
        if form.flips.flips == "randomized-response":
            return agreement_angle(differing, size, float(form.flips.flip_probability(1.0)))
        if norm is None:
            what = "these flips depend on values, so that angles follow only for rows of a known norm."
            fix = "norm=..., their norm in front of the projection; or SignMechanism('randomized-response')."
            raise MissingBound(what, fix=fix)
        scale = positive("norm", norm) / np.sqrt(form.size)
        return flipped_angle(differing, size, form.flips.flip_probability, scale)

    def kneighbors(self, queries: ArrayLike, n_neighbors: int = 10) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The nearest rows of every query: signs by Hamming distance, numbers by inner product.

        Rows that are equally near come in the order of the table. Where ``faiss`` is installed (``pip install
        'ppdp[search]'``) it searches, with the same results.

        Parameters
        ----------
        queries : array-like of shape (n_queries, size)
            Sketches without noise.
        n_neighbors : int, default=10
            How many.

        Returns
        -------
        distances : ndarray of shape (n_queries, n_neighbors)
            Of signs how many differ, smallest first; of numbers inner products, largest first.
        indices : ndarray of shape (n_queries, n_neighbors)
            Positions of the rows.
        """
        count = integer("n_neighbors", n_neighbors, self, most=len(self._held))
        if self._form.noise is None:
            return neighbours.smallest_distances(self._bits(queries), self._held, count)
        return neighbours.largest_products(self._sketches(queries), self._held, count)

    def _columns(self) -> Any:
        import pyarrow as pa

        form = self._form
        type_ = form.schema.field(0).type
        if form.noise is None:
            column = pa.Array.from_buffers(type_, form.rows, [None, pa.py_buffer(self._held.tobytes())])
        else:
            column = pa.FixedSizeListArray.from_arrays(pa.array(self._held.ravel(), pa.float64()), type=type_)
        schema = form.schema.with_metadata(described(self.certificate, self._others))
        return pa.table([column], schema)

    @classmethod
    def from_parquet(cls, path: str | os.PathLike[str]) -> SketchTable:
        """A table and its certificate, both checked before anything is made of them.

        Parameters
        ----------
        path : path-like
            What :meth:`to_parquet` wrote.

        Raises
        ------
        CertificateError
            If what stands for its certificate is none, or does not verify.
        ExportError
            If the file cannot be read, was written by something else, or holds other sketches than were certified.
        """
        return cls.read(CertifiedFile.opened(path, "write it with SketchTable.to_parquet."))

    @classmethod
    def read(cls, file: CertifiedFile) -> SketchTable:
        """The table of a file whose certificate holds; raises what :meth:`from_parquet` does."""
        form, shapes = SketchForm.of(file.record), file.record.released.names
        table = file.read(form.schema, form.rows, 9 * form.size, "SketchTable.to_parquet")
        with malformed("the table is malformed."):
            others = unpacked(file.others, {name: list(shape) for name, shape in shapes.items() if name != form.name})
            arrays = {form.name: form.numbers(table.column(0)).reshape(shapes[form.name]), **others}
            same = content_hash(arrays) == file.record.released.sha256
        if not same:
            raise ExportError("the sketches are not those that the certificate was issued for.")
        for array in arrays.values():
            array.setflags(write=False)
        return cls.of(file.certificate, arrays)

    def __len__(self) -> int:
        return len(self._held)

    def __repr__(self) -> str:
        c = self.certificate
        unit = c.record.neighbours
        only = "" if unit.row_level else f" (protects {unit.unit}, and nothing else in it)"
        claim = f"({c.epsilon:g}, {c.delta:g})-private{only}"
        return f"SketchTable({self._form.words}, {claim}, certificate {c.digest[:19]})"

    def _repr_html_(self) -> str:
        form, c = self._form, self.certificate
        if form.noise is None:
            noise = f"flips: {form.flips.flips}" if form.flips is not None else ""
        else:
            noise = f"standard deviation {form.noise.variance**0.5:.4g} on every number"
        claim = ("Guarantee", f"{c.status}, epsilon {c.epsilon:g}, delta {c.delta:g}")
        lines = [claim, ("Protects", c.record.neighbours.words), ("Noise", noise), ("Certificate", c.digest)]
        return html_table(f"SketchTable: {form.words}", ["", ""], lines)

    def _chosen(self, rows: ArrayLike | None) -> NDArray[Any]:
        if rows is None:
            return self._held
        places = np.asarray(rows)
        if places.ndim != 1 or places.dtype.kind not in "iu" or not ((places >= 0) & (places < len(self))).all():
            raise InvalidParameter(f"rows must be positions from 0 to {len(self) - 1}.", stage="SketchTable")
        return self._held[places]

    def _sketches(self, queries: ArrayLike) -> Array:
        """Finite numbers of the right shape."""
        size = self._form.size
        try:
            sketches = np.ascontiguousarray(queries, dtype=np.float64)
        except (TypeError, ValueError):
            sketches = np.empty(0)
        if sketches.ndim != 2 or sketches.shape[1] != size or len(sketches) == 0:
            what = f"queries must be sketches of {size} numbers, one in each row."
            raise DomainMismatch(what, stage="SketchTable", fix="pipe.project(...) makes them of new rows.")
        if not np.isfinite(sketches).all():
            raise InvalidValue("queries hold NaN or infinity.", stage="SketchTable")
        return sketches

    def _bits(self, queries: ArrayLike) -> Bytes:
        return neighbours.pack(self._sketches(queries) >= 0)

    def _lengths(self, queries: ArrayLike, rows: ArrayLike | None) -> Lengths:
        form = self._form
        if form.noise is None:
            what = "signs hold no lengths."
            raise InvalidParameter(what, stage="SketchTable", fix="angle or cosine; or release numbers.")
        spread = Spread() if form.matrix is None else Spread.of(form.matrix, form.entry)
        return Lengths.of(self._chosen(rows), self._sketches(queries), form.noise, spread)
