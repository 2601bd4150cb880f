"""Rényi curves against quadrature, enumeration and simulation-free exact laws: never below the truth."""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from effort import rounds
from hybrids import interpolated, weak_triangle
from scipy.special import logsumexp

from ppdp.core.distance import Distance
from ppdp.exceptions import ImpossibleBudget, InvalidParameter
from ppdp.privacy.gaussian import gaussian_epsilon, gaussian_mu
from ppdp.privacy.renyi import (
    ORDERS,
    bounded_range_curve,
    composed,
    gaussian_curve,
    hidden_iterate_curve,
    laplace_curve,
    linear_weak_triangle,
    renyi_delta,
    renyi_epsilon,
    renyi_epsilon_classic,
    repeated,
)

NEVER_BELOW = 1 - 1e-12


def divergence(p, q, alpha):
    """Rényi divergence of two laws on finitely many points, all of positive probability."""
    if math.isinf(alpha):
        return float(np.log(p / q).max())
    logs = alpha * np.log(p) - (alpha - 1) * np.log(q)
    return float(logs.max() + math.log(np.exp(logs - logs.max()).sum())) / (alpha - 1)


def exact(p, q):
    """The curve of a pair, both ways round."""
    return lambda alpha: max(divergence(p, q, alpha), divergence(q, p, alpha), 0.0)


def at_two(moves_slope, replacement_slope):
    """What the printed theorem gives for linear curves at c = 2, both parts with the larger factor."""
    return lambda alpha: (2 * alpha - 1) / (alpha - 1) * alpha * (moves_slope + replacement_slope)


def laws(rng, count, size=6):
    return rng.dirichlet(np.full(size, rng.uniform(0.3, 3)), size=count) + 1e-9


class TestLaplace:
    @pytest.mark.parametrize("shift", [1e-6, 1e-3, 0.1, 1.0, 7.0])
    @pytest.mark.parametrize("alpha", [1.01, 1.5, 2.0, 11.0, 60.0])
    @pytest.mark.repeated("shift", keep=2)
    def test_is_the_divergence(self, shift, alpha):
        with mp.workdps(50):
            a, s = mp.mpf(alpha), mp.mpf(shift)
            pieces = [  # of the integral of p^a q^(1-a), p = exp(-|x|)/2, q = exp(-|x - s|)/2
                mp.exp((1 - a) * -s) / 2,
                mp.quad(lambda x: mp.exp(-a * x - (1 - a) * (s - x)) / 2, [0, s]),
                mp.exp(-a * s) / 2,
            ]
            # Outside [0, s] the ratio is constant: mass 1/2 with exp((a-1)s), and Q-mass 1/2 with exp(-a s).
            truth = mp.log(mp.fsum(pieces)) / (a - 1)
        answer = laplace_curve(shift)(alpha)
        assert truth * NEVER_BELOW <= answer <= truth * (1 + 1e-6)

    def test_infinite_order_is_the_pure_loss(self):
        assert laplace_curve(0.7)(math.inf) == 0.7
        assert laplace_curve(0.0)(2.0) == 0.0

    def test_a_vector_costs_most_in_one_coordinate(self):
        rng = np.random.default_rng(0)
        for _ in range(200):
            shift, alpha = rng.uniform(0.01, 6), 1 + rng.exponential(4)
            parts = shift * rng.dirichlet(np.ones(4))
            assert composed(*(laplace_curve(part) for part in parts))(alpha) <= laplace_curve(shift)(alpha) * (1 + 1e-9)

    def test_small_shifts_are_a_quarter_of_the_pure_square(self):
        """alpha s²/2 to leading order: what "s-DP implies alpha s²/2" says, and not the 2 alpha s² of older tables."""
        assert laplace_curve(1e-3)(2.0) == pytest.approx(2 * 1e-6 / 2, rel=1e-2)


