"""The paper whose claims are collected here."""

from __future__ import annotations

from literature.claims import Source
from literature.preprocessing.errors import ERRORS

__all__ = ["PAPER", "SOURCE"]

PAPER = "Provable privacy with non-private pre-processing (Hu, Sanyal and Schölkopf, ICML 2024)"

SOURCE = Source(
    "Yaxi Hu, Amartya Sanyal and Bernhard Schölkopf: *Provable Privacy with Non-Private Pre-Processing*. "
    "Proceedings of the 41st International Conference on Machine Learning, Vienna, PMLR 235, 2024; preprint "
    "[arXiv 2403.13041](https://arxiv.org/abs/2403.13041). What was checked, in November 2026, is the text of the "
    "proceedings with its appendices; versions of the preprint may differ. Its authors have not been asked about any "
    "of what follows.",
    ERRORS,
    """\
Datasets S are n rows x in ℝᵈ of Euclidean norm at most 1; neighbours differ in one row. L is the collection of datasets
that is allowed.

* **π_S**: the stage fitted on S, applied to a row. **Δ₂**: the farthest that it moves a common row of two neighbours of
  L, max ‖π_S(x) − π_S′(x)‖. **Δ_∞**: the most common rows of two neighbours that it moves at all.
* **d₁₂(S, S′)**: the sum of the distances between rows in the same place.
* **RDP**: A is (α, ε)-RDP if the Rényi divergence of order α of its outputs on neighbours is at most ε. **Smooth RDP**:
  (α, ε(α, τ)), if the same holds for all pairs of L with d₁₂ ≤ τ.
* **L, μ**: Lipschitz constant and smoothness of the loss; L also that of the statistic f. **Δ_f**: its global
  sensitivity. **σ**: noise in each step; **T**: steps; **δ_k**: the eigengap λ_k − λ_{k+1}; **σ_min**: the smallest
  standard deviation of a column.
* **p**: Δ_∞ of deduplication, quantization, or mean imputation (there the paper also calls the number of missing values
  p). **κ**: the most rows in which two datasets of L with d₁₂ ≤ τ differ. **γ**: n over the largest k such that no row
  moves by more than d₁₂/k. **β**: the eigengap below which Algorithm 1 refuses (in Theorem 15 a constant of the loss).
* **M_G, M_L, M_E**: Gaussian, Laplace and exponential mechanism. **A_GD**: gradient descent with noise (DP-GD).
  **A_SGD-samp**: stochastic gradient descent on samples. **A_SGD-iter**: one pass with a secret stopping time.
* Of ppdp, not the paper: **K_d**: how many points fit into a ball in ℝᵈ at distances of more than its radius.
""",
)
"""In full."""
