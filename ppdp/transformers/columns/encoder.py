"""Stages that are one public map of all their columns, and read cells that are no numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ppdp.core.declared import Value
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.names import slips
from ppdp.data.altered import Property
from ppdp.data.categories import Texts, among
from ppdp.data.frames import named, opened
from ppdp.data.rows import Array, Rows
from ppdp.data.units import Columns
from ppdp.exceptions import DomainMismatch, InvalidParameter
from ppdp.transformers.base import RowWiseTransformer, Statistics, hold
from ppdp.transformers.columns.block import Block
from ppdp.transformers.columns.column_map import ColumnMap
from ppdp.transformers.columns.maps import ColumnFacts, PublicMap
from ppdp.transformers.way import Way


class Encoder(RowWiseTransformer):
    """Base of encoders: a subclass gives :meth:`column_maps`, and everything else is that of a :class:`ColumnMap`."""

    bounds_rows = True
    statistic_names = ("names", "norm", "found")

    def column_maps(self, columns: Sequence[Any]) -> tuple[PublicMap, ...]:
        """The public maps that it is for columns of these names, or positions."""
        raise NotImplementedError

    @property
    def reads_cells(self) -> bool:
        """Whether some columns hold no numbers, so that it must come first."""
        return True

    def _as_map(self, names: Sequence[str] | None, count: int) -> ColumnMap:
        return ColumnMap((Block(None, self.column_maps(list(names) if names is not None else list(range(count)))),))

    def ways(self, domain: Domain, distance: Distance) -> tuple[Way, ...]:
        return self._as_map(domain.feature_names, domain.d).ways(domain, distance)

    def alters(self, domain: Domain) -> tuple[Property, ...]:
        return self._as_map(domain.feature_names, domain.d).alters(domain)

    def altered(self, X: Any, domain: Domain) -> Any:
        return self._as_map(domain.feature_names, domain.d).altered(X, domain)

    def prepare(self, rows: Rows, way: Way, domain: Domain) -> Statistics:
        return self.read({}, way, domain)

    def read(self, values: Any, way: Way, domain: Domain) -> Statistics:
        return {"names": domain.feature_names, "norm": way.parameters["row_norm"], "found": values}

    def apply(self, rows: Rows, statistics: Statistics) -> Rows:
        found = statistics.get("found", {})
        return super().apply(among(rows, found) if found else rows, statistics)

    def map_rows(self, X: Array, statistics: Statistics) -> Array:
        made = self._as_map(statistics["names"], X.shape[1])
        return made.map_rows(X, {**statistics, "reach": math.nan})

    def coded(self, X: Any) -> Any:
        """The same table with numbers for what its columns hold; row by row, by public rules.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            Rows as a user has them.
        """
        X = opened(X)
        if getattr(X, "ndim", 0) != 2:
            return X
        return self._as_map(named(X), X.shape[1]).coded_by(getattr(self, "found_", {}), X)

    def located(self) -> list[tuple[Block, list[int], tuple[ColumnFacts, ...]]]:
        """Once fitted: what :meth:`ColumnMap.located` tells."""
        return self._as_map(self.names_, self.n_features_in_).located_in(
            self.names_, self.n_features_in_, math.nan, self.found_
        )

    def units(self, columns: Columns) -> Columns:
        made = self._as_map(self.names_, len(columns.names))
        made.hold({"names": self.names_, "reach": math.nan, "norm": self.norm_, "found": self.found_})
        return made.units(columns)

    def public_units(self, columns: Columns, way: Way, domain: Domain) -> Columns | None:
        """As behind public ways: that categories are released changes the names of theirs only."""
        made: Columns = hold(clone(self), self.read({}, way, domain), domain).units(columns)
        return made

    def learned(self, X: Any) -> tuple[Any, Texts | None]:
        """The same for a fit, with the texts of columns whose categories are to be released; these are private."""
        X = opened(X)
        return self._as_map(named(X), X.shape[1]).learned(X)

    def _checked(self, X: Any, *, reset: bool) -> Array:
        return super()._checked(self.coded(X), reset=reset)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the output columns."""
        given = super().get_feature_names_out(input_features)
        return self._as_map(self.names_, len(given)).names_out(given, math.nan, self.found_)

    def declared(self, domain: Domain) -> tuple[Value, ...]:
        return self._as_map(domain.feature_names, domain.d).declared(domain)


def by_column(given: Any, columns: Sequence[Any], stage: str, parameter: str) -> list[Any]:
    """What a mapping by name or position holds for these columns; every one of them must be there, and no other."""
    if not isinstance(given, Mapping):
        raise InvalidParameter(
            f"{parameter} must be a mapping.", stage=stage, fix=f"{parameter}={{column: ...}}.", parameter=parameter
        )
    unknown = [key for key in given if key not in columns]
    missing = [column for column in columns if column not in given]
    if missing or unknown:
        what = f"lacks the columns {missing}" if missing else f"declares the columns {unknown}, which it does not get"
        raise DomainMismatch(
            f"{parameter} {what}.",
            stage=stage,
            fix=slips(unknown, missing) or "declare every column once, by its name.",
            parameter=parameter,
        )
    return [given[column] for column in columns]
