"""Perturbed logistic regression against an adversary who knows the density of the released coefficients."""

import numpy as np
import pytest
from effort import rounds
from scipy.special import expit

from ppdp.bounds.diffprivlib import logistic_objective, objective_noise
from ppdp.core.adjacency import Adjacency
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.exceptions import UnsupportedOrder

ONE = Adjacency.replace().distance


def log_density(theta, rows, scale, penalty):
    """Of the minimiser of ``Σ loss + penalty/2 |θ|² + b θ`` at θ, for b of density ~ exp(-|b| / scale)."""
    X, y = rows
    p = expit(X @ theta)
    b = X.T @ (y - p) - penalty @ theta
    hessian = (X.T * (p * (1 - p))) @ X + penalty
    return -np.linalg.norm(b) / scale + np.linalg.slogdet(hessian)[1]


def bound_of(distance, norm, given, penalty, d=2):
    domain = Domain(n_rows=10_000, n_features=d, row_norm=norm)
    parameters = {"penalty": penalty, "fit_intercept": False, "n_classes": 2}
    return logistic_objective(domain, distance, noise_scale=1 / given, **parameters).epsilon(0.0)


def loss(theta, left, right, norm, given, penalty):
    """Privacy loss of the output θ."""
    scale, curvature = objective_noise(given, norm, penalty)
    square = curvature * np.eye(len(theta))
    return log_density(theta, left, scale, square) - log_density(theta, right, scale, square)


def joined(*parts):
    return np.vstack([X for X, _ in parts]), np.concatenate([y for _, y in parts])


def within(X, norm):
    return X * np.minimum(1.0, norm / np.linalg.norm(X, axis=1, keepdims=True))


def some(rng, number, norm, d):
    return within(rng.normal(size=(number, d)) * 10 ** rng.uniform(-1, 1), norm), rng.integers(2, size=number)


def worst_replacement(norm, given, penalty, rows=200_000):
    """A row that the output is least sure of, for one it is sure of; many sure rows turn b along the difference."""
    tilt = 0.1
    theta = np.array([0.0, 20 / (tilt * norm)])
    sure = np.array([[-norm * np.sqrt(1 - tilt**2), norm * tilt]]), np.zeros(1)
    unsure = np.array([[norm, 0.0]]), np.zeros(1)
    rest = np.repeat(sure[0], rows, axis=0), np.zeros(rows)
    return abs(loss(theta, joined(unsure, rest), joined(sure, rest), norm, given, penalty))


SETTINGS = [(norm, given, penalty) for norm in (0.3, 1.0, 10.0) for given in (0.2, 1.0, 5.0) for penalty in (0.1, 10.0)]


@pytest.mark.parametrize(("norm", "given", "penalty"), SETTINGS)
@pytest.mark.repeated("norm", "given", keep=3)
def test_no_output_tells_datasets_further_apart(norm, given, penalty):
    rng = np.random.default_rng(0)
    for toggled, replaced, d in [(1, 0, 2), (0, 1, 1), (0, 1, 3), (3, 2, 2)]:
        bound = bound_of(Distance(replaced=replaced, toggled=toggled), norm, given, penalty, d)
        for _ in range(rounds(150)):
            theta = rng.normal(size=d) * 10 ** rng.uniform(-2, 2)
            left, right = some(rng, replaced + toggled, norm, d), some(rng, replaced, norm, d)
            shared = some(rng, 5, norm, d)
            assert abs(loss(theta, joined(left, shared), joined(right, shared), norm, given, penalty)) <= bound


@pytest.mark.parametrize(("norm", "given", "penalty"), SETTINGS)
@pytest.mark.repeated("norm", "given", keep=3)
def test_a_replaced_row_can_cost_most_of_the_bound(norm, given, penalty):
    found = worst_replacement(norm, given, penalty)
    assert 0.7 < found / bound_of(ONE, norm, given, penalty) <= 1


def test_diffprivlibs_own_claim_fails_for_long_rows():
    """It charges ``2 log(1 + R / 4a)`` for the curvature, where a row of norm R bends the objective by ``R² / 4``."""
    norm, claimed, penalty = 10.0, 4.0, 1.0
    found = worst_replacement(norm, claimed, penalty)
    assert claimed < found <= bound_of(ONE, norm, claimed, penalty)


def test_with_an_unpenalised_intercept_no_epsilon_holds():
    """All rows but one are certain, so nothing bends the objective along the intercept but the one that is not."""
    scale, penalty = 1.0, np.diag([1.0, 0.0])
    certain, unsure = (np.array([[1.0, 1.0], [-1.0, 1.0]]), np.array([1, 0])), (np.array([[0.0, 1.0]]), np.ones(1))
    losses = []
    for slope in (5.0, 10.0, 20.0):
        theta = np.array([slope, 0.0])
        sides = joined(certain, unsure), joined(certain, (np.array([[1.0, 1.0]]), np.ones(1)))
        losses.append(log_density(theta, sides[0], scale, penalty) - log_density(theta, sides[1], scale, penalty))
    assert np.all(np.diff(losses) > [4.0, 9.0])


def test_a_moved_row_costs_less_than_a_replaced_one():
    rng, norm, given, penalty, radius = np.random.default_rng(2), 1.0, 1.0, 1.0, 0.1
    bound = bound_of(Distance(moved=1, radius=radius), norm, given, penalty)
    assert bound < 0.8 * bound_of(ONE, norm, given, penalty)
    found = []
    for _ in range(2000):
        x, way = rng.normal(size=(2, 2))
        x *= (norm - radius) / np.linalg.norm(x)
        step, y = radius * way / np.linalg.norm(way), rng.integers(2, size=1)
        theta = rng.normal(size=2) * 10 ** rng.uniform(-1, 3)
        found.append(abs(loss(theta, (x[None], y), ((x + step)[None], y), norm, given, penalty)))
    assert max(found) <= bound


def test_rows_that_count_in_part_are_refused():
    with pytest.raises(UnsupportedOrder, match="weights"):
        bound_of(Distance(reweighted=1), 1.0, 1.0, 1.0)


def test_nothing_changed_costs_nothing():
    assert bound_of(Distance(), 1.0, 1.0, 1.0) == 0.0
