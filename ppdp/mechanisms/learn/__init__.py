"""Mechanisms that train models."""
