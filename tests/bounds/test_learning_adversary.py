"""Gradient descent and output perturbation against an adversary: gradients anywhere, and what the solver leaves."""

import math
from fractions import Fraction

import numpy as np
import pytest
from adversary import DISTANCES, Silence, World, attack, named
from neighbours import ROUNDING, Pair
from scipy.optimize import minimize
from steering import gradient_at

from ppdp.bounds import lookup
from ppdp.bounds.learning import (
    Gradient,
    loss_smoothness,
    solver_rate,
)
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.rounding import BLOCK, MOST_ROWS
from ppdp.data import parallel
from ppdp.data.parallel import PIECE
from ppdp.data.rows import Rows
from ppdp.mechanisms import LogisticRegression, Ridge
from ppdp.mechanisms.learn import descent
from ppdp.mechanisms.learn.descent import ClippedGradient, minimise


def use(model, domain, distance, theta):
    question = model.query_spec(domain)
    bound = question.sensitivity(domain, distance)

    def ratio(pair):
        left, right = (gradient_at(theta, model, question, rows) for rows in (pair.left, pair.right))
        return float(np.linalg.norm(left - right)) / bound

    return ratio


def test_the_model_goes_where_it_is_led():
    domain = Domain(n_rows=1, n_features=2, row_norm=1.0, classes=(0, 1))
    pair = Pair.of([[0.6, 0.0]], [[0.6, 0.0]], (np.zeros(1), np.ones(1)))
    theta = np.array([2.0, 1.0])
    there = 1 / (1 + math.exp(-1.2))
    led = LogisticRegression((0, 1), max_coef_norm=5.0, fit_intercept=False, max_iter=2, learning_rate=1.0)
    found = gradient_at(theta, led, led.query_spec(domain), pair.left)
    np.testing.assert_allclose(found, [there * 0.6, 0.0])


@pytest.mark.parametrize("rows", [1, 2], ids=["one row", "both rows of a person"])
@pytest.mark.parametrize("row_norm", [0.5, 1.0, 2.0])
def test_at_defaults_the_bound_with_an_intercept_is_attained_but_for_a_percent(row_norm, rows):
    """Rows on both sides of the boundary, each with the wrong label, as near to it as the clip allows."""
    domain = Domain(n_rows=5, n_features=2, row_norm=row_norm, classes=(0, 1))
    radius = 5 * max(1.0, math.sqrt(2) / row_norm)
    chance = min(1.0, 1.0 / math.hypot(row_norm, 1.0))
    near = max(0.0, math.log(chance / (1 - chance)) / radius) + 1e-9
    across, along = np.zeros((5, 2)), np.zeros((5, 2))
    across[:rows, 0], along[:rows, 1] = near, math.sqrt(row_norm**2 - near**2)
    wrong = np.arange(5) < rows
    pair = Pair.of(along + across, along - across, (np.zeros(5), wrong.astype(float)))
    theta = np.array([radius * (1 - 1e-12), 0.0, 0.0])
    defaults = LogisticRegression((0, 1), solver="dpgd")
    assert 0.99 <= use(defaults, domain, Distance(replaced=rows), theta)(pair) <= ROUNDING


def worst_terms(count):
    """Numbers of at most 1 whose sum, one after the other, is rounded upwards by almost half a place every time."""
    terms, total = np.ones(count), 0.0
    for i in range(count):
        terms[i] = min(1.0, 1 - math.ulp(total + 1) / 2 + 2.0**-53)
        total += terms[i]
    return terms


@pytest.mark.parametrize("block", [8, 64, 512])
def test_sums_in_blocks_are_off_by_what_is_charged_and_one_after_the_other_comes_close(block):
    terms, blocks = worst_terms(block), 40
    step = descent.step_of(1.0, 2**40)
    whole = int(np.rint(np.add.accumulate(terms)[-1] / step))
    exact = sum(map(Fraction, terms.tolist()))
    off = abs(blocks * (whole * Fraction(step) - exact))
    charged = Gradient(1, 1.0, 1.0, 0.0, block=block).sum_error(blocks * block)
    assert (0.05 if block == 8 else 0.25) * charged < off <= charged
    assert Gradient(1, 1.0, 1.0, 0.0).sum_error(blocks * block) > 0.9 * blocks * charged * block / (block + 8.1)


