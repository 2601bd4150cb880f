"""``ppdp init`` writes what the schema tells and blanks for the rest; unedited, a file plans or names each blank."""

import datetime as dt
import re
import tomllib

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import ppdp
from ppdp.certificate.issue_record import OF_THE_ISSUER
from ppdp.cli.main import main
from ppdp.cli.parser import MANUAL

SECRET = "ward-of-one-person"
N = 1500


def people():
    rng = np.random.default_rng(0)
    age = rng.integers(18, 90, N)
    return pd.DataFrame(
        {
            "id": [f"p{i}" for i in range(N)],
            "age": age,
            "sex": rng.choice(["F", "M", ""], N),
            "born": [str(2020 - a) + "-03-01" for a in age],
            "dose": np.where(rng.random(N) < 0.1, np.nan, rng.normal(5, 1, N)),
            "outcome": np.where(age > 50, "yes", "no"),
        }
    )


FILES = {
    "typed.parquet": lambda path: pa.parquet.write_table(
        pa.table(
            {
                "born": pa.array([dt.date(1970, 1, 1), None]),
                "seen": pa.array([dt.datetime(2020, 1, 1)] * 2, pa.timestamp("us", "Europe/Berlin")),
                "ward": pa.array(["A", SECRET]).dictionary_encode(),
                "smoker": pa.array([True, None]),
                "price": pa.array([1, 2], pa.decimal128(9, 2)),
                "waited": pa.array([1, 2], pa.duration("s")),
                "tags": pa.array([["a"], []]),
                "label": pa.array([True, False]),
            }
        ),
        path,
    ),
    "text.csv": lambda path: people().to_csv(path, index=False),
    "tabs.tsv": lambda path: people().to_csv(path, index=False, sep="\t"),
    "odd names.csv": lambda path: path.write_text('"a.b","c ""d""",ünïcode,"=1"\n1,x,,\n'),
    "flags.arrow": lambda path: pa.feather.write_feather(
        pd.DataFrame({"a": [True, False] * 300, "b": [False] * 600}), path
    ),
    "numbers.parquet": lambda path: pd.DataFrame({"year": [1995, 2003], "x": [np.nan, np.nan]}).to_parquet(path),
}
BLANKS = {
    "typed.parquet": ["born", "seen", "ward", "price"],
    "text.csv": ["id", "age", "sex", "born", "dose", "outcome"],
    "tabs.tsv": ["id", "age", "sex", "born", "dose", "outcome"],
    "odd names.csv": ["a.b", 'c "d"', "ünïcode", "=1"],
    "flags.arrow": [],
    "numbers.parquet": ["year", "x"],
}


