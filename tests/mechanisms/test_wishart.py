"""The direction of the mean under a secret random projection: what leaves, what is assumed, what is refused."""

import math

import numpy as np
import pytest

import ppdp
from ppdp import Domain, make_pipeline
from ppdp.bounds.sketch import least_norm, mean_change
from ppdp.core.adjacency import Adjacency
from ppdp.data.rows import Rows
from ppdp.exceptions import InvalidParameter, LedgerError, MissingBound, NoRoute, PrivacyRefusal, UnsupportedOrder
from ppdp.mechanisms import GaussianMechanism, WishartMechanism
from ppdp.pipeline.fit import checked_steps
from ppdp.privacy import WishartLoss
from ppdp.privacy.noise.sampler import Noise
from ppdp.testing import check_stage
from ppdp.transformers import Deduplicator, NormClipper
from ppdp.transformers.floor import MeanFloor

N, D = 3000, 20
FACTS = Domain(n_rows=N, n_features=D)
ONE = Adjacency.replace().distance


def pipeline(mechanism=None, *stages, **parameters):
    last = mechanism or WishartMechanism(20, 0.9995)
    return make_pipeline(NormClipper(), *stages, last, **{"epsilon": 2.0, "delta": 1e-6, **parameters})


def rows(length, rng=None):
    """Rows whose mean has about this length."""
    X = (rng or np.random.default_rng(0)).normal(scale=0.02, size=(N, D))
    X[:, 0] += length
    return X


@pytest.fixture(scope="module")
def fitted():
    return pipeline(None, Deduplicator()).fit(rows(0.8))


class TestWhatLeaves:
    def test_a_vector_whose_mean_is_the_direction(self):
        mechanism, X = WishartMechanism(30, 0.9), rows(0.5)
        question = mechanism.query_spec(FACTS.but(row_norm=1.0, max_missing=0))
        noise = Noise(1)
        found = np.array([mechanism.release(Rows.of(X), question, noise, 0.1)["answer"] for _ in range(300)])
        direction = X.mean(axis=0) / np.linalg.norm(X.mean(axis=0))
        assert np.abs(found.mean(axis=0) - direction).max() < 0.05
        squares = (found @ direction) ** 2 / (found**2).sum(axis=1)
        assert squares.mean() == pytest.approx(30 / (30 + D - 1), abs=0.03)

    def test_attributes_follow_from_it(self, fitted):
        last = fitted[-1]
        np.testing.assert_allclose(np.linalg.norm(last.direction_), 1.0)
        np.testing.assert_array_equal(last.projected_, fitted.release_.arrays["wishartmechanism.answer"])
        assert last.noise_scale == 1 / math.sqrt(20)

    def test_an_export_is_loaded_and_predicts_nothing(self, fitted, tmp_path):
        fitted.export(tmp_path / "release.zip", conditional=True)
        loaded = ppdp.load(tmp_path / "release.zip")
        np.testing.assert_array_equal(loaded[-1].projected_, fitted[-1].projected_)
        again = make_pipeline(*(step for _, step in loaded.steps), epsilon=2.0, delta=1e-6)
        assert [name for name, _ in checked_steps(again).stages].count("meanfloor") == 1


class TestTheFloor:
    def test_it_is_tested_and_stands_in_the_certificate(self, fitted):
        record = fitted.certificate_.record
        step = record.steps[-1]
        assert (step.class_, step.formula, step.conditions[0].tested) == ("MeanFloor", "wishart.floor", True)
        assert step.parameters["min_norm"] == pytest.approx(2 / N / math.sqrt(2 * 0.0005))
        assert record.mechanism.parameters["min_cosine"] == step.parameters["min_cosine"]
        assert fitted.certificate_.verify()

    def test_a_mean_that_is_too_short_is_refused(self):
        with pytest.raises(PrivacyRefusal, match="GaussianMechanism"):
            pipeline().fit(rows(0.01) - rows(0.01).mean(axis=0))

    def test_a_floor_that_no_data_reach_is_refused_before_anything_is_spent(self):
        with pytest.raises(NoRoute, match="no data could pass the gate"):
            pipeline(WishartMechanism(20, 1 - 1e-8)).plan(FACTS)

    def test_its_stage_keeps_the_contract_of_all_stages(self):
        assert check_stage(MeanFloor(0.9), pairs=3, climbs=4) <= 1 + 1e-9

    @pytest.mark.parametrize("distance", [ONE, Adjacency.add_remove().distance, Adjacency.replace(3).distance], ids=str)
    def test_directions_at_the_floor_come_close_to_the_cosine(self, distance):
        """Two means of that norm that differ by as much as they can."""
        domain, cosine = Domain(n_rows=N, n_features=2, row_norm=1.0, max_missing=0), 0.9
        norm, change = least_norm(domain, distance, cosine), mean_change(domain, distance)
        rng, least = np.random.default_rng(2), 1.0
        for share in (1.0, 0.5, *rng.uniform(0, 1, 50)):
            low = norm * (1 + (1 - share) * rng.uniform(0, 1))
            angle = 2 * math.asin(min(1.0, share * change / (2 * low)))
            one, other = low * np.array([1.0, 0.0]), low * np.array([math.cos(angle), math.sin(angle)])
            assert np.linalg.norm(one - other) <= change * (1 + 1e-9)
            least = min(least, one @ other / low**2)
        assert cosine - 1e-9 <= least <= cosine + 1e-6

    def test_rows_attain_that(self):
        """All rows but one are equal; that one points to one side or to the other."""
        n, cosine = 12, 0.97
        domain = Domain(n_rows=n, n_features=2, row_norm=1.0, max_missing=0)
        (condition,) = MeanFloor(cosine).fit_modes(domain, ONE)[0].conditions
        least = least_norm(domain, ONE, cosine)
        height = math.sqrt((n * least) ** 2 - 1) / (n - 1) * (1 + 1e-9)
        X = np.tile([height, 0.0], (n, 1))
        pair = [np.vstack([X[:-1], [[0.0, side]]]) for side in (1.0, -1.0)]
        assert all(condition.margin(one) >= 0 for one in pair)
        one, other = (side.mean(axis=0) / np.linalg.norm(side.mean(axis=0)) for side in pair)
        assert cosine - 1e-9 <= one @ other <= cosine + 1e-6
        shorter = [np.vstack([0.99 * X[:-1], [[0.0, side]]]) for side in (1.0, -1.0)]
        assert all(condition.margin(one) == 0 for one in shorter)


