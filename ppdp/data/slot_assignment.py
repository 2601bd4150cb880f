"""Whose rows are whose, and which stay, and where, if their number is private: ``docs/theory/distance.md``, P and K."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from ppdp.core.adjacency import Adjacency
from ppdp.core.boundary import outside
from ppdp.core.domain import Domain
from ppdp.data.cells import identifiers
from ppdp.data.column_types import kind_of, type_of_values
from ppdp.data.deferred_input import DeferredTable
from ppdp.data.engine.disk_cache import scatter_to_slots
from ppdp.data.frames import column
from ppdp.data.rows import Rows
from ppdp.data.stream import Stream
from ppdp.exceptions import DiagnosticWarning, DomainMismatch, InvalidInput, InvalidParameter, InvalidValue
from ppdp.privacy.noise.sampler import Noise

NOBODY = -1  # code of a row without an id
_ROUTED = (
    "fit(X, y, groups=ids); within scikit-learn set_config(enable_metadata_routing=True), then"
    " pipeline.set_fit_request(groups=True), and params={'groups': ids} for cross_validate."
)

_ROWS = (
    "groups is a range, which makes every row a person of its own. Fix: the column that says whose each row is,"
    " groups=X['patient']; or adjacency=Adjacency.add_remove() where nobody has two rows."
)


def check_groups(X: Any, groups: Any, adjacency: Adjacency) -> None:
    """One id per row of ``X`` where persons are protected, and none elsewhere; only the form is looked at."""
    if groups is None:
        if adjacency.bounds_contributions:
            raise InvalidParameter("Adjacency.user_level needs groups=, one id for each row.", fix=_ROUTED)
        return
    if not adjacency.bounds_contributions:
        what = f"groups say whose each row is, and what is protected is {adjacency.unit}."
        fix = "adjacency=Adjacency.user_level(max_rows=...), or leave groups out; weights are sample_weight=."
        raise InvalidParameter(what, fix=fix)
    try:
        ids = X.empty(groups) if isinstance(X, DeferredTable) else column(groups)
        kind, sized = ids.dtype, ids.ndim == 1
        matched = isinstance(X, DeferredTable) or len(ids) == np.shape(X)[0]
    except Exception:  # of a container that does not keep to its own form
        kind, sized, matched = None, False, False
    if not sized:
        what = "groups must be a column of ids."
        raise InvalidInput(what, fix="one id for every row of X; of two columns one text, a + '-' + b.")
    if not _may_be_ids(type_of_values(kind)):
        what = "groups must hold whole numbers or text: other numbers are rounded, and two persons would be one."
        raise InvalidInput(what, fix="ids.astype('Int64'), or text.")
    if not matched:
        raise InvalidInput("groups must have one id for every row of X.", fix="ids of the same rows.")
    if isinstance(groups, range) or type(groups).__name__ == "RangeIndex":
        warnings.warn(_ROWS, DiagnosticWarning, stacklevel=outside())


def _may_be_ids(dtype: Any) -> bool:
    """Whether a column of this type may hold whole numbers or text; the type is public."""
    as_bytes = ("decimal", "binary", "large_binary", "fixed_size_binary", "extension<arrow.uuid")
    whole = getattr(dtype, "kind", "O") in "iuUS"
    return whole or kind_of(dtype) in ("text", "unknown") or str(dtype).startswith(as_bytes)


def encode_ids(X: Any, groups: Any, invalid: str) -> NDArray[np.intp] | None:
    """A code for whose each row is, in the order of the rows: equal where ids are; None where nobody says.

    A row without an id stops the fit ("error"), or has the code of nobody ("repair"): were all such rows one person's,
    or each another's, somebody with many of them would change more rows than are certified.
    """
    if groups is None:
        return None
    blocks: Iterable[Any] = (
        [_coded(column(groups))]
        if not isinstance(X, DeferredTable)
        else (X.source.over(lambda _, table: _coded(column(table[groups])), [groups], 1))
    )
    known: dict[Any, int] = {}
    codes = [np.full(0, NOBODY)]
    for own, ids in blocks:
        places = np.array([*(known.setdefault(one, len(known)) for one in ids), NOBODY])
        codes.append(places[own])
    found = np.concatenate(codes)
    if invalid == "error" and (found == NOBODY).any():
        what = "a row has no id (a whole number, text, a UUID, an address or a date), so its person is unknown."
        raise InvalidValue(what, fix="an id for every row, or on_invalid='repair' leaves it out.", parameter="groups")
    return found


def _coded(values: Any) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Codes of ids among the different ones, which come with them; the last of these for what is no id."""
    import pandas as pd

    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "iu" and not isinstance(values, np.ma.MaskedArray):
        return pd.factorize(np.asarray(values, dtype=values.dtype.newbyteorder("=")))
    # pandas' table of texts takes some different ones for equal, and which ones depends on other rows.
    places: dict[str | None, int] = {None: NOBODY}
    ids = identifiers(values).values
    codes = np.fromiter((places.setdefault(text, len(places) - 1) for text in ids), np.intp, len(ids))
    return codes, np.array([*places][1:], dtype=object)