@pytest.fixture
def init(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def run(name, *options):
        FILES[name](tmp_path / name)
        assert main(["init", name, *options]) == 0
        text = capsys.readouterr().out
        (tmp_path / "study.toml").write_text(text, "utf-8")
        return text

    return run


@pytest.mark.parametrize("name", FILES)
def test_six_files_plan_or_name_each_blank(name, init, capsys):
    text = init(name, *(["--label", "label"] if name == "typed.parquet" else []))
    columns = tomllib.loads(text)["columns"]
    blanks = [column for column, value in columns.items() if value == "?"]
    assert blanks == BLANKS[name]
    assert SECRET not in text
    commented = text[text.index("# [pipeline.sources]") :].split("\n\n")[0]
    stated = tomllib.loads(re.sub("^# ", "", commented, flags=re.MULTILINE))
    assert list(stated["pipeline"]["sources"]) == list(columns)
    status = main(["plan", "study.toml", "--data", name])
    out, line = capsys.readouterr()
    if not blanks:
        assert status == 0, line
        assert "mechanism" in out or "report" in out
        return
    assert status == 2
    assert line.startswith("ppdp: error: study.toml: blanks are left")
    assert all(blank.replace('"', "") in line.replace('"', "").replace("\\", "") for blank in blanks)


@pytest.mark.parametrize("name", ["sources", *OF_THE_ISSUER])
def test_what_reviewers_ask_for_has_a_place(name, init):
    assert re.search(rf"^#.*\b{name}\b", init("text.csv"), re.MULTILINE)
    assert re.search(rf"\b{name}\b", MANUAL["fit"])


@pytest.mark.parametrize("asked", [["report", "text.csv"], ["report", "text.csv", "--out", "o"], ["plan", "text.csv"]])
def test_rows_without_a_pipeline_file_name_the_commands(asked, init, capsys):
    init("text.csv")
    assert main(asked) == 2
    line = capsys.readouterr().err
    named = "DATA" if len(asked) == 2 and asked[0] == "report" else "text.csv"
    assert f"`ppdp init {named} > study.toml`" in line
    assert f"study.toml --data {named}" in line


def test_a_value_changes_nothing(init, tmp_path, capsys):
    text = init("text.csv")
    (tmp_path / "text.csv").write_text("id,age,sex,born,dose,outcome\n1,1,1,1,1,1\n")
    assert main(["init", "text.csv"]) == 0
    assert capsys.readouterr().out == text


@pytest.mark.parametrize(("kind", "model"), [("float64", "Ridge"), ("int64", "Logistic"), ("bool", "Logistic")])
def test_the_type_of_the_labels_tells_the_model(kind, model, tmp_path, capsys):
    pd.DataFrame({"a": [True, False], "y": np.array([0, 1], kind)}).to_parquet(tmp_path / "rows.parquet")
    assert main(["init", str(tmp_path / "rows.parquet"), "--label", "y"]) == 0
    assert f'use = "{model}' in capsys.readouterr().out


def test_a_name_of_a_file_is_a_comment(tmp_path, capsys):
    people().to_csv(tmp_path / "a\n[steps].csv", index=False)
    assert main(["init", str(tmp_path / "a\n[steps].csv")]) == 0
    assert "steps" not in [line.strip("[]") for line in capsys.readouterr().out.splitlines()[:3]]


def fill(text, **lines):
    """The file with some of its blanks filled, or other lines."""
    for key, value in lines.items():
        start = next(i for i, line in enumerate(text.splitlines()) if line.startswith(f"{key} = "))
        text = "\n".join([*text.splitlines()[:start], f"{key} = {value}", *text.splitlines()[start + 1 :]])
    return text


FILLED = {
    "id": '"drop"',
    "age": "[18, 90]",
    "sex": '["F", "M"]',
    "born": "[1920-01-01, 2010-12-31]",
    "dose": "[0, 10]",
    "classes": '["no", "yes"]',
}


@pytest.fixture
def study(init, tmp_path):
    """Write the study of a file, filled but for some other lines, and give its text."""

    def write(edit=str, **lines):
        text = edit(fill(init("text.csv", "--label", "outcome"), **FILLED | lines))
        (tmp_path / "study.toml").write_text(text, "utf-8")
        return text

    return write


def planned(capsys, data="text.csv"):
    """Status and words of the plan of a study."""
    status = main(["plan", "study.toml", "--data", data])
    return status, "".join(capsys.readouterr())


@pytest.mark.repeated("engine")
@pytest.mark.parametrize("dose", ["[0, 10]", '"private"'], ids=["public", "private"])
@pytest.mark.parametrize("engine", ["memory", "arrow"])
def test_from_a_raw_file_to_a_verified_release_that_predicts(study, engine, dose, tmp_path, capsys):
    data = "text.csv"
    study(dose=dose)
    if engine == "arrow":
        data = "rows.parquet"
        people().to_parquet(tmp_path / data)
    assert main(["fit", "study.toml", "--data", data, "--out", "release", "--engine", engine, "--quiet"]) == 0
    assert main(["verify", "release"]) == 0
    assert main(["predict", "release", "study.toml", "--data", data, "--out", "predicted.csv"]) == 0
    predicted = pd.read_csv(tmp_path / "predicted.csv")["prediction"]
    assert (predicted == people()["outcome"]).mean() > 0.9
    model = ppdp.load(tmp_path / "release" / "model.zip")
    assert list(model.feature_names_in_) == ["age", "sex", "born", "dose"]
    assert model.score(people()[["age", "sex", "born", "dose"]], people()["outcome"]) > 0.9
    capsys.readouterr()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({"sex": "[]"}, "'sex'"),
        ({"sex": '"drap"'}, "'drap' is declared for 'sex'"),
        ({"born": '["19200101", "20101231"]'}, "dates written as text"),
        ({"age": "[90, 18]"}, "low < high"),
        ({"age": "5"}, "must be a list or text"),
        ({"age": "[18, 90]\nextra = [0, 1]"}, "has no column 'extra'"),
        ({"age": "[18, 90]\noutcome = [0, 1]"}, "label = 'outcome' in [data], so it is no feature"),
        ({"label": '"outcome"\ndrop = ["id"]'}, "drop is declared in [columns]"),
        ({"dose": '"drop"\n# dose'}, None),
        ({"age": '[18, 90]\noutcome = "drop"'}, None),
        ({"sex": "[true, false]"}, 'Fix: sex = ["True", "False"] or [0, 1], as the file has them.'),
    ],
)
def test_bad_lines(line, words, study, capsys):
    study(**line)
    status, said = planned(capsys)
    assert status == (0 if words is None else 2)
    assert words is None or words in said


