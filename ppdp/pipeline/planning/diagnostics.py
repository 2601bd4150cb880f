"""What a run says of the rows that it alters: which properties are counted, and with how much noise.

Theory: ``docs/theory/altered-shares.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ppdp.bounds import lookup
from ppdp.bounds.altered import SHARES
from ppdp.core.domain import Domain
from ppdp.data.altered import (
    CELL,
    CLIPPED,
    KEPT,
    LABEL,
    SHORTENED,
    TARGET,
    TINY,
    TINY_TARGET,
    Marker,
    Property,
    beside_zero,
)
from ppdp.data.rows import Rows
from ppdp.pipeline.planning.route import Route
from ppdp.privacy.noise.sampler import gaussian_scale

SHARE = 0.015  # of mu squared
PRECISE = 0.01  # standard error of a share up to which every column is counted by itself
LARGE = 3.0  # mu from which on what is counted stays the same: a plan may keep less of epsilon than is asked for
MOST_COLUMNS = 64  # that are counted by themselves


@dataclass(frozen=True, slots=True)
class Entrance:
    """What may be altered before the first step, by public facts.

    ``repairs`` says whether invalid cells and labels are repaired; ``labels`` is the kind of what the last step learns,
    :data:`~ppdp.data.altered.LABEL`, :data:`~ppdp.data.altered.TARGET`, or None.
    """

    repairs: bool
    labels: str | None

    def properties(self, domain: Domain) -> list[Property]:
        """Of rows at the entrance, in the order in which a :class:`~ppdp.data.altered.Marker` finds them."""
        columns = domain.feature_names or tuple(f"column {i}" for i in range(domain.d))
        found = [Property(LABEL)] if self.labels == LABEL and self.repairs and domain.classes is not None else []
        found += [Property(TARGET)] if self.labels == TARGET else []
        if self.labels == TARGET and domain.y_range is not None and beside_zero(*domain.y_range):
            found.append(Property(TINY_TARGET))
        found += [Property(KEPT)] if domain.adjacency.cuts else []
        found += [Property(CELL, name) for name in columns] if self.repairs else []
        found += [Property(CLIPPED, name) for name in columns] if domain.entry_bound is not None else []
        return [*found, *([Property(SHORTENED)] if domain.row_norm is not None else [])]


@dataclass(frozen=True, slots=True)
class Counted:
    """Properties of rows whose numbers are to be released on a route, and how they are found."""

    marker: Marker
    sensitivity: float
    rounded: int
    draws: int

    @classmethod
    def on(cls, route: Route, entrance: Entrance, domain: Domain, mu: float) -> Counted | None:
        """By the public rule: each column by itself where that is precise, else one count for some or all kinds."""
        stages, properties = [], entrance.properties(domain)
        for step in route.steps:
            if step.way.name != "public" or step.way.distance.moved > domain.neighbours.moved:
                break
            own = step.stage.alters(step.domain)
            if not own and not hasattr(step.stage, "map_rows"):
                break
            stages.append((step, own))
        while stages and not stages[-1][1]:
            stages.pop()
        properties += [one for _, own in stages for one in own]
        if not properties:
            return None
        kinds = tuple(Property(kind) for kind in dict.fromkeys(one.kind for one in properties))
        altered = [one for one in properties if one.kind != TINY]
        choices = tuple(properties), (*altered, Property(TINY))
        fewest = kinds if len(kinds) < len(properties) else choices[0]
        each = PRECISE * math.sqrt(SHARE) * min(mu, LARGE) * domain.n / domain.neighbours.changed
        most = min(MOST_COLUMNS, each**2) if len(set(altered)) == len(altered) else 0
        counted = next((one for one in choices if len(one) <= most), fewest)
        nobody = [Rows.of(np.empty((0, s.domain.d))) for s, _ in stages]
        known = tuple(
            (s.stage, s.stage.prepare(none, s.way, s.domain), s.domain) for none, (s, _) in zip(nobody, stages)
        )
        gaps = domain.missing_rows > 0
        marker = Marker(tuple(properties), counted, domain.entry_bound, domain.row_norm, gaps, known)
        formula, distance, asked = lookup(SHARES, "release"), domain.neighbours, {"counts": len(counted)}
        return cls(
            marker,
            float(formula(domain, distance, **asked)),
            formula.lattice(distance, len(counted), asked),
            formula.draws(distance, len(counted), asked),
        )

    def at(self, mu: float, n: int) -> PlannedDiagnostics:
        """With the noise of this mu."""
        scale = gaussian_scale(self.sensitivity, mu, float(n), self.rounded)
        return PlannedDiagnostics(self.marker, self.sensitivity, mu, scale, n)


@dataclass(frozen=True, slots=True)
class PlannedDiagnostics:
    """Noisy shares of altered rows: one release beside those from which stages are fitted."""

    marker: Marker
    sensitivity: float
    mu: float
    noise_scale: float
    n: int

    @property
    def properties(self) -> Sequence[Property]:
        """Those that are counted."""
        return self.marker.counted

    @property
    def error(self) -> float:
        """Standard error of each share."""
        return self.noise_scale / self.n

    def describe(self) -> str:
        """What a plan says of it."""
        kinds = ", ".join(dict.fromkeys(one.kind for one in self.properties))
        each = "by column" if any(one.column is not None for one in self.properties) else "in all"
        return f"noisy shares of altered rows ({kinds}; {each}): standard error {100 * self.error:.2g} % of rows"
