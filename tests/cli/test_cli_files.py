"""Data files as people have them: each is read as it is meant, or one line says what is wrong and what to write."""

import io
import tomllib

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from studies import refused

from ppdp import PrivateSearchCV, declare, make_pipeline
from ppdp.cli import data_files
from ppdp.cli.main import main
from ppdp.core.names import read_as_cells
from ppdp.data.engine import arrow
from ppdp.exceptions import HeaderWarning, InvalidInput
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.transformers import MinMaxScaler

STUDY = """\
[data]
label = "y"
[columns]
x = [0, 1]
[pipeline]
epsilon = 5.0
delta = 1e-6
on_invalid = "{invalid}"
[[steps]]
use = "LogisticRegression"
classes = {classes}
"""
N = 1000


@pytest.fixture(autouse=True)
def within(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def half(forms):
    """A feature, and a label in one of two forms, of which each half of the rows has one."""
    x = np.linspace(0, 1, N)
    return pd.DataFrame({"id": [f"p{i}" for i in range(N)], "x": x, "y": np.where(x > 0.5, forms[1], forms[0])})


HEADERS = {
    "numbers": b"34.5,120,0",
    "a date": b"Cork,1990-01-31,F",
    "a number among words": b"Cork,F,34.5",
    "one number twice": b"1,Cork,1",
    "money": b'"$1,234",Cork,F',
    "years": b"1990,1987,Cork",
    "truth values": b"True,False,Cork",
    "nothing and words": b"NA,nan,Cork",
    "an address": b"a.b@example.org,Cork,F",
    "positions": b"0,1,2",
    "a number with its unit": b"34.5 kg,Cork,F",
    "a sum of money": b'USD 120,"(1,234)",F',
    "a number below": b"<120,Cork,F",
    "a place": b"59.91;10.75,Cork,F",
    "a date in words": b"5 January 1990,Cork,F",
    "a page": b"https://example.org/a,Cork,F",
    "a hash": b"d41d8cd98f00b204e9800998ecf8427e,Cork",
}


class TestHeaders:
    @pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
    def test_a_row_in_the_place_of_names_is_refused_and_not_printed(self, header, tmp_path, capsys):
        (tmp_path / "rows.csv").write_bytes(header + b"\n51,135,1\n" * 3)
        (tmp_path / "study.toml").write_text(STUDY.format(invalid="error", classes="[0, 1]"))
        for command in (
            ["init", "rows.csv"],
            ["init", "rows.csv", "--label", "y"],
            ["plan", "study.toml", "--data", "rows.csv"],
            ["fit", "study.toml", "--data", "rows.csv", "--out", "out"],
        ):
            line = refused(command, capsys)
            assert not any(cell in line for cell in ("34.5", "120", "Cork", "1990", "1,234", "example"))

    def test_whoever_means_them_says_so(self, capsys):
        pd.DataFrame({"2019": [1.0], "2020": [2.0]}).to_csv("rows.csv", index=False)
        assert "--header-is-names" in refused(["init", "rows.csv"], capsys)
        assert main(["init", "rows.csv", "--header-is-names"]) == 0
        assert '2019 = "?"' in capsys.readouterr().out

    def test_types_do_not_make_names(self, capsys):
        table = pa.table({"34.5": [1.0], "120": [2.0]})
        pq.write_table(table, "rows.parquet")
        pa.feather.write_feather(table, "rows.arrow")
        for file in ("rows.parquet", "rows.arrow"):
            assert "34.5" not in refused(["init", file], capsys)

    def test_a_wrong_label_prints_no_header(self, capsys):
        half("ny").to_csv("rows.csv", index=False)
        assert "'id'" not in refused(["init", "rows.csv", "--label", "outcome"], capsys)

    def test_frames_are_warned_of(self):
        table = pd.read_csv(io.StringIO("34.5,120,0\n" + "51,135,1\n" * 500))
        scale, release = MinMaxScaler(ranges=(0, 200)), GaussianMechanism()
        with pytest.warns(HeaderWarning) as caught:
            declare(table)
        assert "34.5" not in str(caught[0].message)
        with pytest.warns(HeaderWarning):
            make_pipeline(scale, release, dataset="warned").fit(table)
        model = make_pipeline(scale, LogisticRegression(classes=(0, 1)))
        with pytest.warns(HeaderWarning):
            PrivateSearchCV(model, {"logisticregression__max_iter": [5, 6]}).fit(table, table["0"] * 0 + [0, 1] * 250)

    @pytest.mark.filterwarnings("error::ppdp.exceptions.HeaderWarning")
    @pytest.mark.parametrize(
        "names",
        [
            ["age", "income"],
            [0, 1, 2],
            ["0", "1", "2"],
            ["id", "age", "sex", "2019"],
            ["x0", "Q1 2019"],
            ["lbs", "10 m", "may"],
        ],
    )
    def test_names_are_not_warned_of(self, names):
        table = pd.DataFrame(np.zeros((500, len(names))), columns=names)
        assert not read_as_cells(names)
        make_pipeline(MinMaxScaler(ranges=(0, 1)), GaussianMechanism(), dataset="names").fit(table)


class TestDeclarations:
    @pytest.mark.parametrize(
        ("table", "words"),
        [
            (pd.DataFrame([[1, 2]], columns=["a", "a"]), "same name"),
            (pa.table([[1], [2]], names=["a", "a"]), "same name"),
            (pd.DataFrame([[1, 2]]), r"str\(name\)"),
            (pd.DataFrame([[1, 2]], columns=["a", 1]), "astype"),
            ([[1, 2]], "pass a frame"),
        ],
    )
    def test_names_that_are_none_are_refused(self, table, words):
        with pytest.raises(InvalidInput, match=words):
            declare(table)

    @pytest.mark.filterwarnings("error")
    def test_rows_that_are_not_computed_yet_are_refused(self):
        polars = pytest.importorskip("polars")
        with pytest.raises(InvalidInput, match="collect"):
            declare(polars.LazyFrame({"a": [1]}))


FORMS = [("False", "True"), ("FALSE", "TRUE"), ("false", "true"), ("0", "1"), ("no", "yes"), ("N", "Y"), ("0.0", "1.0")]


class TestTruthValues:
    @pytest.mark.parametrize("forms", FORMS, ids=str)
    @pytest.mark.parametrize("classes", ["[false, true]", "[0, 1]", '["False", "True"]', '["no", "yes"]'])
    @pytest.mark.repeated("forms", keep=3)
    def test_labels_in_any_form_are_read(self, forms, classes, tmp_path):
        half(forms).drop(columns="id").to_csv("rows.csv", index=False)
        (tmp_path / "study.toml").write_text(STUDY.format(invalid="repair", classes=classes))
        command = ["study.toml", "--data", "rows.csv"]
        assert main(["fit", *command, "--out", "out", "--quiet"]) == 0
        assert main(["predict", "out", *command, "--out", "new.csv"]) == 0
        predicted = pd.read_csv("new.csv", dtype=str)["prediction"]
        low, high = map(str, tomllib.loads(f"classes = {classes}")["classes"])
        assert (predicted[: N // 4] == low).all()
        assert (predicted[-N // 4 :] == high).all()

    @pytest.mark.parametrize(
        ("labels", "classes"),
        [
            (pa.array([True, False] * 100), '["False", "True"]'),
            (pa.array([0, 1] * 100), '["a", "b"]'),
            (pa.array([0.0, 1.0] * 100), '["a", "b"]'),
        ],
    )
    def test_labels_of_a_type_that_no_class_has_are_refused(self, labels, classes, tmp_path, capsys):
        pq.write_table(pa.table({"x": np.zeros(200), "y": labels}), "rows.parquet")
        (tmp_path / "study.toml").write_text(STUDY.format(invalid="repair", classes=classes))
        assert "steps[0].classes" in refused(["plan", "study.toml", "--data", "rows.parquet"], capsys)

    def test_features_may_be_true_and_false_in_words(self, tmp_path):
        table = half(("no", "yes")).drop(columns="id").assign(x=np.where(np.linspace(0, 1, N) > 0.5, "TRUE", "false"))
        table.to_csv("rows.csv", index=False)
        (tmp_path / "study.toml").write_text(STUDY.format(invalid="error", classes='["no", "yes"]'))
        command = ["study.toml", "--data", "rows.csv"]
        assert main(["fit", *command, "--out", "out", "--quiet"]) == 0
        assert main(["predict", "out", *command, "--out", "new.csv"]) == 0
        assert (pd.read_csv("new.csv")["prediction"] == table["y"]).all()


class TestIds:
    @pytest.fixture
    def study(self, tmp_path):
        half(("no", "yes")).to_csv("rows.csv", index=False)
        half(("no", "yes")).to_parquet("rows.parquet", index=False)
        text = STUDY.format(invalid="error", classes='["no", "yes"]').replace("[columns]\n", '[columns]\nid = "drop"\n')
        (tmp_path / "study.toml").write_text(text)
        assert main(["fit", "study.toml", "--data", "rows.csv", "--out", "out", "--quiet"]) == 0
        return ["predict", "out", "study.toml"]

    @pytest.mark.parametrize("data", [["rows.csv"], ["rows.parquet"], ["rows.parquet", "--engine", "arrow"]])
    @pytest.mark.parametrize("more", [[], ["--proba"]])
    @pytest.mark.repeated("data", keep=2)
    def test_stand_beside_predictions(self, data, more, study):
        assert main([*study, "--data", *data, "--id", "id", "--out", "new.csv", *more]) == 0
        written = pd.read_csv("new.csv")
        assert written["id"].tolist() == half("ny")["id"].tolist()
        assert len(written.columns) == (3 if more else 2)

    def test_stand_in_parts(self, study):
        assert main([*study, "--data", "rows.parquet", "--engine", "arrow", "--id", "id", "--out", "new"]) == 0
        assert pd.read_parquet("new").columns.tolist() == ["id", "prediction"]

    @pytest.mark.parametrize(
        ("name", "words"), [("x", "feature"), ("idd", "did you mean 'id'?"), ("xx", "a name in the header")]
    )
    def test_are_a_column_that_is_no_feature(self, name, words, study, capsys):
        assert words in refused([*study, "--data", "rows.csv", "--id", name, "--out", "new.csv"], capsys)

    @pytest.mark.parametrize(
        ("ids", "written"),
        [
            (pa.array([None, 2**53 + 1, 7]), ["", "9007199254740993", "7"]),
            (
                pa.array([None, 0, 1_500_000], pa.timestamp("us")),
                ["", "1970-01-01 00:00:00", "1970-01-01 00:00:01.500000"],
            ),
            (pa.array([2**31 - 1, 0, None], pa.int32()).cast(pa.date32()), [str(2**31 - 1), "1970-01-01", ""]),
        ],
        ids=["numbers", "times", "a day that Python does not have"],
    )
    def test_are_each_written_by_itself(self, ids, written, study):
        pq.write_table(pa.table({"id": ids, "x": [0.0, 0.5, 1.0]}), "new.parquet")
        assert main([*study, "--data", "new.parquet", "--id", "id", "--out", "new.csv"]) == 0
        assert pd.read_csv("new.csv", dtype=str, keep_default_na=False)["id"].tolist() == written

    def test_are_no_formulas(self, study):
        half("ny").assign(id="=1+1").to_csv("rows.csv", index=False)
        assert main([*study, "--data", "rows.csv", "--id", "id", "--out", "new.csv"]) == 0
        assert set(pd.read_csv("new.csv")["id"]) == {"'=1+1"}


class TestWidths:
    def test_files_of_too_many_columns_are_refused_first(self, monkeypatch, capsys):
        frame = pd.DataFrame(np.zeros((2, 4)), columns=list("abcd"))
        frame.to_csv("rows.csv", index=False)
        frame.to_parquet("rows.parquet")
        monkeypatch.setattr(data_files, "MOST_NAMES", 3)
        monkeypatch.setattr(arrow, "MOST_NAMES", 3)
        for file in ("rows.csv", "rows.parquet"):
            assert "more than 3 columns" in refused(["init", file], capsys)
        with pytest.raises(InvalidInput, match="more than 3 columns"):
            make_pipeline(MinMaxScaler(ranges=(0, 1)), GaussianMechanism()).fit("rows.parquet")

    def test_a_name_of_megabytes_is_refused_first(self):
        table = pd.DataFrame({"a": [0.0], "b" * 10_000_000: [0.0]})
        for read in (declare, make_pipeline(MinMaxScaler(ranges=(0, 1)), GaussianMechanism()).fit):
            with pytest.raises(InvalidInput, match="characters"):
                read(table)

    def test_thousands_of_declared_ranges_are_one_part(self):
        facts = declare(pd.DataFrame(np.zeros((1, 5)), columns=list("abcde")))
        facts.update(dict.fromkeys("abde", (0, 1)), c=[1, 2, 3])
        stage = facts.column_map()
        assert [list(block.columns) for block in stage.blocks] == [["a", "b"], ["c"], ["d", "e"]]
        assert [*stage.names_out(tuple(facts), np.nan)][:2] == ["a", "b"]
