"""Mechanisms: what turns cleaned rows into a noisy release."""

from ppdp.mechanisms.learn.glm import GammaRegressor, PoissonRegressor, TweedieRegressor
from ppdp.mechanisms.learn.linear_regression import LinearRegression, Ridge
from ppdp.mechanisms.learn.linear_svc import LinearSVC
from ppdp.mechanisms.learn.logistic_regression import LogisticRegression
from ppdp.mechanisms.query.exponential import ExponentialMechanism
from ppdp.mechanisms.query.gaussian import GaussianMechanism
from ppdp.mechanisms.query.laplace import LaplaceMechanism

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
