"""``ppdp audit``: a pipeline file is attacked on made-up data."""

import json

import pytest

from ppdp.cli import main

FILE = """
[domain]
n_features = 1

[pipeline]
epsilon = 5.0
delta = 1e-6

[[steps]]
name = "clip"
use = "NormClipper"
max_norm = 1.0

[[steps]]
name = "mean"
use = "GaussianMechanism"
"""
QUICK = ["--rows", "8", "--evaluations", "50", "--runs", "6000"]


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(FILE)
    return path


def test_nothing_is_found(study, capsys, tmp_path):
    page = tmp_path / "audit.html"
    assert main(["audit", str(study), *QUICK, "--out", str(page)]) == 0
    assert capsys.readouterr().out.startswith("AUDIT: NOT REFUTED")
    assert "Lower bound" in page.read_text("utf-8")


def test_json(study, capsys):
    assert main(["audit", str(study), *QUICK, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["violated"] is False
    assert 0 < found["output"]["mu_low"] <= found["output"]["mu"]


def test_a_false_claim_is_found(study, capsys, monkeypatch):
    from ppdp.privacy.noise import Noise

    release = Noise.release
    monkeypatch.setattr(Noise, "release", lambda self, value, scale, bound: release(self, value, scale / 2, bound))
    assert main(["audit", str(study), *QUICK]) == 1
    assert capsys.readouterr().out.startswith("AUDIT: REFUTED")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--runs", "10"], "runs"),
        (["--runs", "many"], "--runs"),
        (["--seconds", "-1"], "seconds"),
        (["--out", "."], "already there"),
        (["--out", "nowhere/audit.html"], "cannot be written"),
        (["--seed", "-1"], "seed"),
        (["--jobs", "0"], "n_jobs"),
        ([], "n_rows"),
    ],
)
def test_bad_input_is_one_line(study, capsys, arguments, says):
    rows = ["--rows", "8"] if arguments else []
    assert main(["audit", str(study), *rows, *arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert says in error
