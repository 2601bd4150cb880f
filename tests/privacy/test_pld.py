"""Privacy-loss distributions against closed forms, enumeration, integration and dp-accounting: never below."""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from sampled_steps import COARSE, sampled

from ppdp.core.distance import Distance
from ppdp.exceptions import ImpossibleBudget, InvalidParameter
from ppdp.privacy import pld
from ppdp.privacy.fixed_size import fixed_size_profile
from ppdp.privacy.gaussian import gaussian_delta, gaussian_epsilon, gaussian_mu, least_noise
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.pld import (
    _MOST_POINTS,
    LEAST_DELTA,
    _least_epsilon,
    _points,
    discrete_laplace_distribution,
    gaussian_distribution,
    laplace_distribution,
    loss_distribution,
    poisson_distribution,
)
from ppdp.privacy.renyi import laplace_curve, renyi_epsilon, repeated
from ppdp.privacy.subsampling import Profile, poisson_pair


def enumerated(p, q, times):
    """Exact profile of a product of two laws on finitely many points."""
    rows = list(itertools.product(range(len(p)), repeat=times))
    many_p, many_q = (np.array([math.prod(law[list(row)]) for row in rows]) for law in (p, q))
    return lambda epsilon: float(np.maximum(many_p - math.exp(epsilon) * many_q, 0).sum())


def of_laws(p, q):
    return Profile(
        lambda epsilon: np.maximum(p - np.exp(np.minimum(epsilon, 99))[:, None] * q, 0).sum(axis=1),
        lambda epsilon: np.maximum(q - np.exp(np.minimum(epsilon, 99))[:, None] * p, 0).sum(axis=1),
    )


class TestDiscretisation:
    @pytest.mark.parametrize("mu", [1e-3, 0.05, 0.5, 2.0, 6.0])
    def test_one_gaussian_is_never_below_and_hardly_above(self, mu):
        loss = gaussian_distribution(mu)
        for epsilon in (0.0, 0.5e-4, 0.1, 1.00005, 7.3):
            truth = gaussian_delta(mu, epsilon) / (1 + 1e-7)
            assert truth <= loss.delta(epsilon) <= truth * 1.01 + 1e-6

    @pytest.mark.parametrize("interval", [2.0**-4, 2.0**-8, 0.003])
    def test_any_interval_is_sound(self, interval):
        for mu in (0.05, 1.0):
            loss = gaussian_distribution(mu, interval)
            for epsilon in np.linspace(0, 4, 50):
                assert gaussian_delta(mu, epsilon) / (1 + 1e-7) <= loss.delta(epsilon)

    def test_random_laws_composed_by_enumeration(self):
        """Both directions of asymmetric pairs, losses off the grid, large losses."""
        rng = np.random.default_rng(0)
        for _ in range(25):
            p, q = (rng.dirichlet(np.full(4, 0.7), size=2) + 1e-4) / 1.0004
            loss = loss_distribution(of_laws(p, q), COARSE) * 3
            for epsilon in (0.0, 0.2, 1.0, 3.0):
                truth = max(enumerated(p, q, 3)(epsilon), enumerated(q, p, 3)(epsilon))
                assert truth <= loss.delta(epsilon) <= truth * 1.002 + 1e-5

    def test_the_negative_side_is_composed_too(self):
        """A profile that is known for epsilon >= 0 only would count every negative loss as zero."""
        from dp_accounting.pld.pld_pmf import create_pmf_pessimistic_connect_dots_fixed_gap

        truth, run = gaussian_epsilon(1.0, 1e-6), gaussian_distribution(0.1) * 100
        assert truth <= run.epsilon(1e-6) <= truth * 1.0002
        deltas = [gaussian_delta(0.1, i * COARSE) for i in range(1001)]
        blind = create_pmf_pessimistic_connect_dots_fixed_gap(COARSE, 0, 1000, deltas).self_compose(100)
        assert blind.get_epsilon_for_delta(1e-6) > 1.2 * truth

    def test_nothing_costs_nothing(self):
        assert gaussian_distribution(0.0).epsilon(1e-9) == 0.0
        assert (gaussian_distribution(0.0) * 1000).delta(0.0) < 1e-11


