"""The mathematics: small pure functions that know nothing of data, budgets or estimators.

Importing this package registers every formula that a certificate may name.
"""

from ppdp.bounds import deduplication, imputation, learning, pca, release, rowwise, scaling
from ppdp.bounds.formula import FORMULAS, Formula, lookup

__all__ = [
    "FORMULAS",
    "Formula",
    "deduplication",
    "imputation",
    "learning",
    "lookup",
    "pca",
    "release",
    "rowwise",
    "scaling",
]
