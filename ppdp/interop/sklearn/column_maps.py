"""Public maps that stand for scikit-learn's transformers: those that look at no value once bounds are declared."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ppdp.core.checks import choice, flag, integer, number, pair, shown
from ppdp.interop.sklearn.declared_facts import DeclaredFacts
from ppdp.interop.sklearn.feature_maps import FEATURES
from ppdp.interop.sklearn.steps import Step, is_word
from ppdp.transformers.columns.categories import (
    MISSING,
    Categorical,
    Encoded,
    FillMode,
    HashedCategories,
    OneHot,
    ReleasedCategories,
    is_gap,
)
from ppdp.transformers.columns.features import PolynomialTerms
from ppdp.transformers.columns.maps import Binarized, Binned, FillConstant, Normalised, PublicMap, RangeScale


def _names(columns: Any) -> list[Any]:
    """Names of columns as in a ``ColumnTransformer``; none if they have none, as in a slice or a mask."""
    names = [columns] if isinstance(columns, (str, int)) else columns
    masked = names is None or isinstance(names, slice) or any(isinstance(one, bool) for one in names)
    return [] if masked else list(names)


def _released(step: Step, given: Any, facts: DeclaredFacts, columns: Any) -> int | None:
    """How many categories of each of its columns are to be released at most; None if they are public."""
    if not isinstance(given, str):
        return None
    names = _names(columns)
    most = facts.most_of(names[0] if names else None)
    if most is None:
        return None
    facts.encoded.update(names)
    step.changed.append(f"the categories that many rows hold are released with noise, at most {most} of a column")
    return most


def _hashed(step: Step, given: Any, facts: DeclaredFacts, columns: Any) -> int | None:
    """Into how many buckets each of its columns goes; None if their categories are known or released."""
    names = _names(columns)
    buckets = facts.buckets_of(names[0]) if names and isinstance(given, str) else None
    if buckets is not None:
        facts.encoded.update(names)
        step.changed.append(f"categories go into {buckets} buckets of a public hash, which several may share")
    return buckets


def _lists(step: Step, given: Any, facts: DeclaredFacts, columns: Any) -> tuple[tuple[Any, ...], ...]:
    """Public categories, one tuple for each column."""
    if isinstance(given, str):
        given = _declared(step, facts, _names(columns))
    if not isinstance(given, (list, tuple, np.ndarray)):
        step.refuse("categories are no lists of values.", "one list for each column: categories=[['a', 'b']].")
    lists = tuple(_category_list(step, one) for one in given)
    if any(map(_has_gap, lists)):
        step.changed.append(_ONE_GAP)
    if any(not any(isinstance(category, str) for category in one) for one in lists):
        step.changed.append("a number that is written as text counts as that number")
    if any(_writes_number(category) for one in lists for category in one):
        step.changed.append("numbers that are not written as text are none of its categories, as '1' and 1 differ")
    return lists


def _declared(step: Step, facts: DeclaredFacts, names: list[Any]) -> list[Any]:
    """What is declared of columns whose encoder has no categories of its own."""
    facts.encoded.update(names)
    if not names:
        step.refuse(
            "which categories occur would be read off the rows, and its columns have no names here.",
            f"{step.kind}(categories=[['a', 'b'], ...]), a list for each column; "
            "or name its columns in a ColumnTransformer, or by from_sklearn(..., types=X.dtypes); or "
            'categories="private".',
        )
    missing = [name for name in names if name not in facts.categories]
    if missing:
        why = f"which categories of {', '.join(map(repr, missing))} occur would be read off the rows."
        facts.lack("categories", dict.fromkeys(missing, "[...]"), why, step.name)
    return [facts.categories[name] for name in names]


def _writes_number(category: Any) -> bool:
    """Whether it is text that float() reads."""
    try:
        return isinstance(category, str) and float(category) is not None
    except ValueError:
        return False


_ONE_GAP = "None, NaN and NA are one and the same"


def _category_list(step: Step, given: Any) -> tuple[Any, ...]:
    """The categories of one column: text, numbers, True and False, and None or NaN for missing values."""
    given = given.tolist() if hasattr(given, "tolist") else given  # arrays and pandas' own lists
    categories = tuple(map(_plain, given)) if isinstance(given, (list, tuple)) else None
    if categories is not None and all(isinstance(category, str | int | float | None) for category in categories):
        return categories
    step.refuse(
        "categories are no lists of values.",
        "one list for each column: categories=[['a', 'b']]; each is text, a number, or None or NaN for missing values.",
    )


def _plain(category: Any) -> Any:
    return category.item() if isinstance(category, np.generic) else category


_RARE = ("min_frequency", "max_categories")


def one_hot(step: Step, facts: DeclaredFacts, columns: Any) -> PublicMap:
    """A column for every declared category."""
    given = step.read("categories", "drop", "handle_unknown", *_RARE)
    unknown = choice("handle_unknown", given["handle_unknown"], ("error", *_ZEROS), step.name)
    most = _released(step, given["categories"], facts, columns)
    if most is not None:
        if given["drop"] is not None:
            step.refuse("drop names a category, and they are to be released.", "drop=None.")
        step.changed.append("any other category, and a missing value, is a row of zeros")
        return ReleasedCategories(most)
    buckets = _hashed(step, given["categories"], facts, columns)
    if buckets is not None:
        return HashedCategories(buckets)
    categories = _lists(step, given["categories"], facts, columns)
    _unmerged(step, given)
    if unknown == "error":
        step.changed.append("what is no category, missing values too, is a row of zeros: an error would tell of a row")
    expects = unknown != "error" or any(_has_gap(c) for c in categories)
    return OneHot(categories, expects=expects, step=step.name, dropped=_dropped(step, given["drop"], categories))


def _unmerged(step: Step, given: Mapping[str, Any]) -> None:
    """Rare categories stay apart: which are rare is read off the rows."""
    rare = [f"{name}={shown(given[name])}" for name in _RARE if given[name] is not None]
    if rare:
        step.changed.append(f"{' and '.join(rare)} has no effect: every declared category stays, however rare it is")


_ZEROS = ("ignore", "infrequent_if_exist", "warn")  # no category is infrequent here


def _has_gap(categories: tuple[Any, ...]) -> bool:
    return any(map(is_gap, categories))


def _dropped(step: Step, drop: Any, categories: tuple[tuple[Any, ...], ...]) -> tuple[Any, ...]:
    """The position of the category of each column that gets no column; None if all have one."""
    if drop is None:
        return ()
    if isinstance(drop, str):
        choice("drop", drop, ("first", "if_binary"), step.name)
        return tuple(0 if drop == "first" or len(c) == 2 else None for c in categories)
    names = drop.tolist() if hasattr(drop, "tolist") else drop
    if not isinstance(names, (list, tuple)) or len(names) != len(categories):
        step.refuse("drop must name one category of each column.", "drop='first', or a list with a category each.")
    return tuple(_position(step, name, one) for name, one in zip(names, categories))


def _position(step: Step, name: Any, categories: tuple[Any, ...]) -> int:
    """Where a category stands."""
    for i, category in enumerate(categories):
        if (is_gap(name) and is_gap(category)) or category == _plain(name):
            return i
    step.refuse("drop names a category that is not declared.", "drop='first'.")


def ordinal(step: Step, facts: DeclaredFacts, columns: Any) -> PublicMap:
    """Codes as scikit-learn has them: NaN among the categories has a code of its own, which may be a gap again."""
    given = step.read("categories", "handle_unknown", "unknown_value", "encoded_missing_value", *_RARE)
    how = choice("handle_unknown", given["handle_unknown"], ("error", "use_encoded_value"), step.name)
    most = _released(step, given["categories"], facts, columns)
    if most is not None:
        step.changed.append("any other category, and a missing value, is -1")
        return ReleasedCategories(most, hot=False)
    if _hashed(step, given["categories"], facts, columns) is not None:
        step.refuse("numbers of buckets mean nothing.", "a OneHotEncoder, or categories that are declared or private.")
    categories = _lists(step, given["categories"], facts, columns)
    _unmerged(step, given)
    named = [_nan_is_last(step, one) for one in categories]
    unknown, missing = 0.0, math.nan
    if how == "use_encoded_value" and not _is_nan(given["unknown_value"]):
        unknown = missing = number("unknown_value", given["unknown_value"], step.name)
    else:
        step.changed.append("another category counts as the first: an error or a missing value would tell of a row")
        step.changed.append("a missing value that is no category stays missing")
    if any(named):
        code = given["encoded_missing_value"]
        code = math.nan if _is_nan(code) else number("encoded_missing_value", code, step.name)
        if not all(named) and not (code == missing or (math.isnan(code) and math.isnan(missing))):
            what = "missing is a category in some of its columns, and has another code in the others."
            step.refuse(what, "an OrdinalEncoder for each of these sets of columns.")
        missing = code
    labels = tuple(one[:-1] if last else one for one, last in zip(categories, named))
    expects = any(named) or not math.isnan(missing)
    return Encoded(labels, expects=expects, step=step.name, unknown=unknown, missing=missing)


def _nan_is_last(step: Step, categories: tuple[Any, ...]) -> bool:
    """Whether NaN is one of the categories, as the last of them; beside numbers None is NaN."""
    text = any(isinstance(category, str) for category in categories)
    where = [i for i, category in enumerate(categories) if _is_nan(category) or (category is None and not text)]
    if where and where != [len(categories) - 1]:
        step.refuse("NaN must be the last category.", "categories=[['a', 'b', np.nan]].")
    return bool(where)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def bins(step: Step, facts: DeclaredFacts, columns: Any) -> PublicMap:
    """Bins of public ranges."""
    given = step.read("n_bins", "encode", "strategy")
    if not is_word(given["strategy"], "uniform") or isinstance(given["n_bins"], (list, tuple, np.ndarray)):
        what = "its edges would be read off the rows."
        step.refuse(what, "strategy='uniform' or 'quantile', with one number of bins.")
    bins = integer("n_bins", given["n_bins"], step.name, least=2)
    encode = choice("encode", given["encode"], ("onehot", "onehot-dense", "ordinal"), step.name)
    step.changed.append("bins of the public ranges instead of those between the smallest and largest values")
    if encode != "ordinal":
        step.changed.append("a missing value is a row of zeros")
    return Binned(bins, hot=encode != "ordinal", step=step.name)


def read_imputer(step: Step) -> dict[str, Any]:
    """Parameters of an imputer of missing values that are NaN."""
    fixes = {"add_indicator": "leave it out: which columns have missing values is read off the rows."}
    given = step.read("strategy", "fill_value", "missing_values", fixes=fixes)
    if not is_gap(given["missing_values"]):
        why = f"missing_values={given['missing_values']!r} has no counterpart."
        step.refuse(why, "put NaN for missing values before the pipeline.")
    return given


def fill_value(step: Step) -> Any:
    """The constant for missing values: a number, a label, or None for scikit-learn's choice."""
    fill = _plain(read_imputer(step)["fill_value"])
    if fill is None or isinstance(fill, str):
        return fill
    return number("fill_value", int(fill) if isinstance(fill, bool) else fill, step.name)


