"""Columns of names with numbers, as hashed features."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn import feature_extraction
from sklearn.preprocessing import normalize

from ppdp.core.checks import choice, flag, integer, length
from ppdp.data.cells import LONGEST_TEXT, is_gap, plain, whole_text
from ppdp.data.column_types import NESTED, described
from ppdp.data.rows import Array
from ppdp.data.statistics import clip_norms
from ppdp.data.unit_conversion import Columns
from ppdp.exceptions import InvalidParameter, MissingBound
from ppdp.transformers.columns.cell_parsers import CellParser, Words, WordsParser, coded_texts
from ppdp.transformers.columns.column_stage import Encoder
from ppdp.transformers.columns.maps import MOST_COLUMNS, ColumnFacts, PublicMap

_SMALLEST, _LARGEST = 1e-100, 1e100  # values of names, of which no square is lost or endless
_ENTRIES: dict[type, Callable[[Any], Any]] = {
    dict: dict.items,
    list: list.__iter__,
    tuple: tuple.__iter__,
    np.ndarray: np.ndarray.tolist,
}
"""What a cell holds, whatever its class makes of it."""


class TermsParser(WordsParser):
    """Cells as names with numbers, of which each is a text in JSON."""

    def learned(self, column: Any, name: Any) -> tuple[Array, Words]:
        if described(column.dtype) not in NESTED:
            super().learned(column[:0], name)  # which refuses types that hold no text
        return coded_texts(column, _terms)


def _terms(cell: Any) -> str:
    """Pairs of a name and a number as JSON, of a mapping, of pairs, or of names, each of which counts 1."""
    own: Any = next((own for own in _ENTRIES if issubclass(type(cell), own)), None)
    # Before any is made: an array may say one number as often as it likes, a list one long text.
    size: Any = 1 if own is None else np.ndarray.nbytes.__get__(cell) // 4 if own is np.ndarray else own.__len__(cell)
    if size > LONGEST_TEXT:
        raise ValueError
    terms: list[tuple[str, float]] = []
    for one in [cell] if own is None else _ENTRIES[own](cell):
        if not is_gap(one):
            terms.append(_term(one))
            size += len(terms[-1][0])
        if size > 2 * LONGEST_TEXT:  # then so is the text
            raise ValueError
    text = json.dumps(terms)
    if len(text) > LONGEST_TEXT:
        raise ValueError
    return text


def _term(given: Any) -> tuple[str, float]:
    name, value = given if isinstance(given, (list, tuple)) else (given, 1.0)
    text, value = whole_text(name), 0.0 if is_gap(value) else plain(value)
    if type(value) is str:
        text, value = whole_text(f"{text}={value}"), 1.0
    if text is None or not isinstance(value, (int, float, Decimal)) or not abs(float(value)) < math.inf:
        raise ValueError
    number = float(value)
    return text, 0.0 if abs(number) < _SMALLEST else min(max(number, -_LARGEST), _LARGEST)


@dataclass(frozen=True)
class HashedTerms(PublicMap):
    """What scikit-learn's ``FeatureHasher`` makes of every cell; its norm is 1, or at most ``max_norm``."""

    n_features: int
    norm: str | None = "l2"
    alternate_sign: bool = True
    max_norm: float | None = None
    step: str = ""
    bounds = True
    sized = True
    fills = True
    reads = True
    reads_cells = True
    takes_texts = True
    counts = False  # whether a column only tells that something occurs
    called = "FeatureHasher"
    what = "names"

    @property
    def _name(self) -> str:
        return self.step or self.called

    def check(self) -> None:
        """Refuse parameters that scikit-learn refuses, that fill the memory, or with which rows have no bound."""
        integer("n_features", self.n_features, self._name)
        if self.n_features > MOST_COLUMNS:
            raise InvalidParameter(
                f"n_features={self.n_features}: rows are dense, so 1000 of them take {8000 * self.n_features} bytes; "
                f"at most {MOST_COLUMNS} columns may come out.",
                stage=self._name,
                fix=f"n_features=256, or up to some thousands: noise grows with them, and {self.what} may share one.",
                parameter="n_features",
            )
        choice("norm", self.norm, ("l2", "l1", None), self._name)
        flag("alternate_sign", self.alternate_sign, self._name)
        if self.max_norm is not None:
            length("max_norm", self.max_norm, self._name)
        elif self.norm is None and not self.counts:
            what = f"a cell has any number of {self.what}, so that without a norm no bound of the rows is known."
            fix = "norm='l2'; or a public max_norm, to which rows are shortened."
            raise MissingBound(what, stage=self._name, fix=fix, parameter="norm")

    def told(self, names: Sequence[str]) -> Iterable[tuple[str, str]]:
        return [(f"{self.what} of {name}", f"{self.n_features} columns of a public hash") for name in names]

    def reading(self, position: int) -> CellParser | None:
        return TermsParser()

    def facts(self, given: ColumnFacts) -> ColumnFacts:
        self.check()
        names = tuple(f"{name}_{i}" for name in given.names for i in range(self.n_features))
        high = 1.0 if self.norm is not None or self.counts else math.inf
        high = min(high, self.max_norm or math.inf)
        low = 0.0 if self.counts or self._positive else -high
        longest = 1.0 if self.norm is not None else math.sqrt(self.n_features) if self.counts else math.inf
        longest = min(longest, self.max_norm or math.inf)
        square = len(given.names) * longest**2
        return ColumnFacts(names, np.tile([low, high], (len(names), 1)), square, indicators=True)

    _positive = False  # whether no value is below 0

    def apply(self, X: Any, given: ColumnFacts) -> Array:
        made = [clip_norms(self.vectors(cells), self.max_norm) for cells in X.T]
        return np.concatenate(made, axis=1)

    def vectors(self, cells: NDArray[np.object_]) -> Array:
        """A row for every cell."""
        if not len(cells):
            return np.zeros((0, self.n_features))
        hasher = feature_extraction.FeatureHasher(
            self.n_features, input_type="pair", alternate_sign=self.alternate_sign
        )
        made = hasher.transform(map(_pairs, cells)).toarray()
        return np.asarray(made if self.norm is None else normalize(made, self.norm, copy=False))

    def units(self, columns: Columns, given: ColumnFacts, out: ColumnFacts) -> Columns:
        return Columns.raw(out.names, f"hashed {self.what}", out.ranges)


