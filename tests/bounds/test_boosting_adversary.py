"""Gradient boosting against an adversary: every answer of every pair, earlier answers being whatever he likes."""

import math
from dataclasses import replace

import numpy as np
import pytest
from adversary import DISTANCES, World, attack, largest_share, named
from effort import found
from effort import rounds as repeated
from neighbours import ROUNDING, Pair
from sklearn.base import clone
from steering import answers, apart

from ppdp import Distance, Domain
from ppdp.bounds.boosting import diameter, of_answers
from ppdp.data.rows import Rows
from ppdp.mechanisms import GradientBoostingClassifier, GradientBoostingRegressor
from ppdp.mechanisms.boosting import blocks, estimators, plans, rounds, training
from ppdp.mechanisms.boosting.losses import SquaredLoss

N = 8
DOMAIN = Domain(n_rows=N, n_features=2, row_norm=1.0)
ONE, GONE = Distance(replaced=1), Distance(toggled=1)
REWEIGHTED = Distance(replaced=1, reweighted=2, mass=2.6, one_sided=1.4)
CODES, TARGETS = np.array([0.0, 1.0]), np.array([-1.0, 1.0])
SMALL = {"max_bins": 4, "max_iter": 2}
MODELS = {
    "classes": (GradientBoostingClassifier((0, 1), **SMALL, interaction_cst="pairwise"), CODES),
    "codes": (GradientBoostingClassifier((0, 1), **SMALL, categorical_features={0: 4}), CODES),
    "three classes": (GradientBoostingClassifier((0, 1, 2), **SMALL), 2 * CODES),
    "targets": (GradientBoostingRegressor((-1, 1), **SMALL, interaction_cst="pairwise"), TARGETS),
    "counts": (GradientBoostingRegressor((0, 1), loss="poisson", **SMALL), TARGETS),
    "amounts": (GradientBoostingRegressor((0, 1), loss="gamma", **SMALL), TARGETS),
    "quantiles": (GradientBoostingRegressor((0, 1), loss="quantile", quantile=0.7, **SMALL), TARGETS),
}


@pytest.fixture(autouse=True)
def few_rows_are_enough_for_indicators_and_trees(monkeypatch):
    monkeypatch.setattr(plans, "TOLD", 0.0)
    monkeypatch.setattr(estimators, "TREES", {0.0: (2, 3)})


each_model = pytest.mark.parametrize(("model", "labels"), MODELS.values(), ids=MODELS)


def steep(question, seed, size):
    """Answers that lead to steep shapes, or anywhere."""
    rng = np.random.default_rng(seed)
    return [size * rng.standard_normal(question.size) for _ in range(question.steps)]


def use(model, labels, distance, seed):
    question = model.query_spec_at(DOMAIN, distance, 1.0)
    assert question.formula == "learning.boosting"
    each = np.array(of_answers(DOMAIN, distance, **question.parameters))
    settings = [((), 1e-6)] + [(steep(question, seed + i, size), 1e-3) for i, size in enumerate((1.0, 1e3))]

    def ratio(pair):
        left, right = (Rows(rows.X, labels[rows.y.astype(int)], rows.weight) for rows in (pair.left, pair.right))
        return max(float((apart(model, question, Pair(left, right), *how) / each).max()) for how in settings)

    return ratio


@pytest.mark.repeated("model", "labels")
@pytest.mark.parametrize("distance", DISTANCES, ids=named)
@each_model
def test_no_pair_exceeds_the_sensitivity_of_any_answer(model, labels, distance):
    """Also where values are missing, or stand in other places."""
    world = World(DOMAIN, distance, labels=True, deleted=True, gaps=2)
    reached, _ = attack(world, use(model, labels, distance, seed=0), draws=2, steps=2)
    assert reached <= ROUNDING


def test_nor_do_pairs_of_which_weights_differ():
    model, labels = MODELS["classes"]
    ratio, facts = use(model, labels, REWEIGHTED, seed=5), DOMAIN.but(max_missing=0)
    assert largest_share(facts, REWEIGHTED, lambda pair: ratio(Pair(*pair)), draws=2, steps=3) <= ROUNDING


def rows_of(*table, y, absent=0):
    X = np.zeros((N, 2))
    X[: len(table)] = table
    return Rows(X, np.r_[y, np.zeros(N - len(y))], np.r_[np.zeros(absent), np.ones(N - absent)])


def reached(model, labels, distance, interactions="no_interactions"):
    """By how much of its bound each answer differs, of rows far from each other or alike but for their labels.

    The model says the same of all rows, which are at one place but for the one that differs.
    """
    model = clone(model).set_params(interaction_cst=interactions, max_iter=1)
    question = model.query_spec_at(DOMAIN, distance, 1.0)
    each = np.array(of_answers(DOMAIN, distance, **question.parameters))
    alike = Rows(np.zeros((N, 2)), np.resize(labels, N), np.ones(N))
    flat, ratios = answers(model, question, alike, noise_scale=1e-6)[1], np.zeros(question.steps)
    for y, other, place in (
        (*labels, 0.7),
        (*labels[::-1], 0.7),
        (labels[0], labels[0], -0.7),
        (*labels[[1, 1]], -0.7),
    ):
        right = rows_of([0, 0], y=[0.0], absent=1) if distance.toggled else rows_of([place, place], y=[other])
        pair = Pair(rows_of([0.7, 0.7], y=[y]), right)
        ratios = np.maximum(ratios, apart(model, question, pair, flat, 1e-6) / each)
    return ratios


