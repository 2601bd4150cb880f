"""Columns of text as hashed words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction import text

from ppdp.core.checks import flag
from ppdp.core.closure_inspection import refuse_captured
from ppdp.data.rows import Array
from ppdp.exceptions import InvalidParameter, said_by
from ppdp.transformers.columns.cell_parsers import CellParser, WordsParser
from ppdp.transformers.columns.feature_hasher import HashedTerms, Hasher

FUNCTIONS = ("preprocessor", "tokenizer", "analyzer")  # what may be a function of a text
_OWN = ("max_norm", "step")


@dataclass(frozen=True)
class HashedWords(HashedTerms):
    """What scikit-learn's ``HashingVectorizer`` makes of every text; its norm is 1, or at most ``max_norm``."""

    binary: bool = False
    ngram_range: Sequence[int] = (1, 1)
    analyzer: Any = "word"
    stop_words: Any = None
    lowercase: bool = True
    strip_accents: Any = None
    token_pattern: str | None = r"(?u)\b\w\w+\b"
    preprocessor: Callable[[str], Any] | None = None
    tokenizer: Callable[[Any], Any] | None = None
    called = "HashingVectorizer"
    what = "words"

    @property
    def counts(self) -> bool:  # type: ignore[override]
        """Whether a column only tells that a word occurs."""
        return self.binary

    @property
    def _positive(self) -> bool:  # type: ignore[override]
        return not self.alternate_sign

    def check(self) -> None:
        """Refuse the same, and functions that hold on to data or fail on made-up texts."""
        super().check()
        for name in ("binary", "lowercase"):
            flag(name, getattr(self, name), self._name)
        for name in FUNCTIONS:
            if callable(getattr(self, name)):
                refuse_captured(getattr(self, name), self._name)
        failure = None
        try:
            self.vectorizer().fit(_MADE_UP).transform(_MADE_UP)
        except Exception as error:
            failure = said_by(error).removesuffix(".")
        if failure is not None:
            fix = "as for scikit-learn's HashingVectorizer."
            raise InvalidParameter(f"made-up texts cannot be hashed: {failure}.", stage=self._name, fix=fix)

    @property
    def declares(self) -> str | None:
        given = [name for name in FUNCTIONS if callable(getattr(self, name))]
        if not given:
            return None
        return f"{' and '.join(given)} of {self._name!r} treat{'s' * (len(given) == 1)} texts one by one"

    def reading(self, position: int) -> CellParser | None:
        return WordsParser()

    def vectors(self, cells: NDArray[np.object_]) -> Array:
        return _vectors(self.vectorizer(), cells)

    def vectorizer(self) -> Any:
        """Scikit-learn's, with these parameters."""
        given = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in _OWN}
        given["ngram_range"] = tuple(self.ngram_range)
        if isinstance(self.stop_words, (list, tuple)):
            given["stop_words"] = list(self.stop_words)
        if callable(self.tokenizer) or callable(self.analyzer):
            given["token_pattern"] = None  # it has no effect then, and scikit-learn warns of its own default
        return text.HashingVectorizer(**given)


_MADE_UP = ("a made-up text of 7 words", "words, words")


def _vectors(vectorizer: Any, texts: NDArray[np.object_]) -> Array:
    """A row for every text; of zeros where a function of the user's fails: that it fails is nobody's business."""
    if not len(texts):
        return np.zeros((0, vectorizer.n_features))
    try:
        return np.asarray(vectorizer.transform(texts).toarray(), dtype=np.float64)
    except Exception:
        if len(texts) == 1:
            return np.zeros((1, vectorizer.n_features))
    half = len(texts) // 2
    return np.concatenate([_vectors(vectorizer, part) for part in (texts[:half], texts[half:])])


@dataclass(eq=False, repr=False)
class HashingVectorizer(Hasher):
    """Columns of text as counts of hashed words, of every text by itself.

    Scikit-learn's vectorizer of this name does the hashing, with the parameters that both have. Nobody needs to know
    which words occur, and nothing is paid for them.

    Parameters
    ----------
    n_features : int, default=256
        How many columns a column of text becomes. Rows are dense: several words share a column, and noise grows with
        their number.
    norm : {"l2", "l1"} or None, default="l2"
        By which every row is divided. With None rows are as long as texts, so ``max_norm`` is needed, or ``binary``.
    alternate_sign : bool, default=True
        Whether a hash also gives every word a sign, so that words which share a column cancel on average.
    binary : bool, default=False
        Whether it only counts that a word occurs.
    ngram_range : tuple of two int, default=(1, 1)
        How many neighbouring words, or characters, count together.
    analyzer : {"word", "char", "char_wb"} or callable, default="word"
        What is counted.
    stop_words : "english" or list of str, optional
        Public words that are left out.
    lowercase : bool, default=True
        Whether case does not count.
    strip_accents : {"ascii", "unicode"} or callable, optional
        Whether accents do not count.
    token_pattern : str or None
        What is a word; by default two or more letters or digits.
    preprocessor, tokenizer : callable, optional
        Public functions of one text.
    max_norm : float, optional
        Public norm to which rows are shortened.

    Notes
    -----
    **Guarantee** (``docs/theory/row-wise.md``): row-wise, moves nothing, costs nothing. A row is no longer than 1 for
    every column of text, however many columns come out, and a model behind it has noise for rows of that norm. Each
    cell is read by itself: text up to a million characters, bytes as UTF-8, numbers as they are written. A missing
    value is a row of zeros; a list, a date or anything else is an invalid value: an error or a row of zeros, as the
    pipeline's ``on_invalid`` says. A function of the user's that fails on a text makes a row of zeros.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"review": ["good food, good wine", "bad food", None]})
    >>> HashingVectorizer(n_features=4, alternate_sign=False).fit_transform(X).round(2)
    array([[0.  , 0.95, 0.32, 0.  ],
           [0.  , 0.  , 0.71, 0.71],
           [0.  , 0.  , 0.  , 0.  ]])
    """

    n_features: int = 256
    norm: str | None = "l2"
    alternate_sign: bool = True
    binary: bool = False
    ngram_range: Any = (1, 1)
    analyzer: Any = "word"
    stop_words: Any = None
    lowercase: bool = True
    strip_accents: Any = None
    token_pattern: str | None = r"(?u)\b\w\w+\b"
    preprocessor: Any = None
    tokenizer: Any = None
    max_norm: float | None = None

    improper = ("no text: each argument must be a string or a number", "FeatureHasher(), which takes lists of words.")
    kind = HashedWords
    _example: ClassVar = {"n_features": 4, "analyzer": "char"}

    def declarations(self) -> tuple[str, ...]:
        told = replace(HashedWords(1), **{name: getattr(self, name) for name in FUNCTIONS}).declares
        return () if told is None else (told,)
