"""A map of columns as a fitted ``ColumnTransformer``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain, pairwise
from typing import Any, NoReturn

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from ppdp.data.categories import has_one_spelling
from ppdp.data.rows import Array
from ppdp.exceptions import ExportError
from ppdp.interop.sklearn import fitted
from ppdp.transformers.columns.block import Block
from ppdp.transformers.columns.categories import Labelled, OneHot, is_gap
from ppdp.transformers.columns.maps import AnySize, ColumnFacts, Filled, PublicMap, Scaled, Within
from ppdp.transformers.columns.unlisted import Unlisted


def plain_columns(name: str, twin: Any, columns: Sequence[str] | None) -> tuple[Any, list[ColumnFacts]]:
    """The fitted object for a frame of these columns, or an array; and what is known of the columns of each block."""
    import pandas as pd

    parts, ends, row = [], [], np.zeros((1, twin.n_features_in_), dtype=object)
    for i, (block, positions, facts) in enumerate(twin.located()):
        names = None if columns is None else [columns[position] for position in positions]
        parts.append((f"columns{i}", fitted.named(_block(name, block, facts), names), positions))
        ends.append(facts[-1])
        if block.encoder is not None:
            row[0, positions] = [next(iter(labels), None) for labels in _labels(block.encoder)]
    frozen = [(label, FrozenEstimator(part), positions) for label, part, positions in parts]
    table = row if columns is None else pd.DataFrame(row, columns=list(columns))
    made = ColumnTransformer(frozen).fit(table)  # which finds how wide they are
    made.transformers, made.transformers_ = parts, [*parts, *made.transformers_[len(parts) :]]
    return made, ends


def _block(name: str, block: Block, facts: Sequence[ColumnFacts]) -> Any:
    """The maps of a block, one after the other, behind the clip to its ranges."""
    steps = [*zip(block.maps, facts)]
    parts = _clip(name, block, facts[0], block.maps[:1])
    if steps and isinstance(steps[0][0], Labelled | Unlisted):
        own = 1 + (len(steps) > 1 and isinstance(steps[1][0], OneHot))
        parts, steps = [*parts, *_encoder(name, steps[0][0], steps[:own])], steps[own:]
    for i, (step, given) in enumerate(steps, start=1):
        if isinstance(step, Within):
            parts += _clip(name, block, given.after(step), [later for later, _ in steps[i : i + 1]])
        elif not isinstance(step, AnySize):
            parts.append(_map(name, step, given))
    return make_pipeline(*parts) if parts else fitted.scaler(*np.tile([[0.0], [1.0]], len(facts[0].names)))


def _clip(name: str, block: Block, known: ColumnFacts, then: Sequence[PublicMap]) -> list[Any]:
    """The clip to ranges, where there are some and the next map does not clip to them."""
    low, high = known.ranges.T
    bounded = np.isfinite(known.ranges)
    if not bounded.any() or any(isinstance(step, Scaled) and step.target is not None for step in then):
        return []
    if not bounded.all() or not (high > low).all():
        _refuse(name, f"not every one of {block.described} has a range.", "ranges= for all of them.")
    return [fitted.box(low, high)]


def _labels(encoder: Any) -> Sequence[Sequence[Any]]:
    """The labels of every column, as cells hold them."""
    if isinstance(encoder, Unlisted):
        return encoder.found or ()
    return encoder.labels if isinstance(encoder, Labelled) else encoder.categories


def _encoder(name: str, encoder: Labelled | Unlisted, steps: Sequence[tuple[PublicMap, ColumnFacts]]) -> list[Any]:
    """Found by trying what becomes of each label and kind of gap: that is added to what becomes of any other cell."""
    cells: list[list[Any]] = []
    codes: list[Array] = []
    for position in range(len(_labels(encoder))):
        tried, read = _tried(name, encoder, position)
        cells.append(tried[:-1])
        codes.append(read)
    starts = np.cumsum([0, *map(len, cells)])
    rows = np.tile([read[-1] for read in codes], (1 + starts[-1], 1))
    for position, (start, read) in enumerate(zip(starts, codes)):
        rows[start + 1 : start + len(read), position] = read[:-1]
    for step, given in steps:
        rows = step.apply(rows, given)
    other, added = rows[0], rows[1:] - rows[0]
    needed = added.any(axis=1)
    needed[starts[:-1]] = True  # an encoder knows at least one label of each column
    parts = [_found([[cell for cell, keep in zip(own, needed[at:]) if keep] for own, at in zip(cells, starts)])]
    matrix = added[needed]
    if not np.array_equal(matrix, np.eye(len(matrix))):
        parts.append(fitted.linear(matrix))
    return [*parts, fitted.scaler(-other, np.ones(len(other)))] if other.any() else parts


def _tried(name: str, encoder: Labelled | Unlisted, position: int) -> tuple[list[Any], Array]:
    """The labels of a column, gaps, and at the end a cell that is neither; and the codes of all of them."""
    import pandas as pd

    labels, reading = [*_labels(encoder)[position]], encoder.reading(position)
    if reading is None:
        numbers = [*sorted(map(float, labels)), math.nan, math.inf]
        return numbers, np.array(numbers)
    cells = [*labels, None, math.nan, object()]
    if isinstance(encoder, Unlisted):
        if not all(map(has_one_spelling, labels)):
            _refuse(name, "a category that is a number or a truth value has several spellings.", "declare categories.")
        cells = [*labels, *dict.fromkeys(["", encoder.missing or ""]), None, math.nan, object()]
    return cells, np.asarray(reading.codes(pd.Series(cells, dtype=object), name))


def _map(name: str, step: PublicMap, given: ColumnFacts) -> Any:
    """One map."""
    low, high = given.ranges.T
    if isinstance(step, Filled):
        return fitted.imputer(given.middle if step.value is None else np.full(len(low), float(step.value)))
    if isinstance(step, Scaled) and step.target is not None and (high > low).all():
        return fitted.range_scaler(low, high, step.target)
    if isinstance(step, Scaled) and step.target is None:
        largest = np.abs(given.ranges).max(axis=1)
        return fitted.scaler(np.zeros(len(low)), np.where(largest > 0, largest, 1.0))
    if isinstance(step, OneHot):
        return _one_hot(step.step or name, step)
    _refuse(
        step.step or name,
        "it does with some cells what no object of scikit-learn does.",
        "numbers with ranges and constants for missing values, CategoryEncoder, and OneHotEncoder without a category "
        "for missing values, have plain twins.",
    )


def _one_hot(name: str, step: OneHot) -> Any:
    categories = [list(labels) for labels in step.categories]
    gone = step.dropped
    if step.gap is not None or any(map(is_gap, chain.from_iterable(categories))):
        _refuse(
            name,
            "missing values are a category, and scikit-learn knows several kinds of them.",
            "fill them first.",
        )
    if not all(map(_is_usual, categories)):
        _refuse(name, "scikit-learn takes text, or numbers in ascending order, as categories.", "declare them so.")
    if any(i is None for i in gone) and any(i is not None for i in gone):
        _refuse(name, "it drops a category of some columns only.", "drop='first', or none.")
    return _found(categories, [labels[i] for labels, i in zip(categories, gone) if i is not None])


def _found(categories: list[list[Any]], drop: Sequence[Any] = ()) -> Any:
    """A column for every category of every column; any other cell is a row of zeros."""
    import pandas as pd

    encoder = OneHotEncoder(
        categories=categories, drop=drop or None, handle_unknown="ignore", sparse_output=False, dtype=np.float64
    )
    first: dict[int, Any] = {i: np.array([labels[0]], dtype=_type(labels)) for i, labels in enumerate(categories)}
    return encoder.fit(pd.DataFrame(first))


def _type(labels: Sequence[Any]) -> type:
    return object if labels[0] is None or isinstance(labels[0], str) else np.float64


def _is_usual(labels: Sequence[Any]) -> bool:
    """Whether categories are text, or ascending numbers."""
    if any(isinstance(label, (str, bool)) for label in labels):
        return all(isinstance(label, str) for label in labels)
    return all(a < b for a, b in pairwise(labels))


def _refuse(name: str, message: str, fix: str) -> NoReturn:
    raise ExportError(message, stage=name, fix=fix)
