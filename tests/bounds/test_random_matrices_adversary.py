"""Secret random matrices against an adversary: sketches of rows, and a projection of the direction of the mean."""

import math

import mpmath as mp
import numpy as np
import pytest
from adversary import DISTANCES, World, attack, named
from effort import found, rounds
from neighbours import ROUNDING
from scipy import linalg, special, stats

from ppdp import Adjacency, Distance, Domain
from ppdp.bounds.sketch import sketch_bound, sketch_error, sketch_loss
from ppdp.data.rows import Rows
from ppdp.exceptions import InvalidParameter
from ppdp.mechanisms import Ridge
from ppdp.mechanisms.learn.moments import _clipped
from ppdp.mechanisms.query.random_matrices import sketched
from ppdp.privacy import WishartLoss
from ppdp.privacy.gaussian import gaussian_epsilon
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.losses import Part
from ppdp.privacy.noise.sampler import Noise
from ppdp.transformers.floor import EigenvalueFloor

N, D, SIGMA = 6, 2, 1.5
DOMAIN = Domain(n_rows=N, n_features=D, row_norm=1.0, max_missing=0)
ONE = Distance(replaced=1)
ORDERS = 1 + np.array([0.05, 0.5, 1.0, 2.0, 3.0, 9.0])
TARGETS = np.array([-1.0, 1.0])


def moment(X, weight):
    return (X * weight[:, None]).T @ X


def divergences(one, other):
    """Exact Rényi divergences of one row of two sketches at all orders, by generalised eigenvalues, both ways round."""
    s = linalg.eigh(one, other, eigvals_only=True)
    for scales in (s, 1 / s):
        rest = 1 - (ORDERS[:, None] - 1) * (scales - 1)
        finite = rest.min(axis=1) > 0
        log = np.log(np.where(rest > 0, rest, 1.0))
        told = np.sum(-np.log(scales) / 2 - log / (2 * (ORDERS[:, None] - 1)), axis=1)
        yield np.where(finite, told, np.inf)


def _closest(told, bound):
    return float(np.max(told[np.isfinite(bound)] / bound[np.isfinite(bound)]))


def use(loss, moments, *, least=0.0):
    """How close a pair comes to what is certified; pairs below the floor do not count."""
    (part,) = loss.parts
    bound = np.array([part.renyi(order) for order in ORDERS]) / part.rank

    def ratio(pair):
        one, other = (moments(rows) for rows in (pair.left, pair.right))
        if min(np.linalg.eigvalsh(one)[0], np.linalg.eigvalsh(other)[0]) < least:
            return 0.0
        noise = SIGMA**2 * np.eye(len(one))
        return max(_closest(told, bound) for told in divergences(one + noise, other + noise))

    return ratio


@pytest.mark.parametrize("distance", DISTANCES, ids=named)
def test_no_pair_exceeds_the_loss(distance):
    """With more directions than a row has, and with a floor."""
    world = World(DOMAIN, distance, deleted=True)
    for floor in (0.0, 0.4):
        loss = sketch_loss(N, D, 1.0, distance, noise_scale=SIGMA, rank=3, floor=floor)
        ratio = use(loss, lambda rows: moment(rows.X, rows.weight), least=floor)
        assert attack(world, ratio, draws=12, steps=12)[0] <= ROUNDING


@pytest.mark.parametrize(("distance", "floor"), [(ONE, 0.0), (ONE, 0.5), (Distance(toggled=1), 0.0)])
def test_rows_at_right_angles_attain_it(distance, floor):
    X, Z = (np.vstack([row, math.sqrt(floor) * np.eye(D), np.zeros((3, D))]) for row in np.eye(D))
    weight = np.r_[0.0, np.ones(N - 1)] if distance.toggled else np.ones(N)
    pair = moment(X, np.ones(N)), moment(Z, weight)
    loss = sketch_loss(N, D, 1.0, distance, noise_scale=SIGMA, rank=5, floor=floor)
    bound = np.array([loss.parts[0].renyi(order) / 5 for order in ORDERS])
    noisy = [one + SIGMA**2 * np.eye(D) for one in pair]
    assert 0.9998 < found(max(_closest(told, bound) for told in divergences(*noisy))) <= ROUNDING


