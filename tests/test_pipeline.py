"""The pipeline as a stranger uses it: plan, fit, predict, certificate, and scikit-learn's habits."""

import copy
import itertools
import math
import pickle
from dataclasses import dataclass

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score

from ppdp import Certificate, Domain, Pipeline, PrivacyLoss, PrivacyRefusal, make_pipeline
from ppdp.exceptions import InvalidParameter, MissingBound
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.privacy.noise import Noise
from ppdp.transformers import PCA, Deduplicator, MeanImputer, MinMaxScaler, NormClipper, RowMap, StandardScaler

COLUMNS = ["age", "dose", "level"]
RANGES = {"age": (0, 100), "dose": (-5, 5), "level": (0, 1)}
N = 1500


@pytest.fixture(scope="module")
def patients():
    """Rows with gaps, repeated records, and an outcome that depends on them."""
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.uniform(20, 90, N), rng.normal(size=N), rng.beta(2, 3, N)])
    y = (X[:, 0] / 50 + X[:, 1] + rng.normal(size=N) > 1.5).astype(int)
    X[rng.random(X.shape) < 0.05] = np.nan
    X[N - 300 :], y[N - 300 :] = X[:300], y[:300]
    return pd.DataFrame(X, columns=COLUMNS), y


@pytest.fixture
def drawn(monkeypatch):
    """Every draw of noise while the test runs."""
    draws = []
    release = Noise.release

    def spy(self, value, noise_scale, bound):
        answer = release(self, value, noise_scale, bound)
        draws.append(Draw(np.array(value, dtype=float), noise_scale, bound, answer))
        return answer

    monkeypatch.setattr(Noise, "release", spy)
    return draws


@dataclass(frozen=True)
class Draw:
    """One answer with noise: what it was, how much noise, the public bound, what left."""

    value: np.ndarray
    noise_scale: float
    bound: float
    answer: np.ndarray


def classifier(**parameters):
    steps = [
        ("range", MinMaxScaler(ranges=RANGES)),
        ("dedup", Deduplicator()),
        ("impute", MeanImputer()),
        ("scale", StandardScaler()),
        ("model", LogisticRegression(classes=(0, 1), max_iter=20)),
    ]
    return Pipeline(steps, **{"epsilon": 5.0, "delta": 1e-5, "random_state": 0, **parameters})


def scaling(**parameters):
    """A pipeline that ends in a transformer."""
    steps = [("range", MinMaxScaler(ranges=RANGES)), ("impute", MeanImputer()), ("scale", StandardScaler())]
    return Pipeline(steps, **{"epsilon": 5.0, "delta": 1e-5, "random_state": 0, **parameters})


def fitted_state(pipe):
    return {name for name in vars(pipe) if name.endswith("_")}


