"""Where a stage that compares rows takes its keys from, and in which order it may stand."""

from __future__ import annotations

from typing import Any

from ppdp.bounds.deduplication import nobody_absent
from ppdp.core.checks import choice
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.rows import Array, Rows
from ppdp.exceptions import UnsupportedOrder

__all__ = ["check_order", "compared"]

KEYS = ["current", "raw"]
MOST_MOVED = 0.1  # share of the rows


def check_order(stage: Any, domain: Domain, distance: Distance) -> bool:
    """Whether the stage takes its keys from the raw rows, after checking that it may stand here.

    A comparison of rows is discontinuous: a row that moved by the smallest amount may count as another one, so every
    moved row costs as much as a replaced one.

    Raises
    ------
    UnsupportedOrder
        If an earlier stage moved many rows, or changed weights in a way that this stage cannot take up.
    """
    name = type(stage).__name__
    raw = bool(choice("keys", stage.keys, KEYS, stage) == "raw")
    if distance.reweighted:
        raise UnsupportedOrder(
            "rows have weights between 0 and 1 here.", stage=name, fix="put it before the stage that weights rows."
        )
    if raw and not nobody_absent(domain, distance):
        raise UnsupportedOrder(
            "rows may have been deleted before it, and raw keys would bring them back.",
            stage=name,
            fix="use one stage with keys='raw', or put this one first.",
        )
    if not raw and distance.moved > MOST_MOVED * domain.n:
        raise UnsupportedOrder(
            f"an earlier stage may move {distance.moved:g} of {domain.n} rows, and each would count as replaced.",
            stage=name,
            fix="put it before that stage, or compare the rows as they came with keys='raw'.",
        )
    return raw


def compared(rows: Rows, stage: Any) -> Array:
    """The rows that are compared: as they are, or as they came into the first stage that is fitted or moves rows."""
    return rows.raw if stage.keys == "raw" and rows.raw is not None else rows.X
