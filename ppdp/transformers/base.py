"""What every transformer shares: views of its ways, and scikit-learn manners."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import check_is_fitted

from ppdp.core.adjacency import Adjacency
from ppdp.core.checks import choice
from ppdp.core.declared import Value, constants
from ppdp.core.distance import Distance, Sensitivity
from ppdp.core.domain import Domain
from ppdp.core.keywords import Answering
from ppdp.core.pages import Documented
from ppdp.data.altered import Property
from ppdp.data.frames import arrow_table, readable
from ppdp.data.intake import validated
from ppdp.data.parallel import PIECE, blocks, in_parallel, pieces
from ppdp.data.rows import Array, Rows
from ppdp.data.statistics import Moments
from ppdp.data.summary import Extent
from ppdp.data.units import Columns
from ppdp.exceptions import MissingBudget, UnsupportedOrder
from ppdp.transformers.alone import Alone, check_rows, declared_facts
from ppdp.transformers.twin import hold
from ppdp.transformers.way import Condition, Way

Statistics = Mapping[str, Any]


class Stage(Documented, Answering, BaseEstimator):
    """A step that maps neighbouring datasets to neighbouring datasets.

    Subclasses give :meth:`ways`; all else on the planning side is a view of one way. On rows a pipeline calls
    :meth:`prepare` or :meth:`read` for the statistics of a way, :meth:`apply` with them, and :meth:`carry` where a
    release serves later stages too. A stage that changes weights gives :meth:`apply`, one that maps rows is a
    :class:`Transformer`. See ``docs/guides/own-stage.md`` and :func:`ppdp.testing.check_stage`.

    Attributes
    ----------
    allows_gaps : bool
        Whether rows may have gaps.
    bounds_rows : bool
        Whether the output has a ``row_norm`` even where the input has none.
    fills_gaps : bool
        Whether rows may have gaps before it and have none behind it.
    in_memory : bool
        Whether its exact way needs all rows in memory, because it sorts columns or compares rows. What other stages fit
        on rows is a :class:`~ppdp.data.summary.Summary`, which can be taken block by block.
    compares : bool
        Whether it compares rows: in memory, on the disk of this process or where an engine holds them.
    takes_sparse : {"", "keeps", "projects"}
        Whether its public map takes a sparse array of rows, and what it makes of it: a sparse or a dense one.
    relief : str
        What to use instead where the gate refuses a condition of this stage.
    keeps_units : bool
        Whether values keep their units whatever was fitted on the rows.
    needs_y : bool
        Whether it looks at labels, so that the last step must be a model, whose classes or range they have.
    """

    allows_gaps = False
    bounds_rows = False
    fills_gaps = False
    in_memory = False
    compares = False
    takes_sparse = ""
    relief = "statistics='noisy'"
    keeps_units = False
    elementwise = False
    needs_y = False

    @classmethod
    def example(cls) -> Any:
        """An instance that works on any numeric data, for contract tests."""
        return cls()

    def declarations(self) -> tuple[str, ...]:
        """What the stability map takes from the user's word, in public words."""
        return ()

    def declared(self, domain: Domain) -> tuple[Value, ...]:
        """Ranges and constants that the user declares: name, value, and "declared" or "default", in public words.

        Parameters
        ----------
        domain : Domain
            Public facts at the input, once :meth:`ways` has found the parameters right.
        """
        return tuple(constants(self, domain.feature_names))

    multiplies_columns = False
    """Whether it works on a matrix of the products of all columns, whatever the way."""

    @property
    def keeps_columns(self) -> bool:
        """Whether every column that comes out is what became of the column in its place."""
        return self.keeps_units or self.elementwise

    @property
    def chooses(self) -> bool:
        """Whether the plan is free to choose the way."""
        return getattr(self, "statistics", "auto") == "auto"

    def ways(self, domain: Domain, distance: Distance) -> tuple[Way, ...]:
        """Everything this stage can do at this domain and distance.

        A pure function of the parameters, made before any data: what is wrong with the parameters is found here. Build
        each way with :meth:`Way.by <ppdp.transformers.way.Way.by>`.

        Parameters
        ----------
        domain : Domain
            Public facts at the input.
        distance : Distance
            How far apart two neighbouring datasets can be at the input.

        Raises
        ------
        UnsupportedOrder
            If the stage cannot stand here; a plan then drops the routes that lead here.
        """
        raise NotImplementedError

    def way_alone(self, domain: Domain, distance: Distance) -> Way:
        """The way that the stage goes outside a pipeline: exact if there is one."""
        ways = self.ways(domain, distance)
        return min(ways, key=lambda way: way.name != "exact")

    def _claimed(self, domain: Domain, distance: Distance) -> Way:
        """The way that :meth:`stability_map`, :meth:`conditions` and :meth:`sensitivity` speak of."""
        return self.way_alone(domain, distance)

    def stability_map(self, domain: Domain, distance: Distance) -> tuple[Domain, Distance]:
        """Domain and distance after the stage; a pure function of public parameters.

        Raises
        ------
        MissingBound, DomainMismatch
            If the stage was fitted alone and is another map: its bounds were read off the rows, or it was fitted for
            another domain. An unfitted stage speaks of the map that it will be in a pipeline.
        """
        way = self._claimed(domain, distance)
        return way.domain, way.distance

    def conditions(self, domain: Domain, distance: Distance) -> tuple[Condition, ...]:
        """What :meth:`stability_map` assumes of the data; ``()`` means nothing. Raises like it."""
        return self._claimed(domain, distance).conditions

    def sensitivity(self, domain: Domain) -> Sensitivity:
        """The stability map for one replaced record, in the words of the literature. Raises like it."""
        _, distance = self.stability_map(domain, Adjacency.replace().distance)
        return Sensitivity(linf=distance.moved, l2=distance.radius)

    def apply(self, rows: Rows, statistics: Statistics) -> Rows:
        """Rows behind the stage; deleted rows must stay zero (``Rows.with_X``, ``Rows.settled``)."""
        raise NotImplementedError

    def prepare(self, rows: Rows, way: Way, domain: Domain) -> Statistics:
        """Statistics of a way, from rows and without noise.

        Parameters
        ----------
        rows : Rows
            At the input; none at all for a public way.
        way : Way
            One of those that :meth:`ways` gave.
        domain : Domain
            Public facts at the input.
        """
        return {}

    def prepare_alone(self, rows: Rows, way: Way, domain: Domain) -> Statistics:
        """The same of rows of which nothing is claimed, so that last bits may know their order."""
        return self.prepare(rows, way, domain)

    def read(self, values: Moments, way: Way, domain: Domain) -> Statistics:
        """The same statistics of a noisy way, from what was released: values as the statistic's formula reads them."""
        raise NotImplementedError

    def carry(self, values: Moments, statistics: Statistics) -> Moments:
        """Released moments as they are behind this stage, for ways that are affine."""
        raise NotImplementedError

    def units(self, columns: Columns) -> Columns | None:
        """Columns behind the stage, as it was released; None if they are not scaled and shifted one by one."""
        return None

    def public_units(self, columns: Columns, way: Way, domain: Domain) -> Columns | None:
        """The same as far as public parameters tell, before anything is fitted; None if they do not.

        Parameters
        ----------
        columns : Columns
            At the input.
        way : Way
            How the stage will be fitted.
        domain : Domain
            Public facts at the input.
        """
        if way.name != "public":
            scaled = way.scaled_columns
            changed = None if scaled is None else columns.lost_at(scaled, "its scale is not public")
            return columns if self.keeps_units else changed
        none = Rows.of(np.empty((0, domain.d)))
        twin: Stage = hold(clone(self), self.prepare(none, way, domain), domain)
        return twin.units(columns)

    def simulated(self, n: int, domain: Domain, rng: np.random.Generator) -> Any:
        """So many rows as they could come in by what is declared here; None if nothing is."""
        return None

    def alters(self, domain: Domain) -> tuple[Property, ...]:
        """What its public map may do to a row that must not be overlooked: values clipped, or of no category.

        Parameters
        ----------
        domain : Domain
            Public facts at the input.
        """
        return ()

    def altered(self, X: Any, domain: Domain) -> Any:
        """Which rows of ``X`` it alters so, an array of bool of shape (n, n_properties); each row by itself."""
        raise NotImplementedError

    def instead(self) -> Iterator[tuple[str, Any]]:
        """What may take its place where no route leads through it, in words and as a stage with public parameters."""
        if not self.chooses:
            yield "statistics='auto'", clone(self).set_params(statistics="auto")

    def without_release(self, way: Way) -> Statistics:
        """What the twin of an exact way predicts with if nothing was released for it."""
        return {}

    def hold(self, statistics: Statistics) -> None:
        """Set statistics as fitted attributes: ``mean`` becomes ``mean_``."""
        for name, value in statistics.items():
            setattr(self, f"{name}_", value)

    @property
    def _names_in(self) -> tuple[str, ...] | None:
        """Names of the columns of the rows that it was fitted on alone, if they have names."""
        return tuple(self.feature_names_in_) if hasattr(self, "feature_names_in_") else None

    def _norm_of_complete_rows(self, domain: Domain) -> float:
        """The public norm of rows that have no gaps; refuses rows that may have any."""
        stage = type(self).__name__
        if domain.missing_rows:
            raise UnsupportedOrder("rows may have missing values here.", stage=stage, fix="put an imputer before it.")
        return float(domain.require("row_norm", stage))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.allows_gaps
        return tags


