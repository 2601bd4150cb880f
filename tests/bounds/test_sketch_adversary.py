"""Gaussian sketches: pairs whose exact divergence comes to the bound and never exceeds it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from effort import found, rounds
from scipy import integrate, linalg, stats

from ppdp.exceptions import InvalidParameter
from ppdp.privacy import SketchLoss
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.losses import Part
from ppdp.privacy.losses.sketch import rows_profile

EXCESS = 1 + 1e-9
ORDERS = (1.05, 1.5, 2.0, 3.0, 4.0, 10.0)


def scales(X, other, sigma):
    """Generalised eigenvalues of the covariances of two sketches."""
    one, two = (rows.T @ rows + sigma**2 * np.eye(rows.shape[1]) for rows in (X, other))
    return linalg.eigh(one, two, eigvals_only=True)


def divergence(s, alpha):
    """Exact Rényi divergence of one row of two sketches, by its log-determinants."""
    rest = 1 - (alpha - 1) * (s - 1)
    if rest.min() <= 0:
        return math.inf
    return float(np.sum(-np.log(s) / 2 - np.log(rest) / (2 * (alpha - 1))))


def ratio(X, other, sigma, loss):
    """How close a pair comes to what is certified, at the order where it comes closest."""
    closest = 0.0
    for s in (scales(X, other, sigma), 1 / scales(X, other, sigma)):
        for alpha in ORDERS:
            bound = loss.renyi(alpha)
            if math.isfinite(bound):
                closest = max(closest, divergence(s, alpha) / bound)
    return closest


def least(X):
    return float(np.linalg.eigvalsh(X.T @ X).min())


class TestRowsThatChange:
    """Theorem 1: any change of a given Frobenius norm, over a floor under the eigenvalues."""

    @pytest.mark.parametrize(("alpha", "told"), [(4.0, 0.070399), (2.0, 0.0225510)])
    def test_the_tight_case(self, alpha, told):
        loss = SketchLoss(rank=1, shift=0.1, floor=1.0)
        assert loss.renyi(alpha) == pytest.approx(told, rel=2e-5)
        assert divergence(np.array([1.21]), alpha) == pytest.approx(loss.renyi(alpha), rel=1e-9)

    @pytest.mark.parametrize(("floor", "sigma"), [(1.0, 0.0), (1.0, 0.7), (1.0, 1.0), (0.3, 1.0), (0.0, 1.0)])
    @pytest.mark.parametrize("shift", [0.01, 0.1, 0.6])
    @pytest.mark.repeated("shift")
    def test_random_and_structured_pairs(self, floor, sigma, shift):
        rng = np.random.default_rng(0)
        loss, closest = SketchLoss(rank=1, shift=shift, floor=floor, noise_scale=sigma), 0.0
        for trial in range(rounds(80)):
            d = int(rng.integers(1, 4))
            n = d + int(rng.integers(0, 3))
            lengths = math.sqrt(floor) + rng.choice([0.0, 0.1, 3.0, 1e4], d) * rng.random(d)
            X = np.zeros((n, d))
            X[:d, :d] = np.diag(lengths)
            D = rng.normal(size=(n, d)) if trial % 2 else np.zeros((n, d))
            D[rng.integers(d), rng.integers(d)] += 3.0 * rng.choice([-1, 1])
            other = X + shift * D / np.linalg.norm(D)
            for one, two in ((X, other), (other, X)):
                if min(least(one), least(two)) >= floor * (1 - 1e-12):
                    closest = max(closest, ratio(one, two, sigma, loss))
        assert closest <= EXCESS

    @pytest.mark.parametrize(("floor", "sigma"), [(1.0, 0.0), (2.0, 1.0), (1.0, 1.0)])
    def test_attained_where_the_floor_is_at_least_the_noise(self, floor, sigma):
        X = np.array([[math.sqrt(floor)]])
        for shift in (1e-3, 0.1, 0.3):
            loss = SketchLoss(rank=1, shift=shift, floor=floor, noise_scale=sigma)
            x = loss.matrix_change
            orders = [alpha for alpha in ORDERS if alpha >= 2 and (alpha - 1) * x < 1]
            for alpha in orders:
                assert divergence(scales(X + shift, X, sigma), alpha) == pytest.approx(loss.renyi(alpha), rel=1e-7)

    @pytest.mark.parametrize(("floor", "shift", "close"), [(0.0, 1e-3, 0.998), (0.5, 1e-3, 0.998), (0.0, 0.1, 0.85)])
    def test_close_where_it_is_below_the_noise(self, floor, shift, close):
        """A long row is turned."""
        X = np.diag([1e4, math.sqrt(floor)])
        other = X + np.array([[0.0, shift], [0.0, 0.0]])
        loss = SketchLoss(rank=1, shift=shift, floor=floor, noise_scale=1.0)
        assert close < ratio(X, other, 1.0, loss) <= EXCESS

    def test_climbing(self):
        rng = np.random.default_rng(1)
        floor, sigma, shift = 0.5, 1.0, 0.02
        loss, best = SketchLoss(rank=1, shift=shift, floor=floor, noise_scale=sigma), 0.0
        X, D = np.diag([3.0, 1.0]), rng.normal(size=(2, 2))
        for size in np.geomspace(1, 1e-3, rounds(400)):
            near, turned = X * np.exp(size * rng.normal(size=(2, 1))), D + size * rng.normal(size=(2, 2))
            other = near + shift * turned / np.linalg.norm(turned)
            if min(least(near), least(other)) < floor:
                continue
            told = ratio(other, near, sigma, loss)
            if told > best:
                X, D, best = near, turned, told
        assert best <= EXCESS
        assert found(best) > 0.8

    def test_the_noise_free_sketch_of_a_matrix_without_floor_is_refused(self):
        with pytest.raises(InvalidParameter, match="neither noise nor a floor"):
            SketchLoss(rank=3, shift=0.1)

    @pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
    def test_tcdp_is_a_line_above_the_curve(self, share):
        loss = SketchLoss(rank=7, shift=0.05, floor=1.0)
        rho, omega = loss.tcdp(share)
        for alpha in np.geomspace(1.001, omega * (1 - 1e-9), 60):
            assert loss.renyi(float(alpha)) <= rho * alpha
        assert rho / (7 * loss.matrix_change**2 / 4) == pytest.approx(1 / (1 - share), rel=1e-9)
        with pytest.raises(InvalidParameter, match="share must be at least"):
            SketchLoss(rank=7, shift=1.0, floor=1.0).tcdp(0.01)


class TestRowsOnOneSide:
    """Theorem 2: rows that come, go or are replaced; an exact pair of chi-squared variables."""

    @pytest.mark.parametrize("sides", [1, 2])
    @pytest.mark.parametrize("floor", [0.0, 0.8])
    def test_every_pair_is_below_and_orthogonal_rows_attain_it(self, sides, floor):
        rng = np.random.default_rng(2)
        sigma = 1.0 if floor == 0 else 0.5
        loss = SketchLoss(rank=1, change=1.5**2, rows=1, sides=sides, floor=floor, noise_scale=sigma)
        curve = loss.curve()
        closest = 0.0
        for trial in range(rounds(300)):
            d = int(rng.integers(2, 5))
            rest = rng.normal(size=(d, d)) * rng.choice([0.0, 0.3, 3.0])
            rows = rng.normal(size=(2, d))
            if trial % 3 == 0:
                rest, rows = np.eye(d) * math.sqrt(floor), np.eye(d)[:2]
            rows *= 1.5 / np.linalg.norm(rows, axis=1, keepdims=True)
            X, other = np.vstack([rest, rows[:1]]), np.vstack([rest, rows[1:] if sides == 2 else 0 * rows[1:]])
            if min(least(X), least(other)) < floor * (1 - 1e-12):
                continue
            for s in (scales(X, other, sigma), 1 / scales(X, other, sigma)):
                for alpha in ORDERS:
                    if math.isfinite(curve(alpha)):
                        closest = max(closest, divergence(s, alpha) / curve(alpha))
        assert 1 - 1e-6 < closest <= EXCESS

    @pytest.mark.parametrize("apart", [0.0, 0.3, 0.9])
    @pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
    @pytest.mark.repeated("epsilon")
    def test_delta_of_two_rows_at_an_angle(self, apart, epsilon):
        """Two rows of one sketch row, by integration over the plane; orthogonal rows cost exactly what is certified."""
        a = 1.3
        u, v = np.array([1.0, 0.0]), np.array([apart, math.sqrt(1 - apart**2)])
        one, other = (stats.multivariate_normal(cov=np.eye(2) + a * np.outer(x, x)).pdf for x in (u, v))
        grid = np.linspace(-12, 12, 601)
        points = np.stack(np.meshgrid(grid, grid), axis=-1)
        heights = np.maximum(one(points) - math.exp(epsilon) * other(points), 0.0)
        true = integrate.trapezoid(integrate.trapezoid(heights, grid), grid)
        bound = SketchLoss(rank=1, change=a, rows=1, sides=2, noise_scale=1.0).delta(epsilon)
        assert true <= bound * (1 + 1e-3)
        if apart == 0:
            assert true == pytest.approx(bound, rel=2e-3)

    @pytest.mark.parametrize("sides", [1, 2])
    @pytest.mark.parametrize(("ratio", "size"), [(0.05, 90), (0.5, 7), (2.0, 1)])
    def test_the_profile_against_simulation(self, sides, ratio, size):
        rng = np.random.default_rng(3)
        draws = 100_000
        x, y = rng.chisquare(size, draws), rng.chisquare(size, draws)
        if sides == 2:
            losses = [(ratio * x - ratio / (1 + ratio) * y) / 2] * 2
        else:
            constant = size / 2 * math.log1p(ratio)
            losses = [ratio * x / 2 - constant, constant - ratio / (1 + ratio) * y / 2]
        profile = rows_profile(ratio, sides, size)
        for loss, side in zip(losses, (profile.forward, profile.backward)):
            for epsilon in (0.0, 0.2, 1.0):
                told = np.maximum(-np.expm1(epsilon - loss), 0.0)
                error = 5 * told.std() / math.sqrt(draws) + 1e-6
                assert float(side(np.array([epsilon]))[0]) == pytest.approx(told.mean(), abs=error)

    def test_epsilon_and_delta_are_inverse_and_below_the_curve(self):
        loss = SketchLoss(rank=64, change=1.0, rows=1, sides=2, noise_scale=4.0)
        for delta in (1e-3, 1e-6, 1e-9):
            epsilon = loss.epsilon(delta)
            assert loss.delta(epsilon) == pytest.approx(delta, rel=1e-6)
            assert PrivacyLoss(parts=(loss,)).epsilon(delta) == pytest.approx(epsilon, rel=1e-6)
            assert replace(loss, shift=1e-9).epsilon(delta) > epsilon

    def test_repeated_sketches_are_one_of_higher_rank(self):
        one = PrivacyLoss(parts=(SketchLoss(rank=30, change=1.0, rows=1, sides=2, noise_scale=4.0),))
        five = PrivacyLoss(parts=(SketchLoss(rank=150, change=1.0, rows=1, sides=2, noise_scale=4.0),))
        assert (one * 5).epsilon(1e-6) == pytest.approx(five.epsilon(1e-6), rel=1e-9)
        assert five.epsilon(1e-6) <= (one + one * 4).epsilon(1e-6, interval=2.0**-10) * (1 + 1e-3)

    def test_more_rank_tends_to_gaussian_noise_on_second_moments(self):
        """With the same root of rank over sigma squared."""
        gaussian, away = PrivacyLoss(0.5).epsilon(1e-6), []
        for r in (30, 3000, 300_000):
            loss = SketchLoss(rank=r, change=1.0, rows=1, sides=2, noise_scale=(r / 0.25) ** 0.25)
            away.append(abs(loss.epsilon(1e-6) / gaussian - 1))
        assert away == sorted(away, reverse=True)
        assert away[-1] < 1e-3


class TestMutants:
    """Formulas that are too small for some pair."""

    def test_half_of_the_change(self):
        loss = SketchLoss(rank=1, shift=0.05, floor=1.0)
        assert ratio(np.array([[1.1]]), np.array([[1.0]]), 0.0, loss) > 3

    def test_a_floor_that_does_not_hold(self):
        loss = SketchLoss(rank=1, shift=0.1, floor=1.0)
        assert ratio(np.array([[0.6]]), np.array([[0.5]]), 0.0, loss) > 3

    def test_one_side_for_a_replaced_row(self):
        loss = SketchLoss(rank=1, change=1.0, rows=1, noise_scale=1.0)
        assert ratio(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]), 1.0, loss) > 1.2

    def test_a_sketch_that_is_known(self):
        """Given S, the answers differ by S (X - X'), which no bound on the covariances covers."""
        rank, sigma = 200, 6.0
        loss = SketchLoss(rank=rank, change=1.0, rows=1, sides=1, noise_scale=sigma)
        known = PrivacyLoss(mu=math.sqrt(rank) / sigma)
        assert known.epsilon(1e-6) > 5 * loss.epsilon(1e-6)


@pytest.mark.parametrize(
    "part",
    [
        SketchLoss(rank=5, shift=0.1, floor=1.0, count=2),
        SketchLoss(rank=5, change=2.0, rows=3, sides=2, noise_scale=3.0),
        SketchLoss(rank=5, change=2.0, rows=1, shift=0.1, floor=0.5, noise_scale=3.0),
    ],
    ids=Part.describe,
)
def test_parts_are_recorded_and_told(part):
    assert Part.from_dict(part.to_dict()) == part
    assert "Gaussian sketch of 5 rows" in part.words()
    one, two = (PrivacyLoss(parts=(replace(part, count=count),)) for count in (1, 2))
    assert one * 2 == two
    assert one.epsilon(1e-6) < two.epsilon(1e-6) < 2 * one.epsilon(1e-6) + 20
    assert math.isfinite(PrivacyLoss(0.3, parts=one.parts).epsilon(1e-6))


@pytest.mark.parametrize(
    "wrong",
    [
        {"rank": 0, "shift": 1.0},
        {"rank": 1.5, "shift": 1.0},
        {"rank": math.nan, "shift": 1.0},
        {"rank": 2, "shift": -1.0},
        {"rank": 2, "shift": math.inf},
        {"rank": 2, "change": 1.0},
        {"rank": 2, "rows": 1},
        {"rank": 2, "rows": 1, "change": 1.0, "sides": 3},
    ],
)
def test_impossible_numbers_are_refused(wrong):
    with pytest.raises(InvalidParameter):
        SketchLoss(noise_scale=1.0, **wrong)


def test_what_is_proved_for_real_numbers_only_is_said():
    assert "real arithmetic" in SketchLoss.idealised
