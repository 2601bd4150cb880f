"""A stage that is fitted outside a pipeline, batch by batch."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from ppdp.core.domain import Domain
from ppdp.data.rows import Array, Rows
from ppdp.data.summary import Extent
from ppdp.exceptions import InvalidInput
from ppdp.transformers.base import Statistics, Transformer
from ppdp.transformers.way import Way


class InBatches(Transformer):
    """A transformer whose exact way needs nothing but sums over rows, which its public ways do not need."""

    adds_up = True
    _batches: tuple[Extent, Array] | tuple[()] | None = None  # of all rows that partial_fit saw; () in a copy

    def _sums(self, rows: Rows, domain: Domain) -> Array:
        """Sums over rows; the facts are those of all rows so far."""
        return np.zeros(0)

    def _of_sums(self, sums: Array, way: Way, domain: Domain) -> Statistics:
        """Statistics of the exact way, from sums over all rows."""
        raise NotImplementedError

    @available_if(lambda self: self.adds_up)
    def partial_fit(self, X: Any, y: Any = None) -> Any:
        """Fit without noise on one more batch: up to rounding, as ``fit`` on all batches since the first together.

        Sums over the private rows are kept from batch to batch, though in no pickle and no copy: those map rows, but
        take no further batch. ``fit`` forgets them and keeps none, so that the next batch is the first. No domain can
        be declared, for what is proved rests on the number of all rows; so nothing is claimed.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows that were in no batch before.
        y : ignored
            Present by convention.

        Raises
        ------
        InvalidInput
            If it is a pickle or a copy of what was fitted in batches.
        """
        earlier = self._batches
        if earlier == ():
            raise InvalidInput(
                "it holds no sums of the rows that it was fitted on, for no pickle and no copy keeps them.",
                stage=type(self).__name__,
                fix="begin with the first batch, on an unfitted copy (sklearn.base.clone).",
            )
        values = self._checked(X, reset=not earlier)
        extent = self._extent(values) if not earlier else earlier[0].plus(self._extent(values))
        domain = self._observed(extent)
        way, sums = self._exact_way(domain), self._sums(Rows.of(values), domain)
        sums = sums if not earlier else earlier[1] + sums
        found = self.prepare(Rows.of(values), way, domain) if way.name == "public" else self._of_sums(sums, way, domain)
        self._settled(found, way, domain, declared=False)
        self._batches = extent, sums
        return self

    def _checked(self, X: Any, *, reset: bool) -> Array:
        if reset:
            self._batches = None
        return super()._checked(X, reset=reset)

    def __getstate__(self) -> Any:
        state = dict(super().__getstate__())
        return state | {"_batches": ()} if self._batches else state
