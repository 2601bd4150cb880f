"""
The average of a handwritten digit
==================================

The mean of 183 handwritten threes, 64 pixels each, without noise and released at three
values of ε. The smaller ε is, the more speckles there are. The noise falls with the
number of rows: with ten times as many pictures, ε = 1 would look about as clear as ε =
10 does here. What is protected is one picture, not the shape of a three.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from ppdp import Ledger, make_pipeline
from ppdp.mechanisms import GaussianMechanism
from ppdp.transformers import MinMaxScaler

digits = load_digits()
threes = digits.data[digits.target == 3]
pictures = {"without privacy": threes.mean(axis=0)}
with Ledger():
    for epsilon in (10.0, 3.0, 1.0):
        steps = MinMaxScaler(ranges=(0, 16)), GaussianMechanism("mean")
        pipe = make_pipeline(*steps, epsilon=epsilon, delta=1e-6, dataset="threes").fit(
            threes
        )
        pictures[f"ε = {epsilon:g}"] = pipe.release_.to_pandas()["raw_value"].to_numpy()

_, axes = plt.subplots(1, 4, figsize=(6.4, 2.0), layout="constrained")
for ax, (title, pixels) in zip(axes, pictures.items()):
    ax.imshow(pixels.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
    ax.set(title=title, xticks=[], yticks=[])
plt.show()
