"""What training on private rows must keep to, whatever the loss: where gradients are taken, what divides, what varies.

Each is a mistake that is easily made and looks like a working model.
"""

import math
from itertools import repeat

import clinic
import numpy as np
import pytest

from ppdp import Domain, make_pipeline
from ppdp.bounds.learning import augmented_norm, kept_steps, logistic_gradient_norm, softmax_gradient_norm
from ppdp.core.rounding import BLOCK
from ppdp.data.rows import Rows
from ppdp.exceptions import DiagnosticWarning
from ppdp.mechanisms import LinearRegression, LinearSVC, LogisticRegression, Ridge
from ppdp.mechanisms.learn.descent import ClippedGradient, descend, minimise, path
from ppdp.pipeline.execute import execute
from ppdp.privacy.noise.sampler import Noise
from ppdp.transformers import Deduplicator, NormClipper, StandardScaler

N = 60
MODELS = {
    "logistic": LogisticRegression((0, 1)),
    "softmax": LogisticRegression((0, 1, 2)),
    "hinge": LinearSVC((0, 1)),
    "squared": LinearRegression((-1, 1)),
    "ridge": Ridge((-1, 1), alpha=5.0),
    "minimised logistic": LogisticRegression((0, 1), solver="output"),
    "minimised squares": Ridge((-1, 1), solver="output"),
    "Poisson samples": LogisticRegression((0, 1), solver="poisson", batch_size=20),
    "batches of fixed size": LinearSVC((0, 1), solver="fixed-size", batch_size=20),
    "epochs": LogisticRegression((0, 1), solver="epochs", batch_size=N),
}
every_model = pytest.mark.parametrize("name", MODELS)


def model(name, **parameters):
    return type(MODELS[name])(**{**MODELS[name].get_params(), **parameters})


drawn = clinic.drawn


def data(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, 3))
    return X / np.linalg.norm(X, axis=1, keepdims=True), (X[:, 0] > 0).astype(int)


@every_model
def test_every_gradient_is_taken_inside_the_ball(monkeypatch, name):
    """However strong the noise and however long the step."""
    visited = []
    gradient = ClippedGradient.__call__
    monkeypatch.setattr(
        ClippedGradient, "__call__", lambda self, theta: visited.append(np.linalg.norm(theta)) or gradient(self, theta)
    )
    chosen = model(name, max_coef_norm=0.7, max_iter=25, learning_rate=50.0)
    make_pipeline(NormClipper(), chosen, epsilon=0.1, delta=1e-3, random_state=0).fit(*data())
    assert len(visited) == 25
    radius = 0.7 * (math.sqrt(3) if name == "softmax" else 1)
    assert max(visited) <= radius * (1 + 1e-12)
    if "minimised" not in name:
        assert max(visited) == pytest.approx(radius)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("classes", [(0, 1), (0, 1, 2)], ids=["logistic", "softmax"])