class TestComposition:
    @pytest.mark.parametrize(
        ("steps", "interval"), [(7, 2.0**-12), (1000, 2.0**-12), (10_000, 2.0**-13), (100_000, 2.0**-14)]
    )
    @pytest.mark.parametrize("total", [0.3, 3.0])
    @pytest.mark.repeated("total")
    def test_gaussian_steps_match_the_closed_form_to_the_smallest_delta(self, steps, interval, total):
        """Where the error of the transforms would show: T up to 10^5, delta down to 1e-9."""
        run = gaussian_distribution(total / math.sqrt(steps), interval) * steps
        least = max(LEAST_DELTA, 10.001 * run.slack)
        for delta in (least, 1e-9, 1e-6, 1e-2):
            truth = gaussian_epsilon(total, delta)
            assert truth <= run.epsilon(delta) <= truth * (1.002 if delta > least else 1.02)
            assert gaussian_delta(total, truth) / (1 + 1e-7) <= run.delta(truth)

    def test_different_mechanisms_add(self):
        loss = gaussian_distribution(0.6) + gaussian_distribution(0.8)
        assert gaussian_epsilon(1.0, 1e-6) <= loss.epsilon(1e-6) <= gaussian_epsilon(1.0, 1e-6) * 1.0005
        assert loss.steps == 2

    def test_a_pure_release_beside_a_gaussian_one(self):
        """Integrated: the Gaussian loss, and what is left of epsilon for the Laplace one."""
        scale, mu = 0.5, 0.4
        loss = laplace_distribution(scale) + gaussian_distribution(mu)
        z, step = np.linspace(-9, 9, 200_001, retstep=True)
        weights = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) * step
        for epsilon in (0.0, 0.3, 0.9):
            left = epsilon - (mu * z + mu**2 / 2)
            profile = -np.expm1((np.minimum(np.abs(left), scale) - scale) / 2)
            truth = float(weights @ np.where(left >= 0, profile, 1 - np.exp(left) * (1 - profile)))
            assert truth * (1 - 1e-9) <= loss.delta(epsilon) <= truth * 1.001

    def test_discrete_laplace_by_enumeration(self):
        k, decay, shift = np.arange(-60, 63), 0.6, 2
        p, q = (np.exp(-decay * np.abs(k - centre)) * math.tanh(decay / 2) for centre in (0, shift))
        loss = discrete_laplace_distribution(shift, decay)
        for epsilon in (0.0, 0.1, 0.6, 0.61, 1.1, 1.3):
            truth = float(np.maximum(p - math.exp(epsilon) * q, 0).sum())
            assert truth - 1e-14 <= loss.delta(epsilon) <= truth * 1.001 + 1e-10
        twice_p, twice_q = np.multiply.outer(p, p), np.multiply.outer(q, q)
        truth = float(np.maximum(twice_p - math.exp(0.7) * twice_q, 0).sum())
        assert truth - 1e-14 <= (2 * loss).delta(0.7) <= truth * 1.001

    def test_pure_losses_stay_pure(self):
        assert laplace_distribution(0.7).epsilon(1e-9) <= 0.7 * 1.005
        assert (laplace_distribution(0.7) * 3).epsilon(1e-9) <= 2.1 * 1.005
        assert discrete_laplace_distribution(3, 0.2).epsilon(1e-9) <= 0.6 * 1.005

    def test_two_adaptive_steps_on_the_worst_data_we_know(self):
        """The second step's gradients are chosen by the sign of the first answer; both answers are integrated."""
        rate, rows = 0.3, np.array([1.0, -0.6, 0.6])
        samples = np.array(list(itertools.product((0, 1), repeat=3)))
        weights = np.prod(np.where(samples, rate, 1 - rate), axis=1)
        x, step = np.linspace(-9, 9, 1201, retstep=True)

        def law(world, flip):
            contributions = flip * rows * np.array([world, 1, 1])
            means = samples @ contributions
            return np.exp(-((x[:, None] - means) ** 2) / 2) @ weights / math.sqrt(2 * math.pi) * step

        joint = [
            law(world, 1)[:, None] * np.where((x > 0)[:, None], law(world, 1), law(world, -1)) for world in (1, -1)
        ]
        run = 2 * loss_distribution(Profile.symmetric(poisson_pair(rate, 1.0).delta), COARSE)
        ratios = []
        for epsilon in (0.0, 0.5, 1.0, 2.0):
            truth = float(np.maximum(joint[0] - math.exp(epsilon) * joint[1], 0).sum())
            ratios.append(truth / run.delta(epsilon))
        assert 0.5 < max(ratios) <= 1


