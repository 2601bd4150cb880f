"""Features of columns: approximate kernels by public draws, products by public degrees, splines by public knots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import chain, combinations, combinations_with_replacement, groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import PolynomialFeatures, SplineTransformer

from ppdp.core.checks import choice, integer, number
from ppdp.data.exact_matmul import product
from ppdp.data.rows import Array
from ppdp.exceptions import InvalidParameter
from ppdp.transformers.columns.maps import MOST_COLUMNS, ColumnFacts, PublicMap, few

MOST_ENTRIES = 2**24  # of a matrix that is drawn: parameters that anybody may have written fill no memory
_LEAST_EIGENVALUE = 1e-12  # of the kernel of landmarks, as in scikit-learn


def _gamma(value: float | None, width: int, step: str) -> float:
    """Width of a kernel; None is 1 over the number of columns."""
    return 1.0 / width if value is None else number("gamma", value, step, above=0, most=1e100)


def _components(value: int, width: int, step: str) -> int:
    """How many features come out of so many columns."""
    components = integer("n_components", value, step, least=1, most=MOST_COLUMNS)
    few(components, step)
    if components * max(components, width) > MOST_ENTRIES:
        what = f"n_components={components} needs more memory than {MOST_ENTRIES} numbers."
        raise InvalidParameter(what, stage=step, fix="fewer.")
    return components


def _complete(X: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Rows with zeros for gaps, and which rows had some."""
    gaps = np.isnan(X)
    return np.where(gaps, 0.0, X), np.asarray(gaps.any(axis=1, keepdims=True))


@dataclass(frozen=True)
class FourierFeatures(PublicMap):
    """Waves of random directions with products near ``exp(-gamma |x - y|^2)``; a row with a gap is all gaps."""

    gamma: float | None = None
    n_components: int = 100
    seed: int = 0
    step: str = ""
    bounds = True
    sized = True

    def facts(self, given: ColumnFacts) -> ColumnFacts:
        width = len(given.names)
        components = _components(self.n_components, width, self.step)
        _gamma(self.gamma, width, self.step)
        integer("seed", self.seed, self.step, least=0, most=2**32 - 1)
        size = math.sqrt(2 / components)
        box = ColumnFacts.within(_names("rbfsampler", components), np.tile([-size, size], (components, 1)))
        return replace(box, square=2.0)

    def apply(self, X: Array, given: ColumnFacts) -> Array:
        directions, offset = self.waves(X.shape[1])
        complete, gaps = _complete(X)
        waves = np.cos(product(complete, directions) + offset)
        return np.where(gaps, np.nan, math.sqrt(2 / self.n_components) * waves)

    def waves(self, width: int) -> tuple[Array, Array]:
        """Directions of shape (n_components, n_features), and offsets."""
        return _waves(_gamma(self.gamma, width, self.step), self.n_components, self.seed, width)


@lru_cache(maxsize=4)
def _waves(gamma: float, components: int, seed: int, width: int) -> tuple[Array, Array]:
    """Directions of shape (n_components, n_features) and offsets, drawn as scikit-learn draws them."""
    draws = np.random.RandomState(seed)
    directions = math.sqrt(2 * gamma) * draws.normal(size=(width, components))
    return np.ascontiguousarray(directions.T), draws.uniform(0, 2 * np.pi, size=components)


