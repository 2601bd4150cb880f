"""Stages that drop or merge rows that are alike."""
