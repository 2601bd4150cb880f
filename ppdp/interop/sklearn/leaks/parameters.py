"""Parameters with which a class of scikit-learn looks at less, or at more, than usual."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Integral
from typing import Any

from ppdp.interop.sklearn.leaks.classes import LEAKS
from ppdp.interop.sklearn.leaks.leak import NOTHING, Leak

__all__ = ["by_parameters"]

Given = Mapping[str, Any]


def _fixed_categories(given: Given) -> bool:
    rare = given.get("min_frequency") is None and given.get("max_categories") is None
    return rare and not isinstance(given.get("categories"), str | None)


def _fixed_words(given: Given) -> bool:
    return given.get("vocabulary") is not None


_HARMLESS: dict[str, Callable[[Given], bool]] = {
    "SimpleImputer": lambda given: (
        given.get("strategy") == "constant"
        and not given.get("add_indicator")
        and given.get("keep_empty_features") is True
    ),
    "StandardScaler": lambda given: not given.get("with_mean") and not given.get("with_std"),
    "RobustScaler": lambda given: not given.get("with_centering") and not given.get("with_scaling"),
    "OneHotEncoder": _fixed_categories,
    "OrdinalEncoder": _fixed_categories,
    "MissingIndicator": lambda given: given.get("features") == "all",
    "CountVectorizer": _fixed_words,
    "TfidfVectorizer": lambda given: _fixed_words(given) and not given.get("use_idf"),
    "TfidfTransformer": lambda given: not given.get("use_idf"),
    "MultiLabelBinarizer": lambda given: given.get("classes") is not None,
    "SplineTransformer": lambda given: not isinstance(given.get("knots"), str | None),
    "TransformedTargetRegressor": lambda given: given.get("transformer") is None and given.get("regressor") is not None,
}
"""Parameters with which a class that usually looks at values does not."""

_SCORES = Leak(
    "low", "a score of each column, kept in scores_; no column is dropped", "", "leave it out: it changes no row."
)
_OTHERWISE: dict[str, tuple[tuple[Callable[[Given], bool], Leak], ...]] = {
    "SimpleImputer": (
        (
            lambda given: given.get("strategy") == "constant" and not given.get("add_indicator"),
            Leak(
                "low",
                "which columns are empty: they are dropped",
                "RowMap",
                "SimpleImputer(strategy='constant', keep_empty_features=True).",
            ),
        ),
        (
            lambda given: given.get("strategy") != "mean" or bool(given.get("add_indicator")),
            Leak(
                "high",
                "medians or most frequent values, which are values of single rows, or which columns have gaps",
                "TrimmedMeanImputer",
                "TrimmedMeanImputer(), or SimpleImputer(strategy='constant', keep_empty_features=True).",
            ),
        ),
    ),
    "IterativeImputer": (
        (
            lambda given: bool(given.get("add_indicator")) or given.get("initial_strategy") not in ("mean", "constant"),
            Leak(
                "high",
                "which columns have gaps, or values of single rows, besides a regression of every column",
                "RegressionImputer",
                "RegressionImputer().",
            ),
        ),
    ),
    "PCA": (
        (
            lambda given: not isinstance(given.get("n_components"), Integral | None),
            Leak(
                "high",
                "how many components are kept: one row can tip the choice; means and directions of most variance",
                "PCA",
                "PCA(k) with a public k, or SoftPCA().",
            ),
        ),
    ),
    "RBFSampler": (
        (
            lambda given: given.get("gamma") == "scale",
            Leak("low", "the variance of the columns", "RowMap", "declare gamma as a number."),
        ),
    ),
    "TfidfVectorizer": ((_fixed_words, LEAKS["TfidfTransformer"]),),
    "SelectKBest": ((lambda given: given.get("k") == "all", _SCORES),),
    "SelectPercentile": ((lambda given: given.get("percentile") == 100, _SCORES),),
}
"""Parameters with which a class looks at something else than usual."""


def by_parameters(name: str, given: Given) -> Leak:
    """What is known of a class of scikit-learn with these parameters.

    Parameters
    ----------
    name : str
        Of a class in ``LEAKS``.
    given : mapping of str to object
        Its parameters.
    """
    if name in _HARMLESS and _HARMLESS[name](given):
        return replace(LEAKS[name], severity="none", leaks=NOTHING)
    return next((leak for holds, leak in _OTHERWISE.get(name, ()) if holds(given)), LEAKS[name])