class TestBoundedRange:
    @pytest.mark.parametrize("width", [1e-3, 0.1, 1.0, 4.0, 20.0])
    @pytest.mark.parametrize("alpha", [1.05, 2.0, 11.0, 200.0])
    @pytest.mark.repeated("width", keep=2)
    def test_is_the_worst_pair_of_two_outcomes(self, width, alpha):
        with mp.workdps(60):
            a, w = mp.mpf(alpha), mp.mpf(width)

            def of(upper):  # losses upper and upper - width, probabilities under Q such that P is a law
                q = (mp.exp(-upper) - mp.exp(-w)) / (1 - mp.exp(-w))
                return mp.log(q * mp.exp(a * upper) + (1 - q) * mp.exp(a * (upper - w))) / (a - 1)

            low, high, truth = mp.mpf(0), w, mp.mpf(0)
            for _ in range(6):  # the best upper loss, by ever finer grids
                grid = [low + (high - low) * i / 16 for i in range(17)]
                best = max(range(17), key=lambda i: of(grid[i]))
                truth, low, high = max(truth, of(grid[best])), grid[max(best - 1, 0)], grid[min(best + 1, 16)]
        answer = bounded_range_curve(width)(alpha)
        assert truth * NEVER_BELOW <= answer <= truth * (1 + 1e-7)

    def test_no_exponential_mechanism_exceeds_it(self):
        rng = np.random.default_rng(1)
        worst = 0.0
        for _ in range(3000):
            scores, change = rng.exponential(3, size=5), rng.uniform(0.05, 2)
            other = scores + change * rng.choice([-1, 1, 0.3], size=5)
            p, q = (np.exp(x) / np.exp(x).sum() for x in (scores, other))
            alpha = 1 + rng.exponential(3)
            worst = max(worst, divergence(p, q, alpha) / bounded_range_curve(2 * change)(alpha))
        assert 0.9 < worst <= 1

    def test_never_above_either_simple_bound(self):
        for width, alpha in itertools.product((0.01, 1.0, 30.0), (1.01, 3.0, 500.0)):
            assert bounded_range_curve(width)(alpha) <= min(width, alpha * width**2 / 8 * (1 + 1e-11))
        assert bounded_range_curve(2.0)(math.inf) == 2.0
        assert bounded_range_curve(0.0)(3.0) == 0.0


