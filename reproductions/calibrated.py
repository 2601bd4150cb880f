"""The calibrated attack on low-rank training, and how much one of its steps differs from one of full training.

    python reproductions/calibrated.py

**The paper** ("LoRA provides differential privacy by design via random sketching", Table 1, Figures 3 and 4) adapts
GPT-2 to texts, and attacks with the loss of a text under a reference model minus that under the adapted one, (16). The
attack gets worse with a smaller rank; so does the model. (17) is the distance of one low-rank step from the full one.

**Here**, instead of GPT-2 and texts: the linear head on features of digits of ``membership.py``, 100 members, 100 other
rows, and a reference model that is trained in the same way on 100 more. No noise is added. This attacker knows nothing
of a row's neighbours: what it does not tell is no measure of what a guarantee has to cover, see ``membership.py``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from _page import Section, run
from membership import CLASSES, RANKS, WIDTH, Array, Head, Labels, N, clipped, digits
from scipy.special import log_softmax
from sklearn.metrics import roc_auc_score, roc_curve

RATES = (0.1, 0.01)


def scores(weights: Array, F: Array, y: Labels) -> Array:
    """Minus the loss of every row."""
    return np.asarray(log_softmax(F @ weights, axis=1)[np.arange(len(F)), y])


def attacked(head: Head, F: Array, y: Labels, runs: int) -> list[float]:
    """AUC, true positives at the false-positive rates ``RATES`` and accuracy: means over runs, each with other rows."""
    found = []
    for _ in range(runs):
        order = head.rng.permutation(len(F))
        members, aside, others = np.split(order[: 3 * N], 3)
        target, reference = (head.weights(F[rows], y[rows]) for rows in (members, aside))
        asked = np.concatenate([members, others])
        score = scores(target, F[asked], y[asked]) - scores(reference, F[asked], y[asked])
        inside = np.repeat([1, 0], N)
        false, true, _ = roc_curve(inside, score, drop_intermediate=False)
        fresh = order[3 * N :]
        accuracy = float(((F[fresh] @ target).argmax(axis=1) == y[fresh]).mean())
        told = [float(true[false <= rate].max()) for rate in RATES]
        found.append([float(roc_auc_score(inside, score)), *told, accuracy])
    return [float(mean) for mean in np.mean(found, axis=0)]


def step_apart(F: Array, y: Labels, rank: int, rng: np.random.Generator, draws: int = 100) -> float:
    """(17) over the length of the full step: root mean square over draws of A, of the first step."""
    gradient = clipped(F[:N], np.zeros((WIDTH, CLASSES)), np.eye(CLASSES)[y[:N]])
    squares = []
    for _ in range(draws):
        A = rng.standard_normal((WIDTH, rank)) / math.sqrt(rank)
        squares.append(np.sum((A @ (A.T @ gradient) - gradient) ** 2))
    return math.sqrt(float(np.mean(squares)) / float(np.sum(gradient**2)))


def build(section: Section) -> None:
    """Both tables, and what they say.

    Raises
    ------
    AssertionError
        If they say something else.
    """
    rng = np.random.default_rng(0)
    F, y = digits(rng)
    ranks, runs = ((4, 64), 2) if section.quick else (RANKS, 20)
    table = {f"LoRA-FA, r = {rank}": attacked(Head("LoRA-FA", rank, 0.0, rng), F, y, runs) for rank in ranks}
    table["full"] = attacked(Head("full", 0, 0.0, rng), F, y, runs)
    section.text(
        f"The attack (16) on {N} members and {N} other digits, means over {runs} runs; true positives at 10 % and 1 % "
        "false ones."
    )
    section.table(["", "AUC", "at 10 %", "at 1 %", "accuracy"], [[name, *line] for name, line in table.items()])
    apart = {rank: step_apart(F, y, rank, rng) for rank in ranks}
    section.text(
        f"(17) over the length of the full step, beside √((n + 1)/r), n = {WIDTH}, which Lemma 6.1 gives exactly:"
    )
    section.table(["r", "(17)", "√((n + 1)/r)"], [[r, found, math.sqrt((WIDTH + 1) / r)] for r, found in apart.items()])
    least, most = table[f"LoRA-FA, r = {min(ranks)}"], table["full"]
    assert least[0] < most[0]
    assert least[-1] < most[-1]
    assert all(abs(found / math.sqrt((WIDTH + 1) / r) - 1) < 0.1 for r, found in apart.items())
    section.text(
        "**As in the paper this attack gets worse with a smaller rank, and so does the model.** It asks what a row's "
        "own loss tells of it. Whoever has A and B trains again with and without the row, and tells at every rank (see "
        "the section above): that one attack fails proves no privacy."
    )


def main(arguments: Sequence[str] | None = None) -> str:
    """Run the command."""
    return run("calibrated", __doc__, build, arguments)


if __name__ == "__main__":
    main()
