"""Mechanisms: models and statistics of the cleaned rows, released with noise."""

from ppdp.core.keywords import answering_all
from ppdp.mechanisms.boosting.estimators import GradientBoostingClassifier, GradientBoostingRegressor
from ppdp.mechanisms.learn.classification import LinearSVC, LogisticRegression
from ppdp.mechanisms.learn.k_means import KMeans
from ppdp.mechanisms.learn.naive_bayes import GaussianNB
from ppdp.mechanisms.learn.regression import GammaRegressor, LinearRegression, PoissonRegressor, Ridge, TweedieRegressor
from ppdp.mechanisms.query.additive_noise import GaussianMechanism, LaplaceMechanism
from ppdp.mechanisms.query.exponential import ExponentialMechanism
from ppdp.mechanisms.query.random_matrices import GaussianSketch, WishartMechanism
from ppdp.mechanisms.query.report import Report
from ppdp.mechanisms.query.signs import SignMechanism

__all__ = [
    "ExponentialMechanism",
    "GammaRegressor",
    "GaussianMechanism",
    "GaussianNB",
    "GaussianSketch",
    "GradientBoostingClassifier",
    "GradientBoostingRegressor",
    "KMeans",
    "LaplaceMechanism",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "PoissonRegressor",
    "Report",
    "Ridge",
    "SignMechanism",
    "TweedieRegressor",
    "WishartMechanism",
]

answering_all(__name__)
