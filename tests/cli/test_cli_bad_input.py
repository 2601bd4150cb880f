"""Whatever is wrong with what the command line is given: one line with place and fix, status 2, nothing written."""

import hashlib
import re
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from studies import PIPELINE, N, rows

from ppdp.cli.main import main

PLAN = ["plan", "study.toml", "--rows", "1200"]
FIT = ["fit", "study.toml", "--data", "study.csv", "--out", "out"]


def state(folder):
    """Every file with its content."""
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}


def refuse(arguments, place, what, folder, capsys):
    """The one line that is printed."""
    before = state(folder), sorted(folder.rglob("*"))
    assert main(arguments) == 2
    assert (state(folder), sorted(folder.rglob("*"))) == before
    out, error = capsys.readouterr()
    assert out == ""
    assert error.count("\n") == 1
    found = re.fullmatch(r"ppdp: error: (.+?): (.+?) Fix: (.+)\n", error)
    assert found, error
    assert error.startswith(f"ppdp: error: {place}"), error
    assert what in error
    return error


COLUMNS = PIPELINE[PIPELINE.index("[columns]") : PIPELINE.index("[domain]")]
FILES = {  # what stands there, what stands there instead, where in the file, what the line says
    "no TOML": ("[data]", "[data", ", line 1", "is not TOML"),
    "text without quotes": ('"outcome"', "outcome", ", line 2", "quotes"),
    "a key twice": ("epsilon = 5.0", "epsilon = 5.0\nepsilon = 6.0", ", line 16", "is not TOML"),
    "an unknown table": ("[pipeline]", "[pipline]", ": pipline", "did you mean 'pipeline'?"),
    "no steps": (PIPELINE[PIPELINE.index("[[steps]]") :], "", "", "[[steps]]"),
    "an empty file": (PIPELINE, "", "", "holds no tables"),
    "steps that are no list": (PIPELINE, "steps = 3", ": steps", "must be a list, got 3"),
    "no step at all": (PIPELINE, "steps = []", ": steps", "give at least 1"),
    "a step that is a word": (PIPELINE, 'steps = ["PCA"]', ": steps[0]", "must be a table"),
    "a step without a class": ('use = "MeanImputer"', "", ": steps[0]", "'use' is missing"),
    "an unknown stage": ("MeanImputer", "MeanImputr", ": steps[0].use", "did you mean 'MeanImputer'?"),
    "a stage of somebody else": ("MeanImputer", "os.system", ": steps[0].use", "--import"),
    "a stage of scikit-learn": ("MeanImputer", "KNNImputer", ": steps[0].use", "MeanImputer(), or RegressionImputer()"),
    "a class that is no text": ('"MeanImputer"', "7", ": steps[0].use", "must be text, got 7"),
    "an unknown parameter": ("min_std", "minstd", ": steps[1].minstd", "did you mean 'min_std'?"),
    "a parameter of scikit-learn": ("max_iter = 20", "C = 1.0", ": steps[2].C", "alpha, which is 1/C"),
    "a parameter of another kind": ("min_std = 0.1", 'min_std = "x"', ": steps[1].min_std", "got 'x'"),
    "a negative threshold": ("min_std = 0.1", "min_std = -1", ": steps[1].min_std", "got -1"),
    "an unknown word": ("min_std = 0.1", 'fit_mode = "exat"', ": steps[1].fit_mode", "'exact'"),
    "a list for a number": ("max_iter = 20", "max_iter = [20]", ": steps[2].max_iter", "got [20]"),
    "code": ("min_std = 0.1", 'min_std = 0.1\n[[steps]]\nuse = "RowMap"\nfunction = "f"', ": steps[2]", "code"),
    "a seed": ("max_iter = 20", "random_state = 0", ": steps[2].random_state", "leave it out"),
    "noise by hand": ("max_iter = 20", "noise_scale = 0.1", ": steps[2].noise_scale", "leave it out"),
    "a name twice": ('"scale"', '"impute"', ": steps[1].name", "there twice"),
    "an empty name": ('"scale"', '""', ": steps[1].name", "is empty"),
    "a name with a point": ('"scale"', '"a.b"', ": steps[1].name", "a plain word"),
    "a mechanism in the middle": ('"MeanImputer"', '"GaussianMechanism"', ": steps[0]", "move it to the end"),
    "a range upside down": ("[0, 110]", "[110, 0]", ": columns", "low < high"),
    "a range that is a number": ("[0, 110]", "110", ": columns.age", "must be a list"),
    "one class": ("classes = [0, 1]", "classes = [0]", "", "Fix"),
    "classes of two kinds": ("classes = [0, 1]", 'classes = [0, "a"]', ": steps[2].classes", "of one kind"),
    "no classes": ("classes = [0, 1]\n", "", ": steps[2].classes", "are not declared"),
    "epsilon 0": ("epsilon = 5.0", "epsilon = 0", ": pipeline.epsilon", "above 0, got 0"),
    "epsilon as text": ("epsilon = 5.0", 'epsilon = "5"', ": pipeline.epsilon", "without quotes"),
    "epsilon infinite": ("epsilon = 5.0", "epsilon = inf", ": pipeline.epsilon", "got inf"),
    "delta 1": ("delta = 1e-5", "delta = 1", ": pipeline.delta", "below 1, got 1"),
    "delta above 1/n": ("delta = 1e-5", "delta = 0.01", ": pipeline.delta", "Fix"),
    "an unknown gate": ('dataset = "clinic"', 'gate = "gausian"', ": pipeline.gate", "did you mean 'gaussian'?"),
    "a rule that is none": ('dataset = "clinic"', 'on_invalid = "skip"', ": pipeline.on_invalid", "'repair'"),
    "a seed of the pipeline": ('dataset = "clinic"', "random_state = 0", ": pipeline.random_state", "leave it"),
    "a ledger in the file": ('dataset = "clinic"', 'ledger = "a"', ": pipeline.ledger", "--ledger PATH"),
    "an empty dataset": ('"clinic"', '""', ": pipeline.dataset", "is empty"),
    "a share above 1": ('dataset = "clinic"', "budget = {gate = 2}", ": pipeline.budget.gate", "at most 1"),
    "a wrong share": ('dataset = "clinic"', "budget = {gat = 0.5}", ": pipeline.budget.gat", "'gate'"),
    "an unknown fact": ("rows_per_unit = 1", "rows_per_person = 1", ": domain.rows_per_person", "did you mean"),
    "an adjacency as in Python": ("rows_per_unit = 1", "adjacency = {user_level = 3}", ": domain", "person = ROWS"),
    "no row per person": ("rows_per_unit = 1", "rows_per_unit = 0", ": domain.rows_per_unit", "at least 1"),
    "half a row": ("rows_per_unit = 1", "n_rows = 10.5", ": domain.n_rows", "a whole number"),
    "another number of rows": ("rows_per_unit = 1", "n_rows = 10", ": domain.n_rows", "X has 1200"),
    "other columns": ("rows_per_unit = 1", 'feature_names = ["a"]', ": domain.feature_names", "leave the line"),
    "negative norm": ("rows_per_unit = 1", "row_norm = -2", ": domain.row_norm", "above 0, got -2"),
    "a category that is a missing value": ('missing = ["', 'missing = ["A", "', ": columns.ward", "'A' is a category"),
    "an unknown rule for data": ("missing =", "mising =", ": data.mising", "did you mean 'missing'?"),
    "a label that is no column": ('"outcome"', '"outcom"', ": data.label", "did you mean 'outcome'?"),
    "no label": ('label = "outcome"\n', "", ": data.label", 'label = "COLUMN"'),
    "a dropped column that is none": ("id =", "ID =", ": columns", "did you mean"),
    "a label that is a feature": ("id =", "outcome = [0, 1]\nid =", ": columns.outcome", "no feature"),
    "a category twice": ('sex = ["F", "M"]', 'sex = ["F", "F"]', ": columns", "each of them once, in one list"),
    "categories of no column": ("sex = [", "gender = [", ": columns", "'sex' are not declared"),
    "no route": ("epsilon = 5.0", "epsilon = 1e-9", "", "Fix"),
}  # fmt: skip


