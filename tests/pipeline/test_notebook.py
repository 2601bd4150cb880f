"""What somebody sees who works in a notebook: short errors, what was spent, our pages, names, slices."""

import re
import traceback
from pathlib import Path

import clinic
import numpy as np
import pytest
from clinic import classifier, scaling
from sklearn.base import BaseEstimator, clone

from ppdp import Certificate, Pipeline, mechanisms, transformers
from ppdp.core import keywords as pages
from ppdp.exceptions import BudgetExceeded, ExportError, InvalidInput, PpdpError
from ppdp.mechanisms import LinearSVC, LogisticRegression
from ppdp.transformers import PCA, MinMaxScaler, RandomProjection, StandardScaler

patients = clinic.patients


@pytest.fixture
def fitted(patients):
    return classifier().fit(*patients)


class TestErrors:
    def shown(self, call):
        with pytest.raises(PpdpError) as caught:
            call()
        return caught.value._render_traceback_()

    def test_the_line_of_the_user_and_the_sentence(self, patients):
        lines = self.shown(lambda: classifier(gate="none").fit(*patients))
        assert len("\n".join(lines).splitlines()) <= 5
        assert __file__ in lines[0]
        assert "gate=" in lines[0]
        assert lines[-1].startswith("InvalidParameter: gate must be")
        assert "more: import sys, traceback" in lines[1]

    def test_no_frame_of_a_library_is_shown(self, patients):
        lines = self.shown(lambda: classifier().fit(patients[0]))
        assert "in fit" not in lines[0]
        assert "ppdp/pipeline" not in "".join(lines)

    @pytest.mark.parametrize("kind", [BudgetExceeded, InvalidInput])
    def test_an_error_that_was_never_raised_has_its_words(self, kind):
        assert kind("no.", stage="a", fix="yes.")._render_traceback_() == [f"{kind.__name__}: stage 'a': no. Fix: yes."]

    def test_elsewhere_the_traceback_is_whole(self, patients):
        with pytest.raises(PpdpError) as caught:
            classifier(gate="none").fit(*patients)
        assert "pipeline.py" in "".join(traceback.format_exception(caught.value))


class TestDiagram:
    def test_a_fitted_pipeline_says_first_what_it_spent(self, fitted):
        assert "Spent" not in classifier()._repr_html_()
        first = re.sub("<[^>]*>", "", fitted._repr_html_().split("</p>")[0])
        assert (fitted.certificate_.epsilon, fitted.certificate_.delta) == (5.0, 1e-5)
        assert first.startswith("Spent (5, 10⁻⁵).")
        assert "no ledger" in first

    def test_of_a_certificate_that_does_not_hold_nothing_is_said(self, fitted):
        fitted.certificate_ = Certificate({**fitted.certificate_.to_dict(), "epsilon": 0.01})
        assert "Spent" not in fitted._repr_html_()

    def test_steps_are_drawn_as_fitted(self, fitted):
        assert "<span>Fitted</span>" in fitted._repr_html_()
        assert "<span>Not fitted</span>" in clone(fitted)._repr_html_()

    def links(self, estimator):
        return re.findall(r'class="sk-estimator-doc-link[^>]*href="([^"]*)"', estimator._repr_html_())

    @pytest.mark.parametrize("given", ["PPDP_DOCS", "the package"])
    def test_the_sign_for_help_opens_our_page(self, fitted, monkeypatch, given):
        monkeypatch.setattr(pages, "_address", lambda: "https://pages.example" if given != "PPDP_DOCS" else "https://x")
        if given == "PPDP_DOCS":
            monkeypatch.setenv(given, "https://pages.example/")
        assert self.links(StandardScaler()) == ["https://pages.example/theory/standard-scaling.html"]
        found = self.links(fitted)
        assert "https://pages.example/theory/newton.html" in found
        assert len(found) == 1 + len(fitted.named_steps)
        assert all(link.startswith("https://pages.example/") for link in found)

    def test_without_an_address_there_is_no_sign(self, fitted, monkeypatch):
        monkeypatch.setattr(pages, "_address", lambda: "")
        assert self.links(fitted) == self.links(PCA()) == []

    def test_the_page_exists(self, monkeypatch):
        monkeypatch.setenv("PPDP_DOCS", str(Path(__file__).parents[2] / "docs"))
        kinds = [Pipeline, *(getattr(room, name) for room in (transformers, mechanisms) for name in room.__all__)]
        kinds = [kind for kind in kinds if issubclass(kind, BaseEstimator)]
        assert [kind for kind in kinds if not Path(pages.page_of(kind)).with_suffix(".md").is_file()] == []
        assert len({pages.page_of(kind) for kind in kinds}) > 20


