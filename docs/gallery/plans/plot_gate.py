"""
Will the gate pass?
===================

An exact PCA keeps neighbouring datasets close only if the data have a clear gap between
two eigenvalues. A gate tests this with noise. It passes with a probability that depends
on the margin: how many rows would have to be replaced before the gap is too small. From
the dashed line on, 99 of 100 runs pass; far below it, ``fit`` refuses, and nothing but
the refusal is released.
"""

import matplotlib.pyplot as plt

from ppdp import Domain, make_pipeline, plot
from ppdp.mechanisms import GaussianMechanism
from ppdp.transformers import PCA, NormClipper

components = PCA(n_components=1, min_gap=0.1, fit_mode="exact")
pipe = make_pipeline(
    NormClipper(), components, GaussianMechanism(), epsilon=1.0, delta=1e-6
)

_, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
plot.gate(pipe.plan(Domain(n_rows=8000, n_features=3)), ax=ax)
plt.show()
