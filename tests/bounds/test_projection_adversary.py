"""Random projections against an adversary that knows the matrix: moved rows, norms, entries and bits."""

import math

import numpy as np
import pytest
from adversary import DISTANCES, World, attack, domains, named
from neighbours import ROUNDING, Chain, Pair, by_position, outgrown, shares

from ppdp.bounds import lookup
from ppdp.bounds.projection import FAMILIES, draw, measured, operator_norm
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.exceptions import CertificateError
from ppdp.transformers import RandomProjection
from ppdp.transformers.project.product import product

each_family = pytest.mark.parametrize("family", FAMILIES)
BALL = Domain(n_rows=8, n_features=6, row_norm=1.0, max_missing=0)
MOVED = Distance(moved=3, radius=0.02, total=0.05)


def matrix(family, k, d, seed=0):
    found = draw(family, k, d, seed)
    return found.toarray() if hasattr(found, "toarray") else found


def top(A):
    """The direction that A stretches most."""
    return np.linalg.svd(A)[2][0]


# ---------------------------------------------------------------- the bound


@each_family
@pytest.mark.parametrize("domain", domains(8, 1, 4, max_missing=0), ids=named)
@pytest.mark.parametrize("distance", DISTANCES, ids=named)
@pytest.mark.repeated("domain")
def test_no_pair_exceeds_the_map(family, domain, distance):
    world = World(domain, distance, labels=True, deleted=True)
    chain = Chain.of([RandomProjection(3, family, seed=1)], domain, distance)
    reached, _ = attack(world, lambda pair: chain.use(pair, world.free), draws=20, steps=15)
    assert reached <= ROUNDING
    if distance.moved == 0:
        assert chain.distance == distance


@each_family
@pytest.mark.parametrize("k", [1, 4, 9])
def test_moved_rows_reach_the_operator_norm_of_the_drawn_matrix(family, k):
    chain = Chain.of([RandomProjection(k, family, seed=3)], BALL, MOVED)
    X = 0.5 * np.linalg.qr(np.random.default_rng(0).standard_normal((8, 8)))[0][:, :6]
    step = 0.9999999 * MOVED.radius * top(matrix(family, k, 6, 3))
    Z = X.copy()
    Z[:3] += np.outer([1.0, 1.0, 0.5], step)
    used = shares(by_position(Pair.of(X, Z).mapped(chain.run)), chain.distance)
    assert 0.999 < used["radius"] <= ROUNDING
    assert 0.999 < used["total"] <= ROUNDING


@each_family
def test_norm_and_entries_are_reached(family):
    """The longest image is that of the direction stretched most; the largest entry that of a row of the matrix."""
    A = matrix(family, 4, 6, 5)
    chain = Chain.of([RandomProjection(4, family, seed=5)], BALL, MOVED)
    largest = A[np.argmax(np.linalg.norm(A, axis=1))]
    rows = np.zeros((8, 6))
    rows[0], rows[1] = top(A), largest / np.linalg.norm(largest)
    out = Pair.of(rows, rows).mapped(chain.run)
    assert 1 - 1e-8 < np.linalg.norm(out.left.X[0]) / chain.domain.row_norm <= ROUNDING
    assert 1 - 1e-8 < np.abs(out.left.X[1]).max() / chain.domain.entry_bound <= ROUNDING
    assert outgrown(out, chain.domain) <= ROUNDING


@each_family
def test_a_box_bounds_entries_by_sums_where_that_is_less(family):
    domain = BALL.but(row_norm=math.sqrt(6), entry_bound=0.5)
    A = matrix(family, 4, 6, 5)
    chain = Chain.of([RandomProjection(4, family, seed=5)], domain, MOVED)
    corner = 0.5 * np.sign(A[np.argmax(np.abs(A).sum(axis=1))])
    out = Pair.of(np.tile(corner, (8, 1)), np.zeros((8, 6))).mapped(chain.run)
    assert 1 - 1e-8 < np.abs(out.left.X).max() / chain.domain.entry_bound <= ROUNDING
    assert outgrown(out, chain.domain) <= ROUNDING


def test_no_random_projection_shortens_every_row():
    """What holds on average need not hold for a given row: of twelve columns in three, a row of norm 1 grows to 2."""
    for family in FAMILIES:
        assert measured(family, 3, 12, 0).operator >= 2 - 1e-9
    assert measured("oporp", 3, 12, 0).operator == pytest.approx(2)


# ---------------------------------------------------------------- the matrix


@each_family
def test_the_matrix_is_what_it_always_was(family):
    """Whoever verifies a certificate in ten years draws it again."""
    found = matrix(family, 2, 4, 7)
    assert found == pytest.approx(np.array(FROZEN[family]), abs=1e-12)
    assert np.array_equal(found, matrix(family, 2, 4, 7))
    assert not np.array_equal(matrix(family, 8, 40, 7), matrix(family, 8, 40, 8))


FROZEN = {
    "gaussian": [
        [-0.977110351008072, 0.441302060960653, -0.606495714653501, -0.836703828459307],
        [-0.712995877482956, 0.416369181288098, 2.13040147650681, 0.520439335406767],
    ],
    "rademacher": [
        [-0.707106781186547, -0.707106781186547, -0.707106781186547, 0.707106781186547],
        [0.707106781186547, -0.707106781186547, 0.707106781186547, -0.707106781186547],
    ],
    "sparse": [[-1.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0]],
    "oporp": [[0.0, 0.0, 1.0, -1.0], [1.0, -1.0, 0.0, 0.0]],
}


