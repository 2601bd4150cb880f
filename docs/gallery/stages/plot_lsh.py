"""
Which near-copies does hashing find?
====================================

Pairs of texts of 40 words, some of which were replaced in the copy. The lines show how
many of the copies ``LSHDeduplicator`` drops, against the share of all their words that
both texts have. More bands find more copies, and cost more, because in each band one
replaced row may switch another; more hashes in each band leave texts alone that are
less alike.
"""

import matplotlib.pyplot as plt
import numpy as np

from ppdp.transformers import LSHDeduplicator

rng = np.random.default_rng(0)
replaced = np.array([0, 2, 4, 6, 8, 11, 14, 18, 24, 30, 40])


def pairs(count):
    for text in rng.integers(100_000, size=(200, 40)).astype(str):
        yield " ".join(text)
        yield " ".join([*rng.integers(100_000, size=count).astype(str), *text[count:]])


plt.style.use("seaborn-v0_8-colorblind")
_, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for bands, hashes, style in ((20, 4, "^:"), (10, 6, "o-"), (3, 6, "s--")):
    stage = LSHDeduplicator(bands=bands, rows_per_band=hashes)
    texts = [list(pairs(count)) for count in replaced]
    dropped = np.array([400 - len(stage.fit_resample(both)[0]) for both in texts])
    jaccard = (40 - replaced) / (40 + replaced)
    ax.plot(jaccard, dropped / 200, style, label=f"{bands} bands of {hashes} hashes")
ax.set_xlabel("similarity of the two texts (Jaccard)")
ax.set_ylabel("share of copies dropped")
ax.legend()
plt.show()
