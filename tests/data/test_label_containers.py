"""Every label is read by itself, whatever else stands in y and whatever holds it."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from refusals import N, classifier, labels, rows
from sklearn.exceptions import DataConversionWarning

from ppdp import Domain, Pipeline
from ppdp.data.frames import cells, column
from ppdp.data.rows import encode_labels
from ppdp.data.validation import check_labels, read_labels, settled_labels
from ppdp.exceptions import InvalidInput, InvalidParameter, InvalidValue, UnsupportedOrder
from ppdp.mechanisms import GaussianMechanism, Ridge
from ppdp.transformers import NormClipper, RowMap

NULLABLE = {
    "Arrow": pa.array,
    "Arrow in chunks": lambda y: pa.chunked_array([y[:7], y[7:]]),
    "polars": lambda y: pl.Series(y, dtype=pl.Int64),
    "pandas": lambda y: pd.array(y, dtype="Int64"),
    "a frame": lambda y: pd.DataFrame({"y": pd.array(y, dtype="Int64")}),
}


def codes(y, classes=(0, 1)):
    return settled_labels(read_labels(check_labels(np.zeros((N, 1)), y, Ridge()), classes), "repair")


@pytest.mark.parametrize("held", NULLABLE)
def test_a_gap_changes_no_other_label(held):
    large = [2**53 + int(code) for code in labels()]
    classes = (2**53, 2**53 + 1)
    np.testing.assert_array_equal(codes(NULLABLE[held](large), classes), labels())
    np.testing.assert_array_equal(codes(NULLABLE[held]([None, *large[1:]]), classes)[1:], labels()[1:])


class Stored:
    """An array as files and other libraries hold it: with NumPy's type, and none of its methods."""

    def __init__(self, values):
        self.values, self.dtype, self.shape, self.ndim = values, values.dtype, values.shape, values.ndim

    def __len__(self):
        return len(self.values)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("held", [Stored, np.asmatrix, np.asarray], ids=["stored", "matrix", "array"])
def test_a_column_of_labels_is_one_whatever_holds_it(held):
    with pytest.warns(DataConversionWarning):
        np.testing.assert_array_equal(codes(held(labels().reshape(-1, 1))), labels())


def test_classes_can_be_read_from_a_list():
    pipe = classifier().set_params(model__classes=None).fit(rows(), labels().tolist())
    assert pipe.classes_.tolist() == [0, 1]
    with pytest.raises(InvalidInput):
        classifier().set_params(model__classes=None).fit(rows(), [["a"], 1] * (N // 2))


@pytest.mark.parametrize(("y", "classes"), [(np.full(N, "0"), (0, 1)), (np.zeros(N), ("a", "b"))])
def test_another_kind_of_labels_is_a_wrong_form(y, classes):
    with pytest.raises(InvalidInput, match="as the declared classes do"):
        codes(y, classes)


def test_without_repair_an_odd_label_is_an_error():
    y = labels().tolist()
    y[0] = "x"
    with pytest.raises(InvalidValue):
        classifier(on_invalid="error").fit(rows(), y)


class TestGapsAtTheMechanism:
    """A stage that declares gaps without filling them leaves none to a mechanism."""

    class Careless(RowMap):
        fills_gaps = True

    def test_is_refused_before_any_data(self):
        stage = self.Careless(np.tanh, out_ranges=(-1, 1))
        pipe = Pipeline([("map", stage), ("clip", NormClipper(1.0)), ("mean", GaussianMechanism())])
        with pytest.raises(UnsupportedOrder, match="may have missing values") as caught:
            pipe.plan(Domain(n_rows=100, n_features=2))
        assert caught.value.stage == "mean"


@pytest.mark.parametrize("name", ["a\0b", "a\x1b[2J", "a\nb"])
def test_names_of_steps_are_printable(name):
    with pytest.raises(InvalidParameter, match="printable"):
        Pipeline([(name, NormClipper(1.0)), ("mean", GaussianMechanism())]).plan(Domain(n_rows=100, n_features=2))


@pytest.mark.parametrize(
    "labels",
    [
        pa.array([1, 0, None, 2**60, 2**60 + 1]),
        pa.array([True, False, None]),
        pa.array([1.0, math.nan, None, 0.1], pa.float32()),
        pa.array([2**63 + 5, 1], pa.uint64()),
        pa.chunked_array([[1, 0], [None]]),
        pd.array([1, None, 0], dtype="Int64"),
        pd.array([True, None], dtype="boolean"),
    ],
)
@pytest.mark.parametrize(
    "classes", [(0, 1), (True, False), ("a", "b"), (2**60, 2**60 + 1), (0.1, 1.0), (-5, 2**63 + 5)]
)
@pytest.mark.repeated("classes", keep=2)
def test_numbers_with_gaps_are_coded_as_their_cells_are(labels, classes):
    y = column(labels)
    if isinstance(classes[0], str):
        with pytest.raises(InvalidInput):  # by its type
            read_labels(y, classes)
        return
    if getattr(labels, "type", None) == pa.float32() and max(map(abs, classes)) > 2**53:
        with pytest.raises(InvalidInput, match="two classes may be one"):
            read_labels(y, classes)
        return
    wanted = encode_labels(cells(y), classes)
    known = ~np.isnan(wanted)
    assert np.array_equal(settled_labels(read_labels(y, classes), "repair"), np.where(known, wanted, 0.0))
    if not known.all():
        with pytest.raises(InvalidValue):
            settled_labels(read_labels(y, classes), "error")
