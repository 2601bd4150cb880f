"""Slips in a CSV file or a pipeline file: each ends in a refusal, a warning on the page, or the right result."""

import csv
import gzip

import numpy as np
import pandas as pd
import pytest

from ppdp.cli.main import main

N = 2000


@pytest.fixture(scope="module")
def people():
    """People whose income follows from their age."""
    rng = np.random.default_rng(0)
    age = rng.uniform(18, 80, N).round(1)
    return pd.DataFrame({"age": age, "income": (20000 + 600 * age + rng.normal(0, 5000, N)).round()})


def fitted(rows, folder, capsys, *, label, model, columns="age = [18, 80]", invalid="error"):
    """Status and words of a fit, and the predictions for the same rows."""
    rows.to_csv(folder / "rows.csv", index=False)
    (folder / "study.toml").write_text(
        f'[data]\nlabel = "{label}"\n[pipeline]\nepsilon = 4.0\ndelta = 1e-6\non_invalid = "{invalid}"\n'
        f"[columns]\n{columns}\n[[steps]]\n{model}\n"
    )
    names = [str(folder / name) for name in ("study.toml", "rows.csv", "release", "predictions.csv")]
    status = main(["fit", names[0], "--data", names[1], "--out", names[2]])
    printed = capsys.readouterr()
    if status:
        return status, printed.err, None
    assert main(["predict", names[2], names[0], "--data", names[1], "--out", names[3]]) == 0
    capsys.readouterr()
    return status, " ".join(printed.out.split()), pd.read_csv(names[3])["prediction"]


def test_targets(people, tmp_path, capsys):
    model = 'use = "Ridge"\ny_range = [0, 100000]'
    status, _, predictions = fitted(people, tmp_path, capsys, label="income", model=model)
    assert status == 0
    assert np.corrcoef(predictions, people["income"])[0, 1] > 0.8


@pytest.mark.parametrize("classes", [("low", "high"), (1, 2), (3, 5), ("a", "b", "c")])
def test_labels_that_are_no_truth_values(classes, people, tmp_path, capsys):
    rich = np.array(classes[:2], dtype=object)[(people["age"] > 50).astype(int)]
    written = str(list(classes)).replace("'", '"')
    model = f'use = "LogisticRegression"\nclasses = {written}'
    status, words, predictions = fitted(people[["age"]].assign(rich=rich), tmp_path, capsys, label="rich", model=model)
    assert status == 0, words
    assert (predictions == rich).mean() > 0.9


@pytest.mark.parametrize("invalid", ["error", "repair"])
@pytest.mark.parametrize(
    ("columns", "cells", "word"),
    [
        ("age = [0, 100]", lambda age: age / 100, "closer to 0"),
        ("age = [0, 100000]", lambda age: age, "closer to 0"),
        ("age = [18, 80]", lambda age: (age - 49) / 18, "clipped"),
        ("age = [18, 80]", lambda age: age.where(age < 60, -9), "-9"),
        ("age = [18, 50, 80]", lambda age: age, "category"),
        ('age = ["18", "80"]', lambda age: age, "category"),
    ],
)
@pytest.mark.repeated("invalid")
def test_numbers_in_other_units(columns, cells, word, invalid, people, tmp_path, capsys):
    rows = people.assign(age=cells(people["age"]).round(4))
    model = 'use = "Ridge"\ny_range = [0, 100000]'
    status, page, _ = fitted(rows, tmp_path, capsys, label="income", model=model, columns=columns, invalid=invalid)
    assert status == 0
    assert " warning " in page
    assert word in page[page.index(" warning ") : page.index(" rests on ")]


def of_semicolons(people, **form):
    return people.to_csv(index=False, sep=";", **form)


SEMICOLONS = {
    "points": of_semicolons,
    "commas": lambda people: of_semicolons(people, decimal=","),
    "a mark in front": lambda people: "\ufeff" + of_semicolons(people),
    "quotes": lambda people: of_semicolons(people, quoting=csv.QUOTE_ALL),
    "lines in quotes": lambda people: "".join(f'"{line}"\n' for line in of_semicolons(people).splitlines()),
    "thousands": lambda people: of_semicolons(people.assign(income=[f"{one:,.0f}" for one in people["income"]])),
    "a line for spreadsheets": lambda people: "sep=;\n" + of_semicolons(people),
}


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".csv.gz"])
@pytest.mark.parametrize("form", SEMICOLONS)
def test_semicolons_are_refused_by_every_command(form, ending, people, tmp_path, capsys):
    """One column of whole lines was declared, repaired in every row, and released without a word."""
    content = SEMICOLONS[form](people[:50]).encode()
    path, study = tmp_path / f"rows{ending}", tmp_path / "study.toml"
    path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    study.write_text(MEANS)
    assert main(["init", str(path)]) == 2
    assert main(["fit", str(study), "--data", str(path), "--out", str(tmp_path / "release")]) == 2
    assert not (tmp_path / "release").exists()
    assert "age" not in capsys.readouterr().out


MEANS = """
[pipeline]
epsilon = 4.0
delta = 1e-6
on_invalid = "repair"
[[steps]]
use = "MinMaxScaler"
ranges = [0, 100000]
[[steps]]
use = "GaussianMechanism"
"""
COMMAS = {
    "quoted cells": lambda people: people.to_csv(index=False, decimal=","),
    "one quoted column": lambda people: people[["age"]].to_csv(index=False, decimal=","),
    "rows of semicolons under a header of commas": lambda people: (
        "age,income\n" + of_semicolons(people.astype({"income": int}), decimal=",", header=False)
    ),
}


@pytest.mark.parametrize("form", COMMAS)
def test_decimal_commas_are_called_out(form, people, tmp_path, capsys):
    (tmp_path / "rows.csv").write_text(COMMAS[form](people))
    (tmp_path / "study.toml").write_text(MEANS)
    names = [str(tmp_path / name) for name in ("study.toml", "rows.csv", "release")]
    status = main(["fit", names[0], "--data", names[1], "--out", names[2]])
    page = " ".join(capsys.readouterr().out.split())
    assert status == 2 or "cells repaired" in page[page.index(" warning ") : page.index(" rests on ")]
