"""What lint says of functions, of ppdp's own stages, and of what it cannot read."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from sklearn import preprocessing
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.experimental import enable_halving_search_cv, enable_iterative_imputer  # noqa: F401
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import Ridge
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, Normalizer, StandardScaler

import ppdp
from ppdp import lint, mechanisms, transformers
from ppdp.exceptions import InvalidParameter
from ppdp.testing import examples

pytestmark = pytest.mark.filterwarnings("ignore:scipy.optimize:DeprecationWarning")


MEAN = np.array([1.0, 2.0])
WEIGHTS = np.linspace(-1, 1, 6).reshape(3, 2)


def keeping(held):
    return lambda X: (X, held)[0]


def fails(X):
    raise RuntimeError


@pytest.mark.parametrize(
    ("function", "severity", "words"),
    [
        (None, "none", "every row is mapped by itself"),
        (np.log1p, "none", "every row is mapped by itself"),
        (preprocessing.normalize, "none", "every row"),
        (preprocessing.scale, "low", "means and variances of columns, by scale"),
        (stats.zscore, "low", "means and variances of columns, by zscore"),
        (preprocessing.minmax_scale, "high", "smallest and largest values"),
        (preprocessing.maxabs_scale, "high", "by maxabs_scale"),
        (preprocessing.robust_scale, "high", "by robust_scale"),
        (preprocessing.quantile_transform, "high", "by quantile_transform"),
        (preprocessing.power_transform, "high", "by power_transform"),
        (pd.get_dummies, "high", "by get_dummies"),
        ("log", "high", "unknown"),
        *(
            (function, "high", "a made-up row came out differently")
            for function in (
                np.mean,
                np.median,
                np.cumsum,
                np.maximum.accumulate,
                stats.rankdata,
                partial(preprocessing.normalize, axis=0),
                lambda X: X - X.mean(axis=0),
                lambda X: X - X[0],
                lambda X: X[::-1],
                lambda X: X * len(X),
                lambda X: X[:3],
                lambda X: X + np.random.normal(size=X.shape),  # noqa: NPY002
            )
        ),
        *(
            (function, "declared", "was not read off these rows and its function treats rows one by one")
            for function in (
                lambda X: X / 100,
                lambda X: X @ WEIGHTS,  # rounding is no mixing
                lambda X: X / np.linalg.norm(X, axis=1, keepdims=True),
                lambda X: sparse.csr_array(X),
                lambda X: np.where(X > 0, "tall", "small"),
                lambda cells: [cell.strip() for cell in cells],
                keeping(MEAN),
                np.frompyfunc(abs, 1, 1),
                fails,
            )
        ),
        (partial(preprocessing.scale, axis=1), "declared", "(its arguments axis)"),
    ],
)
def test_they_are_rated_by_what_they_do_to_made_up_rows(function, severity, words):
    (found,) = lint(FunctionTransformer(function))
    assert (found.severity, words in found.leaks) == (severity, True), found.leaks
    assert found.fix


@pytest.mark.parametrize("stage", [FunctionTransformer, transformers.RowMap])
def test_one_that_holds_on_to_an_estimator_carries_its_rows(stage):
    assert lint(stage(np.tanh)).severity == "none"
    for function in (partial(StandardScaler().transform), keeping([StandardScaler()])):
        (found,) = lint(stage(function))
        assert (found.severity, found.counterpart) == ("high", "Public")


@pytest.mark.parametrize("place", ["kw_args", "inv_kw_args"])
def test_arguments_are_carried_as_well(place):
    def stage(held):
        return FunctionTransformer(np.add, np.subtract, **{place: {"by": held}})

    assert lint(stage(MEAN)).severity == "declared"
    assert lint(stage([MinMaxScaler()])).severity == "high"


def test_the_inverse_is_one_of_them():
    assert lint(FunctionTransformer(np.tanh, inverse_func=StandardScaler().inverse_transform)).severity == "high"
    assert lint(FunctionTransformer(np.tanh, inverse_func=lambda X: X - X.mean())).severity == "high"


def test_functions_of_other_estimators():
    around = partial(TransformedTargetRegressor, Ridge(), inverse_func=np.exp)
    assert lint(around(func=np.log)).findings[0].severity == "none"
    assert lint(around(func=lambda y: y - y.mean())).findings[0].severity == "high"
    assert lint(HashingVectorizer(preprocessor=str.lower)).severity == "none"
    assert lint(HashingVectorizer(analyzer=keeping(StandardScaler()))).severity == "high"
    assert lint(HashingVectorizer(analyzer=keeping({"a", "b"}))).severity == "declared"


class Counter:
    calls = 0

    def __call__(self, X):
        self.calls += 1
        return X * 2


def test_what_a_user_holds_stays_as_it_was(capsys):
    counter, before = Counter(), np.random.get_state()[1].copy()  # noqa: NPY002
    lint(FunctionTransformer(counter))
    lint(FunctionTransformer(lambda X: print(X) or np.random.normal(size=X.shape)))  # noqa: NPY002, T201
    assert lint(FunctionTransformer(lambda X: exit())).severity == "declared"
    assert counter.calls == 0
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002
    assert capsys.readouterr().out == ""


# ---------------- ppdp's own


# What scikit-learn 1.6 says of itself with a newer SciPy, when its own model is fitted beside ours.
STAGES = [stage for stage in examples() if hasattr(stage, "fit_modes")]


PUBLIC = np.array([1.0, 2.0])


def inside(*steps, **parameters):
    return ppdp.make_pipeline(transformers.NormClipper(), *steps, mechanisms.GaussianMechanism(), **parameters)


class TestOwn:
    """A stage or mechanism of ppdp promises something inside a ppdp pipeline only."""

    @pytest.mark.parametrize("stage", STAGES, ids=lambda stage: type(stage).__name__)
    def test_what_is_called_none_alone_has_learned_nothing(self, stage):
        X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
        Z = np.vstack([[5.0, -7.0, 9.0], X[1:]])
        if hasattr(stage, "fit_resample"):
            assert lint(stage).severity == "high"
            return
        fitted = [vars(clone(stage).fit(rows, np.arange(60) % 2)) for rows in (X, Z)]
        learned = [name for name in fitted[0] if name.endswith("_") and repr(fitted[0][name]) != repr(fitted[1][name])]
        if lint(stage).severity in ("none", "declared"):
            assert learned == []

    @pytest.mark.parametrize("name", transformers.__all__)
    def test_every_stage_is_known(self, name):
        stage = getattr(transformers, name).example()
        assert "unknown" not in repr(lint(stage))
        assert lint(inside(stage)).severity == ("declared" if name == "Public" else "none")

    @pytest.mark.parametrize(
        ("stage", "severity"),
        [
            (transformers.StandardScaler(), "low"),
            (transformers.PCA(1), "low"),
            (transformers.MinMaxScaler((0, 1)), "none"),
            (transformers.MinMaxScaler((0, 1), quantiles=(0.1, 0.9)), "high"),
            (transformers.Deduplicator(), "high"),
        ],
    )
    def test_alone_it_is_exact(self, stage, severity):
        assert lint(make_pipeline(stage)).severity == severity
        assert lint(inside(stage)).severity == "none"

    @pytest.mark.parametrize(
        ("parameters", "words"),
        [
            ({}, "noise of a size that is not set"),
            ({"noise_scale": 1e-9}, "noise of size 1e-09, which you chose"),
            ({"noise_scale": 1.0, "random_state": 0}, "comes from a seed"),
        ],
    )
    def test_noise_that_nobody_accounts_for(self, parameters, words):
        (found,) = lint(mechanisms.GaussianMechanism(**parameters))
        assert (found.severity, words in found.leaks) == ("high", True)
        assert "ppdp.Pipeline" in found.fix

    def test_a_pipeline_sets_the_noise_itself(self):
        mechanism = mechanisms.GaussianMechanism(noise_scale=1e-9, random_state=0)
        (found,) = lint(ppdp.make_pipeline(mechanism))
        assert (found.severity, "not used here: noise_scale, random_state" in found.leaks) == ("none", True)

    def test_seeds_and_untested_assumptions_are_named(self):
        search = ppdp.PrivateSearchCV(inside(), {"normclipper__max_norm": [1.0]}, random_state=0)
        for seeded in (inside(random_state=0), search):
            assert (lint(seeded).severity, "seed" in lint(seeded).findings[0].leaks) == ("high", True)
        assert lint(search.set_params(random_state=None)).severity == "none"
        assert lint(inside(gate=None)).severity == "declared"

    def test_splits_must_keep_persons_whole(self):
        persons = ppdp.Adjacency.user_level(3)
        for pipe in (inside(adjacency=persons), inside(domain=ppdp.Domain(n_rows=9, adjacency=persons))):
            first = lint(pipe).findings[0]
            assert (first.estimator, first.severity) == ("Pipeline", "declared")
            assert "splits for training and testing keep persons whole" in first.leaks
            assert "GroupKFold" in first.fix
        assert lint(inside(adjacency=ppdp.Adjacency.add_remove())).severity == "none"

    def test_what_is_declared_to_be_public(self):
        public = transformers.Public(StandardScaler(), row_norm=1.0)
        assert [(found.estimator, found.severity) for found in lint(public)] == [("Public", "declared")]
        centring = FunctionTransformer(lambda X: X - X.mean(axis=0))
        assert lint(transformers.Public(centring, lipschitz=1.0, row_norm=1.0)).severity == "high"
        assert lint(inside(transformers.RowMap(lambda X: X - PUBLIC, out_norm=1.0))).severity == "declared"

    def test_a_stage_that_a_user_wrote_rests_on_its_authors_word(self):
        class Mirror(transformers.NormClipper):
            pass

        assert [found.severity for found in lint(inside(Mirror()))] == ["none", "declared", "none"]
        assert lint(Mirror()).severity == "high"

    def test_a_search_of_scikit_learn_around_a_pipeline_is_not_covered(self):
        assert lint(GridSearchCV(inside(), {})).severity == "high"


# ---------------- what it cannot read counts as the worst


class Raises:
    def __getattr__(self, name):
        raise RuntimeError("private")


def containing_itself():
    pipe = Pipeline([("a", Normalizer())])
    pipe.steps.append(("self", pipe))
    return pipe


def deep():
    pipe = Normalizer()
    for _ in range(500):
        pipe = Pipeline([("a", pipe)])
    return pipe


class TestUnreadable:
    """Nothing is passed over in silence: what cannot be read may leak everything."""

    @pytest.mark.parametrize(
        ("workflow", "step", "kind"),
        [
            (Pipeline("abc"), "steps", "str"),
            (Pipeline({"s": StandardScaler()}), "steps", "dict"),
            (Pipeline(step for step in [("s", StandardScaler())]), "steps", "generator"),
            (Pipeline(np.array([("s", StandardScaler())], dtype=object)), "steps", "ndarray"),
            (Pipeline(None), "steps", "NoneType"),
            (Pipeline([("s",)]), "0", "tuple"),
            (Pipeline([("s", Normalizer(), 1)]), "0", "tuple"),
            (Pipeline([(1, Normalizer())]), "0", "tuple"),
            (Pipeline([Normalizer()]), "0", "Normalizer"),
            (Pipeline([("s", StandardScaler)]), "s", "type"),
            (Pipeline([("s", "scaler")]), "s", "str"),
            (Pipeline([("s", 3)]), "s", "int"),
            (Pipeline([("s", Raises())]), "s", "Raises"),
            (ppdp.Pipeline([("s", Raises())]), "s", "Raises"),
            (FeatureUnion("abc"), "transformer_list", "str"),
            (FeatureUnion([("s", MinMaxScaler)]), "s", "type"),
            (ColumnTransformer([("a",)]), "0", "tuple"),
            (ColumnTransformer([("a", Normalizer())]), "0", "tuple"),
            (ColumnTransformer([("a", MinMaxScaler, [0])]), "a", "type"),
            (ColumnTransformer([], remainder=MinMaxScaler), "remainder", "type"),
            (FixedThresholdClassifier(MinMaxScaler), "estimator", "type"),
            (FixedThresholdClassifier("model"), "estimator", "str"),
            (containing_itself(), "self", "Pipeline"),
        ],
    )
    def test_it_is_reported_as_the_worst(self, workflow, step, kind):
        found = next(found for found in lint(workflow) if found.step == step)
        assert (found.estimator, found.severity) == (kind, "high")
        assert "cannot be read" in found.leaks
        assert "(name, estimator)" in found.fix

    def test_a_nest_without_end(self):
        assert lint(deep()).severity == "high"

    def test_a_generator_is_not_used_up(self):
        pipe = Pipeline(step for step in [("s", StandardScaler())])
        lint(pipe)
        assert len(list(pipe.steps)) == 1

    def test_parameters_that_are_gone(self):
        scaler = StandardScaler()
        del scaler.with_mean
        pipe = make_pipeline(Normalizer())
        del pipe.steps
        assert lint(scaler).severity == "high"
        assert lint(pipe).severity == "high"

    @pytest.mark.parametrize("columns", [lambda X: X.columns[X.mean() > 0], make_column_selector(dtype_include=float)])
    def test_columns_that_a_function_of_the_data_chooses(self, columns):
        (found, _) = lint(ColumnTransformer([("a", Normalizer(), columns)]))
        assert (found.step, found.severity) == ("a", "high")
        assert "which columns" in found.leaks
        assert "name them" in found.fix

    @pytest.mark.parametrize("passing", [None, "passthrough"])
    def test_what_only_passes_is_no_finding(self, passing):
        assert len(lint(Pipeline([("a", passing)]))) == 0

    def test_something_else_than_an_estimator(self):
        with pytest.raises(InvalidParameter, match="an estimator is needed"):
            lint(Raises())
