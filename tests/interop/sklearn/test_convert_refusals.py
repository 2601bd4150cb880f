"""Steps of scikit-learn that have no counterpart are refused, by name and with what to do."""

from functools import partial

import numpy as np
import pytest
from conversions import ANSWER, MODEL, NUMBERS, RANGES, UNKNOWN, columns, convert
from imblearn.over_sampling import RandomOverSampler
from imblearn.pipeline import Pipeline as ImbalancedPipeline
from imblearn.under_sampling import RandomUnderSampler
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.dummy import DummyClassifier
from sklearn.feature_selection import SelectFdr
from sklearn.frozen import FrozenEstimator
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import (
    LinearRegression,
    Ridge,
    SGDClassifier,
    TweedieRegressor,
)
from sklearn.model_selection import GridSearchCV, TunedThresholdClassifierCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.pipeline import Pipeline as SklearnPipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.svm import SVC, LinearSVC

from ppdp import Domain
from ppdp.exceptions import (
    ImpossibleBudget,
    InvalidParameter,
    MissingBound,
    PpdpError,
    UnknownStage,
    UnsupportedOrder,
)


def containing_itself():
    pipe = SklearnPipeline([("scaler", StandardScaler())])
    pipe.steps.append(("self", pipe))
    return pipe


FITTED = StandardScaler().fit([[0.0], [1.0]])
WARDS = OneHotEncoder(categories=[["north", "south"]])

