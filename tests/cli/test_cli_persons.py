"""Persons from the command line: a column of ids in the pipeline file, in one file or in blocks."""

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from ppdp.cli.column_parsing import Layout
from ppdp.cli.data_files import open_rows
from ppdp.cli.main import main
from ppdp.cli.pipeline_file import read_pipeline_file

N = 60
TABLE = pd.DataFrame(
    {"a": np.linspace(0, 1, N), "patient": [f" p{i % 7}" for i in range(N)], "number": np.arange(N) % 5, "half": 0.5}
)
FILE = """
[data]
groups = "patient"
[columns]
a = [0, 1]
patient = "drop"
number = "drop"
half = "drop"
[domain]
n_rows = 40
adjacency = {person = 3}
[pipeline]
epsilon = 2.0
delta = 1e-3
[[steps]]
use = "GaussianMechanism"
"""


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(FILE)
    TABLE.to_csv("study.csv", index=False)
    (tmp_path / "rows").mkdir()
    for i in range(3):
        TABLE[20 * i : 20 * i + 20].to_parquet(f"rows/{i}.parquet")
    return tmp_path


@pytest.mark.parametrize("data", ["study.csv", "rows"])
def test_a_column_says_whose_each_row_is_and_is_no_feature(data, study, capsys):
    assert main(["fit", "study.toml", "--data", data, "--out", "out", "--json"]) == 0
    out = capsys.readouterr().out
    certificate = json.loads(out)["certificate"]
    assert certificate["entrance"]["domain"]["adjacency"] == {"person": 3}
    assert certificate["entrance"]["domain"]["feature_names"] == ["a"]
    assert "p0" not in out
    assert main(["verify", "out", "--require", "record-level"]) == 0


@pytest.mark.parametrize("name", ["patient", "number"])
def test_ids_are_read_each_by_itself(name, study):
    file = FILE.replace('groups = "patient"', f'groups = "{name}"')
    (study / "study.toml").write_text(file.replace("[data]", '[data]\nmissing = ["p3", 3, -9.5, 1e30]'))
    wanted = [str(one).strip() for one in TABLE[name]]
    for path in ("study.csv", "rows/0.parquet"):
        layout = Layout.of(open_rows([study / path]), read_pipeline_file(study / "study.toml"))
        ids = layout.rows(None)[name].to_pylist()
        told = [None if one is None else str(one) for one in ids]
        gap = {"patient": "p3", "number": "3"}[name]
        assert told == [None if one == gap else one for one in wanted[: len(ids)]]


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ('groups = "patient"', 'groups = "nobody"', "no column 'nobody'"),
        ('groups = "patient"', 'groups = "half"', "ids"),
        ('groups = "patient"\n', "missing = []\n", 'groups = "COLUMN"'),
        ('patient = "drop"', "patient = [0, 1]", "so it is no feature"),
        ("adjacency = {person = 3}", "adjacency = {add_remove = 3}", "persons are not protected"),
        ("n_rows = 40", "", "domain.n_rows: the number of rows is private, and no cap on it is declared"),
        ("n_rows = 40", "n_rows = 20", "more rows than n_rows declares"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(before, after, says, study, capsys):
    assert before in FILE
    (study / "study.toml").write_text(FILE.replace(before, after))
    assert main(["fit", "study.toml", "--data", "rows", "--out", "out"]) != 0
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    if not after:
        assert main(["plan", "study.toml", "--rows", "40"]) == 2
        assert capsys.readouterr().err == error


def test_a_row_without_an_id_is_told_of_no_further_than_that(study, capsys):
    table = TABLE.assign(patient=["", *TABLE.patient[1:]])
    table.to_csv("study.csv", index=False)
    assert main(["fit", "study.toml", "--data", "study.csv", "--out", "out"]) != 0
    assert "p1" not in capsys.readouterr().err
    (study / "study.toml").write_text(FILE.replace("[pipeline]", '[pipeline]\non_invalid = "repair"'))
    assert main(["fit", "study.toml", "--data", "study.csv", "--out", "out"]) == 0


def test_rows_without_ids_are_predicted(study, capsys):
    rows = TABLE[["a"]].assign(y=(TABLE.a > 0.5).astype(int), patient=TABLE.patient)
    rows.to_parquet("people.parquet")
    model = FILE.replace('"GaussianMechanism"', '"LogisticRegression"\nclasses = [0, 1]')
    (study / "study.toml").write_text(model.replace("[columns]", 'label = "y"\n[columns]'))
    assert main(["fit", "study.toml", "--data", "people.parquet", "--out", "out", "--quiet"]) == 0
    pq.write_table(pq.read_table("people.parquet").select(["a"]), "new.parquet")
    assert main(["predict", "out", "study.toml", "--data", "new.parquet", "--out", "new.csv"]) == 0
    assert main(["predict", "out", "study.toml", "--data", "people.parquet", "--out", "same.csv"]) == 0
    assert (study / "new.csv").read_text() == (study / "same.csv").read_text()
