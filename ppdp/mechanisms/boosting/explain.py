"""What a released model says of columns: its shapes in raw units, and what each value adds to a score."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ppdp.core.domain import Domain
from ppdp.data.cell_grid import Codes as Cells
from ppdp.data.rows import Array
from ppdp.data.unit_conversion import Answers, Codes, Columns, no_ends
from ppdp.mechanisms.boosting.model import AdditiveModel, mean

if TYPE_CHECKING:
    from ppdp.mechanisms.base import QuerySpec

MISSING = "missing"
ELSE = "anything else"
POSTERIOR = "its error is the posterior's, of noise and of labels"


@dataclass(frozen=True, slots=True)
class Shape:
    """What a column adds to a score, by runs of values that add the same.

    Attributes
    ----------
    low, high : ndarray of shape (n_runs,)
        Ends of every run, as values are in front of the model; NaN for missing ones, which are the last.
    values, errors : ndarray of shape (n_runs,)
        What a run adds, and its standard error.
    """

    low: Array
    high: Array
    values: Array
    errors: Array


class Explained:
    """Mixin for what models of shapes say of themselves."""

    def _line(self: Any) -> tuple[float, float]:
        """Slope and offset of what is explained: a score, or the target that follows from it."""
        if not hasattr(self, "y_range_") or getattr(self, "log_link", False):
            return 1.0, 0.0
        low, high = self.learned_range_
        return high / 2 - low / 2, low / 2 + high / 2

    @property
    def expected_value_(self: Any) -> Any:
        """Score, or target, that is expected of rows whose columns are drawn by released shares, independently."""
        slope, offset = self._line()
        found = np.array([offset + slope * expected_score(model) for model in self.models_])
        return float(found[0]) if len(found) == 1 else found

    def shap_values(self: Any, X: Any) -> Array:
        """What each column of a row adds to :attr:`expected_value_`: exact Shapley values, of released numbers alone.

        They and the expected value add up to ``decision_function``; of targets to the prediction, before it is clipped
        to its range, or to what is learned of it: a logarithm of counts and amounts, or ``target_func``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, as they are in front of the model: ``pipe[-1].shap_values(pipe[:-1].transform(X))``.

        Returns
        -------
        ndarray of shape (n_samples, n_features) or (n_samples, n_features, n_classes)
            Of several classes those of every score.
        """
        codes = self._codes(X)
        values = self._line()[0] * np.stack([shap_values(model, codes) for model in self.models_], axis=-1)
        return np.asarray(values[..., 0] if len(self.models_) == 1 else values)

    def answers(self: Any, columns: Columns, domain: Domain, question: QuerySpec) -> list[Answers]:
        """Shapes and baseline, and how much every column matters."""
        labels = [f" of {label}" for label in self.classes_] if len(self.models_) > 1 else [""]
        line, unit = self._line(), self._unit()
        both = zip(self.models_, labels)
        return [_in_unit(one, line, unit) for model, of in both for one in model_answers(model, of, columns)]

    def _unit(self: Any) -> str:
        """Of the raw numbers of what is explained."""
        if not hasattr(self, "y_range_"):
            return "log-odds"
        if getattr(self, "log_link", False):
            return "natural logarithm of the target"
        func = getattr(self, "target_func", None)
        return f"raw: {func} of the target" if func else "raw: in the unit of the target"


def _in_unit(answer: Answers, line: tuple[float, float], unit: str) -> Answers:
    """The same with raw numbers in a unit: the baseline on this line of a score, all others times its slope."""
    slope, offset = line
    raw = slope * answer.value + offset * answer.statistic.startswith("baseline")
    notes = tuple("; ".join(filter(None, (note, unit))) for note in answer.notes)
    return replace(answer, raw=raw, raw_error=slope * answer.error, notes=notes)


def shape_of(model: AdditiveModel, column: int) -> Shape:
    """The shape of a column; of categories every code is a run of its own."""
    cells, values, errors = model.cells, model.shapes[column], model.errors[column]
    count = len(values) - 1
    starts, ends = np.arange(count), cells.ends(column)
    if not cells.categories[column]:
        changes = (np.diff(values[:-1]) != 0) | (np.diff(errors[:-1]) != 0)
        starts = np.flatnonzero(np.append(True, changes))
    low, high = ends[starts], ends[np.append(starts[1:], count)]
    at = np.append(starts, count)
    return Shape(np.append(low, math.nan), np.append(high, math.nan), values[at], errors[at])


def model_answers(model: AdditiveModel, of: str, columns: Columns) -> list[Answers]:
    """Shapes in raw units and tables of two columns, the baseline of the score, and how much every column matters."""
    shapes = [_shape_answers(shape_of(model, at), f"shape{of}", columns, at) for at in range(len(model.shapes))]
    tables = [_table_answers(model, pair, f"table{of}", columns) for pair in range(len(model.pairs))]
    importances = Answers.of(f"importance{of}", Columns.raw(columns.names), model.importances, math.nan)
    return [*shapes, *tables, Answers.plain(f"baseline{of}", model.baseline, math.nan), importances]


def _shape_answers(shape: Shape, statistic: str, columns: Columns, column: int) -> Answers:
    here, kind = columns.at([column] * len(shape.values)).noted(POSTERIOR), columns.kinds[column]
    ends, raw = _in_units(columns, column, np.array([shape.low, shape.high]))
    raw[np.abs(raw) < 1e-7 * np.abs(here.slope)] = 0.0
    names = [_names(kind, *own) for own in raw.T[:-1]] + [ELSE if isinstance(kind, Codes) else MISSING]
    answer = Answers(
        statistic, here.names, shape.values, shape.errors, shape.values, shape.errors, here.notes,
        np.vstack([ends, raw]), tuple(names), here.dates,
    )  # fmt: skip
    return replace(answer, ends=partial(no_ends, shape.values))


def _in_units(columns: Columns, column: int, ends: Array) -> tuple[Array, Array]:
    """Ends of runs within the public range of a column, which bounds on entries go a little beyond; and raw ones."""
    low, high = columns.ranges[column]
    ends = np.fmin(np.fmax(ends, low), high) + 0 * ends
    return ends, np.sort(columns.raw_value(column, ends), axis=0)


def _names(kind: Any, low: float, high: float) -> str:
    """The categories whose codes are between these ends."""
    if not isinstance(kind, Codes):
        return ""
    return ", ".join(name for code, name in zip(kind.values, kind.names) if low <= code <= high)


def _table_answers(model: AdditiveModel, pair: int, statistic: str, columns: Columns) -> Answers:
    """A line for what every two groups add."""
    first, second, table = model.pairs[pair]
    rows, others = (_groups_in_words(model, at, columns) for at in (first, second))
    words = tuple(f"{row}; {other}" for row in rows.values() for other in others.values())
    both = Columns.raw([f"{columns.names[first]}, {columns.names[second]}"] * len(words))
    cells = np.ix_(list(rows), list(others))
    values, errors = table[cells].ravel(), model.pair_errors[pair][cells].ravel()
    answer = replace(Answers.of(statistic, both.noted(POSTERIOR), values, errors), categories=words)
    return replace(answer, ends=partial(no_ends, values))


def _groups_in_words(model: AdditiveModel, column: int, columns: Columns) -> dict[int, str]:
    """What each group of a column holds: values from one end to another, or categories."""
    groups, kind, edges = model.groups[column], columns.kinds[column], model.cells.ends(column)
    words, coded = {}, bool(model.cells.categories[column])
    for group in np.unique(groups[:-1]).tolist():
        inside = np.flatnonzero(groups[:-1] == group)
        starts = inside if coded else inside[:1]
        stops = starts + 1 if coded else inside[-1:] + 1
        ends, raw = _in_units(columns, column, np.array([edges[starts], edges[stops]]))
        shown = raw if columns.has_units(column) else ends
        parts = [_names(kind, *own) or (f"{own.mean():g}" if coded else f"{own[0]:g} to {own[1]:g}") for own in shown.T]
        words[int(group)] = ", ".join(parts)
    return words | {int(groups[-1]): ELSE if isinstance(kind, Codes) else MISSING}


def shap_values(model: AdditiveModel, codes: list[Cells]) -> Array:
    """Shapley values of a score, shape (n_samples, n_columns): what each cell adds to the expected score.

    Columns that are left out of a coalition are drawn independently of each other, by released shares of their cells.
    A shape gives all to its column, less its mean; a table of several columns gives each what it adds where it becomes
    known behind some others, in all orders, so that all values and the expected score add up to the score.
    """
    values = np.empty((len(codes[0]), len(model.shapes)))
    for column, (shape, shares, code) in enumerate(zip(model.shapes, model.shares, codes)):
        values[:, column] = (shape - shape @ shares)[code]
    for table in model.tables():
        place = tuple(groups[codes[column]] for column, groups in table.groups.items())
        for column, of_column in zip(table.groups, _shapley(table.values, table.shares(model.shares))):
            values[:, column] += of_column[place]
    return values


def _shapley(values: Array, shares: list[Array]) -> list[Array]:
    """What each axis of a table adds to its mean where it is known beside some others, over all orders of the axes.

    A share t of the others is known: that is a polynomial in t, whose integral from 0 to 1 a few points give exactly.
    """
    points, weights = np.polynomial.legendre.leggauss(max(1, math.ceil(values.ndim / 2)))
    found = [np.zeros_like(values) for _ in shares]
    for part, weight in zip((1 + points) / 2, weights / 2):
        for axis, total in enumerate(found):
            known = values
            for other, own in enumerate(shares):
                unknown = np.expand_dims(np.tensordot(known, own, (other, 0)), other)
                known = known - unknown if other == axis else part * known + (1 - part) * unknown
            total += weight * known
    return found


def expected_score(model: AdditiveModel) -> float:
    """The score that is expected of rows whose columns are drawn by released shares, independently."""
    of_shapes = sum(float(shape @ shares) for shape, shares in zip(model.shapes, model.shares))
    return model.baseline + of_shapes + sum(mean(table.values, table.shares(model.shares)) for table in model.tables())