class TestHiddenIterate:
    """The last iterate of an affine iteration in one dimension is Gaussian: the hidden time makes a mixture."""

    @staticmethod
    def divergence(shifts, factor, sigma, alpha):
        """Of theta <- factor theta + shift_t + sigma Z with each time 1..n equally likely, against no shifts."""
        n, means, variances, mean, variance = len(shifts), [], [], 0.0, 0.0
        for shift in shifts:
            mean, variance = factor * mean + shift, factor**2 * variance + sigma**2
            means.append(mean)
            variances.append(variance)
        means, deviations = np.array(means), np.sqrt(variances)
        reach = 12 * deviations.max() + (1 + alpha) * np.abs(means).max()
        x = np.linspace(-reach, reach, 10_001)[:, None]

        def log_density(centre):
            z = (x - centre) / deviations
            return logsumexp(-z * z / 2 - np.log(deviations) - math.log(2 * math.pi) / 2 - math.log(n), axis=1)

        moment = logsumexp(alpha * log_density(means) - (alpha - 1) * log_density(0.0)) + math.log(x[1, 0] - x[0, 0])
        return float(moment) / (alpha - 1)

    def test_no_affine_iteration_exceeds_it(self):
        """Steps contract (|factor| <= 1 is convex and smooth with eta <= 2/beta); shifts may be anywhere."""
        rng = np.random.default_rng(2)
        worst = 0.0
        for _ in range(rounds(80)):
            n, alpha = int(rng.integers(2, 8)), 1 + rng.exponential(2)
            total, where = rng.uniform(0.1, 2.5), rng.integers(0, 3)
            shifts = total * (rng.dirichlet(np.full(n, 0.4)) if where else np.eye(n)[0])
            truth = self.divergence(shifts, rng.choice([1.0, -1.0, 0.5, 0.0]), 1.0, alpha)
            curve = hidden_iterate_curve(
                Distance(replaced=1), n_rows=n, bound=total / 2, lipschitz=1.0, noise_scale=1.0
            )
            worst = max(worst, truth / curve(alpha))
        assert 0.85 < worst <= 1 + 1e-7

    def test_a_row_in_front_that_nothing_forgets_comes_near(self):
        truth = self.divergence(np.array([0.2, 0]), 1.0, 1.0, 1.05)
        curve = hidden_iterate_curve(Distance(replaced=1), n_rows=2, bound=0.1, lipschitz=1.0, noise_scale=1.0)
        assert 0.9 < truth / curve(1.05) <= 1

    def test_every_kind_of_row_counts(self):
        def shift_of(distance, lipschitz=2.0):  # one row, one step: alpha V²/2
            curve = hidden_iterate_curve(distance, n_rows=1, bound=0.5, lipschitz=lipschitz, noise_scale=1.0)
            return math.sqrt(curve(2.0))

        assert shift_of(Distance(replaced=2)) == pytest.approx(2.0)
        assert shift_of(Distance(toggled=1)) == pytest.approx(0.5)
        assert shift_of(Distance(moved=3, radius=0.1)) == pytest.approx(0.6)
        assert shift_of(Distance(moved=3, radius=9.0)) == pytest.approx(3.0)  # never more than replaced
        assert shift_of(Distance(moved=3, radius=0.1), math.inf) == pytest.approx(3.0)
        assert shift_of(Distance(reweighted=1)) == pytest.approx(0.5)
        assert shift_of(Distance(reordered=2)) == pytest.approx(1.0)  # one row per step: positions matter
        assert shift_of(Distance()) == 0.0

    @pytest.mark.parametrize("n", [10, 5000, 100_000])
    @pytest.mark.parametrize("total", [0.01, 1.0, 6.0])
    @pytest.mark.repeated("total")
    def test_long_runs_are_summed_from_above(self, n, total):
        curve = hidden_iterate_curve(Distance(replaced=1), n_rows=n, bound=total / 2, lipschitz=1.0, noise_scale=1.0)
        for alpha in (1.1, 2.0, 20.0):
            with mp.workdps(30):
                c = mp.mpf(alpha) * (mp.mpf(alpha) - 1) * mp.mpf(total) ** 2 / 2
                mean = mp.fsum(mp.exp(c / j) for j in range(1, min(n, 5000) + 1))
                if n > 5000:  # the tail by its second-order expansion, which has this error at most
                    h = lambda k: mp.harmonic(n) - mp.harmonic(k)  # noqa: E731
                    mean += (
                        (n - 5000) + c * h(5000) + c * c / 2 * (mp.mpf(1) / 5000 - mp.mpf(1) / n) * (1 + 2 * c / 5000)
                    )
                truth = mp.log(mean / n) / (mp.mpf(alpha) - 1)
            assert truth * (1 - 1e-9) <= curve(alpha) <= truth * 1.002

    def test_an_infinite_order_is_not_bounded(self):
        curve = hidden_iterate_curve(Distance(replaced=1), n_rows=9, bound=1.0, lipschitz=1.0, noise_scale=1.0)
        assert curve(math.inf) == math.inf


class TestInterpolation:
    def test_is_above_a_curve_that_is_known_at_integers_only(self):
        for truth in (laplace_curve(1.3), bounded_range_curve(2.0), gaussian_curve(0.8)):
            curve = interpolated({order: truth(order) for order in range(2, 9)})
            for alpha in np.linspace(1.01, 8, 60):
                assert truth(alpha) * NEVER_BELOW <= curve(alpha)
            for order in range(2, 9):
                assert curve(order) == pytest.approx(truth(order), rel=1e-9)

    def test_interpolating_the_divergence_itself_would_be_unsound(self):
        """D is concave in 1/a for a Laplace pair: a chord of D is below D somewhere, a chord of (a-1) D never."""
        truth = laplace_curve(3.0)
        chord = (truth(2.0) + truth(4.0)) / 2
        assert chord < truth(3.0) <= interpolated({2: truth(2.0), 4: truth(4.0)})(3.0)

    def test_says_nothing_above_the_largest_order(self):
        assert interpolated({2: 0.1, 3: 0.2})(3.5) == math.inf


