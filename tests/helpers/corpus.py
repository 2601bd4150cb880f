"""Pipelines as people write them, on one made-up table: subjects of scikit-learn's guide, its gallery and tutorials.

Written anew. ``CORPUS`` has them by name, with the columns that each is fitted to and what it learns; what is declared
of them follows: ranges of numbers, categories of text, and classes or a range of the targets. Nothing else.
``python benchmarks/existing_pipelines.py`` prints what becomes of each.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn import compose, decomposition, discriminant_analysis, ensemble, feature_selection, impute, linear_model
from sklearn import kernel_approximation as kernels
from sklearn import preprocessing as prep
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector, make_column_transformer
from sklearn.cross_decomposition import PLSRegression
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.model_selection._search import BaseSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.svm import SVC, SVR, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from ppdp import Pipeline as PrivatePipeline
from ppdp import PrivateSearchCV
from ppdp.exceptions import PpdpError

LINEAR = LogisticRegression()
N = 600
RANGES = {"age": (18, 90), "income": (0, 200), "hours": (0, 80)}
CATEGORIES = {"city": ["Bern", "Lyon", "Oslo", "Rome"], "job": ["clerk", "driver", "nurse", "teacher", "other"]}
NUMBERS, LABELS = list(RANGES), list(CATEGORIES)
ALL = [*NUMBERS, *LABELS]
ANSWERS = {
    "yes": {"classes": (0, 1)},
    "three": {"classes": ("high", "low", "middle")},
    "amount": {"y_range": (0, 100)},
    "price": {"y_range": (1, 100)},
}


@dataclass(frozen=True)
class Case:
    """A pipeline, the columns of the table that it is fitted to, whether these have gaps, and what it learns."""

    pipe: Any
    columns: Any = tuple(NUMBERS)
    answer: str = "yes"
    gaps: bool = False

    def table(self, *, new=False):
        X = (NEW if new else ROWS)[1 if self.gaps else 0].copy()
        return X[self.columns] if isinstance(self.columns, str) else X[list(self.columns)]

    def targets(self, *, new=False):
        return (NEW if new else ROWS)[2][self.answer]

    def score(self, fitted):
        """Share of right predictions for other rows of the same law, or R2."""
        predicted, y = np.ravel(fitted.predict(self.table(new=True))), self.targets(new=True)
        if "classes" in ANSWERS[self.answer]:
            return float(np.mean(predicted == y))
        return float(1 - np.mean((predicted - y) ** 2) / np.var(y))

    def declared(self):
        """Ranges, categories and classes, as somebody writes them who knows nothing of ppdp."""
        names = [self.columns] if isinstance(self.columns, str) else self.columns
        facts = dict(ANSWERS[self.answer])
        facts["ranges"] = {name: RANGES[name] for name in names if name in RANGES} or None
        facts["categories"] = {name: CATEGORIES[name] for name in names if name in CATEGORIES} or None
        return facts


def _table(seed):
    draws = np.random.default_rng(seed)
    X = pd.DataFrame({name: draws.uniform(*pair, N).round(1) for name, pair in RANGES.items()})
    for name, labels in CATEGORIES.items():
        X[name] = draws.choice(labels, N).astype(object)
    score = (X["age"] - 54) / 36 + (X["income"] - 100) / 100 + (X["city"] == "Rome") + 0.3 * draws.standard_normal(N)
    targets = {
        "yes": (score > 0.3).astype(int).to_numpy(),
        "three": np.where(score > 0.7, "high", np.where(score < -0.2, "low", "middle")).astype(object),
        "amount": np.clip(30 + 15 * score, 0, 100).to_numpy(),
        "price": np.clip(30 + 15 * score, 1, 100).to_numpy(),
    }
    gappy = X.copy()
    for at, name in enumerate(X):
        gappy.loc[X.index[at::11], name] = np.nan
    words = np.where(
        targets["yes"][:, None] == 1, ["prize", "offer", "free", "click"], ["report", "team", "plan", "today"]
    )
    for table in (X, gappy):
        table["note"] = [" ".join(draws.permuted(row)[:3]) for row in words]
    return X, gappy, targets


ROWS, NEW = _table(0), _table(1)


def _scaled(*steps):
    return make_pipeline(prep.StandardScaler(), *steps)


def _gappy(pipe, **more):
    return Case(pipe, gaps=True, **more)


def _amount(pipe, answer="amount", **more):
    return Case(pipe, answer=answer, **more)


def _columns(numbers=None, labels=None, **settings):
    """What every tutorial does: numbers filled and scaled, text encoded."""
    numbers = make_pipeline(SimpleImputer(strategy="median"), prep.StandardScaler()) if numbers is None else numbers
    labels = prep.OneHotEncoder(handle_unknown="ignore") if labels is None else labels
    return ColumnTransformer([("num", numbers, NUMBERS), ("cat", labels, LABELS)], **settings)


def _mixed(*steps, answer="yes", numbers=None, labels=None, gaps=True, **settings):
    return Case(make_pipeline(_columns(numbers, labels, **settings), *steps), tuple(ALL), answer, gaps)


def _some(*parts, model=None, answer="yes", gaps=False, remainder="drop", more=()):
    pipe = make_pipeline(make_column_transformer(*parts, remainder=remainder), LINEAR if model is None else model)
    return Case(pipe, (*ALL, *more), answer, gaps)


def _by_type(numbers, labels, *steps, answer="yes"):
    columns = make_column_transformer(
        (numbers, make_column_selector(dtype_include=np.number)),
        (labels, make_column_selector(dtype_include=object)),
    )
    return Case(make_pipeline(columns, *steps), tuple(ALL), answer, True)


def _filled(strategy, encoder=None):
    return make_pipeline(SimpleImputer(strategy=strategy), encoder or prep.OneHotEncoder(handle_unknown="ignore"))


FILLED = make_pipeline(SimpleImputer(), prep.StandardScaler())
UNKNOWN = {"handle_unknown": "use_encoded_value", "unknown_value": -1}

MODELS = {
    "logistic regression on scaled numbers": Case(_scaled(LogisticRegression())),
    "logistic regression without a penalty": Case(_scaled(LogisticRegression(C=np.inf, max_iter=1000))),
    "logistic regression, lasso": Case(_scaled(LogisticRegression(penalty="l1", solver="liblinear"))),
    "logistic regression, three classes": Case(_scaled(LogisticRegression(max_iter=1000)), answer="three"),
    "logistic regression, balanced": Case(_scaled(LogisticRegression(class_weight="balanced"))),
    "logistic regression, weights of classes": Case(_scaled(LogisticRegression(class_weight={0: 1, 1: 5}))),
    "logistic regression, C by cross-validation": Case(_scaled(linear_model.LogisticRegressionCV())),
    "descent by hinge loss": Case(_scaled(SGDClassifier(random_state=0))),
    "descent by log loss": Case(_scaled(SGDClassifier(loss="log_loss", max_iter=1000, tol=1e-3))),
    "descent by modified Huber loss": Case(_scaled(SGDClassifier(loss="modified_huber"))),
    "ridge classifier": Case(_scaled(linear_model.RidgeClassifier())),
    "perceptron": Case(_scaled(linear_model.Perceptron())),
    "linear support vectors": Case(_scaled(LinearSVC(C=1.0, dual="auto"))),
    "support vectors, linear kernel": Case(_scaled(SVC(kernel="linear", probability=True))),
    "support vectors, radial kernel": Case(_scaled(SVC(gamma="auto"))),
    "support vectors, radial kernel of components": Case(_scaled(decomposition.PCA(2), SVC())),
    "support vectors, little trust in rows": Case(_scaled(LinearSVC(C=0.01))),
    "nearest neighbours": Case(_scaled(KNeighborsClassifier(n_neighbors=5))),
    "network": Case(_scaled(MLPClassifier(hidden_layer_sizes=(20,), max_iter=50))),
    "naive Bayes": Case(GaussianNB()),
    "naive Bayes on scaled numbers": Case(_scaled(GaussianNB()), answer="three"),
    "linear discriminant": Case(_scaled(discriminant_analysis.LinearDiscriminantAnalysis())),
    "quadratic discriminant": Case(discriminant_analysis.QuadraticDiscriminantAnalysis()),
    "decision tree": Case(DecisionTreeClassifier(max_depth=3, random_state=0)),
    "random forest": Case(ensemble.RandomForestClassifier(n_estimators=100, random_state=0)),
    "random forest, balanced": Case(ensemble.RandomForestClassifier(class_weight="balanced")),
    "extra trees": Case(ensemble.ExtraTreesClassifier(n_estimators=100)),
    "gradient boosting": Case(ensemble.GradientBoostingClassifier(learning_rate=0.1, max_depth=3)),
    "boosted histograms, gaps": _gappy(ensemble.HistGradientBoostingClassifier(max_iter=100)),
    "boosted stumps": Case(ensemble.AdaBoostClassifier(n_estimators=50)),
    "least squares": _amount(_scaled(linear_model.LinearRegression())),
    "ridge": _amount(_scaled(Ridge(alpha=1.0))),
    "ridge by cross-validation": _amount(_scaled(linear_model.RidgeCV(alphas=np.logspace(-3, 3, 7)))),
    "lasso": _amount(_scaled(linear_model.Lasso(alpha=0.1))),
    "elastic net": _amount(_scaled(linear_model.ElasticNet(alpha=0.1, l1_ratio=0.5))),
    "Huber's regression": _amount(_scaled(linear_model.HuberRegressor())),
    "regression of the median": _amount(_scaled(linear_model.QuantileRegressor(quantile=0.5, alpha=0.0))),
    "descent by squared error": _amount(_scaled(linear_model.SGDRegressor())),
    "Bayesian ridge": _amount(_scaled(linear_model.BayesianRidge())),
    "Poisson regression": _amount(_scaled(linear_model.PoissonRegressor(alpha=1e-4))),
    "gamma regression": _amount(_scaled(linear_model.GammaRegressor()), answer="price"),
    "Tweedie regression": _amount(_scaled(linear_model.TweedieRegressor(power=1.5)), answer="price"),
    "support vectors for amounts": _amount(_scaled(SVR())),
    "nearest neighbours for amounts": _amount(make_pipeline(prep.MinMaxScaler(), KNeighborsRegressor())),
    "random forest for amounts": _amount(ensemble.RandomForestRegressor(n_estimators=50)),
    "boosted histograms for amounts": _amount(ensemble.HistGradientBoostingRegressor()),
    "boosted absolute error": _amount(ensemble.HistGradientBoostingRegressor(loss="absolute_error")),
    "partial least squares": _amount(_scaled(PLSRegression(n_components=2))),
}
STAGES = {
    "means for gaps": _gappy(make_pipeline(SimpleImputer(), prep.StandardScaler(), LogisticRegression())),
    "medians for gaps": _gappy(make_pipeline(SimpleImputer(strategy="median"), prep.StandardScaler(), LinearSVC())),
    "zeros for gaps": _gappy(
        make_pipeline(SimpleImputer(strategy="constant", fill_value=0), prep.MinMaxScaler(), LogisticRegression())
    ),
    "gaps by regression": _gappy(make_pipeline(impute.IterativeImputer(), prep.StandardScaler(), LogisticRegression())),
    "gaps by neighbours": _gappy(make_pipeline(impute.KNNImputer(), prep.StandardScaler(), LogisticRegression())),
    "gaps told by columns": _gappy(
        make_pipeline(SimpleImputer(add_indicator=True), prep.StandardScaler(), LogisticRegression())
    ),
    "gaps beside means": _gappy(
        make_pipeline(make_union(SimpleImputer(), impute.MissingIndicator()), DecisionTreeClassifier())
    ),
    "smallest and largest values": Case(make_pipeline(prep.MinMaxScaler(), LogisticRegression())),
    "largest absolute values": Case(make_pipeline(prep.MaxAbsScaler(), LinearSVC())),
    "quantiles of columns": Case(make_pipeline(prep.RobustScaler(), LogisticRegression())),
    "rows of length one": Case(make_pipeline(prep.Normalizer(), LogisticRegression())),
    "logarithms": Case(make_pipeline(prep.FunctionTransformer(np.log1p), prep.StandardScaler(), LogisticRegression())),
    "powers of Yeo and Johnson": Case(make_pipeline(prep.PowerTransformer(), LogisticRegression())),
    "ranks": Case(make_pipeline(prep.QuantileTransformer(n_quantiles=100), LogisticRegression())),
    "ranks as normal scores": Case(
        make_pipeline(
            prep.QuantileTransformer(output_distribution="normal", n_quantiles=100), prep.StandardScaler(), LinearSVC()
        )
    ),
    "equal bins": Case(make_pipeline(prep.KBinsDiscretizer(5, strategy="uniform"), LogisticRegression())),
    "bins of quantiles": Case(make_pipeline(prep.KBinsDiscretizer(n_bins=10), LogisticRegression())),
    "bins of filled numbers": _gappy(
        make_pipeline(SimpleImputer(), prep.KBinsDiscretizer(5, encode="onehot-dense"), LogisticRegression())
    ),
    "products of columns": Case(make_pipeline(prep.PolynomialFeatures(2), prep.StandardScaler(), LogisticRegression())),
    "products of scaled columns": _amount(_scaled(prep.PolynomialFeatures(2, include_bias=False), Ridge())),
    "splines": _amount(make_pipeline(prep.SplineTransformer(n_knots=5), Ridge(alpha=1e-3))),
    "splines of quantiles": Case(make_pipeline(prep.SplineTransformer(knots="quantile"), LogisticRegression())),
    "components": Case(_scaled(decomposition.PCA(n_components=2), LogisticRegression())),
    "components by share of variance": Case(_scaled(decomposition.PCA(0.95), LogisticRegression())),
    "components for amounts": _amount(_scaled(decomposition.PCA(2), linear_model.LinearRegression())),
    "components for neighbours": Case(_scaled(decomposition.PCA(2), KNeighborsClassifier())),
    "singular vectors": Case(make_pipeline(decomposition.TruncatedSVD(2), LogisticRegression())),
    "kernel by landmarks": Case(_scaled(kernels.Nystroem(gamma=0.2, n_components=50), SGDClassifier())),
    "kernel by random Fourier features": Case(
        _scaled(kernels.RBFSampler(gamma=0.2, n_components=50), SGDClassifier(max_iter=50))
    ),
    "kernel by sketched products": Case(_scaled(kernels.PolynomialCountSketch(degree=2), LinearSVC())),
    "clusters as features": Case(_scaled(KMeans(n_clusters=5), LogisticRegression())),
    "best columns": Case(make_pipeline(feature_selection.SelectKBest(k=2), LogisticRegression())),
    "columns that vary": Case(make_pipeline(feature_selection.VarianceThreshold(), prep.StandardScaler(), LinearSVC())),
    "columns that a lasso keeps": Case(
        _scaled(feature_selection.SelectFromModel(LinearSVC(penalty="l1", dual=False)), LogisticRegression())
    ),
    "columns of a forest": Case(
        make_pipeline(feature_selection.SelectFromModel(ensemble.RandomForestClassifier()), LogisticRegression())
    ),
    "columns that hardly vary": Case(
        make_pipeline(feature_selection.VarianceThreshold(threshold=0.1), prep.StandardScaler(), LogisticRegression())
    ),
    "components and best columns of scaled numbers": Case(
        _scaled(
            FeatureUnion([("pca", decomposition.PCA(2)), ("best", feature_selection.SelectKBest(k=1))]),
            LogisticRegression(),
        )
    ),
    "columns one by one": Case(
        _scaled(feature_selection.RFE(LogisticRegression(), n_features_to_select=2), LogisticRegression())
    ),
    "components and best columns": Case(
        make_pipeline(
            FeatureUnion([("pca", decomposition.PCA(2)), ("best", feature_selection.SelectKBest(k=1))]),
            SVC(kernel="linear"),
        )
    ),
}
COLUMNS = {
    "numbers and text": _mixed(LogisticRegression()),
    "numbers and text, means": _mixed(LogisticRegression(max_iter=1000), numbers=FILLED),
    "numbers and text by type": _by_type(
        FILLED, prep.OneHotEncoder(handle_unknown="ignore"), LogisticRegression(max_iter=500)
    ),
    "everything by type, most frequent text": _by_type(
        make_pipeline(SimpleImputer(strategy="median"), prep.StandardScaler()),
        _filled("most_frequent"),
        LogisticRegression(),
    ),
    "codes by type for boosting": _by_type(
        "passthrough", prep.OrdinalEncoder(**UNKNOWN), ensemble.HistGradientBoostingClassifier()
    ),
    "most frequent text": _mixed(LogisticRegression(), labels=_filled("most_frequent")),
    "most frequent text for a forest": _mixed(
        ensemble.RandomForestClassifier(), numbers=SimpleImputer(), labels=_filled("most_frequent")
    ),
    "a word for missing text": _mixed(
        LogisticRegression(),
        labels=make_pipeline(
            SimpleImputer(strategy="constant", fill_value="other"), prep.OneHotEncoder(handle_unknown="ignore")
        ),
    ),
    "first category dropped": _mixed(Ridge(), labels=prep.OneHotEncoder(drop="first"), answer="amount", gaps=False),
    "rare categories together": _mixed(
        LogisticRegression(), labels=prep.OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=20)
    ),
    "few categories": _mixed(
        LogisticRegression(), labels=prep.OneHotEncoder(max_categories=3, handle_unknown="infrequent_if_exist")
    ),
    "codes for boosting": _mixed(
        ensemble.HistGradientBoostingClassifier(categorical_features=[3, 4]),
        numbers="passthrough",
        labels=prep.OrdinalEncoder(**UNKNOWN),
    ),
    "codes for a forest": _mixed(
        ensemble.RandomForestRegressor(),
        numbers=SimpleImputer(strategy="median"),
        labels=prep.OrdinalEncoder(**UNKNOWN),
        answer="amount",
    ),
    "codes for a linear model": _mixed(
        LogisticRegression(), numbers=prep.StandardScaler(), labels=prep.OrdinalEncoder(), gaps=False
    ),
    "mean targets of categories": _mixed(
        Ridge(), labels=prep.TargetEncoder(target_type="continuous"), answer="amount", gaps=False
    ),
    "the rest passes": _some(
        (prep.OneHotEncoder(), LABELS), model=ensemble.GradientBoostingClassifier(), remainder="passthrough"
    ),
    "the rest is scaled": _some((prep.OneHotEncoder(handle_unknown="ignore"), LABELS), remainder=prep.StandardScaler()),
    "smallest and largest beside text": _mixed(
        linear_model.LinearRegression(), numbers=prep.MinMaxScaler(), answer="amount", gaps=False
    ),
    "components behind everything": _mixed(decomposition.PCA(n_components=4), LogisticRegression()),
    "singular vectors behind everything": _mixed(decomposition.TruncatedSVD(n_components=4), LogisticRegression()),
    "best columns behind everything": _mixed(feature_selection.SelectKBest(k=5), LogisticRegression()),
    "best share of text": _mixed(
        LogisticRegression(),
        labels=make_pipeline(
            prep.OneHotEncoder(handle_unknown="ignore"), feature_selection.SelectPercentile(feature_selection.chi2)
        ),
    ),
    "columns that vary behind everything": _mixed(feature_selection.VarianceThreshold(), SGDClassifier()),
    "scaled behind everything": _mixed(
        prep.StandardScaler(with_mean=False), LogisticRegression(), numbers=SimpleImputer()
    ),
    "components of the numbers": _mixed(
        LogisticRegression(),
        numbers=make_pipeline(SimpleImputer(), prep.StandardScaler(), decomposition.PCA(2)),
    ),
    "products of the numbers": _mixed(
        Ridge(),
        numbers=make_pipeline(SimpleImputer(), prep.PolynomialFeatures(2, include_bias=False), prep.StandardScaler()),
        answer="amount",
    ),
    "products of everything": _mixed(
        prep.PolynomialFeatures(2, interaction_only=True, include_bias=False), LogisticRegression(), gaps=False
    ),
    "bins of one column, scales of others": _some(
        (prep.KBinsDiscretizer(10, strategy="quantile"), ["age"]),
        (prep.StandardScaler(), ["income", "hours"]),
        (prep.OneHotEncoder(), LABELS),
        model=linear_model.PoissonRegressor(alpha=1e-3),
        answer="amount",
    ),
    "logarithm of one column": _some(
        (make_pipeline(prep.FunctionTransformer(np.log1p), prep.StandardScaler()), ["income"]),
        (prep.StandardScaler(), ["age", "hours"]),
        (prep.OneHotEncoder(handle_unknown="ignore"), LABELS),
    ),
    "splines of one column": _some(
        (prep.SplineTransformer(degree=3, n_knots=6), ["hours"]),
        (prep.MinMaxScaler(), ["age", "income"]),
        (prep.OneHotEncoder(handle_unknown="ignore", sparse_output=False), LABELS),
        model=Ridge(),
        answer="amount",
    ),
    "kernel behind everything": _some(
        (prep.MinMaxScaler(), NUMBERS),
        (prep.OneHotEncoder(handle_unknown="ignore", sparse_output=False), LABELS),
        model=make_pipeline(kernels.Nystroem(kernel="poly", degree=2, n_components=40, random_state=0), Ridge()),
        answer="amount",
    ),
    "support vectors behind everything": _mixed(SVC()),
    "clusters of two columns": _some(
        (KMeans(n_clusters=4), ["age", "income"]), (prep.StandardScaler(), ["hours"]), model=Ridge(), answer="amount"
    ),
    "text as it is for boosting": Case(
        ensemble.HistGradientBoostingClassifier(categorical_features=LABELS), tuple(ALL), gaps=True
    ),
    "two scalers": _some(
        (prep.StandardScaler(), ["age", "hours"]), (prep.RobustScaler(), ["income"]), (prep.OneHotEncoder(), LABELS)
    ),
    "text alone, naive Bayes": Case(
        make_pipeline(prep.OneHotEncoder(handle_unknown="ignore"), MultinomialNB()), tuple(LABELS)
    ),
    "words counted": Case(make_pipeline(CountVectorizer(), MultinomialNB()), "note"),
    "words weighed": Case(make_pipeline(TfidfVectorizer(), LogisticRegression()), "note"),
    "words counted, then weighed": Case(
        make_pipeline(CountVectorizer(stop_words="english"), TfidfTransformer(), SGDClassifier(alpha=1e-3)), "note"
    ),
    "components of weighed words": Case(
        make_pipeline(
            TfidfVectorizer(), decomposition.TruncatedSVD(4), prep.Normalizer(copy=False), LogisticRegression()
        ),
        "note",
    ),
    "words hashed": Case(make_pipeline(HashingVectorizer(n_features=2**8), SGDClassifier()), "note"),
    "words hashed, binary and one by one": Case(
        make_pipeline(
            HashingVectorizer(n_features=2**6, binary=True, norm=None, alternate_sign=False), MultinomialNB()
        ),
        "note",
    ),
    "words and letters hashed": Case(
        make_pipeline(
            make_union(
                HashingVectorizer(n_features=2**6, stop_words="english", ngram_range=(1, 2)),
                HashingVectorizer(n_features=2**5, analyzer="char_wb", ngram_range=(2, 3)),
            ),
            LinearSVC(),
        ),
        "note",
    ),
    "words hashed to components": Case(
        make_pipeline(HashingVectorizer(n_features=2**6), decomposition.TruncatedSVD(8), LogisticRegression()), "note"
    ),
    "best hashed words": Case(
        make_pipeline(HashingVectorizer(n_features=2**6), feature_selection.SelectKBest(k=10), LogisticRegression()),
        "note",
    ),
    "words hashed beside numbers": _some(
        (HashingVectorizer(n_features=2**6), "note"),
        (prep.StandardScaler(), NUMBERS),
        (prep.OneHotEncoder(), LABELS),
        more=["note"],
    ),
    "words hashed beside numbers for boosting": _some(
        (HashingVectorizer(n_features=2**5), "note"),
        (make_pipeline(SimpleImputer(), prep.StandardScaler()), NUMBERS),
        (prep.OneHotEncoder(handle_unknown="ignore"), LABELS),
        model=ensemble.HistGradientBoostingClassifier(),
        gaps=True,
        more=["note"],
    ),
}
AROUND = {
    "grid of C": Case(GridSearchCV(_scaled(LogisticRegression()), {"logisticregression__C": [0.1, 1, 10]}, cv=5)),
    "grid over columns": Case(
        GridSearchCV(
            Pipeline([("columns", _columns()), ("model", LogisticRegression())]),
            {"columns__num__simpleimputer__strategy": ["mean", "median"], "model__C": [0.1, 1.0]},
        ),
        tuple(ALL),
        gaps=True,
    ),
    "search for a model": Case(
        GridSearchCV(
            Pipeline([("columns", _columns()), ("model", LogisticRegression())]),
            [{"model__C": [0.1, 1.0]}, {"model": [ensemble.RandomForestClassifier()], "model__max_depth": [3]}],
        ),
        tuple(ALL),
        gaps=True,
    ),
    "bagged linear models": Case(ensemble.BaggingClassifier(_scaled(LogisticRegression()), n_estimators=10)),
    "random search of a forest": Case(
        RandomizedSearchCV(ensemble.RandomForestClassifier(), {"max_depth": [3, 5, None]}, n_iter=2)
    ),
    "calibrated support vectors": Case(CalibratedClassifierCV(_scaled(LinearSVC()))),
    "bagged trees": Case(ensemble.BaggingClassifier(DecisionTreeClassifier(), n_estimators=20)),
    "voting": Case(
        ensemble.VotingClassifier([("lr", _scaled(LogisticRegression())), ("nb", GaussianNB())], voting="soft")
    ),
    "stacking": Case(
        ensemble.StackingClassifier(
            [("rf", ensemble.RandomForestClassifier()), ("svc", _scaled(LinearSVC()))],
            final_estimator=LogisticRegression(),
        )
    ),
    "one against the rest": Case(OneVsRestClassifier(_scaled(LogisticRegression())), answer="three"),
    "tuned threshold": Case(TunedThresholdClassifierCV(_scaled(LogisticRegression()), scoring="balanced_accuracy")),
    "threshold for F of trees": Case(
        TunedThresholdClassifierCV(ensemble.HistGradientBoostingClassifier(), scoring="f1")
    ),
    "public threshold": Case(_scaled(FixedThresholdClassifier(LogisticRegression(), threshold=0.3))),
    "logarithm of the targets": _amount(
        TransformedTargetRegressor(_scaled(Ridge()), func=np.log1p, inverse_func=np.expm1)
    ),
    "ranks of the targets": _amount(
        make_pipeline(
            prep.StandardScaler(),
            TransformedTargetRegressor(Ridge(), transformer=prep.QuantileTransformer(n_quantiles=50)),
        )
    ),
    "steps of columns inside out": Case(
        Pipeline(
            [
                ("clean", SimpleImputer(strategy="mean")),
                ("columns", compose.ColumnTransformer([("scale", prep.StandardScaler(), [0, 1, 2])])),
                ("model", LogisticRegression()),
            ]
        ),
        gaps=True,
    ),
}
CORPUS = {**MODELS, **STAGES, **COLUMNS, **AROUND}


def outcome(case, epsilon=5.0):
    """The converted pipeline fitted to the table, or the error that refuses it."""
    try:
        kind = PrivateSearchCV if isinstance(case.pipe, BaseSearchCV) else PrivatePipeline
        pipe = kind.from_sklearn(case.pipe, epsilon=epsilon, delta=1e-6, random_state=0, **case.declared())
        pipe.fit(case.table(), case.targets())
    except PpdpError as refused:
        return refused
    return pipe
