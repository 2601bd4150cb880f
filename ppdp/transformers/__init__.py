"""Transformers with a proved bound on how far neighbouring datasets can differ after them."""

from ppdp.core.keywords import answering_all
from ppdp.transformers.columns.category_encoder import CategoryEncoder
from ppdp.transformers.columns.column_selectors import SelectKBest, SelectPercentile, VarianceThreshold
from ppdp.transformers.columns.date_encoder import DateEncoder
from ppdp.transformers.columns.feature_hasher import FeatureHasher
from ppdp.transformers.columns.hashing_vectorizer import HashingVectorizer
from ppdp.transformers.columns.quantile_maps import KBinsDiscretizer, QuantileTransformer, SplineTransformer
from ppdp.transformers.columns.target_mean_encoder import TargetMeanEncoder
from ppdp.transformers.deduplicate.clusters import ClusterDeduplicator, ClusterQuantizer
from ppdp.transformers.deduplicate.deduplicator import Deduplicator
from ppdp.transformers.deduplicate.grid_stages import GridDeduplicator, GridQuantizer
from ppdp.transformers.deduplicate.lsh_deduplicator import LSHDeduplicator
from ppdp.transformers.impute.column_imputers import MeanImputer, MedianImputer, TrimmedMeanImputer
from ppdp.transformers.impute.regression_imputer import RegressionImputer
from ppdp.transformers.project.cluster_distances import ClusterDistances
from ppdp.transformers.project.pca import PCA
from ppdp.transformers.project.random_projection import RandomProjection
from ppdp.transformers.project.soft_pca import SoftPCA
from ppdp.transformers.rowwise.norm_clipper import NormClipper
from ppdp.transformers.rowwise.public import Public
from ppdp.transformers.rowwise.row_map import RowMap
from ppdp.transformers.scale.min_max_scaler import MinMaxScaler
from ppdp.transformers.scale.robust_scaler import RobustScaler
from ppdp.transformers.scale.standard_scaler import StandardScaler

__all__ = [
    "PCA",
    "CategoryEncoder",
    "ClusterDeduplicator",
    "ClusterDistances",
    "ClusterQuantizer",
    "DateEncoder",
    "Deduplicator",
    "FeatureHasher",
    "GridDeduplicator",
    "GridQuantizer",
    "HashingVectorizer",
    "KBinsDiscretizer",
    "LSHDeduplicator",
    "MeanImputer",
    "MedianImputer",
    "MinMaxScaler",
    "NormClipper",
    "Public",
    "QuantileTransformer",
    "RandomProjection",
    "RegressionImputer",
    "RobustScaler",
    "RowMap",
    "SelectKBest",
    "SelectPercentile",
    "SoftPCA",
    "SplineTransformer",
    "StandardScaler",
    "TargetMeanEncoder",
    "TrimmedMeanImputer",
    "VarianceThreshold",
]

answering_all(__name__)
