"""What every test of an audit begins with."""

import pytest
from effort import rounds


@pytest.fixture(autouse=True)
def few_trials(monkeypatch):
    """What stands beside the row that is replaced is chosen by few runs, in an attack by as many as a user's."""
    monkeypatch.setattr("ppdp.audit.pairs.TRIAL_RUNS", rounds(800, 4000))
