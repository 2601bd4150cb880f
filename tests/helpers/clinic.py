"""Patients, a classifier and a scaler for them, and a spy on every draw of noise."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from ppdp import Pipeline
from ppdp.mechanisms import LogisticRegression
from ppdp.privacy.noise.sampler import Noise
from ppdp.transformers import Deduplicator, MeanImputer, MinMaxScaler, StandardScaler

COLUMNS = ["age", "dose", "level"]
RANGES = {"age": (0, 100), "dose": (-5, 5), "level": (0, 1)}
N = 1500


@pytest.fixture(scope="module")
def patients():
    """Rows with gaps, repeated records, and an outcome that depends on them."""
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.uniform(20, 90, N), rng.normal(size=N), rng.beta(2, 3, N)])
    y = (X[:, 0] / 50 + X[:, 1] + rng.normal(size=N) > 1.5).astype(int)
    X[rng.random(X.shape) < 0.05] = np.nan
    X[N - 300 :], y[N - 300 :] = X[:300], y[:300]
    return pd.DataFrame(X, columns=COLUMNS), y


@pytest.fixture
def drawn(monkeypatch):
    """Every draw of noise while the test runs."""
    draws = []
    release = Noise.release

    def spy(self, value, noise_scale, bound):
        answer = release(self, value, noise_scale, bound)
        draws.append(Draw(np.array(value, dtype=float), noise_scale, bound, answer))
        return answer

    monkeypatch.setattr(Noise, "release", spy)
    return draws


@dataclass(frozen=True)
class Draw:
    """One answer with noise: what it was, how much noise, the public bound, what left."""

    value: np.ndarray
    noise_scale: float
    bound: float
    answer: np.ndarray


def classifier(**parameters):
    steps = [
        ("range", MinMaxScaler(ranges=RANGES)),
        ("dedup", Deduplicator()),
        ("impute", MeanImputer()),
        ("scale", StandardScaler()),
        ("model", LogisticRegression(classes=(0, 1), max_iter=20)),
    ]
    return Pipeline(steps, **{"epsilon": 5.0, "delta": 1e-5, "random_state": 0, **parameters})


def scaling(**parameters):
    """A pipeline that ends in a transformer."""
    steps = [("range", MinMaxScaler(ranges=RANGES)), ("impute", MeanImputer()), ("scale", StandardScaler())]
    return Pipeline(steps, **{"epsilon": 5.0, "delta": 1e-5, "random_state": 0, **parameters})


def fitted_state(pipe):
    return {name for name in vars(pipe) if name.endswith("_")}
