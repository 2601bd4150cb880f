"""A declaration of every column of a table, from names and types alone, with blanks for what only people know."""

from __future__ import annotations

import json
import math
import os
import re
from collections import UserDict
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import groupby
from numbers import Real
from typing import Any

from sklearn.base import clone

from ppdp.bounds.release import MOST_CATEGORIES
from ppdp.core.boundary import discreet
from ppdp.core.checks import integer, labels, pair, shown
from ppdp.core.declared import PRIVATE
from ppdp.core.names import nearest
from ppdp.data.cells import seconds_of
from ppdp.data.column_types import NESTED, described, kind_of
from ppdp.data.engine.registry import opened_source
from ppdp.data.frames import named
from ppdp.data.validation import check_names, table_of, warn_of_cells
from ppdp.exceptions import DomainMismatch, InvalidInput, InvalidParameter, MissingBound, escaped
from ppdp.transformers.columns.categories import is_gap
from ppdp.transformers.columns.category_encoder import CategoryEncoder
from ppdp.transformers.columns.cell_parsers import is_date
from ppdp.transformers.columns.column_map import ColumnMap, make_column_map
from ppdp.transformers.columns.column_transformer import ColumnTransformer
from ppdp.transformers.columns.date_encoder import DateEncoder
from ppdp.transformers.columns.feature_hasher import FeatureHasher
from ppdp.transformers.columns.hashing_vectorizer import HashingVectorizer
from ppdp.transformers.columns.maps import MOST_COLUMNS, PublicMap, Unclipped
from ppdp.transformers.scale.min_max_scaler import MinMaxScaler

BLANK, DROP, WORDS = "?", "drop", "words"
MOST = 20  # private categories of a column, where nobody says how many

_FORMS = {
    "number": "[low, high], codes [1, 2, 3]",
    "text": '["a", "b"], {words = 256} for texts, dates ["1990-01-01", "2030-12-31"]',
    "date": '["1990-01-01", "2030-12-31"]',
    "unknown": '[low, high], ["a", "b"], {words = 256} for texts or dates ["1990-01-01", "2030-12-31"]',
}
"""What may stand for a blank, by the kind of the column."""


@discreet
def declare(X: Any) -> Declaration:
    """What must be declared of a table, from the names and types of its columns; no cell is looked at.

    Parameters
    ----------
    X : pandas, polars or Arrow table, or whatever else ``Pipeline.fit`` reads in blocks
        Whose categories, if a type has some, are not looked at either: somebody may have read them off the rows.

    Returns
    -------
    Declaration
        A mapping of columns, in which "?" is a blank.

    Examples
    --------
    >>> import pandas as pd
    >>> facts = declare(pd.DataFrame({"age": [50], "sex": pd.array(["F"], "string"), "smoker": [True]}))
    >>> print(facts)
    age = "?"  # int64: [low, high], codes [1, 2, 3], or "private" or "drop"
    sex = "?"  # string: ["a", "b"], {words = 256} for texts, dates ["1990-01-01", "2030-12-31"], or "private" or "drop"
    smoker = [0, 1]  # bool
    >>> facts.update(age=(18, 90), sex=["F", "M"])
    >>> facts.column_map().fit_transform(pd.DataFrame({"age": [90], "sex": ["F"], "smoker": [True]}))
    array([[1., 1., 0., 0., 1.]])
    """
    if type(X).__name__ == "LazyFrame":  # which warns where it is asked for its columns
        raise InvalidInput("X is a LazyFrame, whose columns were not computed yet.", fix="pass X.head(0).collect().")
    rows = _without_rows(X)
    form: Any = None if rows is None else table_of(rows)
    names = list(getattr(form, "columns", ()))
    check_names(names)
    if named(form) is None:
        numbered = "they are no text" if names else "there are none"
        fix = "X.columns = [str(name) for name in X.columns]." if names else "pass a frame, pd.DataFrame(X, columns=)."
        raise InvalidInput(f"a declaration goes by names of columns, and {numbered}.", fix=fix)
    warn_of_cells(names)
    return Declaration(dict(zip(names, form.dtypes)))


