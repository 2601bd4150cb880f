"""A small study as files: a pipeline file, and private rows as CSV, Parquet and Arrow."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ppdp.cli.main import main

N = 1200
PIPELINE = """\
[data]
label = "outcome"
missing = ["NA", -9]

[columns]
id = "drop"
age = [0, 110]
sex = ["F", "M"]
ward = ["A", "B"]

[domain]
rows_per_unit = 1

[pipeline]
epsilon = 5.0
delta = 1e-5
dataset = "clinic"

[[steps]]
name = "impute"
use = "MeanImputer"

[[steps]]
name = "scale"
use = "StandardScaler"
min_std = 0.1

[[steps]]
name = "model"
use = "LogisticRegression"
classes = [0, 1]
max_iter = 20
"""


def rows():
    """Private rows with gaps, text and a number that identifies a person."""
    rng = np.random.default_rng(3)
    age = rng.integers(20, 90, N).astype(float)
    outcome = (age / 60 + rng.normal(size=N) > 1).astype(int)
    age[rng.random(N) < 0.05] = np.nan
    words = {"sex": rng.choice(["F", "M"], N), "ward": rng.choice(["A", "B"], N)}
    return pd.DataFrame({"id": np.arange(N), "age": age, **words, "outcome": outcome})


FEATURES = ["age", "sex", "ward"]
"""Columns that are read; the model takes them as they are in the file."""


def write_study(folder):
    """All files of the study."""
    table = rows()
    (folder / "study.toml").write_text(PIPELINE, encoding="utf-8")
    table.to_csv(folder / "study.csv", index=False)
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    pq.write_table(arrow, folder / "study.parquet", row_group_size=500)
    with pa.ipc.new_file(folder / "study.feather", arrow.schema) as file:
        file.write_table(arrow, max_chunksize=500)
    with pa.ipc.new_stream(folder / "study.arrow", arrow.schema) as file:
        file.write_table(arrow)
    return folder


def refused(arguments, capsys, status=2):
    """The one line of a command that does not say yes."""
    assert main(arguments) == status
    printed, line = capsys.readouterr()
    assert printed == ""
    assert line.startswith("ppdp: error: " if status == 2 else "ppdp: ")
    assert line.count("\n") == 1
    assert "Fix: " in line
    return line
