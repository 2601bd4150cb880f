"""Rows, and searches for parameters over them."""

import numpy as np
import pandas as pd
import pytest

from ppdp import Pipeline, PrivateSearchCV
from ppdp.mechanisms import LogisticRegression
from ppdp.transformers import NormClipper

N = 3000
GRID = {"clip__max_norm": [1e-3, 2.0], "model__fit_intercept": [False, True]}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(N, 3)), columns=["a", "b", "c"])
    return X, (X["a"] + X["b"] + 1.0 + 0.3 * rng.normal(size=N) > 0).astype(int)


@pytest.fixture(scope="module")
def fitted_once(data):
    return search().fit(*data)


def pipeline(*stages, **parameters):
    model = LogisticRegression(classes=(0, 1), max_iter=30)
    return Pipeline([("clip", NormClipper(2.0)), *stages, ("model", model)], **parameters)


def search(estimator=None, grid=GRID, **parameters):
    return PrivateSearchCV(pipeline() if estimator is None else estimator, grid, **{"epsilon": 2.0, **parameters})
