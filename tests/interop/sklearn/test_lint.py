"""Every stage of a scikit-learn workflow is classified by what it tells about the rows."""

import json
import warnings

import numpy as np
import pytest
from imblearn.combine import SMOTEENN
from imblearn.over_sampling import SMOTE
from imblearn.pipeline import Pipeline as ImbalancedPipeline
from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA, SparseCoder
from sklearn.ensemble import VotingClassifier
from sklearn.experimental import enable_halving_search_cv, enable_iterative_imputer  # noqa: F401
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectKBest, SelectPercentile
from sklearn.frozen import FrozenEstimator
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    SplineTransformer,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection
from sklearn.utils import all_estimators

import ppdp
from ppdp import lint, mechanisms, transformers
from ppdp.cli import main as cli
from ppdp.exceptions import InvalidParameter
from ppdp.interop.sklearn.counterparts import COUNTERPARTS
from ppdp.interop.sklearn.counterparts import STAGES as STAGE_ROLES
from ppdp.interop.sklearn.known_estimators import CONTAINERS, KNOWN, SEVERITIES, Leak
from ppdp.interop.sklearn.lint import Finding, LintReport
from ppdp.transformers.rowwise.public import PROJECTS, SUBTRACTS

# What scikit-learn 1.6 says of itself with a newer SciPy, when its own model is fitted beside ours.
pytestmark = pytest.mark.filterwarnings("ignore:scipy.optimize:DeprecationWarning")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    EVERYTHING = dict(all_estimators())

GONE = {"ClassicalMDS"}  # not in every supported version


def made(kind):
    """An instance, whatever the class demands."""
    inner = LogisticRegression()
    demands = [{}, {"estimator": inner}, {"estimators": [("a", inner)]}, {"transformers": []}, {"transformer_list": []}]
    demands += [{"steps": [("a", inner)]}, {"estimator": inner, "param_grid": {}}, {"dictionary": np.eye(2)}]
    demands += [{"estimator": inner, "param_distributions": {}}, {"base_estimator": inner}]
    for parameters in demands:
        try:
            return kind(**parameters)
        except TypeError:
            continue
    raise AssertionError(f"{kind.__name__} cannot be made")


class TestScikitLearn:
    @pytest.mark.filterwarnings("ignore::FutureWarning")  # classes that a later version will not have
    @pytest.mark.parametrize("name", EVERYTHING)
    def test_every_estimator_is_classified(self, name):
        assert (name in KNOWN) != (name in CONTAINERS)
        report = lint(made(EVERYTHING[name]))
        assert report.severity in SEVERITIES
        assert not any("unknown" in found.leaks for found in report)

    def test_nothing_is_classified_that_does_not_exist(self):
        assert set(KNOWN) - set(EVERYTHING) <= GONE
        assert set(CONTAINERS) <= set(EVERYTHING)

    def test_words_are_short_and_twins_exist(self):
        ours = {*transformers.__all__, *mechanisms.__all__, *ppdp.__all__, ""}
        for name, leak in ((name, known.leak) for name, known in KNOWN.items()):
            assert leak.severity in SEVERITIES, name
            assert 0 < len(leak.leaks) <= 85, name
            assert leak.counterpart in ours, name
            assert leak.fix, name

    @pytest.mark.parametrize("stage", [GaussianRandomProjection(2), transformers.RandomProjection(2)])
    def test_a_random_projection_is_not_taken_for_privacy(self, stage):
        (found,) = lint(stage).findings
        assert found.severity == "none"
        assert "images of private rows stay private" in found.leaks

    def test_whatever_becomes_a_stage_or_a_model_has_a_twin_in_lint_and_the_other_way_round(self):
        for name, (role, _) in COUNTERPARTS.items():
            if role in (*STAGE_ROLES, "model"):
                assert hasattr(mechanisms if role == "model" else transformers, KNOWN[name].leak.counterpart), name
            else:
                assert role in ("map", "map anywhere"), name

    def test_what_public_takes_fitted_is_in_the_table(self):
        assert {*SUBTRACTS, *PROJECTS} <= set(KNOWN)

    def test_missing_text_becomes_a_category(self):
        (found,) = lint(SimpleImputer(strategy="most_frequent"))
        assert (found.severity, found.counterpart) == ("high", "CategoryEncoder")
        assert found.fix.startswith("text: CategoryEncoder(..., add_indicator=True)")
        (found,) = lint(SimpleImputer(strategy="median"))
        assert (found.severity, found.counterpart) == ("high", "TrimmedMeanImputer")

    @pytest.mark.parametrize(
        ("estimator", "severity"),
        [
            (SimpleImputer(), "low"),
            (SimpleImputer(strategy="constant"), "low"),
            (SimpleImputer(strategy="constant", keep_empty_features=True), "none"),
            (SimpleImputer(strategy="median"), "high"),
            (SimpleImputer(add_indicator=True), "high"),
            (IterativeImputer(), "low"),
            (IterativeImputer(add_indicator=True), "high"),
            (IterativeImputer(initial_strategy="median"), "high"),
            (PCA(), "low"),
            (PCA(2), "low"),
            (PCA(0.9), "high"),
            (PCA("mle"), "high"),
            (SplineTransformer(), "high"),
            (SplineTransformer(knots=np.array([[0.0], [1.0]])), "none"),
            (SelectKBest(k=2), "high"),
            (SelectKBest(k="all"), "low"),
            (SelectPercentile(percentile=100), "low"),
            (TfidfVectorizer(vocabulary=["a"]), "low"),
            (TfidfVectorizer(vocabulary=["a"], use_idf=False), "none"),
            (SparseCoder(np.eye(2)), "declared"),
            (OneHotEncoder(), "high"),
            (OneHotEncoder(categories=[[0, 1]]), "none"),
            (OneHotEncoder(categories=[[0, 1]], min_frequency=2), "high"),
            (OrdinalEncoder(categories=[[0, 1]]), "none"),
            (StandardScaler(), "low"),
            (StandardScaler(with_mean=False, with_std=False), "none"),
            (RBFSampler(), "none"),
            (RBFSampler(gamma="scale"), "low"),
            (MinMaxScaler(), "high"),
            (FrozenEstimator(StandardScaler()), "high"),
        ],
    )
    def test_parameters_decide(self, estimator, severity):
        assert lint(estimator).severity == severity

    def test_a_mean_moves_by_a_share_and_a_maximum_by_one_row(self):
        """What "low" and "high" mean, on the rows themselves."""
        X = np.linspace(0, 1, 1000)[:, None]
        Z = np.where(X == 1, 100.0, X)
        means = [StandardScaler().fit(rows).mean_[0] for rows in (X, Z)]
        ends = [MinMaxScaler().fit(rows).data_max_[0] for rows in (X, Z)]
        assert abs(means[0] - means[1]) <= 100 / 1000
        assert abs(ends[0] - ends[1]) == 99


