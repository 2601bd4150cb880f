"""Structured tables: datasets on which bounds are usually tight, or false.

Every family draws n rows of d columns in units of the largest row, and is neither clipped nor checked. ``scale`` is a
length at which a map of datasets may change its mind, such as the radius within which rows count as duplicates.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["MASKS", "STEPS", "TABLES", "units"]

Array = NDArray[np.float64]
Random = np.random.Generator
Table = Callable[[int, int, float, Random], Array]
Mask = Callable[[int, int, Random], NDArray[np.bool_]]

FEW = 0.0, 0.5, 1.0
STEPS = 0.0, 0.3, 0.5, 0.9, 1.0, 1.5, 2.0, 2.5, 2.9, 3.0


def units(n: int, d: int, rng: Random) -> Array:
    """Rows of norm 1 in random directions."""
    X = rng.standard_normal((n, d))
    return np.asarray(X / np.linalg.norm(X, axis=1, keepdims=True))


def _corner(n: int, d: int, rng: Random) -> Array:
    return rng.choice([-1.0, 1.0], (n, d))


def _on_sphere(n: int, d: int, scale: float, rng: Random) -> Array:
    return units(n, d, rng)


def _corners(n: int, d: int, scale: float, rng: Random) -> Array:
    return _corner(n, d, rng)


def _poles(n: int, d: int, scale: float, rng: Random) -> Array:
    return rng.choice([-1.0, 1.0], (n, 1)) * np.eye(d)[rng.integers(d, size=n)]


def _few_values(n: int, d: int, scale: float, rng: Random) -> Array:
    return units(3, d, rng)[rng.integers(3, size=n)] * rng.choice(FEW, (n, 1))


def _nearly_constant(n: int, d: int, scale: float, rng: Random) -> Array:
    return rng.uniform(0, 0.9) * units(1, d, rng) + 10.0 ** -rng.integers(1, 6) * rng.standard_normal((n, d))


def _all_over(n: int, d: int, scale: float, rng: Random) -> Array:
    return rng.uniform(-1, 1, (n, d))


def _two_points(n: int, d: int, scale: float, rng: Random) -> Array:
    """A few rows at one point and the rest at another one, often opposite to it."""
    ends = np.vstack([_corner(1, d, rng), units(1, d, rng)])[rng.permutation(2)]
    ends[1] = (ends[1], -ends[0])[rng.integers(2)]
    few = int(n ** rng.random())
    return ends[(rng.permutation(n) < few).astype(np.intp)]


def _line(n: int, d: int, scale: float, rng: Random) -> Array:
    """Rows on a line through 0, perhaps through corners."""
    along = (units, _corner)[rng.integers(2)](1, d, rng)
    return rng.choice(FEW if rng.random() < 0.5 else rng.uniform(-1, 1, n), (n, 1)) * along


def _axes(n: int, d: int, scale: float, rng: Random) -> Array:
    """Rows on the axes, as many on each and often as long: the spectrum has ties."""
    lengths = rng.choice([0.0, 0.9, 0.9, 1.0], d)
    axis = np.arange(n) % d
    sign = np.where(np.arange(n) // d % 2, 1.0, -1.0)
    return (sign * lengths[axis])[:, None] * np.eye(d)[axis]


def _one_of_its_kind(n: int, d: int, scale: float, rng: Random) -> Array:
    """All rows are one corner; the first is a pole, or opposite to them."""
    X = np.repeat(_corner(1, d, rng) * rng.choice([1.0, 0.1]), n, axis=0)
    X[0] = -X[1 % n] if rng.integers(2) else _poles(1, d, scale, rng)[0]
    return X


def _kissing(n: int, d: int, scale: float, rng: Random) -> Array:
    """Clusters around the first row, as far from it and from each other as scales go; the same around its mirror image.

    One row that comes between clusters can spoil as many as kiss it.
    """
    ways = min(_ways(d, rng), max(1, n - 1))
    directions = _around(ways, d, rng)
    away = rng.choice([0.0, 1.0, 2.0, 3.0]) * scale + rng.uniform(0.5, 1.0) * scale
    spread = rng.choice([0.0, 0.3, 0.9]) * scale
    row = np.arange(n - 1)
    arm, copy = row % ways, row // ways
    offset = spread * rng.choice([-1.0, 0.0, 1.0], n - 1) * (copy > 0)
    centre = units(1, d, rng) * min(0.5, 8 * scale)
    cluster = (away + offset)[:, None] * directions[arm]
    mirrored = (copy * 2 >= -(-(n - 1) // ways)) & bool(rng.integers(2))
    rest = np.where(mirrored[:, None], -1.0, 1.0) * (centre + cluster)
    return np.vstack([centre, rest])


def _ways(d: int, rng: Random) -> int:
    return 2 if d == 1 else int(rng.integers(2, 7)) if d == 2 else 2 * d


def _around(ways: int, d: int, rng: Random) -> Array:
    """Directions far from each other: the ends of a line, of a regular polygon, of all axes."""
    if d == 2:
        turn = 2 * np.pi * (np.arange(ways) / ways + rng.random())
        return np.column_stack([np.cos(turn), np.sin(turn)])
    frame = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return np.vstack([frame, -frame])[:ways]


def _chain(n: int, d: int, scale: float, rng: Random) -> Array:
    """Rows one after the other on a line, at distances around multiples of the scale."""
    steps = scale * rng.choice(STEPS, n) * rng.choice([1.0, 1.0, 1 - 1e-6, 1 + 1e-6], n)
    along = np.cumsum(steps)
    return (along - along.mean())[rng.permutation(n), None] * units(1, d, rng)


TABLES: tuple[Table, ...] = (
    _on_sphere,
    _corners,
    _poles,
    _few_values,
    _nearly_constant,
    _all_over,
    _two_points,
    _line,
    _axes,
    _one_of_its_kind,
    _kissing,
    _chain,
)


def _none_one_all(n: int, d: int, rng: Random) -> NDArray[np.bool_]:
    """Of each row nothing, one entry or everything is missing."""
    kind = rng.integers(3, size=n)[:, None]
    return (kind == 2) | ((kind == 1) & (np.arange(d) == rng.integers(d, size=n)[:, None]))


def _sparse(n: int, d: int, rng: Random) -> NDArray[np.bool_]:
    return np.arange(d) != rng.integers(d, size=n)[:, None]


MASKS: tuple[Mask, ...] = (
    _none_one_all,
    _none_one_all,
    _sparse,
    lambda n, d, rng: rng.random((n, d)) < rng.random(),
    lambda n, d, rng: np.tile(np.arange(d) == rng.integers(d), (n, 1)),  # a column nobody observed
    lambda n, d, rng: np.tile(rng.random((n, 1)) < 0.5, (1, d)),  # rows without any entry
)
