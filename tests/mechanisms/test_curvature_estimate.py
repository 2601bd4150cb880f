"""Longer steps from released gradients: fewer of them where noise is small, none that noise alone decides."""

import numpy as np
import pytest

from ppdp import make_pipeline
from ppdp.mechanisms import LogisticRegression
from ppdp.mechanisms.learn.descent import (
    WINDOW,
    ClippedGradient,
    CurvatureEstimate,
    descend_faster,
    noise_is_small,
    settled,
)
from ppdp.transformers import NormClipper

CURVATURE = np.concatenate([[1.0], np.linspace(0.005, 0.02, 30)])  # one steep direction, as that of an intercept
GOAL = np.linspace(1.0, 2.0, 31)


def distance_after(steps, noise_scale, secants, radius=1e9, penalty=0.0, seed=0):
    """How far the last iterate is from the minimiser of a quadratic; gradients are noisy."""
    rng = np.random.default_rng(seed)

    def answer(gradient):
        return gradient + noise_scale * rng.standard_normal(gradient.shape)

    start = np.zeros((1, 31))
    *_, last = descend_faster(
        lambda theta: CURVATURE * (theta - GOAL),
        answer,
        start,
        steps=steps,
        learning_rate=1.2,
        radius=radius,
        penalty=penalty,
        curvature=CurvatureEstimate(1.2, noise_scale) if secants else None,
    )
    return float(np.linalg.norm(last - CURVATURE * GOAL / (CURVATURE + penalty)))


class TestSteps:
    def test_far_fewer_are_needed(self):
        assert distance_after(25, 1e-7, secants=True) < 0.05 < 0.5 < distance_after(25, 1e-7, secants=False)

    @pytest.mark.parametrize("penalty", [0.1, 10.0, 1e4])
    def test_are_stable_under_any_penalty(self, penalty):
        assert distance_after(40, 1e-7, secants=True, penalty=penalty) < 1e-3

    def test_the_first_has_the_usual_length(self):
        gradient = np.array([[1.0, -2.0]])
        step = CurvatureEstimate(0.5, 0.1).step(np.zeros((1, 2)), gradient, np.array([0.0, 4.0]))
        np.testing.assert_allclose(step, -gradient / (2 + np.array([0.0, 4.0])))


class TestNoise:
    def test_where_all_is_noise_it_moves_coefficients_by_a_hundredth_at_most(self):
        """A flat loss: whatever was learnt from noise, and however much longer steps were asked for."""
        rng, noise_scale = np.random.default_rng(0), 1e-3
        secants, at = CurvatureEstimate(1.0, noise_scale), np.full((1, 50), 10.0)
        for _ in range(50):
            gradient = noise_scale * rng.standard_normal(at.shape)
            secants.update(at + rng.standard_normal(at.shape), gradient)
            moved = np.linalg.norm(secants.step(at, gradient, 0.0) - at)
            expected = noise_scale * np.sqrt(at.size)
            assert moved <= 0.01 * np.linalg.norm(at) * np.linalg.norm(gradient) / expected * (1 + 1e-9)

    def test_secants_that_contradict_each_other_end_in_a_usual_step(self):
        """Nearly orthogonal pairs: what limited-memory BFGS makes of them is beyond float64."""
        secants, rng = CurvatureEstimate(1.0, 1e-30), np.random.default_rng(0)
        at = gradient = np.zeros((1, 30))
        for _ in range(21):
            move, other = rng.standard_normal((2, 1, 30))
            other -= move * float((move * other).sum() / (move * move).sum())
            at, gradient = at + move, gradient + 1e-20 * move + 1e10 * other
            secants.update(at, gradient)
        there = secants.step(at, gradient, 0.0)
        assert np.isfinite(there).all()
        assert np.linalg.norm(there - at) > 0

    @pytest.mark.parametrize(
        ("noise_scale", "size", "enough"), [(0.01, 9, True), (0.0112, 9, False), (0.01, 16, False)]
    )
    def test_must_be_a_thirtieth_of_the_longest_gradient(self, noise_scale, size, enough):
        assert noise_is_small(noise_scale, 1.0, size) is enough


