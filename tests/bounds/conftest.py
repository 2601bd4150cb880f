"""What every adversary begins with."""

import pytest
from effort import rounds


@pytest.fixture(autouse=True)
def few_runs(monkeypatch):
    """Releases that the contract of mechanisms tells apart: that all of the noise is there is seen in tests/audit."""
    monkeypatch.setattr("ppdp.testing.mechanisms.FEWEST", rounds(40, 400))
