"""A user's function of rows: called so that it cannot fail, and tested on made-up rows for mixing them."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ppdp.data.rows import Array
from ppdp.data.statistics import clip_norms
from ppdp.exceptions import InvalidParameter, said_by

Function = Callable[[Array], Any]

CROWD = 64
ENTRIES = 2**22  # that a crowd may have, so that testing wide maps fills no memory
REPEATED = [0, 3, 9, 11]  # made-up rows that stand once more behind all of them
LARGEST = float(np.finfo(np.float64).max)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Nothing is printed, and NumPy's global generator stays as it is."""
    state = np.random.get_state()  # noqa: NPY002
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        np.random.set_state(state)  # noqa: NPY002


def call(function: Function, X: Array, width: int, stage: str) -> Array:
    """One call, which must give one row of ``width`` columns for each of X."""
    # One zero and one NaN for all: records that count as equal must look equal to the function.
    with np.errstate(all="ignore"):
        out = np.asarray(function(np.where(np.isnan(X), np.nan, X + 0.0)), dtype=np.float64)
    if out.shape != (X.shape[0], width):
        what = f"the function of {stage} gave shape {('n', *out.shape[1:])}, {width} columns are declared."
        raise InvalidParameter(what, stage=stage)
    return out


def call_surely(function: Function, X: Array, width: int) -> Array:
    """Each row's result, NaN for a row on which the function fails: that it fails is nobody's business."""
    try:
        return call(function, X, width, "")
    except Exception:
        if len(X) <= 1:
            return np.full((len(X), width), np.nan)
    half = len(X) // 2
    return np.concatenate([call_surely(function, X[:half], width), call_surely(function, X[half:], width)])


def clipped_to_ball(X: Array, out: Array, norm: float, *, fills: bool = False) -> Array:
    """Results projected on the ball of radius ``norm``; NaN becomes 0 but in rows with gaps, unless it ``fills``."""
    out = np.clip(out, -LARGEST, LARGEST)
    lost = np.isnan(out) if fills else np.isnan(out) & ~np.isnan(X).any(axis=1, keepdims=True)
    return clip_norms(np.where(lost, 0.0, out), norm)


def output_width(function: Function, d: int, stage: str) -> int:
    """Number of columns that the function makes of d; refused if it fails on every made-up row, or makes no table."""
    failure: Exception | None = None
    for row in made_up_rows(d, gaps=False):
        try:
            with np.errstate(all="ignore"):
                out = np.asarray(function(row[None, :].copy()), dtype=np.float64)
        except Exception as error:
            failure = error
            continue
        if out.ndim == 2 and out.shape[0] == 1 and out.shape[1] >= 1:
            return int(out.shape[1])
        raise InvalidParameter(f"the function of {stage} made shape {out.shape} of one row.", stage=stage)
    raise _fails(failure, stage)


def check_row_by_row(
    function: Function,
    d: int,
    width: int,
    stage: str,
    *,
    gaps: bool,
    norm: float | None = None,
    tolerance: float | Array | None = None,
    rows: int = 0,
) -> None:
    """Refuse a function whose results for a made-up row depend on others, by a bit or beyond a tolerance of each.

    They are among as many as ``rows``, too, or about a thousand, as far as there is memory.
    """
    made_up, failure = clip_norms(made_up_rows(d, gaps), norm), None
    try:
        call(function, made_up[:1], width, stage)
    except InvalidParameter:
        raise
    except Exception as error:
        failure = error
    together = call_surely(function, made_up, width)
    if failure is not None and np.isnan(together).all():
        raise _fails(failure, stage)
    backwards = call_surely(function, np.ascontiguousarray(made_up[::-1]), width)[::-1]
    different = range(len(made_up) - len(REPEATED))
    alone = np.concatenate([call_surely(function, made_up[i : i + 1], width) for i in different])
    alone = np.concatenate([alone, alone[REPEATED]])
    others = alone, backwards, _crowded(function, made_up, width, rows)
    if not all(_agree(together, other, tolerance) for other in others):
        what = f"the function of {stage} gives a row another result among other rows, or the next time."
        fix = "use a function of one row at a time, made of elementwise operations, or a fitted ppdp stage."
        raise InvalidParameter(what, stage=stage, fix=fix)


def _crowded(function: Function, made_up: Array, width: int, rows: int) -> Array:
    """The results of many copies; none where a row fails, since finding it would take many calls."""
    try:
        fitting = max(2, ENTRIES // (len(made_up) * max(made_up.shape[1], width)))
        copies = min(max(CROWD, -(-rows // len(made_up))), fitting)
        return call(function, np.tile(made_up, (copies, 1)), width, "").reshape(copies, -1, width)
    except Exception:
        return np.empty((0, len(made_up), width))


def _agree(one: Array, other: Array, tolerance: float | Array | None) -> bool:
    if tolerance is None:
        return bool(((one == other) | (np.isnan(one) & np.isnan(other))).all())
    gaps = np.isnan(one)
    moves = np.linalg.norm(np.where(gaps, 0.0, one) - np.nan_to_num(other), axis=-1)
    return bool((gaps == np.isnan(other)).all() and (moves <= tolerance).all())


def _fails(error: Exception | None, stage: str) -> InvalidParameter:
    return InvalidParameter(
        f"the function of {stage} fails on every made-up row: {said_by(error)}.",
        stage=stage,
        fix="it must take a float64 array of shape (n, d), NaN for missing values.",
    )


def made_up_rows(d: int, gaps: bool) -> Array:
    """Rows on which functions that mix rows betray themselves: repeated, huge, tiny, zero, negative, with gaps."""
    draws = np.random.Generator(np.random.PCG64(0))
    rows = draws.lognormal(sigma=2.0, size=(12, d)) * draws.choice([-1.0, 1.0], size=(12, d))
    rows[:4] = np.abs(rows[:4])
    rows[4] *= 1e9
    rows[5] *= 1e-9
    rows[6] = 0.0
    rows[7] = rows[0]
    if gaps:
        rows[8:11][draws.random((3, d)) < 0.5] = np.nan
        rows[11] = np.nan
    return np.concatenate([rows, rows[REPEATED]])