def _pairs(text: str) -> list[tuple[str, float]]:
    """Names and numbers of a cell as it was read, of a number that nobody has read its own; none of a missing one."""
    read = json.loads(text) if text.startswith("[") else [(text, 1.0)] if text else []
    return [(name, value) for name, value in read]


class Hasher(Encoder):
    """One public hash of every cell, of which its fields are the parameters: a subclass says of which kind."""

    fills_gaps = True
    kind: type[HashedTerms] = HashedTerms

    @property
    def takes_texts(self) -> bool:
        return True

    def column_maps(self, columns: Sequence[Any]) -> tuple[PublicMap, ...]:
        """The hash of every cell."""
        made = self.kind(**{one.name: getattr(self, one.name) for one in fields(self.kind) if one.name != "step"})
        made.check()
        return (made,)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        return tags


@dataclass(eq=False, repr=False)
class FeatureHasher(Hasher):
    """Columns of names with numbers, such as dicts, as hashed features of every cell by itself.

    Scikit-learn's hasher of this name does the hashing. Nobody needs to know which names occur, and nothing is paid.

    Parameters
    ----------
    n_features : int, default=256
        How many columns a column becomes. Rows are dense: names share a column, and noise grows with their number.
    norm : {"l2", "l1"} or None, default="l2"
        By which every row is divided. With None rows are as long as cells make them, so ``max_norm`` is needed.
    alternate_sign : bool, default=True
        Whether a hash also gives every name a sign, so that names which share a column cancel on average.
    max_norm : float, optional
        Public norm to which rows are shortened.

    Notes
    -----
    **Guarantee** (``docs/theory/row-wise.md``): row-wise, moves nothing, costs nothing. A row is no longer than 1 for
    every column, however many columns come out. A cell is a dict ``{"name": number}``, in which ``{"name": "text"}`` is
    the name "name=text" with 1, a list of such pairs, or a list of names, each of which counts 1; text or a number
    alone is one name. A missing cell is a row of zeros, and a missing number counts 0. Anything else, or a cell of more
    than a million characters, is an invalid value: an error or a row of zeros, as the pipeline's ``on_invalid`` says.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"basket": [{"tea": 2, "bread": 1}, ["tea", "milk"], None]})
    >>> FeatureHasher(n_features=4, alternate_sign=False).fit_transform(X).round(2)
    array([[0.89, 0.  , 0.  , 0.45],
           [0.71, 0.  , 0.71, 0.  ],
           [0.  , 0.  , 0.  , 0.  ]])
    """

    n_features: int = 256
    norm: str | None = "l2"
    alternate_sign: bool = True
    max_norm: float | None = None

    takes_lists = True  # as cells, also where X is a list of them
    improper = ("no dict or list of names with numbers: an argument must be a string or a number", "{'name': 1.0}.")
    _example: ClassVar = {"n_features": 4}