class TestPlan:
    def test_needs_no_data_and_says_so(self):
        pipe = classifier()
        plan = pipe.plan(Domain(n_rows=N, n_features=3))
        assert repr(plan).splitlines()[0] == "PLAN: nothing has been certified"
        assert not fitted_state(pipe)
        with pytest.raises(NotFittedError):
            pipe.predict(np.zeros((1, 3)))

    def test_needs_the_size_of_the_data(self):
        with pytest.raises(MissingBound, match=r"n_rows.*Domain\(n_rows="):
            classifier().plan()

    def test_the_pipelines_own_domain_is_used(self):
        domain = Domain(n_rows=N, n_features=3)
        assert repr(classifier(domain=domain).plan()) == repr(classifier().plan(domain))

    def test_fit_carries_out_the_plan(self, patients, drawn):
        plan = classifier().plan(Domain(n_rows=N, n_features=3))
        pipe = classifier().fit(*patients)
        planned = [r.noise_scale for r in plan.releases] + plan.mechanism.question.steps * [plan.mechanism.noise_scale]
        assert [draw.noise_scale for draw in drawn] == planned
        assert [r["noise_scale"] for r in pipe.certificate_["releases"]] == [r.noise_scale for r in plan.releases]
        assert pipe.certificate_["mechanism"]["noise_scale"] == plan.mechanism.noise_scale
        assert all((np.abs(draw.value) <= draw.bound).all() for draw in drawn)

    def test_noise_has_the_planned_standard_deviation(self, patients, drawn):
        for _ in range(100):
            classifier(random_state=None).fit(*patients)
        errors = np.concatenate([((d.answer - d.value) / d.noise_scale).ravel() for d in drawn])
        assert len(errors) > 5000
        assert errors.std() == pytest.approx(1, abs=6 / math.sqrt(2 * len(errors)))
        assert abs(errors.mean()) < 6 / math.sqrt(len(errors))

    @pytest.mark.parametrize("gate", ["auto", None])
    @pytest.mark.parametrize("delta", [1e-8, 1e-4])
    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
    def test_the_budget_is_kept_and_used(self, epsilon, delta, gate):
        imputer = MeanImputer(max_missing=5, statistics="exact")
        steps = NormClipper(), imputer, PCA(1, statistics="exact"), GaussianMechanism()
        plan = make_pipeline(*steps, epsilon=epsilon, delta=delta, gate=gate).plan(Domain(n_rows=5000, n_features=4))
        assert bool(plan.gate) == (gate == "auto")
        rest = delta - plan.allowance
        assert plan.gate is None or (plan.gate.delta <= rest and not plan.gate.adding)
        assert 0.999 * epsilon < PrivacyLoss(plan.loss.mu).epsilon(rest) <= epsilon

    def test_shares_of_the_budget_can_be_set(self):
        steps = NormClipper(), StandardScaler(statistics="noisy"), PCA(1, statistics="exact"), GaussianMechanism()
        pipe = make_pipeline(*steps, epsilon=2.0, budget={"gate": 0.25, "release": 0.5})
        plan = pipe.plan(Domain(n_rows=5000, n_features=4))
        total = plan.loss.mu**2
        assert plan.gate.mu**2 / total == pytest.approx(0.25, rel=1e-4)
        assert plan.releases[0].mu ** 2 / total == pytest.approx(0.5, rel=1e-4)
        assert plan.mechanism.loss.mu**2 / total == pytest.approx(0.25, rel=1e-4)

    @pytest.mark.parametrize("budget", [{"gates": 0.1}, {"gate": 0}, {"gate": 2}, {"release": math.nan}, "half", 0.1])
    def test_impossible_shares_are_refused_whatever_the_route(self, budget):
        for stages in [(NormClipper(),), (NormClipper(), StandardScaler(), PCA(1, statistics="exact"))]:
            pipe = make_pipeline(*stages, GaussianMechanism(), budget=budget)
            with pytest.raises(InvalidParameter, match=r"budget|share"):
                pipe.plan(Domain(n_rows=5000, n_features=4))

    @pytest.mark.parametrize(
        ("n", "epsilon", "missing", "expected"),
        [
            (3000, 1.0, 0.9, ("noisy", "noisy")),
            (3000, 0.2, 2, ("exact", "noisy")),
            (3000, 0.1, 2, ("exact", "exact")),
        ],
    )
    def test_auto_takes_the_offered_route_of_least_noise(self, n, epsilon, missing, expected):
        def plan(impute="auto", scale="auto"):
            stages = MeanImputer(max_missing=missing, statistics=impute), StandardScaler(statistics=scale)
            # assumed, since no data could pass a gate that counts so few rows with gaps
            pipe = make_pipeline(NormClipper(), *stages, GaussianMechanism(), epsilon=epsilon, gate=None)
            return pipe.plan(Domain(n_rows=n, n_features=4))

        chosen = plan()
        offered = {}
        for ways in itertools.product(["exact", "noisy"], repeat=2):
            label = "meanimputer {}, standardscaler {}".format(*ways)
            (row,) = [a for a in chosen.alternatives if a.route == label]
            if row.status != "not offered":
                offered[ways] = plan(*ways).mechanism.noise_scale
                assert row.noise_scale == offered[ways]
            else:
                assert row.reason
        best = min(offered, key=offered.get)
        assert (chosen.steps[1].way.name, chosen.steps[2].way.name) == best == expected
        assert chosen.mechanism.noise_scale == offered[best]
        assert [a.status for a in chosen.alternatives].count("chosen") == 1

    def test_more_rows_per_person_need_as_much_more_noise(self):
        def noise(k):
            domain = Domain(n_rows=5000, n_features=3, rows_per_unit=k)
            return make_pipeline(NormClipper(), GaussianMechanism()).plan(domain).mechanism.noise_scale

        assert noise(5) == pytest.approx(5 * noise(1), rel=1e-6)

    def test_numbers_of_numpy_are_numbers(self):
        domain = Domain(n_rows=np.int64(N), n_features=3, row_norm=np.float32(1.0))
        pipe = make_pipeline(GaussianMechanism(), epsilon=np.int64(2), delta=np.float32(1e-5), random_state=np.int64(0))
        assert pipe.plan(domain).mechanism.noise_scale > 0
        assert pipe.set_params(domain=domain).fit(np.zeros((N, 3))).certificate_.verify()


