"""The paper whose claims are collected here."""

from __future__ import annotations

__all__ = ["PAPER", "REFERENCES"]

PAPER = "Provable privacy with non-private pre-processing (Hu, Sanyal and Schölkopf, ICML 2024)"

REFERENCES = {
    PAPER: "Yaxi Hu, Amartya Sanyal and Bernhard Schölkopf: *Provable Privacy with Non-Private Pre-Processing*. "
    "Proceedings of the 41st International Conference on Machine Learning, Vienna, PMLR 235, 2024; preprint "
    "[arXiv 2403.13041](https://arxiv.org/abs/2403.13041). What was checked, in November 2026, is the text of the "
    "proceedings with its appendices; versions of the preprint may differ. Its authors have not been asked about any "
    "of what follows."
}
"""In full."""
