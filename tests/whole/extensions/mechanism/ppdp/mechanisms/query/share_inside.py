"""Share of rows in a public window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from ppdp.core.domain import Domain
from ppdp.data.histograms import weighed
from ppdp.data.rows import Array, Rows
from ppdp.mechanisms.base import Mechanism, QuerySpec
from ppdp.mechanisms.standalone import StandaloneQueryMixin
from ppdp.privacy.noise.sampler import Noise


@dataclass(eq=False, repr=False)
class ShareInside(StandaloneQueryMixin, Mechanism):
    """Release the share of rows whose values all lie between two numbers.

    Parameters
    ----------
    low : float, default=-0.5
        Where the window begins, in units of the rows at this step.
    high : float, default=0.5
        Where it ends.
    noise_scale : float, optional
        Standard deviation of the noise; a pipeline sets it.
    random_state : int, RandomState instance or None, default=None
        For tests only: noise that can be predicted protects nobody.

    Attributes
    ----------
    share_ : float
        The share.

    Notes
    -----
    **Guarantee** (``docs/theory/share-inside.md``): an L2 sensitivity of 1/n for one replaced row.
    """

    low: float = -0.5
    high: float = 0.5
    _: KW_ONLY
    noise_scale: float | None = None
    random_state: Any = None

    @classmethod
    def example(cls) -> Any:
        return cls(noise_scale=0.1)

    def query_spec(self, domain: Domain, mu: float | None = None) -> QuerySpec:
        return QuerySpec.asked("inside.share", "mechanism", domain, {})

    def release(self, rows: Rows, question: QuerySpec, noise: Noise, noise_scale: float) -> dict[str, Array]:
        def cell(X: Array) -> Any:  # 0 inside; 1, which is no cell, elsewhere
            inside = (self.low <= X) & (self.high >= X)
            return 1 - inside.all(axis=1, keepdims=True)

        exact = weighed(rows, [1], cell) / rows.n
        return {"answer": noise.release(exact, noise_scale, question.bound)}

    def read(self, released: Mapping[str, Array], domain: Domain, question: QuerySpec) -> None:
        self.share_ = float(np.clip(released["answer"][0], 0.0, 1.0))
