"""What a fitted pipeline exports is loaded as it was, on verified terms, or not at all."""

import pickle
import zipfile

import clinic
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import zoo
from clinic import COLUMNS
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler as PublicScaler

import ppdp
from ppdp import Domain, Pipeline, make_pipeline
from ppdp.bounds import FORMULAS
from ppdp.core.formula import Stability
from ppdp.exceptions import ExportError
from ppdp.interop import Diffprivlib
from ppdp.mechanisms import ExponentialMechanism, GammaRegressor, GaussianMechanism, LinearRegression
from ppdp.pipeline.release.load import ReleasedPipeline
from ppdp.testing import REGISTRY
from ppdp.transformers import CategoryEncoder, DateEncoder, MinMaxScaler, NormClipper, Public, RowMap, StandardScaler
from ppdp.transformers.base import RowWiseTransformer
from ppdp.transformers.fit_mode import FitMode

patients = clinic.patients  # pytest finds a fixture by its name in the test's own module

CANNOT_LEAVE = {"seeded", "classes read"}
METHODS = ("predict", "predict_proba", "decision_function", "transform")


OTHERS = {
    "ordinary least squares": ([zoo.CLIP, ("model", LinearRegression(y_range=(0, 1), max_iter=10))], {}),
    "categories": ([("codes", CategoryEncoder([-1, 0, 1])), ("mean", GaussianMechanism())], {}),
    "dates": ([("days", DateEncoder((-2, 2))), ("mean", GaussianMechanism())], {}),
    "waiting times": ([zoo.CLIP, ("model", GammaRegressor(y_range=(0, 2), max_iter=10))], {}),
}


def fitted(name):
    return zoo.passed(*OTHERS[name]) if name in OTHERS else zoo.released(name)


def classifier(**parameters):
    return clinic.classifier(random_state=None, **parameters)


def functions_of(pipe):
    """What an export only names."""
    named = {name: getattr(step, "function", getattr(step, "transformer", None)) for name, step in pipe.steps}
    return {**named, **{name: step.model for name, step in pipe.steps if isinstance(step, Diffprivlib)}}


def state(twin):
    """Its parameters, but for what was asked of private rows, and everything that a twin was told, as bytes."""
    told = pickle.dumps({name: value for name, value in sorted(vars(twin).items()) if name.endswith("_")})
    return repr({**twin.get_params(deep=False), "utility": None}), told


@pytest.fixture
def written(patients, tmp_path):
    pipe = classifier().fit(*patients)
    path = tmp_path / "model.zip"
    pipe.export(path)
    return pipe, path


class TestRoundTrip:
    @pytest.mark.parametrize("name", sorted((zoo.ZOO.keys() | OTHERS) - CANNOT_LEAVE))
    def test_every_stage_and_mechanism_comes_back_to_the_last_bit(self, name, tmp_path):
        pipe, X = fitted(name)
        hashed = pipe.export(tmp_path / "release.zip", conditional=pipe.certificate_.status == "CONDITIONAL")
        again = ppdp.load(tmp_path / "release.zip", sha256=hashed, functions=functions_of(pipe), stages=[Diffprivlib])
        assert again.certificate_ == pipe.certificate_
        assert dict(again.release_.noise_scale) == dict(pipe.release_.noise_scale)
        assert again.release_.sha256 == pipe.release_.sha256
        assert again.release_.inference == pipe.release_.inference
        for (name, twin), (same_name, same) in zip(again.twins_, pipe.twins_, strict=True):
            assert (name, type(twin), state(twin)) == (same_name, type(same), state(same))
        for method in METHODS:
            assert hasattr(again, method) == hasattr(pipe, method)
            if hasattr(pipe, method):
                np.testing.assert_array_equal(getattr(again, method)(X), getattr(pipe, method)(X))

    def test_these_are_all_of_them(self):
        shown = {type(step).__name__ for steps, _ in [*zoo.ZOO.values(), *OTHERS.values()] for _, step in steps}
        assert shown >= {name for name, kind in REGISTRY.items() if kind.__module__.startswith("ppdp.")}

    def test_a_folder_and_a_zip_are_the_same_export(self, written, tmp_path):
        pipe, path = written
        hashed = pipe.export(tmp_path / "folder")
        assert hashed == pipe.export(path, overwrite=True)
        assert ppdp.load(tmp_path / "folder", sha256=hashed).certificate_ == ppdp.load(path).certificate_
        with zipfile.ZipFile(path) as archive:
            assert {name: archive.read(name) for name in archive.namelist()} == {
                entry.name: entry.read_bytes() for entry in (tmp_path / "folder").iterdir()
            }

    def test_a_loaded_release_is_exported_as_it_came(self, written, tmp_path):
        pipe, path = written
        assert ppdp.load(path).export(tmp_path / "again.zip") == pipe.export(tmp_path / "first.zip")
        assert (tmp_path / "again.zip").read_bytes() == (tmp_path / "first.zip").read_bytes() == path.read_bytes()

    def test_numpy_reads_the_parameters_without_pickle(self, written, tmp_path):
        pipe, _ = written
        pipe.export(tmp_path / "folder")
        with np.load(tmp_path / "folder" / "parameters.npz") as arrays:
            assert set(arrays) == set(pipe.release_)
            np.testing.assert_array_equal(arrays["model.theta"], pipe.release_["model.theta"])

    def test_parameters_of_every_plain_kind(self, tmp_path):
        X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
        steps = [
            ("box", MinMaxScaler(ranges=np.array([[-1, 1], [-1.0, 1.0]]), feature_range=(np.float32(-1), np.int8(1)))),
            ("edges", GaussianMechanism("histogram", bins={1: (-1.0, 0.0, np.float64(1))})),
        ]
        pipe = Pipeline(steps, epsilon=5.0, delta=1e-5).fit(X)
        pipe.export(tmp_path / "x.zip")
        again = ppdp.load(tmp_path / "x.zip")
        assert again.steps[0][1].feature_range == (-1.0, 1)
        assert again.steps[0][1].ranges.dtype == np.float64
        assert again.steps[1][1].bins == {1: (-1.0, 0.0, 1.0)}
        np.testing.assert_array_equal(again[-1].histogram_[0], pipe[-1].histogram_[0])


