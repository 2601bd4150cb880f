"""Losses that are not Gaussian: recipes that compose in every way that holds, the least of them, and choices."""

import itertools
import math

import numpy as np
import pytest
from true_losses import choices_delta

from ppdp.exceptions import BudgetExceeded, InvalidParameter
from ppdp.privacy.gaussian import gaussian_delta, gaussian_epsilon
from ppdp.privacy.ledger.ledger import Ledger
from ppdp.privacy.loss import PrivacyLoss, parts_epsilon
from ppdp.privacy.losses import (
    BoundedRange,
    DiscreteLaplace,
    FixedSizeSamples,
    HiddenIterate,
    Laplace,
    Part,
    PoissonSamples,
    Pure,
    ScalarLaplace,
    ZeroConcentrated,
)
from ppdp.privacy.pld import bounded_range_distribution, bounded_range_profile
from ppdp.privacy.renyi import ORDERS, bounded_range_curve, renyi_epsilon, repeated

STILL = {"replaced": 1, "toggled": 0, "moved": 0, "radius": 0.0, "total": 0.0}
POISSON = PoissonSamples(**STILL, rate=0.01, bound=1.0, lipschitz=1.0, noise_scale=1.0, count=1000)
FIXED = FixedSizeSamples(**STILL, n_rows=10_000, batch_size=100, bound=1.0, lipschitz=1.0, noise_scale=4.0, count=1000)
HIDDEN = HiddenIterate(mass=2.0, total=0.0, moved=0, n_rows=1000, bound=1.0, lipschitz=1.0, noise_scale=4.0)
VOTE = BoundedRange(range=0.1, count=20)
EVERY = [
    Laplace(shift=1.0, scale=4.0),
    ScalarLaplace(shift=1.2, scale=20.0, count=50),
    DiscreteLaplace(shift=1, scale=5.0, count=3),
    Pure(epsilon=0.2, count=4),
    ZeroConcentrated(rho=0.05, count=2),
    VOTE,
    POISSON,
    FIXED,
    HIDDEN,
]
each_part = pytest.mark.parametrize("part", EVERY, ids=lambda part: part.kind)


def epsilon(*parts, mu=0.0, delta=1e-6):
    return PrivacyLoss(mu, parts=parts).epsilon(delta)


@pytest.mark.parametrize(
    ("part", "known"),
    [(EVERY[1], 1.79), (POISSON, 3.21), (FIXED, 0.83), (EVERY[0], 0.25), (EVERY[2], 0.6), (EVERY[3], 0.8)],
    ids=["fifty Laplace numbers", "Poisson", "fixed size", "pure", "counts", "any pure"],
)
def test_known_figures(part, known):
    assert epsilon(part) == pytest.approx(known, rel=0.01)


@pytest.mark.parametrize("part", [POISSON, FIXED], ids=["Poisson", "fixed size"])
def test_sampled_steps_have_an_epsilon_where_no_distribution_is_fine_enough(part):
    last, first = (epsilon(part, mu=0.1, delta=delta) for delta in (1.01e-10, 0.99e-10))
    assert last < first < 1.15 * last
    whole = PoissonSamples(**STILL, rate=1.0, bound=1.0, lipschitz=1.0, noise_scale=50.0, count=100)
    exact = gaussian_epsilon(math.hypot(0.1, 2 * 10 / 50), 1e-14)
    assert exact <= epsilon(whole, mu=0.1, delta=1e-14) < 1.05 * exact


@each_part
def test_a_part_goes_through_json(part):
    assert Part.from_dict(part.to_dict()) == part
    assert part.kind in part.describe()


@each_part
def test_composition_costs_more_than_its_components_and_less_than_their_sum(part):
    alone, gauss = epsilon(part, delta=5e-7), gaussian_epsilon(0.2, 5e-7)
    together = epsilon(part, mu=0.2)
    assert max(epsilon(part), gaussian_epsilon(0.2, 1e-6)) <= together * (1 + 1e-6)
    assert together <= (alone + gauss) * (1 + 1e-3)


@each_part
def test_epsilon_and_delta_are_inverse(part):
    loss = PrivacyLoss(0.2, parts=(part,))
    at = loss.epsilon(1e-5)
    assert loss.delta(at * 1.001) <= 1e-5 * 1.02
    assert loss.delta(at * 0.9) >= 1e-5


