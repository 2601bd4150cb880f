"""How often a category is released that only one of two neighbouring datasets has, against what is charged for that.

Every pair is a dataset with categories that its neighbour lacks, held by the rows in which the two differ: all of them
the same one, or each its own. The noise and the threshold are those of the library. Of every thousandth pair the whole
release is made, and what leaves is compared with what the datasets hold.
"""

from __future__ import annotations

import argparse

import numpy as np

from ppdp import Adjacency, Domain
from ppdp.bounds import lookup
from ppdp.data.categories import Tally, released_categories
from ppdp.privacy.noise.sampler import Noise

N, COMMON, SCALE, MOST, AT_ONCE = 1000, 600.0, 10.0, 4, 100_000


def threshold(failure: float, adjacency: Adjacency) -> float:
    """That of the library, for one column."""
    domain = Domain(n_rows=N, n_features=1, adjacency=adjacency)
    parameters = {"columns": [0], "max_categories": [MOST]}
    found = lookup("release.categories", "release").threshold(domain, domain.neighbours, SCALE, failure, parameters)
    assert found is not None
    return found


def exceeding(pairs: int, weights: list[float], limit: float, noise: Noise) -> int:
    """In how many pairs the noisy weight of some category exceeds the threshold, where these are its weights."""
    found = 0
    for start in range(0, pairs, AT_ONCE):
        shape = min(AT_ONCE, pairs - start), len(weights)
        noisy = noise.release(np.broadcast_to(weights, shape), SCALE, float(N))
        found += int((noisy > limit).any(axis=1).sum())
    return found


def strangers(pairs: int, weights: list[float], limit: float, noise: Noise) -> int:
    """How many categories the whole release gives that the dataset does not have."""
    own = [f"own {i}" for i in range(len(weights))]
    tally = Tally((("common", *own),) * pairs, (np.array([COMMON, *weights]),) * pairs)
    answer = tally.released([MOST] * pairs, SCALE, limit, float(N), noise)
    found = released_categories(answer, range(pairs), [MOST] * pairs, limit)
    return sum(len(set(texts) - {"common", *own}) for texts in found.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    pairs, noise = parser.parse_args().pairs, Noise()
    for rows in (1, 5):
        for failure in (1e-2, 1e-4):
            limit = threshold(failure, Adjacency.replace(rows))
            for weights in [[float(rows)], [1.0] * rows][: 1 if rows == 1 else 2]:
                rate, whole = exceeding(pairs, weights, limit, noise) / pairs, max(1, pairs // 1000)
                unknown = strangers(whole, weights, limit, noise)
                print(
                    f"{rows} row(s) in {len(weights)} categories: charged {failure:g}, released in {rate:.3e} of"
                    f" {pairs} pairs; {unknown} categories that neither dataset has, in {whole} releases"
                )


if __name__ == "__main__":
    main()
