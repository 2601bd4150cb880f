"""Training of which few dimensions are seen: fresh projections, and one that everybody knows."""

import math

import numpy as np
import pytest

import ppdp
from ppdp import Adjacency, Distance, Domain, Pipeline
from ppdp.exceptions import InvalidParameter, PpdpError, UnsupportedOrder
from ppdp.mechanisms import LogisticRegression, Ridge
from ppdp.mechanisms.learn import gradient_solvers
from ppdp.mechanisms.learn.gradient_solvers import fresh_answer, public_basis
from ppdp.privacy.losses import NoisyProjectionLoss
from ppdp.privacy.noise.sampler import Noise
from ppdp.transformers import NormClipper

D, N, RANK = 24, 400, 4
DOMAIN = Domain(n_rows=N, n_features=D, row_norm=1.0, classes=(0, 1))
THREE = Domain(n_rows=N, n_features=D, row_norm=1.0, classes=(0, 1, 2))
ONE = Distance(replaced=1)


def m2(**more):
    return LogisticRegression(**{"solver": "m2", "rank": RANK, "max_iter": 12, "noise_scale": 0.01, **more})


def people(classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    scores = X @ rng.standard_normal((D, classes))
    return X, scores.argmax(axis=1)


def private(model, **more):
    return Pipeline([("clip", NormClipper(1.0)), ("model", model)], **{"epsilon": 2.0, "delta": 1e-5, **more})


@pytest.fixture
def bases(monkeypatch):
    """Every basis that is computed, in order."""
    made, real = [], np.linalg.qr

    def recorded(matrix):
        found = real(matrix)
        made.append(found[0])
        return found

    monkeypatch.setattr(gradient_solvers.np.linalg, "qr", recorded)
    return made


@pytest.mark.parametrize("classes", [2, 3])
def test_every_step_has_a_projection_of_its_own(bases, classes):
    """A reused one costs what certificates do not say: docs/theory/fresh-projections.md."""
    X, y = people(classes)
    model = m2(classes=tuple(range(classes))).fit(X, y)
    model.fit(X, y)
    assert len(bases) == 2 * model.n_iter_ == 24
    assert all(basis.shape == (D + 1, RANK) for basis in bases)
    for i, one in enumerate(bases):
        np.testing.assert_allclose(one.T @ one, np.eye(RANK), atol=1e-12)
        overlaps = [np.square(one.T @ other).sum() for other in bases[:i]]
        assert all(overlap < 0.8 * RANK for overlap in overlaps)
    assert model.coef_.shape == ((1, D) if classes == 2 else (3, D))


def test_projections_are_drawn_after_the_gradient_and_are_uniform(bases):
    answer = fresh_answer(Noise(), 1e-6, 10.0, 2)
    value = np.random.default_rng(0).standard_normal((3, 8))
    total = np.zeros((3, 8))
    for _ in range(500):
        seen = answer(value)
        np.testing.assert_allclose(seen, value @ bases[-1] @ bases[-1].T, atol=1e-4)
        total += seen
    np.testing.assert_allclose(total / 500, value * 2 / 8, atol=0.15)
    squares = [np.square(basis[0]).sum() for basis in bases]
    assert np.var(squares) == pytest.approx(2 * 2 * 6 / (64 * 10), rel=0.3)


def test_what_is_released_is_noise_on_few_numbers():
    """The noise lies in the subspace that is seen, with the scale that was asked for."""
    answer = fresh_answer(Noise(), 3.0, 1.0, 2)
    drawn = np.stack([answer(np.zeros((1, 10))) for _ in range(500)])
    assert np.square(drawn).sum(axis=2).mean() == pytest.approx(2 * 9.0, rel=0.2)


@pytest.mark.parametrize("distance", [ONE, Distance(toggled=1), Distance(replaced=2, moved=50, radius=0.01, total=0.3)])
def test_the_shift_is_that_of_ordinary_descent(distance):
    plain = LogisticRegression(max_iter=12, noise_scale=0.01)
    (part,) = m2().privacy_map(DOMAIN, distance).parts
    assert isinstance(part, NoisyProjectionLoss)
    assert (part.dimension, part.rank, part.steps, part.rank_one) == (D + 1, RANK, 12, 1)
    assert part.mu == pytest.approx(plain.privacy_map(DOMAIN, distance).mu / math.sqrt(12), rel=2e-4)
    (several,) = m2().privacy_map(THREE, distance).parts
    assert not several.rank_one


def test_samples_are_for_rows_that_come_or_go():
    loss = m2(batch_size=40).privacy_map(DOMAIN, Distance(toggled=1))
    (part,) = loss.parts
    assert part.sampling_rate == 0.1
    assert part.mu == pytest.approx(1 / 40 / 0.01, rel=0.35)
    for distance in (ONE, Distance(toggled=2), Distance(toggled=1, moved=1, radius=0.1, total=0.1)):
        with pytest.raises(UnsupportedOrder, match="added or removed"):
            m2(batch_size=40).privacy_map(DOMAIN, distance)


def test_less_noise_than_without_projection_and_less_than_by_root():
    """The same steps, the same epsilon: between √(r/d) of the noise and 1.2 times that."""
    X, y = people()
    pipes = [
        private(model, epsilon=1.0).fit(X, y)
        for model in (
            LogisticRegression((0, 1), solver="dpgd", max_iter=60),
            m2(classes=(0, 1), max_iter=60, noise_scale=None),
        )
    ]
    scales = [p.certificate_["mechanism"]["noise_scale"] for p in pipes]
    root = math.sqrt(RANK / (D + 1))
    assert root < scales[1] / scales[0] < 1.2 * root
    assert pipes[1].certificate_.verify()


@pytest.mark.parametrize(("solver", "classes"), [("m2", 3), ("lora-fa", 2), ("lora-fa", 3)])
def test_fits_are_certified_and_verified(solver, classes):
    X, y = people(classes)
    pipe = private(LogisticRegression(tuple(range(classes)), solver=solver, rank=RANK, max_iter=15)).fit(X, y)
    certificate = pipe.certificate_
    assert certificate.verify()
    assert certificate.status == ("CONDITIONAL" if solver == "m2" else "UNCONDITIONAL")
    assert any("uniform" in reason for reason in certificate["reasons"]) == (solver == "m2")
    assert len(list(pipe["model"].staged_predict(X))) == 15
    assert pipe.predict(X).shape == (N,)
    assert pipe["model"].coef_.shape == ((1, D) if classes == 2 else (classes, D))


def test_samples_in_a_pipeline():
    X, y = people()
    pipe = private(m2(classes=(0, 1), batch_size=50, noise_scale=None), adjacency=Adjacency.add_remove())
    pipe.set_params(domain=Domain(n_rows=N, n_features=D))
    pipe.fit(X, y)
    assert pipe.certificate_.verify()
    (part,) = pipe.certificate_["total"]["parts"]
    assert part["sampling_rate"] == 50 / N


REFUSED = {
    "a seed of the pipeline": (m2(classes=(0, 1), noise_scale=None), {"random_state": 0}, "secret"),
    "all dimensions": (m2(classes=(0, 1), rank=D + 1, noise_scale=None), {}, "rank"),
    "more than all": (LogisticRegression((0, 1), solver="lora-fa", rank=D), {}, "rank"),
    "no dimension": (m2(classes=(0, 1), rank=0, noise_scale=None), {}, "rank"),
    "samples of replaced rows": (m2(classes=(0, 1), batch_size=40, noise_scale=None), {}, "added or removed"),
    "a batch of too many": (m2(classes=(0, 1), batch_size=N + 1, noise_scale=None), {}, "batch_size"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_before_anything_is_spent(case):
    model, more, words = REFUSED[case]
    X, y = people()
    with ppdp.Ledger(epsilon=10.0, delta=1e-3) as ledger:
        before = ledger.spent
        with pytest.raises(PpdpError, match=words):
            private(model, **more).fit(X, y)
        assert ledger.spent == before


def test_seeds_are_refused_alone_and_inside():
    X, y = people()
    with pytest.raises(InvalidParameter, match="seed"):
        m2(random_state=0).fit(X, y)
    with pytest.raises(InvalidParameter, match="seed"):
        fresh_answer(Noise(0), 1.0, 1.0, 2)
    LogisticRegression(solver="lora-fa", rank=RANK, noise_scale=0.01, random_state=0).fit(X, y)


def test_offered_by_logistic_regression_only():
    with pytest.raises(InvalidParameter, match="solver"):
        Ridge(solver="m2", noise_scale=1.0).query_spec(Domain(n_rows=N, n_features=D, row_norm=1.0, y_range=(0, 1)))


def test_the_public_projection_is_the_same_for_everybody():
    basis = public_basis(D, RANK)
    np.testing.assert_allclose(basis.T @ basis, np.eye(RANK), atol=1e-12)
    assert np.linalg.norm(basis, 2) <= 1 + 1e-9
    assert abs(basis[0, 0]) == pytest.approx(0.2858, abs=1e-4)
    X, y = people()
    model = LogisticRegression(solver="lora-fa", rank=RANK, noise_scale=0.01).fit(X, y)
    np.testing.assert_allclose(model.coef_ @ basis @ basis.T, model.coef_, atol=1e-12)


@pytest.mark.parametrize("intercept", [True, False])
def test_neighbours_behind_the_public_projection_come_close_to_the_bound(intercept):
    """Opposite rows inside the subspace, one of each label: gradients are clipped behind it."""
    rng = np.random.default_rng(0)
    basis = public_basis(D, RANK)
    model = LogisticRegression(
        solver="lora-fa", rank=RANK, noise_scale=0.01, max_grad_norm=0.3, fit_intercept=intercept
    )
    question = model.query_spec(DOMAIN)
    bound = question.sensitivity(DOMAIN, ONE) * N
    closest = 0.0
    for _ in range(200):
        x, z = rng.standard_normal((2, D))
        if rng.random() < 0.5:
            x = basis @ (basis.T @ x)
            z = -x
        rows = np.stack([x / np.linalg.norm(x), z / np.linalg.norm(z)]) @ basis
        rows = np.column_stack([rows, np.ones(2)]) if intercept else rows
        theta = rng.standard_normal(rows.shape[1])
        theta *= question.parameters["coef_norm"] * rng.random() / np.linalg.norm(theta)
        gradients = (1 / (1 + np.exp(-rows @ theta)) - rng.integers(0, 2, 2))[:, None] * rows
        norms = np.linalg.norm(gradients, axis=1, keepdims=True)
        gradients *= np.minimum(1, 0.3 / np.maximum(norms, 1e-300))
        change = np.linalg.norm(gradients[0] - gradients[1])
        assert change <= bound
        closest = max(closest, change / bound)
    assert closest > 0.95