class TestCertificate:
    def test_holds_and_can_be_checked_without_the_data(self, patients):
        for pipe in (classifier(), scaling(), classifier(random_state=None)):
            certificate = pipe.fit(patients[0], patients[1]).certificate_
            assert certificate.verify()
            assert Certificate.from_json(certificate.to_json()) == certificate
            assert (certificate.epsilon, certificate.delta) == (5.0, 1e-5)
            assert certificate.epsilon_at(1e-5) <= 5.0 + 1e-9

    def test_first_word(self, patients):
        X, y = patients
        assert classifier(random_state=None).fit(X, y).certificate_.status == "UNCONDITIONAL"
        assert classifier().fit(X, y).certificate_.status == "SEEDED"
        read = classifier(random_state=None).set_params(model__classes=None).fit(X, y)
        assert read.certificate_.status == "CONDITIONAL"
        assert any("read from y" in reason for reason in read.certificate_["reasons"])
        assert str(read.certificate_).startswith("CONDITIONAL")

    def test_tells_where_each_public_fact_comes_from(self, patients):
        domain = Domain(n_rows=N, classes=(0, 1))
        facts = classifier(domain=domain).set_params(model__classes=None).fit(*patients).certificate_["facts"]
        origins = {fact["name"]: fact["origin"] for fact in facts}
        assert origins["n_rows"] == "declared"
        assert origins["classes"] == "declared"
        assert origins["n_features"] == "shape of X"
        assert origins["feature_names"] == "schema of X"
        assert "range" in origins["row_norm"]

    def test_invalid_values_are_covered_only_if_repaired(self, patients):
        for invalid, covered in [("error", False), ("repair", True)]:
            text = " ".join(classifier(invalid=invalid).fit(*patients).certificate_["not_covered"])
            assert ("exceptions raised on invalid values" not in text) == covered

    def test_names_the_data(self, patients):
        assert classifier(dataset="clinic 4").fit(*patients).certificate_["dataset"] == "clinic 4"

    def test_what_cannot_be_certified_is_not_handed_out(self, patients, monkeypatch):
        def fail(*_, **__):
            raise TypeError("a certificate cannot hold this")

        monkeypatch.setattr("ppdp.pipeline.issue", fail)
        pipe = classifier()
        with pytest.raises(TypeError):
            pipe.fit(*patients)
        assert fitted_state(pipe) <= {"n_features_in_", "feature_names_in_"}

    def test_a_fit_that_fails_leaves_none(self, patients):
        X, y = patients
        pipe = classifier().fit(X, y)
        with pytest.raises(ValueError, match="delta"):
            pipe.set_params(delta=0.5).fit(X, y)
        assert not hasattr(pipe, "certificate_")
        assert not hasattr(pipe, "release_")


