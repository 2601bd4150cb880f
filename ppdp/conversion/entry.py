"""The way into a pipeline from an existing one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any

from ppdp.conversion.convert import Facts, convert
from ppdp.domain import Domain, check_domain

__all__ = ["FromSklearn"]


class FromSklearn:
    """Mixin for the pipeline: made from one of scikit-learn."""

    conversion: Any = None
    """What :meth:`from_sklearn` made of each step."""

    @classmethod
    def from_sklearn(
        cls,
        pipe: Any,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        ranges: Any = None,
        max_norm: float | None = None,
        classes: Sequence[Any] | None = None,
        y_range: Sequence[float] | None = None,
        categories: Mapping[Any, Any] | None = None,
        functions: Mapping[str, Any] | None = None,
        domain: Domain | None = None,
        **options: Any,
    ) -> Any:
        """A scikit-learn pipeline with every step replaced by its twin: ``docs/guides/existing-pipelines.md``.

        Only classes and parameters are looked at, never what was fitted. What has no twin is refused, with what to do;
        ``pipe.conversion`` tells what became of each step.

        Parameters
        ----------
        pipe : Pipeline or estimator
            Of scikit-learn or imbalanced-learn.
        epsilon, delta : float, default=1.0 and 1e-6
            As for the class.
        ranges : mapping, pair, or sequence of pairs, optional
            Public (low, high) of the columns that hold numbers.
        max_norm : float, optional
            Public norm of a row, instead of ``ranges``; longer rows are clipped.
        classes : sequence of labels, optional
            Public labels, if the pipeline ends in a classifier.
        y_range : pair, optional
            Public range of the targets, if it ends in a regressor.
        categories : mapping, optional
            Public categories by column, for encoders in a ``ColumnTransformer`` that declare none.
        functions : mapping, optional
            Public range of what a ``FunctionTransformer`` returns, by step.
        domain, **options
            Parameters of the class.

        Raises
        ------
        PpdpError
            Naming the steps that have no twin, or a declared fact that no step asks for, and what to do.
        """
        check_domain(domain)
        facts = Facts(ranges, max_norm, classes, y_range, categories or {}, functions or {}, domain or Domain())
        steps, conversion = convert(pipe, facts, frozenset(signature(cls).parameters))
        kind: Any = cls
        made = kind(steps, epsilon=epsilon, delta=delta, domain=domain, **options)
        made.conversion = conversion
        return made
