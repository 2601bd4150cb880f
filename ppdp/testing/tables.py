"""Structured tables, and tables with a row to replace: datasets on which bounds are usually tight, or false.

Every family draws n rows of d columns in units of the largest row, and is neither clipped nor checked. ``scale`` is a
length at which a map of datasets may change its mind, such as the radius within which rows count as duplicates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ppdp.data.rows import Array

Random = np.random.Generator
Table = Callable[[int, int, float, Random], Array]
Scales = Callable[[], float]
Neighbours = Callable[[int, int, Scales, Random], tuple[Array, Array]]
"""A table, and the row that its first row becomes; every call of ``scales`` draws a length."""
Mask = Callable[[int, int, Random], NDArray[np.bool_]]

Choice = TypeVar("Choice")

FEW = 0.0, 0.5, 1.0
STEPS = 0.0, 0.3, 0.5, 0.9, 1.0, 1.5, 2.0, 2.5, 2.9, 3.0


def one_of(choices: Sequence[Choice], rng: Random) -> Choice:
    """Any of them, as ``rng.choice`` draws it from an array, in a tenth of the time."""
    return choices[int(rng.integers(len(choices)))]


def units(n: int, d: int, rng: Random) -> Array:
    """Rows of norm 1 in random directions."""
    X = rng.standard_normal((n, d))
    return np.asarray(X / np.linalg.norm(X, axis=1, keepdims=True))


def _corner(n: int, d: int, rng: Random) -> Array:
    return rng.choice([-1.0, 1.0], (n, d))


def _poles(n: int, d: int, rng: Random) -> Array:
    return rng.choice([-1.0, 1.0], (n, 1)) * np.eye(d)[rng.integers(d, size=n)]


def _nearly_constant(n: int, d: int, scale: float, rng: Random) -> Array:
    return rng.uniform(0, 0.9) * units(1, d, rng) + 10.0 ** -rng.integers(1, 6) * rng.standard_normal((n, d))


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
    X = np.repeat(_corner(1, d, rng) * one_of((1.0, 0.1), rng), n, axis=0)
    X[0] = -X[1 % n] if rng.integers(2) else _poles(1, d, rng)[0]
    return X


def _kissing(n: int, d: int, scale: float, rng: Random) -> Array:
    """Clusters as far from the first row and each other as scales go, and mirrored: one row spoils all that kiss it."""
    most = 2 if d == 1 else int(rng.integers(2, 7)) if d == 2 else 2 * d
    ways = min(most, max(1, n - 1))
    directions = _around(ways, d, rng)
    away = one_of((0.0, 1.0, 2.0, 3.0), rng) * scale + rng.uniform(0.5, 1.0) * scale
    spread = one_of((0.0, 0.3, 0.9), rng) * scale
    row = np.arange(n - 1)
    arm, copy = row % ways, row // ways
    offset = spread * rng.choice([-1.0, 0.0, 1.0], n - 1) * (copy > 0)
    centre = units(1, d, rng) * min(0.5, 8 * scale)
    cluster = (away + offset)[:, None] * directions[arm]
    mirrored = (copy * 2 >= -(-(n - 1) // ways)) & bool(rng.integers(2))
    rest = np.where(mirrored[:, None], -1.0, 1.0) * (centre + cluster)
    return np.vstack([centre, rest])


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
    lambda n, d, scale, rng: units(n, d, rng),
    lambda n, d, scale, rng: _corner(n, d, rng),
    lambda n, d, scale, rng: _poles(n, d, rng),
    lambda n, d, scale, rng: units(3, d, rng)[rng.integers(3, size=n)] * rng.choice(FEW, (n, 1)),  # few values
    _nearly_constant,
    lambda n, d, scale, rng: rng.uniform(-1, 1, (n, d)),  # all over the box
    _two_points,
    _line,
    _axes,
    _one_of_its_kind,
    _kissing,
    _chain,
)


def _few_points(n: int, d: int, scales: Scales, rng: Random) -> tuple[Array, Array]:
    """All rows but two at two points; the first row is turned around, or reflected, or becomes another point."""
    axes = _frame(d, rng)[: one_of((1, 2, 3), rng)]
    first, strained, some, rest, other = _points(axes, rng)
    some = _turned(rest, rng) if rng.integers(2) else some
    many = int(one_of((0.0, n ** rng.random(), n * rng.random()), rng))
    z = other if rng.random() < 0.2 else _turned(first, rng)
    return _stacked(n, (first, 1), (strained, 1), (some, many), (rest, n)) @ axes, z @ axes


def _stacked(n: int, *points: tuple[Array, int]) -> Array:
    """Every point so many times, n rows in all."""
    return np.vstack([np.tile(point, (count, 1)) for point, count in points])[:n]


def _frame(d: int, rng: Random) -> Array:
    """Up to three orthonormal directions: columns, in any order, or any others."""
    frame = np.eye(d)[rng.permutation(d)] if rng.integers(2) else np.linalg.qr(rng.standard_normal((d, d)))[0]
    return np.asarray(frame[:3])


def _points(axes: Array, rng: Random) -> Array:
    """Five points in coordinates of the axes: 0, on an axis, or anywhere on the sphere."""
    k = len(axes)
    poles = _poles(5, k, rng)
    choices = np.stack([0 * poles, poles, poles, rng.random((5, 1)) * poles, units(5, k, rng), units(5, k, rng)])
    return np.asarray(choices[rng.integers(len(choices), size=5), np.arange(5)])


def _turned(point: Array, rng: Random) -> Array:
    """Opposite to a point, or reflected along one axis."""
    return -point if rng.integers(2) else np.where(np.arange(len(point)) == rng.integers(len(point)), -point, point)


def _spread_by_one(n: int, d: int, scales: Scales, rng: Random) -> tuple[Array, Array]:
    """On a line: most rows at one end, few elsewhere, and the first goes from end to end, which strains variances."""
    direction = _frame(d, rng)[0] * one_of((-1.0, 1.0), rng)
    place = one_of((-1.0, 1.0, rng.uniform(-1, 1)), rng)
    second = -one_of((1.0, rng.random(), rng.random()), rng)
    few = int(one_of((0.0, n ** rng.uniform(0, 0.7)), rng))
    z = one_of((-1.0, 1.0), rng)
    values = np.concatenate([[z, second], np.full(few, place), np.ones(n)])[:n]
    return np.outer(values, direction), -z * direction


def _decides_a_slope(n: int, d: int, scales: Scales, rng: Random) -> tuple[Array, Array]:
    """The first row is reflected on an axis with few others, so that it turns the slope or direction it decided."""
    axes = _frame(d, rng)
    if len(axes) < 2:
        return _spread_by_one(n, d, scales, rng)
    lead = np.eye(len(axes))[0]
    upright, aside = (np.append(0.0, units(1, len(axes) - 1, rng)[0]) for _ in range(2))
    tilt, lean = rng.uniform(0.4, 0.9), rng.random()
    tilt = one_of((np.sqrt(0.5), tilt), rng)
    first, z = (sign * tilt * lead + np.sqrt(1 - tilt**2) * upright for sign in (1, -1))
    if rng.random() < 0.3:  # a mean far out, and as many on both sides of it
        strained, count = upright, n // 2 - 1
        some, rest = (sign * lean * lead + np.sqrt(1 - lean**2) * aside for sign in (1, -1))
    else:
        strained, count = lead, int(one_of((0.0, n * rng.random()), rng))
        some, rest = lead, one_of((0.0, 1.0), rng) * aside
    return _stacked(n, (first, 1), (strained, 1), (some, count), (rest, n)) @ axes, z @ axes


def _changes_sides(n: int, d: int, scales: Scales, rng: Random) -> tuple[Array, Array]:
    """Most rows at one point; the first comes before them in every order, at a scale on one side, then on the other."""
    away = -rng.uniform(0, 0.5) * np.eye(d)[0]
    side = np.eye(d)[-1] * (d > 1) + 1e-3 * rng.standard_normal(d)
    size = scales() * one_of((0.3, 0.5, 0.99, 1 - 1e-6), rng)
    first, z = (size * point / np.linalg.norm(point) for point in (away + side, away - side))
    far = int(one_of((0.0, n * rng.random()), rng))
    return _stacked(n, (first, 1), (0 * first, n - 1 - far), (5 * first, n)), z


def _staircase(n: int, d: int, scales: Scales, rng: Random) -> tuple[Array, Array]:
    """Equal columns of sorted values, the first of which goes from end to end: so all the others change their ranks.

    They are evenly spaced, or tied but for steps below some of three order statistics and two steps in between. A few
    at the end are anywhere.
    """
    step, level = sorted((scales(), scales()))
    share = one_of((0.25, 0.25, rng.uniform(0, 0.5)), rng)
    ranks = np.ceil(n * np.array([share, 0.5, 1 - share]) - 1e-9).astype(int).clip(1, n - 1)
    steps = np.zeros(n) if rng.integers(3) else np.ones(n)
    steps[ranks] = ((1, 1, 1), (0, 1, 1), (1, 1, 0), rng.integers(2, size=3))[rng.integers(4)]
    steps *= step * one_of((0.5, 1 - 1e-6, 1 - 1e-6), rng) / np.sqrt(d)
    steps[(ranks[:-1] + ranks[1:]) // 2] += level * one_of((0.0, 0.5, 0.5, 1.0), rng)
    values = np.cumsum(steps)
    values -= one_of((values[n // 2], 0.0), rng)
    few = int(rng.uniform(0.0, 0.25) * n)
    values[n - few :] = np.maximum(values[n - few :], np.sort(rng.random(few)))
    values[0] = -1.0
    direction = _corner(1, d, rng)[0]
    return values[:, None] * direction, direction


def _looks_alike(n: int, d: int, scales: Scales, rng: Random) -> tuple[Array, Array]:
    """Rows around the first at angles whose cosines are around the scale, and mirrored: so it hides what differs."""
    z = units(1, d, rng)[0]
    angle = np.arccos(min(scales(), 0.99)) * rng.choice([0.5, 0.9, 1.0, 1.0, 1.1], n - 1)
    away = rng.standard_normal((n - 1, d))
    away -= np.outer(away @ z, z)
    away /= np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1e-300)
    around = np.cos(angle)[:, None] * z + np.sin(angle)[:, None] * away
    side = np.where(np.arange(n - 1) % 2 & rng.integers(4), -1.0, 1.0)
    return np.vstack([z, side[:, None] * around]), -z


PAIRS: tuple[Neighbours, ...] = (
    _few_points,
    _spread_by_one,
    _decides_a_slope,
    _changes_sides,
    _staircase,
    _staircase,
    _looks_alike,
)


def _changes_its_gap(n: int, d: int, scales: Scales, rng: Random) -> tuple[Array, Array]:
    """The first row has a gap in another column and is reversed elsewhere, so that the means of two columns change."""
    before, after = rng.permutation(d)[:2]
    size = _corner(1, d, rng)[0] * (np.abs(units(1, d, rng)[0]) if rng.integers(2) else 1.0)
    turned = np.isin(np.arange(d), [before, after])
    first, row, rest = size.copy(), np.where(turned, size, -size), np.where(turned, -size, 0.0)
    first[before] = row[after] = np.nan
    first, row, rest = (found / np.sqrt(np.nansum(found**2)) for found in (first, row, rest))
    return _stacked(n, (first, 1), (rest, n)), row


GAPPED: tuple[Neighbours, ...] = (_changes_its_gap,)  # of two columns at least; the first row may have gaps


def _none_one_all(n: int, d: int, rng: Random) -> NDArray[np.bool_]:
    """Of each row nothing, one entry or everything is missing."""
    kind = rng.integers(3, size=n)[:, None]
    return (kind == 2) | ((kind == 1) & (np.arange(d) == rng.integers(d, size=n)[:, None]))


MASKS: tuple[Mask, ...] = (
    _none_one_all,
    _none_one_all,
    lambda n, d, rng: np.arange(d) != rng.integers(d, size=n)[:, None],  # rows with one entry
    lambda n, d, rng: rng.random((n, d)) < rng.random(),
    lambda n, d, rng: np.tile(np.arange(d) == rng.integers(d), (n, 1)),  # a column nobody observed
    lambda n, d, rng: np.tile(rng.random((n, 1)) < 0.5, (1, d)),  # rows without any entry
)
