"""Training on batches: what is learned, what is certified, what may be asked, and learning curves."""

import pickle
import re
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from effort import rounds
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from ppdp import Adjacency, Distance, Domain, make_pipeline
from ppdp.data.rows import Rows
from ppdp.exceptions import InvalidParameter, UnsupportedOrder
from ppdp.mechanisms import LinearRegression, LinearSVC, LogisticRegression, PoissonRegressor, Ridge
from ppdp.mechanisms.learn.descent import ClippedGradient
from ppdp.privacy.gaussian import gaussian_mu
from ppdp.privacy.noise.sampler import Noise
from ppdp.transformers import Deduplicator, GridDeduplicator, MinMaxScaler, NormClipper, StandardScaler

ONE = Adjacency.replace().distance

N = 3000
SAMPLED = ("poisson", "fixed-size")
BATCHED = (*SAMPLED, "epochs")
MODELS = {
    "logistic": LogisticRegression((0, 1)),
    "softmax": LogisticRegression((0, 1, 2)),
    "hinge": LinearSVC((0, 1)),
    "squared": LinearRegression((-2, 2)),
    "ridge": Ridge((-2, 2)),
}
every_model = pytest.mark.parametrize("name", MODELS)
batched = pytest.mark.parametrize("solver", BATCHED)


def model(name, **parameters):
    return clone(MODELS[name]).set_params(**parameters)


def fit_for(name, solver, **parameters):
    """A model of this loss, whose clip does not bind where the solver demands it."""
    return model(
        name, solver=solver, **({"max_grad_norm": 6.0} if (name, solver) == ("softmax", "hidden") else {}), **parameters
    )


@pytest.fixture(scope="module")
def three():
    rng = np.random.default_rng(0)
    codes = rng.integers(3, size=N)
    corners = np.array([[0.8, 0.0], [-0.4, 0.7], [-0.4, -0.7]])
    return corners[codes] + 0.35 * rng.standard_normal((N, 2)), codes


def answers(name, three):
    X, codes = three
    return (
        codes if name == "softmax" else (codes == 0).astype(int) if name in ("logistic", "hinge") else X @ [1.0, -0.5]
    )


def fitted(name, solver, three, *stages, epsilon=1.0, random_state=0, **parameters):
    steps = [MinMaxScaler(ranges=(-2, 2)), *stages, fit_for(name, solver, **parameters)]
    return make_pipeline(*steps, epsilon=epsilon, random_state=random_state).fit(three[0], answers(name, three))


