"""Whatever a container raises when it is read: an error of ppdp's comes out, without a word of the container's."""

import traceback

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from sklearn.exceptions import NotFittedError

from ppdp import Adjacency, Domain, Ledger, Pipeline, PrivateSearchCV, declare, lint, make_pipeline
from ppdp.audit import attack_membership, audit
from ppdp.exceptions import InvalidInput, PpdpError, StageFailed
from ppdp.mechanisms import LogisticRegression
from ppdp.transformers import MinMaxScaler, RowMap, StandardScaler

SECRET = "private-4711"
N = 120
ROWS = pd.DataFrame({"a": np.linspace(0, 1, N), "b": np.linspace(1, 0, N)})
Y = (ROWS["a"] > 0.5).astype(int)
pytestmark = pytest.mark.filterwarnings("ignore")


KINDS = [ValueError]  # of what a container raises


def fail(*_, **__):
    raise KINDS[-1](SECRET)


def reader():
    def batches():
        yield pa.record_batch([pa.array([0.1]), pa.array([0.2])], schema=schema)
        fail()

    schema = pa.schema([("a", pa.float64()), ("b", pa.float64())])
    return pa.RecordBatchReader.from_batches(schema, batches())


def frame(attribute):
    """A frame of a class of its own, of which one property or method raises."""
    known = getattr(pd.DataFrame, attribute, None)
    broken = fail if callable(known) or known is None else property(fail)
    return type("Frame", (pd.DataFrame,), {attribute: broken})(ROWS)


class Odd:
    """A table that only looks like one."""

    columns = ("a", "b")
    shape = (N, 2)
    __getattr__ = __array__ = fail


class OddList(list):
    __iter__ = fail


class OddName(str):
    __eq__ = fail
    __hash__ = str.__hash__


class OddCell:
    __float__ = __repr__ = __str__ = __eq__ = __hash__ = __array__ = fail


def cells():
    return ROWS.assign(a=np.fromiter((OddCell() for _ in range(N)), dtype=object, count=N))


BROKEN = ("columns", "dtypes", "shape", "iloc", "index", "to_numpy", "copy", "__len__", "__getitem__", "__getattr__")
CONTAINERS = {
    "reader": reader,
    "filtered": lambda: ds.dataset(pa.table({"a": [0.1], "b": [0.2]})).filter(pc.field("a") > 0.0),
    **{f"frame.{name}": lambda name=name: frame(name) for name in BROKEN},
    "odd": Odd,
    "list": lambda: OddList([[1.0, 2.0]]),
    "names": lambda: ROWS.set_axis([OddName("a"), OddName("b")], axis=1),
    "cells": cells,
    "array": lambda: cells().to_numpy(),
    "text": lambda: pl.DataFrame({"a": ["x", SECRET], "b": [1.0, 2.0]}),
    "class": lambda: pd.DataFrame,
    "generator": lambda: (fail() for _ in range(3)),
}


def pipeline(**more):
    steps = MinMaxScaler(ranges=(0, 1)), StandardScaler(), LogisticRegression(classes=(0, 1))
    return make_pipeline(*steps, epsilon=2.0, delta=1e-5, **more)


FITTED = pipeline().fit(ROWS, Y)
SEARCH = PrivateSearchCV(pipeline(), {"logisticregression__alpha": [1.0, 2.0]}, delta=1e-5)
PERSONS = {"adjacency": Adjacency.user_level(max_rows=1), "domain": Domain(n_rows=2 * N)}
CALLS = {
    "fit": lambda X: pipeline().fit(X, Y),
    "repair": lambda X: pipeline(on_invalid="repair").fit(X, Y),
    "label": lambda X: pipeline().fit(X, "a"),
    "labels": lambda y: pipeline().fit(ROWS, y),
    "ids": lambda ids: pipeline(**PERSONS).fit(ROWS, Y, groups=ids),
    "predict": FITTED.predict,
    "predict_proba": FITTED.predict_proba,
    "project": FITTED.project,
    "score": lambda X: FITTED.score(X, Y),
    "score of labels": lambda y: FITTED.score(ROWS, y),
    "transform": FITTED[:-1].transform,
    "fit_transform": lambda X: make_pipeline(MinMaxScaler(ranges=(0, 1)), StandardScaler(), delta=1e-5).fit_transform(
        X
    ),
    "write": lambda X: FITTED.write_parquet(X, "never-written"),
    "search": lambda X: SEARCH.fit(X, Y),
    "search of labels": lambda y: SEARCH.fit(ROWS, y),
    "declare": declare,
    "lint": lint,
    "plan": lambda X: pipeline().plan(X),
    "convert": Pipeline.from_sklearn,
    "audit": lambda X: audit(pipeline(), (X, Y), seconds=0.1),
    "membership": lambda X: attack_membership(pipeline(), X, Y, models=2),
}


def words_of(call, given):
    """All that is printed of the error of ppdp's that comes out, or of an exit; any other error is raised."""
    try:
        call(given)
    except (PpdpError, SystemExit) as error:
        return "".join(traceback.format_exception(error))
    return ""


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.repeated("call", keep=8)
def test_no_word_of_it_comes_out(call, container):
    given = CONTAINERS[container]()
    with Ledger(epsilon=1e4, delta=0.5):
        assert SECRET not in words_of(CALLS[call], given)


@pytest.mark.parametrize("kind", [UserWarning, RuntimeWarning, SystemExit])
@pytest.mark.parametrize("container", ["reader", "frame.columns", "frame.index", "odd", "list"])
@pytest.mark.parametrize("call", ["fit", "label", "ids", "predict", "search", "declare"])
@pytest.mark.repeated("kind")
def test_nor_of_warnings_that_are_errors_and_of_exits(call, container, kind, monkeypatch):
    monkeypatch.setitem(globals(), "KINDS", [kind])
    given = CONTAINERS[container]()
    with Ledger(epsilon=1e4, delta=0.5):
        assert SECRET not in words_of(CALLS[call], given)


@pytest.mark.parametrize("given", [{"a": [0.1]}, (fail for _ in range(3)), object(), None, 7])
def test_what_is_no_table_is_called_so(given):
    with pytest.raises(InvalidInput, match=f"X is a {type(given).__name__}, which is no table"):
        pipeline().fit(given, Y)


def test_a_filter_is_called_one(tmp_path):
    ROWS.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(InvalidInput, match="behind a filter"):
        pipeline().fit(ds.dataset(tmp_path).filter(pc.field("a") > 0.5), "b")


@pytest.mark.parametrize("y", [np.full(N, SECRET), np.full(N, np.nan)])
def test_labels_that_cannot_be_scored(y):
    with pytest.raises(InvalidInput, match="cannot be compared") as refused:
        FITTED.score(ROWS, y)
    assert SECRET not in str(refused.value)


def test_a_full_explanation_stays_where_no_row_is_looked_at():
    class Broken(StandardScaler):
        def fit_modes(self, domain, distance):
            raise KeyError("public words")

    with pytest.raises(KeyError, match="public words"):
        make_pipeline(MinMaxScaler(ranges=(0, 1)), Broken(), delta=1e-5).fit(ROWS)
    with pytest.raises(NotFittedError):
        pipeline().predict(ROWS)


def test_a_step_that_fails_on_rows_is_named():
    once = RowMap(lambda X: X, out_ranges=(0, 1))
    pipe = make_pipeline(once, LogisticRegression(classes=(0, 1)), delta=1e-5).fit(ROWS, Y)
    pipe.twins_[0][1].map_rows = fail
    with pytest.raises(StageFailed) as failed:
        pipe.predict(ROWS)
    assert SECRET not in str(failed.value)
