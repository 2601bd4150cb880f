"""Batches of fixed size against brute force over all batches, and against the worst four places: never below."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from sampled_steps import EPSILONS, NEGLIGIBLE, QUADRATURE, fixed_samples, hockey_stick, true_profile_1d, within
from scipy.stats import norm
from true_losses import Law, mixtures, true_delta, true_epsilon

from ppdp.core.distance import Distance
from ppdp.exceptions import UnsupportedOrder
from ppdp.privacy.fixed_size import fixed_size_profile, fixed_size_step
from ppdp.privacy.pld import loss_distribution


class TestFixedSize:
    @staticmethod
    def truth(left, right, size, sigma):
        samples, weights = fixed_samples(len(left), size)
        return true_profile_1d(left, right, samples, weights, sigma)

    def share(self, distance, left, right, rng, noise_scales):
        """How much of the certified profile a pair uses, of batches of some size."""
        size, sigma = int(rng.integers(1, len(left) + 1)), rng.choice(noise_scales)
        mu, profile = fixed_size_step(
            distance, n_rows=len(left), batch_size=size, bound=1.0, lipschitz=1.25, noise_scale=sigma
        )
        assert mu == 0
        ratio = self.truth(left, right, size, sigma) / (profile.forward(EPSILONS) * QUADRATURE + NEGLIGIBLE)
        return float(ratio.max())

    @pytest.mark.parametrize(("n", "size"), [(2, 1), (5, 2), (6, 5), (7, 3), (4, 4)])
    def test_one_replaced_row_against_its_opposites_attains_it(self, n, size):
        left, right = -np.ones(n), -np.ones(n)
        left[0] = 1.0
        for sigma in (0.8, 2.0):
            answer = fixed_size_profile(size / n, 2 / sigma).forward(EPSILONS)
            np.testing.assert_allclose(answer, self.truth(left, right, size, sigma), rtol=2e-5, atol=NEGLIGIBLE)

    def test_brute_force_without_drift(self):
        rng, worst = np.random.default_rng(6), 0.0
        for distance in (Distance(replaced=1), Distance(toggled=1)):
            for _ in range(40):
                left, right = within(distance, 1.0, 1.25, rng)
                left, right = (np.append(side[:, 0], rng.uniform(-1, 1, 3)) for side in (left, right))
                right[-3:] = left[-3:]
                worst = max(worst, self.share(distance, left, right, rng, [0.7, 1.5]))
        assert 0.7 < worst <= 1

    @pytest.mark.parametrize("total", [math.inf, 0.5])
    def test_brute_force_with_drift(self, total):
        """All batches of rows that move as they like, and as is worst."""
        rng, worst = np.random.default_rng(7), 0.0
        for trial in range(25):
            distance = Distance(replaced=1, moved=3, radius=0.3, total=min(total, 0.9))
            left, right = (side[:, 0] for side in within(distance, 1.0, 1.25, rng))
            if trial < 10:
                each = 1.25 * distance.total / 3
                left, right = (np.array([end, *[-1.0 + move] * 3, -1.0]) for end, move in ((1.0, each), (-1.0, 0.0)))
            worst = max(worst, self.share(distance, left, right, rng, [1.0, 2.0]))
        assert 0.8 < worst <= 1

    @pytest.mark.parametrize(("n", "size"), [(5, 2), (6, 5), (7, 3)])
    @pytest.mark.parametrize("sigma", [0.8, 2.0])
    def test_rows_that_all_move_towards_the_replaced_one_attain_it(self, n, size, sigma):
        """But for the move of the one whose place it takes, which the clip keeps from moving further."""
        radius = 1e-3
        left, right = np.full(n, -1 + radius), -np.ones(n)
        left[0] = 1.0
        distance = Distance(replaced=1, moved=n - 1, radius=radius)
        _, profile = fixed_size_step(distance, n_rows=n, batch_size=size, bound=1.0, lipschitz=1.0, noise_scale=sigma)
        still = fixed_size_profile(size / n, 2 / sigma).forward(EPSILONS)
        answer, truth = profile.forward(EPSILONS), self.truth(left, right, size, sigma)
        large = (truth > 1e-6) & (radius * size * (2 + radius * size) / sigma**2 < EPSILONS)
        assert large.sum() >= 3
        assert (truth <= answer * QUADRATURE + NEGLIGIBLE)[large].all()
        assert (still < truth)[large].all()
        np.testing.assert_allclose(truth[large], answer[large], rtol=1e-2, atol=1e-7)

    def test_no_four_places_exceed_it_and_some_attain_it(self):
        """With or without the row, on either side: in the plane, and the worst ones on the line."""
        rng, worst = np.random.default_rng(3), 0.0
        grid = np.linspace(-9, 9, 181)
        cell = (grid[1] - grid[0]) ** 2
        plane = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
        q, mu, shift = 0.3, 1.0, 0.5
        bound = fixed_size_profile(q, mu, shift).forward(EPSILONS)

        def loss(places):
            """Of P, at the first two places, against Q, at the others."""
            ends = [np.exp(-((plane - place) ** 2).sum(axis=1) / 2) / (2 * math.pi) for place in places]
            return hockey_stick((1 - q) * ends[0] + q * ends[1], (1 - q) * ends[2] + q * ends[3], EPSILONS, cell)

        for _ in range(60):
            without, moved, here, there = (rng.normal(size=2) for _ in range(4))
            lengths = [0.0, shift, mu, mu] * rng.choice([1.0, rng.random()], size=4)
            without, moved, here, there = (
                v / np.linalg.norm(v) * length for v, length in zip((without, moved, here, there), lengths)
            )
            there = there + moved
            if np.linalg.norm(here - there) <= mu + shift:
                worst = max(worst, float((loss((without, here, moved, there)) / (bound + NEGLIGIBLE)).max()))
        assert 0.5 < worst <= 1 + 1e-4
        line = np.linspace(-12, 12, 48_001)
        for epsilon, most in zip(EPSILONS, bound):
            here = min(mu / 2 + epsilon * (1 / shift - 1 / (mu + shift)), mu)
            ends = [norm.pdf(line, place) for place in (0.0, here, -shift, here - mu - shift)]
            first, second = ((1 - q) * other + q * own for other, own in (ends[:2], ends[2:]))
            truth = np.maximum(first - math.exp(epsilon) * second, 0).sum() * (line[1] - line[0])
            assert truth == pytest.approx(most, rel=1e-4, abs=NEGLIGIBLE)

    def test_an_attacker_in_one_direction_reaches_seven_eighths_of_a_thousand_steps(self):
        """Row C among rows -C, against -C, in every step; the other way round it is less."""
        q, mu = 0.01, 0.5
        batch, empty = (np.array([1 - q, q]), np.array([0.0, mu])), (np.ones(1), np.zeros(1))
        certified = loss_distribution(fixed_size_profile(q, mu), 2.0**-10) * 1000
        for pair, reached in (((*batch, *empty), 0.721), ((*empty, *batch), 0.666)):
            law = Law(mixtures(*pair))
            found = true_epsilon(partial(true_delta, law, 1000), 1e-6, 2.0)
            assert found == pytest.approx(reached, abs=1e-3)
            assert found < 0.88 * certified.epsilon(1e-6) < found / 0.8

    def test_whoever_chooses_the_direction_by_what_he_saw_reaches_little_more(self):
        """The best choice in each of ten steps, by dynamic programming over the likelihood ratio so far."""
        q, mu, steps, h = 0.01, 0.5, 10, 2.0**-12
        ratio = h * np.arange(-4096, 4097)
        x, dx = np.linspace(-9, 9 + mu, 8001, retstep=True)
        empty = norm.pdf(x) * dx
        batch = (1 - q) * empty + q * norm.pdf(x - mu) * dx
        cells = np.rint(np.log(batch / empty) / h).astype(int)

        def after(value, masses, losses):
            kernel = np.bincount(losses - losses.min(), masses)
            low, high = min(losses.min(), 0), max(losses.max(), 0)
            padded = np.concatenate([1 - np.exp(ratio[0] + h * np.arange(-high, 0)), value, np.zeros(-low)])
            start = high - losses.min()
            return np.convolve(padded, kernel)[start : start + len(value)]

        still = np.maximum(1 - np.exp(ratio), 0.0)
        fixed, free = still, still
        for _ in range(steps):
            fixed = after(fixed, batch, cells)
            free = np.maximum(after(free, batch, cells), after(free, empty, -cells))
        reached = [float(ratio[np.flatnonzero(value > 1e-6)[-1]]) for value in (fixed, free)]
        assert reached[0] <= reached[1] <= 1.01 * reached[0]
        certified = (loss_distribution(fixed_size_profile(q, mu), 2.0**-10) * steps).epsilon(1e-6)
        assert 0.9 * certified < reached[1] < certified

    def test_only_one_row_may_be_replaced(self):
        for distance in (Distance(replaced=2), Distance(replaced=1, toggled=1), Distance(toggled=2)):
            with pytest.raises(UnsupportedOrder, match="one replaced row"):
                fixed_size_step(distance, n_rows=9, batch_size=3, bound=1.0, lipschitz=1.0, noise_scale=1.0)

    def test_moved_rows_alone_are_a_gaussian_release(self):
        step = {"n_rows": 100, "batch_size": 10, "bound": 1.0, "lipschitz": 1.25, "noise_scale": 2.0}
        assert fixed_size_step(Distance(moved=40, radius=0.01), **step) == (0.0625, None)  # ten of them in the batch
        assert fixed_size_step(Distance(moved=40, radius=0.01, total=0.05), **step) == (0.03125, None)
        mu, _ = fixed_size_step(Distance(moved=40, radius=9.0), **step)
        assert mu == 10.0  # as if ten rows were replaced

    def test_is_finite_far_out(self):
        values = fixed_size_profile(1e-3, 2.0).forward(np.array([0.0, 29.999999, 30.0, 30.000001, 500.0]))
        assert (np.diff(values) <= 0).all()
        assert np.isfinite(values).all()
