"""Stages that look at labels, outside a pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from sklearn.utils.multiclass import type_of_target

from ppdp.core.domain import Domain
from ppdp.data.frames import readable
from ppdp.data.rows import Rows, encode_alone
from ppdp.data.validation import validated
from ppdp.exceptions import InvalidInput
from ppdp.transformers.base import Transformer
from ppdp.transformers.fit_mode import FitMode


class LabelledTransformer(Transformer):
    """A stage with one way, from a statistic of rows and labels that is released.

    Subclasses give :meth:`exact` beside what a :class:`Transformer` has.
    """

    needs_y = True
    chooses = False  # there is one way

    def exact(self, rows: Rows, way: FitMode, domain: Domain) -> Any:
        """What :meth:`~ppdp.transformers.base.Stage.read` takes, without noise."""
        raise NotImplementedError

    def instead(self) -> Iterator[tuple[str, Any]]:
        yield from ()

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit without noise.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels or targets.
        """
        name = type(self).__name__
        if y is None:
            raise InvalidInput(f"This {name} estimator requires y to be passed, but the target y is None.")
        finite = "allow-nan" if self.allows_gaps else True
        X, y = validated(self, readable(X), y, dtype=np.float64, ensure_all_finite=finite)
        facts = self._observed_domain(self._extent(X))
        facts, codes = encode_alone(facts, y, name, targets=type_of_target(y).startswith("continuous"))
        (way,) = self.fit_modes(facts, facts.neighbours)
        self._hold_standalone(self.read(self.exact(Rows.of(X, codes), way, facts), way, facts), way)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit without noise, and map the same rows; takes and raises what :meth:`fit` does."""
        return self.fit(X, y).transform(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
