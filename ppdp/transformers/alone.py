"""A stage that is fitted outside a pipeline: the facts it rests on, and what its claims then speak of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ppdp.core.distance import Distance
from ppdp.core.domain import Domain, check_domain
from ppdp.data.facts import complete
from ppdp.data.rows import Array, Rows
from ppdp.data.statistics import row_norms
from ppdp.data.summary import incomplete
from ppdp.exceptions import DomainMismatch, InvalidParameter, InvalidValue, MissingBound, PpdpError
from ppdp.transformers.way import Way

ROUNDING = 1 + 1e-9  # that rows may exceed their declared bounds by


def declared_facts(stage: Any, domain: Domain, shape: tuple[int, int], names: tuple[str, ...] | None) -> Domain:
    """A declared domain, completed by what is public of rows that are all present."""
    check_domain(domain)
    if domain.adjacency.hides_number:
        raise InvalidParameter(
            "a stage that is fitted alone sees all rows at once, so their number cannot be private.",
            stage=type(stage).__name__,
            fix="use it in a ppdp.Pipeline, or declare Adjacency.replace().",
        )
    facts, _ = complete(domain, [(type(stage).__name__, stage)], None, shape=shape, names=names)
    return facts.but(max_missing=domain.max_missing) if stage.allows_gaps else facts


def check_rows(stage: Any, X: Array, domain: Domain) -> None:
    """Refuse rows outside the domain that is declared for them, without telling a value."""
    name, norm, entry = type(stage).__name__, domain.row_norm, domain.entry_bound
    outside = norm is not None and bool((row_norms(X) > norm * ROUNDING).any())
    outside = outside or (entry is not None and bool((np.abs(X) > entry * ROUNDING).any()))
    if outside:
        raise InvalidValue(
            "some rows are outside the declared row_norm or entry_bound.",
            stage=name,
            fix="clip them before, with MinMaxScaler(ranges=...) or NormClipper(...), or declare what holds for all.",
        )
    if incomplete(Rows.of(X)) > domain.missing_rows:
        raise InvalidValue(
            "more rows have missing values than max_missing declares.", stage=name, fix="declare what holds for all."
        )


@dataclass(frozen=True)
class Alone:
    """How a stage was fitted outside a pipeline; it holds nothing of the rows."""

    facts: Domain  # that were declared, completed; otherwise shape and names alone
    map: tuple[Any, ...] | None  # name, formula and parameters of the way that it went, if the facts were declared
    public: bool  # whether the way looks at no row

    @classmethod
    def of(cls, facts: Domain, way: Way, *, declared: bool) -> Alone:
        """What is kept of a fit."""
        shape = Domain(n_rows=facts.n, n_features=facts.d, feature_names=facts.feature_names, max_missing=0)
        return cls(facts if declared else shape, _map(way) if declared else None, way.name == "public")

    def check(self, stage: Any, domain: Domain, distance: Distance) -> Way:
        """The way that claims at this domain and distance speak of; refused if the stage did not go it."""
        name = type(stage).__name__
        if self.map is None:
            if not self.public or _rests_on_bounds(stage, self.facts):
                raise MissingBound(
                    "it was fitted alone and its bounds were read off the rows, so one replaced row may change the"
                    " whole map; what is proved holds for a map with public bounds.",
                    stage=name,
                    fix="fit(X, domain=Domain(row_norm=...)), or use it in a ppdp.Pipeline; an unfitted copy"
                    " (sklearn.base.clone) tells what is proved there.",
                )
            unbound: Way = stage.way_alone(domain, distance)
            return unbound
        asked = declared_facts(stage, domain, (self.facts.n, self.facts.d), self.facts.feature_names)
        way: Way = stage.way_alone(asked, distance)
        if asked != self.facts or _map(way) != self.map:
            raise DomainMismatch(
                "it was fitted alone with another domain or other parameters, so this claim would be of another map.",
                stage=name,
                fix="ask for what it was fitted with, or ask an unfitted copy (sklearn.base.clone).",
            )
        return way


def _rests_on_bounds(stage: Any, shape: Domain) -> bool:
    """Whether a public map would be another one if the rows were longer."""
    none, found = Rows.of(np.empty((0, shape.d))), []
    for bound in (1.0, 2.0):
        facts = shape.but(row_norm=bound, entry_bound=bound)
        try:
            way = stage.way_alone(facts, facts.neighbours)
            found.append((_map(way), stage.prepare(none, way, facts)))
        except PpdpError:
            return True
    (one, statistics), (other, others) = found
    same = one == other and statistics.keys() == others.keys()
    return not (same and all(_equal(statistics[name], others[name]) for name in statistics))


def _equal(one: Any, other: Any) -> bool:
    return (one != other).nnz == 0 if issparse(one) else np.array_equal(one, other)


def _map(way: Way) -> tuple[Any, ...]:
    return way.name, way.formula, dict(way.parameters)
