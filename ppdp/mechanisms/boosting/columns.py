"""What users say of columns: which hold categories, and with which predictions must rise or fall."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ppdp.core.checks import integer, shown
from ppdp.core.domain import Domain, largest_entry
from ppdp.data.unit_conversion import Codes, Columns
from ppdp.exceptions import InvalidParameter

MOST_CATEGORIES = 1024
CLIPPED = (
    "beside categories, numbers of {} below -1 or above 1 count as these ends, and no stage in front says that they lie"
    " between them, as MinMaxScaler(ranges=...) does."
)
NO_CODES = (
    "categorical_features takes codes 0, 1, ..., and {} may be below 0, as what is scaled: leave the name out for"
    " numbers, or take CategoryEncoder(..., encoding='ordinal') in front."
)
ROUNDING = 1e-9  # by which an end of a range may be beyond what is meant


def coded(columns: Columns) -> dict[int, int]:
    """Columns that hold codes of categories as stages in front make them, and how many there are."""
    kinds = enumerate(columns.kinds)
    return {i: int(kind.values[-1]) + 1 for i, kind in kinds if isinstance(kind, Codes) and not kind.indicates}


def doubts(categorical: Any, columns: Columns) -> tuple[str, ...]:
    """Warnings of numbers beside categories that may lie beyond -1 and 1, and of categories that are no codes."""
    if categorical is None or isinstance(categorical, (str, bytes)) or not len(categorical):
        return ()
    count = len(columns.names)
    here = {each % count if isinstance(each, (int, np.integer)) else each for each in categorical}
    own = [i in here or name in here for i, name in enumerate(columns.names)]
    far = np.abs(columns.ranges).max(axis=1) > 1 + ROUNDING
    scaled = [low < 0 and not isinstance(kind, Codes) for low, kind in zip(columns.ranges[:, 0], columns.kinds)]
    found = [
        (CLIPPED, [name for name, mine, beyond in zip(columns.names, own, far) if beyond and not mine]),
        (NO_CODES, [name for name, mine, less in zip(columns.names, own, scaled) if less and mine]),
    ]
    return tuple(words.format(", ".join(names)) for words, names in found if names)


def categories_of(model: Any, domain: Domain) -> list[int]:
    """Number of categories of each column; 0 of one of numbers."""
    columns, given = [0] * domain.d, model.categorical_features
    if given is None:
        return columns
    most = math.floor(largest_entry(domain)) + 1
    if not isinstance(given, Mapping):
        given = dict.fromkeys(_listed(given, model, "categorical_features", "{'ward': 12}"), most)
    for column, count in given.items():
        place = _place(model, "categorical_features", column, domain)
        if isinstance(count, (int, np.integer)) and count > MOST_CATEGORIES:
            what = f"categorical_features has {count:,} categories of {shown(column)}, and at most {MOST_CATEGORIES:,}."
            fix = f"TargetMeanEncoder(columns=[{shown(column)}]) in front, and {shown(column)} left out here; or fewer."
            raise InvalidParameter(what, stage=type(model).__name__, fix=fix, parameter="categorical_features")
        columns[place] = integer("categorical_features", count, model)
    return columns


def _place(model: Any, parameter: str, column: Any, domain: Domain) -> int:
    """Position of a column that a parameter names."""
    names = {name: place for place, name in enumerate(domain.feature_names or ())}
    place = names.get(column, column)
    if isinstance(place, bool) or not isinstance(place, (int, np.integer)) or not -domain.d <= place < domain.d:
        what = f"{parameter} names {shown(column)}, which is no column here."
        fix = f"columns among {', '.join(map(str, names or range(domain.d)))}."
        raise InvalidParameter(what, stage=type(model).__name__, fix=fix, parameter=parameter)
    return int(place) % domain.d


def directions_of(model: Any, domain: Domain, categories: Sequence[int], scores: int) -> list[int]:
    """1 of columns with which scores must not fall, -1 where they must not rise, else 0."""
    given, directions = model.monotonic_cst, [0] * domain.d
    if given is None:
        return directions
    if isinstance(given, Mapping):
        for column, direction in given.items():
            directions[_place(model, "monotonic_cst", column, domain)] = direction
    else:
        directions = list(_listed(given, model, "monotonic_cst", "{'age': 1}"))
    why = _what_is_wrong(directions, domain.d, categories, scores)
    if why:
        what = f"monotonic_cst {why}."
        fix = "1, -1 or 0 for every column, or a dict of columns of numbers, of targets or two classes."
        raise InvalidParameter(what, stage=type(model).__name__, fix=fix, parameter="monotonic_cst")
    return [int(direction) for direction in directions]


def _what_is_wrong(directions: list[Any], d: int, categories: Sequence[int], scores: int) -> str:
    if len(directions) != d:
        return f"has {len(directions)} entries for {d} columns"
    for direction in directions:
        if isinstance(direction, bool) or not isinstance(direction, (int, np.integer)) or direction not in (-1, 0, 1):
            return f"must hold -1, 0 and 1, got {shown(direction)}"
    if any(direction and count for direction, count in zip(directions, categories)):
        return "says how categories are ordered, which have no order"
    if scores > 1 and any(directions):
        return "does not go with several classes, which share what one of them gains"
    return ""


def _listed(given: Any, model: Any, parameter: str, example: str) -> list[Any]:
    if isinstance(given, (str, bytes)) or not isinstance(given, (Sequence, np.ndarray)):
        what = f"{parameter} must be a mapping of columns, a list, or None."
        raise InvalidParameter(what, stage=type(model).__name__, fix=f"{parameter}={example}.", parameter=parameter)
    return list(given)
