"""A linear support vector machine trained on private sketches of sparse rows, the paper's method beside ours.

    python reproductions/sketched_text.py

**The paper** ("Differential privacy with random projections and sign random projections", Li and Li, NeurIPS 2023,
Figures 15 and 17): WEBSPAM, beta = 1, delta = 1e-6; a linear SVM on released sketches. Its claim: DP-OPORP is as good
as DP-RP-G-OPT-B and much better than noise on the raw rows, and DP-SignOPORP is ahead at moderate epsilon.

**Here**, instead of WEBSPAM: 10,000 generated texts over 100,000 words, about 100 words each (0.1 % of the entries),
held in a SciPy sparse array throughout. Words have the frequencies (rank + 100)^(-0.7); of every text one word in five
is on the topic of its class instead, one of 200. Rows say which words are there. 7,000 sketches train, 3,000 are
scored; labels are public. Every run draws texts, public matrix and noise anew. Neighbours differ in one entry.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from _page import Section, run
from _sketches import Array, FitMode, gaussian, laplace, plain, signs
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.svm import LinearSVC

K, TOPIC, SHARE, LENGTH = 256, 200, 0.2, 104
EPSILONS, RUNS = (1.0, 5.0, 10.0, 20.0), 5
OURS, THEIRS = "OPORP, Laplace noise", "DP-OPORP"
WAYS: dict[str, tuple[str, str, FitMode]] = {
    THEIRS: ("paper", "(ε, δ)", gaussian("oporp")),
    "DP-SignOPORP-RR-smooth": ("paper", "ε", signs("smooth", "oporp")),
    OURS: ("ours", "ε", laplace),
    "OPORP, staircase signs": ("ours", "ε", signs("staircase", "oporp")),
}


def texts(n: int, words: int, seed: int) -> tuple[csr_array, NDArray[np.int64]]:
    """Which words are in each text, and its class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    frequency = np.cumsum((np.arange(words) + 100.0) ** -0.7)
    drawn = np.searchsorted(frequency / frequency[-1], rng.random((n, LENGTH)))
    topics = rng.permutation(words)[: 2 * TOPIC].reshape(2, TOPIC)
    on_topic = topics[y[:, None], rng.integers(0, TOPIC, (n, LENGTH))]
    drawn = np.where(rng.random((n, LENGTH)) < SHARE, on_topic, drawn)
    starts = np.arange(0, n * LENGTH + 1, LENGTH, dtype=np.int32)
    X = csr_array((np.ones(drawn.size), drawn.ravel().astype(np.int32), starts), shape=(n, words))
    X.sum_duplicates()
    X.data[:] = 1.0
    return X, y


def score(rows: Array | csr_array, y: NDArray[np.int64]) -> float:
    """Accuracy on the last three tenths of a linear SVM that was trained on the others."""
    split = 7 * len(y) // 10
    rows = rows / (rows[:split].std() if isinstance(rows, np.ndarray) else 1.0)
    model = LinearSVC(dual=not isinstance(rows, np.ndarray), C=0.01 if isinstance(rows, np.ndarray) else 0.1)
    return float(model.fit(rows[:split], y[:split]).score(rows[split:], y[split:]))


def build(section: Section) -> None:
    """Write the section."""
    n, words, runs = (600, 2000, 2) if section.quick else (10_000, 100_000, RUNS)
    epsilons: Sequence[float] = (5.0,) if section.quick else EPSILONS
    scores: dict[tuple[str, float], list[float]] = {}
    free: dict[str, list[float]] = {"rows": [], "sketches": []}
    share = 0.0
    for seed in range(runs):
        X, y = texts(n, words, seed)
        share += X.nnz / (n * words * runs)
        free["rows"].append(score(X, y))
        free["sketches"].append(score(plain("oporp")(X, 0.0, K, seed), y))
        for name, (_, _, way) in WAYS.items():
            for epsilon in epsilons:
                scores.setdefault((name, epsilon), []).append(score(way(X, epsilon, K, seed), y))
    section.text(
        f"Not the paper's WEBSPAM but {n:,} generated texts over {words:,} words, {100 * share:.2f} % of the "
        f"entries, as sparse rows; a linear SVM is trained on {7 * n // 10:,} released sketches of {K} numbers and "
        f"scored on the other {n - 7 * n // 10:,}. At `Adjacency.change(coordinate=1.0)` it is a secret whether any "
        "one word is in a text; labels are public. Accuracy, mean ± standard error of "
        f"{runs} runs, each with texts, matrix and noise of its own. Without privacy: {shown(free['rows'])} on the "
        f"rows, {shown(free['sketches'])} on their sketches. {THEIRS} at ε = 20 has its noise in float64, as "
        "printed: of so many numbers the error of a pipeline's sampler, e^ε times, is more than δ."
    )
    head = ["method", "whose", "private", *(f"ε = {epsilon:g}" for epsilon in epsilons)]
    lines = ((name, *what[:2], *(shown(scores[name, e]) for e in epsilons)) for name, what in WAYS.items())
    section.table(head, lines)
    gains = {epsilon: gain(scores[OURS, epsilon], scores[THEIRS, epsilon]) for epsilon in epsilons}
    clear = [epsilon for epsilon, (mean, error) in gains.items() if mean > 2 * error]
    each = ", ".join(f"{mean:.3f} ± {error:.3f} at ε = {epsilon:g}" for epsilon, (mean, error) in gains.items())
    section.text(
        f"**{OURS}, with δ = 0, is ahead of {THEIRS}** in the same runs by {each}: beyond two standard errors in "
        f"{len(clear)} of {len(epsilons)}."
    )


def gain(one: list[float], other: list[float]) -> tuple[float, float]:
    """Mean and standard error of the difference in the same runs."""
    difference = np.subtract(one, other)
    return float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(len(difference)))


def shown(found: list[float]) -> str:
    """Mean and standard error."""
    return f"{np.mean(found):.3f} ± {np.std(found, ddof=1) / np.sqrt(len(found)):.3f}"


def main(arguments: list[str] | None = None) -> str:
    """Run the command."""
    return run("sketched_text", __doc__, build, arguments)


if __name__ == "__main__":
    main()
