"""Logistic regression of two and of more classes, and the support vector machine: what they learn, how they behave."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression as PublicRegression
from sklearn.svm import SVC

from ppdp import Distance, Domain, Pipeline, make_pipeline
from ppdp.exceptions import InvalidParameter, InvalidValue
from ppdp.mechanisms import LinearSVC, LogisticRegression
from ppdp.transformers import Deduplicator, MinMaxScaler, StandardScaler

N = 3000
CORNERS = np.array([[0.8, 0.0], [-0.4, 0.7], [-0.4, -0.7]])


@pytest.fixture(scope="module")
def three():
    """Three clouds with names, as a frame."""
    rng = np.random.default_rng(0)
    codes = rng.integers(3, size=N)
    X = CORNERS[codes] + 0.35 * rng.standard_normal((N, 2))
    return pd.DataFrame(X, columns=["east", "north"]), np.array(["a", "b", "c"])[codes]


@pytest.fixture(scope="module")
def two(three):
    X, y = three
    return X, (y == "a").astype(int)


def pipeline(model, **parameters):
    steps = [("range", MinMaxScaler(ranges=(-2, 2))), ("dedup", Deduplicator()), ("model", model)]
    return Pipeline(steps, **{"epsilon": 1.0, "delta": 1e-6, **parameters})


UNCLIPPED = {"noise_scale": 1e-6, "max_grad_norm": 100.0, "max_coef_norm": 100.0, "random_state": 0}
LONG = {**UNCLIPPED, "alpha": 1.0, "max_iter": 500, "learning_rate": 2.0}


class TestWhatIsLearned:
    def test_three_classes_nearly_as_well_as_without_privacy(self, three):
        X, y = three
        pipe = pipeline(LogisticRegression(("a", "b", "c"))).fit(X, y)
        assert pipe.score(X, y) > PublicRegression().fit(X, y).score(X, y) - 0.04
        assert pipe.certificate_.status == "UNCONDITIONAL"
        assert pipe.certificate_.verify()

    @pytest.mark.parametrize("rows", ["two", "three"])
    def test_coefficients_tend_to_those_of_scikit_learn(self, rows, request):
        X, y = (table[:300] for table in request.getfixturevalue(rows))
        model = LogisticRegression(**LONG).fit(X, y)
        public = PublicRegression(tol=1e-10).fit(X, y)
        np.testing.assert_allclose(model.coef_, public.coef_, atol=3e-3)
        np.testing.assert_allclose(model.predict_proba(X), public.predict_proba(X), atol=3e-3)
        if rows == "two":  # of three classes they may all be shifted
            np.testing.assert_allclose(model.intercept_, public.intercept_, atol=2e-3)

    def test_a_smooth_hinge_is_nearly_the_hinge(self, two):
        X, y = (table[:500] for table in two)
        settings = {"smoothing": 0.05, "max_iter": 1000, "learning_rate": 0.1, **UNCLIPPED}
        model = LinearSVC((0, 1), **settings).fit(X, y)
        public = SVC(kernel="linear").fit(X, y)
        assert np.mean(model.predict(X) == public.predict(X)) > 0.99

    def test_probabilities_of_a_rare_class_are_right_where_noise_hides_it(self):
        """Its rows have the longest gradients: clips that cut them off told a quarter of its share."""
        rng = np.random.default_rng(1)
        X = rng.standard_normal((15_000, 10)).clip(-4, 4)
        y = (rng.random(len(X)) < 1 / (1 + np.exp(5.2 - X[:, :4] @ [1, -1, 0.5, 0.5]))).astype(int)
        steps = MinMaxScaler(ranges=(-4, 4)), StandardScaler(), LogisticRegression(classes=(0, 1))
        models = (make_pipeline(*steps, epsilon=1.0, random_state=seed).fit(X, y) for seed in range(3))
        told = [model.predict_proba(X)[:, 1].mean() / y.mean() for model in models]
        assert 0.6 < np.median(told) < 1.6, told


class TestManners:
    def test_shapes_of_two_classes(self, two):
        X, y = two
        for model in (LogisticRegression(noise_scale=0.01), LinearSVC(noise_scale=0.01)):
            model.fit(X, y)
            assert (model.coef_.shape, model.intercept_.shape) == ((1, 2), (1,))
            assert model.decision_function(X).shape == (N,)
            np.testing.assert_array_equal(model.predict(X), (model.decision_function(X) > 0).astype(int))
            assert list(model.feature_names_in_) == ["east", "north"]

    def test_shapes_of_three_classes(self, three):
        X, y = three
        model = LogisticRegression(noise_scale=0.01).fit(X, y)
        assert (model.coef_.shape, model.intercept_.shape) == ((3, 2), (3,))
        scores, proba = model.decision_function(X), model.predict_proba(X)
        assert scores.shape == proba.shape == (N, 3)
        np.testing.assert_allclose(proba.sum(axis=1), 1)
        np.testing.assert_array_equal(model.predict(X), model.classes_[scores.argmax(axis=1)])
        np.testing.assert_array_equal(scores.argmax(axis=1), proba.argmax(axis=1))
        assert list(model.classes_) == ["a", "b", "c"]

    def test_through_a_pipeline(self, three):
        X, y = three
        pipe = pipeline(LogisticRegression(("a", "b", "c"))).fit(X, y)
        assert pipe.predict_proba(X).shape == pipe.decision_function(X).shape == (N, 3)
        np.testing.assert_array_equal(pipe.predict(X), pipe.classes_[pipe.decision_function(X).argmax(axis=1)])
        again = pickle.loads(pickle.dumps(pipe))
        np.testing.assert_array_equal(again.predict_proba(X), pipe.predict_proba(X))
        assert pipe.release_["model.theta"].shape == (9,)
        np.testing.assert_array_equal(
            pipe["model"].coef_.ravel(), pipe.release_["model.theta"].reshape(3, 3)[:, :2].ravel()
        )

    def test_no_intercept(self, three):
        X, y = three
        model = LogisticRegression(noise_scale=0.01, fit_intercept=False).fit(X, y)
        assert not model.intercept_.any()
        assert model.coef_.shape == (3, 2)

    def test_no_probabilities_of_a_support_vector_machine(self, two):
        assert not hasattr(LinearSVC(), "predict_proba")
        assert not hasattr(pipeline(LinearSVC((0, 1))), "predict_proba")
        assert hasattr(pipeline(LinearSVC((0, 1))), "decision_function")

    def test_coefficients_stay_in_the_ball(self, two, three):
        X, y = two
        for model in (LogisticRegression((0, 1)), LinearSVC((0, 1)), LogisticRegression((0, 1), solver="output")):
            model.set_params(max_coef_norm=0.2, noise_scale=1.0, random_state=0).fit(X, y)
            assert np.hypot(np.linalg.norm(model.coef_), model.intercept_[0]) <= 0.2 * (1 + 1e-12)
        several = LogisticRegression(max_coef_norm=0.2, noise_scale=1.0, random_state=0).fit(*three)
        whole = np.column_stack([several.coef_, several.intercept_])
        assert np.linalg.norm(whole) <= 0.2 * np.sqrt(3) * (1 + 1e-12)


class TestErrors:
    def test_three_classes_where_two_are_needed(self, three):
        for model in (LinearSVC(noise_scale=1.0), LogisticRegression(solver="output", noise_scale=1.0)):
            with pytest.raises(InvalidParameter, match="Only binary classification is supported"):
                model.fit(*three)
            with pytest.raises(InvalidParameter, match="Only binary classification is supported"):
                make_pipeline(MinMaxScaler(ranges=(-1, 1)), model.set_params(noise_scale=None, classes=(0, 1, 2))).plan(
                    Domain(n_rows=100, n_features=2)
                )

    def test_one_class(self, two):
        with pytest.raises(InvalidParameter, match="at least two classes"):
            LogisticRegression(noise_scale=1.0).fit(two[0], np.zeros(N))

    def test_an_undeclared_label(self, three):
        with pytest.raises(InvalidValue, match="declared classes"):
            LogisticRegression(("a", "b", "x"), noise_scale=1.0).fit(*three)


class TestPrivacy:
    def test_rows_that_move_cost_less_than_rows_that_are_replaced(self, two):
        model = LogisticRegression((0, 1, 2), solver="dpgd", noise_scale=0.1)
        domain = Domain(n_rows=1000, n_features=3, row_norm=2.0)
        moved = model.privacy_map(domain, Distance(moved=10, radius=0.01)).mu
        assert 0 < moved < model.privacy_map(domain, Distance(replaced=10)).mu / 10
