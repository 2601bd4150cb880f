"""What tests draw from the operating system is the same every day: a test passes or fails for good.

Only what this process draws: processes that a test starts, and forks of it, have the entropy of the system.
"""

from __future__ import annotations

import os
import zlib
from types import SimpleNamespace

import numpy as np
import pytest

from ppdp.privacy.noise import sampler

_SYSTEM, _OWNER = os.urandom, os.getpid()
_state = {"source": np.random.default_rng(0), "waiting": b""}
AHEAD = 2**12  # bytes that are drawn at once: asking for few takes as long


def seeded(name: str) -> None:
    """From here on everything is drawn as the name says."""
    seed = zlib.crc32(name.encode())
    _state.update(source=np.random.default_rng(seed), waiting=b"")
    np.random.seed(seed)  # noqa: NPY002  estimators of others draw from it


def drawn(count: int) -> bytes:
    """Bytes for the sampler of noise, unless a test looks at what it asks of the system."""
    if os.urandom is not _SYSTEM or os.getpid() != _OWNER:
        return os.urandom(count)
    words = -(-max(count, 1) // 4) * 4  # NumPy draws whole words of 32 bits
    if words > len(_state["waiting"]):
        _state["waiting"] += _state["source"].bytes(-(-max(words, AHEAD) // 8) * 8)
    found, _state["waiting"] = _state["waiting"][:count], _state["waiting"][words:]
    return found


def in_place_of_the_system() -> None:
    """Our own noise comes from here, and what generators of numpy begin with that are given no seed."""
    sampler.os = SimpleNamespace(urandom=drawn)
    np.random.bit_generator.randbits = lambda bits: int.from_bytes(drawn(bits // 8), "little")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Every test begins anew, whatever ran before it."""
    seeded(item.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef, request: pytest.FixtureRequest):
    """What several tests share is the same, whichever is the first to ask."""
    if fixturedef.scope == "function":
        return (yield)
    seeded(f"{fixturedef.argname} {getattr(request, 'param_index', 0)}")
    found = yield
    seeded(f"after {fixturedef.argname}")
    return found
