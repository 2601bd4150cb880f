"""Transformers that know how far they push neighbouring datasets apart."""

from ppdp.transformers.deduplicator import Deduplicator
from ppdp.transformers.mean_imputer import MeanImputer
from ppdp.transformers.min_max_scaler import MinMaxScaler
from ppdp.transformers.norm_clipper import NormClipper
from ppdp.transformers.pca import PCA
from ppdp.transformers.row_map import RowMap
from ppdp.transformers.standard_scaler import StandardScaler

__all__ = ["PCA", "Deduplicator", "MeanImputer", "MinMaxScaler", "NormClipper", "RowMap", "StandardScaler"]
