"""What the stages that rest on fitted quantiles share: a public gap, its condition, and whole rows."""

from __future__ import annotations

from typing import Any

from ppdp.bounds.order_statistics import coordinate_moves
from ppdp.core.checks import number, positive
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain, largest_entry
from ppdp.data.quantiles import RankGapMargin
from ppdp.exceptions import UnsupportedOrder
from ppdp.transformers.way import Measure

_SPREAD = 400  # ranks that values spread evenly over a box of norm R may be apart, in units of R/2


def public_gap(gap: Any, domain: Domain, stage: object) -> float:
    """The threshold of the condition; by default 400/n of the row norm."""
    norm = float(domain.require("row_norm", type(stage).__name__))
    return norm * (min(2.0, _SPREAD / domain.n) if gap is None else positive("gap", gap, stage, most=2))


def public_width(min_width: Any, default: float, domain: Domain, stage: object) -> float:
    """The floor of a width; by default a share of the largest possible entry."""
    norm = float(domain.require("row_norm", type(stage).__name__))
    if min_width is None:
        return default * norm / domain.d**0.5
    return norm * number("min_width", min_width, stage, least=1e-6, most=2)


def usual_share(domain: Domain) -> float:
    """The usual floor of the width between released quantiles, as a share of the largest possible entry.

    A quarter or, where that is less, about seven standard errors of what is chosen at about epsilon = 1 of n values
    that are spread evenly.
    """
    return min(0.25, 500 * float(domain.d) ** 0.5 / domain.n)


def gap_margin(domain: Domain, distance: Distance, quantiles: tuple[float, ...], gap: float) -> dict[str, Measure]:
    """How to measure the condition of a stage that fits these quantiles; it counts whole rows."""
    return {
        "order-statistics.gap": RankGapMargin(gap, quantiles, largest_entry(domain), coordinate_moves(domain, distance))
    }


def refuse_weights(distance: Distance, stage: object) -> None:
    """Ranks count rows; a row of fractional weight has none."""
    if distance.reweighted:
        raise UnsupportedOrder(
            "it ranks rows, and rows may have fractional weights here.",
            stage=type(stage).__name__,
            fix="put it before the stage that weights rows, or use a stage with means.",
        )
