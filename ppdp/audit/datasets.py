"""Made-up datasets as JSON, so that a finding can be looked at, and an interrupted audit goes on with the same pair."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.certificate.share.files import write_bytes
from ppdp.data.rows import Rows
from ppdp.exceptions import InvalidParameter
from ppdp.testing.neighbours import Pair

__all__ = ["keep_pair", "kept_pair", "pair_to_dict"]

PAIR = "pair.json"
SIDES = "left", "right"


def pair_to_dict(pair: Pair) -> dict[str, Any]:
    """Both datasets in full; gaps are null."""
    return {side: _listed(rows) for side, rows in zip(SIDES, pair)}


def keep_pair(folder: Path, pair: Pair, seed: int) -> None:
    """Write a pair, and the seed of the search that found it, into a folder, which is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    write_bytes(folder / PAIR, json.dumps({"seed": seed, **pair_to_dict(pair)}, allow_nan=False).encode())


def kept_pair(folder: Path, n_rows: int, n_features: int, seed: int) -> Pair | None:
    """The pair of a folder, if it has one.

    Raises
    ------
    InvalidParameter
        If it holds anything else, datasets of another shape, or what another seed found.
    """
    path = folder / PAIR
    if not path.exists():
        return None
    try:
        found = json.loads(path.read_text("utf-8"))
        left, right = (_rows(found[side]) for side in SIDES)
        known = int(found["seed"])
    except (OSError, ValueError, KeyError, TypeError):
        raise InvalidParameter(f"{PAIR} is damaged.", fix="remove the folder, or use another one.") from None
    if {rows.X.shape for rows in (left, right)} != {(n_rows, n_features)}:
        raise InvalidParameter("the folder holds runs of another plan.", fix="use another folder, or remove this one.")
    if known != seed:
        raise InvalidParameter(f"the folder holds what seed {known} found.", fix=f"seed={known}, or another folder.")
    return left, right


def _listed(rows: Rows) -> dict[str, Any]:
    X = rows.X.astype(object)
    X[np.isnan(rows.X)] = None
    return {"X": X.tolist(), "y": None if rows.y is None else rows.y.tolist(), "weight": rows.weight.tolist()}


def _rows(given: dict[str, Any]) -> Rows:
    X, weight = _array(given["X"], 2), _array(given["weight"], 1)
    y = None if given["y"] is None else _array(given["y"], 1)
    if any(array.shape != (len(X),) for array in (weight, y) if array is not None):
        raise ValueError
    return Rows(X, y, weight, X)


def _array(given: Any, dimensions: int) -> NDArray[np.float64]:
    array = np.array(given, dtype=np.float64)
    if array.ndim != dimensions:
        raise ValueError
    return array
