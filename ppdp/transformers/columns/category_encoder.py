"""Columns of categories as numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ppdp.bounds.release import MOST_CATEGORIES
from ppdp.core.checks import choice, flag, integer, labels, shown
from ppdp.core.declared import PRIVATE
from ppdp.exceptions import InvalidParameter, MissingBound
from ppdp.transformers.columns.categories import (
    MISSING,
    FillMode,
    HashedCategories,
    OneHot,
    OrdinalCodes,
    ReleasedCategories,
)
from ppdp.transformers.columns.cell_parsers import by_column
from ppdp.transformers.columns.column_stage import Encoder
from ppdp.transformers.columns.maps import MOST_COLUMNS, PublicMap


@dataclass(eq=False, repr=False)
class CategoryEncoder(Encoder):
    """Columns of public categories as zeros and ones, or as positions.

    Parameters
    ----------
    categories : "private", "hashed", mapping, sequence of sequences, or sequence of labels
        Public categories: by column, a list for every column, or one list for all. Labels are strings, numbers or
        truth values, as the column holds them. From public knowledge: which ones occur would be read off the rows. With
        ``"private"`` those that many rows hold are released with noise, so a plan pays for them. With ``"hashed"``
        nobody needs to know them, and nothing is paid: every cell counts for one of ``max_categories`` buckets of a
        public hash, which several categories may share.
    encoding : {"onehot", "ordinal"}, default="onehot"
        A column of 0 and 1 for every category, or one column with the position of the category, from 0.
    other : str or None, default="other"
        Name of the category that every undeclared value counts as: a further one, or one of those declared. With None
        such a value is a row of zeros, and -1 as a position.
    add_indicator : bool, default=False
        Whether gaps are one further category, "missing". Else a gap is a row of zeros, and -1 as a position.
    strategy : {"most_frequent"}, optional
        Of declared categories: a gap becomes the one that most rows of its column hold, by counts that are released
        with noise, so a plan pays for them. ``add_indicator``, which tells more, costs nothing.
    max_categories : int, optional
        With private or hashed categories, and needed there: how many of them, or buckets, a column has. So many columns
        of 0 and 1 come out whatever is found, of which some may be unused.

    Notes
    -----
    **Guarantee** (``docs/theory/row-wise.md``): row-wise, moves nothing, costs nothing. Private categories
    (``docs/theory/released-categories.md``) and those that fill gaps (``docs/theory/released-modes.md``): released, so
    that they move nothing. A cell of private categories is read as text of up to 60 bytes (7, 7.0, "07" and "7" are one
    category; case and blanks count; "" is missing), and anything else is one of the others. No value is an error, since
    an error would tell of a row. Of one column at most one entry of a row is 1, so that rows stay short; positions are
    as large as there are categories, so put a scaler behind them. What is refused before any row is looked at is a
    column whose type can hold none of its categories: numbers where text is declared.

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
    max_categories: int | None = None
    strategy: str | None = None

    fills_gaps = True
    _example: ClassVar = {"categories": [0, 1, 2]}

    def column_maps(self, columns: Sequence[Any]) -> tuple[PublicMap, ...]:
        """The position of every label and, unless it is ordinal, a column for every position."""
        hot = choice("encoding", self.encoding, ("onehot", "ordinal"), self) == "onehot"
        missing = MISSING if flag("add_indicator", self.add_indicator, self) else None
        if self.other is not None:
            labels("other", [self.other], self)
        if self.other is not None and (not isinstance(self.other, str) or self.other == missing):
            what = f"other={shown(self.other)} is no name of a category of its own."
            raise InvalidParameter(what, stage=_NAME, fix='other="other".', parameter="other")
        self._check_strategy()
        if self._is(HASHED):
            if not hot:
                fix = 'encoding="onehot".'
                raise InvalidParameter("numbers of buckets mean nothing.", stage=_NAME, fix=fix, parameter="encoding")
            return (HashedCategories(self._most(), missing),)
        if self._is(PRIVATE):
            return (ReleasedCategories(self._most(), hot, self.other, missing),)
        if self.max_categories is not None:
            what = "declared categories are as many as they are."
            raise InvalidParameter(what, stage=_NAME, fix="no max_categories.")
        mode = self.strategy is not None
        read = OrdinalCodes(self._lists(columns), self.other, missing, filled=mode)
        made = read.categories
        if not all(_are_distinct(one) for one in read.labels):
            what = "every column needs categories, distinct as text and as numbers."
            raise InvalidParameter(what, stage=_NAME, fix="each of them once.")
        maps = (read, OneHot(made)) if hot else (read,)
        return (FillMode.before(read), *maps) if mode else maps

    def _check_strategy(self) -> None:
        """Refuse what fills gaps where they are a category, or where no category is declared."""
        if choice("strategy", self.strategy, (None, "most_frequent"), self) is None:
            return
        if self.add_indicator:
            what = "missing values are filled, or are a category."
            raise InvalidParameter(what, stage=_NAME, fix="add_indicator=False.")
        if self._is(PRIVATE) or self._is(HASHED):
            fix = "add_indicator=True, which makes missing values a category of their own."
            raise InvalidParameter("strategy is for declared categories.", stage=_NAME, fix=fix)

    def _is(self, word: str) -> bool:
        """Whether this stands in place of categories."""
        return isinstance(self.categories, str) and self.categories == word

    def _most(self) -> int:
        """How many private categories a column has at most, or how many buckets."""
        if self.max_categories is None:
            fix = "max_categories=20, from public knowledge: more are never released."
            raise MissingBound("max_categories is not declared.", stage=_NAME, fix=fix, parameter="max_categories")
        return integer("max_categories", self.max_categories, self, most=MOST_CATEGORIES)

    @property
    def reads_cells(self) -> bool:
        """Whether some categories are text, or may be, so that it must come first."""
        if self._is(PRIVATE) or self._is(HASHED):
            return True
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
            raise MissingBound("categories is not declared.", stage=_NAME, fix=_FIX, parameter="categories")
        if isinstance(given, str):
            what = f"categories must be lists of values, got {shown(given)}."
            raise InvalidParameter(what, stage=_NAME, fix=_FIX, parameter="categories")
        if isinstance(given, Mapping):
            lists = by_column(given, columns, _NAME, "categories")
        elif isinstance(given, Iterable):
            lists = list(given)
            if not any(isinstance(one, Iterable) and not isinstance(one, (str, bytes)) for one in lists):
                lists = [lists] * len(columns)
        else:
            what = f"categories must be lists of values, got {shown(given)}."
            raise InvalidParameter(what, stage=_NAME, fix=_FIX, parameter="categories")
        if sum(len(one) for one in lists if hasattr(one, "__len__")) > MOST_COLUMNS:
            what = f"more than {MOST_COLUMNS} categories are declared."
            raise InvalidParameter(what, stage=_NAME, fix="declare those that matter; all others count as `other`.")
        return tuple(labels("categories", one, self) for one in lists)


def _has_text(given: Any) -> bool:
    """Whether it is text, or holds some."""
    return isinstance(given, str) or (isinstance(given, Iterable) and any(isinstance(one, str) for one in given))


def _are_distinct(given: Sequence[Any]) -> bool:
    """Whether labels are some, and differ by name and, where they are numbers, by value."""
    text = any(isinstance(label, str) for label in given)
    return 0 < len(given) == len(set(map(str, given))) == len(given if text else set(map(float, given)))


HASHED = "hashed"
_NAME = "CategoryEncoder"
_FIX = 'categories={column: [labels]} from public knowledge, not from the data; or "private" with max_categories=.'
