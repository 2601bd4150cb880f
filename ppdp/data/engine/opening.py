"""Which engine reads what a user passes in place of an array."""

from __future__ import annotations

from typing import Any

from ppdp.data.engine import arrow
from ppdp.data.engine.source import Source

ENGINES: tuple[Any, ...] = (arrow,)
"""Modules with a function ``opened(data)``; the first that knows the data reads them."""


def opened_source(data: Any) -> Source | None:
    """The rows where they are; None if they are in memory. Only public form is read.

    :class:`InvalidInput` if there are no rows in what was passed, or it cannot be read.
    """
    return next((found for engine in ENGINES if (found := engine.opened(data)) is not None), None)