class TestWorkflows:
    def test_containers_are_looked_into(self):
        columns = ColumnTransformer(
            [("num", make_pipeline(SimpleImputer(), StandardScaler()), ["age"]), ("cat", OneHotEncoder(), ["ward"])],
            remainder=MinMaxScaler(),
        )
        union = FeatureUnion([("pca", PCA(2)), ("rows", Normalizer())])
        search = GridSearchCV(make_pipeline(columns, union, "passthrough", LogisticRegression()), {})
        assert [(found.step, found.estimator) for found in lint(search)] == [
            ("", "GridSearchCV"),
            ("estimator__columntransformer__remainder", "MinMaxScaler"),
            ("estimator__columntransformer__num__simpleimputer", "SimpleImputer"),
            ("estimator__columntransformer__num__standardscaler", "StandardScaler"),
            ("estimator__columntransformer__cat", "OneHotEncoder"),
            ("estimator__featureunion__pca", "PCA"),
            ("estimator__featureunion__rows", "Normalizer"),
            ("estimator__logisticregression", "LogisticRegression"),
        ]

    @pytest.mark.parametrize(
        ("estimator", "inside"),
        [
            (CalibratedClassifierCV(LogisticRegression()), "estimator"),
            (TransformedTargetRegressor(Ridge(), transformer=StandardScaler()), "transformer"),
            (VotingClassifier([("one", LogisticRegression())]), "one"),
        ],
    )
    def test_estimators_in_parameters_are_found(self, estimator, inside):
        assert inside in [found.step for found in lint(estimator)]

    @pytest.mark.parametrize("sampler", [SMOTE(), SMOTEENN()])
    def test_resampling_of_imbalanced_learn(self, sampler):
        report = lint(ImbalancedPipeline([("more", sampler), ("model", LogisticRegression())]))
        assert (report.findings[0].step, report.findings[0].severity) == ("more", "high")
        assert "repeated, made up or dropped" in report.findings[0].leaks

    def test_somebody_elses_class_leaks_everything(self):
        class StandardScaler(BaseEstimator):
            def fit(self, X, y=None):
                return self

        (found,) = lint(StandardScaler())
        assert found.leaks == "unknown: assume that it leaks everything"
        assert found.severity == "high"

    def test_a_class_whose_parameters_cannot_be_read_is_still_reported(self):
        class Odd:
            def get_params(self, deep=True):
                raise RuntimeError

            def fit(self, X):
                return self

        assert lint(Odd()).severity == "high"

    def test_a_regressor_that_nobody_named_is_fitted_nevertheless(self):
        assert lint(TransformedTargetRegressor()).severity == "high"

    def test_a_converted_workflow_tells_nothing(self):
        pipe = ppdp.Pipeline.from_sklearn(make_pipeline(StandardScaler(), LogisticRegression()), ranges=(0, 1))
        assert lint(pipe).severity == "none"

    def test_what_was_fitted_is_never_read(self, monkeypatch):
        pipe = make_pipeline(StandardScaler(), LogisticRegression()).fit([[0.0], [1.0]], [0, 1])
        plain, read = object.__getattribute__, []

        def spy(self, name):
            if name.endswith("_") and not name.startswith("_"):
                read.append(name)
            return plain(self, name)

        monkeypatch.setattr(BaseEstimator, "__getattribute__", spy, raising=False)
        lint(pipe)
        monkeypatch.undo()
        assert read == []

    @pytest.mark.parametrize("wrong", [None, "pipe", StandardScaler, 3])
    def test_only_estimators_are_looked_at(self, wrong):
        with pytest.raises(InvalidParameter, match="an estimator is needed"):
            lint(wrong)


