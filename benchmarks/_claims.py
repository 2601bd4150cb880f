"""What ``benchmarks/honesty.py`` asks of every library: one claim, one pair of neighbours, and who says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ppdp.audit.target import Target


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
    target: Callable[[], Target]
    remark: str
    runs: int = 4000
