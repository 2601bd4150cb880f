"""Domains and distances over which every bound is attacked."""

from __future__ import annotations

import math

from ppdp.distance import Distance
from ppdp.domain import Domain

__all__ = ["DISTANCES", "domains"]

DISTANCES = (
    Distance(replaced=1),
    Distance(toggled=1),
    Distance(replaced=1, toggled=2, mass=4, one_sided=2),  # one replaced row after keep-first
    Distance(replaced=1, toggled=3),  # any split of the toggles between the two sides
    Distance(moved=3, radius=0.1, total=0.2),
    Distance(replaced=2, toggled=1, moved=4, radius=0.05, total=0.12),
)


def domains(n: int, d: int, **facts: int) -> list[Domain]:
    """Rows in a ball; in a box inside it; in the box that the ball touches at the corners."""
    ball = Domain(n_rows=n, n_features=d, row_norm=1.0, **facts)
    return [ball, ball.but(entry_bound=0.75), ball.but(row_norm=math.sqrt(d), entry_bound=1.0)]
