"""What may leave, and how it stands on a disk."""

import os
import stat
import sys
import zipfile

import clinic
import numpy as np
import pytest
import zoo
from clinic import N

import ppdp
from ppdp import Pipeline, PrivateSearchCV
from ppdp.exceptions import ExportError
from ppdp.mechanisms import LogisticRegression
from ppdp.pipeline.release.export import EXAMPLE, MANIFEST, README
from ppdp.privacy.ledger import fit_charging as fits
from ppdp.privacy.noise.sampler import Noise
from ppdp.transformers import MeanImputer, MinMaxScaler, StandardScaler

patients = clinic.patients  # pytest finds a fixture by its name in the test's own module


def classifier(**parameters):
    return clinic.classifier(random_state=None, **parameters)


@pytest.fixture
def written(patients, tmp_path):
    pipe = classifier().fit(*patients)
    pipe.export(tmp_path / "model.zip")
    return pipe, tmp_path / "model.zip"


class TestWhatMayNotLeave:
    @pytest.mark.parametrize("name", ["classes read", "seeded"])
    @pytest.mark.parametrize("conditional", [False, True])
    def test_seeds_and_private_labels_never(self, name, conditional, tmp_path):
        pipe, _ = zoo.released(name)
        for leave in (
            lambda: pipe.export(tmp_path / "x.zip", conditional=conditional),
            lambda: pipe.release_.to_arrow(conditional=conditional),
            lambda: pipe.release_.to_parquet(tmp_path / "x.parquet", conditional=conditional),
        ):
            with pytest.raises(ExportError, match=r"seed|read from y"):
                leave()
        assert not list(tmp_path.iterdir())

    def test_a_conditional_certificate_only_as_what_it_is(self, tmp_path):
        pipe, X = zoo.released("conditional")
        with pytest.raises(ExportError, match=r"CONDITIONAL: .*assumes.*conditional=True"):
            pipe.export(tmp_path / "x")
        with pytest.raises(ExportError, match="CONDITIONAL"):
            pipe.release_.to_arrow()
        pipe.export(tmp_path / "x", conditional=True)
        assert (tmp_path / "x" / README).read_text().startswith("CONDITIONAL")
        assert '"status": "CONDITIONAL"' in (tmp_path / "x" / MANIFEST).read_text()
        again = ppdp.load(tmp_path / "x")
        assert repr(again).startswith("CONDITIONAL release")
        np.testing.assert_array_equal(again.predict(X), pipe.predict(X))

    def test_what_is_not_fitted(self, tmp_path):
        with pytest.raises(ValueError, match="not fitted"):
            classifier().export(tmp_path / "x.zip")

    def test_the_model_of_a_search_says_what_the_search_cost(self, patients, tmp_path):
        search = PrivateSearchCV(classifier(), {"model__max_grad_norm": [0.5, 1.0]}, epsilon=5.0, delta=1e-5).fit(
            *patients
        )
        search.best_estimator_.export(tmp_path / "x")
        again = ppdp.load(tmp_path / "x")
        assert again.certificate_ == search.best_estimator_.certificate_ == again.release_.certificate
        words = (tmp_path / "x" / README).read_text()
        assert words.startswith("PART OF A SEARCH over 2 candidates that costs epsilon = 5")

    def test_different_people_give_the_same_bytes_where_the_noise_gives_the_same_answers(self, monkeypatch, tmp_path):
        """So there is nothing in the files that was learned from private rows and not released."""
        one_day = zoo.document("unconditional")["issued"]
        monkeypatch.setattr(
            Noise, "release", lambda self, value, *_: np.linspace(-0.3, 0.7, np.size(value)).reshape(np.shape(value))
        )
        monkeypatch.setattr(fits.FitCharge, "issued", lambda self, delta: one_day)
        for seed in range(3):
            rng = np.random.default_rng(seed)
            X, y = rng.uniform(-1, 1, (N, 3)), rng.integers(2, size=N)
            X[rng.random(X.shape) < 0.05 * seed] = np.nan
            steps = [
                ("box", MinMaxScaler(ranges=(-1, 1))),
                ("impute", MeanImputer(fit_mode="exact")),
                ("scale", StandardScaler(fit_mode="exact")),
                ("model", LogisticRegression((0, 1), max_iter=5)),
            ]
            Pipeline(steps, epsilon=5.0, delta=1e-5).fit(X, y).export(tmp_path / f"{seed}.zip")
        assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1


