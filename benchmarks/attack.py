"""Every test at length, before a release: ``make attack``; a part: ``python benchmarks/attack.py tests/bounds``.

Writes ``attack_summary.md``: what was run, how it ended, and how close adversaries came to each bound.
"""

from __future__ import annotations

import datetime
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

import ppdp

SUMMARY = Path(__file__).with_name("attack_summary.md")
# It reads the summary of the run before, which this run replaces: with it, a failure would outlive its repair.
READS_THE_SUMMARY = "tests/benchmarks/test_attack.py::test_the_release_was_attacked"


class Tally:
    """What the reports of tests say, added up."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.areas: dict[str, Counter[str]] = defaultdict(Counter)
        self.closest: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test once, by how it ended."""
        if report.when != "call" and report.passed:
            return
        path = Path(report.nodeid.partition("::")[0])
        area = "/".join(path.parts[:2]) if len(path.parts) > 2 else path.parts[0]
        self.outcomes[report.outcome] += 1
        self.areas[area][report.outcome] += 1
        ratio = dict(report.user_properties).get("closest")
        if ratio is not None:
            name = path.stem.removeprefix("test_").removesuffix("_adversary").replace("_", " ")
            self.closest[name] = max(ratio, self.closest.get(name, 0.0))


def page(tally: Tally, parts: list[str], hours: float) -> str:
    """The summary, in Markdown."""
    ran = ", ".join(parts) or "everything"
    ended = ", ".join(f"{tally.outcomes[outcome]} {outcome}" for outcome in ("passed", "failed", "skipped"))
    lines = [
        "# The tests at length",
        "",
        "Written by `make attack`: every repetition of every test, with four times the rounds. For every bound the",
        "largest share of what is certified that its adversaries reached; more than 1, but for rounding, refutes it.",
        "",
        f"ppdp {ppdp.__version__}, {datetime.date.today()}: {ran}, in {hours:.2g} hours: {ended}.",
        "",
        "| area | passed | failed | skipped |",
        "|---|---:|---:|---:|",
        *(f"| `{area}` | {n['passed']} | {n['failed']} | {n['skipped']} |" for area, n in sorted(tally.areas.items())),
        "",
        "| adversary of | closest |",
        "|---|---:|",
        *(f"| {name} | {ratio:.4f} |" for name, ratio in sorted(tally.closest.items())),
    ]
    return "\n".join(lines) + "\n"


def main(parts: list[str]) -> int:
    """Run the tests, and write the summary however they end."""
    begun, tally = datetime.datetime.now(), Tally()
    status = int(pytest.main(["--attack", "-n", "2", "--deselect", READS_THE_SUMMARY, *parts], plugins=[tally]))
    hours = (datetime.datetime.now() - begun).total_seconds() / 3600
    SUMMARY.write_text(page(tally, parts, hours), encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
