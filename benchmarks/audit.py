"""Empirical audit: try to tell two neighbouring datasets apart from what a plan releases.

Each plan is made once and executed 20,000 times, on the worst pair of neighbours. A linear statistic along the known
shift, with a threshold chosen on other runs, guesses the dataset; exact bounds on its two error rates at confidence
1 - 1e-6 give ``mu_low``. It must stay below the certified mu, and lie above it when the noise is halved on purpose.

Run ``python benchmarks/audit.py``; the figures come last.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, norm

from ppdp import Domain, Pipeline
from ppdp.execute import execute
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.planning.plan import Plan
from ppdp.privacy.noise import Noise
from ppdp.rows import Rows
from ppdp.transformers import Deduplicator, MeanImputer, NormClipper

Array = NDArray[np.float64]

RUNS = 20_000
DOUBT = 1e-6


@dataclass(frozen=True)
class Target:
    """A plan with the pair of neighbours on which it loses most."""

    name: str
    plan: Plan
    left: Rows
    right: Rows

    @property
    def halved(self) -> Target:
        """The same with half of the noise that the plan asks for: a bug that an audit must find."""
        planned = self.plan.mechanism
        assert planned is not None
        broken = replace(planned, noise_scale=planned.noise_scale / 2)
        return replace(self, plan=replace(self.plan, mechanism=broken))


def deduplication() -> Target:
    """The record that is replaced has no duplicate; the others are one record, many times."""
    X = np.zeros((12, 2))
    X[1:] = [0.0, 1.0]
    Z = X.copy()
    X[0], Z[0] = [1.0, 0.0], [-1.0, 0.0]
    steps = [("clip", NormClipper()), ("dedup", Deduplicator()), ("mean", GaussianMechanism())]
    return _target("deduplication", steps, X, Z)


def imputation() -> Target:
    """Only the record that is replaced is observed: all other rows follow it."""
    X = np.full((12, 1), np.nan)
    Z = X.copy()
    X[0], Z[0] = 1.0, -1.0
    steps = [("clip", NormClipper()), ("impute", MeanImputer(statistics="exact")), ("mean", GaussianMechanism())]
    return _target("mean imputation", steps, X, Z)


def learning() -> Target:
    """One step of gradient descent; the record that is replaced changes its side, the others are one record."""
    X = np.zeros((12, 1))
    Z = X.copy()
    X[0], Z[0] = 1.0, -1.0
    model = LogisticRegression(classes=(0, 1), fit_intercept=False, max_iter=1, clip=0.5, coef_norm=1e3)
    steps = [("clip", NormClipper()), ("dedup", Deduplicator()), ("model", model)]
    return _target("noisy gradient descent", steps, X, Z, np.ones(12))


TARGETS = (deduplication, imputation, learning)


def _target(name: str, steps: list, X: Array, Z: Array, y: Array | None = None) -> Target:
    plan = Pipeline(steps, epsilon=5.0, delta=1e-6).plan(Domain(n_rows=X.shape[0], n_features=X.shape[1]))
    return Target(name, plan, Rows.of(X, y), Rows.of(Z, y))


def answers(plan: Plan, rows: Rows, runs: int, noise: Noise) -> Array:
    """What the mechanism released in independent executions, one per row."""
    assert plan.mechanism is not None
    released = (execute(plan, rows, noise).released for _ in range(runs))
    return np.array([next(iter(out.values())) for out in released])


def audit(target: Target, runs: int, noise: Noise) -> float:
    """Lower bound on mu, with confidence 1 - 1e-6.

    Parameters
    ----------
    target : Target
        What to audit.
    runs : int
        Executions that count, half of them on each dataset; a tenth as many choose statistic and threshold.
    noise : Noise
        Where noise comes from.
    """
    few, many = runs // 20, runs // 2
    left, right = (answers(target.plan, rows, few, noise) for rows in (target.left, target.right))
    direction = left.mean(axis=0) - right.mean(axis=0)
    threshold = np.median(np.concatenate([left, right]) @ direction)
    hits, alarms = (
        int((answers(target.plan, rows, many, noise) @ direction > threshold).sum())
        for rows in (target.left, target.right)
    )
    return float(norm.ppf(_at_least(hits, many)) - norm.ppf(1 - _at_least(many - alarms, many)))


def _at_least(successes: int, runs: int) -> float:
    """Clopper-Pearson lower bound on a probability; two of them fail together with probability DOUBT."""
    return float(beta.ppf(DOUBT / 2, successes, runs - successes + 1)) if successes else 0.0


def main() -> int:
    """Audit every target with its noise and with half of it."""
    lines, sound = [], True
    for make in TARGETS:
        target, start = make(), time.perf_counter()
        certified = target.plan.loss.mu
        honest, broken = audit(target, RUNS, Noise()), audit(target.halved, RUNS, Noise())
        seconds = (time.perf_counter() - start) / 2
        sound &= honest < certified < broken
        lines.append(
            f"{target.name}: mu_low/mu {honest / certified:.3f}, with half of the noise {broken / certified:.3f}"
            f" (certified mu {certified:.3f}, {seconds:.1f} s per audit)"
        )
    print(f"{RUNS} executions each, confidence 1 - {DOUBT:g}")
    print("\n".join(lines))
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
