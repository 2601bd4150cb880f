"""One odd cell, whatever it is and wherever it stands: nothing stops, and every other row is read as it was.

Cells are tried in every column that a fit reads (features, ranges and categories that are private, labels, targets,
ids, dates), in every container and engine that can hold them. What a cell becomes alone it becomes among all others.
"""

import collections
import copy
import datetime
import decimal
import enum
import fractions
import functools
import ipaddress
import tracemalloc
import types
import uuid
import warnings
from itertools import chain

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from ppdp import Adjacency, Domain, Ledger, Pipeline, PrivateSearchCV, make_column_map
from ppdp.data.cells import codes, dates, numbers
from ppdp.data.deferred_input import resolve_inputs
from ppdp.data.engine.partitions import common, form_of, objects_in, schema_of, table_of
from ppdp.data.frames import column, opened
from ppdp.data.slot_assignment import NOBODY, encode_ids
from ppdp.data.stream import Stream
from ppdp.exceptions import DiagnosticWarning, InvalidInput, PpdpError
from ppdp.mechanisms import GaussianMechanism, LinearRegression, LogisticRegression
from ppdp.pipeline.fit import Fit
from ppdp.pipeline.search.candidates import row_scores
from ppdp.pipeline.steps import as_texts
from ppdp.transformers import (
    CategoryEncoder,
    DateEncoder,
    FeatureHasher,
    HashingVectorizer,
    MeanImputer,
    MinMaxScaler,
    TargetMeanEncoder,
)
from ppdp.transformers.columns.feature_hasher import TermsParser

WORD = "SENTINEL-PATIENT"
MONTHS = [f"2020-{month:02}-01" for month in range(1, 13)]


class Odd(enum.Enum):
    WORD = WORD


def raising(kind, base=object):
    """A class of which every use raises."""

    def fail(*_, **__):
        raise kind(WORD)

    own = ["float", "int", "index", "eq", "lt", "hash", "repr", "str", "bool", "array", "len", "iter", "getitem", "abs"]
    own += ["format", "bytes", "contains", "add", "sub", "mod", "complex", "round", "trunc", "floordiv", "truediv"]
    body = {f"__{name}__": fail for name in own} | {"strip": fail, "decode": fail, "encode": fail, "isoformat": fail}
    body |= {"astimezone": fail, "is_nan": fail, "item": fail, "lower": fail}
    return type("Raising", (base,), body)


class Elsewhere:
    """Its class cannot be asked for."""

    @property
    def __class__(self):
        raise RuntimeError(WORD)


class Impostor:
    """It says that it is a text."""

    __class__ = str


