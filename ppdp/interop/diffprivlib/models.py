"""How each supported model of diffprivlib is fed with rows, what is read from it, and how that predicts.

Everything that diffprivlib would read off the rows is given to it: bounds, the labels that occur, their number. Why
each of these public changes is needed, and enough, says ``docs/theory/diffprivlib.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from ppdp.core.checks import flag, positive
from ppdp.data.rows import Array, Rows

Parameters = Mapping[str, Any]
EXACTLY = {"tol": 0.0, "max_iter": 15_000}  # stops where float64 cannot tell objectives apart


class Adapter:
    """What ppdp knows of one model: the formula of its privacy map, which parameters users may choose, and its kind."""

    formula: str
    free: frozenset[str]
    kind = "classifier"

    def parameters(self, model: Any, n_classes: int) -> dict[str, Any]:
        """Public parameters of the formula."""
        raise NotImplementedError

    def learn(self, model: Any, rows: Rows, parameters: Parameters, bound: float) -> Array:
        """Fit the model on private rows; everything returned is released, as one line of numbers."""
        raise NotImplementedError

    def read(self, released: Array, d: int, parameters: Parameters) -> dict[str, Array]:
        """Fitted attributes from what was released."""
        raise NotImplementedError

    def probability(self, fitted: Any, X: Array) -> Array:
        """Of a classifier: probability of each class, shape (n_rows, n_classes), from fitted attributes."""
        raise NotImplementedError


class LogisticModel(Adapter):
    """The intercept is a column of ones, penalised like the others; every class has a public row of zeros."""

    formula = "diffprivlib.logistic-regression"
    free = frozenset({"C", "fit_intercept"})

    def parameters(self, model: Any, n_classes: int) -> dict[str, Any]:
        penalty = 1 / positive("C", model.C, model)
        return {
            "penalty": penalty,
            "fit_intercept": flag("fit_intercept", model.fit_intercept, model),
            "n_classes": n_classes,
        }

    def learn(self, model: Any, rows: Rows, parameters: Parameters, bound: float) -> Array:
        here = rows.weight > 0
        X = _columns(rows.X[here], parameters["fit_intercept"])
        X, y = _with_every_label(X, _labels(rows)[here], parameters["n_classes"])
        model.set_params(data_norm=bound, fit_intercept=False, **EXACTLY).fit(X, y)
        return np.asarray(model.coef_).ravel()

    def read(self, released: Array, d: int, parameters: Parameters) -> dict[str, Array]:
        lines = released.reshape(-1, d + parameters["fit_intercept"])
        intercept = lines[:, d] if parameters["fit_intercept"] else np.zeros(len(lines))
        return {"coef_": lines[:, :d], "intercept_": intercept}

    def probability(self, fitted: Any, X: Array) -> Array:
        p = expit(X @ fitted.coef_.T + fitted.intercept_)
        p = np.column_stack([1 - p, p]) if p.shape[1] == 1 else p
        return np.asarray(p / np.maximum(p.sum(axis=1, keepdims=True), np.finfo(float).tiny))


class LinearAdapter(Adapter):
    """The intercept is a column of ones within (-1, 1); rows are clipped and weighted here."""

    formula = "diffprivlib.linear-regression"
    kind = "regressor"
    free = frozenset({"fit_intercept"})

    def parameters(self, model: Any, n_classes: int) -> dict[str, Any]:
        return {"fit_intercept": flag("fit_intercept", model.fit_intercept, model)}

    def learn(self, model: Any, rows: Rows, parameters: Parameters, bound: float) -> Array:
        assert rows.y is not None
        X = _columns(np.clip(rows.X, -bound, bound), parameters["fit_intercept"])
        limits = np.ones(X.shape[1])
        limits[: rows.X.shape[1]] = bound
        root = np.sqrt(rows.weight)
        model.set_params(bounds_X=(-limits, limits), bounds_y=(-1.0, 1.0), fit_intercept=False)
        model.fit(X * root[:, None], np.clip(rows.y, -1.0, 1.0) * root)
        return np.asarray(model.coef_).ravel()

    def read(self, released: Array, d: int, parameters: Parameters) -> dict[str, Array]:
        intercept = released[d:] if parameters["fit_intercept"] else np.zeros(1)
        return {"coef_": released[:d], "intercept_": intercept}


class NaiveBayes(Adapter):
    """Deleted rows are a class of their own, which is dropped; every class has a public row of zeros."""

    formula = "diffprivlib.naive-bayes"
    free = frozenset({"var_smoothing"})

    def parameters(self, model: Any, n_classes: int) -> dict[str, Any]:
        return {"n_classes": n_classes}

    def learn(self, model: Any, rows: Rows, parameters: Parameters, bound: float) -> Array:
        k = parameters["n_classes"]
        X, y = _with_every_label(rows.X, np.where(rows.weight > 0, _labels(rows), k), k + 1)
        model.set_params(bounds=(-bound, bound)).fit(X, y)
        prior = model.class_count_[:k] / model.class_count_[:k].sum()
        return np.concatenate([model.theta_[:k].ravel(), model.var_[:k].ravel(), prior])

    def read(self, released: Array, d: int, parameters: Parameters) -> dict[str, Array]:
        k = parameters["n_classes"]
        theta, var, prior = np.split(released, [k * d, 2 * k * d])
        return {"theta_": theta.reshape(k, d), "var_": var.reshape(k, d), "class_prior_": prior}

    def probability(self, fitted: Any, X: Array) -> Array:
        var = np.maximum(fitted.var_, np.finfo(float).tiny)
        fit = ((X[:, None, :] - fitted.theta_) ** 2 / var + np.log(var)).sum(axis=2)
        return np.asarray(softmax(np.log(fitted.class_prior_) - fit / 2, axis=1))


SUPPORTED: dict[str, Adapter] = {
    "diffprivlib.models.linear_regression.LinearRegression": LinearAdapter(),
    "diffprivlib.models.logistic_regression.LogisticRegression": LogisticModel(),
    "diffprivlib.models.naive_bayes.GaussianNB": NaiveBayes(),
}
"""What is known of each model, by the full name of its class."""

REFUSED: dict[str, str] = {
    "diffprivlib.models.forest.RandomForestClassifier": (
        "every tree draws its noise and its published thresholds from one seed of 31 bits, so anyone who tries all "
        "seeds on one threshold knows the noise."
    )
}
"""Why a model is refused whose noise hides nothing."""


def full_name(model: Any) -> str:
    """Of its class."""
    return f"{type(model).__module__}.{type(model).__qualname__}"


def _labels(rows: Rows) -> NDArray[np.intp]:
    assert rows.y is not None
    return rows.y.astype(np.intp)


def _columns(X: Array, fit_intercept: bool) -> Array:
    return np.column_stack([X, np.ones(len(X))]) if fit_intercept else X


def _with_every_label(X: Array, y: NDArray[np.intp], number: int) -> tuple[Array, NDArray[np.intp]]:
    """The rows and a public row of zeros of every label, so that all labels occur whatever the rows are."""
    return np.vstack([X, np.zeros((number, X.shape[1]))]), np.concatenate([y, np.arange(number)])