class TestRelease:
    def test_holds_what_left_the_rows_and_nothing_else(self, patients, drawn):
        pipe = classifier().fit(*patients)
        assert list(pipe.release_) == ["impute.means", "scale.squares", "model.theta"]
        np.testing.assert_array_equal(pipe.release_["impute.means"], drawn[0].answer)
        np.testing.assert_array_equal(pipe.release_["scale.squares"], drawn[1].answer)
        assert pipe.release_.sha256 == pipe.certificate_["released"]["sha256"]
        assert pipe.release_.noise_scale["impute.means"] == drawn[0].noise_scale
        with pytest.raises(ValueError, match="read-only"):
            pipe.release_["model.theta"][0] = 0

    def test_the_same_seed_gives_the_same_release(self, patients):
        first, second = classifier().fit(*patients), classifier().fit(*patients)
        assert first.release_.sha256 == second.release_.sha256
        assert first.release_.sha256 != classifier(random_state=1).fit(*patients).release_.sha256
        state = classifier(random_state=np.random.RandomState(3)).fit(*patients)
        assert state.certificate_.status == "SEEDED"

    def test_without_a_seed_every_release_is_another(self, patients):
        hashes = {classifier(random_state=None).fit(*patients).release_.sha256 for _ in range(3)}
        assert len(hashes) == 3

    def test_mean_of_the_rows(self, drawn):
        X = np.random.default_rng(0).normal(size=(2000, 3)) * [3, 1, 0.1]
        pipe = make_pipeline(NormClipper(2.0), GaussianMechanism(), epsilon=10.0, delta=1e-5, random_state=0).fit(X)
        clipped = X * np.minimum(1, 2 / np.linalg.norm(X, axis=1))[:, None]
        np.testing.assert_allclose(drawn[0].value, clipped.mean(axis=0), atol=1e-12)
        assert np.abs(pipe[-1].mean_ - clipped.mean(axis=0)).max() < 6 * drawn[0].noise_scale
        assert pipe[-1].present_ == 1.0

    def test_mean_of_the_distinct_rows(self):
        distinct = np.random.default_rng(0).uniform(-0.5, 0.5, size=(500, 3))
        X = distinct[np.arange(2000) % 500]
        pipe = make_pipeline(NormClipper(), Deduplicator(), GaussianMechanism(), epsilon=20.0, delta=1e-5).fit(X)
        noise = pipe.certificate_["mechanism"]["noise_scale"]
        assert pipe[-1].present_ == pytest.approx(0.25, abs=6 * noise)
        assert np.abs(pipe[-1].mean_ - distinct.mean(axis=0)).max() < 12 * noise / 0.25
        plain = make_pipeline(NormClipper(), GaussianMechanism(), epsilon=20.0, delta=1e-5)
        planned = plain.plan(Domain(n_rows=2000, n_features=3)).mechanism.noise_scale
        assert noise == pytest.approx(planned, rel=1e-5)  # the share of rows that are present is free

    def test_one_copy_of_a_repeated_row_counts(self, drawn):
        X = np.array([[0.5]] * 1999 + [[-0.5]])
        make_pipeline(NormClipper(), Deduplicator(), GaussianMechanism(), delta=1e-5).fit(X)
        total, share = drawn[0].value
        assert total == pytest.approx(0.0, abs=1e-12)
        assert share / math.sqrt(3) == pytest.approx(2 / 2000)


class TestTwins:
    def test_predict_with_released_values(self, patients):
        pipe = classifier().fit(*patients)
        np.testing.assert_array_equal(pipe["impute"].mean_, np.clip(pipe.release_["impute.means"], -1, 1))
        np.testing.assert_array_equal(pipe["model"].coef_[0], pipe.release_["model.theta"][:3])
        np.testing.assert_array_equal(pipe["model"].intercept_, pipe.release_["model.theta"][3:])
        assert pipe["model"].n_iter_ == 20
        assert pipe["model"] is pipe.named_steps["model"] is pipe.named_steps.model is pipe[-1]

    def test_are_fitted_and_do_what_the_pipeline_does(self, patients):
        X, y = patients
        pipe = classifier().fit(X, y)
        rows = X.head(50)
        for name in ("range", "impute", "scale"):
            rows = pipe[name].transform(rows if name == "range" else pd.DataFrame(rows, columns=COLUMNS))
        np.testing.assert_allclose(pipe["model"].predict_proba(rows), pipe.predict_proba(X.head(50)))

    def test_steps_stay_as_configured(self, patients):
        pipe = classifier()
        before = {name: repr(value) for name, value in pipe.get_params().items()}
        steps = list(pipe.steps)
        assert pipe["model"] is steps[-1][1]
        pipe.fit(*patients)
        assert {name: repr(value) for name, value in pipe.get_params().items()} == before
        assert all(now is then for (_, now), (_, then) in zip(pipe.steps, steps, strict=True))
        assert not any(name.endswith("_") for _, step in steps for name in vars(step))
        assert pipe["model"] is not steps[-1][1]


