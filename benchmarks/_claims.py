"""What ``benchmarks/honesty.py`` asks of every library: one claim, one pair of neighbours, and who says so."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

from ppdp.audit.adapters import ForeignTarget


class Claimed(NamedTuple):
    """A claim and a pair that it is tried on.

    Attributes
    ----------
    name : str
        What is claimed, as a user writes it.
    pair : str
        The two neighbouring datasets in words.
    target : callable
        Makes what is attacked, in an environment that has the library.
    remark : str
        What the library itself says of it, or why it can be expected to hold or to break.
    runs : int
        On both datasets together, fixed in advance.
    """

    name: str
    pair: str
    target: Callable[[], ForeignTarget]
    remark: str
    runs: int = 4000


def searched_once(module: Any) -> None:
    """Let a module remember the noise scales that OpenDP searches for: the same from the same public numbers."""
    search, found = module.binary_search_param, {}
    if hasattr(search, "__wrapped__"):
        return

    @wraps(search)
    def remembered(make_chain: Any, d_in: Any, d_out: Any, *others: Any, **named: Any) -> Any:
        cells = [cell.cell_contents for cell in make_chain.__closure__ or ()]
        public = tuple(cell for cell in cells if isinstance(cell, (int, float, str)))
        key = make_chain.__code__, d_in, d_out, public
        if key not in found:
            found[key] = search(make_chain, d_in, d_out, *others, **named)
        return found[key]

    module.binary_search_param = remembered
