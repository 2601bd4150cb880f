"""The command line does what the Python interface does."""

import json
import shutil
import subprocess
import sys
import tomllib
import warnings
from dataclasses import fields
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from jsonschema import Draft202012Validator
from studies import FEATURES, PIPELINE, N, rows

import ppdp
from ppdp import Domain, Ledger, Pipeline, declare, load
from ppdp.bounds import FORMULAS
from ppdp.cli.column_parsing import Layout
from ppdp.cli.data_files import open_source
from ppdp.cli.documents import schema
from ppdp.cli.main import main
from ppdp.cli.parser import RUN, commands_of, make_parser
from ppdp.cli.pipeline_file import read_pipeline_file
from ppdp.core.keywords import renamed_parameters
from ppdp.exceptions import DiagnosticWarning
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.transformers import MeanImputer, StandardScaler

FILES = ["study.csv", "study.parquet", "study.feather", "study.arrow"]


def by_hand():
    """The pipeline of the study in Python."""
    columns = declare(rows()[FEATURES])
    columns.update(age=[0, 110], sex=["F", "M"], ward=["A", "B"])
    steps = [
        *columns.steps(),
        ("impute", MeanImputer()),
        ("scale", StandardScaler(min_std=0.1)),
        ("model", LogisticRegression(classes=[0, 1], max_iter=20)),
    ]
    return Pipeline(steps, epsilon=5.0, delta=1e-5, dataset="clinic", domain=Domain(rows_per_unit=1))


def fitted(study, *more, data="study.csv", out="out"):
    return main(["fit", "study.toml", "--data", data, "--out", out, "--quiet", *more])


def parsed(study, name, classes=(0, 1)):
    """What a pipeline gets of a data file."""
    return Layout.of(open_source(study / name), read_pipeline_file(study / "study.toml")).rows(classes)


class TestData:
    @pytest.mark.parametrize("name", FILES)
    def test_cells_are_what_pandas_makes_of_them(self, name, study):
        table = parsed(study, name).to_pandas()
        wanted = rows()[[*FEATURES, "outcome"]]
        assert list(table) == list(wanted)
        for column in table:
            assert np.array_equal(table[column], wanted[column], equal_nan=column == "age")

    def test_missing_cells_numbers_and_everything_else(self, study):
        cells = ["", " NA ", "-9", "-9.0", "7", "+1.5e1", " .5", "True", "1e999", "inf", "7 years", "0x10"]
        table = pa.table({"age": cells, "id": cells, "sex": [" F ", *["-9"] * 11], "ward": ["", *["C"] * 11]})
        table = table.append_column("outcome", pa.array(["1"] * len(cells)))
        table.to_pandas().to_csv(study / "study.csv", index=False)
        found = parsed(study, "study.csv").to_pandas()
        gap, none = np.nan, np.inf
        assert np.array_equal(found["age"], [gap] * 4 + [7, 15, 0.5, 1] + [none] * 4, equal_nan=True)
        assert found["sex"].fillna("").tolist() == ["F", *[""] * 11]
        assert found["ward"].fillna("").tolist() == ["", *["C"] * 11]
        assert np.array_equal(found["outcome"], [1.0] * len(cells))

    def test_a_cell_is_read_by_itself(self, study):
        """What stands in other rows decides nothing, not even the type of a column."""
        before = parsed(study, "study.csv").to_pandas()
        table = rows().astype({"age": object})
        table.loc[5, "age"] = "a word"
        table.to_csv(study / "study.csv", index=False)
        after = parsed(study, "study.csv").to_pandas()
        assert after["age"][5] == np.inf
        assert after.drop(5).equals(before.drop(5))

    @pytest.mark.parametrize(
        ("written", "words"), [('["no", "yes"]', ("no", "yes")), ("[false, true]", ("False", "true"))]
    )
    def test_labels_may_be_words(self, written, words, study):
        (study / "study.toml").write_text(PIPELINE.replace("classes = [0, 1]", f"classes = {written}"))
        table = rows()
        table["outcome"] = np.array(words, dtype=object)[table["outcome"]]
        table["ward"] = table["ward"].astype("category")
        pq.write_table(pa.Table.from_pandas(table), study / "study.parquet")
        assert fitted(study, data="study.parquet") == 0
        assert set(load(study / "out" / "model.zip").classes_) == set(tomllib.loads(f"a = {written}")["a"])

    def test_tabs_compression_and_quotes(self, study):
        table = parsed(study, "study.csv")
        rows().to_csv(study / "study.tsv", sep="\t", index=False, encoding="utf-8-sig")
        rows().to_csv(study / "study.csv.gz", index=False, quoting=1)
        for name in ("study.tsv", "study.csv.gz"):
            assert parsed(study, name).to_pandas().equals(table.to_pandas())