def _without_rows(X: Any) -> Any:
    """A table of the same columns that has no rows; None if they have no names."""
    if type(X).__module__.startswith("dask.") and hasattr(X, "dtypes"):
        import pandas as pd

        return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in X.dtypes.items()})
    schema: Any = getattr(X, "schema", None)
    if isinstance(X, (str, os.PathLike, list, tuple)) or type(X).__module__.startswith("ray."):
        schema = getattr(opened_source(X), "schema", None)
    if hasattr(schema, "empty_table"):
        return schema.empty_table()
    return X[:0] if hasattr(X, "columns") else None


class Declaration(UserDict[str, Any]):
    """What is declared of every column: a blank, or how it is read.

    A pair of numbers or of dates is a public range, and so is every tuple; a list of text, or of three and more
    numbers, holds public categories, of which NaN or None is one for missing values; "drop" leaves the column out.
    "private" is for numbers of which nobody knows a range, and for a column of which the type says that it is text and
    nobody knows the categories: these are released with noise, up to 20 categories. ``{"private": 50}`` are up to 50
    categories, also of a column of which the type is not known, where "private" stands for numbers. ``{"words": 256}``
    are texts, or lists and mappings of Arrow, whose words or names go into 256 columns of a public hash.

    Parameters
    ----------
    types : mapping
        The type of every column; None where nothing is known of it.
    declared : mapping, optional
        What is declared so far. Default: blanks, but where the type says it all.
    """

    def __init__(self, types: Mapping[str, Any], declared: Mapping[str, Any] | None = None) -> None:
        # in words: some types list values of their columns
        words = {name: "no type" if kind is None else escaped(described(kind)) for name, kind in types.items()}
        self.types = {str(name): word for name, word in words.items()}
        self.kinds = {str(name): "unknown" if kind is None else kind_of(kind) for name, kind in types.items()}
        known = {"boolean": [0, 1], "none": DROP}  # what a type alone says
        super().__init__({name: known.get(kind, BLANK) for name, kind in self.kinds.items()})
        self.update(declared or {})

    def __setitem__(self, column: str, value: Any) -> None:
        if column not in self.types:
            meant = nearest(column, self.types)
            fix = f"did you mean {meant!r}?" if meant else f"one of {', '.join(map(repr, self.types))}."
            raise DomainMismatch(f"there is no column {shown(column)}.", fix=fix)
        if not (_is(value, BLANK) or _is(value, DROP)):
            _form(column, value, self.kinds[column])  # refuses what is no declaration
        self.data[column] = value

    @property
    def forms(self) -> dict[str, str]:
        """Every column that is read, and as what it is declared: "number", "date" or "text"."""
        kinds = self.kinds
        return {
            column: _form(column, value, kinds[column])[0] for column, value in self.items() if not _is(value, DROP)
        }

    @property
    def blanks(self) -> tuple[str, ...]:
        """Columns of which nobody has said yet what they may hold."""
        return tuple(column for column, value in self.items() if _is(value, BLANK))

    @property
    def private(self) -> tuple[str, ...]:
        """Columns whose range is to be released."""
        return tuple(column for column, value in self.items() if _is(value, PRIVATE) and self.kinds[column] != "text")

    def steps(self, encoding: str = "onehot") -> list[tuple[str, Any]]:
        """The first steps of a pipeline: :meth:`column_map`, and behind it what releases ranges that nobody knows.

        Parameters
        ----------
        encoding : {"onehot", "ordinal"}, default="onehot"
            As for :meth:`column_map`.
        """
        first = self.column_map(encoding)
        if not self.private:
            return [("columns", first)]
        names = first.names_out(tuple(self), math.nan)
        ranges = {name: PRIVATE if name in self.private else (-1.0, 1.0) for name in map(str, names)}
        return [("columns", first), ("ranges", MinMaxScaler(ranges))]

    def column_map(self, encoding: str = "onehot") -> ColumnMap:
        """The public stage that reads the columns as declared: the first step of a pipeline.

        Ranges are mapped to [-1, 1]; categories become columns of 0 and 1, one of them for all others. Numbers of which
        no range is known stay as they are, for :meth:`steps`.

        Parameters
        ----------
        encoding : {"onehot", "ordinal"}, default="onehot"
            "ordinal": categories become codes in one column, as `Report` and gradient boosting take them.

        Raises
        ------
        MissingBound
            Naming every blank that is left, and every private column that holds no numbers.
        """
        return make_column_map(*_together(self._parts(encoding)))

    def column_transformer(self, numbers: Sequence[Any] = (), encoding: str = "onehot") -> ColumnTransformer:
        """The columns as declared, in groups: numbers and dates with stages of their own, and categories beside them.

        Parameters
        ----------
        numbers : sequence of stages
            Behind the ranges of numbers, and those of dates, such as ``[MeanImputer(), StandardScaler()]``, which then
            see and release nothing of other columns.
        encoding : {"onehot", "ordinal"}, default="onehot"
            As for :meth:`column_map`.
        """
        parts = self._parts(encoding)
        if self.private:
            told = f"ranges of {', '.join(map(repr, self.private))} are private."
            raise MissingBound(told, fix="steps(), which releases them, or public ranges.")
        groups: list[Any] = []
        for name, kind in (("numbers", MinMaxScaler), ("dates", DateEncoder)):
            own = [stage.ranges for stage, _ in parts if isinstance(stage, kind)]
            ranges = {column: one for some in own for column, one in some.items()}
            groups += [(name, [kind(ranges), *map(clone, numbers)], list(ranges))] if ranges else []
        others = [part for part in parts if not isinstance(part[0], MinMaxScaler | DateEncoder)]
        groups += [(f"column-{i}", stage, columns) for i, (stage, columns) in enumerate(others, 1)]
        return ColumnTransformer(groups)

    def _parts(self, encoding: str) -> list[tuple[Any, list[str]]]:
        """The stage that reads each column; refuses blanks that are left."""
        unread = [column for column in self.private if self.kinds[column] not in ("number", "unknown")]
        nothing = "only ranges of numbers and categories of text can be released"
        for left, what in ((self.blanks, "blanks are left"), (unread, nothing)):
            if left:
                told = "; ".join(f"{column} = {_FORMS.get(self.kinds[column], _FORMS['unknown'])}" for column in left)
                other = '"drop"; of unknown range or categories "private" for numbers, {"private": 20} for text'
                fix = f"{told}; from public knowledge. Else {other}."
                raise MissingBound(f"{what}: {', '.join(map(repr, left))}.", fix=fix)
        read = {column: value for column, value in self.items() if not _is(value, DROP)}
        parts = [(_form(column, value, self.kinds[column])[1], [column]) for column, value in read.items()]
        for stage, _ in parts:
            if isinstance(stage, CategoryEncoder):
                stage.set_params(encoding=encoding)
        if not parts:
            raise InvalidParameter("no column is left.", fix="declare at least one.")
        return parts

    def lines(self) -> Iterator[str]:
        """A line of TOML for every column, with what may stand there."""
        for column, value in self.items():
            kind, name = self.kinds[column], self.types[column]
            private = '"private" or "drop"'
            unknown = '"private" (a range), {private = 20} (up to 20 categories) or "drop"'
            other = {"number": private, "text": private, "unknown": unknown}.get(kind, '"drop"')
            nested = '"drop"; in Python {"words": 256} for hashed names' if name in NESTED else "no step reads it"
            told = {"none": f"{name}: {nested}", "boolean": name}.get(
                kind, f"{name}: {_FORMS.get(kind, '')}, or {other}"
            )
            yield f"{key_in_toml(column)} = {in_toml(value)}  # {told}"

    def __str__(self) -> str:
        return "\n".join(self.lines())


