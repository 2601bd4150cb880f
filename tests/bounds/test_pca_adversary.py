"""PCA against an adversary: the projector turns, and rows move, no further than the eigengap allows."""

import numpy as np
import pytest
from adversary import DISTANCES, World, attack, domains, named
from neighbours import ROUNDING, Chain, Pair
from worst_cases import rotation

from ppdp.bounds.pca import gap_margin, projector_shift
from ppdp.distance import Distance
from ppdp.domain import Domain
from ppdp.rows import Rows
from ppdp.statistics import second_moment, top_eigenvectors
from ppdp.transformers import PCA

BALLS = [domain for domain in domains(12, 2, 3, max_missing=0) if domain.entry_bound is None]


def spectra(pair, k):
    """Eigengap after k and projector of rank k, for each side."""
    found = []
    for rows in (pair.left, pair.right):
        values, vectors = top_eigenvectors(second_moment(rows.X, rows.weight) / rows.n, k)
        found.append((float(values[k - 1] - values[k]), vectors.T @ vectors))
    return found


def projector_ratio(domain, distance, k):
    """How far the projector turns, over its bound at the smaller of the two gaps."""

    def ratio(pair):
        (gap, P), (other, Q) = spectra(pair, k)
        if min(gap, other) < 1e-3 * domain.row_norm**2:
            return np.nan
        return np.linalg.norm(P - Q, 2) / projector_shift(domain, distance, min(gap, other))

    return ratio


@pytest.mark.parametrize("domain", domains(12, 2, 3, max_missing=0), ids=named)
@pytest.mark.parametrize("distance", DISTANCES, ids=named)
def test_no_pair_turns_the_projector_further(domain, distance):
    world = World(domain, distance, deleted=True)
    for k in range(1, domain.d):
        reached, _ = attack(world, projector_ratio(domain, distance, k), draws=40, steps=80)
        assert 0.5 < reached <= ROUNDING


@pytest.mark.parametrize("domain", BALLS, ids=named)
@pytest.mark.parametrize("distance", DISTANCES, ids=named)
def test_no_row_moves_further(domain, distance):
    world = World(domain, distance, deleted=True)

    def ratio(pair):
        gap = min(gap for gap, _ in spectra(pair, 1)) / domain.row_norm**2 * (1 - 1e-12)
        if not 1e-3 < gap <= 1:
            return np.nan
        return Chain.of([PCA(1, gap)], domain, distance).use(pair, world.free)

    reached, _ = attack(world, ratio, draws=40, steps=80)
    assert 0.3 < reached <= ROUNDING


@pytest.mark.parametrize("domain", BALLS, ids=named)
@pytest.mark.parametrize("distance", DISTANCES, ids=named)
def test_the_gap_changes_by_at_most_its_unit(domain, distance):
    world = World(domain, distance, deleted=True)
    unit = gap_margin(domain, distance)
    reached, _ = attack(world, lambda pair: abs(spectra(pair, 1)[0][0] - spectra(pair, 1)[1][0]) / unit)
    assert 0.5 < reached <= ROUNDING


@pytest.mark.parametrize("n", [10, 50, 200])
@pytest.mark.parametrize("beta", [0.1, 0.2, 0.3])
def test_a_reflected_row_attains_radius_and_total(n, beta):
    case = rotation(n, beta)
    assert case.stage.min_gap == pytest.approx(beta)
    assert case.reached.radius / case.certified.radius == pytest.approx(1.0, abs=1e-8)
    case = rotation(n, beta, everywhere=True)
    assert case.reached.total / case.certified.total == pytest.approx(1.0, abs=1e-8)


HALF = np.sqrt(0.5)
TILT = np.cos(5e-4), np.sin(5e-4)


@pytest.mark.parametrize(
    ("distance", "left", "right"),
    [
        (Distance(toggled=1), [(HALF, HALF)], [None]),
        (Distance(replaced=2), [(HALF, HALF)] * 2, [(HALF, -HALF)] * 2),
        (Distance(moved=1, radius=1e-3), [TILT], [(TILT[0], -TILT[1])]),
    ],
    ids=["a toggled row counts half", "two replaced rows", "a moved row counts by its move"],
)
def test_every_part_of_the_distance_is_tight(distance, left, right):
    n = 400
    sides = []
    for changed in (left, right):
        X = np.zeros((n, 2))
        X[: len(changed)] = [row or (0.0, 0.0) for row in changed]
        X[len(changed) : 200, 0] = 1.0
        weight = np.ones(n)
        weight[: len(changed)] = [row is not None for row in changed]
        sides.append(Rows(X, None, weight))
    domain = Domain(n_rows=n, n_features=2, row_norm=1.0, max_missing=0)
    assert 0.98 <= projector_ratio(domain, distance, 1)(Pair(*sides)) <= ROUNDING
