"""Rényi divergences at one order: never below the truth, and close to it."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import simpson
from scipy.special import logsumexp
from scipy.stats import binom, norm

from ppdp.core.distance import Distance
from ppdp.exceptions import UnsupportedOrder
from ppdp.privacy.fixed_size import fixed_size_profile, fixed_size_renyi, poisson_renyi
from ppdp.privacy.ledger.privacy_filter import RenyiAccount, best_order
from ppdp.privacy.loss import parts_at_order
from ppdp.privacy.losses import FixedSizeSamples, Laplace, PoissonSamples
from ppdp.privacy.subsampling import poisson_pair

STEP = {"replaced": 1, "toggled": 0, "moved": 3, "radius": 0.1, "total": 0.2, "bound": 1.0, "lipschitz": 1.0}
ORDERS = (1.2, 2.0, 3.5, 10.0, 30.0)
X = np.linspace(-30, 40, 70_001)


def divergence(p, q, order):
    """Of densities on X, the larger of both ways round."""
    log_p, log_q = np.log(np.maximum(p, 1e-300)), np.log(np.maximum(q, 1e-300))
    ways = (order * a - (order - 1) * b for a, b in ((log_p, log_q), (log_q, log_p)))
    return max(logsumexp(way) + math.log(X[1] - X[0]) for way in ways) / (order - 1)


def mixture(sums, sigma):
    return np.mean([norm.pdf(X, loc=s, scale=sigma) for s in sums], axis=0)


class TestPoisson:
    @pytest.mark.parametrize("order", ORDERS)
    @pytest.mark.parametrize(("rate", "sigma"), [(0.5, 2.0), (0.25, 1.0)])
    @pytest.mark.repeated("rate", "sigma")
    def test_one_replaced_row_is_attained(self, order, rate, sigma):
        weights = np.array([1 - rate, rate])
        p, q = (weights @ [norm.pdf(X, loc=s, scale=sigma) for s in (0, sign)] for sign in (1, -1))
        found = poisson_renyi(Distance(replaced=1), order, rate=rate, bound=1.0, lipschitz=1.0, noise_scale=sigma)
        assert found == pytest.approx(divergence(p, q, order), rel=1e-6)
        assert found >= divergence(p, q, order) * (1 - 1e-9)

    @pytest.mark.parametrize("order", ORDERS)
    @pytest.mark.parametrize(
        "rows", [([1.0, 0.3, -0.5], [-1.0, 0.5, -0.3]), ([1.0, 0.2], [0.0, 0.2]), ([0.0, 0.4, 0.4], [-1.0, 0.2, 0.2])]
    )
    @pytest.mark.repeated("order", keep=2)
    def test_all_samples_enumerated_stay_below(self, order, rows):
        rate, sigma, (one, other) = 0.5, 1.5, map(np.array, rows)
        toggled = int(0.0 in (one[0], other[0]))
        moves = np.abs(one[1:] - other[1:])
        distance = Distance(
            replaced=1 - toggled, toggled=toggled, moved=int((moves > 0).sum()), radius=float(moves.max())
        )
        kept = [np.array(k) for k in itertools.product((0, 1), repeat=len(one))]
        p, q = (mixture([k @ data for k in kept], sigma) for data in (one, other))
        found = poisson_renyi(distance, order, rate=rate, bound=1.0, lipschitz=1.0, noise_scale=sigma)
        assert divergence(p, q, order) <= found * (1 + 1e-9)


class TestManyMovedRows:
    """Whatever all n rows cost if all of them were sampled, that has probability rate^n."""

    RATE, ROWS = 0.01, 10_000
    LIMIT = 3.0, 1e-6
    ORDER = best_order(*LIMIT)

    def found(self, radius, order, sigma, **rows):
        distance = Distance(moved=self.ROWS, radius=radius, **rows)
        return poisson_renyi(distance, order, rate=self.RATE, bound=1.0, lipschitz=1.25, noise_scale=sigma)

    @pytest.mark.parametrize("order", [2.0, ORDER, 32.0])
    @pytest.mark.parametrize(("radius", "sigma"), [(1e-4, 5.0), (1e-3, 5.0), (4e-3, 20.0), (4e-3, 5.0)])
    @pytest.mark.repeated("order")
    def test_moved_rows_alone_cost_the_sum_over_all_their_numbers(self, radius, sigma, order):
        k = np.arange(self.ROWS + 1)
        shifts = 1.25 * radius * k / sigma
        log_moment = logsumexp(binom.logpmf(k, self.ROWS, self.RATE) + order * (order - 1) * shifts**2 / 2)
        found = self.found(radius, order, sigma)
        assert log_moment / (order - 1) * (1 - 1e-6) <= found <= 1.02 * log_moment / (order - 1)

    @pytest.mark.parametrize(("radius", "sigma"), [(1e-3, 5.0), (4e-3, 20.0)])
    @pytest.mark.repeated("radius", "sigma")
    def test_with_a_replaced_row(self, radius, sigma):
        """The same sum, of divergences by quadrature; more than 400 of 10,000 at a rate of 0.01 do not matter."""
        k = np.arange(401)
        pairs = (poisson_pair(self.RATE, 1 / sigma, shift=1.25 * radius * i / sigma) for i in k)
        moments = np.array([(self.ORDER - 1) * pair.renyi(self.ORDER) for pair in pairs])
        truth = logsumexp(binom.logpmf(k, self.ROWS, self.RATE) + moments) / (self.ORDER - 1)
        assert truth * (1 - 1e-6) <= self.found(radius, self.ORDER, sigma, replaced=1) <= 1.02 * truth

    def test_a_ledger_has_room_for_more_than_one_fit(self):
        account, epsilon, delta = RenyiAccount(self.ORDER), *self.LIMIT
        fit = 20 * self.found(4e-3, self.ORDER, 20.0, replaced=1)
        assert account.epsilon(2 * fit, delta) < epsilon


class TestFixedSize:
    @pytest.mark.parametrize("order", [*ORDERS, 300.0, 5000.0])
    @pytest.mark.parametrize("mu", [0.01, 0.3, 2.0])
    @pytest.mark.repeated("mu")
    def test_a_batch_of_all_rows_is_a_gaussian_release(self, order, mu):
        found = fixed_size_renyi(
            Distance(replaced=1), order, n_rows=9, batch_size=9, bound=mu / 2, lipschitz=1.0, noise_scale=1.0
        )
        assert order * mu**2 / 2 <= found <= order * mu**2 / 2 * (1 + 5e-4)

    @pytest.mark.parametrize("order", ORDERS)
    @pytest.mark.parametrize("moved", [False, True])
    @pytest.mark.repeated("order", keep=3)
    def test_all_batches_enumerated_stay_below(self, order, moved):
        sigma = 2.0
        one, other = np.array([1.0, -1, -1, -1]), np.array([-1.0, -1, -1, -1])
        if moved:
            other = np.array([-1.0, -0.8, -0.9, -1])
        batches = [list(batch) for batch in itertools.combinations(range(4), 2)]
        p, q = (mixture([data[batch].sum() for batch in batches], sigma) for data in (one, other))
        distance = Distance(replaced=1, moved=2 * moved, radius=0.2 * moved)
        found = fixed_size_renyi(distance, order, n_rows=4, batch_size=2, bound=1.0, lipschitz=1.0, noise_scale=sigma)
        true = divergence(p, q, order)
        assert true <= found
        assert moved or order > 3 or found < 1.7 * true

    @pytest.mark.parametrize("order", ORDERS)
    @pytest.mark.parametrize(("fraction", "mu"), [(0.01, 0.3), (0.1, 0.5), (0.4, 0.2)])
    @pytest.mark.repeated("fraction", "mu")
    def test_it_is_the_integral_over_the_profile(self, order, fraction, mu):
        """By Simpson's rule, elsewhere by chords."""
        e = np.linspace(0, (order + 1) * mu**2 + 12 * mu, 100_001)
        heights = fixed_size_profile(fraction, mu).forward(e)
        integral = simpson((np.exp((order - 1) * e) + np.exp(-order * e)) * heights, x=e)
        expected = math.log1p(order * (order - 1) * integral) / (order - 1)
        found = fixed_size_renyi(
            Distance(replaced=1), order, n_rows=1000, batch_size=round(1000 * fraction), bound=mu / 2, lipschitz=1.0,
            noise_scale=1.0,
        )  # fmt: skip
        assert expected * (1 - 1e-6) <= found <= expected * (1 + 1e-4)

    def test_more_rows_than_one_are_refused(self):
        with pytest.raises(UnsupportedOrder):
            fixed_size_renyi(
                Distance(replaced=2), 2.0, n_rows=9, batch_size=3, bound=1.0, lipschitz=1.0, noise_scale=1.0
            )


class TestParts:
    SAMPLED = PoissonSamples(**STEP, rate=0.05, noise_scale=3.0, count=20)
    BATCHES = FixedSizeSamples(**STEP, n_rows=100, batch_size=5, noise_scale=6.0, count=20)

    def test_everything_has_a_divergence_and_they_add(self):
        parts = (self.SAMPLED, self.BATCHES, Laplace(shift=0.1, scale=1.0, count=3))
        each = [part.renyi(7.0) for part in parts]
        assert all(0 < value < math.inf for value in each)
        assert parts_at_order(0.2, parts, 7.0) == pytest.approx(7 * 0.2**2 / 2 + sum(each))
        assert parts_at_order(0.0, (), 7.0) == 0.0

    @pytest.mark.parametrize("part", [SAMPLED, BATCHES], ids=["poisson", "fixed-size"])
    def test_runs_add_and_noise_helps(self, part):
        one = replace(part, count=1)
        assert part.renyi(5.0) == pytest.approx(20 * one.renyi(5.0))
        quieter = replace(part, noise_scale=2.0)
        assert quieter.renyi(5.0) > part.renyi(5.0)
