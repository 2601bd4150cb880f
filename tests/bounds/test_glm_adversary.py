"""Models with a log link, and least squares from second moments, against an adversary."""

import math

import numpy as np
import pytest
from adversary import DISTANCES, World, attack, named
from effort import found
from neighbours import ROUNDING, Pair
from slopes import Slopes
from steering import gradient_at

from ppdp import Adjacency, Distance, Domain, Pipeline
from ppdp.bounds.learning import augmented_norm, target_shares, target_unit, tweedie_slope, tweedie_smoothness
from ppdp.bounds.moments import gradient_weight
from ppdp.core.formula import lookup
from ppdp.data.rows import Rows
from ppdp.mechanisms import Ridge
from ppdp.mechanisms.learn.descent import ClippedGradient
from ppdp.mechanisms.learn.moments import mean_moments
from ppdp.mechanisms.learn.regression import TweedieRegressor

STEP = 1e-6
POWERS = [1.0, 1.3, 1.5, 2.0]
SHARES = (0.5, 3.0)


def slopes(power, R, D, C, intercept, rng, count=700):
    """Rows, half of them along their coefficients and moving outward."""
    y = rng.choice(SHARES, count)
    theta = rng.standard_normal((count, 2 + intercept))
    X, move = rng.standard_normal((count, 2)), rng.standard_normal((count, 2))
    along = rng.random(count) < 0.5
    X[along] = theta[along, :2] * rng.choice([-1.0, 1.0], (along.sum(), 1))
    theta[:, 2:] *= rng.choice([0.0, 1.0], (count, int(intercept)))
    move[along] = X[along]
    point = [10 * D * theta[:, None], X * rng.choice([0.3, 10.0 * R], (count, 1)), move]
    model = TweedieRegressor(power=power)
    return Slopes(lambda scores: model._residuals(scores, y), point, R, D, C, intercept, STEP)


def smoothness(power, norm, D, C, intercept):
    return tweedie_smoothness(norm, D, power=power, shares=SHARES, clip=C, least_norm=float(intercept))


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "no intercept"])
@pytest.mark.parametrize(("R", "D"), [(0.5, 1.0), (1.0, 1.0), (1.0, 3.0), (2.0, 2.0)])
@pytest.mark.repeated("R", "D")
def test_no_row_has_a_steeper_gradient(power, intercept, R, D):
    rng = np.random.default_rng(0)
    norm = augmented_norm(R, intercept)
    natural = norm * tweedie_slope(norm * D, SHARES, power)
    for share in (0.03, 0.3, 1.0):
        clip = share * natural
        bound = smoothness(power, norm, D, clip, intercept)
        reached, largest = slopes(power, R, D, clip, intercept, rng).climb(rng)
        assert reached <= bound * (1 + 1e-4)  # a quotient over a step of 1e-6 is that exact
        assert 0.95 * natural <= largest <= natural * ROUNDING
        assert reached >= (0.45 if intercept else 0.7) * bound


def test_known_constants():
    """Without a clip that binds, of counts and amounts."""
    K, free = 6.0, {"clip": 1e9, "least_norm": 0.0}
    counts = tweedie_smoothness(2.0, 3.0, power=1.0, shares=(0.5, 8.0), **free)
    assert counts == pytest.approx(math.exp(K) * (1 + K) - 0.5)
    amounts = tweedie_smoothness(2.0, 3.0, power=2.0, shares=(0.5, 8.0), **free)
    assert amounts == pytest.approx(8 * math.exp(K) * (1 + K) - 1)
    clipped = tweedie_smoothness(2.0, 3.0, power=1.0, shares=(0.0, 8.0), clip=1.0, least_norm=0.0)
    assert clipped == pytest.approx(1 / 2 + K * (8 + 1 / 2))


