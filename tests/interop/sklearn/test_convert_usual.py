"""What is often written converts, and the report says how it differs."""

import numpy as np
import pandas as pd
import pytest
from conversions import convert
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.compose import TransformedTargetRegressor, make_column_selector, make_column_transformer
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA, FastICA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.feature_selection import (
    RFE,
    SelectFromModel,
    SelectKBest,
    VarianceThreshold,
    f_classif,
    mutual_info_classif,
)
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.kernel_approximation import Nystroem, PolynomialCountSketch, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    BayesianRidge,
    ElasticNetCV,
    HuberRegressor,
    Lasso,
    LassoLarsCV,
    LogisticRegression,
    LogisticRegressionCV,
    Perceptron,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
    RidgeClassifier,
    RidgeCV,
    SGDClassifier,
    SGDRegressor,
    TheilSenRegressor,
    TweedieRegressor,
)
from sklearn.model_selection import TunedThresholdClassifierCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import FeatureUnion, make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import SVC, SVR, LinearSVC

from ppdp.exceptions import InvalidParameter, UnknownStage, UnsupportedOrder

AMOUNT = {"y_range": (0, 1)}
THREE = {"classes": ("a", "b", "c")}
LOG = LogisticRegression()


def to(steps, kind, told, **answer):
    """Steps, a class that comes of them, and what a conversion says; of what is to be learned, if not two classes."""
    return steps, answer, kind, told