def test_no_pair_of_rows_with_targets_exceeds_that_of_ridge():
    model = Ridge(y_range=(-1, 1), solver="sketch", rank=9)
    question = model.query_spec(DOMAIN, 1.0)
    loss = question.privacy_map(DOMAIN, ONE, SIGMA)

    def moments(rows):
        labelled = Rows(rows.X, TARGETS[rows.y.astype(int)], rows.weight)
        return moment(_clipped(labelled, question.parameters), rows.weight)

    reached, _ = attack(World(DOMAIN, ONE, labels=True, deleted=True), use(loss, moments), draws=12, steps=12)
    assert 0.5 < reached <= ROUNDING


class _Identity(Noise):
    """Shows the factor."""

    def standard_lattice(self, size):
        return np.eye(*size) * 2.0**37


@pytest.mark.parametrize(("n", "d"), [(1, 3), (3, 3), (1500, 1), (30_000, 4)])
def test_computed_factors_are_as_good_as_is_charged(n, d):
    """Also of columns that nearly agree, and of rows of very different lengths."""
    rng = np.random.default_rng(n)
    charged = sketch_error(n, d, 1.0, d) / (13 * d)
    for trial in range(rounds(2)):
        X = rng.normal(size=(n, d)) * 10.0 ** (-6.0 * trial * rng.random((n, 1)))
        X[:, -1] = X[:, 0] + 10.0 ** (-9 * trial) * X[:, -1]
        X /= np.linalg.norm(X, axis=1).max()
        weight = rng.choice([0.0, 0.3, 1.0], n) if trial else np.ones(n)
        R = sketched(X, weight, d, _Identity(0))
        assert R.shape == (d, d)
        exact = (X.astype(np.longdouble) * weight[:, None]).T @ X.astype(np.longdouble)
        off = np.linalg.norm(np.asarray(R.astype(np.longdouble).T @ R.astype(np.longdouble) - exact, dtype=float))
        assert found(off / (charged * (2 * math.sqrt(n) + charged))) < 1
        assert 13 * np.abs(R).sum(axis=0).max() <= sketch_bound(n, d, 1.0)


def test_what_floats_cost_is_a_gaussian_release_that_noise_hides():
    few = [sketch_loss(10**5, 10, 1.0, ONE, noise_scale=sigma, rank=100).mu for sigma in (10.0, 1.0)]
    assert 0 < few[0] < 1e-3
    assert few[1] == pytest.approx(10 * few[0], rel=0.1)
    assert sketch_loss(10**5, 10, 1.0, ONE, noise_scale=1e-6, rank=100).epsilon(1e-6) > 1e9


def test_so_many_rows_must_change_before_the_floor_fails():
    """Rows along one axis are taken away, one by one; margin and floor fail together."""
    (condition,) = EigenvalueFloor(1 / 6).fit_modes(DOMAIN, ONE)[0].conditions
    for long in (1, 2, 3, 4):
        X = np.repeat(np.eye(D), [N - long, long], axis=0)
        margin = condition.margin(X)
        assert margin == pytest.approx(max(0, min(long, N - long) - 1), abs=1e-6)
        assert (np.linalg.eigvalsh(X.T @ X)[0] / N > 1 / 6 * (1 + 1e-9)) == (margin > 0)


def test_every_adjacency_is_priced():
    """A row that comes or goes costs less than one that is replaced; one that moves a little less still."""
    distances = [
        Adjacency.replace().distance,
        Adjacency.add_remove().distance,
        Adjacency.change(l2=0.05).entrance_distance(D),
    ]
    costs = [sketch_loss(N, D, 1.0, d, noise_scale=4.0, rank=40).epsilon(1e-6) for d in distances]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] > 0


