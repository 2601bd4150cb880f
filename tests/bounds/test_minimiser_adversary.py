"""Output perturbation against an adversary: what the solver leaves, converged or not, under every distance."""

import math

import numpy as np
import pytest
from adversary import DISTANCES, World, attack, named
from neighbours import ROUNDING, Pair
from scipy.optimize import minimize

from ppdp.bounds.learning import loss_smoothness, solver_rate
from ppdp.core.adjacency import Adjacency
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import lookup
from ppdp.data.rows import Rows
from ppdp.exceptions import CertificateError
from ppdp.mechanisms import LogisticRegression, Ridge
from ppdp.mechanisms.learn.descent import ClippedGradient, minimise

N = 8
DOMAIN = Domain(n_rows=N, n_features=2, row_norm=1.0, max_missing=0)
MODELS = {
    "logistic": lambda **k: LogisticRegression((0, 1), solver="output", **k),
    "squared": lambda **k: Ridge(y_range=(-1, 1), solver="output", **k),
}
ANSWERS = {"logistic": np.array([0.0, 1.0]), "squared": np.array([-1.0, 1.0])}


class Silence:
    """Noise that adds nothing."""

    def release(self, value, noise_scale, bound):
        assert np.linalg.norm(value) <= bound * ROUNDING
        return value


def minimiser(loss, model, question, rows):
    rows = Rows(rows.X, ANSWERS[loss][rows.y.astype(int)], rows.weight)
    return model.release(rows, question, Silence(), 1.0)["theta"]


def use(loss, distance, **parameters):
    model = MODELS[loss](**parameters)
    question = model.question(DOMAIN)
    bound = question.sensitivity(DOMAIN, distance)
    return lambda pair: (
        float(
            np.linalg.norm(minimiser(loss, model, question, pair.left) - minimiser(loss, model, question, pair.right))
        )
        / bound
    )


@pytest.mark.parametrize("loss", MODELS)
@pytest.mark.parametrize("distance", DISTANCES, ids=named)
@pytest.mark.parametrize("max_iter", ["auto", 1, 7])
@pytest.mark.repeated("loss", "max_iter")
def test_no_pair_exceeds_the_sensitivity(loss, distance, max_iter):
    """Of the last iterate: nothing rests on its having converged."""
    world = World(DOMAIN, distance, labels=True, deleted=True)
    for intercept, clip, coef_norm, alpha in ((True, 10.0, 2.0, 2.0), (False, 0.3, 0.5, 4.0), (True, 0.5, 5.0, 20.0)):
        parameters = {"fit_intercept": intercept, "clip": clip, "coef_norm": coef_norm, "alpha": alpha}
        ratio = use(loss, distance, max_iter=max_iter, **parameters)
        X = np.tile([1.0, 0.0], (N, 1))
        first = [Pair.of(X * sign, -X * sign, (np.full(N, y),) * 2) for sign in (1, -1) for y in (0, 1)]
        reached, _ = attack(world, ratio, draws=4, steps=5, first=first)
        assert reached <= ROUNDING


@pytest.mark.parametrize("loss", MODELS)
@pytest.mark.parametrize("distance", [Distance(replaced=1), Distance(toggled=1)], ids=named)
@pytest.mark.parametrize("max_iter", [1, 7, 1000])  # after 1000 the bound no longer grows
@pytest.mark.repeated("loss")
def test_a_row_whose_gradient_is_clipped_attains_it(loss, distance, max_iter):
    """A slope that depends on the row alone and changes by its clip; every iterate of a flat loss attains the bound."""
    X = np.zeros((N, 2))
    X[0] = [1.0, 0.0]
    Z = -X
    pair = Pair.of(X, Z, (np.ones(N),) * 2)
    if distance.toggled:
        pair.right.weight[0] = 0.0
    reached = use(loss, distance, fit_intercept=False, clip=0.01, coef_norm=1.0, alpha=1.0, max_iter=max_iter)(pair)
    assert 0.999 <= reached <= ROUNDING