class TestALoadedRelease:
    def test_is_a_fitted_pipeline(self, written, patients):
        pipe, again = written[0], ppdp.load(written[1])
        assert isinstance(again, ReleasedPipeline)
        assert list(again.feature_names_in_) == COLUMNS
        assert again.n_features_in_ == 3
        np.testing.assert_array_equal(again.classes_, [0, 1])
        assert again.score(*patients) == pipe.score(*patients)
        assert (
            repr(again)
            == "UNCONDITIONAL release, (5, 1e-05)-differentially private: range > dedup > impute > scale > model"
        )
        assert "UNCONDITIONAL" in again._repr_html_()
        assert (again.epsilon, again.delta, again.on_invalid) == (5.0, 1e-5, "error")

    @pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas, pd.DataFrame])
    def test_predicts_on_every_container(self, written, patients, make):
        pipe, again = written[0], ppdp.load(written[1])
        np.testing.assert_array_equal(again.predict_proba(make(patients[0])), pipe.predict_proba(patients[0]))

    def test_without_names_predicts_on_arrays(self, patients, tmp_path):
        X = patients[0].to_numpy()
        pipe = classifier().set_params(range__ranges=list(clinic.RANGES.values())).fit(X, patients[1])
        pipe.export(tmp_path / "x.zip")
        again = ppdp.load(tmp_path / "x.zip")
        assert not hasattr(again, "feature_names_in_")
        np.testing.assert_array_equal(again.predict(X), pipe.predict(X))

    def test_names_that_only_the_domain_declares_are_not_demanded(self, tmp_path):
        X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
        domain = Domain(feature_names=("a", "b"))
        pipe = make_pipeline(NormClipper(), StandardScaler(), domain=domain, epsilon=5.0, delta=1e-5).fit(X)
        pipe.export(tmp_path / "x.zip")
        np.testing.assert_array_equal(ppdp.load(tmp_path / "x.zip").transform(X), pipe.transform(X))

    def test_labels_come_back_as_they_were_declared(self, patients, tmp_path):
        words = np.where(patients[1] == 1, "dead", "alive")
        pipe = classifier().set_params(model__classes=np.array(["alive", "dead"])).fit(patients[0], words)
        pipe.export(tmp_path / "x.zip")
        assert set(ppdp.load(tmp_path / "x.zip").predict(patients[0])) <= {"alive", "dead"}

    def test_is_not_fitted_again_and_neither_is_its_clone(self, written, patients):
        again = ppdp.load(written[1])
        for pipe in (again, clone(again)):
            with pytest.raises(ExportError, match="not fitted again"):
                pipe.fit(*patients)
        assert again.certificate_.verify()
        assert not hasattr(clone(again), "certificate_")
        assert repr(clone(again)).startswith("ReleasedPipeline(")

    def test_its_steps_can_be_fitted_on_other_rows(self, written, patients):
        pipe = Pipeline(ppdp.load(written[1]).steps, epsilon=5.0, delta=1e-5).fit(*patients)
        assert pipe.certificate_["steps"] == written[0].certificate_["steps"]
        assert pipe.release_.sha256 != written[0].release_.sha256

    def test_can_be_pickled_by_those_who_do(self, written, patients):
        again = pickle.loads(pickle.dumps(ppdp.load(written[1])))
        np.testing.assert_array_equal(again.predict(patients[0]), written[0].predict(patients[0]))

    def test_maps_rows_into_frames(self, patients, tmp_path):
        pipe = clinic.scaling(random_state=None).fit(patients[0])
        pipe.export(tmp_path / "x.zip")
        out = ppdp.load(tmp_path / "x.zip").set_output(transform="pandas").transform(patients[0])
        np.testing.assert_array_equal(out[COLUMNS], pipe.transform(patients[0]))

    def test_repairs_rows_as_the_fit_did(self, patients, tmp_path):
        pipe = classifier(on_invalid="repair").fit(*patients)
        pipe.export(tmp_path / "x.zip")
        rows = patients[0].assign(dose=np.inf)
        np.testing.assert_array_equal(ppdp.load(tmp_path / "x.zip").predict(rows), pipe.predict(rows))


