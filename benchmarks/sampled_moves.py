"""What sampled steps cost at one Rényi order when many rows moved, against the exact sum over the law of their number.

    python benchmarks/sampled_moves.py

20 steps on Poisson samples of 100 of 10,000 rows, all of which moved by ``radius`` (Lipschitz constant 1.25, norm 1);
the order is that of a ledger with the limit (3, 1e-6). Exact: the log moment of two Gaussians, a mean over the
binomial law. The last column is the epsilon of two such fits at delta = 1e-6.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp
from scipy.stats import binom

from ppdp.core.distance import Distance
from ppdp.privacy.fixed_size import poisson_renyi
from ppdp.privacy.ledger.privacy_filter import RenyiAccount, best_order

ROWS, RATE, STEPS, LIPSCHITZ = 10_000, 0.01, 20, 1.25
ORDER, DELTA = best_order(3.0, 1e-6), 1e-6


def main() -> None:
    """Print the table."""
    k = np.arange(ROWS + 1)
    log_weights = binom.logpmf(k, ROWS, RATE)
    print(f"order {ORDER:.3f}\n{'radius':>8}{'noise':>7}{'exact':>12}{'ppdp':>12}{'ratio':>8}{'epsilon of two':>16}")
    for radius, noise in ((1e-4, 5.0), (1e-3, 5.0), (4e-3, 5.0), (4e-3, 20.0), (4e-3, 60.0)):
        shifts = LIPSCHITZ * radius * k / noise
        exact = STEPS * logsumexp(log_weights + ORDER * (ORDER - 1) * shifts**2 / 2) / (ORDER - 1)
        distance = Distance(moved=ROWS, radius=radius)
        found = STEPS * poisson_renyi(distance, ORDER, rate=RATE, bound=1.0, lipschitz=LIPSCHITZ, noise_scale=noise)
        two = RenyiAccount(ORDER).epsilon(2 * found, DELTA)
        print(f"{radius:>8g}{noise:>7g}{exact:>12.4g}{found:>12.4g}{found / exact:>8.4f}{two:>16.4g}")


if __name__ == "__main__":
    main()
