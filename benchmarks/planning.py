"""How long a plan takes where every stage has two ways: processor time and routes that are solved.

python benchmarks/planning.py
"""

from __future__ import annotations

import time

from ppdp import Domain, make_pipeline
from ppdp.mechanisms import GaussianMechanism
from ppdp.pipeline.planning.solve import PlanSolver
from ppdp.transformers import NormClipper, StandardScaler

DOMAIN = Domain(n_rows=100_000, n_features=4)
REPEATS = 5


def main() -> None:
    """Print a line for every number of stages; the least time of five plans."""
    solved, solve = [], PlanSolver.solve
    PlanSolver.solve = lambda self, route: (solved.append(route), solve(self, route))[1]  # type: ignore[method-assign]
    for count in (2, 8, 10, 12, 14, 16, 24, 32):
        scalers = [StandardScaler(clip=1.0, min_std=0.5 if i % 2 else None) for i in range(count)]
        pipe = make_pipeline(NormClipper(), *scalers, GaussianMechanism())
        times = []
        for _ in range(REPEATS):
            solved.clear()
            start = time.process_time()
            plan = pipe.plan(DOMAIN)
            times.append(time.process_time() - start)
        print(f"{count} stages: {min(times):.3f} s, {len(solved)} routes solved, {len(plan.alternatives)} listed")


if __name__ == "__main__":
    main()
