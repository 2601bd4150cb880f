"""Mechanisms that answer: sums, means, counts, choices."""
