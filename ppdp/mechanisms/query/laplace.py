"""The Laplace mechanism on cleaned rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ppdp.data.intervals import Law
from ppdp.data.rows import Array, Rows
from ppdp.mechanisms.base import Mechanism, Question
from ppdp.mechanisms.query.answers import Query
from ppdp.privacy.noise.laplace import laplace_release
from ppdp.privacy.noise.sampler import Noise


@dataclass(eq=False, repr=False)
class LaplaceMechanism(Query, Mechanism):
    """Release a statistic of the rows with Laplace noise: private without any delta.

    Counts get noise of whole numbers and nothing is rounded. Alone it suits few numbers and small epsilon; many numbers
    at some delta are better released by :class:`GaussianMechanism`.

    Parameters
    ----------
    query : {"mean", "sum", "count", "histogram", "rows"}, default="mean"
        What is released, as by :class:`GaussianMechanism`. Counts are whole numbers.
    noise_scale : float, optional
        Scale b of the noise on each released number, whose density is ``~ exp(-|z| / b)``; a pipeline sets it.

    Notes
    -----
    **Guarantee** (``docs/theory/laplace.md``): ``epsilon = shift / noise_scale``, delta 0. For one replaced row the L1
    shift is 2B/n (mean), 2B (sum; B = √d R, or d b for entries up to b if that is less), 1 (count), 2c (histograms of
    c columns), 2B (rows); for one changed row what its entries change together. n is the public number of rows, d that
    of columns, R the public bound on the norm of a row.
    """

    _kind = "privacy"
    _formulas: ClassVar = {name: f"laplace.{name}" for name in ("mean", "sum", "count", "histogram", "rows")}
    _share = 1.0

    @property
    def _whole(self) -> bool:
        return self.query in ("count", "histogram")

    @property
    def deviation(self) -> float:
        scale = self.own_noise_scale()
        if not self._whole:
            return math.sqrt(2) * scale
        return math.sqrt(2 * math.exp(-1 / scale)) / -math.expm1(-1 / scale)

    @property
    def law(self) -> Law:
        return "whole" if self._whole else "laplace"

    def release(self, rows: Rows, question: Question, noise: Noise, noise_scale: float) -> dict[str, Array]:
        answer = self.answer(rows, question)
        return {"answer": laplace_release(noise, answer, noise_scale, question.bound, whole=self._whole)}

    def answer(self, rows: Rows, question: Question) -> Array:
        """What is asked, exactly; counts of weight are rounded to whole numbers."""
        exact = super().answer(rows, question)
        return np.floor(exact + 0.5) if self._whole else exact
