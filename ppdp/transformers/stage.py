"""What every step before the last is: views of its fit modes, and hooks for its statistics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, clone

from ppdp.core.adjacency import Adjacency
from ppdp.core.declared import Value, constants
from ppdp.core.distance import Distance, Sensitivity
from ppdp.core.domain import Domain
from ppdp.core.keywords import Answering, under_earlier_name, unwritten
from ppdp.data.altered import Property
from ppdp.data.rows import Rows
from ppdp.data.statistics import Moments
from ppdp.data.unit_conversion import Columns
from ppdp.exceptions import MissingBound, UnknownStage, UnsupportedOrder
from ppdp.transformers.fit_mode import Condition, FitMode

Statistics = Mapping[str, Any]


class Stage(Answering, BaseEstimator):
    """A step that maps neighbouring datasets to neighbouring datasets.

    Subclasses give :meth:`fit_modes`; all else on the planning side is a view of one of them. On rows a pipeline calls
    :meth:`prepare` or :meth:`read` for the statistics of a way, :meth:`apply` with them, and :meth:`carry` where a
    release serves later stages too. A stage that changes weights gives :meth:`apply`, one that maps rows is a
    :class:`Transformer`. See ``docs/guides/own-stage.md`` and :func:`ppdp.testing.check_stage`.

    Attributes
    ----------
    allows_gaps : bool
        Whether rows may have missing values.
    bounds_rows : bool
        Whether the output has a ``row_norm`` even where the input has none.
    fills_gaps : bool
        Whether rows may have missing values before it and have none behind it.
    in_memory : bool
        Whether its exact mode needs all rows in memory, because it sorts columns or compares rows. What other stages
        fit on rows is a :class:`~ppdp.data.summary.Summary`, which can be taken block by block.
    compares : bool
        Whether it compares rows: in memory, on the disk of this process or where an engine holds them.
    passes : int
        How often all rows are read, at most, where it is fitted on them, and for each of its conditions.
    takes_sparse : {"", "keeps", "projects"}
        Whether its public map takes a sparse array of rows, and what it makes of it: a sparse or a dense one.
    relief : str
        What to use instead where the gate refuses a condition of this stage.
    keeps_units : bool
        Whether values keep their units whatever was fitted on the rows.
    multiplies_columns : bool
        Whether it works on a matrix of the products of all columns, whatever the way.
    elementwise : bool
        Whether every entry is mapped by itself, but for a clip of the row.
    keeps_columns : bool
        Whether every column that comes out is what became of the column in its place.
    leakage : (str, str)
        What a fit without noise, outside a pipeline, tells of the rows: "none", "low" or "high", and in words.
    needs_y : bool
        Whether it looks at labels, so that the last step must be a model, whose classes or range they have.
    """

    allows_gaps = False
    bounds_rows = False
    fills_gaps = False
    in_memory = False
    compares = False
    passes = 1
    takes_sparse = ""
    relief = "fit_mode='noisy'"
    keeps_units = False
    multiplies_columns = False
    elementwise = False
    leakage = "high", "unknown: assume that it leaks everything"
    needs_y = False

    _example: ClassVar[Mapping[str, Any]] = {}  # parameters of the example, where it needs some

    @classmethod
    def example(cls) -> Any:
        """An instance that works on any numeric data, for contract tests."""
        return cls(**cls._example)

    def declarations(self) -> tuple[str, ...]:
        """What the stability map takes from the user's word, in public words."""
        return ()

    def declared(self, domain: Domain) -> tuple[Value, ...]:
        """Ranges and constants that the user declares: name, value, and "declared" or "default", in public words."""
        return tuple(constants(self, domain.feature_names))

    @property
    def keeps_columns(self) -> bool:
        """That units are kept or entries mapped by themselves says so; others say it themselves."""
        return self.keeps_units or self.elementwise

    @property
    def chooses(self) -> bool:
        """Whether the plan is free to choose the way."""
        return getattr(self, "fit_mode", "auto") == "auto"

    def fit_modes(self, domain: Domain, distance: Distance) -> tuple[FitMode, ...]:
        """Everything this stage can do at this domain and distance: its public map, or how it may be fitted.

        A pure function of the parameters and of public facts at the input, made before any data: what is wrong with
        the parameters is found here. Build each way with :meth:`FitMode.by <ppdp.transformers.fit_mode.FitMode.by>`.

        Raises
        ------
        UnsupportedOrder
            If the stage cannot stand here; a plan then drops the routes that lead here.
        """
        return under_earlier_name(self, "ways", "fit_modes")(domain, distance)

    def standalone_mode(self, domain: Domain, distance: Distance) -> FitMode:
        """The way that the stage goes outside a pipeline: exact if there is one."""
        return min(modes_of(self, domain, distance), key=lambda way: way.name != "exact")

    _standalone = ""  # the name of the way of a fit outside a pipeline

    def _claimed_mode(self, domain: Domain, distance: Distance) -> FitMode:
        """The way that claims speak of; refused if a fit outside a pipeline has made another map."""
        if self._standalone in ("", "public"):
            way = self.standalone_mode(domain, distance)
            if not self._standalone or self._holds(self._public_statistics(way, domain)):
                return way
        raise MissingBound(
            "it was fitted outside a pipeline, and what it reads off the rows has no bound: one replaced row may change"
            " the whole map.",
            stage=type(self).__name__,
            fix="use it in a ppdp.Pipeline; an unfitted copy (sklearn.base.clone) tells what is proved there.",
        )

    def _public_statistics(self, way: FitMode, domain: Domain) -> Statistics:
        return self.prepare(Rows.of(np.empty((0, domain.d))), way, domain)

    def _holds(self, statistics: Statistics) -> bool:
        """Whether these are its fitted attributes."""
        return all(_equal(getattr(self, f"{name}_", None), value) for name, value in statistics.items())

    def stability_map(self, domain: Domain, distance: Distance) -> tuple[Domain, Distance]:
        """Domain and distance after the stage; a pure function of public parameters.

        Raises
        ------
        MissingBound
            If it was fitted outside a pipeline, unless its map is public. An unfitted stage speaks of the map that it
            will be in a pipeline.
        """
        way = self._claimed_mode(domain, distance)
        return way.domain, way.distance

    def conditions(self, domain: Domain, distance: Distance) -> tuple[Condition, ...]:
        """What :meth:`stability_map` assumes of the data; ``()`` means nothing. Raises like it."""
        return self._claimed_mode(domain, distance).conditions

    def sensitivity(self, domain: Domain) -> Sensitivity:
        """The stability map for one replaced record, in the words of the literature. Raises like it."""
        _, distance = self.stability_map(domain, Adjacency.replace().distance)
        return Sensitivity(linf=distance.moved, l2=distance.radius)

    def apply(self, rows: Rows, statistics: Statistics) -> Rows:
        """Rows behind the stage; deleted rows must stay zero (``Rows.with_X``, ``Rows.settled``)."""
        raise unwritten(self, "apply(rows, statistics)")

    def prepare(self, rows: Rows, way: FitMode, domain: Domain) -> Statistics:
        """Statistics of a way, from rows at the input (none at all for a public mode) and without noise."""
        return {}

    def read(self, values: Moments, way: FitMode, domain: Domain) -> Statistics:
        """The same statistics of a noisy mode, from what was released: values as the statistic's formula reads them."""
        raise unwritten(self, "read(values, way, domain), which its noisy mode needs")

    def carry(self, values: Moments, statistics: Statistics) -> Moments:
        """Released moments as they are behind this stage, for ways that are affine."""
        raise NotImplementedError

    def units(self, columns: Columns) -> Columns | None:
        """Columns behind the stage, as it was released; None if they are not scaled and shifted one by one."""
        return None

    def public_units(self, columns: Columns, way: FitMode, domain: Domain) -> Columns | None:
        """The same as far as public parameters tell, before anything is fitted; None if they do not."""
        if way.name != "public":
            scaled = way.scaled_columns
            changed = None if scaled is None else columns.lost_at(scaled, "its scale is not public")
            return columns if self.keeps_units else changed
        released: Stage = hold(clone(self), self._public_statistics(way, domain), domain)
        return released.units(columns)

    def simulated(self, n: int, domain: Domain, rng: np.random.Generator) -> Any:
        """So many rows as they could come in by what is declared here; None if nothing is."""
        return None

    def alters(self, domain: Domain) -> tuple[Property, ...]:
        """What its public map may do to a row that must not be overlooked: values clipped, or of no category."""
        return ()

    def altered(self, X: Any, domain: Domain) -> Any:
        """Which rows of ``X`` it alters so, an array of bool of shape (n, n_properties); each row by itself."""
        raise NotImplementedError

    def instead(self) -> Iterator[tuple[str, Any]]:
        """What may take its place where no route leads through it, in words and as a stage with public parameters."""
        if hasattr(self, "fit_mode") and not self.chooses:
            yield "fit_mode='auto'", clone(self).set_params(fit_mode="auto")

    def without_release(self, way: FitMode) -> Statistics:
        """What the released stage predicts with, where it is fitted exactly, if nothing was released for it."""
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
        """The public norm of rows that have no missing values; refuses rows that may have any."""
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


def modes_of(stage: Any, domain: Domain, distance: Distance) -> tuple[FitMode, ...]:
    """The fit modes of a stage, refused if they are none."""
    ways = stage.fit_modes(domain, distance)
    if not isinstance(ways, tuple) or not ways or not all(isinstance(way, FitMode) for way in ways):
        what = f"its fit_modes gives no tuple of fit modes, but a value of type {type(ways).__name__}."
        raise UnknownStage(what, stage=type(stage).__name__, fix="return (FitMode.by(...),), with the comma.")
    return ways


def hold(stage: Any, statistics: Statistics, domain: Domain) -> Any:
    """The stage, once it holds public or released statistics and has the columns of a domain."""
    stage.hold(statistics)
    stage.n_features_in_ = domain.d
    if domain.feature_names is not None:
        stage.feature_names_in_ = np.asarray(domain.feature_names, dtype=object)
    return stage


def _equal(first: Any, second: Any) -> bool:
    if issparse(first) and issparse(second):
        return bool(first.shape == second.shape and (first != second).nnz == 0)
    return bool(np.array_equal(first, second))
