"""Quick collection of many tests, and little that is in the way of garbage collection afterwards."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule

GARBAGE = 20_000, 20, 50  # objects, and collections, before garbage is looked for: seldom, for there is little


class Collecting:
    """Registered by the configuration, since hooks of a conftest are asked of the files beside it only."""

    def __init__(self, imports: bool) -> None:
        self.imports = imports

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(self):
        """With ``--imports`` a module is imported, and nothing is made of what it holds."""
        return [] if self.imports else None

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(self, file_path: Path):
        """Modules without examples are not searched for them."""
        found = yield
        return [one for one in found if not isinstance(one, DoctestModule) or ">>>" in file_path.read_text("utf-8")]

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self):
        """What is collected stays: no garbage is looked for in it, neither now nor later."""
        gc.disable()
        found = yield
        gc.freeze()
        gc.enable()
        gc.set_threshold(*GARBAGE)
        return found
