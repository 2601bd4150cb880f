"""Weights from the command line: a column of the file, and classes by the text of their labels."""

import json

import numpy as np
import pandas as pd
import pytest

from ppdp.cli.main import main

N = 400
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame({"a": RNG.uniform(0, 1, N), "b": RNG.uniform(0, 1, N), "w": RNG.uniform(0, 3, N)})
TABLE["sick"] = np.where(TABLE["a"] > 0.6, "yes", "no")
FILE = """
[data]
label = "sick"
sample_weight = "w"
[domain]
max_weight = 3.0
[pipeline]
epsilon = 3.0
delta = 1e-4
[[steps]]
use = "MinMaxScaler"
ranges = {a = [0, 1], b = [0, 1]}
[[steps]]
use = "LogisticRegression"
classes = ["no", "yes"]
class_weight = {yes = 3}
"""
BY_COLUMNS = FILE.replace("ranges = {a = [0, 1], b = [0, 1]}", "").replace(
    '[[steps]]\nuse = "MinMaxScaler"\n', "[columns]\na = [0, 1]\nb = [0, 1]\n"
)


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TABLE.to_csv("study.csv", index=False)
    TABLE.to_parquet("study.parquet", row_group_size=99)
    return tmp_path


def facts(folder):
    return {fact["name"]: fact["value"] for fact in json.loads((folder / "certificate.json").read_text())["facts"]}


@pytest.mark.parametrize("written", [FILE, BY_COLUMNS], ids=["steps", "columns"])
@pytest.mark.parametrize(
    "rows", [["--data", "study.csv"], ["--data", "study.parquet"], ["--data", "study.parquet", "--engine", "arrow"]]
)
@pytest.mark.repeated("rows", keep=2)
def test_weights_are_read_and_certified(study, rows, written, capsys):
    (study / "study.toml").write_text(written)
    assert main(["fit", "study.toml", *rows, "--out", "out", "--quiet"]) == 0
    found = facts(study / "out")
    assert found["max_weight"] == "3"
    assert found["weight of class 'yes'"] == "3"
    TABLE[["a", "b"]].to_csv("new.csv", index=False)
    assert main(["predict", "out", "study.toml", "--data", "new.csv", "--out", "said.csv"]) == 0


def test_weights_decide_what_is_learned(study):
    (study / "study.toml").write_text(FILE.replace("epsilon = 3.0", "epsilon = 15.0"))
    TABLE.assign(w=np.where(TABLE["sick"] == "yes", 3.0, 0.0)).to_csv("study.csv", index=False)
    assert main(["fit", "study.toml", "--data", "study.csv", "--out", "out", "--quiet"]) == 0
    TABLE.loc[TABLE["a"] > 0.45, ["a", "b"]].to_csv("new.csv", index=False)  # not far from rows that have a weight
    assert main(["predict", "out", "study.toml", "--data", "new.csv", "--out", "said.csv"]) == 0
    assert (pd.read_csv("said.csv")["prediction"] == "yes").mean() > 0.9  # of which 0.73 are


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("max_weight = 3.0", "", "max_weight"),
        ('sample_weight = "w"', "", "sample_weight"),
        ('sample_weight = "w"', 'sample_weight = "sick"', "'sick' is that of label, too"),
        ('sample_weight = "w"', 'sample_weight = "v"', "'v'"),
        ("{yes = 3}", "{maybe = 3}", "class_weight"),
        ("{yes = 3}", "{yes = -3}", "class_weight"),
        ("max_weight = 3.0", "max_weight = -1", "max_weight"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(study, capsys, old, new, words):
    (study / "study.toml").write_text(FILE.replace(old, new))
    assert main(["fit", "study.toml", "--data", "study.csv", "--out", "out"]) != 0
    said = capsys.readouterr().err
    assert words in said
    assert "study.toml" in said
    assert "Fix: " in said
    assert not (study / "out").exists()


@pytest.mark.parametrize("cell", ["", "-1", "inf", "heavy"])
def test_a_cell_that_is_no_weight(study, capsys, cell):
    text = (study / "study.csv").read_text().splitlines()
    a, b, _, label = text[5].split(",")
    (study / "study.csv").write_text("\n".join([*text[:5], f"{a},{b},{cell},{label}", *text[6:]]))
    (study / "study.toml").write_text(FILE)
    assert main(["fit", "study.toml", "--data", "study.csv", "--out", "out"]) != 0
    said = capsys.readouterr().err
    assert "a weight in 'w'" in said
    assert "heavy" not in said
    (study / "study.toml").write_text(FILE.replace("[pipeline]", '[pipeline]\non_invalid = "repair"'))
    assert main(["fit", "study.toml", "--data", "study.csv", "--out", "out", "--quiet"]) == 0


def test_labels_that_are_numbers_and_truths(study):
    for labels, weights in (([0, 1], '{"0" = 1, "1" = 4}'), ([False, True], "{false = 1, true = 4}")):
        TABLE.assign(sick=np.array(labels)[(TABLE["sick"] == "yes").astype(int)]).to_parquet("study.parquet")
        written = FILE.replace('["no", "yes"]', str(labels).lower()).replace("{yes = 3}", weights)
        (study / "study.toml").write_text(written)
        out = f"out{labels[0]}"
        assert main(["fit", "study.toml", "--data", "study.parquet", "--out", out, "--quiet"]) == 0
        assert facts(study / out)[f"weight of class {labels[1]!r}"] == "4"