class Everything:
    """It equals whatever it is compared with."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return hash("a")

    def __float__(self):
        return float("nan")


class Meta(type):
    def __hash__(cls):
        raise SystemExit(WORD)

    def __eq__(cls, other):
        raise RuntimeError(WORD)


class OfMeta(metaclass=Meta):
    pass


class WrittenAddress(ipaddress.IPv4Address):
    def __init__(self, _):
        super().__init__("1.2.3.4")


DEEP = []
for _ in range(200):
    DEEP = [DEEP]

NUMBERS = [10**400, 10**5000, -(10**5000), 2**53 + 1, True, 1e308, 5e-324, np.inf, -0.0, np.longdouble(2)]
NUMBERS += [decimal.Decimal("sNaN"), decimal.Decimal("1E+999999999"), decimal.Decimal("NaN"), fractions.Fraction(1, 3)]
NUMBERS += [fractions.Fraction(10**400), 1j, np.complex64(1), np.timedelta64(3, "D"), np.timedelta64(0, "s")]
NUMBERS += [np.int8(1), np.float16("nan"), np.bool_(True), np.uint64(2**64 - 1)]
TIMES = [np.datetime64("NaT"), np.timedelta64("NaT"), np.datetime64(10**9, "Y"), np.datetime64("2020-01"), pd.NaT]
TIMES += [np.datetime64(2**62, "s"), np.datetime64(-(2**62), "D"), datetime.date.max, datetime.time(1)]
TIMES += [datetime.datetime.max.replace(tzinfo=datetime.timezone(-datetime.timedelta(hours=9)))]
TIMES += [datetime.datetime.min.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=9))), pd.Timestamp.max]
TIMES += [datetime.timedelta(1), pd.Timedelta(1, "D"), pd.Period("2020"), pd.Interval(0, 1)]
TEXTS = ["", " ", WORD, "nan", "-inf", "1_0", "٣", "\ud800", "a\0b", "1" * 5000, "x" * 70_000, "2020-13-45", "1e999"]
TEXTS += ["9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", np.str_("a"), b"", b"\xff", b"a", np.bytes_(b"1")]
THINGS = [None, pd.NA, np.ma.masked, [], [0], (1, 2), {}, {WORD: 1}, {1}, DEEP, range(3), bytearray(b"1"), print, int]
THINGS += [memoryview(b"1"), np.array(1), np.array([1.0]), np.array([]), np.void(b"a"), pd.Series([1]), pd.DataFrame()]
THINGS += [object(), ..., NotImplemented, Odd.WORD, uuid.UUID(int=7), ipaddress.ip_address("::1"), slice(None)]
KINDS = [RuntimeError, RecursionError, MemoryError, OverflowError, StopIteration, GeneratorExit, SystemExit, Warning]
HOSTILE = [Elsewhere(), Impostor(), Everything(), OfMeta(), OfMeta, *(raising(kind)() for kind in KINDS)]
HOSTILE += [raising(ValueError, base)(made) for base, made in [(str, "a"), (int, 1), (float, 0.5), (bytes, b"a")]]
HOSTILE += [raising(OSError, decimal.Decimal)(1), raising(KeyError, datetime.datetime)(2020, 1, 1)]
HOSTILE += [raising(ValueError, base)(made) for base, made in [(np.float64, 1), (np.str_, "a"), (np.bytes_, b"a")]]
HOSTILE += [raising(ValueError, uuid.UUID)(int=1)]
TEXT = raising(SystemExit, str)("a")
HOSTILE += [type("Written", (base,), {"__str__": lambda _: TEXT})("1.5") for base in (decimal.Decimal, WrittenAddress)]
CELLS = [*NUMBERS, *TIMES, *TEXTS, *THINGS, *HOSTILE]
N = len(CELLS) + 8


def objects(cells):
    return np.fromiter(cells, dtype=object, count=len(cells))


def spread(good, odd):
    """A column of good cells, and at these places others."""
    column = objects([good[i % len(good)] for i in range(N)])
    for place, cell in odd.items():
        column[place] = cell
    return column


# Where cells are read: what stands in their column elsewhere, and the pipeline, whose other columns are plain.

YEARS = ("1990-01-01", "2030-12-31")
BOX = MinMaxScaler(ranges=(-1, 1))
PLAIN = (BOX, ["b"])
MODEL = LogisticRegression(classes=(0, 1), max_iter=3)
ENCODERS = {
    "dates": (MONTHS, lambda: DateEncoder(YEARS)),
    "dates in a format": (["1.2.2020", "3.4.2020"], lambda: DateEncoder(YEARS, format="%d.%m.%Y")),
    "categories": (["a", "b"], lambda: CategoryEncoder(["a", "b"])),
    "categories of numbers": ([0, 1, 2], lambda: CategoryEncoder([0, 1, 2])),
    "private categories": (["a", "b"], lambda: CategoryEncoder("private", max_categories=5)),
}


def steps_of(reader):
    """What is in front of the mechanism, the mechanism, and what stands in the column."""
    if reader in ENCODERS:
        good, make = ENCODERS[reader]
        return [("columns", make_column_map((make(), ["a"]), PLAIN))], MODEL, good
    if reader == "means of categories":
        first = make_column_map((CategoryEncoder(["a", "b"], encoding="ordinal"), ["a"]), PLAIN)
        return [("columns", first), ("means", TargetMeanEncoder(["a"]))], MODEL, ["a", "b"]
    box = MinMaxScaler("private") if reader == "private ranges" else BOX
    mechanisms = {"targets": LinearRegression(y_range=(-1, 1)), "ids": GaussianMechanism()}
    mechanisms["labels of text"] = LogisticRegression(classes=("a", "b"), max_iter=3)
    good = {"labels": [0, 1], "labels of text": ["a", "b"], "ids": [*"abcdefg"]}.get(reader, [0.25, -0.5, 1])
    return [("box", box), ("impute", MeanImputer(fit_mode="noisy"))], mechanisms.get(reader, MODEL), good


READERS = [*ENCODERS, "means of categories", "numbers", "private ranges", "labels", "labels of text", "targets", "ids"]


def fit_of(reader, column):
    """An unfitted pipeline, and what it is to be fitted on."""
    steps, mechanism, _ = steps_of(reader)
    b = np.linspace(-1, 1, len(column))
    y, groups = np.arange(len(column)) % 2, None
    shared = {"epsilon": 20.0, "delta": 1e-4, "on_invalid": "repair", "random_state": 0}
    X = np.column_stack([b, -b])
    if reader == "ids":
        groups, y = column, None
        shared |= {"adjacency": Adjacency.user_level(2), "domain": Domain(n_rows=len(column), n_features=2)}
    elif reader.startswith(("labels", "targets")):
        y = column
    else:
        X = pd.DataFrame({"a": pd.Series(column, dtype=object), "b": b})
    return Pipeline([*steps, ("last", mechanism)], **{"diagnostics": None, **shared}), X, y, groups


def read(pipe, X, y=None, groups=None):
    """What every row is to a fit, in words: its numbers or the texts that they stand for, its label, whose it is."""
    if groups is not None:
        codes = encode_ids(X, groups, "repair").tolist()
        return [NOBODY if code == NOBODY else codes.index(code) for code in codes]
    _, rows = Fit.of(copy.copy(pipe), X, y, None, None).rows()
    return list(chain.from_iterable(rows.over(in_words) if isinstance(rows, Stream) else [in_words(rows)]))


def in_words(rows):
    words = [[repr(value) for value in row] for row in rows.X.tolist()]
    for i, texts in (rows.texts or {}).items():
        for row, code in zip(words, rows.X[:, i]):
            row[i] = texts[int(code)] if code >= 0 else repr(code)
    return list(zip(map(tuple, words), [None] * rows.n if rows.y is None else rows.y.tolist()))


ALL = dict(zip(range(8, N), CELLS))


@functools.cache
def rows_of(reader):
    """What good cells are to a fit, and what all odd ones are among them."""
    return tuple(read(*fit_of(reader, spread(steps_of(reader)[2], odd))) for odd in ({}, ALL))


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.filterwarnings(
    "error", *(f"ignore::ppdp.exceptions.{kind}Warning" for kind in ("Composition", "Noise", "Diagnostic"))
)
def test_all_cells_together_change_no_row_and_stop_no_fit(reader):
    whole, among = rows_of(reader)
    assert among[:8] == whole[:8]
    pipe, *given = fit_of(reader, spread(steps_of(reader)[2], ALL))
    assert pipe.fit(*given).certificate_
    if "categories" in reader:  # of which none is an error
        return
    with pytest.raises(PpdpError) as caught:
        pipe.set_params(on_invalid="error").fit(*given)
    assert WORD not in str(caught.value)


@pytest.mark.parametrize("place", ALL)
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.repeated("place", keep=3)
def test_a_cell_is_alone_what_it_is_among_others(reader, place):
    whole, among = rows_of(reader)
    pipe, *given = fit_of(reader, spread(steps_of(reader)[2], {place: ALL[place]}))
    alone = read(pipe, *given)
    assert alone[:place] == whole[:place]
    assert alone[place + 1 :] == whole[place + 1 :]
    assert reader == "ids" or alone[place] == among[place]
    assert pipe.fit(*given).certificate_


@pytest.mark.parametrize("reader", ["dates", "numbers", "labels", "targets"])
def test_no_cell_stops_a_search(reader):
    pipe, X, y, _ = fit_of(reader, spread(steps_of(reader)[2], ALL))
    grid = {"last__fit_intercept": [False, True]}
    search = PrivateSearchCV(pipe.set_params(epsilon=None, random_state=None), grid, epsilon=20.0)
    assert search.fit(X, y).certificate_


@pytest.mark.filterwarnings("error")
def test_no_label_speaks_in_a_score_of_ones_own():
    def warned(*_):
        warnings.warn(WORD, DiagnosticWarning, stacklevel=1)

    spoken = type("Spoken", (str,), {"__eq__": warned, "__hash__": str.__hash__})
    y = objects([raising(SystemExit)(), raising(GeneratorExit, str)("a"), spoken("a"), "a", "b"])
    scores = row_scores(Domain(), y, np.full(5, "a"), lambda *both: both[0] == both[1], regression=False)
    assert scores.tolist() == [0, 1, 1, 1, 0]


@pytest.mark.parametrize("what", ["lists", "an array", "a frame"])
def test_containers_of_objects_read_alike(what):
    """A matrix of objects, whose second column has every odd cell."""
    X = np.column_stack([spread([0.25], {}), spread([0.25, -0.5], ALL)])
    held = {"lists": [list(row) for row in X], "an array": X, "a frame": pd.DataFrame(X)}[what]
    pipe, plain, y, _ = fit_of("numbers", spread([0.25, -0.5], ALL))
    rows = read(pipe, held, y)
    assert [row[0][1] for row in rows] == [row[0][0] for row in read(pipe, plain, y)]
    assert pipe.fit(held, y).certificate_


@pytest.mark.parametrize(
    "container", [list, tuple, lambda y: [[label] for label in y]], ids=["list", "tuple", "column"]
)
@pytest.mark.parametrize("reader", ["labels", "labels of text", "targets", "ids"])
def test_no_cell_of_a_list_stops_a_fit(reader, container):
    pipe, X, y, groups = fit_of(reader, spread(steps_of(reader)[2], ALL))
    given = [None if one is None else container(one) for one in (y, groups)]
    assert pipe.fit(X, *given).certificate_
    read_alike = zip(read(pipe, X, *given), read(pipe, X, y, groups))
    assert [place for place, (one, other) in enumerate(read_alike) if one != other and ALL[place] != [0]] == []


@pytest.mark.parametrize("cells", [["a", "b"], ["a", "\ud800"], ["a", 1], [datetime.datetime(2020, 1, 1)] * 2])
def test_no_cell_decides_over_the_type_of_a_column_of_objects(cells):
    held = pl.DataFrame({"a": pl.Series("a", cells, dtype=pl.Object)})
    assert opened(held)["a"].dtype == object
    assert column(held["a"]).dtype == object


TYPED = {
    "numbers": [
        pa.array([1, -(2**63), 2**53 + 1, None], pa.int64()),
        pa.array([1, 2**64 - 1], pa.uint64()),
        pa.array([0.5, np.nan, -np.inf, 5e-324, None]),
        pa.array([0.5, np.inf], pa.float16()),
        pa.array([decimal.Decimal(1), decimal.Decimal(10**75), None], pa.decimal256(76, 0)),
        pa.array([True, None]),
        pa.array(["0.5", "nan", "1_0", "٣", "1" * 5000, "", WORD, None]),
    ],
    "dates": [
        pa.array([0, 2**31 - 1, -(2**31), None], pa.int32()).cast(pa.date32()),
        pa.array([0, 2**62, None], pa.int64()).cast(pa.timestamp("s")),
        pa.array([0, 2**62, -(2**62)], pa.int64()).cast(pa.timestamp("us", "Europe/Oslo")),
        pa.array([0, 2**62, None], pa.int64()).cast(pa.timestamp("ns")),
        pa.array([0, 86_400_000 * 10**9, None], pa.int64()).cast(pa.date64()),
        pa.array(["2020-01-01", WORD, "0001-01-01T00:00:00+23:59", "1" * 5000, "", None]),
    ],
    "categories": [pa.array(["a", "A", "a\0", WORD, "", None]), pa.array(["a", None, "b", WORD]).dictionary_encode()],
    "private categories": [pa.array(["a", "a\0b", "x" * 70_000, None]), pa.array([7, 2**63 - 1, None])],
    "labels": [
        pa.array([1, -(2**63), None]),
        pa.array([1, 2**64 - 1], pa.uint64()),
        pa.array([1.0, np.nan, None]),
        pa.array([2**53 + 1, 2, None]).dictionary_encode(),
    ],
    "labels of text": [pa.array(["a", "A", "", None]), pa.array(["a", None, WORD]).dictionary_encode()],
    "targets": [
        pa.array([1, 2**62, None]),
        pa.array([0.5, np.nan, np.inf]),
        pa.array(["0.5", WORD, "nan"]),
    ],
    "ids": [
        pa.array([1, -(2**63), None]),
        pa.array(["a", "", "1" * 5000, None]),
        pa.array([b"a", b"\xff", None]),
        pa.array([1, 2**53 + 1, None]).dictionary_encode(),
    ],
}


NULLABLE = {pa.int64(): pd.Int64Dtype(), pa.uint64(): pd.UInt64Dtype(), pa.bool_(): pd.BooleanDtype()}


def cannot_hold(engine, kind):
    """Whether the cells of such a column cannot be put there, whoever reads them."""
    return {"polars": pa.types.is_decimal256(kind), "Parquet": kind == pa.timestamp("s")}.get(engine, False)


def in_engine(table, engine, folder):
    """The same rows; those in blocks are to be read again and again."""
    if engine == "Parquet":
        pq.write_table(table, folder / "rows.parquet", row_group_size=9)
        return folder
    return {
        "Arrow": lambda: table,
        "polars": lambda: pl.from_arrow(table),
        "pandas": lambda: table.to_pandas(types_mapper=NULLABLE.get, date_as_object=False),
        "dataset": lambda: ds.dataset(table),
        "batches": lambda: table.to_reader(max_chunksize=7),
    }[engine]()


@pytest.mark.parametrize("engine", ["Arrow", "polars", "pandas", "dataset", "batches", "Parquet"])
@pytest.mark.parametrize(("reader", "column"), [(reader, one) for reader, columns in TYPED.items() for one in columns])
@pytest.mark.repeated("engine")
def test_no_cell_of_a_typed_column_stops_a_fit_and_none_changes_another(reader, column, engine, tmp_path):
    if cannot_hold(engine, column.type):
        pytest.skip(f"no {column.type} in {engine}")
    good = pa.concat_arrays([column.slice(0, 1)] * 20)
    read_alike = []
    for which, middle in enumerate((column, good.slice(0, len(column)))):
        held = pa.concat_arrays([good, middle, good])
        table = pa.table({"b": np.linspace(-1, 1, len(held)), "c": np.arange(len(held)) % 2, "a": held})
        named = {"groups": "a"} if reader == "ids" else {"y": "a" if reader.startswith(("labels", "targets")) else "c"}
        pipe, *_ = fit_of(reader, held)
        folder = tmp_path / f"{which}"
        folder.mkdir()
        ledger = Ledger()
        try:
            with ledger:
                assert pipe.fit(in_engine(table, engine, folder), **named).certificate_
        except InvalidInput:  # by the type of its column, whatever stands there
            assert not len(ledger)
            read_alike.append([])
        else:
            with resolve_inputs(in_engine(table, engine, folder), named.get("y"), named.get("groups")) as given:
                read_alike.append(read(pipe, *given[:3]))
    odd, plain = read_alike
    assert odd[:20] == plain[:20]
    assert odd[-20:] == plain[-20:]


@pytest.mark.parametrize("kind", ["int8", "uint64", "int64", "Int64"])
def test_one_missing_cell_of_whole_categories_makes_no_other_cell_another(kind):
    """Of pandas' categories NumPy makes floats where one is missing, and a float is no id."""
    ids = pd.Categorical.from_codes([0, 0, 1, -1], categories=pd.Index([101, 102], dtype=kind))
    assert encode_ids(np.zeros((4, 1)), pd.Series(ids), "repair").tolist() == [0, 0, 1, NOBODY]


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint8(), pa.large_string(), pa.decimal128(38, 0)])
def test_a_missing_value_among_the_values_of_a_dictionary_makes_no_other_cell_another(kind):
    """Of whole numbers Arrow makes floats there, and a float is no id."""
    ids = pc.dictionary_encode(pa.array([101, 102, 101, None]).cast(kind), null_encoding="encode")
    chunked = pa.chunked_array([ids, ids.slice(0, 0), ids.slice(1, 1)])
    for given, read in [(ids, [0, 1, 0, NOBODY]), (chunked, [0, 1, 0, NOBODY, 1])]:
        assert encode_ids(np.zeros((len(read), 1)), given, "repair").tolist() == read


