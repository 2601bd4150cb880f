"""Runs of sampled steps: known figures, other accountants, moved and toggled rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hybrids import interpolated, weak_triangle
from sampled_steps import COARSE, sampled

from ppdp.core.distance import Distance
from ppdp.privacy.gaussian import gaussian_epsilon
from ppdp.privacy.pld import fixed_size_distribution, loss_distribution, poisson_distribution
from ppdp.privacy.renyi import ORDERS, gaussian_curve, renyi_epsilon, repeated
from ppdp.privacy.subsampling import poisson_pair, poisson_profiles


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
