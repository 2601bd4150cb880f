"""Trees, forests and boosting of scikit-learn become gradient boosting with noise."""

import inspect

import numpy as np
import pandas as pd
import pytest
from conversions import convert
from sklearn import ensemble, tree
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder, QuantileTransformer, StandardScaler

from ppdp import Domain, Pipeline, lint, mechanisms, transformers
from ppdp.exceptions import InvalidParameter, UnsupportedOrder
from ppdp.interop.sklearn.trees import TREES

N = 4000
WARDS = list("abcdef")
NUMBERS = ["age", "dose"]
KNOWN = {"ranges": {"age": (0, 100), "dose": (-5, 5)}, "categories": {"ward": WARDS}}


@pytest.fixture(scope="module")
def table():
    """An unordered category, a wave and a line; some ages are missing."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.uniform(20, 90, N), "dose": rng.normal(size=N), "ward": rng.choice(WARDS, N)})
    score = X["ward"].map(dict(zip(WARDS, [2, -2, 1, -1, 2, -2]))) + 3 * np.sin(X["age"] / 8) + X["dose"]
    y = (score + rng.logistic(size=N) > 0).astype(int)
    X.loc[rng.random(N) < 0.1, "age"] = np.nan
    return X, y, score.clip(-6, 6)


def coded(numbers="passthrough"):
    return make_column_transformer((OrdinalEncoder(), ["ward"]), (numbers, NUMBERS))


def grown(*steps, **declared):
    answer = {} if {"classes", "y_range"} & set(declared) else {"classes": (0, 1)}
    return convert(steps, **{**KNOWN, "epsilon": 1.0, **answer, **declared})


def told(pipe):
    return pipe.conversion.steps[-1]


FRONTS = {
    "codes": (coded(), {0: 6}),
    "a remainder": (make_column_transformer((OrdinalEncoder(), ["ward"]), remainder="passthrough"), {0: 6}),
    "zeros and ones": (
        make_column_transformer(
            (OneHotEncoder(), ["ward"]), (make_pipeline(SimpleImputer(), StandardScaler()), NUMBERS)
        ),
        {0: 6},
    ),
    "codes beside filled numbers": (coded(make_pipeline(SimpleImputer(), StandardScaler())), {0: 6}),
}


@pytest.mark.parametrize("name", FRONTS)
def test_a_pipeline_of_trees_ends_in_a_certificate_and_ranks_rows(table, name):
    X, y, _ = table
    front, categories = FRONTS[name]
    pipe = grown(front, HistGradientBoostingClassifier(categorical_features=[0])).fit(X, y)
    assert pipe.steps[-1][1].categorical_features == categories
    assert pipe.certificate_.verify()
    assert roc_auc_score(y, pipe.predict_proba(X)[:, 1]) > 0.85
    assert pipe.certificate_["epsilon"] <= 1.0


def test_they_are_exported_from_behind_zeros_and_ones(table):
    X, y, _ = table
    pipe = grown(FRONTS["zeros and ones"][0], RandomForestClassifier(max_depth=1), random_state=None).fit(X, y)
    wild = X.iloc[:300].assign(ward=np.resize(np.array([*WARDS, "zzz", None], dtype=object), 300))
    np.testing.assert_allclose(pipe.release_.to_sklearn().predict_proba(wild), pipe.predict_proba(wild), 0, 1e-12)


@pytest.mark.parametrize("given", [np.array([0, 1]), {"dose": 1}])
def test_directions_are_those_of_the_larger_label(table, given):
    """Also where labels are declared in another order."""
    X, y, _ = table
    pipe = grown(HistGradientBoostingClassifier(monotonic_cst=given), categories=None, classes=(1, 0))
    shares = pipe.fit(X[NUMBERS], y).predict_proba(pd.DataFrame({"age": 50.0, "dose": np.linspace(-5, 5, 99)}))[:, 1]
    assert np.diff(shares).min() >= 0
    assert np.ptp(shares) > 0.2


def test_targets(table):
    X, _, t = table
    pipe = grown(coded(), RandomForestRegressor(), y_range=(-6, 6)).fit(X, t)
    assert r2_score(t, pipe.predict(X)) > 0.6
    assert pipe.certificate_.verify()


@pytest.mark.parametrize("name", sorted(TREES))
def test_every_class_and_each_of_its_parameters_is_read(name):
    """None of them is called unknown; what differs from its default is told of, or refused with a reason of its own."""
    kind = getattr(ensemble, name, None) or getattr(tree, name)
    answer = {"classes": (0, 1)} if name.endswith("Classifier") else {"y_range": (0, 1)}
    made = convert([kind()], ranges=(0, 1), **answer).steps[-1][1]
    assert isinstance(
        made, mechanisms.GradientBoostingClassifier if "classes" in answer else mechanisms.GradientBoostingRegressor
    )
    (found,) = lint(kind())
    assert (found.counterpart, found.severity) == (type(made).__name__, "high")
    refused = {}
    for parameter in inspect.signature(kind).parameters:
        step = kind().set_params(**{parameter: 0.37})
        try:
            report = told(convert([step], ranges=(0, 1), **answer))
        except InvalidParameter as error:
            refused[parameter] = str(error)
            continue
        assert parameter in report.ignored or parameter in str(report)
    assert "leave it at its default" not in str(refused)
    kept = {"class_weight", "criterion", "estimator", "init", "interaction_cst", "loss", "max_bins", "monotonic_cst"}
    assert set(refused) <= kept


REFUSED = {
    "loss of classes": (GradientBoostingClassifier(loss="deviance"), {}, "loss='log_loss'"),
    "loss of targets": (GradientBoostingRegressor(loss="ls"), {"y_range": (0, 1)}, "loss='squared_error'"),
    "splits of no loss": (
        RandomForestRegressor(criterion="nonsense"),
        {"y_range": (0, 1)},
        "criterion='squared_error'",
    ),
    "weights": (RandomForestClassifier(class_weight=[{0: 1}]), {}, "class_weight={label: weight}"),
    "first model": (GradientBoostingClassifier(init=LogisticRegression()), {}, "init=None"),
    "sets of columns": (HistGradientBoostingClassifier(interaction_cst=[{0, 1}]), {}, "no_interactions"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_counterpart_is_refused_with_what_to_write(name):
    model, answer, fix = REFUSED[name]
    with pytest.raises(InvalidParameter) as refused:
        grown(model, ranges=(0, 1), categories=None, **answer)
    assert fix in refused.value.fix
    assert refused.value.stage == type(model).__name__.lower()


KEPT = {
    "weights": (RandomForestClassifier(class_weight={1: 2.0}), {"class_weight": {1: 2.0}}, "class_weight is kept"),
    "bins": (HistGradientBoostingClassifier(max_bins=60), {"max_bins": 64}, "max_bins=60 became 64"),
    "stumps": (GradientBoostingClassifier(max_depth=1), {"interaction_cst": "no_interactions"}, "max_depth=1 became"),
    "pairs": (
        HistGradientBoostingClassifier(interaction_cst="pairwise"),
        {"interaction_cst": "pairwise"},
        "not from max_iter=100",
    ),
    "depth": (GradientBoostingClassifier(max_depth=5), {"interaction_cst": None}, "instead of max_depth=5"),
    "leaves": (RandomForestClassifier(min_samples_leaf=9), {"max_iter": "auto"}, "not by sizes of trees and leaves"),
}


@pytest.mark.parametrize("name", KEPT)
def test_the_report_says_what_became_of_parameters(name):
    model, kept, words = KEPT[name]
    pipe = grown(model, ranges=(0, 1), categories=None)
    assert {key: getattr(pipe.steps[-1][1], key) for key in kept} == kept
    assert words in str(told(pipe))
    assert pipe.plan(Domain(n_rows=1000, n_features=3, classes=(0, 1)))


def test_the_report_says_which_steps_nobody_needs():
    report = str(told(grown(FRONTS["zeros and ones"][0], RandomForestClassifier())))
    for words in ("simpleimputer' is left out: missing", "standardscaler' is left out: shapes", "hold categories"):
        assert words in report
    assert "is left out" not in str(told(grown(coded(), RandomForestClassifier())))


def test_places_are_those_of_columns_of_zeros_and_ones(table):
    """Where directions name columns by their places, categories keep a column each."""
    front = make_column_transformer((OneHotEncoder(), ["ward"]), ("passthrough", NUMBERS))
    pipe = grown(front, HistGradientBoostingClassifier(monotonic_cst=[0] * 6 + [1, 0])).fit(*table[:2])
    assert pipe.steps[-1][1].categorical_features is None
    assert "categor" not in str(told(pipe))


class TestCategories:
    """Codes of an encoder are categories where numbers beside them lie in [-1, 1]."""

    @pytest.mark.parametrize(
        ("front", "declared", "expected"),
        [
            (coded(), {"categories": "private"}, {0: 20}),
            (coded(), {"categories": {"ward": {"private": 4}}}, {0: 4}),
            (make_column_transformer(("passthrough", NUMBERS), (OrdinalEncoder(), ["ward"])), {}, {2: 6}),
            (
                make_column_transformer((OrdinalEncoder(categories=[[3, 4, 5]]), [2]), ("passthrough", [0, 1])),
                {"ranges": {0: (0, 9), 1: (0, 9)}, "categories": None},
                {0: 3},
            ),
            (OrdinalEncoder(categories=[[0, 1], [3, 4, 5]]), {"ranges": (0, 9), "categories": None}, {0: 2, 1: 3}),
            (
                make_column_transformer((OrdinalEncoder(categories=[[3, 4, 5]]), slice(2, 3)), ("passthrough", [0, 1])),
                {"ranges": (0, 9), "categories": None},
                None,
            ),
            (coded(), {"ranges": {"age": "private", "dose": (-5, 5)}}, None),
            (coded(MinMaxScaler((0, 10))), {}, None),
            (coded(MinMaxScaler((0, 1))), {}, {0: 6}),
            (coded(), {"ranges": None, "max_norm": 9.0}, None),
        ],
    )
    def test_where_they_are(self, front, declared, expected):
        pipe = grown(front, RandomForestClassifier(), **declared)
        assert pipe.steps[-1][1].categorical_features == expected
        words = "hold categories" if expected else "codes of categories count as numbers"
        assert words in str(told(pipe))
        assert ("'ward': what comes out is scaled" in str(pipe.conversion)) == (
            expected is None and "slice" not in str(front) and "max_norm" not in declared
        )

    def test_names_of_columns_that_no_encoder_codes_are_numbers(self):
        model = HistGradientBoostingClassifier(categorical_features=["a"])
        pipe = grown(model, ranges={"a": (0, 3), "b": (0, 1)}, categories=None)
        assert pipe.steps[-1][1].categorical_features is None
        assert "codes of categories count as numbers" in str(told(pipe))
        assert "categories" not in str(told(grown(HistGradientBoostingClassifier(), ranges=(0, 1), categories=None)))


def test_components_are_left_out_in_front_and_those_of_words_refused():
    assert "in place of components" in str(
        grown(PCA(2), RandomForestClassifier(), ranges=(0, 1), categories=None).conversion
    )
    with pytest.raises(UnsupportedOrder, match="only if it is linear"):
        convert([HashingVectorizer(n_features=16), TruncatedSVD(2), RandomForestClassifier()], classes=(0, 1))


def test_missing_values_reach_the_model_where_it_stands_directly_behind():
    labels = OrdinalEncoder(categories=[["a", np.nan]])
    front = make_column_transformer((labels, ["ward"]), ("passthrough", NUMBERS))
    filled = "a missing value becomes the middle"
    assert filled not in str(grown(front, RandomForestClassifier(), categories=None).conversion)
    assert filled in str(grown(front, QuantileTransformer(), RandomForestClassifier(), categories=None).conversion)


@pytest.mark.parametrize("inside", [False, True])
def test_they_also_do_where_scikit_learn_fills_them(table, inside):
    X, y, _ = table
    front = make_column_transformer((SimpleImputer(), ["dose"]), ("passthrough", ["age"]))
    steps = [front] if inside else [SimpleImputer()]
    pipe = grown(*steps, HistGradientBoostingClassifier(), categories=None).fit(X[NUMBERS], y)
    assert len(pipe.steps) == 2
    empty = X[NUMBERS].iloc[:1].assign(age=np.nan)
    assert not np.array_equal(pipe.predict_proba(empty), pipe.predict_proba(empty.assign(age=X["age"].mean())))


def test_among_steps_of_ppdp(table):
    X, y, _ = table
    steps = [("range", transformers.MinMaxScaler(ranges=[(0, 100), (-5, 5)])), ("model", RandomForestClassifier())]
    pipe = Pipeline(steps, domain=Domain(classes=(0, 1)), random_state=0).fit(X[NUMBERS], y)
    assert pipe.certificate_.verify()
    assert "n_estimators=100" in str(pipe.conversion)