@dataclass(frozen=True)
class Landmarks(PublicMap):
    """Similarity to public landmarks, turned so that products are those of a kernel, as ``Nystroem`` has them.

    Landmarks are drawn in the public ranges of the columns, or as standard normal rows for columns that are scaled to
    variance 1. A row with a gap is all gaps.
    """

    kernel: str = "rbf"
    gamma: float | None = None
    degree: float = 3
    coef0: float = 1
    n_components: int = 100
    seed: int = 0
    normal: bool = False
    step: str = ""
    bounds = True
    sized = True

    def facts(self, given: ColumnFacts) -> ColumnFacts:
        components = _components(self.n_components, len(given.names), self.step)
        choice("kernel", self.kernel, ("rbf", "poly"), self.step)
        integer("seed", self.seed, self.step, least=0)
        integer("degree", self.degree, self.step, least=1, most=100)
        number("coef0", self.coef0, self.step, least=0, most=1e100)
        gamma = _gamma(self.gamma, len(given.names), self.step)
        # A feature vector is no longer than the row's own in the kernel's space: k(x, x) is its squared length there.
        largest = 1.0
        if self.kernel == "poly":
            with np.errstate(over="ignore"):  # what no float holds is refused
                own = (np.abs(given.bounded(self.step).ranges).max(axis=1) ** 2).sum()
                largest = float((gamma * own + self.coef0) ** self.degree)
        size = math.sqrt(largest)
        box = ColumnFacts.within(_names("nystroem", components), np.tile([-size, size], (components, 1)))
        return replace(box, square=largest)

    def apply(self, X: Array, given: ColumnFacts) -> Array:
        rows = self.landmarks(given)
        complete, gaps = _complete(X)
        turned = product(self.similarity(complete, rows), self.turn(rows))
        return np.where(gaps, np.nan, turned)

    def landmarks(self, given: ColumnFacts) -> Array:
        """Public rows, of shape (n_components, n_features)."""
        draws, shape = np.random.default_rng(self.seed), (self.n_components, len(given.names))
        if self.normal or not np.isfinite(given.ranges).all():
            return draws.standard_normal(shape)
        low, high = given.ranges.T
        return np.asarray(low + (high - low) * draws.random(shape))

    def similarity(self, X: Array, rows: Array) -> Array:
        """The kernel between rows and landmarks, shape (n_samples, n_components)."""
        gamma = _gamma(self.gamma, X.shape[1], self.step)
        if self.kernel == "poly":
            return np.asarray((gamma * product(X, rows) + self.coef0) ** self.degree)
        apart = np.zeros((len(X), len(rows)))
        for column, ends in zip(X.T, rows.T):  # column after column: a row's sum is the same wherever it stands
            apart += (column[:, None] - ends) ** 2
        return np.asarray(np.exp(-gamma * apart))

    def turn(self, rows: Array) -> Array:
        """The inverse root of the landmarks' own kernel."""
        left, sizes, right = np.linalg.svd(self.similarity(rows, rows))
        return np.asarray((left / np.sqrt(np.maximum(sizes, _LEAST_EIGENVALUE))) @ right)


def _names(kind: str, components: int) -> tuple[str, ...]:
    return tuple(f"{kind}{i}" for i in range(components))


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
            what = f"degree={self.degree!r} leaves no products."
            raise InvalidParameter(what, stage=self.step, fix="degree=2, or degree=(1, 2).")

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


MOST_KNOTS = 1000


@dataclass(frozen=True)
class Splines(PublicMap):
    """Splines of a public degree with equal steps over public ranges, never negative, which add up to 1; gaps stay."""

    n_knots: int = 5
    degree: int = 3
    include_bias: bool = True
    step: str = ""
    bounds = True
    sized = True
    periodic = False

    def facts(self, given: ColumnFacts) -> ColumnFacts:
        knots = integer("n_knots", self.n_knots, self.step, least=2, most=MOST_KNOTS)
        degree = integer("degree", self.degree, self.step, least=0, most=min(10, knots - 1) if self.periodic else 10)
        own = knots - 2 + (0 if self.periodic else degree) + bool(self.include_bias)
        width = len(given.bounded(self.step).names)
        few(width * own, self.step)
        names = tuple(f"{name}_sp_{i}" for name in given.names for i in range(own))
        return ColumnFacts(names, np.tile([0.0, 1.0], (width * own, 1)), float(width))

    def apply(self, X: Array, given: ColumnFacts) -> Array:
        gaps = np.isnan(X)
        splines = self.fitted(given).transform(np.where(gaps, given.ranges[:, 0], X))
        return np.where(np.repeat(gaps, splines.shape[1] // X.shape[1], axis=1), np.nan, splines)

    def fitted(self, given: ColumnFacts) -> Any:
        """Scikit-learn's, with knots between the ranges."""
        low, high = given.ranges.T
        beyond = "periodic" if self.periodic else "constant"
        made = SplineTransformer(self.n_knots, self.degree, extrapolation=beyond, include_bias=self.include_bias)
        return made.fit(np.vstack([low, np.where(high > low, high, low + 1.0)]))


@dataclass(frozen=True)
class PeriodicSplines(Splines):
    """The same in a circle: what comes behind the end of a range begins it again."""

    periodic = True


@dataclass(frozen=True)
class KnottedSplines(Splines):
    """The same with public knots, a row for each and an entry for each column; flat beyond the outer ones."""

    knots: tuple[tuple[float, ...], ...] = ()
    periodic: bool = False

    def facts(self, given: ColumnFacts) -> ColumnFacts:
        width = len(given.names)
        even = {len(row) for row in self.knots} == {width} and np.isfinite(self.knots).all()
        if not even or not (np.diff(np.array(self.knots), axis=0) > 0).all():
            what = f"knots are rows of {width} numbers here, which rise in every column."
            raise InvalidParameter(what, stage=self.step, fix="knots=[[0.0], [10.0], [50.0]] of one column.")
        return super().facts(given)

    def fitted(self, given: ColumnFacts) -> Any:
        beyond, knots = "periodic" if self.periodic else "constant", np.array(self.knots)
        made = SplineTransformer(degree=self.degree, knots=knots, extrapolation=beyond, include_bias=self.include_bias)
        return made.fit(knots)