@pytest.mark.parametrize("held", [["a", "b", None], ["a", "b", "a"]])
def test_a_missing_value_in_a_dictionary_of_batches_stops_nothing(held):
    cells = pc.dictionary_encode(pa.array(held * 8), null_encoding="encode")
    table = pa.table({"b": np.linspace(-1, 1, 24), "a": cells})
    model = LogisticRegression(classes=("a", "b"), max_iter=3)
    pipe = Pipeline([("box", BOX), ("model", model)], epsilon=1.0, delta=1e-5, on_invalid="repair")
    assert pipe.fit(table.to_reader(), y="a").certificate_


@pytest.mark.parametrize("place", range(4))
def test_labels_that_are_read_are_not_quoted(place):
    odd = WORD + "\ud800", np.timedelta64(77, "D"), np.datetime64("1977-07-07"), raising(SystemExit, str)(WORD)
    cell = odd[place]
    labels = objects([cell, *["a", "b"] * 6] if isinstance(cell, str) else [cell, *[0, 1] * 6])
    pipe = Pipeline([("box", BOX), ("model", LogisticRegression(max_iter=3))], epsilon=1.0, delta=1e-5)
    with pytest.raises(InvalidInput, match="classes of one kind") as refused:
        pipe.fit(np.linspace(-1, 1, 13)[:, None], labels)
    assert WORD not in str(refused.value)
    assert "77" not in str(refused.value)


