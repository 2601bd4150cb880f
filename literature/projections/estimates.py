"""Theorems 4.5 and C.1 to C.3, and (16): what inner products and angles of released rows are worth."""

from __future__ import annotations

import math
from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray

from literature.claims import Claim, Comparison
from literature.projections.paper import PAPER

__all__ = ["CLAIMS", "angle_variance", "oporp_images", "raw", "sign_images", "variance"]

Floats = NDArray[np.float64]


def raw(*, u: Floats, v: Floats, sigma: float) -> float:
    """Theorem C.1, (12): ``σ² (‖u‖² + ‖v‖²) + p σ⁴``."""
    return float(sigma**2 * (u @ u + v @ v) + len(u) * sigma**4)


def _spread(u: Floats, v: Floats) -> float:
    return float((u @ u) * (v @ v) + (u @ v) ** 2 - 2 * (u**2 @ v**2))


def projected(*, u: Floats, v: Floats, sigma: float, k: int) -> float:
    """Theorem C.2, (13): ``σ² (‖u‖² + ‖v‖²) + k σ⁴ + (‖u‖²‖v‖² + (uᵀv)² − 2 Σ u_i² v_i²) / k``."""
    return float(sigma**2 * (u @ u + v @ v) + k * sigma**4 + _spread(u, v) / k)


def binned(*, u: Floats, v: Floats, sigma: float, k: int, p: int) -> float:
    """Theorem C.3, (15): as (13), the last term times ``(p − k)/(p − 1)``."""
    return float(sigma**2 * (u @ u + v @ v) + k * sigma**4 + _spread(u, v) / k * (p - k) / (p - 1))


def gain(*, p: int, k: int) -> float:
    """(16): ``R ~ p/k``."""
    return p / k


def of_angles(*, theta: float, epsilon: float) -> float:
    """Theorem 4.5: ``V_RR = θ(π − θ) + 2π² e^ε′/(e^ε′ − 1)² + 4π² e^2ε′/(e^ε′ − 1)⁴``; ``epsilon`` is ε′."""
    e = math.exp(epsilon)
    return theta * (math.pi - theta) + 2 * math.pi**2 * e / (e - 1) ** 2 + 4 * math.pi**2 * e**2 / (e - 1) ** 4


def sign_images(rows: Floats, k: int) -> Floats:
    """Images of some records under every Rademacher matrix, over √k: shape (matrices, records, k)."""
    p = rows.shape[1]
    every = np.array(list(product([-1.0, 1.0], repeat=p * k))).reshape(-1, p, k)
    return np.asarray(rows @ every / math.sqrt(k))


