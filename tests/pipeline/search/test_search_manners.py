"""A private search is an estimator like others, and refuses what it cannot charge for."""

import inspect
import warnings

import numpy as np
import pandas as pd
import pytest
import searches
from searches import N, pipeline, search
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import accuracy_score, f1_score, make_scorer
from sklearn.pipeline import Pipeline as SklearnPipeline

import ppdp.pipeline.search.search
from ppdp import Adjacency, Domain, Ledger, Pipeline, PrivateSearchCV, make_pipeline
from ppdp.exceptions import DiagnosticWarning, DomainMismatch, InvalidParameter, MissingBound, NoiseWarning, NoRoute
from ppdp.mechanisms import GaussianMechanism, LogisticRegression, PoissonRegressor
from ppdp.transformers import PCA, MeanImputer, MinMaxScaler, NormClipper, StandardScaler

data = searches.data  # pytest finds a fixture by its name in the test's own module


class TestManners:
    def test_of_an_estimator(self, data):
        found = search(ledger=Ledger())
        other = clone(found)
        assert other.ledger is found.ledger
        assert other.get_params(deep=False).keys() == set(inspect.signature(PrivateSearchCV).parameters)
        assert other.set_params(estimator__model__max_grad_norm=0.7, share=0.4).estimator["model"].max_grad_norm == 0.7
        assert found.estimator["model"].max_grad_norm == "auto"
        assert is_classifier(found)
        assert not is_regressor(found)
        found.fit(*data)
        assert found.predict_proba(data[0]).shape == (N, 2)
        assert found.decision_function(data[0]).shape == (N,)
        assert found.classes_.tolist() == [0, 1]
        assert found.feature_names_in_.tolist() == ["a", "b", "c"]
        assert not hasattr(found.estimator, "certificate_")

    def test_without_refit(self, data):
        found = search(refit=False, scores=None).fit(*data)
        assert not any(hasattr(found, name) for name in ("best_estimator_", "best_score_", "predict"))
        assert found.summary_.verify()

    def test_arrays(self, data):
        assert search().fit(data[0].to_numpy(), data[1].to_numpy()).predict(data[0].to_numpy()).shape == (N,)

    def test_gaps_declared_of_all_rows_hold_of_a_part(self):
        setting = ppdp.pipeline.search.search.Setting(Domain(max_missing=0.1, min_present=50), 1000, 2, None)
        assert setting.domain(600) == Domain(n_rows=600, max_missing=100)
        assert setting.domain(60).max_missing == 60
        assert setting.domain(1000) is setting.declared


