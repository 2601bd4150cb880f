"""What models of public classes have in common, and what those of targets in a public range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.core.declared import Value, plain
from ppdp.core.domain import Domain
from ppdp.data.rows import Array
from ppdp.data.weights import class_factors
from ppdp.mechanisms.base import QuerySpec, SharedDocstring


@dataclass(eq=False, repr=False)
class ClassModel(SharedDocstring):
    """Mixin for models of public classes; it stands before the others among the bases.

    Parameters
    ----------
    classes : sequence of labels, optional
        The public labels, two or more. If absent they are read from ``y``, and a pipeline's certificate is conditional.
    class_weight : dict, "balanced" or None, default=None
        Public weights of declared classes, by label, of which those that are not named weigh 1; or weights
        ``n / (n_classes * count)`` by numbers of rows of each class, whatever they weigh (as in scikit-learn before
        1.7), that are released with noise for 1.5 % of mu².
        Weights are divided by the largest, so noise beside a class of weight w is as many times larger as the largest
        is (``docs/theory/noisy-gradient-descent.md``).

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    """

    classes: Sequence[Any] | None = None
    _: KW_ONLY
    class_weight: Mapping[Any, float] | str | None = None

    @property
    def balances(self) -> bool:
        return isinstance(self.class_weight, str) and self.class_weight == "balanced"

    def _factors(self: Any, domain: Domain) -> tuple[tuple[float, ...], float]:
        """As what parts of the largest weight losses of each class count, empty if all weigh the same; and that."""
        if self.class_weight is None:
            return (), 1.0
        classes = domain.require("classes", type(self).__name__) if self.classes is None else self.classes
        return ((), 1.0) if self.balances else class_factors(self.class_weight, classes, type(self).__name__)

    def declared(self, domain: Domain) -> tuple[Value, ...]:
        values: tuple[Value, ...] = super().declared(domain)  # type: ignore[misc]
        if self.balances:
            return *values, ("weights of classes", "balanced, by released numbers of their rows", "declared")
        weights: Any = self.class_weight or {}
        return *values, *(
            (f"weight of class {label!r}", plain(weight), "declared") for label, weight in weights.items()
        )

    def read(self, released: Mapping[str, Array], domain: Domain, question: QuerySpec) -> None:
        self.classes_ = np.asarray(domain.require("classes", type(self).__name__))
        super().read(released, domain, question)  # type: ignore[misc]

    def _predicted(self, scores: Array) -> NDArray[Any]:
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[codes])

    def steady_scores(self, X: Array) -> Array:
        """What :meth:`decision_function` gives, to the same bits wherever a row stands."""
        raise NotImplementedError

    def steady_labels(self, X: Array) -> NDArray[Any]:
        """What ``predict`` gives, by bits that follow from a row alone."""
        return self._predicted(self.steady_scores(X))

    def decision_function(self: Any, X: Any) -> Array:
        """Score of the second class, larger than 0 where it is predicted, or of every class if there are several.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        """
        return np.asarray(self._scores(X))


Pair = tuple[float, float]


@dataclass(eq=False, repr=False)
class TargetModel(SharedDocstring):
    """Mixin for models of targets in a public range; it stands before the others among the bases.

    Parameters
    ----------
    y_range : tuple of two floats, optional
        Public range of the targets, here or in the pipeline's domain; targets outside are clipped.

    Attributes
    ----------
    y_range_ : tuple of two floats
        Range of the targets, in which all predictions lie.
    """

    y_range: Sequence[float] | None = None

    def read(self, released: Mapping[str, Array], domain: Domain, question: QuerySpec) -> None:
        super().read(released, domain, question)  # type: ignore[misc]
        low, high = question.parameters["y_range"]
        self.y_range_ = float(low), float(high)

    def _learned(self, y_range: Pair) -> Pair:
        """The range of what is learned: that of the targets."""
        return y_range

    @property
    def learned_range_(self) -> Pair:
        """Range of what is learned of the targets: ``y_range_``, or that of a function of them."""
        return self._learned(self.y_range_)

    def _predicted(self, scores: Array) -> NDArray[Any]:
        return np.clip(scores, *self.y_range_)
