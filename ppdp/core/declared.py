"""What a step takes from the user's word, in public words: ranges and constants, one by one.

A reviewer must be able to ask of each of them whether it was read off the data; nothing that is computed can tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from inspect import signature
from numbers import Real
from typing import Any

import numpy as np

Value = tuple[str, str, str]  # name, value, and "declared" or "default"

EVERY_COLUMN = "every column"
PRIVATE = "private"  # what stands for a public fact that nobody knows

RANGES = {"ranges": "range of", "out_ranges": "range of what comes out in"}
WORDS = {
    "bands": "bands of a signature",
    "bins": "bins",
    "candidates": "candidates",
    "cell_width": "width of a cell",
    "clip": "clip",
    "lipschitz": "Lipschitz constant",
    "max_coef_norm": "largest norm of the coefficients",
    "max_grad_norm": "largest norm of the gradient of a row",
    "max_cluster": "most rows in one cluster",
    "max_missing": "most rows with gaps",
    "max_norm": "largest norm of a row",
    "max_quantile_gap": "largest gap between order statistics",
    "min_alignment": "smallest alignment with the public basis",
    "min_cosine": "least cosine of the directions of neighbouring means",
    "min_eigenvalue": "smallest eigenvalue",
    "min_gap": "smallest eigengap (in units of row_norm squared)",
    "min_observed": "fewest observed entries of a column",
    "min_std": "smallest standard deviation of a column",
    "min_width": "smallest width of a column",
    "n_components": "number of components",
    "out_norm": "largest norm of a row that comes out",
    "radius": "distance of rows in one cluster",
    "row_norm": "largest norm of a row that comes out",
}
GRIDS = {"bins", "candidates"}  # by column, where they are mappings
ALWAYS = {"max_norm", "cell_width"}  # shown where they are at their default too: bounds rest on them
ELSEWHERE = {"classes", "y_range", "noise_scale", "random_state", "seed", "epsilon"}  # facts of their own, or no facts


def plain(value: Any) -> str:
    """A declared value with all its digits.

    >>> plain(18.0), plain(0.1), plain((1, 2.5)), plain(None), plain("a")
    ('18', '0.1', '1, 2.5', 'none', 'a')
    """
    if value is None:
        return "none"
    if isinstance(value, (bool, np.bool_, str)):
        return str(value)
    if isinstance(value, Real):
        return repr(float(value)).removesuffix(".0") if not isinstance(value, (int, np.integer)) else str(int(value))
    if isinstance(value, (Sequence, np.ndarray)):
        return ", ".join(plain(one) for one in value)
    return str(value)


def ranges_by_column(ranges: Any, names: Sequence[str] | None, words: str = "range of") -> Iterator[Value]:
    """One value for each declared range of a stage, with ``words`` before the column.

    Columns without one, and those whose range is found in the rows, are left out.

    >>> list(ranges_by_column({"age": (18, 110)}, ["age"]))
    [('range of age', '18 to 110', 'declared')]
    >>> list(ranges_by_column((-1, 1), None)), list(ranges_by_column([(0, 1)], None))
    ([('range of every column', '-1 to 1', 'declared')], [('range of column 0', '0 to 1', 'declared')])
    >>> list(ranges_by_column("private", None)), list(ranges_by_column({"age": "private", "sex": (0, 1)}, None))
    ([], [('range of sex', '0 to 1', 'declared')])
    """
    if isinstance(ranges, str) and ranges == PRIVATE:
        return
    if isinstance(ranges, Mapping):
        pairs = [(_column(key, names), pair) for key, pair in ranges.items()]
    elif len(ranges) == 2 and all(isinstance(end, Real) for end in ranges):
        pairs = [(EVERY_COLUMN, ranges)]
    else:
        pairs = [(_column(position, names), pair) for position, pair in enumerate(ranges)]
    for column, pair in pairs:
        if isinstance(pair, str) and pair == PRIVATE:
            continue
        if pair is not None and not np.isnan(np.asarray(pair, dtype=np.float64)).any():
            low, high = pair
            yield f"{words} {column}", f"{plain(low)} to {plain(high)}", "declared"


def _column(key: Any, names: Sequence[str] | None) -> str:
    """The name of a column, or its position."""
    if isinstance(key, str):
        return key
    return names[key] if names is not None and 0 <= key < len(names) else f"column {key}"


def constants(step: Any, names: Sequence[str] | None) -> Iterator[Value]:
    """Every range and every number among a step's parameters that is not at its default, or that bounds rest on."""
    kind: Any = type(step)
    defaults = _defaults_of(kind)
    for name in step._get_param_names():
        value, default = getattr(step, name), defaults.get(name)
        if name in RANGES and value is not None:
            yield from _ranges(value, names if name == "ranges" else None, RANGES[name])
        elif name not in ELSEWHERE and _numeric(value):
            same = type(value) is type(default) and not isinstance(value, np.ndarray) and value == default
            if not same or name in ALWAYS:
                yield WORDS.get(name, name), plain(value), "default" if same else "declared"
        elif name in GRIDS and isinstance(value, Mapping):
            grids = ((key, own) for key, own in value.items() if _numeric(own))
            yield from ((f"{name} of {_column(key, names)}", plain(own), "declared") for key, own in grids)


@lru_cache(maxsize=256)
def _defaults_of(kind: Any) -> dict[str, Any]:
    return {name: parameter.default for name, parameter in signature(kind.__init__).parameters.items()}


def _ranges(value: Any, names: Sequence[str] | None, words: str) -> list[Value]:
    """Ranges by column, or as they stand where a stage of somebody else takes them in another form."""
    try:
        return list(ranges_by_column(value, names, words))
    except (IndexError, TypeError, ValueError):
        return [(f"{words} {EVERY_COLUMN}", plain(value), "declared")]


def _numeric(value: Any) -> bool:
    """Whether it is a number, or a sequence of numbers or labels."""
    if isinstance(value, (bool, np.bool_, str, bytes)):
        return False
    if isinstance(value, Real):
        return True
    return isinstance(value, (list, tuple, range, np.ndarray)) and all(
        isinstance(one, (str, Real)) or _numeric(one) for one in value
    )
