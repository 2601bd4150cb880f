"""Public facts that the user declares for a conversion, and whether some step asks for each of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from ppdp.bounds.release import MOST_CATEGORIES
from ppdp.core.checks import integer, shown
from ppdp.core.declared import PRIVATE
from ppdp.core.domain import Domain
from ppdp.core.names import nearest
from ppdp.exceptions import InvalidParameter, MissingBound, PpdpError, UnknownStage
from ppdp.interop.sklearn.steps import ENCODERS, Step
from ppdp.transformers.columns.categories import Categorical
from ppdp.transformers.columns.category_encoder import HASHED
from ppdp.transformers.columns.column_group import ColumnGroup
from ppdp.transformers.columns.declaration import MOST
from ppdp.transformers.rowwise.ranges import resolve_ranges

_NUMBER = re.compile(r"\d+")
_DECLARED = ("ranges", "max_norm", "categories", "functions", "classes", "y_range")


@dataclass(frozen=True)
class DeclaredFacts:
    """What is declared: see ``Pipeline.from_sklearn``."""

    ranges: Any = None
    max_norm: float | None = None
    classes: Any = None
    y_range: Any = None
    categories: Any = field(default_factory=dict)
    functions: Mapping[str, Any] = field(default_factory=dict)
    domain: Domain = field(default_factory=Domain)
    types: Any = None  # an empty frame with the names and types of the columns
    call: str = "Pipeline.from_sklearn(pipe, "  # what is written in front of a fact that is to be declared
    encoded: set[Any] = field(default_factory=set)  # columns whose categories were asked for so far
    mapped: set[str] = field(default_factory=set)  # steps whose function was asked for its range so far
    lacking: dict[str, dict[Any, str]] = field(default_factory=dict)
    """What was asked for and is not declared: by parameter, and there by column or step, what to write."""
    read: set[str] = field(default_factory=set)  # what would be read off the labels, which is allowed

    def __post_init__(self) -> None:
        if not (isinstance(self.categories, Mapping) or _is_private(self.categories)):
            what = f"categories must be lists by column, got {shown(self.categories)}."
            fix = f'categories={{"column": ["a", "b"]}}, or "{PRIVATE}" where they are unknown.'
            raise InvalidParameter(what, fix=fix, parameter="categories")
        labels = self.categories if isinstance(self.categories, Mapping) else {}
        if empty := [column for column, listed in labels.items() if isinstance(listed, (list, tuple)) and not listed]:
            what = f"categories of {', '.join(map(repr, empty))} are none."
            fix = f'categories={{{empty[0]!r}: ["a", "b"]}}, or "{PRIVATE}" where they are unknown.'
            raise InvalidParameter(what, fix=fix, parameter="categories")
        if hasattr(self.ranges, "columns"):  # a table, which has no truth value
            resolve_ranges(self.ranges, 1, None, "from_sklearn")
        declared = self.ranges if isinstance(self.ranges, Mapping) else {}
        if pairs := {column: pair for column, pair in declared.items() if _is_reversed(pair)}:
            resolve_ranges(list(pairs.values()), len(pairs), tuple(pairs), "from_sklearn")
        if not isinstance(self.functions, Mapping):
            what = f"functions must be ranges by step, got {shown(self.functions)}."
            raise InvalidParameter(what, fix="functions={'step': (low, high)}.")

    def most_of(self, column: Any) -> int | None:
        """How many categories of a column are to be released at most; None if they are public."""
        given = self.categories.get(column) if isinstance(self.categories, Mapping) else self.categories
        if isinstance(given, Mapping) and given.keys() == {PRIVATE}:
            return integer(f"the number of private categories of {column!r}", given[PRIVATE], most=MOST_CATEGORIES)
        return MOST if _is_private(given) else None

    def buckets_of(self, column: Any) -> int | None:
        """Into how many buckets of a public hash categories of a column go; None if they do not."""
        given = self.categories.get(column) if isinstance(self.categories, Mapping) else None
        if not isinstance(given, Mapping) or given.keys() != {HASHED}:
            return None
        return integer(f"the number of buckets of {column!r}", given[HASHED], most=MOST_CATEGORIES)

    def unknown_of(self, column: Any) -> tuple[int | None, int | None]:
        """How categories of a column are taken that nobody knows."""
        return self.most_of(column), self.buckets_of(column)

    @property
    def releases_categories(self) -> bool:
        """Whether categories of some column are to be released."""
        names = self.categories if isinstance(self.categories, Mapping) else [None]
        return any(self.most_of(name) is not None for name in names)

    def is_unranged(self, column: Any) -> bool:
        """Whether the range of a column is to be released."""
        return _is_private(self.ranges.get(column) if isinstance(self.ranges, Mapping) else self.ranges)

    def with_numbers(self, blocks: Sequence[ColumnGroup]) -> DeclaredFacts:
        """Categories that are numbers or truth values, of columns that are taken as numbers, as the ranges of these."""
        if not isinstance(self.categories, Mapping) or not isinstance(self.ranges or {}, Mapping) or self.max_norm:
            return self
        numeric = [block for block in blocks if block.encoder is None and not block.drop]
        taken = {name for block in numeric for name in (self.categories if block.columns is None else block.named)}
        others = {n: listed for n, listed in self.categories.items() if n in taken and n not in self.encoded}
        found = {
            name: (float(min(listed)), float(max(listed))) for name, listed in others.items() if _are_numbers(listed)
        }
        left = {name: listed for name, listed in self.categories.items() if name not in found}
        return replace(self, ranges={**found, **(self.ranges or {})}, categories=left) if found else self

    def labels_alone(self, steps: Sequence[Step]) -> list[str] | None:
        """The columns, where only categories are declared and an encoder of all columns comes first; else None."""
        told = isinstance(self.categories, Mapping) and bool(self.categories) and self.ranges is None
        if not (told and self.max_norm is None and any(step.kind in ENCODERS for step in steps[:2])):
            return None
        return list(self.categories) if all(isinstance(name, str) for name in self.categories) else None

    @property
    def bounded(self) -> bool:
        """Whether rows have a bound where they come in."""
        return self.domain.row_norm is not None

    @property
    def scales(self) -> bool:
        """Whether columns are scaled by public ranges."""
        return self.max_norm is None and (self.ranges is not None or not self.bounded)

    def lack(self, parameter: str, asked: Mapping[Any, str], message: str, stage: str | None) -> NoReturn:
        """Refuse for want of a fact of some columns or steps; an empty name stands for the whole parameter."""
        self.lacking.setdefault(parameter, {}).update(asked)
        given = getattr(self, parameter)
        named: Mapping[Any, Any] = given if isinstance(given, Mapping) else {}
        slips = [(name, nearest(name, named)) for name in asked]
        told = "".join(f" {slip!r} is declared: did you mean {name!r}?" for name, slip in slips if slip is not None)
        places = any(isinstance(one, int) for one in asked) and any(isinstance(one, str) for one in named)
        if places and self.types is None:
            told = " These are positions: types=X.dtypes tells which of the names that are declared stand there."
        raise MissingBound(f"{message}{told}", stage=stage, fix=self.line)

    @property
    def line(self) -> str | None:
        """One line that declares all that was asked for so far; None if nothing was."""
        if not self.lacking:
            return None
        parts = [self._written(name) for name in _DECLARED if name in self.lacking]
        parts += ["classes=(...)"] if "classes" in self.read else []
        parts += ["..."] if any(self._told(name) for name in _DECLARED if name not in self.lacking) else []
        return f"{self.call}{', '.join(parts)}), from public knowledge."

    def _written(self, parameter: str) -> str:
        """A parameter with what is missing, as it is written."""
        asked = self.lacking[parameter]
        if "" in asked:
            return f"{parameter}={asked['']}"
        named = [f"{name!r}: {value}" for name, value in asked.items()]
        return f"{parameter}={{{', '.join([*named, *(['...'] if self._told(parameter) else [])])}}}"

    def _told(self, parameter: str) -> bool:
        """Whether something of it is declared."""
        return getattr(self, parameter) not in (None, {})

    def refuse(self, errors: Sequence[PpdpError]) -> None:
        """Raise all errors as one, if there are any, with the line that declares what is missing."""
        if len(errors) == 1:
            raise errors[0]
        if not errors:
            return
        missing = [error for error in errors if isinstance(error, MissingBound)]
        refused = [error for error in errors if error not in missing]
        kinds = [type(error) for error in refused]
        kind = UnknownStage if UnknownStage in kinds else kinds[0] if kinds else MissingBound
        steps = "1 step is" if len(refused) == 1 else f"{len(refused)} steps are"
        told = [f"{steps} refused: {_numbered(refused)}"] if refused else []
        # One line says what to do about all that is missing.
        bare = [MissingBound(error.message, stage=error.stage) for error in missing]
        told += [f"Public facts are missing: {_numbered(bare)}"] if bare else []
        raise kind(" ".join(told), fix=self.line)

    def check_used(self, blocks: Sequence[ColumnGroup]) -> tuple[str, ...]:
        """Refuse a fact that contradicts what a step does; words of columns that none takes. No blocks take all."""
        ranges = [name for name in self.ranges if isinstance(name, str)] if isinstance(self.ranges, Mapping) else []
        categories = self.categories if isinstance(self.categories, Mapping) else {}
        unused: dict[str, list[Any]] = {"ranges": [], "categories": []}
        if blocks and not any(block.ordered or block.columns is None for block in blocks):
            taken = {name for block in blocks if not block.drop for name in block.named}
            for parameter, given in (("ranges", ranges), ("categories", categories)):
                others = [name for name in given if isinstance(name, str) and name not in taken]
                unused[parameter] = [name for name in others if not self._is_slip(name, taken)]
        self._check_ranges(blocks, [name for name in ranges if name not in unused["ranges"]])
        asked = [n for n in categories if n not in unused["categories"] and not _repeats(categories[n], n, blocks)]
        _check_asked("categories", asked, self.encoded, "which no encoder without categories of its own takes")
        _check_asked("functions", self.functions, self.mapped, "which is the name of no FunctionTransformer")
        return tuple(f"{parameter} of {name!r}" for parameter, names in unused.items() for name in names)

    def _is_slip(self, name: str, taken: Collection[str]) -> bool:
        """Whether the name of a column that nobody takes is meant for another: one more than a number tells apart."""
        meant = None if name in (self.domain.feature_names or ()) else nearest(name, taken)
        return meant is not None and _NUMBER.sub("", meant) != _NUMBER.sub("", name)

    def _check_ranges(self, blocks: Sequence[ColumnGroup], given: Sequence[str]) -> None:
        """Every range by name is that of a column whose numbers are used, as far as the columns are known."""
        if self.domain.feature_names is not None:
            _check_asked("ranges", given, self.domain.feature_names, "which is no column of the domain")
        encoded = {name for block in blocks if block.encoder is not None for name in block.named}
        numeric = {name for block in blocks if block.encoder is None for name in block.named}
        for name in given:
            if name in encoded - numeric:
                what = f"ranges declares {name!r}, and only an encoder takes this column: its numbers are not used."
                raise InvalidParameter(what, fix="leave it out of ranges.", parameter="ranges")
        if blocks and not any(block.ordered or block.columns is None for block in blocks):
            _check_asked("ranges", given, numeric, "which no step takes as numbers")


def _are_numbers(listed: Any) -> bool:
    return (
        isinstance(listed, (list, tuple))
        and len(listed) > 1
        and all(isinstance(one, int | float) and one == one for one in listed)
    )


def _is_reversed(pair: Any) -> bool:
    """Whether the ends of a range are the wrong way round."""
    ends = pair if isinstance(pair, (list, tuple)) and all(isinstance(end, (int, float)) for end in pair) else ()
    return len(ends) == 2 and ends[0] > ends[1]


def _is_private(given: Any) -> bool:
    return isinstance(given, str) and given == PRIVATE


def _repeats(listed: Any, name: str, blocks: Sequence[ColumnGroup]) -> bool:
    """Whether an encoder of this column has the same categories of its own."""
    given = set(listed) if isinstance(listed, (list, tuple)) else None
    own = [(block.named, block.encoder.categories) for block in blocks if isinstance(block.encoder, Categorical)]
    return any(column == name and set(labels) == given for names, lists in own for column, labels in zip(names, lists))


def _numbered(errors: Sequence[PpdpError]) -> str:
    return str(errors[0]) if len(errors) == 1 else " ".join(f"({i}) {error}" for i, error in enumerate(errors, 1))


def _check_asked(parameter: str, given: Iterable[Any], asked: Collection[Any], why: str) -> None:
    """Refuse the first fact that is not asked for, with what was probably meant."""
    for name in given:
        if name in asked:
            continue
        meant = nearest(name, asked)
        shown = ", ".join(map(repr, sorted(asked, key=str)))
        rest = f"leave it out; asked for: {shown}." if shown else "leave it out."
        what = f"{parameter} declares {name!r}, {why}."
        raise InvalidParameter(what, fix=f"did you mean {meant!r}? Or {rest}" if meant is not None else rest)
