"""Membership attacks on everything of ours that learns: no lower bound on epsilon may exceed what is certified.

Every learner is attacked at 17 values of ε from 0.1 to 8, with one canary in many models: the more the smaller ε is,
but few where even many would show nothing. The canary takes the place of the opposite row and the other rows are 0, or
like the canary where batches are of fixed size: so it tells most. Then bugs are planted, which the same attack must
refute. Noise is that of the operating system.
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
from numpy.typing import NDArray

from ppdp import Pipeline
from ppdp.audit import MembershipReport, attack_membership, membership
from ppdp.mechanisms import LogisticRegression, Ridge
from ppdp.mechanisms.learn.descent import ClippedGradient
from ppdp.pipeline.fit import prepare_rows
from ppdp.transformers import NormClipper

Array = NDArray[Any]

EPSILONS = np.geomspace(0.1, 8.0, 17)
ROWS = 12
SHOWN = 0.8  # from this ε on so many models are trained that a bound is expected to be above 0
LEARNERS: dict[str, Any] = {
    **MODELS,
    "batches of fixed size": LogisticRegression((0, 1), solver="fixed-size", **SAMPLED, **TRAINING),
    "three classes": LogisticRegression((0, 1, 2), max_iter=3, **TRAINING),
    "fresh projections": LogisticRegression((0, 1), solver="m2", rank=1, max_iter=3, **TRAINING),
    "public projection": LogisticRegression((0, 1), solver="lora-fa", rank=1, max_iter=3, **TRAINING),
    "second moments": Ridge((-1, 1), solver="moments", alpha=1.0, fit_intercept=False, max_coef_norm=1e3),
}


def pipeline(model: Any, epsilon: float) -> Pipeline:
    """With rows in the unit ball, as the catalogue's models want them."""
    return Pipeline([("clip", NormClipper(1.0)), ("model", model)], epsilon=float(epsilon), delta=1e-6)


def rows(model: Any) -> tuple[Array, Array]:
    """A row of length 1 and the others, with the largest label; two columns where one is projected away."""
    X = np.zeros((ROWS, 2 if getattr(model, "rank", None) else 1))
    X[0] = X.shape[1] ** -0.5
    X[1:] = -X[0] * (getattr(model, "solver", "") == "fixed-size")
    return X, np.full(ROWS, model.y_range[-1] if hasattr(model, "y_range") else model.classes[-1])


def attacked(model: Any, epsilon: float, models: int, jobs: int) -> MembershipReport:
    """One configuration."""
    X, y = rows(model)
    given: dict[str, Any] = {"canary": (-X[0], y[0]), "models": models, "n_jobs": jobs, "private": False}
    return attack_membership(pipeline(model, epsilon), X, y, **given)


def with_less_noise(model: Any, models: int, jobs: int) -> MembershipReport:
    """Half of the noise in the plan, and the old claim."""

    def halved(*given: Any) -> Any:
        plan, found = prepare_rows(*given)
        assert plan.mechanism is not None
        less = replace(plan.mechanism, noise_scale=plan.mechanism.noise_scale / 2)
        return replace(plan, mechanism=less), found

    with mock.patch.object(membership, "prepare_rows", halved):
        return attacked(model, 8.0, models, jobs)


def without_clip(models: int) -> MembershipReport:
    """Gradients of rows are not clipped; in this process only, where the code is changed."""
    honest: Callable[..., Any] = ClippedGradient.of

    def endless(rows: Any, residuals: Any, clip: float, fit_intercept: bool) -> Any:
        return honest(rows, residuals, math.inf, fit_intercept)

    with mock.patch.object(ClippedGradient, "of", endless):
        return attacked(LEARNERS["noisy gradient descent"], 8.0, models, 1)


def needed(epsilon: float, models: int) -> int:
    """How many models show a bound above 0: as many as the square of what is told of each is small."""
    return max(models, round(6400 / epsilon**2)) if epsilon >= SHOWN else models // 5


def table(models: int, jobs: int) -> Iterator[str]:
    """A line for every learner, and one for all of them."""
    names = (
        "learner",
        "configurations",
        "refuted",
        "bound above ε",
        "bound above 0",
        "AUC at ε = 0.1, 1, 8",
        "ε at least, at 8",
    )
    yield f"| {' | '.join(names)} |\n{'|---' * len(names)}|"
    reports = []
    for name, model in LEARNERS.items():
        found = [attacked(model, epsilon, needed(epsilon, models), jobs) for epsilon in EPSILONS]
        reports += found
        yield _line(name, found, ", ".join(f"{found[k].auc:.2f}" for k in (0, 8, 16)), f"{found[-1].epsilon_low:.2f}")
    yield _line("all", reports, "", "")


def _line(name: str, found: list[MembershipReport], *cells: str) -> str:
    above = sum(one.epsilon_low > one.epsilon for one in found)
    some, refuted = sum(one.epsilon_low > 0 for one in found), sum(one.violated for one in found)
    return f"| {' | '.join([name, *map(str, (len(found), refuted, above, some)), *cells])} |"


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
    parser.add_argument("--models", type=int, default=1000, help="trained for a configuration, or more")
    parser.add_argument("--more", type=int, default=2000, help="trained for every planted bug")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    started = time.monotonic()
    for lines in (table(options.models, options.jobs), bugs(options.more, options.jobs)):
        for line in lines:
            print(line, flush=True)
        print()
    print(f"{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
