"""The mathematics: small pure functions that know nothing of data, budgets or estimators.

Importing this package registers every formula that a certificate may name.
"""

from ppdp.bounds import (
    clustering,
    deduplication,
    diffprivlib,
    exponential,
    glm,
    imputation,
    laplace,
    learning,
    minimiser,
    order_statistics,
    pca,
    projection,
    quantization,
    queries,
    regression,
    release,
    rowwise,
    sampled_learning,
    scaling,
    selection,
    soft_pca,
    trimmed_mean,
)
from ppdp.core.formula import FORMULAS, Formula, lookup

__all__ = [
    "FORMULAS",
    "Formula",
    "clustering",
    "deduplication",
    "diffprivlib",
    "exponential",
    "glm",
    "imputation",
    "laplace",
    "learning",
    "lookup",
    "minimiser",
    "order_statistics",
    "pca",
    "projection",
    "quantization",
    "queries",
    "regression",
    "release",
    "rowwise",
    "sampled_learning",
    "scaling",
    "selection",
    "soft_pca",
    "trimmed_mean",
]