class TestPlan:
    def test_is_that_of_python(self, study, capsys):
        assert main(["plan", "study.toml", "--rows", str(N), "--time"]) == 0
        plan = by_hand().plan(Domain(n_rows=N, n_features=3))
        assert capsys.readouterr().out.startswith(f"{plan!r}\nFIT TIME on this machine, by generated rows: ")

    @pytest.mark.parametrize("name", FILES)
    def test_of_a_data_file_needs_names_and_size_only(self, name, study, capsys, monkeypatch):
        monkeypatch.setattr(Layout, "rows", None)
        assert main(["plan", "study.toml", "--data", name, "--json"]) == 0
        plan = by_hand().plan(Domain(n_rows=N, n_features=3))
        printed = json.loads(capsys.readouterr().out)
        assert printed["certified"] is False
        assert printed["mu"] == plan.loss.mu
        assert printed["mechanism"]["noise_scale"] == plan.mechanism.noise_scale
        assert [step["way"] for step in printed["steps"]] == [step.way.name for step in plan.steps]
        assert printed["domain"] == plan.domain.to_dict()

    def test_yaml_says_the_same(self, study, capsys):
        yaml = pytest.importorskip("yaml")
        (study / "study.yaml").write_text(yaml.safe_dump(tomllib.loads(PIPELINE), sort_keys=False))
        assert main(["plan", "study.toml", "--rows", "900", "--json"]) == 0
        assert main(["plan", "study.yaml", "--rows", "900", "--json"]) == 0
        first, second = capsys.readouterr().out.split("\n}\n", 1)
        assert json.loads(first + "}") == json.loads(second)


