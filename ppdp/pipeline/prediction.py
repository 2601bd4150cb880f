"""What a fitted pipeline does with new rows: with an array at once, with files block by block."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from ppdp.bounds.release import CLIPPED, TINY, UNLISTED
from ppdp.certificate.altered import CLEAR, HALF, NEARLY_ALL, TENTH
from ppdp.core.boundary import outside
from ppdp.core.domain import Domain
from ppdp.data import validation
from ppdp.data.altered import Property
from ppdp.data.deferred_input import DeferredTable
from ppdp.data.engine.registry import opened_source
from ppdp.data.engine.source import BlockSource
from ppdp.data.frames import in_order, opened
from ppdp.data.rows import Array
from ppdp.data.weights import plain, warn_of_order, warn_of_others
from ppdp.exceptions import CertificateError, DiagnosticWarning, DomainMismatch, InvalidInput, UnsupportedOrder
from ppdp.mechanisms.base import Mechanism
from ppdp.pipeline.input_checks import check_sparse_twins
from ppdp.pipeline.release.step_serialization import mapped
from ppdp.pipeline.steps import Named, any_fills_gaps, as_it_is, as_texts, coding_of, reading_of, takes_texts
from ppdp.transformers.columns.column_map import ColumnMap
from ppdp.transformers.columns.column_stage import ColumnStage
from ppdp.transformers.impute.column_imputers import ColumnImputer
from ppdp.transformers.scale.min_max_scaler import MinMaxScaler
from ppdp.transformers.scale.standard_scaler import StandardScaler
from ppdp.transformers.stage import Stage

Then = Callable[[Array], Any]

_ENOUGH = 2**12  # rows of a block that are looked at, evenly
_WIDE = 1000  # columns of a table, beyond which nobody reads a line for each, and to look takes longer than to predict
_FAR, _DEVIATIONS = "far", 3.0  # from the released mean: of the rows of a fit never more than a ninth
_TOLD = {
    UNLISTED: (
        "of no declared category, and count as others",
        "spell them as the declared categories are, with their blanks and capitals.",
    ),
    CLIPPED: (
        "outside of its public range, {}, and are clipped to it",
        "the unit of that range, or gaps (NaN) in place of a code such as -999.",
    ),
    TINY: ("not 0 but closer to 0 than a fiftieth of its public range, {}", "the unit of that range."),
    _FAR: (
        f"more than {_DEVIATIONS:g} released standard deviations from the mean of the fit",
        "columns in the order of the fit, and in its units.",
    ),
}


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class ReleasedMap:
    """Released twins as one map of raw rows, each by itself; an engine may run it where the rows are."""

    read: Callable[[Any], tuple[Any, Any]]
    facts: Domain
    gaps: bool
    invalid: str
    twins: Sequence[Named]
    seen: Callable[[Any], None] | None = None  # what looks at rows as they were read

    def __call__(self, table: Any) -> Array:
        """Rows of an opened table."""
        table, texts = self.read(table)
        values = validation.read_values(table, self.invalid)
        values = validation.repaired_values(values, self.facts, gaps=self.gaps, invalid=self.invalid)
        if issparse(values):
            check_sparse_twins(self.twins, values.shape[1])
        if self.seen is not None:
            self.seen(values)
        return mapped(self.twins, values, texts)


class NewRows:
    """How many values of new rows the first step takes for others, or clips, and what is said of that.

    They are the user's own, and what is known of those of the fit was released: a column is named where more than half
    of its values, or clearly more than in the fit, are of no category or outside of its range, or nearly all tiny; or
    most of them far from the mean that a scaler behind ranges and imputers has, unless the plan warned of its noise.
    """

    def __init__(self, twins: Sequence[Any], domain: Domain, shares: Mapping[Property, float], drowned: bool) -> None:
        self.domain, self.shares = domain, shares
        # A deduplicator leaves rows as they come.
        stages = [one for one in twins if isinstance(one, Stage) and not (one.compares and one.keeps_units)]
        self.first: Any = next(iter(stages), None)
        self.properties: Sequence[Property] = stages[0].alters(domain) if stages and domain.d <= _WIDE else ()
        by_itself = MinMaxScaler, ColumnImputer, ColumnMap
        at = next((i for i, one in enumerate(stages) if not isinstance(one, by_itself) or takes_texts(one)), 0)
        self.front: list[Any] = []
        if at and self.properties and not drowned and isinstance(stages[at], StandardScaler) and stages[at].with_mean:
            self.front = stages[: at + 1]
            names = domain.feature_names or tuple(f"column {i}" for i in range(domain.d))
            names = tuple(self.first.get_feature_names_out()) if isinstance(self.first, ColumnMap) else names
            self.properties = [*self.properties, *(Property(_FAR, name) for name in names)]
        self.counted: list[tuple[int, Array]] = []

    def __call__(self, values: Any) -> None:
        """Look at rows as they were read."""
        if self.properties and values.shape[0]:
            values = values[:: -(-values.shape[0] // _ENOUGH)]
            found = np.asarray(self.first.altered(values, self.domain).sum(axis=0), dtype=np.float64).ravel()
            if self.front:
                *before, scaler = self.front
                away = np.abs(mapped([("", one) for one in before], values) - scaler.mean_)
                found = np.append(found, (away > _DEVIATIONS * scaler.scale_).sum(axis=0))
            self.counted.append((values.shape[0], found))

    def warn(self) -> None:
        """Warn of what was seen, once for each column."""
        n, found = sum(n for n, _ in self.counted), sum(found for _, found in self.counted)
        told_of = set()
        for one, share in zip(self.properties, np.divide(found, n).tolist()) if n else ():
            if one.kind in _TOLD and self._many(one, share, n) and (one.kind != _FAR or one.column not in told_of):
                told_of.add(one.column)
                told, fix = _TOLD[one.kind]
                told = f"{share:.0%} of the values of {one.column!r} are {told.format(self._range(one.column))}"
                warnings.warn(f"{told}. Fix: {fix}", DiagnosticWarning, stacklevel=outside())

    def _many(self, one: Property, share: float, n: int) -> bool:
        """Whether so many values are plainly more than a few, and than in the fit."""
        slip = one.kind == UNLISTED  # by which a single value may be told, where one outside of a range is none
        sure = share - CLEAR * math.sqrt(share * (1 - share) / n if slip else 1 / (4 * n))
        usual = self.shares.get(one, self.shares.get(Property(one.kind), 1.0))
        if one.kind == TINY:
            return share > NEARLY_ALL and sure > max(HALF, usual + TENTH)
        most = share > HALF if slip else sure > HALF and one not in self.shares
        return most or sure > TENTH + max(usual, 0.0)

    def _range(self, column: str | None) -> str:
        """The public range of a column, as the certificate writes it."""
        known = {name: value for name, value, _ in self.first.declared(self.domain)}
        return known.get(f"range of {column}") or known.get("range of every column") or "it"


class Predictor:
    """The released twins of a pipeline that is fitted, loaded or a slice of one, and the columns that they take."""

    def __init__(self, estimator: Any, *, private: bool = False) -> None:
        """``private`` rows are not looked at: what is said of them would be exact."""
        check_is_fitted(estimator)
        self.estimator, self.twins = estimator, list(estimator.twins_)
        self.last = self.twins[-1][1]
        self.coded = coding_of(self.twins[0][1])
        self.columns: tuple[Any, ...] | None = None
        if hasattr(estimator, "feature_names_in_"):
            self.columns = tuple(estimator.feature_names_in_)
        self.facts = Domain(row_norm=estimator.row_norm_, entry_bound=estimator.entry_bound_)
        domain = replace(self.facts, n_features=estimator.n_features_in_, feature_names=self.columns)
        self.new_rows = NewRows([] if private else [twin for _, twin in self.twins], domain, *self._usual())

    @property
    def fills_gaps(self) -> bool:
        """Whether rows may have gaps, which some step fills."""
        return getattr(self.estimator, "gaps_", False) or any_fills_gaps(self.twins)

    def map_of(self, method: str, *, local: bool) -> tuple[ReleasedMap, Then | None]:
        """The twins that make values of raw rows, and what makes the answer of these; ``local`` rows are looked at."""
        if method == "transform":
            return self._map(self.twins, local=local), None
        return self._map(self.twins[:-1], local=local), getattr(self.last, method)

    def _map(self, twins: Sequence[Named], *, local: bool = True) -> ReleasedMap:
        reading, seen = reading_of(self.twins[0][1]), self.new_rows if local else None
        return ReleasedMap(reading, self.facts, self.fills_gaps, self.estimator.on_invalid, twins, seen)

    def _usual(self) -> tuple[dict[Property, float], bool]:
        """The largest share of its rows that a fit may have had of each property that was counted, and whether its plan
        warned of noise.
        """
        with suppress(AttributeError, CertificateError):  # a rehearsal has none
            record, shares = self.estimator.certificate_.record, {}
            if found := record.diagnostics:
                error = CLEAR * found.error
                shares = {Property(one.kind, one.column): one.share + error for one in found.shares}
            return shares, bool(record.warnings)
        return {}, True

    def mapped(self, X: Any, then: Then = as_it_is, *, whole: bool = False) -> Any:
        """Raw rows through the twins of all stages before the last step, or of all, and what is to be done then."""
        twins, X = self.twins if whole else self.twins[:-1], as_texts(self.twins[0][1], X)
        source = opened_source(X)
        if source is not None:
            with source:
                return self._in_blocks(source, self._map(twins, local=source.local), then)
        X = self._in_order(validation.table_of(X, texts=takes_texts(self.twins[0][1]), names=self.columns))
        validation.check_form(self.estimator, X, self.coded, reset=False)
        answer = then(self._map(twins)(X))
        self.new_rows.warn()
        return answer

    def _in_blocks(self, source: BlockSource, row_map: ReleasedMap, then: Then) -> Any:
        if then is as_it_is and not source.local:
            raise InvalidInput("mapped rows would leave the workers that hold them.", fix="files, without this engine.")
        names = self.columns_of(source)
        task = partial(_numbered, row_map, then, list(names))
        blocks = sorted(source.over(task, names, len(names)), key=lambda block: block[0])
        self.new_rows.warn()
        return np.concatenate([block for _, block in blocks])

    def columns_of(self, source: BlockSource, other: Sequence[str] = ()) -> tuple[str, ...]:
        """Columns of rows in blocks: by name if names are known, else all but some; each must be there once."""
        names = source.schema.names
        wanted = self.columns or tuple(name for name in names if name not in other)
        times = Counter(names)
        absent = [name for name in (*wanted, *other) if times[name] != 1]
        if absent:
            what = f"no column, or more than one, is called {', '.join(map(repr, absent))}."
            raise DomainMismatch(what, fix="a file with the columns of the fit.")
        validation.check_form(self.estimator, DeferredTable(source, wanted, None), self.coded, reset=False)
        return wanted

    def _in_order(self, X: Any) -> Any:
        """An opened table with the columns of the fit in their order, where the first step takes them by name."""
        if self.columns is None:
            return X
        names, first = list(self.columns), self.twins[0][1]
        declared = [getattr(first, parameter, None) for parameter in ("ranges", "categories")]
        if any(isinstance(one, Mapping) and one.keys() == set(names) for one in declared):
            return in_order(X, names, set(names))
        if isinstance(first, ColumnMap) and first.named_columns() is not None:
            return in_order(X, names, {names[i] for _, positions, _ in first.located() for i in positions})
        return X

    def answer(self, method: str, X: Any, *y: Any) -> Any:
        """What a method of the model gives for new rows, and their labels if it compares these."""
        X = as_texts(self.twins[0][1], X)
        if y and opened_source(X) is not None:
            what = "score takes rows in memory, and these are read in blocks."
            raise InvalidInput(what, fix="predict, and a metric of scikit-learn with the column of labels.")
        if y:
            warn_of_order(X, "error", {"y": y[0]})
        y = tuple(plain(validation.check_labels(X, labels, self.estimator)) for labels in y)
        if y and hasattr(self.estimator, "classes_"):
            warn_of_others(y[0], self.estimator.classes_)
        return self.mapped(X, partial(_answered, getattr(self.last, method), y))

    def transform(self, X: Any) -> Any:
        """New rows through all twins."""
        if len(self.twins) == 1 and isinstance(self.last, ColumnStage):  # cells are read once, as at the entrance
            values = self.mapped(X, whole=True)
            last: Any = copy(self.last)
            last.rows_of = lambda _: values
            return last.transform(X)
        values, last = self.mapped(X), self.last
        if hasattr(last, "feature_names_in_"):
            import pandas as pd

            index = X.index if isinstance(X, pd.DataFrame) else None
            return last.transform(pd.DataFrame(values, columns=last.feature_names_in_, index=index))
        return last.transform(values)

    def names_out(self, input_features: Any) -> NDArray[np.object_]:
        """Names of the columns that come out."""
        names = input_features
        for _, twin in self.twins:
            if hasattr(twin, "get_feature_names_out") and hasattr(twin, "n_features_in_"):
                names = twin.get_feature_names_out(names)
        return np.asarray(names, dtype=object)

    def queries(self, X: Any) -> Array:
        """New rows as they come to the mechanism, for comparison with released ones."""
        *stages, (name, last) = self.twins
        if not isinstance(last, Mechanism):
            raise UnsupportedOrder("there is no mechanism to project for.", stage=name, fix="use transform.")
        for name, stage in stages:
            if hasattr(stage, "map_rows") and not stage.__sklearn_is_fitted__():
                what = "it was fitted on the private rows and nothing was released, so new rows cannot be mapped."
                raise UnsupportedOrder(what, stage=name, fix="fit_mode='noisy', or a stage with public parameters.")
        return last.queries(self.mapped(X))


def _answered(method: Callable[..., Any], y: Sequence[Any], values: Array) -> Any:
    try:
        return method(values, *y)
    except (TypeError, ValueError, OverflowError):  # whose words may quote a label
        if not y:
            raise
    raise InvalidInput("y cannot be compared with predictions.", fix="y as in the fit, without missing values.")


def _numbered(row_map: ReleasedMap, then: Then, names: list[str], first: int, table: Any) -> Any:
    return first, then(row_map(opened(table.select(names))))
