"""Checks for authors of stages and mechanisms, the registry of examples, and neighbouring datasets to try on them."""

from __future__ import annotations

from typing import Any

import ppdp.mechanisms
import ppdp.transformers
from ppdp.core.keywords import answering_all
from ppdp.core.names import is_again
from ppdp.exceptions import InvalidParameter
from ppdp.testing.mechanisms import check_mechanism
from ppdp.testing.stages import check_stage

__all__ = ["REGISTRY", "check_mechanism", "check_stage", "examples", "register"]

REGISTRY: dict[str, type[Any]] = {
    name: getattr(module, name) for module in (ppdp.transformers, ppdp.mechanisms) for name in module.__all__
}
"""Stages and mechanisms that contract tests check, by name."""


def register(kind: type[Any]) -> type[Any]:
    """Add a class of your own to what the contract tests run on; usable as a decorator.

    Parameters
    ----------
    kind : type
        A stage or mechanism with a class method ``example()``.

    Raises
    ------
    InvalidParameter
        If another class has this name.
    """
    known = REGISTRY.get(kind.__name__, kind)
    if known is not kind and not is_again(kind, known):
        what = f"{kind.__name__} is registered already, of {known.__module__}."
        raise InvalidParameter(what, fix="another name: certificates name classes by it.")
    REGISTRY[kind.__name__] = kind
    return kind


def examples() -> list[Any]:
    """One working instance of every registered class, and pipelines of them."""
    from ppdp.pipeline.pipeline import make_pipeline
    from ppdp.transformers.columns.column_transformer import ColumnTransformer

    stages = ppdp.transformers.NormClipper(), ppdp.transformers.Deduplicator()
    return [
        *(kind.example() for kind in REGISTRY.values()),
        make_pipeline(*stages, ppdp.mechanisms.LogisticRegression(), epsilon=20.0, delta=1e-3),
        make_pipeline(
            ColumnTransformer.example(),
            ppdp.transformers.PCA(n_components=1, fit_mode="noisy"),
            epsilon=20.0,
            delta=1e-3,
        ),
    ]


answering_all(__name__)
