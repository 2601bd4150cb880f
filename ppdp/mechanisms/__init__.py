"""Mechanisms: what turns cleaned rows into a noisy release."""

from ppdp.core.keywords import answering_all
from ppdp.mechanisms.learn.classification import LinearSVC, LogisticRegression
from ppdp.mechanisms.learn.glm import GammaRegressor, PoissonRegressor, TweedieRegressor
from ppdp.mechanisms.learn.regression import LinearRegression, Ridge
from ppdp.mechanisms.query.exponential import ExponentialMechanism
from ppdp.mechanisms.query.gaussian import GaussianMechanism
from ppdp.mechanisms.query.laplace import LaplaceMechanism
from ppdp.mechanisms.query.signs import SignMechanism
from ppdp.mechanisms.query.sketch import GaussianSketch
from ppdp.mechanisms.query.wishart import WishartMechanism

__all__ = [
    "ExponentialMechanism",
    "GammaRegressor",
    "GaussianMechanism",
    "GaussianSketch",
    "LaplaceMechanism",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "PoissonRegressor",
    "Ridge",
    "SignMechanism",
    "TweedieRegressor",
    "WishartMechanism",
]

answering_all(__name__)
