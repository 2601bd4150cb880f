"""A secret random projection of a direction: simulated, attacked, and held against the exact law."""

import math

import mpmath as mp
import numpy as np
import pytest
from effort import found, rounds
from scipy import special, stats

from ppdp.exceptions import InvalidParameter
from ppdp.privacy import WishartLoss
from ppdp.privacy.gaussian import gaussian_epsilon
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.losses import Part

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
