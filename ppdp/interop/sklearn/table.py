"""What is known of each class of scikit-learn: what fitting it tells (lint), and what stands for it (conversion)."""

from __future__ import annotations

from numbers import Integral

from ppdp.interop.sklearn.leak import NOTHING, PROJECTED, Given, Known, Leak
from ppdp.interop.sklearn.models import (
    descent_classifier,
    descent_regressor,
    least_squares,
    log_link,
    logistic,
    ridge,
    support,
)
from ppdp.interop.sklearn.public_maps import (
    bins,
    function,
    normaliser,
    one_hot,
    ordinal,
    powers,
    range_scaler,
    threshold,
)
from ppdp.interop.sklearn.stages import imputer, pca, projection, robust, standard

_REMOVE = "leave it out; the certificate needs a stage with a known bound."
_MODEL = "the fitted model: whoever holds it can test whether a person was among the rows"
_NO_CLASSIFIER = "LogisticRegression(classes=...) or LinearSVC(classes=...) of ppdp.mechanisms."
_NO_REGRESSOR = (
    "Ridge, LinearRegression, PoissonRegressor, GammaRegressor or TweedieRegressor(y_range=...) of ppdp.mechanisms."
)
_TREES = "thresholds between values of rows, and leaves that may hold one row"
_INSIDE = "every model inside"
_FIRST = "one model alone, which learns several classes together: all models of an ensemble look at the rows."
_ROWS = "the rows themselves, which are stored in the fitted object"
_CONSTANT = "SimpleImputer(strategy='constant', keep_empty_features=True)."
_RANGES = "smallest and largest values, each of which is one row's"
_PUBLIC_EDGES = (
    "a public function or public edges: RowMap, GridQuantizer, KBinsDiscretizer(strategy='uniform') with ranges."
)


def _row_wise(twin: str = "RowMap", fix: str = "RowMap(function, out_ranges=...).") -> Leak:
    return Leak("none", NOTHING, twin, fix)


_CHOICE = Leak(
    "high",
    "which columns were chosen: one row can tip the choice",
    fix="choose columns by public knowledge, in a ColumnTransformer.",
)
_SCORES = Leak(
    "low", "a score of each column, kept in scores_; no column is dropped", fix="leave it out: it changes no row."
)
_COUNTED = Leak("low", "in how many rows every word occurs", fix="IDF weights of a public corpus: Public.")
_SHAPES = Leak(
    "high",
    "quantiles, ranges or a shape fitted to the values of columns",
    "GridQuantizer",
    "a public function or public edges: RowMap, GridQuantizer, KBinsDiscretizer(strategy='uniform') with ranges.",
)
_CATEGORIES = Leak("high", "which categories occur, also one that a single row has", fix="declare categories=[...].")
_WORDS = Leak("high", "every word that occurs, also in one row only", fix="HashingVectorizer, or a public vocabulary.")
_COMPONENTS = Leak("low", "means and directions of most variance", "PCA", "PCA(k), or SoftPCA().")
_CLASSIFIER = Leak("high", _MODEL, "LogisticRegression", "LogisticRegression(classes=...), or LinearSVC(classes=...).")
_LOGISTIC = Leak("high", _MODEL, "LogisticRegression", "LogisticRegression(classes=...).")
_SUPPORT = Leak("high", _MODEL, "LinearSVC", "LinearSVC(classes=...).")
_LEAST_SQUARES = Leak("high", _MODEL, "LinearRegression", "LinearRegression(y_range=...).")
_RIDGE = Leak("high", _MODEL, "Ridge", "Ridge(y_range=...).")


def _fixed_categories(given: Given) -> bool:
    rare = given.get("min_frequency") is None and given.get("max_categories") is None
    return rare and not isinstance(given.get("categories"), str | None)


def _fixed_words(given: Given) -> bool:
    return given.get("vocabulary") is not None


def _constant(given: Given) -> bool:
    return given.get("strategy") == "constant" and not given.get("add_indicator")


def _shows_gaps(given: Given) -> bool:
    return bool(given.get("add_indicator")) or given.get("initial_strategy") not in ("mean", "constant")


