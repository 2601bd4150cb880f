"""The paper whose claims are collected here."""

from __future__ import annotations

__all__ = ["PAPER"]

PAPER = "Provable privacy with non-private pre-processing (Hu, Sanyal and Schölkopf, ICML 2024)"