class TestFit:
    @pytest.mark.parametrize("name", FILES)
    def test_certificate_is_that_of_python(self, name, study, capsys):
        assert main(["fit", "study.toml", "--data", name, "--out", "out", "--json"]) == 0
        printed = json.loads(capsys.readouterr().out)
        table = rows()
        pipe = by_hand().fit(table[FEATURES], table["outcome"])
        ours, theirs = printed["certificate"], pipe.certificate_.to_dict()
        for one in (ours, theirs):
            del one["digest"], one["issued"], one["released"]["sha256"]
            for share in one["diagnostics"]["shares"]:
                del share["share"]
        assert ours == theirs

    def test_what_is_written_verifies_and_predicts(self, study, capsys):
        assert main(["fit", "study.toml", "--data", "study.csv", "--out", "out"]) == 0
        out = capsys.readouterr().out
        assert sorted(path.name for path in (study / "out").iterdir()) == [
            "certificate.html", "certificate.json", "model.zip",
        ]  # fmt: skip
        sha256 = out.rpartition("sha256 ")[2].partition(")")[0]
        model = load(study / "out" / "model.zip", sha256=sha256)
        assert model.certificate_.to_text() in out
        assert model.score(rows()[FEATURES], rows()["outcome"]) > 0.6
        assert main(["verify", "out/certificate.json"]) == 0
        assert "the derivation holds" in capsys.readouterr().out
        assert "UNCONDITIONAL" in (study / "out" / "certificate.html").read_text("utf-8")

    def test_quiet_prints_nothing(self, study, capsys):
        assert fitted(study) == 0
        assert capsys.readouterr() == ("", "")

    @pytest.mark.parametrize("told", ["--quiet", "--json"])
    def test_warnings_are_printed_where_no_certificate_is(self, told, study, capsys):
        text = (study / "study.toml").read_text()
        assert "age = [0, 110]" in text
        (study / "study.toml").write_text(text.replace("age = [0, 110]", "age = [0, 10]"))
        with warnings.catch_warnings():
            warnings.simplefilter("always", DiagnosticWarning)
            assert main(["fit", "study.toml", "--data", "study.csv", "--out", "out", told]) == 0
        (line,) = (line for line in capsys.readouterr().err.splitlines() if "clipped" in line)
        assert line.startswith("ppdp: warning: values clipped")

    def test_a_ledger_is_charged_until_it_refuses(self, study, capsys):
        ledger = ["--ledger", "spent.db", "--limit", "6", "2e-5", "--dataset", "people"]
        assert fitted(study, *ledger, out="first") == 0
        assert fitted(study, *ledger, out="second") == 1
        assert re_line(capsys) == "ppdp: refused:"
        assert not (study / "second").exists()
        (entry,) = Ledger(study / "spent.db").entries("people")
        assert entry.status == "released"

    def test_an_undeclared_cell_is_charged_before_it_is_an_error(self, study, capsys):
        rows().assign(age="X").to_csv(study / "study.csv", index=False)
        assert fitted(study, "--ledger", "spent.db", "--limit", "50", "1e-3") == 2
        assert [entry.status for entry in Ledger(study / "spent.db").entries()] == ["failed"]
        assert not (study / "out").exists()

    def test_repair_covers_undeclared_cells(self, study):
        (study / "study.toml").write_text(PIPELINE.replace('dataset = "clinic"', 'on_invalid = "repair"'))
        table = rows().astype({"age": object, "outcome": object})
        table.loc[3, ["age", "sex", "ward", "outcome"]] = ["old", "?", "?", "?"]
        table.to_csv(study / "study.csv", index=False)
        assert fitted(study) == 0

    def test_a_gate_that_refuses_is_a_no(self, study, capsys):
        steps = '[[steps]]\nname = "scale"\nuse = "StandardScaler"\n'
        text = PIPELINE.replace(steps, f'{steps}use_floor = false\nfit_mode = "exact"\n').replace(
            "epsilon = 5.0", "epsilon = 20"
        )
        (study / "study.toml").write_text(text)
        rows().assign(age=50.0, sex="F", ward="A").to_csv(study / "study.csv", index=False)
        assert fitted(study, "--ledger", "spent.db", "--limit", "50", "1e-3") == 1
        assert re_line(capsys) == "ppdp: refused:"
        assert not (study / "out").exists()

    def test_conditional_leaves_only_if_asked(self, study):
        text = PIPELINE.replace('dataset = "clinic"', 'gate = "none"')
        (study / "study.toml").write_text(text.replace("min_std = 0.1", 'use_floor = false\nfit_mode = "exact"'))
        assert fitted(study) == 2
        assert fitted(study, "--conditional") == 0
        assert load(study / "out" / "model.zip").certificate_.status == "CONDITIONAL"

    def test_a_fault_shows_nothing_private(self, study, capsys, monkeypatch):
        def broken(*_):
            raise RuntimeError("31337")

        monkeypatch.setattr(Layout, "rows", broken)
        assert fitted(study) == 3
        assert capsys.readouterr().err == "ppdp: fault: RuntimeError in ppdp. Fix: report it, without the data.\n"

    def test_without_a_mechanism_or_labels(self, study):
        text = PIPELINE[: PIPELINE.index('[[steps]]\nname = "model"')].replace('label = "outcome"', "")
        (study / "study.toml").write_text(text.replace('id = "drop"', 'id = "drop"\noutcome = "drop"'))
        assert fitted(study) == 0
        assert load(study / "out" / "model.zip").transform(rows()[FEATURES]).shape == (N, 7)


def re_line(capsys):
    """How the one line on standard error begins."""
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return " ".join(error.split()[:2])