@each_family
def test_squared_norms_are_kept_on_average(family):
    drawn = [matrix(family, 5, 7, seed) for seed in range(3000)]
    mean = np.mean([A.T @ A for A in drawn], axis=0)
    assert np.abs(mean - np.eye(7)).max() < 0.06
    assert abs(np.mean(drawn)) < 0.01


def test_entries_follow_their_laws():
    from scipy.stats import kstest

    k, d = 64, 400
    normal = matrix("gaussian", k, d).ravel() * math.sqrt(k)
    assert kstest(normal, "norm").pvalue > 1e-3
    assert set(np.abs(matrix("rademacher", k, d)).ravel()) == {1 / math.sqrt(k)}
    sparse = matrix("sparse", k, d)
    assert np.unique(np.abs(sparse)) == pytest.approx([0, math.sqrt(20 / k)])
    assert abs((sparse != 0).mean() - 1 / 20) < 0.005


def test_oporp_deals_the_columns_out_evenly():
    for k, d in [(1, 5), (3, 7), (4, 8), (9, 4)]:
        A = matrix("oporp", k, d, seed=k)
        assert (np.count_nonzero(A, axis=0) == 1).all()
        assert set(np.unique(np.abs(A))) <= {0.0, 1.0}
        sizes = np.count_nonzero(A, axis=1)
        assert sizes.max() - sizes.min() <= 1
        assert measured("oporp", k, d, k).operator == pytest.approx(math.sqrt(-(-d // k)), rel=1e-8)
    first = [int(np.flatnonzero(matrix("oporp", 4, 4, seed)[0])[0]) for seed in range(400)]
    assert np.bincount(first).min() > 60  # any column may come first


@each_family
@pytest.mark.parametrize(("k", "d"), [(1, 1), (3, 50), (40, 8)])
def test_the_norm_is_not_below_the_truth(family, k, d):
    for seed in range(5):
        A = matrix(family, k, d, seed).astype(np.longdouble)
        x = top(A.astype(np.float64)).astype(np.longdouble)
        norms = measured(family, k, d, seed)
        assert np.sqrt(((A @ x) ** 2).sum() / (x @ x)) <= norms.operator
        assert np.sqrt((A**2).sum()) <= norms.frobenius
        assert norms.operator <= norms.frobenius * (1 + 1e-8)


def test_the_norm_of_a_flat_matrix_is_exact():
    assert operator_norm(np.ones((30, 40))) == pytest.approx(math.sqrt(1200), rel=2e-9)
    assert operator_norm(np.ones((30, 40))) >= math.sqrt(1200)


def test_a_matrix_of_zeros_has_a_domain():
    seed = next(seed for seed in range(200) if not matrix("sparse", 1, 6, seed).any())
    out, distance = RandomProjection(1, "sparse", seed).stability_map(BALL, MOVED)
    assert out.row_norm > 0
    assert distance.radius < 1e-12


@pytest.mark.parametrize(
    "parameters",
    [
        {"family": "other"},
        {"n_components": 0},
        {"n_components": 2.0},
        {"n_components": True},
        {"n_components": 2**40},
        {"seed": -1},
        {"seed": 0.5},
        {"seed": None},
    ],
)
def test_impossible_parameters_of_a_certificate(parameters):
    given = {"family": "gaussian", "n_components": 2, "seed": 0, **parameters}
    with pytest.raises(CertificateError):
        lookup("projection.random", "stability")(BALL, MOVED, **given)


# ---------------------------------------------------------------- bits


@each_family
def test_equal_rows_have_equal_bits_wherever_they_stand(family):
    rng = np.random.default_rng(0)
    d = 57
    stage = RandomProjection(13, family).fit(rng.standard_normal((2, d)))
    X = rng.standard_normal((301, d)) * 10.0 ** rng.integers(-6, 6, (301, d))
    whole = stage.transform(X)
    for size in (1, 2, 3, 17, 300):
        some = rng.permutation(301)[:size]
        assert stage.transform(X[some]).tobytes() == whole[some].tobytes()
    assert stage.transform(np.asfortranarray(X)).tobytes() == whole.tobytes()
    assert not np.signbit(stage.transform(np.zeros((3, d)))).any()


@each_family
@pytest.mark.parametrize("d", [1, 2, 65, 1000])
def test_rounding_is_within_its_charge(family, d):
    rng = np.random.default_rng(1)
    A = draw(family, 7, d, 0)
    dense = (A.toarray() if hasattr(A, "toarray") else A).astype(np.longdouble)
    X = np.vstack([rng.standard_normal((40, d)), 10.0 ** rng.uniform(-9, 9, (40, d)), np.eye(d)[:1]])
    exact = X.astype(np.longdouble) @ dense.T
    error = np.linalg.norm((product(X, A) - exact).astype(np.float64), axis=1)
    charge = (2 * d + 16) * 2.0**-53 * measured(family, 7, d, 0).frobenius * np.linalg.norm(X, axis=1)
    assert (error <= charge).all()


def test_products_of_any_two_matrices():
    rng = np.random.default_rng(2)
    for scale in (1e-90, 1.0, 1e90):
        X = scale * rng.standard_normal((50, 9)) * 10.0 ** rng.integers(-3, 3, (50, 9))
        A = rng.standard_normal((4, 9)) * 10.0 ** rng.integers(-8, 8, (4, 1))
        assert product(X, A) == pytest.approx(X @ A.T, rel=1e-12, abs=1e-14 * scale)
        assert product(X[::-2], A).tobytes() == product(X, A)[::-2].tobytes()
