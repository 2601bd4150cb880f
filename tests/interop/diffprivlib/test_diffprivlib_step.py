"""A model of diffprivlib as last step: what is certified, what is refused, and that nothing is read off the rows.

Where diffprivlib is not installed, stand-ins of the same form take its place, but for the tests of what is learned.
"""

import pickle
import sys

import foreign_models
import numpy as np
import pytest
from foreign_models import GaussianNB, LinearRegression, LogisticRegression, RandomForestClassifier
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.utils.estimator_checks import check_estimator

from ppdp import Adjacency, Certificate, Domain, Pipeline, make_pipeline
from ppdp.data.rows import Rows
from ppdp.exceptions import InvalidParameter, MissingBound, MissingBudget, PpdpError, UnknownStage, UnsupportedOrder
from ppdp.interop import Diffprivlib
from ppdp.privacy.noise.sampler import Noise
from ppdp.transformers import Deduplicator, GridDeduplicator, NormClipper

try:
    from diffprivlib import models
except ImportError:
    models = None

real = pytest.mark.skipif(models is None, reason="diffprivlib is not installed")
DOMAIN = Domain(n_rows=2000, n_features=3)


def steps():
    return {
        "logistic": Diffprivlib(LogisticRegression(), (0, 1)),
        "linear": Diffprivlib(LinearRegression(), y_range=(-3, 3)),
        "bayes": Diffprivlib(GaussianNB(), (0, 1)),
    }


every_model = pytest.mark.parametrize("name", list(steps()))


def pipeline(step, **parameters):
    return make_pipeline(NormClipper(2.0), Deduplicator(), step, **parameters)


def data(n=2000):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] > 0.2).astype(int)


@every_model
def test_the_certificate_is_conditional_on_their_word_and_replays(name):
    X, y = data()
    certificate = pipeline(steps()[name], epsilon=1.0).fit(X, y).certificate_
    assert certificate.status == "CONDITIONAL"
    assert "diffprivlib 0.6.6 is taken at its word" in " ".join(certificate["reasons"])
    assert certificate.verify()
    assert certificate.loss.epsilon(0.0) < 1.01
    changed = certificate.to_dict() | {"status": "UNCONDITIONAL", "reasons": []}
    assert "somebody else's word" in repr(Certificate.sealed(changed).verify())


@pytest.mark.parametrize(("name", "factor"), [("linear", 1.0), ("bayes", 5 / 3)])
def test_a_replaced_row_costs_a_multiple_of_the_epsilon_that_diffprivlib_is_given(name, factor):
    domain = DOMAIN.but(row_norm=2.0, classes=(0, 1), y_range=(-1.0, 1.0))
    step = clone(steps()[name]).set_params(noise_scale=2.0)
    assert step.privacy_map(domain, Adjacency.replace().distance).epsilon(0.0) == pytest.approx(factor / 2)


@every_model
def test_more_noise_costs_less_and_the_plan_spends_what_it_may(name):
    plan = pipeline(steps()[name], epsilon=1.0, delta=1e-6).plan(DOMAIN)
    assert 0.99 < plan.loss.epsilon(1e-6) <= 1.0
    looser = pipeline(steps()[name], epsilon=2.0, delta=1e-6).plan(DOMAIN)
    assert looser.mechanism.noise_scale < plan.mechanism.noise_scale


@every_model
def test_it_predicts_like_a_scikit_learn_estimator(name):
    X, y = data()
    pipe = pipeline(steps()[name], epsilon=5.0).fit(X, y)
    assert pipe.predict(X).shape == (2000,)
    if name == "linear":
        assert is_regressor(pipe)
        assert not hasattr(pipe, "predict_proba")
    else:
        assert is_classifier(pipe)
        np.testing.assert_allclose(pipe.predict_proba(X).sum(axis=1), 1)
        assert set(pipe.predict(X)) <= {0, 1}


