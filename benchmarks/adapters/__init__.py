"""Adapters: what other libraries claim, as targets of the same auditor.

None of these libraries is needed to import ppdp; each is imported where its adapter is used.
"""

from adapters.diffprivlib import diffprivlib_target
from adapters.opendp import opendp_pca_target, opendp_target
from adapters.smartnoise import smartnoise_query_target, smartnoise_target

__all__ = [
    "diffprivlib_target",
    "opendp_pca_target",
    "opendp_target",
    "smartnoise_query_target",
    "smartnoise_target",
]
