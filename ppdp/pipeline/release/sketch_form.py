"""What a certificate says of released rows: how many, of what, with which noise, by which projection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ppdp.bounds.projection import Matrix
from ppdp.certificate.record import Record
from ppdp.core.domain import Domain, largest_entry
from ppdp.data.rows import Array
from ppdp.exceptions import ExportError
from ppdp.mechanisms import SignMechanism
from ppdp.pipeline.release.estimates import Noise

_NOISES = {"query.rows": (1.0, 2.0), "laplace.rows": (2.0, 5.0)}
"""Variance of noise of scale 1, and the variance of its square for noise of variance 1."""
_SIGNS = "signs."


@dataclass(frozen=True, slots=True)
class SketchForm:
    """What a certificate says of released rows."""

    name: str  # of their array
    rows: int  # how many
    size: int  # of how many numbers or signs
    noise: Noise | None  # on every number; None for signs
    flips: SignMechanism | None  # what flipped signs
    matrix: Matrix | None  # that by which rows were projected last
    entry: float  # bound on the entries of rows in front of it

    @classmethod
    def of(cls, record: Record) -> SketchForm:
        """That of released rows; :class:`ExportError` if none were released."""
        last = record.mechanism
        formula = "" if last is None else last.formula
        if last is None or not (formula in _NOISES or formula.startswith(_SIGNS)):
            raise ExportError(
                "no rows were released, so there is no table of sketches.",
                fix="GaussianMechanism('rows'), LaplaceMechanism('rows') or SignMechanism() as the last step.",
            )
        domains = [Domain.from_dict(one) for one in (record.entrance.domain, *(step.domain for step in record.steps))]
        noise = flips = matrix = None
        front = domains[-1]
        if formula in _NOISES:
            variance, of_squares = _NOISES[formula]
            variance *= last.noise_scale**2
            noise = Noise(variance, of_squares * variance**2)
        else:
            flips = SignMechanism(formula.removeprefix(_SIGNS), last.noise_scale, **last.parameters)
        if record.steps and record.steps[-1].formula.startswith("projection."):
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
