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

small, zeros = np.full(19, 0.01), np.zeros(19)


def proved(loss, with_row, without_row, public_maximum=None):
    def release(side, noise):
        rows = without_row if side else with_row
        mean = np.mean(rows / (public_maximum or rows.max()), keepdims=True)
        return noise.release(mean, noise_scale=1 / (rows.size * loss.mu), bound=1.0)

    return attack_output(FunctionTarget("a mean", release, loss), runs=4000).epsilon_low


losses = [PrivacyLoss(mu=mu) for mu in (0.1, 0.25, 0.5)]
claimed = [loss.epsilon(1e-6) for loss in losses]
public = [proved(loss, np.r_[1, zeros], np.r_[0, zeros], 1.0) for loss in losses]
private = [proved(loss, np.r_[1, small], np.r_[0.01, small]) for loss in losses]

plt.style.use("seaborn-v0_8-colorblind")
_, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.plot(claimed, public, "o-", label="proved by attack: public maximum")
ax.plot(claimed, private, "s-", label="proved by attack: maximum of the data")
ax.plot([0, 2.5], [0, 2.5], "k--", label="the claim")
ax.set(xlabel="claimed ε (δ = 10⁻⁶)", ylabel="proved: ε is at least")
ax.set(xlim=(0, 2.5), ylim=(0, 7))
ax.legend(loc="upper left")
plt.show()
