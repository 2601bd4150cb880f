"""What single cells are read as: ids, far dates, labels of another type, and the masks of what is improper."""

import datetime
import decimal
import ipaddress
import threading
import time
import tracemalloc
import uuid
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from forked import ended, fork, forks
from refusals import N, classifier, labels, rows

from ppdp import Adjacency, Domain, make_pipeline
from ppdp.data import cells
from ppdp.data.slot_assignment import NOBODY, check_groups, encode_ids
from ppdp.data.validation import check_labels, read_labels
from ppdp.exceptions import InvalidInput
from ppdp.mechanisms import GaussianMechanism, LinearRegression
from ppdp.transformers import DateEncoder, MinMaxScaler

PERSONS = Adjacency.user_level(1)
UUIDS = [uuid.UUID(int=number % 7) for number in range(20)]
DAY = datetime.date(2020, 1, 1)
LIKE_TEXT = {
    "UUIDs": UUIDS,
    "texts of NumPy": [*map(np.str_, "abcab")],
    "whole numbers of NumPy": [*map(np.int64, [7, 8, 7])],
    "bytes": [b"a", b"b", b"a"],
    "whole decimals": [decimal.Decimal("7"), decimal.Decimal(10**30)],
    "dates": [DAY, datetime.date(2020, 1, 2), DAY],
    "addresses": [ipaddress.ip_address("10.0.0.1"), ipaddress.ip_address("::1")],
    "long numbers": [10**4299, -(10**4299)],
}


@pytest.mark.parametrize("kind", LIKE_TEXT)
def test_ids_are_those_of_their_texts(kind):
    ids = LIKE_TEXT[kind]
    texts = [one.decode() if isinstance(one, bytes) else str(one) for one in ids]
    codes = encode_ids(None, [*ids, *texts], "error").tolist()
    assert codes[: len(ids)] == codes[len(ids) :]
    assert NOBODY not in codes
    assert len(set(codes)) == len(set(ids))


def test_numbers_that_python_does_not_write_are_ids():
    ids = [10**5000, 10**5000 + 1, "1" + "0" * 5000, np.timedelta64(3, "D"), decimal.Decimal("1E+999999999"), "3"]
    assert encode_ids(None, ids, "repair").tolist() == [0, 1, 0, NOBODY, NOBODY, 2]


def test_ids_of_the_other_byte_order_are_ids():
    """As tables of astronomers hold them."""
    for kind in (">i4", "<i4", ">u8", ">U3"):
        assert encode_ids(None, np.array([7, 7, 300], kind), "error").tolist() == [0, 0, 1]


def test_a_day_is_one_id_in_every_container():
    instants = [DAY, datetime.datetime(2020, 1, 1), pd.Timestamp("2020-01-01"), "2020-01-01"]
    instants += [np.datetime64("2020-01-01"), np.datetime64("2020-01-01", "ns"), np.datetime64("2020-01-01", "h")]
    assert set(encode_ids(None, instants, "error").tolist()) == {0}


def test_uuids_of_arrow_are_those_of_their_texts():
    stored = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([one.bytes for one in UUIDS], pa.binary(16)))
    expected = encode_ids(None, [*map(str, UUIDS)], "error")
    assert encode_ids(None, stored, "error").tolist() == expected.tolist()
    table = pa.table({"a": np.linspace(-1, 1, 20), "who": stored})
    pipe = make_pipeline(
        MinMaxScaler(ranges=(-1, 1)), GaussianMechanism(), epsilon=9.0, delta=1e-4, adjacency=PERSONS, random_state=0
    ).set_params(domain=Domain(n_rows=20, n_features=1))
    one, other = (
        pipe.fit(held, groups="who").release_.sha256
        for held in (table, table.set_column(1, "who", pa.array([*map(str, UUIDS)])))
    )
    assert one == other


@pytest.mark.parametrize(
    "ids",
    [
        pd.Series(pd.to_datetime(["2020"] * 4)),
        pd.Series(pd.interval_range(0, 4)),
        pd.Series(pd.period_range("2020", periods=4)),
        pd.Categorical([0.5, 1.5, 0.5, 1.5]),
        pa.array([[1], [2], [3], [4]]),
        pa.array([{"a": 1}] * 4),
        pa.nulls(4),
        pl.Series([0.5] * 4),
        np.zeros(4, dtype=bool),
        np.zeros(4, dtype=[("a", int)]),
    ],
    ids=lambda ids: type(ids).__name__,
)
def test_columns_that_can_hold_no_ids_are_refused_by_their_type(ids):
    with pytest.raises(InvalidInput, match="whole numbers or text"):
        check_groups(np.zeros((4, 1)), ids, PERSONS)


