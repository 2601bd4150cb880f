"""Files are read in blocks, again and again; what is not what it was is refused, and no message holds a cell."""

import os
import sys
from itertools import chain, pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyarrow import csv, orc

from ppdp import Adjacency, Domain, make_pipeline
from ppdp.cli.data_files import open_source
from ppdp.data.engine.arrow import opened
from ppdp.data.engine.source import aligned
from ppdp.data.parallel import PIECE
from ppdp.exceptions import DomainMismatch, InvalidInput, RowsChanged
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.transformers import MinMaxScaler

SECRET = "777123"


def table_of(n, seed=0):
    rng = np.random.default_rng(seed)
    return pa.table({"a": rng.standard_normal(n), "b": rng.integers(0, 9, n)})


def written(folder, table, parts=3):
    """The rows in so many files, of small row groups."""
    ends = np.linspace(0, table.num_rows, parts + 1).astype(int)
    for number, (start, end) in enumerate(pairwise(ends)):
        pq.write_table(table.slice(start, end - start), folder / f"{number}.parquet", row_group_size=777)
    return folder


def read(source, names=("a", "b")):
    return pa.concat_tables(source.tables(names)).combine_chunks()


@pytest.mark.parametrize("form", ["folder", "glob", "one file", "dataset", "reader", "memory", "ipc"])
def test_every_form_gives_the_same_rows_on_every_pass(tmp_path, form):
    table = table_of(5000)
    given = written(tmp_path, table)
    if form == "glob":
        given = f"{tmp_path}/*.parquet"
    elif form == "one file":
        given = tmp_path / "one.parquet"
        pq.write_table(table, given)
    elif form == "dataset":
        given = ds.dataset(tmp_path)
    elif form == "reader":
        given = table.to_reader(max_chunksize=333)
    elif form == "memory":
        given = ds.dataset(table)
    elif form == "ipc":
        given = tmp_path / "rows.arrow"
        with pa.OSFile(str(given), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    with opened(given) as source:
        assert source.n == 5000
        assert source.schema.names == ["a", "b"]
        for _ in range(2):
            assert read(source).equals(table.combine_chunks())
        assert read(source, ["b"]).equals(table.select(["b"]).combine_chunks())


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("form", ["parquet", "arrow", "reader"])
def test_files_may_have_more_categories_than_their_codes_tell_apart(form, ordered, tmp_path):
    """As files have that are written part by part, or day by day: one cell more decides over the type of codes."""
    cells = [f"{i:03}" for i in range(130)]
    parts = [
        pa.DictionaryArray.from_arrays(pa.array(range(len(some)), pa.int8()), pa.array(some), ordered=ordered)
        for some in (cells[:100], cells[90:])
    ]
    table, place = pa.table({"a": pa.chunked_array(parts)}), str(tmp_path)
    if form == "parquet":
        pq.write_table(table, tmp_path / "1.parquet")
        wide = table["a"].cast(pa.string()).dictionary_encode().combine_chunks()
        pq.write_table(pa.table({"a": wide}), tmp_path / "2.parquet")
        assert open_source(tmp_path / "1.parquet").read(["a"])["a"].to_pylist() == cells[:100] + cells[90:]
    elif form == "arrow":
        for number, part in enumerate(parts):
            kind = pa.dictionary([pa.int8(), pa.int16()][number], pa.string(), ordered)
            some = pa.table({"a": part.cast(kind)})
            with pa.OSFile(f"{tmp_path}/{number}.arrow", "wb") as file, pa.ipc.new_file(file, some.schema) as writer:
                writer.write_table(some)
    source = opened(table.to_reader() if form == "reader" else place)
    held = pa.concat_tables(source.tables(["a"]))["a"].to_pylist()
    assert held == (cells[:100] + cells[90:]) * (1 + (form == "parquet"))


@pytest.mark.parametrize("where", [0, 2])
@pytest.mark.parametrize("cells", [pa.array([7, None]), pa.array(["a", "b"]).dictionary_encode()])
def test_all_values_of_a_column_may_be_missing_in_a_file(cells, where, tmp_path):
    parts = [pa.nulls(2) if place == where else cells for place in range(3)]
    for place, part in enumerate(parts):
        pq.write_table(pa.table({"a": part, "b": [1, 2]}), tmp_path / f"{place}.parquet")
    with opened(str(tmp_path)) as source:
        assert source.schema.field("a").type == cells.type
        assert read(source)["a"].to_pylist() == [cell for part in parts for cell in part.to_pylist()]


@pytest.mark.parametrize("nullable", [True, False])
def test_a_file_has_many_categories_also_where_another_column_has_no_value_or_none_may_be_missing(nullable, tmp_path):
    """A scan of the file knows as many as its codes, of which a row group may have more: one cell would stop a fit."""
    cells = [f"{i:03}" for i in range(130)]
    few = [pa.array([cell]).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string())) for cell in cells]
    beside = pa.nulls(130, pa.null() if nullable else pa.float64())
    form = pa.schema([pa.field("a", few[0].type, nullable), ("b", beside.type)])
    pq.write_table(pa.table([pa.chunked_array(few), beside], schema=form), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": few[0], "b": [0.5]}), tmp_path / "0.parquet")
    with opened(str(tmp_path)) as source:
        assert read(source)["a"].to_pylist() == [cells[0], *cells]
        assert read(source)["b"].to_pylist() == [0.5] + [None] * 130


def test_a_reader_may_have_categories_of_views_as_polars_makes_them():
    views = pa.array(["a", "b", None], pa.string_view())
    held = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None], pa.uint32()), views)
    with opened(pa.table({"a": held}).to_reader()) as source:
        assert read(source, ["a"])["a"].to_pylist() == ["a", "b", None, None]


