"""Membership attacks on low-rank training of a linear head, without noise and with it.

    python reproductions/membership.py

**The papers** (three on random projections and low-rank adaptation, see errata): low-rank adaptation is private by its
design, or with noise before a random projection. They show attacks on membership that get worse with smaller rank.

**Here**: 100 of scikit-learn's digits as 128 random rectified features of length 1, a softmax head, 80 steps on all
rows with momentum 0.9, gradients of rows clipped at 1. A canary is a random row with the label that models without it
find least likely; half of the models are trained with it, half with the row in whose place it stands. What a model
shows is its loss on the canary.

* *LoRA-FA*: W = A B with a public, fixed A of so many columns, B trained; with noise on the clipped gradients of B.
  A is drawn anew for every model, or known and the same for all of them.
* *M2*: the clipped full gradient with noise, projected by a fresh A in every step.
* *full*: no projection.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from _page import Section, run
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from ppdp import PrivacyLoss
from ppdp.audit import MembershipReport, attack_membership, symmetry_attack
from ppdp.privacy import NoisyProjectionLoss

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
N, WIDTH, CLASSES, STEPS, MOMENTUM, CLIP, DELTA = 100, 128, 10, 80, 0.9, 1.0, 1e-5
RATE = 16.0
RANKS, MODELS, CANARIES = (4, 16, 64, 128), 60, 5
SEED = 16


@dataclass
class Head:
    """Trains a softmax head; ``rank`` 0 is full, ``sigma`` is noise in units of the clip; models share a known A."""

    method: str
    rank: int
    sigma: float
    rng: np.random.Generator = field(repr=False)
    known: bool = False

    def weights(self, F: Array, y: Labels) -> Array:
        """Of shape (features, classes), after all steps."""
        rng = np.random.default_rng(self.rank) if self.known else self.rng
        A = rng.standard_normal((WIDTH, self.rank)) / np.sqrt(max(self.rank, 1))
        low = self.method == "LoRA-FA"
        rows = F @ A if low else F
        B = np.zeros((rows.shape[1], CLASSES))
        speed, hot = np.zeros_like(B), np.eye(CLASSES)[y]
        for _ in range(STEPS):
            residuals = softmax(rows @ B, axis=1) - hot
            sizes = np.linalg.norm(residuals, axis=1) * np.linalg.norm(rows, axis=1)
            shares = np.minimum(1.0, CLIP / np.maximum(sizes, 1e-12))
            gradient = rows.T @ (residuals * shares[:, None])
            gradient += self.sigma * CLIP * self.rng.standard_normal(B.shape)
            if self.method == "M2":
                A = self.rng.standard_normal((WIDTH, self.rank))
                gradient = A @ (A.T @ gradient) / (np.sqrt(self.rank) + np.sqrt(WIDTH)) ** 2
            speed = MOMENTUM * speed + gradient
            B -= RATE / N * speed
        return A @ B if low else B

    def __call__(self, F: Array, y: Labels) -> Any:
        """A scorer: minus the loss of every row."""
        W = self.weights(F, y)
        return lambda X, labels: log_softmax(X @ W, axis=1)[np.arange(len(X)), labels]

    @property
    def claimed(self) -> PrivacyLoss | None:
        """The loss of all steps for one replaced row, which changes a clipped sum by 2 at most."""
        if not self.sigma:
            return None
        if self.method == "M2":
            return PrivacyLoss(parts=(NoisyProjectionLoss(WIDTH, self.rank, 2 / self.sigma, STEPS),))
        return PrivacyLoss(mu=2 * np.sqrt(STEPS) / self.sigma)


@dataclass(frozen=True)
class Seen:
    """What was seen of one way to train: an attack for every canary, and the mean accuracy on other digits."""

    head: Head
    reports: list[MembershipReport]
    accuracy: float

    @property
    def auc(self) -> float:
        """Mean over the canaries."""
        return float(np.mean([report.auc for report in self.reports]))

    @property
    def low(self) -> float:
        """The largest lower bound on epsilon."""
        return max(report.epsilon_low for report in self.reports)

    def __str__(self) -> str:
        balanced = np.mean([report.balanced for report in self.reports])
        told = f"{self.auc:.3f} / {balanced:.3f} / {self.accuracy:.2f}"
        return f"{told} [{self.low:.2f} ≤ {self.reports[0].epsilon:.2f}]" if self.head.sigma else told


def digits(rng: np.random.Generator) -> tuple[Array, Labels]:
    """Random rectified features of length 1, in random order."""
    data = load_digits()
    features = np.maximum(data.data / 16 @ rng.standard_normal((64, WIDTH)), 0.0)
    order = rng.permutation(len(features))
    return (features / np.linalg.norm(features, axis=1, keepdims=True))[order], data.target[order].astype(np.int64)


def seen(F: Array, y: Labels, head: Head, models: int, canaries: int) -> Seen:
    """Attack one way to train, and test it."""
    given: dict[str, Any] = {"models": models, "claimed": head.claimed, "delta": DELTA, "private": False}
    reports = [attack_membership(head, F[:N], y[:N], seed=seed, **given) for seed in range(canaries)]
    trained = [head.weights(F[:N], y[:N]) for _ in range(canaries)]
    return Seen(head, reports, float(np.mean([((F[N:] @ W).argmax(axis=1) == y[N:]).mean() for W in trained])))


def first_steps(F: Array, y: Labels, rank: int, rng: np.random.Generator, runs: int = 50) -> float:
    """AUC of the symmetry attack on the first step of LoRA-FA without noise: G A A', one of 100 records replaced."""
    scores: dict[bool, list[float]] = {True: [], False: []}
    for run_ in range(runs):
        inside = np.arange(N)
        outside = np.append(inside[1:], N + run_)
        here, there = (F[rows].T @ (1 / CLASSES - np.eye(CLASSES)[y[rows]]) for rows in (inside, outside))
        for gradient in (here, there):
            A = rng.standard_normal((WIDTH, rank))
            scores[gradient is here].append(-symmetry_attack(here, A @ (A.T @ gradient)))
    return float(roc_auc_score(np.repeat([1, 0], runs), scores[True] + scores[False]))


