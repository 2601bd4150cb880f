"""
Regression lines at three values of ε
=====================================

The same 1,000 rows, and 20 private regression lines at each ε. The cloud is never
released; only the two numbers of each line are. At ε = 0.1 the noise decides where the
line lies, at ε = 1 the trend is right and at ε = 10 the lines can hardly be told apart.
"""

import matplotlib.pyplot as plt
import numpy as np

from ppdp import Ledger, make_pipeline
from ppdp.mechanisms import LinearRegression
from ppdp.transformers import MinMaxScaler

rng = np.random.default_rng(0)
age = rng.uniform(20, 80, 1000)
pressure = 100 + 0.7 * age + rng.normal(0, 10, 1000)
steps = MinMaxScaler(ranges=(20, 80)), LinearRegression(y_range=(80, 200))
ends = np.array([20.0, 80.0])

_, axes = plt.subplots(1, 3, figsize=(7.0, 3.0), layout="constrained", sharey=True)
with Ledger():
    for ax, epsilon in zip(axes, (0.1, 1.0, 10.0)):
        ax.scatter(age, pressure, s=2, color="0.75")
        pipe = make_pipeline(
            *steps, epsilon=epsilon, delta=1e-6, dataset="blood pressure"
        )
        for _ in range(20):
            line = pipe.fit(age[:, None], pressure).predict(ends[:, None])
            ax.plot(ends, line, color="#3b6690", linewidth=0.8)
        ax.set(title=f"ε = {epsilon:g}", xlabel="age in years", ylim=(80, 200))
axes[0].set_ylabel("blood pressure in mmHg")
plt.show()
