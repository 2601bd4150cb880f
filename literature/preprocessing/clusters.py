"""Proposition 3: approximate deduplication and quantization, with the paper's algorithm as it is printed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from literature.claims import Claim, Comparison
from literature.preprocessing.paper import PAPER
from ppdp.bounds import lookup
from ppdp.core.adjacency import Adjacency
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain

__all__ = [
    "CLAIMS",
    "changed_rows",
    "deduplicated",
    "flipping_cluster",
    "largest_cluster",
    "quantized",
    "two_pentagons",
]

Rows = NDArray[np.float64]
ETA = 0.02


def _good_clusters(X: Rows, eta: float) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Every good cluster B(x, η; S) = B(x, 3η; S): its rows, and those of them that are centres.

    Two good clusters are equal or disjoint, so the order in which they are processed does not matter.
    """
    distances = cdist(X, X)
    good = ~((distances > eta) & (distances <= 3 * eta)).any(axis=1)
    found: dict[bytes, tuple[NDArray[np.intp], list[int]]] = {}
    for centre in np.flatnonzero(good):
        members = np.flatnonzero(distances[centre] <= eta)
        found.setdefault(members.tobytes(), (members, []))[1].append(int(centre))
    return [(members, np.array(centres)) for members, centres in found.values()]


def deduplicated(X: Rows, eta: float) -> NDArray[np.bool_]:
    """η-approximate deduplication: which rows are kept; of several possible centres the first is."""
    kept = np.ones(len(X), bool)
    for members, centres in _good_clusters(X, eta):
        kept[members] = members == centres[0]
    return kept


def quantized(X: Rows, eta: float, pick: Callable[[NDArray[np.intp]], int] = lambda centres: int(centres[0])) -> Rows:
    """η-quantization: every row of a good cluster becomes its centre; ``pick`` chooses among several."""
    result = X.copy()
    for members, centres in _good_clusters(X, eta):
        result[members] = X[pick(centres)]
    return result


def largest_cluster(*datasets: Rows, eta: float) -> int:
    """``max |B|`` over the good clusters of some datasets."""
    return max((len(members) for X in datasets for members, _ in _good_clusters(X, eta)), default=0)


def changed_rows(one: NDArray[Any], other: NDArray[Any]) -> int:
    """How many rows of two processed datasets differ, the replaced row, slot 0, not counted."""
    return int((one != other).reshape(len(one), -1).any(axis=1)[1:].sum())


def proposition_3_count(*, largest: int) -> float:
    """Proposition 3, L∞ sensitivity: ``max 2 |B|``."""
    return 2.0 * largest


def proposition_3_distance(*, eta: float) -> float:
    """Proposition 3, L2 sensitivity of quantization: ``η``."""
    return eta


def footnote_5(*, largest: int) -> float:
    """Footnotes 5 and 6, L∞ sensitivity if one row is added or deleted: ``max |B|``."""
    return float(largest)


def flipping_cluster(copies: int, eta: float = ETA) -> tuple[Rows, Rows]:
    """One cluster in the plane, all of it within η of the replaced row only, which is reflected: all rows move."""
    rest = np.repeat(np.array([[-0.51, 0.0], [0.51, 0.0]]) * eta, copies, axis=0)
    left, right = (np.vstack([[0.0, y * eta], rest]) for y in (0.86, -0.86))
    return left, right


def two_pentagons() -> tuple[Rows, Rows]:
    """Five clusters of 100 around each of two points of the unit ball; the replaced row goes from one to the other.

    Every cluster has a centre and 99 rows at 0.99 η above and below it, more than η from each other: no other row of it
    can be the centre. All of its rows are less than 3η from the replaced row, and more than η.
    """
    angles = 2 * np.pi * np.arange(5) / 5
    ring = 2.6 * ETA * np.column_stack([np.cos(angles), np.sin(angles)])
    heights = np.repeat([0.0, 0.99 * ETA, -0.99 * ETA], [1, 50, 49])
    clusters = np.array([[x, y, height] for x, y in ring for height in heights])
    places = np.array([[-0.8, 0.0, 0.0], [0.8, 0.0, 0.0]])
    rest = np.vstack([place + clusters for place in places])
    left, right = (np.vstack([place, rest]) for place in places)
    return left, right


def _pentagons() -> Comparison:
    left, right = two_pentagons()
    most = largest_cluster(left, right, eta=ETA)
    moved = changed_rows(quantized(left, ETA), quantized(right, ETA))
    dropped = changed_rows(deduplicated(left, ETA), deduplicated(right, ETA))
    domain = Domain(n_rows=len(left), n_features=3, row_norm=1.0)
    formula = lookup("clusters.deduplicate", "stability")
    certified = formula(domain, Adjacency.replace().distance, eta=ETA, max_cluster=most, low_dimension=True)[1]
    return Comparison(
        "rows that change",
        proposition_3_count(largest=most),
        float(min(moved, dropped)),
        f"{len(left)} rows in space, η = {ETA}: five clusters of {most} rows in a pentagon around a point, and the "
        f"same around another; one row goes from the first point to the second. Deduplication changes {dropped} "
        f"further rows, quantization {moved}. Every cluster has one possible centre.",
        float(certified.toggled),
        {"left": left, "right": right, "eta": ETA},
    )