TABLE = [  # dimension, rank, 1 - cosine; at delta 1e-5 the exact epsilon, that in closed form, and the Gaussian one
    (50, 20, 1e-3, 1.262, 3.56, 0.73),
    (200, 20, 1e-3, 1.736, 5.11, 0.73),
    (200, 200, 1e-3, 2.775, 4.35, 2.59),
    (1000, 20, 1e-4, 0.777, 2.67, 0.21),
    (1000, 200, 1e-3, 2.981, 5.16, 2.59),
    (50, 1000, 1e-2, 29.23, 34.7, 28.4),
    (200, 200, 1e-8, 0.00447, 0.0127, 0.004),
]
SIMULATED = [(6, 3, 0.9), (4, 9, 0.95), (5, 1, 0.97), (20, 40, 0.98), (2, 2, 0.5)]
row = pytest.mark.parametrize(("dimension", "rank", "versine", "exact", "closed", "gauss"), TABLE)


def directions(dimension, cosine):
    one, other = np.eye(dimension)[:2]
    return one, cosine * one + math.sqrt(1 - cosine**2) * other


def projected(rng, direction, rank, size):
    Z = rng.standard_normal((size, len(direction), rank))
    return np.einsum("nik,nk->ni", Z, np.einsum("nik,i->nk", Z, direction))


def losses(y, one, other, rank):
    """From the density of y, written down independently of the two scalars."""
    power = (rank - len(one) - 1) / 2

    def log_density(v):
        with np.errstate(all="ignore"):
            return np.where(y @ v > 0, power * np.log(y @ v) - (y**2).sum(axis=1) / (2 * y @ v), -np.inf)

    return log_density(one) - log_density(other)


