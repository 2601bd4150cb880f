"""What a fitted pipeline released: the only fitted values that may be used again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Released"]


@dataclass(frozen=True, slots=True, eq=False)
class Released(Mapping[str, NDArray[np.float64]]):
    """Named arrays with the noise they carry.

    Attributes
    ----------
    arrays : mapping of str to ndarray
        Read-only arrays by name, ``"<step>.<statistic>"``.
    noise_scale : mapping of str to float
        Standard deviation of the noise on each entry (per step for trained models).
    sha256 : str
        Hash of the arrays, as in the certificate.
    """

    arrays: Mapping[str, NDArray[np.float64]]
    noise_scale: Mapping[str, float]
    sha256: str

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        return self.arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)

    def __repr__(self) -> str:
        shown = (f"{k}: {v.size} numbers, noise {self.noise_scale[k]:.4g}" for k, v in self.arrays.items())
        return f"Released({'; '.join(shown)})"
