"""JSON as a certificate is read and hashed: nothing in it can be taken in two ways."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

__all__ = ["digest", "seal", "strict_json", "without"]


def strict_json(text: str | bytes) -> Any:
    """Read JSON without NaN, infinity or repeated keys; anything else is a ValueError or a RecursionError."""
    return json.loads(text, parse_float=_finite, parse_constant=_no_constant, object_pairs_hook=_no_repetition)


def digest(content: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON form of the claim: all but the digest itself and the block ``issued``."""
    return _sha256(without(content, "digest", "issued"))


def seal(content: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON form of all but the digest: what a signature covers."""
    return _sha256(without(content, "digest"))


def without(content: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """A document but for some of its fields."""
    return {name: value for name, value in content.items() if name not in names}


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


def _sha256(body: dict[str, Any]) -> str:
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()
