"""What each class of scikit-learn looks at when it is fitted, and what that tells, in plain words."""

from __future__ import annotations

from ppdp.interop.sklearn.leaks.leak import NOTHING, Leak

__all__ = ["CONTAINERS", "LEAKS", "RESAMPLES"]

_REMOVE = "leave it out; the certificate needs a stage with a known bound."
_MODEL = "the fitted model: whoever holds it can test whether a person was among the rows"
_NO_MODEL = "use one of ppdp.mechanisms: LogisticRegression, LinearSVC, Ridge, PoissonRegressor, ..."
_CHOICE = "which columns were chosen: one row can tip the choice"
_ROWS = "the rows themselves, which are stored in the fitted object"
_SEARCH = "which candidate won, and its scores: both are read off the rows"


def _row_wise(twin: str = "RowMap", fix: str = "RowMap(function, out_ranges=...).") -> Leak:
    return Leak("none", NOTHING, twin, fix)


_FAMILIES: tuple[tuple[str, Leak], ...] = (
    # --- stages that look at no value ---
    ("Normalizer Binarizer PolynomialFeatures", _row_wise()),
    ("FunctionTransformer", _row_wise(fix="RowMap(function, out_ranges=...).")),
    ("AdditiveChi2Sampler PolynomialCountSketch SkewedChi2Sampler RBFSampler", _row_wise()),
    (
        "SparseCoder",
        Leak(
            "declared",
            "nothing, if its dictionary was not learned from these rows: nobody checked",
            "RowMap",
            "RowMap(function, out_ranges=...) with a public dictionary.",
        ),
    ),
    ("GaussianRandomProjection SparseRandomProjection", _row_wise("RandomProjection", "RandomProjection(k, seed=0).")),
    ("FeatureHasher HashingVectorizer PatchExtractor", _row_wise("", "run it first, outside the pipeline.")),
    (
        "FrozenEstimator",
        Leak("high", "whatever it was fitted on", "Public", "Public(transformer) if those were public data."),
    ),
    # --- averages of all rows ---
    ("StandardScaler", Leak("low", "means and variances of columns", "StandardScaler", "StandardScaler().")),
    ("SimpleImputer", Leak("low", "means of columns, and which are empty", "MeanImputer", "MeanImputer().")),
    ("PCA IncrementalPCA", Leak("low", "means and directions of most variance", "PCA", "PCA(k), or SoftPCA().")),
    ("TruncatedSVD", Leak("low", "directions of most variance", "PCA", "PCA(k, center=False), or SoftPCA().")),
    ("IterativeImputer", Leak("low", "a regression of every column", "RegressionImputer", "RegressionImputer().")),
    (
        "FactorAnalysis FastICA NMF MiniBatchNMF SparsePCA MiniBatchSparsePCA DictionaryLearning "
        "MiniBatchDictionaryLearning LatentDirichletAllocation BernoulliRBM",
        Leak("low", "directions that were fitted to all rows", "PCA", "PCA(k), or SoftPCA()."),
    ),
    (
        "TfidfTransformer",
        Leak("low", "in how many rows every word occurs", "", "IDF weights of a public corpus: Public."),
    ),
    ("KernelCenterer", Leak("low", "means of a kernel's columns", "", _REMOVE)),
    (
        "EmpiricalCovariance ShrunkCovariance LedoitWolf OAS GraphicalLasso",
        Leak("low", "the covariance of the columns", "GaussianMechanism", "GaussianMechanism(query='covariance')."),
    ),
    # --- single rows decide ---
    (
        "MinMaxScaler MaxAbsScaler",
        Leak(
            "high",
            "smallest and largest values, each of which is one row's",
            "MinMaxScaler",
            "MinMaxScaler(ranges=...) with public ranges.",
        ),
    ),
    (
        "RobustScaler",
        Leak(
            "high",
            "quantiles of columns, which are values of single rows",
            "RobustScaler",
            "StandardScaler() behind public ranges; RobustScaler is rarely affordable.",
        ),
    ),
    (
        "QuantileTransformer PowerTransformer SplineTransformer KBinsDiscretizer",
        Leak(
            "high",
            "quantiles, ranges or a shape fitted to the values of columns",
            "GridQuantizer",
            "a public function or public edges: RowMap, GridQuantizer, KBinsDiscretizer(strategy='uniform') with "
            "ranges.",
        ),
    ),
    (
        "OneHotEncoder OrdinalEncoder LabelEncoder LabelBinarizer MultiLabelBinarizer",
        Leak("high", "which categories occur, also one that a single row has", "", "declare categories=[...]."),
    ),
    ("TargetEncoder", Leak("high", "mean labels of categories, also of one with a single row", "", "OneHotEncoder.")),
    (
        "CountVectorizer TfidfVectorizer DictVectorizer",
        Leak("high", "every word that occurs, also in one row only", "", "HashingVectorizer, or a public vocabulary."),
    ),
    ("KNNImputer", Leak("high", _ROWS, "MeanImputer", "MeanImputer(), or RegressionImputer().")),
    (
        "MissingIndicator",
        Leak("high", "which columns have gaps: one row with a gap decides", "", "MissingIndicator(features='all')."),
    ),
    (
        "VarianceThreshold SelectKBest SelectPercentile SelectFdr SelectFpr SelectFwe GenericUnivariateSelect "
        "SelectFromModel RFE RFECV SequentialFeatureSelector",
        Leak("high", _CHOICE, "", "choose columns by public knowledge, in a ColumnTransformer."),
    ),
    (
        "KernelPCA Nystroem Isomap LocallyLinearEmbedding SpectralEmbedding TSNE MDS ClassicalMDS "
        "KNeighborsTransformer RadiusNeighborsTransformer NearestNeighbors KernelDensity LocalOutlierFactor "
        "OneClassSVM",
        Leak("high", _ROWS, "RandomProjection", "RandomProjection(k), or PCA(k)."),
    ),
    (
        "CCA PLSCanonical PLSRegression PLSSVD LinearDiscriminantAnalysis NeighborhoodComponentsAnalysis",
        Leak("high", "directions fitted to rows and labels", "PCA", "PCA(k) in front of a private model."),
    ),
    ("RandomTreesEmbedding", Leak("high", "thresholds between values of rows", "", "RandomProjection(k).")),
    (
        "KMeans MiniBatchKMeans BisectingKMeans Birch FeatureAgglomeration AffinityPropagation AgglomerativeClustering "
        "DBSCAN HDBSCAN MeanShift OPTICS SpectralClustering SpectralBiclustering SpectralCoclustering GaussianMixture "
        "BayesianGaussianMixture",
        Leak(
            "high",
            "where rows lie: a cluster may be one row",
            "ClusterQuantizer",
            "ClusterQuantizer(), GridQuantizer().",
        ),
    ),
    (
        "EllipticEnvelope MinCovDet GraphicalLassoCV IsolationForest SGDOneClassSVM",
        Leak("high", "which rows are unusual", "", _REMOVE),
    ),
    # --- models ---
    (
        "LogisticRegression LogisticRegressionCV",
        Leak("high", _MODEL, "LogisticRegression", "LogisticRegression(classes=...)."),
    ),
    ("LinearSVC SVC NuSVC", Leak("high", _MODEL, "LinearSVC", "LinearSVC(classes=...).")),
    (
        "SGDClassifier RidgeClassifier RidgeClassifierCV Perceptron PassiveAggressiveClassifier",
        Leak("high", _MODEL, "LogisticRegression", "LogisticRegression(classes=...), or LinearSVC(classes=...)."),
    ),
    (
        "LinearRegression SGDRegressor HuberRegressor TheilSenRegressor RANSACRegressor",
        Leak("high", _MODEL, "LinearRegression", "LinearRegression(y_range=...)."),
    ),
    (
        "Ridge RidgeCV Lasso LassoCV LassoLars LassoLarsCV LassoLarsIC Lars LarsCV ElasticNet ElasticNetCV "
        "BayesianRidge ARDRegression LinearSVR PassiveAggressiveRegressor OrthogonalMatchingPursuit "
        "OrthogonalMatchingPursuitCV MultiTaskElasticNet MultiTaskElasticNetCV MultiTaskLasso MultiTaskLassoCV "
        "QuantileRegressor",
        Leak("high", _MODEL, "Ridge", "Ridge(y_range=...)."),
    ),
    *(
        (name, Leak("high", _MODEL, name, f"{name}(y_range=...)."))
        for name in ("PoissonRegressor", "GammaRegressor", "TweedieRegressor")
    ),
    (
        "KNeighborsClassifier KNeighborsRegressor RadiusNeighborsClassifier RadiusNeighborsRegressor KernelRidge SVR "
        "NuSVR GaussianProcessClassifier GaussianProcessRegressor LabelPropagation LabelSpreading",
        Leak("high", _ROWS, "", _NO_MODEL),
    ),
    (
        "DecisionTreeClassifier DecisionTreeRegressor ExtraTreeClassifier ExtraTreeRegressor ExtraTreesClassifier "
        "ExtraTreesRegressor RandomForestClassifier RandomForestRegressor GradientBoostingClassifier "
        "GradientBoostingRegressor HistGradientBoostingClassifier HistGradientBoostingRegressor IsotonicRegression",
        Leak("high", "thresholds between values of rows, and leaves that may hold one row", "", _NO_MODEL),
    ),
    (
        "BernoulliNB CategoricalNB ComplementNB GaussianNB MultinomialNB NearestCentroid QuadraticDiscriminantAnalysis "
        "MLPClassifier MLPRegressor",
        Leak("high", _MODEL, "", _NO_MODEL),
    ),
    (
        "DummyClassifier DummyRegressor",
        Leak(
            "high",
            "shares of labels, or a mean or quantile of the targets",
            "GaussianMechanism",
            "GaussianMechanism(query='histogram') or (query='mean').",
        ),
    ),
    # --- estimators around estimators ---
    (
        "AdaBoostClassifier AdaBoostRegressor BaggingClassifier BaggingRegressor StackingClassifier StackingRegressor "
        "VotingClassifier VotingRegressor ClassifierChain RegressorChain MultiOutputClassifier MultiOutputRegressor "
        "OneVsOneClassifier OneVsRestClassifier OutputCodeClassifier SelfTrainingClassifier",
        Leak("high", "every model inside", "", "one of ppdp.mechanisms, which learns several classes by itself."),
    ),
    (
        "CalibratedClassifierCV TunedThresholdClassifierCV",
        Leak("high", "scores of held-out rows", "", "leave it out: LogisticRegression gives probabilities."),
    ),
    (
        "FixedThresholdClassifier",
        Leak("none", "nothing beyond the model inside", "", "apply the threshold afterwards."),
    ),
    (
        "TransformedTargetRegressor",
        Leak(
            "high", "what its transformer reads off the targets", "", "map y by a public function, and declare y_range."
        ),
    ),
    (
        "GridSearchCV RandomizedSearchCV HalvingGridSearchCV HalvingRandomSearchCV",
        Leak("high", _SEARCH, "PrivateSearchCV", "ppdp.PrivateSearchCV, which charges the search."),
    ),
)

LEAKS: dict[str, Leak] = {name: leak for names, leak in _FAMILIES for name in names.split()}

CONTAINERS = {"ColumnTransformer": "transformers", "FeatureUnion": "transformer_list", "Pipeline": "steps"}
"""They only pass rows on to what this parameter holds."""

RESAMPLES = Leak(
    "high",
    "which rows are repeated, made up or dropped: that goes by the counts of labels and by neighbours",
    "",
    "leave it out; for repeated records put Deduplicator() first.",
)
