"""Soft PCA against an adversary, and projections on released directions: equal rows stay equal to the last bit."""

import numpy as np
import pytest
from adversary import DISTANCES, World, attack, domains, named
from effort import found, rounds
from neighbours import ROUNDING
from sklearn.base import clone
from worst_cases import shrunk

from ppdp import Distance, Domain
from ppdp.bounds.pca import map_error, moment_distance, shrinkage_shift
from ppdp.core.adjacency import Adjacency
from ppdp.data.rows import Rows
from ppdp.data.statistics import Moments
from ppdp.data.summary import second_moment
from ppdp.transformers import PCA, SoftPCA

ONE = Adjacency.replace().distance


@pytest.mark.parametrize("domain", domains(30, 3, max_missing=0), ids=named)
@pytest.mark.parametrize("distance", DISTANCES, ids=named)
@pytest.mark.parametrize("order", [2, "fro"])
@pytest.mark.repeated("domain")
def test_no_pair_changes_the_moment_further(domain, distance, order):
    world = World(domain, distance, deleted=True)
    bound = moment_distance(domain, distance)[order == "fro"]

    def change(pair):
        left, right = (second_moment(rows, domain.row_norm) / rows.n for rows in (pair.left, pair.right))
        return np.linalg.norm(left - right, order) / bound

    reached, _ = attack(world, change, draws=15, steps=25)
    assert 0.4 < reached <= ROUNDING


@pytest.mark.parametrize(
    ("n", "ridge", "radius", "total"),
    [
        (50, 0.05, 0.55, 0.54),
        (200, 0.05, 0.83, 0.82),
        (1000, 0.05, 0.96, 0.95),
        (50, 0.3, 0.88, 0.86),
        (200, 0.3, 0.96, 0.96),
        (1000, 0.3, 0.99, 0.99),
    ],
)
def test_both_bounds_are_attained_as_the_ridge_outgrows_a_row(n, ridge, radius, total):
    far, together = shrunk(n, ridge), shrunk(n, ridge, everywhere=True)
    assert radius <= far.reached.radius / far.certified.radius <= ROUNDING
    assert total <= together.reached.total / together.certified.total <= ROUNDING


def test_all_rows_together_cost_far_less_than_each_at_its_worst():
    domain = Domain(n_rows=10_000, n_features=2, row_norm=1.0, max_missing=0)
    shift, mean_square = shrinkage_shift(domain, ONE, 0.01)
    assert mean_square == pytest.approx(0.05 * shift, rel=0.03)  # √λ / 2


def test_it_costs_as_much_as_a_projector_whose_gap_is_the_ridge():
    domain = Domain(n_rows=10_000, n_features=2, row_norm=1.0, max_missing=0)
    assert shrinkage_shift(domain, ONE, 0.1)[0] == pytest.approx(1 / (10_000 * 0.1 + 1))


N = 40
STAGES = {
    "rank": PCA(2, fit_mode="noisy", with_mean=False),
    "centred": PCA(2, fit_mode="noisy"),
    "projected": PCA(2, fit_mode="noisy", output="projected", n_columns=3),
    "aligned": PCA(1, fit_mode="noisy", output="aligned", public_basis=np.eye(5)[:, :2]),
    "soft": SoftPCA(fit_mode="noisy", alpha=0.01),
}
DOMAIN = Domain(n_rows=N, n_features=5, row_norm=1.0, max_missing=0)
each_stage = pytest.mark.parametrize("stage", STAGES.values(), ids=STAGES)


def released(stage, distance, rng, domain=DOMAIN):
    """The way, and statistics from a moment that noise has made indefinite."""
    (way,) = stage.fit_modes(domain, distance)
    noisy = np.diag(np.linspace(0.5, 0.0, domain.d)) + 0.1 * rng.standard_normal((domain.d, domain.d))
    return way, stage.read(Moments.of_matrix(0.4 * rng.standard_normal(domain.d), noisy + noisy.T), way, domain)


@each_stage
@pytest.mark.parametrize("distance", [Distance(replaced=1), *DISTANCES], ids=named)
def test_equal_rows_stay_equal_and_no_other_moves_further(stage, distance):
    rng, reached = np.random.default_rng(0), 0.0
    world = World(DOMAIN, distance, deleted=True)
    for _ in range(rounds(40)):
        way, statistics = released(stage, distance, rng)
        pair, order = world.draw(rng), rng.permutation(N)
        left = stage.apply(pair.left, statistics)
        right = stage.apply(Rows(pair.right.X[order], None, pair.right.weight[order]), statistics)
        back = np.argsort(order)
        X, Y, weight = left.X, right.X[back], right.weight[back]
        equal = (pair.left.X == pair.right.X).all(axis=1) & (left.weight == weight)
        assert (X[equal] == Y[equal]).all()
        assert np.linalg.norm(np.vstack([X, Y]), axis=1).max() <= way.domain.row_norm
        moves = np.linalg.norm(X - Y, axis=1)[~equal]
        if distance.moved and not (distance.replaced or distance.toggled):
            reached = max(reached, found(float(moves.max(initial=0.0) / way.distance.radius)))
    assert reached <= ROUNDING
    assert way.distance.changed == distance.changed


@each_stage
def test_a_row_that_moves_along_a_direction_moves_as_far(stage):
    far = Distance(moved=1, radius=0.5)
    way, statistics = released(stage, far, np.random.default_rng(0))
    matrix = statistics["shrinkage"] if "shrinkage" in statistics else statistics["projection"]
    direction = np.linalg.svd(matrix)[0][:, 0]
    X = np.zeros((N, 5))
    X[0] = 0.5 * direction
    moved = np.linalg.norm(stage.map_rows(X, statistics) - stage.map_rows(0 * X, statistics), axis=1).max()
    least = 0.5 if stage is STAGES["projected"] else 0.97  # its columns see a part of the direction
    assert least < moved / way.distance.radius <= ROUNDING


@pytest.mark.parametrize("stage", [PCA(None, fit_mode="noisy", with_mean=False), STAGES["soft"]], ids=["pca", "soft"])
@pytest.mark.parametrize(("d", "k"), [(2, 1), (7, 3), (60, 59), (300, 4)])
def test_rounding_is_what_the_page_says(stage, d, k):
    domain, rng = Domain(n_rows=N, n_features=d, row_norm=3.0, max_missing=0), np.random.default_rng(d)
    soft = isinstance(stage, SoftPCA)
    stage = stage if soft else clone(stage).set_params(n_components=k)
    _, statistics = released(stage, Distance(replaced=1), rng, domain)
    exact = statistics["shrinkage" if soft else "components"].astype(np.longdouble)
    exact = exact if soft else exact.T @ exact
    X = rng.standard_normal((N, d))
    X *= 3.0 / np.linalg.norm(X, axis=1)[:, None]
    error = np.linalg.norm((stage.map_rows(X, statistics) - X @ exact).astype(np.float64), axis=1)
    assert 0 < error.max() < map_error(d, 3.0)
