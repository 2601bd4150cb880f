"""``ppdp audit``: a pipeline file is attacked on made-up data."""

import json
from types import SimpleNamespace

import pytest

from ppdp.cli.main import main

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
BRIEF = ["--rows", "8", "--evaluations", "20", "--runs", "2000"]  # where it does not matter how much is found


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(FILE)
    return path


def test_nothing_is_found(study, capsys, tmp_path):
    place = tmp_path / "audit.json"
    assert main(["audit", str(study), *BRIEF, "--out", str(place), "--json"]) == 0
    said = capsys.readouterr()
    assert said.err.startswith("ppdp: an audit with 8 rows takes about ")
    found = json.loads(said.out)
    assert found == json.loads(place.read_text("utf-8"))
    assert found["violated"] is False
    assert 0 < found["output"]["mu_low"] <= found["output"]["mu"]


def test_a_false_claim_is_found(study, capsys, monkeypatch):
    from ppdp.privacy.noise.sampler import Noise

    release = Noise.release
    monkeypatch.setattr(Noise, "release", lambda self, value, scale, bound: release(self, value, scale / 2, bound))
    assert main(["audit", str(study), *BRIEF, "--evaluations", "50", "--runs", "4000", "--sequential"]) == 1
    assert capsys.readouterr().out.startswith("AUDIT: REFUTED")


def test_membership(study, capsys, tmp_path):
    model = 'name = "model"\nuse = "LogisticRegression"\nclasses = [0, 1]\nmax_iter = 2\n'
    study.write_text('[data]\nlabel = "y"\n' + FILE.replace('name = "mean"\nuse = "GaussianMechanism"\n', model))
    place = tmp_path / "membership.json"
    assert main(["audit", str(study), "--rows", "12", "--runs", "40", "--membership", "--out", str(place)]) == 0
    assert capsys.readouterr().out.startswith("MEMBERSHIP AUDIT: ")
    assert 0 <= json.loads(place.read_text("utf-8"))["balanced"] <= 1
    study.write_text(FILE)
    assert main(["audit", str(study), "--rows", "12", "--membership"]) == 2
    assert main(["audit", str(study), "--rows", "12", "--runs", "40", "--membership", "--sequential"]) == 2
    assert "ends in no model" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--runs", "10"], "runs"),
        (["--runs", "many"], "--runs"),
        (["--seconds", "-1"], "seconds"),
        (["--out", "."], "already there"),
        (["--out", "nowhere/audit.json"], "there is no folder"),
        (["--out", "audit.html"], "as JSON"),
        (["--seed", "-1"], "seed"),
        (["--jobs", "0"], "n_jobs"),
        (["--evaluations", "0"], "--evaluations"),
    ],
)
def test_bad_input_is_one_line(study, capsys, arguments, says):
    assert main(["audit", str(study), "--rows", "8", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert says in error


SCALED = """
[data]
label = "outcome"

[domain]
n_features = 2

[pipeline]
epsilon = 1.0
delta = 1e-6

[[steps]]
use = "NormClipper"
max_norm = 1.0

[[steps]]
use = "StandardScaler"

[[steps]]
use = "LogisticRegression"
classes = [0, 1]
max_iter = 2
"""


class TestRows:
    """Which are chosen, and what is said before a long silence."""

    @pytest.fixture
    def attacked(self, monkeypatch):
        """Plans that would have been attacked."""
        plans = []

        def record(plan, *, announce, **_):
            plans.append(plan)
            announce("an audit takes about 3 min")
            return SimpleNamespace(violated=False)

        monkeypatch.setattr("ppdp.audit.audit", record, raising=False)
        return plans

    def test_the_fewest_that_have_a_route(self, study, attacked, capsys):
        """An ordinary file: with few rows scaling is too noisy."""
        study.write_text(SCALED)
        assert main(["audit", str(study)]) == 0
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("ppdp: an audit takes about 3 min. ")
        rows = attacked[0].domain.n
        assert line.endswith(f" {rows} rows are the fewest that have a route; --rows N attacks the plan for N.")
        assert main(["audit", str(study), "--rows", "12"]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert f"Fix: --rows {rows} has a route, or leave --rows out." in error

    def test_declared_rows_are_attacked_unless_others_are_given(self, study, attacked, capsys):
        study.write_text(FILE.replace("n_features = 1", "n_features = 1\nn_rows = 60"))
        assert main(["audit", str(study)]) == 0
        assert capsys.readouterr().err.endswith(" Fewer rows are faster and sharper: --rows 12.\n")
        assert main(["audit", str(study), "--rows", "20"]) == 0
        assert [plan.domain.n for plan in attacked] == [60, 20]

    def test_nothing_has_a_route(self, study, attacked, capsys):
        study.write_text(SCALED.replace("epsilon = 1.0", "epsilon = 0.001"))
        for rows in ([], ["--rows", "12"]):
            assert main(["audit", str(study), *rows]) == 2
            assert "no route can be certified" in capsys.readouterr().err
        assert attacked == []
