"""Empirical audit: try to tell two neighbouring datasets apart from what a plan releases.

Each plan is made once and executed 25,000 times on the worst pair of neighbours, by :func:`ppdp.audit.attack_output`:
a fifth of the runs chooses statistics and thresholds; exact bounds on what the others show, at confidence 1 - 1e-6,
give ``mu_low``. It must stay below the certified mu, and lie above it when the noise is halved on purpose.

Run ``python benchmarks/audit.py``; the figures come last.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace

from catalogue import TARGETS

from ppdp.audit import OutputFinding, PlanTarget, SelectionTarget, Target, attack_output

RUNS = 25_000
NAMES = "deduplication", "mean imputation", "noisy gradient descent"


def halved(target: PlanTarget | SelectionTarget) -> Target:
    """The same with half of the noise that is planned: a bug that an audit must find."""
    if isinstance(target, SelectionTarget):
        chosen, scored = (scale and scale / 2 for scale in (target.selection.temperature, target.selection.noise_scale))
        return replace(target, selection=replace(target.selection, temperature=chosen, noise_scale=scored))
    plan = target.plan
    releases = tuple(replace(release, noise_scale=release.noise_scale / 2) for release in plan.releases)
    mechanism = plan.mechanism and replace(plan.mechanism, noise_scale=plan.mechanism.noise_scale / 2)
    return replace(target, plan=replace(plan, mechanism=mechanism, releases=releases))


def audited(name: str, runs: int, random_state: int | None = None) -> tuple[OutputFinding, OutputFinding]:
    """What is found with all of the noise, and with half of it; a seed is for tests only."""
    target = TARGETS[name]()
    honest = attack_output(target, runs=runs, random_state=random_state)
    return honest, attack_output(halved(target), runs=runs, random_state=random_state)


def main() -> int:
    """Audit every target with its noise and with half of it."""
    lines, sound = [], True
    for name in NAMES:
        start = time.perf_counter()
        honest, broken = audited(name, RUNS)
        seconds = (time.perf_counter() - start) / 2
        sound &= broken.violated and not honest.violated
        lines.append(
            f"{name}: mu_low/mu {honest.ratio:.3f}, with half of the noise {broken.ratio:.3f}"
            f" (certified mu {honest.mu:.3f}, {seconds:.1f} s per audit)"
        )
    print(f"{RUNS} executions each, confidence 1 - 1e-6")
    print("\n".join(lines))
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
