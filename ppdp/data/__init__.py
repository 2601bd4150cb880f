"""Rows and what is computed of them: reading, repairing, statistics, releases of statistics."""
