"""A ``ColumnTransformer`` as one public stage and the statistics that all its columns share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ppdp.conversion.column_map import Block
from ppdp.conversion.parameters import Step, own_name
from ppdp.conversion.public_maps import Declared, is_public, public_map
from ppdp.conversion.stages import IMPUTERS, SCALERS
from ppdp.exceptions import InvalidParameter

__all__ = ["Split", "flattened", "hoisted", "named_parts", "split_columns"]


@dataclass(frozen=True)
class Split:
    """What a ``ColumnTransformer`` becomes.

    Attributes
    ----------
    blocks : tuple of Block
        The public maps of each set of columns.
    imputer, scaler : Step or None
        What all columns share behind them.
    partly : bool
        Whether the scaler was asked for some of the columns only.
    """

    blocks: tuple[Block, ...]
    imputer: Step | None
    scaler: Step | None
    partly: bool


DEEPEST = 50  # pipelines inside pipelines


def flattened(name: str, estimator: Any, depth: int = 0) -> list[Step]:
    """The steps of a pipeline of scikit-learn or imbalanced-learn, also in it; steps that only pass are gone.

    Raises
    ------
    InvalidParameter
        If steps are no list of (name, estimator), or nested without end.
    """
    if estimator is None or (isinstance(estimator, str) and estimator == "passthrough"):
        return []
    if type(estimator).__name__ == "Pipeline" and type(estimator).__module__.startswith(("sklearn.", "imblearn.")):
        if depth > DEEPEST:
            raise InvalidParameter("a pipeline contains itself, or too many others.", fix="one list of steps.")
        inner = named_parts(name, "steps", estimator.get_params(deep=False)["steps"], "(name, estimator)")
        return [
            step for label, one in inner for step in flattened(f"{name}-{label}" if name else label, one, depth + 1)
        ]
    return [Step((name or type(estimator).__name__.lower()).replace(".", "-").replace("__", "-"), estimator)]


def named_parts(name: str, parameter: str, parts: Any, form: str) -> list[Any]:
    """What a container of scikit-learn holds.

    Raises
    ------
    InvalidParameter
        If it is no list of tuples of this form with a string in front.
    """
    size = form.count(",") + 1
    listed = list(parts) if isinstance(parts, (list, tuple)) else [None]
    if all(isinstance(part, (list, tuple)) and len(part) == size and isinstance(part[0], str) for part in listed):
        return listed
    raise InvalidParameter(f"{parameter} must be a list of {form}.", stage=name or None, fix="names are strings.")


def hoisted(steps: list[Step]) -> list[Step]:
    """Scaling by ranges in front of an imputer of means or medians: both orders give the same."""
    ordered = list(steps)
    for _ in ordered:
        for i in range(1, len(ordered)):
            before, step = ordered[i - 1], ordered[i]
            if step.kind in ("MinMaxScaler", "MaxAbsScaler") and before.kind in IMPUTERS and not is_public(before):
                ordered[i - 1 : i + 1] = [step, before]
    return ordered


def split_columns(step: Step, declared: Declared) -> tuple[Split, list[Step]]:
    """Public maps by column and shared statistics; and all steps inside, for the report.

    Parameters
    ----------
    step : Step
        The ``ColumnTransformer``.
    declared : Declared
        What the user declares for steps.

    Raises
    ------
    InvalidParameter
        If columns are not public, or statistics are not shared.
    """
    given = step.read(
        "transformers",
        "remainder",
        "verbose_feature_names_out",
        fixes={"transformer_weights": "leave it out, and use feature_range of a MinMaxScaler."},
    )
    parts = named_parts(step.name, "transformers", given["transformers"], "(name, transformer, columns)")
    branches = [(name, one, columns, False) for name, one, columns in parts]
    branches.append(("remainder", given["remainder"], None, True))
    prefixed = given["verbose_feature_names_out"] is True
    blocks, inside, tails = [], [], []
    for name, one, columns, rest in branches:
        if callable(columns):
            step.refuse(
                f"the columns of {name!r} are chosen by a function of the data.",
                "name them in a list, for example ['age', 'dose'].",
            )
        columns = columns.tolist() if hasattr(columns, "tolist") else columns  # arrays and pandas' own lists of names
        gone = isinstance(one, str) and one == "drop"
        if gone and rest:
            continue
        steps = [] if gone else hoisted(flattened(name, one))
        front = [inner for inner in steps if is_public(inner)]
        if steps[: len(front)] != front:
            late = next(s for s, f in zip([*steps], [*front, None]) if s is not f)
            front[-1].refuse(
                f"it stands behind {late.name!r}, which looks at the rows, so that units are not public here.",
                "put it first: gaps stay gaps in it.",
            )
        tail = steps[len(front) :]
        maps = public_map(front, columns, declared)
        if gone:
            blocks.append(Block(columns, drop=True))
            continue
        tails.append(tail)
        blocks.append(Block(columns, maps, f"{name}__" if prefixed else "", rest))
        inside += steps
    imputer = _shared(step, [_only(tail, IMPUTERS, 0) for tail in tails])
    scalers = [_only(tail, SCALERS, 1 if tail and tail[0].kind in IMPUTERS else 0) for tail in tails]
    scaler = _shared(step, scalers)
    for tail in tails:
        known = [s for s in tail if s.kind in IMPUTERS or s.kind in SCALERS]
        if known != tail or len(tail) > 2 or [s.kind in IMPUTERS for s in tail] == [False, True]:
            extra = next((s for s in tail if s not in known), tail[-1])
            if extra.kind in ("PCA", "TruncatedSVD", "GaussianRandomProjection", "SparseRandomProjection"):
                extra.refuse(
                    "it works on some of the columns.", "put it behind the ColumnTransformer, for all columns."
                )
            extra.unknown() if extra not in known else extra.refuse(
                "the order has no twin.", "an imputer, then a scaler."
            )
    return Split(tuple(blocks), imputer, scaler, scaler is not None and None in scalers), inside


def _only(tail: list[Step], kinds: Any, position: int) -> Step | None:
    return tail[position] if len(tail) > position and tail[position].kind in kinds else None


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