def _together(parts: Sequence[tuple[Any, list[str]]]) -> Iterator[tuple[Any, list[str]]]:
    """Parts in their order, of which neighbours with public ranges are one: a table may have thousands."""
    for ranged, run in groupby(parts, lambda part: isinstance(part[0], MinMaxScaler)):
        if not ranged:
            yield from run
            continue
        stages, columns = zip(*run)
        ranges = {column: pair for stage in stages for column, pair in stage.ranges.items()}
        yield MinMaxScaler(ranges), [column for names in columns for column in names]


def _is(value: Any, word: str) -> bool:
    return isinstance(value, str) and value == word


class _AsNumbers:
    """In place of a stage: numbers as they are."""

    def column_maps(self, columns: Sequence[Any]) -> tuple[PublicMap, ...]:
        return (Unclipped(),)


def _form(column: str, value: Any, kind: str) -> tuple[str, Any]:
    """As what a column of this kind is declared, and the stage that reads it."""
    if _is(value, PRIVATE):
        return ("text", CategoryEncoder(PRIVATE, max_categories=MOST)) if kind == "text" else ("number", _AsNumbers())
    if isinstance(value, Mapping) and value.keys() == {PRIVATE}:
        most = integer(f"the number of private categories of {column!r}", value[PRIVATE], most=MOST_CATEGORIES)
        return "text", CategoryEncoder(PRIVATE, max_categories=most)
    if isinstance(value, Mapping) and value.keys() == {WORDS}:
        buckets = integer(f"the number of columns of {column!r}", value[WORDS], most=MOST_COLUMNS)
        return "text", (FeatureHasher if kind == "none" else HashingVectorizer)(buckets)
    if isinstance(value, str) and (meant := nearest(value, (PRIVATE, DROP))):
        raise InvalidParameter(f"{shown(value)} is declared for {column!r}.", fix=f'did you mean "{meant}"?')
    given = _listed(column, value, kind)
    if len(given) == 2 and all(is_date(end) or _is_day(end) for end in given):
        return "date", DateEncoder({column: tuple(given)})
    missing = len(given) > 2 and any(is_gap(one) for one in given)
    given = [one for one in given if not is_gap(one)] if missing else given
    if not missing and len(given) == 2 and all(isinstance(end, Real) and not isinstance(end, bool) for end in given):
        return "number", MinMaxScaler({column: pair(f"the range of {column!r}", given)})
    if not given or (len(given) == 1 and not isinstance(given[0], str)):
        what = f"{shown(value)} is declared for {column!r}."
        raise InvalidParameter(what, fix=f'{column} = {_FORMS["unknown"]}, or "drop".')
    known = labels(f"the categories of {column!r}", given)
    if all(isinstance(label, str) and math.isfinite(seconds_of(label)) for label in known):
        fix = f'{column} = ["1990-01-01", "2030-12-31"], the first and the last one that there may be.'
        raise InvalidParameter(f"the categories of {column!r} are dates written as text.", fix=fix)
    text = any(isinstance(label, str) for label in known)
    return "text" if text else "number", CategoryEncoder({column: known}, add_indicator=missing)


