"""
What can an attacker find out?
==============================

An attacker who knows all rows but one must decide from a release which of two values
the last row has. Each line is the largest share of true alarms that any attacker can
reach for a share of false alarms; guessing is the diagonal. With 5 % false alarms that
is 8 % at ε = 1, hardly more than guessing, and 58 % at ε = 10, which protects no one
person well (δ is 10⁻⁶ everywhere).
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

from ppdp import Domain, make_pipeline
from ppdp.mechanisms import GaussianMechanism
from ppdp.transformers import NormClipper

false_alarms = np.linspace(0, 1, 401)
steps = NormClipper(), GaussianMechanism("mean")

plt.style.use("seaborn-v0_8-colorblind")
_, ax = plt.subplots(figsize=(5.2, 4.2), layout="constrained")
for epsilon, style in ((10, "-"), (3, "--"), (1, "-."), (0.1, ":")):
    pipe = make_pipeline(*steps, epsilon=epsilon, delta=1e-6)
    mu = pipe.plan(Domain(n_rows=1000, n_features=2)).loss.mu
    # Nobody can do better against Gaussian noise.
    true_alarms = norm.cdf(norm.ppf(false_alarms) + mu)
    ax.plot(false_alarms, true_alarms, style, linewidth=2, label=f"ε = {epsilon:g}")
ax.plot([0, 1], [0, 1], color="black", linewidth=0.8, label="guessing")
ax.set(xlabel="share of false alarms", ylabel="share of true alarms, at most")
ax.legend(loc="lower right")
plt.show()