@pytest.mark.parametrize("far", [1, 2**62])
def test_seconds_within_lists_of_a_reader_are_refused_whatever_they_are(far):
    """Parquet, in which the rows are written down, takes no far ones."""
    held = pa.array([[far]], pa.list_(pa.int64())).cast(pa.list_(pa.timestamp("s")))
    with pytest.raises(InvalidInput, match="instants in seconds within lists"):
        opened(pa.table({"a": held}).to_reader())


def test_views_of_lists_beside_a_file_without_values_are_refused_before_they_are_read(tmp_path):
    for place, part in enumerate([pa.array([["a"]], pa.list_view(pa.string())), pa.nulls(1)]):
        pq.write_table(pa.table({"a": part}), tmp_path / f"{place}.parquet")
    with pytest.raises(DomainMismatch, match="'a' as null"), opened(str(tmp_path)):
        raise AssertionError("it was opened")


@pytest.mark.parametrize("form", ["csv", "json"])
def test_files_whose_cells_say_the_types_of_columns_are_refused(form, tmp_path):
    (tmp_path / f"0.{form}").write_text({"csv": "a\n1\n2\n", "json": '{"a": 1}\n{"a": 2}\n'}[form])
    given = [ds.dataset(tmp_path, format=form)]
    given += [csv.open_csv(tmp_path / "0.csv")] if form == "csv" else []
    for one in given:
        with pytest.raises(InvalidInput, match="have the types that their first cells are of"):
            opened(one)


def test_instants_of_96_bits_are_read_as_those_of_64_are(tmp_path):
    instants = pa.array([0, 253_402_214_400, -62_135_596_800, None], pa.timestamp("s"))
    table = pa.table({"a": instants.cast(pa.timestamp("us"))})
    for old in (True, False):
        pq.write_table(table, tmp_path / f"{old}.parquet", use_deprecated_int96_timestamps=old)
    for path in (tmp_path / "True.parquet", tmp_path / "False.parquet"):
        assert pa.concat_tables(opened(path).tables(["a"])) == open_source(path).read(["a"]) == table


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_instants_in_orc_are_refused_for_one_far_away_stops_their_reader(zone, tmp_path):
    instants = pa.array([0, 253_402_214_400], pa.timestamp("s", zone))  # the last day of the year 9999
    orc.write_table(pa.table({"a": [1, 2], "until": instants, "day": instants.cast(pa.date32())}), tmp_path / "0.orc")
    rows = ds.dataset(tmp_path, format="orc")
    with pytest.raises(InvalidInput, match=r"until of ORC hold instants"):
        opened(rows)
    others = ds.dataset(tmp_path, format="orc", schema=rows.schema.remove(rows.schema.get_field_index("until")))
    assert pa.concat_tables(opened(others).tables(["a", "day"])).num_rows == 2


