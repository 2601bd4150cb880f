"""Public names: what looks the same is the same, which known one was meant, and what is ppdp's."""

from __future__ import annotations

import difflib
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from inspect import unwrap
from typing import Any
from unicodedata import category, normalize

from ppdp.exceptions import InvalidParameter

DEFAULT_DATASET = "default"
LONGEST_NAME = 10_000  # characters of a column's name; a longer one is a cell in the place of a header
MOST_NAMES = 2**16  # columns of a file; their names alone would fill a certificate and a memory

# Nothing is drawn for these, although they are no format characters: fillers, joiners, selectors of variants, the blank
# of Braille.
_UNSEEN = {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0, *range(0x180B, 0x1810)}
_UNSEEN |= {*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)}

_LONGEST_CELL = 100  # characters; no number, date or address is longer
_PUNCTUATION = " .,:;/+-%°$€£¥'\"()<>=~≤≥\u00a0\u202f\u2212"  # of numbers, sums of money, dates, times and places
_MONTHS = "january|february|march|april|june|july|august|september|october|november|december"
_MONTHS += "|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_UNITS = "kg|cm|lbs?|usd|eur|gbp|chf|dkk|nok|sek"
_WITHIN_CELLS = re.compile(rf"(?<=\d)[etz](?=[\d+-]|$)|{_MONTHS}|(?<=\d)\s?({_UNITS})$|^({_UNITS})\s?(?=\d)")
_ID = re.compile(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]{32,128}|\S+@\S+\.\S+|https?://\S+")
_GAP = re.compile(r"|nan|na|n/a|nat|null|none|inf|-inf|true|false|unnamed: \d+(_level_\d+)?")
_YEAR = re.compile(r"(19|20)\d\d")


def dataset_name(dataset: str | None) -> str:
    """The name under which spends on a dataset add up: look-alikes are one, and so are all without a name."""
    return DEFAULT_DATASET if dataset is None else public_name("dataset", dataset)


def public_name(parameter: str, value: Any) -> str:
    """A name in the one form in which it is compared and shown.

    Compatibility forms are composed (NFKC), what has no width is dropped, and white space is one blank between words.
    A name of which nothing can be seen is refused, and one with half a character (a surrogate).
    """
    if not isinstance(value, str):
        what = f"{parameter} must be a name, a string, got {type(value).__name__}."
        raise InvalidParameter(what, parameter=parameter)
    if any(category(character) == "Cs" for character in value):
        what = f"{parameter} holds half a character, which no file can hold."
        raise InvalidParameter(what, fix="another name.", parameter=parameter)
    composed = normalize("NFKC", value)
    drawn = (c for c in composed if c.isspace() or (category(c) not in ("Cf", "Cc") and ord(c) not in _UNSEEN))
    name = normalize("NFKC", " ".join("".join(drawn).split()))
    if not name:
        what = f"{parameter} must be a name that can be seen."
        raise InvalidParameter(what, fix="a word, such as 'study-2024'.", parameter=parameter)
    return name


def repeated(names: Iterable[Any]) -> list[str]:
    """Names that stand more than once, in order.

    >>> repeated(["b", "a", "b"])
    ['b']
    """
    return sorted(str(name) for name, times in Counter(names).items() if times > 1)


def read_as_cells(names: Sequence[Any], *, positions: bool = True) -> bool:
    """Whether names of columns read as the cells of a row, as they do of a file without a header.

    So they do if some name is a number or a date, or if half of them are years, truth values or nothing. Names may be
    positions, 0, 1, 2, ..., of three columns at least.

    >>> read_as_cells(["34.5", "120", "F"]), read_as_cells(["1990-01-31", "Cork"]), read_as_cells(["", "true", "a"])
    (True, True, True)
    >>> read_as_cells(["id", "age", "2019", "x1"]), read_as_cells(["0", "1", "2"])
    (False, False)
    """
    words = [name.strip().lower() for name in names if isinstance(name, str)]
    if positions and len(words) > 2 and words == [str(i) for i in range(len(words))]:
        return False
    weak = sum(bool(_GAP.fullmatch(word) or _YEAR.fullmatch(word)) for word in words)
    return 0 < len(words) <= 2 * weak or any(_reads_as_cell(word) for word in words)


