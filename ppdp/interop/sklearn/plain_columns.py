"""A map of columns as a fitted ``ColumnTransformer``."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise
from typing import Any, NoReturn

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from ppdp.exceptions import ExportError
from ppdp.interop.sklearn import fitted
from ppdp.transformers.columns.block import Block
from ppdp.transformers.columns.categories import OneHot, is_gap
from ppdp.transformers.columns.maps import ColumnFacts, Filled, PublicMap, Scaled


def plain_columns(name: str, twin: Any) -> tuple[Any, list[ColumnFacts]]:
    """The fitted object, and what is known of the columns that come out of each block."""
    import pandas as pd

    parts, ends, row = [], [], np.zeros((1, twin.n_features_in_), dtype=object)
    for i, (block, positions, facts) in enumerate(twin.located()):
        names = None if twin.names_ is None else [twin.names_[position] for position in positions]
        parts.append((f"columns{i}", fitted.named(_block(name, block, facts), names), positions))
        ends.append(facts[-1])
        if block.encoder is not None:
            row[0, positions] = [labels[0] for labels in block.encoder.categories]
    frozen = [(label, FrozenEstimator(part), positions) for label, part, positions in parts]
    table = row if twin.names_ is None else pd.DataFrame(row, columns=twin.names_)
    made = ColumnTransformer(frozen).fit(table)  # which finds how wide they are
    made.transformers, made.transformers_ = parts, [*parts, *made.transformers_[len(parts) :]]
    return made, ends


def _block(name: str, block: Block, facts: Sequence[ColumnFacts]) -> Any:
    """The maps of a block, one after the other, behind the clip to its ranges."""
    low, high = facts[0].ranges.T
    bounded = np.isfinite(facts[0].ranges)
    scaled = bool(block.maps) and isinstance(block.maps[0], Scaled) and block.maps[0].target is not None
    parts: list[Any] = []
    if bounded.any() and not scaled:  # else scaling clips
        if not bounded.all() or not (high > low).all():
            _refuse(name, f"not every one of {block.described} has a range.", "ranges= for all of them.")
        parts.append(fitted.box(low, high))
    parts += [_map(name, step, given) for step, given in zip(block.maps, facts)]
    return make_pipeline(*parts) if parts else fitted.scaler(np.zeros(len(low)), np.ones(len(low)))


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
        f"{type(step).__name__} does with some cells what no object of scikit-learn does.",
        "numbers with ranges and constants for missing values, and OneHotEncoder without a category for them, "
        "have plain twins.",
    )


def _one_hot(name: str, step: OneHot) -> Any:
    import pandas as pd

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
    drop = [labels[i] for labels, i in zip(categories, gone) if i is not None]
    encoder = OneHotEncoder(
        categories=categories, drop=drop or None, handle_unknown="ignore", sparse_output=False, dtype=np.float64
    )
    first: dict[int, Any] = {i: np.array([labels[0]], dtype=_type(labels)) for i, labels in enumerate(categories)}
    return encoder.fit(pd.DataFrame(first))


def _type(labels: Sequence[Any]) -> type:
    return object if isinstance(labels[0], str) else np.float64


def _is_usual(labels: Sequence[Any]) -> bool:
    """Whether categories are text, or ascending numbers."""
    if any(isinstance(label, (str, bool)) for label in labels):
        return all(isinstance(label, str) for label in labels)
    return all(a < b for a, b in pairwise(labels))


def _refuse(name: str, message: str, fix: str) -> NoReturn:
    raise ExportError(message, stage=name, fix=fix)
