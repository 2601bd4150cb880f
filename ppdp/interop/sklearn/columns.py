"""A ``ColumnTransformer`` or ``FeatureUnion`` as one public stage and the statistics that all its columns share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ppdp.interop.sklearn.flatten import flattened, named_parts
from ppdp.interop.sklearn.parameters import Step, own_name
from ppdp.interop.sklearn.public_maps import Declared
from ppdp.interop.sklearn.twins import is_public, public_map, refuse_unknown, role_of
from ppdp.interop.sklearn.unions import branches
from ppdp.transformers.columns.column_map import Block

__all__ = ["Split", "hoisted", "split_columns"]


@dataclass(frozen=True)
class Split:
    """What a ``ColumnTransformer`` or ``FeatureUnion`` becomes.

    Attributes
    ----------
    blocks : tuple of Block
        The public maps of each set of columns.
    imputer, scaler : Step or None
        What all columns share behind them.
    partly, gappy : bool
        Whether the scaler, and the imputer, was asked for some of the columns only.
    """

    blocks: tuple[Block, ...]
    imputer: Step | None
    scaler: Step | None
    partly: bool
    gappy: bool


def hoisted(steps: list[Step]) -> list[Step]:
    """Scaling by ranges in front of an imputer of means or medians: both orders give the same."""
    ordered = list(steps)
    for _ in ordered:
        for i in range(1, len(ordered)):
            before, step = ordered[i - 1], ordered[i]
            if step.kind in ("MinMaxScaler", "MaxAbsScaler") and role_of(before) == "imputer" and not is_public(before):
                ordered[i - 1 : i + 1] = [step, before]
    return ordered


@dataclass(frozen=True)
class _Branch:
    """Some columns and the steps for them; None if they are dropped."""

    columns: Any
    steps: list[Step] | None
    prefix: str
    rest: bool = False


def split_columns(step: Step, declared: Declared, front: list[Step]) -> tuple[Split, list[Step]]:
    """Public maps by column and shared statistics; and all steps inside, for the report.

    Parameters
    ----------
    step : Step
        The ``ColumnTransformer``, or the ``FeatureUnion``, each part of which takes all columns.
    declared : Declared
        What the user declares for steps.
    front : list of Step
        What stands in front of a ``FeatureUnion``, and so in front of each of its parts.

    Raises
    ------
    InvalidParameter
        If columns are not public, or statistics are not shared.
    """
    if step.kind == "FeatureUnion":
        parts = [_Branch(None, steps, prefix) for prefix, steps in branches("", [*front, step])]
    else:
        parts = list(_column_branches(step))
    blocks: list[Block] = []
    inside: list[Step] = []
    tails: list[list[Step]] = []
    kept: list[Block] = []
    for branch in parts:
        steps = hoisted(branch.steps or [])
        public = [inner for inner in steps if is_public(inner)]
        if steps[: len(public)] != public:
            late = next(s for s, f in zip([*steps], [*public, None]) if s is not f)
            public[-1].refuse(
                f"it stands behind {late.name!r}, which looks at the rows, so that units are not public here.",
                "put it first: gaps stay gaps in it.",
            )
        maps = public_map(public, branch.columns, declared)
        if branch.steps is None:
            blocks.append(Block(branch.columns, drop=True))
            continue
        tails.append(steps[len(public) :])
        blocks.append(Block(branch.columns, maps, branch.prefix, branch.rest))
        kept.append(blocks[-1])
        inside += [inner for inner in steps if all(inner is not known for known in inside)]
    imputers = [_only(tail, "imputer", 0) for tail in tails]
    imputer = _shared(step, imputers)
    scalers = [_only(tail, "scaler", 1 if tail and role_of(tail[0]) == "imputer" else 0) for tail in tails]
    scaler = _shared(step, scalers)
    for tail in tails:
        _check_tail(step, tail)
    bare = any(one is None and not block.fills for one, block in zip(imputers, kept))
    return Split(
        tuple(blocks), imputer, scaler, scaler is not None and None in scalers, imputer is not None and bare
    ), inside


def _column_branches(step: Step) -> Iterator[_Branch]:
    """Those of a ``ColumnTransformer``; a union in one of them is several with the same columns."""
    given = step.read(
        "transformers",
        "remainder",
        "verbose_feature_names_out",
        fixes={"transformer_weights": "leave it out, and use feature_range of a MinMaxScaler."},
    )
    parts = named_parts(step.name, "transformers", given["transformers"], "(name, transformer, columns)")
    listed = [(name, one, columns, False) for name, one, columns in parts]
    for name, one, columns, rest in [*listed, ("remainder", given["remainder"], None, True)]:
        if callable(columns):
            step.refuse(
                f"the columns of {name!r} are chosen by a function of the data.",
                "name them in a list, for example ['age', 'dose'].",
            )
        columns = columns.tolist() if hasattr(columns, "tolist") else columns  # arrays and pandas' own lists of names
        prefix = f"{name}__" if given["verbose_feature_names_out"] is True else ""
        if isinstance(one, str) and one == "drop":
            if not rest:
                yield _Branch(columns, None, prefix)
            continue
        for own, steps in branches(prefix, flattened(name, one)):
            yield _Branch(columns, steps, own, rest)


def _check_tail(step: Step, tail: list[Step]) -> None:
    """Behind the public maps come an imputer, a scaler, or both in this order."""
    known = [s for s in tail if role_of(s) in ("imputer", "scaler")]
    if known == tail and len(tail) <= 2 and [role_of(s) == "imputer" for s in tail] != [False, True]:
        return
    extra = next((s for s in tail if s not in known), tail[-1])
    if extra.kind in ("PCA", "TruncatedSVD", "GaussianRandomProjection", "SparseRandomProjection"):
        why = "it works on some of the columns."
        if step.kind == "FeatureUnion":
            why = "what it makes stands beside other columns, and no bound is proved for both together."
        extra.refuse(why, f"put it behind the {step.kind}, for all columns.")
    if extra in known:
        extra.refuse("the order has no twin.", "an imputer, then a scaler.")
    refuse_unknown(extra)


def _only(tail: list[Step], role: str, position: int) -> Step | None:
    return tail[position] if len(tail) > position and role_of(tail[position]) == role else None


def _shared(step: Step, found: list[Step | None]) -> Step | None:
    """The one statistic that all sets of columns share, if they have any."""
    asked = [one for one in found if one is not None]
    if not asked:
        return None
    forms = {repr((own_name(one.estimator), sorted(one.given().items(), key=lambda pair: pair[0]))) for one in asked}
    if len(forms) > 1:
        step.refuse(
            f"{', '.join(repr(one.name) for one in asked)} take different statistics of different columns.",
            "give them the same class and parameters: one statistic of all columns is released.",
        )
    return asked[0]
