"""Adapters: what other libraries claim, as targets of the same auditor.

None of these libraries is needed to import ppdp; each is imported where its adapter is used.
"""

from adapters.diffprivlib import diffprivlib_target
from adapters.foreign import ForeignTarget, numbers_of
from adapters.opendp import opendp_pca_target, opendp_target
from adapters.smartnoise import smartnoise_query_target, smartnoise_target

__all__ = [
    "ForeignTarget",
    "diffprivlib_target",
    "numbers_of",
    "opendp_pca_target",
    "opendp_target",
    "smartnoise_query_target",
    "smartnoise_target",
]
