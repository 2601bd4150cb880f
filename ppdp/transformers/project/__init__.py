"""Stages that project rows."""
