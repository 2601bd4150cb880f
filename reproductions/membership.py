"""Membership attacks on low-rank training of a linear head, without noise and with it.

    python reproductions/membership.py

**The papers** (three on random projections and low-rank adaptation, see errata): low-rank adaptation is private by its
design, or with noise before a random projection. They show attacks on membership that get worse with smaller rank.

**Here**: 100 of scikit-learn's digits as 128 random rectified features of length 1, a softmax head, 80 steps on all
rows with momentum 0.9, gradients of rows clipped at 1. A canary is a random row with the label that models without it
find least likely; half of the models are trained with it, half with the row in whose place it stands. A is drawn anew
for every model. There are two attackers:

* *loss*: looks at the loss of the last model on the canary, as in the papers. A smaller rank fits the canary worse.
* *steps*: knows the other rows and the two candidates, and is given what the guarantee is about: A, every projection
  and every gradient that was used. It takes the likelihood ratio of the two. Without noise the last adapter is
  enough: whoever has A and B trains again with each of the candidates.

* *LoRA-FA*: W = A B with a public, fixed A of so many columns, B trained; with noise on the clipped gradients of B.
* *M2*: the clipped full gradient with noise, projected to a fresh uniform direction of so many columns in every step.
* *full*: no projection.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from _page import Section, run
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from ppdp import PrivacyLoss
from ppdp.audit import MembershipReport, attack_membership, symmetry_attack
from ppdp.privacy import NoisyProjectionLoss

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
N, WIDTH, CLASSES, STEPS, MOMENTUM, CLIP, DELTA = 100, 128, 10, 80, 0.9, 1.0, 1e-5
RATE = 16.0
RANKS, MODELS, CANARIES = (4, 16, 64, 128), 100, 5
SEED = 16


class Step(NamedTuple):
    """What was trained before it, the projection, and the projected sum of clipped gradients with noise."""

    B: Array
    Q: Array
    released: Array


def clipped(rows: Array, B: Array, hot: Array) -> Array:
    """The sum of the clipped gradients of rows, with one-hot labels."""
    scores = rows @ B
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    residuals = odds / odds.sum(axis=1, keepdims=True) - hot
    squares = np.einsum("ij,ij->i", residuals, residuals) * np.einsum("ij,ij->i", rows, rows)
    return rows.T @ (residuals * (CLIP / np.sqrt(np.maximum(squares, CLIP**2)))[:, None])


@dataclass
class Head:
    """Trains a softmax head; ``rank`` 0 is full, ``sigma`` is noise in units of the clip.

    A model is scored by its loss or, given the row and label that stand there ``instead`` of a canary, by its steps.
    """

    method: str
    rank: int
    sigma: float
    rng: np.random.Generator = field(repr=False)
    instead: tuple[Array, int] | None = None

    def trained(self, F: Array, y: Labels, A: Array | None = None) -> tuple[Array, Array, list[Step]]:
        """A, B, and all steps; the model is A B."""
        low = self.method == "LoRA-FA"
        if A is None:
            A = self.rng.standard_normal((WIDTH, self.rank)) / np.sqrt(self.rank) if low else np.eye(WIDTH)
        rows, hot, steps = F @ A, np.eye(CLASSES)[y], []
        B = np.zeros((A.shape[1], CLASSES))
        speed, Q, short = np.zeros_like(B), np.eye(len(B)), 1.0
        for _ in range(STEPS):
            released = clipped(rows, B, hot) + self.sigma * CLIP * self.rng.standard_normal(B.shape)
            if self.method == "M2":
                Q, short = self.direction(), (1 + np.sqrt(self.rank / WIDTH)) ** -2
                released = Q @ (Q.T @ released)
            steps.append(Step(B, Q, released))
            speed = MOMENTUM * speed + short * released
            B = B - RATE / N * speed
        return A, B, steps

    def direction(self) -> Array:
        """Uniform, of ``rank`` orthonormal columns."""
        return np.linalg.qr(self.rng.standard_normal((WIDTH, self.rank)))[0]

    def weights(self, F: Array, y: Labels) -> Array:
        """Of shape (features, classes), after all steps."""
        A, B, _ = self.trained(F, y)
        return A @ B

    def __call__(self, F: Array, y: Labels) -> Any:
        """A scorer of rows, of which the first one stands where a canary does."""
        A, B, steps = self.trained(F, y)
        if self.instead is None:
            return lambda X, labels: log_softmax(X @ A @ B, axis=1)[np.arange(len(X)), labels]

        def far(x: Array, label: int) -> float:
            """Square of the distance from what would be seen without noise, if this was the row."""
            rows, labels = np.vstack([x, F[1:]]), np.append(label, y[1:])
            if not self.sigma:
                return float(np.sum((B - self.trained(rows, labels, A)[1]) ** 2))
            rows, hot = rows @ A, np.eye(CLASSES)[labels]
            return sum(np.sum((one.released - one.Q @ (one.Q.T @ clipped(rows, one.B, hot))) ** 2) for one in steps)

        other = far(*self.instead)
        return lambda X, labels: np.array([other - far(x, label) for x, label in zip(X, labels)])

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
    """What was seen of one way to train: attacks of both kinds for every canary, and accuracy on other digits."""

    head: Head
    losses: list[MembershipReport]
    steps: list[MembershipReport]
    accuracy: float

    @property
    def reports(self) -> list[MembershipReport]:
        """All."""
        return [*self.losses, *self.steps]

    @property
    def auc(self) -> tuple[float, float]:
        """By loss and by steps, means over the canaries."""
        loss, steps = (float(np.mean([one.auc for one in kind])) for kind in (self.losses, self.steps))
        return loss, steps

    @property
    def low(self) -> float:
        """The largest lower bound on epsilon."""
        return max(report.epsilon_low for report in self.reports)

    def __str__(self) -> str:
        told = f"{self.auc[0]:.3f} / {self.auc[1]:.3f} / {self.accuracy:.2f}"
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
    told = [
        [attack_membership(one, F[:N], y[:N], seed=seed, **given) for seed in range(canaries)]
        for one in (head, replace(head, instead=(F[0], int(y[0]))))
    ]
    trained = [head.weights(F[:N], y[:N]) for _ in range(canaries)]
    accuracy = np.mean([((F[N:] @ W).argmax(axis=1) == y[N:]).mean() for W in trained])
    return Seen(head, *told, float(accuracy))


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
    ranks: tuple[int, ...] = (16,) if quick else RANKS
    yield "LoRA-FA, no noise", [Head("LoRA-FA", rank, 0.0, rng) for rank in ranks]
    for sigma in (4.0,) if quick else (4.0, 16.0):
        yield f"M2, σ = {sigma:g}", [Head("M2", rank, sigma, rng) if rank < WIDTH else None for rank in ranks]
    if not quick:
        yield "LoRA-FA, σ = 4", [Head("LoRA-FA", rank, 4.0, rng) for rank in ranks]


def verdicts(table: dict[str, list[Seen | None]], first: list[float]) -> str:
    """What the numbers say.

    Raises
    ------
    AssertionError
        If they say something else.
    """
    heads = [one for line in table.values() for one in line if one]
    bare = [one for one in heads if not one.head.sigma]
    known = [one.auc[1] for one in bare]
    blind = [one.auc[0] for one in bare if one.head.method == "full" or one.head.rank >= 16]
    told = {(one.head.rank, one.head.sigma): one.auc[1] for one in heads if one.head.method == "M2"}
    assert min(*known, *first) >= 0.97
    assert min(blind) >= 0.9
    assert all(one.epsilon_low <= one.epsilon and not one.violated for seen in heads for one in seen.reports)
    if len(told) > 1:
        assert all(told[4, sigma] < told[64, sigma] for sigma in (4.0, 16.0))
        assert all(told[rank, 16.0] < told[rank, 4.0] for rank in (4, 16, 64))
    return (
        "**Without noise nothing is hidden.** A stands in every checkpoint, and what is trained is a function of the"
        f" rows and A: whoever trains again has an AUC of {min(known):.3f} at every rank. By the loss alone it is"
        f" {min(blind):.3f} or more from rank 16; below that this weaker attack gets worse because the head learns"
        f" little. `symmetry_attack` on the first step, which needs no A, has an AUC of {min(first):.3f} at every rank,"
        " 1 included. Under M2 members are harder to tell with a smaller rank and with more noise, by whatever attack,"
        " as its certificate says, and no bound on ε exceeds what is certified."
    )


def build(section: Section) -> None:
    """Table, picture and words."""
    rng = np.random.default_rng(SEED)
    F, y = digits(rng)
    size = (40, 1) if section.quick else (MODELS, CANARIES)
    table = {name: [head and seen(F, y, head, *size) for head in heads] for name, heads in ways(section.quick, rng)}
    full = [seen(F, y, Head("full", 0, sigma, rng), *size) for sigma in (0.0, 4.0) if not section.quick]
    first = [first_steps(F, y, rank, rng) for rank in ((1,) if section.quick else (1, *RANKS))]
    error = 0.58 / np.sqrt(size[0] * size[1])
    section.text(
        f"{N} digits; every cell is a mean over {size[1]} canaries, with {size[0]} models each. AUC by loss /"
        " AUC by steps / accuracy on other digits and, where noise is added, [the most that an attack proves of ε ≤"
        " what is certified of one replaced row at δ = 10⁻⁵]. Where nothing is told the standard error of an AUC is"
        f" about {error:.2f}."
    )
    ranks = [f"r = {one.head.rank}" for one in table["LoRA-FA, no noise"] if one]
    section.table(["", *ranks], [[name, *(one or "-" for one in line)] for name, line in table.items()])
    if full:
        section.table(["", *(f"σ = {one.head.sigma:g}" for one in full)], [["full gradient", *full]])
    section.text(verdicts(table, first))
    section.picture(picture(table), "AUC against rank, and an attack below what the certificate allows")


def picture(table: dict[str, list[Seen | None]]) -> Any:
    """AUC against the rank, and the curve of the attack that M2 with the least noise hides least from."""
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.8), layout="constrained")
    for name, line in table.items():
        known = [one for one in line if one]
        ranks, by = [one.head.rank for one in known], np.transpose([one.auc for one in known])
        color = left.plot(ranks, by[1], "o-", label=name)[0].get_color()
        left.plot(ranks, by[0], "o:", color=color, markersize=3)
    left.set_xscale("log", base=2)
    left.set_xticks(RANKS, [str(rank) for rank in RANKS])
    left.set_xlabel("rank")
    left.set_ylabel("AUC by steps, dotted: by loss")
    left.axhline(0.5, color="#adb5bb", linewidth=0.8)
    left.legend(frameon=False, fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
    last = [one for one in table["M2, σ = 4"] if one][-1]
    last.steps[0].plot(right)
    right.set_title(f"M2, σ = 4, rank {last.head.rank}, by steps", fontsize="medium")
    return figure


def main(arguments: Sequence[str] | None = None) -> str:
    """Run the command."""
    return run("membership", __doc__, build, arguments)


if __name__ == "__main__":
    main()
