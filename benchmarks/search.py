"""How long the nearest rows of a table of signs take, against faiss.

    python benchmarks/search.py

Best of three, in turn, in this process; without faiss (``pip install 'ppdp[search]'``) only our own search.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from projection import seconds

from ppdp.pipeline.release import neighbours

NEIGHBORS = 10


def compared(n: int = 1_000_000, size: int = 256, queries: int = 1000) -> None:
    """Random bits."""
    rng = np.random.default_rng(0)
    packed, asked = (rng.integers(256, size=(count, size // 8), dtype=np.uint8) for count in (n, queries))
    faiss = neighbours.installed_faiss()

    def ours(library: object) -> tuple[np.ndarray, np.ndarray]:
        neighbours.installed_faiss = lambda: library
        return neighbours.smallest_distances(asked, packed, NEIGHBORS)

    print(f"{queries:,} queries, {n:,} rows of {size} bits, {NEIGHBORS} neighbours")
    if faiss is None:
        print(f"  without faiss {seconds(partial(ours, None), rounds=3)[0]:6.2f} s")
        return
    index = faiss.IndexBinaryFlat(size)
    index.add(packed)
    plain, found, fallback = seconds(
        lambda: index.search(asked, NEIGHBORS), partial(ours, faiss), partial(ours, None), rounds=3
    )
    print(f"  plain faiss   {plain:6.2f} s")
    print(f"  kneighbors    {found:6.2f} s = {found / plain:5.2f}")
    print(f"  without faiss {fallback:6.2f} s = {fallback / plain:5.2f}")
    assert all(map(np.array_equal, ours(faiss), ours(None)))


if __name__ == "__main__":
    compared()