class TestPrediction:
    def test_agree_with_each_other(self, patients):
        X, y = patients
        pipe = classifier(epsilon=20.0).fit(X, y)
        proba, side, labels = pipe.predict_proba(X), pipe.decision_function(X), pipe.predict(X)
        np.testing.assert_allclose(proba.sum(axis=1), 1)
        np.testing.assert_array_equal(labels, (side > 0).astype(int))
        np.testing.assert_allclose(proba[:, 1], 1 / (1 + np.exp(-side)))
        assert pipe.score(X, y) == accuracy_score(y, labels) > 0.75
        np.testing.assert_array_equal(pipe.classes_, [0, 1])

    def test_labels_come_back_as_they_were_declared(self, patients):
        X, y = patients
        words = np.where(y == 1, "dead", "alive")
        for classes in [("alive", "dead"), np.array(["alive", "dead"]), None]:
            pipe = classifier().set_params(model__classes=classes).fit(X, words)
            assert set(pipe.predict(X)) <= {"alive", "dead"}
            np.testing.assert_array_equal(pipe.predict(X) == "dead", classifier().fit(X, y).predict(X) == 1)
        numbers = classifier().set_params(model__classes=np.array([0, 1])).fit(X, y)
        np.testing.assert_array_equal(numbers.predict(X), classifier().fit(X, y).predict(X))

    def test_one_row_is_enough(self, patients):
        X, y = patients
        pipe = classifier().fit(X, y)
        together = pipe.predict_proba(X.head(5))
        alone = np.vstack([pipe.predict_proba(X.iloc[[i]]) for i in range(5)])
        np.testing.assert_allclose(alone, together)

    def test_copies_predict_the_same(self, patients):
        X, y = patients
        pipe = classifier(random_state=None).fit(X, y)
        for again in (pickle.loads(pickle.dumps(pipe)), copy.deepcopy(pipe)):
            np.testing.assert_array_equal(again.predict_proba(X), pipe.predict_proba(X))
            assert again.certificate_ == pipe.certificate_

    def test_what_the_last_step_cannot_do_is_not_there(self):
        mean = make_pipeline(NormClipper(), GaussianMechanism())
        assert not any(hasattr(mean, name) for name in ("predict", "predict_proba", "score", "transform"))
        assert hasattr(scaling(), "transform")
        assert not hasattr(scaling(), "predict")

    def test_private_rows_above_the_declared_norm_are_clipped_at_prediction_too(self, patients):
        pipe = make_pipeline(
            LogisticRegression(classes=(0, 1)), domain=Domain(row_norm=1.0), random_state=0, delta=1e-5
        )
        X = patients[0].fillna(0).to_numpy()
        pipe.fit(X, patients[1])
        clipped = X / np.maximum(1, np.linalg.norm(X, axis=1))[:, None]
        np.testing.assert_allclose(pipe.decision_function(X), pipe.decision_function(clipped))


