"""Weights of rows against an adversary who chooses them too: no answer moves by more than is charged."""

import math

import numpy as np
import pytest
from adversary import Silence
from effort import found, rounds
from neighbours import ROUNDING
from steering import gradient_at

from ppdp import Distance, Domain
from ppdp.bounds.moments import gradient_weight
from ppdp.data.rows import Rows
from ppdp.data.weights import class_factors, read_weights
from ppdp.mechanisms import LinearSVC, LogisticRegression, PoissonRegressor, Ridge
from ppdp.mechanisms.learn.descent import ClippedGradient
from ppdp.mechanisms.learn.moments import mean_moments

N, D, CAP = 6, 2, 4.0
MODELS = {
    "logistic": lambda **own: LogisticRegression((0, 1), max_iter=2, learning_rate=1.0, **own),
    "softmax": lambda **own: LogisticRegression((0, 1, 2), max_iter=2, learning_rate=1.0, **own),
    "hinge": lambda **own: LinearSVC((0, 1), max_iter=2, learning_rate=1.0, **own),
    "squared": lambda **own: Ridge((-1, 1), max_iter=2, learning_rate=1.0, **own),
    "Poisson": lambda **own: PoissonRegressor((0, 1), max_iter=2, learning_rate=1.0, **own),
    "minimiser": lambda **own: LogisticRegression((0, 1), solver="output", alpha=3.0, max_iter=50, **own),
    "moments": lambda **own: Ridge((-1, 1), solver="moments", max_iter=3, **own),
}
ANSWERS = {"softmax": (0, 1, 2), "squared": (-1, 1), "moments": (-1, 1), "Poisson": (-1, 1)}
WEIGHTS = {"logistic": {0: 2.0, 1: 5.0}, "softmax": {2: 0.5}, "hinge": {0: 1e-3}, "minimiser": {1: 7.0}}
DISTANCES = [
    Distance(replaced=1),
    Distance(replaced=2),
    Distance(toggled=1),
    Distance(replaced=1, moved=2, radius=0.3),
    Distance(moved=3, radius=0.5),
]


def answered(kind, model, question, theta, rows):
    """An answer of the model, all of them where they do not depend on each other."""
    if kind == "minimiser":
        return model.release(rows, question, Silence(), 1.0)["theta"]
    if kind == "moments":
        p = question.parameters
        gradient = ClippedGradient.of(rows, model._residuals, p["gradient_clip"], p["fit_intercept"])
        weight = gradient_weight(p["norm"], p["gradient_clip"])
        return mean_moments(rows, p), weight * gradient(theta)
    return gradient_at(theta, model, question, rows)


def in_ball(X):
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)


class Pairs:
    """Pairs of rows at a distance, weights included, also those beyond the cap."""

    def __init__(self, distance, labels, rng):
        self.distance, self.labels, self.rng = distance, np.array(labels, dtype=np.float64), rng

    def side(self):
        X = self.rng.normal(size=(N, D)) * self.rng.choice([0.3, 1.0, 30.0])
        weights = self.rng.choice([0.0, 0.1, 1.0, CAP, 2 * CAP, np.inf, -1.0, np.nan], N)
        return [in_ball(X), self.rng.choice(self.labels, N), weights, np.ones(N)]

    def draw(self):
        return self.side(), self.side()

    def legal(self, pair):
        """Both sides as they stand, equal where no slot is free, and as near as rows may move."""
        (X, y, v, w), (Z, u, s, t) = ([part.copy() for part in side] for side in pair)
        free, moved = self.distance.replaced, self.distance.moved
        gone = free + self.distance.toggled
        u[gone:], s[gone:] = y[gone:], v[gone:]
        t[free:gone], Z[free:gone], u[free:gone] = 0.0, 0.0, 0.0
        near = slice(gone, gone + moved)
        apart = Z[near] - X[near]
        far = np.maximum(np.linalg.norm(apart, axis=1, keepdims=True), 1e-12)
        Z[near] = X[near] + apart * np.minimum(1.0, 0.999999 * self.distance.radius / far) if moved else Z[near]
        Z[gone + moved :] = X[gone + moved :]
        return [(X, y, v, w), (Z, u, s, t)]

    def varied(self, pair):
        sides = [[part.copy() for part in side] for side in pair]
        other = self.draw()
        for side, new in zip(sides, other):
            slot, part = self.rng.integers(N), self.rng.integers(3)
            side[part][slot] = new[part][slot]
            side[0] = in_ball(side[0] + 0.2 * self.rng.normal(size=(N, D)) * (self.rng.random((N, 1)) < 0.3))
        return sides


def rows_of(X, y, v, w, factors):
    factor, _ = read_weights(v, CAP, "repair")
    return Rows(X, y, w, factor=factor).settled().weighted(np.array(factors))


