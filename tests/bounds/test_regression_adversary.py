"""Regression imputation against an adversary: coefficients and filled rows move no further than certified."""

from itertools import product

import numpy as np
import pytest
from adversary import DISTANCES, World, attack, domains, named
from neighbours import ROUNDING, Chain, Pair, by_position, outgrown
from worst_cases import STEEP, steep

from ppdp.bounds import lookup
from ppdp.bounds.imputation import coefficient_norm, coefficient_shift
from ppdp.core.adjacency import Adjacency
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.noisy_statistics import STATISTICS
from ppdp.data.rows import Rows
from ppdp.data.summary import second_moment
from ppdp.transformers import RegressionImputer
from ppdp.transformers.impute.regression_imputer import coefficients, possible_moment

ONE = Adjacency.replace().distance

REWEIGHTED = Distance(replaced=1, reweighted=2, mass=3, one_sided=1.5)
BALLS = [domain for domain in domains(9, 2, 3) if domain.entry_bound is None]


def patterns(d):
    """Every pattern of gaps but the trivial ones."""
    masks = np.array(list(product([False, True], repeat=d)))
    return masks[masks.any(axis=1) & ~masks.all(axis=1)]


def norms(matrices):
    return np.linalg.norm(matrices, 2, axis=(1, 2))


def complete_second_moment(rows):
    X = np.where(np.isnan(rows.X).any(axis=1, keepdims=True), 0.0, rows.X)
    return (X * rows.weight[:, None]).T @ X / rows.n


def slopes(rows, share, conditional):
    """The coefficients of every pattern, fitted on the rows as they are."""
    moment = complete_second_moment(rows)
    return coefficients(moment, 0.0 if conditional else share, patterns(rows.X.shape[1]))


def smallest_eigenvalue(pair):
    return min(float(np.linalg.eigvalsh(complete_second_moment(rows))[0]) for rows in (pair.left, pair.right))


def shift_ratio(domain, distance, share=None):
    """How far the coefficients move, over their bound; without ``share`` under the condition as it just holds."""

    def ratio(pair):
        conditional = share is None
        nu = smallest_eigenvalue(pair) * (1 - 1e-12) if conditional else share
        if nu <= 1e-3:
            return np.nan
        left, right = (slopes(rows, nu, conditional) for rows in (pair.left, pair.right))
        assert max(norms(left).max(), norms(right).max()) <= coefficient_norm(domain, nu, conditional) * ROUNDING
        return norms(left - right).max() / coefficient_shift(domain, distance, nu, conditional)

    return ratio


def weighted(pair):
    """The pair with two rows of other weights on the right, of which three quarters are matched."""
    w, v = pair.left.weight.copy(), pair.right.weight.copy()
    w[1:3], v[1:3] = 1.0, 0.75
    return Pair(Rows(pair.left.X, None, w), Rows(pair.right.X, None, v))


@pytest.mark.parametrize("domain", BALLS, ids=named)
@pytest.mark.parametrize("distance", DISTANCES, ids=named)
@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
@pytest.mark.repeated("domain", "share")
def test_no_pair_moves_ridge_coefficients_further(domain, distance, share):
    world = World(domain, distance, gaps=4, deleted=True)
    reached, _ = attack(world, shift_ratio(domain, distance, share), draws=40, steps=60)
    assert 0.03 <= reached <= ROUNDING


@pytest.mark.parametrize("domain", BALLS, ids=named)
@pytest.mark.parametrize("distance", DISTANCES, ids=named)
@pytest.mark.repeated("domain")
def test_no_pair_moves_coefficients_further_where_the_condition_holds(domain, distance):
    world = World(domain, distance, gaps=2, deleted=True)
    reached, _ = attack(world, shift_ratio(domain, distance), draws=120, steps=80)
    assert 0.2 <= reached <= ROUNDING


@pytest.mark.parametrize("share", [0.02, 0.3, None])
def test_weights_between_0_and_1_count_by_their_weight(share):
    domain = BALLS[1]
    found = shift_ratio(domain, REWEIGHTED, share)
    reached, _ = attack(World(domain, gaps=3), lambda pair: found(weighted(pair)), draws=40, steps=60)
    assert 0.1 <= reached <= ROUNDING


