"""Rows whose signs change: ``docs/theory/negation.md``."""

from __future__ import annotations

from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import formula


@formula("negation.rows", kind="stability", page="negation", way="public", used_by=("Negator",), gaps=True)
def negated(domain: Domain, distance: Distance) -> tuple[Domain, Distance]:
    """Norms and differences stay."""
    return domain, distance
