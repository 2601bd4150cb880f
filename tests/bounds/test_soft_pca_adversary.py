"""SoftPCA against an adversary: no dataset needs an eigengap for rows to stay where they are."""

import numpy as np
import pytest
from adversary import DISTANCES, World, attack, domains, named
from neighbours import ROUNDING, Chain
from worst_cases import shrunk

from ppdp.bounds.pca import moment_distance, shrinkage_shift
from ppdp.core.adjacency import Adjacency
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.rows import Rows
from ppdp.data.summary import second_moment
from ppdp.transformers import SoftPCA

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

    reached, _ = attack(world, change, draws=25, steps=40)
    assert 0.4 < reached <= ROUNDING


@pytest.mark.parametrize("distance", DISTANCES, ids=named)
def test_weights_between_0_and_1_move_rows_no_further(distance):
    """Of a row that both datasets weigh differently the smaller weight is matched."""
    rng = np.random.default_rng(0)
    domain = Domain(n_rows=12, n_features=2, row_norm=1.0, max_missing=0)
    most = distance.mass + 1.0, distance.one_sided + 0.5
    wide = Distance(
        *(getattr(distance, name) for name in ("replaced", "toggled", "moved", "radius", "total")), *most, reweighted=2
    )
    chain = Chain.of([SoftPCA(0.1)], domain, wide)
    for _ in range(50):
        pair = World(domain, distance).draw(rng)
        share = rng.uniform(0.5, 1, 12)
        weights = [rows.weight * share for rows in (pair.left, pair.right)]
        weights[0][-2:], weights[1][-2:] = (1.0, 0.5), (0.5, 1.0)
        left, right = (Rows(rows.X, None, w) for rows, w in zip((pair.left, pair.right), weights))
        matched = np.minimum(*weights)
        matched[: int(distance.replaced)] = 0.0
        move = np.linalg.norm(chain.run(left).X - chain.run(right).X, axis=1)
        assert (move * (matched > 0)).max() <= chain.distance.radius * ROUNDING
        assert move @ matched <= chain.distance.total * ROUNDING


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
