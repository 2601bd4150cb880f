"""The three papers whose claims are collected here: an anonymous one, its later version, and one on sketches."""

from __future__ import annotations

from typing import Any

from literature.claims import Claim, Error, Source

__all__ = ["BEYOND", "DESIGN", "HELPS", "SOURCES", "said"]

BEYOND = "Beyond additive noise: DP for LoRA via random projections (anonymous)"
HELPS = "LoRA and privacy: when random projections help, and when they don't (Hu, Düngler, Schölkopf and Sanyal, 2026)"
DESIGN = "LoRA provides differential privacy by design via random sketching (Malekmohammadi and Farnadi, 2026)"

_PREFIXES = {BEYOND: "beyond", HELPS: "helps", DESIGN: "design"}

_NOTATION = """\
f(S) is v in ℝᵈ of norm 1, or V of d rows; v′, V′ are those of a neighbour.

* **M**: ZZᵀ, over r where that is said; **Z**: d × r, independent normal entries. **r**: the rank. **ρ**: the least
  cosine of v and v′ over neighbours; **ρ_k**: that of their column spaces.
* **a, b**: v′·y/v·y and ‖y‖²/v·y of the output y. **t_r**, **χ²_r**: laws, and their quantiles. **δ(ε)**: exact.
"""

SOURCES = {
    BEYOND: Source(
        "Anonymous authors: *Beyond Additive Noise: DP for LoRA via Random Projections*, a paper under double-blind "
        "review. What was checked, in November 2026, is a transcription of it with its appendices A to E; misprints "
        "may be the transcriber's. The paper that follows is a later version, which withdraws Theorem 2. Not judged "
        "are Lemmas 2 and 5 to 11, textbook facts that are true. Its authors have not been asked about any of what "
        "follows.",
        (
            Error("σ for ε ≤ 1 is taken for every ε", ("beyond-lemma-1",)),
            Error(
                "neighbours have as many rows, but samples with and without the row that differs are compared",
                ("beyond-lemma-3",),
            ),
            Error("outputs that only one of two neighbours can have are forgotten", ("beyond-cor-1",)),
            Error("a bound on ε that falls with r is taken for ε", ("beyond-rank",)),
            Error("a condition is turned upside down", ("beyond-lemma-4",)),
            Error(
                "MV and MV′ are taken to have densities on the same set, which has probability 0",
                ("beyond-lemma-16", "beyond-thm-2-proof", "beyond-lora", "beyond-alg-2"),
            ),
            Error("norms of gradients are taken to be equal, and gradients not to depend on M", ("beyond-thm-3",)),
        ),
        _NOTATION
        + """\
* **t, η, R**: numbers to be chosen in the proof; **c**, **C**: constants that are not said. **ξ₁, ξ_k**: bounds on
  the largest and k-th singular value of f(S). **Δ**: the largest ‖f(S) − f(S′)‖. **γ, s**: noise, and what it gains.
""",
    ),
    HELPS: Source(
        "Yaxi Hu, Johanna Düngler, Bernhard Schölkopf and Amartya Sanyal: *LoRA and Privacy: When Random Projections "
        "Help (and When They Don't)*, preprint, [arXiv 2601.21719](https://arxiv.org/abs/2601.21719), January 2026. "
        "What was checked, in November 2026, is the text of version 1 in which the formulas are missing: they were "
        "read off the prose and the proofs, and the earlier version above, so a misprint found here may be ours. Not "
        "judged are Lemmas 1, 3 to 6, 9 and 18, facts that are quoted or shared with the earlier version. Its authors "
        "have not been asked about any of what follows.",
        (Error("norms of gradients are taken to be equal, and gradients not to depend on M", ("helps-b2",)),),
        _NOTATION
        + """\
* **M1**: MV + E, **M2**: M(V + E), E normal with σ. **S**, **k**: the span, and its dimension, of Zᵀ times the columns
  that do not change. **M_∥**, **M_⊥**: M through S and through its complement. **I_κ**: distribution of Beta(r/2, (d −
  r)/2), at κ. **s**: the rank of V − V′. **β**: a probability.
""",
    ),
    DESIGN: Source(
        "Saber Malekmohammadi and Golnoosh Farnadi: *LoRA Provides Differential Privacy by Design via Random "
        "Sketching*, preprint, [arXiv 2409.17538](https://arxiv.org/abs/2409.17538), version 9, February 2026. What "
        "was checked, in November 2026, is its text, in which the formulas are missing: they were read off the prose "
        "and the proofs, so a misprint found here may be ours. Not judged are Propositions 4.3 and 4.4, Lemmas A.2 to "
        "A.7 and D.1 and the theorems that are quoted. Its authors have not been asked about any of what follows.",
        (
            Error("the sketch matrix is released, or multiplied to the sketch", ("design-lemma-7.2", "design-cor-7.3")),
            Error(
                "terms that are not correlated are taken to be independent", ("design-lemma-6.1-law", "design-lemma-b1")
            ),
            Error("products of entries of q are left out", ("design-lemma-6.1-diagonal",)),
        ),
        """\
G is a matrix computed from the data, of m rows and n columns, G′ that of a neighbour.

* **The sketch**: GS + σN, S and N of r columns of independent standard normal entries. **A**: r × n, entries of
  variance 1/r; a frozen one multiplies every gradient of LoRA by AᵀA. **C**: largest ‖G‖. **Δ**: largest ‖G − G′‖.
  **λ**: least eigenvalue of GGᵀ. **γ**: (λ + σ²)/(2CΔ). **p**: the rank of GGᵀ − G′G′ᵀ. **q**: a row of a gradient.
""",
    ),
}
"""Of each paper, by its name."""


_IN_WORDS = frozenset(
    {
        "helps-b2",
        "helps-c1",
        "helps-lemma-11",
        "helps-lemma-13",
        "helps-prop-2",
        "design-cor-7.3",
        "design-lemma-6.1-diagonal",
        "design-lemma-6.1-law",
        "design-lemma-7.2",
        "design-lemma-b1",
    }
)
"""Claims that words decide, in papers whose formulas are missing: no formula that fits them changes the verdict."""


def said(
    paper: str, name: str, *words: Any, page: str = "noise-free-projections", corrected: tuple[str, ...] = ()
) -> Claim:
    """The claim of that name; ``words`` are its fields from ``place`` to ``evidence``."""
    found = f"{_PREFIXES[paper]}-{name}"
    return Claim(found, paper, *words, page, corrected, paper != BEYOND and found not in _IN_WORDS)