Positions = NDArray[np.intp]


def assign_slots(rows: Rows, domain: Domain, noise: Noise, persons: Positions | None = None) -> Rows:
    """The rows in secret slots, if their number is private; the other slots are those of deleted rows.

    Every injection is equally likely and nothing drawn depends on the rows, so a dataset with one row more stands in
    the same slots but for one. ``persons`` are codes of whose each row is: of everybody as many have slots as the
    adjacency keeps, none of a negative code. No error says how many rows are too many.
    """
    if not domain.adjacency.unbounded:
        return rows
    which, slots = _stays(rows.n, domain, noise, persons)

    def spread(values: NDArray[np.float64]) -> NDArray[np.float64]:
        out = np.zeros((domain.n, *values.shape[1:]))
        out[slots] = values[which]
        return out

    if issparse(rows.X):
        X = csr_array((np.ones(len(slots)), (slots, which)), shape=(domain.n, rows.n)) @ rows.X
    else:
        X = spread(rows.X)
    y = None if rows.y is None else spread(rows.y)
    marks = None
    if rows.marks is not None:
        marks = np.zeros((domain.n, rows.marks.shape[1]), dtype=bool)
        marks[slots] = rows.marks[which]
    factor = None if rows.factor is None else spread(rows.factor)
    return Rows(X, y, spread(rows.weight), texts=rows.texts, marks=marks, factor=factor)


@contextmanager
def slots_assigned(
    rows: Rows | Stream, domain: Domain, noise: Noise, persons: Positions | None = None
) -> Iterator[Any]:
    """The same, also of rows that are read in blocks: a private file holds them at their slots, in this context."""
    if isinstance(rows, Rows) or not domain.adjacency.unbounded:
        yield rows if isinstance(rows, Stream) else assign_slots(rows, domain, noise, persons)
        return
    which, slots = _stays(rows.n, domain, noise, persons)
    places = np.full(rows.n, -1)
    places[which] = slots
    with scatter_to_slots(rows, places, domain.n) as stream:
        yield stream


def _stays(n: int, domain: Domain, noise: Noise, persons: Positions | None) -> tuple[Positions, Positions]:
    """Which rows have a slot, and which one."""
    which = np.arange(n) if persons is None else _cut(persons, domain.adjacency.rows, noise)
    if len(which) > domain.n:
        what = "there are more rows than n_rows declares."
        raise DomainMismatch(what, fix=f"declare at least the {domain.adjacency.phrases.capped}; never len(X).")
    return which, _secret_order(noise, domain.n)[: len(which)]


def _cut(persons: Positions, most: int, noise: Noise) -> Positions:
    """At most so many rows of everybody: the first of theirs in a secret order of all rows."""
    order = _secret_order(noise, len(persons))
    order = order[np.argsort(persons[order], kind="stable")]
    own = persons[order]
    return order[(own >= 0) & (np.arange(len(own)) - np.searchsorted(own, own) < most)]


def _secret_order(noise: Noise, count: int) -> Positions:
    """A uniform order: that of random words, all drawn again if two are equal, once in 2^64 / count² tries."""
    while True:
        words = noise.words(count)
        order = np.argsort(words)
        words = words[order]
        if (words[1:] > words[:-1]).all():
            return order
