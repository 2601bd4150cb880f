"""diffprivlib's models, or, where it is not installed, stand-ins of the same form that learn nothing.

Planning, certificates and their verification must work alike with both.
"""

import sys
from types import ModuleType

import numpy as np
from sklearn.base import BaseEstimator

__all__ = ["GaussianNB", "LinearRegression", "LogisticRegression", "RandomForestClassifier"]

try:
    from diffprivlib.models import GaussianNB, LinearRegression, LogisticRegression, RandomForestClassifier
except ImportError:
    from ppdp.bounds.diffprivlib import VERSION

    if "diffprivlib" not in sys.modules:
        sys.modules["diffprivlib"] = ModuleType("diffprivlib")
        sys.modules["diffprivlib"].__version__ = VERSION

    class LogisticRegression(BaseEstimator):
        def __init__(
            self, *, epsilon=1.0, data_norm=None, tol=1e-4, C=1.0, fit_intercept=True, max_iter=100, random_state=None
        ):
            self.epsilon, self.data_norm, self.tol, self.C = epsilon, data_norm, tol, C
            self.fit_intercept, self.max_iter, self.random_state = fit_intercept, max_iter, random_state

        def fit(self, X, y):
            lines = np.unique(y).size
            self.coef_ = np.zeros((1 if lines == 2 else lines, X.shape[1]))
            return self

    class LinearRegression(BaseEstimator):
        def __init__(self, *, epsilon=1.0, bounds_X=None, bounds_y=None, fit_intercept=True, random_state=None):
            self.epsilon, self.bounds_X, self.bounds_y = epsilon, bounds_X, bounds_y
            self.fit_intercept, self.random_state = fit_intercept, random_state

        def fit(self, X, y):
            self.coef_ = np.zeros(X.shape[1])
            return self

    class GaussianNB(BaseEstimator):
        def __init__(self, *, epsilon=1.0, bounds=None, priors=None, var_smoothing=1e-9, random_state=None):
            self.epsilon, self.bounds, self.priors = epsilon, bounds, priors
            self.var_smoothing, self.random_state = var_smoothing, random_state

        def fit(self, X, y):
            count = np.unique(y).size
            self.theta_, self.var_ = np.zeros((count, X.shape[1])), np.ones((count, X.shape[1]))
            self.class_count_ = np.ones(count)
            return self

    class RandomForestClassifier(BaseEstimator):
        """Refused, so it need not learn."""

    for kind, module in {
        LogisticRegression: "logistic_regression",
        LinearRegression: "linear_regression",
        GaussianNB: "naive_bayes",
        RandomForestClassifier: "forest",
    }.items():
        kind.__module__ = f"diffprivlib.models.{module}"
