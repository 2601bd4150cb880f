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


def no(steps, fix, kind=InvalidParameter, **declared):
    """Steps that are refused, and what to do; of what kind the error is, and what is declared beside them."""
    return steps, declared, kind, fix


REFUSALS = {
    "no bound": no([StandardScaler(), MODEL], "ranges={'column': (low, high), ...}", MissingBound),
    "no bound of columns": no(
        [columns(), MODEL], "ranges={'age': (low, high), 'dose': (low, high), 'level': (low, high)}", MissingBound
    ),
    "two bounds": no([MODEL], "one bound", ranges=RANGES, max_norm=1.0),
    "ends the wrong way round": no([MODEL], "the lower one first", ranges={"age": (100, 18)}),
    "minimum": no([MinMaxScaler(), MODEL], "ranges", MissingBound, max_norm=3.0),
    "products behind other units": no(
        [columns(make_pipeline(SimpleImputer(), MinMaxScaler())), PolynomialFeatures(2), MODEL],
        "StandardScaler() in front of it",
        UnsupportedOrder,
        ranges=RANGES,
    ),
    "minimum later": no([StandardScaler(), MaxAbsScaler()], "put it first", UnsupportedOrder),
    "function later": no([StandardScaler(), SimpleImputer(), MissingIndicator()], "put it first", UnsupportedOrder),
    "largest value": no([SimpleImputer(strategy=np.nanmax)], "strategy='constant'"),
    "indicators of other gaps": no([MissingIndicator(missing_values=0)], "NaN"),
    "other gaps": no([SimpleImputer(missing_values=-1)], "put NaN"),
    "centred only": no([StandardScaler(with_std=False)], "learn an intercept"),
    "share of variance": no([TruncatedSVD(0.9)], "n_components=5"),
    "components by data": no([PCA("mle")], "n_components=5"),
    "unknown n": no([GaussianRandomProjection()], "domain=Domain(n_rows=...)"),
    "density": no([SparseRandomProjection(3, density=1.5)], "share"),
    "clusters from given centres": no([KMeans(2, init=np.eye(2))], "first centres"),
    "naive Bayes of components": no([PCA(2), GaussianNB()], "in front", UnsupportedOrder),
    "bins of each column": no([KBinsDiscretizer([3, 4, 5])], "one number of bins"),
    "no categories": no([columns(labels=OneHotEncoder()), MODEL], '"private"', ranges=RANGES, categories={"ward": []}),
    "found categories": no([OneHotEncoder()], "categories="),
    "unscaled robust": no([RobustScaler(unit_variance=True)], "default"),
    "kernel by the rows": no([SVC(kernel="sigmoid")], "kernel='rbf'"),
    "knots in units of rows": no(
        [StandardScaler(), SplineTransformer(knots=[[0.0], [1.0]])], "put it first", UnsupportedOrder
    ),
    "landmarks beyond memory": no([Nystroem(n_components=10**6)], "within these limits"),
    "cosines": no([Nystroem(kernel="cosine")], "kernel='rbf'"),
    "chosen columns": no([SelectFdr(), MODEL], "public knowledge", UnknownStage),
    "fitted elsewhere": no([FrozenEstimator(StandardScaler()), MODEL], "Public(transformer)", UnknownStage),
    "late union": no([PCA(2), FeatureUnion([])], "put that stage behind the FeatureUnion"),
    "weighted union": no(
        [FeatureUnion([("a", "passthrough")], transformer_weights={"a": 2.0}), PCA(2), MODEL], "feature_range"
    ),
    "a choice in a union": no([FeatureUnion([("a", "passthrough"), ("b", SelectFdr())])], "public", UnknownStage),
    "union that is none": no([FeatureUnion("ab")], "names are strings"),
    "behind a union": no(
        [FeatureUnion([("a", make_pipeline(FeatureUnion([("b", "passthrough")]), MinMaxScaler()))])], "into each part"
    ),
    "late columns": no([StandardScaler(), ColumnTransformer([])], "as the first step"),
    "over-sampling": no(
        ImbalancedPipeline([("more", RandomOverSampler()), ("m", MODEL)]), "Deduplicator", UnknownStage
    ),
    "under-sampling": no(
        ImbalancedPipeline([("less", RandomUnderSampler()), ("m", MODEL)]), "leave it out", UnknownStage
    ),
    "search": no(GridSearchCV(make_pipeline(MODEL), {}), "PrivateSearchCV", UnknownStage),
    "network": no([MLPClassifier()], "ppdp.mechanisms", UnknownStage),
    "dummy": no([DummyClassifier()], "GaussianMechanism", UnknownStage),
    "targets": no([TransformedTargetRegressor(Ridge(), transformer=KBinsDiscretizer())], "log1p"),
    "function of targets": no([TransformedTargetRegressor(Ridge(), func=np.cbrt)], "np.log1p"),
    "function of counts": no(
        [TransformedTargetRegressor(TweedieRegressor(power=1), func=np.sqrt, inverse_func=np.square)],
        "Ridge()",
        y_range=(0, 1),
    ),
    "strength of a machine": no([LinearSVC(C=0)], "within these limits"),
    "strength of descent": no([SGDClassifier(alpha=-1)], "within these limits"),
    "a threshold for a loss": no(TunedThresholdClassifierCV(MODEL, scoring="r2"), "'f1'"),
    "a threshold of margins": no(TunedThresholdClassifierCV(LinearSVC(), scoring="f1"), "or trees"),
    "other loss": no([SGDClassifier(loss="huber")], "log_loss"),
    "signs": no([LinearRegression(positive=True)], "either sign", y_range=(0, 1)),
    "penalties": no([Ridge(alpha=np.ones(3))], "one penalty", y_range=(0, 1)),
    "cubic power": no([TweedieRegressor(power=3)], "Ridge()", y_range=(0, 1)),
    "range of targets": no([Ridge()], "y_range=(low, high)", MissingBound),
    "model first": no([MODEL, StandardScaler()], "move it to the end"),
    "selector": no([ColumnTransformer([("a", "passthrough", make_column_selector())])], "name them", ranges=(0, 1)),
    "weights of columns": no(
        [ColumnTransformer([("a", "passthrough", [0])], transformer_weights={"a": 2})], "leave it out"
    ),
    "unknown in columns": no([ColumnTransformer([("a", SelectFdr(), [0, 1])])], "public knowledge", UnknownStage),
    "public behind fitted": no([columns(numbers=make_pipeline(PCA(1), FunctionTransformer(np.sqrt)))], "put it first"),
    "projected, then imputed": no(
        [columns(numbers=make_pipeline(PCA(1), SimpleImputer())), MODEL], "the imputer first"
    ),
    "before columns": no([FunctionTransformer(np.sqrt), columns()], "into the branches"),
    "label without encoder": no([SimpleImputer(strategy="constant", fill_value="none"), MODEL], "put an encoder"),
    "no function": no([FunctionTransformer(5)], "np.log1p"),
    "no keywords": no([FunctionTransformer(np.log1p, kw_args=5)], "kw_args"),
    "a method": no([FunctionTransformer(FITTED.transform), MODEL], "Public(transformer)"),
    "a method in a partial": no(
        [FunctionTransformer(partial(partial(FITTED.transform))), MODEL],
        "Public(transformer)",
        functions={"functiontransformer": (-5, 5)},
    ),
    "an argument": no([FunctionTransformer(np.tanh, kw_args={"by": FITTED}), MODEL], "Public(transformer)"),
    "no lists": no([OneHotEncoder(categories=5)], "categories=[["),
    "steps by number": no(SklearnPipeline([(1, MODEL)]), "names are strings"),
    "steps by name alone": no(SklearnPipeline({"model": MODEL}), "names are strings"),
    "half a column": no([ColumnTransformer([("a", Normalizer())])], "names are strings"),
    "a pipeline in itself": no(containing_itself(), "one list"),
    "dropped label": no([OneHotEncoder(categories=[["a", "b"]], drop=["c"])], "drop='first'"),
    "bent components": no(
        [StandardScaler(), PCA(2), Normalizer("l1"), MODEL], "put it in front of 'pca'", UnsupportedOrder
    ),
    "powers of components": no(
        [StandardScaler(), TruncatedSVD(2), StandardScaler(), PolynomialFeatures(2), MODEL],
        "put it in front of 'truncatedsvd'",
        UnsupportedOrder,
    ),
    "components of scaled components": no(
        [StandardScaler(), PCA(2), StandardScaler(), PCA(1), MODEL], "in front of both", UnsupportedOrder
    ),
    "mean category": no(
        [columns(labels=make_pipeline(SimpleImputer(), WARDS))],
        "SimpleImputer(strategy='constant', fill_value='missing')",
    ),
    "a number among labels": no(
        [columns(labels=make_pipeline(SimpleImputer(strategy="constant", fill_value=0), WARDS))],
        "fill_value='a category'",
    ),
    "labels of numbers": no([columns(labels=make_pipeline(Binarizer(), WARDS))], "put it first"),
    "NaN in the middle": no([OrdinalEncoder(categories=[["a", np.nan, "b"]])], "np.nan]]"),
    "two codes of gaps": no(
        [OrdinalEncoder(categories=[["a", np.nan], ["b"]], **UNKNOWN, unknown_value=7)], "an OrdinalEncoder for each"
    ),
    "one name for a list": no(
        [columns(labels=OneHotEncoder())], "categories=[['a', 'b']]", categories={"ward": "north"}
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
