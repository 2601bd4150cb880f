"""A function is tried on made-up rows, and is left as it was."""

import numpy as np
import pytest
from scipy import sparse

from ppdp.interop.sklearn.leaks.behaviour import APART, MIXED, UNSTEADY, UNTRIED, tried

WEIGHTS = np.linspace(-1, 1, 26).reshape(13, 2)


class Counter:
    calls = 0

    def __call__(self, X):
        self.calls += 1
        return X * 2


def fails(X):
    raise RuntimeError


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (np.log1p, APART),
        (lambda X: X / np.linalg.norm(X, axis=1, keepdims=True), APART),
        (lambda X: X @ WEIGHTS, APART),  # rounding is no mixing
        (lambda X: sparse.csr_array(X), APART),
        (lambda X: np.where(X > 0, "tall", "small"), APART),
        (lambda df: df[["age"]] / df[["height"]].to_numpy(), APART),
        (lambda X: X - X.mean(axis=0), MIXED),
        (lambda X: X - X[0], MIXED),
        (lambda X: X * len(X), MIXED),
        (lambda X: X - X.mean(axis=0) * (len(X) > 1000), MIXED),
        (lambda X: np.where(np.isnan(X), np.nanmean(X, axis=0), X), MIXED),
        (lambda df: df["age"] - df["age"].mean(), MIXED),
        (lambda df: df.fillna(df.median()), MIXED),
        (lambda df: df.sort_values("age"), MIXED),
        (lambda X: X + np.random.normal(size=X.shape), UNSTEADY),  # noqa: NPY002
        (fails, UNTRIED),
        (lambda X: exit(), UNTRIED),
        (lambda X: None, UNTRIED),
        (lambda X: X * np.nan, UNTRIED),
        (lambda X: X.mean(), UNTRIED),
    ],
)
def test_what_made_up_rows_show(function, found):
    assert tried(function) == found


def test_what_a_user_holds_stays_as_it_was(capsys):
    counter = Counter()
    assert tried(counter) == APART
    assert counter.calls == 0
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    tried(lambda X: print(X) or np.random.normal(size=X.shape))  # noqa: NPY002, T201
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002
    assert capsys.readouterr().out == ""
