"""The log of the outsider's tool: every kind of pipeline has its line, and it found nothing."""

from pathlib import Path

from zoo import ZOO

import ppdp

LOG = Path(ppdp.__file__).parents[1] / "benchmarks" / "recorder.md"


def test_every_kind_of_pipeline_was_audited_and_nothing_was_found():
    lines = [line.strip("| ").split(" | ") for line in LOG.read_text("utf-8").splitlines() if line.startswith("| ")]
    assert [name for name, *_ in lines[1 : 1 + len(ZOO)]] == [*ZOO]
    assert not [name for name, *_, found in lines[1:] if found.startswith("FOUND")]