def test_a_list_of_texts_may_hold_any_cell(tmp_path):
    for container in (list, tuple):
        texts = container([None, *CELLS, tmp_path, "a word"])
        pipe = Pipeline(
            [("words", HashingVectorizer(n_features=4)), ("sum", GaussianMechanism())], epsilon=9, delta=1e-5
        )
        assert pipe.set_params(on_invalid="repair").fit(texts).certificate_


@pytest.mark.parametrize("container", [collections.deque, collections.UserList])
@pytest.mark.parametrize("cell", ["a", b"a", 1j, [1]], ids=str)
def test_no_cell_of_any_sequence_decides_over_the_others(container, cell):
    """NumPy makes texts of truths where one cell is a text."""
    rows = [[True, 0.25], [False, 0.5], [cell, 0.5]]
    assert opened(container(rows)).tolist() == rows


@pytest.mark.parametrize(
    "odd", [None, "good wine", [], ["a", "b"], ("good wine",), np.array("a"), np.array(["a"])], ids=repr
)
def test_no_cell_of_a_list_of_lists_of_one_text_decides_over_the_others(odd):
    step = HashingVectorizer(n_features=4)
    for row in (["good wine"], ("good wine",), np.array(["good wine"])):
        assert as_texts(step, [row, row, odd])[0] == as_texts(step, ["good wine"])[0]
    if type(odd) is not list or len(odd) < 2:
        with pytest.raises(InvalidInput):  # as a column, the other rows would be missing
            as_texts(step, [["a", "b"], ["c", "d"], odd])


