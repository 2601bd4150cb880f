"""L2 sensitivity of the share of rows in a window: ``docs/theory/share-inside.md``."""

from __future__ import annotations

from ppdp.bounds.queries import counting_step
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import formula
from ppdp.core.rounding import inflate


def one_share(domain: Domain) -> tuple[int, float]:
    """One number of at most 1."""
    return 1, 1.0


@formula("inside.share", kind="mechanism", page="share-inside", used_by=("ShareInside",), shape=one_share)
def share(domain: Domain, distance: Distance) -> float:
    """``one_sided / n``, where a row that moved counts as replaced: 1/n for one replaced row."""
    far = distance.moved_as_replaced()
    return inflate((far.one_sided + far.reweighted * counting_step(domain.n)) / domain.n)
