"""What bounds the rows of a converted pipeline: ranges that are public, and ranges that are to be released."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ppdp.core.declared import PRIVATE
from ppdp.exceptions import UnsupportedOrder
from ppdp.interop.sklearn.counterparts import role_of
from ppdp.interop.sklearn.declared_facts import DeclaredFacts
from ppdp.interop.sklearn.models import CLUSTERS
from ppdp.interop.sklearn.steps import Step
from ppdp.interop.sklearn.trees import TREES
from ppdp.transformers import MinMaxScaler
from ppdp.transformers.columns.column_choice import is_listed
from ppdp.transformers.columns.column_group import ColumnGroup
from ppdp.transformers.columns.column_map import ColumnMap
from ppdp.transformers.columns.maps import FillConstant, PublicMap, RangeScale, Unclipped


def only_bounds(maps: Sequence[PublicMap]) -> bool:
    """Whether these maps of all columns are one of ranges, or none."""
    return len(maps) < 2 and all(isinstance(m, RangeScale) and m.target is not None for m in maps)


def ends_of_ranges(behind: Sequence[Step]) -> tuple[float, float]:
    """What columns are scaled to: quantiles are told most finely next to 0, where skewed columns have their rows."""
    first = next((role_of(step) for step in behind if role_of(step) != "imputer"), "")
    return (0.0, 1.0) if first == "quantiles" else (-1.0, 1.0)


def meets_gaps(rest: list[Step]) -> bool:
    """Whether stages that need complete rows stand in front of trees, which do not, and nothing fills these."""
    roles = {"clusters" if step.kind in CLUSTERS else role_of(step) for step in rest[:-1]}
    needy = roles & {"clusters", "components", "label means", "projection", "scaler", "selector"}
    return bool(needy) and rest[-1].kind in TREES and "imputer" not in roles


def check_bounds(blocks: Sequence[ColumnGroup], rest: list[Step], facts: DeclaredFacts, *, plain: bool) -> None:
    """Whatever comes in, something must bound each set of columns."""
    if facts.ranges is not None:
        return
    whole = plain and bool(blocks) and only_bounds(blocks[0].maps)
    scaler = whole and next((m.step for m in blocks[0].maps if isinstance(m, RangeScale)), None)
    if not scaler and (facts.max_norm is not None or facts.bounded):
        return
    if whole and not scaler and rest and getattr(rest[0].estimator, "bounds_rows", False):
        return
    bare = [block for block in blocks if scaler or not (block.drop or any(m.bounds for m in block.maps))]
    if not bare:
        return
    listed = [block.columns for block in bare if isinstance(block.columns, (list, tuple))]
    asked = dict.fromkeys((name for names in listed for name in names), "(low, high)")
    asked |= {"column": "(low, high), ..."} if len(listed) < len(bare) else {}
    why = "no public bound of the rows is declared: ranges, or max_norm."
    why = "the public ranges that it scales by are not declared." if scaler else why
    facts.lack("ranges", asked, why, scaler or None)


def is_released(block: ColumnGroup, facts: DeclaredFacts) -> bool:
    """Whether the ranges of its columns are to be released."""
    if block.drop or block.encoder is not None:
        return False
    name = block.named[0] if is_listed(block.columns) or isinstance(block.columns, str) else None
    if not facts.is_unranged(name):
        return False
    for step in block.maps:
        if not isinstance(step, FillConstant):
            what = f"it goes by the ranges of {block.described}, which are to be released."
            fix = "declare them, or leave it out: columns are scaled by what is released."
            raise UnsupportedOrder(what, stage=step.step, fix=fix)
    return True


def without_range(block: ColumnGroup, facts: DeclaredFacts) -> list[str]:
    """Columns of a block that a range has to bound, where others have one and they have none."""
    bounded = not facts.scales or block.drop or any(m.bounds for m in block.maps)
    return [] if bounded or not isinstance(facts.ranges, Mapping) else [n for n in block.named if n not in facts.ranges]


def public_ranges(facts: DeclaredFacts, blocks: Sequence[ColumnGroup]) -> Any:
    """The ranges that are public, of the columns that are taken if all of them are known."""
    if not isinstance(facts.ranges, Mapping):
        return {} if facts.is_unranged(None) else facts.ranges
    open_ = any(block.ordered or block.columns is None for block in blocks)
    taken = {name for block in blocks if not block.drop for name in block.named}
    declared = facts.ranges.items()
    return {k: v for k, v in declared if not facts.is_unranged(k) and (open_ or not isinstance(k, str) or k in taken)}


def released_ranges(first: ColumnMap, step: Step) -> MinMaxScaler:
    """What scales the columns behind a public stage, some of them by released ranges."""
    names = first.named_columns()
    if names is None or any(block.columns is None for block in first.blocks):
        what = "ranges are to be released of columns whose names are not known here."
        step.refuse(what, "a ColumnTransformer with named columns only.")
    located = first.located_in(names, len(names), math.nan, None)
    ends = [end for _, _, facts in located for end in facts[-1].ranges.tolist()]
    public = [tuple(end) if max(map(abs, end)) > 1 else (-1.0, 1.0) for end in ends]
    private = [isinstance(m, Unclipped) for block, _, facts in located for m in block.maps[:1] for _ in facts[-1].names]
    columns = first.names_out(names, math.nan)
    return MinMaxScaler({name: PRIVATE if p else pair for name, pair, p in zip(columns, public, private)})
