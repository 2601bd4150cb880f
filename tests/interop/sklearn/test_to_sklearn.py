"""A release as a pipeline of scikit-learn alone: equal to 1e-12, or refused by name."""

import sys
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression
from sklearn.pipeline import Pipeline as PlainPipeline
from sklearn.pipeline import make_pipeline as plain_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures
from sklearn.preprocessing import StandardScaler as PlainStandardScaler

from ppdp import Certificate, Domain, Pipeline, load, make_pipeline
from ppdp import ColumnTransformer as OwnColumns
from ppdp import mechanisms as M
from ppdp import transformers as S
from ppdp.exceptions import ExportError
from ppdp.interop.sklearn.to_sklearn import MODELS, STAGES, to_sklearn

pytestmark = pytest.mark.filterwarnings("ignore::ppdp.exceptions.CompositionWarning")

D, RANGE, CLASSES = 4, (0.0, 10.0), ("no", "yes")
RANGES = S.MinMaxScaler(ranges=[RANGE, (0.0, 20.0), (-5.0, 5.0), (1e6, 1e6 + 10.0)])
MODEL = M.LogisticRegression(classes=CLASSES)
OFFSET = np.array([0.0, 0.0, 0.0, 1e6])


def stage_name(stage):
    return type(stage).__name__