class Transformer(OneToOneFeatureMixin, TransformerMixin, Stage):
    """A stage that maps rows one by one once its statistics are known.

    Subclasses give :meth:`~Stage.ways`, :meth:`map_rows` and, if it needs any statistics, their names with
    :meth:`~Stage.prepare` (exact and public ways) or :meth:`~Stage.read` (noisy ways).

    Fitted alone, outside a pipeline, it is an ordinary scikit-learn transformer: statistics are exact and are *private
    data*; no certificate covers them. Bounds on rows are read off ``X`` unless ``domain`` declares them, and only if it
    does is :meth:`stability_map` true of the map that was fitted.

    Attributes
    ----------
    statistic_names : tuple of str
        Of what :meth:`map_rows` gets; each becomes a fitted attribute with ``_`` behind it.
    elementwise : bool
        Whether every entry is mapped by itself, but for a clip of the row.
    """

    statistic_names: tuple[str, ...] = ()

    def map_rows(self, X: Array, statistics: Statistics) -> Array:
        """The map of rows, each by itself."""
        raise NotImplementedError

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
            rows, room = X[piece], out[piece]
            for part in blocks(*rows.shape):
                room[part] = self.map_rows(rows[part], statistics)

        for _ in in_parallel(task, pieces(len(X)), 0):
            pass
        return out

    def held(self) -> Statistics:
        """The statistics that it holds."""
        return {name: getattr(self, f"{name}_") for name in self.statistic_names}

    def fit(self, X: Any, y: Any = None, *, domain: Domain | None = None) -> Transformer:
        """Fit without noise.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : ignored
            Present by convention.
        domain : Domain, optional
            Public facts about the rows, as in a pipeline. Default: read off X.

        Raises
        ------
        InvalidValue
            If rows are outside the domain.
        """
        self._fit(self._checked(X, reset=True), domain)
        return self

    def fit_transform(self, X: Any, y: Any = None, *, domain: Domain | None = None) -> Any:
        """Fit without noise, and map the same rows; takes and raises what :meth:`fit` does."""
        values = self._checked(X, reset=True)
        return self._contained(self._mapped(values, self._fit(values, domain)))

    def _claimed(self, domain: Domain, distance: Distance) -> Way:
        return self._alone.check(self, domain, distance) if self._alone else super()._claimed(domain, distance)

    _alone: Alone | None = None  # how it was fitted alone; None before, and in a pipeline

    def _extent(self, X: Array) -> Extent:
        """What a fit alone reads off rows; refuses what is not finite."""
        extent = Extent.of(X)
        if extent.gaps or not math.isfinite(extent.largest):
            assert_all_finite(X, allow_nan=self.allows_gaps, estimator_name=type(self).__name__, input_name="X")
        return extent

    def _fit(self, X: Array, declared: Domain | None = None) -> Statistics:
        domain = self._observed(self._extent(X))
        if declared is not None:
            domain = declared_facts(self, declared, X.shape, self._names_in)
            check_rows(self, X, domain)
        way = self._exact_way(domain)
        prepare = self.prepare_alone if declared is None else self.prepare
        return self._settled(prepare(Rows.of(X), way, domain), way, domain, declared=declared is not None)

    def _observed(self, extent: Extent) -> Domain:
        """Facts for a fit alone."""
        domain = extent.domain
        if self.fills_gaps:  # rows to come may have gaps though these have none
            domain = domain.but(max_missing=None)
        return domain if self._names_in is None else domain.but(feature_names=self._names_in)

    def _exact_way(self, domain: Domain) -> Way:
        way = self.way_alone(domain, domain.neighbours)
        if way.name == "noisy":
            raise MissingBudget(
                "noisy statistics need a budget.",
                stage=type(self).__name__,
                fix="use it inside ppdp.Pipeline(..., epsilon=...)."
                + ("" if self.chooses else " Alone, statistics='auto' is exact and private."),
            )
        return way

    def _settled(self, found: Statistics, way: Way, domain: Domain, *, declared: bool) -> Statistics:
        """Hold what was found, and how."""
        statistics = dict(found)
        if self.fills_gaps and not declared:  # what was read off these rows is no bound on rows to come
            statistics |= dict.fromkeys(statistics.keys() & {"norm", "entry_bound"})
        self.hold(statistics)
        self._alone = Alone.of(domain, way, declared=declared)
        return self.held()

    def transform(self, X: Any) -> Any:
        """Map rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        """
        check_is_fitted(self)
        return self._contained(self._mapped(self._checked(X, reset=False), self.held()))

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

    def __sklearn_clone__(self) -> Any:
        copy = super().__sklearn_clone__()
        if self._arrow_output:
            copy._arrow_output = True
        return copy

    def _checked(self, X: Any, *, reset: bool) -> Array:
        # Fitting looks at the extremes anyhow, and they tell of what is not finite.
        finite = not reset and ("allow-nan" if self.allows_gaps else True)
        X = validated(self, readable(X), dtype=np.float64, ensure_all_finite=finite, reset=reset)
        return np.asarray(X)

    def _contained(self, X: Array) -> Any:
        return arrow_table(X, self.get_feature_names_out()) if self._arrow_output else X


class RowWiseTransformer(Transformer):
    """A public map of each row by itself; nothing is fitted. Gaps may come in."""

    allows_gaps = True


def chosen(ways: dict[str, Way], statistics: Any, stage: object) -> tuple[Way, ...]:
    """The ways that the parameter ``statistics`` admits."""
    picked = choice("statistics", statistics, ["auto", *ways], stage)
    return tuple(ways.values()) if picked == "auto" else (ways[picked],)
