"""A ``FeatureUnion`` as branches that all take the same columns."""

from __future__ import annotations

from collections.abc import Iterator

from ppdp.exceptions import InvalidParameter
from ppdp.interop.sklearn.flatten import DEEPEST, flattened, named_parts
from ppdp.interop.sklearn.parameters import Step

__all__ = ["branches"]


def branches(prefix: str, steps: list[Step], depth: int = 0) -> Iterator[tuple[str, list[Step]]]:
    """Chains of steps without a union in them, whose results side by side are that of these steps.

    What stands in front of a union stands in front of each of its parts.

    Parameters
    ----------
    prefix : str
        Put before the names of what comes out.
    steps : list of Step
        One after the other, the last one perhaps a union.

    Raises
    ------
    InvalidParameter
        If steps stand behind a union, or unions are nested without end.
    """
    at = next((i for i, step in enumerate(steps) if step.kind == "FeatureUnion"), None)
    if at is None:
        yield prefix, steps
        return
    union, front, behind = steps[at], steps[:at], steps[at + 1 :]
    if depth > DEEPEST:
        raise InvalidParameter("a FeatureUnion contains itself, or too many others.", fix="one list of transformers.")
    if behind:
        union.refuse(
            f"{behind[0].name!r} stands behind it, and not behind all columns.",
            "put that into each part of the FeatureUnion, or behind everything.",
        )
    given = union.read(
        "transformer_list",
        "verbose_feature_names_out",
        fixes={"transformer_weights": "leave it out, and use feature_range of a MinMaxScaler."},
    )
    for name, one in named_parts(union.name, "transformer_list", given["transformer_list"], "(name, transformer)"):
        if isinstance(one, str) and one == "drop":
            continue
        own = f"{prefix}{name}__" if given["verbose_feature_names_out"] is True else prefix
        yield from branches(own, [*front, *flattened(name, one)], depth + 1)