class TestGate:
    @pytest.mark.parametrize(
        ("epsilon", "with_laplace", "with_gaussian", "mu"),
        [(0.02, 1.0037, 1.0007, 0.0083), (0.05, 1.0210, 1.0041, 0.0208), (0.1, 1.0653, 1.0165, 0.0416),
         (0.2, 1.1645, 1.0647, 0.0831), (0.5, 1.4645, 1.362, 0.208), (1.0, 1.9645, 2.147, 0.416)],
    )  # fmt: skip
    def test_a_gate_beside_a_mechanism_of_one(self, epsilon, with_laplace, with_gaussian, mu):
        mechanism = gaussian_mu(1.0, 1e-6)
        total = (laplace_distribution(epsilon) + gaussian_distribution(mechanism)).epsilon(1e-6)
        assert total == pytest.approx(with_laplace, rel=3e-4)
        assert 1.0 <= total <= 1 + epsilon
        assert gaussian_epsilon(math.hypot(mechanism, mu), 1e-6) == pytest.approx(with_gaussian, rel=1e-3)

    def test_many_laplace_releases(self):
        """T = 50, scale 20, shift 1.2: pure 3.0, Rényi 1.91, exact 1.79."""
        exact = (laplace_distribution(1.2 / 20) * 50).epsilon(1e-6)
        assert exact == pytest.approx(1.79, rel=0.004)
        assert exact < renyi_epsilon(repeated(laplace_curve(1.2 / 20), 50), 1e-6)


