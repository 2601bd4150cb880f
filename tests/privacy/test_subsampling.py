"""Sampled steps against brute force over all samples, quadrature, 40 digits and accountants: never below the truth."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from effort import rounds
from hybrids import interpolated, weak_triangle
from sampled_steps import (
    COARSE,
    EPSILONS,
    NEGLIGIBLE,
    QUADRATURE,
    hockey_stick,
    poisson_samples,
    sampled,
    true_delta,
    true_profile_1d,
    within,
)
from scipy.stats import binom

from ppdp.core.distance import Distance
from ppdp.exceptions import InvalidParameter, UnsupportedOrder
from ppdp.privacy.fixed_size import fixed_size_step
from ppdp.privacy.gaussian import gaussian_delta, gaussian_epsilon
from ppdp.privacy.pld import fixed_size_distribution, loss_distribution, poisson_distribution
from ppdp.privacy.renyi import ORDERS, gaussian_curve, renyi_epsilon, repeated
from ppdp.privacy.subsampling import GaussianMixturePair, epoch_mu, gaussian_profile, poisson_pair, poisson_profiles


class TestMixturePair:
    PAIRS = (
        poisson_pair(0.01, 1.0),
        poisson_pair(1e-6, 30.0),
        poisson_pair(1e-6, 1.0),
        poisson_pair(0.3, 0.05, shift=0.01),
        poisson_pair(0.05, 2.0, rows=0, other_rows=1),
        poisson_pair(0.05, 2.0, rows=1, other_rows=0),
        poisson_pair(0.2, 0.7, rows=5, other_rows=3, shift=0.4),
        poisson_pair(1.0, 3.0, rows=2),
        GaussianMixturePair(np.log([0.5, 0.5]), np.array([0.0, 9.0]), np.log([0.9, 0.1]), np.array([0.1, 4.0])),
    )

    @pytest.mark.parametrize("number", range(len(PAIRS)))
    def test_delta_is_never_below_forty_digits_and_hardly_above(self, number):
        pair = self.PAIRS[number]
        for epsilon in (0.0, 1e-6, 1e-3, 0.1, 1.0, 4.0, 15.0):
            truth, answer = true_delta(pair, epsilon), float(pair.delta(epsilon)[0])
            assert truth <= answer * (1 + mp.mpf(10) ** -12)
            assert answer <= truth * (1 + 1e-5) + mp.mpf(10) ** -22

    def test_a_probability_too_small_for_a_number_is_0(self):
        with np.errstate(all="raise"):
            assert self.PAIRS[0].delta([1e4]).tolist() == [0.0]

    def test_identical_laws_cost_nothing(self):
        assert poisson_pair(0.5, 0.0).delta([0.0, 1.0]).tolist() == [0.0, 0.0]
        assert poisson_pair(0.5, 1.0, rows=0).delta([0.0]).tolist() == [0.0]

    @pytest.mark.parametrize("alpha", [1.1, 2.0, 7.0])
    @pytest.mark.parametrize("number", [0, 3, 4, 5])
    def test_renyi_is_the_integral(self, number, alpha):
        pair = self.PAIRS[number]
        x, step = np.linspace(-25, 25 + 2 * alpha * pair.gap, 20_001, dtype=np.longdouble, retstep=True)
        p, q = (
            np.exp(-((x[:, None] - means) ** 2) / 2 + log_weights).sum(axis=1)
            for means, log_weights in ((pair.a, pair.log_p), (-pair.b, pair.log_q))
        )
        moment = (p**alpha * q ** (1 - alpha)).sum() * step / np.sqrt(2 * np.pi)
        truth = np.log(moment) / (alpha - 1)
        assert truth * (1 - 1e-9) <= pair.renyi(alpha) <= truth * (1 + 1e-6) + 1e-11

    def test_renyi_of_two_shifted_gaussians(self):
        """The peak of the integrand is at alpha a + (alpha - 1) b: twice as far out as either mean suggests."""
        for alpha in (1.5, 5.0, 60.0):
            assert poisson_pair(1.0, 3.0, shift=0.5).renyi(alpha) == pytest.approx(alpha * 6.5**2 / 2, rel=1e-8)
        assert poisson_pair(1.0, 3.0).renyi(math.inf) == math.inf

    def test_collinear_and_opposite_is_the_worst_of_all_directions(self):
        """Lemma V on random mixtures in the plane."""
        rng = np.random.default_rng(5)
        grid = np.linspace(-9, 9, 181)
        cell = (grid[1] - grid[0]) ** 2
        points = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
        worst = 0.0
        for _ in range(30):
            u, v = rng.normal(size=(3, 2)), rng.normal(size=(2, 2))
            if rng.random() < 0.5:  # nearly the worst directions
                u, v = np.abs(u[:, :1]) * [1, 0.2], -np.abs(v[:, :1]) * [1, 0.1]
            weights = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(2))
            p, q = (
                sum(w * np.exp(-((points - m) ** 2).sum(axis=1) / 2) for w, m in zip(ws, means)) / (2 * math.pi)
                for ws, means in zip(weights, (u, v))
            )
            norms = np.linalg.norm(u, axis=1), np.linalg.norm(v, axis=1)
            bound = GaussianMixturePair(np.log(weights[0]), norms[0], np.log(weights[1]), norms[1]).delta(EPSILONS)
            truth = hockey_stick(p, q, EPSILONS, cell)
            worst = max(worst, float((truth / (bound + NEGLIGIBLE)).max()))
        assert 0.9 < worst <= 1 + 1e-4


class TestPoisson:
    DISTANCES = (
        Distance(replaced=1),
        Distance(replaced=2),
        Distance(toggled=1),
        Distance(toggled=2),
        Distance(replaced=1, toggled=1),
        Distance(moved=3, radius=0.4),
        Distance(moved=4, radius=0.5, total=0.8),
        Distance(replaced=1, moved=3, radius=0.3),
        Distance(replaced=1, toggled=1, moved=2, radius=0.3, total=0.4),
    )

    @staticmethod
    def bound(distance, rate, sigma, lipschitz=1.25):
        profiles = poisson_profiles(distance, rate=rate, bound=1.0, lipschitz=lipschitz, noise_scale=sigma)
        return np.max([np.maximum(p.forward(EPSILONS), p.backward(EPSILONS)) for p in profiles], axis=0)

    @pytest.mark.parametrize("number", range(len(DISTANCES)))
    def test_brute_force_on_a_line(self, number):
        """All 2^n samples of random datasets at the distance; the worst ones reach the bound."""
        distance, rng, worst = self.DISTANCES[number], np.random.default_rng(number), 0.0
        for _ in range(rounds(8)):
            rate, sigma = rng.choice([0.05, 0.2, 0.6]), rng.choice([0.7, 1.0, 2.0])
            left, right = within(distance, 1.0, 1.25, rng)
            samples, weights = poisson_samples(len(left), rate)
            truth = true_profile_1d(left[:, 0], right[:, 0], samples, weights, sigma)
            ratio = truth / (self.bound(distance, rate, sigma) * QUADRATURE + NEGLIGIBLE)
            worst = max(worst, float(ratio.max()))
        assert 0.5 < worst <= 1

    @pytest.mark.parametrize("distance", [Distance(replaced=1), Distance(replaced=1, moved=2, radius=0.4)])
    def test_brute_force_in_the_plane(self, distance):
        rng, worst = np.random.default_rng(11), 0.0
        grid = np.linspace(-9, 9, 121)
        points, cell = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2), (grid[1] - grid[0]) ** 2
        for _ in range(8):
            rate, sigma = rng.choice([0.1, 0.5]), rng.choice([1.0, 1.4])
            left, right = within(distance, 1.0, 1.25, rng, ((1.0, 0.0), (0.6, 0.8)))
            samples, weights = poisson_samples(len(left), rate)
            p, q = (
                sum(
                    w * np.exp(-((points - m) ** 2).sum(axis=1) / (2 * sigma**2)) / (2 * math.pi * sigma**2)
                    for w, m in zip(weights, samples @ rows)
                )
                for rows in (left, right)
            )
            truth = np.maximum(hockey_stick(p, q, EPSILONS, cell), hockey_stick(q, p, EPSILONS, cell))
            worst = max(worst, float((truth / (self.bound(distance, rate, sigma) + NEGLIGIBLE)).max()))
        assert 0.8 < worst <= 1 + 1e-4

    def test_replaced_rows_that_face_each_other_attain_it(self):
        for rows, rate in ((1, 0.3), (3, 0.2)):
            samples, weights = poisson_samples(rows, rate)
            truth = true_profile_1d(np.ones(rows), -np.ones(rows), samples, weights, 1.0)
            np.testing.assert_allclose(self.bound(Distance(replaced=rows), rate, 1.0), truth, rtol=1e-5)

    def test_toggled_rows_cost_both_ways_round(self):
        """The reverse of a pair is another pair: whoever takes one direction for the other under-charges."""
        (profile,) = poisson_profiles(Distance(toggled=1), rate=0.1, bound=1.0, lipschitz=1.0, noise_scale=1.0)
        for epsilon in (0.0, 0.3, 1.0):
            one, other = (true_delta(poisson_pair(0.1, 1.0, rows=a, other_rows=1 - a), epsilon) for a in (0, 1))
            assert float(profile.forward(np.array([epsilon]))[0]) == pytest.approx(float(one), rel=1e-6)
            assert float(profile.backward(np.array([epsilon]))[0]) == pytest.approx(float(other), rel=1e-6)
        losses = [float(side(np.array([0.3]))[0]) for side in (profile.forward, profile.backward)]
        assert losses[0] < 1e-12 < 0.005 < losses[1]  # a row that is missing can be noticed by log(1 / (1 - q)) at most

    def test_toggled_rows_may_be_split_in_any_way(self):
        profiles = poisson_profiles(Distance(toggled=4), rate=0.2, bound=1.0, lipschitz=1.0, noise_scale=1.0)
        assert len(profiles) == 3  # 0 + 4, 1 + 3, 2 + 2; the other two are reverses

    @pytest.mark.parametrize("distance", [Distance(toggled=40), Distance(replaced=30, toggled=10)])
    def test_too_many_splits_to_try_are_charged_as_replaced(self, distance):
        (many,) = poisson_profiles(distance, rate=0.2, bound=1.0, lipschitz=1.0, noise_scale=1.0)
        (replaced,) = poisson_profiles(Distance(replaced=40), rate=0.2, bound=1.0, lipschitz=1.0, noise_scale=1.0)
        np.testing.assert_array_equal(many.forward(EPSILONS), replaced.forward(EPSILONS))

    def test_weight_does_not_matter_rows_do(self):
        """Four rows of weight 1/8 are hidden less well than half a row: a mass of 0.5 must not be cheap."""
        light = self.bound(Distance(replaced=4, mass=0.5, one_sided=0.25), 0.1, 1.0)
        np.testing.assert_array_equal(light, self.bound(Distance(replaced=4), 0.1, 1.0))
        samples, weights = poisson_samples(4, 0.1)
        truth = true_profile_1d(np.full(4, 0.5), np.full(4, -0.5), samples, weights, 1.0)  # weight 4 in all
        half_as_many = self.bound(Distance(replaced=2), 0.1, 1.0)
        assert truth[1] > half_as_many[1]  # the same mass on fewer rows is no bound
        light_toggles = self.bound(Distance(toggled=3, mass=0.3), 0.1, 1.0)
        np.testing.assert_array_equal(light_toggles, self.bound(Distance(toggled=3), 0.1, 1.0))
        assert light_toggles[0] > 0

    def test_reweighted_rows_are_refused(self):
        for distance in (Distance(reweighted=1), Distance(replaced=1, reweighted=0.5)):
            with pytest.raises(UnsupportedOrder, match="weight"):
                poisson_profiles(distance, rate=0.1, bound=1.0, lipschitz=1.0, noise_scale=1.0)
            with pytest.raises(UnsupportedOrder, match="weight"):
                fixed_size_step(distance, n_rows=9, batch_size=3, bound=1.0, lipschitz=1.0, noise_scale=1.0)

    def test_a_moved_row_never_costs_more_than_a_replaced_one(self):
        """Whatever the radius and the Lipschitz constant: at most 2 bound per sampled row that moved."""
        capped = self.bound(Distance(moved=3, radius=1e200), 0.2, 1.0)
        np.testing.assert_allclose(self.bound(Distance(moved=3, radius=1e-3), 0.2, 1.0, math.inf), capped)
        k = np.arange(4)
        exact = sum(binom.pmf(k, 3, 0.2)[i] * poisson_pair(0.2, 1.0, rows=0, shift=2.0 * i).delta(EPSILONS) for i in k)
        np.testing.assert_allclose(capped, exact, rtol=1e-9)
        free = self.bound(Distance(moved=3, radius=5.0), 0.2, 1.0, 0.0)
        assert free.tolist() == [0.0] * len(EPSILONS)

    def test_impossible_distances_are_refused_before_any_sum(self):
        for wrong in ({"moved": 0, "total": 3.0}, {"moved": math.inf, "radius": 1.0}, {"moved": 2, "radius": math.inf}):
            with pytest.raises(InvalidParameter):
                Distance(**wrong)
        assert self.bound(Distance(moved=1e300, radius=1e-300), 0.2, 1.0)[0] > 0

    def test_drift_is_not_amplified(self):
        """All rows moved: hiding the sample helps nothing, the mean batch costs as much as all rows at once."""
        n, rate, sigma, radius = 1000, 0.1, 2.0, 0.004
        sampled = self.bound(Distance(moved=n, radius=radius), rate, sigma)
        public = np.array([gaussian_delta(1.25 * radius * n * rate / sigma, e) for e in EPSILONS])
        assert (sampled >= public).all()
        one = self.bound(Distance(replaced=1), rate, sigma)
        assert one[0] < 0.2 * gaussian_delta(2 / sigma, 0.0)  # a single row is hidden

    def test_many_moved_rows_are_rounded_up_but_little(self):
        distance, rate = Distance(replaced=1, moved=5000, radius=1e-3), 0.02
        k = np.arange(5001)
        weights = binom.pmf(k, 5000, rate)
        exact = sum(weights[i] * poisson_pair(rate, 1.0, shift=1.25e-3 * i).delta(EPSILONS) for i in k[weights > 1e-14])
        answer = self.bound(distance, rate, 1.0)
        assert (exact <= answer * (1 + 1e-9)).all()
        np.testing.assert_allclose(answer, exact, rtol=0.01)


class TestEpochs:
    def test_no_dataset_exceeds_it(self):
        rng, worst = np.random.default_rng(8), 0.0
        for _ in range(300):
            distance = Distance(replaced=rng.integers(0, 2), toggled=rng.integers(0, 2), moved=6, radius=0.5,
                                total=rng.uniform(0.1, 3))  # fmt: skip
            batch_size, batches, lipschitz = int(rng.integers(1, 4)), 5, rng.choice([0.5, 2.0, 9.0])
            slots = batch_size * batches
            change = np.zeros(slots)  # per row, all in one direction
            where = rng.permutation(slots) if rng.random() < 0.5 else np.arange(slots)
            r, t = int(distance.replaced), int(distance.toggled)
            change[where[:r]], change[where[r : r + t]] = 2.0, 1.0
            count = min(6, slots - r - t)
            moves = np.minimum(rng.dirichlet(np.full(count, rng.choice([0.2, 5.0]))) * distance.total, distance.radius)
            change[where[r + t : r + t + count]] = np.minimum(lipschitz * moves, 2.0)
            truth = np.linalg.norm(change.reshape(batches, batch_size).sum(axis=1))
            bound = epoch_mu(distance, batch_size=batch_size, epochs=1, bound=1.0, lipschitz=lipschitz, noise_scale=1.0)
            worst = max(worst, truth / bound)
        assert 0.85 < worst <= 1

    def test_positions_matter(self):
        step = {"batch_size": 5, "epochs": 4, "bound": 1.0, "lipschitz": 1.0, "noise_scale": 2.0}
        assert epoch_mu(Distance(replaced=1), **step) == pytest.approx(2.0)
        assert epoch_mu(Distance(replaced=1, reordered=3), **step) == pytest.approx(5.0)
        assert epoch_mu(Distance(replaced=1, mass=0.5), **step) == pytest.approx(0.5)  # no sampling, so weight counts
        assert epoch_mu(Distance(moved=100, radius=0.02), **step) == pytest.approx(math.sqrt(0.1 * 2.0))
        assert epoch_mu(Distance(moved=100, radius=0.02), **{**step, "lipschitz": math.inf}) == pytest.approx(
            math.sqrt(10 * 200)
        )


class TestNothingIsDoubledOrHalved:
    """dp-accounting 0.6 doubles the sensitivity of replace-one in one accountant and not in the other."""

    @pytest.mark.parametrize("sigma", [0.5, 2.0, 20.0])
    def test_everything_equals_the_gaussian_mechanism_on_full_batches(self, sigma):
        one = {"bound": 1.0, "lipschitz": 1.25, "noise_scale": sigma}
        truth = [gaussian_delta(2 / sigma, float(e)) / (1 + 1e-7) for e in EPSILONS]
        (sampled,) = poisson_profiles(Distance(replaced=1), rate=1.0, **one)
        mu, fixed = fixed_size_step(Distance(replaced=1), n_rows=50, batch_size=50, **one)
        for values in (sampled.forward, fixed.forward, gaussian_profile(2 / sigma).forward):
            np.testing.assert_allclose(values(EPSILONS), truth, rtol=1e-9, atol=1e-300)
        assert mu == 0
        assert epoch_mu(Distance(replaced=1), batch_size=50, epochs=9, **one) == pytest.approx(6 / sigma, rel=1e-9)

    def test_what_dp_accounting_calls_replacing_one(self):
        """Its Rényi accountant takes the sensitivity as given (0.6) or doubles it: nothing here relies on either."""
        import dp_accounting
        from dp_accounting.rdp import RdpAccountant

        accountant = RdpAccountant(orders=[2], neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE)
        accountant.compose(dp_accounting.GaussianDpEvent(1.0))
        own = [renyi_epsilon(gaussian_curve(mu), 1e-6, [2.0]) for mu in (1.0, 2.0)]
        assert min(abs(accountant.get_epsilon(1e-6) - epsilon) for epsilon in own) < 1e-6


# ---------------- runs


class TestSampledSteps:
    @pytest.mark.parametrize(
        ("rate", "sigma", "steps", "shift", "epsilon"),
        [(0.01, 1, 1000, 0, 3.21), (0.01, 1, 1000, 0.05, 12.5), (0.01, 1, 1000, 0.2, 56.2), (0.05, 2, 500, 0, 5.55),
         (0.05, 2, 500, 0.05, 8.88), (0.05, 2, 500, 0.5, 53.3), (1, 20, 200, 0, 7.29), (1, 20, 200, 0.2, 8.15)],
    )  # fmt: skip
    def test_known_figures(self, rate, sigma, steps, shift, epsilon):
        found = sampled(rate, sigma, steps, shift).epsilon(1e-6)
        assert found == pytest.approx(epsilon, rel=0.003)
        if rate == 1:
            assert found >= gaussian_epsilon(math.sqrt(steps) * (2 + shift) / sigma, 1e-6)

    @pytest.mark.parametrize(
        ("rate", "sigma", "steps", "shift", "best"),
        [(0.01, 1, 1000, 0.05, 13.7), (0.05, 2, 500, 0.05, 9.49), (0.05, 2, 500, 0.5, 57.5), (1, 20, 200, 0.2, 8.70)],
    )
    def test_the_weak_triangle_is_above_the_tight_pair(self, rate, sigma, steps, shift, best):
        pair = poisson_pair(rate, 1 / sigma)
        known = interpolated({float(order): pair.renyi(float(order)) for order in 1 + np.geomspace(0.01, 300, 120)})
        run = weak_triangle(gaussian_curve(math.sqrt(steps) * shift / sigma), repeated(known, steps))
        found = renyi_epsilon(run, 1e-6, [order for order in ORDERS if 1.02 < order < 60][::3])
        assert sampled(rate, sigma, steps, shift).epsilon(1e-6) <= found <= best * 1.01

    @pytest.mark.parametrize(
        ("distance", "sigma", "epsilon"),
        [(Distance(replaced=1), 2, 1.38), (Distance(replaced=1, moved=10_000, radius=4e-4), 2, 5.53),
         (Distance(replaced=1, moved=50, radius=2e-4), 1, 3.234),
         (Distance(replaced=1, moved=1000, radius=2.2e-4), 1, 3.64)],
    )  # fmt: skip
    def test_known_figures_with_random_numbers_of_moved_rows(self, distance, sigma, epsilon):
        run = poisson_distribution(
            distance, rate=0.01, bound=1.0, lipschitz=1.25, noise_scale=sigma, steps=1000, interval=COARSE
        )
        assert run.epsilon(1e-6) == pytest.approx(epsilon, rel=0.006)
        mean_batch = sampled(0.01, sigma, 1000, 1.25 * 0.01 * distance.moved * distance.radius)
        assert run.epsilon(1e-6) >= mean_batch.epsilon(1e-6) * (1 - 1e-4)

    def test_agrees_with_dp_accounting_where_that_has_the_mechanism(self):
        """Its privacy-loss accountant doubles the sensitivity by itself, so its multiplier is sigma / C."""
        import dp_accounting
        from dp_accounting.pld import PLDAccountant

        for relation, distance in (("REPLACE_ONE", Distance(replaced=1)), ("ADD_OR_REMOVE_ONE", Distance(toggled=1))):
            accountant = PLDAccountant(dp_accounting.NeighboringRelation[relation], value_discretization_interval=1e-3)
            step = dp_accounting.PoissonSampledDpEvent(0.02, dp_accounting.GaussianDpEvent(1.5))
            accountant.compose(dp_accounting.SelfComposedDpEvent(step, 300))
            run = poisson_distribution(
                distance, rate=0.02, bound=2.0, lipschitz=1.0, noise_scale=3.0, steps=300, interval=COARSE
            )
            assert run.epsilon(1e-6) == pytest.approx(accountant.get_epsilon(1e-6), rel=0.002)

    def test_a_batch_of_fixed_size(self):
        """Half of what the usual Rényi bound gives; and that bound is with the noise per *doubled* contribution."""
        import dp_accounting
        from dp_accounting.rdp import RdpAccountant

        one = {"n_rows": 10_000, "batch_size": 100, "bound": 1.0, "lipschitz": 1.25, "noise_scale": 4.0}
        run = fixed_size_distribution(Distance(replaced=1), **one, steps=1000, interval=COARSE)
        assert run.epsilon(1e-6) == pytest.approx(0.829, rel=0.01)

        def theirs(multiplier):
            accountant = RdpAccountant(
                orders=[2, 3, 5, 8, 12, 16, 24], neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE
            )
            step = dp_accounting.SampledWithoutReplacementDpEvent(
                10_000, 100, dp_accounting.GaussianDpEvent(multiplier)
            )
            return accountant.compose(dp_accounting.SelfComposedDpEvent(step, 1000)).get_epsilon(1e-6)

        assert run.epsilon(1e-6) < theirs(2.0)

    def test_toggled_rows_cost_their_worst_split_over_a_whole_run(self):
        """A split is the same in every step, so runs are compared, not steps; each lies below replacing them all."""
        step = {"rate": 0.05, "bound": 1.0, "lipschitz": 1.0, "noise_scale": 1.5, "interval": COARSE}
        two = poisson_distribution(Distance(toggled=2), **step, steps=200)
        one = poisson_distribution(Distance(toggled=1), **step, steps=200)
        both = poisson_distribution(Distance(replaced=2), **step, steps=200)
        assert 0 < one.epsilon(1e-6) < two.epsilon(1e-6) < both.epsilon(1e-6)
        profiles = poisson_profiles(Distance(toggled=2), **{k: step[k] for k in step if k != "interval"})
        alone = [(loss_distribution(profile, COARSE) * 200).epsilon(1e-6) for profile in profiles]
        assert two.epsilon(1e-6) == max(alone) > min(alone)
        assert len(two.sides) == 3  # all on one side, and that the other way round; one on each

    def test_light_rows_are_not_cheaper(self):
        step = {"rate": 0.05, "bound": 1.0, "lipschitz": 1.0, "noise_scale": 1.5, "steps": 100, "interval": COARSE}
        light, heavy = (poisson_distribution(Distance(replaced=1, mass=m), **step).epsilon(1e-6) for m in (0.5, 2.0))
        assert light == heavy
        assert poisson_distribution(Distance(toggled=1), **step).epsilon(1e-6) > 0

    def test_moved_rows_in_a_batch_of_fixed_size(self):
        distance = Distance(replaced=1, moved=1000, radius=2.2e-4)
        step = {"n_rows": 10_000, "batch_size": 100, "bound": 1.0, "lipschitz": 1.25, "noise_scale": 4.0}
        run = fixed_size_distribution(distance, **step, steps=1000, interval=COARSE)
        still = fixed_size_distribution(Distance(replaced=1), **step, steps=1000, interval=COARSE)
        drift = gaussian_epsilon(math.sqrt(1000) * 1.25 * 0.022 / 4, 1e-6)
        assert max(still.epsilon(1e-6), drift) < run.epsilon(1e-6) < 1.8
