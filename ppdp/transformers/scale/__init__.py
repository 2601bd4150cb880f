"""Stages that centre and scale columns."""
