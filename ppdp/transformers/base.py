"""Stages that map rows one by one, and how they are fitted outside a pipeline, as scikit-learn's transformers are."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from ppdp.core.checks import choice
from ppdp.core.domain import Domain
from ppdp.core.keywords import unwritten
from ppdp.core.names import shipped
from ppdp.data.frames import arrow_table, readable
from ppdp.data.parallel import PIECE, blocks, in_parallel, pieces
from ppdp.data.rows import Array, Rows, encode_alone
from ppdp.data.summary import Extent
from ppdp.data.validation import validated
from ppdp.exceptions import InvalidInput, MissingBudget
from ppdp.transformers.fit_mode import FitMode
from ppdp.transformers.stage import Stage as Stage
from ppdp.transformers.stage import Statistics as Statistics
from ppdp.transformers.stage import hold as hold


class Transformer(OneToOneFeatureMixin, TransformerMixin, Stage):
    """A stage that maps rows one by one once its statistics are known.

    Subclasses give :meth:`~Stage.fit_modes`, :meth:`map_rows` and, if it needs any statistics, their names with
    :meth:`~Stage.prepare` (exact and public modes) or :meth:`~Stage.read` (noisy modes).

    Fitted outside a pipeline, it is an ordinary scikit-learn transformer: statistics are exact and are *private
    data*, bounds on rows are read off ``X``, and no certificate covers any of it.

    Attributes
    ----------
    statistic_names : tuple of str
        Of what :meth:`map_rows` gets; each becomes a fitted attribute with ``_`` behind it.
    adds_up : bool
        Whether its exact mode needs nothing but sums over rows, so that it has :meth:`partial_fit`.
    """

    statistic_names: tuple[str, ...] = ()
    adds_up = False

    def map_rows(self, X: Array, statistics: Statistics) -> Array:
        """The map of rows, each by itself."""
        raise unwritten(self, "map_rows(X, statistics)")

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "map_rows" in vars(cls) and "map_into" not in vars(cls):  # that of a parent is of another map
            cls.map_into = Transformer.map_into  # type: ignore[method-assign]

    def map_into(self, X: Array, statistics: Statistics, out: Array) -> None:
        """The same into ``out``, which may be ``X``: of elementwise maps, of which some need no room of their own."""
        out[...] = self.map_rows(X, statistics)

    def apply(self, rows: Rows, statistics: Statistics) -> Rows:
        return rows.with_X(self._mapped(rows.X, statistics, rows.X if rows.ours else None))

    def _mapped(self, X: Array, statistics: Statistics, out: Array | None = None) -> Array:
        """The map of all rows, block by block as they would be read; an elementwise one may write over its rows."""
        if issparse(X) or (not self.elementwise and len(X) <= PIECE):
            return self.map_rows(X, statistics)
        if not self.elementwise:
            return np.concatenate([self.map_rows(X[i : i + PIECE], statistics) for i in range(0, len(X), PIECE)])
        out = np.empty_like(X) if out is None else out

        def task(piece: slice) -> None:
            for part in blocks(piece.stop - piece.start, X.shape[1]):
                rows = X[piece][part]
                self.map_into(rows, statistics, rows if out is X else out[piece][part])

        for _ in in_parallel(task, pieces(len(X)), 0):
            pass
        return out

    def held(self) -> Statistics:
        """The statistics that it holds."""
        return {name: getattr(self, f"{name}_") for name in self.statistic_names}

    def fit(self, X: Any, y: Any = None) -> Transformer:
        """Fit without noise.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : ignored
            Present by convention.
        """
        self._fit(self._checked(X, reset=True))
        return self

    @available_if(lambda self: self.adds_up)
    def partial_fit(self, X: Any, y: Any = None) -> Any:
        """Fit without noise on one more batch: up to rounding, as ``fit`` on all batches since the first together.

        Sums over the private rows are kept from batch to batch, though in no pickle and no copy: those map rows, but
        take no further batch. ``fit`` forgets them and keeps none, so that the next batch is the first.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows that were in no batch before.
        y : ignored
            Present by convention.
        """
        earlier = self._batches
        if earlier == ():
            what = "it holds no sums of the rows that it was fitted on, for no pickle and no copy keeps them."
            fix = "begin with the first batch, on an unfitted copy (sklearn.base.clone)."
            raise InvalidInput(what, stage=type(self).__name__, fix=fix)
        values = self._checked(X, reset=not earlier)
        extent = self._extent(values) if not earlier else earlier[0].plus(self._extent(values))
        domain = self._observed_domain(extent)
        sums = self._sums(Rows.of(values), domain)
        sums = sums if not earlier else earlier[1] + sums
        self._fit_on(values, domain, lambda: sums)
        self._batches = extent, sums
        return self

    alone_without_bounds = False  # whether it takes no bound that is read off the rows, where its ranges are declared
    _batches: tuple[Extent, Array] | tuple[()] | None = None  # of all rows that partial_fit saw; () in a copy

    def _sums(self, rows: Rows, domain: Domain) -> Array:
        """Sums over rows that the exact mode needs if it ``adds_up``; the facts are those of all rows so far."""
        return np.zeros(0)

    def _of_sums(self, sums: Array, way: FitMode, domain: Domain) -> Statistics:
        """Statistics of the exact mode, from sums over all rows."""
        raise NotImplementedError

    def _fit(self, X: Array) -> Statistics:
        domain = self._observed_domain(self._extent(X))
        return self._fit_on(X, domain, lambda: self._sums(Rows.of(X), domain))

    def _fit_on(self, X: Array, domain: Domain, sums: Callable[[], Array]) -> Statistics:
        """Hold statistics of rows, by the sums over them (and over earlier batches) if those are all it needs."""
        way = self.standalone_mode(domain, domain.neighbours)
        if way.name == "noisy":
            return self._hold_standalone(self.read(self.exact(Rows.of(X), way, domain), way, domain), way)
        if self.adds_up and way.name == "exact":
            return self._hold_standalone(self._of_sums(sums(), way, domain), way)
        return self._hold_standalone(self.prepare(Rows.of(X), way, domain), way)

    def exact(self, rows: Rows, way: FitMode, domain: Domain) -> Any:
        """What :meth:`~Stage.read` takes, without noise: of a stage whose only way is a release."""
        fix = "use it inside ppdp.Pipeline(..., epsilon=...)." + (
            "" if self.chooses else " Outside a pipeline, fit_mode='auto' is exact and private."
        )
        raise MissingBudget("noisy statistics need a budget.", stage=type(self).__name__, fix=fix)

    def _hold_standalone(self, statistics: Statistics, way: FitMode) -> Statistics:
        # Bounds that an imputer reads off these rows are none on rows to come.
        unbounded = statistics.keys() & {"norm", "entry_bound"} if self.fills_gaps else ()
        self.hold(dict(statistics) | dict.fromkeys(unbounded))
        self._standalone = way.name
        return self.held()

    def _extent(self, X: Array) -> Extent:
        """What a fit outside a pipeline reads off rows; refuses what is not finite."""
        extent = Extent.of(X)
        if extent.gaps or not math.isfinite(extent.largest):
            assert_all_finite(X, allow_nan=self.allows_gaps, estimator_name=type(self).__name__, input_name="X")
        return extent

    def _observed_domain(self, extent: Extent) -> Domain:
        domain = extent.domain
        if self.bounds_rows and self.alone_without_bounds:
            domain = domain.but(row_norm=None, entry_bound=None)
        if self.fills_gaps:  # rows to come may have missing values though these have none
            domain = domain.but(max_missing=None)
        return domain if self._names_in is None else domain.but(feature_names=self._names_in)

    def transform(self, X: Any) -> Any:
        """Map rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        """
        check_is_fitted(self)
        made = self.rows_of(X)
        return arrow_table(made, self.get_feature_names_out()) if self._arrow_output else made

    def rows_of(self, X: Any) -> Array:
        """Mapped rows of a table."""
        return self._mapped(self._checked(X, reset=False), self.held())

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names of the output columns: of the input, or numbers where a class of somebody else's makes others."""
        names = super().get_feature_names_out(input_features)
        if shipped(type(self)):
            return names
        width = np.shape(self.map_rows(np.zeros((1, len(names))), self.held()))[1]
        numbered = [f"{type(self).__name__.lower()}{i}" for i in range(width)]
        return names if width == len(names) else np.asarray(numbered, dtype=object)

    def set_output(self, *, transform: str | None = None) -> Transformer:
        """Choose the container of mapped rows.

        Parameters
        ----------
        transform : {"default", "pandas", "polars", "arrow"}, optional
            None changes nothing.
        """
        if transform is not None:
            self._arrow_output = transform == "arrow"
            super().set_output(transform="default" if transform == "arrow" else transform)
        return self

    _arrow_output = False

    def _checked(self, X: Any, *, reset: bool) -> Array:
        if reset:
            self._batches = None
        # Fitting looks at the extremes anyhow, and they tell of what is not finite.
        finite = not reset and ("allow-nan" if self.allows_gaps else True)
        X = validated(self, readable(X), dtype=np.float64, ensure_all_finite=finite, reset=reset)
        return np.asarray(X)

    def __sklearn_clone__(self) -> Any:
        copy = super().__sklearn_clone__()
        if self._arrow_output:
            copy._arrow_output = True
        return copy

    def __getstate__(self) -> Any:
        state = dict(super().__getstate__())
        return state | {"_batches": ()} if self._batches else state


class RowWiseTransformer(Transformer):
    """A public map of each row by itself; nothing is fitted. Missing values may come in."""

    allows_gaps = True
    leakage = "none", "nothing: every row is mapped by itself"


def chosen(ways: dict[str, FitMode], fit_mode: Any, stage: object) -> tuple[FitMode, ...]:
    """The ways that the parameter ``fit_mode`` admits."""
    picked = choice("fit_mode", fit_mode, ["auto", *ways], stage)
    return tuple(ways.values()) if picked == "auto" else (ways[picked],)


class LabelledTransformer(Transformer):
    """A stage with one way, from a statistic of rows and labels that is released: a subclass gives :meth:`exact`."""

    needs_y = True
    chooses = False  # there is one way

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
