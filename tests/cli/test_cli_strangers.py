"""What somebody who sees the command line for the first time gets wrong is said, and costs nothing."""

import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from studies import FEATURES, PIPELINE, refused, rows, write_study
from zoo import certificate

from ppdp import Certificate, Ledger, load
from ppdp.certificate.share.files import hashed, zipped
from ppdp.cli.main import main

FIT = ["fit", "study.toml", "--data", "study.csv", "--out"]


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """A folder of ``ppdp fit``, written once."""
    folder = write_study(tmp_path_factory.mktemp("released"))
    arguments = ["--data", str(folder / "study.csv"), "--out", str(folder / "out"), "--quiet"]
    assert main(["fit", str(folder / "study.toml"), *arguments]) == 0
    return folder / "out"


@pytest.fixture
def out(released, tmp_path, monkeypatch):
    """A copy of it that may be changed."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(released, tmp_path / "out")
    return tmp_path / "out"


class TestLedger:
    @pytest.mark.parametrize("there", [False, True])
    def test_a_mistyped_path_opens_no_account(self, there, study, capsys):
        if there:  # an empty file has no limit either
            (study / "other.db").touch()
        line = refused([*FIT, "out", "--ledger", "other.db"], capsys)
        assert "--ledger: no ledger at 'other.db'. Fix: --limit EPSILON DELTA makes one" in line
        assert not (study / "out").exists()
        assert (study / "other.db").exists() is there

    def test_a_fit_says_what_was_charged_and_what_is_left(self, study, capsys):
        assert main([*FIT, "one", "--ledger", "spent.db", "--limit", "20", "1e-4", "--dataset", "people"]) == 0
        charged, left = capsys.readouterr().out.splitlines()[-2:]
        account = Ledger(study / "spent.db")
        spent = account.epsilon(1e-4, "people")
        assert charged.startswith("charged to spent.db: (5, 1e-05)")
        assert (
            left
            == f"people: spent epsilon {spent:.4g} at delta 0.0001, of a limit of 20; {20 - spent:.4g} is left of it"
        )
        assert main([*FIT, "two", "--ledger", "spent.db", "--dataset", "people", "--json"]) == 0
        printed = json.loads(capsys.readouterr().out)["ledger"]
        spent = account.epsilon(1e-4, "people")
        assert printed == {
            "path": "spent.db",
            "dataset": "people",
            "delta": 1e-4,
            "spent": spent,
            "limit": 20.0,
            "remaining": 20 - spent,
            "protects": None,
        }

    def test_an_account_is_read_and_not_changed(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        account = Ledger("spent.db", 2.0, 1e-5)
        account.settle(account.reserve(mu=0.2, dataset="a", label="mean\nof\x1b ages"), "released")
        account.reserve(mu=0.1, dataset="b")
        before = (tmp_path / "spent.db").read_bytes()
        assert main(["ledger", "spent.db"]) == 0
        printed = capsys.readouterr().out
        assert "limit (2, 1e-05) for each dataset" in printed
        assert "mean\\nof\\u001b ages" in printed
        assert f"a: spent epsilon {account.epsilon(1e-5, 'a'):.4g} at delta 1e-05, of a limit of 2; " in printed
        assert main(["ledger", "spent.db", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert [entry["status"] for entry in found["entries"]] == ["released", "reserved"]
        assert [one["dataset"] for one in found["datasets"]] == ["a", "b"]
        assert found["datasets"][1]["remaining"] == 2.0 - account.epsilon(1e-5, "b")
        assert (tmp_path / "spent.db").read_bytes() == before

    def test_an_account_without_a_limit(self, study, capsys):
        account = Ledger("spent.db")
        assert main(["ledger", "spent.db"]) == 0
        assert "no limit" in capsys.readouterr().out
        account.reserve(mu=0.2, delta=1e-7, dataset="clinic")
        assert main(["ledger", "spent.db", "--delta", "1e-9"]) == 0
        assert "clinic: no epsilon covers what was spent at delta 1e-09, without a limit" in capsys.readouterr().out
        assert main([*FIT, "out", "--ledger", "spent.db"]) == 0
        assert ", without a limit" in capsys.readouterr().out

    @pytest.mark.parametrize("name", ["none.db", "study.csv", "."])
    def test_what_is_no_account(self, name, study, capsys):
        before = sorted(study.iterdir())
        assert name in refused(["ledger", name], capsys)
        assert sorted(study.iterdir()) == before


class TestVerify:
    def test_and_show_take_whatever_carries_a_certificate(self, out, tmp_path, capsys):
        load(out / "model.zip").release_.to_parquet(tmp_path / "model.parquet")
        shutil.unpack_archive(out / "model.zip", tmp_path / "folder")
        shown = set()
        for path in ("out", "out/certificate.json", "out/model.zip", "folder", "model.parquet"):
            assert main(["verify", path]) == 0
            assert capsys.readouterr().out.splitlines()[-1].startswith("UNCONDITIONAL (5, 1e-05) sha256:")
            assert main(["show", path]) == 0
            shown.add(capsys.readouterr().out)
        assert len(shown) == 1

    def test_what_fails_makes_no_claim(self, out, capsys):
        text = (out / "certificate.json").read_text()
        (out / "certificate.json").write_text(text.replace('"epsilon": 5.0', '"epsilon": 0.5'))
        assert main(["verify", "out/certificate.json"]) == 1
        printed = capsys.readouterr().out
        assert printed.startswith("Verification: FAILED")
        assert "UNCONDITIONAL" not in printed
        assert main(["verify", "out/certificate.json", "--json"]) == 1
        printed = json.loads(capsys.readouterr().out)
        assert set(printed) == {"holds", "problems"}
        assert any("cost more" in problem for problem in printed["problems"])
        assert main(["show", "out/certificate.json"]) == 1
        assert capsys.readouterr().out == ""

    @pytest.mark.parametrize("command", ["verify", "show", "card"])
    def test_a_folder_of_two_certificates(self, command, out, capsys):
        certificate("unconditional").save(out / "certificate.json")
        assert "another certificate" in refused([command, "out"], capsys, status=1)

    def test_changed_files_do_not_hold(self, out, tmp_path, capsys):
        load(out / "model.zip").release_.to_parquet(tmp_path / "model.parquet")
        shutil.unpack_archive(out / "model.zip", tmp_path / "folder")
        for path in (tmp_path / "folder").iterdir():
            if path.name == "manifest.json":  # holds the checksums of the others
                continue
            before = path.read_bytes()
            path.write_bytes(before + b" ")
            assert "not the one that was written" in refused(["verify", "folder"], capsys, status=1)
            path.write_bytes(before)
        table = pq.read_table(tmp_path / "model.parquet")
        pq.write_table(table.slice(1), tmp_path / "model.parquet")
        assert "another number of values" in refused(["verify", "model.parquet"], capsys, status=1)

    @pytest.mark.parametrize("content", ["{}", "[", "", '{"schema": "other"}', "text"])
    def test_what_is_no_certificate_cannot_be_verified(self, content, study, capsys):
        (study / "c.json").write_text(content)
        for command in ("verify", "show", "card"):
            assert "c.json: " in refused([command, "c.json"], capsys)

    def test_a_certificate_of_another_form_does_not_hold(self, study, capsys):
        content = certificate("unconditional").to_dict()
        del content["total"]
        (study / "c.json").write_text(json.dumps(content))
        assert "form of a certificate" in refused(["verify", "c.json"], capsys, status=1)

    @pytest.mark.parametrize("path", [".", "none.json", "study.csv", "study.parquet", "study.zip"])
    def test_what_carries_none(self, path, study, capsys):
        (study / "study.zip").write_bytes(b"PK")
        assert f"ppdp: error: {path}: " in refused(["verify", path], capsys)

    @pytest.mark.parametrize(
        ("path", "words"),
        [
            ("page.HTML", "is a page to read, which cannot be checked. Fix: the certificate.json"),
            ("page.pdf", "is a page to read, which cannot be checked. Fix: the certificate.json"),
            ("rows.csv", "is a table; a certificate is in what was released"),
        ],
    )
    def test_what_people_give_instead_of_a_certificate(self, path, words, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        (tmp_path / path).write_text("words", encoding="utf-8")
        assert words in refused(["verify", path], capsys)

    def test_more_may_be_asked_for(self, study, capsys):
        for name in ("unconditional", "conditional", "seeded"):
            certificate(name).save(f"{name}.json")
        assert main(["verify", "unconditional.json", "--require", "unconditional", "--max-epsilon", "1e6"]) == 0
        for name in ("conditional", "seeded"):
            assert main(["verify", f"{name}.json"]) == 0
            capsys.readouterr()
            assert main(["verify", f"{name}.json", "--require", "unconditional"]) == 1
            assert f"REFUSED: --require unconditional: the certificate is {name.upper()}." in capsys.readouterr().out
        epsilon = Certificate.load("unconditional.json").epsilon
        assert main(["verify", "unconditional.json", "--max-epsilon", repr(epsilon)]) == 0
        capsys.readouterr()
        assert main(["verify", "unconditional.json", "--max-epsilon", repr(epsilon / 2), "--json"]) == 1
        printed = json.loads(capsys.readouterr().out)
        assert printed["holds"] is True
        assert len(printed["unmet"]) == 1
        assert "--max-epsilon" in refused(["verify", "unconditional.json", "--max-epsilon", "nan"], capsys)


def test_a_file_of_somebody_else_in_the_folder_is_named(out, capsys):
    assert main(["verify", "out"]) == 0
    assert "NOT CHECKED" not in capsys.readouterr().out
    (out / "patients.csv").write_text("age\n50\n")
    (out / "certificate.json.sig").touch()
    assert main(["verify", "out"]) == 0
    assert "NOT CHECKED, and of no certificate: patients.csv\n" in capsys.readouterr().out
    assert main(["verify", "out", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["unchecked"] == ["patients.csv"]
    page = out / "certificate.html"
    page.write_text(page.read_text("utf-8").replace("50", "51"), "utf-8")
    assert main(["verify", "out", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["unchecked"] == ["certificate.html", "patients.csv"]


def test_a_text_in_an_export_that_somebody_changed_is_named(out, capsys):
    with zipfile.ZipFile("out/model.zip") as written:
        members = {name: written.read(name) for name in written.namelist()}
    members["README.txt"] += b"Ann Author, born 1950\n"
    manifest = json.loads(members["manifest.json"])
    manifest["sha256"]["README.txt"] = hashed(members["README.txt"])
    members["manifest.json"] = json.dumps(manifest, indent=2).encode()
    Path("changed.zip").write_bytes(zipped(members))
    assert main(["verify", "changed.zip", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["unchecked"] == ["README.txt"]


def test_what_a_ledger_holds_before_it_stands_not_alone(study, capsys):
    for name, *limit in (("first", "--limit", "9", "1e-3"), ("second",)):
        assert main([*FIT, name, "--ledger", "spent.db", *limit, "--quiet"]) == 0
    first, second = (Certificate.load(study / name / "certificate.json") for name in ("first", "second"))
    most = second.record.ledger.epsilon
    capsys.readouterr()
    assert main(["verify", "first", "--require", "alone", "--max-epsilon", repr(first.epsilon)]) == 0
    assert main(["verify", "second", "--require", "alone"]) == 1
    assert "REFUSED: --require alone: ENTRY 2 FOR " in capsys.readouterr().out
    assert most > second.epsilon
    assert main(["verify", "second", "--max-epsilon", repr(most)]) == 0
    assert main(["verify", "second", "--max-epsilon", repr(most * 0.999)]) == 1
    assert f"with what it is a part of, epsilon is {most!r}" in capsys.readouterr().out


def test_a_card_is_that_of_python(out, capsys):
    assert main(["card", "out"]) == 0
    assert capsys.readouterr().out == Certificate.load("out/certificate.json").to_model_card() + "\n"


class TestPredict:
    PREDICT = ("predict", "out", "study.toml", "--data", "new.csv", "--out", "predictions.csv")

    def test_is_what_the_model_predicts_by_hand(self, out, tmp_path, capsys):
        write_study(tmp_path)
        table = rows()
        table.drop(columns=["id", "outcome"]).iloc[:, ::-1].to_csv("new.csv", index=False)
        assert main([*self.PREDICT]) == 0
        assert capsys.readouterr().out == "written: predictions.csv, 1200 rows\n"
        predicted = pd.read_csv("predictions.csv")
        assert list(predicted.columns) == ["prediction"]
        assert np.array_equal(predicted["prediction"], load(out / "model.zip").predict(table[FEATURES]))
        assert "already there" in refused([*self.PREDICT], capsys)

    def test_what_is_refused(self, out, tmp_path, capsys):
        write_study(tmp_path)
        rows().assign(age="X").to_csv("new.csv", index=False)
        assert "does not declare" in refused([*self.PREDICT], capsys)
        rows().drop(columns="age").to_csv("new.csv", index=False)
        assert "new.csv: lacks the columns 'age'." in refused([*self.PREDICT], capsys)
        assert "study.csv" in refused(["predict", "study.csv", *self.PREDICT[2:]], capsys)
        assert not (tmp_path / "predictions.csv").exists()


class TestSign:
    @pytest.fixture
    def key(self, tmp_path, monkeypatch):
        serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        monkeypatch.chdir(tmp_path)
        key = Ed25519PrivateKey.from_private_bytes(bytes(32))
        form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        (tmp_path / "key.pem").write_bytes(key.private_bytes(*form))
        return key

    def test_nobody_vouches_for_seeded_noise(self, key, tmp_path, capsys):
        from ppdp.exceptions import CertificateError

        certificate("seeded").save("c.json")
        for more in ([], ["--conditional"]):
            assert "SEEDED" in refused(["sign", "c.json", "--key", "key.pem", *more], capsys, status=1)
        assert not (tmp_path / "c.json.sig").exists()
        with pytest.raises(CertificateError, match="protects no one"):
            certificate("seeded").sign(key, conditional=True)

    def test_a_condition_is_vouched_for_only_if_asked(self, key, tmp_path, capsys):
        certificate("conditional").save("c.json")
        assert "CONDITIONAL" in refused(["sign", "c.json", "--key", "key.pem"], capsys, status=1)
        assert not (tmp_path / "c.json.sig").exists()
        assert main(["sign", "c.json", "--key", "key.pem", "--conditional"]) == 0
        assert certificate("conditional").verify(signature="c.json.sig", public_key=key.public_key())


class TestColumns:
    @pytest.mark.parametrize(
        ("old", "new", "what", "fix"),
        [
            ("age = [0", "agge = [0", "the columns 'age' are not declared.", "did you mean 'age' by 'agge'?"),
            ("age = [0, 110]\n", "", "the columns 'age' are not declared.", 'age = "drop"'),
            ("age = [0", "height = [0, 3]\nage = [0", "has no column 'height'.", "a name in the header"),
        ],
    )
    def test_they_are_those_of_the_data(self, old, new, what, fix, study, capsys):
        (study / "study.toml").write_text(PIPELINE.replace(old, new, 1), encoding="utf-8")
        line = refused(["plan", "study.toml", "--data", "study.csv"], capsys)
        assert line.startswith("ppdp: error: study.toml: columns")
        assert what in line
        assert fix in line.partition("Fix: ")[2]

    @pytest.mark.parametrize("key", ['drop = ["id"]', 'one_hot = ["ward"]', 'categories = {sex = ["F", "M"]}'])
    def test_the_form_of_earlier_versions_is_refused_with_the_new_one(self, key, study, capsys):
        (study / "study.toml").write_text(PIPELINE.replace("missing =", f"{key}\nmissing ="), encoding="utf-8")
        line = refused(["plan", "study.toml", "--rows", "1200"], capsys)
        assert line.startswith(f"ppdp: error: study.toml: data.{key.split()[0]}: ")
        assert 'id = "drop", sex = ["F", "M"], age = [0, 110]' in line

    def test_a_plan_says_which_columns_it_assumes(self, study, capsys):
        for more, said in ((["--rows", "1200"], ", which the data must have"), (["--data", "study.csv"], "")):
            assert main(["plan", "study.toml", *more]) == 0
            assert capsys.readouterr().out.splitlines()[-1] == f"columns{said}: age, sex, ward"


def test_lint_proposes_estimators_only(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code = "from sklearn.preprocessing import Normalizer\nnope_data = [1]\nscaling = Normalizer()\n"
    (tmp_path / "mine.py").write_text(code)
    assert refused(["lint", "mine.py:nope"], capsys).endswith("Fix: one of scaling.\n")
    (tmp_path / "mine.py").write_text(code.replace("Normalizer()", "Normalizer"))
    assert "makes a pipeline" in refused(["lint", "mine.py:nope"], capsys)
