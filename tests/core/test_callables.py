"""What a function holds on to is found wherever Python lets one look."""

import datetime
import io
import operator
from collections import deque
from functools import partial, wraps

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats
from sklearn.preprocessing import FunctionTransformer, StandardScaler, scale

from ppdp.core.callables import MOST, calls_in, held_by, of_library

SCALER = StandardScaler()
MEAN = np.array([1.0, 2.0])
MEMORY = {}
COUNT = 0


def keeping(held):
    return lambda X: (X, held)[0]


def by_default(X, held=MEAN):
    return X - held


def by_keyword(X, *, held=MEAN):
    return X - held


def by_global(X):
    return X - MEAN


def by_a_function_that_it_calls(X):
    def inner(Z):
        return by_global(Z)

    return inner(X)


class Shift:
    def __init__(self, held):
        self.held = held

    def __call__(self, X):
        return X - self.held

    def mapped(self, X):
        return X - self.held


class Slim:
    __slots__ = ("held",)

    def __init__(self, held):
        self.held = held

    def __call__(self, X):
        return X - self.held


class Constants:
    held = MEAN


def by_a_class(X):
    return X - Constants.held


class Raises(dict):
    def keys(self):
        raise RuntimeError("private")


PLACES = [
    keeping,
    lambda held: partial(keeping(None), held),
    lambda held: partial(keeping(None), by=held),
    lambda held: keeping([held]),
    lambda held: keeping((0, {"inner": held})),
    lambda held: keeping(deque([held])),
    lambda held: keeping(np.array([held, None], dtype=object)),
    lambda held: wraps(keeping(held))(lambda X: X),
    Shift,
    Slim,
    lambda held: Shift(held).mapped,
    lambda held: np.vectorize(Shift(held)),
    lambda held: keeping(keeping(Slim(held))),
]


@pytest.mark.parametrize("place", PLACES)
def test_estimators_and_tables_are_found_in_every_place(place):
    assert held_by(place(SCALER)).estimator is SCALER
    assert held_by(place(MEAN)).values
    assert held_by(place(pd.DataFrame({"mean": [1.0]}))).values


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (by_default, "held"),
        (by_keyword, "held"),
        (by_global, "MEAN"),
        (by_a_function_that_it_calls, "MEAN"),
        (by_a_class, "held"),
        (keeping(1.5), "held"),
        (keeping(np.float32(1)), "held"),
        (keeping({1.5, 2.5}), "held"),
        (keeping(["a", "b"]), "held"),
        (keeping({"a": 1}), "held"),
        (keeping(datetime.date(2020, 1, 1)), "held"),
        (partial(np.clip, a_min=0), "a_min"),
        (stats.gaussian_kde([1.0, 2.0, 4.0]), "dataset"),
    ],
)
def test_it_is_told_by_the_name_that_a_user_knows(function, name):
    assert name in held_by(function).values


@pytest.mark.parametrize(
    "function",
    [
        np.log1p,
        np.clip,
        np.add.reduce,
        special.expit,
        scale,
        str.lower,
        partial(scale, axis=1, with_std=False),
        lambda X: np.log1p(X) / 2.54,
        lambda X: X[:, [0, 2]],
        keeping(None),
        keeping("age"),
        keeping(True),
        keeping(StandardScaler),
        np.vectorize(abs),
    ],
)
def test_what_stands_in_the_code_or_in_a_library_is_nothing_to_declare(function):
    held = held_by(function)
    assert (held.estimator, held.values, held.unseen) == (None, (), ())


def remembers(X):
    if "mean" not in MEMORY:
        MEMORY["mean"] = X.mean()
    return X - MEMORY["mean"]


def counts(X):
    global COUNT
    COUNT += 1
    return X * COUNT


class Learns:
    mean = None

    def __call__(self, X):
        if self.mean is None:
            self.mean = X.mean(axis=0)
        return X - self.mean


def reads(X):
    return X - pd.read_csv("means.csv").to_numpy()


def imports(X):
    import not_yet_imported

    return X - not_yet_imported.MEAN


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (remembers, "MEMORY, which is empty now and can be filled"),
        (counts, "counts, which keeps something from call to call"),
        (Learns(), "__call__, which keeps something from call to call"),
        (reads, "what read_csv brings in from outside"),
        (imports, "not_yet_imported, which it imports when it is called"),
        (np.frompyfunc(abs, 1, 1), "which is compiled"),
        (operator.itemgetter(0), "which is compiled"),
        (io.BytesIO().write, "a BytesIO, which is compiled"),
        (np.random.default_rng().permutation, "which is compiled"),
        (keeping(Raises()), "a Raises, which cannot be read"),
        (keeping([[i] for i in range(MOST)]), "more than can be looked through"),
    ],
)
def test_what_cannot_be_seen_is_told(function, words):
    assert any(words in unseen for unseen in held_by(function).unseen)


def test_nothing_is_called_or_changed():
    held_by(remembers), held_by(counts)
    assert (MEMORY, COUNT) == ({}, 0)


def test_a_wrapper_is_not_the_function_of_a_library_that_it_wraps():
    assert of_library(scale) == "sklearn.scale"
    assert of_library(wraps(np.mean)(lambda X: X)) == ""


def test_functions_are_found_with_their_arguments():
    found = dict(calls_in({"step": FunctionTransformer(np.add, kw_args={"by": MEAN}), "n": 3}, deep=True))
    assert held_by(found["func"]).values == ("by",)
    assert dict(calls_in({"step": FunctionTransformer(np.add)}, deep=False)) == {}
    assert [name for name, _ in calls_in({"many": [np.tanh, {"last": np.exp}]}, deep=False)] == ["many", "last"]
