"""Transformers of smartnoise-synth, and queries of smartnoise-sql, as targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from adapters._library import foreign
from ppdp.audit import ForeignTarget
from ppdp.core.checks import positive
from ppdp.exceptions import InvalidParameter

__all__ = ["FITTED", "smartnoise_query_target", "smartnoise_target"]

INSTALL_SYNTH = "pip install smartnoise-synth."
INSTALL_SQL = "pip install smartnoise-sql."

FITTED = {
    "StandardScaler": ("mean", "var"),
    "MinMaxTransformer": ("fit_lower", "fit_upper"),
    "BinTransformer": ("fit_lower", "fit_upper"),
}
"""What a fitted transformer publishes with whatever it has transformed; names of its attributes."""


def smartnoise_target(
    name: str,
    make: Callable[[], Any],
    left: Sequence[Any],
    right: Sequence[Any],
    *,
    epsilon: float | None = None,
    fitted: Sequence[str] | None = None,
    errors: tuple[type[Exception], ...] = (),
) -> ForeignTarget:
    """Fits of a column transformer of smartnoise-synth.

    Parameters
    ----------
    name : str
        For people.
    make : callable
        A new transformer of ``snsynth.transform`` for every run, because a fit changes what one may spend.
    left, right : sequence
        Neighbouring columns.
    epsilon : float, optional
        As claimed; by default that of the transformer.
    fitted : sequence of str, optional
        Attributes that are published; by default what is known of it by :data:`FITTED`.
    errors : tuple of exception types, default=()
        That are outcomes, see :class:`ForeignTarget`.

    Raises
    ------
    InvalidParameter
        If smartnoise-synth is not installed, or it is not known what the transformer publishes.
    """
    foreign("snsynth.transform", INSTALL_SYNTH)
    first = make()
    kind = type(first).__name__
    if fitted is None and kind not in FITTED:
        raise InvalidParameter(f"it is not known what a {kind} publishes.", fix="name its attributes by fitted=.")
    names = tuple(fitted or FITTED[kind])
    claimed = float(first.epsilon) if epsilon is None else epsilon

    def learned(column: Sequence[Any], noise: object) -> Any:
        transformer = make()
        transformer.fit(column)
        return [getattr(transformer, attribute) for attribute in names]

    return ForeignTarget(name, learned, left, right, claimed, library="smartnoise-synth", errors=errors)


def smartnoise_query_target(
    name: str, query: str, left: Any, right: Any, *, metadata: Mapping[str, Any], epsilon: float, delta: float
) -> ForeignTarget:
    """Answers of smartnoise-sql's private reader to one query on a pandas table.

    The claim is what the reader itself says that the query costs, ``get_privacy_cost``.

    Parameters
    ----------
    name : str
        For people.
    query : str
        SQL with numbers for answers.
    left, right : pandas.DataFrame
        Neighbouring tables.
    metadata : dict
        As smartnoise-sql takes it: bounds, and which row belongs to whom.
    epsilon, delta : float
        For each column of the answer, as the reader takes them.

    Raises
    ------
    InvalidParameter
        If smartnoise-sql is not installed.
    """
    library = foreign("snsql", INSTALL_SQL)
    privacy = library.Privacy(epsilon=positive("epsilon", epsilon), delta=delta)

    def reader(table: Any) -> Any:
        return library.from_df(table, privacy=privacy, metadata=dict(metadata))

    cost = reader(left).get_privacy_cost(query)
    readers = reader(left), reader(right)

    def answered(side: int, noise: object) -> Any:
        return [list(row) for row in readers[side].execute(query)[1:]]

    return ForeignTarget(name, answered, 0, 1, float(cost[0]), float(cost[1]), library="smartnoise-sql")
