"""Choices that depend on earlier choices: never below what any of them reaches, and hardly above."""

import itertools
import math

import numpy as np
import pytest
from true_losses import choices_delta

from ppdp.privacy.gaussian import gaussian_delta
from ppdp.privacy.loss import parts_epsilon
from ppdp.privacy.losses import BoundedRange
from ppdp.privacy.pld import bounded_range_distribution, bounded_range_profile

WIDTHS = (1e-3, 0.1, 1.0, 6.0)


def two_outcomes(t, width):
    """Losses and their probabilities under P."""
    likely = math.expm1(t - width) / math.expm1(-width)
    return (t, likely), (t - width, 1 - likely)


def adaptive(width, plan, depth):
    """Losses of all paths and their probabilities; the plan says t from the losses so far."""
    paths = [((), 1.0)]
    for _ in range(depth):
        paths = [
            ((*losses, loss), p * q) for losses, p in paths for loss, q in two_outcomes(plan(losses) * width, width)
        ]
    return np.array([sum(losses) for losses, _ in paths]), np.array([p for _, p in paths])


def delta_of(losses, probabilities, epsilon):
    return float(probabilities @ np.maximum(0.0, -np.expm1(epsilon - losses)))


@pytest.mark.parametrize("width", WIDTHS)
def test_one_choice_is_a_closed_form(width):
    epsilon = np.linspace(0, width * 1.2, 50)
    truth = np.where(epsilon < width, np.expm1((epsilon - width) / 2) ** 2 / -math.expm1(-width), 0.0)
    found = bounded_range_profile(width, 1).forward(epsilon)
    assert (found >= truth * (1 - 1e-12)).all()
    assert (found <= truth * (1 + 1e-3) + 1e-3 * truth[0]).all()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.repeated("depth")
def test_no_adaptive_strategy_exceeds_it(width, depth):
    """From the best plan that does not look back, climbing over plans that do."""
    rng, profile = np.random.default_rng(depth), bounded_range_profile(width, depth)
    branches = [branch for k in range(depth) for branch in itertools.product((False, True), repeat=k)]

    def reached(plan, epsilon):
        return delta_of(*adaptive(width, lambda losses: plan[tuple(loss > 0 for loss in losses)], depth), epsilon)

    for share in (0.0, 0.3, 0.7):
        epsilon = share * depth * width
        constant = [dict.fromkeys(branches, float(t)) for t in np.linspace(0.02, 0.98, 49)]
        plan = max(constant, key=lambda plan: reached(plan, epsilon))
        blind = best = reached(plan, epsilon)
        for _ in range(400):
            trial = {branch: float(np.clip(t + rng.normal(scale=0.05), 1e-3, 1 - 1e-3)) for branch, t in plan.items()}
            if (found := reached(trial, epsilon)) > best:
                best, plan = found, trial
        bound = float(profile.forward(np.array([epsilon]))[0])
        assert 0.9 * bound < best <= bound
        assert best >= blind


@pytest.mark.parametrize("count", [1, 7, 20, 21, 50])
def test_choices_that_do_not_look_at_each_other_cost_nearly_as_much(count):
    run = bounded_range_distribution(0.2, count, 2.0**-12)
    for epsilon in (0.0, 0.05 * count, 0.1 * count):
        truth = choices_delta(0.2, count, epsilon)
        assert truth <= run.delta(epsilon)
        assert run.delta(1.04 * epsilon) <= truth * 1.04 + run.slack


def test_beside_a_gaussian_release():
    """Integrated over the loss of the release."""
    width, mu, epsilon = 0.6, 0.4, 0.8
    z, step = np.linspace(-9, 9, 4001, retstep=True)
    weights = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) * step
    left = epsilon - (mu * z + mu**2 / 2)
    truth = max(
        sum(p * float(weights @ np.maximum(0.0, -np.expm1(left - loss))) for loss, p in two_outcomes(t * width, width))
        for t in np.linspace(0.05, 0.95, 37)
    )
    found = parts_epsilon(mu, (BoundedRange(range=width),), truth)
    assert epsilon <= found <= epsilon * 1.06
    assert truth > gaussian_delta(mu, epsilon)


def test_nothing_costs_nothing():
    assert bounded_range_distribution(0.0, 5, 2.0**-10).epsilon(1e-9) == 0.0
    assert parts_epsilon(0.0, (BoundedRange(range=0.0, count=5),), 1e-6) == 0.0
