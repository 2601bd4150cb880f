"""How often the tests repeat themselves: every day as little as finds mistakes, in an attack at length.

``@pytest.mark.repeated("seed", "size", keep=2)`` names parameters of a test that only repeat it: for every value of the
others so many (by default one) of their values are run. ``pytest --attack`` runs all, with :func:`rounds` four times as
many; ``pytest --quick`` the first case of every third test. What is marked as ``long`` begins before all others.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import TypeVar

import pytest

Case = TypeVar("Case")
LONGER = 4

_state = {"times": 1, "closest": None}


def rounds(ordinary: int, at_length: int | None = None) -> int:
    """How many rounds a loop has today: in an attack so many, by default four times the ordinary number."""
    return at_length if at_length and _state["times"] > 1 else ordinary * _state["times"]


def found(ratio: float) -> float:
    """Note how close an adversary came to what is certified, and give it back."""
    if math.isfinite(ratio):
        _state["closest"] = max(float(ratio), _state["closest"] or 0.0)
    return ratio


def taken() -> float | None:
    """The closest that adversaries came since this was last asked."""
    closest, _state["closest"] = _state["closest"], None
    return closest


def chosen(groups: Sequence[Sequence[Case]], keep: int, name: str) -> list[Case]:
    """So many cases of every group, spread so that each place of a group is met in some group.

    Groups hold the same cases in the same order. From one choice to the next about 0.618 of a group is skipped, in
    steps that meet every place before one comes again; the name of the test decides where it begins.
    """
    kept, place = [], zlib.crc32(name.encode())
    for cases in groups:
        size = len(cases)
        step = min((k for k in range(1, size + 1) if math.gcd(k, size) == 1), key=lambda k: abs(k - 0.618 * size))
        kept += [cases[(place + count) * step % size] for count in range(min(keep, size))]
        place += keep
    return kept


def representatives(items: list[pytest.Function]) -> set[pytest.Item]:
    """All tests but repetitions of others."""
    kept, repeated = set(items), {}
    for item in items:
        marker = item.get_closest_marker("repeated")
        if marker is not None:
            assert set(marker.args) <= set(item.callspec.params), f"{item.nodeid} has no such parameters"
            others = tuple(id(value) for name, value in item.callspec.params.items() if name not in marker.args)
            test = item.nodeid.partition("[")[0], marker.kwargs.get("keep", 1)
            repeated.setdefault(test, {}).setdefault(others, []).append(item)
    for (name, keep), groups in repeated.items():
        kept -= {item for cases in groups.values() for item in cases}
        kept |= set(chosen(list(groups.values()), keep, name))
    return kept


def quick(items: list[pytest.Function]) -> set[pytest.Item]:
    """The first case of every third test, told by its name."""
    first = {item.nodeid.partition("[")[0]: item for item in reversed(items)}
    return {item for name, item in first.items() if zlib.crc32(name.encode()) % 3 == 0}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="run the first case of every third test")
    parser.addoption("--imports", action="store_true", help="import every file of tests and run none")
    parser.addoption("--update", action="store_true", help="write snapshots of pages anew")
    parser.addoption("--attack", action="store_true", help="run every repetition of every test, with longer loops")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "repeated(*parameters, keep=1): their values only repeat the test")
    config.addinivalue_line("markers", "long: begins first, so that at the end no worker waits for another")
    _state["times"] = LONGER if config.getoption("--attack") else 1


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--attack"):
        kept = quick(items) if config.getoption("--quick") else representatives(items)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = [item for item in items if item in kept]
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    """How close adversaries came travels with the report of their test."""
    report = yield
    closest = taken() if call.when == "call" else None
    if closest is not None:
        report.user_properties.append(("closest", closest))
    return report