def in_arrow(values):
    return pd.Series(pd.arrays.ArrowExtensionArray(values))


FAR = {
    "years of NumPy": np.array([10**9, "NaT", 0], dtype="M8[Y]"),
    "days of NumPy": np.array([-(10**12), "NaT", 0], dtype="M8[D]"),
    "minutes in steps": np.array([2**58, "NaT", 0], dtype="M8[25m]"),
    "seconds with a zone": pd.Series(np.array([2**50, "NaT", 0], dtype="M8[s]")).dt.tz_localize("UTC"),
    "days of Arrow": in_arrow(pa.array([2**31 - 1, None, 0], pa.int32()).cast(pa.date32())),
    "seconds of Arrow": in_arrow(pa.array([2**62, None, 0]).cast(pa.timestamp("s", "Europe/Oslo"))),
    "hidden by a mask": np.ma.masked_array(np.array([10**9, 5, 0], dtype="M8[D]"), [0, 1, 0]),
    "objects": np.array([np.datetime64(2**60, "s"), None, np.datetime64(0, "D")], dtype=object),
}


@pytest.mark.parametrize("held", FAR)
def test_dates_that_64_bits_do_not_hold_are_improper(held):
    """They came out as other dates, which may lie within a public range."""
    read = cells.dates(FAR[held])
    assert np.array_equal(read.values, [np.inf, np.nan, 0.0], equal_nan=True)
    assert read.improper.tolist() == [True, False, False]


@pytest.mark.skipif(not hasattr(pa, "list_view"), reason="newer than this version of Arrow")
@pytest.mark.parametrize("held", [None, [1.0]])
def test_views_of_lists_are_improper_or_missing_also_if_all_are(held):
    """Where all were missing, Arrow ended the process."""
    for kind, cell in ((pa.list_view(pa.float64()), held), (pa.list_(pa.list_view(pa.float64())), held and [held])):
        read = cells.numbers(in_arrow(pa.array([None, cell], kind)))
        assert read.improper.tolist() == [False, held is not None]


@pytest.mark.parametrize("kind", ["M8[ns]", "M8[us]", "O"])
def test_the_first_instant_of_64_bits_is_in_1677_in_every_unit(kind):
    """NumPy's own way from nanoseconds comes out in 2262."""
    read = cells.dates(pd.Series([pd.Timestamp.min, pd.NaT, pd.Timestamp(0)]).astype(kind).to_numpy())
    assert np.array_equal(read.values, [np.floor(pd.Timestamp.min.value / 1e3) / 1e6, np.nan, 0.0], equal_nan=True)
    assert not read.improper.any()


def test_an_endless_number_of_days_is_improper_as_in_a_column_of_numbers():
    encoder = DateEncoder(("1990-01-01", "2030-12-31"))
    for column in (np.array([np.inf, 9000.0]), np.array([np.inf, 9000.0], dtype=object)):
        assert encoder.coded(column[:, None])[:, 0].astype(float).tolist() == [np.inf, 9000.0]


def test_masks_tell_improper_cells_from_missing_ones():
    mixed = np.array([1, None, "x", "2", np.inf], dtype=object)
    values, improper = cells.numbers(mixed)
    assert np.array_equal(values, [1.0, np.nan, np.inf, 2.0, np.inf], equal_nan=True)
    assert improper.tolist() == [False, False, True, False, False]
    values, improper = cells.codes(np.array(["a", None, "A"], dtype=object), ("a", "b"))
    assert np.array_equal(values, [0.0, np.nan, np.inf], equal_nan=True)
    assert improper.tolist() == [False, False, True]
    values, improper = cells.identifiers(np.array(["a", None, 0.5], dtype=object))
    assert values.tolist() == ["a", None, None]
    assert improper.tolist() == [False, False, True]


