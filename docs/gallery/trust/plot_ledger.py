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

fits, spent = np.arange(11), [0.0]
pipe = make_pipeline(
    NormClipper(),
    LogisticRegression(classes=(0, 1)),
    epsilon=0.5,
    delta=1e-6,
    dataset="ten models",
)
with Ledger() as ledger:
    for _ in fits[1:]:
        pipe.fit(X, y)
        spent.append(ledger.epsilon(1e-5))

_, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.plot(fits, 0.5 * fits, "--", color="#d08a4e", label="sum of the certificates")
ax.plot(fits, spent, "o-", color="#3b6690", label="the ledger, at δ = 10⁻⁵")
ax.plot(
    fits[1:],
    np.full(10, 0.5),
    ":",
    color="0.4",
    label="each certificate, for its fit alone",
)
ax.set(
    xlim=(0, 10),
    ylim=(0, 5),
    xlabel="models fitted on the same rows",
    ylabel="ε of all of them together",
)
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
