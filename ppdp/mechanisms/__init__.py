"""Mechanisms: what turns cleaned rows into a noisy release."""

from ppdp.mechanisms.exponential import ExponentialMechanism
from ppdp.mechanisms.gaussian import GaussianMechanism
from ppdp.mechanisms.glm import GammaRegressor, PoissonRegressor, TweedieRegressor
from ppdp.mechanisms.laplace import LaplaceMechanism
from ppdp.mechanisms.linear_regression import LinearRegression, Ridge
from ppdp.mechanisms.linear_svc import LinearSVC
from ppdp.mechanisms.logistic_regression import LogisticRegression

__all__ = [
    "ExponentialMechanism",
    "GammaRegressor",
    "GaussianMechanism",
    "LaplaceMechanism",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "PoissonRegressor",
    "Ridge",
    "TweedieRegressor",
]