def test_threads_that_read_leave_warnings_as_they_were():
    """Of two that silence them by turns the last one would bring back what the first had silenced."""
    second_reads, first_has_read = threading.Event(), threading.Event()

    class First:
        def __float__(self):
            second_reads.wait(0.2)
            return 1.0

    class Second:
        def __float__(self):
            second_reads.set()
            first_has_read.wait(0.2)
            return 2.0

    def first():
        read = cells.numbers(np.array([First()], dtype=object))
        first_has_read.set()
        return read

    before = list(warnings.filters)
    with ThreadPoolExecutor(2) as threads:
        one = threads.submit(first)
        other = threads.submit(cells.numbers, np.array([Second()], dtype=object))
        assert (one.result().values[0], other.result().values[0]) == (1.0, 2.0)
    assert warnings.filters == before


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (pd.array(["0", "1"] * 2, dtype="string"), (0, 1)),
        (pa.array(["0", "1"] * 2), (0, 1)),
        (pd.Categorical(["0", "1"] * 2), (0, 1)),
        (np.array([b"a", b"b"] * 2), ("a", "b")),
        (np.array([True, False] * 2), ("a", "b")),
    ],
    ids=lambda given: type(given).__name__,
)
def test_labels_whose_type_holds_no_class_are_refused_by_it(y, classes):
    column = check_labels(np.zeros((4, 1)), y, LinearRegression())
    with pytest.raises(InvalidInput, match="as the declared classes do"):
        read_labels(column, classes)


def test_records_and_sparse_objects_are_refused_by_their_type():
    from scipy.sparse import csr_array

    with pytest.raises(InvalidInput, match="column of labels"):
        classifier().fit(rows(), np.zeros(N, dtype=[("a", int)]))
    objects = csr_array(rows())
    objects.data = objects.data.astype(object)
    with pytest.raises(InvalidInput, match="sparse array of objects"):
        classifier().fit(objects, labels())


def test_classes_of_two_kinds_are_not_made_one():
    """NumPy makes text of all of them, and then the numbers among the labels are none."""
    y = np.array([0, "1"] * (N // 2), dtype=object)
    with pytest.raises(InvalidInput, match="classes of one kind"):
        classifier(on_invalid="repair").set_params(model__classes=None).fit(rows(), y)


def with_bad_bytes(texts):
    """Text of Arrow whose last cell is not UTF-8."""
    raw = pa.array([*(text.encode() for text in texts), b"\xff"])
    return pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())


TWINS = {
    "text with a zero byte": (np.array(["a\0", "b"], dtype=object), pa.array(["a\0", "b"]), ["a", "b"]),
    "text that is not UTF-8": (np.array(["a", "b", "?"]), with_bad_bytes("ab"), ["a", "b"]),
    "short floats": (np.array([0.1, 1], np.float32), pa.array([0.1, 1], pa.float32()), [0.1, 1]),
    "NaN": (np.array([0.0, np.nan]), pa.array([0.0, np.nan]), [0, 1]),
}


@pytest.mark.parametrize("kind", TWINS)
def test_labels_in_arrow_are_read_as_elsewhere(kind):
    plain, stored, classes = TWINS[kind]
    own, other = (cells.codes(column, classes) for column in (plain, pd.arrays.ArrowExtensionArray(stored)))
    np.testing.assert_array_equal(own.values, other.values)
    np.testing.assert_array_equal(own.improper, other.improper)


def test_a_long_text_takes_its_own_room_and_not_that_of_every_row():
    column = pd.arrays.ArrowExtensionArray(pa.array(["a"] * 300 + ["x" * 100_000]))
    tracemalloc.start()
    read = cells.codes(column, ["a", "b"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert read.improper.sum() == 1
    assert peak < 20 * 100_000


@forks
def test_tuples_within_tuples_are_no_labels():
    """Python ends where it hashes them, so in a process of its own."""

    def work():
        deep = ()
        for _ in range(1_000_000):
            deep = (deep,)
        column = np.fromiter(["a", deep, ("a",)], dtype=object, count=3)
        assert cells.codes(column, ["a"]).improper.tolist() == [False, True, True]

    assert ended(fork(work)) == 0


def test_long_cells_are_read_in_one_go():
    """With a second way to part its digits the text takes a minute, as bytes do that are replaced one by one."""
    started = time.process_time()
    assert cells.text_of("1" * 40_000 + "x") == ""
    assert encode_ids(None, ["1", 1 << 3_322_000, 10**9_999], "repair").tolist() == [0, NOBODY, 1]
    odd = b"\xff" * 30_000_000
    assert encode_ids(None, [odd, odd[1:], odd], "repair").tolist() == [0, 1, 0]
    assert time.process_time() - started < 5
