"""Ranges by name of column, as they stand in a pipeline file: those of a data file, each once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ppdp.cli.documents import place_of
from ppdp.cli.errors import refuse, suggestion, words_of

__all__ = ["DataRules", "check_ranges", "hot_names", "keeps_columns", "with_hot_ranges"]


@dataclass(frozen=True, slots=True)
class DataRules:
    """How a data file is read: public rules, for every cell by itself.

    Attributes
    ----------
    label : str or None
        Column of labels.
    drop : tuple of str
        Columns that are not read.
    missing : tuple
        What stands for a gap, beside empty cells.
    categories : mapping of str to tuple of str
        Public categories of columns of text.
    one_hot : tuple of str
        Which of them become a column for every category.
    """

    label: str | None
    drop: tuple[str, ...]
    missing: tuple[str | float, ...]
    categories: Mapping[str, tuple[str, ...]]
    one_hot: tuple[str, ...]


def hot_names(rules: DataRules) -> tuple[str, ...]:
    """The columns of 0 and 1 that the columns in ``one_hot`` become."""
    return tuple(f"{name}={label}" for name in rules.one_hot for label in rules.categories[name])


def with_hot_ranges(parameters: Mapping[str, Any], rules: DataRules) -> dict[str, Any]:
    """Parameters of a step, in which a column of 0 and 1 that has no range has [0, 1]."""
    ranges = parameters.get("ranges")
    if not isinstance(ranges, Mapping):
        return dict(parameters)
    absent = {name: [0, 1] for name in hot_names(rules) if name not in ranges}
    return {**parameters, "ranges": {**ranges, **absent}}


def keeps_columns(step: Any) -> bool:
    """Whether a step of ppdp is known to hand on the columns that it got."""
    from sklearn.base import OneToOneFeatureMixin

    kind = type(step)
    named = getattr(kind, "get_feature_names_out", None)
    return kind.__module__.startswith("ppdp.") and named is OneToOneFeatureMixin.get_feature_names_out


def check_ranges(path: Path, steps: Sequence[tuple[str, Any]], rules: DataRules, names: Sequence[str] | None) -> None:
    """Refuse ranges of columns that are not there, and columns without a range.

    Parameters
    ----------
    path : Path
        The pipeline file, for the error.
    steps : sequence of (name, step)
        What names the ranges.
    rules : DataRules
        How the data are read.
    names : sequence of str, optional
        Features, if they are known; without them only what ``[data]`` tells is checked.

    Raises
    ------
    Misuse
        If a range is too many or too few.
    """
    for position, (_, step) in enumerate(steps):
        ranges = getattr(step, "ranges", None)
        if isinstance(ranges, Mapping):
            place = place_of(path, ["steps", position, "ranges"])
            needed = [name for name in rules.categories if name not in rules.one_hot]
            without = [name for name in (needed if names is None else names) if name not in ranges]
            for name in ranges:
                if names is None or name not in names:
                    _refuse_superfluous(name, rules, names, without, place)
            if without:
                refuse(f"ranges lacks the columns {without}.", place=place, fix=_range_of(without[0], rules))
        if not keeps_columns(step):
            return


def _refuse_superfluous(
    name: str, rules: DataRules, names: Sequence[str] | None, without: Sequence[str], place: str
) -> None:
    """Refuse the range of what is known to be no feature."""
    what = f"ranges has {name!r}, which is"
    if name == rules.label:
        refuse(f"{what} the column of labels.", place=place, fix="leave it out.")
    if name in rules.drop:
        refuse(f"{what} dropped in [data].", place=place, fix="leave it out here, or there.")
    if name in rules.one_hot:
        refuse(
            f"{what} one of the one_hot columns.",
            place=place,
            fix="leave it out; the columns of 0 and 1 that it becomes have [0, 1].",
        )
    column, _, label = name.partition("=")
    if column in rules.one_hot and label not in rules.categories[column]:
        refuse(
            f"{what} no column: {column!r} has no category {label!r}.",
            place=place,
            fix=suggestion(label, rules.categories[column]),
        )
    if names is not None:
        lacking = f", and lacks {words_of(without)}" if without else ""
        refuse(f"{what} no column of the data{lacking}.", place=place, fix=suggestion(name, without or names))


def _range_of(name: str, rules: DataRules) -> str:
    """How a column gets a range."""
    labels = rules.categories.get(name)
    pair = "[LOW, HIGH]" if labels is None else f"[0, {max(1, len(labels) - 1)}]"
    return f"{name} = {pair} here, from what the column means, or list it in [data] drop."
