"""Existing scikit-learn pipelines, turned into twins stage by stage."""

from ppdp.core.keywords import answering_all
from ppdp.interop.sklearn.converter import Conversion, Converted
from ppdp.interop.sklearn.from_sklearn import FromSklearn
from ppdp.transformers.columns.column_group import ColumnGroup
from ppdp.transformers.columns.column_map import ColumnMap

__all__ = ["ColumnGroup", "ColumnMap", "Conversion", "Converted", "FromSklearn"]

answering_all(__name__)
