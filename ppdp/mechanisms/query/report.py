"""Several statistics of a table in one answer, for people without a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, NoReturn

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ppdp.bounds.queries import counting_step
from ppdp.bounds.report import ReportLayout, layout, scales
from ppdp.core.checks import number, positive, shown
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.rows import Array, Rows
from ppdp.data.summary import Counts, fold
from ppdp.data.unit_conversion import Answers, Codes, Columns
from ppdp.exceptions import InvalidParameter, MissingBound
from ppdp.mechanisms.base import Mechanism, QuerySpec
from ppdp.mechanisms.query.public_grids import grid_in_units, position_of, positions_of, public_grid
from ppdp.mechanisms.query.report_parts import ReportPart, parts_of
from ppdp.mechanisms.standalone import StandaloneQueryMixin
from ppdp.privacy.noise.sampler import Noise

_MEANT = {
    "median": "'quantile', with q=(0.5,).",
    **dict.fromkeys(("std", "var"), "'mean', with which standard deviations are released."),
    **dict.fromkeys(("min", "max"), "'quantile', with q=(0.01, 0.99): an end is one row's value."),
    "count": "'histogram' for rows by category; 'mean' counts the values of a column, too.",
}
STATISTICS = ("mean", "quantile", "histogram", "covariance")
CELLS = 1024  # of the range of a column, for quantiles


@dataclass(eq=False, repr=False)
class Report(StandaloneQueryMixin, Mechanism):
    """Release means, quantiles, histograms, counts per category and covariances of a table, all at once.

    One fit, one charge and one certificate for all of it. Missing values are left out and counted, so no imputer is
    needed; what is needed in front is only what makes ranges public. ``release_.to_pandas()`` of the pipeline is the
    table of all numbers in raw units, ``release_.conf_int()`` has intervals.

    Parameters
    ----------
    queries : "auto", sequence or mapping, default="auto"
        What is released: "mean" (means, standard deviations and numbers of values, column by column), "quantile",
        "histogram" (of a column of categories the count of each) and "covariance" (over the rows that have all of its
        columns). A mapping says of which columns, by name or position. "auto": means and quantiles of columns of
        numbers, and histograms of columns of categories.
    q : float or sequence of float, default=(0.25, 0.5, 0.75)
        Which quantiles. They cost the same however many there are.
    bins : int, sequence of float, or mapping of columns to either, default=10
        Public grid of histograms, as of :class:`GaussianMechanism`: so many equal cells of the public range, or
        ascending edges, in raw units in a pipeline. Columns of categories have a cell for each.
    shares : mapping, optional
        How the budget is split: of each statistic a positive number, relative to the others. By default all columns of
        all statistics get the same.
    ranges : tuple of two floats or mapping of columns to such, optional
        Public range of the values of each column; values beyond it are clipped. A pipeline knows them from the stages
        in front, and refuses a second one behind stages that map values.
    noise_scale : float, optional
        Standard deviation of the noise on the whole answer; a pipeline sets it.
    random_state : int, RandomState instance or None, default=None
        For tests only: noise that can be predicted protects nobody.

    Attributes
    ----------
    numbers_ : ndarray
        What was released, in the units of the public ranges; ``release_.to_pandas()`` reads it.
    layout_ : dict of str to list of int
        Columns of every statistic, by position.

    Notes
    -----
    **Guarantee** (``docs/theory/report.md``): ``mu = 1 / noise_scale`` for one replaced row, whatever is asked. Each
    statistic takes its share of mu², so two statistics of the same columns each have √2 times the noise that one would
    have alone.
    """

    queries: Any = "auto"
    _: KW_ONLY
    q: Any = (0.25, 0.5, 0.75)
    bins: Any = 10
    shares: Mapping[str, float] | None = None
    ranges: Any = None
    noise_scale: float | None = None
    random_state: Any = None

    fills_gaps = True
    takes_codes = True
    tells_errors = True
    in_memory = False  # all of it are sums
    writes_units = True  # of grids, or of ranges that it takes from the stages in front
    typical_rows = "where values are spread evenly over their ranges"
    _example: ClassVar = {"queries": ["quantile", "histogram"], "noise_scale": 1e-3}

    def in_units(self, columns: Columns) -> Any:
        domain = Domain(n_features=len(columns.names), feature_names=columns.names)
        coded = {i for i, kind in enumerate(columns.kinds) if isinstance(kind, Codes)}
        asked = self._asked(domain, coded, columns)
        for name in ("mean", "quantile", "covariance"):
            for column in asked[name]:
                if column in coded:
                    self._refuse(
                        "queries",
                        f"{columns.names[column]!r} holds categories, which have no {name}.",
                        f"queries={{'histogram': [{columns.names[column]!r}], ...}}.",
                    )
        bins = self._bins(asked["histogram"], domain)
        made: Any = clone(self)
        own = {i: tuple(map(float, ends)) for i, ends in enumerate(columns.ranges) if np.isfinite(ends).all()}
        given = self._ranges(domain)
        for column in {i for name in STATISTICS if name != "histogram" for i in asked[name]} & given.keys():
            self._check_units(columns, column)
        ranges = {**own, **given}
        grids = grid_in_units("bins", bins, columns, self, edges=True) if bins else {}
        return made.set_params(queries=asked, bins=grids, ranges=ranges)

    def query_spec(self, domain: Domain, mu: float | None = None) -> QuerySpec:
        return self.query_spec_at(domain, Distance(replaced=1), mu)

    def query_spec_at(self, domain: Domain, distance: Distance, mu: float | None = None) -> QuerySpec:
        asked = self._asked(domain, set())
        scaled = sorted({column for name, columns in asked.items() if name != "histogram" for column in columns})
        ranges, whole = self._ranges(domain), self._bound(domain)
        ends = [found for column in scaled if (found := ranges.get(column, whole)) is not None]
        if len(ends) < len(scaled):
            fix = "add MinMaxScaler(ranges=...) as a first step, or pass ranges={column: (low, high)}."
            raise MissingBound("the public range of a column is not declared.", stage=type(self).__name__, fix=fix)
        bins = self._bins(asked["histogram"], domain)
        grid = public_grid("bins", bins, domain, self, edges=True) if bins else {"sizes": [], "edges": []}
        gaps = domain.missing_rows > 0
        parameters = {
            **asked,
            "histogram": grid.get("columns", []),
            "cells": CELLS,
            "sizes": grid["sizes"],
            "edges": grid["edges"],
            "scaled": scaled,
            "low": [low for low, _ in ends],
            "high": [high for _, high in ends],
            "gaps": gaps,
            "counted": gaps or domain.min_present < domain.n,
            "replaces": distance.moved_as_replaced().unmatched[0] > 0,
            "shares": self._shares([len(asked[name]) for name in STATISTICS]),
        }
        question = QuerySpec.asked("query.report", "mechanism", domain, parameters)
        made, parts = self._made(question)
        factors = (factor for factor in scales(made, parameters["shares"]) if factor)
        return replace(question, drowning=max(part.spread / factor for part, factor in zip(parts, factors)) / domain.n)

    def release(self, rows: Rows, question: QuerySpec, noise: Noise, noise_scale: float) -> dict[str, Array]:
        made, parts = self._made(question)
        step = counting_step(rows.n)

        def steps(block: Rows) -> Array:
            return np.concatenate([part.steps(block, step) for part in parts])

        sums = fold(Counts(sum(part.size for part in parts), steps), rows) * step
        each = np.split(sums, np.cumsum([part.size for part in parts])[:-1])
        factors = [factor for factor in scales(made, question.parameters["shares"]) if factor]
        scaled = [f * part.vector(own) for f, part, own in zip(factors, parts, each)]
        return {"answer": noise.release(np.concatenate(scaled), noise_scale, question.bound)}

    def read(self, released: Mapping[str, Array], domain: Domain, question: QuerySpec) -> None:
        made, _ = self._made(question)
        factors = np.repeat(scales(made, question.parameters["shares"]), made.numbers)
        self.numbers_ = released["answer"] / np.where(factors > 0, factors, 1.0)
        self.layout_ = {name: list(question.parameters[name]) for name in STATISTICS}

    def answers(self, columns: Columns, domain: Domain, question: QuerySpec) -> list[Answers]:
        check_is_fitted(self)
        made, parts = self._made(question)
        sigma, factors = self.own_noise_scale(), scales(made, question.parameters["shares"])
        each = np.split(self.numbers_, np.cumsum([count for count in made.numbers if count])[:-1])
        asked = zip(parts, each, (factor for factor in factors if factor))
        found = (part.answers(own, sigma / factor, columns, domain) for part, own, factor in asked)
        return [answer for answers in found for answer in answers]

    def share_left(self, domain: Domain, question: QuerySpec) -> tuple[float, float] | None:
        """By the number of values of the column that has most."""
        told = self.answers(Columns.raw([str(i) for i in range(domain.d)]), domain, question)
        found = next((one for one in told if one.statistic == "values"), None)
        return None if found is None else (np.max(found.value) / domain.n, np.max(found.error) / domain.n)

    def typical(self, domain: Domain, question: QuerySpec) -> Array:
        """An answer of rows all of which are there, with values spread evenly over their ranges."""
        made, parts = self._made(question)
        factors = (factor for factor in scales(made, question.parameters["shares"]) if factor)
        return np.asarray(domain.n * np.concatenate([f * part.even() for f, part in zip(factors, parts)]))

    def _made(self, question: QuerySpec) -> tuple[ReportLayout, list[ReportPart]]:
        made = layout(**question.parameters)
        return made, parts_of(made, question.parameters, self._quantiles())

    def _asked(self, domain: Domain, coded: set[int], columns: Columns | None = None) -> dict[str, list[int]]:
        """Columns of every statistic, by position; one of categories may have become several."""
        known = columns or Columns.raw(domain.feature_names or ())
        given, everything = self.queries, list(range(domain.d))
        numbers = [column for column in everything if column not in coded]
        if isinstance(given, str):
            if given in STATISTICS:
                what = f"queries must be 'auto', a list or a mapping, got {shown(given)}."
                self._refuse("queries", what, f"[{given!r}].")
            auto = {"mean": numbers, "quantile": numbers, "histogram": sorted(coded)}
            given = auto if given == "auto" else [given]
        if not isinstance(given, Mapping):
            given = dict.fromkeys(given if isinstance(given, Iterable) else [getattr(given, "__name__", given)])
        if unknown := [name for name in given if name not in STATISTICS]:
            fix = _MEANT.get(str(unknown[0]), f"{', '.join(STATISTICS)}, as in ['mean'] or {{'mean': ['age']}}.")
            self._refuse("queries", f"there is no statistic {shown(unknown[0])}.", fix)
        asked: dict[str, list[int]] = {name: [] for name in STATISTICS}
        for name, of in given.items():
            if of is None:
                of = everything if name == "histogram" else numbers
            listed = [of] if isinstance(of, (str, int, np.integer)) else list(of)
            places = [at for column in listed for at in positions_of("queries", column, known, domain, self)]
            if len(set(places)) < len(places):
                self._refuse("queries", f"{name} names a column twice.", "name it once.")
            asked[name] = sorted(places)
        if not any(asked.values()):
            self._refuse("queries", "it asks for nothing of these columns.", 'queries="auto".')
        return asked

    def _bins(self, columns: Sequence[int], domain: Domain) -> dict[int, Any]:
        """Grid of every column that has a histogram."""
        if not isinstance(self.bins, Mapping):
            if not columns and (isinstance(self.bins, bool) or np.ndim(self.bins) or self.bins != 10):
                fix = "queries=['mean', 'quantile', 'histogram'], or leave bins out."
                self._refuse("bins", "bins are of histograms, and none is asked.", fix)
            return dict.fromkeys(columns, self.bins)
        given = {position_of("bins", column, domain, self): marks for column, marks in self.bins.items()}
        if other := [column for column in given if column not in columns]:
            name = domain.feature_names[other[0]] if domain.feature_names else other[0]
            what = "bins"
            self._refuse(what, f"bins names {name!r}, of which no histogram is asked.", "queries={'histogram': [...]}.")
        return {column: given.get(column, 10) for column in columns}

    def _ranges(self, domain: Domain) -> dict[int, tuple[float, float]]:
        if self.ranges is None:
            return {}
        given = self.ranges if isinstance(self.ranges, Mapping) else dict.fromkeys(range(domain.d), self.ranges)
        ranges = {position_of("ranges", column, domain, self): ends for column, ends in given.items()}
        for ends in ranges.values():
            low, high = (number("ranges", end, self) for end in ends) if np.shape(ends) == (2,) else (1.0, 0.0)
            if not low < high:
                self._refuse("ranges", "ranges must be pairs (low, high), low < high.", "ranges={'age': (0, 120)}.")
        return {column: (float(low), float(high)) for column, (low, high) in ranges.items()}

    def _check_units(self, columns: Columns, column: int) -> None:
        """Refuse a range that may be meant in the units of the table, where rows are known in others."""
        if (columns.slope[column], columns.offset[column]) == (1, 0):
            return
        if columns.has_units(column) or np.isfinite(columns.ranges[column]).all():
            self._refuse(
                "ranges",
                f"values of {columns.names[column]!r} are mapped in front: the range is not in units of the table.",
                "leave ranges out, which the stages in front declare; a narrower one belongs there.",
            )

    def _bound(self, domain: Domain) -> tuple[float, float] | None:
        """The range of all columns, as far as bounds on rows tell it."""
        bounds = [bound for bound in (domain.entry_bound, domain.row_norm) if bound is not None]
        return (-min(bounds), min(bounds)) if bounds else None

    def _shares(self, counts: Sequence[int]) -> list[float]:
        """Of mu², for every statistic."""
        given = dict.fromkeys(STATISTICS, 1.0)
        if self.shares is not None:
            if unknown := [name for name in self.shares if name not in STATISTICS]:
                self._refuse("shares", f"shares names {shown(unknown[0])}.", f"one of {', '.join(STATISTICS)}.")
            given |= {name: positive("shares", share, self) for name, share in self.shares.items()}
            weights = [given[name] if count else 0.0 for name, count in zip(STATISTICS, counts)]
        else:
            weights = [float(count) for count in counts]
        return [weight / sum(weights) for weight in weights]

    def _quantiles(self) -> list[float]:
        listed = [self.q] if isinstance(self.q, (int, float)) else list(self.q)
        if not 0 < len(listed) <= 100:
            self._refuse("q", "q must name between 1 and 100 quantiles.", "q=(0.25, 0.5, 0.75).")
        return [number("q", one, self, least=0, most=1) for one in listed]

    def _refuse(self, parameter: str, why: str, fix: str) -> NoReturn:
        raise InvalidParameter(why, stage=type(self).__name__, fix=fix, parameter=parameter)