class TestFiles:
    def test_nothing_is_replaced_unasked(self, written, tmp_path):
        pipe, path = written
        before = path.read_bytes()
        (tmp_path / "folder").mkdir()
        (tmp_path / "notes.zip").write_text("mine")
        with pytest.raises(ExportError, match=r"already there.*overwrite=True"):
            pipe.export(path)
        for target in ("folder", "notes.zip"):
            with pytest.raises(ExportError, match=r"already there|archive"):
                pipe.export(tmp_path / target, overwrite=True)
        assert path.read_bytes() == before
        assert (tmp_path / "notes.zip").read_text() == "mine"

    def test_another_export_may_be_replaced(self, written, patients):
        other = classifier().fit(*patients)
        other.export(written[1], overwrite=True)
        assert ppdp.load(written[1]).certificate_ == other.certificate_

    def test_a_zip_of_something_else_is_not_replaced(self, written, tmp_path):
        with zipfile.ZipFile(tmp_path / "photos.zip", "w") as archive:
            archive.writestr("cat.png", b"cat")
        with pytest.raises(ExportError, match="no export"):
            written[0].export(tmp_path / "photos.zip", overwrite=True)

    @pytest.mark.parametrize("name", ["x.zip", "x"])
    @pytest.mark.parametrize("when", ["fsync", "chmod", "replace"])
    def test_a_failure_leaves_nothing(self, patients, tmp_path, monkeypatch, name, when):
        pipe = classifier().fit(*patients)

        def fail(*_, **__):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "rename" if when == "replace" and name == "x" else when, fail)
        with pytest.raises(ExportError, match=r"cannot write.*No space left"):
            pipe.export(tmp_path / name)
        monkeypatch.undo()
        assert not list(tmp_path.iterdir())

    def test_a_folder_that_does_not_exist(self, written, tmp_path):
        with pytest.raises(ExportError, match=r"cannot write.*No such file"):
            written[0].export(tmp_path / "nowhere" / "x.zip")

    def test_others_may_read_it(self, written, tmp_path):
        written[0].export(tmp_path / "x")
        modes = [stat.S_IMODE(p.stat().st_mode) for p in (written[1], tmp_path / "x")]
        assert modes == [0o644, 0o755]

    def test_the_hash_of_another_export_is_refused(self, written, patients, tmp_path):
        hashed = classifier().fit(*patients).export(tmp_path / "other.zip")
        with pytest.raises(ExportError, match="another export"):
            ppdp.load(written[1], sha256=hashed)

    @pytest.mark.skipif(sys.platform == "win32", reason="needs links and pipes")
    def test_a_folder_holds_ordinary_files_and_nothing_else(self, written, tmp_path):
        folder = tmp_path / "x"
        written[0].export(folder)
        (folder / "extra.py").write_text("raise SystemExit")
        with pytest.raises(ExportError, match="not of the export"):
            ppdp.load(folder)
        (folder / "extra.py").unlink()
        content = (folder / README).read_bytes()
        (tmp_path / "elsewhere").write_bytes(content)
        (folder / README).unlink()
        for make in (lambda: (folder / README).symlink_to(tmp_path / "elsewhere"), lambda: os.mkfifo(folder / README)):
            make()
            with pytest.raises(ExportError, match=r"cannot read|no ordinary file"):
                ppdp.load(folder)
            (folder / README).unlink()
        with pytest.raises(ExportError, match="not the files of an export"):
            ppdp.load(folder)
        (folder / README).write_bytes(content)
        assert ppdp.load(folder).certificate_ == written[0].certificate_

    def test_made_up_rows_are_there_where_there_is_a_path_to_try(self, tmp_path):
        for name, there in (("unconditional", True), ("transformer-ended", True), ("a sum", False)):
            zoo.released(name)[0].export(tmp_path / name)
            assert (tmp_path / name / EXAMPLE).exists() == there