def rows(n, spread=3.0, gaps=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(4.0, spread, (n, D)) + OFFSET
    X[rng.random(X.shape) < gaps] = np.nan
    return X


X, WILD = rows(3000), np.vstack([rows(300, 100.0, seed=1), np.zeros((1, D)), np.full((1, D), 1e300), -rows(9, 1e9)])
Y = np.where(X[:, 0] > 4, "yes", "no")
TARGETS = np.clip(X[:, 0], 0.5, 10)
PUBLISHED = PlainStandardScaler().fit(rows(50, seed=2))


def with_gaps(X):
    X = X.copy()
    X[np.random.default_rng(3).random(X.shape) < 0.1] = np.nan
    X[-1] = np.nan
    return X


def fit(*steps, X=X, y=None, epsilon=20.0, **options):
    y = (Y if is_classifier(steps[-1]) else TARGETS) if y is None else y
    return make_pipeline(*steps, epsilon=epsilon, delta=1e-6, **options).fit(X, y)


def assert_same(plain, pipe, X, tolerance=1e-12):
    """Everything that a fitted pipeline answers."""
    assert type(plain) is PlainPipeline
    for method in ("transform", "predict", "predict_proba", "decision_function"):
        assert hasattr(plain, method) == hasattr(pipe, method) or type(plain[-1]) is KMeans  # also where ours does not
        if hasattr(pipe, method):
            ours, theirs = getattr(pipe, method)(X), getattr(plain, method)(X)
            assert theirs.shape == ours.shape
            if ours.dtype.kind == "f":
                np.testing.assert_allclose(theirs, ours, tolerance, tolerance)
            else:
                assert (theirs == ours).all()


GROUPS = OwnColumns([("a", S.StandardScaler(fit_mode="noisy"), [2, 0]), ("b", S.RandomProjection(2), [1, 3])])
STAGES_TRIED = {
    "scaler": [RANGES, S.StandardScaler()],
    "tight clip of scaled rows": [RANGES, S.StandardScaler(clip=0.5)],
    "one scale": [RANGES, S.StandardScaler(per_column=False, clip=None)],
    "ball": [S.Deduplicator(), S.NormClipper(7.0)],
    "small ball": [RANGES, S.NormClipper(1e-3)],
    "projector": [RANGES, S.PCA(2, fit_mode="noisy")],
    "centred projector": [RANGES, S.PCA(2, with_mean=True, fit_mode="noisy")],
    "columns of a projector": [RANGES, S.PCA(2, output="projected", with_mean=True, fit_mode="noisy")],
    "whole rank": [RANGES, S.PCA()],
    "soft projector": [RANGES, S.SoftPCA(fit_mode="noisy")],
    "signs": [RANGES, S.RandomProjection(3, family="rademacher")],
    "few signs": [RANGES, S.RandomProjection(3, family="oporp")],
    "identity": [S.RowMap(out_ranges=[RANGE, RANGE, (-3, 2), (1e6, 1e6 + 5)])],
    "groups behind a stage": [RANGES, GROUPS],
    "groups of a table": [
        OwnColumns(
            [
                ("a", [S.MinMaxScaler(ranges=(-5.0, 10.0)), S.StandardScaler(fit_mode="noisy")], [2]),
                ("c", [S.MinMaxScaler(ranges=(-5.0, 10.0)), S.SplineTransformer(4)], [0]),
                ("b", [S.MinMaxScaler(ranges=(0.0, 1e6)), S.RandomProjection(1)], [1, 3]),
            ]
        )
    ],
    "distances": [RANGES, S.ClusterDistances(3)],
    "bins": [RANGES, S.KBinsDiscretizer(4)],
    "numbers of bins of some columns": [RANGES, S.KBinsDiscretizer(3, encode="ordinal", columns=[2, 0])],
    "splines of some columns": [RANGES, S.SplineTransformer(4, columns=[3, 1])],
    "ranks": [RANGES, S.QuantileTransformer(5)],
    "normal scores of some columns": [RANGES, S.QuantileTransformer(8, "normal", columns=[3, 1])],
    "function": [RANGES, S.RowMap(np.tanh, out_ranges=(-0.5, 0.5), lipschitz=1.0)],
    "function into a ball": [RANGES, S.RowMap(np.tanh, out_norm=0.75, lipschitz=1.0)],
    "published scaler": [
        RANGES,
        S.Public(plain_pipeline(PlainStandardScaler().fit(np.eye(D))), lipschitz=9.0, row_norm=2.0),
    ],
}
FUNCTIONS = {"rowmap": np.tanh, "public": STAGES_TRIED["published scaler"][1].transformer}


@pytest.mark.parametrize("stages", STAGES_TRIED.values(), ids=STAGES_TRIED)
@pytest.mark.parametrize("last", [MODEL, None], ids=["model", "transformer"])
@pytest.mark.repeated("last")
def test_stages_map_rows_alike(stages, last):
    pipe = fit(*stages, *([] if last is None else [last]))
    assert_same(pipe.release_.to_sklearn(functions=FUNCTIONS), pipe, WILD)


@pytest.mark.parametrize(
    "steps", [[S.MeanImputer()], [S.MeanImputer(), S.StandardScaler(clip=0.75)]], ids=["mean", "clip"]
)
def test_gaps_are_filled_alike(steps):
    pipe = fit(RANGES, *steps, MODEL, X=with_gaps(X))
    assert_same(pipe.release_.to_sklearn(), pipe, with_gaps(WILD))


def test_a_norm_of_rows_with_gaps():
    pipe = fit(S.NormClipper(9.0), S.MeanImputer(), MODEL, X=with_gaps(X))
    assert_same(pipe.release_.to_sklearn(), pipe, with_gaps(WILD))


@pytest.mark.parametrize("stage", [S.MedianImputer(), S.TrimmedMeanImputer(), S.RobustScaler(clip=0.5)], ids=stage_name)
def test_stages_that_few_budgets_release_map_alike(stage):
    """Twins that were fitted alone stand for released ones."""
    front = clone(RANGES).fit(X)
    counterpart = clone(stage).fit(front.transform(with_gaps(X)))
    plain = to_sklearn([("range", front), ("stage", counterpart)], [Domain(n_features=D)] * 2, "error")
    rows = with_gaps(WILD)
    np.testing.assert_allclose(plain.transform(rows), counterpart.transform(front.transform(rows)), 1e-12, 1e-12)


@pytest.mark.parametrize(
    "model",
    [
        M.LogisticRegression(classes=("b", "a", "c")),
        M.LinearSVC(classes=("yes", "no")),
        M.GaussianNB(classes=("b", "a", "c")),
        M.LogisticRegression(classes=CLASSES, fit_intercept=False, solver="output"),
        M.LinearRegression(y_range=(0, 10)),
        M.Ridge(y_range=(-5, 15), solver="moments"),
        M.PoissonRegressor(y_range=(0, 10)),
        M.GammaRegressor(y_range=(0, 10)),
        M.TweedieRegressor(y_range=(0, 10), power=1.5),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_predict_alike(model):
    classes = getattr(model, "classes", None)
    y = None if classes is None else np.random.default_rng(0).choice(sorted(classes), len(X))
    pipe = fit(RANGES, model, y=y)
    plain = pipe.release_.to_sklearn()
    assert_same(plain, pipe, WILD)
    assert plain.score(X, TARGETS if y is None else y) == pytest.approx(pipe.score(X, TARGETS if y is None else y))


def test_a_gaussian_projection_is_equal_up_to_its_rounding():
    pipe = fit(RANGES, S.RandomProjection(3), MODEL)
    assert_same(pipe.release_.to_sklearn(), pipe, WILD, 1e-8)


@pytest.mark.parametrize(
    "facts", [{"row_norm": 3.0}, {"row_norm": 12.0, "entry_bound": 6.0}, {"row_norm": 5.0, "entry_bound": 4.0}]
)
def test_bounds_at_the_entrance_clip_alike(facts):
    pipe = fit(MODEL, X=X - OFFSET, domain=Domain(**facts))
    plain = pipe.release_.to_sklearn()
    assert plain.steps[0][0] == "entrance"
    assert_same(plain, pipe, WILD)


def test_gaps_that_a_pipeline_repairs_are_zeros():
    pipe = fit(S.MinMaxScaler(ranges=RANGE), MODEL, on_invalid="repair")
    assert_same(pipe.release_.to_sklearn(), pipe, with_gaps(WILD))


class TestTables:
    """What ``from_sklearn`` makes of a ColumnTransformer goes back."""

    FRAME = pd.DataFrame(
        {"age": X[:, 0] * 10, "ward": np.where(X[:, 1] > 4, "a", "b"), "smokes": (X[:, 2] > 4) * 1.0, "id": X[:, 3]}
    )

    def made(self, drop=None, X=FRAME, **options):
        columns = ColumnTransformer(
            [
                ("numbers", plain_pipeline(SimpleImputer(), PlainStandardScaler()), ["age"]),
                ("labels", OneHotEncoder(handle_unknown="ignore", drop=drop), ["ward", "smokes"]),
            ]
        )
        pipe = PlainPipeline([("columns", columns), ("model", PlainLogisticRegression())])
        given = {
            "categories": {"ward": ["b", "a"], "smokes": [0.0, 1.0]},
            "ranges": {"age": (0, 100)},
            "classes": CLASSES,
        }
        return Pipeline.from_sklearn(pipe, epsilon=20.0, **{**given, **options}).fit(X, Y)

    def test_labels_and_numbers_are_read_alike(self):
        pipe, frame = self.made(X=self.FRAME), self.FRAME.head(200).copy()
        frame.loc[3:9, "age"] = np.nan
        frame.loc[20:29, "ward"] = "unknown"
        frame.loc[40, "age"] = 1e9
        plain = pipe.release_.to_sklearn()
        assert_same(plain, pipe, frame)
        assert list(plain.feature_names_in_) == list(frame.columns)

    @pytest.mark.parametrize("drop", [None, "first", "if_binary"])
    @pytest.mark.parametrize("wards", [["b", "a"], ["b", "a", None], [None, "a"]])
    @pytest.mark.repeated("wards", keep=2)
    def test_missing_text_may_be_a_category(self, wards, drop):
        pipe = self.made(drop, categories={"ward": wards, "smokes": [1.0, 0.0]})
        frame = self.FRAME.head(200).assign(ward=self.FRAME["ward"].head(200).astype(object))
        for at, cell in enumerate([None, np.nan, "unknown", "", 7]):
            frame.loc[5 * at : 5 * at + 3, "ward"] = cell
        assert_same(pipe.release_.to_sklearn(), pipe, frame)

    def test_a_step_that_maps_categories_further_is_named(self):
        columns = plain_pipeline(OneHotEncoder(categories=[["a", "b"]]), PolynomialFeatures(2))
        pipe = Pipeline.from_sklearn(ColumnTransformer([("ward", columns, ["ward"])]), epsilon=20.0, max_norm=9.0)
        with pytest.raises(ExportError, match="mapped further") as caught:
            pipe.fit(self.FRAME).release_.to_sklearn()
        assert caught.value.fix


class TestWhatItIs:
    def test_ordinary_objects_with_the_names_of_the_steps(self):
        pipe = fit(
            RANGES,
            S.Deduplicator(),
            S.MeanImputer(),
            S.StandardScaler(),
            S.PCA(2, with_mean=False, fit_mode="noisy"),
            MODEL,
            X=with_gaps(X),
        )
        plain = pipe.release_.to_sklearn()
        assert list(plain.named_steps) == ["minmaxscaler", "meanimputer", "standardscaler", "pca", "logisticregression"]
        assert type(plain["meanimputer"]) is SimpleImputer
        assert type(plain["logisticregression"]) is PlainLogisticRegression
        assert (plain["meanimputer"].statistics_ == pipe["meanimputer"].mean_).all()
        assert (plain["logisticregression"].coef_ == pipe["logisticregression"].coef_).all()

    def test_a_loaded_release_gives_the_same(self, tmp_path):
        pipe = fit(RANGES, S.StandardScaler(), MODEL)
        pipe.export(tmp_path / "model.zip")
        loaded = load(tmp_path / "model.zip").release_.to_sklearn()
        assert (loaded.predict_proba(WILD) == pipe.release_.to_sklearn().predict_proba(WILD)).all()

    def test_names_of_columns_stay(self):
        frame = pd.DataFrame(X, columns=list("abcd"))
        pipe = fit(S.MinMaxScaler(ranges={"a": RANGE, "b": RANGE, "c": RANGE, "d": (1e6, 1e6 + 9)}), MODEL, X=frame)
        plain = pipe.release_.to_sklearn()
        assert list(plain.feature_names_in_) == list("abcd")
        assert_same(plain, pipe, frame.head(50))
        with pytest.raises(ValueError, match="feature names"):
            plain.predict(frame[["b", "a", "c", "d"]])

    def test_a_function_of_a_frame_sees_an_array(self):
        frame = pd.DataFrame(X, columns=list("abcd"))
        pipe = fit(S.RowMap(np.arctan, out_ranges=(-1, 1)), MODEL, X=frame)
        plain = pipe.release_.to_sklearn(functions={"rowmap": np.arctan})
        assert_same(plain, pipe, frame.head(50))
        assert plain.n_features_in_ == D

    def test_skops_knows_every_type(self):
        skops = pytest.importorskip("skops.io")
        pipe = fit(RANGES, S.StandardScaler(clip=1.0), S.PCA(2, fit_mode="noisy"), MODEL)
        data = skops.dumps(pipe.release_.to_sklearn())
        norm = ["ppdp.interop.sklearn.plain_objects.NormClip"]
        assert skops.get_untrusted_types(data=data) == norm
        assert_same(skops.loads(data, trusted=norm), pipe, WILD)
        imputed = skops.dumps(fit(RANGES, S.MeanImputer(), MODEL, X=with_gaps(X)).release_.to_sklearn())
        assert {*skops.get_untrusted_types(data=imputed)} <= {"numpy.dtype"}, "the type of a column"


class TestMlflow:
    """A stand-in for MLflow, which is far heavier than what is asked of it."""

    @pytest.fixture
    def logged(self, monkeypatch):
        logged = {}
        mlflow, models = ModuleType("mlflow"), ModuleType("mlflow.sklearn")
        mlflow.log_text = lambda text, path: logged.update({path: text})
        mlflow.set_tags = logged.update
        models.log_model = lambda model, name, **options: logged.update({name: (model, options)}) or "logged"
        mlflow.sklearn = models
        monkeypatch.setitem(sys.modules, "mlflow", mlflow)
        monkeypatch.setitem(sys.modules, "mlflow.sklearn", models)
        return logged

    def test_the_model_and_its_certificate_are_logged(self, logged):
        pipe = fit(RANGES, S.StandardScaler(), MODEL)
        assert pipe.release_.log_model("study", input_example=X[:2]) == "logged"
        plain, options = logged["study"]
        assert_same(plain, pipe, WILD)
        assert list(options) == ["input_example"]
        assert Certificate.from_json(logged["study-certificate.json"]) == pipe.certificate_
        assert logged["study-certificate.html"] == pipe.certificate_.to_html()
        assert logged["ppdp.status"] == "UNCONDITIONAL"

    def test_an_mlflow_that_writes_by_skops_is_told_all_types(self, logged):
        skops = pytest.importorskip("skops.io")

        def by_skops(model, artifact_path=None, skops_trusted_types=None, serialization_format=None):
            logged[artifact_path] = skops.loads(skops.dumps(model), trusted=skops_trusted_types)

        sys.modules["mlflow.sklearn"].log_model = by_skops
        pipe = fit(RANGES, S.MeanImputer(), S.StandardScaler(), MODEL, X=with_gaps(X))
        pipe.release_.log_model("study")
        assert_same(logged["study"], pipe, with_gaps(WILD))
        for options in ({"skops_trusted_types": []}, {"serialization_format": "skops"}):
            with pytest.raises(Exception, match=r"numpy\.dtype"):
                pipe.release_.log_model("study", **options)

    def test_of_what_is_refused_nothing_is_logged(self, logged):
        with pytest.raises(ExportError, match="seed"):
            fit(RANGES, MODEL, random_state=0).release_.log_model()
        assert not logged

    def test_without_mlflow(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "mlflow", None)
        with pytest.raises(ExportError, match="not installed"):
            fit(RANGES, MODEL).release_.log_model()


class TestRefused:
    @pytest.mark.parametrize(
        "stage", [S.GridQuantizer(0.5), S.RegressionImputer(fit_mode="noisy")], ids=["grid", "regression"]
    )
    def test_a_stage_without_a_plain_twin_is_named(self, stage):
        with pytest.raises(ExportError, match=rf"'{type(stage).__name__.lower()}'.*Fix:"):
            fit(RANGES, stage, MODEL, X=with_gaps(X) if stage.fills_gaps else X).release_.to_sklearn()

    def test_labels_with_fractions(self):
        with pytest.raises(ExportError, match=r"'logisticregression'.*Fix:"):
            fit(RANGES, M.LogisticRegression((0.5, 1.5)), y=0.5 + (Y == "yes")).release_.to_sklearn()

    def test_bins_of_rows_with_gaps(self):
        with pytest.raises(ExportError, match="an imputer in front"):
            fit(RANGES, S.KBinsDiscretizer(3), S.MeanImputer(), X=with_gaps(X)).release_.to_sklearn()

    def test_a_step_that_predicts_nothing(self):
        with pytest.raises(ExportError, match=r"'gaussianmechanism'.*no model"):
            fit(RANGES, M.GaussianMechanism()).release_.to_sklearn()

    def test_what_maps_nothing(self):
        pipe = fit(S.PCA(), S.Deduplicator(), X=X - OFFSET, domain=Domain(row_norm=50.0))
        assert [name for name, _ in pipe.release_.to_sklearn().steps] == ["entrance"]

    def test_what_may_not_leave(self):
        seeded = fit(RANGES, MODEL, random_state=0)
        with pytest.raises(ExportError, match="seed"):
            seeded.release_.to_sklearn(conditional=True)
        assumed = fit(RANGES, S.PCA(2, output="projected", fit_mode="exact"), MODEL, gate=None)
        with pytest.raises(ExportError, match="CONDITIONAL"):
            assumed.release_.to_sklearn()
        assert assumed.release_.to_sklearn(conditional=True)

    def test_a_function_that_is_not_handed_in(self):
        with pytest.raises(ExportError, match="functions="):
            fit(*STAGES_TRIED["function"], MODEL).release_.to_sklearn()


def test_every_class_of_the_tables_is_tried():
    tried = {type(stage).__name__ for stages in STAGES_TRIED.values() for stage in stages}
    tried |= {"ColumnSplit", "ColumnSubset"} if "ColumnTransformer" in tried else set()
    tried |= {"CategoryEncoder", "ColumnMap", "MeanImputer", "MedianImputer", "RobustScaler", "TrimmedMeanImputer"}
    tried |= {"HashingVectorizer", "SelectKBest", "SelectPercentile", "VarianceThreshold"}  # among their own tests
    assert {kind.__name__ for kind in STAGES} <= tried
    assert len(MODELS) == 7


class TestOnnx:
    """The most used converter takes it, clips included; its linear models know float32 only."""

    def run(self, release, X):
        pytest.importorskip("skl2onnx")
        runtime, found = pytest.importorskip("onnxruntime"), release.to_onnx()
        session = runtime.InferenceSession(found.SerializeToString(), providers=["CPUExecutionProvider"])
        return session.run(None, {"X": X})

    @pytest.mark.parametrize(
        "name", ["scaler", "tight clip of scaled rows", "centred projector", "soft projector", "signs", "ranks"]
    )
    def test_a_classifier(self, name):
        pipe = fit(*STAGES_TRIED[name], MODEL)
        labels, shares = self.run(pipe.release_, WILD)
        np.testing.assert_allclose(shares, pipe.predict_proba(WILD), 0, 1e-5)
        sure = np.abs(pipe.decision_function(WILD)) > 1e-4
        assert (labels == pipe.predict(WILD))[sure].all()

    def test_gaps_and_a_regression(self):
        """Its runtime fills gaps of float32 only."""
        ranges, model = S.MinMaxScaler(ranges=RANGE), M.Ridge(y_range=(0, 10), solver="moments")
        pipe = fit(ranges, S.MeanImputer(), S.StandardScaler(), model, X=with_gaps(X - OFFSET))
        rows = with_gaps(WILD[:300] - OFFSET)
        (found,) = self.run(pipe.release_, rows.astype(np.float32))
        np.testing.assert_allclose(found[:, 0], pipe.predict(rows), 0, 1e-4)