def _reads_as_cell(word: str) -> bool:
    """Whether it is a number, a date, a UUID or an address of mail; years alone may be names."""
    if len(word) > _LONGEST_CELL or _GAP.fullmatch(word) or _YEAR.fullmatch(word):
        return False
    rest = _WITHIN_CELLS.sub("", word)
    number = rest[:1] != "=" and any(map(str.isdigit, rest)) and all(c.isdigit() or c in _PUNCTUATION for c in rest)
    return number or _ID.fullmatch(word) is not None


def slips(written: Iterable[Any], known: Iterable[Any]) -> str:
    """Which known names were probably meant by written ones, in a sentence; empty if none is near.

    >>> slips(["bim", "x"], ["bmi", "age"])
    "did you mean 'bmi' by 'bim'?"
    """
    known = list(known)
    pairs = [(nearest(one, known), one) for one in written]
    return " ".join(f"did you mean {meant!r} by {one!r}?" for meant, one in pairs if meant is not None)


def alike(written: Iterable[Any], known: Iterable[Any]) -> str:
    """Which names probably stand for one column in two places, in a sentence; empty if none is near.

    >>> alike(["Age"], ["age", "bmi"])
    "one name for 'Age' and 'age', as X.columns has it."
    """
    known = list(known)
    pairs = [f"{one!r} and {meant!r}" for one in written if (meant := nearest(one, known)) is not None]
    return f"one name for {', for '.join(pairs)}, as X.columns has it." if pairs else ""


def unquoted(parameter: str, written: Iterable[Any], known: Iterable[Any]) -> str:
    """What to write where text stands for numbers that are names or positions of columns; empty if none does.

    >>> unquoted("ranges", ["0"], [0, 1])
    'ranges={0: ...}, without quotes.'
    """
    written = list(written)
    meant = next((one for one in known if not isinstance(one, str) and str(one) in written), None)
    return "" if meant is None else f"{parameter}={{{meant}: ...}}, without quotes."


def nearest(name: Any, known: Iterable[Any], least: float = 0.6) -> str | None:
    """The known name that was probably meant; ``least`` of 1 takes none but the same.

    >>> nearest("wards", ["age", "ward"])
    'ward'
    """
    if not isinstance(name, str):
        return None
    names = {k.casefold(): k for k in known if isinstance(k, str)}
    close = difflib.get_close_matches(name.casefold(), names, n=1, cutoff=least)
    return names[close[0]] if close else None


def no_attribute(owner: Any, name: str) -> AttributeError:
    """The error of an attribute that there is not, with the nearest of a public name, or all."""
    what = f"{type(owner).__name__!r} object has no attribute {name!r}."
    if name.startswith("_"):  # libraries ask for many
        return AttributeError(what)
    known = [one for one in dir(type(owner)) if not one.startswith("_")]
    meant = nearest(name, known)
    told = f"did you mean {meant!r}?" if meant else f"one of {', '.join(known)}."
    return AttributeError(f"{what} Fix: {told}")


def _origin(defined: Callable[..., Any]) -> tuple[Any, Any]:
    """Where a function or class says that it is defined."""
    return getattr(defined, "__module__", None), getattr(defined, "__qualname__", None)


def shipped(defined: Callable[..., Any]) -> bool:
    """Whether a function or class is defined inside ppdp, whatever it says of itself."""
    module, name = _origin(defined)
    home: Any = sys.modules.get(module) if str(module).startswith("ppdp.") else None
    if home is None or not isinstance(defined, type):
        return home is not None and getattr(unwrap(defined), "__globals__", None) is vars(home)
    return bool(reduce(lambda owner, part: getattr(owner, part, None), name.split("."), home) is defined)


def is_again(defined: Callable[..., Any], known: Callable[..., Any]) -> bool:
    """Whether one may take the place of another of its name, as a cell that runs again does; of none that is ppdp's."""
    return hasattr(defined, "__qualname__") and _origin(defined) == _origin(known) and not shipped(known)