def filled(step: Step) -> FillConstant:
    """A constant for missing values of columns that hold numbers."""
    value = fill_value(step)
    if isinstance(value, str):
        why = f"missing values become the category {value!r}, and rows hold numbers."
        step.refuse(why, "put an encoder directly behind it.")
    if value is None:
        step.changed.append("missing values become 0")
    return FillConstant(0.0 if value is None else value, step.name)


def with_missing(made: Categorical | ReleasedCategories | HashedCategories, step: Step, columns: Any) -> PublicMap:
    """An encoder of text behind an imputer whose constant is one of its categories."""
    value = fill_value(step)
    label = "missing_value" if value is None else value  # scikit-learn's default for text
    if isinstance(made, ReleasedCategories | HashedCategories):
        step.changed += [f"missing values are a category of their own, {str(label)!r}", _ONE_GAP]
        return replace(made, missing=str(label))
    lists, names = made.categories, _names(columns)
    names = names if len(names) == len(lists) else [f"column {position}" for position in range(len(lists))]
    lacking = [repr(name) for name, categories in zip(names, lists) if label not in categories]
    if lacking and not isinstance(label, str):
        what = f"missing values become {label!r}, which is no category of {', '.join(lacking)} in {made.step!r}."
        step.refuse(what, f"add {label!r} to its categories, or fill_value='a category'.")
    step.changed += [f"missing values become {label!r}", _ONE_GAP]
    if lacking:
        step.changed.append(f"{label!r} is the last category of {', '.join(lacking)}, where it was not declared")
        lists = tuple(one if label in one else (*one, label) for one in lists)
    return replace(made, categories=lists, gap=label, expects=True)


