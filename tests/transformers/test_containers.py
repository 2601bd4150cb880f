"""Every transformer takes pandas, polars, Arrow and NumPy, and rows in blocks unless it needs all at once."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from streamed import stream_of

from ppdp.core.adjacency import Adjacency
from ppdp.core.domain import Domain
from ppdp.data.rows import Rows
from ppdp.exceptions import MissingBound, UnsupportedOrder
from ppdp.testing import REGISTRY, examples
from ppdp.transformers import MinMaxScaler, StandardScaler
from ppdp.transformers.base import Stage, Transformer

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
        named = list(asked.get_feature_names_out())
        assert names(out) == named if form != "default" else out.shape[1] == len(named)


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


ONE = Adjacency.replace().distance
STAGES = [one for one in examples() if isinstance(one, Stage)]
DOMAINS = [Domain(n_rows=3000, n_features=3, row_norm=2.0, max_missing=gaps) for gaps in (0, 400)]


def rows_of(domain, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (domain.n, domain.d))
    X[rng.permutation(domain.n)[: domain.missing_rows], rng.integers(domain.d)] = np.nan
    return Rows.of(X)


@pytest.mark.parametrize("stage", [one for one in STAGES if not one.in_memory], ids=repr)
@pytest.mark.parametrize("domain", DOMAINS, ids=["complete", "with gaps"])
@pytest.mark.repeated("domain")
def test_what_is_fitted_block_by_block_knows_no_order(stage, domain):
    try:
        ways = stage.fit_modes(domain, ONE)
    except (UnsupportedOrder, MissingBound):  # needs labels, or stands elsewhere
        return
    rows = rows_of(domain)
    order = np.random.default_rng(1).permutation(domain.n)
    other = Rows(rows.X[order], None, rows.weight[order])
    for way in (way for way in ways if way.name == "exact"):
        stream = stream_of(rows)[0]
        found = stage.prepare(rows, way, domain)
        for one in (other, stream):
            again = stage.prepare(one, way, domain)
            for name, value in found.items():
                assert np.array_equal(np.asarray(value), np.asarray(again[name])), name
            for condition in way.conditions:
                assert condition.margin(one) == condition.margin(rows)


@pytest.mark.parametrize("stage", [one for one in STAGES if one.in_memory], ids=repr)
def test_the_description_says_so(stage):
    assert "in memory" in type(stage).__doc__


def test_it_may_depend_on_parameters():
    sorting = [StandardScaler(use_floor=False), MinMaxScaler(quantiles=(0.1, 0.9))]
    others = [StandardScaler(), MinMaxScaler(ranges=(0, 1))]
    assert [stage.in_memory for stage in sorting + others] == [True, True, False, False]
