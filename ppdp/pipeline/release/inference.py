"""What a fit released, as one map of raw rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scipy.sparse import issparse

from ppdp.core.domain import Domain
from ppdp.data import intake as entrance
from ppdp.data.deferred_input import Delivered
from ppdp.data.engine.source import BlockSource
from ppdp.data.frames import in_order
from ppdp.data.rows import Array
from ppdp.exceptions import DomainMismatch
from ppdp.pipeline.release.twins import mapped
from ppdp.pipeline.sparse import check_sparse_twins
from ppdp.transformers.columns.column_map import ColumnMap


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Inference:
    """Released twins as one map of raw rows, each by itself; an engine may run it where the rows are."""

    coded: Callable[[Any], Any]
    facts: Domain
    gaps: bool
    invalid: str
    twins: Sequence[tuple[str, Any]]

    @classmethod
    def of(cls, pipeline: Any, twins: Sequence[tuple[str, Any]]) -> Inference:
        """That of some first twins of a fitted pipeline."""
        facts = Domain(row_norm=pipeline.row_norm_, entry_bound=pipeline.entry_bound_)
        return cls(pipeline.coding or as_it_is, facts, pipeline.fills_gaps, pipeline.invalid, twins)

    def __call__(self, table: Any) -> Array:
        """Rows of an opened table."""
        values = entrance.read_values(self.coded(table), self.invalid)
        values = entrance.repaired_values(values, self.facts, gaps=self.gaps, invalid=self.invalid)
        if issparse(values):
            check_sparse_twins(self.twins, values.shape[1])
        return mapped(self.twins, values)


def columns_of(pipeline: Any, source: BlockSource, other: Sequence[str] = ()) -> tuple[str, ...]:
    """The columns of rows in blocks that a fitted pipeline maps: by name if it knows names, else all but some others.

    :class:`DomainMismatch` if one is absent.
    """
    names = source.schema.names
    known = getattr(pipeline, "feature_names_in_", None)
    wanted = tuple(known) if known is not None else tuple(name for name in names if name not in other)
    times = Counter(names)
    absent = [name for name in (*wanted, *other) if times[name] != 1]
    if absent:
        raise DomainMismatch(
            f"no column, or more than one, is called {', '.join(map(repr, absent))}.",
            fix="a file with the columns of the fit.",
        )
    entrance.check_form(pipeline, Delivered(source, wanted, None), pipeline.coded, reset=False)
    return wanted


def by_names(pipeline: Any, X: Any) -> Any:
    """An opened table with the columns of the fit in their order, where the first step takes them by name."""
    known, first = getattr(pipeline, "feature_names_in_", None), pipeline.twins_[0][1]
    if known is None:
        return X
    names = list(known)
    declared = [getattr(first, parameter, None) for parameter in ("ranges", "categories")]
    if any(isinstance(one, Mapping) and one.keys() == set(names) for one in declared):
        return in_order(X, names, set(names))
    if isinstance(first, ColumnMap) and first.named_columns() is not None:
        return in_order(X, names, {names[i] for _, positions, _ in first.located() for i in positions})
    return X


def as_it_is(X: Any) -> Any:
    """The map that changes nothing."""
    return X
