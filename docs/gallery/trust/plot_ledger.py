"""
What several fits cost together
===============================

Ten models are fitted on the same rows, each with a certificate of ε = 0.5 for itself.
The dots are what the ledger counts after each fit, that is, what everybody who sees all
models so far may learn of one row. The total is far more than the last certificate
says, and less than the sum of all of them, because the ledger adds up the noise instead
of the ε.
"""

import matplotlib.pyplot as plt
import numpy as np

from ppdp import Ledger, make_pipeline
from ppdp.mechanisms import LogisticRegression
from ppdp.transformers import NormClipper

rng = np.random.default_rng(0)
X = rng.normal(size=(2000, 3))
y = (X[:, 0] > 0).astype(int)

steps = NormClipper(), LogisticRegression(classes=(0, 1))
pipe = make_pipeline(*steps, epsilon=0.5, delta=1e-6, dataset="ten models")
spent = [0.0]
with Ledger() as ledger:
    for _ in range(10):
        pipe.fit(X, y)
        spent.append(ledger.epsilon(1e-5))
fits = np.arange(11)

plt.style.use("seaborn-v0_8-colorblind")
_, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.plot(fits, spent, "o-", label="the ledger, at δ = 10⁻⁵")
ax.plot(fits, 0.5 * fits, "--", label="sum of the certificates")
ax.axhline(0.5, linestyle=":", color="0.4", label="each certificate, for its fit alone")
ax.set(xlabel="models fitted on the same rows", ylabel="ε of all of them together")
ax.legend()
plt.show()