@real
@every_model
def test_a_fitted_pipeline_pickles_without_a_row(name):
    X, y = data()
    pipe = pipeline(steps()[name], epsilon=5.0).fit(X, y)
    kept = pickle.dumps(pipe)
    assert len(kept) < X.nbytes / 3
    np.testing.assert_array_equal(pickle.loads(kept).predict(X), pipe.predict(X))


def ways_to_run(step):
    """In a pipeline, and alone."""
    alone = clone(step).set_params(noise_scale=1.0)
    return [lambda: pipeline(step).plan(DOMAIN), lambda: alone.fit(*data(100))]


REFUSED = [
    (LogisticRegression(epsilon=0.5), "epsilon"),
    (LogisticRegression(data_norm=1.0), "data_norm"),
    (LogisticRegression(tol=1e-2), "tol"),
    (GaussianNB(bounds=(0, 1)), "bounds"),
    (GaussianNB(priors=[0.5, 0.5]), "priors"),
    (LinearRegression(bounds_y=(0, 1)), "bounds_y"),
    (GaussianNB(random_state=0), "random_state"),
    (LogisticRegression(C=0.0), "C"),
]


@pytest.mark.parametrize(("model", "name"), REFUSED, ids=[name for _, name in REFUSED])
def test_parameters_that_the_proof_does_not_leave_open_are_refused(model, name):
    with pytest.raises(InvalidParameter, match=name):
        pipeline(Diffprivlib(model, (0, 1), y_range=None)).plan(DOMAIN.but(y_range=(0.0, 1.0)))


def test_a_forest_is_refused_because_its_noise_can_be_found():
    step = Diffprivlib(RandomForestClassifier(), (0, 1))
    for attempt in ways_to_run(step):
        with pytest.raises(InvalidParameter, match=r"one seed of 31 bits.*GaussianNB"):
            attempt()


class KMeans(BaseEstimator):
    """Reveals which of its clusters are empty, so nothing is proved for it."""

    __module__ = "diffprivlib.models.k_means"


@pytest.mark.parametrize("model", [None, KMeans(), type("Own", (LogisticRegression,), {})()])
def test_models_without_a_proof_are_refused(model):
    with pytest.raises(InvalidParameter, match="no guarantee has been proved"):
        pipeline(Diffprivlib(model, (0, 1))).plan(DOMAIN)


def test_their_models_are_no_steps_by_themselves():
    with pytest.raises(UnknownStage):
        pipeline(LogisticRegression()).plan(DOMAIN)


def test_another_version_is_refused(monkeypatch):
    monkeypatch.setattr(sys.modules["diffprivlib"], "__version__", "0.7.0")
    with pytest.raises(InvalidParameter, match=r"of diffprivlib 0\.6\.6, and this is 0\.7\.0"):
        pipeline(steps()["logistic"]).plan(DOMAIN)


def test_a_missing_library_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "diffprivlib.models", None)
    with pytest.raises(InvalidParameter, match=r'pip install "ppdp\[diffprivlib\]"'):
        Diffprivlib.example()


@pytest.mark.parametrize("name", ["logistic", "bayes"])
def test_rows_that_count_in_part_are_refused(name):
    with pytest.raises(UnsupportedOrder, match="weights between 0 and 1"):
        make_pipeline(NormClipper(2.0), GridDeduplicator(keep="soft"), steps()[name]).plan(DOMAIN)


def test_least_squares_take_weights():
    assert make_pipeline(NormClipper(2.0), GridDeduplicator(keep="soft"), steps()["linear"]).plan(DOMAIN)


def test_bounds_must_be_public():
    with pytest.raises(MissingBound, match="row_norm"):
        Pipeline([("model", steps()["bayes"])]).plan(DOMAIN)
    with pytest.raises(MissingBound, match="range of the targets"):
        pipeline(Diffprivlib(LinearRegression())).plan(DOMAIN)
    with pytest.raises(InvalidParameter, match="at least two classes"):
        pipeline(Diffprivlib(GaussianNB(), (1,))).plan(DOMAIN)


