"""Rows with a planted record, and the check of all that every refusal must keep to."""

import numpy as np
import pandas as pd
import pytest

from ppdp import Domain, Pipeline, make_pipeline
from ppdp.exceptions import PpdpError
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.privacy.noise.sampler import Noise
from ppdp.transformers import Deduplicator, MeanImputer, MinMaxScaler, StandardScaler

N = 400
NAME, NUMBER = "SENTINEL-PATIENT", 123456.789
TRACES = (NAME, "SENTINEL", "123456", "1.234567", "1.23456789e+05")
DOMAIN = Domain(n_rows=N, n_features=3)


def rows():
    """Numbers, with one person's record planted first and last, where messages would quote it."""
    X = np.random.default_rng(0).uniform(-1, 1, size=(N, 3))
    X[[0, -1]] = NUMBER
    return X


def labels():
    return np.arange(N) % 2


def frame(column=None):
    X = pd.DataFrame(rows(), columns=["a", "b", "c"])
    return X if column is None else X.assign(b=column)


def classifier(**parameters):
    steps = [
        ("range", MinMaxScaler(ranges=(-1, 1))),
        ("dedup", Deduplicator()),
        ("impute", MeanImputer()),
        ("scale", StandardScaler()),
        ("model", LogisticRegression(classes=(0, 1), max_iter=5)),
    ]
    return Pipeline(steps, **{"epsilon": 15.0, "delta": 1e-4, "random_state": 0, **parameters})


def mean(*stages, **parameters):
    return make_pipeline(*stages, GaussianMechanism(), **{"delta": 1e-4, "random_state": 0, **parameters})


@pytest.fixture(autouse=True)
def drawn(monkeypatch):
    """Every draw of noise: nothing leaves the rows without one."""
    draws = []
    release = Noise.release
    monkeypatch.setattr(Noise, "release", lambda self, *args: draws.append(args) or release(self, *args))
    return draws


def chain(error):
    """An error and everything behind it, also what ``from None`` only hides."""
    found, waiting = [], [error]
    while waiting:
        current = waiting.pop()
        if current is not None and current not in found:
            found.append(current)
            waiting += [current.__cause__, current.__context__]
    return found


def quotes(error):
    """Traces of the planted record in all that an error carries."""
    said = " ".join(
        f"{link} {link!r} {link.args!r} {vars(link)!r} {getattr(link, '__notes__', '')}" for link in chain(error)
    )
    return [trace for trace in TRACES if trace in said]


@pytest.fixture
def refused(drawn):
    """Fit, expect a typed error, and check what every error must keep to."""

    def attempt(kind, pipe, X, y=None, *, says=None):
        with pytest.raises(PpdpError, match=says) as caught:
            pipe.fit(X, y)
        assert isinstance(caught.value, kind), repr(caught.value)
        assert not quotes(caught.value), quotes(caught.value)
        assert not hasattr(pipe, "certificate_")
        assert not hasattr(pipe, "release_")
        assert not drawn
        return caught.value

    return attempt
