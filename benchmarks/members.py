"""Membership attacks on everything of ours that learns: no lower bound on epsilon may exceed what is certified.

Every learner is attacked at 17 values of ε from 0.1 to 8, with one canary in many models, on the worst pair that is
found. Then bugs are planted, which the same attack must refute. Noise is that of the operating system.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from catalogue import MODELS, SAMPLED, TRAINING

from ppdp import Domain, Pipeline
from ppdp.audit import MembershipReport, attack_membership
from ppdp.mechanisms import LogisticRegression
from ppdp.mechanisms.learn.descent import ClippedGradient
from ppdp.transformers import NormClipper

EPSILONS = np.geomspace(0.1, 8.0, 17)
FACTS = Domain(n_rows=12, n_features=2, max_missing=0)
LEARNERS: dict[str, Any] = {
    **MODELS,
    "batches of fixed size": LogisticRegression((0, 1), solver="fixed-size", **SAMPLED, **TRAINING),
    "three classes": LogisticRegression((0, 1, 2), max_iter=3, **TRAINING),
}


def pipeline(model: Any, epsilon: float) -> Pipeline:
    """With rows in the unit ball, as the catalogue's models want them."""
    return Pipeline([("clip", NormClipper(1.0)), ("model", model)], epsilon=float(epsilon), delta=1e-6)


def attacked(model: Any, epsilon: float, models: int, jobs: int) -> MembershipReport:
    """One configuration."""
    return attack_membership(pipeline(model, epsilon), domain=FACTS, models=models, n_jobs=jobs)


def with_less_noise(model: Any, models: int, jobs: int) -> MembershipReport:
    """Half of the noise in the plan, and the old claim."""
    plan = pipeline(model, 8.0).plan(FACTS)
    assert plan.mechanism is not None
    less = replace(plan.mechanism, noise_scale=plan.mechanism.noise_scale / 2)
    return attack_membership(replace(plan, mechanism=less), models=models, n_jobs=jobs)


def without_clip(models: int) -> MembershipReport:
    """Gradients of rows are not clipped; in this process only, where the code is changed."""
    honest: Callable[..., Any] = ClippedGradient.of

    def endless(rows: Any, residuals: Any, clip: float, fit_intercept: bool) -> Any:
        return honest(rows, residuals, math.inf, fit_intercept)

    with mock.patch.object(ClippedGradient, "of", endless):
        return attacked(LEARNERS["noisy gradient descent"], 8.0, models, 1)


def table(models: int, jobs: int) -> Iterator[str]:
    """A line for every learner, and one for all of them."""
    yield "| learner | configurations | refuted | bound above ε | AUC at ε = 0.1, 1, 8 | largest bound / ε |"
    yield "|---|---|---|---|---|---|"
    reports = []
    for name, model in LEARNERS.items():
        found = [attacked(model, epsilon, models, jobs) for epsilon in EPSILONS]
        reports += found
        yield _line(name, found, ", ".join(f"{found[k].auc:.2f}" for k in (0, 8, 16)))
    yield _line("all", reports, "")


def _line(name: str, found: list[MembershipReport], aucs: str) -> str:
    above = sum(one.epsilon_low > one.epsilon for one in found)
    share = max(one.epsilon_low / one.epsilon for one in found)
    return f"| {name} | {len(found)} | {sum(one.violated for one in found)} | {above} | {aucs} | {share:.2f} |"


def bugs(models: int, jobs: int) -> Iterator[str]:
    """A line for every planted bug."""
    yield "| planted bug, at ε = 8 | refuted | AUC | ε at least |"
    yield "|---|---|---|---|"
    planted = {f"half of the noise: {name}": with_less_noise(model, models, jobs) for name, model in LEARNERS.items()}
    for name, report in {**planted, "a clip that is forgotten: noisy gradient descent": without_clip(models)}.items():
        yield f"| {name} | {'yes' if report.violated else '**no**'} | {report.auc:.3f} | {report.epsilon_low:.2f} |"


def main() -> None:
    """Read the options, attack, then print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=200, help="trained for every configuration")
    parser.add_argument("--more", type=int, default=1000, help="trained for every planted bug")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    started = time.monotonic()
    for lines in (table(options.models, options.jobs), bugs(options.more, options.jobs)):
        print(*lines, "", sep="\n")
    print(f"{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
