"""Gradients of every loss against an adversary, in one row (true slopes) and in neighbouring datasets."""

import math
from functools import partial

import numpy as np
import pytest
from adversary import DISTANCES, World, attack, domains, named
from neighbours import ROUNDING, Pair
from slopes import Slopes
from steering import gradient_at

from ppdp.bounds import learning
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import lookup
from ppdp.data.rows import Rows
from ppdp.exceptions import CertificateError
from ppdp.mechanisms import LinearRegression, LinearSVC, LogisticRegression, Ridge
from ppdp.mechanisms.learn.regression import TweedieRegressor

STEP = 1e-5

MODELS = {
    "squared": lambda **k: LinearRegression(y_range=(-1, 1), **k),
    "hinge": lambda **k: LinearSVC((0, 1), smoothing=0.4, **k),
    "logistic": lambda **k: LogisticRegression((0, 1), **k),
    "softmax": lambda **k: LogisticRegression((0, 1, 2), **k),
}
LINKS = {
    name: partial(TweedieRegressor, (0.0, 4.0), power=power)
    for name, power in (("counts", 1.0), ("between", 1.5), ("amounts", 2.0))
}
ENDS = (-1.0, 1.0)  # of the range of y
ANSWERS = {"squared": ENDS, "hinge": (0.0, 1.0), "logistic": (0.0, 1.0), "softmax": (0.0, 1.0, 2.0)}
SCORES = dict.fromkeys([*MODELS, *LINKS], 1) | {"softmax": 3}
CLOSE = {"squared": 0.85, "hinge": 0.7, "logistic": 0.8, "softmax": 0.6}
"""How much of the Lipschitz constant is reached: the hinge's two parts point apart where the margin is small against K,
the softmax's p - e_y and the change of p are nearly orthogonal."""


def lipschitz(loss, norm, D, C, intercept):
    """The constant that the loss's formula charges for rows that have moved, read off the formula itself."""
    least = 1.0 if intercept else 0.0
    if loss == "logistic":
        return learning.logistic_smoothness(norm, D, C, least)
    shape = {
        "squared": {"slope": 1.0, "curvature": 1.0, "growth": 1.0},
        "hinge": {"slope": 1.0, "curvature": 1 / 0.8},
        "softmax": {"slope": math.sqrt(2), "curvature": 0.5},
    }[loss]
    return learning.glm_smoothness(norm, D, clip=C, least_norm=least, **shape)


def slopes(loss, R, D, C, intercept, rng, count=700):
    """Rows, half of them along their coefficients, on the sphere, moving outward or across."""
    shape = (count, SCORES[loss], 2 + intercept)
    y = rng.choice(ANSWERS[loss], count)
    theta = rng.standard_normal(shape) * rng.choice([0.0, 1.0], shape, p=[0.3, 0.7])
    X, move = rng.standard_normal((count, 2)), rng.standard_normal((count, 2))
    along = rng.random(count) < 0.5
    X[along] = theta[along, 0, :2] * rng.choice([-1.0, 1.0], (along.sum(), 1))
    move[along] = X[along]
    point, model = [theta, X * rng.uniform(0, 2, (count, 1)), move], MODELS[loss]()
    return Slopes(lambda scores: model._residuals(scores, y), point, R, D, C, intercept, STEP)


@pytest.mark.parametrize("loss", MODELS)
@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "no intercept"])
@pytest.mark.parametrize(("R", "D"), [(0.5, 1.0), (1.0, 0.5), (1.0, 2.0), (2.0, 3.0), (4.0, 8.0)])
@pytest.mark.repeated("R", "D")
def test_no_row_has_a_steeper_gradient(loss, intercept, R, D):
    rng = np.random.default_rng(0)
    norm = learning.augmented_norm(R, intercept)
    natural = {
        "squared": norm * (1 + norm * D),
        "hinge": norm,
        "logistic": learning.logistic_gradient_norm(norm, D),
        "softmax": learning.softmax_gradient_norm(norm, D, 3),
    }[loss]
    for share in (0.3, 0.7, 1.0):
        clip = share * natural
        bound = lipschitz(loss, norm, D, clip, intercept)
        reached, largest = slopes(loss, R, D, clip, intercept, rng).climb(rng)
        assert reached <= bound * (1 + 1e-4)  # a quotient over a step of 1e-5 is that exact
        assert largest <= natural * ROUNDING
        if share == 1.0 and (loss != "hinge" or norm * D > 1):  # below, no margin reaches the quadratic part
            assert reached >= CLOSE[loss] * bound * (0.75 if intercept else 1) * (0.5 if R == 4 else 1)
            assert largest >= 0.75 * natural


def test_formulas_charge_these_constants():
    """One row that moves a little costs L / n."""
    domain, moved = Domain(n_rows=10, n_features=2, row_norm=2.0), Distance(moved=1, radius=1e-3)
    common = {"clip": 0.8, "coef_norm": 3.0, "fit_intercept": True}
    own = {"squared": {"y_range": (-1, 1)}, "hinge": {"smoothing": 0.4}, "softmax": {"n_classes": 3}}
    for loss, more in own.items():
        found = lookup(f"learning.{loss}-gradient", "mechanism")(domain, moved, **common, **more)
        expected = lipschitz(loss, math.sqrt(5), 3.0, 0.8, True) * 1e-3 / 10
        assert found == pytest.approx(expected, rel=1e-6)