def _two_ways() -> Comparison:
    eta = 1.0
    left, right = flipping_cluster(1, eta)

    def move(pick: Callable[[NDArray[np.intp]], int]) -> float:
        steps = quantized(left, eta, pick) - quantized(right, eta, pick)
        return float(np.linalg.norm(steps[1:], axis=1).max()) / eta

    domain = Domain(n_rows=3, n_features=2, row_norm=1.0)
    certified = lookup("clusters.quantize", "stability")(domain, Adjacency.replace().distance, eta=eta, max_cluster=3)[
        1
    ]
    return Comparison(
        "largest move, in η",
        proposition_3_distance(eta=1.0),
        min(move(lambda centres: int(centres[0])), move(lambda centres: int(centres[-1]))),
        "Three rows in the plane, η = 1: (-0.51, 0), (0.51, 0), and (0, 0.86), which becomes (0, -0.86). The replaced "
        "row is the only possible centre both times.",
        certified.radius / eta,
        {"left": left, "right": right, "eta": eta},
    )


def _added_row() -> Comparison:
    eta, rows = 0.1, np.array([[-0.34], [-0.25], [-0.16], [0.16], [0.25], [0.34]])
    more = np.vstack([rows, [[0.0]]])
    changed = int((deduplicated(rows, eta) != deduplicated(more, eta)[:-1]).sum())
    most = largest_cluster(rows, more, eta=eta)
    domain = Domain(n_rows=7, n_features=1, row_norm=1.0)
    certified = lookup("clusters.deduplicate", "stability")(
        domain, Distance(toggled=1), eta=eta, max_cluster=most, low_dimension=True
    )[1]
    return Comparison(
        "rows that change",
        footnote_5(largest=most),
        float(changed),
        "Six rows ±0.16, ±0.25, ±0.34 on a line, η = 0.1; a row 0 is added. It is in no cluster and ends both.",
        float(certified.toggled - 1),
        {"left": rows, "right": more, "eta": eta},
    )


_SETTING = (
    "A good cluster is a ball B(x, η; S) = B(x, 3η; S); deduplication keeps its centre, quantization moves its rows "
    "there."
)

CLAIMS = (
    Claim(
        "prop-3-count",
        PAPER,
        "Proposition 3, Δ_∞",
        "deduplication and quantization",
        f"{_SETTING} If one row is replaced, at most 2 max|B| others change.",
        "Δ_∞ = max_S max_{B ∈ B(S)} 2|B|",
        proposition_3_count,
        "false",
        "A row ends every cluster with a centre between η and 3η from it, and belongs to none of them: on each side "
        "up to K_d, as many points as fit into a ball at distances of more than its radius (2, 5, 12 for d = 1, 2, "
        "3). The smallest datasets known to exceed it have 6 rows. True instead: 2 K_d max(|B| − 1, 2) for "
        "deduplication, 2 K_d |B| for quantization; or, with κ the crowding at 8η, 2(κ − 1) for both.",
        _pentagons,
        "clusters",
        ("clusters.deduplicate", "clusters.quantize"),
    ),
    Claim(
        "prop-3-distance",
        PAPER,
        "Proposition 3, Δ₂ of quantization",
        "quantization",
        f"{_SETTING} If one row is replaced, every other row moves by at most η.",
        "Δ₂(π_η^q) = η",
        proposition_3_distance,
        "false",
        "The proof compares a row with its own image, not its two images with each other. True: η if a row is added or "
        "deleted, 2η if one is replaced. Appendix C.1 calls the row x of B(x, η; S) itself the centroid; where several "
        "rows could be it, the paper leaves the choice open, and here there is only one. With the mean of the cluster "
        "for its centroid η is exceeded too, 1.93 times: 40 rows at -1/4, one at 0, one at 1/4, and one that leaves "
        "5/8 (η = 1/4).",
        _two_ways,
        "clusters",
        ("clusters.quantize",),
    ),
    Claim(
        "footnote-5",
        PAPER,
        "Footnotes 5 and 6",
        "deduplication, a row added or deleted",
        f"{_SETTING} If one row is added or deleted, at most max|B| others change.",
        "Δ_∞ = max_{S, B ∈ B(S)} |B|",
        footnote_5,
        "false",
        "As in Proposition 3: the added row need not be in any of the clusters that it ends; the proof takes for "
        "granted that a row within η of it is there.",
        _added_row,
        "clusters",
        ("clusters.deduplicate", "clusters.quantize"),
    ),
)
