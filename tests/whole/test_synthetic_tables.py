"""The guide to synthetic tables, run with the real OpenDP: what its one ledger says."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from dp_accounting import GaussianDpEvent, ZCDpEvent
from dp_accounting.rdp import RdpAccountant
from page_code import python_blocks

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guides" / "synthetic-tables.md"
DELTA = 1e-6
TOLD = f"""
import json

mu, spent = pipe.certificate_.loss.mu, context.current_privacy_loss()
numbers = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
gaussian = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*numbers, scale=1.0))
print(json.dumps({{
    "mu": mu,
    "rho": spent,
    "opendp": gaussian.map((mu**2 + 2 * spent) ** 0.5).epsilon({DELTA}),
    "deviations": [counts.stddev for counts in table.marginals.flatten()],
    "entries": [
        [entry.status, entry.mu, [part.rho for part in entry.loss.parts]] for entry in ledger.entries("patients")
    ],
    "declared": ledger.spent("patients").epsilon({DELTA}),
    "epsilon": ledger.epsilon({DELTA}),
}}))
"""


@pytest.mark.long
@pytest.mark.skipif(find_spec("opendp") is None, reason="OpenDP is in the oldest environment alone")
def test_one_ledger_holds_what_both_libraries_say_of_themselves(tmp_path):
    """In a process of its own: JAX, which OpenDP needs, forbids copies of its process, and other tests make some."""
    line, found = [sys.executable, "-c", python_blocks(GUIDE) + TOLD], {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(line, cwd=tmp_path, env=found, capture_output=True, text=True, timeout=240)
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert told["entries"] == [["released", told["mu"], []], ["released", 0.0, [told["rho"]]]]

    accountant = RdpAccountant()
    accountant.compose(GaussianDpEvent(1 / told["mu"])).compose(ZCDpEvent(told["rho"]))
    assert told["opendp"] == pytest.approx(accountant.get_epsilon(DELTA), rel=1e-3)
    assert told["declared"] == pytest.approx(told["opendp"], rel=1e-3)
    assert told["opendp"] <= told["epsilon"] <= 1.02 * told["opendp"]  # at one order, fixed before any outcome

    # A replaced row moves two counts of each table by 1, so that rho is the sum of 2 / (2 deviation**2) at least.
    assert len(told["deviations"]) == 2
    assert sum(deviation**-2 for deviation in told["deviations"]) <= told["rho"]