@pytest.mark.parametrize("domain", domains(9, 2, 3)[::2], ids=named)
@pytest.mark.parametrize("distance", DISTANCES, ids=named)
@pytest.mark.repeated("domain")
def test_no_pair_moves_a_row_further_where_the_condition_holds(domain, distance):
    world = World(domain, distance, gaps=3, deleted=True)

    def ratio(pair):
        share = smallest_eigenvalue(pair) / domain.row_norm**2 * (1 - 1e-12)
        if not 1e-3 < share <= 1 / domain.d:
            return np.nan
        return Chain.of([RegressionImputer(min_eigenvalue=share)], domain, distance).use(pair, world.free)

    reached, _ = attack(world, ratio, draws=40, steps=50)
    assert reached <= ROUNDING


LEAST = {
    10: {0.05: 0.46, 0.1: 0.58, 0.2: 0.74},
    50: {0.05: 0.77, 0.1: 0.87, 0.2: 0.93},
    200: {0.05: 0.93, 0.1: 0.96, 0.2: 0.98},
    5000: {0.2: 0.999},
}


@pytest.mark.parametrize("setting", STEEP, ids=str)
def test_one_row_that_decides_a_slope_reaches_the_bound(setting):
    conditional, n, share = setting
    case = steep(n, share, conditional)
    assert case.stage.min_eigenvalue == (pytest.approx(share) if conditional else None)
    ratio = shift_ratio(case.domain, ONE, None if conditional else share)
    least = 0.75 if conditional and n == 10 and share == 0.2 else LEAST[n][share]
    assert least <= ratio(case.pair) <= ROUNDING


@pytest.mark.parametrize("conditional", [False, True])
@pytest.mark.parametrize(("n", "gaps", "least"), [(200, 3, 0.97), (5000, 5, 0.998)])
def test_few_rows_with_the_same_gap_reach_the_total(conditional, n, gaps, least):
    """Each of them moves as far as one can; they take nothing from the fit as long as they are few."""
    case = steep(n, 0.2, conditional, gap=gaps)
    chain = Chain.of([case.stage], case.domain.but(max_missing=gaps), ONE)
    reached = by_position(case.pair.mapped(chain.run), free=[0])
    assert least <= reached.total / chain.distance.total <= ROUNDING


@pytest.mark.parametrize("conditional", [False, True])
@pytest.mark.parametrize(("share", "least"), [(0.05, 0.92), (0.1, 0.96), (0.2, 0.98)])
def test_a_row_with_a_gap_reaches_the_bound(conditional, share, least):
    case = steep(200, share, conditional, gap=True)
    assert least <= case.reached.radius / case.certified.radius <= ROUNDING


@pytest.mark.parametrize(
    ("distance", "left", "right", "least"),
    [
        (Distance(toggled=1), [0.9, 0.0, 0.43], None, 0.5),
        (Distance(moved=1, radius=1e-3), [0.7, 0.0, 0.7], [0.7, 1e-3, 0.7], 0.4),
    ],
    ids=["a toggled row", "a moved row"],
)
def test_toggles_and_moves_count_by_what_they_do(distance, left, right, least):
    """They are charged (b + s)/2 and (b + s) for the worst signs; b and the unchanged slope cannot both be worst."""
    X = np.zeros((200, 3))
    X[0] = left
    Z, weight = X.copy(), np.ones(200)
    if right is None:
        weight[0], Z[0] = 0.0, 0.0
    else:
        Z[0] = right
    domain = Domain(n_rows=200, n_features=3, row_norm=1.0)
    ratio = shift_ratio(domain, distance, 2.0)
    assert least <= ratio(Pair(Rows.of(X), Rows(Z, None, weight))) <= ROUNDING


@pytest.mark.parametrize("conditional", [False, True])
def test_rows_stay_in_their_ball_and_box_even_if_a_release_is_all_noise(conditional):
    """What a released matrix is like must not matter: norm, entries and Lipschitz constant are public."""
    rng = np.random.default_rng(0)
    share = 0.1
    form = {"min_eigenvalue": share} if conditional else {"alpha": share}
    for domain in domains(9, 3):
        stage = RegressionImputer(fit_mode="noisy", **form)
        distance = Distance(moved=4, radius=0.1, total=0.3)
        world = World(domain, distance, gaps=9)
        (way,) = stage.fit_modes(domain, distance)
        for _ in range(40):
            noise = rng.standard_normal((3, 3)) * 10.0 ** rng.integers(-2, 3)
            fitted = stage.read(noise + noise.T, way, domain)
            found = coefficients(fitted["moment"], fitted["ridge"], patterns(3))
            limit = domain.row_norm * coefficient_norm(domain, share, conditional) * ROUNDING
            assert norms(found).max() * domain.row_norm <= limit
            pair = world.draw(rng)
            out = Pair(stage.apply(pair.left, fitted), stage.apply(pair.right, fitted))
            assert outgrown(out, way.domain.but(entry_bound=domain.entry_bound)) <= ROUNDING
            moves = np.linalg.norm(out.left.X - out.right.X, axis=1)
            assert moves.max() <= way.distance.radius * ROUNDING
            assert moves.sum() <= way.distance.total * ROUNDING