@pytest.mark.parametrize("kind", [NoiseWarning, DiagnosticWarning])
def test_a_warning_that_is_an_error_ends_no_search_that_is_paid_for(kind):
    rows = pd.DataFrame({"age": np.linspace(18, 80, 300)})
    steps = MinMaxScaler(ranges={"age": (0, 1)}), MeanImputer(), StandardScaler(), LogisticRegression(classes=(0, 1))
    ledger = Ledger(epsilon=9.0, delta=1e-3)
    found = PrivateSearchCV(
        make_pipeline(*steps), {"logisticregression__alpha": [1.0, 2.0]}, epsilon=0.3, ledger=ledger
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", kind)
        with pytest.raises(kind):
            found.fit(rows, np.arange(300) % 2)
    assert [entry.status for entry in ledger.entries()] == ["released"]
    assert found.certificate_.verify()
    assert len(found.predict(rows)) == 300


@pytest.mark.parametrize("epsilon", [0.3, 0.002])
def test_no_advice_for_an_epsilon_that_is_a_part_of_its_own(epsilon):
    """Where the fits of a search warn, and where they have no route: what would help one is no epsilon of a search."""
    rows = pd.DataFrame({"age": np.linspace(18, 80, 300)})
    steps = MinMaxScaler(ranges={"age": (0, 100)}), MeanImputer(), StandardScaler(), LogisticRegression(classes=(0, 1))
    found = PrivateSearchCV(make_pipeline(*steps), {"logisticregression__alpha": [1.0, 2.0]}, epsilon=epsilon)
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        try:
            found.fit(rows, np.arange(300) % 2)
            told = [str(one.message) for one in raised if one.category is NoiseWarning]
        except NoRoute as error:
            told = [str(error)]
    assert told
    assert not any("no such warning" in one or "smallest epsilon with a route" in one for one in told)


class TestRefusals:
    @pytest.mark.parametrize(
        ("parameters", "says"),
        [
            ({"estimator": LogisticRegression()}, "ppdp.Pipeline, got ppdp's LogisticRegression"),
            ({"estimator": SklearnPipeline([])}, "got sklearn's Pipeline.*from_sklearn"),
            ({"estimator": Pipeline([("mean", GaussianMechanism())])}, "predict"),
            ({"estimator": pipeline(random_state=0)}, "random_state"),
            ({"estimator": pipeline(ledger=Ledger())}, "ledger"),
            ({"grid": {"epsilon": [1.0, 2.0]}}, "epsilon"),
            ({"grid": {"model__max_grad_norm": [1.0]}}, "two candidates"),
            ({"grid": 5}, "param_grid"),
            ({"grid": {"model__max_grad_norm": 1.0}}, "param_grid"),
            ({"grid": {"model__q": [1, 2]}}, "param_grid"),
            ({"grid": {"model__max_grad_norm__x": [1, 2]}}, "param_grid"),
            ({"grid": {"other__q": [1, 2]}}, "other"),
            ({"grid": {"model": [LogisticRegression((0, 1)), PoissonRegressor((0, 1))]}}, "in common"),
            ({"grid": {"model": [PoissonRegressor((0, 1)), PoissonRegressor((0, 2))]}}, "in common"),
            ({"grid": {"model": [LogisticRegression((0, 1)), GaussianMechanism()]}}, "predict"),
            ({"grid": {"steps": [5, []]}}, "steps"),
            ({"share": 0.0}, "share"),
            ({"share": 1.0}, "share"),
            ({"test_size": 1.0}, "test_size"),
            ({"test_size": 0}, "test_size"),
            ({"scores": "some"}, "scores"),
            ({"scoring": "roc_auc"}, "scoring"),
            ({"scoring": "neg_mean_absolute_error"}, "'accuracy'"),
            ({"scoring": f1_score}, "fails for one answer"),
            ({"scoring": make_scorer(accuracy_score)}, "y == predicted"),
            ({"scoring": lambda y, predicted: -float(y != predicted)}, "whatever is predicted"),
            (
                {
                    "estimator": Pipeline([("clip", NormClipper(2.0)), ("model", PoissonRegressor((0, 20)))]),
                    "grid": {"model__max_coef_norm": [0.01, 4.0]},
                    "scoring": lambda y, predicted: -abs(y - predicted),
                },
                r"1 - abs\(y - predicted\)",
            ),
            ({"refit": 1}, "refit"),
            ({"split_state": -1}, "split_state"),
            ({"epsilon": 0}, "epsilon"),
            ({"delta": 0.1}, "delta"),
            ({"ledger": "file"}, "ledger"),
            ({"dataset": 5}, "dataset"),
        ],
    )
    def test_parameters(self, data, parameters, says):
        ledger = {} if "ledger" in parameters else {"ledger": Ledger()}
        with pytest.raises(InvalidParameter, match=says):
            search(**parameters, **ledger).fit(*data)
        assert not any(len(account) for account in ledger.values())

    def test_classes_must_be_declared(self, data):
        with pytest.raises(MissingBound, match="classes"):
            search(pipeline().set_params(model__classes=None)).fit(*data)
        declared = pipeline(domain=Domain(classes=(0, 1))).set_params(model__classes=None)
        assert search(declared).fit(*data).summary_.verify()

    @pytest.mark.parametrize("adjacency", [Adjacency.change(coordinate=0.5), Adjacency.change(l2=0.1)], ids=str)
    def test_small_changes_of_rows(self, data, adjacency):
        """Scores are bounded for whole rows; what a change does to one is not, so nothing is spent."""
        facts = Domain(n_rows=N, n_features=3, adjacency=adjacency)
        for estimator, domain in ((pipeline(adjacency=adjacency), None), (pipeline(domain=facts), None)):
            with pytest.raises(InvalidParameter, match=r"bounded for replaced rows only.*Adjacency.replace\(\)"):
                search(estimator).fit(*data)
            with pytest.raises(InvalidParameter, match="replaced rows only"):
                search(estimator).plan(domain or facts)

    def test_another_number_of_rows_than_declared(self, data):
        with pytest.raises(DomainMismatch, match="n_rows"):
            search(pipeline(domain=Domain(n_rows=N - 1))).fit(*data)

    def test_losses_that_are_not_gaussian(self, data):
        stage = ("pca", PCA(1, fit_mode="exact"))
        with pytest.raises(InvalidParameter, match="Gaussian"):
            search(pipeline(stage, gate="laplace")).plan(Domain(n_rows=100_000, n_features=3))