def test_every_column_of_the_file_is_declared(init, tmp_path, capsys):
    text = "\n".join(line for line in init("text.csv", "--label", "outcome").splitlines() if line[:4] != "dose")
    filled = {key: value for key, value in FILLED.items() if key != "dose"}
    (tmp_path / "study.toml").write_text(fill(text, **filled), "utf-8")
    assert main(["plan", "study.toml", "--data", "text.csv"]) == 2
    assert "the columns 'dose' are not declared" in capsys.readouterr().err
    assert main(["plan", "study.toml", "--rows", "1500"]) == 0


def test_a_slip_in_the_name_of_a_column(study, capsys):
    study(lambda text: text.replace("dose = ", "dosse = "))
    status, said = planned(capsys)
    assert status == 2
    assert "Fix: did you mean 'dose' by 'dosse'?" in said


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({"sex": '"private"'}, "columns.sex: the column 'sex' holds text, and "),
        ({"age": '["young", "old"]'}, "'age' holds int64, and its declared categories are text"),
        ({"sex": "[0, 4]"}, "columns.sex: the column 'sex' holds text, and numbers are declared"),
        ({"age": '["18", "old"]'}, "'age' holds int64, and its declared categories are text"),
    ],
)
def test_a_type_that_no_row_can_match_is_refused_before_anything_is_spent(line, words, study, tmp_path, capsys):
    study(**line)
    people().to_parquet(tmp_path / "rows.parquet")
    status, said = planned(capsys, "rows.parquet")
    assert status == 2
    assert words in said


def test_nothing_tells_of_the_number_of_rows_which_may_be_private(tmp_path, capsys):
    texts = []
    for rows in (0, 10, 99_999, 100_000, 2_000_000):
        pa.parquet.write_table(pa.table({"age": np.zeros(rows, dtype=np.int8)}), tmp_path / "rows.parquet")
        assert main(["init", str(tmp_path / "rows.parquet")]) == 0
        texts.append(capsys.readouterr().out)
    assert len(set(texts)) == 1
    assert tomllib.loads(texts[0])["pipeline"]["delta"] == 1e-6


def test_private_text_of_a_file_without_types_is_told_with_what_to_write(study, capsys):
    study(sex='"private"')
    account = ["--ledger", "spent.db", "--limit", "9", "1e-3"]
    assert main(["fit", "study.toml", "--data", "text.csv", "--out", "release", *account]) == 2
    line = capsys.readouterr().err
    assert "The ledger counts this fit as spent." in line
    assert "\"private\" is for numbers, here in 'sex': {private = 20}, " in line


@pytest.mark.parametrize(
    ("value", "code", "words"),
    [
        ('"private"', 0, '"private", so read as numbers: sex; one that holds text needs {private = 20}'),
        ('"?"', 2, '"private" for the range of numbers, {private = 20} for the categories of text'),
    ],
)
def test_what_is_private_is_told_as_numbers_before_anything_is_spent(value, code, words, study, capsys):
    study(sex=value)
    status, said = planned(capsys)
    assert status == code
    assert words in said


def test_a_column_of_texts_is_hashed(study, capsys):
    study(sex="{words = 4}")
    assert main(["fit", "study.toml", "--data", "text.csv", "--out", "release"]) == 0
    assert main(["predict", "release/model.zip", "study.toml", "--data", "text.csv", "--out", "out.csv"]) == 0
    assert len(pd.read_csv("out.csv")) == N
    assert main(["show", "release", "--full"]) == 0
    assert "4 columns of a public hash" in capsys.readouterr().out


@pytest.mark.parametrize("declared", ["[0, 1]", '["a", "b"]', "[1990-01-01, 2030-12-31]"])
def test_a_type_that_cannot_be_what_is_declared(declared, init, tmp_path, capsys):
    text = fill(init("typed.parquet", "--label", "label"), tags=declared, born='"drop"', seen='"drop"', ward='"drop"')
    (tmp_path / "study.toml").write_text(fill(text, price="[0, 9]"), "utf-8")
    assert main(["plan", "study.toml", "--data", "typed.parquet"]) == 2
    assert "the column 'tags' holds list" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["none.csv"], "is not there"), (["text.csv", "--label", "outcom"], "did you mean 'outcome'")],
)
def test_bad_arguments(arguments, words, init, capsys):
    init("text.csv")
    assert main(["init", *arguments]) == 2
    assert words in capsys.readouterr().err
