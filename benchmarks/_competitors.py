"""Who takes part in ``benchmarks/utility.py``: data sets with public facts, and pipelines with and without privacy.

Every private competitor gets the same public facts: ranges of the columns, number of classes, and that a standardised
row of d columns has mean square norm d. Nothing is chosen by looking at rows, and nothing changes with epsilon.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.decomposition import PCA as PlainPCA
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.preprocessing import StandardScaler as PlainStandardScaler

from ppdp import Pipeline
from ppdp.datasets import load_flchain, load_randhie
from ppdp.mechanisms import LogisticRegression
from ppdp.transformers import PCA, Deduplicator, MeanImputer, MinMaxScaler, Public, StandardScaler

Array = NDArray[Any]
DELTA = 1e-6


@dataclass(frozen=True, slots=True)
class Data:
    """Rows, labels and what everybody may know of them.

    Attributes
    ----------
    X, y : array
        Private rows (NaN for gaps) and labels.
    ranges : array of shape (d, 2)
        Public (low, high) of every column.
    components : int
        How many components a PCA keeps.
    duplicates, gaps : bool
        Whether records may occur twice by mistake, and whether values may be missing.
    """

    X: Array
    y: Array
    ranges: Array
    components: int
    duplicates: bool = False
    gaps: bool = False

    @property
    def classes(self) -> tuple[int, ...]:
        """Labels are 0, 1, ... by declaration; the largest is public."""
        return tuple(range(int(self.y.max()) + 1))


def breast_cancer() -> Data:
    """Ranges from the table of minima and maxima in the published description; ten measurements, each thrice."""
    bunch = load_breast_cancer()
    table = re.findall(r"\((?:mean|standard error|worst)\):\s+([\d.]+)\s+([\d.]+)", bunch.DESCR)
    return Data(bunch.data, bunch.target, np.asarray(table, dtype=np.float64), components=10)


def digits() -> Data:
    """Pixels count 4 x 4 black dots: 0 to 16 by the published description."""
    X, y = load_digits(return_X_y=True)
    return Data(X, y, np.tile([0.0, 16.0], (64, 1)), components=20)


def odd_digits() -> Data:
    """The same pixels; whether the digit is odd."""
    ten = digits()
    return Data(ten.X, ten.y % 2, ten.ranges, components=20)


def flchain() -> Data:
    """Ranges by :func:`ppdp.datasets.load_flchain`; creatinine has gaps, records may have been entered twice."""
    X, y, ranges = load_flchain()
    return Data(X.to_numpy(), y.to_numpy(), _table(ranges), components=5, duplicates=True, gaps=True)


def randhie() -> Data:
    """Ranges by :func:`ppdp.datasets.load_randhie`; equal rows are years of one family, not duplicates."""
    X, y, ranges = load_randhie()
    return Data(X.to_numpy(), y.to_numpy(), _table(ranges), components=5)


def low_rank(n: int = 100_000, d: int = 200, rank: int = 10) -> Data:
    """Columns in [-1, 1] that ten hidden factors explain but for noise of 0.1; the factors decide the label."""
    rng = np.random.default_rng(0)
    loadings = np.linalg.qr(rng.normal(size=(d, rank)))[0].T * math.sqrt(d / rank)
    factors = rng.normal(size=(n, rank))
    X = np.clip(0.35 * factors @ loadings + 0.1 * rng.normal(size=(n, d)), -1, 1)
    direction = rng.normal(size=rank)
    score = 3 * factors @ direction / np.linalg.norm(direction)
    y = (score + rng.logistic(size=n) > 0).astype(int)
    return Data(X, y, np.tile([-1.0, 1.0], (d, 1)), components=rank)


def _table(ranges: Mapping[str, tuple[float, float]]) -> Array:
    return np.asarray(list(ranges.values()))


DATA: dict[str, tuple[str, Callable[[], Data]]] = {
    "breast_cancer": ("breast_cancer, 569 × 30", breast_cancer),
    "digits_odd": ("digits, odd or even, 1797 × 64", odd_digits),
    "digits": ("digits, 10 classes, 1797 × 64", digits),
    "flchain": ("flchain, 7874 × 7, gaps", flchain),
    "randhie": ("randhie, 20190 × 9", randhie),
    "low_rank": ("generated, 100000 × 200, rank 10", low_rank),
}


def ours(data: Data, epsilon: float, seed: int, *, scale: bool, components: bool) -> Pipeline:
    """A certified pipeline as a user writes it; ``auto`` chooses every route."""
    steps: list[tuple[str, Any]] = [("range", MinMaxScaler(ranges=data.ranges))]
    if data.gaps and not scale:
        middle = SimpleImputer(strategy="constant", fill_value=0.0).fit(np.zeros((1, len(data.ranges))))
        steps.append(("fill", Public(middle)))
    if data.duplicates and scale:
        steps.append(("dedup", Deduplicator()))
    if data.gaps and scale:
        steps.append(("impute", MeanImputer()))
    if scale:
        steps.append(("scale", StandardScaler()))
    if components:  # as many columns as components, as scikit-learn's
        steps.append(("pca", PCA(data.components, output="aligned", n_columns=data.components)))
    steps.append(("model", LogisticRegression(classes=data.classes)))
    return Pipeline(steps, epsilon=epsilon, delta=DELTA, random_state=seed)


def without_privacy(data: Data, seed: int, *, components: bool) -> Any:
    """The same steps with scikit-learn."""
    pca = [PlainPCA(data.components, random_state=seed)] if components else []
    model = PlainLogisticRegression(max_iter=1000)
    return make_pipeline(SimpleImputer(), PlainStandardScaler(), *pca, model)


def diffprivlib(data: Data, epsilon: float, seed: int, *, components: bool) -> Any:
    """Pipeline of diffprivlib: pure differential privacy, its accountant's even split over the fitted steps.

    Its scaler takes no gaps, so the middle of the public range fills them. Its PCA may assume centred rows behind a
    scaler. A larger ``max_iter`` than by default, because its guarantee is that of the exact minimiser.
    """
    from diffprivlib import BudgetAccountant
    from diffprivlib import models as dpl

    d, bounds = len(data.ranges), (data.ranges[:, 0], data.ranges[:, 1])
    accountant = BudgetAccountant(epsilon, 0)
    share = accountant.remaining(3 if components else 2)[0] * (1 - 1e-9)
    common: dict[str, Any] = {"epsilon": share, "random_state": seed, "accountant": accountant}
    norm = math.sqrt(d)
    steps = [FunctionTransformer(filled, kw_args={"ranges": data.ranges}), dpl.StandardScaler(bounds=bounds, **common)]
    if components:
        steps.append(dpl.PCA(data.components, centered=True, data_norm=norm, **common))
    return make_pipeline(*steps, dpl.LogisticRegression(data_norm=norm, max_iter=1000, **common))


def filled(X: Array, ranges: Array) -> Array:
    """The middle of the public range in place of every gap."""
    return np.asarray(np.where(np.isnan(X), ranges.mean(axis=1), X))


def repaired_bingham() -> Any:
    """For the time of a ``with`` statement: diffprivlib's PCA draws from the distribution that its proof is about.

    As published (0.6.6) ``mechanisms.Bingham`` divides its probability of acceptance by the power of the envelope
    where Kent, Ganeiber and Mardia (arXiv 1310.8110) multiply. What it returns follows another distribution, and soon
    it does not return: with 30 columns, eigenvalues 50, 1, ..., 1 and eps = 1 it accepts one try in 10^12, with the
    repair 93 of 100. Without this the benchmark would not end.
    """
    from diffprivlib.mechanisms import Bingham

    class Repaired(Bingham):
        def randomise(self, value: Array) -> Array:
            self._check_all(value)
            eigenvalues, vectors = np.linalg.eigh(value)
            d = len(eigenvalues)
            decay = self.epsilon * (eigenvalues.max() - eigenvalues) / (4 * self.sensitivity)
            b = brentq(lambda b: (1 / (b + 2 * decay)).sum() - 1, 1 - 1e-9, d + 1e-9)
            omega = 1 + 2 * decay / b
            constant = (d - b) / 2 - d / 2 * math.log(d / b)
            while True:
                u = self._rng.normal(size=d) / np.sqrt(omega)
                squares = (u / np.linalg.norm(u)) ** 2
                if math.log(1 - self._rng.random()) <= constant - squares @ decay + d / 2 * math.log(squares @ omega):
                    return np.asarray(vectors @ (u / np.linalg.norm(u)))

    return patch("diffprivlib.models.utils.Bingham", Repaired)