CASES = {
    "linear kernel": to(SVC(kernel="linear"), "LinearSVC", "a smooth hinge loss instead of hinge loss"),
    "probabilities": to(SVC(kernel="linear", probability=True), "LogisticRegression", "which gives probabilities"),
    "radial kernel": to([StandardScaler(), SVC()], "ColumnMap", "200 random Fourier features of the radial kernel"),
    "radial regression": to(SVR(gamma=0.5), "Ridge", "instead of an error that counts beyond epsilon", **AMOUNT),
    "kernel of scaled rows": to([StandardScaler(), Nystroem(), LOG], "ColumnMap", "that of standard normal rows"),
    "several margins": to(LinearSVC(), "LogisticRegression", "which learns all classes together", **THREE),
    "weak penalty": to(LinearSVC(C=10.0), "LinearSVC", "C=10 has no effect: there is no penalty"),
    "little penalty": to(PoissonRegressor(alpha=0.0), "PoissonRegressor", "alpha=0 has no effect", **AMOUNT),
    "Huber's margins": to(SGDClassifier(loss="modified_huber"), "LogisticRegression", "the modified_huber loss"),
    "perceptron": to(Perceptron(), "LinearSVC", "instead of the perceptron's"),
    "squares": to(RidgeClassifier(alpha=3.0), "LogisticRegression", "log loss instead of squares, with a penalty"),
    "discriminant": to(LinearDiscriminantAnalysis(), "LogisticRegression", "log-odds are linear"),
    "C by search": to(LogisticRegressionCV(cv=3), "LogisticRegression", "'logisticregressioncv__alpha'"),
    "alpha by search": to(RidgeCV(alphas=(1.0, 2.0)), "Ridge", "alpha is not searched for", **AMOUNT),
    "alpha by a prior": to(BayesianRidge(), "Ridge", "instead of one that is learned from the rows", **AMOUNT),
    "absolute values": to(
        LogisticRegression(penalty="l1", solver="saga"), "LogisticRegression", "none of them will be"
    ),
    "lasso": to(Lasso(alpha=0.1), "Ridge", "none of them will be", **AMOUNT),
    "elastic net": to(ElasticNetCV(l1_ratio=[0.2, 0.9]), "Ridge", "alpha='auto'", **AMOUNT),
    "outliers": to(HuberRegressor(), "LinearRegression", "outliers are clipped", **AMOUNT),
    "clusters": to(KMeans(3, n_init=4), "KMeans", "distances weigh otherwise"),
    "clusters as features": to([PCA(2), KMeans(3), StandardScaler(), LOG], "ClusterDistances", "distances are those"),
    "clusters of components": to([StandardScaler(), PCA(2), MiniBatchKMeans(3)], "KMeans", "labels_"),
    "boosted medians": to(
        HistGradientBoostingRegressor(loss="absolute_error"), "GradientBoostingRegressor", "", **AMOUNT
    ),
    "boosted quantiles": to(GradientBoostingRegressor(loss="quantile"), "GradientBoostingRegressor", "", **AMOUNT),
    "sketched powers": to([PolynomialCountSketch(), LOG], "ColumnMap", "by the same polynomial kernel"),
    "knots by the rows": to([SplineTransformer(knots="quantile"), LOG], "SplineTransformer", "from 5 to 95 per cent"),
    "a circle": to(
        [SplineTransformer(knots="quantile", extrapolation="periodic"), LOG], "ColumnMap", "instead of quantiles"
    ),
    "balanced trees": to(
        ExtraTreesClassifier(class_weight="balanced_subsample"), "GradientBoostingClassifier", "noisy"
    ),
    "stumps": to(AdaBoostClassifier(), "GradientBoostingClassifier", "interaction_cst='no_interactions'"),
    "roots": to(TransformedTargetRegressor(Lasso(), func=np.sqrt, inverse_func=np.square), "Ridge", "'sqrt'", **AMOUNT),
    "scaled targets": to(
        TransformedTargetRegressor(transformer=StandardScaler()), "LinearRegression", "y_range", **AMOUNT
    ),
    "counts": to(MultinomialNB(), "LogisticRegression", "in both, log-odds are linear"),
    "centroids": to(NearestCentroid(), "LogisticRegression", "instead of distances to the mean of each class", **THREE),
    "columns of 0 and 1": to(BernoulliNB(), "LogisticRegression", "Binarizer() does"),
    "quadratic discriminant": to(QuadraticDiscriminantAnalysis(), "ColumnMap", "log-odds are quadratic"),
    "a quantile": to(
        QuantileRegressor(quantile=0.9), "GradientBoostingRegressor", "instead of a straight line", **AMOUNT
    ),
    "scaled trees": to([StandardScaler(), ExtraTreesClassifier()], "MinMaxScaler", "'standardscaler' is left out"),
    "a tuned threshold": to(TunedThresholdClassifierCV(LOG), "LogisticRegression", "by noisy counts"),
    "a tuned threshold of margins": to(TunedThresholdClassifierCV(LinearSVC()), "LinearSVC", "class_weight='balanced'"),
    "columns by elimination": to([RFE(LOG), LOG], "SelectPercentile", "instead of those that a model gives most"),
    "few directions": to(PLSRegression(), "Ridge", "instead of few directions", **AMOUNT),
    "chosen columns": to([SelectKBest(f_classif, k=2), LOG], "SelectKBest", "as by F, by released sums"),
    "share of variance": to([StandardScaler(), PCA(0.9), LOG], "PCA", "told by the released second moment"),
    "bags": to(BaggingRegressor(), "GradientBoostingRegressor", "not from n_estimators=10", **AMOUNT),
    "one against the rest": to(
        OneVsRestClassifier(LOG), "LogisticRegression", "OneVsRestClassifier is left out", **THREE
    ),
    "one against one": to(
        OneVsOneClassifier(LinearSVC()), "LogisticRegression", "learns all classes together", **THREE
    ),
    "calibrated": to(CalibratedClassifierCV(), "LogisticRegression", "CalibratedClassifierCV is left out"),
    "calibrated moments": to(CalibratedClassifierCV(GaussianNB()), "LogisticRegression", "instead of means and var"),
    "calibrated weights": to(
        CalibratedClassifierCV(LogisticRegression(class_weight="balanced")),
        "LogisticRegression",
        "class_weight is left out",
    ),
    "rounds of regressions": to([IterativeImputer(), LOG], "MeanImputer", "instead of rounds of regressions"),
    "nearest rows": to([KNNImputer(), LOG], "MeanImputer", "instead of the nearest rows"),
    "ranks": to([QuantileTransformer(n_quantiles=500), LOG], "QuantileTransformer", "n_quantiles=500 became 20"),
    "powers": to([PowerTransformer(), LOG], "QuantileTransformer", "instead of the power that fits best"),
    "bins": to([SimpleImputer(), KBinsDiscretizer(3), LOG], "KBinsDiscretizer", "its edges are quantiles"),
    "bins near centres": to([KBinsDiscretizer(3, strategy="kmeans"), LOG], "KBinsDiscretizer", "near one of n_bins"),
    "whitened": to([StandardScaler(), PCA(2, whiten=True), SVC()], "PCA", "whiten is left out"),
    "a weighted union": to(
        [FeatureUnion([("a", StandardScaler())], transformer_weights={"a": 2.0}), LOG],
        "StandardScaler",
        "transformer_weights is left out",
    ),
    "ranges behind the rows": to([PCA(2), MinMaxScaler(), LOG], "PCA", "'minmaxscaler' is left out"),
    "stages in front of trees": to(
        [StandardScaler(), KBinsDiscretizer(encode="ordinal"), ExtraTreesClassifier()],
        "ColumnMap",
        "middle of the public range",
    ),
    "squared error": to(TweedieRegressor(), "Ridge", "power=0 is squared error", **AMOUNT),
    "columns that vary": to([VarianceThreshold(), LOG], "MinMaxScaler", "'variancethreshold' is left out"),
    "columns that hardly vary": to([VarianceThreshold(0.1), LOG], "MinMaxScaler", "'variancethreshold' is left out"),
    "other components": to([StandardScaler(), FastICA(2), LOG], "PCA", "in place of those of FastICA"),
    "all components": to([StandardScaler(), PCA(), LOG], "StandardScaler", "'pca' is left out"),
    "trees of components": to([PCA(2), ExtraTreesClassifier()], "MinMaxScaler", "those of the columns themselves"),
    "products for a machine": to(SVC(kernel="poly", degree=2), "ColumnMap", "products of up to 2 columns"),
    "shrunk discriminant": to(LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.5), "LogisticRegression", "lin"),
    "numbers that are usual": to(
        [SimpleImputer(strategy="most_frequent"), LOG], "TrimmedMeanImputer", "instead of the most frequent value"
    ),
    "columns by weights": to([SelectFromModel(LOG), LOG], "MinMaxScaler", "'selectfrommodel' is left out"),
    "half by weights": to([SelectFromModel(LOG, threshold="median"), LOG], "SelectPercentile", "most weight"),
    "a number of columns by weights": to([SelectFromModel(LOG, max_features=2), LOG], "SelectKBest", "most weight"),
    "mutual information": to([SelectKBest(mutual_info_classif, k=2), LOG], "SelectKBest", "straight effects alone"),
    "strong penalty": to(LinearSVC(C=0.1), "LogisticRegression", "C=0.1 became alpha=10"),
    "descent with a penalty": to(SGDClassifier(alpha=0.01), "LogisticRegression", "became alpha='auto'"),
    "descent with outliers": to(SGDRegressor(loss="huber"), "LinearRegression", "outliers are clipped", **AMOUNT),
    "steepest lines": to(TheilSenRegressor(), "LinearRegression", "outliers are clipped", **AMOUNT),
    "boosted outliers": to(GradientBoostingRegressor(loss="huber"), "GradientBoostingRegressor", "of huber", **AMOUNT),
    "paths": to(LassoLarsCV(), "Ridge", "none of them will be", **AMOUNT),
    "kernel ridge": to(KernelRidge(kernel="rbf"), "Ridge", "200 random Fourier features", **AMOUNT),
    "scaled, then filled": to([StandardScaler(), SimpleImputer(), LOG], "MeanImputer", "which takes complete rows"),
    "scaled, then told of gaps": to(
        [StandardScaler(), KNNImputer(add_indicator=True), LOG], "MeanImputer", "which takes complete rows"
    ),
    "bags of models": to(BaggingClassifier(LOG), "LogisticRegression", "where each of many would pay"),
    "width by the rows": to(SVC(), "ColumnMap", "columns are scaled by public ranges in front"),
    "width by the components": to([SimpleImputer(), PCA(2), SVC()], "PCA", "gamma='scale' became 1 over the number"),
    "kernel of components": to([StandardScaler(), PCA(2), SVC()], "PCA", "200 random Fourier features"),
    "union of scaled columns": to(
        [StandardScaler(), FeatureUnion([("a", PCA(2)), ("b", SelectKBest(k=1))]), LOG], "ColumnSplit", "groups"
    ),
    "bins of filled columns": to(
        [SimpleImputer(), KBinsDiscretizer(3, strategy="uniform"), LOG],
        "ColumnMap",
        "it stands in front of 'simpleimputer', which fills what it leaves missing",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_converts_and_says_how_it_differs(name):
    steps, answer, kind, told = CASES[name]
    pipe = convert(steps, ranges=(0, 1), **(answer or {"classes": (0, 1)}))
    assert kind in [type(step).__name__ for _, step in pipe.steps]
    assert told in str(pipe.conversion)


TEXTS = ["good food and good wine", "bad food", "wine", "good"] * 250


@pytest.mark.parametrize(
    ("steps", "theirs"),
    [
        ([TfidfVectorizer(max_features=64, ngram_range=(1, 2), min_df=2)], {"ngram_range": (1, 2), "n_features": 64}),
        ([CountVectorizer(max_features=10**5, binary=True)], {"binary": True, "n_features": 1024}),
        ([CountVectorizer(vocabulary=["bad", "good"]), TfidfTransformer()], {"n_features": 256}),
        ([HashingVectorizer(n_features=32, norm=None), TfidfTransformer(norm="l1")], {"n_features": 32, "norm": "l1"}),
    ],
    ids=str,
)
def test_words_that_are_read_off_the_texts_are_hashed(steps, theirs):
    pipe = convert([*steps, LOG], classes=(0, 1)).fit(TEXTS, [1, 0, 1, 0] * 250)
    assert ("not only those of its vocabulary" in str(pipe.conversion)) == ("vocabulary=[" in str(steps[0]))
    assert np.allclose(pipe[:-1].transform(TEXTS[:4]), HashingVectorizer(**theirs).fit_transform(TEXTS[:4]).toarray())
    assert pipe.predict(["bad food", "good food and good wine"]).tolist() == [0, 1]


def test_the_width_of_a_kernel_fits_rows_of_words_and_raw_columns():
    y = [1, 0, 1, 0] * 250
    words = convert([TfidfVectorizer(), SVC()], classes=(0, 1)).fit(TEXTS, y)
    assert "gamma='scale' became 1, as for rows of length 1" in str(words.conversion)
    assert words.score(TEXTS, y) > 0.95
    draws = np.random.default_rng(0).uniform(0, (1, 1000), (3000, 2))
    ring = (np.hypot(*((draws / (1, 1000) - 0.5).T)) < 0.3).astype(int)
    raw = convert(SVC(), ranges=[(0, 1), (0, 1000)], classes=(0, 1)).fit(draws, ring)
    assert raw.score(draws, ring) > 0.9


def test_components_of_words_have_the_lengths_of_projected_rows():
    steps = [HashingVectorizer(n_features=16), TruncatedSVD(2), Normalizer(), LOG]
    pipe = convert(steps, classes=(0, 1)).fit(TEXTS, [1, 0, 1, 0] * 250)
    assert np.allclose(np.linalg.norm(pipe[:-1].transform(TEXTS[:4]), axis=1), 1, atol=1e-6)
    with pytest.raises(UnsupportedOrder):  # these rows keep their mean, which scikit-learn subtracts
        convert([StandardScaler(), PCA(2), Normalizer(), LOG], ranges=(0, 1), classes=(0, 1))


def test_text_of_a_frame_goes_to_boosting_as_codes():
    table = pd.DataFrame({"age": np.tile([0.0, 1.0, np.nan], 400), "ward": pd.Categorical(["a", "b", "c", "d"] * 300)})
    facts = {"ranges": {"age": (0, 1)}, "categories": {"ward": ["a", "b", "c", "d"]}, "classes": (0, 1)}
    pipe = convert(HistGradientBoostingClassifier(), **facts).fit(table, table["ward"].isin(["a", "d"]).astype(int))
    assert pipe.steps[-1][1].categorical_features == {0: 4}
    assert pipe.score(table, table["ward"].isin(["a", "d"]).astype(int)) > 0.95


def test_columns_inside_columns():
    inner = make_column_transformer((StandardScaler(), ["age"]), (ZEROS, ["ward"]))
    columns = make_column_transformer((inner, ["age", "ward"]), (StandardScaler(), ["dose"]))
    facts = {"ranges": {"age": (0, 9), "dose": (0, 1)}, "categories": LABELS, "classes": (0, 1)}
    pipe = convert([columns, LOG], **facts)
    assert [block.columns for block in pipe.steps[0][1].blocks] == [["age"], ["ward"], ["dose"]]
    inner.set_params(remainder="passthrough")  # the rest of these columns, not of all
    with pytest.raises(UnknownStage):
        convert([columns, LOG], **facts)


def test_a_scale_in_front_of_equal_steps_is_left_out():
    facts = {"ranges": {"age": (0, 9)}, "classes": (0, 1)}
    plain, scaled = (
        convert([make_column_transformer((make_pipeline(*front, SplineTransformer(4)), ["age"])), LOG], **facts)
        for front in ((), (StandardScaler(),))
    )
    table = pd.DataFrame({"age": [0.0, 1.0, 9.0]})
    np.testing.assert_array_equal(*(pipe[0].fit_transform(table) for pipe in (plain, scaled)))
    assert len(plain.steps) == len(scaled.steps) == 2
    assert "the same in any units" in str(scaled.conversion)


def test_skewed_columns_have_bins_where_the_rows_are():
    X = np.minimum(np.random.default_rng(0).pareto(1.5, (4000, 1)), 1000)
    for steps in ([KBinsDiscretizer(4)], [make_column_transformer((KBinsDiscretizer(4), [0]))]):
        pipe = convert([*steps, LOG], ranges=(0, 1000), classes=(0, 1), epsilon=2.0).fit(X, (X[:, 0] > 1).astype(int))
        assert pipe[:-1].transform(X).mean(axis=0).min() > 0.2


def test_distances_from_centres_of_some_columns():
    table = pd.DataFrame(np.random.default_rng(0).uniform(size=(900, 3)), columns=["north", "east", "size"])
    columns = make_column_transformer((KMeans(3), ["north", "east"]), (StandardScaler(), ["size"]))
    pipe = convert([columns, Ridge()], ranges=dict.fromkeys(table, (0, 1)), y_range=(0, 1)).fit(table, table["size"])
    assert pipe[:-1].transform(table[:5]).shape == (5, 4)
    assert "distances weigh otherwise" in str(pipe.conversion)
    forest = convert([columns, ExtraTreesRegressor()], ranges=dict.fromkeys(table, (0, 1)), y_range=(0, 1))
    assert forest.fit(table, table["size"]).score(table, table["size"]) > 0.9  # trees take gaps, and centres do not


@pytest.mark.parametrize(("function", "moves"), [(lambda X: X[:, :1] / X[:, 1:], True), (lambda X: X > 0.5, False)])
def test_a_function_that_leaves_gaps_may_stand_in_front_of_what_fills_them(function, moves):
    steps = make_pipeline(SimpleImputer(), FunctionTransformer(function))
    columns = make_column_transformer((steps, ["age", "dose"]))
    facts = {"ranges": {"age": (1, 2), "dose": (1, 2)}, "functions": {"pipeline-functiontransformer": (0, 2)}}
    if not moves:
        with pytest.raises(InvalidParameter, match="units are not public"):
            convert([columns, LOG], classes=(0, 1), **facts)
        return
    gappy = pd.DataFrame({"age": [1.0, 2.0, np.nan], "dose": [2.0, 1.0, 1.0]})
    found = convert([columns, LOG], classes=(0, 1), **facts)[0].fit_transform(gappy)
    assert np.allclose(found[:, 0], [-0.5, 1.0, np.nan], equal_nan=True)  # from [0, 2] to [-1, 1]


def features(*steps, ranges=(-1.0, 2.0), **answer):
    pipe = convert([*steps, LOG], ranges=ranges, classes=(0, 1))
    return pipe[0].fit_transform(NUMBERS), pipe


NUMBERS = np.vstack([[-1.0] * 3, [2.0] * 3, np.random.default_rng(0).uniform(-1, 2, (40, 3))])


@pytest.mark.parametrize(
    "step",
    [
        RBFSampler(gamma=0.3, n_components=7, random_state=5),
        SplineTransformer(n_knots=4, degree=2),
        SplineTransformer(3, include_bias=False),
        SplineTransformer(6, extrapolation="periodic"),
        SplineTransformer(degree=2, knots=np.array([[-0.5] * 3, [0.0] * 3, [1.5] * 3])),
        SplineTransformer(degree=1, knots=[[-1.0] * 3, [0.0] * 3, [1.5] * 3], extrapolation="periodic"),
    ],
    ids=repr,
)
def test_features_are_those_of_scikit_learn(step):
    found, _ = features(step)
    assert np.allclose(found, clone(step).fit_transform(NUMBERS), atol=1e-12)


@pytest.mark.parametrize("kernel", [{"kernel": "rbf", "gamma": 0.4}, {"kernel": "poly", "degree": 2, "coef0": 1}])
def test_landmarks_are_public_and_all_else_is_that_of_scikit_learn(kernel):
    found, pipe = features(Nystroem(n_components=6, random_state=3, **kernel))
    block, _, facts = pipe[0].located()[0]
    rows = block.maps[0].landmarks(facts[0])
    assert np.abs(rows).max() <= 2
    theirs = Nystroem(n_components=6, **kernel).fit(rows)
    assert np.allclose(found @ found.T, theirs.transform(NUMBERS) @ theirs.transform(NUMBERS).T, atol=1e-6)


def test_missing_values_have_columns_of_their_own():
    gappy = np.where(NUMBERS > 1.5, np.nan, NUMBERS)
    pipe = convert([SimpleImputer(add_indicator=True), StandardScaler(), LOG], ranges=(-1, 2), classes=(0, 1))
    found = pipe[0].fit_transform(gappy)
    assert np.array_equal(found[:, 3:], np.isnan(gappy))
    assert list(pipe[0].get_feature_names_out())[3:] == [f"missingindicator_x{i}" for i in range(3)]
    assert "of every column" in str(pipe.conversion)


X = pd.DataFrame({"age": [1.0, 2.0, np.nan, 4.0], "ward": ["north", None, "south", "west"]})
LABELS = {"ward": ["north", "south"]}


def mapped(encoder, *fill, categories=LABELS):
    columns = make_column_transformer((make_pipeline(*fill, encoder), ["ward"]))
    return convert([columns, LOG], classes=(0, 1), categories=categories)


def filled(strategy, value=None):
    return SimpleImputer(strategy=strategy, fill_value=value)


OWN = [[1, 0, 0], [0, 0, 1], [0, 1, 0], [0, 0, 0]]
ZEROS = OneHotEncoder(handle_unknown="ignore")


@pytest.mark.parametrize(
    ("pipe", "rows", "told"),
    [
        (
            mapped(ZEROS, filled("constant", "none")),
            [[1, 0, 0], [0, 0, 1], [0, 1, 0], [0, 0, 0]],
            "it was not declared",
        ),
        (mapped(OneHotEncoder(min_frequency=5)), [[1, 0], [0, 0], [0, 1], [0, 0]], "min_frequency=5 has no effect"),
    ],
)
def test_missing_and_rare_labels(pipe, rows, told):
    assert pipe.steps[0][1].fit_transform(X).tolist() == rows
    assert told in str(pipe.conversion)


@pytest.mark.parametrize(("encoder", "rows"), [(ZEROS, [[0, 1], [0, 0]]), (OrdinalEncoder(), [[1], [-1]])])
def test_missing_labels_become_the_most_frequent_one_by_noisy_counts(encoder, rows):
    table = pd.DataFrame({"ward": ["north", "south", "south", None] * 500, "age": 1.0})
    pipe = mapped(encoder, filled("most_frequent")).fit(table, [0, 1, 1, 0] * 500)
    assert "the category that most rows hold by noisy counts" in str(pipe.conversion)
    assert [release.statistic for release in pipe.certificate_.record.releases] == ["modes"]
    assert pipe.twins_[0][1].transform(pd.DataFrame({"ward": [None, "Z"], "age": 1.0})).tolist() == rows


def test_an_encoder_of_all_columns_takes_those_whose_categories_are_declared():
    pipe = convert([filled("constant", "none"), ZEROS, LOG], classes=(0, 1), categories=LABELS)
    assert pipe[0].fit_transform(X[["ward"]]).tolist() == OWN


@pytest.mark.parametrize(
    ("numbers", "labels", "taken"),
    [
        ({"dtype_include": np.number}, {"dtype_include": object}, [["age"], ["ward"]]),
        ({"dtype_include": "int64"}, {"dtype_include": ["category", "bool"]}, [["age"], ["ward"]]),
        ({"dtype_exclude": object}, {"dtype_exclude": "number"}, [["age"], ["ward"]]),
        ({"pattern": "^a"}, {"pattern": "^w"}, [["age"], ["ward"]]),
    ],
)
def test_selectors_choose_among_what_is_declared(numbers, labels, taken):
    parts = (StandardScaler(), make_column_selector(**numbers)), (OneHotEncoder(), make_column_selector(**labels))
    declared = {"ranges": {"age": (0, 9)}, "categories": LABELS, "classes": (0, 1)}
    pipe = convert([make_column_transformer(*parts), LOG], **declared)
    assert [block.columns for block in pipe.steps[0][1].blocks] == taken
    assert "chose among the columns that are declared" in str(pipe.conversion)


class ColumnPicker(TransformerMixin, BaseEstimator):
    """As in many tutorials; without columns it takes those that it has seen."""

    def __init__(self, columns=None):
        self.columns = columns

    def fit(self, X, y=None):
        self.columns_ = list(X)
        return self

    def transform(self, X):
        return X[self.columns or self.columns_]


def zeroed(X):
    X["age"] = 0.0
    return X[["age"]]


def test_a_function_that_picks_columns_of_a_frame_is_a_column_transformer():
    ranges = {"age": (0, 100), "dose": (0, 1), "id": (0, 9)}
    for pick in (lambda X: X[["dose", "age"]], lambda X: X.drop(columns="id")):
        pipe = convert([FunctionTransformer(pick), StandardScaler(), LOG], ranges=ranges, classes=(0, 1))
        assert {*pipe.steps[0][1].blocks[0].columns} == {"age", "dose"}
        pipe = convert(
            [make_union(ColumnPicker(["dose"]), FunctionTransformer(pick)), LOG], ranges=ranges, classes=(0, 1)
        )
        assert pipe.steps[0][1].blocks[0].columns == ["dose"]
    with pytest.raises(UnknownStage, match="ColumnPicker"):
        convert([ColumnPicker(), LOG], ranges=ranges, classes=(0, 1))
    for other in (lambda X: X.assign(age=X["age"] + 1), zeroed):
        with pytest.raises(InvalidParameter, match="takes a frame"):
            convert([FunctionTransformer(other), LOG], ranges=ranges, classes=(0, 1))


@pytest.mark.parametrize("scaled", [False, True])
def test_mean_labels_take_the_place_of_codes_that_stay_as_they_are(scaled):
    table = pd.DataFrame({"ward": ["a", "b", "c"] * 400, "age": np.tile([0.0, 1.0], 600)})
    y = (table["ward"] == "c").astype(int)
    encoder = make_pipeline(TargetEncoder(smooth=0.0), StandardScaler()) if scaled else TargetEncoder(smooth=0.0)
    columns = make_column_transformer((encoder, ["ward"]), remainder="passthrough")
    pipe = convert([columns, LOG], ranges={"age": (0, 1)}, categories={"ward": ["a", "b", "c"]}, classes=(0, 1))
    pipe.fit(table, y)
    means = next(step.stage.means_ for _, step in pipe.twins_ if hasattr(getattr(step, "stage", 0), "means_"))
    assert np.allclose(means[0, :3, 0], [-1, -1, 1], atol=0.1)
    assert pipe.score(table, y) > 0.95


@pytest.mark.parametrize("filled", [False, True])
def test_categories_that_nobody_knows_go_into_buckets(filled):
    draws = np.random.default_rng(0)
    table = pd.DataFrame(
        {"zip": draws.choice([f"z{i}" for i in range(40)], 900).astype(object), "sex": "F", "age": 1.0}
    )
    table.loc[::9, "zip"] = None
    y = table["zip"].isna().astype(int)
    encoder = OneHotEncoder(handle_unknown="ignore")
    encoder = make_pipeline(SimpleImputer(strategy="most_frequent"), encoder) if filled else encoder
    columns = make_column_transformer((encoder, ["zip", "sex"]), (StandardScaler(), ["age"]))
    known = {"zip": {"hashed": 16}, "sex": ["F", "M"]}
    pipe = convert([columns, LOG], ranges={"age": (0, 2)}, categories=known, classes=(0, 1)).fit(table, y)
    width = pipe[:-1].transform(table[:3]).shape[1]
    assert width == 16 + 2 + 1 + (1 if filled else 0)  # a bucket for gaps; of a declared one the mode
    assert pipe.score(table, y) > (0.95 if filled else 0.85)
    with pytest.raises(InvalidParameter, match="buckets mean nothing"):
        convert([make_column_transformer((OrdinalEncoder(), ["zip"])), LOG], categories=known, classes=(0, 1))