# By names of classes, one or several.
_CLASSES: dict[str, Known] = {
    # --- stages that look at no value ---
    "Normalizer": Known(_row_wise(), "map anywhere", normaliser),
    "Binarizer": Known(_row_wise(), "map anywhere", threshold),
    "PolynomialFeatures": Known(_row_wise(), "map anywhere", powers),
    "FunctionTransformer": Known(_row_wise(), "map anywhere", function),
    "AdditiveChi2Sampler PolynomialCountSketch SkewedChi2Sampler": Known(_row_wise()),
    "RBFSampler": Known(
        _row_wise(),
        otherwise={
            lambda given: given.get("gamma") == "scale": Leak(
                "low", "the variance of the columns", "RowMap", "declare gamma as a number."
            ),
        },
    ),
    "SparseCoder": Known(
        Leak(
            "declared",
            "nothing, if its dictionary was not learned from these rows: nobody checked",
            "RowMap",
            "RowMap(function, out_ranges=...) with a public dictionary.",
        )
    ),
    "GaussianRandomProjection SparseRandomProjection": Known(
        Leak("none", PROJECTED, "RandomProjection", "RandomProjection(k, seed=0)."), "projection", projection
    ),
    "FeatureHasher HashingVectorizer PatchExtractor": Known(_row_wise("", "run it first, outside the pipeline.")),
    "FrozenEstimator": Known(
        Leak("high", "whatever it was fitted on", "Public", "Public(transformer) if those were public data.")
    ),
    # --- averages of all rows ---
    "StandardScaler": Known(
        Leak("low", "means and variances of columns", "StandardScaler", "StandardScaler()."),
        "scaler",
        standard,
        harmless=lambda given: not given.get("with_mean") and not given.get("with_std"),
    ),
    "SimpleImputer": Known(
        Leak("low", "means of columns, and which are empty", "MeanImputer", "MeanImputer()."),
        "imputer",
        imputer,
        harmless=lambda given: _constant(given) and given.get("keep_empty_features") is True,
        otherwise={
            _constant: Leak("low", "which columns are empty: they are dropped", "RowMap", _CONSTANT),
            lambda given: given.get("strategy") == "most_frequent": Leak(
                "high",
                "most frequent values: one row can decide which they are",
                "CategoryEncoder",
                "text: CategoryEncoder(..., add_indicator=True), where missing values are a category of their own; "
                "numbers: TrimmedMeanImputer().",
            ),
            lambda given: given.get("strategy") != "mean" or bool(given.get("add_indicator")): Leak(
                "high",
                "medians, which are values of single rows, or where values are missing",
                "TrimmedMeanImputer",
                f"TrimmedMeanImputer(), or {_CONSTANT}",
            ),
        },
    ),
    "PCA": Known(
        _COMPONENTS,
        "components",
        pca,
        otherwise={
            lambda given: not isinstance(given.get("n_components"), Integral | None): Leak(
                "high",
                "how many components are kept: one row can tip the choice; means and directions of most variance",
                "PCA",
                "PCA(k) with a public k, or SoftPCA().",
            ),
        },
    ),
    "IncrementalPCA": Known(_COMPONENTS),
    "TruncatedSVD": Known(
        Leak("low", "directions of most variance", "PCA", "PCA(k, center=False), or SoftPCA()."), "components", pca
    ),
    "IterativeImputer": Known(
        Leak("low", "a regression of every column", "RegressionImputer", "RegressionImputer()."),
        otherwise={
            _shows_gaps: Leak(
                "high",
                "which columns have missing values, or values of single rows, besides a regression of every column",
                "RegressionImputer",
                "RegressionImputer().",
            ),
        },
    ),
    "FactorAnalysis FastICA NMF MiniBatchNMF SparsePCA MiniBatchSparsePCA DictionaryLearning "
    "MiniBatchDictionaryLearning LatentDirichletAllocation BernoulliRBM": Known(
        Leak("low", "directions that were fitted to all rows", "PCA", "PCA(k), or SoftPCA().")
    ),
    "TfidfTransformer": Known(_COUNTED, harmless=lambda given: not given.get("use_idf")),
    "KernelCenterer": Known(Leak("low", "means of a kernel's columns", fix=_REMOVE)),
    "EmpiricalCovariance ShrunkCovariance LedoitWolf OAS GraphicalLasso": Known(
        Leak("low", "the covariance of the columns", "GaussianMechanism", "GaussianMechanism(query='covariance').")
    ),
    # --- single rows decide ---
    "MinMaxScaler MaxAbsScaler": Known(
        Leak("high", _RANGES, "MinMaxScaler", "MinMaxScaler(ranges=...) with public ranges."), "map", range_scaler
    ),
    "RobustScaler": Known(
        Leak(
            "high",
            "quantiles of columns, which are values of single rows",
            "RobustScaler",
            "StandardScaler() behind public ranges; RobustScaler is rarely affordable.",
        ),
        "scaler",
        robust,
        harmless=lambda given: not given.get("with_centering") and not given.get("with_scaling"),
    ),
    "QuantileTransformer PowerTransformer": Known(_SHAPES),
    "SplineTransformer": Known(_SHAPES, harmless=lambda given: not isinstance(given.get("knots"), str | None)),
    "KBinsDiscretizer": Known(_SHAPES, "map", bins),
    "OneHotEncoder": Known(_CATEGORIES, "map", one_hot, harmless=_fixed_categories),
    "OrdinalEncoder": Known(_CATEGORIES, "map", ordinal, harmless=_fixed_categories),
    "LabelEncoder LabelBinarizer": Known(_CATEGORIES),
    "MultiLabelBinarizer": Known(_CATEGORIES, harmless=lambda given: given.get("classes") is not None),
    "TargetEncoder": Known(
        Leak(
            "high",
            "mean labels of categories, also of one with a single row",
            "TargetMeanEncoder",
            "CategoryEncoder(categories, encoding='ordinal') and then TargetMeanEncoder(), or OneHotEncoder.",
        )
    ),
    "CountVectorizer": Known(_WORDS, harmless=_fixed_words),
    "TfidfVectorizer": Known(
        _WORDS,
        harmless=lambda given: _fixed_words(given) and not given.get("use_idf"),
        otherwise={_fixed_words: _COUNTED},
    ),
    "DictVectorizer": Known(_WORDS),
    "KNNImputer": Known(Leak("high", _ROWS, "MeanImputer", "MeanImputer(), or RegressionImputer().")),
    "MissingIndicator": Known(
        Leak(
            "high",
            "which columns have missing values: one row decides",
            fix="MissingIndicator(features='all').",
        ),
        harmless=lambda given: given.get("features") == "all",
    ),
    "SelectKBest": Known(_CHOICE, otherwise={lambda given: given.get("k") == "all": _SCORES}),
    "SelectPercentile": Known(_CHOICE, otherwise={lambda given: given.get("percentile") == 100: _SCORES}),
    "VarianceThreshold SelectFdr SelectFpr SelectFwe GenericUnivariateSelect SelectFromModel RFE RFECV "
    "SequentialFeatureSelector": Known(_CHOICE),
    "KernelPCA Nystroem Isomap LocallyLinearEmbedding SpectralEmbedding TSNE MDS ClassicalMDS KNeighborsTransformer "
    "RadiusNeighborsTransformer NearestNeighbors KernelDensity LocalOutlierFactor OneClassSVM": Known(
        Leak("high", _ROWS, "RandomProjection", "RandomProjection(k), or PCA(k).")
    ),
    "CCA PLSCanonical PLSRegression PLSSVD LinearDiscriminantAnalysis NeighborhoodComponentsAnalysis": Known(
        Leak("high", "directions fitted to rows and labels", "PCA", "PCA(k) in front of a private model.")
    ),
    "RandomTreesEmbedding": Known(Leak("high", "thresholds between values of rows", fix="RandomProjection(k).")),
    "KMeans MiniBatchKMeans BisectingKMeans Birch FeatureAgglomeration AffinityPropagation AgglomerativeClustering "
    "DBSCAN HDBSCAN MeanShift OPTICS SpectralClustering SpectralBiclustering SpectralCoclustering GaussianMixture "
    "BayesianGaussianMixture": Known(
        Leak(
            "high",
            "where rows lie: a cluster may be one row",
            "ClusterQuantizer",
            "ClusterQuantizer(), GridQuantizer().",
        )
    ),
    "EllipticEnvelope MinCovDet GraphicalLassoCV IsolationForest SGDOneClassSVM": Known(
        Leak("high", "which rows are unusual", fix=_REMOVE)
    ),
    # --- models ---
    "LogisticRegression": Known(_LOGISTIC, "model", logistic),
    "LogisticRegressionCV": Known(
        Leak(
            "high",
            _MODEL,
            "LogisticRegression",
            "LogisticRegression(classes=...), searched by ppdp.PrivateSearchCV over alpha, which is 1/C.",
        )
    ),
    "LinearSVC": Known(_SUPPORT, "model", support),
    "SVC NuSVC": Known(_SUPPORT),
    "SGDClassifier": Known(_CLASSIFIER, "model", descent_classifier),
    "RidgeClassifier RidgeClassifierCV Perceptron PassiveAggressiveClassifier": Known(_CLASSIFIER),
    "LinearRegression": Known(_LEAST_SQUARES, "model", least_squares),
    "SGDRegressor": Known(_LEAST_SQUARES, "model", descent_regressor),
    "HuberRegressor TheilSenRegressor RANSACRegressor": Known(_LEAST_SQUARES),
    "Ridge": Known(_RIDGE, "model", ridge),
    "RidgeCV Lasso LassoCV LassoLars LassoLarsCV LassoLarsIC Lars LarsCV ElasticNet ElasticNetCV BayesianRidge "
    "ARDRegression LinearSVR PassiveAggressiveRegressor OrthogonalMatchingPursuit OrthogonalMatchingPursuitCV "
    "MultiTaskElasticNet MultiTaskElasticNetCV MultiTaskLasso MultiTaskLassoCV QuantileRegressor": Known(_RIDGE),
    **{
        name: Known(Leak("high", _MODEL, name, f"{name}(y_range=...)."), "model", log_link)
        for name in ("PoissonRegressor", "GammaRegressor", "TweedieRegressor")
    },
    "KNeighborsClassifier RadiusNeighborsClassifier GaussianProcessClassifier LabelPropagation LabelSpreading": Known(
        Leak("high", _ROWS, fix=_NO_CLASSIFIER)
    ),
    "KNeighborsRegressor RadiusNeighborsRegressor KernelRidge SVR NuSVR GaussianProcessRegressor": Known(
        Leak("high", _ROWS, fix=_NO_REGRESSOR)
    ),
    "DecisionTreeClassifier ExtraTreeClassifier ExtraTreesClassifier RandomForestClassifier GradientBoostingClassifier "
    "HistGradientBoostingClassifier": Known(Leak("high", _TREES, fix=_NO_CLASSIFIER)),
    "DecisionTreeRegressor ExtraTreeRegressor ExtraTreesRegressor RandomForestRegressor GradientBoostingRegressor "
    "HistGradientBoostingRegressor IsotonicRegression": Known(Leak("high", _TREES, fix=_NO_REGRESSOR)),
    "BernoulliNB CategoricalNB ComplementNB GaussianNB MultinomialNB NearestCentroid QuadraticDiscriminantAnalysis "
    "MLPClassifier": Known(Leak("high", _MODEL, fix=_NO_CLASSIFIER)),
    "MLPRegressor": Known(Leak("high", _MODEL, fix=_NO_REGRESSOR)),
    "DummyClassifier": Known(
        Leak("high", "shares of labels", "GaussianMechanism", "GaussianMechanism(query='histogram') of the labels.")
    ),
    "DummyRegressor": Known(
        Leak(
            "high",
            "a mean or quantile of the targets",
            "GaussianMechanism",
            "GaussianMechanism(query='mean') or ExponentialMechanism(...) of the targets.",
        )
    ),
    # --- estimators around estimators ---
    "AdaBoostClassifier BaggingClassifier StackingClassifier VotingClassifier ClassifierChain MultiOutputClassifier "
    "OneVsOneClassifier OneVsRestClassifier OutputCodeClassifier SelfTrainingClassifier": Known(
        Leak("high", _INSIDE, fix=f"{_FIRST} Such as {_NO_CLASSIFIER}")
    ),
    "AdaBoostRegressor BaggingRegressor StackingRegressor VotingRegressor RegressorChain MultiOutputRegressor": Known(
        Leak("high", _INSIDE, fix=f"{_FIRST} Such as {_NO_REGRESSOR}")
    ),
    "CalibratedClassifierCV TunedThresholdClassifierCV": Known(
        Leak("high", "scores of held-out rows", fix="leave it out: LogisticRegression gives probabilities.")
    ),
    "FixedThresholdClassifier": Known(
        Leak("none", "nothing beyond the model inside", fix="apply the threshold afterwards.")
    ),
    "TransformedTargetRegressor": Known(
        Leak(
            "high",
            "what its transformer reads off the targets",
            fix="map y by a public function, and declare y_range.",
        ),
        harmless=lambda given: given.get("transformer") is None and given.get("regressor") is not None,
    ),
    "GridSearchCV RandomizedSearchCV HalvingGridSearchCV HalvingRandomSearchCV": Known(
        Leak(
            "high",
            "which candidate won, and its scores: both are read off the rows",
            "PrivateSearchCV",
            "ppdp.PrivateSearchCV(Pipeline.from_sklearn(its estimator, ...), param_grid) charges the search; "
            "in place of C it takes alpha, which is 1/C.",
        )
    ),
}

TABLE: dict[str, Known] = {name: known for names, known in _CLASSES.items() for name in names.split()}
"""By name of the class."""

CONTAINERS = {"ColumnTransformer": "transformers", "FeatureUnion": "transformer_list", "Pipeline": "steps"}
"""They only pass rows on to what this parameter holds."""

RESAMPLES = Leak(
    "high",
    "which rows are repeated, made up or dropped: that goes by the counts of labels and by neighbours",
    fix="leave it out; for repeated records put Deduplicator() first.",
)
