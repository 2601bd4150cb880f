"""
Was this row in the training data?
==================================

Hundreds of models are trained with one row and as many with the opposite row in its
place. The solid line shows how well somebody who sees only how a model scores the row
tells the two kinds apart. The certificate forbids the grey area above the dashed line,
and the attack stays below it but for the error of its counts. That it does proves
nothing; an attack that is clearly above the line would prove that the certificate is
false.
"""

import matplotlib.pyplot as plt
import numpy as np

from ppdp import make_pipeline, plot
from ppdp.audit import attack_membership
from ppdp.mechanisms import LogisticRegression
from ppdp.transformers import NormClipper

X, y = np.zeros((12, 1)), np.ones(12)
X[0] = 1.0  # among rows of zeros, this row and its opposite tell most
model = LogisticRegression(
    classes=(0, 1), max_iter=3, fit_intercept=False, max_grad_norm=0.5
)
pipe = make_pipeline(NormClipper(1.0), model, epsilon=8.0, delta=1e-6)
report = attack_membership(
    pipe, X, y, canary=(-X[0], 1), models=600, private=False
)  # made-up rows

_, ax = plt.subplots(figsize=(5.2, 4.2), layout="constrained")
plot.membership(report, ax=ax)  # the same as report.plot(ax)
plt.show()