@pytest.mark.parametrize("held", [lambda: iter([1, 2, 3]), lambda: iter([1]), raising(SystemExit)], ids=range(3))
def test_a_row_that_lies_moves_no_cell_of_another(held):
    row = type("Row", (list,), {"__iter__": lambda _: iter(held())})([1, 2])
    rows = opened([[0.25, 0.5], row, [0.75, 1]]).tolist()
    assert [rows[0], rows[2]] == [[0.25, 0.5], [0.75, 1]]


def test_no_basket_decides_over_the_form_of_a_list_of_baskets():
    pipe = Pipeline([("names", FeatureHasher(n_features=4)), ("sum", GaussianMechanism())], epsilon=9, delta=1e-5)
    for odd in (["a", "b"], ["a"], [], None, {"a": "\ud800"}, np.broadcast_to(1.0, 10**12)):
        assert pipe.set_params(on_invalid="repair").fit([["a", "b"]] * 12 + [odd]).n_features_in_ == 1


def test_a_list_that_says_one_long_text_often_takes_little_room():
    tracemalloc.start()
    held = [["x" * 100_000] * 1000, np.broadcast_to("x" * 100_000, 1000), ["a"]]
    codes, _ = TermsParser().learned(pd.Series(objects(held)), "names")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.isinf(codes).tolist() == [True, True, False]
    assert peak < 40_000_000


