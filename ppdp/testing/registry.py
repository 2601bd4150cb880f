"""Every stage and mechanism, for contract tests and for people who add their own."""

from __future__ import annotations

from typing import Any

from ppdp import mechanisms, transformers

__all__ = ["REGISTRY", "examples", "register"]

REGISTRY: dict[str, type[Any]] = {
    name: getattr(module, name) for module in (transformers, mechanisms) for name in module.__all__
}


def register(kind: type[Any]) -> type[Any]:
    """Add a class of your own to what the contract tests run on; usable as a decorator.

    Parameters
    ----------
    kind : type
        A stage or mechanism with a class method ``example()``.
    """
    REGISTRY[kind.__name__] = kind
    return kind


def examples() -> list[Any]:
    """One working instance of every registered class, and pipelines of them."""
    from ppdp.pipeline.pipeline import make_pipeline

    stages = transformers.NormClipper(), transformers.Deduplicator()
    return [
        *(kind.example() for kind in REGISTRY.values()),
        make_pipeline(*stages, mechanisms.LogisticRegression(), epsilon=20.0, delta=1e-3),
        make_pipeline(*stages, transformers.PCA(n_components=1, statistics="noisy"), epsilon=20.0, delta=1e-3),
    ]
