"""Existing scikit-learn pipelines, turned into twins stage by stage."""

from ppdp.conversion.block import Block
from ppdp.conversion.column_map import ColumnMap
from ppdp.conversion.entry import FromSklearn
from ppdp.conversion.report import Conversion, Converted

__all__ = ["Block", "ColumnMap", "Conversion", "Converted", "FromSklearn"]
