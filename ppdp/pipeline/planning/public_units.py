"""What columns in front of the last step mean in raw units, as far as public parameters tell before a fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ppdp.core.domain import Domain
from ppdp.data.units import Columns
from ppdp.pipeline.planning.route import PlannedStep, Route

STEP_ONLY = "no public scale and shift leads back to the table"


def asked(mechanism: Any, start: Domain, route: Route) -> Any:
    """The last step as it is asked behind a route: raw numbers that a user wrote are in the units of its rows."""
    if not mechanism.writes_units:
        return mechanism
    return mechanism.in_units(columns_behind(start, route.steps))


def columns_behind(start: Domain, steps: Sequence[PlannedStep]) -> Columns:
    """Columns behind planned steps; where no map leads back, raw values are blank and ranges are public bounds."""
    columns = _bounded(Columns.raw(_names(start)), start)
    for step in steps:
        domain = step.way.domain
        made = step.stage.public_units(columns, step.way, step.domain)
        columns = Columns.lost(_names(domain), STEP_ONLY) if made is None else replace(made, names=_names(domain))
        columns = _bounded(columns, domain)
    return columns


def _bounded(columns: Columns, domain: Domain) -> Columns:
    bound = min(domain.row_norm or math.inf, domain.entry_bound or math.inf)
    return columns.within(-bound, bound)


def _names(domain: Domain) -> tuple[str, ...]:
    return domain.feature_names or tuple(f"x{i}" for i in range(domain.d))
