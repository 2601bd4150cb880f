"""
An attack on a true and on a false claim
========================================

Both programs release a mean with noise and claim the ε on the lower axis. One divides
by a public maximum. The other first scales the rows by their own largest value, and
accounts only for the mean. Each is run thousands of times on two datasets that differ
in one row, and from the outcomes the audit proves a lower bound on ε. It stays below
the dashed line where the claim is true, and rises far above it where the claim is
false.
"""

import matplotlib.pyplot as plt
import numpy as np

from ppdp import PrivacyLoss
from ppdp.audit import FunctionTarget, attack_output

PUBLIC_MAXIMUM = 1.0


def proved(loss, with_row, without_row, maximum):
    def release(side, noise):
        rows = without_row if side else with_row
        mean = np.mean(rows / (maximum or rows.max()), keepdims=True)
        return noise.release(mean, noise_scale=1 / (rows.size * loss.mu), bound=1.0)

    return attack_output(FunctionTarget("a mean", release, loss), runs=4000).epsilon_low


small, other = np.full(19, 0.01), np.zeros(19)
losses = [PrivacyLoss(mu=mu) for mu in (0.1, 0.2, 0.3, 0.5)]
claimed = [loss.epsilon(1e-6) for loss in losses]
true = [
    proved(loss, np.r_[1.0, other], np.r_[0.0, other], PUBLIC_MAXIMUM)
    for loss in losses
]
false = [proved(loss, np.r_[1.0, small], np.r_[0.01, small], None) for loss in losses]

_, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.plot([0, 3], [0, 3], "--", color="0.4", label="the claim")
ax.plot(
    claimed,
    false,
    "s-",
    color="#d08a4e",
    label="proved by attack: scaled by the private maximum",
)
ax.plot(
    claimed,
    true,
    "o-",
    color="#3b6690",
    label="proved by attack: divided by the public maximum",
)
ax.set(
    xlim=(0, 2.5),
    ylim=(0, 7),
    xlabel="claimed ε (δ = 10⁻⁶)",
    ylabel="proved: ε is at least",
)
ax.legend(frameon=False, loc="upper left")
ax.spines[["top", "right"]].set_visible(False)
plt.show()
