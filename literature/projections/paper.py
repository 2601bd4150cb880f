"""The paper whose claims are collected here."""

from __future__ import annotations

from literature.claims import Error, Source

__all__ = ["PAPER", "SOURCE"]

PAPER = "Differential privacy with random projections and sign random projections (Li and Li, NeurIPS 2023)"

ERRORS = (
    Error(
        "events that share Y are taken to be independent",
        ("sign-lemma-4.2", "sign-eq-21", "sign-prop-4.4"),
    ),
    Error(
        "a sum of few large entries with random signs is taken to be normal",
        ("sign-eq-10", "sign-alg-3-rademacher"),
    ),
)

SOURCE = Source(
    "Ping Li and Xiaoyun Li: *Smooth Flipping Probability for Differential Private Sign Random Projection Methods*. "
    "Advances in Neural Information Processing Systems 36, 2023; preprint, under the title above, "
    "[arXiv 2306.01751](https://arxiv.org/abs/2306.01751). What was checked, in November 2026, is an anonymous version "
    "of its appendices A to E. Statements of the body are read off their proofs there; where a proof is missing, the "
    "claim says so. Its authors have not been asked about any of what follows.",
    ERRORS,
    """\
A record is u in [−1, 1]ᵖ; neighbours differ in one coordinate by at most β. This protects how far one value of a record
is off, not a record.

* **W**: the p × k matrix of the projection, public, w one column. **x**: Wᵀu, over √k where that is said. **Δ₂**: the
  farthest that neighbours' x are apart. **OPORP**: every coordinate, with a random sign, is added to one of k bins.
* **s̃**: the signs of x after flips or noise. **S**: which signs of two neighbours differ; **N₊**: an upper bound on how
  many; **F**: on the probability that a given one can. **m**: the smallest norm of a record. **r**: β/m, or σ_x/σ_y.
* **ε′**: ε/N₊. **L_j**: the number of steps that x_j is from 0. **θ**: the angle between two records, **ρ** its cosine;
  in Lemma E.1 a correlation.
* **iDP** (Definition A.1): (ε, δ)-DP of one dataset and its neighbours, in both directions.
* **A**, **Ñ₊**: which signs an iDP algorithm makes noisy, and how many.
""",
)
"""In full."""
