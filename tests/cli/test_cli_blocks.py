"""Several files, a folder or a glob are read in blocks; what is written is what one file gives."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from studies import FEATURES, PIPELINE, N, write_study

from ppdp import load
from ppdp.cli import data_files
from ppdp.cli.column_parsing import Layout
from ppdp.cli.data_files import open_rows
from ppdp.cli.main import main
from ppdp.cli.pipeline_file import read_pipeline_file
from ppdp.data.cells import dates
from ppdp.data.engine.registry import engine
from ppdp.data.frames import opened


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_study(tmp_path)
    table, rows = pq.read_table("study.parquet"), tmp_path / "rows"
    rows.mkdir()
    for part in range(4):
        pq.write_table(table.slice(part * N // 4, N // 4), rows / f"{part}.parquet", row_group_size=77)
    return tmp_path


def values(release):
    return {name: array.shape for name, array in load(f"{release}/model.zip").release_.arrays.items()}


@pytest.mark.parametrize("given", [["rows/0.parquet", "rows/1.parquet", "rows/2.parquet", "rows/3.parquet"], []])
def test_a_fit_takes_files_and_folders(given, study, capsys):
    data = [] if given else ["--data", "rows"]
    assert main(["fit", *given, "study.toml", *data, "--out", "blocks", "--quiet"]) == 0
    assert main(["fit", "study.toml", "--data", "study.parquet", "--out", "whole", "--quiet"]) == 0
    assert values("blocks") == values("whole")
    assert main(["verify", "blocks", "--quiet"]) == 0


def test_a_large_file_is_read_in_blocks_unless_memory_is_asked_for(study, monkeypatch):
    held, read = [], data_files.Source.read
    monkeypatch.setattr(data_files.Source, "read", lambda self, names: held.append(self.path.name) or read(self, names))
    fit = ["fit", "study.toml", "--data", "study.parquet", "--quiet", "--out"]
    assert main([*fit, "small"]) == 0
    assert held == ["study.parquet"]
    monkeypatch.setattr(data_files, "LARGE", 1000)
    assert main([*fit, "large"]) == 0
    assert held == ["study.parquet"]
    assert main([*fit, "memory", "--engine", "memory"]) == 0
    assert held == ["study.parquet", "study.parquet"]


@pytest.mark.parametrize("text", [False, True])
def test_cells_become_the_same_numbers_in_blocks(text, study):
    if text:
        words = pa.chunked_array([pa.array(["yes" if i % 3 else "no" for i in range(N)])])
        (study / "study.toml").write_text(PIPELINE.replace("classes = [0, 1]", 'classes = ["no", "yes"]'))
        table = pq.read_table("study.parquet")
        pq.write_table(table.set_column(table.schema.names.index("outcome"), "outcome", words), "rows/0.parquet")
        for part in range(1, 4):
            (study / f"rows/{part}.parquet").unlink()
    file = read_pipeline_file(study / "study.toml")
    classes = ("no", "yes") if text else (0, 1)
    blocks = Layout.of(open_rows([study / "rows"]), file).rows(classes)
    first = Layout.of(open_rows([study / "rows" / "0.parquet"]), file).rows(classes)
    parsed = pa.concat_tables(blocks.tables(blocks.schema.names))
    assert blocks.n == N
    assert parsed.schema == blocks.schema
    assert parsed.slice(0, len(first)).to_pandas().equals(first.to_pandas())


def test_predictions_in_parts_and_in_one_file(study, capsys):
    assert main(["fit", "study.toml", "--data", "rows/*.parquet", "--out", "model", "--quiet"]) == 0
    source, file = open_rows([study / "study.parquet"]), read_pipeline_file(study / "study.toml")
    layout = Layout.for_model(source, file, FEATURES, None)
    wanted = load("model/model.zip").predict(layout.rows(None))
    assert main(["predict", "model", "study.toml", "--data", "rows", "--out", "parts"]) == 0
    assert np.array_equal(ds.dataset("parts").to_table()["prediction"], wanted)
    assert main(["predict", "model", "study.toml", "--data", "rows", "--out", "one.csv"]) == 0
    assert (study / "one.csv").read_text().split() == ["prediction", *map(str, wanted)]
    proba = ["predict", "model", "study.toml", "--data", "rows", "--proba", "--out"]
    assert main([*proba, "proba.csv"]) == main([*proba, "proba"]) == 0
    shares = load("model/model.zip").predict_proba(layout.rows(None))
    written = pd.read_csv("proba.csv")
    assert list(written) == ["probability of 0", "probability of 1"] == ds.dataset("proba").schema.names
    np.testing.assert_allclose(written, shares, 1e-15)
    arrow = ["--engine", "arrow", "--out", "more"]
    assert main(["predict", "model", "study.toml", "--data", "study.parquet", *arrow]) == 0
    assert np.array_equal(ds.dataset("more").to_table()["prediction"], wanted)


def test_dask_reads_them_too(study, monkeypatch, capsys):
    chosen = []
    monkeypatch.setattr("ppdp.data.engine.registry.engine", lambda *given: chosen.append(given) or engine("arrow"))
    address = ["--engine", "dask", "--scheduler", "tcp://head:8786"]
    assert main(["fit", "rows/0.parquet", "rows/1.parquet", "study.toml", *address, "--out", "out", "--quiet"]) == 0
    assert chosen == [("dask", "tcp://head:8786")]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["study.toml"], "--data: where are the rows?"),
        (["rows/0.parquet", "study.toml", "--data", "rows"], "--data: where are the rows?"),
        (["rows/0.parquet", "rows/0.parquet", "study.toml"], "a file is named twice"),
        (["rows/0.parquet", "study.csv", "study.toml"], "not all of one kind"),
        (["study.toml", "--data", "none/*.parquet"], "there is no file at 'none/*.parquet'"),
        (["study.toml", "--data", "rows", "--engine", "memory"], "only one file"),
        (["study.toml", "--data", "rows", "--scheduler", "tcp://head:8786"], "only a cluster has a scheduler"),
        (["rows/0.parquet", "rows/1.parquet", "study.toml", "--engine", "memory"], "only one file"),
    ],
)
def test_what_is_no_data_is_refused_in_one_line(given, says, study, capsys):
    assert main(["fit", *given, "--out", "out"]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert not (study / "out").exists()


def test_a_cell_that_is_not_declared_is_not_told(study, capsys):
    table = pq.read_table("rows/3.parquet")
    age = pa.array([777123.0, float("inf"), *[30.0] * (table.num_rows - 2)])
    pq.write_table(table.set_column(table.schema.names.index("age"), "age", age), "rows/3.parquet")
    assert main(["fit", "study.toml", "--data", "rows", "--out", "out"]) == 2
    error = capsys.readouterr().err
    assert "a cell holds what the pipeline file does not declare" in error
    assert "777123" not in error
    assert not (study / "out").exists()


DATED = """\
[data]
label = "y"
[columns]
born = ["1920-01-01", "2010-12-31"]
[pipeline]
epsilon = 5.0
delta = 1e-5
[[steps]]
use = "MeanImputer"
fit_mode = "noisy"
[[steps]]
use = "LogisticRegression"
classes = [0, 1]
"""


@pytest.mark.parametrize(
    ("kind", "far"),
    [
        (pa.date32(), np.inf),
        (pa.timestamp("ms"), np.inf),
        (pa.timestamp("us", "Europe/Oslo"), 2.0**62 / 1e6),
        (pa.timestamp("ns"), 2.0**62 // 1000 / 1e6),
    ],
    ids=str,
)
def test_no_date_that_is_far_away_becomes_another_one(kind, far, tmp_path):
    """In microseconds of 64 bits it would."""
    days = kind == pa.date32()
    cells = pa.array([0, 2**31 - 1 if days else 2**62, None], pa.int32() if days else pa.int64()).cast(kind)
    (tmp_path / "rows").mkdir()
    pq.write_table(pa.table({"born": cells, "y": [0, 1, 1]}), tmp_path / "rows" / "0.parquet")
    (tmp_path / "study.toml").write_text(DATED)
    file = read_pipeline_file(tmp_path / "study.toml")
    whole = Layout.of(open_rows([tmp_path / "rows" / "0.parquet"]), file).rows((0, 1))
    blocks = Layout.of(open_rows([tmp_path / "rows"]), file).rows((0, 1))
    for table in (opened(whole), opened(pa.concat_tables(blocks.tables(["born"])))):
        assert np.array_equal(dates(table["born"]).values, [0.0, far, np.nan], equal_nan=True)