def oporp_images(rows: Floats, k: int) -> Floats:
    """The same under every permutation and sign of OPORP: the next multiple of k has bins of equal length."""
    p = rows.shape[1]
    size = -(-p // k)
    signs = np.array(list(product([-1.0, 1.0], repeat=p)))
    found = []
    for places in set(permutations(np.repeat(np.arange(k), size).tolist(), p)):
        found.append((rows * signs[:, None]) @ np.eye(k)[list(places)])
        repeats = math.prod(math.perm(size, places.count(j)) for j in range(k))
        found += found[-1:] * (repeats - 1)
    return np.concatenate(found)


def variance(images: Floats, sigma: float) -> float:
    """Of ``Σ (x_j + a_j)(y_j + b_j)`` over equally likely images (x, y) and normal a, b: exact, by three nodes each."""
    k = images.shape[2]
    nodes, weights = np.array([-math.sqrt(3), 0.0, math.sqrt(3)]) * sigma, np.array([1 / 6, 2 / 3, 1 / 6])
    mean = second = 0.0
    for at in product(range(3), repeat=2 * k):
        a, b = nodes[list(at[:k])], nodes[list(at[k:])]
        weight = float(weights[list(at)].prod()) / len(images)
        value = ((images[:, 0] + a) * (images[:, 1] + b)).sum(axis=1)
        mean, second = mean + weight * float(value.sum()), second + weight * float((value**2).sum())
    return second - mean**2


def angle_variance(theta: float, epsilon: float) -> float:
    """K times the variance of the estimate of θ: the four outcomes of two flips, listed."""
    keep = math.exp(epsilon) / (math.exp(epsilon) + 1)
    agree = sum(
        weight * (same if first == second else 1 - same)
        for (first, a), (second, b) in product([(0, keep), (1, 1 - keep)], repeat=2)
        for weight, same in [(a * b, 1 - theta / math.pi)]
    )
    return math.pi**2 * agree * (1 - agree) / (2 * keep - 1) ** 4


U, V, SIGMA = np.array([0.9, -0.4, 0.3]), np.array([0.2, 0.8, -0.5]), 0.3


def _compared(printed: float, images: Floats, setting: str, sigma: float = SIGMA) -> Comparison:
    words = f"u = {tuple(U.tolist())}, v = {tuple(V.tolist())}, σ = {sigma}; {setting}"
    return Comparison("variance of ĝ", printed, variance(images, sigma), words, data={"u": U, "v": V, "sigma": sigma})


def _raw() -> Comparison:
    rows = np.vstack([U, V])
    return _compared(raw(u=U, v=V, sigma=SIGMA), rows[None], "moments of the noise are exact.")


def _projected() -> Comparison:
    images = sign_images(np.vstack([U, V]), 2)
    return _compared(
        projected(u=U, v=V, sigma=SIGMA, k=2), images, f"k = 2, all {len(images)} Rademacher matrices are listed."
    )


def _binned() -> Comparison:
    images, sigma = oporp_images(np.vstack([U, V]), 2), 0.1
    return _compared(
        binned(u=U, v=V, sigma=sigma, k=2, p=3),
        images,
        f"k = 2, so one bin has two coordinates and one has one; all {len(images)} permutations and signs are listed.",
        sigma,
    )


def _gain() -> Comparison:
    p, k, sigma = 1000, 100, 10.0
    u = np.full(p, 1 / math.sqrt(p))
    return Comparison(
        "R",
        gain(p=p, k=k),
        raw(u=u, v=u, sigma=sigma) / projected(u=u, v=u, sigma=sigma, k=k),
        f"u = v with p = {p} equal entries and norm 1, k = {k}, σ = {sigma:g}; (12) over (13).",
    )


def _angles() -> Comparison:
    theta, epsilon = 1.0, 0.5
    return Comparison(
        "k times the variance of the angle",
        of_angles(theta=theta, epsilon=epsilon),
        angle_variance(theta, epsilon),
        f"θ = {theta:g}, ε′ = {epsilon}; the four outcomes of two flips are listed.",
    )


_PAGE = "random-projection"

CLAIMS = (
    Claim(
        "sign-thm-4.5",
        PAPER,
        "Theorem 4.5",
        "angles from signs with randomised response",
        "With Gaussian W, θ̂ from the share of equal signs is unbiased with variance V_RR/k.",
        "V_RR = θ(π − θ) + 2π² e^ε′/(e^ε′ − 1)² + 4π² e^2ε′/(e^ε′ − 1)⁴",
        of_angles,
        "holds",
        "For every k, not in the limit only, if θ̂ is not clipped. The line above it in Appendix E.3 has lost π² twice. "
        "For the smooth flips it is biased, as they depend on x.",
        _angles,
        _PAGE,
    ),
    Claim(
        "sign-thm-c1",
        PAPER,
        "Theorem C.1",
        "inner products of raw data with noise",
        "ĝ = Σ (u_i + a_i)(v_i + b_i) is unbiased with the variance below.",
        "σ² (‖u‖² + ‖v‖²) + p σ⁴",
        raw,
        "holds",
        "For all noise of this variance, as Laplace noise.",
        _raw,
        _PAGE,
    ),
    Claim(
        "sign-thm-c2",
        PAPER,
        "Theorem C.2",
        "inner products under DP-RP-G-OPT-B",
        "ĝ = Σ (x_j + a_j)(y_j + b_j) is unbiased with the variance below.",
        "σ² (‖u‖² + ‖v‖²) + k σ⁴ + (‖u‖²‖v‖² + (uᵀv)² − 2 Σ u_i² v_i²) / k",
        projected,
        "holds",
        "With entries of fourth moment κ, −2 becomes κ − 3.",
        _projected,
        _PAGE,
    ),
    Claim(
        "sign-thm-c3",
        PAPER,
        "Theorem C.3",
        "inner products under DP-OPORP",
        "The same with OPORP; the last term is smaller by the factor below.",
        "(p − k) / (p − 1)",
        binned,
        "ambiguous",
        "Holds if k divides p and bins have equal length, also if p is the length with padding. Exceeded where k does "
        "not divide p (Algorithm 2 is not in the text that was checked), and by bins of varying length, of factor "
        "1. Exact, for bins of b_j coordinates in random order: k Σ_j b_j(b_j − 1)/(p(p − 1)).",
        _binned,
        _PAGE,
    ),
    Claim(
        "sign-eq-16",
        PAPER,
        "Equation (16)",
        "projection against noise on raw data",
        "Records of norm 1: the variance of ĝ is smaller behind a projection by a factor that tends to p/k.",
        "R = (2σ² + pσ⁴) / (2σ² + kσ⁴ + 1/k) ~ p/k",
        gain,
        "holds",
        "At the same σ, that is for the change of one coordinate. If neighbours differ in a record of norm R, Δ₂ is 2R "
        "on raw data and up to 2R√(p/k) behind OPORP, more behind W: the gain is gone, and with OPORP R ~ k/p.",
        _gain,
        _PAGE,
    ),
)