class TestReport:
    report = lint(make_pipeline(MinMaxScaler(), Normalizer()))

    def test_a_table_in_plain_words(self):
        text = repr(self.report)
        assert "1 of 2 stages look at the rows; worst: high" in text
        assert "smallest and largest values" in text
        assert max(map(len, text.splitlines())) <= 140

    def test_its_text_leaves_nothing_else_in_a_notebook(self, monkeypatch):
        shown = []
        monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
        monkeypatch.setattr("rich.jupyter.display", lambda *told: shown.append(told))
        assert "worst: high" in repr(self.report)
        assert shown == []

    def test_a_table_in_a_notebook_escapes_what_others_named(self):
        assert "<td>minmaxscaler</td>" in self.report._repr_html_()
        crafted = LintReport((Finding("<b>", "", "none", "", "", ""),))
        assert "<td>&lt;b&gt;</td>" in crafted._repr_html_()

    def test_plain_values(self):
        plain = json.loads(self.report.to_json())
        assert plain == self.report.to_dict()
        assert plain["severity"] == "high"
        assert [(f["estimator"], f["looks"]) for f in plain["findings"]] == [
            ("MinMaxScaler", True),
            ("Normalizer", False),
        ]

    def test_what_is_taken_at_a_users_word_is_counted(self):
        held = np.array([1.0, 2.0])
        report = lint(make_pipeline(FunctionTransformer(lambda X: (X, held)[0]), Normalizer()))
        assert "0 of 2 stages look at the rows, 1 is taken at your word; worst: declared" in repr(report)
        assert "make sure of it" in repr(report)
        assert not report.findings[0].looks

    def test_nothing_at_all(self):
        assert len(lint(make_pipeline("passthrough"))) == 0
        assert lint(make_pipeline("passthrough")).severity == "none"

    def test_a_leak_is_a_value(self):
        assert Leak("none", "nothing") == Leak("none", "nothing", "", "")


class TestCommand:
    @pytest.fixture
    def job(self, tmp_path):
        path = tmp_path / "job.py"
        lines = [
            "from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, Normalizer",
            "pipe = MinMaxScaler()",
            "row = Normalizer()",
            "mean = 1.5",
            "word = FunctionTransformer(lambda X: X - mean)",
        ]
        path.write_text("\n".join(lines), "utf-8")
        return path

    def test_exit_status_says_whether_something_looks(self, job, capsys):
        assert cli.main(["lint", f"{job}:pipe"]) == 1
        assert "MinMaxScaler" in capsys.readouterr().out
        assert cli.main(["lint", f"{job}:word"]) == 1
        assert "taken at your word" in capsys.readouterr().out
        assert cli.main(["lint", f"{job}:row", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["severity"] == "none"

    def test_a_module_by_its_name(self, job, capsys, monkeypatch):
        monkeypatch.syspath_prepend(job.parent)
        assert cli.main(["lint", "job:pipe"]) == 1

    @pytest.mark.parametrize(
        ("place", "words"),
        [("pipe", "names no pipeline"), ("no_such_module:pipe", "No module"), ("json:pipe", "holds no 'pipe'")],
    )
    def test_what_cannot_be_found(self, place, words, capsys):
        assert cli.main(["lint", place]) == 2
        assert words in capsys.readouterr().err
