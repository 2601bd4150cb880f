"""Stages that map every row by itself and learn nothing."""
