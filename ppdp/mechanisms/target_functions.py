"""Public functions of targets: a model learns what they give, and predicts in the units of the targets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import exp10

from ppdp.core.checks import choice
from ppdp.core.domain import Domain
from ppdp.data.rows import Array, Rows, encode_targets
from ppdp.exceptions import InvalidParameter
from ppdp.mechanisms.base import QuerySpec
from ppdp.mechanisms.outcomes import Pair, TargetModel
from ppdp.privacy.noise.sampler import Noise

FUNCTIONS: Mapping[str, tuple[np.ufunc, np.ufunc]] = {
    "exp": (np.exp, np.log),
    "expm1": (np.expm1, np.log1p),
    "log": (np.log, np.exp),
    "log10": (np.log10, exp10),
    "log1p": (np.log1p, np.expm1),
    "log2": (np.log2, np.exp2),
    "sqrt": (np.sqrt, np.square),
    "square": (np.square, np.sqrt),
}
"""Rising functions of NumPy, by name, and what leads back."""


@dataclass(eq=False, repr=False)
class FunctionOfTargets(TargetModel):
    """Mixin for models that may learn a function of the targets by squared error; it stands before their other bases.

    Parameters
    ----------
    target_func : {"exp", "expm1", "log", "log10", "log1p", "log2", "sqrt", "square"}, optional
        Public function of NumPy of which the error is taken, as by scikit-learn's ``TransformedTargetRegressor``.
        ``y_range`` and what is predicted are in the units of the targets, coefficients in those of the function.
    """

    _: KW_ONLY
    target_func: str | None = None

    def _learned(self, y_range: Pair) -> Pair:
        if self.target_func is None:
            return y_range
        function, _ = FUNCTIONS[choice("target_func", self.target_func, list(FUNCTIONS), self)]
        with np.errstate(all="ignore"):
            low, high = map(float, function(np.asarray(y_range, dtype=np.float64)))
        if not -math.inf < low < high < math.inf or (self.target_func == "square" and y_range[0] < 0):
            what = f"{self.target_func} of y_range is no range of numbers."
            fix = "a y_range of positive numbers, or target_func='log1p' if it begins at 0."
            raise InvalidParameter(what, stage=type(self).__name__, fix=fix, parameter="y_range")
        return low, high

    def _range(self: Any, domain: Domain) -> Pair:
        y_range: Pair = super()._range(domain)  # type: ignore[misc]
        self._learned(y_range)
        return y_range

    def release(self, rows: Rows, question: QuerySpec, noise: Noise, noise_scale: float) -> dict[str, Array]:
        if self.target_func is not None:
            y_range = question.parameters["y_range"]
            rows = rows.each(partial(_mapped, self.target_func, y_range, self._learned(y_range)), rows.d)
        released: dict[str, Array] = super().release(rows, question, noise, noise_scale)  # type: ignore[misc]
        return released

    def _predicted(self, scores: Array) -> NDArray[Any]:
        if self.target_func is None:
            return super()._predicted(scores)
        inside = np.clip(scores, *self.learned_range_)
        return super()._predicted(FUNCTIONS[self.target_func][1](inside))


def _mapped(name: str, y_range: Pair, learned: Pair, rows: Rows) -> Rows:
    """Rows whose targets are those of a function, as a share of half of its range."""
    assert rows.y is not None
    low, high = y_range
    targets = np.clip(low / 2 + high / 2 + (high / 2 - low / 2) * rows.y, low, high)
    return replace(rows, y=encode_targets(FUNCTIONS[name][0](targets), learned))