class TestEndsInATransformer:
    def test_releases_its_statistics(self, patients):
        pipe = scaling().fit(patients[0])
        assert list(pipe.release_) == ["impute.means", "scale.squares"]
        assert [step["way"] for step in pipe.certificate_["steps"]] == ["public", "noisy", "noisy"]
        assert pipe.certificate_["mechanism"] is None
        out = pipe.transform(patients[0])
        assert out.shape == patients[0].shape
        assert np.isfinite(out).all()
        np.testing.assert_array_equal(out, scaling().fit_transform(patients[0]))

    def test_an_exact_way_cannot_be_forced(self, patients):
        with pytest.raises(ValueError, match="statistics must be"):
            scaling().set_params(scale__statistics="exact").fit(patients[0])

    @pytest.mark.parametrize(("container", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
    def test_containers(self, patients, container, kind):
        X = patients[0].set_index(np.arange(N) + 10)
        before = scaling().set_output(transform=container).fit(X).transform(X)
        after = scaling().fit(X).set_output(transform=container).transform(X)
        for out in (before, after):
            assert isinstance(out, kind)
            assert list(out.columns) == COLUMNS
        if container == "pandas":
            assert (before.index == X.index).all()
        np.testing.assert_array_equal(np.asarray(before), scaling().fit_transform(X))

    def test_feature_names(self, patients):
        X = patients[0]
        assert list(scaling().fit(X).get_feature_names_out()) == COLUMNS
        assert list(scaling().set_params(range__ranges=(0, 1)).fit(X.to_numpy()).get_feature_names_out()) == [
            "x0",
            "x1",
            "x2",
        ]
        narrow = RowMap(lambda X: X[:, :2], out_ranges={"a": (0, 100), "b": (0, 1)})
        pipe = make_pipeline(narrow, StandardScaler(), delta=1e-5, epsilon=20.0).set_output(transform="pandas")
        assert list(pipe.fit_transform(X.fillna(0)).columns) == list(pipe.get_feature_names_out()) == ["a", "b"]
        rows = X.fillna(0).to_numpy().tolist()
        assert list(clone(pipe).fit_transform(rows).columns) == ["a", "b"]


class TestContainers:
    @pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas, pa.RecordBatch.from_pandas])
    def test_frames_give_the_same_release(self, patients, make):
        X, y = patients
        expected = classifier().fit(X, y)
        pipe = classifier().fit(make(X), y)
        assert pipe.release_.sha256 == expected.release_.sha256
        assert list(pipe.feature_names_in_) == COLUMNS
        np.testing.assert_array_equal(pipe.predict_proba(make(X)), expected.predict_proba(X))

    def test_arrays_and_lists_give_the_same_release(self, patients):
        X, y = patients
        expected = classifier().fit(X, y).release_.sha256
        table = list(RANGES.values())
        for rows in (X.to_numpy(), np.asfortranarray(X), X.to_numpy().tolist(), X.to_numpy(dtype=object)):
            pipe = classifier().set_params(range__ranges=table).fit(rows, y.tolist())
            assert pipe.release_.sha256 == expected
            assert not hasattr(pipe, "feature_names_in_")

    @pytest.mark.parametrize("make", [pd.Series, pd.Categorical, pl.Series, list, np.float64, pa.array, np.bool_])
    def test_labels(self, patients, make):
        X, y = patients
        assert classifier().fit(X, make(y)).release_.sha256 == classifier().fit(X, y).release_.sha256

    def test_nullable_columns(self, patients):
        X, y = patients
        expected = classifier().fit(X, y).release_.sha256
        assert classifier().fit(X.convert_dtypes(), y).release_.sha256 == expected


class TestParameters:
    def test_nested(self):
        pipe = classifier()
        params = pipe.get_params()
        assert params["model__max_iter"] == 20
        assert params["impute"] is pipe["impute"]
        assert "model__max_iter" not in pipe.get_params(deep=False)
        pipe.set_params(model__max_iter=7, epsilon=2.0, scale=NormClipper())
        assert (pipe["model"].max_iter, pipe.epsilon, type(pipe["scale"])) == (7, 2.0, NormClipper)
        assert pipe.set_params(steps=[("only", NormClipper())], only__max_norm=3.0)["only"].max_norm == 3.0

    @pytest.mark.parametrize("name", ["nothing", "nothing__clip", "model__nothing"])
    def test_unknown_names_are_refused(self, name):
        with pytest.raises(ValueError, match="Invalid parameter"):
            classifier().set_params(**{name: 1})

    @pytest.mark.parametrize("steps", [None, [], 5, "abc", [("a",)], [("a", None)], [("a", NormClipper)], [(1, 2)]])
    def test_impossible_steps_are_refused_by_fit_and_by_nothing_before(self, steps):
        pipe = Pipeline(steps)
        assert pipe.get_params()["steps"] is steps
        assert not hasattr(clone(pipe).set_params(epsilon=3.0).set_output(transform="pandas"), "predict")
        assert isinstance(repr(pipe), str)
        assert isinstance(pipe._repr_html_(), str)
        assert len(pipe.named_steps) <= 1
        with pytest.raises(InvalidParameter):
            pipe.fit(np.zeros((10, 2)))

    def test_clone_copies_parameters_and_nothing_fitted(self, patients):
        pipe = classifier().fit(*patients)
        other = clone(pipe)
        assert not fitted_state(other)
        assert repr(other) == repr(pipe)
        assert other.steps[0][1] is not pipe.steps[0][1]

    def test_slices_are_pipelines(self):
        pipe = classifier(epsilon=7.0)
        head = pipe[:-1]
        assert isinstance(head, Pipeline)
        assert (len(pipe), len(head), head.epsilon) == (5, 4, 7.0)
        assert [name for name, _ in head.steps] == ["range", "dedup", "impute", "scale"]
        assert pipe[0] is pipe["range"]
        with pytest.raises(KeyError):
            pipe["nothing"]

    def test_names_made_from_classes(self):
        pipe = make_pipeline(NormClipper(), StandardScaler(), NormClipper(), GaussianMechanism(), epsilon=3.0)
        names = [name for name, _ in pipe.steps]
        assert names == ["normclipper-1", "standardscaler", "normclipper-2", "gaussianmechanism"]
        assert pipe.epsilon == 3.0

    def test_diagram(self, patients):
        pipe = classifier()
        assert "MeanImputer" in pipe._repr_html_()
        html = pipe.fit(*patients)._repr_mimebundle_()["text/html"]
        assert "MeanImputer" in html
        assert "SEEDED" in html