def test_dictionaries_that_arrow_misreads_are_read_as_their_numbers():
    held = pa.chunked_array(
        [pa.array(np.array(some, np.float16)).dictionary_encode() for some in ([0, 1], [np.inf, 1])]
    )
    assert numbers(column(held)).values.tolist() == [0, 1, np.inf, 1]
    nothing = pa.DictionaryArray.from_arrays(pa.array([0, None], pa.int8()), pa.nulls(1))  # which ends the process
    assert np.isnan(numbers(column(nothing)).values).tolist() == [True, True]


def test_decimals_are_dates_as_other_numbers_are():
    held = pa.array([decimal.Decimal("1.5"), None])
    for cells in (held.dictionary_encode(), pl.Series(held.to_pylist(), dtype=pl.Object)):
        read = dates(column(cells), unit=2.0).values
        assert read[0] == 3.0
        assert np.isnan(read[1])
    assert dates(objects([decimal.Decimal("sNaN"), decimal.Decimal("1E+999999999")])).improper.all()


@pytest.mark.parametrize("cell", [decimal.Decimal("1.5"), datetime.time(1), datetime.date(2020, 1, 1)])
def test_frames_with_categories_that_pandas_cannot_make_empty_are_refused_by_their_type(cell):
    frame = pd.DataFrame({"a": pd.arrays.ArrowExtensionArray(pa.array([cell]).dictionary_encode())})
    with pytest.raises(InvalidInput, match="some column has a type"):
        form_of(frame)


