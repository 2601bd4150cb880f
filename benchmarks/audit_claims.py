"""What the audit finds with default settings: claims of the literature that are false, and how near it comes to ours.

Run ``python benchmarks/audit_claims.py``. The claims are those that the tests of the audit attack.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from catalogue import TARGETS

from ppdp.audit import attack_output, attack_stability

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

import printed_claims as printed

CLAIMS = {
    "deduplication, d = 1, n = 12": printed.deduplication(12, 1),
    "deduplication, d = 2, n = 20": printed.deduplication(20, 2),
    "standard scaling, n = 50": printed.scaling(50, 0.2),
    "mean imputation, d = 3, n = 40": printed.imputation(40, 3, 3),
    "PCA to 1 of 2 columns, n = 50": printed.projection(50, 2, 1),
    "PCA to 2 of 3 columns, n = 50": printed.projection(50, 3, 2),
}
PLANS = "Gaussian mean", "deduplication", "mean imputation"


def main() -> int:
    """Attack all of them."""
    missed = 0
    for name, claim in CLAIMS.items():
        start = time.perf_counter()
        found = attack_stability(claim, until_violated=True).worst
        missed += not found.violated
        print(f"{name}: {found.ratio:.3f} of the printed bound after {time.perf_counter() - start:.1f} s", flush=True)
    for name in PLANS:
        honest = attack_output(TARGETS[name]())
        missed += honest.violated
        print(
            f"{name}: mu_low/mu {honest.ratio:.3f} in {honest.runs:,} runs, epsilon at least {honest.epsilon_low:.3f}"
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