def most_frequent(made: PublicMap, step: Step, facts: DeclaredFacts) -> tuple[PublicMap, ...]:
    """An encoder behind an imputer of the most frequent label: of declared categories that one is released.

    Where the categories themselves are released, or go into buckets, missing values are one more of each column.
    """
    if isinstance(made, OneHot | Encoded) and not facts.releases_categories:
        step.changed += [
            "missing values become the category that most rows hold by noisy counts, which take a small part of the "
            "budget; strategy='constant', fill_value='missing' costs nothing",
            _ONE_GAP,
        ]
        return FillMode.before(made), made
    step.changed += ["missing values are a category of their own: the most frequent one is read off the rows", _ONE_GAP]
    if isinstance(made, OneHot):
        lists = tuple(one if _has_gap(one) else (*one, None) for one in made.categories)
        return (replace(made, categories=lists, expects=True),)
    if isinstance(made, Encoded):
        return (replace(made, missing=float(max(map(len, made.categories))), expects=True),)
    if isinstance(made, ReleasedCategories | HashedCategories):
        return (replace(made, missing=MISSING),)
    step.refuse("the most frequent value is read off the rows.", "put the encoder directly behind it.")


def range_scaler(step: Step, facts: DeclaredFacts, columns: Any) -> PublicMap:
    """Public ranges in place of those of the rows."""
    given = step.read("feature_range") if step.kind == "MinMaxScaler" else step.read()
    step.changed.append("by public ranges instead of the smallest and largest values; what lies outside is clipped")
    if step.kind == "MaxAbsScaler":
        return RangeScale(None, step.name)
    return RangeScale(pair("feature_range", given["feature_range"], step.name), step.name)