@pytest.mark.parametrize("distance", [ONE, GONE], ids=named)
@each_model
def test_histograms_and_rounds_attain_it(model, labels, distance):
    ratios = reached(model, labels, distance)
    asked = [0, 1, *[2] * (labels is TARGETS), -1]  # histograms and round
    assert found(ratios.max()) <= ROUNDING
    assert found(ratios[asked].min()) > 0.99


@pytest.mark.parametrize("distance", [ONE, GONE], ids=named)
@pytest.mark.parametrize("name", ["codes", "targets"])
def test_trees_come_close_to_it(name, distance):
    """Rows in other leaves, whose gradients are half of the largest that are not excluded."""
    ratios = reached(*MODELS[name], distance, None)
    assert found(ratios.max()) <= ROUNDING
    assert found(ratios[-2:].min()) > 0.8


def _heavier(places, size, step, block):
    return blocks.sums_in_steps(places, size, step, replace(block, weight=1.1 * block.weight))


def _wider(*given):
    where, weights = blocks.labels_in_cells(*given)
    return where, 1.1 * weights


def _of_private_means(loss, model, label, terms, starts, block):
    where, gradients = blocks.gradients_in_terms(loss, model, label, terms, starts, block)
    return where, gradients + block.y.mean() / 2


PLANTED = {
    "a diameter over the root of two": (
        rounds,
        "diameter",
        lambda *given, **named: diameter(*given, **named) / math.sqrt(2),
    ),
    "weights that are not clipped": (training, "sums_in_steps", _heavier),
    "labels that are not clipped": (training, "labels_in_cells", _wider),
    "gradients at means that were not released": (rounds, "gradients_in_terms", _of_private_means),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_mistakes_are_found(name, monkeypatch):
    monkeypatch.setattr(*PLANTED[name])
    assert reached(*MODELS["classes"], ONE).max() > 1.05


def test_and_a_round_that_nobody_charged(monkeypatch):
    one = rounds.Rounds.make_round
    monkeypatch.setattr(rounds.Rounds, "make_round", lambda *given: [one(*given), one(*given)])
    with pytest.raises(AssertionError):
        reached(*MODELS["classes"], ONE)


def test_the_diameter_is_that_of_the_gradients():
    """Any two gradients in so many cells, of which some are shared: never further apart, and sometimes as far."""
    rng, closest = np.random.default_rng(0), 0.0
    for _ in range(repeated(300)):
        terms, close = int(rng.integers(1, 6)), rng.random()
        closeness = np.sort(np.r_[rng.random(terms) * close, close])
        bound = diameter(terms, closeness.tolist(), 1.0, replaces=True)
        for _ in range(30):
            apart_in, mean = int(rng.integers(terms + 1)), rng.random()
            other = np.clip(mean + rng.choice([-1, 1]) * closeness[apart_in] * rng.choice([1.0, rng.random()]), 0, 1)
            labels = rng.choice([0.0, 1.0, rng.random()], 2)
            first, second = labels[0] - mean, labels[1] - other
            square = apart_in * (first**2 + second**2) + (terms - apart_in) * (first - second) ** 2
            closest = max(closest, math.sqrt(square) / bound)
            assert math.sqrt(square) <= bound
    assert closest > 0.97


@pytest.mark.parametrize("explained", [0.0, 0.9, 0.999])
def test_clipped_residuals_of_targets_are_as_large_and_as_far_apart_as_is_said(explained):
    rng, spread = np.random.default_rng(0), 0.06
    loss = SquaredLoss(-0.8, 0.7, spread, (1.0, 0.0)).explained(4 * explained * spread, 3.0)
    y, scores = rng.choice([-1.0, 1.0, *rng.uniform(-1, 1, 8)], (2, 10_000)), rng.uniform(-1, 1, 10_000)
    for apart_in in (0.0, 0.05, 0.6):
        others = np.clip(scores + rng.choice([-1, 1, 0.3], len(scores)) * apart_in, -1, 1)
        first, second = loss.gradients(y[0], scores, 1), loss.gradients(y[1], others, 1)
        sizes = np.abs(first).max() / loss.largest(-1.0, 1.0)
        gaps = np.abs(first - second).max() / (1 + float(loss.closeness(np.array([apart_in]), 1.0)[0]))
        assert max(sizes, gaps) <= ROUNDING
        assert min(sizes, gaps) > 0.95


def test_all_answers_together_cost_what_the_shares_say():
    question = MODELS["three classes"][0].query_spec_at(DOMAIN, ONE, 1.0)
    each = np.array(of_answers(DOMAIN, ONE, **question.parameters))
    shares = [question.parameters["share_of_edges"], question.parameters["shares"][0]]
    assert each[:2] ** 2 / (each**2).sum() == pytest.approx(shares)
    assert question.sensitivity(DOMAIN, ONE) == pytest.approx(2 / N)  # as of as many gradients at clip 1
    assert len(each) == question.steps