def conditional(**parameters):
    """Three conditions, and two releases that nothing before the gate needs."""
    steps = [
        ("range", MinMaxScaler(ranges=(-1, 1))),
        ("impute", MeanImputer(max_missing=1500, floor=False, statistics="exact")),
        ("scale", StandardScaler(statistics="exact")),
        ("pca", PCA(1, statistics="exact")),
        ("model", LogisticRegression(classes=(0, 1), max_iter=5)),
    ]
    return Pipeline(steps, **{"epsilon": 20.0, "delta": 1e-6, "random_state": 0, **parameters})


@pytest.fixture(scope="module")
def correlated():
    rng = np.random.default_rng(1)
    n = 15000
    X = np.clip((rng.normal(size=(n, 1)) + 0.2 * rng.normal(size=(n, 3))) / 3, -1, 1)
    y = (X[:, 0] > 0).astype(int)
    X[rng.choice(n, 1000), rng.integers(0, 3, 1000)] = np.nan
    return X, y


def spoiled(correlated, how):
    """Data on which one of the conditions fails, or nearly does."""
    X, y = correlated[0].copy(), correlated[1]
    if how == "missing":
        X[: len(X) // 3, 0] = np.nan
    elif how == "just not missing":
        complete = np.flatnonzero(~np.isnan(X).any(axis=1))
        X[complete[: 1498 - (len(X) - len(complete))], 0] = np.nan
    elif how == "observed":
        X[: 2 * len(X) // 3, 1] = np.nan
    elif how == "eigengap":
        X = np.random.default_rng(0).uniform(-1, 1, X.shape)
    return X, y


SPOILED = ["missing", "just not missing", "observed", "eigengap"]
UNCONDITIONAL = {"impute__max_missing": None, "impute__floor": True, "impute__statistics": "noisy"}


class TestGate:
    def test_plan(self):
        plan = conditional().plan(Domain(n_rows=15000, n_features=3))
        assert [c.name for _, c in plan.conditions] == ["missing", "observed", "eigengap"]
        assert plan.gate.needed_margin() > plan.gate.threshold > 1
        assert "gate: 3 condition(s)" in repr(plan)

    def test_passes_where_all_conditions_hold_by_far(self, correlated, drawn):
        pipe = conditional(random_state=None).fit(*correlated)
        certificate = pipe.certificate_
        assert certificate.status == "UNCONDITIONAL"
        assert certificate["gate"]["noise_scale"] in [draw.noise_scale for draw in drawn]
        assert all(c["tested"] for step in certificate["steps"] for c in step["conditions"])
        assert certificate.verify()
        assert pipe.score(*correlated) > 0.7

    def test_stands_in_front_of_everything(self, correlated, drawn):
        certificate = conditional().fit(*correlated).certificate_
        releases = [release["noise_scale"] for release in certificate["releases"]]
        assert [draw.noise_scale for draw in drawn[:3]] == [certificate["gate"]["noise_scale"], *releases]
        assert {draw.noise_scale for draw in drawn[3:]} == {certificate["mechanism"]["noise_scale"]}
        assert len(drawn) == 3 + 5
        assert drawn[0].value.size == 1
        assert certificate["gate"]["rule"] == "max"

    def test_only_what_shapes_the_tested_rows_comes_before_it_and_then_deltas_add(self, correlated, drawn):
        certificate = conditional().set_params(scale__statistics="noisy", **UNCONDITIONAL).fit(*correlated).certificate_
        means, squares = certificate["releases"]
        order = [squares["noise_scale"], certificate["gate"]["noise_scale"]]
        assert [draw.noise_scale for draw in drawn[1:3]] == order
        assert drawn[0].noise_scale == means["noise_scale"]
        assert certificate["gate"]["rule"] == "sum"
        assert certificate["total"]["failure"] == certificate["gate"]["delta"] < 1e-6
        assert certificate.loss.epsilon(1e-6 - certificate["total"]["allowance"]) <= 20.0
        assert certificate.verify()

    @pytest.mark.parametrize("how", SPOILED)
    def test_on_refusal_nothing_else_is_released(self, correlated, drawn, how):
        gate = conditional().plan(Domain(n_rows=15000, n_features=3)).gate
        pipe = conditional()
        with pytest.raises(PrivacyRefusal):
            pipe.fit(*spoiled(correlated, how))
        (draw,) = drawn
        assert draw.noise_scale == gate.noise_scale
        assert draw.value < gate.threshold
        assert fitted_state(pipe) <= {"n_features_in_"}

    def test_the_refusal_does_not_tell_which_condition_failed(self, correlated):
        messages = set()
        for how in SPOILED:
            with pytest.raises(PrivacyRefusal) as refusal:
                conditional().fit(*spoiled(correlated, how))
            messages.add((str(refusal.value), refusal.value.stage, refusal.value.fix))
        assert len(messages) == 1

    @pytest.mark.parametrize("how", SPOILED)
    def test_without_a_gate_the_certificate_is_conditional(self, correlated, drawn, how):
        certificate = conditional(gate=None, random_state=None).fit(*spoiled(correlated, how)).certificate_
        assert certificate.status == "CONDITIONAL"
        assert certificate["gate"] is None
        assert len(certificate["reasons"]) == 3
        assert len(drawn) == 2 + 5
        assert certificate.verify()

    def test_pays_for_itself(self, correlated):
        certificate = conditional().fit(*correlated).certificate_
        parts = [certificate["gate"]["mu"], certificate["mechanism"]["mu"]]
        parts += [release["mu"] for release in certificate["releases"]]
        assert certificate.mu == pytest.approx(math.hypot(*parts), rel=1e-9)


class TestOddData:
    @pytest.mark.parametrize("column", [np.full(N, np.nan), np.full(N, 3.0), np.zeros(N), np.full(N, 1e9)])
    @pytest.mark.parametrize("statistics", ["exact", "noisy"])
    def test_constant_and_all_missing_columns(self, patients, column, statistics):
        X, y = patients
        pipe = classifier(epsilon=20.0).set_params(impute__statistics=statistics, scale__statistics=statistics)
        pipe.fit(X.assign(dose=column), y)
        assert pipe.certificate_.verify()
        assert np.isfinite(pipe.predict_proba(X.assign(dose=column))).all()

    def test_all_rows_equal_and_all_labels_equal(self):
        X = np.full((N, 3), 0.5)
        pipe = classifier().set_params(range__ranges=(0, 1)).fit(X, np.zeros(N, dtype=int))
        assert pipe.certificate_.verify()
        assert set(pipe.predict(X)) <= {0, 1}

    @pytest.mark.parametrize("value", [1.7e308, -1.7e308, 1e200, 5e-324, -0.0])
    @pytest.mark.parametrize("first", [NormClipper(), MinMaxScaler(ranges=(-1, 1))])
    def test_extreme_values(self, value, first):
        X = np.zeros((N, 2))
        X[0] = value
        pipe = make_pipeline(first, Deduplicator(), StandardScaler(), GaussianMechanism(), epsilon=20.0, delta=1e-5)
        assert np.isfinite(pipe.fit(X)[-1].mean_).all()