def normaliser(step: Step, facts: DeclaredFacts, columns: Any) -> PublicMap:
    """Rows of length 1."""
    return Normalised(choice("norm", step.read("norm")["norm"], ["l1", "l2", "max"], step.name), step.name)


def threshold(step: Step, facts: DeclaredFacts, columns: Any) -> PublicMap:
    """Zeros and ones."""
    return Binarized(number("threshold", step.read("threshold")["threshold"], step.name), step.name)


def powers(step: Step, facts: DeclaredFacts, columns: Any) -> PublicMap:
    """Products of columns."""
    given = step.read("degree", "interaction_only", "include_bias")
    degree = tuple(given["degree"]) if isinstance(given["degree"], (list, tuple)) else given["degree"]
    products, bias = (flag(name, given[name], step.name) for name in ("interaction_only", "include_bias"))
    made = PolynomialTerms(degree, products, bias, step.name)
    made.check()
    return made


MAPS: dict[str, tuple[str, Callable[..., Any]]] = {
    **FEATURES,
    "Binarizer": ("map anywhere", threshold),
    "KBinsDiscretizer": ("map", bins),
    "MaxAbsScaler": ("map", range_scaler),
    "MinMaxScaler": ("map", range_scaler),
    "Normalizer": ("map anywhere", normaliser),
    "OneHotEncoder": ("map", one_hot),
    "OrdinalEncoder": ("map", ordinal),
    "PolynomialFeatures": ("map anywhere", powers),
}
"""By class: a public map "anywhere", or only at the entrance, and what makes it of a step, facts and columns."""
