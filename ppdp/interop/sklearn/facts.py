"""Public facts that the user declares for a conversion, and whether some step asks for each of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ppdp.core.domain import Domain
from ppdp.core.names import nearest
from ppdp.exceptions import InvalidParameter
from ppdp.transformers.columns.block import Block


@dataclass(frozen=True)
class Facts:
    """What is declared: see ``Pipeline.from_sklearn``."""

    ranges: Any = None
    max_norm: float | None = None
    classes: Any = None
    y_range: Any = None
    categories: Mapping[Any, Any] = field(default_factory=dict)
    functions: Mapping[str, Any] = field(default_factory=dict)
    domain: Domain = field(default_factory=Domain)
    encoded: set[Any] = field(default_factory=set)
    """Columns whose categories were asked for so far."""
    mapped: set[str] = field(default_factory=set)
    """Steps whose function was asked for its range so far."""

    @property
    def bounded(self) -> bool:
        """Whether rows have a bound where they come in."""
        return self.domain.row_norm is not None

    @property
    def scales(self) -> bool:
        """Whether columns are scaled by public ranges."""
        return self.max_norm is None and (self.ranges is not None or not self.bounded)

    def check_used(self, blocks: Sequence[Block]) -> None:
        """Refuse a fact that no step asks for, most often a name with a slip in it; no blocks take all columns."""
        self._check_ranges(blocks)
        _check_asked(
            "categories", self.categories, self.encoded, "which no encoder without categories of its own takes"
        )
        _check_asked("functions", self.functions, self.mapped, "which is the name of no FunctionTransformer")

    def _check_ranges(self, blocks: Sequence[Block]) -> None:
        """Every range by name is that of a column whose numbers are used, as far as the columns are known."""
        given = [name for name in self.ranges if isinstance(name, str)] if isinstance(self.ranges, Mapping) else []
        if self.domain.feature_names is not None:
            _check_asked("ranges", given, self.domain.feature_names, "which is no column of the domain")
        encoded = {name for block in blocks if block.encoder is not None for name in block.named}
        numeric = {name for block in blocks if block.encoder is None for name in block.named}
        for name in given:
            if name in encoded - numeric:
                raise InvalidParameter(
                    f"ranges declares {name!r}, and only an encoder takes this column: its numbers are not used.",
                    fix="leave it out of ranges.",
                )
        if blocks and not any(block.ordered or block.columns is None for block in blocks):
            _check_asked("ranges", given, numeric, "which no step takes as numbers")


def _check_asked(parameter: str, given: Iterable[Any], asked: Collection[Any], why: str) -> None:
    """Refuse the first fact that is not asked for, with what was probably meant."""
    for name in given:
        if name in asked:
            continue
        meant = nearest(name, asked)
        shown = ", ".join(map(repr, sorted(asked, key=str)))
        rest = f"leave it out; asked for: {shown}." if shown else "leave it out."
        raise InvalidParameter(
            f"{parameter} declares {name!r}, {why}.",
            fix=f"did you mean {meant!r}? Or {rest}" if meant is not None else rest,
        )