class TestAnswers:
    def test_too_small_a_delta_is_refused(self):
        loss = gaussian_distribution(1.0)
        for delta in (0.999 * LEAST_DELTA, 0.0, -1.0, math.nan, 1.5):
            with pytest.raises(ImpossibleBudget):
                loss.epsilon(delta)
        long = gaussian_distribution(1e-4, 2.0**-8) * 5_000_000
        assert long.slack > 1e-9
        with pytest.raises(ImpossibleBudget):
            long.epsilon(5e-9)

    def test_the_slack_is_part_of_both_answers(self):
        for loss in (gaussian_distribution(1.0), laplace_distribution(0.4) * 20, sampled(0.05, 2, 100)):
            for delta in (1e-9, 1e-6, 1e-3):
                epsilon = loss.epsilon(delta)
                assert loss.delta(epsilon) <= delta
                assert epsilon == 0 or loss.delta(epsilon * 0.999) > delta
        assert gaussian_distribution(0.0).delta(0.0) >= 1e-12

    def test_a_budget_that_is_spent_to_the_last_digit_is_finite(self):
        """The errors of the transforms are inside delta, so a delta that was solved for is accepted again."""
        loss = sampled(0.05, 2, 100)
        for epsilon in (0.5, 1.0, 2.0):
            assert loss.epsilon(loss.delta(epsilon)) <= epsilon * (1 + 1e-6) + COARSE

    def test_losses_beyond_the_grid_are_infinite(self):
        assert gaussian_distribution(40.0).epsilon(1e-6) == math.inf
        assert gaussian_distribution(40.0, 2.0**-5).epsilon(1e-6) == pytest.approx(
            gaussian_epsilon(40.0, 1e-6), rel=0.01
        )

    @pytest.mark.parametrize("loss", [laplace_distribution(1.0), gaussian_distribution(1.0)], ids=["Laplace", "Gauss"])
    def test_what_takes_too_many_points_counts_as_unbounded(self, loss):
        for times in (10**6, 10**12, 10**18):
            run = loss * times
            assert all(side.size == 1 for side in run.sides)
            if 10 * run.slack < 0.1:
                assert run.epsilon(0.1) == math.inf
            assert run.delta(1000.0) == 1.0

    @pytest.mark.parametrize("times", [10, 1000, 10**5, 10**6])
    def test_no_million_of_runs_of_epsilon_500_takes_too_many(self, times):
        mu = gaussian_mu(500.0, 1e-6) / math.sqrt(times)
        (side,) = gaussian_distribution(mu).sides
        assert _points(side._probs, times) <= _MOST_POINTS

    @pytest.mark.parametrize(("noise_scale", "finite"), [(300.0, False), (4000.0, True)])
    def test_all_sides_together_have_few_points(self, noise_scale, finite):
        """Ten million steps for a person of 64 rows are affordable or unbounded, never minutes of work."""
        far, run = Distance(replaced=64, toggled=1), {"rate": 0.01, "bound": 1.0, "lipschitz": 0.0, "steps": 10**7}
        loss = poisson_distribution(far, noise_scale=noise_scale, **run)
        assert sum(side.size for side in loss.sides) <= _MOST_POINTS
        assert math.isfinite(loss.epsilon(1e-6)) == finite

    @pytest.mark.parametrize("times", [2, 30, 3000])
    def test_points_are_counted_well(self, times):
        skewed = poisson_distribution(
            Distance(replaced=1), rate=0.01, bound=1.0, lipschitz=1.0, noise_scale=0.8, steps=1, interval=COARSE
        )
        for loss in (skewed, laplace_distribution(0.3, COARSE), gaussian_distribution(0.3, COARSE)):
            composed = (loss * times).sides[0].size
            assert composed <= _points(loss.sides[0]._probs, times) <= composed + 2

    @pytest.mark.parametrize(
        "step",
        [
            {"distance": Distance(toggled=4, moved=1e8, radius=0.505), "rate": 0.001218, "noise_scale": 0.241},
            {"distance": Distance(replaced=64, toggled=1), "rate": 5.6e-5, "noise_scale": 0.4},
        ],
        ids=["nothing finite", "too many points"],
    )
    def test_what_is_not_worth_composing_is_known_before(self, step, monkeypatch):
        """A forged part that would keep whoever verifies it busy for minutes, side after side."""
        looked_at = []

        def counted(profile, *args):
            looked_at.append(profile)
            return loss_distribution(profile, *args)

        monkeypatch.setattr(pld, "loss_distribution", counted)
        monkeypatch.setattr(pld, "_repeated", lambda *_: pytest.fail("composed"))
        run = poisson_distribution(**step, bound=1.0, lipschitz=1.25, steps=10**8)
        assert run.delta(1000.0) == 1.0
        assert len(looked_at) == 1

    @pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3, 0.5])
    def test_epsilon_is_what_dp_accounting_finds(self, delta):
        """Without its loop over all points."""
        for loss in (
            gaussian_distribution(0.01) * 3,
            gaussian_distribution(5.0, COARSE),
            laplace_distribution(1.0) * 7,
        ):
            for side in loss.sides:
                assert _least_epsilon(side, delta) == pytest.approx(side.get_epsilon_for_delta(delta), rel=1e-12)

    def test_composition_is_what_dp_accounting_finds(self):
        """To the last bit, without its loops and its search for where the masses end."""
        for loss in (gaussian_distribution(0.3), discrete_laplace_distribution(2, 0.2), laplace_distribution(1.0)):
            (side,), (ours,), (both,) = loss.sides, (loss * 50).sides, (loss + loss).sides
            for found, expected in ((ours, side.self_compose(50)), (both, side.compose(side, 1e-15))):
                assert (found._lower_loss, found._infinity_mass) == (expected._lower_loss, expected._infinity_mass)
                np.testing.assert_array_equal(found._probs, expected._probs)

    def test_intervals_do_not_mix(self):
        with pytest.raises(InvalidParameter, match="interval"):
            gaussian_distribution(1.0) + gaussian_distribution(1.0, COARSE)
        with pytest.raises(TypeError):
            gaussian_distribution(1.0) + PrivacyLoss(1.0)
        with pytest.raises(InvalidParameter):
            gaussian_distribution(1.0) * 0