@pytest.mark.parametrize("distance", DISTANCES, ids=str)
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("by_class", [False, True], ids=["rows", "rows and classes"])
@pytest.mark.repeated("distance", keep=3)
def test_no_pair_with_weights_exceeds_the_sensitivity(kind, distance, by_class):
    weights = WEIGHTS.get(kind) if by_class else None
    if by_class and weights is None:
        pytest.skip("it learns no classes")
    rng = np.random.default_rng(0)
    model = MODELS[kind](max_grad_norm=0.3, max_coef_norm=1.0, **({"class_weight": weights} if weights else {}))
    labels = ANSWERS.get(kind, (0, 1))
    facts = {"classes": labels} if kind in ("logistic", "softmax", "hinge", "minimiser") else {}
    domain = Domain(n_rows=N, n_features=D, row_norm=1.0, max_weight=CAP, **facts)
    question = model.query_spec(domain)
    bound, pairs, most = question.sensitivity(domain, distance), Pairs(distance, labels, rng), 0.0
    shape = (question.parameters.get("n_classes", 1), D + 1)
    theta = rng.normal(size=shape)
    theta *= 0.9 / np.linalg.norm(theta)

    def ratio(pair):
        one, other = (answered(kind, model, question, theta, rows_of(*side, question.factors)) for side in pair)
        parts = zip(one, other) if kind == "moments" else [(one, other)]
        return max(float(np.linalg.norm(a - b)) for a, b in parts) / bound

    X, heavy = np.tile([1.0, 0.0], (N, 1)), np.full(N, CAP)
    first = [
        ((X * sign, np.full(N, a), heavy, np.ones(N)), (X * turned, np.full(N, b), heavy, np.ones(N)))
        for sign in (1, -1)
        for turned in (1, -1)
        for a in labels
        for b in labels
    ]
    best, draws, climbs = None, *((8, 30) if kind == "minimiser" else (20, 40))  # a minimum takes fifty steps
    for pair in [*first, *(pairs.draw() for _ in range(rounds(draws)))]:
        legal = pairs.legal(pair)
        value = ratio(legal)
        if value >= most:
            most, best = value, legal
    for _ in range(rounds(climbs)):
        legal = pairs.legal(pairs.varied(best))
        if (value := ratio(legal)) > most:
            most, best = value, legal
    assert found(most) <= ROUNDING
    if distance.replaced and not distance.moved and not by_class:
        assert most > (0.5 if kind == "minimiser" else 0.9)


def test_a_replaced_row_of_the_largest_weight_attains_the_bound():
    """Whatever the cap is; a row of half the weight reaches half of it."""
    for cap in (0.5, 4.0, 1e6):
        domain = Domain(n_rows=N, n_features=D, row_norm=1.0, max_weight=cap, classes=(0, 1))
        model = LogisticRegression((0, 1), max_grad_norm=0.1, max_iter=2, learning_rate=1.0, fit_intercept=False)
        question = model.query_spec(domain)
        bound = question.sensitivity(domain, Distance(replaced=1))
        X, y = np.tile([1.0, 0.0], (N, 1)), np.zeros(N)
        for part in (1.0, 0.5):
            rows = []
            for sign in (1.0, -1.0):
                own, weight = X.copy(), np.full(N, cap / 3)
                own[0], weight[0] = sign * X[0], part * cap
                rows.append(
                    Rows(own, y, np.ones(N), factor=read_weights(weight, cap, "error")[0]).weighted(np.empty(0))
                )
            one, other = (gradient_at(np.zeros((1, D)), model, question, side) for side in rows)
            assert np.linalg.norm(one - other) == pytest.approx(part * bound, rel=1e-6)


def test_a_cap_on_the_wrong_side_would_be_found():
    """Were weights not divided by the largest, a row would do more than is certified."""
    domain = Domain(n_rows=N, n_features=D, row_norm=1.0, max_weight=CAP, classes=(0, 1))
    model = LogisticRegression((0, 1), max_grad_norm=0.1, max_iter=2, learning_rate=1.0, fit_intercept=False)
    question = model.query_spec(domain)
    X = np.tile([1.0, 0.0], (N, 1))
    sides = []
    for sign in (1.0, -1.0):
        own = X.copy()
        own[0] *= sign
        gradient = ClippedGradient.of(Rows(own, np.zeros(N), np.full(N, CAP)), model._residuals, 0.1, False)
        sides.append(gradient(np.zeros((1, D))))
    assert np.linalg.norm(sides[0] - sides[1]) > 3.9 * question.sensitivity(domain, Distance(replaced=1))


def test_factors_of_classes_are_parts_of_the_largest():
    factors, largest = class_factors({"b": 5.0, "c": 0.0}, ("a", "b", "c"), "LogisticRegression")
    assert largest == 5.0
    assert factors == (0.2, 1.0, 0.0)
    assert math.isclose(max(factors), 1.0)
