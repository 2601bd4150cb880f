"""Every transformer takes pandas, polars, Arrow and NumPy, and gives back what it is asked for."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

from ppdp.testing import REGISTRY
from ppdp.transformers.base import Transformer

KINDS = [kind for kind in REGISTRY.values() if issubclass(kind, Transformer)]
COLUMNS = ["age", "height", "ph"]
VALUES = np.random.default_rng(0).uniform(-1, 1, size=(40, 3)).astype(np.float32)
Y = np.arange(40) % 2  # for those that look at labels

FORMS = {
    "pandas": lambda X: pd.DataFrame(X, columns=COLUMNS),
    "polars": lambda X: pl.DataFrame(X, schema=COLUMNS),
    "arrow": lambda X: pa.table(dict(zip(COLUMNS, X.T.copy()))),
}
KIND_OF = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.Table, "default": np.ndarray}

EVERY = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


def plain(table):
    return np.asarray(table.to_pandas() if hasattr(table, "to_pandas") else table, dtype=np.float64)


def same(actual, expected):
    """Equal but for the last bits: matrix products depend on how a table lies in memory."""
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12)


def names(table):
    return list(table.column_names if isinstance(table, pa.Table) else table.columns)


@EVERY
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.repeated("form", keep=2)
def test_the_container_of_the_input_changes_nothing(kind, form):
    expected = kind.example().fit_transform(VALUES, Y)
    fitted = kind.example().fit(FORMS[form](VALUES), Y)
    assert isinstance(expected, np.ndarray)
    assert expected.dtype == np.float64
    assert list(fitted.feature_names_in_) == COLUMNS
    same(fitted.transform(FORMS[form](VALUES)), expected)


@EVERY
@pytest.mark.parametrize("form", KIND_OF)
@pytest.mark.repeated("form")
def test_the_output_is_what_was_asked_for(kind, form):
    asked = clone(kind.example().set_output(transform=form))
    frame = FORMS["pandas"](VALUES)
    for out in (asked.fit_transform(frame, Y), asked.transform(frame)):
        assert isinstance(out, KIND_OF[form])
        same(plain(out), kind.example().fit_transform(VALUES, Y))
        if form != "default":
            assert names(out) == list(asked.get_feature_names_out())


@EVERY
def test_single_precision_is_read_exactly_and_computed_in_double(kind):
    single, double = kind.example().fit_transform(VALUES, Y), kind.example().fit_transform(VALUES.astype(np.float64), Y)
    same(single, double)


@EVERY
@pytest.mark.parametrize("form", ["polars", "arrow"])
@pytest.mark.repeated("form")
def test_null_is_a_gap(kind, form):
    with_null = {"polars": pl.DataFrame, "arrow": pa.table}[form]({"a": [1.0, None, 0.5], "b": [0.1, 0.2, 0.3]})
    stage = kind.example()
    if not stage.__sklearn_tags__().input_tags.allow_nan:
        with pytest.raises(ValueError, match="NaN"):
            stage.fit(with_null, Y[:3])
        return
    with_nan = np.array([[1.0, 0.1], [np.nan, 0.2], [0.5, 0.3]])
    same(stage.fit_transform(with_null, Y[:3]), kind.example().fit_transform(with_nan, Y[:3]))
