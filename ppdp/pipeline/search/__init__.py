"""Choosing among pipelines by noisy scores, paid for once."""