class TestWhatIsCertified:
    def test_the_loss_is_that_of_the_public_class(self, fitted):
        (part,) = fitted.certificate_.loss.parts
        assert part == WishartLoss(D, 20, 0.9995)
        assert fitted.certificate_.epsilon_at(1e-6) <= 2.0

    def test_it_says_that_it_rests_on_real_arithmetic(self, fitted):
        certificate = fitted.certificate_
        assert certificate.status == "CONDITIONAL"
        assert any(WishartLoss.idealised in reason for reason in certificate["reasons"])
        for page in (certificate.to_text(full=True), certificate.to_html(), certificate.to_model_card()):
            assert "real arithmetic" in " ".join(page.split())

    def test_it_says_that_the_gaussian_mechanism_is_better(self, fitted):
        (warning,) = fitted.certificate_["warnings"]
        assert "GaussianMechanism" in warning
        assert "is the better choice" in warning
        assert warning in repr(pipeline(None, Deduplicator()).plan(FACTS))

    def test_a_budget_that_is_too_small_says_what_is_asked(self):
        with pytest.raises(NoRoute, match="what is asked costs epsilon = "):
            pipeline(WishartMechanism(20, 0.99)).plan(FACTS)

    def test_without_a_gate_the_floor_is_assumed(self):
        found = pipeline(None, Deduplicator(), gate=None).fit(rows(0.8)).certificate_
        assert any("assumes that the mean of the rows has a norm" in reason for reason in found["reasons"])
        assert found.verify()

    def test_behind_a_stage_that_changes_more_rows_the_floor_is_higher(self):
        plans = [pipeline(None, *stages).plan(FACTS) for stages in ((), (Deduplicator(subset=[0]),))]
        norms = [plan.steps[-1].way.parameters["min_norm"] for plan in plans]
        assert norms[1] == pytest.approx(2 * norms[0])


class TestWhatIsRefused:
    @pytest.mark.parametrize(("query", "why"), [("mean", "told apart by its length"), ("rows", "symmetric")])
    def test_lengths_and_matrices_with_the_reason(self, query, why):
        with pytest.raises(UnsupportedOrder, match=why):
            pipeline(WishartMechanism(20, 0.9995, query)).plan(FACTS)

    def test_one_column_unbounded_rows_and_a_scale_of_ones_own(self):
        with pytest.raises(InvalidParameter, match="two columns"):
            pipeline().plan(Domain(n_rows=N, n_features=1))
        with pytest.raises(MissingBound):
            WishartMechanism(20, 0.9).query_spec(FACTS.but(max_missing=0))
        with pytest.raises(InvalidParameter, match="follows from rank"):
            WishartMechanism(20, 0.9, noise_scale=3.0).query_spec(FACTS.but(row_norm=1.0, max_missing=0))

    def test_a_ledger_takes_it_alone(self):
        ledger = ppdp.Ledger(epsilon=6.0, delta=1e-5)
        pipeline(None, ledger=ledger).fit(rows(0.8))
        with pytest.raises(LedgerError, match="no known Rényi divergence"):
            pipeline(GaussianMechanism(), ledger=ledger).fit(rows(0.8))

    def test_the_name_of_its_stage_is_taken(self):
        steps = [("d-floor", NormClipper()), ("d", WishartMechanism(20, 0.9995))]
        with pytest.raises(InvalidParameter, match="brings itself"):
            ppdp.Pipeline(steps).plan(FACTS)
