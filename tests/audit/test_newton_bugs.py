"""The replay audit refutes bugs in Newton steps, each in one answer of many, and not the steps themselves."""

from itertools import count

import numpy as np
import pytest
from effort import rounds
from planted_bugs import X, Y, planned

from ppdp.audit import audit
from ppdp.data.statistics import row_norms
from ppdp.mechanisms import LinearSVC, LogisticRegression, PoissonRegressor, Ridge
from ppdp.mechanisms.learn import linear, newton
from ppdp.transformers import NormClipper

NEWTON = {"solver": "newton", "max_iter": 2}
MODELS = {
    "two classes": LogisticRegression((0, 1), **NEWTON),
    "three classes": LogisticRegression((0, 1, 2), **NEWTON),
    "hinge": LinearSVC((0, 1), fit_intercept=False, **NEWTON),
    "squared": Ridge((0, 1), **NEWTON),
    "counts": PoissonRegressor((0, 1), **NEWTON),
}


@pytest.fixture
def replayed(monkeypatch):
    """The report of a replay with so many sets of neighbours."""

    def report(model, stars, rows=X):
        monkeypatch.setattr("ppdp.audit.replay.STARS", rounds(stars))
        return audit(planned(NormClipper(), model), data=(rows, Y), seconds=60.0)

    return report


@pytest.mark.repeated("model", keep=2)
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_newton_steps_are_not_refuted(model, replayed):
    report = replayed(model, 3)
    assert not report.violated, report
    assert report.counted > 0


def gradients_over(norms):
    """Steps of which gradients are divided by other norms than their own, where those are larger than the clip."""
    exact = newton._step_sums

    def step(loss, intercept, theta, clip, *given):
        part = given[-1]
        _, _, residuals, _ = newton._of_rows(loss, theta, part)
        weights = part.weight / np.maximum(norms(part, residuals), clip)
        gradients = newton._with_constant(residuals * weights[:, None], part.X.T, intercept)
        return np.concatenate([gradients, exact(loss, intercept, theta, clip, *given)[gradients.size :]])

    return step


def never(part, residuals):
    return np.zeros(part.n)


def without_the_constant(part, residuals):
    return row_norms(part.X) / 2 * newton._lengths(residuals)


@pytest.mark.parametrize("norms", [never, without_the_constant])
def test_gradients_that_are_not_clipped_by_their_own_norm_are_refuted(norms, replayed, monkeypatch):
    monkeypatch.setattr(newton, "_step_sums", gradients_over(norms))
    violations = replayed(MODELS["two classes"], 10).violations
    assert "exact answers" in {finding.quantity for finding in violations}


def with_long_rows(number):
    """Of a few rows that are longer than others one more or less decides about the clip."""
    return X / row_norms(X)[:, None] * np.where(np.arange(len(X)) < number, 0.95, 0.4)[:, None]


@pytest.mark.parametrize("which", [0, 1, 2], ids=["norms", "moments", "lengths"])
def test_an_answer_that_is_used_without_its_noise_is_refuted(which, replayed, monkeypatch):
    fit = newton.fitted_by_newton

    def hasty(rows, loss, answer, *given):
        calls = count()

        def told(value):
            noisy = answer(value)
            return value if next(calls) == which else noisy

        return fit(rows, loss, told, *given)

    monkeypatch.setattr(linear, "fitted_by_newton", hasty)
    assert any(replayed(MODELS["two classes"], 1, with_long_rows(number)).violated for number in range(26))


def test_a_histogram_that_is_counted_twice_is_refuted(replayed, monkeypatch):
    """It has a hundredth of the budget, so all answers together hardly change."""
    exact = newton._histogram
    monkeypatch.setattr(newton, "_histogram", lambda *given: 2 * exact(*given))
    violations = replayed(MODELS["two classes"], 2).violations
    assert {finding.quantity for finding in violations} == {"exact answers"}
