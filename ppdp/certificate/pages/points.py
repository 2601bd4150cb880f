"""The distance of neighbouring datasets at every point of a pipeline, in one unit."""

from __future__ import annotations

from dataclasses import dataclass

from ppdp.certificate.record import Place, Record
from ppdp.core.distance import Distance
from ppdp.core.figures import figure

__all__ = ["Point", "points_of", "spreads"]

FEW = 20  # above this range a logarithmic scale is easier to read


@dataclass(frozen=True, slots=True)
class Point:
    """Two neighbouring datasets after one stage.

    Attributes
    ----------
    name : str
        Stage just passed; empty at the entrance.
    distance : Distance
        How far apart they can be.
    row_norm : float or None
        Public bound on the norm of a row here.
    """

    name: str
    distance: Distance
    row_norm: float | None

    @property
    def unmatched(self) -> float:
        """What replaced and toggled rows make up, in replaced rows."""
        return self.distance.mass / 2

    @property
    def rows(self) -> float:
        """Most that a sum of the rows can change, in units of what one replaced row can change it.

        ``(R mass + min(total, 2 R moved)) / 2R`` for rows of norm R: Theorem E of ``docs/theory/distance.md``.
        """
        if self.distance.total == 0:
            return self.unmatched
        if self.row_norm is None:  # a length without a unit: each row counts as replaced, which is always true
            return self.unmatched + self.distance.moved
        return self.distance.shift(self.row_norm, 1.0) / (2 * self.row_norm)

    @property
    def labels(self) -> tuple[str, ...]:
        r"""What differs, in words: ``("1 replaced", "99 moved by ≤\u00a00.02")``."""
        d = self.distance
        words = [f"{d.replaced:g} replaced"]
        if d.toggled:
            words.append(f"{d.toggled:g} toggled")
        if d.moved:
            words.append(f"{d.moved:g} moved by ≤\u00a0{figure(d.radius, 3, upward=True)}")
        return tuple(words)


def points_of(content: Record) -> tuple[Point, ...]:
    """Every point of a certificate's document, the entrance first."""
    stages: list[tuple[str, Place]] = [("", content.entrance), *((step.name, step) for step in content.steps)]
    return tuple(Point(name, Distance.from_dict(at.distance), at.row_norm) for name, at in stages)


def spreads(levels: list[float]) -> bool:
    """Whether these levels need a logarithmic scale."""
    positive = [level for level in levels if level > 0]
    return bool(positive) and max(positive) > FEW * min(positive)
