"""The replay audit refutes bugs in Newton steps, each in one answer of many, and not the steps themselves."""

from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from effort import rounds
from planted_bugs import X, Y, planned

from ppdp.audit import audit
from ppdp.bounds.newton import answers
from ppdp.data.statistics import row_norms
from ppdp.mechanisms import LinearSVC, LogisticRegression, PoissonRegressor, Ridge
from ppdp.mechanisms.base import QuerySpec
from ppdp.mechanisms.learn import newton, solvers, whitened
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
    report = replayed(model, 1)
    assert not report.violated, report
    assert report.counted > 0


def gradients_over(norms):
    """Steps of which gradients are divided by other norms than their own, where those are larger than the clip."""
    exact = newton._step_sums

    def step(loss, intercept, theta, clip, *given):
        part = given[-1]
        _, _, residuals, _ = newton._gradients_of(loss, theta, part)
        weights = part.weight / np.maximum(norms(part, residuals), clip)
        gradients = newton._with_constant(residuals * weights[:, None], part.X.T, intercept)
        return np.hstack([gradients, exact(loss, intercept, theta, clip, *given)[:, gradients.shape[1] :]])

    return step


def never(part, residuals):
    return np.zeros(part.n)


def without_the_constant(part, residuals):
    return row_norms(part.X) / 2 * newton._lengths(residuals)


@pytest.mark.parametrize("norms", [never, without_the_constant])
def test_gradients_that_are_not_clipped_by_their_own_norm_are_refuted(norms, replayed, monkeypatch):
    monkeypatch.setattr(newton, "_step_sums", gradients_over(norms))
    violations = replayed(MODELS["two classes"], 5).violations
    assert "exact answers" in {finding.quantity for finding in violations}


def with_long_rows(number):
    """Of a few rows that are longer than others one more or less decides about the clip."""
    return X / row_norms(X)[:, None] * np.where(np.arange(len(X)) < number, 0.95, 0.4)[:, None]


@pytest.mark.parametrize(
    ("which", "model"),
    [(0, "two classes"), (1, "two classes"), (2, "squared")],  # gradients of classes are as expected of so few rows
    ids=["norms", "moments", "lengths"],
)
def test_an_answer_that_is_used_without_its_noise_is_refuted(which, model, replayed, monkeypatch):
    fit = newton.fitted_by_newton

    def hasty(rows, loss, answer, *given, **named):
        calls = count()

        def told(value):
            noisy = answer(value)
            return value if next(calls) == which else noisy

        return fit(rows, loss, told, *given, **named)

    monkeypatch.setattr(solvers, "fitted_by_newton", hasty)
    assert any(replayed(MODELS[model], 1, with_long_rows(number)).violated for number in range(26))


def test_a_histogram_that_is_counted_twice_is_refuted(replayed, monkeypatch):
    """It has a hundredth of the budget, so all answers together hardly change."""
    exact = newton._histogram
    monkeypatch.setattr(newton, "_histogram", lambda *given: 2 * exact(*given))
    violations = replayed(MODELS["two classes"], 2).violations
    assert {finding.quantity for finding in violations} == {"exact answers"}


FORMS = {"diagonals": {"diagonal": True}, "calibrated": {"calibration": 0.1}, "ends early": {"curvature": 0.4}}


@pytest.fixture
def in_form(monkeypatch):
    """Steps of another form than the rule has for so few rows; with much curvature they end behind the first.

    Most rows are short, so that a long one has a score far from theirs.
    """
    usual = solvers.Newton.query_spec

    def use(name):
        def asked(*given):
            question = usual(*given)
            parameters = {**question.parameters, "iterations": 4, **FORMS[name]}
            return QuerySpec.asked(question.formula, question.kind, given[1], parameters, answers(**parameters))

        monkeypatch.setattr(solvers.Newton, "query_spec", asked)
        if name == "ends early":
            monkeypatch.setattr(whitened.NewtonState, "converged", lambda self, noise: len(self._step_lengths) > 1)

    return use


def diagonals_not_clipped(monkeypatch):
    exact = newton._step_sums

    def step(loss, intercept, theta, clip, curvature_clip, curved, diagonal, part):
        _, scores, _, _ = newton._gradients_of(loss, theta, part)
        curvatures = loss.curvatures(scores, part.y) * (part.weight / curvature_clip)[:, None]
        gradients = exact(loss, intercept, theta, clip, curvature_clip, False, diagonal, part)
        if not curved:
            return gradients
        return np.hstack([gradients, newton._with_constant(curvatures, part.X.T**2, intercept)])

    monkeypatch.setattr(newton, "_step_sums", step)


def scores_that_pass_for_shorter(monkeypatch):
    exact = newton._scored

    def scores(*given):
        scored = exact(*given)
        return replace(scored, norms=scored.norms / 4)

    monkeypatch.setattr(newton, "_scored", scores)


def norms_without_the_constant(monkeypatch):
    exact = newton._transformed
    monkeypatch.setattr(newton, "_transformed", lambda *given: exact(*given[:3], False, *given[4:]))


def the_last_factor_as_a_sum(monkeypatch):
    monkeypatch.setattr(newton, "both", lambda gradient, curvature: gradient + curvature)


@pytest.mark.parametrize(
    ("form", "bug"),
    [
        ("diagonals", diagonals_not_clipped),
        ("calibrated", scores_that_pass_for_shorter),
        ("calibrated", norms_without_the_constant),
        ("ends early", the_last_factor_as_a_sum),
    ],
)
def test_bugs_of_every_form_are_refuted_and_the_form_is_not(form, bug, in_form, replayed, monkeypatch):
    in_form(form)
    model, rows = LogisticRegression((0, 1), solver="newton"), X / 10
    assert not replayed(model, 1, rows).violated
    bug(monkeypatch)
    violations = replayed(model, 5, rows).violations
    assert "exact answers" in {finding.quantity for finding in violations}
