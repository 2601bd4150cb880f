"""The benchmark's audit, with fewer runs: nothing is found, and half of the noise is."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from ppdp.audit.catalogue import TARGETS

PLACE = Path(__file__).parents[1] / "benchmarks" / "audit.py"


@pytest.fixture(scope="module")
def benchmark():
    spec = importlib.util.spec_from_file_location("audit_benchmark", PLACE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", TARGETS)
def test_the_pairs_are_neighbours(name):
    target = TARGETS[name]()
    left, right = (np.nan_to_num(rows.X, nan=9.0) for rows in (target.left, target.right))
    assert (left != right).any(axis=1).sum() == 1
    for rows in (target.left, target.right):
        assert np.nanmax(np.abs(rows.X)) <= 1
        assert (rows.weight == 1).all()


def test_what_is_certified_is_neither_hopeless_nor_certain(benchmark):
    for name in benchmark.NAMES:
        assert 0.9 < TARGETS[name]().plan.loss.mu < 1.2


def test_stays_below_what_is_certified_and_finds_half_of_the_noise(benchmark, monkeypatch, capsys):
    """Noise is the system's: at confidence 1 - 1e-6 each."""
    monkeypatch.setattr(benchmark, "RUNS", 6000)
    monkeypatch.setattr(benchmark, "NAMES", benchmark.NAMES[:1])
    assert benchmark.main() == 0
    assert capsys.readouterr().out.count("mu_low/mu 0.") == 1