def _listed(column: str, value: Any, kind: str) -> list[Any]:
    """The ends of a range or the categories of a column; empty for what is neither."""
    if isinstance(value, (Set, range)) or (isinstance(value, tuple) and not _is_range(value)):
        what = (
            "a tuple is a range"
            if isinstance(value, tuple)
            else f"a {type(value).__name__} object is neither a pair nor a list"
        )
        fix = f"{column} = (low, high) for a range, {column} = [...] for categories. Dates are written 2030-12-31."
        raise InvalidParameter(f"{shown(value)} is declared for {column!r}, and {what}.", fix=fix)
    given = list(value) if isinstance(value, (list, tuple)) or hasattr(value, "tolist") else []
    if kind == "number" and any(isinstance(one, str) for one in given):
        fix = f"{column} = (low, high), or {column} = [0, 1, 2] for categories that are numbers."
        raise InvalidParameter(f"{shown(value)} is declared for {column!r}, which holds numbers.", fix=fix)
    if kind == "date" and any(isinstance(one, Real) for one in given):
        fix = f"{column} = {_FORMS['date']}."
        raise InvalidParameter(f"{shown(value)} is declared for {column!r}, which holds dates.", fix=fix)
    return given


def _is_range(value: tuple[Any, ...]) -> bool:
    """Whether these are two numbers or two dates."""
    return len(value) == 2 and all(
        (isinstance(end, Real) and not isinstance(end, bool)) or is_date(end) or _is_day(end) for end in value
    )


def _is_day(value: Any) -> bool:
    """Whether it is a date as text, with its hyphens: without, it may be a code."""
    return isinstance(value, str) and value[4:5] == "-" and math.isfinite(seconds_of(value))


def key_in_toml(column: str) -> str:
    """A name as a key in TOML."""
    return column if re.fullmatch(r"[A-Za-z0-9_-]+", column) else in_toml(column)


def in_toml(value: Any) -> str:
    """A value in TOML."""
    value = value.tolist() if hasattr(value, "tolist") and not is_date(value) else value
    if is_date(value):
        return str(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(in_toml, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key_in_toml(key)} = {in_toml(one)}' for key, one in value.items())}}}"
    if is_gap(value):
        return "nan"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
