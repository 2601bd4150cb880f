"""What every test of an audit begins with."""

import pytest
from effort import rounds


@pytest.fixture(autouse=True)
def few_trials(monkeypatch):
    """What stands beside the row that is replaced is chosen by few runs, in an attack by as many as a user's."""
    monkeypatch.setattr("ppdp.audit.pairs.TRIAL_RUNS", rounds(200, 4000))


@pytest.fixture(scope="module")
def short_slices():
    """Slices of 50 runs on each dataset, so that of few runs as well a fifth chooses and all others count."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ppdp.audit.output.SLICE", 50)
        for module in ("output", "lab"):
            patch.setattr(f"ppdp.audit.{module}.LEAST_RUNS", 200)
        yield
