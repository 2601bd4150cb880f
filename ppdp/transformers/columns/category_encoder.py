"""Columns of categories as numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ppdp.core.checks import choice, flag, labels, shown
from ppdp.core.declared import PRIVATE
from ppdp.exceptions import InvalidParameter, MissingBound
from ppdp.transformers.columns.categories import Labelled, OneHot
from ppdp.transformers.columns.encoder import Encoder, by_column
from ppdp.transformers.columns.maps import MOST_COLUMNS, PublicMap

MISSING = "missing"
"""Name of the category of gaps."""


@dataclass(eq=False, repr=False)
class CategoryEncoder(Encoder):
    """Columns of public categories as zeros and ones, or as positions.

    Parameters
    ----------
    categories : mapping, sequence of sequences, or sequence of labels
        Public categories: by column, a list for every column, or one list for all. Labels are strings, numbers or
        truth values, as the column holds them. From public knowledge: which ones occur would be read off the rows.
    encoding : {"onehot", "ordinal"}, default="onehot"
        A column of 0 and 1 for every category, or one column with the position of the category, from 0.
    other : str or None, default="other"
        Name of the category that every undeclared value counts as: a further one, or one of those declared. With None
        such a value is a row of zeros, and -1 as a position.
    add_indicator : bool, default=False
        Whether gaps are one further category, "missing". Else a gap is a row of zeros, and -1 as a position.

    Notes
    -----
    **Guarantee** (``docs/theory/row-wise.md``): row-wise, moves nothing, costs nothing. No value is an error, since an
    error would tell of a row. Of one column at most one entry of a row is 1, so that rows stay short; positions are as
    large as there are categories, so put a scaler behind them. What is refused before any row is looked at is a column
    whose type can hold none of its categories: numbers where text is declared.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"ward": ["A", "B", None, "Z"]})
    >>> hot = CategoryEncoder({"ward": ["A", "B"]}, add_indicator=True).set_output(transform="pandas")
    >>> hot.fit_transform(X)
       ward_A  ward_B  ward_other  ward_missing
    0     1.0     0.0         0.0           0.0
    1     0.0     1.0         0.0           0.0
    2     0.0     0.0         0.0           1.0
    3     0.0     0.0         1.0           0.0
    >>> CategoryEncoder(["A", "B"], encoding="ordinal").fit_transform(X).ravel()
    array([ 0.,  1., -1.,  2.])
    """

    categories: Any = None
    encoding: str = "onehot"
    other: str | None = "other"
    add_indicator: bool = False

    fills_gaps = True

    @classmethod
    def example(cls) -> Any:
        return cls([0, 1, 2])

    def column_maps(self, columns: Sequence[Any]) -> tuple[PublicMap, ...]:
        """The position of every label and, unless it is ordinal, a column for every position."""
        hot = choice("encoding", self.encoding, ("onehot", "ordinal"), self) == "onehot"
        missing = MISSING if flag("add_indicator", self.add_indicator, self) else None
        if self.other is not None:
            labels("other", [self.other], self)
        if self.other is not None and (not isinstance(self.other, str) or self.other == missing):
            raise InvalidParameter(f"other={shown(self.other)} is no name of a category of its own.", stage=_NAME)
        read = Labelled(self._lists(columns), self.other, missing)
        made = read.categories
        if not all(_are_distinct(one) for one in read.labels):
            raise InvalidParameter("every column needs categories, distinct as text and as numbers.", stage=_NAME)
        return (read, OneHot(made)) if hot else (read,)

    @property
    def reads_cells(self) -> bool:
        """Whether some categories are text, so that it must come first."""
        given = self.categories.values() if isinstance(self.categories, Mapping) else self.categories
        lists = [] if isinstance(given, str) or not isinstance(given, Iterable) else given
        return any(_has_text(one) for one in lists)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = True
        return tags

    def _lists(self, columns: Sequence[Any]) -> tuple[tuple[Any, ...], ...]:
        """The public labels of each of these columns."""
        given = self.categories
        if given is None:
            raise MissingBound("categories is not declared.", stage=_NAME, fix=_FIX)
        if isinstance(given, str):
            if given == PRIVATE:
                raise MissingBound("categories that nobody declared cannot be released yet.", stage=_NAME, fix=_FIX)
            raise InvalidParameter(f"categories must be lists of values, got {shown(given)}.", stage=_NAME, fix=_FIX)
        if isinstance(given, Mapping):
            lists = by_column(given, columns, _NAME, "categories")
        elif isinstance(given, Iterable):
            lists = list(given)
            if not any(isinstance(one, Iterable) and not isinstance(one, (str, bytes)) for one in lists):
                lists = [lists] * len(columns)
        else:
            raise InvalidParameter(f"categories must be lists of values, got {shown(given)}.", stage=_NAME, fix=_FIX)
        if sum(len(one) for one in lists if hasattr(one, "__len__")) > MOST_COLUMNS:
            raise InvalidParameter(
                f"more than {MOST_COLUMNS} categories are declared.",
                stage=_NAME,
                fix="declare those that matter; all others count as `other`.",
            )
        return tuple(labels("categories", one, self) for one in lists)


def _has_text(given: Any) -> bool:
    """Whether it is text, or holds some."""
    return isinstance(given, str) or (isinstance(given, Iterable) and any(isinstance(one, str) for one in given))


def _are_distinct(given: Sequence[Any]) -> bool:
    """Whether labels are some, and differ by name and, where they are numbers, by value."""
    text = any(isinstance(label, str) for label in given)
    return 0 < len(given) == len(set(map(str, given))) == len(given if text else set(map(float, given)))


_NAME = "CategoryEncoder"
_FIX = "categories={column: [labels]} from public knowledge, not from the data."
