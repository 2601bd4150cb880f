"""What is known of each class of scikit-learn: what fitting it tells (lint), and what stands for it (conversion)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral
from typing import Any

Given = Mapping[str, Any]
Holds = Callable[[Given], bool]

SEVERITIES = ("none", "declared", "low", "high")


@dataclass(frozen=True, slots=True)
class Leak:
    """What fitting without noise tells about the rows, as a ``Finding`` of :func:`ppdp.lint` has it."""

    severity: str
    leaks: str
    counterpart: str = ""
    fix: str = ""


_high, _low = partial(Leak, "high"), partial(Leak, "low")

NOTHING = "nothing: every row is mapped by itself"
PROJECTED = f"{NOTHING}; images of private rows stay private"
CHOOSES = _high("which columns it takes: a function of the data decides", fix="name them: ['age', 'dose'].")
UNREADABLE = _high(
    "unknown: it cannot be read, so assume that it leaks everything",
    fix="give a list of (name, estimator): names are strings, estimators are instances, and none contains itself.",
)
UNKNOWN = _high(
    "unknown: assume that it leaks everything",
    fix="RowMap(function, out_ranges=...) for a map of each row by itself, in from_sklearn FunctionTransformer(function"
    " of arrays) and functions={step: (low, high)}; Public(transformer) if it was fitted on public data.",
)


@dataclass(frozen=True, slots=True)
class KnownEstimator:
    """A class of scikit-learn."""

    leak: Leak  # what fitting it tells
    harmless: Holds | None = None  # whether it looks at no value with these parameters
    otherwise: Mapping[Holds, Leak] = field(default_factory=dict)  # where it looks at something else than usual

    def leak_with(self, given: Given) -> Leak:
        """What fitting it with these parameters tells."""
        if self.harmless is not None and self.harmless(given):
            return replace(self.leak, severity="none", leaks=NOTHING)
        return next((leak for holds, leak in self.otherwise.items() if holds(given)), self.leak)


_REMOVE = "leave it out; the certificate needs a stage with a known bound."
_MODEL = "the fitted model: anyone who holds it can test whether a person was among the rows"
_NO_CLASSIFIER = (
    "SVC() or HistGradientBoostingClassifier() in its place, which follow curves and which from_sklearn converts; or "
    "LogisticRegression(classes=...) or GradientBoostingClassifier(classes=...) of ppdp.mechanisms."
)
_NO_REGRESSOR = (
    "SVR() or HistGradientBoostingRegressor() in its place, which follow curves and which from_sklearn converts; or "
    "Ridge(y_range=...) or GradientBoostingRegressor(y_range=...) of ppdp.mechanisms."
)
_TREES = "thresholds between values of rows, and leaves that may hold one row"
_INSIDE = "every model inside"
_FIRST = "one model alone, which learns several classes together: all models of an ensemble look at the rows."
_ONE = "one model alone: all models of an ensemble look at the rows."
_EACH = "a pipeline for each output, all in one ppdp.Ledger, which adds up what they cost."
_VOTES = "the best of its models alone; or each by from_sklearn, and {0} around these pipelines: all are paid for."
_ROWS = "the rows themselves, which are stored in the fitted object"
_AROUND_0 = "MeanImputer(), or RegressionImputer() where all columns lie around 0."
_CONSTANT = "SimpleImputer(strategy='constant', keep_empty_features=True)."
_RANGES = "smallest and largest values, each of which is one row's"


def _row_wise(counterpart: str = "RowMap", fix: str = "RowMap(function, out_ranges=...).") -> Leak:
    return Leak("none", NOTHING, counterpart, fix)


_CHOICE = _high(
    "which columns were chosen: one row can tip the choice",
    fix="choose columns by public knowledge, in a ColumnTransformer, or SelectKBest(k=...).",
)
_BEST = _high(_CHOICE.leaks, "SelectKBest", "SelectKBest(k=...) of ppdp.transformers.")
_SCORES = _low("a score of each column, kept in scores_; no column is dropped", fix="leave it out: it changes no row.")
_HASH = "HashingVectorizer(n_features=256, norm='l2')"
_COUNTED = _low(
    "in how many rows every word occurs", fix=f"leave it out: {_HASH} has rows of norm 1 and weighs no word."
)
_SHAPES = _high(
    "quantiles, ranges or a shape fitted to the values of columns",
    "GridQuantizer",
    "a public function or public edges: RowMap, GridQuantizer, KBinsDiscretizer(strategy='uniform') with ranges.",
)
_CATEGORIES = _high("which categories occur, also one that a single row has", fix="declare categories=[...].")
_WORDS = _high(
    "every word that occurs, also in one row only",
    "HashingVectorizer",
    f"{_HASH} in its place, also in a ColumnTransformer.",
)
_COMPONENTS = _low("means and directions of most variance", "PCA", "PCA(k), or SoftPCA().")
_CLASSIFIER = _high(_MODEL, "LogisticRegression", "LogisticRegression(classes=...), or LinearSVC(classes=...).")
_LOGISTIC = _high(_MODEL, "LogisticRegression", "LogisticRegression(classes=...).")
_SUPPORT = _high(_MODEL, "LinearSVC", "LinearSVC(classes=...).")
_LEAST_SQUARES = _high(_MODEL, "LinearRegression", "LinearRegression(y_range=...).")
_RIDGE = _high(_MODEL, "Ridge", "Ridge(y_range=...).")


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
_CLASSES: dict[str, Leak | KnownEstimator] = {
    # --- stages that look at no value ---
    "Normalizer Binarizer PolynomialFeatures FunctionTransformer AdditiveChi2Sampler PolynomialCountSketch "
    "SkewedChi2Sampler": _row_wise(),
    "RBFSampler": KnownEstimator(
        _row_wise(),
        otherwise={
            lambda given: given.get("gamma") == "scale": _low(
                "the variance of the columns", "RowMap", "declare gamma as a number."
            )
        },
    ),
    "SparseCoder": Leak(
        "declared",
        "nothing, if its dictionary was not learned from these rows: not checked",
        "RowMap",
        "RowMap(function, out_ranges=...) with a public dictionary.",
    ),
    "GaussianRandomProjection SparseRandomProjection": Leak(
        "none", PROJECTED, "RandomProjection", "RandomProjection(k, seed=0)."
    ),
    "PatchExtractor": _row_wise("", "run it first, outside the pipeline."),
    "FeatureHasher": _row_wise("FeatureHasher", "FeatureHasher(n_features=256)."),
    "HashingVectorizer": _row_wise("HashingVectorizer", "HashingVectorizer(n_features=256)."),
    "FrozenEstimator": _high("whatever it was fitted on", "Public", "Public(transformer) if those were public data."),
    # --- averages of all rows ---
    "StandardScaler": KnownEstimator(
        _low("means and variances of columns", "StandardScaler", "StandardScaler()."),
        harmless=lambda given: not given.get("with_mean") and not given.get("with_std"),
    ),
    "SimpleImputer": KnownEstimator(
        _low("means of columns, and which are empty", "MeanImputer", "MeanImputer()."),
        harmless=lambda given: _constant(given) and given.get("keep_empty_features") is True,
        otherwise={
            _constant: _low("which columns are empty: they are dropped", "RowMap", _CONSTANT),
            lambda given: given.get("strategy") == "most_frequent": _high(
                "most frequent values: one row can decide which they are",
                "CategoryEncoder",
                "text: CategoryEncoder(..., add_indicator=True), where missing values are a category of their own, or "
                "strategy='most_frequent', by noisy counts; numbers: TrimmedMeanImputer().",
            ),
            lambda given: given.get("strategy") != "mean" or bool(given.get("add_indicator")): _high(
                "medians, which are values of single rows, or where values are missing",
                "TrimmedMeanImputer",
                f"TrimmedMeanImputer(), or {_CONSTANT}",
            ),
        },
    ),
    "PCA": KnownEstimator(
        _COMPONENTS,
        otherwise={
            lambda given: not isinstance(given.get("n_components"), Integral | None): _high(
                "how many components are kept: one row can tip the choice; means and directions of most variance",
                "PCA",
                "PCA(k) with a public k, or SoftPCA().",
            )
        },
    ),
    "IncrementalPCA": _COMPONENTS,
    "TruncatedSVD": _low("directions of most variance", "PCA", "PCA(k, with_mean=False), or SoftPCA()."),
    "IterativeImputer": KnownEstimator(
        _low("a regression of every column", "MeanImputer", _AROUND_0),
        otherwise={
            _shows_gaps: _high(
                "which columns have missing values, or values of single rows, besides a regression of every column",
                "MeanImputer",
                _AROUND_0,
            )
        },
    ),
    "FactorAnalysis FastICA NMF MiniBatchNMF SparsePCA MiniBatchSparsePCA DictionaryLearning "
    "MiniBatchDictionaryLearning LatentDirichletAllocation BernoulliRBM": _low(
        "directions that were fitted to all rows", "PCA", "PCA(k), or SoftPCA()."
    ),
    "TfidfTransformer": KnownEstimator(_COUNTED, harmless=lambda given: not given.get("use_idf")),
    "KernelCenterer": _low("means of a kernel's columns", fix=_REMOVE),
    "EmpiricalCovariance ShrunkCovariance LedoitWolf OAS GraphicalLasso": _low(
        "the covariance of the columns", "GaussianMechanism", "GaussianMechanism(query='covariance')."
    ),
    # --- single rows decide ---
    "MinMaxScaler MaxAbsScaler": _high(_RANGES, "MinMaxScaler", "MinMaxScaler(ranges=...) with public ranges."),
    "RobustScaler": KnownEstimator(
        _high(
            "quantiles of columns, which are values of single rows",
            "RobustScaler",
            "StandardScaler() behind public ranges; RobustScaler is rarely affordable.",
        ),
        harmless=lambda given: not given.get("with_centering") and not given.get("with_scaling"),
    ),
    "QuantileTransformer PowerTransformer": replace(_SHAPES, counterpart="QuantileTransformer"),
    "SplineTransformer": KnownEstimator(_SHAPES, harmless=lambda given: not isinstance(given.get("knots"), str | None)),
    "KBinsDiscretizer": _SHAPES,
    "OneHotEncoder OrdinalEncoder": KnownEstimator(_CATEGORIES, harmless=_fixed_categories),
    "LabelEncoder LabelBinarizer": _CATEGORIES,
    "MultiLabelBinarizer": KnownEstimator(_CATEGORIES, harmless=lambda given: given.get("classes") is not None),
    "TargetEncoder": _high(
        "mean labels of categories, also of one with a single row",
        "TargetMeanEncoder",
        "CategoryEncoder(categories, encoding='ordinal') and then TargetMeanEncoder(), or OneHotEncoder.",
    ),
    "CountVectorizer": KnownEstimator(_WORDS, harmless=_fixed_words),
    "TfidfVectorizer": KnownEstimator(
        _WORDS,
        harmless=lambda given: _fixed_words(given) and not given.get("use_idf"),
        otherwise={_fixed_words: _COUNTED},
    ),
    "DictVectorizer": replace(_WORDS, counterpart="FeatureHasher", fix="FeatureHasher(n_features=256) in its place."),
    "KNNImputer": _high(_ROWS, "MeanImputer", _AROUND_0),
    "MissingIndicator": KnownEstimator(
        _high("which columns have missing values: one row decides", fix="MissingIndicator(features='all')."),
        harmless=lambda given: given.get("features") == "all",
    ),
    "SelectKBest": KnownEstimator(_BEST, otherwise={lambda given: given.get("k") == "all": _SCORES}),
    "SelectPercentile": KnownEstimator(_BEST, otherwise={lambda given: given.get("percentile") == 100: _SCORES}),
    "RFE RFECV SelectFromModel SequentialFeatureSelector": _BEST,
    "SelectFdr SelectFpr SelectFwe GenericUnivariateSelect": _CHOICE,
    "VarianceThreshold": replace(_BEST, counterpart="VarianceThreshold", fix="VarianceThreshold of ppdp.transformers."),
    "KernelPCA Nystroem Isomap LocallyLinearEmbedding SpectralEmbedding TSNE MDS ClassicalMDS KNeighborsTransformer "
    "RadiusNeighborsTransformer NearestNeighbors KernelDensity LocalOutlierFactor OneClassSVM": _high(
        _ROWS, "RandomProjection", "RandomProjection(k), or PCA(k)."
    ),
    "PLSRegression": _RIDGE,
    "CCA PLSCanonical PLSSVD NeighborhoodComponentsAnalysis": _high(
        "directions fitted to rows and labels", "PCA", "PCA(k) in front of a private model."
    ),
    "RandomTreesEmbedding": _high("thresholds between values of rows", fix="RandomProjection(k)."),
    "BisectingKMeans KMeans MiniBatchKMeans": _high(
        "where rows lie: a cluster may be one row",
        "KMeans",
        "KMeans(n_clusters) as the last step, ClusterDistances(n_clusters) in front of a model.",
    ),
    "Birch FeatureAgglomeration AffinityPropagation AgglomerativeClustering "
    "DBSCAN HDBSCAN MeanShift OPTICS SpectralClustering SpectralBiclustering SpectralCoclustering GaussianMixture "
    "BayesianGaussianMixture": _high(
        "where rows lie: a cluster may be one row",
        "KMeans",
        "KMeans(n_clusters), which from_sklearn converts, or GridQuantizer(); for groups of columns PCA(k).",
    ),
    "EllipticEnvelope MinCovDet GraphicalLassoCV IsolationForest SGDOneClassSVM": _high(
        "which rows are unusual", fix=_REMOVE
    ),
    # --- models ---
    "GaussianNB": _high(_MODEL, "GaussianNB", "GaussianNB(classes=...)."),
    "LogisticRegression LinearDiscriminantAnalysis": _LOGISTIC,
    "LogisticRegressionCV": _high(
        _MODEL,
        "LogisticRegression",
        "LogisticRegression(classes=...), searched by ppdp.PrivateSearchCV over alpha, which is 1/C.",
    ),
    "LinearSVC SVC NuSVC": _SUPPORT,
    "SGDClassifier RidgeClassifier RidgeClassifierCV Perceptron PassiveAggressiveClassifier": _CLASSIFIER,
    "LinearRegression SGDRegressor HuberRegressor TheilSenRegressor RANSACRegressor": _LEAST_SQUARES,
    "Ridge RidgeCV Lasso LassoCV LassoLars LassoLarsCV LassoLarsIC Lars LarsCV ElasticNet ElasticNetCV BayesianRidge "
    "ARDRegression KernelRidge SVR LinearSVR NuSVR PassiveAggressiveRegressor OrthogonalMatchingPursuit "
    "OrthogonalMatchingPursuitCV MultiTaskElasticNet MultiTaskElasticNetCV MultiTaskLasso MultiTaskLassoCV": _RIDGE,
    "QuantileRegressor": _high(
        _MODEL, "GradientBoostingRegressor", "GradientBoostingRegressor(y_range=..., loss='quantile', quantile=0.5)."
    ),
    **{
        name: _high(_MODEL, name, f"{name}(y_range=...).")
        for name in ("PoissonRegressor", "GammaRegressor", "TweedieRegressor")
    },
    "KNeighborsClassifier RadiusNeighborsClassifier GaussianProcessClassifier LabelPropagation LabelSpreading": _high(
        _ROWS, fix=_NO_CLASSIFIER
    ),
    "KNeighborsRegressor RadiusNeighborsRegressor GaussianProcessRegressor": _high(_ROWS, fix=_NO_REGRESSOR),
    "DecisionTreeClassifier ExtraTreeClassifier ExtraTreesClassifier RandomForestClassifier GradientBoostingClassifier "
    "HistGradientBoostingClassifier": _high(
        _TREES, "GradientBoostingClassifier", "GradientBoostingClassifier(classes=...)."
    ),
    "DecisionTreeRegressor ExtraTreeRegressor ExtraTreesRegressor RandomForestRegressor GradientBoostingRegressor "
    "HistGradientBoostingRegressor": _high(
        _TREES, "GradientBoostingRegressor", "GradientBoostingRegressor(y_range=...)."
    ),
    "AdaBoostClassifier BaggingClassifier": _high(
        _INSIDE, "GradientBoostingClassifier", f"{_FIRST} Such as {_NO_CLASSIFIER}"
    ),
    "AdaBoostRegressor BaggingRegressor": _high(
        _INSIDE, "GradientBoostingRegressor", f"{_ONE} Such as {_NO_REGRESSOR}"
    ),
    "IsotonicRegression": _high(_TREES, fix=_NO_REGRESSOR),
    "BernoulliNB ComplementNB MultinomialNB NearestCentroid QuadraticDiscriminantAnalysis": _LOGISTIC,
    "CategoricalNB": _high(_MODEL, fix="BernoulliNB() behind OneHotEncoder(), which from_sklearn converts."),
    "MLPClassifier": _high(_MODEL, fix=_NO_CLASSIFIER),
    "MLPRegressor": _high(_MODEL, fix=_NO_REGRESSOR),
    "DummyClassifier": _high(
        "shares of labels",
        "GaussianMechanism",
        "shares of labels: GaussianMechanism('mean') behind CategoryEncoder(labels), fitted to y[:, None].",
    ),
    "DummyRegressor": _high(
        "a mean or quantile of the targets",
        "GaussianMechanism",
        "GaussianMechanism('mean') or ExponentialMechanism() behind MinMaxScaler(y_range), fitted to y[:, None].",
    ),
    # --- estimators around estimators ---
    "VotingClassifier": _high(_INSIDE, fix=_VOTES.format("VotingClassifier")),
    "VotingRegressor": _high(_INSIDE, fix=_VOTES.format("VotingRegressor")),
    "ClassifierChain MultiOutputClassifier MultiOutputRegressor RegressorChain": _high(_INSIDE, fix=_EACH),
    "StackingClassifier OneVsOneClassifier OneVsRestClassifier OutputCodeClassifier SelfTrainingClassifier": _high(
        _INSIDE, fix=f"{_FIRST} Such as {_NO_CLASSIFIER}"
    ),
    "StackingRegressor": _high(_INSIDE, fix=f"{_ONE} Such as {_NO_REGRESSOR}"),
    "CalibratedClassifierCV": _high(
        "scores of held-out rows", fix="leave it out, or LogisticRegression(calibration='sigmoid'), by noisy counts."
    ),
    "TunedThresholdClassifierCV": _high(
        "scores of held-out rows", fix="LogisticRegression(threshold='f1'), by noisy counts."
    ),
    "FixedThresholdClassifier": Leak(
        "none", "nothing beyond the model inside", fix="LogisticRegression(threshold=0.3)."
    ),
    "TransformedTargetRegressor": KnownEstimator(
        _high(
            "what its transformer reads off the targets",
            "Ridge",
            "func=np.log1p, inverse_func=np.expm1, which from_sklearn takes; another public f stands in "
            "TransformedTargetRegressor(Pipeline.from_sklearn(its regressor, y_range=(f(low), f(high)), ...), func=f, "
            "inverse_func=..., check_inverse=False).",
        ),
        harmless=lambda given: given.get("transformer") is None and given.get("regressor") is not None,
    ),
    "GridSearchCV RandomizedSearchCV HalvingGridSearchCV HalvingRandomSearchCV": _high(
        "which candidate won, and its scores: both are read off the rows",
        "PrivateSearchCV",
        "ppdp.PrivateSearchCV.from_sklearn(search, ranges=..., classes=...) converts its candidates and charges all; "
        "in place of C they have alpha, which is 1/C.",
    ),
}

KNOWN: dict[str, KnownEstimator] = {
    name: known if isinstance(known, KnownEstimator) else KnownEstimator(known)
    for names, known in _CLASSES.items()
    for name in names.split()
}
"""By name of the class."""

CONTAINERS = {"ColumnTransformer": "transformers", "FeatureUnion": "transformer_list", "Pipeline": "steps"}
"""They only pass rows on to what this parameter holds."""

RESAMPLES = _high(
    "which rows are repeated, made up or dropped: that goes by the counts of labels and by neighbours",
    fix="leave it out; for repeated records put Deduplicator() first.",
)