@every_model
def test_alone_it_needs_a_noise_scale(name):
    X, y = data(50)
    with pytest.raises(MissingBudget):
        steps()[name].fit(X, y)
    assert steps()[name].set_params(noise_scale=0.1, random_state=0).fit(X, y).predict(X).shape == (50,)


@pytest.mark.parametrize("trouble", [ValueError("row 17 holds 3.25"), KeyboardInterrupt()])
def test_what_diffprivlib_says_of_the_rows_is_kept_back(monkeypatch, trouble):
    def fail(self, X, y):
        raise trouble

    X, y = data(50)
    monkeypatch.setattr(LogisticRegression, "fit", fail)
    step = steps()["logistic"].set_params(noise_scale=1.0)
    if isinstance(trouble, KeyboardInterrupt):
        with pytest.raises(KeyboardInterrupt):
            step.fit(X, y)
        return
    with pytest.raises(PpdpError, match="could not fit") as caught:
        step.fit(X, y)
    assert "3.25" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_bound_read_off_the_rows_would_stop_it(monkeypatch):
    import warnings

    class PrivacyLeakWarning(RuntimeWarning):
        pass

    honest = LogisticRegression.fit

    def leak(self, X, y):
        warnings.warn("data_norm was read", PrivacyLeakWarning, stacklevel=1)
        return honest(self, X, y)

    X, y = data(50)
    monkeypatch.setattr(LogisticRegression, "fit", leak)
    with pytest.raises(PpdpError, match="read a bound off the rows"):
        steps()["logistic"].set_params(noise_scale=1.0).fit(X, y)


@pytest.mark.parametrize("name", ["logistic", "bayes"])
@pytest.mark.parametrize("y", [np.zeros(40), np.ones(40)], ids=["only 0", "only 1"])
def test_labels_that_do_not_occur_do_not_show(name, y):
    step = steps()[name].set_params(noise_scale=0.5)
    domain = Domain(n_rows=40, n_features=3, row_norm=2.0, classes=(0, 1))
    question = step.query_spec(domain)
    rows = Rows(np.zeros((40, 3)), y, np.zeros(40))
    for weight in (rows.weight, np.ones(40)):
        released = step.release(Rows(rows.X, y, weight), question, Noise(), 0.5)
        assert released["model"].shape == (question.size,)


@real
@every_model
def test_rows_that_were_deleted_teach_nothing(name):
    X, y = data(400)
    answers = X[:, 0].clip(-1, 1) if name == "linear" else y.astype(float)
    step = steps()[name].set_params(noise_scale=1e-6)
    domain = Domain(n_rows=400, n_features=3, row_norm=5.0, classes=(0, 1), y_range=(-1.0, 1.0))
    question = step.query_spec(domain)
    weight = (np.arange(400) % 2).astype(float)
    here = weight > 0
    gone = Rows(np.where(here[:, None], X, 0.0), np.where(here, answers, 0.0), weight)
    found = []
    for rows in (gone, Rows(X[here], answers[here], np.ones(200))):
        step.read(step.release(rows, question, Noise(0), 1e-6), domain, question)
        found.append(step.predict(X))
    np.testing.assert_allclose(found[0], found[1], atol=0.05)


@real
def test_it_learns():
    X, y = data(20_000)
    scores = {}
    for name in ("logistic", "bayes"):
        scores[name] = pipeline(steps()[name], epsilon=3.0, random_state=0).fit(X, y).score(X, y)
    assert scores["logistic"] > 0.97
    assert scores["bayes"] > 0.85
    assert pipeline(steps()["linear"], epsilon=3.0, random_state=0).fit(X, X[:, 0]).score(X, X[:, 0]) > 0.9
    three = np.digitize(X[:, 0], [-0.5, 0.5])
    many = Diffprivlib(LogisticRegression(), (0, 1, 2))
    assert pipeline(many, epsilon=3.0, random_state=0).fit(X, three).score(X, three) > 0.7


