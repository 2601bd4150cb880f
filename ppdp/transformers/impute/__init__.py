"""Stages that fill gaps."""
