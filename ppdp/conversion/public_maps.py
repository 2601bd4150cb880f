"""Public maps that stand for scikit-learn's transformers: those that look at no value once bounds are declared."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from ppdp.callables import refuse_fitted
from ppdp.checks import choice, number, pair
from ppdp.conversion.categories import Encoded, OneHot
from ppdp.conversion.maps import Binarized, Binned, Filled, Mapped, Normalised, Powers, PublicMap, Scaled
from ppdp.conversion.parameters import Step
from ppdp.conversion.superfluous import nearest

__all__ = ["PUBLIC", "Declared", "is_public", "public_map"]


@dataclass(frozen=True)
class Declared:
    """Public facts that the user declares for steps.

    Attributes
    ----------
    categories : mapping
        Public categories by column, for encoders that have none.
    functions : mapping
        Public ranges of what functions return, by step.
    columns, steps : set
        The columns whose categories, and the steps whose ranges, were asked for so far.
    """

    categories: Mapping[Any, Any] = field(default_factory=dict)
    functions: Mapping[str, Any] = field(default_factory=dict)
    columns: set[Any] = field(default_factory=set)
    steps: set[str] = field(default_factory=set)


def _lists(step: Step, given: Any, columns: Any, declared: Declared) -> tuple[tuple[Any, ...], ...]:
    """Public categories, one tuple for each column."""
    if isinstance(given, str):
        names = [columns] if isinstance(columns, (str, int)) else columns
        known = [] if names is None or isinstance(names, slice) else list(names)
        declared.columns.update(known)
        missing = [name for name in known if name not in declared.categories]
        if not known:
            step.refuse(
                "which categories occur would be read off the rows, and its columns have no names here.",
                f"{step.kind}(categories=[['a', 'b'], ...]), a list for each column; "
                "or name its columns in a ColumnTransformer.",
            )
        if missing:
            shown = ", ".join(f"{name!r}: [...]" for name in missing)
            slips = [(name, nearest(name, declared.categories)) for name in missing]
            told = "".join(f" {slip!r} is declared: did you mean {name!r}?" for name, slip in slips if slip is not None)
            step.refuse(
                "which categories occur would be read off the rows.",
                f"categories={{{shown}}} from public knowledge.{told}",
            )
        given = [declared.categories[name] for name in known]
    try:
        return tuple(tuple(_plain(c) for c in categories) for categories in given)
    except TypeError:
        step.refuse("categories are no lists of labels.", "one list for each column: categories=[['a', 'b']].")


def _plain(category: Any) -> Any:
    return category.item() if isinstance(category, np.generic) else category


_RARE = dict.fromkeys(
    ("min_frequency", "max_categories"), "merge rare categories by public knowledge: counts are read off the rows."
)


def _one_hot(step: Step, columns: Any, declared: Declared) -> PublicMap:
    given = step.read("categories", "drop", "handle_unknown", fixes=_RARE)
    categories = _lists(step, given["categories"], columns, declared)
    if given["handle_unknown"] != "ignore":
        step.changed.append("another category is a row of zeros: an error would tell of a row")
    expects = given["handle_unknown"] == "ignore" or any(_has_gap(c) for c in categories)
    return OneHot(categories, expects=expects, step=step.name, dropped=_dropped(step, given["drop"], categories))


def _has_gap(categories: tuple[Any, ...]) -> bool:
    return any(c is None or (isinstance(c, float) and math.isnan(c)) for c in categories)


def _dropped(step: Step, drop: Any, categories: tuple[tuple[Any, ...], ...]) -> tuple[Any, ...]:
    """The position of the category of each column that gets no column; None if all have one."""
    if drop is None:
        return ()
    if isinstance(drop, str):
        return tuple(0 if drop == "first" or len(c) == 2 else None for c in categories)
    try:
        return tuple(c.index(_plain(d)) for c, d in zip(categories, drop))
    except ValueError:
        step.refuse("drop names a category that is not declared.", "drop='first'.")


def _ordinal(step: Step, columns: Any, declared: Declared) -> PublicMap:
    given = step.read("categories", "handle_unknown", "unknown_value", "encoded_missing_value", fixes=_RARE)
    categories = _lists(step, given["categories"], columns, declared)
    unknown, missing = 0.0, float(given["encoded_missing_value"])
    if given["handle_unknown"] == "use_encoded_value" and given["unknown_value"] == given["unknown_value"]:
        unknown = float(given["unknown_value"])
    else:
        step.changed.append("another category counts as the first: an error or a gap would tell of a row")
    expects = not math.isnan(missing) or any(_has_gap(c) for c in categories)
    return Encoded(categories, expects=expects, step=step.name, unknown=unknown, missing=missing)


def _bins(step: Step, columns: Any, declared: Declared) -> PublicMap:
    given = step.read("n_bins", "encode", "strategy")
    if given["strategy"] != "uniform" or not isinstance(given["n_bins"], int):
        step.refuse("its edges would be read off the rows.", "strategy='uniform' with one number of bins.")
    step.changed.append("bins of the public ranges")
    return Binned(given["n_bins"], hot=given["encode"] != "ordinal", step=step.name)


def _function(step: Step, columns: Any, declared: Declared) -> PublicMap | None:
    given = step.read("func", "kw_args")
    if given["func"] is None:
        return None
    if not callable(given["func"]):
        step.refuse("func is not callable.", "func=np.log1p, or a function of your own.")
    keywords = given["kw_args"] or {}
    if not isinstance(keywords, Mapping):
        step.refuse("kw_args is no mapping.", "kw_args={'name': value}.")
    refuse_fitted(partial(given["func"], **keywords), step.name)
    declared.steps.add(step.name)
    return Mapped(given["func"], dict(keywords), declared.functions.get(step.name), step=step.name)


def _constant(step: Step, columns: Any, declared: Declared) -> PublicMap:
    given = step.read("strategy", "fill_value", "missing_values", fixes={"add_indicator": "leave it out."})
    value = given["missing_values"]
    if value is not None and not (isinstance(value, float) and math.isnan(value)):
        step.refuse(f"missing_values={value!r} has no twin.", "put NaN for gaps before the pipeline.")
    fill = 0.0 if given["fill_value"] is None else _plain(given["fill_value"])
    if isinstance(fill, str):
        return _Label(fill, step.name)
    return Filled(number("fill_value", int(fill) if isinstance(fill, bool) else fill, step.name), step.name)


@dataclass(frozen=True)
class _Label(PublicMap):
    """Gaps count as a label; an encoder behind it takes it over."""

    label: str
    step: str = ""


def _scaler(step: Step, columns: Any, declared: Declared) -> PublicMap:
    given = step.read("feature_range") if step.kind == "MinMaxScaler" else step.read()
    step.changed.append("by public ranges instead of the smallest and largest values")
    if step.kind == "MaxAbsScaler":
        return Scaled(None, step.name)
    return Scaled(pair("feature_range", given["feature_range"], step.name), step.name)


def _normaliser(step: Step, columns: Any, declared: Declared) -> PublicMap:
    return Normalised(choice("norm", step.read("norm")["norm"], ["l1", "l2", "max"], step.name), step.name)


def _threshold(step: Step, columns: Any, declared: Declared) -> PublicMap:
    return Binarized(number("threshold", step.read("threshold")["threshold"], step.name), step.name)


def _powers(step: Step, columns: Any, declared: Declared) -> PublicMap:
    given = step.read("degree", "interaction_only", "include_bias")
    degree = tuple(given["degree"]) if isinstance(given["degree"], (list, tuple)) else given["degree"]
    return Powers(degree, bool(given["interaction_only"]), bool(given["include_bias"]), step.name)


PUBLIC: dict[str, Callable[[Step, Any, Declared], PublicMap | None]] = {
    "Binarizer": _threshold,
    "FunctionTransformer": _function,
    "KBinsDiscretizer": _bins,
    "MaxAbsScaler": _scaler,
    "MinMaxScaler": _scaler,
    "Normalizer": _normaliser,
    "OneHotEncoder": _one_hot,
    "OrdinalEncoder": _ordinal,
    "PolynomialFeatures": _powers,
}


def _waiting(maps: list[PublicMap]) -> str | None:
    """The label that gaps become, if no encoder has taken it over yet."""
    return maps[-1].label if maps and isinstance(maps[-1], _Label) else None


def is_public(step: Step) -> bool:
    """Whether it becomes a public map of each row."""
    return step.kind in PUBLIC or (step.kind == "SimpleImputer" and step.given()["strategy"] == "constant")


def public_map(steps: list[Step], columns: Any, declared: Declared) -> tuple[PublicMap, ...]:
    """The maps of some public steps, one after the other.

    Parameters
    ----------
    steps : list of Step
        Of which :func:`is_public` holds.
    columns : object
        The columns to which they apply, as in a ``ColumnTransformer``; None is all.
    declared : Declared
        What the user declares.

    Raises
    ------
    InvalidParameter
        If a parameter has no twin.
    """
    maps: list[PublicMap] = []
    for step in steps:
        made = (
            _constant(step, columns, declared)
            if step.kind == "SimpleImputer"
            else PUBLIC[step.kind](step, columns, declared)
        )
        if made is None:
            continue
        waiting = _waiting(maps)
        if waiting is not None:
            maps.pop()
            if not isinstance(made, (OneHot, Encoded)) or any(waiting not in c for c in made.categories):
                step.refuse(f"gaps become {waiting!r}, which is no category of it.", "add it to categories.")
            made = replace(made, gap=waiting, expects=True)
        maps.append(made)
    waiting = _waiting(maps)
    if waiting is not None:
        steps[-1].refuse(f"gaps become the label {waiting!r}, and rows hold numbers.", "put an encoder behind it.")
    return tuple(maps)
