"""The pipeline as a stranger uses it: plan, fit, certificate, release, and scikit-learn's parameters."""

import itertools
import math

import clinic
import numpy as np
import pytest
from clinic import N, classifier, fitted_state, scaling
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from ppdp import Certificate, Domain, Pipeline, PrivacyLoss, make_pipeline
from ppdp.exceptions import InvalidParameter, MissingBound
from ppdp.mechanisms import GaussianMechanism
from ppdp.pipeline.execute import execute
from ppdp.pipeline.fit import prepare_rows
from ppdp.privacy.noise.sampler import Noise
from ppdp.transformers import PCA, Deduplicator, MeanImputer, NormClipper, StandardScaler

# pytest finds a fixture by its name in the test's own module
patients, drawn = clinic.patients, clinic.drawn


@pytest.mark.parametrize("invalid", ["error", "repair"])
def test_no_run_writes_over_what_it_was_given(patients, invalid):
    """Only a fit over what the entrance copied, as it does of columns, which nobody else has."""
    (X, y), pipe = patients, classifier(on_invalid=invalid, random_state=0)
    given = X.copy()
    plan, rows = prepare_rows(pipe, X, y)
    before = rows.X.copy()
    first, second = (execute(plan, rows, Noise(0)).released for _ in range(2))
    assert np.array_equal(rows.X, before, equal_nan=True)
    assert all(np.array_equal(first[name], second[name]) for name in first)
    pipe.fit(X, y)
    assert X.equals(given)


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
        planned.append(plan.diagnostics.noise_scale)
        assert [draw.noise_scale for draw in drawn] == planned
        assert [r["noise_scale"] for r in pipe.certificate_["releases"]] == [r.noise_scale for r in plan.releases]
        assert pipe.certificate_["mechanism"]["noise_scale"] == plan.mechanism.noise_scale
        assert all((np.abs(draw.value) <= draw.bound).all() for draw in drawn)

    @pytest.mark.parametrize("gate", ["auto", None])
    @pytest.mark.parametrize("delta", [1e-8, 1e-4])
    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
    def test_the_budget_is_kept_and_used(self, epsilon, delta, gate):
        imputer = MeanImputer(max_missing=5, fit_mode="exact")
        steps = NormClipper(), imputer, PCA(1, fit_mode="exact"), GaussianMechanism()
        plan = make_pipeline(*steps, epsilon=epsilon, delta=delta, gate=gate).plan(Domain(n_rows=5000, n_features=4))
        assert bool(plan.gate) == (gate == "auto")
        rest = delta - plan.allowance
        assert plan.gate is None or (plan.gate.delta <= rest and not plan.gate.adding)
        assert 0.999 * epsilon < PrivacyLoss(plan.loss.mu).epsilon(rest) <= epsilon

    @pytest.mark.parametrize(
        ("n", "epsilon", "missing", "expected"),
        [
            (3000, 1.0, 0.9, ("noisy", "noisy")),
            (3000, 0.2, 2, ("exact", "noisy")),
            (3000, 0.1, 2, ("exact", "noisy")),  # imprecise, but the others drown
        ],
    )
    def test_auto_takes_the_offered_route_of_least_noise(self, n, epsilon, missing, expected):
        def plan(impute="auto", scale="auto"):
            stages = MeanImputer(max_missing=missing, fit_mode=impute), StandardScaler(fit_mode=scale)
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
            text = " ".join(classifier(on_invalid=invalid).fit(*patients).certificate_["not_covered"])
            assert ("exceptions raised on invalid values" not in text) == covered

    def test_names_the_data(self, patients):
        assert classifier(dataset="clinic 4").fit(*patients).certificate_["dataset"] == "clinic 4"

    def test_what_cannot_be_certified_is_not_handed_out(self, patients, monkeypatch):
        def fail(*_, **__):
            raise TypeError("a certificate cannot hold this")

        monkeypatch.setattr("ppdp.pipeline.certify.draft_record", fail)
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
        assert list(pipe.release_) == ["impute.means", "scale.squares", "model.theta", "model.errors", "model.path"]
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

    def test_a_representation_always_shows_the_guarantee(self):
        steps = [("mean", GaussianMechanism())]
        assert repr(Pipeline(steps)) == "Pipeline(steps=[('mean', GaussianMechanism())], epsilon=1.0, delta=1e-06)"
        assert repr(Pipeline(steps, epsilon=2.0)).endswith(
            "epsilon=2.0, steps=[('mean', GaussianMechanism())], delta=1e-06)"
        )
        with config_context(print_changed_only=False):
            assert repr(Pipeline(steps)).count("epsilon=") == 1

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
        for ask in (pipe.__getitem__, pipe.named_steps.__getitem__):
            with pytest.raises(KeyError, match=r"'scale'.* or pipe"):
                ask("nothing")

    def test_what_a_step_has_is_named_where_somebody_asks_the_pipeline(self, patients):
        pipe = classifier().fit(*patients)
        for asked, where in {"coef_": "pipe[-1].coef_", "transform": "pipe[:-1].transform", "nothing_": None}.items():
            assert not hasattr(pipe, asked)
            with pytest.raises(AttributeError, match="has no attribute") as missing:
                getattr(pipe, asked)
            assert (where or "") in str(missing.value)
            assert ("Fix: " in str(missing.value)) == (where is not None)

    def test_what_only_a_fit_makes_is_told_of_before_it_and_of_steps_that_were_passed(self, patients):
        pipe = classifier()
        for asked in ("certificate_", "release_", "coef_"):
            with pytest.raises(AttributeError, match=r"Fix: fit\(X, y\) first"):
                getattr(pipe, asked)
        pipe.fit(*patients)
        for (name, step), asked in zip(pipe.steps[-2:], ("mean_", "coef_")):
            assert hasattr(pipe[name], asked)
            with pytest.raises(AttributeError, match=rf"fit first.*pipe\[-1\]\.{asked}"):
                getattr(step, asked)
        for asked in ("coefs", "_coef_", "nothing"):
            with pytest.raises(AttributeError) as missing:
                getattr(pipe.steps[-1][1], asked)
            assert "Fix: " not in str(missing.value)

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
