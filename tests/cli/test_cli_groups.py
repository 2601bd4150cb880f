"""Pipeline files with stages for some of the columns."""

import numpy as np
import pandas as pd
import pytest

import ppdp
from ppdp.cli.main import main

FILE = """
[data]
label = "y"

[columns]
age = [0, 100]
dose = [0, 10]
sex = ["F", "M"]

[pipeline]
epsilon = 3.0
delta = 1e-5

[[steps]]
name = "groups"
use = "ColumnTransformer"
remainder = "passthrough"
transformers = [
    {name = "numbers", columns = ["age"], steps = [{use = "MeanImputer"}, {use = "StandardScaler"}]},
    {name = "same", columns = ["dose"], steps = [{use = "MeanImputer", max_missing = 0}]},
]

[[steps]]
use = "LogisticRegression"
classes = [0, 1]
"""


def test_stages_of_a_group_are_fitted_and_exported(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.uniform(0, 100, 500), "dose": rng.uniform(0, 10, 500)})
    table["sex"], table["y"] = rng.choice(["F", "M"], 500), rng.integers(2, size=500)
    table.to_parquet(tmp_path / "rows.parquet")
    (tmp_path / "study.toml").write_text(FILE)
    given = [str(tmp_path / "study.toml"), "--data", str(tmp_path / "rows.parquet"), "--out", str(tmp_path / "out")]
    assert main(["fit", *given]) == 0
    certificate = next((tmp_path / "out").rglob("certificate.json"))
    record = ppdp.Certificate.load(certificate).record
    assert [step.formula.partition("@")[2] for step in record.steps] == ["", "", "numbers", "numbers", "same"]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("MeanImputer", "MeanImpter", "steps[0].transformers[0].steps[0].use"),
        ("MeanImputer", "Deduplicator", "acts on whole rows"),
        ('columns = ["dose"], ', "", "a transformer is a table of name, columns and steps"),
        ("max_missing = 0", "most = 0", "steps[0].transformers[1].steps[0].most"),
    ],
)
def test_slips_are_named_by_their_place(old, new, told, tmp_path, capsys):
    (tmp_path / "study.toml").write_text(FILE.replace(old, new, 1))
    assert main(["plan", str(tmp_path / "study.toml"), "--rows", "500"]) != 0
    assert told in capsys.readouterr().err
