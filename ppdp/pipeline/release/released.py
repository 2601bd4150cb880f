"""What a fitted pipeline released: the only fitted values that may be used again."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.certificate import Certificate
from ppdp.certificate.share.export_rules import refuse_unsafe

__all__ = ["Released"]


@dataclass(frozen=True, slots=True, eq=False)
class Released(Mapping[str, NDArray[np.float64]]):
    """Named arrays with the noise they carry, and the path on which they predict.

    Attributes
    ----------
    arrays : mapping of str to ndarray
        Read-only arrays by name, ``"<step>.<statistic>"``.
    noise_scale : mapping of str to float
        Standard deviation of the noise on each entry (per step for trained models).
    sha256 : str
        Hash of the arrays, as in the certificate.
    inference : str
        JSON: the steps and their public parameters. Together with the arrays and the certificate it is all that
        predicting needs; the certificate holds its hash as well.
    certificate : Certificate
        What is guaranteed for all of it.
    """

    arrays: Mapping[str, NDArray[np.float64]]
    noise_scale: Mapping[str, float]
    sha256: str
    inference: str
    certificate: Certificate

    def to_arrow(self, *, conditional: bool = False) -> Any:
        """The released numbers as an Arrow table with the certificate in the metadata of its schema.

        One line per number, in order: ``array``, ``position`` in it, ``value``. A histogram has further columns:
        ``column`` and the ends ``low`` and ``high`` of each cell. Released rows are a table like the one that came in,
        one line per row and one column per feature.

        Parameters
        ----------
        conditional : bool, default=False
            Whether you know that the certificate is CONDITIONAL.

        Raises
        ------
        ExportError
            If it may not leave as what it is.
        """
        from ppdp.pipeline.release.table import tabulated

        refuse_unsafe(self.certificate.record, conditional=conditional)
        return tabulated(self.certificate, self.arrays)

    def to_parquet(self, path: str | os.PathLike[str], *, conditional: bool = False) -> None:
        """Write :meth:`to_arrow` as a Parquet file, whole or not at all; :func:`ppdp.read_parquet` reads it.

        Parameters
        ----------
        path : path-like
            Where to.
        conditional : bool, default=False
            Whether you know that the certificate is CONDITIONAL.

        Raises
        ------
        ExportError
            If it may not leave as what it is, or cannot be written.
        """
        from ppdp.pipeline.release.table import write_table

        write_table(path, self.to_arrow(conditional=conditional))

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        return self.arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)

    def __repr__(self) -> str:
        shown = (f"{k}: {v.size} numbers, noise {self.noise_scale[k]:.4g}" for k, v in self.arrays.items())
        return f"Released({'; '.join(shown)})"
