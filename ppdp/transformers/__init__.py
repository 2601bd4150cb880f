"""Transformers that know how far they push neighbouring datasets apart."""

from ppdp.transformers.cluster_deduplicator import ClusterDeduplicator
from ppdp.transformers.cluster_quantizer import ClusterQuantizer
from ppdp.transformers.deduplicator import Deduplicator
from ppdp.transformers.grid_deduplicator import GridDeduplicator
from ppdp.transformers.grid_quantizer import GridQuantizer
from ppdp.transformers.lsh_deduplicator import LSHDeduplicator
from ppdp.transformers.mean_imputer import MeanImputer
from ppdp.transformers.median_imputer import MedianImputer
from ppdp.transformers.min_max_scaler import MinMaxScaler
from ppdp.transformers.norm_clipper import NormClipper
from ppdp.transformers.pca import PCA
from ppdp.transformers.public import Public
from ppdp.transformers.random_projection import RandomProjection
from ppdp.transformers.regression_imputer import RegressionImputer
from ppdp.transformers.robust_scaler import RobustScaler
from ppdp.transformers.row_map import RowMap
from ppdp.transformers.soft_pca import SoftPCA
from ppdp.transformers.standard_scaler import StandardScaler
from ppdp.transformers.trimmed_mean_imputer import TrimmedMeanImputer

__all__ = [
    "PCA",
    "ClusterDeduplicator",
    "ClusterQuantizer",
    "Deduplicator",
    "GridDeduplicator",
    "GridQuantizer",
    "LSHDeduplicator",
    "MeanImputer",
    "MedianImputer",
    "MinMaxScaler",
    "NormClipper",
    "Public",
    "RandomProjection",
    "RegressionImputer",
    "RobustScaler",
    "RowMap",
    "SoftPCA",
    "StandardScaler",
    "TrimmedMeanImputer",
]