class TestWhatIsLearned:
    @every_model
    @batched
    @pytest.mark.repeated("solver")
    def test_nearly_as_much_as_on_full_batches(self, three, name, solver):
        reached, full = (fitted(name, s, three).score(three[0], answers(name, three)) for s in (solver, "dpgd"))
        assert reached > full - 0.05

    @every_model
    @pytest.mark.repeated("name", keep=3)
    def test_a_hidden_pass_learns_something(self, three, name):
        """One iterate of few, at a secret time and without an average: far less."""
        X, y = three[0], answers(name, three)
        guessing = {"logistic": 0.67, "hinge": 0.67, "softmax": 0.34, "squared": 0.0, "ridge": 0.0}[name]
        seeds = range(rounds(1, 3))
        scores = [fitted(name, "hidden", three, epsilon=8.0, random_state=seed).score(X, y) for seed in seeds]
        assert np.median(scores) > guessing + 0.15

    @batched
    def test_without_noise_the_same_model_as_on_full_batches(self, solver, three):
        X, y = three[0], answers("logistic", three)
        common = {"noise_scale": 1e-6, "random_state": 0, "max_grad_norm": 100.0, "learning_rate": 2.0}
        full = model("logistic", max_iter=400, **common).fit(X, y)
        passes = {"max_iter": 400 // 3 if solver == "epochs" else 400}  # a pass has three steps
        found = model("logistic", solver=solver, batch_size=1000, **passes, **common).fit(X, y)
        np.testing.assert_allclose(found.coef_, full.coef_, rtol=0.02, atol=0.02)

    def test_steps_without_a_row_are_steps(self):
        X, y = np.eye(3)[np.arange(60) % 3], np.arange(60) % 2
        for name in MODELS:
            chosen = model(name, solver="poisson", batch_size=1, max_iter=40, noise_scale=1e-3, random_state=0)
            assert np.isfinite(chosen.fit(X, y).coef_).all()


class TestCertificates:
    @every_model
    @pytest.mark.parametrize("solver", [*BATCHED, "hidden"])
    @pytest.mark.parametrize(
        "stages",
        [(StandardScaler(fit_mode="noisy"),), (Deduplicator(), StandardScaler(fit_mode="exact"))],
        ids=["noisy", "exact"],
    )
    @pytest.mark.repeated("name", "stages", "solver", keep=3)
    def test_behind_stages_that_move_and_drop_rows(self, three, name, solver, stages):
        if (name, solver, stages[0].__class__) == ("softmax", "hidden", StandardScaler):  # clipped far below its rows
            with pytest.raises(InvalidParameter, match="needs convex losses"):
                fitted(name, solver, three, *stages, epsilon=4.0)
            return
        pipe = fitted(name, solver, three, *stages, epsilon=4.0, **({} if solver == "hidden" else {"max_iter": 4}))
        certificate = pipe.certificate_
        assert certificate.verify(), certificate.verify()
        assert pipe[-1].n_iter_ == certificate["mechanism"]["steps"]
        kinds = [part["kind"] for part in certificate["total"]["parts"]]
        assert kinds == ([] if solver == "epochs" else [solver])
        if stages[-1].fit_mode == "exact":
            assert certificate["steps"][-1]["distance"]["moved"] > 1000

    def test_a_small_rate_costs_less_than_full_batches_with_the_same_noise_on_the_sum(self):
        domain = Domain(n_rows=1000, n_features=3, row_norm=2.0)
        common = {"max_grad_norm": 0.5, "max_iter": 50}
        full = model("logistic", noise_scale=4e-3, **common).privacy_map(domain, ONE)
        for solver in SAMPLED:
            chosen = model("logistic", solver=solver, batch_size=50, noise_scale=0.08, **common)
            loss = chosen.privacy_map(domain, ONE)
            assert loss.epsilon(1e-6) < full.epsilon(1e-6) / 5

    def test_an_experiment_is_called_one(self, three):
        pipe = fitted("logistic", "hidden", three)
        assert any("experimental" in warning for warning in pipe.certificate_["warnings"])
        assert "experimental" in LogisticRegression.__doc__
        assert not fitted("logistic", "poisson", three, max_iter=5).certificate_["warnings"]

    @pytest.mark.parametrize("solver", [*BATCHED, "hidden"])
    def test_more_budget_never_asks_for_fewer_numbers(self, solver):
        """What a plan sets aside for the sampler, it sets aside for the largest budget."""
        for n, d in ((50, 1), (900, 4), (20_000, 30), (10**6, 2)):
            domain = Domain(n_rows=n, n_features=d, row_norm=1.0)
            steps = [
                fit_for("hinge", solver).query_spec(domain, mu).steps for mu in (1e-3, 0.05, 0.2, 0.24, 0.9, 3.0, 20.0)
            ]
            assert all(few <= many for few, many in pairwise(steps))


class TestWhatMayBeAsked:
    DOMAIN = Domain(n_rows=400, n_features=3, row_norm=1.0)

    def refused(self, name, words, **parameters):
        with pytest.raises(InvalidParameter, match=words) as caught:
            make_pipeline(NormClipper(), model(name, **parameters)).plan(self.DOMAIN.but(row_norm=None))
        assert caught.value.fix

    @pytest.mark.parametrize("solver", [*BATCHED, "hidden"])
    def test_a_batch_has_at_most_all_rows(self, solver):
        self.refused("logistic", "more than n_samples = 400", solver=solver, batch_size=401)
        assert model("logistic", solver=solver, batch_size=400, max_grad_norm=3.0).query_spec(self.DOMAIN).steps >= 1

    @pytest.mark.parametrize(("name", "smoothness"), [("logistic", 0.25 * 2), ("squared", 2), ("hinge", 2)])
    def test_a_hidden_pass_needs_short_steps(self, name, smoothness):
        self.refused(name, "at most 2 / smoothness", solver="hidden", learning_rate=2.001 / smoothness)
        longest = model(name, solver="hidden", learning_rate=2 / smoothness).query_spec(self.DOMAIN)
        assert longest.parameters["step_size"] == pytest.approx(2 / smoothness)
        usual = model(name, solver="hidden").query_spec(self.DOMAIN).parameters["step_size"]
        assert usual <= 1 / smoothness * (1 + 1e-12)

    def test_a_hidden_pass_needs_convex_losses(self):
        self.refused("softmax", "convex", solver="hidden", max_grad_norm=1.0)
        assert model("softmax", solver="hidden", max_grad_norm=2.1).query_spec(self.DOMAIN).size == 12

    def test_a_hidden_pass_is_one(self):
        self.refused("logistic", "single pass", solver="hidden", max_iter=2)
        assert model("logistic", solver="hidden", max_iter=1).query_spec(self.DOMAIN).steps == 100

    def test_what_is_not_proved_is_refused_before_any_data(self):
        """Reweighted rows, and batches of fixed size where several rows of a person are replaced."""
        soft = GridDeduplicator(cell_width=0.2, keep="soft")
        for solver in SAMPLED:
            with pytest.raises(UnsupportedOrder, match="weight"):
                make_pipeline(NormClipper(), soft, model("logistic", solver=solver)).plan(
                    Domain(n_rows=400, n_features=3)
                )
        with pytest.raises(UnsupportedOrder, match="one replaced row"):
            make_pipeline(NormClipper(), model("logistic", solver="fixed-size")).plan(
                Domain(n_rows=400, n_features=3, rows_per_unit=2)
            )

    def test_a_solver_that_is_unknown(self):
        with pytest.raises(InvalidParameter, match="poisson"):
            model("hinge", solver="output").query_spec(self.DOMAIN)


class TestNothingPrivateDecides:
    @every_model
    def test_the_divisor_is_public(self, name):
        """Neither how many rows a batch has nor how much they weigh."""
        X, y = np.full((10, 2), 0.5), np.ones(10)
        residuals = MODELS[name]._residuals
        full = ClippedGradient.of(Rows.of(X, y), residuals, 1.0, True)
        half = ClippedGradient.of(Rows(X, y, np.full(10, 0.5)), residuals, 1.0, True)
        theta = np.full((3 if name == "softmax" else 1, 3), 0.1)
        for batch in (np.arange(0), np.arange(3), np.arange(10)):
            here = full.on(batch, 4)(theta)
            np.testing.assert_allclose(here, full(theta) * len(batch) / 4, atol=1e-15)
            np.testing.assert_allclose(half.on(batch, 4)(theta), here / 2, atol=1e-15)

    @batched
    def test_all_that_is_kept_was_released(self, monkeypatch, solver):
        """With the same answer to every question, fits on different people are the same to the last byte."""
        monkeypatch.setattr(
            Noise, "release", lambda self, value, *_: np.linspace(-0.3, 0.7, np.size(value)).reshape(np.shape(value))
        )
        written = set()
        for seed in range(3):
            rng = np.random.default_rng(seed)
            X, y = rng.uniform(-1, 1, (200, 3)), rng.integers(2, size=200)
            pipe = make_pipeline(NormClipper(), fit_for("logistic", solver, max_iter=3), delta=1e-3).fit(X, y)
            written.add(re.sub(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", b"now", pickle.dumps(pipe)))
        assert len(written) == 1

    def test_only_one_iterate_of_a_hidden_pass_is_kept(self, three):
        pipe = fitted("logistic", "hidden", three)
        assert list(pipe.release_) == ["logisticregression.theta"]
        assert pipe[-1].n_iter_ == 100  # not when it stopped

    @pytest.mark.parametrize("solver", ["epochs", "hidden"])
    def test_the_noise_is_what_was_certified(self, solver):
        """On rows of zeros all is noise: a walk of independent steps, as long as the steps made."""
        n, d, scale, found = 40, 60, 0.3, []
        chosen = model(
            "logistic", solver=solver, batch_size=10, noise_scale=scale, learning_rate=0.1, fit_intercept=False
        )
        chosen.set_params(**({"max_iter": 1} if solver == "epochs" else {}), max_coef_norm=1e3)
        rows = Rows.of(np.zeros((n, d)), np.zeros(n))
        question = chosen.query_spec(Domain(n_rows=n, n_features=d, row_norm=1.0))
        for seed in range(300):
            released = chosen.release(rows, question, Noise(seed), scale)
            found.append(released["theta" if solver == "hidden" else "path"].reshape(-1, d)[0] / (0.1 * scale))
        steps = 1.0 if solver == "epochs" else np.mean([1, 2, 3, 4])  # the first model, or one of four
        assert np.mean(np.square(found)) == pytest.approx(steps, rel=0.03 if solver == "epochs" else 0.12)


@pytest.mark.filterwarnings("ignore")  # the checks provoke warnings on purpose; what must not warn, they look for
@pytest.mark.parametrize("solver", [*BATCHED, "hidden"])
@pytest.mark.parametrize("kind", [LogisticRegression, Ridge])
@pytest.mark.repeated("kind", "solver")
def test_scikit_learns_checks_pass_with_every_solver(kind, solver):
    free = {"max_grad_norm": 1e6} if solver == "hidden" else {"max_iter": 30}
    results = check_estimator(kind(solver=solver, noise_scale=1e-3, **free), on_skip=None, on_fail=None)
    assert len(results) >= 40
    failed = {r["check_name"]: repr(r["exception"]) for r in results if r["status"] == "failed"}
    if solver == "hidden":  # it asks for 1000 passes, and one is made
        assert "a single pass" in failed.pop("check_class_weight_classifiers", "a single pass")
    assert not failed


class TestLearningCurves:
    @every_model
    @pytest.mark.parametrize("solver", ["newton", "dpgd", *BATCHED])
    @pytest.mark.repeated("solver")
    def test_a_path_ends_at_the_model(self, three, name, solver):
        X = three[0]
        chosen = model(name, solver=solver, noise_scale=0.1, max_iter=3, batch_size=500, random_state=0)
        chosen.fit(X, answers(name, three))
        predicted = list(chosen.staged_predict(X))
        assert len(predicted) == len(chosen.path_steps_) == len(chosen.coef_path_) == len(chosen.intercept_path_)
        assert chosen.path_steps_[-1] == chosen.n_iter_
        assert chosen.coef_path_.shape[1:] == chosen.coef_.shape
        assert chosen.intercept_path_.shape[1:] == np.shape(chosen.intercept_)
        np.testing.assert_array_equal(predicted[-1], chosen.predict(X))
        if name in ("logistic", "softmax", "hinge"):
            scores = list(chosen.staged_decision_function(X))
            np.testing.assert_array_equal(scores[-1], chosen.decision_function(X))
            assert len(scores) == len(predicted)
            assert set(np.unique(predicted[0])) <= set(chosen.classes_)
        else:
            assert not hasattr(chosen, "staged_decision_function")

    def test_it_climbs_and_stays_at_the_top(self, three):
        X, y = three[0], answers("logistic", three)
        chosen = model("logistic", noise_scale=1e-4, max_iter=60, learning_rate=0.1, random_state=0).fit(X, y)
        losses = [np.mean(np.logaddexp(0, -(2 * y - 1) * s)) for s in chosen.staged_decision_function(X)]
        assert losses[:6] == sorted(losses[:6], reverse=True)
        assert losses[0] > 2 * losses[6]
        assert max(losses[20:]) < 1.01 * min(losses)

    def test_it_is_short_and_travels_with_the_released_twin(self, three):
        pipe = fitted("logistic", "poisson", three, max_iter=250)
        twin = pickle.loads(pickle.dumps(pipe))[-1]
        assert twin.coef_path_.shape == (100, 1, 2)
        np.testing.assert_array_equal(twin.coef_path_[:, 0], pipe.release_["logisticregression.path"][:, :2])
        assert pipe.certificate_["released"]["names"]["logisticregression.path"] == [100, 3]

    def test_what_did_not_leave_has_no_curve(self, three):
        for solver in ("hidden", "output"):
            chosen = model("logistic", solver=solver, noise_scale=0.1)
            for name in ("staged_predict", "staged_decision_function"):
                assert not hasattr(chosen, name)
        chosen = model("logistic", noise_scale=0.1).fit(three[0], answers("logistic", three))
        chosen.set_params(solver="hidden").fit(three[0], answers("logistic", three))
        assert not {"coef_path_", "intercept_path_", "path_steps_"} & set(vars(chosen))


def test_the_budget_that_a_question_is_asked_with_may_be_unknown():
    domain = Domain(n_rows=500, n_features=3, row_norm=1.0)
    for solver in ("auto", "dpgd", *BATCHED, "hidden", "output"):
        chosen = model("logistic", solver=solver)
        assert chosen.query_spec(domain).size == chosen.query_spec(domain, gaussian_mu(1.0, 1e-6)).size == 4


class TestDefault:
    """Newton steps where they may, and where nothing is given that they have no use for."""

    FACTS = Domain(n_rows=100_000, n_features=20, row_norm=9.0, classes=(0, 1))

    @every_model
    @pytest.mark.parametrize(
        ("given", "facts", "distance", "newton"),
        [
            ({}, {}, ONE, True),
            ({"fit_intercept": False, "max_iter": 4, "alpha": 2.0}, {}, Distance(toggled=3), True),
            ({}, {}, Distance(replaced=1, reordered=2), True),
            ({}, {}, Distance(moved=1, radius=1e-3), True),
            ({}, {}, Distance(replaced=1, moved=10**5 - 1, radius=1e-3), False),
            ({}, {"n_rows": 2_500}, Distance(moved=1, radius=1e-3), False),
            ({}, {"n_rows": 100}, ONE, False),
            ({}, {"n_rows": 10**9, "n_features": 400}, ONE, False),
            *(
                ({name: 1}, {}, ONE, False)
                for name in ("max_grad_norm", "max_coef_norm", "learning_rate", "batch_size")
            ),
        ],
    )
    def test_follows_public_facts(self, name, given, facts, distance, newton):
        chosen = model(name)
        chosen.set_params(**{key: value for key, value in given.items() if key in chosen.get_params()})
        classes = (0, 1, 2) if name == "softmax" else (0, 1)
        asked = chosen.query_spec_at(self.FACTS.but(**{"classes": classes, **facts}), distance, 0.2)
        assert (asked.formula == "learning.newton") is newton
        chosen.settle(asked)
        assert chosen.solver == ("newton" if newton else "dpgd")

    @pytest.mark.parametrize(
        ("asking", "n_features", "least"),
        [
            (MODELS["logistic"], 4, 625),
            (MODELS["logistic"], 20, 1500),
            (MODELS["logistic"], 99, 5000),
            (MODELS["ridge"], 20, 10_500),
            (PoissonRegressor((0, 9)), 20, 21_000),
        ],
    )
    def test_from_so_many_rows_on(self, asking, n_features, least):
        """Where few draws would be far off: means that grow exponentially are the most easily so."""
        for n, newton in ((least - 5, False), (least, True)):
            facts = self.FACTS.but(n_rows=n, n_features=n_features)
            assert (asking.query_spec_at(facts, ONE, 0.2).formula == "learning.newton") is newton

    def test_least_squares_of_categories_take_second_moments_where_rows_are_few(self):
        for n, indicators, distance, moments in (
            (20_900, 10, ONE, True),
            (21_100, 10, ONE, False),
            (5_000, 9, ONE, False),
            (5_000, 10, Distance(moved=1, radius=1e-3), False),
        ):
            facts = self.FACTS.but(n_rows=n).with_indicators(tuple(range(indicators)))
            for name in ("squared", "ridge", "logistic"):
                chosen = model(name)
                asked = chosen.query_spec_at(facts, distance, 0.2)
                chosen.settle(asked)
                assert (chosen.solver == "moments") is (moments and name != "logistic")

    @pytest.mark.parametrize(
        ("given", "facts", "distance", "warned"),
        [
            ({}, {}, ONE, False),
            ({}, {}, Distance(replaced=1, moved=10**5 - 1, radius=1e-3), True),
            ({}, {}, Distance(moved=10**5, radius=1e-3), True),
            ({"solver": "dpgd"}, {}, Distance(moved=10**5, radius=1e-3), False),
            ({"max_grad_norm": 2.0}, {}, Distance(moved=10**5, radius=1e-3), False),
            ({}, {"n_rows": 1000}, Distance(moved=1000, radius=1e-3), False),
            ({}, {"n_rows": 4_000}, Distance(moved=1, radius=1e-3), False),
            ({}, {"n_rows": 10**7, "n_features": 400}, ONE, True),
        ],
    )
    def test_where_rows_would_do_and_gradients_are_clipped_it_warns(self, given, facts, distance, warned):
        asked = model("logistic", **given).query_spec_at(self.FACTS.but(**facts), distance, 0.2)
        assert bool(asked.warnings) is warned

    def test_penalties_are_those_of_scikit_learn(self):
        for name, alpha in (("logistic", 1.0), ("softmax", 1.0), ("ridge", 1.0), ("squared", 0.0)):
            domain = self.FACTS.but(classes=(0, 1, 2) if name == "softmax" else (0, 1))
            assert model(name).query_spec_at(domain, ONE, 0.2).parameters["alpha"] == alpha


class TestFewSteps:
    """Where noise is negligible; the first half of them on a sample."""

    @pytest.mark.parametrize(
        ("n_rows", "steps"), [(2000, 20), (20_000, 38), (100_000, 59), (1_000_000, 30), (100_000_000, 30)]
    )
    def test_of_many_rows(self, n_rows, steps):
        domain = Domain(n_rows=n_rows, n_features=20, row_norm=9.0, classes=(0, 1))
        asked = model("logistic", solver="dpgd").query_spec_at(domain, ONE, 0.19)
        assert asked.steps == steps
        assert (asked.share < 1) == (n_rows > 100_000)
        assert (
            asked.steps <= model("logistic", solver="dpgd").query_spec(domain, 0.19).steps
        )  # a plan sets delta aside for these

    def test_not_where_neighbours_are_far(self):
        domain = Domain(n_rows=1_000_000, n_features=20, row_norm=9.0, classes=(0, 1))
        asked = model("logistic", solver="dpgd").query_spec_at(domain, Distance(replaced=200), 0.19)
        assert (asked.steps, asked.share) == (80, 1)

    def test_nor_where_their_number_is_given(self):
        domain = Domain(n_rows=1_000_000, n_features=20, row_norm=9.0, classes=(0, 1))
        assert model("logistic", solver="dpgd", max_iter=80).query_spec_at(domain, ONE, 0.19).share == 1

    def test_a_sample_is_no_dearer_than_all_rows(self):
        """A row with the other label, all rows in another order: the sum over a sample changes by S, and no more."""
        rng = np.random.default_rng(0)
        domain = Domain(n_rows=64, n_features=2, row_norm=1.0, classes=(0, 1))
        asked = model("logistic", fit_intercept=False, max_grad_norm=0.5).query_spec(domain)
        X, y = rng.normal(size=(64, 2)), rng.integers(2, size=64).astype(float)
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        order, labels = rng.permutation(64), y.copy()
        labels[0] = 1 - y[0]
        near, far = Rows.of(X, y), Rows.of(X[order], labels[order])
        moved = []
        for _ in range(200):
            sample = np.flatnonzero(rng.random(64) < 0.3)
            other = np.flatnonzero(np.isin(order, sample))
            here, there = (
                ClippedGradient.of(rows, model("logistic")._residuals, 0.5, False).on(some, 64)(np.zeros((1, 2)))
                for rows, some in ((near, sample), (far, other))
            )
            moved.append(np.linalg.norm(here - there))
        assert 0.95 * asked.sensitivity(domain, ONE) < max(moved) <= asked.sensitivity(domain, ONE)

    def test_of_a_sample_learn_as_much(self):
        """A hundred thousand rows, with a budget that makes noise negligible."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(100_000, 3)) + 0.5
        y = (X @ [1.0, -2.0, 0.5] + 0.3 * rng.normal(size=len(X)) > 0).astype(int)
        steps = [NormClipper(3.0), LogisticRegression((0, 1), solver="dpgd")]
        pipe = make_pipeline(*steps, epsilon=4.0, delta=1e-7, random_state=0)
        assert pipe.plan(Domain(n_rows=len(X), n_features=3)).mechanism.question.share < 0.5
        slow = clone(pipe).set_params(logisticregression__max_iter=80)
        assert pipe.fit(X, y).score(X, y) > slow.fit(X, y).score(X, y) - 0.001
        assert pipe.certificate_.verify()
        assert pipe.certificate_.to_dict()["mechanism"]["steps"] == 30

    @pytest.mark.parametrize(
        "last",
        [PoissonRegressor((0, 30), solver="dpgd"), LogisticRegression((0, 1), solver="lora-fa", rank=2)],
        ids=str,
    )
    def test_on_a_sample_of_a_file_are_those_in_memory(self, last, tmp_path):
        """Also where a model maps the rows itself."""
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, (60_000, 3))
        y = rng.poisson(np.exp(X @ [1.0, -0.5, 0.2])).clip(0, 1 if isinstance(last, LogisticRegression) else None)
        table = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y})
        pq.write_table(table, tmp_path / "rows.parquet")
        pipe = make_pipeline(NormClipper(1.7), last, epsilon=50.0, delta=1e-5, random_state=0)
        read = clone(pipe).fit(tmp_path / "rows.parquet", y="y")[-1]
        assert pipe.plan(Domain(n_rows=60_000, n_features=3)).mechanism.question.share < 1
        np.testing.assert_array_equal(read.coef_, pipe.fit(X, y)[-1].coef_)


class TestSums:
    def test_of_blocks_add_in_any_order(self):
        """4096 rows at a time."""
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(9 * 4096, 4)), rng.integers(2, size=9 * 4096).astype(float)
        order = np.concatenate([np.arange(4096) + 4096 * block for block in rng.permutation(9)])
        theta = rng.normal(size=(1, 5))
        one, other = (
            ClippedGradient.of(Rows.of(X[some], y[some]), model("logistic")._residuals, 1.0, True)(theta)
            for some in (slice(None), order)
        )
        np.testing.assert_array_equal(one, other)