def test_no_cell_of_an_index_is_looked_up():
    pipe, X, y, _ = fit_of("numbers", spread([0.25, -0.5], {}))
    X.index = pd.Index(objects([raising(SystemExit)(), *X.index[1:]]))
    assert len(pipe.fit(X, pd.Series(y, index=X.index)).predict(X)) == N


def test_a_column_of_a_type_of_its_own_is_read_cell_by_cell():
    class Own:
        dtype, shape = types.SimpleNamespace(kind="f"), (3,)

        def __len__(self):
            return 3

        def __getitem__(self, position):
            return (0.5, "a", [1.0])[position]

    assert numbers(Own()).values.tolist() == [0.5, np.inf, np.inf]
    assert codes(Own(), (0.5, "a")).values.tolist() == [0.0, 1.0, np.inf]
    Own.dtype = types.SimpleNamespace(kind="M")
    assert dates(Own(), unit=2.0).values.tolist() == [1.0, np.inf, np.inf]


@pytest.mark.parametrize("kind", range(4))
def test_categories_of_a_partition_are_texts_where_the_frame_says_so(kind):
    many = [f"{i:03}" for i in range(128)]  # as many as eight bits tell apart
    cells = ([datetime.datetime(2020, 1, 1)], [True, False], [pd.Interval(0, 1)], many)[kind]
    schema = schema_of([("a", pd.CategoricalDtype(["a"]))])
    alone, beside = (
        table_of(pd.DataFrame({"a": pd.Series(held, dtype=object).astype("category")}), 0, len(held), schema)
        for held in (cells, [*cells, "z"])
    )
    assert [*alone["a"].to_pylist(), "z"] == beside["a"].to_pylist()


DAY = datetime.datetime(2020, 1, 1)
PARTS = [  # cells of a part, cells of another, as they are read beside the first
    ([0.5, 0.25], [None, 1], [None, 1.0]),
    ([0.5], [None], [None]),
    ([1, 2], [0.5, 10**30], [0.5, 1e30]),
    ([1, 2], [1, None, "x"], [1.0, None, np.inf]),
    (["a"], ["b", None, 7, "\ud800", [1]], ["b", None, "7", "?", "\0"]),
    ([True], [False, None, 1, "x"], [False, None, None, None]),
    (pa.array([DAY], pa.timestamp("s")), [DAY.replace(microsecond=5)], [DAY.replace(microsecond=5)]),
    (pa.array([DAY], pa.timestamp("ns")), pa.array([DAY.replace(year=9999)]), [DAY.replace(year=9999)]),
    (pa.array([DAY], pa.timestamp("us", "UTC")), [None], [None]),
    (pa.array([-1], pa.timestamp("ns")), [DAY], [DAY]),  # a nanosecond before 1970 is in 1969
    (pa.array(["a"]).cast(pa.dictionary(pa.int8(), pa.string())), pa.array(["b"] * 9).dictionary_encode(), ["b"] * 9),
]


@pytest.mark.parametrize("frames", [False, True])
@pytest.mark.parametrize(("cells", "odd", "as_read"), PARTS)
def test_a_part_whose_cells_say_another_type_is_read_as_the_others_are(cells, odd, as_read, frames):
    """As Ray makes parts of items, and Dask partitions by pandas' functions."""
    parts = []
    for held in (cells, odd):
        try:
            parts.append(pa.table({"a": held}))
        except (pa.ArrowException, UnicodeError, OverflowError):
            parts.append(pd.DataFrame({"a": pd.Series(held, dtype=object)}))
    if frames:
        parts = [part if hasattr(part, "iloc") else part.to_pandas(types_mapper=pd.ArrowDtype) for part in parts]
    forms = [form_of(part) for part in (*parts, parts[0])]
    schema = common(forms, forms[0][0] if frames else None)
    assert objects_in(schema, forms) == ()
    assert schema == common(forms[::-1], forms[0][0] if frames else None)
    assert getattr(schema.field("a").type, "index_type", pa.int32()) == pa.int32()  # for any number of categories
    read = [table_of(part, 0, 9, schema)["a"].to_pylist() for part in parts]
    assert read[1] == as_read
    assert str(read[0][0]).startswith(str(pa.array(cells)[0])[:26])