MODULE = """
from ppdp.core.formula import formula
from ppdp.transformers.fit_mode import FitMode
from ppdp.transformers.base import RowWiseTransformer

@formula("own.mirrored", kind="stability", page="row-wise", way="public", used_by=("Mirrored",), gaps=True)
def mirrored(domain, distance):
    return domain, distance

class Mirrored(RowWiseTransformer):
    def fit_modes(self, domain, distance):
        return (FitMode.by("own.mirrored", domain, distance),)
    map_rows = staticmethod(lambda X, statistics: -X)
"""


def test_stages_and_bounds_of_your_own(study, capsys, monkeypatch):
    (study / "own_stages.py").write_text(MODULE)
    (study / "study.toml").write_text(
        PIPELINE.replace('[[steps]]\nname = "impute"', '[[steps]]\nuse = "Mirrored"\n[[steps]]')
    )
    verify = ["verify", "out/certificate.json"]
    fit = ["fit", "study.toml", "--data", "study.csv", "--out", "out", "--quiet"]
    assert main(fit) == 2
    refused = capsys.readouterr().err
    assert "steps[0].use" in refused
    assert "--import" in refused
    monkeypatch.setattr(sys, "path", list(sys.path))
    try:
        assert [main([*command, "--import", "own_stages"]) for command in (fit, verify)] == [0, 0]
    finally:  # what is registered would stay for good
        FORMULAS.pop("own.mirrored", None)
        sys.modules.pop("own_stages", None)
    assert main(verify) == 1


