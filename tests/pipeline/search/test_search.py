"""Model selection charges every fit: no spend is lost, none is counted twice."""

import math

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, ShuffleSplit, cross_val_score, cross_validate, learning_curve

from ppdp import Domain, Ledger, Pipeline, PrivacyRefusal
from ppdp.exceptions import BudgetExceeded, DomainMismatch, InvalidValue, LedgerError, MissingBound
from ppdp.mechanisms import LogisticRegression
from ppdp.privacy.noise.sampler import Noise
from ppdp.transformers import PCA, Deduplicator, NormClipper

N = 600


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2))
    return X, (X[:, 0] + 0.3 * rng.normal(size=N) > 0).astype(int)


def pipeline(ledger=None, **parameters):
    steps = [
        ("clip", NormClipper(2.0)),
        ("dedup", Deduplicator()),
        ("model", LogisticRegression(classes=(0, 1), max_iter=5)),
    ]
    return Pipeline(steps, ledger=ledger, **{"epsilon": 2.0, "delta": 1e-5, "random_state": 0, **parameters})


@pytest.fixture(params=["memory", "file"])
def ledger(request, tmp_path):
    return Ledger(None if request.param == "memory" else tmp_path / "account.sqlite")


def statuses(ledger):
    return [entry.status for entry in ledger.entries()]


def mu_of(pipe, n):
    return pipe.plan(Domain(n_rows=n, n_features=2)).loss.mu