def test_categories_within_lists_are_refused(tmp_path):
    held = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), pa.array(["a", "b"]).dictionary_encode())
    table = pa.table({"a": held})
    pq.write_table(table, tmp_path / "0.parquet")
    for given in (table.to_reader(), tmp_path):
        with pytest.raises(InvalidInput, match="categories within lists"):
            opened(given)


def test_categories_may_be_those_by_which_files_are_parted(tmp_path):
    (tmp_path / "key=x").mkdir()
    parts = np.split(np.array([f"{i}" for i in range(200)]), 2)  # each with codes of eight bits
    few = pa.dictionary(pa.int8(), pa.string())
    cells = pa.chunked_array([pa.array(part).dictionary_encode().cast(few) for part in parts])
    pq.write_table(pa.table({"a": cells}), tmp_path / "key=x" / "0.parquet")
    parted = opened(ds.dataset(tmp_path, partitioning=ds.HivePartitioning.discover(infer_dictionary=True)))
    read = pa.concat_tables(parted.tables(["key", "a"]))
    assert read.to_pylist() == [{"key": "x", "a": one} for one in chain(*parts)]


def test_what_is_in_memory_is_for_nobody_here():
    assert opened(table_of(3)) is opened(np.zeros((2, 2))) is opened([[1.0]]) is None


@pytest.mark.parametrize("sizes", [[1, 2, 3], [PIECE, PIECE], [0, PIECE + 1, PIECE - 1, 5], [3 * PIECE + 2, 0, 1], []])
def test_blocks_are_aligned_however_tables_are_split(sizes):
    total = sum(sizes)
    numbers, parts = pa.table({"a": np.arange(total)}), np.cumsum([0, *sizes])
    found = [one["a"].to_numpy() for one in aligned(numbers.slice(s, e - s) for s, e in pairwise(parts))]
    assert [len(one) for one in found] == [min(PIECE, total - s) for s in range(0, total, PIECE)]
    assert np.array_equal(np.concatenate([*found, []]), np.arange(total))


def test_a_reader_is_spooled_where_nobody_else_reads_and_nothing_stays(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    source = opened(table_of(10).to_reader())
    file = source._fragments[0].path
    assert os.stat(file).st_mode & 0o077 == 0
    assert os.listdir(tmp_path) == ([] if sys.platform == "linux" else [os.path.basename(os.path.dirname(file))])
    source.close()
    assert not os.path.exists(file)


def test_a_reader_that_breaks_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def batches():
        yield table_of(10).to_batches()[0]
        raise OSError(SECRET)

    with pytest.raises(InvalidInput, match="rows of a reader cannot be written down") as raised:
        opened(pa.RecordBatchReader.from_batches(table_of(1).schema, batches()))
    assert SECRET not in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def write(folder, name, table):
    pq.write_table(table, folder / name)


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: write(folder, "1.parquet", table_of(7)),
        lambda folder: write(folder, "1.parquet", table_of(1000, seed=1)),
        lambda folder: os.utime(folder / "2.parquet", ns=(1, 1)),
        lambda folder: (folder / "0.parquet").unlink(),
    ],
    ids=["fewer rows", "other rows", "touched", "gone"],
)
def test_rows_that_change_between_passes_are_refused(tmp_path, change):
    source = opened(written(tmp_path, table_of(3000)))
    read(source)
    change(tmp_path)
    with pytest.raises(RowsChanged, match=r"\d\.parquet. changed between two passes"):
        read(source)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"a": [1.0]}, "no 'b'"),
        ({"a": [1.0], "b": [SECRET]}, "'b' as string, not"),
        ({"a": [1], "b": [2.0]}, "'a' as int64, not double"),
    ],
)
def test_a_file_with_other_columns_is_named_and_refused(tmp_path, other, words):
    write(written(tmp_path, table_of(300)), "9.parquet", pa.table(other))
    with pytest.raises(DomainMismatch, match=rf"9\.parquet' has other columns than the first one: .*{words}") as raised:
        opened(tmp_path)
    assert SECRET not in str(raised.value)


def test_no_message_tells_by_which_values_rows_are_parted(tmp_path):
    folder = tmp_path / f"ward={SECRET}"
    folder.mkdir()
    written(folder, table_of(300))
    for name, kind in (("9.parquet", DomainMismatch), ("9.txt", InvalidInput)):
        write(folder, name, pa.table({"a": [1.0]}))
        with pytest.raises(kind, match=r"/ward=\.\.\./9\.") as raised:
            opened(tmp_path)
        assert SECRET not in str(raised.value)
    (folder / "9.txt").unlink()
    with pytest.raises(DomainMismatch, match="a file or fragment has other columns") as raised:
        opened(ds.dataset(tmp_path, partitioning=["ward"]))
    assert SECRET not in str(raised.value)