class TestShow:
    @pytest.fixture
    def out(self, study):
        assert fitted(study) == 0
        return study / "out"

    def test_json_and_page(self, out, study, capsys):
        assert main(["show", "out", "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == json.loads((out / "certificate.json").read_text())
        shown = []
        for options in ([], ["--full"]):
            assert main(["show", "out", *options]) == 0
            shown.append(capsys.readouterr().out.rstrip("\n"))
        certificate = ppdp.Certificate.load(out / "certificate.json")
        assert shown == [certificate.to_text(), certificate.to_text(full=True)]
        assert main(["show", "out", "--html", "page.html"]) == 0
        assert (study / "page.html").read_text("utf-8") == (out / "certificate.html").read_text("utf-8")


class TestCompare:
    def test_is_that_of_python(self, study, capsys):
        names = tuple(FEATURES)
        wanted = by_hand().compare(Domain(n_rows=N, n_features=3, feature_names=names))
        assert main(["compare", "study.toml", "study.toml", "--rows", str(N), "--json"]) == 0
        for printed in json.loads(capsys.readouterr().out):
            assert printed == {"file": "study.toml", **json.loads(json.dumps(wanted.to_dict()))}
        assert main(["compare", "study.toml", "--data", "study.parquet"]) == 0
        assert capsys.readouterr().out == f"study.toml: {wanted!r}\n"


def test_lint_prints_json(study, capsys):
    (study / "training.py").write_text("from sklearn.preprocessing import Normalizer\npipe = Normalizer()\n")
    assert main(["lint", "training.py:pipe", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["severity"] == "none"


class TestHelp:
    @pytest.mark.parametrize("command", [*RUN, "help"])
    def test_every_command_has_a_manual_with_examples(self, command, capsys):
        assert main(["help", command]) == 0
        manual = capsys.readouterr().out
        assert main([command, "--help"]) == 0
        assert capsys.readouterr().out == manual
        assert "examples:\n  ppdp " in manual

    def test_every_command_is_there(self):
        assert set(commands_of(make_parser())) == {*RUN, "help"}

    def test_overview_and_version(self, capsys):
        assert main(["help"]) == 0
        assert "exit status:" in capsys.readouterr().out
        assert main(["--version"]) == 0
        assert capsys.readouterr().out == f"ppdp {ppdp.__version__}\n"
        module = [sys.executable, "-m", "ppdp", "--version"]
        assert subprocess.run(module, capture_output=True, text=True, check=True).stdout == f"ppdp {ppdp.__version__}\n"

    def test_help_waits_for_no_library(self):
        code = "import sys; from ppdp.cli.main import main; main(['--help']); print(*sys.modules)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
        loaded = {name.partition(".")[0] for name in done.stdout.splitlines()[-1].split()}
        assert not loaded & {"numpy", "pandas", "pyarrow", "scipy", "sklearn", "jsonschema", "rich", "shtab"}

    def test_the_schema_is_one_and_knows_every_parameter(self):
        Draft202012Validator.check_schema(schema())
        tables = schema()["properties"]
        assert set(tables["domain"]["properties"]) == {one.name for one in fields(Domain) if one.init}
        made_elsewhere = {"steps", "domain", "adjacency", "ledger", "random_state"}
        known = {*Pipeline(()).get_params(deep=False), *renamed_parameters(Pipeline)}
        assert set(tables["pipeline"]["properties"]) == known - made_elsewhere


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script(shell, tmp_path, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(word in script for word in (*RUN, "ledger", "import"))
    if shutil.which(shell):
        (tmp_path / "script").write_text(script)
        subprocess.run([shell, "-n", tmp_path / "script"], check=True, timeout=60)


def test_gaussian_means_of_every_column(study):
    """A mechanism that needs no labels."""
    text = PIPELINE.replace('label = "outcome"\n', "").replace('id = "drop"', 'id = "drop"\noutcome = "drop"')
    text = text[: text.index('[[steps]]\nname = "scale"')] + '[[steps]]\nuse = "GaussianMechanism"\n'
    (study / "study.toml").write_text(text)
    assert fitted(study) == 0
    release = load(study / "out" / "model.zip").release_
    assert GaussianMechanism.__name__ == release.certificate["mechanism"]["class"]


def test_the_file_in_the_guide_is_one(study):
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "command-line.md").read_text("utf-8")
    (study / "study.toml").write_text(guide.split("```toml\n")[1].split("```")[0])
    assert fitted(study) == 0


def test_a_file_may_protect_a_change_of_values_without_delta(tmp_path, capsys):
    steps = '[[steps]]\nuse = "MinMaxScaler"\nranges = {age = [0, 110]}\n'
    steps += '[[steps]]\nuse = "LaplaceMechanism"\nquery = "rows"'
    domain = "[domain]\nn_features = 1\nadjacency = {coordinate = {age = 5.0}}\n"
    (tmp_path / "study.toml").write_text(f"{domain}[pipeline]\nepsilon = 1\ndelta = 0\n{steps}\n")
    assert main(["plan", str(tmp_path / "study.toml"), "--rows", "300"]) == 0
    assert "(1, 0), 300 rows x 1 columns, protects how far" in capsys.readouterr().out


def test_a_ledger_is_compared_with_certificates(study, capsys, monkeypatch):
    from ppdp.privacy.ledger import file as chain

    fit = [
        "fit",
        "study.toml",
        "--data",
        "study.csv",
        "--ledger",
        "spent.db",
        "--limit",
        "9",
        "1e-4",
        "--quiet",
        "--out",
    ]
    assert main([*fit, "first"]) == 0
    before = (study / "spent.db").read_bytes()
    assert main([*fit, "second"]) == 0
    compare = ["ledger", "spent.db", "--certificate", "first/certificate.json", "second"]
    assert main(compare) == 0
    (study / "spent.db").write_bytes(before)
    monkeypatch.setattr(chain, "_SEEN", {})
    capsys.readouterr()
    assert main([*compare, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["certificates"] == {"first/certificate.json": True, "second": False}
    assert main(compare) == 1
    assert "second: its entry, or one before it, is not there" in capsys.readouterr().out


def test_nobody_else_reads_predictions(study):
    assert main(["fit", "study.toml", "--data", "study.csv", "--out", "release", "--quiet"]) == 0
    assert main(["predict", "release", "study.toml", "--data", "study.csv", "--out", "predicted.csv"]) == 0
    assert (study / "predicted.csv").stat().st_mode & 0o777 == 0o600
