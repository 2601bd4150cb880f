"""The output attack on everything of ours that adds noise, for hours of processor time.

    python benchmarks/audit_hours.py --folder findings     # a target that the folder has a finding of is not run again
    python benchmarks/audit_hours.py --planted             # with planted bugs: each must be found

Every target of ``benchmarks/catalogue.py`` gets the same share of the processor time (``--hours``, 2 by default) and is
judged once: looking earlier and stopping at what one likes would be no test. When all are judged the summary is
written.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, fields, replace
from pathlib import Path

from audit import halved
from catalogue import TARGETS

from ppdp.audit import GateTarget, OutputFinding, PlanTarget, SelectionTarget, Target, attack_output
from ppdp.audit.output import Event, judged
from ppdp.audit.trials import make_trials
from ppdp.certificate.share.files import write_bytes
from ppdp.pipeline.planning.plan import Plan

SUMMARY = Path(__file__).with_name("audit_summary.md")
SLICE_RUNS = 2500
LEAST_SLICES = 10


def finding_of(name: str, folder: Path, share: float, jobs: int) -> OutputFinding:
    """The finding that the folder holds of a target, or else that of runs for so many seconds of processors."""
    kept, target = folder / f"{name.replace(' ', '-').replace(',', '')}.json", TARGETS[name]()
    if kept.exists():
        found = json.loads(kept.read_text("utf-8"))
        return OutputFinding(**{**found, "events": tuple(Event(*event) for event in found["events"])})
    timed = make_trials(target, 1, slice_runs=SLICE_RUNS).seconds
    slices = max(LEAST_SLICES, math.ceil(share / timed))  # from the clock alone, so known before any outcome
    finding = judged(target, make_trials(target, slices, slice_runs=SLICE_RUNS, n_jobs=jobs))
    write_bytes(kept, json.dumps(asdict(finding)).encode())
    print(finding, flush=True)
    return finding


def summary(findings: list[OutputFinding]) -> str:
    """The table that is committed."""
    hours = sum(finding.seconds for finding in findings) / 3600
    runs = sum(finding.runs for finding in findings)
    refuted = sum(finding.violated for finding in findings)
    doubt = len(findings) * (1 - findings[0].confidence)
    return "\n".join(
        [
            "# Output attack on ppdp's own mechanisms and gates",
            "",
            f"`python benchmarks/audit_hours.py`: {len(findings)} targets, {runs:,} runs, {hours:.2f} hours of"
            f" processor time, {refuted} certificates refuted. All bounds hold together at confidence 1 - {doubt:.1g}.",
            "",
            "For each the bounds of the best event: at least the probability on the left dataset, at most that on the",
            "right one; the lower bounds on mu and epsilon as shares of what is certified.",
            "",
            "| target | runs | statistic | event | mu | epsilon at delta | refuted |",
            "|---|---|---|---|---|---|---|",
            *map(line, findings),
            "",
        ]
    )


def line(found: OutputFinding) -> str:
    """One target."""
    mu = "-" if found.mu is None else f"{max(found.mu_low, 0):.3f} / {found.mu:.3f} = {found.ratio:.3f}"
    best = found.best
    return (
        f"| {found.target} | {found.runs:,} | {best.statistic} | {best.tpr:.4f}, {best.fpr:.4f} | {mu} |"
        f" {found.epsilon_low:.3f} / {found.epsilon:.3f} at {found.delta:.3g} | {'YES' if found.violated else 'no'} |"
    )


class OffByOne(GateTarget):
    """A gate that forgets that a dataset next to a bad one has a margin of one row."""

    @property  # a cached one of a script's own class would not travel to other processes
    def tested(self) -> Plan:
        """The plan with a threshold that is one row too low."""
        plan = GateTarget.tested.func(self)
        assert plan.gate is not None
        return replace(plan, gate=replace(plan.gate, threshold=plan.gate.threshold - 1))


def planted() -> Iterator[tuple[str, Target]]:
    """Mechanisms with half of their noise, and gates that must not pass with a threshold that is one row too low."""
    for name, make in TARGETS.items():
        target = make()
        if isinstance(target, PlanTarget | SelectionTarget):
            yield f"{name}, half of the noise", halved(target)
        elif isinstance(target, GateTarget) and target.fails:
            yield (
                f"{name}, off by one",
                OffByOne(**{field.name: getattr(target, field.name) for field in fields(target)}),
            )


def found_out(jobs: int) -> bool:
    """Whether the attack with default settings refutes everything that is wrong; printed as it comes."""
    found, longest = [], 0.0
    for name, target in planted():
        start = time.perf_counter()
        finding = attack_output(target, n_jobs=jobs)
        seconds = time.perf_counter() - start
        found, longest = [*found, finding.violated], max(longest, seconds)
        print(f"{name}, {seconds:.0f} s: {finding}", flush=True)
    print(f"{sum(found)} of {len(found)} planted bugs found, each in at most {longest:.0f} s")
    return all(found)


def main() -> int:
    """As the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("audit-findings"))
    parser.add_argument("--hours", type=float, default=2.0, help="of processors, for all targets together")
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--planted", action="store_true", help="plant bugs, and find them with default settings")
    parser.add_argument("--summary", type=Path, default=SUMMARY)
    given = parser.parse_args()
    if given.planted:
        return 0 if found_out(given.jobs) else 1
    share = 3600 * given.hours / len(TARGETS)
    given.folder.mkdir(parents=True, exist_ok=True)
    findings = [finding_of(name, given.folder, share, given.jobs) for name in TARGETS]
    given.summary.write_text(summary(findings), encoding="utf-8")
    print(f"all {len(findings)} targets are judged: {given.summary}")
    return 1 if any(finding.violated for finding in findings) else 0


if __name__ == "__main__":
    sys.exit(main())