def ways(quick: bool, rng: np.random.Generator) -> Iterator[tuple[str, list[Head | None]]]:
    """Lines of the table, a head for every rank."""
    ranks: tuple[int, ...] = (64,) if quick else RANKS
    yield "LoRA-FA, no noise, A known", [Head("LoRA-FA", rank, 0.0, rng, known=True) for rank in ranks]
    yield "LoRA-FA, no noise, A not looked at", [Head("LoRA-FA", rank, 0.0, rng) for rank in ranks]
    for sigma in (4.0,) if quick else (4.0, 16.0):
        yield f"M2, σ = {sigma:g}", [Head("M2", rank, sigma, rng) if rank < WIDTH else None for rank in ranks]
    yield "LoRA-FA, σ = 4", [Head("LoRA-FA", rank, 4.0, rng) for rank in ranks]


def verdicts(table: dict[str, list[Seen | None]], first: list[float]) -> str:
    """What the numbers say.

    Raises
    ------
    AssertionError
        If they say something else.
    """
    heads = [one for line in table.values() for one in line if one]
    blind = [one.auc for one in heads if not one.head.sigma and one.head.rank >= 16 and not one.head.known]
    known = [one.auc for one in heads if one.head.known]
    told = {(one.head.rank, one.head.sigma): one.auc for one in heads if one.head.method == "M2"}
    assert min(*known, *first) >= 0.97
    assert min(blind) >= 0.9
    assert all(one.epsilon_low <= one.epsilon and not one.violated for seen in heads for one in seen.reports)
    if len(told) > 1:
        assert told[4, 4.0] < told[64, 4.0]
        less, more = (np.mean([auc for (_, sigma), auc in told.items() if sigma == wanted]) for wanted in (4.0, 16.0))
        assert more < less
    return (
        "**Without noise nothing is hidden.** A stands in every checkpoint, and what is trained is a function of the"
        f" rows and A: whoever trains with the same A has an AUC of at least {min(known):.3f} at every rank. Models"
        f" with an A of their own, which is not looked at, still give {min(blind):.3f} or more from rank 16; below that"
        " this weaker attack gets worse because the head learns little. `symmetry_attack` on the first step, which"
        f" needs no A, has an AUC of {min(first):.3f} at every rank, 1 included. Under M2 members are harder to tell"
        " with a smaller rank and with more noise, as its certificate says, and no bound on ε exceeds what is"
        " certified."
    )


def build(section: Section) -> None:
    """Table, picture and words."""
    rng = np.random.default_rng(SEED)
    F, y = digits(rng)
    size = (40, 1) if section.quick else (MODELS, CANARIES)
    table = {name: [head and seen(F, y, head, *size) for head in heads] for name, heads in ways(section.quick, rng)}
    full = [seen(F, y, Head("full", 0, sigma, rng), *size) for sigma in (0.0, 4.0) if not section.quick or sigma]
    first = [first_steps(F, y, rank, rng) for rank in (1, *RANKS)]
    error = 0.58 / np.sqrt(size[0] * size[1])
    section.text(
        f"{N} digits; every cell is a mean over {size[1]} canaries, with {size[0]} models each. AUC / best balanced"
        " accuracy / accuracy on other digits and, where noise is added, [the most that an attack proves of ε ≤ what"
        " is certified of one replaced row at δ = 10⁻⁵]. Where nothing is told the standard error of an AUC is about"
        f" {error:.2f}."
    )
    ranks = [f"r = {one.head.rank}" for one in table["LoRA-FA, σ = 4"] if one]
    section.table(["", *ranks], [[name, *(one or "-" for one in line)] for name, line in table.items()])
    section.table(["", *(f"σ = {one.head.sigma:g}" for one in full)], [["full gradient", *full]])
    section.text(verdicts(table, first))
    section.picture(picture(table), "AUC against rank, and an attack below what the certificate allows")


def picture(table: dict[str, list[Seen | None]]) -> Any:
    """AUC against the rank, and the curve of the attack that M2 with the least noise hides least from."""
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")
    for name, line in table.items():
        known = [one for one in line if one]
        left.plot([one.head.rank for one in known], [one.auc for one in known], "o-", label=name)
    left.set_xscale("log", base=2)
    left.set_xlabel("rank")
    left.set_ylabel("AUC of the attack")
    left.axhline(0.5, color="#adb5bb", linewidth=0.8)
    left.legend(frameon=False, fontsize="small")
    last = [one for one in table["M2, σ = 4"] if one][-1]
    last.reports[0].plot(right)
    right.set_title(f"M2, σ = 4, rank {last.head.rank}", fontsize="medium")
    return figure


def main(arguments: Sequence[str] | None = None) -> str:
    """Run the command."""
    return run("membership", __doc__, build, arguments)


if __name__ == "__main__":
    main()
