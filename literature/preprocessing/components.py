"""Proposition 5, Lemma L, equation (58) and Appendix F.2: principal components."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from literature.claims import Claim, Comparison
from literature.preprocessing.paper import PAPER
from ppdp.bounds.pca import moment_spread, projector_shift
from ppdp.core.adjacency import Adjacency
from ppdp.core.domain import Domain

__all__ = ["CLAIMS", "clipped_projection", "eigengap", "gap_change", "leading", "projection", "turned_away"]

Rows = NDArray[np.float64]
ONE = Adjacency.replace().distance


def projection(*, rows: int, gap: float) -> float:
    """Proposition 5, rank reduction: ``4(3n + 2) / (n(n - 1) min{δ_k, δ_1})``."""
    return 4 * (3 * rows + 2) / (rows * (rows - 1) * gap)


def reduction(*, rows: int, gap: float) -> float:
    """Proposition 5, dimension reduction: twice that of rank reduction."""
    return 2 * projection(rows=rows, gap=gap)


def gap_change(*, rows: int) -> float:
    """Equation (58): ``12.2/n`` for n >= 101."""
    return 12.2 / rows


def lemma_l(*, perturbation: float, gap: float) -> float:
    """Lemma L: ``2‖B‖ / (λ_k - λ_{k+1})``."""
    return 2 * perturbation / gap


def clipped_projection(*, rows: int, gap: float, clip: float) -> float:
    """Appendix F.2, rows clipped to norm C: ``12C/(n δ_min)``."""
    return 12 * clip / (rows * gap)


def leading(X: Rows, k: int) -> Rows:
    """Leading k eigenvectors of the covariance (over n - 1), as columns."""
    return np.asarray(np.linalg.eigh(np.cov(X.T))[1][:, ::-1][:, :k])


def eigengap(X: Rows, k: int) -> float:
    """``λ_k - λ_{k+1}`` of the covariance."""
    values = np.linalg.eigvalsh(np.cov(X.T))[::-1]
    return float(values[k - 1] - values[k])


def turned_away(X: Rows, Y: Rows, k: int = 1) -> Rows:
    """How far the rows of X move because the projector becomes that of Y, each."""
    a, b = leading(X, k), leading(Y, k)
    return np.asarray(np.linalg.norm(X @ (a @ a.T - b @ b.T), axis=1))


def _reflected() -> Comparison:
    n, mean = 1000, 0.98
    v = (-mean + math.sqrt(mean**2 + 8)) / 4
    height, width = math.sqrt(1 - v * v), math.sqrt(1 - mean**2)
    tail = [[-1.0, 0.0], [-v, -height], *[[mean, width]] * (n // 2 - 2), *[[mean, -width]] * (n // 2 - 1)]
    left, right = (np.array([[-v, z], *tail]) for z in (height, -height))
    gap = min(eigengap(left, 1), eigengap(right, 1))
    domain = Domain(n_rows=n, n_features=2, row_norm=1.0)
    return Comparison(
        "move of a row",
        projection(rows=n, gap=gap),
        float(turned_away(left, right)[1:].max()),
        f"{n} rows of norm 1 in the plane, k = 1, most of them near ({mean:.3g}, ±{width:.3g}); the replaced row, "
        f"opposite to them, is reflected; gap {gap:.3g}.",
        projector_shift(domain, ONE, gap * (n - 1) / n, center=True),  # ours is of the covariance over n
        {"left": left, "right": right, "k": 1},
    )


def _block() -> Comparison:
    n, k = 400, 3
    left = np.zeros((n, 4))
    left[:200, 0], left[200:300, 1], left[300:, 2] = (np.tile([a, -a], m) for a, m in ((1, 100), (0.9, 50), (0.9, 50)))
    right = left.copy()
    left[0], right[0] = [0, 0.9, 0, 0], [0, 0, 0.9, 0]
    gap = min(eigengap(X, j) for X in (left, right) for j in (1, k))
    one, other = left[1:] @ leading(left, k), left[1:] @ leading(right, k)
    moves = (np.linalg.norm(one - other * signs, axis=1).max() for signs in itertools.product([1, -1], repeat=k))
    return Comparison(
        "move of a row",
        reduction(rows=n, gap=gap),
        float(min(moves)),
        f"{n} rows along three of four axes, k = 3, two variances almost equal; one row goes from the one axis to "
        f"the other and exchanges them. Both gaps are at least {gap:.3g}; the best choice of signs.",
        data={"left": left, "right": right, "k": k},
    )


def far_from_the_mean(n: int, replaced: int, spread: float = 0.02) -> tuple[Rows, Rows]:
    """Rows near (1, 0), spread along the diagonal; some, far from them, are reflected: the gap changes most."""
    mean = math.sqrt(1 - spread**2 / 2) - spread / math.sqrt(2)
    v = (-mean + math.sqrt(mean**2 + 8)) / 4
    height = math.sqrt(1 - v * v)
    step = spread * math.sqrt(0.5)
    rest = np.array([[mean + s, s] for s in (step, -step)]).repeat((n - 2 * replaced) // 2, axis=0)
    away = np.repeat([[-v, -height]], replaced, axis=0)
    back = np.repeat([[-v, height]], replaced, axis=0)
    return np.vstack([back, away, rest]), np.vstack([away, away, rest])


def _gap() -> Comparison:
    n = 20_000
    left, right = far_from_the_mean(n, 1)
    domain = Domain(n_rows=n, n_features=2, row_norm=1.0)
    return Comparison(
        "change of the gap times n",
        n * gap_change(rows=n),
        n * abs(eigengap(left, 1) - eigengap(right, 1)),
        f"{n} rows in the plane, nearly all near (1, 0); the replaced row, opposite to them, is reflected.",
        n * 2 * moment_spread(domain, ONE, 1.0) * n / (n - 1),
        {"left": left, "right": right, "k": 1},
    )


def _grown() -> Comparison:
    matrix, added = np.diag([2.0, 1.0]), np.diag([0.0, 1.001])
    norm = float(np.linalg.norm(added, 2))
    found = np.linalg.eigh(matrix + added)[1][:, -1]
    return Comparison(
        "turn of the projector",
        lemma_l(perturbation=norm, gap=1.0),
        math.sqrt(1 - float(found[0]) ** 2),
        f"A = diag(2, 1) and B = diag(0, {norm:.4g}), so that the other axis leads. {_rotated()}",
        data={"matrix": matrix, "added": added},
    )


def _rotated() -> str:
    """A perturbation of both signs, in words."""
    turn, size = math.radians(89.0), 1e-6
    matrix = np.diag([2.0, 1.0])
    c, s = math.cos(2 * turn), math.sin(2 * turn)
    other = 1.5 * np.eye(2) + size * np.array([[c, s], [s, -c]])
    norm = float(np.linalg.norm(other - matrix, 2))
    sine = math.sqrt(1 - float(np.linalg.eigh(other)[1][0, -1]) ** 2)
    return (
        "With a B of both signs, such that A + B is almost 3/2 of the identity and its leading axis turned by 89°, "
        f"{sine:.4g} of {lemma_l(perturbation=norm, gap=1.0):.5g} is attained."
    )


def _clipped() -> Comparison:
    n, R, C = 2000, 10.0, 1.0
    left = np.zeros((n, 2))
    left[1:31, 0], left[31:59, 1] = np.tile([R, -R], 15), np.tile([R, -R], 14)
    right = left.copy()
    a = R * math.sqrt(0.5)
    left[0], right[0] = (a, a), (a, -a)
    gap = min(eigengap(left, 1), eigengap(right, 1))
    one, other = leading(left, 1), leading(right, 1)
    clipped = left * np.minimum(1, C / np.maximum(np.linalg.norm(left, axis=1, keepdims=True), 1e-300))
    moved = np.linalg.norm(clipped @ (one @ one.T - other @ other.T), axis=1)[1:].max()
    return Comparison(
        "move of a clipped row",
        clipped_projection(rows=n, gap=gap, clip=C),
        float(moved),
        f"{n} rows of norm 0 or {R:g} in the plane, k = 1, clipped to {C:g} after the projector was fitted; the "
        f"replaced row is reflected; gap {gap:.3g}.",
        data={"left": left, "right": right, "k": 1, "clip": C},
    )


_GAPS = "Rows have norm at most 1; δ_k is the smallest gap λ_k − λ_{k+1} of the covariance over the datasets of L."

CLAIMS = (
    Claim(
        "prop-5-rank",
        PAPER,
        "Proposition 5, rank reduction",
        "projection on leading components",
        f"{_GAPS} A row A_k A_kᵀ x moves by at most the bound below.",
        "Δ₂ = 4(3n + 2) / (n(n − 1) min{δ_k, δ_1})",
        projection,
        "loose",
        "True, at least 4.6 times too large, and δ_1 plays no role: uncentred 1/(nδ_k) is true and attained.",
        _reflected,
        "pca",
        ("pca.rank", "pca.centred-rank"),
    ),
    Claim(
        "prop-5-dim",
        PAPER,
        "Proposition 5, dimension reduction",
        "coordinates in leading components",
        f"{_GAPS} The coordinates A_kᵀ x of a row move by at most twice the bound for rank reduction.",
        "2 Δ₂ = 8(3n + 2) / (n(n − 1) min{δ_k, δ_1})",
        reduction,
        "false",
        "Eigenvectors may turn into each other within the leading block, or flip their signs, while both gaps stay "
        "large; no constant repairs it. The proof takes the trace of AᵀÃ for the sum of squares of its singular "
        "values. Read up to a rotation of the k coordinates, the same for all rows, the printed bound holds: they then "
        "move by at most √2 times the turn of the projector. That is enough for what no rotation changes, such as the "
        "distances between rows, and not for the coefficients of a model. Coordinates in public columns are stable.",
        _block,
        "pca",
        ("pca.projected", "pca.aligned"),
    ),
    Claim(
        "eq-58",
        PAPER,
        "Equations (41) and (58), Appendix E",
        "eigengap",
        "Rows have norm at most 1, n ≥ 101: one replaced row changes λ_k − λ_{k+1} by at most 12.2/n.",
        "|δ_k(S′) − δ_k(S)| ≤ 12.2 / n",
        gap_change,
        "loose",
        "True and more than twice too large: 3√3/n is the worst case (2/n uncentred). The test of Algorithm 1 needs "
        "that much more of a gap than necessary.",
        _gap,
        "pca",
        ("pca.centred-gap", "pca.gap"),
    ),
    Claim(
        "lemma-l",
        PAPER,
        "Lemma L (quoted)",
        "projectors of perturbed matrices",
        "A symmetric and positive definite with simple spectrum, B positive: the projectors on the leading k "
        "eigenvectors of A and of A + B differ by at most the bound below.",
        "‖A_k A_kᵀ − Ã_k Ã_kᵀ‖ ≤ 2‖B‖ / (λ_k − λ_{k+1})",
        lemma_l,
        "loose",
        "True; for a positive B half of it is enough, and attained. B is not positive where it is used, but the "
        "bound is true for all symmetric A and B, in operator and in Frobenius norm, and needs the gap of one of the "
        "two matrices only; for these it is attained.",
        _grown,
        "pca",
        ("pca.rank",),
    ),
    Claim(
        "appendix-f2",
        PAPER,
        "Appendix F.2",
        "clipping behind PCA",
        "The projector is fitted on rows of norm at most R, then rows are clipped to C: the L2 sensitivity falls from "
        "12R/(nδ) to 12C/(nδ).",
        "12 C / (n δ_min)",
        clipped_projection,
        "ambiguous",
        "The turn of the projector is that of the rows it was fitted on, so C R² belongs where C is (and R³ where R "
        "is), if δ is the gap of these rows. These data exceed the bound in that reading, for R > √12. In two others "
        "it holds: on the unit ball, which the rest of the paper assumes, and with δ the gap of the rows over R, "
        "which turns 12 C into 12 C R². That R tells of the data the paper says itself.",
        _clipped,
        "pca",
        ("pca.rank",),
    ),
)