class TestEveryFitIsCharged:
    def test_one_fit(self, ledger, data):
        pipe = pipeline(ledger, dataset="clinic").fit(*data)
        (entry,) = ledger.entries()
        assert (entry.status, entry.dataset, entry.label) == ("released", "clinic", "clip > dedup > model")
        assert entry.mu == pipe.certificate_.mu
        assert ledger.epsilon(1e-5) == pytest.approx(2.0, rel=1e-3)
        assert pipe.fit(*data).certificate_.verify()
        assert len(ledger) == 2

    def test_prediction_and_plans_cost_nothing(self, ledger, data):
        pipe = pipeline(ledger).fit(*data)
        pipe.predict(data[0])
        pipe.score(*data)
        pipe.plan(Domain(n_rows=N, n_features=2))
        assert len(ledger) == 1

    def test_clones_share_the_account(self, ledger, data):
        pipe = pipeline(ledger)
        assert clone(pipe).ledger is ledger
        clone(pipe).fit(*data)
        clone(clone(pipe)[:]).fit(*data)
        assert statuses(ledger) == ["released"] * 2

    def test_cross_validation(self, ledger, data):
        scores = cross_val_score(pipeline(ledger), *data, cv=5)
        assert len(scores) == len(ledger) == 5
        assert scores.mean() > 0.7
        assert [e.mu for e in ledger.entries()] == pytest.approx([mu_of(pipeline(), N * 4 // 5)] * 5, rel=1e-9)

    def test_learning_curve(self, ledger, data):
        learning_curve(pipeline(ledger), *data, train_sizes=[0.5, 1.0], cv=3)
        assert len(ledger) == 6

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_grid_search_of_two_by_three_with_refit_records_seven(self, tmp_path, data, n_jobs):
        ledger = Ledger(tmp_path / "account.sqlite")
        grid = {"model__max_iter": [3, 5], "model__max_grad_norm": [0.5, 1.0, 2.0]}
        cv = ShuffleSplit(n_splits=1, test_size=0.25, random_state=0)
        named = pipeline(ledger, dataset="a grid of two by three")  # workers remember the fits of other tests
        with parallel_config(backend="multiprocessing"):  # what travels is the same, and nothing is imported again
            search = GridSearchCV(named, grid, cv=cv, n_jobs=n_jobs).fit(*data)
        assert statuses(ledger) == ["released"] * 7
        assert search.best_estimator_.certificate_.verify()
        assert search.best_estimator_.ledger.path == ledger.path
        clipped = pipeline().set_params(model__max_grad_norm=1.0)  # is trained by gradient descent, as all of the grid
        assert ledger.spent().mu == pytest.approx(math.sqrt(6 * mu_of(clipped, 450) ** 2 + mu_of(clipped, N) ** 2))

    def test_grid_search_in_memory(self, data):
        ledger = Ledger()
        search = GridSearchCV(pipeline(ledger), {"model__max_grad_norm": [0.5, 1.0]}, cv=3).fit(*data)
        assert statuses(ledger) == ["released"] * 7  # two candidates, three folds, one refit
        assert search.best_estimator_.ledger is ledger
        assert search.best_score_ > 0.7

    def test_an_account_in_memory_does_not_go_to_other_processes(self, data):
        ledger = Ledger()
        with parallel_config(backend="multiprocessing"), pytest.raises(LedgerError) as caught:
            GridSearchCV(pipeline(ledger), {"model__max_grad_norm": [0.5, 1.0]}, cv=3, n_jobs=2).fit(*data)
        assert "a ledger in memory cannot be pickled" in str(caught.value)
        assert "Ledger(path=" in str(caught.value)
        assert len(ledger) == 0

    def test_a_search_over_the_budget_itself(self, data):
        ledger = Ledger()
        GridSearchCV(pipeline(ledger), {"epsilon": np.array([1, 2])}, cv=2, refit=False).fit(*data)
        costs = [mu_of(pipeline(epsilon=float(e)), N // 2) for e in (1, 1, 2, 2)]
        assert [entry.mu for entry in ledger.entries()] == pytest.approx(costs, rel=1e-9)


class TestLimit:
    def test_an_over_spend_is_refused_before_any_value_is_looked_at(self, data):
        ledger = Ledger(epsilon=2.5, delta=1e-5)
        pipeline(ledger).fit(*data)
        gaps, foreign = np.full((N, 2), np.nan), np.full(N, "SENTINEL-PATIENT", dtype=object)
        for X, y in [data, (gaps, data[1]), (np.full((N, 2), np.inf), foreign)]:
            pipe = pipeline(ledger)
            with pytest.raises(BudgetExceeded):
                pipe.fit(X, y)
            assert not hasattr(pipe, "certificate_")
        assert len(ledger) == 1

    def test_classes_are_not_read_first(self, data):
        ledger = Ledger(epsilon=1.0, delta=1e-5)
        pipe = pipeline(ledger).set_params(model__classes=None)
        with pytest.raises(BudgetExceeded):
            pipe.fit(data[0], np.full(N, np.nan))

    def test_folds_beyond_the_limit_end_the_run_and_are_no_scores(self, data):
        mu = mu_of(pipeline(), N * 4 // 5)
        two = Ledger()
        for _ in range(2):
            two.reserve(mu=mu, allowance=1e-9, epsilon=2.0)
        ledger = Ledger(epsilon=two.epsilon(1e-5) * 1.01, delta=1e-5)
        with pytest.raises(BudgetExceeded):
            cross_validate(pipeline(ledger), *data, cv=5)
        assert statuses(ledger) == ["released"] * 2

    def test_each_dataset_has_its_own(self, data):
        ledger = Ledger(epsilon=2.5, delta=1e-5)
        for name in ("first", "second"):
            pipeline(ledger, dataset=name).fit(*data)
            with pytest.raises(BudgetExceeded, match=name):
                pipeline(ledger, dataset=name).fit(*data)
        assert len(ledger) == 2


class TestOutcome:
    def test_a_fit_that_fails_on_values_counts_as_spent(self, ledger, data):
        X = np.where(np.arange(N)[:, None] == 3, np.nan, data[0])
        with pytest.raises(InvalidValue):
            pipeline(ledger).fit(X, data[1])
        assert statuses(ledger) == ["failed"]
        assert ledger.spent().mu == mu_of(pipeline(), N)

    def test_a_fit_that_fails_before_any_value_costs_nothing(self, ledger, data):
        for kind, pipe in [
            (MissingBound, pipeline(ledger)[1:]),
            (DomainMismatch, pipeline(ledger, domain=Domain(n_rows=5))),
        ]:
            with pytest.raises(kind):
                pipe.fit(*data)
        assert len(ledger) == 0

    def test_a_refusal_counts_as_spent(self, ledger):
        X = np.random.default_rng(0).normal(size=(N, 2))  # no eigengap
        steps = [("clip", NormClipper()), ("pca", PCA(1, fit_mode="exact")), *pipeline().steps[2:]]
        pipe = pipeline(ledger).set_params(steps=steps)
        with pytest.raises(PrivacyRefusal):
            pipe.fit(X, np.zeros(N, dtype=int))
        (entry,) = ledger.entries()
        assert entry.status == "refused"
        plan = pipe.plan(Domain(n_rows=N, n_features=2))
        assert (entry.mu, entry.delta) == (plan.loss.mu, plan.gate.delta)

    def test_a_gates_delta_adds_in_an_account(self):
        domain = Domain(n_rows=N, n_features=2)
        steps = [("clip", NormClipper()), ("pca", PCA(1, fit_mode="exact")), *pipeline().steps[2:]]
        alone = pipeline().set_params(steps=steps).plan(domain)
        shared = pipeline(Ledger()).set_params(steps=steps).plan(domain)
        assert (alone.gate.adding, shared.gate.adding) == (False, True)
        assert (alone.loss + alone.loss).epsilon(1e-5) == math.inf  # one such gate takes the delta of a whole account
        assert shared.loss.epsilon(1e-5 - shared.allowance) <= 2.0
        assert (shared.loss + shared.loss).epsilon(1e-5) < 4.0

    def test_an_interrupted_fit_counts_as_spent(self, ledger, data, monkeypatch):
        def interrupt(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(Noise, "release", interrupt)
        with pytest.raises(KeyboardInterrupt):
            pipeline(ledger).fit(*data)
        assert statuses(ledger) == ["failed"]
