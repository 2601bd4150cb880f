"""Rows that move by a bounded change: what is allowed of it, what it attains, and changes that reach far."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ppdp.bounds.column_groups import distance_of, domain_of, span_of
from ppdp.core.distance import Distance, Moves
from ppdp.core.domain import Domain
from ppdp.data.rows import Array, Rows
from ppdp.data.statistics import clip_norms, row_norms

Random = np.random.Generator
PROBED = 1000  # most columns of which all changes are tried


def most_moves(moves: Moves | None) -> dict[str, float]:
    """What is known of each row that moved, under the names of what :func:`attained_moves` measures."""
    return {} if moves is None else {"entry": moves.most, "entries": moves.l1, "columns": moves.columns}


def attained_moves(change: Array, moves: Moves | None) -> dict[str, float]:
    """Of changes of rows the largest entry, the sum of a row's entries, and in how many columns one differs.

    Where columns have limits of their own the entry is that which uses most of its limit, in units of the largest one.
    """
    if moves is None:
        return {}
    size = np.abs(change)
    largest = size.max(axis=0, initial=0.0)
    limits = _limits(moves, change.shape[1])
    beyond = np.where(largest > 0, np.inf, 0.0)
    used = np.divide(largest * moves.most, limits, out=beyond, where=limits > 0)
    return {
        "entry": float(used.max(initial=0.0)),
        "entries": float(size.sum(axis=1).max(initial=0.0)),
        "columns": float(np.count_nonzero(size, axis=1).max(initial=0)),
    }


def summed(out: tuple[Rows, Rows], granted: Distance) -> dict[str, tuple[float, float]]:
    """How far sums and second moments of two datasets are apart, of which more is known than follows from the rows."""
    sums, moments = (rows.weight @ rows.X for rows in out), ((rows.weight * rows.X.T) @ rows.X for rows in out)
    found = {"sums": (sums, granted.sums), "moments": (moments, granted.moments)}
    known = {name: use for name, use in found.items() if use[1] < np.inf}
    return {name: (float(np.linalg.norm(np.subtract(*both))), most) for name, (both, most) in known.items()}


def _limits(moves: Moves, n_columns: int) -> Array:
    """Most by which each column differs."""
    return np.array(np.broadcast_to(np.asarray(moves.linf, dtype=np.float64), n_columns))


def _known(distance: Distance, n_columns: int) -> Moves:
    """What is known of each row that moved; if only its length, what follows from that."""
    return distance.moves or Moves(distance.radius, np.sqrt(n_columns) * distance.radius, n_columns)


def confined(change: Array, distance: Distance) -> Array:
    """Changes of rows pulled back to what a distance allows of each, and of all together."""
    moves = distance.moves
    if moves is not None:
        limits = _limits(moves, change.shape[1])
        change = np.clip(change, -limits, limits)
        order = np.argsort(-np.abs(change), axis=1, kind="stable")
        np.put_along_axis(change, order[:, int(min(moves.columns, change.shape[1])) :], 0.0, axis=1)
        change *= np.minimum(1.0, moves.l1 / np.maximum(np.abs(change).sum(axis=1), 1e-300))[:, None]
    change = change * np.minimum(1.0, distance.radius / np.maximum(row_norms(change), 1e-300))[:, None]
    return np.asarray(change * min(1.0, distance.total / max(float(row_norms(change).sum()), 1e-300)))


def rows_after(X: Array, change: Array) -> Array:
    """Rows after a change, none of whose entries differs by more than that because it was rounded."""
    Z = X + change
    return np.asarray(np.where(np.abs(Z - X) > np.abs(change), np.nextafter(Z, X), Z))


def corner(distance: Distance, n_columns: int, rng: Random) -> Array:
    """A change of some columns by as much as each may differ."""
    moves = _known(distance, n_columns)
    limits = _limits(moves, n_columns)
    free = rng.permutation(np.flatnonzero(limits))
    count = int(min(moves.columns, len(free)))
    chosen = free[: (1, count, int(rng.integers(count + 1)))[rng.integers(3)]]
    change = np.zeros(n_columns)
    change[chosen] = limits[chosen] * rng.choice([-1.0, 1.0], len(chosen))
    return change


def around(X: Array, change: Array, low: Array, high: Array, rng: Random) -> tuple[Array, Array]:
    """Rows before and after a change: those given, in the middle of their ranges or at an end where all fits in."""
    starts = X, X, (low + high) / 2, np.where(change > 0, low, high)
    start = np.where(np.isnan(X), X, starts[rng.integers(4)])
    before = rng.choice([0.0, 0.5, 1.0]) * change
    return start - before, start + change - before


def far_changes(mapped: Callable[[Array], Array], row: Array, distance: Distance) -> Array:
    """Changes of a row that go far behind a map of rows, in columns chosen one after the other, and along an axis.

    The columns are those with the longest images, in three norms; the axis is that by which any change goes
    furthest, of a linear map. None if there are too many columns.
    """
    d = len(row)
    moves = _known(distance, d)
    limits = _limits(moves, d)
    if d > PROBED or not limits.any():
        return np.empty((0, d))
    images = mapped(row + np.diag(limits)) - mapped(row[None, :])
    slopes = np.divide(images, limits[:, None], out=np.zeros_like(images), where=limits[:, None] > 0)
    axis = np.linalg.svd(slopes, full_matrices=False)[0][:, 0] * distance.radius
    return np.stack([axis, *(_one_by_one(images, limits, moves, order) for order in (2, 1, np.inf))])


def _one_by_one(images: Array, limits: Array, moves: Moves, order: float) -> Array:
    """Columns and signs, each of which makes the image longest beside those before it."""
    change, image, left = np.zeros(len(limits)), np.zeros(images.shape[1]), moves.l1
    for _ in range(int(min(moves.columns, len(limits)))):
        share = np.divide(np.minimum(limits, left), limits, out=np.zeros(len(limits)), where=limits > 0)
        steps = share[:, None] * images
        sizes = np.stack([np.linalg.norm(image + sign * steps, ord=order, axis=1) for sign in (1, -1)])
        sizes[:, (change != 0) | (share == 0)] = -1.0
        turned, column = np.unravel_index(int(np.argmax(sizes)), sizes.shape)
        if sizes[turned, column] <= np.linalg.norm(image, ord=order):
            break
        sign = 1.0 - 2.0 * turned
        change[column], image = sign * share[column] * limits[column], image + sign * steps[column]
        left = max(0.0, left - abs(change[column]))
    return change


def spans(domain: Domain) -> Iterator[tuple[str, slice]]:
    """Every group with its columns."""
    for group in domain.groups:
        _, start, stop = span_of(domain, group.name)
        yield group.name, slice(start, stop)


def bounded_in_groups(X: Array, domain: Domain) -> Array:
    """Rows that are clipped in every group to what is known of it; where no gap is, it becomes 0."""
    if not domain.groups:
        return X
    out = X.copy()
    for name, columns in spans(domain):
        here, own = domain_of(domain, name), np.ascontiguousarray(X[:, columns])
        if here.max_missing == 0 and domain.max_missing != 0:
            own = np.nan_to_num(own)
        if here.entry_bound is not None:
            own = np.clip(own, -here.entry_bound, here.entry_bound)
        out[:, columns] = clip_norms(own, here.row_norm)
    return out


def confined_in_groups(step: Array, domain: Domain, distance: Distance) -> Array:
    """Changes of rows that are pulled back in every group to what is known of it."""
    if not distance.groups:
        return step
    out = step.copy()
    for name, columns in spans(domain):
        own, here = np.ascontiguousarray(step[:, columns]), distance_of(domain, distance, name)
        own[int(here.moved) :] = 0.0
        own = clip_norms(own, here.radius) if here.radius else np.zeros_like(own)
        out[:, columns] = own * min(1.0, here.total / max(float(row_norms(own).sum()), 1e-300))
    return out


def parts(
    pair: tuple[Rows, Rows], domain: Domain, distance: Distance
) -> Iterator[tuple[str, tuple[Rows, Rows], Domain, Distance]]:
    """The pair, and what is claimed of it, in every group by itself."""
    for name, columns in spans(domain):
        one, other = (rows.with_X(np.ascontiguousarray(rows.X[:, columns])) for rows in pair)
        yield name, (one, other), domain_of(domain, name), distance_of(domain, distance, name)
