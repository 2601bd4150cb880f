"""Stages that fill missing values."""
