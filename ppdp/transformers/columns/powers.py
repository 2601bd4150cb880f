"""Products of columns, by public degrees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, combinations, combinations_with_replacement, groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import PolynomialFeatures

from ppdp.core.checks import integer
from ppdp.data.rows import Array
from ppdp.exceptions import InvalidParameter
from ppdp.transformers.columns.maps import MOST_COLUMNS, ColumnFacts, PublicMap, few


@dataclass(frozen=True)
class PolynomialTerms(PublicMap):
    """Products of columns, as ``PolynomialFeatures`` has them."""

    degree: Any = 2
    interaction_only: bool = False
    include_bias: bool = True
    step: str = ""

    def check(self) -> None:
        """Refuse a degree that is neither a whole number nor a pair of them."""
        given = self.degree if isinstance(self.degree, tuple) else (0, self.degree)
        ends = [integer("degree", end, self.step, least=0, most=MOST_COLUMNS) for end in given]
        if len(ends) != 2 or ends[0] > ends[1] or (ends[1] == 0 and not self.include_bias):
            raise InvalidParameter(
                f"degree={self.degree!r} leaves no products.", stage=self.step, fix="degree=2, or degree=(1, 2)."
            )

    def facts(self, given: ColumnFacts) -> ColumnFacts:
        self.check()
        made = PolynomialFeatures(self.degree, interaction_only=self.interaction_only, include_bias=self.include_bias)
        few(made.fit(np.zeros((1, len(given.names)))).n_output_features_, self.step)
        with np.errstate(all="ignore"):  # what no float holds is refused
            largest = self.apply(np.abs(given.bounded(self.step).ranges).max(axis=1)[None, :], given)[0]
        chosen = chain.from_iterable(block.tolist() for block in self._factors(given))
        names = tuple(_product_name([given.names[i] for i in factors]) for factors in chosen)
        return ColumnFacts.within(names, np.column_stack([-largest, largest]))

    def _factors(self, given: ColumnFacts) -> tuple[NDArray[np.intp], ...]:
        return _factors(self.degree, self.interaction_only, self.include_bias, len(given.names))

    def apply(self, X: Array, given: ColumnFacts) -> Array:
        products = []
        for block in self._factors(given):
            product = np.ones((len(X), len(block)))
            for column in block.T:
                product *= X[:, column]
            products.append(product)
        return np.concatenate(products, axis=1)


@cache
def _factors(degree: Any, interaction_only: bool, include_bias: bool, width: int) -> tuple[NDArray[np.intp], ...]:
    """The columns that are multiplied, for every number of factors one array of shape (products, factors)."""
    least, most = degree if isinstance(degree, tuple) else (0, degree)
    choose = combinations if interaction_only else combinations_with_replacement
    blocks = [
        np.fromiter(chain.from_iterable(choose(range(width), count)), np.intp).reshape(-1, count)
        for count in range(max(1, least), most + 1)
    ]
    return (*([np.empty((1, 0), np.intp)] if include_bias else []), *blocks)


def _product_name(factors: Sequence[str]) -> str:
    """What scikit-learn calls a product."""
    powers = ((name, len(list(same))) for name, same in groupby(factors))
    return " ".join(name if count == 1 else f"{name}^{count}" for name, count in powers) or "1"