@each_part
def test_two_runs_are_one_run_twice(part):
    twice = PrivacyLoss(parts=(part,)) * 2
    assert twice.epsilon(1e-6) == pytest.approx(epsilon(part, part), rel=1e-3)


def test_purity_needs_no_delta():
    loss = PrivacyLoss(parts=(EVERY[0], EVERY[3]))
    assert loss.epsilon(0.0) == pytest.approx(0.25 + 0.8)
    assert loss.delta(1.06) == 0.0
    assert PrivacyLoss(0.1, parts=(EVERY[0],)).epsilon(0.0) == math.inf


def test_votes_are_known_by_a_curve_and_better_by_a_distribution():
    curve = renyi_epsilon(repeated(bounded_range_curve(0.1), 20), 1e-6)
    assert 0.94 * curve < epsilon(VOTE) < 0.97 * curve
    assert epsilon(VOTE, delta=1e-12) == pytest.approx(renyi_epsilon(repeated(bounded_range_curve(0.1), 20), 1e-12))
    assert PrivacyLoss(parts=(VOTE,)).renyi(8.0) == pytest.approx(20 * bounded_range_curve(0.1)(8.0))


def test_a_rho_beside_gaussian_noise_costs_what_dp_accounting_says():
    from dp_accounting import NeighboringRelation, ZCDpEvent
    from dp_accounting.rdp import RdpAccountant

    theirs = RdpAccountant(ORDERS, neighboring_relation=NeighboringRelation.REPLACE_ONE)
    theirs.compose(ZCDpEvent(rho=0.1), 2).compose(ZCDpEvent(rho=0.3**2 / 2))
    rho = ZeroConcentrated(rho=0.1, count=2)
    assert epsilon(rho, mu=0.3) == pytest.approx(theirs.get_epsilon(1e-6), rel=1e-9)
    assert epsilon(rho, mu=0.3) > gaussian_epsilon(math.hypot(0.3, math.sqrt(0.4)), 1e-6)


@pytest.mark.parametrize("accounting", ["auto", "renyi"])
def test_a_ledger_holds_a_rho_and_gaussian_noise_together(accounting):
    ledger = Ledger(epsilon=3.5, delta=1e-6, accounting=accounting)
    ledger.reserve(mu=0.0, parts=[ZeroConcentrated(rho=0.1)], label="tables of another library")
    ledger.reserve(mu=0.3)
    assert epsilon(ZeroConcentrated(rho=0.1), mu=0.3) <= ledger.epsilon(1e-6) < 3.1
    with pytest.raises(BudgetExceeded):
        ledger.reserve(mu=0.0, parts=[ZeroConcentrated(rho=0.1)])


def test_what_has_only_a_curve_and_what_has_none_share_delta():
    both = epsilon(HIDDEN, POISSON)
    assert (
        max(epsilon(HIDDEN), epsilon(POISSON)) < both < epsilon(HIDDEN, delta=5e-7) + epsilon(POISSON, delta=5e-7) + 1
    )
    assert PrivacyLoss(parts=(POISSON,)).renyi(8.0) == math.inf


def test_a_billionth_is_a_usual_delta():
    assert epsilon(POISSON, delta=1e-6) < epsilon(POISSON, delta=1e-9) < 2 * epsilon(POISSON, delta=1e-6)


def test_failures_and_gates_stay_outside():
    assert PrivacyLoss(failure=1e-6, parts=(POISSON,)).epsilon(1e-6) == math.inf
    front = PrivacyLoss(gate=1e-6, parts=(POISSON,))
    assert front.epsilon(1e-6) == pytest.approx(epsilon(POISSON))
    assert front.epsilon(0.9e-6) == math.inf


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "other", "epsilon": 1.0},
        {"kind": "zcdp", "rho": -0.1},
        {"kind": "pure", "epsilon": math.nan},
        {"kind": "pure", "epsilon": -1.0},
        {"kind": "pure", "epsilon": 1.0, "count": 0},
        {"kind": "pure", "shift": 1.0},
        {"kind": "laplace", "shift": 1.0},
        {"kind": "laplace", "shift": 1.0, "scale": math.inf},
    ],
)
def test_impossible_recipes(wrong):
    with pytest.raises(InvalidParameter):
        Part.from_dict({"count": 1} | wrong)


# ---------------- choices that depend on earlier ones: never below what any of them reaches, and hardly above


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