def test_the_gradient_is_the_sum_of_the_clipped_gradients_of_all_rows(classes, intercept):
    """Taken block by block: more rows than a block has, and no whole number of blocks."""
    rng, n, clip = np.random.default_rng(0), 2 * BLOCK + 77, 0.3
    X, y = rng.standard_normal((n, 3)), rng.choice(classes, n).astype(float)
    rows = Rows(X, y, rng.choice([0.0, 0.5, 1.0], n))
    scores = 1 if len(classes) == 2 else len(classes)
    theta = rng.standard_normal((scores, 3 + intercept))
    residuals = LogisticRegression(classes)._residuals
    ones = np.column_stack([X, np.ones(n)]) if intercept else X
    each = residuals(ones @ theta.T, y)[:, :, None] * ones[:, None, :]
    each *= np.minimum(1.0, clip / np.linalg.norm(each, axis=(1, 2)))[:, None, None]
    gradient = ClippedGradient.of(rows, residuals, clip, intercept)
    np.testing.assert_allclose(gradient(theta), np.einsum("n,nij->ij", rows.weight, each) / n, rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("intercept", [True, False])
def test_the_norm_is_that_which_arrives_with_the_intercept(intercept):
    """R behind the stages, not at the entrance; √(R² + 1) with an intercept."""
    domain = Domain(n_rows=5000, n_features=3)
    natural = {
        "logistic": lambda norm: logistic_gradient_norm(norm, 5.0),
        "softmax": lambda norm: softmax_gradient_norm(norm, 5.0 * math.sqrt(3), 3),
        "hinge": lambda norm: norm,
        "squared": lambda norm: norm * (1 + 2.0 * norm),
    }
    for name, largest in natural.items():
        chosen = model(name, fit_intercept=intercept, max_grad_norm=1e6)
        plan = make_pipeline(NormClipper(), StandardScaler(fit_mode="noisy"), chosen, delta=1e-6).plan(domain)
        norm = augmented_norm(plan.end[0].row_norm, intercept)
        assert plan.end[0].row_norm > 1.5
        assert plan.mechanism.question.bound == pytest.approx(largest(norm), rel=1e-9)
        assert plan.mechanism.sensitivity >= 2 * largest(norm) / 5000
        assert plan.mechanism.question.size == (3 if name == "softmax" else 1) * (3 + intercept)


@every_model
def test_what_was_deleted_decides_nothing(drawn, name):
    """Two datasets that differ in how many rows are kept: the same noise, steps, shapes and attributes."""
    X, y = data()
    repeated, labels = X.copy(), y.copy()
    repeated[N // 3 :], labels[N // 3 :] = X[0], y[0]
    seen = []
    for rows, answers in ((X, y), (repeated, labels)):
        drawn.clear()
        pipe = make_pipeline(NormClipper(), Deduplicator(), model(name, max_iter=6), epsilon=1.0, delta=1e-3)
        fitted = pipe.fit(rows, answers)[-1]
        attributes = {key: np.shape(value) for key, value in vars(fitted).items()}
        seen.append(([(one.value.shape, one.noise_scale, one.bound) for one in drawn], attributes, fitted.n_iter_))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("name", MODELS)
def test_the_sum_is_divided_by_the_public_number_of_rows(name):
    """Half the weight: half the gradient."""
    X, y = data()
    rows = Rows.of(X, y.astype(float))
    half = Rows(rows.X, rows.y, np.full(N, 0.5))
    gradients = []
    for some in (rows, half):
        gradient = ClippedGradient.of(some, MODELS[name]._residuals, 1.0, True)
        gradients.append(gradient(np.full((3 if name == "softmax" else 1, 4), 0.1)))
    np.testing.assert_allclose(gradients[1], gradients[0] / 2)


def test_the_last_member_of_a_class_decides_no_shape(drawn):
    """With and without any row of a declared class."""
    X, y = data()
    y[:] = np.arange(N) % 2
    with_three = y.copy()
    with_three[5] = 2
    shapes = []
    for answers in (y, with_three):
        drawn.clear()
        pipe = make_pipeline(NormClipper(), model("softmax", max_iter=4), delta=1e-3).fit(X, answers)
        shapes.append(
            (
                [(one.value.shape, one.noise_scale, one.bound) for one in drawn],
                pipe[-1].coef_.shape,
                list(pipe.classes_),
            )
        )
    assert shapes[0] == shapes[1]
    assert shapes[0][1:] == ((3, 3), [0, 1, 2])


@pytest.mark.parametrize("name", ["minimised logistic", "minimised squares"])
def test_a_fit_that_has_not_converged_says_nothing(name, recwarn):
    """Neither a warning nor an error, and the number of iterations is public whatever the rows are."""
    steps = []
    for X in (data()[0], np.zeros((N, 3)), np.eye(3)[np.arange(N) % 3]):
        for iterations in (1, 3):
            chosen = model(name, max_iter=iterations, alpha=1e-3)
            pipe = make_pipeline(NormClipper(), chosen, epsilon=3.0, delta=1e-3, diagnostics=None)
            pipe.fit(X, data()[1])
            steps.append(pipe[-1].n_iter_)
            assert pipe.certificate_.verify()
    assert steps == [1, 3] * 3
    assert {warning.category for warning in recwarn} <= {DiagnosticWarning}  # of rows of zeros there is one class


@pytest.mark.parametrize("alpha", [0.0, 50.0])
def test_the_penalty_stays_outside_the_clip(drawn, alpha):
    """What is released does not know of it: with no step taken yet, and given the same coefficients."""
    X, y = data()
    for steps in (1, 2):
        drawn.clear()
        model("ridge", alpha=alpha, max_iter=steps, noise_scale=1e-3, random_state=0).fit(X, y)
        rows = Rows.of(X, y)
        gradient = ClippedGradient.of(rows, MODELS["ridge"]._residuals, drawn[0].bound, True)
        np.testing.assert_allclose(drawn[0].value, gradient(np.zeros((1, 4))).ravel())
        assert np.linalg.norm(drawn[-1].value) <= drawn[-1].bound


def test_the_penalty_costs_nothing():
    domain = Domain(n_rows=500, n_features=3, row_norm=1.0)
    questions = [model("ridge", alpha=alpha, max_iter=10).query_spec(domain) for alpha in (0.0, 1.0, 1e9)]
    assert questions[0] == questions[1] == questions[2]


def test_any_penalty_is_stable():
    X, y = data()
    fitted = model("ridge", alpha=1e12, noise_scale=1e-3, random_state=0, fit_intercept=False).fit(X, y)
    assert np.abs(fitted.coef_).max() < 1e-6


def test_every_model_on_the_path_is_the_average_of_the_last_half_so_far():
    targets = [np.array([[float(t)]]) for t in range(1, 6)]
    steps = iter(targets)
    here = np.zeros((1, 1))

    def answer(_):
        nonlocal here
        there = next(steps)
        step, here = here - there, there
        return step

    iterates = descend(repeat(np.copy), answer, np.zeros((1, 1)), steps=5, learning_rate=1.0, radius=100.0)
    found = path(iterates, 5)
    np.testing.assert_allclose(found.ravel(), [1, 2, (2 + 3) / 2, (3 + 4) / 2, (3 + 4 + 5) / 3])


@pytest.mark.parametrize("steps", [1, 7, 100, 101, 250, 1000])
def test_a_path_is_short_and_ends_at_the_last_step(steps):
    kept = kept_steps(steps)
    assert len(kept) == min(steps, 100)
    assert kept == sorted(set(kept))
    assert (kept[0] >= 1, kept[-1]) == (True, steps)
    assert max(np.diff([0, *kept])) <= math.ceil(steps / 100)
    averages = path((np.array([float(t)]) for t in range(1, steps + 1)), steps)
    np.testing.assert_allclose(averages[:, 0], [(step // 2 + 1 + step) / 2 for step in kept])


def test_the_minimiser_of_a_parabola():
    found = minimise(
        lambda theta: theta - 3.0, np.zeros((1, 1)), iterations=200, smoothness=1.0, strength=0.5, radius=10.0
    )
    assert found == pytest.approx(2.0)
    bounded = minimise(
        lambda theta: theta - 3.0, np.zeros((1, 1)), iterations=200, smoothness=1.0, strength=0.5, radius=1
    )
    assert bounded == pytest.approx(1.0)


@every_model
def test_twenty_executions_of_a_plan_need_no_other(name):
    """Planning once and executing often, as an audit does."""
    X, y = data()
    plan = make_pipeline(NormClipper(), model(name, max_iter=5), delta=1e-3).plan(Domain(n_rows=N, n_features=3))
    answers = 2.0 * y - 1 if name in ("squared", "ridge", "minimised squares") else y.astype(float)
    thetas = [execute(plan, Rows.of(X, answers), Noise()).released for _ in range(20)]
    released = np.array([next(iter(one.values())) for one in thetas])
    assert len(np.unique(released[:, 0])) == 20
