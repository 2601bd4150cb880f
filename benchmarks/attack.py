"""Every test at length, before a release: ``make attack``; a part: ``python benchmarks/attack.py tests/bounds``.

Tests that failed, after a mend, beside those of the run before: ``python benchmarks/attack.py --again TEST...``.

Writes ``attack_summary.md``: what was run, how it ended, and how close adversaries came to each bound.
"""

from __future__ import annotations

import datetime
import json
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

import ppdp

SUMMARY = Path(__file__).with_name("attack_summary.md")
LAST = Path(__file__).parents[1] / "artifacts" / "attack.json"
# It reads the summary of the run before, which this run replaces: with it, a failure would outlive its repair.
READS_THE_SUMMARY = "tests/benchmarks/test_attack.py::test_the_release_was_attacked"


class Tally:
    """What the reports of tests say, added up."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.areas: dict[str, Counter[str]] = defaultdict(Counter)
        self.closest: dict[str, float] = {}
        self.hours = 0.0
        self.mended: int | None = None  # tests of the run before that pass now; None if there is none

    @classmethod
    def last(cls) -> Tally:
        """What the run before has said."""
        tally, said = cls(), json.loads(LAST.read_text("utf-8"))
        tally.outcomes.update(said["outcomes"])
        tally.areas.update({area: Counter(outcomes) for area, outcomes in said["areas"].items()})
        tally.closest.update(said["closest"])
        tally.hours, tally.mended = said["hours"], said["mended"] or 0
        return tally

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test once, by how it ended."""
        if report.when != "call" and report.passed:
            return
        path = Path(report.nodeid.partition("::")[0])
        area = "/".join(path.parts[:2]) if len(path.parts) > 2 else path.parts[0]
        if self.mended is None or report.passed:
            self.outcomes[report.outcome] += 1
            self.areas[area][report.outcome] += 1
        if self.mended is not None and report.passed:
            self.outcomes["failed"] -= 1
            self.areas[area]["failed"] -= 1
            self.mended += 1
        ratio = dict(report.user_properties).get("closest")
        if ratio is not None:
            name = path.stem.removeprefix("test_").removesuffix("_adversary").replace("_", " ")
            self.closest[name] = max(ratio, self.closest.get(name, 0.0))


def page(tally: Tally, parts: list[str], hours: float) -> str:
    """The summary, in Markdown."""
    ran = ", ".join(parts) or "everything"
    later = f" Of these {tally.mended} had failed: they were mended and run again." if tally.mended else ""
    ended = ", ".join(f"{tally.outcomes[outcome]} {outcome}" for outcome in ("passed", "failed", "skipped"))
    lines = [
        "# The tests at length",
        "",
        "Written by `make attack`: every repetition of every test, with four times the rounds. For every bound the",
        "largest share of what is certified that its adversaries reached; more than 1, but for rounding, refutes it.",
        "",
        f"ppdp {ppdp.__version__}, {datetime.date.today()}: {ran}, in {hours:.2g} hours: {ended}.{later}",
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
    again, begun = parts[:1] == ["--again"], datetime.datetime.now()
    tally, tests = (Tally.last(), parts[1:]) if again else (Tally(), parts)
    status = int(pytest.main(["--attack", "-n", "2", "--deselect", READS_THE_SUMMARY, *tests], plugins=[tally]))
    tally.hours += (datetime.datetime.now() - begun).total_seconds() / 3600
    SUMMARY.write_text(page(tally, [] if again else parts, tally.hours), encoding="utf-8")
    LAST.parent.mkdir(exist_ok=True)
    LAST.write_text(json.dumps(vars(tally)), encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