def test_a_certificate_is_saved_as_a_page(fitted, tmp_path):
    fitted.certificate_.save(tmp_path / "study.HTML")
    assert (tmp_path / "study.HTML").read_text("utf-8") == fitted.certificate_.to_html()
    fitted.certificate_.save(str(tmp_path / "study.json"))
    assert Certificate.load(tmp_path / "study.json") == fitted.certificate_


class TestNames:
    def test_of_a_pipeline_of_transformers(self, patients):
        pipe = scaling().fit(patients[0])
        assert pipe.get_feature_names_out().tolist() == list(pipe.feature_names_in_)
        with pytest.raises(ValueError, match="input_features"):
            pipe.get_feature_names_out(["a", "b", "c"])

    def test_of_columns_without_names(self):
        X = np.random.default_rng(0).uniform(0, 1, (500, 3))
        pipe = Pipeline([("range", MinMaxScaler(ranges=(0, 1))), ("project", RandomProjection(2))]).fit(X)
        assert pipe.get_feature_names_out().tolist() == ["randomprojection0", "randomprojection1"]
        assert pipe[:1].get_feature_names_out(["a", "b", "c"]).tolist() == ["a", "b", "c"]


class TestLogarithms:
    @pytest.mark.parametrize("classes", [("a", "b"), ("a", "b", "c")])
    def test_are_those_of_probabilities(self, classes):
        rng = np.random.default_rng(0)
        X, y = rng.uniform(0, 1, (500, 2)), rng.choice(classes, 500)
        model = LogisticRegression(classes=classes)
        pipe = Pipeline([("range", MinMaxScaler(ranges=(0, 1))), ("model", model)]).fit(X, y)
        np.testing.assert_allclose(np.exp(pipe.predict_log_proba(X)), pipe.predict_proba(X), 1e-12)

    def test_are_finite_where_a_probability_is_zero(self):
        model = LogisticRegression(classes=(0, 1), noise_scale=1e-9).fit([[0.0], [1.0]] * 20, [0, 1] * 20)
        model.coef_, model.intercept_ = np.array([[1e4]]), np.zeros(1)
        assert model.predict_proba([[1.0]])[0, 0] == 0.0
        assert model.predict_log_proba([[1.0]])[0, 0] == -1e4

    def test_are_there_only_with_probabilities(self):
        assert not hasattr(Pipeline([("model", LinearSVC())]), "predict_log_proba")


class TestSlices:
    def test_are_fitted(self, fitted, patients):
        head, tail, rows = fitted[:-1], fitted[-1:], patients[0].head(20)
        assert head.__sklearn_is_fitted__()
        mapped = head.transform(rows)
        np.testing.assert_array_equal(tail.predict_proba(mapped), fitted.predict_proba(rows))
        np.testing.assert_array_equal(fitted[1:].predict(fitted[:1].transform(rows)), fitted.predict(rows))
        assert head.get_feature_names_out().tolist() == list(fitted.feature_names_in_)
        assert tail.classes_.tolist() == fitted.classes_.tolist()

    def test_hold_released_values_and_no_certificate(self, fitted, tmp_path, patients):
        head = fitted[:-1]
        assert head["scale"] is fitted["scale"]
        assert not hasattr(head, "certificate_")
        assert "Spent" not in head._repr_html_()
        with pytest.raises(ExportError, match="slice"):
            head.export(tmp_path / "head.zip")
        with pytest.raises(ExportError, match="slice"):
            head.write_parquet(patients[0], tmp_path / "head")
        assert not list(tmp_path.iterdir())

    def test_of_what_is_not_fitted_are_not_fitted(self, fitted):
        assert not classifier()[:-1].__sklearn_is_fitted__()
        assert not clone(fitted[:-1]).__sklearn_is_fitted__()

    def test_a_new_fit_is_a_new_spend(self, fitted, patients):
        again = fitted[:-1].fit(patients[0])
        assert again.certificate_ != fitted.certificate_
        assert again["scale"] is not fitted["scale"]

    def test_an_empty_slice_predicts_nothing(self, fitted):
        assert len(fitted[:0]) == 0
        assert not hasattr(fitted[:0], "predict")
