"""``ppdp report``: statistics of a table in raw units, in one release with one certificate."""

import json

import numpy as np
import pandas as pd
import pytest

from ppdp.cli.main import main

STUDY = """
[columns]
age = [0, 100]
ward = ["A", "B"]
born = ["1920-01-01", "1990-01-01"]

[pipeline]
epsilon = 20.0
delta = 1e-6
on_invalid = "repair"
"""


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"age": rng.integers(20, 60, 4000), "ward": rng.choice(["A", "B", "B", "C"], 4000)})
    rows["born"] = pd.Timestamp("1960-06-01")
    rows.loc[:99, "age"] = np.nan
    rows.to_csv("study.csv", index=False)
    (tmp_path / "study.toml").write_text(STUDY)
    return rows


def test_every_column_has_its_statistics_in_the_units_of_the_table(study, capsys):
    assert main(["report", "study.csv", "study.toml", "--out", "out"]) == 0
    told = pd.read_csv("out/report.csv").set_index(["statistic", "column"])
    assert told.loc[("mean", "age"), "value"] == pytest.approx(study["age"].mean(), abs=0.5)
    assert told.loc[("values", "age"), "value"] == pytest.approx(3900, abs=20)
    assert told.loc[("quantile 0.5", "age"), "value"] == pytest.approx(study["age"].median(), abs=1.5)
    wards = told.loc[("rows", "ward")].set_index("category")["value"]
    assert dict(wards) == pytest.approx(
        {**study["ward"].value_counts()[["A", "B"]], "other": 1000, "missing": 0}, abs=60
    )
    assert told.loc[("mean", "born"), "date"][:7] in ("1960-05", "1960-06")
    out = " ".join(capsys.readouterr().out.split())
    assert "1960-0" in out
    assert "UNCONDITIONAL" in out
    assert "means and standard deviations of age, born" in out
    assert main(["verify", "out"]) == 0


def test_a_model_is_no_report(study, tmp_path, capsys):
    (tmp_path / "study.toml").write_text(
        STUDY + '\n[[steps]]\nuse = "LogisticRegression"\nclasses = [0, 1]\n[data]\nlabel = "sick"\n'
    )
    assert main(["report", "study.csv", "study.toml", "--out", "out"]) == 2
    assert "no statistic of columns" in capsys.readouterr().err


def test_boosting_takes_declared_categories_as_codes(study, tmp_path):
    study["sick"] = (study["ward"] == "C").astype(int)
    study.to_csv("study.csv", index=False)
    model = '[[steps]]\nuse = "GradientBoostingClassifier"\nclasses = [0, 1]\n[data]\nlabel = "sick"\n'
    (tmp_path / "study.toml").write_text(STUDY + model)
    assert main(["fit", "study.csv", "study.toml", "--out", "out", "--quiet"]) == 0
    written = json.loads((tmp_path / "out" / "certificate.json").read_text())
    assert written["mechanism"]["parameters"]["categories"] == [0, 3, 0]  # A, B, any other
    assert main(["predict", "out", "study.toml", "--data", "study.csv", "--out", "said.csv"]) == 0
    assert (pd.read_csv("said.csv")["prediction"] == study["sick"]).mean() > 0.95