@pytest.mark.parametrize("loss", MODELS)
@pytest.mark.parametrize("coef_norm", [0.3, 50.0])
@pytest.mark.parametrize("clip", [0.1, 100.0])
@pytest.mark.repeated("clip", "coef_norm", keep=2)
def test_the_solver_is_as_close_as_it_says(loss, coef_norm, clip):
    """Against an independent solver of the same constrained problem, after few steps and after many."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (30, 2)) / math.sqrt(2)
    rows = Rows(X, ANSWERS[loss][(X[:, 0] + 0.3 * rng.standard_normal(30) > 0).astype(int)], rng.choice([0, 1.0], 30))
    domain = DOMAIN.but(n_rows=30)
    model = MODELS[loss](clip=clip, coef_norm=coef_norm, alpha=1.5)
    gradient = ClippedGradient.of(rows, model._residuals, clip, True)
    strength, smoothness = 1.5 / 30, loss_smoothness(domain, model._curvature, True)

    def slope(theta):
        return gradient(theta[None])[0] + strength * theta

    nodes, weights = np.polynomial.legendre.leggauss(40)

    def objective(theta):  # the integral of its gradient along the ray
        return sum(w / 2 * slope((u + 1) / 2 * theta) @ theta for u, w in zip(nodes, weights))

    ball = {"type": "ineq", "fun": lambda t: coef_norm**2 - t @ t, "jac": lambda t: -2 * t}
    exact = minimize(
        objective, np.zeros(3), jac=slope, constraints=[ball], method="SLSQP", options={"ftol": 1e-14, "maxiter": 500}
    ).x
    for iterations in (1, 5, 25, 400):
        theta = minimise(
            gradient,
            np.zeros((1, 3)),
            iterations=iterations,
            smoothness=smoothness,
            strength=strength,
            radius=coef_norm,
        )[0]
        error = coef_norm * math.exp(iterations * solver_rate(smoothness, strength))
        assert np.linalg.norm(theta - exact) <= error + 1e-4
    assert np.linalg.norm(theta) <= coef_norm * ROUNDING


def test_one_replaced_row_costs_the_textbook_number():
    """2G/(lambda n) = 2 C / alpha, whatever n is."""
    for n in (100, 10_000):
        common = {"clip": 0.5, "coef_norm": 1.0, "fit_intercept": False, "smoothness": 0.25, "iterations": 10**6}
        found = lookup("learning.logistic-minimiser", "mechanism")(
            Domain(n_rows=n, n_features=2, row_norm=1.0), Distance(replaced=1), alpha=20.0, **common
        )
        assert found == pytest.approx(2 * 0.5 / 20, rel=1e-6)


def test_an_iterate_that_has_not_converged_costs_less():
    common = {"clip": 0.5, "coef_norm": 1.0, "fit_intercept": False, "alpha": 1.0, "smoothness": 0.25}
    found = [
        lookup("learning.logistic-minimiser", "mechanism")(DOMAIN, Distance(replaced=1), iterations=t, **common)
        for t in (1, 2, 5, 50, 10**6)
    ]
    assert found == sorted(found)
    assert found[0] == pytest.approx(2 * 0.5 / N * 2 / (0.25 + 2 / N))  # a step of 2 / (smoothness + 2 lambda)
    assert found[-1] == pytest.approx(2 * 0.5)


@pytest.mark.parametrize("change", [{"alpha": 0.0}, {"iterations": 0}, {"smoothness": 0.2}])
def test_impossible_parameters(change):
    common = {"clip": 0.5, "coef_norm": 1.0, "fit_intercept": False, "alpha": 1.0, "smoothness": 0.25, "iterations": 5}
    for name, more in (("logistic", {}), ("squared", {"y_range": (0, 1), "smoothness": 1.0})):
        parameters = {**common, **more, **change}
        with pytest.raises(CertificateError):
            lookup(f"learning.{name}-minimiser", "mechanism")(DOMAIN, Adjacency.replace().distance, **parameters)
