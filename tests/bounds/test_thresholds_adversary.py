"""Counts by score and class against an adversary: every answer of every pair, earlier ones being whatever he likes."""

import numpy as np
import pytest
from adversary import DISTANCES, World, attack, largest_share, named
from effort import found
from neighbours import ROUNDING, Pair

from ppdp import Distance, Domain
from ppdp.bounds import lookup
from ppdp.bounds.selection import COUNTED
from ppdp.data.histograms import weights_by_class
from ppdp.data.rows import Rows
from ppdp.mechanisms import GradientBoostingClassifier, LinearSVC, LogisticRegression
from ppdp.mechanisms.base import PRESENT
from ppdp.testing.answers import RecordingNoise

N = 8
DOMAIN = Domain(n_rows=N, n_features=2, row_norm=1.0, max_missing=0, classes=(0, 1))
ONE, GONE = Distance(replaced=1), Distance(toggled=1)
REWEIGHTED = Distance(replaced=1, reweighted=2, mass=2.6, one_sided=1.4)
TUNED, CALIBRATED = ({"classes": (0, 1), name: how} for name, how in (("threshold", "f1"), ("calibration", "sigmoid")))
NEWTON, DESCENT = {"solver": "newton", "max_iter": 2}, {"solver": "dpgd", "max_iter": 2}
MODELS = {
    "learning.newton-threshold": LogisticRegression(**TUNED, **NEWTON),
    "learning.logistic-gradient-threshold": LogisticRegression(**TUNED, **DESCENT),
    "learning.hinge-gradient-threshold": LinearSVC(**CALIBRATED, **DESCENT),
    "learning.boosting-threshold": GradientBoostingClassifier(**TUNED, max_bins=4, max_iter=1),
    "calibrated beside weights": LogisticRegression(**CALIBRATED, **NEWTON, class_weight={0: 0.3}),
    "calibrated gradients": LogisticRegression(**CALIBRATED, **DESCENT),
    "calibrated margins": LinearSVC(**CALIBRATED, **NEWTON),
    "calibrated boosting": GradientBoostingClassifier(**TUNED | CALIBRATED, max_bins=4, max_iter=1),
}
each_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def answers(model, question, rows, given=()):
    told = RecordingNoise(given=given, silent=True)
    with np.errstate(all="ignore"):
        released = model.release(rows, question, told, 0.1)
    assert all(np.abs(asked.value).max() <= question.bound * ROUNDING for asked in told.asked)
    return [asked.value for asked in told.asked], [asked.answer for asked in told.asked], released


def used(model, distance, pair, given=()):
    """How far the answers of a pair are apart, as shares of their bounds; later ones behind equal earlier ones."""
    question = model.query_spec_at(DOMAIN, distance, 1.0)
    each = lookup(question.formula, "mechanism").each(DOMAIN, distance, **question.parameters)
    mine, told, _ = answers(model, question, pair.left, given)
    yours, *_ = answers(model, question, pair.right, told)
    assert question.formula.endswith(COUNTED)
    assert len(mine) == len(yours) <= question.steps == len(each)
    ratios = [np.linalg.norm(a - b) / own for a, b, own in zip(mine, yours, each)]
    ratios[-1] *= each[len(mine) - 1] / each[-1]  # steps that are left out are paid for; the last answer is of counts
    return np.array(ratios)


def steep(size):
    """Answers that lead anywhere, so that scores lie far apart."""
    return [size * np.random.default_rng(i).standard_normal(3) for i in range(3)]


@pytest.mark.repeated("model", keep=2)
@pytest.mark.parametrize("distance", DISTANCES, ids=named)
@each_model
def test_no_pair_exceeds_the_sensitivity_of_any_answer(model, distance):
    world = World(DOMAIN, distance, labels=True, deleted=True)
    given = steep(9.0) if model.get_params().get("solver") == "dpgd" else ()
    most, _ = attack(world, lambda pair: float(used(model, distance, pair, given).max()), draws=2, steps=2)
    assert found(most) <= ROUNDING


def test_nor_do_pairs_of_which_weights_differ():
    def share(pair):
        return float(used(MODELS["calibrated gradients"], REWEIGHTED, Pair(*pair)).max())

    assert largest_share(DOMAIN, REWEIGHTED, share, draws=4, steps=6) <= ROUNDING


@pytest.mark.parametrize("distance", [ONE, GONE], ids=named)
@each_model
def test_a_row_that_changes_its_class_attains_it(model, distance):
    rest = np.resize([0.0, 1.0], N - 1)
    left = Rows(np.full((N, 2), 0.6), np.r_[1.0, rest], np.ones(N))
    right = Rows(np.full((N, 2), 0.6), np.r_[0.0, rest], np.r_[float(distance is ONE), np.ones(N - 1)])
    assert 1 - 1e-6 < found(used(model, distance, Pair(left, right))[-1]) <= ROUNDING


@each_model
def test_nothing_leaves_but_what_follows_from_the_answers(model):
    rng = np.random.default_rng(3)
    one, other = (Rows(rng.uniform(-0.7, 0.7, (N, 2)), rng.integers(0, 2, N) * 1.0, np.ones(N)) for _ in range(2))
    question = model.query_spec_at(DOMAIN, ONE, 1.0)
    _, told, mine = answers(model, question, one)
    values, _, yours = answers(model, question, other, told)
    assert not all(np.array_equal(a, b) for a, b in zip(values, told))
    for name in mine.keys() - {PRESENT}:
        np.testing.assert_array_equal(mine[name], yours[name])


def test_equal_rows_are_in_equal_cells_wherever_they_stand():
    rng = np.random.default_rng(0)
    model = LogisticRegression((0, 1))
    model.coef_, model.intercept_ = rng.normal(size=(1, 7)), np.zeros(1)
    row, others = rng.normal(size=7), rng.normal(size=(50, 7))
    alone = model.steady_scores(row[None])[0]
    for place in (0, 3, 17, 50):
        assert model.steady_scores(np.insert(others, place, row, axis=0))[place] == alone
    at = weights_by_class(Rows(row[None], np.ones(1), np.ones(1)), model.steady_scores, [alone])
    assert at.tolist() == [0, 0, 0, 1]
