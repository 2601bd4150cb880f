"""The benchmark's audit, with fewer runs: nothing is found, and half of the noise is."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from catalogue import TARGETS

from ppdp.audit import GateTarget, PlanTarget, SelectionTarget

PLACE = Path(__file__).parents[2] / "benchmarks" / "audit.py"


@pytest.fixture(scope="module")
def benchmark():
    spec = importlib.util.spec_from_file_location("audit_benchmark", PLACE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", TARGETS)
def test_the_pairs_are_neighbours(name):
    target = TARGETS[name]()
    assert isinstance(target, PlanTarget | GateTarget | SelectionTarget)
    left, right = (getattr(side, "X", side) for side in (target.left, target.right))
    assert (np.nan_to_num(left, nan=9.0) != np.nan_to_num(right, nan=9.0)).any(axis=1).sum() == 1
    assert max(np.nanmax(np.abs(side)) for side in (left, right)) <= 1
    if not isinstance(target, SelectionTarget):
        assert (target.left.weight == 1).all()
        assert (target.right.weight == 1).all()


@pytest.mark.parametrize("name", ["deduplication", "mean imputation"])
@pytest.mark.repeated("name")
def test_stays_below_what_is_certified_and_finds_half_of_the_noise(benchmark, name):
    assert name in benchmark.NAMES
    honest, broken = benchmark.audited(name, 4000, random_state=1)
    assert 0.9 < honest.mu < 1.2  # informative: neither hopeless nor certain
    assert 0.6 * honest.mu < honest.mu_low < honest.mu == broken.mu < broken.mu_low
    assert broken.violated
    assert not honest.violated