def test_rows_go_nowhere_where_their_place_is_not_there(tmp_path, monkeypatch):
    pipe = make_pipeline(MinMaxScaler(ranges=(-9, 9)), GaussianMechanism(), epsilon=1.0, delta=1e-6)
    files, table = written(tmp_path, table_of(300)), table_of(300)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "not mounted"))
    for given in (files, table.to_reader()):
        with pytest.raises(InvalidInput, match="TMPDIR names no folder"):
            pipe.fit(given)
    assert not hasattr(pipe, "certificate_")


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InvalidInput, match="no file"):
        opened(tmp_path)
    (tmp_path / "x.csv").write_text(f"a\n{SECRET}\n")
    with pytest.raises(InvalidInput, match=r"not all of one kind.*x\.csv'"):
        opened(tmp_path)
    (tmp_path / "x.csv").unlink()
    whole = written(tmp_path, table_of(3000)) / "1.parquet"
    content = whole.read_bytes()
    whole.write_bytes(content[: len(content) // 2])
    with pytest.raises(InvalidInput, match=r"1\.parquet' cannot be read"):
        opened(tmp_path)


WRITTEN = {
    "an index with a name": lambda frame: frame.set_index(pd.Index(np.linspace(0, 1, len(frame)), name="who")),
    "an index without one": lambda frame: frame.set_index(pd.Index(np.linspace(0, 1, len(frame)))),
    "several indices": lambda frame: frame.set_index([frame["a"], frame["b"]]).rename_axis(["i", "j"]),
    "numbers for names": lambda frame: frame.set_axis([0, 7, 9], axis=1),
    "categories": lambda frame: frame.astype({"c": "category"}),
}


@pytest.mark.filterwarnings("ignore::ppdp.exceptions.HeaderWarning")  # numbers are names here
@pytest.mark.parametrize("engine", ["memory", "file", "dataset", "batches"])
@pytest.mark.parametrize("form", WRITTEN)
@pytest.mark.repeated("engine", keep=2)
def test_columns_that_pandas_wrote_are_those_of_the_schema(form, engine, tmp_path):
    """What pandas writes beside a table took columns away, so that a file with an index could not be read in blocks."""
    frame = pd.DataFrame({"a": np.linspace(-1, 1, 40), "b": np.linspace(1, -1, 40), "c": ["x", "y"] * 20})
    table = pa.Table.from_pandas(WRITTEN[form](frame))
    pq.write_table(table, tmp_path / "rows.parquet")
    X = {"memory": lambda: table, "file": lambda: tmp_path, "dataset": lambda: ds.dataset(table)}
    label = table.column_names[2]
    numbers = [name for name in table.column_names if name != label]
    model = LogisticRegression(classes=("x", "y"))
    pipe = make_pipeline(MinMaxScaler(ranges=(-1, 1)), model, epsilon=9.0, delta=1e-3, random_state=0)
    pipe.fit(X.get(engine, table.to_reader)(), y=label)
    assert list(pipe.feature_names_in_) == numbers
    assert pipe.predict(table.select(numbers)).shape == (40,)


def test_a_file_with_a_union_is_refused_by_its_type_or_read(tmp_path):
    """Arrow makes no empty table of a union, and that a column has this type was all that was to be found out."""
    kinds = pa.UnionArray.from_sparse(pa.array([0, 1] * 20, pa.int8()), [pa.array([1] * 40), pa.array(["x"] * 40)])
    table = pa.table({"a": np.linspace(-1, 1, 40), "b": kinds})
    with pa.OSFile(str(tmp_path / "rows.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    pipe = make_pipeline(
        MinMaxScaler(ranges=(-1, 1)), GaussianMechanism(), epsilon=9.0, delta=1e-3, on_invalid="repair"
    )
    assert pipe.fit(tmp_path / "rows.arrow").certificate_
    with pytest.raises(InvalidInput, match="groups must hold"):
        pipe.set_params(adjacency=Adjacency.user_level(1), domain=Domain(n_rows=40, n_features=1)).fit(
            tmp_path / "rows.arrow", groups="b"
        )
