"""Gradient boosting from noisy histograms."""