@pytest.mark.parametrize(("dimension", "rank", "cosine"), SIMULATED)
@pytest.mark.repeated("dimension", "rank", "cosine", keep=3)
def test_outputs_of_both_sides_are_told_apart_as_often_as_the_exact_delta_says(dimension, rank, cosine):
    """The event "loss above epsilon" is counted under both: no density is trusted."""
    rng, size = np.random.default_rng(rank), rounds(6_000_000 // (dimension * rank * 8))
    one, other = directions(dimension, cosine)
    loss = WishartLoss(dimension, rank, cosine)
    sides = [losses(projected(rng, v, rank, size), one, other, rank) for v in (one, other)]
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        p, q = (float((side > epsilon).mean()) for side in sides)
        gained, error = p - math.exp(epsilon) * q, math.sqrt(p / size) + math.exp(epsilon) * math.sqrt(q / size)
        assert gained == pytest.approx(loss.exact_delta(epsilon), abs=4 * error + 1e-12)
        assert found((gained - 4 * error) / loss.delta(epsilon)) <= 1


@row
def test_figures_of_the_table(dimension, rank, versine, exact, closed, gauss):
    loss = WishartLoss(dimension, rank, 1 - versine)
    certified = loss.epsilon(1e-5)
    assert certified == pytest.approx(exact, rel=0.005)
    assert loss.closed_epsilon(1e-5) == pytest.approx(closed, rel=0.01)
    assert loss.exact_delta(certified) <= 1e-5 <= loss.exact_delta(certified * 0.99)
    found(loss.exact_delta(certified) / 1e-5)
    assert gaussian_epsilon(math.sqrt(2 * versine * rank), 1e-5) == pytest.approx(gauss, rel=0.01, abs=0.005)
    assert gaussian_epsilon(math.sqrt(2 * versine * rank), 1e-5) < certified


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
@pytest.mark.repeated("epsilon")
def test_the_exact_delta_to_thirty_digits(epsilon):
    dimension, rank, cosine = 6, 3, 0.9
    with mp.workdps(30):
        k, c, rho = mp.mpf(dimension + rank - 1), mp.mpf(dimension + 1 - rank) / 2, mp.mpf(cosine)
        slope = mp.sqrt((1 - rho**2) / rank)

        def tail(order, x, *, upper):
            return (
                mp.gammainc(order, x, mp.inf, regularized=True) if upper else mp.gammainc(order, 0, x, regularized=True)
            )

        def density(t):
            whole = mp.gamma(mp.mpf(rank + 1) / 2) / mp.gamma(mp.mpf(rank) / 2) / mp.sqrt(rank * mp.pi)
            return whole * (1 + t**2 / rank) ** (-mp.mpf(rank + 1) / 2)

        def gained(t):
            a = max(rho + slope * t, mp.mpf(10) ** -25)
            cut = max((epsilon - c * mp.log(a)) * a / (1 - a), mp.mpf(0))
            upper = a < 1
            both = tail(k / 2, cut, upper=upper) - mp.exp(epsilon) * a ** (rank - 1) * tail(k / 2, cut / a, upper=upper)
            return density(t) * both

        first, one = -rho / slope, (1 - rho) / slope
        lost = mp.quad(density, [-mp.inf, first])
        truth = lost + mp.quad(gained, [first, -2, one]) + mp.quad(gained, [one, 3, 20, 1000])
    assert WishartLoss(dimension, rank, cosine).exact_delta(epsilon) == pytest.approx(float(truth), rel=1e-6)


def test_special_functions_are_as_good_as_is_charged():
    """A share of 1e-9 is charged of every tail of B, and of T."""
    with mp.workdps(50):
        for half, x in [(4, 9.0), (109.5, 160.0), (599.5, 500.0), (5e4, 5.1e4), (1.5, 40.0)]:
            for scipy_one, ends in ((special.gammaincc, (x, mp.inf)), (special.gammainc, (0, x))):
                truth = mp.gammainc(half, *ends, regularized=True)
                assert abs(scipy_one(half, x) / truth - 1) < 1e-11
        for rank, t in [(1, -50.0), (3, -4.0), (20, -9.0), (200, -6.5), (1000, -12.0)]:
            x = mp.mpf(rank) / (rank + mp.mpf(t) ** 2)
            truth = mp.betainc(mp.mpf(rank) / 2, 0.5, 0, x, regularized=True) / 2
            assert abs(special.stdtr(rank, t) / truth - 1) < 1e-11


def test_no_cosine_above_the_one_that_is_certified_costs_more():
    """Also where that is not known to follow from a smaller cosine being worse: small epsilons, large angles."""
    rng = np.random.default_rng(3)
    for _ in range(rounds(12)):
        dimension, rank = (int(2 * 10.0 ** rng.uniform(0, 2.5)) for _ in "dr")
        versine = 10.0 ** rng.uniform(-5, -0.05)
        loss = WishartLoss(dimension, rank, 1 - versine)
        epsilon = float(rng.choice([0.0, 0.01, 0.2, 1.0, loss.epsilon(1e-4) if loss.delta(50.0) < 1e-4 else 3.0]))
        most = loss.delta(epsilon)
        for share in (1.0, 0.99, rng.uniform(0, 1), 1e-2):
            exact = WishartLoss(dimension, rank, 1 - versine * share).exact_delta(epsilon)
            assert found(exact / most) <= 1
        assert loss.exact_delta(epsilon) > 0.9 * most or most < 1e-12


def test_the_closed_form_holds_for_all_cosines_and_ranks_beyond_the_dimension():
    rng = np.random.default_rng(4)
    for _ in range(rounds(12)):
        dimension, rank = (int(2 * 10.0 ** rng.uniform(0, 2.8)) for _ in "dr")
        delta, versine = 10.0 ** rng.uniform(-9, -1), 10.0 ** rng.uniform(-6, -0.5)
        loss = WishartLoss(dimension, rank, 1 - versine)
        closed = loss.closed_epsilon(delta)
        assert loss.epsilon(delta) <= closed
        if math.isfinite(closed):
            for share in (1.0, 0.5, 0.01):
                nearer = WishartLoss(dimension, rank, 1 - versine * share)
                assert found(nearer.exact_delta(closed) / delta) <= 1


def test_ten_releases_against_simulation():
    dimension, rank, cosine, runs = 40, 60, 0.9995, 10
    rng, size = np.random.default_rng(5), rounds(15_000)
    a = cosine + math.sqrt((1 - cosine**2) / rank) * rng.standard_t(rank, (size, runs))
    b = rng.chisquare(dimension + rank - 1, (size, runs))
    total = ((dimension + 1 - rank) / 2 * np.log(a) + b / 2 * (1 / a - 1)).sum(axis=1)
    together = WishartLoss(dimension, rank, cosine, count=runs)
    for epsilon in (0.5, 1.0, 2.0):
        gained = np.maximum(-np.expm1(epsilon - total), 0.0)
        mean, error = gained.mean(), gained.std() / math.sqrt(size)
        assert found((mean - 4 * error) / together.delta(epsilon)) <= 1
        assert together.delta(epsilon) < 1.06 * mean + 4 * error
    assert together.epsilon(together.delta(1.0)) == pytest.approx(1.0, rel=1e-3)
    both = PrivacyLoss(0.1, parts=(together,))
    assert together.epsilon(1e-5) < both.epsilon(1e-5) < together.epsilon(5e-6) + gaussian_epsilon(0.1, 5e-6)


def printed(dimension, rank, cosine, delta, *, coefficient):
    """Theorem 1 of the paper that has it, with all of its delta in three quantiles."""
    share = delta / 3
    reach = math.sqrt((1 - cosine**2) / rank) * stats.t.isf(share, rank)
    most = stats.chi2.isf(share, dimension + rank - 1)
    log_part = coefficient / 2 * math.log(cosine + reach)
    return log_part + (1 - cosine + reach) * most / (2 * (cosine - reach))


@pytest.mark.parametrize("coefficient", [50 + 1000 - 1, abs(50 + 1 - 1000)])
def test_a_printed_bound_is_exceeded_and_ours_is_not(coefficient):
    loss = WishartLoss(50, 1000, 0.99)
    claim = printed(50, 1000, 0.99, 1e-5, coefficient=coefficient)
    assert loss.exact_delta(claim) > 10 * 1e-5
    assert claim < 26 < 29 < loss.epsilon(1e-5)
    assert loss.exact_delta(loss.epsilon(1e-5)) <= 1e-5


def test_outputs_that_only_one_side_has_leave_no_renyi_divergence_finite():
    loss = WishartLoss(8, 2, 0.9)
    lost = float(stats.t.cdf(-0.9 * math.sqrt(2) / math.sqrt(1 - 0.81), 2))
    rng = np.random.default_rng(6)
    one, other = directions(8, 0.9)
    y = projected(rng, one, 2, 40_000)
    assert (y @ one > 0).all()
    assert (y @ other <= 0).mean() == pytest.approx(lost, rel=0.1)
    assert lost < loss.delta(200.0)
    assert loss.epsilon(lost) == math.inf
    assert loss.curve() is None
    assert loss.renyi(1.5) == math.inf
    assert PrivacyLoss(parts=(loss,)).renyi(2.0) == math.inf


def test_a_matrix_instead_of_a_direction_is_told_apart_with_certainty():
    """Why only a direction is offered: the released matrix says whether it is that of one's own rows."""
    rng = np.random.default_rng(7)
    V = rng.standard_normal((20, 2))
    neighbour = V + 1e-3 * rng.standard_normal(V.shape)
    for rank in (1, 5, 50):
        Z = rng.standard_normal((20, rank))
        skew = [abs(np.diff([(V.T @ Y)[0, 1], (V.T @ Y)[1, 0]])[0]) for Y in (Z @ Z.T @ V, Z @ Z.T @ neighbour)]
        assert skew[0] < 1e-11 < 1e-4 < skew[1]


@pytest.mark.parametrize(
    "wrong", [(1, 5, 0.9), (5, 0, 0.9), (5, 5, 0.0), (5, 5, 1.0), (5, 5, math.nan), (5.5, 5, 0.9), (5, 2.0, 0.9)]
)
def test_impossible_losses_are_refused(wrong):
    with pytest.raises(InvalidParameter):
        WishartLoss(*wrong)


def test_what_is_recorded_and_said():
    loss = WishartLoss(50, 20, 0.999, count=3)
    assert Part.from_dict(loss.to_dict()) == loss
    assert loss.to_dict() == {"kind": "wishart", "count": 3, "cosine": 0.999, "dimension": 50, "rank": 20}
    assert "cosine" in loss.words()
    assert "real arithmetic" in loss.idealised