REFUSALS = {
    "no bound": ([StandardScaler(), MODEL], {}, MissingBound, "ranges={'column': (low, high), ...}"),
    "no bound of columns": (
        [columns(), MODEL],
        {},
        MissingBound,
        "ranges={'age': (low, high), 'dose': (low, high), 'level': (low, high)}",
    ),
    "two bounds": ([MODEL], {"ranges": RANGES, "max_norm": 1.0}, InvalidParameter, "one bound"),
    "minimum": ([MinMaxScaler(), MODEL], {"max_norm": 3.0}, MissingBound, "ranges"),
    "minimum later": ([StandardScaler(), MaxAbsScaler()], {}, UnsupportedOrder, "put it first"),
    "function later": (
        [StandardScaler(), SimpleImputer(), MissingIndicator()],
        {},
        UnsupportedOrder,
        "put it first",
    ),
    "largest value": ([SimpleImputer(strategy=np.nanmax)], {}, InvalidParameter, "strategy='constant'"),
    "indicators of other gaps": ([MissingIndicator(missing_values=0)], {}, InvalidParameter, "NaN"),
    "other gaps": ([SimpleImputer(missing_values=-1)], {}, InvalidParameter, "put NaN"),
    "centred only": ([StandardScaler(with_std=False)], {}, InvalidParameter, "learn an intercept"),
    "share of variance": ([TruncatedSVD(0.9)], {}, InvalidParameter, "n_components=5"),
    "components by data": ([PCA("mle")], {}, InvalidParameter, "n_components=5"),
    "unknown n": ([GaussianRandomProjection()], {}, InvalidParameter, "domain=Domain(n_rows=...)"),
    "density": ([SparseRandomProjection(3, density=1.5)], {}, InvalidParameter, "share"),
    "clusters from given centres": ([KMeans(2, init=np.eye(2))], {}, InvalidParameter, "first centres"),
    "naive Bayes of components": ([PCA(2), GaussianNB()], {}, UnsupportedOrder, "in front"),
    "bins of each column": ([KBinsDiscretizer([3, 4, 5])], {}, InvalidParameter, "one number of bins"),
    "found categories": ([OneHotEncoder()], {}, InvalidParameter, "categories="),
    "unscaled robust": ([RobustScaler(unit_variance=True)], {}, InvalidParameter, "default"),
    "kernel by the rows": ([SVC(kernel="sigmoid")], {}, InvalidParameter, "kernel='rbf'"),
    "knots in units of rows": (
        [StandardScaler(), SplineTransformer(knots=[[0.0], [1.0]])],
        {},
        UnsupportedOrder,
        "put it first",
    ),
    "landmarks beyond memory": ([Nystroem(n_components=10**6)], {}, InvalidParameter, "within these limits"),
    "cosines": ([Nystroem(kernel="cosine")], {}, InvalidParameter, "kernel='rbf'"),
    "chosen columns": ([SelectFdr(), MODEL], {}, UnknownStage, "public knowledge"),
    "fitted elsewhere": ([FrozenEstimator(StandardScaler()), MODEL], {}, UnknownStage, "Public(transformer)"),
    "late union": (
        [PCA(2), FeatureUnion([])],
        {},
        InvalidParameter,
        "put that stage behind the FeatureUnion",
    ),
    "weighted union": (
        [FeatureUnion([("a", "passthrough")], transformer_weights={"a": 2.0}), PCA(2), MODEL],
        {},
        InvalidParameter,
        "feature_range",
    ),
    "a choice in a union": ([FeatureUnion([("a", "passthrough"), ("b", SelectFdr())])], {}, UnknownStage, "public"),
    "union that is none": ([FeatureUnion("ab")], {}, InvalidParameter, "names are strings"),
    "behind a union": (
        [FeatureUnion([("a", make_pipeline(FeatureUnion([("b", "passthrough")]), MinMaxScaler()))])],
        {},
        InvalidParameter,
        "into each part",
    ),
    "late columns": ([StandardScaler(), ColumnTransformer([])], {}, InvalidParameter, "as the first step"),
    "over-sampling": (
        ImbalancedPipeline([("more", RandomOverSampler()), ("m", MODEL)]),
        {},
        UnknownStage,
        "Deduplicator",
    ),
    "under-sampling": (
        ImbalancedPipeline([("less", RandomUnderSampler()), ("m", MODEL)]),
        {},
        UnknownStage,
        "leave it out",
    ),
    "search": (GridSearchCV(make_pipeline(MODEL), {}), {}, UnknownStage, "PrivateSearchCV"),
    "network": ([MLPClassifier()], {}, UnknownStage, "ppdp.mechanisms"),
    "dummy": ([DummyClassifier()], {}, UnknownStage, "GaussianMechanism"),
    "targets": (
        [TransformedTargetRegressor(Ridge(), transformer=KBinsDiscretizer())],
        {},
        InvalidParameter,
        "log1p",
    ),
    "function of targets": ([TransformedTargetRegressor(Ridge(), func=np.cbrt)], {}, InvalidParameter, "np.log1p"),
    "function of counts": (
        [TransformedTargetRegressor(TweedieRegressor(power=1), func=np.sqrt, inverse_func=np.square)],
        {"y_range": (0, 1)},
        InvalidParameter,
        "Ridge()",
    ),
    "strength of a machine": ([LinearSVC(C=0)], {}, InvalidParameter, "within these limits"),
    "strength of descent": ([SGDClassifier(alpha=-1)], {}, InvalidParameter, "within these limits"),
    "a threshold for a loss": (TunedThresholdClassifierCV(MODEL, scoring="r2"), {}, InvalidParameter, "'f1'"),
    "a threshold of margins": (TunedThresholdClassifierCV(LinearSVC(), scoring="f1"), {}, InvalidParameter, "or trees"),
    "other loss": ([SGDClassifier(loss="huber")], {}, InvalidParameter, "log_loss"),
    "signs": ([LinearRegression(positive=True)], {"y_range": (0, 1)}, InvalidParameter, "either sign"),
    "penalties": ([Ridge(alpha=np.ones(3))], {"y_range": (0, 1)}, InvalidParameter, "one penalty"),
    "cubic power": ([TweedieRegressor(power=3)], {"y_range": (0, 1)}, InvalidParameter, "Ridge()"),
    "range of targets": ([Ridge()], {}, MissingBound, "y_range=(low, high)"),
    "model first": ([MODEL, StandardScaler()], {}, InvalidParameter, "move it to the end"),
    "selector": (
        [ColumnTransformer([("a", "passthrough", make_column_selector())])],
        {"ranges": (0, 1)},
        InvalidParameter,
        "name them",
    ),
    "weights of columns": (
        [ColumnTransformer([("a", "passthrough", [0])], transformer_weights={"a": 2})],
        {},
        InvalidParameter,
        "leave it out",
    ),
    "unknown in columns": ([ColumnTransformer([("a", SelectFdr(), [0, 1])])], {}, UnknownStage, "public knowledge"),
    "public behind fitted": (
        [columns(numbers=make_pipeline(PCA(1), FunctionTransformer(np.sqrt)))],
        {},
        InvalidParameter,
        "put it first",
    ),
    "projected, then imputed": (
        [columns(numbers=make_pipeline(PCA(1), SimpleImputer())), MODEL],
        {},
        InvalidParameter,
        "the imputer first",
    ),
    "before columns": ([FunctionTransformer(np.sqrt), columns()], {}, InvalidParameter, "into the branches"),
    "label without encoder": (
        [SimpleImputer(strategy="constant", fill_value="none"), MODEL],
        {},
        InvalidParameter,
        "put an encoder",
    ),
    "no function": ([FunctionTransformer(5)], {}, InvalidParameter, "np.log1p"),
    "no keywords": ([FunctionTransformer(np.log1p, kw_args=5)], {}, InvalidParameter, "kw_args"),
    "a method": ([FunctionTransformer(FITTED.transform), MODEL], {}, InvalidParameter, "Public(transformer)"),
    "a method in a partial": (
        [FunctionTransformer(partial(partial(FITTED.transform))), MODEL],
        {"functions": {"functiontransformer": (-5, 5)}},
        InvalidParameter,
        "Public(transformer)",
    ),
    "an argument": (
        [FunctionTransformer(np.tanh, kw_args={"by": FITTED}), MODEL],
        {},
        InvalidParameter,
        "Public(transformer)",
    ),
    "no lists": ([OneHotEncoder(categories=5)], {}, InvalidParameter, "categories=[["),
    "steps by number": (SklearnPipeline([(1, MODEL)]), {}, InvalidParameter, "names are strings"),
    "steps by name alone": (SklearnPipeline({"model": MODEL}), {}, InvalidParameter, "names are strings"),
    "half a column": ([ColumnTransformer([("a", Normalizer())])], {}, InvalidParameter, "names are strings"),
    "a pipeline in itself": (containing_itself(), {}, InvalidParameter, "one list"),
    "dropped label": ([OneHotEncoder(categories=[["a", "b"]], drop=["c"])], {}, InvalidParameter, "drop='first'"),
    "bent components": (
        [StandardScaler(), PCA(2), Normalizer("l1"), MODEL],
        {},
        UnsupportedOrder,
        "put it in front of 'pca'",
    ),
    "powers of components": (
        [StandardScaler(), TruncatedSVD(2), StandardScaler(), PolynomialFeatures(2), MODEL],
        {},
        UnsupportedOrder,
        "put it in front of 'truncatedsvd'",
    ),
    "components of scaled components": (
        [StandardScaler(), PCA(2), StandardScaler(), PCA(1), MODEL],
        {},
        UnsupportedOrder,
        "in front of both",
    ),
    "mean category": (
        [columns(labels=make_pipeline(SimpleImputer(), WARDS))],
        {},
        InvalidParameter,
        "SimpleImputer(strategy='constant', fill_value='missing')",
    ),
    "a number among labels": (
        [columns(labels=make_pipeline(SimpleImputer(strategy="constant", fill_value=0), WARDS))],
        {},
        InvalidParameter,
        "fill_value='a category'",
    ),
    "labels of numbers": (
        [columns(labels=make_pipeline(Binarizer(), WARDS))],
        {},
        InvalidParameter,
        "put it first",
    ),
    "NaN in the middle": ([OrdinalEncoder(categories=[["a", np.nan, "b"]])], {}, InvalidParameter, "np.nan]]"),
    "two codes of gaps": (
        [OrdinalEncoder(categories=[["a", np.nan], ["b"]], **UNKNOWN, unknown_value=7)],
        {},
        InvalidParameter,
        "an OrdinalEncoder for each",
    ),
    "one name for a list": (
        [columns(labels=OneHotEncoder())],
        {"categories": {"ward": "north"}},
        InvalidParameter,
        "categories=[['a', 'b']]",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_has_no_twin_is_refused_with_what_to_do(name):
    steps, declared, kind, fix = REFUSALS[name]
    unbounded = name.startswith(("no bound", "minimum")) and name != "minimum later"
    declared = declared if unbounded else {"ranges": RANGES, **declared}
    with pytest.raises(kind) as refused:
        convert(steps, **declared)
    assert isinstance(refused.value, PpdpError)
    assert fix in refused.value.fix


@pytest.mark.parametrize(
    ("steps", "fix"),
    [
        ([FunctionTransformer(np.log), MODEL], "functions={'functiontransformer': (low, high)}"),
        ([FunctionTransformer(np.sin), MODEL], "functions={'functiontransformer': (low, high)}"),
        ([columns(), MODEL], "ranges={..., 'level': (low, high)}"),
    ],
)
def test_a_range_that_is_missing_is_named_before_any_data_are_seen(steps, fix):
    names = (*NUMBERS, "ward")
    ranges = {"age": (0, 100), "dose": (-5, 5)} if "level" in fix else (0, 100)
    with pytest.raises(MissingBound) as refused:
        convert(steps, ranges=ranges, **ANSWER).plan(Domain(n_rows=100, n_features=4, feature_names=names))
    assert fix in refused.value.fix


@pytest.mark.parametrize("wrong", [StandardScaler, "a pipeline", None])
def test_only_instances_are_converted(wrong):
    with pytest.raises(InvalidParameter, match="a pipeline of scikit-learn is needed"):
        convert(wrong)


def test_a_subclass_may_do_anything_and_is_not_known():
    class StandardScaler(BaseEstimator):
        def fit(self, X, y=None):
            return self

    with pytest.raises(UnknownStage, match="assume that it leaks everything"):
        convert([StandardScaler(), MODEL], ranges=RANGES)


@pytest.mark.parametrize("budget", [{"epsilon": -1}, {"epsilon": 501}, {"delta": -1e-9}, {"delta": "a"}])
def test_an_impossible_budget_is_refused_at_once(budget):
    with pytest.raises(ImpossibleBudget):
        convert([MODEL], ranges=RANGES, **budget)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        *(
            (SimpleImputer(strategy="constant", fill_value=f), "fill_value must be a finite")
            for f in (np.nan, np.inf, -np.inf)
        ),
        *((MinMaxScaler(pair), "feature_range must be") for pair in [(np.nan, 1), (1, 0), (0, 0), (-np.inf, 1)]),
        (MinMaxScaler((-1e308, 1e308)), "feature_range must be"),
        (Normalizer("l7"), "norm must be one of"),
        (Binarizer(threshold="1"), "threshold must be a finite number"),
        (OrdinalEncoder(categories=[[0]], **UNKNOWN, unknown_value=np.inf), "unknown_value must be a finite number"),
    ],
)
@pytest.mark.parametrize("bound", [{"ranges": (0, 1)}, {"max_norm": 1.0}, {"domain": Domain(row_norm=1e90)}])
@pytest.mark.repeated("bound")
def test_parameters_that_would_make_something_else_than_numbers(step, words, bound):
    with pytest.raises(InvalidParameter, match=words) as refused:
        convert([step, MODEL], **bound, **ANSWER)
    assert refused.value.stage == type(step).__name__.lower()


@pytest.mark.parametrize(
    ("steps", "declared"),
    [
        ([PolynomialFeatures(4), MODEL], {"domain": Domain(row_norm=1e90), "max_norm": 1.0}),
        ([SimpleImputer(strategy="constant", fill_value=1e308), MinMaxScaler(), MODEL], {"ranges": (-1e308, 5e307)}),
    ],
)
def test_what_no_float_can_hold_is_found_before_any_data(steps, declared):
    pipe = convert(steps, **declared, **ANSWER)
    with pytest.raises(InvalidParameter, match="no range that a float can hold"):
        pipe.plan(Domain(n_rows=100, n_features=1, row_norm=getattr(declared.get("domain"), "row_norm", None)))
