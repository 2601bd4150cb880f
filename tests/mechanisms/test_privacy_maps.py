"""What every privacy map promises, against independent computations at extreme inputs: never below, and hardly above.

ε from 1e-3 to 50, δ from 1e-9 to 1e-3, up to 10,000 steps. The sensitivities here are written down anew from the worst
datasets, the losses of sampled steps are inverted from their transforms (``tests/helpers/true_losses.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.special import expit, ndtr
from scipy.stats import binom
from sklearn.base import clone
from sources import held_alone
from true_losses import (
    Law,
    choices_delta,
    fixed_size,
    gaussian,
    gaussian_mu,
    laplace,
    mixtures,
    poisson,
    true_delta,
    true_epsilon,
    whole_delta,
)

from ppdp import Adjacency, Distance, Domain
from ppdp import mechanisms as M
from ppdp.bounds import FORMULAS
from ppdp.mechanisms.query.signs import FLIPS
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.losses import ScalarLaplace

EXACT, NUMERIC = 1.001, 1.05  # how far above the truth
BELOW = 1 + 1e-9
ONE = Adjacency.replace().distance
DELTAS = (1e-9, 1e-6, 1e-3)
N = 1000
BALL = Domain(n_rows=N, n_features=3, row_norm=1.0)
LINE = Domain(n_rows=N, n_features=1, row_norm=1.0)
FULL = BALL.but(min_present=N)
DRIFT = Distance(replaced=1, toggled=2, moved=40, radius=0.05)  # ω = 4, τ = 2
CAPPED = Distance(replaced=1, moved=5, radius=1e9)  # as if all were replaced


def priced(mechanism, domain, distance, noise_scale):
    """The loss with this noise."""
    return clone(mechanism).set_params(noise_scale=noise_scale).privacy_map(domain, distance)


def between(epsilon, delta_of, delta, most, precision=1e-6):
    """An answer is enough, and one that is smaller by a little is not."""
    assert delta_of(epsilon * BELOW) <= delta * (1 + precision)
    assert epsilon == 0 or delta_of(epsilon / most) >= delta * (1 - precision)


# ---------------------------------------------------------------------------------------------- Gaussian, exact

MODELS = {
    # the largest gradient and Lipschitz constant without clip and intercept, R = 1, radius D of the ball
    "logistic": (
        M.LogisticRegression((0, 1), max_coef_norm=0.8),
        expit(0.8),
        expit(0.8) * (1 + 0.8 * (1 - expit(0.8))),
    ),
    "softmax": (
        M.LogisticRegression((0, 1, 2), max_coef_norm=1.0),
        math.sqrt(2) / (1 + math.exp(-math.sqrt(2) * math.sqrt(3)) / 2),
        None,  # not known exactly
    ),
    "hinge": (M.LinearSVC((0, 1), max_coef_norm=3.0, smoothing=0.4), 1.0, 1 + 3.0 / 0.8),
    "squared": (M.LinearRegression((-5, 5), max_coef_norm=2.0), 3.0, 5.0),
    "ridge": (M.Ridge((0, 1), max_coef_norm=0.5), 1.5, 2.0),
    "poisson": (M.PoissonRegressor((0, 9)), None, None),
    "gamma": (M.GammaRegressor((1, 9)), None, None),
    "tweedie": (M.TweedieRegressor((1, 9)), None, None),
}
QUERIES = {
    "mean": (BALL, lambda d: (2 * d.one_sided + min(d.total, 2 * d.moved)) / N),
    "mean of all": (FULL, lambda d: (d.mass + min(d.total, 2 * d.moved)) / N),
    "sum": (BALL, lambda d: d.mass + min(d.total, 2 * d.moved)),
    "count": (BALL, lambda d: d.one_sided),
    "covariance": (BALL, lambda d: (2 * d.one_sided + min(math.sqrt(3) * d.total, 2 * d.moved)) / N),
    "histogram": (BALL, lambda d: math.sqrt(3) * math.hypot(d.one_sided + d.moved, d.replaced + d.moved)),
    "rows": (BALL, lambda d: math.sqrt(4 * d.replaced + d.toggled + d.moved * min(d.radius, 2) ** 2)),
}


class Case(NamedTuple):
    """A Gaussian mechanism and what its answers change by, at these distances, written down anew."""

    name: str
    mechanism: Any
    shift: Callable[[Distance], float]
    distances: Sequence[Distance] = (ONE, CAPPED)
    steps: int = 1
    domain: Domain = BALL


def queries():
    for name, (domain, shift) in QUERIES.items():
        yield Case(name, M.GaussianMechanism(name.split()[0], bins=2), shift, (ONE, DRIFT, CAPPED), domain=domain)


def moments():
    """Least squares from second moments of rows that are clipped at √0.2; every gradient costs what they cost."""
    clip = math.sqrt(0.2)

    def shift(d):
        single = d.one_sided - d.replaced
        moves = min(math.sqrt(2) * d.total, clip * d.moved)
        return math.sqrt(2) * clip * (clip * (d.replaced + single / math.sqrt(2)) + moves) / N

    for steps, distances in ((1, (ONE, DRIFT, CAPPED)), (6, (ONE, CAPPED))):
        model = M.Ridge((0, 1), solver="moments", max_iter=steps, fit_intercept=False)
        yield Case(f"moments, {steps} steps", model, shift, distances, steps)


def trainings():
    for name, (model, bound, lipschitz) in MODELS.items():
        for steps in (1, 300, 10_000):
            clipped = clone(model).set_params(max_grad_norm=1e-2, fit_intercept=True, max_iter=steps)
            yield Case(f"{name}, {steps} steps", clipped, lambda d: 1e-2 * (d.mass + 2 * d.moved) / N, steps=steps)
        if bound is not None:
            free = clone(model).set_params(max_grad_norm=1e6, fit_intercept=False, max_iter=70)

            def shift(d, bound=bound, lipschitz=lipschitz or 1e300):
                return (bound * d.mass + min(lipschitz * d.total, 2 * bound * d.moved)) / N

            distances = (ONE, DRIFT, CAPPED) if lipschitz else (ONE, CAPPED)
            yield Case(f"{name}, not clipped", free, shift, distances, 70)


def newton():
    """Of ``mu²`` histograms, moments and curvatures have these shares, and gradients the rest."""
    for model, curved in ((M.LogisticRegression((0, 1)), 0.08), (M.LinearSVC((0, 1)), 0.08), (M.Ridge((0, 1)), 0.0)):
        share = 0.17 + 0.83 * curved

        def shift(d, share=share):
            replaced, single = d.replaced + d.moved, d.toggled
            semidefinite, gradient = replaced + single / math.sqrt(2), replaced + single / 2
            return 2 / N * math.hypot(math.sqrt(share) * semidefinite, math.sqrt(1 - share) * gradient)

        for steps in (3, 100):
            asked = clone(model).set_params(solver="newton", max_iter=steps)
            yield Case(f"newton, {type(model).__name__}, {steps} steps", asked, shift, (ONE, DRIFT, CAPPED), 3 + steps)


def minimisers():
    """Converged: by strong convexity 1/alpha times what the sum of gradients changes by."""
    for name, bound in (("logistic", expit(0.8)), ("ridge", 1.5)):
        model = clone(MODELS[name][0]).set_params(
            solver="output", alpha=20.0, max_grad_norm=1e6, fit_intercept=False, max_iter=10**5
        )
        yield Case(
            f"{name}, minimiser", model, lambda d, bound=bound: bound * d.mass / 20.0, (ONE, Distance(toggled=3))
        )


def epochs():
    """The replaced row is in one batch of each epoch; per answer, the root of the mean square."""
    for passes, size in ((1, 10), (4, 250), (1000, 100)):
        model = M.LogisticRegression((0, 1), solver="epochs", batch_size=size, max_iter=passes, max_grad_norm=0.1)

        def shift(d, size=size):
            return 0.1 * d.mass / size / math.sqrt(N / size)

        distances = (ONE, Distance(replaced=2, toggled=1))
        yield Case(f"{passes} epochs of {size}", model, shift, distances, passes * N // size)


GAUSSIAN = [*queries(), *moments(), *trainings(), *newton(), *minimisers(), *epochs()]
MU = {
    (epsilon, delta): gaussian_mu(epsilon, delta)
    for epsilon, delta in ((1e-3, 1e-9), (1e-3, 1e-3), (1.0, 1e-6), (50.0, 1e-9), (50.0, 1e-3))
}


@pytest.mark.parametrize("case", GAUSSIAN, ids=lambda case: case.name)
def test_gaussian_mechanisms_cost_what_the_closed_form_says(case):
    """Within a tenth of a per cent, rounding and lattice included."""
    for distance in case.distances:
        for (epsilon, delta), mu in MU.items():
            noise_scale = math.sqrt(case.steps) * case.shift(distance) / mu
            found = priced(case.mechanism, case.domain, distance, noise_scale).epsilon(delta)
            assert epsilon <= found * BELOW
            assert found <= epsilon * EXACT


# --------------------------------------------------------------------------------------- Laplace and exponential


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 50.0])
@pytest.mark.parametrize("query", ["sum", "mean", "count", "histogram", "rows"])
@pytest.mark.repeated("epsilon")
def test_laplace_is_pure_and_cheaper_at_some_delta(query, epsilon):
    shift = {"sum": 2.0, "mean": 2.0 / N, "count": 1, "histogram": 2, "rows": 2.0}[query]
    mechanism = M.LaplaceMechanism(query, bins=2)
    loss = priced(mechanism, LINE, ONE, shift / epsilon)
    assert epsilon <= loss.epsilon(0.0) * BELOW
    assert loss.epsilon(0.0) <= epsilon * EXACT
    for delta in DELTAS:
        if query in ("count", "histogram"):
            delta_of = partial(whole_delta, shift, epsilon / shift)
        else:
            delta_of = lambda at: -math.expm1(min(at - epsilon, 0.0) / 2)  # noqa: E731
        truth = true_epsilon(delta_of, delta, epsilon)
        found = loss.epsilon(delta)
        assert truth <= found * BELOW
        assert found <= truth * NUMERIC


@pytest.mark.parametrize("distance", [Distance(replaced=2, toggled=1), Distance(moved=3, radius=0.2), CAPPED])
def test_laplace_shifts_are_those_of_the_worst_rows(distance):
    """On the line a row of norm 1 is worth 1, and three columns √3 times that, on the diagonal."""
    for domain, root in ((LINE, 1.0), (BALL, math.sqrt(3))):
        shift = root * (distance.mass + min(distance.total, 2 * distance.moved))
        found = priced(M.LaplaceMechanism("sum"), domain, distance, 7.0).epsilon(0.0)
        assert shift / 7 <= found * BELOW
        assert found <= shift / 7 * EXACT


@pytest.mark.parametrize(("shift", "count"), [(1e-3, 100), (0.06, 50), (0.02, 10_000), (0.5, 60)])
def test_many_laplace_numbers(shift, count):
    """As composed by a ledger."""
    loss = PrivacyLoss(parts=(ScalarLaplace(shift=shift, scale=1.0, count=count),))
    for delta in (1e-6, 1e-3):
        between(loss.epsilon(delta), partial(true_delta, laplace(shift), count, precision=1e-5), delta, NUMERIC, 1e-3)


@pytest.mark.parametrize("width", [1e-3, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("columns", [1, 3, 20, 200])
@pytest.mark.repeated("width")
def test_choices_cost_what_the_worst_choices_do(width, columns):
    """Quantiles of many columns, against choices of two outcomes that do not look at each other."""
    domain = Domain(n_rows=N, n_features=columns, row_norm=1.0)
    loss = priced(M.ExponentialMechanism(candidates=[-0.5, 0.5]), domain, ONE, 2 / width)
    assert columns * width <= loss.epsilon(0.0) * BELOW
    assert loss.epsilon(0.0) <= columns * width * EXACT
    for delta in DELTAS:
        truth = true_epsilon(partial(choices_delta, width, columns), delta, columns * width)
        if 1e-3 <= truth <= 50:
            found = loss.epsilon(delta)
            assert truth <= found * BELOW
            assert found <= truth * NUMERIC


def election():
    """A vote of every row for one of two."""

    def votes(X):
        return np.hstack([X > 0, X <= 0]).astype(float)

    return M.ExponentialMechanism("utility", candidates=["yes", "no"], utility=votes)


def test_a_choice_between_two_attains_it():
    """One of n rows changes its mind: the losses of the worst count of votes."""
    scale, delta = 20.0, 0.01
    lead = np.arange(-N, N - 1, 2) / scale  # of "yes" before and after
    p, q = expit(lead), expit(lead + 2 / scale)

    def delta_of(epsilon):
        ratio = math.exp(epsilon)
        laws = [(p, q), (q, p)]
        return max(
            float((np.maximum(a - ratio * b, 0) + np.maximum(b - a - (ratio - 1) * (1 - b), 0)).max()) for a, b in laws
        )

    truth = true_epsilon(delta_of, delta, 1.0)
    found = priced(election(), LINE, ONE, scale).epsilon(delta)
    assert truth <= found * BELOW
    assert found <= truth * 1.001


# ------------------------------------------------------------------------------------------------ sampled solvers

SAMPLES = [  # batch of 10,000 rows, noise on the sum over the clip, steps
    (100, 0.7, 300),
    (100, 2.0, 10_000),
    (100, 200.0, 10_000),
    (2000, 1.5, 1000),
    (2000, 20.0, 50),
    (2000, 500.0, 200),
    (10_000, 40.0, 100),
]
ROWS = Domain(n_rows=10_000, n_features=3, row_norm=1.0)


def sampled(solver, batch, noise, steps, **parameters):
    model = M.LogisticRegression(
        (0, 1), solver=solver, batch_size=batch, max_iter=steps, max_grad_norm=0.5, **parameters
    )
    return partial(priced, model, ROWS, noise_scale=noise * 0.5 / batch)


@pytest.mark.parametrize(("batch", "noise", "steps"), SAMPLES)
@pytest.mark.repeated("batch", "noise", "steps", keep=4)
def test_poisson_samples(batch, noise, steps):
    law = gaussian(2 / noise) if batch == 10_000 else poisson(batch / 10_000, noise)
    loss = sampled("poisson", batch, noise, steps)(distance=ONE)
    for delta in DELTAS:
        epsilon = loss.epsilon(delta)
        if epsilon < 60:
            between(epsilon, partial(true_delta, law, steps), delta, NUMERIC)


@pytest.mark.parametrize(("batch", "noise", "steps"), [(100, 2.0, 1000), (2000, 40.0, 500)])
def test_poisson_samples_where_toggled_rows_have_two_directions(batch, noise, steps):
    rate = batch / 10_000
    laws = [poisson(rate, noise, rows=rows) for rows in ((1, 0), (0, 1))]
    loss = sampled("poisson", batch, noise, steps)(distance=Distance(toggled=1))
    for delta in (1e-9, 1e-5):
        between(loss.epsilon(delta), lambda at: max(true_delta(law, steps, at) for law in laws), delta, NUMERIC)


@pytest.mark.parametrize(
    ("batch", "noise", "steps", "moved", "radius"),
    [(100, 2.0, 1000, 300, 2e-3), (500, 20.0, 10_000, 50, 0.01), (500, 20.0, 300, 200, 9.0)],
)
@pytest.mark.repeated("batch", "noise", "steps", "moved", "radius", keep=2)
def test_poisson_samples_with_moved_rows(batch, noise, steps, moved, radius):
    """Never below the exact composition of the dominating pairs, and hardly above; and above a pair of datasets.

    That pair: all moved rows move along the replaced one, from one side of zero to the other.
    """
    rate, k = batch / 10_000, np.arange(moved + 1)
    parameters = {"fit_intercept": False, "max_coef_norm": 1.0}
    loss = sampled("poisson", batch, noise, steps, **parameters)(
        distance=Distance(replaced=1, moved=moved, radius=radius)
    )
    part = loss.parts[0].to_dict()
    each = min(part["lipschitz"] * radius / 0.5, 2.0)
    between(loss.epsilon(1e-6), partial(true_delta, poisson(rate, noise, moved=moved, each=each), steps), 1e-6, NUMERIC)
    weights = np.outer([1 - rate, rate], binom.pmf(k, moved, rate)).ravel()
    means = np.add.outer([0.0, 1.0], k * each / 2).ravel() / noise
    heavy = weights > 1e-13
    pair = Law(mixtures(weights[heavy], means[heavy], weights[heavy], -means[heavy]))
    assert true_delta(pair, steps, loss.epsilon(1e-6)) <= 1e-6


@pytest.mark.parametrize(("batch", "noise", "steps"), [(100, 2.0, 10_000), (100, 0.8, 2000), (2000, 40.0, 3000)])
def test_batches_of_fixed_size(batch, noise, steps):
    law = fixed_size(batch / 10_000, 2 / noise)
    loss = sampled("fixed-size", batch, noise, steps)(distance=ONE)
    for delta in DELTAS:
        between(loss.epsilon(delta), partial(true_delta, law, steps), delta, NUMERIC)


def test_batches_of_fixed_size_with_moved_rows_cost_what_a_pair_that_moves_does():
    """Row 0 on both sides of zero, all others move from where it ends towards where it begins."""
    batch, noise, steps, rate = 500, 20.0, 1000, 0.05
    loss = sampled("fixed-size", batch, noise, steps, fit_intercept=False)(
        distance=Distance(replaced=1, moved=9999, radius=1e-3)
    )
    each = loss.parts[0].lipschitz * 1e-3 / 0.5
    means = np.array([batch * each, 2 + (batch - 1) * each]) / noise
    pair = Law(mixtures(np.array([1 - rate, rate]), means, np.ones(1), np.zeros(1)))
    for delta in DELTAS:
        between(loss.epsilon(delta), partial(true_delta, pair, steps), delta, NUMERIC)


@pytest.mark.parametrize("noise", [0.5, 3.0, 400.0])
@pytest.mark.repeated("noise", keep=2)
def test_a_hidden_pass(noise):
    """Above a pass that forgets nothing, its time secret; and what the best order of the curve gives."""
    batch, passes = 100, 100
    shift = 2 / noise
    loss = sampled("hidden", batch, noise, 1, learning_rate=0.1)(distance=ONE)
    times = np.arange(1, passes + 1)
    x = np.linspace(-30, 30 + shift, 40_001) * 10
    cell = x[1] - x[0]
    left, right = (
        np.mean([np.exp(-((x - at) ** 2) / (2 * t)) / math.sqrt(2 * math.pi * t) for t in times], axis=0) * cell
        for at in (0.0, shift)
    )
    orders = 1 + np.geomspace(1e-3, 1e5, 4000)[:, None]
    exponents = orders * (orders - 1) * shift**2 / 2 / times
    top = exponents.max(axis=1, keepdims=True)
    curve = (top[:, 0] + np.log(np.exp(exponents - top).mean(axis=1))) / (orders[:, 0] - 1)
    for delta in DELTAS:
        found = loss.epsilon(delta)
        if noise < 100:  # beyond, what is left is rounding of the quadrature
            assert np.maximum(left - math.exp(found) * right, 0).sum() <= delta
            assert np.maximum(right - math.exp(found) * left, 0).sum() <= delta
        a = orders[:, 0]
        best = (curve + np.log1p(-1 / a) - (math.log(delta) + np.log(a)) / (a - 1)).min()
        assert max(best, 0.0) <= found * (1 + 1e-3)
        assert found <= max(best, 0.0) * NUMERIC + 1e-12


def test_the_transform_of_a_gaussian_gives_its_closed_form():
    """The reference itself."""
    for epsilon in (0.01, 1.0, 7.0):
        closed = ndtr(0.5 - epsilon) - math.exp(epsilon) * ndtr(-0.5 - epsilon)
        assert true_delta(gaussian(0.01), 10_000, epsilon) == pytest.approx(closed, rel=1e-8)


def test_every_formula_of_a_mechanism_is_looked_at():
    """In this file, or in tests of its own; what other libraries cost is tested beside them."""
    examples = [(case.mechanism, case.domain) for case in GAUSSIAN]
    examples += [(M.LaplaceMechanism(query, bins=2), LINE) for query in ("sum", "mean", "count", "histogram", "rows")]
    examples += [(M.ExponentialMechanism(candidates=[0, 1]), LINE), (election(), LINE)]
    examples += [(M.SignMechanism(flips), LINE) for flips in FLIPS]
    examples += [(M.SignMechanism("angle", n_signs=3), LINE)]
    examples += [(M.LogisticRegression((0, 1), solver=solver), ROWS) for solver in ("poisson", "fixed-size", "hidden")]
    examples += [(M.LogisticRegression((0, 1), solver=solver, rank=1), ROWS) for solver in ("m2", "lora-fa")]
    examples += [(M.WishartMechanism(20, 0.97), ROWS), (M.GaussianSketch(5), ROWS), (M.GaussianSketch(5, 0.1), ROWS)]
    examples += [(M.Ridge((0, 1), solver="sketch"), ROWS)]
    seen = {mechanism.query_spec(domain).formula for mechanism, domain in examples}
    mechanisms = {f.id for f in FORMULAS.values() if f.kind in ("mechanism", "privacy")}
    others = {name for name in mechanisms - seen if not name.startswith(("diffprivlib.", "lora."))}
    assert all(held_alone(*FORMULAS[name].used_by, f'"{name}"') for name in others)
