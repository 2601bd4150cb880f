"""What a run says of the rows that it alters: which properties are counted, and with how much noise.

Theory: ``docs/theory/altered-shares.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ppdp.bounds import lookup
from ppdp.bounds.laplace import whole_loss
from ppdp.bounds.release import (
    CELL,
    CLASS,
    CLIPPED,
    KEPT,
    LABEL,
    MISSING,
    PREDICTED,
    SHARES,
    SHORTENED,
    TARGET,
    TINY,
    TINY_TARGET,
    TINY_WEIGHT,
    WEIGHT,
    ZERO_TARGET,
    class_names,
    kind_in_words,
    predicted_apart,
    prediction_stride,
    share_parameters,
)
from ppdp.core.domain import Domain
from ppdp.data.altered import Marker, Property, beside_zero
from ppdp.data.rows import Array, Rows
from ppdp.pipeline.planning.route import Route
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.noise.laplace import laplace_release
from ppdp.privacy.noise.sampler import Noise, gaussian_scale
from ppdp.transformers.columns.column_subset import ColumnSubset

SHARE = 0.015  # of mu squared
PURE_SHARE = 0.02  # of epsilon, where noise is not Gaussian
OFF = "diagnostics=None"
PRECISE = 0.01  # standard error of a share up to which every column is counted by itself
LARGE = 3.0  # mu from which on what is counted stays the same: a plan may keep less of epsilon than is asked for
MOST_COLUMNS = 64  # that are counted by themselves
FEWEST_ROWS = 1000  # of more so many are predicted, or none
MOST_CLASSES = 64  # of which it is counted how they are predicted


@dataclass(frozen=True, slots=True)
class Entrance:
    """What may be altered before the first step, by public facts.

    ``repairs`` says whether invalid cells and labels are repaired; ``labels`` is the kind of what the last step learns,
    :data:`~ppdp.data.altered.LABEL`, :data:`~ppdp.data.altered.TARGET`, or None; ``told`` whether shares are wanted;
    ``balances`` whether the last step needs the numbers of rows of each class, whoever wants shares; ``logarithms``
    whether it learns logarithms of targets, to which small ones are as much as large ones; ``classifies`` whether it
    predicts declared classes.
    """

    repairs: bool
    labels: str | None
    told: bool = True
    balances: bool = False
    logarithms: bool = False
    classifies: bool = False

    def predicted(self, route: Route, domain: Domain) -> list[Property]:
        """What is counted of labels behind the last step: none where other rows decide on what it learns of a row."""
        if not self.classifies or not self.told or self.balances or route.conditional:
            return []
        names, many = class_names(domain), domain.n // prediction_stride(route.domain) >= min(domain.n, FEWEST_ROWS)
        apart = predicted_apart(domain.neighbours, route.domain, route.distance)
        counted = apart and many and len(names) <= MOST_CLASSES
        return [Property(kind, name) for kind in PREDICTED for name in names] if counted else []

    def properties(self, domain: Domain) -> list[Property]:
        """Of rows at the entrance, in the order in which a :class:`~ppdp.data.altered.Marker` finds them."""
        classes = [Property(CLASS, name) for name in class_names(domain)] if self.balances else []
        columns = domain.feature_names or tuple(f"column {i}" for i in range(domain.d))
        counted = [Property(LABEL)] if self.labels == LABEL and self.repairs and domain.classes is not None else []
        counted += [Property(TARGET)] if self.labels == TARGET else []
        y_range = domain.y_range if self.labels == TARGET and not self.logarithms else None
        if y_range is not None and beside_zero(*y_range):
            counted += [Property(TINY_TARGET), Property(ZERO_TARGET)]
        counted += [Property(WEIGHT), Property(TINY_WEIGHT)] if domain.max_weight is not None else []
        counted += classes
        counted += [Property(KEPT)] if domain.adjacency.unbounded else []
        counted += [Property(CELL, name) for name in columns] if self.repairs else []
        counted += [Property(CLIPPED, name) for name in columns] if domain.entry_bound is not None else []
        return [*counted, *([Property(SHORTENED)] if domain.row_norm is not None else [])]


@dataclass(frozen=True, slots=True)
class Counted:
    """Properties of rows whose numbers are to be released on a route, and how they are found."""

    marker: Marker
    predicted: tuple[Property, ...]
    formula: str
    sensitivity: float
    rounded: int
    draws: int

    @classmethod
    def on(cls, route: Route, entrance: Entrance, domain: Domain, affordable: float, formula_id: str) -> Counted:
        """By the public rule: each column by itself where that is precise, else one count for some or all kinds.

        ``affordable`` is how many numbers :func:`affordable` finds.
        """
        stages, properties = _properties(route, entrance, domain)
        if not entrance.told:
            stages, properties = [], [one for one in properties if one.kind == CLASS]
        predicted = tuple(entrance.predicted(route, domain)) if formula_id == SHARES else ()
        distinct = [one for one in properties if one.kind != TINY]
        first, altered = (tuple(one for one in some if one.kind != MISSING) for some in (properties, distinct))
        choices = tuple(properties), first, (*altered, Property(TINY))
        kinds = tuple(dict.fromkeys(one if one.kind == CLASS else Property(one.kind) for one in first))
        fewest = kinds if len(kinds) < len(first) else first
        most = min(MOST_COLUMNS, affordable) if len(set(distinct)) == len(distinct) else 0
        counted = next((one for one in choices if len(one) <= most), fewest)
        properties = [one for one in properties if one.kind != MISSING or one in counted]
        nobody = [Rows.of(np.empty((0, s.domain.d))) for s, _ in stages]
        maps = tuple(
            (s.stage, s.stage.prepare(none, s.way, s.domain) if _maps_rows(s, domain) else None, s.domain)
            for none, (s, _) in zip(nobody, stages)
        )
        gaps = domain.missing_rows > 0
        marker = Marker(tuple(properties), counted, domain.entry_bound, domain.row_norm, gaps, maps)
        formula, distance, size = lookup(formula_id, "release"), domain.neighbours, len(counted) + len(predicted)
        asked = share_parameters([one.kind for one in (*counted, *predicted)])
        return cls(
            marker,
            predicted,
            formula_id,
            float(formula(domain, distance, **asked)),
            formula.lattice(distance, size, asked),
            formula.draws(distance, size, asked),
        )

    @property
    def share(self) -> float:
        """Of mu squared."""
        return SHARE if self.formula == SHARES else 0.0

    def at(self, mu: float, epsilon: float, n: int) -> PlannedDiagnostics:
        """With the Gaussian noise of this mu, or the Laplace noise of a share of epsilon."""
        if self.formula == SHARES:
            scale, cost = gaussian_scale(self.sensitivity, mu, float(n), self.rounded), PrivacyLoss(mu)
        else:
            scale = self.sensitivity / (PURE_SHARE * epsilon)
            cost = whole_loss(int(self.sensitivity), scale, float(n))
        return PlannedDiagnostics(self.marker, self.predicted, self.formula, self.sensitivity, cost, scale, n)


def _properties(route: Route, entrance: Entrance, domain: Domain) -> tuple[list[tuple[Any, Any]], list[Property]]:
    """The first steps, as far as they say of each row what they alter, and all properties that rows may have."""
    stages, properties, passed = [], entrance.properties(domain), set()
    for step in route.steps:
        group = step.stage.group if isinstance(step.stage, ColumnSubset) else None
        keeps_width = step.way.domain.d == step.domain.d
        if group in passed and not keeps_width:
            break  # groups behind it have other places then than rows have as they came
        if (step.stage.compares and step.stage.keeps_units) or group in passed:
            continue  # rows are counted as they came, whether they stay or not
        altered = step.stage.alters(step.domain)
        alone = _maps_rows(step, domain)
        if group is not None and keeps_width and not alone and {one.kind for one in altered} <= {MISSING}:
            passed.add(group)  # other groups are as they were
            stages.append((step, altered))
            continue
        if group is None and passed:
            break
        if not altered and not alone:
            break
        stages.append((step, altered))
        if not alone or getattr(step.stage, "takes_texts", False):
            break  # a code of a text says nothing by itself
    while stages and not stages[-1][1]:
        stages.pop()
    found = [*properties, *(one for _, altered in stages for one in altered)]
    # What is missing is no reason for a release, and models are not hurt by what fills it.
    only = entrance.labels is not None or all(one.kind == MISSING for one in found)
    return stages, [one for one in found if one.kind != MISSING] if only else found


def _maps_rows(step: Any, domain: Domain) -> bool:
    """Whether it maps each row by itself, by what is public."""
    by_itself = step.way.name == "public" and step.way.distance.moved <= domain.neighbours.moved
    return by_itself and hasattr(step.stage, "map_rows")


def alters(route: Route, entrance: Entrance, domain: Domain) -> bool:
    """Whether rows may have any property."""
    return bool(_properties(route, entrance, domain)[1] or entrance.predicted(route, domain))


def affordable(formula: str, domain: Domain, mu: float, epsilon: float) -> float:
    """How many numbers can be released with a standard error of at most 1 % of the rows each."""
    rows = PRECISE * domain.n / domain.neighbours.changed
    if formula == SHARES:
        return (rows * math.sqrt(SHARE) * min(mu, LARGE)) ** 2
    return rows * PURE_SHARE * epsilon / math.sqrt(2)


@dataclass(frozen=True, slots=True)
class PlannedDiagnostics:
    """Noisy shares of altered rows: one release beside those from which stages are fitted."""

    marker: Marker
    predicted: tuple[Property, ...]
    formula: str
    sensitivity: float
    loss: PrivacyLoss
    noise_scale: float
    n: int

    @property
    def properties(self) -> Sequence[Property]:
        """Those that are counted: of rows as they come in, then of what is predicted of them."""
        return *self.marker.counted, *self.predicted

    @property
    def error(self) -> float:
        """Standard error of each share."""
        return self.noise_scale * (1.0 if self.loss.mu else math.sqrt(2)) / self.n

    def by_class(self, noisy: Array) -> Array:
        """Noisy numbers of rows of each class, if they are counted."""
        return np.array([count for one, count in zip(self.properties, noisy) if one.kind == CLASS])

    def release(self, counts: Array, noise: Noise) -> Array:
        """Noisy numbers of rows."""
        if self.formula == SHARES:
            return noise.release(counts, self.noise_scale, float(self.n))
        return laplace_release(noise, counts, self.noise_scale, float(self.n), whole=True)

    def describe(self) -> str:
        """What a plan says of it."""
        kinds = ", ".join(dict.fromkeys(kind_in_words(one.kind) for one in self.properties))
        each = "by column" if any(one.column is not None for one in self.properties) else "in all"
        return f"noisy diagnostics ({kinds}; {each}): standard error {100 * self.error:.2g} % of rows"