@pytest.mark.parametrize("block", [8, 64])
def test_the_computed_gradient_is_off_by_less_than_is_charged_for_blocks_however_rows_stand(monkeypatch, block):
    monkeypatch.setattr(descent, "BLOCK", block)
    monkeypatch.setattr(descent, "PIECE", 4 * block)
    monkeypatch.setattr(parallel, "BLOCK", block)
    monkeypatch.setattr(parallel, "PIECE", 4 * block)
    rng, n, d = np.random.default_rng(0), 60 * block + 5, 3
    X = np.resize(worst_terms(block), (n, 1)) * np.array([0.6, -0.64, 0.48])
    exact = [sum(map(Fraction, column)) for column in X.T.tolist()]
    charged = Gradient(d, 1.0, 1.0, 0.0, block=block).sum_error(n)
    for order in (np.arange(n), rng.permutation(n), np.argsort(X[:, 0])):
        rows = Rows(X[order], np.zeros(n), np.ones(n))
        gradient = descent.ClippedGradient.of(rows, lambda scores, y: np.ones_like(scores), 1.0, fit_intercept=False)
        off = [float(Fraction(one) * n - all_) for one, all_ in zip(gradient(np.zeros((1, d)))[0].tolist(), exact)]
        assert np.linalg.norm(off) <= charged


def test_the_sum_over_as_many_rows_as_there_may_be_is_exact_and_fits_its_words():
    """A piece of the largest gradients, merged with itself until it stands for 2^40 rows."""
    X = np.column_stack([np.full(PIECE, 0.8), np.linspace(-0.6, 0.6, PIECE)])
    rows = Rows(X, np.zeros(PIECE), np.ones(PIECE))
    gradient = descent.ClippedGradient.of(rows, lambda scores, y: np.ones_like(scores), 1.0, fit_intercept=False)
    step = descent.step_of(1.0, MOST_ROWS)
    words = once = gradient.total(np.zeros((1, 2)), step)
    for _ in range(25):
        words = words + words

    def whole(halves):
        return [(int(high) << 32) + int(low) for high, low in zip(halves[0, 0], halves[1, 0])]

    assert whole(words) == [2**25 * one for one in whole(once)]
    assert int(np.abs(words).max()) < 2**62
    mean = descent.number_of(words) * step / MOST_ROWS
    np.testing.assert_allclose(mean, gradient(np.zeros((1, 2))), rtol=0, atol=2.0**-50)


@pytest.mark.parametrize("solver", ["dpgd", "fixed-size", "epochs", "hidden", "m2", "output"])
def test_documents_of_many_rows_say_that_they_are_added_in_blocks(solver):
    learner = LogisticRegression((0, 1), solver=solver)
    few, many = (Domain(n_rows=n, n_features=3, row_norm=1.0, classes=(0, 1)) for n in (BLOCK, BLOCK + 1))
    assert "block" not in learner.query_spec(few).parameters
    assert learner.query_spec(many).parameters["block"] == BLOCK


def test_what_rounding_adds_to_the_noise_of_training_is_little_up_to_ten_thousand_million_rows():
    one = Distance(replaced=1)
    for n, most in ((10**8, 1.001), (10**10, 1.02), (MOST_ROWS, 2.0)):
        domain = Domain(n_rows=n, n_features=20, row_norm=math.sqrt(20), classes=(0, 1))
        question = LogisticRegression((0, 1)).query_spec(domain)
        assert 2.0 <= question.sensitivity(domain, one) * n < 2.0 * most
    older = {name: value for name, value in question.parameters.items() if name != "block"}
    assert lookup("learning.logistic-gradient", "mechanism")(domain, one, **older) * n > 1e8


N = 8
DOMAIN = Domain(n_rows=N, n_features=2, row_norm=1.0, max_missing=0)
MODELS = {
    "logistic": lambda **k: LogisticRegression((0, 1), solver="output", **k),
    "squared": lambda **k: Ridge(y_range=(-1, 1), solver="output", **k),
}
ANSWERS = {"logistic": np.array([0.0, 1.0]), "squared": np.array([-1.0, 1.0])}


def minimiser(loss, model, question, rows):
    rows = Rows(rows.X, ANSWERS[loss][rows.y.astype(int)], rows.weight)
    return model.release(rows, question, Silence(), 1.0)["theta"]


def minimiser_use(loss, distance, **parameters):
    model = MODELS[loss](**parameters)
    question = model.query_spec(DOMAIN)
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
        parameters = {"fit_intercept": intercept, "max_grad_norm": clip, "max_coef_norm": coef_norm, "alpha": alpha}
        ratio = minimiser_use(loss, distance, max_iter=max_iter, **parameters)
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
    reached = minimiser_use(
        loss, distance, fit_intercept=False, max_grad_norm=0.01, max_coef_norm=1.0, alpha=1.0, max_iter=max_iter
    )(pair)
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
    model = MODELS[loss](max_grad_norm=clip, max_coef_norm=coef_norm, alpha=1.5)
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
