"""Sudden death during exports and fits: a short run of ``benchmarks/kills.py``."""

import importlib.util
import os
from pathlib import Path

import pytest


def kills():
    spec = importlib.util.spec_from_file_location("kills", Path(__file__).parents[2] / "benchmarks" / "kills.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_exports_are_whole_and_the_ledger_holds_every_started_fit(tmp_path):
    found = kills().main(12, tmp_path)  # which raises where an export does not load or the ledger misses a fit
    assert found.kills == 12
    assert 0 < found.acknowledged <= found.recorded <= found.begun
    assert found.settled <= found.recorded
    assert found.exports > 0
    assert found.mu_spent == pytest.approx(found.mu_together, rel=1e-12)
