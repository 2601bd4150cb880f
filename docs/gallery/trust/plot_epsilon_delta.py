"""
The guarantee at every δ
========================

A certificate states one pair (ε, δ), the dot; it holds the whole curve. A smaller δ
means that the guarantee fails less often, and costs a larger ε. Below some δ nothing is
promised: the test that this pipeline makes of its data may itself fail with that
probability.
"""

import matplotlib.pyplot as plt
import numpy as np

from ppdp import make_pipeline, plot
from ppdp.mechanisms import GaussianMechanism
from ppdp.transformers import PCA, NormClipper

X = np.random.default_rng(0).normal(size=(8000, 3)) * (0.7, 0.1, 0.1)
components = PCA(n_components=1, min_gap=0.1, fit_mode="exact")
pipe = make_pipeline(
    NormClipper(),
    components,
    GaussianMechanism(),
    epsilon=1.0,
    delta=1e-6,
    dataset="one long axis",
)
certificate = pipe.fit(X).certificate_

_, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
plot.epsilon_delta(certificate, ax=ax)
plt.show()
