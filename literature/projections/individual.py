"""Appendix A: individual differential privacy, where noise goes only to the signs that a neighbour could change."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from sklearn.datasets import load_digits

from literature.claims import Claim, Comparison
from literature.projections.laws import loss, needed_delta
from literature.projections.paper import PAPER
from ppdp.privacy.gaussian import gaussian_mu

__all__ = ["CLAIMS", "excluded", "gaussian_signs", "images", "mask", "response_signs"]

Floats = NDArray[np.float64]
DELTA = 1e-6


def sensitivity(*, beta: float) -> float:
    """Appendix A.1: the change of Wᵀu by a neighbour of any one u is the largest there is."""
    return beta


def changes(*, noisy: int) -> float:
    """Appendix A.2, step 1: at most Ñ₊ signs of a neighbour differ."""
    return float(noisy)


def target(*, delta: float = 0.0) -> float:
    """Theorems A.1 and A.2: the δ of iDP."""
    return delta


def mask(x: Floats, beta: float) -> NDArray[np.bool_]:
    """Algorithm 7 for x = Wᵀu, not over √k: which signs are made noisy."""
    return np.asarray(np.abs(x) <= beta)


def gaussian_signs(
    x: Floats, beta: float, epsilon: float, delta: float, noisy: NDArray[np.bool_] | None = None
) -> Floats:
    """Algorithm 6 for x = Wᵀu and Rademacher W: probability of + of every sign; ``noisy`` as x has it if not given."""
    noisy = mask(x, beta) if noisy is None else noisy
    sigma = beta * math.sqrt(max(1, noisy.sum())) / gaussian_mu(epsilon, delta)
    return np.where(noisy, ndtr(x / sigma), x > 0)


def response_signs(x: Floats, beta: float, epsilon: float, noisy: NDArray[np.bool_] | None = None) -> Floats:
    """Algorithm 8: probability of + of every sign; ``noisy`` as x has it if not given."""
    noisy = mask(x, beta) if noisy is None else noisy
    kept = 1 / (1 + math.exp(-epsilon / max(1, noisy.sum())))
    return np.where(noisy, np.where(x > 0, kept, 1 - kept), x > 0)


def excluded(x: Floats, other: Floats, beta: float) -> NDArray[np.bool_]:
    """Whether the neighbour has outputs that the record cannot have; pairs along the first axis.

    So it is if a sign is certain for the record and noisy, or certain and another one, for the neighbour.
    """
    certain = ~mask(x, beta)
    return np.asarray((certain & (mask(other, beta) | ((x > 0) != (other > 0)))).any(axis=-1))


def _local() -> Comparison:
    W = 1.0 - 2.0 * np.random.default_rng(0).integers(0, 2, (5, 4))
    left, right = np.zeros((1, 5)), np.zeros((1, 5))
    left[0, 1] = 1.0
    return Comparison(
        "change of Wᵀu/√k, the least over u",
        sensitivity(beta=1.0),
        float(np.linalg.norm((left - right) @ W) / 2),
        "Rademacher W, k = 4, β = 1: u = 0, whose neighbour has 1 in one coordinate.",
        data={"left": left, "right": right, "beta": 1.0},
    )


LEFT, RIGHT, BETA = np.array([[0.6]]), np.array([[0.4]]), 0.5
_ONE = "p = k = 1, W = 1, β = 1/2, ε = 1: u = 0.6, whose sign no neighbour changes, and u′ = 0.4, whose sign one does. "


def _mask() -> Comparison:
    left, right = np.array([[0.4]]), np.array([[-0.1]])
    differ = int(((left > 0) != (right > 0)).sum())
    return Comparison(
        "signs that differ",
        changes(noisy=int(mask(left[0], BETA).sum())),
        float(differ),
        "p = k = 1, W = 1, β = 1/2: u = 0.4, u′ = -0.1.",
        data={"left": left, "right": right, "beta": BETA},
    )


def _gaussian() -> Comparison:
    one, other = (gaussian_signs(u[0], BETA, 1.0, DELTA) for u in (LEFT, RIGHT))
    return Comparison(
        "δ that is needed",
        target(delta=DELTA),
        needed_delta(one, other, 1.0),
        f"{_ONE}− has probability 0 under u and {1 - float(other[0]):.3f} under u′.",
        data={"left": LEFT, "right": RIGHT, "beta": BETA},
    )


def _response() -> Comparison:
    one, other = (response_signs(u[0], BETA, 1.0) for u in (LEFT, RIGHT))
    return Comparison(
        "δ that is needed",
        target(),
        needed_delta(one, other, 1.0),
        f"{_ONE}− has probability 0 under u and 1/(1 + e) under u′: the loss is infinite.",
        data={"left": LEFT, "right": RIGHT, "beta": BETA},
    )


def printed_epsilon(*, epsilon: float) -> float:
    """Appendix A.3: ε, with ``e^ε′ = ε/Ñ₊``."""
    return epsilon


def _printed() -> Comparison:
    noisy, epsilon = 4, 1.0
    kept = (epsilon / noisy) / (epsilon / noisy + 1)
    left, right = np.full((1, 1), 0.2), np.full((1, 1), -0.2)
    return Comparison(
        "loss over all outputs",
        printed_epsilon(epsilon=epsilon),
        loss(np.full(noisy, kept), np.full(noisy, 1 - kept)),
        f"p = 1, k = {noisy}, all entries of W are 1, β = 1/2, ε = 1: u = 0.2, u′ = -0.2, so that all signs are "
        "noisy, and differ.",
        data={"left": left, "right": right, "beta": BETA, "noisy": noisy},
    )


def images(pairs: int) -> tuple[Floats, Floats, Floats]:
    """W, digits of scikit-learn, enlarged, and each with one pixel drawn anew."""
    p, k = 784, 256
    rng = np.random.default_rng(0)
    images = load_digits().images / 16
    rows = images[rng.integers(0, len(images), pairs)].repeat(3, axis=1).repeat(3, axis=2)
    left = np.pad(rows, ((0, 0), (2, 2), (2, 2))).reshape(pairs, p)
    right = left.copy()
    right[np.arange(pairs), rng.integers(0, p, pairs)] = rng.uniform(0, 1, pairs)
    return 1.0 - 2.0 * rng.integers(0, 2, (p, k)), left, right


def _digits() -> Comparison:
    beta, pairs = 1.0, 300
    W, left, right = images(pairs)
    found = excluded(left @ W, right @ W, beta) | excluded(right @ W, left @ W, beta)
    first = int(found.argmax())
    return Comparison(
        "share of neighbours with an infinite loss",
        0.0,
        float(found.mean()),
        f"{pairs} digits of scikit-learn, enlarged to 784 pixels, and each with one pixel drawn anew; k = 256, β = "
        "1, whatever ε is.",
        data={"left": left[first : first + 1], "right": right[first : first + 1], "beta": beta},
    )


def none_at_all(*, epsilon: float = 0.1) -> float:
    """Appendix A.4: with (ε, 0)-iDP no neighbour has an infinite loss."""
    return 0.0 * epsilon


_PAGE = "signs"
_FLAW = (
    "Exceeded where Definition A.1 is taken at its word: the algorithm on u′ takes the set A of u′, and the output "
    "shows which signs are certain. Under the usual reading of individual privacy the mechanism is calibrated to the "
    "dataset that is held, and the same one is asked of its neighbours. So do the proofs, with A of u for both, and "
    "then it holds; but the set itself tells of u, and whoever holds u′ would not have used it. "
)

CLAIMS = (
    Claim(
        "sign-a-sensitivity",
        PAPER,
        "Appendix A.1",
        "local sensitivity of DP-RP and DP-OPORP",
        "At every u the local sensitivity is the global one, so iDP gains nothing there.",
        "Δ₂(u) = Δ₂",
        sensitivity,
        "holds",
        "For β ≤ 1, as in all experiments; a record near 0 has no neighbour farther than 1 in a coordinate.",
        _local,
        _PAGE,
    ),
    Claim(
        "sign-alg-7",
        PAPER,
        "Algorithm 7, Appendix A.2",
        "signs that a neighbour can change",
        "Signs of x_j with |x_j| > β/√k are the same for all neighbours of u, so at most Ñ₊ differ.",
        "Ñ₊ = |{j: |x_j| ≤ β/√k}|",
        changes,
        "holds",
        "True of u. But its neighbours have other sets, see Theorem A.2.",
        _mask,
        _PAGE,
    ),
    Claim(
        "sign-thm-a1",
        PAPER,
        "Theorem A.1",
        "iDP-SignRP-G",
        "Gaussian noise for the signs in A(u) only, of σ by (4) with Δ₂ = β√(Ñ₊/k): (ε, δ)-iDP for u.",
        "(ε, δ)",
        target,
        "ambiguous",
        _FLAW + "For all u no noise is enough, as long as a certain sign is certain.",
        _gaussian,
        _PAGE,
    ),
    Claim(
        "sign-thm-a2",
        PAPER,
        "Theorem A.2",
        "iDP-SignRP-RR",
        "Signs in A(u) are flipped with probability 1/(e^{ε/Ñ₊} + 1), the others never: ε-iDP for u.",
        "(ε, 0)",
        target,
        "ambiguous",
        _FLAW + "True for all u: flips that get rarer step by step away from 0 (Theorem 4.6).",
        _response,
        _PAGE,
    ),
    Claim(
        "sign-a3-epsilon",
        PAPER,
        "Appendix A.3, below Algorithm 8",
        "iDP-SignRP-RR",
        "Randomised response with e^{ε′} = ε/Ñ₊ for Ñ₊ signs costs ε, A being fixed.",
        "e^{ε′} = ε/Ñ₊",
        printed_epsilon,
        "misprint",
        "ε′ = ε/Ñ₊, as in Algorithm 8. Theorem A.2 says Algorithm 3 for Algorithm 8; A is a set of places, not of I_j.",
        _printed,
        _PAGE,
    ),
    Claim(
        "sign-a4",
        PAPER,
        "Appendix A.4",
        "iDP-SignRP on images",
        "“SignRP itself is already very strong in protecting the individual differential privacy”; so at ε < 0.1.",
        "(ε, 0)",
        none_at_all,
        "ambiguous",
        _FLAW + "What is useful here is that most signs are released as they are.",
        _digits,
        _PAGE,
    ),
)
