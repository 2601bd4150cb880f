"""Least squares from second moments against an adversary: every answer of every pair, at any coefficients."""

import math

import numpy as np
import pytest
from adversary import DISTANCES, World, attack, named
from effort import found
from neighbours import ROUNDING

from ppdp import Adjacency, Distance, Domain, Pipeline, PrivacyLoss
from ppdp.bounds.moments import gradient_weight
from ppdp.core.formula import lookup
from ppdp.data.rows import Rows
from ppdp.exceptions import CertificateError, InvalidParameter
from ppdp.mechanisms import Ridge
from ppdp.mechanisms.learn.descent import ClippedGradient
from ppdp.mechanisms.learn.moments import mean_moments
from ppdp.testing import check_mechanism

N = 8
DOMAIN = Domain(n_rows=N, n_features=2, row_norm=1.0, max_missing=0)
TARGETS = np.array([-1.0, 1.0])


def asked(**parameters):
    model = Ridge(y_range=(-1, 1), solver="moments", **parameters)
    return model, model.question(DOMAIN, 1.0)


def use(distance, thetas, **parameters):
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
        ratio = use(distance, thetas, fit_intercept=intercept, max_iter=answers)
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


@pytest.mark.parametrize("wrong", [{"refinements": -1}, {"norm": 0.0}, {"target_weight": -1.0}])
def test_impossible_parameters_are_refused(wrong):
    _, question = asked()
    with pytest.raises(CertificateError):
        lookup("learning.squared-moments", "mechanism")(
            DOMAIN, Distance(replaced=1), **{**question.parameters, **wrong}
        )


def test_bad_parameters_are_errors_before_anything_is_spent():
    for wrong in ({"max_iter": 0}, {"alpha": -1.0}, {"coef_norm": 0.0}, {"solver": "svd"}):
        with pytest.raises(InvalidParameter):
            Ridge((-1, 1), **{"solver": "moments", **wrong}).question(DOMAIN)


def test_it_keeps_the_contract():
    domain = Domain(n_features=2, y_range=(0.0, 1.0))
    check_mechanism(Ridge(solver="moments", noise_scale=0.01, max_iter=2), domain, pairs=2, climbs=4, runs=60)


def test_calibration_is_exact():
    model = Ridge((-1, 1), solver="moments").calibrate(DOMAIN, Distance(replaced=1), PrivacyLoss(0.5))
    assert model.privacy_map(DOMAIN, Distance(replaced=1)).mu == pytest.approx(0.5, rel=1e-5)