@pytest.mark.parametrize("case", FILES)
def test_pipeline_files(case, study, capsys):
    old, new, place, what = FILES[case]
    assert old in PIPELINE
    (study / "study.toml").write_text(PIPELINE.replace(old, new, 1), encoding="utf-8")
    refuse(FIT, f"study.toml{place}", what, study, capsys)


ARGUMENTS = {
    "no command": ([], "ppdp", "see `ppdp help`"),
    "an unknown command": (["plann"], "ppdp", "did you mean 'plan'?"),
    "an unknown option": ([*PLAN, "--jsn"], "ppdp", "did you mean '--json'?"),
    "an option of the pipeline file": ([*PLAN, "--epsilon", "2"], "ppdp plan", "epsilon = ... in [pipeline]"),
    "no data": (FIT[:2], "ppdp fit", "--data"),
    "an option without its value": ([*PLAN[:2], "--rows"], "ppdp plan", "expected one argument"),
    "rows in words": ([*PLAN[:2], "--rows", "many"], "ppdp plan", "'many'"),
    "no rows": ([*PLAN[:2], "--rows", "0"], "ppdp plan", "at least 1"),
    "rows that nobody declares": (PLAN[:2], "--rows", "--data PATH"),
    "columns that do not fit": ([*PLAN, "--columns", "9"], "--columns", "name 3 columns"),
    "rows beside data": ([*PLAN, "--data", "study.csv"], "--data", "either"),
    "a pipeline file that is not there": (["plan", "none.toml", "--rows", "9"], "none.toml", "cannot be read"),
    "a pipeline file that is a folder": (["plan", "folder.toml", "--rows", "9"], "folder.toml", "cannot be read"),
    "a pipeline file of another kind": (["plan", "study.csv", "--rows", "9"], "study.csv", ".toml"),
    "a module that is not there": ([*PLAN, "--import", "no_such_module"], "--import no_such_module", "my_stages"),
    "an unknown shell": (["completion", "tcsh"], "ppdp completion", "bash"),
    "help of nothing": (["help", "fits"], "ppdp help", "did you mean 'fit'?"),
    "a comparison with a transformer": (
        ["compare", "scaling.toml", "--rows", "900"],
        "scaling.toml: steps",
        "mechanism",
    ),
    "data that are not there": ([*FIT[:3], "none.csv", *FIT[4:]], "none.csv", "is not there"),
    "data of an unknown kind": ([*FIT[:3], "study.xlsx", *FIT[4:]], "study.xlsx", ".parquet"),
    "a folder that is there": ([*FIT[:5], "folder.toml"], "--out", "nothing is replaced"),
    "a folder in no folder": ([*FIT[:5], "no/where"], "--out", "make it first"),
    "a ledger in no folder": ([*FIT, "--ledger", "no/where.db"], "--ledger", "make it first"),
    "a ledger that is another file": ([*FIT, "--ledger", "study.csv"], "--ledger", "Fix"),
    "a limit without a ledger": ([*FIT, "--limit", "1", "1e-5"], "--limit", "--ledger PATH"),
    "a limit of nothing": ([*FIT, "--ledger", "l.db", "--limit", "0", "1e-5"], "--ledger", "epsilon"),
    "nothing to show": (["show", "none.json"], "none.json", "is not there"),
    "something else to show": (["show", "study.toml"], "study.toml", "certificate.json"),
    "a table without a certificate": (["show", "study.parquet"], "study.parquet", "no certificate"),
    "a folder that is no export": (["show", "folder.toml"], "folder.toml", "export"),
    "a page in the place of a file": (["show", "none.json", "--html", "study.csv"], "--html", "already there"),
    "a page and JSON": (["show", "none.json", "--html", "a", "--json"], "ppdp show", "not allowed with"),
    "a workflow without a name": (["lint", "training"], "lint", "MODULE:NAME"),
    "a workflow that is not there": (["lint", "none.py:pipe"], "lint", "no file"),
    "a workflow that is no estimator": (["lint", "broken.py:number"], "broken.py:number", "an estimator is needed"),
    "a workflow by another name": (["lint", "broken.py:pip"], "lint", "did you mean 'pipe'?"),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_command_lines(case, study, capsys):
    (study / "folder.toml").mkdir()
    code = "from sklearn.preprocessing import Normalizer\nnumber, pip_ = 3, 4\npipe = Normalizer()\n"
    (study / "broken.py").write_text(code)
    (study / "study.xlsx").write_bytes(b"PK")
    steps = PIPELINE[: PIPELINE.index('[[steps]]\nname = "model"')].replace('label = "outcome"\n', "")
    (study / "scaling.toml").write_text(steps)
    arguments, place, what = ARGUMENTS[case]
    refuse(arguments, place, what, study, capsys)


def test_conditions_that_are_not_tested_are_refused_before_anything_is_spent(study, capsys):
    text = PIPELINE.replace('dataset = "clinic"', 'gate = "none"')
    exact = 'min_std = 0.1\nuse_floor = false\nfit_mode = "exact"'
    (study / "study.toml").write_text(text.replace("min_std = 0.1", exact), encoding="utf-8")
    refuse([*FIT, "--ledger", "l.db"], "study.toml: pipeline.gate", "--conditional", study, capsys)


CSV = {
    "empty": b"",
    "header only": b"id,age,sex,ward,outcome\n",
    "long row": b"id,age,sex,ward,outcome\n1,2,F,A,1\n1,31337,F,A,1,7\n",
    "columns twice": b"id,age,age,sex,ward,outcome\n1,2,2,F,A,1\n",
    "no name": b"id,age,,sex,ward,outcome\n1,2,2,F,A,1\n",
    "no text": b"id,age,sex,ward,outcome\n1,2,F,A,1\n\xff\xfe\x31337,2,\xff,A,1\n",
}


@pytest.mark.parametrize("case", CSV)
def test_csv_files(case, study, capsys):
    (study / "study.csv").write_bytes(CSV[case])
    line = refuse(FIT, "study.csv", "Fix", study, capsys)
    assert "31337" not in line


@pytest.mark.parametrize("name", ["study.parquet", "study.feather", "study.arrow"])
@pytest.mark.parametrize("length", [0, 3, 700])
def test_files_cut_short(name, length, study, capsys):
    (study / name).write_bytes((study / name).read_bytes()[:length])
    refuse([*FIT[:3], name, *FIT[4:]], name, "Fix", study, capsys)


@pytest.mark.parametrize(
    ("column", "values", "what"),
    [
        ("age", rows()["id"].astype("datetime64[s]"), 'declared. Fix: age = ["1990-01-01", '),
        ("age", rows()["id"].astype("timedelta64[s]"), 'holds duration, and numbers are declared. Fix: age = "drop".'),
        ("age", ["a"] * N, "'age' holds text, and numbers are declared"),
        ("sex", [1.0] * N, "'sex' holds double, and its declared categories are text"),
    ],
)
def test_columns_of_another_type(column, values, what, study, capsys):
    pq.write_table(pa.Table.from_pandas(rows().assign(**{column: values})), study / "study.parquet")
    refuse([*FIT[:3], "study.parquet", *FIT[4:]], "study.toml: columns", what, study, capsys)


@pytest.mark.parametrize(("table", "what"), [(rows()[["age", "sex"]], "'sex' holds text"), (rows()[["age"]], "")])
def test_without_columns_all_are_numbers(table, what, study, capsys):
    steps = PIPELINE[PIPELINE.index("[pipeline]") : PIPELINE.index('[[steps]]\nname = "model"')]
    scaler = '[[steps]]\nuse = "MinMaxScaler"\nranges = {age = [0, 110]}\n'
    (study / "study.toml").write_text(steps.replace("[[steps]]", f"{scaler}[[steps]]", 1))
    pq.write_table(pa.Table.from_pandas(table), study / "study.parquet")
    fit = [*FIT[:3], "study.parquet", *FIT[4:]]
    if what:
        refuse(fit, "study.parquet", what, study, capsys)
    else:
        assert main(fit) == 0


@pytest.mark.parametrize(("column", "cell"), [("age", "31337 years"), ("outcome", "31337"), ("age", "inf")])
def test_a_cell_that_is_not_declared(column, cell, study, capsys):
    """Nothing of it is said, not even which column it is in; but whether it is a label."""
    table = rows().astype({column: object})
    table.loc[17, column] = cell
    table.to_csv(study / "study.csv", index=False)
    label = column == "outcome"
    what = "a label in 'outcome' is missing, or not as declared" if label else "a cell holds what the pipeline file"
    line = refuse(FIT, "study.csv", what, study, capsys)
    assert "31337" not in line
    assert (column in line.split("Fix:")[0]) == label


YAML = {
    "indentation": ("steps:\n - use: PCA\n  name: x\n", ", line 3", "is not YAML"),
    "a key twice": ("pipeline:\n  epsilon: 1\n  epsilon: 2\n", ", line 2", "there twice"),
    "a number taken for text": ("pipeline: {delta: 1e-6}\nsteps: [{use: PCA}]\n", ": pipeline.delta", "1.0e-6"),
    "a key that is a number": ("1: 2\n", "", "is not text"),
    "an object of Python": ("steps: !!python/object/apply:os.getcwd []\n", "", "is not YAML"),
    "a list in itself": ("steps: &a [*a]\n", "", "Fix"),
}  # fmt: skip


@pytest.mark.parametrize("case", YAML)
def test_yaml_files(case, study, capsys):
    pytest.importorskip("yaml")
    text, place, what = YAML[case]
    (study / "study.yaml").write_text(text)
    refuse(["plan", "study.yaml", "--rows", "9"], f"study.yaml{place}", what, study, capsys)


def test_yaml_without_its_package(study, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    (study / "study.yaml").write_text("steps: []\n")
    refuse(["plan", "study.yaml", "--rows", "9"], "study.yaml", "pip install 'ppdp[yaml]'", study, capsys)
