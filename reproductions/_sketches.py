"""Released rows: the pipelines whose last step releases every row, for the reproductions of sketches."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from literature.projections.joint import count, independent
from literature.projections.noise import kenthapadi
from ppdp import Adjacency, Pipeline
from ppdp.exceptions import CompositionWarning, NoRoute
from ppdp.mechanisms import GaussianMechanism, LaplaceMechanism, SignMechanism
from ppdp.privacy.gaussian import gaussian_mu
from ppdp.transformers import MinMaxScaler, RandomProjection

Array = NDArray[np.float64]
FitMode = Callable[[Any, float, int, int], Array]
"""Rows, epsilon, components and seed of a public matrix -> what is released, one row for each."""
DELTA = 1e-6


def rows_of(X: Any, epsilon: float, delta: float, mechanism: Any, *projection: RandomProjection) -> Array:
    """Rows of [0, 1]^d, projected and released by a pipeline; neighbours differ by at most 1 in one column of a row."""
    steps = [("range", MinMaxScaler(ranges=(0, 1), feature_range=(0, 1)))]
    steps += [("project", stage) for stage in projection]
    pipe = Pipeline(
        [*steps, ("release", mechanism)], epsilon=epsilon, delta=delta, adjacency=Adjacency.change(coordinate=1.0)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CompositionWarning)  # the rows are public, and protected for show
        pipe.fit(X)
    (answer,) = pipe.release_.values()
    return np.asarray(answer, dtype=np.float64).reshape(X.shape[0], -1)


def gaussian(family: str | None) -> FitMode:
    """Gaussian noise of the smallest scale at (epsilon, DELTA), behind a projection or on the rows themselves.

    Where e^epsilon times the error of the sampler is more than DELTA no pipeline certifies it; then the same noise in
    float64, as it is printed.
    """

    def way(X: Any, epsilon: float, k: int, seed: int) -> Array:
        stages = () if family is None else (RandomProjection(k, family=family, seed=seed),)
        try:
            return rows_of(X, epsilon, DELTA, GaussianMechanism("rows"), *stages)
        except NoRoute:
            images, change = X, 1.0
            for stage in stages:
                images = stage.fit_transform(X)
                change = float(np.sqrt((stage.components_**2).sum(axis=0).max()))
            noise = np.random.default_rng().standard_normal(images.shape)
            return np.asarray(images + noise * change / gaussian_mu(epsilon, DELTA))

    return way


def laplace(X: Any, epsilon: float, k: int, seed: int) -> Array:
    """Laplace noise behind OPORP, with delta 0."""
    return rows_of(X, epsilon, 0, LaplaceMechanism("rows"), RandomProjection(k, family="oporp", seed=seed))


def signs(flips: str, family: str, delta: float = 0) -> FitMode:
    """Flipped signs."""
    return lambda X, epsilon, k, seed: rows_of(
        X, epsilon, delta, SignMechanism(flips), RandomProjection(k, family=family, seed=seed)
    )


def raw_laplace(X: Any, epsilon: float, k: int, seed: int) -> Array:
    """Laplace noise on the rows themselves, with delta 0."""
    return rows_of(X, epsilon, 0, LaplaceMechanism("rows"))


def classical(X: Any, epsilon: float, k: int, seed: int) -> Array:
    """DP-RP-G: a Gaussian matrix and the noise of Kenthapadi et al., which no pipeline uses."""
    stage = RandomProjection(k, seed=seed).fit(X)
    sigma = kenthapadi(float(np.linalg.norm(stage.components_, axis=0).max()), epsilon, DELTA)
    return np.asarray(stage.transform(X) + sigma * np.random.default_rng().standard_normal((X.shape[0], k)))


def counted(X: Any, epsilon: float, k: int, seed: int) -> Array:
    """DP-SignRP-RR: flips for N₊ signs, with the least norm of these rows for a public one."""
    least = float(np.linalg.norm(X, axis=1).min())
    flips = 1 / (1 + np.exp(epsilon / count(independent(p=X.shape[1], r=1 / least), k, DELTA)))
    images = RandomProjection(k, seed=seed).fit_transform(X)
    flipped = np.random.default_rng().random(images.shape) < flips
    return np.where((images < 0) ^ flipped, -1.0, 1.0)


def plain(family: str) -> FitMode:
    """No privacy."""
    return lambda X, epsilon, k, seed: RandomProjection(k, family=family, seed=seed).fit_transform(X)


def plain_signs(family: str) -> FitMode:
    """No privacy, one bit each."""
    return lambda X, epsilon, k, seed: np.where(plain(family)(X, epsilon, k, seed) < 0, -1.0, 1.0)