@real
def test_a_seed_decides_all_noise():
    X, y = data(300)
    for step in steps().values():
        found = [repr(clone(step).set_params(noise_scale=1.0, random_state=s).fit(X, y).predict(X)) for s in (7, 7)]
        states = [clone(step).set_params(noise_scale=1.0, random_state=s).fit(X, y) for s in (7, 8)]
        assert found[0] == found[1]
        own = [{k: repr(v) for k, v in vars(s).items() if k.endswith("_")} for s in states]
        assert own[0] != own[1]


@pytest.fixture
def their_accountant():
    """The class, with no default at first; what was the default is so again."""
    from diffprivlib import BudgetAccountant

    before = BudgetAccountant.pop_default()
    yield BudgetAccountant
    BudgetAccountant._default = before


ACCOUNTANTS = {
    "of its own": lambda kind: GaussianNB(accountant=kind()),
    "of its own, with a limit": lambda kind: GaussianNB(accountant=kind(epsilon=1.0)),
    "the default, with a limit": lambda kind: (kind(1.0, 0).set_default(), GaussianNB())[1],
    "the default that has counted": lambda kind: (kind().set_default().spend(1.0, 0), GaussianNB())[1],
    "that was the default": lambda kind: (kind().set_default(), GaussianNB(), kind().set_default())[1],
    "a copy": lambda kind: clone(GaussianNB()),
}


@real
@pytest.mark.parametrize("name", ACCOUNTANTS)
def test_a_model_with_an_accountant_is_refused(name, their_accountant):
    step = Diffprivlib(ACCOUNTANTS[name](their_accountant), (0, 1))
    counted, kept = len(step.model.accountant), pickle.dumps(step)
    attempts = [*ways_to_run(step), *ways_to_run(clone(step)), *ways_to_run(pickle.loads(kept))]
    for attempt in attempts:
        with pytest.raises(InvalidParameter, match=r"would not count this fit.*ppdp\.Ledger"):
            attempt()
    assert len(step.model.accountant) == counted
    their_accountant.pop_default()
    with pytest.raises(InvalidParameter, match="would not count this fit"):
        pipeline(pickle.loads(kept)).plan(DOMAIN)


@real
def test_a_model_in_the_context_of_an_accountant_is_refused(their_accountant):
    with their_accountant():
        inside = Diffprivlib(GaussianNB(), (0, 1))
        with pytest.raises(InvalidParameter, match="would not count this fit"):
            pipeline(inside).plan(DOMAIN)
    with pytest.raises(InvalidParameter, match="would not count this fit"):
        pipeline(inside).plan(DOMAIN)


@real
@pytest.mark.parametrize("elsewhere", [False, True], ids=["this process", "another process"])
def test_the_accountant_that_diffprivlib_makes_by_itself_is_no_obstacle(elsewhere, their_accountant):
    kept = pickle.dumps(clone(Diffprivlib(GaussianNB(), (0, 1))))
    if elsewhere:
        their_accountant.pop_default()
    step = pickle.loads(kept)
    for attempt in ways_to_run(step):
        assert attempt()
    assert step.model.accountant.total() == (0, 0)


@real
def test_what_is_fitted_predicts_whatever_was_counted_later(their_accountant):
    X, y = data(100)
    step = Diffprivlib(GaussianNB(), (0, 1), noise_scale=1.0).fit(X, y)
    their_accountant._default.spend(1.0, 0)
    assert step.predict(X).shape == (100,)


@real
@pytest.mark.filterwarnings("ignore")
@every_model
def test_no_check_fails_and_none_is_excused(name):
    example = Diffprivlib(steps()[name].model, noise_scale=1e-3)
    results = check_estimator(example, on_skip=None, on_fail=None)
    assert len(results) >= 40
    assert [(r["check_name"], repr(r["exception"])) for r in results if r["status"] != "passed"] == []


def test_stand_ins_have_the_form_of_their_models():
    for name in foreign_models.__all__:
        kind = getattr(foreign_models, name)
        assert kind.__module__.startswith("diffprivlib.models.")
        if kind is not RandomForestClassifier:
            assert {"epsilon", "random_state"} <= set(kind().get_params())
