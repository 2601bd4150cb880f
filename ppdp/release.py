"""What a fitted pipeline released: the only fitted values that may be used again."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.certificate import Certificate
from ppdp.certificate.rules import PRIVATE_ORIGIN
from ppdp.exceptions import ExportError

__all__ = ["Released", "refuse_unsafe"]


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
        ``column`` and the ends ``low`` and ``high`` of each cell.

        Parameters
        ----------
        conditional : bool, default=False
            Whether you know that the certificate is CONDITIONAL.

        Raises
        ------
        ExportError
            If it may not leave as what it is.
        """
        from ppdp.artefact.table import tabulated

        refuse_unsafe(self.certificate, conditional=conditional)
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
        from ppdp.artefact.table import write_table

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


def refuse_unsafe(certificate: Certificate, *, conditional: bool) -> None:
    """Refuse what must not leave, or not as what somebody may take it for.

    Parameters
    ----------
    certificate : Certificate
        Of what is to leave.
    conditional : bool
        Whether it is known to be CONDITIONAL.

    Raises
    ------
    ExportError
        If the noise was seeded, if labels were read from private data, or if the guarantee rests on something that
        nobody said to know.
    """
    if certificate.status == "SEEDED":
        raise ExportError("the noise came from a seed, so it protects nobody.", fix="fit with random_state=None.")
    if any(fact["origin"] == PRIVATE_ORIGIN for fact in certificate["facts"]):
        raise ExportError(
            "the classes were read from y, so what leaves would name private labels.", fix="declare classes=(...)."
        )
    if certificate.status == "CONDITIONAL" and not conditional:
        raise ExportError(
            f"the certificate is CONDITIONAL: {'; '.join(certificate['reasons'])}.",
            fix="gate='auto', or conditional=True if whoever receives it shall rely on that.",
        )
