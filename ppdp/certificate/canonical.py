"""JSON as a certificate is read: nothing in it can be taken in two ways."""

from __future__ import annotations

import json
import math
from typing import Any

__all__ = ["strict_json"]


def strict_json(text: str | bytes) -> Any:
    """Read JSON without NaN, infinity or repeated keys; anything else is a ValueError or a RecursionError."""
    return json.loads(text, parse_float=_finite, parse_constant=_no_constant, object_pairs_hook=_no_repetition)


def _no_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key is there twice")
    return dict(pairs)


def _finite(number: str) -> float:
    value = float(number)
    if math.isinf(value):
        raise ValueError("1e400 is read as infinity")
    return value


def _no_constant(_: str) -> float:
    raise ValueError("NaN and infinity are not JSON")