def test_a_clip_never_makes_the_constant_larger_and_no_grid_finds_more():
    """The maximum over the norm of a row is the largest of a thousand values on a grid."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        norm, D, high = rng.uniform(0.05, 4, 3)
        power, least = rng.uniform(1, 2), rng.uniform(0, norm)
        rising, falling = 2 - power, power - 1
        found = []
        for clip in np.geomspace(0.01, 1e4, 12):
            L = tweedie_smoothness(norm, D, power=power, shares=(0.0, high), clip=clip, least_norm=least)
            r = np.linspace(max(least, 1e-3), norm, 1000)
            slope = np.maximum(np.exp(rising * r * D), high * np.exp(falling * r * D) - np.exp(-rising * r * D))
            curvature = rising * np.exp(rising * r * D) + falling * high * np.exp(falling * r * D)
            curvature = np.minimum(curvature, high**rising + max(rising, falling) * clip / r)
            grid = np.minimum(slope, clip / r) + r * D * curvature
            assert grid.max() <= L * (1 + 1e-12)
            found.append(L)
        assert found == sorted(found)


RANGE = (0.0, 4.0)


def use(power, domain, distance, theta, **parameters):
    model = TweedieRegressor(RANGE, power=power, max_iter=2, learning_rate=1.0, **parameters)
    question = model.query_spec(domain)
    bound = question.sensitivity(domain, distance)

    def gradient(rows):
        ends = Rows(rows.X, 2.0 * rows.y - 1.0, rows.weight)  # of the range of y
        return gradient_at(theta, model, question, ends)

    return lambda pair: float(np.linalg.norm(gradient(pair.left) - gradient(pair.right))) / bound


@pytest.mark.parametrize("power", POWERS)
def test_scores_beyond_all_measure_do_no_harm(power):
    """The exponential of a score neither overflows nor turns a clipped gradient into nothing."""
    domain = Domain(n_rows=4, n_features=2, row_norm=1e3)
    X = np.zeros((4, 2))
    X[0] = [1e3, 0.0]
    theta = np.array([1e4, 0.0])
    distance = Adjacency.replace().distance
    for sign in (1, -1):
        ratio = use(power, domain, distance, sign * theta, fit_intercept=False, max_grad_norm=2.0, max_coef_norm=1e4)
        assert ratio(Pair.of(X, -X, (np.ones(4), np.ones(4)))) <= ROUNDING
    model = TweedieRegressor(RANGE, power=power)
    slopes = model._residuals(np.array([[1e7], [-1e7], [0.0]]), np.array([8.0, 8.0, 0.0]))
    assert np.isfinite(slopes).all()


def test_formula_charges_this_constant():
    """One row that moves a little costs L / n."""
    domain, moved = Domain(n_rows=10, n_features=2, row_norm=2.0), Distance(moved=1, radius=1e-3)
    own = {"clip": 0.8, "coef_norm": 3.0, "fit_intercept": True, "y_range": RANGE, "power": 1.5}
    found = lookup("learning.glm-gradient", "mechanism")(domain, moved, **own)
    L = tweedie_smoothness(math.sqrt(5), 3.0, power=1.5, shares=(0.0, 8.0), clip=0.8, least_norm=1.0)
    assert found == pytest.approx(L * 1e-3 / 10, rel=1e-6)


def test_targets_are_shares_of_a_public_unit():
    assert (target_unit((0.0, 20.0)), target_shares((0.0, 20.0))) == (2.5, (0.0, 8.0))
    assert (target_unit((10.0, 12.0)), target_shares((10.0, 12.0))) == (10.0, (1.0, 1.2))


N = 8
DOMAIN = Domain(n_rows=N, n_features=2, row_norm=1.0, max_missing=0)
TARGETS = np.array([-1.0, 1.0])


def asked(**parameters):
    model = Ridge(y_range=(-1, 1), solver="moments", **parameters)
    return model, model.query_spec(DOMAIN, 1.0)


def moments_use(distance, thetas, **parameters):
    """The most by which an answer of a pair differs, over what is charged."""
    model, question = asked(**parameters)
    bound, p = question.sensitivity(DOMAIN, distance), question.parameters
    weight = gradient_weight(p["norm"], p["gradient_clip"])

    def answers(rows):
        rows = Rows(rows.X, TARGETS[rows.y.astype(int)], rows.weight)
        gradient = ClippedGradient.of(rows, model._residuals, p["gradient_clip"], p["fit_intercept"])
        return mean_moments(rows, p), [weight * gradient(theta[None, : gradient.width])[0] for theta in thetas]

    def ratio(pair):
        (moments, gradients), (others, away) = answers(pair.left), answers(pair.right)
        assert np.abs(moments).max() <= question.bound * ROUNDING
        assert moments.size == question.size
        apart = max(np.linalg.norm(one - other) for one, other in zip(gradients, away))
        return max(float(np.linalg.norm(moments - others)), float(apart) * (p["refinements"] > 0)) / bound

    return ratio


@pytest.mark.parametrize("distance", DISTANCES, ids=named)
def test_no_pair_exceeds_the_sensitivity(distance):
    world = World(DOMAIN, distance, labels=True, deleted=True)
    thetas = np.random.default_rng(0).normal(size=(3, 3))
    thetas *= 2 / np.linalg.norm(thetas, axis=1, keepdims=True)
    for intercept, answers in ((True, 5), (False, 1)):
        ratio = moments_use(distance, thetas, fit_intercept=intercept, max_iter=answers)
        reached, _ = attack(world, ratio, draws=6, steps=10)
        assert reached <= ROUNDING


@pytest.mark.parametrize(("distance", "attained"), [(Distance(replaced=1), 0.999), (Distance(toggled=1), 0.999)])
def test_rows_at_right_angles_attain_it(distance, attained):
    X = np.zeros((N, 2))
    X[0] = [1.0, 0.0]
    Z = np.zeros((N, 2))
    Z[0] = [0.0, 1.0]
    _, question = asked(fit_intercept=False, max_iter=1)
    p = {**question.parameters, "target_weight": 1e-9}
    weights = np.ones(N), np.r_[0.0, np.ones(N - 1)] if distance.toggled else np.ones(N)
    moments = [mean_moments(Rows(x, np.ones(N), w), p) for x, w in zip((X, X if distance.toggled else Z), weights)]
    reached = np.linalg.norm(moments[0] - moments[1]) / question.sensitivity(DOMAIN, distance)
    assert attained < found(reached) <= ROUNDING


def test_mu_is_that_of_moments_and_gradients_together():
    _, question = asked()
    p, one = question.parameters, Distance(replaced=1)
    mu = question.loss(question.sensitivity(DOMAIN, one), 1.0).mu
    moments, gradients = math.sqrt(2) * p["norm"] ** 2 / N, 2 * p["gradient_clip"] / N
    assert gradient_weight(p["norm"], p["gradient_clip"]) * gradients == pytest.approx(moments)
    assert mu == pytest.approx(math.sqrt(5) * moments, rel=1e-6)


def test_without_much_noise_it_is_least_squares():
    rng = np.random.default_rng(1)
    X = rng.uniform(-0.5, 0.5, (4000, 3))
    y = X @ [0.4, -0.3, 0.2] + 0.1 + 0.05 * rng.normal(size=4000)
    domain = Domain(n_rows=4000, n_features=3, row_norm=math.sqrt(3), max_missing=0)
    for solver, steps in (("moments", 5), ("newton", 4)):
        model = Ridge((-1, 1), solver=solver, max_iter=steps)
        fitted = Pipeline([("model", model)], domain=domain, epsilon=10.0, delta=1e-5, random_state=0).fit(X, y)
        ridge = fitted.named_steps["model"]
        assert ridge.coef_ == pytest.approx([0.4, -0.3, 0.2], abs=0.02)
        assert ridge.intercept_ == pytest.approx(0.1, abs=0.02)
        assert (ridge.solver, ridge.n_iter_) == (solver, steps)
        assert fitted.certificate_.verify()


def test_the_model_stays_in_its_ball_whatever_the_noise():
    model = Ridge((-1, 1), solver="moments", noise_scale=1e3, random_state=0)
    rng = np.random.default_rng(2)
    model.fit(rng.uniform(-1, 1, (50, 3)), rng.uniform(-1, 1, 50))
    assert np.hypot(np.linalg.norm(model.coef_), model.intercept_) <= 2 * 1.01


def test_moved_rows_and_added_ones_are_charged():
    _, question = asked()
    near, far = (question.sensitivity(DOMAIN, Distance(moved=2, radius=radius)) for radius in (0.01, 0.1))
    assert 0 < near < far
    added = Adjacency.add_remove(1).distance
    assert question.sensitivity(DOMAIN, added) < question.sensitivity(DOMAIN, Distance(replaced=1))