@pytest.fixture
def own_formula(monkeypatch):
    entry = Stability("test.mirror", "row-wise", lambda *point: point, ("Mirror",), gaps=True)
    monkeypatch.setitem(FORMULAS, "test.mirror", entry)


class Mirror(RowWiseTransformer):
    def fit_modes(self, domain, distance):
        return (FitMode.by("test.mirror", domain, distance),)

    map_rows = staticmethod(lambda X, statistics: -X)


@pytest.fixture
def rows():
    return np.random.default_rng(0).uniform(-1, 1, (400, 2))


def scaled(*stages):
    return make_pipeline(NormClipper(), *stages, StandardScaler(), epsilon=5.0, delta=1e-5)


class TestWhatIsOnlyNamed:
    def test_a_function_is_handed_in_again(self, rows, tmp_path):
        pipe = scaled(RowMap(lambda X: np.log1p(np.abs(X)), out_ranges=(0, 1), lipschitz=1.0)).fit(rows)
        pipe.export(tmp_path / "x.zip")
        with pytest.raises(ExportError, match=r"'rowmap': .*<lambda>.*functions=\{'rowmap'"):
            ppdp.load(tmp_path / "x.zip")
        for key in ("rowmap", "rowmap__function"):
            again = ppdp.load(tmp_path / "x.zip", functions={key: lambda X: np.log1p(np.abs(X))})
            np.testing.assert_array_equal(again.transform(rows), pipe.transform(rows))

    @pytest.mark.parametrize("other", [np.abs, np.zeros_like, lambda X: X[:, :1], lambda X: 1 / 0, "np.log1p", None])
    def test_another_function_is_found_by_the_made_up_rows(self, rows, tmp_path, other):
        pipe = scaled(RowMap(lambda X: np.log1p(np.abs(X)), out_ranges=(0, 1), lipschitz=1.0)).fit(rows)
        pipe.export(tmp_path / "x.zip")
        with pytest.raises(ExportError, match="made-up rows"):
            ppdp.load(tmp_path / "x.zip", functions={"rowmap": other})

    def test_a_transformer_fitted_on_public_data_is_handed_in_again(self, rows, tmp_path):
        published = PublicScaler().fit([[0.0, 0.0], [2.0, 1.0]])
        pipe = scaled(Public(published, row_norm=3.0)).fit(rows)
        pipe.export(tmp_path / "x.zip")
        with pytest.raises(ExportError, match=r"sklearn.preprocessing.*StandardScaler"):
            ppdp.load(tmp_path / "x.zip")
        again = ppdp.load(tmp_path / "x.zip", functions={"public": published})
        np.testing.assert_array_equal(again.transform(rows), pipe.transform(rows))
        with pytest.raises(ExportError, match="made-up rows"):
            ppdp.load(tmp_path / "x.zip", functions={"public": PublicScaler().fit([[0.0, 0.0], [2.0, 2.0]])})

    def test_what_a_mechanism_asked_of_private_rows_is_needed_no_more(self, rows, tmp_path):
        vote = ExponentialMechanism("utility", candidates=["a", "b"], utility=np.abs)
        pipe = make_pipeline(NormClipper(), vote, epsilon=5.0).fit(rows)
        pipe.export(tmp_path / "x.zip")
        assert ppdp.load(tmp_path / "x.zip")[-1].selected_ == pipe[-1].selected_

    def test_a_class_of_ones_own_is_handed_in(self, rows, tmp_path, own_formula):
        pipe = scaled(Mirror()).fit(rows)
        pipe.export(tmp_path / "x.zip")
        for stages in ([], [NormClipper], [dict], [type("Mirror", (), {})]):
            with pytest.raises(ExportError, match=r"'mirror': the class 'Mirror' is not ppdp's"):
                ppdp.load(tmp_path / "x.zip", stages=stages)
        again = ppdp.load(tmp_path / "x.zip", stages=[Mirror])
        np.testing.assert_array_equal(again.transform(rows), pipe.transform(rows))

    def test_a_class_of_ones_own_does_not_stand_in_for_ppdps(self, rows, tmp_path, own_formula):
        scaled().fit(rows).export(tmp_path / "x.zip")
        impostor = type("NormClipper", (Mirror,), {})
        assert type(ppdp.load(tmp_path / "x.zip", stages=[impostor]).steps[0][1]) is NormClipper

    def test_without_its_formula_nothing_is_verified(self, rows, tmp_path, own_formula, monkeypatch):
        scaled(Mirror()).fit(rows).export(tmp_path / "x.zip")
        monkeypatch.delitem(FORMULAS, "test.mirror")
        with pytest.raises(ppdp.exceptions.CertificateError, match=r"test\.mirror"):
            ppdp.load(tmp_path / "x.zip", stages=[Mirror])
