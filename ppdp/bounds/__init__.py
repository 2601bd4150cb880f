"""The mathematics: small pure functions that know nothing of data, budgets or estimators.

Importing this package registers every formula that a certificate may name; they are found by their ids.
"""

from ppdp.bounds import (  # noqa: F401  each registers its own
    altered,
    coarse_pca,
    columns,
    deduplication,
    diffprivlib,
    exponential,
    imputation,
    laplace,
    learning,
    low_rank,
    moments,
    newton,
    order_statistics,
    pca,
    projection,
    queries,
    release,
    rowwise,
    sampled_learning,
    scaling,
    selection,
    signs,
    sketch,
)
from ppdp.core.formula import FORMULAS, Formula, lookup
from ppdp.core.keywords import answering_all

__all__ = ["FORMULAS", "Formula", "lookup"]

answering_all(__name__)
