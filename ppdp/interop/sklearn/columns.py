"""A ``ColumnTransformer`` or ``FeatureUnion`` as one public stage and the statistics that all its columns share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import groupby, takewhile
from typing import Any

import numpy as np
from sklearn.base import clone

from ppdp.core.formula import AT
from ppdp.exceptions import PpdpError
from ppdp.interop.sklearn.counterparts import STAGES, is_public, public_maps, refuse_unknown, role_of
from ppdp.interop.sklearn.declared_facts import DeclaredFacts
from ppdp.interop.sklearn.feature_maps import own_knots
from ppdp.interop.sklearn.models import CLUSTERS
from ppdp.interop.sklearn.schema import columns_taken, picked_columns
from ppdp.interop.sklearn.steps import TEXTS, WEIGHTS, Step, branches, flattened, is_word, named_parts, own_name
from ppdp.interop.sklearn.trees import TREES, only_trees
from ppdp.transformers.columns.column_choice import is_listed
from ppdp.transformers.columns.column_group import ColumnGroup, NamedGroup
from ppdp.transformers.columns.column_stage import Encoder
from ppdp.transformers.rowwise.probe import made_up_rows, quiet


@dataclass
class Split:
    """What a ``ColumnTransformer`` or ``FeatureUnion`` becomes: public maps of sets of columns, and what all share."""

    blocks: list[ColumnGroup]
    inside: list[Step]  # all steps inside, for the report
    tail: list[Step] = field(default_factory=list)  # an imputer and a scaler that all columns share
    uneven: Step | None = None  # the scaler, if it was asked for some of the columns only
    groups: list[tuple[str, list[Step]]] = field(default_factory=list)
    """Where sets of columns share no statistics: the stages of each, by the name of its blocks."""
    errors: list[PpdpError] = field(default_factory=list)
    """Of sets of columns that have no counterpart: they are no block."""


_SAME = ("MinMaxScaler", "MaxAbsScaler")  # what gives the same in front of an imputer of means or medians
_IN_FRONT = ("Binarizer", "KBinsDiscretizer", "PolynomialFeatures", "SplineTransformer")
"""What leaves missing values missing, or makes zeros of them, so that it may stand in front of an imputer."""

_IN_ANY_UNITS = ("KBinsDiscretizer", "MinMaxScaler", "SplineTransformer")
"""What goes by the ends of columns, so that their scale in front of it does nothing."""


def _may_be_hoisted(step: Step) -> bool:
    if step.kind == "FunctionTransformer":
        return isinstance(step.given()["func"], np.ufunc) or _keeps_gaps(step)
    return step.kind in (*_SAME, *_IN_FRONT) and is_public(step)


def _keeps_gaps(step: Step) -> bool:
    """Whether a function leaves something missing of every made-up row that has a gap."""
    given = step.given()
    for width in (1, 2, 3):
        rows = made_up_rows(width, gaps=True)
        try:
            with quiet():
                tried = deepcopy(given["func"])  # so that an object with a memory stays as it is
                out = np.asarray(tried(rows, **(given["kw_args"] or {})), dtype=float)
            if np.isnan(out.reshape(len(rows), -1))[np.isnan(rows).any(axis=1)].any(axis=1).all():
                return True
        except (Exception, SystemExit):  # a user's function may raise anything
            continue
    return False


def hoisted(steps: list[Step]) -> list[Step]:
    """Public maps in front of an imputer of means or medians, where units are public, and that in front of a scaler."""
    ordered = list(steps)
    for _ in ordered:
        for i in range(1, len(ordered)):
            before, step = ordered[i - 1], ordered[i]
            scaled = role_of(before) == "scaler"
            if scaled and step.kind == "MissingIndicator":
                del ordered[i - 1]
                break
            if scaled and step.kind in _IN_ANY_UNITS and is_public(step) and not own_knots(step.given()):
                step.changed.append(f"{before.name!r} is left out: equal steps of a range are the same in any units")
                del ordered[i - 1]
                break
            if scaled and role_of(step) == "imputer" and not is_public(before) and not is_public(step):
                step.changed.append(f"it stands in front of {before.name!r}, which takes complete rows")
                ordered[i - 1 : i + 1] = [step, before]
                continue
            if role_of(before) != "imputer" or is_public(before) or not _may_be_hoisted(step):
                continue
            ordered[i - 1 : i + 1] = [step, before]
            if step.kind not in _SAME:
                step.changed.append(f"it stands in front of {before.name!r}, which fills what it leaves missing")
    return ordered


def steps_ahead(steps: list[Step]) -> int:
    """How many steps stand at the entrance: public maps, and imputers that go into what stands behind them."""
    public = next((i for i, step in enumerate(steps) if not is_public(step)), len(steps))
    columns = next((i for i, step in enumerate(steps) if step.kind == "ColumnTransformer"), 0)
    if columns and all(is_by_column(step) for step in steps[:columns]):
        return columns
    union = next((i for i, step in enumerate(steps) if step.kind == "FeatureUnion"), 0)
    moved = all(is_public(step) or role_of(step) in ("imputer", "scaler") for step in steps[:union])
    return union if union and moved else public


@dataclass(frozen=True)
class _Branch:
    """Some columns and the steps for them; None if they are dropped."""

    columns: Any
    steps: list[Step] | None
    prefix: str
    rest: bool = False
    group: str = ""


def split_columns(step: Step, facts: DeclaredFacts, front: list[Step], behind: list[Step]) -> Split:
    """Public maps by column and shared statistics of a ``ColumnTransformer``, or of a ``FeatureUnion``."""
    if step.given()["transformer_weights"] is not None and [role_of(later) for later in behind] == ["model"]:
        step.estimator = clone(step.estimator).set_params(transformer_weights=None)
        step.changed.append("transformer_weights is left out: a penalty, if there is one, weighs all columns alike")
    if step.kind == "FeatureUnion":
        whole = (
            _picked(_Branch(None, steps, prefix, group=f"part-{i}"), facts)
            for i, (prefix, steps) in enumerate(branches("", [*front, step]), 1)
        )
    elif not all(map(is_by_column, front)):
        front[0].refuse("it stands in front of a ColumnTransformer.", "move it into the branches.")
    else:
        listed = _column_branches(step, facts)
        whole = (b if b.steps is None else replace(b, steps=[*front, *b.steps]) for b in listed)
    parts = [part for branch in whole for part in _apart(branch, facts)]
    split = Split([], [])
    tails: list[list[Step]] = []
    for branch in parts:
        if branch.steps is None:
            split.blocks.append(ColumnGroup(branch.columns, drop=True))
            continue
        steps = hoisted(branch.steps)
        public = [*takewhile(is_public, steps)]
        try:
            _check_public(steps[len(public) :])
            maps = public_maps(public, branch.columns, facts)
        except PpdpError as error:
            split.errors.append(error)
            continue
        split.blocks.append(NamedGroup(branch.columns, maps, branch.prefix, branch.rest, group=branch.group))
        tails.append(steps[len(public) :])
        split.inside += [inner for inner in steps if all(inner is not known for known in split.inside)]
    for tail in tails:
        _check_tail(tail)
    tails = [_bare(tail, behind) for tail in tails]
    if not _is_shared(tails, step, behind):
        return _grouped(split, tails)
    split.blocks = [b if b.drop else ColumnGroup(b.columns, b.maps, b.prefix, b.rest) for b in split.blocks]
    imputers, scalers = zip(*map(_imputer_and_scaler, tails)) if tails else ((), ())
    imputer, scaler = _first(imputers), _first(scalers)
    kept = [block for block in split.blocks if not block.drop]
    if imputer is not None and any(own is None and not block.fills for own, block in zip(imputers, kept)):
        imputer.changed.append("missing values of all columns are filled, also of those that had no imputer")
    if scaler is not None and None in scalers:
        split.uneven = scaler
        scaler.changed.append(
            "all columns are scaled but those that stand for categories or words: for a linear model without a "
            "penalty that is the same"
        )
    split.tail = [one for one in (imputer, scaler) if one is not None]
    return split


def _picked(branch: _Branch, facts: DeclaredFacts) -> _Branch:
    """The branch with the columns that its first step picks, if that is all that this step does."""
    names = picked_columns(branch.steps[0], facts) if branch.steps else None
    if names is None or branch.steps is None:
        return branch
    for behind in branch.steps[1:2]:
        behind.changed.append(f"{branch.steps[0].name!r} in front of it picks {', '.join(map(repr, names))}")
    return replace(branch, columns=names, steps=branch.steps[1:])


def without_late_ranges(rest: list[Step]) -> list[Step]:
    """Without scalers to ranges behind stages that look at the rows, where no range is public."""
    kept: list[Step] = []
    for step, before in zip(rest, [None, *rest]):
        if step.kind in _SAME and step is not rest[-1]:
            continue
        if before is not None and before.kind in _SAME:
            step.changed.append(f"{before.name!r} is left out: {_UNITS_STAY}")
        kept.append(step)
    return kept


_UNITS_STAY = "columns keep the units that they have in front of it, in which penalties and distances weigh"


def is_by_column(step: Step) -> bool:
    """Whether it fills every column by itself, so that it does the same in front of each set of columns."""
    return step.kind == "SimpleImputer" and role_of(step) == "imputer" and not is_public(step)


def _imputer_and_scaler(tail: list[Step]) -> tuple[Step | None, Step | None]:
    """The first of each."""
    roles = [role_of(step) for step in tail]
    imputer = tail[0] if roles[:1] == ["imputer"] else None
    return imputer, tail[-1] if roles[-1:] == ["scaler"] else None


_SHAPES: tuple[list[str], ...] = ([], ["imputer"], ["scaler"], ["imputer", "scaler"], ["imputer", "imputer"])
"""Roles of stages that all columns may share; of two imputers the first leaves the other nothing to do."""


def _is_shared(tails: Sequence[list[Step]], step: Step, behind: Sequence[Step]) -> bool:
    """Whether one statistic of all columns does what all sets of columns ask for, in the eyes of what stands behind."""
    if any([role_of(inner) for inner in tail] not in _SHAPES for tail in tails):
        return False
    imputers, scalers = zip(*map(_imputer_and_scaler, tails)) if tails else ((), ())
    if any(len(_forms(found)) > 1 for found in (imputers, scalers)):
        return False
    uneven = any(scalers) and None in scalers
    return not uneven or all(role_of(later) in ("model", "") for later in behind)


def _forms(found: Sequence[Step | None]) -> set[str]:
    """Classes with parameters, each once."""
    asked = [one for one in found if one is not None]
    return {repr((own_name(one.estimator), sorted(one.given().items(), key=lambda pair: pair[0]))) for one in asked}


def _first(found: Sequence[Step | None]) -> Step | None:
    return next((one for one in found if one is not None), None)


def _bare(tail: list[Step], behind: Sequence[Step]) -> list[Step]:
    """Without imputers and scalers where nothing but trees stands behind all columns."""
    if not only_trees(behind) or not all(map(is_needless, tail)):
        return tail
    for step in tail:
        leave_out(step, behind[0])
    return []


def is_needless(step: Step) -> bool:
    """Whether shapes of columns need it: they are the same in any units, and missing values have one of their own."""
    return role_of(step) in _NEEDLESS and not is_public(step)


def leave_out(step: Step, model: Step) -> None:
    """Say that a step is needless in front of shapes of columns."""
    model.changed.append(f"{step.name!r} is left out: {_NEEDLESS[role_of(step)]}")


_NEEDLESS = {
    "imputer": "missing values have a bin of their own",
    "scaler": "shapes of columns are the same in any units",
    "components": "shapes are those of the columns themselves, in place of components",
}


def without_needless(steps: list[Step]) -> list[Step]:
    """Without what is needless directly in front of shapes of columns, of which words would be too many."""
    words = any(step.kind in (*TEXTS, "FeatureUnion") for step in steps)
    grown = bool(steps) and steps[-1].kind in (*TREES, "QuantileRegressor")
    while grown and len(steps) > 1 and is_needless(steps[-2]) and not (words and role_of(steps[-2]) == "components"):
        leave_out(steps[-2], steps[-1])
        steps = [*steps[:-2], steps[-1]]
    return steps


def _grouped(split: Split, tails: Sequence[list[Step]]) -> Split:
    """The same with stages for each set of columns; an imputer that stood in front of all of them stays there."""
    own = list(tails)
    while all(own) and all(tail[0] is own[0][0] for tail in own) and role_of(own[0][0]) == "imputer" and len(own) > 1:
        split.tail.append(own[0][0])
        own = [tail[1:] for tail in own]
    kept = [block for block in split.blocks if isinstance(block, NamedGroup)]
    split.groups = list({block.group: (block.group, tail) for block, tail in zip(kept, own)}.values())
    return split


def _check_public(tail: list[Step]) -> None:
    """Public maps come first, where the units of the columns are known, or behind a scaler, if they take any."""
    public = [step for step in tail if is_public(step)]
    front = [role_of(step) for step in tail[: -len(public)]]
    last = tail[-len(public) :] == public and all(role_of(step) == "map anywhere" for step in public)
    if not public or (last and front[-1:] == ["scaler"] and set(front) <= {"imputer", "scaler"}):
        return
    late = tail[0]
    if role_of(late) == "imputer" and public[-1].kind in ("OneHotEncoder", "OrdinalEncoder"):
        late.refuse(
            "what it puts in place of a missing category is read off the rows.",
            "SimpleImputer(strategy='constant', fill_value='missing'), and 'missing' among the categories.",
        )
    what = f"it stands behind {late.name!r}, which looks at the rows, so that units are not public here."
    public[-1].refuse(what, "put it first: missing values pass through it.")


_TOGETHER = ("PolynomialFeatures", "Normalizer", "FunctionTransformer")  # what takes its columns together


def _apart(branch: _Branch, facts: DeclaredFacts) -> Iterator[_Branch]:
    """The columns of a branch, those side by side of which the same is to be released; in their order."""
    if branch.steps is None or not is_listed(branch.columns):
        yield branch
        return
    encoder = next((one for one in branch.steps if one.kind in ("OneHotEncoder", "OrdinalEncoder")), None)
    if encoder is not None and not isinstance(encoder.given()["categories"], str):
        yield branch
        return
    released = facts.is_unranged if encoder is None else facts.unknown_of
    parts = [list(columns) for _, columns in groupby(branch.columns, released)]
    together = next((one for one in branch.steps if one.kind in _TOGETHER), None)
    if len(parts) > 1 and together is not None:
        what = "it takes columns together, of which some are public and some are to be released."
        together.refuse(what, "declare all of them, or give it a transformer and columns of its own.")
    for columns in parts:
        yield replace(branch, columns=columns)


def _column_branches(step: Step, facts: DeclaredFacts) -> Iterator[_Branch]:
    """Those of a ``ColumnTransformer``; a union in one of them is several with the same columns."""
    given = step.read("transformers", "remainder", "verbose_feature_names_out", fixes=WEIGHTS)
    parts = named_parts(step.name, "transformers", given["transformers"], "(name, transformer, columns)")
    listed = [(name, one, columns, False) for name, one, columns in parts]
    for name, one, columns, rest in [*listed, ("remainder", given["remainder"], None, True)]:
        columns = columns_taken(step, name, columns, facts)
        prefix = f"{name}__" if given["verbose_feature_names_out"] is True else ""
        if isinstance(one, str) and one == "drop":
            if not rest:
                yield _Branch(columns, None, prefix)
            continue
        inner = flattened(name, one)
        if is_listed(columns) and inner and _is_by_name(inner[0]) and all(map(_is_columnwise, inner[1:])):
            for part in _column_branches(inner[0], facts):
                behind = [replace(step, changed=[], ignored=[]) for step in inner[1:]]
                yield part if part.steps is None else replace(part, steps=[*part.steps, *behind])
            continue
        for step in inner:
            step.encodes = isinstance(step.estimator, Encoder)
        for i, (own, steps) in enumerate(branches(prefix, inner), 1):
            group = name.replace("__", "-").replace(".", "-").replace(AT, "-")
            yield _Branch(columns, steps, own, rest, group if i == 1 else f"{group}-{i}")


def _is_columnwise(step: Step) -> bool:
    """Whether it does the same to a column whatever stands beside it."""
    return step.kind == "SimpleImputer" or role_of(step) == "scaler"


def _is_by_name(step: Step) -> bool:
    """Whether it is a ``ColumnTransformer`` that takes all its columns by name, so that others beside do not matter."""
    if step.kind != "ColumnTransformer":
        return False
    given = step.given()
    parts = named_parts(step.name, "transformers", given["transformers"], "(name, transformer, columns)")
    named = all(is_listed(columns) or isinstance(columns, str) for _, _, columns in parts)
    return named and is_word(given["remainder"], "drop")


def _check_tail(tail: list[Step]) -> None:
    """Behind the public maps come stages that see the rows, imputers first."""
    for inner in tail:
        if role_of(inner) not in (*STAGES, "map anywhere") and inner.kind not in CLUSTERS:
            refuse_unknown(inner)
    roles = [role_of(inner) for inner in tail]
    late = next((i for i, role in enumerate(roles) if role == "imputer" and set(roles[:i]) - {"imputer"}), None)
    if late is not None:
        tail[late].refuse("the order has no counterpart.", "the imputer first: other stages take complete rows.")