class TestLeastNoise:
    def test_gaussian_noise_has_a_closed_form(self):
        found = least_noise(lambda sigma: PrivacyLoss(mu=1 / sigma), 1.0, 1e-6, tolerance=1e-6)
        assert 1 / gaussian_mu(1.0, 1e-6) <= found * (1 + 1e-9)
        assert found <= (1 + 3e-6) / gaussian_mu(1.0, 1e-6)

    @pytest.mark.parametrize("start", [0.5, 100.0])
    def test_sampled_steps_fit_the_budget_and_less_noise_does_not(self, start):
        def loss_of(sigma):
            return sampled(0.02, sigma, 200, interval=2.0**-8)

        found = least_noise(loss_of, 1.0, 1e-6, start=start, tolerance=1e-3)
        assert loss_of(found).epsilon(1e-6) <= 1.0 < loss_of(found * 0.998).epsilon(1e-6)

    @pytest.mark.parametrize("start", [1e-6, 1.0, 1e7])
    def test_few_looks_are_enough_wherever_the_search_begins(self, start):
        looks = []

        def loss_of(sigma):
            looks.append(sigma)
            return sampled(0.02, sigma, 200, interval=2.0**-6) + gaussian_distribution(0.01, 2.0**-6)

        found = least_noise(loss_of, 1.0, 1e-6, start=start, tolerance=1e-3)
        assert loss_of(found).epsilon(1e-6) <= 1.0 < loss_of(found * 0.998).epsilon(1e-6)
        assert len(looks) <= 25

    def test_losses_that_are_nowhere_finite_compose(self):
        """Too little noise by far: no error, but no epsilon either."""
        loss = gaussian_distribution(1e4, 2.0**-10) + gaussian_distribution(0.1, 2.0**-10)
        assert loss.epsilon(0.5) == math.inf
        assert loss.delta(5.0) == (loss + gaussian_distribution(0.1, 2.0**-10)).delta(5.0) == 1.0

    def test_what_no_noise_can_reach_is_refused(self):
        with pytest.raises(ImpossibleBudget):
            least_noise(lambda sigma: PrivacyLoss(mu=1.0), 0.1, 1e-6)
        with pytest.raises(ImpossibleBudget):
            least_noise(lambda sigma: PrivacyLoss(mu=1 / sigma), 0.0, 1e-6)


def test_fixed_size_profiles_compose_to_the_closed_form_on_full_batches():
    run = loss_distribution(fixed_size_profile(1.0, 0.05)) * 400
    assert gaussian_epsilon(1.0, 1e-6) <= run.epsilon(1e-6) <= gaussian_epsilon(1.0, 1e-6) * 1.0005


def test_masses_keep_the_profile_to_forty_digits():
    """A sampled pair with small losses, where differences of deltas cancel most."""
    pair = poisson_pair(1e-4, 0.5)
    loss = loss_distribution(Profile.symmetric(pair.delta), 2.0**-16)
    with mp.workdps(40):
        upper = lambda x: mp.erfc(x / mp.sqrt(2)) / 2  # noqa: E731
        truth = mp.mpf("1e-4") * (upper(-mp.mpf("0.5")) - upper(mp.mpf("0.5")))  # the cut at epsilon = 0 is at 0
    assert truth <= loss.delta(0.0) <= truth * (1 + 1e-6) + 2e-12