def test_the_nearest_possible_moment_is_nearest():
    rng = np.random.default_rng(1)
    for _ in range(50):
        noise, least = rng.standard_normal((3, 3)), rng.choice([0.0, 0.1, 1 / 3])
        symmetric = (noise + noise.T) / 2
        nearest = possible_moment(symmetric, least, 1.0)
        values = np.linalg.eigvalsh(nearest)
        assert values.min() >= least - 1e-12
        assert values.sum() <= 1 + 1e-12
        for _ in range(20):  # obtuse angle with every other possible matrix
            rotation, _ = np.linalg.qr(rng.standard_normal((3, 3)))
            other = (rotation * (least + (1 - 3 * least) * rng.dirichlet(np.ones(4))[:3])) @ rotation.T
            assert np.sum((symmetric - nearest) * (other - nearest)) <= 1e-9
    inside = np.diag([0.2, 0.3, 0.4])
    np.testing.assert_allclose(possible_moment(inside, 0.1, 1.0), inside, atol=1e-15)


@pytest.mark.parametrize("domain", domains(9, 2, 3), ids=named)
@pytest.mark.parametrize("distance", DISTANCES, ids=named)
@pytest.mark.repeated("domain")
def test_no_pair_moves_the_release_further(domain, distance):
    """Rows may lose and gain gaps; those that have some count as zeros."""
    statistic = STATISTICS["complete-matrix"]
    bound = lookup(statistic.formula, "release")(domain, distance)

    def ratio(pair):
        values = [statistic.measure(rows, domain, {}) for rows in (pair.left, pair.right)]
        assert np.abs(values).max() <= statistic.bound(domain)
        exact = second_moment(pair.left, 1.0) / pair.left.n
        assert (np.abs(statistic.read(values[0], domain) - exact) <= 1e-14 + 1e-7 * np.abs(exact)).all()
        return np.linalg.norm(values[0] - values[1]) / bound

    reached, _ = attack(World(domain, distance, gaps=9, deleted=True), ratio, draws=30, steps=50)
    assert 0.2 <= reached <= ROUNDING


GAP = np.nan


@pytest.mark.parametrize(
    ("distance", "left", "right"),
    [
        (ONE, [1.0, 0.0], [0.0, 1.0]),
        (Distance(toggled=1), [1.0, 0.0], None),
        (Distance(moved=1, radius=1e-6), [1.0, 0.0], [1.0 - 1e-6, 0.0]),
    ],
    ids=["replaced", "toggled", "moved"],
)
def test_the_release_attains_every_part_of_its_sensitivity(distance, left, right):
    domain = Domain(n_rows=20, n_features=2, row_norm=1.0)
    statistic = STATISTICS["complete-matrix"]
    pair = Pair.in_front(20, [left], [right])
    values = [statistic.measure(rows, domain, {}) for rows in (pair.left, pair.right)]
    reached = np.linalg.norm(values[0] - values[1]) / lookup(statistic.formula, "release")(domain, distance)
    assert 1 - 1e-5 <= reached <= ROUNDING


def test_a_row_that_loses_an_entry_is_like_a_row_that_is_deleted():
    domain = Domain(n_rows=20, n_features=2, row_norm=1.0)
    statistic = STATISTICS["complete-matrix"]
    rest = [[0.3, 0.4]] * 19
    complete, gap, gone = (
        statistic.measure(Rows.of([row, *rest]), domain, {}) for row in ([0.6, 0.8], [0.6, GAP], [0.0, 0.0])
    )
    assert (gap == gone).all()
    assert np.linalg.norm(complete - gap) == pytest.approx(np.sqrt(0.5) / 20)