def test_known_constants():
    K, Y = 6.0, 1.0
    assert learning.glm_smoothness(2.0, 3.0, slope=Y, curvature=1.0, growth=1.0) == pytest.approx(2 * K + Y)
    assert learning.glm_smoothness(2.0, 3.0, slope=1.0, curvature=1 / (2 * 0.25)) == pytest.approx(1 + K / 0.5)
    assert learning.glm_smoothness(2.0, 3.0, slope=math.sqrt(2), curvature=0.5) == pytest.approx(math.sqrt(2) + K / 2)


def test_a_clip_never_makes_the_constant_larger():
    rng = np.random.default_rng(0)
    for _ in range(300):
        norm, D, slope, curvature, growth = rng.uniform(0.05, 5, 5)
        least = rng.uniform(0, norm)
        free = learning.glm_smoothness(norm, D, slope=slope, curvature=curvature, growth=growth)
        clips = [
            learning.glm_smoothness(norm, D, slope=slope, curvature=curvature, growth=growth, clip=c, least_norm=least)
            for c in np.linspace(0.01, norm * (slope + growth * D * norm), 30)
        ]
        assert clips == sorted(clips)
        assert clips[-1] <= free * ROUNDING


def use(loss, domain, distance, theta, **parameters):
    model = (MODELS | LINKS)[loss](max_iter=2, learning_rate=1.0, **parameters)
    question = model.query_spec(domain)
    bound = question.sensitivity(domain, distance)
    answers = np.array(ANSWERS.get(loss, ENDS))

    def gradient(rows):
        return gradient_at(theta, model, question, Rows(rows.X, answers[rows.y.astype(int)], rows.weight))

    return lambda pair: float(np.linalg.norm(gradient(pair.left) - gradient(pair.right))) / bound


@pytest.mark.parametrize("loss", SCORES)
@pytest.mark.parametrize("domain", domains(8, 1, 3, max_missing=0)[::2], ids=named)
@pytest.mark.parametrize("distance", DISTANCES, ids=named)
@pytest.mark.repeated("domain", "loss", keep=5)
def test_no_pair_exceeds_the_sensitivity_of_a_step(loss, domain, distance):
    world = World(domain, distance, labels=True, deleted=True)
    rng = np.random.default_rng(0)
    for intercept, clip, coef_norm in ((True, 10.0, 0.6), (False, 0.3, 2.0), (True, 1.0, 5.0)):
        width = SCORES[loss] * (domain.d + intercept)
        theta = rng.standard_normal(width)
        theta *= coef_norm * rng.choice([0.5, 1.0]) * math.sqrt(SCORES[loss]) / np.linalg.norm(theta)
        towards = theta[: domain.d] / np.linalg.norm(theta[: domain.d])
        X = np.tile(domain.row_norm * towards, (8, 1))
        first = [Pair.of(X * sign, -X * sign, (np.full(8, y),) * 2) for sign in (1, -1) for y in (0, 1)]
        ratio = use(loss, domain, distance, theta, fit_intercept=intercept, max_grad_norm=clip, max_coef_norm=coef_norm)
        reached, _ = attack(world, ratio, draws=5, steps=6, first=first)
        assert reached <= ROUNDING


@pytest.mark.parametrize("loss", [loss for loss in SCORES if loss != "between"])
@pytest.mark.parametrize(
    ("distance", "other", "clip"),
    [
        (Distance(replaced=1), [-1.0, 0.0], 0.1),
        (Distance(toggled=1), None, 0.1),
        (Distance(toggled=1), None, 1e4),
        (Distance(moved=1, radius=1e-4), "moved", 1e4),
    ],
    ids=["reversed", "removed", "not clipped", "moved"],
)
def test_every_part_of_the_distance_is_nearly_attained(loss, distance, other, clip):
    """A reversed row is clipped; one that moves along its coefficients is not.

    The hinge is steepest where the coefficients are large and nearly orthogonal to the row.
    """
    domain = Domain(n_rows=5, n_features=2, row_norm=1.0)
    coef_norm = {"squared": 1.0, "hinge": 6.0, "logistic": 1.0, "softmax": 0.5}.get(loss, 3.0)
    towards = np.array([0.12, math.sqrt(1 - 0.12**2)] if loss == "hinge" else [1.0, 0.0])
    X, Z = np.zeros((5, 2)), np.zeros((5, 2))
    X[0] = [0.9999 if distance.moved else 1.0, 0.0]
    Z[0] = X[0] + 1e-4 * towards if distance.moved else other or [0.0, 0.0]
    label = 0.0 if loss in ("squared", "logistic", "counts") else 1.0
    pair = Pair.of(X, Z, (np.full(5, label),) * 2)
    if other is None:
        pair.right.weight[0] = 0.0
    theta = np.zeros(2 * SCORES[loss])
    if clip > 1:
        theta[:2] = coef_norm * math.sqrt(SCORES[loss]) * towards * (-1 if loss == "amounts" else 1)
    reached = use(loss, domain, distance, theta, fit_intercept=False, max_grad_norm=clip, max_coef_norm=coef_norm)(pair)
    least = {"hinge": 0.8, "softmax": 0.6}.get(loss, 0.999) if clip > 1 else 0.999
    assert least <= reached <= ROUNDING


def test_targets_and_range_must_fit():
    domain = Domain(n_rows=5, n_features=2, row_norm=1.0, y_range=(0.0, 1.0))
    common = {"clip": 1.0, "coef_norm": 1.0, "fit_intercept": True}
    assert isinstance(learning.squared_gradient(domain, y_range=(0.0, 1.0), **common), learning.Gradient)
    for impossible in ((0.0, 2.0), (1.0, 1.0)):
        with pytest.raises(CertificateError):
            learning.squared_gradient(domain, y_range=impossible, **common)
    assert Ridge(y_range=(0, 1)).query_spec(domain).parameters["y_range"] == (0.0, 1.0)