@pytest.mark.parametrize(
    ("cells", "odd"),
    [
        (pa.array(["17"]), pa.array([17])),  # with a missing value the numbers are 17.0
        (pa.array(["17"]).dictionary_encode(), pa.array([17.0]).dictionary_encode()),
        ([DAY], pd.DataFrame({"a": pd.Series([DAY, "x"], dtype=object)})),
        ([DAY], [DAY.date()]),  # of which Ray cuts all times of a block
        ([decimal.Decimal("0.5")], [decimal.Decimal("10.25")]),
        (pa.array([0.1], pa.float32()), [0.1]),  # of which another number is 0.1
        ([1], pa.array([True]).dictionary_encode()),
        ([True], [1]),
    ],
)
@pytest.mark.parametrize("given", [False, True])
def test_parts_whose_types_one_cell_would_decide_over_all_others_are_refused(cells, odd, given):
    forms = [form_of(part if hasattr(part, "iloc") else pa.table({"a": part})) for part in (cells, odd)]
    assert common(forms, forms[0][0] if given else None) is None


def test_objects_that_no_part_has_a_type_for_are_none():
    forms = [form_of(pd.DataFrame({"a": pd.Series(held, dtype=object)})) for held in ([1], ["a"])]
    assert objects_in(common(forms), forms) == ("a",)
    beside = [(pa.schema([("a", kind)]), ()) for kind in (pa.bool_(), pa.int64())]
    assert objects_in(common([beside[0], forms[0]]), [beside[0], forms[0]]) == ("a",)
    assert common(beside) is None
    numbers_beside = [*forms, (beside[1][0], ())]  # 1 or "a" by the only cell of a part
    assert objects_in(common(numbers_beside), numbers_beside) == ("a",)
    texts = (pa.schema([("a", pa.string())]), ())
    assert common([texts], given=beside[1][0]).field("a").type == pa.float64()  # as a frame of Dask says
    empty = [(pa.schema([("a", kind)]), ()) for kind in (pa.null(), pa.struct([]))]
    assert common(empty) == empty[1][0]
    assert common([forms[0]], given=pa.schema([*beside[0][0], ("b", pa.int64())])) is None  # some part lacks it


def test_objects_where_a_frame_has_truths_are_truths_or_missing():
    part = pd.DataFrame({"a": pd.Series([True, None, "x", 1, np.False_, raising(SystemExit, str)("a")], dtype=object)})
    schema = common([form_of(part)], given=pa.schema([("a", pa.bool_())]))
    assert table_of(part, 0, 9, schema)["a"].to_pylist() == [True, None, None, None, False, None]


@pytest.mark.parametrize("place", range(4))
def test_labels_of_a_score_may_hold_any_cell(place):
    odd = [raising(SystemExit)(), Elsewhere(), TEXT, raising(SystemExit, int)(1)][place]
    X = np.linspace(-1, 1, 40)[:, None]
    pipe = Pipeline([("box", BOX), ("model", LogisticRegression(classes=(0, 1)))], epsilon=9, delta=1e-5)
    pipe.fit(X, X[:, 0] > 0)
    labels = objects([odd, *[0, 1] * 19, 1])
    if place == 3:  # which is read as 1
        assert 0 <= pipe.score(X, labels) <= 1
        return
    with pytest.raises(PpdpError):
        pipe.score(X, labels)


def test_targets_of_a_score_may_hold_any_cell():
    X = np.linspace(-1, 1, 40)[:, None]
    pipe = Pipeline([("box", BOX), ("model", LinearRegression(y_range=(-1, 1)))], epsilon=9, delta=1e-5).fit(X, X[:, 0])
    for odd in (10**400, TEXT, WORD, None, pd.NA, 1j):
        with pytest.raises(InvalidInput, match="y cannot be compared"):
            pipe.score(X, objects([odd, *X[1:, 0]]))
