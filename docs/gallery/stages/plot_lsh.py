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


_, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for bands, hashes, color, style in (
    (20, 4, "#2f7f79", ":"),
    (10, 6, "#3b6690", "-"),
    (3, 6, "#d08a4e", "--"),
):
    stage = LSHDeduplicator(bands=bands, rows=hashes)
    dropped = [
        400 - len(stage.fit_resample(list(pairs(count)))[0]) for count in replaced
    ]
    shared = (40 - replaced) / (40 + replaced)  # Jaccard similarity
    ax.plot(
        shared,
        np.divide(dropped, 200),
        style,
        color=color,
        marker="o",
        label=f"{bands} bands of {hashes} hashes",
    )
ax.set(
    xlabel="similarity of the two texts (Jaccard)",
    ylabel="share of copies dropped",
    xlim=(0, 1.02),
    ylim=(0, 1.05),
)
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
