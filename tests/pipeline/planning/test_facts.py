"""Public facts: what each one is and where it comes from."""

from __future__ import annotations

import dataclasses

import pytest
from plans import classifier, data, plan

from ppdp import Adjacency, Domain, make_pipeline
from ppdp.exceptions import DomainMismatch, MissingBound, NoiseWarning
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.pipeline.planning.plan import Plan
from ppdp.transformers import MeanImputer, MinMaxScaler, NormClipper, StandardScaler


class TestFacts:
    @staticmethod
    def facts(p: Plan) -> dict[str, tuple[str, str]]:
        return {fact.name: (fact.value, fact.origin) for fact in p.facts}

    def test_declared(self):
        domain = Domain(
            n_rows=5000,
            n_features=2,
            feature_names=("a", "b"),
            row_norm=2.0,
            max_missing=7,
            rows_per_unit=3,
            classes=(0, 1),
        )
        p = plan(MeanImputer(), LogisticRegression(), domain=domain)
        facts = self.facts(p)
        assert facts["n_rows"] == ("5000", "declared")
        assert facts["n_features"] == ("2", "declared")
        assert facts["feature_names"] == ("a, b", "declared")
        assert facts["row_norm"] == ("2", "declared; rows above it are clipped")
        assert facts["gaps"] == ("at most 7 rows", "declared")
        assert facts["rows_per_unit"] == ("3", "declared")
        assert facts["classes"] == ("0, 1", "declared")
        assert p.domain == dataclasses.replace(domain, min_present=5000)
        assert p.distance == Adjacency.replace(3).distance

    def test_completed_at_fit(self):
        X, y = data("different")
        pipe = make_pipeline(MinMaxScaler(ranges=(0, 1)), MeanImputer(), classifier(), epsilon=5.0, delta=1e-5).fit(
            X, y
        )
        facts = {f["name"]: (f["value"], f["origin"]) for f in pipe.certificate_["facts"]}
        assert facts["n_rows"] == ("400", "shape of X")
        assert facts["n_features"] == ("3", "shape of X")
        assert facts["feature_names"] == ("a, b, c", "schema of X")
        assert facts["row_norm"] == ("follows from the stages", "stage 'minmaxscaler'")
        assert facts["gaps"] == ("any row may have gaps", "imputer 'meanimputer'")
        assert facts["rows_per_unit"] == ("1", "default")
        assert facts["classes"] == ("0, 1", "parameter of the model")

    def test_without_an_imputer_there_are_no_gaps(self):
        p = plan(NormClipper(), GaussianMechanism())
        assert self.facts(p)["gaps"] == ("none", "no imputer in the steps; a missing value is an invalid one")
        assert p.domain.max_missing == 0

    def test_classes_read_from_y_are_not_public(self):
        X, y = data("different")
        pipe = make_pipeline(MinMaxScaler(ranges=(0, 1)), LogisticRegression(), delta=1e-5)
        made = pipe.plan(Domain(n_rows=400, n_features=3))
        (fact,) = [f for f in made.facts if not f.public]
        assert fact.name == "classes"
        (told,) = made.warnings
        assert told.endswith("CONDITIONAL on that: pass classes=(...) to the last step.")
        certificate = pipe.fit(X, y).certificate_
        assert certificate.status == "CONDITIONAL"
        assert all(told in " ".join(text.split()) for text in (certificate.to_text(full=True), certificate.to_html()))
        assert plan(NormClipper(), LogisticRegression(classes=(0, 1))).warnings == ()

    def test_a_fit_of_little_use_says_so_once_in_the_words_of_its_plan(self):
        X, pipe = data("different")[0][:60], make_pipeline(MinMaxScaler(ranges="private"), GaussianMechanism())
        with pytest.warns(NoiseWarning) as caught:
            pipe.fit(X)
        (warning,) = [one for one in caught if one.category is NoiseWarning]
        told = " ".join(pipe.certificate_.record.warnings)
        assert "with 60 rows at epsilon = 1 what is released is too noisy: the ranges for" in told
        assert str(warning.message) == f"{told} No epsilon up to 20 was found to help. 3,300 rows would do."
        assert warning.filename == __file__

    def test_the_smaller_of_two_bounds_on_gaps_counts(self):
        for declared, own in ((7, 12), (12, 7), (None, 7), (7, None), (7, 0.5)):
            domain = Domain(n_rows=500, n_features=2, row_norm=1.0, max_missing=declared)
            p = plan(MeanImputer(max_missing=own, fit_mode="exact"), GaussianMechanism(), domain=domain)
            assert p.end[1].moved == 7

    def test_a_declared_fact_that_differs_is_an_error(self):
        X, y = data("different")
        for domain in (Domain(n_rows=399), Domain(n_features=4), Domain(feature_names=("a", "b", "x"))):
            with pytest.raises(DomainMismatch):
                make_pipeline(MinMaxScaler(ranges=(0, 1)), classifier(), domain=domain, delta=1e-5).fit(X, y)
        with pytest.raises(DomainMismatch):
            make_pipeline(MinMaxScaler(ranges=(0, 1)), classifier(), domain=Domain(classes=(0, 2)), delta=1e-5).fit(
                X, y
            )

    def test_a_bound_that_is_missing_is_named_with_its_fix(self):
        with pytest.raises(MissingBound, match="row_norm") as caught:
            plan(StandardScaler(), GaussianMechanism())
        assert "NormClipper" in caught.value.fix
        with pytest.raises(MissingBound, match="n_rows"):
            make_pipeline(NormClipper(), GaussianMechanism()).plan()
