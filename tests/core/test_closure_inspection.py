"""What a function plainly holds on to is found: estimators and tables are refused, the rest is declared."""

from functools import partial, wraps

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats
from sklearn.preprocessing import FunctionTransformer, StandardScaler, scale

from ppdp.core.closure_inspection import captured_by, declared_of, functions_in, library_name, refuse_captured
from ppdp.exceptions import InvalidParameter

SCALER = StandardScaler()
MEAN = np.array([1.0, 2.0])


def keeping(held):
    return lambda X: (X, held)[0]


def by_default(X, held=MEAN):
    return X - held


def by_keyword(X, *, held=MEAN):
    return X - held


def by_global(X):
    return X - MEAN


def by_a_function_that_it_calls(X):
    return by_global(X)


class Shift:
    def __init__(self, held):
        self.held = held

    def __call__(self, X):
        return X - self.held

    def mapped(self, X):
        return X - self.held


class Raises(dict):
    def values(self):
        raise RuntimeError("private")


PLACES = [
    keeping,
    lambda held: keeping([held]),
    lambda held: keeping((0, {"inner": held})),
    lambda held: keeping(np.array([held, None], dtype=object)),
    lambda held: wraps(keeping(held))(lambda X: X),
    Shift,
    lambda held: Shift(held).mapped,
    lambda held: np.vectorize(Shift(held)),
    lambda held: keeping(keeping(Shift(held))),
]


@pytest.mark.parametrize("place", PLACES)
def test_estimators_and_tables_are_found_in_every_place(place):
    assert captured_by(place(SCALER)).estimator is SCALER
    assert captured_by(place(pd.DataFrame({"mean": [1.0]}))).table is not None
    for held in (SCALER, pd.DataFrame({"mean": [1.0]})):
        with pytest.raises(InvalidParameter, match="private rows"):
            refuse_captured(place(held), "stage")


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (by_default, "held"),
        (by_keyword, "held"),
        (by_global, "MEAN"),
        (by_a_function_that_it_calls, "MEAN"),
        (stats.gaussian_kde([1.0, 2.0, 4.0]), "dataset"),
    ],
)
def test_a_table_is_named_as_the_user_knows_it(function, name):
    assert captured_by(function).table == name
    with pytest.raises(InvalidParameter, match=rf"'{name}'.*functools.partial\(function, {name}={name}\)"):
        refuse_captured(function, "stage")


@pytest.mark.parametrize("place", [lambda held: partial(np.add, held), lambda held: partial(np.add, by=held)])
def test_arguments_are_declared_and_hold_no_estimator(place):
    refuse_captured(place(MEAN), "stage")
    assert "its arguments" in declared_of(place(MEAN))
    with pytest.raises(InvalidParameter, match="holds on to a StandardScaler"):
        refuse_captured(place(SCALER), "stage")


@pytest.mark.parametrize(
    "function",
    [
        lambda X: X.MEAN,  # an attribute, not the variable
        lambda X: X / 2.54,
        keeping(None),
        keeping("age"),
        keeping(1.5),
        keeping(StandardScaler),
        np.log1p,
    ],
)
def test_other_functions_are_accepted(function):
    refuse_captured(function, "stage")


def test_whatever_is_no_function_of_a_library_is_declared():
    assert [declared_of(f) for f in (np.log1p, np.clip, special.expit, scale, str.lower)] == [None] * 5
    assert "what its function holds on to" in declared_of(lambda X: X)
    assert declared_of(partial(np.clip, a_min=0, a_max=1)).count("(its arguments a_min, a_max)") == 1


def test_a_class_that_raises_is_passed_over():
    captured_by(keeping(Raises()))


def test_a_wrapper_is_not_the_function_of_a_library_that_it_wraps():
    assert library_name(scale) == "sklearn.scale"
    assert library_name(wraps(np.mean)(lambda X: X)) == ""


def test_functions_are_found_with_their_arguments():
    found = dict(functions_in({"step": FunctionTransformer(np.add, kw_args={"by": MEAN}), "n": 3}, deep=True))
    assert captured_by(found["func"]).arguments == ("by",)
    assert dict(functions_in({"step": FunctionTransformer(np.add)}, deep=False)) == {}
    assert [name for name, _ in functions_in({"many": [np.tanh, {"last": np.exp}]}, deep=False)] == ["many", "last"]
