"""What every test begins with."""

import os
import shutil
from pathlib import Path

import effort
from collecting import Collecting
from effort import pytest_addoption, pytest_collection_modifyitems, pytest_runtest_makereport  # noqa: F401  hooks of pytest: how many cases are run
from entropy import in_place_of_the_system, pytest_fixture_setup, pytest_runtest_setup  # noqa: F401  hooks of pytest
from snapshots import snapshot  # noqa: F401  a fixture

from ppdp.data.engine import disk_cache
from ppdp.privacy.ledger import fit_charging as fits
from ppdp.transformers.rowwise import probe

MEMORY, ENOUGH = Path("/dev/shm"), 2**31  # a folder in memory, where a file is as safe as this process


def pytest_configure(config):
    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ENOUGH:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))  # a ledger waits for its disk at every spend
    effort.pytest_configure(config)
    config.pluginmanager.register(Collecting(config.getoption("--imports")))


class Forgetful(dict):
    """Fits of a process that are all the first one: no test counts those of another, and none warns."""

    def __setitem__(self, name, tally):
        pass


fits._HISTORIES = Forgetful()
disk_cache.ROOM = 0  # few rows are read as many are, block by block
probe.CROWD = 4  # every plan tries its maps among so many copies of made-up rows: tests of that ask for a crowd
in_place_of_the_system()
