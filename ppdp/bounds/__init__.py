"""The mathematics: small pure functions that know nothing of data, budgets or estimators.

Importing this package registers every formula that a certificate may name. They are found by their ids; what else a
module exports is what other modules call.
"""

from ppdp.bounds import (
    clustering,
    coarse_pca,
    deduplication,
    diffprivlib,
    exponential,
    glm,
    imputation,
    laplace,
    learning,
    low_rank,
    low_rank_learning,
    moments,
    order_statistics,
    pca,
    projection,
    queries,
    regression,
    release,
    rowwise,
    sampled_learning,
    scaling,
    selection,
    signs,
    wishart,
)
from ppdp.core.formula import FORMULAS, Formula, lookup

__all__ = [
    "FORMULAS",
    "Formula",
    "clustering",
    "coarse_pca",
    "deduplication",
    "diffprivlib",
    "exponential",
    "glm",
    "imputation",
    "laplace",
    "learning",
    "lookup",
    "low_rank",
    "low_rank_learning",
    "moments",
    "order_statistics",
    "pca",
    "projection",
    "queries",
    "regression",
    "release",
    "rowwise",
    "sampled_learning",
    "scaling",
    "selection",
    "signs",
    "wishart",
]
