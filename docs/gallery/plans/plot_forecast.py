"""
What does noise cost in accuracy, before any data?
==================================================

``pipe.forecast`` rehearses the pipeline on simulated rows of the declared shape,
several times for each ε. Nothing is charged, because no private row is read. Real rows
may score higher or lower: what to read is the distance to the dashed line. Here the
model is nearly as good as the one without noise from about ε = 1 on; at ε = 0.1 the
result depends on the draw of the noise, which the height of the band shows.
"""

import matplotlib.pyplot as plt

from ppdp import Domain, make_pipeline
from ppdp.mechanisms import LogisticRegression
from ppdp.transformers import MeanImputer, MinMaxScaler

pipe = make_pipeline(
    MinMaxScaler(ranges=(0, 10)),
    MeanImputer(),
    LogisticRegression(classes=(0, 1)),
    delta=1e-6,
)
forecast = pipe.forecast(
    Domain(n_rows=2000, n_features=7), epsilons=(0.03, 0.1, 0.3, 1.0, 3.0), repeats=5
)

_, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
forecast.plot(ax)
plt.show()