class TestWeakTriangle:
    def test_no_three_laws_exceed_it(self):
        rng = np.random.default_rng(3)
        worst = 0.0
        for _ in range(rounds(50)):
            p, m, q = laws(rng, 3)
            other = laws(rng, 1)[0] if rng.random() < 0.5 else m  # the other hybrid: replacement first
            moves = lambda a: max(exact(p, m)(a), exact(other, q)(a))  # noqa: B023, E731
            replacement = lambda a: max(exact(m, q)(a), exact(p, other)(a))  # noqa: B023, E731
            alpha = 1 + rng.exponential(2)
            worst = max(worst, exact(p, q)(alpha) / weak_triangle(moves, replacement)(alpha))
        assert 0.5 < worst <= 1 + 1e-9

    @pytest.mark.parametrize("a", [0.005, 0.5, 50.0])
    @pytest.mark.parametrize("alpha", [1.1, 2.0, 11.0])
    def test_gaussian_shifts_add_up_exactly(self, a, alpha):
        """alpha (sqrt a + sqrt b)²: the divergence of the sum of the two shifts, so nothing is lost."""
        direct = gaussian_curve(math.sqrt(2 * a) + 1.0)(alpha)
        assert linear_weak_triangle(a, 0.5)(alpha) == pytest.approx(direct, rel=1e-9)
        found = weak_triangle(lambda o: a * o, lambda o: 0.5 * o)(alpha)
        assert direct * NEVER_BELOW <= found <= direct * (1 + 1e-6)

    def test_the_printed_choice_loses_up_to_a_factor_of_two(self):
        """c = 2 with the larger factor on both parts, as in the printed tables (alpha = 11): 1.05 alpha (1 + t²)."""
        for t, loss in ((0.01, 2.06), (0.1, 1.75), (1.0, 1.05), (10.0, 1.75)):
            printed = at_two(t**2 / 2, 0.5)(11)
            assert printed == pytest.approx(1.05 * 11 * (1 + t**2))
            assert printed / linear_weak_triangle(t**2 / 2, 0.5)(11) == pytest.approx(loss, rel=0.005)

    def test_the_end_points_matter_for_pure_losses(self):
        """At c = 1 one part keeps its order and the other pays its pure loss: the best for Laplace noise."""
        moves, replacement = laplace_curve(0.2), laplace_curve(1.0)
        found = weak_triangle(moves, replacement)(4.0)
        assert found <= min(moves(4.0) + 1.0, replacement(4.0) + 0.2) * (1 + 1e-9)
        assert laplace_curve(1.2)(4.0) <= found
        assert weak_triangle(moves, replacement)(math.inf) <= 1.2 * (1 + 1e-9)

    def test_both_hybrids_are_used(self):
        """One curve is known at small orders only: in one of the two hybrids that is no harm."""
        short, long = interpolated({2: 0.1, 3: 0.2}), laplace_curve(0.5)
        one, other = weak_triangle(short, long)(2.5), weak_triangle(long, short)(2.5)
        assert one == pytest.approx(other)
        assert one <= short(2.5) + 0.5 + 1e-9

    def test_nothing_moved_costs_nothing_more(self):
        nothing, release = gaussian_curve(0.0), gaussian_curve(1.0)
        assert weak_triangle(nothing, release)(3.0) == pytest.approx(1.5, rel=1e-5)
        assert linear_weak_triangle(0.0, 0.5)(3.0) == pytest.approx(1.5)


