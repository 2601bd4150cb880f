"""What is not plain Gaussian noise, in words: how it was drawn and what counts of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ppdp.certificate.pages.markup import figure
from ppdp.certificate.record import Gate, Noisy
from ppdp.privacy.parts import Part

__all__ = ["ONLY_THE_LAST", "law_of", "part_in_words"]

ONLY_THE_LAST = ("learning.hidden",)  # of many answers one iterate is released

_LAWS = {
    "gaussian": "Gaussian",
    "learning": "Gaussian",
    "laplace": "Laplace",
    "discrete-laplace": "Laplace, whole numbers",
    "exponential": "random choice",
    "diffprivlib": "drawn by diffprivlib",
}


def law_of(one: Noisy) -> str:
    """Law of a gate's or a mechanism's noise: "Gaussian" or another; one that is not known here gets no name.

    What costs a mu is Gaussian: `verify` computes it so. Of anything else only its formula knows.
    """
    kind = one.kind if isinstance(one, Gate) else one.formula.split(".")[0]
    return "Gaussian" if one.mu is not None else _LAWS.get(kind, "a law unknown to this ppdp")


def part_in_words(recorded: Mapping[str, Any]) -> str:
    """What counts of a part of the privacy loss.

    Parameters
    ----------
    recorded : mapping
        The part as the document records it.

    Raises
    ------
    InvalidParameter
        If no part has these numbers.
    """
    part = Part.from_dict(recorded).to_dict()
    return {
        "laplace": _laplace,
        "scalar-laplace": _laplace,
        "discrete-laplace": _whole,
        "bounded-range": _choices,
        "pure": _pure,
        "poisson": _poisson,
        "fixed-size": _fixed_size,
        "hidden": _hidden,
    }[part["kind"]](part)


def _laplace(part: Mapping[str, Any]) -> str:
    return (
        f"{_times(part)}Laplace noise of scale {figure(part['scale'])} on what changes by at most {_least(part)} (L1)"
    )


def _whole(part: Mapping[str, Any]) -> str:
    return (
        f"{_times(part)}Laplace noise in whole numbers, scale {figure(part['scale'])}, on counts that change by at most"
        f" {_least(part)} (L1)"
    )


def _choices(part: Mapping[str, Any]) -> str:
    count = part["count"]
    spread = figure(part["range"], upward=True)
    return f"{_count(count, 'random choice')} whose privacy loss has a range of at most {spread}{_each(count)}"


def _pure(part: Mapping[str, Any]) -> str:
    return f"{_times(part)}a mechanism that is {figure(part['epsilon'], upward=True)}-differentially private by itself"


def _poisson(part: Mapping[str, Any]) -> str:
    return (
        f"{_sums(part)} over a random sample of the rows, drawn for it alone (every row with probability"
        f" {figure(part['rate'])}): {_noisy(part)}"
    )


def _fixed_size(part: Mapping[str, Any]) -> str:
    return (
        f"{_sums(part)} over {part['batch_size']} of {part['n_rows']} rows, drawn at random for it alone:"
        f" {_noisy(part)}"
    )


def _hidden(part: Mapping[str, Any]) -> str:
    return (
        f"{_times(part)}{part['n_rows']} steps of training, of which one iterate is released, at a secret time;"
        f" noise of standard deviation {figure(part['noise_scale'])} on every step"
    )


def _noisy(part: Mapping[str, Any]) -> str:
    bound, noise = figure(part["bound"], upward=True), figure(part["noise_scale"])
    return f"a row adds at most {bound} to a sum, and noise of standard deviation {noise} was added"


def _times(part: Mapping[str, Any]) -> str:
    return "" if part["count"] == 1 else f"{part['count']} times "


def _sums(part: Mapping[str, Any]) -> str:
    return "one noisy sum" if part["count"] == 1 else f"{part['count']} noisy sums, each"


def _each(count: int) -> str:
    return "" if count == 1 else " each"


def _least(part: Mapping[str, Any]) -> str:
    return figure(part["shift"], upward=True)


def _count(count: int, noun: str) -> str:
    return f"{'one' if count == 1 else count} {noun}{'' if count == 1 else 's'}"
