"""Gradient descent against an adversary: the gradient that is released, at any point of the ball of coefficients."""

import math

import numpy as np
import pytest
from adversary import DISTANCES, World, attack, domains, named
from neighbours import ROUNDING, Pair
from steering import gradient_at

from ppdp.bounds.learning import augmented_norm, logistic_gradient_norm, logistic_smoothness
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.mechanisms import LogisticRegression


def model(clip=1.0, coef_norm=5.0, fit_intercept=True):
    return LogisticRegression(
        (0, 1), clip=clip, coef_norm=coef_norm, fit_intercept=fit_intercept, max_iter=2, step_size=1.0
    )


def use(model_, domain, distance, theta):
    question = model_.question(domain)
    bound = question.sensitivity(domain, distance)

    def ratio(pair):
        left, right = (gradient_at(theta, model_, question, rows) for rows in (pair.left, pair.right))
        return float(np.linalg.norm(left - right)) / bound

    return ratio


def test_the_model_goes_where_it_is_led():
    domain = Domain(n_rows=1, n_features=2, row_norm=1.0, classes=(0, 1))
    pair = Pair.of([[0.6, 0.0]], [[0.6, 0.0]], (np.zeros(1), np.ones(1)))
    theta = np.array([2.0, 1.0])
    there = 1 / (1 + math.exp(-1.2))
    led = model(fit_intercept=False)
    found = gradient_at(theta, led, led.question(domain), pair.left)
    np.testing.assert_allclose(found, [there * 0.6, 0.0])


@pytest.mark.parametrize("domain", domains(8, 1, 3, max_missing=0, classes=(0, 1)), ids=named)
@pytest.mark.parametrize("distance", DISTANCES, ids=named)
@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "no intercept"])
@pytest.mark.repeated("domain")
def test_no_pair_exceeds_the_sensitivity_of_a_step(domain, distance, intercept):
    world = World(domain, distance, labels=True, deleted=True)
    rng = np.random.default_rng(0)
    for clip, coef_norm in ((10.0, 1.0), (0.3, 5.0), (1.0, 20.0)):
        m = model(clip, coef_norm, intercept)
        direction = rng.standard_normal(domain.d + intercept)
        direction[rng.random(len(direction)) < 0.3] = 0.0
        theta = coef_norm * rng.choice([0.0, 0.5, 1.0]) * direction / max(np.linalg.norm(direction), 1e-9)
        towards = direction[: domain.d] / max(np.linalg.norm(direction[: domain.d]), 1e-9)
        X = np.tile(domain.row_norm * towards, (8, 1))
        first = [Pair.of(X * sign, -X * sign, (np.full(8, y),) * 2) for sign in (1, -1) for y in (0, 1)]
        reached, _ = attack(world, use(m, domain, distance, theta), draws=20, steps=40, first=first)
        assert reached <= ROUNDING


def steepest(R, D, C, intercept, rng):
    """The largest difference quotient of one row's clipped gradient over many rows, coefficients and directions.

    Rows are also put where their gradient is about to be clipped, and along the coefficients.
    """
    m, step = 40_000, 1e-4

    def directions(count):
        v = rng.standard_normal((count, 3)) * rng.choice([0.0, 1.0], size=(count, 3), p=[0.3, 0.7])
        return v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-9)

    theta = D * directions(m) * rng.choice([1.0, 0.5], size=(m, 1))
    own = theta[:, :2] if intercept else theta
    along = own / np.maximum(np.linalg.norm(own, axis=1, keepdims=True), 1e-9)
    width = own.shape[1]
    towards = np.where(rng.random((m, 1)) < 0.4, along * rng.choice([-1.0, 1.0], (m, 1)), directions(m)[:, :width])
    size = rng.choice([R - step, 1.0], size=(m, 1)) * rng.choice([1.0, 0.0], size=(m, 1))
    size = np.where(rng.random((m, 1)) < 0.5, size, rng.uniform(0, R - step, size=(m, 1)))
    X = towards * np.minimum(size, R - step)
    move = np.where(rng.random((m, 1)) < 0.5, along, directions(m)[:, :width])

    def gradient(X):
        rows = np.column_stack([X, np.ones(m)]) if intercept else X
        g = rows / (1 + np.exp(-(rows * theta).sum(axis=1, keepdims=True)))
        return g * np.minimum(1.0, C / np.maximum(np.linalg.norm(g, axis=1, keepdims=True), 1e-300))

    return float(np.linalg.norm(gradient(X + step * move) - gradient(X), axis=1).max()) / step


@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "no intercept"])
@pytest.mark.parametrize("R", [0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("D", [0.5, 2.0, 8.0])
@pytest.mark.repeated("D", "intercept")
def test_no_row_has_a_steeper_gradient(R, D, intercept):
    rng = np.random.default_rng(0)
    for C in (0.1, 0.4, 0.8, 1.5, 100.0):
        norm = augmented_norm(R, intercept)
        clip = min(C, logistic_gradient_norm(norm, D))
        bound = logistic_smoothness(norm, D, clip, 1.0 if intercept else 0.0)
        reached = steepest(R, D, clip, intercept, rng)
        assert 0.3 * bound <= reached <= bound * ROUNDING
        if clip < C and norm * D <= 1 and not intercept:
            assert reached >= 0.98 * bound


@pytest.mark.parametrize(
    ("distance", "clip", "left", "right"),
    [
        (Distance(replaced=1), 0.3, [([1.0, 0.0], 0)], [([-1.0, 0.0], 0)]),
        (Distance(toggled=1), 0.3, [([1.0, 0.0], 0)], [None]),
        (Distance(toggled=1), 10.0, [([1.0, 0.0], 0)], [None]),
        (Distance(moved=1, radius=1e-3), 10.0, [([1.0, 0.0], 0)], [([0.999, 0.0], 0)]),
    ],
    ids=["a clipped row reversed", "a clipped row removed", "a row removed", "a row moved outward"],
)
def test_every_part_of_the_distance_is_attained(distance, clip, left, right):
    """At theta on the boundary of the ball, R D = 1; a reversed row is clipped on both sides, at theta = 0."""
    domain = Domain(n_rows=5, n_features=2, row_norm=1.0, classes=(0, 1))
    sides = []
    for changed in (left[0], right[0]):
        x, y = changed if changed is not None else ([0.0, 0.0], 0)
        X, labels = np.zeros((5, 2)), np.zeros(5)
        X[0], labels[0] = x, y
        sides.append((X, labels))
    pair = Pair.of(sides[0][0], sides[1][0], (sides[0][1], sides[1][1]))
    if right[0] is None:
        pair.right.weight[0] = 0.0
    theta = np.zeros(2) if distance.replaced else np.array([1.0, 0.0])
    m = model(clip, 1.0, fit_intercept=False)
    assert 0.999 <= use(m, domain, distance, theta)(pair) <= ROUNDING