class TestConversion:
    @pytest.mark.parametrize(
        ("mu", "improved", "classic", "from_eleven"),
        [(0.1, 0.4300, 0.5307, 0.5307), (0.5, 2.419, 2.753, 2.753), (1, 5.222, 5.757, 6.882), (2, 11.69, 12.52, 23.4),
         (5, 37.43, 38.82, 138.9)],
    )  # fmt: skip
    def test_known_figures(self, mu, improved, classic, from_eleven):
        curve = gaussian_curve(mu)
        assert gaussian_epsilon(mu, 1e-6) <= renyi_epsilon(curve, 1e-6) == pytest.approx(improved, rel=1e-3)
        assert renyi_epsilon_classic(curve, 1e-6) == pytest.approx(classic, rel=1e-3)
        late = renyi_epsilon_classic(curve, 1e-6, [order for order in ORDERS if order >= 11] + [11.0])
        assert late == pytest.approx(from_eleven, rel=2e-3)

    def test_improved_is_true_and_never_worse(self):
        for mu, delta in itertools.product((1e-3, 0.03, 0.7, 4.0, 15.0), (1e-12, 1e-5, 0.1)):
            curve = gaussian_curve(mu)
            epsilon = renyi_epsilon(curve, delta)
            assert gaussian_epsilon(mu, delta) <= epsilon <= renyi_epsilon_classic(curve, delta)
            assert renyi_delta(curve, epsilon) <= delta * (1 + 1e-9) or epsilon == 0

    def test_random_laws_satisfy_what_is_promised(self):
        rng = np.random.default_rng(4)
        orders = ORDERS[::8]
        for _ in range(100):
            p, q = laws(rng, 2)
            p, q = p / p.sum(), q / q.sum()
            delta = 10 ** rng.uniform(-4, -0.5)
            epsilon = renyi_epsilon(exact(p, q), delta, orders)
            assert np.maximum(p - math.exp(epsilon) * q, 0).sum() <= delta
            at = rng.uniform(0, 2)
            assert np.maximum(p - math.exp(at) * q, 0).sum() <= renyi_delta(exact(p, q), at, orders)

    def test_agrees_with_dp_accounting(self):
        from dp_accounting.rdp import compute_epsilon

        for mu in (0.1, 1.0, 4.0):
            curve = gaussian_curve(mu)
            theirs, _ = compute_epsilon(ORDERS, [curve(order) for order in ORDERS], 1e-6)
            assert renyi_epsilon(curve, 1e-6) == pytest.approx(theirs, rel=1e-9)

    def test_composed_laplace_releases(self):
        """T = 50, scale 20, shift 1.2: pure 3.0, Rényi 1.91."""
        run = repeated(laplace_curve(1.2 / 20), 50)
        assert run(math.inf) == pytest.approx(3.0)
        assert renyi_epsilon(run, 1e-6) == pytest.approx(1.91, rel=0.005)
        assert repeated(gaussian_curve(1.0), 0)(2.0) == 0.0

    @pytest.mark.parametrize(
        ("total", "moved", "printed", "best", "direct"),
        [(0.2, 20, 1.63, 1.31, 1.22), (2, 200, 3.94, 3.56, 3.32), (10, 100, 26.9, 16.1, 15.2),
         (0.2222, 10, 1.64, 1.34, 1.24), (2, 50, 3.94, 3.56, 3.32), (33.33, 50, 198, 74.0, 70.9),
         (81.33, 500, 1098, 290, 282), (174.3, 101, None, 416, 405), (12.2, 101, 36.1, 20.3, 19.1)],
    )  # fmt: skip
    def test_figures_of_the_corrected_second_theorem(self, total, moved, printed, best, direct):
        """Base mechanism (1, 1e-6); epsilon at 1e-6 after pre-processing that moves rows by ``total`` in all."""
        mu, moves = gaussian_mu(1.0, 1e-6), min(total, moved)
        truth = gaussian_epsilon(mu * (1 + moves), 1e-6)
        assert truth == pytest.approx(direct, rel=0.01)
        found = renyi_epsilon(linear_weak_triangle((mu * moves) ** 2 / 2, mu**2 / 2), 1e-6)
        assert truth <= found == pytest.approx(best, rel=0.01)
        if printed is not None:
            used = at_two((mu * moves) ** 2 / 2, mu**2 / 2)
            assert found < renyi_epsilon(used, 1e-6) == pytest.approx(printed, rel=0.01)


class TestParameters:
    def test_orders_must_be_above_one(self):
        curves = [
            gaussian_curve(1.0), laplace_curve(1.0), bounded_range_curve(1.0), interpolated({2: 1.0}),
            linear_weak_triangle(1.0, 1.0), weak_triangle(gaussian_curve(1.0), gaussian_curve(1.0)),
            hidden_iterate_curve(Distance(replaced=1), n_rows=1, bound=1.0, lipschitz=1.0, noise_scale=1.0),
        ]  # fmt: skip
        for curve in curves:
            with pytest.raises(InvalidParameter):
                curve(1.0)

    def test_impossible_numbers_are_refused(self):
        wrongs = (
            lambda: gaussian_curve(-1),
            lambda: laplace_curve(math.nan),
            lambda: bounded_range_curve(-0.1),
            lambda: interpolated({2: -1.0}),
            lambda: interpolated({1: 1.0}),
            lambda: repeated(gaussian_curve(1), -1),
        )
        for wrong in wrongs:
            with pytest.raises(InvalidParameter):
                wrong()
        for delta in (0.0, -1e-6, 1.1, math.nan):
            with pytest.raises(ImpossibleBudget):
                renyi_epsilon(gaussian_curve(1.0), delta)
