"""
Prices that grow by shares
==========================

The price of a made-up flat grows by the same share with every square metre. On the left
lines are fitted to prices, on the right to their logarithms, ``target_func="log"``: ten
releases at ε = 1 each. The range and what is predicted are in the units of the prices;
the logarithm is a public function of each of them, so that it costs nothing.
"""

import matplotlib.pyplot as plt
import numpy as np

from ppdp import Ledger, make_pipeline
from ppdp.mechanisms import Ridge
from ppdp.transformers import MinMaxScaler

rng = np.random.default_rng(0)
size = rng.uniform(20, 160, 2000)
price = 60 * np.exp(0.018 * size + rng.normal(0, 0.25, 2000))
places = np.linspace(20, 160, 141)[:, None]

_, axes = plt.subplots(1, 2, figsize=(7.0, 3.2), layout="constrained", sharey=True)
with Ledger():
    for ax, function in zip(axes, (None, "log")):
        ax.scatter(size, price, s=2, color="0.75")
        steps = MinMaxScaler(ranges=(20, 160)), Ridge((50, 2000), target_func=function)
        pipe = make_pipeline(*steps, epsilon=1.0, delta=1e-6, dataset="flats")
        for _ in range(10):
            line = pipe.fit(size[:, None], price).predict(places)
            ax.plot(places, line, color="#3b6690", linewidth=0.8)
        ax.set(title=f"target_func={function!r}", xlabel="size in m²", ylim=(0, 1500))
axes[0].set_ylabel("price in 1,000")
plt.show()
