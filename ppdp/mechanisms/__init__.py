"""Mechanisms: what turns cleaned rows into a noisy release."""

from ppdp.mechanisms.gaussian import GaussianMechanism
from ppdp.mechanisms.logistic_regression import LogisticRegression

__all__ = ["GaussianMechanism", "LogisticRegression"]