def test_every_gradient_is_taken_inside_the_ball(monkeypatch):
    visited, learnt = [], []
    gradient, see = ClippedGradient.__call__, CurvatureEstimate.update
    monkeypatch.setattr(
        ClippedGradient, "__call__", lambda self, theta: visited.append(np.linalg.norm(theta)) or gradient(self, theta)
    )
    monkeypatch.setattr(CurvatureEstimate, "update", lambda self, at, noisy: learnt.append(at) or see(self, at, noisy))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 3))
    model = LogisticRegression((0, 1), max_coef_norm=2.0, max_iter=30, learning_rate=50.0)
    make_pipeline(NormClipper(), model, epsilon=20, delta=1e-4, random_state=0).fit(X, (X[:, 0] > 0).astype(int))
    assert len(learnt) == len(visited) == 30
    assert 2 * (1 - 1e-9) <= max(visited) <= 2 * (1 + 1e-12)


class TestEnd:
    """Where many rows make noise negligible, the automatic number of steps is the most that are made."""

    @staticmethod
    def asked(monkeypatch, X, y, **parameters):
        """How many gradients a fit takes, of how many that are paid for."""
        came, gradient = [], ClippedGradient.__call__
        with monkeypatch.context() as patch:
            patch.setattr(ClippedGradient, "__call__", lambda self, theta: came.append(1) or gradient(self, theta))
            model = LogisticRegression((0, 1), solver="dpgd", **parameters)
            pipe = make_pipeline(NormClipper(10.0), model, epsilon=1, delta=1e-7, random_state=0, diagnostics=None).fit(
                X, y
            )
        assert pipe.certificate_.to_dict()["mechanism"]["steps"] == pipe[-1].n_iter_
        assert pipe.certificate_.verify()
        return len(came), pipe[-1].n_iter_

    @staticmethod
    def rows(scales, n=60_000):
        rng = np.random.default_rng(0)
        Z = rng.standard_normal((n, len(scales)))
        return Z * scales, (Z.sum(axis=1) + rng.logistic(size=n) > 0).astype(int)

    def test_comes_early_where_nothing_moves_any_more_and_the_price_is_that_of_all(self, monkeypatch):
        made, paid = self.asked(monkeypatch, *self.rows(np.ones(10)))
        assert 2 * WINDOW <= made < paid - 10

    def test_does_not_come_while_a_flat_direction_is_still_being_learnt(self, monkeypatch):
        made, paid = self.asked(monkeypatch, *self.rows(1 / np.arange(1, 11) ** 2))
        assert made == paid > 40

    def test_does_not_come_where_the_number_of_steps_is_given(self, monkeypatch):
        assert self.asked(monkeypatch, *self.rows(np.ones(10)), max_iter=50) == (50, 50)

    def test_leaves_the_average_of_what_settled_for_the_rest(self):
        taken = []

        def gradient(theta):
            taken.append(theta)
            return CURVATURE[:3] * (theta - GOAL[:3])

        how = {"steps": 60, "learning_rate": 1.2, "radius": 1e9, "curvature": CurvatureEstimate(1.2, 1e-9)}
        iterates = list(descend_faster(gradient, lambda exact: exact, np.zeros((1, 3)), early_stopping=True, **how))
        made = len(taken)
        assert len(iterates) == 60 > made + 10
        assert settled(iterates[:made])
        assert not any(settled(iterates[:step]) for step in range(made))
        for left in iterates[made:]:
            np.testing.assert_array_equal(left, np.mean(iterates[made // 2 : made], axis=0))
        np.testing.assert_allclose(iterates[-1][0], GOAL[:3], rtol=0.05)

    def test_hangs_on_nothing_but_released_gradients(self):
        """Other private gradients with the same answers: the same iterates, to the last bit and step."""
        rng = np.random.default_rng(0)
        answers = 0.9 ** np.arange(60)[:, None, None] * rng.standard_normal((1, 1, 3))

        def run(private):
            left = iter(answers)
            how = {
                "steps": 60,
                "learning_rate": 1.2,
                "radius": 1e9,
                "curvature": CurvatureEstimate(1.2, 1e-9),
                "early_stopping": True,
            }
            return list(descend_faster(private, lambda _: next(left), np.zeros((1, 3)), **how)), len(list(left))

        (one, unused), (other, as_many) = run(np.sin), run(np.cos)
        assert unused == as_many > 0
        np.testing.assert_array_equal(one, other)


def test_no_secant_is_used_where_noise_is_large(monkeypatch):
    monkeypatch.setattr(CurvatureEstimate, "update", lambda *_: pytest.fail("noise is too large for that"))
    X = np.random.default_rng(0).standard_normal((300, 3))
    model = LogisticRegression((0, 1), solver="dpgd")
    make_pipeline(NormClipper(), model, epsilon=1, delta=1e-4, random_state=0).fit(X, (X[:, 0] > 0).astype(int))
